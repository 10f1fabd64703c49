"""A csv from elsewhere, from the file to a held-out likelihood, as a new user types it."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.cli.suggestions import suggest_hidden_units
from paramagnet.estimates import show_likelihood

N_ROWS = 200


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def refusal(*words):
    with pytest.raises(ValueError) as error:
        run(*words)
    return str(error.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with shop.csv: an index without a name, numbers, text, gaps, True/False, dates, names."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("shop.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", "age", "spent", "colour", "member", "since", "name"])
        for i in range(N_ROWS):
            kind = rng.random() < 0.5
            age = int(rng.normal(50 if kind else 25, 4))
            colour = rng.choice(["red", "green", "blue"], p=[0.8, 0.1, 0.1] if kind else [0.1, 0.1, 0.8])
            writer.writerow([
                i, "" if rng.random() < 0.1 else age, f"{rng.gamma(3.0, 90 if kind else 20):.2f}",
                "NA" if rng.random() < 0.05 else colour, bool(rng.random() < (0.9 if kind else 0.2)),
                f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}", f"person {i}",
            ])  # fmt: skip
    return tmp_path


TRAIN = (
    "train", "shop.csv", "--drop", "1,since,name", "--missing", "mode", "--held-out", 0.25, "--epochs", 300,
    "--learning-rate", 0.02, "--seed", 1, "--out", "shop.safetensors",
)  # fmt: skip


def test_four_commands_from_a_csv_to_a_held_out_likelihood(folder):
    info = run("data", "info", "shop.csv").stdout  # 1
    command = re.search(r"learn it: paramagnet (.*)", info)
    assert command is not None
    assert command[1] == (
        "train shop.csv --drop 1,since,name --missing mode --held-out 0.2 --learning-rate 0.01 "
        "--out shop.safetensors"
    )
    for words in ("age         number", "member      true/false", "since       date", "seems to number"):
        assert re.sub(" +", " ", words) in re.sub(" +", " ", info)
    refused = refusal("train", "shop.csv", "--out", "shop.safetensors")  # 2: all columns named at once
    for words in (
        "age (column 2)", "colour (column 4)", "since (column 6): dates", "name (column 7): text with 200",
        "`--drop since,name`", "`--missing mode`", "`--drop since,name,1`",
    ):  # fmt: skip
        assert words in refused
    trained = run(*TRAIN)  # 3
    assert "paramagnet evaluate shop.safetensors shop.csv --held-out" in trained.stdout
    found = run("evaluate", "shop.safetensors", "shop.csv", "--held-out").stdout  # 4
    assert re.search(r"log-likelihood: -\d\.\d+ \+- 0\.\d+ \(50 points\), ln Z exact, nats per point", found)
    assert re.search(r"the machine is \d\.\d\d above", found)


def test_the_likelihood_is_that_of_points_made_by_hand(folder):
    run(*TRAIN)
    answer = json.loads(run("evaluate", "shop.safetensors", "shop.csv", "--held-out", "--json").stdout)
    rows = read_rows("shop.csv")
    rule = pm.data.Preparation.load("shop.safetensors")
    order = np.random.default_rng([1, 0x5EED]).permutation(N_ROWS)
    held_out = [rows[i] for i in sorted(order[:50])]
    states = rule.apply({name: [row[name] for row in held_out] for name in rule.column_names})
    machine = pm.RBM.load("shop.safetensors")
    values = -machine.free_energy(states) - float(pm.log_partition(machine))
    assert answer["log_likelihood"] == pytest.approx(values.mean(), abs=1e-12)
    assert answer["points_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(50), rel=1e-12)
    # the rule knows nothing of the held-out rows
    others = [rows[i] for i in sorted(order[50:])]
    fitted = pm.data.fit_preparation(
        {name: [row[name] for row in others] for name in rule.column_names}, missing="mode", label=False
    )
    assert [code.unit_names for code in fitted.codes] == [code.unit_names for code in rule.codes]
    assert fitted.means == rule.means
    shares = (np.array(rule.means) + 1) / 2
    assert np.all((shares > 0.02) & (shares < 0.98))  # so that none is moved inside
    level = np.where(states > 0, np.log(shares), np.log1p(-shares)).sum(axis=1).mean()
    assert answer["independent"] == pytest.approx(level, abs=1e-12)


def test_scores_features_and_samples(folder):
    run(*TRAIN)
    rule, machine = pm.data.Preparation.load("shop.safetensors"), pm.RBM.load("shop.safetensors")
    states = rule.apply("shop.csv")
    run("score", "shop.safetensors", "shop.csv", "--out", "scores.csv")
    scores = np.loadtxt("scores.csv", delimiter=",", skiprows=1)
    assert scores.shape == (N_ROWS, 2)  # ln Z is exact: no column of its error
    assert np.array_equal(scores[:, 0], np.arange(1, N_ROWS + 1))
    assert np.allclose(scores[:, 1], -machine.free_energy(states) - float(pm.log_partition(machine)))
    mais = ("--method", "mais", "--samples", 100, "--temperatures", 50, "--seed", 4)
    run("score", "shop.safetensors", "shop.csv", "--out", "estimated.csv", *mais)
    rows = read_rows("estimated.csv")
    assert [*rows[0]] == ["row", "log_likelihood", "error"]
    log_z = pm.estimate_log_partition(machine, n_samples=100, n_temperatures=50, rng=4)
    assert {float(row["error"]) for row in rows} == {log_z.error}
    expected = -machine.free_energy(states) - log_z.value
    assert np.allclose([float(row["log_likelihood"]) for row in rows], expected)
    run("score", "shop.safetensors", "shop.csv", "--missing", "drop", "--out", "scores.csv")
    kept = np.loadtxt("scores.csv", delimiter=",", skiprows=1)
    assert 0 < len(kept) < N_ROWS
    assert np.allclose(kept[:, 1], scores[kept[:, 0].astype(int) - 1, 1])
    run("transform", "shop.safetensors", "shop.csv", "--out", "features.csv")
    features = np.loadtxt("features.csv", delimiter=",", skiprows=1)
    assert np.allclose(features[:, 1:], machine.hidden_features(states))
    run("sample", "shop.safetensors", "--out", "more.csv", "--n-samples", 40, "--seed", 3)
    rows = [[*read_rows("more.csv")[0]], *([*row.values()] for row in read_rows("more.csv"))]
    assert rows[0] == ["age", "spent", "colour", "member"]
    assert {row[2] for row in rows[1:]} <= {"red", "green", "blue", ""}
    drawn = pm.sample_exact(machine, 40, rng=3)
    assert [row[3] for row in rows[1:]] == rule.invert(drawn)["member"]
    run("sample", "shop.safetensors", "--out", "units.csv", "--n-samples", 40, "--seed", 3, "--states")
    assert np.array_equal(np.loadtxt("units.csv", delimiter=","), drawn)


def test_what_is_clamped_stays(folder):
    run(*TRAIN)
    (folder / "wanted.csv").write_text("colour,member\nred,\nblue,False\n")
    run(
        "sample",
        "shop.safetensors",
        "--clamp",
        "wanted.csv",
        "--out",
        "out.csv",
        "--n-samples",
        5,
        "--seed",
        1,
    )
    rows = read_rows("out.csv")
    assert [row["colour"] for row in rows] == ["red"] * 5 + ["blue"] * 5
    assert {row["member"] for row in rows[5:]} == {"False"}


def test_clamped_cells_are_written_as_they_were_given(folder):
    """Not as the median of their side, and missing ones are drawn."""
    run(*TRAIN)
    (folder / "wanted.csv").write_text("age,colour\n20.5,\n,blue\n")
    run(
        "sample", "shop.safetensors", "--clamp", "wanted.csv", "--n-samples", 2, "--seed", 1, "--out", "o.csv"
    )
    rows = read_rows("o.csv")
    assert [row["age"] for row in rows[:2]] == ["20.5", "20.5"]
    assert all(row["age"] not in ("", "20.5") for row in rows[2:])
    assert [row["colour"] for row in rows[2:]] == ["blue", "blue"]


def test_the_machine_has_the_name_of_the_data_by_default(folder):
    words = [word for word in TRAIN if word not in ("--out", "shop.safetensors")]
    found = run(*words).stdout
    assert "machine: shop.safetensors" in found
    assert (folder / "shop.safetensors").exists()
    with pytest.raises(FileExistsError, match=r"`--out` must be a new file, 'shop\.safetensors' exists"):
        run(*words)


def test_numbers_that_stay_numbers(folder):
    run(
        "train", "shop.csv", "--columns", "age,spent", "--missing", "drop", "--numbers", "gaussian",
        "--held-out", 0.25, "--epochs", 50, "--out", "g.safetensors",
    )  # fmt: skip
    found = run("evaluate", "g.safetensors", "shop.csv", "--held-out").stdout
    assert "of the standardized columns; in your own units -" in found
    run("sample", "g.safetensors", "--out", "g.csv", "--seed", 1)
    ages = np.loadtxt("g.csv", delimiter=",", skiprows=1)[:, 0]
    assert 10 < ages.mean() < 70
    assert "leave out `--visible bit`" in refusal(
        "train", "shop.csv", "--numbers", "gaussian", "--visible", "bit", "--out", "x.safetensors"
    )


def test_binarize_and_compare_take_the_same_options(folder):
    options = ("--drop", "1,since,name", "--missing", "mode")
    run("data", "binarize", "shop.csv", "a.npy", *options, "--save", "rule.json")
    run("data", "binarize", "shop.csv", "b.csv", "--use", "rule.json")
    states = pm.data.fit_preparation("shop.csv", drop="1,since,name", missing="mode").apply("shop.csv")
    assert np.array_equal(np.load("a.npy"), states)
    assert np.array_equal(np.loadtxt("b.csv", delimiter=",", skiprows=1), states)
    few = ("--epochs", 2, "--trials", 1, "--gain", 1, "--scheme", "xavier", "--hidden-units", 2)
    assert "shop.csv: 6 spin and 2 bit units" in run("compare", "shop.csv", *options, *few).stdout
    assert "`--numbers gaussian` is not for comparisons" in refusal(
        "compare", "shop.csv", *options, *few, "--numbers", "gaussian"
    )


def test_what_is_settled_and_what_is_unknown(folder):
    run(*TRAIN)
    assert "`--drop` was settled in training" in refusal(
        "evaluate", "shop.safetensors", "shop.csv", "--drop", "age"
    )
    (folder / "other.csv").write_text("Age,spent,color,member\n3,4,red,True\n")
    assert "has no 'age' (did you mean 'Age'?), 'colour' (did you mean 'color'?)" in refusal(
        "evaluate", "shop.safetensors", "other.csv"
    )
    assert "did you mean 'toy'?" in refusal("train", "toyy", "--out", "x.safetensors")
    (folder / "short.csv").write_text("\n".join((folder / "shop.csv").read_text().splitlines()[:50]))
    assert "which had 200 rows; short.csv has 49" in refusal(
        "evaluate", "shop.safetensors", "short.csv", "--held-out"
    )
    assert "between 0 and 1" in refusal(*TRAIN[:7], 1.5, "--out", "y.safetensors")


def test_a_named_set_goes_straight_into_training(folder):
    words = run("train", "toy", "--epochs", 2, "--held-out", 0.25, "--out", "toy.safetensors")
    assert "--hidden-units 10: half of the visible units" in words.stderr
    found = json.loads(run("evaluate", "toy.safetensors", "toy", "--held-out", "--json").stdout)
    assert found["n_points"] == 100


def test_json_of_info_lists_the_columns(folder):
    answer = json.loads(run("data", "info", "shop.csv", "--json").stdout)
    assert [column["kind"] for column in answer["columns"]] == [
        "number", "number", "number", "text", "true/false", "date", "text",
    ]  # fmt: skip
    assert answer["columns"][0]["index"]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((-18.7812, 0.1834, 597, 0.0104), "-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)"),
        ((-18.7812, 0.1834, 597, 0.0), "-18.78 +- 0.18 (597 points), ln Z exact"),
        ((-18.7812, 0.1834, 597, 0.0004), "-18.78 +- 0.18 (597 points) +- 0.0004 (ln Z)"),
        ((-18.7812, 0.01834, 59700, 0.26), "-18.78 +- 0.02 (59700 points) +- 0.26 (ln Z)"),
        ((-1234.5, 12.3, 9, 1.0), "-1234 +- 12 (9 points) +- 1 (ln Z)"),
        ((-2.0, float("inf"), 1, 0.0), "-2.000000 (1 point), ln Z exact"),
    ],
)
def test_digits_match_the_errors(numbers, text):
    assert show_likelihood(*numbers) == text


def test_suggestions_are_small_and_say_why():
    assert suggest_hidden_units(7) == (3, "--hidden-units 3: half of the visible units")
    assert suggest_hidden_units(2)[0] == 2
    assert suggest_hidden_units(784) == (
        14,
        "--hidden-units 14: few enough for exact gradients and likelihoods",
    )


def test_a_spreadsheet_with_decimal_commas(folder):
    """Semicolons, decimal commas, a byte-order mark and CRLF: proposed commands work as they stand."""
    rng = np.random.default_rng(2)
    lines = ["Kunde;Umsatz;Rabatt;Stadt;Datum"]
    for i in range(100):
        amount = f"{rng.gamma(3.0, 20.0):.2f}".replace(".", ",")
        rate, town = rng.choice(["0,5", "1,0", "2,5"]), rng.choice(["Köln", "Bern"])
        lines.append(f"{i};{amount};{rate};{town};{rng.integers(1, 29):02d}.12.2023")
    text = "\r\n".join(lines)
    (folder / "umsatz.csv").write_bytes(text.encode("utf-8-sig"))
    info = run("data", "info", "umsatz.csv").stdout
    assert "Umsatz (column 2) has cells that are no numbers" in info
    command = re.search(r"learn it: paramagnet (.*)", info)[1]
    assert command == (
        "train umsatz.csv --drop Kunde,Datum --decimal , --held-out 0.2 --learning-rate 0.01 "
        "--out umsatz.safetensors"
    )
    refused = refusal("train", "umsatz.csv", "--out", "x.safetensors", "--no-label", "--held-out", 0.2)
    assert "Read commas as decimal signs by `--decimal ,`." in refused
    assert "Does Kunde (column 1) only number the rows?" in refused  # also of 80 % of the rows
    run(*command.split(), "--no-label", "--epochs", 5)
    assert "log-likelihood: " in run("evaluate", "umsatz.safetensors", "umsatz.csv", "--held-out").stdout
    run("sample", "umsatz.safetensors", "--n-samples", 5, "--seed", 1, "--out", "new.csv")
    written = (folder / "new.csv").read_text(encoding="utf-8").splitlines()
    assert written[0] == "Umsatz;Rabatt;Stadt"
    assert all(re.fullmatch(r"\d+(,\d+)?;\d(,\d)?;(Köln|Bern)", line) for line in written[1:])
    run("score", "umsatz.safetensors", "new.csv", "--out", "scores.csv")
    assert len(read_rows("scores.csv")) == 5
    (folder / "wanted.csv").write_text("Umsatz;Rabatt;Stadt\n30,5;;Bern\n", encoding="utf-8")
    run("sample", "umsatz.safetensors", "--clamp", "wanted.csv", "--n-samples", 1, "--out", "whole.csv")
    assert (folder / "whole.csv").read_text(encoding="utf-8").splitlines()[1].startswith("30,5;")
    (folder / "points.csv").write_text("Umsatz,Rabatt,Stadt\n30.5,0.5,Bern\n", encoding="utf-8")
    refused = refusal("evaluate", "umsatz.safetensors", "points.csv", "--missing", "mode")
    assert "with a decimal comma; found other cells in points.csv:\n  Umsatz (column 1): '30.5'" in refused
    machine = pm.data.Preparation.load("umsatz.safetensors")
    assert machine.decimal == ","
    run("data", "binarize", "umsatz.csv", "a.npy", "--decimal", ",", "--drop", "Kunde,Datum", "--no-label")
    assert np.load("a.npy").shape == (100, machine.n_visible)


def test_a_table_with_all_faults_takes_four_commands(folder):
    """Byte-order mark, CRLF, quoted commas, a doubled name, marks for gaps, dates, an index, a constant."""
    rng = np.random.default_rng(5)
    rows = ['"id","age","city, state",active,joined,score,score,source,comment']
    for i in range(200):
        kind = rng.random() < 0.5
        age = (
            rng.choice(["", "NA", "#N/A", "-"])
            if i % 17 == 3
            else str(int(rng.normal(50 if kind else 25, 4)))
        )
        city = rng.choice(
            ['"Austin, TX"', '"Reno, NV"', "?"], p=[0.85, 0.1, 0.05] if kind else [0.1, 0.85, 0.05]
        )
        score = "-" if i % 29 == 5 else f"{rng.normal(30 if kind else 10, 5):.2f}"
        rows.append(
            f"{1000 + i},{age},{city},{'TRUE' if kind else 'FALSE'},{rng.integers(1, 29):02d}/03/2022,"
            f'{rng.normal():.2f},{score},web,"said ""{rng.integers(10**6)}"", ok"'
        )
    (folder / "crm.csv").write_bytes(("\r\n".join(rows) + "\r\n\r\n").encode("utf-8-sig"))
    refused = refusal("train", "crm.csv", "--drop", "id", "--out", "x.safetensors")
    for title in ("age", "city, state", "joined", "score", "comment"):
        assert re.search(rf"^  {title} \(column \d\): ", refused, re.MULTILINE), refused
    assert (
        "Does '-' stand for missing cells? Then take `--missing-values -` and `--drop id,joined,comment`."
        in (refused)
    )
    assert "If not, leave them out as well by `--drop id,age,joined,7,comment`." in refused
    info = run("data", "info", "crm.csv").stdout
    command = re.search(r"learn it: paramagnet (.*)", info)[1]
    assert command == (
        "train crm.csv --drop id,joined,comment --missing-values - --missing mode --held-out 0.2 "
        "--learning-rate 0.01 --out crm.safetensors"
    )
    trained = run(*command.split(), "--epochs", 200, "--seed", 1)
    assert "source (column 8): one value only" in trained.stderr
    level = run("evaluate", "crm.safetensors", "crm.csv", "--held-out").stdout
    assert float(re.search(r"the machine is (\d\.\d+) above", level)[1]) > 0.5
    assert pm.data.Preparation.load("crm.safetensors").missing_values == ("-",)
    run("sample", "crm.safetensors", "--n-samples", 3, "--seed", 1, "--out", "more.csv")
    written = read_rows("more.csv")
    assert [*written[0]] == ["age", "city, state", "active", "score", "score (column 7)", "source"]
    unknown = refusal("train", "crm.csv", "--columns", "city, state", "--out", "x.safetensors")
    assert "Give a column whose name has a comma by its number." in unknown


def test_few_different_numbers_are_listed_and_many_have_ends(folder):
    """Five to eight numbers were shown as "3 to 4 to 5 to 2"."""
    rows = [f"{i % 6},{i * 1.0000000012345:.14f},{i % 2}" for i in range(1, 61)]
    (folder / "few.csv").write_text("rating,long,flag\n" + "\n".join(rows) + "\n", encoding="utf-8")
    shown = run("data", "info", "few.csv").stdout
    assert re.search(r"1  rating +number +0 +6  1, 2, 3, 4$", shown, re.MULTILINE)
    assert re.search(r"2  long +number +0 +60  1 to 60$", shown, re.MULTILINE)
    assert re.search(r"3  flag +number +0 +2  1, 0$", shown, re.MULTILINE)


def test_a_table_without_a_column_to_learn_is_refused_without_advice_to_drop_all(folder):
    (folder / "texts.csv").write_text("text\n" + "\n".join(f"word {i}" for i in range(30)), encoding="utf-8")
    refused = refusal("train", "texts.csv", "--out", "x.safetensors")
    assert "text (column 1): text with 30 different values" in refused
    assert refused.endswith("No column would be left without them; a machine learns numbers or few values.")


def test_a_cell_of_several_lines_stays_in_its_row(folder):
    text = "x,note\n" + "".join(f'{i % 7},"line {i % 3}\nand more"\n' for i in range(20))
    (folder / "notes.csv").write_text(text, encoding="utf-8")
    info = run("data", "info", "notes.csv").stdout
    assert re.search(r"2  note +text +0 +3  line 0 and more, line 1 and more", info)
    (folder / "one.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert "--held-out" not in run("data", "info", "one.csv").stdout
