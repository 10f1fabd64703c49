"""Reading data from files: .npy, .npz, .csv, .parquet, .arff, idx, and sequences (FASTA)."""

from __future__ import annotations

import os
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from paramagnet._arrays import shown
from paramagnet.data.alignment import read_alignment
from paramagnet.data.checks import existing_file
from paramagnet.data.fasta import is_sequences
from paramagnet.data.idx import parse_idx
from paramagnet.data.numpy_files import read_numpy
from paramagnet.data.parquet import read_parquet
from paramagnet.data.table import Array, Label, Table, default_names, encode_labels
from paramagnet.data.text import parse_text
from paramagnet.units import FloatArray

_SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".arff", "idx", "idx.gz", ".fa", ".fasta", ".txt")
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
SEQUENCES = "sequences"  # the kind of a file of sequences


def read_data(
    path: str | os.PathLike[str], *, name: str | None = None, header: bool | None = None
) -> FloatArray:
    """The numbers in the file at ``path``, as float64, without labels.

    ``.npy`` and ``.npz`` are NumPy's own formats (pickled objects are refused); ``name`` says which array of
    an ``.npz`` is meant if there are several and none is called "data". All other formats, and ``header``,
    are as in `read_table`, but no cell may be missing. Values of NumPy's formats are neither changed nor
    checked. Sequences (``.fa``, ``.fasta``, ``.txt``) become states of categorical units; `read_alignment`
    has the options, and returns the alphabet and the names, too.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    name : str, optional
        Which array of an ``.npz`` is meant.
    header : bool, optional
        Whether the first line of a ``.csv`` names the columns; None finds out.

    Returns
    -------
    ndarray
        Numbers, ``(n_points, n_features)``.
    """
    source = existing_file(path)
    _check_options(None, header, name)
    if file_kind(source) in (".npy", ".npz"):
        array, _ = read_numpy(source, name)
        return np.ascontiguousarray(_as_numbers(array, source), dtype=np.float64)
    return np.ascontiguousarray(_read(source, header=header, missing=False).data, dtype=np.float64)


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
    path : str or os.PathLike
        ``.npy`` or ``.npz`` (an array of points; beside it in an ``.npz`` perhaps one called "labels"),
        ``.csv``, ``.parquet``, ``.arff``, or idx as MNIST has it, gzipped or not; ``.fa``, ``.fasta`` or
        ``.txt``, an alignment, whose letters become states of categorical units (`read_alignment`).
    label : str, int or bool, optional
        The name or number of the column with the labels (from 0; -1 is the last); None takes the column
        called class, label, labels or target, else the only one that holds text; False takes all as data.
    header : bool, optional
        Whether the first line of a ``.csv`` names the columns; None finds out, and raises where the line
        holds numbers that may be names, such as years.
    name : str, optional
        Which array of an ``.npz``.

    Returns
    -------
    Table
        Numbers, names of the features, and labels.

    Notes
    -----
    Missing cells become NaN. Infinite numbers are an error. A compressed file that unpacks to more than 1 GiB
    is refused; the environment variable PARAMAGNET_MAX_BYTES sets another limit.
    """
    source = existing_file(path)
    _check_options(label, header, name)
    if file_kind(source) not in (".npy", ".npz"):
        return _read(source, label=label, header=header)
    array, labels = read_numpy(source, name)
    array = _as_numbers(array, source)
    found = () if labels is None else ("labels in their own array",)
    if labels is None or label is False:
        return _as_table(array, source, None, (), found)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        place = int(np.argwhere(~np.isfinite(labels))[0, 0])
        raise ValueError(
            f"`path` must have a label for each point, got {labels[place]} for point {place}: {source}. Drop "
            "the point, or pass `label=False` to leave out the labels."
        )
    codes, classes = encode_labels(labels)
    return _as_table(array, source, codes, classes, found)


def _check_options(label: Any, header: Any, name: Any) -> None:
    """Check the options for every format, so that an error shows with the first file."""
    if not isinstance(label, (NoneType, bool, str, int, np.integer)):
        raise ValueError(
            f"`label` must be the name or the number of a column, False or None, got {shown(label)}."
        )
    if header is not None and not isinstance(header, (bool, np.bool_)):
        raise ValueError(f"`header` must be True, False or None, got {shown(header)}.")
    if not isinstance(name, (NoneType, str)):
        raise ValueError(f"`name` must be the name of an array, a text, or None, got {shown(name)}.")


def file_kind(source: Path) -> str:
    """The format of a file, from its name."""
    name = source.name.lower()
    stem = name.removesuffix(".gz")
    if "idx" in stem[-11:] and (stem.endswith(".idx") or "ubyte" in stem or stem[-4:-1] == "idx"):
        return "idx"
    if is_sequences(source):
        return SEQUENCES
    if source.suffix.lower() not in _SUFFIXES:
        remedy = " Save the sheet as .csv in UTF-8." if source.suffix.lower() in _SPREADSHEETS else ""
        raise ValueError(f"`path` must end in {', '.join(_SUFFIXES)}, got {source}.{remedy}")
    suffix = source.suffix.lower()
    return ".csv" if suffix == ".tsv" else suffix  # the reader finds the separator


def _read(source: Path, *, label: Label = None, header: bool | None = None, missing: bool = True) -> Table:
    kind = file_kind(source)
    if kind == ".parquet":
        return read_parquet(source, label, missing)
    if kind == SEQUENCES:
        alignment = read_alignment(source)
        return Table(alignment.data, alignment.site_names, found=alignment.found)
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


def _as_numbers(array: Array, source: Path) -> Array:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"`path` must hold real numbers, got dtype {array.dtype}: {source}.")
    return array
