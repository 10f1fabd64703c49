"""Random numbers as the chains use them: the statistics of `tests/random_statistics.py`.

One block of 5e5 draws by default, 1e8 draws in the slow test; planted faults must be seen with the former.
"""

import numpy as np
import pytest
from scipy.stats import poisson

from random_statistics import (
    DIRECTIONS,
    N_CHAINS,
    N_SWEEPS,
    N_UNITS,
    QUARTER,
    Statistics,
    spin_block,
    uniform_block,
    worst,
)


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
