"""Executors of runs: this process, or further processes on this machine.

The executor for Dask clusters is in `cluster`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from paramagnet._extras import how_to_install

ORPHAN_SECONDS = 5.0  # between two checks whether the parent process is alive

Result = TypeVar("Result")


class Executor(Protocol):
    """What a sweep asks of an executor."""

    remote: bool  # whether workers may not see the files of this machine
    parent: int  # the process that workers are children of; 0 where it does not matter

    @property
    def n_workers(self) -> int:
        """How many runs are executed at a time."""

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function in one of the workers, as soon as one is free."""

    def restart(self) -> None:
        """Make it work again after a worker died; what was submitted is lost."""

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function, which takes no time, in this process, and in those on other machines."""

    def shutdown(self) -> None:
        """End at once: wait for no call, and leave no process behind."""


class InProcess:
    """Executes one run at a time, in this process."""

    n_workers = 1
    remote = False
    parent = 0

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function now."""
        future: Future[Result] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def restart(self) -> None:
        """Nothing to do."""

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function here."""
        function(*arguments)

    def shutdown(self) -> None:
        """Nothing to do."""


class LocalProcesses:
    """Processes on this machine, by loky."""

    remote = False

    def __init__(self, n_workers: int) -> None:
        try:
            import loky
        except ImportError:
            raise ValueError(
                f"`jobs` above 1 needs loky: {how_to_install('sweep')}. With `--jobs 1` runs are "
                "executed one after the other."
            ) from None
        self._loky = loky
        self.n_workers, self.parent = n_workers, os.getpid()
        self._pool = self._start()

    def _start(self) -> Any:
        return self._loky.ProcessPoolExecutor(
            self.n_workers, initializer=_prepare_worker, initargs=(self.parent,)
        )

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function in one of the processes."""
        future: Future[Result] = self._pool.submit(function, *arguments)
        return future

    def restart(self) -> None:
        """Replace the processes by new ones."""
        self.shutdown()
        self._pool = self._start()

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function here; the other processes are told by files."""
        function(*arguments)

    def shutdown(self) -> None:
        """End the processes, at once."""
        self._pool.shutdown(wait=True, kill_workers=True)


def _prepare_worker(parent: int) -> None:
    """Ignore interruptions in a worker: the parent handles them and tells the workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process some time after its parent was killed; it would otherwise wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(ORPHAN_SECONDS)
    time.sleep(ORPHAN_SECONDS)  # time for a run to save its state
    os._exit(1)


def local_executor(n_workers: int) -> Executor:
    """This process for one worker, else as many processes as workers."""
    return InProcess() if n_workers == 1 else LocalProcesses(n_workers)
