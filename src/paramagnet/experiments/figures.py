"""The paper's figures, and learning curves, from records: what `plots` needs to draw them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paramagnet.experiments.cells import (
    BETA_MAX,
    Runs,
    Setting,
    Start,
    paired_difference,
    summarize,
    values_at,
)
from paramagnet.experiments.store import RunRecord
from paramagnet.plots import Band, BandPanel, Curve, Look, Panel, plot_bands, plot_panels, plot_patterns
from paramagnet.theory.response import layer_correlation, layer_correlation_slope
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import as_unit

Starts = Mapping[Start, Sequence[RunRecord]]
_EPSILONS = (1e-2, 1e-3, 1e-4)
# Okabe and Ito's colours. Gains are solid lines, blue below beta_max, orange above; other schemes are broken.
_LOOKS = {
    Start(gain=0.25): Look("#56b4e9", "-", "o"),
    Start(gain=0.5): Look("#0072b2", "-", "s"),
    BETA_MAX: Look("#000000", "-", "", heavy=True),
    Start(gain=2.0): Look("#e69f00", "-", "^"),
    Start(gain=4.0): Look("#d55e00", "-", "v"),
    Start("xavier"): Look("#009e73", "--", "x"),
    Start("he"): Look("#cc79a7", "-.", "+"),
    Start("lecun"): Look("#808080", ":", "D"),
    Start("hinton"): Look("#a6761d", "--", ""),
    Start("layer-correlation+data"): Look("#000000", "--", "", heavy=True),
    Start("layer-correlation+data-own"): Look("#cc3377", "--", "*"),
    Start("layer-correlation+data", 0.5): Look("#0072b2", "--", "s"),
    Start("layer-correlation+data", 0.7071): Look("#56b4e9", "--", "o"),
    Start("hinton+data"): Look("#a6761d", ":", "x"),
    Start("hopfield"): Look("#117733", "-", "D"),
}
_OTHER = Look("#8a6fd1", ":", ".")
_FROM = 0.1  # differences are drawn from this share of the epochs on, where they matter
_LATE = 0.25  # and the frame is chosen for those after this share


def draw_layer_correlation(
    hidden: str,
    alphas: Sequence[float] | None = None,
    biases: Sequence[float] | None = None,
    stop: float = 0.0,
) -> Any:
    """The layer correlation against beta, [Y25] fig:susp_binary (bit) and fig:susp_ising (spin).

    ``stop`` is where the beta axis ends; 0 takes a little beyond the maxima.
    """
    if as_unit(hidden, "hidden").symmetric:
        panels = [_symmetric_panel(hidden, alpha, stop) for alpha in alphas or (0.5, 1.0, 1.5)]
        y_label = r"$|\chi_{vh}|/\epsilon$ at $b = c = \epsilon$"
    else:
        panels = [_bit_panel(alpha, biases or (0.0, -5.0), stop) for alpha in alphas or (0.5, 1.0, 2.0)]
        y_label = r"$|\partial\chi_{vh}/\partial b|$ at $b = 0$"
    return plot_panels(panels, x_label=r"$\beta$", y_label=y_label)


def _bit_panel(alpha: float, biases: Sequence[float], stop: float) -> Panel:
    maxima = [find_beta_max(alpha, c=c) for c in biases]
    if not stop:
        stop = max(8.0, 1.3 * max((m.beta for m in maxima if np.isfinite(m.beta)), default=0.0))
    beta = np.linspace(0.02, stop, 400)
    curves = []
    for c, maximum in zip(biases, maxima, strict=True):
        label = f"c = {c:g}"
        mark = None
        if np.isfinite(maximum.value) and maximum.beta <= stop:
            mark = (maximum.beta, abs(maximum.value))
            label += rf", $\beta_{{max}}$ = {maximum.beta:.3f}"
        curves.append(Curve(beta, np.abs(layer_correlation_slope(beta, alpha, c=c)), label, mark))
    return Panel(rf"$\alpha$ = {alpha:g}", curves)


def _symmetric_panel(hidden: str, alpha: float, stop: float) -> Panel:
    """For spin or Gaussian hidden units."""
    critical = find_beta_max(alpha, hidden=hidden).beta
    stop = stop or max(2.5, 1.4 * critical)
    beta = np.union1d(np.linspace(0.02, stop, 300), critical * (1.0 + 0.2 * np.linspace(-1, 1, 201) ** 3))
    beta = beta[beta <= stop]
    curves = []
    for eps in _EPSILONS:
        y = np.abs(layer_correlation(beta, alpha, hidden=hidden, b=eps, c=eps)) / eps
        top = int(np.argmax(y))
        curves.append(Curve(beta, y, rf"$\epsilon$ = {eps:g}", (float(beta[top]), float(y[top]))))
    title = rf"$\alpha$ = {alpha:g}, $\beta_{{critical}}$ = {critical:.3f}"
    return Panel(title, curves, at=critical if critical <= stop else None)


def draw_base_patterns() -> Any:
    """The four patterns that the toy data are flipped from, [Y25] fig:4BD; +1 dark, -1 light."""
    from paramagnet.data.datasets import toy_patterns

    return plot_patterns(toy_patterns(), ("(a)", "(b)", "(c)", "(d)"))


def draw_learning_curves(
    runs: Runs, settings: Sequence[Setting], *, field: str = "log_likelihood", name_data: bool = False
) -> Any:
    """For each setting the log-likelihood of every start (above), and its difference to beta_max (below).

    Bands are one standard deviation over trials above, two standard errors of the paired difference below.
    ``name_data`` puts the data set in the titles.
    """
    above = [_curves(setting, runs[setting], field) for setting in settings]
    if name_data:
        titles = (f"{s.dataset}, {panel.title}" for s, panel in zip(settings, above, strict=True))
        above = [replace(panel, title=title) for panel, title in zip(above, titles, strict=True)]
    below = [_differences(runs[setting], field) for setting in settings]
    labels = ("log-likelihood\n(nats per point)", "log-likelihood minus\nthat of $\\beta_{max}$")
    if not any(panel.bands for panel in below):
        return plot_bands((above,), y_labels=labels[:1])
    return plot_bands((above, below), y_labels=labels)


def _label(start: Start) -> str:
    return start.label.replace("β_max", r"$\beta_{max}$")


def _epochs(records: Sequence[RunRecord]) -> set[int]:
    return {epoch for record in records for epoch in record.epochs}


def _in_order(starts: Starts) -> list[Start]:
    """Gains, then other schemes; what is drawn over the rest comes last."""
    known = [start for start in _LOOKS if start in starts]
    return known + sorted(starts.keys() - set(known))


def _curves(setting: Setting, starts: Starts, field: str) -> BandPanel:
    bands, top = [], -math.inf
    for start in _in_order(starts):
        epochs = sorted(_epochs(starts[start]))
        summaries = [summarize(values_at(starts[start], epoch, field).values()) for epoch in epochs]
        mean = np.array([summary.mean for summary in summaries])
        half = np.array([summary.std if summary.n_finite > 1 else 0.0 for summary in summaries])
        top = max(top, float(np.max(mean + half, initial=-math.inf, where=np.isfinite(mean))))
        look = _LOOKS.get(start, _OTHER)
        bands.append(Band(epochs, mean, mean - half, mean + half, _label(start), look))
    top = top if math.isfinite(top) else 0.0
    bottom = min(-1.05 * setting.n_visible * math.log(2.0), top - 1.0)  # a little below independent units
    return BandPanel(setting.label.replace("-", "−"), bands, bottom, top + 0.04 * (top - bottom))


def _differences(starts: Starts, field: str) -> BandPanel:
    reference = starts.get(BETA_MAX, ())
    last = max(_epochs(reference), default=0)
    bands, late = [], [0.0]
    for start in _in_order(starts) if len(starts) > 1 and reference else ():
        epochs = sorted(e for e in _epochs(starts[start]) & _epochs(reference) if e >= max(_FROM * last, 1))
        band = _paired_band(starts[start], reference, epochs, field, _label(start), start)
        bands.append(band)
        chosen = np.asarray(epochs) >= _LATE * last
        late += [value for value in np.asarray(band.mean)[chosen] if math.isfinite(value)]
    top = max(late)
    bottom = min(0.0, float(np.quantile(late, 0.25)))
    room = 0.2 * max(top - bottom, 1e-3)
    return BandPanel("", bands, bottom - room, top + room, max(_FROM * last, 1))


def _paired_band(
    first: Sequence[RunRecord],
    second: Sequence[RunRecord],
    epochs: Sequence[int],
    field: str,
    label: str,
    start: Start,
) -> Band:
    """The first minus the second, trial by trial, with two standard errors."""
    pairs = [
        paired_difference(values_at(first, epoch, field), values_at(second, epoch, field)) for epoch in epochs
    ]
    mean = np.array([pair.mean for pair in pairs])
    half = np.array([2.0 * pair.error if pair.n_finite > 1 else 0.0 for pair in pairs])
    return Band(epochs, mean, mean - half, mean + half, label, _LOOKS.get(start, _OTHER))


def draw_long_run(runs: Runs, setting: Setting, *, first: int = 50) -> Any:
    """Log-likelihood of beta_max minus that of other gains, for long, [Y25] fig:DB_likelihood_diff.

    From the epoch ``first`` on. Bands are two standard errors of the paired difference. The y axis is linear
    up to 0.01 and logarithmic beyond.
    """
    starts = runs[setting]
    reference = starts.get(BETA_MAX, ())
    bands = []
    for start in (start for start in _in_order(starts) if start != BETA_MAX):
        epochs = sorted(epoch for epoch in _epochs(starts[start]) & _epochs(reference) if epoch >= first)
        label = rf"$\beta_{{max}}$ minus {_label(start)}"
        bands.append(_paired_band(reference, starts[start], epochs, "log_likelihood", label, start))
    lowest = min((float(np.min(np.asarray(band.low), initial=0.0)) for band in bands), default=0.0)
    panel = BandPanel("", bands, 0.0 if lowest == 0.0 else None, first=first, linear=0.01)
    return plot_bands(((panel,),), y_labels=("difference (nats per point)",))
