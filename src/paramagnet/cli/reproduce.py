"""``paramagnet reproduce``: the paper's experiments, or a sweep of one's own."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.console import say
from paramagnet.cli.interruptions import GO_ON, interruptible

if TYPE_CHECKING:
    from paramagnet.experiments.executors import Executor
    from paramagnet.experiments.plan import Stage
    from paramagnet.experiments.sweep import SweepProgress, SweepResult

_LINE_SECONDS = 60.0  # between two lines where no bar can be drawn


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="toy, drybean, ulc, mnist, figures or all; win for more starts than the paper's, in parts "
            "win-exact and win-sampled; one specification by its name (ulc_spin, win/ulc_spin); or a file of "
            "your own, .toml.",
        ),
    ],
    trials: Annotated[int | None, typer.Option(help="Most trials per cell; else the paper's number.")] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A first look: the paper's cells, two trials (sampled learning: one)."),
    ] = False,
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
    report: Annotated[
        bool, typer.Option(help="End with the tables, and a report beside the records.")
    ] = True,
    minutes: Annotated[
        float | None,
        typer.Option(help="Stop after this time; unfinished runs are saved and go on next time."),
    ] = None,
) -> None:
    """Run the paper's experiments, as far as they have not been run yet.

    Every finished run is a line in a file of --out. The same command goes on after an interruption.

    For data of your own, write a specification like those in the package's experiments/specs.
    """
    from paramagnet.experiments import plan
    from paramagnet.experiments.spec_files import paper_specs, study_specs

    if trials is not None and trials < 1:
        raise ValueError(f"`--trials` must be a positive integer, got {trials}.")
    if minutes is not None and not minutes > 0:
        raise ValueError(f"`--minutes` must be positive, got {minutes:g}.")
    stages = plan.PLANS.get(what)
    if stages is None:
        known = (*paper_specs(), *study_specs())
        if not what.endswith(".toml") and what not in known:
            raise ValueError(
                f"`WHAT` must be one of {', '.join(plan.PLANS)}, a specification ({', '.join(known)}), "
                f"or the path of a .toml file, got {what!r}."
            )
        stages = (plan.Stage(what, "all"),)
    if out.exists() and not out.is_dir():
        raise ValueError(f"`--out` must be a folder, {out} is a file.")
    if state is not None and state.exists() and not state.is_dir():
        raise ValueError(f"`--state` must be a folder, {state} is a file.")
    deadline = float("inf") if minutes is None else time.time() + 60.0 * minutes
    executor = _make_executor(jobs, scheduler)
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
        from paramagnet.cli.report import finish_sweep

        finish_sweep(out, [_name_of(stage.spec) for stage in stages])
    if n_failed:
        raise typer.Exit(1)


def _name_of(spec: str) -> str:
    return Path(spec).stem if spec.endswith(".toml") else spec


def _make_executor(jobs: int | None, scheduler: str | None) -> Executor:
    from paramagnet.experiments.executors import local_executor
    from paramagnet.learning.blocks import count_cores

    if jobs is not None and jobs < 1:
        raise ValueError(f"`--jobs` must be a positive integer, got {jobs}.")
    if scheduler is not None:
        from paramagnet.experiments.cluster import DaskWorkers

        if jobs is not None:
            raise ValueError("`--jobs` is for this machine; with `--scheduler` the cluster's workers count.")
        return DaskWorkers(scheduler)
    if jobs is None:
        jobs = count_cores()
        if jobs > 1 and importlib.util.find_spec("loky") is None:
            say("one process only: more need loky, pip install 'paramagnet[sweep]'.", err=True)
            jobs = 1
    return local_executor(jobs)


def _run_stage(
    stage: Stage, quick: bool, executor: Executor, out: Path, state: Path | None, deadline: float
) -> int:
    """Run it; the number of runs that failed."""
    from paramagnet.experiments.plan import quick_trials
    from paramagnet.experiments.provenance import commit
    from paramagnet.experiments.spec_files import read_spec, study_specs
    from paramagnet.experiments.store import Store
    from paramagnet.experiments.sweep import run_sweep
    from paramagnet.experiments.win import adopt_records, missing_runs

    spec = read_spec(stage.spec)
    runs = list(spec.runs(trials=quick_trials(spec) if quick else stage.trials, part=stage.part))
    if spec.name in study_specs():  # runs of the paper's own sweeps need not be repeated
        runs = missing_runs(spec, runs, out)
    if not runs:
        return 0
    name = spec.name if stage.part in ("paper", "all") else f"{spec.name} ({stage.part})"
    with Store(out / f"{spec.name}.jsonl") as store, _Display(name) as display:
        if spec.table:
            adopt_records(runs, store, out, sweep=spec.name, table=spec.table)
        result = run_sweep(
            runs,
            store,
            executor,
            sweep=spec.name,
            table=spec.table,
            commit=commit(),
            states=state,
            deadline=deadline,
            callback=display.show,
        )
    _report(name, result)
    return len(result.failures)


def _report(name: str, result: SweepResult) -> None:
    typer.echo(
        f"{name}: {result.done} of {result.total} runs, {result.new} new in {_duration(result.seconds)}"
    )
    for message in result.failures.values():
        say(f"failed: {message}", err=True)


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"


class _Display:
    """A bar on a terminal, else a line a minute."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._name, self._bar = name, console.is_terminal
        columns = (TextColumn(name), BarColumn(), TextColumn("{task.fields[text]}"))
        self._progress = Progress(*columns, console=console, transient=True, disable=not self._bar)
        self._task = self._progress.add_task("", total=None, text="")
        self._printed = time.monotonic()

    def __enter__(self) -> _Display:
        self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._progress.stop()

    def show(self, progress: SweepProgress) -> None:
        """Show how far the sweep is."""
        text = f"{progress.done} of {progress.total} runs"
        if progress.new:
            text += f", {3600.0 * progress.rate:.0f} an hour, {_duration(progress.seconds_left)} left"
        self._progress.update(self._task, completed=progress.done, total=progress.total, text=text)
        if not self._bar and time.monotonic() - self._printed >= _LINE_SECONDS:
            self._printed = time.monotonic()
            typer.echo(f"{self._name}: {text}", err=True)
