"""The guard of sampled training: does the likelihood still rise, or have the chains lost the machine?

Persistent chains can fall behind the machine that they should follow, and then its likelihood falls, update
after update, while gradients look as usual. The guard looks at the likelihood itself. Every so many updates
it measures the log-likelihood of some training points with two small mAIS (50 chains each and 100
temperatures, together less than a tenth of the time) and compares it with the best that it has seen. One mAIS
starts from independent units with the means of the data, the other one from uniform states, and the larger
``ln Z`` counts: the states that a failed machine prefers are far from the data, where the chains never were,
and a mAIS from the data does not see them either. A machine has failed if it lost more than a share of what
the best one had gained over independent units; a second look with ten times the temperatures confirms it.
Then the run goes back to that best machine, its learning rate is lowered from there on, and persistent chains
start anew: half of them from points of the data, half from random states, so that they find states far from
the data, too.

The interval follows from counts of rows that are multiplied, never from times, and random numbers from the
seed of the run and the number of the update. So a resumed run repeats all of it bit for bit.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._callers import caller_level
from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_count, as_positive, as_real
from paramagnet.estimates import Estimate
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import Gradient, GradientState
from paramagnet.learning.independent import level_of
from paramagnet.learning.likelihood import mean_free_energy
from paramagnet.learning.moments import run_chains
from paramagnet.learning.watch import Check, Kept, TrainingWarning, Watch, in_memory, set_aside
from paramagnet.rbm import RBM
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sampling.chains import Chains
from paramagnet.sampling.devices import KERNELS
from paramagnet.units import FloatArray, Unit

if TYPE_CHECKING:
    from paramagnet.learning.state import TrainState
    from paramagnet.sampling.torch_engine import TorchEngine

MOST_POINTS = 1000  # training points that a check measures
SHARE_OF_ROWS = 0.04  # of those that updates multiply, for checks
FEWEST_UPDATES = 200  # from one check to the next
LEAST_LOSS = 1.0  # nats per point: less is never a failure
CLOSER_LOOK = 10  # times as many temperatures to confirm a failure
RESTART_SWEEPS = 100  # of chains that start anew from the data
_STREAM = 3  # of random numbers, for checks
_ASSUMED_ROWS = 100  # chains of gradients that do not say how they sample

logger = logging.getLogger("paramagnet.learning.training")


@dataclass(frozen=True)
class Guard:
    """A check, every few hundred updates, that training with sampled gradients has not failed.

    Parameters
    ----------
    every : int, optional
        Updates from one check to the next; None takes as many as keep the rows that checks multiply by the
        weights below 4 % of those of updates, at least 200.
    tolerance : float, default 0.33
        The share of the best machine's gain over independent units that a machine may lose, above 0; losses
        below one nat per point never count.
    factor : float, default 0.7
        What the learning rate is multiplied by after a failure, above 0 and below 1.
    n_chains : int, default 100
        Chains of the mAIS of a check, half of them from the means of the data, half from uniform states.
    n_temperatures : int, default 100
        Temperatures of the mAIS of a check.
    """

    every: int | None = None
    tolerance: float = 0.33
    factor: float = 0.7
    n_chains: int = 100
    n_temperatures: int = 100

    def __post_init__(self) -> None:
        if self.every is not None:
            as_count(self.every, "every", maximum=MOST_SWEEPS)
        tolerance = float(as_positive(as_real(self.tolerance, "tolerance"), "tolerance"))
        factor = as_real(self.factor, "factor")
        if not 0.0 < factor < 1.0:
            raise ValueError(f"`factor` must be above 0 and below 1, got {self.factor!r}.")
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "factor", factor)
        as_count(self.n_chains, "n_chains", minimum=4, maximum=MOST_CHAINS)
        as_count(self.n_temperatures, "n_temperatures", minimum=2, maximum=MOST_CHAINS // CLOSER_LOOK)


def as_guard(guard: Any, gradient: Gradient, earlier: TrainState | None) -> Guard | None:
    """The guard of a run; None is on where chains persist, or as in the run that goes on, False is off."""
    if isinstance(guard, Guard):
        return guard
    if guard is None and earlier is not None:
        kept = None if earlier.watch is None else earlier.watch.guard
        return None if kept is None else Guard(**kept)
    if guard is not None and not isinstance(guard, (bool, np.bool_)):
        raise ValueError(f"`guard` must be True, False, None or a `Guard`, got {shown(guard)}.")
    return Guard() if (has_lasting_chains(gradient) if guard is None else guard) else None


def has_lasting_chains(gradient: Gradient) -> bool:
    """Whether a gradient is sampled by chains that go on from one update to the next."""
    particles = gradient.particles()
    restarts = particles is not None and particles.n_chains is None
    return not (gradient.exact or restarts)


def is_off(guard: Any, gradient: Gradient, earlier: TrainState | None) -> bool:
    """Whether the user wants no judgement: by False, or by None where a run goes on that had False."""
    if guard is None:
        return as_guard(None, gradient, None) is not None and as_guard(None, gradient, earlier) is None
    return isinstance(guard, (bool, np.bool_)) and not guard


@dataclass(frozen=True, eq=False)
class GuardedRun:
    """The guard of one run: its settings, and what it measures with."""

    settings: Guard
    layout: Layout
    points: npt.NDArray[Any]  # all of the data
    gradient: Gradient
    batch_size: int
    engine: TorchEngine | None
    weights: FloatArray | None = None  # of the points, None where all count alike

    @cached_property
    def every(self) -> int:
        """Updates from one check to the next."""
        if self.settings.every is not None:
            return self.settings.every
        particles, chains, steps = self.gradient.particles(), _ASSUMED_ROWS, 1
        if particles is not None:
            chains, steps = particles.n_chains or self.batch_size, particles.n_steps
        update = 2 * self.batch_size + chains * (2 + 2 * steps)  # rows that are multiplied by the weights
        check = 2 * self.settings.n_chains * self.settings.n_temperatures + len(self.measured)
        return max(FEWEST_UPDATES, -(-check // int(1 + SHARE_OF_ROWS * update)))

    @cached_property
    def chosen(self) -> npt.NDArray[np.int64]:
        """Which training points are measured: some, evenly spread."""
        count = min(len(self.points), MOST_POINTS)
        return np.linspace(0, len(self.points) - 1, count).round().astype(np.int64)

    @cached_property
    def measured(self) -> FloatArray:
        """The training points that are measured."""
        return np.asarray(self.points[self.chosen], dtype=np.float64)

    @cached_property
    def measured_weights(self) -> FloatArray | None:
        """Their weights."""
        return None if self.weights is None else self.weights[self.chosen]

    @cached_property
    def level(self) -> float:
        """The log-likelihood of these points under independent units with the means of the data."""
        return level_of(self.layout.visible, self.points, self.measured, self.weights, self.measured_weights)

    @cached_property
    def starts(self) -> tuple[str | FloatArray, ...]:
        """Where mAIS starts: uniform states, and the means of the data where units have biases for means."""
        unit = self.layout.visible
        if type(unit).field_of_mean is Unit.field_of_mean:
            return ("uniform",)
        return ("uniform", unit.column_means(self.points, self.weights))

    def due(self, update: int) -> bool:
        """Whether the state after so many updates is checked."""
        return update % self.every == 0

    def after(self, state: TrainState) -> TrainState:
        """The state after an update, checked if it is time: the same, or one that went back."""
        checked = bool(state.checks) and state.checks[-1].update == state.update
        if checked or not self.due(state.update):
            return state
        watch = state.watch or Watch(guard=asdict(self.settings))
        now = self.look(state, state.parameters, 1)
        failed = False
        if watch.sound is not None and self.lost(watch.sound, now):
            now = self.look(state, state.parameters, CLOSER_LOOK)
            sound = self.look(state, watch.sound.parameters, CLOSER_LOOK)
            sound = replace(sound, update=watch.sound.update, epoch=watch.sound.epoch)
            failed = self.lost(sound, now)
            watch = replace(watch, sound=sound)
        if watch.sound is None or now.value > watch.sound.value:
            watch = replace(watch, sound=set_aside(now))
        rate_factor = watch.rate_factor * (self.settings.factor if failed else 1.0)
        check = Check(state.update, now.value, now.error, rate_factor, failed)
        if failed and watch.sound is not None:
            check = replace(check, back_to=watch.sound.update, before=watch.sound.value)
        watch = replace(watch, rate_factor=rate_factor, checks=(*watch.checks, check))
        watch = replace(watch, guard=asdict(self.settings))
        if not failed:
            return replace(state, watch=watch)
        assert watch.sound is not None
        text = describe_failures(watch.checks, self.gradient)[-1]
        logger.warning(text)
        warnings.warn(text, TrainingWarning, stacklevel=caller_level())
        parameters = in_memory(watch.sound.parameters)
        kept = self.restarted(state, parameters)
        return replace(state, parameters=parameters, gradient_state=kept, watch=watch)

    def look(self, state: TrainState, parameters: FloatArray, closeness: int) -> Kept:
        """The log-likelihood of a machine, by as many times the temperatures of a check."""
        rbm = self.layout.view(parameters)
        log_z = self.log_partition(state, rbm, closeness)
        value = -mean_free_energy(rbm, self.measured, self.measured_weights) - log_z.value
        return Kept(parameters, state.update, state.epoch, value, log_z.value, log_z.error)

    def log_partition(self, state: TrainState, rbm: RBM, closeness: int) -> Estimate:
        """A small estimate of ``ln Z``: the largest of those from all starts, since each tends to be low."""
        kept = state.gradient_state
        seed = kept.seed if isinstance(kept, Chains) else state.rng_state["state"]["inc"]
        estimates = [
            estimate_log_partition(
                rbm,
                n_samples=self.settings.n_chains // len(self.starts),
                n_temperatures=closeness * self.settings.n_temperatures,
                start=start,
                device=KERNELS if self.engine is None else self.engine.name,
                rng=np.random.default_rng([seed, state.update, _STREAM, closeness, index]),
                n_threads=self.gradient.n_threads,
            )
            for index, start in enumerate(self.starts)
        ]
        return max(estimates, key=lambda estimate: estimate.value)

    def lost(self, sound: Kept, now: Kept) -> bool:
        """Whether a machine has lost too much of what the best one had gained; NaN counts as a loss."""
        gained = max(0.0, sound.value - self.level)
        return not now.value >= sound.value - max(LEAST_LOSS, self.settings.tolerance * gained)

    def restarted(self, state: TrainState, parameters: FloatArray) -> GradientState | None:
        """Persistent chains anew, half from points of the data and half from random states; the state of any
        other gradient as at the start of a run.
        """
        chains = state.gradient_state
        if chains is None or (isinstance(chains, Chains) and not len(chains.visible)):
            return chains
        seed = chains.seed if isinstance(chains, Chains) else state.rng_state["state"]["inc"]
        rng = np.random.default_rng([seed, state.update, _STREAM])
        if not isinstance(chains, Chains):
            return self.gradient.start(self.layout, parameters, self.points, rng, self.engine)
        share = None if self.weights is None else self.weights / self.weights.sum()
        chosen = rng.choice(len(self.points), size=len(chains.visible), p=share)
        states = np.array(self.points[chosen], dtype=np.float32)
        random = Chains.start(self.layout.visible, states[1::2].shape, rng)
        states[1::2] = random.visible
        fresh = Chains.at(states, chains.seed, chains.sweep)
        return run_chains(
            self.layout, parameters, fresh, RESTART_SWEEPS, self.gradient.n_threads, self.engine
        )


def describe_failures(checks: Sequence[Check], gradient: Gradient) -> list[str]:
    """Every failure of a run in words; what it comes from, and what avoids it, beside the first one only."""
    failures = [check for check in checks if check.failed]
    return [_describe_failure(check, gradient, again=index > 0) for index, check in enumerate(failures)]


def _describe_failure(check: Check, gradient: Gradient, *, again: bool) -> str:
    lasting = has_lasting_chains(gradient)
    because = ", because the chains no longer followed the machine" if lasting and not again else ""
    anew = ", and its chains start anew" if lasting and not again else ""
    if anew and gradient.particles() is not None:
        anew += ", half of them from the data"
    sweeps = "" if gradient.exact else ", or more sweeps before each update,"
    remedy = f" A smaller or falling learning rate{sweeps} avoids this; `guard=False` turns the check off."
    return (
        f"Training failed{' again' if again else ''} at update {check.update}: its log-likelihood was "
        f"{check.log_likelihood:.2f} nats per point, after {check.before:.2f} at update {check.back_to}"
        f"{because}. The run goes on from that machine with {check.rate_factor:.3g} of its learning rate"
        f"{anew}.{'' if again else remedy}"
    )
