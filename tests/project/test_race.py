"""The race: its plan, its choice of settings, and its table, verdict and figure from planted records."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import race

    return race


@pytest.fixture
def page(race: ModuleType) -> ModuleType:
    import race_page

    return race_page


def planted(
    entrant: str,
    shift: float,
    *,
    seed: int = 0,
    seconds: float = 10.0,
    data: str = "digits",
    error: float = 0.0,
    noise: float = 0.01,
) -> dict[str, object]:
    """A race whose points share a part of 5 nats; ``shift`` is the lead of the entrant."""
    shared = 5.0 * np.random.default_rng(1).standard_normal(400)
    own = noise * np.random.default_rng([seed, sum(map(ord, entrant))]).standard_normal(400)
    return {
        "purpose": "race",
        "set": data,
        "entrant": entrant,
        "seed": seed,
        "seconds": seconds,
        "settings": {},
        "n_hidden": 64,
        "n_updates": 100,
        "wall": seconds,
        "error_of_log_z": error,
        "trusted": True,
        "independent": -30.0,
        "test": [*(shared + own - 20.0 + shift)],
    }


def test_leads_are_paired_per_point(page: ModuleType) -> None:
    ours, theirs = {0: planted("paramagnet", 0.1)}, {0: planted("rbms", 0.0)}
    lead = page.lead_over(ours, theirs)
    assert lead.value == pytest.approx(0.1, abs=0.005)
    assert lead.error < 0.002  # points alone scatter by 0.25
    assert lead.verdict == "ahead"
    assert page.lead_over(theirs, ours).verdict == "behind"
    assert page.lead_over({1: planted("paramagnet", 0.1, seed=1)}, theirs) is None
    assert page.level_of(ours).of_points > 0.2


def test_errors_of_log_z_and_of_seeds_count(page: ModuleType) -> None:
    ours, theirs = {0: planted("paramagnet", 0.09, error=0.03)}, {0: planted("rbms", 0.0, error=0.04)}
    lead = page.lead_over(ours, theirs)
    assert lead.error == pytest.approx(0.05, rel=0.01)
    assert lead.verdict == "level"
    ours = {seed: planted("paramagnet", shift, seed=seed) for seed, shift in ((0, 0.0), (1, 0.6), (2, 0.3))}
    theirs = {seed: planted("rbms", 0.0, seed=seed) for seed in range(3)}
    assert page.lead_over(ours, theirs).error == pytest.approx(0.3 / np.sqrt(3), rel=0.03)


def test_table_and_verdict_follow_the_records(page: ModuleType) -> None:
    records = [planted("paramagnet", 0.0), planted("rbms", -1.0), planted("scikit-learn", 0.5)]
    records += [planted("PyTorch", 0.0, noise=0.0), planted("paramagnet, paper", 3.0)]
    table = page.make_table(records)
    assert table.count("\n") == 1 + len(records)
    assert "| rbms 0.5, defaults | " in table
    assert "+1.0" in table
    verdict = page.make_verdict(records)
    assert "**5 of the 535 planned runs are there.**" in verdict
    assert "Of 3 comparisons with rivals" in verdict  # not with the paper's way, which is ours
    assert "in 1, level in 1, behind in 1." in verdict
    assert "Not ahead: digits, 10 s, scikit-learn, defaults (-0.5" in verdict
    assert "no pair to compare yet" in page.make_verdict([])
    lost = [record for record in records if record["entrant"] != "paramagnet"]
    assert "no pair to compare yet" in page.make_verdict(lost)


def test_the_figure_is_drawn_from_the_records(page: ModuleType, tmp_path: Path) -> None:
    records = [
        planted("paramagnet", 0.1 * s, seconds=s, data=d) for s in (10.0, 60.0) for d in ("digits", "ulc")
    ]
    assert page.draw(records, tmp_path / "race.png")
    assert (tmp_path / "race.png").stat().st_size > 5000
    assert not page.draw([], tmp_path / "none.png")


def test_settings_are_chosen_by_validation_points(race: ModuleType) -> None:
    jobs = race.choices_for("digits", "PyTorch, best", 300.0)
    assert {job.seconds for job in jobs} == {60.0}
    records = [
        {**job.__dict__, "settings": json.loads(job.settings), "validation": -20.0 - abs(index - 2)}
        for index, job in enumerate(jobs)
    ]
    assert race.chosen_settings(records[:-1], "digits", "PyTorch, best", 300.0) is None
    assert race.chosen_settings(records, "digits", "PyTorch, best", 300.0)["rate"] == 0.003
    assert race.chosen_settings(records, "digits", "PyTorch, best", 10.0) is None
    assert race.chosen_settings([], "digits", "PyTorch", 10.0)["rate"] == 0.001


def test_settings_are_chosen_before_they_are_used(race: ModuleType) -> None:
    jobs = list(race.plan(["digits", "ulc"], [10.0, 60.0, 300.0], [0, 1]))
    seen: set[tuple[str, str, float]] = set()
    for job in jobs:
        if job.purpose == "choice":
            seen.add((job.set, job.entrant, job.seconds))
        elif race.ENTRANTS[job.entrant].grid:
            assert (job.set, job.entrant, min(job.seconds, 60.0)) in seen
    races = [job for job in jobs if job.purpose == "race"]
    assert len(races) == len(set(races)) == 2 * 3 * 2 * len(race.ENTRANTS)
    assert 100 not in {job.seed for job in races}  # the seed that chooses


def test_validation_and_test_points_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from held_out_sets import load_split

    pytest.importorskip("sklearn")
    split = load_split("digits", "bit")
    assert [len(part) for part in (split.learned, split.validation, split.test)] == [1200, 297, 300]
    assert np.isin(split.test, (0.0, 1.0)).all()
    toy = load_split("toy", "spin")
    assert not np.array_equal(toy.validation, toy.test)


def test_the_page_is_that_of_the_records(race: ModuleType, page: ModuleType) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.make_page(text, race.read_records()) == text
