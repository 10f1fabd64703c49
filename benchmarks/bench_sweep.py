"""Sweeps: runs per hour with one and two processes, and what sweep and store cost beside the runs.

    python benchmarks/bench_sweep.py [--runs 16] [--json FILE]

Exact runs of the toy set, 20 visible units: m = 20 (about a second each) and m = 10 (milliseconds, where
overhead shows). Runs per hour are those of the sweep from its first to its last record; processes are started
and kernels loaded by some runs before. The overhead is the processor time of the parent, which sends runs,
receives records, writes and syncs them, over that of the runs; required is less than 2 %, and 1.8 times as
many runs with two processes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.executors import Executor, LocalProcesses
from paramagnet.sweeps.spec import Run
from paramagnet.sweeps.store import Store
from paramagnet.sweeps.sweep import run_sweep
from ratio import write_json


def make_runs(n_hidden: int, count: int) -> tuple[list[Run], list[Run]]:
    """Runs for warming up, and runs to be timed; all different."""
    spec = replace(find_spec("toy_bit_c0"), n_hidden=(n_hidden,), trials=count)
    runs = list(spec.runs(part="paper"))
    return runs[-8:], runs[:count]


def time_sweep(executor: Executor, runs: list[Run], folder: Path) -> dict[str, float]:
    with Store(folder / f"{time.monotonic_ns()}.jsonl") as store:
        parent = time.process_time()
        result = run_sweep(runs, store, executor, sweep="bench")
        parent = time.process_time() - parent
        spent = sum(record.seconds for record in store.records())
    assert result.finished
    return {
        "runs_per_hour": 3600.0 * result.new / result.seconds,
        "seconds_per_run": spent / result.new,
        "overhead": parent / spent,
        "idle": 1.0 - spent / (executor.n_workers * result.seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--json")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n_hidden, count in ((20, options.runs), (10, 40 * options.runs)):
            warm, runs = make_runs(n_hidden, count)
            for n_workers in (1, 2):
                executor = LocalProcesses(n_workers)
                try:
                    time_sweep(executor, warm, Path(folder))
                    times = time_sweep(executor, runs, Path(folder))
                finally:
                    executor.shutdown()
                results[f"m = {n_hidden}, {n_workers} processes"] = times
                print(
                    f"m = {n_hidden}, {n_workers} processes: {times['runs_per_hour']:.0f} runs an hour, "
                    f"{1e3 * times['seconds_per_run']:.1f} ms a run, "
                    f"parent {100.0 * times['overhead']:.2f} %, workers idle {100.0 * times['idle']:.1f} %"
                )
            one, two = (results[f"m = {n_hidden}, {k} processes"]["runs_per_hour"] for k in (1, 2))
            print(f"m = {n_hidden}: {two / one:.2f} times as many with two")
    if options.json:
        write_json(options.json, results, "numpy", "numba", "loky")


if __name__ == "__main__":
    main()
