"""MNIST without visible biases: how many hidden units learning leaves idle, and where persistent chains stay.

    python benchmarks/mirror_chains.py [--gain 1] [--start NAME] [--epoch 100]   train (some minutes), measure
    python benchmarks/mirror_chains.py --state FILE ...                          states of runs of mnist_spin

Spins without biases know no difference between an image and its negative. Weights that learn the mean image
learn both; whichever of the two a persistent chain has come to, it stays there. And a hidden unit whose field
is ruled by the mean image has the same sign for all points: it is a bias, not a feature. Counted are

- idle hidden units: those whose mean over the training points is beyond 0.99 in size;
- mirrored chains: those whose overlap with the mean image is negative;
- the size of the visible biases over what Adam can reach at most, its rate times the number of updates.

Records are kept in benchmarks/data/mirror_chains.json; `make tables` writes them to docs/theory.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet.learning.state import TrainState, load_checkpoint
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.execute import train_run
from paramagnet.sweeps.groups import Start
from paramagnet.sweeps.provenance import environment
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.spec import OURS, Run
from paramagnet.sweeps.store import Store
from paramagnet.sweeps.text_tables import escape_markdown

FILE = Path(__file__).parent / "data" / "mirror_chains.json"
RECORDS = Path(__file__).parents[1] / "results" / "mnist_spin.jsonl"
IDLE = 0.99


def measure(run: Run, state: TrainState) -> dict[str, Any]:
    """What the state of a run has come to."""
    points, _ = load_points(run)
    rbm, mean = state.rbm, points.mean(axis=0)
    assert state.chains is not None
    of_units = np.abs(rbm.mean_h_given_v(points).mean(axis=0))
    row: dict[str, Any] = {"scheme": run.scheme, "gain": run.gain, "epoch": state.epoch}
    row["idle_hidden"] = round(float(np.mean(of_units > IDLE)), 4)
    row["mirrored_chains"] = round(float(np.mean(state.chains.visible @ mean < 0.0)), 4)
    if run.scheme == OURS:  # from zero
        reach = run.learning.learning_rate * state.update
        row["bias_over_reach"] = round(float(np.abs(rbm.visible_bias).mean() / reach), 4)
    return row | {"environment": environment()}


def find_run(path: Path) -> Run:
    """The run of `mnist_spin` that a state belongs to: the file is named by the digest."""
    for run in find_spec("mnist_spin").runs():
        if run.digest == path.name.split(".")[0]:
            return run
    raise SystemExit(f"{path} is no state of a run of mnist_spin.")


def load_found() -> list[dict[str, Any]]:
    """What was measured, in the order of the table."""
    found = json.loads(FILE.read_text()) if FILE.is_file() else []
    return sorted(found, key=lambda row: (row["scheme"] != OURS, row["epoch"], row["scheme"], row["gain"]))


def table_rows() -> tuple[list[str], list[list[str]]]:
    """A heading, and a row per record."""
    head = ["start", "epochs", "log-likelihood", "idle hidden units", "mirrored chains", "biases / reach"]
    measured = {
        (record.scheme, record.gain, epoch): f"{value:.1f}"
        for record in Store(RECORDS).records()
        if record.trial == 0
        for epoch, value in zip(record.epochs, record.log_likelihood, strict=True)
    }
    rows = []
    for row in load_found():
        key = row["scheme"], row["gain"], row["epoch"]
        cells = [f"{100 * row[name]:.0f} %" for name in ("idle_hidden", "mirrored_chains")]
        reach = f"{row['bias_over_reach']:.2f}" if "bias_over_reach" in row else ""
        label = escape_markdown(Start(*key[:2]).label)
        rows.append([label, str(row["epoch"]), measured.get(key, ""), *cells, reach])
    return head, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, nargs="+")
    parser.add_argument("--gain", type=float, default=1.0)
    parser.add_argument("--start", default=OURS)
    parser.add_argument("--epoch", type=int, default=100)
    options = parser.parse_args()
    if options.state:
        rows = [measure(find_run(path), load_checkpoint(path)) for path in options.state]
    else:
        first = next(iter(find_spec("mnist_spin").runs(trials=1)))
        run = replace(
            first,
            scheme=options.start,
            gain=options.gain,
            measurement=replace(first.measurement, epochs=(options.epoch,)),
        )
        rows = [measure(run, train_run(run))]
    found = load_found()
    keys = ("scheme", "gain", "epoch")
    known = {tuple(row[key] for key in keys): row for row in found}
    known |= {tuple(row[key] for key in keys): row for row in rows}
    FILE.write_text(json.dumps(list(known.values()), indent=1) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
