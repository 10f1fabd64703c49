"""The runs of one setting: their values over trials, with mean and standard deviation.

A setting is a data set with a machine (sizes, unit types, hidden bias); a start is a scheme with its gain.
Runs are told apart by their digest. The trials of two starts are paired by their number: those runs saw the
same points in the same order, from the same normal draws, scaled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paramagnet.sweeps.store import RunRecord

GAINS = (0.25, 0.5, 1.0, 2.0, 4.0)
RIVALS = ("xavier", "he", "lecun", "hinton")
_OURS = "layer-correlation"


@dataclass(frozen=True, order=True)
class Setting:
    """A data set and the machine that learns it."""

    dataset: str
    n_visible: int
    n_hidden: int
    visible: str
    hidden: str
    c: float

    @property
    def alpha(self) -> float:
        """The ratio of the layer sizes."""
        return self.n_hidden / self.n_visible

    @property
    def label(self) -> str:
        """A short name without the data set."""
        return f"α = {self.alpha:.3g}, c = {self.c:g}"


@dataclass(frozen=True, order=True)
class Start:
    """How the weights were drawn."""

    scheme: str = _OURS
    gain: float = 1.0

    @property
    def label(self) -> str:
        """The paper's name of the start, or the scheme's own."""
        scheme, plus, own = self.scheme.partition("+data")
        biases = " + data" if plus else ""
        if scheme != _OURS:
            return f"{scheme}{biases}" if self.gain == 1.0 else f"{self.gain:g} {scheme}{biases}"
        scale = "data's β_max" if own else "β_max"
        if 0.0 < self.gain < 1.0 and (1.0 / self.gain).is_integer():
            return f"{scale}/{1.0 / self.gain:g}{biases}"
        if abs(self.gain - math.sqrt(0.5)) < 1e-4:
            return f"{scale}/√2{biases}"
        return f"{scale}{biases}" if self.gain == 1.0 else f"{self.gain:g} {scale}{biases}"


BETA_MAX = Start()
Trial = tuple[int, int]  # the seed of the sweep, and the number of the trial
Runs = Mapping[Setting, Mapping[Start, Sequence[RunRecord]]]


def setting_of(record: RunRecord) -> Setting:
    """The setting of a run."""
    return Setting(
        record.dataset, record.n_visible, record.n_hidden, record.visible, record.hidden, float(record.c)
    )


def group_runs(records: Iterable[RunRecord]) -> dict[Setting, dict[Start, list[RunRecord]]]:
    """Runs by setting and start, each digest once, in the order of the trials."""
    groups: dict[Setting, dict[Start, list[RunRecord]]] = {}
    seen: set[str] = set()
    for record in sorted(records, key=lambda run: (run.trial, run.digest)):
        if record.digest not in seen:
            seen.add(record.digest)
            start = Start(record.scheme, float(record.gain))
            groups.setdefault(setting_of(record), {}).setdefault(start, []).append(record)
    return groups


def values_at(records: Iterable[RunRecord], epoch: int, field: str = "log_likelihood") -> dict[Trial, float]:
    """The values of ``field`` after ``epoch``, by trial; runs that were not measured there are left out."""
    found = {}
    for record in records:
        if epoch in record.epochs:
            found[record.seed, record.trial] = float(getattr(record, field)[record.epochs.index(epoch)])
    return found


@dataclass(frozen=True)
class TrialSummary:
    """Mean and standard deviation (``ddof = 1``; NaN for a single trial) of the finite values.

    ``n_failed`` of the ``n_trials`` were not finite, and count for neither.
    """

    mean: float = math.nan
    std: float = math.nan
    n_trials: int = 0
    n_failed: int = 0

    @property
    def n_finite(self) -> int:
        """The number of trials behind the mean."""
        return self.n_trials - self.n_failed

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.std / math.sqrt(self.n_finite) if self.n_finite > 1 else math.nan


def summarize_trials(values: Iterable[float]) -> TrialSummary:
    """Mean, standard deviation and number of values."""
    array = np.array(list(values), dtype=np.float64)
    finite = array[np.isfinite(array)]
    if not finite.size:
        return TrialSummary(n_trials=array.size, n_failed=array.size)
    std = float(finite.std(ddof=1)) if finite.size > 1 else math.nan
    return TrialSummary(float(finite.mean()), std, array.size, array.size - finite.size)


def paired_difference(first: Mapping[Trial, float], second: Mapping[Trial, float]) -> TrialSummary:
    """The difference of two starts over the trials that both have."""
    return summarize_trials(first[trial] - second[trial] for trial in sorted(first.keys() & second.keys()))
