"""Training: a generator of states, and the function that runs it.

`training_steps` yields a state after every update; `train` runs it to its end, keeps a checkpoint and calls
``callback``. The library never prints; it reports its choices through ``logging``.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import (
    as_callable,
    as_count,
    as_flag,
    as_generator,
)
from paramagnet.layout import Layout
from paramagnet.learning.budget import as_length, plan, settle_optimizer, with_length
from paramagnet.learning.centring import Centring, as_centring
from paramagnet.learning.early_stopping import EarlyStopping, as_early_stopping
from paramagnet.learning.ending import best_of, closing_notes
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch, as_log_z
from paramagnet.learning.gradients.base import ArrayState, Gradient
from paramagnet.learning.gradients.default import default_gradient
from paramagnet.learning.guard import Guard, GuardedRun, as_guard
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
from paramagnet.learning.result import TrainResult
from paramagnet.learning.resuming import check_same_run
from paramagnet.learning.sampled_setup import compact_points, is_compiled
from paramagnet.learning.state import Checkpoint, TrainState, as_checkpoint, evaluated_epochs
from paramagnet.learning.weighting import PointWeights, as_point_weights
from paramagnet.rbm import RBM, Rng
from paramagnet.sampling.devices import KERNELS, as_engine
from paramagnet.units import FloatArray

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())


def train(
    rbm: RBM | TrainState,
    data: Any,
    *,
    epochs: int | None = None,
    seconds: float | None = None,
    gradient: Gradient | None = None,
    optimizer: Optimizer | None = None,
    batch_size: int | None = None,
    sample_weight: Any = None,
    weight_decay: float = 0.0,
    l1: float = 0.0,
    l1_group: float = 0.0,
    clip: float | None = None,
    centred: bool | Centring = False,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    validation_weight: Any = None,
    log_z: LogZ | LogZOfEpoch = LogZ(),  # noqa: B008
    device: str = "cpu",
    rng: Rng = None,
    callback: Callable[[TrainState], None] | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    same_schedule: bool = False,
    guard: bool | Guard | None = None,
    early_stopping: EarlyStopping | None = None,
) -> TrainResult:
    """Maximize the log-likelihood of ``data``.

    Parameters
    ----------
    rbm : RBM or TrainState
        The machine to start from; or a state of an earlier run, to go on with it: the result then equals that
        of a run that was not interrupted, bit for bit.
    data : array_like
        Array ``(n_points, n_visible)`` in the values of the visible units.
    epochs : int, optional
        How many times to go through the data, those of an earlier run included.
    seconds : float, optional
        A budget of time in place of ``epochs``, or beside it (the shorter one counts). It is turned into a
        number of epochs, at least one, after a short timing; the state keeps that number, so that a run that
        goes on needs no further timing.
    gradient : Gradient, optional
        `Exact`, `PCD`, `CD`, or a `Gradient` of your own; None is exact where a gradient takes no more than
        about a second, else `PCD`.
    optimizer : Optimizer, optional
        `Adam` or `SGD`, with a number, a `Schedule` or its name as learning rate, or with a function; or an
        object of your own with ``learning_rate``, ``start`` and ``step``. None is ``Adam(0.001)`` with exact
        gradients, and ``Adam("linear")`` with sampled ones: its rate falls from 0.001 to 0.02 of that over
        the updates of the run.
    batch_size : int, optional
        Points per update; None takes all. Batches are shuffled anew in every epoch, the last one may be
        smaller.
    sample_weight : array_like, optional
        Weights of the points, zero or positive; only their ratios count. All averages over data are
        ``sum_i w_i x_i / sum_i w_i``, over the points of a batch in updates: with all points in one batch a
        run equals one on points that are repeated so many times. None counts all points alike. Points of
        weight zero are left out.
    weight_decay : float, default 0.0
        ``rate * weight_decay * w`` is taken off the weights at every update (not off the biases).
    l1 : float, default 0.0
        ``rate * l1`` is taken off the size of every weight after the optimizer's step, and weights end at
        zero (soft threshold).
    l1_group : float, default 0.0
        The same with ``rate * l1_group * mean_i |w_ij|``, the mean over the weights of a hidden unit before
        the update: units with large weights lose more.
    clip : float, optional
        Largest norm of the gradient, all parameters together, in centred coordinates where learning is
        centred; one beyond is scaled to it. None leaves gradients as they are.
    centred : bool or Centring, default False
        Whether to learn in coordinates around the means of the units, which keeps weights and hidden units
        from being spent on the mean of the data. The machine itself is the plain one. A `Centring` sets the
        details. The start is taken as it is; ``initialize(..., scheme="centred")`` makes one that fits.
    evaluate : int or sequence of int, optional
        After which epochs to measure: every so many and the last, or a sequence of epochs; epoch 0 is the
        start. None takes about fifty.
    validation : array_like, optional
        Data whose log-likelihood is measured beside that of ``data``.
    validation_weight : array_like, optional
        Weights of the points of ``validation``; None counts all alike.
    log_z : LogZ or callable, optional
        How ``ln Z`` is found for measurements: a `LogZ`, or a function of machine and epoch that returns an
        `Estimate`. By default it comes with exact gradients; with others it is exact where that takes no more
        than about a second, else an estimate by mAIS, with its error. Measuring never changes a run, so a
        resumed one may have another.
    device : str, default "cpu"
        "cpu"; or a device of PyTorch's for sampled gradients and for estimates of ``ln Z``: "cuda", "mps", or
        "torch:cpu". Exact sums are always made on the processor.
    rng : int or numpy.random.Generator, optional
        Seed or generator for the order of the points, and for chains.
    callback : callable, optional
        Called with the state after every update; it may raise StopIteration to end the run.
    checkpoint : str, os.PathLike or Checkpoint, optional
        File to keep the state in, or a `Checkpoint`.
    same_schedule : bool, default False
        Set this when you go on with a state and the learning rate is a function, to confirm that it returns
        the same rates as in the earlier run: a checkpoint holds only the name of a function. Numbers and
        `Schedule` are compared, and need no confirmation.
    guard : bool or Guard, optional
        Whether to check every few hundred updates that the likelihood has not fallen, and to go back and to
        lower the learning rate where it has (`Guard`). None does so where gradients come from chains that
        persist, and as before where a run goes on; False never.
    early_stopping : EarlyStopping, optional
        Ends the run when the log-likelihood of ``validation`` no longer improves; the machine of the result
        is then the best one.

    Returns
    -------
    TrainResult
        The trained machine, the learning curve and the last state.
    """
    keep = as_checkpoint(checkpoint)
    as_callable(callback, "callback", "the state after every update")
    loop, steps, planned = _prepare(
        rbm,
        data,
        epochs=epochs,
        gradient=gradient,
        optimizer=optimizer,
        batch_size=batch_size,
        sample_weight=sample_weight,
        weight_decay=weight_decay,
        l1=l1,
        l1_group=l1_group,
        clip=clip,
        centred=centred,
        evaluate=evaluate,
        validation=validation,
        validation_weight=validation_weight,
        log_z=log_z,
        device=device,
        rng=rng,
        same_schedule=same_schedule,
        seconds=seconds,
        guard=guard,
        early_stopping=early_stopping,
        overwrite=True,
    )
    if isinstance(rbm, TrainState):
        loop.latest[:] = [rbm]
    written = -math.inf  # the first state at once: a file that cannot be written is better known early
    finished = True
    try:
        for state in steps:
            if keep and time.monotonic() - written >= keep.seconds:
                state.save(keep.path)
                written = time.monotonic()
            if callback is not None:
                callback(state)
            del state  # the next update may overwrite it, unless ``callback`` has kept it
    except StopIteration:
        finished = False
    finally:
        if keep and loop.latest:
            loop.latest[0].save(keep.path)
    last = loop.latest[0]  # the generator yields at least the start
    stopped = loop.stopping is not None and last.watch is not None and last.watch.stopped
    kept = best_of(last) if loop.stopping is not None else None
    notes = closing_notes(loop, last)  # before the machine, a copy of the parameters
    return TrainResult(
        last.rbm if kept is None else last.layout.machine(kept.parameters),
        last.history,
        last,
        finished and (stopped or last.epoch >= planned),
        notes,
    )


def training_steps(
    rbm: RBM | TrainState,
    data: Any,
    *,
    epochs: int | None = None,
    seconds: float | None = None,
    gradient: Gradient | None = None,
    optimizer: Optimizer | None = None,
    batch_size: int | None = None,
    sample_weight: Any = None,
    weight_decay: float = 0.0,
    l1: float = 0.0,
    l1_group: float = 0.0,
    clip: float | None = None,
    centred: bool | Centring = False,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    validation_weight: Any = None,
    log_z: LogZ | LogZOfEpoch = LogZ(),  # noqa: B008
    device: str = "cpu",
    rng: Rng = None,
    same_schedule: bool = False,
    guard: bool | Guard = False,
    early_stopping: EarlyStopping | None = None,
    before_measuring: Callable[[TrainState], None] | None = None,
) -> Iterator[TrainState]:
    """The states of a run: the start (unless ``rbm`` is a state already), then one after every update.

    The options are those of `train`. They are checked at once, before the first state is asked for.
    ``before_measuring`` is called with the state before every measurement, so that it can be kept before a
    long one; a run that goes on with such a state measures it first, and yields it.

    Parameters
    ----------
    rbm : RBM or TrainState
        As in `train`.
    data : array_like
        As in `train`.
    epochs : int, optional
        As in `train`.
    seconds : float, optional
        As in `train`.
    gradient : Gradient, optional
        As in `train`.
    optimizer : Optimizer, optional
        As in `train`.
    batch_size : int, optional
        As in `train`.
    sample_weight : array_like, optional
        As in `train`.
    weight_decay : float, default 0.0
        As in `train`.
    l1 : float, default 0.0
        As in `train`.
    l1_group : float, default 0.0
        As in `train`.
    clip : float, optional
        As in `train`.
    centred : bool or Centring, default False
        As in `train`.
    evaluate : int or sequence of int, optional
        As in `train`.
    validation : array_like, optional
        As in `train`.
    validation_weight : array_like, optional
        As in `train`.
    log_z : LogZ or callable, optional
        As in `train`.
    device : str, default "cpu"
        As in `train`.
    rng : int or numpy.random.Generator, optional
        As in `train`.
    same_schedule : bool, default False
        As in `train`.
    guard : bool or Guard, default False
        As in `train`; False is the default here.
    early_stopping : EarlyStopping, optional
        As in `train`; the last state is then not the best one, which is ``state.watch.best``.
    before_measuring : callable, optional
        Called with the state before every measurement.

    Yields
    ------
    TrainState
        The states, each when it is reached.
    """
    return _prepare(
        rbm,
        data,
        epochs=epochs,
        gradient=gradient,
        optimizer=optimizer,
        batch_size=batch_size,
        sample_weight=sample_weight,
        weight_decay=weight_decay,
        l1=l1,
        l1_group=l1_group,
        clip=clip,
        centred=centred,
        evaluate=evaluate,
        validation=validation,
        validation_weight=validation_weight,
        log_z=log_z,
        device=device,
        rng=rng,
        same_schedule=same_schedule,
        seconds=seconds,
        guard=guard,
        early_stopping=early_stopping,
        before_measuring=before_measuring,
    )[1]


def _prepare(
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
            lambda n_epochs: _prepare(rbm, data, epochs=n_epochs, **unmeasured)[:2],
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
    centre = None
    if centring is not None:
        of_points = None if weights is None else weights.values
        centre = centring.at(layout, points, optimizer, of_points)
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
        guard=None if watchful is None else GuardedRun(watchful, layout, points, gradient, n_batch, engine),
        stopping=as_early_stopping(early_stopping, validation, evaluated),
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
