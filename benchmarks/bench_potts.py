"""An update of a machine with categorical visible units beside the Potts machine of rbms, and its memory.

    python benchmarks/bench_potts.py [--rounds 20] [--memory] [--out result.json]

Both packages take the same states, 500 chains that make ten sweeps and a batch of 500 points, on one thread;
the clock is processor time, and the rivals take turns. Ours trains by Adam and keeps the zero-sum gauge;
rbms makes a plain step, gauge included (`ensure_zero_sum_gauge`), in float32.

``--memory`` measures the largest resident memory of a few updates of 1000 x 21 x 500 in a process of its own,
in multiples of the parameters in float64.

Needs rbms and PyTorch, as `bench_peers.py` does, unless ``--memory`` is given.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import paramagnet as pm
from ratio import interleave, machine_facts, print_ratios, write_json

N_SITES, N_STATES, N_HIDDEN = 31, 21, 100
N_CHAINS, N_STEPS, RATE = 500, 10, 1e-3
LARGE = 1000, 21, 500


def ours(points: np.ndarray) -> Callable[[], object]:
    """One update of paramagnet per call."""
    visible = pm.categorical(N_STATES)
    start = pm.initialize(N_SITES, N_HIDDEN, visible=visible, hidden="bit", scheme="hinton", rng=0)
    gradient = pm.PCD(N_CHAINS, N_STEPS, n_relax=0, n_threads=1)
    options = {"gradient": gradient, "optimizer": pm.Adam(RATE), "rng": 0, "evaluate": [10**8]}
    steps = pm.training_steps(start, points, epochs=10**8, **options)
    next(steps)
    return lambda: next(steps)


def of_rbms(points: np.ndarray) -> Callable[[], object]:
    """One update of rbms per call."""
    import torch
    from rbms.potts_bernoulli.classes import PBRBM
    from rbms.potts_bernoulli.utils import ensure_zero_sum_gauge
    from rbms.training.pcd import fit_batch_pcd

    torch.set_num_threads(1)
    torch.manual_seed(0)
    weights = 0.01 * torch.randn(N_SITES, N_STATES, N_HIDDEN)
    machine = PBRBM(weights, torch.zeros(N_SITES, N_STATES), torch.zeros(N_HIDDEN))
    machine.init_grad()
    optimizer = torch.optim.SGD(machine.parameters(), lr=RATE, maximize=True)
    batch = torch.from_numpy(points.astype(np.float32)), torch.ones(len(points))
    chains = machine.init_chains(N_CHAINS)

    def update() -> None:
        nonlocal chains
        optimizer.zero_grad(set_to_none=False)
        chains, _ = fit_batch_pcd(batch, chains, machine, N_STEPS, 1.0, centered=False)
        optimizer.step()
        ensure_zero_sum_gauge(machine)

    return update


def use_memory() -> None:
    """A few updates of a large machine; prints the peak over the parameters, and the memory before."""
    n_sites, n_states, n_hidden = LARGE
    rng = np.random.default_rng(0)
    points = rng.integers(n_states, size=(1000, n_sites), dtype=np.int8)
    warm = pm.initialize(3, 3, visible=pm.categorical(n_states), hidden="bit", scheme="hinton", rng=0)
    gradient = pm.PCD(500, 2, n_relax=0)
    options = {"gradient": gradient, "optimizer": pm.Adam(RATE), "batch_size": 500, "evaluate": [0]}
    options["log_z"] = lambda rbm, epoch: pm.Estimate(0.0)  # not what is measured
    pm.train(warm, points[:, :3], epochs=2, rng=0, **options)  # compiled before the memory is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = pm.initialize(
        n_sites, n_hidden, visible=pm.categorical(n_states), hidden="bit", scheme="hinton", rng=0
    )
    pm.train(start, points, epochs=3, rng=0, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 8 * n_sites * n_states * n_hidden / 1024.0
    print(f"{(peak - before) / size:.2f} times the parameters ({size / 1024:.0f} MiB)")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.in_this_process:
        use_memory()
        return
    if arguments.memory:
        subprocess.run([sys.executable, __file__, "--memory", "--in-this-process"], check=True)
        return
    points = np.random.default_rng(0).integers(N_STATES, size=(500, N_SITES)).astype(np.float64)
    rivals = {"paramagnet": ours(points), "rbms": of_rbms(points)}
    times = interleave(rivals, rounds=arguments.rounds, at_least=0.2, clock=time.process_time)
    title = f"PCD-{N_STEPS}, {N_SITES} x {N_STATES} x {N_HIDDEN}, {N_CHAINS} chains, one thread"
    print_ratios(title, times, reference="rbms")
    if arguments.out:
        facts = machine_facts("paramagnet", "rbms", "torch", "numpy", "numba")
        write_json(arguments.out, {"machine": facts, title: times})


if __name__ == "__main__":
    main()
