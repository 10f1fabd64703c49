"""Tables written as text: CSV with any of the usual separators, and ARFF."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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

# In this order: where semicolons cut all lines alike, commas are decimal signs or part of a text.
_SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", " ": "space"}
_SAMPLE = 10  # lines that decide about the separator
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ARFF_FIELD = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(?:,|$)")
_ARFF_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{]+)\s*(\{{.*\}}|[a-z]+.*)$", re.IGNORECASE)
_ARFF_NUMBERS = ("numeric", "real", "integer")

Lines = list[tuple[int, str]]  # numbers from 1, texts


@dataclass(frozen=True)
class _Layout:
    """What is known of a text file before its numbers are read."""

    source: str
    names: Sequence[str] | None
    n_columns: int
    label: Label
    missing: bool  # whether cells may be missing


def parse_csv(
    text: str, source: str, *, header: bool | None = None, label: Label = None, missing: bool = True
) -> Table:
    """The table in the text of a CSV file called ``source``.

    The separator is the first of tab, semicolon, comma and space that cuts the first lines into equally many
    fields. The first line is the header if it holds no number, or if one of its fields is called class, label
    or target. A cell that is empty, ``?`` or ``NA`` is missing: NaN, or an error unless ``missing``.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    separator = _find_separator([line for _, line in lines[:_SAMPLE]])
    split = _splitter(separator, '"' in text)
    names = None
    if lines:
        first = [field.strip() for field in split(lines[0][1])]
        if header or (header is None and _is_header(first)):
            names, lines = [name or f"x{i}" for i, name in enumerate(first)], lines[1:]
    if not lines:
        raise ValueError(f"`path` must hold at least one line of numbers: {source}.")
    n_columns = len(names if names is not None else split(lines[0][1]))
    layout = _Layout(source, names, n_columns, label, missing)
    found = [f"separated by {_SEPARATORS[separator]}s"] if n_columns > 1 else []
    found.append("no header" if names is None else "header")
    return _parse(lines, split, layout, found)


def _is_header(fields: list[str]) -> bool:
    return all(as_number(field) is None for field in fields) or any(
        field.lower() in LABEL_NAMES for field in fields
    )


def _find_separator(lines: list[str]) -> str:
    for separator in _SEPARATORS:
        counts = {len(_splitter(separator, '"' in line)(line)) for line in lines}
        if len(counts) == 1 and counts.pop() > 1:
            return separator
    # No two lines agree: the commonest sign of the first one, so that an error can name a line.
    first = lines[0] if lines else ""
    return max((",", ";", "\t"), key=first.count)


def _splitter(separator: str, quotes: bool) -> Callable[[str], list[str]]:
    if quotes:

        def split_quoted(line: str) -> list[str]:
            try:
                return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            except (csv.Error, StopIteration):
                return line.split(separator)

        return split_quoted
    return str.split if separator == " " else lambda line: line.split(separator)


def parse_arff(text: str, source: str, *, label: Label = None, missing: bool = True) -> Table:
    """The table in the text of an ARFF file called ``source``; nominal attributes of numbers are numbers."""
    names: list[str] = []
    declared: list[set[str] | None] = []
    lines = text.splitlines()
    for start, line in enumerate(lines):
        statement = line.strip()
        keyword = statement[:10].lower()
        if keyword.startswith("@data"):
            break
        if keyword.startswith("@attribute"):
            name, values = _parse_attribute(statement, start + 1, source)
            names.append(name)
            declared.append(values)
        elif statement and not statement.startswith(("%", "@")):
            raise ValueError(f"`path` must be an ARFF file, got {statement[:40]!r} before @data: {source}.")
    else:
        raise ValueError(f"`path` must be an ARFF file, but has no line @data: {source}.")
    body = [
        (number, line)
        for number, line in enumerate(lines[start + 1 :], start + 2)
        if line.strip() and not line.lstrip().startswith("%")
    ]
    if not names or not body:
        raise ValueError(f"`path` must hold attributes and at least one line of data: {source}.")
    if body[0][1].lstrip().startswith("{"):
        raise ValueError(f"`path` must be a dense ARFF file, this one is sparse: {source}.")
    quotes = any("'" in line or '"' in line for _, line in body)
    table = _parse(
        body,
        _split_arff if quotes else lambda line: line.split(","),
        _Layout(source, names, len(names), label, missing),
        ["ARFF"],
    )
    allowed = None if table.label_column is None else declared[table.label_column]
    if allowed is not None and not set(table.class_names) <= allowed:
        stray = min(set(table.class_names) - allowed)
        raise ValueError(f"`path` has the label {stray!r}, which its @attribute does not list: {source}.")
    return table


def _split_arff(line: str) -> list[str]:
    fields: list[str] = []
    position = 0
    while True:
        match = _ARFF_FIELD.match(line, position)
        if match is None:
            return [*fields, line[position:]]  # an open quote; the number parser names it
        fields.append(_unquoted(match.group(1)))
        position = match.end()
        if not match.group(0).endswith(","):
            return fields


def _unquoted(field: str) -> str:
    if len(field) > 1 and field[0] in "'\"" and field[0] == field[-1]:
        return re.sub(r"\\(.)", r"\1", field[1:-1])
    return field


def _parse_attribute(statement: str, number: int, source: str) -> tuple[str, set[str] | None]:
    """The name of an attribute, and its values if they are listed."""
    match = _ARFF_ATTRIBUTE.match(statement)
    kind = "" if match is None else match.group(2).strip()
    if match is None or (
        not kind.startswith("{") and kind.split()[0].lower() not in (*_ARFF_NUMBERS, "string")
    ):
        raise ValueError(
            f"`path` must have attributes that are numbers, {{lists}} or strings, got {statement[:60]!r} in "
            f"line {number}: {source}."
        )
    values = {value.strip() for value in _split_arff(kind[1:-1])} if kind.startswith("{") else None
    return _unquoted(match.group(1)), values


# Rows of fields to numbers and labels


def _parse(lines: Lines, split: Callable[[str], list[str]], layout: _Layout, found: list[str]) -> Table:
    first = split(lines[0][1])
    texts = [i for i, field in enumerate(first) if as_number(field) is None and not is_missing(field)]
    n_columns = layout.n_columns
    if len(first) != n_columns:
        raise ValueError(_wrong_width(lines[0], len(first), layout))
    if len(texts) > 1 and all(as_number(first[i].replace(",", ".")) is not None for i in texts):
        _read_slowly(first, lines[0][0], None, layout)  # decimal commas: says so
    column = choose_label(layout.names, n_columns, layout.label, texts, layout.source)
    values = array("d")
    labels: list[str] = []
    for number, line in lines:
        fields = split(line)
        if len(fields) != n_columns:
            raise ValueError(_wrong_width((number, line), len(fields), layout))
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
        raise ValueError(f"`path` must hold at least one column of numbers: {layout.source}.")
    data = np.array(values, dtype=np.float64).reshape(len(lines), n_features)
    if np.isinf(data).any():
        row, feature = np.argwhere(np.isinf(data))[0]
        number, line = lines[row]
        place = int(feature) + (column is not None and feature >= column)
        raise ValueError(
            f"`path` must hold finite numbers, got {split(line)[place].strip()!r} in line {number}, "
            f"column {place + 1}: {layout.source}."
        )
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


def _read_slowly(fields: list[str], number: int, column: int | None, layout: _Layout) -> list[float]:
    """The numbers of one line, NaN for what is missing."""
    values = []
    for i, field in enumerate(fields):
        value = as_number(field)
        if value is None:
            if not (layout.missing and is_missing(field)):
                place = i + 1 + (column is not None and i >= column)
                hint = (
                    " Write decimals with a point." if as_number(field.replace(",", ".")) is not None else ""
                )
                raise ValueError(
                    f"`path` must hold numbers only, got {field.strip()!r} in line {number}, column {place}: "
                    f"{layout.source}.{hint}"
                )
            value = float("nan")
        values.append(value)
    return values


def _check_labels(labels: list[str], lines: Lines, column: int, layout: _Layout) -> None:
    telling = layout.names is not None and layout.names[column].strip().lower() in LABEL_NAMES
    for (number, _), label in zip(lines, labels, strict=True):
        if is_missing(label):
            raise ValueError(
                f"`path` must have a label in every line, got {label.strip()!r} in line {number}, column "
                f"{column + 1}: {layout.source}."
            )
        if layout.label is None and not telling and as_number(label) is not None:
            text = labels[0].strip()
            raise ValueError(
                f"`path` must hold numbers only, got {text!r} in line {lines[0][0]}, column {column + 1} "
                f"(in line {number} {label.strip()!r}): {layout.source}. Name the column if it holds labels."
            )


def _wrong_width(row: tuple[int, str], width: int, layout: _Layout) -> str:
    number, line = row
    others = [name for sign, name in _SEPARATORS.items() if sign != " " and sign in line]
    hint = (
        f" Does the file mix separators? ({' and '.join(others)} in line {number})"
        if len(others) > 1 or (width == 1 and others)
        else ""
    )
    return (
        f"`path` must have {layout.n_columns} numbers a line, got {width} in line {number}: "
        f"{layout.source}.{hint}"
    )


def decode(content: bytes, source: str) -> str:
    """The text in ``content``, UTF-8 with or without a byte-order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"`path` must be a text file in UTF-8: {source}.") from None


def parse_text(content: bytes, source: str, suffix: str, **options: Any) -> Table:
    """The table in the bytes of a ``.csv`` or ``.arff`` file."""
    if suffix == ".arff":
        options.pop("header", None)
        return parse_arff(decode(content, source), source, **options)
    return parse_csv(decode(content, source), source, **options)
