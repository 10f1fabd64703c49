"""Sampled training by two versions of the code, from the same seeds: do they learn the same?

    PYTHONPATH=src python benchmarks/same_chains.py                        this checkout
    PYTHONPATH=../other/src python benchmarks/same_chains.py --code 0fca0b5   another one by its commit

Runs of MNIST made with different kernels end some nats apart (docs/differences.md). This is 784 x 12 spins
on the images of the tables with the chains of the tables, 600 updates at a rate of 0.001: the likelihood is
exact there, and rounding has little time to send chains apart. ln Z is estimated by mAIS, too. Only names are
used that both versions have. What is done is in the file and is skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import paramagnet as pm

FILE = Path(__file__).parent / "data" / "same_chains.json"
N_HIDDEN, EPOCHS, RATE = 12, 20, 0.001


def learn(seed: int) -> dict[str, float]:
    """The exact log-likelihood after training, and ln Z by mAIS."""
    data = pm.load_dataset("mnist", n_points=3000).data
    rbm, started = pm.initialize(784, N_HIDDEN, rng=seed), time.process_time()
    gradient, optimizer = pm.PCD(1000, 40, n_relax=200), pm.Adam(RATE)
    settings = {"batch_size": 100, "gradient": gradient, "optimizer": optimizer, "evaluate": []}
    for state in pm.training_steps(rbm, data, epochs=EPOCHS, rng=1000 + seed, **settings):
        last = state.rbm
    seconds = time.process_time() - started
    exact = pm.log_likelihood(last, data)
    annealed = pm.estimate_log_partition(last, n_samples=200, n_temperatures=200, rng=seed)
    return {
        "log_likelihood": round(float(getattr(exact, "value", exact)), 6),
        "log_partition": round(float(annealed.value), 6),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--code", default="this", help="what the record calls the code")
    options = parser.parse_args()
    for seed in range(options.seeds):
        found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else []
        if not any((row["code"], row["seed"]) == (options.code, seed) for row in found):
            row = {"code": options.code, "seed": seed, **learn(seed)}
            print(row, flush=True)
            found.append(row)
            FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
