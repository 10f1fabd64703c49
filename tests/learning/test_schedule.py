"""Learning-rate schedules: their formulas, what checkpoints say of them, and what may be resumed."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from paramagnet import RBM, SGD, Adam, Schedule, load_checkpoint, train
from paramagnet.learning.optimizers import rate_at

DATA = np.random.default_rng(1).choice([-1.0, 1.0], size=(12, 5))
COSINE = Schedule("cosine", 0.1, end=0.01, n_updates=6)


def machine():
    return RBM(np.random.default_rng(0).normal(size=(5, 3)), 0, 0)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (Schedule("constant", 0.1), [0.1] * 8),
        (Schedule("linear", 0.8, end=0.2, n_updates=4), [0.8, 0.65, 0.5, 0.35, 0.2, 0.2, 0.2]),
        (Schedule("linear", 0.1, end=0.3, n_updates=2), [0.1, 0.2, 0.3, 0.3]),
        (
            Schedule("cosine", 1.0, end=0.0, n_updates=4),
            [1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2, 0, 0],
        ),
        (Schedule("cosine", 0.4, end=0.2, n_updates=2), [0.4, 0.3, 0.2, 0.2]),
        (Schedule("step", 0.8, factor=0.5, n_updates=3), [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2]),
    ],
)
def test_rates_follow_the_formulas(schedule, rates):
    assert [schedule(update) for update in range(len(rates))] == pytest.approx(rates, abs=1e-15)
    assert [rate_at(schedule, update) for update in range(len(rates))] == pytest.approx(rates, abs=1e-15)


def test_a_schedule_is_a_value():
    assert Schedule("step", 1, factor=1, n_updates=np.int64(3)) == Schedule(
        "step", 1.0, factor=1.0, n_updates=3
    )
    assert repr(COSINE) == "Schedule(kind='cosine', rate=0.1, end=0.01, n_updates=6)"
    assert eval(repr(COSINE)) == COSINE
    assert pickle.loads(pickle.dumps(COSINE)) == COSINE
    assert len({COSINE, replace(COSINE), replace(COSINE, end=0.0)}) == 2
    with pytest.raises(AttributeError):
        COSINE.rate = 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("exponential", 0.1), "`kind` must be one of 'constant', 'linear', 'cosine', 'step', got 'expo.*'"),
        ((["linear"], 0.1), "`kind` must be one of"),
        (("constant", 0.0), "`rate` must be positive, got 0"),
        (("constant", "fast"), "`rate` must be a real number"),
        (("constant", 0.1, 0.2), "`end` must be left out for a schedule of kind 'constant', got 0.2"),
        (("step", 0.1, None, 0.5), "`n_updates` must be given for a schedule of kind 'step'"),
        (("linear", 0.1, None, 0.5), "`factor` must be left out for a schedule of kind 'linear', got 0.5"),
        (("cosine", 0.1, -1.0, None, 5), "`end` must be zero or positive, got -1"),
        (("step", 0.1, None, None, 5), "`factor` must be given for a schedule of kind 'step'"),
        (("step", 0.1, None, 2.0, 5), "`factor` must be above 0 and at most 1, got 2.0"),
        (("step", 0.1, None, 0.5, 0), "`n_updates` must be a positive integer, got 0"),
        (("step", 0.1, None, 0.5, 2**70), "`n_updates` must be a positive integer and at most"),
    ],
)
def test_bad_schedules_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Schedule(*arguments)


def test_training_follows_the_schedule_and_goes_on_with_it(tmp_path):
    path = tmp_path / "run.safetensors"
    options = {"batch_size": 5, "rng": 2}
    whole = train(machine(), DATA, epochs=4, optimizer=Adam(COSINE), **options)
    by_function = train(machine(), DATA, epochs=4, optimizer=Adam(lambda update: COSINE(update)), **options)
    assert np.array_equal(whole.rbm.weights, by_function.rbm.weights)
    train(machine(), DATA, epochs=2, optimizer=Adam(COSINE), checkpoint=path, **options)
    state = load_checkpoint(path)
    assert state.settings["optimizer"].startswith(f"Adam(learning_rate={COSINE!r}, beta1=0.9")
    again = train(state, DATA, epochs=4, optimizer=Adam(replace(COSINE)), **options)
    assert np.array_equal(again.rbm.weights, whole.rbm.weights)


def falling(update):
    """A function of the user's own."""
    return 0.1 / (1 + update)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (COSINE, replace(COSINE, n_updates=7), r"rate=0.1, end=0.01, n_updates=6\).*got.*n_updates=7"),
        (COSINE, Schedule("linear", 0.1, end=0.01, n_updates=6), "kind='cosine'.*got.*kind='linear'"),
        (COSINE, 0.1, r"Schedule\(kind='cosine'.*got SGD\(learning_rate=0\.1"),
        (0.1, COSINE, r"learning_rate=0\.1, .*got .*Schedule\(kind='cosine'"),
        (0.1, 0.2, r"learning_rate=0\.1, .*got .*learning_rate=0\.2"),
    ],
)
def test_going_on_with_another_schedule_is_refused(before, after, words):
    state = train(machine(), DATA, epochs=1, optimizer=SGD(before)).state
    for same in (False, True):  # a word does not help where the numbers are known
        with pytest.raises(ValueError, match=f"`optimizer` must be that of the run to go on with.*{words}"):
            train(state, DATA, epochs=2, optimizer=SGD(after), same_schedule=same)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (falling, falling),
        (falling, lambda update: falling(update)),
        (falling, COSINE),
        (COSINE, COSINE.__call__),
    ],
)
def test_a_function_needs_the_users_word(before, after):
    state = train(machine(), DATA, epochs=1, optimizer=SGD(before)).state
    words = r"`optimizer` must have the learning rate of the run to go on with, .*, got .*same_schedule=True"
    with pytest.raises(ValueError, match=words):
        train(state, DATA, epochs=2, optimizer=SGD(after))
    result = train(state, DATA, epochs=2, optimizer=SGD(after), same_schedule=True)
    assert result.state.update == 2
    if after is COSINE:  # from now on the checkpoint knows
        train(result.state, DATA, epochs=3, optimizer=SGD(COSINE))


def test_a_word_for_the_rate_is_none_for_the_rest():
    state = train(machine(), DATA, epochs=1, optimizer=SGD(falling, 0.5)).state
    for other in (SGD(falling, 0.6), Adam(falling)):
        with pytest.raises(ValueError, match="`optimizer` must be that of the run to go on with"):
            train(state, DATA, epochs=2, optimizer=other, same_schedule=True)


def test_a_constant_schedule_is_its_number():
    state = train(machine(), DATA, epochs=1, optimizer=Adam(0.01)).state
    assert train(state, DATA, epochs=2, optimizer=Adam(Schedule("constant", 0.01))).finished


def test_checkpoints_of_older_versions_go_on(tmp_path):
    """They held a number, or the name of a function."""
    for text, rate, word in (("0.01", 0.01, False), ("falling", falling, True), ("schedule", falling, True)):
        state = train(machine(), DATA, epochs=1, optimizer=SGD(rate)).state
        settings = {**state.settings, "optimizer": f"SGD(learning_rate={text}, momentum=0.0)"}
        del settings["device"]
        old = replace(state, settings=json.loads(json.dumps(settings)))
        assert train(old, DATA, epochs=2, optimizer=SGD(rate), same_schedule=word).finished
        if word:
            with pytest.raises(ValueError, match=f"a function such as {text}"):
                train(old, DATA, epochs=2, optimizer=SGD(rate))


def test_a_fingerprint_is_cut_to_eight_digits():
    state = train(machine(), DATA, epochs=1).state
    with pytest.raises(ValueError, match=r"\(12, 5\) [0-9a-f]{8}, got \(12, 5\) [0-9a-f]{8}\. To change"):
        train(state, -DATA, epochs=2)
