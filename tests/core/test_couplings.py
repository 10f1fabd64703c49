"""Effective couplings against brute force over letters and contexts, and against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.couplings import (
    Contact,
    correct_products,
    effective_couplings,
    strongest_contacts,
)

HIDDEN = ["bit", "spin", "gaussian", "relu", "drelu", "categorical(3)", pm.gaussian(0.5)]


def machine(hidden, q=3, n_sites=4, scale=0.7, seed=0):
    rng = np.random.default_rng(seed)
    unit = pm.units.as_unit(hidden, "hidden")
    width = 3 if "categorical" in unit.name else 1
    weights = rng.normal(0.0, scale, (n_sites * q, 2 * width))
    return pm.RBM(
        weights, rng.normal(size=n_sites * q), rng.normal(0.0, 0.5, 2 * width), f"categorical({q})", unit
    )


def points(n_points=9, q=3, n_sites=4, seed=1):
    return np.random.default_rng(seed).integers(q, size=(n_points, n_sites)).astype(float)


def brute_force(rbm, data, weights, i, k):
    """The interaction of two letters in ln p, given each context, by enumeration and plain sums."""
    q = rbm.visible.q
    total = np.zeros((q, q))
    for point, weight in zip(data, weights, strict=True):
        table = np.zeros((q, q))
        for a, b in itertools.product(range(q), repeat=2):
            state = point.copy()
            state[[i, k]] = a, b
            table[a, b] = -rbm.free_energy(state)
        for a, b in itertools.product(range(q), repeat=2):
            total[a, b] += weight * (table[a, b] - table[a].mean() - table[:, b].mean() + table.mean())
    return total / sum(weights)


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_couplings_equal_those_of_brute_force(hidden):
    rbm, data = machine(hidden), points()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(data))
    found = effective_couplings(rbm, data, sample_weight=weights, n_contexts=100, keep=True)
    assert (found.n_contexts, found.error.max()) == (len(data), 0.0)
    for i, k in itertools.combinations(range(4), 2):
        expected = brute_force(rbm, data, weights, i, k)
        assert np.allclose(found.values[i, :, k], expected, rtol=0.0, atol=1e-12)
        assert np.allclose(found.values[k, :, i], expected.T, rtol=0.0, atol=1e-12)
        assert abs(found.strengths[i, k] - np.sqrt((expected**2).sum())) < 1e-12
    assert np.array_equal(found.strengths, found.strengths.T)
    assert not np.diag(found.strengths).any()


def test_gaussian_hidden_units_have_their_weights_as_couplings():
    rbm, data = machine(pm.gaussian(0.5)), points()
    weights = rbm.to_zero_sum().weights_by_state
    exact = 0.5 * np.einsum("iaj,kbj->iakb", weights, weights)
    for method in ("contexts", "second-order"):
        found = effective_couplings(rbm, data, method=method, keep=True)
        for i, k in itertools.combinations(range(4), 2):
            assert np.allclose(found.values[i, :, k], exact[i, :, k], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("hidden", ["bit", "spin", "relu"])
def test_the_second_order_is_right_for_small_weights(hidden):
    data = points()
    errors = []
    for scale in (0.2, 0.1, 0.05):
        rbm = machine(hidden, scale=scale)
        exact = effective_couplings(rbm, data, keep=True).values
        rough = effective_couplings(rbm, data, method="second-order", keep=True).values
        errors.append(np.abs(exact - rough).max() / np.abs(exact).max())
    assert errors[0] < 0.2
    assert errors[2] < 0.6 * errors[1] < 0.6 * 0.7 * errors[0]  # falls at least linearly with the weights


def test_a_machine_of_spins_has_the_couplings_of_two_letters():
    """For two letters the coupling is +-J with J a quarter of the double difference of ln p."""
    rng = np.random.default_rng(3)
    spins = pm.RBM(rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2), "spin", "spin")
    rbm, _ = spins.change_units(visible="categorical(2)")
    data = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    found = effective_couplings(rbm, data, keep=True).values
    for i, k in itertools.combinations(range(3), 2):
        difference = 0.0
        for rest in (-1.0, 1.0):
            for x, y in itertools.product((-1.0, 1.0), repeat=2):
                state = np.empty(3)
                state[[i, k, 3 - i - k]] = x, y, rest
                difference -= x * y * spins.free_energy(state) / 2.0
        assert np.allclose(found[i, :, k], difference / 4.0 * np.array([[1, -1], [-1, 1]]), atol=1e-12)


def test_gauge_and_biases_do_not_matter():
    rbm, data = machine("bit"), points()
    base = effective_couplings(rbm, data).strengths
    shifts = np.random.default_rng(4).normal(size=(4, 2))
    weights, biases = rbm.weights + np.repeat(shifts, 3, axis=0), rbm.hidden_bias - shifts.sum(axis=0)
    shifted = pm.RBM(weights, rbm.visible_bias + 1.5, biases, rbm.visible, rbm.hidden)
    assert np.allclose(effective_couplings(shifted, data).strengths, base, atol=1e-12)


def test_drawn_contexts_have_an_error_that_covers():
    rbm, data = machine("bit", scale=1.0), points(2000)
    exact = effective_couplings(rbm, data, n_contexts=2000).strengths
    scores = []
    for seed in range(40):
        found = effective_couplings(rbm, data, n_contexts=100, rng=seed)
        upper = np.triu_indices(4, 1)
        scores.append((found.strengths - exact)[upper] / found.error[upper])
        assert found.n_contexts == 100
    scores = np.array(scores)
    assert np.abs(scores.mean(axis=0)).max() < 0.8
    assert 0.7 < scores.std() < 1.5
    weights = np.zeros(2000)
    weights[7] = 3.0
    only = effective_couplings(rbm, data, sample_weight=weights)
    assert np.array_equal(only.strengths, effective_couplings(rbm, data[7:8]).strengths)
    one = effective_couplings(rbm, data, n_contexts=20, rng=1, n_threads=1).strengths
    assert np.array_equal(one, effective_couplings(rbm, data, n_contexts=20, rng=1, n_threads=3).strengths)


def test_a_letter_can_be_left_out_of_the_norms():
    rbm, data = machine("bit"), points()
    found = effective_couplings(rbm, data, keep=True, without=0)
    assert np.allclose(found.strengths[0, 2], np.linalg.norm(found.values[0, 1:, 2, 1:]))


def test_a_planted_contact_is_found():
    """Sites 2 and 9 copy each other, all others are independent: their pair must come first."""
    rng = np.random.default_rng(5)
    data = rng.integers(4, size=(600, 12)).astype(float)
    copied = rng.random(600) < 0.7
    data[copied, 9] = data[copied, 2]
    start = pm.initialize(12, 6, visible="categorical(4)", hidden="bit", scheme="xavier", rng=1)
    rbm = pm.train(start, data, epochs=60, optimizer=pm.Adam(0.03), batch_size=100, rng=1).rbm
    found = effective_couplings(rbm, data, n_contexts=50, rng=0)
    first = strongest_contacts(found.corrected, 3)[0]
    assert (first.i, first.j) == (2, 9)
    others = strongest_contacts(found.corrected, 2)[1]
    assert first.strength > 2.0 * others.strength
    shuffled = data.copy()
    shuffled[:, 9] = rng.permutation(shuffled[:, 9])  # without the effect the pair is like any other
    blind = pm.train(start, shuffled, epochs=60, optimizer=pm.Adam(0.03), batch_size=100, rng=1).rbm
    best = strongest_contacts(effective_couplings(blind, shuffled, n_contexts=50, rng=0).corrected, 1)[0]
    assert best.strength < 0.5 * first.strength


def test_the_average_product_correction():
    table = np.array([[9.0, 1.0, 2.0], [1.0, 9.0, 3.0], [2.0, 3.0, 9.0]])

    expected = [
        [0.0, 1.0 - 1.5 * 2.0 / 2.0, 2.0 - 1.5 * 2.5 / 2.0],
        [0.0, 0.0, 3.0 - 2.0 * 2.5 / 2.0],
        [0, 0, 0],
    ]
    assert np.allclose(np.triu(correct_products(table)), expected)

    rank_one = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    far = correct_products(np.outer(np.ones(5), np.ones(5)))
    assert np.allclose(far, 0.0)
    assert np.abs(correct_products(rank_one)).max() < 0.5 * rank_one.max()
    assert not correct_products(np.zeros((3, 3))).any()


def test_contacts_keep_their_distance():
    table = np.zeros((8, 8))
    for rank, (i, j) in enumerate([(0, 1), (0, 4), (1, 4), (2, 7)]):
        table[i, j] = table[j, i] = 10.0 - rank
    assert strongest_contacts(table, 2) == [Contact(0, 4, 9.0), Contact(2, 7, 7.0)]
    assert strongest_contacts(table, 2, least_distance=3)[1] == Contact(1, 4, 8.0)
    assert strongest_contacts(table, 1, least_distance=1) == [Contact(0, 1, 10.0)]
    positions = [0, 10, 20, 30, 31, 50, 60, 70]
    assert strongest_contacts(table, 2, positions=positions)[0] == Contact(0, 1, 10.0)
    assert len(strongest_contacts(table, 1000)) == 10
    assert strongest_contacts(table, least_distance=100) == []


def test_unsuitable_arguments():
    rbm, data = machine("bit"), points()
    for given, words in (
        ({"rbm": pm.RBM(np.zeros((3, 2)), 0.0, 0.0)}, "categorical visible units, got 3 spin units"),
        ({"rbm": 3}, "`rbm` must be a machine"),
        ({"data": data + 1}, "`data` must hold the states"),
        ({"data": data[:, :3]}, "`data` must have 4 columns"),
        ({"method": "third"}, "`method` must be 'contexts' or 'second-order'"),
        ({"n_contexts": 0}, "`n_contexts` must be a positive integer"),
        ({"without": 3}, "`without` must be"),
        ({"sample_weight": -np.ones(9)}, "`sample_weight` must be zero or positive"),
        ({"keep": 1}, "`keep` must be True or False"),
        ({"rbm": machine("categorical(3)"), "method": "second-order"}, "`method` must be 'contexts'"),
    ):
        with pytest.raises(ValueError, match=words):
            effective_couplings(**({"rbm": rbm, "data": data} | given))
    for table in (
        np.zeros((2, 3)),
        np.zeros((1, 1)),
        [[0.0, 1.0], [2.0, 0.0]],
        effective_couplings(rbm, data),
    ):
        with pytest.raises(ValueError, match="`strengths` must"):
            strongest_contacts(table)
    with pytest.raises(ValueError, match="`positions` must hold a number for each of 3 sites"):
        strongest_contacts(np.zeros((3, 3)), positions=[1, 2])
