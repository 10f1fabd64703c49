"""Learning-rate schedules with a name and numbers, so that a checkpoint can say which one a run follows.

A schedule is called with the index of an update, 0 for the first, and returns the learning rate. Any function
does that, too; but what a function computes cannot be read from a checkpoint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from paramagnet._arrays import shown
from paramagnet._checks import as_count, as_positive, as_real

LearningRate = float | Callable[[int], float]

# The numbers that each kind has beside `rate`.
_NUMBERS = {
    "constant": (),
    "linear": ("end", "n_updates"),
    "cosine": ("end", "n_updates"),
    "step": ("factor", "n_updates"),
}
_NAMED = re.compile(rf"Schedule\(kind='(?:{'|'.join(_NUMBERS)})', .*\)")


@dataclass(frozen=True, repr=False)
class Schedule:
    """How the learning rate depends on the index ``t`` of the update, 0 for the first.

    ::

        constant    rate
        linear      rate + (end - rate) t / n_updates                        then end
        cosine      end + (rate - end) (1 + cos(pi t / n_updates)) / 2       then end
        step        rate factor**floor(t / n_updates)

    Parameters
    ----------
    kind : str
        "constant", "linear", "cosine" or "step".
    rate : float
        The learning rate of the first update, positive.
    end : float, optional
        The learning rate from update ``n_updates`` on, zero or positive ("linear", "cosine").
    factor : float, optional
        What the rate is multiplied by every ``n_updates``, above 0 and at most 1 ("step").
    n_updates : int, optional
        Number of updates; an epoch has one for each batch.
    """

    kind: str
    rate: float
    end: float | None = None
    factor: float | None = None
    n_updates: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in _NUMBERS:
            known = ", ".join(map(repr, _NUMBERS))
            raise ValueError(f"`kind` must be one of {known}, got {shown(self.kind)}.")
        for name in ("end", "factor", "n_updates"):
            value = getattr(self, name)
            if name in _NUMBERS[self.kind] and value is None:
                raise ValueError(f"`{name}` must be given for a schedule of kind {self.kind!r}, got None.")
            if name not in _NUMBERS[self.kind] and value is not None:
                raise ValueError(
                    f"`{name}` must be left out for a schedule of kind {self.kind!r}, got {shown(value)}."
                )
        self._keep("rate", float(as_positive(as_real(self.rate, "rate"), "rate")))
        if self.end is not None:
            self._keep("end", float(as_positive(as_real(self.end, "end"), "end", zero=True)))
        if self.factor is not None:
            self._keep("factor", as_real(self.factor, "factor"))
            if not 0.0 < self.factor <= 1.0:
                raise ValueError(f"`factor` must be above 0 and at most 1, got {self.factor!r}.")
        if self.n_updates is not None:
            self._keep("n_updates", as_count(self.n_updates, "n_updates"))

    def _keep(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("rate", *_NUMBERS[self.kind]))
        return f"Schedule(kind={self.kind!r}, {numbers})"

    def __call__(self, update: int) -> float:
        """The learning rate of the update with index ``update``."""
        update = as_count(update, "update", minimum=0)
        if self.n_updates is None:
            return self.rate
        if self.factor is not None:
            return float(self.rate * self.factor ** (update // self.n_updates))
        assert self.end is not None
        if update >= self.n_updates:
            return self.end
        share = update / self.n_updates
        if self.kind == "linear":
            return self.rate + (self.end - self.rate) * share
        return self.end + (self.rate - self.end) * 0.5 * (1.0 + math.cos(math.pi * share))


def describe_rate(rate: LearningRate) -> str:
    """A learning rate as it is kept in a checkpoint: a number, a `Schedule`, or the name of a function.

    A constant schedule is its number.
    """
    if isinstance(rate, Schedule):
        return repr(rate.rate) if rate.kind == "constant" else repr(rate)
    return getattr(rate, "__qualname__", "schedule") if callable(rate) else repr(rate)


def is_named(text: str) -> bool:
    """Whether the text of `describe_rate` determines the learning rate; the name of a function does not."""
    return text[:1].isdigit() or _NAMED.fullmatch(text) is not None
