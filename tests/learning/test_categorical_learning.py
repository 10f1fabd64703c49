"""Learning with categorical units: gradients against differences, the gauge, checkpoints, all estimators."""

from __future__ import annotations

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.layout import Layout
from paramagnet.learning import centring, exact_gradient, log_likelihood_trajectory, loop, reused_slots
from paramagnet.learning.centring import Centre, hidden_factor
from paramagnet.learning.moments import append_ones, data_moments

Q, N, M = 3, 4, 3
HIDDEN = ["bit", "spin", "gaussian(0.5)", "categorical(2)"]
GRADIENTS = [pm.Exact(), pm.PCD(60, 3, n_relax=5), pm.CD(2), pm.Tempering(20, n_relax=4)]


def machine(hidden="bit", visible=f"categorical({Q})", seed=0, scale=0.7):
    rng = np.random.default_rng(seed)
    width = 2 if hidden.startswith("categorical") else 1
    return pm.RBM(
        scale * rng.normal(size=(Q * N, M * width)),
        scale * rng.normal(size=Q * N),
        scale * rng.normal(size=M * width),
        visible,
        hidden,
    )


def points(n=40, seed=1):
    return pm.sample_exact(machine(seed=7, scale=1.2), n, rng=seed)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_exact_gradient_against_differences(hidden):
    rbm, data = machine(hidden), points()
    layout = Layout.of(rbm)
    vector = layout.flatten(rbm)
    found = exact_gradient(rbm, data)
    assert found.weights.shape == rbm.weights.shape
    flat = np.concatenate((found.weights.ravel(), found.hidden_bias, found.visible_bias))
    step = 1e-3
    for k in range(layout.size):
        values = []
        for factor in (-2.0, -1.0, 1.0, 2.0):
            moved = vector.copy()
            moved[k] += factor * step
            values.append(pm.log_likelihood(layout.machine(moved), data).value)
        slope = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)
        assert flat[k] == pytest.approx(slope, abs=1e-10)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_data_averages_in_float32_are_those_in_float64(hidden):
    rbm, data = machine(hidden), append_ones(points(300))
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    wide = data_moments(layout, parameters, data)
    narrow = data_moments(layout, parameters, data.astype(np.float32), 1)
    assert np.allclose(narrow, wide, rtol=0.0, atol=2e-6)
    assert np.array_equal(narrow, data_moments(layout, parameters, data.astype(np.float32), 3))


def test_sampled_averages_are_those_of_the_machine():
    rbm = machine()
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    _, exact = pm.Exact().moments(layout, parameters, points(), None, None)
    for gradient in (pm.PCD(5_000, 5, n_relax=10), pm.Tempering(5_000, 3, n_replicas=3, n_relax=10)):
        state = gradient.start(layout, parameters, points(), np.random.default_rng(0), None)
        _, found = gradient.moments(layout, parameters, points(), state, None)
        assert np.abs(found.average - exact.average).max() < 5.0 * 0.5 / np.sqrt(5_000)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: type(gradient).__name__)
@pytest.mark.parametrize("centred", [False, True])
def test_training_raises_the_likelihood_and_keeps_the_gauge(gradient, centred):
    data = points(200)
    start = pm.initialize(
        N, M, visible="categorical(3)", scheme="xavier", visible_bias="data", data=data, rng=0
    )
    result = pm.train(
        start,
        data,
        epochs=25,
        gradient=gradient,
        optimizer=pm.Adam(0.03),
        batch_size=50,
        centred=centred,
        rng=0,
    )
    first, *_, last = result.history.log_likelihood
    assert last > first + 0.05
    assert np.abs(result.rbm.weights_by_state.sum(axis=1)).max() < 1e-14
    assert np.abs(result.rbm.bias_by_state.sum(axis=1)).max() < 1e-14


def test_the_gauge_can_be_left_alone():
    data = points(100)
    start = machine(visible="categorical(3, free)", scale=0.1)
    options = {"epochs": 3, "gradient": pm.Exact(), "optimizer": pm.SGD(0.1), "rng": 0}
    free = pm.train(start, data, **options)
    assert np.abs(free.rbm.weights_by_state.sum(axis=1)).max() > 1e-3
    fixed = pm.train(machine(scale=0.1), data, **options)
    assert np.abs(fixed.rbm.weights_by_state.sum(axis=1)).max() < 1e-14
    # One step of plain ascent moves the distribution alike, whatever is then done about the gauge.
    one = [
        pm.train(start, data, **options | {"epochs": 1}).history.log_likelihood[-1]
        for start in (machine(visible="categorical(3, free)", scale=0.1), machine(scale=0.1))
    ]
    assert one[0] == pytest.approx(one[1], abs=1e-12)


def test_hidden_categorical_units_learn_and_keep_the_gauge():
    data = points(200)
    start = pm.initialize(
        N, M, visible="categorical(3)", hidden="categorical(2)", scheme="xavier", visible_bias="data",
        data=data, rng=0,
    )  # fmt: skip
    for gradient in (pm.Exact(), pm.PCD(60, 3, n_relax=5)):
        result = pm.train(start, data, epochs=100, gradient=gradient, optimizer=pm.Adam(0.03), rng=0)
        assert result.history.log_likelihood[-1] > result.history.log_likelihood[0] + 0.02
        by_state = result.rbm.weights.reshape(Q * N, M, 2)
        assert np.abs(by_state.sum(axis=2)).max() < 1e-14
        assert np.abs(result.rbm.hidden_bias.reshape(M, 2).sum(axis=1)).max() < 1e-14


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: type(gradient).__name__)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("visible", ["bit", "categorical(3)"])
def test_hidden_categorical_units_go_on_bit_for_bit(visible, gradient, centred, tmp_path):
    """All estimators, with a checkpoint in the middle; the gauge of both layers holds all along."""
    data = points(120) if visible != "bit" else (points(120) > 0.0).astype(float)
    start = pm.initialize(
        N, M, visible=visible, hidden="categorical(3)", scheme="xavier", visible_bias="data", data=data, rng=1
    )
    options = {
        "epochs": 8, "gradient": gradient, "optimizer": pm.Adam(0.03), "batch_size": 40, "centred": centred,
        "rng": 5, "evaluate": 4,
    }  # fmt: skip
    whole = pm.train(start, data, **options)

    def stop(state):
        if state.update == 10:
            raise StopIteration

    path = tmp_path / "half.safetensors"
    pm.train(start, data, callback=stop, checkpoint=path, **options)
    again = pm.train(pm.load_checkpoint(path), data, **options)
    assert np.array_equal(again.state.parameters, whole.state.parameters)
    assert np.abs(whole.rbm.weights.reshape(-1, M, 3).sum(axis=2)).max() < 1e-14
    assert np.abs(whole.rbm.hidden_bias.reshape(M, 3).sum(axis=1)).max() < 1e-14
    assert whole.history.log_likelihood[-1] > whole.history.log_likelihood[0] - 0.05


def test_centred_steps_do_not_push_the_hidden_biases():
    """A part of the step that is the same for all states must not reach the hidden biases: all sites
    together would push them.
    """
    data, rate = points(200), 0.01
    start = machine(scale=0.01).to_zero_sum()
    means = start.visible.column_means(data)
    factor = max(1.0, float(np.abs(means - 1.0 / Q).sum()))
    assert hidden_factor(Layout.of(start), means) == pytest.approx(factor, abs=1e-12)
    options = {"epochs": 1, "gradient": pm.Exact(), "optimizer": pm.Adam(rate), "centred": True, "rng": 0}
    after = pm.train(start, data, **options).rbm
    change = after.weights - start.weights
    assert np.abs(change.reshape(N, Q, M).sum(axis=1)).max() < 1e-14
    pushed = after.hidden_bias - start.hidden_bias + means @ change
    assert np.abs(pushed).max() <= factor * rate * (1.0 + 1e-9)
    free, _ = start.change_units(visible="categorical(3, free)")
    same = pm.train(free, data, **options).rbm.to_zero_sum()
    assert np.allclose(same.weights, after.weights, rtol=0.0, atol=1e-14)
    assert np.allclose(same.hidden_bias, after.hidden_bias, rtol=0.0, atol=1e-14)
    assert np.allclose(same.visible_bias, after.visible_bias, rtol=0.0, atol=1e-14)


def test_two_states_have_the_factor_of_spins():
    means = np.array([0.1, 0.9, 0.6, 0.4])
    two = Layout(2, 3, pm.categorical(2), pm.BIT)
    spins = Layout(2, 3, pm.SPIN, pm.BIT)
    assert hidden_factor(two, means) == pytest.approx(hidden_factor(spins, np.array([0.8, -0.2])), abs=1e-12)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: type(gradient).__name__)
@pytest.mark.parametrize("centred", [False, True])
def test_a_resumed_run_equals_an_uninterrupted_one(gradient, centred, tmp_path):
    data = points(60).astype(int)
    options = {
        "gradient": gradient, "optimizer": pm.Adam(0.02), "batch_size": 25, "centred": centred, "rng": 3,
        "evaluate": [0, 4],
    }  # fmt: skip

    def stop(state):
        if state.update == 7:
            raise StopIteration

    path = tmp_path / "potts.checkpoint"
    pm.train(machine(), data, epochs=4, callback=stop, checkpoint=path, **options)
    resumed = pm.train(pm.load_checkpoint(path), data, epochs=4, **options)
    whole = pm.train(machine(), data, epochs=4, **options)
    assert np.array_equal(resumed.state.parameters, whole.state.parameters)
    assert resumed.history.log_likelihood[-1] == whole.history.log_likelihood[-1]


def test_the_same_run_for_any_number_of_threads():
    data = points(300)
    runs = [
        pm.train(machine(), data, epochs=2, gradient=pm.PCD(300, 4, n_threads=n), batch_size=100, rng=0)
        for n in (1, 3)
    ]
    assert np.array_equal(runs[0].state.parameters, runs[1].state.parameters)


def test_indicators_are_accepted_as_data():
    data = points(50)
    one_hot = (data[..., None] == np.arange(Q)).astype(np.int8)
    runs = [
        pm.train(machine(), each, epochs=2, gradient=pm.PCD(50, 2, n_relax=0), rng=0).state.parameters
        for each in (data, one_hot, one_hot.reshape(50, -1), data.astype(np.uint8))
    ]
    assert all(np.array_equal(runs[0], other) for other in runs[1:])


def test_absent_states_stay_finite_in_a_long_run():
    data = np.zeros((20, N))
    data[:10, 0] = 1.0
    start = pm.initialize(
        N, M, visible="categorical(5)", scheme="xavier", visible_bias="data", data=data, rng=0
    )
    result = pm.train(start, data, epochs=200, optimizer=pm.Adam(0.05), rng=0, evaluate=[0, 200])
    assert np.isfinite(result.state.parameters).all()
    assert result.history.log_likelihood[-1] > -0.8  # ln 2 = 0.693 is the best


def test_estimates_start_from_the_frequencies_of_the_data():
    data = points(100)
    log_z = pm.LogZ(method="mais", start="data", n_samples=200, n_temperatures=100)
    result = pm.train(machine(), data, epochs=1, gradient=pm.PCD(50, 2, n_relax=0), log_z=log_z, rng=0)
    exact = pm.log_likelihood(result.rbm, data).value
    assert abs(result.history.log_likelihood[-1] - exact) < 5.0 * result.history.error[-1]


def test_trajectory_of_likelihoods():
    data = points(100)
    states = [
        state
        for state in pm.training_steps(machine(scale=0.05), data, epochs=3, gradient=pm.CD(1), rng=0)
        if state.batch == 0
    ]
    found = log_likelihood_trajectory(states, data, n_chains=500, rng=0)
    exact = [pm.log_likelihood(state.rbm, data).value for state in states]
    assert np.abs(np.asarray(found.log_likelihood) - exact).max() < 0.1


REUSING = [
    {},
    {"sample_weight": np.random.default_rng(5).uniform(0.2, 3.0, 60)},
    {"centred": True},
    {"centred": True, "sample_weight": np.arange(1.0, 61.0)},
    {"optimizer": pm.SGD(0.05)},
    {"optimizer": pm.SGD(0.05, momentum=0.8), "centred": pm.Centring(0.3, factor=2.0)},
]


@pytest.mark.parametrize("gradient", [pm.PCD(60, 3, n_relax=0), pm.CD(2)], ids=["PCD", "CD"])
@pytest.mark.parametrize("hidden", ["bit", "drelu"])
@pytest.mark.parametrize("further", REUSING, ids=lambda further: ", ".join(map(str, further)) or "plain")
def test_overwritten_slots_change_no_bit(gradient, hidden, further, monkeypatch):
    """`held` keeps all states of a run, so that none of them may be overwritten."""
    data, entered = points(60), []
    options = {
        "epochs": 3, "gradient": gradient, "batch_size": 25, "weight_decay": 0.1, "rng": 3,
        "evaluate": [1, 3], **further,
    }  # fmt: skip
    held = []
    plain = pm.train(machine(hidden), data, callback=held.append, **options)
    monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 0)
    monkeypatch.setattr(centring, "_BLOCK", 7)
    monkeypatch.setattr(reused_slots, "_BLOCK", 7)
    advance = loop.advance_reusing

    def reuse(*arguments):
        done = advance(*arguments)
        entered.append(done is not None)
        return done

    monkeypatch.setattr(loop, "advance_reusing", reuse)
    reused = pm.train(machine(hidden), data, **options)
    assert entered == [True] * (9 - 2)  # not where a state is measured
    assert np.array_equal(plain.state.parameters, reused.state.parameters)
    for one, two in zip(plain.state.optimizer_state.slots, reused.state.optimizer_state.slots, strict=True):
        assert np.array_equal(one, two)
    if "centred" in further:
        assert np.array_equal(plain.state.offsets, reused.state.offsets)
    entered.clear()
    again = pm.train(machine(hidden), data, callback=held.append, **options)
    assert not entered
    assert np.array_equal(plain.state.parameters, again.state.parameters)
    assert np.array_equal(plain.history.gradient_norm, again.history.gradient_norm, equal_nan=True)


def test_changes_of_the_weights_take_the_place_of_the_parameters_before(monkeypatch):
    """Unless somebody holds these: then they stay as they are."""
    monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 0)
    rooms, correct = [], Centre.correct_biases

    def look(centre, layout, parameters, moved, offsets, room=None):
        rooms.append(room is parameters)
        correct(centre, layout, parameters, moved, offsets, room)

    monkeypatch.setattr(Centre, "correct_biases", look)
    options = {"gradient": pm.PCD(60, 3, n_relax=0), "batch_size": 20, "centred": True, "rng": 3}
    options |= {"evaluate": [2], "guard": False}
    plain = pm.train(machine(), points(60), epochs=2, **options)
    assert rooms == [True] * 5 + [False]  # not where the state is measured
    kept = []

    def keep(state):
        kept.append((state.parameters, state.parameters.copy()))

    rooms.clear()
    watched = pm.train(machine(), points(60), epochs=2, callback=keep, **options)
    assert rooms == [False] * 6
    assert all(np.array_equal(*pair) for pair in kept)
    assert np.array_equal(plain.state.parameters, watched.state.parameters)


def test_slots_stay_as_they_are_where_the_parameters_might_leave_their_range(monkeypatch):
    monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 0)
    for optimizer in (pm.SGD(1e31), pm.SGD(1e31, momentum=0.5), pm.Adam(1e31)):
        for centred in (False, True):
            options = {"optimizer": optimizer, "centred": centred, "evaluate": [], "rng": 0, "guard": False}
            with pytest.raises(pm.DivergenceError) as caught:
                pm.train(machine(), points(60), epochs=2, gradient=pm.PCD(60, 3, n_relax=0), **options)
            assert caught.value.state.update == 0
            assert np.array_equal(caught.value.state.rbm.weights, machine().weights)


def test_trajectory_of_a_machine_too_large_for_exact_sums():
    data = np.random.default_rng(0).integers(4, size=(60, 20)).astype(np.float64)
    start = pm.initialize(
        20, 40, visible="categorical(4)", scheme="hinton", visible_bias="data", data=data, rng=0
    )
    states = [*pm.training_steps(start, data, epochs=1, gradient=pm.CD(1), rng=0, evaluate=[])]
    found = log_likelihood_trajectory(states, data, n_chains=100, n_temperatures=100, rng=0)
    estimate = pm.estimate_log_partition(states[-1].rbm, rng=1, n_samples=200, n_temperatures=200)
    expected = pm.log_likelihood(states[-1].rbm, data, log_partition=estimate)
    assert found.log_likelihood[-1] == pytest.approx(expected.value, abs=6.0 * expected.error + 0.02)


@pytest.mark.parametrize("hidden", ["bit", "categorical(3)"])
def test_notes_at_the_end_know_visible_labels(hidden):
    """A machine that hardly moves: its hidden units are idle, and its chains have other frequencies."""
    data = np.random.default_rng(0).choice(3, size=(200, 6), p=(0.1, 0.2, 0.7)).astype(np.float64)
    start = pm.initialize(6, 4, visible="categorical(3)", hidden=hidden, scheme="hinton", rng=0)
    options = {"gradient": pm.PCD(100, 1, 5, n_threads=1), "optimizer": pm.SGD(1e-9), "guard": False}
    notes = pm.train(start, data, epochs=200, evaluate=(), rng=1, **options).notes
    found = [
        any(words in note for note in notes)
        for words in ("4 of 4 hidden units are idle", "of 18 states of visible units differ")
    ]
    assert found == [hidden == "bit"] * 2, notes  # hidden labels are no numbers
