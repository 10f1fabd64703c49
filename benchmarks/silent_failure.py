"""Does a trainer notice that its chains have lost the machine? PCD with one sweep on scikit-learn's digits.

    python benchmarks/silent_failure.py [--json benchmarks/data/silent_failure.json] [--only "bits" ...]

Digits in two values (a pixel of 8 or more is on), 1400 points to learn and 397 held out, 64 x 100 units,
batches of 100, 100 chains, one thread. What is run, with which seeds, is in data/silent_failure_plan.toml.
Each run
starts from the paper's machine (no visible biases) or from the biases of the data. "constant" is Adam at
0.001 without guard, "guarded" the same with it, "default" is what `train` does: the rate falls linearly to
0.02 of itself, and there is a guard.

Log-likelihoods at the end are in nats per point, by mAIS with 300 chains and 2000 temperatures, once from
uniform states and once from the means of the data; the larger ln Z counts. Both are kept: from the means of
the data alone the failure does not show. "cost" is the time of a check in percent of that of the updates
from one check to the next: minima of processor time, in turn.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import paramagnet as pm
from paramagnet.learning.guard import GuardedRun
from paramagnet.units import FloatArray
from ratio import interleave, write_json

PLAN = tomllib.loads(
    (Path(__file__).parent / "data" / "silent_failure_plan.toml").read_text(encoding="utf-8")
)
N_TRAINING, BATCH = PLAN["n_training"], PLAN["batch_size"]
N_BATCHES = N_TRAINING // BATCH
COST_UPDATES, COST_ROUNDS = 2_000, 5


def load_points(units: str) -> tuple[FloatArray, FloatArray]:
    """Training and held-out points, the same for both kinds of units."""
    bits = (load_digits().data >= 8).astype(np.float64)
    points = bits if units == "bit" else 2.0 * bits - 1.0
    order = np.random.default_rng(0).permutation(len(points))
    return points[order[:N_TRAINING]], points[order[N_TRAINING:]]


def train(plan: dict[str, Any], start: str, way: str, seed: int) -> pm.TrainResult:
    """One run."""
    points, _ = load_points(plan["visible"])
    data = {"visible_bias": "data", "data": points} if start == "data" else {}
    rbm = pm.initialize(64, 100, visible=plan["visible"], hidden=plan["hidden"], rng=seed, **data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.TrainingWarning)  # they are in the notes of the result
        return pm.train(
            rbm,
            points,
            epochs=plan["n_updates"] // N_BATCHES,
            gradient=pm.PCD(n_chains=PLAN["n_chains"], n_steps=plan["n_steps"], n_threads=1),
            optimizer=None if way == "default" else pm.Adam(PLAN["rate"]),
            batch_size=BATCH,
            evaluate=(),
            guard=way != "constant",
            rng=seed + 1000,
        )


def judge(rbm: pm.RBM, points: FloatArray, held_out: FloatArray) -> dict[str, float]:
    """Log-likelihoods by the larger ln Z, and what the one from the means of the data alone would say."""
    found = [
        pm.estimate_log_partition(rbm, n_samples=300, n_temperatures=2000, start=start, rng=1, n_threads=1)
        for start in ("uniform", points.mean(axis=0))
    ]
    log_z = max(found, key=lambda estimate: estimate.value)
    return {
        "training": round(pm.log_likelihood(rbm, points, log_partition=log_z).value, 2),
        "held_out": round(pm.log_likelihood(rbm, held_out, log_partition=log_z).value, 2),
        "held_out_from_means": round(pm.log_likelihood(rbm, held_out, log_partition=found[1]).value, 2),
        "error": round(log_z.error, 3),
    }


def run(plan: dict[str, Any], start: str, way: str, seed: int) -> dict[str, Any]:
    """One run, and its log-likelihoods at the end."""
    points, held_out = load_points(plan["visible"])
    began = time.process_time()
    result = train(plan, start, way, seed)
    seconds = time.process_time() - began
    row: dict[str, Any] = {"set": plan["name"], "start": start, "way": way, "seed": seed}
    row["end"] = row["best"] = judge(result.rbm, points, held_out)
    if result.best is not result.rbm:
        row["best"] = judge(result.best, points, held_out)
    row["failures_found_at"] = [check.update for check in result.state.checks if check.failed]
    row["rate_factor"], row["notes"] = result.state.rate_factor, list(result.notes)
    row["processor_seconds"] = round(seconds, 2)
    print({name: value for name, value in row.items() if name != "notes"}, len(result.notes), flush=True)
    return row


def measure_cost() -> float:
    """The time of a check in percent of that of the updates from one check to the next."""
    plan = {**PLAN["sets"][0], "n_updates": COST_UPDATES}
    points, _ = load_points(plan["visible"])
    state = train(plan, "data", "constant", 0).state
    gradient = pm.PCD(n_chains=PLAN["n_chains"], n_steps=plan["n_steps"], n_threads=1)
    guard = GuardedRun(pm.Guard(), state.layout, points, gradient, BATCH, None)
    times = interleave(
        {
            "check": lambda: guard.look(state, state.parameters, 1),
            "updates": lambda: train(plan, "data", "constant", 0),
            "start": lambda: train({**plan, "n_updates": 0}, "data", "constant", 0),
        },
        rounds=COST_ROUNDS,
        at_least=0.1,
        clock=time.process_time,
    )
    update = (times["updates"] - times["start"]) / (COST_UPDATES // N_BATCHES * N_BATCHES)
    return round(100.0 * times["check"] / (guard.every * update), 1)


def main() -> None:
    """Measure, print, and keep the figures if asked to."""
    names = [plan["name"] for plan in PLAN["sets"]]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=[*names, "cost"], nargs="+", default=[*names, "cost"])
    options = parser.parse_args()
    points, held_out = load_points("bit")
    results: dict[str, Any] = {"runs": []}
    if options.json and options.json.is_file():
        results = json.loads(options.json.read_text(encoding="utf-8"))["results"]
    results["independent"] = {
        "training": round(pm.independent_log_likelihood(points, "bit"), 2),
        "held_out": round(pm.independent_log_likelihood(points, "bit", validation=held_out), 2),
    }
    for plan in PLAN["sets"]:
        if plan["name"] in options.only:
            rows = [
                run(plan, start, way, seed)
                for start in plan["starts"]
                for way in plan["ways"]
                for seed in plan["seeds"]
            ]
            others = [row for row in results["runs"] if row["set"] != plan["name"]]
            results["runs"] = sorted([*others, *rows], key=lambda row: names.index(row["set"]))
        if options.json:
            write_json(options.json, results, "numpy", "numba", "paramagnet")
    if "cost" in options.only:
        results["cost_percent"] = measure_cost()
        print("cost", results["cost_percent"], "%")
        if options.json:
            write_json(options.json, results, "numpy", "numba", "paramagnet")


if __name__ == "__main__":
    main()
