"""The line that says that kernels are being compiled, and how far that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn

if TYPE_CHECKING:
    from paramagnet.kernels.compiling import Compilation

_drawn: list[LiveProgress] = []


class LiveProgress(Progress):
    """A progress display on the error stream that vanishes at its end; silent where nobody watches.

    Rich draws one display at a time. `CompileBar` interrupts the one that is drawn.
    """

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True)
        super().__init__(*columns, console=console, disable=not console.is_interactive, transient=True)

    def start(self) -> None:
        """Draw it, unless it is drawn."""
        super().start()
        if self not in _drawn:
            _drawn.append(self)

    def stop(self) -> None:
        """Remove it from the terminal."""
        super().stop()
        if self in _drawn:
            _drawn.remove(self)


class CompileBar:
    """Draws a bar from the beginning of a compilation to its end."""

    def __init__(self) -> None:
        self._progress: LiveProgress | None = None
        self._task = TaskID(0)
        self._interrupted: list[LiveProgress] = []

    def show(self, compilation: Compilation) -> None:
        """Draw the bar as far as the compilation is."""
        if not compilation.running:
            self.close()
            return
        if self._progress is None:
            self._interrupted = list(_drawn)
            for other in self._interrupted:
                other.stop()
            self._progress = LiveProgress(TextColumn("{task.description}"), BarColumn(bar_width=20))
            self._task = self._progress.add_task(_text(compilation), total=compilation.n_total)
            self._progress.start()
        self._progress.update(
            self._task, description=_text(compilation), completed=compilation.n_done, refresh=True
        )

    def close(self) -> None:
        """Remove the bar, and draw again what it interrupted."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            for other in self._interrupted:
                other.start()
            self._interrupted = []


def _text(compilation: Compilation) -> str:
    current = min(compilation.n_done + 1, compilation.n_total)
    return f"{compilation} ({current} of {compilation.n_total})"
