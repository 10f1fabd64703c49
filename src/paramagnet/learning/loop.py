"""One run of training: what stays the same in it, and how a state follows from the one before."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import ONE_BLAS_THREAD, uninterrupted
from paramagnet.kernels.precision import InexactSumError
from paramagnet.layout import Layout
from paramagnet.learning.centring import Centre
from paramagnet.learning.early_stopping import EarlyStopping
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch
from paramagnet.learning.gradients.base import Gradient, GradientState, Particles
from paramagnet.learning.guard import GuardedRun
from paramagnet.learning.measuring import Measured, Model, measured
from paramagnet.learning.moments import column_means, data_moments
from paramagnet.learning.optimizers import Optimizer, OptimizerState, check_step, rate_at, step_by
from paramagnet.learning.penalties import Penalties
from paramagnet.learning.resuming import describe
from paramagnet.learning.reused_slots import advance_reusing, can_reuse_slots
from paramagnet.learning.sampled_setup import is_compiled, name_order_of_sums
from paramagnet.learning.sampled_update import OVERWRITTEN_FROM, SampledUpdate
from paramagnet.learning.state import TrainState
from paramagnet.learning.watch import Kept
from paramagnet.learning.weighting import PointWeights
from paramagnet.sampling.devices import KERNELS
from paramagnet.units import FloatArray, Unit

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

# Makes the next state the latest: from the one before, its parameters, the states of the optimizer and of the
# gradient, and the offsets of centred learning.
Put = Callable[[TrainState, FloatArray, OptimizerState, GradientState | None, FloatArray | None], None]
Advance = Callable[[npt.NDArray[np.int64] | None, int, Model | None, bool, Put], Callable[[], float]]


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
    points: npt.NDArray[Any]  # float64, or int8 where updates are compiled
    points_and_ones: npt.NDArray[Any] | None  # float32 where gradients are sampled, None if not needed
    held_out: FloatArray | None
    gradient: Gradient
    optimizer: Optimizer
    batch_size: int
    penalties: Penalties
    evaluated: frozenset[int]
    log_z: LogZ | LogZOfEpoch = LogZ()  # noqa: RUF009 - it never changes
    engine: TorchEngine | None = None
    centre: Centre | None = None  # None where learning is not centred
    weights: PointWeights | None = None  # of the points, None where all count alike
    held_out_weights: FloatArray | None = None
    before_measuring: Callable[[TrainState], None] | None = None
    overwrite: bool = False
    guard: GuardedRun | None = None
    stopping: EarlyStopping | None = None
    judged: bool = False  # whether a run without a guard keeps its best machine, and judges its last one
    best: list[Kept] = field(default_factory=list)  # by measurements, where the state does not hold it
    latest: list[TrainState] = field(default_factory=list)
    last_measured: list[Measured] = field(default_factory=list)  # the last measurement with both errors

    @property
    def overwrites(self) -> bool:
        """Whether updates may overwrite the state before, if nobody holds it: for large machines, where the
        caller takes the last state of the run from ``latest``.
        """
        return self.overwrite and self.layout.size >= OVERWRITTEN_FROM

    @property
    def n_batches(self) -> int:
        """The updates of an epoch."""
        return -(-len(self.points) // self.batch_size)

    @property
    def settings(self) -> dict[str, str]:
        """What another run must share to go on with a state of this one."""
        chosen = {"sums": self.order_of_sums} if self.order_of_sums else {}
        if self.centre is not None:
            chosen["centred"] = describe(self.centre.settings)
        if self.weights is not None:
            chosen["sample_weight"] = self.weights.fingerprint
        if self.guard is not None:
            chosen["guard"] = describe(self.guard.settings)
        if self.stopping is not None:
            chosen["early_stopping"] = describe(self.stopping)
        return chosen | {
            "data": f"{self.points.shape} {_fingerprint(self.points, self.layout.visible)}",
            "gradient": describe(self.gradient),
            "optimizer": describe(self.optimizer),
            "batch_size": str(self.batch_size),
            **self.penalties.settings,
            "device": KERNELS if self.engine is None else self.engine.kind,
        }

    @property
    def sampled(self) -> Particles | None:
        """How the compiled update for sampled gradients samples; None where updates are made by averages."""
        compiled = is_compiled(self.gradient, self.layout, self.engine)
        return self.gradient.particles() if compiled else None

    @property
    def order_of_sums(self) -> str | None:
        """The name of the order in which sampled gradients are summed; None where it never changed."""
        return name_order_of_sums(self.gradient, self.layout, self.batch_size, self.engine)

    @property
    def means(self) -> FloatArray | None:
        """The means of the data, where estimates of ``ln Z`` start from them."""
        wanted = isinstance(self.log_z, LogZ) and self.log_z.start != "uniform"
        return self.layout.visible.column_means(self.points, self.all_weights) if wanted else None

    @property
    def all_weights(self) -> FloatArray | None:
        """The weights of all points."""
        return None if self.weights is None else self.weights.values

    @cached_property
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
        if self.guard is not None:
            state = self.guard.after(state)
        if 0 in self.evaluated:
            state, model = measured(self, state, math.nan)
        self.latest[:] = [state]
        del state
        yield self.latest[0]
        yield from self.steps(epochs, model)

    def resumed(self, state: TrainState, epochs: int) -> Iterator[TrainState]:
        """The steps from a state of an earlier run; first the state itself, with the check of the guard that
        an interruption left out, and with the measurement that it was kept for (`before_measuring`), if any.
        """
        model = None
        if self.guard is not None:
            state = self.guard.after(state)
        done = {record.epoch for record in state.records}
        due = state.batch == 0 and state.epoch in self.evaluated and state.epoch not in done
        self.latest[:] = [state]
        if due and self.before_measuring is not None:
            state, model = measured(self, state, math.nan)
            self.latest[:] = [state]
            yield state
        del state
        yield from self.steps(epochs, model)

    def steps(self, epochs: int, model: Model | None) -> Iterator[TrainState]:
        """The states after the latest, one per update; ``model`` are its exact averages, if known.

        An epoch that is measured needs exact averages at its end. The next update uses them again. Where
        states may be overwritten, no name stays bound to one from one update to the next. A state that is to
        be measured becomes the latest with its record only: until then an interruption leaves the one before,
        so that a resumed run makes the measurement. A check that is interrupted is made by the resumed run.
        """
        latest, advance, checked = self.latest, self.way_to_advance(), False
        overwrites = self.overwrites
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = latest[0].rng_state
        n_batches = self.n_batches

        def put(
            state: TrainState,
            parameters: FloatArray,
            optimizer_state: OptimizerState,
            kept: GradientState | None,
            offsets: FloatArray | None,
        ) -> None:
            """Put the state that follows from ``state`` in its place."""
            nonlocal checked
            if not checked:
                check_step(self.optimizer, state.optimizer_state, optimizer_state, parameters)
                checked = True
            following = TrainState(
                layout=self.layout,
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
                offsets=offsets,
                watch=state.watch,
            )
            place[:] = [following]

        for epoch in range(latest[0].epoch, epochs):
            if self.stopping is not None and latest[0].watch is not None and latest[0].watch.stopped:
                return
            order = latest[0].order
            if n_batches > 1 and order is None:
                order = rng.permutation(len(self.points))
            rng_state = dict(rng.bit_generator.state)
            for batch in range(latest[0].batch, n_batches):
                began = time.perf_counter()
                ended = batch + 1 == n_batches
                due = ended and epoch + 1 in self.evaluated
                place: list[TrainState] = [] if due else latest  # of the state that is made
                try:
                    norm = advance(order, batch, model, overwrites and not due, put)
                    model = None
                    if self.guard is not None:
                        place[0] = self.guard.after(place[0])
                    if due:
                        place[0], model = measured(self, place[0], norm())
                    latest[0] = place[0]
                except InexactSumError as error:  # parameters too large for exact sums
                    message = f"Training diverged in epoch {epoch + 1}. {error}"
                    raise DivergenceError(message, latest[0]) from error
                place = latest
                yield latest[0]

    def way_to_advance(self) -> Advance:
        """How an update is made: by the compiled one for sampled gradients where that knows the units and
        the gradient, else by averages.
        """
        particles = self.sampled
        if particles is None:
            return self.advance
        update = SampledUpdate(
            self.layout,
            self.points,
            particles,
            self.optimizer,
            self.penalties,
            self.batch_size,
            self.centre,
            self.weights,
        )
        everything = np.arange(len(self.points))

        def advance(
            order: npt.NDArray[np.int64] | None, batch: int, model: Model | None, overwrite: bool, put: Put
        ) -> Callable[[], float]:
            rate = self.rate_after(self.latest[0])
            chosen = everything if order is None else self.chosen(order, batch)
            in_place = overwrite and update.may_overwrite(self.latest, rate, self.gradient.largest)
            state = self.latest[0]
            # An interruption in the middle of an update in place would leave a state that is none. What does
            # not wait, such as a MemoryError, finds no latest state: the last checkpoint stays as it is.
            with uninterrupted() if in_place else nullcontext():
                if in_place:
                    self.latest.clear()
                found = update(state, chosen, rate, in_place)
                self.require_finite(found.size, state, rate)
                put(state, found.parameters, found.optimizer_state, found.chains, found.offsets)
            steepness = found.steepness  # alone: the state must not be held
            return lambda: math.sqrt(steepness)

        return advance

    def advance(
        self,
        order: npt.NDArray[np.int64] | None,
        batch: int,
        model: Model | None,
        overwrite: bool,
        put: Put,
    ) -> Callable[[], float]:
        """An update by averages over the batch, and those under the model; it overwrites no state but for the
        slots of large machines of categorical units (`paramagnet.learning.reused_slots`).
        """
        if overwrite and model is None and can_reuse_slots(self):
            done = advance_reusing(self, order, batch, put)
            if done is not None:
                return done
        state, points = self.latest[0], self.batch(order, batch)
        weights = self.weights_of(order, batch)
        with self.threads:
            if model is None:
                model = self.gradient.weighted_moments(
                    self.layout, state.parameters, points[:, :-1], state.gradient_state, self.engine, weights
                )
            kept, (average, _) = model
            parameters, optimizer_state, slope, offsets = self.update(state, points, average, weights)
        put(state, parameters, optimizer_state, kept, offsets)
        return lambda: float(np.linalg.norm(slope))

    def rate_after(self, state: TrainState) -> float:
        """The learning rate of the update after ``state``, lowered where the guard did so."""
        rate = self.optimizer.learning_rate
        if type(rate) is float and state.watch is None:
            return rate
        return rate_at(rate, state.update) * state.rate_factor

    @cached_property
    def means_of_all(self) -> npt.NDArray[Any]:
        """The means of all points, which an update by all of them needs every time."""
        assert self.points_and_ones is not None
        return column_means(self.points_and_ones)

    def average_data(
        self, parameters: FloatArray, points: npt.NDArray[Any], weights: FloatArray | None
    ) -> FloatArray:
        """The averages over a batch, whose points have these ``weights``."""
        if self.engine is not None:
            return self.engine.data_moments(self.layout, parameters, points, weights)
        means = self.means_of_all if points is self.points_and_ones and weights is None else None
        return data_moments(self.layout, parameters, points, self.gradient.n_threads, weights, means)

    def batch(self, order: npt.NDArray[np.int64] | None, batch: int) -> npt.NDArray[Any]:
        """The points of one batch, with their column of ones."""
        assert self.points_and_ones is not None
        if order is None:
            return self.points_and_ones
        return self.points_and_ones.take(self.chosen(order, batch), axis=0)

    def weights_of(self, order: npt.NDArray[np.int64] | None, batch: int) -> FloatArray | None:
        """The weights of the points of one batch, of mean one; None where all count alike."""
        if self.weights is None:
            return None
        return self.weights.of(None if order is None else self.chosen(order, batch))

    def chosen(self, order: npt.NDArray[np.int64], batch: int) -> npt.NDArray[np.int64]:
        """The indices of the points of one batch."""
        return order[batch * self.batch_size : (batch + 1) * self.batch_size]

    def update(
        self,
        state: TrainState,
        points: npt.NDArray[Any],
        model_average: FloatArray,
        weights: FloatArray | None,
    ) -> tuple[FloatArray, OptimizerState, FloatArray, FloatArray | None]:
        """The next parameters and optimizer state, the gradient that led there, and the offsets."""
        rate, offsets = self.rate_after(state), None
        before = state.parameters, state.optimizer_state
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is reported below, in words
            slope = self.average_data(state.parameters, points, weights)
            if self.centre is None:
                slope -= model_average
                parameters, optimizer_state = step_by(
                    self.optimizer, self.layout, *before, slope, rate, self.penalties
                )
            else:
                offsets = self.centre.follow(state.offsets, self.layout.split(slope)[2])
                slope -= model_average
                parameters, optimizer_state = self.centre.step_by(
                    self.optimizer, self.layout, *before, slope, rate, self.penalties, offsets
                )
            self.require_finite(float(parameters @ parameters), state, rate)
        self.layout.fix_gauge(parameters)
        parameters.setflags(write=False)
        return parameters, optimizer_state, slope, offsets

    def require_finite(self, size: float, state: TrainState, rate: float) -> None:
        """An error if ``size``, the sum of the squares of the parameters after ``state``, is too large."""
        largest = self.gradient.largest
        if not size < largest**2:  # NaN is not smaller either
            raise DivergenceError(
                f"Training diverged: parameters are not finite, or beyond {largest:g}, after update "
                f"{state.update + 1} (epoch {state.epoch + 1}). Try a smaller learning rate than {rate:g}, "
                "or smaller initial weights.",
                state,
            )


def _fingerprint(points: FloatArray, unit: Unit) -> str:
    """A hash of the data."""
    return hashlib.sha256(unit.fingerprint(points)).hexdigest()
