"""Where tables and messages are printed, and bars drawn."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paramagnet.cli.compile_bar import CompileBar

_PIPED_WIDTH = 140
_STEPS = 1_000_000  # of a bar
_BAR_SECONDS = 0.1  # seconds between two updates of a bar, so that drawing takes no noticeable time
_NARROWEST = 20  # columns; a terminal that reports fewer is not believed
# Text that is kept in one line so that it can be copied: backticks, quotation marks, pip requirements.
_TOGETHER = re.compile(
    r"""pip[ ]install[ ](?:'[^'\n]*'|"[^"\n]*"|\S+) | `[^`\n]+` | (?<!\w)(?:'[^'\n]*'|"[^"\n]*")(?!\w)""",
    re.VERBOSE,
)
_COMMAND = re.compile(r"([\w ]+: )?paramagnet [a-z]")  # a line with a command


def say(message: str, *, err: bool = False) -> None:
    """Print a message, wrapped between words to the width of the terminal, or to COLUMNS; in a file or a pipe
    without such a wish its lines stay whole.
    """
    width = _wanted_width(sys.stderr if err else sys.stdout)
    typer.echo(message if width is None else wrap(message, width), err=err)


def wrap(message: str, width: int) -> str:
    """``message`` in lines of at most ``width`` characters, broken between words only.

    Quotations, file names in quotes and commands are not broken. One that is longer than a line, and a line
    that is a command, are left to the terminal: it shows them in several lines, but copies them as one. The
    lines that an indented line becomes are indented like it.
    """
    return "\n".join(_wrap_line(line, width) for line in message.split("\n"))


def _wrap_line(line: str, width: int) -> str:
    if len(line) <= width or _COMMAND.match(line):
        return line
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    words = _TOGETHER.sub(lambda match: match[0].replace(" ", "\0"), text).split(" ")
    lines = [indent + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return "\n".join(lines).replace("\0", " ")


def _terminal_width(stream: IO[str]) -> int | None:
    """The columns of the terminal that ``stream`` goes to; None if it goes elsewhere."""
    try:
        if not stream.isatty():
            return None
        said = os.environ.get("COLUMNS", "")
        columns = int(said) if said.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream without a number, or closed
        return None
    return columns if columns >= _NARROWEST else None


def _wanted_width(stream: IO[str]) -> int | None:
    """What the variable COLUMNS says, else the columns of the terminal; None in a file or a pipe."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) >= _NARROWEST:
        return int(said)
    return _terminal_width(stream)


def screen_width() -> int | None:
    """The columns that the output may take; None if that is not limited, in a file or a pipe."""
    return _wanted_width(sys.stdout)


def table_console() -> Console:
    """A console of that width; in a file or a pipe as wide as the tables, not rich's 80 columns."""
    from rich.console import Console

    return Console(width=_wanted_width(sys.stdout) or _PIPED_WIDTH)


@contextmanager
def compilations_shown(wanted: bool) -> Iterator[None]:
    """Within, a line on the terminal says when kernels are compiled; in a file or a pipe nothing does."""
    if not wanted or _terminal_width(sys.stderr) is None:
        yield
        return
    from paramagnet.kernels.compiling import Compilation, on_compile

    bars: list[CompileBar] = []

    def show(compilation: Compilation) -> None:
        if not bars:  # most commands compile nothing, and do without the import
            from paramagnet.cli.compile_bar import CompileBar

            bars.append(CompileBar())
        bars[0].show(compilation)

    try:
        with on_compile(show):
            yield
    finally:
        for bar in bars:
            bar.close()


class Bar:
    """A progress bar on the error stream, with the remaining time; silent where nobody watches.

    ``done`` is the fraction that was there before.
    """

    def __init__(self, title: str, *, done: float = 0.0) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        from paramagnet.cli.compile_bar import LiveProgress

        self._progress = LiveProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task(title, total=_STEPS, completed=int(_STEPS * done), note="")
        self._shown, self._note = 0.0, ""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, fraction: float, *, title: str | None = None, note: str | None = None) -> None:
        """Update the bar: the fraction that is done, and the text on either side; called at every step."""
        now = time.monotonic()
        if now - self._shown >= _BAR_SECONDS or fraction >= 1.0:
            self._shown = now
            self._note = self._note if note is None else note
            done = int(_STEPS * fraction)
            self._progress.update(self._task, completed=done, description=title, note=self._note)
