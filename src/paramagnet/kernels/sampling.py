"""Drawing binary units from their fields, and listing those that change: one pass over memory.

**Random numbers** are Philox4x32-10 (Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, SC11): a
bijection of a counter of four 32-bit words, keyed by the seed. The counter is the address of a draw,

    (unit, chain, sweep, stream)

so a draw depends on nothing but its address: not on the order of the work, not on who does it. One counter
serves the four units ``j, j + q, j + 2 q, j + 3 q``, where ``q`` is a quarter of the layer, rounded up.

**A draw**: unit ``j`` of a chain has the log-odds ``x = scale * field_j + shift_j`` of its higher level,
where ``scale`` and ``shift`` hold the difference of the levels, the bias and the temperature. With ``e =
exp(-|x|)`` it is high if ``u (1 + e) < 1`` (``x >= 0``) or ``u (1 + e) < e``; no division. ``u`` takes the
``2**23`` values ``(k + 1/2) / 2**23``: a level whose probability is below ``2**-24`` is never drawn,
whichever it is.

**A log-weight** is a sum of ``ln(1 + e)``: the logarithm of a product of many such factors, in float64,
with the same ``e``. All else is float32. Layers are ``(n_chains, n_units)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel, part

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_HALF_WORD = np.uint64(32)
_LOG2_E = np.float32(1.4426950408889634)
_ONE, _HALF = np.float32(1.0), np.float32(0.5)
_STEP, _HALF_STEP = np.float32(2.0**-23), np.float32(2.0**-24)
# 2**r on [-1/2, 1/2], interpolated at the Chebyshev points: relative error 2.5e-9.
_C0 = np.float32(1.0)
_C1 = np.float32(0.6931472067028329)
_C2 = np.float32(0.24022650922289554)
_C3 = np.float32(0.05550327226669895)
_C4 = np.float32(0.00961805667843204)
_C5 = np.float32(0.0013400428177711937)
_C6 = np.float32(0.00015461444724808513)
_WORD, _CHUNK = 64, 4  # units that are compared, and listed, at a time
_ALL = np.uint64(2**64 - 1)
_STATES = ir.VectorType(ir.FloatType(), _WORD)
_LINE, _SPARE, _BLOCK = 16, 64, 2048  # 32-bit words of a vector, and of four; units drawn at a time
_LANES = 8
_UNITS_IN_PRODUCT = 512 * _LANES  # a product of 512 factors of at most 2 is far from overflow


@intrinsic
def _as_float(typingctx: Any, word: Any) -> Any:
    """The float32 with the bits of a 32-bit word."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


@intrinsic
def _rises(typingctx: Any, old: Any, new: Any, first: Any) -> Any:
    """64 bits: which of as many units from ``first`` on are larger in ``new`` than in ``old``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        states = []
        for kind, value in zip(signature.args[:2], args[:2], strict=True):
            pointer = builder.gep(context.make_array(kind)(context, builder, value).data, [args[2]])
            states.append(builder.load(builder.bitcast(pointer, _STATES.as_pointer()), align=4))
        return builder.bitcast(builder.fcmp_ordered("<", *states), ir.IntType(64))

    return types.uint64(old, new, types.int64), code


@intrinsic
def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """The number of zero bits below the lowest bit of a 64-bit word that is not zero; 64 if there is none."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@intrinsic
def _count_bits(typingctx: Any, word: Any) -> Any:
    """The number of bits of a 64-bit word that are set."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), code


@intrinsic
def _multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32 numbers, one instruction where the machine has it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(args[0].type, [args[0].type] * 3), "llvm.fmuladd.f32"
        )
        return builder.call(function, args)

    return types.float32(types.float32, types.float32, types.float32), code


@kernel
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Philox4x32-10: four random 32-bit words from the counter ``c0..c3`` and the key ``k0, k1``."""
    for _ in range(10):
        p0, p1 = _MULTIPLIER_0 * np.uint64(c0), _MULTIPLIER_1 * np.uint64(c2)
        high0, high1 = np.uint32(p0 >> _HALF_WORD), np.uint32(p1 >> _HALF_WORD)
        c0, c1, c2, c3 = np.uint32(high1 ^ c1 ^ k0), np.uint32(p1), np.uint32(high0 ^ c3 ^ k1), np.uint32(p0)
        k0, k1 = np.uint32(k0 + _WEYL_0), np.uint32(k1 + _WEYL_1)
    return c0, c1, c2, c3


@kernel
def exp_minus(y: Any) -> Any:
    """``exp(-y)`` in float32 for ``y >= 0``, not below ``2**-125``: ``2**-k`` times a polynomial."""
    t = min(y * _LOG2_E, np.float32(125.0))
    k = np.int32(t + _HALF)
    r = np.float32(k) - t
    p = _multiply_add(_C6, r, _C5)
    p = _multiply_add(p, r, _C4)
    p = _multiply_add(p, r, _C3)
    p = _multiply_add(p, r, _C2)
    p = _multiply_add(p, r, _C1)
    p = _multiply_add(p, r, _C0)
    return p * _as_float(np.int32((np.int32(127) - k) << np.int32(23)))


@intrinsic
def philox_line(
    typingctx: Any,
    unit: Any,
    chain: Any,
    sweep: Any,
    stream: Any,
    k0: Any,
    k1: Any,
    out: Any,
    at: Any,
    q: Any,
) -> Any:
    """`philox` of the counters of sixteen units from ``unit`` on, all of one chain: their first words go to
    ``out[at]`` and on, their second ones to ``out[at + q]`` and so forth.

    Written in vectors, because the compiler makes them of a loop around `philox` in some places and not in
    others. Every 32-bit word has a place of 64 bits, whose upper half may hold anything: products take the
    lower half, and no instruction is spent on clearing the upper one. The kernels of other files use it, too;
    their compiled code does not notice changes here.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words, wide = ir.VectorType(ir.IntType(32), _LINE), ir.VectorType(ir.IntType(64), _LINE)

        def constant(value: int) -> Any:
            return ir.Constant(wide, [value] * _LINE)

        def spread(value: Any) -> Any:
            empty, zero = ir.Constant(wide, ir.Undefined), ir.Constant(ir.IntType(32), 0)
            single = builder.insert_element(empty, builder.zext(value, ir.IntType(64)), zero)
            return builder.shuffle_vector(single, single, ir.Constant(words, None))

        def multiply(value: Any, factor: int) -> tuple[Any, Any]:
            product = builder.mul(builder.and_(value, constant(2**32 - 1)), constant(factor))
            return builder.lshr(product, constant(32)), product

        c0 = builder.add(spread(args[0]), ir.Constant(wide, list(range(_LINE))))
        c1, c2, c3 = (spread(value) for value in args[1:4])
        keys = [args[4], args[5]]
        for _ in range(10):
            (high0, low0), (high1, low1) = multiply(c0, int(_MULTIPLIER_0)), multiply(c2, int(_MULTIPLIER_1))
            c0, c1, c2, c3 = (
                builder.xor(builder.xor(high1, c1), spread(keys[0])),
                low1,
                builder.xor(builder.xor(high0, c3), spread(keys[1])),
                low0,
            )
            for place, step in enumerate((_WEYL_0, _WEYL_1)):
                keys[place] = builder.add(keys[place], ir.Constant(ir.IntType(32), int(step)))
        array = context.make_array(signature.args[6])(context, builder, args[6])
        offset = args[7]
        for value in (c0, c1, c2, c3):
            pointer = builder.bitcast(builder.gep(array.data, [offset]), words.as_pointer())
            builder.store(builder.trunc(value, words), pointer, align=4)
            offset = builder.add(offset, args[8])
        return context.get_dummy_value()

    word, count = types.uint32, types.int64
    return types.void(word, word, word, word, word, word, out, count, count), code


@part
def _fill_words(words: Any, at: int, n_units: int, seed: Any, chain: int, sweep: int, stream: int) -> None:
    """The random words of one chain's layer, ``words[at + j]`` for unit ``j``; up to 64 words behind them are
    overwritten, too.

    Lines of sixteen counters are made from the last one to the first: what a line writes beyond the end of
    its quarter is overwritten by the next quarter's own words.
    """
    quarter = (n_units + 3) // 4
    k0, k1 = np.uint32(seed), np.uint32(seed >> _HALF_WORD)
    c1, c2, c3 = np.uint32(chain), np.uint32(sweep), np.uint32(stream)
    for first in range((quarter - 1) // _LINE * _LINE, -1, -_LINE):
        philox_line(np.uint32(first), c1, c2, c3, k0, k1, words, at + first, quarter)


@part
def _choose(x: Any, e: Any, word: Any, low: Any, high: Any) -> Any:
    """The level of a unit with log-odds ``x`` and ``e = exp(-|x|)``."""
    u = _multiply_add(np.float32(np.int32(word >> np.uint32(9))), _STEP, _HALF_STEP)
    return high if _multiply_add(u, e, u) < (_ONE if x >= 0.0 else e) else low


@kernel
def fill_uniform(out: Any, seed: int, first: int, sweep: int, stream: int) -> None:
    """The uniform numbers behind the draws of `draw` at the same address."""
    n_chains, n_units = out.shape
    words = np.empty(n_units + _SPARE, np.uint32)
    for i in range(n_chains):
        _fill_words(words, 0, n_units, np.uint64(seed), first + i, sweep, stream)
        for j in range(n_units):
            out[i, j] = np.float32(np.int32(words[j] >> np.uint32(9))) * _STEP + _HALF_STEP


@part
def _draw_row(
    fields: Any, slope: Any, shift: Any, low: Any, high: Any, words: Any, old: Any, new: Any
) -> Any:
    """One chain of `draw`; a loop of its own is what the compiler turns into vectors."""
    changed = np.int32(0)
    for j in range(fields.size):
        x = _multiply_add(slope, fields[j], shift[j])
        state = _choose(x, exp_minus(abs(x)), words[j], low, high)
        changed = np.int32(changed + np.int32(state != old[j]))
        new[j] = state
    return changed


@kernel
def draw(
    fields: Any,
    scale: float,
    shift: Any,
    levels: tuple[float, float],
    address: tuple[int, int, int, int],
    old: Any,
    new: Any,
) -> int:
    """Draw the states ``new`` in their ``fields``; return how many differ from ``old``, another array.

    ``address`` is the seed, the index of the first chain, the sweep and the stream. Chains of short layers
    share a loop, which otherwise would mostly be its scalar end.
    """
    n_chains, n_units = fields.shape
    slope, low, high = np.float32(scale), np.float32(levels[0]), np.float32(levels[1])
    seed, n_changed = np.uint64(address[0]), 0
    block = max(1, min(n_chains, _BLOCK // n_units))
    words, shifts = np.empty(block * n_units + _SPARE, np.uint32), np.empty(block * n_units, np.float32)
    for i in range(block):
        for j in range(n_units):
            shifts[i * n_units + j] = shift[j]
    for first in range(0, n_chains, block):
        end = min(first + block, n_chains)
        size = (end - first) * n_units
        for i in range(end - first):
            _fill_words(words, i * n_units, n_units, seed, address[1] + first + i, address[2], address[3])
        x, before, after = fields[first:end], old[first:end], new[first:end]
        n_changed += _draw_row(
            x.reshape(size), slope, shifts, low, high, words, before.reshape(size), after.reshape(size)
        )
    return n_changed


@kernel
def fill_means(
    fields: Any, scale: float, shift: Any, levels: tuple[float, float], factors: Any, out: Any
) -> None:
    """The means of the units in their fields, those of chain ``i`` times ``factors[i]``."""
    n_chains, n_units = fields.shape
    slope, low, step = np.float32(scale), np.float32(levels[0]), np.float32(levels[1] - levels[0])
    for i in range(n_chains):
        row, to, factor = fields[i], out[i], np.float32(factors[i])
        for j in range(n_units):
            x = _multiply_add(slope, row[j], shift[j])
            e = exp_minus(abs(x))
            to[j] = factor * _multiply_add(step, (_ONE if x >= 0.0 else e) / (_ONE + e), low)


@part
def _list_rises(old: Any, new: Any, rows: Any, n: int) -> int:
    """List the units of one chain that rise from ``rows[n]`` on, an even number; return where it ends.

    Four are written at a time, whether there are so many or not: few branches that cannot be predicted.
    """
    n_units = new.size
    for first in range(0, n_units, _WORD):
        base = min(first, n_units - _WORD)  # the last word begins among units that were already looked at
        if base >= 0:
            word = _rises(old, new, base) & (_ALL << np.uint64(first - base))
        else:  # fewer units than a word has bits
            base, word = 0, np.uint64(0)
            for j in range(n_units):
                word |= np.uint64(new[j] > old[j]) << np.uint64(j)
        end = n + _count_bits(word)
        while n < end:
            for k in range(_CHUNK):
                rows[n + k] = base + _trailing_zeros(word)
                word &= word - np.uint64(1)
            n += _CHUNK
        n = end
    rows[n] = n_units
    return n + (n & 1)


@kernel
def draw_and_list(
    fields: Any,
    scale: float,
    shift: Any,
    levels: tuple[float, float],
    address: tuple[int, int, int, int],
    old: Any,
    new: Any,
    rows: Any,
    bounds: Any,
) -> int:
    """`draw`, and list the units that change, while they are at hand.

    Units ``rows[bounds[2 i] : bounds[2 i + 1]]`` of chain ``i`` go up, those from there to
    ``bounds[2 i + 2]`` go down. Both parts are even in number, if need be by one unit beyond the last.
    ``rows`` has room for ``n_chains * (n_units + 2) + 4``.
    """
    n_chains, n_units = fields.shape
    slope, low, high = np.float32(scale), np.float32(levels[0]), np.float32(levels[1])
    words = np.empty(n_units + _SPARE, np.uint32)
    n_changed, bounds[0] = 0, 0
    for i in range(n_chains):
        _fill_words(words, 0, n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        n_changed += _draw_row(fields[i], slope, shift, low, high, words, old[i], new[i])
        bounds[2 * i + 1] = _list_rises(old[i], new[i], rows, bounds[2 * i])
        bounds[2 * i + 2] = _list_rises(new[i], old[i], rows, bounds[2 * i + 1])
    return n_changed


@kernel
def list_changes(old: Any, new: Any, rows: Any, bounds: Any) -> int:
    """The lists of `draw_and_list` for given states; returned is the number of changes."""
    n_chains, n_units = new.shape
    n_changed, bounds[0] = 0, 0
    for i in range(n_chains):
        bounds[2 * i + 1] = _list_rises(old[i], new[i], rows, bounds[2 * i])
        bounds[2 * i + 2] = _list_rises(new[i], old[i], rows, bounds[2 * i + 1])
        for j in range(n_units):
            n_changed += new[i, j] != old[i, j]
    return n_changed


@part
def _weigh_row(
    fields: Any, scales: Any, shifts: Any, tilt: float, low: Any, high: Any, words: Any, new: Any, parts: Any
) -> None:
    """One chain of `draw_and_weigh`: the states, and the parts of the log-weight for each unit."""
    scale0, scale1 = scales
    for j in range(fields.size):
        field = np.float64(fields[j])
        x0, x1 = scale0 * field + shifts[0, j], scale1 * field + shifts[1, j]
        e0, e1 = exp_minus(np.float32(abs(x0))), exp_minus(np.float32(abs(x1)))
        parts[0, j] = tilt * (x1 - x0) + 0.5 * (abs(x1) - abs(x0))
        parts[1, j] = 1.0 + np.float64(e1)
        parts[2, j] = 1.0 + np.float64(e0)
        new[j] = _choose(np.float32(x1), e1, words[j], low, high)


@part
def _sum_parts(parts: Any, lanes: Any) -> float:
    """The sum of the first parts, plus the logarithm of the product of the second over that of the third."""
    total = 0.0
    for start in range(0, parts.shape[1], _UNITS_IN_PRODUCT):
        lanes[0, :] = 0.0
        lanes[1:, :] = 1.0
        for j in range(start, min(start + _UNITS_IN_PRODUCT, parts.shape[1]), _LANES):
            for lane in range(_LANES):
                lanes[0, lane] += parts[0, j + lane]
                lanes[1, lane] *= parts[1, j + lane]
                lanes[2, lane] *= parts[2, j + lane]
        for lane in range(_LANES):
            total += lanes[0, lane] + math.log(lanes[1, lane] / lanes[2, lane])
    return total


@kernel
def draw_and_weigh(
    fields: Any,
    scales: tuple[float, float],
    shifts: Any,
    levels: tuple[float, float],
    address: tuple[int, int, int, int],
    new: Any,
    log_weights: Any,
) -> None:
    """Add to the log-weights what a change of temperature gives them, and draw at the new temperature.

    A layer that is summed out contributes ``ln sum_x exp(x field) = centre * field + |x|/2 + ln(1 +
    exp(-|x|))`` per unit, ``x`` its log-odds and ``centre`` the mean of the levels. Added is the difference
    between the log-odds ``scales[1] * fields + shifts[1]`` and those with index 0; the draws follow the
    former.
    """
    n_chains, n_units = fields.shape
    low, high = np.float32(levels[0]), np.float32(levels[1])
    tilt = 0.5 * (levels[1] + levels[0]) / (levels[1] - levels[0])  # centre * field = tilt * x
    words = np.empty(n_units + _SPARE, np.uint32)
    parts = np.ones((3, -(-n_units // _LANES) * _LANES))
    parts[0] = 0.0
    lanes = np.empty((3, _LANES))
    for i in range(n_chains):
        _fill_words(words, 0, n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        _weigh_row(fields[i], scales, shifts, tilt, low, high, words, new[i], parts)
        log_weights[i] += _sum_parts(parts, lanes)
