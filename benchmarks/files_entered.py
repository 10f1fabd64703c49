"""How many files of the package somebody passes who follows a call: those in which a function is called.

    python benchmarks/files_entered.py [beta_max] [train] [sweep] [--list]

Every call is made twice and counted the second time, so that imports and compilation do not count.
``beta_max`` is one solution, ``train`` an initial machine and an epoch with exact gradients, ``sweep`` the
command of that name with a specification of one run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import paramagnet as pm

PACKAGE = Path(pm.__file__).parent
SPECIFICATION = """
trials = 1
[data]
name = "toy"
n_points = 20
[machine]
n_hidden = 2
[learning]
learning_rate = 0.1
[measurement]
epochs = [2]
"""


def solve() -> None:
    pm.beta_max(1.3, c=-2.0)


def train() -> None:
    pm.train(pm.initialize(4, 2, rng=0), np.ones((5, 4)), epochs=1)


def sweep() -> None:
    from typer.testing import CliRunner

    from paramagnet.cli import app

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "own.toml")
        path.write_text(SPECIFICATION, encoding="utf-8")
        result = CliRunner().invoke(app, ["sweep", str(path), "--jobs", "1", "--out", folder])
        if result.exit_code:
            raise RuntimeError(result.output)


CASES: dict[str, Callable[[], None]] = {"beta_max": solve, "train": train, "sweep": sweep}


def files_entered(call: Callable[[], None]) -> list[str]:
    """The files of the package whose functions a call enters, relative to the package."""
    call()
    found: set[str] = set()
    places: dict[Any, str] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in places:
            places[code] = code.co_filename
            if code.co_name != "<module>" and code.co_filename.startswith(f"{PACKAGE}/"):
                found.add(Path(code.co_filename).relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--list", action="store_true", help="name the files")
    options = parser.parse_args()
    for name in options.cases or CASES:
        files = files_entered(CASES[name])
        rooms = {file.split("/")[0].removesuffix(".py") for file in files}
        print(f"{name:10s} {len(files):3d} files in {len(rooms)} rooms")
        if options.list:
            print("          ", *files)


if __name__ == "__main__":
    main()
