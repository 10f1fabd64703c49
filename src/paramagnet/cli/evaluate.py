"""``paramagnet evaluate``: the log-likelihood of a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.train import read_points
from paramagnet.rbm import RBM

if TYPE_CHECKING:  # imported where it is used: `paramagnet --help` must not load the kernels
    from paramagnet.learning.likelihood import Estimate


def evaluate(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: Annotated[
        Path, typer.Argument(help="The data: .npy, .npz, .csv, .parquet, .arff or idx, a point per row.")
    ],
    method: Annotated[str, typer.Option(help="auto, exact, mais, ais or reverse-ais.")] = "auto",
    samples: Annotated[int, typer.Option(help="Chains, where ln Z is estimated.")] = 1000,
    temperatures: Annotated[int, typer.Option(help="Temperatures, where ln Z is estimated.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Seed of the estimate.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the log-likelihood of data under a machine, in nats per point.

    It is exact where that takes at most ten minutes; else ln Z is estimated by mAIS, and the error is
    printed.
    """
    from paramagnet.learning.annealing import METHODS, estimate_log_partition
    from paramagnet.learning.exact import SECONDS_ALLOWED, estimate_seconds, log_partition
    from paramagnet.learning.gibbs import count_cores
    from paramagnet.learning.likelihood import Estimate, log_likelihood

    if method not in ("auto", "exact", *METHODS):
        raise ValueError(f"`--method` must be auto, exact or one of {', '.join(METHODS)}, got {method!r}.")
    rbm = RBM.load(model)
    points = read_points(data, rbm.visible.name)
    n_threads = count_cores()
    if method == "auto":
        seconds = estimate_seconds(rbm.n_visible, rbm.n_hidden, n_threads=n_threads, gradient=False)
        method = "exact" if seconds <= SECONDS_ALLOWED else "mais"
    if method == "exact":
        log_z = Estimate(log_partition(rbm, n_threads=n_threads))
    else:
        log_z = estimate_log_partition(
            rbm, method=method, n_samples=samples, n_temperatures=temperatures, rng=seed
        )
    estimate = log_likelihood(rbm, points, log_partition=log_z)
    how = "exact" if method == "exact" else f"{method}: {samples} samples, {temperatures} temperatures"
    if as_json:
        typer.echo(json.dumps(_record(estimate, log_z, method, len(points)), allow_nan=False))
    else:
        value, log_partition_text = _show(estimate), _show(log_z)
        typer.echo(f"log-likelihood: {value} nats per point ({len(points)} points, {how})")
        typer.echo(f"log Z: {log_partition_text}")
    if not estimate.trusted:
        typer.echo(
            f"Do not trust this: {log_z.n_effective:.3g} effective samples. "
            "Try more `--temperatures`, then more `--samples`.",
            err=True,
        )


def _show(estimate: Estimate) -> str:
    error = f" +- {estimate.error:.2g}" if estimate.error > 0.0 else ""
    return f"{estimate.value:.6f}{error}"


def _record(estimate: Estimate, log_z: Estimate, method: str, n_points: int) -> dict[str, object]:
    exact = method == "exact"
    return {
        "log_likelihood": estimate.value,
        "error": estimate.error if estimate.error < float("inf") else None,
        "log_partition": log_z.value,
        "n_points": n_points,
        "method": method,
        "n_effective": None if exact else log_z.n_effective,
        "trusted": estimate.trusted,
    }
