"""Tables for exact enumeration: all exponentials that the sum over all states needs, computed beforehand.

All units are bits here: ``k`` enumerated units ``s`` and ``m`` summed units ``t``, all 0 or 1, have the
weight ``exp(l.s + d.t + s.W t)``. The enumerated units are divided into rows ``a`` and columns ``b``, so that

    sum_t exp(...) = exp(l_a.a + l_b.b) prod_j (1 + E_j(a) F_j(b)),  E_j = exp(d_j + a.W_a),  F_j = exp(b.W_b)

needs ``2**(k/2)`` exponentials instead of ``2**k``. The range of the numbers decides between three tiers.

Factor ``j`` is divided by the geometric mean of its largest and its smallest value. Let ``R`` be the sum of
the logarithmic ranges of all factors: every product of scaled factors then lies within ``exp(+-R / 2)``. The
largest linear term is taken out, so the linear weights lie between ``exp(-L)`` and 1, ``L = sum_i |l_i|``,
and the sum over all states is at least ``exp(-R / 2)``.

- Plain products, one group of factors, if ``R <= LIMIT`` and either ``R + L <= LIMIT`` or
  ``R <= LIMIT / 2``. Let a state count if it has at least ``exp(-82)`` of the total: all states that do not,
  2**60 at most, are together below ``exp(-40)`` of it. An intermediate product of a state that counts, its
  linear weight times some factors of range ``x``, is at least ``exp(-L - x / 2)``, because the product only
  has these parts, and at least ``exp(-R / 2 - 82 - (R - x) / 2)``, because the rest of the factors can raise
  it by no more than ``exp((R - x) / 2)``. The larger of the two is smallest at ``x = R + 82 - L``, where it
  is ``exp(-(R + L + 82) / 2)``; beyond ``L = R + 82`` it is smallest at ``x = 0``, where it is
  ``exp(-R - 82)``. Both are normal doubles, above ``exp(-708)``: no state that counts is lost to underflow.
- Groups of factors whose ranges add up to at most ``LIMIT`` each; the sums split a power of two off the
  product after every group, and off the linear weights beforehand, so that a state of any weight keeps all
  its digits. If only ``L`` is too large for plain products there is one group, and an empty one.
- Sums by pairs of a row and a column, if the field of a single factor has a range above ``LIMIT``, or a
  single coupling is above ``LARGEST_STEP``, whose exponential would underflow: the tables hold the exponents.

The remaining error is rounding: exponents of size ``S`` have an error of about ``1e-16 S``. The tables hold
``S``, the sum of the absolute values of all terms, as ``magnitude``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet.kernels.jit import kernel, part

FloatArray = npt.NDArray[np.float64]

LIMIT = 1200.0  # below 1418, the logarithm of largest over smallest double, to leave room for 2**k terms
LARGEST_STEP = 700.0  # below 708, minus the logarithm of the smallest normal double
LN2 = math.log(2.0)


class Tables(NamedTuple):
    """The tables of the sums. Rows are in groups of four, ``[row // 4][j][row % 4]``; columns are
    ``[j][column]``.
    """

    rows: Any  # E_j(a) over the mean of factor j; in slot j = m exp(l_a.a), without its power of two
    row_power: Any  # that power of two
    low: Any  # F_j of the lowest column bits, which make a block of columns
    low_linear: Any  # l_b.b of those bits; -inf for columns that do not exist
    start: Any  # F_j of the higher column bits is start[j] times step[value of the bit, bit, j] for each bit
    step: Any
    high_linear: Any  # l of the higher column bits, which number the blocks
    scale: Any  # one over the mean of factor j
    groups: Any  # borders of the groups of factors; a single group needs no powers of two
    pairwise: bool  # whether the tables hold exponents, to be added in place of products
    offset: float  # log Z is this plus the logarithm of the sum
    magnitude: float  # sum of the absolute values of all terms of the exponent: no state's exponent is larger


@part
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@part
def _extend(table: Any, x: int, shift: int, step: Any, i: int, j: int, pairwise: bool) -> None:
    """Make the entries with bit ``i`` 0 (at ``x``) and 1 (at ``x + shift``) from ``x`` without bit ``i``."""
    value = table[x]
    if pairwise:
        table[x], table[x + shift] = value + step[0, i, j], value + step[1, i, j]
    else:
        table[x], table[x + shift] = value * step[0, i, j], value * step[1, i, j]


@part
def _fill_linear(table: Any, linear: Any) -> None:
    """Set ``table[x]`` to ``linear.x`` minus its largest value, where ``x`` are the bits of the index;
    entries beyond the last ``x`` are -inf.
    """
    size = 1
    for i in range(linear.size):
        for x in range(size):
            value = table[x]
            table[x], table[x + size] = value - max(linear[i], 0.0), value + min(linear[i], 0.0)
        size *= 2
    for x in range(size, table.size):
        table[x] = -np.inf


def make_tables(
    coupling: FloatArray, linear: FloatArray, bias: FloatArray, n_row_bits: int, n_low_bits: int
) -> Tables:
    """Tables for the weight ``exp(linear.s + bias.t + s.coupling t)``.

    The first ``n_row_bits`` of the units ``s`` make the rows, the others the columns, in blocks of
    ``2**n_low_bits``. Numba runs Python code to return an array or a named tuple, or to accept a named tuple,
    and a Ctrl-C during that code crashes the process. So compiled functions fill arrays that they are given,
    and are called with plain tuples.
    """
    k, m = coupling.shape
    high = min(k, n_row_bits + n_low_bits)
    n_rows, n_columns = max(4, 1 << n_row_bits), 1 << n_low_bits
    groups = np.zeros(m + 2, np.int64)
    start, scale, step = np.empty(m), np.empty(m), np.zeros((2, k, m))
    low, rows = np.zeros(m * n_columns), np.zeros(n_rows * (m + 1))
    row_power, low_linear = np.zeros(n_rows, np.int64), np.zeros(n_columns)
    n_groups, pairwise, offset, magnitude = _fill_tables(
        coupling, linear, bias, n_row_bits, high, groups, start, scale, step, low, rows, row_power, low_linear
    )
    high_step = np.ascontiguousarray(step[:, high:])
    high_linear, borders = linear[high:].copy(), groups[: n_groups + 1].copy()
    return Tables(
        rows, row_power, low, low_linear, start, high_step, high_linear, scale, borders, pairwise, offset,
        magnitude,
    )  # fmt: skip


@kernel
def _fill_tables(
    coupling: Any, linear: Any, bias: Any, n_row_bits: int, high: int, groups: Any, start: Any, scale: Any,
    step: Any, low: Any, rows: Any, row_power: Any, low_linear: Any,
) -> tuple[int, bool, float, float]:  # fmt: skip
    k, m = coupling.shape
    n_rows, n_columns = row_power.size, low_linear.size

    # Field j runs from bottom to top. Its parts from low and from high columns are centred at 0: each table
    # then stays within exp(+-LIMIT / 2), except for row entries too small for a double, which belong to
    # fields below -40.
    widest = steepest = used = offset = total_range = spread = magnitude = 0.0
    n_groups = 1
    for i in range(k):
        spread += abs(linear[i])
    row_start, low_start = np.empty(m), np.empty(m)
    for j in range(m):
        bottom = top = bias[j]
        low_range = high_range = 0.0
        for i in range(k):
            top += max(coupling[i, j], 0.0)
            bottom += min(coupling[i, j], 0.0)
            steepest = max(steepest, abs(coupling[i, j]))
            if i >= high:
                high_range += abs(coupling[i, j])
            elif i >= n_row_bits:
                low_range += abs(coupling[i, j])
        widest = max(widest, top - bottom)
        magnitude += abs(bias[j]) + (top - bottom)
        largest, smallest = _softplus(top), _softplus(bottom)
        if used + largest - smallest > LIMIT and j > 0:
            groups[n_groups] = j
            n_groups += 1
            used = 0.0
        used += largest - smallest
        total_range += largest - smallest
        scale[j] = 0.5 * (largest + smallest)
        start[j], low_start[j] = math.floor(0.5 * high_range), math.floor(0.5 * low_range)
        row_start[j] = top - scale[j]
    groups[n_groups] = m
    pairwise = widest > LIMIT or steepest > LARGEST_STEP
    if n_groups == 1 and total_range > 0.5 * LIMIT and total_range + spread > LIMIT:
        n_groups = 2  # the second group is empty: two groups split off powers of two
        groups[n_groups] = m

    for j in range(m):
        for i in range(k):
            x = coupling[i, j]
            if pairwise:
                step[1, i, j] = x
            else:  # all factors are at most 1, from the top of the range down, so no entry underflows early
                step[0, i, j], step[1, i, j] = math.exp(-max(x, 0.0)), math.exp(min(x, 0.0))
        if pairwise:
            row_start[j], low_start[j], start[j], scale[j] = bias[j], 0.0, 0.0, 1.0
        else:
            offset += scale[j]
            # Whole numbers are exponentiated separately, so that a small field keeps its digits beside a wide
            # range.
            row_start[j] = math.exp(row_start[j]) * math.exp(-start[j] - low_start[j])
            low_start[j], start[j], scale[j] = math.exp(low_start[j]), math.exp(start[j]), math.exp(-scale[j])

    for j in range(m):
        low[j * n_columns] = low_start[j]
        for i in range(n_row_bits, high):
            size = 1 << (i - n_row_bits)
            for x in range(j * n_columns, j * n_columns + size):
                _extend(low, x, size, step, i, j, pairwise)
        rows[4 * j] = row_start[j]
        for i in range(min(n_row_bits, 2)):
            for x in range(4 * j, 4 * j + (1 << i)):
                _extend(rows, x, 1 << i, step, i, j, pairwise)
    for i in range(2, n_row_bits):
        shift = (m + 1) << i
        for q in range(1 << (i - 2)):
            for j in range(m):
                for x in range(4 * (q * (m + 1) + j), 4 * (q * (m + 1) + j) + 4):
                    _extend(rows, x, shift, step, i, j, pairwise)

    # The largest linear term is subtracted; the state that has it weighs at least exp(-R / 2).
    for i in range(k):
        offset += max(linear[i], 0.0)
    row_linear = np.zeros(n_rows)
    _fill_linear(row_linear, linear[:n_row_bits])
    _fill_linear(low_linear, linear[n_row_bits:high])
    for a in range(n_rows):
        value = row_linear[a]
        if not pairwise:
            if n_groups > 1 and value > -np.inf:
                row_power[a] = math.floor(value / LN2)
            value = math.exp(value - row_power[a] * LN2)
        rows[4 * ((a >> 2) * (m + 1) + m) + (a & 3)] = value
    return n_groups, pairwise, offset, magnitude + spread
