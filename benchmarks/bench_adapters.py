"""Features for a classifier of scikit-learn's digits: our estimator, BernoulliRBM at its scale and at ours.

    python benchmarks/bench_adapters.py [--seeds 5] [--json FILE]

Each seed is another split into 80 % training and 20 % test points, other initial weights, other chains. All
machines have 100 hidden units and see the same data, binarized at the thresholds of Otsu of each feature of
the training points. Accuracy is that of a logistic regression on the features. Log-likelihoods are those of
the test points, in nats, with ln Z by mAIS. Without scikit-learn nothing is measured.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.sweeps.text_tables import pipe_table
from ratio import write_json

N_HIDDEN = 100


def fit_theirs(bits: np.ndarray, seed: int, **options: Any) -> Any:
    from sklearn.neural_network import BernoulliRBM

    return BernoulliRBM(N_HIDDEN, random_state=seed, **options).fit(bits)


def fit_theirs_at_our_scale(bits: np.ndarray, seed: int, **options: Any) -> Any:
    """The same updates as in `fit_theirs`, from other initial weights."""
    from sklearn.neural_network import BernoulliRBM

    from paramagnet.adapters.bernoulli import warm_start_bernoulli_rbm

    machine = BernoulliRBM(N_HIDDEN, random_state=seed, **options)
    warm_start_bernoulli_rbm(machine, bits.shape[1], rng=seed)
    for _ in range(machine.n_iter):
        for start in range(0, len(bits), machine.batch_size):
            machine.partial_fit(bits[start : start + machine.batch_size])
    return machine


# What was measured: plain learning at a constant rate, not the recipe that is the default now.
PLAIN: dict[str, Any] = {
    "visible_bias": "data",
    "learning_rate": 0.005,
    "batch_size": 100,
    "n_iter": 50,
    "centred": False,
    "gradient": pm.PCD(n_chains=100, n_steps=50, n_relax=200),
    "guard": False,
}


def fit_ours(bits: np.ndarray, seed: int, **options: Any) -> Any:
    from paramagnet.adapters.scikit import RBMTransformer

    return RBMTransformer(N_HIDDEN, random_state=seed, **PLAIN | options).fit(bits)


RIVALS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "`BernoulliRBM`, its defaults: sigma 0.01, 10 epochs": lambda x, s: fit_theirs(x, s),
    "`BernoulliRBM`, our scale, 10 epochs": lambda x, s: fit_theirs_at_our_scale(x, s),
    "`BernoulliRBM`, sigma 0.01, 50 epochs": lambda x, s: fit_theirs(x, s, n_iter=50),
    "`BernoulliRBM`, our scale, 50 epochs": lambda x, s: fit_theirs_at_our_scale(x, s, n_iter=50),
    "`BernoulliRBM`, sigma 0.01, 50 epochs, rate 0.01": lambda x, s: fit_theirs(
        x, s, n_iter=50, learning_rate=0.01
    ),
    "`BernoulliRBM`, our scale, 50 epochs, rate 0.01": lambda x, s: fit_theirs_at_our_scale(
        x, s, n_iter=50, learning_rate=0.01
    ),
    "`RBMTransformer`, plain learning, our scale, 50 epochs": fit_ours,
    "`RBMTransformer`, sigma 0.01": lambda x, s: fit_ours(
        x, s, gain=0.01 / pm.weight_std(x.shape[1], N_HIDDEN, hidden_bias=-2.5)
    ),
    "`RBMTransformer`, `hidden_bias=0`": lambda x, s: fit_ours(x, s, hidden_bias=0.0),
    "`RBMTransformer`, `gradient=CD(1)`": lambda x, s: fit_ours(x, s, gradient=pm.CD(1)),
}


def measure(seed: int) -> dict[str, dict[str, float]]:
    """Accuracy, log-likelihood with its error, and fit time of all rivals for one seed."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    from paramagnet.adapters.bernoulli import from_sklearn

    split = train_test_split(*load_digits(return_X_y=True), test_size=0.2, random_state=seed)
    train, test, train_labels, test_labels = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.data.ConstantDataWarning)
        binarizer = pm.fit_binarizer(train, units="bit")
    train, test = binarizer.apply(train), binarizer.apply(test)

    def accuracy(train_features: np.ndarray, test_features: np.ndarray) -> float:
        classifier = LogisticRegression(max_iter=5000).fit(train_features, train_labels)
        return float(classifier.score(test_features, test_labels))

    results = {"no machine: the binarized pixels": {"accuracy": accuracy(train, test)}}
    for name, fit in RIVALS.items():
        began = time.perf_counter()
        machine = fit(train, seed)
        seconds = time.perf_counter() - began
        ours = hasattr(machine, "rbm_")
        rbm = machine.rbm_ if ours else from_sklearn(machine)
        log_z = pm.estimate_log_partition(rbm, rng=seed)
        points = 2.0 * test - 1.0 if ours else test
        estimate = pm.log_likelihood(rbm, points, log_partition=log_z)
        results[name] = {
            "accuracy": accuracy(machine.transform(train), machine.transform(test)),
            "log_likelihood": estimate.value,
            "error": estimate.error,
            "n_effective": estimate.n_effective,
            "seconds": seconds,
        }
    return results


def table(results: list[dict[str, dict[str, float]]]) -> str:
    """The means over the seeds as Markdown, with the standard deviations between the seeds."""
    rows = []
    for name, first in results[0].items():
        columns = {key: np.array([result[name][key] for result in results]) for key in first}
        accuracy = 100.0 * columns["accuracy"]
        cells = [f"{accuracy.mean():.1f} +- {accuracy.std(ddof=1):.1f}", "", ""]
        if "seconds" in columns:
            values = columns["log_likelihood"]
            cells[1] = f"{values.mean():.2f} +- {values.std(ddof=1):.2f}"
            cells[2] = f"{columns['seconds'].min():.2g}"
        rows.append([name, *cells])
    return pipe_table(["features from", "test accuracy, %", "test log-likelihood, nats", "fit, s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        print('scikit-learn is not installed (pip install ".[sklearn]"): nothing is measured.')
        return
    warm = np.random.default_rng(0).integers(0, 2, size=(100, 64)).astype(float)
    fit_ours(warm, 0, n_iter=1)  # compiles the kernels
    results = []
    for seed in range(options.seeds):
        results.append(measure(seed))
        print(f"seed {seed} done", flush=True)
    print(table(results), end="")
    worst = max(r[name]["error"] for r in results for name in RIVALS)
    fewest = min(r[name]["n_effective"] for r in results for name in RIVALS)
    print(f"errors of the log-likelihoods: at most {worst:.3f}")
    print(f"effective samples: at least {fewest:.0f} of 1000")
    if options.json:
        write_json(options.json, {"seeds": results}, "numpy", "scikit-learn", "numba", "paramagnet")


if __name__ == "__main__":
    main()
