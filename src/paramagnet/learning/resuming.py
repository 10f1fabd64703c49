"""Whether a run may go on with a state: settings as texts in the state, compared with those of the run.

A checkpoint holds texts only; nothing is imported or made from them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from paramagnet._callers import caller_level
from paramagnet.learning.optimizers import Optimizer
from paramagnet.learning.schedule import describe_rate, is_named
from paramagnet.sampling.devices import KERNELS

SUMS_BEFORE = "lookup-1"  # the order of sums of sampled runs whose checkpoints do not name it
START = ", start "  # behind it, the order of the sweeps before the first update, where that is another one
# Settings that are named only where they differ from these.
DEFAULTS = {"centred": "False", "sample_weight": "None", "l1": "0.0", "l1_group": "0.0", "clip": "None"}
NO_MATTER = ("n_threads", "force")  # settings that do not change results
_RATE = "\0"  # where the learning rate goes
_FINGERPRINT = re.compile(r"\b[0-9a-f]{64}\b")


class OrderOfSumsWarning(UserWarning):
    """A run goes on with kernels that add in another order than those it was made with."""


def describe(settings: Any) -> str:
    """A gradient or an optimizer in words: the name of its class, and its fields if it is a dataclass."""
    return "".join(_describe_around_rate(settings))


def _describe_around_rate(settings: Any) -> tuple[str, str, str]:
    """The description in three parts; the second one is the learning rate, empty where there is none."""
    rate = describe_rate(settings.learning_rate) if hasattr(settings, "learning_rate") else ""
    text = repr(settings)
    if is_dataclass(settings):
        names = [field.name for field in fields(settings) if field.compare and field.name not in NO_MATTER]
        values = [f"{n}={_RATE if n == 'learning_rate' else repr(getattr(settings, n))}" for n in names]
        text = type(settings).__name__ + (f"({', '.join(values)})" if values else "")
    if rate and _RATE not in text:
        text += f", learning_rate={_RATE}"
    if " object at 0x" in text:
        raise ValueError(
            f"The settings of {type(settings).__name__} must be shown by their values, because a checkpoint "
            f"compares them, got {text}. Make it, and what it holds, a dataclass, or give it a `__repr__`."
        )
    before, _, after = text.partition(_RATE)
    return before, rate, after


def check_same_run(
    earlier: Mapping[str, str], now: Mapping[str, str], optimizer: Optimizer, *, same_schedule: bool
) -> None:
    """An error if the settings of a state, ``earlier``, are not those of the run that is to go on with it."""
    # Older checkpoints do not hold these, and runs at the defaults do not say so.
    earlier = {"device": KERNELS, "sums": SUMS_BEFORE, **DEFAULTS, **earlier}
    earlier = {"guard": "False", "early_stopping": "None", **earlier}
    now = {**DEFAULTS, **now}
    sums = [settings.get("sums", "").partition(START)[0] for settings in (earlier, now)]
    if "sums" in now and earlier["device"] == KERNELS and sums[0] != sums[1]:
        warnings.warn(
            f"The run to go on with was made with another order of sums ({sums[0]}, now "
            f"{sums[1]}). It goes on with the same distribution of chains, but not bit for bit as it "
            "would have.",
            OrderOfSumsWarning,
            stacklevel=caller_level(),
        )
    earlier["sums"] = now.get("sums", "")
    before, rate, after = _describe_around_rate(optimizer)
    text = earlier.get("optimizer", "")
    if rate and text.startswith(before) and text.endswith(after) and len(text) >= len(before + after):
        rates = text[len(before) : len(text) - len(after)], rate
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
