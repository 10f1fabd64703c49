"""MNIST learned with the int16 kernels and with the portable ones: do they end at the same likelihood?

The plan is benchmarks/mnist_kernels.toml, which names the commands and the measure; its records are
benchmarks/data/mnist_kernels_int16.jsonl and mnist_kernels_portable.jsonl. Trials are paired: images, initial
weights and random numbers are the same, so that only rounding and the kernels differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from paramagnet.sweeps.store import RunRecord, Store

DATA = Path(__file__).parent / "data"
KERNELS = ("int16", "portable")
EPOCHS = (20, 40)  # the second decides
FEWEST = 3  # pairs from which an error is given


def read_pairs(folder: Path = DATA) -> list[tuple[RunRecord, RunRecord]]:
    """The records of the trials that both kernels have learned, int16 first, in the order of trials."""
    found = []
    for name in KERNELS:
        records = {record.trial: record for record in Store(folder / f"mnist_kernels_{name}.jsonl").records()}
        for record in records.values():
            if f"{name} kernels" not in record.environment:
                raise ValueError(f"trial {record.trial} of {name} was run by {record.environment}")
        found.append(records)
    return [(found[0][trial], found[1][trial]) for trial in sorted(found[0].keys() & found[1].keys())]


def differences(pairs: Sequence[tuple[RunRecord, RunRecord]], epoch: int) -> list[float]:
    """Log-likelihood of the learned points after an epoch, portable minus int16, nats per point."""

    def level(record: RunRecord) -> float:
        return record.log_likelihood[record.epochs.index(epoch)]

    return [level(portable) - level(int16) for int16, portable in pairs]


def describe_kernels(pairs: Sequence[tuple[RunRecord, RunRecord]]) -> str:
    """What the pairs say, in a paragraph."""
    if len(pairs) < FEWEST:
        return f"{len(pairs)} of the planned pairs of runs are there; a comparison needs {FEWEST}."
    parts = []
    for epoch in EPOCHS:
        values = np.array(differences(pairs, epoch))
        error = values.std(ddof=1) / math.sqrt(len(values))
        parts.append((values, float(values.mean()), float(error)))
    after = " and ".join(map(str, EPOCHS))
    means = " and ".join(f"{mean:+.2f} +- {error:.2f}" for _, mean, error in parts)
    each = ", ".join(f"{value:+.2f}" for value in parts[-1][0])
    _, mean, error = parts[-1]
    freedom, last = len(pairs) - 1, EPOCHS[-1]
    chance = 2.0 * student.sf(abs(mean) / error, freedom)
    if abs(mean) <= 2.0 * error:
        verdict = "within two standard errors of zero, so these runs show no difference between the kernels"
    else:
        higher = "portable" if mean > 0.0 else "int16"
        verdict = (
            "beyond two standard errors, so by the rule that was fixed the kernels are suspected, the "
            f"{higher} ones being ahead"
        )
    return (
        f"{len(pairs)} pairs of runs at 784 x 500 spins, with the same images, initial weights and random "
        "numbers, were learned with the int16 kernels and with the portable ones "
        "(`benchmarks/mnist_kernels.toml`, fixed before the runs). The portable kernels are ahead by "
        f"{means} nats in the mean after {after} epochs (standard error over the pairs; after {last} epochs "
        f"{each}). After {last} epochs that is {verdict}. Equal kernels would differ by as much in "
        f"{100.0 * chance:.0f} % of such experiments, and by more than two standard errors in "
        f"{200.0 * student.sf(2.0, freedom):.0f} % (Student's t with {freedom} degrees of freedom)."
    )
