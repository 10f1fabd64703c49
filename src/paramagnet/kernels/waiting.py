"""Waiting for another thread without the GIL: a look at a number that the other thread writes.

A thread that waits asleep is woken 50 to 100 microseconds late on a virtual machine, and one that looks in
Python takes the GIL from the thread it waits for. These looks do neither; the caller limits their number.
"""

from __future__ import annotations

import platform
from typing import Any

from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


@intrinsic
def _look_at(typingctx: Any, flags: Any, index: Any) -> Any:
    """The number at ``index`` as the other thread has written it last."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(builder.gep(array.data, [args[1]]), "acquire", 8)

    return types.int64(flags, types.int64), code


@intrinsic
def _pause(typingctx: Any) -> Any:
    """Leave the core to its other thread for some cycles, where the processor can be told so."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), code


@kernel
def wait_for(flags: Any, index: int, least: int, n_looks: int, n_more: int) -> bool:
    """Whether ``flags[index]`` is at least ``least``, or becomes so within ``n_looks`` looks.

    ``n_more`` pauses follow when it is.
    """
    for _ in range(n_looks):
        if _look_at(flags, index) >= least:
            for _ in range(n_more):
                _pause()
            return True
        _pause()
    return False
