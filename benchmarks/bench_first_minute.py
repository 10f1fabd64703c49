"""What a new user waits for: kernels compiled for the first time, and the answers of the command line.

    python benchmarks/bench_first_minute.py [--rounds 3] [--only PCD] [--against FOLDER] [--json FILE]

Each measurement is a process of its own with an empty folder for Numba's cache. The script prints processor
time, which other work on the machine disturbs less than the time on the clock, and how many functions were
compiled; of several rounds the smallest. ``--against`` is the ``src`` folder of another checkout, which is
measured in turn; what it cannot do is left out, and the functions that a former version compiled are counted
like ours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ratio import write_json

HERE = Path(__file__).parents[1] / "src"
Measure = Callable[[Path, str], tuple[float, int] | None]

PREPARED = """
import time
import numpy as np
import paramagnet as pm
from numba.core import event
import importlib
for name in ("learning.training", "sampling.annealing", "exact.sums"):
    try:
        importlib.import_module(f"paramagnet.{name}")
    except ImportError:
        pass  # a former version
class Count(event.Listener):
    n = 0
    def on_start(self, happened):
        self.n += happened.data["dispatcher"].py_func.__module__.startswith("paramagnet.")
    def on_end(self, happened):
        pass
count = Count()
event.register("numba:compile", count)
rbm = pm.initialize(20, 10, rng=0)
data = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 20))
start = time.process_time()
"""
REPORTED = "\nprint(time.process_time() - start, count.n)"

FIRST = {
    "exact training, 20 x 10": "pm.train(rbm, data, epochs=1, gradient=pm.Exact())",
    "PCD training, 20 x 10": "pm.train(rbm, data, epochs=1, gradient=pm.PCD())",
    "PCD training without likelihoods": "pm.train(rbm, data, epochs=1, gradient=pm.PCD(), evaluate=[])",
    "PCD training, no guard either": (
        "pm.train(rbm, data, epochs=1, gradient=pm.PCD(), evaluate=[], guard=False)"
    ),
    "exact log-likelihood": "pm.log_likelihood(rbm, data)",
    "Gibbs samples": "pm.sample(rbm, 100, rng=0)",
    "ln Z by mAIS": "pm.estimate_log_partition(rbm, n_samples=100, n_temperatures=10, rng=0)",
}
ANSWERS = ("--version", "--help", "beta-max --help", "train --help", "data --help")


def first_call(source: Path, code: str) -> tuple[float, int] | None:
    """Processor time of a first call, and the functions it compiled; None where it fails."""
    with tempfile.TemporaryDirectory() as cache:
        variables = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", PREPARED + code + REPORTED]
        run = subprocess.run(command, env=variables, capture_output=True, text=True, check=source == HERE)
    if run.returncode:
        return None
    seconds, n_compiled = run.stdout.split()
    return float(seconds), int(n_compiled)


def answer(source: Path, words: str) -> tuple[float, int] | None:
    """Processor time of a process of the command line."""
    code = (
        "import os, subprocess, sys\n"
        f"subprocess.run([sys.executable, '-m', 'paramagnet', *{words.split()}], stdout=subprocess.DEVNULL)\n"
        "times = os.times()\n"
        "print(times.children_user + times.children_system)"
    )
    variables = os.environ | {"PYTHONPATH": str(source)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    return float(run.stdout), 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="measurements whose name holds this")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sources = {"here": HERE} | ({"there": options.against.resolve()} if options.against else {})
    rows: list[tuple[str, Measure, str]] = [(name, first_call, code) for name, code in FIRST.items()]
    rows += [(f"paramagnet {words}", answer, words) for words in ANSWERS]
    results = {}
    for name, measure, what in (row for row in rows if options.only in row[0]):
        best: dict[str, tuple[float, int]] = {}
        for _ in range(options.rounds):
            for place, source in sources.items():
                found = measure(source, what)
                if found is not None:
                    best[place] = min(best.get(place, found), found)
        results[name] = {
            "seconds": {place: seconds for place, (seconds, _) in best.items()},
            "compiled": {place: n for place, (_, n) in best.items()},
        }
        shown = "   ".join(
            f"{place} {seconds:6.3f} s" + (f" ({n} compiled)" if n else "")
            for place, (seconds, n) in best.items()
        )
        print(f"{name:34s}{shown}", flush=True)
    if options.json:
        write_json(options.json, {"rounds": options.rounds, **results}, "numpy", "numba")


if __name__ == "__main__":
    main()
