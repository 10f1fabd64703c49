"""Training: updates against their formulas, resuming bit for bit, histories, checkpoints, failures."""

import itertools
import json
import logging
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import draw_data, draw_machine
from paramagnet.learning.gradients.contrastive import CD
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact, exact_gradient
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.loop import DivergenceError
from paramagnet.learning.optimizers import SGD, Adam
from paramagnet.learning.state import Checkpoint, load_checkpoint
from paramagnet.learning.training import train, training_steps
from paramagnet.rbm import RBM

NAMES = ("weights", "visible_bias", "hidden_bias")
COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))


def assert_same_machine(one, other):
    for name in NAMES:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def assert_same_run(one, other):
    """Bit for bit, but for the time it took."""
    assert_same_machine(one.rbm, other.rbm)
    assert (one.epoch, one.batch, one.update) == (other.epoch, other.batch, other.update)
    assert one.rng_state == other.rng_state
    for a, b in zip(one.optimizer_state.slots, other.optimizer_state.slots, strict=True):
        assert np.array_equal(a, b)
    for name in ("epoch", "log_likelihood", "validation", "gradient_norm", "weight_norm"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))


# Updates against their formulas


class SlowAdam:
    """Adam, one parameter array at a time, as its paper has it."""

    def __init__(self, rate):
        self.rate, self.t, self.m, self.s = rate, 0, {}, {}

    def __call__(self, rbm, gradient):
        self.t += 1
        new = {}
        for name in NAMES:
            g = getattr(gradient, name)
            self.m[name] = 0.9 * self.m.get(name, 0.0) + 0.1 * g
            self.s[name] = 0.999 * self.s.get(name, 0.0) + 0.001 * g**2
            m_hat, s_hat = self.m[name] / (1 - 0.9**self.t), self.s[name] / (1 - 0.999**self.t)
            new[name] = getattr(rbm, name) + self.rate * m_hat / (np.sqrt(s_hat) + 1e-8)
        return RBM(**new, visible=rbm.visible, hidden=rbm.hidden)


class SlowMomentum:
    def __init__(self, rate, momentum, decay=0.0):
        self.rate, self.momentum, self.decay, self.u = rate, momentum, decay, {}

    def __call__(self, rbm, gradient):
        new = {}
        for name in NAMES:
            self.u[name] = self.momentum * self.u.get(name, 0.0) + getattr(gradient, name)
            decay = self.decay if name == "weights" else 0.0
            new[name] = getattr(rbm, name) + self.rate * (self.u[name] - decay * getattr(rbm, name))
        return RBM(**new, visible=rbm.visible, hidden=rbm.hidden)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(
    ("optimizer", "slow", "decay"),
    [
        (Adam(0.05), SlowAdam(0.05), 0.0),
        (SGD(0.2), SlowMomentum(0.2, 0.0), 0.0),
        (SGD(0.1, momentum=0.8), SlowMomentum(0.1, 0.8), 0.0),
        (SGD(0.1, momentum=0.8), SlowMomentum(0.1, 0.8, decay=0.3), 0.3),
    ],
)
def test_full_batch_updates_follow_the_formulas(optimizer, slow, decay, visible, hidden):
    slow = type(slow)(**{k: getattr(slow, k) for k in ("rate", "momentum", "decay") if hasattr(slow, k)})
    rbm = draw_machine(visible=visible, hidden=hidden)
    data = draw_data(levels=rbm.visible.levels)
    steps = training_steps(rbm, data, epochs=6, optimizer=optimizer, weight_decay=decay)
    assert_same_machine(next(steps).rbm, rbm)
    for state in steps:
        rbm = slow(rbm, exact_gradient(rbm, data))
        for name in NAMES:
            np.testing.assert_allclose(getattr(state.rbm, name), getattr(rbm, name), rtol=1e-9, atol=1e-12)


def test_training_climbs():
    data = draw_data()
    result = train(draw_machine(), data, epochs=100, optimizer=SGD(0.1))
    assert (np.diff(result.history.log_likelihood) > 0).all()
    start = train(draw_machine(), data, epochs=0)
    assert_same_machine(start.rbm, draw_machine())


def test_the_learning_rate_may_be_a_schedule():
    indices = []

    def schedule(update):
        indices.append(update)
        return 0.1 if update < 3 else 0.0

    result = train(draw_machine(), draw_data(), epochs=6, optimizer=SGD(schedule))
    assert indices == list(range(6))
    assert_same_machine(result.rbm, train(draw_machine(), draw_data(), epochs=3, optimizer=SGD(0.1)).rbm)
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"`learning_rate` must return finite numbers.*for update 0"):
            train(draw_machine(), draw_data(), epochs=1, optimizer=SGD(lambda _, bad=bad: bad))


# Batches


def test_batches_go_through_all_points_once_an_epoch_in_a_new_order():
    rbm, data = draw_machine(), draw_data(23)
    states = list(training_steps(rbm, data, epochs=2, optimizer=SGD(0.1), batch_size=5, rng=3))[1:]
    assert [s.epoch for s in states] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert [s.batch for s in states] == [1, 2, 3, 4, 0, 1, 2, 3, 4, 0]
    orders = [states[0].order, states[5].order]
    assert not np.array_equal(*orders)
    for state, (order, batch) in zip(states, itertools.product(orders, range(5)), strict=True):
        points = data[order[5 * batch : 5 * batch + 5]]
        assert len(points) == (3 if batch == 4 else 5)
        gradient = exact_gradient(rbm, points)
        rbm = RBM(*(getattr(rbm, name) + 0.1 * getattr(gradient, name) for name in NAMES))
        for name in NAMES:
            np.testing.assert_allclose(getattr(state.rbm, name), getattr(rbm, name), rtol=1e-10, atol=1e-13)
    for order in orders:
        assert sorted(order) == list(range(23))


def test_seeds_decide_the_order_and_a_batch_of_all_points_needs_none():
    runs = [train(draw_machine(), draw_data(), epochs=2, batch_size=5, rng=rng).rbm for rng in (1, 1, 2)]
    assert_same_machine(runs[0], runs[1])
    assert not np.array_equal(runs[0].weights, runs[2].weights)
    generator = train(draw_machine(), draw_data(), epochs=2, batch_size=5, rng=np.random.default_rng(1)).rbm
    assert_same_machine(runs[0], generator)
    whole = [train(draw_machine(), draw_data(), epochs=2, batch_size=size).rbm for size in (None, 23, 1000)]
    assert_same_machine(whole[0], whole[1])
    assert_same_machine(whole[0], whole[2])


# Histories


def test_the_history_measures_what_it_says():
    rbm, data, held_out = draw_machine(), draw_data(), draw_data(9, seed=2)
    chosen = [0, 2, 5]
    result = train(rbm, data, epochs=7, optimizer=SGD(0.1), evaluate=chosen, validation=held_out)
    history = result.history
    assert history.epoch.tolist() == chosen
    assert len(history) == 3
    before = None
    for state in training_steps(rbm, data, epochs=7, optimizer=SGD(0.1), evaluate=()):
        if state.epoch in chosen:
            k = chosen.index(state.epoch)
            now = state.rbm
            assert history.log_likelihood[k] == pytest.approx(float(log_likelihood(now, data)), abs=1e-12)
            assert history.validation[k] == pytest.approx(float(log_likelihood(now, held_out)), abs=1e-12)
            assert history.weight_norm[k] == pytest.approx(np.sqrt(np.sum(now.weights**2)))
            if before is None:
                assert np.isnan(history.gradient_norm[k])
            else:
                gradient = exact_gradient(before, data)
                square = sum(np.sum(getattr(gradient, name) ** 2) for name in NAMES)
                assert history.gradient_norm[k] == pytest.approx(np.sqrt(square))
        before = state.rbm
    assert (np.diff(history.seconds) > 0).all()
    assert result.state.seconds >= history.seconds[-1]


@pytest.mark.parametrize(
    ("evaluate", "epochs", "measured"),
    [
        (None, 3, [0, 1, 2, 3]),
        (None, 101, [*range(0, 101, 2), 101]),
        (4, 10, [0, 4, 8, 10]),
        ([3, 1], 4, [1, 3]),
        (np.array([2]), 4, [2]),
        ((), 4, []),
        (range(5), 4, [0, 1, 2, 3, 4]),
    ],
)
def test_the_epochs_to_measure_can_be_chosen(evaluate, epochs, measured):
    result = train(draw_machine(), draw_data(), epochs=epochs, evaluate=evaluate)
    assert result.history.epoch.tolist() == measured
    assert np.isnan(result.history.validation).all()


def test_measuring_changes_nothing_in_the_run():
    runs = [
        train(draw_machine(), draw_data(), epochs=5, batch_size=7, evaluate=evaluate, rng=0)
        for evaluate in (1, (), 2)
    ]
    for run in runs[1:]:
        assert_same_machine(runs[0].rbm, run.rbm)


# Resuming


OPTIONS = [
    {"optimizer": Adam(0.05)},
    {"optimizer": Adam(0.05), "batch_size": 5},
    {"optimizer": SGD(0.1), "batch_size": 7},
    {"optimizer": SGD(0.1, momentum=0.9), "batch_size": 5, "weight_decay": 0.1},
    {"optimizer": Adam(0.05), "batch_size": 4, "evaluate": [1, 3], "validation": draw_data(6, seed=4)},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_resuming_equals_an_uninterrupted_run_bit_for_bit(tmp_path, options):
    rbm, data, path = draw_machine(), draw_data(), tmp_path / "run.safetensors"
    states = list(training_steps(rbm, data, epochs=4, rng=8, **options))
    for stop in range(len(states)):  # at every update, the middle of epochs included
        states[stop].save(path)
        state = load_checkpoint(path)
        assert_same_run(state, states[stop])
        later = list(training_steps(state, data, epochs=4, rng=99, **options))
        for one, other in zip(later, states[stop + 1 :], strict=True):
            assert_same_run(one, other)
        assert state.settings == states[-1].settings


def test_a_finished_run_can_be_trained_further():
    options = {"optimizer": Adam(0.05), "batch_size": 5, "rng": 0, "evaluate": 1}
    once = train(draw_machine(), draw_data(), epochs=6, **options)
    first = train(draw_machine(), draw_data(), epochs=2, **options)
    assert_same_run(train(first.state, draw_data(), epochs=6, **options).state, once.state)
    assert_same_run(train(once.state, draw_data(), epochs=6, **options).state, once.state)


def test_states_do_not_change_once_they_are_there():
    states, weights = [], []
    for state in training_steps(draw_machine(), draw_data(), epochs=3, batch_size=5):
        states.append(state)
        weights.append(state.rbm.weights)
    for state, former in zip(states, weights, strict=True):
        assert np.array_equal(state.rbm.weights, former)
        with pytest.raises(ValueError, match="read-only"):
            state.parameters[0] = 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": draw_data(seed=5)}, "`data` must be that of the run to go on with"),
        ({"data": draw_data(22)}, r"`data` must be that of the run to go on with, \(23, 5\).*got \(22, 5\)"),
        ({"batch_size": 6}, "`batch_size` must be that of the run to go on with, 5, got 6"),
        (
            {"optimizer": SGD(0.1)},
            r"`optimizer` must be .*Adam\(learning_rate=0.05.*got SGD\(learning_rate=0.1",
        ),
        ({"optimizer": Adam(0.06)}, "start a new run from the machine `state.rbm`"),
        ({"weight_decay": 0.5}, "`weight_decay` must be that of the run to go on with, 0.0, got 0.5"),
    ],
)
def test_going_on_with_other_options_is_refused(change, words):
    options = {"data": draw_data(), "epochs": 2, "optimizer": Adam(0.05), "batch_size": 5}
    state = train(draw_machine(), **options).state
    with pytest.raises(ValueError, match=words):
        train(state, **{**options, **change})


# Callbacks and checkpoints


def test_the_callback_sees_every_state_and_may_stop_the_run():
    seen = []

    def stop_at_five(state):
        seen.append(state.update)
        if state.update == 5:
            raise StopIteration

    result = train(draw_machine(), draw_data(), epochs=10, batch_size=6, callback=stop_at_five)
    assert seen == [0, 1, 2, 3, 4, 5]
    assert (result.state.update, result.state.epoch, result.finished) == (5, 1, False)
    assert train(draw_machine(), draw_data(), epochs=1).finished


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_leaves_a_checkpoint_to_go_on_from(tmp_path, failure):
    path = tmp_path / "run.safetensors"
    options = {"epochs": 4, "batch_size": 5, "rng": 0}

    def interrupt(state):
        if state.update == 7:
            raise failure

    with pytest.raises(failure):
        train(draw_machine(), draw_data(), callback=interrupt, checkpoint=path, **options)
    state = load_checkpoint(path)
    assert (state.update, state.epoch, state.batch) == (7, 1, 2)
    whole = train(draw_machine(), draw_data(), **options)
    assert_same_run(train(state, draw_data(), **options).state, whole.state)


def test_checkpoints_are_written_now_and_then_and_at_the_end(tmp_path):
    path = tmp_path / "run.safetensors"
    seen = []

    def look(state):
        seen.append(load_checkpoint(path).update)

    result = train(
        draw_machine(), draw_data(), epochs=3, callback=look, checkpoint=Checkpoint(path, seconds=0)
    )
    assert seen == [0, 1, 2, 3]
    seen.clear()
    result = train(draw_machine(), draw_data(), epochs=3, callback=look, checkpoint=path)
    assert seen == [0, 0, 0, 0]  # less than a minute has passed
    assert_same_run(load_checkpoint(path), result.state)
    assert os.listdir(tmp_path) == [path.name]


def test_a_disk_that_fills_up_keeps_the_former_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    former = []

    def fill_the_disk(state):
        if state.update == 3:
            former.append(path.read_bytes())
            monkeypatch.setattr(os, "fsync", fail)

    def fail(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        train(
            draw_machine(),
            draw_data(),
            epochs=9,
            callback=fill_the_disk,
            checkpoint=Checkpoint(path, seconds=0),
        )
    assert path.read_bytes() == former[0]
    assert load_checkpoint(path).update == 3
    assert os.listdir(tmp_path) == [path.name]


def test_a_checkpoint_that_cannot_be_written_is_an_error_before_any_training(tmp_path):
    def never(_):
        raise AssertionError

    for path, words in (
        (tmp_path / "no" / "run", "folder of `path` does not exist"),
        (tmp_path, "regular file"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            train(draw_machine(), draw_data(), epochs=1, callback=never, checkpoint=path)
    with pytest.raises(ValueError, match="`seconds` must be zero or positive, got -1"):
        Checkpoint("run", seconds=-1)


def damage(path, name=None, array=None, **content):
    arrays = load_file(path)
    state = load_checkpoint(path)
    header = {"format": "paramagnet.checkpoint", "version": "1"}
    saved = {
        "n_visible": 5, "n_hidden": 3, "visible": "spin", "hidden": "bit", "epoch": state.epoch,
        "batch": state.batch, "n_steps": state.update, "rng_state": state.rng_state, "seconds": 0.0,
        "settings": state.settings,
    }  # fmt: skip
    if name is not None:
        arrays[name] = array
    save_file(arrays, path, {**header, "state": json.dumps({**saved, **content})})


@pytest.mark.parametrize(
    "change",
    [
        {"name": "parameters", "array": np.zeros(7)},
        {"name": "parameters", "array": np.full(23, np.nan)},
        {"name": "slot1", "array": np.zeros((23, 1))},
        {"name": "order", "array": np.zeros(23)},
        {"name": "records", "array": np.zeros((2, 3))},
        {"visible": "potts"},
        {"n_visible": "many"},
        {"rng_state": 3},
        {"settings": None},
    ],
)
def test_damaged_checkpoints_are_refused(tmp_path, change):
    path = tmp_path / "run.safetensors"
    states = list(training_steps(draw_machine(), draw_data(), epochs=1, batch_size=5))
    states[2].save(path)
    damage(path)
    assert_same_run(load_checkpoint(path), states[2])
    damage(path, **change)
    with pytest.raises(ValueError, match="`path` is a damaged checkpoint"):
        load_checkpoint(path)


def test_machines_and_checkpoints_are_not_confused(tmp_path):
    machine, run = tmp_path / "machine.safetensors", tmp_path / "run.safetensors"
    draw_machine().save(machine)
    train(draw_machine(), draw_data(), epochs=1, checkpoint=run)
    with pytest.raises(
        ValueError, match=r"must be a file of format 'paramagnet.checkpoint'.*'paramagnet.rbm'"
    ):
        load_checkpoint(machine)
    with pytest.raises(
        ValueError, match=r"must be a file of format 'paramagnet.rbm'.*'paramagnet.checkpoint'"
    ):
        RBM.load(run)
    run.write_bytes(run.read_bytes()[:-8])
    with pytest.raises(ValueError, match="a damaged one"):
        load_checkpoint(run)


# Failures


def test_a_run_that_diverges_stops_and_says_when(tmp_path):
    path = tmp_path / "run.safetensors"
    rate = itertools.chain([0.1, 0.1, 0.1], itertools.repeat(1e308))
    with pytest.raises(
        DivergenceError, match=r"not finite.* after update \d+ \(epoch \d+\)\. .*smaller learning rate"
    ):
        train(
            draw_machine(),
            draw_data(),
            epochs=9,
            optimizer=SGD(lambda _: next(rate)),
            checkpoint=path,
            evaluate=(),
        )
    state = load_checkpoint(path)
    assert np.isfinite(state.parameters).all()
    assert state.update >= 3


def test_a_diverged_run_carries_its_last_finite_state():
    with pytest.raises(DivergenceError, match=r"than 1e\+308") as caught:
        train(draw_machine(), draw_data(), epochs=9, optimizer=SGD(1e308), evaluate=())
    assert isinstance(caught.value, ArithmeticError)
    assert np.isfinite(caught.value.state.rbm.weights).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": -1}, "`epochs` must be an integer of at least 0, got -1"),
        ({"epochs": 2.5}, "`epochs` must be an integer"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer, got 0"),
        ({"weight_decay": -0.1}, "`weight_decay` must be zero or positive"),
        ({"evaluate": 0}, "`evaluate` must be a positive integer, got 0"),
        ({"evaluate": [0.5]}, "`evaluate` must be an integer of at least 0, got 0.5"),
        ({"evaluate": [50]}, "`evaluate` must not go beyond `epochs` = 1, got 50"),
        ({"device": "gpu"}, "`device` must be 'cpu', 'torch:cpu', 'cuda', .* or 'mps', got 'gpu'"),
        ({"optimizer": "adam"}, "`optimizer` must be an `Adam` or an `SGD`, or .*, got 'adam'"),
        ({"gradient": "exact"}, r"`gradient` must be None, `Exact\(\)`, .*, got 'exact'"),
        ({"rng": -4}, "`rng` must be None, a non-negative integer"),
        ({"epochs": 2**70}, "`epochs` must be an integer of at least 0 and at most 1000000000"),
        ({"batch_size": 2**70}, "`batch_size` must be a positive integer and at most 9223372036854775807"),
        (
            {"epochs": 10**9, "evaluate": 1},
            "`evaluate` must ask for at most 1000000 measurements, got 1000000000",
        ),
        ({"evaluate": 10**5000}, "`evaluate` must be a positive integer and at most .*of 16610 bits"),
    ],
)
def test_bad_options_are_refused_before_the_first_step(options, words):
    with pytest.raises(ValueError, match=words):
        training_steps(draw_machine(), draw_data(), **{"epochs": 1, **options})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Adam(0.0), "`learning_rate` must be positive, got 0"),
        (lambda: Adam("fast"), "`learning_rate` must be a number, a `Schedule`.*one of.*got 'fast'"),
        (lambda: Adam([0.1]), "`learning_rate` must be a single number"),
        (lambda: Adam(beta1=1.0), "`beta1` must be at least 0 and below 1, got 1.0"),
        (lambda: Adam(beta2=-0.1), "`beta2` must be at least 0 and below 1"),
        (lambda: Adam(epsilon=0.0), "`epsilon` must be positive"),
        (lambda: SGD(-1.0), "`learning_rate` must be positive"),
        (lambda: SGD(0.1, momentum=1.5), "`momentum` must be at least 0 and below 1"),
        (lambda: Exact(n_threads=0), "`n_threads` must be a positive integer"),
        (
            lambda: PCD(n_steps=2**70),
            "`n_steps` must be a positive integer and at most 1000000000, got 11",
        ),
        (lambda: PCD(n_chains=2**40), "`n_chains` must be a positive integer and at most 10000000, got 1099"),
        (lambda: PCD(n_relax=2**40), "`n_relax` must be an integer of at least 0 and at most 1000000000"),
        (lambda: CD(n_steps=2**40), "`n_steps` must be a positive integer and at most 1000000000, got 1099"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_default_gradient_is_exact_where_cheap_and_says_so(caplog, capfd):
    with caplog.at_level(logging.INFO, logger="paramagnet"):
        train(draw_machine(), draw_data(), epochs=1)
    assert "Gradients are exact" in caplog.text
    big = RBM(np.zeros((40, 40)), 0, 0)
    with caplog.at_level(logging.INFO, logger="paramagnet"):
        steps = training_steps(big, np.ones((2, 40)), epochs=1)
    assert "Gradients are sampled by PCD: exact ones would take about" in caplog.text
    steps.close()
    assert capfd.readouterr() == ("", "")


def test_the_library_is_silent_by_default(capfd):
    train(draw_machine(), draw_data(), epochs=2)
    assert capfd.readouterr() == ("", "")


def test_threads_do_not_change_the_run():
    runs = [train(draw_machine(), draw_data(), epochs=3, gradient=Exact(n_threads=n)).rbm for n in (1, 2)]
    assert_same_machine(*runs)
