"""Seconds per run before and after the faster kernels, from what records say of themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paramagnet.reproduction.wording import describe_kernels, kernels_of
from paramagnet.sweeps.store import RunRecord

RECORD = RunRecord(
    digest="a", sweep="ulc_spin", table="ULC_ising_c=0", dataset="ulc", n_visible=147, n_hidden=200,
    visible="spin", hidden="spin", c=0.0, scheme="layer-correlation", gain=1.0, sigma=0.1, trial=0, seed=0,
    epochs=(0, 40), log_likelihood=(-100.0, -50.0), held_out=(-100.0, -51.0), error=(0.1, 0.01),
    seconds=200.0, version="0.1.0", commit="abc1234", environment="Python 3.11.7, AMD EPYC",
    finished="2026-01-02T00:00:00Z",
)  # fmt: skip
LATER = replace(RECORD, environment="Python 3.11.7, int16 kernels, AMD EPYC", seconds=100.0, trial=1)


def row(*records):
    sheet = describe_kernels(records)
    assert len(sheet.rows) == 1
    name, cells = sheet.rows[0]
    return [name, *(lines[0].text for lines in cells)]


def test_records_say_which_kernels_made_them():
    assert kernels_of(RECORD) == "earlier"
    assert kernels_of(LATER) == "int16"
    assert kernels_of(replace(RECORD, environment="Python 3, portable kernels, x86_64")) == "portable"


def test_times_are_compared_in_the_cells_that_both_have():
    other = replace(RECORD, gain=4.0, seconds=50.0)  # takes less, and was not run again
    again = replace(RECORD, trial=2, seconds=300.0)
    assert row(RECORD) == ["ulc_spin", "1", "200", "0", "-", "-"]
    assert row(LATER) == ["ulc_spin", "0", "-", "1", "100", "-"]
    assert row(RECORD, other, LATER) == ["ulc_spin", "2", "125", "1", "100", "0.50 (1 cell)"]
    assert row(RECORD, again, other, LATER) == ["ulc_spin", "3", "183", "1", "100", "0.40 (1 cell)"]
    both = row(RECORD, other, LATER, replace(other, environment=LATER.environment, seconds=75.0))
    assert both[-1] == "1.00 (2 cells)"  # the mean of 0.5 and 1.5: a slower cell counts as much


def test_a_column_without_a_ratio_says_why():
    (explained, *_) = describe_kernels([RECORD]).notes
    assert explained.endswith("in the cells that both have, of which there are none.")
    (explained, *_) = describe_kernels([RECORD, LATER]).notes
    assert explained.endswith("in the cells that both have.")


@pytest.mark.parametrize("change", [{"error": (0.0, 0.0)}, {"seconds": float("nan")}])
def test_exact_runs_and_unknown_times_are_left_out(change):
    assert describe_kernels([replace(RECORD, **change)]) is None
