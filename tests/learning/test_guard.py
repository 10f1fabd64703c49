"""The guard of sampled training: what it finds, what it does then, and that resuming repeats it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from paramagnet import (
    CD,
    PCD,
    SGD,
    Adam,
    Exact,
    Guard,
    Schedule,
    TrainingWarning,
    independent_log_likelihood,
    initialize,
    load_checkpoint,
    log_likelihood,
    train,
    training_steps,
)
from paramagnet.learning.guard import GuardedRun
from paramagnet.learning.watch import Kept

RNG = np.random.default_rng(3)
PATTERN = RNG.choice([-1.0, 1.0], size=12)
# Two opposite patterns with noise: one update moves the weight of a mode by much, chains change it rarely.
DATA = (
    PATTERN * RNG.choice([-1.0, 1.0], size=(60, 1)) * RNG.choice([-1.0, 1.0], p=[0.05, 0.95], size=(60, 12))
)
CHAINS = PCD(n_chains=20, n_steps=1, n_relax=20, n_threads=1)
OPTIONS = {"gradient": CHAINS, "batch_size": 20, "evaluate": (), "rng": 2}
# At this rate the chains cannot follow.
TOO_FAST = {**OPTIONS, "optimizer": SGD(0.5), "guard": Guard(every=20, n_chains=50)}


def machine(n_hidden=6):
    return initialize(12, n_hidden, hidden="spin", rng=1)


@pytest.mark.parametrize("unit", ["spin", "bit"])
def test_independent_units_by_loops(unit):
    data = DATA if unit == "spin" else (DATA + 1.0) / 2.0
    high = (DATA > 0).mean(axis=0)
    expected = 0.0
    for point in DATA:
        for i, value in enumerate(point):
            expected += math.log(high[i] if value > 0 else 1.0 - high[i]) / len(DATA)
    assert independent_log_likelihood(data, unit) == pytest.approx(expected, abs=1e-10)
    weights = np.arange(60) % 3
    repeated = np.repeat(data, weights, axis=0)
    assert independent_log_likelihood(data, unit, sample_weight=weights) == pytest.approx(
        independent_log_likelihood(repeated, unit), abs=1e-10
    )
    assert independent_log_likelihood(data, unit, validation=data[:7]) == pytest.approx(
        np.mean([independent_log_likelihood(data, unit, validation=row[None]) for row in data[:7]]), abs=1e-10
    )


def test_independent_gaussian_units():
    data = RNG.normal(0.5, 1.0, size=(40, 2))
    each = -0.5 * (data - data.mean(axis=0)) ** 2 - 0.5 * math.log(2.0 * math.pi)
    assert independent_log_likelihood(data, "gaussian") == pytest.approx(each.sum(axis=1).mean(), abs=1e-10)


def test_units_that_never_change_have_a_level():
    assert independent_log_likelihood(np.ones((5, 3))) <= 0.0


def test_a_failure_is_found_and_named_and_the_run_ends_better():
    without = train(machine(), DATA, epochs=50, **{**TOO_FAST, "guard": False})
    with pytest.warns(TrainingWarning) as warned:
        result = train(machine(), DATA, epochs=50, **TOO_FAST)
    assert "Training failed at update" in str(warned[0].message)
    failed = [check for check in result.state.checks if check.failed]
    assert failed
    assert any("Training failed at update" in note for note in result.notes)
    assert result.state.rate_factor == pytest.approx(0.7 ** len(failed))
    assert len(result.notes) == len(warned)  # the end may be worse than the best, but not unmentioned
    best = log_likelihood(result.best, DATA).value
    assert best >= log_likelihood(result.rbm, DATA).value - 0.3
    assert best > log_likelihood(without.rbm, DATA).value


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_a_resumed_run_repeats_all_decisions(tmp_path):
    whole = train(machine(), DATA, epochs=50, **TOO_FAST)
    first = next(check.update for check in whole.state.checks if check.failed)
    for stop in (first - 1, first + 3):
        path = tmp_path / f"{stop}.checkpoint"

        def halt(state, stop=stop):
            if state.update == stop:
                raise StopIteration

        train(machine(), DATA, epochs=50, callback=halt, checkpoint=path, **TOO_FAST)
        options = {**TOO_FAST, "guard": None}  # the state knows its guard
        again = train(load_checkpoint(path), DATA, epochs=50, **options)
        assert np.array_equal(again.rbm.weights, whole.rbm.weights)
        assert again.state.checks == whole.state.checks
        assert again.state.rate_factor == whole.state.rate_factor
        assert np.array_equal(again.best.weights, whole.best.weights)


def test_the_guard_changes_nothing_while_all_is_well():
    options = {**OPTIONS, "optimizer": Adam(0.005)}
    plain = train(machine(), DATA, epochs=40, guard=False, **options)
    guarded = train(machine(), DATA, epochs=40, guard=Guard(every=30), **options)
    assert [check.update for check in guarded.state.checks] == [0, 30, 60, 90, 120]
    assert not any(check.failed for check in guarded.state.checks)
    assert np.array_equal(plain.rbm.weights, guarded.rbm.weights)
    assert plain.state.watch is None


def test_checks_are_close_to_the_exact_likelihood():
    options = {**OPTIONS, "optimizer": Adam(0.005)}
    for state in training_steps(machine(), DATA, epochs=30, guard=Guard(every=30), **options):
        if state.update % 30 == 0:
            check = state.checks[-1]
            exact = log_likelihood(state.rbm, DATA).value
            assert abs(check.log_likelihood - exact) < 5.0 * check.error + 0.02


@pytest.mark.parametrize(("gradient", "on"), [(CHAINS, True), (CD(1, n_threads=1), False), (Exact(), False)])
def test_it_is_on_where_chains_persist(gradient, on):
    state = train(machine(), DATA, epochs=1, **{**OPTIONS, "gradient": gradient}).state
    assert bool(state.checks) == on
    assert ("guard" in state.settings) == on
    assert not train(machine(), DATA, epochs=1, guard=False, **OPTIONS).state.checks


def test_what_counts_as_a_loss():
    run = GuardedRun(Guard(tolerance=0.25), None, DATA, CHAINS, 20, None)
    object.__setattr__(run, "level", -10.0)
    kept = Kept(np.zeros(1), 0, 0, -2.0, 0.0, 0.0)
    for sound, now, lost in [
        (-2.0, -3.9, False),
        (-2.0, -4.1, True),
        (-9.0, -9.9, False),
        (-9.0, -10.1, True),
    ]:
        assert run.lost(replace(kept, value=sound), replace(kept, value=now)) is lost
    assert run.lost(kept, replace(kept, value=math.nan))
    assert run.lost(replace(kept, value=-30.0), replace(kept, value=-31.1))


def test_a_result_below_independent_units_is_named():
    options = {**OPTIONS, "guard": Guard(every=5)}
    rbm = initialize(12, 6, hidden="spin", gain=8.0, rng=1)
    biased = np.where(RNG.random((60, 12)) < 0.9, 1.0, -1.0)
    with pytest.warns(TrainingWarning, match="independent units with the means of the data have"):
        result = train(rbm, biased, epochs=2, optimizer=Adam(1e-6), **options)
    assert len(result.notes) == 1
    exact = train(rbm, biased, epochs=2, optimizer=Adam(1e-6), gradient=Exact())
    assert "learned less than the means" in exact.notes[0]  # logged, not warned
    assert not train(rbm, biased, epochs=200, optimizer=Adam(0.05), gradient=Exact()).notes


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_the_best_measured_machine_is_offered():
    options = {**OPTIONS, "evaluate": 1, "guard": True}
    result = train(machine(), DATA, epochs=40, optimizer=SGD(0.5), **options)
    values = result.history.log_likelihood
    assert log_likelihood(result.best, DATA).value == pytest.approx(values.max(), abs=1e-9)
    assert result.state.watch.best.epoch == result.history.epoch[values.argmax()]


def test_defaults_fall_where_gradients_are_sampled():
    sampled = train(machine(), DATA, epochs=3, **OPTIONS).state
    expected = Schedule("linear", 1e-3, end=2e-5, n_updates=9)
    assert f"learning_rate={expected!r}" in sampled.settings["optimizer"]
    assert sampled.watch.n_updates == 9
    exact = train(machine(), DATA, epochs=3, batch_size=20).state
    assert exact.settings["optimizer"].startswith("Adam(learning_rate=0.001,")
    # Going on keeps the planned length, and needs no word.
    more = train(sampled, DATA, epochs=5, **OPTIONS).state
    assert more.settings["optimizer"] == sampled.settings["optimizer"]


def test_a_falling_rate_is_resumed_bit_for_bit(tmp_path):
    path = tmp_path / "run.checkpoint"
    whole = train(machine(), DATA, epochs=6, **OPTIONS)

    def halt(state):
        if state.update == 7:
            raise StopIteration

    train(machine(), DATA, epochs=6, callback=halt, checkpoint=path, **OPTIONS)
    again = train(load_checkpoint(path), DATA, epochs=6, **OPTIONS)
    assert np.array_equal(again.rbm.weights, whole.rbm.weights)


def test_intervals_follow_from_the_work():
    def every(gradient, batch_size=100):
        return GuardedRun(Guard(), None, np.zeros((5000, 12)), gradient, batch_size, None).every

    counts = [every(PCD(100, n)) for n in (1, 5, 20)]
    assert counts == sorted(counts, reverse=True)
    assert every(PCD()) == 200
    assert all(a > b for a, b in itertools.pairwise(counts[:2]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"every": 0}, "`every` must be a positive integer"),
        ({"tolerance": 0.0}, "`tolerance` must be positive"),
        ({"factor": 1.0}, "`factor` must be above 0 and below 1, got 1.0"),
        ({"n_chains": 1}, "`n_chains`"),
        ({"n_temperatures": 1}, "`n_temperatures`"),
    ],
)
def test_bad_guards_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Guard(**arguments)


def test_other_guards_are_refused_when_a_run_goes_on():
    state = train(machine(), DATA, epochs=1, guard=Guard(every=7), **OPTIONS).state
    with pytest.raises(ValueError, match="`guard` must be that of the run to go on with"):
        train(state, DATA, epochs=2, guard=Guard(every=8), **OPTIONS)
    with pytest.raises(ValueError, match="`guard` must be True, False, None or a `Guard`"):
        train(machine(), DATA, epochs=1, guard="yes", **OPTIONS)
    assert train(state, DATA, epochs=2, guard=False, **OPTIONS).state.epoch == 2
