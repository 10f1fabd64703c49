"""What `pm.diagnose` says of machines that learned digits in three ways.

    python benchmarks/diagnose_digits.py [--json benchmarks/data/diagnose_digits.json]

Scikit-learn's digits as bits (above 7), 1400 to learn and 397 held out, 64 x 100 bits with visible biases
from the data, about 2000 updates: PCD with one sweep and Adam at 0.001, plain and centred; and PCD with ten
sweeps, centred, at a rate that falls from 0.002 to 0.00004. Takes about ten seconds of processor time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import paramagnet as pm
from ratio import write_json

ONE_SWEEP: dict[str, Any] = {
    "epochs": 143,
    "batch_size": 100,
    "gradient": pm.PCD(n_chains=100, n_steps=1),
    "optimizer": pm.Adam(1e-3),
}
RUNS: dict[str, dict[str, Any]] = {
    "one sweep": {**ONE_SWEEP, "centred": False},
    "one sweep, centred": {**ONE_SWEEP, "centred": True},
    "ten sweeps, falling rate, centred": {
        "epochs": 300,
        "batch_size": 200,
        "gradient": pm.PCD(n_chains=200, n_steps=10),
        "optimizer": pm.Adam(pm.Schedule("linear", 2e-3, end=4e-5, n_updates=2100)),
        "centred": True,
    },
}


def measure() -> dict[str, Any]:
    """The record of the diagnosis of every machine."""
    points = (load_digits().data > 7).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(points))
    learned, held_out = points[order[:1400]], points[order[1400:]]
    results = {}
    for name, options in RUNS.items():
        start = pm.initialize(64, 100, visible="bit", hidden="bit", visible_bias="data", data=learned, rng=1)
        run = pm.train(start, learned, rng=2, evaluate=[options["epochs"]], **options)
        found = pm.diagnose(run.rbm, learned, validation=held_out, rng=0)
        chains = pm.learning.quick_diagnosis(run.rbm, learned, run.state.chains)
        print(f"{name}, {run.state.update} updates\n{found}\n", flush=True)
        results[name] = {
            "updates": run.state.update,
            **found.to_record(),
            "findings_of_persistent_chains": [finding.name for finding in chains],
        }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = measure()
    if options.json is not None:
        write_json(options.json, results, "numpy", "numba", "scikit-learn", "paramagnet")


if __name__ == "__main__":
    main()
