"""Chains and annealing of any units, by the layer that serves every type."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import conftest
import paramagnet as pm
from own_units import OWN, TRIT, own_names
from paramagnet.sampling.layer import NormalLayer, SampledLayer, UnitLayer, layers_of, make_layer
from paramagnet.units import BIT, GAUSSIAN

__all__ = ["own_names"]
pytestmark = pytest.mark.usefixtures("own_names")


make_machine = functools.partial(conftest.make_machine, n_visible=5, n_hidden=4, seed=1)


def errors_of(rbm, states):
    """Of the means of chains against exact ones, in standard errors."""
    moments = pm.exact.exact_moments(rbm)
    return np.abs(states.mean(axis=0) - moments.visible) * np.sqrt(len(states)) / states.std(axis=0)


@pytest.mark.parametrize(("visible", "hidden"), [("trit", "bit"), ("spin", "trit"), ("gaussian", "trit")])
def test_chains_of_own_units_have_the_exact_means(visible, hidden):
    rbm = make_machine(visible, hidden)
    states = pm.sample(rbm, 20_000, n_steps=40, rng=3)
    assert rbm.visible.is_value(states).all()
    assert errors_of(rbm, states).max() < 5.0
    wrong = pm.RBM(rbm.weights, rbm.visible_bias, 0.0 * rbm.hidden_bias, visible, hidden)
    assert errors_of(wrong, states).max() > 6.5  # a forgotten bias is seen
    np.testing.assert_array_equal(states, pm.sample(rbm, 20_000, n_steps=40, rng=3, n_threads=2))


def test_the_layer_for_every_type_agrees_with_that_of_the_kernels():
    rbm = make_machine("spin", "bit")
    visible, hidden = layers_of(rbm)
    fields = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    any_layer = UnitLayer(hidden.weights, rbm.hidden_bias.astype(np.float32), 1.0, (0.0, 0.0), rbm.hidden)
    np.testing.assert_allclose(any_layer.mean(fields), hidden.mean(fields), atol=1e-6)
    biases = np.stack((rbm.hidden_bias, 0.3 * rbm.hidden_bias))
    rises = [np.zeros(6), np.zeros(6)]
    for layer, rise in zip((any_layer, hidden), rises, strict=True):
        layer.draw_and_weigh(
            0.2, 0.7, layer.scale * biases, fields, (1, 0, 0, 0), np.empty_like(fields), rise
        )
    np.testing.assert_allclose(*rises, atol=1e-5)
    assert type(visible) is SampledLayer


def test_layers_are_made_by_the_type_of_their_units():
    weights, bias = np.ones((2, 3), np.float32), np.zeros(2)
    assert type(make_layer(BIT, weights, bias)) is SampledLayer
    assert type(make_layer(GAUSSIAN, weights, bias)) is NormalLayer
    assert type(make_layer(TRIT, weights, bias)) is UnitLayer


def test_a_type_registers_a_layer_of_its_own():
    class Quick(type(TRIT)):
        pass

    @make_layer.register(Quick)
    def _(unit, weights, bias):
        return SampledLayer(weights, bias.astype(np.float32), 2.0, (-1.0, 1.0))

    assert type(make_layer(Quick(), np.ones((2, 3), np.float32), np.zeros(2))) is SampledLayer
    assert type(make_layer(OWN["trit"], np.ones((2, 3), np.float32), np.zeros(2))) is UnitLayer


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
@pytest.mark.parametrize(("visible", "hidden"), [("trit", "bit"), ("spin", "trit"), ("trit", "trit")])
def test_annealing_of_own_units(visible, hidden, method):
    rbm = make_machine(visible, hidden, scale=0.7)
    exact = pm.log_partition(rbm)
    for layer in ("hidden", "visible"):
        estimate = pm.estimate_log_partition(
            rbm, method=method, n_samples=2000, n_temperatures=60, marginalize=layer, rng=5
        )
        assert abs(estimate.value - exact) < 4.0 * estimate.error
        assert estimate.error < 0.1


@pytest.mark.parametrize("gradient", [pm.PCD(n_chains=60, n_steps=2, n_relax=5), pm.CD(2)], ids=["pcd", "cd"])
def test_sampled_training_of_own_units_goes_on_bit_for_bit(gradient, tmp_path):
    data = TRIT.draw(np.full((40, 5), 0.3), np.random.default_rng(2))
    options = {"gradient": gradient, "optimizer": pm.Adam(0.02), "batch_size": 10, "rng": 7, "evaluate": 4}
    rbm = make_machine("trit", "trit", scale=0.1)
    whole = pm.train(rbm, data, epochs=4, **options)

    def stop(state):
        if state.update == 6:
            raise StopIteration

    pm.train(rbm, data, epochs=4, callback=stop, checkpoint=tmp_path / "c.safetensors", **options)
    state = pm.load_checkpoint(tmp_path / "c.safetensors")
    assert (state.layout.visible, state.update) == (TRIT, 6)
    again = pm.train(state, data, epochs=4, **options)
    np.testing.assert_array_equal(again.rbm.weights, whole.rbm.weights)
    assert whole.history.log_likelihood[-1] > whole.history.log_likelihood[0]


def test_devices_of_pytorch_sample_binary_units_only():
    with pytest.raises(ValueError, match="`device` must be 'cpu' for machines with trit units"):
        pm.estimate_log_partition(make_machine("trit", "bit"), device="torch:cpu")
