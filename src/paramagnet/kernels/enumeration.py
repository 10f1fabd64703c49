"""Exact sums over all states of a restricted Boltzmann machine: log Z, all moments, independent samples.

The model is ``P(v, h) = exp(b.v + c.h + v.w h) / Z`` with binary units, each layer with its own two levels.
The smaller layer is enumerated, the other summed in closed form. Arguments and results are plain float64
arrays; `tables` and `partition` have the compiled loops.

Threads take blocks of states whose number depends on the machine alone, and partial sums are added in the
order of the blocks: any number of threads gives the same bits. The sums need some megabytes of memory for any
number of states that can be summed in practice, unless there are thousands of summed units.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import run_tasks
from paramagnet.kernels import partition
from paramagnet.kernels.partition import COLUMN_BITS, COLUMNS, LANES
from paramagnet.kernels.precision import CERTAIN, check_averages, check_draws, check_logarithm
from paramagnet.kernels.tables import LN2, Tables, make_tables

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Levels = tuple[float, float]
Progress = Callable[[float], None]

ROW_BITS = 9  # tables of 2**9 rows fit into the second-level cache, and threads share 2**(k - 15) blocks
MAX_TABLE = 2**20  # numbers in a table, 8 MB
MIN_TASKS, MAX_TASKS = 32, 256
# Costs are states times summed units, about 0.2 ns each. A task should have at least TASK (3 ms). Below
# FOR_THREADS (1 ms) starting threads costs more time than they save. Up to AT_ONCE (50 ms) a single call does
# all the work; longer sums are divided into several calls, so that Python can handle Ctrl-C in between.
FOR_THREADS = 2**22
AT_ONCE = 2**28
TASK = 2**24
ROUGH_SECONDS = 2e-10


class _Bits:
    """The machine in variables 0 and 1, the enumerated layer first, and the tables for its sum.

    With ``x = low + s (high - low)`` in both layers the exponent keeps its form. The part of the exponent
    that does not depend on the state is ``constant``.
    """

    def __init__(
        self,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible_levels: Levels,
        hidden_levels: Levels,
    ) -> None:
        weights = np.asarray(weights, np.float64)
        visible_bias, hidden_bias = np.asarray(visible_bias, np.float64), np.asarray(hidden_bias, np.float64)
        self.swapped = weights.shape[0] > weights.shape[1]
        if self.swapped:
            weights, visible_bias, hidden_bias = weights.T, hidden_bias, visible_bias
            visible_levels, hidden_levels = hidden_levels, visible_levels
        (self.x_low, x_high), (self.y_low, y_high) = visible_levels, hidden_levels
        self.x_step, self.y_step = x_high - self.x_low, y_high - self.y_low
        self.k, self.m = k, m = weights.shape
        if k > 60:
            raise ValueError(
                f"`weights` of shape {weights.shape} has 2**{k} states to sum; 2**60 is the limit."
            )
        # New arrays in C order, whatever was passed, because each kernel is compiled for one signature.
        self.coupling = np.ascontiguousarray(weights * (self.x_step * self.y_step))
        add = np.add.reduce  # the sum of an array as such has half a microsecond of Python around it
        x_field = add(weights, 1) * self.y_low + visible_bias
        y_field = add(weights, 0) * self.x_low + hidden_bias
        self.bias = y_field * self.y_step
        self.constant = self.x_low * float(add(x_field)) + self.y_low * float(add(hidden_bias))
        largest_table = (MAX_TABLE // (m + 1)).bit_length() - 1
        row_bits = max(ROW_BITS, k // 2 - COLUMN_BITS)
        self.row_bits = max(0, min(k // 2, k - COLUMN_BITS, row_bits, largest_table))
        self.n_columns = max(LANES, 1 << min(k - self.row_bits, COLUMN_BITS))  # columns of a block
        self.n_blocks = 1 << max(0, k - self.row_bits - COLUMN_BITS)
        self.tables: Tables = make_tables(
            self.coupling, x_field * self.x_step, self.bias, self.row_bits, COLUMN_BITS
        )
        self.scaled: bool = self.tables.pairwise or self.tables.groups.size > 2  # sums split off powers of 2
        self.cost = (m << k) * (64 if self.tables.pairwise else 1)
        n_tasks = min(max(self.cost // TASK, MIN_TASKS), MAX_TASKS)
        self.task_size = max(1, self.n_blocks >> (n_tasks.bit_length() - 1))

    def run(
        self, work: Callable[[int, int], Any], n_threads: int, progress: Progress | None
    ) -> Iterator[Any]:
        """Yield ``work(first, last)`` for ranges that cover all blocks, in order."""
        tasks = [(i, i + self.task_size) for i in range(0, self.n_blocks, self.task_size)]
        return run_tasks(work, tasks, self.n_workers(n_threads), progress)

    def n_workers(self, n_threads: int) -> int:
        """The number of threads that have work to do, at most ``n_threads``."""
        n_tasks = -(-self.n_blocks // self.task_size)
        return min(n_threads, n_tasks) if self.cost >= FOR_THREADS else 1

    def at_once(self, n_threads: int, progress: Progress | None) -> bool:
        """Whether one call of the compiled code should take all blocks."""
        most = AT_ONCE if n_threads == 1 else FOR_THREADS
        return progress is None and self.cost < most

    def sum_weights(self, n_threads: int, progress: Progress | None) -> tuple[FloatArray, int]:
        """The weights of all blocks of columns, as numbers and a common power of two."""
        sums, powers = np.zeros(self.n_blocks), np.zeros(self.n_blocks, np.int64)

        def work(first: int, last: int) -> None:
            self.weigh((first, last), sums, powers)

        if self.at_once(n_threads, progress):
            work(0, self.n_blocks)
        else:
            for _ in self.run(work, n_threads, progress):
                pass
        highest = int(powers.max())
        return np.ldexp(sums, np.maximum(powers - highest, -2000).astype(np.intc)), highest

    def weigh(
        self,
        blocks: tuple[int, int],
        sums: FloatArray,
        powers: IntArray,
        quads: tuple[int, int] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Call `partition.sum_weights`; return its results ``rows`` and ``pairs``."""
        n_rows = self.tables.row_power.size
        rows, pairs = np.empty(n_rows), np.empty(4 * COLUMNS)
        first, last = quads or (0, n_rows // 4)
        partition.sum_weights(tuple(self.tables), blocks, first, last, sums, powers, rows, pairs)
        return rows, pairs


def _share(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """The callback for the part of the work between two fractions."""
    if progress is None:
        return None
    whole = progress
    return lambda fraction: whole(start + (stop - start) * fraction)


def _choose(weights: FloatArray, uniform: FloatArray) -> IntArray:
    """Indices drawn in proportion to ``weights``, one for each uniform number."""
    cumulative = np.cumsum(weights)
    last = np.searchsorted(cumulative, cumulative[-1])  # by rounding a number may equal the total
    chosen: IntArray = np.minimum(np.searchsorted(cumulative, uniform * cumulative[-1], "right"), last)
    return chosen


def log_partition(
    weights: FloatArray,
    visible_bias: FloatArray,
    hidden_bias: FloatArray,
    visible_levels: Levels,
    hidden_levels: Levels,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> float:
    """``log Z = log sum_{v, h} exp(b.v + c.h + v.w h)``.

    ``progress`` receives the finished fraction now and then, in the calling thread; an exception that it
    raises ends the sum. Parameters so large that rounding changes the ninth digit raise `InexactSumError`.
    """
    bits = _Bits(weights, visible_bias, hidden_bias, visible_levels, hidden_levels)
    sums, power = bits.sum_weights(n_threads, progress)
    value = math.fsum((math.log(sums.sum()), power * LN2, bits.tables.offset, bits.constant))
    check_logarithm(value, bits.tables.magnitude + abs(bits.constant))
    return value


def moments(
    weights: FloatArray,
    visible_bias: FloatArray,
    hidden_bias: FloatArray,
    visible_levels: Levels,
    hidden_levels: Levels,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """``log Z, E[v], E[h], E[v h^T]``: ``log Z`` and its gradient with respect to all parameters.

    The sums give the weights in which summed unit ``j`` is low, so ``E[t_j] = 1 - P(t_j = 0)`` and
    ``E[s_i t_j] = E[s_i] - P(s_i = 1, t_j = 0)``. ``progress`` and errors are those of `log_partition`.
    """
    bits = _Bits(weights, visible_bias, hidden_bias, visible_levels, hidden_levels)
    tables, k, m, reference = bits.tables, bits.k, bits.m, 0
    if bits.scaled:  # a first pass finds the scale
        sums, power = bits.sum_weights(n_threads, _share(progress, 0.0, 0.3))
        reference = power + math.frexp(sums.sum())[1]
        progress = _share(progress, 0.3, 1.0)

    # Threads reuse this memory: new memory takes longer than the sums, as the system provides it page by
    # page.
    size = partition.space_for(tables)
    spaces = deque([np.empty(size) for _ in range(bits.n_workers(n_threads))])

    def work(first: int, last: int) -> FloatArray:
        part, space, size = np.zeros((k + 1, m + 1)), spaces.pop(), bits.task_size
        partition.sum_moments(tuple(tables), (first, last), size, bits.row_bits, reference, space, part)
        spaces.append(space)
        return part

    if bits.at_once(n_threads, progress):
        result = work(0, bits.n_blocks)
    else:
        result = np.zeros((k + 1, m + 1))
        for part in bits.run(work, n_threads, progress):
            result += part

    total = result[k, m]
    log_z = math.fsum((math.log(total), reference * LN2, tables.offset, bits.constant))
    check_logarithm(log_z, tables.magnitude + abs(bits.constant))
    result /= total
    s = result[:k, m, None]
    low = result[:, :m] * tables.scale
    if tables.magnitude > CERTAIN:
        x_deviation = bits.x_step * float((s * (1.0 - s)).max())
        y_deviation = bits.y_step * float((low[k] * (1.0 - low[k])).max())
        check_averages(tables.magnitude, 2.0 * max(x_deviation, y_deviation))
    y = (bits.y_low + bits.y_step) - bits.y_step * low[k]
    # E[x y] with x = x_low + x_step s and y = y_high - y_step (1 - t)
    xy = (
        bits.x_low * y
        + (bits.x_step * (bits.y_low + bits.y_step)) * s
        - (bits.x_step * bits.y_step) * low[:k]
    )
    x = bits.x_low + bits.x_step * s[:, 0]
    return (log_z, y, x, np.ascontiguousarray(xy.T)) if bits.swapped else (log_z, x, y, xy)


def draw_states(
    weights: FloatArray,
    visible_bias: FloatArray,
    hidden_bias: FloatArray,
    visible_levels: Levels,
    hidden_levels: Levels,
    n_samples: int,
    rng: np.random.Generator,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[FloatArray, FloatArray]:
    """``n_samples`` independent draws ``(v, h)`` from the distribution of the machine, without a Markov
    chain.

    The weights of all blocks of columns are summed and the samples distributed among the blocks. Only blocks
    with samples are summed once more, row by row, and finally single rows. The other layer is drawn from its
    conditional distribution.
    """
    bits = _Bits(weights, visible_bias, hidden_bias, visible_levels, hidden_levels)
    check_draws(bits.tables.magnitude)
    sums = bits.sum_weights(n_threads, _share(progress, 0.0, 0.5))[0]
    counts = rng.multinomial(n_samples, sums / sums.sum())
    ends, hit = np.cumsum(counts), np.flatnonzero(counts)
    uniform = rng.random((n_samples, 2))
    row, column = np.empty(n_samples, np.int64), np.empty(n_samples, np.int64)

    def work(first: int, last: int) -> None:
        unused = np.empty(bits.n_blocks), np.empty(bits.n_blocks, np.int64)
        for block in hit[first:last].tolist():
            start, stop = ends[block] - counts[block], ends[block]
            of_rows = bits.weigh((block, block + 1), *unused)[0]
            rows = row[start:stop] = _choose(of_rows, np.sort(uniform[start:stop, 0]))
            for q in np.unique(rows // 4).tolist():
                of_pairs = bits.weigh((block, block + 1), *unused, (q, q + 1))[1].reshape(-1, 4, LANES)
                borders = start + np.searchsorted(rows, range(4 * q, 4 * q + 5))
                for r in range(4):
                    mine = slice(borders[r], borders[r + 1])
                    chosen = _choose(of_pairs[: bits.n_columns // LANES, r].ravel(), uniform[mine, 1])
                    column[mine] = chosen + block * COLUMNS

    size = max(1, -(-len(hit) // MAX_TASKS))
    tasks = [(i, i + size) for i in range(0, len(hit), size)]
    for _ in run_tasks(work, tasks, n_threads, _share(progress, 0.5, 1.0)):
        pass
    order = rng.permutation(n_samples)  # the samples came sorted
    state = (row | (column << bits.row_bits))[order]
    s = ((state[:, None] >> np.arange(bits.k)) & 1).astype(np.float64)
    field = s @ bits.coupling + bits.bias
    t = rng.random(field.shape) < 0.5 * (1.0 + np.tanh(0.5 * field))
    x, y = bits.x_low + bits.x_step * s, bits.y_low + bits.y_step * t
    return (y, x) if bits.swapped else (x, y)


@functools.cache
def _seconds_per_term(gradient: bool) -> float:
    """Time per state and summed unit on this machine, from sums that take milliseconds."""
    k, m = 16, 16
    arguments = (np.zeros((k, m)), np.zeros(k), np.zeros(m), (0.0, 1.0), (0.0, 1.0))
    function: Callable[..., Any] = moments if gradient else log_partition
    function(*arguments)
    best = math.inf
    for _ in range(5):
        start = time.thread_time()  # processor time, as other processes may be running
        function(*arguments)
        best = min(best, time.thread_time() - start)
    return best / (m << k)


def estimate_seconds(n_visible: int, n_hidden: int, *, n_threads: int = 1, gradient: bool = True) -> float:
    """About how long `moments` (or `log_partition`, without ``gradient``) takes on this machine.

    Below a second and above a day the estimate follows from the sizes alone; in between, the speed of this
    machine is measured, once per process. For weights with absolute values of several units a sum takes two
    to three times as long, for weights of a hundred up to eighty times.
    """
    k, m = sorted((n_visible, n_hidden))
    if k > 200:
        return math.inf
    if n_threads > 1:  # asking the system for its cores takes 9 us
        n_threads = max(1, min(n_threads, os.cpu_count() or 1))
    rough = ROUGH_SECONDS * m * 2.0**k / n_threads
    if 1.0 < rough < 86400.0:
        return rough / ROUGH_SECONDS * _seconds_per_term(gradient)
    return rough if gradient else rough / 3.0
