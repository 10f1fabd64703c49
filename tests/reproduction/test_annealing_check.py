"""The paper's check of mAIS: a machine trained as its run, measured with several settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paramagnet.estimates import Estimate
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.reproduction.annealing_check import (
    AnnealingCheck,
    Pieces,
    check_annealing,
    check_sheet,
    combine_estimates,
    load_checks,
    save_checks,
)
from paramagnet.sampling.annealing import mean_weight
from paramagnet.sweeps.execute import Stop, Stopped, execute, trained_machine
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


def test_a_check_after_an_earlier_epoch_measures_that_machine():
    early = check_annealing(SAMPLED, epoch=3, efforts=((200, 20),), n_threads=1)
    assert early.epoch == 3
    record = execute(SAMPLED)
    value = record.log_likelihood[record.epochs.index(3)]
    assert abs(early.log_likelihood[0] - value) < 5.0 * early.error[0]
    assert abs(record.log_likelihood[-1] - value) > 5.0 * early.error[0]
    with pytest.raises(ValueError, match="`epoch` must be at most 6, where the run ends, got 7"):
        check_annealing(SAMPLED, epoch=7)


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
        "β_max/2", "100", "0", "4000, 2500 / 10000, 10000",
        "-50.000 ± 0.030 / -50.040 ± 0.040", "-0.080 ± 0.100",
    ]  # fmt: skip
    assert "0.080 %; the paper reports less than 0.1 %" in sheet.notes[0]


def test_groups_of_chains_give_the_estimate_of_all_together():
    rng = np.random.default_rng(3)
    log_weights = 700.0 + rng.normal([[0.0], [1.0], [3.0]], [[0.3], [1.0], [1.5]], (3, 400)).ravel()
    sizes = [500, 500, 200]
    parts = [mean_weight(part) for part in np.split(log_weights, np.cumsum(sizes)[:-1])]
    together, whole = combine_estimates(parts, sizes), mean_weight(log_weights)
    assert together.value == pytest.approx(whole.value, abs=1e-12)
    assert together.error == pytest.approx(whole.error, rel=1e-12)
    assert together.n_effective == pytest.approx(whole.n_effective, rel=1e-9)
    naive = float(np.mean([part.value for part in parts]))  # the mean of logarithms is another number
    assert abs(naive - whole.value) > 0.01
    assert combine_estimates(parts[:1], sizes[:1]) == parts[0]


@pytest.mark.parametrize(("parts", "sizes"), [((), ()), ((Estimate(1.0, 0.1),), (10, 10))])
def test_groups_need_a_size_each(parts, sizes):
    with pytest.raises(ValueError, match="`sizes` must hold one number for each of `parts`"):
        combine_estimates(parts, sizes)


def test_sizes_of_groups():
    assert Pieces().sizes(10) == [10]
    assert Pieces(n_chains=4).sizes(10) == [4, 4, 2]
    assert Pieces(n_chains=5).sizes(10) == [5, 5]
    assert Pieces(n_chains=50).sizes(10) == [10]


def test_a_check_in_pieces_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    efforts = ((200, 20), (300, 20))
    whole = check_annealing(SAMPLED, efforts=efforts, n_threads=1, pieces=Pieces(n_chains=100))
    folder = str(tmp_path / "states")
    with pytest.raises(Stopped):  # during training
        check_annealing(SAMPLED, efforts=efforts, pieces=Pieces(folder, 100, Stop(deadline=0.0)))
    for _ in range(4):  # each time one more group of chains
        looks = iter([False] * 2 + [True] * 100)
        monkeypatch.setattr(Stop, "due", lambda self, looks=looks: next(looks))
        with pytest.raises(Stopped):
            check_annealing(SAMPLED, efforts=efforts, n_threads=1, pieces=Pieces(folder, 100, Stop()))
    monkeypatch.undo()
    assert check_annealing(SAMPLED, efforts=efforts, n_threads=1, pieces=Pieces(folder, 100)) == whole
