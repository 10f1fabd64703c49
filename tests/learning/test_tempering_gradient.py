"""`Tempering` as a gradient: averages, replicas that follow the machine, resuming bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest

import paramagnet as pm
from conftest import draw_data, draw_machine, make_machine
from own_units import Tilted, Trit
from paramagnet.exact.sums import exact_moments
from paramagnet.layout import Layout
from paramagnet.learning.gradients import tempered
from paramagnet.learning.gradients.base import ArrayState
from paramagnet.learning.gradients.tempered import Tempering
from paramagnet.learning.moments import append_ones, data_moments
from paramagnet.learning.preparing import take_over
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.training import train, training_steps
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains

SMALL = Tempering(n_chains=30, n_steps=2, n_relax=8)
UNITS = ("spin", "bit", "gaussian")


def points_of(unit, n_points=40, n_visible=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_points, n_visible)) if unit == "gaussian" else draw_data(n_points, n_visible, (
        (-1.0, 1.0) if unit == "spin" else (0.0, 1.0)
    ))  # fmt: skip


@pytest.mark.parametrize("path", ["weights", "energy"])
@pytest.mark.parametrize(("visible", "hidden"), list(itertools.product(UNITS, repeat=2)))
def test_averages_are_those_of_the_last_machine(visible, hidden, path):
    rbm = make_machine(visible, hidden, 5, 3, scale=0.15)
    layout, points = Layout.of(rbm), points_of(visible)
    parameters = layout.flatten(rbm)
    gradient = dataclasses.replace(SMALL, path=path)
    state = gradient.start(layout, parameters, points, np.random.default_rng(0), None)
    moved, moments = gradient.moments(layout, parameters, points, state, None)
    expected = data_moments(layout, parameters, append_ones(moved.chains.visible.astype(float)))
    np.testing.assert_allclose(moments.average, expected, atol=1e-5)
    assert moments.log_z is None
    if visible == hidden == "gaussian":  # samples, but no training
        return
    trained = train(rbm, points, epochs=2, gradient=gradient, optimizer=pm.SGD(0.01), batch_size=20, rng=0)
    assert np.isfinite(trained.rbm.weights).all()


def test_units_of_ones_own_and_their_numbers():
    points = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(40, 5))
    for unit in (Trit(), Tilted("three", (-1.0, 0.0, 1.0))):
        rbm = RBM(0.3 * np.random.default_rng(0).normal(size=(5, 3)), 0.0, 0.0, unit, unit)
        trained = train(rbm, points, epochs=3, gradient=SMALL, batch_size=20, rng=0).rbm
        assert not np.array_equal(trained.weights, rbm.weights)
        assert all(value.any() for value in trained.visible_parameters.values())


def test_chains_in_one_mode_find_the_other():
    """A mode up and a mode down; PCD that has all chains in one of them has other averages for ever."""
    rbm = RBM(np.full((16, 1), 1.5), -0.04, 0.0, "spin", "spin")
    layout, points = Layout.of(rbm), np.ones((4, 16))
    parameters, exact = layout.flatten(rbm), exact_moments(rbm).visible.mean()
    gradient = Tempering(n_chains=500, n_steps=20, path="energy", n_relax=200)
    state = gradient.start(layout, parameters, points, np.random.default_rng(0), None)
    ones = np.ones_like(state.replicas.visible)
    state = dataclasses.replace(state, replicas=dataclasses.replace(state.replicas, visible=ones))
    for _ in range(20):
        state, moments = gradient.moments(layout, parameters, points, state, None)
    persistent, chains = pm.PCD(500, 20), Chains.at(ones[0], 1)
    for _ in range(20):
        chains, others = persistent.moments(layout, parameters, points, chains, None)
    assert -0.6 < exact < -0.3
    assert others.average[-16:].mean() > 0.8
    assert abs(moments.average[-16:].mean() - exact) < 4.0 / np.sqrt(500)
    assert state.round_trips > 100


def test_replicas_follow_the_machine():
    """A machine that grows gets more replicas; their swaps keep the acceptance that is wanted."""
    rng = np.random.default_rng(0)
    weights = 0.5 * rng.normal(size=(40, 20))
    layout, points = Layout.of(RBM(weights, 0.0, 0.0)), draw_data(50, 40)
    gradient = Tempering(n_chains=60, path="energy", n_relax=40)
    first = layout.flatten(RBM(0.02 * weights, 0.0, 0.0))
    state = gradient.start(layout, first, points, rng, None)
    assert len(state.scales) == 2
    last = layout.flatten(RBM(weights, 0.0, 0.0))
    for _ in range(500):
        state, _ = gradient.moments(layout, last, points, state, None)
    assert len(state.scales) >= 5
    assert state.replicas.visible.shape == (len(state.scales), 60, 40)
    assert 0.15 < state.acceptance.min() <= state.acceptance.max() < 0.6
    assert (np.diff(state.scales) > 0.0).all()
    fixed = dataclasses.replace(gradient, n_replicas=3)
    state = fixed.start(layout, last, points, rng, None)
    assert len(state.scales) == 3
    assert fixed.fits(state)
    assert not dataclasses.replace(fixed, n_replicas=4).fits(state)
    assert not dataclasses.replace(fixed, n_chains=50).fits(state)
    assert not fixed.fits(None)


# The same bits


def assert_same_state(one, other):
    assert np.array_equal(one.parameters, other.parameters)
    kept, others = one.gradient_state, other.gradient_state
    assert kept.to_facts() == others.to_facts()
    for name, array in kept.to_arrays().items():
        assert np.array_equal(array, others.to_arrays()[name]), name


@pytest.mark.parametrize("stop", [1, 7, 8, 13])
@pytest.mark.parametrize("n_replicas", ["auto", 3])
def test_resuming_equals_an_uninterrupted_run(stop, n_replicas, tmp_path, monkeypatch):
    """Replicas are placed anew every four updates, with the swaps since then in the checkpoint."""
    monkeypatch.setattr(tempered, "ROUNDS_PER_PLACEMENT", 8)
    gradient = dataclasses.replace(SMALL, n_replicas=n_replicas)
    options = {"gradient": gradient, "optimizer": pm.Adam(0.05), "batch_size": 6, "rng": 1}
    rbm, data = draw_machine(), draw_data()
    whole = train(rbm, data, epochs=5, **options)

    def end(state):
        if state.update == stop:
            raise StopIteration

    path = tmp_path / "half.checkpoint"
    train(rbm, data, epochs=5, callback=end, checkpoint=path, **options)
    loaded = load_checkpoint(path)
    assert loaded.update == stop
    assert isinstance(loaded.gradient_state, ArrayState)
    resumed = train(loaded, data, epochs=5, **options)
    assert_same_state(whole.state, resumed.state)
    assert whole.state.gradient_state.replicas.round_trips > 0
    lengths = {len(s.gradient_state.scales) for s in training_steps(rbm, data, epochs=5, **options)}
    assert lengths == {3} if n_replicas == 3 else len(lengths) >= 1


def test_any_number_of_threads_gives_the_same_bits():
    rbm, data = make_machine("spin", "bit", 12, 7), draw_data(40, 12)
    runs = [
        train(
            rbm, data, epochs=3, rng=1, batch_size=20,
            gradient=Tempering(n_chains=220, n_relax=8, n_threads=n_threads),
        ).state
        for n_threads in (1, 2, 5)
    ]  # fmt: skip
    for other in runs[1:]:
        assert_same_state(runs[0], other)


def test_a_state_goes_along_to_other_data():
    rbm, data = draw_machine(), draw_data()
    options = {"gradient": SMALL, "optimizer": pm.SGD(0.1), "batch_size": 10, "weight_decay": 0.0}
    state = train(rbm, data, epochs=2, rng=0, **options).state
    assert take_over(state, draw_data(seed=5), **options).gradient_state is state.gradient_state
    other = {**options, "gradient": dataclasses.replace(SMALL, n_chains=7)}
    assert take_over(state, draw_data(seed=5), **other).gradient_state.replicas.visible.shape[1] == 7


# Learning


def test_likelihoods_come_near_those_of_exact_gradients():
    """On points near two opposite patterns."""
    rng = np.random.default_rng(0)
    pattern = rng.choice([-1.0, 1.0], size=16)
    data = (
        pattern
        * rng.choice([-1.0, 1.0], size=(200, 1))
        * rng.choice([-1.0, 1.0], size=(200, 16), p=[0.05, 0.95])
    )
    start = pm.initialize(16, 4, rng=0)
    options = {"epochs": 120, "optimizer": pm.Adam(0.005), "batch_size": 50, "rng": 0}
    exact, ours = (
        pm.log_likelihood(train(start, data, gradient=gradient, **options).rbm, data).value
        for gradient in (pm.Exact(), Tempering(n_steps=5, n_relax=40))
    )
    assert ours > exact - 0.3
    independent = -16 * np.log(2.0)
    assert exact > independent + 5.0


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_chains": 0}, "`n_chains` must be a positive integer, got 0"),
        ({"n_steps": 0}, "`n_steps` must be a positive integer, got 0"),
        ({"n_replicas": 1}, "`n_replicas` must be an integer of at least 2, got 1"),
        ({"n_replicas": 201}, "`n_replicas` must be an integer of at least 2 and at most 200, got 201"),
        ({"n_replicas": "3"}, "`n_replicas` must be 'auto' or an integer of at least 2, got '3'"),
        ({"n_replicas": np.nan}, "`n_replicas` must be an integer of at least 2, got nan"),
        ({"acceptance": -0.1}, "`acceptance` must lie between 0 and 1, both excluded, got -0.1"),
        ({"acceptance": 1}, "`acceptance` must lie between 0 and 1, both excluded, got 1"),
        ({"acceptance": np.nan}, "`acceptance` must be finite, got nan"),
        ({"path": "trajectory"}, "`path` must be 'weights' or 'energy', got 'trajectory'"),
        ({"n_relax": -1}, "`n_relax` must be an integer of at least 0, got -1"),
        ({"n_threads": 0}, "`n_threads` must be a positive integer, got 0"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Tempering(**options)


def test_a_checkpoint_of_other_shape_is_refused():
    rbm, data = draw_machine(), draw_data()
    state = train(rbm, data, epochs=1, gradient=SMALL, rng=0).state.gradient_state
    arrays = {**state.to_arrays(), "scales": np.linspace(0.0, 1.0, 9)}
    with pytest.raises(ValueError, match="must hold 30 states of 5 units for each of 9 replicas, got"):
        SMALL.restore(Layout.of(rbm), ArrayState(arrays, state.to_facts()))


def test_constant_features_train():
    data = draw_data()
    data[:, 0] = 1.0
    for path in ("weights", "energy"):
        gradient = dataclasses.replace(SMALL, path=path)
        trained = train(draw_machine(), data, epochs=5, gradient=gradient, rng=0).rbm
        assert np.isfinite(trained.weights).all()
