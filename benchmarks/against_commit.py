"""The present code against a former commit: two processes alternated, after a control.

    python benchmarks/against_commit.py COMMIT [--rounds 30] [--only exact] [--json FILE]

The commit is checked out into a temporary worktree of git. Each side runs in a process of its own and waits
for its turn: in every round both run the same work, the order of the two reversed from round to round, and
the ratio is that of the fastest calls (processor time, one thread). As a control, two processes of the former
commit are compared in the same way: a difference between the commits that is no larger than the control's
says nothing. The work uses public names only, which both sides have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ratio import write_json

ROOT = Path(__file__).parents[1]
SECONDS_PER_TURN = 0.15


def exact_machine(n_visible: int, n_hidden: int) -> Any:
    import paramagnet as pm

    rng = np.random.default_rng(0)
    return pm.RBM(0.3 * rng.normal(size=(n_visible, n_hidden)), 0.0, -0.5)


def sums(function: Callable[[Any], Any], n_visible: int, n_hidden: int) -> Callable[[], Any]:
    return partial(function, exact_machine(n_visible, n_hidden))


def updates(
    n_visible: int, n_hidden: int, gradient: Any, n_points: int, batch: int | None
) -> Callable[[], Any]:
    import paramagnet as pm

    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(n_points, n_visible))
    steps = pm.training_steps(
        exact_machine(n_visible, n_hidden), data, epochs=10**6, gradient=gradient, optimizer=pm.Adam(1e-9),
        batch_size=batch, evaluate=(), rng=1,
    )  # fmt: skip
    next(steps)
    return steps.__next__


def works() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Every kind of work, as a function that prepares it and returns what is timed."""
    import paramagnet as pm

    place = pm if "exact_moments" in pm.__all__ else pm.exact  # version 0.1 has it at the top
    made: dict[str, Callable[[], Callable[[], Any]]] = {}
    for n, m in ((16, 16), (20, 20), (16, 32)):
        made[f"exact: ln Z, {n} x {m}"] = partial(sums, pm.log_partition, n, m)
        made[f"exact: moments, {n} x {m}"] = partial(sums, place.exact_moments, n, m)
    made["exact: update, 20 x 10, 400 points"] = lambda: updates(20, 10, pm.Exact(), 400, None)
    made["exact: update, 16 x 16, batches of 500"] = lambda: updates(16, 16, pm.Exact(), 10_000, 500)
    for k, chains in ((1, 100), (40, 100), (1, 1000)):
        made[f"sampled: update, PCD-{k}, {chains} chains, 784 x 500"] = lambda k=k, chains=chains: updates(
            784, 500, pm.PCD(chains, k, n_relax=1, n_threads=1), 1000, 100
        )
    made["theory: beta_max(0.5, c=-2)"] = lambda: lambda: pm.beta_max(0.5, hidden="bit", c=-2.0)
    made["theory: beta_max(0.5), gaussian-bit"] = lambda: (
        lambda: pm.beta_max(0.5, visible="gaussian", hidden="bit")
    )
    return made


def serve() -> None:
    """Run work as told by lines on standard input; answer with the seconds of its fastest call."""
    prepared: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared[name] = works()[name]()
            prepared[name]()
        best, end = float("inf"), time.perf_counter() + SECONDS_PER_TURN
        while True:
            start = time.process_time()
            prepared[name]()
            best = min(best, time.process_time() - start)
            if time.perf_counter() >= end:
                break
        print(json.dumps(best), flush=True)


class Side:
    """A process that imports the package from one tree."""

    def __init__(self, tree: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, name: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        return float(json.loads(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def compare(first: Side, second: Side, name: str, rounds: int) -> tuple[float, float]:
    """The seconds of the fastest call of each side."""
    best = [float("inf"), float("inf")]
    for i in range(rounds):
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            best[k] = min(best[k], (first, second)[k](name))
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="", help="work whose name begins so")
    parser.add_argument("--json")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.commit is None:
        parser.error("COMMIT is missing: the commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        former = Path(folder) / "former"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(former), options.commit], check=True)
        sides = {"former": Side(former), "control": Side(former), "present": Side(ROOT)}
        results: dict[str, Any] = {}
        try:
            print(
                f"{'':45s} {'former':>10s} {'control':>8s} {'present':>8s}   (control, present: former = 1)"
            )
            for name in (name for name in works() if name.startswith(options.only)):
                former_a, control = compare(sides["former"], sides["control"], name, options.rounds)
                former_b, present = compare(sides["former"], sides["present"], name, options.rounds)
                row = {"seconds": former_b, "control": control / former_a, "present": present / former_b}
                print(
                    f"{name:45s} {1e3 * former_b:7.3f} ms {row['control']:8.3f} {row['present']:8.3f}",
                    flush=True,
                )
                results[name] = row
        finally:
            for side in sides.values():
                side.end()
            subprocess.run([*git, "remove", "--force", str(former)], check=True)
    if options.json:
        write_json(
            options.json, {"commit": options.commit, "rounds": options.rounds, **results}, "numpy", "numba"
        )


if __name__ == "__main__":
    main()
