"""The kernels of sampling against published vectors, loops in float64, and counts."""

import numpy as np
import pytest
from scipy.stats import chi2

from paramagnet.kernels import sampling
from paramagnet.kernels.jit import kernel
from paramagnet.units import BIT, SPIN

VECTORS = [  # Random123 1.14, kat_vectors, philox4x32 10: counter, key, result
    ("00000000 " * 6, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 6, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("given", "expected"), VECTORS)
def test_philox_gives_the_published_vectors(given, expected):
    words = [np.uint32(int(word, 16)) for word in given.split()]
    assert [int(word) for word in sampling.philox(*words)] == [int(word, 16) for word in expected.split()]


@kernel
def _exponentials(values, out):
    for i in range(values.size):
        out[i] = sampling.exp_minus(values[i])


def test_exponential_is_good_to_float32():
    values = np.concatenate(([0.0], np.geomspace(1e-9, 80.0, 100_001))).astype(np.float32)
    ours = np.empty_like(values)
    _exponentials(values, ours)
    exact = np.exp(-values.astype(float))
    assert np.max(np.abs(ours - exact)) < 1e-7
    assert np.max(np.abs(ours / exact - 1.0)[values < 1.0]) < 2e-7
    assert np.max(np.abs(ours / exact - 1.0)) < 1e-5  # the argument itself is rounded
    _exponentials(np.array([1e3, 1e30, np.inf], np.float32), ours)
    assert np.all(ours[:3] == np.float32(2.0**-125))


def uniform(shape=(200, 1000), seed=1, first=0, sweep=0, stream=0):
    out = np.empty(shape, np.float32)
    sampling.fill_uniform(out, seed, first, sweep, stream)
    return out


def check_uniform(numbers, others=None):
    """Chi-squared over 16 bins, and over 16 x 16 for the pairs with ``others``."""
    bins = (16 * numbers).astype(int).ravel()
    if others is not None:
        bins = 16 * bins + (16 * others).astype(int).ravel()
    n_bins = 16 if others is None else 256
    counts = np.bincount(bins, minlength=n_bins)
    expected = bins.size / n_bins
    return chi2.sf(np.sum((counts - expected) ** 2) / expected, n_bins - 1)


def test_uniform_numbers_are_uniform_and_independent_of_their_neighbours():
    u = uniform()
    assert np.min(u) > 0.0
    assert np.max(u) < 1.0
    neighbours = {
        "unit": (u[:, 1::2], u[:, ::2]),
        "quarter": (u[:, 250:500], u[:, :250]),
        "chain": (u[1::2], u[::2]),
        "sweep": (u, uniform(sweep=1)),
        "stream": (u, uniform(stream=1)),
        "seed": (u, uniform(seed=2)),
        "high half of the seed": (u, uniform(seed=1 + 2**32)),
    }
    assert check_uniform(u) > 1e-4
    for name, (one, other) in neighbours.items():
        assert check_uniform(one, other) > 1e-4, name
    assert check_uniform(np.sqrt(u)) < 1e-6  # the test sees what is not uniform
    assert check_uniform(u, np.float32(0.9) * u + np.float32(0.1) * uniform(sweep=1)) < 1e-6


@pytest.mark.slow
def test_uniform_numbers_at_1e8_draws():
    p_values, last = [], None
    for sweep in range(100):
        u = uniform((1000, 1000), sweep=sweep)
        pairs = [(u, None), (u[:, 1::2], u[:, ::2]), (u[1::2], u[::2])] + (
            [] if last is None else [(u, last)]
        )
        p_values.extend([check_uniform(*pair) for pair in pairs])
        last = u
    flat = np.array(p_values)
    assert flat.min() > 1e-4 / flat.size * 10
    assert abs(flat.mean() - 0.5) < 5 / np.sqrt(12 * flat.size)


def test_a_draw_depends_on_its_address_alone():
    u = uniform((40, 37))
    assert np.array_equal(uniform((15, 37), first=25), u[25:])


@pytest.mark.parametrize("unit", [SPIN, BIT], ids=str)
@pytest.mark.parametrize("n_units", [1, 3, 4, 37])
def test_draw_decides_as_float64_does(unit, n_units):
    rng = np.random.default_rng(3)
    fields = rng.normal(scale=2.0, size=(50, n_units)).astype(np.float32)
    bias = rng.normal(size=n_units)
    scale = unit.high - unit.low
    shift = (scale * bias).astype(np.float32)
    old = rng.choice(np.array(unit.levels, np.float32), size=fields.shape)
    new = np.empty_like(fields)
    n_changed = sampling.draw(fields, scale, shift, unit.levels, (7, 0, 5, 1), old, new)
    assert n_changed == np.count_nonzero(new != old)
    high = 1.0 / (1.0 + np.exp(-unit.log_odds(fields + bias)))
    u = uniform(fields.shape, seed=7, sweep=5, stream=1)
    sure = np.abs(u - high) > 1e-6
    assert np.array_equal(new[sure], np.where(u < high, unit.high, unit.low)[sure])
    assert set(np.unique(new)) <= set(unit.levels)


def test_draw_is_sure_where_the_field_is_strong():
    fields = np.tile(np.array([-1e30, -17.0, 17.0, 1e30], np.float32), (250_000, 1))
    new = np.empty_like(fields)
    sampling.draw(fields, 1.0, np.zeros(4, np.float32), (0.0, 1.0), (1, 0, 0, 0), fields, new)
    assert np.array_equal(np.unique(new, axis=0), [[0.0, 0.0, 1.0, 1.0]])


@pytest.mark.parametrize("unit", [SPIN, BIT], ids=str)
@pytest.mark.parametrize("n_units", [1, 8, 37, 5000])
def test_log_weights_equal_those_of_float64(unit, n_units):
    rng = np.random.default_rng(5)
    fields = rng.normal(scale=3.0, size=(10, n_units)).astype(np.float32)
    fields[0] *= 100.0
    biases = rng.normal(size=(2, n_units))
    scale, temperatures = unit.high - unit.low, np.array([0.31, 0.33])
    weights, new = np.ones(10), np.empty_like(fields)
    scales = (scale * temperatures[0], scale * temperatures[1])
    sampling.draw_and_weigh(fields, scales, scale * biases, unit.levels, (1, 0, 2, 0), new, weights)
    traces = [
        unit.log_trace(t * fields.astype(float) + b).sum(axis=1)
        for t, b in zip(temperatures, biases, strict=True)
    ]
    np.testing.assert_allclose(weights - 1.0, traces[1] - traces[0], rtol=1e-8, atol=1e-7 * np.sqrt(n_units))
    same = np.empty_like(fields)
    shift = (scale * biases[1]).astype(np.float32)
    sampling.draw(fields, scales[1], shift, unit.levels, (1, 0, 2, 0), new, same)
    assert np.mean(new == same) > 0.9999


def test_weights_of_strong_fields_are_finite():
    fields = np.array([[1e4, -1e4], [0.0, 1e30]], np.float32)
    weights, new = np.zeros(2), np.empty_like(fields)
    sampling.draw_and_weigh(fields, (0.0, 1.0), np.zeros((2, 2)), (0.0, 1.0), (1, 0, 0, 0), new, weights)
    assert weights == pytest.approx([1e4 - 2 * np.log(2.0), 1e30])


@pytest.mark.parametrize("n_units", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 100, 259, 2049])
def test_words_of_vectors_are_those_of_single_counters(n_units):
    """Every unit gets the word of its own address, whatever the length of the layer."""
    seed, first, sweep, stream, quarter = 2**41 + 7, 5, 9, 1, (n_units + 3) // 4
    found = np.empty((3, n_units), np.float32)
    sampling.fill_uniform(found, seed, first, sweep, stream)
    key = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    for i in range(3):
        for j in {0, n_units // 2, n_units - 1}:
            words = sampling.philox(
                np.uint32(j % quarter), np.uint32(first + i), np.uint32(sweep), np.uint32(stream), *key
            )
            assert found[i, j] == np.float32((int(words[j // quarter]) >> 9) * 2.0**-23 + 2.0**-24)


@pytest.mark.parametrize("unit", [BIT, SPIN])
def test_means_times_factors(unit):
    rng = np.random.default_rng(1)
    fields = (20.0 * rng.normal(size=(7, 50))).astype(np.float32)
    shift, factors = rng.normal(size=50).astype(np.float32), rng.normal(size=7).astype(np.float32)
    out = np.empty_like(fields)
    scale = unit.high - unit.low
    sampling.fill_means(fields, scale, shift, unit.levels, factors, out)
    expected = factors[:, None] * unit.mean(fields.astype(float) + shift / scale)
    np.testing.assert_allclose(out, expected, atol=5e-7)
