"""The committed records of the study of recipes: each belongs to its plan; the page is made from them."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from paramagnet.sweeps.store import Store
from studies.recipe.analysis import judge_stage, measure_floors, read_records
from studies.recipe.plan import Stage, read_stage
from studies.recipe.report import count_races, fill_verdict, make_page, make_verdict, page_name

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "recipe"
STORES = sorted(RESULTS.rglob("*.jsonl"))
LOCAL = bool(os.environ.get("PARAMAGNET_DATA"))
WITHOUT_FILES = ("toy", "digits")


@pytest.fixture(scope="module")
def stage() -> Stage:
    return read_stage("stage1")


@pytest.mark.parametrize("path", STORES, ids=lambda path: str(path.relative_to(RESULTS)))
def test_records_are_read_and_belong_to_the_plan(path: Path) -> None:
    stage = read_stage(path.parent.name)
    (setting,) = (setting for setting in stage.settings if setting.name == path.stem)
    name = setting.spec.data.name
    if not (LOCAL or name in WITHOUT_FILES):
        pytest.skip(f"no local copy of {name}: set PARAMAGNET_DATA")
    if name == "digits" and importlib.util.find_spec("sklearn") is None:
        pytest.skip("digits come with scikit-learn")
    records, lines = Store(path).records(), path.read_text(encoding="utf-8").splitlines()
    assert len(records) == len(lines)
    for record, line in zip(records, lines, strict=True):
        before, again = json.loads(line), json.loads(record.to_line())
        assert before == {key: again[key] for key in before}
    runs = {run.digest: run for trial in range(stage.trials) for _, run in stage.runs(setting, trial)}
    assert {record.digest for record in records} <= runs.keys()
    assert len({record.digest for record in records}) == len(records)
    for record in records:
        run = runs[record.digest]
        assert (record.trial, record.seed, record.scheme, record.gain) == (
            run.trial,
            stage.seed,
            run.scheme,
            run.gain,
        )


@pytest.mark.skipif(not LOCAL, reason="no local copy of Dry Bean: set PARAMAGNET_DATA")
def test_the_page_is_that_of_the_records(stage: Stage) -> None:
    floors = {setting.name: measure_floors(stage, setting) for setting in stage.settings}
    result = judge_stage(stage, read_records(RESULTS, stage), floors)
    assert (ROOT / "docs" / page_name("stage1")).read_text(encoding="utf-8") == make_page(result)
    summary = (ROOT / "docs" / "does_it_win.md").read_text(encoding="utf-8")
    assert fill_verdict(summary, make_verdict(result, count_races())) == summary


def test_counting_cannot_show_equality() -> None:
    """The share on the first screen of docs/does_it_win.md: fourteen equal rules, ten trials."""
    rng, within = np.random.default_rng(0), []
    for _ in range(2000):
        table = rng.standard_normal((10, 14))
        best = int(table.mean(axis=0).argmax())
        gaps = table[:, [best]] - table
        errors = gaps.std(axis=0, ddof=1) / np.sqrt(10)
        within += [*(gaps.mean(axis=0) <= errors)]
    assert np.mean(within) == pytest.approx(0.41, abs=0.03)
    assert "41 % of settings" in (ROOT / "docs" / "does_it_win.md").read_text(encoding="utf-8")
