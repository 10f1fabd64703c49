"""``paramagnet score``: the log-likelihood of every row of a table."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import typer

from paramagnet.cli.evaluate_command import find_log_z, show_estimate
from paramagnet.cli.points_file import DataArgument, Header
from paramagnet.cli.points_source import load_measured
from paramagnet.cli.table_options import LabelOption, MissingOption, NoLabel, TableOptions


def score(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Where to write the scores (.csv).")],
    method: Annotated[
        str, typer.Option(help="How to find ln Z: auto, exact, mais, ais or reverse-ais.")
    ] = "auto",
    samples: Annotated[int, typer.Option(help="Number of chains where ln Z is estimated.")] = 1000,
    temperatures: Annotated[int, typer.Option(help="Number of temperatures where ln Z is estimated.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Seed of the estimate.")] = None,
    missing: MissingOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    header: Header = None,
) -> None:
    """Write the log-likelihood of each row of a table, in nats, to a .csv.

    The column `row` counts the rows of the table from 1, without the header; rows that are left out by
    --missing drop are not there. A row with a low log-likelihood is unusual for the machine. Sequences have
    their names beside. Where ln Z is estimated, the column `error` is its standard error in nats: the same in
    each row, because all scores are off by the same amount.
    """
    from paramagnet._files import writable_target
    from paramagnet.cli.console import say
    from paramagnet.cli.csv_output import write_csv
    from paramagnet.exact.cost import SECONDS_ALLOWED
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.rbm import RBM

    check_csv(out, data)
    writable_target(out)
    policy = LogZ(method, seconds=SECONDS_ALLOWED, n_samples=samples, n_temperatures=temperatures)
    rbm = RBM.load(model)
    options = TableOptions(None, None, label, no_label, missing, None, None, header)
    source = load_measured(data, model, rbm.visible.name, options)
    log_z, _, _ = find_log_z(rbm, policy, seed)
    values = -rbm.free_energy(source.states) - log_z.value
    errors = itertools.repeat(log_z.error, len(values)) if log_z.error > 0.0 else None
    columns = {
        "row": source.rows + 1,
        "name": source.names,
        "log_likelihood": map(float, values),
        "error": errors,
    }
    kept = {name: column for name, column in columns.items() if column is not None}
    write_csv(out, tuple(kept), zip(*kept.values(), strict=True))
    error = f" (ln Z {show_estimate(log_z)}: one error for all rows)" if log_z.error > 0.0 else ""
    say(f"{len(values)} rows, mean {values.mean():.4f} nats{error}: {out}")
    if not log_z.trusted:
        say("Do not trust these: ln Z has too few effective samples. Try more `--temperatures`.", err=True)


def check_csv(out: Path, data: Path) -> None:
    """An error if the output is no .csv, or the data file itself."""
    if out.suffix.lower() != ".csv":
        raise ValueError(f"`--out` must end in .csv, got {str(out)!r}.")
    if out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"`--out` must not be the data file, got {str(out)!r}.")
