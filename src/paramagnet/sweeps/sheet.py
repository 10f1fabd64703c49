"""A table as text, which the writers for Markdown, LaTeX and HTML share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-zα]{2}")


@dataclass(frozen=True)
class Line:
    """One line of a cell; a quiet line is set smaller or in italics, as a reference value beside ours."""

    text: str
    bold: bool = False
    quiet: bool = False


Lines = tuple[Line, ...]


@dataclass(frozen=True)
class Sheet:
    """Rows of cells under one or two rows of headings.

    ``groups`` are pairs of a heading and the number of columns it stands over, empty where there is one row
    of headings only. ``corner`` is the heading of the row labels; ``left`` numbers the columns with words.
    """

    key: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Lines, ...]], ...]
    groups: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.groups and sum(span for _, span in self.groups) != len(self.columns):
            raise ValueError(f"`groups` must cover the {len(self.columns)} columns, got {self.groups!r}.")
        for label, cells in self.rows:
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"`rows` must have {len(self.columns)} cells each, got {len(cells)} in {label!r}."
                )


def plain_sheet(
    key: str, title: str, heading: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> Sheet:
    """A sheet of plain words; the first column holds the row labels, columns with words are set left."""
    body = tuple((row[0], tuple((Line(text),) for text in row[1:])) for row in rows)
    left = [k for k in range(len(heading) - 1) if any(_WORD.search(row[k + 1]) for row in rows)]
    return Sheet(key, title, heading[0], tuple(heading[1:]), body, (), tuple(notes), tuple(left))


def mean_text(value: float) -> str:
    """A mean with two decimals, as the paper prints it; with five digits from 1e5 on."""
    if not math.isfinite(value):
        return "not finite"
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.4e}"


def std_text(value: float) -> str:
    """A standard deviation with two decimals as in the paper, or three where two would show zero."""
    if not math.isfinite(value):
        return "-"
    if value >= 1e4:
        return f"{value:.1e}"
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}"
