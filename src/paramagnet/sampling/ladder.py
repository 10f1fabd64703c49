"""A ladder of machines from an easy one to the one to be sampled: rounds of Gibbs sweeps and swaps.

Every machine has as many chains as the others. A round is one sweep of all chains of all machines, then swaps
of visible states between the chains of equal number of the machines ``i`` and ``i + 1``, for even ``i`` and
for odd ``i`` in turn. A swap is accepted with the probability ``min(1, A)``,

    ln A = F_i(v_i) + F_{i+1}(v_{i+1}) - F_i(v_{i+1}) - F_{i+1}(v_i)
         = D(v_i) - D(v_{i+1}),    D = F_i - F_{i+1}

where ``F_i`` is the free energy of machine ``i`` itself, its hidden layer summed out: the sweeps leave
``exp(-F_i)`` as it is, and so the swaps leave the product of all of them as it is.

The machines are scaled forms of one machine, which then share its weights and their products (a single
product for all chains of all machines), or machines of a list.

Random numbers have the address (chain, sweep, stream), where a chain of machine ``i`` counts from ``i`` times
the number of chains. Chains of one number swap with each other only, so blocks of chains run all their rounds
on one thread each, and any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import n_blocks, run_blocks
from paramagnet.rbm import RBM
from paramagnet.sampling.layer import (
    HIDDEN,
    VISIBLE,
    Float32Array,
    SampledLayer,
    layers_of,
    make_layers,
)
from paramagnet.units import FloatArray, Unit

SWAP = 2  # stream of random numbers, besides those of `layer`
PATHS = ("weights", "energy")
# What a replica's state has seen: neither end yet, the last machine, or the last one and then the first.
_NEITHER, _DOWN, _UP = 0, 1, 2

Clamp = tuple[npt.NDArray[np.bool_], Float32Array]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The machines, from the first to the last one, which is the machine to be sampled.

    Where all of them are scaled forms of one machine, ``layers`` has the layers of that one only, and machine
    ``i`` has ``scales[i]`` times its weights; else there is a pair of layers for each, and all scales are 1.
    Biases have a row per machine. ``units`` are those of both layers with their further numbers, if they have
    any, a pair for each pair of layers.
    """

    layers: Sequence[tuple[SampledLayer, SampledLayer]]
    units: Sequence[tuple[Unit, Unit]]
    scales: FloatArray
    visible_bias: FloatArray
    hidden_bias: FloatArray

    @cached_property
    def shared(self) -> bool:
        """Whether the machines share their weights, but for the scale."""
        return len(self.layers) == 1

    @property
    def n_replicas(self) -> int:
        """The number of machines."""
        return len(self.scales)

    def of(self, i: int) -> tuple[SampledLayer, SampledLayer]:
        """The layers of machine ``i``, at scale 1."""
        return self.layers[0 if self.shared else i]

    def shift(self, i: int, side: int) -> FloatArray:
        """The part of the log-odds, or of the means, of machine ``i`` that is not field; ``side`` is 0 for
        the visible layer and 1 for the hidden one.
        """
        bias = (self.visible_bias, self.hidden_bias)[side][i]
        result: FloatArray = self.of(i)[side].scale * bias
        return result

    @classmethod
    def scaled(
        cls,
        parameters: tuple[FloatArray, FloatArray, FloatArray],
        units: tuple[Unit, Unit],
        scales: FloatArray,
        base: FloatArray,
    ) -> Ladder:
        """The machines ``(s w, s b + (1 - s) b_0, s c)``, with ``base`` for ``b_0``, zeros to scale all.

        ``parameters`` are weights, visible and hidden biases.
        """
        weights, visible_bias, hidden_bias = parameters
        s = scales[:, None]
        layers = make_layers(weights, visible_bias, hidden_bias, *units)
        return cls([layers], [units], scales, s * visible_bias + (1.0 - s) * base, s * hidden_bias)

    @classmethod
    def of_machines(cls, machines: Sequence[RBM]) -> Ladder:
        """The machines of a list."""
        return cls(
            [layers_of(rbm) for rbm in machines],
            [rbm.units for rbm in machines],
            np.ones(len(machines)),
            np.stack([rbm.visible_bias for rbm in machines]),
            np.stack([rbm.hidden_bias for rbm in machines]),
        )


@dataclass(frozen=True, eq=False)
class Replicas:
    """The visible states of all chains of all machines, ``(n_replicas, n_chains, n_visible)``, and what has
    become of their swaps.

    ``seed`` and ``sweep`` are the address of the next draws; with the states they are all that the future
    depends on. ``headings`` go with the states, for round trips: from the last machine to the first and
    back. ``accepted`` and ``tried`` count swaps of each pair of neighbours since the count began; the former
    adds up probabilities. ``fields`` are ``v.w`` of the last machine. The arrays are read-only.
    """

    visible: Float32Array
    seed: int
    sweep: int
    headings: npt.NDArray[np.int8]
    accepted: FloatArray
    tried: FloatArray
    round_trips: int = 0
    fields: Float32Array | None = field(default=None, repr=False)

    @classmethod
    def start(cls, states: npt.NDArray[Any], n_replicas: int, seed: int, sweep: int = 0) -> Replicas:
        """Every machine with the same ``states``, ``(n_chains, n_visible)``."""
        visible = np.repeat(np.asarray(states, dtype=np.float32)[None], n_replicas, axis=0)
        visible.setflags(write=False)
        headings = np.zeros(visible.shape[:2], np.int8)
        return cls(visible, seed, sweep, headings, *np.zeros((2, n_replicas - 1)))

    @property
    def acceptance(self) -> FloatArray:
        """The mean probability with which a swap of each pair of neighbours was accepted; NaN where none was
        tried.
        """
        shares: FloatArray = np.full(len(self.tried), np.nan)
        np.divide(self.accepted, self.tried, out=shares, where=self.tried > 0.0)
        return shares

    def rearranged(self, sources: npt.NDArray[np.int64]) -> Replicas:
        """The states for other machines: machine ``i`` takes those of machine ``sources[i]`` of before; the
        count of swaps begins anew, and so do the round trips under way.
        """
        visible = self.visible[sources]
        visible.setflags(write=False)
        headings = np.zeros(visible.shape[:2], np.int8)
        accepted, tried = np.zeros((2, len(sources) - 1))
        return Replicas(visible, self.seed, self.sweep, headings, accepted, tried, self.round_trips)


def run_rounds(
    ladder: Ladder,
    replicas: Replicas,
    n_rounds: int,
    *,
    n_threads: int | None = None,
    clamp: Clamp | None = None,
) -> Replicas:
    """The replicas after ``n_rounds`` rounds; ``clamp`` is that of `run_sweeps`."""
    n_machines, n_chains, _ = replicas.visible.shape
    visible, headings = replicas.visible.copy(), replicas.headings.copy()
    fields = np.empty((n_chains, ladder.hidden_bias.shape[1]), np.float32)
    n = n_blocks(n_chains)
    accepted, tried, trips = (
        np.zeros((n, n_machines - 1)),
        np.zeros((n, n_machines - 1)),
        np.zeros(n, np.int64),
    )

    def run(block: int, rows: slice) -> None:
        part = _LadderBlock(ladder, visible[:, rows], headings[:, rows], n_chains, replicas.seed, rows.start)
        held = None if clamp is None else (clamp[0][rows], clamp[1][rows])
        part.run(replicas.sweep, n_rounds, held)
        visible[:, rows], headings[:, rows], fields[rows] = part.visible, part.headings, part.fields[-1]
        accepted[block], tried[block], trips[block] = part.accepted, part.tried, part.trips

    run_blocks(run, n_chains, n_threads)
    for array in (visible, headings, fields):
        array.setflags(write=False)
    return Replicas(
        visible,
        replicas.seed,
        replicas.sweep + n_rounds,
        headings,
        replicas.accepted + accepted.sum(axis=0),
        replicas.tried + tried.sum(axis=0),
        replicas.round_trips + int(trips.sum()),
        fields,
    )


class _LadderBlock:
    """Some chains of all machines, on one thread."""

    def __init__(
        self,
        ladder: Ladder,
        visible: Float32Array,
        headings: npt.NDArray[np.int8],
        n_chains: int,
        seed: int,
        first: int,
    ) -> None:
        self.ladder, self.n_chains, self.seed, self.first = ladder, n_chains, seed, first
        self.visible = np.array(visible, order="C")
        self.headings = np.array(headings, order="C")
        n_machines, self.n_rows, _ = visible.shape
        self.fields = np.empty((n_machines, self.n_rows, ladder.hidden_bias.shape[1]), np.float32)
        n_together = self.n_rows * (n_machines if ladder.shared else 1)
        self.rooms = [[side.room_for_products(n_together) for side in pair] for pair in ladder.layers]
        self.shifts = [
            [ladder.shift(i, side).astype(np.float32) for i in range(n_machines)] for side in (0, 1)
        ]
        self.wide_shifts = np.stack([ladder.shift(i, 1) for i in range(n_machines)])
        self.bias_steps = np.diff(ladder.visible_bias, axis=0)
        self.accepted, self.tried, self.trips = np.zeros(n_machines - 1), np.zeros(n_machines - 1), 0

    def run(self, start: int, n_rounds: int, clamp: Clamp | None) -> None:
        """All rounds, in place."""
        n_units = self.ladder.of(0)[1].n_units
        hidden, old_hidden = np.zeros((2, *self.fields.shape[:2], n_units), np.float32)
        n_fields = self.ladder.visible_bias.shape[1]
        visible_fields = np.empty((*self.visible.shape[:2], n_fields), np.float32)
        new = np.empty_like(self.visible)
        self.multiply(0, self.visible, self.fields)
        for sweep in range(start, start + n_rounds):
            self.draw(1, self.fields, sweep, old_hidden, hidden)
            self.multiply(1, hidden, visible_fields)
            self.draw(0, visible_fields, sweep, self.visible, new)
            if clamp is not None:
                np.copyto(new, clamp[1], where=clamp[0])
            self.visible, new = new, self.visible
            self.multiply(0, self.visible, self.fields)
            self.swap(sweep, hidden)
            self.trips += update_headings(self.headings)

    def multiply(self, side: int, states: Float32Array, fields: Float32Array) -> None:
        """The fields of the other layer, at scale 1."""
        layers = self.ladder.layers
        if self.ladder.shared:
            flat = states.reshape(-1, states.shape[2]), fields.reshape(-1, fields.shape[2])
            layers[0][side].multiply(*flat, self.rooms[0][side])
            return
        for i, pair in enumerate(layers):
            pair[side].multiply(states[i], fields[i], self.rooms[i][side])

    def draw(self, side: int, fields: Float32Array, sweep: int, old: Float32Array, new: Float32Array) -> None:
        """New states of a layer of all machines."""
        stream = (VISIBLE, HIDDEN)[side]
        for i, scale in enumerate(self.ladder.scales):
            address = (self.seed, i * self.n_chains + self.first, sweep, stream)
            layer = self.ladder.of(i)[side]
            layer.draw_at(float(scale), self.shifts[side][i], fields[i], address, old[i], new[i])

    def swap(self, sweep: int, spare: Float32Array) -> None:
        """Swap the states of every second pair of neighbours, even pairs in even sweeps; ``spare`` is room
        for hidden states.
        """
        n_pairs = self.ladder.n_replicas - 1
        generator = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, self.first, sweep, SWAP]))
        log_u = np.log1p(-generator.random((n_pairs, self.n_rows)))  # of numbers in (0, 1]
        for i in range(sweep % 2, n_pairs, 2):
            above, below = self.cross_fields(i)
            log_ratio = self.rise(i, self.visible[i], (self.fields[i], above), spare[i])
            log_ratio -= self.rise(i, self.visible[i + 1], (below, self.fields[i + 1]), spare[i])
            chosen = np.flatnonzero(log_u[i] < log_ratio)
            self.accepted[i] += np.exp(np.minimum(log_ratio, 0.0)).sum()
            self.tried[i] += self.n_rows
            for array in (self.visible, self.headings):
                array[i, chosen], array[i + 1, chosen] = array[i + 1, chosen], array[i, chosen]
            lower, upper = below[chosen], above[chosen]
            self.fields[i, chosen], self.fields[i + 1, chosen] = lower, upper

    def cross_fields(self, i: int) -> tuple[Float32Array, Float32Array]:
        """The fields of the states of machine ``i`` on machine ``i + 1``, and the reverse."""
        if self.ladder.shared:
            return self.fields[i], self.fields[i + 1]
        above, below = np.empty((2, *self.fields[i].shape), np.float32)
        self.ladder.of(i + 1)[0].multiply(self.visible[i], above, self.rooms[i + 1][0])
        self.ladder.of(i)[0].multiply(self.visible[i + 1], below, self.rooms[i][0])
        return above, below

    def rise(
        self, i: int, states: Float32Array, fields: tuple[Float32Array, Float32Array], spare: Float32Array
    ) -> FloatArray:
        """``D = F_i - F_{i+1}`` of visible states, but for a constant; ``fields`` are theirs on both
        machines.
        """
        ladder, hidden = self.ladder, self.ladder.of(i)[1]
        result = ladder.of(i)[0].wide_linear(states, self.bias_steps[i])
        address = (self.seed, self.first, 0, SWAP)  # the drawn states are not used
        if hidden.lists_changes and ladder.shared:
            now, then = float(ladder.scales[i]), float(ladder.scales[i + 1])
            hidden.draw_and_weigh(now, then, self.wide_shifts[i : i + 2], fields[0], address, spare, result)
            return result
        for k, own, sign in zip((i, i + 1), fields, (-1.0, 1.0), strict=True):
            visible_unit, hidden_unit = ladder.units[0 if ladder.shared else k]
            if hidden.lists_changes:  # from no field at all, which is the same constant for all states
                traces, shifts = np.zeros(len(states)), np.zeros((2, own.shape[1]))
                shifts[1] = self.wide_shifts[k]
                ladder.of(k)[1].draw_and_weigh(0.0, 1.0, shifts, own, address, spare, traces)
            else:
                wide = ladder.scales[k] * own.astype(np.float64) + ladder.hidden_bias[k]
                traces = hidden_unit.sum_log_trace(wide)
            if visible_unit.parameters and not ladder.shared:  # else the machines share p0
                traces = traces + visible_unit.log_base(states.astype(np.float64))
            result += sign * traces
        return result


def update_headings(headings: npt.NDArray[np.int8]) -> int:
    """Note which states are at an end of the ladder now, in place; return how many completed a round trip,
    from the last machine to the first and back.
    """
    first, last = headings[0], headings[-1]
    first[first == _DOWN] = _UP
    n_trips = int(np.count_nonzero(last == _UP))
    last[:] = _DOWN
    return n_trips
