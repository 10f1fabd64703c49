"""A layer of ReLU units in its random field.

With ``p0(x) = exp(-x**2/2)`` on ``x >= 0`` a unit in the field ``h = d + z sqrt(qhat)`` and the curvature
``g = (selfhat - qhat)/2`` is a normal variable of precision ``1 - 2 g`` that is cut off at zero. The layer
exists while ``selfhat - qhat < 1``; beyond it rounding would leave nothing of the precision, which is set to
1e-16, as for Gaussian units. Averages over ``z`` are trapezoid sums: the cumulants are analytic up to the
zeros of the normal distribution function, whose imaginary parts are 2.8 and more.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.units import Array, FloatArray, ReLUUnit, Unit

_REACH, _STEP, _STEP_OF_FIELD = 9.0, 0.45, 0.4
_MOST_NODES = 20_001


class HalfLineLayer(LayerAverages):
    """Averages of a layer of ReLU units, for real arguments."""

    def __init__(
        self,
        unit: ReLUUnit,
        bias: FloatArray,
        qhat: Array,
        selfhat: Array,
        gap: Array | None,
        coarseness: float,
    ) -> None:
        super().__init__(qhat, selfhat, gap)
        precision = 1.0 - np.asarray(self.gap)
        self._curvature = np.asarray(0.5 * (1.0 - np.maximum(precision, np.finfo(float).eps)))[..., None]
        root = np.sqrt(qhat)
        steepest = float(np.max(root / np.sqrt(1.0 - 2.0 * self._curvature[..., 0]), initial=0.0))
        step = coarseness * min(_STEP, _STEP_OF_FIELD / max(steepest, 1e-300))
        half = min(int(np.ceil(_REACH / step)), _MOST_NODES // 2)
        z = np.linspace(-_REACH, _REACH, 2 * half + 1)
        weights = np.exp(-0.5 * z * z)
        self._weights: FloatArray = weights / weights.sum()
        self._unit = unit
        self._field = np.asarray(bias)[..., None] + root[..., None] * z
        self._k = unit.four_cumulants(self._field, self._curvature)

    def _average(self, values: FloatArray) -> FloatArray:
        result: FloatArray = values @ self._weights
        return result

    @cached_property
    def magnetization(self) -> FloatArray:
        """``M = E[k1]``."""
        return self._average(self._k[0])

    @cached_property
    def overlap(self) -> FloatArray:
        """``q = E[k1**2]``."""
        return self._average(self._k[0] ** 2)

    @cached_property
    def self_overlap(self) -> FloatArray:
        """``Q = E[k2 + k1**2]``."""
        return self.variance + self.overlap

    @cached_property
    def variance(self) -> FloatArray:
        """``V = E[k2]``."""
        return self._average(self._k[1])

    @cached_property
    def squared_variance(self) -> FloatArray:
        """``E[k2**2]``."""
        return self._average(self._k[1] ** 2)

    @cached_property
    def covariance(self) -> FloatArray:
        """``U = E[k1 k2]``."""
        return self._average(self._k[0] * self._k[1])

    @cached_property
    def covariance_slope(self) -> FloatArray:
        """``E[k2**2 + k1 k3]``."""
        return self._average(self._k[1] ** 2 + self._k[0] * self._k[2])

    @cached_property
    def mixed(self) -> FloatArray:
        """``E[k3 + 2 k1 k2]``."""
        return self.third + 2.0 * self.covariance

    @cached_property
    def mixed_slope(self) -> FloatArray:
        """``E[k4 + 2 k2**2 + 2 k1 k3]``."""
        return self.fourth + 2.0 * self.covariance_slope

    @cached_property
    def third(self) -> FloatArray:
        """``E[k3]``."""
        return self._average(self._k[2])

    @cached_property
    def fourth(self) -> FloatArray:
        """``E[k4]``."""
        return self._average(self._k[3])

    @cached_property
    def overlap_to_selfhat(self) -> FloatArray:
        """``dq/dselfhat = E[k1 k3 + 2 k1**2 k2]``."""
        k1, k2, k3, _ = self._k
        return self._average(k1 * (k3 + 2.0 * k1 * k2))

    @cached_property
    def log_trace(self) -> FloatArray:
        """``E ln int p0(x) exp(h x + g x**2)``."""
        return self._average(self._unit.log_trace(self._field, self._curvature))

    @property
    def quadrature_error(self) -> FloatArray:
        """The rounding error of the sums; the error of the rule is smaller."""
        return np.full(np.shape(self.qhat), 1e-14)


class ReLUTheory(UnitTheory):
    """The theory of ReLU units, for the hidden layer only."""

    condenses = True

    def __init__(self, unit: Unit) -> None:
        assert isinstance(unit, ReLUUnit)
        super().__init__(unit)
        self._unit = unit
        self.strip = 2.0

    @classmethod
    def of(cls, unit: Unit, argument: str) -> ReLUTheory:
        """The theory of ReLU units; raises ValueError for a visible layer."""
        if argument == "visible":
            raise ValueError(
                "`visible` must be spin, bit, Gaussian or categorical units for the theory, got relu units. "
                "Exchange the layers, or take a scheme of fixed scale, such as `scheme='xavier'`."
            )
        return cls(unit)

    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> HalfLineLayer:
        """A layer of such units."""
        return HalfLineLayer(self._unit, bias, qhat, selfhat, gap, coarseness)

    def mean(self, field: Array, curvature: Array) -> Array:
        """``k1`` in the field ``h`` and the curvature ``g``."""
        return self._unit.cumulants(field, np.minimum(curvature, 0.5 - 1e-9))[0]
