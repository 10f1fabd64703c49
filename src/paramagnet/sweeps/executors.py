"""Where runs are executed: in this process, or in processes beside it.

A cluster is in the file beside, `cluster`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

ORPHAN_SECONDS = 5.0  # between two looks at whether the parent is alive

Result = TypeVar("Result")


class Executor(Protocol):
    """What a sweep asks of an executor."""

    remote: bool  # whether workers may not see the files of this machine
    parent: int  # the process that workers are children of; 0 where it does not matter

    @property
    def n_workers(self) -> int:
        """How many runs are executed at a time."""

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function somewhere, soon."""

    def restart(self) -> None:
        """Make it work again after a worker died; what was submitted is lost."""

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function, which takes no time, in this process, and in those on other machines."""

    def shutdown(self) -> None:
        """Wait for nothing, leave nothing behind."""


class InProcess:
    """One run at a time, here."""

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
                "`jobs` above 1 needs loky: pip install 'paramagnet[sweep]'. With `--jobs 1` runs are "
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
        """New processes for the old ones."""
        self.shutdown()
        self._pool = self._start()

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function here; the other processes are told by files."""
        function(*arguments)

    def shutdown(self) -> None:
        """End the processes, at once."""
        self._pool.shutdown(wait=True, kill_workers=True)


def _prepare_worker(parent: int) -> None:
    """An interruption is the parent's business, even if sent to all; it tells the workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process some time after its parent was killed: it would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(ORPHAN_SECONDS)
    time.sleep(ORPHAN_SECONDS)  # for a run to save its state
    os._exit(1)


def local_executor(n_workers: int) -> Executor:
    """For one worker this process, else that many processes."""
    return InProcess() if n_workers == 1 else LocalProcesses(n_workers)
