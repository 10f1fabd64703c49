"""The result of a search for a maximum of the layer correlation, and the warnings about doubtful ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet._callers import caller_level
from paramagnet.theory.biases import Biases
from paramagnet.units import Unit


class ReplicaSymmetryWarning(UserWarning):
    """The replica-symmetric theory is unstable at the maximum and cannot be relied on there."""


class MaximumWarning(UserWarning):
    """The maximum exists but is doubtful as a scale: it is flat, or a higher one lies at larger beta."""


class NoMaximumError(ValueError):
    """The layer correlation has no maximum; `result` says what was found instead."""

    def __init__(self, message: str, result: LayerCorrelationMaximum) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: Python cannot unpickle an exception of two arguments without this method."""
        return type(self), (*self.args, self.result), vars(self)


@dataclass(frozen=True, eq=False)
class LayerCorrelationMaximum:
    """beta_max with its curvature, stability and status; floats and a string, or arrays of the arguments'
    common shape.

    ``value`` is the layer correlation there (its slope where symmetry makes it vanish), ``curvature``
    is ``d2 ln|chi|/d(ln beta)2``, ``stability`` the de Almeida-Thouless number, ``rival`` the beta of a
    higher maximum at larger beta (nan if none was found).

    ``status`` is one of ``"maximum"``, ``"transition"`` (two symmetric layers: the maximum is the
    spin-glass transition, in closed form), ``"first-order"`` (a Gaussian layer beside one of bits: the
    maximum is a first-order transition), ``"flat"``, ``"rival"``, ``"unstable"`` (stability <= 0),
    ``"jump"``, ``"edge (continuous)"`` (labels beside symmetric units, ReLU units: no maximum; ``beta`` is
    the stability edge of the centred machine, see `stability_edge`), ``"edge (condensation)"`` (ReLU units:
    single units grow without bound there), ``"edge"`` (two Gaussian layers: no maximum up to where they cease
    to exist), ``"none"``.
    """

    beta: Any
    alpha: Any
    b: Any
    c: Any
    visible: Unit
    hidden: Unit
    value: Any
    curvature: Any
    stability: Any
    rival: Any
    status: Any


_OBJECTIONS: dict[str, tuple[type[Warning] | None, str]] = {
    "none": (None, "has no maximum that was found"),
    "jump": (None, "jumps near beta = {beta:.6g} (a first-order transition) and has no smooth maximum"),
    "edge": (
        None,
        "is zero for all beta up to {beta:.6g}, where beta^2 = (1 + alpha)/(1 + sqrt(alpha))^2 over the "
        "product of the variances and the machine ceases to exist: an edge, no maximum",
    ),
    "edge (condensation)": (
        MaximumWarning,
        "has no maximum; the paramagnet of the centred machine ends at beta = {beta:.4g}, where single ReLU "
        "units grow without bound along their own weights. That beta is taken; stay below it",
    ),
    "first-order": (
        MaximumWarning,
        "grows up to a first-order transition at beta = {beta:.4g}, where the bits switch on at once; "
        "that beta is taken",
    ),
    "flat": (MaximumWarning, "is flat: scales around beta = {beta:.4g} are hardly worse"),
    "rival": (
        MaximumWarning,
        "has a higher maximum at beta = {rival:.4g}; the first one, at beta = {beta:.4g}, is taken",
    ),
    "unstable": (
        ReplicaSymmetryWarning,
        "has its maximum at beta = {beta:.4g}, where the replica-symmetric theory is unstable "
        "(stability {stability:.3g})",
    ),
}
_REMEDY = " Choose biases nearer to zero, layers of more equal size, or a scale of your own."


def judge(result: LayerCorrelationMaximum) -> None:
    """Raise or warn according to the status of a result; the message names the first machine concerned."""
    status = np.ravel(np.asarray(result.status, dtype=object))
    if {"maximum", "transition", "edge (continuous)"}.issuperset(status):
        return
    for name, (category, text) in _OBJECTIONS.items():
        concerned = np.flatnonzero(status == name)
        if not concerned.size:
            continue
        keys = ("alpha", "b", "c", "beta", "stability", "rival")
        found = {key: getattr(result, key) for key in keys}
        at = {
            key: value.root_mean_square if isinstance(value, Biases) else float(np.ravel(value)[concerned[0]])
            for key, value in found.items()
        }
        machine = f"{result.visible}-{result.hidden} machines with `alpha` = {at['alpha']:g}, "
        b, c = ("`Biases(...)`" if isinstance(found[k], Biases) else f"{at[k]:g}" for k in ("b", "c"))
        machine += f"`b` = {b}, `c` = {c}"
        message = f"The layer correlation of {machine} {text.format(**at)}."
        if category is None:
            remedy = " Give one of the layers spin or bit units." if name == "edge" else _REMEDY
            raise NoMaximumError(message + remedy, result)
        warnings.warn(message, category, stacklevel=caller_level())
