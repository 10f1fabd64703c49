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
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_count, as_generator, as_positive, as_real
from paramagnet.learning.annealing import estimate_log_partition
from paramagnet.learning.checkpoint import Checkpoint, History, Record, TrainState
from paramagnet.learning.devices import KERNELS, as_engine
from paramagnet.learning.exact import check_cost, estimate_seconds, log_partition, sizes_of
from paramagnet.learning.gibbs import LARGEST as LARGEST_SAMPLED
from paramagnet.learning.gibbs import Chains
from paramagnet.learning.gradient import (
    CD,
    PCD,
    Exact,
    GradientSettings,
    Layout,
    append_ones,
    data_moments,
    model_moments,
    sampled_moments,
    start_chains,
)
from paramagnet.learning.likelihood import Estimate, mean_free_energy
from paramagnet.learning.optimizer import SGD, Adam, Optimizer, OptimizerState, rate_at
from paramagnet.rbm import RBM, Rng
from paramagnet.units import FloatArray, GaussianUnit, Unit

if TYPE_CHECKING:
    from paramagnet.learning.torch_engine import TorchEngine

SECONDS_CHEAP = 1.0  # an exact gradient that takes no longer is the default
LARGEST = 1e12  # norm beyond which the parameters have diverged; exact sums are still true there

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
    optimizer : `Adam` or `SGD`
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
    gradient: GradientSettings | None = None,
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
    engine = as_engine(device, layout.visible, layout.hidden)
    if not isinstance(optimizer, (Adam, SGD)):
        raise ValueError(f"`optimizer` must be an `Adam` or an `SGD`, got {optimizer!r}.")
    points = _as_points(data, "data", layout)
    n_batch = len(points) if batch_size is None else min(as_count(batch_size, "batch_size"), len(points))
    settings = _as_gradient(gradient, layout, engine)
    run = _Run(
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
    return run.from_start(start, epochs, np.random.default_rng([*seeds, 1]))


@dataclass(frozen=True, eq=False)
class _Run:
    """What stays the same during a run, and how a state follows from the one before."""

    layout: Layout
    points: FloatArray
    points_and_ones: npt.NDArray[Any]  # float32 where gradients are sampled
    held_out: FloatArray | None
    gradient: GradientSettings
    optimizer: Optimizer
    batch_size: int
    weight_decay: float
    evaluated: frozenset[int]
    engine: TorchEngine | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What another run must share to go on with a state of this one."""
        return {
            "data": f"{self.points.shape} {_fingerprint(self.points, self.layout.visible)}",
            "gradient": _describe(self.gradient, leave_out=("n_threads", "force")),
            "optimizer": _describe(self.optimizer),
            "batch_size": str(self.batch_size),
            "weight_decay": repr(self.weight_decay),
            "device": KERNELS if self.engine is None else self.engine.kind,
        }

    def from_start(self, state: TrainState, epochs: int, rng: np.random.Generator) -> Iterator[TrainState]:
        """The start itself, measured if wanted, then the steps from it; ``rng`` starts the chains."""
        model = None
        began = time.perf_counter()
        if not isinstance(self.gradient, Exact):
            chains = start_chains(self.gradient, self.layout, state.parameters, rng, self.engine)
            state = replace(state, chains=chains, seconds=time.perf_counter() - began)
        if 0 in self.evaluated:
            log_z, model = self.log_partition(0, state.parameters, state.chains)
            record = self.measure(0, state.parameters, log_z, math.nan, 0.0)
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
                points = self.batch(order, batch)
                chains, average = self.average_model(state, points, model)
                parameters, optimizer_state, slope = self.update(state, points, average)
                model = None
                records, ended = state.records, batch + 1 == n_batches
                if ended and epoch + 1 in self.evaluated:
                    log_z, model = self.log_partition(epoch + 1, parameters, chains)
                    spent = state.seconds + time.perf_counter() - began
                    norm = float(np.linalg.norm(slope))
                    records = (*records, self.measure(epoch + 1, parameters, log_z, norm, spent))
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
                    chains=chains,
                )
                yield state

    def average_model(
        self, state: TrainState, points: npt.NDArray[Any], model: Model | None
    ) -> tuple[Chains | None, FloatArray]:
        """The averages under the model, and the chains they come from, if any.

        ``model`` are the exact averages, if known.
        """
        if isinstance(self.gradient, Exact):
            if model is None:
                model = model_moments(self.layout, state.parameters, self.gradient.n_threads)
            return None, model[1]
        assert state.chains is not None
        return sampled_moments(
            self.gradient, self.layout, state.parameters, state.chains, points[:, :-1], self.engine
        )

    def log_partition(
        self, epoch: int, parameters: FloatArray, chains: Chains | None
    ) -> tuple[Estimate, Model | None]:
        """``ln Z``; and where gradients are exact the averages under the model, which come with it."""
        if isinstance(self.gradient, Exact):
            model = model_moments(self.layout, parameters, self.gradient.n_threads)
            return Estimate(model[0]), model
        assert chains is not None
        rbm = self.layout.machine(parameters)
        if estimate_seconds(*sizes_of(rbm), gradient=False) <= SECONDS_CHEAP:
            return Estimate(log_partition(rbm)), None
        rng = np.random.default_rng([chains.seed, epoch])  # so that measuring leaves the run as it is
        device = KERNELS if self.engine is None else self.engine.name
        return estimate_log_partition(rbm, rng=rng, n_threads=self.gradient.n_threads, device=device), None

    def batch(self, order: npt.NDArray[np.int64] | None, batch: int) -> npt.NDArray[Any]:
        """The points of one batch, with their column of ones."""
        if order is None:
            return self.points_and_ones
        chosen = order[batch * self.batch_size : (batch + 1) * self.batch_size]
        return self.points_and_ones.take(chosen, axis=0)

    def update(
        self, state: TrainState, points: npt.NDArray[Any], model_average: FloatArray
    ) -> tuple[FloatArray, OptimizerState, FloatArray]:
        """The next parameters and optimizer state, and the gradient that led there."""
        rate = rate_at(self.optimizer.learning_rate, state.update)
        average = data_moments if self.engine is None else self.engine.data_moments
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is reported below, in words
            slope = average(self.layout, state.parameters, points) - model_average
            direction, optimizer_state = self.optimizer.step(state.optimizer_state, slope)
            parameters = state.parameters + rate * direction
            if self.weight_decay:
                n_weights = self.layout.n_weights
                parameters[:n_weights] -= rate * self.weight_decay * state.parameters[:n_weights]
            largest = LARGEST if isinstance(self.gradient, Exact) else LARGEST_SAMPLED
            diverged = not parameters @ parameters < largest**2  # NaN is not smaller either
        if diverged:
            raise DivergenceError(
                f"Training diverged: parameters are not finite, or beyond {largest:g}, after update "
                f"{state.update + 1} (epoch {state.epoch + 1}). Try a smaller learning rate than {rate:g}, "
                "or smaller initial weights.",
                state,
            )
        parameters.setflags(write=False)
        return parameters, optimizer_state, slope

    def measure(
        self, epoch: int, parameters: FloatArray, log_z: Estimate, gradient_norm: float, seconds: float
    ) -> Record:
        """The record of an epoch."""
        rbm = self.layout.machine(parameters)
        held_out = math.nan
        if self.held_out is not None:
            held_out = -mean_free_energy(rbm, self.held_out) - log_z.value
        return Record(
            epoch=epoch,
            log_likelihood=-mean_free_energy(rbm, self.points) - log_z.value,
            validation=held_out,
            gradient_norm=gradient_norm,
            weight_norm=float(np.linalg.norm(rbm.weights)),
            seconds=seconds,
            error=log_z.error,
        )


def _as_points(data: Any, argument: str, layout: Layout) -> FloatArray:
    return layout.visible.as_states(data, argument, layout.n_visible)


def _fingerprint(points: FloatArray, unit: Unit) -> str:
    """A hash of the data."""
    if isinstance(unit, GaussianUnit):
        return hashlib.sha256(points.tobytes()).hexdigest()
    return hashlib.sha256(np.packbits(points == unit.high).tobytes()).hexdigest()


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
        raise ValueError(f"`gradient` must be None, `Exact()`, `PCD()` or `CD()`, got {gradient!r}.")
    if isinstance(gradient, Exact):
        check_cost(*sizes, n_threads=gradient.n_threads, gradient=True, force=gradient.force)
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


def _describe(settings: Optimizer | GradientSettings, leave_out: Sequence[str] = ()) -> str:
    """Settings in words; "Exact" where nothing is to be said about them."""
    names = [field.name for field in fields(settings) if field.name not in leave_out]
    values = {name: getattr(settings, name) for name in names}
    shown = {k: getattr(v, "__qualname__", "schedule") if callable(v) else repr(v) for k, v in values.items()}
    text = ", ".join(f"{k}={v}" for k, v in shown.items())
    return f"{type(settings).__name__}({text})" if text else type(settings).__name__


def _check_same_run(earlier: dict[str, str], now: dict[str, str]) -> None:
    earlier = {"device": KERNELS} | earlier  # checkpoints of before there were others do not say
    for name in now:
        if earlier.get(name) != now[name]:
            raise ValueError(
                f"`{name}` must be that of the run to go on with, {earlier.get(name)}, got {now[name]}. "
                "To change it, start a new run from the machine `state.rbm`."
            )
