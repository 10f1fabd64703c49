"""Help and version answer without NumPy; the list of commands holds what each command says of itself."""

import inspect
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from paramagnet.cli import _Commands, app
from paramagnet.cli.flags import _PANELS, FlagGroup


def test_the_list_has_the_first_paragraph_of_each_commands_own_help():
    group = typer.main.get_command(app)
    assert list(group.commands) == list(_Commands.listed)
    for name, listed in _Commands.listed.items():
        own = group.commands[name]
        assert own.name == name
        assert inspect.cleandoc(own.help).split("\n\n")[0].replace("\n", " ") == listed.help


def test_help_looks_as_it_does_with_all_commands_imported(capsys):
    lazy = typer.main.get_command(app)
    commands = {name: typer.main.get_command(app).commands[name] for name in lazy.commands}
    plain = FlagGroup(name=lazy.name, commands=commands, params=lazy.params, help=lazy.help)
    for group in (lazy, plain):
        group.main(["--help"], prog_name="paramagnet", standalone_mode=False)
    text = capsys.readouterr().out
    words = text.split()
    assert words[: len(words) // 2] == words[len(words) // 2 :]
    assert all(f" {name} " in text for name in _Commands.listed)


def test_a_long_help_has_headings_with_all_options_below_them():
    """`train` has some sixty options: none is lost, and no heading names one that no command has."""
    group = typer.main.get_command(app)
    known = set()
    for name in ("train", "compare"):
        command = group.commands[name]
        options = [option for option in command.params if option.param_type_name == "option"]
        known |= {option.name for option in options}
        text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).stdout
        headings = re.findall(r"^╭─ (.*?) ─", text, re.MULTILINE)
        wanted = {
            "Options",
            "Machine and start",
            "Learning",
            "Measuring",
            "Table (.csv, .tsv, .parquet, .arff)",
        }
        assert wanted <= set(headings)
        for option in options:
            assert re.search(rf"│ .*{option.opts[0]}\b", text), option.name
    assert {name for names in _PANELS.values() for name in names} - {"visible_units"} <= known
    short = CliRunner().invoke(app, ["evaluate", "--help"], env={"COLUMNS": "80"}).stdout
    assert re.findall(r"^╭─ (.*?) ─", short, re.MULTILINE) == ["Arguments", "Options"]


def test_a_mistyped_command_gets_a_suggestion():
    result = CliRunner().invoke(app, ["trian"])
    assert result.exit_code == 2
    assert "Did you mean 'train'" in result.output


CODE = """
import sys
sys.argv = ["paramagnet", *{words}]
from paramagnet.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded & {{"numpy", "scipy", "numba", "pydantic", "safetensors", "matplotlib"}}))
"""


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["train", "--help"], ["data", "--help"], ["data", "info", "--help"]],
    ids=" ".join,
)
def test_answers_that_need_no_numbers_load_no_numpy(words):
    run = subprocess.run(
        [sys.executable, "-c", CODE.format(words=words)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "[]"


def test_no_command_loads_numpy_when_it_is_imported():
    code = (
        "import sys, typer\n"
        "from paramagnet.cli import app\n"
        "group = typer.main.get_command(app)\n"
        "print([name for name in list(group.commands) if group.commands[name] and 'numpy' in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
