"""Tables of results: mean (standard deviation) per cell, with a reference value beside it where there is one.

Rows are starts, columns are settings and epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from paramagnet.sweeps.groups import (
    Runs,
    Setting,
    Start,
    TrialSummary,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.sheet import Line, Lines, Sheet, mean_text, std_text
from paramagnet.units import as_unit


@dataclass(frozen=True, order=True)
class Column:
    """A setting after so many epochs."""

    setting: Setting
    epoch: int


class Reference(Protocol):
    """A printed value to compare with: mean and standard deviation, whether it is the best of its column,
    and the reason if it is a misprint (else empty).
    """

    @property
    def mean(self) -> float: ...  # noqa: D102
    @property
    def std(self) -> float: ...  # noqa: D102
    @property
    def best(self) -> bool: ...  # noqa: D102
    @property
    def misprint(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Cell:
    """One cell: ours, and a value to compare with if there is one.

    ``error`` is what the mean owes to estimates of ln Z alone, 0 where they are exact. ``differs`` says
    that the difference to the beta_max row is not that of the reference values.
    """

    ours: TrialSummary
    reference: Reference | None = None
    best: bool = False
    differs: bool = False
    error: float = 0.0

    @property
    def misprint(self) -> str:
        """Why the reference is left out of the comparison; empty where it is not."""
        return "" if self.reference is None else self.reference.misprint


@dataclass(frozen=True)
class ResultsTable:
    """Cells by row and column; ``offset`` was taken off our means where they are shown.

    ``offset`` is not zero where the data are another draw than that of the references, which moves all cells
    alike.
    Cells hold our values as measured.
    """

    key: str
    title: str
    rows: tuple[Start, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[Start, Column], Cell]
    offset: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def n_trials(self) -> tuple[int, int]:
        """The smallest and the largest number of trials in a cell."""
        counts = [cell.ours.n_trials for cell in self.cells.values()]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def empty(self) -> bool:
        """Whether nothing was run."""
        return self.n_trials[1] == 0

    def mark_differing(self, differing: Iterable[tuple[Start, Column]]) -> ResultsTable:
        """The table with these cells marked."""
        chosen = set(differing)
        marked = {where: replace(cell, differs=where in chosen) for where, cell in self.cells.items()}
        return replace(self, cells=marked)


def make_table(
    key: str,
    title: str,
    runs: Runs,
    rows: Sequence[Start],
    columns: Sequence[Column],
    *,
    field: str = "log_likelihood",
    references: Mapping[tuple[Start, Column], Reference] | None = None,
    notes: Sequence[str] = (),
) -> ResultsTable:
    """The table of ``field`` over these rows and columns; what was not run stays an empty cell."""
    printed = references or {}
    cells = {}
    for column in columns:
        starts = runs.get(column.setting, {})
        for row in rows:
            records = starts.get(row, ())
            ours = summarize_trials(values_at(records, column.epoch, field).values())
            errors = values_at(records, column.epoch, "error").values()
            error = math.sqrt(sum(value**2 for value in errors)) / max(len(errors), 1)
            cells[row, column] = Cell(ours, printed.get((row, column)), error=error)
    return ResultsTable(
        key, title, tuple(rows), tuple(columns), _with_best(cells, rows, columns), 0.0, tuple(notes)
    )


def _with_best(
    cells: Mapping[tuple[Start, Column], Cell], rows: Sequence[Start], columns: Sequence[Column]
) -> dict[tuple[Start, Column], Cell]:
    """The cells with the best of each column marked, and those that print the same value."""
    marked = dict(cells)
    for column in columns:
        shown = {row: round(cells[row, column].ours.mean, 2) for row in rows}
        finite = {row: value for row, value in shown.items() if math.isfinite(value)}
        if len(finite) > 1:
            best = max(finite.values())
            for row in (row for row, value in finite.items() if value == best):
                marked[row, column] = replace(cells[row, column], best=True)
    return marked


def to_sheet(table: ResultsTable) -> Sheet:
    """The table as text, with notes on the number of trials and on the marks."""
    fewest, most = table.n_trials
    show_trials = fewest != most
    settings = tuple(dict.fromkeys(column.setting for column in table.columns))
    groups = tuple(
        (_heading(setting, settings), sum(column.setting == setting for column in table.columns))
        for setting in settings
    )
    rows = tuple(
        (
            row.label,
            tuple(
                cell_lines(table.cells[row, column], table.offset, show_trials) for column in table.columns
            ),
        )
        for row in table.rows
    )
    columns = tuple(f"{column.epoch} epochs" for column in table.columns)
    return Sheet(table.key, table.title, "start", columns, rows, groups, (*_notes(table), *table.notes))


def _heading(setting: Setting, settings: Sequence[Setting]) -> str:
    parts = []
    if len({other.alpha for other in settings}) > 1 or len(settings) == 1:
        parts.append(f"α = {setting.alpha:.3g}")
    if len({other.c for other in settings}) > 1 or (len(settings) == 1 and not _is_symmetric(setting.hidden)):
        parts.append(f"c = {setting.c:g}")
    return ", ".join(parts)


def _is_symmetric(unit: str) -> bool:
    """Whether the sign of these units is arbitrary; False for types of a record that are not known here."""
    try:
        return as_unit(unit, "hidden").symmetric
    except ValueError:
        return False


def cell_lines(cell: Cell, offset: float = 0.0, show_trials: bool = False) -> Lines:
    """Ours, then the reference."""
    lines = [Line("no run", quiet=True)]
    ours = cell.ours
    if ours.n_trials:
        text = mean_text(ours.mean - offset)
        if ours.n_finite > 1:
            text += f" ({std_text(ours.std)})"
        elif cell.error > 0.0:
            text += f" ± {std_text(cell.error)}"
        if cell.differs:
            text += " ≠"
        lines = [Line(text, bold=cell.best)]
        if show_trials:
            lines.append(Line(f"{ours.n_trials} trial" + "s" * (ours.n_trials > 1), quiet=True))
        if ours.n_failed:
            lines.append(Line(f"{ours.n_failed} of {ours.n_trials} not finite", quiet=True))
    if cell.reference is not None:
        mark = " †" if cell.misprint else ""
        text = f"{cell.reference.mean:.2f} ({std_text(cell.reference.std)}){mark}"
        lines.append(Line(text, bold=cell.reference.best, quiet=True))
    return tuple(lines)


def _notes(table: ResultsTable) -> list[str]:
    notes = []
    fewest, most = table.n_trials
    if most:
        rests = (
            f"{most} trial" + "s" * (most > 1) if fewest == most else f"{fewest} to {most} trials, as said"
        )
        spread = "standard deviation over trials in parentheses" if most > 1 else "one trial: no spread"
        notes.append(f"Nats per point; mean of {rests}; {spread}; the best of each column is bold.")
    if any(cell.error > 0.0 and cell.ours.n_trials == 1 for cell in table.cells.values()):
        notes.append("± : standard error of the estimate of ln Z by mAIS.")
    return notes
