"""Ctrl-C and SIGTERM: work under way is saved, a sentence says how to go on, the exit code names it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import typer

GO_ON = "interrupted: the same command goes on from here."
AGAIN = "interrupted: nothing was written; the same command starts anew."


class Terminated(KeyboardInterrupt):
    """A polite request to end (SIGTERM), which takes the way of Ctrl-C through the library."""


@contextlib.contextmanager
def interruptible(say: Callable[[], str]) -> Iterator[None]:
    """Within, SIGTERM ends a command as Ctrl-C does.

    ``say`` is called when the command was interrupted; what it returns is printed. The exit code is 130 after
    Ctrl-C and 143 after SIGTERM: 128 and the number of the signal.
    """
    try:
        with _sigterm_raises():
            yield
    except KeyboardInterrupt as interruption:
        typer.echo(say(), err=True)
        number = signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT
        raise typer.Exit(128 + number) from None


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return
    former = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not disturb the saving
    raise Terminated
