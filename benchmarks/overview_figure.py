"""Draw docs/figures/overview.png: what the theory says about initial scales, and what training says.

    python benchmarks/overview_figure.py [--results results]

Left, the layer correlation of a 784 x 500 machine against sigma, for three hidden biases, with the scales
that schemes and packages start from. Right, every setting of the paper that has records: how far the
training log-likelihood after the last epoch falls short of that from beta_max, for the five gains.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.sweeps.groups import BETA_MAX, GAINS, Start, group_runs, paired_difference, values_at
from paramagnet.sweeps.store import read_results

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs" / "figures" / "overview.png"
SIZES = 784, 500
BIASES = {0.0: "#0072b2", -2.0: "#009e73", -5.0: "#d55e00"}
SETS = {
    "toy": ("toy", "#0072b2", "o"),
    "drybean": ("Dry Bean", "#d55e00", "s"),
    "ulc": ("Urban Land Cover", "#009e73", "^"),
    "mnist": ("MNIST", "#cc79a7", "D"),
}
NAMES = {
    "xavier": "Xavier",
    "he": "He",
    "lecun": "LeCun",
    "hinton": "Hinton",
    "RestrictedBoltzmannMachines.jl": "RBMs.jl",
    "D-Wave plugin 0.4": "D-Wave",
}


def scales() -> list[tuple[float, str]]:
    """Where everything but ours stands on the axis of spin-bit machines without bias, and its name, from the
    smallest: its sigma over ours in its own unit types, times our sigma.
    """
    ours = pm.weight_std(*SIZES)
    return sorted(
        (report.to_ours * ours, NAMES.get(report.name, report.name))
        for report in pm.compare_schemes(*SIZES)
        if report.name != "layer-correlation"
    )


def spread(positions: Sequence[float], least: float) -> list[float]:
    """The positions moved apart, so that neighbours are at least so far from each other."""
    places = list(positions)
    for _ in range(500):
        for i in range(len(places) - 1):
            lack = least - (places[i + 1] - places[i])
            if lack > 0:
                places[i] -= lack / 2
                places[i + 1] += lack / 2
    return places


def draw_theory(axis: Any) -> None:
    """The layer correlation over its maximum, and where others start."""
    n, m = SIZES
    sigma = np.geomspace(2.5e-5, 0.5, 500)
    for c, colour in BIASES.items():
        best = pm.theory.find_beta_max(m / n, c=c)
        curve = np.abs(pm.theory.layer_correlation_slope(sigma * np.sqrt(n + m), m / n, c=c) / best.value)
        at = best.beta / np.sqrt(n + m)
        axis.plot(sigma, curve, color=colour, lw=2)
        axis.plot(at, 1.0, "o", color=colour, ms=7, label=rf"c = {c:g}: $\sigma$ = {at:.4f}", zorder=5)
    names = scales()
    places = spread([np.log10(s) for s, _ in names], 0.15)
    for (x, name), place in zip(names, places, strict=True):
        axis.axvline(x, color="#999999", lw=0.8, ls=":", zorder=0)
        axis.plot([x, 10**place], [1.06, 1.12], color="#999999", lw=0.8, clip_on=False)
        axis.text(10**place, 1.135, name, rotation=90, ha="center", va="bottom", fontsize=9)
    axis.set_xscale("log")
    axis.set_xlim(sigma[0], sigma[-1])
    axis.set_ylim(0, 1.06)
    axis.set_xlabel(r"$\sigma$ of the initial weights, 784 x 500 units")
    axis.set_ylabel("layer correlation over its maximum")
    axis.legend(loc="upper left", bbox_to_anchor=(0.1, 0.98), fontsize=10, title="theory, bit hidden units")


def losses(folder: Path) -> Iterator[tuple[str, list[float], list[float], list[float]]]:
    """For every setting: the set, the gains, the difference to beta_max and its standard error."""
    records = [r for r in read_results(folder) if r.table]  # other sweeps have other settings
    for setting, starts in sorted(group_runs(records).items()):
        if BETA_MAX not in starts:
            continue
        last = max(epoch for record in starts[BETA_MAX] for epoch in record.epochs)
        ours = values_at(starts[BETA_MAX], last)
        gains, means, errors = [], [], []
        for gain in GAINS:
            if Start(gain=gain) in starts:
                difference = paired_difference(values_at(starts[Start(gain=gain)], last), ours)
                gains.append(gain)
                means.append(difference.mean)
                errors.append(np.nan_to_num(difference.error))
        yield setting.dataset, gains, means, errors


def draw_training(axis: Any, folder: Path) -> None:
    """What a start at another scale costs at the end of training."""
    shown: set[str] = set()
    for dataset, gains, means, errors in losses(folder):
        name, colour, mark = SETS[dataset]
        label = None if name in shown else name
        shown.add(name)
        axis.errorbar(
            gains, means, errors, color=colour, marker=mark, ms=5, lw=1.2, alpha=0.75, capsize=2, label=label
        )
    axis.axhline(0, color="black", lw=1)
    axis.axvline(1, color="black", lw=1, ls=":")
    axis.set_xscale("log", base=2)
    axis.set_xticks(GAINS, ["1/4", "1/2", "1", "2", "4"])
    axis.set_yscale("symlog", linthresh=0.1, linscale=1.0)
    ticks = (-100, -10, -1, -0.1, 0, 0.1, 1, 10)
    axis.set_yticks(ticks, [f"{tick:+g}".replace("-", "\N{MINUS SIGN}") if tick else "0" for tick in ticks])
    axis.set_xlabel(r"initial $\sigma$ over that of the theory")
    axis.set_ylabel("training log-likelihood at the end,\nagainst the theory's start (nats)")
    low, high = axis.get_ylim()
    axis.set_ylim(1.5 * low, max(20.0 * high, 100.0))
    axis.legend(loc="upper left", fontsize=10, title="training, the paper's settings", ncols=2)


def main() -> None:
    """Draw the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    pyplot.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure = pyplot.figure(figsize=(11, 4.5))
    draw_theory(figure.add_axes((0.065, 0.125, 0.48, 0.64)))
    draw_training(figure.add_axes((0.65, 0.125, 0.34, 0.82)), options.results)
    figure.savefig(FIGURE, dpi=150)
    print(FIGURE)


if __name__ == "__main__":
    main()
