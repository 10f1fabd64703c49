"""Where runs are executed: in this process, or in processes beside it.

An executor has ``n_workers``, ``submit`` (a future), ``restart`` (after a worker died and took the others'
work with it) and ``shutdown``.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Executor(Protocol):
    """What a sweep asks of an executor."""

    @property
    def n_workers(self) -> int:
        """How many runs are executed at a time."""

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function somewhere, soon."""

    def restart(self) -> None:
        """Make it work again after a worker died; what was submitted is lost."""

    def shutdown(self) -> None:
        """Wait for nothing, leave nothing behind."""


class InProcess:
    """One run at a time, here."""

    n_workers = 1

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

    def shutdown(self) -> None:
        """Nothing to do."""


class LocalProcesses:
    """Processes on this machine, by loky."""

    def __init__(self, n_workers: int) -> None:
        try:
            import loky
        except ImportError:
            raise ValueError(
                "`jobs` above 1 needs loky: pip install 'paramagnet[sweep]'. With `--jobs 1` runs are "
                "executed one after the other."
            ) from None
        self._loky = loky
        self.n_workers = n_workers
        self._pool = self._start()

    def _start(self) -> Any:
        return self._loky.ProcessPoolExecutor(self.n_workers, initializer=_prepare_worker)

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function in one of the processes."""
        future: Future[Result] = self._pool.submit(function, *arguments)
        return future

    def restart(self) -> None:
        """New processes for the old ones."""
        self.shutdown()
        self._pool = self._start()

    def shutdown(self) -> None:
        """End the processes, at once."""
        self._pool.shutdown(wait=True, kill_workers=True)


def _prepare_worker() -> None:
    """An interruption from the keyboard is the parent's business; it tells the workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def local_executor(n_workers: int) -> Executor:
    """For one worker this process, else that many processes."""
    return InProcess() if n_workers == 1 else LocalProcesses(n_workers)
