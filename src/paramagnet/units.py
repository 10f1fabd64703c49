"""Unit types: what one visible or hidden variable can be.

A unit is a measure ``p0(x)`` on the line. In a field ``h`` and a curvature ``g`` it has the weight
``p0(x) exp(h x + g x**2)``; the theory needs the logarithm of the total weight and the cumulants
``k1..k4`` of ``x``, a machine needs the mean and a draw. Every binary unit is one class: the pair
``(low, high)`` is all there is to know. A Gaussian unit is known by its variance.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import (
    as_positive,
    as_real,
    as_states,
    as_table,
    require_between,
    require_finite,
    require_levels,
)

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
_LARGEST_FIELD = 1e100  # number that a Gaussian unit may pass on to the other layer
_LARGEST_STATE = 1e5  # of a Gaussian unit, in standard deviations: densities keep five decimals


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

    def as_states(self, data: Any, argument: str, n_units: int) -> FloatArray:
        """``data`` as an array ``(n_points, n_units)`` of values of this unit, checked."""
        return as_states(data, argument, self.name, self.levels, n_units)

    def require_values(self, states: FloatArray, argument: str) -> None:
        """An error if ``states`` hold anything but the two values."""
        require_levels(states, argument, self.name, self.levels)

    def require_means(self, states: FloatArray, argument: str) -> None:
        """An error if ``states`` hold anything but the two values and means between them."""
        require_between(states, argument, self.name, self.levels)

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis: both values weigh 1."""
        return 0.0


@dataclass(frozen=True)
class GaussianUnit:
    """A real variable with ``p0(x) = N(0, variance)``.

    In field ``h`` and curvature ``g`` it is normal too, with precision ``1/variance - 2 g``, as long as
    that is positive: mean ``h`` over the precision, no cumulants beyond the second.
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        variance = float(as_positive(as_real(self.variance, "variance"), "variance"))
        object.__setattr__(self, "variance", variance)

    @property
    def name(self) -> str:
        """What `as_unit` and files know the unit by."""
        return "gaussian" if self.variance == 1.0 else f"gaussian({self.variance!r})"

    def __str__(self) -> str:
        return self.name

    @property
    def symmetric(self) -> bool:
        """Whether ``x -> -x`` maps the unit onto itself: it does."""
        return True

    @property
    def levels(self) -> tuple[float, float]:
        """None: asking is an error, in words."""
        self._refuse()

    @property
    def low(self) -> float:
        """None: asking is an error, in words."""
        self._refuse()

    @property
    def high(self) -> float:
        """None: asking is an error, in words."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(f"This function serves spin and bit units only, got {self.name} units.")

    def precision(self, curvature: Array | float = 0.0) -> Array:
        """``1/k2``; not positive where the unit does not exist."""
        result: Array = np.asarray(1.0 / self.variance - 2.0 * curvature)
        return result

    def log_trace(self, field: Array, curvature: Array | float = 0.0) -> FloatArray:
        """``ln int p0(x) exp(h x + g x**2) dx``."""
        precision = self.precision(curvature)
        result: FloatArray = 0.5 * field * field / precision - 0.5 * np.log(self.variance * precision)
        return result

    def cumulants(self, field: Array, curvature: Array | float = 0.0) -> tuple[Array, Array]:
        """The cumulants ``k1`` and ``k2`` of ``x``; ``k3 = k4 = 0``."""
        k2 = np.broadcast_to(1.0 / self.precision(curvature), np.shape(field))
        return field * k2, k2

    def mean(self, field: Array) -> FloatArray:
        """``E[x]`` in the field ``h``."""
        result: FloatArray = self.variance * np.asarray(field)
        return result

    def base_field(self, means: FloatArray) -> FloatArray:
        """The fields in which units have these means."""
        result: FloatArray = means / self.variance
        return result

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``."""
        deviates = rng.standard_normal(np.shape(field))
        result: FloatArray = self.mean(field) + math.sqrt(self.variance) * deviates
        return result

    def as_states(self, data: Any, argument: str, n_units: int) -> FloatArray:
        """``data`` as an array ``(n_points, n_units)`` of numbers whose squares are finite, checked."""
        states = as_table(data, argument, n_units, finite=True)
        self.require_values(states, argument)
        return states

    def require_values(self, states: FloatArray, argument: str) -> None:
        """An error if ``states`` hold anything but numbers whose squares are finite."""
        require_finite(states, argument)
        largest = float(np.abs(states).max(initial=0.0))
        limit = _LARGEST_STATE * math.sqrt(self.variance)
        if largest > limit:
            raise ValueError(
                f"`{argument}` must hold numbers of at most {_LARGEST_STATE:g} standard deviations of {self} "
                f"units, {limit:g}, or densities lose their digits; found {largest:g}. Standardize the "
                "features."
            )

    def require_means(self, states: FloatArray, argument: str) -> None:
        """An error if ``states`` hold anything but numbers whose products with weights are finite."""
        require_finite(states, argument)
        largest = float(np.abs(states).max(initial=0.0))
        if largest > _LARGEST_FIELD:
            raise ValueError(
                f"`{argument}` must hold numbers of at most {_LARGEST_FIELD:g}, found {largest:g}. Scale "
                "them down."
            )

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis."""
        squares = np.einsum("...i,...i->...", states, states)
        constant = 0.5 * states.shape[-1] * math.log(2.0 * math.pi * self.variance)
        result: FloatArray = -0.5 * squares / self.variance - constant
        return result


Unit = BinaryUnit | GaussianUnit

SPIN = BinaryUnit("spin", -1.0, 1.0)
BIT = BinaryUnit("bit", 0.0, 1.0)
GAUSSIAN = GaussianUnit()

_UNITS: dict[str, Unit] = {unit.name: unit for unit in (SPIN, BIT, GAUSSIAN)}


def gaussian(variance: float = 1.0) -> GaussianUnit:
    """A Gaussian unit of any variance; `GAUSSIAN` is the one of variance 1."""
    return GaussianUnit(variance)


def as_unit(unit: str | Unit, argument: str) -> Unit:
    """The unit type called ``unit``; ``argument`` is the caller's name for it, for the error message.

    ``"gaussian(0.5)"`` is a Gaussian unit of variance 0.5.
    """
    if isinstance(unit, BinaryUnit | GaussianUnit):
        return unit
    known, reason = ", ".join(repr(name) for name in _UNITS), ""
    if isinstance(unit, str):
        if unit in _UNITS:
            return _UNITS[unit]
        if match := re.fullmatch(r"gaussian\(([^()]+)\)", unit):
            try:
                return GaussianUnit(float(match[1]))
            except ValueError as error:
                reason = f" {error}" if "variance" in str(error) else ""
    raise ValueError(f"`{argument}` must be a unit type ({known}), got {shown(unit)}.{reason}")


def as_binary(unit: str | Unit, argument: str) -> BinaryUnit:
    """The same, where only units of two values will do."""
    found = as_unit(unit, argument)
    if isinstance(found, GaussianUnit):
        raise ValueError(f"`{argument}` must be 'spin' or 'bit', units of two values, got {found.name!r}.")
    return found
