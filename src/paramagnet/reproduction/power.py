"""What the comparison could have seen: how many cells would still agree if our scales were wrong.

A reproduction that started its machines from another scale than it says would give other values. What they
would be follows from our own runs: in every column the log-likelihood is known at five gains, and an Akima
interpolation in the logarithm of the gain gives it between them. Two faults are planted:

- the *ladder*: all five gains are multiplied by the same factor, as by a wrong beta_max;
- the *row*: the beta_max row alone is, and the other four are right.

A verdict under which most cells agree says little if they would agree with such faults as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from paramagnet.reproduction.agreement import Comparison, Verdict
from paramagnet.sweeps.groups import BETA_MAX, GAINS, Runs, Start, summarize_trials, values_at
from paramagnet.sweeps.results_table import Column

FAULTS = ("ladder", "row")
SIZES = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Planted:
    """How many of ``n_compared`` cells agree if our scales are multiplied by ``factor``."""

    fault: str
    factor: float
    n_agreeing: int
    n_compared: int


class GainLadder:
    """The log-likelihood of a column as a function of the gain, through our means at the five gains."""

    def __init__(self, runs: Runs, column: Column) -> None:
        starts = runs.get(column.setting, {})
        means = [
            summarize_trials(values_at(starts.get(Start(gain=gain), ()), column.epoch).values()).mean
            for gain in GAINS
        ]
        self.complete = bool(np.isfinite(means).all())
        if self.complete:
            self._curve = Akima1DInterpolator(np.log(GAINS), np.array(means))

    def __call__(self, gain: float) -> float:
        """The value at a gain; beyond the ends the last piece goes on."""
        return float(self._curve(math.log(gain), extrapolate=True))

    def change(self, gain: float, fault: str, factor: float) -> float:
        """What a fault adds to the difference between this gain and beta_max."""
        reference = self(factor) - self(1.0)
        return (self(gain * factor) - self(gain) if fault == "ladder" else 0.0) - reference


class Ladders:
    """The ladders of a table's columns, each made once, when it is first asked for."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._found: dict[Column, GainLadder] = {}

    def __getitem__(self, column: Column) -> GainLadder:
        if column not in self._found:
            self._found[column] = GainLadder(self._runs, column)
        return self._found[column]


def plant_fault(verdict: Verdict, ladders: Ladders, fault: str, factor: float) -> Planted:
    """Judge a table again with a fault in our scales.

    Parameters
    ----------
    verdict : Verdict
        The verdict on our runs as they are.
    ladders : Ladders
        Made of the same runs.
    fault : {"ladder", "row"}
        Whether all gains or the beta_max row alone is off.
    factor : float
        What the scales are multiplied by.

    Returns
    -------
    Planted
        Columns that lack one of the five gains are left out.
    """
    if fault not in FAULTS:
        raise ValueError(f"`fault` must be one of {', '.join(map(repr, FAULTS))}, got {fault!r}.")
    if not 0.0 < factor < math.inf:
        raise ValueError(f"`factor` must be positive and finite, got {factor!r}.")
    moved = [
        _move(comparison, ladders[comparison.column], fault, factor)
        for comparison in verdict.comparisons
        if ladders[comparison.column].complete and comparison.start.scheme == BETA_MAX.scheme
    ]
    return Planted(fault, factor, sum(comparison.agrees for comparison in moved), len(moved))


def _move(comparison: Comparison, ladder: GainLadder, fault: str, factor: float) -> Comparison:
    return replace(comparison, ours=comparison.ours + ladder.change(comparison.start.gain, fault, factor))


def plant_faults(
    verdicts: Sequence[Verdict], ladders: Sequence[Ladders], fault: str, size: float
) -> list[Planted]:
    """All tables together with scales that are too small, as they are, and too large by ``size``."""
    found = []
    for factor in (1.0 - size, 1.0, 1.0 + size):
        parts = [plant_fault(v, own, fault, factor) for v, own in zip(verdicts, ladders, strict=True)]
        agreeing, compared = (
            sum(getattr(part, name) for part in parts) for name in ("n_agreeing", "n_compared")
        )
        found.append(Planted(fault, factor, agreeing, compared))
    return found
