"""Continuous data, standardized: machines with Gaussian visible units against normal distributions.

Points are split into training, validation and test sets; the density of the test points is compared with
that of a factorized normal distribution and of one with full covariance, both fitted to the training
points. The variance of the Gaussian units, the same for all features, is chosen by the validation set, and
so is the ridge of the full covariance. The features of Dry Bean are nearly collinear, which is all that a
normal distribution needs; whitened by the training points (a normal distribution of full covariance is then
the factorized one) they show what is left beyond it. Training is exact. Beside the likelihoods: how the
start decides, for gains around the scale of the theory.

    python benchmarks/gaussian_likelihood.py [--trials N] [--epochs N] [--only SET]

Results are kept in benchmarks/data/gaussian_likelihood.json, set after set.
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
from paramagnet.data.datasets import read_named
from paramagnet.data.sources import SOURCES
from ratio import write_json

RECORDS = Path(__file__).parent / "data" / "gaussian_likelihood.json"
VARIANCES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
GAINS = (0.1, 0.25, 0.5, 1.0, 2.0)
HIDDEN = (("spin", 0.0), ("bit", 0.0), ("bit", -2.0))
RATE, BATCH = 0.01, 250


def load_points(name: str) -> np.ndarray:
    """Raw features; grey levels of digits with the usual uniform noise that makes integers continuous."""
    if name == "drybean":
        return read_named(SOURCES["drybean"]).data.astype(np.float64)
    from sklearn.datasets import load_digits

    greys = load_digits().data
    return greys + np.random.default_rng(0).random(greys.shape)


def split(
    points: np.ndarray, n_train: int, seed: int, whiten: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test points, standardized (or whitened) by the training points; features
    that hardly vary are dropped.
    """
    order = np.random.default_rng(seed).permutation(len(points))
    n_other = min(n_train // 4, (len(points) - n_train) // 2)
    parts = np.split(points[order][: n_train + 2 * n_other], [n_train, n_train + n_other])
    mean, deviation = parts[0].mean(axis=0), parts[0].std(axis=0)
    kept = deviation > 0.05 * deviation.max() if points.shape[1] > 16 else deviation > 0
    train, validation, test = ((part - mean)[:, kept] / deviation[kept] for part in parts)
    if whiten:
        values, vectors = np.linalg.eigh(np.cov(train.T))
        train, validation, test = (part @ vectors / np.sqrt(values) for part in (train, validation, test))
    return train, validation, test


def normal_likelihood(points: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Mean log density, in nats per point."""
    centred = points - mean
    _, log_det = np.linalg.slogdet(2.0 * np.pi * covariance)
    squares = np.einsum("ij,ji->i", centred, np.linalg.solve(covariance, centred.T))
    return float(-0.5 * (log_det + squares.mean()))


def fit_normals(train: np.ndarray, validation: np.ndarray, test: np.ndarray) -> dict[str, float]:
    mean, covariance = train.mean(axis=0), np.cov(train.T)
    ridges = 10.0 ** np.arange(-8.0, 0.5, 0.5)
    best = max(ridges, key=lambda r: normal_likelihood(validation, mean, covariance + r * np.eye(len(mean))))
    return {
        "factorized": normal_likelihood(test, mean, np.diag(np.diag(covariance))),
        "full covariance": normal_likelihood(test, mean, covariance + best * np.eye(len(mean))),
    }


def train_machine(
    parts: tuple[np.ndarray, ...],
    n_hidden: int,
    hidden: str,
    c: float,
    variance: float,
    gain: float,
    epochs: int,
    seed: int,
) -> dict[str, Any]:
    """One run; the validation likelihood along it, and test likelihood and epoch where that is best."""
    train, validation, test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the theory has to say is in the documents
        rbm = pm.initialize(
            train.shape[1], n_hidden, visible=pm.gaussian(variance), hidden=hidden, hidden_bias=c,
            visible_bias="data", data=train, gain=gain, rng=seed,
        )  # fmt: skip
    best = {"validation": -np.inf, "rbm": rbm, "epoch": 0}

    def keep(state: pm.TrainState) -> None:
        if (
            state.records
            and state.records[-1].epoch == state.epoch
            and state.records[-1].validation > best["validation"]
        ):
            best.update(validation=state.records[-1].validation, rbm=state.rbm, epoch=state.epoch)

    result = pm.train(
        rbm, train, epochs=epochs, optimizer=pm.Adam(RATE), batch_size=BATCH, evaluate=max(1, epochs // 40),
        validation=validation, rng=seed, callback=keep,
    )  # fmt: skip
    history = result.history
    early = int(np.searchsorted(history.epoch, epochs // 10))
    return {
        "validation": best["validation"],
        "test": pm.log_likelihood(best["rbm"], test).value,
        "epoch": best["epoch"],
        "validation early": float(history.validation[early]),
        "early epoch": int(history.epoch[early]),
    }


SETS = {
    "drybean": (2000, 12),
    "drybean, whitened": (2000, 12),
    "digits": (1000, 14),
}  # training points, hidden units


def run_set(name: str, trials: int, epochs: int) -> dict[str, Any]:
    """All runs on one data set."""
    n_train, n_hidden = SETS[name]
    points = load_points(name.split(",")[0])
    rows: dict[str, list[Any]] = {}
    shapes: list[list[int]] = []
    start = time.perf_counter()
    for trial in range(trials):
        parts = split(points, n_train, trial, name.endswith("whitened"))
        shapes = [list(part.shape) for part in parts]
        for key, value in fit_normals(*parts).items():
            rows.setdefault(key, []).append(value)
        for hidden, c in HIDDEN:
            label = f"gaussian-{hidden}, c = {c:g}"
            runs = {s: train_machine(parts, n_hidden, hidden, c, s, 1.0, epochs, trial) for s in VARIANCES}
            chosen = max(runs, key=lambda s: runs[s]["validation"])
            rows.setdefault(label, []).append({"variance": chosen, **runs[chosen]})
            for gain in GAINS:
                if gain != 1.0:
                    run = train_machine(parts, n_hidden, hidden, c, chosen, gain, epochs, trial)
                    rows.setdefault(f"{label}, gain {gain:g}", []).append(run)
            print(name, trial, label, rows[label][-1], f"{time.perf_counter() - start:.0f} s", flush=True)
    for key, values in rows.items():
        numbers = [value if isinstance(value, float) else value["test"] for value in values]
        print(f"  {key:34s} {np.mean(numbers):9.3f} +- {np.std(numbers, ddof=1) / np.sqrt(len(numbers)):.3f}")
    return {"shapes": shapes, "n_hidden": n_hidden, "trials": trials, "epochs": epochs, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--only", choices=SETS)
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(RECORDS.read_text())["results"] if RECORDS.exists() else {}
    for name in SETS if options.only is None else (options.only,):
        results |= {"rate": RATE, "batch": BATCH, name: run_set(name, options.trials, options.epochs)}
        write_json(RECORDS, results, "paramagnet", "numpy", "scikit-learn")


if __name__ == "__main__":
    main()
