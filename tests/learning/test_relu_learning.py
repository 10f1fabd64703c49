"""Training of machines with ReLU and dReLU units."""

from __future__ import annotations

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.layout import Layout
from paramagnet.learning.moments import model_moments, sampled_moments
from paramagnet.sampling.chains import Chains
from relu_oracle import make_relu_machine

GRADIENTS = {
    "exact": pm.Exact(),
    "pcd": pm.PCD(n_chains=100, n_steps=2, n_relax=4),
    "cd": pm.CD(2),
    "tempering": pm.Tempering(n_chains=50, n_replicas=3),
}


def make_data(visible, seed=0, n_points=120):
    """Points of two patterns with noise."""
    rng = np.random.default_rng(seed)
    patterns = np.array([[1, 1, 1, -1, -1, -1], [-1, 1, -1, 1, -1, 1]])
    data = patterns[rng.integers(2, size=n_points)] * np.where(rng.random((n_points, 6)) < 0.1, -1, 1)
    return data.astype(float) if visible == "spin" else 0.5 * (data + 1.0)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)
@pytest.mark.parametrize(
    ("visible", "hidden"), [("spin", "relu"), ("bit", "drelu"), ("categorical(2)", "relu")]
)
def test_training_improves_and_goes_on_bit_for_bit(visible, hidden, gradient, centred, tmp_path):
    data = make_data(visible)
    rbm = pm.initialize(6, 4, visible=visible, hidden=hidden, scheme="xavier", rng=0)
    options = {
        "gradient": gradient, "optimizer": pm.Adam(0.03), "batch_size": 30, "rng": 7, "evaluate": 6,
        "centred": centred,
    }  # fmt: skip
    whole = pm.train(rbm, data, epochs=12, **options)

    def stop(state):
        if state.update == 17:
            raise StopIteration

    path = tmp_path / "half.safetensors"
    pm.train(rbm, data, epochs=12, callback=stop, checkpoint=path, **options)
    again = pm.train(pm.load_checkpoint(path), data, epochs=12, **options)
    np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
    assert again.rbm.hidden == rbm.hidden
    for name, values in whole.rbm.hidden_parameters.items():
        assert np.abs(values).min() > 0.0, name
    history = whole.history.log_likelihood
    assert history[-1] > history[0]
    independent = pm.RBM(np.zeros((len(rbm.weights), 1)), rbm.visible.bias_from(data), 0.0, visible, "bit")
    if isinstance(gradient, pm.Exact):
        longer = pm.train(rbm, data, epochs=60, **options).rbm
        assert float(pm.log_likelihood(longer, data)) > float(pm.log_likelihood(independent, data)) + 0.5


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
@pytest.mark.parametrize("visible", ["spin", "bit", "categorical(3)"])
def test_sampled_gradients_have_the_exact_averages(visible, hidden):
    rbm = make_relu_machine(visible, hidden, 4, 3, seed=2)
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    chains = Chains.from_states(pm.sample_exact(rbm, 20_000, rng=0), np.random.default_rng(1))
    _, sampled = sampled_moments(layout, parameters, chains, 5, None)
    _, exact = model_moments(layout, parameters, 1)
    assert np.abs(sampled - exact).max() < 0.05
    if hidden == "drelu":
        forgotten = exact.copy()
        forgotten[layout.n_basic :] = 0.0
        assert np.abs(sampled - forgotten).max() > 0.2


def test_drelu_finds_the_shape_of_its_units():
    """Data of a machine with asymmetric units are learned better with the two numbers than without."""
    teacher = pm.RBM(
        np.array([[1.0], [-1.0], [1.0], [0.8], [-0.9]]), 0.0, 0.5, "spin", "drelu",
        hidden_parameters={"theta_asymmetry": -1.0, "gamma_asymmetry": 1.5},
    )  # fmt: skip
    data = pm.sample_exact(teacher, 4000, rng=0)
    best = float(pm.log_likelihood(teacher, data))
    start = pm.initialize(5, 1, hidden="drelu", scheme="xavier", rng=1)
    trained = pm.train(start, data, epochs=60, gradient=pm.Exact(), optimizer=pm.Adam(0.02), rng=0).rbm
    assert float(pm.log_likelihood(trained, data)) > best - 0.02
    gaussian = pm.initialize(5, 1, hidden="gaussian", scheme="xavier", rng=1)
    limited = pm.train(gaussian, data, epochs=60, gradient=pm.Exact(), optimizer=pm.Adam(0.02), rng=0).rbm
    assert float(pm.log_likelihood(limited, data)) < float(pm.log_likelihood(trained, data)) - 0.002
    assert min(np.min(variance) for variance in trained.units[1].variances) > 0.0


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
def test_gaussian_visible_units_train_on_chains(hidden):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 4)) * 0.6 + 0.4
    rbm = pm.RBM(rng.normal(0.0, 0.1, (4, 3)), 0.0, 0.0, "gaussian", hidden)
    policy = pm.LogZ(n_samples=200, n_temperatures=50)
    result = pm.train(rbm, data, epochs=5, optimizer=pm.Adam(0.01), rng=0, log_z=policy)
    assert np.isfinite(result.history.log_likelihood[-1])
    assert pm.LogZ().choose(rbm).why == "because neither layer can be summed exactly"
    with pytest.raises(ValueError, match="no layer has states that can be summed"):
        pm.train(rbm, data, epochs=1, gradient=pm.Exact(), rng=0)
    with pytest.raises(ValueError, match="no layer has states that can be summed"):
        pm.LogZ(method="exact").choose(rbm)
