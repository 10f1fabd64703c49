"""Decide how the columns of a table become units; refuse, all at once, those that cannot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paramagnet._checks import as_count, as_real, shown_near
from paramagnet.data.codes import KEPT, find_alphabet, fit_code
from paramagnet.data.columns import POINT, Choice, Columns, Marks, as_choices, as_columns, choose_columns
from paramagnet.data.kinds import ColumnInfo, as_numbers, describe_column
from paramagnet.data.preparation import Preparation, check_missing
from paramagnet.data.rows import DECIMAL_HINT
from paramagnet.data.table import is_missing
from paramagnet.units import Unit, as_unit

NUMBERS = ("otsu", "median", KEPT)
MOST_CATEGORIES = 20

_MOST_OFFERED = 200  # different values of a text for which more units are offered
_FEWEST_EACH = 2  # rows that each of these values must have on average
_SPARSE = 0.5  # a column with a larger share of gaps is better left out


class ColumnWarning(UserWarning):
    """A column is used that may not be meant to: it numbers the rows, or has one value only."""


@dataclass(frozen=True)
class _Complaint:
    """Why a column cannot be used, and the option that helps: "drop", "missing", or "" for neither.

    ``splittable`` says whether the column is a text that a unit for each of its values could stand for.
    """

    info: ColumnInfo
    reason: str
    option: str
    splittable: bool = False


def fit_preparation(
    source: Any,
    *,
    columns: Choice = None,
    drop: Choice = None,
    label: Choice | bool = None,
    missing: str = "error",
    numbers: str | float = "otsu",
    units: str | Unit | None = None,
    most_categories: int = MOST_CATEGORIES,
    header: bool | None = None,
    decimal: str = POINT,
    missing_values: Marks = None,
) -> Preparation:
    """Decide from a table how its columns become the visible units of a machine.

    Columns with two different values become one unit, other numbers one unit by a threshold, or a Gaussian
    unit each; text becomes a unit for each of its values. Dates, columns that mix numbers and text, and text
    with many different values are refused; one error names all such columns and the options that help.

    Parameters
    ----------
    source : str, os.PathLike, mapping or data frame
        The path of a file, or the table itself, columns by name.
    columns : str, int or sequence, optional
        The columns to use: names, or numbers counted from 1 (-1 is the last), several with commas or in a
        list; None takes all.
    drop : str, int or sequence, optional
        Columns to leave out.
    label : str, int, sequence or bool, optional
        Columns of labels, which are left out too; None takes the one called class, label, labels or target,
        else the only one with text; False takes none.
    missing : str, default "error"
        What to do about missing cells: "error"; "drop" leaves out rows with a gap; "mode" fills in the most
        frequent value of the column, of numbers the median.
    numbers : str or float, default "otsu"
        How numbers become units: by a threshold ("otsu", "median", or the number itself), or "gaussian":
        they stay numbers, standardized.
    units : str or Unit, optional
        "spin" (None) or "bit"; with ``numbers="gaussian"`` "gaussian" (None).
    most_categories : int, default 20
        The most different values that a column of text may have.
    header : bool, optional
        Whether the first line of a ``.csv`` names the columns; None finds out.
    decimal : str, default "."
        The sign before the decimals of the numbers in a ``.csv``: "." or ",". Later files are read by it too.
    missing_values : str, float or sequence, optional
        Further texts or numbers that stand for a missing cell, such as "-" or -999, several with commas or in
        a list. Empty cells and NA, N/A, #N/A, NaN, null, none and ? are missing in any case.

    Returns
    -------
    Preparation
        The rule, with ``apply`` and ``invert``.
    """
    check_missing(missing)
    rule = _check_numbers(numbers)
    unit = _check_units(units, rule)
    most_categories = as_count(most_categories, "most_categories")
    label = None if label is True else label
    labels = [] if label is None or label is False else as_choices(label, "label")
    asked = [*as_choices(columns, "columns"), *as_choices(drop, "drop"), *labels]
    table = as_columns(source, header, asked, decimal, missing_values)
    chosen, left_out = choose(table, columns, drop, label)
    infos = [describe_column(table, place) for place in chosen]
    complaints = [
        complaint
        for info in infos
        if (complaint := _complain(info, table, rule, missing, most_categories)) is not None
    ]
    if complaints:
        given = [describe_column(table, place) for place in choose_columns(drop, table, "drop")]
        raise ValueError(_refusal(complaints, infos, table, rule, given))
    if missing == "drop":
        table = _complete(table, chosen)
        infos = [describe_column(table, place) for place in chosen]
    few = [info for info in infos if info.kind == "number" and info.n_distinct <= 2]
    alphabet = find_alphabet([table.cells[info.number - 1] for info in few])
    _warn(infos, bool(alphabet))
    codes = tuple(
        fit_code(info, table.cells[place], rule, alphabet) for info, place in zip(infos, chosen, strict=True)
    )
    names = tuple(table.names[place] for place in left_out)
    n_columns = len(table.names)
    fitted = Preparation(
        codes, unit, missing, names, table.header, n_columns, (), 0, table.decimal, table.missing_values
    )
    states, _ = fitted.encode(table)
    return replace(fitted, means=tuple(map(float, states.mean(axis=0))), n_points=len(states))


def suggest_options(
    source: Any, *, header: bool | None = None, decimal: str = POINT, missing_values: Marks = None
) -> tuple[tuple[str, ...], bool]:
    """Columns of a table that must be left out, and whether others have missing cells.

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
    tuple of (tuple of str, bool)
        What to give as ``drop``, a suspected index included, and whether ``missing`` must be given.
    """
    table = as_columns(source, header, decimal=decimal, missing_values=missing_values)
    chosen, _ = choose(table, None, None, None)
    infos = [describe_column(table, place) for place in chosen]
    found = {info: _complain(info, table, "otsu", "error", MOST_CATEGORIES) for info in infos}
    refused = [info for info, complaint in found.items() if complaint and complaint.option == "drop"]
    gaps = any(complaint.option == "missing" for complaint in found.values() if complaint is not None)
    return tuple(info.handle for info in infos if info in refused or info.index), gaps


def choose(
    table: Columns, columns: Choice, drop: Choice, label: Choice | bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of the columns that are used, in the order of the table, and of those that are not."""
    wanted = choose_columns(columns, table, "columns")
    left_out = {*choose_columns(drop, table, "drop"), *find_labels(table, label, wanted)}
    places = range(len(table.names))
    chosen = tuple(i for i in places if i not in left_out and (columns is None or i in wanted))
    if not chosen:
        raise ValueError(
            f"`columns` must leave at least one column of {table.source} that is neither left out by `drop` "
            "nor holds labels, found none. `label=False` takes labels as data."
        )
    return chosen, tuple(i for i in places if i not in chosen)


def find_labels(table: Columns, label: Choice | bool, wanted: Sequence[int] = ()) -> tuple[int, ...]:
    """The places of the columns with labels: those asked for, else those with a telling name, else the only
    one with text; ``wanted`` are columns that are data in any case.
    """
    if label is False:
        return ()
    if label is not None and label is not True:
        return choose_columns(label, table, "label")
    infos = [describe_column(table, place) for place in range(len(table.names))]
    telling = [info.number - 1 for info in infos if info.label]
    texts = [info.number - 1 for info in infos if info.kind == "text"]
    found = telling or (texts if len(texts) == 1 and len(infos) > 1 else [])
    return tuple(place for place in found if place not in wanted)


def _check_numbers(numbers: Any) -> str | float:
    if isinstance(numbers, str):
        if numbers not in NUMBERS:
            raise ValueError(
                "`numbers` must be 'otsu', 'median', 'gaussian' or a number, the threshold, got "
                f"{shown_near(numbers, NUMBERS)}."
            )
        return numbers
    return as_real(numbers, "numbers")


def _check_units(units: Any, rule: str | float) -> Unit:
    continuous = rule == KEPT
    unit = as_unit(("gaussian" if continuous else "spin") if units is None else units, "units")
    if (unit.values is None) != continuous or (not continuous and len(unit.values or ()) != 2):
        wanted = "gaussian" if continuous else "spin or bit"
        raise ValueError(f"`units` must be {wanted} for `numbers={rule!r}`, got {unit}.")
    return unit


def _complain(
    info: ColumnInfo, table: Columns, rule: str | float, missing: str, most_categories: int
) -> _Complaint | None:
    """Why a column cannot be used; None if it can."""
    if info.kind == "date":
        return _Complaint(info, f"dates or times, such as {info.examples[0]!r}", "drop")
    if info.kind == "empty":
        return _Complaint(info, "no value in any row", "drop")
    if info.kind == "mixed":
        return _Complaint(info, f"cells that are no numbers: {info.remark}", "drop")
    if rule == KEPT and info.kind != "number":
        return _Complaint(info, f"{info.kind}, which cannot be a Gaussian unit", "drop")
    if rule == KEPT and _spread(table, info) == 0.0:
        return _Complaint(info, "one value only, which cannot be standardized", "drop")
    if info.kind == "text" and info.n_distinct > most_categories:
        known = table.n_rows - info.n_missing
        every = "in every row another one" if info.n_distinct == known else f"more than {most_categories}"
        splittable = info.n_distinct <= min(_MOST_OFFERED, known // _FEWEST_EACH)
        return _Complaint(info, f"text with {info.n_distinct} different values, {every}", "drop", splittable)
    if info.n_missing and missing == "error":
        many = info.n_missing > _SPARSE * table.n_rows
        share = f"{info.n_missing} of {table.n_rows} cells missing"
        return _Complaint(info, share, "drop" if many else "missing")
    return None


def _spread(table: Columns, info: ColumnInfo) -> float:
    values = as_numbers(table.cells[info.number - 1])
    spread = float(np.nanstd(values))
    return spread if math.isfinite(spread) else 0.0


def _refusal(
    complaints: Sequence[_Complaint],
    infos: Sequence[ColumnInfo],
    table: Columns,
    rule: str | float,
    given: Sequence[ColumnInfo],
) -> str:
    """One error for all columns, with the options that help; ``given`` are left out already."""
    dropped = [complaint.info for complaint in complaints if complaint.option == "drop"]
    marks = list(dict.fromkeys(mark for info in dropped for mark in info.marks))
    lines = [f"  {complaint.info.title}: {complaint.reason}" for complaint in complaints]
    remedies = []
    if dropped:
        them = "it" if len(dropped) == 1 else "them"
        if any(DECIMAL_HINT in info.remark for info in dropped):
            remedies.append("Read commas as decimal signs by `decimal=','`.")
        as_well = " as well" if given else ""
        if marks:
            remedies.append(_take_for_missing(marks, [info for info in dropped if not info.marks], given))
        handles = ",".join(info.handle for info in (*given, *dropped))
        leave = "If not, leave" if marks else "Leave"
        if marks or len(dropped) < len(infos):
            remedies.append(f"{leave} {them} out{as_well} by `drop='{handles}'`.")
        else:
            remedies.append("No column would be left without them; a machine learns numbers or few values.")
    if marks or len(dropped) < len(complaints):
        remedies.append(
            "Leave out rows with missing cells by `missing='drop'`, or fill the cells in by `missing='mode'`."
        )
    texts = [complaint.info.n_distinct for complaint in complaints if complaint.splittable]
    if rule == KEPT and any(info.kind in ("text", "true/false") for info in dropped):
        remedies.append("Without `numbers='gaussian'`, text and true/false columns can be used.")
    elif texts:
        remedies.append(f"A unit for each of more values is allowed by `most_categories={max(texts)}`.")
    counting = [info for info in infos if info.index]
    if counting:
        names = " and ".join(info.title for info in counting)
        handles = ",".join(info.handle for info in (*given, *dropped, *counting))
        do = "Does" if len(counting) == 1 else "Do"
        remedies.append(f"{do} {names} only number the rows? Then take `drop='{handles}'`.")
    return (
        f"`source` must have columns that can be units, found {len(complaints)} of {len(infos)} that cannot "
        f"be in {table.source}:\n" + "\n".join((*lines, *remedies))
    )


def _take_for_missing(marks: Sequence[str], others: Sequence[ColumnInfo], given: Sequence[ColumnInfo]) -> str:
    """The remedy for columns of numbers with a few texts, and for the ``others`` that must go then."""
    do = "Does" if len(marks) == 1 else "Do"
    words = f"{do} {' and '.join(map(repr, marks))} stand for missing cells? Then take "
    words += f"`missing_values='{','.join(marks)}'`"
    if others:
        words += f" and `drop='{','.join(info.handle for info in (*given, *others))}'`"
    return f"{words}."


def _complete(table: Columns, chosen: Sequence[int]) -> Columns:
    """The rows without a missing cell in the chosen columns."""
    kept = np.ones(table.n_rows, dtype=np.bool_)
    for place in chosen:
        cells = table.cells[place]
        if isinstance(cells, np.ndarray):
            kept &= ~np.isnan(cells)
        else:
            kept &= ~np.array([is_missing(cell) for cell in cells])
    if not kept.any():
        raise ValueError(
            f"`source` must have at least one row without missing cells: {table.source}. Leave out columns "
            "with many gaps by `drop`, or fill them in by `missing='mode'`."
        )
    return table.select(np.flatnonzero(kept))


def _warn(infos: Sequence[ColumnInfo], alphabet: bool) -> None:
    """Say which columns are used though they may not be meant to be; a pixel that is always 0 is."""
    for info in infos:
        if info.index:
            warnings.warn(
                f"{info.title} seems to number the rows, and is learned like any other number. Leave it "
                f"out by `drop='{info.handle}'`.",
                ColumnWarning,
                stacklevel=3,
            )
    constant = [info for info in infos if info.n_distinct == 1 and not (alphabet and info.kind == "number")]
    if constant:
        titles = ", ".join(info.title for info in constant[:5]) + (", ..." if len(constant) > 5 else "")
        warnings.warn(
            f"{titles}: one value only, which teaches nothing. Leave out such columns by "
            f"`drop='{','.join(info.handle for info in constant)}'`.",
            ColumnWarning,
            stacklevel=3,
        )
