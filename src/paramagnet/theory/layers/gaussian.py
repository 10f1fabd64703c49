"""A layer of Gaussian units: every average in closed form.

With ``p0 = N(0, s)`` a unit in the field ``h = d + z sqrt(qhat)`` and the curvature ``g = (selfhat -
qhat)/2`` is normal with variance ``T = 1/(1/s - selfhat + qhat)`` and mean ``T h``, so that ``k1 = T h``,
``k2 = T``, ``k3 = k4 = 0``, and all averages follow from ``E[h**2] = d**2 + qhat``. The layer exists while
``1/s > selfhat - qhat``; if rounding leaves no digit of the difference, ``T`` is set to 1e16 times ``s``, and
the saddle-point search ends with a large residual.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.units import GAUSSIAN, Array, FloatArray, GaussianUnit

LARGEST_RATIO_GAUSSIAN = 1e12  # of the layer sizes; beyond it rounding leaves no digit of a unit's precision


class GaussianLayer(LayerAverages):
    """Averages of a layer of Gaussian units; ``qhat`` and ``selfhat`` may be complex, as in `Layer`."""

    def __init__(
        self, unit: GaussianUnit, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None = None
    ) -> None:
        super().__init__(qhat, selfhat, gap)
        self.bias = bias
        self._prior = unit.variance
        precision = 1.0 / unit.variance - self.gap
        lowest = np.finfo(float).eps / unit.variance
        self._width: Array = np.asarray(1.0 / np.where(precision.real > lowest, precision, lowest))

    @cached_property
    def _square(self) -> Array:
        """``E[h**2]``."""
        square: Array = self.bias * self.bias + self.qhat
        return square

    @cached_property
    def magnetization(self) -> Array:
        """``M = T d``."""
        return self._width * self.bias

    @cached_property
    def overlap(self) -> Array:
        """``q = T**2 (d**2 + qhat)``."""
        return self._width * self._width * self._square

    @cached_property
    def self_overlap(self) -> Array:
        """``Q = T + q``."""
        return self._width + self.overlap

    @cached_property
    def variance(self) -> Array:
        """``V = T``."""
        return self._width

    @cached_property
    def squared_variance(self) -> FloatArray:
        """``E[k2**2] = T**2``."""
        return (self._width * self._width).real

    @cached_property
    def covariance(self) -> Array:
        """``U = T**2 d``."""
        return self._width * self._width * self.bias

    @cached_property
    def covariance_slope(self) -> Array:
        """``T**2``."""
        return self._width * self._width

    @cached_property
    def mixed(self) -> Array:
        """``E[k3 + 2 k1 k2] = 2 T**2 d``."""
        return 2.0 * self.covariance

    @cached_property
    def mixed_slope(self) -> Array:
        """``2 T**2``."""
        return 2.0 * self.covariance_slope

    @cached_property
    def third(self) -> Array:
        """``E[k3] = 0``."""
        return np.zeros_like(self._width)

    @cached_property
    def fourth(self) -> Array:
        """``E[k4] = 0``."""
        return np.zeros_like(self._width)

    @cached_property
    def overlap_to_selfhat(self) -> Array:
        """``dq/dselfhat = 2 T**3 (d**2 + qhat)``."""
        return 2.0 * self._width * self.overlap

    @cached_property
    def log_trace(self) -> FloatArray:
        """``(T E[h**2] + ln(T/s))/2``."""
        trace: FloatArray = 0.5 * (self._width * self._square + np.log(self._width / self._prior))
        return trace

    @property
    def quadrature_error(self) -> FloatArray:
        """The rounding error of floats; there is no quadrature in a closed form."""
        return np.full(np.shape(self.qhat), np.finfo(float).eps)


class GaussianTheory(UnitTheory):
    """The theory of Gaussian units, whose variance is both `tail` and `stretch`."""

    quadratic, transition_known = True, True
    largest_ratio = LARGEST_RATIO_GAUSSIAN

    def __init__(self, unit: GaussianUnit) -> None:
        super().__init__(unit)
        self._unit = unit
        self.stretch = unit.variance

    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> GaussianLayer:
        """A layer of such units, in closed form; ``coarseness`` has no effect."""
        return GaussianLayer(self._unit, bias, qhat, selfhat, gap)

    def mean(self, field: Array, curvature: Array) -> Array:
        """``k1`` in the field ``h`` and the curvature ``g``."""
        return self._unit.cumulants(field, curvature)[0]

    def standard(self) -> UnitTheory:
        """Gaussian units of variance 1."""
        return GaussianTheory(GAUSSIAN)

    def scan_from(self, first: float, bias: FloatArray) -> float:
        """The first ``beta`` of a scan. The mean of a standard Gaussian unit is its bias, and the ``beta`` of
        the maximum falls as the inverse of the bias.
        """
        return min(first, 1.0 / max(float(np.abs(bias).max()), 1.0))
