"""The scale of the initial weights: beta_max, where the layers are correlated most ([Y25]
eqn:def_beta_max, eqn:beta_max).

The maximum is the root of ``d ln|chi| / d ln beta``, found to about 1e-12; comparing values of ``chi``
would stop at 1e-8. A scan from small ``beta`` upwards makes it the first maximum. What a user should
know of it beyond the number is kept in `LayerCorrelationMaximum`: how sharp it is, whether the
replica-symmetric theory is stable there, and, where there is one, the rival at larger ``beta``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from paramagnet._checks import as_count
from paramagnet.theory.ensemble import Ensemble, as_bias, make_ensemble
from paramagnet.theory.formula import covers, evaluate_formula
from paramagnet.theory.response import follow_beta, maximized, stability_number, state_of
from paramagnet.theory.saddle import Solution, rough_overlap, solve_ensemble
from paramagnet.theory.selfoverlap import LARGEST as LARGEST_GAUSSIAN
from paramagnet.theory.selfoverlap import critical_beta
from paramagnet.theory.verdict import LayerCorrelationMaximum, judge
from paramagnet.units import BIT, SPIN, Array, FloatArray, GaussianUnit, Unit

_FIRST = 0.6  # the scan starts here; below, |chi| still grows
_RATIO = 1.16  # from one point of the scan to the next,
_FIRST_FINE, _FIRST_NESTED = 0.3, 0.05
_FINE_RATIO = 1.05  # and where there may be several maxima
_FINE_RATIO_NESTED = 1.12
_CHUNK = 16  # points solved at once: so many to begin with, half as many when that was not far enough
_LAST = 2000.0  # and where it gives up
_BLOCK = 21  # machines treated together
_FLAT = 0.7  # curvature of ln|chi| in ln(beta) below which a maximum is called flat
_RIVAL_LAST = 300.0  # how far a rival is looked for
_LAST_NESTED, _RIVAL_LAST_NESTED = 100.0, 30.0  # where saddle points take far longer
_LAST_GAUSSIAN = 15.0
_NEIGHBOURS = np.array([-1.0, 0.0, 1.0])
_TINY_BIAS = 1e-150  # no bias: too small for a derivative to be carried along
_TINY_BIAS_OF_TWO = 1e-7  # of two symmetric layers of equal size: moves their peak by 1e-14
_LARGE_BIAS = 3.0  # hidden bias up to which spin-bit machines were seen to have no rival maximum


class _Peak(NamedTuple):
    """A local maximum seen in the scan: bracket and first guess in ``ln beta``, curvature and height of
    ``ln|chi|``, ``ln q_v``.
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
    values = maximized(at, state_of(solution))
    return np.log(np.maximum(np.abs(values), 1e-320)), solution.q_v


def _quartic_peak(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where, in steps from the middle one, five equally spaced values have their maximum, and the
    second derivative there.
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


def _first_peak(ensemble: Ensemble, start: float, stop: float, ratio: float) -> _Peak:
    """The local maximum of ``|chi|`` of smallest beta on a grid from ``start`` to ``stop``; nan where
    there is none.
    """
    step, limit = np.log(ratio), np.log(LARGEST_GAUSSIAN) if _has_gaussian(ensemble) else np.inf
    n_machines = ensemble.alpha.shape[0]
    peak = _Peak(*(np.full(n_machines, np.nan) for _ in range(6)))
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
        near = np.log(overlaps[found][np.arange(middle.size)[:, None], middle[:, None] + np.arange(-1, 2)])
        slope, bend = 0.5 * (near[:, 2] - near[:, 0]), near[:, 2] - 2.0 * near[:, 1] + near[:, 0]
        peak.log_overlap[at] = near[:, 1] + offset * (slope + 0.5 * offset * bend)
        pending, values, overlaps = pending[~found], values[~found], overlaps[~found]
    return peak


def _known_peak(ensemble: Ensemble) -> _Peak:
    """The maximum where the explicit formula gives it to 1e-6."""
    guess = np.log(evaluate_formula(ensemble.alpha, ensemble.c))
    nothing = np.full(guess.shape, np.nan)
    log_overlap = np.log(rough_overlap(ensemble.at(np.exp(guess)), ensemble.visible.high**2))
    return _Peak(guess - 0.01, guess + 0.01, guess, np.full(guess.shape, -2.0), nothing, log_overlap)


def _refine(
    ensemble: Ensemble, peak: _Peak
) -> tuple[FloatArray, FloatArray, FloatArray, Solution, FloatArray, Array]:
    """The root of ``g = d ln|chi|/d ln beta`` within each peak's bracket: ``ln beta``, the layer
    correlation and the derivative of ``g`` there (the curvature), the solution at the last three points
    evaluated, how many of their distances the root is from the middle one, and whether ``g`` jumps
    through zero.

    Three neighbouring points, solved as one batch, give ``g`` and two derivatives: a Halley step, of
    third order, kept inside a shrinking bracket.
    """
    low, high, x = peak.low.copy(), peak.high.copy(), peak.guess.copy()
    curvature = peak.curvature
    done = np.zeros(x.shape, dtype=bool)
    jump = np.zeros(x.shape, dtype=bool)
    log_q, log_q_slope = peak.log_overlap, np.zeros_like(x)
    machines = ensemble.select((slice(None), None))
    change = np.zeros_like(x)
    for i in range(100):
        delta = np.minimum(1e-4, 2e-3 / np.sqrt(np.abs(curvature)))
        offsets = delta[:, None] * _NEIGHBOURS
        guess = np.exp(
            np.minimum(log_q + log_q_slope * change, 0.0)[:, None] + log_q_slope[:, None] * offsets
        )
        beta = np.exp(x[:, None] + offsets)
        alpha, b, c = (np.broadcast_to(a, beta.shape) for a in (machines.alpha, machines.b, machines.c))
        at = replace(machines, beta=beta, alpha=alpha, b=b, c=c)
        solution = solve_ensemble(at, guess, tolerance=3e-7)  # one more step follows: 1e-13
        motion = follow_beta(solution)
        slopes = motion.derivative / motion.value
        g, q = slopes[:, 1], solution.q_v[:, 1]
        first = (slopes[:, 2] - slopes[:, 0]) / (2.0 * delta)
        second = (slopes[:, 2] - 2.0 * g + slopes[:, 0]) / (delta * delta)
        log_q, log_q_slope = np.log(q), motion.overlap_derivative[:, 1] / q
        low, high = np.where(g > 0.0, x, low), np.where(g < 0.0, x, high)
        curvature = np.where(first < 0.0, first, curvature)
        halley = -2.0 * g * curvature / (2.0 * curvature * curvature - g * second)
        # far from Newton's step the two derivatives do not describe g: where g itself has an extremum,
        # Halley's step vanishes though g does not
        stride, newton = np.abs(halley), np.abs(g / curvature)
        inside = (x + halley > low) & (x + halley < high) & (first < 0.0)
        inside &= (stride > 0.5 * newton) & (stride < 2.0 * newton)
        inside &= np.abs(halley) < 0.75 * np.abs(change) if i else np.True_  # steps must shrink fast
        change = np.where(done, 0.0, np.where(inside | (g == 0.0), halley, 0.5 * (low + high) - x))
        close = (inside & (np.abs(curvature) * np.abs(halley) ** 3 < 1e-17)) | (g == 0.0)
        collapsed = high - low < 1e-13
        jump |= collapsed & ~close & ~done & (np.abs(g) > 1e-4)
        x = x + change
        done |= close | collapsed
        if done.all():
            break
    return x, motion.value[:, 1], curvature, solution, change / delta, jump


_FIELDS = ("beta", "value", "curvature", "stability", "rival")


def _find_transition(ensemble: Ensemble) -> dict[str, Any]:
    """Two symmetric layers without biases: the layer correlation diverges at the spin-glass transition."""
    alpha = ensemble.alpha
    result: dict[str, Any] = dict.fromkeys(_FIELDS)
    # [Y25] eqn:spin-glass_transition_point, eqn:beta-max-condition_ising
    result["beta"] = critical_beta(ensemble)
    result["value"] = result["curvature"] = np.full(alpha.shape, -np.inf)
    result["stability"] = np.zeros(alpha.shape)
    result["rival"] = np.full(alpha.shape, np.nan)
    result["status"] = np.full(alpha.shape, "transition", dtype=object)
    if _two_gaussians(ensemble):  # an edge, where the layer correlation is still zero
        result["value"], result["status"][...] = np.zeros(alpha.shape), "edge"
    return result


def _is_slow(ensemble: Ensemble) -> bool:
    """Whether a saddle point is two nested searches."""
    return _has_gaussian(ensemble) or not ensemble.visible.symmetric


def _rival_limit(ensemble: Ensemble) -> float:
    """How far a rival is looked for, if that is more than twice as far as the maximum."""
    if _has_gaussian(ensemble):
        return 0.0
    slow = _is_slow(ensemble) or ensemble.spread_v is not None or ensemble.spread_h is not None
    return _RIVAL_LAST_NESTED if slow else _RIVAL_LAST


def _has_gaussian(ensemble: Ensemble) -> bool:
    return isinstance(ensemble.visible, GaussianUnit) or isinstance(ensemble.hidden, GaussianUnit)


def _two_gaussians(ensemble: Ensemble) -> bool:
    return isinstance(ensemble.visible, GaussianUnit) and isinstance(ensemble.hidden, GaussianUnit)


def _find_maxima(ensemble: Ensemble, ratio: float) -> dict[str, Any]:
    """The first maxima of a block of machines (one-dimensional arrays), by a scan with steps of
    ``ratio``; rivals are looked for with fine steps.
    """
    shape = ensemble.alpha.shape
    result: dict[str, Any] = {name: np.full(shape, np.nan) for name in _FIELDS}
    status = result["status"] = np.full(shape, "none", dtype=object)
    nested = _is_slow(ensemble)
    first = _FIRST if ratio == _RATIO else _FIRST_NESTED if nested else _FIRST_FINE
    for unit, bias in ((ensemble.visible, ensemble.b), (ensemble.hidden, ensemble.c)):
        if isinstance(unit, GaussianUnit):  # its mean is its bias: the maximum moves down as one over it
            first = min(first, 1.0 / max(float(np.abs(bias).max()), 1.0))
    known = (ensemble.visible, ensemble.hidden) == (SPIN, BIT)
    if known and ratio == _RATIO and covers(ensemble.alpha, ensemble.c).all():
        peak = _known_peak(ensemble)
    else:
        last = _LAST_GAUSSIAN if _has_gaussian(ensemble) else _LAST_NESTED if nested else _LAST
        peak = _first_peak(ensemble, first, last, ratio)
    where = np.flatnonzero(np.isfinite(peak.guess))
    if not where.size:
        return result
    machines, peak = ensemble.select(where), _Peak(*(array[where] for array in peak))
    log_beta, value, curvature, solution, shift, jump = _refine(machines, peak)
    result["beta"][where] = np.exp(log_beta)
    result["curvature"][where] = curvature
    stability = stability_number(
        solution
    )  # at three neighbouring points; the root is `shift` from the middle
    result["stability"][where] = stability[:, 1] + 0.5 * shift * (stability[:, 2] - stability[:, 0])
    result["value"][where] = value
    rival = result["rival"]
    if ratio < _RATIO:
        for i in np.flatnonzero(~jump):
            start = float(np.exp(peak.high[i]))
            stop = max(2.0 * start, _rival_limit(ensemble))
            rival[where[i]] = _higher_maximum(machines.select([i]), start, stop, peak.height[i], ratio)
    status[where] = "maximum"
    status[where[curvature > -_FLAT]] = "flat"
    status[np.isfinite(rival)] = "rival"
    status[result["stability"] < 0.0] = "unstable"
    status[where[jump]] = "first-order" if isinstance(ensemble.visible, GaussianUnit) else "jump"
    return result


def _higher_maximum(machine: Ensemble, start: float, stop: float, height: float, ratio: float) -> float:
    """The beta of a maximum between ``start`` and ``stop`` higher than ``height`` (a logarithm), or nan."""
    while start < stop:
        peak = _first_peak(machine, start, stop, ratio)
        if not np.isfinite(peak.guess[0]):
            break
        if peak.height[0] > height:
            return float(np.exp(peak.guess[0]))
        start = float(np.exp(peak.high[0]))
    return np.nan


def _without_tiny_biases(ensemble: Ensemble) -> Ensemble:
    """Biases that change nothing become zero; between two symmetric layers these are larger, since their
    peak is the transition but for the square of the bias, and narrower than floats can tell.
    """
    sizes = np.abs(ensemble.b), np.abs(ensemble.c)
    limit = np.full(np.shape(ensemble.alpha), _TINY_BIAS)
    if ensemble.visible.symmetric and ensemble.hidden.symmetric:
        pair = _TINY_BIAS_OF_TWO * np.minimum(np.sqrt(ensemble.alpha), 1.0 / np.sqrt(ensemble.alpha))
        limit = np.where((sizes[0] < pair) & (sizes[1] < pair), pair, limit)
    if not ((sizes[0] < limit) | (sizes[1] < limit)).any():
        return ensemble
    b, c = (np.where(np.abs(bias) < limit, 0.0, bias) for bias in (ensemble.b, ensemble.c))
    return replace(ensemble, b=b, c=c)


def find_beta_max(
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> LayerCorrelationMaximum:
    """The maximum of the layer correlation of smallest beta, with its curvature, stability and status;
    never raises for want of one.
    """
    given = make_ensemble(1.0, alpha, visible=visible, hidden=hidden, b=b, c=c, empty=True)
    shape = np.shape(given.alpha)
    ensemble, scale = given.raveled().standardized()
    ensemble = _without_tiny_biases(ensemble)
    if ensemble.hidden.symmetric and not ensemble.visible.symmetric:
        ensemble = ensemble.exchanged()
    closed = np.asarray((ensemble.symmetric_v & ensemble.symmetric_h) | _two_gaussians(ensemble))
    ordinary = np.asarray(
        ensemble.symmetric_v & (not ensemble.hidden.symmetric) & (ensemble.c <= _LARGE_BIAS)
    )
    if ensemble.spread_h is not None:
        ordinary[...] = False
    fine = _FINE_RATIO_NESTED if _is_slow(ensemble) else _FINE_RATIO
    fields: dict[str, Any] = {name: np.empty(ensemble.alpha.shape) for name in _FIELDS}
    fields["status"] = np.empty(ensemble.alpha.shape, dtype=object)

    def fill(which: Any, part: dict[str, Any]) -> None:
        for name, values in part.items():
            fields[name][which] = values

    if closed.any():
        fill(closed, _find_transition(ensemble.select(closed)))
    for group, ratio, size in ((ordinary, _RATIO, _BLOCK), (~ordinary & ~closed, fine, 8)):
        members = np.flatnonzero(group)
        for i in range(0, members.size, size):
            block = members[i : i + size]
            fill(block, _find_maxima(ensemble.select(block), ratio))
    if scale != 1.0:
        _rescale(fields, given)
    for name, values in fields.items():
        fields[name] = values.reshape(shape)
        if not shape:
            fields[name] = values.item()
    arrays = {
        name: getattr(given, name) if shape else float(getattr(given, name)) for name in ("alpha", "b", "c")
    }
    arrays |= {name: spread for name, spread in (("b", given.spread_v), ("c", given.spread_h)) if spread}
    return LayerCorrelationMaximum(visible=given.visible, hidden=given.hidden, **arrays, **fields)


def _rescale(fields: dict[str, Any], given: Ensemble) -> None:
    """From Gaussian units of variance 1 back to those given, in place."""
    by_overlap = not (given.visible.symmetric and given.hidden.symmetric)
    for unit, symmetric in ((given.visible, given.symmetric_v), (given.hidden, given.symmetric_h)):
        if isinstance(unit, GaussianUnit):
            fields["beta"], fields["rival"] = (fields[k] / np.sqrt(unit.variance) for k in ("beta", "rival"))
            fields["value"] *= np.where(
                np.ravel(symmetric) | by_overlap, unit.variance, np.sqrt(unit.variance)
            )


def beta_max(
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """The ``beta`` at which the layers of a random machine are correlated most; a float, or an array
    (arguments broadcast).

    ``alpha`` is the ratio of the layer sizes, hidden to visible; ``b`` and ``c`` are the biases of the
    visible and hidden units. Weights drawn from N(0, beta_max**2/(n + m)) are the paper's
    initialization. Of several maxima the one of smallest beta is taken.

    Where the maximum does not exist a `NoMaximumError` is raised; where it is doubtful a
    `MaximumWarning`, and where the replica-symmetric theory is unstable a `ReplicaSymmetryWarning` is
    given. `find_beta_max` returns the same number with all that is known about it.
    """
    result = find_beta_max(alpha, visible=visible, hidden=hidden, b=b, c=c)
    judge(result)
    return result.beta


def weight_std(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    hidden_bias: float = 0.0,
) -> float:
    """The standard deviation of the initial weights, ``beta_max/sqrt(n_visible + n_hidden)``, of a
    machine without visible biases.
    """
    n = as_count(n_visible, "n_visible")
    m = as_count(n_hidden, "n_hidden")
    result = find_beta_max(m / n, visible=visible, hidden=hidden, c=as_bias(hidden_bias, "hidden_bias"))
    judge(result)
    return float(result.beta / np.sqrt(n + m))
