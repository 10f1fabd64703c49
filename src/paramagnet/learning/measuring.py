"""Measurements of a run: ``ln Z`` and log-likelihoods after an epoch, as a record in its state.

Measuring changes nothing in a run: it has random numbers of its own.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paramagnet.estimates import Estimate
from paramagnet.learning.early_stopping import measured_machine, noted
from paramagnet.learning.evaluation import LogZ, as_estimate
from paramagnet.learning.gradients.base import GradientState, ModelMoments
from paramagnet.learning.likelihood import free_energies, likelihood_of
from paramagnet.learning.state import Record, TrainState
from paramagnet.learning.watch import set_aside
from paramagnet.sampling.chains import Chains
from paramagnet.sampling.devices import KERNELS

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop

Model = tuple[GradientState | None, ModelMoments]  # what `Gradient.moments` returns


@dataclass(frozen=True, eq=False)
class Measured:
    """Log-likelihoods after an epoch with both errors, which records do not hold: those of ln Z, and those of
    means over the points that are learned and over held-out ones (None where there are none).
    """

    epoch: int
    learned: Estimate
    held_out: Estimate | None


def measured(loop: Loop, state: TrainState, gradient_norm: float) -> tuple[TrainState, Model | None]:
    """The state at the end of an epoch with its record; and its exact averages, if they are known now."""
    if loop.before_measuring is not None:
        loop.before_measuring(state)
    began = time.perf_counter()
    log_z, model = find_log_z(loop, state)
    seconds = state.seconds + time.perf_counter() - began
    spent = seconds if state.epoch else 0.0  # the start was not trained
    record = make_record(loop, state, log_z, gradient_norm, spent)
    seconds = state.seconds + time.perf_counter() - began
    state = replace(state, records=(*state.records, record), seconds=seconds)
    if loop.guard is not None or loop.stopping is not None:
        state = noted(state, log_z, loop.held_out, loop.stopping, loop.held_out_weights)
    elif loop.judged:
        now = measured_machine(state, log_z)
        if not loop.best or now.value > loop.best[0].value:
            loop.best[:] = [set_aside(now)]
    return state, model


def find_log_z(loop: Loop, state: TrainState) -> tuple[Estimate, Model | None]:
    """``ln Z``; and where it comes with exact gradients the averages under the model, too."""
    policy, kept = loop.log_z, state.gradient_state
    if isinstance(policy, LogZ) and policy.method in ("auto", "exact") and loop.gradient.exact:
        assert loop.points_and_ones is not None
        points = loop.points_and_ones[:, :-1]  # exact averages do not depend on them
        model = loop.gradient.moments(loop.layout, state.parameters, points, kept, loop.engine)
        if model[1].log_z is None:
            raise ValueError(
                f"`moments` of {type(loop.gradient).__name__} must return ln Z, because the class says "
                "`exact = True`, got None. Return `ModelMoments(average, log_z)`."
            )
        return Estimate(model[1].log_z), model
    if not isinstance(policy, LogZ):
        return as_estimate(policy(state.rbm, state.epoch)), None
    seed = kept.seed if isinstance(kept, Chains) else state.rng_state["state"]["inc"]
    rng = np.random.default_rng([seed, state.epoch])
    device = KERNELS if loop.engine is None else loop.engine.name
    threads = loop.gradient.n_threads
    return policy(state.rbm, rng, means=loop.means, n_threads=threads, device=device), None


def make_record(
    loop: Loop, state: TrainState, log_z: Estimate, gradient_norm: float, seconds: float
) -> Record:
    """The record of an epoch; the loop keeps the errors of the means over the points."""
    rbm = state.rbm
    held_out = None
    with np.errstate(over="ignore", invalid="ignore"):  # a machine that has diverged has no finite error
        learned = likelihood_of(free_energies(rbm, loop.points), log_z, loop.all_weights)
        if loop.held_out is not None:
            held_out = likelihood_of(free_energies(rbm, loop.held_out), log_z, loop.held_out_weights)
    loop.last_measured[:] = [Measured(state.epoch, learned, held_out)]
    return Record(
        epoch=state.epoch,
        log_likelihood=learned.value,
        validation=math.nan if held_out is None else held_out.value,
        gradient_norm=gradient_norm,
        weight_norm=float(np.linalg.norm(rbm.weights)),
        seconds=seconds,
        error=log_z.error,
        n_effective=log_z.n_effective,
    )
