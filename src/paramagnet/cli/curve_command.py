"""``paramagnet curve``: the layer correlation against beta (Figures 1 and 2 of the paper)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def curve(
    out: Annotated[Path, typer.Argument(help="Where to write the figure: .png, .svg or .pdf.")],
    hidden: Annotated[
        str, typer.Option(help="Hidden units: bit (Figure 1), spin (Figure 2) or gaussian.")
    ] = "bit",
    alpha: Annotated[
        list[float] | None, typer.Option(help="Ratio of the layer sizes; repeat for more.")
    ] = None,
    hidden_bias: Annotated[
        list[float] | None, typer.Option(help="Hidden bias; repeat for more. Bit units only.")
    ] = None,
    beta_stop: Annotated[
        float, typer.Option(help="End of the beta axis; 0 chooses one beyond the maxima.")
    ] = 0.0,
) -> None:
    """Draw |chi_vh| against beta for several alpha and hidden biases, with the maxima marked.

    With spin visible units and no visible bias, chi_vh itself is zero by symmetry. For bit hidden units
    its slope in the visible bias is drawn; for spin and Gaussian hidden units chi_vh/eps at b = c = eps for
    three small eps, whose peak closes in on the transition.
    """
    from paramagnet.plots import check_figure_path

    check_figure_path(out)
    if not (math.isfinite(beta_stop) and (beta_stop == 0.0 or beta_stop > 0.1)):
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
    from paramagnet.plots import save_figure
    from paramagnet.reproduction.figures import draw_layer_correlation
    from paramagnet.units import as_unit

    if as_unit(hidden, "hidden").symmetric and hidden_bias:
        raise ValueError("`--hidden-bias` is for bit hidden units; with others b = c = eps is drawn.")
    save_figure(draw_layer_correlation(hidden, alpha, hidden_bias, beta_stop), out)
