"""Decide whether the first line of a CSV file is a header; a line of numbers can be doubtful.

A line of numbers above lines of numbers is taken for data, unless it looks like years, positions or other
numbers that name columns; the reader then raises an error that asks the user. The tests below take a row of
ordinary data for a possible header in less than one file of a thousand: a header's numbers are all different,
and they differ from the lines below in kind or in order, not merely in size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from paramagnet.data.rows import has_decimal_comma
from paramagnet.data.table import LABEL_NAMES, as_number, is_missing

_INTEGER = re.compile(r"[+-]?\d+")
_YEARS = (1800.0, 2100.0)
# Two years must both be recent, or have one of the steps; more of them must rise or fall.
_RECENT_YEARS = (1950.0, 2050.0)
_YEAR_STEPS = (1.0, 2.0, 5.0, 10.0)
_MANY_STEPS = 5  # so many integers at equal distances are unlikely in data
_MANY_RISING = 7  # a random row rises from end to end once in 5040

Fields = Sequence[str]


def is_header(fields: Fields) -> bool:
    """Whether a line names columns: no field of it is a number, or one is called class, label or target."""
    return all(as_number(field) is None and not has_decimal_comma(field) for field in fields) or any(
        field.lower() in LABEL_NAMES for field in fields
    )


def may_name_columns(fields: Fields) -> bool:
    """Whether there are numbers in a line, all of them different, as names must be."""
    numbers = [_number(field) for field in fields if as_number(field) is not None and not is_missing(field)]
    return 0 < len(numbers) == len(set(numbers))


def doubt_header(first: Fields, below: Sequence[Fields], *, quoted: bool) -> str | None:
    """Why ``first``, which holds numbers, might be a header all the same; None where it is data.

    ``below`` are the lines that follow, ``quoted`` says that all of ``first`` is in quotes and no number of
    ``below`` is.
    """
    columns = [i for i, field in enumerate(first) if as_number(field) is not None and not is_missing(field)]
    names = [first[i].strip() for i in columns]
    numbers = [_number(name) for name in names]
    rows = [[row[i].strip() for i in columns] for row in below if len(row) == len(first)]
    if not rows or not may_name_columns(first):
        return None
    if quoted:
        return "its numbers are in quotes, those below are not"
    titled = _has_title(first, [row for row in below if len(row) == len(first)])
    whole = all(_INTEGER.fullmatch(name) for name in names)
    if whole and _are_years(numbers, titled) and not any(_all_years(row) for row in rows):
        return "its numbers may be years"
    if whole and _count_up(numbers, titled) and not any(_has_steps_of(numbers, row) for row in rows):
        return "its numbers count the columns"
    if whole and len(rows) > 1 and _differ_in_kind(numbers, rows):
        return "its numbers are integers, those below are not"
    if len(numbers) >= _MANY_RISING and len(rows) > 1 and _rises(numbers):
        values = (list(map(_number, row)) for row in rows)
        return None if any(map(_rises, values)) else "its numbers rise from column to column"
    return None


def _number(field: str) -> float:
    value = as_number(field)
    return float("nan") if value is None else value


def _has_title(first: Fields, below: Sequence[Fields]) -> bool:
    """Whether a text of the first line stands apart from its column: alone where the others repeat, or a gap
    above a full column, as pandas writes it above its index.
    """
    for i, field in enumerate(first):
        if as_number(field) is not None and not is_missing(field):
            continue
        others = Counter(row[i].strip() for row in below)
        if is_missing(field):
            if not any(map(is_missing, others)):
                return True
        elif field.strip() not in others and min(others.values()) > 1:
            return True
    return False


def _are_years(numbers: list[float], titled: bool) -> bool:
    if not all(_YEARS[0] <= number <= _YEARS[1] for number in numbers):
        return False
    if titled or len(numbers) == 1:
        return titled
    if len(numbers) == 2:
        recent = _RECENT_YEARS[0] <= numbers[0] < numbers[1] <= _RECENT_YEARS[1]
        return recent or abs(numbers[1] - numbers[0]) in _YEAR_STEPS
    return _rises(numbers) or _rises(numbers[::-1])


def _all_years(row: list[str]) -> bool:
    return all(_INTEGER.fullmatch(field) and _YEARS[0] <= float(field) <= _YEARS[1] for field in row)


def _count_up(numbers: list[float], titled: bool) -> bool:
    """0, 1, 2 or 1, 2, 3 and so on; at least five numbers may have any start and any equal steps."""
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) != 1:
        return False
    if len(numbers) >= _MANY_STEPS:
        return True
    return len(numbers) >= (2 if titled else 3) and numbers[0] in (0.0, 1.0) and steps == {1.0}


def _has_steps_of(numbers: list[float], row: list[str]) -> bool:
    """Whether a row is of the same kind: the same steps elsewhere, or the same numbers in another order."""
    values = [_number(field) for field in row]
    if set(values) == set(numbers):
        return True
    step = numbers[1] - numbers[0]
    return all(after - before == step for before, after in pairwise(values))


def _differ_in_kind(numbers: list[float], rows: list[list[str]]) -> bool:
    if len(numbers) == 1 and not _YEARS[0] <= numbers[0] <= _YEARS[1]:
        return False
    if not (_rises(numbers) or _rises(numbers[::-1])):
        return False
    known = [field for row in rows for field in row if not is_missing(field)]
    return bool(known) and not any(_INTEGER.fullmatch(field) for field in known)


def _rises(numbers: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(numbers))
