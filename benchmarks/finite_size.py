"""How far the layer correlation of machines of finite size has its maximum from the theory's beta_max.

Random machines with as many hidden as visible units, from 8 to 1000, by `simulate_layer_correlation`:
enumerated up to 14 units, sampled beyond. `disorder_average.py` does the smallest ones with code of its own.

    python benchmarks/finite_size.py [--largest 1000]   run what is missing, print the table
    python benchmarks/finite_size.py --figure           draw docs/figures/finite_size.png

Records are kept in benchmarks/data/finite_size.json, one after the other as they are finished.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from disorder_average import ROOT, load_records, save_records
from paramagnet.simulation import peak_of, simulate_layer_correlation
from ratio import machine_facts

RECORDS = ROOT / "benchmarks" / "data" / "finite_size.json"
FIGURE = ROOT / "docs" / "figures" / "finite_size.png"
SEED = 20250707
# Machines to draw, by hidden bias and size. With sparse hidden units single machines have peaks of their own.
DRAWS = {
    0.0: {8: 20000, 10: 10000, 14: 4000, 24: 240, 48: 100, 100: 40, 250: 12, 500: 6, 1000: 4},
    -5.0: {8: 20000, 10: 10000, 14: 4000, 24: 240, 48: 100, 100: 200, 250: 60, 500: 30, 1000: 10},
}


def simulate(n: int, c: float) -> dict[str, Any]:
    start = time.process_time()
    average = simulate_layer_correlation(
        n, n, hidden_bias=c, n_draws=DRAWS[c][n], rng=np.random.default_rng([SEED, n])
    )
    return {
        "n": n,
        "m": n,
        "c": c,
        "draws": average.n_draws,
        "seed": SEED,
        "method": average.method,
        "betas": average.beta.tolist(),
        "slope": average.value.tolist(),
        "slope_error": average.error.tolist(),
        "beta_max": average.beta_max,
        "maximum": average.maximum,
        "maximum_error": average.maximum_error,
        "machine": machine_facts("numpy", "numba"),
        "seconds": round(time.process_time() - start, 1),
    }


def run_missing(largest: int) -> None:
    records = load_records(RECORDS)
    done = {(r["n"], r["c"], r["draws"], r["seed"]) for r in records}
    wanted = [(n, c, n_draws) for c, sizes in DRAWS.items() for n, n_draws in sizes.items() if n <= largest]
    for n, c, n_draws in sorted(wanted):
        if (n, c, n_draws, SEED) in done:
            continue
        record = simulate(n, c)
        records = [r for r in records if (r["n"], r["c"]) != (n, c)] + [record]  # of fewer machines
        save_records(records, RECORDS)
        print(f"n = {n}, c = {c:g}: {record['seconds']} s", flush=True)


def select(records: list[dict[str, Any]], c: float) -> list[dict[str, Any]]:
    return sorted((r for r in records if r["c"] == c), key=lambda r: r["n"])


def place_maximum(record: dict[str, Any], n_resampled: int = 500) -> tuple[float, float]:
    """The maximum over beta_max, and its error: the smaller of two that are both too large.

    Curves whose points scatter by their own errors, as if these were independent, place it worse than those
    of the same machines; the jackknife, where leaving machines out makes the highest point jump.
    """
    beta, slope, error = (np.array(record[name]) for name in ("betas", "slope", "slope_error"))
    rng = np.random.default_rng(SEED)
    others = [peak_of(beta, rng.normal(slope, error)) for _ in range(n_resampled)]
    smaller = min(float(np.nanstd(others)), record["maximum_error"])
    return peak_of(beta, slope) / record["beta_max"], smaller / record["beta_max"]


def print_table(records: list[dict[str, Any]]) -> None:
    print("Spin visible, bit hidden units, as many of both; the maximum over beta_max.")
    for c in DRAWS:
        for r in select(records, c):
            ratio, error = place_maximum(r)
            print(
                f"c = {c:>4g}, n = {r['n']:>4}, {r['draws']:>5} draws, {r['method']:<10}:"
                f" {ratio:.4f} +- {error:.4f}"
            )


def draw_figure(records: list[dict[str, Any]], path: Path = FIGURE) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    styles = {0.0: {"color": "#2166ac", "marker": "o"}, -5.0: {"color": "#d6604d", "marker": "s"}}
    for shift, (c, style) in zip((0.97, 1.03), styles.items(), strict=True):
        chosen = select(records, c)
        sizes = np.array([r["n"] for r in chosen])
        ratio, error = np.array([place_maximum(r) for r in chosen]).T
        axis.errorbar(
            sizes * shift, 100.0 * (ratio - 1.0), 100.0 * error, **style,
            markersize=4, linestyle="none", elinewidth=1.0, capsize=2.0, label=f"$c = {c:g}$",
        )  # fmt: skip
    axis.axhline(0.0, color="0.45", linestyle="--", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_xlabel("units of each layer, $n = m$")
    axis.set_ylabel(r"maximum above $\beta_\mathrm{max}$ / %")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1000)
    parser.add_argument("--figure", action="store_true")
    options = parser.parse_args()
    if options.figure:
        draw_figure(load_records(RECORDS))
        return
    run_missing(options.largest)
    print_table(load_records(RECORDS))


if __name__ == "__main__":
    main()
