"""Toy data with exactly three flips: drawn as said, and what their levels say is in the records."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paramagnet.data.datasets import load_dataset
from paramagnet.data.source_readers import draw_toy, toy_patterns
from paramagnet.reproduction.paper import PAPER_TABLES, read_log_likelihoods
from paramagnet.sweeps.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def toy_flips():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("toy_flips")


@pytest.fixture(scope="module")
def records():
    names = ("toy_spin_datasets", "toy_bit_datasets")
    return [r for name in names for r in Store(ROOT / "results" / f"{name}.jsonl").records()]


def page():
    return " ".join((ROOT / "docs" / "differences.md").read_text(encoding="utf-8").split())


def test_every_point_has_three_flips_in_places_drawn_alike(toy_flips):
    table = toy_flips.draw_three(8000, np.random.default_rng(2))
    flipped = table.data != toy_patterns()[table.labels]
    assert set(flipped.sum(axis=1)) == {3}
    share = flipped.mean(axis=0)
    error = math.sqrt(0.15 * 0.85 / len(flipped))
    assert (np.abs(share - 0.15) < 4.5 * error).all()
    pairs = flipped.T.astype(float) @ flipped / len(flipped)
    apart = pairs[~np.eye(20, dtype=bool)]
    assert np.abs(apart - 0.15 * 2 / 19).max() < 5.0 * math.sqrt(0.0158 / len(flipped))
    independent = draw_toy(8000, np.random.default_rng(2))
    counts = (independent.data != toy_patterns()[independent.labels]).sum(axis=1)
    assert counts.var() == pytest.approx(20 * 0.15 * 0.85, rel=0.1)


def test_the_repeated_runs_are_those_of_the_crossed_sweeps(toy_flips):
    found = toy_flips.load_found()
    for table, machine in toy_flips.MACHINES.items():
        planned = {(run.gain, run.trial) for run in toy_flips.runs_of(*machine, draws=3, weights=5)}
        assert len(planned) == 45
        assert planned == {(done["gain"], done["trial"]) for done in found if done["table"] == table}


def test_levels_are_recomputed_from_the_lines_of_the_files(toy_flips, records):
    printed = {(c.table, c.n_hidden, c.gain, c.epoch): c for c in read_log_likelihoods()}
    done = json.loads(toy_flips.FILE.read_text(encoding="utf-8"))
    gaps, far, near = [], [], []
    for table, (hidden, n_hidden, c) in toy_flips.MACHINES.items():
        name = "toy_spin_datasets" if hidden == "spin" else "toy_bit_datasets"
        lines = (ROOT / "results" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        runs = [r for r in map(json.loads, lines) if (r["n_hidden"], r["c"], r["gain"]) == (n_hidden, c, 1.0)]
        assert len(runs) == 50
        for i, epoch in enumerate((50, 100, 200)):
            free, three = np.empty((10, 5)), np.empty((3, 5))
            for r in runs:
                free[r["trial"] % 10, r["trial"] // 10] = r["log_likelihood"][r["epochs"].index(epoch)]
            for r in done:
                if (r["table"], r["gain"]) == (table, 1.0):
                    three[r["trial"] % 10, r["trial"] // 10] = r["log_likelihood"][i]
            paper = printed[PAPER_TABLES[table - 1].key, n_hidden, 1.0, epoch]
            scores = []
            for part in (free, three):
                draws = part.mean(axis=1)
                variance = draws.var(ddof=1) * (1 + 1 / len(draws)) + paper.std**2 * (1 / 100 + 1 / 5)
                scores.append((paper.mean - draws.mean()) / math.sqrt(variance))
            gaps.append(paper.mean - three.mean())
            near.append(abs(scores[0]))
            far.append(scores[1])
    text = toy_flips.describe_flips(records)
    assert f"are {min(gaps):.2f} to {max(gaps):.2f} nats above it" in text
    assert f"These are {min(far):.1f} to {max(far):.0f} standard errors" in text
    assert f"more than 4 in {sum(score > 4 for score in far)} of 9" in text
    assert f"at most {max(near):.1f} standard errors apart" in text
    assert text.replace("β_max", "β<sub>max</sub>") in page()


def test_levels_that_would_allow_three_flips_are_refused(toy_flips, records):
    moved = [replace(r, log_likelihood=tuple(v - 0.5 for v in r.log_likelihood)) for r in records]
    with pytest.raises(ValueError, match="exactly three flips are ruled out"):
        toy_flips.describe_flips(moved)


def test_the_number_of_flips_explains_the_level(toy_flips, records):
    """Over ten draws: the slope is the logarithm of the odds, and little is left."""
    flips = np.array([toy_flips.flips_of_draw(draw) for draw in range(10)])
    for hidden, c in (("spin", 0.0), ("bit", 0.0), ("bit", -5.0)):
        part = [r for r in records if (r.hidden, r.c, r.n_hidden, r.gain) == (hidden, c, 20, 1.0)]
        levels = [np.mean([r.log_likelihood[-1] for r in part if r.trial % 10 == d]) for d in range(10)]
        slope, _ = np.polyfit(flips, levels, 1)
        assert slope == pytest.approx(-math.log(0.85 / 0.15), abs=0.35)
        assert np.corrcoef(flips, levels)[0, 1] < -0.9
    points = load_dataset("toy")
    own = (points.data != toy_patterns()[points.labels]).sum(axis=1).mean()
    assert own == toy_flips.flips_of_draw(0)
    above = (3.0 - own) * math.log(0.85 / 0.15)
    assert (
        f"Ours have {own:.2f}, which puts the level {above:.2f} nats above that of a typical draw" in page()
    )


def test_the_offsets_of_the_toy_tables_are_those_that_the_page_names():
    first = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    words = first.partition("is in the median over cells ")[2].split(", ")[:3]
    low, high = sorted(float(word) for word in words)[::2]
    assert f"most of the {low:.2f} to {high:.2f} nats by which our levels are above the paper's" in page()
