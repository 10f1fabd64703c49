"""``paramagnet evaluate``: the log-likelihood of a data file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.interruptions import AGAIN, interruptible
from paramagnet.cli.points_file import DataArgument, Header, read_weights
from paramagnet.cli.points_source import load_measured, split_weights
from paramagnet.cli.table_options import (
    ColumnsOption,
    DropOption,
    LabelOption,
    MissingOption,
    NoLabel,
    NumbersOption,
    TableOptions,
)

if TYPE_CHECKING:
    from paramagnet.estimates import Estimate
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.rbm import RBM


def evaluate(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: DataArgument,
    method: Annotated[
        str, typer.Option(help="How to find ln Z: auto, exact, mais, ais or reverse-ais.")
    ] = "auto",
    samples: Annotated[int, typer.Option(help="Number of chains where ln Z is estimated.")] = 1000,
    temperatures: Annotated[int, typer.Option(help="Number of temperatures where ln Z is estimated.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Seed of the estimate.")] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Only the rows that `train --held-out` set aside.")
    ] = False,
    sample_weight: Annotated[
        Path | None, typer.Option(help="Weights of the rows of DATA: a file with one number for each.")
    ] = None,
    missing: MissingOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    numbers: NumbersOption = None,
    header: Header = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the log-likelihood of data under a machine, in nats per point.

    It is printed with two errors: that of a mean over these points, and that of ln Z. ln Z is exact where
    that takes at most ten minutes; else it is estimated by mAIS.

    A machine that was trained on a table takes tables with the same columns: its file keeps their names,
    thresholds and scales. The file of a machine trained on sequences keeps the alphabet and the sites.
    Where a file of sequences has counts, each sequence counts so often in the mean, unless weights are given.
    """
    import numpy as np

    from paramagnet.cli.console import say
    from paramagnet.data.preparation import Preparation
    from paramagnet.estimates import show_likelihood
    from paramagnet.exact.cost import SECONDS_ALLOWED
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.learning.independent import level_of, level_of_means
    from paramagnet.learning.likelihood import log_likelihood
    from paramagnet.rbm import RBM

    policy = LogZ(method, seconds=SECONDS_ALLOWED, n_samples=samples, n_temperatures=temperatures)
    rbm = RBM.load(model)
    options = TableOptions(columns, drop, label, no_label, missing, numbers, None, header)
    source = load_measured(data, model, rbm.visible.name, options, held_out)
    points, weights = source.states, split_weights(read_weights(sample_weight, header), source)[0]
    weights = source.weights if weights is None else weights
    log_z, method, why = find_log_z(rbm, policy, seed)
    estimate = log_likelihood(rbm, points, log_partition=log_z, sample_weight=weights)
    trained = source.preparation is not None  # the file of the machine holds the means of the rows it learned
    if source.preparation is None:
        level = level_of(rbm.visible, points, points, weights, weights)
    else:
        level = level_of_means(rbm.visible, np.array(source.preparation.means), points, weights)
    if as_json:
        record = _record(estimate, log_z, method, why, len(points))
        record["points_error"] = estimate.points_error if math.isfinite(estimate.points_error) else None
        record["independent"] = level
        typer.echo(json.dumps(record, allow_nan=False))
    else:
        errors = estimate.points_error, estimate.n_points, estimate.error
        text = show_likelihood(estimate.value, *errors)  # whether to trust it is said below
        say(f"log-likelihood: {text}, nats per point")
        if isinstance(source.preparation, Preparation) and rbm.visible.values is None:
            shift = source.preparation.log_scale
            say(f"  of the standardized columns; in your own units {estimate.value - shift:.2f}")
        gain = estimate.value - level
        place = f"{abs(gain):.2f} {'above' if gain >= 0.0 else 'below'}"
        whose = "the training rows" if trained else "these points"
        say(f"independent units: {level:.2f} (means of {whose}); the machine is {place}")
        trusted = "yes" if estimate.trusted else "NO"
        how = f"{method}: {samples} samples, {temperatures} temperatures, {log_z.n_effective:.3g} effective"
        say(f"ln Z: {show_estimate(log_z)} ({'exact' if method == 'exact' else how}); trusted: {trusted}")
        say(f"method: {method}, {why}")
    if not estimate.trusted:
        say(
            f"Do not trust this: {log_z.n_effective:.3g} effective samples. "
            "Try more `--temperatures`, then more `--samples`.",
            err=True,
        )


def find_log_z(rbm: RBM, policy: LogZ, seed: int | None) -> tuple[Estimate, str, str]:
    """ln Z of a machine, the method, and why it was chosen; a bar shows the progress."""
    from paramagnet._parallel import count_cores
    from paramagnet.cli.console import Bar

    n_threads = count_cores()
    method, why, _ = policy.choose(rbm, n_threads)
    with interruptible(lambda: AGAIN), Bar("exact ln Z" if method == "exact" else f"ln Z by {method}") as bar:
        log_z = replace(policy, method=method)(rbm, seed, n_threads=n_threads, progress=bar.show)
    return log_z, method, why


def show_estimate(estimate: Estimate) -> str:
    """The value, with its error if it has one and as many digits as that allows."""
    from paramagnet.estimates import decimals_of

    if not estimate.error > 0.0:
        return f"{estimate.value:.6f}"
    decimals = decimals_of(estimate.error)
    return f"{estimate.value:.{decimals}f} +- {estimate.error:.{decimals}f}"


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
