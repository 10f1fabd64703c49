"""Code shared by the commands that run sweeps: workers, interruptions, a progress bar."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet._extras import how_to_install
from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.sweeps.executors import Executor
    from paramagnet.sweeps.spec import Run, Spec
    from paramagnet.sweeps.sweep import SweepProgress, SweepResult


Jobs = Annotated[
    int | None, typer.Option(help="Number of processes, with one run each; if not given, one per core.")
]
Out = Annotated[Path, typer.Option(help="Folder of the records, a .jsonl per specification.")]
State = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the states of unfinished runs; else .state in --out. "
        "With --scheduler, one that the workers see; else none."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Run on the workers of this Dask scheduler: tcp://host:port, or its file."
    ),
]
Minutes = Annotated[
    float | None, typer.Option(help="Stop after this time; unfinished runs are saved and go on next time.")
]
OUT = Path("results")

_LINE_SECONDS = 60.0  # between two lines where no bar can be drawn


def check_options(trials: int | None, out: Path, state: Path | None, minutes: float | None) -> float:
    """Refuse options that no sweep can have; the time at which ``minutes`` are over (seconds since 1970)."""
    if trials is not None and trials < 1:
        raise ValueError(f"`--trials` must be a positive integer, got {trials}.")
    if minutes is not None and not minutes > 0:
        raise ValueError(f"`--minutes` must be positive, got {minutes:g}.")
    for option, folder in (("--out", out), ("--state", state)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise ValueError(f"`{option}` must be a folder, {folder} is a file.")
    return float("inf") if minutes is None else time.time() + 60.0 * minutes


def make_executor(jobs: int | None, scheduler: str | None) -> Executor:
    """The workers that the options of a command ask for."""
    from paramagnet._parallel import count_cores
    from paramagnet.sweeps.executors import local_executor

    if jobs is not None and jobs < 1:
        raise ValueError(f"`--jobs` must be a positive integer, got {jobs}.")
    if scheduler is not None:
        from paramagnet.sweeps.cluster import DaskWorkers

        if jobs is not None:
            raise ValueError("`--jobs` is for this machine; with `--scheduler` the cluster's workers count.")
        return DaskWorkers(scheduler)
    if jobs is None:
        jobs = count_cores()
        if jobs > 1 and importlib.util.find_spec("loky") is None:
            say(f"one process only: more need loky, {how_to_install('sweep')}.", err=True)
            jobs = 1
    return local_executor(jobs)


def report_result(name: str, result: SweepResult) -> None:
    """Say what a sweep has done, and which runs failed."""
    typer.echo(
        f"{name}: {result.done} of {result.total} runs, {result.new} new in {_duration(result.seconds)}"
    )
    for message in result.failures.values():
        say(f"failed: {message}", err=True)


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"


class Display:
    """A progress bar on a terminal, else one line per minute."""

    def __init__(self, name: str) -> None:
        from rich.progress import BarColumn, TextColumn

        from paramagnet.cli.compile_bar import LiveProgress

        columns = (TextColumn(name), BarColumn(), TextColumn("{task.fields[text]}"))
        self._progress = LiveProgress(*columns)
        self._name, self._bar = name, not self._progress.disable
        self._task = self._progress.add_task("", total=None, text="")
        self._printed = time.monotonic()

    def __enter__(self) -> Display:
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


def run_part(
    spec: Spec,
    runs: Sequence[Run],
    part: str,
    executor: Executor,
    out: Path,
    state: Path | None,
    deadline: float,
) -> int:
    """Execute the runs of a specification that have no record, and return the number that failed."""
    from paramagnet.sweeps.merge import adopt_records
    from paramagnet.sweeps.provenance import commit
    from paramagnet.sweeps.store import Store
    from paramagnet.sweeps.sweep import run_sweep

    if not runs:
        return 0
    name = spec.name if part in ("paper", "all") else f"{spec.name} ({part})"
    with Store(out / f"{spec.name}.jsonl") as store, Display(name) as display:
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
    report_result(name, result)
    return len(result.failures)
