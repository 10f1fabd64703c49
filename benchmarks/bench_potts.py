"""An update of a machine with categorical visible units beside the Potts machine of rbms, and its memory.

    python benchmarks/bench_potts.py [--rounds 20] [--json benchmarks/data/potts.json]
    python benchmarks/bench_potts.py --memory [--json benchmarks/data/potts.json]

Both packages take the same states, 500 chains that make ten sweeps and a batch of 500 points, and take turns.
Two machines: "fresh" has weights of 0.01, and about all sites change in every sweep; "ordered" has weights at
twice the theory's scale, as after training. On one thread the clock is processor time; with the default
number of threads of each package (all cores) it is wall time. Ours trains by Adam and keeps the zero-sum
gauge; rbms makes a plain step, gauge included (`ensure_zero_sum_gauge`), in float32.

The memory is the largest resident memory of a few updates of 1000 x 21 x 500 in a process of its own, less
that before, in multiples of the parameters in float64; ``--memory`` measures it alone, and leaves the times
of a record as they are. The initial machine,
which the caller holds, is one of them. With the guard of `train`, three of the updates are checked, roughly,
and none fails at the small learning rate; it keeps the best machine so far in a temporary file. Further rows
have weights of the points, centred learning, both with ReLU units, and SGD in place of Adam.

Needs rbms and PyTorch, as `bench_peers.py` does, unless ``--memory`` is given.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import paramagnet as pm
from ratio import interleave, print_ratios, write_json

N_SITES, N_STATES, N_HIDDEN = 31, 21, 100
N_CHAINS, N_STEPS, RATE = 500, 10, 1e-3
LARGE, N_LARGE = (1000, 21, 500), 1000


def make_machine(name: str) -> pm.RBM:
    """The machine whose update is timed."""
    units = {"visible": pm.categorical(N_STATES), "hidden": "bit"}
    if name == "fresh":
        return pm.initialize(N_SITES, N_HIDDEN, scheme="hinton", rng=0, **units)
    return pm.initialize(N_SITES, N_HIDDEN, gain=2.0, rng=0, **units)


def ours(start: pm.RBM, points: np.ndarray, n_threads: int | None) -> Callable[[], object]:
    """One update of paramagnet per call."""
    gradient = pm.PCD(N_CHAINS, N_STEPS, n_relax=0, n_threads=n_threads)
    options = {"gradient": gradient, "optimizer": pm.Adam(RATE), "rng": 0, "evaluate": [10**8]}
    steps = pm.training_steps(start, points, epochs=10**8, **options)
    next(steps)
    return lambda: next(steps)


def of_rbms(start: pm.RBM, points: np.ndarray) -> Callable[[], object]:
    """One update of rbms per call."""
    import torch
    from rbms.potts_bernoulli.classes import PBRBM
    from rbms.potts_bernoulli.utils import ensure_zero_sum_gauge
    from rbms.training.pcd import fit_batch_pcd

    torch.manual_seed(0)
    arrays = (start.weights_by_state, start.bias_by_state, start.hidden_bias)
    machine = PBRBM(*(torch.from_numpy(array.astype(np.float32)) for array in arrays))
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


MEMORY = {  # what differs in a run, by the name of its row
    "guard=False": {},
    "with the guard": {"guard": pm.Guard(every=2, n_temperatures=10)},
    "sample_weight": {"sample_weight": np.linspace(0.1, 1.0, N_LARGE)},
    "centred": {"centred": True},
    "centred, sample_weight, ReLU units": {
        "centred": True,
        "sample_weight": np.linspace(0.1, 1.0, N_LARGE),
        "hidden": "relu",
    },
    "SGD with momentum": {"optimizer": pm.SGD(1e-6, momentum=0.9)},
}


def use_memory(name: str) -> None:
    """A few updates of a large machine; prints the rise of the peak over the parameters."""
    n_sites, n_states, n_hidden = LARGE
    rng = np.random.default_rng(0)
    points = rng.integers(n_states, size=(N_LARGE, n_sites), dtype=np.int8)
    options = {
        "gradient": pm.PCD(500, 2, n_relax=0),
        "optimizer": pm.Adam(1e-6),
        "batch_size": 500,
        "evaluate": [0],
        "guard": False,
        "log_z": lambda rbm, epoch: pm.Estimate(0.0),  # not what is measured
    } | MEMORY[name]
    units = {"visible": pm.categorical(n_states), "hidden": options.pop("hidden", "bit"), "scheme": "hinton"}
    warm = pm.initialize(3, 3, rng=0, **units)
    pm.train(warm, points[:, :3], epochs=2, rng=0, **options)  # compiled before the memory is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = pm.initialize(n_sites, n_hidden, rng=0, **units)
    pm.train(start, points, epochs=3, rng=0, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 8 * n_sites * n_states * n_hidden / 1024.0
    print((peak - before) / size)


def measure_memory() -> dict[str, float]:
    """The numbers of `use_memory`, each in a new process."""
    found = {}
    for name in MEMORY:
        command = [sys.executable, __file__, "--in-this-process", name]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = float(run.stdout)
        print(f"memory, {name}: {found[name]:.2f} times the parameters")
    return found


def measure_times(rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of the fastest update of each package, by machine and number of threads."""
    import torch

    points = np.random.default_rng(0).integers(N_STATES, size=(500, N_SITES)).astype(np.float64)
    found = {}
    default = torch.get_num_threads()
    for name in ("fresh", "ordered"):
        start = make_machine(name)
        for n_threads in (1, None):
            torch.set_num_threads(n_threads or default)
            rivals = {"paramagnet": ours(start, points, n_threads), "rbms": of_rbms(start, points)}
            clock = time.process_time if n_threads == 1 else time.perf_counter
            times = interleave(rivals, rounds=rounds, at_least=0.2, clock=clock)
            threads = "one thread" if n_threads == 1 else "default threads"
            title = f"{name}, {threads}"
            print_ratios(
                f"PCD-{N_STEPS}, {N_SITES} x {N_STATES} x {N_HIDDEN}, {N_CHAINS} chains, {title}",
                times,
                "rbms",
            )
            found[title] = times
    return found


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--in-this-process", choices=MEMORY, help=argparse.SUPPRESS)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.in_this_process:
        use_memory(arguments.in_this_process)
        return
    results: dict[str, object] = {"memory": measure_memory()}
    path = None if arguments.json is None else Path(arguments.json)
    if arguments.memory and path is not None and path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
        record["results"] |= results
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return
    if not arguments.memory:
        results["updates"] = measure_times(arguments.rounds)
    if arguments.json:
        write_json(arguments.json, results, "paramagnet", "rbms", "torch", "numpy", "numba")


if __name__ == "__main__":
    main()
