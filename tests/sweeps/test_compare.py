"""Initial weights compared on one's own data: pairing, the recommendation, the command.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.sweeps.compare import InitializationComparison, Standing, rank_starts
from paramagnet.sweeps.groups import BETA_MAX, Start, TrialSummary, setting_of
from paramagnet.sweeps.store import RunRecord
from paramagnet.sweeps.text_tables import to_csv

HALF, DOUBLE = Start(gain=0.5), Start(gain=2.0)


def test_the_way_to_ln_z_can_be_chosen(points):
    options = {"gains": (1.0,), "schemes": (), "epochs": 2, "trials": 1}
    exact = pm.compare_initializations(points, 3, **options)
    policy = pm.LogZ("mais", n_samples=40, n_temperatures=20)
    estimated = pm.compare_initializations(points, 3, log_z=policy, **options)
    assert exact.gradient == "exact gradients, exact log-likelihoods"
    assert estimated.gradient == "exact gradients, log-likelihoods by mAIS"
    assert set(exact.records[0].error) == {0.0}
    assert min(estimated.records[0].error) > 0.0
    np.testing.assert_allclose(estimated.records[0].log_likelihood, exact.records[0].log_likelihood, atol=0.2)
    for wrong in (pm.LogZ("ais"), pm.LogZ(start="data"), pm.LogZ(marginalize="visible")):
        with pytest.raises(ValueError, match="`log_z` must have the method 'auto', 'exact' or 'mais'"):
            pm.compare_initializations(points, 3, log_z=wrong, **options)
    with pytest.raises(ValueError, match="`log_z` must be a `LogZ`"):
        pm.compare_initializations(points, 3, log_z="mais", **options)


def test_learning_can_be_centred(points):
    options = {"gains": (1.0,), "schemes": ("centred",), "epochs": 5, "trials": 1, "learning_rate": 0.05}
    plain, centred = (pm.compare_initializations(points, 3, centred=way, **options) for way in (False, True))
    assert centred.gradient == "exact gradients, centred learning, exact log-likelihoods"
    assert plain.records[0].digest != centred.records[0].digest
    assert plain.records[0].log_likelihood[0] == centred.records[0].log_likelihood[0]
    assert plain.records[0].log_likelihood[-1] != centred.records[0].log_likelihood[-1]


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    base = rng.choice([-1.0, 1.0], size=(40, 1)) * np.ones(6)
    return np.where(rng.random(base.shape) < 0.1, -base, base)


def record(start, trial, value):
    return RunRecord(
        digest=f"{start}{trial}", sweep="comparison", table="", dataset="d.npy", n_visible=6, n_hidden=3,
        visible="spin", hidden="bit", c=0.0, scheme=start.scheme, gain=start.gain, sigma=0.3 * start.gain,
        trial=trial, seed=0, epochs=(0, 10), log_likelihood=(-4.0, value), held_out=(math.nan, math.nan),
        error=(0.0, 0.0), seconds=0.1, version="", commit="", environment="", finished="",
    )  # fmt: skip


def comparison(values):
    """From the log-likelihoods of each start, trial by trial."""
    records = [
        record(start, trial, value) for start, found in values.items() for trial, value in enumerate(found)
    ]
    standings = rank_starts(records, 10)
    return InitializationComparison(setting_of(records[0]), 10, standings, tuple(records), "exact gradients")


def test_differences_are_judged_trial_by_trial():
    # Trials differ by 1, starts by 0.1 in every trial: unpaired nobody could tell.
    result = comparison({HALF: (-3.1, -2.1, -1.12), BETA_MAX: (-3.0, -2.0, -1.0), DOUBLE: (-4.0, -3.0, -2.5)})
    assert result.best == BETA_MAX
    assert [standing.start for standing in result.standings] == [BETA_MAX, HALF, DOUBLE]
    behind = result.standings[1].behind
    assert behind.mean == pytest.approx(0.32 / 3)
    assert behind.error == pytest.approx(np.std([0.1, 0.1, 0.12], ddof=1) / math.sqrt(3))
    assert result.clear
    assert result.recommendation.startswith("Take beta_max: after 10 epochs it is 0.107 +- 0.0067 nats")
    assert "next, beta_max/2 (3 paired trials)" in result.recommendation


def test_no_clear_winner_is_said():
    result = comparison({HALF: (-3.0, -2.0, -1.0), BETA_MAX: (-3.1, -1.9, -1.1), DOUBLE: (-9.0, -9.0, -9.5)})
    assert not result.clear
    assert [standing.equals_best for standing in result.standings] == [True, True, False]
    assert result.recommendation.startswith(
        "No clear winner: beta_max/2 is ahead after 10 epochs, but beta_max "
    )
    assert "2 beta_max" not in result.recommendation
    assert result.recommendation.endswith("beta_max, which needs no data to choose, is among them.")


def test_a_later_start_may_be_closer_in_errors_than_the_second():
    noisy = Start("he")
    result = comparison({BETA_MAX: (0.0, 0.0, 0.0), HALF: (-0.10, -0.11, -0.10), noisy: (-1.0, 0.5, -0.3)})
    assert result.standings[1].start == HALF
    assert not result.clear
    assert "but he cannot be told from it" in result.recommendation


def test_learning_that_has_not_ended_is_said():
    result = comparison({HALF: (-3.1, -2.1, -1.12), BETA_MAX: (-3.0, -2.0, -1.0)})
    records = tuple(
        replace(
            r, epochs=(0, 5, 10), log_likelihood=(-9.0, r.log_likelihood[-1] - rise, r.log_likelihood[-1])
        )
        for r, rise in zip(result.records, (9.0, 9.0, 9.0, 0.4, 0.5, 0.6), strict=True)
    )
    rising = replace(result, records=records)
    assert rising.late_growth == pytest.approx(0.5)  # of the best, beta_max
    assert "in the second half of the epochs it still gained 0.5 nats" in rising.recommendation
    flat = tuple(replace(r, log_likelihood=(-9.0, *[r.log_likelihood[-1]] * 2)) for r in records)
    assert "second half" not in replace(result, records=flat).recommendation


def test_equal_starts_are_no_winner():
    result = comparison({Start("xavier"): (-1.0, -2.0), BETA_MAX: (-1.0, -2.0)})
    assert result.best == BETA_MAX  # the same machine under two names: the theory's first
    assert not result.clear


def test_one_trial_shows_no_spread():
    result = comparison({HALF: (-3.0,), BETA_MAX: (-2.0,)})
    assert not result.clear
    assert "one trial shows no spread" in result.recommendation
    assert "nothing to choose" in comparison({HALF: (-3.0,)}).recommendation


def test_what_is_not_finite_comes_last():
    result = comparison({HALF: (math.nan, math.nan), BETA_MAX: (-2.0, -2.1)})
    assert result.best == BETA_MAX
    assert result.standings[1].log_likelihood.n_failed == 2


def test_comparison_on_an_array(points):
    options = {"gains": (1.0, 2.0), "schemes": ("hinton",), "epochs": 5, "trials": 2, "held_out": 0.25}
    first = pm.compare_initializations(points, 3, **options)
    assert first.gradient == "exact gradients, exact log-likelihoods"
    assert {standing.start for standing in first.standings} == {BETA_MAX, DOUBLE, Start("hinton")}
    assert all(standing.log_likelihood.n_trials == 2 for standing in first.standings)
    assert all(math.isfinite(standing.held_out.mean) for standing in first.standings)
    assert first.setting.n_visible == 6
    sigma = {standing.start: standing.sigma for standing in first.standings}
    assert sigma[BETA_MAX] == pytest.approx(pm.weight_std(6, 3), rel=1e-5)
    assert sigma[DOUBLE] == pytest.approx(2.0 * sigma[BETA_MAX], rel=1e-5)
    again = pm.compare_initializations(points, 3, **options)
    assert [s.log_likelihood for s in again.standings] == [s.log_likelihood for s in first.standings]
    other = pm.compare_initializations(points, 3, **options, seed=1)
    assert [s.log_likelihood for s in other.standings] != [s.log_likelihood for s in first.standings]
    assert len(list(csv.reader(to_csv(first.table()).splitlines()))) > 3


def test_starts_of_equal_scale_are_the_same_run(points):
    # Two spin layers of equal size: beta_max is the scale of xavier, [Y25] section 5.
    result = pm.compare_initializations(
        points, 6, hidden="spin", gains=(1.0,), schemes=("xavier",), epochs=4, trials=2, batch_size=10
    )
    for standing in result.standings:
        assert standing.behind.mean == pytest.approx(0.0, abs=1e-6)
    assert not result.clear
    assert all(run.log_likelihood[-1] > run.log_likelihood[0] for run in result.records)


def test_records_are_kept_and_gone_on_with(points, tmp_path):
    options = {"gains": (1.0,), "schemes": (), "epochs": 3, "folder": tmp_path / "kept"}
    pm.compare_initializations(points, 3, trials=1, **options)
    seen = []
    result = pm.compare_initializations(points, 3, trials=2, callback=seen.append, **options)
    assert seen[-1].new == 1
    assert len(result.records) == 2


def test_bad_input_is_named(points, tmp_path):
    with pytest.raises(ValueError, match="`held_out` must be at least 0 and below 1"):
        pm.compare_initializations(points, 3, held_out=1.0)
    with pytest.raises(ValueError, match="`data` must have shape"):
        pm.compare_initializations(points[0], 3)
    with pytest.raises(FileNotFoundError, match="`data` does not exist"):
        pm.compare_initializations(tmp_path / "none.npy", 3)
    with pytest.raises(ValueError, match="`n_hidden`"):
        pm.compare_initializations(points, 0)


def test_the_command(points, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("d.csv", (points + 1) / 2, fmt="%d", delimiter=",")  # bits, to be read as spins
    words = ["compare", "d.csv", "--hidden-units", "3", "--epochs", "4", "--trials", "2", "--out", "kept"]
    words += ["--gain", "1", "--gain", "0.5", "--scheme", "he", "--held-out", "0.2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for word in ("beta_max/2", "he", "behind", "held out", "exact gradients", "paired trials"):
        assert word in result.stdout
    assert (tmp_path / "kept" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "β<sub>max</sub>/2" in (tmp_path / "kept" / "table.md").read_text(encoding="utf-8")
    assert len((tmp_path / "kept" / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_two_trials_do_not_settle_it():
    # Two standard errors, but of two trials: a difference of this size comes up by chance.
    result = comparison({BETA_MAX: (-3.0, -2.0), HALF: (-3.1, -2.2)})
    assert not result.clear
    assert "cannot be told from it at 95 % confidence" in result.recommendation


def test_the_next_is_one_that_cannot_be_told_apart():
    result = comparison(
        {BETA_MAX: (-3.0, -2.0, -1.0), HALF: (-3.1, -2.1, -1.101), DOUBLE: (-2.0, -3.0, -2.0)}
    )
    assert [s.equals_best for s in result.standings] == [True, False, True]
    assert "but 2 beta_max cannot be told" in result.recommendation
    assert "(next: 0.333 +- " in result.recommendation


def test_starts_with_failed_trials_come_last():
    result = comparison({HALF: (-1.5,), BETA_MAX: (-1.0, -4.0)})
    assert [standing.start for standing in result.standings] == [BETA_MAX, HALF]


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_must_leave_points_on_both_sides(points, share):
    with pytest.raises(ValueError, match="`held_out` must leave points to learn and points to measure on"):
        pm.compare_initializations(points, 2, held_out=share, epochs=1)


@pytest.mark.parametrize(
    ("n_trials", "errors"), [(2, 12.7062), (3, 4.3027), (5, 2.7764), (11, 2.2281), (1001, 1.9623)]
)
def test_equality_is_judged_at_95_percent_of_both_tails(n_trials, errors):
    """The 97.5 % quantiles of Student's distribution, from a printed table."""
    for factor, equal in ((0.999, True), (1.001, False)):
        behind = TrialSummary(factor * errors * 0.1, 0.1 * math.sqrt(n_trials), n_trials)
        assert behind.error == pytest.approx(0.1)
        assert Standing(HALF, 0.3, behind, behind, behind).equals_best == equal
    values = np.linspace(
        -1.0, 1.0, n_trials
    )  # the same from the records on: a lead, and a spread over trials
    lead = errors * np.std(values, ddof=1) / math.sqrt(n_trials)
    for factor, clear in ((0.999, False), (1.001, True)):
        found = comparison({BETA_MAX: np.zeros(n_trials), HALF: values - factor * lead})
        assert (found.best, found.clear) == (BETA_MAX, clear)


def test_no_difference_at_all_is_equality():
    behind = TrialSummary(0.0, 0.0, 3)
    assert Standing(HALF, 0.3, behind, behind, behind).equals_best


def test_the_learning_rate_that_nobody_asked_for(points):
    """0.001, as in the paper; the command has the same."""
    from typer.main import get_command

    options = {"gains": (1.0,), "schemes": (), "epochs": 2, "trials": 1}
    ours, same, other = (
        pm.compare_initializations(points, 3, **options, **rate).records[0].log_likelihood
        for rate in ({}, {"learning_rate": 0.001}, {"learning_rate": 0.002})
    )
    assert ours == same != other
    (rate,) = (p for p in get_command(app).commands["compare"].params if p.name == "learning_rate")
    assert rate.default == 0.001
