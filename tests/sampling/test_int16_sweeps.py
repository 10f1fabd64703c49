"""Sweeps in int16: the chain of the float32 reference bit for bit, where they run, and planted bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import float32_reference as reference
import paramagnet as pm
from paramagnet.kernels import int16_sweeps, int16_tables
from paramagnet.sampling import int16
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of, make_layers

needs_avx512 = pytest.mark.skipif(
    int16.is_forbidden() or not int16.has_instructions(),
    reason="no AVX-512BW, or portable kernels are asked for",
)
PAIRS = [("spin", "bit"), ("bit", "bit"), ("spin", "spin"), ("bit", "spin")]


def machine(n_visible, n_hidden, visible="spin", hidden="bit", scale=1.0, bias=0.5, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, scale / np.sqrt(n_visible + n_hidden), (n_visible, n_hidden))
    biases = (rng.normal(0.0, bias, n) for n in (n_visible, n_hidden))
    return pm.RBM(weights, *biases, visible=visible, hidden=hidden)


def start(rbm, n_chains, seed=1):
    states = rbm.visible.random_start((n_chains, rbm.n_visible), np.random.default_rng(seed))
    return np.array(states, np.float32)


def run(rbm, visible, n_sweeps, factor=1.0, clamp=None, n_threads=1, layers=None, seed=11, sweep=3):
    states = visible.copy()
    layers = layers_of(rbm) if layers is None else layers
    counts = int16.run_chains(layers, states, (seed, sweep), n_sweeps, n_threads, clamp, factor)
    return states, counts


def require_reference(rbm, n_chains, n_sweeps, clamp=None, layers=None):
    """The chains after every sweep, and those of one call. The ends alone would not do: two chains that use
    the same random numbers meet again after a wrong draw.
    """
    visible, layers = start(rbm, n_chains), layers_of(rbm) if layers is None else layers
    expected, n_changed = visible, 0
    for sweep in range(3, 3 + n_sweeps):
        states, _ = run(rbm, expected, 1, clamp=clamp, layers=layers, sweep=sweep)
        before, expected = expected, reference.run_sweeps(layers, expected, 11, sweep, 1, clamp)
        assert np.array_equal(states, expected)
        n_changed += np.sum(before != expected)
    states, counts = run(rbm, visible, n_sweeps, clamp=clamp, layers=layers)
    assert np.array_equal(states, expected)
    assert clamp is not None or counts[0] == n_changed
    return counts


# The reference itself


def test_multiply_adds_of_the_reference_are_rounded_once():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=3000).astype(np.float32) for _ in range(2))
    c = (-a * b * (1.0 + rng.integers(-3, 4, 3000) * 2.0**-24)).astype(np.float32)
    c[::3] = rng.normal(size=1000).astype(np.float32) * 1e-6
    found = reference.fused(a, b, c)
    for x, y, z, value in zip(a, b, c, found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        near = [np.nextafter(value, np.float32(side)) for side in (-np.inf, np.inf)]
        error = abs(Fraction(float(value)) - exact)
        assert all(error <= abs(Fraction(float(other)) - exact) for other in near)


def test_exponential_of_the_reference_is_as_precise_as_the_proof_says():
    y = np.linspace(0.0, 17.5, 400_001).astype(np.float32)
    error = np.abs(reference.exp_minus(y) / np.exp(-y.astype(np.float64)) - 1.0)
    assert np.max(error - y * (2.0**-23 + 2.0**-47)) < int16_tables.POLYNOMIAL
    r = np.linspace(-0.5, 0.5, 400_001)
    cubic = np.polyval(np.float32(int16_sweeps._CUBIC).astype(np.float64), r)
    assert np.max(np.abs(cubic / 2.0**r - 1.0)) < int16_tables.CUBIC - 3.0 * 2.0**-24


# Bit for bit


@needs_avx512
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(
    ("n_visible", "n_hidden", "n_chains"),
    [(1, 1, 3), (5, 4, 64), (7, 13, 65), (63, 66, 100), (160, 41, 130), (170, 156, 200), (20, 20, 1000)],
)
def test_chains_are_those_of_the_reference(n_visible, n_hidden, n_chains, visible, hidden):
    rbm = machine(n_visible, n_hidden, visible, hidden, scale=2.0)
    require_reference(rbm, n_chains, 12)


ADVERSARIAL = {
    "no weights": lambda w, b, c: (0.0 * w, b, c),
    "rows of zeros": lambda w, b, c: (w * (np.arange(len(w)) % 2)[:, None], b, c),
    "columns of zeros": lambda w, b, c: (w * (np.arange(w.shape[1]) % 3 > 0), b, c),
    "one large weight": lambda w, b, c: (np.where(np.arange(w.size).reshape(w.shape) == 7, 50.0, w), b, c),
    "equal weights": lambda w, b, c: (np.full_like(w, 0.05), b, c),
    "weak": lambda w, b, c: (1e-3 * w, 0.0 * b, 0.0 * c),
    "tiny": lambda w, b, c: (1e-38 * w, 1e-38 * b, c),
    "strong": lambda w, b, c: (300.0 * w, b, c),
    "huge weights": lambda w, b, c: (1e29 * w, b, c),
    "large biases": lambda w, b, c: (w, 1e4 * b, 1e4 * c),
    "huge biases": lambda w, b, c: (w, 1e29 * b, 1e9 * c),
    "biases against the weights": lambda w, b, c: (
        1e3 * w, -1e3 * w.sum(axis=1) * np.abs(b).clip(0.4, 0.6), -1e3 * w.sum(axis=0) * 0.5),
    "mixed sizes": lambda w, b, c: (w * 10.0 ** -(np.arange(len(w)) % 12.0)[:, None], b, c),
}  # fmt: skip


def adversarial(name, n_visible, n_hidden, visible, hidden):
    rbm = machine(n_visible, n_hidden, visible, hidden)
    changed = ADVERSARIAL[name](rbm.weights, rbm.visible_bias, rbm.hidden_bias)
    return pm.RBM(*changed, visible=visible, hidden=hidden)


def largest_sum(tables):
    """The largest sum of table entries that any states can make in one part."""
    entries = tables.table.reshape(-1, tables.n_positions, 4, 32).astype(np.int64)
    return np.abs(entries).max(axis=3).reshape(-1, tables.n_parts, tables.n_in_part, 4).sum(axis=2).max()


@needs_avx512
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize(("visible", "hidden"), PAIRS[1:3])
def test_chains_of_adversarial_machines_are_those_of_the_reference(name, visible, hidden):
    require_reference(adversarial(name, 96, 70, visible, hidden), 96, 10)


@needs_avx512
def test_sums_at_the_edge_of_int16_do_not_overflow():
    """All weights of one sign and all units alike: every sum is the largest that its unit allows."""
    layers = layers_of(machine(310, 9, scale=0.0, bias=0.0))
    weights = np.where(np.arange(310) < 155, 0.01, 0.0100001)[:, None] * np.ones(9)
    layers = make_layers(weights, np.zeros(310), np.zeros(9), pm.SPIN, pm.SPIN)
    assert 32600 < largest_sum(layers[1].tables) <= 32767
    visible = np.repeat(np.float32([[1.0], [-1.0]]), [40, 40], axis=0) * np.ones((80, 310), np.float32)
    states = visible.copy()
    int16.run_chains(layers, states, (1, 0), 5, 1)
    assert np.array_equal(states, reference.run_sweeps(layers, visible, 1, 0, 5))


@needs_avx512
@pytest.mark.parametrize("factor", [0.0, 0.03])
def test_a_bound_that_is_too_small_is_noticed(factor):
    """The planted bug: some unit whose rounding matters is not computed anew."""
    rbm = machine(300, 200, "spin", "spin", scale=2.0)
    visible = start(rbm, 256)
    states, counts = run(rbm, visible, 8, factor)
    expected = reference.run_sweeps(layers_of(rbm), visible, 11, 3, 8)
    assert not np.array_equal(states, expected)
    proved, undecided = run(rbm, visible, 8)
    assert np.array_equal(proved, expected)
    assert counts[2] < undecided[2] < 0.02 * 8 * 256 * 500


@needs_avx512
def test_clamped_units_are_those_of_the_reference():
    rbm = machine(70, 40, scale=2.0)
    rng = np.random.default_rng(5)
    clamp = (rng.random((100, 70)) < 0.4, rng.choice(np.float32([-1.0, 1.0]), (100, 70)))
    require_reference(rbm, 100, 10, clamp)


@needs_avx512
def test_bits_do_not_depend_on_blocks_or_threads(monkeypatch):
    rbm = machine(50, 30, scale=2.0)
    visible = start(rbm, 700)
    monkeypatch.setattr(int16, "THREAD_TIME", 1.0)
    runs = [run(rbm, visible, 6, n_threads=n) for n in (1, 2, 3, 5, 40)]
    monkeypatch.setattr(int16, "BLOCK", 64)
    runs.append(run(rbm, visible, 6, n_threads=2))
    for states, counts in runs[1:]:
        assert np.array_equal(states, runs[0][0])
        assert np.array_equal(counts, runs[0][1])


@needs_avx512
def test_changes_are_counted():
    rbm = machine(40, 30)
    visible = start(rbm, 70)
    states, counts = run(rbm, visible, 1)
    assert counts[0] == np.sum(states != visible)
    assert counts[1] == 0
    both = run(rbm, visible, 2)[1]
    assert both[0] == counts[0] + np.sum(states != run(rbm, visible, 2)[0])
    assert 0 < both[1] < 70 * 30


@needs_avx512
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fresh", "fresh spins", "weak", "trained"])
def test_a_thousand_sweeps_are_those_of_the_reference(kind):
    if kind == "trained":
        data = np.where(np.random.default_rng(0).random((300, 12)) < 0.3, 1.0, -1.0)
        data = np.repeat(data, 8, axis=1) * np.where(
            np.random.default_rng(1).random((300, 96)) < 0.05, -1.0, 1.0
        )
        rbm = pm.initialize(96, 64, hidden="bit", hidden_bias=-2.0, rng=0)
        gradient = pm.PCD(n_chains=100, n_steps=5, n_threads=1)
        rbm = pm.train(rbm, data, epochs=30, batch_size=50, gradient=gradient, rng=2).rbm
    elif kind == "weak":
        rbm = machine(96, 64, scale=0.1, bias=0.0)
    else:
        rbm = pm.initialize(96, 64, hidden="spin" if "spins" in kind else "bit", rng=0)
    require_reference(rbm, 70, 1000)


@needs_avx512
@pytest.mark.slow
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_a_thousand_sweeps_of_adversarial_machines_are_those_of_the_reference(name):
    pair = PAIRS[list(ADVERSARIAL).index(name) % len(PAIRS)]
    require_reference(adversarial(name, 24, 18, *pair), 64, 1000)


@needs_avx512
@pytest.mark.slow
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_a_thousand_sweeps_of_one_unit_by_one_are_those_of_the_reference(visible, hidden):
    require_reference(machine(1, 1, visible, hidden, scale=2.0), 64, 1000)


@needs_avx512
@pytest.mark.slow
def test_a_thousand_sweeps_at_the_edge_of_int16_are_those_of_the_reference():
    """Strong weights of one sign keep most units alike, so that most sums are close to the largest."""
    weights = np.where(np.arange(24) < 12, 0.12, 0.1200001)[:, None] * np.ones(18)
    rbm = pm.RBM(weights, np.zeros(24), np.zeros(18), visible="spin", hidden="spin")
    layers = layers_of(rbm)
    for layer in layers:
        assert 32600 < largest_sum(layer.tables) <= 32767
    states, _ = run(rbm, start(rbm, 64), 1000)
    assert np.mean(np.abs(states.mean(axis=1)) > 0.9) > 0.5
    require_reference(rbm, 64, 1000)


@needs_avx512
@pytest.mark.slow
def test_a_large_machine_is_that_of_the_reference():
    require_reference(pm.initialize(784, 500, hidden="bit", hidden_bias=-5.0, rng=0), 64, 20)


# Old and new chains


@needs_avx512
def test_chains_agree_with_the_exact_distribution():
    """Chi-squared over all states, as for the other kernels; a forgotten bias fails it."""
    rbm = machine(5, 3, scale=2.0, seed=2)
    visible = start(rbm, 20_000)
    states = (np.arange(32)[:, None] >> np.arange(5) & 1) * 2.0 - 1.0
    log_p = -rbm.free_energy(states)
    expected = 20_000 * np.exp(log_p - np.logaddexp.reduce(log_p))

    def p_value(ends):
        counts = np.bincount((ends > 0) @ (1 << np.arange(5)), minlength=32)
        return chi2.sf(np.sum((counts - expected) ** 2 / expected), 31)

    assert p_value(run(rbm, visible, 40)[0]) > 1e-6
    planted = pm.RBM(rbm.weights, rbm.visible_bias, np.zeros(3), hidden="bit")
    assert p_value(run(planted, visible, 40)[0]) < 1e-6


@needs_avx512
def test_old_and_new_chains_have_the_same_means(monkeypatch):
    rbm = machine(60, 40, scale=2.0)
    chains = Chains.start(rbm.visible, (4000, 60), np.random.default_rng(0))
    new = run_sweeps(layers_of(rbm), chains, 20)
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    old = run_sweeps(layers_of(rbm), Chains.at(chains.visible, chains.seed + 1), 20)
    difference = new.visible.mean(axis=0) - old.visible.mean(axis=0)
    errors = np.sqrt((new.visible.var(axis=0) + old.visible.var(axis=0)) / 4000)
    assert np.sum((difference / errors) ** 2) < chi2.isf(1e-6, 60)
    assert new.changed == pytest.approx(old.changed, rel=0.02)
    same_seed = run_sweeps(layers_of(rbm), chains, 1)  # one order differs from the other by rounding alone
    monkeypatch.delenv(int16.ENVIRONMENT)
    assert np.mean(run_sweeps(layers_of(rbm), chains, 1).visible == same_seed.visible) > 0.99999


@needs_avx512
def test_training_with_either_kernels_follows_the_same_curve(monkeypatch):
    """With the same random numbers only rounding differs; another seed is further away by its chains."""
    data = pm.load_dataset("toy", n_points=200).data
    rbm = pm.initialize(20, 12, hidden="bit", hidden_bias=-5.0, gain=0.25, rng=0)

    def curve(seed):
        steps = pm.training_steps(
            rbm, data, epochs=60, batch_size=100, gradient=pm.PCD(n_chains=500, n_steps=10, n_relax=50),
            optimizer=pm.Adam(0.01), rng=seed,
        )  # fmt: skip
        machines = [state.rbm for state in steps if state.update in (40, 80, 120)]
        assert len(machines) == 3
        return np.array([pm.log_likelihood(machine, data).value for machine in machines])

    new, other = curve(1), curve(2)
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    old = curve(1)
    assert np.abs(new - old).max() < 0.1 * np.abs(new - other).max()
    assert np.abs(new - other).max() > 0.01


# Where they run


def test_the_order_of_sums_follows_from_sizes_and_from_the_environment(monkeypatch):
    monkeypatch.delenv(int16.ENVIRONMENT, raising=False)
    monkeypatch.setattr(int16, "has_instructions", lambda: True)
    layers = layers_of(machine(20, 20))
    assert int16.order_of_sums(layers, 1000, 40) == "int16"
    assert int16.order_of_sums(layers, int16.FEWEST_CHAINS - 1, 1000) == "portable"
    assert int16.order_of_sums(layers, int16.FEWEST_CHAINS, 1) == "portable"
    large = layers_of(machine(200, 100))
    assert int16.order_of_sums(large, int16.FEWEST_FOR_LARGE - 1, 40) == "portable"
    assert int16.order_of_sums(large, int16.FEWEST_FOR_LARGE, 40) == "int16"
    gaussian = layers_of(pm.RBM(np.zeros((20, 20)), np.zeros(20), np.zeros(20), visible="gaussian"))
    assert int16.order_of_sums(gaussian, 1000, 40) == "portable"
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    assert int16.order_of_sums(layers, 1000, 40) == "portable"
    monkeypatch.setenv(int16.ENVIRONMENT, "fast")
    with pytest.raises(ValueError, match="`PARAMAGNET_KERNELS` must be 'portable' or not set, got 'fast'"):
        int16.order_of_sums(layers, 1000, 40)
    monkeypatch.delenv(int16.ENVIRONMENT)
    monkeypatch.setattr(int16, "has_instructions", lambda: False)
    assert int16.order_of_sums(layers, 1000, 40) == "portable"


@needs_avx512
def test_sweeps_and_samples_use_them(monkeypatch):
    rbm = machine(60, 40, scale=2.0)
    chains = Chains.start(rbm.visible, (100, 60), np.random.default_rng(0))
    moved = run_sweeps(layers_of(rbm), chains, 20)
    expected = reference.run_sweeps(layers_of(rbm), chains.visible, chains.seed, 0, 20)
    assert np.array_equal(moved.visible, expected)
    np.testing.assert_allclose(moved.fields, moved.visible @ rbm.weights, atol=1e-5)
    calls = []
    monkeypatch.setattr(int16, "run_block", lambda *args: calls.append(args))
    pm.sample(rbm, 100, n_steps=20, rng=0)
    assert calls
