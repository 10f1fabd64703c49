"""Fields from changed rows against the full product, over all edges of panels, words and lists."""

import numpy as np
import pytest

from paramagnet.kernels.changed_rows import WIDTH, add_changed_rows, make_panels
from paramagnet.kernels.sampling import draw, draw_and_list, list_changes
from paramagnet.sampling.chains import room_for_changes

SIZES = [1, 5, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 20]


def add(old, new, weights, fields, step):
    changes = room_for_changes(new)
    assert list_changes(old, new, *changes) == np.count_nonzero(old != new)
    add_changed_rows(*changes, step, make_panels(weights), fields)


def draw_states(n_chains, n_units, share, levels, seed=4):
    rng = np.random.default_rng(seed)
    old = rng.choice(np.array(levels, np.float32), size=(n_chains, n_units))
    new = np.where(rng.random(old.shape) < share, np.float32(sum(levels)) - old, old)
    return old, new


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("levels", [(-1.0, 1.0), (0.0, 1.0)], ids=str)
@pytest.mark.parametrize("n_fields", SIZES)
@pytest.mark.parametrize("n_units", SIZES)
def test_changed_rows_equal_the_product(n_units, n_fields, levels, share):
    old, new = draw_states(20, n_units, share, levels)
    weights = np.random.default_rng(5).normal(size=(n_units, n_fields)).astype(np.float32)
    fields = old @ weights
    add(old, new, weights, fields, levels[1] - levels[0])
    np.testing.assert_allclose(fields, new.astype(float) @ weights, atol=1e-4)


@pytest.mark.parametrize("n_chains", [1, 3])
def test_each_single_change_adds_its_own_row_exactly(n_chains):
    """Powers of two: every sum is exact, so that a wrong row, sign or chain is seen whatever its size."""
    n_units, n_fields = 2 * WIDTH + 3, WIDTH + 2
    weights = np.random.default_rng(6).integers(-8, 9, size=(n_units, n_fields)).astype(np.float32)
    for unit in range(n_units):
        for sign in (-1.0, 1.0):
            old = np.full((n_chains, n_units), -1.0, np.float32)
            old[-1, unit] = -sign
            new = old.copy()
            new[-1, unit] = sign
            fields = old @ weights
            add(old, new, weights, fields, 2.0)
            assert np.array_equal(fields, new @ weights)


def test_long_lists_of_one_sign():
    old = np.zeros((4, 5 * WIDTH), np.float32)
    weights = np.random.default_rng(7).integers(-8, 9, size=(5 * WIDTH, 7)).astype(np.float32)
    for new in (np.ones_like(old), old):
        fields = (1.0 - new) @ weights
        add(1.0 - new, new, weights, fields, 1.0)
        assert np.array_equal(fields, new @ weights)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n_units", SIZES)
def test_lists_hold_the_units_that_go_up_and_down(n_units, share):
    old, new = draw_states(7, n_units, share, (-1.0, 1.0))
    rows, bounds = room_for_changes(new)
    list_changes(old, new, rows, bounds)
    assert bounds[0] == 0
    assert np.all(np.diff(bounds) % 2 == 0)
    for i in range(7):
        for part, sign in enumerate((1.0, -1.0)):
            units = rows[bounds[2 * i + part] : bounds[2 * i + part + 1]]
            assert np.array_equal(units[units < n_units], np.flatnonzero((new - old)[i] * sign > 0.0))
            assert np.count_nonzero(units == n_units) <= 1


def test_draws_are_the_same_with_lists():
    fields = np.random.default_rng(8).normal(size=(9, 150)).astype(np.float32)
    shift, levels = np.zeros(150, np.float32), (0.0, 1.0)
    old, new, other = np.zeros_like(fields), np.empty_like(fields), np.empty_like(fields)
    changes, expected = room_for_changes(fields), room_for_changes(fields)
    n = draw_and_list(fields, 1.0, shift, levels, (1, 0, 2, 0), old, new, *changes)
    assert n == draw(fields, 1.0, shift, levels, (1, 0, 2, 0), old, other)
    assert np.array_equal(new, other)
    assert n == list_changes(old, new, *expected)
    assert np.array_equal(changes[1], expected[1])
    assert np.array_equal(changes[0][: changes[1][-1]], expected[0][: changes[1][-1]])


def test_panels_hold_the_weights_and_zeros_on_the_border_of_a_cache_line():
    weights = np.arange(1.0, 1.0 + 3 * (WIDTH + 2), dtype=np.float32).reshape(3, -1)
    panels = make_panels(weights)
    assert panels.shape == (2, 4, WIDTH)
    assert panels.ctypes.data % 64 == 0
    assert np.array_equal(panels[0, :3], weights[:, :WIDTH])
    assert np.array_equal(panels[1, :3, :2], weights[:, WIDTH:])
    assert np.all(panels[:, 3] == 0.0)
    assert np.all(panels[1, :, 2:] == 0.0)
