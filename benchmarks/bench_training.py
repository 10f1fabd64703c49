"""What a training update costs beyond the exact gradient of the model: data term, optimizer, bookkeeping.

    python benchmarks/bench_training.py [--rounds 200] [--json FILE]

The kernel alone (log Z and moments) against a whole update of `training_steps`, in turn, the fastest call
of each; one thread, processor time. Allowed are 10 % for 400 points of 20 x 20 in full batches, 30 % for
batches of 500 of 16 x 16.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paramagnet.kernels import enumeration
from paramagnet.learning.gradients.summed import Exact
from paramagnet.learning.optimizers import SGD, Adam
from paramagnet.learning.training import training_steps
from paramagnet.rbm import RBM
from ratio import interleave, print_ratios, write_json

CASES = [  # visible, hidden, points, batch, allowed share
    (20, 20, 400, None, 0.10),
    (16, 16, 10_000, 500, 0.30),
    (16, 32, 10_000, 500, 0.30),
    (20, 10, 400, None, None),
]


def rivals(n_visible: int, n_hidden: int, n_points: int, batch: int | None) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(n_points, n_visible))
    rbm = RBM(0.2 * rng.normal(size=(n_visible, n_hidden)), 0.0, 0.0)
    arguments = (rbm.weights, rbm.visible_bias, rbm.hidden_bias, rbm.visible.levels, rbm.hidden.levels)
    calls: dict[str, Any] = {"kernel": lambda: enumeration.moments(*arguments)}
    kinds: dict[str, tuple[Any, Any]] = {"update, Adam": (Adam(1e-9), ()), "update, SGD": (SGD(1e-9), ())}
    if batch is None:
        kinds["update, measured"] = (Adam(1e-9), range(10**6))  # log-likelihood after every epoch
    for name, (optimizer, evaluate) in kinds.items():
        steps = training_steps(
            rbm,
            data,
            epochs=10**6,
            gradient=Exact(),
            optimizer=optimizer,
            batch_size=batch,
            evaluate=evaluate,
            rng=0,
        )
        next(steps)
        calls[name] = steps.__next__
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with threadpool_limits(1):
        for n_visible, n_hidden, n_points, batch, allowed in CASES:
            title = f"{n_visible} x {n_hidden}, {n_points} points, batch {batch or 'full'}"
            times = interleave(
                rivals(n_visible, n_hidden, n_points, batch),
                rounds=options.rounds,
                at_least=0.02,
                clock=time.process_time,
            )
            share = times["update, Adam"] / times["kernel"] - 1.0
            print_ratios(title, times, reference="kernel")
            verdict = "" if allowed is None else f", allowed {allowed:.0%}"
            print(f"  an update beyond the kernel: {share:.1%}{verdict}\n")
            results[title] = {"seconds": times, "share": share, "allowed": allowed}
    if options.json:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
