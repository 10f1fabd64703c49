"""Training: a generator of states, and the function that runs it.

`training_steps` yields a state after every update; `train` runs it to its end, keeps a checkpoint and calls
back. The library never prints; what it decides it says through ``logging``.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from paramagnet._arrays import as_array, shown
from paramagnet._checks import (
    MOST_SWEEPS,
    as_callable,
    as_count,
    as_flag,
    as_generator,
    as_path,
    as_positive,
    as_real,
)
from paramagnet.exact.cost import check_cost, estimate_seconds
from paramagnet.exact.sums import refuse_large
from paramagnet.layout import Layout
from paramagnet.learning.gradient import CD, PCD, Exact, GradientSettings, append_ones
from paramagnet.learning.loop import SECONDS_CHEAP, Loop
from paramagnet.learning.optimizers import SGD, Adam, Optimizer
from paramagnet.learning.schedule import is_named
from paramagnet.learning.state import Checkpoint, History, TrainState
from paramagnet.rbm import RBM, Rng
from paramagnet.sampling.devices import KERNELS, as_engine
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


MOST_MEASUREMENTS = 1_000_000  # of one run

# An optimizer in the settings of a run: its learning rate is the first of its numbers.
_OPTIMIZER = re.compile(r"(\w+\(learning_rate=)(.*?)((?:, (?:beta1|momentum)=.*)?\))")
_FINGERPRINT = re.compile(r"\b[0-9a-f]{64}\b")

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, eq=False)
class TrainResult:
    """The trained machine, the learning curve, the last state, and whether all epochs were run."""

    rbm: RBM
    history: History
    state: TrainState
    finished: bool


def train(
    rbm: RBM | TrainState,
    data: Any,
    *,
    epochs: int,
    gradient: GradientSettings | None = None,
    optimizer: Optimizer = Adam(1e-3),  # noqa: B008
    batch_size: int | None = None,
    weight_decay: float = 0.0,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    device: str = "cpu",
    rng: Rng = None,
    callback: Callable[[TrainState], None] | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    same_schedule: bool = False,
) -> TrainResult:
    """Maximize the log-likelihood of ``data``.

    Parameters
    ----------
    rbm : the machine to start from; or a state of an earlier run, to go on with it: the result then equals
        that of a run that was not interrupted, bit for bit
    data : array ``(n_points, n_visible)`` in the values of the visible units
    epochs : how many times to go through the data, those of an earlier run included
    gradient : `Exact`, `PCD`, `CD`, or None: exact where a gradient takes no more than about a second, else
        `PCD`
    optimizer : `Adam` or `SGD`, with a number or a `Schedule` as learning rate, or with a function
    batch_size : points per update; None takes all. Batches are shuffled anew in every epoch, the last one may
        be smaller.
    weight_decay : ``rate * weight_decay * w`` is taken off the weights at every update (not off the biases)
    evaluate : after which epochs to measure: every so many and the last, or a sequence of epochs; epoch 0 is
        the start. None takes about fifty. With sampled gradients ``ln Z`` is exact where that takes no more
        than about a second, else an estimate by mAIS, with its error.
    validation : data whose log-likelihood is measured beside that of ``data``
    device : "cpu"; or a device of PyTorch's for sampled gradients and for estimates of ``ln Z``: "cuda",
        "mps", or "torch:cpu". Exact sums are always made on the processor.
    rng : seed or generator for the order of the points, and for chains
    callback : called with the state after every update; it may raise StopIteration to end the run
    checkpoint : file to keep the state in, or a `Checkpoint`
    same_schedule : your word, when you go on with a state, that a function given as learning rate returns the
        same rates as in the earlier run: a checkpoint holds the name of a function only. Numbers and
        `Schedule` are compared, and need no word.
    """
    keep = _as_checkpoint(checkpoint)
    as_callable(callback, "callback", "the state after every update")
    steps = training_steps(
        rbm,
        data,
        epochs=epochs,
        gradient=gradient,
        optimizer=optimizer,
        batch_size=batch_size,
        weight_decay=weight_decay,
        evaluate=evaluate,
        validation=validation,
        device=device,
        rng=rng,
        same_schedule=same_schedule,
    )
    state = rbm if isinstance(rbm, TrainState) else None
    written = -math.inf  # the first state at once: a file that cannot be written is better known early
    finished = True
    try:
        for state in steps:
            if keep and time.monotonic() - written >= keep.seconds:
                state.save(keep.path)
                written = time.monotonic()
            if callback is not None:
                callback(state)
    except StopIteration:
        finished = False
    finally:
        if keep and state is not None:
            state.save(keep.path)
    assert state is not None  # the generator yields at least the start
    return TrainResult(state.rbm, state.history, state, finished and state.epoch >= epochs)


def training_steps(
    rbm: RBM | TrainState,
    data: Any,
    *,
    epochs: int,
    gradient: GradientSettings | None = None,
    optimizer: Optimizer = Adam(1e-3),  # noqa: B008
    batch_size: int | None = None,
    weight_decay: float = 0.0,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    device: str = "cpu",
    rng: Rng = None,
    same_schedule: bool = False,
) -> Iterator[TrainState]:
    """The states of a run: the start (unless ``rbm`` is a state already), then one after every update.

    The options are those of `train`. They are checked at once, before the first state is asked for.
    """
    if not isinstance(rbm, (RBM, TrainState)):
        raise ValueError(
            f"`rbm` must be a machine, or the state of a run to go on with, got {shown(rbm)}. `initialize` "
            "makes machines, `load_checkpoint` reads states."
        )
    as_flag(same_schedule, "same_schedule")
    layout = rbm.layout if isinstance(rbm, TrainState) else Layout.of(rbm)
    epochs = as_count(epochs, "epochs", minimum=0, maximum=MOST_SWEEPS)
    engine = as_engine(device, layout.visible, layout.hidden)
    if not isinstance(optimizer, (Adam, SGD)):
        raise ValueError(f"`optimizer` must be an `Adam` or an `SGD`, got {shown(optimizer)}.")
    points = _as_points(data, "data", layout)
    n_batch = len(points) if batch_size is None else min(as_count(batch_size, "batch_size"), len(points))
    settings = _as_gradient(gradient, layout, engine)
    if isinstance(settings, Exact) and isinstance(rbm, RBM):
        refuse_large(rbm)
    run = Loop(
        layout=layout,
        points=points,
        points_and_ones=append_ones(points).astype(np.float64 if isinstance(settings, Exact) else np.float32),
        held_out=None if validation is None else _as_points(validation, "validation", layout),
        gradient=settings,
        optimizer=optimizer,
        batch_size=n_batch,
        weight_decay=float(as_positive(as_real(weight_decay, "weight_decay"), "weight_decay", zero=True)),
        evaluated=_evaluated_epochs(evaluate, epochs),
        engine=None if isinstance(settings, Exact) else engine,
    )
    if isinstance(rbm, TrainState):
        _check_same_run(rbm.settings, run.settings, same_schedule=same_schedule)
        return run.steps(replace(rbm, settings=run.settings), epochs, None)
    # A stream of its own, whatever generator was passed in: its state is a few integers.
    seeds = as_generator(rng).integers(2**63, size=4).tolist()
    start = TrainState(
        layout=layout,
        parameters=layout.flatten(rbm),
        optimizer_state=optimizer.start(layout.size),
        epoch=0,
        batch=0,
        order=None,
        rng_state=dict(np.random.PCG64(seeds).state),
        records=(),
        seconds=0.0,
        settings=run.settings,
    )
    return run.from_start(start, epochs, np.random.default_rng([*seeds, 1]))


def _as_points(data: Any, argument: str, layout: Layout) -> FloatArray:
    return layout.visible.as_states(data, argument, layout.n_visible)


def _as_gradient(
    gradient: GradientSettings | None, layout: Layout, engine: TorchEngine | None
) -> GradientSettings:
    if isinstance(gradient, Exact) and engine is not None:
        raise ValueError(
            f"`device` must be 'cpu' for exact gradients, got {engine.name!r}: they are sums made by our own "
            "kernels. Leave `device` out, or sample gradients with `PCD()`."
        )
    n_visible, n_hidden = layout.n_visible, layout.n_hidden
    sizes = (n_visible, n_hidden, layout.visible, layout.hidden)
    if gradient is None:
        seconds = estimate_seconds(*sizes)
        gradient = Exact() if seconds <= SECONDS_CHEAP else PCD()
        if isinstance(gradient, Exact):
            text = "Gradients are exact: about %.3g s each for %d x %d units."
        else:
            text = "Gradients are sampled by PCD: exact ones would take about %.3g s each for %d x %d units."
        logger.info(text, seconds, n_visible, n_hidden)
        if isinstance(gradient, Exact) and engine is not None:
            logger.info("They are computed on the processor; `device` = %r is not used.", engine.name)
    if not isinstance(gradient, (Exact, PCD, CD)):
        raise ValueError(f"`gradient` must be None, `Exact()`, `PCD()` or `CD()`, got {shown(gradient)}.")
    if isinstance(gradient, Exact):
        check_cost(*sizes, n_threads=gradient.n_threads, gradient=True, force=gradient.force)
    return gradient


def _as_checkpoint(checkpoint: str | os.PathLike[str] | Checkpoint | None) -> Checkpoint | None:
    if checkpoint is None:
        return None
    keep = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(as_path(checkpoint, "checkpoint"))
    keep.check()
    return keep


def _evaluated_epochs(evaluate: int | Sequence[int] | None, epochs: int) -> frozenset[int]:
    if evaluate is None:
        evaluate = max(1, epochs // 50)
    if isinstance(evaluate, (int, np.integer)):
        every = as_count(evaluate, "evaluate")
        if epochs // every > MOST_MEASUREMENTS:
            raise ValueError(
                f"`evaluate` must ask for at most {MOST_MEASUREMENTS} measurements, got {epochs // every}: "
                f"every {every} of {epochs} epochs. Measure at fewer of them."
            )
        return frozenset((*range(0, epochs + 1, every), epochs))
    wanted = "None, an integer or a sequence of integers"
    named = as_array(evaluate, "evaluate", wanted)
    if named.size > MOST_MEASUREMENTS or named.ndim != 1:
        raise ValueError(f"`evaluate` must be {wanted}, got {shown(evaluate)}.")
    chosen = [as_count(epoch, "evaluate", minimum=0) for epoch in named.tolist()]
    if chosen and max(chosen) > epochs:
        raise ValueError(f"`evaluate` must not go beyond `epochs` = {epochs}, got {max(chosen)}.")
    return frozenset(chosen)


def _check_same_run(earlier: dict[str, str], now: dict[str, str], *, same_schedule: bool) -> None:
    earlier = {"device": KERNELS} | earlier  # checkpoints of before there were others do not say
    before, after = (_OPTIMIZER.fullmatch(text.get("optimizer", "")) for text in (earlier, now))
    if before and after and before.group(1, 3) == after.group(1, 3):
        rates = before[2], after[2]
        functions = [rate for rate in rates if not is_named(rate)]
        if functions and not same_schedule:
            raise ValueError(
                f"`optimizer` must have the learning rate of the run to go on with, {rates[0]}, got "
                f"{rates[1]}, and a checkpoint holds no more than the name of a function such as "
                f"{functions[0]}. If the rates are the same, say so by `same_schedule=True`; a `Schedule` is "
                "compared by its numbers."
            )
        if functions:
            earlier["optimizer"] = now["optimizer"]
    for name in now:
        if earlier.get(name) != now[name]:
            raise ValueError(
                f"`{name}` must be that of the run to go on with, {_shorten(earlier.get(name))}, got "
                f"{_shorten(now[name])}. To change it, start a new run from the machine `state.rbm`."
            )


def _shorten(setting: str | None) -> str:
    """A setting as it is shown: fingerprints of data cut to eight digits."""
    return _FINGERPRINT.sub(lambda digits: digits[0][:8], str(setting))
