"""MNIST: the share of mirrored chains with and without centred learning, with and without tempering.

    python benchmarks/mirrored_chains.py [--json benchmarks/data/mirrored_chains.json] [--only plain ...]

Machines of 784 x 500 spins learn 3000 images in batches of 100. Three of them take 600 updates of Adam at a
constant 0.0001, from the theory's scale without visible biases: by PCD (500 chains, 10 sweeps), by PCD with
the centred gradient, and by tempering (50 chains, one round). Two more are runs as one would make them: 3000
updates with the biases of the data at the start, the default optimizer and guard of `train` (Adam, from 0.001
linearly to 0.02 of it) and PCD as `paramagnet train` has it (100 chains, 20 sweeps), plain and centred, the
latter from the centred start.

Each machine is judged by `pm.diagnose` with 1000 images of MNIST's test set as held-out points; ln Z is the
larger of two estimates, from uniform states and from the data's means (1000 chains together, 1000
temperatures). Its samples are judged, too: the persistent chains of the run, chains from random states after
1000 Gibbs sweeps, and 200 chains after 200 rounds of tempering along the path "weights" from the data's
means. A chain is mirrored if its overlap with the mean image is negative; the share of images for which this
holds is subtracted (`Overlaps.share`). The settings of the last two runs were committed before they were
made. The record of the first three is older: it has no held-out images, and ln Z is from uniform states
alone. Takes about six minutes of processor time. Data: PARAMAGNET_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.learning.symptoms import Overlaps, measure_overlaps
from paramagnet.sampling.tempering import temper
from paramagnet.units import FloatArray
from ratio import write_json

N_POINTS, N_HELD_OUT, N_HIDDEN = 3000, 1000, 500
_PCD = pm.PCD(n_chains=500, n_steps=10)
_EARLY: dict[str, Any] = {"gradient": _PCD, "centred": False, "epochs": 20, "optimizer": pm.Adam(1e-4)}
_FEW = pm.PCD(n_chains=100, n_steps=20)
_USUAL: dict[str, Any] = {"gradient": _FEW, "centred": False, "epochs": 100}  # else the defaults of `train`
_BIASES = {"visible_bias": "data"}
# The options of `initialize` and of `train`.
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, _EARLY),
    "centred": ({}, _EARLY | {"centred": True}),
    "tempering": ({}, _EARLY | {"gradient": pm.Tempering(n_chains=50, n_steps=1)}),
    "plain, as usual": (_BIASES, _USUAL),
    "centred, as usual": (_BIASES | {"scheme": "centred"}, _USUAL | {"centred": True}),
}


def share_of(points: FloatArray, states: FloatArray) -> dict[str, float]:
    """The share of mirrored states, with its error."""
    found = measure_overlaps(pm.SPIN, points, states, np.random.default_rng(0))
    assert isinstance(found, Overlaps)
    return {"share": round(found.share, 4), "error": round(found.error, 4)}


def load_points() -> tuple[FloatArray, FloatArray]:
    """The images to learn, and those that are held out."""
    points = [
        pm.load_dataset(name, n_points=count, units="spin", binarize="otsu", rng=0).data
        for name, count in (("mnist", N_POINTS), ("mnist-test", N_HELD_OUT))
    ]
    return np.asarray(points[0], dtype=np.float64), np.asarray(points[1], dtype=np.float64)


def measure(name: str, points: FloatArray, held_out: FloatArray) -> dict[str, Any]:
    """The figures of one run."""
    start, options = RUNS[name]
    begin = time.process_time()
    data = {"data": points} if start else {}
    rbm = pm.initialize(points.shape[1], N_HIDDEN, visible="spin", hidden="spin", rng=1, **start, **data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.TrainingWarning)  # they are in the notes of the result
        run = pm.train(rbm, points, batch_size=100, rng=2, evaluate=(), **options)
    diagnosis = pm.diagnose(
        run.rbm, points, validation=held_out, n_chains=500, log_z=pm.LogZ(start="both"), rng=3
    )
    tempered = temper(run.rbm, 200, n_steps=200, base=points, rng=4)
    replicas = run.state.gradient_state
    persistent = replicas.chains.visible if name == "tempering" else replicas.visible
    likelihoods = {
        "log_likelihood": (diagnosis.log_likelihood, diagnosis.independent),
        "held_out": (diagnosis.validation_log_likelihood, diagnosis.validation_independent),
    }
    row: dict[str, Any] = {"updates": run.state.update}
    for kind, (found, level) in likelihoods.items():
        assert found is not None
        assert level is not None
        row[kind], row[f"{kind}_trusted"] = round(found.value, 2), found.trusted
        row[f"{kind}_independent"] = round(level.value, 2)
    row |= {
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
        "failures_found_at": [check.update for check in run.state.checks if check.failed],
        "notes": list(run.notes),
        "findings": [str(finding) for finding in diagnosis.findings],
        "processor_seconds": round(time.process_time() - begin, 1),
    }
    print(name, *(f"  {key}: {value}" for key, value in row.items()), sep="\n", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=tuple(RUNS), nargs="+", default=list(RUNS))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    if options.json is not None and options.json.is_file():
        results = json.loads(options.json.read_text(encoding="utf-8"))["results"]
    points, held_out = load_points()
    for name in options.only:
        results[name] = measure(name, points, held_out)
        if options.json is not None:
            write_json(
                options.json,
                {each: results[each] for each in RUNS if each in results},
                "numpy",
                "numba",
                "paramagnet",
            )


if __name__ == "__main__":
    main()
