"""How far likelihood estimates can be trusted: mAIS, AIS and the trajectory, against exact values.

    python benchmarks/likelihood.py [methods] [small] [ulc] [figures]

Without arguments all parts. Each puts its results into benchmarks/data/likelihood.json, from which `figures`
draws docs/figures/ais_errors.png and docs/figures/likelihood_trajectory.png.

- methods: the root mean square error of ln Z over 20 seeds, and the processor time of a run on one thread,
  for mAIS with either layer summed out and for AIS, on machines that were trained.
- small: `log_likelihood_trajectory` on machines that can be enumerated (20 x 20 on the toy data, 16 x 16 on
  Dry Bean, PCD-40, 1000 chains, 300 updates), beside the weights of the chains of training themselves.
- ulc: the same for Urban Land Cover, 147 x 200 bits, against mAIS with 1500 temperatures.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.estimates import FEWEST_EFFECTIVE
from paramagnet.learning.likelihood import free_energies
from paramagnet.plots import save_figure
from paramagnet.sampling.annealing import mean_weight
from ratio import machine_facts

HERE = Path(__file__).parent
RECORD = HERE / "data" / "likelihood.json"
FIGURES = HERE.parent / "docs" / "figures"
METHODS = {
    "mAIS, hidden layer summed out": {"method": "mais", "marginalize": "hidden"},
    "mAIS, visible layer summed out": {"method": "mais", "marginalize": "visible"},
    "AIS": {"method": "ais"},
}
N_SEEDS, N_SAMPLES, TEMPERATURES = 20, 1000, (10, 30, 100, 300)


# mAIS and AIS on trained machines


def trained_machines() -> Iterator[tuple[str, pm.RBM]]:
    toy, beans = pm.load_dataset("toy").data, pm.load_dataset("drybean").data
    for title, data, n_hidden, hidden, bias in (
        ("toy, 20 x 20 bit, c = 0", toy, 20, "bit", 0.0),
        ("toy, 20 x 40 bit, c = -5", toy, 40, "bit", -5.0),
        ("Dry Bean, 16 x 16 bit, c = 0", beans, 16, "bit", 0.0),
        ("Dry Bean, 16 x 16 spin", beans, 16, "spin", 0.0),
    ):
        start = pm.initialize(data.shape[1], n_hidden, hidden=hidden, hidden_bias=bias, rng=0)
        yield title, pm.train(start, data, epochs=300, optimizer=pm.Adam(0.01), evaluate=[]).rbm


def measure_methods() -> dict[str, Any]:
    """All methods in turn for each seed, so that a slow moment hits all alike."""
    results: dict[str, Any] = {}
    for title, rbm in trained_machines():
        exact = pm.log_partition(rbm)
        results[title] = {name: [] for name in METHODS}
        for n_temperatures in TEMPERATURES:
            runs = {name: [] for name in METHODS}
            for seed in range(N_SEEDS):
                for name, options in METHODS.items():
                    sizes = {"n_samples": N_SAMPLES, "n_temperatures": n_temperatures, "n_threads": 1}
                    began = time.process_time()
                    estimate = pm.estimate_log_partition(rbm, rng=seed, **sizes, **options)
                    runs[name].append((time.process_time() - began, estimate.value - exact, estimate.error))
            for name, columns in runs.items():
                seconds, deviation, error = np.array(columns).T
                row = {
                    "n_temperatures": n_temperatures,
                    "seconds": seconds.min(),
                    "rms_error": math.sqrt(np.mean(deviation**2)),
                    "stated_error": math.sqrt(np.mean(error**2)),
                }
                results[title][name].append(row)
                print(f"{title}: {name}: {row}", flush=True)
    return {"n_seeds": N_SEEDS, "n_samples": N_SAMPLES, "machines": results}


# The trajectory


def follow(
    rbm: pm.RBM, data: np.ndarray, updates: int, rate: float, every: int, **options: Any
) -> tuple[pm.learning.Trajectory, dict[int, pm.RBM], list[float], list[float]]:
    """The trajectory, some of the machines, and ``ln Z / Z_0`` from the chains of training themselves."""
    machines: dict[int, pm.RBM] = {}
    change, effective = [], []
    log_weights, last = np.zeros(1000), None

    def watched() -> Iterator[pm.TrainState]:
        nonlocal log_weights, last  # state.seconds is the time of training alone
        for state in pm.training_steps(
            rbm, data, epochs=updates, gradient=pm.PCD(), optimizer=pm.Adam(rate), evaluate=[], rng=1
        ):
            now = state.rbm
            if last is not None:
                v = state.chains.visible.astype(np.float64)
                log_weights = log_weights + free_energies(last, v) - free_energies(now, v)
            last = now
            if state.update % every == 0:
                estimate = mean_weight(log_weights)
                machines[state.update] = now
                change.append(estimate.value)
                effective.append(estimate.n_effective)
            yield state

    trajectory = pm.learning.log_likelihood_trajectory(watched(), data, every=every, rng=2, **options)
    return trajectory, machines, change, effective


def as_record(
    trajectory: pm.learning.Trajectory, change: list[float], effective: list[float], data: np.ndarray
) -> dict[str, Any]:
    naive = trajectory.log_likelihood + trajectory.log_partition - (trajectory.log_partition[0] + change)
    return {
        "update": trajectory.update.tolist(),
        "log_likelihood": trajectory.log_likelihood.tolist(),
        "error": trajectory.error.tolist(),
        "n_effective": trajectory.n_effective.tolist(),
        "n_starts": trajectory.n_starts.tolist(),
        "with_chains_of_training": naive.tolist(),
        "n_effective_of_training": effective,
    }


def measure_small() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for title, name in (("toy, 20 x 20 bit", "toy"), ("Dry Bean, 16 x 16 bit", "drybean")):
        data = pm.load_dataset(name).data
        rbm = pm.initialize(data.shape[1], data.shape[1], rng=0)
        trajectory, machines, change, effective = follow(rbm, data, 300, 0.01, 10, restart=None)
        record = as_record(trajectory, change, effective, data)
        exact = np.array([float(pm.log_likelihood(machine, data)) for machine in machines.values()])
        record["reference"], record["reference_update"] = exact.tolist(), list(machines)
        record["reference_error"] = [0.0] * len(machines)
        record["repeats"] = repeat(rbm, data, exact)
        results[title] = record
        print(title, trajectory, "exact", record["reference"][-1], flush=True)
    return results


def repeat(rbm: pm.RBM, data: np.ndarray, exact: np.ndarray) -> list[dict[str, Any]]:
    """The same run followed by other chains, 20 times 300 of them with one sweep an update."""
    options = {"epochs": 300, "gradient": pm.PCD(), "optimizer": pm.Adam(0.01), "evaluate": [], "rng": 1}
    states = list(pm.training_steps(rbm, data, **options))
    repeats = []
    for seed in range(20):
        one = pm.learning.log_likelihood_trajectory(
            states, data, every=10, n_chains=300, n_steps=1, restart=None, rng=seed + 10, n_threads=1
        )
        deviation = one.log_likelihood - exact
        repeats.append({"deviation": deviation.tolist(), "error": one.error.tolist()})
        print(seed, deviation[[5, 10, 20, 30]] / one.error[[5, 10, 20, 30]], flush=True)
    return repeats


def measure_ulc() -> dict[str, Any]:
    data = pm.load_dataset("ulc").data
    rbm = pm.initialize(147, 200, hidden_bias=-5.0, gain=0.5, rng=0)
    began = time.perf_counter()
    trajectory, machines, change, effective = follow(rbm, data, 100, 0.001, 5)
    seconds, training = time.perf_counter() - began, trajectory.state.seconds
    print(trajectory, f"{seconds:.1f} s, training alone {training:.1f} s", flush=True)
    record = as_record(trajectory, change, effective, data)
    record["seconds"], record["seconds_of_training"] = seconds, training
    updates = [0, 20, 30, 40, 50, 60, 80, 100]
    rows = []
    for update in updates:
        log_z = pm.estimate_log_partition(
            machines[update], n_temperatures=1500, start=data.mean(axis=0), rng=update
        )
        rows.append(pm.log_likelihood(machines[update], data, log_partition=log_z))
        print(update, rows[-1], flush=True)
    record["reference_update"] = updates
    record["reference"], record["reference_error"] = [r.value for r in rows], [r.error for r in rows]
    last = machines[100]
    record["methods_at_the_end"] = {}
    for name, options in METHODS.items():
        estimate = pm.estimate_log_partition(
            last, n_temperatures=500, start=data.mean(axis=0), rng=0, **options
        )
        record["methods_at_the_end"][name] = [estimate.value, estimate.error, estimate.n_effective]
        print(name, estimate, flush=True)
    return {"Urban Land Cover, 147 x 200 bit": record}


# Figures


def draw_methods(results: dict[str, Any]) -> Any:
    from matplotlib.figure import Figure

    machines = results["machines"]
    figure = Figure(figsize=(8.4, 6.0), layout="constrained")
    axes = figure.subplots(2, -(-len(machines) // 2), sharex=True, sharey=True)
    for axis, (title, methods) in zip(axes.flat, machines.items(), strict=True):
        for (name, rows), marker, style in zip(methods.items(), "os^", ("-", "--", ":"), strict=True):
            milliseconds = [1e3 * row["seconds"] for row in rows]
            (line,) = axis.loglog(milliseconds, [row["stated_error"] for row in rows], style, label=name)
            found = [row["rms_error"] for row in rows]
            axis.loglog(milliseconds, found, marker, color=line.get_color(), markersize=4)
        axis.set_title(title, fontsize="medium")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("processor time (ms)")
    for axis in axes[:, 0]:
        axis.set_ylabel("error of ln Z")
    axes.flat[0].legend(frameon=False, fontsize="small")
    return figure


def draw_trajectories(results: dict[str, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.2, 5.4), layout="constrained")
    top, bottom = figure.subplots(2, len(results), sharex="col")
    for axis, below, (title, record) in zip(top, bottom, results.items(), strict=True):
        update, value = np.array(record["update"]), np.array(record["log_likelihood"])
        naive, error = np.array(record["with_chains_of_training"]), np.array(record["error"])
        marks, reference = np.array(record["reference_update"]), np.array(record["reference"])
        exact = not any(record["reference_error"])
        trusted = np.array(record["n_effective"]) >= FEWEST_EFFECTIVE
        axis.plot(update, value, ":", color="tab:blue", linewidth=1.2)
        axis.plot(update, np.where(trusted, value, np.nan), "-", color="tab:blue", label="trajectory")
        axis.plot(marks[:: 3 if exact else 1], reference[:: 3 if exact else 1], "ko", markersize=4)
        axis.plot([], [], "ko", markersize=4, label="exact" if exact else "mAIS, 1500 temperatures")
        axis.set_title(title, fontsize="medium")
        axis.legend(frameon=False, fontsize="small")
        at = np.isin(update, marks)
        bars = 2.0 * np.hypot(error[at], record["reference_error"])
        off = value[at] - reference
        below.errorbar(marks, off, bars, fmt="o", color="tab:blue", markersize=4, linewidth=1.2, capsize=2)
        below.plot(marks[~trusted[at]], off[~trusted[at]], "o", color="white", markersize=3, zorder=3)
        below.plot(marks, naive[at] - reference, "s--", color="tab:red", markersize=3, linewidth=1.2)
        below.axhline(0.0, color="0.6", linewidth=0.8)
        below.set_xlabel("update")
        limit = 1.15 * max(np.max(np.abs(value[at] - reference) + np.minimum(bars, 0.6)), 0.5)
        highest = float(np.max(naive[at] - reference))
        below.set_ylim(-limit, max(limit, min(1.1 * highest, 4.0)))
        for each in (axis, below):
            each.spines[["top", "right"]].set_visible(False)
    top[0].set_ylabel("log-likelihood (nats per point)")
    bottom[0].set_ylabel("less the reference")
    bottom[0].plot([], [], "o", color="tab:blue", markersize=4, label="trajectory, two errors")
    bottom[0].plot([], [], "o", color="tab:blue", markersize=4, markerfacecolor="w", label='"do not trust"')
    bottom[0].plot([], [], "s--", color="tab:red", markersize=3, label="chains of training")
    bottom[0].legend(frameon=False, fontsize="small", loc="upper left")
    return figure


def read_record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"results": {}}


def main() -> None:
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "methods": measure_methods,
        "small": measure_small,
        "ulc": measure_ulc,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*parts, "figures", []], default=[])
    chosen = parser.parse_args().parts or [*parts, "figures"]
    for part in chosen:
        if part != "figures":
            results = parts[part]()
            record = read_record()  # another part may have been written in the meantime
            record["results"][part], record["machine"] = results, machine_facts("numpy", "numba")
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record = read_record()
    if "figures" in chosen:
        save_figure(draw_methods(record["results"]["methods"]), FIGURES / "ais_errors.png")
        curves = record["results"]["small"] | record["results"]["ulc"]
        save_figure(draw_trajectories(curves), FIGURES / "likelihood_trajectory.png")


if __name__ == "__main__":
    main()
