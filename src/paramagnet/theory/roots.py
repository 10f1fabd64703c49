"""Root finding for the saddle-point equations ``x = F(x)`` with ``x > 0``, elementwise on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paramagnet.units import Array, FloatArray

_MAX_ITERATIONS = 200
_MAX_PAIR_ITERATIONS, _MAX_HALVINGS = 60, 12
_TINY = 1e-300


def find_root(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    upper: float | FloatArray,
    *,
    skip: Array,
    linear: Array,
    tolerance: float,
) -> FloatArray:
    """The root in ``(0, upper]`` of ``phi(x) = ln(F(x)/x)``, elementwise, where ``evaluate`` gives
    ``F`` and ``dF/dx``.

    This is Newton's method inside a shrinking bracket, with bisection (of ``ln x``) if a step would leave the
    bracket. Steps are taken in ``ln x``, since ``x`` may be as small as exp(2c). If zero is a solution, too
    (``linear``), they are taken in ``x``, in which ``phi`` is a straight line near the transition. Elements
    in ``skip`` keep their start; the others end with the step that follows ``|phi| <= tolerance``.
    """
    low, high = np.full(start.shape, _TINY), np.broadcast_to(upper, start.shape)
    x = np.clip(start, _TINY, upper)
    done = skip.copy()
    linear_somewhere = np.count_nonzero(linear) > 0
    for _ in range(_MAX_ITERATIONS):
        value, slope = evaluate(x)
        value = np.maximum(value, _TINY)
        phi = np.log(value / x)
        rate = slope * x / value - 1.0  # d phi / d ln x, negative at a stable root
        low, high = np.where(phi > 0.0, x, low), np.where(phi < 0.0, x, high)
        falling = rate < 0.0
        step = -phi / np.where(falling, rate, -1.0)
        newton = x * np.exp(np.minimum(step, 100.0))
        if linear_somewhere:
            newton = np.where(linear, x * (1.0 + step), newton)
        inside = falling & (newton >= low) & (newton <= high)
        middle = np.maximum(np.sqrt(np.maximum(low, 1e-6 * high) * high), _TINY)  # the product may underflow
        x = np.where(done, x, np.where(inside, newton, middle))
        done |= (np.abs(phi) <= tolerance) | (high - low <= 2e-16 * high)
        if np.count_nonzero(done) == done.size:
            break
    return x


def find_pair(
    evaluate: Callable[[FloatArray, FloatArray], Any], x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The root of ``ln(F/x) = ln(G/y) = 0`` near a starting point, by Newton's method in ``ln x`` and
    ``ln y``.

    ``evaluate`` gives ``F``, ``G`` and the Jacobian ``((F_x, F_y), (G_x, G_y))``. A step that increases the
    residual is halved; an element ends when no halved step reduces its residual.
    """
    x, y = np.maximum(x, _TINY), np.maximum(y, _TINY)
    f, g, jacobian = evaluate(x, y)
    phi, psi = _log_ratio(f, x), _log_ratio(g, y)
    done = np.zeros(x.shape, dtype=bool)
    for _ in range(_MAX_PAIR_ITERATIONS):
        miss = np.maximum(np.abs(phi), np.abs(psi))
        final = miss < 1e-13  # one more step is taken
        (a, b), (c, d) = jacobian
        f, g = np.maximum(f, _TINY), np.maximum(g, _TINY)
        a, b, c, d = a * x / f - 1.0, b * y / f, c * x / g, d * y / g - 1.0
        determinant = a * d - b * c
        determinant = np.where(determinant == 0.0, _TINY, determinant)
        step_x, step_y = (b * psi - d * phi) / determinant, (c * phi - a * psi) / determinant
        size = np.maximum(np.abs(step_x), np.abs(step_y))
        length = np.where(done | ~np.isfinite(size), 0.0, 1.0 / np.maximum(size, 1.0))
        step_x, step_y = np.where(length > 0.0, step_x, 0.0), np.where(length > 0.0, step_y, 0.0)
        for _ in range(_MAX_HALVINGS):
            new_x, new_y = (
                np.maximum(x * np.exp(length * step_x), _TINY),
                np.maximum(y * np.exp(length * step_y), _TINY),
            )
            f, g, jacobian = evaluate(new_x, new_y)
            phi, psi = _log_ratio(f, new_x), _log_ratio(g, new_y)
            worse = np.maximum(np.abs(phi), np.abs(psi)) > np.maximum(miss, 1e-15)
            worse &= (length > 0.0) & ~final
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        done |= final | worse | (length == 0.0)
        x, y = new_x, new_y
        if done.all():
            break
    return x, y


def _log_ratio(value: FloatArray, x: FloatArray) -> FloatArray:
    ratio: FloatArray = np.log(np.maximum(value, _TINY) / x)
    return ratio
