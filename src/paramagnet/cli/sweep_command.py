"""``paramagnet sweep``: a sweep of one's own, from its specification to its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paramagnet.cli.interruptions import GO_ON, interruptible
from paramagnet.cli.sweeping import (
    OUT,
    Jobs,
    Minutes,
    Out,
    Scheduler,
    State,
    check_options,
    make_executor,
    run_part,
)


def sweep(
    specification: Annotated[Path, typer.Argument(help="The specification, a .toml file.")],
    trials: Annotated[
        int | None, typer.Option(help="Largest number of trials per cell; if not given, that of the file.")
    ] = None,
    jobs: Jobs = None,
    out: Out = OUT,
    state: State = None,
    scheduler: Scheduler = None,
    minutes: Minutes = None,
) -> None:
    """Run the sweep of a specification, as far as it has not been run yet, and print its tables.

    Every finished run is a line in a file of --out. The same command goes on after an interruption.
    """
    from paramagnet.cli.sheets import print_sheet
    from paramagnet.sweeps.spec_files import read_spec
    from paramagnet.sweeps.store import Store
    from paramagnet.sweeps.sweep_sheets import sweep_sheets

    deadline = check_options(trials, out, state, minutes)
    spec = read_spec(specification)
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
