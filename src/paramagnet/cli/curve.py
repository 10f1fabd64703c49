"""``paramagnet curve``: the layer correlation against beta (Figures 1 and 2 of the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from paramagnet.plots import Curve, Panel, check_figure_path, plot_panels, save_figure
from paramagnet.theory.response import layer_correlation, layer_correlation_slope
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import as_unit

_EPSILONS = (1e-2, 1e-3, 1e-4)


def curve(
    out: Annotated[Path, typer.Argument(help="Where to write the figure: .png, .svg or .pdf.")],
    hidden: Annotated[str, typer.Option(help="Hidden units: bit (Figure 1) or spin (Figure 2).")] = "bit",
    alpha: Annotated[
        list[float] | None, typer.Option(help="Ratio of the layer sizes; repeat for more.")
    ] = None,
    hidden_bias: Annotated[
        list[float] | None, typer.Option(help="Hidden bias; repeat for more. Bit units only.")
    ] = None,
    beta_stop: Annotated[float, typer.Option(help="Where the beta axis ends; 0: beyond the maxima.")] = 0.0,
) -> None:
    """Draw |chi_vh| against beta for several alpha and hidden biases, with the maxima marked.

    With spin visible units and no visible bias, chi_vh itself is zero by symmetry. For bit hidden units
    its slope in the visible bias is drawn; for spin hidden units chi_vh/eps at b = c = eps for three
    small eps, whose peak closes in on the transition.
    """
    check_figure_path(out)
    if not (np.isfinite(beta_stop) and (beta_stop == 0.0 or beta_stop > 0.1)):
        raise ValueError(f"`--beta-stop` must be above 0.1, got {beta_stop:g}.")
    draw_curves(out, hidden, alpha, hidden_bias, beta_stop)
    typer.echo(f"layer correlation: {out}")


def draw_curves(
    out: Path,
    hidden: str,
    alpha: list[float] | None = None,
    hidden_bias: list[float] | None = None,
    beta_stop: float = 0.0,
) -> None:
    """Write the figure; shared with the demo."""
    if as_unit(hidden, "hidden").symmetric:
        if hidden_bias:
            raise ValueError("`--hidden-bias` is for bit hidden units; with spins b = c = eps is drawn.")
        panels = [_spin_panel(a, beta_stop) for a in alpha or [0.5, 1.0, 1.5]]
        y_label = r"$|\chi_{vh}|/\epsilon$ at $b = c = \epsilon$"
    else:
        panels = [_bit_panel(a, hidden_bias or [0.0, -5.0], beta_stop) for a in alpha or [0.5, 1.0, 2.0]]
        y_label = r"$|\partial\chi_{vh}/\partial b|$ at $b = 0$"
    figure = plot_panels(panels, x_label=r"$\beta$", y_label=y_label)
    save_figure(figure, out)


def _bit_panel(alpha: float, biases: list[float], stop: float) -> Panel:
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


def _spin_panel(alpha: float, stop: float) -> Panel:
    critical = find_beta_max(alpha, hidden="spin").beta
    stop = stop or max(2.5, 1.4 * critical)
    beta = np.union1d(np.linspace(0.02, stop, 300), critical * (1.0 + 0.2 * np.linspace(-1, 1, 201) ** 3))
    beta = beta[beta <= stop]
    curves = []
    for eps in _EPSILONS:
        y = np.abs(layer_correlation(beta, alpha, hidden="spin", b=eps, c=eps)) / eps
        top = int(np.argmax(y))
        curves.append(Curve(beta, y, rf"$\epsilon$ = {eps:g}", (float(beta[top]), float(y[top]))))
    title = rf"$\alpha$ = {alpha:g}, $\beta_{{critical}}$ = {critical:.3f}"
    return Panel(title, curves, at=critical if critical <= stop else None)
