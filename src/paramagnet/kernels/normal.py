"""Normal deviates from the same addresses as the draws of binary units (``sampling.py``).

Philox4x32-10, keyed by the seed, is applied to the counter ``(unit/4, chain, sweep, stream)``, followed by
the transformation of Box and Muller in float64. The four words of a counter make the deviates of four
neighbouring units.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.kernels.jit import kernel

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_HALF_WORD = np.uint64(32)
_TURN = 2.0 * math.pi * 2.0**-32


@kernel
def _philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    for _ in range(10):
        p0, p1 = _MULTIPLIER_0 * np.uint64(c0), _MULTIPLIER_1 * np.uint64(c2)
        high0, high1 = np.uint32(p0 >> _HALF_WORD), np.uint32(p1 >> _HALF_WORD)
        c0, c1, c2, c3 = np.uint32(high1 ^ c1 ^ k0), np.uint32(p1), np.uint32(high0 ^ c3 ^ k1), np.uint32(p0)
        k0, k1 = np.uint32(k0 + _WEYL_0), np.uint32(k1 + _WEYL_1)
    return c0, c1, c2, c3


@kernel
def _draw_rows(
    fields: Any,
    scale: float,
    shift: Any,
    deviation: float,
    seed: Any,
    first: int,
    sweep: int,
    stream: int,
    new: Any,
) -> None:
    n_chains, n_units = fields.shape
    k0, k1 = np.uint32(seed), np.uint32(seed >> _HALF_WORD)
    deviates = np.empty(4)
    for row in range(n_chains):
        for quad in range((n_units + 3) // 4):
            a, b, c, d = _philox(
                np.uint32(quad), np.uint32(first + row), np.uint32(sweep), np.uint32(stream), k0, k1
            )
            radius = math.sqrt(-2.0 * math.log((np.float64(a) + 0.5) * 2.0**-32))
            deviates[0], deviates[1] = radius * math.cos(_TURN * b), radius * math.sin(_TURN * b)
            radius = math.sqrt(-2.0 * math.log((np.float64(c) + 0.5) * 2.0**-32))
            deviates[2], deviates[3] = radius * math.cos(_TURN * d), radius * math.sin(_TURN * d)
            for j in range(4 * quad, min(4 * quad + 4, n_units)):
                mean = scale * np.float64(fields[row, j]) + np.float64(shift[j])
                new[row, j] = np.float32(mean + deviation * deviates[j - 4 * quad])


def draw_normal(
    fields: npt.NDArray[np.float32],
    scale: float,
    shift: npt.NDArray[np.float32],
    deviation: float,
    address: tuple[int, int, int, int],
    new: npt.NDArray[np.float32],
) -> int:
    """Fill ``new`` with normal deviates of mean ``scale * field + shift``; all units count as changed.

    ``address`` is ``(seed, number of the first chain, sweep, stream)``.
    """
    seed, first, sweep, stream = address
    _draw_rows(fields, float(scale), shift, float(deviation), np.uint64(seed), first, sweep, stream, new)
    return new.size
