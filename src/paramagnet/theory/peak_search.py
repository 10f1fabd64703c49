"""The search for a maximum of the layer correlation: a scan that brackets it, and the root of ``d ln|chi| / d
ln beta`` within the bracket.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.forms import form_of, rough_overlap, solve_ensemble
from paramagnet.theory.formula import evaluate_formula
from paramagnet.theory.layers.unit_theory import LayerAverages
from paramagnet.theory.solution import NOTHING, Solution, State, apply, solve_loop, state_of
from paramagnet.units import Array, FloatArray

_CHUNK = 16  # points of the scan solved at once in the first batch; later batches have half as many
_PATIENCE = 4  # failed steps after which a first-order transition is searched for
_ASIDE = 1e-12  # distance in ln(beta) below a first-order transition, in the phase of small beta
_NEIGHBOURS = np.array([-1.0, 0.0, 1.0])
_IMAGINARY_STEP = 1e-25


class Peak(NamedTuple):
    """A local maximum found by the scan: its bracket and first guess in ``ln beta``, the curvature and the
    height of ``ln|chi|``, and ``ln q_v``.
    """

    low: FloatArray
    high: FloatArray
    guess: FloatArray
    curvature: FloatArray
    height: FloatArray
    log_overlap: FloatArray


def _scan_values(ensemble: Ensemble, log_beta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``ln|chi|`` and ``q_v`` on a grid; ``ensemble`` holds a column of machines, ``log_beta`` a row."""
    beta, alpha, b, c = np.broadcast_arrays(np.exp(log_beta), ensemble.alpha, ensemble.b, ensemble.c)
    at = replace(ensemble, beta=beta, alpha=alpha, b=b, c=c, coarseness=1.7)
    solution = solve_ensemble(at, tolerance=1e-3)
    values = form_of(at).maximized(at, state_of(solution))
    return np.log(np.maximum(np.abs(values), NOTHING)), solution.q_v


def _quartic_peak(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The position of the maximum of five equally spaced values, in steps from the middle one, and the second
    derivative there.
    """
    left2, left, middle, right, right2 = values.T
    a1 = (left2 - 8.0 * left + 8.0 * right - right2) / 12.0
    a2 = (-left2 + 16.0 * left - 30.0 * middle + 16.0 * right - right2) / 24.0
    a3 = (-left2 + 2.0 * left - 2.0 * right + right2) / 12.0
    a4 = (left2 - 4.0 * left + 6.0 * middle - 4.0 * right + right2) / 24.0
    parabola = left - 2.0 * middle + right
    t = np.clip(0.5 * (left - right) / np.minimum(parabola, -1e-300), -0.9, 0.9)
    for _ in range(2):
        second = 2.0 * a2 + t * (6.0 * a3 + 12.0 * a4 * t)
        first = a1 + t * (2.0 * a2 + t * (3.0 * a3 + 4.0 * a4 * t))
        t = np.clip(t - first / np.where(second < 0.0, second, np.minimum(parabola, -1e-300)), -0.95, 0.95)
    second = 2.0 * a2 + t * (6.0 * a3 + 12.0 * a4 * t)
    return t, np.where(second < 0.0, second, np.minimum(parabola, -1e-300))


def first_peak(ensemble: Ensemble, start: float, stop: float, ratio: float) -> Peak:
    """The local maximum of ``|chi|`` of smallest beta on a grid from ``start`` to ``stop``; nan for machines
    without one.
    """
    step, limit = np.log(ratio), np.log(form_of(ensemble).largest_beta)
    n_machines = ensemble.alpha.shape[0]
    peak = Peak(*(np.full(n_machines, np.nan) for _ in range(6)))
    pending = np.arange(n_machines)
    grid = np.empty(0)
    values = overlaps = np.empty((n_machines, 0))
    while pending.size and (not grid.size or grid[-1] < np.log(stop)):
        chunk = _CHUNK // 2 if grid.size else _CHUNK
        more = np.log(start) + step * np.arange(grid.size, grid.size + chunk)
        more = more[more <= limit]
        if not more.size or grid.size + more.size < 5:
            break
        new_values, new_overlaps = _scan_values(ensemble.select((pending, None)), more)
        values = np.concatenate([values, new_values], axis=1)
        overlaps = np.concatenate([overlaps, new_overlaps], axis=1)
        grid = np.concatenate([grid, more])
        inner = values[:, 2:-2]
        is_peak = (inner >= values[:, 1:-3]) & (inner > values[:, 3:-1])
        found = is_peak.any(axis=1)
        middle = 2 + is_peak[found].argmax(axis=1)
        five = values[found][np.arange(middle.size)[:, None], middle[:, None] + np.arange(-2, 3)]
        offset, second = _quartic_peak(five)
        at = pending[found]
        peak.low[at], peak.high[at] = grid[middle - 1], grid[middle + 1]
        peak.guess[at] = grid[middle] + step * offset
        peak.curvature[at] = second / step**2
        peak.height[at] = five[:, 2]
        near = overlaps[found][np.arange(middle.size)[:, None], middle[:, None] + np.arange(-1, 2)]
        near = np.log(np.maximum(near, NOTHING))
        slope, bend = 0.5 * (near[:, 2] - near[:, 0]), near[:, 2] - 2.0 * near[:, 1] + near[:, 0]
        peak.log_overlap[at] = near[:, 1] + offset * (slope + 0.5 * offset * bend)
        pending, values, overlaps = pending[~found], values[~found], overlaps[~found]
    return peak


def known_peak(ensemble: Ensemble) -> Peak:
    """The maximum of machines for which the explicit formula gives it to 1e-6."""
    guess = np.log(evaluate_formula(ensemble.alpha, ensemble.c))
    nothing = np.full(guess.shape, np.nan)
    log_overlap = np.log(rough_overlap(ensemble.at(np.exp(guess)), ensemble.visible.largest_square))
    return Peak(guess - 0.01, guess + 0.01, guess, np.full(guess.shape, -2.0), nothing, log_overlap)


class Motion(NamedTuple):
    """The quantity that beta_max maximizes, and the derivatives of it and of the visible overlap in ``ln
    beta``.
    """

    value: FloatArray
    derivative: FloatArray
    overlap_derivative: FloatArray


def follow_beta(solution: Solution) -> Motion:
    """The quantity that beta_max maximizes, and its total derivative in ``ln beta``.

    The change of the saddle point with ``beta`` follows from one linear solve and is carried, as a tiny
    imaginary part, through the same formulas. This is exact to rounding, unlike a difference quotient.
    """
    e = solution.ensemble
    beta = e.beta + 1j * _IMAGINARY_STEP * e.beta
    moved = e.at(beta)
    visible, hidden = solution.visible, solution.hidden
    # Per relative change of beta the couplings change by 2A and 2B:
    # dx_h = 2 x_h + B dy_v, dx_v = 2 x_v + A dy_h.
    x_v, x_h = visible.hats, hidden.hats
    forced_v = apply(visible, (2.0 * x_v[0], 2.0 * x_v[1]))
    forced_h = apply(
        hidden, (2.0 * x_h[0] + e.coupling_h * forced_v[0], 2.0 * x_h[1] + e.coupling_h * forced_v[1])
    )
    dy_h = solve_loop(e.coupling_v * e.coupling_h, hidden, visible, forced_h)
    dx_v = (2.0 * x_v[0] + e.coupling_v * dy_h[0], 2.0 * x_v[1] + e.coupling_v * dy_h[1])
    dy_v = apply(visible, dx_v)
    dx_h = (2.0 * x_h[0] + e.coupling_h * dy_v[0], 2.0 * x_h[1] + e.coupling_h * dy_v[1])
    state = State(
        e.alpha,
        moved.coupling_v,
        moved.coupling_h,
        e.visible_layer(*_moved(visible, dx_v)),
        e.hidden_layer(*_moved(hidden, dx_h)),
    )
    answer = form_of(e).maximized(e, state)
    return Motion(answer.real, answer.imag / _IMAGINARY_STEP, dy_v[0])


def _moved(layer: LayerAverages, change: tuple[Array, Array]) -> tuple[Array, Array, Array | None]:
    """``qhat``, ``selfhat`` and, if the layer was given one, the gap, with an infinitesimal change."""
    step_q, step = 1j * _IMAGINARY_STEP * change[0], 1j * _IMAGINARY_STEP * change[1]
    if layer.by_variance:
        return layer.qhat + step_q, layer.selfhat + (step_q + step), layer.gap + step
    return layer.qhat + step_q, layer.selfhat + step, None


def refine(
    ensemble: Ensemble, peak: Peak
) -> tuple[FloatArray, FloatArray, FloatArray, Solution, FloatArray, Array]:
    """The root of ``g = d ln|chi|/d ln beta`` within each peak's bracket.

    The result holds ``ln beta``, the layer correlation and the derivative of ``g`` there (the curvature), the
    solution at the last three points evaluated, the distance of the root from the middle one in units of
    their spacing, and whether ``g`` jumps through zero. The layer correlation is nan if ``g`` has no root.

    Three neighbouring points, solved as one batch, give ``g`` and two derivatives, hence a Halley step of
    third order, which is kept inside a shrinking bracket. If such steps fail repeatedly, there may be a
    first-order transition in the bracket, and its beta is tried.
    """
    low, high, x = peak.low.copy(), peak.high.copy(), peak.guess.copy()
    curvature = peak.curvature
    done = np.zeros(x.shape, dtype=bool)
    jump = np.zeros(x.shape, dtype=bool)
    log_q, log_q_slope = peak.log_overlap, np.zeros_like(x)
    machines = ensemble.select((slice(None), None))
    change = np.zeros_like(x)
    two_phases = form_of(ensemble).two_phases
    failures, crossing = np.zeros(x.shape, dtype=int), np.full_like(x, np.nan)
    for i in range(100):
        delta = np.minimum(1e-4, 2e-3 / np.sqrt(np.abs(curvature)))
        offsets = delta[:, None] * _NEIGHBOURS
        moved = np.minimum(log_q + log_q_slope * change, 0.0)[:, None]
        guess = np.exp(np.minimum(moved + log_q_slope[:, None] * offsets, 1.0))
        beta = np.exp(x[:, None] + offsets)
        alpha, b, c = (np.broadcast_to(a, beta.shape) for a in (machines.alpha, machines.b, machines.c))
        at = replace(machines, beta=beta, alpha=alpha, b=b, c=c)
        solution = solve_ensemble(at, guess, tolerance=3e-7)  # one more step follows and gives 1e-13
        motion = follow_beta(solution)
        slopes = motion.derivative / np.where(motion.value == 0.0, 1.0, motion.value)
        g, q = slopes[:, 1], solution.q_v[:, 1]
        first = (slopes[:, 2] - slopes[:, 0]) / (2.0 * delta)
        second = (slopes[:, 2] - 2.0 * g + slopes[:, 0]) / (delta * delta)
        q = np.maximum(q, NOTHING)
        log_q, log_q_slope = np.log(q), motion.overlap_derivative[:, 1] / q
        low, high = np.where(g > 0.0, x, low), np.where(g < 0.0, x, high)
        if two_phases:
            crossed = (x == crossing) & (slopes[:, 0] > 0.0) & (slopes[:, 2] < 0.0)
            low, high = np.where(crossed, x, low), np.where(crossed, x, high)
        curvature = np.where(first < 0.0, first, curvature)
        halley = -2.0 * g * curvature / (2.0 * curvature * curvature - g * second)
        # A Halley step that differs much from Newton's step is not taken: near an extremum of g it vanishes
        # although g does not, and the two derivatives do not describe g.
        stride, newton = np.abs(halley), np.abs(g / curvature)
        inside = (x + halley > low) & (x + halley < high) & (first < 0.0)
        inside &= (stride > 0.5 * newton) & (stride < 2.0 * newton)
        inside &= np.abs(halley) < 0.75 * np.abs(change) if i else np.True_  # steps must shrink by 1/4
        change = np.where(done, 0.0, np.where(inside | (g == 0.0), halley, 0.5 * (low + high) - x))
        close = (inside & (np.abs(curvature) * np.abs(halley) ** 3 < 1e-17)) | (g == 0.0)
        collapsed = high - low < 1e-13
        jump |= collapsed & ~close & ~done & (np.abs(g) > 1e-4)
        x = x + change
        done |= close | collapsed
        if np.count_nonzero(done) == done.size:
            break
        if two_phases:
            failures = np.where(inside | done, 0, failures + 1)
            for k in np.flatnonzero((failures > 0) & (failures % _PATIENCE == 0)):
                crossing[k] = _phase_crossing(ensemble.select([k]), low[k], high[k])
                x[k] = crossing[k] if np.isfinite(crossing[k]) else x[k]
    value = motion.value[:, 1]
    if np.count_nonzero(jump):  # if the jump lies at an end of the bracket, g does not change sign there
        value = np.where(jump & ((low == peak.low) | (high == peak.high)), np.nan, value)
    return x, value, curvature, solution, change / delta, jump


def _phase_crossing(machine: Ensemble, low: float, high: float) -> float:
    """The ``ln beta`` between ``low`` and ``high`` at which two phases have the same free energy, minus
    `_ASIDE`, by the Illinois method; nan if the phases do not coexist at both ends, or if the same phase has
    the lower free energy at both.
    """

    def difference(*log_beta: float) -> FloatArray:
        beta = np.exp(np.array(log_beta))
        return form_of(machine).phase_difference(machine.broadcast_to(beta.shape).at(beta))

    far, near = low, high
    at_far, at_near = difference(far, near)
    if not at_far * at_near < 0.0:  # also true for nan
        return np.nan
    for _ in range(60):
        x = (far * at_near - near * at_far) / (at_near - at_far)
        (at_x,) = difference(x)
        if np.isnan(at_x) or at_x == 0.0 or abs(x - near) < 2e-15:
            return x - _ASIDE if np.isfinite(at_x) else np.nan
        far, at_far = (near, at_near) if at_x * at_near < 0.0 else (far, 0.5 * at_far)
        near, at_near = x, at_x
    return near - _ASIDE


def higher_maximum(machine: Ensemble, start: float, stop: float, height: float, ratio: float) -> float:
    """The beta of a maximum between ``start`` and ``stop`` whose ``ln|chi|`` is above ``height``, or nan."""
    while start < stop:
        peak = first_peak(machine, start, stop, ratio)
        if not np.isfinite(peak.guess[0]):
            break
        if peak.height[0] > height:
            return float(np.exp(peak.guess[0]))
        start = float(np.exp(peak.high[0]))
    return np.nan
