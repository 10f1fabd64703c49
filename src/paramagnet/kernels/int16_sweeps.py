"""Gibbs sweeps by sums of int16 numbers, where the processor has AVX-512BW: the chain of a float32 reference.

Five units have 32 states. What a group of five adds to a field, in multiples of a unit of its own for every
field, is an int16 number for each state: a **table** in one register, from which one instruction looks up 32
chains. Vectors run along the chains. Sums that cannot overflow are exact, so they depend on no order.

- **Tables** are ``(quarter, group, 4, 32)``: a counter of random numbers serves the four units ``j, j + q,
  j + 2 q, j + 3 q``, where ``q`` is a quarter of the layer, and so does a pass over the groups. The groups
  are dealt out to **parts**, each with sums of its own: smaller sums allow a finer unit.
- **Bits** are the states of a layer, a row of 64-bit words along the chains for every unit; **packed** are
  the same as a row of words along the units for every chain; **codes** are those of the groups.
- **A draw** is certain where the uniform number lies farther from the probability than rounding can explain.
  Elsewhere the unit is **undecided**, and its field is summed anew in float32, in a fixed order: lane ``l``
  of 64 sums the weights of the high units ``l, l + 64, ...``, then halves of the lanes are added. The bound
  is proved in docs/design_notes.md. So all draws are those of fields summed in float32 in that order.

Random numbers and draws are those of `paramagnet.kernels.sampling`, with multiply-adds that are fused
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels import vectors
from paramagnet.kernels.jit import inlined, kernel
from paramagnet.kernels.vectors import (
    FLOAT,
    FLOATS,
    INT1,
    INT16,
    INT32,
    INT64,
    MULTIPLIER_0,
    MULTIPLIER_1,
    STATES,
    SUMS,
    WORDS,
    Arrays,
    call,
    filled,
    spread,
)

GROUP = 5  # units of a group
CHAINS = 64  # numbers of chains are multiples of it
SPAN = 512  # chains whose sums stay in the first-level cache until they are drawn
_TABLE = 4 * STATES  # numbers of one group for four units
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_EXP2 = (  # 2**r on [-1/2, 1/2], as in `sampling`, the highest power first
    0.00015461444724808513, 0.0013400428177711937, 0.00961805667843204, 0.05550327226669895,
    0.24022650922289554, 0.6931472067028329, 1.0,
)  # fmt: skip
# The same to 1.6e-4 by four points: odds need not be more precise than the sums.
_CUBIC = (0.05583828315138817, 0.2426394820213318, 0.6931367516517639, 0.9999245405197144)
_LOG2_E = np.float32(1.4426950408889634)
_ONE, _HALF = np.float32(1.0), np.float32(0.5)
_STEP, _HALF_STEP = np.float32(2.0**-23), np.float32(2.0**-24)

_look_up_128, _look_up_64 = vectors.look_up(4, 4), vectors.look_up(4, 2)


def _odds(builder: Any, exponent: Any) -> Any:
    """``2**exponent``, to 1.6e-4 of itself."""
    k = call(builder, "llvm.rint.v16f32", FLOATS, exponent)
    r, power = builder.fsub(exponent, k), filled(FLOATS, _CUBIC[0])
    for factor in _CUBIC[1:]:
        power = call(builder, "llvm.fma.v16f32", FLOATS, power, r, filled(FLOATS, factor))
    mask, rounding = ir.Constant(INT16, -1), ir.Constant(INT32, 4)
    return call(builder, "llvm.x86.avx512.mask.scalef.ps.512", FLOATS, power, k, power, mask, rounding)


@intrinsic
def _draw_16(
    typingctx: Any, counters: Any, sums: Any, numbers: Any, words: Any, high: Any, doubt: Any,
    chain: Any, row: Any, n_parts: Any, at: Any, first: Any, q: Any, scalars: Any,
) -> Any:  # fmt: skip
    """Draw four units of the 16 chains from ``chain`` on.

    ``sums`` are rows of ``row`` chains, four for every part. ``numbers`` hold from ``at`` on, four of each:
    slope and shift of the binary logarithm of the least odds of being low, and the factor between the least
    and the largest. ``words`` take the random words; ``high`` the units that are high for certain, as bits,
    the row of ``first`` and those ``q``, ``2 q`` and ``3 q`` below it; ``doubt`` those that are undecided.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = Arrays(context, builder, signature, args)
        chain, row, n_parts, at, first, q = args[6:12]
        random = vectors.philox(arrays, chain, cgutils.unpack_tuple(builder, args[12], 18))

        def step(k: Any, running: Sequence[Any]) -> list[Any]:
            place = builder.mul(k, builder.mul(row, ir.Constant(INT64, 4)))
            new = []
            for unit, total in enumerate(running):
                shift = builder.mul(row, ir.Constant(INT64, unit))
                part = arrays.load(1, arrays.index(place, shift, chain), vectors.HALF_SUMS)
                new.append(builder.add(total, builder.sext(part, WORDS)))
            return new

        totals = arrays.loop(n_parts, [ir.Constant(WORDS, None)] * 4, step)
        for unit in range(4):
            slope, shift, width = (
                spread(builder, FLOATS, arrays.load(2, arrays.index(at, 4 * kind + unit), FLOAT, align=4))
                for kind in range(3)
            )
            total = builder.sitofp(totals[unit], FLOATS)
            least = _odds(builder, call(builder, "llvm.fma.v16f32", FLOATS, slope, total, shift))
            most = builder.fmul(least, width)
            ones, nine = filled(WORDS, 0x7F), filled(WORDS, 9)  # the exponent of 1, and 23 bits behind it
            mantissa = call(builder, "llvm.fshr.v16i32", WORDS, ones, random[unit], nine)
            mantissa = builder.bitcast(mantissa, FLOATS)
            u = builder.fsub(mantissa, filled(FLOATS, 1.0 - 2.0**-24))
            least, most = (call(builder, "llvm.fma.v16f32", FLOATS, u, odds, u) for odds in (least, most))
            sure = builder.fcmp_ordered("<", most, filled(FLOATS, 1.0 - 2.0**-24))
            may = builder.fcmp_unordered("<=", least, filled(FLOATS, 1.0))
            doubt = builder.and_(may, builder.not_(sure))
            place = arrays.index(builder.lshr(chain, ir.Constant(INT64, 4)))
            n_words = builder.lshr(row, ir.Constant(INT64, 4))
            unit_row = builder.add(first, builder.mul(q, ir.Constant(INT64, unit)))
            unit_row = builder.mul(unit_row, n_words)
            doubt_row = builder.mul(ir.Constant(INT64, unit), n_words)
            arrays.store(builder.bitcast(sure, INT16), 4, arrays.index(place, unit_row), unit=INT16)
            arrays.store(builder.bitcast(doubt, INT16), 5, arrays.index(place, doubt_row), unit=INT16)
            word_row = builder.mul(row, ir.Constant(INT64, unit))
            arrays.store(random[unit], 3, arrays.index(chain, word_row), align=4)
        return context.get_dummy_value()

    n = types.int64
    return types.void(
        counters, sums, numbers, words, high, doubt, n, n, n, n, n, n, types.UniTuple(types.uint32, 18)
    ), code


@intrinsic
def _sum_high(typingctx: Any, weights: Any, start: Any, packed: Any, first: Any, n_words: Any) -> Any:
    """The sum of the weights from ``start`` on whose bit is set in the 64-bit words from ``first`` on, in
    the fixed order: 64 lanes, and halves of them added until one is left.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = Arrays(context, builder, signature, args)
        zero = ir.Constant(FLOATS, None)

        def step(k: Any, running: Sequence[Any]) -> list[Any]:
            place = arrays.index(args[1], builder.mul(k, ir.Constant(INT64, 64)))
            new = []
            for part, total in enumerate(running):
                at = builder.mul(arrays.index(args[3], k), ir.Constant(INT64, 4))
                mask = arrays.load(2, arrays.index(at, part), INT16, unit=INT16)
                pointer = arrays.pointer(0, arrays.index(place, 16 * part), FLOATS)
                name = "llvm.masked.load.v16f32." + ("p0" if str(pointer.type) == "ptr" else "p0v16f32")
                align, mask = ir.Constant(INT32, 4), builder.bitcast(mask, vectors.MASK)
                new.append(builder.fadd(total, call(builder, name, FLOATS, pointer, align, mask, zero)))
            return new

        sums = arrays.loop(args[4], [zero] * 4, step)
        total = builder.fadd(builder.fadd(sums[0], sums[2]), builder.fadd(sums[1], sums[3]))
        for n in (8, 4, 2, 1):
            low, high = (
                ir.Constant(ir.VectorType(INT32, n), list(range(begin, begin + n))) for begin in (0, n)
            )
            total = builder.fadd(
                builder.shuffle_vector(total, total, low), builder.shuffle_vector(total, total, high)
            )
        return builder.extract_element(total, ir.Constant(INT32, 0))

    n = types.int64
    return types.float32(weights, n, packed, n, n), code


@intrinsic
def _multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32 numbers, rounded once."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call(builder, "llvm.fma.f32", FLOAT, *args)

    return types.float32(types.float32, types.float32, types.float32), code


@intrinsic
def _as_float(typingctx: Any, word: Any) -> Any:
    """The float32 with the bits of a 32-bit word."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], FLOAT)

    return types.float32(types.int32), code


@intrinsic
def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """The number of zero bits below the lowest bit of a 64-bit word that is set."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(INT1, 0))

    return types.int64(types.uint64), code


@intrinsic
def _count_bits(typingctx: Any, word: Any) -> Any:
    """The number of bits of a 64-bit word that are set."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), code


@intrinsic
def _collect(typingctx: Any, bits: Any, first: Any, row: Any, n_units: Any, out: Any, at: Any) -> Any:
    """Numbers of ``n_units`` bits each, at most 16, for 32 chains: the bits of as many rows, of ``row`` half
    words of 32 chains, from the half word ``first`` on.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = Arrays(context, builder, signature, args)

        def step(k: Any, running: Sequence[Any]) -> list[Any]:
            place = arrays.index(args[1], builder.mul(k, args[2]))
            word = arrays.load(0, place, INT32, align=4, unit=INT32)
            weight = builder.shl(ir.Constant(INT16, 1), builder.trunc(k, INT16))
            mask = builder.bitcast(word, ir.VectorType(INT1, STATES))
            more = builder.select(mask, spread(builder, SUMS, weight), ir.Constant(SUMS, None))
            return [builder.or_(running[0], more)]

        numbers = arrays.loop(args[3], [ir.Constant(SUMS, None)], step)[0]
        arrays.store(numbers, 4, args[5])
        return context.get_dummy_value()

    n = types.int64
    return types.void(bits, n, n, n, out, n), code


@inlined
def encode(bits: Any, n_parts: int, codes: Any, packed: Any, n_used: int, column: Any) -> int:
    """Codes and packed states of a layer from its bits; returned is how many units of the first ``n_used``
    chains change. ``column`` has room for 128 numbers.
    """
    n_chains, n_words = packed.shape
    n_in_part = codes.shape[0] // n_parts
    n_half = n_chains // STATES
    flat, flat_codes = bits.reshape(bits.size), codes.reshape(codes.size)
    for position in range(codes.shape[0]):
        first = GROUP * (position % n_in_part * n_parts + position // n_in_part)
        for half in range(n_half):
            at = position * n_chains + STATES * half
            _collect(flat, first * n_half + half, n_half, GROUP, flat_codes, at)
    n_changed = 0
    for w in range(n_words):
        for half in range(n_half):
            for part in range(4):
                _collect(flat, (64 * w + 16 * part) * n_half + half, n_half, 16, column, STATES * part)
            for lane in range(STATES):
                i, word = STATES * half + lane, np.uint64(column[lane])
                word |= np.uint64(column[STATES + lane]) << np.uint64(16)
                word |= np.uint64(column[2 * STATES + lane]) << np.uint64(32)
                word |= np.uint64(column[3 * STATES + lane]) << np.uint64(48)
                n_changed += _count_bits(packed[i, w] ^ word) if i < n_used else 0
                packed[i, w] = word
    return n_changed


# --- draws -------------------------------------------------------------------------------------------------


@inlined
def fill_counters(counters: Any, seed: Any, first: int, sweep: int) -> None:
    """What the first two rounds of Philox make of the chains from ``first`` on, even ones before odd ones in
    each 16: the product of the second round.
    """
    product = np.uint64(MULTIPLIER_1) * np.uint64(np.uint32(sweep))
    constant = np.uint32(product >> np.uint64(32)) ^ np.uint32(seed)
    for i in range(counters.size):
        chain = first + i // 16 * 16 + 2 * (i % 8) + i % 16 // 8
        counters[i] = np.uint64(MULTIPLIER_0) * np.uint64(np.uint32(chain) ^ constant)


@inlined
def advance(j: int, sweep: int, stream: int, seed: Any) -> Any:
    """What the first three rounds make of the counter's words that are the same for all chains, and the keys
    of the others.
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


@inlined
def _is_high(x: Any, word: Any) -> Any:
    """Whether a unit with log-odds ``x`` is high: the draw of `sampling`, with fused multiply-adds."""
    t = min(abs(x) * _LOG2_E, np.float32(125.0))
    k = np.int32(t + _HALF)
    r, power = np.float32(k) - t, np.float32(_EXP2[0])
    power = _multiply_add(power, r, np.float32(_EXP2[1]))
    power = _multiply_add(power, r, np.float32(_EXP2[2]))
    power = _multiply_add(power, r, np.float32(_EXP2[3]))
    power = _multiply_add(power, r, np.float32(_EXP2[4]))
    power = _multiply_add(power, r, np.float32(_EXP2[5]))
    power = _multiply_add(power, r, np.float32(_EXP2[6]))
    e = power * _as_float(np.int32((np.int32(127) - k) << np.int32(23)))
    u = _multiply_add(np.float32(np.int32(word >> np.uint32(9))), _STEP, _HALF_STEP)
    return _multiply_add(u, e, u) < (_ONE if x >= np.float32(0.0) else e)


@inlined
def draw_layer(
    target: Any, n_parts: int, codes: Any, packed: Any, counters: Any, room: Any, address: Any, bits: Any
) -> int:
    """Draw a layer given the codes and packed states of the other one; return how many were undecided.

    ``target`` is the table, the ``numbers`` of `prepare`, the gain and origins of the log-odds, and the
    weights, one row per unit of this layer. ``room`` are arrays for sums, random words, bits of undecided
    units and a list of them. ``address`` is the seed, the number of chains that count, the sweep and the
    stream; ``counters`` are those of `fill_counters`.
    """
    table, numbers, gain, origins, weights = target
    sums, words, doubt, undecided = room
    seed, n_used, sweep, stream = address
    n_positions, row = codes.shape
    n_units, n_sources = weights.shape
    n_in_part, q = n_positions // n_parts, (n_units + 3) // 4
    flat_codes, flat_weights = codes.reshape(codes.size), weights.reshape(weights.size)
    flat_packed, n_words, flat_bits = packed.reshape(packed.size), packed.shape[1], bits.reshape(bits.size)
    n_row, total = row // 64, 0
    for j in range(q):
        scalars = advance(j, sweep, stream, seed)
        for begin in range(0, row, SPAN):
            end = min(begin + SPAN, row)
            for part in range(n_parts):
                start, first = part * n_in_part, (j * n_positions + part * n_in_part) * _TABLE
                for i in range(begin, end - 64, 128):
                    _look_up_128(
                        table, first, n_in_part, flat_codes, start * row + i, row, sums, 4 * part * row + i
                    )
                if (end - begin) % 128:
                    i = end - 64
                    _look_up_64(
                        table, first, n_in_part, flat_codes, start * row + i, row, sums, 4 * part * row + i
                    )
            for i in range(begin, end, 16):
                _draw_16(
                    counters, sums, numbers, words, flat_bits, doubt, i, row, n_parts, 16 * j, j, q, scalars
                )
        n = 0
        for k in range(min(4, (n_units - j + q - 1) // q)):
            for w in range(n_row):
                word = doubt[k * n_row + w]
                if 64 * (w + 1) > n_used:
                    word &= (np.uint64(1) << np.uint64(n_used - 64 * w)) - np.uint64(1)
                while word:
                    undecided[n] = k * row + 64 * w + _trailing_zeros(word)
                    word &= word - np.uint64(1)
                    n += 1
        for i in range(n):  # apart from the search for them: the next one begins before the last one ends
            place = undecided[i]
            unit, chain = place // row * q + j, place % row
            field = _sum_high(flat_weights, unit * n_sources, flat_packed, chain * n_words, n_words)
            is_high = _is_high(_multiply_add(gain, field, origins[unit]), words[place])
            bits[unit, chain // 64] |= np.uint64(is_high) << np.uint64(chain % 64)
        total += n
    return total


@kernel
def run_block(
    targets: Any,
    n_parts: tuple[int, int],
    states: Any,
    held: Any,
    address: tuple[int, int, int, int],
    n_sweeps: int,
    room: Any,
    counts: Any,
) -> None:
    """All sweeps of a block of chains.

    ``targets`` are the hidden and the visible layer as `draw_layer` wants them. What follows is of the
    visible units first: ``n_parts``, those into which groups are dealt out, and ``states``, pairs of packed
    states, codes and bits. ``held`` are bits of visible units that stay, and their values; no rows if there
    are none. ``address`` is the seed, the first chain, the first sweep and the number of chains that count.
    ``counts`` take the changes of visible and hidden units, and how many were undecided. Both layers go
    through the same calls, which are written out and compiled here once.
    """
    packed, codes, bits = states
    counters, column = room[4], room[5]
    seed, first, start, n_used = np.uint64(address[0]), address[1], address[2], address[3]
    for half in range(2 * n_sweeps):
        sweep, source = start + half // 2, half % 2
        drawn = 1 - source
        if source == 0:
            fill_counters(counters, seed, first, sweep)
        counts[2] += draw_layer(
            targets[source],
            n_parts[source],
            codes[source],
            packed[source],
            counters,
            room[:4],
            (seed, n_used, sweep, source),  # streams: 0 for hidden units, 1 for visible ones
            bits[drawn],
        )
        if drawn == 0:
            for unit in range(held.shape[1]):
                for w in range(held.shape[2]):
                    bits[0][unit, w] = bits[0][unit, w] & ~held[0, unit, w] | held[1, unit, w]
        n = encode(bits[drawn], n_parts[drawn], codes[drawn], packed[drawn], n_used, column)
        counts[drawn] += n if half > 0 else 0  # the first hidden states have none to be compared with


@kernel
def add_sums(packed: Any, terms: Any, factor: float, constant: float, out: Any) -> None:
    """Add ``factor`` times the sum of the ``terms`` of high units, and ``constant``, for every chain. The
    sums are float32, in the fixed order.
    """
    flat, n_words = packed.reshape(packed.size), packed.shape[1]
    for i in range(out.size):
        out[i] += factor * np.float64(_sum_high(terms, 0, flat, i * n_words, n_words)) + constant
