"""The length of a run: planned once, in epochs or in seconds, and kept in the state.

A budget in seconds becomes a number of epochs before the first update: some updates are made and timed on the
side, and thrown away. From then on nothing depends on a clock, so the run can be resumed bit for bit, and
learning-rate schedules count updates as ever.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from paramagnet._checks import MOST_SWEEPS, as_count, as_positive, as_real
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.measuring import measured
from paramagnet.learning.optimizers import Adam, Optimizer, as_optimizer, close_schedule
from paramagnet.learning.resuming import describe
from paramagnet.learning.watch import Watch

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop
    from paramagnet.learning.state import TrainState

MOST_SECONDS = 1e9
SHARE_TIMED = 0.03  # of the seconds, for timing
LONGEST_TIMED = 5.0  # seconds
FEWEST_TIMED = 5  # updates that are timed, and as many before them that are not
SHARE_UNTIMED = 0.1  # of the seconds, for what is not timed: the checks of the guard, and the end of the run
SHARE_MEASURED = 0.2  # of the seconds, for measurements, where their number is left open
MOST_MEASURED = 50

logger = logging.getLogger("paramagnet.learning.training")

Trial = Callable[
    [int], tuple["Loop", Iterator["TrainState"]]
]  # a run of so many epochs, without measurements


def as_length(
    epochs: int | None, seconds: float | None, earlier: TrainState | None
) -> tuple[int | None, float | None]:
    """Epochs and seconds, checked. A run that goes on with a budget in seconds has its epochs already."""
    if seconds is not None:
        seconds = float(as_positive(as_real(seconds, "seconds"), "seconds"))
        if seconds > MOST_SECONDS:
            raise ValueError(f"`seconds` must be at most {MOST_SECONDS:g}, got {seconds:g}.")
    if epochs is not None:
        epochs = as_count(epochs, "epochs", minimum=0, maximum=MOST_SWEEPS)
    elif seconds is None:
        raise ValueError("`epochs` must be given, or `seconds`, got neither.")
    if earlier is None or seconds is None:
        return epochs, seconds
    planned = None if earlier.watch is None else earlier.watch.epochs
    if planned is None:
        raise ValueError(
            "`seconds` must be left out when a run goes on that had no such budget, got "
            f"{seconds:g}. Say `epochs`, those of the earlier run included."
        )
    return planned, None


def plan(
    trial: Trial, epochs: int | None, seconds: float, evaluate: int | Sequence[int] | None
) -> tuple[int, int | Sequence[int] | None]:
    """The number of epochs that fit into ``seconds``, at least one, and when to measure."""
    began = time.perf_counter()
    loop, steps = trial(MOST_SWEEPS)
    next(steps)
    start = time.perf_counter() - began
    for _ in range(FEWEST_TIMED):
        next(steps)
    timed, n_timed = time.perf_counter(), 0
    while n_timed < FEWEST_TIMED or time.perf_counter() - timed < min(SHARE_TIMED * seconds, LONGEST_TIMED):
        next(steps)  # nobody holds the states, as in a run
        n_timed += 1
    update = (time.perf_counter() - timed) / n_timed
    n_batches = loop.n_batches
    measure, n_measured = 0.0, 0
    if evaluate is None or isinstance(evaluate, (int, np.integer)) or len(evaluate):
        for _ in range(2):  # the first one may compile
            timed = time.perf_counter()
            measured(loop, loop.latest[0], 0.0)
            measure = time.perf_counter() - timed
        n_measured = int(min(MOST_MEASURED, max(1.0, SHARE_MEASURED * seconds / measure)))
    left = (1.0 - SHARE_UNTIMED) * seconds - (time.perf_counter() - began) - start
    most = MOST_SWEEPS if epochs is None else epochs
    if isinstance(evaluate, (int, np.integer)):
        found = int(left / (update * n_batches + measure / as_count(evaluate, "evaluate")))
    else:
        n_measured = n_measured if evaluate is None else len(evaluate)
        found = int((left - n_measured * measure) / (update * n_batches))
    found = min(most, max(1, found))
    logger.info("%d epochs of %d updates are planned for %.3g s.", found, n_batches, seconds)
    if evaluate is None:
        evaluate = max(1, -(-found // n_measured))
    elif not isinstance(evaluate, (int, np.integer)):
        evaluate = [epoch for epoch in evaluate if epoch <= found]
    return found, evaluate


def settle_optimizer(
    optimizer: Optimizer | None, gradient: Gradient, earlier: TrainState | None, n_updates: int | None
) -> Optimizer:
    """The optimizer of a run, with the planned updates in its schedule.

    None is Adam at 0.001, with a rate that falls linearly over the run where gradients are sampled; a run
    that goes on keeps what it had.
    """
    planned = None if earlier is None or earlier.watch is None else earlier.watch.n_updates
    n_updates = n_updates if planned is None else planned
    if optimizer is not None:
        return close_schedule(as_optimizer(optimizer), n_updates)
    falling = close_schedule(Adam("linear"), max(1, n_updates or 1))
    if earlier is None:
        return Adam() if gradient.exact else falling
    return falling if earlier.settings.get("optimizer") == describe(falling) else Adam()


def with_length(
    state: TrainState, optimizer: Optimizer | None, n_updates: int, epochs: int | None
) -> TrainState:
    """The first state of a run, with its planned length where a schedule or a budget depends on it.

    ``optimizer`` is the one that was asked for, before `settle_optimizer`; ``epochs`` those of a budget.
    """
    if epochs is None and not _depends(optimizer, state):
        return state
    return replace(state, watch=Watch(n_updates=max(1, n_updates), epochs=epochs))


def _depends(optimizer: Any, state: TrainState) -> bool:
    """Whether the learning rate was left to the length of the run."""
    if optimizer is None:
        return "Schedule(" in state.settings["optimizer"]
    rate = optimizer.learning_rate
    return bool(getattr(rate, "open", False)) or isinstance(rate, str)
