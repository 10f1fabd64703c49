"""Which initial weights suit a given data set: schemes and gains side by side, over the same trials.

In a trial all starts see the same points in the same order, the same random numbers of the chains, and the
same normal draws as weights, scaled; so differences are judged trial by trial.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from paramagnet._arrays import as_array, require_memory, shown
from paramagnet._checks import (
    MOST_SWEEPS,
    as_callable,
    as_count,
    as_flag,
    as_path,
    as_positive,
    as_real,
    near_files,
)
from paramagnet.data.binarize import check_method
from paramagnet.data.checks import as_points
from paramagnet.data.datasets import load_dataset
from paramagnet.learning.evaluation import LogZ, as_log_z
from paramagnet.learning.gradients.default import is_cheap
from paramagnet.schemes import SCHEMES
from paramagnet.sweeps.executors import local_executor
from paramagnet.sweeps.groups import (
    GAINS,
    RIVALS,
    Runs,
    Setting,
    Start,
    TrialSummary,
    group_runs,
    paired_difference,
    setting_of,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.learning_spec import LearningSpec
from paramagnet.sweeps.results_table import Column, ResultsTable, make_table
from paramagnet.sweeps.spec import DataSpec, MeasurementSpec, Spec
from paramagnet.sweeps.store import RunRecord, Store
from paramagnet.sweeps.sweep import SweepProgress, run_sweep
from paramagnet.theory.ensemble import as_bias
from paramagnet.units import as_binary

RECORDS = "records.jsonl"
QUANTILE = 0.975  # both tails together: 95 % confidence
_WAY = LogZ().marginalize, LogZ().start
_CURVE = 12  # epochs of the learning curve
_MOST_RUNS, _MOST_JOBS, _LARGEST_SEED = 10**6, 1024, 2**128 - 1


@dataclass(frozen=True)
class Standing:
    """One start: its weights' standard deviation, its log-likelihoods, and how far it is behind the best.

    ``behind`` is the best minus this one over the trials that both have.
    """

    start: Start
    sigma: float
    log_likelihood: TrialSummary
    held_out: TrialSummary
    behind: TrialSummary

    @property
    def equals_best(self) -> bool:
        """Whether it cannot be told from the best at 95 % confidence, by Student's distribution of the
        paired difference: 13 standard errors with two trials, 2.8 with five, 2 with many.

        With a single trial no two starts can be told apart.
        """
        behind = self.behind
        return behind.n_finite < 2 or behind.mean <= stdtrit(behind.n_finite - 1, QUANTILE) * behind.error


@dataclass(frozen=True, eq=False)
class InitializationComparison:
    """The result of a comparison: the starts from the best to the worst after ``epoch`` epochs.

    ``failures`` names the runs that diverged.
    """

    setting: Setting
    epoch: int
    standings: tuple[Standing, ...]
    records: tuple[RunRecord, ...]
    gradient: str
    failures: tuple[str, ...] = ()

    @property
    def best(self) -> Start:
        """The start with the largest mean log-likelihood."""
        return self.standings[0].start

    @property
    def clear(self) -> bool:
        """Whether the best can be told from every other, see `Standing.equals_best`."""
        return not any(standing.equals_best for standing in self.standings[1:])

    @property
    def late_growth(self) -> float:
        """By how many nats per point the best start grew in the second half of the epochs; nan if that was
        not measured.
        """
        grown = []
        for record in self.runs[self.setting][self.best]:
            earlier = [epoch for epoch in record.epochs if 0 < 2 * epoch <= self.epoch]
            if earlier and self.epoch in record.epochs:
                halfway, end = record.epochs.index(max(earlier)), record.epochs.index(self.epoch)
                grown.append(record.log_likelihood[end] - record.log_likelihood[halfway])
        return float(np.mean(grown)) if grown else float("nan")

    @property
    def recommendation(self) -> str:
        """The recommendation in a few sentences, with its uncertainty, and whether learning had converged."""
        words = self._choice
        if len(self.standings) > 1 and self.late_growth > max(self.standings[1].behind.mean, 0.01):
            words += (
                f" But learning had not ended: in the second half of the epochs it still gained "
                f"{self.late_growth:.2g} nats per point, more than its lead. With more epochs or a larger "
                "learning rate the order may be another one."
            )
        return words

    @property
    def _choice(self) -> str:
        first, *others = self.standings
        name = plain_label(first.start)
        n_trials = first.log_likelihood.n_finite
        if not others:
            return f"Only {name} was run, so there is nothing to choose."
        if n_trials < 2:
            return (
                f"{name} is ahead after {self.epoch} epochs, but one trial shows no spread: run more trials "
                "before you rely on it."
            )
        equal = [standing for standing in others if standing.equals_best]
        second = equal[0] if equal else others[0]
        lead = f"{second.behind.mean:.3g} +- {second.behind.error:.2g}"
        if not equal:
            return (
                f"Take {name}: after {self.epoch} epochs it is {lead} nats per point ahead of the next, "
                f"{plain_label(second.start)} ({second.behind.n_finite} paired trials)."
            )
        names = ", ".join(plain_label(standing.start) for standing in equal)
        words = (
            f"No clear winner: {name} is ahead after {self.epoch} epochs, but {names} cannot be told from it "
            f"at 95 % confidence (next: {lead} nats per point behind, {n_trials} paired trials)."
        )
        if Start() in (first.start, *(standing.start for standing in equal)):
            words += " beta_max, which needs no data to choose, is among them."
        return words

    @property
    def runs(self) -> Runs:
        """The records by setting and start."""
        return group_runs(self.records)

    def table(self) -> ResultsTable:
        """Mean log-likelihoods at some of the epochs, for `to_markdown` and the other writers."""
        measured = sorted({epoch for record in self.records for epoch in record.epochs})
        columns = [Column(self.setting, epoch) for epoch in measured[-1::-3][::-1] if epoch]
        rows = [standing.start for standing in self.standings]
        return make_table(
            "comparison", f"Initial weights for {self.setting.dataset}", self.runs, rows, columns
        )


def plain_label(start: Start) -> str:
    """The name of a start without Greek letters, for terminals."""
    return start.label.replace("β_max", "beta_max")


def compare_initializations(
    data: Any,
    n_hidden: int,
    *,
    visible: str = "spin",
    hidden: str = "bit",
    hidden_bias: float = 0.0,
    gains: Sequence[float] = GAINS,
    schemes: Sequence[str] = RIVALS,
    epochs: int = 100,
    trials: int = 5,
    learning_rate: float = 1e-3,
    batch_size: int | None = None,
    centred: bool = False,
    held_out: float = 0.0,
    binarize: str | float = "otsu",
    log_z: LogZ = LogZ(),  # noqa: B008
    seed: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    callback: Callable[[SweepProgress], None] | None = None,
) -> InitializationComparison:
    """Train from several initial scales and say which is best on these data, and how sure that is.

    Gradients are exact where that takes no more than about a second each, else they come from persistent
    chains; likewise ``ln Z`` is exact, or an estimate by mAIS.

    Parameters
    ----------
    data : array_like, str or os.PathLike
        Array ``(n_points, n_visible)``, or the path of a file; what is not binary is binarized.
    n_hidden : int
        Number of hidden units.
    visible, hidden : str, optional
        Types of the units.
    hidden_bias : float, default 0.0
        Initial bias of all hidden units.
    gains : sequence of float, optional
        Factors on the weights of "layer-correlation"; 1 is the theory's beta_max.
    schemes : sequence of str, optional
        Other schemes of `initialize`, with gain 1.
    epochs : int, default 100
        How many times to go through the data.
    trials : int, default 5
        How often to train each start, with other weights and another order of the points.
    learning_rate : float, default 0.001
        Learning rate of Adam.
    batch_size : int, optional
        Points per update; None takes all points at once.
    centred : bool, default False
        Whether learning is centred, see `train`.
    held_out : float, default 0.0
        Share of the points that are measured but not learned.
    binarize : str or float, default "otsu"
        See `fit_binarizer`.
    log_z : LogZ, optional
        How ``ln Z`` is found, a `LogZ` with the method "auto", "exact" or "mais"; the curves before the last
        epoch take half of its samples and temperatures.
    seed : int, default 0
        Seed of everything random.
    jobs : int, default 1
        Number of processes.
    folder : str or os.PathLike, optional
        Where to keep the records; the same call with the same folder goes on after an interruption.
    callback : callable, optional
        Called after every run.

    Returns
    -------
    InitializationComparison
        The starts from the best to the worst, the records and a recommendation.
    """
    share = as_real(held_out, "held_out")
    if not 0.0 <= share < 1.0:
        raise ValueError(f"`held_out` must be at least 0 and below 1, got {held_out!r}.")
    visible, hidden = _as_units(visible, "visible"), _as_units(hidden, "hidden")
    n_hidden, jobs = as_count(n_hidden, "n_hidden"), as_count(jobs, "jobs", maximum=_MOST_JOBS)
    epochs = as_count(epochs, "epochs", maximum=MOST_SWEEPS)
    trials = as_count(trials, "trials", maximum=_MOST_RUNS)
    seed = as_count(seed, "seed", minimum=0, maximum=_LARGEST_SEED)
    hidden_bias = _plain(hidden_bias, as_bias(hidden_bias, "hidden_bias"))
    as_positive(as_real(learning_rate, "learning_rate"), "learning_rate")
    learning_rate = _plain(learning_rate, float(learning_rate))
    check_method(binarize, "binarize")
    binarize = binarize if isinstance(binarize, str) else _plain(binarize, float(binarize))
    gains, schemes = _as_gains(gains), _as_schemes(schemes)
    if not gains and not schemes:
        raise ValueError("`gains` and `schemes` must not both be empty, got nothing to compare.")
    if trials * (len(gains) + len(schemes)) > _MOST_RUNS:
        raise ValueError(f"`trials` must make at most {_MOST_RUNS} runs, got {trials} trials of each start.")
    _check_log_z(log_z)
    place = None if folder is None else _as_folder(folder)
    as_callable(callback, "callback", "the progress after every run")
    with tempfile.TemporaryDirectory() as scratch:
        path = _as_file(data, Path(scratch))
        points = load_dataset(path, units=visible, binarize=binarize).data
        n_points = len(points) - round(share * len(points))
        if share and not 0 < n_points < len(points):
            raise ValueError(
                f"`held_out` must leave points to learn and points to measure on, got {held_out!r} of "
                f"{len(points)}."
            )
        require_memory(64 * points.shape[1] * n_hidden, "n_hidden", n_hidden)
        exact = is_cheap(points.shape[1], n_hidden)
        exact_z = (exact and log_z.method == "auto") or (
            log_z.choose_for(points.shape[1], n_hidden).method == "exact"
        )
        spec = Spec(
            name="comparison",
            data=DataSpec(
                str(path.resolve()),
                n_points=n_points if share else None,
                binarize=binarize,
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            ),
            learning=LearningSpec(
                learning_rate,
                batch_size=batch_size,
                gradient="exact" if exact else "pcd",
                centred=as_flag(centred, "centred"),
            ),
            measurement=MeasurementSpec(
                (epochs,),
                curve=_CURVE,
                log_partition="exact" if exact_z else "mais",
                n_samples=log_z.n_samples,
                n_temperatures=log_z.n_temperatures,
                curve_samples=-(-log_z.n_samples // 2),
                curve_temperatures=-(-log_z.n_temperatures // 2),
            ),
            visible=visible,
            hidden=hidden,
            n_hidden=(n_hidden,),
            hidden_bias=(hidden_bias,),
            gains=gains,
            rivals=schemes,
            trials=trials,
            seed=seed,
        )
        records, failures = _run(spec, place or Path(scratch), jobs, callback)
    if not records:
        raise ArithmeticError(
            f"All runs failed; the first: {next(iter(failures.values()), 'no reason known')}"
        )
    gradient = "exact gradients" if exact else "gradients from persistent chains (PCD)"
    gradient += ", centred learning" if centred else ""
    gradient += ", exact log-likelihoods" if exact_z else ", log-likelihoods by mAIS"
    standings = rank_starts(records, epochs)
    return InitializationComparison(
        setting_of(records[0]), epochs, standings, tuple(records), gradient, tuple(failures.values())
    )


def _as_units(unit: Any, argument: str) -> str:
    return as_binary(
        unit, argument, ": others are not compared here. `train` takes them, one start after the other."
    ).name


def _check_log_z(log_z: Any) -> None:
    policy = as_log_z(log_z)
    if policy.method not in ("auto", "exact", "mais") or (policy.marginalize, policy.start) != _WAY:
        raise ValueError(
            "`log_z` must have the method 'auto', 'exact' or 'mais', and leave `marginalize` and `start` as "
            f"they are, because records say no more than that, got {policy!r}."
        )


def _plain(given: Any, number: float) -> Any:
    """A number as it was given, if it is one of Python's: runs are told apart by their text."""
    return given if type(given) in (int, float) else number


def _as_gains(gains: Any) -> tuple[float, ...]:
    array = as_positive(gains, "gains")
    if array.ndim != 1:
        raise ValueError(f"`gains` must be a sequence of positive numbers, got {shown(gains)}.")
    given = gains if isinstance(gains, (list, tuple)) else array
    return tuple(_plain(gain, float(number)) for gain, number in zip(given, array, strict=True))


def _as_schemes(schemes: Any) -> tuple[str, ...]:
    if not isinstance(schemes, (list, tuple)):
        raise ValueError(f"`schemes` must be a list of names of schemes, got {shown(schemes)}.")
    for scheme in schemes:
        SCHEMES.parse(scheme, "schemes")
    return tuple(schemes)


def _as_folder(folder: Any) -> Path:
    place = as_path(folder, "folder")
    there = next(part for part in (place, *place.absolute().parents) if part.exists())
    if not there.is_dir():
        raise ValueError(f"`folder` must be a folder or a new name, got {str(place)!r}: {there} is a file.")
    return place


def _as_file(data: Any, scratch: Path) -> Path:
    if isinstance(data, (str, os.PathLike)):
        path = as_path(data, "data")
        if not path.is_file():
            raise FileNotFoundError(f"`data` does not exist: {path}{near_files(path)}.")
        return path
    as_points(data, "data")
    path = scratch / "data.npy"
    np.save(path, as_array(data, "data"))  # in its own type: the digest depends on the content
    return path


def _run(
    spec: Spec, folder: Path, jobs: int, callback: Callable[[SweepProgress], None] | None
) -> tuple[list[RunRecord], dict[str, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    runs = list(spec.runs())
    executor = local_executor(jobs)
    try:
        with Store(folder / RECORDS) as store:
            result = run_sweep(runs, store, executor, sweep=spec.name, callback=callback)
            digests = {run.digest for run in runs}
            return [record for record in store.records() if record.digest in digests], result.failures
    finally:
        executor.shutdown()


def rank_starts(records: Sequence[RunRecord], epoch: int) -> tuple[Standing, ...]:
    """The starts of one setting from the best to the worst after ``epoch``; last those with failed trials."""
    (starts,) = group_runs(records).values()
    values = {start: values_at(part, epoch) for start, part in starts.items()}
    means = {start: summarize_trials(found.values()) for start, found in values.items()}
    most = max(mean.n_finite for mean in means.values())

    def place(start: Start) -> tuple[bool, float, bool]:
        # Means over other trials cannot be compared. Of equal ones the scheme that needs no data comes first.
        mean = means[start]
        return mean.n_finite < most, -np.nan_to_num(mean.mean, nan=-np.inf), start != Start()

    order = sorted(starts, key=place)
    return tuple(
        Standing(
            start,
            starts[start][0].sigma,
            means[start],
            summarize_trials(values_at(starts[start], epoch, "held_out").values()),
            paired_difference(values[order[0]], values[start]),
        )
        for start in order
    )
