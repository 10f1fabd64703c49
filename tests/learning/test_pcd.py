"""Sampled gradients: averages against their formulas, resuming bit for bit, and what PCD training reaches."""

import functools
import itertools
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import draw_data, draw_machine
from paramagnet.data.datasets import load_dataset
from paramagnet.exact.sums import exact_moments, sample_exact
from paramagnet.initializers import initialize
from paramagnet.layout import Layout
from paramagnet.learning.gradients.contrastive import CD
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.loop import DivergenceError
from paramagnet.learning.moments import append_ones, chain_moments, data_moments
from paramagnet.learning.optimizers import SGD, Adam
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.training import train, training_steps
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of

NAMES = ("weights", "visible_bias", "hidden_bias")
COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))
SMALL = PCD(n_chains=40, n_steps=3, n_relax=5)


def assert_same_run(one, other):
    assert np.array_equal(one.parameters, other.parameters)
    assert (one.epoch, one.batch, one.update) == (other.epoch, other.batch, other.update)
    assert np.array_equal(one.chains.visible, other.chains.visible)
    assert (one.chains.seed, one.chains.sweep) == (other.chains.seed, other.chains.sweep)
    for name in ("epoch", "log_likelihood", "validation", "gradient_norm", "error"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))


# Averages


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_averages_over_chains_use_the_means_of_hidden_units(visible, hidden):
    rbm = draw_machine(visible=visible, hidden=hidden)
    layout, layers = Layout.of(rbm), layers_of(rbm)
    start = Chains.start(rbm.visible, (50, 5), np.random.default_rng(0))
    chains = run_sweeps(layers, start, 7)
    ours = chain_moments(layout, chains, layers[1])
    exact = data_moments(layout, layout.flatten(rbm), append_ones(chains.visible.astype(float)))
    np.testing.assert_allclose(ours, exact, atol=1e-6)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_averages_over_stationary_chains_are_those_of_the_machine(visible, hidden):
    """And without the hidden bias they would not be."""
    rbm, n_chains = draw_machine(visible=visible, hidden=hidden, seed=1), 100_000
    layout, moments = Layout.of(rbm), exact_moments(rbm)
    exact = np.concatenate((moments.products.ravel(), moments.hidden, moments.visible))
    rng = np.random.default_rng(0)
    chains = Chains.from_states(sample_exact(rbm, n_chains, rng=rng), rng)
    bad = RBM(rbm.weights, rbm.visible_bias, 0.0, rbm.visible, rbm.hidden)
    for machine in (rbm, bad):
        layers = layers_of(machine)
        ours = chain_moments(layout, run_sweeps(layers, chains, 5), layers[1])
        worst = np.max(np.abs(ours - exact)) * np.sqrt(n_chains)  # a unit varies by at most 1
        assert worst < 5.0 if machine is rbm else worst > 20.0


def test_chains_stay_in_float32():
    """float64 creeping in by promotion would double the time."""
    rbm = draw_machine()
    for state in training_steps(rbm, draw_data(), epochs=2, gradient=SMALL, rng=0):
        assert state.chains.visible.dtype == np.float32
    assert all(a.dtype == np.float32 for layer in layers_of(rbm) for a in (layer.weights, layer.shift))


# Resuming


@pytest.mark.parametrize("gradient", [SMALL, CD(2)], ids=["PCD", "CD"])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_resuming_equals_an_uninterrupted_run(tmp_path, gradient, batch_size):
    options = {
        "epochs": 3,
        "gradient": gradient,
        "batch_size": batch_size,
        "optimizer": Adam(0.01),
        "evaluate": 1,
    }
    whole = list(training_steps(draw_machine(), draw_data(), rng=4, validation=draw_data(9), **options))
    for state in whole:
        state.save(tmp_path / "run.safetensors")
        loaded = load_checkpoint(tmp_path / "run.safetensors")
        assert_same_run(loaded, state)
        ended = train(loaded, draw_data(), validation=draw_data(9), **options).state
        assert_same_run(ended, whole[-1])


def test_runs_are_the_same_for_any_number_of_threads():
    runs = [
        train(
            draw_machine(17, 11),
            draw_data(50, 17),
            epochs=4,
            gradient=PCD(n_chains=300, n_steps=5, n_relax=10, n_threads=n),
            rng=1,
        ).state
        for n in (1, 2, None)
    ]
    assert_same_run(runs[0], runs[1])
    assert_same_run(runs[0], runs[2])


def test_seeds_make_the_run():
    runs = [train(draw_machine(), draw_data(), epochs=2, gradient=SMALL, rng=seed).rbm for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert not np.array_equal(runs[0].weights, runs[2].weights)


def test_measuring_leaves_the_run_as_it_is():
    runs = [
        train(draw_machine(), draw_data(), epochs=4, gradient=SMALL, rng=1, evaluate=evaluate).rbm
        for evaluate in ([], 1)
    ]
    assert np.array_equal(runs[0].weights, runs[1].weights)


def test_states_that_were_yielded_stay_true():
    states = list(training_steps(draw_machine(), draw_data(), epochs=3, gradient=SMALL, rng=1))
    sweeps = [state.chains.sweep for state in states]
    assert sweeps == [5, 8, 11, 14]
    again = list(training_steps(states[1], draw_data(), epochs=3, gradient=SMALL))
    assert_same_run(again[-1], states[-1])


def test_other_settings_are_refused():
    state = train(draw_machine(), draw_data(), epochs=1, gradient=SMALL, rng=1).state
    for other in (PCD(n_chains=41, n_steps=3, n_relax=5), CD(), Exact()):
        with pytest.raises(
            ValueError, match=r"`gradient` must be that of the run to go on with, PCD\(n_chains=40"
        ):
            train(state, draw_data(), epochs=2, gradient=other)


def test_damaged_chains_are_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    state = train(draw_machine(), draw_data(), epochs=1, gradient=SMALL, rng=1).state
    state.save(path)
    arrays = load_file(path)
    arrays["chains"][0, 0] = 0.5
    content = {"n_visible": 5, "n_hidden": 3, "visible": "spin", "hidden": "bit", "epoch": 1, "batch": 0}
    content |= {"n_steps": 1, "rng_state": state.rng_state, "seconds": 0.0, "settings": state.settings}
    content["chains"] = {"seed": state.chains.seed, "sweep": state.chains.sweep}
    metadata = {"format": "paramagnet.checkpoint", "version": "1", "state": json.dumps(content)}
    save_file(arrays, path, metadata)
    with pytest.raises(ValueError, match=r"damaged checkpoint.*the chains hold other values"):
        load_checkpoint(path)


# What training reaches


@functools.cache
def exact_toy_run(hidden):
    data = load_dataset("toy").data
    start = initialize(20, 10, hidden=hidden, rng=3)
    return data, start, train(start, data, epochs=150, optimizer=Adam(0.01), gradient=Exact())


@pytest.mark.parametrize("hidden", ["bit", "spin"])
def test_pcd_reaches_the_likelihood_of_exact_learning(hidden):
    data, start, exact = exact_toy_run(hidden)
    result = train(start, data, epochs=150, optimizer=Adam(0.01), gradient=PCD(), rng=0)
    assert exact.history.log_likelihood[-1] > exact.history.log_likelihood[0] + 4.0
    np.testing.assert_allclose(result.history.log_likelihood, exact.history.log_likelihood, atol=0.05)
    assert np.all(result.history.error == 0.0)  # small enough for an exact ln Z
    assert result.history.log_likelihood[-1] == pytest.approx(float(log_likelihood(result.rbm, data)))


def test_cd_learns_less_well_than_pcd():
    data, start, exact = exact_toy_run("bit")
    result = train(start, data, epochs=150, optimizer=Adam(0.01), gradient=CD(), rng=0)
    gained = result.history.log_likelihood[-1] - result.history.log_likelihood[0]
    assert 2.0 < gained < exact.history.log_likelihood[-1] - exact.history.log_likelihood[0]


def test_large_machines_are_measured_by_mais(caplog):
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(10, 40))
    start = RBM(0.05 * rng.normal(size=(40, 35)), 0.0, 0.0)
    gradient = PCD(n_chains=100, n_steps=5, n_relax=20)
    result = train(start, data, epochs=2, evaluate=[0, 2], gradient=gradient, validation=data[:3], rng=0)
    assert np.all((result.history.error > 0.0) & (result.history.error < 0.05))
    assert result.history.log_likelihood[0] == pytest.approx(-40 * np.log(2.0), abs=1.0)
    assert np.isfinite(result.history.validation).all()


# Edges


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (1, 4), (4, 1)])
@pytest.mark.parametrize("gradient", [PCD(1, 1, 0), CD()], ids=["PCD", "CD"])
def test_single_units_and_single_chains(n_visible, n_hidden, gradient):
    data = draw_data(1, n_visible)
    result = train(draw_machine(n_visible, n_hidden), data, epochs=3, gradient=gradient, rng=0)
    assert np.isfinite(result.history.log_likelihood).all()


def test_chains_stuck_in_one_state_do_no_harm():
    rbm = RBM(np.full((4, 3), 100.0), 100.0, 100.0)
    result = train(rbm, draw_data(8, 4), epochs=3, gradient=SMALL, rng=0)
    assert np.isfinite(result.history.log_likelihood).all()


def test_divergence_is_said_in_words():
    with pytest.raises(DivergenceError, match=r"diverged.*smaller learning rate"):
        train(draw_machine(), draw_data(), epochs=3, optimizer=SGD(1e40), gradient=SMALL, rng=0)


def test_a_measurement_of_parameters_that_are_too_large_is_a_divergence():
    """Finite ones, which sampled updates go on with, and exact sums refuse; the last state is kept."""
    points = np.where(np.random.default_rng(0).random((60, 10)) < 0.7, 1.0, -1.0)
    options = {"epochs": 3, "batch_size": 20, "rng": 0, "gradient": PCD(20, 1, 5), "weight_decay": 1e6}
    with pytest.raises(DivergenceError, match=r"diverged in epoch 3\. .* at most 1e\+12 for exact") as caught:
        train(initialize(10, 5, rng=0), points, evaluate=[3], **options)
    assert caught.value.state.update == 8


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PCD(n_chains=0), "`n_chains` must be a positive integer, got 0"),
        (lambda: PCD(n_steps=0), "`n_steps` must be a positive integer, got 0"),
        (lambda: PCD(n_relax=-1), "`n_relax` must be an integer of at least 0, got -1"),
        (lambda: PCD(n_threads=0), "`n_threads` must be a positive integer, got 0"),
        (lambda: CD(0), "`n_steps` must be a positive integer, got 0"),
        (lambda: CD(n_threads=0), "`n_threads` must be a positive integer, got 0"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("gradient", [PCD, CD])
def test_updates_are_the_same_for_any_number_of_threads(gradient):
    """The averages over a batch of several blocks among them."""
    data = 2.0 * (np.random.default_rng(0).random((700, 12)) < 0.4) - 1.0
    rbm = initialize(12, 9, rng=1)
    settings = {"n_chains": 130, "n_relax": 5} if gradient is PCD else {}
    runs = [
        train(
            rbm,
            data,
            epochs=2,
            gradient=gradient(n_steps=2, n_threads=n_threads, **settings),
            evaluate=(),
            rng=2,
        )
        for n_threads in (1, 3)
    ]
    np.testing.assert_array_equal(runs[0].rbm.weights, runs[1].rbm.weights)
    np.testing.assert_array_equal(runs[0].rbm.hidden_bias, runs[1].rbm.hidden_bias)


def test_blocks_of_points_have_the_average_of_all():
    rng = np.random.default_rng(3)
    for hidden in ("spin", "bit", "gaussian"):
        rbm = RBM(rng.normal(0, 0.5, (6, 4)), 0.1, 0.2, hidden=hidden)
        layout, points = Layout.of(rbm), append_ones(rng.choice([-1.0, 1.0], (613, 6)))
        whole = data_moments(layout, layout.flatten(rbm), points)
        blocks = data_moments(layout, layout.flatten(rbm), points.astype(np.float32), 2)
        np.testing.assert_allclose(blocks, whole, atol=2e-6)
