"""Other selections of MNIST's images: whether they explain the level of Table 8.

    paramagnet reproduce benchmarks/mnist_points.toml --out results

The records are of the start from beta_max with spins, each on another selection of 3000 images. The paper's
value is one draw more, if its selection is like ours. It is explained by the selection where it lies within
the 95 % prediction interval of ours: with ``n`` values of mean ``m`` and standard deviation ``s`` these are
``t s sqrt(1 + 1/n)`` on either side of ``m``, where ``t`` is Student's quantile of ``n - 1`` degrees of
freedom. ``s`` contains the scatter that chains cause, which the paper's mean over 30 trials has not; it lacks
that of the initial weights, which all our runs share and the paper averages over. Beside it stand what the
selection adds to the scatter of trials that the paper prints, and by how many standard errors our mean is off
if the selection makes no difference: more if trials scatter by their chains, fewer if by their weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.sweeps.groups import BETA_MAX, Start
from paramagnet.sweeps.store import RunRecord
from reproduction_facts import listed

SWEEP = "mnist_points"
TABLE = "mnist_spin"
PAPER_TRIALS = 30
COMMAND = "paramagnet reproduce benchmarks/mnist_points.toml --out results"
PLANNED = 4
FEWEST = 3  # an interval from two values is 18 standard deviations wide on either side


@dataclass(frozen=True)
class Level:
    """The paper's value after an epoch beside ours, one per selection.

    ``again`` is our run of Table 8: the images, initial weights and seed of the first selection, learned with
    earlier kernels. None where it was not run. ``others`` are further trials of Table 8, with the images
    of the first selection and other initial weights.
    """

    epoch: int
    paper: float
    paper_std: float
    ours: tuple[float, ...]
    again: float | None = None
    others: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        return float(np.mean(self.ours))

    @property
    def std(self) -> float:
        return float(np.std(self.ours, ddof=1))

    @property
    def reach(self) -> float:
        """Half the width of the 95 % prediction interval for one more selection."""
        n = len(self.ours)
        return float(student.ppf(0.975, n - 1)) * self.std * math.sqrt(1.0 + 1.0 / n)

    @property
    def explained(self) -> bool:
        return abs(self.paper - self.mean) <= self.reach

    @property
    def own_std(self) -> float:
        """What the selection adds to the standard deviation that the paper's trials have on one selection."""
        return math.sqrt(max(0.0, self.std**2 - self.paper_std**2))

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors of our mean minus the paper's value if the selection makes no difference.

        The first where the scatter of trials is due to their chains, and averages out over our runs; the
        second where it is due to the weights, which our runs share.
        """
        own = (1.0 / len(self.ours), 1.0)
        first, second = (self.paper_std * math.sqrt(part + 1.0 / PAPER_TRIALS) for part in own)
        return first, second


def read_levels(records: Sequence[RunRecord]) -> list[Level]:
    """One for each epoch of the paper; empty without records."""
    part = sorted((r for r in records if r.sweep == SWEEP), key=lambda r: r.trial)
    whole = [r for r in records if (r.sweep, Start(r.scheme, r.gain)) == (TABLE, BETA_MAX)]
    table = [r for r in whole if r.trial == 0]
    found = []
    for (start, column), cell in paper_cells("MNIST_ising_c=0").items():
        values = [r.log_likelihood[r.epochs.index(column.epoch)] for r in part if column.epoch in r.epochs]
        again = [r.log_likelihood[r.epochs.index(column.epoch)] for r in table if column.epoch in r.epochs]
        if start == BETA_MAX and values:
            others = tuple(
                r.log_likelihood[r.epochs.index(column.epoch)]
                for r in whole
                if r.trial > 0 and column.epoch in r.epochs
            )
            level = Level(
                column.epoch, cell.mean, cell.std, tuple(values), again[0] if again else None, others
            )
            found.append(level)
    return found


def table_rows(levels: Sequence[Level]) -> tuple[list[str], list[list[str]]]:
    """The paper's values, ours by selection, and their standard deviation."""
    count = max(len(level.ours) for level in levels)
    head = ["epochs", "paper (std over trials)", *(f"selection {i + 1}" for i in range(count)), "std"]
    rows = []
    for level in levels:
        cells = [f"{value:.2f}" for value in level.ours] + [""] * (count - len(level.ours))
        std = f"{level.std:.2f}" if len(level.ours) > 1 else ""
        rows.append([f"{level.epoch}", f"{level.paper:.2f} ({level.paper_std:.2f})", *cells, std])
    return head, rows


def describe_levels(levels: Sequence[Level]) -> str:
    """What the selection of images changes, in words; also where nothing or little was run."""
    count = min((len(level.ours) for level in levels), default=0)
    if count < FEWEST:
        run = f"{count} of {PLANNED} runs on selections of images are there" if count else "none was run yet"
        return (
            f"Whether another selection of images explains the difference is not known: {run} (`{COMMAND}`)."
        )
    gaps = [level.mean - level.paper for level in levels]
    outside = [f"{level.epoch}" for level in levels if not level.explained]
    share = listed([f"{abs(gap) / level.reach:.2f}" for gap, level in zip(gaps, levels, strict=True)])
    verdict = (
        "The paper's values are all within the 95 % prediction interval for one more selection, at "
        f"{share} of its half width, so the selection, with the scatter of single trials, can explain the "
        "difference."
        if not outside
        else f"The paper's values are at {share} of the half width of the 95 % prediction interval for one "
        f"more selection, outside it after {listed(outside)} epochs, so the selection does not explain the "
        "difference there."
    )
    epochs = listed([f"{level.epoch}" for level in levels])
    words = (
        f"{count} selections of 3000 images, the first that of the tables, were learned from β_max with "
        f"spins, one trial each (`{COMMAND}`). After {epochs} epochs their mean minus the paper's value is "
        f"{listed([f'{gap:+.1f}' for gap in gaps])} nats and their standard deviation "
        f"{listed([f'{level.std:.1f}' for level in levels])}. {verdict} "
        f"{_against_trials(levels, gaps)}"
    )
    again = [level.again - level.ours[0] for level in levels if level.again is not None]
    if len(again) == len(levels):
        words += (
            " The first run of Table 8 is the first of these again, with the same images, initial weights "
            "and seed but by the earlier kernels, which sum in another order; it is "
            f"{listed([f'{gap:+.1f}' for gap in again])} nats from it."
        )
    n_others = min(len(level.others) for level in levels)
    if n_others:
        means = [float(np.mean(level.others)) - level.paper for level in levels]
        words += (
            f" {'A second trial' if n_others == 1 else f'{n_others} further trials'} of Table 8, with these "
            f"images and other initial weights, {'is' if n_others == 1 else 'are in the mean'} "
            f"{listed([f'{gap:+.1f}' for gap in means])} nats from the paper's values. "
            f"{_by_kernels(levels)}"
        )
    return words


def _by_kernels(levels: Sequence[Level]) -> str:
    """All runs with the later kernels together, beside the paper's and our earlier run."""
    pooled = [np.array([*level.ours, *level.others]) for level in levels]
    n = min(len(values) for values in pooled)
    off = [
        (values.mean() - level.paper) / (level.paper_std * math.sqrt(1.0 / n + 1.0 / PAPER_TRIALS))
        for values, level in zip(pooled, levels, strict=True)
    ]
    words = (
        f"All {n} runs with the int16 kernels are in the mean "
        f"{listed([f'{v.mean() - level.paper:+.1f}' for v, level in zip(pooled, levels, strict=True)])} nats "
        f"from the paper's values, {listed([f'{abs(score):.1f}' for score in off])} standard errors if they "
        "scatter as the paper's trials do"
    )
    if any(level.again is None for level in levels):
        return f"{words}."
    apart = [
        (level.again - values.mean()) / (values.std(ddof=1) * math.sqrt(1.0 + 1.0 / n))
        for values, level in zip(pooled, levels, strict=True)
        if level.again is not None
    ]
    outside = max(map(abs, apart)) > float(student.ppf(0.975, n - 1))
    verdict = "differ" if outside else "are not told apart by one run, nor is a difference excluded"
    return (
        f"{words}; the run with the earlier kernels is "
        f"{listed([f'{score:+.1f}' for score in apart])} standard deviations of a single run from their mean "
        f"(95 %: {student.ppf(0.975, n - 1):.1f}). So the kernels "
        f"{verdict}."
    )


def _against_trials(levels: Sequence[Level], gaps: Sequence[float]) -> str:
    """What is left for the selection when trials scatter as the paper's do, and what is left without it."""
    own = [f"{level.own_std:.1f}" for level in levels]
    trials = [f"{level.paper_std:.1f}" for level in levels]
    most, least = (
        listed([f"{abs(gap) / level.errors[i]:.1f}" for gap, level in zip(gaps, levels, strict=True)])
        for i in (0, 1)
    )
    left = (
        "so nothing of it is seen to come from the selection"
        if all(level.std <= level.paper_std for level in levels)
        else f"which leaves {listed(own)} for the selection"
    )
    words = (
        f"Trials on one selection have a standard deviation of {listed(trials)} in the paper, {left}. If the "
        f"selection makes no difference, our mean is off by {most} standard errors where trials scatter by "
        f"their chains, and by {least} where they scatter by their initial weights, which our runs share."
    )
    far = any(abs(gap) > 2.0 * level.errors[0] for gap, level in zip(gaps, levels, strict=True))
    if far and all(level.explained for level in levels):
        words += " So these runs do not decide between a selection that matters and another cause."
    return words
