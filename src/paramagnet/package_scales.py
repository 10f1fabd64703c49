"""The initial scales of other packages, and the comparison of all scales with the theory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from paramagnet._arrays import shown
from paramagnet._checks import as_count
from paramagnet.initializers import scheme_std
from paramagnet.schemes import SCHEMES, DWave, Scale, Scheme, as_scale
from paramagnet.theory.ensemble import as_bias
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.response import criterion, replica_stability
from paramagnet.theory.saddle import ConvergenceError, solve_saddle_point
from paramagnet.theory.scale import find_beta_max
from paramagnet.theory.status import LayerCorrelationMaximum
from paramagnet.units import BIT, SPIN, BinaryUnit, Unit, find_unit


@dataclass(frozen=True)
class PackageDefault:
    """The initial scale of another package, and its unit types if they are fixed."""

    name: str
    visible: BinaryUnit | None
    hidden: BinaryUnit | None
    scale: Callable[[int, int], float]


PACKAGE_DEFAULTS = (
    PackageDefault("rbms 0.5", BIT, BIT, lambda n, m: 1e-4),
    PackageDefault("scikit-learn", BIT, BIT, lambda n, m: 0.01),
    PackageDefault("learnergy", BIT, BIT, lambda n, m: 0.01),
    PackageDefault("RestrictedBoltzmannMachines.jl", None, None, lambda n, m: 0.1 / np.sqrt(n)),
    PackageDefault("PGM", None, None, lambda n, m: np.sqrt(0.1 / n)),
    PackageDefault("QuCumber", BIT, BIT, lambda n, m: 1.0 / np.sqrt(n)),
    PackageDefault("PyDeep", BIT, BIT, lambda n, m: 4.0 * np.sqrt(2.0 / (n + m))),
    PackageDefault("D-Wave plugin 0.4", SPIN, SPIN, DWave().scale),
)
_SCALES = [
    name
    for name in SCHEMES.names
    if issubclass(scheme := SCHEMES.find(name, "scheme"), Scale) and not scheme.package
]


@dataclass(frozen=True)
class SchemeReport:
    """One scheme compared with the theory, for layers of given sizes.

    ``to_ours`` is sigma over that of ``layer-correlation`` in the scheme's own unit types; ``to_critical``
    is its coupling, converted to spins (a bit counts as half a spin, a unit of another type as its
    standard deviation), over the critical ``(n m)**(-1/4)``; ``correlation`` is the layer correlation over
    its maximum (nan if the maximum is infinite or does not exist). If a scale is too large for the theory to
    be computed, ``phase`` is "unknown" and the numbers that depend on it are nan.
    """

    name: str
    kind: str
    visible: Unit
    hidden: Unit
    sigma: float
    to_ours: float
    to_critical: float
    q_v: float
    q_h: float
    correlation: float
    stability: float
    phase: str


def compare_schemes(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    hidden_bias: float = 0.0,
    schemes: Sequence[str | Scheme] = (),
) -> list[SchemeReport]:
    """Compare every scheme in the given unit types, then the default of every package, with the theory.

    A package with unit types of its own is compared in these, with zero biases. ``schemes`` are further
    schemes: those of the user's own classes, or D-Wave's in the given unit types.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    hidden_bias : float, default 0.0
        Bias of all hidden units in the user's own machine.
    schemes : sequence of str or Scheme, optional
        Further schemes, by name or as objects.

    Returns
    -------
    list of SchemeReport
        One report per scheme and per package.
    """
    if not isinstance(schemes, (list, tuple)):
        raise ValueError(f"`schemes` must be a list of schemes, got {shown(schemes)}.")
    chosen = {name: as_scale(name, "schemes") for name in _SCALES}
    chosen |= {s if isinstance(s, str) else type(s).__name__: as_scale(s, "schemes") for s in schemes}
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    units = find_unit(visible, "visible"), find_unit(hidden, "hidden")
    c = as_bias(hidden_bias, "hidden_bias")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns of the table show the same
        sigmas = {
            name: scheme_std(scheme, n, m, visible=units[0], hidden=units[1], hidden_bias=c)
            for name, scheme in chosen.items()
        }
    reports = [_judge_scale(name, "scheme", sigma, n, m, *units, c) for name, sigma in sigmas.items()]
    for package in PACKAGE_DEFAULTS:
        v, h = package.visible or units[0], package.hidden or units[1]
        bias = c if (package.visible, package.hidden) == (None, None) else 0.0
        reports.append(_judge_scale(package.name, "package", float(package.scale(n, m)), n, m, v, h, bias))
    return reports


@lru_cache(maxsize=64)
def _maximum(alpha: float, visible: Unit, hidden: Unit, c: float) -> LayerCorrelationMaximum:
    return find_beta_max(alpha, visible=visible, hidden=hidden, c=c)


def _judge_scale(
    name: str, kind: str, sigma: float, n: int, m: int, visible: Unit, hidden: Unit, c: float
) -> SchemeReport:
    alpha, beta = m / n, sigma * np.sqrt(n + m)
    machine: dict[str, Any] = {"visible": visible, "hidden": hidden, "c": c}
    maximum = _maximum(alpha, visible, hidden, c)
    q_v = q_h = stability = correlation = np.nan
    try:
        point = solve_saddle_point(beta, alpha, **machine)
        q_v, q_h, stability = point.q_v, point.q_h, replica_stability(beta, alpha, **machine)
        if np.isfinite(maximum.value):
            correlation = criterion(beta, alpha, b=0.0, **machine) / maximum.value
    except (ValueError, ConvergenceError):  # too large a scale; other rows are still computed
        pass
    free = [
        theory_of(unit, argument).free_square for unit, argument in ((visible, "visible"), (hidden, "hidden"))
    ]
    spin_language = float(np.prod(free)) ** 0.25
    return SchemeReport(
        name=name,
        kind=kind,
        visible=visible,
        hidden=hidden,
        sigma=sigma,
        to_ours=beta / maximum.beta,
        to_critical=spin_language * sigma * (n * m) ** 0.25,
        q_v=q_v,
        q_h=q_h,
        correlation=float(correlation),
        stability=stability,
        phase=_phase(visible, hidden, c, beta / maximum.beta, stability),
    )


def _phase(visible: Unit, hidden: Unit, c: float, to_ours: float, stability: float) -> str:
    even = all(unit.symmetric or unit.width > 1 for unit in (visible, hidden))
    if even and c == 0.0:  # our scale is the transition
        if abs(to_ours - 1.0) < 1e-9:
            return "critical"
        return "spin glass" if to_ours > 1.0 else "paramagnet"
    if np.isnan(stability):
        return "unknown"
    return "replica symmetric" if stability > 0.0 else "replica symmetry broken"
