"""The likelihood followed during training: against the exact value, and errors that tell the truth."""

import functools
import itertools
import math

import numpy as np
import pytest

import paramagnet
from paramagnet.data.datasets import load_dataset
from paramagnet.exact.sums import exact_moments, log_partition
from paramagnet.initializers import initialize
from paramagnet.learning import trajectory as module
from paramagnet.learning.gradients.contrastive import CD
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact
from paramagnet.learning.likelihood import free_energies, log_likelihood
from paramagnet.learning.optimizers import SGD, Adam
from paramagnet.learning.training import training_steps
from paramagnet.learning.trajectory import Trajectory, log_likelihood_trajectory
from paramagnet.rbm import RBM
from paramagnet.sampling.annealing import anneal_chains, mean_weight

COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))


SMALL = PCD(n_chains=200, n_steps=10, n_relax=50)


@functools.cache
def run(gradient=SMALL, rate=0.02, epochs=60, sizes=(10, 8)):
    """Data of two patterns, and the states of a run on them."""
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(2, sizes[0]))[rng.integers(2, size=100)]
    data *= rng.choice([1.0, -1.0], p=[0.9, 0.1], size=data.shape)
    start = initialize(*sizes, rng=1)
    options = {"epochs": epochs, "gradient": gradient, "optimizer": Adam(rate), "evaluate": [], "rng": 2}
    return data, list(training_steps(start, data, **options))


def exact_curve(states, data):
    return np.array([float(log_likelihood(state.rbm, data)) for state in states])


# Against the exact value


def test_it_follows_the_exact_likelihood():
    data, states = run()
    ours = log_likelihood_trajectory(states, data, validation=data[:7], rng=0, restart=None)
    exact = exact_curve(states, data)
    assert np.array_equal(ours.update, np.arange(61))
    assert ours.log_likelihood[0] == pytest.approx(exact[0], abs=1e-9)  # an exact start
    assert ours.error[0] == pytest.approx(0.0, abs=1e-9)
    assert exact[-1] > exact[0] + 2.0
    assert np.all(np.abs(ours.log_likelihood - exact)[1:] < 4.0 * ours.error[1:])
    assert np.all(ours.error < 0.1)
    assert ours.trusted.all()
    np.testing.assert_allclose(ours.log_partition, [log_partition(s.rbm) for s in states], atol=0.3)
    np.testing.assert_allclose(ours.validation - ours.log_likelihood, exact_curve(states, data[:7]) - exact)
    assert ours.state is states[-1]
    assert paramagnet.learning.log_likelihood_trajectory is log_likelihood_trajectory


@pytest.mark.parametrize("gradient", [Exact(), CD()], ids=repr)
def test_it_follows_any_kind_of_training(gradient):
    data, states = run(gradient)
    ours = log_likelihood_trajectory(states, data, every=20, n_chains=300, rng=0, restart=None)
    assert np.array_equal(ours.update, [0, 20, 40, 60])
    assert np.all(np.abs(ours.log_likelihood - exact_curve(states[::20], data)) < 4.0 * ours.error + 1e-9)


def coverage(n_seeds, states, data, every=1, **options):
    """Shares of 95 % intervals that cover the truth, per row; and the mean of ``Z / exact Z``."""
    exact, covered, ratios = exact_curve(states, data)[::every], [], []
    for seed in range(n_seeds):
        ours = log_likelihood_trajectory(states, data, every=every, rng=seed, restart=None, **options)
        covered.append(np.abs(ours.log_likelihood - exact) < 1.96 * ours.error)
        ratios.append(np.exp(exact - ours.log_likelihood))
    return np.mean(covered, axis=0), np.array(ratios)


def test_intervals_cover_the_truth_and_z_is_unbiased():
    """Fast updates, so that chains are resampled; few sweeps, so that they lag behind."""
    data, states = run(Exact(), rate=0.1, epochs=12)
    covered, ratios = coverage(40, states, data, every=6, n_chains=200, n_steps=1)
    assert np.all(covered[1:] >= 0.85)
    error = ratios.std(axis=0, ddof=1) / math.sqrt(40)
    assert np.all(np.abs(ratios.mean(axis=0) - 1.0)[1:] < 4.0 * error[1:])


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_intervals_cover_the_truth_in_200_seeds(rate, n_steps):
    data, states = run(Exact(), rate=rate, epochs=40)
    covered, ratios = coverage(200, states, data, every=20, n_chains=300, n_steps=n_steps)
    assert np.all(covered[1:] >= 0.90)  # often more: chains that forget are more independent than families
    assert np.all(np.abs(ratios.mean(axis=0) - 1.0)[1:] < 4.0 * ratios.std(axis=0)[1:] / math.sqrt(200))


def test_moving_before_weighing_would_be_seen(monkeypatch):
    data, states = run(Exact(), rate=0.1, epochs=30)
    real = module._Population.reweighted

    def move_first(self, rbm):
        chains = module.run_sweeps(module.layers_of(rbm), self.chains, 5)
        return real(module.replace(self, chains=chains), rbm)

    monkeypatch.setattr(module._Population, "reweighted", move_first)
    ours = log_likelihood_trajectory(states, data, rng=0, n_steps=1, restart=None)
    assert abs(ours.log_likelihood[-1] - exact_curve(states[-1:], data)[0]) > 5.0 * ours.error[-1]


def test_chains_that_made_the_update_would_be_biased():
    """Why there are chains of its own: weights of those of training are too small, in every run."""
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(50, 10))
    gradient, deviations = PCD(n_chains=50, n_steps=10, n_relax=50), []
    for seed in range(3):
        steps = training_steps(
            initialize(10, 20, rng=seed),
            data,
            epochs=60,
            gradient=gradient,
            optimizer=SGD(0.1),
            evaluate=[],
            rng=seed,
        )
        states = list(steps)
        log_weights = np.zeros(50)
        for last, state in itertools.pairwise(states):
            v = state.chains.visible.astype(float)
            log_weights += free_energies(last.rbm, v) - free_energies(state.rbm, v)
        exact = log_partition(states[-1].rbm) - log_partition(states[0].rbm)
        deviations.append(mean_weight(log_weights).value - exact)
        own = log_likelihood_trajectory(states, data, every=60, n_steps=1, rng=seed, restart=None)
        assert abs(own.log_partition[-1] - log_partition(states[-1].rbm)) < 4.0 * own.error[-1]
    assert max(deviations) < -0.2


# Starts


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_annealed_chains_stand_for_the_machine(visible, hidden):
    rng = np.random.default_rng(3)
    rbm = RBM(*(0.7 * rng.normal(size=size) for size in ((6, 4), 6, 4)), visible, hidden)
    exact = exact_moments(rbm)
    states, log_weights = anneal_chains(rbm, exact.visible, 4000, 50, rng, None)
    estimate = mean_weight(log_weights)
    assert abs(estimate.value - exact.log_partition) < 4.0 * estimate.error
    weights = np.exp(log_weights - estimate.value) / 4000
    np.testing.assert_allclose(weights @ states, exact.visible, atol=0.1)
    plain = np.abs(states.mean(axis=0) - exact.visible).max()
    assert np.abs(weights @ states - exact.visible).max() < 0.06 + plain


@functools.cache
def large_run():
    """Too large for an exact start; 14 hidden units can be enumerated all the same."""
    data = np.random.default_rng(4).choice([-1.0, 1.0], p=[0.2, 0.8], size=(60, 30))
    start = initialize(30, 14, rng=5)
    options = {"epochs": 20, "gradient": Exact(), "optimizer": Adam(0.02), "evaluate": [], "rng": 0}
    return data, list(training_steps(start, data, **options))


def test_start_from_mais(monkeypatch):
    monkeypatch.setattr(module, "LogZ", lambda: paramagnet.LogZ(seconds=0.0))
    data, states = large_run()
    ours = log_likelihood_trajectory(states, data, n_temperatures=100, rng=1, every=5)
    assert ours.error[0] > 0.0
    assert np.all(np.abs(ours.log_likelihood - exact_curve(states[::5], data)) < 4.0 * ours.error)
    assert np.all(ours.n_starts == 1)


def test_new_starts_are_made_where_too_few_chains_are_left():
    data, states = run(Exact(), rate=0.1, epochs=30)
    few = {"n_chains": 60, "n_steps": 1, "rng": 0}
    without = log_likelihood_trajectory(states, data, restart=None, **few)
    ours = log_likelihood_trajectory(states, data, restart=4, **few)
    assert np.all(without.n_starts == 1)
    assert not without.trusted[-1]
    assert ours.n_starts[-1] > 1
    fresh = np.flatnonzero(np.diff(ours.n_starts)) + 1
    np.testing.assert_allclose(ours.log_likelihood[fresh], exact_curve(states, data)[fresh])
    assert np.all(np.diff(ours.update[fresh]) >= 4)


# Errors


def test_families_are_what_errors_are_made_of():
    log_weights = np.random.default_rng(6).normal(size=12)
    w = np.exp(log_weights)
    assert mean_weight(log_weights, np.arange(12)) == mean_weight(log_weights)
    families = np.repeat([0, 3, 7], 4)
    sums = np.zeros(12)
    sums[[0, 3, 7]] = w.reshape(3, 4).sum(axis=1)
    estimate = mean_weight(log_weights, families)
    assert estimate.value == pytest.approx(math.log(w.mean()))
    assert estimate.error == pytest.approx(sums.std(ddof=1) / sums.mean() / math.sqrt(12))
    assert estimate.n_effective == pytest.approx(sums.sum() ** 2 / (sums**2).sum())
    assert not mean_weight(log_weights, np.zeros(12, int)).trusted


def test_resampling_keeps_the_mean_weight_and_follows_the_weights():
    _, states = run()
    rng = np.random.default_rng(7)
    population = module._Start(np.zeros(10), 1000, 10, None, rng).population(states[0].rbm)
    assert population.resampled(rng) is population
    log_weights = np.repeat([0.0, math.log(9.0)], [900, 100]) + 1000.0
    chosen = module.replace(population, log_weights=log_weights).resampled(rng)
    assert np.all(chosen.log_weights == pytest.approx(mean_weight(log_weights).value))
    counts = np.bincount(chosen.families, minlength=1000)
    assert np.all((counts[900:] == 5) & (counts[:900].max() <= 1))
    assert np.array_equal(chosen.chains.visible, population.chains.visible[chosen.families])


def test_a_jump_too_large_is_not_trusted():
    data, states = run(Exact(), epochs=60)
    ours = log_likelihood_trajectory([states[0], states[-1]], data, rng=0, n_steps=1, restart=None)
    assert list(ours.update) == [0, 60]
    assert "do not trust" in repr(ours[1])
    assert list(ours.trusted) == [True, False]


def test_what_was_lost_is_not_found_again():
    data, states = run(Exact(), rate=0.1, epochs=30)
    there_and_back = [*states[:20], *states[19::-1]]  # the weights of the way out are undone on the way back
    ours = log_likelihood_trajectory(there_and_back, data, n_chains=300, n_steps=1, rng=0, restart=None)
    assert np.all(np.diff(ours.n_effective) <= 0.0)
    assert np.all(np.diff(ours.error) >= 0.0)
    assert ours.n_effective[-1] < 150.0


# The same, bit for bit; edges


def test_results_repeat_with_the_seed_for_any_number_of_threads():
    data, states = run()
    runs = [
        log_likelihood_trajectory(states[:8], data, rng=seed, n_threads=n).log_partition
        for seed, n in ((1, 1), (1, 2), (1, None), (2, 1))
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])
    assert not np.array_equal(runs[0], runs[3])


def test_the_last_state_is_always_recorded():
    data, states = run()
    ours = log_likelihood_trajectory(iter(states[:12]), data, every=5, rng=0)
    assert list(ours.update) == [0, 5, 10, 11]
    assert list(ours.epoch) == [0, 5, 10, 11]
    assert len(ours) == 4
    assert isinstance(ours, Trajectory)
    assert repr(ours).startswith("Trajectory(4 rows up to update 11: ")
    later = log_likelihood_trajectory(states[7:9], data, every=5, rng=0)  # a run that goes on
    assert list(later.update) == [7, 8]


@pytest.mark.parametrize(("sizes", "n_chains"), [((1, 1), 100), ((1, 5), 100), ((5, 1), 1)])
def test_single_units_and_a_single_chain(sizes, n_chains):
    data, states = run(PCD(1, 1, 0), epochs=4, sizes=sizes)
    ours = log_likelihood_trajectory(states, data, n_chains=n_chains, rng=0)
    assert np.isfinite(ours.log_likelihood).all()
    assert ours.trusted.all() == (n_chains > 1)
    assert np.isinf(ours.error).all() == (n_chains == 1)


def test_huge_weights_stay_finite_and_are_flagged():
    data, _ = run()
    start = RBM(100.0 * np.random.default_rng(8).normal(size=(10, 8)), 0.0, 0.0)
    options = {"epochs": 5, "gradient": PCD(50, 2, 5), "optimizer": SGD(50.0), "evaluate": [], "rng": 0}
    ours = log_likelihood_trajectory(training_steps(start, data, **options), data, n_chains=100, rng=0)
    assert np.isfinite(ours.log_likelihood).all()
    assert not ours.trusted[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0}, "`every` must be a positive integer, got 0"),
        ({"n_chains": 0}, "`n_chains` must be a positive integer, got 0"),
        ({"n_steps": 0}, "`n_steps` must be a positive integer, got 0"),
        ({"n_temperatures": 0}, "`n_temperatures` must be a positive integer"),
        ({"restart": 0}, "`restart` must be a positive integer"),
        ({"n_threads": 0}, "`n_threads` must be a positive integer"),
        ({"data": np.ones((3, 4))}, "`data`"),
        ({"validation": np.zeros((3, 10))}, "`validation` must hold the values of spin units"),
        ({"states": []}, "`states` must have at least one state, got none"),
        (
            {"states": [RBM(np.zeros((3, 2)), 0.0, 0.0)]},
            "`states` must be those of `training_steps`, got a RBM",
        ),
    ],
)
def test_what_is_refused(options, words):
    data, states = run()
    with pytest.raises(ValueError, match=words):
        log_likelihood_trajectory(**({"states": states[:2], "data": data} | options))


@pytest.mark.parametrize("hidden", ["bit", "spin"])
@pytest.mark.slow
def test_it_follows_the_toy_data(hidden):
    data = load_dataset("toy").data
    options = {"epochs": 300, "gradient": PCD(), "optimizer": Adam(0.01), "evaluate": 50, "rng": 1}
    steps = training_steps(initialize(20, 20, hidden=hidden, rng=0), data, **options)
    ours = log_likelihood_trajectory(steps, data, every=50, rng=2, restart=None)
    exact = ours.state.history.log_likelihood
    assert ours.trusted.all()
    assert np.all(np.abs(ours.log_likelihood - exact)[1:] < 4.0 * ours.error[1:])
