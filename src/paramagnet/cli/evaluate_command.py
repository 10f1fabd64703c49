"""``paramagnet evaluate``: the log-likelihood of a data file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.interruptions import AGAIN, interruptible
from paramagnet.cli.points_file import Header, read_points

if TYPE_CHECKING:
    from paramagnet.estimates import Estimate


def evaluate(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: Annotated[
        Path, typer.Argument(help="The data: .npy, .npz, .csv, .parquet, .arff or idx, a point per row.")
    ],
    method: Annotated[str, typer.Option(help="auto, exact, mais, ais or reverse-ais.")] = "auto",
    samples: Annotated[int, typer.Option(help="Chains, where ln Z is estimated.")] = 1000,
    temperatures: Annotated[int, typer.Option(help="Temperatures, where ln Z is estimated.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Seed of the estimate.")] = None,
    header: Header = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the log-likelihood of data under a machine, in nats per point.

    It is exact where that takes at most ten minutes; else ln Z is estimated by mAIS, and the error is
    printed.
    """
    from paramagnet._parallel import count_cores
    from paramagnet.cli.console import Bar, say
    from paramagnet.exact.cost import SECONDS_ALLOWED
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.learning.likelihood import log_likelihood
    from paramagnet.rbm import RBM

    policy = LogZ(method, seconds=SECONDS_ALLOWED, n_samples=samples, n_temperatures=temperatures)
    rbm = RBM.load(model)
    points = read_points(data, rbm.visible.name, header)
    n_threads = count_cores()
    method, why, _ = policy.choose(rbm, n_threads)
    with interruptible(lambda: AGAIN):
        with Bar("exact ln Z" if method == "exact" else f"ln Z by {method}") as bar:
            log_z = replace(policy, method=method)(rbm, seed, n_threads=n_threads, progress=bar.show)
        estimate = log_likelihood(rbm, points, log_partition=log_z)
    if as_json:
        typer.echo(json.dumps(_record(estimate, log_z, method, why, len(points)), allow_nan=False))
    else:
        how = "exact" if method == "exact" else f"{method}: {samples} samples, {temperatures} temperatures"
        say(f"log-likelihood: {show_estimate(estimate)} nats per point ({len(points)} points, {how})")
        typer.echo(f"log Z: {show_estimate(log_z)}")
        say(f"method: {method}, {why}")
    if not estimate.trusted:
        say(
            f"Do not trust this: {log_z.n_effective:.3g} effective samples. "
            "Try more `--temperatures`, then more `--samples`.",
            err=True,
        )


def show_estimate(estimate: Estimate) -> str:
    """The value, with its error if it has one."""
    error = f" +- {estimate.error:.2g}" if estimate.error > 0.0 else ""
    return f"{estimate.value:.6f}{error}"


def _record(estimate: Estimate, log_z: Estimate, method: str, why: str, n_points: int) -> dict[str, object]:
    exact = method == "exact"
    return {
        "log_likelihood": estimate.value,
        "error": estimate.error if estimate.error < float("inf") else None,
        "log_partition": log_z.value,
        "n_points": n_points,
        "method": method,
        "why": why,
        "n_effective": None if exact else log_z.n_effective,
        "trusted": estimate.trusted,
    }
