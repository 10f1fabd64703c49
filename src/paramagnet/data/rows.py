"""Numbers and labels from lines of text that are cut into fields; shared by CSV and ARFF."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from paramagnet.data.table import (
    LABEL_NAMES,
    Label,
    Table,
    as_number,
    choose_label,
    default_names,
    encode_labels,
    is_missing,
)

# In order of preference: if semicolons cut all lines alike, commas are decimal signs or part of a text.
SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", " ": "space"}

Lines = list[tuple[int, str]]  # numbers from 1, texts
Split = Callable[[str], list[str]]

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:([., '\u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
# The typographic minus, currencies, underscores, and characters that cannot be seen.
_SIGNS = str.maketrans(
    {"\u2212": "-", "\u2013": "-"} | dict.fromkeys("$\u20ac\u00a3_\u200b\u200e\u2060\ufeff", "")
)
DECIMAL_HINT = " Write decimals with a point."
_PARTS = re.compile(r"[\s,;]+")


@dataclass(frozen=True)
class RowLayout:
    """What is known of a text file before its numbers are read.

    ``missing`` says whether cells may be missing, ``listed`` which values the columns may have, where they
    are listed.
    """

    source: str
    names: Sequence[str] | None
    n_columns: int
    label: Label
    missing: bool
    separator: str = ","
    listed: tuple[tuple[int, frozenset[str]], ...] = ()  # column and values


def split_lines(text: str) -> list[str]:
    """The lines of a text with any line ends; other separators that Python knows count as text."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def read_rows(lines: Lines, split: Split, layout: RowLayout, found: list[str]) -> Table:
    """The table in ``lines``; ``found`` says in words what was found so far."""
    first = split(lines[0][1])
    n_columns = layout.n_columns
    if len(first) != n_columns:
        raise ValueError(wrong_width(lines[0], len(first), layout))
    column = _find_labels(first, lines[0][0], layout)
    values = array("d")
    labels: list[str] = []
    for number, line in lines:
        fields = split(line)
        if len(fields) != n_columns:
            raise ValueError(wrong_width((number, line), len(fields), layout))
        for i, allowed in layout.listed:
            if fields[i].strip() not in allowed:
                _check_listed(fields[i].strip(), allowed, i, number, layout)
        if column is not None:
            labels.append(fields.pop(column))
        done = len(values)
        try:
            values.extend(map(float, fields))
        except ValueError:
            del values[done:]
            values.extend(_read_slowly(fields, number, column, layout))
        else:
            if "_" in line:
                del values[done:]
                values.extend(_read_slowly(fields, number, column, layout))
    n_features = n_columns - (column is not None)
    if n_features == 0:
        raise ValueError(
            f"`path` must hold at least one column of numbers, got {_shown(lines[0][1])} in line "
            f"{lines[0][0]}: {layout.source}. Columns may be separated by {', '.join(SEPARATORS.values())}."
        )
    data = np.array(values, dtype=np.float64).reshape(len(lines), n_features)
    _check_finite(data, lines, split, column, layout)
    names = [*(default_names(n_columns) if layout.names is None else layout.names)]
    if column is None:
        return Table(data, tuple(names), found=tuple(found))
    _check_labels(labels, lines, column, layout)
    label_name = names.pop(column)
    if layout.names is None:
        label_name, names = f"column {column + 1}", list(default_names(n_features))
    found.append(f"labels in {label_name}")
    codes, classes = encode_labels(labels)
    return Table(data, tuple(names), codes, classes, column, found=tuple(found))


def _find_labels(first: list[str], number: int, layout: RowLayout) -> int | None:
    """The column of the labels. A number in a foreign notation is a label only if the caller says so."""
    texts = [i for i, field in enumerate(first) if as_number(field) is None and not is_missing(field)]
    foreign = [i for i in texts if notation_hint(first[i])]
    if foreign and (layout.label is None or layout.label is True or layout.label is False):
        telling = choose_label(layout.names, layout.n_columns, layout.label, [], layout.source)
        for i in foreign:
            if i != telling:
                _refuse_field(first[i], number, i, layout)
    return choose_label(layout.names, layout.n_columns, layout.label, texts, layout.source)


def has_decimal_comma(field: str) -> bool:
    """Whether a text is a number with a comma for its decimals, or with thousands set apart."""
    text = field.strip()
    if _THOUSANDS.fullmatch(text):
        return True
    return "," in text and as_number(text.replace(",", ".")) is not None


def notation_hint(field: str) -> str:
    """What to do about a text that is a number in a foreign notation, or several; "" for other texts."""
    text = field.strip()
    if _THOUSANDS.fullmatch(text):
        return " Write numbers without separators of thousands, and decimals with a point."
    if has_decimal_comma(text):
        return DECIMAL_HINT
    plain = text.translate(_SIGNS)
    if plain != text and (as_number(plain) is not None or _THOUSANDS.fullmatch(plain)):
        return " Write numbers with the digits 0 to 9, a point and the sign - only."
    if text.endswith("%") and as_number(text[:-1].replace(",", ".")) is not None:
        return " Write percentages as plain numbers."
    parts = _PARTS.split(text)
    if len(parts) > 1 and all(as_number(part) is not None for part in parts):
        return " Does the file mix separators?"
    return ""


def _refuse_field(field: str, number: int, column: int, layout: RowLayout) -> NoReturn:
    hint = notation_hint(field)
    if hint == DECIMAL_HINT:
        hint += " `paramagnet.data.fit_preparation(..., decimal=',')` reads such a file."
    raise ValueError(
        f"`path` must hold numbers only, got {_shown(field)} in line {number}, column {column + 1}: "
        f"{layout.source}.{hint}"
    )


def _shown(field: str) -> str:
    text = field.strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def _read_slowly(fields: list[str], number: int, column: int | None, layout: RowLayout) -> list[float]:
    """The numbers of one line, with NaN for missing cells."""
    values = []
    for i, field in enumerate(fields):
        value = as_number(field)
        if value is None:
            if not (layout.missing and is_missing(field)):
                _refuse_field(field, number, i + (column is not None and i >= column), layout)
            value = float("nan")
        values.append(value)
    return values


def _check_finite(
    data: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    lines: Lines,
    split: Split,
    column: int | None,
    layout: RowLayout,
) -> None:
    bad = np.isinf(data) if layout.missing else ~np.isfinite(data)
    if not bad.any():
        return
    row, feature = (int(place) for place in np.argwhere(bad)[0])
    number, line = lines[row]
    place = feature + (column is not None and feature >= column)
    rule = "finite numbers" if np.isinf(data[row, feature]) else "numbers only"
    raise ValueError(
        f"`path` must hold {rule}, got {_shown(split(line)[place])} in line {number}, column {place + 1}: "
        f"{layout.source}."
    )


def _check_listed(value: str, allowed: frozenset[str], column: int, number: int, layout: RowLayout) -> None:
    """Check that every value is in the list of its column; 1.0 equals 1."""
    if is_missing(value):
        return
    known = as_number(value)
    if known is not None and any(known == as_number(other) for other in allowed):
        return
    name = "" if layout.names is None else layout.names[column]
    listed = sorted(allowed)
    shown = ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "") if any(listed) else "empty"
    raise ValueError(
        f"`path` must have values of its {{list}} in the attribute {name!r}, got {_shown(value)} in line "
        f"{number}, column {column + 1}; the list is {shown}: {layout.source}. Correct the value, or add it "
        "to the list."
    )


def _check_labels(labels: list[str], lines: Lines, column: int, layout: RowLayout) -> None:
    telling = layout.names is not None and layout.names[column].strip().lower() in LABEL_NAMES
    for (number, _), label in zip(lines, labels, strict=True):
        if is_missing(label):
            raise ValueError(
                f"`path` must have a label in every line, got {label.strip()!r} in line {number}, column "
                f"{column + 1}: {layout.source}."
            )
        if layout.label is None and not telling and as_number(label) is not None:
            remedy = "Name the column if it holds labels"
            if layout.names is None:
                remedy += ", or pass `header=True` if the line holds the names of the columns"
            raise ValueError(
                f"`path` must hold numbers only, got {_shown(labels[0])} in line {lines[0][0]}, column "
                f"{column + 1} (in line {number} {label.strip()!r}): {layout.source}. {remedy}."
            )


def wrong_width(row: tuple[int, str], width: int, layout: RowLayout) -> str:
    """What to say of a line with ``width`` fields, where the layout has another number of them."""
    number, line = row
    others = [name for sign, name in SEPARATORS.items() if sign != " " and sign in line]
    hint = ""
    if len(others) > 1 or (width == 1 and others):
        hint = f" Does the file mix separators? ({' and '.join(others)} in line {number})"
    elif layout.separator == "," and layout.names is not None and width == 2 * layout.n_columns:
        hint = " Are the commas decimal signs? Write decimals with a point."
    return (
        f"`path` must have {layout.n_columns} cells a line, got {width} in line {number}: "
        f"{layout.source}.{hint}"
    )
