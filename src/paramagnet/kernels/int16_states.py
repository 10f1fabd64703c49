"""States of chains as bits, for `paramagnet.kernels.int16_sweeps`: packed, and as codes of groups of five."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

GROUP, STATES = 5, 32  # units of a group, and their states
_FLOATS, _MASK = ir.VectorType(ir.FloatType(), 64), ir.VectorType(ir.IntType(1), 64)


def _pointer(context: Any, builder: Any, signature: Any, args: Any, index: int, offset: Any) -> Any:
    """Where 64 numbers lie in an argument that is a contiguous array, from the element ``offset`` on."""
    data = context.make_array(signature.args[index])(context, builder, args[index]).data
    return builder.bitcast(builder.gep(data, [offset]), _FLOATS.as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(ir.IntType(32), 64), None))


@intrinsic
def _above(typingctx: Any, states: Any, first: Any, middle: Any) -> Any:
    """64 bits: which of as many states from ``first`` on are larger than ``middle``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = builder.load(_pointer(context, builder, signature, args, 0, args[1]), align=4)
        above = builder.fcmp_ordered(">", values, _spread(builder, args[2]))
        return builder.bitcast(above, ir.IntType(64))

    return types.uint64(states, types.int64, types.float32), code


@intrinsic
def _write_levels(typingctx: Any, word: Any, low: Any, high: Any, states: Any, first: Any) -> Any:
    """The levels of 64 units, by the bits of a word, as states from ``first`` on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        levels = [_spread(builder, args[n]) for n in (2, 1)]
        values = builder.select(builder.bitcast(args[0], _MASK), *levels)
        builder.store(values, _pointer(context, builder, signature, args, 3, args[4]), align=4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.float32, types.float32, states, types.int64), code


@kernel
def pack_states(states: Any, middle: float, packed: Any) -> None:
    """The states of all chains, which are high above ``middle``, as words along the units."""
    n_chains, n_units = states.shape
    flat, limit = states.reshape(states.size), np.float32(middle)
    for i in range(n_chains):
        for w in range(n_units // 64):
            packed[i, w] = _above(flat, i * n_units + 64 * w, limit)
        word = np.uint64(0)
        for j in range(n_units // 64 * 64, n_units):
            word |= np.uint64(states[i, j] > limit) << np.uint64(j % 64)
        if n_units % 64:
            packed[i, n_units // 64] = word


@kernel
def unpack_states(packed: Any, levels: tuple[float, float], states: Any) -> None:
    """The states that `pack_states` has packed."""
    n_chains, n_units = states.shape
    flat, low, high = states.reshape(states.size), np.float32(levels[0]), np.float32(levels[1])
    for i in range(n_chains):
        for w in range(n_units // 64):
            _write_levels(packed[i, w], low, high, flat, i * n_units + 64 * w)
        for j in range(n_units // 64 * 64, n_units):
            states[i, j] = high if packed[i, j // 64] >> np.uint64(j % 64) & np.uint64(1) else low


@kernel
def code_packed(packed: Any, n_parts: int, codes: Any) -> None:
    """The codes of packed states, ``(n_positions, n_chains)``."""
    n_chains, n_words = packed.shape
    n_in_part = codes.shape[0] // n_parts
    for position in range(codes.shape[0]):
        first = GROUP * (position % n_in_part * n_parts + position // n_in_part)
        w, shift = first // 64, np.uint64(first % 64)
        for i in range(n_chains):
            word = packed[i, w] >> shift if w < n_words else np.uint64(0)
            if first % 64 > 64 - GROUP and w + 1 < n_words:
                word |= packed[i, w + 1] << (np.uint64(64) - shift)
            codes[position, i] = np.int16(word & np.uint64(STATES - 1))
