"""The theory against simulation: disorder averages of small machines, every visible state enumerated.

The theory is exact for infinite layers. Here machines of 8 to 16 visible units are drawn from the same
ensemble, weights normal with variance ``beta**2/(n + m)`` and no visible bias, and solved exactly: the
hidden layer is summed analytically, the visible one state by state. With spin visible units the slope
of the layer correlation in the visible bias is then

    s = -(2/(n + m)) sum_i E_w[ <v_i> sum_j cov(v_i, h_j) ],

exact at any size and without a bias to take a difference in. All scales ``beta`` of a record share
their normal draws, so the place of the maximum is known better than its height, and known averages of
the weights serve as control variates.

Nothing of the package takes part in the simulation; its theory enters only the table and the figure.

    python benchmarks/disorder_average.py            run what is missing, print the table
    python benchmarks/disorder_average.py --figure   draw docs/figures/theory_vs_simulation.png

Records are kept in benchmarks/data/disorder_average.json, one after the other as they are finished.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from paramagnet.theory.response import layer_correlation_slope
from paramagnet.theory.scale import beta_max

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "data" / "disorder_average.json"
FIGURE = ROOT / "docs" / "figures" / "theory_vs_simulation.png"

SEED = 20250707
BOOTSTRAP = 1000
BLOCK = 2**16  # numbers in one temporary array: small enough to stay in the cache
FINE = 0.04  # spacing of the grid around the maximum, relative
GRID = (0.4, 0.6, 0.78, *(round(0.92 + FINE * k, 2) for k in range(10)), 1.45)
CENTRES = {(1.0, 0.0): 1.51, (1.0, -2.0): 2.34, (1.0, -5.0): 3.67, (0.5, -2.0): 2.23, (2.0, -2.0): 2.60}


class Machines(NamedTuple):
    """Spin visible and bit hidden units: the sizes, the hidden bias, and how many machines are drawn."""

    n: int
    m: int
    c: float
    draws: int

    @property
    def alpha(self) -> float:
        return self.m / self.n

    @property
    def betas(self) -> list[float]:
        """The grid; the table of centres, close to the maxima, only places it."""
        return [round(CENTRES[self.alpha, self.c] * factor, 4) for factor in GRID]


PLAN = (
    *(Machines(8, 8, c, 10000) for c in (0.0, -2.0, -5.0)),
    *(Machines(12, 12, c, 2000) for c in (0.0, -2.0, -5.0)),
    Machines(8, 4, -2.0, 10000),
    Machines(12, 6, -2.0, 2000),
    Machines(6, 12, -2.0, 10000),
    Machines(8, 16, -2.0, 5000),
    Machines(12, 24, -2.0, 800),
    *(Machines(16, 16, c, 200) for c in (0.0, -2.0, -5.0)),
    Machines(16, 8, -2.0, 300),
    *(Machines(14, 14, c, 400) for c in (0.0, -2.0, -5.0)),
)


@cache
def all_states(k: int) -> np.ndarray:
    """The ``2**k`` states of ``k`` spins, the last one changing fastest."""
    return np.array(list(product((1.0, -1.0), repeat=k)))


def enumerate_moments(
    weights: np.ndarray, *, hidden: str = "bit", c: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``<v_i>``, ``<h_j>`` and ``<v_i h_j>`` of machines with weights ``(draws, n, m)``, spin visible units
    without bias, and bit or spin hidden units with bias ``c``.

    ``exp`` of the field on each hidden unit is a product of what the parts of the visible layer give:
    the first units are looped over, and of the others the table over all states is an outer product.
    """
    draws, n, m = weights.shape
    inner = min(n, int(np.log2(BLOCK / m)))
    middle, half = n - inner, n - inner // 2
    states = all_states(inner)
    left = np.exp(all_states(half - middle) @ weights[:, middle:half]).transpose(0, 2, 1)
    right = np.exp(all_states(n - half) @ weights[:, half:]).transpose(0, 2, 1)
    z, v, h, vh = np.zeros(draws), np.zeros((draws, n)), np.zeros((draws, m)), np.zeros((draws, n, m))
    for first in all_states(middle):
        outside = np.exp(c + first @ weights[:, :middle])
        table = ((outside[:, :, None] * left)[..., None] * right[:, :, None]).reshape(draws, m, -1)
        total = table + (1.0 if hidden == "bit" else 1.0 / table)
        probability = total.prod(axis=1)  # not normalized
        mean = np.divide(table, total, out=table)
        if hidden == "spin":
            mean = 2.0 * mean - 1.0
        mean *= probability[:, None]
        part_z, part_h = probability.sum(axis=-1), mean.sum(axis=-1)
        z += part_z
        v += np.concatenate([part_z[:, None] * first, probability @ states], axis=1)
        h += part_h
        vh += np.concatenate([first[:, None] * part_h[:, None], (mean @ states).transpose(0, 2, 1)], axis=1)
    return v / z[:, None], h / z[:, None], vh / z[:, None, None]


def measure(
    normals: np.ndarray, beta: float, *, hidden: str = "bit", c: float = 0.0
) -> dict[str, np.ndarray]:
    """Observables of each machine; their averages over the draws are what the theory gives.

    ``slope``: of the layer correlation in the visible bias. ``mixed``: its second derivative, in both
    biases, of spin hidden units at ``c = 0``. ``fluctuation``: ``(1/n) sum_ij cov(v_i, h_j)**2``.
    """
    draws, n, m = normals.shape
    step = max(1, BLOCK // (m * 2**n))
    parts: dict[str, list[np.ndarray]] = {"slope": [], "mixed": [], "fluctuation": []}
    for start in range(0, draws, step):
        weights = normals[start : start + step] * (beta / np.sqrt(n + m))
        v, h, vh = enumerate_moments(weights, hidden=hidden, c=c)
        covariance = vh - v[:, :, None] * h[:, None, :]
        parts["slope"].append(-2.0 / (n + m) * np.einsum("di,dij->d", v, covariance))
        parts["mixed"].append(-2.0 / (n + m) * np.einsum("dij,dij->d", vh, vh))
        parts["fluctuation"].append(np.einsum("dij,dij->d", covariance, covariance) / n)
    return {name: np.concatenate(values) for name, values in parts.items()}


def draw_normals(n: int, m: int, draws: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, n, m]).standard_normal((draws, n, m))


def control(values: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """``values``, ``(draws,)`` or ``(betas, draws)``, less their regression on polynomials of the weights
    whose averages are known.

    At small ``beta`` the slope of a machine is proportional to the squared row sums of its weights, so
    these explain most of its variance (for ``c = 0`` 99 % at beta = 0.6, two thirds at the maximum), and
    the average over all weights stays what it was.
    """
    m = normals.shape[2]
    row = normals.sum(axis=2) ** 2 / m
    square = (normals**2).mean(axis=2)
    known = ((row, 1.0), (square, 1.0), (row * square, 1.0 + 2.0 / m), (row**2, 3.0))
    controls = np.stack([polynomial.mean(axis=1) - expected for polynomial, expected in known])
    centred = controls - controls.mean(axis=1, keepdims=True)
    coefficients = np.linalg.solve(centred @ centred.T, centred @ np.swapaxes(values, 0, -1))
    return values - np.swapaxes(coefficients, 0, -1) @ controls


def average(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the draws (the last axis)."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def locate_maximum(betas: np.ndarray, curves: np.ndarray, centre: int) -> np.ndarray:
    """Where parabolas in ``ln beta`` through five grid points around ``centre`` have their vertex;
    ``curves`` is ``(betas, ...)``.
    """
    window = slice(centre - 2, centre + 3)
    origin = np.log(betas[centre])
    second, first, _ = np.polyfit(np.log(betas[window]) - origin, curves[window], 2)
    return np.exp(origin - first / (2.0 * second))


def simulate(machines: Machines, *, seed: int = SEED) -> dict[str, Any]:
    """One record."""
    start = time.perf_counter()
    betas = np.array(machines.betas)
    normals = draw_normals(machines.n, machines.m, machines.draws, seed)
    measured = [measure(normals, beta, c=machines.c) for beta in betas]
    slope = control(np.array([at["slope"] for at in measured]), normals)
    mean, error = average(slope)
    fluctuation, fluctuation_error = average(
        control(np.array([at["fluctuation"] for at in measured]), normals)
    )

    first, last = 2, len(betas) - 3
    centre = first + int(np.argmax(np.abs(mean[first : last + 1])))
    rng = np.random.default_rng([seed, machines.n, machines.m, 1])
    counts = rng.multinomial(machines.draws, np.full(machines.draws, 1.0 / machines.draws), BOOTSTRAP)
    again = locate_maximum(betas, np.abs(slope @ counts.T) / machines.draws, centre)
    return {
        **machines._asdict(),
        "visible": "spin",
        "hidden": "bit",
        "seed": seed,
        "betas": betas.tolist(),
        "slope": mean.tolist(),
        "slope_error": error.tolist(),
        "fluctuation": fluctuation.tolist(),
        "fluctuation_error": fluctuation_error.tolist(),
        "maximum": float(locate_maximum(betas, np.abs(mean), centre)),
        "maximum_error": float(again.std(ddof=1)),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "seconds": round(time.perf_counter() - start, 1),
    }


def load_records(path: Path = RECORDS) -> list[dict[str, Any]]:
    return json.loads(path.read_text()) if path.exists() else []


def save_records(records: list[dict[str, Any]], path: Path = RECORDS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n")
    partial.replace(path)


def is_done(machines: Machines, records: list[dict[str, Any]]) -> bool:
    asked = {**machines._asdict(), "seed": SEED, "betas": machines.betas}
    return any(all(record[key] == value for key, value in asked.items()) for record in records)


def run_missing(path: Path = RECORDS) -> None:
    records = load_records(path)
    with threadpool_limits(1):
        for machines in PLAN:
            if is_done(machines, records):
                continue
            print(f"n = {machines.n}, m = {machines.m}, c = {machines.c:g}:", end=" ", flush=True)
            records.append(simulate(machines))
            save_records(records, path)
            print(f"{records[-1]['seconds']} s", flush=True)


class Extrapolation(NamedTuple):
    """``maximum/beta_max = intercept + slope/n``, by weighted least squares."""

    intercept: float
    intercept_error: float
    slope: float
    chi_squared: float
    freedom: int


def select(records: list[dict[str, Any]], alpha: float, c: float) -> list[dict[str, Any]]:
    """The records of one ensemble, by size."""
    chosen = [r for r in records if r["m"] == alpha * r["n"] and r["c"] == c]
    return sorted(chosen, key=lambda r: r["n"])


def extrapolate(records: list[dict[str, Any]], theory: float) -> Extrapolation:
    x = np.array([1.0 / r["n"] for r in records])
    y = np.array([r["maximum"] for r in records]) / theory
    weight = theory / np.array([r["maximum_error"] for r in records])
    design = np.stack([np.ones_like(x), x], axis=1)
    covariance = np.linalg.inv((design * weight[:, None] ** 2).T @ design)
    intercept, slope = covariance @ (design.T @ (weight**2 * y))
    chi_squared = float(np.sum((weight * (y - intercept - slope * x)) ** 2))
    return Extrapolation(
        float(intercept), float(np.sqrt(covariance[0, 0])), float(slope), chi_squared, len(records) - 2
    )


def print_table(records: list[dict[str, Any]]) -> None:
    print("Spin visible, bit hidden units.")
    print("Deviation: root mean square of simulation/theory - 1 at beta <= beta_max.")
    for alpha, c in CENTRES:
        chosen = select(records, alpha, c)
        if not chosen:
            continue
        theory = beta_max(alpha, c=c)
        print(f"\nalpha = {alpha:g}, c = {c:g}: theory's beta_max = {theory:.4f}")
        print(f"{'n':>4}{'m':>4}{'draws':>8}{'maximum':>17}{'ratio':>18}{'deviation':>12}{'seconds':>10}")
        for r in chosen:
            betas, slope = np.array(r["betas"]), np.array(r["slope"])
            below = betas <= theory
            deviation = slope[below] / layer_correlation_slope(betas[below], alpha, c=c) - 1.0
            print(
                f"{r['n']:>4}{r['m']:>4}{r['draws']:>8}"
                f"{r['maximum']:>8.4f} +- {r['maximum_error']:.4f}"
                f"{r['maximum'] / theory:>8.4f} +- {r['maximum_error'] / theory:.4f}"
                f"{np.sqrt(np.mean(deviation**2)):>12.4f}{r['seconds']:>10.1f}"
            )
        if len(chosen) > 2:
            e = extrapolate(chosen, theory)
            print(
                f"  to infinite size: ratio = {e.intercept:.4f} +- {e.intercept_error:.4f} + {e.slope:.3f}/n"
                f"   (chi-squared {e.chi_squared:.1f}, {e.freedom} degrees of freedom)"
            )


def draw_figure(records: list[dict[str, Any]], path: Path = FIGURE) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(2, 2, figsize=(7.4, 5.8), layout="constrained")
    styles = {  # open squares, so that points that coincide are seen
        8: {"color": "#5aa5d2", "marker": "o", "markersize": 3.5},
        12: {"color": "#e08214", "marker": "s", "markersize": 5.5, "markerfacecolor": "none"},
        16: {"color": "#762a83", "marker": "D", "markersize": 2.6},
    }
    for axis, c in zip(axes.flat, (0.0, -2.0, -5.0), strict=False):
        theory = beta_max(1.0, c=c)
        chosen = [r for r in select(records, 1.0, c) if r["n"] in styles]
        fine = np.linspace(0.3 * theory, 1.03 * max(chosen[0]["betas"]), 400)
        curve = np.abs(layer_correlation_slope(fine, 1.0, c=c))
        axis.axvline(theory, color="0.45", linestyle="--", linewidth=1.0)
        axis.plot(fine, curve, color="black", linewidth=1.6, label=r"theory, $n \to \infty$")
        for r in chosen:
            axis.errorbar(
                r["betas"], np.abs(r["slope"]), r["slope_error"], **styles[r["n"]],
                linestyle="none", elinewidth=1.0, capsize=1.5, label=f"$n = m = {r['n']}$",
            )  # fmt: skip
        axis.set_xlim(fine[0], fine[-1])
        axis.set_ylim(0.0, 1.15 * curve.max())
        axis.set_title(rf"$\alpha = 1,\ c = {c:g}$", fontsize=10)
        axis.set_xlabel(r"$\beta$")
        axis.set_ylabel(r"$|\,\partial \chi_{vh} / \partial b\,|$ at $b = 0$")
        axis.annotate(
            rf"$\beta_{{\max}} = {theory:.3f}$", (theory, 1.0), xycoords=("data", "axes fraction"),
            xytext=(-4, -2), textcoords="offset points", ha="right", va="top", color="0.3",
        )  # fmt: skip
    axes[0, 0].legend(frameon=False, loc="lower right", handlelength=1.1, borderaxespad=0.2)

    axis = axes[1, 1]
    axis.axhline(1.0, color="black", linewidth=1.2)
    labels = {  # colour, marker, and where the label stands relative to the smallest machine's point
        (1.0, 0.0): ("#1b9e77", "o", (6, -3)),
        (1.0, -2.0): ("#d95f02", "s", (6, 1)),
        (1.0, -5.0): ("#7570b3", "D", (6, -3)),
        (0.5, -2.0): ("#a6761d", "^", (6, -3)),
        (2.0, -2.0): ("#e7298a", "v", (6, -7)),
    }
    for (alpha, c), (color, marker, place) in labels.items():
        chosen, theory = select(records, alpha, c), beta_max(alpha, c=c)
        x = np.array([1.0 / r["n"] for r in chosen])
        ratio = np.array([r["maximum"] for r in chosen]) / theory
        error = np.array([r["maximum_error"] for r in chosen]) / theory
        axis.errorbar(
            x, ratio, error, color=color, marker=marker, markersize=4, linestyle="none", capsize=2
        )  # fmt: skip
        fit = extrapolate(chosen, theory)
        line = np.array([0.0, x.max()])
        axis.plot(line, fit.intercept + fit.slope * line, color=color, linewidth=0.9, linestyle=":")
        axis.annotate(
            rf"$\alpha = {alpha:g},\ c = {c:g}$", (x[0], ratio[0]), xytext=place,
            textcoords="offset points", color=color, fontsize=8.5,
        )  # fmt: skip
    axis.set_xlim(0.0, 0.22)
    axis.set_ylim(0.98, None)
    axis.set_xticks([0.0, *(1.0 / n for n in (16, 14, 12, 8, 6))], ["0", "1/16", "", "1/12", "1/8", "1/6"])
    axis.tick_params(axis="x", labelsize=7.5)
    axis.set_xlabel(r"$1/n$")
    axis.set_ylabel(r"simulated maximum $/\ \beta_{\max}$")
    axis.set_title("Place of the maximum", fontsize=10)
    axis.text(0.98, 0.03, "dotted: fits linear in $1/n$", transform=axis.transAxes, ha="right", color="0.3")
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=150)
    plt.close(figure)
    Image.open(pixels).convert("RGB").quantize(128).save(path, optimize=True, dpi=(150, 150))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", action="store_true", help="draw the figure from the records and stop")
    if parser.parse_args().figure:
        draw_figure(load_records())
        return
    run_missing()
    print_table(load_records())


if __name__ == "__main__":
    main()
