"""The progress of a computation in blocks. Worker threads count; the calling thread reports."""

from __future__ import annotations

import threading
from collections.abc import Callable

Progress = Callable[[float], None]


class Cancelled(Exception):  # noqa: N818 - not an error; it ends a thread whose work is no longer needed
    """Ends the work of a block after ``progress`` has raised."""


class Meter:
    """Counts the steps of all blocks and calls ``progress`` with the fraction that is done.

    ``progress`` runs in the thread that made the meter; an exception that it raises ends the work of all
    blocks.
    """

    def __init__(self, progress: Progress, n_blocks: int, n_steps: int) -> None:
        self._progress, self._total = progress, n_blocks * n_steps
        self._counts = [0] * n_blocks  # each is written by one thread only
        self._caller, self._stopped = threading.get_ident(), False

    def tick(self, block: int) -> None:
        """Count one more step of a block; called by the thread that did it."""
        if self._stopped:
            raise Cancelled
        self._counts[block] += 1
        if threading.get_ident() == self._caller:
            self.tell()

    def stop(self) -> None:
        """End the work of all blocks at their next step."""
        self._stopped = True

    def tell(self) -> None:
        """Call ``progress`` unless the work was stopped; called in the thread that made the meter."""
        if not self._stopped:
            self._progress(sum(self._counts) / self._total)
