"""The theory of categorical units: sums against independent quadrature, two states against spins."""

import itertools
import math
import warnings

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.theory.layers.softmax import average_biased, average_even

T = pm.theory


def slow_averages(fields, qhat, n_nodes=60):
    """Overlap, ``E ||Cov||**2`` and log-trace by Gauss-Hermite rules in all directions of the field."""
    z, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    w = w / w.sum()
    q = len(fields)
    grids = np.meshgrid(*[z] * q, indexing="ij")
    weights = np.prod(np.meshgrid(*[w] * q, indexing="ij"), axis=0)
    x = np.stack([b + math.sqrt(qhat) * g for b, g in zip(fields, grids, strict=True)])
    p = np.exp(x - x.max(axis=0))
    p /= p.sum(axis=0)
    covariance = -p[:, None] * p[None]
    for a in range(q):
        covariance[a, a] += p[a]
    trace = np.log(np.exp(x).sum(axis=0))
    return [
        float((weights * values).sum())
        for values in ((p**2).sum(axis=0) - 1.0 / q, (covariance**2).sum(axis=(0, 1)), trace)
    ]


@pytest.mark.parametrize(("q", "qhat"), list(itertools.product((2, 3, 4), (0.05, 0.3))))
def test_averages_without_biases_against_quadrature_in_all_directions(q, qhat):
    found = average_even(q, qhat, 1.0)
    overlap, squared, trace = slow_averages(np.zeros(q), qhat, 24 if q == 4 else 60)
    assert found.overlap == pytest.approx(overlap, rel=1e-9)
    assert found.squared_variance == pytest.approx(squared, rel=1e-9)
    assert found.log_trace == pytest.approx(trace, rel=1e-9)


@pytest.mark.parametrize("qhat", [0.05, 0.3])
def test_averages_with_biases_against_quadrature_in_all_directions(qhat):
    fields = np.array([[0.0, -1.3, -0.4], [0.0, -0.01, -3.7]])
    shares = np.array([0.3, 0.7])
    found = average_biased(fields, shares, qhat, 1.0)
    slow = shares @ [slow_averages(row, qhat) for row in fields]
    np.testing.assert_allclose([found.overlap, found.squared_variance, found.log_trace], slow, rtol=1e-9)


@pytest.mark.parametrize("s", [0.7, 1.4999, 1.5001, 6.0, 40.0])
def test_one_dimensional_form_against_mpmath(s):
    """``q = 2``: the overlap is that of spins in a field of variance ``s**2/2``, on both sides of a limit."""
    mpmath = pytest.importorskip("mpmath")
    width = s / mpmath.sqrt(2)

    def density(z):
        return mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)

    ends = [0, 1 / width, 4 / width, 12] if width > 0.5 else [0, 4, 12]
    ends = sorted({min(float(end), 12.0) for end in ends})
    overlap = mpmath.quad(lambda z: density(z) * mpmath.tanh(width * z) ** 2, ends)
    squared = mpmath.quad(lambda z: density(z) / mpmath.cosh(width * z) ** 4, ends)
    found = average_even(2, s * s, 1.0)
    assert found.overlap == pytest.approx(float(overlap), rel=1e-9)
    assert found.squared_variance == pytest.approx(float(2 * squared) / 4, rel=1e-9)


@pytest.mark.parametrize(("q", "qhat"), list(itertools.product((3, 21), (0.2, 2.2, 2.3, 30.0))))
def test_derivatives_are_those_of_the_averages(q, qhat):
    found, step = average_even(q, qhat, 1.0), 1e-4 * qhat
    high, low = average_even(q, qhat + step, 1.0), average_even(q, qhat - step, 1.0)
    assert found.slope == pytest.approx((high.overlap - low.overlap) / (2 * step), rel=1e-6)
    assert found.bend == pytest.approx((high.slope - low.slope) / (2 * step), rel=1e-6, abs=1e-9)
    even = average_biased(np.zeros((3, q)), np.full(3, 1 / 3), qhat, 1.0)
    np.testing.assert_allclose(even, found, rtol=1e-11)


def test_small_fields_lose_no_digits():
    found = average_even(21, 1e-30, 1.0)
    assert found.overlap == pytest.approx(1e-30 * 20 / 441, rel=1e-12)
    assert found.slope == pytest.approx(20 / 441, rel=1e-12)


@pytest.mark.parametrize("hidden", ["bit", "spin"])
@pytest.mark.parametrize("c", [0.0, -2.5])
@pytest.mark.parametrize(("n", "m"), [(100, 70), (20, 90)])
def test_two_states_are_a_spin(hidden, c, n, m):
    ours = pm.weight_std(n, m, visible="categorical(2)", hidden=hidden, hidden_bias=c)
    spins = pm.weight_std(n, m, visible="spin", hidden=hidden, hidden_bias=c)
    assert ours == pytest.approx(math.sqrt(2.0) * spins, rel=1e-11)


def test_two_states_with_biases_are_spins_with_biases():
    biases = np.array([0.3, -1.2, 0.0, 0.8])
    labels = T.Biases(np.stack([-biases, biases], axis=1))
    for hidden, c in (("bit", -1.0), ("spin", 0.4)):
        ours = T.solve_saddle_point(2.0, 1.5, visible="categorical(2)", hidden=hidden, b=labels, c=c)
        spins = T.solve_saddle_point(
            math.sqrt(2.0), 1.5, visible="spin", hidden=hidden, b=T.Biases(biases), c=c
        )
        assert ours.q_v == pytest.approx(0.5 * spins.q_v, rel=1e-11)
        assert ours.q_h == pytest.approx(spins.q_h, rel=1e-11)
    response = T.overlap_response(2.0, 1.5, visible="categorical(2)", b=labels, c=-1.0)
    of_spins = T.overlap_response(math.sqrt(2.0), 1.5, visible="spin", b=T.Biases(biases), c=-1.0)
    assert response == pytest.approx(0.5 * of_spins, rel=1e-10)


def test_free_energy_of_two_states_is_that_of_spins():
    ours = T.solve_saddle_point(2.0, 0.75, visible="categorical(2)", hidden="bit", c=-1.0)
    spins = T.solve_saddle_point(math.sqrt(2.0), 0.75, visible="spin", hidden="bit", c=-1.0)
    assert ours.free_energy == pytest.approx(spins.free_energy, rel=1e-12)


def test_the_derivative_of_the_free_energy_in_beta_is_the_energy():
    step = 1e-5
    machine = {"visible": "categorical(5)", "hidden": "bit", "c": -1.0}
    f = [T.solve_saddle_point(2.0 + d, 0.75, **machine).free_energy for d in (-step, step)]
    p = T.solve_saddle_point(2.0, 0.75, **machine)
    energy = -2.0 * 0.75 / 1.75**2 * (p.Q_v * p.Q_h - p.q_v * p.q_h)
    assert (f[1] - f[0]) / (2 * step) == pytest.approx(energy, rel=1e-8)


def test_relabelling_and_shifts_of_biases_change_nothing():
    rng = np.random.default_rng(3)
    biases = rng.normal(size=(6, 4))
    moved = rng.permuted(biases, axis=1) + rng.normal(size=(6, 1))
    machine = {"visible": "categorical(4)", "hidden": "bit", "c": -0.5}
    first, second = (T.find_beta_max(2.0, b=T.Biases(x), **machine) for x in (biases, moved[::-1]))
    assert first.beta == pytest.approx(second.beta, rel=1e-12)
    assert first.status == "maximum"
    shares = np.exp(biases) / np.exp(biases).sum(axis=1, keepdims=True)
    third = T.find_beta_max(2.0, b=T.Biases.of_frequencies(3.0 * shares), **machine)
    assert third.beta == pytest.approx(first.beta, rel=1e-12)


def test_the_maximum_is_a_maximum():
    for q, c in ((3, 0.0), (21, -2.0)):
        machine = {"visible": f"categorical({q})", "hidden": "bit", "c": c}
        top = T.find_beta_max(0.8, **machine)
        assert top.status == "maximum"
        around = T.layer_correlation_slope(top.beta * np.array([0.99, 1.0, 1.01]), 0.8, **machine)
        assert np.abs(around).argmax() == 1
        assert abs(top.value) == pytest.approx(abs(around[1]), rel=1e-10)
        assert T.layer_correlation(1.0, 0.8, **machine) == 0.0


@pytest.mark.parametrize("q", [2, 4, 21])
def test_beside_spins_the_scale_is_the_edge(q):
    n, m = 60, 45
    machine = {"visible": f"categorical({q})", "hidden": "spin"}
    result = T.find_beta_max(m / n, **machine)
    assert result.status == "edge (continuous)"
    sigma = (q**2 / ((q - 1) * n * m)) ** 0.25
    assert pm.weight_std(n, m, **machine) == pytest.approx(sigma, rel=1e-12)
    edge = T.stability_edge(m / n, **machine)
    assert (edge.kind, edge.beta) == ("continuous", pytest.approx(result.beta, rel=1e-12))
    assert T.centred_gain(edge.beta / 2**0.5, m / n, **machine) == pytest.approx(0.25, rel=1e-12)
    assert T.replica_stability(edge.beta / 2**0.5, m / n, **machine) == pytest.approx(0.75, rel=1e-12)


def test_gain_of_unequal_frequencies_is_the_sum_of_squared_covariances():
    shares = np.random.default_rng(0).dirichlet(3.0 * np.ones(5), 7)
    squares = [((np.diag(p) - np.outer(p, p)) ** 2).sum() for p in shares]
    n, m, sigma = 7, 11, 0.3
    gain = T.centred_gain(
        sigma * 18**0.5, m / n, visible="categorical(5)", hidden="spin", b=T.Biases.of_frequencies(shares)
    )
    assert gain == pytest.approx(sigma**4 * sum(squares) * m, rel=1e-10)


def test_wrong_biases_are_refused():
    with pytest.raises(ValueError, match=r"`b` must be 0 or `Biases` for categorical\(4\) units"):
        T.beta_max(1.0, visible="categorical(4)", b=0.5)
    with pytest.raises(
        ValueError, match=r"`b` must hold biases of categorical\(4\) units, an array of shape"
    ):
        T.beta_max(1.0, visible="categorical(4)", b=T.Biases([0.5, 0.2]))
    with pytest.raises(ValueError, match=r"`b` must hold biases of spin units, a sequence"):
        T.beta_max(1.0, b=T.Biases(np.zeros((3, 2))))
    with pytest.raises(ValueError, match="`frequencies` must be an array of one row per unit"):
        T.Biases.of_frequencies([0.5, 0.5])


def test_schemes_take_categorical_units():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = {r.name: r for r in pm.compare_schemes(30, 20, visible="categorical(4)", hidden="spin")}
    ours = reports["layer-correlation"]
    assert ours.to_ours == pytest.approx(1.0, abs=1e-12)
    assert ours.to_critical == pytest.approx(1.0, abs=1e-12)
    assert ours.phase == "critical"
    assert reports["xavier"].phase == "paramagnet"


def test_weight_std_takes_frequencies_of_sites():
    shares = np.random.default_rng(1).dirichlet(2.0 * np.ones(5), 4)
    sites = T.Biases.of_frequencies(shares)
    machine = {"visible": "categorical(5)", "hidden": "bit"}
    found = pm.weight_std(31, 100, visible_bias=sites, **machine)
    wanted = T.find_beta_max(100 / 31, b=sites, **machine)
    assert wanted.status == "maximum"
    assert found == pytest.approx(wanted.beta / math.sqrt(131), rel=1e-14)
    even = T.Biases(np.zeros((2, 5)))
    assert pm.weight_std(31, 100, visible_bias=even, **machine) == pytest.approx(
        pm.weight_std(31, 100, **machine), rel=1e-10
    )
    spins = pm.weight_std(20, 30, visible_bias=pm.Biases([0.5, -1.0]))
    assert spins == pm.scheme_std("layer-correlation", 20, 30, visible_bias=pm.Biases([0.5, -1.0]))
    with pytest.raises(ValueError, match=r"`visible_bias` must be 0 or `Biases` for categorical\(5\) units"):
        pm.weight_std(31, 100, visible_bias=0.5, **machine)
    with pytest.raises(ValueError, match=r"`hidden_bias` must hold biases of bit units, a sequence"):
        pm.weight_std(31, 100, hidden_bias=even, **machine)
    with pytest.raises(ValueError, match="`visible_bias` must"):
        pm.weight_std(31, 100, visible_bias="data", **machine)
