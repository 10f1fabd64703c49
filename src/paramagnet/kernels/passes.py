"""Single passes over as many numbers as a machine has parameters.

For large machines such a pass takes as long as its memory: what NumPy does in five, with an array of its own
for each, is done in one. Every number is rounded as NumPy would, so the results are the same bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paramagnet.kernels.jit import kernel, part


@kernel
def follow_adam(
    gradient: Any,
    first: Any,
    second: Any,
    settings: tuple[float, float, float, float],
    new_first: Any,
    new_second: Any,
    direction: Any,
) -> None:
    """Running averages of the gradient and of its square, and the direction that follows from them.

    ``settings`` are the shares of the two averages that are kept, then ``scale`` and ``epsilon`` of the
    direction ``first / (scale * sqrt(second) + epsilon)``.
    """
    keep_first, keep_second, scale, epsilon = settings
    for i in range(gradient.size):
        g = gradient[i]
        mean = keep_first * first[i] + (1.0 - keep_first) * g
        square = keep_second * second[i] + (1.0 - keep_second) * (g * g)
        new_first[i], new_second[i] = mean, square
        direction[i] = mean / (scale * math.sqrt(square) + epsilon)


@kernel
def average_parts(parts: Any, divisor: float, out: Any) -> None:
    """The sum of the rows of ``parts``, added in order in the precision of ``out``, over ``divisor``."""
    for i in range(out.size):
        out[i] = parts[0, i]
    for k in range(1, parts.shape[0]):
        for i in range(out.size):
            out[i] += parts[k, i]
    for i in range(out.size):
        out[i] /= divisor


@kernel
def scale_and_shift(products: Any, factor: float, shifts: Any, out: Any) -> None:
    """``out[i, j] = factor * products[i, j] + shifts[i]``, in the precision of ``out``."""
    for i in range(out.shape[0]):
        shift = shifts[i]
        for j in range(out.shape[1]):
            out[i, j] = factor * products[i, j] + shift


@kernel
def gather_states(high: Any, chosen: Any, levels: tuple[float, float], out: Any) -> None:
    """The states of the chosen points in float32; ``high`` says which units of which points are high."""
    low, up = np.float32(levels[0]), np.float32(levels[1])
    for i in range(chosen.size):
        row, to = high[chosen[i]], out[i]
        for j in range(row.size):
            to[j] = up if row[j] else low


@kernel
def sum_rows(
    states: Any, factors: Any, means: Any, visible: Any, hidden: Any, n_points: int, of_points: Any
) -> None:
    """Sums over the rows: of ``factors[i] * states[i]`` into ``visible``, of ``means[i]`` into ``hidden``.

    The latter sum over the first ``n_points`` rows alone goes into ``of_points``, unless that is empty.
    """
    for j in range(visible.size):
        visible[j] = 0.0
    for j in range(hidden.size):
        hidden[j] = 0.0
    for i in range(states.shape[0]):
        row, factor = states[i], np.float64(factors[i])
        for j in range(row.size):
            visible[j] += factor * row[j]
        row = means[i]
        for j in range(row.size):
            hidden[j] += row[j]
        if of_points.size and i + 1 == n_points:
            for j in range(hidden.size):
                of_points[j] = hidden[j]


@part
def _copy(source: Any, target: Any) -> None:
    """Copy one row: what is written next may lie where it was."""
    for j in range(target.size):
        target[j] = source[j]


@part
def _find_direction(
    slope: Any, rule: tuple[float, ...], first: Any, second: Any, new_first: Any, new_second: Any
) -> None:
    """The direction in place of the ``slope``, and the new slots.

    ``rule`` is that of `paramagnet.learning.optimizers.fused_rule`.
    """
    kind, keep_first, keep_second, scale, epsilon = rule[0], rule[1], rule[2], rule[3], rule[4]
    if kind == 2.0:
        for j in range(slope.size):
            g = slope[j]
            mean = keep_first * first[j] + (1.0 - keep_first) * g
            square = keep_second * second[j] + (1.0 - keep_second) * (g * g)
            new_first[j], new_second[j] = mean, square
            slope[j] = mean / (scale * math.sqrt(square) + epsilon)
    elif kind == 1.0:
        for j in range(slope.size):
            velocity = keep_first * first[j] + slope[j]
            new_first[j] = velocity
            slope[j] = velocity


@part
def _move(slope: Any, rate: float, keep: float, before: Any, after: Any, narrow: Any, sizes: Any) -> None:
    """The parameters of one row, their float32 copies, and their squares added to ``sizes``."""
    for j in range(slope.size):
        moved = rate * slope[j] + keep * before[j]
        after[j] = moved
        narrow[j] = moved
        sizes[j] += moved * moved


@part
def _move_and_shrink(
    slope: Any, rate: float, keep: float, thresholds: Any, before: Any, after: Any, narrow: Any, sizes: Any
) -> None:
    """The same with ``thresholds`` taken off the sizes of the weights, which end at zero."""
    for j in range(slope.size):
        moved = rate * slope[j] + keep * before[j]
        left = max(abs(moved) - thresholds[j], 0.0)
        moved = math.copysign(left, moved)
        after[j] = moved
        narrow[j] = moved
        sizes[j] += moved * moved


@kernel
def sum_sizes(rows: Any, out: Any) -> None:
    """Add the sizes of the numbers of each column of ``rows`` to ``out``, row by row."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(row.size):
            out[j] += abs(row[j])


@part
def _centre(row: Any, mu: float, of_hidden: Any, of_visible: float, lam: Any, slope: Any) -> None:
    """The slope of one row in centred coordinates."""
    for j in range(slope.size):
        slope[j] = row[j] - (mu * of_hidden[j] + of_visible * lam[j])


@part
def _sum_changes(before: Any, after: Any, lam: Any, mu: float, across: Any, products: Any) -> float:
    """The sum of the changes of one row with ``lam``; the changes times ``mu`` are added to ``across``.

    The upper half of the ``products`` is added to the lower one until few are left: a sum number by number
    takes three times as long.
    """
    for j in range(after.size):
        change = after[j] - before[j]
        across[j] += mu * change
        products[j] = lam[j] * change
    left = after.size
    while left > 8:
        half = left // 2
        lower, upper = products[:half], products[left - half : left]
        for j in range(half):
            lower[j] += upper[j]
        left -= half
    total = 0.0
    for j in range(left):
        total += products[j]
    return total


@kernel
def move_weights(
    gradient: Any,
    rows: tuple[int, int],
    rule: tuple[float, ...],
    offsets: tuple[Any, Any, Any, Any] | None,
    old: Any,
    new: Any,
    in_place: bool,
    thresholds: Any,
    weights: Any,
    sums: tuple[Any, Any],
    norms: Any,
) -> None:
    """One step of an optimizer for some rows of the weights: parameters and slots in float64, and the weights
    once more in float32.

    ``gradient`` holds the slope of these ``rows`` (from the first number to the second). ``rule`` is that of
    `paramagnet.learning.optimizers.fused_rule`, then the learning rate and the share that weight decay
    leaves. ``offsets`` are ``mu, lam, g_b, g_c``: the slope is ``gradient - mu_i g_c_j - g_b_i lam_j``; it is
    the gradient itself without them. The sums of the changes of the weights, decay included, with ``lam`` go
    to ``sums[0]``, those with ``mu`` are added to ``sums[1]``. ``old`` and ``new`` are the vectors of
    parameters and of two slots, which may be empty; where they are the same arrays (``in_place``) a row is
    copied first, because the compiler makes no vectors of loops whose arrays overlap. ``thresholds``, one for
    each column, are taken off the sizes of the moved weights. ``norms`` are the sum of the squared
    parameters, and that of the squared slope. Where there are no ``offsets`` or ``thresholds`` they are None,
    and what they need is not compiled.
    """
    m = gradient.shape[1]
    rate, keep, n_slots = rule[5], rule[6], int(rule[0])
    slope, sizes, squares = np.empty(m), np.zeros(m), np.zeros(m)
    room, none, products = np.empty((3, m)), np.empty(0), np.empty(m)
    for i in range(rows[0], rows[1]):
        at, end = i * m, (i + 1) * m
        row, narrow, after = gradient[i - rows[0]], weights[i], new[0][at:end]
        new_first = new[1][at:end] if n_slots > 0 else none
        new_second = new[2][at:end] if n_slots > 1 else none
        if offsets is not None:
            mu, lam, of_visible, of_hidden = offsets
            _centre(row, mu[i], of_hidden, of_visible[i], lam, slope)
        else:
            for j in range(m):
                slope[j] = row[j]
        for j in range(m):  # a sum per column: a sum over columns would be made number by number
            squares[j] += slope[j] * slope[j]
        before, first, second = old[0][at:end], old[1][at:end], old[2][at:end]
        if in_place:
            for k in range(1 + n_slots):
                _copy(old[k][at:end], room[k])
            before, first, second = room[0], room[1], room[2]
        _find_direction(slope, rule, first, second, new_first, new_second)
        if thresholds is not None:
            _move_and_shrink(slope, rate, keep, thresholds, before, after, narrow, sizes)
        else:
            _move(slope, rate, keep, before, after, narrow, sizes)
        if offsets is not None:
            mu, lam, _, _ = offsets
            sums[0][i] = _sum_changes(before, after, lam, mu[i], sums[1], products)
    for j in range(m):
        norms[0] += sizes[j]
        norms[1] += squares[j]


@kernel
def move_biases(
    slope: Any,
    at: int,
    factor: float,
    correction: Any,
    rule: tuple[float, ...],
    old: Any,
    new: Any,
    norms: Any,
) -> None:
    """The same step for the biases whose parameters begin at the index ``at``; they do not decay.

    They move by the learning rate times ``factor * direction``, less ``correction``; an empty one is none.
    ``slope`` is overwritten. ``old`` and ``new`` may be the same arrays.
    """
    n, rate, n_slots = slope.size, rule[5], int(rule[0])
    none = np.empty(0)
    before, first, second = old[0][at : at + n], old[1][at : at + n], old[2][at : at + n]
    new_first = new[1][at : at + n] if n_slots > 0 else none
    new_second = new[2][at : at + n] if n_slots > 1 else none
    for j in range(n):
        norms[1] += slope[j] * slope[j]
    _find_direction(slope, rule, first, second, new_first, new_second)
    after = new[0][at : at + n]
    for j in range(n):
        moved = rate * (factor * slope[j]) + before[j]
        if correction.size:
            moved -= correction[j]
        after[j] = moved
        norms[0] += after[j] * after[j]
