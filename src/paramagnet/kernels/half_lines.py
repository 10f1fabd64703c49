"""Draws of normal variables that are cut off at zero, from the addresses of other draws (``sampling.py``).

A variable of mean ``a`` and variance 1 on ``y >= 0`` takes one word of Philox4x32-10, a uniform ``u``:

    y = a - Phi^-1(u Phi(a)) = a + X(-ln(u Phi(a)))        X(q): exp(-q) = Phi(-X)

``X`` and ``Phi`` (its logarithm below zero) are polynomials of degree five on pieces of length 1/8, ``X`` in
the variable ``sqrt(2 q)``; where ``p = u Phi(a)`` exceeds 1/2, ``-X(-ln(1 - p))`` is taken. Errors are below
1e-10 of ``q``, far below the rounding of the states to float32. Below ``a = -30``, where ``y`` is a small
difference of large numbers, ``t y + y**2/2 = E`` is solved with ``t = -a``.

A variable with two halves takes two words: one chooses the side, in proportion to the weights of both, the
other one the place on it. The counters of Philox are those of ``sampling.py``, for as many units as there
are words.

No function of the C library is called, but far below zero. Layers are ``(n_chains, n_units)`` in float32, the
rest is float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.cgutils import ir  # llvmlite, in the version that Numba uses
from numba.extending import intrinsic

from paramagnet.kernels.jit import kernel, part
from paramagnet.kernels.sampling import philox_line

FloatArray = npt.NDArray[np.float64]

_HALF_WORD = np.uint64(32)
_LINE, _SPARE = 16, 64  # counters of a vector, and words of four of these
_PIECES, _DEGREE = 8, 5  # pieces per unit of length
_LOW, _HIGH = -30.0, 9.0  # of `a`; Phi(9) is 1 in float64
_FIRST, _LAST = 1.125, 31.125  # of sqrt(2 q): from p = 0.53 to u = 2**-33 at a = -30
_TOP, _END = 8.999, 31.124  # the largest numbers that are looked up
_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_LN2, _LOG2_E, _ROOT_HALF = math.log(2.0), math.log2(math.e), math.sqrt(0.5)


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


# Tables


def _interpolate(function: Callable[[FloatArray], FloatArray], low: float, high: float) -> FloatArray:
    """The coefficients of polynomials on all pieces, one row each, in the distance from the piece's middle in
    units of its length.
    """
    n_pieces = round((high - low) * _PIECES)
    nodes = 0.5 * np.cos(math.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    middles = low + (np.arange(n_pieces) + 0.5) / _PIECES
    values = function(middles[:, None] + nodes / _PIECES)
    return np.ascontiguousarray(np.linalg.solve(np.vander(nodes, increasing=True), values.T).T)


@functools.cache
def tables() -> tuple[FloatArray, FloatArray, FloatArray]:
    """``-ln Phi(a)`` below zero and ``Phi(a)`` above; ``ln Z(a)`` less ``a**2/2`` above; and ``X``.

    ``Z(a) = int_0^inf exp(a y - y**2/2) dy``.
    """
    from scipy.special import erfcx, log_ndtr, ndtr, ndtri_exp

    def weight(a: FloatArray) -> FloatArray:
        low = np.log(0.5 * erfcx(-_ROOT_HALF * np.minimum(a, 0.0)))
        found: FloatArray = _LOG_ROOT_2_PI + np.where(a < 0.0, low, log_ndtr(np.maximum(a, 0.0)))
        return found

    return (
        _interpolate(lambda a: np.where(a < 0.0, -log_ndtr(a), ndtr(np.maximum(a, 0.0))), _LOW, _HIGH),
        _interpolate(weight, _LOW, _HIGH),
        _interpolate(lambda s: -ndtri_exp(-0.5 * s * s), _FIRST, _LAST),
    )


@part
def _look_up(table: Any, x: float, low: float) -> Any:
    """The polynomial of the piece in which ``x`` lies, which must be between the ends of the table."""
    place = (x - low) * _PIECES
    i = np.uint64(place)
    r = place - np.float64(i) - 0.5
    value = table[i, 5] * r + table[i, 4]
    value = value * r + table[i, 3]
    value = value * r + table[i, 2]
    value = value * r + table[i, 1]
    return value * r + table[i, 0]


@part
def _fill_log_traces(a: Any, table: Any, out: Any) -> None:
    """``ln Z(a)`` of every mean."""
    far = False
    for j in range(a.size):
        x = a[j] if a[j] > _LOW else _LOW
        above = x if x > 0.0 else 0.0
        out[j] = _look_up(table, x if x < _TOP else _TOP, _LOW) + 0.5 * above * above
        far = far | (a[j] < _LOW)
    if far:
        for j in range(a.size):
            if a[j] < _LOW:
                x = 1.0 / (a[j] * a[j])
                series = x * (-1.0 + x * (2.5 + x * (-37.0 / 3.0 + x * (353.0 / 4.0))))
                out[j] = series - math.log(-a[j])


# Random numbers


@part
def _fill_words(words: Any, n_words: int, seed: Any, chain: int, sweep: int, stream: int) -> None:
    """The first ``n_words`` words of one chain's layer; there is room for 64 more, which are overwritten."""
    quarter = (n_words + 3) // 4
    k0, k1 = np.uint32(seed), np.uint32(seed >> _HALF_WORD)
    c1, c2, c3 = np.uint32(chain), np.uint32(sweep), np.uint32(stream)
    for first in range((quarter - 1) // _LINE * _LINE, -1, -_LINE):
        philox_line(np.uint32(first), c1, c2, c3, k0, k1, words, first, quarter)


@part
def _exp_minus(y: float) -> Any:
    """``exp(-y)`` for ``y >= 0``, not below exp(-700), to a relative error of 1e-13."""
    y = min(y, 700.0)
    k = np.int64(y * _LOG2_E + 0.5)
    r = np.float64(k) * _LN2 - y
    p = 1.0 + r * (1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (
        1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880 + r / 3628800)))))))))  # fmt: skip
    return p * _from_bits((1023 - k) << 52)


@part
def _log(p: float) -> Any:
    """``ln p`` of a positive number that is neither tiny nor huge, to 1e-12."""
    word = _bits(p)  # a power of two times a number from sqrt(1/2) to sqrt(2)
    power = (word - 0x3FE6A09E00000000) >> 52
    m = _from_bits(word - (power << 52)) - 1.0
    s = m / (2.0 + m)
    x = s * s
    series = 2.0 + x * (2.0 / 3 + x * (2.0 / 5 + x * (2.0 / 7 + x * (2.0 / 9 + x * (
        2.0 / 11 + x * (2.0 / 13 + x * (2.0 / 15)))))))  # fmt: skip
    return np.float64(power) * _LN2 + s * series


@part
def _draw_places(a: Any, words: Any, first: int, found: Any, inverse: Any, room: Any) -> None:
    """Replace the means ``a`` by draws; unit ``j`` takes the word ``words[first + j]``.

    One loop looks up ``Phi``, one makes ``sqrt(2 q)`` in vectors, one looks up ``X``.
    """
    far = False
    for j in range(a.size):
        x = a[j] if a[j] > _LOW else _LOW
        room[0, j] = _look_up(found, x if x < _TOP else _TOP, _LOW)
        far = far | (a[j] < _LOW)
    for j in range(a.size):
        u = (np.float64(words[first + j]) + 0.5) * 2.0**-32
        below = not a[j] >= 0.0
        p = u * room[0, j]
        upper = not below and p > 0.5
        p = u if below else (1.0 - p if upper else p)
        q = (room[0, j] if below else 0.0) - _log(p)
        s = math.sqrt(2.0 * q)
        room[0, j] = s if s < _END else _END  # also where it is not a number
        room[1, j] = -1.0 if upper else 1.0
    for j in range(a.size):
        y = a[j] + room[1, j] * _look_up(inverse, room[0, j], _FIRST)
        room[0, j] = max(y, 0.0)
    if far:
        _draw_far(a, words, first, room)
    for j in range(a.size):
        a[j] = room[0, j]


@part
def _draw_far(a: Any, words: Any, first: int, room: Any) -> None:
    """The draws with means below -30: three rounds, each of which divides the error by more than 900."""
    for j in range(a.size):
        if a[j] < _LOW:
            t = -a[j]
            exponent = -math.log((np.float64(words[first + j]) + 0.5) * 2.0**-32)
            rest = exponent
            y = 0.0
            for _ in range(3):
                y = 2.0 * rest / (t + math.sqrt(t * t + 2.0 * rest))
                end = t + y
                rest = exponent - math.log1p(y / t) + 1.0 / (t * t) - 1.0 / (end * end)
            room[0, j] = y


# Layers of one half


@kernel
def draw_relu(
    fields: Any,
    scale: float,
    shift: Any,
    address: tuple[int, int, int, int],
    new: Any,
    known: tuple[Any, Any, Any],
) -> None:
    """Draw ReLU units in the fields ``scale * fields + shift``; ``known`` are `tables`."""
    n_chains, n_units = fields.shape
    words = np.empty(n_units + _SPARE, np.uint32)
    a, room = np.empty(n_units), np.empty((2, n_units))
    for i in range(n_chains):
        _fill_words(words, n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        for j in range(n_units):
            a[j] = scale * np.float64(fields[i, j]) + np.float64(shift[j])
        _draw_places(a, words, 0, known[0], known[2], room)
        for j in range(n_units):
            new[i, j] = a[j]


@kernel
def weigh_relu(
    fields: Any,
    scales: tuple[float, float],
    shifts: Any,
    address: tuple[int, int, int, int],
    new: Any,
    log_weights: Any,
    known: tuple[Any, Any, Any],
) -> None:
    """Add the rise of ``sum_j ln Z`` from the fields ``scales[0] * fields + shifts[0]`` to those with index
    1, and draw in the latter.
    """
    n_chains, n_units = fields.shape
    words = np.empty(n_units + _SPARE, np.uint32)
    a, room = np.empty(n_units), np.empty((2, n_units))
    for i in range(n_chains):
        _fill_words(words, n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        for k in range(2):
            for j in range(n_units):
                a[j] = scales[k] * np.float64(fields[i, j]) + shifts[k, j]
            _fill_log_traces(a, known[1], room[k])
        for j in range(n_units):
            log_weights[i] += room[1, j] - room[0, j]
        _draw_places(a, words, 0, known[0], known[2], room)
        for j in range(n_units):
            new[i, j] = a[j]


# Layers of two halves. The rows of ``halves`` are the asymmetry of theta, and the deviations of the positive
# and the negative side with their logarithms.


@part
def _fill_sides(fields: Any, halves: Any, table: Any, sides: Any) -> None:
    """For every unit in its field the means of both halves, in their deviations, and the logarithms of their
    weights: the rows of ``sides``.
    """
    for j in range(fields.size):
        sides[0, j] = (fields[j] - halves[0, j]) * halves[1, j]
        sides[1, j] = (-fields[j] - halves[0, j]) * halves[2, j]
    _fill_log_traces(sides[0], table, sides[2])
    _fill_log_traces(sides[1], table, sides[3])
    for j in range(fields.size):
        sides[2, j] += halves[3, j]
        sides[3, j] += halves[4, j]


@part
def _choose_sides(sides: Any, halves: Any, words: Any, a: Any, factors: Any) -> None:
    """The means and the deviations of the sides that are drawn, these with the sign of the side."""
    for j in range(a.size):
        odds = sides[2, j] - sides[3, j]
        e = _exp_minus(abs(odds))
        u = (np.float64(words[j]) + 0.5) * 2.0**-32
        positive = u * (1.0 + e) < (1.0 if odds >= 0.0 else e)
        a[j] = sides[0, j] if positive else sides[1, j]
        factors[j] = halves[1, j] if positive else -halves[2, j]


@part
def _sum_sides(sides: Any) -> float:
    """The sum over the units of the logarithm of the weight of both halves."""
    total = 0.0
    for j in range(sides.shape[1]):
        larger, smaller = max(sides[2, j], sides[3, j]), min(sides[2, j], sides[3, j])
        total += larger + _log(1.0 + _exp_minus(larger - smaller))
    return total


@kernel
def draw_drelu(
    fields: Any,
    scale: float,
    shift: Any,
    halves: Any,
    address: tuple[int, int, int, int],
    new: Any,
    known: tuple[Any, Any, Any],
) -> None:
    """Draw dReLU units in the fields ``scale * fields + shift``."""
    n_chains, n_units = fields.shape
    words = np.empty(2 * n_units + _SPARE, np.uint32)
    a, factors, room, sides = (
        np.empty(n_units),
        np.empty(n_units),
        np.empty((2, n_units)),
        np.empty((4, n_units)),
    )
    for i in range(n_chains):
        _fill_words(words, 2 * n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        for j in range(n_units):
            a[j] = scale * np.float64(fields[i, j]) + np.float64(shift[j])
        _fill_sides(a, halves, known[1], sides)
        _choose_sides(sides, halves, words, a, factors)
        _draw_places(a, words, n_units, known[0], known[2], room)
        for j in range(n_units):
            new[i, j] = factors[j] * a[j]


@kernel
def weigh_drelu(
    fields: Any,
    scales: tuple[float, float],
    shifts: Any,
    halves: Any,
    address: tuple[int, int, int, int],
    new: Any,
    log_weights: Any,
    known: tuple[Any, Any, Any],
) -> None:
    """`weigh_relu` for dReLU units."""
    n_chains, n_units = fields.shape
    words = np.empty(2 * n_units + _SPARE, np.uint32)
    a, factors, room, sides = (
        np.empty(n_units),
        np.empty(n_units),
        np.empty((2, n_units)),
        np.empty((4, n_units)),
    )
    for i in range(n_chains):
        _fill_words(words, 2 * n_units, np.uint64(address[0]), address[1] + i, address[2], address[3])
        for k in range(2):
            for j in range(n_units):
                a[j] = scales[k] * np.float64(fields[i, j]) + shifts[k, j]
            _fill_sides(a, halves, known[1], sides)
            log_weights[i] += _sum_sides(sides) if k else -_sum_sides(sides)
        _choose_sides(sides, halves, words, a, factors)
        _draw_places(a, words, n_units, known[0], known[2], room)
        for j in range(n_units):
            new[i, j] = factors[j] * a[j]
