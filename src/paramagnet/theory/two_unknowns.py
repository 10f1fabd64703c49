"""The saddle point of two layers of unsymmetric units (bits), whose self-overlaps are both unknown.

The unknowns are the visible layer's overlap ``q`` and its variance ``V = Q - q = E[k2]``, which determines
the curvature of the hidden layer. At fixed ``V`` the overlap is one bracketed root, and ``V`` another one
around it. With the self-overlap ``Q`` as the unknown in place of ``V`` the curvature ``B (Q - q)/2`` would be
the difference of two numbers that deep in the glass agree to four digits and more, while ``B`` is large: the
inner root then jumps, and a root known to 1e-3 does not determine the layer correlation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.theory.roots import find_pair, find_root
from paramagnet.theory.solution import NOTHING, TOLERANCE, Matrix, around, mismatch, product
from paramagnet.units import FloatArray

_BLOCK = 8  # machines that are solved together; all machines of a block wait for the slowest one
_LOOSEST = 1e-5  # largest tolerance, that of a scan; each Newton step squares the error


def find_two(ensemble: Ensemble, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """``q`` and ``V`` of the visible layer, a few machines at a time."""
    q, variance = np.empty(ensemble.beta.shape), np.empty(ensemble.beta.shape)
    flat = ensemble.raveled()
    for i in range(0, q.size, _BLOCK):
        block = slice(i, i + _BLOCK)
        part = flat.select(block)
        found = _find_nested(part, min(tolerance, _LOOSEST))
        missed = _is_missed(part, *found, TOLERANCE if tolerance < _LOOSEST else _LOOSEST)
        if missed.any():
            again = part.select(missed)
            found[0][missed], found[1][missed] = _solve_anyhow(again, *(x[missed] for x in found))
        # Squares of the probabilities of units that are almost never 1 underflow before the probabilities do.
        q.flat[block], variance.flat[block] = (np.where(x > NOTHING, x, 0.0) for x in found)
    return q, variance


def _is_missed(ensemble: Ensemble, q: FloatArray, variance: FloatArray, tolerance: float) -> Any:
    """A mask of the machines whose residual is above the tolerance."""
    visible = around(ensemble, q, q + variance, variance)[0]
    return ~(mismatch(visible, q, q + variance) <= tolerance) & (visible.self_overlap > NOTHING)


def _jacobian(ensemble: Ensemble, visible: LayerAverages, hidden: LayerAverages) -> Matrix:
    """The derivatives of the new ``(q, V)`` in the old ones."""
    gain = ensemble.coupling_v * ensemble.coupling_h
    (a, b), (c, d) = product(visible.jacobian, hidden.jacobian)
    return (gain * a, gain * b), (gain * c, gain * d)


def _find_nested(ensemble: Ensemble, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """``q`` and ``V`` by two nested bracketed roots."""
    # Slightly above the largest possible values, so that rounding cannot push a root out of its bracket.
    largest_q, largest_v = 1.04 * ensemble.visible.largest_square, 1.04 * ensemble.visible.largest_variance
    full = np.full(np.shape(ensemble.beta), largest_q)
    nothing = np.zeros(np.shape(ensemble.beta), dtype=bool)
    first = around(ensemble, full, full)[0]
    memory = [first.overlap]

    def overlap_given(variance: FloatArray) -> FloatArray:
        def evaluate(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            visible, hidden = around(ensemble, q, q + variance, variance)
            return visible.overlap, _jacobian(ensemble, visible, hidden)[0][0]

        memory[0] = find_root(
            evaluate, memory[0], largest_q, skip=nothing, linear=nothing, tolerance=tolerance
        )
        return memory[0]

    def evaluate_outer(variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        q = overlap_given(variance)
        visible, hidden = around(ensemble, q, q + variance, variance)
        (f_q, f_v), (g_q, g_v) = _jacobian(ensemble, visible, hidden)
        # The inner root depends on the outer unknown: dq/dV = F_V/(1 - F_q).
        return visible.variance, g_v + g_q * f_v / (1.0 - f_q)

    variance = find_root(
        evaluate_outer, first.variance, largest_v, skip=nothing, linear=nothing, tolerance=tolerance
    )
    return overlap_given(variance), variance


def _solve_pair(ensemble: Ensemble, q: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve for both unknowns at once, by Newton's method from a starting point."""

    def evaluate(q: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, Matrix]:
        visible, hidden = around(ensemble, q, q + variance, variance)
        return visible.overlap, visible.variance, _jacobian(ensemble, visible, hidden)

    return find_pair(evaluate, q, variance)


def _solve_anyhow(ensemble: Ensemble, q: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve for both unknowns of machines that the nested search did not solve: by Newton's method from its
    result, from several other starting points, then along a path from small beta.
    """
    found = q.copy(), variance.copy()  # kept for machines that no attempt solves; their residual shows it
    missed = np.ones(q.shape, dtype=bool)

    def accept(candidate: tuple[FloatArray, FloatArray], part: Ensemble) -> None:
        good = ~_is_missed(part, *candidate, TOLERANCE)
        where = np.flatnonzero(missed)[good]
        found[0][where], found[1][where] = candidate[0][good], candidate[1][good]
        missed[where] = False

    accept(_solve_pair(ensemble, q, variance), ensemble)
    for start in (0.5, 0.9, 0.1, 0.99, 0.01):
        if not missed.any():
            return found
        part = ensemble.select(missed)
        full = np.full(part.beta.shape, start)
        accept(_solve_pair(part, 0.98 * full, 0.02 * full), part)
    if missed.any():
        part = ensemble.select(missed)
        path = np.full(part.beta.shape, 0.25), np.full(part.beta.shape, 0.25)
        for fraction in np.geomspace(1e-3, 1.0, 60):
            path = _solve_pair(part.at(fraction * part.beta), *path)
        accept(path, part)
    return found
