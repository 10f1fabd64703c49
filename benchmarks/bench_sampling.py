"""Sweeps of Gibbs chains and steps of mAIS against their bare float32 matrix products.

    python benchmarks/bench_sampling.py [--rounds 5] [--machine FILE ...] [--processor-time] [--json FILE]

784 x 500 units, two threads. Baseline: the same products and nothing else, the better of two BLAS threads
and of one BLAS thread on each of two blocks. A PCD-40 update is 40 sweeps of 1000 chains and the averages
of the gradient. Each --machine (of 784 x 500 units, for instance trained on MNIST) is measured beside fresh
ones: in a trained machine few units change in a sweep. --processor-time sums the time of both threads: for
a machine that is busy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import paramagnet as pm
from paramagnet.layout import Layout
from paramagnet.learning.moments import chain_moments
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from ratio import interleave, print_ratios, write_json

N_VISIBLE, N_HIDDEN, N_SWEEPS = 784, 500, 40


def bare_products(n_chains: int, n_sweeps: int, n_threads: int, n_blocks: int) -> Callable[[], None]:
    """The products of so many sweeps, in blocks, one BLAS thread each or two for all."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(N_VISIBLE, N_HIDDEN)).astype(np.float32)
    back = np.ascontiguousarray(w.T)
    blocks = []
    for _ in range(n_blocks):
        v = rng.choice(np.array([-1, 1], np.float32), size=(n_chains // n_blocks, N_VISIBLE))
        blocks.append((v, v @ w, np.empty_like(v), np.empty((len(v), N_HIDDEN), np.float32)))

    def run(block: tuple[Any, ...]) -> None:
        v, h, new_v, new_h = block
        for _ in range(n_sweeps):
            np.matmul(v, w, out=new_h)
            np.matmul(h, back, out=new_v)

    def call() -> None:
        with threadpool_limits(n_threads):
            if n_blocks == 1:
                run(blocks[0])
            else:
                with ThreadPoolExecutor(n_blocks) as pool:
                    list(pool.map(run, blocks))

    return call


def update(rbm: pm.RBM, chains: Chains, dense_above: float | None) -> Callable[[], None]:
    """The sampled part of a PCD update: float32 weights, sweeps, averages."""
    layout = Layout.of(rbm)

    def call() -> None:
        layers = layers_of(rbm)
        moved = run_sweeps(layers, chains, N_SWEEPS, n_threads=2, dense_above=dense_above)
        chain_moments(layout, moved, layers[1])

    return call


def compare_updates(title: str, rbm: pm.RBM, n_chains: int, settings: dict[str, Any]) -> dict[str, Any]:
    chains = Chains.start(rbm.visible, (n_chains, N_VISIBLE), np.random.default_rng(0))
    chains = run_sweeps(layers_of(rbm), chains, 300)
    times = interleave(
        {
            "products, 2 BLAS threads": bare_products(n_chains, N_SWEEPS, 2, 1),
            "products, 2 blocks": bare_products(n_chains, N_SWEEPS, 1, 2),
            "PCD-40, dense": update(rbm, chains, 0.0),
            "PCD-40": update(rbm, chains, None),
        },
        **settings,
    )
    bare = min(times["products, 2 BLAS threads"], times["products, 2 blocks"])
    changed = run_sweeps(layers_of(rbm), chains, N_SWEEPS).changed
    print_ratios(f"{title}, {n_chains} chains", times, reference="products, 2 blocks")
    print(f"  units that change per sweep: visible {changed[0]:.1%}, hidden {changed[1]:.1%}")
    ratio, dense = times["PCD-40"] / bare, times["PCD-40, dense"] / bare
    print(f"  PCD-40 over bare products: {ratio:.3f}, dense {dense:.3f}\n")
    return {"seconds": times, "changed": changed, "ratio": ratio, "dense": dense}


def compare_annealing(
    rbm: pm.RBM, n_samples: int, n_temperatures: int, settings: dict[str, Any]
) -> dict[str, Any]:
    times = interleave(
        {
            "products, 2 BLAS threads": bare_products(n_samples, n_temperatures, 2, 1),
            "products, 2 blocks": bare_products(n_samples, n_temperatures, 1, 2),
            "mAIS": lambda: estimate_log_partition(
                rbm, n_samples=n_samples, n_temperatures=n_temperatures, rng=0, n_threads=2
            ),
        },
        **settings,
    )
    bare = min(times["products, 2 BLAS threads"], times["products, 2 blocks"])
    print_ratios(f"mAIS, {n_samples} samples, {n_temperatures} temperatures", times, "products, 2 blocks")
    print(f"  mAIS over bare products: {times['mAIS'] / bare:.3f}\n")
    return {"seconds": times, "ratio": times["mAIS"] / bare}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", nargs="*", default=[])
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    settings = {
        "rounds": options.rounds,
        "clock": time.process_time if options.processor_time else time.perf_counter,
    }
    machines = {
        f"fresh, {hidden}": pm.initialize(N_VISIBLE, N_HIDDEN, hidden=hidden, hidden_bias=bias, rng=0)
        for hidden, bias in (("bit", -5.0), ("spin", 0.0))
    }
    machines |= {Path(name).stem: pm.RBM.load(name) for name in options.machine}
    results: dict[str, Any] = {"mAIS": compare_annealing(machines["fresh, bit"], 4500, 20, settings)}
    for title, rbm in machines.items():
        for n_chains in (1000, 100):
            results[f"{title}, {n_chains}"] = compare_updates(title, rbm, n_chains, settings)
    if options.json:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
