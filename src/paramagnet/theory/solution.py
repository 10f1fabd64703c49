"""Quantities of the theory at a saddle point, for layers of any units ([Y25] sections 3.1 and 3.2).

The file has, in this order: one pass through both layers, which leaves the order parameters unchanged if the
saddle-point equations hold (``saddle.py`` states them); the free energy; the responses of the layers to each
other's biases (``response.py`` derives the formulas).

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.units import Array, FloatArray

TOLERANCE = 1e-13  # largest relative violation of the equations at an accepted saddle point
NOTHING = 1e-290  # order parameters below this are taken as zero; the smallest normal float is 1e-308
Matrix = tuple[tuple[Array, Array], tuple[Array, Array]]


def around(
    ensemble: Ensemble, q: Array, self_overlap: Array, variance: Array | None = None
) -> tuple[LayerAverages, LayerAverages]:
    """The averages of both layers: from the visible order parameters to the hidden layer, and back.

    ``variance`` is ``Q - q``, for a caller who knows it to more digits than the difference has: couplings may
    be so large that these digits matter. The hidden layer's variance is then passed on separately, too; for
    Gaussian units of a large bias it is far below the square of the mean.
    """
    # [Y25] eqn:saddle_Q-hat, with self-overlaps
    coupling_v, coupling_h = ensemble.coupling_v, ensemble.coupling_h
    gap = None if variance is None else coupling_h * variance
    hidden = ensemble.hidden_layer(coupling_h * q, coupling_h * self_overlap, gap)
    gap = None if variance is None else coupling_v * hidden.variance
    visible = ensemble.visible_layer(coupling_v * hidden.overlap, coupling_v * hidden.self_overlap, gap)
    return visible, hidden


def mismatch(visible: LayerAverages, q: Array, self_overlap: Array) -> FloatArray:
    """The relative difference between a layer's order parameters and those they were computed from."""
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
    """A solved ensemble: both layers at the saddle point, and the residual of the equations."""

    ensemble: Ensemble
    visible: LayerAverages
    hidden: LayerAverages
    q_v: Array
    residual: FloatArray

    def exchanged(self) -> Solution:
        """The same solution with the layers exchanged."""
        return Solution(
            self.ensemble.exchanged(), self.hidden, self.visible, self.hidden.overlap, self.residual
        )


def solution_at(ensemble: Ensemble, q: FloatArray, variance: FloatArray | None = None) -> Solution:
    """The solution at a saddle point; without a ``variance`` the visible self-overlap is fixed."""
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


class State(NamedTuple):
    """Both layers and their couplings; the numbers are complex if a derivative is carried along."""

    alpha: FloatArray
    coupling_v: Array
    coupling_h: Array
    visible: LayerAverages
    hidden: LayerAverages


def state_of(solution: Solution) -> State:
    """The state at a saddle point."""
    e = solution.ensemble
    return State(e.alpha, e.coupling_v, e.coupling_h, solution.visible, solution.hidden)


def solve_loop(
    gain: Array, left: LayerAverages, right: LayerAverages, source: tuple[Array, Array]
) -> tuple[Array, Array]:
    """``(I - gain J_left J_right)**-1 source``."""
    (a, b), (c, d) = product(left.jacobian, right.jacobian)
    a, b, c, d = 1.0 - gain * a, -gain * b, -gain * c, 1.0 - gain * d
    x, y = source
    determinant = a * d - b * c
    first, second = d * x - b * y, a * y - c * x
    if np.count_nonzero(determinant) == determinant.size:
        return first / determinant, second / determinant
    # 0/0 stays 0; any other value diverges at the transition.
    ones = np.ones_like(determinant)
    return (
        first / np.where(first == 0.0, ones, determinant),
        second / np.where(second == 0.0, ones, determinant),
    )


def magnetization_change(layer: LayerAverages, to: tuple[Array, Array], change: tuple[Array, Array]) -> Array:
    """``dM`` from a change of ``(qhat, selfhat)``: ``-E[k1 k2] dqhat + E[k3 + 2 k1 k2]/2 dselfhat``; from one
    of ``(qhat, gap)``, ``E[k3]/2 dqhat + E[k3 + 2 k1 k2]/2 dgap``. ``to`` is `to_bias` of the
    layer, or its slope.
    """
    if layer.by_variance:
        answer: Array = 0.5 * (to[1] * (change[0] + change[1]) + to[0] * change[1])
    else:
        answer = 0.5 * (to[1] * change[1] - to[0] * change[0])
    return answer


def correlation(state: State, slope_v: Array, slope_h: Array) -> Array:
    """``chi_vh``, differentiated in ``b`` where ``slope_v`` is true and in ``c`` where ``slope_h`` is true.

    These masks mark symmetric layers of zero bias, for which all factors of ``chi_vh`` but the differentiated
    one are even in the bias.
    """
    visible, hidden = state.visible, state.hidden
    source = _choose(slope_h, hidden.to_bias_slope, hidden.to_bias)
    change = solve_loop(state.coupling_v * state.coupling_h, hidden, visible, source)
    to = _choose(slope_v, visible.to_bias_slope, visible.to_bias)
    # [Y25] eqn:chi_(l,k), eqn:mat_chi, off-diagonal element
    answer: Array = state.coupling_v * magnetization_change(visible, to, change) / (1.0 + state.alpha)
    return answer


def overlap_answer(state: State, slope_h: Array) -> Array:
    """``-dq_v/dc/(1 + alpha)``: for spin visible units without bias this is the slope of ``chi_vh``."""
    hidden, visible = state.hidden, state.visible
    source = _choose(slope_h, hidden.to_bias_slope, hidden.to_bias)
    change = solve_loop(state.coupling_v * state.coupling_h, hidden, visible, source)
    answer: Array = -state.coupling_v * apply(visible, change)[0] / (1.0 + state.alpha)
    return answer


def _choose(where: Array, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    n_chosen = np.count_nonzero(where)
    if n_chosen == np.size(where):
        return first
    if not n_chosen:
        return second
    return np.where(where, first[0], second[0]), np.where(where, first[1], second[1])


def apply(layer: LayerAverages, change: tuple[Array, Array]) -> tuple[Array, Array]:
    """``J change``, the change of a layer's order parameters due to a change of its auxiliary parameters."""
    (a, b), (c, d) = layer.jacobian
    return a * change[0] + b * change[1], c * change[0] + d * change[1]


def stability_number(solution: Solution) -> FloatArray:
    """``1 - A B E_v[k2**2] E_h[k2**2]``, the de Almeida-Thouless number: the replica-symmetric solution
    is stable where it is positive.
    """
    e = solution.ensemble
    gain = e.coupling_v * e.coupling_h
    number: FloatArray = 1.0 - gain * solution.visible.squared_variance * solution.hidden.squared_variance
    return number
