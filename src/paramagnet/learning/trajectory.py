"""The likelihood followed during training, by reweighting chains from one update to the next.

A population of weighted chains stands for the machine. It starts from exact samples, where they are cheap,
else from the chains of one mAIS with their weights. When the parameters go from ``theta`` to ``theta'``, each
weight is multiplied by

    p*_theta'(v) / p*_theta(v) = exp(F_theta(v) - F_theta'(v))

at the chain's state, and then the chain moves by a sweep at ``theta'``. So the mean weight goes on estimating
``Z``, without bias: training is one more annealing path, each update cut into a few equal parts, and this is
sequential Monte Carlo (Del Moral, Doucet and Jasra, J. R. Stat. Soc. B 68 (2006) 411). Where the weights
become too unequal, chains are drawn anew in proportion to them.

**Chains of its own.** The persistent chains of `PCD` are there already, but the update was made from them:
it lowers the probability of the very states they are in, and their weights make ``ln Z`` too small, update
after update (docs/likelihood.md has the figures). The population here is one that training does not see. It
needs few sweeps, as it has its weights to make up for lagging behind.

**Errors.** A chain's weights at successive updates are correlated, and after resampling so are chains. What
stays independent are the families: the descendants of each chain of the start. The error is the standard
error over families, ``n_effective`` the effective number of them, and neither gets better on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import as_count, as_generator, as_threads
from paramagnet._parallel import run_blocks
from paramagnet.estimates import FEWEST_EFFECTIVE, Estimate
from paramagnet.exact.sums import log_partition, sample_exact
from paramagnet.layout import Layout
from paramagnet.learning.evaluation import LogZ
from paramagnet.learning.likelihood import free_energies, mean_free_energy, weigh_points
from paramagnet.learning.state import TrainState
from paramagnet.rbm import RBM, Rng
from paramagnet.sampling.annealing import anneal_chains, mean_weight
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from paramagnet.units import FloatArray

RESAMPLE_BELOW = 0.5  # share of chains that are effective
RESTART_BELOW = 0.1  # share of families that are effective

_Weighed = tuple[FloatArray, FloatArray | None]  # points and their weights


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Log-likelihoods along a training run as columns, one row for each recorded update.

    ``log_likelihood`` and ``validation`` are in nats per point (NaN where there is none), ``error`` is the
    standard error of either and of ``log_partition``, ``n_effective`` the effective number of independent
    chains behind it. `trusted` says where that is enough. ``n_starts`` counts the starts so far: an error is
    that of the way since the last one. ``state`` is the last one of the run.
    """

    update: npt.NDArray[np.int64]
    epoch: npt.NDArray[np.int64]
    n_starts: npt.NDArray[np.int64]
    log_likelihood: FloatArray
    validation: FloatArray
    log_partition: FloatArray
    error: FloatArray
    n_effective: FloatArray
    state: TrainState

    def __len__(self) -> int:
        return len(self.update)

    def __getitem__(self, index: int) -> Estimate:
        """The log-likelihood of one row, with its error."""
        index = as_count(index, "index", minimum=-len(self))
        if index >= len(self):  # this ends a loop over the rows, so it must be an IndexError
            raise IndexError(f"`index` must be below {len(self)}, the number of rows, got {index}.")
        row = self.log_likelihood[index], self.error[index], self.n_effective[index]
        value, error, n_effective = map(float, row)
        return Estimate(value, error, n_effective)

    def __repr__(self) -> str:
        return f"Trajectory({len(self)} rows up to update {self.update[-1]}: {self[0]!r} to {self[-1]!r})"

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """Where there are enough effective chains for a reliable error."""
        return (self.n_effective >= FEWEST_EFFECTIVE) & np.isfinite(self.error)


def log_likelihood_trajectory(
    states: Iterable[TrainState],
    data: Any,
    *,
    every: int = 1,
    sample_weight: Any = None,
    validation: Any = None,
    validation_weight: Any = None,
    n_chains: int = 1000,
    n_steps: int = 5,
    n_temperatures: int = 1000,
    restart: int | None = 50,
    rng: Rng = None,
    n_threads: int | None = None,
) -> Trajectory:
    """Run a training to its end and follow the log-likelihood of ``data`` from update to update.

    >>> steps = pm.training_steps(rbm, data, epochs=100, gradient=pm.PCD())         # doctest: +SKIP
    >>> trajectory = pm.learning.log_likelihood_trajectory(steps, data)             # doctest: +SKIP

    It makes one estimate of ``ln Z`` at the start and a few sweeps of some chains per update, in place of one
    mAIS per point of the learning curve. The error grows along the run; where too few independent chains are
    left, a new start is made. Like mAIS it cannot see a mode of the machine that no chain has found.

    Parameters
    ----------
    states : iterable of TrainState
        States of a run, as from `training_steps`, with any kind of gradient.
    data : array_like
        Array ``(n_points, n_visible)`` in the values of the visible units.
    every : int, default 1
        Record every so many updates; the first and the last state always.
    sample_weight : array_like, optional
        Weights of the points of ``data``, zero or positive; None counts all alike.
    validation : array_like, optional
        Data whose log-likelihood is recorded beside that of ``data``.
    validation_weight : array_like, optional
        Weights of the points of ``validation``; None counts all alike.
    n_chains : int, default 1000
        Chains that follow the machine; training does not see them.
    n_steps : int, default 5
        Parts that an update is cut into, with one sweep each.
    n_temperatures : int, default 1000
        Temperatures of mAIS from the means of ``data``, for starts where ``ln Z`` is not exact.
    restart : int or None, default 50
        Updates from one start to the next, at least; a new one is made where ``n_effective`` is below a tenth
        of the chains. None makes no new start: the error is then that of the whole way.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    n_threads : int, optional
        None takes all cores; ``ln Z`` is the same for any number, bit for bit.

    Returns
    -------
    Trajectory
        The log-likelihoods with their errors, one row per recorded update.
    """
    every = as_count(every, "every")
    n_steps = as_count(n_steps, "n_steps")
    restart = None if restart is None else as_count(restart, "restart")
    generator = as_generator(rng)
    if not isinstance(states, Iterable) or hasattr(states, "shape"):  # an array is not a run
        raise ValueError(f"`states` must be those of `training_steps`, got {shown(states)}.")
    states = iter(states)
    state = next(states, None)
    if state is None:
        raise ValueError("`states` must have at least one state, got none. Was the generator used before?")
    layout = _as_state(state).layout
    points = weigh_points(_as_points(data, "data", state.rbm), sample_weight, "sample_weight")
    held_out: _Weighed | None = None
    if validation is not None:
        others = _as_points(validation, "validation", state.rbm)
        held_out = weigh_points(others, validation_weight, "validation_weight")
    elif validation_weight is not None:
        raise ValueError(
            "`validation_weight` must be left out where `validation` is None, got "
            f"{shown(validation_weight)}. Pass the points as `validation`."
        )
    n_chains = as_count(n_chains, "n_chains")
    require_memory(24 * n_chains * (layout.n_rows + layout.n_columns), "n_chains", n_chains)
    start = _Start(
        means=layout.visible.column_means(*points),
        n_chains=n_chains,
        n_temperatures=as_count(n_temperatures, "n_temperatures"),
        n_threads=None if n_threads is None else as_threads(n_threads),
        rng=generator,
    )
    population, started, n_starts = start.population(state.rbm), state.update, 1
    log_z = population.log_partition
    rows = [_measure(state, log_z, n_starts, points, held_out)]
    for following in states:
        state = _as_state(following)
        if state.layout != layout:
            raise ValueError(
                f"`states` must be those of one run, got {shown(state.rbm)} after a machine of "
                f"{layout.n_visible} {layout.visible} and {layout.n_hidden} {layout.hidden} units."
            )
        for machine in _between(population.rbm, state.rbm, n_steps):
            population = population.resampled(generator).moved().reweighted(machine)
        log_z = _no_better(population.log_partition, log_z)
        few = log_z.n_effective < RESTART_BELOW * start.n_chains
        if few and restart is not None and state.update - started >= restart:
            fresh = start.population(state.rbm)
            started = state.update
            if fresh.log_partition.n_effective > log_z.n_effective:
                population, log_z, n_starts = fresh, fresh.log_partition, n_starts + 1
        if state.update % every == 0:
            rows.append(_measure(state, log_z, n_starts, points, held_out))
    if rows[-1][0] != state.update:
        rows.append(_measure(state, log_z, n_starts, points, held_out))
    table = np.array(rows).T
    counts, (log_likelihood, held_out_likelihood, log_zs, error, n_effective) = table[:3], table[3:]
    update, epoch, starts = counts.astype(np.int64)
    return Trajectory(
        update=update,
        epoch=epoch,
        n_starts=starts,
        log_likelihood=log_likelihood,
        validation=held_out_likelihood,
        log_partition=log_zs,
        error=error,
        n_effective=n_effective,
        state=state,
    )


def _as_state(state: Any) -> TrainState:
    if not isinstance(state, TrainState):
        raise ValueError(
            f"`states` must be those of `training_steps`, got a {type(state).__name__}. For one machine "
            "there is `log_likelihood`."
        )
    return state


def _no_better(now: Estimate, before: Estimate) -> Estimate:
    """An estimate that rests on an earlier one has no more effective samples than that.

    Families that are left after a collapse may come to equal weights; the value remains off.
    """
    return Estimate(now.value, max(now.error, before.error), min(now.n_effective, before.n_effective))


def _between(now: RBM, then: RBM, n_steps: int) -> Iterator[RBM]:
    """Machines on the straight line from one to the other, the other included, itself without rounding."""
    layout = Layout.of(now)
    start, end = layout.flatten(now), layout.flatten(then)
    for step in range(1, n_steps):
        yield layout.machine(start + (step / n_steps) * (end - start))
    yield then


@dataclass(frozen=True, eq=False)
class _Start:
    """How a population starts: from exact samples where they are cheap, else from mAIS."""

    means: FloatArray
    n_chains: int
    n_temperatures: int
    n_threads: int | None
    rng: np.random.Generator

    def population(self, rbm: RBM) -> _Population:
        if LogZ().choose(rbm).method == "exact":
            states: npt.NDArray[Any] = sample_exact(rbm, self.n_chains, rng=self.rng)
            log_weights = np.full(self.n_chains, log_partition(rbm))
        else:
            states, log_weights = anneal_chains(
                rbm, self.means, self.n_chains, self.n_temperatures, self.rng, self.n_threads
            )
        chains, families = Chains.from_states(states, self.rng), np.arange(self.n_chains)
        return _Population(rbm, chains, log_weights, families, self.n_threads)


@dataclass(frozen=True, eq=False)
class _Population:
    """Weighted chains that stand for a machine; ``families`` numbers the chains of the start."""

    rbm: RBM
    chains: Chains
    log_weights: FloatArray
    families: npt.NDArray[np.int64]
    n_threads: int | None

    @property
    def log_partition(self) -> Estimate:
        return mean_weight(self.log_weights, self.families)

    def moved(self) -> _Population:
        """The chains after a sweep, which leaves the machine's distribution and so the weights unchanged."""
        chains = run_sweeps(layers_of(self.rbm), self.chains, 1, n_threads=self.n_threads)
        return replace(self, chains=chains)

    def reweighted(self, rbm: RBM) -> _Population:
        """The same chains for another machine."""
        log_weights = self.log_weights.copy()

        def run(block: int, rows: slice) -> None:
            states = self.chains.visible[rows].astype(np.float64)
            log_weights[rows] += free_energies(self.rbm, states) - free_energies(rbm, states)

        run_blocks(run, len(log_weights), self.n_threads)
        return replace(self, rbm=rbm, log_weights=log_weights)

    def resampled(self, rng: np.random.Generator) -> _Population:
        """Chains drawn in proportion to their weights, if these are too unequal; else the same.

        Systematic: chain ``i`` comes ``n_chains`` times its share of the weight, rounded up or down.
        """
        now, n_chains = mean_weight(self.log_weights), len(self.log_weights)
        if now.n_effective >= RESAMPLE_BELOW * n_chains:
            return self
        share = np.cumsum(np.exp(self.log_weights - self.log_weights.max()))
        marks = (np.arange(n_chains) + rng.random()) / n_chains
        chosen = np.minimum(np.searchsorted(share / share[-1], marks), n_chains - 1)
        chains = Chains.at(self.chains.visible[chosen], self.chains.seed, self.chains.sweep)
        return replace(
            self,
            chains=chains,
            log_weights=np.full(n_chains, now.value),
            families=self.families[chosen],
        )


def _as_points(data: Any, argument: str, rbm: RBM) -> FloatArray:
    return rbm.visible.as_states(data, argument, rbm.n_visible)


def _measure(
    state: TrainState, log_z: Estimate, n_starts: int, points: _Weighed, held_out: _Weighed | None
) -> tuple[float, ...]:
    """One row, in the order of the columns of `Trajectory`."""
    rbm = state.rbm
    validation = math.nan if held_out is None else -mean_free_energy(rbm, *held_out) - log_z.value
    log_likelihood = -mean_free_energy(rbm, *points) - log_z.value
    counts = state.update, state.epoch, n_starts
    return (*counts, log_likelihood, validation, log_z.value, log_z.error, log_z.n_effective)
