"""Draw docs/figures/overview.png: what the theory says about initial scales, and what training says.

    PYTHONPATH=. python benchmarks/overview_figure.py [--results results]

Above, the layer correlation of a 784 x 500 machine against sigma, for three hidden biases, with the scales
that schemes and packages start from. Below, the study of starts: how much of what can be learned each start
misses on held-out points, as a mean over the settings. The figure is made to be read 390 pixels wide.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs" / "figures" / "overview.png"
SIZES = 784, 500
BIASES = {0.0: "#0072b2", -2.0: "#009e73", -5.0: "#d55e00"}
SHOWN = ("rbms 0.5", "scikit-learn", "RBMs.jl", "Hinton", "LeCun", "Xavier", "He", "D-Wave")
STARTS = {  # of the study, by the label of its tables; True where visible biases come from the data
    "hinton": ("0.01 (Hinton)", False),
    "d-wave": ("D-Wave", False),
    "lecun": ("LeCun", False),
    "xavier": ("Xavier", False),
    "β_max": ("theory", False),
    "he": ("He", False),
    "hopfield": ("Hopfield-type", True),
    "hinton + data": ("0.01", True),
    "β_max + data": ("theory", True),
    "β_max/√2 + data": ("0.7 theory", True),
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
    names = [(s, name) for s, name in scales() if name in SHOWN]
    places = spread([np.log10(s) for s, _ in names], 0.2)
    for (x, name), place in zip(names, places, strict=True):
        axis.axvline(x, color="#999999", lw=0.8, ls=":", zorder=0)
        axis.plot([x, 10**place], [1.06, 1.12], color="#999999", lw=0.8, clip_on=False)
        axis.text(10**place, 1.135, name, rotation=90, ha="center", va="bottom")
    axis.set_xscale("log")
    axis.set_xlim(sigma[0], sigma[-1])
    axis.set_ylim(0, 1.06)
    axis.set_xlabel(r"$\sigma$ of the initial weights, 784 x 500 units")
    axis.set_ylabel("layer correlation,\nof its maximum")
    axis.legend(loc="upper left", bbox_to_anchor=(0.02, 0.98), title="theory, hidden bias c", framealpha=1.0)


def draw_losses(axis: Any, folder: Path) -> None:
    """What each start misses of what can be learned, on held-out points."""
    from studies.starts.contest import RULES, read_study
    from studies.starts.contest_tables import STOPPED, losses_of, main_contests

    losses = [losses_of(contest, STOPPED) for contest in main_contests(read_study(folder))]
    means = {rule.label: sum(found[rule] for found in losses) / len(losses) for rule in RULES}
    chosen = sorted(STARTS, key=lambda label: -means[label])
    for place, label in enumerate(chosen):
        from_data = STARTS[label][1]
        axis.barh(place, means[label], color="#0072b2" if from_data else "#bbbbbb")
        axis.text(means[label] + 0.4, place, f"{means[label]:.1f} %", va="center")
    axis.set_yticks(range(len(chosen)), [STARTS[label][0] for label in chosen])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.22 * max(means[label] for label in chosen))
    axis.set_xlabel(
        f"share of the learnable log-likelihood missed,\nheld-out points, mean of {len(losses)} settings"
    )
    for colour, text in (("#bbbbbb", "visible biases zero"), ("#0072b2", "visible biases from data")):
        axis.barh(np.nan, np.nan, color=colour, label=text)
    # narrow and in the corner, so that it touches no label of the bars
    axis.legend(loc="lower right", title="training, by start", handlelength=1.0, borderaxespad=0.1)


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
    pyplot.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = pyplot.figure(figsize=(4.2, 6.4))
    draw_theory(figure.add_axes((0.2, 0.6, 0.77, 0.26)))
    draw_losses(figure.add_axes((0.25, 0.1, 0.72, 0.39)), options.results)
    figure.savefig(FIGURE, dpi=220)
    print(FIGURE)


if __name__ == "__main__":
    main()
