"""Statistics of random numbers as the chains use them: cells, correlations, runs and spacings, along units,
chains, sweeps. `tests/kernels/test_random_numbers.py` and `benchmarks/philox_rounds.py` use them.

Blocks ``(sweeps, chains, units)`` go through a set of statistics, each a p-value.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2, norm

from paramagnet.kernels import sampling

DIRECTIONS = {"sweep": 0, "chain": 1, "unit": 2}
N_UNITS, N_CHAINS, N_SWEEPS = 500, 100, 10  # of a block: 5e5 draws
QUARTER = N_UNITS // 4


def uniform_block(number):
    """The numbers behind the draws of ten sweeps."""
    block = np.empty((N_SWEEPS, N_CHAINS, N_UNITS), np.float32)
    for index, sheet in enumerate(block):
        sampling.fill_uniform(sheet, 5, 0, N_SWEEPS * number + index, 1)
    return block


def spin_block(number):
    """Spins without a field, from the kernel of the chains itself."""
    fields = np.zeros((N_CHAINS, N_UNITS), np.float32)
    shift, block = np.zeros(N_UNITS, np.float32), np.empty((N_SWEEPS, N_CHAINS, N_UNITS), np.float32)
    for index, sheet in enumerate(block):
        address = (5, 0, N_SWEEPS * number + index, 1)
        sampling.draw(fields, 2.0, shift, (-1.0, 1.0), address, fields, sheet)
    return block


def neighbours(block, axis, lag):
    """Pairs at a distance along one direction."""
    turned = np.moveaxis(block, axis, 0)
    return turned[:-lag].ravel(), turned[lag:].ravel()


def pairs(block):
    """Pairs along each direction, and those of units that share a counter."""
    for name, axis in DIRECTIONS.items():
        for lag in (1, 2):
            yield f"{name} + {lag}", neighbours(block, axis, lag)
    for part in (1, 2, 3):
        yield f"quarter + {part}", neighbours(block, 2, part * QUARTER)


class Statistics:
    """Counts and sums over blocks, and what they say in the end."""

    def __init__(self, cells=32):
        self.cells, self.counts, self.sums, self.sizes = cells, {}, {}, {}

    def add_uniform(self, block):
        place = (self.cells * block.astype(np.float64)).astype(np.int64)
        self._count("values", (4096 * block.astype(np.float64)).astype(np.int64).ravel(), 4096)
        places = dict(pairs(place))
        for name, (one, other) in pairs(block.astype(np.float64) - 0.5):
            self._add(f"correlation, {name}", 12.0 * float(one @ other), one.size)
            first, second = places[name]
            self._count(f"cells, {name}", self.cells * first + second, self.cells**2)
        triple = (
            place[:-1, :-1, :-1] // 4,
            place[1:, :-1, :-1] // 4,
            place[:-1, 1:, :-1] // 4,
            place[:-1, :-1, 1:] // 4,
        )
        side = self.cells // 4
        code = ((triple[0] * side + triple[1]) * side + triple[2]) * side + triple[3]
        self._count("cells of four", code.ravel(), side**4)
        self._add_spacings(block)

    def add_spins(self, block):
        for name, (one, other) in pairs(block.astype(np.float64)):
            self._add(f"changes, {name}", float(one @ other), one.size)
        for name, axis in DIRECTIONS.items():
            line = np.moveaxis(block, axis, -1).reshape(-1)
            breaks = np.flatnonzero(line[1:] != line[:-1])
            lengths = np.minimum(np.diff(breaks), 12)
            weights = 0.5 ** np.append(np.arange(1, 12), 11)
            self._count(f"runs, {name}", lengths - 1, 12, weights)

    def p_values(self):
        result = {}
        for name, (counts, weights) in self.counts.items():
            expected = counts.sum() * weights
            # cells of pairs overlap in a way that changes nothing of the order of the counts' own noise
            result[name] = chi2.sf(np.sum((counts - expected) ** 2 / expected), counts.size - 1)
        for name, total in self.sums.items():
            result[name] = 2.0 * norm.sf(abs(total) / math.sqrt(self.sizes[name]))
        return result

    def _count(self, name, codes, n_cells, weights=None):
        counts, weights = self.counts.get(
            name, (0, np.full(n_cells, 1.0 / n_cells) if weights is None else weights)
        )
        self.counts[name] = counts + np.bincount(codes, minlength=n_cells), weights

    def _add(self, name, value, size):
        self.sums[name] = self.sums.get(name, 0.0) + value
        self.sizes[name] = self.sizes.get(name, 0) + size

    def _add_spacings(self, block):
        """Birthday spacings (Marsaglia): 2048 days of 2**30; spacings that repeat are Poisson with mean 2."""
        for name, axis in DIRECTIONS.items():
            line = np.moveaxis(block, axis, -1).reshape(-1).astype(np.float64)
            line = line[: line.size // 4096 * 4096].reshape(-1, 2048, 2)
            days = (32768 * line).astype(np.int64)
            spacings = np.sort(
                np.diff(np.sort(days[:, :, 0] * 32768 + days[:, :, 1], axis=1), axis=1), axis=1
            )
            repeats = int(np.sum(spacings[:, 1:] == spacings[:, :-1]))
            mean = 2.0 * len(spacings)
            key = f"spacings, {name}"
            self._add(key, repeats - mean, mean)


def worst(uniform, spins, n_blocks):
    """The smallest p-value and its name, and how many there are."""
    statistics = Statistics()
    for number in range(n_blocks):
        statistics.add_uniform(uniform(number))
        statistics.add_spins(spins(number))
    values = statistics.p_values()
    name = min(values, key=values.get)
    return values[name], name, len(values)
