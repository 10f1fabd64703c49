"""[Y25] section 4, Tables 1 to 9, with our values beside the paper's.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from paramagnet.reproduction.paper import (
    PaperLogLikelihood,
    PaperTable,
    read_log_likelihoods,
)
from paramagnet.sweeps.groups import (
    BETA_MAX,
    GAINS,
    RIVALS,
    Runs,
    Setting,
    Start,
)
from paramagnet.sweeps.results_table import Column, ResultsTable, make_table, to_sheet
from paramagnet.sweeps.sheet import Sheet


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


def paper_table(table: PaperTable, runs: Runs) -> ResultsTable:
    """One of the paper's tables with our values; for the toy data the common offset is found and noted."""
    printed = paper_cells(table.key)
    columns = _columns_of(printed)
    rows = [Start(gain=gain) for gain in GAINS]
    title = f"{table.title}: training log-likelihoods"
    made = make_table(table.key, title, runs, rows, columns, references=printed)
    if table.dataset == "toy" and not made.empty:
        made = replace(made, offset=common_offset(made))
    return made


def common_offset(table: ResultsTable) -> float:
    """The median of ours minus the paper's over all cells that have both: the effect of another draw."""
    gaps = [
        cell.ours.mean - cell.reference.mean
        for cell in table.cells.values()
        if cell.reference is not None and not cell.misprint and math.isfinite(cell.ours.mean)
    ]
    return float(np.median(gaps)) if gaps else 0.0


def rivals_table(table: PaperTable, runs: Runs) -> ResultsTable:
    """The same settings from the weights that people use otherwise, beside beta_max."""
    columns = _columns_of(paper_cells(table.key))
    rows = [BETA_MAX, *(Start(scheme) for scheme in RIVALS)]
    title = f"{table.title}: other schemes"
    return make_table(f"{table.key}_rivals", title, runs, rows, columns, notes=_as_measured(table))


def held_out_table(table: PaperTable, runs: Runs) -> ResultsTable:
    """Log-likelihoods of points that were not learned; the paper has none."""
    columns = _columns_of(paper_cells(table.key))
    starts = {start for column in columns for start in runs.get(column.setting, {})}
    rows = [Start(gain=gain) for gain in GAINS] + [Start(scheme) for scheme in RIVALS]
    rows = [row for row in rows if row in starts] or rows
    title = f"{table.title}: held-out points"
    notes = _as_measured(table)
    return make_table(f"{table.key}_held_out", title, runs, rows, columns, field="held_out", notes=notes)


def paper_sheet(table: ResultsTable) -> Sheet:
    """A table as text, with notes that say how it relates to the paper's."""
    return to_sheet(replace(table, notes=(*_paper_notes(table), *table.notes)))


def _paper_notes(table: ResultsTable) -> list[str]:
    notes, cells = [], table.cells.values()
    if any(cell.reference is not None for cell in cells):
        notes.append("Second line of a cell: the paper's value.")
    if table.offset:
        notes.append(
            "Our points are another draw than the paper's, which moves all cells alike: the median of ours "
            f"minus the paper's, {table.offset:+.3f}, is taken off ours here."
        )
    if any(cell.differs for cell in cells):
        notes.append("≠ : the difference to the β_max row is not the paper's.")
    if any(cell.misprint for cell in cells):
        notes.append("† : misprint in the paper, left out of the comparison.")
    return notes


def _as_measured(table: PaperTable) -> tuple[str, ...]:
    return ("As measured: nothing is taken off.",) if table.dataset == "toy" else ()
