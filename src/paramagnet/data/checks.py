"""Checks of the arrays and the paths that users give to the functions of this folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet._checks import _refuse_masked
from paramagnet.data.table import Array


def as_points(data: Any, argument: str) -> Array:
    """``data`` as a table of finite numbers ``(n_points, n_features)``, bytes left as they are, all else
    float64.
    """
    array = _as_array(data, argument)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"`{argument}` must be an array of real numbers, got dtype {array.dtype} from "
            f"{type(data).__name__}.{_conversion(data, array)}"
        )
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"`{argument}` must have shape (n_points, n_features) with at least one of each, "
            f"got shape {array.shape}."
        )
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):  # of longer floats; infinite numbers are refused below
        table = array.astype(np.float64, copy=False)
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"`{argument}` must be finite, found {table.size - int(finite.sum())} values that are not, the "
            f"first in row {row}, column {column} ({table[row, column]}). Drop those points or fill them in."
        )
    return table


def _as_array(data: Any, argument: str) -> Array:
    for part in (data, *(data if isinstance(data, (list, tuple)) else ())):
        _refuse_masked(part, argument)
    try:
        # A tensor that is to be differentiated has the same numbers without that.
        return np.asarray(data.detach() if hasattr(data, "detach") else data)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"`{argument}` must be an array of real numbers with rows of equal length, got "
            f"{type(data).__name__} ({reason})."
        ) from None


def _conversion(data: Any, array: Array) -> str:
    if hasattr(data, "toarray"):
        return " Make it dense first, with `.toarray()`."
    return " Convert it with `np.asarray(..., dtype=float)`." if array.ndim == 2 else ""


def as_path(path: Any, argument: str = "path") -> Path:
    """``path`` as a path, whether or not there is a file."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(text := os.fspath(path), str):
        raise ValueError(f"`{argument}` must be the path of a file, a str or a pathlib.Path, got {path!r}.")
    if "\0" in text:
        raise ValueError(f"`{argument}` must not hold the character 0, got {text!r}.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"`{argument}` must be text that a file name can hold, got {text!r}.") from None
    return Path(text)


def existing_file(path: Any, argument: str = "path") -> Path:
    """``path`` as the path of a file that is there."""
    source = as_path(path, argument)
    if not exists(source):
        raise FileNotFoundError(f"`{argument}` does not exist: {str(source)[:1000]}.")
    if not source.is_file():
        raise ValueError(f"`{argument}` must be a regular file: {source}.")
    return source


def exists(path: Path) -> bool:
    """Whether there is a file or folder of that name; no name that is too long has one."""
    try:
        return path.exists()
    except OSError:
        return False
