"""Tables written as text: CSV with any of the usual separators; ARFF has its own module."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from paramagnet.data.arff import parse_arff
from paramagnet.data.header import doubt_header, is_header, may_name_columns
from paramagnet.data.rows import SEPARATORS, Lines, RowLayout, Split, read_rows, split_lines
from paramagnet.data.table import Label, Table, as_number

_SAMPLE = 10  # lines that decide about the separator
_BELOW = 1000  # lines that a header of numbers is compared with
_OPENING_QUOTE = re.compile(r'(?:^|[,;\t ])"')
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # the byte-order marks of UTF-16
_EXCEL = re.compile(r"sep=[,;\t ]?", re.IGNORECASE)  # a first line that tells Excel the separator


def parse_csv(
    text: str, source: str, *, header: bool | None = None, label: Label = None, missing: bool = True
) -> Table:
    """The table in the text of a CSV file called ``source``.

    The separator is the first of tab, semicolon, comma and space that cuts the first lines into equally many
    fields. The first line is the header if it holds no number, or if one of its fields is called class, label
    or target; a line of numbers that may be names, such as years, is an error unless ``header`` decides. A
    cell that is empty, ``?`` or ``NA`` is missing: NaN, or an error unless ``missing``.
    """
    names, lines, split, separator = open_csv(text, source, header=header, label=label)
    if names is not None:
        names = [name or f"x{i}" for i, name in enumerate(names)]
    n_columns = len(names if names is not None else split(lines[0][1]))
    layout = RowLayout(source, names, n_columns, label, missing, separator)
    found = [f"separated by {SEPARATORS[separator]}s"] if n_columns > 1 else []
    found.append("no header" if names is None else "header")
    return read_rows(lines, split, layout, found)


def open_csv(
    text: str, source: str, *, header: bool | None = None, label: Label = None
) -> tuple[list[str] | None, Lines, Split, str]:
    """The names of the columns (None without a header), the lines below, how to cut them, and the separator.

    ``label`` is a name that the user gave: a first line that has it is a header.
    """
    lines = [(number, line) for number, line in _logical_lines(text) if line.strip()]
    lines, comment = _drop_comments(lines)
    separator = _find_separator([line for _, line in lines[:_SAMPLE]])
    split = _splitter(separator, '"' in text)
    names = None
    if lines:
        first = [field.strip() for field in split(lines[0][1])]
        commented = [] if comment is None or header is False else [name.strip() for name in split(comment)]
        if len(commented) == len(first) and not is_header(first):
            names = commented
        elif header or (header is None and (is_header(first) or _is_name_of(label, first))):
            names, lines = first, lines[1:]
        elif header is None:
            _check_doubt(first, lines, split, source)
    if not lines:
        below = "" if names is None else f" below the header {', '.join(names)[:60]!r}"
        raise ValueError(f"`path` must hold at least one line of numbers{below}: {source}.")
    return names, lines, split, separator


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; those that a field in quotes spans are one line, numbered by the first.

    Inside quotes a line with an even number of quotation marks leaves them open, so the next line with an odd
    number closes them. If there is no such line, the mark opens no quotation, and the lines stay as they are.
    """
    lines = split_lines(text)
    if '"' not in text:
        yield from enumerate(lines, 1)
        return
    odd = [i for i, line in enumerate(lines) if line.count('"') % 2]
    closing = {i: j for i, j in pairwise(odd) if _OPENING_QUOTE.search(lines[i])}
    i = 0
    while i < len(lines):
        end = closing.get(i, i)
        yield i + 1, "\n".join(lines[i : end + 1])
        i = end + 1


def _drop_comments(lines: Lines) -> tuple[Lines, str | None]:
    """The lines from the first one on that is no comment (#), and the last comment, which may be a header, as
    NumPy writes it; without Excel's line about the separator.
    """
    if lines and _EXCEL.fullmatch(lines[0][1].strip()):
        lines = lines[1:]
    comment = None
    for place, (_, line) in enumerate(lines):
        if not line.lstrip().startswith("#"):
            return lines[place:], comment
        comment = line.lstrip().lstrip("#").strip()
    return [], comment


def _is_name_of(label: Label, first: list[str]) -> bool:
    """Whether the column of the labels was asked for by a name that the first line has."""
    if not isinstance(label, str) or label not in first:
        return False
    number = as_number(label)
    return number is None or not -len(first) <= number < len(first)


def _check_doubt(first: list[str], lines: Lines, split: Split, source: str) -> None:
    if not may_name_columns(first):
        return
    below = [split(line) for _, line in lines[1 : 1 + _BELOW]]
    quoted = lines[0][1].count('"') >= 2 * len(first) and all(
        line.count('"') <= 2 * sum(as_number(field) is None for field in fields)
        for (_, line), fields in zip(lines[1:], below, strict=False)
    )
    reason = doubt_header(first, below, quoted=quoted)
    if reason is not None:
        number, shown = lines[0][0], ", ".join(first[:6]) + (", ..." if len(first) > 6 else "")
        raise ValueError(
            f"`path` must have names of columns or data in line {number}; {shown} may be either, since "
            f"{reason}: {source}. Pass `header=True` if the line names the columns, `header=False` if it is "
            "a data point."
        )


def _find_separator(lines: list[str]) -> str:
    for separator in SEPARATORS:
        counts = {len(_splitter(separator, '"' in line)(line)) for line in lines}
        if len(counts) == 1 and counts.pop() > 1:
            return separator
    # If no two lines agree, take the commonest sign of the first one, so that an error can name a line.
    first = lines[0] if lines else ""
    return max((",", ";", "\t"), key=first.count)


def _splitter(separator: str, quotes: bool) -> Split:
    if quotes:

        def split_quoted(line: str) -> list[str]:
            try:
                return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            except (csv.Error, StopIteration):
                return line.split(separator)

        return split_quoted
    return str.split if separator == " " else lambda line: line.split(separator)


def decode(content: bytes, source: str) -> str:
    """The text in ``content``, UTF-8 with or without a byte-order mark."""
    if content.startswith(b"\xff\xfe\0\0"):
        raise ValueError(_wrong_encoding("it is in UTF-32", "UTF-32", source))
    if content.startswith(_UTF16):
        raise ValueError(_wrong_encoding("it is in UTF-16", "UTF-16", source))
    if b"\0" in content[:4096]:
        raise ValueError(_wrong_encoding("it holds the byte 0, so it is UTF-16 or no text", "UTF-16", source))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        reason = f"got the byte {content[error.start]:#04x} in line {number}"
    raise ValueError(_wrong_encoding(reason, "WINDOWS-1252", source))


def _wrong_encoding(reason: str, encoding: str, source: str) -> str:
    name = Path(source)
    converted = str(name.with_name(f"{name.stem}-utf8{name.suffix}")) if name.name else "utf8.csv"
    return (
        f"`path` must be a text file in UTF-8; {reason}: {source}. Save it as UTF-8, or convert it with "
        f"`iconv -f {encoding} -t UTF-8 {shlex.quote(source)} > {shlex.quote(converted)}`."
    )


def parse_text(content: bytes, source: str, suffix: str, **options: Any) -> Table:
    """The table in the bytes of a ``.csv`` or ``.arff`` file."""
    if suffix == ".arff":
        options.pop("header", None)
        return parse_arff(decode(content, source), source, **options)
    return parse_csv(decode(content, source), source, **options)
