"""What is known of a maximum of the layer correlation, and what to say about a doubtful one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet.units import BinaryUnit


class ReplicaSymmetryWarning(UserWarning):
    """The replica-symmetric theory is unstable where the maximum lies: not to be trusted there."""


class MaximumWarning(UserWarning):
    """The maximum exists but is doubtful as a scale: it is flat, or a higher one lies at larger beta."""


class NoMaximumError(ValueError):
    """The layer correlation has no maximum; `result` says what was found instead."""

    def __init__(self, message: str, result: LayerCorrelationMaximum) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, eq=False)
class LayerCorrelationMaximum:
    """beta_max and what there is to know about it; floats and a string, or arrays of the arguments'
    common shape.

    ``value`` is the layer correlation there (its slope where symmetry makes it vanish), ``curvature``
    is ``d2 ln|chi|/d(ln beta)2``, ``stability`` the de Almeida-Thouless number, ``rival`` the beta of a
    higher maximum further on (nan if none was seen).

    ``status`` is one of ``"maximum"``, ``"transition"`` (two symmetric layers: the maximum is the
    spin-glass transition, in closed form), ``"flat"``, ``"rival"``, ``"unstable"`` (stability <= 0),
    ``"jump"``, ``"none"``.
    """

    beta: Any
    alpha: Any
    b: Any
    c: Any
    visible: BinaryUnit
    hidden: BinaryUnit
    value: Any
    curvature: Any
    stability: Any
    rival: Any
    status: Any


_OBJECTIONS: dict[str, tuple[type[Warning] | None, str]] = {
    "none": (None, "has no maximum that was found"),
    "jump": (None, "jumps near beta = {beta:.6g} (a first-order transition) and has no smooth maximum"),
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


def judge(result: LayerCorrelationMaximum, *, stacklevel: int = 3) -> None:
    """Raise or warn as the status of a result asks for, naming the first machine concerned."""
    status = np.ravel(np.asarray(result.status, dtype=object))
    if {"maximum", "transition"}.issuperset(status):
        return
    for name, (category, text) in _OBJECTIONS.items():
        concerned = np.flatnonzero(status == name)
        if not concerned.size:
            continue
        keys = ("alpha", "b", "c", "beta", "stability", "rival")
        at = {key: float(np.ravel(getattr(result, key))[concerned[0]]) for key in keys}
        machine = f"{result.visible}-{result.hidden} machines with `alpha` = {at['alpha']:g}, "
        machine += f"`b` = {at['b']:g}, `c` = {at['c']:g}"
        message = f"The layer correlation of {machine} {text.format(**at)}."
        if category is None:
            raise NoMaximumError(message + _REMEDY, result)
        warnings.warn(message, category, stacklevel=stacklevel)
