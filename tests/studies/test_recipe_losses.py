"""The statistics of the study of recipes, on planted effects and on their absence."""

from __future__ import annotations

import numpy as np
import pytest

from studies.recipe.losses import compare_rules, differences, power_to_see

FLOOR = -100.0


def _tables(
    rng: np.random.Generator, leads: list[float], n_settings: int = 6, n_trials: int = 10, shared: float = 3.0
) -> list[np.ndarray]:
    """Values with a part that all rules of a trial share; ``leads`` in units of the rest."""
    noise = rng.standard_normal((n_settings, n_trials, len(leads)))
    return list(noise + shared * rng.standard_normal((n_settings, n_trials, 1)) + np.array(leads))


def test_losses_are_percent_of_what_can_be_learned() -> None:
    table = np.array([[-10.0, -12.0, -11.0], [-12.0, -14.0, -13.0]])
    found = compare_rules([table], [-21.0])
    assert found.losses == pytest.approx(np.array([[0.0, 20.0, 10.0]]))
    assert found.mean_losses == pytest.approx([0.0, 20.0, 10.0])
    assert found.worst_losses == pytest.approx([0.0, 20.0, 10.0])
    assert found.intervals is None  # two trials
    assert found.may_be_best == (0, 1, 2)


def test_mean_loss_is_against_the_best_of_each_setting() -> None:
    """Two rules that are best in one setting each, by 20 and by 10 percent: neither loses nothing."""
    first, second = np.array([[-10.0, -12.0]] * 2), np.array([[-12.0, -11.0]] * 2)
    found = compare_rules([first, second], [-20.0, -21.0])
    assert found.losses == pytest.approx(np.array([[0.0, 20.0], [10.0, 0.0]]))
    assert found.mean_losses == pytest.approx([5.0, 10.0])
    assert found.worst_losses == pytest.approx([10.0, 20.0])


def test_errors_are_those_of_paired_differences() -> None:
    table = np.random.default_rng(0).standard_normal((12, 3)) + 50.0
    gaps, errors = differences([table, table[::-1]])
    pairs = table[:, 0] - table[:, 2]
    assert gaps[0, 2] == pytest.approx(pairs.mean())
    assert errors[0, 2] == pytest.approx(pairs.std(ddof=1) / np.sqrt(12) / np.sqrt(2))


def test_planted_lead_is_found_and_its_size_covered() -> None:
    tables = _tables(np.random.default_rng(1), [0.0, 3.0, 0.0, 0.0])
    found = compare_rules(tables, [FLOOR] * 6)
    assert found.may_be_best == (1,)
    assert found.intervals is not None
    assert found.intervals[1].low == 0.0
    assert found.intervals[0].high == 0.0


@pytest.mark.parametrize(("leads", "n_settings"), [([0.0] * 8, 6), ([0.0] * 12, 18), ([0.0] * 8, 1)])
def test_equal_rules_are_called_equal(leads: list[float], n_settings: int) -> None:
    """All rules are best, so each must be among those that may be; in at least 95 % of experiments less
    three standard errors of their number.
    """
    rng, missed, n_experiments = np.random.default_rng(2), 0, 40
    for _ in range(n_experiments):
        tables = _tables(rng, leads, n_settings)
        found = compare_rules(tables, [FLOOR] * n_settings, n_resamples=100)
        missed += 0 not in found.may_be_best  # the one of which it was to be known beforehand
    assert missed <= n_experiments * 0.05 + 3.0 * np.sqrt(n_experiments * 0.05 * 0.95)


def test_best_rule_is_kept_at_the_stated_confidence() -> None:
    """With unequal noise, which one standard error for all rules would not cover."""
    rng, missed, n_experiments = np.random.default_rng(3), 0, 100
    scales = np.array([3.0, 1.0, 1.0, 0.3, 0.3])
    for _ in range(n_experiments):
        tables = [rng.standard_normal((10, 5)) * scales for _ in range(4)]
        missed += 0 not in compare_rules(tables, [FLOOR] * 4, n_resamples=200).may_be_best
    assert missed <= 0.05 * n_experiments + 3.0 * np.sqrt(n_experiments * 0.05 * 0.95)


def test_counting_within_one_error_would_not_see_equality() -> None:
    """Counting, which this replaces: equal rules are within one error of the best in few settings."""
    rng, within = np.random.default_rng(4), []
    for _ in range(300):
        table = rng.standard_normal((10, 14))
        means = table.mean(axis=0)
        best = int(means.argmax())
        for rule in range(14):
            pairs = table[:, best] - table[:, rule]
            within.append(rule == best or pairs.mean() <= pairs.std(ddof=1) / np.sqrt(10))
    assert 0.3 < np.mean(within) < 0.5


def test_power_grows_with_the_effect() -> None:
    none, one, five = (power_to_see(effect, 6, 6, 10, n_experiments=20) for effect in (0.0, 1.0, 5.0))
    assert none <= 0.1
    assert none <= one <= five
    assert five > 0.9


def test_floor_that_no_rule_exceeds_is_refused() -> None:
    with pytest.raises(ValueError, match="`floors` must be below the best mean"):
        compare_rules([np.zeros((3, 2))], [0.5])
