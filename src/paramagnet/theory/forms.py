"""The forms that machines take in the theory, and what differs between them.

How a saddle point is found, where the transition is, what beta_max maximizes and how far the search for it
goes depends on whether no layer, one of them or both consist of Gaussian units, whose variance the other
layer can increase without bound (`UnitTheory.quadratic`). Only `form_of` makes this distinction; the searches
call the methods of the form. A further unit type of bounded variables takes the form `TwoBounded` with no
change here.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from paramagnet.theory.edge import find_edges
from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.gaussian_saddle import LARGEST_BETA, solve_against_gaussian, solve_two_gaussians
from paramagnet.theory.roots import find_root
from paramagnet.theory.solution import (
    NOTHING,
    Solution,
    State,
    around,
    correlation,
    free_energy_density,
    overlap_answer,
    solution_at,
)
from paramagnet.theory.two_unknowns import find_two
from paramagnet.units import Array, FloatArray

_LAST, _LAST_GAUSSIAN = 2000.0, 15.0  # the largest beta of a scan for a maximum
_RIVAL_LAST = 300.0  # the largest beta of the search for a rival maximum
_RIVAL_LAST_NESTED = 30.0  # the same for machines whose saddle points take longer
OrderParameters = tuple[FloatArray, FloatArray]  # (q, V) of the visible layer


class Form(ABC):
    """The properties of a form that the searches use.

    Attributes
    ----------
    largest_beta : float
        The largest ``beta`` for which the saddle point is computed.
    last_beta : float
        The ``beta`` at which the scan for a maximum ends.
    two_phases : bool
        Whether a second phase may exist beside the one that continues from small beta.
    transition_value : float
        The layer correlation that is reported if the maximum has a closed form.
    """

    largest_beta: float = np.inf
    last_beta: float = _LAST
    two_phases: bool = False
    transition_value: float = -np.inf

    @abstractmethod
    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point; ``start`` is a guess of ``q_v``."""

    @abstractmethod
    def critical_beta(self, ensemble: Ensemble) -> FloatArray:
        """The ``beta`` of the spin-glass transition of two symmetric layers without biases, at which ``A B
        k2_v**2 k2_h**2 = 1`` ([Y25] eqn:spin-glass_transition_point for two spin layers).
        """

    def find_transition(self, ensemble: Ensemble) -> tuple[FloatArray, Any, FloatArray]:
        """`critical_beta`, the status of each machine whose beta_max it is, and the stability there."""
        labels = ensemble.visible.label or ensemble.hidden.label
        beta = self.critical_beta(ensemble)
        return beta, "edge (continuous)" if labels else "transition", np.zeros_like(beta)

    def phase_difference(self, ensemble: Ensemble) -> FloatArray:
        """The free energy of the second phase minus that of the phase that goes on from small beta; nan where
        there is one phase only.
        """
        return np.full(np.shape(ensemble.beta), np.nan)

    def maximized(self, ensemble: Ensemble, state: State) -> Array:
        """The quantity whose absolute value beta_max maximizes: the layer correlation, its slope, or the
        response of the overlap.
        """
        return correlation(state, ensemble.slope_v, ensemble.slope_h)

    def is_closed(self, ensemble: Ensemble) -> Array:
        """A mask of the machines whose beta_max is `critical_beta`, in closed form."""
        known = ensemble.visible.transition_known and ensemble.hidden.transition_known
        return np.asarray(ensemble.symmetric_v & ensemble.symmetric_h & known)

    def is_nested(self, ensemble: Ensemble) -> bool:
        """Whether a saddle point needs two nested searches."""
        return True

    def rival_limit(self, ensemble: Ensemble) -> float:
        """The largest beta of the search for a rival, if that is more than twice the beta of the maximum."""
        return 0.0

    def jump_status(self, ensemble: Ensemble) -> str:
        """The status of a machine whose layer correlation jumps."""
        return "jump"


class TwoBounded(Form):
    """Two layers of bounded units, such as spins and bits."""

    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point. If a layer has a fixed self-overlap, the overlap of that layer is solved for;
        ``start`` is used if this is the visible layer.
        """
        if ensemble.visible.fixed_self_overlap is not None:
            return solution_at(ensemble, _find_overlap(ensemble, start, tolerance))
        if ensemble.hidden.fixed_self_overlap is not None:
            other = ensemble.exchanged()
            return solution_at(other, _find_overlap(other, None, tolerance)).exchanged()
        return solution_at(ensemble, *find_two(ensemble, tolerance))

    def critical_beta(self, ensemble: Ensemble) -> FloatArray:
        """The spin-glass transition of two symmetric layers without biases."""
        scale = np.sqrt(ensemble.visible.free_square * ensemble.hidden.free_square)
        critical: FloatArray = np.sqrt((1.0 + ensemble.alpha) / (scale * np.sqrt(ensemble.alpha)))
        return critical

    def is_nested(self, ensemble: Ensemble) -> bool:
        """Whether both self-overlaps are unknown."""
        return ensemble.visible.fixed_self_overlap is None and ensemble.hidden.fixed_self_overlap is None

    def rival_limit(self, ensemble: Ensemble) -> float:
        """The largest beta of the search for a rival, if that is more than twice the beta of the maximum."""
        slow = self.is_nested(ensemble) or ensemble.spread_v is not None or ensemble.spread_h is not None
        return _RIVAL_LAST_NESTED if slow else _RIVAL_LAST


class GaussianHidden(Form):
    """A layer of bounded visible units beside a Gaussian hidden one."""

    largest_beta, last_beta, two_phases = LARGEST_BETA, _LAST_GAUSSIAN, True

    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point; if there are two phases, that of the lower free energy."""
        first, other = solve_against_gaussian(ensemble)
        q, variance = first
        if (other[0] != q).any():
            lower = _free_energy_difference(ensemble, first, other) < 0.0
            q, variance = np.where(lower, other[0], q), np.where(lower, other[1], variance)
        return solution_at(ensemble, q, variance)

    def critical_beta(self, ensemble: Ensemble) -> FloatArray:
        """The ``beta`` of the transition, at which ``k2_h = 1/(1/s - B k2_v)``; this gives ``beta**2 s k2_v =
        (1 + alpha)/(sqrt(alpha) + 1)``.
        """
        visible, scale = ensemble.visible, ensemble.hidden.tail
        weights = np.sqrt(ensemble.alpha * visible.free_square) + visible.free_variance
        critical: FloatArray = np.sqrt((1.0 + ensemble.alpha) / (scale * weights))
        return critical

    def phase_difference(self, ensemble: Ensemble) -> FloatArray:
        """The free energy of the second phase minus that of the phase that goes on from small beta; nan where
        there is one phase only.
        """
        first, other = solve_against_gaussian(ensemble)
        difference = _free_energy_difference(ensemble, first, other)
        return np.where(other[0] != first[0], difference, np.nan)


class GaussianVisible(GaussianHidden):
    """A Gaussian visible layer beside bounded hidden units, which is solved with the layers exchanged."""

    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point; if there are two phases, that of the lower free energy."""
        return super().solve(ensemble.exchanged(), None, tolerance).exchanged()

    def critical_beta(self, ensemble: Ensemble) -> FloatArray:
        """The ``beta`` of the transition, at which ``k2_v = 1/(1/s - A k2_h)``; this gives ``beta**2 s k2_h =
        (1 + alpha)/(sqrt(alpha) + alpha)``.
        """
        hidden, scale = ensemble.hidden, ensemble.visible.tail
        weights = np.sqrt(ensemble.alpha * hidden.free_square) + ensemble.alpha * hidden.free_variance
        critical: FloatArray = np.sqrt((1.0 + ensemble.alpha) / (scale * weights))
        return critical

    def phase_difference(self, ensemble: Ensemble) -> FloatArray:
        """The difference of the free energies of the machine with its layers exchanged, which is the same."""
        return super().phase_difference(ensemble.exchanged())

    def maximized(self, ensemble: Ensemble, state: State) -> Array:
        """The response of the overlap if the hidden units are not symmetric (bits; ``response.py`` says why),
        else the layer correlation or its slope.
        """
        if ensemble.hidden.symmetric:
            return super().maximized(ensemble, state)
        return overlap_answer(state, ensemble.symmetric_h)

    def jump_status(self, ensemble: Ensemble) -> str:
        """``"first-order"`` if the hidden units are not symmetric: the maximum is then a first-order
        transition at which they switch on.
        """
        return super().jump_status(ensemble) if ensemble.hidden.symmetric else "first-order"


class TwoGaussian(Form):
    """Two Gaussian layers, in closed form: beta_max is the edge at which the machine ceases to exist, and the
    layer correlation is zero up to there.
    """

    last_beta, transition_value = _LAST_GAUSSIAN, 0.0

    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point; raises ValueError beyond the edge."""
        return solution_at(ensemble, *solve_two_gaussians(ensemble))

    def critical_beta(self, ensemble: Ensemble) -> FloatArray:
        """The same ``beta`` as `gaussian_edge`; there is no transition at a smaller one."""
        root = np.sqrt(ensemble.alpha)
        weights = root + ensemble.alpha + 1.0 + root
        scale = ensemble.visible.tail * ensemble.hidden.tail
        critical: FloatArray = np.sqrt((1.0 + ensemble.alpha) / (scale * weights))
        return critical

    def find_transition(self, ensemble: Ensemble) -> tuple[FloatArray, Any, FloatArray]:
        """The edge of existence."""
        beta = self.critical_beta(ensemble)
        return beta, "edge", np.zeros_like(beta)

    def is_closed(self, ensemble: Ensemble) -> Array:
        """True for all machines."""
        return np.ones(np.shape(ensemble.alpha), dtype=bool)


class HiddenReLU(TwoBounded):
    """A layer of bounded visible units beside ReLU hidden ones, whose scale is the edge of the centred
    machine (``edge.py``).
    """

    transition_value = np.nan

    def solve(self, ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> Solution:
        """The saddle point of the machine as it is, not centred; raises ValueError if a hidden unit could
        grow without bound.
        """
        beyond = np.asarray(ensemble.coupling_h).real * ensemble.visible.largest_variance >= 1.0
        if beyond.any():
            scale = np.sqrt((1.0 + np.asarray(ensemble.alpha)) / ensemble.visible.largest_variance)
            raise ValueError(
                f"`beta` must be below sqrt((1 + alpha)/{ensemble.visible.largest_variance:g}) for "
                f"{ensemble.visible}-{ensemble.hidden} machines, {scale[beyond].flat[0]:g}, where single "
                f"hidden units grow without bound, got {np.asarray(ensemble.beta)[beyond].flat[0]:g}. "
                "`stability_edge` gives a scale."
            )
        return super().solve(ensemble, start, tolerance)

    def find_transition(self, ensemble: Ensemble) -> tuple[FloatArray, Any, FloatArray]:
        """The edge of the centred machine, its kind, and the stability of the centred machine there."""
        beta, kinds, gains = find_edges(ensemble)
        return beta, np.array([f"edge ({kind})" for kind in kinds], dtype=object), 1.0 - gains

    def is_closed(self, ensemble: Ensemble) -> Array:
        """True for all machines."""
        return np.ones(np.shape(ensemble.alpha), dtype=bool)


_HIDDEN_RELU = HiddenReLU()
_FORMS: dict[tuple[bool, bool], Form] = {  # whether the visible and the hidden layer are quadratic
    (False, False): TwoBounded(),
    (False, True): GaussianHidden(),
    (True, False): GaussianVisible(),
    (True, True): TwoGaussian(),
}


def form_of(ensemble: Ensemble) -> Form:
    """The form that a machine takes."""
    if ensemble.hidden.condenses:
        if ensemble.visible.quadratic:
            raise ValueError(
                f"`visible` must be spin, bit or categorical units beside {ensemble.hidden} units, got "
                f"{ensemble.visible} units: for two unbounded layers the theory has no scale."
            )
        return _HIDDEN_RELU
    return _FORMS[ensemble.visible.quadratic, ensemble.hidden.quadratic]


def solve_ensemble(ensemble: Ensemble, start: FloatArray | None = None, tolerance: float = 1e-10) -> Solution:
    """The saddle point of an ensemble; ``start`` is a guess of ``q_v``, which is used if the overlap of the
    visible layer is solved for.
    """
    return form_of(ensemble).solve(ensemble, start, tolerance)


def _free_energy_difference(ensemble: Ensemble, first: OrderParameters, other: OrderParameters) -> FloatArray:
    """The free energy of the other phase minus that of the first."""
    energies = (free_energy_density(solution_at(ensemble, *pair)) for pair in (other, first))
    difference: FloatArray = next(energies) - next(energies)
    return difference


def _find_overlap(ensemble: Ensemble, start: FloatArray | None, tolerance: float) -> FloatArray:
    """``q`` of a visible layer with a fixed self-overlap, found as one bracketed root."""
    upper = ensemble.visible.largest_square
    full = np.full(np.shape(ensemble.beta), upper)
    both_symmetric = ensemble.symmetric_v & ensemble.symmetric_h
    # Near zero F(x) = x A B k2(v)**2 k2(h)**2: in the paramagnetic phase there is no other root.
    loop_gain = ensemble.coupling_v * ensemble.coupling_h
    gain_at_zero = loop_gain * (ensemble.visible.free_square * ensemble.hidden.free_square)
    # The margin of 1e-15 keeps rounding from deciding the phase exactly at the transition.
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
        if vanishing.any():
            # F vanishes at the largest overlap; if it vanishes at the smallest one, too, q is zero in floats.
            unmagnetized |= vanishing & (around(ensemble, 0.0 * full, full)[0].overlap < NOTHING)
    q = find_root(evaluate, start, upper, skip=unmagnetized, linear=both_symmetric, tolerance=tolerance)
    return np.where(unmagnetized, 0.0, q)


def rough_overlap(ensemble: Ensemble, upper: float) -> FloatArray:
    """A cheap first guess at ``q_v``, with all hidden units in the mean of their field."""
    k1 = ensemble.hidden.mean(ensemble.c, 0.5 * upper * ensemble.coupling_h)
    field = ensemble.coupling_v * k1 * k1 + ensemble.b * ensemble.b
    return np.asarray(upper * field / (1.0 + field)) + 1e-290
