"""The study of starts: made-up records in, verdicts out that can be counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from paramagnet.cli.reproduce_command import _run_stage
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.reproduction.plan import Stage
from paramagnet.sweeps.executors import InProcess
from paramagnet.sweeps.groups import BETA_MAX, Start
from paramagnet.sweeps.starts import STARTS
from paramagnet.sweeps.store import RunRecord, Store
from paramagnet.sweeps.text_tables import to_markdown
from studies.starts.contest import (
    DATASET_FREE,
    HINTON_DATA,
    ROOT,
    RULES,
    Gap,
    Placing,
    epochs_to_reach,
    level_of_share,
    missing_runs,
    place,
    read_study,
    records_of,
    time_to,
)
from studies.starts.contest_figures import draw_curves, draw_gain_grid, draw_gaps
from studies.starts.contest_tables import (
    all_sheets,
    count_sheet,
    loss_sheet,
    main_contests,
    rate_sheet,
    time_sheet,
)
from studies.starts.gain_tables import composed_sheet, gain_cost_sheet, sparse_sheet
from studies.starts.run import main, run_study_stage
from studies.starts.specs_of_study import read_study_spec, study_specs
from studies.starts.study_page import fill_tables, study_sheets, write_study
from studies.starts.study_plan import PLANS, STUDY_EXACT, STUDY_RATES, STUDY_SAMPLED, STUDY_SPARSE

EPOCHS = (0, 50, 100, 200)
TRIALS = 3
ORDER = ["hopfield", *(name for name in STARTS if name != "hopfield")]


def end_of(run):
    """Best for hopfield, then 0.1 less from one to the next in STARTS; trials shift all alike."""
    return -10.0 - 0.1 * ORDER.index(run.scheme) - 0.5 * abs(math.log2(run.gain)) + 0.3 * run.trial


def record_of(run, name, error=0.0):
    end = end_of(run)
    curve = (end - 4.0, end - 2.0, end - 1.0, end)
    return RunRecord(
        run.digest, name, "", run.data.name, 20, run.n_hidden, run.visible, run.hidden, run.hidden_bias,
        run.scheme, run.gain, 0.1, run.trial, run.seed, EPOCHS, curve, tuple(v - 1.0 for v in curve),
        (error,) * 4, 1.0, "0", "0", "here", "now",
    )  # fmt: skip


def write(path, spec, runs=None, **options):
    with Store(path) as store:
        for run in runs or spec.runs(trials=TRIALS):
            store.append(record_of(run, spec.name, **options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The paper's own runs in one place, the study's in another, as `reproduce` leaves them."""
    path = tmp_path_factory.mktemp("results")
    spec, paper = read_study_spec("win/toy_bit_c5"), find_spec("toy_bit_c5")
    shared = {run.digest for run in paper.runs()}
    write(path / "toy_bit_c5.jsonl", paper, paper.runs(trials=5))
    write(
        path / "win" / "toy_bit_c5.jsonl",
        spec,
        [r for r in spec.runs(trials=TRIALS) if r.digest not in shared],
    )
    write(path / "win" / "toy_rate3.jsonl", read_study_spec("win/toy_rate3"))
    return path


@pytest.fixture(scope="module")
def contests(folder):
    return read_study(folder)


def test_plans_hold_the_whole_study():
    assert {stage.spec for stage in PLANS["win"]} == set(study_specs())
    assert {*STUDY_EXACT, *STUDY_RATES, *STUDY_SAMPLED, *STUDY_SPARSE} == set(study_specs())
    full = {(stage.spec, stage.part) for stage in PLANS["win"] if stage.trials is None}
    assert full == {(name, part) for name in study_specs() for part in ("starts", "rivals", "paper")}


def test_runs_of_other_sweeps_are_not_repeated(tmp_path):
    spec = read_study_spec("win/toy_rate3")
    write(tmp_path / "other.jsonl", spec, list(spec.runs()))
    run_study_stage(Stage(spec.name, "all"), InProcess(), tmp_path, None, math.inf)
    assert not (tmp_path / "win").exists()


def test_a_specification_by_its_name(tmp_path, capsys):
    spec = read_study_spec("win/toy_rate3")
    write(tmp_path / "other.jsonl", spec, list(spec.runs()))
    assert main([spec.name, "--out", str(tmp_path), "--jobs", "1", "--tables"]) == 0
    assert "hopfield" in capsys.readouterr().out  # its tables, from records that were there
    assert not (tmp_path / "win").exists()


def test_runs_of_the_study_count_for_the_paper_s_sweep(tmp_path):
    paper, spec = find_spec("toy_bit_c5"), read_study_spec("win/toy_bit_c5")
    shared = {run.digest for run in paper.runs(trials=1, part="rivals")}
    runs = [run for run in spec.runs(trials=1) if run.digest in shared]
    assert len(runs) == len(shared) == 12
    write(tmp_path / "win" / "toy_bit_c5.jsonl", spec, runs)
    _run_stage(Stage(paper.name, "rivals", 1), False, InProcess(), tmp_path, None, math.inf)
    records = Store(tmp_path / "toy_bit_c5.jsonl").records()
    assert {(r.sweep, r.table, r.environment) for r in records} == {(paper.name, paper.table, "here")}
    assert {record.digest for record in records} == shared


def test_the_same_learning_measured_with_more_effort_counts(tmp_path):
    paper, spec = find_spec("ulc_spin"), read_study_spec("win/ulc_spin")
    assert paper.measurement.n_samples > spec.measurement.n_samples
    cells = len(paper.gains) + len(paper.rivals)
    write(tmp_path / "ulc_spin.jsonl", paper, paper.runs(trials=1))
    missing = missing_runs(spec, spec.runs(trials=1), tmp_path)
    assert len(missing) == len(spec.gains) + len(spec.rivals) + len(spec.starts) - cells
    write(tmp_path / "win" / "ulc_spin.jsonl", spec, missing)
    (contest,) = read_study(tmp_path, [spec.name])
    assert contest.complete
    assert len(contest.gains) == 9
    found = records_of(spec.name, tmp_path)
    assert {record.digest for record in found} == {run.digest for run in spec.runs(trials=1)}
    assert {record.settings for record in found} == {spec.settings}


def test_measurements_at_other_epochs_do_not_count(tmp_path):
    paper, spec = find_spec("mnist_spin"), read_study_spec("win/mnist_spin")
    write(tmp_path / "mnist_spin.jsonl", paper, paper.runs(trials=1))
    runs = list(spec.runs())
    assert missing_runs(spec, runs, tmp_path) == runs


def test_older_records_without_settings_are_not_kept_apart(tmp_path):
    paper, spec = find_spec("toy_bit_c5"), read_study_spec("win/toy_bit_c5")
    write(tmp_path / "toy_bit_c5.jsonl", paper, paper.runs(trials=1))
    with Store(tmp_path / "win" / "toy_bit_c5.jsonl") as store:
        for run in spec.runs(trials=1, part="starts"):
            store.append(replace(record_of(run, spec.name), settings=spec.settings))
    assert {record.settings for record in records_of(spec.name, tmp_path)} == {spec.settings}


def test_stores_are_joined_by_digest(contests):
    assert [contest.spec.name for contest in contests] == ["win/toy_bit_c5"] * 3 + ["win/toy_rate3"] * 2
    assert [contest.setting.n_hidden for contest in contests] == [10, 20, 30, 20, 20]
    for contest in contests:
        assert contest.complete
        assert contest.rules == RULES
        assert contest.n_trials == (
            TRIALS,
            TRIALS,
        )  # of the five trials of the paper's own runs those in common
        assert len(contest.gains) == (6 if contest.is_about_rates else 9)
    assert len(main_contests(contests)) == 3
    assert contests[0].label.startswith("toy bit, ")
    assert contests[0].label.endswith(" = 0.5, c = -5")
    assert contests[3].label.endswith(" = 1, c = 0, rate 0.03")


def test_placings(contests):
    found = place(contests[0], RULES, 200)
    assert {placing.best for placing in found.values()} == {Start("hopfield")}
    assert [rule for rule, placing in found.items() if placing.wins] == [Start("hopfield")]
    assert found[BETA_MAX].gap.value == pytest.approx(-0.1)
    assert found[BETA_MAX].gap.error == pytest.approx(0.0, abs=1e-12)  # trials shift all starts alike
    assert found[BETA_MAX].gap.n_trials == TRIALS
    assert contests[0].best(contests[0].gains, 200) == BETA_MAX
    assert place(contests[0], (), 200) == {}


def test_one_trial_takes_the_error_of_the_estimate(tmp_path):
    spec = read_study_spec("win/mnist_spin")
    runs = list(spec.runs())
    with Store(tmp_path / "mnist.jsonl") as store:
        for run in runs:
            store.append(replace(record_of(run, spec.name, error=0.09), epochs=(0, 5, 10, 20)))
    (contest,) = read_study(tmp_path, ["win/mnist_spin"])
    found = place(contest, RULES, 20)
    assert found[BETA_MAX].gap.error == pytest.approx(0.09 * math.sqrt(2.0))
    assert found[BETA_MAX].wins  # behind by 0.1, with an error of 0.127
    assert found[Start("hopfield")].gap.error == 0.0  # the best, against itself
    assert not found[Start("hinton")].wins


def test_planted_noise_is_paired(folder, tmp_path):
    """A start that is behind in the mean, but by less than its error, is counted as a winner."""
    spec = read_study_spec("win/toy_rate3")
    with Store(tmp_path / "noisy.jsonl") as store:
        for run in spec.runs(trials=TRIALS):
            record = record_of(run, spec.name)
            if run.scheme == "layer-correlation" and run.gain == 1.0:
                shift = (-0.3, 0.0, 0.3)[run.trial]
                record = replace(record, log_likelihood=tuple(v + shift for v in record.log_likelihood))
            store.append(record)
    placing = place(read_study(tmp_path)[0], RULES, 200)[BETA_MAX]
    assert placing.gap.error == pytest.approx(0.3 / math.sqrt(3.0))
    assert placing.wins
    assert not placing.is_best


@pytest.mark.parametrize(
    ("value", "error", "tied"),
    [
        (0.0, 0.0, True),
        (-1e-12, 0.0, False),
        (-0.1, 0.1, True),  # just one standard error
        (-0.1001, 0.1, False),
        (-0.0999, 0.1, True),
        (-0.2, 0.1, False),
        (0.3, 0.1, True),  # ahead
        (math.nan, 0.1, False),
        (-0.1, math.nan, False),
    ],
)
def test_a_tie_is_one_standard_error(contests, value, error, tied):
    gap = Gap(value, error, TRIALS)
    assert gap.tied == tied
    assert Placing(contests[0], BETA_MAX, Start("hopfield"), gap).wins == tied
    best = Placing(contests[0], BETA_MAX, BETA_MAX, gap)
    assert best.wins  # whatever its error
    assert best.is_best


@pytest.mark.parametrize(("lead", "n_winners"), [(0.99, 2), (1.01, 1)])
def test_ties_move_the_count_of_winners(tmp_path, lead, n_winners):
    """Planted: beta_max is behind hopfield by a little less, or more, than one standard error."""
    spec = read_study_spec("win/toy_rate3")
    shifts = np.array([-0.3, 0.0, 0.3])
    error = np.std(shifts, ddof=1) / math.sqrt(3.0)
    with Store(tmp_path / "planted.jsonl") as store:
        for run in spec.runs(trials=TRIALS):
            record = record_of(run, spec.name)
            if run.scheme == "layer-correlation" and run.gain == 1.0:
                moved = 0.1 + shifts[run.trial] - lead * error  # 0.1: hopfield's lead in these records
                record = replace(record, log_likelihood=tuple(v + moved for v in record.log_likelihood))
            store.append(record)
    contest = read_study(tmp_path)[0]
    found = place(contest, (BETA_MAX, Start("hopfield")), 200)
    assert found[BETA_MAX].gap.value == pytest.approx(-lead * error, abs=1e-4)  # records are rounded
    assert found[BETA_MAX].gap.error == pytest.approx(error, abs=1e-4)
    assert sum(placing.wins for placing in found.values()) == n_winners
    assert sum(placing.is_best for placing in found.values()) == 1


def test_of_equal_means_the_first_rule_is_best(contests):
    contest = contests[0]
    same = replace(contest, runs={**contest.runs, ROOT: contest.runs[BETA_MAX]})
    assert same.best((ROOT, BETA_MAX), 200) == ROOT
    assert same.best((BETA_MAX, ROOT), 200) == BETA_MAX


def test_own_best_epoch(contests):
    contest = contests[0]
    record = contest.runs[BETA_MAX][0]
    fitted = replace(record, held_out=(-15.0, -11.0, -12.0, -13.0))
    other = replace(contest, runs={**contest.runs, BETA_MAX: [fitted]})
    assert other.best_epoch(BETA_MAX, "held_out") == 50
    assert other.best_epoch(BETA_MAX) == 200
    assert other.mean(BETA_MAX, None, "held_out") == -11.0
    hopfield = contest.values(Start("hopfield"), 200, "held_out")[0, 0]
    assert other.gap(BETA_MAX, Start("hopfield"), None, "held_out").value == pytest.approx(-11.0 - hopfield)


def test_what_a_gain_costs(contests):
    """Planted: beta_max is the best of every grid, and hopfield the best rule, by 0.1."""
    text = to_markdown(gain_cost_sheet(contests))
    (ours,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub> |"))
    assert ours == "| β<sub>max</sub> | **3** | 0.0 | 0.00 |"  # three settings, all sparse
    (root,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub>/√2 |"))
    assert root.startswith("| β<sub>max</sub>/√2 | 0 |")
    text = to_markdown(sparse_sheet(contests))
    assert text.count("| β<sub>max</sub> | 1 |") == 3
    assert "later" not in text
    text = to_markdown(composed_sheet(contests))
    gaps = {
        label: abs(place(contests[0], RULES, 200)[start].gap.value)
        for label, start in (("always", BETA_MAX), ("follows", ROOT))
    }
    (always,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub> |"))
    (follows,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub>, "))
    assert f"| {gaps['always']:.2f} |" in always
    assert f"| {gaps['follows']:.2f} |" in follows  # all three settings have c < 0
    assert gaps["follows"] > gaps["always"]


def test_settings_planned_later_are_told_apart(tmp_path):
    spec = read_study_spec("win/toy_sparse")
    with Store(tmp_path / "a.jsonl") as store:
        for run in spec.runs(trials=2):
            store.append(record_of(run, spec.name))
    contests = read_study(tmp_path)
    assert [contest.setting.c for contest in contests] == [-2.5, -7.5]
    assert not any(contest.complete for contest in contests)
    assert to_markdown(sparse_sheet(contests)).count(", later |") == 2
    assert not gain_cost_sheet(contests).rows  # they do not count there


def test_time_to_a_level(contests):
    epochs, values = np.array([0.0, 10.0, 20.0]), np.array([-3.0, -2.0, -1.0])
    assert epochs_to_reach(epochs, values, -1.5) == pytest.approx(15.0)
    assert epochs_to_reach(epochs, values, -3.0) == 0.0
    assert epochs_to_reach(epochs, values, -0.5) == math.inf
    contest = contests[0]
    level = contest.mean(BETA_MAX, 200)
    assert time_to(contest, BETA_MAX, level) == pytest.approx(200.0)
    assert time_to(contest, Start("hopfield"), level) == pytest.approx(190.0)
    assert time_to(contest, Start("hinton"), level) == math.inf
    bottom, top = contest.mean(HINTON_DATA, 0), contest.mean(Start("hopfield"), 200)
    assert level_of_share(contest) == pytest.approx(bottom + 0.9 * (top - bottom))


def test_tables(contests):
    text = to_markdown(count_sheet(contests))
    (hopfield,) = (line for line in text.splitlines() if line.startswith("| hopfield"))
    assert hopfield == "| hopfield " + "| 3 | **3** | 0.00 " * 3 + "|"
    (ours,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub> |"))
    assert ours == "| β<sub>max</sub> " + "| 0 | 0 | 0.10 " * 3 + "|"
    text = to_markdown(loss_sheet(contests))
    (hopfield,) = (line for line in text.splitlines() if line.startswith("| hopfield"))
    assert hopfield == "| hopfield " + "| 0.0 | 0.0 " * 3 + "|"
    (hinton,) = (line for line in text.splitlines() if line.startswith("| hinton |"))
    # the best ends at -10, weights of 0.01 with biases begin 4 below where they end
    behind, bottom = 0.1 * ORDER.index("hinton"), 4.0 + 0.1 * ORDER.index("hinton+data")
    assert hinton == "| hinton " + f"| {100 * behind / bottom:.1f} | {100 * behind / bottom:.1f} " * 3 + "|"
    text = to_markdown(count_sheet(contests, DATASET_FREE))
    assert "hopfield" not in text
    (ours,) = (line for line in text.splitlines() if line.startswith("| β<sub>max</sub> |"))
    assert ours == "| β<sub>max</sub> " + "| 3 | **3** | 0.00 " * 3 + "|"
    assert "3 of 3 not" in to_markdown(time_sheet(contests))
    assert len(rate_sheet(contests).columns) == 3  # α = 1, c = -5 at two rates, c = 0 at one
    keys = [sheet.key for sheet in study_sheets(contests)]
    assert len(set(keys)) == len(keys)
    cells = all_sheets(contests)
    assert len(cells) == 4
    assert next(label for label, _ in cells[0].rows) == "β_max/4"


def test_rules_without_runs_keep_a_setting_out(folder, tmp_path):
    spec = read_study_spec("win/toy_bit_c5")
    write(tmp_path / "some.jsonl", spec, [run for run in spec.runs(trials=2) if run.scheme != "hopfield"])
    contests = read_study(tmp_path)
    assert len(contests) == 3
    assert not main_contests(contests)
    page = tmp_path / "page.md"
    page.write_text("")
    with pytest.raises(ValueError, match="nothing to compare yet"):
        write_study(contests, page)


def test_page(contests, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "figures").mkdir()
    page = tmp_path / "page.md"
    page.write_text(
        "Words.\n\n<!-- table: counts -->\nformer table\n<!-- end -->\n\nMore words.\n", encoding="utf-8"
    )
    write_study(contests, page)
    once = page.read_text(encoding="utf-8")
    assert "former table" not in once
    assert once.startswith("Words.")
    assert once.endswith("More words.\n")
    assert "| hopfield | 3 |" in once
    assert fill_tables(once, study_sheets(contests)) == once
    assert "win/toy\\_rate3: held-out" in (tmp_path / "page_tables.md").read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {"page-gaps.png", "page-gains.png"}
    without = study_sheets(main_contests(contests))
    assert "no runs for this table" in fill_tables("<!-- table: rates -->\n<!-- end -->", without)
    with pytest.raises(ValueError, match="asks for the table 'nothing'"):
        fill_tables("<!-- table: nothing -->\n<!-- end -->", study_sheets(contests))


def test_figures(contests):
    pytest.importorskip("matplotlib")
    assert len(draw_gaps(contests).axes) == 2
    panels = [axis for axis in draw_gain_grid(contests).axes if axis.get_visible()]
    assert len(panels) == 1
    assert len(panels[0].get_lines()) >= 6
    assert len(draw_curves(main_contests(contests)).axes) == 6


def test_folder_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="`results` must be a folder"):
        read_study(tmp_path / "nothing")
    assert read_study(tmp_path) == ()
