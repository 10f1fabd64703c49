"""What it costs to get data ready: Otsu on MNIST against reading the file, Dry Bean from file to spins.

    PARAMAGNET_DATA=FOLDER python benchmarks/bench_data.py [--rounds 10] [--json FILE]

Otsu on all 60,000 images (thresholds and the partition) is to take less time than reading and unpacking
them, Dry Bean less than 0.3 s, imports apart. One thread, processor time. Without local copies of the data
nothing is measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet.data.binarize import fit_binarizer
from paramagnet.data.datasets import load_dataset
from paramagnet.data.download import find_local
from paramagnet.data.files import read_table
from paramagnet.data.sources import SOURCES
from paramagnet.data.thresholds import otsu_rows
from ratio import interleave, print_ratios, write_json

NUMPY_IMAGES = 3_000  # for the NumPy way, which is slow; its time is scaled up


def local_path(name: str) -> Path | None:
    source = SOURCES[name]
    return find_local(source, source.files[0], None)


def textbook(images: np.ndarray) -> np.ndarray:
    """Histograms by bincount and cumulative sums over all levels, all images at once."""
    n_images, n = images.shape
    offsets = 256 * np.arange(n_images)[:, None]
    counts = np.bincount((images + offsets).ravel(), minlength=256 * n_images).reshape(n_images, 256)
    n_low = np.cumsum(counts, axis=1)[:, :-1].astype(float)
    sums = np.cumsum(counts * np.arange(256), axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (n * sums[:, :-1] - n_low * sums[:, -1:]) ** 2 / (n_low * (n - n_low))
    return np.nanargmax(np.where(np.isfinite(variance), variance, 0.0), axis=1) + 0.5


def mnist(path: Path, rounds: int) -> dict[str, Any]:
    images = read_table(path).data
    binarizer = fit_binarizer(images, per="point")
    some = images[:NUMPY_IMAGES]
    rivals = {
        "read and unpack": lambda: read_table(path),
        "thresholds": lambda: binarizer.thresholds_of(images),
        "thresholds, partition": lambda: binarizer.partition(images, binarizer.thresholds_of(images)),
        "the same, float64 spins": lambda: binarizer.apply(images),
        "textbook NumPy, a part": lambda: textbook(some),
        "sorting, a part": lambda: otsu_rows(np.sort(some.astype(float), axis=1)),
    }
    times = interleave(rivals, rounds=rounds, clock=time.process_time)
    scale = len(images) / NUMPY_IMAGES
    for name in [name for name in times if name.endswith(", a part")]:
        times[name.removesuffix(", a part")] = scale * times.pop(name)
    print_ratios("MNIST, 60,000 images", times, reference="read and unpack")
    share = times["thresholds, partition"] / times["read and unpack"]
    print(f"  Otsu takes {share:.2f} of the time of reading (allowed: 1)\n")
    return {"seconds": times, "otsu_over_reading": share, "allowed": 1.0}


def drybean(path: Path, rounds: int) -> dict[str, Any]:
    raw = read_table(path).data
    times = interleave(
        {
            "load_dataset": lambda: load_dataset("drybean"),
            "reading alone": lambda: read_table(path),
            "thresholds alone": lambda: fit_binarizer(raw),
        },
        rounds=rounds,
        clock=time.process_time,
    )
    print_ratios("Dry Bean, 13,611 points", times, reference="load_dataset")
    print(f"  loaded and binarized in {times['load_dataset']:.3f} s (allowed: 0.3)\n")
    return {"seconds": times, "allowed": 0.3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, measure in (("mnist", mnist), ("drybean", drybean)):
        path = local_path(name)
        if path is None:
            print(f"no local copy of {name}: set PARAMAGNET_DATA", file=sys.stderr)
        else:
            results[name] = measure(path, options.rounds)
    if options.json and results:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
