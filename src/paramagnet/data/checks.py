"""Checks of the arrays and the paths that users give to the functions of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from paramagnet._arrays import as_array
from paramagnet._checks import as_path, near_files
from paramagnet.data.table import Array


def as_points(data: Any, argument: str) -> Array:
    """``data`` as a table of finite numbers ``(n_points, n_features)``; bytes stay bytes, other numbers
    become float64.
    """
    array = as_array(data, argument)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"`{argument}` must have shape (n_points, n_features) with at least one of each, "
            f"got shape {array.shape}."
        )
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):  # overflow of longer floats; infinite numbers are refused below
        table = array.astype(np.float64, copy=False)
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"`{argument}` must be finite, found {table.size - int(finite.sum())} values that are not, the "
            f"first in row {row}, column {column} ({table[row, column]}). Drop those points or fill them in."
        )
    return table


def existing_file(path: Any, argument: str = "path") -> Path:
    """``path`` as the path of an existing file."""
    source = as_path(path, argument)
    if not source.exists():
        raise FileNotFoundError(f"`{argument}` does not exist: {source}{near_files(source)}.")
    if not source.is_file():
        raise ValueError(f"`{argument}` must be a regular file: {source}.")
    return source
