"""How far a reader has to follow a call: files of the package that are entered, counted with a ceiling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "files_entered.py"
CEILINGS = {"beta_max": 16, "train": 56, "sweep": 77}  # files; lower them when a call gets shorter


@pytest.mark.parametrize("case", CEILINGS)
def test_a_call_enters_few_files(case):
    """In a process of its own: what other tests have imported or cached must not count."""
    words = [sys.executable, str(SCRIPT), case, "--list"]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    summary, listed = output.splitlines()
    files = listed.split()
    assert int(summary.split()[1]) == len(files) <= CEILINGS[case]
    assert not [file for file in files if file.startswith("reproduction/")]
