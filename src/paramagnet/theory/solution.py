"""A saddle point: one trip around both layers, which the equations ask to leave the order parameters
unchanged, and the free energy there ([Y25] section 3.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.units import Array, FloatArray

TOLERANCE = 1e-13  # what the relative violation of the equations stays below
NOTHING = 1e-290  # order parameters below this are zero: floats end at 1e-308
Matrix = tuple[tuple[Array, Array], tuple[Array, Array]]


def around(
    ensemble: Ensemble, q: Array, self_overlap: Array, variance: Array | None = None
) -> tuple[LayerAverages, LayerAverages]:
    """From the visible layer's order parameters to the hidden layer and back to the visible one.

    ``variance`` is ``Q - q``, for a caller who knows it to more digits than the difference has: couplings may
    be so large that these digits count. The hidden layer's variance, far below the square of the mean in
    Gaussian units of a large bias, is then passed on by itself too.
    """
    # [Y25] eqn:saddle_Q-hat, with self-overlaps
    coupling_v, coupling_h = ensemble.coupling_v, ensemble.coupling_h
    gap = None if variance is None else coupling_h * variance
    hidden = ensemble.hidden_layer(coupling_h * q, coupling_h * self_overlap, gap)
    gap = None if variance is None else coupling_v * hidden.variance
    visible = ensemble.visible_layer(coupling_v * hidden.overlap, coupling_v * hidden.self_overlap, gap)
    return visible, hidden


def mismatch(visible: LayerAverages, q: Array, self_overlap: Array) -> FloatArray:
    """By how much, relatively, a layer's order parameters differ from those they were computed from."""
    of_q = np.abs(visible.overlap - q) / np.where(q > NOTHING, q, 1.0)
    of_self = np.abs(visible.self_overlap - self_overlap)
    of_self = of_self / np.where(self_overlap > NOTHING, self_overlap, 1.0)
    largest: FloatArray = np.maximum(of_q, of_self)
    return largest


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two 2 x 2 matrices of arrays."""
    (a, b), (c, d) = left
    (e, f), (g, h) = right
    return (a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h)


class Solution(NamedTuple):
    """A solved ensemble: both layers at the saddle point, and how well it is met."""

    ensemble: Ensemble
    visible: LayerAverages
    hidden: LayerAverages
    q_v: Array
    residual: FloatArray

    def exchanged(self) -> Solution:
        """The same solution with the layers in exchanged roles."""
        return Solution(
            self.ensemble.exchanged(), self.hidden, self.visible, self.hidden.overlap, self.residual
        )


def solution_at(ensemble: Ensemble, q: FloatArray, variance: FloatArray | None = None) -> Solution:
    """Both layers at a saddle point; without a ``variance`` the visible self-overlap is fixed."""
    self_overlap = ensemble.visible.self_overlap_at(q, variance)
    visible, hidden = around(ensemble, q, self_overlap, variance)
    return Solution(ensemble, visible, hidden, q, mismatch(visible, q, self_overlap))


def free_energy_density(solution: Solution) -> FloatArray:
    """``f``, per unit of the machine; for spin and bit units this is [Y25] eqn:free_energy_RS.

        (1+alpha) f = -A/2 (Q_v Q_h - q_v q_h) + (Qhat_v Q_v - qhat_v q_v)/2
                      + alpha (Qhat_h Q_h - qhat_h q_h)/2
                      - lnz_v - alpha lnz_h

    with ``lnz`` the average log-trace of a layer. At the saddle point the first three terms add up to
    ``A/2 (Q_v Q_h - q_v q_h)``.
    """
    e, v, h = solution.ensemble, solution.visible, solution.hidden
    return free_energy_at(
        e, (v.overlap, v.self_overlap, v.qhat, v.selfhat), (h.overlap, h.self_overlap, h.qhat, h.selfhat)
    )


def free_energy_at(
    ensemble: Ensemble, visible: tuple[Array, Array, Array, Array], hidden: tuple[Array, Array, Array, Array]
) -> FloatArray:
    """``f`` at any order parameters, ``(q, Q, qhat, Qhat)`` per layer; stationary in all eight at the
    saddle point.
    """
    q_v, self_v, qhat_v, selfhat_v = visible
    q_h, self_h, qhat_h, selfhat_h = hidden
    alpha = ensemble.alpha
    trace_v = ensemble.visible_layer(qhat_v, selfhat_v).log_trace
    trace_h = ensemble.hidden_layer(qhat_h, selfhat_h).log_trace
    total = (
        -0.5 * ensemble.coupling_v * (self_v * self_h - q_v * q_h)
        + 0.5 * (selfhat_v * self_v - qhat_v * q_v)
        + 0.5 * alpha * (selfhat_h * self_h - qhat_h * q_h)
        - trace_v
        - alpha * trace_h
    )
    result: FloatArray = total / (1.0 + alpha)
    return result
