"""The saddle point of machines with a Gaussian layer, whose self-overlap is an unknown of its own.

Let the hidden layer be Gaussian with ``p0 = N(0, s)`` and variance ``T`` in the machine (``gaussian.py``).
It acts on the visible one through two numbers, the curvature ``A T/2`` and the variance of the field ``x =
qhat_v``. With ``V`` and ``q`` the resulting averages of the visible layer, the saddle point is

    1/T = 1/s - B V(x, T)              the Gaussian layer is narrowed or widened
    x = A T**2 (c**2 + B q(x, T))      and passes the overlap on

The second is one bracketed root for every ``T``, so that the first, left side minus right side, is a function
of ``T >= s`` alone. It starts positive and ends negative. If it has three roots, the first and the last are
two coexisting phases, and the middle one is not a phase. The first and the last root are returned; the caller
takes the one of lower free energy.

Two Gaussian layers are solved in closed form. They exist while the largest singular value of the weights
leaves the energy bounded, ``beta**2 s_v s_h < (1 + alpha)/(1 + sqrt(alpha))**2``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.theory.roots import find_root
from paramagnet.units import FloatArray

_GRID = 33  # number of widths T in the scan for brackets
_BLOCK = 8  # number of machines solved together
LARGEST_BETA = 60.0  # four times the last beta of a scan for a maximum; solutions were compared up to it
_MAX_ITERATIONS = 60


def gaussian_edge(ensemble: Ensemble) -> FloatArray:
    """The ``beta`` at which machines of two Gaussian layers cease to exist."""
    scale = ensemble.visible.tail * ensemble.hidden.tail
    edge: FloatArray = np.sqrt((1.0 + ensemble.alpha) / scale) / (1.0 + np.sqrt(ensemble.alpha))
    return edge


def solve_two_gaussians(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """``q`` and ``V`` of the visible layer, in closed form; ValueError if the machine does not exist."""
    edge = gaussian_edge(ensemble)
    beyond = ensemble.beta >= edge
    if np.any(beyond):
        which = np.flatnonzero(beyond)[0]
        limit, alpha, beta = (float(np.ravel(x)[which]) for x in (edge, ensemble.alpha, ensemble.beta))
        raise ValueError(
            f"`beta` must stay below {limit:.6g} for gaussian-gaussian machines with `alpha` = {alpha:g}: "
            "there the largest singular value of the weights makes them diverge, beta^2 = "
            f"(1 + alpha)/(1 + sqrt(alpha))^2 over the product of the variances; got {beta:g}."
        )
    s_v, s_h = ensemble.visible.tail, ensemble.hidden.tail
    a, b = ensemble.coupling_v * s_v * s_h, ensemble.coupling_h * s_v * s_h
    # T_v T_h/(s_v s_h) = p with p = (1 + a p)(1 + b p), the smaller root
    rest = 1.0 - a - b
    p = 2.0 / (rest + np.sqrt(rest * rest - 4.0 * a * b))
    width_v, width_h = s_v * (1.0 + a * p), s_h * (1.0 + b * p)
    gain_v, gain_h = ensemble.coupling_v * width_v**2, ensemble.coupling_h * width_h**2
    source = width_v**2 * ensemble.b**2 + gain_v * width_h**2 * ensemble.c**2
    q = source / (1.0 - gain_v * gain_h)
    return q, width_v


class _Reply(NamedTuple):
    """The visible layer at given widths ``T``, and the residual of the first equation."""

    layer: LayerAverages
    miss: FloatArray
    slope: FloatArray
    field: FloatArray


def solve_against_gaussian(ensemble: Ensemble) -> list[tuple[FloatArray, FloatArray]]:
    """``(q, V)`` of a visible layer of bounded units beside a Gaussian hidden one, first for the phase that
    continues from small ``beta``, then for the other phase if there is one (else the same again).
    """
    flat = ensemble.raveled()
    largest = float(np.max(flat.beta, initial=0.0)) * np.sqrt(ensemble.hidden.tail)
    if largest > LARGEST_BETA:
        raise ValueError(
            f"`beta` times the standard deviation of the Gaussian units must be at most {LARGEST_BETA:g}, "
            f"got {largest:g}. Choose a smaller `beta` or a smaller variance."
        )
    found = np.empty((2, 2, flat.beta.size))  # phase, order parameter, machine
    for i in range(0, flat.beta.size, _BLOCK):
        found[..., i : i + _BLOCK] = _solve_block(flat.select(slice(i, i + _BLOCK)))
    shape = ensemble.beta.shape
    return [(q.reshape(shape), variance.reshape(shape)) for q, variance in found]


def _solve_block(ensemble: Ensemble) -> FloatArray:
    """Solve a few machines at a time; blocks are small because all machines of one wait for the slowest."""
    steps = _upper_bound(ensemble)[:, None] * np.linspace(0.0, 1.0, _GRID)
    grid = replace(ensemble.select((slice(None), None)).broadcast_to(steps.shape), coarseness=1.7)
    falls = np.diff((_answer(grid, steps, None, 1e-3).miss > 0.0).astype(int), axis=1) < 0
    rows = np.arange(len(steps))
    columns = falls.argmax(axis=1), _GRID - 2 - falls[:, ::-1].argmax(axis=1)
    found = np.empty((2, 2, rows.size))
    for phase, column in enumerate(columns):
        if phase and (column == columns[0]).all():
            found[1] = found[0]
            continue
        low, high = steps[rows, column], steps[rows, column + 1]
        start = np.where(falls.any(axis=1), 0.5 * (low + high), 0.0)  # T = s without a bracket
        layer = _refine(ensemble, start, low, high)
        found[phase] = layer.overlap, layer.variance
    return found


def _upper_bound(ensemble: Ensemble) -> FloatArray:
    """The ``ln(T/s)`` above which there is no saddle point."""
    pull = ensemble.hidden.tail * ensemble.coupling_h * ensemble.visible.largest_variance
    bound = np.where(pull < 0.9, -np.log1p(-np.minimum(pull, 0.9)), np.log1p(4.0 / np.sqrt(ensemble.alpha)))
    bound = np.maximum(1.01 * bound, 1e-12)
    rough = replace(ensemble, coarseness=1.7)
    for _ in range(40):
        beyond = _answer(rough, bound, None, 1e-3).miss > 0.0
        if not beyond.any():
            break
        bound = np.where(beyond, 1.5 * bound, bound)
    return bound


def _answer(ensemble: Ensemble, step: FloatArray, start: FloatArray | None, tolerance: float) -> _Reply:
    """The visible layer beside a Gaussian one of width ``T = s exp(step)``."""
    prior = ensemble.hidden.tail
    coupling_v, coupling_h = ensemble.coupling_v, ensemble.coupling_h
    width = prior * np.exp(step)
    curvature = coupling_v * width  # twice the curvature, selfhat - qhat
    outer, gain = coupling_v * width * width, coupling_v * coupling_h * width * width
    source = outer * ensemble.c * ensemble.c
    upper = np.maximum(source + gain * ensemble.visible.largest_square, 1e-299)
    both_symmetric = ensemble.symmetric_v & (ensemble.c == 0.0)
    at_zero = gain * ensemble.visible.spread**4
    silent = (both_symmetric & (at_zero <= 1.0 + 1e-15)) | (upper <= 1e-290)

    def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        layer = ensemble.visible_layer(x, x + curvature, curvature)
        return source + gain * layer.overlap, gain * layer.covariance_slope

    guess = 0.5 * upper if start is None else start
    field = find_root(evaluate, guess, upper, skip=silent, linear=both_symmetric, tolerance=tolerance)
    field = np.where(silent, 0.0, field)
    layer = ensemble.visible_layer(field, field + curvature, curvature)
    (answer, cross), (to_field, to_curvature) = layer.jacobian
    moved = (2.0 * field + gain * curvature * cross) / np.where(silent, 1.0, 1.0 - gain * answer)
    slope = to_curvature * curvature + to_field * np.where(silent, 0.0, moved)
    pull = prior * coupling_h
    miss = np.expm1(-step) + pull * layer.variance
    return _Reply(layer, miss, pull * slope - np.exp(-step), field)


def _refine(ensemble: Ensemble, step: FloatArray, low: FloatArray, high: FloatArray) -> LayerAverages:
    """The layer at the root between ``low`` and ``high``, by Newton's method inside a shrinking bracket."""
    low, high = low.copy(), high.copy()
    field = None
    done = np.zeros(step.shape, dtype=bool)
    for _ in range(_MAX_ITERATIONS):
        answer = _answer(ensemble, step, field, 1e-10)
        field = np.maximum(answer.field, 1e-290)
        low, high = np.where(answer.miss > 0.0, step, low), np.where(answer.miss < 0.0, step, high)
        change = -answer.miss / np.where(answer.slope < 0.0, answer.slope, -1.0)
        inside = (answer.slope < 0.0) & (step + change >= low) & (step + change <= high)
        done |= (inside & (np.abs(change) <= 1e-16 + 1e-15 * step)) | (high - low <= 1e-16 + 2e-16 * high)
        if done.all():
            break
        step = np.where(done, step, np.where(inside, step + change, 0.5 * (low + high)))
    return answer.layer
