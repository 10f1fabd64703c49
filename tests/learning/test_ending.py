"""Runs without a guard: what is said at their end, which machine is offered, that nothing else changes."""

from __future__ import annotations

import warnings

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
    TrainingWarning,
    independent_log_likelihood,
    initialize,
    load_checkpoint,
    log_likelihood,
    train,
    training_steps,
)
from paramagnet.learning import diagnosing, ending, verdict, watch

RNG = np.random.default_rng(3)
PATTERN = RNG.choice([-1.0, 1.0], size=12)
TWO_MODES = (
    PATTERN * RNG.choice([-1.0, 1.0], size=(60, 1)) * RNG.choice([-1.0, 1.0], p=[0.05, 0.95], size=(60, 12))
)
BIASED = np.where(RNG.random((60, 12)) < 0.9, 1.0, -1.0)
FALL = [(CD(1, n_threads=1), 0.3), (Exact(), 0.5)]  # at these rates
GRADIENTS = [CD(1, n_threads=1), Exact()]
CENTRED = "train with centred=True"
FROM_MEANS = "start from `initialize(visible_bias='data', data=...)`"
BELOW, FALLEN = "it has learned less than the means", "nats per training point, but had"


def machine(**options):
    return initialize(12, 6, hidden="spin", rng=1, **options)


def run(data, optimizer, gradient, *, start=None, epochs=100, **options):
    """A run, and its warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        options = {"batch_size": 20, "rng": 2, **options}
        rbm = machine() if start is None else start
        result = train(rbm, data, epochs=epochs, gradient=gradient, optimizer=optimizer, **options)
    return result, [one.message for one in warned]


def says(result, words):
    return any(words in note for note in result.notes)


# Nothing measured


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("gradient", [CD(10, n_threads=1), Exact()])
def test_a_result_below_independent_units_is_named_where_nothing_was_measured(
    gradient, estimated, monkeypatch
):
    if estimated:  # as where a sum takes too long
        monkeypatch.setattr(ending, "SECONDS_EXACT", -1.0)
        monkeypatch.setattr(ending, "Exact", CD if gradient.exact else Exact)
    options = {"evaluate": (), "batch_size": None, "epochs": 1200 if estimated else 250}
    result, warned = run(BIASED, Adam(1e-5), gradient, **options)
    assert BELOW in result.notes[0]
    assert [str(one) for one in warned] == [result.notes[0]]
    assert isinstance(warned[0], TrainingWarning)
    said = float(result.notes[0].split("log-likelihood of ")[1].split()[0])
    exact = log_likelihood(result.rbm, BIASED).value
    assert said == pytest.approx(exact, abs=0.2 if estimated else 0.006)
    assert f"have {independent_log_likelihood(BIASED):.2f}" in result.notes[0]
    assert len(result.history) == 0
    healthy, warned = run(BIASED, Adam(0.01), gradient, **options)
    assert log_likelihood(healthy.rbm, BIASED).value > independent_log_likelihood(BIASED)
    assert not any("nats" in note for note in healthy.notes)
    assert not warned


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_short_runs_and_those_without_a_guard_by_request_are_not_judged(gradient):
    for options in ({"epochs": 60}, {"epochs": 250, "guard": False}):
        result, warned = run(BIASED, Adam(1e-5), gradient, evaluate=(), batch_size=None, **options)
        assert log_likelihood(result.rbm, BIASED).value < independent_log_likelihood(BIASED) - 1.0
        assert not any("nats" in note for note in result.notes)
        assert not warned


def test_a_run_without_a_guard_by_request_goes_on_without_one():
    options = {"evaluate": (), "batch_size": None}
    chains = PCD(20, 1, 5, n_threads=1)
    first, _ = run(BIASED, Adam(1e-5), chains, epochs=10, guard=False, **options)
    result, _ = run(BIASED, Adam(1e-5), chains, start=first.state, epochs=1200, **options)
    assert not says(result, "nats")


@pytest.mark.parametrize(("gradient", "rate"), FALL)
def test_the_judgement_changes_nothing_in_the_run(gradient, rate, tmp_path):
    """State, records and checkpoint are those of a run that asked for none, bit for bit."""
    states = []
    for name, options in (("judged", {}), ("not", {"guard": False})):
        path = tmp_path / name
        result, _ = run(TWO_MODES, Adam(rate), gradient, checkpoint=path, **options)
        states.append((result, load_checkpoint(path)))
    (one, saved), (other, wanted) = states
    assert says(one, "nats per training point")
    assert not says(other, FALLEN)
    assert one.state.watch is None
    for found, expected in ((one.state, other.state), (saved, wanted)):
        np.testing.assert_array_equal(found.parameters, expected.parameters)
        assert found.rng_state == expected.rng_state
        assert found.settings == expected.settings
        assert found.watch is None
        for first, second in zip(found.records, expected.records, strict=True):
            assert first.log_likelihood == second.log_likelihood
    np.testing.assert_array_equal(one.rbm.weights, other.rbm.weights)
    np.testing.assert_array_equal(other.best.weights, other.rbm.weights)  # by request nothing else is kept


def test_the_time_of_the_judgement_is_not_counted(monkeypatch):
    looks = []
    original = ending._look
    monkeypatch.setattr(ending, "_look", lambda *args: looks.append(args[2].seconds) or original(*args))
    result, _ = run(BIASED, Adam(0.01), Exact(), evaluate=())
    assert looks == [result.state.seconds]
    list(training_steps(machine(), BIASED, epochs=250, gradient=Exact(), evaluate=()))  # as sweeps do
    assert len(looks) == 1


@pytest.mark.parametrize("unit", ["gaussian", "relu"])
def test_machines_without_an_estimate_of_their_likelihood_end_their_run_all_the_same(unit):
    """Of two unbounded layers, which have no sums, and whose coupling grows beyond its limit."""
    start = RBM(0.99 * np.eye(3), 0.0, 0.0, unit, unit)
    data = 2.0 * abs(np.random.default_rng(0).normal(size=(50, 3)))
    result, warned = run(data, SGD(1e-3), CD(20), start=start, evaluate=(), batch_size=None, epochs=500)
    assert result.finished
    assert not says(result, "nats")
    assert not warned


# Measured, and better before


@pytest.mark.parametrize(("gradient", "rate"), FALL)
def test_a_machine_that_was_better_before_is_named_and_offered(gradient, rate):
    result, warned = run(TWO_MODES, Adam(rate), gradient)
    values = result.history.log_likelihood
    assert says(result, f"{values[-1]:.2f} {FALLEN} {values.max():.2f} at update ")
    best = int(result.history.epoch[values.argmax()])
    assert says(result, f"at update {3 * best}; `TrainResult.best` is that one")
    assert says(result, "more sweeps per update") is not gradient.exact
    assert log_likelihood(result.best, TWO_MODES).value == pytest.approx(values.max(), abs=1e-9)
    assert log_likelihood(result.rbm, TWO_MODES).value == pytest.approx(values[-1], abs=1e-9)
    assert not warned  # a note


def test_a_machine_that_only_improves_is_the_best_one():
    result, warned = run(TWO_MODES, Adam("linear(0.02)"), Exact())
    assert not result.notes
    assert not warned
    np.testing.assert_array_equal(result.best.weights, result.rbm.weights)
    small, _ = run(TWO_MODES, Adam("linear(0.02)"), CD(20, n_threads=1))
    values = small.history.log_likelihood
    assert values.max() - values[-1] < 0.05 * (values.max() - independent_log_likelihood(TWO_MODES))
    assert not says(small, FALLEN)  # a small loss needs no word, but the best machine is there
    assert log_likelihood(small.best, TWO_MODES).value == pytest.approx(values.max(), abs=1e-9)


def test_held_out_points_count_where_there_are_some():
    rng = np.random.default_rng(0)
    first = rng.choice([-1.0, 1.0], size=(425, 1))
    points = np.where(rng.random((425, 8)) < 0.7, first, -first)
    learned, held_out = points[:25], points[25:]
    start = initialize(8, 10, rng=0)
    options = {"start": start, "validation": held_out, "epochs": 600, "evaluate": 10, "batch_size": None}
    result, warned = run(learned, Adam(0.02), Exact(), **options)
    values = result.history.validation
    assert values.max() - values[-1] > 0.5
    assert says(result, f"nats per held-out point, but had {values.max():.2f} at update ")
    assert says(result, "`early_stopping=EarlyStopping()`")
    assert log_likelihood(result.best, held_out).value == pytest.approx(values.max(), abs=1e-9)
    assert not warned
    stopped, _ = run(learned, Adam(0.02), Exact(), early_stopping=EarlyStopping(5), **options)
    assert not says(stopped, "but had")


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_a_machine_that_was_not_measured_at_its_end_is_compared_by_a_look(gradient):
    result, _ = run(TWO_MODES, Adam(0.5), gradient, evaluate=range(0, 60, 2))
    best = result.history.log_likelihood.max()
    now = log_likelihood(result.rbm, TWO_MODES).value
    assert says(result, f"{now:.2f} {FALLEN} {best:.2f} at update ")
    assert log_likelihood(result.best, TWO_MODES).value == pytest.approx(best, abs=1e-9)
    risen, _ = run(TWO_MODES, Adam("linear(0.02)"), Exact(), evaluate=(0,))
    assert not risen.notes
    np.testing.assert_array_equal(risen.best.weights, risen.rbm.weights)  # not the start


@pytest.mark.parametrize(("gradient", "rate"), FALL)
def test_a_resumed_run_names_a_better_machine_that_is_gone(gradient, rate, tmp_path):
    path = tmp_path / "run.checkpoint"
    whole, _ = run(TWO_MODES, Adam(rate), gradient)
    values = whole.history.log_likelihood
    best = int(whole.history.epoch[values.argmax()])

    def halt(state):
        if state.epoch == best + 1:
            raise StopIteration

    run(TWO_MODES, Adam(rate), gradient, callback=halt, checkpoint=path)
    again, _ = run(TWO_MODES, Adam(rate), gradient, start=load_checkpoint(path))
    np.testing.assert_array_equal(again.rbm.weights, whole.rbm.weights)
    assert says(whole, f"had {values.max():.2f} at update {3 * best}; `TrainResult.best` is that one")
    assert says(again, f"had {values.max():.2f} at update {3 * best}. ")
    assert not says(again, "`TrainResult.best`")


def test_large_machines_are_kept_in_a_file(monkeypatch):
    whole, _ = run(TWO_MODES, Adam(0.3), GRADIENTS[0])
    monkeypatch.setattr(watch, "LARGE", 1)
    result, _ = run(TWO_MODES, Adam(0.3), GRADIENTS[0])
    assert isinstance(result._best.parameters.base, np.memmap)
    np.testing.assert_array_equal(result.best.weights, whole.best.weights)
    assert result.notes == whole.notes


# Words


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_nobody_is_told_to_start_as_they_did(gradient):
    """The advice to start from the means of the data is for those who did not."""
    options = {"evaluate": (), "batch_size": None, "epochs": 220}
    start = machine(visible_bias="data", data=BIASED, gain=6.0)
    plain = machine(gain=6.0)
    centred = initialize(12, 6, visible_bias="data", data=BIASED, scheme="centred", gain=8.0, rng=1)
    weights = np.arange(60) % 2  # others than the points that the biases are of
    for rbm, more, advised in (
        (plain, {}, True),
        (start, {}, False),
        (start, {"sample_weight": weights}, False),
        (centred, {}, False),
    ):
        result, _ = run(BIASED, Adam(1e-6), gradient, start=rbm, **options, **more)
        assert says(result, BELOW)
        assert says(result, "start with `visible_bias='data'`") is advised
        assert says(result, "more sweeps per update") is not gradient.exact


@pytest.mark.parametrize("gradient", [PCD(20, 1, 5, n_threads=1), Exact()])
@pytest.mark.parametrize("start", ["layer-correlation", "data", "centred"])
@pytest.mark.parametrize("centred", [False, True])
def test_symptoms_name_no_remedy_that_was_taken(gradient, start, centred, monkeypatch):
    every = [
        *verdict.judge_idle(np.ones(4, bool)),
        verdict.Finding("mirrored", "Some", f"{CENTRED}, or {FROM_MEANS}"),
        verdict.Finding("means", "Others", "train longer, start from visible_bias='data', or give more"),
    ]
    monkeypatch.setattr(diagnosing, "quick_diagnosis", lambda *arguments: tuple(every))
    biases = {} if start == "layer-correlation" else {"visible_bias": "data", "data": BIASED}
    rbm = machine(**biases, scheme="centred" if start == "centred" else "layer-correlation")
    options = {"epochs": 220, "batch_size": None, "evaluate": (), "guard": False, "centred": centred}
    result, _ = run(BIASED, SGD(1e-12), gradient, start=rbm, **options)
    idle, mirrored, means = result.notes[-3:]
    assert ("train with centred=True, for longer or" in idle) is not centred
    assert ("train for longer or at a higher rate" in idle) is centred
    assert ("centred=True" in mirrored) is not centred
    for note in (mirrored, means):
        assert ("visible_bias='data'" in note) is not bool(biases)


def test_remedies_that_are_left():
    for done, left in (
        ((False, False), f"{CENTRED}, or {FROM_MEANS}"),
        ((True, False), FROM_MEANS),
        ((False, True), CENTRED),
        ((True, True), "give the chains of training more sweeps per update"),
    ):
        finding = verdict.Finding("mirrored", "Some", f"{CENTRED}, or {FROM_MEANS}")
        found = verdict.leave_out_done(finding, centred=done[0], from_means=done[1])
        assert (found.name, found.message, found.remedy) == ("mirrored", "Some", left)


def test_a_falling_rate_is_not_advised_where_it_falls():
    for optimizer, advised in ((Adam(0.5), True), (Adam("linear(0.5, end=0.4999)"), False)):
        result, _ = run(TWO_MODES, optimizer, GRADIENTS[0])
        assert says(result, FALLEN)
        assert says(result, "A falling learning rate (`Adam('linear')`)") is advised
        assert says(result, "A smaller learning rate") is not advised
