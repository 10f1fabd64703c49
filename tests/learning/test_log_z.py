"""The policy for ln Z: exact where that is cheap, else an estimate; the same everywhere."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.learning import evaluation
from paramagnet.learning.gradients.base import Gradient, ModelMoments
from paramagnet.learning.state import Record
from paramagnet.sweeps.spec import MeasurementSpec

RBM = pm.initialize(8, 5, rng=0)
LARGE = pm.initialize(60, 50, rng=0)
DATA = np.where(np.random.default_rng(1).random((30, 8)) < 0.7, 1.0, -1.0)


def test_auto_is_exact_where_the_sum_is_cheap():
    small, large = pm.LogZ().choose(RBM), pm.LogZ().choose(LARGE)
    assert small.method == "exact"
    assert small.why.startswith("because the sum over 2**5 states is affordable")
    assert large.method == "mais"
    assert large.why.startswith("because the exact sum over 2**50 states would take about")
    assert pm.LogZ(seconds=0.0).choose(RBM).method == "mais"
    assert pm.LogZ("ais").choose(RBM)[:2] == ("ais", "as asked for")
    assert pm.LogZ().choose_for(8, 5) == small


def test_the_limit_is_in_seconds_of_the_exact_sum():
    seconds = pm.LogZ().choose(RBM).seconds
    assert pm.LogZ(seconds=seconds).choose(RBM).method == "exact"
    assert pm.LogZ(seconds=0.999 * seconds).choose(RBM).method == "mais"
    more = pm.initialize(30, 28, rng=0)
    assert pm.LogZ().choose(more, n_threads=4).seconds < pm.LogZ().choose(more).seconds


def test_the_value_is_that_of_the_public_functions():
    assert pm.LogZ()(RBM) == pm.Estimate(pm.log_partition(RBM))
    for method in ("mais", "ais", "reverse-ais"):
        ours = pm.LogZ(method, n_samples=60, n_temperatures=40)(RBM, 3)
        theirs = pm.estimate_log_partition(RBM, method=method, n_samples=60, n_temperatures=40, rng=3)
        assert ours == theirs
        assert ours.n_effective < 61.0
    visible = {"n_samples": 60, "n_temperatures": 40, "marginalize": "visible"}
    assert pm.LogZ("mais", **visible)(RBM, 3) == pm.estimate_log_partition(RBM, rng=3, **visible)


def test_an_estimate_can_start_from_the_data():
    policy, means = pm.LogZ("mais", n_samples=60, n_temperatures=40, start="data"), DATA.mean(axis=0)
    expected = pm.estimate_log_partition(RBM, n_samples=60, n_temperatures=40, start=means, rng=3)
    assert policy(RBM, 3, means=means) == expected
    with pytest.raises(ValueError, match="`start` = 'data' must be used where there are data"):
        policy(RBM, 3)
    pm.LogZ(start="data")(RBM)  # exact, so there is no start
    result = pm.train(RBM, DATA, epochs=1, gradient=pm.PCD(10, 1, 0), log_z=policy, rng=0)
    assert np.all(result.history.error > 0.0)


def test_of_two_starts_the_larger_estimate_counts():
    """A machine with a deep well far from the data: from the means of the data mAIS does not find it."""
    n = 20
    rng = np.random.default_rng(0)
    data = np.where(rng.random((50, n)) < 0.98, 1.0, -1.0)
    rbm = pm.RBM(np.full((n, 1), -1.5), np.full(n, 0.2), [12.0], "spin", "bit")
    means, exact = data.mean(axis=0), pm.log_partition(rbm)
    effort = {"n_samples": 40, "n_temperatures": 50, "marginalize": "hidden"}
    uniform = pm.LogZ("mais", **effort)(rbm, 0)
    both = pm.LogZ("mais", start="both", **{**effort, "n_samples": 80})(rbm, 0, means=means)
    assert both.value >= uniform.value - 4.0 * uniform.error
    assert abs(both.value - exact) < 0.5
    generator = np.random.default_rng(3)
    halves = [
        pm.estimate_log_partition(RBM, n_samples=30, n_temperatures=40, start=start, rng=generator)
        for start in ("uniform", DATA.mean(axis=0))
    ]
    policy = pm.LogZ("mais", n_samples=60, n_temperatures=40, start="both")
    assert policy(RBM, 3, means=DATA.mean(axis=0)) == max(halves, key=lambda half: half.value)
    with pytest.raises(ValueError, match="`start` = 'both' must be used where there are data"):
        policy(RBM, 3)
    result = pm.train(RBM, DATA, epochs=1, gradient=pm.PCD(10, 1, 0), log_z=policy, rng=0)
    assert np.all(result.history.error > 0.0)


def test_exact_sums_longer_than_ten_minutes_must_be_asked_for(monkeypatch):
    forced = []
    monkeypatch.setattr(
        evaluation, "log_partition", lambda rbm, **options: forced.append(options["force"]) or 0.0
    )
    monkeypatch.setattr(evaluation, "estimate_seconds", lambda *_, **__: 1000.0)
    assert pm.LogZ(seconds=2000.0).choose(RBM).method == "exact"
    pm.LogZ(seconds=2000.0)(RBM)
    pm.LogZ("exact", seconds=2000.0)(RBM)
    pm.LogZ("exact")(RBM)
    assert forced == [True, True, False]
    assert pm.LogZ("exact", seconds=2000.0).choose(RBM).method == "exact"
    with pytest.raises(ValueError, match=r"`method` = 'exact' must take at most ten minutes, got .* 16\.7"):
        pm.LogZ("exact").choose(RBM)
    with pytest.raises(ValueError, match=r"`method` = 'reverse-ais' must .* 2\*\*5 states"):
        pm.LogZ("reverse-ais").choose(RBM)


def test_without_force_the_sum_refuses_itself():
    with pytest.raises(ValueError, match="Exact enumeration needs"):
        pm.LogZ("exact")(LARGE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "`method` must be one of 'auto', 'exact', 'mais', .*, got 'guess'"),
        ({"seconds": -1.0}, "`seconds` must be zero or positive, got -1"),
        ({"n_samples": 0}, "`n_samples` must be a positive integer, got 0"),
        ({"n_temperatures": 1.5}, "`n_temperatures` must be a positive integer, got 1.5"),
        ({"marginalize": "both"}, "`marginalize` must be .*'hidden'.*, got 'both'"),
        ({"start": "there"}, "`start` must be 'uniform', 'data' or 'both', got 'there'"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        pm.LogZ(**options)


# Training


def measured(gradient, **options):
    return pm.train(RBM, DATA, epochs=4, gradient=gradient, batch_size=10, evaluate=2, rng=0, **options)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(20, 2, 3, n_threads=1)])
def test_train_measures_in_the_way_asked_for(gradient):
    plain = measured(gradient)
    estimated = measured(gradient, log_z=pm.LogZ("mais", n_samples=300, n_temperatures=200))
    np.testing.assert_array_equal(estimated.rbm.weights, plain.rbm.weights)  # measuring changes no run
    assert np.all(plain.history.error == 0.0)
    assert np.all(plain.history.n_effective == math.inf)
    assert np.all(estimated.history.error > 0.0)
    assert np.all(estimated.history.n_effective <= 300.0)
    distance = np.abs(estimated.history.log_likelihood - plain.history.log_likelihood)
    assert np.all(distance < 4.0 * estimated.history.error)
    assert all(record.trusted for record in (*plain.state.records, *estimated.state.records))
    with pytest.raises(ValueError, match=r"`log_z` must be a `LogZ`, .* got 'mais'"):
        measured(gradient, log_z="mais")


def test_a_result_has_both_errors_of_its_last_measurement():
    """Those of `pm.log_likelihood`, with the weights of the points; a run that measured nothing has none."""
    weights = np.linspace(0.5, 1.5, len(DATA))
    options = {"sample_weight": weights, "validation": DATA[:7], "rng": 0}
    result = pm.train(RBM, DATA, epochs=3, evaluate=2, **options)
    for found, points, given in ((result.log_likelihood, DATA, weights), (result.validation, DATA[:7], None)):
        wanted = pm.log_likelihood(result.rbm, points, sample_weight=given)
        assert (found.value, found.points_error) == pytest.approx(
            (wanted.value, wanted.points_error), rel=1e-12
        )
        assert (found.n_points, found.error) == (len(points), 0.0)
    assert result.log_likelihood.value == result.history.log_likelihood[-1]
    assert result.validation.value == result.history.validation[-1]
    assert repr(result).startswith(
        f"TrainResult(8 x 5 units, 3 epochs, log-likelihood {result.log_likelihood}, "
    )
    assert f"validation {result.validation}, at epoch 3" in repr(result)
    policy = pm.LogZ("mais", n_samples=60, n_temperatures=30)
    estimated = pm.train(RBM, DATA, epochs=1, gradient=pm.PCD(n_chains=5), log_z=policy, rng=0)
    assert estimated.log_likelihood.error == estimated.history.error[-1] > 0.0
    assert re.search(r"log-likelihood \S+ \+- \S+ \(30 points\) \+- \S+ \(ln Z\)", repr(estimated))
    assert estimated.validation is None
    nothing = pm.train(RBM, DATA, epochs=1, evaluate=(), rng=0)
    assert nothing.log_likelihood is None is nothing.validation
    further = pm.train(result.state, DATA, epochs=4, evaluate=(), **(options | {"rng": None}))
    assert further.log_likelihood is None  # the errors of an earlier run are not kept
    assert "log-likelihood" in repr(further)


def test_a_record_says_whether_it_can_be_trusted():
    assert Record(0, -1.0, math.nan, 0.0, 0.0, 0.0).trusted
    assert Record(0, -1.0, math.nan, 0.0, 0.0, 0.0, 0.1, 60.0).trusted
    assert not Record(0, -1.0, math.nan, 0.0, 0.0, 0.0, 0.1, 40.0).trusted


class Silent(Gradient):
    """Averages that are always zero; its state has no seed."""

    def __repr__(self):
        return "Silent()"

    def start(self, layout, parameters, points, rng, engine):
        return None

    def moments(self, layout, parameters, points, state, engine):
        return None, ModelMoments(np.zeros(layout.size))


@pytest.mark.parametrize("gradient", [Silent(), pm.Exact()], ids=str)
def test_estimates_without_chains_are_the_same_after_an_interruption(gradient, tmp_path):
    policy = pm.LogZ("mais", n_samples=30, n_temperatures=10)

    def stop(state):
        if state.update == 7:
            raise StopIteration

    whole = measured(gradient, log_z=policy)
    measured(gradient, log_z=policy, callback=stop, checkpoint=tmp_path / "run")
    state = pm.load_checkpoint(tmp_path / "run")
    again = pm.train(state, DATA, epochs=4, gradient=gradient, batch_size=10, evaluate=2, log_z=policy)
    np.testing.assert_array_equal(again.history.log_likelihood, whole.history.log_likelihood)
    np.testing.assert_array_equal(again.history.n_effective, whole.history.n_effective)
    assert len(set(whole.history.error)) == 3  # other random numbers at other epochs


def test_effective_samples_are_kept_in_checkpoints(tmp_path):
    policy = pm.LogZ("mais", n_samples=1000, n_temperatures=5)
    result = measured(pm.PCD(20, 2, 3, n_threads=1), log_z=policy, checkpoint=tmp_path / "new")
    history = pm.load_checkpoint(tmp_path / "new").history
    np.testing.assert_array_equal(history.n_effective, result.history.n_effective)
    # Checkpoints of before had seven columns, and estimates of 1000 samples.
    from paramagnet._files import read_arrays, write_arrays

    arrays, metadata = read_arrays(tmp_path / "new", "paramagnet.checkpoint")
    arrays["records"] = arrays["records"][:, :7].copy()
    write_arrays(tmp_path / "old", arrays, "paramagnet.checkpoint", {"state": metadata["state"]})
    old = pm.load_checkpoint(tmp_path / "old").records
    for ours, theirs in zip(old, result.state.records, strict=True):
        assert repr(replace(ours, n_effective=0.0)) == repr(replace(theirs, n_effective=0.0))
        assert ours.n_effective == pytest.approx(theirs.n_effective, rel=1e-9)


# Sweeps


def test_a_measurement_of_a_sweep_is_a_policy():
    spec = MeasurementSpec(
        (4, 8), log_partition="mais", n_samples=9, n_temperatures=7, curve_samples=5, curve_temperatures=3
    )
    assert spec.log_z(8) == pm.LogZ("mais", n_samples=9, n_temperatures=7)
    assert spec.log_z(2) == pm.LogZ("mais", n_samples=5, n_temperatures=3)
    assert MeasurementSpec((4,)).log_z(4).method == "exact"


def test_the_policy_is_in_one_place():
    """No other file both estimates ln Z and asks what an exact sum costs, or whether it is affordable."""
    root = Path(pm.__file__).parent
    deciding = []
    for path in root.rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if "estimate_log_partition" in names and names & {"log_partition", "estimate_seconds"}:
            deciding.append(path.name)
    deciding.remove("__init__.py")
    assert deciding == ["evaluation.py"]


# Measurements of one's own


def test_log_z_can_be_a_function_of_machine_and_epoch():
    asked = []

    def log_z(rbm, epoch):
        asked.append(epoch)
        return pm.Estimate(pm.log_partition(rbm), 0.01 * epoch, 100.0)

    plain, ours = (
        measured(pm.PCD(20, 2, 3, n_threads=1)),
        measured(pm.PCD(20, 2, 3, n_threads=1), log_z=log_z),
    )
    assert asked == [0, 2, 4]
    np.testing.assert_array_equal(ours.history.log_likelihood, plain.history.log_likelihood)
    np.testing.assert_array_equal(ours.history.error, [0.0, 0.02, 0.04])
    measured(pm.Exact(), log_z=log_z)
    assert asked == [0, 2, 4] * 2
    with pytest.raises(ValueError, match="`log_z` must return an `Estimate`, got 1"):
        measured(pm.Exact(), log_z=lambda rbm, epoch: 1.0)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(20, 2, 3, n_threads=1)])
def test_a_state_can_be_kept_before_it_is_measured(gradient, tmp_path):
    options = {"epochs": 4, "gradient": gradient, "batch_size": 10, "evaluate": (0, 2, 4)}
    kept = []
    states = list(pm.training_steps(RBM, DATA, rng=0, before_measuring=kept.append, **options))
    assert [(state.epoch, state.batch, len(state.records)) for state in kept] == [
        (0, 0, 0),
        (2, 0, 1),
        (4, 0, 2),
    ]
    for state in kept:
        state.save(tmp_path / "kept")
        state = pm.load_checkpoint(tmp_path / "kept")
        again = list(pm.training_steps(state, DATA, before_measuring=lambda state: None, **options))
        assert (again[0].update, again[0].records[-1].epoch) == (state.update, state.epoch)
        np.testing.assert_array_equal(again[-1].parameters, states[-1].parameters)
        np.testing.assert_array_equal(again[-1].history.log_likelihood, states[-1].history.log_likelihood)
        # Without the hook the states are those after updates, as ever.
        plain = list(pm.training_steps(state, DATA, **options))
        assert [found.update for found in plain] == [found.update for found in again[1:]]
    with pytest.raises(ValueError, match="`before_measuring` must be"):
        pm.training_steps(RBM, DATA, before_measuring=3, **options)
