"""The cells of a table column by column, before anything is known about their meaning.

A csv from elsewhere holds numbers, texts, dates and gaps side by side. `Columns` keeps them as they are, so
that `kinds` can say what each column holds and `preparation` can turn it into units.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_choice, near_names
from paramagnet.data.arff import open_arff
from paramagnet.data.checks import existing_file
from paramagnet.data.files import file_kind, read_table
from paramagnet.data.parquet import open_parquet
from paramagnet.data.rows import Lines, RowLayout, Split, wrong_width
from paramagnet.data.table import as_number, is_missing
from paramagnet.data.text import decode, open_csv

POINT, COMMA = ".", ","  # signs before decimals
_NUMBER_WITH_COMMA = re.compile(r"[+-]?[\d.]*,\d+(?:[eE][+-]?\d+)?|[+-]?\d+\.\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
_EXCHANGED = str.maketrans(".,", ",.")

Cells = list[str] | npt.NDArray[np.float64]
Choice = str | int | Sequence[str | int] | None
Marks = str | float | Sequence[str | float] | None  # what stands for a missing cell in a table


@dataclass(frozen=True, eq=False)
class Columns:
    """A table as it stands in its file.

    ``cells`` are texts without the spaces around them, or float64 numbers with NaN for gaps. ``rows`` are the
    numbers of the rows in messages: lines of a text file, else counted from 1. ``decimal`` is the sign before
    decimals in the file; in ``cells`` it is a point. ``n_whole`` is the number of rows of the table that they
    were selected from; 0 if they are all. ``missing_values`` are the texts that the user said stand for a
    missing cell; in ``cells`` they are gaps.
    """

    names: tuple[str, ...]
    cells: tuple[Cells, ...]
    rows: tuple[int, ...]
    header: bool
    source: str
    decimal: str = POINT
    n_whole: int = 0
    missing_values: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def select(self, rows: npt.NDArray[np.intp]) -> Columns:
        """Some rows of the table, in this order."""
        cells = tuple(
            part[rows] if isinstance(part, np.ndarray) else [part[row] for row in rows] for part in self.cells
        )
        n_whole = self.n_whole or self.n_rows
        chosen = tuple(self.rows[row] for row in rows)
        return replace(self, cells=cells, rows=chosen, n_whole=n_whole)


def as_columns(
    source: Any,
    header: bool | None = None,
    asked: Sequence[Any] = (),
    decimal: str = POINT,
    missing_values: Marks = None,
) -> Columns:
    """``source`` as columns: the path of a file, a mapping of names to values, or a data frame.

    ``asked`` are columns that the user named: a first line of a csv that holds one of them is a header.
    ``decimal`` is the sign before the decimals of numbers that are written as text, as in a csv;
    ``missing_values`` are further texts or numbers that stand for a missing cell.
    """
    if header is not None and not isinstance(header, (bool, np.bool_)):
        raise ValueError(f"`header` must be True, False or None, got {shown(header)}.")
    check_decimal(decimal)
    marks = as_marks(missing_values)
    if isinstance(source, Columns):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_columns(existing_file(source, "source"), header, asked, decimal, marks)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # a data frame of pandas or polars
        names = list(source.columns)
        source = {str(name): list(source[name]) for name in names}
    if not isinstance(source, Mapping) or not source:
        raise ValueError(
            "`source` must be the path of a file, a data frame, or a mapping of names to columns, got "
            f"{shown(source)}."
        )
    cells = tuple(_as_cells(values, str(name)) for name, values in source.items())
    lengths = {len(part) for part in cells}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"`source` must have columns of one length, at least one row, got lengths {sorted(lengths)[:5]}."
        )
    names = unique_names([str(name) for name in source])
    table = Columns(tuple(names), cells, tuple(range(1, lengths.pop() + 1)), True, "the table")
    return _with_points(_with_gaps(table, marks), decimal)


def read_columns(
    path: Path,
    header: bool | None = None,
    asked: Sequence[Any] = (),
    decimal: str = POINT,
    missing_values: Marks = None,
) -> Columns:
    """The columns of a file of any format that `read_table` knows."""
    marks = as_marks(missing_values)
    return _with_points(_with_gaps(_read(path, header, asked), marks), decimal)


def _read(path: Path, header: bool | None, asked: Sequence[Any]) -> Columns:
    """The columns of a file, their cells as they stand there."""
    kind = file_kind(path)
    if kind == ".csv":
        text = decode(path.read_bytes(), str(path))
        first = None
        for name in asked:
            first = name if isinstance(name, str) and not name.lstrip("-").isdecimal() else first
        names, lines, split, separator = open_csv(text, str(path), header=header, label=first)
        return _cut(names, lines, split, str(path), separator)
    if kind == ".arff":
        arff_names, lines, split, _ = open_arff(decode(path.read_bytes(), str(path)), str(path))
        return _cut(arff_names, lines, split, str(path), ",")
    if kind == ".parquet":
        content = open_parquet(path)
        cells = tuple(
            _as_cells(content.column(i).to_pylist(), name) for i, name in enumerate(content.column_names)
        )
        names = unique_names(content.column_names)
        return Columns(tuple(names), cells, tuple(range(1, content.num_rows + 1)), True, str(path))
    table = read_table(path, label=False)
    data = np.asarray(table.data, dtype=np.float64)
    names = unique_names([""] * data.shape[1])
    return Columns(tuple(names), tuple(data.T), tuple(range(1, len(data) + 1)), False, str(path))


def unique_names(names: Sequence[str]) -> list[str]:
    """Names without doubles: a column without a name is "column 3", the second of a name "age (column 3)"."""
    result: list[str] = []
    for number, given in enumerate(names, 1):
        name = given.strip() or f"column {number}"
        result.append(f"{name} (column {number})" if name in result else name)
    return result


def choose_columns(choice: Choice, table: Columns, argument: str) -> tuple[int, ...]:
    """Places of the columns that the user chose by name or by number counted from 1; -1 is the last.

    Raises
    ------
    ValueError
        If there is no such column; the message names every one that is unknown, and columns like it.
    """
    places: list[int] = []
    unknown: list[str] = []
    for wanted in as_choices(choice, argument):
        number = int(wanted) if _is_number(wanted) else None
        if wanted in table.names:
            place = table.names.index(str(wanted))
        elif number is not None and 1 <= abs(number) <= len(table.names):
            place = number - 1 if number > 0 else len(table.names) + number
        else:
            unknown.append(f"{shown(wanted)}{near_names(_as_text(wanted), table.names)}")
            continue
        if place not in places:
            places.append(place)
    if unknown:
        commas = any("," in name for name in table.names)
        hint = " Give a column whose name has a comma by its number." if commas else ""
        raise ValueError(
            f"`{argument}` must name columns of {table.source}, or give their numbers from 1 to "
            f"{len(table.names)}, got {', '.join(unknown)}.{hint} `paramagnet data info` lists the columns."
        )
    return tuple(places)


def as_choices(choice: Any, argument: str) -> list[str | int]:
    """Columns that the user named: a text with commas, a number, or a sequence of both."""
    if choice is None:
        return []
    if isinstance(choice, str):
        parts: Sequence[Any] = [part.strip() for part in choice.split(",")]
    elif isinstance(choice, (int, np.integer)) and not isinstance(choice, bool):
        parts = [int(choice)]
    elif isinstance(choice, (list, tuple)):
        parts = choice
    else:
        parts = [None]
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, (str, int, np.integer)) or part == "":
            raise ValueError(
                f"`{argument}` must be names or numbers of columns with commas between them, or a list of "
                f"them, got {shown(choice)}."
            )
    return list(parts)


def check_decimal(decimal: Any) -> str:
    """``decimal`` as one of the signs that may stand before decimals."""
    return as_choice(decimal, "decimal", (POINT, COMMA))


def as_marks(missing_values: Any) -> tuple[str, ...]:
    """What the user said stands for a missing cell: a text with commas, a number, or a sequence of both."""
    if missing_values is None:
        return ()
    if isinstance(missing_values, str):
        parts: Sequence[Any] = missing_values.split(",")
    elif isinstance(missing_values, (list, tuple)):
        parts = missing_values
    else:
        parts = [missing_values]
    marks = []
    for part in parts:
        text = part.strip() if isinstance(part, str) else ""
        if isinstance(part, (int, float, np.integer, np.floating)) and not isinstance(part, bool):
            try:
                text = number_text(float(part)) if math.isfinite(part) else ""
            except OverflowError:
                text = ""
        if not text:
            raise ValueError(
                "`missing_values` must be texts or finite numbers that stand for a missing cell, with commas "
                f"between them or in a list, got {shown(missing_values)}."
            )
        marks.append(text)
    return tuple(dict.fromkeys(marks))


def number_text(value: float) -> str:
    """A number as short as it can be written without a change."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _as_text(wanted: str | int) -> str:
    """What the user wrote; no text of an integer of thousands of digits, which Python refuses to make."""
    return wanted[:100] if isinstance(wanted, str) else shown(wanted)


def _is_number(wanted: str | int) -> bool:
    return not isinstance(wanted, str) or (wanted.lstrip("-").isdecimal() and len(wanted) < 10)


def _cut(names: Sequence[str] | None, lines: Lines, split: Split, source: str, separator: str) -> Columns:
    width = len(split(lines[0][1]) if names is None else names)
    layout = RowLayout(source, names, width, None, True, separator)
    cells: list[list[str]] = [[] for _ in range(width)]
    for number, line in lines:
        fields = split(line)
        if len(fields) != width:
            raise ValueError(wrong_width((number, line), len(fields), layout))
        for column, field in zip(cells, fields, strict=True):
            column.append(field.strip())
    given = unique_names([""] * width if names is None else names)
    numbers = tuple(number for number, _ in lines)
    return Columns(tuple(given), tuple(cells), numbers, names is not None, source)


def in_file(cell: str, decimal: str) -> str:
    """A cell as it stood in the file: the opposite of `_with_point`, but for the points between thousands."""
    swapped = cell.translate(_EXCHANGED)
    return swapped if decimal == COMMA and _with_point(swapped) == cell else cell


def _with_gaps(table: Columns, marks: tuple[str, ...]) -> Columns:
    """A table as it was read, with gaps in place of the cells that stand for a missing value."""
    if not marks:
        return table
    texts = {mark.lower() for mark in marks}
    numbers = {number for mark in marks if (number := as_number(mark)) is not None}
    cells: list[Cells] = []
    for part in table.cells:
        if isinstance(part, np.ndarray):
            cells.append(np.where(np.isin(part, list(numbers)), math.nan, part))
        else:
            cells.append(
                ["" if c.lower() in texts or (numbers and as_number(c) in numbers) else c for c in part]
            )
    return replace(table, cells=tuple(cells), missing_values=marks)


def _with_points(table: Columns, decimal: str) -> Columns:
    """A table as it was read, with points before the decimals where it has ``decimal``."""
    if check_decimal(decimal) == POINT:
        return table
    cells = tuple(
        part if isinstance(part, np.ndarray) else list(map(_with_point, part)) for part in table.cells
    )
    return replace(table, cells=cells, decimal=decimal)


def _with_point(field: str) -> str:
    """A number of a file with decimal commas as Python writes it: 1.234,5 becomes 1234.5.

    A number with a point only, such as 1.234, becomes 1,234, which is refused: it may be 1234.
    """
    if not _NUMBER_WITH_COMMA.fullmatch(field):
        return field
    whole, comma, decimals = field.partition(",")
    if comma and _THOUSANDS.fullmatch(whole):
        return f"{whole.replace(POINT, '')}.{decimals}"
    return field.translate(_EXCHANGED)


def _as_cells(values: Any, name: str) -> Cells:
    """The values of a column in Python: numbers stay numbers, others become text, None and NaN are gaps."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise ValueError(f"`source` must have a sequence of values in column {name!r}, got {shown(values)}.")
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if all(
        value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in plain
    ):
        try:
            return np.array([math.nan if value is None else float(value) for value in plain])
        except OverflowError:
            raise ValueError(f"`source` must have finite numbers in column {name!r}.") from None
    texts = ["" if _is_gap(value) else str(value).strip() for value in plain]
    return ["" if is_missing(text) else text for text in texts]


def _is_gap(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NaTType", "NAType")
