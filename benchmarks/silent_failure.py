"""Does a trainer notice that its chains have lost the machine? PCD with one sweep on scikit-learn's digits.

    python benchmarks/silent_failure.py [--json benchmarks/data/silent_failure.json]

Digits in two values (a pixel of 8 or more is on), 1400 points to learn and 397 held out, 64 x 100 units,
batches of 100, 100 chains with one sweep an update, 10,000 updates, one thread. Each run starts from the
paper's machine (no visible biases) or from the biases of the data. "constant" is Adam at 0.001, "default" is
what `train` does by default: the rate falls linearly to 0.02 of itself. Either runs with the guard and
without. Log-likelihoods at the end are by mAIS with 500 chains and 3000 temperatures from the means of the
data, in nats per point.

"healthy" are further runs with the defaults from the biases of the data, in which the guard should be
silent: bits with one sweep, spins with five. "doubtful" are spins with one sweep, whose likelihood does
swing. "cost" is the time of a check in percent of that of the updates from one check to the next: minima of
processor time, in turn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import paramagnet as pm
from paramagnet.learning.guard import GuardedRun
from paramagnet.units import FloatArray
from ratio import interleave, write_json

N_UPDATES, N_TRAINING, RATE, BATCH = 10_000, 1400, 0.001, 100
N_BATCHES = N_TRAINING // BATCH
HEALTHY = 5  # runs of either kind of units
COST_UPDATES, COST_ROUNDS = 2_000, 5


def load_points(units: str) -> tuple[FloatArray, FloatArray]:
    """Training and held-out points, the same for both kinds of units."""
    bits = (load_digits().data >= 8).astype(np.float64)
    points = bits if units == "bit" else 2.0 * bits - 1.0
    order = np.random.default_rng(0).permutation(len(points))
    return points[order[:N_TRAINING]], points[order[N_TRAINING:]]


def train(
    units: str, start: str, rate: str, guard: bool, seed: int, n_updates: int, n_steps: int = 1
) -> pm.TrainResult:
    """One run."""
    points, _ = load_points(units)
    data = {"visible_bias": "data", "data": points} if start == "data" else {}
    rbm = pm.initialize(64, 100, visible=units, hidden=units, rng=seed, **data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.TrainingWarning)  # they are counted by the notes of the result
        return pm.train(
            rbm,
            points,
            epochs=n_updates // N_BATCHES,
            gradient=pm.PCD(n_chains=100, n_steps=n_steps, n_threads=1),
            optimizer=pm.Adam(RATE) if rate == "constant" else None,
            batch_size=BATCH,
            evaluate=(),
            guard=guard,
            rng=seed + 1,
        )


def run(units: str, start: str, rate: str, guard: bool, seed: int, n_steps: int = 1) -> dict[str, Any]:
    """One run, and its log-likelihoods at the end."""
    points, held_out = load_points(units)
    began = time.process_time()
    result = train(units, start, rate, guard, seed, N_UPDATES, n_steps)
    seconds = time.process_time() - began
    row: dict[str, Any] = {"units": units, "start": start, "rate": rate, "guard": guard, "seed": seed}
    row["n_steps"] = n_steps
    for name, rbm in (("end", result.rbm), ("best", result.best)):
        log_z = pm.estimate_log_partition(
            rbm, n_samples=500, n_temperatures=3000, start=points.mean(axis=0), rng=1, n_threads=1
        )
        row[name] = round(pm.log_likelihood(rbm, points, log_partition=log_z).value, 2)
        row[f"{name}_held_out"] = round(pm.log_likelihood(rbm, held_out, log_partition=log_z).value, 2)
        row[f"{name}_error"] = round(log_z.error, 3)
    row["failures_found_at"] = [check.update for check in result.state.checks if check.failed]
    row["rate_factor"], row["notes"] = result.state.rate_factor, len(result.notes)
    row["seconds"] = round(seconds, 2)
    print(row, flush=True)
    return row


def measure() -> dict[str, Any]:
    """All figures."""
    rows = [
        run(units, start, rate, guard, 0)
        for units in ("spin", "bit")
        for start in ("paper", "data")
        for rate in ("constant", "default")
        for guard in (False, True)
    ]
    healthy = [
        run(units, "data", "default", True, seed, n_steps)
        for units, n_steps in (("bit", 1), ("spin", 5))
        for seed in range(10, 10 + HEALTHY)
    ]
    doubtful = [run("spin", "data", "default", True, seed) for seed in range(10, 10 + HEALTHY)]
    points, held_out = load_points("bit")
    return {
        "independent": {
            "training": round(pm.independent_log_likelihood(points, "bit"), 2),
            "held_out": round(pm.independent_log_likelihood(points, "bit", validation=held_out), 2),
        },
        "n_updates": N_UPDATES,
        "runs": rows,
        "healthy": healthy,
        "doubtful": doubtful,
        "false_alarms": sum(len(row["failures_found_at"]) for row in healthy),
        "cost_percent": measure_cost(),
    }


def measure_cost() -> float:
    """The time of a check in percent of that of the updates from one check to the next."""
    points, _ = load_points("bit")
    state = train("bit", "data", "default", False, 0, COST_UPDATES).state
    gradient = pm.PCD(n_chains=100, n_steps=1, n_threads=1)
    guard = GuardedRun(pm.Guard(), state.layout, points, gradient, BATCH, None)
    times = interleave(
        {
            "check": lambda: guard.look(state, state.parameters, 1),
            "updates": lambda: train("bit", "data", "default", False, 0, COST_UPDATES),
            "start": lambda: train("bit", "data", "default", False, 0, 0),
        },
        rounds=COST_ROUNDS,
        at_least=0.1,
        clock=time.process_time,
    )
    update = (times["updates"] - times["start"]) / (COST_UPDATES // N_BATCHES * N_BATCHES)
    return round(100.0 * times["check"] / (guard.every * update), 1)


def main() -> None:
    """Measure, print, and keep the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = measure()
    print({name: value for name, value in results.items() if name not in ("runs", "healthy", "doubtful")})
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
