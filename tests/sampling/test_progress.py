"""Progress of long computations: fractions that rise to one, nothing changed, a way out; and their memory."""

import threading
import time
import tracemalloc

import numpy as np
import pytest

from paramagnet._parallel import n_blocks
from paramagnet._progress import Cancelled, Meter
from paramagnet.rbm import RBM
from paramagnet.sampling import int16
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sampling.chains import SWEEPS_AT_A_TIME, sample
from paramagnet.sampling.layer import layers_of


def machine(n_visible=30, n_hidden=20):
    return RBM(np.random.default_rng(0).normal(0, 0.2, (n_visible, n_hidden)), 0.1, -0.1)


def estimate(progress=None, **options):
    return estimate_log_partition(
        machine(), **{"n_samples": 300, "n_temperatures": 40, "rng": 1, **options}, progress=progress
    )


def draw(progress=None, **options):
    return sample(machine(), 300, n_steps=3 * SWEEPS_AT_A_TIME + 5, rng=1, **options, progress=progress)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_estimates_tell_how_far_they_are(method, n_threads):
    seen, threads = [], set()

    def progress(fraction):
        seen.append(fraction)
        threads.add(threading.get_ident())

    watched = estimate(progress, method=method, n_threads=n_threads)
    assert repr(watched) == repr(estimate(method=method, n_threads=n_threads))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert threads == {threading.get_ident()}
    if n_threads == 1:
        in_int16 = int16.order_of_sums(layers_of(machine()), 300, 40) == int16.INT16
        assert len(seen) == (1 if in_int16 else n_blocks(300)) * 40


def test_samples_tell_how_far_they_are():
    seen = []
    assert np.array_equal(draw(seen.append), draw())
    assert seen == pytest.approx([128 / 389, 256 / 389, 384 / 389, 1.0])


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("run", [estimate, draw])
def test_what_progress_raises_ends_the_run(run, n_threads):
    def progress(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress, n_threads=n_threads)


def test_threads_stop_when_nobody_wants_their_work():
    calls = []

    def progress(fraction):
        calls.append(fraction)
        raise KeyboardInterrupt

    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):  # hours of work
        estimate(progress, n_threads=2, n_temperatures=10**7)
    assert time.perf_counter() - began < 60.0
    assert len(calls) == 1
    meter = Meter(lambda fraction: None, 1, 2)
    meter.tick(0)
    meter._stopped = True
    with pytest.raises(Cancelled):
        meter.tick(0)


@pytest.mark.parametrize("method", ["mais", "ais"])
def test_memory_does_not_grow_with_the_states_of_the_samples(method):
    rbm = machine(300, 200)
    options = {"method": method, "n_temperatures": 2, "rng": 0, "n_threads": 1}

    def peak(n_samples):
        tracemalloc.start()
        estimate_log_partition(rbm, n_samples=n_samples, **options)
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    estimate_log_partition(rbm, n_samples=2000, **options)  # what is compiled stays
    per_sample = (peak(8000) - peak(2000)) / 6000
    assert per_sample < 100  # bytes: log-weights and what their mean needs; the states of a chain are 2000
