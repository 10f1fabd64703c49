"""The figure of a diagnosis, from arrays. Matplotlib is imported inside the function.

from paramagnet.diagnosis_plot import plot_diagnosis
plot_diagnosis(**pm.diagnose(rbm, data).arrays()).savefig("diagnosis.png")
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_DATA, _MODEL = "0.45", "C0"  # the data are grey in all panels, chains and samples blue
_MOST_DOTS = 20_000  # pairs that are drawn


def plot_diagnosis(
    *,
    variation: Array,
    idle: Array,
    overlaps: tuple[Array, Array],
    autocorrelation: tuple[Array, Array],
    time: tuple[float, float],
    means: tuple[Array, Array],
    covariances: tuple[Array, Array],
    distances: tuple[Array, Array],
    held_out: bool = False,
) -> Any:
    """Six panels: means, covariances, overlaps with the data, autocorrelation, hidden units, distances.

    Parameters
    ----------
    variation : ndarray
        Standard deviation over the data of the conditional mean of every hidden unit.
    idle : ndarray
        A mask of the idle units.
    overlaps : tuple of ndarray
        Overlaps with the mean of the data, of points and of chains; two empty arrays if there are none.
    autocorrelation : tuple of ndarray
        Distances in sweeps, and the autocorrelation at them.
    time : tuple of float
        The integrated autocorrelation time in sweeps, and its error.
    means, covariances : tuple of ndarray
        Those of the data, and those of the samples.
    distances : tuple of ndarray
        Distances of reference points and of samples to the nearest training point.
    held_out : bool, default False
        Whether the reference points were held out; else they are other training points.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 5.6), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    _draw_pairs(axes[0], "means of visible units", *means)
    _draw_pairs(axes[1], "covariances of pairs", *covariances)
    _draw_shares(axes[2], "overlap with the data's mean", *overlaps, labels=("data", "chains"))
    if overlaps[0].size:
        axes[2].axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axes[2].set_xlabel("1: as the data, -1: mirrored")
    _draw_autocorrelation(axes[3], *autocorrelation, *time)
    _draw_hidden(axes[4], variation, idle)
    reference = "held-out points" if held_out else "other training points"
    _draw_shares(axes[5], "nearest training point", *distances, labels=(reference, "samples"))
    axes[5].set_xlabel("distance")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize("medium")
    return figure


def _draw_pairs(axis: Any, title: str, data: Array, samples: Array) -> None:
    if data.size > _MOST_DOTS:
        chosen = np.random.default_rng(0).choice(data.size, size=_MOST_DOTS, replace=False)
        data, samples = data[chosen], samples[chosen]
    axis.set(title=title, xlabel="data", ylabel="samples")
    if data.size == 0:
        return
    both = np.concatenate((data, samples))
    low, high = float(both.min()), float(both.max())
    axis.plot((low, high), (low, high), color="0.7", linewidth=0.8, zorder=0)
    size = 14.0 if data.size < 500 else 3.0
    axis.scatter(data, samples, s=size, color=_MODEL, alpha=0.6, linewidths=0.0, rasterized=data.size > 2000)


def _draw_shares(axis: Any, title: str, data: Array, states: Array, *, labels: tuple[str, str]) -> None:
    axis.set(title=title, ylabel="share")
    if data.size == 0 or states.size == 0:
        axis.text(0.5, 0.5, "not defined", ha="center", va="center", transform=axis.transAxes, color="0.5")
        axis.set_xticks([])
        axis.set_yticks([])
        return
    both = np.concatenate((data, states))
    low, high = float(both.min()), float(both.max())
    if np.all(both == np.rint(both)) and high - low <= 60.0:  # a bin for each whole number
        edges = np.arange(low - 0.5, high + 1.0)
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, 31)
    for values, colour, label in ((data, _DATA, labels[0]), (states, _MODEL, labels[1])):
        weights = np.full(values.size, 1.0 / values.size)
        axis.hist(values, bins=edges, weights=weights, color=colour, alpha=0.55, label=label)
    axis.legend(frameon=False, fontsize="small")


def _draw_autocorrelation(axis: Any, lags: Array, values: Array, time: float, error: float) -> None:
    shown = int(np.searchsorted(lags, max(6.0 * time, lags[min(5, lags.size - 1)]), side="right"))
    axis.plot(lags[:shown], values[:shown], color=_MODEL, linewidth=1.6)
    axis.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axis.set(title="autocorrelation of the slowest observable", xlabel="sweeps")
    axis.set_ylim(min(-0.05, float(values[:shown].min())), 1.02)
    text = f"{time:.3g} $\\pm$ {error:.2g} sweeps\nper independent state"
    axis.text(0.97, 0.95, text, ha="right", va="top", transform=axis.transAxes, fontsize="small")


def _draw_hidden(axis: Any, variation: Array, idle: Array) -> None:
    order = np.argsort(-variation, kind="stable")
    rank = np.arange(1, variation.size + 1)
    asleep = np.asarray(idle, dtype=bool)[order]
    for mask, colour, label in ((~asleep, _MODEL, "active"), (asleep, "C3", "idle")):
        if mask.any():
            axis.plot(rank[mask], variation[order][mask], "o", color=colour, markersize=3.0, label=label)
    axis.set(title="variation of hidden units on the data", xlabel="hidden units, sorted", ylabel="spreads")
    axis.set_ylim(bottom=0.0)
    axis.legend(frameon=False, fontsize="small")
