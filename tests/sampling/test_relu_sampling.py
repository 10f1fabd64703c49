"""Chains and annealing with ReLU and dReLU units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import integrate, stats

import paramagnet as pm
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from relu_oracle import Oracle, make_relu_machine

VISIBLE = "spin", "bit", "categorical(3)"
PAIRS = [(visible, hidden) for visible in VISIBLE for hidden in ("relu", "drelu")]


def p_value(states, oracle):
    """The p-value of chi-squared for visible states and their exact probabilities; rare states are one."""
    counts = np.array([(states == v).all(axis=1).sum() for v in oracle.states])
    wanted = oracle.p * len(states)
    rare = wanted < 20.0
    pooled = [np.append(array[~rare], array[rare].sum()) for array in (counts, wanted)]
    kept = pooled[1] > 1.0
    return stats.chisquare(
        pooled[0][kept], pooled[1][kept] * pooled[0][kept].sum() / pooled[1][kept].sum()
    ).pvalue


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_sweeps_leave_the_distribution_as_it_is(visible, hidden):
    rbm = make_relu_machine(visible, hidden, 4, 3, scale=0.7, seed=4)
    oracle = Oracle(rbm)
    start = pm.sample_exact(rbm, 20_000, rng=1)
    assert p_value(start, oracle) > 1e-6
    chains = Chains.from_states(start, np.random.default_rng(2))
    layers = layers_of(rbm)
    assert p_value(run_sweeps(layers, chains, 4).visible, oracle) > 1e-6
    forgotten = dataclasses.replace(layers[1], shift=np.zeros_like(layers[1].shift))  # the hidden biases
    assert p_value(run_sweeps((layers[0], forgotten), chains, 4).visible, oracle) < 1e-6
    other = RBM(rbm.weights, rbm.visible_bias, rbm.hidden_bias, rbm.visible, "gaussian")  # both signs
    assert p_value(run_sweeps((layers[0], layers_of(other)[1]), chains, 4).visible, oracle) < 1e-6


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
@pytest.mark.parametrize("visible", ["spin", "bit", "gaussian", "categorical(5)"])
def test_threads_and_clamps(visible, hidden):
    rbm = make_relu_machine(visible, hidden, 30, 20, scale=0.05)
    one, two = (pm.sample(rbm, 300, n_steps=5, rng=0, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    clamp = np.full(30, np.nan)
    clamp[3] = 1.0
    assert (pm.sample(rbm, 20, n_steps=3, clamp=clamp, rng=0)[:, 3] == 1.0).all()
    tempered = pm.sample(rbm, 20, n_steps=5, method="tempering", n_replicas=3, rng=0)
    assert rbm.visible.is_value(tempered).all()
    estimates = [
        pm.estimate_log_partition(rbm, n_samples=200, n_temperatures=20, rng=0, n_threads=n) for n in (1, 2)
    ]
    assert estimates[0].value == estimates[1].value


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_tempered_chains_have_the_exact_distribution(visible, hidden):
    rbm = make_relu_machine(visible, hidden, 4, 3, scale=0.5, seed=5)
    states = pm.sample(rbm, 2000, n_steps=15, method="tempering", n_replicas=3, rng=3)
    assert p_value(states, Oracle(rbm)) > 1e-6


@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_annealing_covers_the_exact_value(visible, hidden, marginalize):
    rbm = make_relu_machine(visible, hidden, 5, 4, scale=0.6, seed=6)
    exact = pm.log_partition(rbm)
    options = {"n_samples": 200, "n_temperatures": 40, "marginalize": marginalize}
    for method, low, high in (("mais", -3.0, 2.0), ("ais", -3.0, 2.0), ("reverse-ais", -2.0, 3.0)):
        z = []
        for seed in range(16):
            estimate = pm.estimate_log_partition(rbm, method=method, rng=seed, **options)
            assert estimate.error < 0.5
            z.append((estimate.value - exact) / estimate.error)
        assert sum(abs(value) < 2.0 for value in z) >= 12
        assert low / 2.0 < np.mean(z) < high / 2.0


def test_annealing_from_the_data_and_the_policy():
    rbm = make_relu_machine("spin", "drelu", 6, 4, seed=7)
    means = pm.exact.exact_moments(rbm).visible
    estimate = pm.estimate_log_partition(rbm, start=means, n_temperatures=200, rng=0)
    assert abs(estimate.value - pm.log_partition(rbm)) < 4.0 * estimate.error < 0.1
    assert pm.LogZ().choose(rbm).method == "exact"
    assert pm.LogZ()(rbm).value == pm.log_partition(rbm)
    large = pm.initialize(200, 100, hidden="relu", scheme="xavier", rng=0)
    assert pm.LogZ().choose(large).method == "mais"


# Gaussian visible units


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
def test_gaussian_visible_units_need_a_weak_coupling(hidden):
    rbm = RBM([[0.6], [-0.3]], [0.2, 0.5], [0.3], "gaussian", hidden)
    if hidden == "drelu":
        numbers = {"theta_asymmetry": [0.4], "gamma_asymmetry": [0.5]}
        rbm = RBM([[0.6], [-0.3]], [0.2, 0.5], [0.3], "gaussian", hidden, hidden_parameters=numbers)
    coupling = float(np.sum(rbm.weights**2))

    def weight(h):  # the visible units integrated out
        own = float(-rbm.units[1].log_base(np.array([h])))
        return np.exp(0.3 * h + 0.5 * np.sum((rbm.visible_bias + rbm.weights[:, 0] * h) ** 2) - own)

    low = 0.0 if hidden == "relu" else -60.0
    exact = np.log(integrate.quad(weight, low, 60.0, points=[0.0], epsabs=1e-13, limit=200)[0])
    for method in ("mais", "ais"):
        found = pm.estimate_log_partition(rbm, method=method, n_samples=2000, n_temperatures=200, rng=1)
        assert abs(found.value - exact) < 4.0 * found.error < 0.2
    for name, words in (("log_partition", "no layer has states"), ("sample_exact", "no layer has states")):
        with pytest.raises(ValueError, match=words):
            getattr(pm, name)(rbm, *([5] if name == "sample_exact" else []))
    strong = RBM(rbm.weights / np.sqrt(0.7 * coupling), 0, 0, "gaussian", hidden)
    for function in (lambda: pm.sample(strong, 3), lambda: pm.estimate_log_partition(strong)):
        with pytest.raises(
            ValueError, match=f"with gaussian and {hidden} units, both unbounded, the largest"
        ):
            function()


def test_existence_follows_the_learned_numbers():
    """A dReLU unit's larger variance counts: 1 at the start, up to 2."""
    weights = np.array([[0.9]])
    pm.sample(RBM(weights, 0, 0, "gaussian", "drelu"), 2, n_steps=2, rng=0)
    numbers = {"theta_asymmetry": 0.0, "gamma_asymmetry": -2.0}
    with pytest.raises(ValueError, match=r"below 1, got 1\.26"):
        pm.sample(RBM(weights, 0, 0, "gaussian", "drelu", hidden_parameters=numbers), 2)
