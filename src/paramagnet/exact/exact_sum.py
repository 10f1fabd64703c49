"""The interface of exact sums, which is the same for all unit types."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from paramagnet._progress import Progress
from paramagnet.units import FloatArray, Unit

Averages = tuple[float, FloatArray, FloatArray, FloatArray, FloatArray]
NOTHING = np.zeros(0)


class Sizes(NamedTuple):
    """The layer sizes and unit types, which determine the cost of a sum."""

    n_visible: int
    n_hidden: int
    visible: Unit
    hidden: Unit


V_contra = TypeVar("V_contra", bound=Unit, contravariant=True)
H_contra = TypeVar("H_contra", bound=Unit, contravariant=True)


class ExactSum(Protocol[V_contra, H_contra]):
    """The sum over all states of a machine, by a method that depends on its unit types.

    The parameters of a machine are given to `of`. The cost of a sum follows from sizes and unit types alone,
    so the methods for it are class methods. ``most`` is the largest `log2_states` that is accepted, however
    much time is allowed.
    """

    most: ClassVar[float] = math.inf

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: V_contra,
        hidden: H_contra,
    ) -> Self:
        """The sum of a machine given by its arrays and its units, which hold their parameters (`Unit.at`)."""
        ...

    @classmethod
    def log2_states(cls, sizes: Sizes) -> int:
        """The binary logarithm of the number of states that are summed one by one, rounded up."""
        ...

    @classmethod
    def seconds(cls, sizes: Sizes, *, n_threads: int = 1, gradient: bool = True) -> float:
        """The estimated time of one sum in seconds: of `moments` if ``gradient``, else of `log_partition`.

        Raises OverflowError if the time is too large for a float.
        """
        ...

    def log_partition(self, n_threads: int = 1, progress: Progress | None = None) -> float:
        """``ln Z``; the same for any number of threads, bit for bit."""
        ...

    def moments(self, n_threads: int = 1, progress: Progress | None = None) -> Averages:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``, and the averages of the `Unit.statistics` of both
        layers one after the other, in the order of `Layout`.
        """
        ...

    def draw(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the visible layer."""
        ...
