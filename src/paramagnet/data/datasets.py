"""Data sets by name; so far the toy data of [Y25] section 4.1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_count, as_generator
from paramagnet.units import SPIN, BinaryUnit, FloatArray, as_unit

TOY_SEED = 2025  # of the draw that everybody gets who asks for none in particular
TOY_FLIPS = 0.15

_NAMES = ("toy",)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points for a machine to learn.

    ``data`` is ``(n_points, n_visible)``, float64, in the values of ``units``; ``labels`` says which class
    each point belongs to, where there are classes. The arrays are read-only.
    """

    name: str
    data: FloatArray
    units: BinaryUnit
    feature_names: tuple[str, ...]
    labels: npt.NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        n_points, n_visible = self.data.shape
        return f"Dataset({self.name!r}, {n_points} points of {n_visible} {self.units} units)"


def load_dataset(
    name: str,
    *,
    n_points: int | None = None,
    units: str | BinaryUnit = "spin",
    binarize: str = "otsu",
    rng: np.random.Generator | int | None = None,
) -> Dataset:
    """The data set called ``name``.

    Parameters
    ----------
    name : ``"toy"``, [Y25] fig:4BD: the four patterns of 20 spins that are constant on each half; 100 points
        from each with 15 % of the spins flipped, independently
    n_points : how many points; None takes the paper's number (toy: 400). The toy patterns share it evenly.
    units : ``"spin"`` or ``"bit"``, the values of the result
    binarize : how data that are not binary are made so; the toy data are
    rng : seed or generator of the draw. None takes a fixed seed, so that the same data come every time.
    """
    if name not in _NAMES:
        raise ValueError(f"`name` must be one of {', '.join(map(repr, _NAMES))}, got {name!r}.")
    unit = as_unit(units, "units")
    n_points = 400 if n_points is None else as_count(n_points, "n_points")
    spins, labels = _draw_toy(n_points, as_generator(TOY_SEED if rng is None else rng))
    data = spins if unit == SPIN else np.where(spins > 0, unit.high, unit.low)
    for array in (data, labels):
        array.setflags(write=False)
    return Dataset(name, data, unit, tuple(f"x{i}" for i in range(data.shape[1])), labels)


def _draw_toy(n_points: int, rng: np.random.Generator) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    half = np.ones(10)
    patterns = np.array([np.r_[half, half], np.r_[-half, -half], np.r_[half, -half], np.r_[-half, half]])
    labels = np.sort(np.arange(n_points, dtype=np.int64) % len(patterns))
    flips = rng.random((n_points, patterns.shape[1])) < TOY_FLIPS
    spins: FloatArray = np.where(flips, -1.0, 1.0) * patterns[labels]
    return spins, labels
