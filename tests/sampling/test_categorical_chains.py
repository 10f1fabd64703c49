"""Chains, annealing and exact draws of machines with categorical units: statistics, with planted bugs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import paramagnet as pm
from paramagnet.kernels.categorical import add_products, add_rise, draw_states, gather_rows
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import CategoricalLayer, layers_of
from paramagnet.sampling.tempering import temper

Q, N, M = 3, 4, 3
HIDDEN = ["bit", "spin", "gaussian(0.5)", "categorical(3)", "relu", "drelu"]
LEAST = 1e-6  # probability below which a test fails


def machine(hidden, seed=0):
    rng = np.random.default_rng(seed)
    probe = pm.RBM(np.zeros((Q, 6)), 0.0, 0.0, f"categorical({Q})", hidden)
    columns = M * probe.hidden.width
    weights = 0.8 * rng.normal(size=(Q * N, columns))
    return pm.RBM(weights, 0.5 * rng.normal(size=Q * N), 0.5 * rng.normal(size=columns), *probe.units)


def probabilities(rbm):
    states = np.array(list(itertools.product(range(Q), repeat=N)), dtype=np.float64)
    return states, np.exp(-rbm.free_energy(states) - pm.log_partition(rbm))


def p_value(samples, p):
    """Of the chi-squared test; states with fewer than five expected counts are taken together."""
    index = (samples @ Q ** np.arange(N - 1, -1, -1)).astype(int)
    counts, expected = np.bincount(index, minlength=len(p)), p * len(samples)
    rare = expected < 5.0
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_sweeps_leave_the_distribution_as_it_is(hidden):
    rbm = machine(hidden)
    _, p = probabilities(rbm)
    start = pm.sample_exact(rbm, 20_000, rng=1)
    assert p_value(start, p) > LEAST
    moved = pm.sample(rbm, 20_000, n_steps=3, start=start, rng=2)
    assert set(np.unique(moved)) == {0.0, 1.0, 2.0}
    assert p_value(moved, p) > LEAST
    assert p_value(pm.sample(rbm, 20_000, n_steps=60, rng=3), p) > LEAST


@pytest.mark.parametrize("bug", ["bias", "rows", "order"])
def test_planted_bugs_are_found(bug):
    """A forgotten visible bias, rows of the neighbouring state, and fields in the order (state, unit)."""
    rbm = machine("bit")
    _, p = probabilities(rbm)
    visible, hidden = layers_of(rbm)
    if bug == "bias":
        visible = replace(visible, shift=np.zeros_like(visible.shift))
    elif bug == "rows":
        visible = replace(visible, weights=np.roll(visible.weights, 1, axis=0))
    else:
        turned = hidden.weights.reshape(M, N, Q).transpose(0, 2, 1).reshape(M, -1)
        hidden = replace(hidden, weights=np.ascontiguousarray(turned))
    start = Chains.at(pm.sample_exact(rbm, 20_000, rng=1), seed=2)
    moved = run_sweeps((visible, hidden), start, 3)
    assert p_value(moved.visible.astype(np.float64), p) < LEAST


@pytest.mark.parametrize("path", ["weights", "energy"])
def test_tempering(path):
    rbm = machine("bit")
    found = temper(rbm, 10_000, n_steps=40, path=path, rng=4)
    assert p_value(found.states, probabilities(rbm)[1]) > LEAST
    assert found.acceptance.min() > 0.0


def test_tempering_with_a_base_of_data_and_of_means():
    rbm = machine("spin")
    data = pm.sample_exact(rbm, 200, rng=0)
    for base in (data, rbm.visible.column_means(data), rbm):
        states = temper(rbm, 5_000, n_steps=30, base=base, n_replicas=3, rng=4).states
        assert p_value(states, probabilities(rbm)[1]) > LEAST
    with pytest.raises(ValueError, match="`base` must hold 12 means"):
        temper(rbm, 10, base=np.full(4, 0.5))


def test_trajectory_tempering():
    rbm = machine("bit")
    steps = [
        pm.RBM(s * rbm.weights, rbm.visible_bias, s * rbm.hidden_bias, *rbm.units) for s in (0.0, 0.5, 1.0)
    ]
    states = pm.sample(rbm, 10_000, n_steps=40, method="trajectory", trajectory=steps, rng=4)
    assert p_value(states, probabilities(rbm)[1]) > LEAST


@pytest.mark.parametrize("hidden", ["bit", "gaussian(0.5)"])
def test_clamped_sites_stay_and_the_others_are_conditional(hidden):
    rbm = machine(hidden)
    states, p = probabilities(rbm)
    clamp = np.array([np.nan, 2.0, np.nan, 0.0])
    drawn = pm.sample(rbm, 10_000, n_steps=60, clamp=clamp, rng=5)
    assert (drawn[:, 1] == 2.0).all()
    assert (drawn[:, 3] == 0.0).all()
    allowed = (states[:, 1] == 2.0) & (states[:, 3] == 0.0)
    conditional = np.where(allowed, p, 0.0) / p[allowed].sum()
    assert p_value(drawn, conditional) > LEAST
    with pytest.raises(ValueError, match="`clamp` must hold the states of categorical"):
        pm.sample(rbm, 10, clamp=[np.nan, 3.0, np.nan, np.nan])


@pytest.mark.parametrize("hidden", ["bit", "spin", "categorical(3)"])
@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
def test_annealing_covers_the_exact_sum(hidden, marginalize):
    rbm = machine(hidden)
    exact = pm.log_partition(rbm)
    data = pm.sample_exact(rbm, 300, rng=0)
    for method in ("mais", "ais", "reverse-ais"):
        for start in ("uniform", rbm.visible.column_means(data)):
            options = {"n_samples": 200, "n_temperatures": 60, "marginalize": marginalize, "start": start}
            scores = [
                (found.value - exact) / found.error
                for found in (
                    pm.estimate_log_partition(rbm, method=method, rng=seed, **options) for seed in range(4)
                )
            ]
            assert max(map(abs, scores)) < 4.5
            assert abs(np.mean(scores)) < 4.5 / np.sqrt(len(scores))


@pytest.mark.parametrize(("visible", "hidden"), [("bit", "categorical(3)"), ("categorical(3)", "relu")])
@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_errors_of_annealing_have_their_coverage(visible, hidden, method):
    """Of 40 estimates about two thirds lie within one error, and nearly all within two."""
    rng = np.random.default_rng(5)
    widths = 3 if visible.startswith("c") else 1, 3 if hidden.startswith("c") else 1
    weights = 0.6 * rng.normal(size=(N * widths[0], M * widths[1]))
    rbm = pm.RBM(weights, 0.3 * rng.normal(size=len(weights)), 0.0, visible, hidden)
    exact = pm.log_partition(rbm)
    found = [
        pm.estimate_log_partition(rbm, method=method, n_samples=200, n_temperatures=50, rng=seed)
        for seed in range(40)
    ]
    scores = np.array([(estimate.value - exact) / estimate.error for estimate in found])
    assert 18 <= (np.abs(scores) < 1.0).sum() <= 36  # binomial, 27 +- 3
    assert (np.abs(scores) < 2.0).sum() >= 34
    assert abs(scores.mean()) < 4.5 / np.sqrt(40)
    wrong = np.array([(1.1 * estimate.value - exact) / estimate.error for estimate in found])  # planted
    assert (np.abs(wrong) < 2.0).sum() < 34


def test_hidden_labels_are_sampled_tempered_and_clamped():
    """Bits beside hidden labels: the distribution, and a row of the neighbouring state as a planted bug."""
    rng = np.random.default_rng(3)
    rbm = pm.RBM(
        0.9 * rng.normal(size=(5, 6)),
        0.4 * rng.normal(size=5),
        0.4 * rng.normal(size=6),
        "bit",
        "categorical(3)",
    )
    states = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
    p = np.exp(-rbm.free_energy(states) - pm.log_partition(rbm))

    def judge(samples, probabilities):
        counts = np.bincount((samples @ 2.0 ** np.arange(4, -1, -1)).astype(int), minlength=32)
        kept = probabilities > 0.0
        expected = probabilities[kept] * len(samples)
        return float(chi2.sf(((counts[kept] - expected) ** 2 / expected).sum(), kept.sum() - 1))

    start = pm.sample_exact(rbm, 20_000, rng=1)
    assert judge(start, p) > LEAST
    assert judge(pm.sample(rbm, 20_000, n_steps=3, start=start, rng=2), p) > LEAST
    assert judge(pm.sample(rbm, 5_000, n_steps=30, method="tempering", n_replicas=3, rng=2), p) > LEAST
    clamp = np.array([np.nan, 1.0, np.nan, np.nan, 0.0])
    allowed = np.where((states[:, 1] == 1.0) & (states[:, 4] == 0.0), p, 0.0)
    drawn = pm.sample(rbm, 10_000, n_steps=60, clamp=clamp, rng=5)
    assert judge(drawn, allowed / allowed.sum()) > LEAST
    visible, hidden = layers_of(rbm)
    wrong = replace(hidden, weights=np.roll(hidden.weights, 1, axis=0))
    moved = run_sweeps((visible, wrong), Chains.at(start, seed=2), 3)
    assert judge(moved.visible.astype(np.float64), p) < LEAST


@pytest.mark.parametrize("bug", ["linear", "energy"])
def test_planted_bugs_of_annealing_are_found(bug, monkeypatch):
    """Biases that are left out of the weights of the kept layer; energies of the neighbouring state."""
    rbm = machine("bit")
    if bug == "linear":
        monkeypatch.setattr(CategoricalLayer, "linear", lambda self, states, bias: np.zeros(len(states)))
        options = {"method": "mais", "start": rbm.visible.mean(rbm.visible_bias + 0.5)}
    else:
        energy = CategoricalLayer.energy
        monkeypatch.setattr(
            CategoricalLayer, "energy", lambda self, states, *rest: energy(self, (states + 1) % Q, *rest)
        )
        options = {"method": "ais", "marginalize": "visible"}
    found = pm.estimate_log_partition(rbm, n_samples=200, n_temperatures=60, rng=0, **options)
    assert abs(found.value - pm.log_partition(rbm)) > 6.0 * found.error


def test_annealing_beside_gaussian_units():
    rbm = machine("gaussian(0.5)")
    found = pm.estimate_log_partition(rbm, n_temperatures=300, rng=0)
    assert abs(found.value - pm.log_partition(rbm)) < 4.5 * found.error


def test_a_start_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="`start` must hold 12 means"):
        pm.estimate_log_partition(machine("bit"), start=np.full(4, 0.5))


def test_the_same_bits_for_any_number_of_threads():
    rbm = machine("bit")
    for call in (
        lambda n: pm.sample(rbm, 600, n_steps=70, rng=1, n_threads=n),
        lambda n: pm.sample(rbm, 600, n_steps=20, method="tempering", n_replicas=3, rng=1, n_threads=n),
        lambda n: pm.estimate_log_partition(rbm, n_samples=600, n_temperatures=30, rng=1, n_threads=n).value,
    ):
        assert np.array_equal(call(1), call(3))


def test_other_devices_are_refused():
    with pytest.raises(ValueError, match=r"`device` must be 'cpu' for machines with categorical\(3\) units"):
        pm.estimate_log_partition(machine("bit"), device="torch:cpu")


# The kernels against loops


@pytest.mark.parametrize(("n_chains", "n_units", "q"), [(1, 1, 2), (5, 3, 4), (70, 17, 21), (3, 300, 3)])
def test_kernels_against_loops(n_chains, n_units, q):
    rng = np.random.default_rng(n_chains)
    states = rng.integers(q, size=(n_chains, n_units)).astype(np.float32)
    weights = rng.normal(size=(n_units * q, 7)).astype(np.float32)
    found = np.empty((n_chains, 7), np.float32)
    gather_rows(states, q, weights, found)
    wide = weights.astype(np.float64)
    expected = np.zeros((n_chains, 7))
    for k, i in itertools.product(range(n_chains), range(n_units)):
        expected[k] += wide[i * q + int(states[k, i])]
    assert np.allclose(found, expected, rtol=0.0, atol=1e-4)

    fields = (3.0 * rng.normal(size=(n_chains, n_units * q))).astype(np.float32)
    shift = rng.normal(size=n_units * q).astype(np.float32)
    uniform = rng.random((n_chains, n_units)).astype(np.float32)
    drawn = np.empty_like(states)
    n_changed = draw_states(fields, 0.7, shift, q, uniform, states, drawn)
    assert n_changed == (drawn != states).sum()
    x = (0.7 * fields.astype(np.float64) + shift).reshape(n_chains, n_units, q)
    shares = np.cumsum(np.exp(x - x.max(axis=-1, keepdims=True)), axis=-1)
    shares /= shares[..., -1:]
    near = np.abs(shares[..., :-1] - uniform[..., None]).min(axis=-1) < 1e-5
    wanted = (shares[..., :-1] <= uniform[..., None]).sum(axis=-1)
    assert (near | (drawn == wanted)).all()
    assert near.mean() < 0.1

    shifts = rng.normal(size=(2, n_units * q))
    rises = np.zeros(n_chains)
    add_rise(fields, (0.2, 0.9), shifts, q, rises)
    unit = pm.categorical(q)
    before, after = (
        unit.sum_log_trace(s * fields.astype(np.float64) + row)
        for s, row in zip((0.2, 0.9), shifts, strict=True)
    )
    assert np.allclose(rises, after - before, rtol=0.0, atol=1e-10 * n_units)

    means = rng.random((n_chains, 7)).astype(np.float32)
    products = np.full((n_units * q, 7), np.nan)
    add_products(states, (0, n_units), q, means, (0.5, 0.0), products)
    shares = np.full(n_chains, 0.5)
    expected = unit.total_products(states, shares, means.astype(np.float64))
    assert np.allclose(products, expected, rtol=0.0, atol=1e-10)
    add_products(states, (0, n_units), q, means, (0.25, -1.0), products)
    assert np.allclose(products, -0.5 * expected, rtol=0.0, atol=1e-10)


def test_draws_in_fields_beyond_every_exponent():
    fields = np.array([[1e4, -1e4, 1e4 - 1.0, -1e30, 0.0, 1e30]], np.float32)
    for u in (1e-7, 0.3, 0.8, 1.0 - 1e-7):
        drawn = np.empty((1, 2), np.float32)
        uniform = np.full((1, 2), u, np.float32)
        draw_states(fields, 1.0, np.zeros(6, np.float32), 3, uniform, np.zeros((1, 2), np.float32), drawn)
        assert drawn[0, 0] == (0.0 if u < 0.73 else 2.0)
        assert drawn[0, 1] == 2.0
