"""Averages over tempered chains: persistent chains that swap their states with those of easier machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_choice, as_count, as_threads
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import ArrayState, Gradient, GradientState, ModelMoments
from paramagnet.learning.moments import chain_moments, unit_statistics, wide_moments, wide_states
from paramagnet.sampling.chains import Chains, draw_seed
from paramagnet.sampling.ladder import PATHS, Ladder, Replicas, run_rounds
from paramagnet.sampling.placement import FIRST_REPLICAS, bias_of_states, nearest_replicas, place_scales
from paramagnet.sampling.tempering import as_acceptance, as_replicas
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

ROUNDS_PER_PLACEMENT = 100  # rounds from one placement of the replicas to the next
_PLACEMENTS = 4  # on the initial machine


@dataclass(frozen=True, eq=False)
class TemperingState:
    """The replicas of a training run, and the path that they are on.

    ``scales`` has a number from 0 to 1 for every replica; ``base`` are the visible biases at the scale 0.
    ``n_calls`` counts updates. `acceptance` is that since the replicas were placed the last time.
    """

    replicas: Replicas
    scales: FloatArray
    base: FloatArray
    n_calls: int = 0

    @property
    def acceptance(self) -> FloatArray:
        """The share of accepted swaps of each pair of neighbours; NaN where none was tried yet."""
        return self.replicas.acceptance

    @property
    def round_trips(self) -> int:
        """How often a state went from the machine to the first replica and back."""
        return self.replicas.round_trips

    @property
    def chains(self) -> Chains:
        """The chains of the machine itself."""
        kept = self.replicas
        return Chains(kept.visible[-1], kept.seed, kept.sweep, kept.fields)

    def to_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """The states of all replicas, their path, and the counts of their swaps."""
        kept = self.replicas
        return {
            "visible": kept.visible,
            "headings": kept.headings,
            "accepted": kept.accepted,
            "tried": kept.tried,
            "scales": self.scales,
            "base": self.base,
        }

    def to_facts(self) -> Mapping[str, Any]:
        """The address of the next draws, and the numbers of round trips and of updates."""
        kept = self.replicas
        return {
            "seed": kept.seed,
            "sweep": kept.sweep,
            "round_trips": kept.round_trips,
            "n_calls": self.n_calls,
        }


@dataclass(frozen=True)
class Tempering(Gradient):
    """Parallel tempering: averages over persistent chains that swap states with those of easier machines.

    Every chain of the machine has a companion on each of ``n_replicas - 1`` other machines, which lead from
    independent units to the machine itself. Before each update all of them make ``n_steps`` rounds, of one
    Gibbs sweep and one swap between neighbours each. So the chains come out of a mode that plain Gibbs
    sampling would keep them in; an update costs as many times that of `PCD` as there are replicas. With
    "auto" their number follows the machine as it learns.

    There is no path along the machines of the run itself, as `paramagnet.sample` has it with the method
    "trajectory": a run has no finished trajectory of itself.

    Parameters
    ----------
    n_chains : int, default 100
        Number of chains of every replica.
    n_steps : int, default 1
        Rounds before each update.
    path : str, default "weights"
        "weights" scales weights and hidden biases and leads the visible biases to those of the data's means;
        "energy" scales all. On digits 0 and 1 the first has 3.7 times the class switches of Gibbs sampling
        per machine-sweep, the second 1.9 times.
    n_replicas : int or str, default "auto"
        Number of replicas, the machine itself included; "auto" takes as few as have the ``acceptance``.
    acceptance : float, default 0.3
        The share of swaps to be accepted, between 0 and 1.
    n_relax : int, default 100
        Rounds on the initial machine before the first update.
    n_threads : int, optional
        Threads that share the work; None takes all cores. The result is the same bit for bit.
    """

    n_chains: int = 100
    n_steps: int = 1
    path: str = "weights"
    n_replicas: int | str = "auto"
    acceptance: float = 0.3
    n_relax: int = 100
    n_threads: int | None = None

    def __post_init__(self) -> None:
        as_count(self.n_chains, "n_chains", maximum=MOST_CHAINS)
        as_count(self.n_steps, "n_steps", maximum=MOST_SWEEPS)
        as_choice(self.path, "path", PATHS)
        as_replicas(self.n_replicas)
        as_acceptance(self.acceptance)
        as_count(self.n_relax, "n_relax", minimum=0, maximum=MOST_SWEEPS)
        if self.n_threads is not None:
            as_threads(self.n_threads)

    def start(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: FloatArray,
        rng: np.random.Generator,
        engine: TorchEngine | None,
    ) -> TemperingState:
        """Random chains, relaxed on the initial machine while the replicas are placed."""
        visible = layout.units(parameters)[0]
        base = bias_of_states(visible, points) if self.path == "weights" else np.zeros(layout.n_rows)
        scales = np.linspace(0.0, 1.0, as_replicas(self.n_replicas) or FIRST_REPLICAS)
        states = layout.visible.random_start((self.n_chains, layout.n_visible), rng)
        state = TemperingState(Replicas.start(states, len(scales), draw_seed(rng)), scales, base)
        borders = [self.n_relax * part // _PLACEMENTS for part in range(_PLACEMENTS + 1)]
        for n_rounds in np.diff(borders):
            state = self._run(layout, parameters, state, int(n_rounds))[0]
            state = self._placed(state)
        return state

    def moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
    ) -> tuple[TemperingState, ModelMoments]:
        """The replicas after ``n_steps`` rounds, and the averages over the chains of the machine itself."""
        assert isinstance(state, TemperingState)
        updates = max(1, ROUNDS_PER_PLACEMENT // self.n_steps)
        if state.n_calls and state.n_calls % updates == 0:
            state = self._placed(state)
        moved, ladder = self._run(layout, parameters, state, self.n_steps)
        chains = moved.chains
        if layout.wide:
            found = wide_states(chains.visible, ladder.layers[0], chains.fields, self.n_threads)
            average = wide_moments(layout, parameters, found, self.n_threads)
            return replace(moved, n_calls=state.n_calls + 1), ModelMoments(average)
        average = chain_moments(layout, chains, ladder.layers[0][1], self.n_threads)
        if layout.size > layout.n_basic:
            average[layout.n_basic :] = unit_statistics(layout, parameters, chains.visible)
        return replace(moved, n_calls=state.n_calls + 1), ModelMoments(average)

    def _run(
        self, layout: Layout, parameters: FloatArray, state: TemperingState, n_rounds: int
    ) -> tuple[TemperingState, Ladder]:
        """The state after some rounds, and the machines of the path."""
        ladder = Ladder.scaled(layout.split(parameters), layout.units(parameters), state.scales, state.base)
        replicas = run_rounds(ladder, state.replicas, n_rounds, n_threads=self.n_threads)
        return replace(state, replicas=replicas), ladder

    def _placed(self, state: TemperingState) -> TemperingState:
        """The replicas at new scales, by the swaps since they were placed; as they are if a pair has none."""
        if not np.all(state.replicas.tried > 0.0):
            return state
        count = as_replicas(self.n_replicas)
        scales = place_scales(state.scales, state.acceptance, self.acceptance, count)
        replicas = state.replicas.rearranged(nearest_replicas(state.scales, scales))
        return replace(state, replicas=replicas, scales=scales)

    def restore(self, layout: Layout, state: ArrayState) -> TemperingState:
        """The state that was read from a checkpoint; an error if it is none of this gradient's."""
        arrays, facts = state.arrays, state.facts
        visible, scales = arrays["visible"], arrays["scales"]
        if visible.shape != (len(scales), self.n_chains, layout.n_visible):
            raise ValueError(
                f"The checkpoint must hold {self.n_chains} states of {layout.n_visible} units for each of "
                f"{len(scales)} replicas, got an array of shape {visible.shape}."
            )
        replicas = Replicas(
            visible,
            facts["seed"],
            facts["sweep"],
            arrays["headings"],
            arrays["accepted"],
            arrays["tried"],
            facts["round_trips"],
        )
        return TemperingState(replicas, scales, arrays["base"], facts["n_calls"])

    def fits(self, state: GradientState | None) -> bool:
        """Whether there are as many chains, and as many replicas if their number is fixed."""
        if not isinstance(state, TemperingState):
            return False
        n_replicas, n_chains, _ = state.replicas.visible.shape
        return n_chains == self.n_chains and as_replicas(self.n_replicas) in (None, n_replicas)
