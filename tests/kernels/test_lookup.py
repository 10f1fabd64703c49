"""Products that are looked up against computed ones, over all edges of groups, panels and chunks."""

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.kernels.lookup import (
    CHUNK,
    GROUP,
    WIDTH,
    fill_codes,
    fill_codes_across,
    make_room,
    multiply_codes,
    multiply_states,
)
from paramagnet.sampling import layer as layer_module
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of

CHUNK_UNITS = CHUNK * GROUP
UNITS = [1, GROUP - 1, GROUP, GROUP + 1, 4 * GROUP, CHUNK_UNITS - 1, CHUNK_UNITS, 2 * CHUNK_UNITS + 21]
FIELDS = [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 5]
LEVELS = [(-1.0, 1.0), (0.0, 1.0)]


def multiply(states, weights, levels):
    fields = np.full((len(states), weights.shape[1]), np.nan, np.float32)
    multiply_states(states, weights, levels, *make_room(*states.shape), fields)
    return fields


def draw(n_chains, n_units, n_fields, levels, seed=0):
    """States and weights that are small whole numbers: all sums are exact, whatever their order."""
    rng = np.random.default_rng(seed)
    states = rng.choice(np.array(levels, np.float32), size=(n_chains, n_units))
    return states, rng.integers(-9, 10, size=(n_units, n_fields)).astype(np.float32)


@pytest.mark.parametrize("levels", LEVELS, ids=str)
@pytest.mark.parametrize("n_fields", FIELDS)
@pytest.mark.parametrize("n_units", UNITS)
def test_exact_where_sums_are(n_units, n_fields, levels):
    states, weights = draw(9, n_units, n_fields, levels)
    assert np.array_equal(multiply(states, weights, levels), states @ weights)


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_every_unit_has_its_own_row(levels):
    n_units = CHUNK_UNITS + GROUP + 1
    states = np.full((n_units, n_units), levels[0], np.float32)
    np.fill_diagonal(states, levels[1])
    _, weights = draw(1, n_units, WIDTH + 3, levels)
    assert np.array_equal(multiply(states, weights, levels), states @ weights)


def test_rounding_is_that_of_float32():
    states, _ = draw(50, 784, 1, (-1.0, 1.0))
    weights = np.random.default_rng(1).normal(size=(784, 60)).astype(np.float32)
    exact = states.astype(float) @ weights
    error = np.abs(multiply(states, weights, (-1.0, 1.0)) - exact).max()
    assert error < 3.0 * max(np.abs(states @ weights - exact).max(), 1e-6)


def test_room_can_be_used_again():
    """Nothing of a former product is left in it."""
    room = make_room(6, 37)
    for seed, n_fields in enumerate((40, 3, 17)):
        states, weights = draw(6, 37, n_fields, (0.0, 1.0), seed)
        fields = np.empty((6, n_fields), np.float32)
        multiply_states(states, weights, (0.0, 1.0), *room, fields)
        assert np.array_equal(fields, states @ weights)


@pytest.mark.parametrize("hidden", ["spin", "bit"])
def test_chains_are_the_same_by_either_product(hidden, monkeypatch):
    """Weights that are multiples of 1/64: fields are exact, so are the chains."""
    monkeypatch.setattr(layer_module, "SMALLEST_PRODUCT", 0)
    rng = np.random.default_rng(2)
    weights = np.round(rng.normal(0.0, 0.3, (70, 45)) * 64.0) / 64.0
    rbm = pm.RBM(weights, np.zeros(70), np.zeros(45), hidden=hidden)
    chains = Chains.start(rbm.visible, (120, 70), np.random.default_rng(3))
    assert layers_of(rbm)[0].room_for_products(120) is not None
    ends = [run_sweeps(layers_of(rbm), chains, 20, dense_above=share).visible for share in (0.0, None, 2.0)]
    monkeypatch.setattr(layer_module, "FEWEST_CHAINS", 10**6)
    assert layers_of(rbm)[0].room_for_products(120) is None
    ends.append(run_sweeps(layers_of(rbm), chains, 20, dense_above=0.0).visible)
    assert all(np.array_equal(ends[0], end) for end in ends[1:])


def test_annealing_is_the_same_by_either_product(monkeypatch):
    rng = np.random.default_rng(4)
    rbm = pm.RBM(np.round(rng.normal(0.0, 0.2, (60, 50)) * 64.0) / 64.0, np.zeros(60), np.full(50, -1.0))
    monkeypatch.setattr(layer_module, "SMALLEST_PRODUCT", 0)
    options = {"n_samples": 150, "n_temperatures": 30, "rng": 5}
    looked_up = pm.estimate_log_partition(rbm, **options)
    monkeypatch.setattr(layer_module, "FEWEST_CHAINS", 10**6)
    assert pm.estimate_log_partition(rbm, **options).value == looked_up.value


@pytest.mark.parametrize(
    ("visible", "n_visible", "n_chains"),
    [("gaussian", 500, 250), ("spin", 500, layer_module.FEWEST_CHAINS - 1), ("spin", 20, 250)],
)
def test_where_a_matrix_product_has_to_do(visible, n_visible, n_chains):
    rbm = pm.RBM(np.zeros((n_visible, 100)), np.zeros(n_visible), np.zeros(100), visible=visible)
    assert layers_of(rbm)[0].room_for_products(n_chains) is None
    large = pm.RBM(np.zeros((500, 100)), np.zeros(500), np.zeros(100))
    assert layers_of(large)[0].room_for_products(250) is not None


# Some rows only, transposed weights, transposed states

SHAPES = [(1, 1, 1), (3, 5, 2), (16, 16, 16), (17, 33, 9), (70, 15, 40), (64, 48, 65), (131, 100, 23)]


def draw_whole(n_chains, n_units, n_fields, levels):
    """States, and weights that are whole numbers: their sums are exact."""
    rng = np.random.default_rng(n_units)
    states = rng.choice(np.float32(levels), (n_chains, n_units))
    return states, rng.integers(-50, 50, (n_units, n_fields)).astype(np.float32)


@pytest.mark.parametrize(("n_chains", "n_units", "n_fields"), SHAPES)
@pytest.mark.parametrize("levels", [(0.0, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("across", [False, True])
def test_two_ranges_of_rows(n_chains, n_units, n_fields, levels, across):
    states, weights = draw_whole(n_chains, n_units, n_fields, levels)
    codes, room = make_room(n_chains, n_units)
    fill_codes(states, np.float32(sum(levels) / 2), codes)
    given = np.ascontiguousarray(weights.T) if across else weights
    for cut in {0, 1, n_chains // 3, n_chains}:
        ranges = (0, cut // 2, cut, n_chains)
        fields = np.full((n_chains, n_fields), np.nan, np.float32)
        multiply_codes(codes, ranges, given, across, levels, room, fields)
        asked = np.r_[0 : cut // 2, cut:n_chains]
        np.testing.assert_array_equal(fields[asked], states[asked] @ weights)
        assert np.isnan(np.delete(fields, asked, axis=0)).all()


def test_a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(3)
    states, weights = rng.choice(np.float32([0, 1]), (53, 90)), rng.normal(size=(90, 40)).astype(np.float32)
    codes, room = make_room(53, 90)
    fill_codes(states, np.float32(0.5), codes)
    whole, parts = np.empty((2, 53, 40), np.float32)
    multiply_codes(codes, (0, 53, 53, 53), weights, False, (0.0, 1.0), room, whole)
    for first, last in [(0, 1), (1, 8), (8, 31), (31, 53)]:
        multiply_codes(codes, (first, last, last, last), weights, False, (0.0, 1.0), room, parts)
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize(("n_chains", "n_units"), [(1, 1), (3, 7), (4, 5), (16, 20), (37, 18), (200, 33)])
def test_codes_of_transposed_states(n_chains, n_units):
    rng = np.random.default_rng(4)
    states = rng.choice(np.float32([-1, 1]), (n_chains, n_units))
    expected, found = make_room(n_units, n_chains)[0], make_room(n_units, n_chains)[0]
    fill_codes(np.ascontiguousarray(states.T), np.float32(0.0), expected)
    for first, last in [(0, n_units // 2), (n_units // 2, n_units)]:
        fill_codes_across(states, first, last, np.float32(0.0), found)
    np.testing.assert_array_equal(found, expected)
