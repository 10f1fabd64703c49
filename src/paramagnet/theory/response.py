"""Responses of the layers to each other's biases ([Y25] section 3.2), and the stability of the
replica-symmetric solution.

Write ``y = (q, Q)`` for a layer's order parameters, ``J`` for its 2 x 2 Jacobian in ``x = (qhat,
selfhat)`` (or ``(q, Q - q)`` and ``(qhat, selfhat - qhat)``, see `LayerAverages`), ``e = dy/dd`` for its
direct response to its own bias, and ``A``, ``B`` for the couplings (``saddle.py``). A change of ``c`` changes
the order parameters of the hidden layer by

    dy_h/dc = (I - A B J_h J_v)**-1 e_h

and those of the visible layer accordingly. This is [Y25] eqn:mat_Q and eqn:mat_Q-hat for any unit, and the
susceptibilities ``chi_{l,k} = dM_l/dd_k`` follow as in eqn:mat_chi and eqn:chi_solution.

**Where symmetry makes the layer correlation vanish.** With symmetric visible units (spins) and ``b =
0``, every covariance is zero in the average over the weights, at every machine size: flipping ``v_i``
together with row ``i`` of the weights changes nothing but its sign. In the formulas ``U_v = 0``. The
paper's curves for bit hidden units "at b = 0" (its footnote: "true zero was used") can therefore only
be the slope,

    chi_vh = s b + O(b**3),   s = -2 beta**2 alpha/(1+alpha)**2 W_v U_h / D = (1/(1+alpha)) d(Q_v - q_v)/dc,

and its beta_max is the maximum of ``|s|``. With two symmetric layers and ``b = c = 0`` the mixed second
derivative takes this place; it diverges at the transition, which is why beta_max is the transition
there ([Y25] eqn:beta-max-condition_ising). `layer_correlation` is ``chi_vh`` itself, which is zero in these
cases; `layer_correlation_slope` is the derivative that takes its place.

**Gaussian units against bits.** For spins ``Q_v = 1``, and the slope is the response of the overlap alone,
``-dq_v/dc``. For Gaussian units ``Q_v - q_v`` is the variance of a unit, which first grows with ``c`` and
then shrinks: ``s`` changes sign, and its maxima lie on both sides of the ``beta`` at which the order
parameters change most. `overlap_response` is ``-dq_v/dc`` alone, for spins the same number: it has one
maximum, which moves steadily with ``c``. beta_max maximizes it for a Gaussian layer beside a layer of bits.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet.theory.ensemble import make_ensemble
from paramagnet.theory.forms import form_of, solve_ensemble
from paramagnet.theory.saddle import require_convergence
from paramagnet.theory.solution import (
    Solution,
    apply,
    correlation,
    magnetization_change,
    overlap_answer,
    solve_loop,
    stability_number,
    state_of,
)
from paramagnet.units import FloatArray, Unit


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

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    ndarray
        The matrix, of shape ``(..., 2, 2)``.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    e, v, h = solution.ensemble, solution.visible, solution.hidden
    gain = e.coupling_v * e.coupling_h
    dy_v = solve_loop(gain, v, h, v.to_bias)  # derivatives in b
    dy_h = solve_loop(gain, h, v, h.to_bias)  # derivatives in c
    back_h, back_v = (
        apply(h, (e.coupling_h * dy_v[0], e.coupling_h * dy_v[1])),
        apply(v, (e.coupling_v * dy_h[0], e.coupling_v * dy_h[1])),
    )
    chi = np.empty((*np.shape(e.beta), 2, 2))
    chi[..., 0, 0] = v.variance + e.coupling_v * magnetization_change(v, v.to_bias, back_h)
    chi[..., 0, 1] = e.coupling_v * magnetization_change(v, v.to_bias, dy_h)
    chi[..., 1, 0] = e.alpha * e.coupling_h * magnetization_change(h, h.to_bias, dy_v)
    chi[..., 1, 1] = e.alpha * (h.variance + e.coupling_h * magnetization_change(h, h.to_bias, back_v))
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
    """``chi_vh``, the paper's LC up to a factor ([Y25] eqn:layer_correlation, eqn:f_chi_relation); it is
    exactly zero if a symmetric layer has no bias.

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    float or ndarray
        The layer correlation, in the common shape of the arguments.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    never = np.zeros(np.shape(solution.ensemble.beta), dtype=bool)
    e = solution.ensemble
    vanishes = e.slope_v | e.slope_h
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
    """The derivative of ``chi_vh`` in the biases at which symmetry makes it vanish; its maximum is beta_max
    (except for a Gaussian layer beside one of bits, see `overlap_response`).

    The derivative is taken in ``b`` if the visible units are symmetric and ``b = 0``, in ``c`` if the hidden
    units are symmetric and ``c = 0``, and in both if both hold. If neither holds, this is ``chi_vh`` itself.

    With two symmetric layers it is infinite at the transition.

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    float or ndarray
        The derivative, in the common shape of the arguments.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    e = solution.ensemble
    with np.errstate(divide="ignore", invalid="ignore"):
        value = correlation(state_of(solution), e.slope_v, e.slope_h)
    return _plain(np.where(np.isnan(value), -np.inf, value))  # inf - inf, at a transition


def overlap_response(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """``-(1/(1 + alpha)) dq_v/dc``, the response of the visible overlap to the hidden bias (the derivative of
    this in ``c`` if the hidden layer is symmetric and ``c = 0``).

    It does not depend on which value of a spin is called +1. For spin visible units without bias it is
    `layer_correlation_slope`; for a Gaussian visible layer beside one of bits its maximum is beta_max.

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    float or ndarray
        The response, in the common shape of the arguments.
    """
    solution = _solve(beta, alpha, visible, hidden, b, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = overlap_answer(state_of(solution), solution.ensemble.slope_h)
    return _plain(np.where(np.isnan(value), -np.inf, value))


def criterion(beta: Any, alpha: Any, *, visible: str | Unit, hidden: str | Unit, b: Any, c: Any) -> Any:
    """The quantity whose absolute value beta_max maximizes, as a function of ``beta``."""
    solution = _solve(beta, alpha, visible, hidden, b, c)
    if solution.ensemble.hidden.symmetric and not solution.ensemble.visible.symmetric:
        solution = solution.exchanged()
    with np.errstate(divide="ignore"):
        return _plain(form_of(solution.ensemble).maximized(solution.ensemble, state_of(solution)))


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

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    float or ndarray
        The number, in the common shape of the arguments.
    """
    return _plain(stability_number(_solve(beta, alpha, visible, hidden, b, c)))
