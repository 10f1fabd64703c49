"""Random numbers as the chains use them: cells, correlations, runs and spacings, along units, chains, sweeps.

Blocks ``(sweeps, chains, units)`` go through a set of statistics, each a p-value. One block by default, 1e8
draws in the slow test; planted faults must be seen with the former.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm, poisson

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


def test_random_numbers_at_5e5_draws():
    p, name, n = worst(uniform_block, spin_block, 1)
    assert p > 1e-3 / n, name


@pytest.mark.slow
def test_random_numbers_at_1e8_draws():
    p, name, n = worst(uniform_block, spin_block, 200)
    assert p > 1e-3 / n, name


def same_sweep_twice(make):
    def block(number):
        numbers = make(number)
        numbers[1] = numbers[0]
        return numbers

    return block


def chains_that_share_numbers(make):
    def block(number):
        numbers = make(number)
        numbers[:, 1] = numbers[:, 0]
        return numbers

    return block


def word_used_twice(make):
    def block(number):
        numbers = make(number)
        numbers[..., QUARTER : 2 * QUARTER] = numbers[..., :QUARTER]
        return numbers

    return block


def slightly_sticky(make):
    """One number in a hundred is that of the unit before."""

    def block(number):
        numbers = make(number)
        chosen = np.random.default_rng(number).random(numbers.shape) < 0.01
        numbers[..., 1:] = np.where(chosen[..., 1:], numbers[..., :-1], numbers[..., 1:])
        return numbers

    return block


@pytest.mark.parametrize(
    "fault", [same_sweep_twice, chains_that_share_numbers, word_used_twice, slightly_sticky]
)
def test_planted_faults_are_seen(fault):
    p, _, _ = worst(fault(uniform_block), fault(spin_block), 1)
    assert p < 1e-9


def test_lattices_are_seen_by_their_spacings():
    """A congruential generator: every value once, in a pattern."""

    def lattice(number):
        n = N_SWEEPS * N_CHAINS * N_UNITS
        steps = np.arange(number * n + 1, (number + 1) * n + 1, dtype=np.uint64)
        words = (steps * np.uint64(2654435761)) % np.uint64(2**32)
        return (words.astype(np.float64) / 2.0**32).reshape(N_SWEEPS, N_CHAINS, N_UNITS).astype(np.float32)

    statistics = Statistics()
    statistics.add_uniform(lattice(0))
    assert statistics.p_values()["spacings, unit"] < 1e-9


def test_poisson_is_what_spacings_of_good_numbers_are():
    """The approximation itself, with numbers of NumPy."""
    statistics, rng = Statistics(), np.random.default_rng(0)
    for _ in range(4):
        statistics._add_spacings(rng.random((N_SWEEPS, N_CHAINS, N_UNITS)))
    total = sum(
        statistics.sums[f"spacings, {name}"] + statistics.sizes[f"spacings, {name}"] for name in DIRECTIONS
    )
    mean = sum(statistics.sizes[f"spacings, {name}"] for name in DIRECTIONS)
    assert 1e-4 < poisson.cdf(total, mean) < 1.0 - 1e-4
