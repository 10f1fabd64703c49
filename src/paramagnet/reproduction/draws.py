"""What the draw of the toy data changes: variance components of a crossed design.

The paper drew its toy data once, and so did we, but not the same numbers. For every cell of Tables 1 to 3 the
difference to the beta_max row was measured on ``a`` draws of the data times ``b`` draws of the weights, each
draw of the data learned from each draw of the weights. With exact gradients nothing else is random, so

    difference[d, w] = mean + draw[d] + weights[w] + interaction[d, w],

and the three variances follow from the mean squares of the two-way table. The average of 100 trials on one
draw of the data contains ``draw[d]`` in full; what the weights and the interaction contribute is in its
standard error over trials. Two averages on independent draws therefore differ by twice the variance of
``draw`` beyond their standard errors, and by nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from paramagnet.sweeps.groups import BETA_MAX, Start, Trial, group_runs, values_at
from paramagnet.sweeps.results_table import Column
from paramagnet.sweeps.store import RunRecord
from paramagnet.units import FloatArray


@dataclass(frozen=True)
class Components:
    """Estimated variances of the three effects, unbiased and therefore sometimes negative."""

    draws: float
    weights: float
    interaction: float
    n_draws: int
    n_weights: int

    @property
    def spread(self) -> float:
        """The standard deviation that the draw of the data alone causes; 0 for a negative estimate."""
        return math.sqrt(max(0.0, self.draws))

    @property
    def total_spread(self) -> float:
        """The standard deviation of one run if data and weights are both drawn anew."""
        return math.sqrt(max(0.0, self.draws + self.weights + self.interaction))


def crossed_components(values: FloatArray) -> Components:
    """Variance components of a two-way table without repetitions, by the method of moments.

    Parameters
    ----------
    values : array of shape (n_draws, n_weights)
        One value per draw of the data and draw of the weights, at least two of each.

    Returns
    -------
    Components
        With mean squares ``A`` of the rows, ``B`` of the columns and ``C`` of the rest: the variances
        ``(A - C)/n_weights`` of the draws, ``(B - C)/n_draws`` of the weights, and ``C`` of the interaction.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(
            f"`values` must be a table of at least 2 draws times 2 weights, got the shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ValueError("`values` must be finite; leave out the weights whose runs diverged.")
    n_draws, n_weights = table.shape
    mean = table.mean()
    rows, columns = table.mean(axis=1) - mean, table.mean(axis=0) - mean
    rest = table - mean - rows[:, None] - columns[None, :]
    row_square = n_weights * float(rows @ rows) / (n_draws - 1)
    column_square = n_draws * float(columns @ columns) / (n_weights - 1)
    rest_square = float((rest**2).sum()) / ((n_draws - 1) * (n_weights - 1))
    return Components(
        (row_square - rest_square) / n_weights,
        (column_square - rest_square) / n_draws,
        rest_square,
        n_draws,
        n_weights,
    )


def level_components(records: Iterable[RunRecord], n_datasets: int) -> dict[tuple[Start, Column], Components]:
    """The components of the log-likelihoods themselves, as `draw_components` of their differences."""
    found = {}
    for setting, starts in group_runs(records).items():
        for start, runs in starts.items():
            for epoch in sorted({epoch for record in runs for epoch in record.epochs}):
                table = crossed_table(values_at(runs, epoch), n_datasets)
                if min(table.shape) > 1:
                    found[start, Column(setting, epoch)] = crossed_components(table)
    return found


def draw_components(records: Iterable[RunRecord], n_datasets: int) -> dict[tuple[Start, Column], Components]:
    """The components of every cell's difference to beta_max.

    Parameters
    ----------
    records : iterable of RunRecord
        Runs of a sweep over ``n_datasets`` draws of the data: trial ``n_datasets * k + d`` learned draw ``d``
        from the weights ``k``.
    n_datasets : int
        The number of draws of the data.

    Returns
    -------
    dict
        Cells with fewer than two complete draws of the weights are left out. A draw of the weights is
        complete if both starts have a finite value on every draw of the data.
    """
    found = {}
    for setting, starts in group_runs(records).items():
        epochs = sorted({epoch for record in starts.get(BETA_MAX, ()) for epoch in record.epochs})
        for epoch in epochs:
            reference = values_at(starts[BETA_MAX], epoch)
            for start in starts.keys() - {BETA_MAX}:
                mine = values_at(starts[start], epoch)
                shared = {trial: mine[trial] - reference[trial] for trial in mine.keys() & reference.keys()}
                table = crossed_table(shared, n_datasets)
                if min(table.shape) > 1:
                    found[start, Column(setting, epoch)] = crossed_components(table)
    return found


def crossed_table(values: Mapping[Trial, float], n_datasets: int) -> FloatArray:
    """Values by trial as a table: a row per draw of the data, a column per complete draw of the weights."""
    by_weights: dict[Trial, dict[int, float]] = {}
    for (seed, trial), value in sorted(values.items()):
        if math.isfinite(value):
            by_weights.setdefault((seed, trial // n_datasets), {})[trial % n_datasets] = value
    complete = [part for part in by_weights.values() if len(part) == n_datasets]
    columns = [[part[draw] for draw in range(n_datasets)] for part in complete]
    return np.array(columns, dtype=np.float64).reshape(len(columns), n_datasets).T
