"""Root finding for the saddle-point equations ``x = F(x)`` with ``x > 0``, elementwise on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paramagnet.units import Array, FloatArray

_MAX_ITERATIONS = 200
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

    Newton's method inside a shrinking bracket, bisection (of ``ln x``) where it would leave it. Steps
    are taken in ``ln x``, since ``x`` may be as small as exp(2c); where zero is a solution too
    (``linear``), in ``x``, in which ``phi`` is a straight line near the transition. Elements in
    ``skip`` are left alone; the others are done after the step that follows ``|phi| <= tolerance``.
    """
    low, high = np.full_like(start, _TINY), np.full_like(start, upper)
    x = np.clip(start, _TINY, upper)
    done = skip.copy()
    linear_somewhere = bool(linear.any())
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
        if done.all():
            break
    return x


def find_pair(
    evaluate: Callable[[FloatArray, FloatArray], Any], x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The root of ``ln(F/x) = ln(G/y) = 0`` near a starting point, by Newton's method in ``ln x`` and
    ``ln y``.

    ``evaluate`` gives ``F``, ``G`` and the Jacobian ``((F_x, F_y), (G_x, G_y))``. A step that does not
    bring the equations nearer to being met is halved.
    """
    f, g, jacobian = evaluate(x, y)
    for _ in range(_MAX_ITERATIONS):
        phi, psi = np.log(f / x), np.log(g / y)
        miss = np.maximum(np.abs(phi), np.abs(psi))
        (a, b), (c, d) = jacobian
        a, b, c, d = a * x / f - 1.0, b * y / f, c * x / g, d * y / g - 1.0
        determinant = a * d - b * c
        step_x, step_y = (b * psi - d * phi) / determinant, (c * phi - a * psi) / determinant
        length = np.minimum(1.0, 1.0 / np.maximum(np.maximum(np.abs(step_x), np.abs(step_y)), 1e-300))
        for _ in range(30):
            new_x, new_y = x * np.exp(length * step_x), y * np.exp(length * step_y)
            f, g, jacobian = evaluate(new_x, new_y)
            worse = np.maximum(np.abs(np.log(f / new_x)), np.abs(np.log(g / new_y))) > np.maximum(miss, 1e-15)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        x, y = new_x, new_y
        if (miss < 1e-13).all():
            break
    return x, y
