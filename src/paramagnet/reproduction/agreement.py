"""Agreement between our tables and the paper's.

For every cell the difference to the beta_max row of its column is compared, ours against the paper's. The two
differences agree if they are no further apart than twice their combined standard error, plus 0.01 for the
two decimals that the paper prints. The squares of three errors add up:

- ours, of the difference over the trials that both cells share (they saw the same points in the same order);
- the paper's, ``std/sqrt(trials)`` of either cell, as if its trials were not paired;
- for the toy data, which the paper and we drew once each, the standard deviation that the draw alone causes
  in that difference, once for its draw and once for ours (`draws`).

The bar is wider than two standard errors: by the allowance for rounding, and because trials that the paper
paired would have a smaller error than the one computed here. It allows nothing for the selection of points of
the other data sets, which is not the paper's. With fewer than ten trials of ours the paper's standard
deviations stand for ours: an error from three trials has two degrees of freedom, and twice that error misses
in 18 % of cases. Misprints are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from paramagnet.reproduction.draws import Components
from paramagnet.reproduction.paper import PaperLogLikelihood, PaperTable, misprint_of
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.sweeps.groups import (
    BETA_MAX,
    Runs,
    Start,
    Trial,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.results_table import Column

ROUNDING = 0.01
FEWEST_TRIALS = 10

Draws = Mapping[tuple[Start, Column], Components]


@dataclass(frozen=True)
class Comparison:
    """One cell: its difference to the beta_max row, ours and the paper's, and how far apart they may be.

    ``error`` is the standard error over trials, ours and the paper's together; ``spread`` the standard
    deviation that one draw of the data causes.
    """

    start: Start
    column: Column
    ours: float
    paper: float
    error: float
    spread: float
    n_trials: int

    @property
    def gap(self) -> float:
        """Ours minus the paper's."""
        return self.ours - self.paper

    @property
    def tolerance(self) -> float:
        """How far apart the two may be."""
        return 2.0 * math.sqrt(self.error**2 + 2.0 * self.spread**2) + ROUNDING  # two draws: theirs, ours

    @property
    def agrees(self) -> bool:
        """Whether they are no further apart than the tolerance; infinite or NaN differences never agree."""
        return abs(self.gap) <= self.tolerance + 1e-12


@dataclass(frozen=True)
class Rank:
    """Where beta_max stands among the gains of a column; 1 is best, None where a gain was not run."""

    column: Column
    ours: int | None
    paper: int


@dataclass(frozen=True)
class Verdict:
    """The comparisons of one table, and what could not be compared."""

    table: PaperTable
    comparisons: tuple[Comparison, ...]
    ranks: tuple[Rank, ...]
    missing: tuple[tuple[Start, Column], ...]
    misprints: tuple[PaperLogLikelihood, ...]
    n_draws: int = 0
    n_weights: int = 0

    @property
    def n_agreeing(self) -> int:
        """How many cells agree."""
        return sum(comparison.agrees for comparison in self.comparisons)

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """Those that do not, the furthest apart first, in units of what is allowed."""
        apart = [comparison for comparison in self.comparisons if not comparison.agrees]
        return tuple(sorted(apart, key=lambda c: abs(c.gap) / c.tolerance, reverse=True))

    @property
    def share(self) -> float:
        """The share of cells that agree; NaN where nothing can be compared."""
        return self.n_agreeing / len(self.comparisons) if self.comparisons else math.nan


def judge_table(table: PaperTable, runs: Runs, *, draws: Draws | None = None) -> Verdict:
    """Compare one table with the paper's.

    Parameters
    ----------
    table : PaperTable
        The paper's table.
    runs : dict
        Our runs, by setting and start.
    draws : Draws, optional
        The variance components of each cell's difference to beta_max, see `draw_components`; None adds
        nothing to the tolerance.
    """
    printed = paper_cells(table.key)
    known = draws or {}
    comparisons, missing, misprints = [], [], []
    for (start, column), cell in printed.items():
        starts = runs.get(column.setting, {})
        mine = values_at(starts.get(start, ()), column.epoch)
        if not mine:
            missing.append((start, column))
        if misprint_of(cell):
            misprints.append(cell)
        elif start != BETA_MAX:
            reference = values_at(starts.get(BETA_MAX, ()), column.epoch)
            if mine and reference:
                spread = known[start, column].spread if (start, column) in known else 0.0
                beside = (cell, printed[BETA_MAX, column])
                comparisons.append(_compare(start, column, mine, reference, beside, spread, table.n_trials))
    columns = dict.fromkeys(column for _, column in printed)
    ranks = tuple(_rank(column, runs, printed) for column in columns)
    used = [known[c.start, c.column] for c in comparisons if (c.start, c.column) in known]
    n_draws, n_weights = (
        min((getattr(part, name) for part in used), default=0) for name in ("n_draws", "n_weights")
    )
    return Verdict(table, tuple(comparisons), ranks, tuple(missing), tuple(misprints), n_draws, n_weights)


def _compare(
    start: Start,
    column: Column,
    mine: Mapping[Trial, float],
    reference: Mapping[Trial, float],
    beside: tuple[PaperLogLikelihood, PaperLogLikelihood],
    spread: float,
    n_paper: int,
) -> Comparison:
    cell, cell_of_beta_max = beside
    variance = cell.std**2 + cell_of_beta_max.std**2
    paired = paired_difference(mine, reference)
    if paired.n_finite >= FEWEST_TRIALS:
        difference, ours, n_trials = paired.mean, paired.error**2, paired.n_finite
    else:
        first, second = summarize_trials(mine.values()), summarize_trials(reference.values())
        difference, n_trials = first.mean - second.mean, min(first.n_finite, second.n_finite)
        ours = variance / n_trials if n_trials else math.nan
    error = math.sqrt(ours + variance / n_paper)
    return Comparison(start, column, difference, cell.mean - cell_of_beta_max.mean, error, spread, n_trials)


def _rank(column: Column, runs: Runs, printed: Mapping[tuple[Start, Column], PaperLogLikelihood]) -> Rank:
    """The ranks by values rounded as the paper prints them, so that ties are the same in both."""
    paper = {start: cell.mean for (start, where), cell in printed.items() if where == column}
    starts = runs.get(column.setting, {})
    means = {
        start: round(summarize_trials(values_at(starts.get(start, ()), column.epoch).values()).mean, 2)
        for start in paper
    }
    ours = None if any(math.isnan(mean) for mean in means.values()) else _place(means)
    return Rank(column, ours, _place(paper))


def _place(values: Mapping[Start, float]) -> int:
    return 1 + sum(value > values[BETA_MAX] for value in values.values())
