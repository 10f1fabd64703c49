"""Sweeps: execute the runs that a store lacks, and append their records to it.

You can stop a sweep at any time (Ctrl-C, a deadline, a power cut) without losing finished runs: they are in
the store, and long runs have their state in a folder beside it. The same call goes on, and the records equal
those of a sweep that was never interrupted.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from paramagnet.sweeps.execute import (
    Stop,
    Stopped,
    clear_states,
    execute,
    request_stop,
    require_room,
    state_file,
)
from paramagnet.sweeps.executors import Executor
from paramagnet.sweeps.spec import Run
from paramagnet.sweeps.store import RunRecord, Store
from paramagnet.theory.status import NoMaximumError

CHUNK_SECONDS = 0.5  # of work that is sent to a worker at a time
LARGEST_CHUNK = 64  # runs
MOST_DEATHS = 3  # of workers, with the same run
PATIENCE_SECONDS = 20.0  # for workers to save their state when interrupted
STATE_FOLDER = ".state"
STOP_FILE = "stop"


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep: its runs in the store, all its runs, those done by this call, and the seconds."""

    done: int
    total: int
    new: int
    seconds: float

    @property
    def rate(self) -> float:
        """Runs per second."""
        return self.new / self.seconds if self.new else 0.0

    @property
    def seconds_left(self) -> float:
        """The time that the rest will take at this rate."""
        return (self.total - self.done) / self.rate if self.new else float("inf")


@dataclass(frozen=True)
class SweepResult:
    """Runs of the sweep in the store, all of them, those done by this call; which ones failed, and why."""

    done: int
    total: int
    new: int
    seconds: float
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.done == self.total


class Context(NamedTuple):
    """What all runs of a sweep share: the names for their records, where states are, when to stop."""

    sweep: str
    table: str
    commit: str
    states: str
    stop: Stop


class Failure(NamedTuple):
    """A run that cannot be completed, and why."""

    digest: str
    message: str


def execute_chunk(runs: Sequence[Run], context: Context) -> list[RunRecord | Failure]:
    """Execute some runs in a worker, until it is told to stop."""
    results: list[RunRecord | Failure] = []
    for run in runs:
        try:
            results.append(execute(run, **context._asdict()))
        except Stopped:
            break
        except (ArithmeticError, NoMaximumError) as error:
            results.append(Failure(run.digest, f"{run.describe()}: {error}"))
    return results


def run_sweep(
    runs: Sequence[Run],
    store: Store,
    executor: Executor,
    *,
    sweep: str = "",
    table: str = "",
    commit: str = "",
    states: str | Path | None = None,
    deadline: float = float("inf"),
    callback: Callable[[SweepProgress], None] | None = None,
) -> SweepResult:
    """Execute the runs that the store lacks, in their order, and append their records.

    Parameters
    ----------
    runs : sequence of Run
        All runs of the sweep; those that are named twice are executed once.
    store : Store
        An open store.
    executor : Executor
        Where to execute them; it is left running.
    sweep : str, default ""
        Name of the sweep, for the records.
    table : str, default ""
        Name of the table, for the records.
    commit : str, default ""
        Commit of the code, for the records.
    states : str or pathlib.Path, optional
        Folder for the states of unfinished runs; None takes ``.state`` beside the store, and none where
        workers do not see the files of this machine. If it is given, such workers use the folder of that name
        on their own machine.
    deadline : float, optional
        Time (seconds since 1970) after which no run is started, and runs under way are saved.
    callback : callable, optional
        Called after every record.
    """
    runs = list({run.digest: run for run in runs}.values())  # a specification may name a start twice
    for run in runs:
        require_room(run, sweep, table, commit)
    token = uuid.uuid4().hex
    if executor.remote:
        folder, stop = str(states or ""), Stop(deadline, token=token)
    else:
        path = Path(states) if states is not None else store.path.parent / STATE_FOLDER
        path.mkdir(parents=True, exist_ok=True)
        folder = str(path.resolve())
        stop = Stop(deadline, str(Path(folder) / f"{STOP_FILE}-{store.path.stem}"), token, executor.parent)
    work = _Work(runs, store, Context(sweep, table, commit, folder, stop), callback)
    with _stop_file(stop.file) as stop_file:
        try:
            work.go(executor)
        except KeyboardInterrupt:
            # Workers notice either of the two, save their states and end.
            stop_file()
            executor.everywhere(request_stop, token)
            with contextlib.suppress(KeyboardInterrupt):
                work.wind_up(PATIENCE_SECONDS)
            raise
        finally:
            if folder:
                executor.everywhere(clear_states, folder, frozenset(work.finished()))
    return work.result()


@contextlib.contextmanager
def _stop_file(name: str) -> Iterator[Callable[[], None]]:
    """A function that creates the file; the file does not exist before and is removed afterwards."""
    if not name:
        yield lambda: None
        return
    path = Path(name)
    path.unlink(missing_ok=True)
    try:
        yield path.touch
    finally:
        path.unlink(missing_ok=True)


class _Work:
    """A sweep under way."""

    def __init__(
        self,
        runs: Sequence[Run],
        store: Store,
        context: Context,
        callback: Callable[[SweepProgress], None] | None,
    ) -> None:
        self.total = len(runs)
        self.waiting = deque(run for run in runs if run.digest not in store)
        self.flying: dict[Future[list[RunRecord | Failure]], list[Run]] = {}
        self.store, self.context, self.callback = store, context, callback
        self.digests = {run.digest for run in runs}
        self.done = sum(digest in store for digest in self.digests)
        self.new, self.spent, self.began = 0, 0.0, time.monotonic()
        self.failures: dict[str, str] = {}
        self.deaths: Counter[str] = Counter()

    def go(self, executor: Executor) -> None:
        """Execute runs until none is left, or until it is time to stop."""
        self.show()
        while True:
            broken = False
            try:
                # Submit a few more runs than workers, so that no worker waits. Results are kept first: a
                # run that was executed in this process must not wait for the next one.
                while (
                    self.waiting
                    and not any(future.done() for future in self.flying)
                    and len(self.flying) < executor.n_workers + max(1, executor.n_workers // 4)
                    and not self.context.stop.due()
                ):
                    self.send(executor)
            except BrokenExecutor:
                broken = True
            if not self.flying and not broken:
                return
            if self.collect(0.5) or broken:
                self.resend()
                executor.restart()

    def send(self, executor: Executor) -> None:
        """Send runs to a worker, several at a time if they are short."""
        mean = self.spent / self.new if self.new else CHUNK_SECONDS
        size = max(1, min(LARGEST_CHUNK, int(CHUNK_SECONDS / max(mean, 1e-3))))
        size = min(size, -(-len(self.waiting) // executor.n_workers))
        chunk = [self.waiting.popleft() for _ in range(size)]
        try:
            self.flying[executor.submit(execute_chunk, chunk, self.context)] = chunk
        except BaseException:
            self.waiting.extendleft(reversed(chunk))
            raise

    def collect(self, seconds: float) -> bool:
        """Append the records that have arrived, and return whether a worker died."""
        broken = False
        ready, _ = wait(self.flying, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in ready:
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                broken = True  # stays among the submitted runs, to be sent again
                continue
            chunk = self.flying.pop(future)
            if error is not None:
                raise error
            self.keep(chunk, future.result())
        return broken

    def wind_up(self, seconds: float) -> None:
        """Wait some time for further records, and append them."""
        ends = time.monotonic() + seconds
        while self.flying and time.monotonic() < ends and not self.collect(0.2):
            pass

    def keep(self, chunk: list[Run], results: list[RunRecord | Failure]) -> None:
        """Append records, and only then remove the states of their runs."""
        missing = {run.digest: run for run in chunk}
        for result in results:
            run = missing.pop(result.digest)
            if isinstance(result, Failure):
                self.failures[result.digest] = result.message
            elif self.store.append(result):
                self.done += 1
                self.new += 1
                self.spent += result.seconds
            if self.context.stop.file:  # the folder is on this machine
                state_file(self.context.states, run).unlink(missing_ok=True)
        # Runs without a result were stopped; if this sweep did not ask for it, they are executed again.
        self.waiting.extendleft(reversed(missing.values()))
        self.show()

    def finished(self) -> Iterator[str]:
        """The digests of runs whose record is in the store."""
        return (digest for digest in self.digests if digest in self.store)

    def resend(self) -> None:
        """Put runs whose worker died back to the front of the queue, a limited number of times."""
        lost = [run for future, chunk in self.flying.items() for run in chunk]
        under_way = [chunk[0] for chunk in self.flying.values()]
        self.flying.clear()
        for run in under_way:
            self.deaths[run.digest] += 1
            if self.deaths[run.digest] > MOST_DEATHS:
                raise RuntimeError(
                    f"Worker processes died {self.deaths[run.digest]} times with the run: {run.describe()}. "
                    "Is there enough memory? `--jobs 1` executes runs in one process, and shows errors."
                )
        self.waiting.extendleft(reversed(lost))

    def show(self) -> None:
        """Report the progress to the callback."""
        if self.callback is not None:
            self.callback(SweepProgress(self.done, self.total, self.new, time.monotonic() - self.began))

    def result(self) -> SweepResult:
        """The result of the sweep."""
        seconds = time.monotonic() - self.began
        return SweepResult(self.done, self.total, self.new, seconds, dict(self.failures))
