"""The line that says that kernels are compiled: on a terminal, where no cache has them, and nowhere else."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from rich.progress import TextColumn

from paramagnet.cli import compile_bar
from paramagnet.cli.compile_bar import CompileBar, LiveProgress
from paramagnet.kernels import int16_sweeps, jit, passes
from paramagnet.kernels.compiling import Compilation, on_compile, report
from tests.cli.test_console import on_terminal

LINE = "compiling kernels for binarization, once on this machine (1 of "
COMMAND = ("data", "binarize", "grey.npy", "out.npy", "--per", "point")


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "grey.npy", np.random.default_rng(0).integers(256, size=(20, 16), dtype=np.uint8))
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals here")
def test_the_first_process_says_that_it_compiles_and_the_second_does_not(folder):
    options = {"columns": 120, "TERM": "xterm", "NUMBA_CACHE_DIR": str(folder / "cache")}
    for shown in (True, False):
        text, code = on_terminal(folder, *COMMAND, **options)
        assert code == 0, text
        assert (LINE in text) is shown
        assert "data: out.npy" in text


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals here")
def test_json_comes_without_the_line(folder):
    command = ("data", "info", "grey.npy", "--binarize", "otsu", "--per", "point", "--json")
    text, code = on_terminal(folder, *command, TERM="xterm", NUMBA_CACHE_DIR=str(folder / "cache"))
    assert code == 0
    assert "compiling" not in text
    assert any((folder / "cache").rglob("otsu.byte_thresholds*"))  # it was compiled


LOGGED = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
import numpy as np
from paramagnet.kernels.compiling import on_compile
seen = []
grey = np.random.default_rng(0).integers(256, size=(20, 16), dtype=np.uint8)
with on_compile(seen.append):
    import paramagnet as pm
    for _ in range(2):
        pm.fit_binarizer(grey, "otsu", per="point").apply(grey)
print(*((c.module, c.n_done, c.n_total, c.running, c.kept) for c in seen), sep="\\n")
"""


def test_python_is_told_by_a_callback_and_once_by_the_log(folder):
    variables = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    runs = [
        subprocess.run(
            [sys.executable, "-c", LOGGED], capture_output=True, text=True, env=variables, check=True
        )
        for _ in range(2)
    ]
    seen = [eval(line) for line in runs[0].stdout.splitlines()]
    module, n_done, n_total, running, kept = seen[-1]
    assert (module, running, kept) == ("paramagnet.kernels.otsu", False, True)
    assert n_done == n_total == len(seen) // 2
    assert seen[0] == (module, 0, n_total, True, True)
    logged = [line for line in runs[0].stderr.splitlines() if line.startswith("paramagnet.kernels.compiling")]
    assert len(logged) == 1
    assert "compiling kernels for binarization, once on this machine" in logged[0]
    assert (runs[1].stdout.strip(), runs[1].stderr) == ("", "")


COLLECTED = """
import gc, sys
import numpy as np
import paramagnet as pm
from paramagnet.kernels.compiling import on_compile
seen = []
def listen(step):
    seen.append(gc.isenabled())
    if sys.argv[1] == "interrupted" and step.n_done == 1:
        raise KeyboardInterrupt
if sys.argv[1] == "off":
    gc.disable()
grey = np.random.default_rng(0).integers(256, size=(20, 16), dtype=np.uint8)
with on_compile(listen):
    try:
        pm.fit_binarizer(grey, "otsu", per="point").apply(grey)
    except KeyboardInterrupt:
        print("interrupted")
print(any(seen[:-1]), seen[-1], gc.isenabled())
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("on", "False True True"),
        ("off", "False False False"),
        ("interrupted", "interrupted\nFalse True True"),
    ],
)
def test_garbage_is_not_collected_while_kernels_compile(folder, how, said):
    variables = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", COLLECTED, how], capture_output=True, text=True, env=variables, check=True
    )
    assert run.stdout.strip() == said


def test_functions_that_are_written_out_in_a_kernel_count_with_it():
    """`run_block` calls `draw_layer`, which calls two functions more; none of them is compiled on its own."""
    assert jit._count_callees(int16_sweeps.run_block) == 1
    assert jit._count_callees(passes.move_weights) == 1 + sum(not p.overloads for p in passes_of_weights())


def passes_of_weights():
    names = ("_centre", "_copy", "_find_direction", "_move", "_move_and_shrink", "_sum_changes")
    return [getattr(passes, name) for name in names]


def test_what_the_line_says():
    step = Compilation("paramagnet.kernels.partition", 2, 7, True, True)
    assert str(step) == "compiling kernels for exact sums, once on this machine"
    unkept = Compilation("paramagnet.kernels.something", 2, 7, True, False)
    assert str(unkept) == "compiling kernels, in every process: no cache folder is writable"


def test_a_listener_hears_nothing_after_its_block():
    seen = []
    step = Compilation("paramagnet.kernels.partition", 0, 1, True, True)
    with on_compile(seen.append):
        report(step)
    report(step)
    assert seen == [step]


def test_the_bar_interrupts_another_one_and_gives_the_terminal_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    monkeypatch.setattr(
        compile_bar, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=100)
    )
    training = LiveProgress(TextColumn("epoch 3"))
    training.add_task("")
    training.start()
    bar = CompileBar()
    steps = [(0, True), (0, True), (1, True), (2, False)]
    for n_done, running in steps:
        bar.show(Compilation("paramagnet.kernels.sampling", n_done, 2, running, True))
        drawn = list(compile_bar._drawn)
        assert len(drawn) == 1
        assert (drawn == [training]) is (not running)
    training.stop()
    assert not compile_bar._drawn
    text = screen.getvalue()
    assert "(1 of 2)" in text
    assert "(2 of 2)" in text
    assert text.rindex("epoch 3") > text.rindex("(2 of 2)")


def test_kernels_of_others_are_not_counted():
    from numba import njit

    seen = []
    with on_compile(seen.append):
        assert njit(lambda x: x + 1)(1) == 2
    assert not seen
