"""Sweeps and annealing by int16 sums against the portable kernels, in turn within one process.

    python benchmarks/int16_sweeps.py [--machine FILE] [--json FILE]

Needs a processor with AVX-512BW. FILE is a machine that `RBM.save` wrote, for instance one that was trained
on MNIST, whose units change seldom. One thread is timed by processor time, all threads on the clock.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import paramagnet as pm
from paramagnet.sampling import int16
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from ratio import interleave, print_ratios, write_json

CHAINS, SWEEPS, TEMPERATURES = 1000, 40, 50


def by_kernels(call: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """The same call with either kind of kernels."""

    def run(wanted: str) -> object:
        os.environ[int16.ENVIRONMENT] = wanted
        return call()

    return {"portable": lambda: run("portable"), "int16": lambda: run("")}


def main() -> None:
    """Print the ratios, and write them if asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    if not int16.has_instructions():
        raise SystemExit("This processor has no AVX-512BW.")
    machines = {
        "784 x 500, fresh, bit (c = -5)": pm.initialize(784, 500, hidden="bit", hidden_bias=-5.0, rng=0),
        "784 x 500, fresh, spin": pm.initialize(784, 500, hidden="spin", rng=0),
        "20 x 20, fresh, spin": pm.initialize(20, 20, hidden="spin", rng=0),
    }
    if options.machine is not None:
        machines[options.machine.name] = pm.RBM.load(options.machine)
    record: dict[str, object] = {}
    for name, rbm in machines.items():
        chains = Chains.start(rbm.visible, (CHAINS, rbm.n_visible), np.random.default_rng(1))
        chains = run_sweeps(layers_of(rbm), chains, 200)
        for n_threads, clock in ((1, time.process_time), (None, time.perf_counter)):
            calls: dict[str, Callable[[], object]] = {
                f"{SWEEPS} sweeps": lambda n=n_threads, c=chains, m=rbm: run_sweeps(
                    layers_of(m), c, SWEEPS, n_threads=n
                ),
                f"mAIS, {TEMPERATURES} temperatures": lambda n=n_threads, m=rbm: pm.estimate_log_partition(
                    m, n_samples=CHAINS, n_temperatures=TEMPERATURES, rng=1, n_threads=n
                ),
            }
            for work, call in calls.items():
                title = f"{name}: {work}, {CHAINS} chains, {'one thread' if n_threads else 'all threads'}"
                times = interleave(by_kernels(call), rounds=options.rounds, clock=clock)
                print_ratios(title, times, reference="portable")
                record[title] = {**times, "changed": chains.changed}
    if options.json is not None:
        write_json(options.json, record, "numpy", "numba")


if __name__ == "__main__":
    main()
