"""What a column of a table holds: numbers, true or false, text, dates, or nothing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.data.columns import COMMA, POINT, Cells, Columns, Marks, as_columns, in_file, number_text
from paramagnet.data.rows import notation_hint
from paramagnet.data.table import LABEL_NAMES, as_number, is_missing

TRUTH = {"true": True, "false": False, "yes": True, "no": False, "t": True, "f": False, "y": True, "n": False}

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[ap]\.?m\.?)?\s*(?:z|utc|[+-]\d{2}:?\d{2})?"
_DATES = tuple(
    re.compile(rf"{date}(?:[t ,]+{_TIME})?" if date else _TIME, re.IGNORECASE)
    for date in (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
        r"\d{4}-\d{1,2}",
        r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}",
        rf"\d{{1,2}}[. -]*{_MONTH}[ ,-]*(?:\d{{4}}|\d{{2}})",
        rf"{_MONTH}[ -]*\d{{1,2}}(?:st|nd|rd|th)?[ ,]+\d{{4}}",
        rf"{_MONTH}[ ,-]+\d{{4}}",
        "",
    )
)
_INDEX_NAMES = ("id", "index", "idx", "key", "nr", "no", "no.", "row", "rownames", "rownum", "row_id", "uid")
_INDEX_NAME = re.compile(r"Unnamed: \d+|.*[ _-][iI][dD]|.*[a-z]I[dD]")  # also customer_id, PassengerId
_LARGEST = 2.0**53  # integers beyond are no exact floats, and no counts of anything but identifiers
_FEWEST_ROWS = 10  # fewer rows may count up by chance
_SHOWN = 4  # values that `examples` lists
_FEW_MARKS = 3  # most different texts among the numbers of a column that may all stand for missing cells


@dataclass(frozen=True)
class ColumnInfo:
    """What a column holds.

    Parameters
    ----------
    number : int
        Its place, counted from 1.
    name : str
        Its name.
    kind : str
        "number", "true/false", "text", "date", "mixed" (numbers and text) or "empty".
    n_missing, n_distinct : int
        Missing cells, and different values among the others.
    examples : tuple of str
        The most frequent values, or the lowest and the highest of many numbers.
    index : bool
        Whether it seems to number the rows.
    label : bool
        Whether its name says that it holds labels (class, label, labels, target).
    remark : str
        What else is to be said.
    marks : tuple of str
        In a column of numbers, the few texts without digits among them: they may stand for missing cells.
    """

    number: int
    name: str
    kind: str
    n_missing: int
    n_distinct: int
    examples: tuple[str, ...]
    index: bool = False
    label: bool = False
    remark: str = ""
    marks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The column as messages name it: ``age (column 2)``."""
        unnamed = self.name.endswith(f"column {self.number}") or f"(column {self.number})" in self.name
        return self.name if unnamed else f"{self.name} (column {self.number})"

    @property
    def handle(self) -> str:
        """What names the column in an option: its name, or its number where the name is no single word."""
        return str(self.number) if re.search(r"[\s,'\"`]", self.name) else self.name


def describe_columns(
    source: Any, *, header: bool | None = None, decimal: str = POINT, missing_values: Marks = None
) -> tuple[ColumnInfo, ...]:
    """What each column of a table holds.

    Parameters
    ----------
    source : str, os.PathLike, mapping or data frame
        The path of a file, or the table itself, columns by name.
    header : bool, optional
        Whether the first line of a ``.csv`` names the columns; None finds out.
    decimal : str, default "."
        The sign before the decimals of numbers that are text, as in a ``.csv``: "." or ",".
    missing_values : str, float or sequence, optional
        Further texts or numbers that stand for a missing cell, several with commas or in a list.

    Returns
    -------
    tuple of ColumnInfo
        A description of each column, in the order of the table.
    """
    table = as_columns(source, header, decimal=decimal, missing_values=missing_values)
    return tuple(describe_column(table, place) for place in range(len(table.names)))


def describe_column(table: Columns, place: int) -> ColumnInfo:
    """What the column at ``place``, counted from 0, holds."""
    name, cells = table.names[place], table.cells[place]
    counts = count_values(cells)
    n_missing = table.n_rows - sum(counts.values())
    numbers = {text: as_number(text) for text in counts}
    kind, remark = _judge(numbers, counts, cells, table)
    distinct = len(set(numbers.values())) if kind == "number" else len(counts)
    if kind == "true/false":
        distinct = len({text.lower() for text in counts})
    if distinct == 1:
        remark = "constant"
    if kind == "number" and distinct > 2 * _SHOWN:
        values = [value for value in numbers.values() if value is not None]
        examples: tuple[str, ...] = (number_text(min(values)), number_text(max(values)))
    else:
        examples = tuple(text for text, _ in counts.most_common(_SHOWN))
    return ColumnInfo(
        place + 1,
        name,
        kind,
        n_missing,
        distinct,
        examples,
        index=kind == "number" and not n_missing and _is_index(name, numbers, table),
        label=table.header and name.lower() in LABEL_NAMES,
        remark=remark,
        marks=_marks(numbers) if kind == "mixed" else (),
    )


def count_values(cells: Cells) -> Counter[str]:
    """How often each value occurs, gaps left out; numbers as text."""
    if isinstance(cells, np.ndarray):
        values, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
        return Counter({number_text(float(v)): int(n) for v, n in zip(values, counts, strict=True)})
    return Counter(cell for cell in cells if not is_missing(cell))


def as_numbers(cells: Cells) -> npt.NDArray[np.float64]:
    """The numbers of a column, NaN for gaps and for what is no number."""
    if isinstance(cells, np.ndarray):
        return cells
    return np.array([math.nan if (value := as_number(cell)) is None else value for cell in cells])


def is_date(text: str) -> bool:
    """Whether a text is a date or a time of day."""
    return any(pattern.fullmatch(text) for pattern in _DATES)


def _judge(
    numbers: dict[str, float | None], counts: Counter[str], cells: Cells, table: Columns
) -> tuple[str, str]:
    """The kind of a column, and what is wrong with it."""
    if not numbers:
        return "empty", "no value in any row"
    finite = [value for value in numbers.values() if value is not None and math.isfinite(value)]
    if len(finite) == len(numbers):
        return ("date", "") if _are_packed_dates(finite) else ("number", "")
    if all(text.lower() in TRUTH for text in numbers) and len({text.lower() for text in numbers}) <= 2:
        return "true/false", ""
    if sum(map(is_date, numbers)) > len(numbers) / 2:
        return "date", ""
    like_numbers = [text for text, value in numbers.items() if value is not None or notation_hint(text)]
    share = sum(counts[text] for text in like_numbers) / counts.total()
    if share <= 0.5 and not any(map(_is_infinite, numbers.values())):
        return "text", ""
    odd = next(text for text, value in numbers.items() if value is None or not math.isfinite(value))
    row = table.rows[list(cells).index(odd)] if isinstance(cells, list) else 1
    infinite = ", which is infinite" if _is_infinite(numbers[odd]) else ""
    hint = notation_hint(odd)
    if hint and table.decimal == COMMA:
        odd, hint = in_file(odd, COMMA), " Write numbers without points, and decimals with a comma."
    return "mixed", f"{odd[:40]!r} in line {row}{infinite}{hint and '.' + hint}"


def _marks(numbers: dict[str, float | None]) -> tuple[str, ...]:
    """The texts among numbers, if they are few and without digits, as ``-`` or ``unknown`` are."""
    odd = [text for text, value in numbers.items() if value is None]
    plain = not any(re.search(r"[\d,]", text) for text in odd)
    return tuple(odd) if plain and len(odd) <= _FEW_MARKS else ()


def _is_infinite(value: float | None) -> bool:
    return value is not None and math.isinf(value)


def _are_packed_dates(values: Sequence[float]) -> bool:
    """Whether the numbers are dates such as 20240131."""
    return len(values) > 1 and all(
        19000101 <= value <= 21001231
        and value.is_integer()
        and 1 <= int(value) // 100 % 100 <= 12
        and 1 <= int(value) % 100 <= 31
        for value in values
    )


def _is_index(name: str, numbers: dict[str, float | None], table: Columns) -> bool:
    """Whether a column numbers the rows: whole numbers, all different, without a hole or by its name.

    Where rows were set aside, the numbers of the others must lie as close as those of the whole table.
    """
    n_rows = table.n_rows
    values = sorted(value for value in numbers.values() if value is not None)
    if len(values) != n_rows or n_rows < 2 or not all(value.is_integer() for value in values):
        return False
    told = name.lower() in _INDEX_NAMES or _INDEX_NAME.fullmatch(name) is not None or values[0] > _LARGEST
    return told or (values[-1] - values[0] < max(n_rows, table.n_whole) and n_rows >= _FEWEST_ROWS)
