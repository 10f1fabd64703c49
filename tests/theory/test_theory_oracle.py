"""beta_max against an independent multiprecision oracle, and against every number the paper prints."""

import csv
import json
from importlib import resources

import numpy as np
import pytest
from oracle.beta_max_oracle import POINTS, STORED, compute

from paramagnet.theory.scale import beta_max, find_beta_max, weight_std

ROWS = json.loads(STORED.read_text())
NAMES = ("visible", "hidden", "alpha", "b", "c")


def read_table():
    text = (resources.files("paramagnet.reproduction") / "paper" / "beta_max.csv").read_text()
    return [
        (row["hidden"], float(row["alpha"]), float(row["c"]), float(row["beta_max"]))
        for row in csv.DictReader(text.splitlines())
    ]


TABLE = read_table()
MISPRINT = ("bit", 0.25, -2.0, 2.216)


# The oracle -----------------------------------------------------------------------------------------------


def test_stored_values_belong_to_the_points_of_the_oracle():
    assert [tuple(row[name] for name in NAMES) for row in ROWS] == POINTS
    assert all(len(row["beta_max"].replace(".", "")) >= 18 for row in ROWS)


def test_the_oracle_is_about_other_points_than_the_paper():
    spin_bit = [row for row in ROWS if (row["visible"], row["hidden"], row["b"]) == ("spin", "bit", "0")]
    printed = {(hidden, alpha, c) for hidden, alpha, c, _ in TABLE}
    assert len(spin_bit) >= 12
    assert not printed & {("bit", float(row["alpha"]), float(row["c"])) for row in spin_bit}
    assert {0.001, 1000.0} <= {float(row["alpha"]) for row in spin_bit}
    assert min(float(row["c"]) for row in spin_bit) < -25


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[name] for name in NAMES))
def test_beta_max_to_nine_digits(row):
    units = {name: row[name] for name in ("visible", "hidden")}
    result = find_beta_max(float(row["alpha"]), b=float(row["b"]), c=float(row["c"]), **units)
    true = float(row["beta_max"])
    assert abs(result.beta - true) <= 1e-9 * min(1.0, true)
    assert result.status == ("unstable" if result.stability < 0 else "maximum")


def test_one_point_recomputed():
    assert compute(POINTS[0]) == ROWS[0]["beta_max"]


@pytest.mark.slow
@pytest.mark.parametrize("i", range(len(POINTS)))
def test_all_points_recomputed(i):
    assert abs(float(compute(POINTS[i])) / float(ROWS[i]["beta_max"]) - 1) < 1e-15


# The paper ------------------------------------------------------------------------------------------------


def test_the_whole_table():
    """Appendix C: 84 values for bit hidden units, 6 for spins, in two calls."""
    assert len(TABLE) == 90
    for hidden, count in (("bit", 84), ("spin", 6)):
        rows = [row for row in TABLE if row[0] == hidden]
        assert len(rows) == count
        _, alpha, c, printed = (np.array(column) for column in zip(*rows, strict=True))
        ours = beta_max(alpha, hidden=hidden, c=c)
        good = np.abs(ours - printed) <= 6e-4
        assert [rows[i] for i in np.flatnonzero(~good)] == ([MISPRINT] if hidden == "bit" else [])


def test_eighty_of_eighty_four_round_as_printed():
    rows = [row for row in TABLE if row[0] == "bit"]
    different = {
        (alpha, c): beta_max(alpha, c=c)
        for _, alpha, c, printed in rows
        if f"{beta_max(alpha, c=c):.3f}" != f"{printed:.3f}"
    }
    assert set(different) == {(0.25, -2.0), (0.25, -4.0), (1.0, -4.0), (2.25, -4.0)}
    true = {(0.25, -4.0): 2.886491, (1.0, -4.0): 3.254479, (2.25, -4.0): 3.860479}
    for point, value in true.items():
        assert abs(different[point] - value) < 5e-7


def test_the_misprint_of_the_table():
    """At alpha = 0.25, c = -2 the paper prints 2.216. The maximum is at 2.213547272."""
    assert MISPRINT in TABLE
    assert abs(beta_max(0.25, c=-2) - 2.213547272) < 5e-10
    assert abs(beta_max(0.25, c=-2) - MISPRINT[3]) > 2e-3


@pytest.mark.parametrize(
    ("n_visible", "n_hidden", "values", "printed"),
    [
        (147, 200, (1.521344, 2.698535, 3.897561), ("1.52", "2.70", "3.90")),  # Urban Land Cover
        (784, 500, (1.515775, 2.463130, 3.428338), ("1.52", "2.46", "3.43")),  # MNIST (the caption has 3.42)
    ],
)
def test_values_of_the_captions(n_visible, n_hidden, values, printed):
    ours = beta_max(n_hidden / n_visible, c=np.array([0.0, -2.5, -5.0]))
    assert np.allclose(ours, values, rtol=0, atol=5.1e-7)
    assert tuple(f"{x:.2f}" for x in ours) == printed
    for c, beta in zip((0.0, -2.5, -5.0), ours, strict=True):
        sigma = weight_std(n_visible, n_hidden, hidden_bias=c)
        assert np.isclose(sigma, beta / np.sqrt(n_visible + n_hidden), rtol=1e-12)
