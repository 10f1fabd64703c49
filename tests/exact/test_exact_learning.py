"""Exact sums, likelihoods and gradients against loops over all states, and the paper's toy tables."""

import csv
import functools
import itertools
import math
import multiprocessing
import threading
import time
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conftest
from paramagnet.data.datasets import load_dataset
from paramagnet.estimates import Estimate
from paramagnet.exact.sums import exact_moments, log_partition, sample_exact
from paramagnet.kernels import enumeration
from paramagnet.learning.gradients.summed import Exact, exact_gradient
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.optimizers import Adam
from paramagnet.learning.training import train
from paramagnet.rbm import RBM

draw_machine = functools.partial(conftest.draw_machine, scale=0.8)
COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))
LEVELS = {"spin": (-1.0, 1.0), "bit": (0.0, 1.0)}
SIZES = [(1, 1), (1, 4), (5, 1), (3, 5), (5, 4)]
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def draw_data(rbm, n_points, seed=1):
    return np.random.default_rng(seed).choice(rbm.visible.levels, size=(n_points, rbm.n_visible))


def enumerate_slowly(rbm):
    """Every pair of states with its weight exp(-E), from nested loops and the definition alone."""
    w, b, c = rbm.weights.tolist(), rbm.visible_bias.tolist(), rbm.hidden_bias.tolist()
    for v in itertools.product(LEVELS[rbm.visible.name], repeat=len(b)):
        for h in itertools.product(LEVELS[rbm.hidden.name], repeat=len(c)):
            exponent = sum(b_i * v_i for b_i, v_i in zip(b, v, strict=True))
            exponent += sum(c_j * h_j for c_j, h_j in zip(c, h, strict=True))
            exponent += sum(v[i] * w[i][j] * h[j] for i in range(len(b)) for j in range(len(c)))
            yield v, h, math.exp(exponent)


def slow_moments(rbm):
    total = math.fsum(weight for _, _, weight in enumerate_slowly(rbm))
    visible, hidden = np.zeros(rbm.n_visible), np.zeros(rbm.n_hidden)
    products = np.zeros((rbm.n_visible, rbm.n_hidden))
    for v, h, weight in enumerate_slowly(rbm):
        visible += weight / total * np.array(v)
        hidden += weight / total * np.array(h)
        products += weight / total * np.outer(v, h)
    return math.log(total), visible, hidden, products


def slow_likelihood_and_gradient(rbm, data):
    log_z, visible, hidden, products = slow_moments(rbm)
    of_v, hidden_of_v = {}, {}
    for v, h, weight in enumerate_slowly(rbm):
        of_v[v] = of_v.get(v, 0.0) + weight
        hidden_of_v[v] = hidden_of_v.get(v, 0.0) + weight * np.array(h)
    value, of_w, of_b, of_c = 0.0, -products, -visible, -hidden
    for point in map(tuple, data.tolist()):
        mean_h = hidden_of_v[point] / of_v[point]
        value += (math.log(of_v[point]) - log_z) / len(data)
        of_w = of_w + np.outer(point, mean_h) / len(data)
        of_b = of_b + np.array(point) / len(data)
        of_c = of_c + mean_h / len(data)
    return value, of_w, of_b, of_c


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), SIZES)
def test_partition_function_and_moments_agree_with_loops(n_visible, n_hidden, visible, hidden):
    rbm = draw_machine(n_visible, n_hidden, visible, hidden)
    log_z, *moments = slow_moments(rbm)
    result = exact_moments(rbm)
    np.testing.assert_allclose(log_partition(rbm), log_z, **TIGHT)
    np.testing.assert_allclose(result.log_partition, log_z, **TIGHT)
    for ours, slow in zip((result.visible, result.hidden, result.products), moments, strict=True):
        np.testing.assert_allclose(ours, slow, **TIGHT)
        assert not ours.flags.writeable


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), SIZES)
def test_likelihood_and_gradient_agree_with_loops(n_visible, n_hidden, visible, hidden):
    rbm = draw_machine(n_visible, n_hidden, visible, hidden)
    data = draw_data(rbm, 7)
    value, *slopes = slow_likelihood_and_gradient(rbm, data)
    estimate = log_likelihood(rbm, data)
    np.testing.assert_allclose(float(estimate), value, **TIGHT)
    assert (estimate.error, estimate.n_effective) == (0.0, math.inf)
    ours = exact_gradient(rbm, data)
    for array, slow in zip((ours.weights, ours.visible_bias, ours.hidden_bias), slopes, strict=True):
        np.testing.assert_allclose(array, slow, **TIGHT)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(4, 7), (7, 4)])
def test_gradient_agrees_with_finite_differences_of_the_likelihood(n_visible, n_hidden, visible, hidden):
    rbm = draw_machine(n_visible, n_hidden, visible, hidden)
    data = draw_data(rbm, 11)
    gradient = exact_gradient(rbm, data)
    step = 1e-3
    for name in ("weights", "visible_bias", "hidden_bias"):
        base = getattr(rbm, name)
        for index in np.ndindex(base.shape):
            values = []
            for shift in (-2, -1, 1, 2):
                moved = base.copy()
                moved[index] += shift * step
                parts = {n: getattr(rbm, n) for n in ("weights", "visible_bias", "hidden_bias")} | {
                    name: moved
                }
                values.append(float(log_likelihood(RBM(**parts, visible=visible, hidden=hidden), data)))
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
            assert slope == pytest.approx(getattr(gradient, name)[index], abs=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(COMBINATIONS), st.integers(1, 6), st.integers(1, 6))
def test_symmetries(seed, units, n_visible, n_hidden):
    rbm = draw_machine(n_visible, n_hidden, *units, seed=seed)
    data = draw_data(rbm, 5, seed)
    rng = np.random.default_rng(seed)
    value = float(log_likelihood(rbm, data))
    # The layers change places.
    swapped = RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias, rbm.hidden, rbm.visible)
    assert log_partition(swapped) == pytest.approx(log_partition(rbm), abs=1e-11)
    np.testing.assert_allclose(exact_moments(swapped).products.T, exact_moments(rbm).products, atol=1e-12)
    # The units are relabelled.
    i, j = rng.permutation(n_visible), rng.permutation(n_hidden)
    relabelled = RBM(rbm.weights[i][:, j], rbm.visible_bias[i], rbm.hidden_bias[j], *units)
    assert float(log_likelihood(relabelled, data[:, i])) == pytest.approx(value, abs=1e-11)
    # The same machine in other units.
    bits, spins = rbm.to_bits(), rbm.to_spins()
    up = data == rbm.visible.high
    assert float(log_likelihood(bits, up)) == pytest.approx(value, abs=1e-11)
    assert float(log_likelihood(spins, np.where(up, 1, -1))) == pytest.approx(value, abs=1e-11)
    # A hidden spin is flipped together with its weights.
    signs = rng.choice([-1.0, 1.0], size=n_hidden)
    flipped = RBM(spins.weights * signs, spins.visible_bias, spins.hidden_bias * signs, "spin", "spin")
    assert log_partition(flipped) == pytest.approx(log_partition(spins), abs=1e-11)


def test_any_number_of_threads_gives_the_same_bits():
    rbm = draw_machine(15, 17, scale=0.3)
    one, three = exact_moments(rbm), exact_moments(rbm, n_threads=3)
    assert log_partition(rbm) == log_partition(rbm, n_threads=2)
    assert one.log_partition == three.log_partition
    for name in ("visible", "hidden", "products"):
        assert np.array_equal(getattr(one, name), getattr(three, name))
    data = draw_data(rbm, 5)
    assert np.array_equal(exact_gradient(rbm, data).weights, exact_gradient(rbm, data, n_threads=2).weights)


def test_progress_is_reported():
    seen = []
    log_partition(draw_machine(12, 12), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


# Costs


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(45, 50), (784, 500), (3000, 2000)])
@pytest.mark.parametrize("function", [log_partition, exact_moments, lambda rbm: sample_exact(rbm, 3)])
def test_what_would_take_too_long_is_refused_at_once(function, n_visible, n_hidden):
    rbm = RBM(np.zeros((n_visible, n_hidden)), 0, 0)
    began = time.perf_counter()
    states = min(n_visible, n_hidden)
    with pytest.raises(
        ValueError, match=rf"needs 2\*\*{states} states, about .*`estimate_log_partition`.*PCD.*force=True"
    ):
        function(rbm)
    with pytest.raises(ValueError, match=rf"needs 2\*\*{states} states"):
        log_likelihood(rbm, np.ones((1, n_visible)))
    with pytest.raises(ValueError, match=rf"needs 2\*\*{states} states"):
        train(rbm, np.ones((1, n_visible)), epochs=1, gradient=Exact())
    assert time.perf_counter() - began < 1.0


def test_force_goes_ahead(monkeypatch):
    rbm = draw_machine(3, 3)
    expected = log_partition(rbm)
    monkeypatch.setattr(enumeration, "estimate_seconds", lambda *_, **__: 5 * 86400.0)
    with pytest.raises(ValueError, match="about 5 days"):
        log_partition(rbm)
    assert log_partition(rbm, force=True) == expected
    assert exact_moments(rbm, force=True).log_partition == expected
    assert sample_exact(rbm, 2, rng=0, force=True).shape == (2, 3)
    data = draw_data(rbm, 3)
    assert exact_gradient(rbm, data, force=True).weights.shape == (3, 3)
    assert train(rbm, data, epochs=1, gradient=Exact(force=True)).finished


# Estimates


def test_an_estimate_is_a_number_with_an_error():
    estimate = Estimate(-9.61, 0.02, 150.0)
    assert float(estimate) == -9.61
    assert repr(estimate) == "-9.610 +- 0.020"
    rbm = draw_machine(3, 3)
    data = draw_data(rbm, 4)
    log_z = log_partition(rbm)
    assert log_likelihood(rbm, data, log_partition=log_z) == log_likelihood(rbm, data)
    result = log_likelihood(rbm, data, log_partition=Estimate(log_z + 0.5, 0.1, 80.0))
    assert result.value == pytest.approx(float(log_likelihood(rbm, data)) - 0.5)
    assert (result.error, result.n_effective) == (0.1, 80.0)


def test_a_likelihood_shows_the_error_of_the_points_and_that_of_ln_z():
    rbm = draw_machine(4, 3)
    data = draw_data(rbm, 50)
    each = -rbm.free_energy(data) - log_partition(rbm)
    exact = log_likelihood(rbm, data)
    assert exact.points_error == pytest.approx(each.std(ddof=1) / np.sqrt(50))
    assert (exact.n_points, exact.error) == (50, 0.0)
    assert repr(exact) == f"{each.mean():.2f} +- {exact.points_error:.2f} (50 points), ln Z exact"
    known = Estimate(log_partition(rbm), 0.0123, 20.0)
    estimate = log_likelihood(rbm, data, log_partition=known)
    assert f"{estimate:.3f}" == (
        f"{each.mean():.3f} +- {exact.points_error:.3f} (50 points) +- 0.012 (ln Z) "
        "(do not trust: 20 effective samples)"
    )
    assert str(log_likelihood(rbm, data[:1])).endswith("(1 point), ln Z exact")


def test_the_error_of_weighted_points_has_the_right_size():
    """Over many draws of the points, the weighted means scatter as much as their errors say."""
    rbm, rng = draw_machine(4, 3), np.random.default_rng(5)
    means, errors = [], []
    for _ in range(400):
        data, weights = sample_exact(rbm, 60, rng=rng), rng.integers(1, 4, 60).astype(float)
        result = log_likelihood(rbm, data, sample_weight=weights)
        means.append(result.value)
        errors.append(result.points_error)
    # The scatter of 400 means has a relative error of 3.5 %; a planted 1/sqrt(sum of weights) is 30 % off.
    assert np.std(means, ddof=1) == pytest.approx(np.mean(errors), rel=0.15)
    equal = log_likelihood(rbm, data, sample_weight=np.full(60, 3.0))
    assert equal.points_error == pytest.approx(log_likelihood(rbm, data).points_error)
    for weights in ([1.0], [1.0, 1e-12], [1e300, 1.0, 1.0]):  # worth a single point, which has no error
        alone = log_likelihood(rbm, data[: len(weights)], sample_weight=weights)
        assert alone.points_error == np.inf


def test_likelihood_in_blocks_is_the_likelihood(monkeypatch):
    rbm = draw_machine(5, 3)
    data = draw_data(rbm, 50)
    whole = float(log_likelihood(rbm, data))
    monkeypatch.setattr("paramagnet._log_weights._BLOCK_ELEMENTS", 21)
    monkeypatch.setattr("paramagnet._log_weights._UNITS_IN_PRODUCT", 2)
    assert float(log_likelihood(rbm, data)) == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1.0, 1e4])
def test_likelihood_uses_the_free_energy_of_many_units_and_huge_fields(visible, hidden, scale):
    rbm = draw_machine(6, 1500, visible, hidden, scale=scale)
    data = draw_data(rbm, 10)
    value = float(log_likelihood(rbm, data, log_partition=0.0))
    assert value == pytest.approx(-np.mean(rbm.free_energy(data)), rel=1e-13)


BAD_DATA = [
    (
        np.array([[0, 1, 1], [1, 0, 0]]),
        r"spin units, -1 and 1; found 0, 1\. Convert bits .* `2\.0 \* data - 1`",
    ),
    (np.array([[0.5, 1, 1]]), r"found 0\.5, 1\. Binarize them first, for example `np\.where"),
    (np.arange(30.0).reshape(10, 3), r"found 0, 1, 2, 3, 4, \.\.\."),
    (np.array([[1, 1, -1], [1, np.nan, 1]]), "must not hold NaN, found 1, the first in row 1, column 1"),
    (np.array([[1, 1, np.inf]]), "found 1, inf"),
    (np.ones((2, 4)), r"must have 3 columns, one per visible unit, got shape \(2, 4\)"),
    (np.ones((0, 3)), "must hold at least one point"),
    (np.ones(3), r"must have two dimensions .*got shape \(3,\).*`data\.reshape\(1, -1\)`"),
    (np.ones((2, 2, 3)), r"must have two dimensions .*got shape \(2, 2, 3\)"),
    (np.array([["1", "1", "1"]]), "must be an array of real numbers, got dtype <U1"),
    (np.ones((2, 3), dtype=complex), "must be an array of real numbers, got dtype complex"),
    (np.full((2, 3), "1", dtype=object), "must be an array of real numbers, got '1' among its elements"),
]


@pytest.mark.parametrize(("data", "words"), BAD_DATA)
def test_bad_data_are_refused_in_words(data, words):
    rbm = draw_machine(3, 2)
    for function in (log_likelihood, exact_gradient, lambda *both: train(*both, epochs=1)):
        with pytest.raises(ValueError, match=f"`data` .*{words}"):
            function(rbm, data)


def test_bad_validation_data_are_called_by_their_name():
    with pytest.raises(ValueError, match=r"`validation` must hold .* `2\.0 \* validation - 1`"):
        train(draw_machine(3, 2), np.ones((2, 3)), epochs=1, validation=np.zeros((2, 3)))


def test_spins_given_to_bits_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"bit units, 0 and 1; found -1, 1\. .* `\(data \+ 1\) / 2`"):
        log_likelihood(draw_machine(3, 2, "bit"), [[-1, 1, 1]])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float32, bool])
def test_integer_and_boolean_data_are_accepted(dtype):
    rbm = draw_machine(3, 2, "bit", "bit")
    data = np.array([[0, 1, 1], [1, 0, 1]])
    assert log_likelihood(rbm, data.astype(dtype)) == log_likelihood(rbm, data.astype(float))


# Exact samples


def chi_squared(rbm, states):
    """Of the counts of visible states against their exact probabilities."""
    all_v = np.array(list(itertools.product(rbm.visible.levels, repeat=rbm.n_visible)))
    expected = len(states) * np.exp(-rbm.free_energy(all_v) - log_partition(rbm))
    powers = 2 ** np.arange(rbm.n_visible)[::-1]
    counts = np.bincount((states == rbm.visible.high) @ powers, minlength=len(all_v))
    return float(np.sum((counts - expected) ** 2 / expected)), len(all_v) - 1


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(5, 3), (3, 5), (1, 1)])
def test_exact_samples_follow_the_distribution(n_visible, n_hidden, visible, hidden):
    from scipy.stats import chi2

    rbm = draw_machine(n_visible, n_hidden, visible, hidden)
    states = sample_exact(rbm, 20_000, rng=7)
    assert states.shape == (20_000, n_visible)
    value, degrees = chi_squared(rbm, states)
    assert chi2.sf(value, degrees) > 1e-6
    if n_hidden > 1 and n_visible > 1:  # the test sees a forgotten hidden bias
        wrong = RBM(rbm.weights, rbm.visible_bias, 0.0, visible, hidden)
        assert chi2.sf(chi_squared(rbm, sample_exact(wrong, 20_000, rng=7))[0], degrees) < 1e-6


def test_exact_samples_are_seeded():
    rbm = draw_machine(6, 4)
    assert np.array_equal(sample_exact(rbm, 50, rng=1), sample_exact(rbm, 50, rng=1))
    assert not np.array_equal(sample_exact(rbm, 50, rng=1), sample_exact(rbm, 50, rng=2))
    with pytest.raises(ValueError, match="`n_samples` must be a positive integer, got 0"):
        sample_exact(rbm, 0)


# Threads and processes


def test_two_python_threads_at_once():
    rbm = draw_machine(13, 12, scale=0.3)
    expected = log_partition(rbm)
    results = []

    def work():
        results.extend([exact_moments(rbm, n_threads=2).log_partition for _ in range(5)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [pytest.approx(expected, abs=1e-12)] * 10
    assert len(set(results)) == 1


def _child(queue, rbm, data):
    queue.put((log_partition(rbm, n_threads=2), train(rbm, data, epochs=3).rbm.weights))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's, where other tests have imported it
def test_a_forked_child_works():
    rbm = draw_machine(13, 12, scale=0.3)
    data = draw_data(rbm, 20)
    expected = log_partition(rbm, n_threads=2), train(rbm, data, epochs=3).rbm.weights
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue, rbm, data))
    child.start()
    value, weights = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    assert value == expected[0]
    assert np.array_equal(weights, expected[1])


# The paper's toy tables


def read_paper(name):
    path = resources.files("paramagnet.reproduction") / "paper" / name
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reproduce(hidden, n_hidden, n_trials, gains, epochs, seed=0):
    """Our log-likelihoods and the paper's for c = 0, with the paper's std: arrays (gain, epoch)."""
    data = load_dataset("toy").data
    n_visible, alpha = data.shape[1], n_hidden / data.shape[1]
    (beta,) = (
        float(row["beta_max"])
        for row in read_paper("beta_max.csv")
        if row["hidden"] == hidden and float(row["alpha"]) == alpha and float(row["c"]) == 0
    )
    ours, paper, std = (np.zeros((len(gains), len(epochs))) for _ in range(3))
    for g, gain in enumerate(gains):
        for trial in range(n_trials):
            rng = np.random.default_rng([seed, g, trial])
            scale = gain * beta / math.sqrt(n_visible + n_hidden)
            rbm = RBM(scale * rng.normal(size=(n_visible, n_hidden)), 0.0, 0.0, "spin", hidden)
            result = train(
                rbm, data, epochs=epochs[-1], gradient=Exact(), optimizer=Adam(0.01), evaluate=epochs
            )
            ours[g] += result.history.log_likelihood / n_trials
        for e, epoch in enumerate(epochs):
            (row,) = (
                row
                for row in read_paper("log_likelihoods.csv")
                if row["table"] == ("toy_ising_c=0" if hidden == "spin" else "toy_binary_c=0")
                and int(row["m"]) == n_hidden
                and float(row["beta_over_beta_max"]) == gain
                and int(row["epoch"]) == epoch
            )
            paper[g, e], std[g, e] = float(row["log_likelihood"]), float(row["std"])
    return ours, paper, std


def assert_one_offset(ours, paper, std, n_trials, common):
    """Cells differ from the paper's by one offset, that of another draw of the data.

    The tolerance of a cell has the rounding of print, five standard errors of our mean, and what the offset
    itself may vary between cells: ``common``.
    """
    offsets = ours - paper
    offset = np.average(offsets, weights=1.0 / (std**2 + 0.01**2))
    assert abs(offset) < 0.6  # four times the spread between draws of the data
    tolerance = 0.005 + 5.0 * std / math.sqrt(n_trials) + common
    assert (np.abs(offsets - offset) < tolerance).all(), np.round(offsets - offset, 3)


@pytest.mark.parametrize(
    ("hidden", "n_hidden", "n_trials"),
    [("spin", 10, 5), pytest.param("bit", 20, 5, marks=pytest.mark.slow)],
)
def test_toy_tables_agree_with_the_paper_up_to_one_offset(hidden, n_hidden, n_trials):
    ours, paper, std = reproduce(hidden, n_hidden, n_trials, (0.25, 0.5, 1.0, 2.0, 4.0), (50, 100, 200))
    assert_one_offset(ours, paper, std, n_trials, common=0.03)


def test_a_small_machine_on_the_toy_data_of_bits_agrees_with_the_paper():
    """Bit hidden units fast: ten of them, at the paper's best scales."""
    ours, paper, std = reproduce("bit", 10, 4, (0.25, 0.5, 1.0), (50, 100, 200))
    assert_one_offset(ours, paper, std, 4, common=0.03)
