"""The plan of the study of recipes, and its optimizer."""

from __future__ import annotations

import math

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.learning.centring import Centring
from studies.recipe.plan import read_stage
from studies.recipe.run import make_parser, stages
from studies.recipe.stretched import Stretched


def _stretched(rate: float = 0.01, **options: object) -> Stretched:
    settings = {"kind": "adam", "end": 1.0, "n_updates": 12, "factor": 1.0, "n_weights": 24, "n_hidden": 4}
    return Stretched(rate, **{**settings, **options})


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(3).choice([-1.0, 1.0], size=(60, 6), p=[0.2, 0.8])


def _train(points: np.ndarray, optimizer: object, centred: object) -> np.ndarray:
    start = pm.initialize(6, 4, rng=1)
    found = pm.train(start, points, epochs=4, batch_size=20, optimizer=optimizer, centred=centred, rng=2)
    return found.state.parameters


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_factor_is_that_of_centred_learning(points: np.ndarray, kind: str) -> None:
    plain = {"adam": pm.Adam, "sgd": pm.SGD}[kind](0.01)
    ours = _train(points, _stretched(kind=kind, factor=2.5), True)
    assert np.allclose(ours, _train(points, plain, Centring(factor=2.5)), rtol=1e-9)
    assert not np.allclose(ours, _train(points, plain, Centring(factor=2.4)), rtol=1e-6)


def test_factor_one_is_the_optimizer_itself(points: np.ndarray) -> None:
    assert np.array_equal(_train(points, _stretched(), False), _train(points, pm.Adam(0.01), False))


def test_factor_moves_hidden_biases_only_in_the_first_plain_step(points: np.ndarray) -> None:
    start = pm.initialize(6, 4, rng=1)
    before = pm.train(start, points, epochs=0, rng=2).state.parameters
    options = {"epochs": 1, "rng": 2, "gradient": pm.Exact()}
    one = pm.train(start, points, optimizer=_stretched(), **options).state.parameters
    three = pm.train(start, points, optimizer=_stretched(factor=3.0), **options).state.parameters
    hidden = slice(24, 28)
    assert np.allclose((three - before)[hidden], 3.0 * (one - before)[hidden], rtol=1e-12)
    others = np.delete(three, np.arange(24, 28))
    assert np.array_equal(others, np.delete(one, np.arange(24, 28)))


def test_falling_rate_ends_at_its_share(points: np.ndarray) -> None:
    optimizer = _stretched(end=0.02)
    assert math.isclose(optimizer.learning_rate(0), 0.01)
    assert math.isclose(optimizer.learning_rate(12), 0.0002)
    schedule = pm.Schedule("linear", 0.01, end=0.0002, n_updates=12)
    assert np.array_equal(_train(points, optimizer, False), _train(points, pm.Adam(schedule), False))


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="`kind` must be one of 'adam', 'sgd', got 'lion'"):
        _stretched(kind="lion")


def test_stage_1_has_every_rule_with_every_rate() -> None:
    stage = read_stage("stage1")
    assert len(stage.rules) == len(set(stage.rules)) == 25 * 2 * (5 + 3)
    assert [setting.name for setting in stage.settings] == [
        "toy_spin", "toy_sparse", "drybean_spin", "drybean_bit", "digits_spin", "digits_sparse",
    ]  # fmt: skip
    toy = stage.settings[1]
    runs = dict(stage.runs(toy, 0))
    assert {run.hidden_bias for run in runs.values()} == {-5.0}
    falling = [run for rule, run in runs.items() if rule.schedule == "falling"]
    assert {dict(run.learning.options)["end"] for run in falling} == {0.02}
    assert {dict(run.learning.options)["n_updates"] for run in falling} == {200}  # one batch an epoch
    rates = {run.learning.learning_rate for rule, run in runs.items() if rule.optimizer == "adam"}
    assert sorted(rates) == pytest.approx([0.01, 0.031623, 0.1, 0.31623, 1.0])
    by_factor = {rule.factor: dict(run.learning.options)["factor"] for rule, run in runs.items()}
    assert by_factor == {"1": 1.0, "sqrt n": pytest.approx(20**0.5), "sum": 1.0, "n": 20.0}
    assert len({rule.family for rule in stage.rules}) == 100


def test_command_names_the_stages() -> None:
    assert stages() == ("stage1", "stage2")
    assert make_parser().parse_args(["stage1", "--only", "toy_spin"]).only == "toy_spin"
