"""What is said at the end of a run: failures on the way, and a result that is worse than it could be."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from paramagnet.learning.early_stopping import paired_gain
from paramagnet.learning.guard import describe_failure
from paramagnet.learning.independent import level_of
from paramagnet.learning.watch import Kept, TrainingWarning

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop
    from paramagnet.learning.state import TrainState

ERRORS = 3.0  # beyond which a difference is worth a word
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

    It is logged, and where there is a guard it is a warning, too, unless the run was shorter than the time
    from one check to the next: so few updates are a trial.
    """
    watch, guard = state.watch, loop.guard
    loud = guard is not None and state.update >= guard.every
    notes = []
    if watch is not None and watch.sound is not None:
        notes += [describe_failure(check, watch.sound) for check in watch.checks if check.failed]
    told = len(notes)
    measured = bool(state.records) and state.records[-1].epoch == state.epoch and state.batch == 0
    if state.update == 0 or not (measured or guard is not None):
        return tuple(notes)
    if measured:
        value, error = state.records[-1].log_likelihood, state.records[-1].error
        level = level_of(loop.layout.visible, loop.points, loop.points, loop.all_weights, loop.all_weights)
    else:
        assert guard is not None
        now = guard.look(state, state.parameters, 1)
        value, error, level = now.value, now.error, guard.level
    if value + ERRORS * error < level:
        notes.append(
            f"The machine has a log-likelihood of {value:.2f} nats per training point, and independent units "
            f"with the means of the data have {level:.2f}: it has learned less than the means. Train longer, "
            "start with `visible_bias='data'`, or use a smaller learning rate or more sweeps per update."
        )
    stopping = watch is not None and watch.reference is not None
    if guard is not None and not stopping:
        text = _fallen(loop, state, measured, level)
        notes += [text] if text else []
    for text in notes[told:]:
        logger.warning(text)
        if loud:
            warnings.warn(text, TrainingWarning, stacklevel=3)
    return tuple(notes)


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
