"""The report: complete, self-contained, honest about gaps; figures; the command."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.cli.report_command import finish_sweep
from paramagnet.data.datasets import load_dataset
from paramagnet.data.source_readers import toy_patterns
from paramagnet.plots import figure_as_svg
from paramagnet.reproduction.document import (
    Bullets,
    Document,
    Drawing,
    Paragraph,
    Section,
    parse_notes,
    to_page,
    write_markdown,
)
from paramagnet.reproduction.figures import draw_long_run
from paramagnet.reproduction.paper import PAPER_TABLES
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.reproduction.report import judge_results, make_report, sheets_of, write_report
from paramagnet.sweeps.curves import draw_learning_curves
from paramagnet.sweeps.groups import BETA_MAX, Setting, Start, group_runs
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import RunRecord, Store, read_results
from paramagnet.sweeps.sweep_sheets import sweep_sheets
from small_sweeps import SPECS, sweep
from studies.starts.specs_of_study import read_study_spec

TOY, DRYBEAN = "toy_binary_c=-5", "db_binary"


def as_printed(key, shift=0.0, trials=3, starts=None, **other):
    """Records around the paper's means; trials scatter by 0.02."""
    (sweep,) = (table.sweep for table in PAPER_TABLES if table.key == key)
    curves = {}
    for (start, column), cell in paper_cells(key).items():
        if starts is None or start in starts:
            curves.setdefault((start, column.setting), {})[column.epoch] = cell.mean + shift
    records = []
    for (start, setting), curve in curves.items():
        for trial in range(trials):
            values = tuple(value + 0.02 * (trial - (trials - 1) / 2) for value in (-20.0, *curve.values()))
            content = {
                "digest": f"{sweep}{setting}{start}{trial}", "sweep": sweep, "table": key,
                "dataset": setting.dataset, "n_visible": setting.n_visible, "n_hidden": setting.n_hidden,
                "visible": "spin", "hidden": setting.hidden, "c": setting.c, "scheme": start.scheme,
                "gain": start.gain, "sigma": 0.1, "trial": trial, "seed": 0, "epochs": (0, *curve),
                "log_likelihood": values, "held_out": tuple(value - 0.5 for value in values),
                "error": (0.0,) * len(values), "seconds": 36.0, "version": "0.1.0", "commit": "abc1234",
                "environment": "Python 3 & <numpy>", "finished": "2026-01-02T00:00:00Z",
            }  # fmt: skip
            records.append(RunRecord(**(content | other)))
    return records


def long_run():
    setting = Setting("drybean", 16, 16, "spin", "bit", -5.0)
    starts = (Start(gain=0.25), BETA_MAX, Start(gain=4.0))
    some = [r for r in as_printed(DRYBEAN, starts=starts) if (r.n_hidden, r.c) == (16, -5.0)]
    assert {(r.n_hidden, r.c) for r in some} == {(setting.n_hidden, setting.c)}
    return [replace(r, sweep="drybean_long", table="", digest=f"long{r.digest}") for r in some]


class Checker(HTMLParser):
    """Tags that are balanced, identifiers that are unique outside figures, nothing from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets, self.words = [], [], [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in ("meta", "br", "path", "use"):
            self.open.append(tag)
        if "svg" not in self.open and "id" in values:
            self.ids.append(values["id"])
        for target in (values[name] for name in ("src", "href", "xlink:href") if name in values):
            assert target.startswith("#"), target
            if tag == "a":
                self.targets.append(target[1:])

    def handle_endtag(self, tag):
        if tag not in ("path", "use"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "svg"} & set(self.open):
            self.words.append(data)


def check_page(text):
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert set(checker.targets) <= set(checker.ids)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    return " ".join("".join(checker.words).split())


def test_page_is_self_contained_and_complete(tmp_path):
    records = [
        *as_printed(TOY, shift=0.3),
        *(
            replace(r, scheme="he", gain=1.0, digest=f"he{r.digest}")
            for r in as_printed(TOY, starts=(BETA_MAX,))
        ),
        *long_run(),
    ]
    write_report(records, page=tmp_path / "r.html", notes="Why **two** cells `differ` < 1.\n\n- one\n- two")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    words = check_page(text)
    assert "36 of 36 differences between a cell and the βmax row" in words
    assert "+0.300, is taken off ours here" in words
    assert "Ours minus the paper's is in the median over cells +0.30 nats per point in Table 3." in words
    assert "Why two cells differ < 1." in words
    assert "Python 3 & <numpy>" in words
    assert "Table 3: other initial weights" in words
    assert "Table 3: held-out points" in words
    assert "Figure 4. Dry Bean" in words
    assert "printed as 2.216 and is 2.213547" in words
    assert "printed as 3.42 and is 3.428" in words
    assert "Table 9 (MNIST, bit hidden units): nothing was run." in words
    assert (
        "Table 3 (Toy data, bit hidden units, c = \N{MINUS SIGN}5): down to 3 of the paper's 100 trials."
        in words
    )
    assert "no runs from hinton, lecun, xavier weights" in words
    assert "no runs on other draws of the data" in words
    assert text.count("<svg") == 5
    assert "currentColor" in text


def test_same_records_give_the_same_page():
    runs = group_runs(as_printed("ULC_ising_c=0"))
    pages = []
    for _ in range(2):
        drawing = Drawing("name", draw_learning_curves(runs, list(runs)), "Caption. More.")
        pages.append(to_page(Document("t", "o", (Section("s", (drawing,)),))))
    assert pages[0] == pages[1]
    check_page(pages[0])


def test_gaps_are_said_and_never_filled():
    quarter = Start(gain=0.25)
    records = as_printed("ULC_binary", trials=1, starts=(BETA_MAX, quarter))
    records = [r for r in records if r.gain == 1.0 or r.c == 0.0]
    (verdict,) = (v for v in judge_results(records) if v.comparisons)
    assert len(verdict.comparisons) == 3
    sections = {section.title: section for section in make_report(records, figures=False).sections}
    assert "12 of the paper's 345 cells were run;" in sections["Verdict"].blocks[0].items[-1]
    (missing,) = sections["What is missing"].blocks
    (line,) = (item for item in missing.items if "without a run" in item)
    assert "33 of 45 cells" in line
    assert "c = -2.5: β_max/4, β_max/2, 2 β_max, 4 β_max" in line
    table = sections["Table 7: Urban Land Cover, bit hidden units"].blocks[1]
    shown = [lines[0].text for _, cells in table.rows for lines in cells]
    assert shown.count("no run") == 33
    words = sections["Table 7: Urban Land Cover, bit hidden units"].blocks[2].text
    assert "In 3 of them we have fewer than 10 trials" in words


def test_misprinted_cells_are_left_out_and_ours_is_said():
    records = as_printed("MNIST_binary", trials=1)
    (verdict,) = (v for v in judge_results(records) if v.comparisons)
    assert len(verdict.comparisons) == 34
    sections = {section.title: section for section in make_report(records, figures=False).sections}
    text = " ".join(sections["Misprints in the paper"].blocks[0].items)
    assert "ours is -313.46 (1 trials)" not in text
    assert "ours is -313.46 (1 trial)" in text


def test_own_sweeps_have_a_section():
    records = as_printed(TOY, table="", sweep="mine", dataset="beans.csv")
    titles = [section.title for section in make_report(records, figures=False).sections]
    assert titles == ["Verdict", "What was run", "Sweep mine", "Misprints in the paper", "What is missing"]


def test_the_terminal_shows_tables_of_own_sweeps_too():
    mine = as_printed(TOY, table="", sweep="mine", dataset="beans.csv")
    records = [*as_printed(TOY), *(replace(record, digest=f"m{record.digest}") for record in mine)]
    titles = [sheet.title for sheet in sheets_of(records, ["mine"])]
    assert titles
    assert titles == sorted(titles)
    assert all(title.startswith("beans.csv, 20 spin and ") for title in titles)
    assert not any("beans" in sheet.title for sheet in sheets_of(records, ["toy_bit_c0"]))


def test_spread_over_draws_of_the_toy_data_has_a_section():
    several = [
        replace(r, sweep="toy_bit_datasets", table="", digest=f"d{r.digest}", log_likelihood=tuple(
            value + 0.2 * (r.trial % 10 - 1) for value in r.log_likelihood
        ))
        for r in as_printed(TOY, trials=20)
    ]  # fmt: skip
    few = [r for r in several if r.trial < 10]
    (verdict,) = (v for v in judge_results(as_printed(TOY) + few) if v.comparisons)
    assert (verdict.n_draws, verdict.n_weights) == (0, 0)  # draws and interaction cannot be told apart
    records = as_printed(TOY) + several
    (verdict,) = (v for v in judge_results(records) if v.comparisons)
    assert (verdict.n_draws, verdict.n_weights) == (10, 2)
    sections = {section.title: section for section in make_report(records, figures=False).sections}
    rests = sections["Verdict"].blocks[0].items[-1]
    assert rests.endswith("is known from 10 draws of the data times 2 of the weights in Table 3.")
    sheet = sections["The toy data: drawn once, or in every trial?"].blocks[1]
    shown = [lines[0].text for lines in sheet.rows[0][1][1:]]
    planted = math.hypot(0.22 * np.std(range(10), ddof=1), 0.02 * 10 / math.sqrt(2))  # draws, two weights
    assert shown[:2] == ["0.05", "0.02"]
    assert float(shown[2]) == pytest.approx(planted, abs=0.005)
    assert len(sheet.rows) == 3
    causes = sections["The toy data: drawn once, or in every trial?"].blocks[2]
    assert [lines[0].text for lines in causes.rows[0][1]] == ["36", "0.000", "0.000", "0.000"]


def test_markdown_with_figures_beside_it(tmp_path):
    records = as_printed("ULC_ising_c=0", trials=1)
    runs = group_runs(records)
    document = make_report(records, figures=False)
    drawing = Drawing("curves", draw_learning_curves(runs, list(runs)), "Curves | all. More.")
    write_markdown(
        replace(document, sections=(*document.sections, Section("s", (drawing,)))), tmp_path / "r.md"
    )
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert figures == ["figures/r-curves.png"]
    for name in figures:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")]
    assert widths
    assert text.count("\n## ") == len(re.findall(r"^## ", text, flags=re.MULTILINE)) > 5


def test_notes_are_read_as_sections():
    (first, second) = parse_notes("Some\nwords.\n\n## Two\n- a\n  b\n- c\n\nEnd.")
    assert (first.title, first.blocks) == ("Findings", (Paragraph("Some words."),))
    assert (second.title, second.blocks) == ("Two", (Bullets(("a b", "c")), Paragraph("End.")))
    assert parse_notes("") == ()
    assert [section.title for section in parse_notes("## Only\n\nwords")] == ["Only"]


def test_without_records_it_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"no records in .* Make some with `paramagnet reproduce`"):
        read_results(tmp_path)
    with pytest.raises(FileNotFoundError, match="must be a folder with records"):
        read_results(tmp_path / "none")
    with pytest.raises(ValueError, match="`records` must hold at least one run"):
        make_report([])


def test_curves_survive_single_trials_and_what_is_not_finite():
    records = as_printed("ULC_ising_c=0", trials=1)
    broken = [replace(r, log_likelihood=(math.nan,) * 4) if r.gain == 4.0 else r for r in records]
    huge = [replace(r, log_likelihood=(-1e300,) * 4) if r.gain == 4.0 else r for r in records]
    for part in (broken, huge, [r for r in records if r.gain == 1.0], [r for r in records if r.gain == 2.0]):
        runs = group_runs(part)
        assert "<svg" in figure_as_svg(draw_learning_curves(runs, list(runs)), "name")


def test_curves_show_what_the_records_hold():
    records = [r for r in as_printed("ULC_ising_c=0") if r.gain in (1.0, 2.0)]
    runs = group_runs(records)
    figure = draw_learning_curves(runs, list(runs))
    above, below = figure.axes
    ours = {line.get_label(): line for line in above.lines}
    assert len(ours) == 2
    for line, gain in zip(above.lines, (1.0, 2.0), strict=True):
        mean = np.mean([r.log_likelihood for r in records if r.gain == gain], axis=0)
        assert np.allclose(line.get_ydata(), mean)
        assert line.get_xdata().tolist() == [0, 40, 80, 100]
    printed = {(s.gain, c.epoch): cell.mean for (s, c), cell in paper_cells("ULC_ising_c=0").items()}
    expected = [printed[2.0, epoch] - printed[1.0, epoch] for epoch in (40, 80, 100)]
    assert np.allclose(below.lines[1].get_ydata(), expected)
    assert np.allclose(below.lines[0].get_ydata(), 0.0)


def test_long_run_draws_beta_max_minus_the_others():
    runs = group_runs(long_run())
    (axis,) = draw_long_run(runs, next(iter(runs))).axes
    assert np.allclose(axis.lines[0].get_ydata(), [-4.73 + 4.89, -4.44 + 4.61, -4.31 + 4.39])
    assert np.allclose(axis.lines[1].get_ydata(), [-4.73 + 16.05, -4.44 + 8.29, -4.31 + 5.36])
    assert axis.get_ylim()[0] == 0.0


def test_base_patterns_are_those_of_the_data():
    patterns = toy_patterns()
    assert patterns.shape == (4, 20)
    assert {tuple(np.unique(row[:10])) for row in patterns} == {(-1.0,), (1.0,)}
    points = load_dataset("toy")
    for k, pattern in enumerate(patterns):
        assert np.array_equal(np.sign(points.data[points.labels == k].mean(axis=0)), pattern)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    records = as_printed("ULC_ising_c=0", trials=2)
    lines = "".join(record.to_line() for record in records)
    (tmp_path / "results" / "ulc_spin.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "results" / "findings.md").write_text("Nothing new.", encoding="utf-8")
    result = CliRunner().invoke(app, ["report", "--no-figures", "--tables", "tables"])
    assert result.exit_code == 0, result.output
    assert "      6           12     12\n" in result.stdout
    assert "All 12 differences between a start and beta_max agree with the paper's" in result.stdout
    assert "Nothing new." in check_page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        "table6.csv", "table6.tex", "table6_held_out.csv", "table6_held_out.tex",
        "table6_rivals.csv", "table6_rivals.tex",
    ]  # fmt: skip
    result = CliRunner().invoke(app, ["report", "--results", "nowhere"])
    assert isinstance(result.exception, FileNotFoundError)
    result = CliRunner().invoke(app, ["report", "--out", "nowhere/r.html"])
    assert "does not exist; make it first" in str(result.exception)


@pytest.mark.parametrize("width", [60, 200])
def test_a_sweep_ends_with_its_tables(tmp_path, monkeypatch, capsys, width):
    monkeypatch.setattr("paramagnet.cli.console._PIPED_WIDTH", width)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # an import of it fails
    records = as_printed("ULC_binary", trials=2)
    text = "".join(record.to_line() for record in records)
    (tmp_path / "ulc_bit.jsonl").write_text(text, encoding="utf-8")
    finish_sweep(tmp_path, ["ulc_bit"])
    shown = capsys.readouterr()
    assert "Table 7. Urban Land Cover" in shown.out
    assert shown.out.count("100 epochs") == 3
    assert max(len(line) for line in shown.out.splitlines() if "│" in line) <= width
    assert shown.out.count("-573.87") == 2  # ours, and the paper's
    assert f"report: {tmp_path / 'report.html'}" in shown.out.replace("\n", "")
    assert "no figures" in shown.err


def test_runs_of_changed_settings_are_kept_apart():
    mine = as_printed(TOY, table="", sweep="mine", dataset="beans.csv", settings="1111aaaa")
    later = [
        replace(r, digest=f"x{r.digest}", settings="2222bbbb", finished="2026-01-03T00:00:00Z",
                log_likelihood=tuple(value + 1.0 for value in r.log_likelihood))
        for r in mine
    ]  # fmt: skip
    alone, both = sheets_of(mine, ["mine"]), sheets_of([*later, *mine], ["mine"])
    assert len(both) == 2 * len(alone)
    assert [sheet.rows for sheet in both[: len(alone)]] == [sheet.rows for sheet in alone]
    assert all(sheet.title.endswith(", settings 2 of 2") for sheet in both[len(alone) :])


def test_runs_of_other_settings_do_not_count_for_a_table_of_the_paper():
    shifted = as_printed(TOY, shift=3.0, starts=(BETA_MAX,))  # all cells alike would not show
    foreign = [replace(record, digest=f"x{record.digest}", settings="1111aaaa") for record in shifted]
    assert judge_results([*as_printed(TOY), *foreign]) == judge_results(as_printed(TOY))


@pytest.mark.parametrize(
    ("epochs", "shown"), [((0, 2), [2]), ((0, 10, 20, 30), [10, 30]), (range(7), [2, 4, 6])]
)
def test_tables_of_own_sweeps_end_with_the_last_epoch(epochs, shown):
    (first, *_) = as_printed(TOY, table="", sweep="mine")
    values = (-1.0,) * len(epochs)
    record = replace(first, epochs=tuple(epochs), log_likelihood=values, held_out=values, error=values)
    (sheet,) = sheets_of([record], ["mine"])
    assert list(sheet.columns) == [f"{epoch} epochs" for epoch in shown]


def test_tables_of_own_sweeps_show_the_epochs_of_the_specification(tmp_path):
    spec = parse_spec(SPECS["exact"].replace("epochs = [3, 6]", "epochs = [6, 4, 2]"), "mine")
    path = tmp_path / "mine.jsonl"
    sweep(spec, path)
    records = Store(path).records()
    assert {record.shown for record in records} == {(2, 4, 6)}
    assert {record.epochs for record in records} == {(0, 1, 2, 3, 4, 6)}
    for sheet in sheets_of(records, ["mine"]):
        assert list(sheet.columns) == ["2 epochs", "4 epochs", "6 epochs"]
    # Records of older versions of the same specification are put beside them.
    mixed = [replace(record, shown=()) if number % 2 else record for number, record in enumerate(records)]
    for sheet in sheets_of(mixed, ["mine"]):
        assert list(sheet.columns) == ["2 epochs", "4 epochs", "6 epochs"]


def test_tables_of_the_study_show_the_epochs_of_its_specifications():
    spec = read_study_spec("win/toy_spin")
    (record, *_) = as_printed(TOY, table="", sweep="win/toy_spin")
    (sheet,) = sweep_sheets([record], "win/toy_spin", spec.measurement.epochs)
    assert list(sheet.columns) == [f"{epoch} epochs" for epoch in sorted(spec.measurement.epochs)]


@pytest.mark.parametrize("name", ["mine_datasets", "drybean_long2", "win/toy_spin"])
def test_own_sweeps_are_shown_whatever_their_name(name, tmp_path):
    records = as_printed(TOY, table="", sweep=name, dataset="beans.csv")
    assert sheets_of(records, [name])
    write_report(records, markdown=tmp_path / "r.md", figures=True)
    text = (tmp_path / "r.md").read_text()
    names = re.findall(r"\]\(figures/([^)]+)\)", text)
    assert names
    assert all((tmp_path / "figures" / file).is_file() for file in names)


def test_a_copy_of_a_file_adds_no_runs(tmp_path):
    lines = "".join(record.to_line() for record in as_printed(TOY))
    (tmp_path / "a.jsonl").write_text(lines)
    once = read_results(tmp_path)
    (tmp_path / "backup.jsonl").write_text(lines)
    assert read_results(tmp_path) == once


def test_first_screen_says_what_agrees_what_does_not_and_what_it_rests_on():
    records = as_printed("ULC_binary", trials=2)
    off = [
        replace(r, log_likelihood=tuple(value + 30.0 for value in r.log_likelihood))
        if (r.gain, r.c) == (2.0, 0.0)
        else r
        for r in records
    ]
    (section, *_) = make_report([*as_printed(TOY), *off], figures=False).sections
    items, tables, power, rule = section.blocks
    agrees, does_not, level, seen, rests = items.items
    assert "**69 of 72** differences" in agrees
    assert "(95.8 %). The paper's nine tables hold 276, 2 of them misprinted." in agrees
    assert "level with the best at two decimals, in 3 of the 6 settings in which all five were run" in agrees
    assert "and in 4 of them in the paper; its rank is the paper's in 5." in agrees
    assert "3 differences are further apart than the rule allows: 3 in Table 7." in does_not
    assert "3 of them rest on fewer than 10 trials of ours." in does_not
    assert "median over cells +0.00 and +0.00 nats per point in Tables 3 and 7." in level
    assert "90 of the paper's 345 cells were run; 75 runs in all, 0.8 core-hours." in rests
    assert re.search(r"72 of the differences rest on 2.3 trials of ours each", rests)
    assert "draw of the toy data" not in rests
    assert "69 of 72 differences agree as it is." in seen
    assert re.search(r"would be \S+, \S+ and \S+ with all five gains off by 5, 10 and 20 %; ", seen)
    found = re.search(r"With the β_max row alone off by 5 % the number changes by at most (\d+)(.*)$", seen)
    assert ("would not be seen" in found[2]) == (int(found[1]) <= 1)  # of 72: at most 2 %
    by_table = {row[1][0][0].text: [lines[0].text for lines in row[1]] for row in tables.rows}
    assert any("33 / 36" in cells for cells in by_table.values())
    as_it_is, *faults = ([lines[0].text for lines in cells] for _, cells in power.rows)
    assert as_it_is[0] == "69 / 72"
    assert int(as_it_is[-1]) < 40
    assert len(faults) == 1
    assert "twice the combined standard error" in rule.text
    opening = make_report(off, figures=False).opening
    assert "M. Yasuda" in opening
    assert "45 of the 345 cells of Tables 1 to 9 were run again" in opening
