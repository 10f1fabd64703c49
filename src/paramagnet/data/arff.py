"""The ARFF format of Weka: declared attributes, then lines of values."""

from __future__ import annotations

import re

from paramagnet.data.rows import Lines, RowLayout, Split, read_rows, split_lines
from paramagnet.data.table import Label, Table

_QUOTED_FIELD = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_ATTRIBUTE = re.compile(
    rf"@attribute\s+({_QUOTED_FIELD.pattern}|[^\s'\"{{]+)\s*(\{{.*\}}|[a-z]+.*)$", re.IGNORECASE
)
_SPACES = re.compile(r"\s*")
_NUMBERS = ("numeric", "real", "integer")


def parse_arff(text: str, source: str, *, label: Label = None, missing: bool = True) -> Table:
    """The table in the text of an ARFF file called ``source``; nominal attributes of numbers are numbers."""
    names, body, split, listed = open_arff(text, source)
    layout = RowLayout(source, names, len(names), label, missing, listed=tuple(listed))
    return read_rows(body, split, layout, ["ARFF"])


def open_arff(text: str, source: str) -> tuple[list[str], Lines, Split, list[tuple[int, frozenset[str]]]]:
    """The names of the attributes, the lines of data, how to cut them, and the listed values by column."""
    names: list[str] = []
    listed: list[tuple[int, frozenset[str]]] = []
    lines = split_lines(text)
    for start, line in enumerate(lines):
        statement = line.strip()
        keyword = statement[:10].lower()
        if keyword.startswith("@data"):
            break
        if keyword.startswith("@attribute"):
            name, values = _parse_attribute(statement, start + 1, source)
            if values is not None:
                listed.append((len(names), values))
            names.append(name)
        elif statement and not statement.startswith(("%", "@")):
            raise ValueError(
                f"`path` must be an ARFF file, got {statement[:40]!r} before @data in line {start + 1}: "
                f"{source}."
            )
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
        raise ValueError(
            f"`path` must be a dense ARFF file, this one is sparse in line {body[0][0]}: {source}. "
            "Weka's filter SparseToNonSparse makes it dense."
        )
    quotes = any("'" in line or '"' in line for _, line in body)
    return names, body, split_arff if quotes else lambda line: line.split(","), listed


def split_arff(line: str) -> list[str]:
    """The fields of a line without the spaces around them, in time that grows with its length.

    Where a quote stays open, or is followed by other text than a comma, the rest is one field: its line then
    has too few, or the field is no number, and the error names it.
    """
    fields: list[str] = []
    position = 0
    while True:
        start = _end_of_spaces(line, position)
        if line[start : start + 1] in ("'", '"'):
            match = _QUOTED_FIELD.match(line, start)
            if match is None:
                return [*fields, line[position:]]
            end = _end_of_spaces(line, match.end())
            if end < len(line) and line[end] != ",":
                return [*fields, line[position:]]
            fields.append(_unquoted(match.group()))
        else:
            end = line.find(",", start)
            end = len(line) if end < 0 else end
            value = line[start:end].rstrip()
            if "'" in value or '"' in value:
                return [*fields, line[position:]]
            fields.append(value)
        if end >= len(line):
            return fields
        position = end + 1


def _end_of_spaces(line: str, position: int) -> int:
    match = _SPACES.match(line, position)
    return position if match is None else match.end()


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in "'\"" and value[0] == value[-1]:
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def _parse_attribute(statement: str, number: int, source: str) -> tuple[str, frozenset[str] | None]:
    """The name of an attribute, and its values if they are listed."""
    match = _ATTRIBUTE.match(statement)
    kind = "" if match is None else match.group(2).strip()
    if match is None or (not kind.startswith("{") and kind.split()[0].lower() not in (*_NUMBERS, "string")):
        raise ValueError(
            f"`path` must have attributes that are numbers, {{lists}} or strings, got {statement[:60]!r} in "
            f"line {number}: {source}."
        )
    values = frozenset(value.strip() for value in split_arff(kind[1:-1])) if kind.startswith("{") else None
    return _unquoted(match.group(1)), values
