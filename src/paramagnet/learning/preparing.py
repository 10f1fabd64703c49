"""From the options of a run to its loop and its first state: all of them are checked here, once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_callable, as_count, as_flag, as_generator
from paramagnet.layout import Layout
from paramagnet.learning.budget import as_length, plan, settle_optimizer, with_length
from paramagnet.learning.centring import Centring, as_centring
from paramagnet.learning.early_stopping import EarlyStopping, as_early_stopping
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch, as_log_z
from paramagnet.learning.gradients.base import ArrayState, Gradient
from paramagnet.learning.gradients.default import default_gradient
from paramagnet.learning.guard import Guard, GuardedRun, as_guard, is_off
from paramagnet.learning.loop import Loop
from paramagnet.learning.moments import append_ones
from paramagnet.learning.optimizers import (
    Optimizer,
    OptimizerState,
    as_optimizer,
    check_slots,
    start_optimizer,
)
from paramagnet.learning.penalties import as_penalties
from paramagnet.learning.resuming import check_same_run
from paramagnet.learning.sampled_setup import compact_points, is_compiled
from paramagnet.learning.state import TrainState, evaluated_epochs
from paramagnet.learning.weighting import PointWeights, as_point_weights
from paramagnet.rbm import RBM, Rng
from paramagnet.sampling.devices import KERNELS, as_engine
from paramagnet.units import FloatArray

logger = logging.getLogger("paramagnet.learning.training")


def prepare(
    rbm: RBM | TrainState,
    data: Any,
    *,
    epochs: int | None,
    evaluate: int | Sequence[int] | None,
    rng: Rng,
    same_schedule: bool,
    optimizer: Optimizer | None,
    seconds: float | None = None,
    guard: bool | Guard | None = False,
    early_stopping: EarlyStopping | None = None,
    before_measuring: Callable[[TrainState], None] | None = None,
    **options: Any,
) -> tuple[Loop, Iterator[TrainState], int]:
    """What stays the same in a run, its states, and its epochs; all options are checked here."""
    if not isinstance(rbm, (RBM, TrainState)):
        raise ValueError(
            f"`rbm` must be a machine, or the state of a run to go on with, got {shown(rbm)}. `initialize` "
            "makes machines, `load_checkpoint` reads states."
        )
    as_flag(same_schedule, "same_schedule")
    as_callable(before_measuring, "before_measuring", "the state before a measurement")
    earlier = rbm if isinstance(rbm, TrainState) else None
    epochs, seconds = as_length(epochs, seconds, earlier)
    if seconds is not None:
        unmeasured: dict[str, Any] = {"evaluate": (), "rng": 0, "same_schedule": same_schedule}
        unmeasured |= options | {"optimizer": optimizer}
        epochs, evaluate = plan(
            lambda n_epochs: prepare(rbm, data, epochs=n_epochs, **unmeasured)[:2],
            epochs,
            seconds,
            evaluate,
        )
    assert epochs is not None
    loop = _make_loop(
        rbm,
        data,
        optimizer=optimizer,
        epochs=epochs,
        evaluated=evaluated_epochs(evaluate, epochs),
        guard=guard,
        early_stopping=early_stopping,
        before_measuring=before_measuring,
        **options,
    )
    first = start_optimizer(loop.optimizer, loop.layout.size)
    if earlier is not None:
        check_same_run(earlier.settings, loop.settings, loop.optimizer, same_schedule=same_schedule)
        check_slots(earlier.optimizer_state, first, loop.optimizer)
        kept = earlier.gradient_state
        if isinstance(kept, ArrayState):
            kept = loop.gradient.restore(loop.layout, kept)
        going_on = replace(earlier, settings=loop.settings, gradient_state=kept)
        return loop, loop.resumed(going_on, epochs), epochs
    assert isinstance(rbm, RBM)
    state, generator = _first_state(loop, rbm, first, rng)
    n_updates = epochs * loop.n_batches
    state = with_length(state, optimizer, n_updates, None if seconds is None else epochs)
    return loop, loop.from_start(state, epochs, generator), epochs


def take_over(state: TrainState, data: Any, *, rng: Rng = None, **options: Any) -> TrainState:
    """The start of a run on other ``data`` that takes machine, optimizer and, where they fit, chains along.

    ``options`` are those of `train` that describe a run: ``gradient``, ``optimizer``, ``batch_size``,
    ``sample_weight``, ``weight_decay``, ``l1``, ``l1_group``, ``clip``, ``centred``.
    """
    loop = _make_loop(state.rbm, data, evaluated=frozenset(), **options)
    first = start_optimizer(loop.optimizer, loop.layout.size)
    start, generator = _first_state(loop, state.rbm, first, rng)
    check_slots(state.optimizer_state, first, loop.optimizer)
    kept = state.gradient_state
    if not loop.gradient.fits(kept):
        kept = loop.gradient.start(loop.layout, start.parameters, loop.points, generator, loop.engine)
    offsets = None if loop.centre is None else state.offsets
    return replace(start, optimizer_state=state.optimizer_state, gradient_state=kept, offsets=offsets)


def _make_loop(
    rbm: RBM | TrainState,
    data: Any,
    *,
    gradient: Gradient | None,
    optimizer: Optimizer | None,
    batch_size: int | None,
    weight_decay: float,
    l1: float = 0.0,
    l1_group: float = 0.0,
    clip: float | None = None,
    sample_weight: Any = None,
    centred: bool | Centring = False,
    epochs: int | None = None,
    evaluated: frozenset[int],
    validation: Any = None,
    validation_weight: Any = None,
    log_z: LogZ | LogZOfEpoch = LogZ(),  # noqa: B008
    device: str = KERNELS,
    guard: bool | Guard | None = False,
    early_stopping: EarlyStopping | None = None,
    before_measuring: Callable[[TrainState], None] | None = None,
    overwrite: bool = False,
) -> Loop:
    """What stays the same during a run, from options that are checked here."""
    layout = rbm.layout if isinstance(rbm, TrainState) else Layout.of(rbm)
    engine = as_engine(device, layout.visible, layout.hidden)
    if optimizer is not None:
        as_optimizer(optimizer)
    if gradient is None:
        gradient = default_gradient(layout.n_visible, layout.n_hidden, layout.visible, layout.hidden)
        if gradient.exact and engine is not None:
            logger.info("They are computed on the processor; `device` = %r is not used.", engine.name)
            engine = None
    if not isinstance(gradient, Gradient):
        raise ValueError(
            "`gradient` must be None, `Exact()`, `PCD()`, `CD()` or an object of a class of yours derived "
            f"from `Gradient`, got {shown(gradient)}."
        )
    centring = None if centred is False else as_centring(centred)
    compiled = is_compiled(gradient, layout, engine)
    as_points = compact_points if compiled else _as_points
    points, weights = _weigh(as_points(data, "data", layout), sample_weight, "sample_weight")
    held_out, held_out_weights = None, None
    if validation is not None:
        held_out, held_out_weights = _weigh(
            as_points(validation, "validation", layout), validation_weight, "validation_weight"
        )
    elif validation_weight is not None:
        raise ValueError(
            "`validation_weight` must be left out where `validation` is None, got "
            f"{shown(validation_weight)}. Pass the points as `validation`."
        )
    n_batch = len(points) if batch_size is None else min(as_count(batch_size, "batch_size"), len(points))
    gradient.check(rbm.rbm if isinstance(rbm, TrainState) else rbm, engine)
    earlier = rbm if isinstance(rbm, TrainState) else None
    n_updates = None if epochs is None else epochs * -(-len(points) // n_batch)
    optimizer = settle_optimizer(optimizer, gradient, earlier, n_updates)
    watchful = as_guard(guard, gradient, earlier)
    of_points = None if weights is None else weights.values
    centre = None if centring is None else centring.at(layout, points, optimizer, of_points)
    guarded = None
    if watchful is not None:
        guarded = GuardedRun(watchful, layout, points, gradient, n_batch, engine, of_points)
    return Loop(
        layout=layout,
        points=points,
        points_and_ones=None if compiled else append_ones(points).astype(gradient.dtype),
        held_out=held_out,
        gradient=gradient,
        optimizer=optimizer,
        batch_size=n_batch,
        penalties=as_penalties(weight_decay, l1, l1_group, clip),
        evaluated=evaluated,
        log_z=log_z if callable(log_z) else as_log_z(log_z),
        engine=engine,
        centre=centre,
        weights=weights,
        held_out_weights=None if held_out_weights is None else held_out_weights.values,
        before_measuring=before_measuring,
        overwrite=overwrite,
        guard=guarded,
        stopping=as_early_stopping(early_stopping, validation, evaluated),
        judged=watchful is not None or not is_off(guard, gradient, earlier),
    )


def _first_state(
    loop: Loop, rbm: RBM, first: OptimizerState, rng: Rng
) -> tuple[TrainState, np.random.Generator]:
    """The state before the first update but for that of the gradient, and the generator for the latter."""
    # A stream of its own, whatever generator was passed in: its state is a few integers.
    seeds = as_generator(rng).integers(2**63, size=4).tolist()
    state = TrainState(
        layout=loop.layout,
        parameters=loop.layout.flatten(rbm),
        optimizer_state=first,
        epoch=0,
        batch=0,
        order=None,
        rng_state=dict(np.random.PCG64(seeds).state),
        records=(),
        seconds=0.0,
        settings=loop.settings,
    )
    return state, np.random.default_rng([*seeds, 1])


def _as_points(data: Any, argument: str, layout: Layout) -> FloatArray:
    return layout.visible.as_states(data, argument, layout.n_visible)


def _weigh(
    points: npt.NDArray[Any], weights: Any, argument: str
) -> tuple[npt.NDArray[Any], PointWeights | None]:
    """The points of positive weight, and their weights; None where all are equal."""
    if weights is None:
        return points, None
    kept, found = as_point_weights(weights, argument, len(points))
    return points if kept is None else points[kept], found
