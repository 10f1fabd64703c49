"""How the runs of a sweep learn: the section [learning] of a specification."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from paramagnet._arrays import shown
from paramagnet._checks import (
    MOST_CHAINS,
    MOST_SWEEPS,
    as_count,
    as_flag,
    as_positive,
    as_real,
    near_names,
)
from paramagnet.learning.registries import GRADIENTS, OPTIMIZERS
from paramagnet.learning.schedule import LearningRate, read_schedule

if TYPE_CHECKING:  # reading a specification must not load the kernels
    from paramagnet.learning.gradients.base import Gradient
    from paramagnet.learning.optimizers import Optimizer

MOST_POINTS = 1_000_000_000
# Settings of chains with their limits, and with the values that digests have where a gradient has none.
_CHAINS = {
    "n_chains": (1, MOST_CHAINS, 1000),
    "n_steps": (1, MOST_SWEEPS, 40),
    "n_relax": (0, MOST_SWEEPS, 500),
}
_FIRST = ("exact", "pcd")  # gradients whose specifications may name all of these, used or not
PENALTIES = ("weight_decay", "l1", "l1_group", "clip")  # None stands for no clipping
_OWN = {"n_threads": 1}  # a run has one core


@dataclass(frozen=True)
class LearningSpec:
    """Optimizer and gradient; ``batch_size`` None takes all points at once.

    ``optimizer`` and ``gradient`` are names, or "package.module:Name" for a class of the user's.
    ``n_chains``, ``n_steps`` and ``n_relax`` are those of the gradient; None takes its defaults. ``options``
    are further settings of the two as pairs of name and value. ``centred``, ``weight_decay``, ``l1``,
    ``l1_group`` and ``clip`` are those of `train`. ``schedule`` says how the learning rate falls over a run:
    "constant", "linear", "cosine", or with numbers as in "linear(end=0.0001)"; its first rate is
    ``learning_rate``.
    """

    learning_rate: float
    optimizer: str = "adam"
    momentum: float = 0.0
    batch_size: int | None = None
    gradient: str = "exact"
    n_chains: int | None = None
    n_steps: int | None = None
    n_relax: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    centred: bool = False
    weight_decay: float = 0.0
    l1: float = 0.0
    l1_group: float = 0.0
    clip: float | None = None
    schedule: str = "constant"

    def __post_init__(self) -> None:
        as_positive(as_real(self.learning_rate, "learning_rate"), "learning_rate")
        for registry, argument in ((OPTIMIZERS, "optimizer"), (GRADIENTS, "gradient")):
            if getattr(self, argument) not in registry.names:
                registry.find(getattr(self, argument), argument)
        if self.batch_size is not None:
            as_count(self.batch_size, "batch_size", maximum=MOST_POINTS)
        if not 0.0 <= as_real(self.momentum, "momentum") < 1.0:
            raise ValueError(f"`momentum` must be at least 0 and below 1, got {self.momentum!r}.")
        object.__setattr__(self, "centred", as_flag(self.centred, "centred"))
        for name in PENALTIES:
            if getattr(self, name) is not None:
                value = as_positive(as_real(getattr(self, name), name), name, zero=name != "clip")
                object.__setattr__(self, name, float(value))
        if self.momentum and self.optimizer == "adam":
            raise ValueError("`momentum` is for the optimizer sgd; adam has its own.")
        if not isinstance(self.schedule, str):
            raise ValueError(f"`schedule` must be a text such as 'linear', got {shown(self.schedule)}.")
        first = read_schedule(self.schedule, "schedule", self.learning_rate).rate
        if first != self.learning_rate:
            raise ValueError(
                f"`schedule` must start at `learning_rate` = {self.learning_rate:g}, got {self.schedule!r}. "
                "Leave its first rate out."
            )
        self._settle_chains()
        for name, value in self.options:
            self._check_option(name, value)
        object.__setattr__(self, "options", tuple(sorted(self.options)))
        if self.options or ":" in self.gradient or ":" in self.optimizer:
            self.make_gradient()  # errors in the settings are reported before the first run
            self.make_optimizer()

    def _settle_chains(self) -> None:
        """Put numbers in place of None, and refuse numbers that the gradient has no use for."""
        settings: dict[str, inspect.Parameter] = {}
        if self.gradient not in _FIRST:
            settings = GRADIENTS.settings(self.gradient, "gradient")
        for name, (minimum, maximum, default) in _CHAINS.items():
            value = getattr(self, name)
            if value is None:
                own = settings[name].default if name in settings else default
                object.__setattr__(self, name, default if own is inspect.Parameter.empty else own)
            elif self.gradient not in _FIRST and name not in settings:
                raise ValueError(
                    f"`{name}` is not a setting of the gradient {self.gradient!r}; it has "
                    f"{', '.join(settings) or 'none'}{near_names(name, [*settings], most_listed=0)}."
                )
            as_count(getattr(self, name), name, minimum=minimum, maximum=maximum)

    def _check_option(self, name: str, value: Any) -> None:
        known = [field.name for field in fields(self) if field.name != "options"]
        of_gradient = GRADIENTS.settings(self.gradient, "gradient")
        of_optimizer = OPTIMIZERS.settings(self.optimizer, "optimizer")
        taken = {*known, *_OWN} - set(PENALTIES)
        own = [key for key in (*of_gradient, *of_optimizer) if key not in taken]
        if name not in own:
            raise ValueError(
                f"`[learning] {name}` is not a known key; known are {', '.join(known)}, and those of the "
                f"gradient {self.gradient!r} and the optimizer {self.optimizer!r}: "
                f"{', '.join(own) or 'none'}."
            )
        if not isinstance(value, (str, bool, int, float, tuple)):
            raise ValueError(f"`{name}` must be a number, a text, true, false or a list, got {shown(value)}.")

    @property
    def penalties(self) -> dict[str, Any]:
        """What `train` takes off weights and gradients, by name."""
        return {name: getattr(self, name) for name in PENALTIES}

    def make_gradient(self) -> Gradient:
        """The gradient of a run, with one thread."""
        settings = GRADIENTS.settings(self.gradient, "gradient")
        named = {name: getattr(self, name) for name in _CHAINS} | _OWN | dict(self.options)
        given = {name: value for name, value in named.items() if name in settings}
        return GRADIENTS.make(self.gradient, "gradient", given)

    def make_optimizer(self) -> Optimizer:
        """The optimizer of a run."""
        settings = OPTIMIZERS.settings(self.optimizer, "optimizer")
        given = {name: value for name, value in self.options if name in settings}
        if self.momentum or "momentum" in settings:
            given["momentum"] = self.momentum
        rate: LearningRate = self.learning_rate
        if self.schedule != "constant":
            rate = read_schedule(self.schedule, "schedule", self.learning_rate)
        return OPTIMIZERS.make(self.optimizer, "optimizer", given | {"learning_rate": rate})
