"""The guard of sampled training: what it finds, what it does then, and that resuming repeats it."""

from __future__ import annotations

import collections
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from paramagnet import (
    CD,
    PCD,
    RBM,
    SGD,
    Adam,
    EarlyStopping,
    Exact,
    Guard,
    Schedule,
    Tempering,
    TrainingWarning,
    independent_log_likelihood,
    initialize,
    load_checkpoint,
    log_likelihood,
    train,
    training_steps,
)
from paramagnet.layout import Layout
from paramagnet.learning import loop, watch
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
    failed = [check for check in result.checks if check.failed]
    assert failed
    assert result.checks == result.state.checks
    assert any("Training failed at update" in note for note in result.notes)
    assert result.state.rate_factor == pytest.approx(0.7 ** len(failed))
    assert result.notes == tuple(str(one.message) for one in warned)  # those of the end are warnings, too
    for check in failed:
        assert f"after {check.before:.2f} at update {check.back_to}" in "".join(result.notes)
        assert check.back_to in [one.update for one in result.checks if not one.failed]
    told = [note for note in result.notes if note.startswith("Training failed")]
    assert len(told) == len(failed) > 1
    for words in ("because the chains", "`guard=False` turns the check off"):  # once is enough
        assert [words in note for note in told] == [True] + [False] * (len(told) - 1)
    assert all(note.startswith("Training failed again at update ") for note in told[1:])
    assert all(one.back_to is None and one.before is None for one in result.checks if not one.failed)
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


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_what_a_run_went_back_to_is_kept():
    """In checkpoints as well; those of before hold the checks alone, of which the best one is named."""
    state = train(machine(), DATA, epochs=50, **TOO_FAST).state
    arrays, facts = state.watch.pack()
    size = state.layout.size
    assert watch.Watch.unpack(arrays, facts, size).checks == state.checks
    returns = facts.pop("returns")
    assert len(returns) == sum(check.failed for check in state.checks) > 0
    older = watch.Watch.unpack(arrays, facts, size).checks
    for index, check in enumerate(older):
        values = [one.log_likelihood for one in older[:index] if not one.failed]
        assert check.before == (max(values) if check.failed else None)
    for damaged in (returns[1:], [*returns, returns[0]], [[1]] * len(returns), 5):
        with pytest.raises((TypeError, ValueError)):  # which `load_checkpoint` reports
            watch.Watch.unpack(arrays, facts | {"returns": damaged}, size)
    healthy = train(machine(), DATA, epochs=4, **{**TOO_FAST, "optimizer": Adam(1e-4)}).state
    assert "returns" not in healthy.watch.pack()[1]  # checkpoints without failures are as they were


def test_warnings_name_the_line_of_the_caller(tmp_path):
    """Not one of the package, whether the run is new, goes on, or is asked for step by step."""
    path = tmp_path / "run.checkpoint"

    def halt(state):
        if state.update == 10:
            raise StopIteration

    with pytest.warns(TrainingWarning) as warned:
        train(machine(), DATA, epochs=50, **TOO_FAST)
    with pytest.warns(TrainingWarning) as stepwise:
        collections.deque(training_steps(machine(), DATA, epochs=50, **TOO_FAST), maxlen=0)
    train(
        machine(), DATA, epochs=50, callback=halt, checkpoint=path, **{**TOO_FAST, "guard": Guard(every=20)}
    )
    with pytest.warns(TrainingWarning) as later:
        train(load_checkpoint(path), DATA, epochs=50, **{**TOO_FAST, "guard": None})
    assert {one.filename for one in (*warned, *stepwise, *later)} == {__file__}


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
@pytest.mark.parametrize("gradient", [CHAINS, Tempering(10, n_relax=8), CD(1, n_threads=1), Exact()])
def test_words_of_a_failure_are_those_of_the_gradient(gradient):
    """Only chains that last can fall behind and start anew; exact gradients have no sweeps."""
    options = {**TOO_FAST, "gradient": gradient, "optimizer": SGD(1e-3), "weight_decay": 2.5e3}
    note = train(machine(), DATA, epochs=9, **options).notes[0]
    lasting = gradient in (CHAINS, Tempering(10, n_relax=8))
    assert note.startswith("Training failed at update ")
    assert ("because the chains no longer followed" in note) is lasting
    assert ("its chains start anew" in note) is lasting
    assert ("half of them from the data" in note) is (gradient is CHAINS)
    assert ("or more sweeps before each update" in note) is not gradient.exact


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
    notes = train(rbm, biased, epochs=200, optimizer=Adam(0.05), gradient=Exact()).notes
    assert not any("learned less than the means" in note for note in notes)


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


# States far from the data


def two_modes(n_visible=40, tilt=6.0):
    """A machine of which data are one mode, and a heavier one is their negative, far away."""
    pattern = np.where(np.arange(n_visible) % 3 == 0, 1.0, -1.0)
    rbm = RBM(np.outer(pattern, [1.0]), 0.0, [-tilt], "spin", "spin")
    rng = np.random.default_rng(5)
    data = pattern * rng.choice([-1.0, 1.0], p=[0.1, 0.9], size=(50, n_visible))
    return rbm, data


@pytest.mark.parametrize("blind", [False, True])
def test_states_far_from_the_data_are_seen(blind, monkeypatch):
    """A mAIS from the means of the data alone misses the heavier mode, by 12 nats."""
    rbm, data = two_modes()
    run = GuardedRun(Guard(), Layout.of(rbm), data, CHAINS, 20, None)
    if blind:
        object.__setattr__(run, "starts", run.starts[1:])
    state = train(rbm, data, epochs=0, **{**OPTIONS, "evaluate": (), "guard": False}).state
    found = run.look(state, state.parameters, 1)
    wrong = abs(found.value - log_likelihood(rbm, data).value) > 1.0
    assert wrong is blind


def test_chains_start_anew_from_data_and_from_random_states():
    rbm, data = two_modes()
    run = GuardedRun(Guard(), Layout.of(rbm), data, CHAINS, 20, None)
    state = train(rbm, data, epochs=0, **{**OPTIONS, "evaluate": (), "guard": False}).state
    overlap = run.restarted(state, state.parameters).visible @ np.sign(rbm.weights[:, 0])
    assert (overlap[::2] > 0.0).all()  # from the data
    assert (overlap[1::2] < 0.0).any()


# Weights of points


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_weights_of_points_count():
    counts = np.arange(60) % 4
    again = np.repeat(DATA, counts, axis=0)
    weights = counts[counts > 0] / counts.mean()
    weighted = GuardedRun(Guard(), Layout.of(machine()), DATA[counts > 0], CHAINS, 20, None, weights)
    repeated = GuardedRun(Guard(), Layout.of(machine()), again, CHAINS, 20, None)
    assert weighted.level == pytest.approx(repeated.level, abs=1e-12)
    np.testing.assert_allclose(weighted.starts[1], repeated.starts[1], atol=1e-12)
    state = train(machine(), DATA, epochs=0, **OPTIONS).state
    found, wanted = (run.look(state, state.parameters, 1).value for run in (weighted, repeated))
    assert found == pytest.approx(wanted, abs=1e-6)
    assert abs(found - GuardedRun(Guard(), Layout.of(machine()), DATA, CHAINS, 20, None).look(
        state, state.parameters, 1
    ).value) > 1e-3  # fmt: skip
    run = train(machine(), DATA, epochs=2, sample_weight=counts, **{**OPTIONS, "guard": Guard(every=3)})
    assert run.state.checks[0].log_likelihood == pytest.approx(wanted, abs=0.3)


def test_the_level_of_independent_units_has_the_weights():
    """Half of the points are the negative of the others, and do not count."""
    rng = np.random.default_rng(1)
    ones = np.where(rng.random((40, 12)) < 0.95, 1.0, -1.0)
    points, weights = np.concatenate((ones, -ones)), np.repeat([1.0, 1e-9], 40)
    rbm = initialize(12, 2, gain=0.01, rng=0)
    options = {"epochs": 1, "gradient": Exact(), "optimizer": SGD(1e-9)}
    assert "learned less than the means" in train(rbm, points, sample_weight=weights, **options).notes[0]
    assert not train(rbm, points, **options).notes  # without weights the means are zero


# Resuming, whatever interrupts


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_run_interrupted_on_each_side_of_a_failure(offset, tmp_path):
    options = {**TOO_FAST, "centred": True, "sample_weight": np.arange(60) % 5 + 0.5}
    whole = train(machine(), DATA, epochs=50, **options)
    failures = [check.update for check in whole.state.checks if check.failed]
    path = tmp_path / "run.checkpoint"

    def halt(state):
        if state.update == failures[-1] + offset:
            raise StopIteration

    train(machine(), DATA, epochs=50, callback=halt, checkpoint=path, **options)
    again = train(load_checkpoint(path), DATA, epochs=50, **options)
    np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
    np.testing.assert_array_equal(again.state.chains.visible, whole.state.chains.visible)
    assert again.state.checks == whole.state.checks
    assert again.notes == whole.notes


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_check_that_is_interrupted_is_made_again(large, tmp_path, monkeypatch):
    """Ctrl-C in the middle of a check leaves a state without that check, and the resumed run makes it; so it
    is where updates overwrite the state before and kept machines are in files.
    """
    whole = train(machine(), DATA, epochs=50, **TOO_FAST)
    if large:
        monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 1)
        monkeypatch.setattr(watch, "LARGE", 1)
    first = next(check.update for check in whole.state.checks if check.failed)
    path, look = tmp_path / "run.checkpoint", GuardedRun.look

    def interrupted(self, state, parameters, closeness):
        if state.update == first:
            raise KeyboardInterrupt
        return look(self, state, parameters, closeness)

    with monkeypatch.context() as patch:
        patch.setattr(GuardedRun, "look", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(machine(), DATA, epochs=50, checkpoint=path, **TOO_FAST)
    left = load_checkpoint(path)
    assert left.update == first
    assert left.checks[-1].update < first
    again = train(load_checkpoint(path), DATA, epochs=50, **TOO_FAST)
    np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
    assert again.state.checks == whole.state.checks


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
@pytest.mark.parametrize("room", [True, False])
def test_large_machines_are_kept_in_a_file(room, tmp_path, monkeypatch):
    """The same bits as in memory, after a failure and in a checkpoint; without room they stay in memory."""
    whole = train(machine(), DATA, epochs=50, **TOO_FAST)
    assert any(check.failed for check in whole.state.checks)
    monkeypatch.setattr(watch, "LARGE", 1)
    if not room:

        def fail(**options):
            raise OSError("No space left on device")

        monkeypatch.setattr(watch.tempfile, "TemporaryFile", fail)
    path = tmp_path / "run.checkpoint"
    result = train(machine(), DATA, epochs=50, checkpoint=path, **TOO_FAST)
    kept = result.state.watch.sound.parameters
    assert isinstance(kept.base, np.memmap) is room
    assert not kept.flags.writeable
    np.testing.assert_array_equal(result.state.parameters, whole.state.parameters)
    assert not isinstance(result.state.parameters.base, np.memmap)
    for watched in (result.state.watch, load_checkpoint(path).watch):
        np.testing.assert_array_equal(watched.sound.parameters, whole.state.watch.sound.parameters)
    np.testing.assert_array_equal(result.best.weights, whole.best.weights)


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_tempering_is_guarded_and_resumed(tmp_path):
    options = {**TOO_FAST, "gradient": Tempering(20, 1, n_relax=5, n_threads=1), "optimizer": SGD(2.0)}
    whole = train(machine(), DATA, epochs=30, **options)
    first = next(check.update for check in whole.state.checks if check.failed)
    path = tmp_path / "run.checkpoint"
    for stop in (first - 1, first):

        def halt(state, stop=stop):
            if state.update == stop:
                raise StopIteration

        train(machine(), DATA, epochs=30, callback=halt, checkpoint=path, **options)
        again = train(load_checkpoint(path), DATA, epochs=30, **options)
        np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
        assert again.state.checks == whole.state.checks


@pytest.mark.filterwarnings("ignore::paramagnet.TrainingWarning")
def test_budget_guard_early_stopping_and_schedule_together(tmp_path):
    """All that a run decides about itself, at once: interrupted at any update it ends in the same bits."""
    options = {
        **TOO_FAST, "optimizer": SGD("linear(0.5, end=0.4)"), "evaluate": 2, "validation": DATA[:20],
        "validation_weight": np.arange(20.0), "early_stopping": EarlyStopping(patience=40),
    }  # fmt: skip
    whole = train(machine(), DATA, seconds=20.0, epochs=40, **options)
    assert whole.state.watch.epochs is not None
    assert any(check.failed for check in whole.state.checks)
    path = tmp_path / "run.checkpoint"
    for stop in (1, 20, 21, whole.state.update - 1):

        def halt(state, stop=stop):
            if state.update == stop:
                raise StopIteration

        train(machine(), DATA, seconds=20.0, epochs=40, callback=halt, checkpoint=path, **options)
        again = train(load_checkpoint(path), DATA, seconds=20.0, **options)
        np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
        np.testing.assert_array_equal(again.rbm.weights, whole.rbm.weights)
        assert again.state.checks == whole.state.checks
        assert again.state.watch.n_misses == whole.state.watch.n_misses
        assert again.notes == whole.notes


# Words at the end


def test_mirrored_chains_are_named_at_the_end():
    """Chains that live in the negative of the data, and cannot leave it."""
    _, data = two_modes()
    weights = 2.0 * np.outer(np.sign(data.mean(axis=0)), [1.0, 0.0])
    rbm = RBM(weights, 0.0, [0.0, 0.0], "spin", "spin")
    options = {"gradient": PCD(40, 1, 20, n_threads=1), "optimizer": SGD(1e-9), "evaluate": ()}
    with pytest.warns(TrainingWarning) as warned:
        result = train(rbm, data, epochs=220, guard=Guard(every=200), rng=0, **options)
    assert tuple(str(one.message) for one in warned) == result.notes[:1]  # symptoms are notes alone
    assert any("of the chains are mirrored" in note and "centred=True" in note for note in result.notes)
    assert not any("mirrored" in note for note in train(rbm, data, epochs=20, **options).notes)  # a trial
