"""The theory of ReLU hidden units: averages and edges against independent quadrature."""

import itertools
import math

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.theory.edge import centred_means
from paramagnet.theory.layers.dispatch import theory_of

T = pm.theory


def slow_unit(field, curvature):
    """Mean and variance of a ReLU unit by quadrature of its density."""
    mpmath = pytest.importorskip("mpmath")
    precision = 1 - 2 * curvature
    centre, width = max(field / precision, 0.0), 1 / math.sqrt(precision)
    scale = min(width, 1 / abs(field)) if field < 0 else width

    def density(x):
        return mpmath.exp(field * x - precision * x * x / 2 - (centre * field - precision * centre**2 / 2))

    ends = sorted({0.0, max(centre - 8 * width, 0.0), centre, *(centre + k * scale for k in (2, 8, 40))})
    moments = [mpmath.quad(lambda x, k=k: x**k * density(x), ends) for k in range(3)]
    mean = moments[1] / moments[0]
    return float(mean), float(moments[2] / moments[0] - mean**2)


def slow_edge(alpha, trace, square, c):
    """``B`` at the continuous edge by bisection, every average by quadrature; None where there is none."""

    def gain(coupling):
        curvature = 0.5 * coupling * trace
        low, high = 0.0, 10.0 + 10.0 * abs(c)
        for _ in range(60):
            lam = 0.5 * (low + high)
            if slow_unit(c - 2 * curvature * lam, curvature)[0] > lam:
                low = lam
            else:
                high = lam
        return alpha * coupling**2 * square * slow_unit(c - 2 * curvature * lam, curvature)[1] ** 2

    low, high = 0.0, 0.999999 / trace
    if gain(high) < 1.0:
        return None
    for _ in range(44):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gain(middle) < 1.0 else (low, middle)
    return 0.5 * (low + high)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("visible", "alpha", "c", "trace", "square"),
    [
        ("spin", 2.0, 0.0, 1.0, 1.0),
        ("bit", 3.0, 0.5, 0.25, 0.0625),
        ("categorical(4)", 8.0, -0.3, 0.75, 0.1875),
        ("categorical(4)", 8.0, -0.7, 0.75, 0.1875),  # the hidden units condense first
    ],
)
def test_continuous_edge_against_quadrature(visible, alpha, c, trace, square):
    coupling = slow_edge(alpha, trace, square, c)
    edge = T.stability_edge(alpha, visible=visible, hidden="relu", c=c)
    if coupling is None:
        assert edge.kind == "condensation"
        return
    assert edge.kind == "continuous"
    assert edge.beta == pytest.approx(math.sqrt(coupling * (1 + alpha)), rel=1e-9)


@pytest.mark.parametrize("visible", ["spin", "bit"])
@pytest.mark.parametrize("alpha", [0.2, 0.9, 0.999, 1.001, 1.1, 5.0])
def test_the_edge_is_continuous_for_more_hidden_than_visible_units(visible, alpha):
    result = T.find_beta_max(alpha, visible=visible, hidden="relu")
    edge = T.stability_edge(alpha, visible=visible, hidden="relu")
    assert edge.beta == result.beta
    variance = {"spin": 1.0, "bit": 0.25}[visible]
    condensation = math.sqrt((1.0 + alpha) / variance)  # sigma = sqrt(1/(n variance))
    if alpha < 1.0:
        assert result.status == "edge (condensation)"
        assert result.beta == pytest.approx(condensation, rel=1e-12)
        assert result.stability == pytest.approx(1.0 - alpha, rel=1e-5)
        with pytest.warns(pm.theory.MaximumWarning, match="grow without bound"):
            T.beta_max(alpha, visible=visible, hidden="relu")
    else:
        assert result.status == "edge (continuous)"
        assert result.beta < condensation
        gain = T.centred_gain(result.beta, alpha, visible=visible, hidden="relu")
        assert gain == pytest.approx(1.0, rel=1e-6)
        assert result.stability == 0.0


def test_labels_need_more_hidden_units():
    """``E ||Cov||**2`` over the squared variance is ``1/(q - 1)``: continuous for ``alpha > q - 1``."""
    for q in (3, 21):
        kinds = T.stability_edge(
            [0.99 * (q - 1), 1.01 * (q - 1)], visible=f"categorical({q})", hidden="relu"
        ).kind
        assert list(kinds) == ["condensation", "continuous"]


def test_bits_are_spins_of_half_the_size():
    ours, spins = (pm.weight_std(50, 90, visible=v, hidden="relu", hidden_bias=0.3) for v in ("bit", "spin"))
    assert ours == pytest.approx(2.0 * spins, rel=1e-12)


@pytest.mark.slow
def test_saddle_point_against_quadrature():
    mpmath = pytest.importorskip("mpmath")
    beta, alpha, c = 1.2, 2.0, -0.4
    p = T.solve_saddle_point(beta, alpha, hidden="relu", c=c)
    to_visible, to_hidden = alpha * beta**2 / (1 + alpha), beta**2 / (1 + alpha)
    z, w = np.polynomial.hermite_e.hermegauss(40)
    w = w / w.sum()
    unit = [slow_unit(c + x * math.sqrt(to_hidden * p.q_v), 0.5 * to_hidden * (1 - p.q_v)) for x in z]
    means, variances = np.array(unit).T
    assert p.q_h == pytest.approx(w @ means**2, rel=1e-9)
    assert p.Q_h == pytest.approx(w @ (means**2 + variances), rel=1e-9)
    root = mpmath.sqrt(to_visible * p.q_h)
    overlap = mpmath.quad(lambda x: mpmath.npdf(x) * mpmath.tanh(root * x) ** 2, [-12, -4, -1, 0, 1, 4, 12])
    assert p.q_v == pytest.approx(float(overlap), rel=1e-9)


def test_the_derivative_of_the_free_energy_in_beta_is_the_energy():
    step, beta, alpha = 1e-5, 1.1, 2.0
    f = [T.solve_saddle_point(beta + d, alpha, hidden="relu", c=0.2).free_energy for d in (-step, step)]
    p = T.solve_saddle_point(beta, alpha, hidden="relu", c=0.2)
    energy = -beta * alpha / (1 + alpha) ** 2 * (p.Q_v * p.Q_h - p.q_v * p.q_h)
    assert (f[1] - f[0]) / (2 * step) == pytest.approx(energy, rel=1e-8)


def test_refusals():
    with pytest.raises(ValueError, match="`visible` must be spin, bit, Gaussian or categorical units"):
        T.beta_max(1.0, visible="relu")
    learned = {"theta_asymmetry": np.array([0.3]), "gamma_asymmetry": np.array([0.0])}
    with pytest.raises(ValueError, match=r"`hidden` must be dReLU units as training starts with them"):
        pm.weight_std(20, 20, hidden=pm.drelu().at(learned))
    with pytest.raises(
        ValueError, match="`visible` must be spin, bit or categorical units beside relu units"
    ):
        T.beta_max(1.0, visible="gaussian", hidden="relu")
    with pytest.raises(ValueError, match=r"`beta` must be below sqrt.*1.41421.*got 1.5"):
        T.solve_saddle_point(1.5, 1.0, hidden="relu")


def test_different_hidden_biases_are_averaged():
    one = T.stability_edge(3.0, hidden="relu", c=0.4)
    same = T.stability_edge(3.0, hidden="relu", c=T.Biases([0.4, 0.4, 0.4]))
    assert same.beta == pytest.approx(one.beta, rel=1e-12)


# dReLU units, which are Gaussian ones at the start of training ----------------------------------------------


@pytest.mark.parametrize("visible", ["spin", "bit", "categorical(4)"])
@pytest.mark.parametrize("c", [0.0, -0.7])
def test_drelu_units_have_the_scale_of_gaussian_ones(visible, c):
    found, expected = (T.find_beta_max(3.0, visible=visible, hidden=h, c=c) for h in ("drelu", "gaussian"))
    assert (found.beta, found.status) == (expected.beta, expected.status)
    assert found.hidden == pm.drelu()
    found, expected = (
        T.solve_saddle_point(0.6, 2.0, visible=visible, hidden=h) for h in ("drelu", "gaussian")
    )
    assert (found.q_v, found.Q_h) == (expected.q_v, expected.Q_h)


def test_the_free_energy_of_drelu_units_is_that_of_their_measure():
    """Of weak machines, ``-ln Z/(n + m)`` by the exact sum; a Gaussian unit lacks ``ln(2 pi)/2``."""
    n, m, beta = 10, 20, 0.2
    rng = np.random.default_rng(0)
    draws = [
        -pm.log_partition(pm.RBM(beta / np.sqrt(n + m) * rng.normal(size=(n, m)), 0, 0, "spin", "drelu"))
        for _ in range(20)
    ]
    theory = T.solve_saddle_point(beta, m / n, hidden="drelu").free_energy
    assert np.mean(draws) / (n + m) == pytest.approx(theory, abs=1e-3)
    assert abs(T.solve_saddle_point(beta, m / n, hidden="gaussian").free_energy - theory) > 0.5


def test_drelu_machines_start_at_the_scale_of_the_theory():
    drawn = pm.draw_machine(12, 9, visible="categorical(4)", hidden="drelu", rng=0)
    assert drawn.sigma == pm.weight_std(12, 9, visible="categorical(4)", hidden="gaussian")


def test_drelu_machines_are_simulated_as_gaussian_ones():
    from paramagnet.simulation import simulate_layer_correlation

    for visible, c in (("bit", 0.0), ("spin", -0.5)):
        found, expected = (
            simulate_layer_correlation(6, 5, visible=visible, hidden=h, hidden_bias=c, n_draws=2, rng=0)
            for h in ("drelu", "gaussian")
        )
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    with pytest.raises(ValueError, match="must not be zero where both layers are symmetric"):
        simulate_layer_correlation(6, 5, hidden="drelu", n_draws=2, rng=0)


# Means of centred units -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "curvature"),
    [
        *itertools.product(["spin", "bit", "relu", "gaussian"], [1e-6, 0.2, 0.499]),
        ("spin", 10.8),
        ("bit", 40.0),
    ],
)
def test_means_of_centred_units_against_bisection(name, curvature):
    """At the last curvatures Newton's steps alone run to and fro between two saturated states."""
    unit = pm.units.as_unit(name, "hidden")
    biases = np.array([0.0, 0.3, -0.3, 5.0, -5.0, 20.0, 40.0])
    lam, variance = centred_means(theory_of(unit, "hidden"), biases, curvature)
    for bias, found, spread in zip(biases, lam, variance, strict=True):
        low, high = -1.0 - 1e3 * abs(bias), 1.0 + 1e3 * abs(bias)
        for _ in range(200):
            middle = 0.5 * (low + high)
            mean, k2 = unit.cumulants(np.array(bias - 2.0 * curvature * middle), curvature)
            low, high = (middle, high) if mean > middle else (low, middle)
        assert found == pytest.approx(middle, rel=1e-12, abs=1e-15)
        assert spread == pytest.approx(float(k2), rel=1e-9)
