"""The analysis of the study of recipes on made-up records: losses, rates, speed, rules that are equal."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paramagnet.sweeps.spec import Run
from paramagnet.sweeps.store import RunRecord, Store
from studies.recipe.analysis import (
    Floors,
    StageResult,
    contrasts,
    judge_stage,
    measure_floors,
    read_records,
)
from studies.recipe.losses import power_to_see
from studies.recipe.plan import MOST_NAMED, Rule, Stage, _named_rules, read_stage
from studies.recipe.report import main, make_page, make_verdict
from studies.recipe.run import make_parser, stages
from studies.starts.contest import RULES

EPOCHS = (0, 10, 50, 200)
FLOOR = Floors(-14.0, -14.5)
RATES = (1.0, 3.1623, 10.0)


def small_stage(n_rules: int = 3, trials: int = 3, rates: tuple[float, ...] = RATES) -> Stage:
    """Two settings of toy data; families that differ in the gain of their start."""
    stage = read_stage("stage1")
    starts = [f"{gain:g} centred" for gain in np.linspace(0.5, 1.5, n_rules)]
    rules = tuple(
        Rule("centred", "sum", start, "adam", "constant", rate) for start in starts for rate in rates
    )
    return replace(stage, settings=stage.settings[:2], rules=rules, trials=trials)


def record_of(run: Run, end: float, held_out: float = -11.0, half: float = 0.5) -> RunRecord:
    """A run from -14 to ``end``; ``half`` is the share of the way that it has at epoch 50."""
    middle = -14.0 + half * (end + 14.0)
    curve = (-14.0, -14.0 + 0.2 * (end + 14.0), middle, end)
    return RunRecord(
        run.digest, "recipe/stage1/x", "", "toy", 20, 20, "spin", "spin", run.hidden_bias, run.scheme,
        run.gain, 0.1, run.trial, run.seed, EPOCHS, curve, (-14.0, -13.0, -12.0, held_out),
        (0.0,) * 4, 1.0, "0", "0", "here", "now",
    )  # fmt: skip


def judge(stage: Stage, ends: dict[tuple[Rule, int], float], **options: float) -> StageResult:
    """The result of records with the ends of (rule, trial) in every setting; missing ones are not made."""
    records = {}
    for setting in stage.settings:
        for trial in range(stage.trials):
            for rule, run in stage.runs(setting, trial):
                if (rule, trial) in ends:
                    records[run.digest] = record_of(run, ends[rule, trial], **options)
    return judge_stage(stage, records, {setting.name: FLOOR for setting in stage.settings})


def ends_of(stage: Stage, best_rate: float = 3.1623) -> dict[tuple[Rule, int], float]:
    """Every family 0.5 behind the one before, and 0.2 for each half decade from the best rate."""
    families = list(dict.fromkeys(rule.family for rule in stage.rules))
    return {
        (rule, trial): -10.0
        - 0.5 * families.index(rule.family)
        - 0.4 * abs(math.log10(rule.rate / best_rate))
        + 0.3 * trial
        for rule in stage.rules
        for trial in range(stage.trials)
    }


def test_families_are_judged_at_their_best_rate() -> None:
    stage = small_stage()
    result = judge(stage, ends_of(stage)).settings[0]
    assert (result.n_trials, result.n_records, result.n_planned) == (3, 27, 27)
    assert [verdict.rate for verdict in result.verdicts] == [3.1623] * 3
    way = -10.0 + 0.3 + 14.0  # three trials: 0, 0.3, 0.6
    assert [v.loss for v in result.verdicts] == pytest.approx(
        [0.0, 100 * 0.5 / way, 100 * 1.0 / way], rel=1e-4
    )
    assert result.extensions == ()
    assert result.leaders is None  # three trials do not tell rules apart


@pytest.mark.parametrize(("best", "further"), [(10.0, 10.0 * math.sqrt(10)), (1.0, 1.0 / math.sqrt(10))])
def test_a_best_rate_at_an_end_extends_the_scan(best: float, further: float) -> None:
    stage = small_stage(n_rules=7)
    found = judge(stage, ends_of(stage, best)).settings[1].extensions
    assert len(found) == 5  # of the five best families only
    assert {item.rate for item in found} == {best}
    assert found[0].further == pytest.approx(further)
    assert judge(small_stage(rates=(1.0,)), ends_of(small_stage(rates=(1.0,)))).settings[0].extensions == ()


def test_the_verdict_says_what_keeps_rules_from_being_named() -> None:
    stage = small_stage(n_rules=7)
    inside, at_an_end = judge(stage, ends_of(stage)), judge(stage, ends_of(stage, 10.0))
    assert "rules can be named from it for stage 2. Of the race 1 of 9" in make_verdict(inside, (1, 9))
    assert "In 2 of 2 settings a rate of the best families is at an end" in make_verdict(at_an_end, (1, 9))
    lost = {key: value for key, value in ends_of(stage).items() if key != (stage.rules[4], 1)}
    assert "no rule is named from it before all are" in make_verdict(judge(stage, lost), (1, 9))


def test_only_complete_trials_count() -> None:
    stage = small_stage()
    ends = ends_of(stage)
    lost = {key: value for key, value in ends.items() if key != (stage.rules[4], 1)}
    result = judge(stage, lost)
    assert [one.n_trials for one in result.settings] == [2, 2]
    assert result.settings[0].n_records == 26
    one = {key: value for key, value in ends.items() if key[1] == 0}
    assert judge(stage, one).settings[0].n_trials == 1
    assert judge(stage, one).overall is not None
    none = judge(stage, {(stage.rules[0], 0): -10.0})
    assert none.overall is None
    assert none.counted == ()
    assert "No trial of any setting is complete" in make_page(none)
    assert "| all | 2 | 54 | |" in make_page(none)


def test_speed_is_apart_from_quality() -> None:
    """95 % of the way at epoch 50, or only at the end; the same ends."""
    stage = small_stage(n_rules=1)
    ends = {(rule, trial): -10.0 for rule in stage.rules for trial in range(3)}
    for half, epochs in ((0.96, 50), (0.94, 200)):
        verdict = judge(stage, ends, half=half).settings[0].verdicts[0]
        assert verdict.epochs == epochs
        assert verdict.loss == 0.0
    two = small_stage(n_rules=2)
    late = judge(two, ends_of(two)).settings[0].verdicts[1]
    assert late.epochs is None  # 0.5 behind of 4.3: it never has 95 % of the way


def test_held_out_points_are_beside_the_training_points() -> None:
    stage = small_stage(n_rules=2)
    verdict = judge(stage, ends_of(stage), held_out=-11.0).settings[0].verdicts[0]
    assert (verdict.held_out, verdict.held_out_loss) == (-11.0, 0.0)


def planted(leads: list[float], trials: int, seed: int) -> StageResult:
    """Families with these leads in units of their scatter over trials, 0.1, and a part that they share."""
    stage = small_stage(n_rules=len(leads), trials=trials, rates=(1.0,))
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((trials, len(leads))) + 3.0 * rng.standard_normal((trials, 1))
    values = -10.0 + 0.1 * (noise + np.array(leads))
    ends = {(rule, t): values[t, place] for place, rule in enumerate(stage.rules) for t in range(trials)}
    return judge(stage, ends)


def test_equal_rules_are_called_equal_and_a_better_one_is_found() -> None:
    equal = planted([0.0] * 6, 10, 1).settings[0]
    assert equal.leaders is not None
    assert len(equal.leaders) == 6
    better = planted([0.0, 0.0, 3.0, 0.0], 10, 2).settings[0]
    assert better.leaders is not None
    assert [verdict.family.start for verdict in better.leaders] == [better.verdicts[0].family.start]
    assert "1 of 4 families cannot be told from the best" in make_page(planted([0.0, 0.0, 3.0, 0.0], 10, 2))


def test_below_ten_trials_no_interval_is_printed() -> None:
    few, enough = make_page(planted([0.0, 3.0], 9, 3)), make_page(planted([0.0, 3.0], 10, 3))
    assert "Below 10 trials no interval is given" in few
    assert "cannot be told from the best" not in few
    assert " to +" in enough


@pytest.mark.slow
def test_the_stated_power() -> None:
    """With 26 rules, 18 settings and 10 trials, as stage2.toml says: one error of the mean is hardly ever
    enough to single a rule out, four errors are in about a third of experiments, eight are always.
    """
    one, four, eight = (power_to_see(effect, 26, 18, 10, n_experiments=40) for effect in (1.0, 4.0, 8.0))
    assert one < 0.1
    assert 0.1 < four < 0.7
    assert eight > 0.9


def test_contrasts_change_one_thing() -> None:
    stage = read_stage("stage1")
    for one in contrasts(stage):
        parts = zip(one.better.__dict__.values(), one.base.__dict__.values(), strict=True)
        differ = [a != b for a, b in parts if not (isinstance(a, float) and math.isnan(a))]
        # centring goes with its factor: two words differ, one thing does
        assert sum(differ) == (2 if "centred gradient" in one.title else 1), one.title
    assert len(contrasts(stage)) == 4 * 6 + 2


# Stage 2


def test_stage_2_waits_for_its_rules() -> None:
    assert stages() == ("stage1", "stage2")
    with pytest.raises(ValueError, match=r"`named` of stage2.toml must hold rules, it is empty"):
        read_stage("stage2")
    assert make_parser().parse_args(["stage2"]).stage == "stage2"


NAMED = {
    "gradient": "centred",
    "factor": "sum",
    "start": "0.7071 centred",
    "optimizer": "adam",
    "schedule": "falling",
    "rate": 3.1623,
}


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Stage 2 as it will be when a rule is named."""
    import studies.recipe.plan as plan

    text = (plan.FOLDER / "stage2.toml").read_text(encoding="utf-8")
    named = ", ".join(f"{key} = {value!r}".replace("'", '"') for key, value in NAMED.items())
    (tmp_path / "stage2.toml").write_text(text.replace("named = []", f"named = [{{{named}}}]"))
    monkeypatch.setattr(plan, "FOLDER", tmp_path)
    return plan.read_stage("stage2")


def test_stage_2_has_all_exact_settings_and_the_fourteen_rules(second: Stage) -> None:
    assert len(second.settings) == len({setting.name for setting in second.settings}) == 18
    assert len({(s.spec.name, s.n_hidden, s.hidden_bias) for s in second.settings}) == 18
    assert (second.trials, second.seed, second.scanned) == (10, 2002, False)
    starts = {rule.start for rule in second.rules[:-1]}
    assert len(starts) == len(RULES) == 14
    assert {str(start.gain)[:6] + start.scheme for start in RULES} == {
        (rule.split()[0] if " " in rule else "1.0") + rule.split()[-1] for rule in starts
    }
    assert second.rules[-1] == Rule(**NAMED)
    assert second.seed != 1001  # that of stage 1


def test_rules_of_stage_2_are_judged_as_they_stand(second: Stage) -> None:
    assert second.judged(second.rules[-1]) == second.rules[-1]
    toy = second.settings[0]
    runs = dict(second.runs(toy, 0))
    assert len({run.digest for run in runs.values()}) == 15
    assert runs[second.rules[-1]].learning.centred
    assert not runs[second.rules[0]].learning.centred


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ([NAMED] * 2, "must hold different rules"),
        ([NAMED] * (MOST_NAMED + 1), "must hold at most 12 rules, got 13"),
        ([NAMED | {"gradient": "natural"}], "`gradient` of stage2.toml must be one of centred, plain"),
        ([NAMED | {"start": "best"}], "`starts` must hold names among"),
        ([{"start": "centred"}], "must have the keys gradient, factor, start"),
    ],
)
def test_what_cannot_be_named_is_refused(named: list[dict[str, object]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _named_rules("stage2", named, {"constant": 1.0, "falling": 0.02})


# Records and pages


def test_records_are_read_and_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = small_stage(n_rules=2)
    monkeypatch.setattr("studies.recipe.report.read_stage", lambda name: stage)
    ends = ends_of(stage)
    for setting in stage.settings:
        with Store(tmp_path / "stage1" / f"{setting.name}.jsonl") as store:
            for trial in range(3):
                for rule, run in stage.runs(setting, trial):
                    store.append(record_of(run, ends[rule, trial]))
    assert len(read_records(tmp_path, stage)) == 36
    page = tmp_path / "page.md"
    assert main(["stage1", "--results", str(tmp_path), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "| toy_spin | 18 | 18 | 3 of 3 |" in text
    floors = measure_floors(stage, stage.settings[0])
    assert f"independent units have {floors.training:.3f} nats per point" in text
