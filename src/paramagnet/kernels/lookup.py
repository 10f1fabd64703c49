"""Products of binary states with weights, looked up: four units together have sixteen states.

What a group of four units adds to a field, the sum of its rows of the weights times their levels, is
computed once for each of its sixteen states, for all chains. A product is then one addition per group, a
quarter of the multiply-adds of a matrix product.

- The sums are looked up for a panel of `WIDTH` columns and `CHUNK` groups at a time, so that their **table**
  stays in the nearest caches while all chains go over it. It is made anew each time, which takes less than
  fetching it from memory would.
- **Codes** are the states of the groups, as distances in bytes within a group's part of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

GROUP = 4  # units
WIDTH = 16  # columns of a panel, a line of the cache
CHUNK = 16  # groups: a table of 16 KB
_STATES = 2**GROUP
_STRIDE = 4 * WIDTH  # bytes from one state of a group to the next
_SIDE_BY_SIDE = 4  # sums that grow at a time, which hides the latency of additions
_TABLE, _ROWS = CHUNK * _STATES * WIDTH, CHUNK * GROUP * WIDTH  # float32 numbers
_FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
_INT64, _INT32, _INT8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)


def make_room(n_chains: int, n_units: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]:
    """Room for the codes of so many chains; for the table, rows of the weights, and the sums of a panel."""
    n_groups = -(-n_units // (GROUP * _SIDE_BY_SIDE)) * _SIDE_BY_SIDE
    size = _TABLE + _ROWS + n_chains * WIDTH
    room = np.empty(size + WIDTH, np.float32)
    start = -room.ctypes.data // room.itemsize % WIDTH  # on the border of a cache line
    return np.zeros((n_chains, n_groups), np.uint16), room[start : start + size]


@kernel
def fill_codes(states: Any, middle: Any, codes: Any) -> None:
    """The codes ``(n_chains, n_groups)`` of states, which are high above ``middle``; those of groups beyond
    the last are left as they are, zero.
    """
    n_chains, n_units = states.shape
    n_whole = n_units // GROUP
    for i in range(n_chains):
        row, out = states[i], codes[i]
        for g in range(n_whole):
            j = GROUP * g
            state = (
                np.uint32(row[j] > middle)
                | np.uint32(row[j + 1] > middle) << np.uint32(1)
                | np.uint32(row[j + 2] > middle) << np.uint32(2)
                | np.uint32(row[j + 3] > middle) << np.uint32(3)
            )
            out[g] = np.uint16(state * np.uint32(_STRIDE))
        if n_units > GROUP * n_whole:
            state = np.uint32(0)
            for k in range(n_units - GROUP * n_whole):
                state |= np.uint32(row[GROUP * n_whole + k] > middle) << np.uint32(k)
            out[n_whole] = np.uint16(state * np.uint32(_STRIDE))


def _pointer(context: Any, builder: Any, signature: Any, args: Any, index: int, offset: Any) -> Any:
    """The address of the element ``offset`` of an argument that is a contiguous array."""
    array = context.make_array(signature.args[index])(context, builder, args[index])
    return builder.gep(array.data, [offset])


@intrinsic
def _fill_group(typingctx: Any, rows: Any, at: Any, table: Any, start: Any, low: Any, step: Any) -> Any:
    """What a group whose rows begin at the flat index ``at`` adds in each of its states, into the table from
    the flat index ``start`` on: from the state in which all its units are low, one addition each.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def line(index: int, first: Any, number: int) -> Any:
            offset = builder.add(first, ir.Constant(_INT64, number * WIDTH))
            pointer = _pointer(context, builder, signature, args, index, offset)
            return builder.bitcast(pointer, _FLOATS.as_pointer())

        def spread(value: Any) -> Any:
            single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, ir.Constant(_INT32, 0))
            return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_INT32, WIDTH), None))

        parts = [builder.load(line(0, args[1], k), align=_STRIDE) for k in range(GROUP)]
        total = parts[0]
        for part in parts[1:]:
            total = builder.fadd(total, part)
        sums = [builder.fmul(spread(args[4]), total)]
        for part in parts:
            more = builder.fmul(spread(args[5]), part)
            sums += [builder.fadd(value, more) for value in sums]
        for state, value in enumerate(sums):
            builder.store(value, line(2, args[3], state), align=_STRIDE)
        return context.get_dummy_value()

    count, number = types.int64, types.float32
    return types.void(rows, count, table, count, number, number), code


@kernel
def _copy_rows(weights: Any, first: int, column: int, n_rows: int, rows: Any) -> None:
    """Part of a panel of the weights, side by side; zeros beyond the last unit and the last column."""
    n_units, n_fields = weights.shape
    n = min(WIDTH, n_fields - column)
    for k in range(n_rows):
        if first + k >= n_units:
            for j in range(WIDTH):
                rows[k * WIDTH + j] = np.float32(0.0)
        elif n == WIDTH:
            for j in range(WIDTH):
                rows[k * WIDTH + j] = weights[first + k, column + j]
        else:
            for j in range(WIDTH):
                rows[k * WIDTH + j] = weights[first + k, column + j] if j < n else np.float32(0.0)


@intrinsic
def _look_up(typingctx: Any, table: Any, codes: Any, first: Any, n_groups: Any, sums: Any, at: Any) -> Any:
    """Add what ``n_groups`` groups, with the codes from the flat index ``first`` on, look up to the sums from
    the flat index ``at`` on. These live in registers: this is why it is written in the compiler's own words.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def point(index: int, offset: Any) -> Any:
            return _pointer(context, builder, signature, args, index, offset)

        lines = builder.bitcast(point(0, ir.Constant(_INT64, 0)), _INT8.as_pointer())
        target = builder.bitcast(point(4, args[5]), _FLOATS.as_pointer())
        zero = ir.Constant(_FLOATS, None)
        begin = [builder.load(target, align=4), *[zero] * (_SIDE_BY_SIDE - 1)]
        before = builder.block
        test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        k, running = builder.phi(_INT64), [builder.phi(_FLOATS) for _ in begin]
        builder.cbranch(builder.icmp_signed("<", k, args[3]), body, after)
        builder.position_at_end(body)
        group = builder.gep(lines, [builder.mul(k, ir.Constant(_INT64, _STATES * _STRIDE))])
        for lane, total in enumerate(running):
            index = builder.add(args[2], builder.add(k, ir.Constant(_INT64, lane)))
            distance = builder.zext(builder.load(point(1, index)), _INT64)
            distance = builder.add(distance, ir.Constant(_INT64, lane * _STATES * _STRIDE))
            line = builder.bitcast(builder.gep(group, [distance]), _FLOATS.as_pointer())
            total.add_incoming(begin[lane], before)
            total.add_incoming(builder.fadd(total, builder.load(line, align=_STRIDE)), body)
        k.add_incoming(ir.Constant(_INT64, 0), before)
        k.add_incoming(builder.add(k, ir.Constant(_INT64, _SIDE_BY_SIDE)), body)
        builder.branch(test)
        builder.position_at_end(after)
        while len(running) > 1:
            running = [builder.fadd(*pair) for pair in zip(running[::2], running[1::2], strict=True)]
        builder.store(running[0], target, align=4)
        return context.get_dummy_value()

    count = types.int64
    return types.void(table, codes, count, count, sums, count), code


@kernel
def multiply_states(
    states: Any, weights: Any, levels: tuple[float, float], codes: Any, room: Any, fields: Any
) -> None:
    """``fields = states @ weights``, where the states take the two ``levels`` only.

    ``codes`` and ``room`` are those of `make_room`.
    """
    n_chains, n_fields = fields.shape
    n_groups = codes.shape[1]
    low, high = np.float32(levels[0]), np.float32(levels[1])
    table, rows, sums = room[:_TABLE], room[_TABLE : _TABLE + _ROWS], room[_TABLE + _ROWS :]
    flat_codes = codes.reshape(codes.size)
    fill_codes(states, np.float32(0.5) * (low + high), codes)
    for column in range(0, n_fields, WIDTH):
        sums[:] = np.float32(0.0)
        for first in range(0, n_groups, CHUNK):
            n = min(CHUNK, n_groups - first)
            _copy_rows(weights, GROUP * first, column, GROUP * n, rows)
            for g in range(n):
                _fill_group(rows, g * GROUP * WIDTH, table, g * _STATES * WIDTH, low, high - low)
            for i in range(n_chains):
                _look_up(table, flat_codes, i * n_groups + first, n, sums, i * WIDTH)
        for i in range(n_chains):
            for j in range(min(WIDTH, n_fields - column)):
                fields[i, column + j] = sums[i * WIDTH + j]
