"""Every fenced block of README and docs is run, here or when the site is built; a block that is not fails.

Python: the blocks of a page one after the other, in one process and a folder of its own, after `PREPARED`.
Commands: run, except for those in `PARSED_ONLY`, whose arguments are checked. TOML: read as specifications.
Cells of the tutorials are run by the build, which fails with them.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.reproduction.paper_specs import find_spec
from studies.starts.run import make_parser

ROOT = Path(__file__).parents[2]
PAGES = sorted(p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
RUN = {"python", "sh", "toml"}
NOT_CODE = {"bibtex"}
OUTPUT = {"README.md"}  # its blocks of text are compared with what the commands above them print
ELSEWHERE = {"README.md": "test_readme.py", "docs/pytorch.md": "test_adapter_pytorch.py"}  # their Python

# What a page takes for granted, and the modules that it needs.
PREPARED = {
    "docs/adapters.md": """
import paramagnet as pm
bits = pm.load_dataset("digits", n_points=200, units="bit").data
data = pm.load_dataset("toy").data
from paramagnet.adapters.rbms_archive import save_rbms
save_rbms(pm.initialize(20, 10, rng=0), "RBM.h5", seed=1)
data = (data + 1) / 2
""",
    "docs/beyond.md": """
import numpy as np
import paramagnet as pm
x, y = np.random.default_rng(0).normal(size=(2, 50, 16))
images = pm.load_dataset("toy", n_points=50).data.repeat(40, axis=1)[:, :784]
n, m, c = 30, 20, -2.0
""",
    "docs/data.md": """
import numpy as np
train, test = np.random.default_rng(0).normal(size=(2, 40, 3))
""",
    "docs/likelihood.md": """
import paramagnet as pm
data = pm.load_dataset("toy", n_points=40).data
rbm = pm.initialize(20, 4, rng=0)
""",
}
NEEDED = {
    "docs/adapters.md": ("sklearn", "jax", "flax", "netket", "h5py", "torch"),
    "docs/data.md": ("PARAMAGNET_DATA",),
    "docs/gpu.md": ("torch",),
}
# Too long for a test, or not without a network, a cluster or data: their arguments are checked.
PARSED_ONLY = {
    "paramagnet compare mine.csv --hidden-units 20 --held-out 0.2 --trials 5",
    "paramagnet data fetch mnist",
    "paramagnet data info drybean",
    "paramagnet reproduce all --minutes 480",
    "paramagnet reproduce all --scheduler tcp://host:8786",
    "paramagnet reproduce drybean --trials 30",
    "paramagnet reproduce mine.toml",
    "paramagnet sweep mine.toml",
    "paramagnet reproduce mine.toml --scheduler scheduler.json --state states --minutes 470",
    "paramagnet reproduce toy --quick",
    "paramagnet reproduce toy --quick --out first-look",
}


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks; those inside a longer fence belong to it."""
    found, fence, start, info, lines = [], "", 0, "", []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        match = re.match(r"(`{3,}|:{3,})\s*(.*)$", line)
        if not fence and match:
            fence, info = match.groups()
            start, lines = number, []
        elif fence and re.fullmatch(f"{fence}{fence[0]}*\\s*", line):
            found.append(Block(page, start, info.split()[0] if info else "", "\n".join(lines) + "\n"))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"{page}: a fence is not closed"
    return found


def prose_of(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^(`{3,})[^\n]*\n.*?^\1`*$", "", text, flags=re.DOTALL | re.MULTILINE)


def in_language(page: str, language: str) -> list[Block]:
    return [block for block in blocks_of(page) if block.language == language]


def pages_with(language: str) -> list[str]:
    return [page for page in PAGES if in_language(page, language)]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_a_kind_that_is_run(page):
    is_notebook = "file_format: mystnb" in (ROOT / page).read_text(encoding="utf-8")[:200]
    for block in blocks_of(page):
        where = f"{page}:{block.line}"
        assert block.language, f"{where}: say the language of the block"
        if block.language == "{code-cell}":
            assert is_notebook, f"{where}: cells are run in notebooks only"
        elif block.language == "text":
            assert page in OUTPUT, f"{where}: use a code-block, or compare it in a test"
        elif not block.language.startswith("{"):  # directives are carried out by the build
            assert block.language in RUN | NOT_CODE, f"{where}: nothing runs {block.language}"


@pytest.mark.parametrize("page", PAGES)
def test_code_is_fenced(page):
    """Indented code would not be run."""
    code = r"^    (?:import |from |pm\.|\w+ = pm\.|paramagnet |pip |print\().*"
    assert not re.findall(code, prose_of(page), flags=re.MULTILINE)


def write_inputs(folder: Path) -> None:
    """What the pages say is there: a csv of one's own, new points, records of two machines."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(1200, 4)) @ rng.normal(size=(4, 12))
    np.savetxt(folder / "mine.csv", numbers, delimiter=",")
    np.savetxt(folder / "new.csv", numbers[:50], delimiter=",")
    for name in ("shop.csv", "hairpin.fa"):
        shutil.copy(ROOT / "examples" / name, folder)
    records = (ROOT / "results" / "toy_bit_c0.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (
        ("here.jsonl", records[:5]),
        ("there.jsonl", records[5:10]),
        ("results/mine.jsonl", records[:5]),
        ("from-there/results/mine.jsonl", records[5:10]),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(part), encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in pages_with("python") if page not in ELSEWHERE])
def test_python_runs(page, tmp_path):
    for module in NEEDED.get(page, ()):
        if module.isupper() and module not in os.environ:
            pytest.skip(f"{module} is not set")
        if not module.isupper() and importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    write_inputs(tmp_path)
    code = PREPARED.get(page, "") + "".join(block.text for block in in_language(page, "python"))
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "agg"}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for line in re.findall(r"^# (-?\d+\.\d.*)$", code, flags=re.MULTILINE):  # output below a block
        assert line in run.stdout
    for value in re.findall(r"# (-?\d+\.\d+)\.\.\.", code):
        assert value in run.stdout


@pytest.mark.parametrize("page", list(ELSEWHERE))
def test_python_that_is_run_elsewhere_is(page):
    (test,) = (ROOT / "tests").rglob(ELSEWHERE[page])
    assert Path(page).name in test.read_text(encoding="utf-8")


def commands_of(block: Block) -> list[str]:
    """One by one, without comments."""
    text = re.sub(r"\\\n\s*", "", block.text)
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    return [" ".join(line.removesuffix("&").split()) for line in lines if line]


def check_arguments(words: list[str], command: object) -> None:
    """Let the parser have the arguments, and run nothing."""
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    command.make_context("command", list(words))


def check_pip(words: list[str]) -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(content["project"]["optional-dependencies"])
    for target in words:
        match = re.fullmatch(r"(?:\.|paramagnet)(?:\[([\w,]+)\])?", target)
        assert match, target
        assert set((match[1] or "all").split(",")) <= extras, target


def check_dask(words: list[str]) -> None:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed")
    name, *arguments = words
    check_arguments(arguments, importlib.import_module(f"distributed.cli.dask_{name}").main)


def run_command(text: str) -> None:
    program, *words = shlex.split(text)
    if program == "srun":
        program, *words = (word for word in words if not word.startswith("--ntasks="))
    if program == "paramagnet":
        check_arguments(words, typer.main.get_command(app))
        if text not in PARSED_ONLY:
            result = CliRunner().invoke(app, words, catch_exceptions=False)
            assert result.exit_code == 0, result.output
    elif program == "pip":
        assert words[0] == "install"
        check_pip(words[1:])
    elif program == "dask":
        check_dask(words)
    elif words[:2] == ["-m", "studies.starts.run"]:
        assert program == "python"
        make_parser().parse_args(words[2:])
    elif program == "make":
        subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)
    else:
        assert text == "until test -s scheduler.json; do sleep 1; done", f"nothing runs {program}"


@pytest.mark.parametrize("page", pages_with("sh"))
def test_commands_run(page, tmp_path, monkeypatch):
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in in_language(page, "sh"):
        if shutil.which("sh"):
            subprocess.run(["sh", "-n"], input=block.text, text=True, check=True)
        for command in commands_of(block):
            run_command(command)


@pytest.mark.parametrize("page", pages_with("toml"))
def test_specifications_are_valid(page, tmp_path):
    write_inputs(tmp_path)
    for number, block in enumerate(in_language(page, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(block.text, encoding="utf-8")
        assert list(find_spec(path).runs())


def test_wrong_blocks_are_noticed():
    with pytest.raises(AssertionError, match="nothing runs curl"):
        run_command("curl -O mine.csv")
    with pytest.raises(Exception, match="--hiden-units"):
        run_command("paramagnet train mine.csv --hiden-units 3")
    with pytest.raises(AssertionError):
        run_command("pip install 'paramagnet[swep]'")
