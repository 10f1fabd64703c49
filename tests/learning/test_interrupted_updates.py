"""What interrupts a run between two states, and what may hold a state that the next update overwrites."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.learning import loop, sampled_update

RBM = pm.initialize(8, 5, rng=0)
DATA = np.where(np.random.default_rng(1).random((30, 8)) < 0.7, 1.0, -1.0)
OPTIONS = {"epochs": 4, "batch_size": 7, "evaluate": 1, "optimizer": pm.Adam(0.01)}


@pytest.fixture
def all_large(monkeypatch):
    """All machines count as large: a state that nobody holds is overwritten."""
    monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 1)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(20, 2, n_threads=1)], ids=["exact", "pcd"])
def test_an_interrupted_measurement_is_made_by_the_resumed_run(gradient, tmp_path, all_large):
    path, options = tmp_path / "run", OPTIONS | {"gradient": gradient}

    def interrupt(rbm, epoch):
        if epoch == 3:
            raise KeyboardInterrupt
        return measure(rbm, epoch)

    def measure(rbm, epoch):
        return pm.Estimate(pm.log_partition(rbm))

    with pytest.raises(KeyboardInterrupt):
        pm.train(RBM, DATA, rng=0, log_z=interrupt, checkpoint=path, **options)
    resumed = pm.train(pm.load_checkpoint(path), DATA, log_z=measure, **options)
    expected = pm.train(RBM, DATA, rng=0, log_z=measure, **options)
    np.testing.assert_array_equal(resumed.history.epoch, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(resumed.history.gradient_norm, expected.history.gradient_norm)
    np.testing.assert_array_equal(resumed.history.log_likelihood, expected.history.log_likelihood)
    np.testing.assert_array_equal(resumed.state.parameters, expected.state.parameters)


def test_a_measurement_that_finds_divergence_leaves_the_last_finite_state(tmp_path):
    path = tmp_path / "run"

    def diverge(rbm, epoch):
        if epoch == 2:
            raise loop.InexactSumError("Too large.")
        return pm.Estimate(0.0)

    with pytest.raises(pm.DivergenceError) as caught:
        pm.train(RBM, DATA, rng=0, gradient=pm.PCD(9, 1), log_z=diverge, checkpoint=path, **OPTIONS)
    assert caught.value.state.update == pm.load_checkpoint(path).update == 9


def interrupt_update(monkeypatch, interrupt):
    """Call ``interrupt`` in the middle of the sixth update."""
    step, calls = sampled_update.move_biases, []

    def move(*args):
        calls.append(1)
        if len(calls) == 11:  # of two calls an update
            interrupt()
        return step(*args)

    monkeypatch.setattr(sampled_update, "move_biases", move)


def same_as_uninterrupted(path):
    options = OPTIONS | {"gradient": pm.PCD(20, 2, n_threads=1), "evaluate": []}
    resumed = pm.train(pm.load_checkpoint(path), DATA, **options)
    expected = pm.train(RBM, DATA, rng=0, **options)
    return np.array_equal(resumed.state.parameters, expected.state.parameters)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no such signal")
@pytest.mark.parametrize("name", ["SIGALRM", "SIGUSR1", "SIGTERM"])
def test_any_signal_whose_handler_raises_waits_for_the_end_of_an_update_in_place(
    name, all_large, tmp_path, monkeypatch
):
    number, path = getattr(signal, name), tmp_path / "run"
    options = OPTIONS | {"gradient": pm.PCD(20, 2, n_threads=1), "evaluate": []}

    def handler(received, frame):
        raise TimeoutError

    before = signal.signal(number, handler)
    try:
        interrupt_update(monkeypatch, lambda: signal.raise_signal(number))
        with pytest.raises(TimeoutError):
            pm.train(RBM, DATA, rng=0, checkpoint=path, **options)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert pm.load_checkpoint(path).update == 6
    assert same_as_uninterrupted(path)


def test_an_update_in_place_that_fails_leaves_the_checkpoint_alone(all_large, tmp_path, monkeypatch):
    path = tmp_path / "run"
    options = OPTIONS | {"gradient": pm.PCD(20, 2, n_threads=1), "evaluate": []}

    def fail():
        raise MemoryError

    interrupt_update(monkeypatch, fail)
    with pytest.raises(MemoryError):
        pm.train(RBM, DATA, rng=0, checkpoint=path, **options)
    assert pm.load_checkpoint(path).update == 0
    assert same_as_uninterrupted(path)


@pytest.mark.parametrize("name", ["spin", "half"])
def test_a_checkpoint_of_units_that_their_name_does_not_lead_to_is_refused(name, tmp_path):
    unit = pm.units.BinaryUnit(name, -0.5, 0.5)
    with pytest.raises(ValueError, match=r"`visible` must be .* to be saved, .*`register_unit`"):
        pm.train(RBM.change_units(visible=unit)[0], DATA / 2, epochs=1, checkpoint=tmp_path / "run")
