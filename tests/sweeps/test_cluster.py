"""Sweeps on a Dask cluster: the same records, whatever happens to its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor

import pytest
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.sweeps import cluster as cluster_module
from paramagnet.sweeps.execute import clear_states, state_file
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import Store
from small_sweeps import EXACT, SPECS, outcome, sweep, whole

distributed = pytest.importorskip("distributed")
from paramagnet.sweeps.cluster import DaskWorkers  # noqa: E402


@pytest.fixture(scope="module")
def address():
    """A scheduler with two worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def workers(address):
    executor = DaskWorkers(address)
    yield executor
    executor.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SPECS))
def test_a_cluster_gives_the_same_records(name, workers, tmp_path):
    assert workers.n_workers == 2
    spec = parse_spec(SPECS[name], name)
    assert sweep(spec, tmp_path / "a.jsonl", workers).finished
    assert outcome(Store(tmp_path / "a.jsonl").records()) == whole(name)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]  # no folder for states


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(workers, tmp_path):
    spec = parse_spec(EXACT.replace("trials = 2", "trials = 20"), "exact")
    killed = []

    def kill(progress):
        if progress.new >= 25 * (len(killed) + 1) and len(killed) < 2:
            # Not one of those killed before, nor their successors.
            victim = next(iter(sorted(workers._client.run(os.getpid).values())))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    result = sweep(spec, tmp_path / "a.jsonl", workers, callback=kill)
    assert len(set(killed)) == 2
    assert result.finished
    records = Store(tmp_path / "a.jsonl").records()
    assert len({record.digest for record in records}) == len(records) == 120
    assert sweep(spec, tmp_path / "b.jsonl").finished
    assert outcome(records) == outcome(Store(tmp_path / "b.jsonl").records())


@pytest.mark.slow
def test_states_of_finished_runs_are_cleared_where_the_workers_are(workers, tmp_path):
    spec = parse_spec(EXACT, "exact")
    states = tmp_path / "states"
    states.mkdir()
    for run in spec.runs():
        state_file(states, run).write_bytes(b"rubbish")
    assert sweep(spec, tmp_path / "a.jsonl", workers, states=states).finished
    assert not list(states.iterdir())
    workers.everywhere(clear_states, str(tmp_path / "nowhere"), frozenset("a"))  # no error


@pytest.mark.slow
def test_an_interruption_reaches_the_workers(workers, tmp_path):
    spec = parse_spec(EXACT.replace("epochs = [3, 6]", "epochs = [20000]"), "long")

    def interrupt():
        time.sleep(3.0)
        signal.raise_signal(signal.SIGINT)

    import threading

    began = time.monotonic()
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        sweep(spec, tmp_path / "a.jsonl", workers, states=tmp_path / "states")
    assert time.monotonic() - began < 15.0
    assert {path.suffix for path in (tmp_path / "states").iterdir()} == {".safetensors"}


@pytest.mark.slow
def test_the_command_runs_on_a_cluster(address, tmp_path):
    (tmp_path / "exact.toml").write_text(EXACT)
    command = [
        "reproduce",
        str(tmp_path / "exact.toml"),
        "--scheduler",
        address,
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "exact: 12 of 12 runs, 12 new in " in result.output
    assert outcome(Store(tmp_path / "out" / "exact.jsonl").records()) == whole("exact")


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_an_error_and_the_records_stay(tmp_path):
    script = (
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(1, processes=False, protocol='tcp', dashboard_address=None)\n"
        "    print(cluster.scheduler_address, flush=True)\n"
        "    input()\n"
    )
    (tmp_path / "scheduler.py").write_text(script)
    command = [sys.executable, str(tmp_path / "scheduler.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        workers = DaskWorkers(process.stdout.readline().strip())
        spec = parse_spec(EXACT.replace("trials = 2", "trials = 200"), "exact")

        def kill(progress):
            if progress.new >= 10:
                process.kill()

        try:
            with pytest.raises(RuntimeError, match=r"The scheduler at tcp.* is gone\."):
                sweep(spec, tmp_path / "a.jsonl", workers, callback=kill)
        finally:
            workers.shutdown()
    assert len(Store(tmp_path / "a.jsonl").records()) >= 10


def test_workers_that_die_are_a_broken_executor():
    from concurrent.futures import Future

    executor = DaskWorkers.__new__(DaskWorkers)
    executor._distributed = distributed
    inner: Future[int] = Future()
    outer: Future[int] = Future()
    error = distributed.scheduler.KilledWorker("key", None, 3)
    inner.set_exception(error)
    executor._pass_on(inner, outer)
    assert isinstance(outer.exception(), BrokenExecutor)


def test_an_address_that_does_not_answer_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    command = ["reproduce", "toy", "--out", str(tmp_path), "--scheduler"]
    for address in ("tcp://127.0.0.1:1", "nonsense://x:1", str(tmp_path / "missing.json")):
        with pytest.raises(ValueError, match="`--scheduler` must be the address of a Dask scheduler"):
            CliRunner().invoke(app, [*command, address], catch_exceptions=False)


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r'`--scheduler` needs Dask: pip install "\.\[sweep\]"'):
        DaskWorkers("tcp://127.0.0.1:1")


def test_jobs_and_scheduler_exclude_each_other(tmp_path):
    command = ["reproduce", "toy", "--out", str(tmp_path), "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"]
    with pytest.raises(ValueError, match="`--jobs` is for this machine"):
        CliRunner().invoke(app, command, catch_exceptions=False)
