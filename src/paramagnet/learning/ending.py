"""What is said at the end of a run: failures on the way, a result that is worse than it could be, and what a
quick diagnosis of machine and chains finds."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from paramagnet.learning.early_stopping import paired_gain
from paramagnet.learning.guard import FEWEST_UPDATES, LEAST_LOSS, MOST_POINTS, describe_failure
from paramagnet.learning.independent import level_of
from paramagnet.learning.watch import Kept, TrainingWarning
from paramagnet.sampling.chains import Chains
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop
    from paramagnet.learning.state import TrainState

ERRORS = 3.0  # beyond which a difference is worth a word
FITTED = 0.5  # nats per column of the data that independent units gain on all points by being fitted to them
SHARE = 0.05  # of the gain over independent units, below which a loss is not

logger = logging.getLogger("paramagnet.learning.training")


def best_of(state: TrainState) -> Kept | None:
    """The best machine of a run: by its measurements, else by the checks of its guard."""
    watch = state.watch
    if watch is None:
        return None
    return watch.best or watch.sound


def closing_notes(loop: Loop, state: TrainState) -> tuple[str, ...]:
    """What the user should know about the result.

    It is logged. What failed is a warning, too, where there is a guard, unless the run was shorter than the
    time from one check to the next: so few updates are a trial. Symptoms of a machine that learned less than
    it could, such as idle units, are notes alone.
    """
    guard = loop.guard
    loud = guard is not None and state.update >= guard.every
    notes = []
    for index, check in enumerate(state.checks):
        if check.failed:
            sound = max(
                (one for one in state.checks[:index] if not one.failed), key=lambda one: one.log_likelihood
            )
            notes.append(describe_failure(check, sound.log_likelihood, sound.update))
    told = len(notes)
    kept = best_of(state) if loop.stopping is not None else None
    epoch = state.epoch if kept is None else kept.epoch  # of the machine that is returned
    records = [record for record in state.records if record.epoch == epoch]
    measured = bool(records) and (kept is not None or state.batch == 0)
    if state.update == 0:
        return tuple(notes)
    level = math.nan
    if measured:
        value, error = records[-1].log_likelihood, records[-1].error
        level = level_of(loop.layout.visible, loop.points, loop.points, loop.all_weights, loop.all_weights)
    if guard is not None and kept is None:
        # A measurement may start from the data, and then it does not see what a failed machine prefers.
        now = guard.look(state, state.parameters, 1)
        if not measured or not now.value + ERRORS * now.error + LEAST_LOSS >= value:
            value, error, level, measured = now.value, now.error, guard.level, False
    allowed = FITTED * loop.layout.n_rows / len(loop.points)
    if math.isfinite(level) and not value + ERRORS * error + allowed >= level:
        notes.append(
            f"The machine has a log-likelihood of {value:.2f} nats per training point, and independent units "
            f"with the means of the data have {level:.2f}: it has learned less than the means. Train longer, "
            "start with `visible_bias='data'`, or use a smaller learning rate or more sweeps per update."
        )
    if guard is not None and loop.stopping is None:
        text = _fallen(loop, state, measured, level)
        notes += [text] if text else []
    failures = len(notes)
    notes += _symptoms(loop, state, kept)
    for index, text in enumerate(notes[told:], start=told):
        logger.warning(text)
        if loud and index < failures:
            warnings.warn(text, TrainingWarning, stacklevel=3)
    return tuple(notes)


def _symptoms(loop: Loop, state: TrainState, kept: Kept | None) -> list[str]:
    """What `quick_diagnosis` finds about the machine that is returned, and about the chains of the run."""
    from paramagnet.learning.diagnosing import FEWEST_CHAINS, quick_diagnosis

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
    return [f"{finding}." for finding in quick_diagnosis(rbm, points, states)]


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


def _fallen(loop: Loop, state: TrainState, measured: bool, level: float) -> str:
    """Words where the run had a better machine before; else an empty text."""
    watch, guard = state.watch, loop.guard
    assert guard is not None
    if watch is None:
        return ""
    held_out = loop.held_out is not None and measured and math.isfinite(state.records[-1].validation)
    best = watch.best if measured else watch.sound
    if best is None or best.update == state.update or not math.isfinite(best.value):
        return ""
    if measured:
        record = state.records[-1]
        value = record.validation if held_out else record.log_likelihood
        now = Kept(state.parameters, state.update, state.epoch, value, math.nan, record.error)
        points, weights = guard.measured, guard.measured_weights
        if held_out:
            assert loop.held_out is not None
            points, weights = loop.held_out, loop.held_out_weights
        # The differences of ln Z follow from the two values on the same points.
        rough, error = paired_gain(
            loop.layout, replace(best, log_z=0.0), replace(now, log_z=0.0), points, weights
        )
        loss = best.value - value
        error = error if math.isfinite(rough) else math.inf
    else:
        now = guard.look(state, state.parameters, 1)
        value, loss, error = now.value, best.value - now.value, math.hypot(best.error, now.error)
    if loss <= ERRORS * error or loss <= SHARE * max(0.0, best.value - level):
        return ""
    kind = "held-out point" if held_out else "training point"
    return (
        f"The machine has a log-likelihood of {value:.2f} nats per {kind}, but had {best.value:.2f} at "
        f"update {best.update}; `TrainResult.best` is that one. A falling learning rate (`Adam('linear')`), "
        "more sweeps per update"
        + (", or `early_stopping=EarlyStopping()`" if held_out else "")
        + " avoid this."
    )
