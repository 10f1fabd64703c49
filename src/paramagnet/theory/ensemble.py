"""The ensemble of random machines that the theory is about ([Y25] eqn:initial_RBM)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from paramagnet._checks import as_positive, as_reals
from paramagnet.theory.layer import Layer
from paramagnet.units import Array, BinaryUnit, FloatArray, as_unit


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The random machine of [Y25] eqn:initial_RBM: unit types, and arrays of one common shape.

    ``coarseness`` above 1 asks for averages of less accuracy.
    """

    visible: BinaryUnit
    hidden: BinaryUnit
    beta: Array
    alpha: FloatArray
    b: FloatArray
    c: FloatArray
    coarseness: float = 1.0

    @cached_property
    def coupling_v(self) -> Array:
        """``A = alpha beta**2/(1 + alpha)``: what the hidden layer's order parameters count in the
        visible one.
        """
        coupling: Array = np.asarray(self.alpha * self.coupling_h)
        return coupling

    @cached_property
    def coupling_h(self) -> Array:
        """``B = beta**2/(1 + alpha)``: what the visible layer's order parameters count in the hidden one."""
        coupling: Array = np.asarray(self.beta * self.beta / (1.0 + self.alpha))
        return coupling

    @property
    def symmetric_v(self) -> Array:
        """Where flipping the visible units changes nothing."""
        return np.asarray(self.visible.symmetric & (self.b == 0.0))

    @property
    def symmetric_h(self) -> Array:
        """Where flipping the hidden units changes nothing."""
        return np.asarray(self.hidden.symmetric & (self.c == 0.0))

    def exchanged(self) -> Ensemble:
        """The same machine with its layers in exchanged roles."""
        return Ensemble(
            self.hidden, self.visible, self.beta, 1.0 / self.alpha, self.c, self.b, self.coarseness
        )

    def at(self, beta: Array) -> Ensemble:
        """The same machine at another ``beta``."""
        return replace(self, beta=beta)

    def raveled(self) -> Ensemble:
        """The same machines in one dimension."""
        return replace(
            self, beta=np.ravel(self.beta), alpha=np.ravel(self.alpha), b=np.ravel(self.b), c=np.ravel(self.c)
        )

    def select(self, which: Any) -> Ensemble:
        """Some of the machines, by an index into the arrays."""
        return replace(self, beta=self.beta[which], alpha=self.alpha[which], b=self.b[which], c=self.c[which])

    def visible_layer(self, qhat: Array, selfhat: Array) -> Layer:
        """The visible layer at given auxiliary parameters."""
        return Layer(self.visible, self.b, qhat, selfhat, self.coarseness)

    def hidden_layer(self, qhat: Array, selfhat: Array) -> Layer:
        """The hidden layer at given auxiliary parameters."""
        return Layer(self.hidden, self.c, qhat, selfhat, self.coarseness)


def make_ensemble(
    beta: Any, alpha: Any, *, visible: str | BinaryUnit, hidden: str | BinaryUnit, b: Any, c: Any
) -> Ensemble:
    """Check the arguments of a public function of the theory and bring them to one shape."""
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    arrays = (
        as_positive(beta, "beta", zero=True), as_positive(alpha, "alpha"), as_reals(b, "b"), as_reals(c, "c")
    )  # fmt: skip
    _refuse_beyond(arrays[0], "beta", 0.0, 3e4)
    _refuse_beyond(arrays[1], "alpha", 1e-50, 1e50)
    try:
        beta, alpha, b, c = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"`beta`, `alpha`, `b` and `c` must broadcast to one shape, got {shapes}.") from None
    return Ensemble(*units, beta, alpha, b, c)


def _refuse_beyond(values: FloatArray, argument: str, low: float, high: float) -> None:
    """Beyond these bounds the averages would take too many nodes, or the floats end."""
    bad = (values < low) | (values > high)
    if bad.any():
        raise ValueError(f"`{argument}` must lie between {low:g} and {high:g}, got {values[bad].flat[0]:g}.")
