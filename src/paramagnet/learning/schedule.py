"""Learning-rate schedules with a name and numbers, so that a checkpoint can say which one a run follows.

A schedule is called with the index of an update, 0 for the first, and returns the learning rate. Any function
does that, too; but what a function computes cannot be read from a checkpoint.

A schedule may leave its number of updates open: training then closes it with the number of updates that it
plans, once, and keeps that number in the state. Schedules count updates, never seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from paramagnet._arrays import shown
from paramagnet._checks import as_count, as_positive, as_real, shown_near

LearningRate = float | str | Callable[[int], float]  # a text is that of a `Schedule`

# The numbers that each kind has beside `rate`.
_NUMBERS = {
    "constant": (),
    "linear": ("end", "n_updates"),
    "cosine": ("end", "n_updates"),
    "step": ("factor", "n_updates"),
}
END_SHARE = 0.02  # of the first learning rate, where a falling schedule names no end
_TEXT = re.compile(r"([a-z]+)(?:\(([^()]*)\))?")  # "linear", "linear(0.001, end=0.0001)"
_NAMED = re.compile(rf"Schedule\(kind='(?:{'|'.join(_NUMBERS)})', .*\)")


@dataclass(frozen=True, repr=False)
class Schedule:
    """How the learning rate depends on the index ``t`` of the update, 0 for the first.

    ::

        constant    rate
        linear      rate + (end - rate) t / n_updates                        then end
        cosine      end + (rate - end) (1 + cos(pi t / n_updates)) / 2       then end
        step        rate factor**floor(t / n_updates)

    Wherever a learning rate is asked for, a text does as well: ``"linear"``, ``"linear(0.003)"`` or
    ``"step(0.003, factor=0.5, n_updates=1000)"``.

    Parameters
    ----------
    kind : str
        "constant", "linear", "cosine" or "step".
    rate : float
        The learning rate of the first update, positive.
    end : float, optional
        The learning rate from update ``n_updates`` on, zero or positive ("linear", "cosine"); None is 0.02 of
        ``rate``.
    factor : float, optional
        What the rate is multiplied by every ``n_updates``, above 0 and at most 1 ("step").
    n_updates : int, optional
        Number of updates; an epoch has one for each batch. With "linear" and "cosine" None takes all updates
        that a run plans when it starts.
    """

    kind: str
    rate: float
    end: float | None = None
    factor: float | None = None
    n_updates: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in _NUMBERS:
            known = ", ".join(map(repr, _NUMBERS))
            raise ValueError(f"`kind` must be one of {known}, got {shown_near(self.kind, _NUMBERS)}.")
        for name in ("end", "factor", "n_updates"):
            value = getattr(self, name)
            if name in _NUMBERS[self.kind] and value is None and "end" not in _NUMBERS[self.kind]:
                raise ValueError(f"`{name}` must be given for a schedule of kind {self.kind!r}, got None.")
            if name not in _NUMBERS[self.kind] and value is not None:
                raise ValueError(
                    f"`{name}` must be left out for a schedule of kind {self.kind!r}, got {shown(value)}."
                )
        self._keep("rate", float(as_positive(as_real(self.rate, "rate"), "rate")))
        if self.end is None and "end" in _NUMBERS[self.kind]:
            self._keep("end", END_SHARE * self.rate)
        elif self.end is not None:
            self._keep("end", float(as_positive(as_real(self.end, "end"), "end", zero=True)))
        if self.factor is not None:
            self._keep("factor", as_real(self.factor, "factor"))
            if not 0.0 < self.factor <= 1.0:
                raise ValueError(f"`factor` must be above 0 and at most 1, got {self.factor!r}.")
        if self.n_updates is not None:
            self._keep("n_updates", as_count(self.n_updates, "n_updates"))

    def _keep(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    @property
    def open(self) -> bool:
        """Whether the number of updates is left to the run."""
        return self.n_updates is None and "n_updates" in _NUMBERS[self.kind]

    def over(self, n_updates: int) -> Schedule:
        """The schedule with the number of updates of a run, if it was left open; else as it is.

        Parameters
        ----------
        n_updates : int
            Number of updates that the run plans.

        Returns
        -------
        Schedule
            A schedule that can be called.
        """
        n_updates = as_count(n_updates, "n_updates")
        return replace(self, n_updates=n_updates) if self.open else self

    def __repr__(self) -> str:
        names = [name for name in ("rate", *_NUMBERS[self.kind]) if getattr(self, name) is not None]
        numbers = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Schedule(kind={self.kind!r}, {numbers})"

    def __call__(self, update: int) -> float:
        """The learning rate of the update with index ``update``."""
        update = as_count(update, "update", minimum=0)
        if self.open:
            raise ValueError(
                "`n_updates` must be known before a rate is asked for, got None. Training closes such a "
                "schedule with the updates that it plans; `over(n_updates)` does the same."
            )
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


def match_schedule(text: str, argument: str) -> re.Match[str]:
    """The name of a schedule in a text, and what stands in brackets behind it; errors name ``argument``."""
    match = _TEXT.fullmatch(text.strip())
    if match is None or match[1] not in _NUMBERS:
        known = ", ".join(map(repr, _NUMBERS))
        others = "a number, a `Schedule`, a function, or " if argument == "learning_rate" else ""
        raise ValueError(
            f"`{argument}` must be {others}the name of a schedule, one of {known}, with numbers in brackets "
            f"if need be ('linear(0.001)'), got {shown_near(text, _NUMBERS)}."
        )
    return match


def read_schedule(text: str, argument: str, rate: float | None = None) -> Schedule:
    """A schedule from a text such as "linear", "linear(0.003)" or "cosine(rate=0.003, end=0)".

    ``rate`` is the learning rate where the text names none. Errors name ``argument``.
    """
    match = match_schedule(text, argument)
    given: dict[str, float] = {}
    for index, part in enumerate(match[2].split(",") if match[2] else []):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals and index == 0:
            key, value = "rate", key
        if key in given:
            raise ValueError(f"`{argument}` must have {key} only once in its brackets, got {shown(text)}.")
        try:
            given[key] = int(value) if key == "n_updates" else float(value)
        except ValueError:
            raise ValueError(f"`{argument}` must have numbers in its brackets, got {shown(text)}.") from None
        if key not in ("rate", *_NUMBERS[match[1]]):
            known = ", ".join(("rate", *_NUMBERS[match[1]]))
            raise ValueError(f"`{argument}` must have only {known} in its brackets, got {shown(text)}.")
    if rate is not None:
        given.setdefault("rate", rate)
    if "rate" not in given:
        raise ValueError(
            f"`{argument}` must say the learning rate of the first update, as in '{match[1]}(0.01)', got "
            f"{shown(text)}."
        )
    if match[1] == "step" and not {"factor", "n_updates"}.issubset(given):
        raise ValueError(
            f"`{argument}` must have factor and n_updates in its brackets, as in 'step(factor=0.5, "
            f"n_updates=1000)', got {shown(text)}."
        )
    n_updates = given.pop("n_updates", None)
    return Schedule(match[1], **given, n_updates=None if n_updates is None else int(n_updates))


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
