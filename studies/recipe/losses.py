"""Which rules are best, and which cannot be told from the best: multiple comparison with the best.

Every setting has a table of values, one row per trial and one column per rule; the rules of a trial share
data, batches and normal draws, so rows are resampled whole. The *score* of a rule is the mean over settings
of its mean value in percent of what can be learned there. Its *loss* in a setting is the distance of that
mean value from the largest one of the setting; its mean loss is the mean of those.

Counting settings in which a rule is "within one standard error of the best" cannot answer the question:
fourteen rules that are exactly equal are so in 41 % of settings. Here the intervals hold for all rules at
once (Hsu, Ann. Statist. 12 (1984) 1136): for rule ``i``, the score less the best of the others' lies in

    [ min(0, min_j (D_ij - d_j s_ij)),  max(0, min_j (D_ij + d_i s_ij)) ],      j other than i,

with ``D`` the differences of scores, ``s`` their standard errors over trials, the first minimum over rules
that may be best, and ``d_i`` the quantile of ``max_j (D_ij* - D_ij)/s_ij*`` over bootstrap samples of the
trials. A rule *may be best* if the upper end is positive. With probability ``confidence`` the true best rule
is among those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from paramagnet.units import FloatArray

N_RESAMPLES = 2000
FEWEST_TRIALS = 10  # below it no intervals are given


class Interval(NamedTuple):
    """The score of a rule less the best of the others', with simultaneous bounds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of rules in percent, and how they stand to the best.

    ``losses`` has one row per setting; ``intervals`` is None where a setting has fewer than `FEWEST_TRIALS`
    trials.
    """

    scores: FloatArray
    losses: FloatArray
    intervals: tuple[Interval, ...] | None

    @property
    def mean_losses(self) -> FloatArray:
        """The mean over settings of every rule's loss, each against the best rule of that setting. No rule is
        best in all of them, so even the rule of the largest score has a mean loss above zero.
        """
        found: FloatArray = self.losses.mean(axis=0)
        return found

    @property
    def worst_losses(self) -> FloatArray:
        """The largest loss of every rule in any setting."""
        found: FloatArray = self.losses.max(axis=0)
        return found

    @property
    def may_be_best(self) -> tuple[int, ...]:
        """The rules that cannot be told from the best; all of them where there are no intervals."""
        if self.intervals is None:
            return tuple(range(len(self.scores)))
        return tuple(index for index, interval in enumerate(self.intervals) if interval.high > 0.0)


def compare_rules(
    tables: Sequence[FloatArray],
    floors: Sequence[float],
    *,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    rng: int = 0,
) -> Comparison:
    """Compare rules over settings.

    Parameters
    ----------
    tables : sequence of ndarray
        Values ``(n_trials, n_rules)`` of each setting, larger ones better.
    floors : sequence of float
        The value in each setting at which nothing is learned; what can be learned is the way from there to
        the best mean.
    confidence : float, default 0.95
        Probability with which all intervals hold.
    n_resamples : int, default 2000
        Number of bootstrap samples.
    rng : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    Comparison
        Scores, losses, intervals.
    """
    percent = [100.0 * table / _learnable(table, floor) for table, floor in zip(tables, floors, strict=True)]
    means = np.array([table.mean(axis=0) for table in percent])
    losses = means.max(axis=1, keepdims=True) - means
    scores = means.mean(axis=0)
    if min(map(len, percent)) < FEWEST_TRIALS:
        return Comparison(scores, losses, None)
    gaps, errors = differences(percent)
    critical = _critical_values(percent, gaps, confidence, n_resamples, np.random.default_rng(rng))
    return Comparison(scores, losses, _intervals(gaps, errors, critical))


def _learnable(table: FloatArray, floor: float) -> float:
    way = float(table.mean(axis=0).max() - floor)
    if not way > 0.0:
        raise ValueError(
            f"`floors` must be below the best mean of their setting, got {floor:g}, which no rule exceeds."
        )
    return way


def differences(tables: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The differences of the scores of all pairs of rules, and their standard errors over paired trials."""
    n = len(tables)
    scores = sum(table.mean(axis=0) for table in tables) / n
    variances = sum(_pair_variances(table) for table in tables) / n**2
    return np.subtract.outer(scores, scores), np.sqrt(variances)


def _pair_variances(table: FloatArray) -> FloatArray:
    """The squared standard error of the mean difference of every pair of columns."""
    covariance = np.atleast_2d(np.cov(table, rowvar=False)) / len(table)
    own = np.diagonal(covariance)
    found: FloatArray = np.maximum(np.add.outer(own, own) - 2.0 * covariance, 0.0)
    return found


def _critical_values(
    tables: Sequence[FloatArray],
    gaps: FloatArray,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """``d_i`` for every rule: the quantile of the largest studentized deviation from its differences."""
    largest = np.empty((n_resamples, len(gaps)))
    for index in range(n_resamples):
        sample = [table[rng.integers(len(table), size=len(table))] for table in tables]
        found, errors = differences(sample)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations = np.where(errors > 0.0, (found - gaps) / errors, 0.0)
        largest[index] = deviations.max(axis=1)
    quantiles: FloatArray = np.quantile(largest, confidence, axis=0)
    return quantiles


def _intervals(gaps: FloatArray, errors: FloatArray, critical: FloatArray) -> tuple[Interval, ...]:
    n = len(gaps)
    others = ~np.eye(n, dtype=bool)
    best_of_others = np.array([gaps[i][others[i]].min() for i in range(n)])
    high = np.array([(gaps[i] + critical[i] * errors[i])[others[i]].min() for i in range(n)])
    likely = high > 0.0
    found = []
    for i in range(n):
        rivals = others[i] & likely
        bounds = gaps[i] - critical * errors[i]
        low = bounds[rivals].min() if rivals.any() else 0.0
        found.append(Interval(float(best_of_others[i]), min(0.0, float(low)), max(0.0, float(high[i]))))
    return tuple(found)


def power_to_see(
    effect: float, n_rules: int, n_settings: int, n_trials: int, *, n_experiments: int = 200, rng: int = 0
) -> float:
    """The probability that one rule, better than all others by ``effect`` standard errors of its mean
    difference, is the only one that may be best; the others are equal.

    Trials of rules are independent normal numbers here. It is found by simulation.
    """
    generator = np.random.default_rng(rng)
    lead = effect * math.sqrt(2.0 / (n_settings * n_trials))  # a difference of two means of unit variance
    hits = 0
    for _ in range(n_experiments):
        tables = list(generator.standard_normal((n_settings, n_trials, n_rules)))
        for table in tables:
            table[:, 0] += lead
        gaps, errors = differences(tables)
        critical = _critical_values(tables, gaps, 0.95, 200, generator)
        intervals = _intervals(gaps, errors, critical)
        hits += [interval.high > 0.0 for interval in intervals] == [True] + [False] * (n_rules - 1)
    return hits / n_experiments
