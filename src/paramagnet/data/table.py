"""The content of a data file: numbers, the names of the features, and labels if there are any."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown

Array = npt.NDArray[Any]
Label = str | int | bool | None  # None detects the column, False says there is none

LABEL_NAMES = ("class", "label", "labels", "target")
_MISSING = ("", "?", "na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>", "-nan")


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a file.

    ``data`` is ``(n_points, n_features)``, float64 with NaN for what is missing, or uint8 where the file
    holds bytes. ``labels`` are the places of the points' classes in ``class_names``, ``label_column`` is the
    column they stood in. ``found`` says in words how the file was read.
    """

    data: Array
    feature_names: tuple[str, ...]
    labels: npt.NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    label_column: int | None = None
    image_shape: tuple[int, int] | None = None
    found: tuple[str, ...] = ()


def default_names(n_features: int) -> tuple[str, ...]:
    """The names of features that have none."""
    return tuple(f"x{i}" for i in range(n_features))


def is_missing(field: str) -> bool:
    """Whether a field of a text file stands for no value."""
    return field.strip().lower() in _MISSING


def as_number(field: str) -> float | None:
    """The number in ``field``, or None if it is not a number."""
    try:
        return None if "_" in field else float(field)  # only Python reads 1_000 as a number
    except ValueError:
        return None


def encode_labels(labels: Iterable[Any]) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Labels as integers, and the names of the classes in alphabetical or numerical order."""
    whole = (int(x) if isinstance(x, (float, np.floating)) and x.is_integer() else x for x in labels)
    texts = [str(label).strip() for label in whole]
    numbers = {text: as_number(text) for text in set(texts)}
    if all(number is not None and math.isfinite(number) for number in numbers.values()):
        names = sorted(numbers, key=lambda text: (numbers[text], text))
    else:
        names = sorted(numbers)
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[text] for text in texts], dtype=np.int64), tuple(names)


def choose_label(
    names: Sequence[str] | None, n_columns: int, label: Label, texts: Sequence[int], source: str
) -> int | None:
    """The column of the labels: the one asked for, else the one with a telling name, else the only one with
    text (``texts`` lists those). ``names`` is None where there is no header.
    """
    if label is not None and label is not True:
        return None if label is False else _asked(names, n_columns, label, source)
    telling = [i for i, name in enumerate(names or ()) if name.strip().lower() in LABEL_NAMES]
    if len(telling) == 1:
        return telling[0]
    if names is not None and len(telling) > 1:
        raise ValueError(
            f"`path` must have one column of labels, got {names[telling[0]].strip()!r} and "
            f"{names[telling[1]].strip()!r} in columns {telling[0] + 1} and {telling[1] + 1}: {source}. Pass "
            "`label`, the name of one of them or its number from 0."
        )
    if len(texts) > 1:
        raise ValueError(
            f"`path` must hold numbers and at most one column of labels, got text in columns "
            f"{texts[0] + 1} and {texts[1] + 1}: {source}. Remove the columns that are no numbers."
        )
    return texts[0] if texts else None


def _asked(names: Sequence[str] | None, n_columns: int, label: str | int, source: str) -> int:
    if isinstance(label, str) and names is not None and label in names:
        places = [i for i, name in enumerate(names) if name == label]
        if len(places) > 1:
            raise ValueError(
                f"`label` must name one column, got {label!r}, the name of columns "
                f"{', '.join(map(str, places))} (counted from 0): {source}. Give the number of the column."
            )
        return places[0]
    try:
        if not isinstance(label, (str, int, np.integer)):
            raise ValueError
        column = int(label)
    except ValueError:
        known = "there is no header" if names is None else f"the columns are {', '.join(names[:20])}"
        raise ValueError(
            f"`label` must be the name or the number of a column, got {shown(label)}; {known}: {source}."
        ) from None
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"`label` must be a column from 0 to {n_columns - 1}, or from -{n_columns} to -1 from the end, "
            f"got {shown(column)}: {source}."
        )
    return column % n_columns
