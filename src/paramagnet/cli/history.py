"""The learning curve that ``paramagnet train`` prints: the log-likelihood at the measured epochs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.learning.result import TrainResult
    from paramagnet.learning.state import Record
    from paramagnet.units import FloatArray, Unit

    Weighted = tuple[FloatArray, FloatArray | None]  # points, and their weights if they have some

_MOST_ROWS = 12


def print_level(
    points: FloatArray,
    visible: Unit,
    held_out: FloatArray | None,
    weights: FloatArray | None = None,
    held_out_weights: FloatArray | None = None,
) -> None:
    """Say what independent units reach, so that nobody ends below it unaware.

    Nothing is said where points and weights do not fit: training refuses them in words.
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


def show_value(record: Record, digits: int = 4) -> str:
    """The log-likelihood with its error, if it has one."""
    error = f" +- {record.error:.2g}" if record.error > 0.0 else ""
    return f"{record.log_likelihood:.{digits}f}{error}"


def print_history(result: TrainResult, learned: Weighted, held_out: Weighted | None) -> None:
    """A table of the measured epochs, not more than a screen of them, and a line about the last one with the
    errors of ln Z and of a mean over the points.
    """
    records = result.state.records
    if not records:
        typer.echo(f"trained for {result.state.epoch} epochs")
        return
    _print_table(records)
    last = records[-1]
    how = " by mAIS" if last.error > 0.0 else ""
    line = (
        f"log-likelihood after {last.epoch} epochs: {_with_errors(result, last.log_likelihood, learned)}{how}"
    )
    if held_out is not None and math.isfinite(last.validation):
        line += f"; validation {_with_errors(result, last.validation, held_out)}"
    say(f"{line}; nats per point ({result.state.seconds:.1f} s)")
    doubtful = [str(record.epoch) for record in records if not record.trusted]
    if doubtful:
        say(
            f"Do not trust the log-likelihood at epoch {', '.join(doubtful)}: too few effective samples. "
            "`paramagnet evaluate` takes more `--temperatures` and `--samples`.",
            err=True,
        )


def _with_errors(result: TrainResult, value: float, measured: Weighted) -> str:
    from paramagnet.estimates import show_likelihood
    from paramagnet.learning.likelihood import average, error_of_mean, free_energies, weigh_points

    last = result.state.records[-1]
    if last.epoch != result.state.epoch:  # the machine of the last measurement is gone, so is its spread
        return f"{value:.4f}" + (f" +- {last.error:.2g} (ln Z)" if last.error > 0.0 else "")
    points, weights = weigh_points(*measured, "weights")
    energies = free_energies(result.state.rbm, points)
    error = error_of_mean(energies, average(energies, weights), weights)
    return show_likelihood(value, error, len(points), last.error)


def _print_table(records: tuple[Record, ...]) -> None:
    import numpy as np

    validated = any(math.isfinite(record.validation) for record in records)
    estimated = any(record.error > 0.0 for record in records)
    chosen = sorted({round(i) for i in np.linspace(0, len(records) - 1, min(len(records), _MOST_ROWS))})
    heading = f"{'epoch':>8s}{'log-likelihood':>24s}"
    heading += f"{'validation':>14s}" if validated else ""
    typer.echo(f"{heading}{'seconds':>11s}")
    for record in (records[i] for i in chosen):
        line = f"{record.epoch:8d}{show_value(record):>24s}"
        line += f"{record.validation:14.4f}" if validated else ""
        doubt = "   do not trust" if estimated and not record.trusted else ""
        typer.echo(f"{line}{record.seconds:11.1f}{doubt}")
    if len(chosen) < len(records):
        typer.echo(f"{len(chosen)} of {len(records)} measurements; --plot draws them all")
