"""Training: a generator of states, and the function that runs it.

`training_steps` yields a state after every update; `train` runs it to its end, keeps a checkpoint and calls
back. The library never prints; what it decides it says through ``logging``.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_count, as_generator, as_positive, as_real, as_states
from paramagnet.learning.checkpoint import Checkpoint, History, Record, TrainState
from paramagnet.learning.exact import check_cost, estimate_seconds
from paramagnet.learning.gradient import Exact, Layout, append_ones, data_moments, model_moments
from paramagnet.learning.likelihood import mean_free_energy
from paramagnet.learning.optimizer import SGD, Adam, Optimizer, OptimizerState, rate_at
from paramagnet.rbm import RBM, Rng
from paramagnet.units import FloatArray

SECONDS_CHEAP = 1.0  # an exact gradient that takes no longer is the default
LARGEST = 1e100  # norm beyond which the parameters have diverged; their sums are finite still

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())

Model = tuple[float, FloatArray]  # ln Z and the averages under the model, as one vector


class DivergenceError(ArithmeticError):
    """Training left the finite numbers; ``state`` is the last one that was finite."""

    def __init__(self, message: str, state: TrainState) -> None:
        super().__init__(message)
        self.state = state


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
    gradient: Exact | None = None,
    optimizer: Optimizer = Adam(1e-3),  # noqa: B008
    batch_size: int | None = None,
    weight_decay: float = 0.0,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    device: str = "cpu",
    rng: Rng = None,
    callback: Callable[[TrainState], None] | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> TrainResult:
    """Maximize the log-likelihood of ``data``.

    Parameters
    ----------
    rbm : the machine to start from; or a state of an earlier run, to go on with it: the result then equals
        that of a run that was not interrupted, bit for bit
    data : array ``(n_points, n_visible)`` in the values of the visible units
    epochs : how many times to go through the data, those of an earlier run included
    gradient : `Exact`, or None: exact where a gradient takes no more than about a second
    optimizer : `Adam` or `SGD`
    batch_size : points per update; None takes all. Batches are shuffled anew in every epoch, the last one may
        be smaller.
    weight_decay : ``rate * weight_decay * w`` is taken off the weights at every update (not off the biases)
    evaluate : after which epochs to measure: every so many and the last, or a sequence of epochs; epoch 0 is
        the start. None takes about fifty.
    validation : data whose log-likelihood is measured beside that of ``data``
    device : "cpu"
    rng : seed or generator for the order of the points
    callback : called with the state after every update; it may raise StopIteration to end the run
    checkpoint : file to keep the state in, or a `Checkpoint`
    """
    keep = _as_checkpoint(checkpoint)
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
    gradient: Exact | None = None,
    optimizer: Optimizer = Adam(1e-3),  # noqa: B008
    batch_size: int | None = None,
    weight_decay: float = 0.0,
    evaluate: int | Sequence[int] | None = None,
    validation: Any = None,
    device: str = "cpu",
    rng: Rng = None,
) -> Iterator[TrainState]:
    """The states of a run: the start (unless ``rbm`` is a state already), then one after every update.

    The options are those of `train`. They are checked at once, before the first state is asked for.
    """
    layout = rbm.layout if isinstance(rbm, TrainState) else Layout.of(rbm)
    epochs = as_count(epochs, "epochs", minimum=0)
    if device != "cpu":
        raise ValueError(f"`device` must be 'cpu' in this release, got {device!r}.")
    if not isinstance(optimizer, (Adam, SGD)):
        raise ValueError(f"`optimizer` must be an `Adam` or an `SGD`, got {optimizer!r}.")
    points = _as_points(data, "data", layout)
    n_batch = len(points) if batch_size is None else min(as_count(batch_size, "batch_size"), len(points))
    run = _Run(
        layout=layout,
        points=points,
        points_and_ones=append_ones(points),
        held_out=None if validation is None else _as_points(validation, "validation", layout),
        gradient=_as_gradient(gradient, layout),
        optimizer=optimizer,
        batch_size=n_batch,
        weight_decay=float(as_positive(as_real(weight_decay, "weight_decay"), "weight_decay", zero=True)),
        evaluated=_evaluated_epochs(evaluate, epochs),
    )
    if isinstance(rbm, TrainState):
        _check_same_run(rbm.settings, run.settings)
        return run.steps(rbm, epochs, None)
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
    return run.from_start(start, epochs)


@dataclass(frozen=True, eq=False)
class _Run:
    """What stays the same during a run, and how a state follows from the one before."""

    layout: Layout
    points: FloatArray
    points_and_ones: FloatArray
    held_out: FloatArray | None
    gradient: Exact
    optimizer: Optimizer
    batch_size: int
    weight_decay: float
    evaluated: frozenset[int]

    @property
    def settings(self) -> dict[str, str]:
        """What another run must share to go on with a state of this one."""
        bits = np.packbits(self.points == self.layout.visible.high)
        return {
            "data": f"{self.points.shape} {hashlib.sha256(bits.tobytes()).hexdigest()}",
            "gradient": type(self.gradient).__name__,
            "optimizer": _describe(self.optimizer),
            "batch_size": str(self.batch_size),
            "weight_decay": repr(self.weight_decay),
        }

    def from_start(self, state: TrainState, epochs: int) -> Iterator[TrainState]:
        """The start itself, measured if wanted, then the steps from it."""
        model = None
        if 0 in self.evaluated:
            began = time.perf_counter()
            model = self.average_model(state.parameters)
            record = self.measure(0, state.parameters, model[0], math.nan, 0.0)
            state = replace(state, records=(record,), seconds=time.perf_counter() - began)
        yield state
        yield from self.steps(state, epochs, model)

    def steps(self, state: TrainState, epochs: int, model: Model | None) -> Iterator[TrainState]:
        """The states after ``state``, one per update; ``model`` is the `average_model` of it, if known.

        An epoch that is measured needs the model's averages at its end. The next update uses them again.
        """
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = state.rng_state
        n_batches = -(-len(self.points) // self.batch_size)
        for epoch in range(state.epoch, epochs):
            order = state.order
            if n_batches > 1 and order is None:
                order = rng.permutation(len(self.points))
            rng_state = dict(rng.bit_generator.state)
            for batch in range(state.batch, n_batches):
                began = time.perf_counter()
                model = self.average_model(state.parameters) if model is None else model
                parameters, optimizer_state, slope = self.update(state, self.batch(order, batch), model[1])
                model = None
                records, ended = state.records, batch + 1 == n_batches
                if ended and epoch + 1 in self.evaluated:
                    model = self.average_model(parameters)
                    spent = state.seconds + time.perf_counter() - began
                    norm = float(np.linalg.norm(slope))
                    records = (*records, self.measure(epoch + 1, parameters, model[0], norm, spent))
                state = TrainState(
                    layout=self.layout,
                    parameters=parameters,
                    optimizer_state=optimizer_state,
                    epoch=epoch + 1 if ended else epoch,
                    batch=0 if ended else batch + 1,
                    order=None if ended else order,
                    rng_state=rng_state,
                    records=records,
                    seconds=state.seconds + time.perf_counter() - began,
                    settings=state.settings,
                )
                yield state

    def average_model(self, parameters: FloatArray) -> Model:
        """``ln Z`` and the averages under the model."""
        return model_moments(self.layout, parameters, self.gradient.n_threads)

    def batch(self, order: npt.NDArray[np.int64] | None, batch: int) -> FloatArray:
        """The points of one batch, with their column of ones."""
        if order is None:
            return self.points_and_ones
        chosen = order[batch * self.batch_size : (batch + 1) * self.batch_size]
        return self.points_and_ones.take(chosen, axis=0)

    def update(
        self, state: TrainState, points: FloatArray, model_average: FloatArray
    ) -> tuple[FloatArray, OptimizerState, FloatArray]:
        """The next parameters and optimizer state, and the gradient that led there."""
        rate = rate_at(self.optimizer.learning_rate, state.update)
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is reported below, in words
            slope = data_moments(self.layout, state.parameters, points) - model_average
            direction, optimizer_state = self.optimizer.step(state.optimizer_state, slope)
            parameters = state.parameters + rate * direction
            if self.weight_decay:
                n_weights = self.layout.n_weights
                parameters[:n_weights] -= rate * self.weight_decay * state.parameters[:n_weights]
            diverged = not parameters @ parameters < LARGEST**2  # NaN is not smaller either
        if diverged:
            raise DivergenceError(
                f"Training diverged: parameters are not finite, or beyond {LARGEST:g}, after update "
                f"{state.update + 1} (epoch {state.epoch + 1}). Try a smaller learning rate than {rate:g}, "
                "or smaller initial weights.",
                state,
            )
        parameters.setflags(write=False)
        return parameters, optimizer_state, slope

    def measure(
        self, epoch: int, parameters: FloatArray, log_z: float, gradient_norm: float, seconds: float
    ) -> Record:
        """The record of an epoch."""
        rbm = self.layout.machine(parameters)
        held_out = math.nan if self.held_out is None else -mean_free_energy(rbm, self.held_out) - log_z
        return Record(
            epoch=epoch,
            log_likelihood=-mean_free_energy(rbm, self.points) - log_z,
            validation=held_out,
            gradient_norm=gradient_norm,
            weight_norm=float(np.linalg.norm(rbm.weights)),
            seconds=seconds,
        )


def _as_points(data: Any, argument: str, layout: Layout) -> FloatArray:
    return as_states(data, argument, str(layout.visible), layout.visible.levels, layout.n_visible)


def _as_gradient(gradient: Exact | None, layout: Layout) -> Exact:
    n_visible, n_hidden = layout.n_visible, layout.n_hidden
    if gradient is None:
        seconds = estimate_seconds(n_visible, n_hidden)
        if seconds > SECONDS_CHEAP:
            raise ValueError(
                f"`gradient` must be given for a machine of {n_visible} x {n_hidden} units: an exact one "
                f"takes about {seconds:.3g} seconds, and this release has no sampled ones. "
                "Pass `gradient=Exact()` to wait for it, or make the smaller layer smaller."
            )
        gradient = Exact()
        logger.info("Gradients are exact: about %.3g s each for %d x %d units.", seconds, n_visible, n_hidden)
    if not isinstance(gradient, Exact):
        raise ValueError(f"`gradient` must be None or `Exact()`, got {gradient!r}.")
    check_cost(n_visible, n_hidden, n_threads=gradient.n_threads, gradient=True, force=gradient.force)
    return gradient


def _as_checkpoint(checkpoint: str | os.PathLike[str] | Checkpoint | None) -> Checkpoint | None:
    if checkpoint is None:
        return None
    keep = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    keep.check()
    return keep


def _evaluated_epochs(evaluate: int | Sequence[int] | None, epochs: int) -> frozenset[int]:
    if evaluate is None:
        evaluate = max(1, epochs // 50)
    if np.ndim(evaluate) == 0:
        every = as_count(evaluate, "evaluate")
        return frozenset((*range(0, epochs + 1, every), epochs))
    chosen = [as_count(epoch, "evaluate", minimum=0) for epoch in np.asarray(evaluate).tolist()]
    if chosen and max(chosen) > epochs:
        raise ValueError(f"`evaluate` must not go beyond `epochs` = {epochs}, got {max(chosen)}.")
    return frozenset(chosen)


def _describe(optimizer: Optimizer) -> str:
    values = {field.name: getattr(optimizer, field.name) for field in fields(optimizer)}
    shown = {k: getattr(v, "__qualname__", "schedule") if callable(v) else repr(v) for k, v in values.items()}
    return f"{type(optimizer).__name__}({', '.join(f'{k}={v}' for k, v in shown.items())})"


def _check_same_run(earlier: dict[str, str], now: dict[str, str]) -> None:
    for name in now:
        if earlier.get(name) != now[name]:
            raise ValueError(
                f"`{name}` must be that of the run to go on with, {earlier.get(name)}, got {now[name]}. "
                "To change it, start a new run from the machine `state.rbm`."
            )
