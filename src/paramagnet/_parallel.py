"""Chains in blocks, and blocks on threads: with one BLAS thread each, any number gives the same bits."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from threadpoolctl import ThreadpoolController

from paramagnet._progress import Meter

BLOCK = 256  # most chains of a block
SMALLEST_BLOCK = 50  # products of fewer rows are slow


def n_blocks(n_chains: int) -> int:
    """How many blocks so many chains are cut into: about four, more where a block would exceed `BLOCK`."""
    size = min(BLOCK, max(SMALLEST_BLOCK, -(-n_chains // 4)))
    return -(-n_chains // size)


def run_blocks(
    run: Callable[[int, slice], None], n_chains: int, n_threads: int | None, meter: Meter | None = None
) -> None:
    """Call ``run(block, rows)`` for every block of chains, with one BLAS thread each.

    ``meter`` is what ``run`` counts its steps with.
    """
    count = n_blocks(n_chains)
    borders = [block * n_chains // count for block in range(count + 1)]
    rows = [slice(start, end) for start, end in itertools.pairwise(borders)]
    n_threads = min(count_cores() if n_threads is None else n_threads, count)
    with ONE_BLAS_THREAD:
        if n_threads == 1:
            for block in range(count):
                run(block, rows[block])
            return
        with ThreadPoolExecutor(n_threads) as pool:
            futures = [pool.submit(run, block, rows[block]) for block in range(count)]
            if meter is not None:
                meter.watch(futures)
            for future in futures:
                future.result()


class _OneThread(AbstractContextManager[None]):
    """The limit of one BLAS thread, shared by all who want it at the same time: the last one lifts it.

    BLAS knows one limit for the whole process. Two runs on two threads of the caller's would otherwise lift
    it under each other's feet.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                if self._controller is None:
                    self._controller = ThreadpoolController()  # looks for the libraries: milliseconds, once
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


ONE_BLAS_THREAD = _OneThread()


def count_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
