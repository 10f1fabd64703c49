"""``paramagnet sweep``: a sweep of one's own, from its specification to its tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from paramagnet.cli.interruptions import GO_ON, interruptible


def sweep(
    specification: Annotated[Path, typer.Argument(help="The specification, a .toml file.")],
    trials: Annotated[int | None, typer.Option(help="Most trials per cell; else those of the file.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes, one run each; else one per core.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the records, a .jsonl per specification.")] = Path(
        "results"
    ),
    state: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the states of unfinished runs; else .state in --out. "
            "With --scheduler, one that the workers see; else none."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run on the workers of this Dask scheduler: tcp://host:port, or its file."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Stop after this time; unfinished runs are saved and go on next time."),
    ] = None,
) -> None:
    """Run the sweep of a specification, as far as it has not been run yet, and print its tables.

    Every finished run is a line in a file of --out. The same command goes on after an interruption.
    """
    from paramagnet.cli.sheets import print_sheet
    from paramagnet.cli.sweeping import make_executor, run_part
    from paramagnet.sweeps.spec_files import read_spec
    from paramagnet.sweeps.store import Store
    from paramagnet.sweeps.sweep_sheets import sweep_sheets

    if trials is not None and trials < 1:
        raise ValueError(f"`--trials` must be a positive integer, got {trials}.")
    if minutes is not None and not minutes > 0:
        raise ValueError(f"`--minutes` must be positive, got {minutes:g}.")
    for option, folder in (("--out", out), ("--state", state)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise ValueError(f"`{option}` must be a folder, {folder} is a file.")
    spec = read_spec(specification)
    deadline = float("inf") if minutes is None else time.time() + 60.0 * minutes
    executor = make_executor(jobs, scheduler)
    try:
        with interruptible(lambda: GO_ON):
            failed = run_part(spec, list(spec.runs(trials=trials)), "all", executor, out, state, deadline)
    finally:
        executor.shutdown()
    typer.echo(f"records: {out}")
    for sheet in sweep_sheets(Store(out / f"{spec.name}.jsonl").records(), spec.name):
        print_sheet(sheet)
    if failed:
        raise typer.Exit(1)
