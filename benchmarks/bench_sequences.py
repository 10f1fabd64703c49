"""What alignments cost: reading, weights by similarity, effective couplings.

    PARAMAGNET_DATA=FOLDER python benchmarks/bench_sequences.py [--rounds 5] [--large] [--json FILE]

Weights of 4,025 sequences of 31 sites, the size of the WW domain, are to take less than 1 s, those of 50,000
of 100 sites (``--large``) less than 60 s on two cores. Elapsed time on all cores; kernels are compiled
before, and the seconds of that are printed. Without a local copy of the WW domain a drawn family of its size
is taken. The rival is a loop over the sequences, each compared with all by NumPy.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.data.alphabet import ALPHABETS
from ratio import interleave, print_ratios, write_json

SMALL, LARGE = (4025, 31), (50_000, 100)
PART = 500  # sequences that the loop of NumPy compares; its time is scaled up


def draw_family(n_sequences: int, n_sites: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences in clusters of near copies."""
    centres = rng.integers(21, size=(n_sequences // 20, n_sites))
    states = centres[rng.integers(len(centres), size=n_sequences)]
    changed = rng.random((n_sequences, n_sites)) < rng.uniform(0.0, 0.5, (n_sequences, 1))
    return np.where(changed, rng.integers(21, size=states.shape), states).astype(np.uint8)


def loop(states: np.ndarray, n_rows: int, identity: float = 0.8) -> np.ndarray:
    least = np.ceil(identity * states.shape[1] - 1e-9)
    return np.array([1.0 / ((states == row).sum(axis=1) >= least).sum() for row in states[:n_rows]])


def weights(states: np.ndarray, title: str, rounds: int, allowed: float) -> dict[str, Any]:
    found = pm.data.sequence_weights(states)
    assert np.array_equal(found[:PART], loop(states, PART))
    rivals = {
        "sequence_weights": lambda: pm.data.sequence_weights(states),
        "loop, a part": lambda: loop(states, PART),
    }
    times = interleave(rivals, rounds=rounds)
    times["loop over sequences"] = len(states) / PART * times.pop("loop, a part")
    print_ratios(f"weights, {title}, effective number {found.sum():.1f}", times, "loop over sequences")
    print(f"  {times['sequence_weights']:.3f} s (allowed: {allowed:g})\n")
    return {"seconds": times, "allowed": allowed}


def couplings(states: np.ndarray, rounds: int) -> dict[str, Any]:
    rbm = pm.initialize(states.shape[1], 20, visible="categorical(21)", scheme="xavier", rng=0)
    times = interleave(
        {
            "contexts": lambda: pm.couplings.effective_couplings(rbm, states, n_contexts=50, rng=0),
            "second-order": lambda: pm.couplings.effective_couplings(rbm, states, method="second-order"),
        },
        rounds=rounds,
    )
    print_ratios(f"couplings, {states.shape[1]} sites, 20 hidden bits, 50 contexts", times, "contexts")
    return {"seconds": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.data.AlignmentWarning)
    began = time.perf_counter()
    pm.data.sequence_weights(np.zeros((2, 3)))
    compiling = time.perf_counter() - began
    print(f"kernel compiled or loaded in {compiling:.2f} s")
    rng = np.random.default_rng(0)
    results: dict[str, Any] = {"compiling": compiling}
    file = Path(os.environ.get("PARAMAGNET_DATA", "")) / "sequences" / "ww_sequences.fa"
    with tempfile.TemporaryDirectory() as folder:
        if not file.is_file():
            file = Path(folder, "family.fa")
            pm.data.write_fasta(file, draw_family(*SMALL, rng), ALPHABETS["protein"])
        family = pm.data.read_alignment(file)
        reading = interleave({"read_alignment": lambda: pm.data.read_alignment(file)}, rounds=options.rounds)
        print_ratios(f"reading {family}", reading, "read_alignment")
    results["reading"] = {"seconds": reading}
    results["small"] = weights(family.data, f"{len(family)} x {family.n_sites}", options.rounds, 1.0)
    if options.large:
        results["large"] = weights(draw_family(*LARGE, rng), "50,000 x 100", min(options.rounds, 2), 60.0)
    results["couplings"] = couplings(family.data, min(options.rounds, 2))
    if options.json:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
