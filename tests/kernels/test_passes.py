from __future__ import annotations

import numpy as np
import pytest

from paramagnet.kernels.passes import average_parts, follow_adam, scale_and_shift
from paramagnet.learning.optimizers import Adam

SIZES = [0, 1, 3, 16, 1001]


@pytest.mark.parametrize("size", SIZES)
def test_adam_rounds_as_its_formula_in_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    gradient, first, second = rng.normal(size=size), rng.normal(size=size), rng.random(size)
    first.setflags(write=False)  # as those of a state that was read from a file may be
    new_first, new_second, direction = np.empty((3, size))
    follow_adam(gradient, first, second, (0.9, 0.999, 0.3, 1e-8), new_first, new_second, direction)
    mean = 0.9 * first + (1.0 - 0.9) * gradient
    square = 0.999 * second + (1.0 - 0.999) * (gradient * gradient)
    np.testing.assert_array_equal(new_first, mean)
    np.testing.assert_array_equal(new_second, square)
    np.testing.assert_array_equal(direction, mean / (0.3 * np.sqrt(square) + 1e-8))


def test_adam_leaves_its_former_state_and_the_gradient_as_they_were() -> None:
    optimizer, gradient = Adam(0.1), np.array([1.0, -2.0, 0.0])
    _, state = optimizer.step(optimizer.start(3), gradient)
    kept = [slot.copy() for slot in state.slots]
    direction, later = optimizer.step(state, 3.0 * gradient)
    np.testing.assert_array_equal(state.slots, kept)
    np.testing.assert_array_equal(gradient, [1.0, -2.0, 0.0])
    assert (state.n_steps, later.n_steps) == (1, 2)
    assert direction[2] == 0.0  # and not 0/0


def test_adam_passes_on_what_is_not_finite_without_a_warning() -> None:
    direction, state = Adam(0.1).step(Adam(0.1).start(3), np.array([np.nan, np.inf, 1e200]))
    assert np.isnan(direction[:2]).all()
    assert np.isinf(state.slots[1][1:]).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_parts_are_added_in_order_in_double_precision(n_parts: int, size: int) -> None:
    parts = np.random.default_rng(size).normal(size=(n_parts, size)).astype(np.float32)
    out = np.full(size, np.nan)
    average_parts(parts, 7.0, out)
    expected = np.zeros(size)
    for part in parts:
        expected += part
    np.testing.assert_array_equal(out, expected / 7.0)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 5), (20, 33)])
def test_products_are_scaled_and_shifted_row_by_row(shape: tuple[int, int], precision: type) -> None:
    rng = np.random.default_rng(shape[0])
    products, shifts = rng.normal(size=shape).astype(precision), rng.normal(size=shape[0]).astype(precision)
    out = np.full(shape, np.nan)
    scale_and_shift(products, 0.3, shifts, out)
    np.testing.assert_array_equal(out, 0.3 * products.astype(float) + shifts.astype(float)[:, None])
