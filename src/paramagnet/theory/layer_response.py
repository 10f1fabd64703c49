"""How the layers answer to each other's biases at a saddle point: the formulas behind ``response.py``, whose
docstring derives them ([Y25] section 3.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.theory.solution import Solution, product
from paramagnet.units import Array, FloatArray


class State(NamedTuple):
    """Both layers and their couplings; complex where a derivative is carried along."""

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
    if np.all(determinant):
        return first / determinant, second / determinant
    # at a transition: what is nothing stays so, all else is infinite
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
    """``chi_vh``, differentiated in ``b`` where ``slope_v`` and in ``c`` where ``slope_h`` (at zero
    bias of a symmetric layer, where everything but the factor concerned is even in the bias).
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
    if where.all():
        return first
    if not where.any():
        return second
    return np.where(where, first[0], second[0]), np.where(where, first[1], second[1])


def apply(layer: LayerAverages, change: tuple[Array, Array]) -> tuple[Array, Array]:
    """How a layer's order parameters change with its auxiliary ones: ``J change``."""
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
