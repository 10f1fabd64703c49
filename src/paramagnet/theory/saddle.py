"""The replica-symmetric saddle point: order parameters and free energy ([Y25] section 3.1).

With ``A = alpha beta**2/(1 + alpha)`` and ``B = beta**2/(1 + alpha)`` the layers are coupled by

    qhat_v = A q_h    selfhat_v = A Q_h    qhat_h = B q_v    selfhat_h = B Q_v      ([Y25] eqn:saddle_Q-hat)

and ``q`` and ``Q`` of each layer are averages that depend on its ``qhat`` and ``selfhat`` (``layers/``). The
paper writes this for spin and bit units, whose self-overlaps are 1 and the mean; with ``Q`` as an order
parameter the same equations hold for any unit. One pass from the overlap ``x`` of one layer to the other
layer and back gives ``x -> F(x)``, and the saddle point is the root of ``ln(F(x)/x)``: a bracketed problem in
one unknown when a layer has a fixed self-overlap (spins), two nested ones otherwise. Successive substitution
``x <- F(x)``, by contrast, converges very slowly near the spin-glass transition and ends in a 2-cycle for
strongly negative biases of bit units.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paramagnet._checks import as_flag
from paramagnet.theory.ensemble import make_ensemble
from paramagnet.theory.forms import solve_ensemble
from paramagnet.theory.solution import TOLERANCE, Solution, free_energy_at, free_energy_density
from paramagnet.units import Unit

__all__ = [
    "ConvergenceError", "SaddlePoint", "describe", "free_energy_at", "free_energy_density", "make_ensemble",
    "require_convergence", "solve_ensemble", "solve_saddle_point",
]  # fmt: skip


class ConvergenceError(RuntimeError):
    """A solver did not reach its tolerance; `result` holds the last iterate."""

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: Python cannot unpickle an exception of two arguments without this method."""
        return type(self), (*self.args, self.result), vars(self)


@dataclass(frozen=True, eq=False)
class SaddlePoint:
    """Order parameters of a random machine; floats, or arrays of the arguments' common shape.

    ``q`` are the overlaps and ``Q`` the self-overlaps per layer, ``qhat`` and ``Qhat`` the auxiliary
    parameters, ``magnetization`` the mean of one unit (the paper's M_v and M_h are ``1/(1+alpha)`` and
    ``alpha/(1+alpha)`` times it), ``free_energy`` is per unit of the whole machine. ``residual`` is the
    largest relative violation of the saddle-point equations, ``quadrature_error`` the estimated
    relative error of the averages in them.
    """

    beta: Any
    alpha: Any
    b: Any
    c: Any
    visible: Unit
    hidden: Unit
    q_v: Any
    q_h: Any
    Q_v: Any
    Q_h: Any
    qhat_v: Any
    qhat_h: Any
    Qhat_v: Any
    Qhat_h: Any
    magnetization_v: Any
    magnetization_h: Any
    free_energy: Any
    residual: Any
    quadrature_error: Any
    status: str

    @property
    def converged(self) -> bool:
        """Whether every residual is within the tolerance."""
        return self.status == "converged"

    def __repr__(self) -> str:
        if np.ndim(self.q_v):
            return f"SaddlePoint({np.size(self.q_v)} points, {self.visible}-{self.hidden}, {self.status})"
        return (
            f"SaddlePoint(beta={self.beta:.6g}, alpha={self.alpha:.6g}, {self.visible}-{self.hidden}, "
            f"q_v={self.q_v:.6g}, q_h={self.q_h:.6g}, free_energy={self.free_energy:.6g}, "
            f"residual={self.residual:.1e}, {self.status})"
        )


def solve_saddle_point(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
    throw: bool = True,
) -> SaddlePoint:
    """Order parameters of a machine with weights from N(0, beta**2/(n + m)), layers of ratio ``alpha =
    m/n``, biases ``b`` and ``c``.

    If two symmetric layers without bias have zero as a second solution (for ``beta`` above the spin-glass
    transition, [Y25] eqn:spin-glass_transition_point), the non-zero one is taken, as in the paper.
    Arguments broadcast. If a residual stays above 1e-13, a `ConvergenceError` is raised, or with
    ``throw=False`` a result is returned whose ``status`` says so.

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
    throw : bool, default True
        Whether to raise `ConvergenceError` if the tolerance is not met.

    Returns
    -------
    SaddlePoint
        Order parameters, free energy, residual and status.
    """
    as_flag(throw, "throw")
    ensemble = make_ensemble(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    solution = solve_ensemble(ensemble)
    if throw:
        require_convergence(solution)
    return describe(solution)


def require_convergence(solution: Solution) -> None:
    """Raise `ConvergenceError` if a residual is above the tolerance."""
    if np.any(~(solution.residual <= TOLERANCE)):  # also true for nan
        e, result, worst = solution.ensemble, describe(solution), np.argmax(solution.residual)
        beta, alpha, b, c = (float(np.ravel(x)[worst]) for x in (e.beta, e.alpha, e.b, e.c))
        spreads = (b, e.spread_v), (c, e.spread_h)
        texts = ["`Biases(...)`" if spread else f"{bias:g}" for bias, spread in spreads]
        raise ConvergenceError(
            f"The saddle point of {e.visible}-{e.hidden} machines with `beta` = {beta:g}, `alpha` = "
            f"{alpha:g}, `b` = {texts[0]}, `c` = {texts[1]} was not reached within {TOLERANCE:g}: "
            f"{result.status}. Choose a smaller `beta` or biases nearer to zero; `solve_saddle_point(..., "
            "throw=False)` shows what there is.",
            result,
        )


def describe(solution: Solution) -> SaddlePoint:
    """The public result made from a solution."""
    e, v, h = solution.ensemble, solution.visible, solution.hidden
    worst = float(np.max(solution.residual, initial=0.0))  # nan if a residual is nan
    status = "converged" if worst <= TOLERANCE else f"largest residual {worst:.1e}"
    point = SaddlePoint(
        e.beta, e.alpha, e.spread_v or e.b, e.spread_h or e.c, e.visible.unit, e.hidden.unit,
        solution.q_v, h.overlap, v.self_overlap, h.self_overlap, v.qhat, h.qhat, v.selfhat, h.selfhat,
        v.magnetization, h.magnetization, free_energy_density(solution), solution.residual,
        np.maximum(v.quadrature_error, h.quadrature_error), status,
    )  # fmt: skip
    if np.ndim(e.beta):
        return point
    scalars: dict[str, Any] = {
        name: float(value)
        for name, value in vars(point).items()
        if isinstance(value, np.ndarray | np.generic)
    }
    return replace(point, **scalars)
