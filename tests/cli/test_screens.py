"""What the commands print on terminals of 80, 100 and 120 columns; those of 80 are kept as text in screens/.

``PARAMAGNET_WRITE_SCREENS=1 python -m pytest tests/cli/test_screens.py`` writes them anew.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from terminals import on_terminal

SCREENS = Path(__file__).parent / "screens"
RESULTS = Path(__file__).parents[2] / "results"
WIDTHS = (80, 100, 120)
SIZES = ("--visible-units", "784", "--hidden-units", "500")

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BAR = re.compile(r"compiling kernels|[━╸╺]+ +\d+%")
_CHANGING = (  # times, which are not the same twice
    (re.compile(r"(?<=\d) +\d+\.\d(?=$)", re.MULTILINE), "        T.T"),
    (re.compile(r"\(\d+\.\d\s+s\)"), "(T.T s)"),
    (re.compile(r"\(about [\d.e+-]+ s\)"), "(about T s)"),
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no terminals here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("screens")
    rng = np.random.default_rng(0)
    rows = ["id,height,weight,colour,member,since"]
    for i in range(60):
        tall = rng.random() < 0.5
        rows.append(
            f"{i},{rng.normal(180 if tall else 160, 5):.1f},{rng.normal(80 if tall else 60, 8):.1f},"
            f"{rng.choice(['red', 'green', 'blue'])},{bool(rng.random() < 0.5)},2024-0{rng.integers(1, 9)}-11"
        )
    (place / "people.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rule = pm.data.fit_preparation(place / "people.csv", drop="id,since", label=False)
    machine = pm.initialize(rule.n_visible, 3, rng=1)
    machine.save(place / "people.safetensors", preparation=rule)
    return place


def show(folder, words, width):
    """The lines of a command without colours, bars and times."""
    text, code = on_terminal(folder, *words, columns=width)
    lines = [line.split("\r")[-1].rstrip() for line in _CODES.sub("", text).split("\n")]
    lines = [line for line in lines if line and not _BAR.search(line)]
    shown = "\n".join(lines) + "\n"
    assert all(len(line) <= width or "paramagnet train" in line for line in lines)  # copied as one line
    for pattern, instead in _CHANGING:
        shown = pattern.sub(instead, shown)
    return shown, code


COMMANDS = {
    "schemes": ("schemes", *SIZES),
    "table": ("table",),
    "beta-max": ("beta-max", *SIZES, "--hidden-bias", "-5"),
    "info": ("data", "info", "people.csv"),
    "refusal": ("train", "people.csv", "--out", "none.safetensors"),
    "train": (
        "train", "people.csv", "--drop", "id,since", "--no-label", "--held-out", "0.2",
        "--epochs", "40", "--seed", "1", "--out", "new.safetensors", "--force",
    ),
    "evaluate": ("evaluate", "people.safetensors", "people.csv"),
    "compare": (
        "compare", "people.csv", "--drop", "id,since", "--no-label", "--epochs", "4",
        "--trials", "2", "--hidden-units", "2", "--held-out", "0.2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen(folder, name, width):
    text, code = show(folder, COMMANDS[name], width)
    assert code == (2 if name == "refusal" else 0), text
    assert "…" not in text  # no cell is cut
    if width == WIDTHS[0]:
        compare_with_file(name, text, exactly=name not in ("train", "compare"))
    if name in ("train", "compare"):  # the same words and numbers, in other lines
        kept = (SCREENS / f"{name}.txt").read_text(encoding="utf-8")
        assert words_of(shape_of(text)) == words_of(shape_of(kept))


def compare_with_file(name, text, *, exactly):
    """The screen must be the one that is kept; sums differ in the last digits between processors."""
    kept = SCREENS / f"{name}.txt"
    if os.environ.get("PARAMAGNET_WRITE_SCREENS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    if exactly:
        assert text == kept.read_text(encoding="utf-8")
    else:
        assert shape_of(text) == shape_of(kept.read_text(encoding="utf-8"))


def shape_of(text):
    """All lines of a screen with every number replaced, so that rounding does not matter."""
    return re.sub(r"[-+]?\d+\.\d+", "#", re.sub(r"\d", "0", text)).split("\n")


def words_of(lines):
    """The words of a screen, without the frame of a table, which is as wide as the terminal allows."""
    return re.sub(r"[─-╿]", " ", " ".join(lines)).split()


@pytest.mark.parametrize("width", [80, 120])
def test_the_end_of_a_demo(tmp_path, width):
    """`make demo` with its runs done: three tables, the verdict in a sentence, the path of the report."""
    for name in ("toy_spin", "toy_bit_c0", "toy_bit_c5"):
        if not (RESULTS / f"{name}.jsonl").exists():
            pytest.skip("no records of the toy data here")
        lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        few = [line for line in lines if json.loads(line)["trial"] < 2]  # as many as `--quick` makes
        (tmp_path / f"{name}.jsonl").write_text("".join(few), encoding="utf-8")
    pytest.importorskip("matplotlib", reason="the report has figures")
    text, code = show(tmp_path, ("reproduce", "toy", "--quick", "--jobs", "1", "--out", "."), width)
    assert code == 0, text
    assert "…" not in text
    assert all(len(line) <= width for line in text.split("\n"))
    ending = text[text.index("Table 1.") :]
    if width == WIDTHS[0]:
        compare_with_file("demo", ending, exactly=True)
    assert [line.split(".")[0] for line in ending.split("\n") if line.startswith("Table ")] == [
        "Table 1", "Table 2", "Table 3",
    ]  # fmt: skip
    assert re.search(
        r"  table  differences  agree\n( +[123] +\d+ +\d+\n){3}"
        r"(All|\d+ of) \d+ differences between a start and beta_max agree with the paper's within\s"
        r"errors of both\.\nreport: report\.html\n$",
        ending,
    ), ending[-600:]
