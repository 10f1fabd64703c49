"""Units with further learned numbers: machines, files, sums, chains, gradients and checkpoints carry them."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

import paramagnet as pm
from own_units import TILTED_BIT, TILTED_TRIT, own_names
from paramagnet.layout import Layout
from paramagnet.learning.likelihood import free_energies
from paramagnet.units import BinaryUnit, GaussianUnit

__all__ = ["own_names"]
pytestmark = pytest.mark.usefixtures("own_names")
PAIRS = [
    ("tilted-bit", "bit"),
    ("spin", "tilted-bit"),
    ("tilted-trit", "tilted-bit"),
    ("gaussian", "tilted-trit"),
    ("tilted-trit", "gaussian"),
]


def make_machine(visible, hidden, n_visible=3, n_hidden=2, seed=0, scale=0.6):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, scale, (n_visible, n_hidden))
    biases = rng.normal(0.0, 0.4, n_visible), rng.normal(0.0, 0.4, n_hidden)
    numbers = [
        {"theta": rng.normal(0.0, 0.7, n)} if "tilted" in unit else None
        for unit, n in ((visible, n_visible), (hidden, n_hidden))
    ]
    return pm.RBM(weights, *biases, visible, hidden, *numbers)


def make_data(rbm, n_points=25, seed=1):
    rng = np.random.default_rng(seed)
    if rbm.visible.values is None:
        return rng.normal(size=(n_points, rbm.n_visible))
    return rng.choice(rbm.visible.values, size=(n_points, rbm.n_visible))


def states_of(unit, n_units):
    return np.array(list(itertools.product(unit.values, repeat=n_units)))


def by_definition(rbm, v, h):
    """``-E`` written out, with every number of every unit."""
    total = v @ rbm.visible_bias + h @ rbm.hidden_bias + v @ rbm.weights @ h
    for states, numbers in ((v, rbm.visible_parameters), (h, rbm.hidden_parameters)):
        if numbers:
            total += (numbers["theta"] * states**2).sum()
    return total


# The machine


def test_energies_and_sums_hold_the_further_numbers():
    rbm = make_machine("tilted-trit", "tilted-bit")
    v, h = states_of(TILTED_TRIT, 3), states_of(TILTED_BIT, 2)
    table = np.array([[by_definition(rbm, x, y) for y in h] for x in v])
    np.testing.assert_allclose(-rbm.energy(v[:, None], h), table, atol=1e-13)
    np.testing.assert_allclose(-rbm.free_energy(v), np.log(np.exp(table).sum(1)), atol=1e-13)
    np.testing.assert_allclose(-rbm.free_energy_h(h), np.log(np.exp(table).sum(0)), atol=1e-13)
    np.testing.assert_allclose(free_energies(rbm, v), rbm.free_energy(v), atol=1e-13)
    p = np.exp(table) / np.exp(table).sum()
    moments = pm.exact.exact_moments(rbm)
    assert moments.log_partition == pytest.approx(np.log(np.exp(table).sum()), rel=1e-13)
    np.testing.assert_allclose(moments.products, v.T @ p @ h, atol=1e-13)
    conditional = p[5] / p[5].sum()
    np.testing.assert_allclose(rbm.mean_h_given_v(v[5]), conditional @ h, atol=1e-13)
    draws = rbm.sample_h_given_v(np.broadcast_to(v[5], (40_000, 3)), rng=0)
    np.testing.assert_allclose(draws.mean(axis=0), conditional @ h, atol=0.015)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_files_copies_and_vectors_keep_the_further_numbers(visible, hidden, tmp_path):
    rbm = make_machine(visible, hidden)
    rbm.save(tmp_path / "m.safetensors")
    layout = Layout.of(rbm)
    assert layout.flatten(rbm).size == layout.size
    for other in (
        pm.RBM.load(tmp_path / "m.safetensors"),
        pickle.loads(pickle.dumps(rbm)),
        copy.deepcopy(rbm),
        layout.machine(layout.flatten(rbm)),
        rbm.change_units()[0],
    ):
        for name in ("visible_parameters", "hidden_parameters"):
            ours, theirs = getattr(rbm, name), getattr(other, name)
            assert ours.keys() == theirs.keys()
            for key in ours:
                np.testing.assert_array_equal(ours[key], theirs[key])
                assert not theirs[key].flags.writeable
        assert other.free_energy(make_data(rbm)[:3]).tolist() == rbm.free_energy(make_data(rbm)[:3]).tolist()


def test_machines_start_with_the_numbers_of_their_type():
    rbm = pm.initialize(4, 3, visible="tilted-bit", hidden="tilted-trit", scheme="xavier", rng=0)
    assert rbm.visible_parameters["theta"].tolist() == [0.0] * 4
    assert rbm.hidden_parameters["theta"].tolist() == [0.0] * 3
    one = pm.RBM(rbm.weights, 0, 0, "bit", "tilted-bit", hidden_parameters={"theta": 0.5})
    assert one.hidden_parameters["theta"].tolist() == [0.5] * 3
    assert dict(one.visible_parameters) == {}
    with pytest.raises(TypeError):
        one.hidden_parameters["theta"] = np.zeros(3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"hidden_parameters": {"theta": 1.0}},
            r"^`hidden_parameters` must hold None for bit units, got theta",
        ),
        (
            {"visible_parameters": {}},
            "^`visible_parameters` must hold the names theta for tilted-bit .*got no name",
        ),
        ({"visible_parameters": {"gamma": 1.0}}, "must hold the names theta for tilted-bit units, got gamma"),
        ({"visible_parameters": [1.0]}, "must hold the names theta for tilted-bit units, got "),
        (
            {"visible_parameters": {"theta": [1.0]}},
            r"`visible_parameters\['theta'\]` must be one number or 2 ",
        ),
        ({"visible_parameters": {"theta": np.nan}}, r"`visible_parameters\['theta'\]` must be finite"),
    ],
)
def test_wrong_numbers_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        pm.RBM(np.zeros((2, 2)), 0, 0, "tilted-bit", "bit", **arguments)


def test_a_file_must_hold_exactly_the_numbers_of_its_units(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    make_machine("spin", "tilted-bit").save(path)
    monkeypatch.setattr(type(TILTED_BIT), "parameters", ("theta", "gamma"))
    with pytest.raises(
        ValueError, match=r"no valid machine: .*`hidden_parameters` must hold the names theta, gamma"
    ):
        pm.RBM.load(path)
    monkeypatch.setattr(type(TILTED_BIT), "parameters", ())
    with pytest.raises(ValueError, match=r"no valid machine: .*`hidden_parameters` must hold None"):
        pm.RBM.load(path)


def test_types_with_closed_forms_have_no_further_numbers():
    for base in (BinaryUnit, GaussianUnit):
        with pytest.raises(TypeError, match=r"^Wrong must be derived from `Unit` to have `parameters`"):
            type("Wrong", (base,), {"parameters": ("theta",)})


def test_what_cannot_carry_the_numbers_refuses():
    rbm = make_machine("tilted-bit", "bit")
    with pytest.raises(ValueError, match="no change of variables leads from tilted-bit to spin"):
        rbm.to_spins()
    with pytest.raises(ValueError, match="no change of variables leads from bit to tilted-bit"):
        rbm.change_units(hidden="tilted-bit")
    with pytest.raises(ValueError, match="`device` must be 'cpu' for machines with tilted-bit units"):
        pm.train(rbm, make_data(rbm), epochs=1, gradient=pm.PCD(10), device="torch:cpu")


# Gradients


def changed(rbm, index, step):
    layout = Layout.of(rbm)
    vector = layout.flatten(rbm).copy()
    vector[index] += step
    return layout.machine(vector)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_exact_gradients_against_finite_differences(visible, hidden):
    rbm = make_machine(visible, hidden)
    data, layout, step = make_data(rbm), Layout.of(rbm), 1e-5
    gradient = pm.learning.exact_gradient(rbm, data)
    parts = [gradient.weights.ravel(), gradient.hidden_bias, gradient.visible_bias]
    parts += [*gradient.visible_parameters.values(), *gradient.hidden_parameters.values()]
    ours = np.concatenate(parts)
    assert ours.size == layout.size > layout.n_basic
    differences = [
        float(pm.log_likelihood(changed(rbm, index, step), data))
        - float(pm.log_likelihood(changed(rbm, index, -step), data))
        for index in range(layout.size)
    ]
    np.testing.assert_allclose(ours, np.array(differences) / (2.0 * step), atol=2e-9)


@pytest.mark.parametrize(("visible", "hidden"), [("tilted-trit", "bit"), ("spin", "tilted-trit")])
def test_chains_have_the_exact_averages_of_further_numbers(visible, hidden):
    from paramagnet.learning.moments import model_moments, sampled_moments
    from paramagnet.sampling.chains import Chains

    rbm = make_machine(visible, hidden, 4, 3)
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    chains = Chains.from_states(pm.sample_exact(rbm, 20_000, rng=0), np.random.default_rng(1))
    _, sampled = sampled_moments(layout, parameters, chains, 5, None)
    _, exact = model_moments(layout, parameters, 1)
    assert np.abs(sampled - exact).max() < 0.03
    forgotten = exact.copy()
    forgotten[layout.n_basic :] = 0.0
    assert np.abs(sampled - forgotten).max() > 0.2


@pytest.mark.parametrize("method", ["mais", "ais"])
def test_annealing_keeps_the_further_numbers(method):
    rbm = make_machine("tilted-trit", "tilted-bit", 4, 3)
    estimate = pm.estimate_log_partition(rbm, method=method, n_samples=2000, n_temperatures=60, rng=3)
    assert abs(estimate.value - pm.log_partition(rbm)) < 4.0 * estimate.error < 0.4


# Training


@pytest.mark.parametrize(
    "gradient",
    [pm.Exact(), pm.PCD(n_chains=50, n_steps=2, n_relax=4), pm.CD(2)],
    ids=["exact", "pcd", "cd"],
)
@pytest.mark.parametrize(("visible", "hidden"), [("tilted-trit", "tilted-bit"), ("spin", "tilted-trit")])
def test_training_learns_them_and_goes_on_bit_for_bit(visible, hidden, gradient, tmp_path):
    rbm = make_machine(visible, hidden, scale=0.1)
    data = make_data(rbm, 30)
    data[:, 0] = data[0, 0]  # something to learn
    options = {"gradient": gradient, "optimizer": pm.Adam(0.03), "batch_size": 10, "rng": 7, "evaluate": 4}
    whole = pm.train(rbm, data, epochs=8, **options)

    def stop(state):
        if state.update == 7:
            raise StopIteration

    path = tmp_path / "c.safetensors"
    pm.train(rbm, data, epochs=8, callback=stop, checkpoint=path, **options)
    state = pm.load_checkpoint(path)
    assert state.update == 7
    again = pm.train(state, data, epochs=8, **options)
    np.testing.assert_array_equal(again.state.parameters, whole.state.parameters)
    for name in ("visible_parameters", "hidden_parameters"):
        for key, values in getattr(whole.rbm, name).items():
            assert np.abs(values - getattr(rbm, name)[key]).min() > 0.0
    assert whole.history.log_likelihood[-1] > whole.history.log_likelihood[0]


def test_a_trajectory_follows_them():
    rbm = make_machine("tilted-trit", "tilted-bit", scale=0.1)
    data = make_data(rbm, 30)
    steps = pm.training_steps(rbm, data, epochs=10, gradient=pm.Exact(), optimizer=pm.Adam(0.05), rng=0)
    trajectory = pm.learning.log_likelihood_trajectory(steps, data, n_chains=2000, rng=1)
    exact = float(pm.log_likelihood(trajectory.state.rbm, data))
    assert abs(float(trajectory[-1]) - exact) < 5.0 * trajectory.error[-1]


# Machines without such numbers


@pytest.mark.parametrize(("visible", "hidden"), [("spin", "bit"), ("gaussian", "spin")])
def test_other_machines_have_the_former_layout_and_pickles(visible, hidden):
    rbm = pm.initialize(4, 3, visible=visible, hidden=hidden, scheme="xavier", rng=0)
    layout = Layout.of(rbm)
    assert layout.size == layout.n_basic == 4 * 3 + 4 + 3
    assert len(rbm.__reduce__()[1]) == 5
    assert rbm.units[0] is rbm.visible
    assert layout.units(layout.flatten(rbm))[1] is rbm.hidden


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_centred_learning_leaves_the_further_numbers_their_own_coordinates(visible, hidden):
    """A step of plain ascent at rate 1 is the gradient in centred coordinates, further numbers included."""
    rbm = make_machine(visible, hidden, scale=0.2)
    data, layout = make_data(rbm), Layout.of(rbm)
    options = {"epochs": 1, "gradient": pm.Exact(), "evaluate": [], "centred": True}
    state = pm.train(rbm, data, optimizer=pm.SGD(1.0), **options).state
    mu, lam = data.mean(axis=0), state.offsets

    def shift(vector, sign):
        moved = np.array(vector)
        weights, visible_bias, hidden_bias = layout.split(moved)
        visible_bias += sign * weights @ lam
        hidden_bias += sign * mu @ weights
        return moved

    before, step = shift(layout.flatten(rbm), 1.0), 1e-5

    def likelihood(vector):
        return pm.log_likelihood(layout.machine(shift(vector, -1.0)), data).value

    slopes = [
        (likelihood(before + step * axis) - likelihood(before - step * axis)) / (2.0 * step)
        for axis in np.eye(layout.size)
    ]
    np.testing.assert_allclose(shift(state.parameters, 1.0) - before, slopes, atol=1e-6)
    assert pm.train(rbm, data, optimizer=pm.Adam(0.01), **options).finished  # with its factor
