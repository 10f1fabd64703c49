"""Ctrl-C and SIGTERM: save the work under way, say how to go on, and exit with the signal's code."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import typer

from paramagnet.cli.console import say

GO_ON = "interrupted: the same command goes on from here."
AGAIN = "interrupted: nothing was written; the same command starts anew."

_SECONDS = 0.05  # seconds until an interruption that Python dropped is sent again


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; the library treats it as it treats Ctrl-C."""


@contextlib.contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """Within, SIGTERM ends a command as Ctrl-C does.

    ``message`` is called when the command was interrupted; what it returns is printed. The exit code is 130
    after Ctrl-C and 143 after SIGTERM: 128 and the number of the signal.
    """
    try:
        with _sigterm_raises(), _nothing_lost():
            yield
    except KeyboardInterrupt as interruption:
        say(message(), err=True)
        number = signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT
        raise typer.Exit(128 + number) from None


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return
    former = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


@contextlib.contextmanager
def _nothing_lost() -> Iterator[None]:
    """Send an interruption again if Python had to drop it.

    An exception raised in a callback from C or in a finalizer cannot be passed on: Python calls
    `sys.unraisablehook` and continues. LLVM makes such callbacks whenever a kernel is loaded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = sys.unraisablehook
    timers = []

    def send_again(lost: sys.UnraisableHookArgs) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            former(lost)
            return
        number = signal.SIGINT
        if isinstance(lost.exc_value, Terminated):
            number = signal.SIGTERM
            signal.signal(number, _terminate)  # the handler had been removed
        timer = threading.Timer(_SECONDS, _send, (number,))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = former
        for timer in timers:
            timer.cancel()


def _send(number: int) -> None:
    """Send a signal to the main thread, which wakes it up if it waits; Windows cannot do this."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the saving
    raise Terminated
