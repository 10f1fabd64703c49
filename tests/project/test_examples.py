"""The scripts in examples/ run without a word on the error stream, and print what they promise."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISED = {
    "theory_tables": (("matplotlib",), r"layer correlation, spin hidden units: .*correlation_spin\.png"),
    "train_csv": ((), r"sigma = 0\.3\d+ for 12 x 6\n(epoch .*\n){4}.*\nsaved and loaded: True"),
    "digits_pipeline": (
        ("sklearn",),
        r"-1\d\.\d\d \+- 0\.\d\d \(360 images\) \+- 0\.\d\d \(ln Z\) nats\n"
        r".*pixels.*\n.*features .* [89]\d\.\d %",
    ),
    "torch_one_line": (("torch",), r"theory 0\.34\d\d\n(update .*\n){4}update 200: -\d+\.\d{3} nats"),
    "sequences": (
        ("matplotlib",),
        r"(?s)(held out: -4\d\.\d.*held out, exact: -6\.88\d .* sites -7\.234\n"
        r"exact samples:(\n  [ACGU]{3}G[CU][ACGU]{4}){5}\n$|is not in .*: set PARAMAGNET_DATA)",
    ),
    "likelihood_with_error": (
        ("sklearn",),
        r"(gain .* points\) \+- 0\.\d+ \(ln Z\) nats per point\n){2}first minus second",
    ),
}


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", list(PROMISED))
def test_example_runs(name, tmp_path):
    needed, printed = PROMISED[name]
    for module in needed:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "agg"}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    assert re.search(printed, run.stdout), run.stdout


def test_the_csv_example_takes_a_file(tmp_path):
    rows = [",".join(str((row * column) % 7 / 7) for column in range(1, 6)) for row in range(60)]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "train_csv.py"), "mine.csv", "3"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "for 5 x 3" in run.stdout
    assert (tmp_path / "machine.safetensors").is_file()
