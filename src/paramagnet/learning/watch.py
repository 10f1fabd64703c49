"""What a run decides about itself, as part of its state: lowered rates, the best machine, the planned length.

All of it is written to checkpoints, so that a resumed run repeats every decision bit for bit. Runs that
decide nothing have none, and their checkpoints stay as they were.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paramagnet.units import FloatArray

_PREFIX = "watch."  # of the names of the arrays in a checkpoint
_MACHINES = ("sound", "best", "reference")
_RETURNS = "returns"  # what the run went back to after each failure: update and log-likelihood
LARGE = 1 << 22  # parameters (32 MB): a larger machine is kept in a file


class TrainingWarning(UserWarning):
    """Training went wrong, or its result is worse than what was there before; the text names the remedy."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A machine that a run had: its parameters, and its log-likelihood ``value`` in nats per point.

    ``log_z`` is the ``ln Z`` that the value rests on, ``error`` the standard error of both.
    """

    parameters: FloatArray
    update: int
    epoch: int
    value: float
    log_z: float
    error: float

    def facts(self) -> dict[str, float]:
        """All but the parameters."""
        names = ("update", "epoch", "value", "log_z", "error")
        return {name: getattr(self, name) for name in names}


def set_aside(kept: Kept) -> Kept:
    """``kept`` with the parameters of a large machine in a temporary file, which takes no memory until it is
    read, and which ends with its last reader; as it is where the machine is small or the file has no room.
    """
    parameters = kept.parameters
    if parameters.size < LARGE or isinstance(parameters.base, np.memmap):
        return kept
    try:
        with tempfile.TemporaryFile(prefix="paramagnet-") as file:
            parameters.tofile(file)
            file.flush()
            mapped = np.memmap(file, np.float64, mode="r", shape=parameters.shape)
    except OSError:
        return kept
    return replace(kept, parameters=np.asarray(mapped))


def in_memory(parameters: FloatArray) -> FloatArray:
    """Parameters that an update may start from: a copy of those that were set aside."""
    if not isinstance(parameters.base, np.memmap):
        return parameters
    copy = np.array(parameters)
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True)
class Check:
    """One check of the guard: the log-likelihood of training points with its error, the factor on the
    learning rate from then on, and whether the machine had failed.

    After a failure ``back_to`` is the update of the machine that the run went back to, and ``before`` is the
    log-likelihood of that machine; None otherwise.
    """

    update: int
    log_likelihood: float
    error: float
    rate_factor: float
    failed: bool
    back_to: int | None = None
    before: float | None = None

    @property
    def columns(self) -> tuple[float, ...]:
        """What every check has, as numbers."""
        return float(self.update), self.log_likelihood, self.error, self.rate_factor, float(self.failed)


@dataclass(frozen=True, eq=False)
class Watch:
    """The decisions of a run.

    ``n_updates`` and ``epochs`` are the planned length, where a schedule or a budget in seconds needed it;
    ``guard`` are the settings of the guard, ``rate_factor`` is its factor on the learning rate, ``checks``
    are its checks and ``sound`` is the best machine that it saw. ``best`` is the machine with the best
    measurement, ``reference`` the one that early stopping compares with, ``n_misses`` the number of
    measurements since then, and ``stopped`` says that there were too many.
    """

    n_updates: int | None = None
    epochs: int | None = None
    guard: Mapping[str, Any] | None = None
    rate_factor: float = 1.0
    checks: tuple[Check, ...] = ()
    sound: Kept | None = None
    best: Kept | None = None
    reference: Kept | None = None
    n_misses: int = 0
    stopped: bool = False

    def pack(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Arrays and JSON for a checkpoint."""
        arrays, facts = {}, {name: getattr(self, name) for name in ("n_updates", "epochs", "rate_factor")}
        facts |= {"n_misses": self.n_misses, "stopped": self.stopped}
        facts["guard"] = None if self.guard is None else dict(self.guard)
        for name in _MACHINES:
            kept: Kept | None = getattr(self, name)
            if kept is not None:
                arrays[_PREFIX + name], facts[name] = kept.parameters, kept.facts()
        if self.checks:
            rows = [check.columns for check in self.checks]
            arrays[f"{_PREFIX}checks"] = np.array(rows, dtype=np.float64)
        if any(check.failed for check in self.checks):
            facts[_RETURNS] = [[check.back_to, check.before] for check in self.checks if check.failed]
        return arrays, facts

    @classmethod
    def unpack(cls, arrays: Mapping[str, FloatArray], facts: Mapping[str, Any], size: int) -> Watch:
        """The reverse of `pack`, for machines of ``size`` parameters."""
        machines: dict[str, Any] = {}
        for name in _MACHINES:
            if name in facts:
                parameters = arrays[_PREFIX + name]
                if parameters.shape != (size,) or not np.isfinite(parameters).all():
                    raise ValueError(f"the machine {name!r} must have {size} finite numbers")
                parameters.setflags(write=False)
                machines[name] = Kept(parameters, **facts[name])
        checks = [
            Check(int(row[0]), float(row[1]), float(row[2]), float(row[3]), bool(row[4]))
            for row in arrays.get(f"{_PREFIX}checks", ())
        ]
        failed = [index for index, check in enumerate(checks) if check.failed]
        returns = facts.get(_RETURNS, [_best_before(checks[:index]) for index in failed])
        for index, (update, value) in zip(failed, returns, strict=True):
            checks[index] = replace(checks[index], back_to=int(update), before=float(value))
        plain = {name: facts[name] for name in facts if name not in (*_MACHINES, _RETURNS)}
        return cls(**plain, checks=tuple(checks), **machines)


def _best_before(checks: Sequence[Check]) -> tuple[int, float]:
    """The best of some checks: where checkpoints did not keep yet what a run went back to."""
    sound = [check for check in checks if not check.failed]
    if not sound:
        raise ValueError("the first check of the guard cannot be a failure")
    best = max(sound, key=lambda check: check.log_likelihood)
    return best.update, best.log_likelihood
