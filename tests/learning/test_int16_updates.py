"""Sampled updates whose sweeps are made in int16: resuming, threads, and the order of sums by its name."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import paramagnet as pm
from conftest import draw_data, draw_machine
from paramagnet.layout import Layout
from paramagnet.learning import sampled_setup
from paramagnet.learning.resuming import OrderOfSumsWarning
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.training import training_steps
from paramagnet.sampling import int16

needs_int16 = pytest.mark.skipif(
    int16.is_forbidden() or not int16.has_instructions(),
    reason="no AVX-512BW, or portable kernels are asked for",
)
RBM = draw_machine(40, 30, "bit", "bit", scale=0.2)
DATA = draw_data(250, 40, (0.0, 1.0))
GRADIENTS = pytest.mark.parametrize(
    "gradient", [pm.PCD(100, 9, 20), pm.PCD(700, 3, 20), pm.CD(9)], ids=["PCD-9", "PCD-3", "CD-9"]
)


@dataclass(frozen=True)
class OwnPCD(pm.PCD):
    """Averages of its own over chains that `run_sweeps` moves."""

    def moments(self, *args):
        return super().moments(*args)


def states(start, gradient, n=9):
    options = {"epochs": 9, "batch_size": 100, "evaluate": [], "optimizer": pm.Adam(0.01), "rng": 5}
    steps = training_steps(start, DATA, gradient=gradient, **options)
    return [next(steps) for _ in range(n)]


def require_equal(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.parameters, other.parameters)
        np.testing.assert_array_equal(one.chains.visible, other.chains.visible)


def saved(state, path):
    state.save(path)
    return load_checkpoint(path)


@pytest.fixture
def threads_used(monkeypatch):
    """Every thread is worth its price; the set takes the numbers of threads of all int16 sweeps."""
    used, cut = set(), int16.cut

    def watch(*args):
        blocks, n_threads = cut(*args)
        used.add(n_threads)
        return blocks, n_threads

    monkeypatch.setattr(int16, "cut", watch)
    monkeypatch.setattr(int16, "THREAD_TIME", 1.0)
    monkeypatch.setattr(sampled_setup, "SECONDS_PER_THREAD", 1e-12)
    return used


@needs_int16
@GRADIENTS
def test_resuming_in_the_middle_of_an_epoch(tmp_path, gradient, threads_used):
    whole = states(RBM, gradient)
    loaded = saved(whole[4], tmp_path / "run.safetensors")
    assert loaded.settings["sums"] == "lookup-3 int16"
    assert loaded.batch == 1
    assert threads_used
    require_equal(states(loaded, gradient, 4), whole[5:])


@needs_int16
@pytest.mark.parametrize("gradient", [pm.PCD(500, 9, 20), pm.PCD(700, 3, 20)], ids=["PCD-9", "PCD-3"])
def test_same_bits_for_any_number_of_threads(gradient, threads_used):
    runs = []
    for n_threads in (1, 2, 7):
        threads_used.clear()
        runs.append(states(RBM, type(gradient)(**{**vars(gradient), "n_threads": n_threads}), 6))
        assert threads_used == {n_threads}
    require_equal(runs[1], runs[0])
    require_equal(runs[2], runs[0])


@needs_int16
@GRADIENTS
def test_going_on_with_portable_kernels_is_said(tmp_path, gradient, monkeypatch):
    state = saved(states(RBM, gradient, 3)[2], tmp_path / "run.safetensors")
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    now = "lookup-3" if gradient.n_steps < sampled_setup.FUSED_STEPS else "lookup-3 portable"
    with pytest.warns(OrderOfSumsWarning, match=rf"\(lookup-3 int16, now {now}\).*not bit for bit"):
        assert np.isfinite(states(state, gradient, 2)[1].parameters).all()
    portable = saved(states(RBM, gradient, 3)[2], tmp_path / "portable.safetensors")
    assert portable.settings["sums"] == now
    monkeypatch.delenv(int16.ENVIRONMENT)
    with pytest.warns(OrderOfSumsWarning, match=rf"\({now}, now lookup-3 int16\)"):
        states(portable, gradient, 2)


@needs_int16
def test_a_start_in_int16_is_named_and_does_not_matter_afterwards(tmp_path, monkeypatch):
    """Many sweeps before the first update, too few in an update: chains that are relaxed go on anywhere."""
    gradient = pm.PCD(100, 1, 20)
    whole = states(RBM, gradient)
    loaded = saved(whole[4], tmp_path / "run.safetensors")
    assert loaded.settings["sums"] == "lookup-3, start int16"
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_equal(states(loaded, gradient, 4), whole[5:])
    assert states(RBM, gradient, 1)[0].settings["sums"] == "lookup-3"
    former = saved(whole[4], tmp_path / "former.safetensors")
    former.settings["sums"] = "lookup-3"  # as checkpoints had it before the start was named
    monkeypatch.delenv(int16.ENVIRONMENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_equal(states(former, gradient, 4), whole[5:])


@needs_int16
def test_subclasses_with_averages_of_their_own_name_their_order_too(tmp_path, monkeypatch):
    gradient = OwnPCD(100, 9, 20)
    assert gradient.particles() is None
    whole = states(RBM, gradient)
    loaded = saved(whole[4], tmp_path / "run.safetensors")
    require_equal(states(loaded, gradient, 4), whole[5:])
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    with pytest.warns(OrderOfSumsWarning, match=r"\(lookup-1 int16, now lookup-1\)"):
        states(loaded, gradient, 2)
    portable = saved(states(RBM, gradient, 5)[4], tmp_path / "portable.safetensors")
    del portable.settings["sums"]  # a checkpoint of before they had a name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        states(portable, gradient, 2)


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        (pm.PCD(1000, 40, 500), "lookup-3 int16"),
        (pm.PCD(1000, 40, 0), "lookup-3 int16"),
        (pm.PCD(100, 9, 1), "lookup-3 int16, start portable"),
        (pm.PCD(100, 1, 500), "lookup-3, start int16"),
        (pm.PCD(100, 1, 4), "lookup-3"),
        (pm.PCD(100, 1, 0), "lookup-3"),
        (pm.PCD(63, 9, 500), "lookup-3 portable"),
        (pm.CD(1), "lookup-3"),
        (pm.CD(9), "lookup-3 int16"),
        (OwnPCD(100, 1, 4), "lookup-1"),
        (OwnPCD(100, 1, 500), "lookup-1, start int16"),
        (OwnPCD(100, 9, 500), "lookup-1 int16"),
        (pm.Exact(), None),
        (pm.Tempering(100, 40), None),
    ],
    ids=str,
)
def test_names(gradient, expected, monkeypatch):
    monkeypatch.delenv(int16.ENVIRONMENT, raising=False)
    monkeypatch.setattr(int16, "has_instructions", lambda: True)
    layout = Layout.of(RBM)
    assert sampled_setup.name_order_of_sums(gradient, layout, 100, None) == expected
    gaussian = Layout.of(pm.RBM(np.zeros((40, 30)), 0.0, 0.0, visible="gaussian"))
    assert sampled_setup.name_order_of_sums(gradient, gaussian, 100, None) is None
    assert sampled_setup.name_order_of_sums(gradient, layout, 100, object()) is None
