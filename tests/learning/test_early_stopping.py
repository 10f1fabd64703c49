"""Early stopping, budgets in seconds, and schedules by name."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from paramagnet import (
    PCD,
    SGD,
    Adam,
    EarlyStopping,
    Schedule,
    initialize,
    load_checkpoint,
    log_likelihood,
    log_partition,
    train,
)
from paramagnet.layout import Layout
from paramagnet.learning import budget
from paramagnet.learning.early_stopping import is_better, paired_gain
from paramagnet.learning.optimizers import close_schedule
from paramagnet.learning.schedule import read_schedule
from paramagnet.learning.watch import Kept

RNG = np.random.default_rng(0)


def draw(n_points, rng=RNG):
    """Weakly coupled spins: few points of them are soon learned by heart."""
    first = rng.choice([-1.0, 1.0], size=(n_points, 1))
    return np.where(rng.random((n_points, 8)) < 0.7, first, -first)


DATA, HELD_OUT = draw(25), draw(400)
OVERFITS = {"optimizer": Adam(0.02), "validation": HELD_OUT, "evaluate": 10, "rng": 1}


def machine():
    return initialize(8, 10, rng=0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_machine_that_overfits_is_stopped_at_its_best(seed):
    rng = np.random.default_rng(seed)
    data, held_out = draw(25, rng), draw(400, rng)
    options = {**OVERFITS, "validation": held_out}
    whole = train(machine(), data, epochs=600, **options)
    values = whole.history.validation
    best = int(whole.history.epoch[values.argmax()])
    assert values.max() - values[-1] > 0.5  # it does overfit
    result = train(machine(), data, epochs=600, early_stopping=EarlyStopping(patience=5), **options)
    assert result.finished
    assert result.state.watch.stopped
    assert best <= result.state.epoch < 600
    kept = result.state.watch.best
    assert abs(kept.epoch - best) <= 10
    assert log_likelihood(result.rbm, held_out).value == pytest.approx(kept.value, abs=1e-12)
    assert np.array_equal(result.rbm.weights, result.best.weights)
    # An independent count of the evaluations since the last improvement beyond two errors.
    machines = {}
    train(machine(), data, epochs=600, callback=lambda s: machines.setdefault(s.epoch, s.rbm), **options)
    reference, misses = machines[0], 0
    for epoch in itertools.count(10, 10):
        difference = [-rbm.free_energy(held_out) - log_partition(rbm) for rbm in (reference, machines[epoch])]
        d = difference[1] - difference[0]
        improved = d.mean() > 2.0 * d.std(ddof=1) / math.sqrt(len(d))
        reference, misses = (machines[epoch], 0) if improved else (reference, misses + 1)
        if misses == 5:
            break
    assert result.state.epoch == epoch


def test_it_is_resumed_bit_for_bit(tmp_path):
    options = {**OVERFITS, "early_stopping": EarlyStopping(patience=3)}
    whole = train(machine(), DATA, epochs=600, **options)
    path = tmp_path / "run.checkpoint"
    for stop in (5, 30, whole.state.epoch - 1, whole.state.epoch):

        def halt(state, stop=stop):
            if state.epoch == stop:
                raise StopIteration

        train(machine(), DATA, epochs=600, callback=halt, checkpoint=path, **options)
        again = train(load_checkpoint(path), DATA, epochs=600, **options)
        assert again.state.epoch == whole.state.epoch
        assert np.array_equal(again.rbm.weights, whole.rbm.weights)
        assert [record.epoch for record in again.state.records] == whole.history.epoch.tolist()
    # Without early stopping the run goes on from its last machine.
    further = {name: value for name, value in options.items() if name != "early_stopping"}
    assert train(whole.state, DATA, epochs=whole.state.epoch + 5, **further).state.epoch > whole.state.epoch


def test_errors_of_both_log_partitions_count():
    rbms = [initialize(8, 3, rng=seed) for seed in (1, 2)]
    layout = Layout.of(rbms[0])
    kept = [Kept(layout.flatten(rbm), 0, 0, 0.0, log_partition(rbm), 0.0) for rbm in rbms]
    gain, error = paired_gain(layout, *kept, HELD_OUT)
    expected = log_likelihood(rbms[1], HELD_OUT).value - log_likelihood(rbms[0], HELD_OUT).value
    assert gain == pytest.approx(expected, abs=1e-12)
    noisy = [
        Kept(one.parameters, 0, 0, 0.0, one.log_z, share) for one, share in zip(kept, (3.0, 4.0), strict=True)
    ]
    assert paired_gain(layout, *noisy, HELD_OUT)[1] == pytest.approx(math.hypot(error, 5.0))
    better = kept if gain > 0 else kept[::-1]
    assert is_better(layout, *better, HELD_OUT) == (abs(gain) > 2.0 * error)
    assert not is_better(layout, *better, HELD_OUT[:1])  # one point has no error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"early_stopping": EarlyStopping()}, "`validation` must be given for early stopping"),
        ({"early_stopping": EarlyStopping(), "validation": HELD_OUT, "evaluate": ()}, "`evaluate` must name"),
        (
            {"early_stopping": 5, "validation": HELD_OUT},
            "`early_stopping` must be None or an `EarlyStopping`",
        ),
        ({"epochs": None}, "`epochs` must be given, or `seconds`, got neither"),
        ({"seconds": 0.0}, "`seconds` must be positive"),
        ({"seconds": 1e12}, r"`seconds` must be at most 1e\+09"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        train(machine(), DATA, **{"epochs": 1, **options})
    with pytest.raises(ValueError, match="`patience` must be a positive integer"):
        EarlyStopping(0)


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")  # so short a run may learn too little
def test_a_budget_in_seconds_is_planned_once_and_resumed(tmp_path):
    path = tmp_path / "run.checkpoint"
    options = {"gradient": PCD(10, 1, 5, n_threads=1), "batch_size": 5, "evaluate": (), "rng": 1}
    whole = train(machine(), DATA, seconds=0.3, checkpoint=path, **options)
    planned = whole.state.watch.epochs
    assert whole.finished
    assert whole.state.epoch == planned >= 1
    assert f"n_updates={5 * planned})" in whole.state.settings["optimizer"]
    by_epochs = train(machine(), DATA, epochs=planned, **options)
    assert np.array_equal(by_epochs.rbm.weights, whole.rbm.weights)

    def halt(state):
        if state.update == 3:
            raise StopIteration

    # The same run, interrupted; the number of epochs in its state is what counts, not a clock.
    stopped = train(machine(), DATA, epochs=planned, seconds=10.0, callback=halt, **options)
    assert stopped.state.watch.epochs == planned
    again = train(stopped.state, DATA, seconds=0.001, **options)
    assert np.array_equal(again.rbm.weights, whole.rbm.weights)
    with pytest.raises(ValueError, match="`seconds` must be left out when a run goes on"):
        train(by_epochs.state, DATA, seconds=1.0, **options)


def test_a_tenth_of_the_seconds_is_left_for_what_is_not_timed(monkeypatch):
    """By a clock on which the start takes 0.5 s and every update 0.01 s."""
    now = 0.0
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now)

    def steps():
        nonlocal now
        now += 0.5
        while True:
            yield None
            now += 0.01

    for seconds in (5.0, 50.0):
        now = 0.0
        found, _ = budget.plan(lambda epochs: (SimpleNamespace(n_batches=1), steps()), None, seconds, ())
        assert now + 0.5 + 0.01 * found == pytest.approx(0.9 * seconds, abs=0.02)


def test_the_shorter_of_epochs_and_seconds_counts():
    assert train(machine(), DATA, epochs=2, seconds=3.0, rng=0).state.epoch == 2
    assert train(machine(), DATA, seconds=1e-6, rng=0).state.epoch == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linear", Schedule("linear", 1e-3)),
        ("cosine(0.003)", Schedule("cosine", 0.003)),
        ("linear(rate=0.01, end=0.001)", Schedule("linear", 0.01, end=0.001)),
        ("step(0.1, factor=0.5, n_updates=10)", Schedule("step", 0.1, factor=0.5, n_updates=10)),
        ("constant(0.2)", Schedule("constant", 0.2)),
    ],
)
def test_schedules_by_name(text, expected):
    assert Adam(text).learning_rate == expected
    assert read_schedule(text, "learning_rate", 1e-3) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fast", "`learning_rate` must be a number, a `Schedule`"),
        ("linear(", "must be a number, a `Schedule`"),
        ("linear(x)", "must have numbers in its brackets"),
        ("linear(0.1, factor=0.5)", "must have only rate, end, n_updates in its brackets"),
        ("linear(0.1, 0.2)", "must have numbers in its brackets|must have only"),
        (
            "step(0.1)",
            "must have factor and n_updates in its brackets, as in 'step.factor=0.5, n_updates=1000",
        ),
        ("step(0.1, factor=0.5)", "must have factor and n_updates in its brackets"),
        (
            "linear(rate=0.1, rate=0.2)",
            "must have rate only once in its brackets, got 'linear.rate=0.1, rate=0.2",
        ),
        ("linear(0.1, rate=0.2)", "must have rate only once"),
        ("linear(,0.1)", "must have numbers in its brackets"),
        ("linear(0.1,)", "must have numbers in its brackets"),
    ],
)
def test_bad_names_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Adam(text)
    with pytest.raises(ValueError, match=r"must say the learning rate of the first update, as in 'linear\(0"):
        SGD("linear")


def test_a_schedule_over_the_whole_run():
    schedule = Schedule("linear", 0.1)
    assert schedule.open
    assert schedule.end == pytest.approx(0.002)
    with pytest.raises(ValueError, match="`n_updates` must be known before a rate is asked for"):
        schedule(0)
    closed = schedule.over(10)
    assert not closed.open
    assert closed == closed.over(99)
    assert [closed(update) for update in (0, 5, 10, 11)] == pytest.approx([0.1, 0.051, 0.002, 0.002])
    with pytest.raises(ValueError, match="`learning_rate` must say its `n_updates` where the length"):
        close_schedule(SGD(schedule), None)
    by_name = train(machine(), DATA, epochs=4, optimizer=SGD("linear(0.1)"), batch_size=10, rng=0)
    stated = Schedule("linear", 0.1, end=0.02 * 0.1, n_updates=12)
    by_numbers = train(machine(), DATA, epochs=4, optimizer=SGD(stated), batch_size=10, rng=0)
    assert np.array_equal(by_name.rbm.weights, by_numbers.rbm.weights)


# Weights of held-out points


def test_weighted_differences_against_loops():
    rbms = [initialize(8, 3, rng=seed) for seed in (1, 2)]
    layout = Layout.of(rbms[0])
    kept = [Kept(layout.flatten(rbm), 0, 0, 0.0, log_partition(rbm), 0.0) for rbm in rbms]
    weights = np.arange(len(HELD_OUT)) % 7 + 0.25
    gain, error = paired_gain(layout, *kept, HELD_OUT, weights)
    values = [log_likelihood(rbm, HELD_OUT, sample_weight=weights).value for rbm in rbms]
    assert gain == pytest.approx(values[1] - values[0], abs=1e-12)
    each = [log_likelihood(rbms[1], [v]).value - log_likelihood(rbms[0], [v]).value for v in HELD_OUT]
    total, squares = sum(weights), sum(w * w for w in weights)
    variance = sum((w * (d - gain)) ** 2 for w, d in zip(weights, each, strict=True)) / total**2
    number = total**2 / squares
    assert error == pytest.approx(math.sqrt(variance * number / (number - 1.0)), rel=1e-9)
    plain, equal = (paired_gain(layout, *kept, HELD_OUT, w) for w in (None, np.full(len(HELD_OUT), 3.0)))
    assert equal == pytest.approx(plain, rel=1e-12)
    assert paired_gain(layout, *kept, HELD_OUT[:1], np.ones(1))[1] == math.inf


def test_the_error_of_a_weighted_difference_is_its_scatter():
    """Over many draws of held-out points; an error as if weights were repetitions would be half of it."""
    rbms = [initialize(8, 3, gain=2.0, rng=seed) for seed in (1, 2)]
    layout = Layout.of(rbms[0])
    kept = [Kept(layout.flatten(rbm), 0, 0, 0.0, log_partition(rbm), 0.0) for rbm in rbms]
    rng = np.random.default_rng(3)
    weights = np.where(np.arange(60) < 10, 6.0, 1.0)
    found = [paired_gain(layout, *kept, rng.choice([-1.0, 1.0], (60, 8)), weights) for _ in range(600)]
    gains, errors = np.array(found).T
    assert errors.mean() == pytest.approx(gains.std(), rel=0.1)
    as_if_repeated = errors.mean() * math.sqrt((weights @ weights) / weights.sum() ** 2 * 110) ** -1
    assert gains.std() > 1.3 * as_if_repeated


def test_early_stopping_follows_the_weights():
    """Held-out points that count are those of another source: the best machine is an early one."""
    other = np.where(np.random.default_rng(8).random((40, 8)) < 0.5, 1.0, -1.0)
    points = np.concatenate((HELD_OUT, other))
    stopping = {"early_stopping": EarlyStopping(patience=3)}
    ends = {}
    for name, weights in (
        ("same", np.repeat([1.0, 1e-9], (400, 40))),
        ("other", np.repeat([1e-9, 1.0], (400, 40))),
    ):
        options = {**OVERFITS, "validation": points, "validation_weight": weights}
        result = train(machine(), DATA, epochs=300, **options, **stopping)
        kept = result.state.watch.best
        chosen = HELD_OUT if name == "same" else other
        assert log_likelihood(result.rbm, chosen).value == pytest.approx(kept.value, abs=1e-6)
        ends[name] = kept.epoch
    assert ends["other"] < ends["same"]
