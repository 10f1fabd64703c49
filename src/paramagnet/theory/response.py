"""How the layers answer to each other's biases ([Y25] section 3.2), and whether the replica-symmetric
solution is stable.

Write ``y = (q, Q)`` for a layer's order parameters, ``J`` for its 2 x 2 Jacobian in ``x = (qhat,
selfhat)`` (or ``(q, Q - q)`` and ``(qhat, selfhat - qhat)``, see `Layer`), ``e = dy/dd`` for its direct
answer to its own bias, and ``A``, ``B`` for the couplings (``saddle.py``). A change of ``c`` moves the hidden
layer by

    dy_h/dc = (I - A B J_h J_v)**-1 e_h

and so on around: this is [Y25] eqn:mat_Q and eqn:mat_Q-hat for any unit, and the susceptibilities
``chi_{l,k} = dM_l/dd_k`` follow as in eqn:mat_chi and eqn:chi_solution.

**Where symmetry makes the layer correlation vanish.** With symmetric visible units (spins) and ``b =
0``, every covariance is zero in the average over the weights, at every machine size: flipping ``v_i``
together with row ``i`` of the weights changes nothing but its sign. In the formulas ``U_v = 0``. The
paper's curves for bit hidden units "at b = 0" (its footnote: "true zero was used") can therefore only
be the slope,

    chi_vh = s b + O(b**3),   s = -2 beta**2 alpha/(1+alpha)**2 W_v U_h / D = (1/(1+alpha)) d(Q_v - q_v)/dc,

and its beta_max is the maximum of ``|s|``. With two symmetric layers and ``b = c = 0`` the mixed second
derivative takes this place; it diverges at the transition, which is why beta_max is the transition
there ([Y25] eqn:beta-max-condition_ising). `layer_correlation` is ``chi_vh`` itself, zero where
symmetry says so; `layer_correlation_slope` is what remains.

**Gaussian units against bits.** For spins ``Q_v = 1``, and the slope is the answer of the overlap alone,
``-dq_v/dc``. For Gaussian units ``Q_v - q_v`` is the variance of a unit, which first grows with ``c`` and
then shrinks: ``s`` changes sign, and its maxima lie on both sides of where most happens. `overlap_response`
keeps ``-dq_v/dc``, the same number for spins: one maximum, which moves steadily with ``c``. It is what
beta_max maximizes for a Gaussian layer beside a layer of bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paramagnet.theory.ensemble import Ensemble, make_ensemble
from paramagnet.theory.layers.binary import Layer
from paramagnet.theory.round_trip import product
from paramagnet.theory.saddle import Solution, require_convergence, solve_ensemble
from paramagnet.units import Array, FloatArray, GaussianUnit, Unit

_IMAGINARY_STEP = 1e-25


class State(NamedTuple):
    """Both layers and their couplings; complex where a derivative is carried along."""

    alpha: FloatArray
    coupling_v: Array
    coupling_h: Array
    visible: Layer
    hidden: Layer


def state_of(solution: Solution) -> State:
    """The state at a saddle point."""
    e = solution.ensemble
    return State(e.alpha, e.coupling_v, e.coupling_h, solution.visible, solution.hidden)


def _solve_loop(gain: Array, left: Layer, right: Layer, source: tuple[Array, Array]) -> tuple[Array, Array]:
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


def _magnetization_change(layer: Layer, to: tuple[Array, Array], change: tuple[Array, Array]) -> Array:
    """``dM`` from a change of ``(qhat, selfhat)``: ``-E[k1 k2] dqhat + E[k3 + 2 k1 k2]/2 dselfhat``; from one
    of ``(qhat, gap)``, ``E[k3]/2 dqhat + E[k3 + 2 k1 k2]/2 dgap``. ``to`` is `Layer.to_bias`, or its slope.
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
    change = _solve_loop(state.coupling_v * state.coupling_h, hidden, visible, source)
    to = _choose(slope_v, visible.to_bias_slope, visible.to_bias)
    # [Y25] eqn:chi_(l,k), eqn:mat_chi, off-diagonal element
    answer: Array = state.coupling_v * _magnetization_change(visible, to, change) / (1.0 + state.alpha)
    return answer


def overlap_answer(state: State, slope_h: Array) -> Array:
    """``-dq_v/dc/(1 + alpha)``: for spin visible units without bias this is the slope of ``chi_vh``."""
    hidden, visible = state.hidden, state.visible
    source = _choose(slope_h, hidden.to_bias_slope, hidden.to_bias)
    change = _solve_loop(state.coupling_v * state.coupling_h, hidden, visible, source)
    answer: Array = -state.coupling_v * _apply(visible, change)[0] / (1.0 + state.alpha)
    return answer


def maximized(ensemble: Ensemble, state: State) -> Array:
    """What beta_max maximizes in absolute value: the layer correlation, its slope, or the answer of the
    overlap.
    """
    if isinstance(ensemble.visible, GaussianUnit) and not ensemble.hidden.symmetric:
        return overlap_answer(state, ensemble.symmetric_h)
    return correlation(state, ensemble.symmetric_v, ensemble.symmetric_h)


def _choose(where: Array, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    if where.all():
        return first
    if not where.any():
        return second
    return np.where(where, first[0], second[0]), np.where(where, first[1], second[1])


class Motion(NamedTuple):
    """What beta_max maximizes, and how it and the visible overlap move with ``ln beta``."""

    value: FloatArray
    derivative: FloatArray
    overlap_derivative: FloatArray


def follow_beta(solution: Solution) -> Motion:
    """What beta_max maximizes and its total derivative in ``ln beta``.

    The saddle point's own motion with ``beta`` is found from one linear solve and carried, as a tiny
    imaginary part, through the same formulas: exact to rounding, unlike a difference.
    """
    e = solution.ensemble
    beta = e.beta + 1j * _IMAGINARY_STEP * e.beta
    moved = e.at(beta)
    visible, hidden = solution.visible, solution.hidden
    # Per relative change of beta the couplings change by 2A and 2B:
    # dx_h = 2 x_h + B dy_v, dx_v = 2 x_v + A dy_h.
    x_v, x_h = visible.hats, hidden.hats
    forced_v = _apply(visible, (2.0 * x_v[0], 2.0 * x_v[1]))
    forced_h = _apply(
        hidden, (2.0 * x_h[0] + e.coupling_h * forced_v[0], 2.0 * x_h[1] + e.coupling_h * forced_v[1])
    )
    dy_h = _solve_loop(e.coupling_v * e.coupling_h, hidden, visible, forced_h)
    dx_v = (2.0 * x_v[0] + e.coupling_v * dy_h[0], 2.0 * x_v[1] + e.coupling_v * dy_h[1])
    dy_v = _apply(visible, dx_v)
    dx_h = (2.0 * x_h[0] + e.coupling_h * dy_v[0], 2.0 * x_h[1] + e.coupling_h * dy_v[1])
    state = State(
        e.alpha,
        moved.coupling_v,
        moved.coupling_h,
        e.visible_layer(*_moved(visible, dx_v)),
        e.hidden_layer(*_moved(hidden, dx_h)),
    )
    answer = maximized(e, state)
    return Motion(answer.real, answer.imag / _IMAGINARY_STEP, dy_v[0])


def _moved(layer: Layer, change: tuple[Array, Array]) -> tuple[Array, Array, Array | None]:
    """``qhat``, ``selfhat`` and, if it is known by itself, the gap, with an infinitesimal change."""
    step_q, step = 1j * _IMAGINARY_STEP * change[0], 1j * _IMAGINARY_STEP * change[1]
    if layer.by_variance:
        return layer.qhat + step_q, layer.selfhat + (step_q + step), layer.gap + step
    return layer.qhat + step_q, layer.selfhat + step, None


def _apply(layer: Layer, change: tuple[Array, Array]) -> tuple[Array, Array]:
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


def _plain(value: FloatArray) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _solve(beta: Any, alpha: Any, visible: Any, hidden: Any, b: Any, c: Any) -> Solution:
    solution = solve_ensemble(make_ensemble(beta, alpha, visible=visible, hidden=hidden, b=b, c=c))
    require_convergence(solution)
    return solution


def susceptibility(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> FloatArray:
    """The matrix ``chi[l, k] = dM_l/dd_k``, ``(v, h)`` in this order, of shape ``(..., 2, 2)`` ([Y25]
    eqn:chi_solution).

    ``M_v`` and ``M_h`` are the paper's, per unit of the whole machine: ``-df/db`` and ``-df/dc``.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    e, v, h = solution.ensemble, solution.visible, solution.hidden
    gain = e.coupling_v * e.coupling_h
    dy_v = _solve_loop(gain, v, h, v.to_bias)  # in b
    dy_h = _solve_loop(gain, h, v, h.to_bias)  # in c
    back_h, back_v = (
        _apply(h, (e.coupling_h * dy_v[0], e.coupling_h * dy_v[1])),
        _apply(v, (e.coupling_v * dy_h[0], e.coupling_v * dy_h[1])),
    )
    chi = np.empty((*np.shape(e.beta), 2, 2))
    chi[..., 0, 0] = v.variance + e.coupling_v * _magnetization_change(v, v.to_bias, back_h)
    chi[..., 0, 1] = e.coupling_v * _magnetization_change(v, v.to_bias, dy_h)
    chi[..., 1, 0] = e.alpha * e.coupling_h * _magnetization_change(h, h.to_bias, dy_v)
    chi[..., 1, 1] = e.alpha * (h.variance + e.coupling_h * _magnetization_change(h, h.to_bias, back_v))
    chi /= (1.0 + e.alpha)[..., None, None]
    return chi


def layer_correlation(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """``chi_vh``, the paper's LC up to a factor ([Y25] eqn:layer_correlation, eqn:f_chi_relation):
    exactly zero where a symmetric layer has no bias.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    never = np.zeros(np.shape(solution.ensemble.beta), dtype=bool)
    e = solution.ensemble
    vanishes = e.symmetric_v | e.symmetric_h
    return _plain(np.where(vanishes, 0.0, correlation(state_of(solution), never, never)))


def layer_correlation_slope(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """The derivative of ``chi_vh`` in the biases that symmetry sets to zero: in ``b`` where the visible
    units are symmetric and ``b = 0``, in ``c`` likewise, in both where both are. Where neither is,
    there is nothing to differentiate and this is ``chi_vh`` itself: the quantity whose maximum is
    beta_max (but for a Gaussian layer beside one of bits: `overlap_response`).

    With two symmetric layers it is infinite at the transition.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    e = solution.ensemble
    with np.errstate(divide="ignore", invalid="ignore"):
        value = correlation(state_of(solution), e.symmetric_v, e.symmetric_h)
    return _plain(np.where(np.isnan(value), -np.inf, value))  # of two infinite parts, at a transition


def overlap_response(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """``-(1/(1 + alpha)) dq_v/dc``, how the visible overlap answers to the hidden bias (its derivative in
    ``c`` where the hidden layer is symmetric and ``c = 0``).

    It does not depend on which value of a spin is called +1. For spin visible units without bias it is
    `layer_correlation_slope`; for a Gaussian visible layer beside one of bits its maximum is beta_max.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = overlap_answer(state_of(solution), solution.ensemble.symmetric_h)
    return _plain(np.where(np.isnan(value), -np.inf, value))


def criterion(beta: Any, alpha: Any, *, visible: str | Unit, hidden: str | Unit, b: Any, c: Any) -> Any:
    """What beta_max maximizes in absolute value, as a function of ``beta``."""
    solution = _solve(beta, alpha, visible, hidden, b, c)
    if solution.ensemble.hidden.symmetric and not solution.ensemble.visible.symmetric:
        solution = solution.exchanged()
    with np.errstate(divide="ignore"):
        return _plain(maximized(solution.ensemble, state_of(solution)))


def replica_stability(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """The de Almeida-Thouless number ``1 - A B E_v[k2**2] E_h[k2**2]``: positive where the
    replica-symmetric theory holds.

    It is also an observable: ``(1/n) sum_ij E cov(v_i, h_j)**2 = A K/(1 - A B K)`` with ``K`` the
    product of the two averages.
    """
    return _plain(stability_number(_solve(beta, alpha, visible, hidden, b, c)))
