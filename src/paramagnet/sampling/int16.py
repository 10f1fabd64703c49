"""Sweeps by sums of int16 numbers (`paramagnet.kernels.int16_sweeps`): where they are used, and their room.

They need AVX-512BW, and two layers of units with two values. Chains are bit for bit those of fields summed in
float32 in a fixed order, however chains are cut into blocks; this order of sums is called "int16", that of
the other kernels "portable". Which of them runs follows from the processor and from sizes
alone, never from the number of threads. The environment variable PARAMAGNET_KERNELS, set to "portable",
forces the latter.
"""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba.core import config
from numba.core.codegen import get_host_cpu_features

from paramagnet._arrays import shown
from paramagnet._parallel import count_cores, run_slices
from paramagnet.kernels.int16_states import code_packed, pack_states, unpack_states
from paramagnet.kernels.int16_sweeps import CHAINS, run_block
from paramagnet.kernels.int16_tables import GROUP, MOST_IN_PART, MOST_PARTS, SumTables, prepare
from paramagnet.sampling.layer import Float32Array, SampledLayer

ENVIRONMENT = "PARAMAGNET_KERNELS"
INT16, PORTABLE = "int16", "portable"
FEWEST_CHAINS = 64  # below, most lanes of the vectors would be empty
FEWEST_FOR_LARGE = 250  # for layers of many weights: below, changed rows are faster late in training
SMALL = 2**14  # weights of machines that are not large in this sense
SWEEPS_FOR_TABLES = 500  # chains times sweeps: below, tables take longer than what they save
MOST_WEIGHTS = 2**24  # tables take 13 bytes for each
BLOCK = 1024  # most chains of a block, whose codes stay in the second-level cache
THREAD_TIME = 1e6  # ns of work that a thread is worth
LOOK_UP_TIME, DRAW_TIME = 0.0021, 0.6  # ns, per chain and weight and per chain and unit, both on Zen 4


@functools.cache
def has_instructions() -> bool:
    """Whether compiled code may use AVX-512BW here."""
    features = (config.CPU_FEATURES or get_host_cpu_features()).split(",")
    return {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= set(features)


def is_forbidden() -> bool:
    """Whether the environment asks for the portable kernels."""
    wanted = os.environ.get(ENVIRONMENT, "")
    if wanted not in ("", PORTABLE):
        raise ValueError(
            f"`{ENVIRONMENT}` must be {PORTABLE!r} or not set, got {shown(wanted)}. The environment variable "
            "forces kernels that run on every processor."
        )
    return wanted == PORTABLE


def kernels_here() -> str:
    """The kernels that sweeps of many chains use on this processor: "int16" or "portable"."""
    return INT16 if has_instructions() and not is_forbidden() else PORTABLE


def order_of_sums(layers: tuple[SampledLayer, SampledLayer], n_chains: int, n_sweeps: int) -> str:
    """The order in which sweeps of these sizes sum their fields here: "int16" or "portable".

    Chains go on bit for bit under the same order only.
    """
    fewest = FEWEST_CHAINS if layers[0].weights.size <= SMALL else FEWEST_FOR_LARGE
    return INT16 if n_chains >= fewest and pays(layers, n_chains, n_sweeps) else PORTABLE


def pays(layers: tuple[SampledLayer, SampledLayer], n_chains: int, n_sweeps: int) -> bool:
    """Whether int16 sums can run here, and are faster than full products of the portable kernels."""
    enough = n_chains >= FEWEST_CHAINS and n_chains * n_sweeps >= SWEEPS_FOR_TABLES
    return enough and can_run(layers)


def can_run(layers: tuple[SampledLayer, SampledLayer]) -> bool:
    """Whether int16 sums serve these layers on this processor."""
    binary = all(type(layer) is SampledLayer for layer in layers)
    n_weights, longest = layers[0].weights.size, max(layers[0].weights.shape)
    fit = n_weights <= MOST_WEIGHTS and longest <= MOST_PARTS * MOST_IN_PART * GROUP
    return binary and fit and not is_forbidden() and has_instructions()


@dataclass(frozen=True, eq=False)
class Target:
    """A layer that is drawn in the fields of another one, whose units have the levels ``source``."""

    layer: SampledLayer
    source: tuple[float, float]
    tables: SumTables

    @classmethod
    def of(cls, layer: SampledLayer, source: SampledLayer) -> Target:
        """``layer`` in the fields of ``source``."""
        return cls(layer, source.levels, layer.tables)

    def at(self, t: float, shift: npt.NDArray[Any], factor: float = 1.0) -> tuple[Any, ...]:
        """What the kernel wants, for ``t`` times the fields and another shift.

        The log-odds are ``gain`` times the sum of the weights to units that are high, plus an origin, both
        in float32. ``factor`` changes the bound on rounding, for tests.
        """
        (low, high), tables, scale = self.source, self.tables, t * self.layer.scale
        gain = np.float32(scale * (high - low))
        origins = (scale * low * 2.0 * tables.halves + shift).astype(np.float32)
        numbers = np.empty((-(-origins.size // 4), 4, 4), np.float32)
        of_units = (tables.units, tables.halves, tables.spreads)
        prepare(*of_units, tables.n_sources, float(gain), origins, factor, numbers)
        return tables.table, numbers.ravel(), gain, origins, self.layer.weights


class Room:
    """Bits, codes and packed states of a block of chains in two layers, and what the kernels write to.

    ``of_first`` and ``of_second`` are the tables of the *other* layer, which say how the groups of a layer
    are laid out.
    """

    def __init__(self, n_chains: int, of_first: SumTables, of_second: SumTables) -> None:
        self.n_chains = n_chains
        row = -(-n_chains // CHAINS) * CHAINS
        self.n_parts = of_first.n_parts, of_second.n_parts
        self.packed, self.codes, self.bits = (
            tuple(make(row, tables) for tables in (of_first, of_second))
            for make in (_room_for_packed, _room_for_codes, _room_for_bits)
        )
        self.counters, self.column = np.empty(row, np.uint64), np.empty(128, np.uint16)
        self.work = (
            np.empty(4 * max(self.n_parts) * row, np.int16),
            np.empty(4 * row, np.uint32),
            np.empty(4 * row // 64, np.uint64),
            np.empty(4 * row, np.int64),
        )

    def enter(self, states: Float32Array, levels: tuple[float, float]) -> None:
        """Take states of the first layer."""
        pack_states(states, 0.5 * (levels[0] + levels[1]), self.packed[0])
        code_packed(self.packed[0], self.n_parts[0], self.codes[0])


def _room_for_packed(row: int, tables: SumTables) -> npt.NDArray[np.uint64]:
    return np.zeros((row, -(-tables.n_sources // 64)), np.uint64)


def _room_for_codes(row: int, tables: SumTables) -> npt.NDArray[np.int16]:
    return np.zeros((tables.n_positions, row), np.int16)


def _room_for_bits(row: int, tables: SumTables) -> npt.NDArray[np.uint64]:
    n_rows = max(GROUP * tables.n_positions, -(-tables.n_sources // 64) * 64)
    return np.zeros((n_rows, row // 64), np.uint64)


def run_chains(
    layers: tuple[SampledLayer, SampledLayer],
    visible: Float32Array,
    address: tuple[int, int],
    n_sweeps: int,
    n_threads: int | None,
    clamp: tuple[npt.NDArray[np.bool_], Float32Array] | None = None,
    factor: float = 1.0,
) -> npt.NDArray[np.int64]:
    """Run ``n_sweeps`` sweeps in place; return how many visible and hidden units changed and were undecided.

    ``address`` is the seed and the first sweep. The other arguments are those of
    `paramagnet.sampling.chains.run_sweeps`; ``factor`` is that of `Target.at`.
    """
    of_visible, of_hidden = (
        Target.of(layer, source) for layer, source in zip(layers, layers[::-1], strict=True)
    )
    targets = tuple(target.at(1.0, target.layer.shift, factor) for target in (of_hidden, of_visible))
    if clamp is not None:
        np.copyto(visible, clamp[1], where=clamp[0])
    blocks, n_threads = cut(len(visible), n_sweeps, layers[0].weights.shape, n_threads)
    counts = np.zeros((len(blocks), 3), np.int64)
    seed, start = address

    def run(block: int, rows: slice) -> None:
        room = Room(rows.stop - rows.start, of_hidden.tables, of_visible.tables)
        room.enter(visible[rows], layers[0].levels)
        held = _held_bits(None if clamp is None else (clamp[0][rows], clamp[1][rows]), layers[0], room)
        states = room.packed, room.codes, room.bits
        place = (seed, rows.start, start, room.n_chains)
        work = (*room.work, room.counters, room.column)
        run_block(targets, room.n_parts, states, held, place, n_sweeps, work, counts[block])
        unpack_states(room.packed[0], layers[0].levels, visible[rows])

    run_slices(run, blocks, n_threads)
    total: npt.NDArray[np.int64] = counts.sum(axis=0)
    return total


def _held_bits(
    clamp: tuple[npt.NDArray[np.bool_], Float32Array] | None, layer: SampledLayer, room: Room
) -> npt.NDArray[np.uint64]:
    """The units that are held, and those of them that are high, as bits; no rows if there is no ``clamp``."""
    n_words = room.bits[0].shape[1]
    if clamp is None:
        return np.zeros((2, 0, n_words), np.uint64)
    fixed, values = clamp
    held = np.zeros((2, fixed.shape[1], n_words), np.uint64)
    middle = np.float32(0.5 * (layer.levels[0] + layer.levels[1]))
    for bits, of_chains in zip(held, (fixed, fixed & (values > middle)), strict=True):
        packed = np.packbits(of_chains.T, axis=1, bitorder="little")
        bits.view(np.uint8)[:, : packed.shape[1]] = packed
    return held


def cut(
    n_chains: int, n_sweeps: int, shape: tuple[int, ...], n_threads: int | None
) -> tuple[list[slice], int]:
    """Blocks of chains, and as many threads as the work is worth; no bit depends on either."""
    n_words = -(-n_chains // CHAINS)
    work = n_sweeps * n_chains * (LOOK_UP_TIME * shape[0] * shape[1] + DRAW_TIME * sum(shape))
    n_worth = min(n_words, max(1, int(work / THREAD_TIME)))
    n_threads = min(count_cores() if n_threads is None else n_threads, n_worth)
    n_full = -(-n_words * CHAINS // BLOCK)  # rounded up, then to a multiple of the threads
    n_blocks = -(-n_full // n_threads) * n_threads
    borders = [min(CHAINS * (block * n_words // n_blocks), n_chains) for block in range(n_blocks)]
    borders.append(n_chains)
    return [slice(start, end) for start, end in itertools.pairwise(borders) if end > start], n_threads
