"""Layers of categorical units: products that gather rows of the weights, draws, and sums over states.

A layer of ``n`` units with ``q`` states has ``n q`` fields, those of a unit side by side; row ``i q + a`` of
its weights belongs to state ``a`` of unit ``i``. States are float32 numbers that hold integers.

**A draw**: unit ``i`` has the weights ``e_a = exp(x_a - max x)`` with ``x = scale * field + shift``, and the
state is the number of partial sums ``e_0 + .. + e_a`` that a uniform number times their total reaches. The
uniform numbers are those of `paramagnet.kernels.sampling.fill_uniform`, addressed by (unit, chain, sweep,
stream), so a draw depends on nothing but its address and its fields. Fields are turned around, so that
vectors run along the units. A state whose probability is below ``2**-24`` may never be drawn.

Sums over rows are made in the order of the units, or of the chains, for any cut of the work: the same bits
for any number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel, part

_TILE_CHAINS = 32  # chains whose fields stay in the cache while the units pass
_TILE_UNITS = 256  # units whose fields are turned around at a time, of one chain or of several
_LOG2_E, _HALF = np.float32(1.4426950408889634), np.float32(0.5)
_LARGEST = np.float32(125.0)
# 2**r on [-1/2, 1/2], interpolated at the Chebyshev points: relative error 2.5e-9.
_C0 = np.float32(1.0)
_C1 = np.float32(0.6931472067028329)
_C2 = np.float32(0.24022650922289554)
_C3 = np.float32(0.05550327226669895)
_C4 = np.float32(0.00961805667843204)
_C5 = np.float32(0.0013400428177711937)
_C6 = np.float32(0.00015461444724808513)


@intrinsic
def _as_float(typingctx: Any, word: Any) -> Any:
    """The float32 with the bits of a 32-bit word."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


@part
def _exp_minus(y: Any) -> Any:
    """``exp(-y)`` in float32 for ``y >= 0``, not below ``2**-125``."""
    t = min(y * _LOG2_E, _LARGEST)
    k = np.int32(t + _HALF)
    r = np.float32(k) - t
    p = _C6 * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + _C1
    p = p * r + _C0
    return p * _as_float(np.int32((np.int32(127) - k) << np.int32(23)))


@part
def _add_row(row: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] += row[j]


@kernel
def gather_rows(states: Any, q: int, weights: Any, out: Any) -> None:
    """The sums of the rows of ``weights`` that the ``states`` of each chain pick, into ``out``."""
    n_chains, n_units = states.shape
    for first in range(0, n_chains, _TILE_CHAINS):
        end = min(first + _TILE_CHAINS, n_chains)
        for k in range(first, end):
            out[k, :] = 0.0
        for i in range(n_units):
            for k in range(first, end):
                _add_row(weights[i * q + int(states[k, i])], out[k])


@part
def _turn(fields: Any, slope: Any, shift: Any, q: int, x: Any) -> None:
    """``x[a, i] = slope * field + shift`` of state ``a`` of unit ``i``."""
    n_units = fields.size // q
    for a in range(q):
        row = x[a]
        for i in range(n_units):
            row[i] = slope * fields[i * q + a] + shift[i * q + a]


# Loops of their own are what the compiler turns into vectors.


@part
def _raise_to(row: Any, largest: Any) -> None:
    for i in range(largest.size):
        value, least = row[i], largest[i]
        largest[i] = value if value > least else least


@part
def _add_exponentials(row: Any, largest: Any, total: Any) -> None:
    """Add ``exp(row - largest)`` to ``total``; ``row`` becomes what ``total`` is then."""
    for i in range(total.size):
        value = total[i] + _exp_minus(largest[i] - row[i])
        total[i] = value
        row[i] = value


@part
def _scale_by(factors: Any, goal: Any) -> None:
    for i in range(factors.size):
        goal[i] *= factors[i]


@part
def _count_passed(row: Any, goal: Any, found: Any) -> None:
    """Count up ``found`` where the partial sum ``row`` does not exceed ``goal``."""
    for i in range(found.size):
        found[i] += np.float32(1.0) if row[i] <= goal[i] else np.float32(0.0)


@kernel
def draw_states(fields: Any, scale: float, shift: Any, q: int, uniform: Any, old: Any, new: Any) -> int:
    """Draw the states ``new`` in their ``fields``; return how many differ from ``old``, another array.

    Chains of short layers share a loop, whose start and end would otherwise take most of the time.
    """
    n_chains, n_units = new.shape
    slope, n_changed = np.float32(scale), 0
    block = max(1, min(n_chains, _TILE_UNITS // n_units))
    width = (block * n_units + 15) // 16 * 16  # whole vectors; what is too much is not read
    x, shifts = np.zeros((q, width), np.float32), np.empty(block * n_units * q, np.float32)
    largest, goal, found = (
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
    )
    for k in range(block):
        shifts[k * n_units * q : (k + 1) * n_units * q] = shift
    for first in range(0, n_chains, block):
        end = min(first + block, n_chains)
        size = (end - first) * n_units
        _turn(fields[first:end].reshape(size * q), slope, shifts, q, x)
        largest[:], goal[:], found[:] = x[0], 0.0, 0.0
        for a in range(1, q):
            _raise_to(x[a], largest)
        for a in range(q):
            _add_exponentials(x[a], largest, goal)
        _scale_by(uniform[first:end].reshape(size), goal)
        for a in range(q - 1):
            _count_passed(x[a], goal, found)
        before, after = old[first:end].reshape(size), new[first:end].reshape(size)
        for i in range(size):
            n_changed += int(found[i] != before[i])
            after[i] = found[i]
    return n_changed


@kernel
def add_rise(fields: Any, scales: tuple[float, float], shifts: Any, q: int, log_weights: Any) -> None:
    """Add the rise of ``sum_i ln sum_a exp(x_a)`` to ``log_weights``, in float64: from the first scale and
    row of ``shifts`` to the second.
    """
    n_chains, n_fields = fields.shape
    now, then = scales
    for k in range(n_chains):
        rise = 0.0
        for first in range(0, n_fields, q):
            before, after = -np.inf, -np.inf
            for j in range(first, first + q):
                field = np.float64(fields[k, j])
                before = max(before, now * field + shifts[0, j])
                after = max(after, then * field + shifts[1, j])
            lower, upper = 0.0, 0.0
            for j in range(first, first + q):
                field = np.float64(fields[k, j])
                lower += math.exp(now * field + shifts[0, j] - before)
                upper += math.exp(then * field + shifts[1, j] - after)
            rise += after - before + math.log(upper / lower)
        log_weights[k] += rise


@kernel
def add_products(
    states: Any, units: tuple[int, int], q: int, factors: Any, scales: tuple[float, float], out: Any
) -> None:
    """Row ``i q + a`` of ``out`` becomes ``scales[0]`` times the sum of the rows of ``factors`` over the
    chains whose unit ``i`` has the state ``a``, plus ``scales[1]`` times what it was, for units from the
    first number to the second.

    Rows are summed in the precision of ``out``, in the order of the chains.
    """
    sums = np.empty((q, out.shape[1]), out.dtype)
    scale, kept = scales
    for i in range(units[0], units[1]):
        sums[:, :] = 0.0
        for k in range(states.shape[0]):
            _add_row(factors[k], sums[int(states[k, i])])
        for a in range(q):
            row, total = out[i * q + a], sums[a]
            if kept == 0.0:  # what it was may be anything
                for j in range(row.size):
                    row[j] = scale * total[j]
            else:
                for j in range(row.size):
                    row[j] = scale * total[j] + kept * row[j]
