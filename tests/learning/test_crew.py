"""Threads that help with updates."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from paramagnet.kernels.waiting import wait_for
from paramagnet.learning.crew import Crew


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_index_is_done_once(n_threads: int, count: int) -> None:
    crew = Crew(n_threads)
    for _ in range(200):  # one piece after the other: helpers of the last one are still looking
        done = np.zeros(count, int)

        def work(index: int, done: np.ndarray = done) -> None:
            done[index] += 1

        crew.share(work, count)
        assert (done == 1).all()


def test_helpers_work_beside_the_caller_and_end_by_themselves() -> None:
    crew, together = Crew(2), threading.Barrier(2, timeout=20.0)
    crew.share(lambda index: together.wait() and None, 2)  # passes only if two threads are at work
    for _ in range(200):
        if not any(crew._present):
            break
        time.sleep(0.01)
    assert not any(crew._present)
    crew.share(lambda index: together.wait() and None, 2)  # a new helper


def test_task_of_a_later_piece_is_never_done_with_the_work_of_an_earlier_one() -> None:
    crew, wrong, current = Crew(3), [], [0]
    for piece in range(2000):

        def work(index: int, piece: int = piece) -> None:
            if piece != current[0]:
                wrong.append((piece, current[0], index))

        current[0] = piece
        crew.share(work, 3)
    assert not wrong


@pytest.mark.parametrize("failing", ["caller", "helper"])
def test_failure_reaches_the_caller_after_all_have_stopped(failing: str) -> None:
    crew, running, caller = Crew(2), [], threading.get_ident()
    together = threading.Barrier(2, timeout=20.0)

    def work(index: int) -> None:
        if index < 2:
            together.wait()
        running.append(index)
        mine = threading.get_ident() == caller
        if mine == (failing == "caller"):
            running.remove(index)
            raise KeyError(failing)
        time.sleep(0.05)
        running.remove(index)

    with pytest.raises(KeyError, match=failing):
        crew.share(work, 2)
    assert not running
    done: list[int] = []
    crew.share(done.append, 4)  # and it can be used again
    assert sorted(done) == [0, 1, 2, 3]


def test_forked_child_starts_helpers_of_its_own() -> None:
    crew, done = Crew(2), np.zeros(4, int)

    def work(index: int) -> None:
        done[index] += 1

    crew.share(work, 4)
    crew._process = -1  # as in a child, whose helpers stayed behind, one of them with the lock
    crew._lock.acquire()
    crew.share(work, 4)
    assert (done == 2).all()


def test_wait_for_looks_a_limited_number_of_times() -> None:
    flags = np.array([0, 5], np.int64)
    assert wait_for(flags, 1, 5, 1, 2)
    assert not wait_for(flags, 1, 6, 100, 0)
    timer = threading.Timer(0.05, flags.__setitem__, (0, 1))
    timer.start()
    assert wait_for(flags, 0, 1, 10**10, 0)
    timer.join()
