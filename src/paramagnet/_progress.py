"""How far a computation in blocks is: counted by the threads that work, told by the one that asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

Progress = Callable[[float], None]

_SECONDS = 0.1  # between two reports of work done elsewhere


class Cancelled(Exception):  # noqa: N818 - no error, the end of a thread whose work is no longer wanted
    """Ends the work of a block after ``progress`` has raised."""


class Meter:
    """Counts the steps of all blocks and calls ``progress`` with the fraction that is done.

    ``progress`` runs in the thread that made the meter; what it raises ends the work of all blocks.
    """

    def __init__(self, progress: Progress, n_blocks: int, n_steps: int) -> None:
        self._progress, self._total = progress, n_blocks * n_steps
        self._counts = [0] * n_blocks  # one writer each
        self._caller, self._stopped = threading.get_ident(), False

    def tick(self, block: int) -> None:
        """One more step of a block is done; called by whoever did it."""
        if self._stopped:
            raise Cancelled
        self._counts[block] += 1
        if threading.get_ident() == self._caller:
            self._tell()

    def watch(self, futures: Sequence[Future[None]]) -> None:
        """Tell how far the others are, until all are done."""
        try:
            while wait(futures, _SECONDS).not_done:
                self._tell()
            self._tell()
        except BaseException:
            self._stopped = True
            raise

    def _tell(self) -> None:
        self._progress(sum(self._counts) / self._total)
