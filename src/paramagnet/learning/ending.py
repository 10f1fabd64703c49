"""What is said at the end of a run: failures on the way, a result that is worse than it could be, and what a
quick diagnosis of machine and chains finds.

A run without a guard is judged, too: by its measurements, or by one small look at the machine that it ends
with, where none was measured there. The look comes after the last update, with random numbers of its own.
"""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from paramagnet._callers import caller_level
from paramagnet.exact.cost import estimate_seconds, sizes_of
from paramagnet.exact.sums import log_partition
from paramagnet.learning.early_stopping import paired_gain
from paramagnet.learning.gradients.summed import Exact
from paramagnet.learning.guard import (
    FEWEST_UPDATES,
    LEAST_LOSS,
    MOST_POINTS,
    Guard,
    GuardedRun,
    describe_failures,
)
from paramagnet.learning.independent import level_of, level_of_biases
from paramagnet.learning.likelihood import average, error_of_mean, free_energies, mean_free_energy
from paramagnet.learning.watch import Kept, TrainingWarning
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains
from paramagnet.sampling.placement import bias_of_means
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop
    from paramagnet.learning.state import TrainState

ERRORS = 3.0  # beyond which a difference is worth a word
FITTED = 0.5  # nats per column of the data that independent units gain on all points by being fitted to them
SHARE = 0.05  # of the gain over independent units, below which a loss is not
SECONDS_EXACT = 0.1  # an exact sum that takes no longer is made for the look at the end of any run
SECONDS_PER_UPDATE = 5e-5  # of that sum, for each update of the run: a fraction of what these take

_BEST = "; `TrainResult.best` is that one"

logger = logging.getLogger("paramagnet.learning.training")


def best_of(state: TrainState) -> Kept | None:
    """The best machine of a run: by its measurements, else by the checks of its guard."""
    watch = state.watch
    if watch is None:
        return None
    return watch.best or watch.sound


def closing_notes(loop: Loop, state: TrainState, start: RBM | None = None) -> tuple[str, ...]:
    """What the user should know about the result; ``start`` is the machine that the run began with.

    It is logged. What failed is a warning, too, where there is a guard, unless the run was shorter than 200
    updates and than the time from one check to the next: so few are a trial. Without a guard, only a result
    below independent units is one. Symptoms of a machine that learned less than it could, such as idle units,
    are notes alone.
    """
    guard = loop.guard
    run = guard or _unguarded(loop)
    fewest = FEWEST_UPDATES if guard is None else min(FEWEST_UPDATES, guard.every)
    loud = loop.judged and state.update >= fewest
    notes = describe_failures(state.checks, loop.gradient)
    told = len(notes)
    kept = best_of(state) if loop.stopping is not None else None
    epoch = state.epoch if kept is None else kept.epoch  # of the machine that is returned
    records = [record for record in state.records if record.epoch == epoch]
    measured = bool(records) and (kept is not None or state.batch == 0)
    if state.update == 0:
        return tuple(notes)
    level, now = math.nan, None
    if measured:
        value, error = records[-1].log_likelihood, records[-1].error
        level = level_of(loop.layout.visible, loop.points, loop.points, loop.all_weights, loop.all_weights)
    if guard is not None and kept is None:
        # A measurement may start from the data, and then it does not see what a failed machine prefers.
        now = guard.look(state, state.parameters, 1)
        if not measured or not now.value + ERRORS * now.error + LEAST_LOSS >= value:
            value, error, level, measured = now.value, now.error, guard.level, False
    elif loop.judged and not measured:
        now = _look(loop, run, state)
        if now is not None:
            value, error, level = now.value, now.error, run.level
    allowed = FITTED * loop.layout.n_rows / len(loop.points)
    if math.isfinite(level) and not value + ERRORS * error + allowed >= level:
        biases = "" if _starts_from_means(loop, start) else "start with `visible_bias='data'`, or "
        sweeps = "" if loop.gradient.exact else " or more sweeps per update"
        notes.append(
            f"The machine has a log-likelihood of {value:.2f} nats per training point, and independent units "
            f"with the means of the data have {level:.2f}: it has learned less than the means. Train longer, "
            f"{biases}{'' if biases else 'or '}use a smaller learning rate{sweeps}."
        )
    failures = len(notes)
    if loop.judged and loop.stopping is None:
        text = _fallen(loop, run, state, now, measured, level)
        notes += [text] if text else []
    failures = failures if guard is None else len(notes)
    notes += _symptoms(loop, state, kept, start)
    for index, text in enumerate(notes[told:], start=told):
        logger.warning(text)
        if loud and index < failures:
            warnings.warn(text, TrainingWarning, stacklevel=caller_level())
    return tuple(notes)


def best_measured(loop: Loop, state: TrainState, notes: tuple[str, ...]) -> Kept | None:
    """The best measured machine of a run without a guard, if it compares with the last one: where that was
    measured, too, or where the notes say that it is worse.
    """
    at_end = state.batch == 0 and bool(state.records) and state.records[-1].epoch == state.epoch
    offered = bool(loop.best) and (at_end or any(_BEST in note for note in notes))
    return loop.best[0] if offered else None


def _unguarded(loop: Loop) -> GuardedRun:
    """What a guard of this run would measure with."""
    return GuardedRun(
        Guard(), loop.layout, loop.points, loop.gradient, loop.batch_size, loop.engine, loop.all_weights
    )


def _look(loop: Loop, run: GuardedRun, state: TrainState) -> Kept | None:
    """The log-likelihood of the last machine of a run without a guard, where it costs little: exact with
    exact gradients, or where the sum takes a small share of the run; else by the two mAIS of a guard.

    None where the run was too short for it, and where no estimate is possible.
    """
    if state.update < FEWEST_UPDATES:
        return None
    log_z = _log_z_at_end(loop, state)
    if math.isfinite(log_z):
        rbm = loop.layout.view(state.parameters)
        value = -mean_free_energy(rbm, run.measured, run.measured_weights) - log_z
        return Kept(state.parameters, state.update, state.epoch, value, log_z, 0.0)
    if state.update < run.every:
        return None
    try:
        return run.look(state, state.parameters, 1)
    except ValueError as error:  # two unbounded layers
        logger.info("The machine was not judged at the end of its training: %s", error)
        return None


def _log_z_at_end(loop: Loop, state: TrainState) -> float:
    """The exact ``ln Z``, where the gradients of the run were exact or where it is cheap; else NaN."""
    rbm = loop.layout.view(state.parameters)
    try:
        seconds = estimate_seconds(*sizes_of(rbm), gradient=False)
        cheap = seconds <= min(SECONDS_EXACT, SECONDS_PER_UPDATE * state.update)
        if isinstance(loop.gradient, Exact) or cheap:
            return log_partition(rbm, n_threads=loop.gradient.n_threads or 1, force=True)
    except ValueError:  # there is no such sum, or the parameters are too large for it
        pass
    return math.nan


def _starts_from_means(loop: Loop, start: RBM | None) -> bool:
    """Whether the visible biases at the start, or these with what the hidden means add (the centred start),
    are nearer to those of the data's means than to none, by the likelihood of independent units; True where
    the start is not known.
    """
    if start is None:
        return True
    layer, hidden = start.units
    means = layer.column_means(loop.points, loop.all_weights)
    with_hidden = start.visible_bias + start.weights @ hidden.mean(start.hidden_bias + means @ start.weights)
    none, of_means = np.zeros_like(start.visible_bias), bias_of_means(layer, means, "data")
    points = _typical_points(loop)
    plain, centred, lowest, level = (
        level_of_biases(layer, biases, points) for biases in (start.visible_bias, with_hidden, none, of_means)
    )
    return max(plain, centred) > 0.5 * (lowest + level)


def _symptoms(loop: Loop, state: TrainState, kept: Kept | None, start: RBM | None) -> list[str]:
    """What `quick_diagnosis` finds about the machine that is returned, and about the chains of the run, with
    remedies that the run has not taken already; a run that goes on does not know its ``start``.
    """
    from paramagnet.learning.diagnosing import FEWEST_CHAINS, quick_diagnosis
    from paramagnet.learning.verdict import leave_out_done

    if state.update < FEWEST_UPDATES or loop.layout.hidden.width > 1:  # it does not know hidden labels
        return []
    points = _typical_points(loop)
    if len(points) < FEWEST_CHAINS:
        return []
    chains = getattr(state.gradient_state, "chains", state.gradient_state)  # tempering has its own, too
    states = None
    if kept is None and isinstance(chains, Chains) and len(chains.visible) >= FEWEST_CHAINS:
        states = chains.visible.astype(np.float64)
    rbm = state.rbm if kept is None else state.layout.machine(kept.parameters)
    done = {"centred": loop.centre is not None}
    done["from_means"] = start is not None and _starts_from_means(loop, start)
    return [f"{leave_out_done(finding, **done)}." for finding in quick_diagnosis(rbm, points, states)]


def _typical_points(loop: Loop) -> FloatArray:
    """At most 1000 training points; where they have weights, as many as these are worth, drawn by them."""
    weights, n_points = loop.all_weights, len(loop.points)
    if weights is None:
        chosen = np.linspace(0, n_points - 1, min(n_points, MOST_POINTS)).round().astype(np.int64)
    else:
        share = weights / weights.sum()
        count = min(MOST_POINTS, int(1.0 / float(share @ share)))
        chosen = np.random.default_rng(0).choice(n_points, size=count, p=share)
    return np.asarray(loop.points[chosen], dtype=np.float64)


def _fallen(
    loop: Loop, run: GuardedRun, state: TrainState, now: Kept | None, measured: bool, level: float
) -> str:
    """Words where the run had a better machine before; else an empty text. ``now`` is the last one, where it
    was looked at.
    """
    watch, record = state.watch, state.records[-1] if state.records else None
    held_out = measured and record is not None and math.isfinite(record.validation)
    best: Kept | None
    if loop.guard is None:
        best = _best_without_guard(loop, run, measured, held_out, state)
    else:
        best = None if watch is None else watch.best if measured else watch.sound
    if best is None or best.update == state.update or not math.isfinite(best.value):
        return ""
    if measured:
        assert record is not None
        value = record.validation if held_out else record.log_likelihood
        last = Kept(state.parameters, state.update, state.epoch, value, math.nan, record.error)
        points, weights = run.measured, run.measured_weights
        if held_out:
            assert loop.held_out is not None
            points, weights = loop.held_out, loop.held_out_weights
        loss = best.value - value
        error = _error_of_loss(loop, best, last, points, weights, sample=held_out)
    elif now is not None:
        value, loss, error = now.value, best.value - now.value, math.hypot(best.error, now.error)
        if not best.parameters.size:  # a record, of all points
            some = len(run.measured) < len(loop.points)
            error = _error_of_loss(loop, best, now, run.measured, run.measured_weights, sample=some)
    else:
        return ""
    if loss <= ERRORS * error or loss <= SHARE * max(0.0, best.value - level):
        return ""
    kind = "held-out point" if held_out else "training point"
    falls = getattr(loop.optimizer.learning_rate, "kind", "constant") != "constant"  # of a `Schedule`
    remedies = ["a smaller learning rate" if falls else "a falling learning rate (`Adam('linear')`)"]
    remedies += [] if loop.gradient.exact else ["more sweeps per update"]
    remedies += ["`early_stopping=EarlyStopping()`"] if held_out else []
    remedy = " or ".join(remedies)
    return (
        f"The machine has a log-likelihood of {value:.2f} nats per {kind}, but had {best.value:.2f} at "
        f"update {best.update}{_BEST if best.parameters.size else ''}. {remedy[0].upper()}{remedy[1:]} "
        f"avoid{'s' if len(remedies) == 1 else ''} this."
    )


def _best_without_guard(
    loop: Loop, run: GuardedRun, measured: bool, held_out: bool, state: TrainState
) -> Kept | None:
    """The best machine by the records of a run without a guard, with its value on the points of the look
    where the last machine was not measured. It has no parameters where they were not kept: that of a run that
    was interrupted since.
    """
    values = {
        record: record.validation if held_out else record.log_likelihood
        for record in state.records
        if math.isfinite(record.validation if held_out else record.log_likelihood)
    }
    if not values:
        return None
    record = max(values, key=lambda one: values[one])
    if not loop.best or loop.best[0].epoch != record.epoch:
        update = record.epoch * loop.n_batches
        return Kept(np.zeros(0), update, record.epoch, values[record], math.nan, record.error)
    best = loop.best[0]
    if measured:
        return best
    rbm = loop.layout.view(best.parameters)
    value = -mean_free_energy(rbm, run.measured, run.measured_weights) - best.log_z
    return replace(best, value=value)


def _error_of_loss(
    loop: Loop, best: Kept, last: Kept, points: FloatArray, weights: FloatArray | None, *, sample: bool
) -> float:
    """The error of the difference between two machines on the same points, paired where both are known. Where
    the better one is not, that over the points counts if they are a ``sample``, and not all that are learned.
    """
    if best.parameters.size:
        # The differences of ln Z follow from the two values on the same points.
        pair = replace(best, log_z=0.0), replace(last, log_z=0.0)
        rough, error = paired_gain(loop.layout, *pair, points, weights)
        return error if math.isfinite(rough) else math.inf
    spread = 0.0
    if sample:
        energies = free_energies(loop.layout.view(last.parameters), np.asarray(points, dtype=np.float64))
        spread = math.sqrt(2.0) * error_of_mean(energies, average(energies, weights), weights)
    return math.hypot(spread, best.error, last.error)
