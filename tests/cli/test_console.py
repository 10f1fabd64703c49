"""Messages on a terminal of 80 columns: broken between words, with commands and paths left whole."""

import inspect
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from paramagnet.cli import app, console
from paramagnet.cli.console import say, wrap
from paramagnet.cli.flags import _PYTHON, name_flags
from paramagnet.learning import ending, resuming, verdict
from terminals import on_terminal

LONG = (
    "`n_hidden` must be a positive integer, got 0; a message that goes on for much longer than one line of "
    "a terminal has room for, so that it must be broken, and not within a word."
)


@pytest.mark.parametrize("width", [20, 40, 79, 80, 81, 300])
def test_lines_are_broken_between_words(width):
    lines = wrap(LONG, width).split("\n")
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines) == LONG
    # as few lines as possible: the first word of a line had no room in the one before
    for line, after in pairwise(lines):
        assert len(line) + 1 + len(after.split()[0]) > width
    assert len(wrap(LONG, len(LONG)).split("\n")) == 1


def test_lines_of_their_own_stay_so():
    assert wrap("first\n\n  second  third\n", 80) == "first\n\n  second  third\n"
    assert wrap("", 80) == ""


@pytest.mark.parametrize(
    "whole",
    [
        "`paramagnet data binarize IN OUT.npy --header`",
        'pip install ".[data]".',
        'pip install ".[plot]",',
        "'/home/some one/my data/points of the year.csv'",
        "/home/a/very/long/path/without/spaces/that/is/wider/than/the/terminal/of/eighty/columns/x.csv.",
        "`paramagnet train a.csv --hidden-units 10 --epochs 100 --out a.safetensors --learning-rate 0.1`",
    ],
)
@pytest.mark.parametrize("before", range(30, 75, 5))
def test_what_is_to_be_copied_is_not_broken(whole, before):
    lines = wrap("x" * before + " " + whole + " and further words " * 6, 80).split("\n")
    (line,) = (line for line in lines if whole.split()[0] in line)
    assert whole in line
    assert all(len(line) <= 80 for line in lines if whole not in line)
    if len(line) > 80:
        assert line == whole  # alone, and no shorter line is possible


def test_apostrophes_are_no_quotation_marks():
    text = "the user's own data and " + "many words " * 8 + "of the program's files " + "more " * 10
    assert all(len(line) <= 40 for line in wrap(text.strip(), 40).split("\n"))


def test_a_line_with_a_command_is_left_whole():
    command = (
        "paramagnet train 'my data.csv' --epochs 100 --hidden-units 20 --out machine.safetensors --resume"
    )
    text = wrap(f"Interrupted after 4 epochs.\nGo on with: {command}", 40)
    assert text == f"Interrupted after 4 epochs.\nGo on with: {command}"
    error = f"paramagnet: {LONG}"
    assert all(len(line) <= 40 for line in wrap(error, 40).split("\n"))


def test_files_and_pipes_get_whole_lines(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    say(LONG)
    say(LONG, err=True)
    assert capsys.readouterr() == (LONG + "\n", LONG + "\n")


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_a_pipe_is_as_wide_as_columns_says(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    say(LONG)
    assert capsys.readouterr().out == wrap(LONG, columns) + "\n"
    assert console.table_console().width == console.screen_width() == columns
    monkeypatch.delenv("COLUMNS")
    assert console.screen_width() is None
    assert console.table_console().width == console._PIPED_WIDTH


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("5", None), ("", None), ("many", None)])
def test_the_width_of_a_terminal(monkeypatch, columns, width):
    class Terminal:
        def isatty(self):
            return True

        def fileno(self):
            raise OSError("no number")

    monkeypatch.setenv("COLUMNS", columns)
    assert console._terminal_width(Terminal()) == width


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals here")
def test_a_terminal_of_80_columns(tmp_path):
    (tmp_path / "years.csv").write_text("2019,2020\n1,0\n0,1\n")
    text, code = on_terminal(tmp_path, "data", "info", "years.csv")
    lines = text.rstrip("\n").split("\n")
    assert code == 2
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
    assert " ".join(lines) == (
        "paramagnet: The file must have names of columns or data in line 1; 2019, 2020 may be either, since "
        "its numbers may be years: years.csv. Pass `--header` if the line names the columns, `--no-header` "
        "if it is a data point."
    )
    np.save(tmp_path / "a.npy", np.tile(np.arange(3.0), (4, 1)))
    text, code = on_terminal(tmp_path, "data", "info", "a.npy", "--binarize", "otsu", columns=50)
    assert code == 0
    assert (
        "warning: 3 of 3 features are constant and become\n-1 everywhere: number 0, 1, 2 (counted from 0).\n"
        in text
    )


def test_headers_are_decided_by_flags():
    message = "`path` may be a header: pass `header=True` or `header=False`."
    flags = {"header": "--header", "header=False": "--no-header"}
    assert name_flags(message, flags) == "The file may be a header: pass `--header` or `--no-header`."
    other = name_flags(message, {"data": "DATA"})
    assert "`paramagnet data binarize IN OUT.npy --header`" in other
    assert "`paramagnet data binarize IN OUT.npy --no-header`" in other
    denied = {"label": "--label", "no_label": "--no-label"}
    assert name_flags("pass `label=False`", denied) == "pass `--no-label`"
    assert re.search("`seed=True`", name_flags("`seed=True`", {"header": "--header"}))


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals here")
def test_tables_on_80_columns_lose_no_number(tmp_path):
    text, code = on_terminal(tmp_path, "table")
    assert code == 0
    assert max(map(len, text.split("\n"))) <= 80
    assert "\u2026" not in text  # the sign of what was cut off
    for words in ("alpha", "c = 0", "c = -6", "1.5971 (1.597)", "5.3560 (5.356)"):
        assert words in text
    text, code = on_terminal(tmp_path, "schemes", "--visible-units", "784", "--hidden-units", "500")
    assert code == 0
    assert max(map(len, text.split("\n"))) <= 80
    assert "\u2026" not in text
    for words in ("layer-correlation", "scikit-learn", "0.0423", "100.0 %", "weakly"):
        assert words in text


def test_notes_of_training_speak_of_flags():
    """The texts that are replaced are those of the library, and nothing of Python is left."""
    source = (
        inspect.getsource(ending)
        + inspect.getsource(resuming)
        + re.sub(r'"\n\s+"', "", inspect.getsource(verdict))
    )
    assert all(words in source for words in _PYTHON)
    note = (
        "but had -1.00 at update 3; `TrainResult.best` is that one. A falling learning rate "
        "(`Adam('linear')`), or `early_stopping=EarlyStopping()` avoid this."
    )
    assert name_flags(note, {}) == (
        "but had -1.00 at update 3. A falling learning rate (`--schedule linear`), or `--early-stopping 5` "
        "avoid this."
    )
    mirrored = "train with centred=True, or start from `initialize(visible_bias='data', data=...)`"
    assert name_flags(mirrored, {}) == "train with `--centred`, or start from `--visible-bias data`"
    means = "train longer, start from visible_bias='data', or give the chains of training more sweeps"
    assert name_flags(means, {}).startswith("train longer, start from `--visible-bias data`, or give")
    slow = "sample with `sample(method='tempering')`, train with `Tempering` or more sweeps"
    assert name_flags(slow, {}) == (
        "sample with `paramagnet sample --method tempering`, train with `--gradient tempering` or more sweeps"
    )


def all_commands(group, words=()):
    """The words that call each command, groups included."""
    yield words
    for name in group.commands:
        command = group.commands[name]  # imports it
        if hasattr(command, "commands"):
            yield from all_commands(command, (*words, name))
        else:
            yield (*words, name)


HELPS = list(all_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_no_help_is_cut_at_80_columns(words):
    text = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).output
    assert "--help" in text
    assert "…" not in text
    assert all(len(line) <= 80 for line in text.split("\n"))
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    for flag in (flag for option in options for flag in (*option.opts, *option.secondary_opts)):
        assert flag in text  # in one piece
