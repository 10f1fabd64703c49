from __future__ import annotations

import numpy as np
import pytest

from paramagnet.kernels.passes import (
    average_parts,
    follow_adam,
    gather_states,
    move_biases,
    move_weights,
    scale_and_shift,
    sum_rows,
)
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


# The step of an update with sampled gradients

NONE = np.empty(0)
RULES = {
    "ascent": (0.0, 0.0, 0.0, 0.0, 0.0),
    "momentum": (1.0, 0.7, 0.0, 0.0, 0.0),
    "adam": (2.0, 0.9, 0.99, 0.4, 1e-8),
}


def take_step(rule, slope, old):
    """The direction and the new slots by the formulas of the optimizers, in NumPy."""
    kind, keep_first, keep_second, scale, epsilon = rule
    if kind == 0.0:
        return slope, old[1:]
    if kind == 1.0:
        velocity = keep_first * old[1] + slope
        return velocity, (velocity, old[2])
    first = keep_first * old[1] + (1.0 - keep_first) * slope
    second = keep_second * old[2] + (1.0 - keep_second) * slope**2
    return first / (scale * np.sqrt(second) + epsilon), (first, second)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (11, 40)])
def test_a_step_in_slices(rule, centred, in_place, penalized, n, m):
    """Centred coordinates as in the module of the update: the slope less both offsets, biases corrected."""
    rng, rate, keep, factor = np.random.default_rng(n), 0.05, 0.98, 3.5
    size = n * m + m + n
    old = tuple(np.abs(rng.normal(size=size)) for _ in range(3))
    gradient = rng.normal(size=(n, m)).astype(np.float32)
    slope_v, slope_h = rng.normal(size=n), rng.normal(size=m)
    mu, lam = (rng.normal(size=n), rng.normal(size=m)) if centred else (np.zeros(n), np.zeros(m))
    slope = gradient - np.outer(mu, slope_h) - np.outer(slope_v, lam)
    whole = np.concatenate([slope.ravel(), slope_h, slope_v])
    direction, slots = take_step(rule, whole, old)
    of_w, of_c, of_b = np.split(direction, [n * m, n * m + m])
    of_w = of_w.reshape(n, m)
    change = rate * of_w - (1.0 - keep) * old[0][: n * m].reshape(n, m)  # decay included
    thresholds = np.linspace(0.0, 0.8, m) if penalized else None
    if penalized:
        before = old[0][: n * m].reshape(n, m)
        for i, j in np.ndindex(n, m):
            weight = before[i, j] + change[i, j]
            weight = np.sign(weight) * max(abs(weight) - thresholds[j], 0.0)
            change[i, j] = weight - before[i, j]
    moved = [old[0][: n * m] + change.ravel()]
    moved += [old[0][n * m : n * m + m] + rate * factor * of_c - change.T @ mu]
    moved += [old[0][n * m + m :] + rate * of_b - change @ lam]

    kept = tuple(a.copy() for a in old)
    new = kept if in_place else tuple(np.full(size, np.nan) for _ in range(3))
    given = kept if in_place else old
    for array in old:
        array.setflags(write=False)
    offsets = (mu, lam, slope_v, slope_h) if centred else None
    weights, along, across = np.empty((n, m), np.float32), np.zeros(n), np.zeros(m)
    settings, norms = (*rule, rate, keep), np.zeros(2)
    for rows in [(0, n // 3), (n // 3, n)]:
        part = gradient[slice(*rows)]
        taken = in_place, thresholds, weights, (along, across), norms
        move_weights(part, rows, settings, offsets, given, new, *taken)
    corrections = (across, along) if centred else (NONE, NONE)
    move_biases(slope_h.copy(), n * m, factor, corrections[0], settings, given, new, norms)
    move_biases(slope_v.copy(), n * m + m, 1.0, corrections[1], settings, given, new, norms)
    np.testing.assert_allclose(new[0], np.concatenate(moved), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(weights, new[0][: n * m].reshape(n, m).astype(np.float32))
    for k in range(int(rule[0])):
        np.testing.assert_allclose(new[1 + k], slots[k], rtol=1e-12)
    np.testing.assert_allclose(norms, [new[0] @ new[0], whole @ whole], rtol=1e-12)


def test_states_of_points_and_sums_of_rows():
    rng = np.random.default_rng(0)
    high, chosen = rng.random((9, 5)) < 0.5, np.array([3, 0, 8, 3])
    out = np.empty((4, 5), np.float32)
    gather_states(high, chosen, (-1.0, 1.0), out)
    np.testing.assert_array_equal(out, 2.0 * high[chosen] - 1.0)
    factors, means = rng.normal(size=4).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    visible, hidden, of_points = np.empty(5), np.empty(3), np.empty(3)
    sum_rows(out, factors, means, visible, hidden, 3, of_points)
    np.testing.assert_allclose(of_points, means[:3].astype(float).sum(axis=0), rtol=1e-12)
    of_points[:] = 0.0
    sum_rows(out, factors, means, visible, hidden, 3, of_points[:0])
    assert not of_points.any()
    np.testing.assert_allclose(visible, factors.astype(float) @ out, rtol=1e-12)
    np.testing.assert_allclose(hidden, means.astype(float).sum(axis=0), rtol=1e-12)
