"""Work on threads: tasks in order (`run_tasks`), chains in blocks with one BLAS thread each (`run_blocks`).

Tasks and blocks depend on the size of the work alone, so any number of threads gives the same bits.
"""

from __future__ import annotations

import _thread
import itertools
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

from paramagnet._progress import Cancelled, Meter, Progress

BLOCK = 256  # most chains of a block
SMALLEST_BLOCK = 50  # products of fewer rows are slow
SPINS = 300  # looks at another thread's end, about a microsecond each, before waiting for it
_SECONDS = 0.1  # between two calls of ``idle``
_ENDING = "SIGINT SIGTERM SIGHUP SIGQUIT SIGBREAK SIGALRM SIGVTALRM SIGPROF SIGUSR1 SIGUSR2 SIGXCPU"
WAITING_SIGNALS = [getattr(signal, name) for name in _ENDING.split() if hasattr(signal, name)]


def run_tasks(
    work: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    n_threads: int,
    progress: Progress | None = None,
    idle: Callable[[], None] | None = None,
) -> Iterator[Any]:
    """Yield ``work(*task)`` in the order of the tasks. The calling thread works too, and reports the
    progress; it calls ``idle`` now and then while it waits for the others to end.

    The threads live as long as the call, so there is nothing to break in a forked child.
    """
    n_tasks = len(tasks)
    n_threads = min(n_threads, n_tasks)
    if n_threads <= 1:
        for i, task in enumerate(tasks):
            yield work(*task)
            if progress is not None:
                progress((i + 1) / n_tasks)
        return
    waiting = deque(range(n_tasks))
    finished: dict[int, Any] = {}
    failures: list[BaseException] = []
    gone: list[Any] = []  # the threads that have ended

    def take() -> bool:
        try:
            i = waiting.popleft()
        except IndexError:
            return False
        finished[i] = work(*tasks[i])
        return True

    def assist(ended: Any) -> None:
        try:
            while take():
                pass
        except BaseException as failure:
            failures.append(failure)
            waiting.clear()
        finally:
            gone.append(ended)
            ended.release()

    # `threading.Thread.start` waits until the new thread runs, which takes as long as a tenth of a small sum.
    others = [_thread.allocate_lock() for _ in range(n_threads - 1)]
    for ended in others:
        ended.acquire()
        _thread.start_new_thread(assist, (ended,))
    try:
        n_done = 0
        while take():
            while n_done in finished:
                yield finished.pop(n_done)
                n_done += 1
            if progress is not None and n_done < n_tasks:
                progress(n_done / n_tasks)
    finally:
        waiting.clear()  # after an exception the others stop at the end of their task
        _wait_for_all(others, gone, idle)
    if failures:
        raise failures[0]
    for i in range(n_done, n_tasks):
        yield finished.pop(i)
    if progress is not None:
        progress(1.0)


def _wait_for_all(others: list[Any], gone: list[Any], idle: Callable[[], None] | None) -> None:
    """Wait until all threads have ended; what interrupts that is raised afterwards, so that none of them
    writes into arrays that the caller uses again.
    """
    interruption: BaseException | None = None
    for ended in others:
        while ended not in gone:
            try:
                _wait(ended, idle)
            except BaseException as error:  # a Ctrl-C, for instance, or one that ``idle`` raises
                interruption, idle = error, None
    if interruption is not None:
        raise interruption


def _wait(ended: Any, idle: Callable[[], None] | None) -> None:
    """Wait for a thread that is at its last task: asleep, this thread would be woken late."""
    for _ in range(SPINS):
        if ended.acquire(blocking=False):
            return
        time.sleep(0.0)
    if idle is None:
        ended.acquire()
        return
    while not ended.acquire(timeout=_SECONDS):
        idle()


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
        run_slices(run, rows, n_threads, meter)


def run_slices(
    run: Callable[[int, slice], None], slices: Sequence[slice], n_threads: int, meter: Meter | None = None
) -> None:
    """Call ``run(block, rows)`` for every slice; ``meter`` is what ``run`` counts its steps with."""

    def work(block: int) -> None:
        try:
            run(block, slices[block])
        except Cancelled:  # by what another block, or ``progress``, has raised: the caller sees that
            return
        except BaseException:
            if meter is not None:
                meter.stop()
            raise

    tasks = [(block,) for block in range(len(slices))]
    try:
        for _ in run_tasks(work, tasks, n_threads, idle=None if meter is None else meter.tell):
            pass
        if meter is not None and n_threads > 1:
            meter.tell()
    except BaseException:
        if meter is not None:  # it may come from ``progress`` while this thread waits for the others
            meter.stop()
        raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals that have a handler in Python, such as Ctrl-C, wait until the end of the block; they act
    then. Signals without one end the process or do nothing, and need not wait.

    Only the main thread gets them: elsewhere nothing is to be done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[tuple[int, Any]] = []
    found = {number: signal.getsignal(number) for number in WAITING_SIGNALS}
    handlers = {int(number): handler for number, handler in found.items() if callable(handler)}
    waits = True

    def wait(received: int, frame: Any) -> None:
        if waits:
            caught.append((received, frame))
        else:  # it came while handlers were put back
            handlers[received](received, frame)

    try:
        for number in handlers:
            signal.signal(number, wait)
        yield
    finally:
        waits = False
        with ExitStack() as stack:  # which goes on if one of them raises
            for received, frame in reversed(caught):
                stack.callback(handlers[received], received, frame)
            for number, handler in handlers.items():
                stack.callback(signal.signal, number, handler)


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
