"""Sweeps that are killed, interrupted or told to end: nothing is lost, and the records are the same."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paramagnet.learning.state import load_checkpoint
from paramagnet.sweeps import execute as run_module
from paramagnet.sweeps.execute import execute
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import Store
from small_sweeps import SPECS, outcome, sweep

# Killing the whole sweep

# States are written at every look, in worker processes too.
OFTEN = """
from paramagnet.sweeps import executors; from paramagnet.sweeps import execute as run

prepare = executors._prepare_worker

def save_often(seconds):
    def prepare_worker(parent):
        prepare(parent)
        run.SAVE_SECONDS = run.LOOK_SECONDS = seconds

    run.SAVE_SECONDS = run.LOOK_SECONDS = seconds
    executors._prepare_worker = prepare_worker
"""
DRIVER = (
    OFTEN
    + """
import sys
from pathlib import Path
from paramagnet.sweeps.executors import local_executor
from paramagnet.sweeps.spec_files import read_spec
from paramagnet.sweeps.store import Store
from paramagnet.sweeps.sweep import run_sweep

if __name__ == "__main__":
    save_often(0.0)
    spec, jobs = read_spec(Path(sys.argv[1])), int(sys.argv[3])
    executor = local_executor(jobs)
    print("ready", flush=True)
    with Store(sys.argv[2]) as store:
        run_sweep(list(spec.runs()), store, executor, sweep=spec.name)
    executor.shutdown()
"""
)


def find_workers(folder: Path) -> list[int]:
    """The processes that were started for a sweep in a folder and are still there."""
    mark = f"PARAMAGNET_TEST={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "exact.toml").write_text(SPECS["exact"].replace("epochs = [3, 6]", "epochs = [6000]"))
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "exact.toml")]
    command += [str(tmp_path / "a.jsonl"), "2"]
    environment = os.environ | {"PARAMAGNET_TEST": str(tmp_path)}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        while len(list(tmp_path.glob(".state/[!.]*.safetensors"))) < 2:
            time.sleep(0.05)
            assert process.poll() is None
        assert len(find_workers(tmp_path)) >= 3
        process.kill()
    ends = time.monotonic() + 60.0
    while find_workers(tmp_path) and time.monotonic() < ends:
        time.sleep(0.2)
    assert not find_workers(tmp_path)


def kill_and_resume(folder: Path, text: str, jobs: int, moments: list[float]):
    """Sweeps in a process of their own, killed after so many seconds each; then one to the end.

    What came out, and what comes out of a sweep that nothing interrupts.
    """
    (folder / "driver.py").write_text(DRIVER)
    (folder / "tiny.toml").write_text(text)
    command = [sys.executable, "-W", "ignore", str(folder / "driver.py")]
    command += [str(folder / "tiny.toml"), str(folder / "a.jsonl"), str(jobs)]
    under_way = 0
    for seconds in moments:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(seconds)
            under_way += process.poll() is None
            process.kill()
    assert under_way >= 0.7 * len(moments)  # else it ended too early to show anything
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert sweep(parse_spec(text, "tiny"), folder / "whole" / "b.jsonl").finished
    return tuple(
        outcome(Store(path).records()) for path in (folder / "a.jsonl", folder / "whole" / "b.jsonl")
    )


def test_a_sweep_that_is_killed_goes_on(tmp_path):
    chance = random.Random(5)
    moments = [chance.uniform(0.05, 0.4) for _ in range(2)]
    killed, undisturbed = kill_and_resume(tmp_path, SPECS["sampled"], 1, moments)
    assert killed == undisturbed
    assert len(killed) == 12
    assert not list((tmp_path / ".state").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SPECS))
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_that_is_killed_ten_times_goes_on(name, jobs, tmp_path):
    chance = random.Random(7)
    start = 0.0 if jobs == 1 else 0.7  # of the workers
    moments = [start + chance.uniform(0.02, 0.8) for _ in range(10)]
    text = SPECS[name].replace("epochs = [3, 6]", "epochs = [3, 40]")
    killed, undisturbed = kill_and_resume(tmp_path, text, jobs, moments)
    assert killed == undisturbed
    assert len(killed) == 12


# Ctrl-C and SIGTERM

# Two runs of a second or two.
LONG = (
    SPECS["exact"]
    .replace("epochs = [3, 6]", "epochs = [6000]")
    .replace("trials = 2", "trials = 1")
    .replace("n_hidden = [2, 3]", "n_hidden = 2")
    .replace('rivals = ["xavier"]', "")
)
COMMAND = (
    OFTEN
    + """
import signal
from paramagnet.cli import main

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    save_often(0.1)
    main()
"""
)


@functools.cache
def long_outcome():
    return outcome([execute(run, sweep="long") for run in parse_spec(LONG, "long").runs()])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_the_states(jobs, number, tmp_path):
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "long.toml").write_text(LONG)
    command = [sys.executable, str(tmp_path / "command.py"), "reproduce", str(tmp_path / "long.toml")]
    command += ["--jobs", str(jobs), "--out", str(tmp_path / "out")]
    states = tmp_path / "out" / ".state"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        while sum(load_checkpoint(path).epoch > 0 for path in states.glob("[!.]*.safetensors")) < jobs:
            time.sleep(0.02)
            assert process.poll() is None
        sent = time.time()
        os.killpg(process.pid, number)  # all processes get it, as from a terminal or a batch system
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors.strip() == "interrupted: the same command goes on from here."  # and no word of semaphores
    before = {path.stem: load_checkpoint(path) for path in states.iterdir()}
    assert len(before) == jobs
    assert all(path.stat().st_mtime > sent - 0.05 for path in states.iterdir())
    assert all(0 < state.epoch < 6000 for state in before.values())
    store = Store(tmp_path / "out" / "long.jsonl")
    assert not store.records()
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert not list(states.iterdir())
    assert outcome(store.records()) == long_outcome()
    assert all(r.seconds > before[r.digest].seconds for r in store.records() if r.digest in before)


def test_runs_go_on_when_the_process_that_started_the_sweep_is_gone(tmp_path, monkeypatch):
    """As under nohup, after logging out."""
    monkeypatch.setattr(run_module, "LOOK_SECONDS", 0.0)
    parents = itertools.count(100)
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    assert sweep(parse_spec(SPECS["exact"], "exact"), tmp_path / "a.jsonl").finished


def test_what_a_crash_left_of_finished_runs_is_removed(tmp_path):
    spec = parse_spec(SPECS["exact"], "exact")
    sweep(spec, tmp_path / "a.jsonl")
    done = next(spec.runs())
    (tmp_path / ".state" / f"{done.digest}.safetensors").write_bytes(b"late")
    (tmp_path / ".state" / f".{done.digest}.safetensors.0123.tmp").write_bytes(b"half")
    (tmp_path / ".state" / "fedcba9876543210.safetensors").write_bytes(b"of another sweep")
    assert sweep(spec, tmp_path / "a.jsonl").new == 0
    assert [path.name for path in (tmp_path / ".state").iterdir()] == ["fedcba9876543210.safetensors"]
