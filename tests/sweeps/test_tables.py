"""Tables, verdicts and their writers, on records whose means are known."""

from __future__ import annotations

import csv
import io
import math
import re
from html.parser import HTMLParser

import pytest

from paramagnet.reproduction.agreement import judge_table
from paramagnet.reproduction.draws import Components
from paramagnet.reproduction.paper import (
    LIKELIHOOD_MISPRINTS,
    PAPER_TABLES,
    misprint_of,
    read_log_likelihoods,
)
from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.reproduction.paper_tables import (
    common_offset,
    held_out_table,
    paper_cells,
    paper_sheet,
    paper_table,
    rivals_table,
)
from paramagnet.sweeps.groups import (
    BETA_MAX,
    Setting,
    Start,
    group_runs,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.results_table import Column, make_table, to_sheet
from paramagnet.sweeps.sheet import Line, Sheet, mean_text, plain_sheet, std_text
from paramagnet.sweeps.store import RunRecord
from paramagnet.sweeps.text_tables import escape_latex, to_csv, to_html, to_latex, to_markdown

TABLE = {table.key: table for table in PAPER_TABLES}
SETTING = Setting("ulc", 147, 200, "spin", "spin", 0.0)
EPOCHS = (0, 40, 80, 100)


def record(
    start=BETA_MAX, trial=0, values=(-90.0, -51.0, -44.4, -42.7), setting=SETTING, epochs=EPOCHS, **other
):
    content = {
        "digest": f"{setting}{start}{trial}{other.get('sweep', '')}", "sweep": "ulc_spin",
        "table": "ULC_ising_c=0", "dataset": setting.dataset, "n_visible": setting.n_visible,
        "n_hidden": setting.n_hidden, "visible": setting.visible, "hidden": setting.hidden, "c": setting.c,
        "scheme": start.scheme, "gain": start.gain, "sigma": 0.1, "trial": trial, "seed": 0, "epochs": epochs,
        "log_likelihood": values, "held_out": tuple(value - 1.0 for value in values),
        "error": (0.0,) * len(epochs), "seconds": 1.0, "version": "0", "commit": "abc",
        "environment": "", "finished": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return RunRecord(**(content | other))


def as_printed(key, shift=0.0, trials=1):
    """Records that hold the paper's own means, moved by ``shift``."""
    curves = {}
    for (start, column), cell in paper_cells(key).items():
        curves.setdefault((start, column.setting), {})[column.epoch] = cell.mean + shift
    return [
        record(start, trial, tuple(curve.values()), setting, tuple(curve), table=key, sweep="any")
        for (start, setting), curve in curves.items()
        for trial in range(trials)
    ]


def test_paper_tables_cover_all_cells_and_have_specifications():
    cells = read_log_likelihoods()
    assert {cell.table for cell in cells} == set(TABLE)
    assert sum(len(paper_cells(key)) for key in TABLE) == len(cells) == 345
    for table in PAPER_TABLES:
        assert table.sweep in paper_specs()
        spec = find_spec(table.sweep)
        assert (spec.table, spec.trials, spec.data.name) == (table.key, table.n_trials, table.dataset)


def test_misprints_are_cells_of_the_paper():
    found = [cell for cell in read_log_likelihoods() if misprint_of(cell)]
    assert [(cell.mean, cell.epoch) for cell in found] == [(-515.07, 40), (-313.46, 100)]
    assert len(found) == len(LIKELIHOOD_MISPRINTS)


def test_summary_by_hand():
    summary = summarize_trials([1.0, 2.0, 4.0, math.nan, -math.inf])
    assert summary.mean == pytest.approx(7.0 / 3.0)
    assert summary.std == pytest.approx(math.sqrt((16 + 1 + 25) / 9 / 2))
    assert (summary.n_trials, summary.n_failed, summary.n_finite) == (5, 2, 3)
    assert summary.error == pytest.approx(summary.std / math.sqrt(3))
    assert summarize_trials([3.0]).mean == 3.0
    assert math.isnan(summarize_trials([3.0]).std)
    assert math.isnan(summarize_trials([]).mean)


def test_runs_are_counted_once_and_paired_by_trial():
    records = [record(trial=1, values=(0.0, 1.0, 2.0, 3.0)), record(trial=0), record(trial=0)]
    runs = group_runs(records)
    assert [run.trial for run in runs[SETTING][BETA_MAX]] == [0, 1]
    assert values_at(runs[SETTING][BETA_MAX], 100) == {(0, 0): -42.7, (0, 1): 3.0}
    assert values_at(runs[SETTING][BETA_MAX], 7) == {}
    pair = paired_difference({(0, 0): 1.0, (0, 1): 5.0, (0, 2): 9.0}, {(0, 1): 2.0, (0, 2): 4.0, (1, 0): 7.0})
    assert (pair.mean, pair.n_trials) == (4.0, 2)


def test_labels_of_starts():
    assert [Start(gain=gain).label for gain in (0.25, 0.5, 1.0, 2.0, 0.3)] == [
        "β_max/4", "β_max/2", "β_max", "2 β_max", "0.3 β_max"
    ]  # fmt: skip
    assert Start("he").label == "he"
    assert Start("he", 0.5).label == "0.5 he"


def test_table_marks_the_best_as_printed_and_counts_trials():
    quarter, double = Start(gain=0.25), Start(gain=2.0)
    records = [
        record(values=(0.0, -1.001, -3.0, 1.0)),
        record(trial=1, values=(0.0, -1.001, -5.0, 1.0)),
        record(quarter, values=(0.0, -1.004, -3.5, math.nan)),
        record(double, values=(0.0, -1.2, -1e9, math.nan)),
    ]
    columns = [Column(SETTING, epoch) for epoch in (40, 80, 100)]
    rows = [quarter, BETA_MAX, double, Start("he")]
    table = make_table("k", "t", group_runs(records), rows, columns)
    best = {where for where, cell in table.cells.items() if cell.best}
    assert best == {(quarter, columns[0]), (BETA_MAX, columns[0]), (quarter, columns[1])}
    assert table.n_trials == (0, 2)
    assert table.cells[BETA_MAX, columns[1]].ours.std == pytest.approx(math.sqrt(2.0))
    words = [
        [" / ".join(line.text for line in lines) for lines in cells] for _, cells in to_sheet(table).rows
    ]
    assert words[0] == ["-1.00 / 1 trial", "-3.50 / 1 trial", "not finite / 1 trial / 1 of 1 not finite"]
    assert words[1] == ["-1.00 (0.000) / 2 trials", "-4.00 (1.41) / 2 trials", "1.00 (0.000) / 2 trials"]
    assert words[2][1] == "-1.0000e+09 / 1 trial"
    assert words[3] == ["no run"] * 3


def test_numbers_as_text():
    assert [mean_text(v) for v in (-9.837, 0.0, -123456.0, math.nan)] == [
        "-9.84", "0.00", "-1.2346e+05", "not finite"
    ]  # fmt: skip
    assert [std_text(v) for v in (0.0083, 0.012, 7.484, 2e6, math.nan)] == [
        "0.008", "0.01", "7.48", "2.0e+06", "-"
    ]  # fmt: skip


@pytest.mark.parametrize("key", TABLE)
def test_the_papers_own_values_agree_with_the_paper(key):
    runs = group_runs(as_printed(key))
    verdict = judge_table(TABLE[key], runs)
    printed = paper_cells(key)
    assert verdict.share == 1.0
    assert not verdict.missing
    n_reference = sum(start == BETA_MAX for start, _ in printed)
    assert len(verdict.comparisons) == len(printed) - n_reference - len(verdict.misprints)
    assert all(rank.ours == rank.paper for rank in verdict.ranks)
    assert len(verdict.misprints) == (2 if key == "MNIST_binary" else 0)
    table = paper_table(TABLE[key], runs)
    assert common_offset(table) == pytest.approx(0.0)


def test_toy_offset_is_found_and_taken_off_where_shown():
    records = as_printed("toy_binary_c=-5", shift=-0.2)
    table = paper_table(TABLE["toy_binary_c=-5"], group_runs(records))
    assert table.offset == pytest.approx(-0.2)
    for _, cells in paper_sheet(table).rows:
        for lines in cells:
            assert lines[0].text == lines[1].text.split(" ")[0]
    assert "-0.200" in " ".join(paper_sheet(table).notes)
    assert judge_table(TABLE["toy_binary_c=-5"], group_runs(records)).share == 1.0
    others = paper_table(TABLE["ULC_ising_c=0"], group_runs(as_printed("ULC_ising_c=0", shift=-0.2)))
    assert others.offset == 0.0


def verdict_on(values, key="ULC_ising_c=0", **options):
    """That of 2 beta_max after 100 epochs: printed -52.20 (0.89) against -42.70 (0.77), 50 trials."""
    records = [record(trial=k, values=(0.0, 0.0, 0.0, 0.1 * k)) for k in range(len(values))]
    records += [
        record(Start(gain=2.0), trial=k, values=(0.0, 0.0, 0.0, 0.1 * k + value))
        for k, value in enumerate(values)
    ]
    verdict = judge_table(TABLE[key], group_runs(records), **options)
    return next(c for c in verdict.comparisons if c.column.epoch == 100)


def test_tolerance_by_hand_with_ten_trials():
    comparison = verdict_on([*[-9.0] * 5, *[-9.6] * 5])
    paper = (0.89**2 + 0.77**2) / 50
    ours = 10 * 0.09 / 9 / 10  # the paired differences are 0.3 from their mean
    assert comparison.ours == pytest.approx(-9.3)
    assert comparison.paper == pytest.approx(-9.5)
    assert comparison.error == pytest.approx(math.sqrt(paper + ours))
    assert comparison.tolerance == pytest.approx(2.0 * math.sqrt(paper + ours) + 0.01)
    assert comparison.agrees
    assert not verdict_on([-8.5] * 10).agrees


def test_with_few_trials_the_papers_spread_stands_for_ours():
    for n in (1, 2, 3, 9):
        comparison = verdict_on([-9.0] * n)
        variance = 0.89**2 + 0.77**2
        assert comparison.error == pytest.approx(math.sqrt(variance / n + variance / 50))
        assert comparison.n_trials == n


def test_what_the_draw_changes_widens_the_tolerance():
    where = (Start(gain=2.0), Column(SETTING, 100))
    narrow = verdict_on([-8.5] * 10)
    wide = verdict_on([-8.5] * 10, draws={where: Components(0.16, 9.0, 4.0, 10, 5)})
    assert wide.spread == pytest.approx(0.4)  # neither the weights nor the interaction
    assert wide.tolerance == pytest.approx(2.0 * math.sqrt(narrow.error**2 + 2.0 * 0.16) + 0.01)
    assert wide.agrees
    assert not narrow.agrees
    negative = verdict_on([-8.5] * 10, draws={where: Components(-0.16, 9.0, 4.0, 10, 5)})
    assert negative == narrow


def test_what_is_not_finite_agrees_with_nothing():
    assert not verdict_on([math.nan]).agrees
    assert verdict_on([math.nan, -9.5, -9.5, -9.5]).n_trials == 3


def test_missing_cells_and_ranks():
    verdict = judge_table(TABLE["ULC_ising_c=0"], group_runs([record(), record(Start(gain=2.0))]))
    assert len(verdict.missing) == 9
    assert all(rank.ours is None for rank in verdict.ranks)
    assert [rank.paper for rank in verdict.ranks] == [2, 1, 1]
    nothing = judge_table(TABLE["ULC_ising_c=0"], {})
    assert math.isnan(nothing.share)
    assert len(nothing.missing) == 15


def test_rivals_and_held_out():
    runs = group_runs([record(), record(Start("he"), values=(0.0, 1.0, 2.0, 3.0))])
    rivals = rivals_table(TABLE["ULC_ising_c=0"], runs)
    assert [row.label for row in rivals.rows] == ["β_max", "xavier", "he", "lecun", "hinton"]
    assert rivals.cells[Start("he"), Column(SETTING, 100)].ours.mean == 3.0
    held_out = held_out_table(TABLE["ULC_ising_c=0"], runs)
    assert [row.label for row in held_out.rows] == ["β_max", "he"]
    assert held_out.cells[Start("he"), Column(SETTING, 100)].ours.mean == 2.0


# Writers


class Cells(HTMLParser):
    """The text of every cell, lines joined by |, and the words in bold."""

    def __init__(self):
        super().__init__()
        self.rows, self.bold, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "br":
            self.open.pop()
            self.rows[-1][-1] += "|"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag  # well nested

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
            if "b" in self.open:
                self.bold.append(data)


@pytest.fixture
def sheet():
    return paper_sheet(paper_table(TABLE["MNIST_binary"], group_runs(as_printed("MNIST_binary", trials=2))))


def numbers(text):
    return [
        float(word)
        for word in re.findall(r"-?\d+\.\d+", text.replace("\N{MINUS SIGN}", "-").replace("$-$", "-"))
    ]


def expected(sheet):
    return [numbers(" ".join(line.text for line in lines)) for _, cells in sheet.rows for lines in cells]


def test_html_round_trip(sheet):
    parser = Cells()
    parser.feed(to_html(sheet))
    assert not parser.open
    body = parser.rows[2:]
    assert [numbers(cell) for row in body for cell in row[1:]] == expected(sheet)
    assert [row[0] for row in body] == ["βmax/4", "βmax/2", "βmax", "2 βmax", "4 βmax"]
    assert parser.rows[0][1:] == ["c = 0", "c = \N{MINUS SIGN}2.5", "c = \N{MINUS SIGN}5"]
    assert len(parser.bold) == 2 * 9  # the paper's bold, and ours, which are the same numbers


def test_markdown_round_trip(sheet):
    lines = to_markdown(sheet).splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    assert {len(row) for row in rows} == {10}
    assert [numbers(cell) for row in rows[2:] for cell in row[1:]] == expected(sheet)
    assert sum(line.count("**") for line in lines) == 4 * 9
    assert any("misprint" in line for line in lines if line.startswith("- "))


def test_latex_round_trip(sheet):
    text = to_latex(sheet)
    body = text.split(r"\hline")[2]
    rows = [line.removesuffix(r"\\").split("&") for line in body.strip().splitlines()]
    assert {len(row) for row in rows} == {10}
    values = [numbers(rows[2 * i][k]) + numbers(rows[2 * i + 1][k]) for i in range(5) for k in range(1, 10)]
    assert values == expected(sheet)
    assert text.count(r"\textbf{") == 18
    assert text.count("{") == text.count("}")
    assert text.isascii()


def test_csv_round_trip():
    table = paper_table(TABLE["MNIST_binary"], group_runs(as_printed("MNIST_binary", trials=2)[:-2]))
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(rows) == len(table.cells) == 45
    for row, ((start, column), cell) in zip(rows, table.cells.items(), strict=True):
        assert (row["scheme"], float(row["gain"]), int(row["epoch"])) == (
            start.scheme,
            start.gain,
            column.epoch,
        )
        if cell.ours.n_trials:
            assert float(row["mean"]) == cell.ours.mean  # all digits
        else:
            assert row["mean"] == row["std"] == ""
        assert float(row["paper_mean"]) == cell.reference.mean
        assert bool(row["misprint"]) == bool(cell.misprint)


def test_words_are_escaped():
    nasty = r"<b>|a_b*c\d$e%f&g#{h}~^`[i]"
    sheet = plain_sheet("k", nasty, ("x", nasty), [(nasty, nasty)], (nasty,))
    parser = Cells()
    parser.feed(to_html(sheet))
    assert parser.rows == [["x", nasty], [nasty, nasty]]
    markdown = to_markdown(sheet)
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines()[:3]] == [3, 3, 3]
    plain = re.sub(r"\\([^a-z\s])", r"\1", markdown).replace("&lt;", "<").replace("&amp;", "&")
    assert plain.count(nasty) == 4
    assert escape_latex("a_b & 5 % β_max ≠ -3") == r"a\_b \& 5 \% $\beta_{\max}$ $\neq$ $-$3"
    assert escape_latex("\\{}") == r"\textbackslash{}\{\}"


def test_sheets_refuse_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="must have 2 cells each, got 1 in 'r'"):
        Sheet("k", "t", "", ("a", "b"), (("r", ((Line("1"),),)),))
    with pytest.raises(ValueError, match="`groups` must cover the 2 columns"):
        Sheet("k", "t", "", ("a", "b"), (), groups=(("g", 3),))
