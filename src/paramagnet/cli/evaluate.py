"""``paramagnet evaluate``: the log-likelihood of a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from paramagnet.cli.train import read_points
from paramagnet.rbm import RBM


def evaluate(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: Annotated[Path, typer.Argument(help="The data: .npy, .npz or .csv, one point per row.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the exact log-likelihood of data under a machine, in nats per point."""
    from paramagnet.learning.exact import log_partition
    from paramagnet.learning.likelihood import log_likelihood

    rbm = RBM.load(model)
    points = read_points(data, rbm.visible.name)
    log_z = log_partition(rbm)
    estimate = log_likelihood(rbm, points, log_partition=log_z)
    if as_json:
        values = {"log_likelihood": estimate.value, "error": estimate.error, "log_partition": log_z}
        typer.echo(json.dumps({**values, "n_points": len(points)}))
    else:
        typer.echo(f"log-likelihood: {estimate.value:.6f} nats per point ({len(points)} points, exact)")
        typer.echo(f"log Z: {log_z:.6f}")
