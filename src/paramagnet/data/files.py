"""Reading data from files: .npy, .npz and .csv, each into one float64 array."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet.units import FloatArray

_SUFFIXES = (".npy", ".npz", ".csv")


def read_data(path: str | os.PathLike[str], *, name: str | None = None) -> FloatArray:
    """The array in the file at ``path``, as float64.

    ``.npy`` and ``.npz`` are NumPy's own formats (pickled objects are refused); ``name`` says which array of
    an ``.npz`` is meant if there are several and none is called "data". ``.csv`` is comma-separated numbers,
    one point per line; a first line without any number is the header. Values are neither changed nor checked.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"`path` does not exist: {source}.")
    if not source.is_file():
        raise ValueError(f"`path` must be a regular file: {source}.")
    suffix = source.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"`path` must end in {', '.join(_SUFFIXES)}, got {source}.")
    if suffix == ".csv":
        return _read_csv(source)
    return _as_numbers(_read_numpy(source, name), source)


def _read_numpy(source: Path, name: str | None) -> Any:
    try:
        with open(source, "rb") as file:
            content = np.load(file, allow_pickle=False)
            if source.suffix.lower() == ".npy":
                if not isinstance(content, np.ndarray):
                    raise ValueError("an archive, not an array")
                return content
            if isinstance(content, np.ndarray):
                raise ValueError("an array, not an archive")
            return content[_choose(content.files, name, source)]
    except LookupError as error:
        raise ValueError(error.args[0]) from None
    except Exception as error:  # zipfile, EOFError, ValueError, UnicodeError: NumPy has many ways to say it
        if isinstance(error, MemoryError):
            raise
        raise ValueError(
            f"`path` is not a readable {source.suffix} file of numbers (truncated, or pickled objects?): "
            f"{source} ({error})."
        ) from None


def _choose(names: list[str], name: str | None, source: Path) -> str:
    if name is not None:
        if name not in names:
            raise LookupError(f"`name` must be one of {names}, the arrays of {source}, got {name!r}.")
        return name
    if len(names) == 1:
        return names[0]
    if "data" in names:
        return "data"
    raise LookupError(
        f"`path` must hold one array, or one called 'data', got {names}: {source}. Pass `name`."
    )


def _as_numbers(array: Any, source: Path) -> FloatArray:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"`path` must hold real numbers, got dtype {array.dtype}: {source}.")
    result: FloatArray = np.ascontiguousarray(array, dtype=np.float64)
    return result


def _read_csv(source: Path) -> FloatArray:
    try:
        with open(source, encoding="utf-8-sig", newline="") as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"`path` must be a text file in UTF-8: {source}.") from None
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if rows and all(_number(field) is None for field in _fields(rows[0][1])):
        rows = rows[1:]  # the header
    if not rows:
        raise ValueError(f"`path` must hold at least one line of numbers: {source}.")
    try:
        table: FloatArray = np.loadtxt(
            [line for _, line in rows], delimiter=",", quotechar='"', comments=None, ndmin=2, dtype=np.float64
        )
    except ValueError:
        raise ValueError(_first_fault(rows, source)) from None
    return table


def _first_fault(rows: list[tuple[int, str]], source: Path) -> str:
    width = len(_fields(rows[0][1]))
    for number, line in rows:
        fields = _fields(line)
        if len(fields) != width:
            return f"`path` must have {width} numbers a line, got {len(fields)} in line {number}: {source}."
        for column, field in enumerate(fields, 1):
            if _number(field) is None:
                place = f"line {number}, column {column}"
                return f"`path` must hold numbers only, got {field!r} in {place}: {source}."
    return f"`path` cannot be read as comma-separated numbers: {source}."


def _fields(line: str) -> list[str]:
    return next(csv.reader([line], skipinitialspace=True))


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
