"""From a csv file to a machine: thresholds, training, the log-likelihood of points that were not learned.

    python examples/train_csv.py [mine.csv [hidden_units]]

Without a file it writes one first: noisy readings of twelve switches, three of which control the others.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import paramagnet as pm


def write_example(path: Path) -> None:
    rng = np.random.default_rng(0)
    masters = rng.integers(2, size=(500, 3))
    switches = np.repeat(masters, 4, axis=1) ^ (rng.random((500, 12)) < 0.1)
    readings = switches + rng.normal(0.0, 0.2, switches.shape)
    header = ",".join(f"switch{number}" for number in range(12))
    np.savetxt(path, readings, delimiter=",", header=header, comments="", fmt="%.3f")


def learn(path: Path, n_hidden: int) -> pm.RBM:
    n_points = len(pm.data.read_table(path).data)
    dataset = pm.load_dataset(path, n_points=4 * n_points // 5)
    print(dataset)
    n_visible = dataset.data.shape[1]
    print(f"sigma = {pm.weight_std(n_visible, n_hidden):.4f} for {n_visible} x {n_hidden}")
    result = pm.train(
        pm.initialize(n_visible, n_hidden, rng=1),
        dataset.data,
        epochs=100,
        batch_size=50,
        optimizer=pm.Adam(0.01),
        validation=dataset.held_out,
        evaluate=[0, 10, 30, 100],
        rng=2,
    )
    history = result.history
    for row in zip(history.epoch, history.log_likelihood, history.validation, strict=True):
        print("epoch {:3d}   learned {:8.3f}   held out {:8.3f}".format(*row))
    independent = pm.data.log_likelihood_bounds(dataset.data).independent
    print(f"independent features would reach {independent:.3f}")
    return result.rbm


def main() -> None:
    n_hidden = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    if len(sys.argv) > 1:
        learn(Path(sys.argv[1]), n_hidden).save("machine.safetensors")
        print("machine: machine.safetensors")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "switches.csv"
        write_example(path)
        rbm = learn(path, n_hidden)
        rbm.save(Path(folder) / "machine.safetensors")
        again = pm.RBM.load(Path(folder) / "machine.safetensors")
        print(f"saved and loaded: {np.array_equal(again.weights, rbm.weights)}")


if __name__ == "__main__":
    main()
