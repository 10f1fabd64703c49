"""Reading data from files: .npy, .npz, .csv, .parquet, .arff and idx."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet.data.idx import parse_idx
from paramagnet.data.table import Array, Label, Table, choose_label, default_names, encode_labels
from paramagnet.data.text import parse_text
from paramagnet.units import FloatArray

_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".arff", "idx", "idx.gz")
_LABEL_ARRAYS = ("labels", "label", "y", "target")


def read_data(path: str | os.PathLike[str], *, name: str | None = None) -> FloatArray:
    """The numbers in the file at ``path``, as float64, without labels.

    ``.npy`` and ``.npz`` are NumPy's own formats (pickled objects are refused); ``name`` says which array of
    an ``.npz`` is meant if there are several and none is called "data". All other formats are as in
    `read_table`, but no cell may be missing. Values are neither changed nor checked.
    """
    source = _existing_file(path)
    if _kind(source) in (".npy", ".npz"):
        array, _ = _read_numpy(source, name)
        return np.ascontiguousarray(_as_numbers(array, source), dtype=np.float64)
    return np.ascontiguousarray(_read(source, missing=False).data, dtype=np.float64)


def read_table(
    path: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | None = None,
    name: str | None = None,
) -> Table:
    """The points in the file at ``path``, with the names of their features and their labels.

    Parameters
    ----------
    path : ``.npy`` or ``.npz`` (an array of points; beside it in an ``.npz`` perhaps one called "labels"),
        ``.csv``, ``.parquet``, ``.arff``, or idx as MNIST has it, gzipped or not
    label : the name or number of the column with the labels (from 0; -1 is the last); None takes the column
        called class, label, labels or target, else the only one that holds text; False takes all as data
    header : whether the first line of a ``.csv`` names the columns; None finds out
    name : which array of an ``.npz``

    Missing cells become NaN. Infinite numbers are an error.
    """
    source = _existing_file(path)
    if _kind(source) not in (".npy", ".npz"):
        return _read(source, label=label, header=header)
    array, labels = _read_numpy(source, name)
    array = _as_numbers(array, source)
    found = () if labels is None else ("labels in their own array",)
    codes, classes = (None, ()) if labels is None or label is False else encode_labels(labels)
    return _as_table(array, source, codes, classes, found)


def _existing_file(path: str | os.PathLike[str]) -> Path:
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"`path` does not exist: {source}.")
    if not source.is_file():
        raise ValueError(f"`path` must be a regular file: {source}.")
    return source


def _kind(source: Path) -> str:
    """The format that the file's name tells."""
    name = source.name.lower()
    stem = name.removesuffix(".gz")
    if "idx" in stem[-11:] and (stem.endswith(".idx") or "ubyte" in stem or stem[-4:-1] == "idx"):
        return "idx"
    if source.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"`path` must end in {', '.join(_SUFFIXES)}, got {source}.")
    return source.suffix.lower()


def _read(source: Path, *, label: Label = None, header: bool | None = None, missing: bool = True) -> Table:
    kind = _kind(source)
    if kind == ".parquet":
        return _read_parquet(source, label, missing)
    content = source.read_bytes()
    if kind == "idx":
        return _as_table(parse_idx(content, str(source)), source)
    return parse_text(content, str(source), kind, label=label, header=header, missing=missing)


def _as_table(
    array: Array,
    source: Path,
    labels: Any = None,
    classes: tuple[str, ...] = (),
    found: tuple[str, ...] = (),
) -> Table:
    """A table of an array with one point per entry of its first axis; two further axes are an image."""
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"`path` must hold at least one point, got shape {array.shape}: {source}.")
    points = array.reshape(len(array), -1)
    if points.dtype != np.uint8:
        points = np.ascontiguousarray(points, dtype=np.float64)
    if points.dtype == np.float64 and np.isinf(points).any():
        row, column = np.argwhere(np.isinf(points))[0]
        raise ValueError(f"`path` must hold finite numbers, got inf in row {row}, column {column}: {source}.")
    if labels is not None and len(labels) != len(points):
        raise ValueError(
            f"`path` must have a label for each of {len(points)} points, got {len(labels)}: {source}."
        )
    shape = (int(array.shape[1]), int(array.shape[2])) if array.ndim == 3 else None
    return Table(points, default_names(points.shape[1]), labels, classes, image_shape=shape, found=found)


# NumPy's formats


def _read_numpy(source: Path, name: str | None) -> tuple[Array, Array | None]:
    """The points, and the labels where an archive has some beside them."""
    try:
        with open(source, "rb") as file:
            content = np.load(file, allow_pickle=False)
            if source.suffix.lower() == ".npy":
                if not isinstance(content, np.ndarray):
                    raise ValueError("an archive, not an array")
                return content, None
            if isinstance(content, np.ndarray):
                raise ValueError("an array, not an archive")
            chosen = _choose(content.files, name, source)
            points = content[chosen]
            for other in _LABEL_ARRAYS:
                if other in content.files and other != chosen and content[other].ndim == 1:
                    return points, content[other]
            return points, None
    except LookupError as error:
        raise ValueError(error.args[0]) from None
    except Exception as error:  # zipfile, EOFError, ValueError, UnicodeError: NumPy has many ways to say it
        reason = "its array does not fit into memory" if isinstance(error, MemoryError) else error
        raise ValueError(
            f"`path` is not a readable {source.suffix} file of numbers (truncated, or pickled objects?): "
            f"{source} ({reason})."
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


def _as_numbers(array: Array, source: Path) -> Array:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"`path` must hold real numbers, got dtype {array.dtype}: {source}.")
    return array


# Parquet


def _read_parquet(source: Path, label: Label, missing: bool) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet, types
    except ImportError:
        raise ValueError(
            "`path` is a parquet file, which needs pyarrow: pip install 'paramagnet[data]'."
        ) from None
    try:
        with open(source, "rb") as file:
            content = parquet.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"`path` is not a readable parquet file: {source} ({reason}).") from None
    names = content.column_names
    texts = [
        i
        for i, kind in enumerate(content.schema.types)
        if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    ]
    column = choose_label(names, len(names), label, texts, str(source))
    features = [i for i in range(len(names)) if i != column]
    if not features or not content.num_rows:
        raise ValueError(f"`path` must hold at least one point and one column of numbers: {source}.")
    data = np.empty((content.num_rows, len(features)))
    for place, i in enumerate(features):
        kind = content.schema.types[i]
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(f"`path` must hold numbers only, got {kind} in column {names[i]!r}: {source}.")
        data[:, place] = content.column(i).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    if not missing and np.isnan(data).any():
        row, place = np.argwhere(np.isnan(data))[0]
        raise ValueError(
            f"`path` must hold numbers only, got none in row {row}, column {place + 1}: {source}."
        )
    if column is not None and content.column(column).null_count:
        raise ValueError(f"`path` must have a label in every row of column {names[column]!r}: {source}.")
    found = () if column is None else (f"labels in {names[column]}",)
    codes, classes = (None, ()) if column is None else encode_labels(content.column(column).to_pylist())
    table = _as_table(data, source, codes, classes, found)
    return Table(data, tuple(names[i] for i in features), codes, classes, column, None, table.found)
