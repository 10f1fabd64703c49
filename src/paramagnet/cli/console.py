"""Where tables are printed, and bars drawn."""

from __future__ import annotations

import time

from rich.console import Console

_PIPED_WIDTH = 140
_STEPS = 1_000_000  # of a bar
_BAR_SECONDS = 0.1  # between two updates of a bar: they must not cost anything


def table_console() -> Console:
    """As wide as the terminal; in a file or a pipe, as wide as the tables, rather than rich's 80 columns."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, _PIPED_WIDTH))


class Bar:
    """A progress bar on the error stream, with the remaining time; silent where nobody watches.

    ``done`` is the fraction that was there before.
    """

    def __init__(self, title: str, *, done: float = 0.0) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(title, total=_STEPS, completed=int(_STEPS * done), note="")
        self._shown, self._note = 0.0, ""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, fraction: float, *, title: str | None = None, note: str | None = None) -> None:
        """To be called with every step: the fraction that is done, and what to write on either side."""
        now = time.monotonic()
        if now - self._shown >= _BAR_SECONDS or fraction >= 1.0:
            self._shown = now
            self._note = self._note if note is None else note
            done = int(_STEPS * fraction)
            self._progress.update(self._task, completed=done, description=title, note=self._note)
