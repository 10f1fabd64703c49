"""Tables as the paper prints them: mean (standard deviation) per cell, with the paper's value beside it.

Rows are starts, columns are settings and epochs. [Y25] section 4, Tables 1 to 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paramagnet.experiments.cells import (
    BETA_MAX,
    GAINS,
    RIVALS,
    Runs,
    Setting,
    Start,
    Summary,
    summarize,
    values_at,
)
from paramagnet.experiments.paper import (
    PaperLogLikelihood,
    PaperTable,
    misprint_of,
    read_log_likelihoods,
)
from paramagnet.experiments.sheet import Line, Lines, Sheet, mean_text, std_text


@dataclass(frozen=True, order=True)
class Column:
    """A setting after so many epochs."""

    setting: Setting
    epoch: int


@dataclass(frozen=True)
class Cell:
    """One cell: ours, and the paper's if it printed one.

    ``error`` is what the mean owes to estimates of ln Z alone, 0 where they are exact. ``differs`` says
    that the difference to the beta_max row is not the paper's, by the rule of `verdict`.
    """

    ours: Summary
    paper: PaperLogLikelihood | None = None
    best: bool = False
    differs: bool = False
    error: float = 0.0

    @property
    def misprint(self) -> str:
        """Why the paper's value is left out of the comparison; empty where it is not."""
        return "" if self.paper is None else misprint_of(self.paper)


@dataclass(frozen=True)
class Table:
    """Cells by row and column; ``offset`` was taken off our means where they are shown.

    ``offset`` is not zero where the data are another draw than the paper's, which moves all cells alike.
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

    def mark_differing(self, differing: Iterable[tuple[Start, Column]]) -> Table:
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
    paper: Mapping[tuple[Start, Column], PaperLogLikelihood] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """The table of ``field`` over these rows and columns; what was not run stays an empty cell."""
    printed = paper or {}
    cells = {}
    for column in columns:
        starts = runs.get(column.setting, {})
        for row in rows:
            records = starts.get(row, ())
            ours = summarize(values_at(records, column.epoch, field).values())
            errors = values_at(records, column.epoch, "error").values()
            error = math.sqrt(sum(value**2 for value in errors)) / max(len(errors), 1)
            cells[row, column] = Cell(ours, printed.get((row, column)), error=error)
    return Table(key, title, tuple(rows), tuple(columns), _with_best(cells, rows, columns), 0.0, tuple(notes))


def _with_best(
    cells: Mapping[tuple[Start, Column], Cell], rows: Sequence[Start], columns: Sequence[Column]
) -> dict[tuple[Start, Column], Cell]:
    """The best of each column marked, with its equals in print."""
    marked = dict(cells)
    for column in columns:
        shown = {row: round(cells[row, column].ours.mean, 2) for row in rows}
        finite = {row: value for row, value in shown.items() if math.isfinite(value)}
        if len(finite) > 1:
            best = max(finite.values())
            for row in (row for row, value in finite.items() if value == best):
                marked[row, column] = replace(cells[row, column], best=True)
    return marked


def paper_cells(key: str) -> dict[tuple[Start, Column], PaperLogLikelihood]:
    """The cells of the paper's table ``key``."""
    found = {}
    for cell in read_log_likelihoods():
        if cell.table == key:
            setting = Setting(cell.dataset, cell.n_visible, cell.n_hidden, "spin", cell.hidden, cell.c)
            found[Start(gain=cell.gain), Column(setting, cell.epoch)] = cell
    return found


def _columns_of(printed: Iterable[tuple[Start, Column]]) -> tuple[Column, ...]:
    """In the order of the paper."""
    return tuple(sorted({column for _, column in printed}, key=lambda column: (-column.setting.c, column)))


def paper_table(table: PaperTable, runs: Runs) -> Table:
    """One of the paper's tables with our values; for the toy data the common offset is found and noted."""
    printed = paper_cells(table.key)
    columns = _columns_of(printed)
    rows = [Start(gain=gain) for gain in GAINS]
    title = f"{table.title}: training log-likelihoods"
    made = make_table(table.key, title, runs, rows, columns, paper=printed)
    if table.dataset == "toy" and not made.empty:
        made = replace(made, offset=common_offset(made))
    return made


def common_offset(table: Table) -> float:
    """The median of ours minus the paper's over all cells that have both: the effect of another draw."""
    gaps = [
        cell.ours.mean - cell.paper.mean
        for cell in table.cells.values()
        if cell.paper is not None and not cell.misprint and math.isfinite(cell.ours.mean)
    ]
    return float(np.median(gaps)) if gaps else 0.0


def rivals_table(table: PaperTable, runs: Runs) -> Table:
    """The same settings from the weights that people use otherwise, beside beta_max."""
    columns = _columns_of(paper_cells(table.key))
    rows = [BETA_MAX, *(Start(scheme) for scheme in RIVALS)]
    title = f"{table.title}: other schemes"
    return make_table(f"{table.key}_rivals", title, runs, rows, columns, notes=_as_measured(table))


def held_out_table(table: PaperTable, runs: Runs) -> Table:
    """Log-likelihoods of points that were not learned; the paper has none."""
    columns = _columns_of(paper_cells(table.key))
    starts = {start for column in columns for start in runs.get(column.setting, {})}
    rows = [Start(gain=gain) for gain in GAINS] + [Start(scheme) for scheme in RIVALS]
    rows = [row for row in rows if row in starts] or rows
    title = f"{table.title}: held-out points"
    notes = _as_measured(table)
    return make_table(f"{table.key}_held_out", title, runs, rows, columns, field="held_out", notes=notes)


def _as_measured(table: PaperTable) -> tuple[str, ...]:
    return ("As measured: nothing is taken off.",) if table.dataset == "toy" else ()


def to_sheet(table: Table) -> Sheet:
    """The table as text, with notes that say what the cells rest on."""
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
    if len({other.c for other in settings}) > 1 or (len(settings) == 1 and setting.hidden == "bit"):
        parts.append(f"c = {setting.c:g}")
    return ", ".join(parts)


def cell_lines(cell: Cell, offset: float = 0.0, show_trials: bool = False) -> Lines:
    """Ours, then the paper's."""
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
    if cell.paper is not None:
        mark = " †" if cell.misprint else ""
        text = f"{cell.paper.mean:.2f} ({std_text(cell.paper.std)}){mark}"
        lines.append(Line(text, bold=cell.paper.best, quiet=True))
    return tuple(lines)


def _notes(table: Table) -> list[str]:
    notes = []
    fewest, most = table.n_trials
    has_paper = any(cell.paper is not None for cell in table.cells.values())
    if most:
        rests = (
            f"{most} trial" + "s" * (most > 1) if fewest == most else f"{fewest} to {most} trials, as said"
        )
        spread = "standard deviation over trials in parentheses" if most > 1 else "one trial: no spread"
        notes.append(f"Nats per point; mean of {rests}; {spread}; the best of each column is bold.")
    if any(cell.error > 0.0 and cell.ours.n_trials == 1 for cell in table.cells.values()):
        notes.append("± : standard error of the estimate of ln Z by mAIS.")
    if has_paper:
        notes.append("Second line of a cell: the paper's value.")
    if table.offset:
        notes.append(
            "Our points are another draw than the paper's, which moves all cells alike: the median of ours "
            f"minus the paper's, {table.offset:+.3f}, is taken off ours here."
        )
    if any(cell.differs for cell in table.cells.values()):
        notes.append("≠ : the difference to the β_max row is not the paper's.")
    if any(cell.misprint for cell in table.cells.values()):
        notes.append("† : misprint in the paper, left out of the comparison.")
    return notes
