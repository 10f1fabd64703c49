"""A layer of binary units in its random field: the averages over ``z`` that the theory is built from.

In the replica-symmetric theory a unit of a layer feels the field ``h = d + z sqrt(qhat)`` and the
curvature ``g = (selfhat - qhat)/2``, where ``d`` is its bias and ``z ~ N(0, 1)`` represents the other
layer through the random weights. With ``k1..k4`` the unit's cumulants there, ``E`` the average over
``z``, and the layer's order parameters

    q = E[k1**2]                 overlap of two replicas          ([Y25] eqn:saddle_Qv, eqn:saddle_Qh)
    Q = E[k2 + k1**2]            self-overlap E<x**2>             (1 for spins; the mean for bits)
    M = E[k1]                    magnetization

the derivatives follow from partial integration ([Y25] eqn:partial_integration) for any unit. For binary
units they are the paper's ``V = E[k2]``, ``U = E[k1 k2]`` and ``W = dq/dqhat`` ([Y25] appendix B,
eqn:I_{l.k}-0 to eqn:I_{l.k}-2).

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.theory.quadrature import even_gaussian_rule, gaussian_rule
from paramagnet.units import Array, BinaryUnit, FloatArray

_SMALL_BIAS = 5e-6
_STEEP = 1.0  # sqrt(qhat) from which E[k2**2 + k1 k3] is computed as E[z k1 k2]/sqrt(qhat)


class Layer(LayerAverages):
    """Averages of a layer of binary units, each computed when first used; arrays of any common shape.

    ``qhat`` and ``selfhat`` may be complex: the imaginary part then carries an infinitesimal change
    through all averages. ``gap`` is ``selfhat - qhat``, for a caller who knows it to more digits than the
    difference has; derivatives are then those of ``(q, V)``, ``V = Q - q``, in ``(qhat, gap)`` in place of
    ``(q, Q)`` in ``(qhat, selfhat)``. ``coarseness`` above 1 trades the accuracy of the averages for speed.
    """

    def __init__(
        self,
        unit: BinaryUnit,
        bias: FloatArray,
        qhat: Array,
        selfhat: Array,
        gap: Array | None = None,
        coarseness: float = 1.0,
    ) -> None:
        super().__init__(qhat, selfhat, gap)
        self.unit, self.bias = unit, bias
        self.root = np.sqrt(qhat)
        self.even = unit.symmetric and not np.count_nonzero(bias)  # ten times as fast as bias.any()
        curvature = 0.5 * self.gap
        slope = (unit.high - unit.low) * self.root.real
        if self.even:
            self.rule = even_gaussian_rule(slope, coarseness=coarseness)
            self.field = self.root[..., None] * self.rule.nodes
        else:
            self.rule = gaussian_rule(unit.log_odds(bias, curvature.real), slope, coarseness=coarseness)
            self.field = self.rule.fields(bias, self.root)
        self.curvature = curvature[..., None]
        self.k1, self.k2 = unit.cumulants(self.field, self.curvature)

    @cached_property
    def k3(self) -> Array:
        """The third cumulant at the nodes."""
        return self.unit.third_cumulant(self.k1, self.k2)

    @cached_property
    def k4(self) -> Array:
        """The fourth cumulant at the nodes."""
        return self.unit.fourth_cumulant(self.k1, self.k2, self.k3)

    @cached_property
    def magnetization(self) -> Array:
        """``M = E[k1]``."""
        if self.even:
            return np.zeros(self.qhat.shape, self.qhat.dtype)
        return self._odd(self.rule.average(self.k1), lambda: self.variance)

    def _odd(self, average: Array, slope: Callable[[], Array]) -> Array:
        """An average that is odd in the bias of a symmetric unit.

        Near zero bias the two halves of the sum cancel, and bias times slope is used instead, which differs
        from the average by a relative ``bias**2``.
        """
        if not self.unit.symmetric:
            return average
        small = np.abs(self.bias) < _SMALL_BIAS
        if not np.count_nonzero(small):
            return average
        return np.where(small, self.bias * slope(), average)

    @cached_property
    def overlap(self) -> Array:
        """``q = E[k1**2]``."""
        return self.rule.average(self.k1 * self.k1)

    @cached_property
    def self_overlap(self) -> Array:
        """``Q = E[k2 + k1**2]``."""
        if self.unit.symmetric:
            return np.full_like(self.qhat, self.unit.high**2)
        if self.unit.low == 0.0:
            return self.unit.high * self.magnetization
        return self.variance + self.overlap

    @cached_property
    def variance(self) -> Array:
        """``V = E[k2]``, which is ``dM/dd``."""
        return self.rule.average(self.k2)

    @cached_property
    def squared_variance(self) -> FloatArray:
        """``E[k2**2]``, a factor in `stability_number`."""
        return self.rule.average(self.k2 * self.k2).real

    @cached_property
    def _k1_k2(self) -> Array:
        return self.k1 * self.k2

    @cached_property
    def covariance(self) -> Array:
        """``U = E[k1 k2]``, half of ``dq/dd``."""
        if self.even:
            return np.zeros(self.qhat.shape, self.qhat.dtype)
        return self._odd(self.rule.average(self._k1_k2), lambda: self.covariance_slope)

    @cached_property
    def covariance_slope(self) -> Array:
        """``E[k2**2 + k1 k3]``, the derivative of ``U`` in the bias.

        The two terms cancel where ``qhat`` is large; ``E[z k1 k2]/sqrt(qhat)`` is the same by partial
        integration, without a cancellation.
        """
        steep = self.root.real > _STEEP
        n_steep = np.count_nonzero(steep)
        if n_steep and n_steep == steep.size:
            return self.rule.average(self.rule.nodes * self._k1_k2) / self.root
        plain = self.rule.average(self.k2 * self.k2 + self.k1 * self.k3)
        if not n_steep:
            return plain
        by_parts = self.rule.average(self.rule.nodes * self._k1_k2) / np.where(steep, self.root, 1.0)
        return np.where(steep, by_parts, plain)

    @cached_property
    def mixed(self) -> Array:
        """``E[k3 + 2 k1 k2]``: ``dQ/dd``, and twice ``dM/dselfhat``."""
        if self.unit.symmetric:
            return np.zeros(self.qhat.shape, self.qhat.dtype)
        return self.rule.average(self.k3 + 2.0 * self._k1_k2)

    @cached_property
    def mixed_slope(self) -> Array:
        """``E[k4 + 2 k2**2 + 2 k1 k3]``, the derivative of `mixed` in the bias."""
        if self.unit.symmetric:
            return np.zeros(self.qhat.shape, self.qhat.dtype)
        return self.rule.average(self.k4 + 2.0 * (self.k2 * self.k2 + self.k1 * self.k3))

    @cached_property
    def overlap_to_selfhat(self) -> Array:
        """``dq/dselfhat = E[k1 k3 + 2 k1**2 k2]``, which is also ``-dQ/dqhat``."""
        if self.unit.symmetric:
            return np.zeros(self.qhat.shape, self.qhat.dtype)
        return self.rule.average(self.k1 * (self.k3 + 2.0 * self._k1_k2))

    @cached_property
    def overlap_to_qhat(self) -> Array:
        """``W = dq/dqhat = E[k2**2 - 2 k1**2 k2]``."""
        if self.unit.symmetric:
            return self.covariance_slope
        return self.covariance_slope - self.overlap_to_selfhat

    @cached_property
    def third(self) -> Array:
        """``E[k3]``, which is ``dV/dd``; ``-2 U`` where ``Q = V + q`` is fixed."""
        if self.unit.symmetric:
            return -2.0 * self.covariance
        return self.rule.average(self.k3)

    @cached_property
    def fourth(self) -> Array:
        """``E[k4]``: the derivative of `third` in the bias, and twice ``dV/dqhat`` at fixed gap."""
        if self.unit.symmetric:
            return -2.0 * self.covariance_slope
        return self.rule.average(self.k4)

    @cached_property
    def log_trace(self) -> FloatArray:
        """``E ln int p0(x) exp(h x + g x**2)``."""
        return self.rule.average(self.unit.log_trace(self.field, self.curvature))

    @property
    def quadrature_error(self) -> FloatArray:
        """Estimated relative error of the overlap by the Gaussian rule."""
        return self.rule.error((self.k1 * self.k1).real)


class BinaryTheory(UnitTheory):
    """The theory of units with two values."""

    def __init__(self, unit: BinaryUnit) -> None:
        super().__init__(unit)
        self._unit = unit
        self.fixed_self_overlap = unit.high**2 if unit.symmetric else None
        self.transition_known = unit.symmetric
        self.largest_square = max(unit.low**2, unit.high**2)
        self.largest_variance = 0.25 * (unit.high - unit.low) ** 2
        self.strip = np.pi / (unit.high - unit.low)

    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> Layer:
        """A layer of such units."""
        return Layer(self._unit, bias, qhat, selfhat, gap, coarseness)

    def mean(self, field: Array, curvature: Array) -> Array:
        """``k1`` in the field ``h`` and the curvature ``g``."""
        return self._unit.cumulants(field, curvature)[0]
