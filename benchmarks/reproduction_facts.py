"""Numbers that the records of the reproduction hold, for `findings` and `differences_tables`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from paramagnet.reproduction.agreement import FEWEST_TRIALS, Verdict
from paramagnet.reproduction.draws import Components, level_components
from paramagnet.reproduction.paper import read_log_likelihoods
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.reproduction.plan import TOY_DATASETS
from paramagnet.reproduction.report import judge_results
from paramagnet.sweeps.groups import (
    BETA_MAX,
    GAINS,
    Setting,
    Start,
    group_runs,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.results_table import Column
from paramagnet.sweeps.store import RunRecord

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
NAMES = {"toy": "the toy data", "drybean": "Dry Bean", "ulc": "Urban Land Cover", "mnist": "MNIST"}
PLACES = {1: "best", 2: "second", 3: "third", 4: "fourth", 5: "last"}
SCALED = ("xavier", "lecun", "he")  # schemes for feed-forward networks


def holds(condition: bool, sentence: str) -> None:
    """Refuse records under which a sentence is not true."""
    if not condition:
        raise ValueError(f"The records no longer bear out the sentence: {sentence}")


def between(values: Iterable[float], digits: int = 2, unit: str = "") -> str:
    """The smallest and the largest, once if they print alike."""
    ordered = sorted(values)
    low, high = (f"{value:.{digits}f}" for value in (ordered[0], ordered[-1]))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def listed(words: Sequence[str]) -> str:
    """Words with commas, and the last with "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def trials_of(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


@dataclass(frozen=True)
class Facts:
    """What the records say, in numbers."""

    records: Sequence[RunRecord]

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        return judge_results(self.records)

    @cached_property
    def runs(self) -> dict[Setting, dict[Start, list[RunRecord]]]:
        return group_runs(record for record in self.records if record.table)

    @cached_property
    def last_epochs(self) -> dict[Setting, int]:
        found: dict[Setting, int] = {}
        for cell in read_log_likelihoods():
            setting = Setting(cell.dataset, cell.n_visible, cell.n_hidden, "spin", cell.hidden, cell.c)
            found[setting] = max(cell.epoch, found.get(setting, 0))
        return found

    def means(self, setting: Setting, field: str = "log_likelihood") -> dict[float, float]:
        """The means after the last epoch by gain; empty unless all five were run."""
        starts, epoch = self.runs.get(setting, {}), self.last_epochs[setting]
        found = {
            gain: summarize_trials(values_at(starts.get(Start(gain=gain), ()), epoch, field).values()).mean
            for gain in GAINS
        }
        return found if np.isfinite(list(found.values())).all() else {}

    @cached_property
    def complete(self) -> list[Setting]:
        """The settings in which all five gains were run."""
        return [setting for setting in self.last_epochs if self.means(setting)]

    def behind(self, setting: Setting, scheme: str) -> float:
        """The paired difference of a scheme to beta_max after the last epoch; NaN where it was not run."""
        starts, epoch = self.runs.get(setting, {}), self.last_epochs[setting]
        here, ours = (values_at(starts.get(start, ()), epoch) for start in (Start(scheme), BETA_MAX))
        return paired_difference(here, ours).mean

    def error_behind(self, setting: Setting, scheme: str) -> float:
        """The standard error of `behind`; NaN for one trial."""
        starts, epoch = self.runs.get(setting, {}), self.last_epochs[setting]
        here, ours = (values_at(starts.get(start, ()), epoch) for start in (Start(scheme), BETA_MAX))
        return paired_difference(here, ours).error

    def settings_by_trials(self, least: float, most: float) -> list[Setting]:
        """The complete settings whose gains have so many trials, by the one that has the fewest."""
        return [
            setting
            for setting in self.complete
            if least <= min(len(self.runs[setting][Start(gain=gain)]) for gain in GAINS) <= most
        ]

    def leads(self, setting: Setting) -> list[tuple[float, float]]:
        """How far beta_max is ahead of each other gain after the last epoch, and the standard error of that.

        With fewer than ten trials the error is from the paper's standard deviations.
        """
        starts, epoch = self.runs[setting], self.last_epochs[setting]
        printed = {
            cell.gain: cell.std
            for cell in read_log_likelihoods()
            if (cell.dataset, cell.n_hidden, cell.hidden, cell.c, cell.epoch)
            == (setting.dataset, setting.n_hidden, setting.hidden, setting.c, epoch)
        }
        found = []
        ours = values_at(starts[BETA_MAX], epoch)
        for gain in (gain for gain in GAINS if gain != BETA_MAX.gain):
            other = values_at(starts[Start(gain=gain)], epoch)
            gap, n = paired_difference(ours, other), min(len(ours), len(other))
            own = gap.error if n >= FEWEST_TRIALS else math.hypot(printed[1.0], printed[gain]) / math.sqrt(n)
            found.append((self.means(setting)[1.0] - self.means(setting)[gain], own))
        return found

    def best_epoch(self, setting: Setting, gain: float) -> tuple[int, float]:
        """The measured epoch with the highest mean on held-out points, and that mean."""
        part = self.runs[setting][Start(gain=gain)]
        means = {
            epoch: summarize_trials(values_at(part, epoch, "held_out").values()).mean
            for epoch in part[0].epochs
        }
        epoch = max(means, key=means.__getitem__)
        return epoch, means[epoch]

    def rivals(self, scheme: str, *datasets: str, sparse: bool | None = None) -> dict[Setting, float]:
        """`behind` for the settings of these data sets that have the scheme."""
        return {
            setting: value
            for setting in self.last_epochs
            if setting.dataset in datasets and sparse in (None, setting.c < 0.0)
            if np.isfinite(value := self.behind(setting, scheme))
        }

    @cached_property
    def level_components(self) -> dict[tuple[Start, Column], Components]:
        """Variance components of the log-likelihoods themselves in the cells of Tables 1 to 3."""
        found: dict[tuple[Start, Column], Components] = {}
        for name in TOY_DATASETS:
            spec = find_spec(name)
            part = (record for record in self.records if record.sweep == name)
            found |= {
                where: components
                for where, components in level_components(part, spec.data.datasets).items()
                if where[1].epoch in spec.measurement.epochs
            }
        return found
