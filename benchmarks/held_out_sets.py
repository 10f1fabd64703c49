"""The five data sets of the recipe and of the race, each split in three: learned, validation, test.

The points of a split are the same for all seeds. *Validation* points choose between settings (the defaults
of the recipe, the learning rates of other packages in the race), *test* points judge what was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet.data import load_dataset
from paramagnet.learning.independent import level_of
from paramagnet.units import find_unit

Array = Any
_FRESH = (501, 502)  # seeds of toy points that are not learned


@dataclass(frozen=True)
class Split:
    """A data set in the values of the visible units."""

    name: str
    units: str
    learned: Array
    validation: Array
    test: Array

    @property
    def floors(self) -> tuple[float, float, float]:
        """The log-likelihood of learned, validation and test points under independent units, nats per
        point.
        """
        unit = find_unit(self.units, "units")
        parts = (self.learned, self.validation, self.test)
        learned, validation, test = (float(level_of(unit, self.learned, part)) for part in parts)
        return learned, validation, test


# The number of learned points, and that of held-out points that are validation points.
SIZES = {
    "toy": (400, 2000),
    "drybean": (10_000, 1805),
    "digits": (1200, 297),
    "ulc": (500, 75),
    "mnist-3000": (3000, 1000),
    "mnist-60000": (60_000, 1000),
}
_MNIST_TEST = 2000


def load_split(name: str, units: str = "bit") -> Split:
    """The split of a data set."""
    n_learned, n_validation = SIZES[name]
    if name == "toy":
        learned = load_dataset("toy", units=units).data
        others = [load_dataset("toy", n_points=2000, units=units, rng=seed).data for seed in _FRESH]
        return Split(name, units, learned, others[0], others[1])
    source = load_dataset(name.partition("-")[0], n_points=n_learned, units=units)
    rest = source.held_out
    if name.startswith("mnist"):
        rest = load_dataset("mnist-test", n_points=n_validation + _MNIST_TEST, units=units).data
    return Split(name, units, source.data, rest[:n_validation], rest[n_validation:])


def seeded(seed: int, *stream: int) -> np.random.Generator:
    """A generator for one purpose of one seed."""
    return np.random.default_rng([seed, *stream])
