"""The options of commands that read a table: which columns, and how they become units."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.data.kinds import ColumnInfo

ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", help="Columns to use, by name or number from 1, with commas; else all."),
]
DropOption = Annotated[str | None, typer.Option("--drop", help="Columns to leave out, with commas.")]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label", help="Columns of labels, which are left out: names, or numbers from 1 (-1: last)."
    ),
]
NoLabel = Annotated[bool, typer.Option("--no-label", help="Learn all columns; take none for labels.")]
MissingOption = Annotated[
    str | None,
    typer.Option(
        "--missing",
        help="What to do about missing cells: error, drop (leave out their rows) or mode (fill in the most "
        "frequent value).",
    ),
]
NumbersOption = Annotated[
    str | None,
    typer.Option(
        "--numbers",
        help="How columns of numbers are cut in two: otsu, median or a threshold; gaussian keeps them as "
        "standardized numbers.",
    ),
]
CategoriesOption = Annotated[
    int | None,
    typer.Option(
        "--categories",
        help="Largest number of different values of a text column, which get one unit each; 20 if not given.",
    ),
]

DecimalOption = Annotated[
    str | None,
    typer.Option("--decimal", help="The sign before the decimals of a .csv, '.' or ','; '.' if not given."),
]

MissingValuesOption = Annotated[
    str | None,
    typer.Option(
        "--missing-values",
        help="Further texts or numbers that stand for a missing cell, with commas, such as -,unknown,-999.",
    ),
]

AlphabetOption = Annotated[
    str | None,
    typer.Option(
        "--alphabet",
        help="Alphabet of sequences: protein, rna, dna, or its letters with '-' for the gap; if not given, "
        "that of the file's letters.",
    ),
]
UnknownOption = Annotated[
    str | None,
    typer.Option(
        "--unknown-letters", help="Letters outside the alphabet: gap takes them for gaps, error refuses them."
    ),
]
InsertionsOption = Annotated[
    str | None,
    typer.Option(
        "--insertions",
        help="What to do about columns of an alignment with '.' or small letters: drop or keep.",
    ),
]

_MOST_LABELS = 100  # a text with more different values is not called labels
_FLAG = re.compile(r"`(drop|missing|numbers|decimal)='([^']*)'`")


@dataclass(frozen=True)
class TableOptions:
    """What the user said about the columns of a table."""

    columns: str | None = None
    drop: str | None = None
    label: str | None = None
    no_label: bool = False
    missing: str | None = None
    numbers: str | None = None
    categories: int | None = None
    header: bool | None = None
    alphabet: str | None = None
    unknown: str | None = None
    insertions: str | None = None
    decimal: str | None = None
    missing_values: str | None = None

    def __post_init__(self) -> None:
        if self.no_label and self.label is not None:
            raise ValueError("`--label` and `--no-label` exclude each other.")

    @property
    def given(self) -> bool:
        """Whether anything was said that needs columns, so that a plain array is read as a table too."""
        return any(
            value is not None
            for value in (
                self.columns, self.drop, self.label, self.missing, self.numbers, self.categories,
                self.decimal, self.missing_values,
            )
        )  # fmt: skip

    @property
    def numbers_rule(self) -> str | float:
        """How numbers become units: a name or a threshold."""
        from paramagnet.data.table import as_number

        number = as_number(self.numbers or "")
        return self.numbers or "otsu" if number is None else number


def label_words(info: ColumnInfo) -> str:
    """What to say of a column that was taken for labels, and why it was."""
    why = "holds labels" if info.label else "is the only text, taken for labels,"
    if not info.label and info.n_distinct > _MOST_LABELS:
        why = f"is the only text, with {info.n_distinct} different values,"
    return f"{info.title} {why} and is left out; `--no-label` keeps it."


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning of the library as one line on stderr, with flags in place of arguments."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        flagged = _FLAG.sub(r"`--\1 \2`", text)
        say(f"warning: {flagged}", err=True)
