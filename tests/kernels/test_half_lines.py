"""Compiled draws of normal variables that are cut off at zero."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from paramagnet.half_line import draw_half
from paramagnet.kernels import half_lines
from paramagnet.kernels.half_lines import draw_drelu, draw_relu, tables, weigh_drelu, weigh_relu
from paramagnet.kernels.sampling import philox
from paramagnet.units import drelu, relu

SEED, SWEEP, STREAM = 2**40 + 77, 3, 1


def uniforms(n_chains, n_words, first=0):
    """The numbers behind the words at the addresses of the kernels."""
    quarter = -(-n_words // 4)
    found = np.empty((n_chains, 4 * quarter))
    keys = np.uint32(SEED & 0xFFFFFFFF), np.uint32(SEED >> 32)
    for i in range(n_chains):
        for unit in range(quarter):
            counter = (np.uint32(value) for value in (unit, first + i, SWEEP, STREAM))
            found[i, unit::quarter] = [(float(word) + 0.5) * 2.0**-32 for word in philox(*counter, *keys)]
    return found[:, :n_words]


def make_halves(d, g):
    up, down = np.sqrt(1.0 + np.tanh(g)), np.sqrt(1.0 - np.tanh(g))
    return np.stack((d, up, down, np.log(up), np.log(down)))


@pytest.mark.parametrize("n_units", [1, 2, 3, 5, 64, 67, 130])
def test_draws_are_inverse_distribution_functions(n_units):
    """On both sides of all limits, to the rounding of float32; one word per unit."""
    rng = np.random.default_rng(n_units)
    edges = [-60.0, -30.01, -30.0, -29.99, -5.0, -1e-6, 0.0, 1e-6, 8.99, 9.0, 9.01, 60.0, 1e4, -1e4, -1e8]
    fields = rng.choice([*edges, *rng.normal(0.0, 3.0, 40)], (30, n_units)).astype(np.float32)
    shift = rng.normal(0.0, 1e-3, n_units).astype(np.float32)
    new = np.empty_like(fields)
    draw_relu(fields, 0.5, shift, (SEED, 7, SWEEP, STREAM), new, tables())
    a = 0.5 * fields.astype(np.float64) + shift
    wanted = draw_half(a, uniforms(30, n_units, first=7))
    np.testing.assert_allclose(new, wanted, rtol=3e-7, atol=1e-9)
    assert new.min() >= 0.0


def test_draws_of_two_halves():
    """The side by the first words, the place by those behind them."""
    rng = np.random.default_rng(0)
    n_units = 37
    fields = rng.normal(0.0, 4.0, (50, n_units)).astype(np.float32)
    d, g = rng.normal(size=(2, n_units))
    unit = drelu().at({"theta_asymmetry": d, "gamma_asymmetry": g})
    new, shift = np.empty_like(fields), rng.normal(size=n_units).astype(np.float32)
    draw_drelu(fields, 1.0, shift, make_halves(d, g), (SEED, 0, SWEEP, STREAM), new, tables())
    u, h = uniforms(50, 2 * n_units), fields.astype(np.float64) + shift
    positive = u[:, :n_units] < unit.shares(h)[0]
    up, down = np.sqrt(1.0 + np.tanh(g)), np.sqrt(1.0 - np.tanh(g))
    y = draw_half(np.where(positive, (h - d) * up, (-h - d) * down), u[:, n_units:])
    np.testing.assert_allclose(new, np.where(positive, up * y, -down * y), rtol=3e-7, atol=1e-9)
    assert 0.2 < positive.mean() < 0.8


@pytest.mark.parametrize("kind", ["relu", "drelu"])
def test_log_weights_are_those_of_the_units(kind):
    rng = np.random.default_rng(1)
    fields = rng.choice([-70.0, -30.0, -2.0, 0.5, 9.0, 80.0, 0.1], (20, 33)).astype(np.float32)
    shifts, (d, g) = rng.normal(size=(2, 33)), rng.normal(size=(2, 33))
    new, log_weights = np.empty_like(fields), np.full(20, 0.25)
    address = (SEED, 0, SWEEP, STREAM)
    again = np.empty_like(fields)
    if kind == "relu":
        unit = relu()
        weigh_relu(fields, (0.3, 0.8), shifts, address, new, log_weights, tables())
        draw_relu(fields, 0.8, shifts[1], address, again, tables())
    else:
        unit, halves = drelu().at({"theta_asymmetry": d, "gamma_asymmetry": g}), make_halves(d, g)
        weigh_drelu(fields, (0.3, 0.8), shifts, halves, address, new, log_weights, tables())
        draw_drelu(fields, 0.8, shifts[1], halves, address, again, tables())
    wide = fields.astype(np.float64)
    rise = unit.sum_log_trace(0.8 * wide + shifts[1]) - unit.sum_log_trace(0.3 * wide + shifts[0])
    np.testing.assert_allclose(log_weights, 0.25 + rise, rtol=1e-11, atol=1e-8)
    np.testing.assert_array_equal(new, again)


def test_what_is_not_a_number_stays_within_the_tables():
    fields = np.array([[np.nan, 1.0, np.inf, -np.inf, 1e38, -1e38]], np.float32)
    new, log_weights = np.empty_like(fields), np.zeros(1)
    known, zeros = tables(), np.zeros((2, 6))
    draw_relu(fields, 1.0, zeros[0].astype(np.float32), (1, 0, 0, 0), new, known)
    assert np.isfinite(new[0, [1, 4, 5]]).all()
    weigh_relu(fields, (0.0, 1.0), zeros, (1, 0, 0, 0), new, log_weights, known)
    draw_drelu(fields, 1.0, zeros[0], np.zeros((5, 6)) + 1.0, (1, 0, 0, 0), new, known)


@pytest.mark.parametrize("field", [-40.0, -2.0, 0.0, 3.0])
def test_many_draws_have_the_distribution(field):
    fields = np.full((200, 250), field, np.float32)
    new = np.empty_like(fields)
    draw_relu(fields, 1.0, np.zeros(250, np.float32), (5, 0, 0, 0), new, tables())
    law = stats.truncnorm(-field, np.inf, loc=field)
    draws = new.ravel().astype(np.float64)
    assert stats.kstest(draws, law.cdf).pvalue > 1e-4
    assert stats.kstest(draws + 0.02 * law.std(), law.cdf).pvalue < 1e-4


def test_tables_are_as_fine_as_they_say():
    found, weight, inverse = tables()
    assert len(found) == len(weight) == (half_lines._HIGH - half_lines._LOW) * half_lines._PIECES
    assert len(inverse) == (half_lines._LAST - half_lines._FIRST) * half_lines._PIECES
    assert max(table.nbytes for table in (found, weight, inverse)) < 16_384  # fits the nearest cache
