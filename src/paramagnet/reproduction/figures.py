"""The paper's figures, and learning curves, from records: what `plots` needs to draw them.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paramagnet.plots import BandPanel, Curve, Panel, plot_bands, plot_panels, plot_patterns
from paramagnet.sweeps.curves import epochs_of, in_order, paired_band, start_label
from paramagnet.sweeps.groups import (
    BETA_MAX,
    Runs,
    Setting,
)
from paramagnet.theory.response import layer_correlation, layer_correlation_slope
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import as_unit

_EPSILONS = (1e-2, 1e-3, 1e-4)


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
    from paramagnet.data.source_readers import toy_patterns

    return plot_patterns(toy_patterns(), ("(a)", "(b)", "(c)", "(d)"))


def draw_long_run(runs: Runs, setting: Setting, *, first: int = 50) -> Any:
    """Log-likelihood of beta_max minus that of other gains, for long, [Y25] fig:DB_likelihood_diff.

    From the epoch ``first`` on. Bands are two standard errors of the paired difference. The y axis is linear
    up to 0.01 and logarithmic beyond.
    """
    starts = runs[setting]
    reference = starts.get(BETA_MAX, ())
    bands = []
    for start in (start for start in in_order(starts) if start != BETA_MAX):
        epochs = sorted(epoch for epoch in epochs_of(starts[start]) & epochs_of(reference) if epoch >= first)
        label = rf"$\beta_{{max}}$ minus {start_label(start)}"
        bands.append(paired_band(reference, starts[start], epochs, "log_likelihood", label, start))
    lowest = min((float(np.min(np.asarray(band.low), initial=0.0)) for band in bands), default=0.0)
    panel = BandPanel("", bands, 0.0 if lowest == 0.0 else None, first=first, linear=0.01)
    return plot_bands(((panel,),), y_labels=("difference (nats per point)",))
