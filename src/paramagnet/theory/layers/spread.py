"""A layer whose biases differ from unit to unit, with averages over the distribution of the biases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.units import Array, FloatArray


class SpreadLayer(LayerAverages):
    """A layer whose units have different biases; each average of a layer is also averaged over the units.

    ``make`` makes a layer of arrays whose last axis runs over the biases.
    """

    def __init__(
        self,
        make: Callable[[FloatArray, Array, Array, Array | None], LayerAverages],
        rule: tuple[FloatArray, FloatArray],
        qhat: Array,
        selfhat: Array,
        gap: Array | None = None,
    ) -> None:
        super().__init__(qhat, selfhat, gap)
        points, self._weights = rule
        shape = (*np.shape(qhat), points.size)
        wide_q, wide_self, wide_gap = (
            np.broadcast_to(np.asarray(x)[..., None], shape) for x in (qhat, selfhat, self.gap)
        )
        biases = np.broadcast_to(points, shape)
        self._each = make(biases, wide_q, wide_self, wide_gap if self.by_variance else None)

    def _mean(self, values: Array) -> Array:
        mean: Array = values @ self._weights
        return mean

    @cached_property
    def magnetization(self) -> Array:
        """``M``."""
        return self._mean(self._each.magnetization)

    @cached_property
    def overlap(self) -> Array:
        """``q``."""
        return self._mean(self._each.overlap)

    @cached_property
    def self_overlap(self) -> Array:
        """``Q``."""
        return self._mean(self._each.self_overlap)

    @cached_property
    def variance(self) -> Array:
        """``V``."""
        return self._mean(self._each.variance)

    @cached_property
    def squared_variance(self) -> FloatArray:
        """``E[k2**2]``."""
        return self._mean(self._each.squared_variance)

    @cached_property
    def covariance(self) -> Array:
        """``U``."""
        return self._mean(self._each.covariance)

    @cached_property
    def covariance_slope(self) -> Array:
        """``E[k2**2 + k1 k3]``."""
        return self._mean(self._each.covariance_slope)

    @cached_property
    def mixed(self) -> Array:
        """``E[k3 + 2 k1 k2]``."""
        return self._mean(self._each.mixed)

    @cached_property
    def mixed_slope(self) -> Array:
        """``E[k4 + 2 k2**2 + 2 k1 k3]``."""
        return self._mean(self._each.mixed_slope)

    @cached_property
    def third(self) -> Array:
        """``E[k3]``."""
        return self._mean(self._each.third)

    @cached_property
    def fourth(self) -> Array:
        """``E[k4]``."""
        return self._mean(self._each.fourth)

    @cached_property
    def overlap_to_selfhat(self) -> Array:
        """``dq/dselfhat``."""
        return self._mean(self._each.overlap_to_selfhat)

    @cached_property
    def overlap_to_qhat(self) -> Array:
        """``W = dq/dqhat``."""
        return self._mean(self._each.overlap_to_qhat)

    @cached_property
    def log_trace(self) -> FloatArray:
        """The average log-trace."""
        return self._mean(self._each.log_trace)

    @property
    def quadrature_error(self) -> FloatArray:
        """The largest quadrature error of all units."""
        worst: FloatArray = self._each.quadrature_error.max(axis=-1)
        return worst
