"""Does the paper's scale win? The runs of the study of starts, put together and judged.

The specifications ``specs/*.toml`` say which runs belong to the study. Their records are looked up by
digest in all stores of a folder and of its folder ``win``, so that a run of the paper's own sweeps counts
where it is the same one, or the same but for the effort of estimating ln Z. Nothing here is filled in: a
start without runs is left out.

A *rule* is a start that one could choose before seeing any result (beta_max/sqrt(2) was made one when the
grid was known). The *best gain of the grid* is chosen afterwards, in every setting anew: out of reach, a
measure of what there was to win.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.sweeps.groups import (
    BETA_MAX,
    Runs,
    Setting,
    Start,
    Trial,
    group_runs,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.spec import MeasurementSpec, Run, Spec
from paramagnet.sweeps.starts import DATA, OURS, OWN
from paramagnet.sweeps.store import RunRecord, Store
from paramagnet.units import FloatArray
from studies.starts.specs_of_study import STUDY, read_study_spec
from studies.starts.study_plan import STUDY_EXACT, STUDY_RATES, STUDY_SAMPLED, STUDY_SPARSE

HALF, ROOT = Start(gain=0.5), Start(gain=0.7071)
DATASET_FREE = (BETA_MAX, ROOT, HALF, *map(Start, ("xavier", "he", "lecun", "hinton", "d-wave")))
HINTON_DATA = Start("hinton" + DATA)
WITH_DATA = (
    Start(OURS + DATA),
    Start(OURS + OWN),
    Start(OURS + DATA, ROOT.gain),
    Start(OURS + DATA, 0.5),
    HINTON_DATA,
    Start("hopfield"),
)
RULES = (*DATASET_FREE, *WITH_DATA)
Epoch = int | None
SHARE = 0.9  # of the way from independent units to the best end, for the time to get there


@dataclass(frozen=True, eq=False)
class Contest:
    """One setting of the study: the runs of every start, all else equal."""

    spec: Spec
    setting: Setting
    runs: Mapping[Start, Sequence[RunRecord]]

    @property
    def epochs(self) -> tuple[int, ...]:
        """The epochs at which starts are compared."""
        return tuple(sorted(self.spec.measurement.epochs))

    @property
    def rules(self) -> tuple[Start, ...]:
        """The rules that have runs."""
        return tuple(start for start in RULES if start in self.runs)

    @property
    def complete(self) -> bool:
        """Whether every rule has runs."""
        return len(self.rules) == len(RULES)

    @property
    def gains(self) -> tuple[Start, ...]:
        """The grid, as far as it has runs."""
        grid = (Start(gain=gain) for gain in sorted(self.spec.gains))
        return tuple(start for start in grid if start in self.runs)

    @property
    def label(self) -> str:
        """In a few words."""
        rate = f", rate {self.spec.learning.learning_rate:g}" if self.is_about_rates else ""
        return f"{self.setting.dataset} {self.setting.hidden}, {self.setting.label}{rate}"

    @property
    def is_about_rates(self) -> bool:
        """Whether it repeats another setting with another learning rate."""
        return "_rate" in self.spec.name

    @property
    def n_trials(self) -> tuple[int, int]:
        """The smallest and the largest number of trials of a rule."""
        counts = [len(self.runs[rule]) for rule in self.rules]
        return min(counts), max(counts)

    def values(self, start: Start, epoch: Epoch, field: str = "log_likelihood") -> dict[Trial, float]:
        """The values of a start by trial; ``epoch`` None takes the start's own best one, see `best_epoch`."""
        return values_at(self.runs[start], self.best_epoch(start, field) if epoch is None else epoch, field)

    def mean(self, start: Start, epoch: Epoch, field: str = "log_likelihood") -> float:
        """The mean over trials."""
        return summarize_trials(self.values(start, epoch, field).values()).mean

    def best_epoch(self, start: Start, field: str = "log_likelihood") -> int:
        """Where the mean over trials is largest: with held-out points, where one would have stopped."""
        epochs = sorted({epoch for record in self.runs[start] for epoch in record.epochs})
        means = [self.mean(start, epoch, field) for epoch in epochs]
        return epochs[int(np.nanargmax(means))] if np.isfinite(means).any() else epochs[-1]

    def best(self, starts: Iterable[Start], epoch: Epoch, field: str = "log_likelihood") -> Start | None:
        """The start with the largest mean; None where there is none."""
        means = {start: self.mean(start, epoch, field) for start in starts if start in self.runs}
        finite = {start: mean for start, mean in means.items() if math.isfinite(mean)}
        return max(finite, key=lambda start: finite[start]) if finite else None

    def gap(self, first: Start, second: Start, epoch: Epoch, field: str = "log_likelihood") -> Gap:
        """The first minus the second over the trials that both have, with its standard error.

        That is the error of the paired difference over trials; with a single trial, or where it is larger,
        that of the two estimates of ln Z. A start has no error against itself.
        """
        paired = paired_difference(self.values(first, epoch, field), self.values(second, epoch, field))
        squares = 0.0
        for start in (first, second) if first != second else ():
            errors = values_at(
                self.runs[start], self.best_epoch(start, field) if epoch is None else epoch, "error"
            )
            squares += sum(error**2 for error in errors.values()) / max(len(errors), 1) ** 2
        error = max(paired.error if paired.n_finite > 1 else 0.0, math.sqrt(squares))
        return Gap(paired.mean, error, paired.n_finite)


@dataclass(frozen=True)
class Gap:
    """A difference in nats per point, its standard error, and the number of trials behind it."""

    value: float
    error: float
    n_trials: int

    @property
    def tied(self) -> bool:
        """Whether a start that is behind by this much is within one standard error of the other."""
        return self.value >= -self.error


@dataclass(frozen=True)
class Placing:
    """Where a start stands in a contest: the gap to the best of some starts."""

    contest: Contest
    start: Start
    best: Start
    gap: Gap

    @property
    def is_best(self) -> bool:
        """Whether it is the one."""
        return self.start == self.best

    @property
    def wins(self) -> bool:
        """Whether it is the best, or within one standard error of it."""
        return self.is_best or self.gap.tied


def read_study(folder: str | Path, specs: Sequence[str] | None = None) -> tuple[Contest, ...]:
    """The settings of the study that have runs, in the order of the plan."""
    records = _read_all(folder)
    contests: list[Contest] = []
    for name in (*STUDY_EXACT, *STUDY_SAMPLED, *STUDY_RATES, *STUDY_SPARSE) if specs is None else specs:
        contests += _contests(read_study_spec(name), records)
    return tuple(contests)


def records_of(name: str, folder: str | Path) -> list[RunRecord]:
    """The records of one specification of the study, those of the paper's own sweeps among them."""
    found = _find(read_study_spec(name), _read_all(folder))
    return [replace(record, sweep=name, table="") for record in found]


def missing_runs(spec: Spec, runs: Iterable[Run], folder: str | Path) -> list[Run]:
    """Those of the runs of a specification of the study that the paper's own sweeps have not done."""
    known = {record.digest for path in Path(folder).glob("*.jsonl") for record in Store(path).records()}
    return [run for run in runs if known.isdisjoint(_digests(spec, run))]


def _read_all(folder: str | Path) -> dict[str, RunRecord]:
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"`results` must be a folder with records, got {str(path)!r}.")
    stores = (*sorted(path.glob("*.jsonl")), *sorted((path / STUDY).glob("*.jsonl")))
    return {record.digest: record for store in stores for record in Store(store).records()}


def _find(spec: Spec, records: Mapping[str, RunRecord]) -> Iterator[RunRecord]:
    """Its records, as if all had been measured with its own settings, which older ones do not know."""
    for run in spec.runs():
        digests = [digest for digest in _digests(spec, run) if digest in records]
        if digests:
            yield replace(records[digests[0]], digest=run.digest, settings=spec.settings)


def _digests(spec: Spec, run: Run) -> tuple[str, ...]:
    """Under which the run may be found: its own, after that of the same learning in the paper's own sweep."""
    measurement = _paper_measurement(spec)
    if measurement is None:
        return (run.digest,)
    return replace(run, measurement=measurement).digest, run.digest


@lru_cache(maxsize=64)
def _paper_measurement(spec: Spec) -> MeasurementSpec | None:
    """How the paper's sweep of the same name measures, if at the same epochs; the effort may differ."""
    name = spec.name.removeprefix(f"{STUDY}/")
    if name not in paper_specs():
        return None
    paper, ours = find_spec(name).measurement, spec.measurement
    return paper if (paper.epochs, paper.all_epochs) == (ours.epochs, ours.all_epochs) else None


def _contests(spec: Spec, records: Mapping[str, RunRecord]) -> Iterable[Contest]:
    runs: Runs = group_runs(_find(spec, records))
    for setting in sorted(runs, key=lambda setting: (-setting.c, setting.n_hidden)):
        if BETA_MAX in runs[setting] and len(runs[setting]) > 1:
            yield Contest(spec, setting, _with_shared_trials(runs[setting]))


def _with_shared_trials(runs: Mapping[Start, Sequence[RunRecord]]) -> Mapping[Start, Sequence[RunRecord]]:
    """The runs of those trials that all rules have, so that all means are over the same trials."""
    trials = [{record.trial for record in runs[rule]} for rule in RULES if rule in runs]
    shared = set.intersection(*trials)
    chosen = {start: [run for run in part if run.trial in shared] for start, part in runs.items()}
    return {start: part for start, part in chosen.items() if part} if shared else runs


def place(
    contest: Contest, rules: Sequence[Start], epoch: Epoch, field: str = "log_likelihood"
) -> dict[Start, Placing]:
    """Where each of the rules stands among them."""
    present = [rule for rule in rules if rule in contest.runs]
    best = contest.best(present, epoch, field)
    if best is None:
        return {}
    return {rule: Placing(contest, rule, best, contest.gap(rule, best, epoch, field)) for rule in present}


def mean_curve(contest: Contest, start: Start) -> tuple[FloatArray, FloatArray]:
    """Epochs and the mean training log-likelihood over trials."""
    epochs = sorted({epoch for record in contest.runs[start] for epoch in record.epochs})
    return np.array(epochs, dtype=float), np.array([contest.mean(start, epoch) for epoch in epochs])


def epochs_to_reach(epochs: FloatArray, values: FloatArray, level: float) -> float:
    """When a curve first reaches a level, linear between two measurements; inf where it does not."""
    above = np.flatnonzero(values >= level)
    if not above.size:
        return math.inf
    k = int(above[0])
    if k == 0:
        return float(epochs[0])
    share = (level - values[k - 1]) / (values[k] - values[k - 1])
    return float(epochs[k - 1] + share * (epochs[k] - epochs[k - 1]))


def time_to(contest: Contest, start: Start, level: float) -> float:
    """Epochs until the mean curve of a start reaches a level."""
    return epochs_to_reach(*mean_curve(contest, start), level)


def level_of_beta_max(contest: Contest) -> float:
    """What the paper's start has in the end."""
    return contest.mean(BETA_MAX, contest.epochs[-1])


def level_of_share(contest: Contest) -> float:
    """A share of the way from independent units with the data's means to the best end of any rule."""
    bottom = level_of_independence(contest)
    return bottom + SHARE * learnable(contest, contest.epochs[-1])


def level_of_independence(contest: Contest, field: str = "log_likelihood") -> float:
    """What independent units with the data's means have: weights of 0.01 change little of it."""
    return contest.mean(HINTON_DATA, 0, field) if HINTON_DATA in contest.runs else math.nan


def learnable(contest: Contest, epoch: Epoch, field: str = "log_likelihood") -> float:
    """How far the best rule gets from there."""
    best = contest.best(contest.rules, epoch, field)
    top = math.nan if best is None else contest.mean(best, epoch, field)
    return top - level_of_independence(contest, field)
