"""Tables that commands write as csv: samples in the user's columns, scores, hidden features."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.data.preparation import Preparation
    from paramagnet.units import FloatArray


def write_csv(
    out: Path, names: Sequence[str] | None, rows: Iterable[Sequence[Any]], *, decimal: str = "."
) -> None:
    """Write rows below the names of the columns, atomically; floats in full, None as an empty cell.

    With decimal commas the cells are separated by semicolons, as spreadsheets do it.
    """
    from paramagnet._files import write_atomically

    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="," if decimal == "." else ";", lineterminator="\n")
    if names is not None:
        writer.writerow(names)
    writer.writerows([_cell(value, decimal) for value in row] for row in rows)
    write_atomically(out, stream.getvalue().encode())


def write_columns(
    out: Path, preparation: Preparation, states: FloatArray, given: dict[str, list[Any]] | None = None
) -> None:
    """Write states of the visible units as a table in the user's own columns.

    ``given`` are the cells of clamped columns, None where they are free: each row of them stands for as many
    rows of states, and its cells are written as they were given, not as the value of their side.
    """
    from paramagnet.data.columns import in_file

    table = dict(preparation.invert(states))
    for name, cells in (given or {}).items():
        n_each = len(states) // len(cells)
        cells = [in_file(cell, preparation.decimal) if isinstance(cell, str) else cell for cell in cells]
        table[name] = [
            value if cells[row // n_each] is None else cells[row // n_each]
            for row, value in enumerate(table[name])
        ]
    names = preparation.column_names if preparation.header else None
    write_csv(out, names, zip(*table.values(), strict=True), decimal=preparation.decimal)
    empty = {name: sum(value is None for value in values) for name, values in table.items()}
    gaps = [f"{name} {count}" for name, count in empty.items() if count]
    if gaps:
        say(
            f"Empty cells, where no value or more than one of a column is high: {', '.join(gaps)} "
            f"(of {len(states)} rows).",
            err=True,
        )


def _cell(value: Any, decimal: str) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        text = str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
        return text.replace(".", decimal)
    return value
