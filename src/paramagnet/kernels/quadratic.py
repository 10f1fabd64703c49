"""Exact sums over all states of binary units with pair couplings: ``Z = sum_s exp(f.s + s.J s/2)``, ``s``
of 0 and 1.

A machine takes this form when a layer of Gaussian units is integrated out. The units are split into two
parts: a row is a state of the first ones, its columns are the states of the last `COLUMN_UNITS`. Within a row
the exponents are a table plus a linear form that is built by doubling, so a state costs one exponential and a
few additions, and memory stays at some kilobytes per block. Blocks of rows depend on the number of units
alone and are added in order: any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import run_tasks
from paramagnet.kernels.jit import kernel

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[float], None]

COLUMN_UNITS = 10  # 1024 columns, whose tables fit into the first-level cache
BLOCK_ROWS = 2**11  # rows of a block, some ten milliseconds; Ctrl-C works between two blocks
SECONDS_PER_STATE = 1e-8
MOST_UNITS = 48


@kernel
def _fill_row(
    row: int, fields: FloatArray, couplings: FloatArray, table: FloatArray, exponents: FloatArray
) -> float:
    """Fill ``exponents`` with those of all columns of a row; return the largest."""
    n = fields.size
    n_columns = exponents.size
    first = 0
    while (1 << first) < n_columns:
        first += 1
    n_rows = n - first  # number of units that make the row
    base = 0.0
    for i in range(n_rows):
        if (row >> i) & 1:
            base += fields[i]
            for j in range(i):
                if (row >> j) & 1:
                    base += couplings[i, j]
    exponents[0] = base
    size = 1
    for j in range(first):
        linear = fields[n_rows + j]
        for i in range(n_rows):
            if (row >> i) & 1:
                linear += couplings[n_rows + j, i]
        for k in range(size):
            exponents[size + k] = exponents[k] + linear
        size *= 2
    largest = -np.inf
    for k in range(n_columns):
        exponents[k] += table[k]
        largest = max(largest, exponents[k])
    return largest


@kernel
def _sum_rows(
    start: int,
    stop: int,
    fields: FloatArray,
    couplings: FloatArray,
    table: FloatArray,
    columns: FloatArray,
    moments: FloatArray,
    scratch: FloatArray,
) -> float:
    """Add up rows: ``columns`` gets the weight of every column, ``moments[i, 0]`` the weight of the states in
    which row unit ``i`` is 1, and ``moments[i, 1 + j]`` the weight of those in which unit ``j`` is 1, too
    (row units first, then column units). All are divided by the exponential of the number returned, the
    largest exponent.
    """
    n_columns = columns.size
    n_bits = 0
    while (1 << n_bits) < n_columns:
        n_bits += 1
    n_rows = fields.size - n_bits
    weights = scratch[1]
    largest = -np.inf
    for row in range(start, stop):
        top = _fill_row(row, fields, couplings, table, scratch[0])
        if top > largest:
            factor = math.exp(largest - top) if largest > -np.inf else 0.0
            for k in range(n_columns):
                columns[k] *= factor
            for i in range(n_rows):
                for j in range(1 + fields.size):
                    moments[i, j] *= factor
            largest = top
        for k in range(n_columns):
            weights[k] = math.exp(scratch[0, k] - largest)
            columns[k] += weights[k]
        # Fold the weights: each step sums over one column unit.
        size = n_columns
        for j in range(n_bits - 1, -1, -1):
            size //= 2
            upper = 0.0
            for k in range(size):
                upper += weights[size + k]
                weights[k] += weights[size + k]
            for i in range(n_rows):
                if (row >> i) & 1:
                    moments[i, 1 + n_rows + j] += upper
        for i in range(n_rows):
            if (row >> i) & 1:
                moments[i, 0] += weights[0]
                for j in range(n_rows):
                    if (row >> j) & 1:
                        moments[i, 1 + j] += weights[0]
    return largest


@kernel
def _sum_each_row(
    start: int,
    stop: int,
    fields: FloatArray,
    couplings: FloatArray,
    table: FloatArray,
    scratch: FloatArray,
    sums: FloatArray,
) -> float:
    """Write the logarithm of the weight of every row to ``sums``; return the largest of them."""
    best = -np.inf
    for row in range(start, stop):
        top = _fill_row(row, fields, couplings, table, scratch)
        total = 0.0
        for k in range(scratch.size):
            total += math.exp(scratch[k] - top)
        sums[row] = top + math.log(total)
        best = max(best, sums[row])
    return best


class _Problem:
    """Fields and couplings as the kernels take them, with the diagonal of ``J`` added to the fields and a
    table of the columns.
    """

    def __init__(self, fields: FloatArray, couplings: FloatArray) -> None:
        self.n = fields.size
        if self.n > MOST_UNITS:
            raise ValueError(
                f"The binary layer has 2**{self.n} states to sum; 2**{MOST_UNITS} is the limit. Estimate "
                "ln Z in place of summing it."
            )
        self.fields = np.array(fields + 0.5 * np.diag(couplings), dtype=np.float64)
        self.couplings = np.array(couplings, dtype=np.float64, order="C")
        np.fill_diagonal(self.couplings, 0.0)
        n_bits = min(self.n, COLUMN_UNITS)
        self.n_rows = 1 << (self.n - n_bits)
        self.states = ((np.arange(1 << n_bits)[:, None] >> np.arange(n_bits)) & 1).astype(np.float64)
        inner = self.couplings[self.n - n_bits :, self.n - n_bits :]
        self.table = 0.5 * np.einsum("ki,ij,kj->k", self.states, inner, self.states)

    def blocks(self) -> list[tuple[int, int]]:
        """The first row of each block, and the row after its last."""
        return [(i, min(i + BLOCK_ROWS, self.n_rows)) for i in range(0, self.n_rows, BLOCK_ROWS)]

    def run(
        self, block: Callable[[int, int], Any], n_threads: int, progress: Progress | None
    ) -> Iterator[Any]:
        """The results of all blocks, in order."""
        return run_tasks(block, self.blocks(), n_threads, progress)


def pair_moments(
    fields: FloatArray, couplings: FloatArray, *, n_threads: int = 1, progress: Progress | None = None
) -> tuple[float, FloatArray, FloatArray]:
    """``ln Z``, ``E[s]`` and ``E[s s^T]`` of ``exp(f.s + s.J s/2)/Z``; ``J`` is symmetric."""
    problem = _Problem(fields, couplings)
    n, n_columns = problem.n, problem.table.size
    n_bits = problem.states.shape[1]

    def block(first: int, last: int) -> tuple[float, FloatArray, FloatArray]:
        columns, moments = np.zeros(n_columns), np.zeros((n - n_bits, 1 + n))
        scratch = np.empty((2, n_columns))
        largest = _sum_rows(
            first, last, problem.fields, problem.couplings, problem.table, columns, moments, scratch
        )
        return largest, columns, moments

    largest, columns, moments = -math.inf, np.zeros(n_columns), np.zeros((n - n_bits, 1 + n))
    for top, of_columns, of_rows in problem.run(block, n_threads, progress):
        new = max(top, largest)
        old_share, share = math.exp(largest - new), math.exp(top - new)
        columns = old_share * columns + share * of_columns
        moments = old_share * moments + share * of_rows
        largest = new
    total = float(columns.sum())
    mean = np.concatenate((moments[:, 0], columns @ problem.states)) / total
    second = np.empty((n, n))
    second[: n - n_bits] = moments[:, 1:] / total
    second[n - n_bits :, : n - n_bits] = second[: n - n_bits, n - n_bits :].T
    second[n - n_bits :, n - n_bits :] = (problem.states.T * columns) @ problem.states / total
    return largest + math.log(total), mean, second


def pair_log_partition(
    fields: FloatArray, couplings: FloatArray, *, n_threads: int = 1, progress: Progress | None = None
) -> float:
    """``ln Z`` alone."""
    return float(np.logaddexp.reduce(_row_sums(_Problem(fields, couplings), n_threads, progress)))


def _row_sums(problem: _Problem, n_threads: int, progress: Progress | None) -> FloatArray:
    sums = np.empty(problem.n_rows)

    def block(first: int, last: int) -> float:
        scratch = np.empty(problem.table.size)
        return _sum_each_row(first, last, problem.fields, problem.couplings, problem.table, scratch, sums)

    for _ in problem.run(block, n_threads, progress):
        pass
    return sums


def pair_draws(
    fields: FloatArray,
    couplings: FloatArray,
    n_samples: int,
    rng: np.random.Generator,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> FloatArray:
    """Independent states ``(n_samples, n)`` of 0 and 1."""
    problem = _Problem(fields, couplings)
    sums = _row_sums(problem, n_threads, progress)
    shares = np.cumsum(np.exp(sums - sums.max()))
    rows = np.searchsorted(shares, rng.random(n_samples) * shares[-1], side="right")
    within = rng.random(n_samples)
    states = np.empty((n_samples, problem.n))
    n_first = problem.n - problem.states.shape[1]
    exponents = np.empty(problem.table.size)
    order = np.argsort(rows, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
        row = int(rows[group[0]])
        top = _fill_row(row, problem.fields, problem.couplings, problem.table, exponents)
        shares = np.cumsum(np.exp(exponents - top))
        columns = np.searchsorted(shares, within[group] * shares[-1], side="right")
        states[group, :n_first] = (row >> np.arange(n_first)) & 1
        states[group, n_first:] = problem.states[columns]
    return states


def estimate_seconds(n_units: int, n_threads: int = 1) -> float:
    """A rough estimate of the time of a sum over ``n_units`` units, in seconds."""
    return float(2.0**n_units * SECONDS_PER_STATE / n_threads)
