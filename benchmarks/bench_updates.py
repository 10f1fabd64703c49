"""Everyday updates against PyTorch, rbms and a former commit: one sweep, a hundred chains, any size.

    python benchmarks/bench_updates.py [--rounds 11] [--threads 1 0] [--only "784 x 500"] [--former COMMIT]
                                       [--rivals "torch in place" rbms] [--json FILE]

Every rival runs in a process of its own and sleeps while the others have their turns: threads of PyTorch go
on spinning for a while after their work, on the cores of whoever comes next. In a turn an update that is not
timed is followed by as many as take about 60 ms, whose mean counts; the ratios are those of the fastest
turns, and of the median ones in brackets. ``--threads 0`` stands for the default of each package. The
updates are those of `everyday_peers.py`: Adam for all but scikit-learn, which has plain ascent alone, and
batches of 100 points. Centred updates are compared with our own that are not centred ("uncentred"). rbms,
PyTorch and scikit-learn are needed: `make bench-peers` installs them in an environment of their own. With
``--only`` the rows that were measured replace those of FILE, and the others stay.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from typing import Any

from everyday_peers import RIVALS, Work
from ratio import write_json

ROOT = Path(__file__).parents[1]
SECONDS_PER_TURN, PAUSE = 0.06, 0.02
SIZES = ((20, 20), (100, 100), (784, 64), (784, 500), (3000, 3000))
WORKS = [
    *(Work(n, m, 100, 1) for n, m in SIZES),
    *(Work(n, m, 0, 1) for n, m in SIZES),
    *(Work(n, m, 100, 5) for n, m in SIZES[:-1]),
    *(Work(n, m, 1000, 1) for n, m in SIZES[:-1]),
    *(Work(n, m, 100, 40) for n, m in SIZES[:-1]),
    *(Work(n, m, 1000, 5) for n, m in SIZES[:-1]),
    *(Work(n, m, 1000, 40) for n, m in SIZES[:-1]),
    *(Work(n, m, 100, 1, centred=True) for n, m in SIZES[1:-1]),
]


def serve(name: str, n_threads: int | None) -> None:
    """Time updates as told by lines on standard input."""
    rival: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        if "work" in order:
            rival = None
            try:
                rival = RIVALS[name](Work(*order["work"]), n_threads)
            except NotImplementedError:
                print(json.dumps(None), flush=True)
                continue
            for _ in range(3):
                rival.update()
        else:
            rival.update()
        count = order.get("count", 1)
        start = time.perf_counter()
        for _ in range(count):
            rival.update()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)


class Side:
    """The process of one rival."""

    def __init__(self, name: str, n_threads: int, tree: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        command = [sys.executable, __file__, "--serve", name, "--threads", str(n_threads)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **order: Any) -> float | None:
        """The seconds of an update; None where the rival has no such update."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer: float | None = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def compare(sides: dict[str, Side], work: Work, rounds: int) -> dict[str, list[float]]:
    """The seconds of an update in every turn of each rival that can make it."""
    counts = {}
    for name, side in sides.items():
        seconds = side.ask(work=astuple(work))
        if seconds is not None:
            counts[name] = max(1, int(SECONDS_PER_TURN / seconds))
    turns: dict[str, list[float]] = {name: [] for name in counts}
    for index in range(rounds):
        for name in counts if index % 2 == 0 else reversed(counts):
            time.sleep(PAUSE)
            seconds = sides[name].ask(count=counts[name])
            assert seconds is not None
            turns[name].append(seconds)
    return turns


def keep(path: Path, results: dict[str, Any]) -> None:
    """Write what was measured so far: a table takes many minutes."""
    packages = "paramagnet", "torch", "rbms", "scikit-learn", "numpy", "numba"
    write_json(path, results, *packages)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 0], help="0 is the packages' default")
    parser.add_argument("--only", default="", help="updates whose name holds this")
    parser.add_argument("--former", help="a commit of this repository to compare with as well")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS)[3:])
    parser.add_argument("--json")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads[0] or None)
        return
    results: dict[str, Any] = {}
    if options.json and options.only and Path(options.json).is_file():
        results = json.loads(Path(options.json).read_text(encoding="utf-8"))["results"]
    results |= {"rounds": options.rounds, "former": options.former}
    with ExitStack() as stack:
        trees = {}
        if options.former:
            former = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "former"
            git = ["git", "-C", str(ROOT), "worktree"]
            subprocess.run([*git, "add", "--quiet", "--detach", str(former), options.former], check=True)
            stack.callback(subprocess.run, [*git, "remove", "--force", str(former)], check=True)
            trees["former"] = former
        names = ["paramagnet", "uncentred", *trees, *options.rivals]
        for n_threads in options.threads:
            title = f"{n_threads} thread{'s' if n_threads > 1 else ''}" if n_threads else "default threads"
            sides = {name: Side(name, n_threads, trees.get(name, ROOT)) for name in names}
            try:
                for work in (work for work in WORKS if options.only in str(work)):
                    turns = compare(sides, work, options.rounds)
                    best = {name: min(seconds) for name, seconds in turns.items()}
                    middle = {name: statistics.median(seconds) for name, seconds in turns.items()}
                    ratios = ", ".join(
                        f"{name} {best[name] / best['paramagnet']:.2f} "
                        f"({middle[name] / middle['paramagnet']:.2f})"
                        for name in best
                        if name != "paramagnet"
                    )
                    print(
                        f"{title}, {work}: {1e3 * best['paramagnet']:.3f} ms; times faster than {ratios}",
                        flush=True,
                    )
                    results[f"{work}, {title}"] = {"seconds": best, "median": middle}
                    if options.json:
                        keep(Path(options.json), results)
            finally:
                for side in sides.values():
                    side.end()


if __name__ == "__main__":
    main()
