"""The commands of the theory, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app, main

run = CliRunner().invoke


def words_of(result):
    return " ".join(result.output.split())


def test_beta_max_readable_and_json():
    sizes = ["--visible-units", "784", "--hidden-units", "500", "--hidden-bias", "-5"]
    text = run(app, ["beta-max", *sizes])
    assert text.exit_code == 0
    assert "3.42833818" in text.output
    assert "0.0956755889" in text.output
    assert "stable" in text.output
    values = json.loads(run(app, ["beta-max", *sizes, "--json"]).output)
    assert values["beta_max"] == pm.beta_max(500 / 784, c=-5.0)
    assert values["sigma"] == pytest.approx(pm.weight_std(784, 500, hidden_bias=-5.0), rel=1e-15)
    assert values["status"] == "maximum"
    assert values["rival"] is None


def test_beta_max_says_when_the_theory_does_not_hold():
    result = run(app, ["beta-max", "--visible-units", "30", "--hidden-units", "30", "--hidden-bias", "-15"])
    assert result.exit_code == 0
    assert "unstable" in words_of(result)
    spin = run(app, ["beta-max", "--visible-units", "100", "--hidden-units", "25", "--hidden", "spin"])
    assert "the spin-glass transition" in words_of(spin)
    assert "marginal" in words_of(spin)


def test_table_regenerates_appendix_c():
    rows = json.loads(run(app, ["table", "--json"]).output)
    assert len(rows) == 90
    assert sum(f"{row['ours']:.3f}" == f"{row['paper']:.3f}" for row in rows) == 86
    assert [row for row in rows if row["misprint"]] == [
        row for row in rows if (row["alpha"], row["c"]) == (0.25, -2.0)
    ]
    text = run(app, ["table"], env={"COLUMNS": "200"})
    assert "80 of 84 values round as printed" in words_of(text)
    assert "2.2135 (2.216)! " in text.output.replace("│", " ")  # a misprint, marked where colours are lost
    assert text.output.count(")*") == 3  # the others of the four that round differently
    assert "*: the last decimal differs; !: a misprint in the paper" in words_of(text)


def test_schemes_prints_a_row_for_each_scheme_and_package():
    arguments = ["schemes", "--visible-units", "784", "--hidden-units", "500"]
    text = run(app, arguments, env={"COLUMNS": "200"})
    for name in ("layer-correlation", "xavier", "he", "lecun", "hinton", "scikit-learn", "D-Wave plugin 0.4"):
        assert name in text.output
    assert "spin glass" in words_of(text)
    rows = json.loads(run(app, [*arguments, "--json"]).output)
    assert rows[0]["name"] == "layer-correlation"
    assert rows[-1]["correlation"] is None


@pytest.mark.parametrize("name", ["figure.png", "figure.svg", "figure.pdf"])
def test_curve_draws_in_the_format_of_the_file_name(tmp_path, name):
    pytest.importorskip("matplotlib", reason='figures need "paramagnet[plot]"')
    path = tmp_path / name
    assert run(app, ["curve", str(path), "--alpha", "1", "--hidden-bias", "0"]).exit_code == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[path.suffix[1:]]
    assert path.read_bytes().startswith(start)


def test_curve_for_spins_draws_three_epsilons(tmp_path):
    pytest.importorskip("matplotlib", reason='figures need "paramagnet[plot]"')
    path = tmp_path / "spin.svg"
    assert run(app, ["curve", str(path), "--hidden", "spin", "--alpha", "0.5"]).exit_code == 0
    assert path.stat().st_size > 10_000


def test_peak_at_small_equal_biases_closes_in_on_the_transition():
    """The paper's Figure 2, b = c = eps: the peak approaches the transition as eps falls."""
    critical = pm.beta_max(1.5, hidden="spin")
    distance = [critical - pm.beta_max(1.5, hidden="spin", b=eps, c=eps) for eps in (1e-2, 1e-3, 1e-4)]
    np.testing.assert_allclose(distance, [2.444e-4, 2.514e-6, 2.52e-8], rtol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["beta-max", "--visible-units", "0", "--hidden-units", "5"], "must be a positive integer, got 0"),
        (["beta-max", "--visible-units", "5", "--hidden-units", "5", "--hidden", "ising"], "'spin', 'bit'"),
        (
            ["beta-max", "--visible-units", "5", "--hidden-units", "5", "--hidden-bias", "nan"],
            "must be finite",
        ),
        (
            ["beta-max", "--visible-units", "1", "--hidden-units", "1000", "--hidden-bias", "-30"],
            "first-order",
        ),
        (["table", "--hidden", "gaussian"], "must be bit, spin or both"),
        (["curve", "figure.gif"], "must end in .png, .svg, .pdf"),
        (["curve", "no-such-folder/figure.png"], "does not exist"),
        (["curve", "figure.png", "--hidden", "spin", "--hidden-bias", "1"], "is for bit hidden units"),
    ],
)
def test_errors_are_one_line_without_a_traceback(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["paramagnet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert words in message
    assert "Traceback" not in message
    assert not list(tmp_path.iterdir())


def test_module_runs_and_knows_its_version():
    for arguments in (["--version"], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "paramagnet", *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "paramagnet" in done.stdout


def test_beta_max_of_categorical_and_relu_units_says_which_edge():
    sizes = ["--visible-units", "60", "--hidden-units", "40"]
    values = json.loads(run(app, ["beta-max", *sizes, "--visible", "categorical(4)", "--json"]).output)
    assert values["status"] == "maximum"
    assert values["sigma"] == pytest.approx(pm.weight_std(60, 40, visible="categorical(4)"))
    result = run(app, ["beta-max", *sizes, "--visible", "categorical(4)", "--hidden", "spin"])
    assert "the stability edge of the centred machine" in words_of(result)
    result = run(app, ["beta-max", *sizes, "--hidden", "relu"])
    assert "single ReLU units grow without bound" in words_of(result)


def test_beta_max_checks_centred_machines():
    sizes = ["--visible-units", "12", "--hidden-units", "18", "--hidden", "relu"]
    result = run(app, ["beta-max", *sizes, "--check"])
    assert "centred random machines" in words_of(result)
    assert "1.3333" in result.output


def test_schemes_of_relu_units():
    sizes = ["--visible-units", "30", "--hidden-units", "60", "--hidden", "relu", "--json"]
    reports = {report["name"]: report for report in json.loads(run(app, ["schemes", *sizes]).output)}
    assert reports["layer-correlation"]["to_ours"] == pytest.approx(1.0)
    assert reports["he"]["phase"] == "unknown"
