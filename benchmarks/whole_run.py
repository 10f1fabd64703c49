"""A whole run of the paper's MNIST table against a former commit: training, and mAIS at the paper's effort.

    python benchmarks/whole_run.py train [--gain 1] [--c -5] [--seconds 240]
    python benchmarks/whole_run.py compare COMMIT [--rounds 5] [--threads 1] [--json FILE]

A run of `mnist_bit` (784 x 500 units, 1000 chains, 40 sweeps an update, 3000 points, 100 epochs of 30
updates) takes a quarter of an hour and more. ``train`` makes one and keeps its machines of some epochs in a
folder of their own (``--folder``, by default ``whole_run`` beside the cache of data); asked again, it goes on
where the seconds were over. ``compare`` then times a fraction of the run with either commit, each in a
process of its own, in turn: from every machine that was kept `UPDATES` updates, after `RELAXED` sweeps, and
`TEMPERATURES` of the 3000 temperatures of mAIS with 4500 samples. The whole run follows from it: the seconds
of an update, interpolated between the epochs, times 3000, and three estimates of ln Z with 4500 samples and
3000 temperatures. The cheaper estimates between the paper's epochs (13 times 500 samples, 500 temperatures)
are left out: they take a hundredth. One line more times 40 sweeps of 1000 chains alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ratio import write_json

ROOT = Path(__file__).parents[1]
EPOCHS = (0, 1, 3, 10, 20, 40, 70, 100)
UPDATES, RELAXED, TEMPERATURES = 3, 200, 12
N_UPDATES, N_TEMPERATURES, N_SAMPLES, N_ESTIMATES = 3000, 3000, 4500, 3


def train(folder: Path, gain: float, c: float, seconds: float) -> None:
    """Train the run as far as the seconds go; machines of some epochs become files."""
    from paramagnet.learning.state import load_checkpoint
    from paramagnet.learning.training import training_steps
    from paramagnet.reproduction.paper_specs import find_spec
    from paramagnet.sweeps.run_points import load_points
    from paramagnet.sweeps.seeds import learning_seed, weight_seed
    from paramagnet.sweeps.starts import start_machine

    runs = find_spec("mnist_bit").runs(trials=1)
    run = next(run for run in runs if run.gain == gain and run.hidden_bias == c)
    points, _ = load_points(run)
    folder.mkdir(parents=True, exist_ok=True)
    state_file, deadline = folder / "state.safetensors", time.monotonic() + seconds
    drawn = start_machine(
        run.scheme, points, run.n_hidden, gain=gain, rng=weight_seed(run), visible=run.visible,
        hidden=run.hidden, hidden_bias=c,
    )  # fmt: skip
    start: Any = load_checkpoint(state_file) if state_file.is_file() else drawn.rbm
    gradient = replace(run.learning.make_gradient(), n_threads=None)
    steps = training_steps(
        start, points, epochs=max(EPOCHS), gradient=gradient, optimizer=run.learning.make_optimizer(),
        batch_size=run.learning.batch_size, evaluate=(), rng=learning_seed(run),
    )  # fmt: skip
    for state in steps:
        if state.batch == 0 and state.epoch in EPOCHS:
            rbm = state.rbm
            np.savez(
                folder / f"epoch_{state.epoch}.npz", weights=rbm.weights, visible_bias=rbm.visible_bias,
                hidden_bias=rbm.hidden_bias, points=points,
            )  # fmt: skip
        if time.monotonic() > deadline or state.epoch == max(EPOCHS):
            state.save(state_file)
            print(f"epoch {state.epoch}, batch {state.batch}", flush=True)
            return


def prepare(folder: Path, epoch: int, n_threads: int) -> dict[str, Any]:
    """What is timed with the machine of one epoch, by public names that both commits have."""
    import paramagnet as pm

    with np.load(folder / f"epoch_{epoch}.npz") as file:
        arrays = dict(file)
    rbm = pm.RBM(
        arrays["weights"], arrays["visible_bias"], arrays["hidden_bias"], visible="spin", hidden="bit"
    )
    steps = pm.training_steps(
        rbm, arrays["points"], epochs=10**6, gradient=pm.PCD(1000, 40, n_relax=RELAXED, n_threads=n_threads),
        optimizer=pm.Adam(1e-4), batch_size=100, evaluate=(), rng=1,
    )  # fmt: skip
    next(steps)
    relaxed = pm.sample(rbm, 1000, n_steps=RELAXED, rng=1, n_threads=n_threads)

    def anneal() -> object:
        return pm.estimate_log_partition(
            rbm, n_samples=N_SAMPLES, n_temperatures=TEMPERATURES, rng=1, n_threads=n_threads
        )

    def sweep() -> object:
        return pm.sample(rbm, 1000, n_steps=40, start=relaxed, rng=1, n_threads=n_threads)

    return {"update": steps.__next__, "temperature": anneal, "sweeps": sweep}


def serve(folder: Path, n_threads: int) -> None:
    """Time work as told by lines on standard input; one thread by its processor time."""
    prepared: tuple[int, dict[str, Any]] | None = None
    clock = time.process_time if n_threads == 1 else time.perf_counter
    for line in sys.stdin:
        epoch, kind = json.loads(line)
        if prepared is None or prepared[0] != epoch:
            prepared = epoch, prepare(folder, epoch, n_threads)
            for call in prepared[1].values():
                call()
        count = UPDATES if kind == "update" else 1
        start = clock()
        for _ in range(count):
            prepared[1][kind]()
        seconds = (clock() - start) / (TEMPERATURES if kind == "temperature" else count)
        print(json.dumps(seconds), flush=True)


class Side:
    """A process that imports the package from one tree."""

    def __init__(self, tree: Path, folder: Path, n_threads: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "serve", "--folder", str(folder), "--threads", str(n_threads)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, epoch: int, kind: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([epoch, kind]), file=self._process.stdin, flush=True)
        return float(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def whole(of_epochs: dict[int, dict[str, float]]) -> dict[str, float]:
    """The seconds of a whole run from those of its parts."""
    epochs = sorted(of_epochs)
    middles = (np.arange(max(EPOCHS)) + 0.5).tolist()
    update = float(np.interp(middles, epochs, [of_epochs[e]["update"] for e in epochs]).mean())
    late = [of_epochs[e]["temperature"] for e in (40, 70, 100) if e in of_epochs]
    temperature = sum(late or [of_epochs[epochs[-1]]["temperature"]]) / max(len(late), 1)
    training, annealing = N_UPDATES * update, N_ESTIMATES * N_TEMPERATURES * temperature
    return {"training": training, "annealing": annealing, "whole": training + annealing}


def compare(commit: str, folder: Path, n_threads: int, rounds: int, epochs: list[int]) -> dict[str, Any]:
    """Both commits in turn; the fastest call of each counts."""
    found: dict[str, dict[int, dict[str, float]]] = {"former": {}, "present": {}}
    with ExitStack() as stack:
        former = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "former"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(former), commit], check=True)
        stack.callback(subprocess.run, [*git, "remove", "--force", str(former)], check=True)
        sides = {"former": Side(former, folder, n_threads), "present": Side(ROOT, folder, n_threads)}
        for side in sides.values():
            stack.callback(side.end)
        for epoch in epochs:
            for kind in ("update", "temperature", "sweeps"):
                best = dict.fromkeys(sides, float("inf"))
                for index in range(rounds):
                    for name in sides if index % 2 == 0 else reversed(sides):
                        best[name] = min(best[name], sides[name](epoch, kind))
                for name, seconds in best.items():
                    found[name].setdefault(epoch, {})[kind] = seconds
                ratio = best["former"] / best["present"]
                print(
                    f"epoch {epoch:3d}, {kind:12s} {1e3 * best['present']:9.2f} ms, {ratio:5.2f}", flush=True
                )
    return {name: {"parts": parts, **whole(parts)} for name, parts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("train", "compare", "serve"))
    parser.add_argument("commit", nargs="?", default="822aec3")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--gain", type=float, default=1.0)
    parser.add_argument("--c", type=float, default=-5.0)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, nargs="+", help="of those that were kept; all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.folder is None:
        from paramagnet.data.download import cache_folder

        options.folder = cache_folder() / "whole_run"
    if options.what == "train":
        train(options.folder, options.gain, options.c, options.seconds)
        return
    if options.what == "serve":
        serve(options.folder, options.threads)
        return
    kept = [epoch for epoch in EPOCHS if (options.folder / f"epoch_{epoch}.npz").is_file()]
    epochs = options.epochs or kept
    result = compare(options.commit, options.folder, options.threads, options.rounds, epochs)
    for kind in ("training", "annealing", "whole"):
        seconds = [result[name][kind] for name in ("former", "present")]
        print(f"{kind:12s} {seconds[0]:7.0f} s, {seconds[1]:7.0f} s: {seconds[0] / seconds[1]:.2f} times")
    if options.json:
        facts = {"commit": options.commit, "rounds": options.rounds, "threads": options.threads}
        write_json(options.json, {**facts, **result}, "numpy", "numba")


if __name__ == "__main__":
    main()
