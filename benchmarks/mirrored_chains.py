"""MNIST: the share of mirrored chains with and without centred learning, with and without tempering.

    python benchmarks/mirrored_chains.py [--json benchmarks/data/mirrored_chains.json] [--only plain ...]

Three machines of 784 x 500 spins learn 3000 images for 600 updates of Adam at 0.0001 in batches of 100, from
the theory's scale without visible biases: by PCD (500 chains, 10 sweeps), by PCD with the centred gradient,
and by tempering (50 chains, one round). Each is then judged by `pm.diagnose`, and so are its samples: the
persistent chains of the run, chains from random states after 1000 Gibbs sweeps, and 200 chains after 200
rounds of tempering along the path "weights" from the data's means. A chain is mirrored if its overlap with
the mean image is negative; the share of images for which this holds is subtracted (`Overlaps.share`). Takes
two to three minutes of processor time. Data: PARAMAGNET_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.learning.symptoms import Overlaps, measure_overlaps
from paramagnet.sampling.tempering import temper
from paramagnet.units import FloatArray
from ratio import write_json

N_POINTS, N_HIDDEN, EPOCHS, RATE = 3000, 500, 20, 1e-4
RUNS: dict[str, dict[str, Any]] = {
    "plain": {"gradient": pm.PCD(n_chains=500, n_steps=10), "centred": False},
    "centred": {"gradient": pm.PCD(n_chains=500, n_steps=10), "centred": True},
    "tempering": {"gradient": pm.Tempering(n_chains=50, n_steps=1), "centred": False},
}


def share_of(points: FloatArray, states: FloatArray) -> dict[str, float]:
    """The share of mirrored states, with its error."""
    found = measure_overlaps(pm.SPIN, points, states, np.random.default_rng(0))
    assert isinstance(found, Overlaps)
    return {"share": round(found.share, 4), "error": round(found.error, 4)}


def measure(names: list[str]) -> dict[str, Any]:
    """The figures of these runs."""
    points = pm.load_dataset("mnist", n_points=N_POINTS, units="spin", binarize="otsu", rng=0).data
    points = np.asarray(points, dtype=np.float64)
    results: dict[str, Any] = {}
    for name in names:
        options = RUNS[name]
        begin = time.process_time()
        rbm = pm.initialize(points.shape[1], N_HIDDEN, visible="spin", hidden="spin", rng=1)
        run = pm.train(
            rbm, points, epochs=EPOCHS, batch_size=100, optimizer=pm.Adam(RATE), rng=2, evaluate=[EPOCHS],
            **options,
        )  # fmt: skip
        diagnosis = pm.diagnose(run.rbm, points, n_chains=500, rng=3)
        tempered = temper(run.rbm, 200, n_steps=200, base=points, rng=4)
        replicas = run.state.gradient_state
        persistent = replicas.chains.visible if name == "tempering" else replicas.visible
        assert diagnosis.log_likelihood is not None
        results[name] = {
            "updates": run.state.update,
            "log_likelihood": round(diagnosis.log_likelihood.value, 2),
            "log_likelihood_trusted": diagnosis.log_likelihood.trusted,
            "idle_hidden": int(diagnosis.idle.sum()),
            "effective_hidden": round(diagnosis.effective_hidden, 1),
            "mirrored": {
                "persistent chains": share_of(points, persistent.astype(np.float64)),
                "1000 Gibbs sweeps": share_of(points, diagnosis.samples),
                "200 rounds of tempering": share_of(points, tempered.states),
            },
            "replicas": tempered.n_replicas,
            "lowest_acceptance": round(float(tempered.acceptance.min()), 3),
            "round_trips_per_chain": round(tempered.round_trips / len(tempered.states), 2),
            "findings": [str(finding) for finding in diagnosis.findings],
            "processor_seconds": round(time.process_time() - begin, 1),
        }
        print(name, *(f"  {key}: {value}" for key, value in results[name].items()), sep="\n", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=tuple(RUNS), nargs="+", default=list(RUNS))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    if options.json is not None and options.json.is_file():
        results = json.loads(options.json.read_text(encoding="utf-8"))["results"]
    results |= measure(options.only)
    if options.json is not None:
        write_json(options.json, results, "numpy", "numba", "paramagnet")


if __name__ == "__main__":
    main()
