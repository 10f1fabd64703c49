"""Annealed chains by sums of int16 numbers, where the processor has AVX-512BW (`paramagnet.sampling.int16`).

The layer that is kept is drawn as in sweeps, with the same proof. The layer that is summed out, whose fields
make the log-weights, has tables of two int16 numbers, whose sums are as precise as float32 fields
(`paramagnet.kernels.int16_weights`). Random numbers have the addresses of the portable kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paramagnet.kernels.int16_states import unpack_states
from paramagnet.kernels.int16_sweeps import add_sums, draw_layer, encode, fill_counters
from paramagnet.kernels.int16_tables import GROUP, MOST_FINE_PARTS, MOST_IN_FINE_PART
from paramagnet.kernels.int16_weights import weigh_layer
from paramagnet.sampling.int16 import Room, Target, pays
from paramagnet.sampling.layer import Float32Array
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.annealing import _Path

SUMMED, KEPT = 0, 1  # streams of random numbers


def serves(path: _Path, n_samples: int) -> bool:
    """Whether int16 sums are used for so many chains."""
    fits = path.kept.shift.size <= MOST_FINE_PARTS * MOST_IN_FINE_PART * GROUP
    n_steps = len(path.temperatures) - 1
    return fits and pays((path.kept, path.summed), n_samples, n_steps)


def anneal_block(
    path: _Path,
    kept: Float32Array,
    log_weights: FloatArray,
    seed: int,
    first: int,
    tick: Callable[[], None] | None,
) -> Float32Array:
    """Take the states ``kept`` through all temperatures, adding to their log-weights: weight, then move.

    The states that were weighed last are returned.
    """
    key, n_chains = np.uint64(seed), len(kept)
    fine, target = path.summed.fine_tables, Target.of(path.kept, path.summed)
    room = Room(n_chains, fine, target.tables)
    packed, codes, bits = room.packed, room.codes, room.bits
    n_quarters, row = -(-path.summed.shift.size // 4), codes[0].shape[1]
    sums, numbers = np.empty(8 * fine.n_parts * row, np.int16), np.empty(16 * n_quarters)
    weigh_room = (sums, numbers, np.empty(3 * row))
    linear = (path.kept_bias[0] - path.kept_bias[1]).astype(np.float32)
    low, high = path.kept.levels
    lowest = low * float(linear.sum(dtype=np.float64))
    room.enter(kept, path.kept.levels)

    def weigh(k: int, slopes: tuple[float, float], shifts: FloatArray) -> None:
        tables = (fine.table, fine.units, fine.halves)
        odds, address = (slopes, shifts, path.kept.levels), (key, k, SUMMED)
        weigh_layer(
            tables, fine.n_parts, codes[0], odds, path.summed.levels, path.joint, room.counters, weigh_room,
            address, bits[1], log_weights,
        )  # fmt: skip

    n_steps, scale = len(path.temperatures) - 1, path.summed.scale
    if path.joint:
        t = float(path.temperatures[0])
        fill_counters(room.counters, key, first, 0)
        weigh(0, (0.0, t * scale), np.stack((np.zeros(path.summed.shift.size), path.summed_shift(t))))
    for k in range(n_steps):
        now, then = float(path.temperatures[k]), float(path.temperatures[k + 1])
        fill_counters(room.counters, key, first, k + 1)
        if linear.any():
            add_sums(packed[0], linear, (then - now) * (high - low), (then - now) * lowest, log_weights)
        after = path.summed_shift(then)
        if path.joint:
            energy = (then - now) * (path.summed_bias[0] - path.summed_bias[1])
            weigh(k + 1, (then - now, then * scale), np.stack((energy, after)))
        else:
            weigh(k + 1, (now * scale, then * scale), np.stack((path.summed_shift(now), after)))
        if tick is not None:
            tick()
        if k + 1 == n_steps:
            break  # the last move would not be looked at
        encode(bits[1], room.n_parts[1], codes[1], packed[1], n_chains, room.column)
        address = (key, n_chains, k + 1, KEPT)
        draw_layer(
            target.at(then, path.kept_shift(then)), room.n_parts[1], codes[1], packed[1], room.counters,
            room.work, address, bits[0],
        )  # fmt: skip
        encode(bits[0], room.n_parts[0], codes[0], packed[0], n_chains, room.column)
    ends: npt.NDArray[np.float32] = np.empty_like(kept)
    unpack_states(packed[0], path.kept.levels, ends)
    return ends
