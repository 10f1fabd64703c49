"""The compiled sums of exact enumeration, which take products only: there is no exponential inside the loop
over all states.

With the factors ``f_j = scale_j + E_j(a) F_j(b)`` of `tables`, the weight of row ``a`` and column ``b`` is
the product of all factors and of the linear weights, and its derivative with respect to factor ``j`` is the
product of all others: the prefix before ``j`` times the suffix after it, without a division. Sums of these
along rows and along columns give every first and second moment. Per pair and unit that is six multiply-adds:
factor and prefix on the way up, factor, suffix, row sum and column sum on the way down.

Four rows and ``LANES`` columns are one value, a `_Quad`, held in registers. From plain loops the compiler
would use half the width of AVX-512 and keep running products in memory, at a sixth of the speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils, config
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic, models, register_model

from paramagnet.kernels.jit import kernel, part
from paramagnet.kernels.tables import LN2, Tables

# Columns of a quad, whose four rows take eight of the 32 registers with AVX-512, or of the 16 with AVX. The
# cache of compiled code distinguishes processors.
LANES = 16 if "+avx512f" in (config.CPU_FEATURES or get_host_cpu_features()) else 8
HALF = LANES // 2
QUAD = 4 * LANES
COLUMN_BITS = 6
COLUMNS = 1 << COLUMN_BITS  # columns of a block; their factors and sums fit into the first-level cache
PAGE = 512  # size of a page in doubles
LINES = (0, 8, 16, 32, 40, 48, 0, 24, 0)  # the cache line of a page at which each working array begins
NOTHING = -(1 << 40)  # the power of two of a column that does not exist


# --- four rows of LANES columns in registers ---------------------------------------------------------------


_Quad: Any = type("_Quad", (types.Type,), {})  # a class statement fails the type check: untyped base
_quad = _Quad(f"Quad{LANES}")


@register_model(_Quad)
def _quad_model(manager: Any, quad: Any) -> Any:
    return models.PrimitiveModel(manager, quad, ir.ArrayType(_vector(LANES), 4))


def _vector(count: int) -> Any:
    return ir.VectorType(ir.DoubleType(), count)


def _address(context: Any, builder: Any, signature: Any, args: Any, shift: int, count: int = LANES) -> Any:
    """The address of ``count`` doubles in the array ``args[0]``, from index ``args[1] + shift``."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    index = builder.add(args[1], ir.Constant(args[1].type, shift))
    return builder.bitcast(builder.gep(data, [index]), _vector(count).as_pointer())


def _pick(builder: Any, vector: Any, lanes: Iterable[int]) -> Any:
    """The given lanes of a vector."""
    chosen = list(lanes)
    return builder.shuffle_vector(
        vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    )


def _spread(builder: Any, scalar: Any) -> Any:
    """The same number in every lane."""
    first = ir.Constant(ir.IntType(32), 0)
    vector = builder.insert_element(ir.Constant(_vector(LANES), ir.Undefined), scalar, first)
    return _pick(builder, vector, [0] * LANES)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, by one instruction on processors that have it."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(a.type, [a.type] * 3), f"llvm.fmuladd.v{a.type.count}f64"
    )
    return builder.call(function, [a, b, c])


def _rows(builder: Any, quad: Any) -> list[Any]:
    return [builder.extract_value(quad, r) for r in range(4)]


def _join(builder: Any, rows: Iterable[Any]) -> Any:
    quad = ir.Constant(ir.ArrayType(_vector(LANES), 4), ir.Undefined)
    for r, row in enumerate(rows):
        quad = builder.insert_value(quad, row, r)
    return quad


@intrinsic
def _load(typingctx: Any, array: Any, index: Any) -> Any:
    """A quad from ``QUAD`` consecutive numbers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = (_address(context, builder, signature, args, r * LANES) for r in range(4))
        return _join(builder, [builder.load(address, align=8) for address in where])

    return _quad(array, types.intp), code


@intrinsic
def _store(typingctx: Any, array: Any, index: Any, quad: Any) -> Any:
    """Write a quad to ``QUAD`` consecutive places."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for r, row in enumerate(_rows(builder, args[2])):
            builder.store(row, _address(context, builder, signature, args, r * LANES), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _quad), code


@intrinsic
def _from_columns(typingctx: Any, array: Any, index: Any) -> Any:
    """A quad with ``array[index : index + LANES]`` in every row."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = builder.load(_address(context, builder, signature, args, 0), align=8)
        return _join(builder, [row] * 4)

    return _quad(array, types.intp), code


@intrinsic
def _from_rows(typingctx: Any, array: Any, index: Any) -> Any:
    """A quad with ``array[index : index + 4]`` in every column."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = (_address(context, builder, signature, args, r, 1) for r in range(4))
        numbers = [builder.load(builder.bitcast(a, ir.DoubleType().as_pointer())) for a in where]
        return _join(builder, [_spread(builder, number) for number in numbers])

    return _quad(array, types.intp), code


@intrinsic
def _from_number(typingctx: Any, number: Any) -> Any:
    """A quad with the same number everywhere."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _join(builder, [_spread(builder, args[0])] * 4)

    return _quad(types.float64), code


@intrinsic
def _mul(typingctx: Any, a: Any, b: Any) -> Any:
    """``a * b``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(*(_rows(builder, quad) for quad in args), strict=True)
        return _join(builder, [builder.fmul(*pair) for pair in pairs])

    return _quad(_quad, _quad), code


@intrinsic
def _fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        triples = zip(*(_rows(builder, quad) for quad in args), strict=True)
        return _join(builder, [_multiply_add(builder, *triple) for triple in triples])

    return _quad(_quad, _quad, _quad), code


@intrinsic
def _add_to_columns(typingctx: Any, array: Any, index: Any, a: Any, b: Any) -> Any:
    """``array[index : index + LANES] += (a * b).sum(axis=0)``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, 0)
        total = builder.load(address, align=8)
        for a, b in zip(_rows(builder, args[2]), _rows(builder, args[3]), strict=True):
            total = _multiply_add(builder, a, b, total)
        builder.store(total, address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _quad, _quad), code


@intrinsic
def _add_to_rows(typingctx: Any, array: Any, index: Any, a: Any, b: Any) -> Any:
    """Add the halves of each row of ``a * b`` to ``HALF`` numbers each; `_sum` of these is the row sum."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for r, (a, b) in enumerate(zip(_rows(builder, args[2]), _rows(builder, args[3]), strict=True)):
            address = _address(context, builder, signature, args, r * HALF, HALF)
            total = builder.load(address, align=8)
            for half in (range(HALF), range(HALF, LANES)):
                total = _multiply_add(builder, _pick(builder, a, half), _pick(builder, b, half), total)
            builder.store(total, address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _quad, _quad), code


@intrinsic
def _sum(typingctx: Any, array: Any, index: Any) -> Any:
    """``array[index : index + HALF].sum()``, halves added to halves."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = builder.load(_address(context, builder, signature, args, 0, HALF), align=8)
        count = HALF
        while count > 1:
            count //= 2
            low, high = (_pick(builder, vector, range(start, start + count)) for start in (0, count))
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return types.float64(array, types.intp), code


# --- the sums ----------------------------------------------------------------------------------------------


class Scratch(NamedTuple):
    """Working arrays of one thread."""

    factors: Any  # F_j of the present COLUMNS columns
    weight: Any  # exp(l_b.b) of those columns, without its power of two
    power: Any  # that power of two
    prefix: Any  # products of the factors before j, one quad each
    partial: Any  # row sums, HALF numbers each
    columns: Any  # column sums
    unit: Any  # powers of two split off after each group of factors, one quad each
    quads: Any  # three quads on their way between registers and scalar code, and their bits
    quad_bits: Any
    pairs: Any  # weights of four rows and all columns, one quad after the other: pairs times 2**pair_power
    pair_power: Any


def space_for(tables: Tables) -> int:
    """The number of doubles that `sum_moments` needs besides its small arrays."""
    m = int(tables.scale.size)
    return _scratch_size(m, tables.groups.size) + int(tables.row_power.size) * (m + 1)


@kernel
def _scratch_size(m: int, n_borders: int) -> int:
    """The number of doubles of `_make_scratch`, gaps included."""
    return (m + 1) * (QUAD + 2 * COLUMNS + 4 * HALF) + (3 + n_borders) * QUAD + 5 * COLUMNS + 10 * PAGE


@part
def _make_scratch(t: Tables, space: Any) -> Any:
    """The working arrays of one thread, laid out in ``space``, and the index at which they end.

    Arrays begin at cache lines, because a register that crosses two cache lines takes two loads. A load also
    waits for earlier stores whose addresses agree with its own in the last twelve bits; `LINES` keeps the
    arrays of the inner loops apart. With prefixes at line 0, factors at 8 and column sums at 16, the numbers
    loaded for ``j`` share these bits only with stores that are long past or still to come.
    """
    m = t.scale.size
    sizes = (
        m * QUAD, m * COLUMNS, (m + 1) * COLUMNS, (m + 1) * 4 * HALF, 3 * QUAD, t.groups.size * QUAD,
        COLUMNS, 4 * COLUMNS, 0,
    )  # fmt: skip
    place = np.empty(len(LINES), np.int64)
    end = -(space.ctypes.data >> 3) & (PAGE - 1)
    for i in range(len(LINES)):  # not calls, which would be compiled for each constant argument
        place[i] = end + ((8 * LINES[i] - end) & (PAGE - 1))
        end = place[i] + sizes[i]
    prefix, factors, columns, partial, quads, unit, weight, pairs = (
        space[place[0] : place[0] + sizes[0]],
        space[place[1] : place[1] + sizes[1]],
        space[place[2] : place[2] + sizes[2]],
        space[place[3] : place[3] + sizes[3]],
        space[place[4] : place[4] + sizes[4]],
        space[place[5] : place[5] + sizes[5]],
        space[place[6] : place[6] + sizes[6]],
        space[place[7] : place[7] + sizes[7]],
    )
    power, pair_power = np.zeros(COLUMNS, np.int64), np.zeros(4 * COLUMNS, np.int64)
    bits = quads.view(np.int64)
    return Scratch(
        factors, weight, power, prefix, partial, columns, unit, quads, bits, pairs, pair_power
    ), end


@part
def _set_columns(t: Tables, s: Scratch, block: int) -> int:
    """Prepare the columns ``block * COLUMNS, ...``; return their number, rounded up to whole quads."""
    m, n_high, pairwise = t.scale.size, t.high_linear.size, t.pairwise
    low, start, step, factors = t.low, t.start, t.step, s.factors
    linear = 0.0
    for i in range(n_high):
        x = t.high_linear[i]
        linear += min(x, 0.0) if (block >> i) & 1 else -max(x, 0.0)
    for j in range(m):
        value = start[j]
        for i in range(n_high):
            change = step[(block >> i) & 1, i, j]
            value = value + change if pairwise else value * change
        for x in range(j * COLUMNS, (j + 1) * COLUMNS):
            factors[x] = low[x] + value if pairwise else low[x] * value
    n_columns = 0
    for x in range(COLUMNS):
        value = t.low_linear[x] + linear
        if value > -np.inf:
            n_columns = x + 1
        if pairwise:
            s.weight[x] = value
        elif t.groups.size == 2:
            s.weight[x] = math.exp(value)
        elif value > -np.inf:
            s.power[x] = math.floor(value / LN2)
            s.weight[x] = math.exp(value - s.power[x] * LN2)
        else:  # a column that does not exist has any mantissa and no weight
            s.power[x], s.weight[x] = NOTHING, 1.0
    return (n_columns + LANES - 1) // LANES * LANES


@part
def _sweep_pairwise(
    t: Tables, s: Scratch, n_columns: int, q: int, gradient: bool, reference: int, columns: Any
) -> None:
    """Sum four rows by exponentials: ``1 + exp(x) = exp(max(x, 0)) (1 + exp(-|x|))`` for each field ``x``."""
    m = t.scale.size
    base = 4 * q * (m + 1)
    for r in range(4):
        for c in range(n_columns):
            exponent = t.rows[base + 4 * m + r] + s.weight[c]
            product = 1.0
            for j in range(m):
                x = t.rows[base + 4 * j + r] + s.factors[j * COLUMNS + c]
                exponent += max(x, 0.0)
                product *= 1.0 + math.exp(-abs(x))
                if j % 512 == 511:
                    exponent, product = exponent + math.log(product), 1.0
            exponent += math.log(product)
            if not gradient:
                n = math.floor(exponent / LN2) if exponent > -np.inf else NOTHING
                place = c // LANES * QUAD + r * LANES + c % LANES
                s.pair_power[place], s.pairs[place] = n, math.exp(exponent - n * LN2)
                continue
            weight = math.exp(exponent - reference * LN2)
            if weight > 0.0:
                columns[m * COLUMNS + c] += weight
                s.partial[(4 * m + r) * HALF] += weight
                for j in range(m):
                    x = t.rows[base + 4 * j + r] + s.factors[j * COLUMNS + c]
                    y = math.exp(-abs(x))
                    low = weight * (y if x > 0.0 else 1.0) / (1.0 + y)
                    columns[j * COLUMNS + c] += low
                    s.partial[(4 * j + r) * HALF] += low


@part
def _sweep(
    t: Tables, s: Scratch, n_columns: int, first: Any, last: Any, gradient: bool, reference: Any,
    rows: Any, row_power: Any, columns: Any,
) -> None:  # fmt: skip
    """Sum the rows ``4 first, ..., 4 last - 1`` over the present columns.

    Without ``gradient``, row ``a`` sums to ``rows[a] * 2**row_power[a // 4]``. With it, ``rows`` and
    ``columns`` are tables of the weights without factor ``j``, and in slot ``m`` of the whole weights,
    divided by ``2**reference``; the sums are added to ``columns``. Arrays have local names because each
    access to an attribute costs a reference count. Callers pass no literals, because Numba would compile the
    function for each of them.
    """
    entries, scale, groups, pairwise = t.rows, t.scale, t.groups, t.pairwise
    factors, weight, prefix, partial, unit, pairs = s.factors, s.weight, s.prefix, s.partial, s.unit, s.pairs
    column_power, pair_power, entry_power, quads, bits = (
        s.power,
        s.pair_power,
        t.row_power,
        s.quads,
        s.quad_bits,
    )
    m, n_groups = scale.size, groups.size - 1
    for q in range(first, last):
        base = 4 * q * (m + 1)
        if gradient:
            partial[:] = 0.0
        if pairwise:
            _sweep_pairwise(t, s, n_columns, q, gradient, reference, columns)
        for o in range(0, 0 if pairwise else n_columns, LANES):
            if n_groups > 1:  # bits[:QUAD] holds the powers of two that have been split off
                for r in range(4):
                    for x in range(LANES):
                        bits[r * LANES + x] = column_power[o + x] + entry_power[4 * q + r]

            # On the way up p is the product of the factors before j.
            p = _from_columns(weight, o)
            for g in range(n_groups):
                for j in range(groups[g], groups[g + 1]):
                    if gradient:
                        _store(prefix, j * QUAD, p)
                    f = _from_columns(factors, j * COLUMNS + o)
                    p = _mul(p, _fma(_from_rows(entries, base + 4 * j), f, _from_number(scale[j])))
                if n_groups > 1:  # split p into a number in [1, 2) and a power of two
                    _store(quads, QUAD, p)
                    for x in range(QUAD):
                        n = (bits[QUAD + x] >> 52) - 1023
                        bits[x] += n
                        bits[QUAD + x] -= n << 52
                        bits[2 * QUAD + x] = (1023 - n) << 52
                    p = _load(quads, QUAD)
                    _store(unit, g * QUAD, _load(quads, 2 * QUAD))
            v = _from_rows(entries, base + 4 * m)
            if not gradient:
                _store(pairs, 4 * o, _mul(p, v))
                if n_groups > 1:
                    for x in range(QUAD):
                        pair_power[4 * o + x] = bits[x]
                continue

            # On the way down v is the product of the factors after j.
            if n_groups > 1:
                for x in range(QUAD):
                    bits[QUAD + x] = (max(bits[x] - reference, -1023) + 1023) << 52
                v = _mul(v, _load(quads, QUAD))
            _add_to_columns(columns, m * COLUMNS + o, p, v)
            _add_to_rows(partial, m * 4 * HALF, p, v)
            for g in range(n_groups - 1, -1, -1):
                if n_groups > 1:  # the prefixes of this group lack the powers split off after it
                    v = _mul(v, _load(unit, g * QUAD))
                for j in range(groups[g + 1] - 1, groups[g] - 1, -1):
                    p = _load(prefix, j * QUAD)
                    _add_to_columns(columns, j * COLUMNS + o, p, v)
                    _add_to_rows(partial, j * 4 * HALF, p, v)
                    f = _from_columns(factors, j * COLUMNS + o)
                    v = _mul(v, _fma(_from_rows(entries, base + 4 * j), f, _from_number(scale[j])))

        if gradient:
            for x in range(4 * (m + 1)):
                rows[base + x] = _sum(partial, x * HALF)
            continue
        if pairwise or n_groups > 1:
            row_power[q] = _to_common_power(pairs, pair_power, 4 * n_columns)
        for r in range(4):
            rows[4 * q + r] = 0.0
            for x in range(r * LANES, 4 * n_columns, QUAD):
                rows[4 * q + r] += _sum(pairs, x) + _sum(pairs, x + HALF)


@part
def _to_common_power(numbers: Any, powers: Any, count: int) -> Any:
    """Bring ``numbers * 2**powers`` to one power, the highest; ``powers`` is overwritten."""
    factors = powers.view(np.float64)
    highest = powers[0]
    for x in range(count):
        highest = max(highest, powers[x])
    for x in range(count):
        powers[x] = (max(powers[x] - highest, -1023) + 1023) << 52
    for x in range(count):
        numbers[x] *= factors[x]
    return highest


@kernel
def sum_weights(
    tables: Any, blocks: tuple[int, int], first: int, last: int, sums: Any, powers: Any, rows: Any, pairs: Any
) -> None:
    """Sum the weights of some blocks of columns: ``sums[block] * 2**powers[block]``.

    The rows are ``4 first, ..., 4 last - 1``. For the last block ``rows[a]`` keeps the sum of each row, in
    the same unit; for its last four rows ``pairs[column // LANES, row % 4, column % LANES]`` keeps the single
    weights, in an arbitrary unit.
    """
    t = Tables(*tables)
    s = _make_scratch(t, np.empty(_scratch_size(t.scale.size, t.groups.size)))[0]
    row_power, none = np.zeros(last, np.int64), np.empty(0)
    for block in range(blocks[0], blocks[1]):
        n_columns = _set_columns(t, s, block)
        _sweep(t, s, n_columns, first, last, none.size > 0, np.int64(0), rows, row_power, none)
        highest, total = row_power[first], 0.0
        for q in range(first, last):
            highest = max(highest, row_power[q])
        for q in range(first, last):
            for a in range(4 * q, 4 * q + 4):
                rows[a] = math.ldexp(rows[a], max(row_power[q] - highest, -2000))
                total += rows[a]
        sums[block], powers[block] = total, highest
    for x in range(pairs.size):
        pairs[x] = s.pairs[x]


@kernel
def sum_moments(
    tables: Any, blocks: tuple[int, int], size: int, n_row_bits: int, reference: int, space: Any, result: Any
) -> None:
    """Add blocks of columns to ``result[i, j]``, the sum of ``s_i`` times the weight without factor ``j``.

    The last row has 1 in place of ``s_i``, the last column has the whole weight; all are divided by
    ``2**reference``. Each ``size`` blocks are summed separately and then added, so the result does not depend
    on how such tasks are divided among calls. ``space`` is working memory of `space_for` doubles, whose
    content is arbitrary.
    """
    t = Tables(*tables)
    n_bits, m, n_quads = result.shape[0] - 1, t.scale.size, t.row_power.size // 4
    n_low = min(n_bits - n_row_bits, COLUMN_BITS)
    s, end = _make_scratch(t, space)
    rows, columns = space[end : end + 4 * n_quads * (m + 1)], s.columns
    none, part = np.empty(0, np.int64), np.zeros((n_bits + 1, m + 1))
    for block in range(blocks[0], blocks[1]):
        columns[:] = 0.0
        n_columns = _set_columns(t, s, block)
        _sweep(t, s, n_columns, np.int64(0), n_quads, columns.size > 0, reference, rows, none, columns)

        # Fold by the highest bit: the upper half is the sum over s_i = 1; then add it to the lower half.
        n = n_quads
        for i in range(n_row_bits - 1, 1, -1):
            n //= 2
            for q in range(n):
                for j in range(m + 1):
                    x = 4 * (q * (m + 1) + j)
                    y = x + 4 * n * (m + 1)
                    part[i, j] += (rows[y] + rows[y + 1]) + (rows[y + 2] + rows[y + 3])
                    for r in range(4):
                        rows[x + r] += rows[y + r]
        for j in range(m + 1):
            if n_row_bits > 1:
                part[1, j] += rows[4 * j + 2] + rows[4 * j + 3]
            if n_row_bits > 0:
                part[0, j] += rows[4 * j + 1] + rows[4 * j + 3]
            for i in range(n_low - 1, -1, -1):
                for x in range(j * COLUMNS, j * COLUMNS + (1 << i)):
                    part[n_row_bits + i, j] += columns[x + (1 << i)]
                    columns[x] += columns[x + (1 << i)]
            part[n_bits, j] += columns[j * COLUMNS]
            for i in range(n_row_bits + n_low, n_bits):
                if (block >> (i - n_row_bits - n_low)) & 1:
                    part[i, j] += columns[j * COLUMNS]
        if (block + 1) % size == 0:
            for i in range(n_bits + 1):
                for j in range(m + 1):
                    result[i, j] += part[i, j]
                    part[i, j] = 0.0
