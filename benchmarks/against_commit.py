"""The present code against a former commit: two processes alternated, after a control.

    python benchmarks/against_commit.py COMMIT [--rounds 30] [--only exact] [--json FILE]

The commit is checked out into a temporary worktree of git. Each side runs in a process of its own and waits
for its turn: in every round both run the same work, the order of the two reversed from round to round, and
the ratio is that of the fastest calls (processor time, one thread). As a control, two processes of the former
commit are compared in the same way: a difference between the commits that is no larger than the control's
says nothing. Where the control is off by more than 3 %, quote the interval that 80 % of the rounds lie in, of
the ratios of the fastest calls in each round. The work uses public names only, which both sides have.
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


def fresh_machine(n_visible: int, n_hidden: int) -> Any:
    """A machine as it is drawn for training."""
    import paramagnet as pm

    return pm.initialize(n_visible, n_hidden, hidden="bit", hidden_bias=-5.0, rng=0)


def updates(rbm: Any, gradient: Any, n_points: int, batch: int | None) -> Callable[[], Any]:
    import paramagnet as pm

    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(n_points, rbm.n_visible))
    steps = pm.training_steps(
        rbm, data, epochs=10**6, gradient=gradient, optimizer=pm.Adam(1e-9),
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
    made["exact: update, 20 x 10, 400 points"] = lambda: updates(exact_machine(20, 10), pm.Exact(), 400, None)
    made["exact: update, 16 x 16, batches of 500"] = lambda: updates(
        exact_machine(16, 16), pm.Exact(), 10_000, 500
    )
    for k, chains in ((1, 100), (40, 100), (1, 1000)):
        made[f"sampled: update, PCD-{k}, {chains} chains, 784 x 500, one thread"] = (
            lambda k=k, chains=chains: updates(
                exact_machine(784, 500), pm.PCD(chains, k, n_relax=1, n_threads=1), 1000, 100
            )
        )
    for n, m in ((20, 20), (100, 100), (784, 64), (784, 500)):
        for name, gradient in (
            ("CD-1", pm.CD(1, n_threads=1)),
            ("PCD-1, 100 chains", pm.PCD(100, 1, n_relax=1, n_threads=1)),
        ):
            made[f"sampled: update, {name}, {n} x {m}, fresh, one thread"] = (
                lambda n=n, m=m, gradient=gradient: updates(fresh_machine(n, m), gradient, 1000, 100)
            )
    for n, m in ((20, 20), (784, 500)):
        made[f"sampled: 40 sweeps, 1000 chains, {n} x {m}, fresh, one thread"] = lambda n=n, m=m: partial(
            pm.sample, fresh_machine(n, m), 1000, n_steps=40, rng=0, n_threads=1
        )
    made["sampled: mAIS, 20 temperatures, 1000 samples, 784 x 500, fresh, one thread"] = lambda: partial(
        pm.estimate_log_partition, fresh_machine(784, 500),
        n_samples=1000, n_temperatures=20, rng=1, n_threads=1,
    )  # fmt: skip
    made["theory: beta_max(0.5, c=-2)"] = lambda: lambda: pm.beta_max(0.5, hidden="bit", c=-2.0)
    made["theory: beta_max(0.5), gaussian-bit"] = lambda: (
        lambda: pm.beta_max(0.5, visible="gaussian", hidden="bit")
    )
    return made


def serve(works: dict[str, Callable[[], Callable[[], Any]]]) -> None:
    """Run work as told by lines on standard input; answer with the seconds of its fastest call."""
    prepared: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared[name] = works[name]()
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
    """A process that imports the package from one tree; ``script`` is told to ``--serve``."""

    def __init__(self, tree: Path, script: str = __file__) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, script, "--serve"],
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


def compare(first: Side, second: Side, name: str, rounds: int) -> tuple[list[float], list[float]]:
    """The seconds of the fastest call of each side in every round."""
    seconds: tuple[list[float], list[float]] = [], []
    for i in range(rounds):
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            seconds[k].append((first, second)[k](name))
    return seconds


def quantiles(former: list[float], other: list[float]) -> dict[str, float]:
    """Of the ratios of single rounds."""
    ratios = np.array(other) / np.array(former)
    return {f"{share} %": float(np.quantile(ratios, share / 100)) for share in (10, 25, 50, 75, 90)}


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
        serve(works())
        return
    if options.commit is None:
        parser.error("COMMIT is missing: the commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        former_tree = Path(folder) / "former"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(former_tree), options.commit], check=True)
        sides = {"former": Side(former_tree), "control": Side(former_tree), "present": Side(ROOT)}
        results: dict[str, Any] = {}
        try:
            print(
                f"{'':75s} {'former':>10s} {'control':>8s} {'present':>8s}   (former = 1; in brackets 10 % "
                "and 90 % of the rounds)"
            )
            for name in (name for name in works() if name.startswith(options.only)):
                row: dict[str, Any] = {"rounds": {}}
                for kind in ("control", "present"):
                    former_turns, turns = compare(sides["former"], sides[kind], name, options.rounds)
                    row |= {"seconds": min(former_turns), kind: min(turns) / min(former_turns)}
                    row["rounds"][kind] = quantiles(former_turns, turns)
                shown = (
                    f"{row[kind]:.3f} ({found['10 %']:.3f} to {found['90 %']:.3f})"
                    for kind, found in row["rounds"].items()
                )
                print(f"{name:75s} {1e3 * row['seconds']:7.3f} ms {' '.join(shown)}", flush=True)
                results[name] = row
        finally:
            for side in sides.values():
                side.end()
            subprocess.run([*git, "remove", "--force", str(former_tree)], check=True)
    if options.json:
        write_json(
            options.json, {"commit": options.commit, "rounds": options.rounds, **results}, "numpy", "numba"
        )


if __name__ == "__main__":
    main()
