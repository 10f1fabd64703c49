"""The decorator of all kernels of this package: no GIL, none of Numba's threads, cached if possible."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

from paramagnet.kernels.compiling import Compilation, report

Function = TypeVar("Function", bound=Callable[..., Any])

# No entry for C: Python calls the kernels, and nothing takes their addresses.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_not_kept: set[str] = set()  # modules whose kernels no other process finds in the cache


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call; keep the machine code for other processes if a folder is
    writable.

    ``parallel=True`` is never used: under Numba's OpenMP layer a forked child dies, under its work queue two
    Python threads abort. Kernels release the GIL, so the caller can run them on threads. ``cache=True``
    raises RuntimeError at once if neither the package's folder nor the user's cache folder can be written;
    then every process compiles afresh. The cache notices changes of the kernel's own file only, so a kernel
    must call jitted functions of its own file only.
    """
    return _compile(function, _OPTIONS)


def part(function: Function) -> Function:
    """Compile ``function`` as `kernel` does, for calls from the kernels of its own file only.

    Numba then makes no entry for Python, which would have to be compiled too, with the unpacking of named
    tuples.
    """
    return _compile(function, {**_OPTIONS, "no_cpython_wrapper": True})


def inlined(function: Function) -> Function:
    """Compile ``function`` as `kernel` does, and write it out in the kernels of its own file that call it.

    Those that call it in one place then compile it once, not on its own and within themselves.
    """
    return _compile(function, {**_OPTIONS, "inline": "always"})


def _compile(function: Function, options: dict[str, Any]) -> Function:
    try:
        compiled: Function = njit(cache=True, **options)(function)
    except RuntimeError:
        _not_kept.add(function.__module__)
        compiled = njit(**options)(function)
    return compiled


class _Counter:
    """Counts the kernels of this package that are compiled, and reports each.

    Numba broadcasts the event in the thread that compiles and holds its lock; what it loads from its cache is
    no event. Kernels are nested: one that is called is compiled within the one that calls it.

    Python's garbage collector rests meanwhile: the compiler makes so many objects that its collections
    took an eighth of the processor time of a first training.
    """

    def __init__(self) -> None:
        self.n_done = self.n_total = self.depth = 0
        self.collects = False  # whether the collector is to be turned on again

    def notify(self, happened: Any) -> None:
        """Called by Numba when a compilation begins and when it ends, with an error or without."""
        function = happened.data["dispatcher"].py_func
        if not function.__module__.startswith("paramagnet."):
            return  # Numba's own, or another package's
        if happened.is_start:
            if self.depth == 0:
                self.collects = self.collects or gc.isenabled()
                gc.disable()
                self.n_done, self.n_total = 0, _count_callees(happened.data["dispatcher"])
            self.depth += 1
        else:
            self.depth -= 1
            self.n_done += 1
            if self.depth == 0 and self.collects:
                gc.enable()
                self.collects = False
        kept = function.__module__ not in _not_kept
        report(Compilation(function.__module__, self.n_done, self.n_total, self.depth > 0, kept))


def _count_callees(dispatcher: Any) -> int:
    """How many functions are compiled with a kernel: it, and those it calls that are not there yet. Those
    that are written out in the kernel count with it.
    """
    found, n_inlined = {dispatcher.py_func.__name__}, 0
    waiting = [dispatcher]
    while waiting:
        function = waiting.pop().py_func
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, Dispatcher) and name not in found and not value.overloads:
                found.add(name)
                waiting.append(value)
                n_inlined += value.targetoptions.get("inline") == "always"
    return len(found) - n_inlined


event.Listener.register(_Counter)  # a subclass would have an untyped base
event.register("numba:compile", _Counter())
