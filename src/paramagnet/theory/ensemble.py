"""The ensemble of random machines that the theory is about ([Y25] eqn:initial_RBM).

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from paramagnet._checks import as_positive, as_real, as_reals
from paramagnet.theory.biases import Biases
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.layers.spread import SpreadLayer
from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.units import Array, FloatArray, Unit, as_unit

LARGEST_BIAS = 1e4  # for larger biases the square of a Gaussian unit's mean rounds off its variance


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The random machine of [Y25] eqn:initial_RBM: unit types, and arrays of one common shape.

    ``coarseness`` above 1 asks for averages of less accuracy. Where biases differ from unit to unit,
    ``spread_v`` or ``spread_h`` holds them, and ``b`` or ``c`` their root mean square.
    """

    visible: UnitTheory
    hidden: UnitTheory
    beta: Array
    alpha: FloatArray
    b: FloatArray
    c: FloatArray
    coarseness: float = 1.0
    spread_v: Biases | None = None
    spread_h: Biases | None = None

    @cached_property
    def coupling_v(self) -> Array:
        """``A = alpha beta**2/(1 + alpha)``, the factor from the order parameters of the hidden layer to the
        auxiliary parameters of the visible layer.
        """
        coupling: Array = np.asarray(self.alpha * self.coupling_h)
        return coupling

    @cached_property
    def coupling_h(self) -> Array:
        """``B = beta**2/(1 + alpha)``, the factor from the order parameters of the visible layer to the
        auxiliary parameters of the hidden layer.
        """
        coupling: Array = np.asarray(self.beta * self.beta / (1.0 + self.alpha))
        return coupling

    @property
    def symmetric_v(self) -> Array:
        """A mask of the machines that flipping all visible units leaves unchanged."""
        return np.asarray(self.visible.symmetric & (self.b == 0.0))

    @property
    def symmetric_h(self) -> Array:
        """A mask of the machines that flipping all hidden units leaves unchanged."""
        return np.asarray(self.hidden.symmetric & (self.c == 0.0))

    @property
    def slope_v(self) -> Array:
        """A mask of the machines whose formulas take a derivative in the visible biases: those of
        `symmetric_v`, and all with visible labels.
        """
        return np.asarray(self.symmetric_v | self.visible.label)

    @property
    def slope_h(self) -> Array:
        """The same for the hidden layer."""
        return np.asarray(self.symmetric_h | self.hidden.label)

    def exchanged(self) -> Ensemble:
        """The same machine with its layers exchanged."""
        return Ensemble(
            self.hidden, self.visible, self.beta, 1.0 / self.alpha, self.c, self.b, self.coarseness,
            self.spread_h, self.spread_v,
        )  # fmt: skip

    def at(self, beta: Array) -> Ensemble:
        """The same machine at another ``beta``."""
        return replace(self, beta=beta)

    def standardized(self) -> tuple[Ensemble, float]:
        """The same machine with the standard units of each type (Gaussian ones of variance 1), and the number
        that divides its ``beta``: ``x = sqrt(s) y`` multiplies a unit's weights and biases by ``sqrt(s)``.
        """
        roots = [np.sqrt(self.visible.stretch), np.sqrt(self.hidden.stretch)]
        if roots == [1.0, 1.0]:
            return self, 1.0
        spread_v, spread_h = (
            None if spread is None else Biases(root * spread.values, spread.weights)
            for root, spread in zip(roots, (self.spread_v, self.spread_h), strict=True)
        )
        scale = float(roots[0] * roots[1])
        beta, b, c = scale * self.beta, roots[0] * self.b, roots[1] * self.c
        v, h = self.visible.standard(), self.hidden.standard()
        return Ensemble(v, h, beta, self.alpha, b, c, self.coarseness, spread_v, spread_h), scale

    def raveled(self) -> Ensemble:
        """The same machines in one dimension."""
        return replace(
            self, beta=np.ravel(self.beta), alpha=np.ravel(self.alpha), b=np.ravel(self.b), c=np.ravel(self.c)
        )

    def broadcast_to(self, shape: tuple[int, ...]) -> Ensemble:
        """The same machines, repeated to fill ``shape``."""
        beta, alpha, b, c = (np.broadcast_to(a, shape) for a in (self.beta, self.alpha, self.b, self.c))
        return replace(self, beta=beta, alpha=alpha, b=b, c=c)

    def select(self, which: Any) -> Ensemble:
        """Some of the machines, by an index into the arrays."""
        return replace(self, beta=self.beta[which], alpha=self.alpha[which], b=self.b[which], c=self.c[which])

    def visible_layer(self, qhat: Array, selfhat: Array, gap: Array | None = None) -> LayerAverages:
        """The visible layer at given auxiliary parameters; ``gap`` is their difference, if the caller knows
        it to more digits than the subtraction gives.
        """
        return _make_layer(self.visible, self.b, self.spread_v, qhat, selfhat, gap, self.coarseness)

    def hidden_layer(self, qhat: Array, selfhat: Array, gap: Array | None = None) -> LayerAverages:
        """The hidden layer, with the same arguments as `visible_layer`."""
        return _make_layer(self.hidden, self.c, self.spread_h, qhat, selfhat, gap, self.coarseness)


def _make_layer(
    theory: UnitTheory,
    bias: FloatArray,
    spread: Biases | None,
    qhat: Array,
    selfhat: Array,
    gap: Array | None,
    coarseness: float,
) -> LayerAverages:
    if spread is None:
        return theory.layer(bias, qhat, selfhat, gap, coarseness)
    if theory.label:
        return theory.site_layer(spread.sites, qhat, selfhat, gap, coarseness)

    def make(biases: FloatArray, qhat: Array, selfhat: Array, gap: Array | None) -> LayerAverages:
        return theory.layer(biases, qhat, selfhat, gap, coarseness)

    return SpreadLayer(make, spread.rule_for(theory.unit, coarseness), qhat, selfhat, gap)


def make_ensemble(
    beta: Any, alpha: Any, *, visible: str | Unit, hidden: str | Unit, b: Any, c: Any, empty: bool = False
) -> Ensemble:
    """Check the arguments of a public function of the theory and bring them to one shape.

    ``empty`` allows arrays without numbers.
    """
    spreads = (b if isinstance(b, Biases) else None, c if isinstance(c, Biases) else None)
    for spread, argument in zip(spreads, ("b", "c"), strict=True):
        if spread is not None:
            _refuse_beyond(np.array([spread.largest]), argument, -LARGEST_BIAS, LARGEST_BIAS)
    b, c = (bias.root_mean_square if isinstance(bias, Biases) else bias for bias in (b, c))
    units = _as_theory(visible, "visible"), _as_theory(hidden, "hidden")
    arrays = (
        as_positive(beta, "beta", zero=True), as_positive(alpha, "alpha"), as_reals(b, "b"), as_reals(c, "c")
    )  # fmt: skip
    _refuse_beyond(arrays[0], "beta", 0.0, 3e4)
    for theory, spread, bias, argument in zip(units, spreads, arrays[2:], ("b", "c"), strict=True):
        _check_biases(theory, spread, bias, argument)
    largest = min(unit.largest_ratio for unit in units)
    _refuse_beyond(arrays[1], "alpha", 1.0 / largest, largest)
    for array, argument in zip(arrays[2:], ("b", "c"), strict=True):
        _refuse_beyond(array, argument, -LARGEST_BIAS, LARGEST_BIAS)
    try:
        beta, alpha, b, c = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"`beta`, `alpha`, `b` and `c` must broadcast to one shape, got {shapes}.") from None
    if not (beta.size or empty):
        raise ValueError(
            f"`beta`, `alpha`, `b` and `c` must hold at least one number, got the shape {beta.shape}."
        )
    return Ensemble(*units, beta, alpha, b, c, spread_v=spreads[0], spread_h=spreads[1])


def _check_biases(theory: UnitTheory, spread: Biases | None, bias: FloatArray, argument: str) -> None:
    """Raise ValueError for biases whose shape does not fit the units."""
    if spread is None:
        if theory.label and bias.any():
            raise ValueError(
                f"`{argument}` must be 0 or `Biases` for {theory} units, which have one bias per state, got "
                f"{bias[bias != 0.0].flat[0]:g}. `Biases(array)` takes a row per unit and a column per state."
            )
        return
    columns = spread.values.shape[1] if spread.values.ndim == 2 else 1
    wanted = theory.unit.width
    if columns != wanted:
        shape = (
            f"an array of shape (n_units, {wanted})" if theory.label else "a sequence, one number per unit"
        )
        raise ValueError(
            f"`{argument}` must hold biases of {theory} units, {shape}, got shape {spread.values.shape}."
        )


def _as_theory(unit: str | Unit, argument: str) -> UnitTheory:
    return theory_of(as_unit(unit, argument), argument)


def as_bias(value: Any, argument: str) -> float:
    """The bias of all units of a layer; ``argument`` is its name in the public function."""
    bias = as_real(value, argument)
    _refuse_beyond(np.array([bias]), argument, -LARGEST_BIAS, LARGEST_BIAS)
    return bias


def as_layer_bias(value: Any, unit: str | Unit, argument: str) -> float | Biases:
    """The bias of all units of a layer, or `Biases` that fit them; ``argument`` is its name in the public
    function.
    """
    theory = _as_theory(unit, argument.removesuffix("_bias"))
    if not isinstance(value, Biases):
        bias = as_bias(value, argument)
        _check_biases(theory, None, np.array([bias]), argument)
        return bias
    _refuse_beyond(np.array([value.largest]), argument, -LARGEST_BIAS, LARGEST_BIAS)
    _check_biases(theory, value, np.zeros(1), argument)
    return value


def _refuse_beyond(values: FloatArray, argument: str, low: float, high: float) -> None:
    """Raise ValueError for values beyond these bounds, where the averages would need too many nodes or
    numbers would leave the range of floats.
    """
    bad = (values < low) | (values > high)
    if bad.any():
        raise ValueError(f"`{argument}` must lie between {low:g} and {high:g}, got {values[bad].flat[0]:g}.")
