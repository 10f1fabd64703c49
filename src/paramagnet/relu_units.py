"""Units with a potential that is quadratic on each half of the line: ReLU and dReLU.

A ReLU unit has ``p0(x) = exp(-x**2/2)`` for ``x >= 0``; in the field ``h`` it is a normal variable of mean
``h`` and variance 1 that is cut off at zero. In the usual form of its potential, ``gamma x**2/2 + theta x``,
``gamma`` is 1, which fixes the scale of the weights, and ``theta`` is minus the bias.

A dReLU unit (double ReLU; Tubiana, Cocco and Monasson, eLife 8 (2019) e39397) has such a potential on either
side of zero. Of its four numbers one is the bias and one is fixed with the scale of the weights. The other
two are learned, the asymmetries ``d`` of theta and ``g`` of gamma:

    ln p0(x) = -gamma x**2/2 - d |x|         1/gamma = 1 + tanh(g) for x > 0, 1 - tanh(g) for x < 0

so both curvatures are positive whatever ``g`` is, and the mean of the two variances is 1. Both numbers are
zero at the start, where the unit is a Gaussian one of variance 1, but for the constant in ``p0``. With ``d >
0`` small fields have little effect, with ``d < 0`` the unit has two maxima, and for ``g -> inf`` it is a ReLU
unit on a scale that is ``sqrt(2)`` times larger.

Neither measure is normalized: without field the total weight is ``sqrt(pi/2)``, and ``sqrt(2 pi)`` for
dReLU at the start. Sums over a half-line are written with ``erfcx`` and ``log_ndtr``, so that they neither
overflow nor lose digits in strong fields of either sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from paramagnet._checks import require_finite
from paramagnet.half_line import draw_half, half_cumulants, half_moments, half_second_moment, log_half_trace
from paramagnet.unit_base import Array, FloatArray, Unit

_LARGEST_STATE = 1e5  # up to it densities keep five decimals
_LARGEST_FIELD = 1e100  # largest number that a unit may pass on to the other layer
_SMALLEST_MEAN = 1e-3  # of ReLU units: smaller means would need fields beyond -1000
_LARGEST_ASYMMETRY = 30.0  # of gamma: beyond, one variance is 2 to the last bit, the other below 1e-25

ZeroOne = npt.NDArray[np.bool_]


def _require_moderate(states: FloatArray, argument: str, limit: float) -> None:
    require_finite(states, argument)
    largest = float(np.abs(states).max(initial=0.0))
    if largest > limit:
        raise ValueError(
            f"`{argument}` must hold numbers of at most {limit:g}, found {largest:g}. Scale them down."
        )


@dataclass(frozen=True)
class ReLUUnit(Unit):
    """A variable ``x >= 0`` with ``p0(x) = exp(-x**2/2)``."""

    name: ClassVar[str] = "relu"
    symmetric: ClassVar[bool] = False
    tail: ClassVar[float] = 1.0

    @property
    def spread(self) -> float:
        """The standard deviation of the unit without field, ``sqrt(1 - 2/pi)``."""
        return math.sqrt(1.0 - 2.0 / math.pi)

    def log_trace(self, field: Array, curvature: Array | float = 0.0) -> FloatArray:
        """``ln int_0^inf exp(h x + g x**2 - x**2/2) dx``, for curvatures ``g`` below 1/2."""
        scale = _scale(1.0, curvature)
        result: FloatArray = log_half_trace(field * scale) + np.log(scale)
        return result

    def cumulants(self, field: Array, curvature: Array | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """The cumulants ``k1`` and ``k2`` of ``x``, both to full relative accuracy."""
        scale = _scale(1.0, curvature)
        k1, k2 = half_moments(field * scale)
        return scale * k1, scale * scale * k2

    def four_cumulants(
        self, field: Array, curvature: Array | float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The cumulants ``k1`` to ``k4`` of ``x``."""
        scale = _scale(1.0, curvature)
        k1, k2, k3, k4 = half_cumulants(field * scale)
        return scale * k1, scale**2 * k2, scale**3 * k3, scale**4 * k4

    def mean(self, field: Array) -> FloatArray:
        """``E[x]`` in the field ``h``."""
        return half_moments(np.asarray(field))[0]

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``."""
        return draw_half(np.asarray(field), 1.0 - rng.random(np.shape(field)))

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields in which units have these means; means below 0.001 count as 0.001."""
        if np.any(mean < 0.0):
            raise ValueError(
                f"`{argument}` must hold means that are not negative for relu units, got {mean.min():g}."
            )
        wanted = np.maximum(mean, _SMALLEST_MEAN)
        field = wanted.astype(np.float64)
        for _ in range(100):  # Newton's steps from the right of a root of a convex function: no overshooting
            k1, k2 = half_moments(field)
            step = (k1 - wanted) / k2
            field = field - step
            if np.all(np.abs(step) <= 1e-14 * (1.0 + np.abs(field))):
                break
        return field

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis."""
        squares: FloatArray = np.einsum("...i,...i->...", states, states)
        return -0.5 * squares

    def is_value(self, array: Array) -> ZeroOne:
        """A mask of the finite elements of ``array`` that are not negative."""
        return np.isfinite(array) & (array >= 0.0)

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages."""
        return "finite numbers that are not negative (relu units)"

    def require_values(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold negative numbers, or squares that are not finite."""
        super().require_values(states, argument)
        _require_moderate(states, argument, _LARGEST_STATE)

    def require_means(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers that cannot be means of this unit."""
        super().require_values(states, argument)
        _require_moderate(states, argument, _LARGEST_FIELD)


@dataclass(frozen=True)
class DReLUUnit(Unit):
    """A real variable with another quadratic potential on each side of zero, and two learned numbers."""

    name: ClassVar[str] = "drelu"
    symmetric: ClassVar[bool] = False
    parameters: ClassVar[tuple[str, ...]] = ("theta_asymmetry", "gamma_asymmetry")
    numbers: ClassVar[Mapping[str, FloatArray]] = {
        "theta_asymmetry": np.zeros(()),
        "gamma_asymmetry": np.zeros(()),
    }  # of every unit; `at` replaces them

    @property
    def tail(self) -> float:
        """The larger one of the two variances; of a type without numbers, its limit 2."""
        if self.numbers is DReLUUnit.numbers:
            return 2.0
        return float(max(np.max(variance) for variance in self.variances))

    @property
    def variances(self) -> tuple[FloatArray, FloatArray]:
        """``1/gamma`` of every unit for positive and for negative values; their sum is 2."""
        g = np.clip(self.numbers["gamma_asymmetry"], -_LARGEST_ASYMMETRY, _LARGEST_ASYMMETRY)
        return 2.0 / (1.0 + np.exp(-2.0 * g)), 2.0 / (1.0 + np.exp(2.0 * g))

    def _halves(
        self, field: Array, curvature: Array | float = 0.0
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """For positive and for negative values: the standard deviation without the cut at zero, and the mean
        without the cut, in standard deviations and counted away from zero.
        """
        d = self.numbers["theta_asymmetry"]
        up, down = (_scale(variance, curvature) for variance in self.variances)
        return (up, (field - d) * up), (down, (-field - d) * down)

    def _traces(self, field: Array, curvature: Array | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """The logarithms of the weights of both halves."""
        (up, a), (down, b) = self._halves(field, curvature)
        return np.log(up) + log_half_trace(a), np.log(down) + log_half_trace(b)

    def log_trace(self, field: Array, curvature: Array | float = 0.0) -> FloatArray:
        """``ln int p0(x) exp(h x + g x**2) dx``, for curvatures ``g`` below half of both gammas."""
        result: FloatArray = np.logaddexp(*self._traces(field, curvature))
        return result

    def shares(self, field: Array, curvature: Array | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """The probabilities of positive and of negative values, both to full relative accuracy."""
        up, down = self._traces(field, curvature)
        total = np.logaddexp(up, down)
        return np.exp(up - total), np.exp(down - total)

    def cumulants(self, field: Array, curvature: Array | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """The cumulants ``k1`` and ``k2`` of ``x``."""
        (up, a), (down, b) = self._halves(field, curvature)
        p, q = self.shares(field, curvature)
        (m, s), (n, t) = half_moments(a), half_moments(b)
        apart = up * m + down * n  # the distance of the means of the halves
        k2: FloatArray = p * up * up * s + q * down * down * t + p * q * apart * apart
        return p * up * m - q * down * n, k2

    def four_cumulants(
        self, field: Array, curvature: Array | float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The cumulants ``k1`` to ``k4`` of ``x``."""
        (up, a), (down, b) = self._halves(field, curvature)
        p, q = self.shares(field, curvature)
        m1, m2, m3, m4 = half_cumulants(a)
        n1, n2, n3, n4 = half_cumulants(b)
        mean = p * up * m1 - q * down * n1
        moments = np.zeros((3, *np.shape(mean)))  # the second to the fourth around the mean
        for share, scale, centre, (c2, c3, c4) in (
            (p, up, up * m1 - mean, (m2, m3, m4)),
            (q, -down, -down * n1 - mean, (n2, n3, n4)),
        ):
            c2, c3, c4 = scale**2 * c2, scale**3 * c3, scale**4 * c4
            moments[0] += share * (c2 + centre**2)
            moments[1] += share * (c3 + 3.0 * centre * c2 + centre**3)
            moments[2] += share * (c4 + 3.0 * c2 * c2 + 4.0 * centre * c3 + 6.0 * centre**2 * c2 + centre**4)
        second, third, fourth = moments
        return mean, second, third, fourth - 3.0 * second * second

    def mean(self, field: Array) -> FloatArray:
        """``E[x]`` in the field ``h``."""
        return self.cumulants(np.asarray(field))[0]

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``: first the side, then the place on it."""
        field = np.asarray(field)
        (up, a), (down, b) = self._halves(field)
        positive = rng.random(np.shape(field)) < self.shares(field)[0]
        distance = draw_half(np.where(positive, a, b), 1.0 - rng.random(np.shape(field)))
        result: FloatArray = np.where(positive, up * distance, -down * distance)
        return result

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields in which units have these means, by bisection."""
        _require_moderate(mean, argument, _LARGEST_STATE)
        reach = 1.0 + np.abs(mean) + np.abs(self.numbers["theta_asymmetry"])
        low, high = -reach, reach
        for _ in range(200):
            outside = self.mean(low) > mean, self.mean(high) < mean
            if not (outside[0].any() or outside[1].any()):
                break
            low, high = np.where(outside[0], 2.0 * low, low), np.where(outside[1], 2.0 * high, high)
        for _ in range(200):
            middle = 0.5 * (low + high)
            above = self.mean(middle) > mean
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        result: FloatArray = 0.5 * (low + high)
        return result

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis."""
        up, down = self.variances
        squares = states * states / np.where(states > 0.0, up, down)
        terms = 0.5 * squares + self.numbers["theta_asymmetry"] * np.abs(states)
        result: FloatArray = -np.sum(terms, axis=-1)
        return result

    def statistics(self, states: FloatArray) -> dict[str, FloatArray]:
        """``d ln p0(x)/d parameter`` at every state, by the name of the parameter."""
        up, down = self.variances
        slope = np.where(states > 0.0, down / up, -up / down)  # -d gamma/d g
        return {"theta_asymmetry": -np.abs(states), "gamma_asymmetry": 0.5 * slope * states * states}

    def mean_statistics(self, field: FloatArray) -> dict[str, FloatArray]:
        """The means of `statistics` in every field, ``d log_trace/d parameter``."""
        (up, a), (down, b) = self._halves(field)
        p, q = self.shares(field)
        size = p * up * half_moments(a)[0] + q * down * half_moments(b)[0]
        squares = p * down * down * half_second_moment(a) - q * up * up * half_second_moment(b)
        return {"theta_asymmetry": -size, "gamma_asymmetry": 0.5 * squares}

    def is_value(self, array: Array) -> ZeroOne:
        """A mask of the finite elements of ``array``."""
        return np.isfinite(array)

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages."""
        return "finite numbers"

    def require_values(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers whose squares are not finite."""
        _require_moderate(states, argument, _LARGEST_STATE)

    def require_means(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers whose products with weights are not finite."""
        _require_moderate(states, argument, _LARGEST_FIELD)


def _scale(variance: Array | float, curvature: Array | float) -> FloatArray:
    """The standard deviation of a half-line's normal distribution, were it not cut off."""
    scale: FloatArray = 1.0 / np.sqrt(1.0 / np.asarray(variance) - 2.0 * np.asarray(curvature))
    return scale


RELU = ReLUUnit()
DRELU = DReLUUnit()


def relu() -> ReLUUnit:
    """ReLU units: real numbers ``x >= 0`` with the potential ``x**2/2 - field x``.

    Returns
    -------
    ReLUUnit
        The unit.
    """
    return RELU


def drelu() -> DReLUUnit:
    """Double ReLU units: real numbers with two learned numbers per unit besides the bias.

    The potential is ``gamma x**2/2 + theta_asymmetry |x| - field x``, where ``1/gamma`` is ``1 +
    tanh(gamma_asymmetry)`` for positive and ``1 - tanh(gamma_asymmetry)`` for negative ``x``.

    Returns
    -------
    DReLUUnit
        The unit; its learned numbers are in `RBM.hidden_parameters`.
    """
    return DRELU
