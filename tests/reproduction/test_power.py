"""The power of the verdict: planted faults in the scales are predicted from runs without them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paramagnet.reproduction.agreement import FEWEST_TRIALS, judge_table
from paramagnet.reproduction.paper import PAPER_TABLES
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.reproduction.power import GainLadder, Ladders, plant_fault, plant_faults
from paramagnet.sweeps.groups import BETA_MAX, GAINS, Start, group_runs
from paramagnet.sweeps.store import RunRecord

(TABLE,) = (table for table in PAPER_TABLES if table.key == "ULC_ising_c=0")
CELLS = paper_cells(TABLE.key)
COLUMNS = sorted({column for _, column in CELLS})
SETTING = COLUMNS[0].setting


def runs_of(curve, factors=None, gains=GAINS):
    """Ten trials at each gain, on ``curve(gain, epoch)``; ``factors`` multiply the gains that are used."""
    records = []
    for gain in gains:
        used = gain * (factors or {}).get(gain, 1.0)
        for trial in range(FEWEST_TRIALS):
            values = tuple(curve(used, column.epoch) + 0.02 * (trial - 4.5) for column in COLUMNS)
            records.append(
                RunRecord(
                    digest=f"{gain}-{trial}", sweep=TABLE.sweep, table=TABLE.key, dataset="ulc",
                    n_visible=SETTING.n_visible, n_hidden=SETTING.n_hidden, visible="spin", hidden="spin",
                    c=0.0, scheme=BETA_MAX.scheme, gain=gain, sigma=0.1, trial=trial, seed=0,
                    epochs=tuple(column.epoch for column in COLUMNS), log_likelihood=values,
                    held_out=values, error=(0.0,) * 3, seconds=1.0, version="0", commit="", environment="",
                    finished="2026-01-01T00:00:00Z",
                )
            )  # fmt: skip
    return group_runs(records)


def through_the_paper(gain, epoch):
    """A smooth curve through the printed values."""
    (column,) = (column for column in COLUMNS if column.epoch == epoch)
    printed = [CELLS[Start(gain=g), column].mean for g in GAINS]
    return float(np.polyval(np.polyfit(np.log(GAINS), printed, 4), math.log(gain)))


def parabola(gain, epoch):
    return -50.0 - 30.0 * math.log(gain) ** 2 + 2.0 * math.log(gain) + epoch


def test_ladder_goes_through_the_means_and_is_exact_for_a_parabola():
    ladder = GainLadder(runs_of(parabola), COLUMNS[0])
    for gain in (*GAINS, 0.22, 0.8, 1.1, 3.0, 4.5):
        assert ladder(gain) == pytest.approx(parabola(gain, COLUMNS[0].epoch), abs=1e-9)


@pytest.mark.parametrize("factor", [0.8, 0.95, 1.1, 1.2])
@pytest.mark.parametrize("fault", ["ladder", "row"])
def test_a_planted_fault_is_predicted_from_runs_without_it(fault, factor):
    wrong = dict.fromkeys(GAINS if fault == "ladder" else (1.0,), factor)
    sound = runs_of(parabola)
    predicted = plant_fault(judge_table(TABLE, sound), Ladders(sound), fault, factor)
    seen = judge_table(TABLE, runs_of(parabola, wrong))
    for column in COLUMNS:
        ladder = GainLadder(sound, column)
        for comparison in (c for c in seen.comparisons if c.column == column):
            gain = comparison.start.gain
            truth = parabola(gain, column.epoch) - parabola(1.0, column.epoch)
            assert comparison.ours - truth == pytest.approx(ladder.change(gain, fault, factor), abs=1e-9)
    assert (predicted.n_agreeing, predicted.n_compared) == (seen.n_agreeing, len(seen.comparisons))


def test_values_that_agree_cease_to_where_the_scales_are_wrong():
    runs = runs_of(through_the_paper)
    verdict = judge_table(TABLE, runs)
    assert verdict.share == 1.0
    for fault in ("ladder", "row"):
        small, none, large = plant_faults([verdict], [Ladders(runs)], fault, 0.2)
        assert (small.factor, none.factor, large.factor) == (0.8, 1.0, 1.2)
        assert none.n_agreeing == none.n_compared == 12
        assert small.n_agreeing < 10
        assert large.n_agreeing < 10
        counts = [
            plant_fault(verdict, Ladders(runs), fault, factor).n_agreeing
            for factor in (1.0, 1.05, 1.1, 1.2, 1.4)
        ]
        assert counts == sorted(counts, reverse=True)


def test_a_likelihood_that_ignores_the_scale_has_no_power():
    runs = runs_of(lambda gain, epoch: -50.0)
    verdict = judge_table(TABLE, runs)
    for fault in ("ladder", "row"):
        assert plant_fault(verdict, Ladders(runs), fault, 1.2).n_agreeing == verdict.n_agreeing


def test_columns_without_all_gains_are_left_out():
    runs = runs_of(parabola, gains=(0.5, 1.0, 2.0))
    verdict = judge_table(TABLE, runs)
    assert len(verdict.comparisons) == 6
    assert plant_fault(verdict, Ladders(runs), "ladder", 1.1).n_compared == 0


def test_bad_faults_are_refused():
    runs = runs_of(parabola)
    verdict = judge_table(TABLE, runs)
    with pytest.raises(ValueError, match="`fault` must be one of 'ladder', 'row', got 'all'"):
        plant_fault(verdict, Ladders(runs), "all", 1.1)
    with pytest.raises(ValueError, match=r"`factor` must be positive and finite, got 0\.0"):
        plant_fault(verdict, Ladders(runs), "row", 0.0)
