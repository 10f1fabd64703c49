"""How often chains change between two modes: Gibbs sampling against tempering along three paths.

    python benchmarks/tempering.py [--json benchmarks/data/tempering.json]

The machine has 64 x 10 bits and learned scikit-learn's digits 0 and 1 by 1500 exact updates; a logistic
regression on the data says which of the two a state is. Counted is how often this changes from one sweep to
the next, per chain and 1000 machine-sweeps: a round on a ladder of K machines costs K of them. Two chains
that swap their states to and fro switch as well, so what counts for averages is also measured: the number of
machine-sweeps per independent draw of the class, from the variance of its mean over the run between chains
(100 of them: within 15 %). The share of ones is compared with that of exact samples.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import paramagnet as pm
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.ladder import Ladder, Replicas, run_rounds
from paramagnet.sampling.layer import layers_of
from paramagnet.sampling.placement import choose_machines, pilot_scales
from paramagnet.units import FloatArray
from ratio import write_json

N_UPDATES, RATE, DECAY = 1500, 0.01, 0.0005
N_MACHINES = 120  # of the training run, at most
N_CHAINS, MACHINE_SWEEPS, BURN_IN = 100, 40_000, 200
ACCEPTANCE = 0.3


def load_points() -> tuple[FloatArray, FloatArray]:
    """The digits 0 and 1 as bits, and which of the two they are."""
    digits = load_digits()
    chosen = np.isin(digits.target, (0, 1))
    return (digits.data[chosen] > 7).astype(np.float64), digits.target[chosen]


def train_machines(points: FloatArray) -> list[pm.RBM]:
    """The machines of the training run, about evenly on a logarithmic scale of updates; the last one last.

    Adam follows the exact gradient less ``DECAY`` times the weights.
    """
    kept = {0, *np.unique(np.round(np.geomspace(1, N_UPDATES, N_MACHINES)).astype(int)).tolist()}
    rbm = pm.initialize(64, 10, visible="bit", hidden="bit", visible_bias="data", data=points, rng=1)
    rbm = pm.RBM(0.02 * rbm.weights, rbm.visible_bias, rbm.hidden_bias, "bit", "bit")
    optimizer = pm.Adam(RATE)
    state, machines = optimizer.start(64 * 10 + 64 + 10), [rbm]
    for update in range(1, N_UPDATES + 1):
        slope = pm.learning.exact_gradient(rbm, points)
        parts = (slope.weights - DECAY * rbm.weights).ravel(), slope.visible_bias, slope.hidden_bias
        direction, state = optimizer.step(state, np.concatenate(parts))
        w, b, c = np.split(RATE * direction, [640, 704])
        biases = rbm.visible_bias + b, rbm.hidden_bias + c
        rbm = pm.RBM(rbm.weights + w.reshape(64, 10), *biases, "bit", "bit")
        if update in kept:
            machines.append(rbm)
    return machines


def make_ladders(machines: list[pm.RBM], points: FloatArray) -> dict[str, Ladder]:
    """The three paths, with replicas placed for the same acceptance."""
    rbm, rng = machines[-1], np.random.default_rng(0)
    parameters = rbm.weights, rbm.visible_bias, rbm.hidden_bias
    ladders = {}
    for name, base in (("energy", np.zeros(64)), ("weights", rbm.visible.bias_from(points))):
        scales = pilot_scales(parameters, rbm.units, base, ACCEPTANCE, None, rng, None)
        ladders[name] = Ladder.scaled(parameters, rbm.units, scales, base)
    ladders["trajectory"] = Ladder.of_machines(choose_machines(machines, ACCEPTANCE, rng, None))
    return ladders


def count_switches(
    rbm: pm.RBM, ladder: Ladder | None, classifier: LogisticRegression, machine_sweeps: int
) -> dict[str, Any]:
    """Class switches of chains on a ladder; without one, of Gibbs chains."""
    weights, bias = classifier.coef_[0].astype(np.float32), float(classifier.intercept_[0])
    n_machines = 1 if ladder is None else ladder.n_replicas
    n_rounds, layers = machine_sweeps // n_machines, layers_of(rbm)
    rng = np.random.default_rng(1)
    chains = Chains.start(rbm.visible, (N_CHAINS, rbm.n_visible), rng)
    replicas = Replicas.start(chains.visible, n_machines, chains.seed)
    if ladder is None:
        chains = run_sweeps(layers, chains, BURN_IN)
    else:
        replicas = run_rounds(ladder, replicas, BURN_IN)
    switches, ones, before = 0, np.zeros(N_CHAINS), None
    for _ in range(n_rounds):
        if ladder is None:
            chains = run_sweeps(layers, chains, 1, n_threads=1)
        else:
            replicas = run_rounds(ladder, replicas, 1, n_threads=1)
        states = chains.visible if ladder is None else replicas.visible[-1]
        label = states @ weights + bias > 0.0
        switches += 0 if before is None else int(np.count_nonzero(label != before))
        before = label
        ones += label
    share = ones / n_rounds
    noise = share.mean() * (1.0 - share.mean())  # variance of an independent draw
    row: dict[str, Any] = {
        "machines": n_machines,
        "switches": round(1000.0 * switches / N_CHAINS / (n_rounds * n_machines), 2),
        "share_of_ones": round(float(share.mean()), 4),
        "sweeps_per_draw": round(n_machines * n_rounds * float(share.var() / noise), 1),
    }
    if ladder is not None:
        row["acceptance"] = np.round(replicas.acceptance, 3).tolist()
        row["round_trips"] = round(1000.0 * replicas.round_trips / N_CHAINS / (n_rounds * n_machines), 2)
    return row


def measure(machine_sweeps: int = MACHINE_SWEEPS) -> dict[str, Any]:
    """All figures."""
    points, labels = load_points()
    classifier = LogisticRegression(C=1.0).fit(points, labels)
    machines = train_machines(points)
    rbm = machines[-1]
    exact = pm.sample_exact(rbm, 20_000, rng=0)
    results: dict[str, Any] = {
        "log_likelihood": round(pm.log_likelihood(rbm, points).value, 3),
        "share_of_ones": round(float(classifier.predict(exact).mean()), 4),
        "share_of_ones_in_data": round(float(labels.mean()), 4),
        "gibbs": count_switches(rbm, None, classifier, machine_sweeps),
    }
    for name, ladder in make_ladders(machines, points).items():
        results[name] = count_switches(rbm, ladder, classifier, machine_sweeps)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = measure()
    for name, row in results.items():
        print(f"{name:24s} {row}")
    if options.json is not None:
        write_json(options.json, results, "numpy", "numba", "scikit-learn", "paramagnet")


if __name__ == "__main__":
    main()
