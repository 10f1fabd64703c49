"""Variance components of the crossed design: by hand, unbiased on planted effects, and the right one used."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paramagnet.reproduction.agreement import Comparison
from paramagnet.reproduction.draws import crossed_components, draw_components
from paramagnet.sweeps.groups import BETA_MAX, Setting, Start
from paramagnet.sweeps.results_table import Column
from paramagnet.sweeps.store import RunRecord

SETTING = Setting("toy", 20, 10, "spin", "bit", -5.0)
TWICE = Start(gain=2.0)


def plant(rng, draws, weights, interaction, shape=(10, 5)):
    """A table with these standard deviations of the three effects."""
    return (
        3.0
        + draws * rng.normal(size=(shape[0], 1))
        + weights * rng.normal(size=(1, shape[1]))
        + interaction * rng.normal(size=shape)
    )


def test_components_by_hand():
    # Rows have the means 1, 5; columns 2, 4; the rest is +-1.
    found = crossed_components(np.array([[1.0, 1.0], [3.0, 7.0]]))
    assert found.interaction == pytest.approx(4.0)  # four squares of 1 over one degree of freedom
    assert found.draws == pytest.approx((2 * (4.0 + 4.0) - 4.0) / 2)
    assert found.weights == pytest.approx((2 * (1.0 + 1.0) - 4.0) / 2)
    assert found.spread == pytest.approx(math.sqrt(6.0))
    assert found.total_spread == pytest.approx(math.sqrt(10.0))
    assert (found.n_draws, found.n_weights) == (2, 2)


def test_components_agree_with_plain_loops():
    table = plant(np.random.default_rng(1), 0.3, 0.2, 0.1, (4, 3))
    a, b = table.shape
    mean = sum(table[i][j] for i in range(a) for j in range(b)) / (a * b)
    rows = [sum(table[i]) / b for i in range(a)]
    columns = [sum(table[i][j] for i in range(a)) / a for j in range(b)]
    square_a = b * sum((r - mean) ** 2 for r in rows) / (a - 1)
    square_b = a * sum((c - mean) ** 2 for c in columns) / (b - 1)
    rest = sum((table[i][j] - rows[i] - columns[j] + mean) ** 2 for i in range(a) for j in range(b))
    rest /= (a - 1) * (b - 1)
    found = crossed_components(table)
    expected = ((square_a - rest) / b, (square_b - rest) / a, rest)
    assert (found.draws, found.weights, found.interaction) == pytest.approx(expected, rel=1e-12)


def spread_of_before(table):
    """The rule that this estimator replaced: it takes the weights for nested in the draws."""
    return table.mean(axis=1).var(ddof=1) - (table.var(axis=1, ddof=1) / table.shape[1]).mean()


@pytest.mark.parametrize("planted", list(itertools.product((0.0, 0.4), (0.0, 0.9), (0.0, 0.6))))
def test_estimates_are_unbiased_with_and_without_each_effect(planted):
    rng = np.random.default_rng(7)
    tables = [plant(rng, *planted) for _ in range(1500)]
    found = np.array([(c.draws, c.weights, c.interaction) for c in map(crossed_components, tables)])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - np.square(planted)) <= 4.5 * error + 1e-12).all()
    before = np.array([spread_of_before(table) for table in tables])
    far = abs(before.mean() - planted[0] ** 2) > 4.5 * before.std(ddof=1) / math.sqrt(len(before)) + 1e-12
    assert far == (planted[1] > 0.0)  # the former rule took the effect of the weights off


def test_the_allowance_covers_two_averages_on_two_draws():
    """Averages of 100 trials, on a draw each: 95 % within the bar, whether or not effects interact."""
    rng = np.random.default_rng(11)
    n, repeats = 100, 4000
    for draws, weights, interaction in ((0.2, 0.5, 0.8), (0.0, 0.5, 0.8), (0.2, 0.0, 0.0)):
        trials = math.sqrt((weights**2 + interaction**2) / n)
        ours, paper = (draws * rng.normal(size=repeats) + trials * rng.normal(size=repeats) for _ in range(2))

        def share(spread, ours=ours, paper=paper, trials=trials):
            error = math.sqrt(2.0) * trials
            where = (TWICE, Column(SETTING, 100))
            bar = Comparison(*where, 0.0, 0.0, error, spread, n).tolerance - 0.01
            return float(np.mean(np.abs(ours - paper) <= bar))

        assert share(draws) == pytest.approx(0.9545, abs=4.5 * math.sqrt(0.9545 * 0.0455 / repeats))
        if draws and interaction:
            assert share(0.0) < 0.7
            assert share(math.hypot(draws, interaction)) > 0.999  # the interaction averages out


def record(start, trial, value, epoch=100):
    values = (0.0, value)
    return RunRecord(
        digest=f"{start}{trial}", sweep="toy_bit_datasets", table="", dataset="toy", n_visible=20,
        n_hidden=10, visible="spin", hidden="bit", c=-5.0, scheme=start.scheme, gain=start.gain, sigma=0.1,
        trial=trial, seed=0, epochs=(0, epoch), log_likelihood=values, held_out=values, error=(0.0, 0.0),
        seconds=1.0, version="0", commit="", environment="", finished="2026-01-01T00:00:00Z",
    )  # fmt: skip


def records_of(table, n_datasets):
    """Both starts of every trial; the level of a trial is large and must drop out of the difference."""
    found = []
    for draw, k in np.ndindex(*table.shape):
        trial = n_datasets * k + draw
        found.append(record(BETA_MAX, trial, 5.0 * trial))
        found.append(record(TWICE, trial, 5.0 * trial + table[draw, k]))
    return found


def test_components_of_records_are_those_of_their_table():
    table = plant(np.random.default_rng(3), 0.3, 0.2, 0.1, (4, 3))
    found = draw_components(records_of(table, 4), 4)
    where = (TWICE, Column(SETTING, 100))
    expected = crossed_components(table)
    assert found[where].draws == pytest.approx(expected.draws)
    assert found[where].weights == pytest.approx(expected.weights)
    assert found[where].interaction == pytest.approx(expected.interaction)
    assert (found[where].n_draws, found[where].n_weights) == (4, 3)
    assert found[TWICE, Column(SETTING, 0)].spread == 0.0
    assert all(start == TWICE for start, _ in found)


def test_weights_that_lack_a_draw_are_left_out():
    table = plant(np.random.default_rng(3), 0.3, 0.2, 0.1, (4, 3))
    records = records_of(table, 4)
    where = (TWICE, Column(SETTING, 100))
    part = draw_components([r for r in records if r.trial != 9], 4)
    assert part[where].draws == pytest.approx(crossed_components(table[:, :2]).draws)
    diverged = [record(TWICE, 9, math.nan) if (r.trial, r.gain) == (9, 2.0) else r for r in records]
    assert draw_components(diverged, 4)[where] == part[where]
    assert draw_components([r for r in records if r.trial < 4], 4) == {}  # one draw of the weights


def test_tables_that_hold_no_components_are_refused():
    for shape in ((3,), (1, 5), (5, 1)):
        with pytest.raises(ValueError, match="at least 2 draws times 2 weights"):
            crossed_components(np.zeros(shape))
    with pytest.raises(ValueError, match="must be finite"):
        crossed_components(np.array([[1.0, math.nan], [2.0, 3.0]]))
