"""Exact sums by the types of units: the choice, and the sum that serves every type."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine
from own_units import TRIT, own_names
from paramagnet.exact.brute_force import BruteForce
from paramagnet.exact.cost import count_summed, estimate_seconds
from paramagnet.exact.enumerated import Enumerated
from paramagnet.exact.gaussian_integrated import HiddenIntegrated, VisibleIntegrated
from paramagnet.exact.registered_sums import SUMS, exact_sum, find_sum, register_sum
from paramagnet.kernels.precision import InexactSumError
from paramagnet.units import BIT, GAUSSIAN, SPIN, BinaryUnit

__all__ = ["own_names"]
pytestmark = pytest.mark.usefixtures("own_names")
OWN_PAIRS = [("trit", "bit"), ("spin", "trit"), ("trit", "trit"), ("gaussian", "trit"), ("trit", "gaussian")]
PAIRS = [("spin", "bit"), ("bit", "bit"), ("gaussian(0.5)", "spin"), ("bit", "gaussian")]


def brute_force(rbm):
    return BruteForce.of(rbm.weights, rbm.visible_bias, rbm.hidden_bias, rbm.visible, rbm.hidden)


def all_states(unit, n_units):
    """Every state and its weight; a grid of points for continuous units."""
    if unit.values is not None:
        return np.array(list(itertools.product(unit.values, repeat=n_units))), 1.0
    points = np.linspace(-9.0, 9.0, 73)
    return np.array(list(itertools.product(points, repeat=n_units))), (points[1] - points[0]) ** n_units


@pytest.mark.parametrize(("visible", "hidden"), OWN_PAIRS)
def test_sums_of_own_units_are_those_over_all_states(visible, hidden):
    rbm = make_machine(visible, hidden, 2, 2)
    (v, dv), (h, dh) = (all_states(unit, 2) for unit in (rbm.visible, rbm.hidden))
    weights = np.exp(-rbm.energy(v[:, None], h)) * dv * dh
    total = weights.sum()
    moments = pm.exact.exact_moments(rbm)
    assert pm.log_partition(rbm) == pytest.approx(np.log(total), rel=1e-12)
    assert moments.log_partition == pm.log_partition(rbm)
    p = weights / total
    np.testing.assert_allclose(moments.visible, p.sum(1) @ v, atol=1e-12)
    np.testing.assert_allclose(moments.hidden, p.sum(0) @ h, atol=1e-12)
    np.testing.assert_allclose(moments.products, v.T @ p @ h, atol=1e-12)
    assert find_sum(rbm.visible, rbm.hidden) is BruteForce


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize("sizes", [(4, 3), (3, 5)])
def test_the_sum_for_every_type_agrees_with_those_of_the_package(visible, hidden, sizes):
    rbm = make_machine(visible, hidden, *sizes)
    moments, (log_z, *arrays, further) = pm.exact.exact_moments(rbm), brute_force(rbm).moments()
    assert log_z == pytest.approx(moments.log_partition, rel=1e-13)
    for ours, true in zip(arrays, (moments.visible, moments.hidden, moments.products), strict=True):
        np.testing.assert_allclose(ours, true, rtol=1e-12, atol=1e-14)
    assert further.size == 0


def chi_squared(rbm, states):
    """Of counts of visible states against exact probabilities, and the degrees of freedom."""
    every = np.array(list(itertools.product(rbm.visible.values, repeat=rbm.n_visible)))
    p = np.exp(-rbm.free_energy(every) - pm.log_partition(rbm))
    codes = {tuple(state): index for index, state in enumerate(every)}
    counts = np.bincount([codes[tuple(state)] for state in states], minlength=len(every))
    expected = p * len(states)
    return float(np.sum((counts - expected) ** 2 / expected)), len(every) - 1


@pytest.mark.parametrize(("visible", "hidden"), [("trit", "bit"), ("trit", "trit"), ("trit", "gaussian")])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 4)])
def test_draws_of_own_units_have_the_exact_distribution(visible, hidden, sizes):
    rbm = make_machine(visible, hidden, *sizes)
    states = pm.sample_exact(rbm, 20_000, rng=4)
    value, freedom = chi_squared(rbm, states)
    assert value < freedom + 6.0 * np.sqrt(2.0 * freedom)
    other = pm.RBM(rbm.weights, 0.0 * rbm.visible_bias, rbm.hidden_bias, visible, hidden)
    assert chi_squared(other, states)[0] > 3.0 * value  # a forgotten bias is seen
    np.testing.assert_array_equal(states, pm.sample_exact(rbm, 20_000, rng=4, n_threads=2))


def test_blocks_do_not_show(monkeypatch):
    rbm = make_machine("trit", "bit", 4, 9)
    whole, drawn = brute_force(rbm).moments(), pm.sample_exact(rbm, 500, rng=1)
    shares = []
    monkeypatch.setattr("paramagnet.exact.brute_force._BLOCK_STATES", 7)
    parts = brute_force(rbm).moments(progress=shares.append)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(pm.sample_exact(rbm, 500, rng=1), drawn)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_layer_with_fewer_states_is_summed():
    assert count_summed(5, 7, TRIT, BIT) == 7  # 3**5 = 243 states, 2**7 = 128
    assert count_summed(5, 9, TRIT, BIT) == 8  # 2**8 >= 243
    assert count_summed(3, 4, GAUSSIAN, TRIT) == 7
    assert not brute_force(make_machine("trit", "bit", 5, 9)).swapped
    assert brute_force(make_machine("trit", "bit", 5, 7)).swapped


def test_costs_follow_from_sizes_alone():
    assert estimate_seconds(10, 400, TRIT, BIT) < 60.0
    assert estimate_seconds(60, 60, TRIT, BIT) > 1e9
    assert estimate_seconds(5000, 5000, TRIT, TRIT) == np.inf
    assert estimate_seconds(10, 10, TRIT, TRIT) < estimate_seconds(11, 11, TRIT, TRIT)
    with pytest.raises(ValueError, match=r"needs 2\*\*96 states") as caught:
        pm.log_partition(make_machine("trit", "trit", 60, 60))
    assert "force" not in str(caught.value)
    with pytest.raises(
        ValueError, match="`rbm` must have a layer of spin or bit units, got two Gaussian layers"
    ):
        pm.log_partition(make_machine("gaussian", "gaussian", scale=0.1))


def test_rounding_is_not_passed_off_as_an_exact_sum():
    rbm = make_machine("trit", "bit", scale=1e9)
    with pytest.raises(InexactSumError):
        pm.exact.exact_moments(rbm)
    with pytest.raises(ValueError, match=r"parameters of at most 1e\+12 for exact sums"):
        pm.log_partition(make_machine("trit", "bit", scale=1e14))


# The choice


class Coin(BinaryUnit):
    """A subclass of the package's own."""


def test_the_choice_follows_the_classes_of_units():
    assert find_sum(SPIN, BIT) is Enumerated
    assert find_sum(GAUSSIAN, BIT) is VisibleIntegrated
    assert find_sum(BIT, GAUSSIAN) is HiddenIntegrated
    coin = Coin("coin", 0.0, 1.0)
    assert find_sum(coin, SPIN) is Enumerated
    assert find_sum(TRIT, coin) is BruteForce


def test_a_type_registers_a_sum_of_its_own():
    class Cheap(BruteForce):
        @classmethod
        def seconds(cls, *sizes, **options):
            return 1.25

    coin = Coin("coin", 0.0, 1.0)
    register_sum(Coin, BinaryUnit, Cheap)
    try:
        assert find_sum(coin, SPIN) is Cheap
        assert find_sum(SPIN, coin) is Enumerated
        assert estimate_seconds(100, 100, coin, BIT) == 1.25
        assert isinstance(exact_sum(np.zeros((2, 2)), np.zeros(2), np.zeros(2), coin, SPIN), Cheap)
    finally:
        del SUMS[Coin, BinaryUnit]
        register_sum(BinaryUnit, BinaryUnit, Enumerated)
    assert find_sum(coin, SPIN) is Enumerated


def test_own_units_train_exactly_and_their_gradient_is_that_of_the_likelihood():
    rbm = make_machine("trit", "bit")
    data = TRIT.draw(np.zeros((30, 4)), np.random.default_rng(2))
    gradient = pm.learning.exact_gradient(rbm, data)
    step = 1e-5
    for i, j in itertools.product(range(4), range(3)):
        change = np.zeros((4, 3))
        change[i, j] = step
        machines = [
            pm.RBM(rbm.weights + sign * change, rbm.visible_bias, rbm.hidden_bias, "trit", "bit")
            for sign in (1.0, -1.0)
        ]
        up, down = (float(pm.log_likelihood(machine, data)) for machine in machines)
        assert gradient.weights[i, j] == pytest.approx((up - down) / (2.0 * step), abs=1e-8)
    result = pm.train(rbm, data, epochs=30, gradient=pm.Exact(), optimizer=pm.Adam(0.05), rng=0)
    assert result.history.log_likelihood[-1] > result.history.log_likelihood[0] + 0.1
    hidden = pm.train(
        make_machine("bit", "trit"), (data > 0).astype(float), epochs=30, gradient=pm.Exact(), rng=0
    )
    assert hidden.history.log_likelihood[-1] > hidden.history.log_likelihood[0]
