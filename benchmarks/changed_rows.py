"""Changed rows against full products: where they are equal, how many units change, how rounding drifts.

    python benchmarks/changed_rows.py crossover   time of both against the share of units that change
    python benchmarks/changed_rows.py look-up     full products, looked up and computed
    python benchmarks/changed_rows.py training    PCD-40 on MNIST: the share that changes, update by update
    python benchmarks/changed_rows.py drift       errors of fields without a full product
    python benchmarks/changed_rows.py figure      draw docs/figures/changed_rows.png

784 x 500 units. `crossover` takes one thread and blocks of 250 chains, as 1000 chains are cut into; minima in
processor time. `training` takes 900 updates (batches of 100 of 3000 images, 1000 chains, 40 sweeps each),
and goes on where it was interrupted.
Results are kept in benchmarks/data/changed_rows.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import paramagnet as pm
from paramagnet.kernels.changed_rows import add_changed_rows, make_panels
from paramagnet.kernels.lookup import make_room, multiply_states
from paramagnet.kernels.sampling import list_changes
from paramagnet.sampling import chains as gibbs
from paramagnet.sampling import layer as layer_module
from paramagnet.sampling.chains import Chains, room_for_changes, run_sweeps
from paramagnet.sampling.layer import layers_of
from ratio import interleave, machine_facts

ROOT = Path(__file__).resolve().parents[1]
DATA, FIGURE = ROOT / "benchmarks/data/changed_rows.json", ROOT / "docs/figures/changed_rows.png"
SHARES = (0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
SWEEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LAYERS = {"visible": (784, 500), "hidden": (500, 784)}  # the layer that changes, its units, the fields
BIASES = {"bit": -5.0, "spin": 0.0}
N_CHAINS, N_BLOCK = 1000, 250
SIZES = ((784, 500), (500, 784), (147, 200), (200, 147), (64, 64), (20, 20))


def compare(n_units: int, n_fields: int, share: float, n_chains: int, rounds: int) -> dict[str, float]:
    """Seconds of a product, computed and looked up, and of lists and changed rows at a share of changes."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(n_units, n_fields)).astype(np.float32)
    old = rng.choice(np.array([-1, 1], np.float32), size=(n_chains, n_units))
    new = np.where(rng.random(old.shape) < share, -old, old)
    fields, panels, changes = old @ weights, make_panels(weights), room_for_changes(old)

    def product() -> None:
        np.matmul(new, weights, out=fields)

    room = make_room(n_chains, n_units)

    def looked_up() -> None:
        multiply_states(new, weights, (-1.0, 1.0), *room, fields)

    def rows() -> None:
        list_changes(old, new, *changes)
        add_changed_rows(*changes, 2.0, panels, fields)

    with threadpool_limits(1):
        calls = {"product": product, "looked up": looked_up, "changed rows": rows}
        return interleave(calls, rounds=rounds, clock=time.process_time)


def measure_crossover(rounds: int) -> dict[str, Any]:
    ratios, looked_up = {}, {}
    for layer, (n_units, n_fields) in LAYERS.items():
        times = [compare(n_units, n_fields, share, N_BLOCK, rounds) for share in SHARES]
        ratios[layer] = [t["changed rows"] / t["product"] for t in times]
        looked_up[layer] = float(np.median([t["looked up"] / t["product"] for t in times]))
        print(layer, *(f"{share:.1%}: {r:.2f}" for share, r in zip(SHARES, ratios[layer], strict=True)))
        print(layer, f"looked up: {looked_up[layer]:.2f}")
    return {"n_chains": N_BLOCK, "share": SHARES, "ratio": ratios, "looked up": looked_up}


def measure_look_up(rounds: int) -> dict[str, Any]:
    """Time of a product that is looked up over that of a matrix product, at some sizes."""
    results = {}
    for n_units, n_fields in SIZES:
        for n_chains in (50, 100, 250):
            times = compare(n_units, n_fields, 0.5, n_chains, rounds)
            ratio = times["looked up"] / times["product"]
            results[f"{n_units} x {n_fields}, {n_chains} chains"] = ratio
            print(f"{n_units} x {n_fields}, {n_chains} chains: {ratio:.2f}")
    return results


def follow_training(machine: Path, hidden: str) -> None:
    """Record the shares of both layers that change per sweep, every tenth update; go on where it stopped."""
    data, checkpoint = pm.load_dataset("mnist").data, Path(f"{machine}_{hidden}.checkpoint")
    start: Any = pm.initialize(*LAYERS["visible"], hidden=hidden, hidden_bias=BIASES[hidden], rng=0)
    changed: dict[str, list[float]] = {}
    if checkpoint.exists():
        start, changed = pm.load_checkpoint(checkpoint), load()["results"]["training"][hidden]
    for state in pm.training_steps(
        start, data, epochs=30, batch_size=100, gradient=pm.PCD(N_CHAINS, 40), evaluate=[], rng=0
    ):
        update = state.update
        if update == 1 or (update and update % 10 == 0):
            changed[str(update)] = [round(share, 5) for share in state.chains.changed]
            state.save(checkpoint)
            keep("training", {hidden: changed})
            print(hidden, update, changed[str(update)], flush=True)
    state.rbm.save(f"{machine}_{hidden}.safetensors")


def drifts(rbm: pm.RBM) -> list[float]:
    """The largest error of a hidden field after each number of sweeps, over the root mean square of all."""
    layers, rng = layers_of(rbm), np.random.default_rng(0)
    weights = layers[0].weights.astype(float)
    start = run_sweeps(layers, Chains.start(rbm.visible, (N_CHAINS, rbm.n_visible), rng), 301)
    results = []
    for n_sweeps in SWEEPS:
        end = run_sweeps(layers, start, n_sweeps, dense_above=2.0)
        exact = end.visible.astype(float) @ weights
        results.append(float(np.max(np.abs(end.fields - exact)) / np.sqrt(np.mean(exact**2))))
    return results


def measure_drift(machine: Path) -> dict[str, Any]:
    """The drift without full products on fresh machines and the trained ones, in either direction."""
    machines = {}
    for hidden, bias in BIASES.items():
        machines[f"fresh, {hidden}"] = pm.initialize(784, 500, hidden=hidden, hidden_bias=bias, rng=0)
        trained = Path(f"{machine}_{hidden}.safetensors")
        if trained.exists():
            machines[f"trained, {hidden}"] = pm.RBM.load(trained)
    results: dict[str, Any] = {"sweeps": SWEEPS}
    refresh, gibbs.REFRESH = gibbs.REFRESH, 2**40
    for name, rbm in machines.items():
        turned = pm.RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias, rbm.hidden, rbm.visible)
        results[name] = np.maximum(drifts(rbm), drifts(turned)).tolist()
        print(name, results[name], flush=True)
    gibbs.REFRESH = refresh
    return results


def draw_figure(results: dict[str, Any]) -> None:
    """Three panels: the crossover, the shares during training, the drift."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for layer, ratios in results["crossover"]["ratio"].items():
        n_units, n_fields = LAYERS[layer]
        (line,) = left.plot(
            results["crossover"]["share"], ratios, ".-", label=f"{n_units} units, {n_fields} fields"
        )
        left.axhline(results["crossover"]["looked up"][layer], color=line.get_color(), lw=0.8, ls="--")
    left.axhline(1.0, color="grey", lw=0.8)
    left.axvline(layer_module.LOOK_UP_ABOVE, color="grey", lw=0.8, ls=":")
    left.set(xlabel="share of units that change", ylabel="time / matrix product", ylim=(0, None))
    left.set_title("Adding changed rows (dashed: looking up)")
    for (hidden, run), colour in zip(results["training"].items(), ("C0", "C1"), strict=False):
        updates, changed = [int(update) for update in run], np.array(list(run.values()))
        middle.plot(updates, changed[:, 0], color=colour, label=f"visible, {hidden} machine")
        middle.plot(updates, changed[:, 1], color=colour, ls="--", label=f"hidden, {hidden} machine")
    middle.set(xlabel="update (PCD-40, MNIST)", ylabel="share that changes per sweep", ylim=(0, None))
    middle.set_title("Units that change")
    for name, values in results["drift"].items():
        if name != "sweeps":
            right.loglog(results["drift"]["sweeps"], values, ".-", label=name)
    right.axhline(1e-5, color="grey", lw=0.8)
    right.axvline(gibbs.REFRESH, color="grey", lw=0.8, ls=":")
    right.set(xlabel="sweeps without a full product", ylabel="largest error / rms of fields")
    right.set_title("Drift of the fields")
    for axes in (left, middle, right):
        axes.legend(fontsize=7.5, frameon=False)
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=150)


def load() -> dict[str, Any]:
    """What was measured so far."""
    record: dict[str, Any] = (
        json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"results": {}}
    )
    return record


def keep(part: str, results: dict[str, Any]) -> None:
    """Put results beside those that are there."""
    record = load()
    record["machine"] = machine_facts("numpy", "numba")
    record["results"][part] = record["results"].get(part, {}) | results
    DATA.write_text(json.dumps(record) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=["crossover", "look-up", "training", "drift", "figure"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--hidden", nargs="+", choices=list(BIASES), default=list(BIASES))
    parser.add_argument("--machine", type=Path, default=Path("mnist_900"), help="where machines are kept")
    options = parser.parse_args()
    if options.part == "crossover":
        keep("crossover", measure_crossover(options.rounds))
    elif options.part == "look-up":
        keep("look-up", measure_look_up(options.rounds))
    elif options.part == "training":
        for hidden in options.hidden:
            follow_training(options.machine, hidden)
    elif options.part == "drift":
        keep("drift", measure_drift(options.machine))
    else:
        draw_figure(load()["results"])


if __name__ == "__main__":
    main()
