"""Commands that are killed or told to end, again and again: they go on, and the results are the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.cli.interruptions import interruptible
from paramagnet.learning.state import load_checkpoint
from paramagnet.rbm import RBM
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import Store
from small_sweeps import SPECS, outcome, sweep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

# The command line, with a state on the disk after every update, in worker processes too. `train` waits after
# every update, so that on no machine it ends before the last signal.
OFTEN = """
import signal
import time
from paramagnet.cli import main, training_run
from paramagnet.sweeps import executors; from paramagnet.sweeps import execute as run
from paramagnet.learning import training

prepare = executors._prepare_worker


class Often(training.Checkpoint):
    def __init__(self, path):
        super().__init__(path, seconds=0.0)


class Slow(training_run.TrainingBar):
    def show(self, state):
        super().show(state)
        time.sleep(0.002)


def prepare_worker(parent):
    prepare(parent)
    run.SAVE_SECONDS = run.LOOK_SECONDS = 0.0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    training.Checkpoint = Often
    training_run.TrainingBar = Slow
    run.SAVE_SECONDS = run.LOOK_SECONDS = 0.0
    executors._prepare_worker = prepare_worker
    main()
"""


def look(paths):
    """What tells whether files were written."""
    return {path: path.stat().st_mtime_ns for path in paths()}


def interrupt(words, number, paths, seconds):
    """Run a command, send it a signal some time after it wrote a file, and return code and error messages."""
    driver, said = Path("driver.py"), Path("said.txt")
    driver.write_text(OFTEN)
    before, ends = look(paths), time.monotonic() + 120.0
    command = [sys.executable, "-W", "ignore", str(driver), *words]
    streams = {"stdout": subprocess.DEVNULL, "start_new_session": True}
    # A file, not a pipe: worker processes live for some seconds after the kill of their parent.
    with said.open("w") as errors, subprocess.Popen(command, stderr=errors, **streams) as process:
        try:
            while look(paths) == before:
                assert process.poll() is None, said.read_text()
                assert time.monotonic() < ends
                time.sleep(0.005)
            time.sleep(seconds)
            assert process.poll() is None, "it ended too early to show anything"
            if number == signal.SIGKILL:
                process.kill()
            else:
                os.killpg(process.pid, number)  # all processes get it, as from a batch system
            process.wait(timeout=60)
        finally:
            process.kill()
    return process.returncode, said.read_text()


def run(words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def signals_of(name, count):
    return [signal.SIGKILL, signal.SIGTERM] if name == "both" else [signal.Signals[name]] * count


def cases(fast, *others):
    """One case with two signals in the fast tests, all of them with twenty in the slow ones."""
    slow = [(name, 20, case) for name in ("SIGKILL", "SIGTERM") for case in (fast, *others)]
    return [("both", 2, fast), *(pytest.param(*values, marks=pytest.mark.slow) for values in slow)]


GRADIENTS = {"exact": ["--exact"], "pcd": ["--pcd", "--chains", "20", "--steps", "2"]}


@pytest.mark.parametrize(("name", "count", "gradient"), cases("pcd", "exact"))
def test_training_goes_on_after_every_signal(name, count, gradient, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("spins.npy", np.random.default_rng(0).choice([-1, 1], size=(40, 6)))
    words = [
        "train",
        "spins.npy",
        "--hidden-units",
        "3",
        "--epochs",
        "1500",
        "--batch-size",
        "15",
        "--seed",
        "1",
    ]
    words += [*GRADIENTS[gradient], "--evaluate-every", "100", "--out"]
    chance, checkpoint = random.Random(count), tmp_path / "model.checkpoint.safetensors"
    updates = []
    for number in signals_of(name, count):
        resume = ["--resume"] if updates else []
        code, said = interrupt(
            [*words, "model.safetensors", *resume],
            number,
            lambda: [checkpoint] if checkpoint.exists() else [],
            chance.uniform(0.0, 0.3),
        )
        if number == signal.SIGTERM:
            assert code == 143, said
            assert f"Go on with: paramagnet {' '.join(words)} model.safetensors --resume" in said
        updates.append(load_checkpoint(checkpoint).update)
    assert updates == sorted(updates)
    assert len(set(updates)) > 0.9 * count
    assert updates[-1] < 4500  # of all, so that each signal came during training
    run([*words, "model.safetensors", "--resume"])
    run([*words, "whole.safetensors"])
    assert Path("model.safetensors").read_bytes() == Path("whole.safetensors").read_bytes()
    states = [load_checkpoint(f"{kind}.checkpoint.safetensors") for kind in ("model", "whole")]
    assert np.array_equal(states[0].history.log_likelihood, states[1].history.log_likelihood)
    assert len(states[0].history) == 16
    assert states[0].rng_state == states[1].rng_state
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize(("name", "count", "case"), cases(("sampled", 1), ("exact", 2)))
def test_reproducing_goes_on_after_every_signal(name, count, case, tmp_path, monkeypatch):
    kind, jobs = case
    if jobs > 1:
        pytest.importorskip("loky")
    monkeypatch.chdir(tmp_path)
    epochs = 40 if name == "both" else 300
    text = SPECS[kind].replace("epochs = [3, 6]", f"epochs = [3, {epochs}]")
    Path("tiny.toml").write_text(text)
    words = ["reproduce", "tiny.toml", "--out", "out", "--no-report", "--jobs", str(jobs)]
    out, chance = Path("out"), random.Random(count)

    def paths():
        return [*out.glob("*.jsonl"), *out.glob(".state/[!.]*.safetensors")]

    for number in signals_of(name, count):
        code, said = interrupt(words, number, paths, chance.uniform(0.0, 0.3))
        if number == signal.SIGTERM:
            assert code == 143, said
            assert said.strip() == "interrupted: the same command goes on from here."
    run([*words[:-1], "1"])
    assert sweep(parse_spec(text, "tiny"), Path("whole") / "tiny.jsonl").finished
    killed, whole = (outcome(Store(folder / "tiny.jsonl").records()) for folder in (out, Path("whole")))
    assert killed == whole
    assert len(whole) == 12
    assert not list((out / ".state").iterdir())


class Finalized:
    """An object in whose finalizer a signal arrives: what is raised there, Python drops."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)
        time.sleep(0.001)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_not_lost_in_a_callback(number, code, capsys):
    former = signal.signal(signal.SIGINT, signal.default_int_handler), signal.getsignal(signal.SIGTERM)
    hook = sys.unraisablehook
    ended = []

    def work():
        with interruptible(lambda: "saved"):
            for _ in range(3):
                Finalized(number)
            ended.append(False)
            time.sleep(20.0)
            ended.append(True)

    try:
        with pytest.raises(typer.Exit) as exit_:
            work()
    finally:
        signal.signal(signal.SIGINT, former[0])
    assert exit_.value.exit_code == code
    assert ended == [False]
    assert capsys.readouterr().err == "saved\n"
    assert signal.getsignal(signal.SIGTERM) is former[1]
    assert sys.unraisablehook is hook
    time.sleep(0.1)  # nothing is sent any more


LOST = "interrupted: the runs are lost; with `--out FOLDER` they are kept, and the same command goes on."


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("evaluate", signal.SIGTERM),
        ("sample", signal.SIGTERM),
        ("compare-out", signal.SIGTERM),
        pytest.param("compare", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("evaluate", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("sample", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("compare-out", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_other_commands_end_with_a_word(command, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    RBM(0.01 * rng.normal(size=(60, 50)), 0, 0).save("model.safetensors")
    np.save("spins.npy", rng.choice([-1, 1], size=(40, 60)))
    again = "interrupted: nothing was written; the same command starts anew."
    words, expected = {
        "evaluate": (
            ["evaluate", "model.safetensors", "spins.npy", "--temperatures", "1000000", "--seed", "1"],
            again,
        ),
        "sample": (["sample", "model.safetensors", "--out", "s.npy", "--steps", "100000000"], again),
        "compare": (
            ["compare", "spins.npy", "--hidden-units", "2", "--epochs", "100000"],
            LOST,
        ),
        "compare-out": (
            ["compare", "spins.npy", "--hidden-units", "2", "--epochs", "100000", "--out", "runs"],
            "interrupted: the same command goes on from here.",
        ),
    }[command]
    states = tmp_path / "runs" / ".state"
    # There is no file to wait for; a sign that the work has begun is the first look at the signals.
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from paramagnet.cli import interruptions, main\n"
        "from paramagnet.sweeps import execute as run\n"
        "run.SAVE_SECONDS = run.LOOK_SECONDS = 0.0\n"
        "begin = interruptions._sigterm_raises\n"
        "def begun():\n"
        "    print('begun', flush=True)\n"
        "    return begin()\n"
        "interruptions._sigterm_raises = begun\n"
        "main()\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, *words], **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            while command == "compare-out" and not any(
                load_checkpoint(path).update for path in states.glob("[!.]*.safetensors")
            ):
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(0.5)  # the handler is there, and the work is under way
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + number, said
    assert said.strip() == expected
    files = {path.name for path in tmp_path.iterdir()} - {"model.safetensors", "spins.npy"}
    assert files == ({"runs"} if command == "compare-out" else set())
    if command == "compare-out":
        (state,) = states.glob("*.safetensors")
        assert load_checkpoint(state).update > 0
