"""What centring, penalties, early stopping, weights and a budget in seconds do on scikit-learn's digits.

    python benchmarks/learning_digits.py [--json benchmarks/data/learning_digits.json]

64 x 12 spins and bits with exact gradients and exact log-likelihoods in nats per point, so that no estimate
stands between a setting and its effect. Digits in two values, 1400 points to learn and 397 held out, batches
of 100; means over three seeds with their standard errors. About a minute of processor time.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from ratio import write_json
from silent_failure import load_points

SEEDS = (90501, 90502, 90503)
EPOCHS, N_HIDDEN = 60, 12


def start(points: Any, seed: int, hidden: str = "bit", centred: bool = False) -> pm.RBM:
    """The theory's scale with the biases of the data; the centred start where learning is centred."""
    scheme = "centred" if centred else "layer-correlation"
    return pm.initialize(
        64, N_HIDDEN, hidden=hidden, visible_bias="data", data=points, scheme=scheme, rng=seed
    )


def summary(values: list[float]) -> dict[str, float]:
    """Mean and standard error."""
    return {
        "mean": round(float(np.mean(values)), 3),
        "error": round(float(np.std(values, ddof=1) / np.sqrt(len(values))), 3),
    }


def compare_centring() -> dict[str, Any]:
    """Held-out log-likelihood, plain and centred, with hidden spins and bits, at two rates."""
    points, held_out = load_points("spin")
    found = {}
    for hidden in ("spin", "bit"):
        for rate in (0.001, 0.003):
            ends: dict[str, list[float]] = {"plain": [], "centred": []}
            for seed in SEEDS:
                for name, centred in (("plain", False), ("centred", True)):
                    rbm = start(points, seed, hidden, centred)
                    run = pm.train(
                        rbm, points, epochs=EPOCHS, batch_size=100, optimizer=pm.Adam(rate), centred=centred,
                        evaluate=(), rng=seed,
                    )  # fmt: skip
                    ends[name].append(pm.log_likelihood(run.rbm, held_out).value)
            gains = (np.array(ends["centred"]) - ends["plain"]).tolist()
            found[f"hidden {hidden}, rate {rate}"] = {
                **{name: summary(values) for name, values in ends.items()}, "gain": summary(gains)
            }  # fmt: skip
    return found


def separate_start() -> dict[str, Any]:
    """What of the gain is due to the centred start and what to the gradient, with visible spins and bits.

    Hidden bits with biases of -1, rate 0.001.
    """
    found = {}
    for visible in ("spin", "bit"):
        points, held_out = load_points(visible)
        ends: dict[str, list[float]] = {"plain": [], "plain, centred start": [], "centred": []}
        for seed in SEEDS:
            for name, values in ends.items():
                scheme = "layer-correlation" if name == "plain" else "centred"
                rbm = pm.initialize(
                    64, N_HIDDEN, visible=visible, hidden="bit", visible_bias="data", hidden_bias=-1.0,
                    data=points, scheme=scheme, rng=seed,
                )  # fmt: skip
                run = pm.train(
                    rbm, points, epochs=EPOCHS, batch_size=100, optimizer=pm.Adam(0.001),
                    centred=name == "centred", evaluate=(), rng=seed,
                )  # fmt: skip
                values.append(pm.log_likelihood(run.rbm, held_out).value)
        found[f"visible {visible}"] = {name: summary(values) for name, values in ends.items()}
    return found


def compare_penalties() -> dict[str, Any]:
    """Share of weights that are zero, and held-out log-likelihood."""
    points, held_out = load_points("spin")
    found = {}
    for name, options in {
        "none": {},
        "l1 = 0.1": {"l1": 0.1},
        "l1 = 0.3": {"l1": 0.3},
        "l1 = 1": {"l1": 1.0},
        "l1_group = 1": {"l1_group": 1.0},
        "weight_decay = 0.1": {"weight_decay": 0.1},
    }.items():
        zeros, ends = [], []
        for seed in SEEDS:
            run = pm.train(
                start(points, seed), points, epochs=EPOCHS, batch_size=100, optimizer=pm.Adam(0.003),
                evaluate=(), rng=seed, **options,
            )  # fmt: skip
            zeros.append(100.0 * float((run.rbm.weights == 0.0).mean()))
            ends.append(pm.log_likelihood(run.rbm, held_out).value)
        found[name] = {"zero_percent": summary(zeros), "held_out": summary(ends)}
    return found


def stop_early() -> dict[str, Any]:
    """Two hundred points are learned by heart: the last machine, and the one that early stopping returns."""
    points, held_out = load_points("spin")
    rows = []
    for seed in SEEDS:
        options: dict[str, Any] = {
            "epochs": 800, "batch_size": 100, "optimizer": pm.Adam(0.005), "evaluate": 10,
            "validation": held_out, "rng": seed,
        }  # fmt: skip
        few = points[:200]
        whole = pm.train(start(few, seed), few, **options)
        stopped = pm.train(start(few, seed), few, early_stopping=pm.EarlyStopping(5), **options)
        values = whole.history.validation
        rows.append({
            "last": round(float(values[-1]), 2),
            "best": round(float(values.max()), 2),
            "best_epoch": int(whole.history.epoch[values.argmax()]),
            "stopped_after": stopped.state.epoch,
            "returned": round(pm.log_likelihood(stopped.rbm, held_out).value, 2),
            "returned_epoch": stopped.state.watch.best.epoch,
        })  # fmt: skip
    return {"runs": rows}


def weigh() -> dict[str, Any]:
    """A digit that counts ten times: its log-likelihood, and that of the others."""
    from sklearn.datasets import load_digits

    points, _ = load_points("spin")
    order = np.random.default_rng(0).permutation(1797)[: len(points)]
    eight = load_digits().target[order] == 8
    found: dict[str, Any] = {}
    for name, weights in (("alike", None), ("the digit 8 ten times", np.where(eight, 10.0, 1.0))):
        ends: dict[str, list[float]] = {"eights": [], "others": []}
        for seed in SEEDS:
            run = pm.train(
                start(points, seed), points, epochs=EPOCHS, batch_size=100, optimizer=pm.Adam(0.003),
                sample_weight=weights, evaluate=(), rng=seed,
            )  # fmt: skip
            ends["eights"].append(pm.log_likelihood(run.rbm, points[eight]).value)
            ends["others"].append(pm.log_likelihood(run.rbm, points[~eight]).value)
        found[name] = {of: summary(values) for of, values in ends.items()}
    return found


def budget() -> dict[str, Any]:
    """How long a run of five seconds takes."""
    points, _ = load_points("spin")
    pm.train(start(points, 0), points, epochs=1, batch_size=100, rng=0)  # compiles
    began = time.perf_counter()
    run = pm.train(start(points, 0), points, seconds=5.0, batch_size=100, rng=0)
    return {"asked": 5.0, "took": round(time.perf_counter() - began, 2), "epochs": run.state.epoch}


def main() -> None:
    """Measure, print, and keep the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = (compare_centring, separate_start, compare_penalties, stop_early, weigh, budget)
    parts = {part.__name__: part for part in every}
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=list(parts), nargs="+", default=list(parts))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    if options.json and options.json.is_file():
        results = json.loads(options.json.read_text(encoding="utf-8"))["results"]
    for measure in (parts[name] for name in options.only):
        results[measure.__name__] = measure()
        print(measure.__name__, results[measure.__name__], flush=True)
    if options.json:
        write_json(options.json, results, "numpy", "numba", "paramagnet")


if __name__ == "__main__":
    main()
