"""Exact sums for machines whose units all have two values, by enumeration of the smaller layer."""

from __future__ import annotations

from typing import Self

import numpy as np

from paramagnet._progress import Progress
from paramagnet.exact.exact_sum import NOTHING, Averages, ExactSum, Sizes
from paramagnet.kernels import enumeration
from paramagnet.units import BinaryUnit, FloatArray

Levels = tuple[float, float]


class Enumerated(ExactSum[BinaryUnit, BinaryUnit]):
    """A machine as the kernels take it: its arrays, and the two levels of each layer.

    One is made for every update, so the constructor only stores its arguments.
    """

    def __init__(self, arguments: tuple[FloatArray, FloatArray, FloatArray, Levels, Levels]) -> None:
        self.arguments = arguments

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: BinaryUnit,
        hidden: BinaryUnit,
    ) -> Self:
        """The sum of a machine given by its arrays and unit types."""
        levels, hidden_levels = (visible.low, visible.high), (hidden.low, hidden.high)
        return cls((weights, visible_bias, hidden_bias, levels, hidden_levels))

    @classmethod
    def log2_states(cls, sizes: Sizes) -> int:
        """The number of units of the smaller layer."""
        return min(sizes.n_visible, sizes.n_hidden)

    @classmethod
    def seconds(cls, sizes: Sizes, *, n_threads: int = 1, gradient: bool = True) -> float:
        """The estimated time of one sum, in seconds."""
        n_units = sizes.n_visible, sizes.n_hidden
        return enumeration.estimate_seconds(*n_units, n_threads=n_threads, gradient=gradient)

    def log_partition(self, n_threads: int = 1, progress: Progress | None = None) -> float:
        """``ln Z``."""
        return enumeration.log_partition(*self.arguments, n_threads=n_threads, progress=progress)

    def moments(self, n_threads: int = 1, progress: Progress | None = None) -> Averages:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``."""
        return *enumeration.moments(*self.arguments, n_threads=n_threads, progress=progress), NOTHING

    def draw(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the visible layer."""
        visible, _ = enumeration.draw_states(
            *self.arguments, n_samples, rng, n_threads=n_threads, progress=progress
        )
        return visible
