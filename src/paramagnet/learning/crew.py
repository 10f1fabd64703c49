"""Threads that help with the updates of a run, several short pieces of work each.

`paramagnet._parallel.run_tasks` starts its threads anew for every call, which takes 0.1 ms: as long as a
tenth of the update of a small machine. The helpers of a `Crew` look out for the next piece of work for a
short time after the last one, without the GIL, and end if none comes.
"""

from __future__ import annotations

import _thread
import os
import time
from collections import deque
from collections.abc import Callable

import numpy as np

from paramagnet.kernels.waiting import wait_for

LOOKS = 4_000  # for the next piece of work, 0.1 to 0.2 ms, before a helper ends
SLEEP = 5e-5  # seconds between two series of looks for the end of a piece of work
PAUSES = 60  # a few microseconds in which the calling thread leaves Python for its own part of the work


class Crew:
    """Up to ``n_threads`` threads, the calling one among them, that share pieces of work.

    Helpers end by themselves when no work comes. A forked child has none, and starts its own.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._start()

    def _start(self) -> None:
        self._process, n_threads = os.getpid(), self.n_threads
        self._lock = _thread.allocate_lock()  # held while helpers are told of work, and while one ends
        self._waiting: deque[tuple[Callable[[int], None], int]] = deque()
        self._failures: list[BaseException] = []
        self._present = [False] * n_threads
        self._taken = [0] * n_threads  # tasks that each helper has begun; the flags count those it has ended
        self._flags = np.zeros(1 + n_threads, np.int64)  # first the number of the piece of work

    def share(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work(index)`` for ``count`` indices, by this thread and the helpers."""
        if self.n_threads <= 1 or count <= 1:
            for index in range(count):
                work(index)
            return
        if self._process != os.getpid():  # the helpers stayed behind, and one may have held the lock
            self._start()
        with self._lock:
            self._waiting.extend((work, index) for index in range(count))
            self._flags[0] += 1
            for helper in range(1, min(self.n_threads, count)):
                if not self._present[helper]:
                    self._present[helper] = True
                    _thread.start_new_thread(self._assist, (helper, int(self._flags[0])))
        try:
            self._take(None)
        finally:
            self._waiting.clear()  # after an exception the others stop at the end of their task
            self._wait_for_helpers()
        if self._failures:
            failure = self._failures[0]
            self._failures.clear()
            raise failure

    def _take(self, helper: int | None) -> None:
        """Work as long as there are tasks."""
        while True:
            if helper is not None:
                self._taken[helper] += 1  # before the task is taken: it is waited for from there on
            try:
                work, index = self._waiting.popleft()
            except IndexError:
                if helper is not None:
                    self._taken[helper] -= 1
                return
            try:
                work(index)
            finally:
                if helper is not None:
                    self._flags[1 + helper] += 1

    def _assist(self, helper: int, piece: int) -> None:
        """What a helper does: a piece of work, then the next one that comes within some looks."""
        while True:
            try:
                self._take(helper)
            except BaseException as failure:
                self._failures.append(failure)
                self._waiting.clear()
            if not wait_for(self._flags, 0, piece + 1, LOOKS, PAUSES):
                with self._lock:
                    if self._flags[0] == piece:
                        self._present[helper] = False
                        return
            piece = int(self._flags[0])

    def _wait_for_helpers(self) -> None:
        """Wait for the tasks that helpers have begun; what interrupts that is raised afterwards, so that none
        of them writes into arrays that the caller uses again.
        """
        interruption: BaseException | None = None
        for helper in range(1, self.n_threads):
            while self._flags[1 + helper] < self._taken[helper]:
                try:
                    if not wait_for(self._flags, 1 + helper, self._taken[helper], LOOKS, 0):
                        time.sleep(SLEEP)
                except BaseException as error:  # a Ctrl-C, for instance
                    interruption = error
        if interruption is not None:
            raise interruption
