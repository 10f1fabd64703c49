"""The learning curve that ``paramagnet train`` prints: the log-likelihood at the measured epochs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.learning.result import TrainResult
    from paramagnet.learning.state import Record
    from paramagnet.units import FloatArray, Unit

    Weighted = tuple[FloatArray, FloatArray | None]  # points, and their weights if they have some

_MOST_ROWS = 12
_DECIMALS = 4  # of exact log-likelihoods in the table


def print_level(
    points: FloatArray,
    visible: Unit,
    held_out: FloatArray | None,
    weights: FloatArray | None = None,
    held_out_weights: FloatArray | None = None,
) -> None:
    """Say what independent units reach, so that a user sees whether the machine ends below it.

    Prints nothing where points and weights do not fit: training raises an error then.
    """
    from paramagnet.learning.independent import level_of

    for of, states in ((weights, points), (held_out_weights, held_out)):
        if of is None or states is None:
            continue
        if of.shape != (len(states),) or not (of >= 0.0).all() or not 0.0 < of.sum() < math.inf:
            return
    line = f"independent units: {level_of(visible, points, points, weights, weights):.4f} nats per point"
    if held_out is not None and held_out.shape[1] == points.shape[1]:
        level = level_of(visible, points, held_out, weights, held_out_weights)
        line += f", validation {level:.4f}"
    say(line, err=True)


@contextmanager
def quiet_training() -> Iterator[None]:
    """Leave out the warnings of training: the command prints the notes of the result."""
    from paramagnet.learning.watch import TrainingWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        yield


def as_epochs(at: str | None, every: int | None, epochs: int | None) -> int | list[int] | None:
    """The epochs to measure at, from ``--evaluate-at`` or ``--evaluate-every``."""
    if at is None:
        return every
    if every is not None:
        raise ValueError("`--evaluate-at` and `--evaluate-every` exclude each other; give one of them.")
    try:
        chosen = [int(word) for word in at.split(",")]
    except ValueError:
        raise ValueError(f"`--evaluate-at` must be epochs with commas between them, got {at!r}.") from None
    for epoch in chosen:
        if epoch < 0 or (epochs is not None and epoch > epochs):
            raise ValueError(f"`--evaluate-at` must be epochs from 0 to `--epochs` = {epochs}, got {epoch}.")
    return chosen


def show_value(record: Record, decimals: int) -> str:
    """The log-likelihood with its error, if it has one, to as many decimals."""
    from paramagnet.estimates import show_error

    error = f" +- {show_error(record.error, f'.{decimals}f')}" if record.error > 0.0 else ""
    return f"{record.log_likelihood:.{decimals}f}{error}"


def print_history(result: TrainResult, learned: Weighted, held_out: Weighted | None) -> None:
    """A table of the measured epochs, not more than a screen of them, and a line about the last one with the
    errors of ln Z and of a mean over the points.
    """
    records = result.state.records
    if not records:
        typer.echo(f"trained for {result.state.epoch} epochs")
        return
    last = records[-1]
    learning = _Errors.of(result, learned)
    validating = None if held_out is None else _Errors.of(result, held_out)
    _print_table(records, learning.decimals, 4 if validating is None else validating.decimals)
    how = " by mAIS" if last.error > 0.0 else ""
    line = f"log-likelihood after {last.epoch} epochs: {learning.show(last.log_likelihood)}{how}"
    if validating is not None and math.isfinite(last.validation):
        line += f"; validation {validating.show(last.validation)}"
    say(f"{line}; nats per point ({result.state.seconds:.1f} s)")
    doubtful = [str(record.epoch) for record in records if not record.trusted]
    if doubtful:
        say(
            f"Do not trust the log-likelihood at epoch {', '.join(doubtful)}: too few effective samples. "
            "`paramagnet evaluate` takes more `--temperatures` and `--samples`.",
            err=True,
        )


@dataclass(frozen=True)
class _Errors:
    """The errors of a log-likelihood of the last measured machine: of a mean over the points, and of ln Z."""

    points: float | None  # None where the machine is gone, and with it the spread over the points
    n_points: int
    log_z: float

    @classmethod
    def of(cls, result: TrainResult, measured: Weighted) -> _Errors:
        from paramagnet.learning.likelihood import average, error_of_mean, free_energies, weigh_points

        last = result.state.records[-1]
        if last.epoch != result.state.epoch:
            return cls(None, len(measured[0]), last.error)
        points, weights = weigh_points(*measured, "weights")
        energies = free_energies(result.state.rbm, points)
        error = error_of_mean(energies, average(energies, weights), weights)
        return cls(error, len(points), last.error)

    @property
    def decimals(self) -> int:
        """Decimals of the table: where ln Z is estimated, those of the closing line; else four."""
        from paramagnet.estimates import likelihood_decimals

        return likelihood_decimals(self.points or 0.0, self.log_z) if self.log_z > 0.0 else _DECIMALS

    def show(self, value: float) -> str:
        """The log-likelihood ``value`` with its errors."""
        from paramagnet.estimates import show_error, show_likelihood

        if self.points is not None:
            return show_likelihood(value, self.points, self.n_points, self.log_z)
        error = f" +- {show_error(self.log_z, f'.{self.decimals}f')} (ln Z)" if self.log_z > 0.0 else ""
        return f"{value:.{self.decimals}f}{error}"


def draw_history(result: TrainResult, path: Path) -> None:
    """Draw the learning curve to a file."""
    from paramagnet.plots import plot_learning_curve, save_figure

    history = result.history
    save_figure(
        plot_learning_curve(history.epoch, history.log_likelihood, validation=history.validation), path
    )


def _print_table(records: tuple[Record, ...], decimals: int, of_validation: int) -> None:
    import numpy as np

    validated = any(math.isfinite(record.validation) for record in records)
    estimated = any(record.error > 0.0 for record in records)
    chosen = sorted({round(i) for i in np.linspace(0, len(records) - 1, min(len(records), _MOST_ROWS))})
    heading = f"{'epoch':>8s}{'log-likelihood':>24s}"
    heading += f"{'validation':>14s}" if validated else ""
    typer.echo(f"{heading}{'seconds':>11s}")
    for record in (records[i] for i in chosen):
        line = f"{record.epoch:8d}{show_value(record, decimals):>24s}"
        line += f"{record.validation:14.{of_validation}f}" if validated else ""
        doubt = "   do not trust" if estimated and not record.trusted else ""
        typer.echo(f"{line}{record.seconds:11.1f}{doubt}")
    if len(chosen) < len(records):
        typer.echo(f"{len(chosen)} of {len(records)} measurements; --plot draws them all")
