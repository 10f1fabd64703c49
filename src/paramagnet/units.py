"""Unit types: the kinds of visible and hidden variables.

A unit is a measure ``p0(x)`` on the line. In a field ``h`` and a curvature ``g`` it has the weight
``p0(x) exp(h x + g x**2)``; the theory needs the logarithm of the total weight and the cumulants
``k1..k4`` of ``x``, a machine needs the mean and a draw. All binary units are one class, as the pair
``(low, high)`` determines everything else. A Gaussian unit is determined by its variance.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import (
    as_positive,
    as_real,
    as_states,
    require_between,
    require_finite,
    require_levels,
)
from paramagnet._log_weights import subtract_log_weights
from paramagnet.relu_units import DReLUUnit, ReLUUnit, drelu, relu
from paramagnet.unit_base import Array, FloatArray, Response, Unit, require_no_parameters
from paramagnet.unit_categorical import CategoricalUnit, categorical, make_categorical
from paramagnet.unit_names import UNITS, as_unit, find_unit, register_unit, saved_name

__all__ = [
    "BIT", "GAUSSIAN", "SPIN", "UNITS", "Array", "BinaryUnit", "CategoricalUnit", "DReLUUnit", "FloatArray",
    "GaussianUnit", "ReLUUnit", "Response", "Unit", "as_binary", "as_unit", "categorical", "drelu",
    "find_unit", "gaussian", "register_unit", "relu", "saved_name",
]  # fmt: skip

_SMALLEST_SHARE = 1e-3  # smallest probability of a value for given means, so that all states are possible
_LARGEST_FIELD = 1e100  # largest number that a Gaussian unit may pass on to the other layer
_LARGEST_STATE = 1e5  # of a Gaussian unit, in standard deviations; up to it densities keep five decimals


@dataclass(frozen=True)
class BinaryUnit(Unit):
    """A variable that takes the value ``low`` or ``high``.

    The log-odds of ``high`` are ``(high - low) h + (high**2 - low**2) g``: for spins the curvature
    drops out, for bits it adds to the field. All functions act elementwise on arrays.
    """

    name: str
    low: float
    high: float

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        require_no_parameters(cls, "BinaryUnit")

    @property
    def levels(self) -> tuple[float, float]:
        """The two values, in the form that the kernels take."""
        return self.low, self.high

    @property
    def values(self) -> tuple[float, float]:
        """All values: ``low`` and ``high``."""
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

        A complex field is a real one with an infinitesimal change as its imaginary part; the imaginary parts
        of the results are then their changes.
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
        """``k4``, a polynomial in the first three cumulants."""
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

    @property
    def spread(self) -> float:
        """The standard deviation of the unit without field."""
        return 0.5 * (self.high - self.low)

    @property
    def response(self) -> Response:
        """The mean in closed form."""
        return _respond_between(self.low, self.high)

    def random_start(self, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """States drawn without any field, as starting states of chains."""
        return rng.choice(np.array(self.levels, np.float32), size=shape)

    def subtract_log_weights(
        self,
        energies: FloatArray,
        states: FloatArray,
        weights: FloatArray,
        bias: FloatArray,
        own_bias: FloatArray,
    ) -> None:
        """Subtract ``states.bias + sum_j log_trace(field_j)`` from ``energies``, one number per state."""
        subtract_log_weights(energies, states, weights, bias, own_bias, self.levels)

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields in which units have these means, or the nearest means with both values possible."""
        low, high = self.levels
        share = (mean - low) / (high - low)
        if np.any((share < 0.0) | (share > 1.0)):
            raise ValueError(
                f"`{argument}` must hold means between {low:g} and {high:g}, got {mean.min():g} to "
                f"{mean.max():g}."
            )
        share = np.clip(share, _SMALLEST_SHARE, 1.0 - _SMALLEST_SHARE)
        return self._field_of_odds(share / (1.0 - share))

    def bias_from(
        self, states: FloatArray, argument: str = "data", counts: FloatArray | None = None
    ) -> FloatArray:
        """Biases that give each unit on its own the mean of its column of ``states``, each of which counts
        so many times; half a count is added to each value, so that constant columns stay finite.
        """
        high = states == self.high
        if counts is not None:
            return self._field_of_odds((counts @ high + 0.5) / (counts @ ~high + 0.5))
        n_high = high.sum(axis=0)
        return self._field_of_odds((n_high + 0.5) / (states.shape[0] - n_high + 0.5))

    def _field_of_odds(self, odds: FloatArray) -> FloatArray:
        """The fields in which ``high`` has these odds."""
        fields: FloatArray = np.log(odds) / (self.high - self.low)
        return fields

    def affine_to(self, other: Unit) -> tuple[float, float]:
        """``a, s`` such that ``x = a y + s``, where ``y`` is the variable ``other``."""
        response, values = other.response, other.values
        if response is None or not response.saturates or values is None:  # not two values of equal weight
            return super().affine_to(other)
        low, high = values
        scale = (self.high - self.low) / (high - low)
        return scale, self.low - scale * low

    def is_value(self, array: Array) -> npt.NDArray[np.bool_]:
        """A mask of the elements of ``array`` that are one of the two values."""
        return np.isin(array, self.levels)

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages."""
        return f"the values of {self} units, {self.low:g} and {self.high:g}"

    def as_states(self, data: Any, argument: str, n_units: int) -> FloatArray:
        """``data`` as an array ``(n_points, n_units)`` of values of this unit, checked."""
        return as_states(data, argument, self.name, self.levels, n_units)

    def require_values(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers other than the two values."""
        require_levels(states, argument, self.name, self.levels)

    def require_means(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers other than the two values and means between them."""
        require_between(states, argument, self.name, self.levels)

    def fingerprint(self, points: FloatArray) -> bytes:
        """Bytes that identify these states, with one bit per number."""
        return np.packbits(points == self.high).tobytes()

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis, which is zero: both values have the weight 1."""
        return 0.0


@dataclass(frozen=True)
class GaussianUnit(Unit):
    """A real variable with ``p0(x) = N(0, variance)``.

    In field ``h`` and curvature ``g`` it is normal, too, with precision ``1/variance - 2 g``, as long as
    that is positive. Its mean is ``h`` over the precision, and cumulants beyond the second are zero.
    """

    variance: float = 1.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        require_no_parameters(cls, "GaussianUnit")

    def __post_init__(self) -> None:
        variance = float(as_positive(as_real(self.variance, "variance"), "variance"))
        object.__setattr__(self, "variance", variance)

    @property
    def name(self) -> str:
        """The name of the unit in `as_unit` and in files."""
        return "gaussian" if self.variance == 1.0 else f"gaussian({self.variance!r})"

    @property
    def symmetric(self) -> bool:
        """True: ``x -> -x`` maps the unit onto itself."""
        return True

    @property
    def tail(self) -> float:
        """The variance."""
        return self.variance

    @property
    def spread(self) -> float:
        """The standard deviation of the unit without field."""
        return float(np.sqrt(self.variance))

    @property
    def response(self) -> Response:
        """The mean in closed form: the field times the variance."""
        return Response(0.0, self.variance, saturates=False)

    def precision(self, curvature: Array | float = 0.0) -> Array:
        """``1/k2``; zero or negative if the unit does not exist at this curvature."""
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

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields in which units have these means."""
        result: FloatArray = mean / self.variance
        return result

    def sum_log_trace(self, fields: FloatArray) -> FloatArray:
        """``log_trace`` summed over the last axis."""
        squares = np.einsum("...j,...j->...", fields, fields)
        result: FloatArray = 0.5 * self.variance * squares
        return result

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``."""
        deviates = rng.standard_normal(np.shape(field))
        result: FloatArray = self.mean(field) + math.sqrt(self.variance) * deviates
        return result

    def affine_to(self, other: Unit) -> tuple[float, float]:
        """``a, s`` such that ``x = a y + s``, where ``y`` is a Gaussian variable, too; ``s = 0``."""
        if other.response is None or other.response.saturates:
            return super().affine_to(other)
        return float(np.sqrt(self.variance / other.tail)), 0.0

    def is_value(self, array: Array) -> npt.NDArray[np.bool_]:
        """A mask of the finite elements of ``array``."""
        return np.isfinite(array)

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages."""
        return "finite numbers"

    def require_values(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers whose squares are not finite."""
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
        """Raise an error if ``states`` hold numbers whose products with weights are not finite."""
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


@functools.cache  # called at every update
def _respond_between(low: float, high: float) -> Response:
    return Response(0.5 * (high + low), 0.5 * (high - low), saturates=True)


SPIN = BinaryUnit("spin", -1.0, 1.0)
BIT = BinaryUnit("bit", 0.0, 1.0)
GAUSSIAN = GaussianUnit()


def gaussian(variance: float = 1.0) -> GaussianUnit:
    """A Gaussian unit of any variance; `GAUSSIAN` is the one of variance 1.

    Parameters
    ----------
    variance : float, default 1.0
        Variance of the variable, positive.

    Returns
    -------
    GaussianUnit
        The unit.
    """
    return GaussianUnit(variance)


def _make_gaussian(text: str | None) -> Unit:
    return GAUSSIAN if text is None else GaussianUnit(float(text))


register_unit("spin", SPIN)
register_unit("bit", BIT)
register_unit("gaussian", _make_gaussian)
register_unit("relu", relu())
register_unit("drelu", drelu())
register_unit("categorical", make_categorical)


# Checks for functions that accept only some types


def as_binary(unit: str | Unit, argument: str, why: str = "") -> BinaryUnit:
    """The unit type called ``unit``, which must have two values; ``why`` is the end of the error message."""
    found = as_unit(unit, argument)
    if not isinstance(found, BinaryUnit):
        raise ValueError(
            f"`{argument}` must be 'spin' or 'bit', units of two values, got {found.name!r}{why or '.'}"
        )
    return found
