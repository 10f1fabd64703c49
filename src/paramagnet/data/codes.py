"""How one column of a table becomes units, and units become values of that column again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from paramagnet.data.columns import Cells, number_text
from paramagnet.data.kinds import TRUTH, ColumnInfo, as_numbers, count_values
from paramagnet.data.table import as_number, is_missing
from paramagnet.data.thresholds import fit_rows

KEPT = "gaussian"  # the rule for numbers that stay numbers

FloatArray = npt.NDArray[np.float64]
Value = str | float | None  # what a cell is in Python; None where the units say nothing


@dataclass(frozen=True)
class Code(ABC):
    """A column of the user and the units that stand for it.

    ``encode`` gives one number per row and unit, NaN where the cell is missing or has a value that is not
    known; of two-valued units that is 0 or 1, of others the value of the unit.
    """

    name: str
    number: int  # counted from 1
    form: ClassVar[str]

    @property
    def unit_names(self) -> tuple[str, ...]:
        """The names of the units."""
        return (self.name,)

    @abstractmethod
    def encode(self, cells: Cells) -> FloatArray:
        """The units, ``(n_rows, n_units)``."""

    @abstractmethod
    def decode(self, units: FloatArray) -> list[Value]:
        """The values of the column for units ``(n_rows, n_units)``."""

    @abstractmethod
    def filling(self) -> FloatArray:
        """The units of a missing cell that is filled in: the most frequent value, of numbers the median."""

    def unknown(self, cells: Cells) -> list[str]:
        """Values that the code does not know; numbers are all known."""
        return []

    def unreadable(self, cells: Cells) -> list[str]:
        """Cells that cannot be read, though they are not missing: of a column of numbers all other texts."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """All that makes the code, for a file."""
        return {"form": self.form, **asdict(self)}


@dataclass(frozen=True)
class Threshold(Code):
    """Numbers above ``threshold`` are high; ``low`` and ``high`` are the medians of the two groups."""

    threshold: float
    low: float
    high: float
    median: float
    form: ClassVar[str] = "threshold"

    def encode(self, cells: Cells) -> FloatArray:
        """1 above the threshold, else 0."""
        values = as_numbers(cells)
        return np.where(np.isnan(values), np.nan, values > self.threshold)[:, None]

    def decode(self, units: FloatArray) -> list[Value]:
        """The median of the group."""
        return [self.high if unit > 0.5 else self.low for unit in units[:, 0]]

    def filling(self) -> FloatArray:
        """The unit of the median."""
        return np.array([float(self.median > self.threshold)])

    def unreadable(self, cells: Cells) -> list[str]:
        """Texts, and infinite numbers."""
        return _no_numbers(cells)


@dataclass(frozen=True)
class Scaling(Code):
    """Numbers less their ``mean``, over their standard deviation ``scale``."""

    mean: float
    scale: float
    median: float
    form: ClassVar[str] = "scaling"

    def encode(self, cells: Cells) -> FloatArray:
        """The standardized numbers."""
        result: FloatArray = ((as_numbers(cells) - self.mean) / self.scale)[:, None]
        return result

    def decode(self, units: FloatArray) -> list[Value]:
        """The numbers in the user's own unit."""
        return [float(unit) * self.scale + self.mean for unit in units[:, 0]]

    def filling(self) -> FloatArray:
        """The standardized median."""
        return np.array([(self.median - self.mean) / self.scale])

    def unreadable(self, cells: Cells) -> list[str]:
        """Texts, and infinite numbers."""
        return _no_numbers(cells)


@dataclass(frozen=True)
class Words(Code):
    """Values from a list, in the user's own spelling: two of them are one unit, more of them a unit each.

    ``keys`` are the values as they are compared: numbers by their value, true and false without regard to
    capitals.
    """

    values: tuple[str, ...]
    keys: tuple[str, ...]
    commonest: int
    numbers: bool = False
    form: ClassVar[str] = "words"

    @property
    def unit_names(self) -> tuple[str, ...]:
        """The name of the column, or one for each value: ``colour=red``."""
        if len(self.values) <= 2:
            return (self.name,)
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, cells: Cells) -> FloatArray:
        """1 for the second of two values; of more values 1 in the unit of the value."""
        places = self._places(cells)
        if len(self.values) <= 2:
            return places[:, None]
        hot = (places[:, None] == np.arange(len(self.values))).astype(np.float64)
        return np.where(np.isnan(places)[:, None], np.nan, hot)

    def decode(self, units: FloatArray) -> list[Value]:
        """The values; None where no unit, or more than one, is high."""
        if len(self.values) <= 2:
            return [self._value(min(int(unit > 0.5), len(self.values) - 1)) for unit in units[:, 0]]
        high = units > 0.5
        places = np.where(high.sum(axis=1) == 1, high.argmax(axis=1), -1)
        return [None if place < 0 else self._value(int(place)) for place in places]

    def filling(self) -> FloatArray:
        """The units of the most frequent value."""
        units: FloatArray = self.encode([self.values[self.commonest]])[0]
        return units

    def unknown(self, cells: Cells) -> list[str]:
        """Values that are not in the list."""
        return [text for text in count_values(cells) if _key(text) not in self.keys]

    def unreadable(self, cells: Cells) -> list[str]:
        """Of two numbers all that is no number."""
        return _no_numbers(cells) if self.numbers else []

    def _value(self, place: int) -> Value:
        return float(self.values[place]) if self.numbers else self.values[place]

    def _places(self, cells: Cells) -> FloatArray:
        known = {key: float(place) for place, key in enumerate(self.keys)}
        texts = map(number_text, map(float, cells)) if isinstance(cells, np.ndarray) else cells
        return np.array([math.nan if is_missing(text) else known.get(_key(text), math.nan) for text in texts])


FORMS: dict[str, type[Code]] = {code.form: code for code in (Threshold, Scaling, Words)}


def fit_code(info: ColumnInfo, cells: Cells, numbers: str | float, alphabet: tuple[str, ...] = ()) -> Code:
    """The code of a column: ``numbers`` is "otsu", "median", "gaussian" or a threshold.

    Two different values of any kind are one two-valued unit, unless numbers stay numbers. ``alphabet`` are
    the two numbers of a table of bits or spins, so that a column with one of them keeps its meaning.
    """
    if numbers != KEPT and (info.kind != "number" or info.n_distinct <= 2):
        return _fit_words(info, cells, alphabet)
    values = as_numbers(cells)
    values = values[~np.isnan(values)]
    median = float(np.sort(values)[(len(values) - 1) // 2])  # one of the values
    if numbers == KEPT:
        return Scaling(info.name, info.number, float(values.mean()), float(values.std()), median)
    if isinstance(numbers, str):
        thresholds, _ = fit_rows(values[None, :], numbers)
        threshold = float(thresholds[0])
    else:
        threshold = float(numbers)
    groups = [values[values <= threshold], values[values > threshold]]
    low, high = (_middle(group, threshold, side) for side, group in enumerate(groups))
    return Threshold(info.name, info.number, threshold, low, high, median)


def read_code(content: Any) -> Code:
    """The code that `Code.to_dict` described."""
    if not isinstance(content, Mapping) or content.get("form") not in FORMS:
        raise ValueError(f"no code of a column: {str(content)[:60]}")
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    form: Any = FORMS[str(fields.pop("form"))]
    code: Code = form(**fields)
    for name in ("threshold", "low", "high", "median", "mean", "scale"):
        if name in fields and not (isinstance(fields[name], (int, float)) and math.isfinite(fields[name])):
            raise ValueError(f"`{name}` of column {code.name!r} must be a finite number")
    if isinstance(code, Scaling) and code.scale <= 0.0:
        raise ValueError(f"`scale` of column {code.name!r} must be positive")
    if isinstance(code, Words) and not (
        len(code.values) == len(code.keys) > code.commonest >= 0
        and all(map(_is_text, code.values + code.keys))
    ):
        raise ValueError(f"values of column {code.name!r} do not fit together")
    return code


def _no_numbers(cells: Cells) -> list[str]:
    """The different cells that are neither missing nor finite numbers."""
    if isinstance(cells, np.ndarray):
        return [str(value) for value in np.unique(cells[np.isinf(cells)])]
    return [
        text
        for text in count_values(cells)
        if (number := as_number(text)) is None or not math.isfinite(number)
    ]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _middle(group: FloatArray, threshold: float, side: int) -> float:
    """The median of a group, one of its values; of an empty one a number on its side of the threshold."""
    if group.size:
        return float(np.sort(group)[(len(group) - 1) // 2])
    return float(np.nextafter(threshold, math.inf)) if side else threshold


def find_alphabet(tables: Sequence[Cells]) -> tuple[str, ...]:
    """("0", "1") or ("-1", "1") if these are all numbers of the columns; else nothing."""
    found = {_key(text) for cells in tables for text in count_values(cells)}
    return next((pair for pair in (("0", "1"), ("-1", "1")) if found <= set(pair)), ())


def _fit_words(info: ColumnInfo, cells: Cells, alphabet: tuple[str, ...]) -> Words:
    counts = count_values(cells)
    if info.kind == "number" and alphabet:
        commonest = int(
            sum(n for text, n in counts.items() if _key(text) == alphabet[1]) * 2 > counts.total()
        )
        return Words(info.name, info.number, alphabet, alphabet, commonest, True)
    spellings: dict[str, str] = {}  # the commonest spelling of each value
    totals: dict[str, int] = {}
    for text, count in counts.most_common():
        spellings.setdefault(_key(text), text)
        totals[_key(text)] = totals.get(_key(text), 0) + count
    if info.kind == "number":
        keys = sorted(spellings, key=float)
    elif info.kind == "true/false":
        keys = sorted(spellings, key=lambda key: TRUTH[key.lower()])
    else:
        keys = sorted(spellings)
    commonest = max(range(len(keys)), key=lambda place: totals[keys[place]])
    values = tuple(spellings[key] for key in keys)
    return Words(info.name, info.number, values, tuple(keys), commonest, info.kind == "number")


def _key(text: str) -> str:
    """A value as it is compared: 1.0 is 1, TRUE is True."""
    number = as_number(text)
    if number is not None and math.isfinite(number):
        return number_text(number + 0.0)
    return text.lower() if text.lower() in TRUTH else text
