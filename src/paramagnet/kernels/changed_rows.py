"""Updates of fields after some units changed, by adding only the rows of the weights that belong to them.

A unit that goes up adds ``step`` times its row to the fields, one that goes down subtracts it; ``step`` is
the difference of the levels. The speed is limited by memory, as there is one addition per weight read.

- The weights lie in **panels** of `WIDTH` columns, so that a panel stays in the second-level cache while all
  chains use it, and the fields of one chain and panel stay in registers.
- A **list** holds the changed units of each chain, those that go up, then those that go down
  (`paramagnet.kernels.sampling.draw_and_list`). Both parts are filled up to an even number with a row of
  zeros, because two sums are made at a time, which hides the latency of additions.
- A panel is **fetched** in order before its rows are read out of order, which is twice as fast if it comes
  from the last-level cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

WIDTH = 64  # columns of a panel
_LINE = 16  # float32 numbers of a cache line

_FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
_INT64, _INT32 = ir.IntType(64), ir.IntType(32)


def make_panels(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The weights in the form of `add_changed_rows`, ``(n_panels, n_units + 1, WIDTH)``; the last row and the
    columns beyond the last field are zero.
    """
    n_units, n_fields = weights.shape
    shape = (-(-n_fields // WIDTH), n_units + 1, WIDTH)
    room = np.zeros(math.prod(shape) + _LINE, np.float32)
    start = (
        -room.ctypes.data // room.itemsize % _LINE
    )  # aligned to cache lines, so that rows take half as many of them
    panels = room[start : start + math.prod(shape)].reshape(shape)
    for panel, start in zip(panels, range(0, n_fields, WIDTH), strict=True):
        columns = weights[:, start : start + WIDTH]
        panel[:n_units, : columns.shape[1]] = columns
    return panels


def _pointer(context: Any, builder: Any, signature: Any, args: Any, index: int, offset: Any) -> Any:
    """The address of the element ``offset`` of an argument that is a contiguous array."""
    array = context.make_array(signature.args[index])(context, builder, args[index])
    return builder.gep(array.data, [offset])


@intrinsic
def _fetch(typingctx: Any, panels: Any, at: Any) -> Any:
    """Prefetch the cache line of the flat index ``at`` into the second-level cache."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(
            _pointer(context, builder, signature, args, 0, args[1]), ir.IntType(8).as_pointer()
        )
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, _INT32, _INT32, _INT32]),
            "llvm.prefetch.p0" if str(pointer.type) == "ptr" else "llvm.prefetch.p0i8",
        )
        builder.call(function, [pointer, *(ir.Constant(_INT32, n) for n in (0, 2, 1))])  # read, L2, data
        return context.get_dummy_value()

    return types.void(panels, types.int64), code


@intrinsic
def _sum_rows(
    typingctx: Any, fields: Any, at: Any, panels: Any, start: Any, rows: Any, part: Any, step: Any
) -> Any:
    """Add ``step`` times the sum of the listed rows to the fields from the flat index ``at``.

    ``start`` is the flat index of the panel. ``part`` holds three indices of the list: the first unit that
    goes up, the first that goes down, and the end. The function is written in LLVM's intermediate language so
    that the sums stay in registers.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def point(index: int, offset: Any) -> Any:
            return _pointer(context, builder, signature, args, index, offset)

        first, middle, last = cgutils.unpack_tuple(builder, args[5], 3)
        two = ir.Constant(_INT64, 2)
        sums = [ir.Constant(_FLOATS, None)] * 2
        for begin, end, add in ((first, middle, builder.fadd), (middle, last, builder.fsub)):
            before, test, body, after = (
                builder.block,
                *(builder.append_basic_block(name) for name in ("test", "body", "after")),
            )
            builder.branch(test)
            builder.position_at_end(test)
            k, running = builder.phi(_INT64), [builder.phi(_FLOATS) for _ in sums]
            builder.cbranch(builder.icmp_signed("<", k, end), body, after)
            builder.position_at_end(body)
            for lane, total in enumerate(running):
                row = builder.load(point(4, builder.add(k, ir.Constant(_INT64, lane))))
                index = builder.mul(builder.zext(row, _INT64), ir.Constant(_INT64, WIDTH))
                weights = point(2, builder.add(args[3], index))
                values = builder.load(builder.bitcast(weights, _FLOATS.as_pointer()), align=4)
                total.add_incoming(sums[lane], before)
                total.add_incoming(add(total, values), body)
            k.add_incoming(begin, before)
            k.add_incoming(builder.add(k, two), body)
            builder.branch(test)
            builder.position_at_end(after)
            sums = running
        single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), args[6], ir.Constant(_INT32, 0))
        steps = builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_INT32, WIDTH), None))
        change = builder.fmul(steps, builder.fadd(*sums))
        target = builder.bitcast(point(0, args[1]), _FLOATS.as_pointer())
        builder.store(builder.fadd(builder.load(target, align=4), change), target, align=4)
        return context.get_dummy_value()

    count = types.int64
    return types.void(fields, count, panels, count, rows, types.UniTuple(count, 3), types.float32), code


@kernel
def add_changed_rows(rows: Any, bounds: Any, step: float, panels: Any, fields: Any) -> None:
    """``fields += (new - old) @ weights``, from the rows whose unit changed, by ``step`` up or down.

    Chain ``i`` has the units ``rows[bounds[2 i] : bounds[2 i + 1]]`` that go up, and those from there to
    ``bounds[2 i + 2]`` that go down, an even number of each. ``panels`` are `make_panels` of the weights.
    """
    n_chains, n_fields = fields.shape
    n_rows = panels.shape[1]
    size, length = n_rows * WIDTH, np.float32(step)
    flat, rest = fields.reshape(fields.size), np.zeros(WIDTH, np.float32)
    for p in range(panels.shape[0]):
        if bounds[2 * n_chains] > n_rows:  # otherwise few of its rows are read
            for line in range(p * size, (p + 1) * size, _LINE):
                _fetch(panels, line)
        first = p * WIDTH
        n = min(WIDTH, n_fields - first)
        for i in range(n_chains):
            part = (bounds[2 * i], bounds[2 * i + 1], bounds[2 * i + 2])
            if n < WIDTH:  # the last panel is wider than the remaining fields
                for x in range(n):  # assigning slices would compile Numba's formatting of errors, for 2 s
                    rest[x] = fields[i, first + x]
            target, at = (flat, i * n_fields + first) if n == WIDTH else (rest, 0)
            _sum_rows(target, at, panels, p * size, rows, part, length)
            if n < WIDTH:
                for x in range(n):
                    fields[i, first + x] = rest[x]
