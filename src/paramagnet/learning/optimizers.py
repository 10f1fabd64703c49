"""Optimizers: objects with fixed settings, and a state that each step replaces by a new one.

`Adam` and `SGD` are optimizers, and so is any object with the three members of `Optimizer`.

They maximize. A step turns the gradient of the log-likelihood into a direction; the parameters move by the
learning rate times the direction. A learning rate is a number, a `Schedule`, or a function of the index of
the update (0 for the first).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Protocol

import numpy as np

from paramagnet._arrays import shown
from paramagnet._checks import as_positive, as_real
from paramagnet.kernels.passes import follow_adam
from paramagnet.layout import Layout
from paramagnet.learning.penalties import Penalties, shrink
from paramagnet.learning.schedule import LearningRate, Schedule, read_schedule
from paramagnet.units import FloatArray

ADAM_RATE = 1e-3  # the default of its authors


@dataclass(frozen=True, eq=False)
class OptimizerState:
    """How many steps were taken, and the running averages: one vector per slot."""

    n_steps: int
    slots: tuple[FloatArray, ...]


class Optimizer(Protocol):
    """What training asks of an optimizer. Its settings should be the fields of a frozen dataclass: a
    checkpoint describes them, and going on with others is refused.
    """

    @property
    def learning_rate(self) -> LearningRate:
        """A positive number, or a function of the index of the update."""

    def start(self, size: int) -> OptimizerState:
        """The state before the first of the steps on ``size`` parameters: no step, and slots of that size."""

    def step(self, state: OptimizerState, gradient: FloatArray) -> tuple[FloatArray, OptimizerState]:
        """The direction to move in, and a new state with one more step; neither argument may be changed."""


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, arXiv:1412.6980), ascending, in its authors' form and with their constants.

    m <- beta1 m + (1 - beta1) g          mhat = m / (1 - beta1^t)
    s <- beta2 s + (1 - beta2) g^2        shat = s / (1 - beta2^t)
    direction = mhat / (sqrt(shat) + epsilon)

    Parameters
    ----------
    learning_rate : float, Schedule, str or callable, default 0.001
        Learning rate: a number, a `Schedule` or the text of one (``"linear"``, ``"cosine(0.003)"``), or a
        function of the index of the update.
    beta1 : float, default 0.9
        Decay of the average of the gradients.
    beta2 : float, default 0.999
        Decay of the average of their squares.
    epsilon : float, default 1e-08
        Added to the root of that average.
    """

    learning_rate: LearningRate = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _set(self, "learning_rate", _as_rate(self.learning_rate, ADAM_RATE))
        _set(self, "beta1", _as_fraction(self.beta1, "beta1"))
        _set(self, "beta2", _as_fraction(self.beta2, "beta2"))
        _set(self, "epsilon", float(as_positive(as_real(self.epsilon, "epsilon"), "epsilon")))

    def start(self, size: int) -> OptimizerState:
        """The state before the first of the steps on ``size`` parameters."""
        return OptimizerState(0, (np.zeros(size), np.zeros(size)))

    def step(self, state: OptimizerState, gradient: FloatArray) -> tuple[FloatArray, OptimizerState]:
        """The direction to move in, and the next state."""
        n_steps = state.n_steps + 1
        first, second, direction = np.empty_like(gradient), np.empty_like(gradient), np.empty_like(gradient)
        settings = (self.beta1, self.beta2, *self.scales(n_steps))
        follow_adam(gradient, state.slots[0], state.slots[1], settings, first, second, direction)
        return direction, OptimizerState(n_steps, (first, second))

    def scales(self, n_steps: int) -> tuple[float, float]:
        """What makes ``first / (scale * sqrt(second) + epsilon)`` the direction of step ``n_steps``."""
        unbias = 1.0 - self.beta1**n_steps
        return unbias / math.sqrt(1.0 - self.beta2**n_steps), unbias * self.epsilon


@dataclass(frozen=True)
class SGD:
    """Gradient ascent, with momentum if wanted: ``u <- momentum u + g``, direction ``u``.

    Parameters
    ----------
    learning_rate : float, Schedule, str or callable
        Learning rate: a number, a `Schedule` or the text of one (``"linear(0.05)"``), or a function of the
        index of the update.
    momentum : float, default 0.0
        Share of the former direction that is kept, from 0 to below 1.
    """

    learning_rate: LearningRate
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _set(self, "learning_rate", _as_rate(self.learning_rate))
        _set(self, "momentum", _as_fraction(self.momentum, "momentum"))

    def start(self, size: int) -> OptimizerState:
        """The state before the first of the steps on ``size`` parameters."""
        return OptimizerState(0, (np.zeros(size),) if self.momentum else ())

    def step(self, state: OptimizerState, gradient: FloatArray) -> tuple[FloatArray, OptimizerState]:
        """The direction to move in, and the next state."""
        if not state.slots:
            return gradient, OptimizerState(state.n_steps + 1, ())
        velocity = self.momentum * state.slots[0] + gradient
        return velocity, OptimizerState(state.n_steps + 1, (velocity,))


def fused_rule(optimizer: Optimizer, n_steps: int) -> tuple[float, float, float, float, float] | None:
    """A step of `Adam` or `SGD` as numbers for `paramagnet.kernels.passes`; None for any other optimizer.

    They are the kind (0 gradient, 1 momentum, 2 Adam), the shares of the slots that are kept, and ``scale``
    and ``epsilon`` of Adam's direction. ``n_steps`` counts the steps before this one.
    """
    if type(optimizer) is Adam:
        return (2.0, optimizer.beta1, optimizer.beta2, *optimizer.scales(n_steps + 1))
    if type(optimizer) is SGD:
        return (1.0 if optimizer.momentum else 0.0, optimizer.momentum, 0.0, 0.0, 0.0)
    return None


def largest_direction(optimizer: Optimizer, slope: float) -> float:
    """A bound on every number of a direction, where no number of any gradient exceeds ``slope``; infinite
    where none is known.

    For Adam it follows from the Cauchy-Schwarz inequality: the running averages have
    ``m^2 <= s (1 - beta1)^2 / ((1 - beta2) (1 - beta1^2 / beta2))`` if ``beta1^2 < beta2``, and ``scale`` is
    at least ``1 - beta1``.
    """
    if type(optimizer) is Adam and optimizer.beta1**2 < optimizer.beta2:
        spread = (1.0 - optimizer.beta2) * (1.0 - optimizer.beta1**2 / optimizer.beta2)
        return 1.0 / math.sqrt(spread)
    if type(optimizer) is SGD:
        return slope / (1.0 - optimizer.momentum)
    return math.inf


def step_by(
    optimizer: Optimizer,
    layout: Layout,
    parameters: FloatArray,
    state: OptimizerState,
    slope: FloatArray,
    rate: float,
    penalties: Penalties,
    stretched: tuple[slice, float] | None = None,
) -> tuple[FloatArray, OptimizerState]:
    """The parameters after a step of ``optimizer``, and its next state; ``penalties`` act on the weights, and
    on the norm of the ``slope``.

    ``stretched`` are parameters whose step is multiplied by a factor, and that factor.
    """
    direction, after = optimizer.step(state, slope if penalties.nothing else penalties.clipped(slope))
    moved = rate * direction
    if stretched is not None:
        moved[stretched[0]] *= stretched[1]
    moved += parameters
    if penalties.nothing:
        return moved, after
    n_weights = layout.n_weights
    if penalties.weight_decay:
        moved[:n_weights] -= rate * penalties.weight_decay * parameters[:n_weights]
    thresholds = penalties.thresholds(layout, parameters, rate)
    if thresholds.size:
        shrink(layout.split(moved)[0], thresholds)
    return moved, after


def as_optimizer(optimizer: Any) -> Optimizer:
    """``optimizer``, if it has the members of `Optimizer`; else an error."""
    ready = not isinstance(optimizer, type) and all(
        callable(getattr(optimizer, name, None)) for name in ("start", "step")
    )
    if not ready or not hasattr(optimizer, "learning_rate"):
        raise ValueError(
            "`optimizer` must be an `Adam` or an `SGD`, or an object of yours with `learning_rate`, `start` "
            f"and `step`, got {shown(optimizer)}."
        )
    _as_rate(optimizer.learning_rate)
    found: Optimizer = optimizer
    return found


def start_optimizer(optimizer: Optimizer, size: int) -> OptimizerState:
    """The state before the first step; an error if it is not what a checkpoint can hold."""
    state = optimizer.start(size)
    vectors = isinstance(state, OptimizerState) and all(
        isinstance(slot, np.ndarray) and slot.dtype == np.float64 and slot.shape == (size,)
        for slot in state.slots
    )
    if not vectors or state.n_steps != 0:
        raise ValueError(
            f"`start` of {type(optimizer).__name__} must return an `OptimizerState` of 0 steps, with float64 "
            f"vectors of {size} entries as slots, got {shown(state)}."
        )
    return state


def check_step(
    optimizer: Optimizer, before: OptimizerState, after: OptimizerState, parameters: FloatArray
) -> None:
    """An error if the first step of a run gave a state that does not follow from the one before."""
    same = isinstance(after, OptimizerState) and [(slot.shape, slot.dtype) for slot in after.slots] == [
        (slot.shape, slot.dtype) for slot in before.slots
    ]
    if not same or after.n_steps != before.n_steps + 1:
        raise ValueError(
            f"`step` of {type(optimizer).__name__} must return a direction and an `OptimizerState` of "
            f"{before.n_steps + 1} steps with {len(before.slots)} slots like those before, got "
            f"{shown(after)}."
        )
    if parameters.dtype != np.float64:
        raise ValueError(
            f"`step` of {type(optimizer).__name__} must return a direction in float64, got "
            f"{parameters.dtype}."
        )


def check_slots(earlier: OptimizerState, first: OptimizerState, optimizer: Optimizer) -> None:
    """An error if ``earlier`` cannot be a state of ``optimizer``, whose runs start with ``first``."""
    if len(first.slots) != len(earlier.slots):
        raise ValueError(
            f"`optimizer` must start with {len(earlier.slots)} slots, as that of the run to go on with did, "
            f"got {len(first.slots)} from {type(optimizer).__name__}. To change it, start a new run from the "
            "machine `state.rbm`."
        )


def rate_at(learning_rate: LearningRate, update: int) -> float:
    """The learning rate of the update with index ``update``."""
    if not callable(learning_rate):
        return float(learning_rate)
    rate = learning_rate(update)
    try:
        return float(as_positive(as_real(rate, "learning_rate"), "learning_rate", zero=True))
    except ValueError:
        raise ValueError(
            f"`learning_rate` must return finite numbers, zero or positive, got {rate!r} for update {update}."
        ) from None


def _set(settings: Adam | SGD, name: str, value: LearningRate) -> None:
    """Keep the checked value, a plain float, in a frozen dataclass."""
    object.__setattr__(settings, name, value)


def close_schedule(optimizer: Optimizer, n_updates: int | None) -> Optimizer:
    """``optimizer`` with the planned number of updates in its schedule, where that was left open.

    None stands for a run whose length is not known.
    """
    rate = optimizer.learning_rate
    if isinstance(rate, str):  # of an optimizer of the user's own
        rate = read_schedule(rate, "learning_rate")
    elif not (isinstance(rate, Schedule) and rate.open):
        return optimizer
    if not rate.open:
        n_updates = 1  # it says its own number
    if n_updates is None:
        raise ValueError(
            f"`learning_rate` must say its `n_updates` where the length of the run is not known, got "
            f"{rate!r}. Give the schedule a number of updates, or use a number as learning rate."
        )
    settings: Any = optimizer
    if not is_dataclass(type(settings)):
        raise ValueError(
            f"`learning_rate` of {type(optimizer).__name__} must say its `n_updates`, got {rate!r}. Only an "
            "optimizer that is a dataclass can be given those of the run."
        )
    return as_optimizer(replace(settings, learning_rate=rate.over(max(1, n_updates))))


def _as_rate(learning_rate: Any, default: float | None = None) -> LearningRate:
    if isinstance(learning_rate, str):
        return read_schedule(learning_rate, "learning_rate", default)
    if callable(learning_rate):
        found: LearningRate = learning_rate
        return found
    return float(as_positive(as_real(learning_rate, "learning_rate"), "learning_rate"))


def _as_fraction(value: float, argument: str) -> float:
    fraction = as_real(value, argument)
    if not 0.0 <= fraction < 1.0:
        raise ValueError(f"`{argument}` must be at least 0 and below 1, got {value!r}.")
    return fraction
