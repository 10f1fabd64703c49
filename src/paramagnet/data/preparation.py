"""A table of anything as the units of a machine, and states of the machine as such a table again.

`fit_preparation` looks at a table and decides how each column becomes units; the `Preparation` that it
returns applies the same rule to later tables and inverts it for samples. It is kept in the file of a machine
(``rbm.save(path, preparation=...)``), so that a machine takes and gives the user's own columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, shown
from paramagnet._checks import near_names, shown_near
from paramagnet._files import read_arrays, write_atomically
from paramagnet.data.checks import existing_file
from paramagnet.data.codes import Code, Value, read_code
from paramagnet.data.columns import COMMA, POINT, Columns, as_columns, as_marks, check_decimal, in_file
from paramagnet.units import FloatArray, Unit, as_binary, find_unit, saved_name

MISSING = ("error", "drop", "mode")
NOTE = "notes.preparation"  # key in the metadata of a machine's file

_FORMAT = "paramagnet.preparation"
_VERSION = 1
_MACHINE = "paramagnet.rbm"

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Preparation:
    """How a table becomes the visible units of a machine; made by `fit_preparation`.

    ``codes`` says for each column that is used how it becomes units, ``units`` what they are, ``missing``
    what happens to missing cells ("error", "drop", "mode"), ``left_out`` which columns are not used.
    ``header`` says whether the table had names, ``n_columns`` how many columns it had. ``means`` are those of
    the units over the ``n_points`` rows it was fitted to. ``decimal`` is the sign before decimals in its csv,
    ``missing_values`` are the texts that stand for a missing cell besides the usual ones.
    """

    codes: tuple[Code, ...]
    units: Unit
    missing: str
    left_out: tuple[str, ...]
    header: bool
    n_columns: int
    means: tuple[float, ...]
    n_points: int
    decimal: str = POINT
    missing_values: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Preparation({len(self.codes)} columns as {self.n_visible} {self.units} units)"

    @cached_property
    def unit_names(self) -> tuple[str, ...]:
        """The names of the units: those of the columns, and ``colour=red`` for a value of several."""
        return tuple(name for code in self.codes for name in code.unit_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns that are used."""
        return tuple(code.name for code in self.codes)

    @property
    def n_visible(self) -> int:
        """The number of units."""
        return len(self.unit_names)

    @property
    def log_scale(self) -> float:
        """Sum of ln(scale) over standardized columns; the log-density in the user's units is lower by it."""
        return float(sum(np.log(getattr(code, "scale", 1.0)) for code in self.codes))

    def apply(self, source: Any, *, header: bool | None = None, missing: str | None = None) -> FloatArray:
        """The rows of a table as states of the visible units, ``(n_points, n_visible)``.

        Parameters
        ----------
        source : str, os.PathLike, mapping or data frame
            The path of a file, or the table itself, columns by name; further columns are ignored.
        header : bool, optional
            Whether the first line of a ``.csv`` names the columns; None finds out.
        missing : str, optional
            "error", "drop" (rows with a gap are left out) or "mode" (the most frequent value, of numbers the
            median, is filled in); None takes what the preparation was fitted with. A value that was not there
            then counts as missing.

        Returns
        -------
        ndarray
            States, float64.
        """
        table = as_columns(source, header, self.column_names, self.decimal, self.missing_values)
        return self.encode(table, missing)[0]

    def encode_known(self, table: Columns) -> FloatArray:
        """The states of a table, NaN for the units of missing cells and of columns that it does not have."""
        places = self._known_places(table)
        parts = [
            code.encode(table.cells[places[code.name]])
            if code.name in places
            else np.full((table.n_rows, len(code.unit_names)), np.nan)
            for code in self.codes
        ]
        return self._levels(np.concatenate(parts, axis=1))

    def known_cells(self, table: Columns) -> dict[str, list[Any]]:
        """The cells of a table as they stand in it, by column, None where they are missing."""
        places = self._known_places(table)
        found: dict[str, list[Any]] = {}
        for code in self.codes:
            if code.name in places:
                cells = table.cells[places[code.name]]
                gaps: list[bool] = np.isnan(code.encode(cells)).max(axis=1).tolist()
                found[code.name] = [None if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
        return found

    def _known_places(self, table: Columns) -> dict[str, int]:
        """Where the columns of a table are that may lack some; one of ours must be there."""
        if not table.header:
            places = dict(zip(self.column_names, self._places_by_number(table), strict=True))
        else:
            places = {name: place for place, name in enumerate(table.names)}
            if not set(places) & set(self.column_names):
                self._places(table)  # raises an error that names the columns
        self._refuse_texts(table, places)
        return places

    def encode(self, table: Columns, missing: str | None = None) -> tuple[FloatArray, Rows]:
        """The states of a table, and the places of the rows that they come from."""
        policy = check_missing(self.missing if missing is None else missing)
        places = self._places(table)
        self._refuse_texts(table, dict(zip(self.column_names, places, strict=True)))
        parts = [code.encode(table.cells[place]) for code, place in zip(self.codes, places, strict=True)]
        if policy == "error":
            self._refuse_gaps(table, places, parts)
        if policy == "mode":
            parts = [
                np.where(np.isnan(part), code.filling(), part)
                for code, part in zip(self.codes, parts, strict=True)
            ]
        values = np.concatenate(parts, axis=1)
        rows = np.flatnonzero(~np.isnan(values).any(axis=1))
        if rows.size == 0:
            raise ValueError(
                f"`source` must have at least one row without missing cells: {table.source}. Fill them in by "
                "`missing='mode'`, or leave out columns with many gaps by `drop`."
            )
        return self._levels(values[rows]), rows

    def _levels(self, values: FloatArray) -> FloatArray:
        """Zeros and ones in the values of the units; NaN stays."""
        if self.units.values is None:
            return values
        low, high = as_binary(self.units, "units").levels
        return np.where(np.isnan(values), np.nan, np.where(values > 0.5, high, low))

    def invert(self, states: npt.ArrayLike) -> dict[str, list[Value]]:
        """States of the visible units as a table of the user's columns.

        A number that was cut at a threshold becomes the median of its side. None stands where no value, or
        more than one, of a column with several is high.

        Parameters
        ----------
        states : array_like
            States, ``(n_points, n_visible)``.

        Returns
        -------
        dict
            The values of each column by its name.
        """
        array = as_array(states, "states")
        if array.ndim != 2 or array.shape[1] != self.n_visible or not len(array):
            raise ValueError(f"`states` must have shape (n_points, {self.n_visible}), got {array.shape}.")
        values = array.astype(np.float64)
        self.units.require_values(values, "states")
        if self.units.values is not None:
            values = (values == as_binary(self.units, "units").high).astype(np.float64)
        table: dict[str, list[Value]] = {}
        first = 0
        for code in self.codes:
            width = len(code.unit_names)
            table[code.name] = code.decode(values[:, first : first + width])
            first += width
        return table

    # Files

    def to_json(self) -> str:
        """The preparation as text."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "units": saved_name(self.units, "units"),
            "missing": self.missing,
            "left_out": self.left_out,
            "header": self.header,
            "n_columns": self.n_columns,
            "means": self.means,
            "n_points": self.n_points,
            "codes": [code.to_dict() for code in self.codes],
        }
        if self.decimal != POINT:
            content["decimal"] = self.decimal
        if self.missing_values:
            content["missing_values"] = self.missing_values
        return json.dumps(content, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Preparation:
        """The preparation that `to_json` wrote."""
        if not isinstance(text, str):
            raise ValueError(f"`text` must be what `to_json` returned, got {shown(text)}.")
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or content.get("format") != _FORMAT:
                raise ValueError(f"not of format {_FORMAT!r}")
            if content.get("version") != _VERSION:
                raise ValueError(f"version {content.get('version')!r}, this release reads {_VERSION}")
            preparation = cls(
                tuple(map(read_code, content["codes"])),
                find_unit(str(content["units"]), "units"),
                check_missing(content["missing"]),
                tuple(map(str, content["left_out"])),
                bool(content["header"]),
                int(content["n_columns"]),
                tuple(map(float, content["means"])),
                int(content["n_points"]),
                check_decimal(content.get("decimal", POINT)),
                as_marks(content.get("missing_values")),
            )
            if not preparation.codes or len(preparation.means) != preparation.n_visible:
                raise ValueError("columns and units do not fit together")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"`text` is no preparation ({error}).") from None
        return preparation

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the preparation to ``path`` as JSON."""
        write_atomically(path, (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Preparation:
        """The preparation in ``path``, the file of a machine or one that `save` wrote."""
        source = existing_file(path)
        if source.suffix == ".safetensors":
            _, metadata = read_arrays(source, _MACHINE)
            if NOTE not in metadata:
                raise ValueError(
                    "`path` must be a machine that was saved with its preparation, got one without: "
                    f"{source}."
                )
            return cls.from_json(metadata[NOTE])
        try:
            return cls.from_json(source.read_text(encoding="utf-8"))
        except ValueError as error:
            reason = str(error)[:200].replace("`text`", "it")
            raise ValueError(f"`path` must hold a preparation, got {source}: {reason}") from None

    # Checks of a table

    def _places(self, table: Columns) -> list[int]:
        """Where the columns stand in a table: by name, or without names by number."""
        if not self.header or not table.header:
            return self._places_by_number(table)
        absent = [code.name for code in self.codes if code.name not in table.names]
        if absent:
            others = [name for name in table.names if name not in self.column_names]
            named = ", ".join(f"{name!r}{near_names(name, others)}" for name in absent)
            raise ValueError(
                f"`source` must have all columns that the machine was trained on; {table.source} has no "
                f"{named}. Rename or add {'it' if len(absent) == 1 else 'them'} in the file."
            )
        return [table.names.index(code.name) for code in self.codes]

    def _places_by_number(self, table: Columns) -> list[int]:
        n_columns = len(table.names)
        if n_columns == self.n_columns:
            return [code.number - 1 for code in self.codes]
        if n_columns == len(self.codes):
            return [*range(n_columns)]
        raise ValueError(
            f"`source` must have {self.n_columns} columns as the table the machine was trained on, or the "
            f"{len(self.codes)} that it uses, since one of the files has no header; {table.source} has "
            f"{n_columns}."
        )

    def _refuse_texts(self, table: Columns, places: Mapping[str, int]) -> None:
        """Raise an error where a column of numbers has cells that are neither numbers nor missing."""
        odd = {
            code.name: code.unreadable(table.cells[places[code.name]])
            for code in self.codes
            if code.name in places
        }
        shown = {
            name: ", ".join(repr(in_file(cell, table.decimal)) for cell in cells[:4])
            for name, cells in odd.items()
        }
        lines = [f"  {name} (column {places[name] + 1}): {cells}" for name, cells in shown.items() if cells]
        if lines:
            sign = "comma" if table.decimal == COMMA else "point"
            raise ValueError(
                f"`source` must have numbers where training had numbers, with a decimal {sign}; found other "
                f"cells in {table.source}:\n"
                + "\n".join(lines)
                + "\nLeave cells empty where a value is missing."
            )

    def _refuse_gaps(self, table: Columns, places: Sequence[int], parts: Sequence[FloatArray]) -> None:
        lines = []
        for code, place, part in zip(self.codes, places, parts, strict=True):
            n_gaps = int(np.isnan(part).any(axis=1).sum())
            if not n_gaps:
                continue
            unknown = code.unknown(table.cells[place])
            known = f" (known are {', '.join(map(repr, getattr(code, 'values', ())[:6]))})" if unknown else ""
            new = f", with values that training did not have: {', '.join(map(repr, unknown[:4]))}{known}"
            lines.append(
                f"  {code.name} (column {place + 1}): {n_gaps} cells{new if unknown else ' missing'}"
            )
        if lines:
            raise ValueError(
                f"`source` must have a known value in every cell, found others in {table.source}:\n"
                + "\n".join(lines)
                + "\nLeave out these rows by `missing='drop'`, or fill them in by `missing='mode'`."
            )


def check_missing(missing: Any) -> str:
    """``missing`` as one of the ways to deal with gaps."""
    if not isinstance(missing, str) or missing not in MISSING:
        raise ValueError(f"`missing` must be 'error', 'drop' or 'mode', got {shown_near(missing, MISSING)}.")
    return missing
