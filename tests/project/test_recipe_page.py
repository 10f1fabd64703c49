"""The page on the defaults: tables from records; the rule of the choice does what it says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paramagnet.learning import recipe as rules
from paramagnet.schemes import Recommended

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("recipe_page")


def test_the_tables_are_those_of_the_records(benchmark: ModuleType) -> None:
    text = benchmark.PAGE.read_text(encoding="utf-8")
    assert benchmark.make_page(text) == text


def test_the_page_names_the_numbers_of_the_recipe(benchmark: ModuleType) -> None:
    text = benchmark.PAGE.read_text(encoding="utf-8")
    for words in (
        f"less than {1e3 * rules.SECONDS_EXACT:g} ms",
        f"PCD with {rules.CHAINS['n_chains']} chains, {rules.CHAINS['n_steps']} sweeps",
        f"{rules.RATE_EXACT:g} with exact gradients, {rules.RATE_SAMPLED:g} with sampled ones",
        f"{rules.BATCH} points, or n/{rules.MOST_BATCHES}",
        f"about {rules.UPDATES_EXACT} updates (exact) or {rules.UPDATES_SAMPLED} (sampled)",
        f"at least {rules.FEWEST_EPOCHS} and at most {rules.MOST_EPOCHS} epochs",
        f"at most {rules.MOST_HIDDEN}",
    ):
        assert words in text, words


def test_the_recipe_is_what_the_rounds_chose(benchmark: ModuleType) -> None:
    """All rounds are there, and the rule of the plan leads from their records to the code's numbers."""
    choice = benchmark.Choice(benchmark.read_plan(), benchmark.read_records())
    for stage in choice.plan["rounds"]:
        _, index = choice.judge(stage)
        choice.settle(stage, stage["candidates"][index])
    exact, sampled = choice.kinds["exact"], choice.kinds["pcd"]
    assert (exact["rate"], exact["batch_size"]) == (rules.RATE_EXACT, rules.BATCH)
    assert (sampled["rate"], sampled["batch_size"]) == (rules.RATE_SAMPLED, rules.BATCH)
    assert (sampled["n_chains"], sampled["n_steps"]) == (rules.CHAINS["n_chains"], rules.CHAINS["n_steps"])
    for kind in (exact, sampled):
        assert (kind["scheme"], kind["gain"], kind["centred"]) == ("centred", Recommended.gain, True)
        assert kind["hidden_bias"] == 0.0


def test_what_the_page_says_of_the_rounds(benchmark: ModuleType) -> None:
    choice = benchmark.Choice(benchmark.read_plan(), benchmark.read_records())
    sampler, _, start = choice.plan["rounds"][:3]
    rows, index = choice.judge(sampler)
    chosen = rows[index]
    assert chosen["mnist"] == chosen["ulc"] == 100.0
    assert max(row["mnist"] for row in rows if row is not chosen) < 86.5
    assert min(chosen["digits"], chosen["digits-spin"]) > 98.0
    for stage in choice.plan["rounds"][:2]:
        _, index = choice.judge(stage)
        choice.settle(stage, stage["candidates"][index])
    rows, index = choice.judge(start)
    centred, plain = rows[index], rows[4]
    assert round(plain["mnist"] - centred["mnist"]) == 10
    assert all(3.5 < centred[name] - plain[name] < 5.5 for name in ("digits", "digits-spin"))
    assert all(centred["mean"] - row["mean"] < 1.0 for row in rows[1:5])


def test_the_defaults_are_never_below_independent_units(benchmark: ModuleType) -> None:
    """And within 2 % of the best of the fourteen rules where the likelihood is exact."""
    measured = benchmark.defaults.read_records()
    assert measured
    for record in measured:
        error = 3.0 * record["error"]
        assert record["learned"] - error > record["independent_learned"], record
        assert record["test"] - error > record["independent_test"], record
        studied = benchmark.defaults.STUDIED.get(record["set"])
        if studied and studied[1] == record["n_hidden"]:
            best = benchmark.defaults.best_rule(record["set"])[1]
            assert benchmark.defaults.loss_of(record, best) <= benchmark.defaults.MOST_LOSS, record


# The rule of the choice, on made-up runs

PLAN = {
    "seeds": [1, 2],
    "sets": {
        name: {"units": "bit", "n_hidden": 2, "gradient": "pcd", "seconds": 1.0} for name in ("one", "two")
    },
    "start": {"all": {"gain": 1.0}, "pcd": {"rate": 0.1}, "exact": {"rate": 0.2}},
    "rounds": [{"name": "rate", "kind": "pcd", "candidates": [{"rate": 0.1}, {"rate": 0.3}, {"rate": 0.5}]}],
}


def choose(benchmark: ModuleType, values: dict[float, tuple[float, float]]) -> int:
    """The index of the choice if candidates have these validation log-likelihoods in the two sets."""
    choice = benchmark.Choice(json.loads(json.dumps(PLAN)), [])
    stage: dict[str, Any] = choice.plan["rounds"][0]
    for candidate in stage["candidates"]:
        for name, seed, settings in choice.runs(stage, candidate):
            value = values[candidate["rate"]][name == "two"] + (0.1 if seed == 2 else -0.1)
            record = {"set": name, "seed": seed, "settings": settings, "validation": value, "floor": -20.0}
            choice.learn([record])
    rows, index = choice.judge(stage)
    assert max(row["one"] for row in rows) == pytest.approx(100.0)
    return int(index)


def test_the_largest_mean_is_chosen_unless_the_first_is_near(benchmark: ModuleType) -> None:
    assert choose(benchmark, {0.1: (-12.0, -12.0), 0.3: (-10.0, -10.0), 0.5: (-11.0, -9.9)}) == 1
    assert choose(benchmark, {0.1: (-10.04, -10.0), 0.3: (-10.0, -10.0), 0.5: (-11.0, -11.0)}) == 0
    assert choose(benchmark, {0.1: (-10.2, -10.0), 0.3: (-10.0, -10.0), 0.5: (-11.0, -11.0)}) == 1


def test_what_is_below_independent_units_anywhere_is_out(benchmark: ModuleType) -> None:
    assert choose(benchmark, {0.1: (-15.0, -15.0), 0.3: (-10.0, -20.5), 0.5: (-14.0, -14.0)}) == 2


def test_rounds_start_from_what_was_chosen_before(benchmark: ModuleType) -> None:
    choice = benchmark.Choice(json.loads(json.dumps(PLAN)), [])
    choice.settle(choice.plan["rounds"][0], {"rate": 0.3})
    assert choice.kinds["pcd"]["rate"] == 0.3
    assert choice.kinds["exact"]["rate"] == 0.2
