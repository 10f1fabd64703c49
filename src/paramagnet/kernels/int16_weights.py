"""Annealing by sums of int16 numbers: draws of a layer that is summed out, and what they add to log-weights.

A log-weight needs fields to the precision of float32. So a group has two tables, its multiples of
``2**SHIFT`` and what is left of them (`paramagnet.kernels.int16_tables`); the sum of both is an int32 number,
exact, and the log-odds are made of it in float64. Their only error is that of the weights, which were
rounded to multiples of two units: at most a unit for each, a unit being about ``2**-27`` of the sum of
their absolute values in a part.

The exponentials are float32, to 1e-7 of themselves, as in `paramagnet.kernels.sampling`; sums of their
logarithms are those of products, in float64, one product for each chain. Vectors run along the chains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels import vectors
from paramagnet.kernels.jit import kernel
from paramagnet.kernels.vectors import (
    FLOATS,
    INT16,
    INT32,
    INT64,
    MULTIPLIER_0,
    MULTIPLIER_1,
    STATES,
    WORDS,
    Arrays,
    call,
    filled,
    spread,
)

SHIFT = 11  # bits of a table's unit, as in `int16_tables`
SPAN = 512  # chains whose sums stay in the first-level cache until they are drawn
FACTORS = 128  # four units each: a product of 512 factors of at most 2 is far from overflow
_TABLES = 8 * STATES  # numbers of one group for four units
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_EXP2 = (  # 2**r on [-1/2, 1/2], as in `sampling`, the highest power first
    0.00015461444724808513, 0.0013400428177711937, 0.00961805667843204, 0.05550327226669895,
    0.24022650922289554, 0.6931472067028329, 1.0,
)  # fmt: skip
_DOUBLE = ir.DoubleType()
_DOUBLES = ir.VectorType(_DOUBLE, 8)
_HALVES = [ir.Constant(ir.VectorType(INT32, 8), list(range(n, n + 8))) for n in (0, 8)]
_WHOLE = ir.Constant(WORDS, list(range(16)))

_look_up_64 = vectors.look_up(8, 2)


def _exp_minus(builder: Any, y: Any) -> Any:
    """``exp(-y)`` in float32 for ``y >= 0``, not below ``2**-125``."""
    t = builder.fmul(y, filled(FLOATS, float(np.float32(1.0 / math.log(2.0)))))
    t = call(builder, "llvm.minnum.v16f32", FLOATS, t, filled(FLOATS, 125.0))
    k = call(builder, "llvm.rint.v16f32", FLOATS, t)
    r, power = builder.fsub(k, t), filled(FLOATS, _EXP2[0])
    for factor in _EXP2[1:]:
        power = call(builder, "llvm.fma.v16f32", FLOATS, power, r, filled(FLOATS, factor))
    mask, rounding = ir.Constant(INT16, -1), ir.Constant(INT32, 4)
    k = builder.fneg(k)
    return call(builder, "llvm.x86.avx512.mask.scalef.ps.512", FLOATS, power, k, power, mask, rounding)


class _Pair:
    """Float64 numbers of 16 chains, in two vectors."""

    def __init__(self, builder: Any, parts: Sequence[Any]) -> None:
        self.builder, self.parts = builder, list(parts)

    @classmethod
    def of(cls, builder: Any, values: Any) -> _Pair:
        """Whole numbers, or float32 ones."""
        halves = [builder.shuffle_vector(values, values, half) for half in _HALVES]
        convert = builder.sitofp if values.type == WORDS else builder.fpext
        return cls(builder, [convert(half, _DOUBLES) for half in halves])

    def narrow(self) -> Any:
        """The same in float32."""
        kind = ir.VectorType(ir.FloatType(), 8)
        return self.builder.shuffle_vector(*(self.builder.fptrunc(x, kind) for x in self.parts), _WHOLE)

    def apply(self, operation: Any, *others: _Pair) -> _Pair:
        """An operation of the builder's on both vectors."""
        pairs = zip(self.parts, *(other.parts for other in others), strict=True)
        return _Pair(self.builder, [operation(*pair) for pair in pairs])

    def size(self) -> _Pair:
        """Absolute values."""
        return self.apply(lambda x: call(self.builder, "llvm.fabs.v8f64", _DOUBLES, x))

    def times_plus(self, factor: _Pair, more: _Pair) -> _Pair:
        """``self * factor + more``, rounded once."""
        return self.apply(lambda *x: call(self.builder, "llvm.fma.v8f64", _DOUBLES, *x), factor, more)


def _weigh_16(joint: bool) -> Any:
    """Draw four units of the 16 chains from ``chain`` on, and add to what their log-weights are made of.

    ``sums`` are rows of ``row`` chains, eight for every part. ``numbers`` hold from ``at`` on, four of each:
    factor and constant of the log-odds before a step and after it. ``weights`` are rows of ``row`` numbers:
    a sum, and the products of ``1 + exp(-|x|)`` after the step and before. With ``joint`` states, the sum
    is that of the levels of the old states ``bits`` times the first log-odds, and there are no products.
    """

    @intrinsic
    def weigh_16(
        typingctx: Any, counters: Any, sums: Any, numbers: Any, weights: Any, bits: Any,
        chain: Any, row: Any, n_parts: Any, at: Any, q: Any, levels: Any, scalars: Any,
    ) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            arrays = Arrays(context, builder, signature, args)
            chain, row, n_parts, at, q = args[5:10]
            low, high, tilt = (
                _Pair(builder, [spread(builder, _DOUBLES, x)] * 2)
                for x in cgutils.unpack_tuple(builder, args[10], 3)
            )
            random = vectors.philox(arrays, chain, cgutils.unpack_tuple(builder, args[11], 18))

            def step(k: Any, running: Sequence[Any]) -> list[Any]:
                place = builder.mul(k, builder.mul(row, ir.Constant(INT64, 8)))
                new = []
                for unit, total in enumerate(running):
                    coarse, rest = (
                        arrays.load(
                            1,
                            arrays.index(place, builder.mul(row, ir.Constant(INT64, unit + more)), chain),
                            vectors.HALF_SUMS,
                        )
                        for more in (0, 4)
                    )
                    coarse = builder.shl(builder.sext(coarse, WORDS), filled(WORDS, SHIFT))
                    new.append(builder.add(total, builder.add(coarse, builder.sext(rest, WORDS))))
                return new

            totals = arrays.loop(n_parts, [ir.Constant(WORDS, None)] * 4, step)

            def rows(number: int) -> list[Any]:
                first = arrays.index(builder.mul(row, ir.Constant(INT64, number)), chain)
                return [arrays.index(first, half) for half in (0, 8)]

            total, after, before = (
                _Pair(builder, [arrays.load(3, place, _DOUBLES, align=8) for place in rows(number)])
                for number in range(3)
            )
            word = builder.lshr(chain, ir.Constant(INT64, 4))
            n_words = builder.lshr(row, ir.Constant(INT64, 4))
            for unit in range(4):
                factor0, constant0, factor1, constant1 = (
                    _Pair(
                        builder,
                        [
                            spread(
                                builder,
                                _DOUBLES,
                                arrays.load(2, arrays.index(at, 4 * kind + unit), _DOUBLE, align=8),
                            )
                        ]
                        * 2,
                    )
                    for kind in range(4)
                )
                place = arrays.index(word, builder.mul(builder.mul(q, ir.Constant(INT64, unit)), n_words))
                number = _Pair.of(builder, totals[unit])
                x0 = number.times_plus(factor0, constant0)
                x1 = number.times_plus(factor1, constant1)
                e1 = _exp_minus(builder, x1.size().narrow())
                if joint:
                    old = builder.bitcast(arrays.load(4, place, INT16), vectors.MASK)
                    masks = [builder.shuffle_vector(old, old, half) for half in _HALVES]
                    level = _Pair(builder, list(map(builder.select, masks, high.parts, low.parts)))
                    total = level.times_plus(x0, total)
                else:
                    e0 = _exp_minus(builder, x0.size().narrow())
                    half = _Pair(builder, [filled(_DOUBLES, 0.5)] * 2)
                    total = x1.apply(builder.fsub, x0).times_plus(tilt, total)
                    total = x1.size().apply(builder.fsub, x0.size()).times_plus(half, total)
                    after = after.times_plus(_Pair.of(builder, e1), after)
                    before = before.times_plus(_Pair.of(builder, e0), before)
                mantissa = builder.lshr(random[unit], filled(WORDS, 9))
                mantissa = builder.bitcast(builder.or_(mantissa, filled(WORDS, 0x3F800000)), FLOATS)
                u = builder.fsub(mantissa, filled(FLOATS, 1.0 - 2.0**-24))
                x = x1.narrow()
                positive = builder.fcmp_ordered(">=", x, ir.Constant(FLOATS, None))
                limit = builder.select(positive, filled(FLOATS, 1.0), e1)
                drawn = builder.fcmp_ordered("<", call(builder, "llvm.fma.v16f32", FLOATS, u, e1, u), limit)
                arrays.store(builder.bitcast(drawn, INT16), 4, place)
            for index, pair in enumerate((total, after, before)):
                for value, place in zip(pair.parts, rows(index), strict=True):
                    arrays.store(value, 3, place, align=8)
            return context.get_dummy_value()

        n = types.int64
        return types.void(
            counters, sums, numbers, weights, bits, n, n, n, n, n, types.UniTuple(types.float64, 3),
            types.UniTuple(types.uint32, 18),
        ), code  # fmt: skip

    return weigh_16


_weigh_marginal, _weigh_joint = _weigh_16(joint=False), _weigh_16(joint=True)


@kernel
def _advance(j: int, sweep: int, stream: int, seed: Any) -> Any:
    """What the first three rounds make of the counter's words that are the same for all chains, and the keys
    of the others; as `advance` of `int16_sweeps`.
    """
    k0, k1 = np.uint32(seed), np.uint32(seed >> np.uint64(32))
    weyl0, weyl1 = np.uint32(_WEYL_0), np.uint32(_WEYL_1)
    p0 = np.uint64(MULTIPLIER_0) * np.uint64(np.uint32(j))
    p1 = np.uint64(MULTIPLIER_1) * np.uint64(np.uint32(sweep))
    c1, c3 = np.uint32(p1), np.uint32(p0)
    c2 = np.uint32(p0 >> np.uint64(32)) ^ np.uint32(stream) ^ k1
    k0, k1 = np.uint32(k0 + weyl0), np.uint32(k1 + weyl1)
    p1 = np.uint64(MULTIPLIER_1) * np.uint64(c2)
    c0, x1 = np.uint32(p1 >> np.uint64(32)) ^ c1 ^ k0, c3 ^ k1
    k0, k1 = np.uint32(k0 + weyl0), np.uint32(k1 + weyl1)
    p0 = np.uint64(MULTIPLIER_0) * np.uint64(c0)
    x2, x3, x4 = np.uint32(p1) ^ k0, np.uint32(p0 >> np.uint64(32)) ^ k1, np.uint32(p0)
    a0, a1 = np.uint32(k0 + weyl0), np.uint32(k1 + weyl1)
    b0, b1 = np.uint32(a0 + weyl0), np.uint32(a1 + weyl1)
    c0, c1 = np.uint32(b0 + weyl0), np.uint32(b1 + weyl1)
    d0, d1 = np.uint32(c0 + weyl0), np.uint32(c1 + weyl1)
    e0, e1 = np.uint32(d0 + weyl0), np.uint32(d1 + weyl1)
    f0, f1 = np.uint32(e0 + weyl0), np.uint32(e1 + weyl1)
    g0, g1 = np.uint32(f0 + weyl0), np.uint32(f1 + weyl1)
    return x1, x2, x3, x4, a0, a1, b0, b1, c0, c1, d0, d1, e0, e1, f0, f1, g0, g1


@kernel
def _fill_numbers(tables: Any, odds: Any, n_units: int, joint: bool, numbers: Any) -> None:
    """The log-odds ``slopes[k] * field + shifts[k]`` as functions of the sum, ``(quarter, 4 kinds, 4
    units)``; ``odds`` are these and the levels of the other layer.
    """
    _, units, halves = tables
    slopes, shifts, (low, high) = odds
    q = (n_units + 3) // 4
    for place in range(numbers.size):  # units that do not exist: certainly low, and no part of a log-weight
        kind = place // 4 % 4
        numbers[place] = -1000.0 if kind == 3 or (kind == 1 and not joint) else 0.0
    for unit in range(n_units):
        for k in range(2):
            place = 16 * (unit % q) + 8 * k + unit // q
            numbers[place] = slopes[k] * (high - low) * units[unit]
            numbers[place + 4] = slopes[k] * (high + low) * halves[unit] + shifts[k, unit]


@kernel
def weigh_layer(
    tables: Any, n_parts: int, codes: Any, odds: Any, levels: Any, joint: bool, counters: Any, room: Any,
    address: Any, bits: Any, log_weights: Any,
) -> None:  # fmt: skip
    """Draw a layer that is summed out, given the codes of the other one, and add to the log-weights.

    ``tables`` are the table with its rests, the units and the halves. ``odds`` are the slopes of the log-odds
    before and after a step, their shifts, and the levels of the other layer. Added is what
    `paramagnet.kernels.sampling.draw_and_weigh` adds; with ``joint`` states, the old states times the first
    "log-odds", which are then a change of the energy. ``levels`` are those of the layer itself, ``address``
    is the seed, the sweep and the stream, and ``counters`` those of `int16_sweeps.fill_counters`.
    """
    table, n_units = tables[0], tables[1].size
    sums, numbers, weights = room
    seed, sweep, stream = address
    n_positions, row = codes.shape
    n_in_part, q = n_positions // n_parts, (n_units + 3) // 4
    flat_codes, half_words = codes.reshape(codes.size), bits.reshape(bits.size).view(np.uint16)
    _fill_numbers(tables, odds, n_units, joint, numbers)
    tilt = 0.5 * (levels[1] + levels[0]) / (levels[1] - levels[0])  # centre * field = tilt * x
    of_layer = (levels[0], levels[1], tilt)
    for i in range(row):
        weights[i], weights[row + i], weights[2 * row + i] = 0.0, 1.0, 1.0
    for j in range(q):
        scalars, drawn = _advance(j, sweep, stream, seed), half_words[j * (row // 16) :]
        for begin in range(0, row, SPAN):
            end = min(begin + SPAN, row)
            for part in range(n_parts):
                start, first = part * n_in_part, (j * n_positions + part * n_in_part) * _TABLES
                for i in range(begin, end, 64):
                    at, target = start * row + i, 8 * part * row + i
                    _look_up_64(table, first, n_in_part, flat_codes, at, row, sums, target)
            for i in range(begin, end, 16):
                if joint:
                    _weigh_joint(
                        counters, sums, numbers, weights, drawn, i, row, n_parts, 16 * j, q, of_layer, scalars
                    )
                else:
                    _weigh_marginal(
                        counters, sums, numbers, weights, drawn, i, row, n_parts, 16 * j, q, of_layer, scalars
                    )
        if j % FACTORS == FACTORS - 1 or j == q - 1:
            for i in range(log_weights.size):
                log_weights[i] += weights[i] + math.log(weights[row + i] / weights[2 * row + i])
            for i in range(row):
                weights[i], weights[row + i], weights[2 * row + i] = 0.0, 1.0, 1.0
