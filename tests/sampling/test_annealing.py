"""Annealed importance sampling against the exact ln Z, on machines that were trained."""

import functools
import itertools
import math
import os

import numpy as np
import pytest

import paramagnet
from paramagnet.data.datasets import load_dataset
from paramagnet.estimates import Estimate
from paramagnet.exact.sums import log_partition, sample_exact
from paramagnet.initializers import initialize
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.optimizers import Adam
from paramagnet.learning.training import train
from paramagnet.rbm import RBM
from paramagnet.sampling import annealing
from paramagnet.sampling.annealing import estimate_log_partition, mean_weight

COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))


def patterns(visible="spin", n_points=400, n_visible=12):
    """Four patterns with a tenth of their units flipped: data with several modes."""
    rng = np.random.default_rng(0)
    points = rng.choice([-1.0, 1.0], size=(4, n_visible))[rng.integers(4, size=n_points)]
    points *= rng.choice([1.0, -1.0], p=[0.9, 0.1], size=points.shape)
    return points if visible == "spin" else (points + 1.0) / 2.0


@functools.cache
def trained(visible="spin", hidden="bit", n_hidden=8):
    rng = np.random.default_rng(1)
    start = RBM(0.3 * rng.normal(size=(12, n_hidden)), 0.0, 0.0, visible, hidden)
    rbm = train(start, patterns(visible), epochs=300, optimizer=Adam(0.03)).rbm
    return rbm, log_partition(rbm)


def deviation(estimate, exact):
    return (estimate.value - exact) / estimate.error


# Against the exact value


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_estimates_agree_with_enumeration(visible, hidden, method, marginalize):
    rbm, exact = trained(visible, hidden)
    for start in ("uniform", patterns(visible).mean(axis=0)):
        estimate = estimate_log_partition(
            rbm, method=method, n_temperatures=50, marginalize=marginalize, start=start, rng=1
        )
        assert estimate.error < 0.06
        assert estimate.trusted
        assert abs(deviation(estimate, exact)) < 4.0


@pytest.mark.skipif("PARAMAGNET_DATA" not in os.environ, reason="PARAMAGNET_DATA is not set")
@pytest.mark.parametrize("hidden", ["bit", "spin"])
def test_estimates_agree_with_enumeration_after_training_on_dry_beans(hidden):
    data = load_dataset("drybean").data
    start = initialize(16, 16, hidden=hidden, rng=0)
    rbm = train(start, data, epochs=20, batch_size=500, optimizer=Adam(0.01), evaluate=[], rng=0).rbm
    exact = log_partition(rbm)
    for method in ("mais", "ais", "reverse-ais"):
        estimate = estimate_log_partition(rbm, method=method, n_temperatures=400, rng=1)
        assert estimate.trusted
        assert estimate.error < 0.1
        assert abs(deviation(estimate, exact)) < 4.0


def slow_mais(rbm, n_samples, n_temperatures, rng, move_first=False):
    """mAIS by the book, in float64; or with the order reversed, a known mistake."""
    v = rng.choice(rbm.visible.levels, size=(n_samples, rbm.n_visible))
    total = np.zeros(n_samples)

    def tempered(t):
        return RBM(t * rbm.weights, t * rbm.visible_bias, t * rbm.hidden_bias, rbm.visible, rbm.hidden)

    def move(v, t):
        return tempered(t).sample_v_given_h(tempered(t).sample_h_given_v(v, rng=rng), rng=rng)

    for k in range(n_temperatures):
        now, then = k / n_temperatures, (k + 1) / n_temperatures
        v = move(v, then) if move_first else v
        total += tempered(now).free_energy(v) - tempered(then).free_energy(v)
        v = v if move_first else move(v, then)
    log_start = (rbm.n_visible + rbm.n_hidden) * math.log(2.0)
    estimate = mean_weight(total)
    return Estimate(log_start + estimate.value, estimate.error, estimate.n_effective)


def test_moving_before_weighing_would_be_seen():
    rbm, exact = trained()
    rng = np.random.default_rng(2)
    assert abs(deviation(slow_mais(rbm, 2000, 20, rng), exact)) < 4.0
    assert deviation(slow_mais(rbm, 2000, 20, rng, move_first=True), exact) > 8.0
    assert abs(deviation(estimate_log_partition(rbm, n_samples=2000, n_temperatures=20, rng=2), exact)) < 4.0


@pytest.mark.parametrize("method", ["mais", "ais"])
def test_weights_are_unbiased_even_with_three_temperatures(method):
    rbm, exact = trained()
    estimate = estimate_log_partition(rbm, method=method, n_samples=400_000, n_temperatures=3, rng=4)
    assert estimate.error < 0.05
    assert abs(deviation(estimate, exact)) < 4.0


def test_forward_and_reverse_enclose_the_truth():
    """With few samples the logarithm of the mean is biased, to either side."""
    rbm, exact = trained()
    runs = {
        method: np.array(
            [
                estimate_log_partition(rbm, method=method, n_samples=4, n_temperatures=8, rng=seed).value
                for seed in range(300)
            ]
        )
        for method in ("mais", "ais", "reverse-ais")
    }
    for method, values in runs.items():
        bias, error = values.mean() - exact, values.std() / math.sqrt(values.size)
        if method == "reverse-ais":
            assert bias > 3.0 * error
        else:
            assert bias < -3.0 * error


def coverage(method, n_seeds, **options):
    rbm, exact = trained()
    estimates = [estimate_log_partition(rbm, method=method, rng=seed, **options) for seed in range(n_seeds)]
    return np.mean([abs(deviation(estimate, exact)) < 1.96 for estimate in estimates])


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_intervals_cover_the_truth(method):
    assert 0.85 <= coverage(method, 60, n_samples=500, n_temperatures=30) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_intervals_cover_the_truth_in_200_seeds(method, marginalize):
    assert 0.90 <= coverage(method, 200, n_samples=1000, n_temperatures=100, marginalize=marginalize) <= 0.99


def test_marginal_weights_scatter_less_than_joint_ones():
    rbm, _ = trained()
    marginal, joint = (
        estimate_log_partition(rbm, method=m, n_temperatures=50, rng=5) for m in ("mais", "ais")
    )
    assert marginal.error < 0.8 * joint.error


def test_errors_shrink_with_temperatures_and_samples():
    rbm, _ = trained()
    errors = [estimate_log_partition(rbm, n_temperatures=k, rng=6).error for k in (10, 40, 160)]
    assert errors[0] > errors[1] > errors[2]
    many = estimate_log_partition(rbm, n_samples=16_000, n_temperatures=40, rng=6)
    assert many.error == pytest.approx(errors[1] / 4.0, rel=0.3)


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_zero_weights_are_exact(visible, hidden, method):
    """Where the independent model is the machine itself, or the summed layer is all there is."""
    rng = np.random.default_rng(7)
    nothing, c = np.zeros((5, 3)), rng.normal(size=3)
    plain = RBM(nothing, 0.0, 0.0, visible, hidden)
    assert_exact(estimate_log_partition(plain, method=method, n_temperatures=7, rng=0), plain)
    biased = RBM(nothing, rng.normal(size=5), 0.0, visible, hidden)
    means = biased.mean_v_given_h(np.zeros(3))
    assert_exact(estimate_log_partition(biased, method=method, n_temperatures=7, start=means, rng=0), biased)
    if method != "ais":
        hidden_only = RBM(nothing, 0.0, c, visible, hidden)
        assert_exact(estimate_log_partition(hidden_only, method=method, n_temperatures=7, rng=0), hidden_only)


def assert_exact(estimate, rbm):
    assert estimate.value == pytest.approx(log_partition(rbm), abs=2e-6)
    assert estimate.error < 1e-6
    assert estimate.n_effective == pytest.approx(1000.0)


def test_relabelling_changes_nothing_but_the_noise():
    rbm, exact = trained()
    rng = np.random.default_rng(8)
    rows, columns = rng.permutation(12), rng.permutation(8)
    permuted = RBM(rbm.weights[rows][:, columns], rbm.visible_bias[rows], rbm.hidden_bias[columns])
    exchanged = RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias, rbm.hidden, rbm.visible)
    spins, constant = rbm.change_units(hidden="spin")
    for machine, truth in ((permuted, exact), (exchanged, exact), (spins, exact + constant)):
        assert abs(deviation(estimate_log_partition(machine, n_temperatures=100, rng=9), truth)) < 4.0


def test_schedule_may_be_given():
    rbm, exact = trained()
    for schedule in ("linear", np.linspace(0.0, 1.0, 61), np.linspace(0.0, 1.0, 61) ** 1.5):
        estimate = estimate_log_partition(rbm, schedule=schedule, n_temperatures=60, rng=10)
        assert abs(deviation(estimate, exact)) < 4.0
    same = [
        estimate_log_partition(rbm, schedule=s, n_temperatures=60, rng=1)
        for s in ("linear", np.linspace(0, 1, 61))
    ]
    assert same[0] == same[1]


# The same, bit for bit


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_results_are_the_same_for_any_number_of_threads(method):
    rbm, _ = trained()
    options = {"method": method, "n_temperatures": 20, "n_samples": 700}
    runs = [estimate_log_partition(rbm, rng=1, n_threads=n, **options) for n in (1, 2, 3, None)]
    assert runs[0] == runs[1] == runs[2] == runs[3]
    assert estimate_log_partition(rbm, rng=2, **options) != runs[0]


# Weights to estimates


def test_mean_weight_is_the_formula():
    log_weights = np.random.default_rng(11).normal(size=50)
    w = [math.exp(x) for x in log_weights]
    mean = sum(w) / 50
    spread = math.sqrt(sum((x / mean - 1.0) ** 2 for x in w) / 49)
    estimate = mean_weight(log_weights + 1e4)  # far beyond what exp can hold
    assert estimate.value - 1e4 == pytest.approx(math.log(mean), abs=1e-10)
    assert estimate.error == pytest.approx(spread / math.sqrt(50), rel=1e-9)
    assert estimate.n_effective == pytest.approx(sum(w) ** 2 / sum(x * x for x in w), rel=1e-9)


def test_collapsed_weights_are_not_trusted():
    one = mean_weight(np.array([3.0]))
    assert (one.value, one.error, one.trusted) == (3.0, math.inf, False)
    log_weights = np.zeros(1000)
    log_weights[5] = 500.0
    collapsed = mean_weight(log_weights)
    assert collapsed.n_effective == pytest.approx(1.0)
    assert collapsed.error == pytest.approx(1.0)
    assert "do not trust: 1 effective samples" in repr(collapsed)
    assert f"{collapsed:.1f}".endswith(" +- 1.0 (do not trust: 1 effective samples)")
    assert f"{one:.1f}" == "3.0 +- inf (do not trust: 1 effective samples)"
    assert repr(Estimate(1.0)) == f"{Estimate(1.0)}" == "1 +- 0"
    assert f"{Estimate(-2.5, 0.25, 60.0):.2f}" == "-2.50 +- 0.25"
    assert repr(Estimate(22.15513321, 0.00636)) == "22.1551 +- 0.0064"  # as many digits as the error allows
    assert repr(Estimate(22.15513321, 3e-9)) == "22.155133 +- 3e-09"
    assert repr(Estimate(-1234.56, 31.4)) == "-1235 +- 31"
    assert Estimate(1.0).trusted


def test_log_likelihood_inherits_the_error():
    rbm, exact = trained()
    estimate = estimate_log_partition(rbm, n_temperatures=50, rng=12)
    ours = log_likelihood(rbm, patterns(), log_partition=estimate)
    assert (ours.error, ours.n_effective) == (estimate.error, estimate.n_effective)
    assert ours.value - float(log_likelihood(rbm, patterns())) == pytest.approx(exact - estimate.value)
    assert paramagnet.estimate_log_partition is estimate_log_partition


# Numerical safety


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_huge_parameters_stay_finite_and_are_flagged(visible, hidden, method, scale):
    rng = np.random.default_rng(13)
    sizes = ((10, 8), 10, 8)
    rbm = RBM(*(scale * rng.normal(size=size) for size in sizes), visible, hidden)
    estimate = estimate_log_partition(rbm, method=method, n_temperatures=10, n_samples=100, rng=0)
    assert math.isfinite(estimate.value)
    assert method == "reverse-ais" or not estimate.trusted
    exact = log_partition(rbm)
    if method == "reverse-ais":
        assert estimate.value > exact - 6.0 * estimate.error
    else:
        assert estimate.value < exact + 6.0


def test_strong_biases_do_not_overflow():
    rbm = RBM(np.zeros((2, 3)), 0.0, [200.0, -200.0, 90.0], "bit", "bit")
    assert estimate_log_partition(rbm, n_temperatures=5, rng=0).value == pytest.approx(log_partition(rbm))


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (1, 6), (6, 1)])
def test_single_units_and_single_samples(n_visible, n_hidden):
    rng = np.random.default_rng(14)
    rbm = RBM(*(rng.normal(size=size) for size in ((n_visible, n_hidden), n_visible, n_hidden)))
    estimate = estimate_log_partition(rbm, n_temperatures=50, rng=0)
    assert abs(deviation(estimate, log_partition(rbm))) < 4.0
    single = estimate_log_partition(rbm, n_samples=1, n_temperatures=50, rng=0)
    assert single.error == math.inf
    assert not single.trusted


# Arguments


def test_reverse_starts_from_given_samples():
    rbm, exact = trained()
    samples = sample_exact(rbm, 800, rng=3)
    estimate = estimate_log_partition(rbm, method="reverse-ais", samples=samples, n_temperatures=50, rng=0)
    assert abs(deviation(estimate, exact)) < 4.0
    wrong = estimate_log_partition(
        rbm, method="reverse-ais", samples=-samples, n_temperatures=50, rng=0
    )  # not from the model: no bound, no estimate
    assert abs(deviation(wrong, exact)) > 4.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "raise"}, "`method` must be 'mais', 'ais' or 'reverse-ais', got 'raise'"),
        ({"marginalize": "both"}, "`marginalize` must be 'auto', 'hidden' or 'visible', got 'both'"),
        ({"device": "gpu"}, "`device` must be 'cpu', 'torch:cpu', 'cuda', .* or 'mps', got 'gpu'"),
        ({"n_samples": 0}, "`n_samples` must be a positive integer"),
        ({"n_temperatures": 0}, "`n_temperatures` must be a positive integer"),
        ({"n_threads": 0}, "`n_threads` must be a positive integer"),
        ({"schedule": "cosine"}, "`schedule` must be 'linear' or an array of temperatures, got 'cosine'"),
        ({"schedule": [0.0, 0.5]}, "`schedule` must rise from 0 to 1, both included, got .* from 0 to 0.5"),
        ({"schedule": [0.0, 0.6, 0.5, 1.0]}, "`schedule` must rise from 0 to 1"),
        ({"schedule": [1.0]}, "`schedule` must be a sequence of at least two"),
        ({"start": "data"}, "`start` must be 'uniform' or means of the visible units, got 'data'"),
        ({"start": np.zeros(3)}, r"`start` must hold 12 means.*`data.mean\(axis=0\)`"),
        ({"start": np.full(12, 2.0)}, "`start` must hold means between -1 and 1, got 2 to 2"),
        ({"samples": np.ones((1, 12))}, "`samples` must be None for the method 'mais'"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        estimate_log_partition(trained()[0], **options)


def test_reverse_needs_samples_where_exact_ones_are_too_dear():
    rbm = RBM(np.zeros((50, 50)), 0.0, 0.0)
    with pytest.raises(ValueError, match=r"`samples` must be given for 'reverse-ais'.*as from `sample`"):
        estimate_log_partition(rbm, method="reverse-ais")
    estimate = estimate_log_partition(rbm, method="reverse-ais", samples=np.ones((60, 50)), n_temperatures=3)
    assert estimate.value == pytest.approx(100 * math.log(2.0))
    assert annealing.METHODS[0] == "mais"
