"""Tables of int16 sums for `paramagnet.kernels.int16_sweeps`, and what rounding can do to a draw.

A unit in the fields of ``n`` others has the log-odds ``x = gain * S + origin``, where ``S`` is the sum of its
weights to the high ones. With ``S = sum_i w_i / 2 + sum_i (+-) w_i / 2``, half a weight is rounded to a
multiple ``W_i`` of a unit ``s``, an int32 number. All that follows is arithmetic of whole numbers, exact: the
sums of a group of five for its 32 states; their multiples of ``2**SHIFT``, rounded, which are the **table**;
and what is left of them, which is a second one where fields are wanted to the precision of float32. The
unit is as small as int16 allows: no sum of a part can exceed 32767.

`prepare` bounds the difference between the log-odds from such sums and those that are summed in float32. The
proof is in docs/design_notes.md ("Sweeps in int16"), in the order of the terms here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

GROUP, STATES = 5, 32  # units of a group, and their states
MOST_IN_PART = 54  # groups: a compromise between the price of parts and the number of undecided units
MOST_IN_FINE_PART = 31  # groups: what is left of them adds up to at most 31 * 2**10 < 2**15
MOST_PARTS = 511  # sums of all of them stay below 2**24, the whole numbers that float32 holds
MOST_FINE_PARTS = 31  # with what is left of them, in int32
SHIFT = 11  # bits of a table's unit: a table has multiples of 2**SHIFT, a second one the rest
MOST = 32767
LOG2_E = 1.0 / math.log(2.0)
EPSILON = 2.0**-24  # of float32: the largest relative error of a rounded result
POLYNOMIAL = 2.0**-22  # largest relative error of the reference's polynomial for 2**r, rounding included
CUBIC = 1.6e-4  # the same of the polynomial of third degree: the remainder of interpolation is 1.51e-4
LARGEST = 30.0  # error of the log-odds from which on every unit is undecided
CERTAIN = 17.5  # log-odds from which on every uniform number decides alike

FloatArray = npt.NDArray[np.float64]

_INT16, _INT32, _INT64 = (ir.IntType(n) for n in (16, 32, 64))
_ENTRIES = ir.VectorType(_INT32, 16)


@dataclass(frozen=True, eq=False)
class SumTables:
    """Tables of a layer in the fields of another, and the three numbers of every unit; see `fill_tables`."""

    table: npt.NDArray[np.int16]
    units: FloatArray
    halves: FloatArray
    spreads: FloatArray
    n_sources: int
    n_parts: int
    n_in_part: int

    @property
    def n_positions(self) -> int:
        """Groups, those without a unit included."""
        return self.n_parts * self.n_in_part


def make_tables(weights: npt.NDArray[np.float32], *, with_rest: bool = False) -> SumTables:
    """The tables of a layer whose units have the rows of ``weights``."""
    n_units, n_sources = weights.shape
    n_groups = -(-n_sources // GROUP)
    n_parts = -(-n_groups // (MOST_IN_FINE_PART if with_rest else MOST_IN_PART))
    n_in_part = -(-n_groups // n_parts)
    size = -(-n_units // 4) * n_parts * n_in_part * (8 if with_rest else 4) * STATES
    room = np.empty(size + 32, np.int16)
    start = -room.ctypes.data // room.itemsize % 32  # on the border of a cache line
    units, halves, spreads = (np.empty(n_units) for _ in range(3))
    made = SumTables(room[start : start + size], units, halves, spreads, n_sources, n_parts, n_in_part)
    fill_tables(weights, n_parts, n_in_part, with_rest, made.table, made.units, made.halves, made.spreads)
    return made


@intrinsic
def _fill_group(
    typingctx: Any, multiples: Any, first: Any, table: Any, at: Any, rest: Any, with_rest: Any
) -> Any:
    """The 32 numbers of a group, whose five multiples begin at ``first``, from ``at`` on; and what is left of
    them from ``rest`` on, if that is wanted.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pointer(index: int, offset: Any, kind: Any) -> Any:
            data = context.make_array(signature.args[index])(context, builder, args[index]).data
            return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())

        def spread(value: Any) -> Any:
            single = builder.insert_element(
                ir.Constant(_ENTRIES, ir.Undefined), value, ir.Constant(_INT32, 0)
            )
            return builder.shuffle_vector(single, single, ir.Constant(_ENTRIES, None))

        parts = [
            builder.load(pointer(0, builder.add(args[1], ir.Constant(_INT64, k)), _INT32))
            for k in range(GROUP)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = builder.add(total, part)
        low = spread(builder.neg(total))
        for k, part in enumerate(parts[:-1]):
            steps = ir.Constant(_ENTRIES, [2 * (state >> k & 1) for state in range(16)])
            low = builder.add(low, builder.mul(spread(part), steps))
        two = ir.Constant(_ENTRIES, [2] * 16)
        high = builder.add(low, builder.mul(spread(parts[-1]), two))
        half, shift = (ir.Constant(_ENTRIES, [n] * 16) for n in (1 << SHIFT - 1, SHIFT))
        short = ir.VectorType(_INT16, 16)
        for entries, begin in ((low, 0), (high, 16)):
            rounded = builder.ashr(builder.add(entries, half), shift)
            target = pointer(2, builder.add(args[3], ir.Constant(_INT64, begin)), short)
            builder.store(builder.trunc(rounded, short), target, align=32)
            with builder.if_then(args[5]):
                left = builder.sub(entries, builder.shl(rounded, shift))
                target = pointer(2, builder.add(args[4], ir.Constant(_INT64, begin)), short)
                builder.store(builder.trunc(left, short), target, align=32)
        return context.get_dummy_value()

    n = types.int64
    return types.void(multiples, n, table, n, n, types.boolean), code


@kernel
def fill_tables(
    weights: Any, n_parts: int, n_in_part: int, with_rest: bool, table: Any, units: Any, halves: Any,
    spreads: Any,
) -> None:  # fmt: skip
    """The tables of all rows of ``weights``, one per unit of the layer that is drawn.

    ``table`` is flat, ``(quarter, position, 4, 32)``, or 8 with the rests. Position ``p`` of part ``h`` is
    group ``p n_parts + h``. ``units`` take the unit of every row, ``halves`` half the sum of its weights and
    ``spreads`` the sum of their absolute values.
    """
    n_units, n_sources = weights.shape
    q, n_positions = (n_units + 3) // 4, n_parts * n_in_part
    n_tables = 8 if with_rest else 4
    multiples = np.zeros(GROUP * n_positions, np.int32)
    in_part = np.empty(n_parts)
    for i in range(table.size // STATES if n_units % 4 else 0):
        if i // n_tables // n_positions + i % n_tables % 4 * q >= n_units:
            for state in range(STATES):
                table[STATES * i + state] = 0
    for unit in range(n_units):
        row = weights[unit]
        total, spread = 0.0, 0.0
        for part in range(n_parts):
            in_part[part] = 0.0
        for first in range(0, n_sources, GROUP):
            size = 0.0
            for i in range(first, min(first + GROUP, n_sources)):
                total += np.float64(row[i])
                size += abs(np.float64(row[i]))
            in_part[first // GROUP % n_parts] += size
        largest = 0.0
        for part in range(n_parts):
            spread += in_part[part]
            largest = max(largest, in_part[part])
        room = np.float64(1 << SHIFT) * (np.float64(MOST) - 0.5 * n_in_part) - 3.0 * n_in_part
        inverse = room / largest if largest > 0.0 else 0.0
        for i in range(n_sources):
            multiples[i] = np.int32(np.rint(np.float64(row[i]) * inverse))
        j, k = unit % q, unit // q
        for position in range(n_positions):
            group = position % n_in_part * n_parts + position // n_in_part
            at = ((j * n_positions + position) * n_tables + k) * STATES
            _fill_group(multiples, GROUP * group, table, at, at + 4 * STATES, with_rest)
        units[unit] = 0.5 * largest / room
        halves[unit], spreads[unit] = 0.5 * total, spread


@kernel
def prepare(
    units: Any, halves: Any, spreads: Any, n_sources: int, gain: float, origins: Any, factor: float,
    numbers: Any,
) -> None:  # fmt: skip
    """What `draw_layer` needs for every unit, ``(quarter, 4 kinds, 4 units)``: slope and shift of the
    exponent of the odds as functions of the sum, and the factors beyond which they are certain.

    ``gain`` and ``origins`` are those of the reference, rounded to float32. ``factor`` is 1; tests set
    another one, to see that a bound that is too small is noticed.
    """
    n_units, slope = units.size, np.float64(gain)
    q = (n_units + 3) // 4
    n_groups, n_words = (n_sources + GROUP - 1) // GROUP, (n_sources + 63) // 64
    depth = EPSILON * (n_words + 5)
    for unit in range(4 * q):  # those that do not exist are certainly low
        j, k = unit % q, unit // q
        numbers[j, 0, k], numbers[j, 1, k] = np.float32(0.0), np.float32(125.0)
        numbers[j, 2, k] = np.float32(1.0)
    rounding = CERTAIN * (2.0**-23 + 2.0**-47) + POLYNOMIAL + CUBIC + 2.0 * EPSILON
    for unit in range(n_units):
        size, origin, unit_of_table = abs(slope), np.float64(origins[unit]), units[unit] * (1 << SHIFT)
        shift = origin + slope * halves[unit]
        quantized = n_sources * units[unit] * (0.5 + 2.0**-25) + 0.5 * n_groups * unit_of_table
        total = n_sources * 2.0**-53 * spreads[unit]
        reach = size * (0.5 * spreads[unit] + quantized) + abs(shift)
        summed = size * spreads[unit] * depth / (1.0 - depth)
        last = EPSILON * (size * spreads[unit] / (1.0 - depth) + abs(origin)) + 2.0**-149
        error = size * (quantized + total) + (2.0**-23 + 2.0**-46) * reach + summed + last
        bound = factor * (error + rounding) * (1.0 + 2.0**-22)
        j, k = unit % q, unit // q
        numbers[j, 0, k] = np.float32(-slope * unit_of_table * LOG2_E)
        if bound < LARGEST:
            numbers[j, 1, k] = np.float32(-(shift + bound) * LOG2_E)
            numbers[j, 2, k] = np.float32(math.exp(2.0 * bound) * (1.0 + 2.0**-23))
        else:
            numbers[j, 1, k], numbers[j, 2, k] = np.float32(-np.inf), np.float32(np.inf)
