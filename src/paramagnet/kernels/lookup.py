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
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel, part

GROUP = 4  # units
WIDTH = 16  # columns of a panel: a line of the cache, and the longest register
CHUNK = 16  # groups: a table of 16 KB
_STATES = 2**GROUP
_STRIDE = 4 * WIDTH  # bytes from one state of a group to the next
_CODES_IN_WORD = 4
_CHAINS = 4  # whose sums grow side by side, which hides the latency of additions
_TABLE, _ROWS = CHUNK * _STATES * WIDTH, CHUNK * GROUP * WIDTH  # float32 numbers
_FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
_INT64, _INT32, _INT8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)


def make_room(n_chains: int, n_units: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]:
    """Room for the codes of so many chains; for the table, rows of the weights, and the sums of a panel."""
    n_groups = -(-n_units // (GROUP * _CODES_IN_WORD)) * _CODES_IN_WORD
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
def _fill_group(
    typingctx: Any, rows: Any, at: Any, stride: Any, table: Any, start: Any, low: Any, step: Any
) -> Any:
    """What a group adds in each of its states, into the table from the flat index ``start`` on: from the
    state in which all its units are low, one addition each. Its rows of the weights begin at the flat index
    ``at`` and are ``stride`` apart.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def line(index: int, offset: Any) -> Any:
            pointer = _pointer(context, builder, signature, args, index, offset)
            return builder.bitcast(pointer, _FLOATS.as_pointer())

        def spread(value: Any) -> Any:
            single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, ir.Constant(_INT32, 0))
            return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_INT32, WIDTH), None))

        low, step = spread(args[5]), spread(args[6])
        parts, offset = [], args[1]
        for _ in range(GROUP):
            parts.append(builder.load(line(0, offset), align=4))
            offset = builder.add(offset, args[2])
        total = parts[0]
        for row in parts[1:]:
            total = builder.fadd(total, row)
        sums = [builder.fmul(low, total)]
        for row in parts:
            more = builder.fmul(step, row)
            sums += [builder.fadd(value, more) for value in sums]
        for state, value in enumerate(sums):
            target = line(3, builder.add(args[4], ir.Constant(_INT64, state * WIDTH)))
            builder.store(value, target, align=_STRIDE)
        return context.get_dummy_value()

    count, number = types.int64, types.float32
    return types.void(rows, count, count, table, count, number, number), code


@part
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
def _look_up(
    typingctx: Any, table: Any, codes: Any, places: Any, n_groups: Any, sums: Any, at: Any, stride: Any
) -> Any:
    """Add what ``n_groups`` groups of some chains look up, one group after the other, to the chains' sums.

    ``places`` are the flat indices of the codes of `_CHAINS` chains; their sums begin at the flat index
    ``at`` and are ``stride`` apart. The sums live in registers: this is why it is written in the compiler's
    own words. Four codes are loaded as one word.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def point(index: int, offset: Any, kind: Any) -> Any:
            return builder.bitcast(
                _pointer(context, builder, signature, args, index, offset), kind.as_pointer()
            )

        lines = point(0, ir.Constant(_INT64, 0), _INT8)
        starts = cgutils.unpack_tuple(builder, args[2], _CHAINS)
        targets = []
        for chain in range(_CHAINS):
            begin = builder.add(args[5], builder.mul(args[6], ir.Constant(_INT64, chain)))
            targets.append(point(4, begin, _FLOATS))
        begin = [builder.load(target, align=_STRIDE) for target in targets]
        before = builder.block
        test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        k, running = builder.phi(_INT64), [builder.phi(_FLOATS) for _ in begin]
        builder.cbranch(builder.icmp_signed("<", k, args[3]), body, after)
        builder.position_at_end(body)
        group = builder.gep(lines, [builder.mul(k, ir.Constant(_INT64, _STATES * _STRIDE))])
        words = [builder.load(point(1, builder.add(start, k), _INT64), align=2) for start in starts]
        totals = list(running)
        for lane in range(_CODES_IN_WORD):
            for chain, word in enumerate(words):
                shifted = builder.lshr(word, ir.Constant(_INT64, 16 * lane))
                distance = builder.and_(shifted, ir.Constant(_INT64, 0xFFFF))
                offset = ir.Constant(_INT64, lane * _STATES * _STRIDE)
                line = builder.gep(group, [builder.add(distance, offset)])
                values = builder.load(builder.bitcast(line, _FLOATS.as_pointer()), align=_STRIDE)
                totals[chain] = builder.fadd(totals[chain], values)
        for total, start, end in zip(running, begin, totals, strict=True):
            total.add_incoming(start, before)
            total.add_incoming(end, body)
        k.add_incoming(ir.Constant(_INT64, 0), before)
        k.add_incoming(builder.add(k, ir.Constant(_INT64, _CODES_IN_WORD)), body)
        builder.branch(test)
        builder.position_at_end(after)
        for target, total in zip(targets, running, strict=True):
            builder.store(total, target, align=_STRIDE)
        return context.get_dummy_value()

    count = types.int64
    return types.void(table, codes, types.UniTuple(count, _CHAINS), count, sums, count, count), code


@intrinsic
def _transpose(typingctx: Any, source: Any, at: Any, stride: Any, target: Any, to: Any) -> Any:
    """Write a square of `WIDTH` by `WIDTH` numbers transposed.

    It is read from the flat index ``at`` on in rows that are ``stride`` apart, and written from the flat
    index ``to`` on in rows that are `WIDTH` apart.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def line(index: int, offset: Any) -> Any:
            return builder.bitcast(
                _pointer(context, builder, signature, args, index, offset), _FLOATS.as_pointer()
            )

        rows = []
        for k in range(WIDTH):
            offset = builder.add(args[1], builder.mul(args[2], ir.Constant(_INT64, k)))
            rows.append(builder.load(line(0, offset), align=4))
        step = WIDTH // 2
        while step:  # exchange the halves of ever smaller blocks between pairs of rows
            pick: list[list[int]] = [[], []]
            for j in range(WIDTH):
                upper = bool(j & step)
                pick[0].append(j - step + WIDTH if upper else j)
                pick[1].append(j + WIDTH if upper else j + step)
            masks = [ir.Constant(ir.VectorType(_INT32, WIDTH), p) for p in pick]
            for k in range(WIDTH):
                if not k & step:
                    pair = rows[k], rows[k + step]
                    rows[k], rows[k + step] = (builder.shuffle_vector(*pair, mask) for mask in masks)
            step //= 2
        for k, row in enumerate(rows):
            offset = builder.add(args[4], ir.Constant(_INT64, k * WIDTH))
            builder.store(row, line(3, offset), align=4)
        return context.get_dummy_value()

    count = types.int64
    return types.void(source, count, count, target, count), code


@part
def _copy_columns(weights: Any, first: int, column: int, n_rows: int, rows: Any) -> None:
    """`_copy_rows` of the transposed weights, read along their own rows."""
    n_fields, n_units = weights.shape
    flat = weights.reshape(weights.size)
    n = min(WIDTH, n_fields - column)
    n_whole = min(n_rows, n_units - first)
    if n < WIDTH or n_whole < n_rows:
        for k in range(n_rows * WIDTH):
            rows[k] = np.float32(0.0)
    for j in range(0, n, WIDTH):
        for k in range(0, n_whole, WIDTH):
            if j + WIDTH <= n and k + WIDTH <= n_whole:
                _transpose(flat, (column + j) * n_units + first + k, n_units, rows, k * WIDTH + j)
            else:
                for jj in range(j, min(j + WIDTH, n)):
                    for kk in range(k, min(k + WIDTH, n_whole)):
                        rows[kk * WIDTH + jj] = weights[column + jj, first + kk]


@kernel
def multiply_codes(
    codes: Any,
    ranges: tuple[int, int, int, int],
    weights: Any,
    across: bool,
    levels: tuple[float, float],
    room: Any,
    fields: Any,
) -> None:
    """``fields[i] = states[i] @ weights`` from the codes of the states; with ``across``, the product with the
    transposed weights.

    ``ranges`` are the rows ``i``: from the first number to the second, and from the third to the fourth. The
    bits of a row do not depend on which others are asked for. ``room`` is that of `make_room` for at least
    as many chains.
    """
    n_fields, n_groups = fields.shape[1], codes.shape[1]
    low, high = np.float32(levels[0]), np.float32(levels[1])
    table, rows = room[:_TABLE], room[_TABLE : _TABLE + _ROWS]
    n_first = ranges[1] - ranges[0]
    n_rows = n_first + ranges[3] - ranges[2]
    jump = ranges[2] - ranges[1]  # of the index of a row, from the first range to the second
    sums = room[_TABLE + _ROWS : _TABLE + _ROWS + n_rows * WIDTH]
    flat_codes, flat_weights = codes.reshape(codes.size), weights.reshape(weights.size)
    for column in range(0, n_fields, WIDTH):
        n_columns = min(WIDTH, n_fields - column)
        for k in range(sums.size):
            sums[k] = np.float32(0.0)
        for first in range(0, n_groups, CHUNK):
            n = min(CHUNK, n_groups - first)
            whole = n_columns == WIDTH and GROUP * (first + n) <= weights.shape[0] and not across
            if across:
                _copy_columns(weights, GROUP * first, column, GROUP * n, rows)
            elif not whole:
                _copy_rows(weights, GROUP * first, column, GROUP * n, rows)
            for g in range(n):
                start = g * _STATES * WIDTH
                if whole:
                    at = GROUP * (first + g) * n_fields + column
                    _fill_group(flat_weights, at, n_fields, table, start, low, high - low)
                else:
                    _fill_group(rows, g * GROUP * WIDTH, WIDTH, table, start, low, high - low)
            base = ranges[0] * n_groups + first
            for k in range(0, n_rows - _CHAINS + 1, _CHAINS):
                a, b, c, d = k, k + 1, k + 2, k + 3
                a += jump if a >= n_first else 0
                b += jump if b >= n_first else 0
                c += jump if c >= n_first else 0
                d += jump if d >= n_first else 0
                places = (a * n_groups + base, b * n_groups + base, c * n_groups + base, d * n_groups + base)
                _look_up(table, flat_codes, places, n, sums, k * WIDTH, WIDTH)
            for k in range(n_rows // _CHAINS * _CHAINS, n_rows):
                a = (k + (jump if k >= n_first else 0)) * n_groups + base
                _look_up(table, flat_codes, (a, a, a, a), n, sums, k * WIDTH, 0)
        for k in range(n_rows):
            i = ranges[0] + k + (jump if k >= n_first else 0)
            for j in range(n_columns):
                fields[i, column + j] = sums[k * WIDTH + j]


@intrinsic
def _fill_words(
    typingctx: Any, states: Any, at: Any, stride: Any, middle: Any, codes: Any, to: Any, step: Any
) -> Any:
    """Codes of `WIDTH` units in sixteen chains, four groups: a word of 64 bits for each unit.

    The states of the first chain begin at the flat index ``at``, those of the next one ``stride`` later; the
    words are written from the word ``to`` of the codes on, ``step`` words apart.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow, wide = (ir.VectorType(ir.IntType(bits), WIDTH) for bits in (16, 64))

        def same(kind: Any, value: int) -> Any:
            return ir.Constant(kind, [value] * WIDTH)

        single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), args[3], ir.Constant(_INT32, 0))
        middle = builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_INT32, WIDTH), None))
        bits, offset = same(narrow, 0), args[1]
        for chain in range(GROUP * _CODES_IN_WORD):
            pointer = _pointer(context, builder, signature, args, 0, offset)
            row = builder.load(builder.bitcast(pointer, _FLOATS.as_pointer()), align=4)
            high = builder.fcmp_ordered(">", row, middle)
            bits = builder.or_(bits, builder.select(high, same(narrow, 1 << chain), same(narrow, 0)))
            offset = builder.add(offset, args[2])
        found, spread = builder.zext(bits, wide), same(wide, 0)
        for group in range(_CODES_IN_WORD):  # sixteen bits from one code to the next
            part = builder.and_(found, same(wide, (_STATES - 1) << (GROUP * group)))
            spread = builder.or_(spread, builder.shl(part, same(wide, (16 - GROUP) * group)))
        spread = builder.mul(spread, same(wide, _STRIDE))
        offset = args[5]
        start = _pointer(context, builder, signature, args, 4, ir.Constant(_INT64, 0))
        words = builder.bitcast(start, _INT64.as_pointer())  # a view would be compiled for longer
        for unit in range(WIDTH):
            word = builder.extract_element(spread, ir.Constant(_INT32, unit))
            builder.store(word, builder.gep(words, [offset]), align=8)
            offset = builder.add(offset, args[6])
        return context.get_dummy_value()

    count = types.int64
    return types.void(states, count, count, types.float32, codes, count, count), code


@kernel
def fill_codes_across(states: Any, first: int, last: int, middle: Any, codes: Any) -> None:
    """The codes ``(n_units, n_groups)`` of the transposed states, for the units from ``first`` to ``last``:
    a group is four chains. Four codes at a time are one word of 64 bits.
    """
    n_chains, n_units = states.shape
    n_words, n_whole = codes.shape[1] // _CODES_IN_WORD, n_chains // (GROUP * _CODES_IN_WORD)
    flat_states, flat_codes = states.reshape(states.size), codes.reshape(codes.size)
    end = first + (last - first) // WIDTH * WIDTH  # of the units that are taken `WIDTH` at a time
    for w in range(n_whole):
        at = w * GROUP * _CODES_IN_WORD * n_units
        for j in range(first, end, WIDTH):
            _fill_words(flat_states, at + j, n_units, middle, flat_codes, j * n_words + w, n_words)
    for j in range(first, last):
        begin = n_whole * _CODES_IN_WORD if j < end else 0
        for g in range(begin, -(-n_chains // GROUP)):
            state = np.uint32(0)
            for k in range(min(GROUP, n_chains - GROUP * g)):
                state |= np.uint32(states[GROUP * g + k, j] > middle) << np.uint32(k)
            codes[j, g] = np.uint16(state * np.uint32(_STRIDE))


@kernel
def multiply_states(
    states: Any, weights: Any, levels: tuple[float, float], codes: Any, room: Any, fields: Any
) -> None:
    """``fields = states @ weights``, where the states take the two ``levels`` only.

    ``codes`` and ``room`` are those of `make_room`.
    """
    fill_codes(states, np.float32(0.5) * (np.float32(levels[0]) + np.float32(levels[1])), codes)
    none, across = 0 * len(states), len(states) < 0  # constants would be types of their own, compiled anew
    multiply_codes(codes, (none, len(states), none, none), weights, across, levels, room, fields)
