"""Which rules of stage 1 go on to stage 2, on made-up losses."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace

import pytest

from studies.recipe.analysis import Floors
from studies.recipe.naming import SLOTS, as_toml, mean_losses, name_rules
from studies.recipe.plan import Rule, _named_rules, read_stage
from tests.studies.test_recipe_analysis import FLOOR, ends_of, record_of, small_stage

RECIPE = Rule("centred", "sum", "0.7071 centred", "adam", "falling", 10.0)


def planted(**best: float) -> dict[Rule, float]:
    """Every rule of stage 1 loses 50 %, the recipe 40; ``best`` lowers rules by gradient or start."""
    losses = {}
    for rule in read_stage("stage1").rules:
        words = f"{rule.gradient} {rule.factor} {rule.start} {rule.optimizer} {rule.schedule} {rule.rate:g}"
        known = [loss for name, loss in best.items() if name.replace("_", " ") in words]
        recipe = replace(RECIPE, rate=rule.rate) == rule
        losses[rule] = min([*known, 40.0 + abs(math.log10(rule.rate / 3.1623)) if recipe else 50.0])
    return losses


def test_the_recipe_is_first_at_its_best_rate_and_no_family_is_there_twice() -> None:
    named = name_rules(planted())
    assert named[0][1] == replace(RECIPE, rate=3.1623)
    assert len(named) == 12
    assert len({str(rule.family) for _, rule in named}) == 12


def test_every_slot_has_its_best_rule() -> None:
    losses = planted(plain=30.0, hopfield=20.0, sgd=25.0)
    rules = [rule for _, rule in name_rules(losses)]
    for _, fits in SLOTS:
        best = min(losses[rule] for rule in losses if fits(rule))
        assert any(fits(rule) and losses[rule] == best for rule in rules)
    alone = [rule for rule in rules if rule.gradient == "plain" and rule.start != "hopfield"]
    assert alone


def test_the_rest_are_the_smallest_losses() -> None:
    losses = planted()
    wanted = [
        rule for rule in losses if rule.start == "2 centred" and rule.optimizer == "adam" and rule.rate == 10
    ]
    losses |= dict.fromkeys(wanted, 1.0)
    named = {rule: reason for reason, rule in name_rules(losses)}
    assert set(wanted) <= set(named)
    assert not {rule for rule in named if rule.start == "2 centred"} - set(wanted)


def test_the_lines_are_read_by_the_plan() -> None:
    losses = planted(plain=30.0)
    named = name_rules(losses)
    content = tomllib.loads(as_toml(named, losses))["named"]
    ends = {"constant": 1.0, "falling": 0.02}
    assert _named_rules("stage2", content, ends) == [rule for _, rule in named]


def test_losses_are_those_of_rules_with_their_rates() -> None:
    stage = small_stage()
    records = {}
    for setting in stage.settings:
        for (rule, trial), end in ends_of(stage).items():
            run = dict(stage.runs(setting, trial))[rule]
            records[run.digest] = record_of(run, end)
    losses = mean_losses(stage, records, {setting.name: FLOOR for setting in stage.settings})
    assert [*losses.values()] == sorted(losses.values())
    best, way = next(iter(losses)), -10.0 + 0.3 + 14.0
    assert best.rate == 3.1623
    assert losses[best] == 0.0
    slow = replace(best, rate=1.0)
    assert losses[slow] == pytest.approx(100.0 * 0.4 * math.log10(3.1623) / way)
    with pytest.raises(ValueError, match="toy_spin has none"):
        mean_losses(stage, {}, {setting.name: Floors(-14.0, -14.0) for setting in stage.settings})
