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
from typing import Any

from paramagnet._checks import as_callable
from paramagnet.learning.centring import Centring
from paramagnet.learning.early_stopping import EarlyStopping
from paramagnet.learning.ending import best_measured, best_of, closing_notes
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.guard import Guard
from paramagnet.learning.optimizers import Optimizer
from paramagnet.learning.preparing import prepare
from paramagnet.learning.result import TrainResult
from paramagnet.learning.state import Checkpoint, TrainState, as_checkpoint
from paramagnet.rbm import RBM, Rng

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
        persist, and as before where a run goes on; False never. Without a guard a run of 200 updates or more
        is judged once, at its end: by its measurements, or by one small estimate where the last machine was
        not measured. False leaves that out, too.
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
    loop, steps, planned = prepare(
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
    start = rbm if isinstance(rbm, RBM) else None
    notes = closing_notes(loop, last, start)  # before the machine, a copy of the parameters
    return TrainResult(
        last.rbm if kept is None else last.layout.machine(kept.parameters),
        last.history,
        last,
        finished and (stopped or last.epoch >= planned),
        notes,
        best_measured(loop, last, notes),
        loop.last_measured[0] if loop.last_measured else None,
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
    return prepare(
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
