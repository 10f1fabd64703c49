"""Callbacks for the compilation of kernels. Numba is not imported here, so that registering one is quick."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())

# What the kernels of a file are for, in the words of a user.
_PURPOSES = {
    "tables": "exact sums",
    "partition": "exact sums",
    "quadratic": "exact sums",
    "hyperbolic": "learning",
    "passes": "learning",
    "sampling": "sampling",
    "lookup": "sampling",
    "changed_rows": "sampling",
    "normal": "sampling",
    "categorical": "sampling",
    "int16_states": "sampling",
    "int16_sweeps": "sampling",
    "int16_tables": "sampling",
    "int16_weights": "sampling",
    "otsu": "binarization",
    "identity_counts": "weights of sequences",
}


@dataclass(frozen=True)
class Compilation:
    """How far the compilation of kernels is.

    Parameters
    ----------
    module : str
        The full name of the module of the kernels.
    n_done : int
        How many functions have been compiled, of those that follow.
    n_total : int
        How many functions are to be compiled: the kernel that was called, and the ones it calls. Those that
        are in Numba's cache are counted too, but are not compiled.
    running : bool
        Whether more of them are to be compiled.
    kept : bool
        Whether other processes find them in Numba's cache.
    """

    module: str
    n_done: int
    n_total: int
    running: bool
    kept: bool

    def __str__(self) -> str:
        purpose = _PURPOSES.get(self.module.rpartition(".")[2], "")
        how_often = "once on this machine" if self.kept else "in every process: no cache folder is writable"
        return f"compiling kernels{f' for {purpose}' if purpose else ''}, {how_often}"


Listener = Callable[[Compilation], None]
_listeners: list[Listener] = []
_logged = False


@contextmanager
def on_compile(listener: Listener) -> Iterator[None]:
    """Within, call ``listener`` whenever a kernel begins or ends to compile, in the thread that compiles it.

    Parameters
    ----------
    listener : callable
        Receives a `Compilation`. Kernels that are loaded from Numba's cache are not reported.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report(compilation: Compilation) -> None:
    """Tell the listeners, and the log when it is the first time in this process."""
    global _logged
    if not _logged:
        _logged = True
        logger.info("%s; this takes some seconds", compilation)
    for listener in tuple(_listeners):
        listener(compilation)
