"""Data sets ready to learn from: those of [Y25] by name, and the user's own by path.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_choice, as_count, as_generator, as_path, near_files
from paramagnet.data.alignment import Alignment, read_alignment
from paramagnet.data.alphabet import UNITS as ANY_ALPHABET
from paramagnet.data.binarize import PER, Binarizer, check_method, fit_binarizer
from paramagnet.data.checks import existing_file
from paramagnet.data.download import PathLike, read_source_file
from paramagnet.data.fasta import is_sequences
from paramagnet.data.files import read_table
from paramagnet.data.sources import SELECTION_SEED, SOURCES, Source
from paramagnet.data.table import Array, Label, Table
from paramagnet.units import FloatArray, Unit, as_binary, find_unit

Labels = npt.NDArray[np.int64]
Rng = np.random.Generator | int | None


@dataclass(frozen=True)
class Provenance:
    """Where data come from. ``files`` are pairs of a name and a sha256."""

    title: str
    licence: str
    reference: str
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points for a machine to learn.

    ``data`` is ``(n_points, n_visible)``, float64, in the values of ``units``; ``labels`` says which class
    each point belongs to, where there are classes, by its place in ``class_names``. ``thresholds`` is one
    number per feature or one per point, as ``binarizer`` made them, and ``indices`` says where in the source
    the points stood. Points of the source that were not selected are ``held_out``. ``alignment`` is that of
    sequences, with their names and letters. The arrays are read-only.
    """

    name: str
    data: FloatArray
    units: Unit
    feature_names: tuple[str, ...]
    labels: Labels | None = None
    class_names: tuple[str, ...] = ()
    binarizer: Binarizer | None = None
    thresholds: FloatArray | None = None
    indices: Labels | None = None
    held_out_labels: Labels | None = None
    image_shape: tuple[int, int] | None = None
    provenance: Provenance | None = None
    alignment: Alignment | None = None
    _rest: Array | None = field(default=None, repr=False)  # held-out points as they were
    _rest_seed: int = field(default=0, repr=False)

    def __repr__(self) -> str:
        n_points, n_visible = self.data.shape
        parts = [f"{self.name!r}", f"{n_points} points of {n_visible} {self.units} units"]
        if self.binarizer is not None and self.binarizer.method != "binary":
            parts.append(self.binarizer.describe())
        if self.n_held_out:
            parts.append(f"{self.n_held_out} held out")
        return f"Dataset({', '.join(parts)})"

    @property
    def n_held_out(self) -> int:
        """The number of held-out points."""
        return 0 if self._rest is None else len(self._rest)

    @cached_property
    def held_out(self) -> FloatArray:
        """The points that were not selected, ``(n_held_out, n_visible)``, made like ``data`` when asked."""
        if self._rest is None or not self.n_held_out:
            return _frozen(np.empty((0, self.data.shape[1])))
        if self.binarizer is None:
            return _frozen(self._rest.astype(np.float64))
        return _frozen(self.binarizer.apply(self._rest, rng=self._rest_seed))


def load_dataset(
    name: str | os.PathLike[str],
    *,
    n_points: int | None = None,
    units: str | Unit = "spin",
    binarize: str | float = "otsu",
    rng: Rng = None,
    per: str | None = None,
    label: Label = None,
    header: bool | None = None,
    data_dir: PathLike | None = None,
    progress: Any = None,
) -> Dataset:
    """The data set called ``name``, or the one in the file of that path, binarized; sequences stay letters.

    Parameters
    ----------
    name : str or os.PathLike
        One of the sets of [Y25] section 4, ``"toy"``, ``"drybean"``, ``"ulc"`` (both of its files) and
        ``"mnist"`` (the training images); ``"mnist-test"``; scikit-learn's ``"digits"``; or the path of a
        file that `read_table` reads. The toy data are [Y25] fig:4BD: the four patterns of 20 spins that are
        constant on each half; 100 points from each with 15 % of the spins flipped, independently.
    n_points : int, optional
        How many points to select at random; None takes the paper's number (toy 400, drybean 10,000, ulc 500,
        mnist 3,000), of other data all. The toy patterns share it evenly.
    units : str or Unit, default "spin"
        ``"spin"`` or ``"bit"``, the values of the result; of a file of sequences ``"categorical"``, a state
        for each letter (`read_alignment`), for which all options about thresholds and columns mean nothing.
    binarize : str or float, default "otsu"
        ``"otsu"``, ``"median"``, ``"stochastic"`` or a threshold, see `fit_binarizer`; fitted to the selected
        points. Data that are binary already stay so.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the selection and the draws. None takes a fixed seed, so that the same data come
        every time. A smaller selection with the same seed is the beginning of a larger one.
    per : str, optional
        What shares a threshold: ``"feature"``, ``"point"`` or ``"all"``; None takes "point" for images and
        "feature" for tables, as the paper does.
    label : str, int or bool, optional
        Column of the labels in a file, see `read_table`.
    header : bool, optional
        Whether the first line of a file names the columns, see `read_table`.
    data_dir : str or os.PathLike, optional
        A folder with the files of a named set; None takes the folder that PARAMAGNET_DATA names, then the
        cache, then the network.
    progress : object, optional
        A progress bar for downloads, with ``total``, ``update``, ``reset`` and ``close``.

    Returns
    -------
    Dataset
        The points, with what is known about them.
    """
    if isinstance(name, (str, os.PathLike)) and str(os.fspath(name)) not in SOURCES:
        sequences = is_sequences(as_path(name, "name"))
        if sequences or (isinstance(units, str) and units == ANY_ALPHABET):
            return _load_sequences(as_path(name, "name"), sequences, units, n_points, rng)
    unit = as_binary(units, "units")
    check_method(binarize, "binarize")
    if n_points is not None:
        n_points = as_count(n_points, "n_points")
    if not isinstance(name, (str, os.PathLike)):
        raise ValueError(f"`name` must be the name of a set or the path of a file, got {shown(name)}.")
    path = as_path(name, "name")
    if data_dir is not None:
        data_dir = as_path(data_dir, "data_dir")
    if progress is not None and not all(hasattr(progress, part) for part in ("update", "reset", "close")):
        raise ValueError(
            f"`progress` must be None or have `total`, `update`, `reset` and `close`, got {shown(progress)}."
        )
    source = SOURCES.get(os.fspath(name))
    if rng is None:
        rng = source.seed if source else SELECTION_SEED
    generator = as_generator(rng)
    if source is None:
        table, provenance = _read_own(path, label, header)
    elif source.draw is not None:
        table, provenance = source.draw(n_points or source.chosen, generator), _provenance(source)
        n_points = None
    else:
        table, provenance = read_named(source, data_dir, progress), _provenance(source)
        n_points = source.chosen if n_points is None else n_points
    if per is None:
        per = source.per if source else "feature" if table.image_shape is None else "point"
    as_choice(per, "per", PER)
    grey_range = source.grey_range if source and binarize == "stochastic" else None
    selected = _select(len(table.data), n_points, generator)
    seeds = generator.integers(2**62, size=2)
    chosen = table.data[selected[: n_points or None]]
    binarizer = fit_binarizer(chosen, binarize, per=per, units=unit, grey_range=grey_range)
    thresholds = binarizer.thresholds_of(chosen)
    data = binarizer.levels_of(binarizer.partition(chosen, thresholds, rng=int(seeds[0])))
    return _assemble(
        str(os.fspath(name)), table, data, selected, binarizer, thresholds, provenance, int(seeds[1])
    )


def _load_sequences(path: Path, sequences: bool, units: Any, n_points: Any, rng: Rng) -> Dataset:
    """The sequences of a file as states of categorical units."""
    if not sequences:
        raise ValueError(
            "`units` must be 'spin' or 'bit' for a file of numbers, got 'categorical', which is for "
            f"sequences (.fa, .fasta, .txt): {path}."
        )
    unit = None if isinstance(units, str) and units == ANY_ALPHABET else find_unit(units, "units")
    if unit is not None and unit.width == 1:
        raise ValueError(f"`units` must be 'categorical' for a file of sequences, got {unit}: {path}.")
    count = None if n_points is None else as_count(n_points, "n_points")
    generator = as_generator(SELECTION_SEED if rng is None else rng)
    alignment = read_alignment(existing_file(path, "name"))
    if unit is not None and unit != alignment.units:
        raise ValueError(
            f"`units` must be 'categorical', or {alignment.units}, a state for each letter of "
            f"{alignment.alphabet}, got {unit}: {path}."
        )
    selected = _select(len(alignment), count, generator)
    chosen = alignment.select(selected[: count or None])
    rest = alignment.data[selected[len(chosen) :]]
    data = chosen.data.astype(np.float64)
    for array in (data, selected, rest):
        array.setflags(write=False)
    return Dataset(
        str(os.fspath(path)),
        data,
        alignment.units,
        alignment.site_names,
        indices=selected[: len(chosen)],
        provenance=Provenance(f"file {path}", "unknown", "unknown"),
        alignment=chosen,
        _rest=rest,
    )


def _assemble(
    name: str,
    table: Table,
    data: FloatArray,
    selected: Labels,
    binarizer: Binarizer,
    thresholds: FloatArray | None,
    provenance: Provenance,
    seed: int,
) -> Dataset:
    n_points = len(data)
    rest = table.data[selected[n_points:]]
    labels = None if table.labels is None else table.labels[selected]
    arrays = (data, selected, rest, thresholds, labels)
    for array in arrays:
        if array is not None:
            array.setflags(write=False)
    return Dataset(
        name,
        data,
        binarizer.units,
        table.feature_names,
        None if labels is None else labels[:n_points],
        table.class_names,
        binarizer,
        None if binarizer.method == "binary" else thresholds,
        selected[:n_points],
        None if labels is None else labels[n_points:],
        table.image_shape,
        provenance,
        None,
        rest,
        seed,
    )


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _select(n_available: int, n_points: int | None, rng: np.random.Generator) -> Labels:
    """All points in the order in which they are selected; those after the first ``n_points`` are held out."""
    if n_points is None:
        return np.arange(n_available, dtype=np.int64)
    if n_points > n_available:
        raise ValueError(f"`n_points` must be at most {n_available}, the points there are, got {n_points}.")
    return rng.permutation(n_available)


def _provenance(source: Source) -> Provenance:
    files = tuple((file.name, file.sha256) for file in source.files)
    return Provenance(source.title, source.licence, source.reference, files)


# The user's own


def _read_own(path: Path, label: Label, header: bool | None) -> tuple[Table, Provenance]:
    if not path.exists():
        known = ", ".join(map(repr, SOURCES))
        raise ValueError(
            f"`name` must be one of {known}, or the path of a file, got {str(path)[:1000]!r}"
            f"{near_files(path, SOURCES)}."
        )
    table = read_table(existing_file(path, "name"), label=label, header=header)
    if table.data.dtype.kind == "f" and (gaps := np.isnan(table.data)).any():
        row, column = np.argwhere(gaps)[0]
        raise ValueError(
            f"`name` must be a file without missing cells, found {int(gaps.sum())}, the first in row {row} "
            f"(counted from 0), column {table.feature_names[column]!r}: {path}. Drop those points or fill "
            "them in."
        )
    return table, Provenance(f"file {path}", "unknown", "unknown")


# The named sets


def read_named(source: Source, data_dir: PathLike | None = None, progress: Any = None) -> Table:
    """The table of a named set, all of its points; its files are looked for as `load_dataset` says."""
    contents = [read_source_file(source, file, data_dir=data_dir, progress=progress) for file in source.files]
    return source.read(source, contents)
