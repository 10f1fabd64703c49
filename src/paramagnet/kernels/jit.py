"""The decorator of all kernels of this package: no GIL, none of Numba's threads, cached if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call; keep the machine code for other processes if a folder is
    writable.

    ``parallel=True`` is never used: under Numba's OpenMP layer a forked child dies, under its work queue two
    Python threads abort. Kernels release the GIL, so the caller can run them on threads. ``cache=True``
    raises RuntimeError at once if neither the package's folder nor the user's cache folder can be written;
    then every process compiles afresh. The cache notices changes of the kernel's own file only, so a kernel
    must call jitted functions of its own file only.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Function = njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = njit(**options)(function)
    return compiled
