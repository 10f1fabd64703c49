"""Vectors of AVX-512 in the compiler's own words, for the kernels of sweeps and of annealing in int16.

These functions write code when a kernel is compiled; they are no kernels. The cache of compiled code does not
see this file change: whoever edits it removes the files of ``int16_sweeps`` and ``int16_weights`` from
``__pycache__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

STATES = 32  # of five units, and chains of a vector of sums
MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57  # of Philox
INT1, INT16, INT32, INT64 = (ir.IntType(n) for n in (1, 16, 32, 64))
FLOAT = ir.FloatType()
SUMS, FLOATS = ir.VectorType(INT16, STATES), ir.VectorType(FLOAT, 16)
WORDS, COUNTERS = ir.VectorType(INT32, 16), ir.VectorType(INT64, 8)
HALF_SUMS, MASK = ir.VectorType(INT16, 16), ir.VectorType(INT1, 16)
_LOW_WORD = 0xFFFFFFFF


def call(builder: Any, name: str, kind: Any, *args: Any) -> Any:
    """One of LLVM's functions."""
    signature = ir.FunctionType(kind, [value.type for value in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


def filled(kind: Any, value: Any) -> Any:
    """A vector of equal constants."""
    return ir.Constant(kind, [value] * kind.count)


def spread(builder: Any, kind: Any, value: Any) -> Any:
    """A vector of equal numbers."""
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(INT32, kind.count), None))


class Arrays:
    """The arguments of an intrinsic: vectors at flat indices of its arrays, which are contiguous."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.kinds, self.args = context, builder, signature.args, args

    def index(self, *terms: Any) -> Any:
        """The sum of numbers, as an index."""
        total = ir.Constant(INT64, 0)
        for term in terms:
            total = self.builder.add(total, ir.Constant(INT64, term) if isinstance(term, int) else term)
        return total

    def pointer(self, number: int, offset: Any, kind: Any, unit: Any = None) -> Any:
        """Where a value of this kind lies in an array, whose memory is counted in units of a type of its own
        if one is given: a view of another type, made in Python or in a kernel, would have to be compiled.
        """
        data = self.context.make_array(self.kinds[number])(self.context, self.builder, self.args[number]).data
        if unit is not None:
            data = self.builder.bitcast(data, unit.as_pointer())
        return self.builder.bitcast(self.builder.gep(data, [offset]), kind.as_pointer())

    def load(self, number: int, offset: Any, kind: Any, align: int = 2, unit: Any = None) -> Any:
        """A value of this kind from an array."""
        return self.builder.load(self.pointer(number, offset, kind, unit), align=align)

    def store(self, value: Any, number: int, offset: Any, align: int = 2, unit: Any = None) -> None:
        """Write a value into an array."""
        self.builder.store(value, self.pointer(number, offset, value.type, unit), align=align)

    def loop(self, count: Any, begin: Sequence[Any], step: Any) -> Any:
        """The values that ``step(k, values)`` has made of ``begin`` after ``k = 0, ..., count - 1``."""
        builder, before = self.builder, self.builder.block
        test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        k, running = builder.phi(INT64), [builder.phi(value.type) for value in begin]
        builder.cbranch(builder.icmp_signed("<", k, count), body, after)
        builder.position_at_end(body)
        new = step(k, running)
        k.add_incoming(ir.Constant(INT64, 0), before)
        k.add_incoming(builder.add(k, ir.Constant(INT64, 1)), builder.block)
        for phi, first, value in zip(running, begin, new, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(value, builder.block)
        builder.branch(test)
        builder.position_at_end(after)
        return running


def look_up(n_tables: int, n_vectors: int) -> Any:
    """Sums of ``n_tables`` numbers for ``n_vectors`` vectors of chains, over groups; they live in registers.

    The intrinsic wants tables from ``start`` on, the number of groups, codes from ``first`` on with so many
    chains in a row, and where the sums go: rows like those of the codes, from ``at`` on.
    """

    @intrinsic
    def look_up(
        typingctx: Any, table: Any, start: Any, n_groups: Any, codes: Any, first: Any, row: Any,
        sums: Any, at: Any,
    ) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            arrays = Arrays(context, builder, signature, args)

            def step(k: Any, running: Sequence[Any]) -> list[Any]:
                place = arrays.index(args[4], builder.mul(k, args[5]))
                states = [arrays.load(3, arrays.index(place, STATES * v), SUMS) for v in range(n_vectors)]
                entry = arrays.index(args[1], builder.mul(k, ir.Constant(INT64, n_tables * STATES)))
                new = []
                for t in range(n_tables):
                    line = arrays.load(0, arrays.index(entry, STATES * t), SUMS, align=64)
                    for v in range(n_vectors):
                        found = call(builder, "llvm.x86.avx512.permvar.hi.512", SUMS, line, states[v])
                        new.append(builder.add(running[n_vectors * t + v], found))
                return new

            sums = arrays.loop(args[2], [ir.Constant(SUMS, None)] * (n_tables * n_vectors), step)
            for t in range(n_tables):
                place = arrays.index(args[7], builder.mul(args[5], ir.Constant(INT64, t)))
                for v in range(n_vectors):
                    arrays.store(sums[n_vectors * t + v], 6, arrays.index(place, STATES * v))
            return context.get_dummy_value()

        n = types.int64
        return types.void(table, n, n, codes, n, n, sums, n), code

    return look_up


def philox(arrays: Arrays, place: Any, scalars: Sequence[Any]) -> list[Any]:
    """The four words of Philox4x32-10 for 16 chains, from its second round on.

    Words are the lower halves of 64-bit lanes: even chains in one vector, odd ones in another. The first
    round, and the part of the second that depends on the chain, are those of `fill_counters`; ``scalars``
    are what `advance` has made of the rest, and the keys of the rounds from the fourth on.
    """
    builder = arrays.builder
    half, low = filled(COUNTERS, 32), filled(COUNTERS, _LOW_WORD)
    turns = ir.Constant(WORDS, [n // 2 * 2 + 16 * (n % 2) for n in range(16)])

    def wide(value: Any) -> Any:
        return spread(builder, COUNTERS, builder.zext(value, INT64))

    def times(value: Any, factor: int) -> Any:
        return builder.mul(builder.and_(value, low), filled(COUNTERS, factor))

    def high(value: Any) -> Any:
        return builder.lshr(value, half)

    x1, x2, x3, x4 = (wide(value) for value in scalars[:4])
    ends = []
    for odd in (0, 8):
        p0 = arrays.load(0, arrays.index(place, odd), COUNTERS, align=8)
        p1 = times(builder.xor(high(p0), x1), MULTIPLIER_1)
        c = [builder.xor(high(p1), x2), p1, builder.xor(p0, x3), x4]
        for k in range(7):
            key0, key1 = wide(scalars[4 + 2 * k]), wide(scalars[5 + 2 * k])
            p0, p1 = times(c[0], MULTIPLIER_0), times(c[2], MULTIPLIER_1)
            c = [
                builder.xor(builder.xor(high(p1), c[1]), key0), p1,
                builder.xor(builder.xor(high(p0), c[3]), key1), p0,
            ]  # fmt: skip
        ends.append(c)
    return [
        builder.shuffle_vector(builder.bitcast(even, WORDS), builder.bitcast(odd, WORDS), turns)
        for even, odd in zip(*ends, strict=True)
    ]
