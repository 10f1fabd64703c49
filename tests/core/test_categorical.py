"""Categorical units against loops over all states, and by their symmetries."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

import paramagnet as pm
from paramagnet.exact import exact_moments
from paramagnet.unit_categorical import MOST_STATES
from paramagnet.units import BIT, SPIN, CategoricalUnit, as_unit

Q, N, M = 3, 3, 2
HIDDEN = ["bit", "spin", "gaussian(0.5)", "categorical(2)", "categorical(4)"]
VALUES = {"bit": (0.0, 1.0), "spin": (-1.0, 1.0)}


def indicators(states, q):
    states = np.asarray(states)
    return (states[..., None] == np.arange(q)).reshape(*states.shape[:-1], -1).astype(np.float64)


def all_states(values, n):
    return np.array(list(itertools.product(values, repeat=n)), dtype=np.float64)


def machine(hidden, visible=f"categorical({Q})", n=N, m=M, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    rows, columns = n * units[0].width, m * units[1].width
    return pm.RBM(
        scale * rng.normal(size=(rows, columns)), rng.normal(size=rows), rng.normal(size=columns), *units
    )


def joint(rbm):
    """Visible and hidden states as the columns that the weights multiply, and all probabilities."""
    sides = []
    for unit, n_units in ((rbm.visible, rbm.n_visible), (rbm.hidden, rbm.n_hidden)):
        states = all_states(unit.values, n_units)
        sides.append((states, indicators(states, unit.width) if unit.width > 1 else states))
    (v, x), (h, y) = sides
    minus_energy = np.empty((len(v), len(h)))
    for i, j in itertools.product(range(len(v)), range(len(h))):
        minus_energy[i, j] = x[i] @ rbm.visible_bias + y[j] @ rbm.hidden_bias + x[i] @ rbm.weights @ y[j]
    return v, h, x, y, minus_energy


@pytest.mark.parametrize("hidden", [name for name in HIDDEN if "gaussian" not in name])
def test_energies_and_sums_against_loops_over_all_states(hidden):
    rbm = machine(hidden)
    v, h, x, y, minus_energy = joint(rbm)
    assert np.allclose(rbm.energy(v[:, None], h[None]), -minus_energy, rtol=0.0, atol=1e-12)
    assert np.allclose(rbm.energy(x[:, None], h[None]), -minus_energy, rtol=0.0, atol=1e-12)
    log_z = math.log(math.fsum(np.exp(minus_energy).ravel()))
    p = np.exp(minus_energy - log_z)
    assert pm.log_partition(rbm) == pytest.approx(log_z, abs=1e-10)
    assert np.allclose(rbm.free_energy(v), -np.log(np.exp(minus_energy).sum(axis=1)), rtol=0.0, atol=1e-10)
    assert np.allclose(rbm.free_energy_h(h), -np.log(np.exp(minus_energy).sum(axis=0)), rtol=0.0, atol=1e-10)
    found = exact_moments(rbm)
    assert np.allclose(found.visible, p.sum(axis=1) @ x, rtol=0.0, atol=1e-10)
    assert np.allclose(found.hidden, p.sum(axis=0) @ y, rtol=0.0, atol=1e-10)
    assert np.allclose(found.products, x.T @ p @ y, rtol=0.0, atol=1e-10)
    means = (p / p.sum(axis=0)).T @ x
    assert np.allclose(rbm.mean_v_given_h(h), means, rtol=0.0, atol=1e-12)
    assert np.allclose(rbm.mean_h_given_v(v), (p / p.sum(axis=1)[:, None]) @ y, rtol=0.0, atol=1e-12)
    assert pm.log_likelihood(rbm, v).value == pytest.approx(float(np.log(p.sum(axis=1)).mean()), abs=1e-10)


def test_gaussian_hidden_units_are_integrated_out():
    """``p0(h)`` is the normal density of variance 1/2, ``exp(-h**2) / sqrt(pi)``."""
    rbm = machine("gaussian(0.5)")
    v = all_states(range(Q), N)
    x = indicators(v, Q)
    h = np.random.default_rng(3).normal(size=(len(v), rbm.n_hidden))
    energy = -x @ rbm.visible_bias - h @ rbm.hidden_bias - ((x @ rbm.weights) * h).sum(axis=1)
    energy += (h**2 + 0.5 * math.log(math.pi)).sum(axis=1)
    assert np.allclose(rbm.energy(v, h), energy, rtol=0.0, atol=1e-12)
    log_weights = x @ rbm.visible_bias + 0.25 * ((x @ rbm.weights + rbm.hidden_bias) ** 2).sum(axis=1)
    log_z = float(np.log(np.exp(log_weights).sum()))
    p = np.exp(log_weights - log_z)
    assert pm.log_partition(rbm) == pytest.approx(log_z, abs=1e-10)
    found = exact_moments(rbm)
    means = 0.5 * (x @ rbm.weights + rbm.hidden_bias)
    assert np.allclose(found.visible, p @ x, rtol=0.0, atol=1e-10)
    assert np.allclose(found.products, (p[:, None] * x).T @ means, rtol=0.0, atol=1e-10)


def test_few_sites_are_enumerated_and_many_summed_out():
    few, many = machine("bit", n=2, m=12), machine("bit", n=9, m=3)
    for rbm in (few, many):
        _, _, _, _, minus_energy = joint(rbm)
        largest = minus_energy.max()
        log_z = largest + math.log(np.exp(minus_energy - largest).sum())
        assert pm.log_partition(rbm) == pytest.approx(log_z, abs=1e-10)


@pytest.mark.parametrize("hidden", ["bit", "spin", "gaussian"])
@pytest.mark.parametrize("layer", ["visible", "hidden"])
def test_two_states_are_a_spin(hidden, layer):
    units = (
        {"visible": "spin", "hidden": hidden} if layer == "visible" else {"visible": hidden, "hidden": "spin"}
    )
    rng = np.random.default_rng(1)
    spins = pm.RBM(rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3), **units)
    potts, constant = spins.change_units(**{layer: "categorical(2)"})
    assert potts.weights.shape == ((8, 3) if layer == "visible" else (4, 6))
    assert pm.log_partition(spins) == pytest.approx(pm.log_partition(potts) - constant, abs=1e-12)
    back, other = potts.change_units(**{layer: SPIN})
    assert constant + other == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(back.weights, spins.weights, rtol=0.0, atol=1e-14)
    assert np.allclose(back.visible_bias, spins.visible_bias, rtol=0.0, atol=1e-14)
    assert np.allclose(back.hidden_bias, spins.hidden_bias, rtol=0.0, atol=1e-14)
    bits, _ = potts.change_units(**{layer: BIT})
    expected = spins.to_bits(layer)
    assert np.allclose(bits.weights, expected.weights, rtol=0.0, atol=1e-14)
    assert np.allclose(bits.hidden_bias, expected.hidden_bias, rtol=0.0, atol=1e-14)
    if layer == "visible" and hidden != "gaussian":
        v, h = all_states((-1.0, 1.0), 4), np.array(VALUES[hidden])[[0, 1, 1]]
        assert np.allclose(spins.energy(v, h) - potts.energy((v + 1) / 2, h), constant, rtol=0.0, atol=1e-12)


def test_changes_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"no change of variables leads from categorical\(3\) to spin"):
        machine("bit").change_units(visible="spin")
    with pytest.raises(ValueError, match=r"from gaussian to categorical\(3\)"):
        machine("bit", "gaussian").change_units(visible="categorical(3)")
    with pytest.raises(ValueError, match=r"from categorical\(3\) to categorical\(4\)"):
        machine("bit").change_units(visible="categorical(4)")
    free, constant = machine("bit").change_units(visible="categorical(3, free)")
    assert not free.visible.zero_sum
    assert constant == 0.0


@pytest.mark.parametrize("hidden", HIDDEN)
def test_relabelling_states_changes_nothing(hidden):
    rbm = machine(hidden)
    order = np.array([2, 0, 1])  # of the states of the second site
    rows = np.arange(Q * N)
    rows[Q : 2 * Q] = Q + order
    other = pm.RBM(rbm.weights[rows], rbm.visible_bias[rows], rbm.hidden_bias, rbm.visible, rbm.hidden)
    assert pm.log_partition(other) == pytest.approx(pm.log_partition(rbm), abs=1e-12)
    assert np.allclose(exact_moments(other).visible, exact_moments(rbm).visible[rows], rtol=0.0, atol=1e-12)
    v = all_states(range(Q), N)
    renamed = v.copy()
    renamed[:, 1] = order[v[:, 1].astype(int)]
    assert np.allclose(other.free_energy(v), rbm.free_energy(renamed), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_gauge_changes_no_likelihood(hidden):
    rbm = machine(hidden)
    fixed = rbm.to_zero_sum()
    assert np.abs(fixed.weights_by_state.sum(axis=1)).max() < 1e-14
    assert np.abs(fixed.bias_by_state.sum(axis=1)).max() < 1e-14
    v = all_states(range(Q), N)
    assert not np.allclose(rbm.free_energy(v), fixed.free_energy(v))
    for point in v[::5]:
        one, two = (pm.log_likelihood(each, point[None]).value for each in (rbm, fixed))
        assert one == pytest.approx(two, abs=1e-12)
    assert np.allclose(exact_moments(rbm).products, exact_moments(fixed).products, rtol=0.0, atol=1e-12)
    if rbm.hidden.width > 1:
        by_state = fixed.weights.reshape(len(fixed.weights), M, -1)
        assert np.abs(by_state.sum(axis=2)).max() < 1e-14
        assert np.abs(fixed.hidden_bias.reshape(M, -1).sum(axis=1)).max() < 1e-14


def test_layers_can_be_exchanged():
    rbm = machine("categorical(2)", "categorical(4)", n=2, m=3)
    other = pm.RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias, rbm.hidden, rbm.visible)
    assert pm.log_partition(other) == pytest.approx(pm.log_partition(rbm), abs=1e-12)
    one, two = exact_moments(rbm), exact_moments(other)
    assert np.allclose(one.products, two.products.T, rtol=0.0, atol=1e-12)


def test_shapes_views_and_files(tmp_path):
    rbm = machine("bit")
    assert (rbm.n_visible, rbm.n_hidden) == (N, M)
    assert rbm.weights_by_state.shape == (N, Q, M)
    assert np.shares_memory(rbm.weights_by_state, rbm.weights)
    assert rbm.weights_by_state[1, 2, 0] == rbm.weights[1 * Q + 2, 0]
    assert rbm.bias_by_state.shape == (N, Q)
    for machine_ in (rbm, machine("categorical(2, free)")):
        machine_.save(tmp_path / "potts.safetensors")
        loaded = pm.RBM.load(tmp_path / "potts.safetensors")
        assert (loaded.visible, loaded.hidden) == (machine_.visible, machine_.hidden)
        assert np.array_equal(loaded.weights, machine_.weights)
    with pytest.raises(ValueError, match="`weights` must have 3 rows for each"):
        pm.RBM(np.zeros((4, 2)), 0.0, 0.0, "categorical(3)", "bit")


def test_fields_of_400_do_not_overflow():
    unit = pm.categorical(4)
    field = np.array([400.0, -400.0, 0.0, 400.0])
    assert unit.log_trace(field)[0] == pytest.approx(400.0 + math.log(2.0), abs=1e-12)
    assert np.allclose(unit.mean(field), [0.5, 0.0, 0.0, 0.5], rtol=0.0, atol=1e-15)
    assert set(unit.draw(np.tile(field, (50, 1)), np.random.default_rng(0)).ravel()) == {0.0, 3.0}


@pytest.mark.parametrize("hidden", ["bit", "spin", "categorical(3)"])
def test_sums_in_fields_of_forty(hidden):
    """Machines whose fields reach from -40 to 40, against sums of exact fractions of the largest term."""
    rbm = machine(hidden, scale=40.0)
    v, _, x, y, minus_energy = joint(rbm)
    fields = rbm.field_h_given_v(v)
    assert fields.min() < -40.0 < 40.0 < fields.max()
    largest = minus_energy.max()
    terms = [mpmath.exp(mpmath.mpf(float(e)) - float(largest)) for e in minus_energy.ravel()]
    log_z = largest + float(mpmath.log(mpmath.fsum(terms)))
    assert pm.log_partition(rbm) == pytest.approx(log_z, rel=1e-14)
    p = np.exp(minus_energy - log_z)
    found = exact_moments(rbm)
    assert np.allclose(found.products, x.T @ p @ y, rtol=0.0, atol=1e-10)
    assert np.isfinite(pm.log_likelihood(rbm, v).value)
    assert np.isfinite(pm.sample(rbm, 20, n_steps=5, rng=0)).all()
    estimate = pm.estimate_log_partition(rbm, n_samples=50, n_temperatures=50, rng=0)
    assert np.isfinite((estimate.value, estimate.error)).all()


def test_absent_states_have_finite_biases():
    data = np.array([[0, 1], [0, 1], [0, 2], [0, 1]])
    unit = pm.categorical(4)
    bias = unit.bias_from(unit.as_states(data, "data", 2))
    assert np.isfinite(bias).all()
    assert np.allclose(bias.reshape(2, 4).sum(axis=1), 0.0, atol=1e-14)
    counts = np.array([[4, 0, 0, 0], [0, 3, 1, 0]]) + 0.25
    assert np.allclose(unit.mean(bias).reshape(2, 4), counts / 5.0, atol=1e-14)
    weighted = unit.bias_from(data.astype(float), "data", np.array([0.0, 1.0, 3.0, 0.0]))
    counts = np.array([[4, 0, 0, 0], [0, 1, 3, 0]]) + 0.25
    assert np.allclose(unit.mean(weighted).reshape(2, 4), counts / 5.0, atol=1e-14)
    fields = unit.field_of_mean(np.array([1.0, 0.0, 0.0, 0.0]), "start")
    assert np.isfinite(fields).all()
    assert unit.mean(fields)[0] == pytest.approx(1.0, abs=2e-3)
    spins = SPIN.bias_from(np.where(data[:, 1:] == 2, 1.0, -1.0))
    two = pm.categorical(2).bias_from((data[:, 1:] == 2).astype(float))
    assert np.allclose(two, [-spins[0], spins[0]], atol=1e-14)


def test_initial_machines():
    rng = np.random.default_rng(0)
    data = rng.integers(4, size=(30, 5))
    rbm = pm.initialize(
        5, 40, visible="categorical(4)", scheme="xavier", visible_bias="data", data=data, rng=0
    )
    assert rbm.weights.shape == (20, 40)
    assert np.abs(rbm.weights_by_state.sum(axis=1)).max() < 1e-14
    assert (rbm.hidden_bias == 0.0).all()  # what the weights had in common is dropped
    sigma = math.sqrt(2.0 / 45.0)
    assert rbm.weights.std() == pytest.approx(sigma * math.sqrt(3.0 / 4.0), rel=0.1)
    assert np.array_equal(rbm.visible_bias, rbm.visible.bias_from(data.astype(float)))
    one_hot = (data[..., None] == np.arange(4)).astype(int)
    same = pm.initialize(
        5, 40, visible=pm.categorical(4), scheme="xavier", visible_bias="data", data=one_hot, rng=0
    )
    assert np.array_equal(same.visible_bias, rbm.visible_bias)
    free = pm.initialize(5, 40, visible="categorical(4, free)", scheme="xavier", rng=0)
    assert np.abs(free.weights_by_state.sum(axis=1)).max() > 0.1
    by_state = pm.initialize(
        5, 4, visible="categorical(4)", scheme="xavier", visible_bias=rbm.bias_by_state, rng=0
    )
    assert np.array_equal(by_state.visible_bias, rbm.visible_bias)
    even = pm.initialize(5, 4, visible="categorical(4)", visible_bias=0.7, rng=0)
    assert np.array_equal(even.weights, pm.initialize(5, 4, visible="categorical(4)", rng=0).weights)
    with pytest.raises(ValueError, match=r"`visible_bias` must be 0 or `Biases` for categorical\(4\)"):
        pm.scheme_std("layer-correlation", 5, 4, visible="categorical(4)", visible_bias=0.7)
    with pytest.raises(ValueError, match="`visible_bias` must be one number or one for each of the 4 states"):
        pm.initialize(5, 4, visible="categorical(4)", scheme="xavier", visible_bias=np.zeros(5))
    bits = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="is for units of two values"):
        pm.initialize(
            2, 2, visible="categorical(2)", scheme="hopfield", visible_bias="data", data=bits, rng=0
        )


def test_means_iterate_the_mean_field():
    rbm = machine("bit")
    v = all_states(range(Q), N)[:4]
    assert np.allclose(rbm.mean_h_given_v(indicators(v, Q)), rbm.mean_h_given_v(v), rtol=0.0, atol=1e-14)
    means = rbm.mean_v_given_h(rbm.mean_h_given_v(v))
    assert means.shape == (4, N * Q)
    assert rbm.mean_h_given_v(means).shape == (4, M)
    with pytest.raises(ValueError, match="or the probabilities of all states"):
        rbm.mean_h_given_v(2.0 * means)


def test_indicators_are_states_where_the_number_of_units_is_not_given():
    states = np.random.default_rng(0).integers(4, size=(30, 5))
    wide = (states[..., None] == np.arange(4)).astype(np.int8)
    expected = pm.independent_log_likelihood(states, "categorical(4)")
    for array in (wide, wide.astype(float), wide.astype(bool)):
        assert pm.independent_log_likelihood(array, "categorical(4)") == expected
        assert pm.independent_log_likelihood(states, "categorical(4)", validation=array) == expected
        assert np.array_equal(pm.categorical(4).column_means(array), pm.categorical(4).column_means(states))
    with pytest.raises(ValueError, match=r"found a single 1 and 3 zeros in every 4 columns.*n_units, 4\)"):
        pm.independent_log_likelihood(wide.reshape(30, 20), "categorical(4)")
    few = wide[:3].reshape(3, 20)  # may be states of 20 units by chance, and so may pairs of two states
    assert np.isfinite(pm.independent_log_likelihood(few, "categorical(4)"))
    pairs = np.stack([states[:, 0] % 2, 1 - states[:, 0] % 2], axis=1)
    assert np.isfinite(pm.independent_log_likelihood(pairs, "categorical(2)"))


@pytest.mark.parametrize("wrong", [-1, 4, 0.5, np.nan, np.inf])
def test_frequencies_of_states_out_of_range_are_refused(wrong):
    states = np.array([[0.0, 3.0], [1.0, wrong]])
    arrays = [states, states.astype(np.float32)]
    if wrong in (-1, 4):
        arrays.append(states.astype(np.int8))
    for array in arrays if wrong != 0.5 else arrays[:1]:
        with pytest.raises(ValueError, match="`data` must"):
            pm.categorical(4).column_means(array)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("categorical", "must have its number of states in brackets"),
        ("categorical(1)", "`q` must be an integer of at least 2, got 1"),
        ("categorical(0)", "`q` must be an integer of at least 2, got 0"),
        ("categorical(2.5)", "must have its number of states in brackets"),
        ("categorical(3, loose)", "must have its number of states in brackets"),
        (f"categorical({MOST_STATES + 1})", "at most 65536"),
    ],
)
def test_bad_numbers_of_states(name, words):
    with pytest.raises(ValueError, match=words):
        pm.RBM(np.zeros((6, 2)), 0.0, 0.0, name, "bit")


@pytest.mark.parametrize("q", [1, 0, -3, 2.5, "4", None, True, [3], float("nan")])
def test_bad_arguments_of_categorical(q):
    with pytest.raises(ValueError, match="`q` must be an integer of at least 2"):
        pm.categorical(q)
    with pytest.raises(ValueError, match="`zero_sum` must be True or False"):
        pm.categorical(3, zero_sum=q if q is not True else 1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[0, 1, 3]], r"must hold the states of categorical\(3\) units, integers from 0 to 2; found 3"),
        ([[0, 1, -1]], "found -1"),
        ([[0, 1, 0.5]], "found 0.5"),
        ([[0, 1, np.nan]], "must not hold NaN"),
        ([[0, 1]], "must have 3 columns"),
        ([0, 1, 2], "must have two dimensions"),
        (np.ones((1, 9)), "or indicators of them"),
        (np.zeros((1, 3, 3)), "or indicators of them"),
        (np.full((1, 9), 1.0 / 3.0), "or indicators of them"),
        (np.zeros((0, 3)), "at least one point"),
    ],
)
def test_bad_data(data, words):
    rbm = machine("bit")
    with pytest.raises(ValueError, match=words):
        pm.log_likelihood(rbm, data)
    with pytest.raises(ValueError, match=words):
        pm.train(rbm, data, epochs=1)


def test_checks_of_values_are_refused_for_hidden_labels():
    rbm, data = machine("categorical(2)", "bit"), np.zeros((5, 3))
    with pytest.raises(ValueError, match="`rbm` must have hidden units that are numbers to be diagnosed"):
        pm.diagnose(rbm, data)
    with pytest.raises(ValueError, match="`rbm` must have hidden units that are numbers to be diagnosed"):
        pm.learning.quick_diagnosis(rbm, data)


def test_bad_means_and_weights():
    unit = pm.categorical(3)
    with pytest.raises(ValueError, match="`start` must hold probabilities of the 3 states"):
        unit.field_of_mean(np.array([0.5, 0.2, 0.2]), "start")
    with pytest.raises(ValueError, match="`sample_weight` must"):
        pm.initialize(
            1, 2, visible=unit, visible_bias="data", data=[[0], [1]], sample_weight=[1.0, -1.0],
            scheme="xavier",
        )  # fmt: skip


def test_whole_weights_are_repetitions():
    states = np.random.default_rng(0).integers(3, size=(12, 4))
    counts = np.random.default_rng(1).integers(1, 4, size=12)
    machine = {"visible": "categorical(3)", "hidden": "bit", "scheme": "xavier", "visible_bias": "data"}
    weighted = pm.initialize(4, 3, data=states, sample_weight=counts, rng=0, **machine)
    repeated = np.repeat(states, counts, axis=0)
    assert np.allclose(
        weighted.visible_bias, pm.initialize(4, 3, data=repeated, rng=0, **machine).visible_bias, rtol=1e-12
    )
    for gradient in (pm.Exact(), pm.PCD(n_chains=20)):
        for centred in (False, True):
            options = {"epochs": 1, "gradient": gradient, "centred": centred, "rng": 1, "evaluate": []}
            found = pm.train(weighted, states, sample_weight=counts, **options).state.parameters
            expected = pm.train(weighted, repeated, **options).state.parameters
            if gradient.exact:
                assert np.allclose(found, expected, atol=1e-12)
            else:  # chains start from points, which differ: the averages over the data alone are compared
                assert np.isfinite(found).all()


def test_units_compare_by_their_states():
    assert pm.categorical(21) == as_unit("categorical(21)", "visible") == CategoricalUnit(21)
    assert pm.categorical(21) != pm.categorical(20)
    assert pm.categorical(21) != pm.categorical(21, zero_sum=False)
    assert str(pm.categorical(4, zero_sum=False)) == "categorical(4, free)"
