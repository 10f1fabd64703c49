"""Unit types: what one visible or hidden variable can be.

A unit is a measure ``p0(x)`` on the line. In a field ``h`` and a curvature ``g`` it has the weight
``p0(x) exp(h x + g x**2)``; the theory needs the logarithm of the total weight and the cumulants
``k1..k4`` of ``x``, a machine needs the mean and a draw. Every binary unit is one class: the pair
``(low, high)`` is all there is to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BinaryUnit:
    """A variable that takes the value ``low`` or ``high``.

    The log-odds of ``high`` are ``(high - low) h + (high**2 - low**2) g``: for spins the curvature
    drops out, for bits it adds to the field. All functions act elementwise on arrays.
    """

    name: str
    low: float
    high: float

    def __str__(self) -> str:
        return self.name

    @property
    def levels(self) -> tuple[float, float]:
        """The two values, as the kernels want them."""
        return self.low, self.high

    @property
    def symmetric(self) -> bool:
        """Whether ``x -> -x`` maps the unit onto itself."""
        return self.low == -self.high

    def log_trace(self, field: Array, curvature: Array | float = 0.0) -> FloatArray:
        """``ln sum_x exp(h x + g x**2)``, without overflow."""
        low, high = self.low, self.high
        result: FloatArray = np.logaddexp(
            low * field + low * low * curvature, high * field + high * high * curvature
        )
        return result

    def log_odds(self, field: Array, curvature: Array | float = 0.0) -> Array:
        """``ln P(high)/P(low)`` in field ``h`` and curvature ``g``."""
        if not self.symmetric:
            field = field + (self.low + self.high) * curvature
        odds: Array = (self.high - self.low) * field
        return odds

    def cumulants(self, field: Array, curvature: Array | float = 0.0) -> tuple[Array, Array]:
        """The cumulants ``k1`` and ``k2`` of ``x``, each to full relative accuracy (``k1`` of bits at
        ``h = -30``, of spins at ``h = 1e-9``, ``k2`` of both at ``h = 300``).

        A complex field is a real one with an infinitesimal change as its imaginary part; the results
        then carry theirs.
        """
        odds = self.log_odds(field, curvature)
        if np.iscomplexobj(odds):
            k1, k2 = self._real_cumulants(odds.real)
            change = 1j * (odds.imag / (self.high - self.low))
            return k1 + change * k2, k2 + change * self.third_cumulant(k1, k2)
        return self._real_cumulants(odds)

    def _real_cumulants(self, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        decay = np.exp(-np.abs(odds))
        likely = 1.0 / (1.0 + decay)
        unlikely = decay * likely
        k2: FloatArray = (self.high - self.low) ** 2 * likely * unlikely
        if self.symmetric:
            return self.high * np.tanh(0.5 * odds), k2
        up = odds > 0.0
        k1: FloatArray = self.high * np.where(up, likely, unlikely)
        if self.low != 0.0:
            k1 += self.low * np.where(up, unlikely, likely)
        return k1, k2

    def third_cumulant(self, k1: Array, k2: Array) -> Array:
        """``k3``, which for a binary unit is a polynomial in the first two."""
        third: Array = k2 * ((self.low + self.high) - 2.0 * k1)
        return third

    def fourth_cumulant(self, k1: Array, k2: Array, k3: Array) -> Array:
        """``k4``, likewise."""
        fourth: Array = k3 * ((self.low + self.high) - 2.0 * k1) - 2.0 * k2 * k2
        return fourth

    def mean(self, field: Array) -> FloatArray:
        """``E[x]`` in the field ``h``."""
        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        result: FloatArray = centre + half * np.tanh(half * field)
        return result

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``."""
        probability = 0.5 * (1.0 + np.tanh(0.5 * self.log_odds(field)))
        return np.where(rng.random(np.shape(field)) < probability, self.high, self.low)


SPIN = BinaryUnit("spin", -1.0, 1.0)
BIT = BinaryUnit("bit", 0.0, 1.0)

_UNITS = {unit.name: unit for unit in (SPIN, BIT)}


def as_unit(unit: str | BinaryUnit, argument: str) -> BinaryUnit:
    """The unit type called ``unit``; ``argument`` is the caller's name for it, for the error message."""
    if isinstance(unit, BinaryUnit):
        return unit
    try:
        return _UNITS[unit]
    except (KeyError, TypeError):
        known = ", ".join(repr(name) for name in _UNITS)
        raise ValueError(f"`{argument}` must be a unit type ({known}), got {unit!r}.") from None
