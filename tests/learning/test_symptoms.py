"""What a diagnosis measures, against slow oracles and symmetries."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine, states_of
from paramagnet.learning import symptoms
from paramagnet.learning.autocorrelation import leading_directions, measure_memory, record_chains
from paramagnet.learning.nearness import measure_nearness, nearest_distances
from paramagnet.learning.symptoms import (
    chance_of_more,
    compare_correlations,
    compare_means,
    effective_count,
    measure_activity,
    measure_independent,
    measure_overlaps,
    participation_ratio,
)
from paramagnet.sampling.chains import Chains


def normal_chains(memory, n_records, n_chains, seed=0):
    """Chains of normal numbers, each ``memory`` times the last one plus noise."""
    rng = np.random.default_rng(seed)
    values = np.empty((n_records, n_chains))
    values[0] = rng.normal(size=n_chains)
    for t in range(1, n_records):
        values[t] = memory * values[t - 1] + math.sqrt(1.0 - memory**2) * rng.normal(size=n_chains)
    return values


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_autocorrelation_time_of_normal_chains(memory):
    values = normal_chains(memory, 1000, 200)
    found = measure_memory({"x": values}).time
    truth = (1.0 + memory) / (1.0 - memory)
    assert abs(found.value - truth) < 4.0 * found.error + 0.01 * truth  # the window cuts exp(-5) of the sum
    assert found.error < 0.05 * truth


def test_its_error_is_the_scatter_of_repetitions():
    found = [measure_memory({"x": normal_chains(0.8, 300, 100, seed)}).time for seed in range(40)]
    scatter = np.std([time.value for time in found])
    assert 0.6 < np.mean([time.error for time in found]) / scatter < 1.6


def test_chains_that_stay_in_their_mode_are_slow():
    rng = np.random.default_rng(0)
    modes = np.repeat(rng.choice([-3.0, 3.0], size=(1, 100)), 400, axis=0) + rng.normal(size=(400, 100))
    memory = measure_memory({"x": modes})
    assert memory.slow
    assert memory.time.value > 0.8 * 400
    of_each_chain = modes - modes.mean(axis=0)  # the planted mistake: chains with means of their own
    assert not measure_memory({"x": of_each_chain}).slow
    assert not measure_memory({"x": np.ones((400, 100))}).slow  # nothing that varies


def test_autocorrelation_time_of_a_machine_is_that_of_its_transition_matrix():
    rbm = make_machine("spin", "bit", 3, 2, scale=1.2)
    states, hidden = states_of(pm.SPIN, 3), states_of(pm.BIT, 2)
    joint = np.exp(-rbm.energy(states[:, None], hidden[None]))
    to_hidden = joint / joint.sum(axis=1, keepdims=True)
    step = to_hidden @ (joint / joint.sum(axis=0)).T
    weights = joint.sum(axis=1) / joint.sum()
    np.testing.assert_allclose(weights @ step, weights, atol=1e-14)
    direction = np.linalg.svd(rbm.weights)[0][:, 0]
    exact = {}
    for name, values in (
        ("free energy", rbm.free_energy(states)),
        ("projection on singular vector 1", states @ direction),
    ):
        x = values - weights @ values
        rest = step - np.outer(np.ones(8), weights)  # without the stationary part
        summed = np.linalg.solve(np.eye(8) - rest, rest @ x)
        exact[name] = 1.0 + 2.0 * float((weights * x) @ summed / ((weights * x) @ x))
    rng = np.random.default_rng(1)
    start = states[rng.choice(8, size=400, p=weights)]
    chains, series, stride = record_chains(rbm, Chains.from_states(start, rng), 600, 1)
    assert stride == 1
    assert chains.sweep == 600
    np.testing.assert_allclose(series["free energy"][-1], rbm.free_energy(chains.visible), rtol=1e-5)
    for name, truth in exact.items():
        found = measure_memory({name: series[name]}).time
        assert abs(found.value - truth) < 4.0 * found.error + 0.01 * truth, name


def test_leading_directions_are_singular_vectors():
    weights = np.random.default_rng(0).normal(size=(12, 7)) * np.linspace(3.0, 0.1, 7)
    left = np.linalg.svd(weights)[0][:, :2]
    found = leading_directions(weights)
    assert found.shape == (12, 4)
    np.testing.assert_allclose(np.abs(np.sum(found[:, :2] * left, axis=0)), 1.0, atol=1e-6)
    assert leading_directions(np.ones((3, 1))).shape == (3, 1)
    assert np.isfinite(leading_directions(np.zeros((3, 2)))).all()


def test_participation_ratio():
    weights = np.random.default_rng(0).normal(size=(9, 6))
    squares = np.linalg.svd(weights)[1] ** 2
    expected = squares.sum() ** 2 / (squares**2).sum()
    for same in (weights, weights.T, 1e200 * weights, weights[::-1, [3, 1, 0, 2, 5, 4]]):
        assert participation_ratio(same) == pytest.approx(expected, rel=1e-12)
    assert participation_ratio(np.ones((5, 4))) == pytest.approx(1.0)
    assert participation_ratio(np.eye(5)) == pytest.approx(5.0)
    assert participation_ratio(np.zeros((5, 4))) == 0.0


@pytest.mark.parametrize(
    ("visible", "hidden"), [("spin", "bit"), ("bit", "spin"), ("spin", "gaussian(0.3)"), ("gaussian", "bit")]
)
def test_activity_against_machines_without_the_unit(visible, hidden):
    rbm = make_machine(visible, hidden, 4, 3)
    data, samples = pm.sample_exact(rbm, 200, rng=1), pm.sample_exact(rbm, 40_000, rng=2)
    found = measure_activity(rbm, data, samples)
    means = rbm.mean_h_given_v(data)
    np.testing.assert_allclose(found.variation, means.std(axis=0) / rbm.hidden.spread, rtol=1e-9)
    for j in range(3):
        others = [k for k in range(3) if k != j]
        bias = rbm.visible_bias + rbm.weights[:, j] * means[:, j].mean()
        without = pm.RBM(rbm.weights[:, others], bias, rbm.hidden_bias[others], visible, hidden)
        loss = pm.log_likelihood(rbm, data).value - pm.log_likelihood(without, data).value
        assert found.loss[j] == pytest.approx(loss, abs=0.02 + 0.05 * abs(loss))


def test_mirrored_samples_do_not_hide_idle_units():
    # Constant on the data, of the other sign in half of the samples: biases in its place would even gain.
    rbm = pm.RBM(np.full((6, 1), 1.5), 0.0, 0.0, "spin", "spin")
    data = np.where(np.random.default_rng(0).random((300, 6)) < 0.97, 1.0, -1.0)
    samples = pm.sample_exact(rbm, 500, rng=1)
    assert 0.4 < np.mean(samples.sum(axis=1) < 0.0) < 0.6
    found = measure_activity(rbm, data, samples)
    assert found.variation[0] < 0.05
    assert found.loss[0] == pytest.approx(-math.log(2.0), abs=0.2)


def test_moments_and_overlaps_do_not_depend_on_the_names_of_values():
    rbm = make_machine("spin", "bit", 6, 3, scale=0.8)
    points, samples = pm.sample_exact(rbm, 150, rng=1), pm.sample_exact(rbm, 120, rng=2)
    bits = [(states + 1.0) / 2.0 for states in (points, samples)]
    for compare in (compare_means, compare_correlations):
        one, other = compare(pm.SPIN, points, samples), compare(pm.BIT, *bits)
        np.testing.assert_allclose(one.beyond, other.beyond, atol=1e-12)
    one = measure_overlaps(pm.SPIN, points, samples, np.random.default_rng(0))
    other = measure_overlaps(pm.BIT, *bits, np.random.default_rng(0))
    flipped = measure_overlaps(pm.SPIN, -points, -samples, np.random.default_rng(0))
    for same in (other, flipped):
        np.testing.assert_allclose(one.chains, same.chains, atol=1e-12)
        assert (one.share, one.p_value) == (same.share, same.p_value)
    assert one.data.mean() == pytest.approx(1.0)


def test_moments_against_loops():
    rng = np.random.default_rng(0)
    points, samples = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) + 0.5
    means, pairs = (
        compare_means(pm.GAUSSIAN, points, samples),
        compare_correlations(pm.GAUSSIAN, points, samples),
    )
    np.testing.assert_allclose(means.samples, samples.mean(axis=0))
    expected = [np.cov(points.T, ddof=0)[i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(pairs.data, expected)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_moments_of_equal_sources_differ_by_chance(share):
    # Rare values, seen by few points, must not be taken for impossible.
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points, samples = ((rng.random((n, 30)) < share).astype(float) for n in (1000, 100))
        alarms += compare_means(pm.BIT, points, samples).count(0.0) > 0
        alarms += compare_correlations(pm.BIT, points, samples).count(0.1) > 0
    assert alarms <= 1


def test_shares_are_compared_by_fishers_test():
    from scipy.stats import fisher_exact

    for table in ((3, 10, 5, 40), (0, 10, 0, 10), (10, 10, 0, 10), (7, 30, 1, 500)):
        found, of, others, of_others = table
        counts = [[found, of - found], [others, of_others - others]]
        truth = fisher_exact(counts, alternative="greater").pvalue
        assert chance_of_more(*table) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("unit", [pm.SPIN, pm.BIT, pm.GAUSSIAN])
def test_nearest_points_against_loops(unit):
    rng = np.random.default_rng(0)
    points = unit.draw(np.zeros((50, 9)), rng)
    points[7] = points[31]  # a point that is there twice
    states = unit.draw(np.zeros((20, 9)), rng)

    def distance(a, b):
        return np.sum(a != b) if unit.values else np.sqrt(np.sum((a - b) ** 2))

    expected = [min(distance(v, p) for p in points) for v in states]
    np.testing.assert_allclose(nearest_distances(unit, states, points), expected, atol=1e-7)
    others = [min(distance(points[k], points[j]) for j in range(50) if j != k) for k in range(50)]
    found = nearest_distances(unit, points, points, itself=np.arange(50))
    np.testing.assert_allclose(found, others, atol=1e-6)
    assert found[7] < 1e-6
    near = measure_nearness(unit, points, points, held_out=states)
    assert near.share > 0.5  # the training points themselves as samples
    assert near.p_value < 1e-6


@pytest.mark.parametrize("visible", ["bit", "spin", "gaussian(0.5)"])
def test_level_of_independent_units(visible):
    rbm = make_machine(visible, "bit", 5, 3)
    data = pm.sample_exact(rbm, 4000, rng=0)
    level = measure_independent(rbm, data, None)
    if visible == "gaussian(0.5)":
        expected = np.sum(-0.5 * data.var(axis=0) / 0.5 - 0.5 * np.log(2.0 * np.pi * 0.5))
    else:
        share = (data == rbm.visible.values[1]).mean(axis=0)
        expected = np.sum(share * np.log(share) + (1.0 - share) * np.log(1.0 - share))
    assert level.value == pytest.approx(expected, abs=1e-5)
    free = pm.RBM(np.zeros((5, 1)), rbm.visible.bias_from(data), 0.0, visible, "bit")
    assert level.value == pytest.approx(pm.log_likelihood(free, data).value, abs=1e-10)
    assert level.optimism == 5 / 8000
    assert measure_independent(rbm, data, data[:10]).optimism == 0.0
    assert measure_independent(rbm, data, data[:1]).error == math.inf  # one point has no error


# Weights of points


def weighted_case(unit):
    """Points, samples and whole numbers as weights, with the points repeated so many times."""
    rng = np.random.default_rng(0)
    points, samples = unit.draw(np.full((40, 5), 0.3), rng), unit.draw(np.zeros((30, 5)), rng)
    counts = rng.integers(1, 5, size=40)
    return points, samples, counts, np.repeat(points, counts, axis=0)


@pytest.mark.parametrize("unit", [pm.SPIN, pm.BIT, pm.GAUSSIAN])
def test_averages_of_weighted_points_are_those_of_repeated_ones(unit):
    points, samples, counts, again = weighted_case(unit)
    for compare in (compare_means, compare_correlations):
        found, wanted = compare(unit, points, samples, 0.3 * counts), compare(unit, again, samples)
        np.testing.assert_allclose(found.data, wanted.data, atol=1e-12)
        np.testing.assert_allclose(found.samples, wanted.samples, atol=1e-12)
    rbm = make_machine(unit.name, "bit", 5, 3)
    found, wanted = (
        measure_activity(rbm, points, samples, 0.3 * counts),
        measure_activity(rbm, again, samples),
    )
    np.testing.assert_allclose(found.variation, wanted.variation, atol=1e-12)
    np.testing.assert_allclose(found.loss, wanted.loss, atol=1e-12)
    overlaps = measure_overlaps(unit, points, samples, np.random.default_rng(0), 0.3 * counts)
    whole = measure_overlaps(unit, again, samples, np.random.default_rng(0))
    np.testing.assert_allclose(overlaps.chains, whole.chains, atol=1e-12)
    level = measure_independent(rbm, points, None, 0.3 * counts)
    free = pm.RBM(np.zeros((5, 1)), unit.bias_from(points, "data", counts / counts.mean()), 0.0, unit, "bit")
    expected = pm.log_likelihood(free, points, sample_weight=counts).value
    assert level.value == pytest.approx(expected, abs=1e-10)
    assert level.optimism == pytest.approx(2.5 * (counts @ counts) / counts.sum() ** 2)
    held_out = measure_independent(rbm, points, points[:9], 0.3 * counts, 1.0 + np.arange(9.0))
    each = [pm.log_likelihood(free, [v]).value for v in points[:9]]
    assert held_out.value == pytest.approx(np.average(each, weights=1.0 + np.arange(9.0)), abs=1e-10)
    for one in (np.ones(40), np.full(40, 7.0)):  # equal weights are none
        same, none = compare_means(unit, points, samples, one), compare_means(unit, points, samples)
        np.testing.assert_allclose(same.beyond, none.beyond, atol=1e-12)
        same = compare_correlations(unit, points, samples, one)
        np.testing.assert_allclose(
            same.beyond, compare_correlations(unit, points, samples).beyond, atol=1e-12
        )
        level, alone = measure_independent(rbm, points, None, one), measure_independent(rbm, points, None)
        assert level.value == pytest.approx(alone.value, abs=1e-12)
        assert level.error == pytest.approx(alone.error, rel=0.02)  # n - 1 in place of n
        assert level.optimism == pytest.approx(alone.optimism)


def test_frequencies_of_weighted_labels():
    unit = pm.units.find_unit("categorical(3)", "unit")
    rng = np.random.default_rng(0)
    points, samples = (rng.choice(3, size=(n, 4), p=(0.2, 0.3, 0.5)).astype(float) for n in (40, 30))
    counts = rng.integers(1, 5, size=40)
    again = np.repeat(points, counts, axis=0)
    for compare in (compare_means, compare_correlations):
        found, wanted = compare(unit, points, samples, counts), compare(unit, again, samples)
        np.testing.assert_allclose(found.data, wanted.data, atol=1e-12)
        same, none = compare(unit, points, samples, np.full(40, 3.0)), compare(unit, points, samples)
        np.testing.assert_allclose(same.beyond, none.beyond, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_covariances_of_labels_against_all_indicators_at_once(weighted, block, monkeypatch):
    """Blocks of a row, of some rows and of all; those of 2 of 5 units, and of their squares."""
    monkeypatch.setattr(symptoms, "_BLOCK_VALUES", block)
    monkeypatch.setattr(symptoms, "_MOST_COLUMNS", 6)
    unit = pm.units.find_unit("categorical(3)", "unit")
    rng = np.random.default_rng(0)
    points, samples = (rng.choice(3, size=(n, 5), p=(0.2, 0.3, 0.5)).astype(float) for n in (90, 80))
    samples[:60, 4] = samples[:60, 0]
    weights = rng.uniform(0.5, 3.0, 90) if weighted else np.ones(90)
    upper, averages, squares = np.triu_indices(6, k=1), [], []
    for states, each in ((points, weights), (samples, np.ones(80))):
        indicators = np.concatenate([np.eye(3)[states[:, i].astype(int)] for i in (0, 4)], axis=1)
        deviations = (indicators - np.average(indicators, axis=0, weights=each)) / unit.spread
        pairs = (deviations[:, :, None] * deviations[:, None, :])[:, upper[0], upper[1]]
        averages.append(np.average(pairs, axis=0, weights=each))
        variance = np.average((pairs - averages[-1]) ** 2, axis=0, weights=each**2)
        squares.append(variance + averages[-1] ** 2)
    found = compare_correlations(unit, points, samples, weights if weighted else None)
    np.testing.assert_allclose(found.data, unit.spread**2 * averages[0], atol=1e-14)
    np.testing.assert_allclose(found.samples, unit.spread**2 * averages[1], atol=1e-14)
    counts = effective_count(90, weights), 80.0
    wanted = symptoms._compare(averages, squares, counts)
    assert (wanted.beyond > 0.0).any()
    np.testing.assert_allclose(found.beyond, wanted.beyond, atol=1e-13)


def test_indicators_of_all_data_are_never_in_memory(monkeypatch):
    monkeypatch.setattr(symptoms, "_MOST_COLUMNS", 200)  # the matrices of all pairs are small beside them
    monkeypatch.setattr(symptoms, "_BLOCK_VALUES", 1 << 16)
    unit = pm.units.find_unit("categorical(20)", "unit")
    states = np.random.default_rng(0).integers(20, size=(10_000, 50)).astype(np.float64)
    tracemalloc.start()
    try:
        compare_correlations(unit, states, states[::-1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * 200 * 10_000  # half of one array of them


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_points", [30, 49, 100])
@pytest.mark.parametrize("name", ["bit", "spin", "gaussian", "categorical(3)"])
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_columns(n_points, name, weighted):
    """Their variance is 0, not the root of a rounding below 0."""
    unit = pm.units.find_unit(name, "unit")
    rng = np.random.default_rng(n_points)
    points, samples = (rng.integers(2, size=(n, 6)).astype(float) for n in (n_points, 100))
    for states in (points, samples):
        states[:, :3] = 1.0
        states[:, 3] = -1.0 if name == "spin" else 0.0
    weights = rng.uniform(0.1, 2.0, n_points) if weighted else None
    for compare in (compare_means, compare_correlations):
        found = compare(unit, points, samples, weights)
        assert np.isfinite(found.beyond).all()
        assert found.count(0.5) == 0
    columns = range(12) if name == "categorical(3)" else range(4)
    assert np.abs(compare_means(unit, points, samples, weights).beyond[columns]).max() < 1e-12
    other = samples.copy()
    other[:, 0] = 0.0
    assert compare_means(unit, points, other, weights).count(0.1) >= 1


@pytest.mark.parametrize("planted", [False, True])
def test_weights_that_undo_a_selection(planted, monkeypatch):
    """Points of another source, with the ratio of both probabilities as weights, have the averages of the
    samples; as if each of them counted fully (the planted error), chance does not explain what is left.
    """
    if planted:
        monkeypatch.setattr(symptoms, "effective_count", lambda n_points, weights: float(n_points))
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points = (rng.random((1000, 30)) < 0.5).astype(float)
        weights = np.prod(np.where(points[:, :2] == 1.0, 19.0, 1.0), axis=1)
        samples = (rng.random((1000, 30)) < np.where(np.arange(30) < 2, 0.95, 0.5)).astype(float)
        alarms += compare_means(pm.BIT, points, samples, weights).count(0.0) > 0
        alarms += compare_correlations(pm.BIT, points, samples, weights).count(0.0) > 0
        if seed == 0:
            assert compare_means(pm.BIT, points, samples).count(0.3) == 2
    assert alarms > 20 if planted else alarms <= 2


def test_shares_of_weighted_points():
    """Overlaps and distances of points that a weight takes out, or brings in ten times."""
    rng = np.random.default_rng(0)
    up, down = (np.where(rng.random((200, 20)) < share, 1.0, -1.0) for share in (0.9, 0.1))
    points, chains = np.concatenate((up, down)), np.where(rng.random((100, 20)) < 0.9, 1.0, -1.0)
    weights = np.repeat([1.0, 1e-9], 200)
    assert measure_overlaps(pm.SPIN, points, -chains, np.random.default_rng(0)).p_value > 0.01
    found = measure_overlaps(pm.SPIN, points, -chains, np.random.default_rng(0), weights)
    assert found.share == pytest.approx(1.0, abs=1e-6)
    assert found.p_value < 1e-6
    assert measure_overlaps(pm.SPIN, points, chains, np.random.default_rng(0), weights).share < 1e-6
    far = np.where(rng.random((200, 20)) < 0.5, 1.0, -1.0)
    held_out = np.concatenate((up[:10], far[:90]))
    unit = measure_nearness(pm.SPIN, up, far[90:], held_out=held_out)
    for weight, expected in (
        (1.0, unit.limit),
        (1e-9, measure_nearness(pm.SPIN, up, far, held_out=far[:90]).limit),
    ):
        weights = np.where(np.arange(100) < 10, weight, 1.0)
        near = measure_nearness(pm.SPIN, up, far[90:], held_out=held_out, weights=weights)
        assert near.limit == expected
    assert near.limit > unit.limit
