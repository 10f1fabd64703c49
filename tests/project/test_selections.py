"""Other selections of MNIST's images: planted levels move the words, and no record is needed.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.seeds import data_seed, learning_seed, weight_seed
from paramagnet.sweeps.store import Store

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "benchmarks" / "mnist_points.toml"
PRINTED = {40: -140.14, 80: -132.12, 100: -131.07}  # [Y25] Table 8, beta_max


@pytest.fixture(scope="module")
def selections():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("mnist_selections")


def planted(*shifts):
    """Records of as many selections, each off the paper's values by its shift."""
    records = Store(ROOT / "results" / "mnist_spin.jsonl").records()
    (model,) = (r for r in records if (r.gain, r.trial, r.scheme) == (1.0, 0, "layer-correlation"))
    return [
        replace(
            model,
            sweep="mnist_points",
            table="",
            trial=trial,
            epochs=(0, *PRINTED),
            log_likelihood=(-540.0, *(value + shift for value in PRINTED.values())),
        )
        for trial, shift in enumerate(shifts)
    ]


def test_the_sweep_is_table_8_on_other_selections():
    points, table = find_spec(SPEC), find_spec("mnist_spin")
    assert replace(points.data, datasets=1) == table.data
    assert points.learning == table.learning
    assert points.measurement.epochs == table.measurement.epochs
    assert points.measurement.effort(100) == table.measurement.effort(100)
    runs = list(points.runs())
    assert len(runs) == 4
    assert len({data_seed(run) for run in runs}) == 4
    assert data_seed(runs[0]) is None  # the selection of the tables
    first = next(run for run in table.runs(trials=1) if run.gain == 1.0)
    assert {weight_seed(run) for run in runs} == {weight_seed(first)}
    assert [learning_seed(run) == learning_seed(first) for run in runs] == [True, False, False, False]


@pytest.mark.parametrize(
    ("count", "words"), [(0, "none was run yet"), (1, "1 of 4 runs"), (2, "2 of 4 runs")]
)
def test_without_enough_records_nothing_is_concluded(selections, count, words):
    levels = selections.read_levels(planted(*[-1.0] * count))
    text = selections.describe_levels(levels)
    assert words in text
    assert "is not known" in text
    if count:
        head, rows = selections.table_rows(levels)
        assert len(head) == len(rows[0]) == 3 + count


def test_a_spread_as_large_as_the_gap_explains_it_and_a_small_one_does_not(selections):
    wide = selections.read_levels(planted(-3.5, 0.2, -1.9, -2.0))
    narrow = selections.read_levels(planted(-1.9, -1.7, -1.8, -1.8))
    assert "can explain the difference" in selections.describe_levels(wide)
    text = selections.describe_levels(narrow)
    assert "does not explain the difference there" in text
    assert "outside it after 40, 80 and 100 epochs, so" in text
    reach = 3.182446 * math.sqrt(0.02 / 3.0 * 1.25)
    share = f"{1.8 / reach:.2f}"
    assert f"at {share}, {share} and {share} of the half width" in text
    assert "-1.8, -1.8 and -1.8 nats" in text


def test_interval_by_hand(selections):
    shifts = np.array([-3.0, -1.0, -2.5, -1.5])
    level = selections.read_levels(planted(*shifts))[0]
    assert level.mean == pytest.approx(PRINTED[40] - 2.0)
    assert level.std == pytest.approx(math.sqrt(2.5 / 3.0))
    assert level.reach == pytest.approx(3.182446 * math.sqrt(2.5 / 3.0 * 1.25), rel=1e-6)
    assert level.explained


def test_scatter_of_trials_is_taken_off_by_hand(selections):
    level = selections.Level(40, -132.0, 1.2, (-134.0, -130.0, -133.0, -135.0))
    assert level.std == pytest.approx(math.sqrt(14.0 / 3.0))
    assert level.own_std == pytest.approx(math.sqrt(14.0 / 3.0 - 1.44))
    by_chains, by_weights = level.errors
    assert by_chains == pytest.approx(1.2 * math.sqrt(1.0 / 4.0 + 1.0 / 30.0))
    assert by_weights == pytest.approx(1.2 * math.sqrt(1.0 + 1.0 / 30.0))
    assert selections.Level(40, -132.0, 2.2, level.ours).own_std == 0.0


def test_words_on_the_scatter_of_trials_follow_planted_levels(selections):
    def words(*shifts):
        return selections.describe_levels(selections.read_levels(planted(*shifts)))

    wide = words(-5.0, 3.0, -3.0, 5.0)
    assert "which leaves 4.7, 4.5 and 4.4 for the selection" in wide
    assert "do not decide" not in wide  # the mean is within two standard errors of the paper's
    assert "nothing of it is seen to come from the selection" in words(-1.0, -1.2, -0.9, -1.1)
    undecided = words(-3.0, -1.5, -2.5, -3.5)
    assert "can explain the difference" in undecided
    assert "do not decide between a selection that matters and another cause" in undecided
    assert "5.2, 3.2 and 2.9 standard errors where trials scatter by their chains" in undecided
    assert "by 2.7, 1.7 and 1.5 where they scatter by their initial weights" in undecided


def test_our_run_of_table_8_stands_beside_the_first_selection(selections):
    records = planted(-3.0, -1.0, -2.5)
    table = replace(records[0], sweep="mnist_spin", log_likelihood=(-540.0, *PRINTED.values()))
    other = replace(table, gain=2.0, log_likelihood=(-540.0, -1.0, -1.0, -1.0))
    text = selections.describe_levels(selections.read_levels([*records, other, table]))
    assert "the same images, initial weights and seed" in text
    assert "it is +3.0, +3.0 and +3.0 nats from it" in text
    assert "Table 8" not in selections.describe_levels(selections.read_levels(records))
    second = replace(table, trial=1, log_likelihood=(-540.0, *(value - 0.7 for value in PRINTED.values())))
    text = selections.describe_levels(selections.read_levels([*records, table, second]))
    assert "it is +3.0, +3.0 and +3.0 nats from it. A second trial of Table 8, with these images" in text
    assert "and other initial weights, is -0.7, -0.7 and -0.7 nats from the paper's values." in text
    values = np.array([-3.0, -1.0, -2.5, -0.7])
    off = abs(values.mean()) / math.sqrt(1 / 4 + 1 / 30) / np.array([0.94, 1.54, 1.70])  # [Y25] Table 8
    assert (
        f"-1.8, -1.8 and -1.8 nats from the paper's values, {off[0]:.1f}, {off[1]:.1f} and {off[2]:.1f}"
        in text
    )
    apart = -values.mean() / values.std(ddof=1) / math.sqrt(1.25)
    assert f"is {apart:+.1f}, {apart:+.1f} and {apart:+.1f} standard deviations" in text
    assert "(95 %: 3.2). So the kernels are not told apart by one run" in text
    far = replace(table, log_likelihood=(-540.0, *(value + 9.0 for value in PRINTED.values())))
    assert "So the kernels differ." in selections.describe_levels(
        selections.read_levels([*records, far, second])
    )
    third = replace(second, trial=2, log_likelihood=(-540.0, *(value + 0.9 for value in PRINTED.values())))
    text = selections.describe_levels(selections.read_levels([*records, table, second, third]))
    assert "2 further trials of Table 8" in text
    assert "are in the mean +0.1, +0.1 and +0.1 nats from the paper's values." in text


def test_one_more_selection_is_outside_the_interval_in_one_case_of_twenty(selections):
    rng = np.random.default_rng(7)
    draws = rng.normal(-132.0, 1.3, (4000, 5))
    missed = [not selections.Level(40, row[0], 1.0, tuple(row[1:])).explained for row in draws]
    assert 0.04 < np.mean(missed) < 0.06
    planted_shift = [not selections.Level(40, row[0] + 8.0, 1.0, tuple(row[1:])).explained for row in draws]
    assert np.mean(planted_shift) > 0.8
