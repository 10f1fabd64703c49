"""Training updates and annealing against other packages.

    make bench-peers
    python benchmarks/bench_peers.py [--rounds 5] [--machine FILE ...] [--json FILE]

Needs rbms, PyTorch and scikit-learn: `make bench-peers` installs them in an environment of their own.
784 x 500 bit units, two threads. First each rival must show, on a small machine, that its chains have the
exact means, its updates the direction of the exact gradient and its annealing the exact ln Z; then they are
timed in turn, and the fastest call of each counts. "PCD-40 update" is a whole update, a batch of as many
points as chains and the step included; "40 sweeps" are its sweeps and the averages over chains alone.

The machines: "fresh" is drawn for training (spin visible units, hidden bias -5, then turned into bits
exactly); "weak" has weights of 0.01 and no biases, where other packages start: there about half of all units
change in every sweep, and none of the work can be saved. --machine adds trained ones, of any unit types.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import paramagnet as pm
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from peers import (
    InPlaceTorch,
    Paramagnet,
    PlainTorch,
    Rbms,
    Rival,
    ScikitLearn,
    Task,
    rbms_log_partition,
    scikit_states,
)
from ratio import interleave, machine_facts, print_ratios, write_json

N_VISIBLE, N_HIDDEN, N_SWEEPS, N_TEMPERATURES = 784, 500, 40, 50
RATE = 1e-6  # the machine is to stay what it is
PACKAGES = ("paramagnet", "rbms", "torch", "scikit-learn", "numpy", "numba")
RIVALS: dict[str, Callable[[Task], Rival]] = {
    "paramagnet": Paramagnet,
    "rbms": Rbms,
    "torch.bernoulli": PlainTorch,
    "torch in place": InPlaceTorch,
}
# How many times faster an update by paramagnet ought to be.
GOALS = {
    1000: {"rbms": 3.0, "torch.bernoulli": 3.0, "torch in place": 1.0},
    100: {"rbms": 2.5, "torch.bernoulli": 2.5, "torch in place": 1.0},
}
ANNEALING_GOAL = 3.0


def check_rivals() -> None:
    """Stop unless every rival does what it is to be timed for, on a machine of 12 x 8 units."""
    rng = np.random.default_rng(1)
    rbm = pm.RBM(rng.normal(0, 0.7, (12, 8)), rng.normal(0, 0.5, 12), -0.5, visible="bit", hidden="bit")
    points = (rng.random((500, 12)) < 0.3).astype(float)
    task = Task(rbm, points, rng.integers(0, 2, (2000, 12)).astype(float), 20, RATE)
    exact, moments = pm.learning.exact_gradient(rbm, points), pm.exact.exact_moments(rbm)
    gradient = np.concatenate([exact.weights.ravel(), exact.visible_bias, exact.hidden_bias])
    n_updates = 100
    error = np.sqrt(moments.visible * (1 - moments.visible) / (n_updates * len(task.states)))
    for name, make in RIVALS.items():
        rival, means, step = make(task), 0.0, 0.0
        for _ in range(5):
            rival.update()
        for _ in range(n_updates):
            rival.update()
            means, step = means + rival.states().mean(axis=0) / n_updates, step + rival.step() / n_updates
        deviation = np.max(np.abs(means - moments.visible) / error)
        cosine = float(step @ gradient / np.linalg.norm(step) / np.linalg.norm(gradient))
        assert deviation < 6.0, f"{name}: visible means are {deviation:.1f} errors off"
        assert cosine > 0.9995, f"{name}: the update is not along the gradient, cosine {cosine:.5f}"
        print(
            f"  {name:16s} means within {deviation:.1f} errors, cosine with the exact gradient {cosine:.6f}"
        )
    means = np.mean([scikit_states(rbm, task.states, 20 + i).mean(axis=0) for i in range(10)], axis=0)
    deviation = np.max(np.abs(means - moments.visible) / error)
    assert deviation < 6.0 * np.sqrt(n_updates), "scikit-learn: visible means are off"
    ours = pm.estimate_log_partition(rbm, n_samples=4000, n_temperatures=200, rng=0)
    theirs = rbms_log_partition(rbm, 4000, 200)
    for name, value in (("mAIS", float(ours)), ("AIS of rbms", theirs)):
        assert abs(value - moments.log_partition) < 0.02, f"{name}: {value}, exact {moments.log_partition}"
        print(f"  {name:16s} ln Z {value:.4f}, exact {moments.log_partition:.4f}")


def make_task(rbm: pm.RBM, n_chains: int, n_steps: int) -> Task:
    """Chains in equilibrium, or near it, and other states of the machine as data."""
    chains = Chains.start(rbm.visible, (2 * n_chains, N_VISIBLE), np.random.default_rng(0))
    states = run_sweeps(layers_of(rbm), chains, 500).visible.astype(np.float64)
    return Task(rbm, states[:n_chains], states[n_chains:], n_steps, RATE)


def compare(title: str, times: dict[str, float], goals: dict[str, float]) -> dict[str, Any]:
    """Print and keep the ratios of one measurement."""
    ours, *others = times
    print_ratios(title, times, reference=ours)
    ratios = {name: times[name] / times[ours] for name in others}
    for name, ratio in ratios.items():
        goal = goals.get(name)
        verdict = "" if goal is None else f" (goal {goal:g}: {'reached' if ratio >= goal else 'MISSED'})"
        print(f"  {ratio:6.2f} times faster than {name}{verdict}")
    print()
    return {"seconds": times, "times faster": ratios, "goals": goals}


def compare_updates(title: str, rbm: pm.RBM, n_chains: int, rounds: int) -> dict[str, Any]:
    """A whole update, and the sweeps and averages over chains alone."""
    task = make_task(rbm, n_chains, N_SWEEPS)
    rivals = {name: make(task) for name, make in RIVALS.items()}
    where, results = f"{title}, {n_chains} chains", {}
    for what, calls in (
        (f"PCD-{N_SWEEPS} update", {name: rival.update for name, rival in rivals.items()}),
        (f"{N_SWEEPS} sweeps", {name: rival.sample for name, rival in rivals.items()}),
    ):
        times = interleave(calls, rounds=rounds)
        results[f"{what}, {where}"] = compare(f"{what}, {where}", times, GOALS[n_chains])
    return results


def compare_annealing(title: str, rbm: pm.RBM, n_chains: int, rounds: int) -> dict[str, Any]:
    times = interleave(
        {
            "mAIS": lambda: pm.estimate_log_partition(
                rbm, n_samples=n_chains, n_temperatures=N_TEMPERATURES, rng=0, n_threads=2
            ),
            "AIS of rbms": lambda: rbms_log_partition(rbm, n_chains, N_TEMPERATURES),
        },
        rounds=rounds,
    )
    times = {name: seconds / N_TEMPERATURES for name, seconds in times.items()}
    return compare(f"one temperature, {title}, {n_chains} chains", times, {"AIS of rbms": ANNEALING_GOAL})


def compare_one_sweep(rbm: pm.RBM, n_chains: int, rounds: int) -> dict[str, Any]:
    """PCD-1, twenty updates a call, because that is how scikit-learn is fastest."""
    task = make_task(rbm, n_chains, 1)

    def repeat(rival: Rival) -> Callable[[], None]:
        def call() -> None:
            for _ in range(ScikitLearn.n_updates):
                rival.update()

        return call

    calls = {name: repeat(make(task)) for name, make in RIVALS.items()}
    calls["scikit-learn"] = ScikitLearn(task).update
    times = {k: v / ScikitLearn.n_updates for k, v in interleave(calls, rounds=rounds).items()}
    return compare(f"PCD-1 update, weak, {n_chains} chains", times, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", nargs="*", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    versions = machine_facts(*PACKAGES)["versions"]
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    began = time.perf_counter()
    with threadpool_limits(2):
        check_rivals()
        print()
        weights = np.random.default_rng(0).normal(0, 0.01, (N_VISIBLE, N_HIDDEN))
        fresh = pm.initialize(N_VISIBLE, N_HIDDEN, hidden="bit", hidden_bias=-5.0, rng=0)
        machines = {"fresh": fresh.to_bits(), "weak": pm.RBM(weights, 0, 0, visible="bit", hidden="bit")}
        machines |= {Path(name).stem: pm.RBM.load(name).to_bits() for name in options.machine}
        results: dict[str, Any] = {}
        for title, rbm in machines.items():
            for n_chains in (1000, 100):
                results |= compare_updates(title, rbm, n_chains, options.rounds)
                annealing = compare_annealing(title, rbm, n_chains, options.rounds)
                results[f"one temperature, {title}, {n_chains} chains"] = annealing
        for n_chains in (1000, 100):
            measured = compare_one_sweep(machines["weak"], n_chains, options.rounds)
            results[f"PCD-1 update, weak, {n_chains} chains"] = measured
    print(f"{time.perf_counter() - began:.0f} s in all")
    if options.json:
        write_json(options.json, results, *PACKAGES)


if __name__ == "__main__":
    main()
