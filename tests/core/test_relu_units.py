"""ReLU and dReLU units: the functions of one unit, energies and exact sums, against quadrature."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

import paramagnet as pm
from paramagnet.half_line import draw_half, half_cumulants, half_moments, log_half_trace
from relu_oracle import Oracle, averages, columns, make_relu_machine, points_and_weights, potential

VISIBLE = ("spin", "bit", "categorical(3)", "categorical(2, free)")
PAIRS = [(visible, hidden) for visible in VISIBLE for hidden in ("relu", "drelu")]
FIELDS = (-1e4, -300.0, -40.0, -30.001, -29.999, -8.0, -5.001, -4.999, -1.0, 0.0, 0.3, 5.0, 20.0, 40.0, 300.0)


# One half-line


@pytest.mark.parametrize("a", FIELDS)
def test_half_lines_in_strong_fields(a):
    """Against 60 digits, on both sides of every limit in the code."""
    with mpmath.workdps(60):
        x = mpmath.mpf(a)
        below = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        r = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) / below
        k1 = x + r
        k2 = 1 - r * k1
        k3 = r * (k1 * k1 - k2)
        k4 = r * (3 * k1 * k2 - k1**3 - k3)
        trace = float(mpmath.log(mpmath.sqrt(2 * mpmath.pi) * below) + x * x / 2)
        wanted = [float(k) for k in (k1, k2, k3, k4)]
        u = np.array([1e-9, 0.01, 0.5, 0.99, 1.0 - 1e-9])
        y = draw_half(np.full(5, a), u)
        survival = [float(mpmath.erfc((mpmath.mpf(float(v)) - x) / mpmath.sqrt(2)) / 2 / below) for v in y]
    np.testing.assert_allclose(log_half_trace(np.array(a)), trace, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(half_moments(np.array(a)), wanted[:2], rtol=1e-12)
    np.testing.assert_allclose(half_cumulants(np.array(a)), wanted, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(survival, u, rtol=1e-7)
    assert np.all(y >= 0.0)
    assert np.all(np.diff(y) <= 0.0)


# Units


def drelu_at(d, g):
    return pm.drelu().at({"theta_asymmetry": np.array([d]), "gamma_asymmetry": np.array([g])})


UNITS = [("relu", 0.0, 0.0), ("drelu", 0.0, 0.0), ("drelu", 1.3, 0.8), ("drelu", -1.1, -1.5)]


@pytest.mark.parametrize(("kind", "d", "g"), UNITS)
@pytest.mark.parametrize("field", [-40.0, -6.0, -0.7, 0.0, 1.9, 40.0])
def test_a_unit_against_quadrature(kind, d, g, field):
    unit = pm.relu() if kind == "relu" else drelu_at(d, g)
    x, w = points_and_weights(field, kind, d, g)
    trace, mean = averages(w, x)
    centred = [averages(w, (x - mean) ** n)[1] for n in (2, 3, 4)]
    wanted = [mean, centred[0], centred[1], centred[2] - 3.0 * centred[0] ** 2]
    h = np.array([field])
    np.testing.assert_allclose(unit.log_trace(h), trace, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(unit.mean(h), mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.ravel(unit.cumulants(h)), wanted[:2], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.ravel(unit.four_cumulants(h)), wanted, rtol=1e-8, atol=1e-10)
    with_curvature = averages(w + 0.05 * x * x, x)
    np.testing.assert_allclose(unit.log_trace(h, 0.05), with_curvature[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(unit.cumulants(h, 0.05)[0], with_curvature[1], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(unit.four_cumulants(h, 0.05)[0], with_curvature[1], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("d", [-1.2, 0.0, 0.9])
@pytest.mark.parametrize("g", [-2.0, 0.0, 0.7])
def test_statistics_are_derivatives(d, g):
    step, field = 1e-6, np.linspace(-5.0, 5.0, 7)
    means = drelu_at(d, g).mean_statistics(field)
    for name, (up, down) in {
        "theta_asymmetry": (drelu_at(d + step, g), drelu_at(d - step, g)),
        "gamma_asymmetry": (drelu_at(d, g + step), drelu_at(d, g - step)),
    }.items():
        slope = (up.log_trace(field) - down.log_trace(field)) / (2.0 * step)
        np.testing.assert_allclose(means[name], slope, atol=1e-8)
        states = np.array([[-1.7], [-0.2], [0.4], [2.5]])
        slope = (up.log_base(states) - down.log_base(states)) / (2.0 * step)
        np.testing.assert_allclose(drelu_at(d, g).statistics(states)[name][:, 0], slope, atol=1e-7)


def test_limits_and_symmetries_of_drelu_units():
    field = np.linspace(-4.0, 4.0, 9)
    gaussian = drelu_at(0.0, 0.0)
    np.testing.assert_allclose(gaussian.mean(field), field, atol=1e-14)  # a Gaussian unit of variance 1
    constant = 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(gaussian.log_trace(field), 0.5 * field**2 + constant, atol=1e-14)
    np.testing.assert_allclose(drelu_at(0.8, 0.5).mean(field), -drelu_at(0.8, -0.5).mean(-field), atol=1e-15)
    one_sided, root = drelu_at(0.0, 30.0), np.sqrt(2.0)  # a ReLU unit on another scale
    np.testing.assert_allclose(one_sided.mean(field), root * pm.relu().mean(root * field), rtol=1e-11)
    for huge in (1e3, 1e300, -1e300):  # beyond 30 nothing changes; nothing overflows
        found = drelu_at(0.3, huge)
        np.testing.assert_array_equal(found.mean(field), drelu_at(0.3, np.sign(huge) * 30.0).mean(field))
        assert all(np.isfinite(array).all() for array in found.mean_statistics(field).values())
        assert min(np.min(variance) for variance in found.variances) > 0.0


@pytest.mark.parametrize(("kind", "d", "g"), UNITS)
def test_fields_of_means(kind, d, g):
    unit = pm.relu() if kind == "relu" else drelu_at(d, g)
    means = np.array([1e-3, 0.05, 0.8, 3.0, 40.0])
    if kind == "drelu":
        means = np.concatenate((-means, means, [0.0]))
    np.testing.assert_allclose(unit.mean(unit.field_of_mean(means, "data")), means, rtol=1e-9, atol=1e-12)
    if kind == "relu":
        assert np.isfinite(unit.field_of_mean(np.zeros(2), "data")).all()
        with pytest.raises(ValueError, match="`start` must hold means that are not negative for relu units"):
            unit.field_of_mean(np.array([-0.1]), "start")


@pytest.mark.parametrize(("kind", "d", "g"), UNITS)
@pytest.mark.parametrize("field", [-40.0, -1.0, 0.5, 40.0])
def test_draws_follow_the_distribution(kind, d, g, field):
    unit = pm.relu() if kind == "relu" else drelu_at(d, g)
    draws = unit.draw(np.full((20_000, 1), field), np.random.default_rng(5)).ravel()
    x, w = points_and_weights(field, kind, d, g)
    positive = float(np.exp(averages(w[x > 0.0])[0] - averages(w)[0]))
    up, down = (1.0, 1.0) if kind == "relu" else np.sqrt(1.0 + np.array([1.0, -1.0]) * np.tanh(g))

    def distribution(values):
        above, below = np.maximum(values, 0.0), np.maximum(-values, 0.0)
        a, b = (field - d) * up, (-field - d) * down
        exceeded = positive * np.exp(log_ndtr(a - above / up) - log_ndtr(a))
        under = (1.0 - positive) * np.exp(log_ndtr(b - below / down) - log_ndtr(b))
        return np.where(values > 0.0, 1.0 - exceeded, under)

    assert stats.kstest(draws, distribution).pvalue > 1e-5
    assert stats.kstest(draws * 1.15, distribution).pvalue < 1e-5  # a scale that is wrong shows


def test_names_and_wrong_values():
    assert pm.relu().name == "relu"
    assert pm.drelu().name == "drelu"
    assert pm.RBM([[0.1]], 0, 0, "bit", "relu").hidden == pm.relu()
    assert pm.RBM([[0.1]], 0, 0, "bit", "drelu").hidden == pm.drelu() != pm.relu()
    rbm = make_relu_machine("spin", "relu", 2, 2)
    v = [[1.0, -1.0]]
    for states, words in (
        ([[0.5, -0.1]], "`h` must hold finite numbers that are not negative .relu units.; found -0.1"),
        ([[0.5, np.nan]], "`h` must"),
        ([[0.5, 1e6]], "`h` must hold numbers of at most 100000, found 1e.06. Scale them down"),
    ):
        with pytest.raises(ValueError, match=words):
            rbm.energy(v, states)
    with pytest.raises(ValueError, match="`h` must hold finite numbers that are not negative"):
        rbm.mean_v_given_h([[-0.1, 0.2]])
    with pytest.raises(ValueError, match="`hidden_parameters` must hold None for relu units, got theta"):
        pm.RBM([[0.1]], 0, 0, "bit", "relu", hidden_parameters={"theta": 1.0})
    with pytest.raises(ValueError, match="`hidden_parameters` must hold the names theta_asymmetry, gamma_as"):
        pm.RBM([[0.1]], 0, 0, "bit", "drelu", hidden_parameters={"theta": 1.0})
    with pytest.raises(ValueError, match=r"`relu` takes nothing in brackets, got '2'"):
        pm.RBM([[0.1]], 0, 0, "bit", "relu(2)")
    with pytest.raises(ValueError, match="no change of variables leads from relu to bit units"):
        rbm.to_bits()
    with pytest.raises(ValueError, match="`device` must be 'cpu' for machines with relu units"):
        pm.estimate_log_partition(rbm, device="torch:cpu")


# Machines


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_energies_sums_and_gradients(visible, hidden):
    rbm = make_relu_machine(visible, hidden)
    oracle = Oracle(rbm)
    rng = np.random.default_rng(3)
    v = rng.choice(rbm.visible.values, size=(5, 4))
    h = np.abs(rng.normal(size=(5, 3))) if hidden == "relu" else rng.normal(size=(5, 3))
    numbers = rbm.hidden_parameters or {name: np.zeros(3) for name in pm.drelu().parameters}
    for v_k, h_k, energy in zip(columns(v, rbm.visible), h, rbm.energy(v, h), strict=True):
        wanted = -float(v_k @ rbm.visible_bias + h_k @ rbm.hidden_bias + v_k @ rbm.weights @ h_k)
        own = zip(h_k, numbers["theta_asymmetry"], numbers["gamma_asymmetry"], strict=True)
        wanted += sum(potential(x, hidden, d, g) for x, d, g in own)
        assert energy == pytest.approx(wanted, abs=1e-12)
    assert pm.log_partition(rbm) == pytest.approx(oracle.log_z, abs=1e-10)
    np.testing.assert_allclose(np.exp(-rbm.free_energy(oracle.states) - oracle.log_z), oracle.p, atol=1e-12)
    found = pm.exact.exact_moments(rbm)
    products, means, visible_means, *_ = oracle.model()
    np.testing.assert_allclose(found.products, products, atol=1e-10)
    np.testing.assert_allclose(found.hidden, means, atol=1e-10)
    np.testing.assert_allclose(found.visible, visible_means, atol=1e-10)
    data = rng.choice(rbm.visible.values, size=(23, 4))
    gradient = pm.learning.exact_gradient(rbm, data)
    of_data = oracle.model(oracle.shares(data))
    wanted = [ours - theirs for ours, theirs in zip(of_data, oracle.model(), strict=True)]
    parts = [gradient.weights, gradient.hidden_bias, gradient.visible_bias]
    parts += gradient.hidden_parameters.values()
    assert len(parts) == (5 if hidden == "drelu" else 3)
    for ours, theirs in zip(parts, wanted, strict=False):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    likelihood = float(oracle.shares(data) @ np.log(oracle.p))
    assert pm.log_likelihood(rbm, data).value == pytest.approx(likelihood, abs=1e-10)


@pytest.mark.parametrize("visible", ["spin", "categorical(4)"])
@pytest.mark.parametrize("hidden", ["relu", "drelu"])
def test_sums_in_fields_of_forty(visible, hidden):
    rbm = make_relu_machine(visible, hidden, 3, 2, scale=30.0)
    oracle = Oracle(rbm)
    fields = rbm.field_h_given_v(oracle.states)
    assert fields.min() < -35.0
    assert fields.max() > 35.0
    assert pm.log_partition(rbm) == pytest.approx(oracle.log_z, rel=1e-12)
    np.testing.assert_allclose(
        pm.exact.exact_moments(rbm).products, oracle.model()[0], rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
def test_spins_and_bits_are_the_same_machine(hidden):
    rbm = make_relu_machine("spin", hidden)
    bits, difference = rbm.change_units(visible="bit")
    assert pm.log_partition(rbm) == pytest.approx(pm.log_partition(bits) - difference, abs=1e-12)
    for name, values in rbm.hidden_parameters.items():
        np.testing.assert_array_equal(bits.hidden_parameters[name], values)
    data = pm.sample_exact(rbm, 20, rng=0)
    assert float(pm.log_likelihood(rbm, data)) == pytest.approx(
        float(pm.log_likelihood(bits, 0.5 * (data + 1.0))), abs=1e-12
    )


@pytest.mark.parametrize("hidden", ["relu", "drelu"])
def test_labels_of_two_states_relabelled_and_in_another_gauge_are_the_same_machine(hidden):
    spins = make_relu_machine("spin", hidden)
    labels, difference = spins.change_units(visible="categorical(2)")
    data = pm.sample_exact(spins, 20, rng=0)
    assert pm.log_partition(spins) == pytest.approx(pm.log_partition(labels) - difference, abs=1e-12)
    wanted = float(pm.log_likelihood(spins, data))
    assert float(pm.log_likelihood(labels, 0.5 * (data + 1.0))) == pytest.approx(wanted, abs=1e-12)
    rbm = make_relu_machine("categorical(3)", hidden, 3, 2, seed=2)
    states = np.array([[0.0, 1.0, 2.0], [2.0, 2.0, 0.0]])
    wanted = float(pm.log_likelihood(rbm, states))
    fixed = rbm.to_zero_sum()
    assert np.abs(fixed.weights_by_state.sum(axis=1)).max() < 1e-14
    assert not np.allclose(fixed.hidden_bias, rbm.hidden_bias)
    assert float(pm.log_likelihood(fixed, states)) == pytest.approx(wanted, abs=1e-12)
    rows = np.arange(9).reshape(3, 3)[:, [1, 2, 0]].ravel()  # what was called 0 is called 2
    numbers = rbm.hidden_parameters or None
    other = pm.RBM(
        rbm.weights[rows], rbm.visible_bias[rows], rbm.hidden_bias, *rbm.units, hidden_parameters=numbers
    )
    assert float(pm.log_likelihood(other, (states + 2.0) % 3.0)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_files_keep_machines(visible, hidden, tmp_path):
    rbm = make_relu_machine(visible, hidden)
    rbm.save(tmp_path / "rbm.safetensors")
    again = pm.RBM.load(tmp_path / "rbm.safetensors")
    assert again.hidden == rbm.hidden
    assert again.visible == rbm.visible
    np.testing.assert_array_equal(again.weights, rbm.weights)
    for name, values in rbm.hidden_parameters.items():
        np.testing.assert_array_equal(again.hidden_parameters[name], values)
