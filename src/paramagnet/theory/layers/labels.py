"""A layer of categorical (Potts) units in its random field.

A state is a vector: the indicator of the state less ``1/q``. The products of two states of a unit are then
``1 - 1/q`` if they are equal and ``-1/q`` if not, in place of ``x x'``, so that

    q = E sum_a p_a**2 - 1/q,      Q = 1 - 1/q,      E ||Cov||**2 in place of E[k2**2],

with ``p = softmax(b + z sqrt(qhat))`` and one normal variable ``z`` per state. Subtracting ``1/q`` is the
zero-sum gauge: weights whose mean over the states of a unit is zero. For two states the layer is one of
spins, with ``x x'/2`` for ``x x'``. The self-overlap is fixed, and a layer without biases is unchanged by a
permutation of the states; so formulas for spins hold, and where they differentiate in the bias of a spin,
the derivative here is that of the overlap in ``qhat``, which is the same for spins.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from paramagnet.theory.layers.softmax import SoftmaxAverages, average_biased, average_even
from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.units import Array, CategoricalUnit, FloatArray, Unit

Sites = tuple[FloatArray, FloatArray]  # biases (n_sites, q), and weights of the sites


class LabelLayer(LayerAverages):
    """Averages of a layer of categorical units; ``qhat`` may be complex, as in `Layer`."""

    def __init__(
        self, q: int, sites: Sites | None, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> None:
        super().__init__(qhat, selfhat, gap)
        self._q = q
        fields = np.ravel(qhat).real.tolist()
        if sites is None:
            each = [average_even(q, x, coarseness) for x in fields]
        else:
            each = [average_biased(*sites, x, coarseness) for x in fields]
        shape = (len(SoftmaxAverages._fields), *np.shape(qhat))
        rows: FloatArray = np.array(each, dtype=np.float64).reshape(-1, shape[0]).T.reshape(shape)
        self._overlap, self._slope, self._bend, self._squared, self._trace = rows

    def _moved(self, value: Array, slope: Array) -> Array:
        """A value with its change, where the field is given with an infinitesimal one."""
        if not np.iscomplexobj(self.qhat):
            return value
        return value + 1j * self.qhat.imag * slope

    @cached_property
    def magnetization(self) -> Array:
        """Zero: the sum of all elements of a state."""
        return np.zeros_like(self.qhat)

    @cached_property
    def overlap(self) -> Array:
        """``q = E sum_a p_a**2 - 1/q``."""
        return self._moved(self._overlap, self._slope)

    @cached_property
    def self_overlap(self) -> Array:
        """``Q = 1 - 1/q``."""
        return np.full_like(self.qhat, 1.0 - 1.0 / self._q)

    @cached_property
    def variance(self) -> Array:
        """``V = Q - q``, the trace of the covariance."""
        return self.self_overlap - self.overlap

    @cached_property
    def squared_variance(self) -> FloatArray:
        """``E ||Cov||**2``."""
        squared: FloatArray = self._squared
        return squared

    @cached_property
    def covariance(self) -> Array:
        """Zero: no bias is common to all states."""
        return np.zeros_like(self.qhat)

    @cached_property
    def covariance_slope(self) -> Array:
        """``dq/dqhat``."""
        return self._moved(self._slope, self._bend)

    @cached_property
    def mixed(self) -> Array:
        """``dQ/dd``, which is zero."""
        return np.zeros_like(self.qhat)

    @cached_property
    def mixed_slope(self) -> Array:
        """Zero, as ``Q`` is fixed."""
        return np.zeros_like(self.qhat)

    @cached_property
    def third(self) -> Array:
        """Zero, as the covariance is."""
        return np.zeros_like(self.qhat)

    @cached_property
    def fourth(self) -> Array:
        """``2 dV/dqhat``."""
        return -2.0 * self.covariance_slope

    @cached_property
    def overlap_to_selfhat(self) -> Array:
        """Zero: the curvature multiplies a constant."""
        return np.zeros_like(self.qhat)

    @cached_property
    def log_trace(self) -> FloatArray:
        """``E ln sum_a exp(x_a - mean x)`` and the constant of the curvature."""
        trace: FloatArray = self._trace + 0.5 * self.gap.real * (1.0 - 1.0 / self._q)
        return trace

    @property
    def quadrature_error(self) -> FloatArray:
        """The rounding error of the sums, relative to the self-overlap; the error of the rule is smaller."""
        return np.full(np.shape(self.qhat), 1e-15)


class CategoricalTheory(UnitTheory):
    """The theory of categorical units."""

    label, transition_known = True, True

    def __init__(self, unit: Unit) -> None:
        assert isinstance(unit, CategoricalUnit)
        super().__init__(unit)
        self.symmetric = True  # under permutations of the states
        self.n_states = unit.q
        self.fixed_self_overlap = self.largest_square = self.largest_variance = 1.0 - 1.0 / unit.q
        self.free_variance = self.fixed_self_overlap
        self.free_square = (unit.q - 1.0) / unit.q**2

    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> LabelLayer:
        """A layer of such units without biases."""
        return LabelLayer(self.n_states, None, qhat, selfhat, gap, coarseness)

    def site_layer(
        self, sites: Sites, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> LabelLayer:
        """A layer of such units with biases of every site."""
        return LabelLayer(self.n_states, sites, qhat, selfhat, gap, coarseness)

    def mean(self, field: Array, curvature: Array) -> Array:
        """Zero: states without bias have equal probabilities."""
        return np.zeros_like(field)
