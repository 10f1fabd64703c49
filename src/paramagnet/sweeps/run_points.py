"""The points that a run learns from, and the held-out points that it is also measured on."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from paramagnet.data.datasets import Dataset, load_dataset
from paramagnet.data.files import read_table
from paramagnet.data.sources import SOURCES
from paramagnet.sweeps.seeds import data_seed, held_out_seed
from paramagnet.sweeps.spec import DataSpec, Run
from paramagnet.units import FloatArray

Points = tuple[FloatArray, FloatArray | None]


def load_points(run: Run) -> Points:
    """The points to learn, and the held-out ones if there are any; kept for the next runs of the process."""
    return _load(run.data, run.visible, data_seed(run), held_out_seed(run))


@lru_cache(maxsize=10)
def _load(data: DataSpec, units: str, seed: int | None, held_out_seed: int) -> Points:
    _require_content(data.name, data.sha256)
    _require_content(data.held_out, data.held_out_sha256)
    dataset = load_dataset(data.name, n_points=data.n_points, units=units, binarize=data.binarize, rng=seed)
    held_out = _held_out(data, dataset, held_out_seed)[: data.held_out_points]
    return dataset.data, held_out if len(held_out) else None


def _require_content(name: str, sha256: str) -> None:
    """Raise an error if a data file has changed since the digest of the run was made from its content."""
    if not sha256:
        return
    try:
        found = hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name} does not exist where a run needs it. All workers must see it under the same path."
        ) from None
    if found != sha256:
        raise ValueError(f"{name} is not the file that the sweep was started with. Start the sweep anew.")


def _held_out(data: DataSpec, dataset: Dataset, seed: int) -> FloatArray:
    if data.held_out == "rest":
        return dataset.held_out
    if data.held_out == "fresh" or data.held_out in SOURCES:
        name = data.name if data.held_out == "fresh" else data.held_out
        other = load_dataset(
            name, n_points=data.held_out_points, units=dataset.units, binarize=data.binarize, rng=seed
        )
        return other.data
    assert dataset.binarizer is not None
    return dataset.binarizer.apply(read_table(data.held_out).data, rng=seed)
