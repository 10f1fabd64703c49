"""What README.md shows is what a reader gets: its examples run and print what stands below them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paramagnet.cli import app

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


def run_python(code, folder):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "0"}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


def test_the_first_example_needs_no_extra_and_prints_its_number(tmp_path):
    """`.ci/run` runs this block from the wheel in an empty environment."""
    code = blocks("python")[0]
    (promised,) = re.findall(r"# (\d\.\d+)\.\.\.", code)
    assert run_python(code, tmp_path).startswith(promised)


def test_the_line_for_pytorch(tmp_path):
    pytest.importorskip("torch")
    (code,) = (block for block in blocks("python") if "import torch" in block)
    (promised,) = re.findall(r"# (0\.\d+)$", code, flags=re.MULTILINE)
    assert float(run_python(code, tmp_path)) == pytest.approx(float(promised), abs=0.001)


def test_the_pipeline_of_scikit_learn(tmp_path):
    pytest.importorskip("sklearn")
    (code,) = (block for block in blocks("python") if "sklearn" in block)
    promised = code.rstrip().rpartition("\n# ")[2]
    printed = run_python(code, tmp_path).strip()
    assert NUMBER.sub("0", printed) == NUMBER.sub("0", promised)
    level, points, log_z = numbers(printed)
    assert level == pytest.approx(numbers(promised)[0], abs=0.5)  # sampled: other processors, other chains
    assert points == pytest.approx(numbers(promised)[1], abs=0.101)
    assert log_z <= 0.05


def test_the_csv_in_four_commands(tmp_path, monkeypatch):
    """Commands one after the other; the output that is shown is that of the third."""
    shutil.copy(ROOT / "examples" / "shop.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in blocks("sh") if "paramagnet train" in block)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    assert len(commands) == 4
    printed = []
    for program, *words in commands:
        assert program == "paramagnet"
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        printed.append(result.stdout)
    (shown,) = blocks("text")
    lines = printed[2].splitlines()[:2]
    for line, promised in zip(lines, shown.splitlines(), strict=True):
        assert NUMBER.sub("0", line) == NUMBER.sub("0", promised)
        assert numbers(line) == pytest.approx(numbers(promised), abs=0.02)
    proposed = re.search(r"learn it: (.*)", printed[0])[1].split()
    assert set(proposed) <= set(block.split())  # the second command is the one that `data info` proposes
    assert len((tmp_path / "new.csv").read_text(encoding="utf-8").splitlines()) == 6


def test_it_is_short_and_says_first_what_it_is():
    first = TEXT.split("\n\n")[1]
    assert first.startswith("Start a restricted Boltzmann machine")
    assert len(TEXT) < 6800
    assert "/work" not in TEXT
