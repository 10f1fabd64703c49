"""The paper's check of mAIS: a machine trained as its run, measured with several settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paramagnet.learning.likelihood import log_likelihood
from paramagnet.reproduction.annealing_check import (
    AnnealingCheck,
    check_annealing,
    check_sheet,
    load_checks,
    save_checks,
)
from paramagnet.sweeps.execute import execute, trained_machine
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.spec import DataSpec, LearningSpec, MeasurementSpec, Run

EXACT = Run(
    data=DataSpec("toy", n_points=40, held_out="fresh", held_out_points=10),
    visible="spin",
    hidden="bit",
    n_hidden=4,
    hidden_bias=0.0,
    scheme="layer-correlation",
    gain=1.0,
    learning=LearningSpec(0.01, batch_size=20),
    measurement=MeasurementSpec((3, 6), curve=3),
    trial=0,
    seed=0,
)
SAMPLED = replace(EXACT, learning=LearningSpec(0.01, batch_size=20, gradient="pcd", n_chains=20, n_steps=2))


@pytest.mark.parametrize("run", [EXACT, SAMPLED], ids=["exact", "pcd"])
def test_the_machine_is_that_of_the_run(run):
    points, _ = load_points(run)
    record = execute(run)
    assert record.epochs[-1] == 6
    assert float(log_likelihood(trained_machine(run), points)) == pytest.approx(
        record.log_likelihood[-1], abs=1e-9
    )


def test_more_effort_agrees_within_errors(tmp_path):
    check = check_annealing(SAMPLED, efforts=((200, 20), (2000, 100)), n_threads=1)
    points, _ = load_points(SAMPLED)
    exact = float(log_likelihood(trained_machine(SAMPLED), points))
    for value, error in zip(check.log_likelihood, check.error, strict=True):
        assert abs(value - exact) < 5.0 * error
    save_checks([check], tmp_path / "c.json")
    assert load_checks(tmp_path / "c.json") == [check]
    assert load_checks(tmp_path / "none.json") == []


def test_change_by_hand():
    check = AnnealingCheck(
        "ulc", 200, "bit", -5.0, "layer-correlation", 0.5, 0, 100, ((4000, 2500), (10000, 10000)),
        (-50.0, -50.04), (0.03, 0.04),
    )  # fmt: skip
    assert check.change == pytest.approx(-0.0008)
    assert check.change_error == pytest.approx(0.001)
    sheet = check_sheet([check])
    assert sheet.rows[0][0] == "ulc, bit, c = -5"
    assert [lines[0].text for lines in sheet.rows[0][1]] == [
        "β_max/2", "0", "4000, 2500 / 10000, 10000", "-50.000 ± 0.030 / -50.040 ± 0.040", "-0.080 ± 0.100"
    ]  # fmt: skip
    assert "0.080 %; the paper reports less than 0.1 %" in sheet.notes[0]
