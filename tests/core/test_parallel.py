"""Work on threads: results in order, progress and failures in the calling thread."""

from __future__ import annotations

import threading
import time

import pytest

from paramagnet._parallel import n_blocks, run_blocks, run_tasks
from paramagnet._progress import Meter

TASKS = [(k,) for k in range(20)]


@pytest.mark.parametrize("n_threads", [1, 2, 5, 50])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    def work(k):
        time.sleep(0.002 * (k % 3))
        return k * k

    assert list(run_tasks(work, TASKS, n_threads)) == [k * k for k in range(20)]
    assert list(run_tasks(work, [], n_threads)) == []


def test_several_threads_work():
    threads = set()

    def work(k):
        threads.add(threading.get_ident())
        time.sleep(0.01)

    list(run_tasks(work, TASKS, 3))
    assert len(threads) == 3
    assert threading.get_ident() in threads


@pytest.mark.parametrize("n_threads", [1, 3])
def test_progress_is_reported_by_the_calling_thread(n_threads):
    told = []
    caller = threading.get_ident()

    def progress(share):
        assert threading.get_ident() == caller
        told.append(share)

    list(run_tasks(lambda k: time.sleep(0.001), TASKS, n_threads, progress))
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("failing", [0, 7, 19])
def test_what_a_task_raises_reaches_the_caller(n_threads, failing):
    done = []

    def work(k):
        if k == failing:
            raise ArithmeticError(f"task {k}")
        time.sleep(0.001)
        done.append(k)

    with pytest.raises(ArithmeticError, match=f"task {failing}"):
        list(run_tasks(work, TASKS, n_threads))
    count = len(done)
    time.sleep(0.01)
    assert len(done) == count  # no thread goes on
    assert count < 20


# Blocks of chains with a meter


def steps_of(meter, n_steps, seconds=0.001, failing=None):
    def run(block, rows):
        for _ in range(n_steps):
            time.sleep(seconds)
            if block == failing:
                raise ArithmeticError("a block")
            if meter is not None:
                meter.tick(block)

    return run


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_a_meter_counts_the_steps_of_all_blocks(n_threads):
    told = []
    meter = Meter(told.append, n_blocks(1000), 5)
    run_blocks(steps_of(meter, 5), 1000, n_threads, meter)
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_progress_that_raises_ends_all_blocks(n_threads):
    calls = []

    def progress(share):
        calls.append(share)
        raise KeyboardInterrupt

    meter = Meter(progress, n_blocks(1000), 1000)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_blocks(steps_of(meter, 1000), 1000, n_threads, meter)
    assert time.monotonic() - began < 0.8  # a block takes a second
    assert len(calls) == 1


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("metered", [False, True])
def test_a_block_that_fails_is_what_the_caller_sees(n_threads, metered):
    for failing in range(n_blocks(1000)):
        meter = Meter(lambda share: None, n_blocks(1000), 10) if metered else None
        with pytest.raises(ArithmeticError, match="a block"):
            run_blocks(steps_of(meter, 10, 0.0002, failing), 1000, n_threads, meter)


def test_the_caller_reports_while_it_waits():
    told = []
    meter = Meter(told.append, n_blocks(100), 1)

    def run(block, rows):
        time.sleep(0.05 if threading.get_ident() == caller else 0.5)
        meter.tick(block)

    caller = threading.get_ident()
    run_blocks(run, 100, 2, meter)
    assert n_blocks(100) == 2
    assert len(told) >= 4
    assert told[-1] == 1.0
