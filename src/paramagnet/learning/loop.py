"""One run of training: what stays the same in it, and how a state follows from the one before."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import ONE_BLAS_THREAD
from paramagnet.estimates import Estimate
from paramagnet.kernels.precision import InexactSumError
from paramagnet.layout import Layout
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch, as_estimate
from paramagnet.learning.gradients.base import Gradient, GradientState, ModelMoments
from paramagnet.learning.likelihood import mean_free_energy
from paramagnet.learning.moments import data_moments
from paramagnet.learning.optimizers import Optimizer, OptimizerState, check_step, rate_at
from paramagnet.learning.resuming import describe
from paramagnet.learning.state import Record, TrainState
from paramagnet.sampling.chains import Chains
from paramagnet.sampling.devices import KERNELS
from paramagnet.units import FloatArray, Unit

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

Model = tuple[GradientState | None, ModelMoments]  # what `Gradient.moments` returns


class DivergenceError(ArithmeticError):
    """Training left the finite numbers; ``state`` is the last one that was finite."""

    def __init__(self, message: str, state: TrainState) -> None:
        super().__init__(message)
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are made anew from `args` alone unless told otherwise, and a process pool whose worker
        # raises one that cannot be made anew hangs.
        return type(self), (self.args[0], self.state), self.__dict__


@dataclass(frozen=True, eq=False)
class Loop:
    """What stays the same during a run, and how a state follows from the one before."""

    layout: Layout
    points: FloatArray
    points_and_ones: npt.NDArray[Any]  # float32 where gradients are sampled
    held_out: FloatArray | None
    gradient: Gradient
    optimizer: Optimizer
    batch_size: int
    weight_decay: float
    evaluated: frozenset[int]
    log_z: LogZ | LogZOfEpoch = LogZ()  # noqa: RUF009 - it never changes
    engine: TorchEngine | None = None
    before_measuring: Callable[[TrainState], None] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What another run must share to go on with a state of this one."""
        return {
            "data": f"{self.points.shape} {_fingerprint(self.points, self.layout.visible)}",
            "gradient": describe(self.gradient),
            "optimizer": describe(self.optimizer),
            "batch_size": str(self.batch_size),
            "weight_decay": repr(self.weight_decay),
            "device": KERNELS if self.engine is None else self.engine.kind,
        }

    @property
    def means(self) -> FloatArray | None:
        """The means of the data, where estimates of ``ln Z`` start from them."""
        wanted = isinstance(self.log_z, LogZ) and self.log_z.start == "data"
        return self.points.mean(axis=0) if wanted else None

    @property
    def threads(self) -> AbstractContextManager[None]:
        """BLAS keeps its own threads out of sampled updates: they would spin, for want of work, on the cores
        of the chains.
        """
        return nullcontext() if self.gradient.exact else ONE_BLAS_THREAD

    def from_start(self, state: TrainState, epochs: int, rng: np.random.Generator) -> Iterator[TrainState]:
        """The start itself, measured if wanted, then the steps from it; ``rng`` is for `Gradient.start`."""
        model = None
        began = time.perf_counter()
        kept = self.gradient.start(self.layout, state.parameters, self.points, rng, self.engine)
        state = replace(state, gradient_state=kept, seconds=time.perf_counter() - began)
        if 0 in self.evaluated:
            state, model = self.measured(state, math.nan)
        yield state
        yield from self.steps(state, epochs, model)

    def resumed(self, state: TrainState, epochs: int) -> Iterator[TrainState]:
        """The steps from a state of an earlier run; first the state itself with the measurement that it was
        kept for (`before_measuring`), if it was.
        """
        model = None
        measured = {record.epoch for record in state.records}
        due = state.batch == 0 and state.epoch in self.evaluated and state.epoch not in measured
        if due and self.before_measuring is not None:
            state, model = self.measured(state, math.nan)
            yield state
        yield from self.steps(state, epochs, model)

    def steps(self, state: TrainState, epochs: int, model: Model | None) -> Iterator[TrainState]:
        """The states after ``state``, one per update; ``model`` are its exact averages, if known.

        An epoch that is measured needs exact averages at its end. The next update uses them again.
        """
        gradient, layout, engine, threads = self.gradient, self.layout, self.engine, self.threads
        checked = False
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
                ended = batch + 1 == n_batches
                try:
                    with threads:
                        if model is None:
                            model = gradient.moments(
                                layout, state.parameters, points[:, :-1], state.gradient_state, engine
                            )
                        kept, (average, _) = model
                        parameters, optimizer_state, slope = self.update(state, points, average)
                    if not checked:
                        check_step(self.optimizer, state.optimizer_state, optimizer_state, parameters)
                        checked = True
                    model = None
                    following = TrainState(
                        layout=layout,
                        parameters=parameters,
                        optimizer_state=optimizer_state,
                        epoch=epoch + 1 if ended else epoch,
                        batch=0 if ended else batch + 1,
                        order=None if ended else order,
                        rng_state=rng_state,
                        records=state.records,
                        seconds=state.seconds + time.perf_counter() - began,
                        settings=state.settings,
                        gradient_state=kept,
                    )
                    if ended and epoch + 1 in self.evaluated:
                        following, model = self.measured(following, float(np.linalg.norm(slope)))
                except InexactSumError as error:  # parameters too large for exact sums
                    message = f"Training diverged in epoch {epoch + 1}. {error}"
                    raise DivergenceError(message, state) from error
                state = following
                yield state

    def measured(self, state: TrainState, gradient_norm: float) -> tuple[TrainState, Model | None]:
        """The state at the end of an epoch with its record; and its exact averages, if they are known now."""
        if self.before_measuring is not None:
            self.before_measuring(state)
        began = time.perf_counter()
        log_z, model = self.log_partition(state)
        seconds = state.seconds + time.perf_counter() - began
        spent = seconds if state.epoch else 0.0  # the start was not trained
        record = self.measure(state.epoch, state.parameters, log_z, gradient_norm, spent)
        seconds = state.seconds + time.perf_counter() - began
        return replace(state, records=(*state.records, record), seconds=seconds), model

    def average_data(self, parameters: FloatArray, points: npt.NDArray[Any]) -> FloatArray:
        """The averages over a batch."""
        if self.engine is not None:
            return self.engine.data_moments(self.layout, parameters, points)
        return data_moments(self.layout, parameters, points, self.gradient.n_threads)

    def log_partition(self, state: TrainState) -> tuple[Estimate, Model | None]:
        """``ln Z``; and where it comes with exact gradients the averages under the model, too."""
        policy, kept = self.log_z, state.gradient_state
        if isinstance(policy, LogZ) and policy.method in ("auto", "exact") and self.gradient.exact:
            points = self.points_and_ones[:, :-1]  # exact averages do not depend on them
            model = self.gradient.moments(self.layout, state.parameters, points, kept, self.engine)
            if model[1].log_z is None:
                raise ValueError(
                    f"`moments` of {type(self.gradient).__name__} must return ln Z, because the class says "
                    "`exact = True`, got None. Return `ModelMoments(average, log_z)`."
                )
            return Estimate(model[1].log_z), model
        if not isinstance(policy, LogZ):
            return as_estimate(policy(state.rbm, state.epoch)), None
        # Random numbers of their own, so that measuring leaves the run as it is.
        seed = kept.seed if isinstance(kept, Chains) else state.rng_state["state"]["inc"]
        rng = np.random.default_rng([seed, state.epoch])
        device = KERNELS if self.engine is None else self.engine.name
        threads = self.gradient.n_threads
        return policy(state.rbm, rng, means=self.means, n_threads=threads, device=device), None

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
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is reported below, in words
            slope = self.average_data(state.parameters, points)
            slope -= model_average
            direction, optimizer_state = self.optimizer.step(state.optimizer_state, slope)
            parameters = rate * direction
            parameters += state.parameters
            if self.weight_decay:
                n_weights = self.layout.n_weights
                parameters[:n_weights] -= rate * self.weight_decay * state.parameters[:n_weights]
            largest = self.gradient.largest
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
            n_effective=log_z.n_effective,
        )


def _fingerprint(points: FloatArray, unit: Unit) -> str:
    """A hash of the data."""
    return hashlib.sha256(unit.fingerprint(points)).hexdigest()
