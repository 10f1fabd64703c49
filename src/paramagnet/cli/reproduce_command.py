"""``paramagnet reproduce``: the paper's experiments, or a sweep of one's own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from paramagnet.reproduction.plan import Stage
    from paramagnet.sweeps.executors import Executor


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="toy, drybean, ulc, mnist, figures or all; one specification by its name (ulc_spin); or a "
            "file of your own, .toml.",
        ),
    ],
    trials: Annotated[
        int | None, typer.Option(help="Largest number of trials per cell; if not given, the paper's.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A first look: the paper's cells, two trials (sampled learning: one)."),
    ] = False,
    jobs: Jobs = None,
    out: Out = OUT,
    state: State = None,
    scheduler: Scheduler = None,
    report: Annotated[
        bool, typer.Option(help="End with the tables, and a report beside the records.")
    ] = True,
    minutes: Minutes = None,
) -> None:
    """Run the paper's experiments, as far as they have not been run yet.

    Every finished run is a line in a file of --out. The same command goes on after an interruption.

    For data of your own, write a specification like those in the package's reproduction/specs.
    """
    from paramagnet._checks import near_names
    from paramagnet.reproduction import plan
    from paramagnet.reproduction.paper_specs import paper_specs

    deadline = check_options(trials, out, state, minutes)
    stages = plan.PLANS.get(what)
    if stages is None:
        known = paper_specs()
        if not what.endswith(".toml") and what not in known:
            near = near_names(what, (*plan.PLANS, *known), most_listed=0)
            raise ValueError(
                f"`WHAT` must be one of {', '.join(plan.PLANS)}, a specification of the paper's such as "
                f"{known[0]}, or the path of a .toml file, got {what!r}{near}."
            )
        stages = (plan.Stage(what, "all"),)
    executor = make_executor(jobs, scheduler)
    n_failed = 0
    try:
        with interruptible(lambda: GO_ON):
            for stage in plan.shorten(stages, trials=trials, quick=quick):
                if time.time() >= deadline:
                    break
                n_failed += _run_stage(stage, quick and trials is None, executor, out, state, deadline)
    finally:
        executor.shutdown()
    typer.echo(f"records: {out}")
    if report:
        from paramagnet.cli.report_command import finish_sweep

        finish_sweep(out, [_name_of(stage.spec) for stage in stages])
    if n_failed:
        raise typer.Exit(1)


def _name_of(spec: str) -> str:
    return Path(spec).stem if spec.endswith(".toml") else spec


def _run_stage(
    stage: Stage, quick: bool, executor: Executor, out: Path, state: Path | None, deadline: float
) -> int:
    """Run it; the number of runs that failed."""
    from paramagnet.reproduction.paper_specs import find_spec
    from paramagnet.reproduction.plan import quick_trials

    spec = find_spec(stage.spec)
    runs = list(spec.runs(trials=quick_trials(spec) if quick else stage.trials, part=stage.part))
    return run_part(spec, runs, stage.part, executor, out, state, deadline)
