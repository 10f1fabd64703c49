"""What everyday updates must not cost: threads where one is enough, waiting threads, memory.

    python benchmarks/everyday_limits.py [--only threads|idle|memory] [--json FILE]

- threads: updates a second of a small machine (64 x 100, PCD-1, batches of 100) with default threads and with
  one, in turn.
- idle: processor time of the process in a pause of a second after updates that are shared between threads
  (784 x 500): helpers that wait by looking would take a second each.
- memory: the peak of a process that trains 10,000 x 5,000 units (some updates of PCD-1, Adam, 100 chains, 200
  points of one byte a number), less what it takes before the machine is made, over the float64 parameters.
  The guard checks the start and two of the updates. It needs 3 GB and a minute or two.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np

from ratio import interleave, write_json

UPDATES, ROUNDS = 20, 60  # of a turn, and turns: on a busy machine a long turn is always interrupted


def steps_of(n_visible: int, n_hidden: int, n_threads: int | None) -> Any:
    import paramagnet as pm

    rng = np.random.default_rng(0)
    data = (rng.random((1000, n_visible)) < 0.3).astype(np.float64)
    steps = pm.training_steps(
        pm.initialize(n_visible, n_hidden, visible="bit", hidden="bit", rng=0), data, epochs=10**6,
        gradient=pm.PCD(100, 1, n_relax=5, n_threads=n_threads), optimizer=pm.Adam(1e-6), batch_size=100,
        evaluate=(), rng=0,
    )  # fmt: skip
    next(steps)
    return steps


def threads() -> dict[str, float]:
    """Updates a second."""
    calls = {}
    for name, n_threads in (("default", None), ("one", 1)):
        steps = steps_of(64, 100, n_threads)
        calls[name] = lambda steps=steps: [next(steps) for _ in range(UPDATES)]
    return {name: UPDATES / seconds for name, seconds in interleave(calls, rounds=ROUNDS).items()}


def idle() -> dict[str, float]:
    """Processor seconds in a pause of one second, and over the clock while updates are made."""
    steps = steps_of(784, 500, None)
    start, clock = time.process_time(), time.perf_counter()
    for _ in range(200):
        next(steps)
    busy = (time.process_time() - start) / (time.perf_counter() - clock)
    start = time.process_time()
    time.sleep(1.0)
    return {"in a pause of one second": time.process_time() - start, "threads while updating": busy}


def memory() -> dict[str, float]:
    """Peak over the parameters."""
    code = """
import resource
import numpy as np
import paramagnet as pm
from paramagnet.learning import training
n, m = 10_000, 5_000
small = pm.initialize(200, 100, visible="bit", hidden="bit", rng=0)
data = (np.random.default_rng(0).random((200, n)) < 0.3).astype(np.int8)
few = dict(epochs=2, optimizer=pm.Adam(1e-4), batch_size=100, evaluate=[], rng=0)
few["guard"] = pm.Guard(every=2, n_temperatures=10)  # it checks the start and two updates
pm.train(small, data[:, :200], gradient=pm.PCD(100, 1, n_relax=2), **few)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rbm = pm.initialize(n, m, visible="bit", hidden="bit", rng=0)
drawn = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pm.train(rbm, data, gradient=pm.PCD(100, 1, n_relax=2), **few)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = 8 * (n * m + n + m) / 1024
print((drawn - before) / size, (after - before) / size)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    drawn, trained = map(float, run.stdout.split())
    return {"drawing the machine": drawn, "training it": trained}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    works = {work.__name__: work for work in (threads, idle, memory)}
    parser.add_argument("--only", choices=tuple(works))
    parser.add_argument("--json")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, work in works.items():
        if options.only in (None, name):
            results[name] = work()
            print(name, {key: round(value, 3) for key, value in results[name].items()}, flush=True)
    if options.json:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
