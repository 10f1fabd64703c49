"""Single passes over as many numbers as a machine has parameters.

For large machines such a pass takes as long as its memory: what NumPy does in five, with an array of its own
for each, is done in one. Every number is rounded as NumPy would, so the results are the same bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

from paramagnet.kernels.jit import kernel


@kernel
def follow_adam(
    gradient: Any,
    first: Any,
    second: Any,
    settings: tuple[float, float, float, float],
    new_first: Any,
    new_second: Any,
    direction: Any,
) -> None:
    """Running averages of the gradient and of its square, and the direction that follows from them.

    ``settings`` are the shares of the two averages that are kept, then ``scale`` and ``epsilon`` of the
    direction ``first / (scale * sqrt(second) + epsilon)``.
    """
    keep_first, keep_second, scale, epsilon = settings
    for i in range(gradient.size):
        g = gradient[i]
        mean = keep_first * first[i] + (1.0 - keep_first) * g
        square = keep_second * second[i] + (1.0 - keep_second) * (g * g)
        new_first[i], new_second[i] = mean, square
        direction[i] = mean / (scale * math.sqrt(square) + epsilon)


@kernel
def average_parts(parts: Any, divisor: float, out: Any) -> None:
    """The sum of the rows of ``parts``, added in order in the precision of ``out``, over ``divisor``."""
    for i in range(out.size):
        out[i] = parts[0, i]
    for k in range(1, parts.shape[0]):
        for i in range(out.size):
            out[i] += parts[k, i]
    for i in range(out.size):
        out[i] /= divisor


@kernel
def scale_and_shift(products: Any, factor: float, shifts: Any, out: Any) -> None:
    """``out[i, j] = factor * products[i, j] + shifts[i]``, in the precision of ``out``."""
    for i in range(out.shape[0]):
        shift = shifts[i]
        for j in range(out.shape[1]):
            out[i, j] = factor * products[i, j] + shift
