"""Gibbs chains: stationary where they must be, the same for any number of threads, safe at the edges."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chi2
from threadpoolctl import threadpool_info

import conftest
import paramagnet
from paramagnet import _parallel as blocks
from paramagnet.exact.sums import sample_exact
from paramagnet.rbm import RBM
from paramagnet.sampling import chains as gibbs
from paramagnet.sampling import layer as layer_module
from paramagnet.sampling.chains import Chains, run_sweeps, sample
from paramagnet.sampling.layer import SampledLayer, layers_of

draw_machine = functools.partial(conftest.draw_machine, scale=1.0)
COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))
PATHS = {"dense": 0.0, "changed rows": 2.0}
N_CHAINS = 20_000


def all_states(rbm):
    return np.array(list(itertools.product(rbm.visible.levels, repeat=rbm.n_visible)))


def count_states(rbm, states):
    bits = states == rbm.visible.high
    return np.bincount(bits @ (1 << np.arange(rbm.n_visible)[::-1]), minlength=2**rbm.n_visible)


def p_value(rbm, states):
    """Chi-squared of visible states against the exact distribution; rare states are one bin."""
    log_p = -rbm.free_energy(all_states(rbm))
    expected = len(states) * np.exp(log_p - np.logaddexp.reduce(log_p))
    counts, rare = count_states(rbm, states), expected < 5.0
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0.5
    return chi2.sf(np.sum((counts - expected)[keep] ** 2 / expected[keep]), keep.sum() - 1)


def exact_chains(rbm, seed, n_chains=N_CHAINS):
    rng = np.random.default_rng(seed)
    return Chains.from_states(sample_exact(rbm, n_chains, rng=rng), rng)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_chains_from_exact_samples_stay_exact(visible, hidden, path):
    for seed in range(5):
        rbm = draw_machine(visible=visible, hidden=hidden, seed=seed)
        chains = exact_chains(rbm, seed)
        ended = run_sweeps(layers_of(rbm), chains, 3, dense_above=PATHS[path])
        assert p_value(rbm, ended.visible) > 1e-6
        assert not np.array_equal(ended.visible, chains.visible)


def without_hidden_bias(rbm):
    visible, hidden = layers_of(rbm)
    return visible, SampledLayer(hidden.weights, np.zeros_like(hidden.shift), hidden.scale, hidden.levels)


def without_visible_bias(rbm):
    visible, hidden = layers_of(rbm)
    return SampledLayer(visible.weights, np.zeros_like(visible.shift), visible.scale, visible.levels), hidden


def with_half_scale(rbm):
    visible, hidden = layers_of(rbm)
    return SampledLayer(visible.weights, visible.shift, 0.5 * visible.scale, visible.levels), hidden


PLANTED = [without_hidden_bias, without_visible_bias, with_half_scale]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bug", PLANTED)
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_planted_bugs_are_seen(visible, hidden, bug, path):
    caught = 0
    for seed in range(5):
        rbm = draw_machine(visible=visible, hidden=hidden, seed=seed)
        ended = run_sweeps(bug(rbm), exact_chains(rbm, seed), 3, dense_above=PATHS[path])
        caught += p_value(rbm, ended.visible) < 1e-6
    assert caught >= 4


def test_rows_that_are_subtracted_are_seen(monkeypatch):
    real = layer_module.add_changed_rows
    monkeypatch.setattr(
        layer_module, "add_changed_rows", lambda rows, ends, step, *a: real(rows, ends, -step, *a)
    )
    rbm = draw_machine()
    ended = run_sweeps(layers_of(rbm), exact_chains(rbm, 0), 3, dense_above=2.0)
    assert p_value(rbm, ended.visible) < 1e-6


def test_chains_forget_a_bad_start():
    rbm = draw_machine(scale=0.5)
    states = sample(rbm, N_CHAINS, n_steps=100, start=np.ones((N_CHAINS, 5)), rng=1)
    assert p_value(rbm, states) > 1e-6
    assert p_value(rbm, sample(rbm, N_CHAINS, n_steps=100, rng=2)) > 1e-6
    assert p_value(rbm, sample(rbm, N_CHAINS, n_steps=1, start=np.ones((N_CHAINS, 5)), rng=1)) < 1e-6


# The same chains, bit for bit


@pytest.mark.parametrize("n_chains", [1, 73, 1000])
def test_chains_are_the_same_for_any_number_of_threads(n_chains):
    rbm = draw_machine(97, 61, seed=3, scale=0.3)
    chains = Chains.start(rbm.visible, (n_chains, 97), np.random.default_rng(0))
    runs = [run_sweeps(layers_of(rbm), chains, 70, n_threads=n) for n in (1, 2, 3, None)]
    for run in runs[1:]:
        assert np.array_equal(run.visible, runs[0].visible)
        assert np.array_equal(run.fields, runs[0].fields)
        assert run.changed == runs[0].changed


def test_blocks_depend_on_the_number_of_chains_alone():
    assert [blocks.n_blocks(n) for n in (1, 50, 51, 100, 200, 1000, 1024, 4500)] == [1, 1, 2, 2, 4, 4, 4, 18]
    seen = []
    blocks.run_blocks(lambda block, rows: seen.append((block, rows)), 1001, 1)
    assert [block for block, _ in seen] == list(range(4))
    assert np.array_equal(np.concatenate([np.arange(1001)[rows] for _, rows in seen]), np.arange(1001))


def test_errors_in_a_block_come_out():
    def fail(block, rows):
        raise RuntimeError(f"block {block}")

    with pytest.raises(RuntimeError, match="block 0"):
        blocks.run_blocks(fail, 1000, 2)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_runs_at_the_same_time_do_not_disturb_each_other():
    rbm = draw_machine(97, 61, seed=3, scale=0.3)
    chains = Chains.start(rbm.visible, (300, 97), np.random.default_rng(0))
    alone = [run_sweeps(layers_of(rbm), chains, n, n_threads=1).visible for n in (3, 60)]
    before = blas_threads()
    with blocks.ONE_BLAS_THREAD:
        with blocks.ONE_BLAS_THREAD:
            assert set(blas_threads()) <= {1}
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(run_sweeps, layers_of(rbm), chains, n, n_threads=2) for n in 4 * [3, 60]]
        for job, expected in zip(jobs, 4 * alone, strict=True):
            assert np.array_equal(job.result().visible, expected)
    assert blas_threads() == before


def test_paths_agree_and_drift_is_small():
    """Fields by changed rows stay those of the states; the chain is that of full products."""
    rbm = draw_machine(60, 40, seed=5, scale=0.3)
    chains = Chains.start(rbm.visible, (64, 60), np.random.default_rng(0))
    sparse = run_sweeps(layers_of(rbm), chains, gibbs.REFRESH - 1, dense_above=2.0)
    exact = sparse.visible.astype(float) @ rbm.weights
    assert np.max(np.abs(sparse.fields - exact)) < 1e-5 * np.sqrt(np.mean(exact**2))
    short = [run_sweeps(layers_of(rbm), chains, 5, dense_above=limit).visible for limit in (0.0, 2.0)]
    assert np.mean(np.all(short[0] == short[1], axis=1)) > 0.95


def test_sweeps_go_on_where_they_stopped():
    rbm = draw_machine(20, 10, seed=6, scale=0.3)
    layers = layers_of(rbm)
    start = Chains.start(rbm.visible, (50, 20), np.random.default_rng(0))
    whole = run_sweeps(layers, start, 10, dense_above=0.0)
    parts = run_sweeps(layers, run_sweeps(layers, start, 4, dense_above=0.0), 6, dense_above=0.0)
    assert np.array_equal(whole.visible, parts.visible)
    assert (parts.seed, parts.sweep) == (whole.seed, 10)
    assert not np.array_equal(whole.visible, run_sweeps(layers, whole, 1).visible)


def test_chains_are_read_only_and_inputs_stay():
    rbm = draw_machine()
    chains = Chains.start(rbm.visible, (10, 5), np.random.default_rng(0))
    before = chains.visible.copy()
    ended = run_sweeps(layers_of(rbm), chains, 2)
    assert np.array_equal(chains.visible, before)
    for array in (chains.visible, ended.visible, ended.fields):
        assert not array.flags.writeable


# The public function


def test_sample_repeats_with_the_seed():
    rbm = draw_machine()
    states = [sample(rbm, 50, n_steps=3, rng=seed) for seed in (1, 1, 2)]
    assert states[0].shape == (50, 5)
    assert states[0].dtype == np.float64
    assert np.array_equal(states[0], states[1])
    assert not np.array_equal(states[0], states[2])
    assert paramagnet.sample is sample


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_clamped_units_stay_and_others_follow_the_conditional(visible, hidden):
    rbm = draw_machine(visible=visible, hidden=hidden, seed=2, scale=0.7)
    clamp = np.array([rbm.visible.high, np.nan, rbm.visible.low, np.nan, np.nan])
    states = sample(rbm, N_CHAINS, n_steps=50, clamp=clamp, rng=0)
    assert np.all(states[:, [0, 2]] == clamp[[0, 2]])
    possible = all_states(rbm)
    possible = possible[(possible[:, [0, 2]] == clamp[[0, 2]]).all(axis=1)]
    log_p = -rbm.free_energy(possible)
    expected = N_CHAINS * np.exp(log_p - np.logaddexp.reduce(log_p))
    counts = np.array([np.sum((states == state).all(axis=1)) for state in possible])
    assert chi2.sf(np.sum((counts - expected) ** 2 / expected), len(possible) - 1) > 1e-6


def test_each_sample_can_have_its_own_clamp():
    rbm = draw_machine()
    clamp = np.full((6, 5), np.nan)
    clamp[np.arange(5), np.arange(5)] = [1, -1, 1, -1, 1]
    states = sample(rbm, 6, n_steps=20, clamp=clamp, rng=0)
    assert np.array_equal(states[np.arange(5), np.arange(5)], [1, -1, 1, -1, 1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "`n_samples` must be a positive integer, got 0"),
        ({"n_steps": -1}, "`n_steps` must be an integer of at least 0, got -1"),
        ({"n_threads": 0}, "`n_threads` must be a positive integer"),
        ({"start": np.ones((3, 5))}, "`start` must have one state for each of the 4 samples, got 3"),
        ({"start": np.zeros((4, 5))}, "`start` must hold the values of spin units.*Convert bits"),
        ({"clamp": np.ones(4)}, r"`clamp` must be an array of shape \(5,\) or \(4, 5\), got shape \(4,\)"),
        ({"clamp": np.zeros(5)}, "`clamp` must hold the values of spin units, -1 and 1, or NaN.*found 0"),
        ({"rng": -1}, "`rng` must be"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        sample(draw_machine(), **({"n_samples": 4} | options))


# Numerical safety


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (1, 7), (7, 1), (300, 200)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_sizes_and_scales_at_the_edge(visible, hidden, n_visible, n_hidden, scale):
    rbm = draw_machine(n_visible, n_hidden, visible, hidden, scale=scale)
    for n_samples in (1, 5):
        states = sample(rbm, n_samples, n_steps=70, rng=0)
        assert states.shape == (n_samples, n_visible)
        assert set(np.unique(states)) <= set(rbm.visible.levels)


def test_parameters_beyond_float32_are_refused():
    with pytest.raises(ValueError, match=r"below 1e\+30 to be sampled in float32, got 1e\+200"):
        sample(RBM([[1e200]], 0.0, 0.0), 1)
