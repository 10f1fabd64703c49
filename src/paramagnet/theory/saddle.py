"""The replica-symmetric saddle point: order parameters and free energy ([Y25] section 3.1).

With ``A = alpha beta**2/(1 + alpha)`` and ``B = beta**2/(1 + alpha)`` the layers feed each other through

    qhat_v = A q_h    selfhat_v = A Q_h    qhat_h = B q_v    selfhat_h = B Q_v      ([Y25] eqn:saddle_Q-hat)

and each answers with its own ``q`` and ``Q`` (``layer.py``). The paper writes this for spin and bit
units, whose self-overlaps are 1 and the mean; kept as an order parameter, ``Q`` lets the same equations
serve any unit. Going once around, from the overlap ``x`` of one layer to the other layer and back,
gives ``x -> F(x)``, and the saddle point is the root of ``ln(F(x)/x)``: a bracketed problem in one
unknown when a layer has a fixed self-overlap (spins), two nested ones otherwise. Successive
substitution ``x <- F(x)``, by contrast, crawls near the spin-glass transition and falls into a 2-cycle
for strongly negative biases of bit units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from paramagnet._checks import as_flag
from paramagnet.theory.ensemble import Ensemble, make_ensemble
from paramagnet.theory.gaussian_saddle import solve_against_gaussian, solve_two_gaussians
from paramagnet.theory.layers.binary import Layer
from paramagnet.theory.roots import find_root
from paramagnet.theory.round_trip import NOTHING, TOLERANCE, around, mismatch
from paramagnet.theory.two_unknowns import find_two
from paramagnet.units import Array, FloatArray, GaussianUnit, Unit


class ConvergenceError(RuntimeError):
    """A solver did not reach its tolerance; `result` holds what it had."""

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickling needs: without it an exception of two arguments cannot be made again."""
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


class Solution(NamedTuple):
    """A solved ensemble: both layers at the saddle point, and how well it is met."""

    ensemble: Ensemble
    visible: Layer
    hidden: Layer
    q_v: Array
    residual: FloatArray

    def exchanged(self) -> Solution:
        """The same solution with the layers in exchanged roles."""
        return Solution(
            self.ensemble.exchanged(), self.hidden, self.visible, self.hidden.overlap, self.residual
        )


def _solve_first_layer(ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
    """The saddle point with the visible layer's order parameters as the unknowns."""
    if not ensemble.visible.symmetric:
        return _solution(ensemble, *find_two(ensemble, tolerance))
    return _solution(ensemble, _find_overlap(ensemble, start, tolerance))


def _find_overlap(ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> FloatArray:
    """``q`` of a visible layer with a fixed self-overlap: one bracketed root."""
    upper = max(ensemble.visible.low**2, ensemble.visible.high**2)
    full = np.full(np.shape(ensemble.beta), upper)
    both_symmetric = ensemble.symmetric_v & ensemble.symmetric_h
    # Near zero F(x) = x A B k2(v)**2 k2(h)**2: in the paramagnetic phase there is no other root.
    loop_gain = ensemble.coupling_v * ensemble.coupling_h
    gain_at_zero = loop_gain * (ensemble.visible.high * ensemble.hidden.high) ** 4
    # Right at the transition rounding must not decide.
    unmagnetized = (both_symmetric & (gain_at_zero <= 1.0 + 1e-15)) | (
        ensemble.symmetric_v & (ensemble.coupling_v == 0.0)
    )

    def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        visible, hidden = around(ensemble, x, full)
        return visible.overlap, loop_gain * (visible.overlap_to_qhat * hidden.overlap_to_qhat)

    if start is None and tolerance > 1e-6:
        start = rough_overlap(ensemble, upper)
    if start is None:
        start = around(ensemble, full, full)[0].overlap
        vanishing = start < NOTHING
        if (
            vanishing.any()
        ):  # with the largest overlap; zero to all that floats can tell if with the smallest too
            unmagnetized |= vanishing & (around(ensemble, 0.0 * full, full)[0].overlap < NOTHING)
    q = find_root(evaluate, start, upper, skip=unmagnetized, linear=both_symmetric, tolerance=tolerance)
    return np.where(unmagnetized, 0.0, q)


def rough_overlap(ensemble: Ensemble, upper: float) -> FloatArray:
    """A first guess at ``q_v``, cheaply: the hidden units at the mean of their field."""
    k1, _ = ensemble.hidden.cumulants(ensemble.c, 0.5 * upper * ensemble.coupling_h)
    field = ensemble.coupling_v * k1 * k1 + ensemble.b * ensemble.b
    return np.asarray(upper * field / (1.0 + field)) + 1e-290


def solve_ensemble(ensemble: Ensemble, start: FloatArray | None = None, tolerance: float = 1e-10) -> Solution:
    """The saddle point of an ensemble; ``start`` is a guess of ``q_v`` (used where the visible layer is
    the one solved for).

    The layer with a fixed self-overlap, if there is one, is the one whose overlap is solved for.
    """
    if isinstance(ensemble.hidden, GaussianUnit):
        return _solve_above_gaussian(ensemble)
    if isinstance(ensemble.visible, GaussianUnit):
        return _solve_above_gaussian(ensemble.exchanged()).exchanged()
    if ensemble.hidden.symmetric and not ensemble.visible.symmetric:
        return _solve_first_layer(ensemble.exchanged(), None, tolerance).exchanged()
    return _solve_first_layer(ensemble, start, tolerance)


def _solve_above_gaussian(ensemble: Ensemble) -> Solution:
    """The saddle point of machines whose hidden units are Gaussian; of two phases that of lower free
    energy.
    """
    if isinstance(ensemble.visible, GaussianUnit):
        return _solution(ensemble, *solve_two_gaussians(ensemble))
    first, other = solve_against_gaussian(ensemble)
    q, variance = first
    if (other[0] != q).any():
        lower = _free_energy_difference(ensemble, first, other) < 0.0
        q, variance = np.where(lower, other[0], q), np.where(lower, other[1], variance)
    return _solution(ensemble, q, variance)


def _free_energy_difference(
    ensemble: Ensemble, first: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """By how much the free energy of the other phase is above that of the first."""
    energies = (free_energy_density(_solution(ensemble, *pair)) for pair in (other, first))
    difference: FloatArray = next(energies) - next(energies)
    return difference


def phase_difference(ensemble: Ensemble) -> FloatArray:
    """The free energy of the second phase of machines with one Gaussian layer minus that of the phase that
    goes on from small beta; nan where there is one phase only.
    """
    if isinstance(ensemble.visible, GaussianUnit):
        ensemble = ensemble.exchanged()
    first, other = solve_against_gaussian(ensemble)
    difference = _free_energy_difference(ensemble, first, other)
    return np.where(other[0] != first[0], difference, np.nan)


def _solution(ensemble: Ensemble, q: FloatArray, variance: FloatArray | None = None) -> Solution:
    """Both layers at a saddle point; without a ``variance`` the visible self-overlap is fixed."""
    if variance is None or (ensemble.visible.symmetric and not isinstance(ensemble.visible, GaussianUnit)):
        self_overlap = np.full(np.shape(q), ensemble.visible.high**2)
    else:
        self_overlap = q + variance
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

    Where two symmetric layers without bias leave zero as a second solution (above the spin-glass
    transition, [Y25] eqn:spin-glass_transition_point), the non-zero one is taken, as in the paper.
    Arguments broadcast. If a residual stays above 1e-13 a `ConvergenceError` is raised, or with
    ``throw=False`` a result returned that says so in ``status``.
    """
    as_flag(throw, "throw")
    ensemble = make_ensemble(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    solution = solve_ensemble(ensemble)
    if throw:
        require_convergence(solution)
    return describe(solution)


def require_convergence(solution: Solution) -> None:
    """Raise where the equations are not met."""
    if np.any(~(solution.residual <= TOLERANCE)):  # nan is not
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
    worst = float(np.max(solution.residual, initial=0.0))  # nan if one is
    status = "converged" if worst <= TOLERANCE else f"largest residual {worst:.1e}"
    point = SaddlePoint(
        e.beta, e.alpha, e.spread_v or e.b, e.spread_h or e.c, e.visible, e.hidden,
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
