"""The hyperbolic tangent of many float64 numbers.

NumPy's tanh takes 1 ns per number with AVX-512 and 13 ns without it, which for a small machine is a fifth of
a training update. This one has no branch and no table, so the compiler can use the full width of the
registers of any processor.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel

_LARGEST = 20.0  # for larger numbers tanh is 1 in float64
_LOG2_E = math.log2(math.e)
# ln 2 in two parts: the first has zeros at its end, so that its multiples are exact.
_LN2 = round(math.log(2.0) * 2**40) / 2**40
_LN2_REST = -1.7239444525614835e-13
_ROUND = 1.5 * 2.0**52  # added to a number it leaves the nearest integer in the last bits
_C = tuple(1.0 / math.factorial(i) for i in range(14))


@intrinsic
def _bits(typingctx: Any, number: Any) -> Any:
    """The bits of a float64 as an integer."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), code


@intrinsic
def _from_bits(typingctx: Any, word: Any) -> Any:
    """The float64 with the bits of an integer."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), code


@intrinsic
def _multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, by one instruction on processors that have it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(args[0].type, [args[0].type] * 3), "llvm.fmuladd.f64"
        )
        return builder.call(function, args)

    return types.float64(types.float64, types.float64, types.float64), code


@kernel
def tanh(x: Any) -> None:
    """Replace the numbers of a one-dimensional array by their tanh, to an absolute error of 4e-16.

    With ``e = exp(-2 |x|) = 2**-k exp(r)``, ``|r| <= ln(2)/2``, it is ``(1 - e) / (1 + e)``. NaN stays
    NaN.
    """
    for i in range(x.size):
        y = 2.0 * abs(x[i])
        y = 2.0 * _LARGEST if y > 2.0 * _LARGEST else y
        shifted = _multiply_add(y, _LOG2_E, _ROUND)
        k = shifted - _ROUND
        r = _multiply_add(k, _LN2_REST, _multiply_add(k, _LN2, -y))
        p = _C[13]
        p = _multiply_add(p, r, _C[12])
        p = _multiply_add(p, r, _C[11])
        p = _multiply_add(p, r, _C[10])
        p = _multiply_add(p, r, _C[9])
        p = _multiply_add(p, r, _C[8])
        p = _multiply_add(p, r, _C[7])
        p = _multiply_add(p, r, _C[6])
        p = _multiply_add(p, r, _C[5])
        p = _multiply_add(p, r, _C[4])
        p = _multiply_add(p, r, _C[3])
        p = _multiply_add(p, r, _C[2])
        p = _multiply_add(p, r, _C[1])
        p = _multiply_add(p, r, _C[0])
        e = p * _from_bits((1023 << 52) - (_bits(shifted) << 52))
        x[i] = math.copysign((1.0 - e) / (1.0 + e), x[i])
