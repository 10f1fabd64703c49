"""Susceptibilities against differences of the magnetization, and against the paper's closed formula.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from paramagnet.theory.layers.binary import Layer
from paramagnet.theory.response import (
    layer_correlation,
    layer_correlation_slope,
    replica_stability,
    susceptibility,
)
from paramagnet.theory.saddle import solve_saddle_point
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import SPIN

PAIRS = list(itertools.product(("spin", "bit"), repeat=2))
MACHINES = [(0.7, 1.8, 0.3, -0.6), (1.9, 0.5, -0.4, -1.5), (3.1, 1.0, 0.8, -3.0), (0.4, 20.0, -1.0, 1.2)]
Z = np.linspace(-14, 14, 2801)
WEIGHTS = (Z[1] - Z[0]) / np.sqrt(2 * np.pi) * np.exp(-0.5 * Z * Z)


def derivative(function, step):
    """By five points."""
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


def magnetizations(beta, alpha, visible, hidden, b, c):
    """The paper's M_v and M_h."""
    p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    return np.array([p.magnetization_v, alpha * p.magnetization_h]) / (1 + alpha)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(("beta", "alpha", "b", "c"), MACHINES)
def test_all_four_elements_by_differences(visible, hidden, beta, alpha, b, c):
    units = {"visible": visible, "hidden": hidden}
    chi = susceptibility(beta, alpha, b=b, c=c, **units)
    in_b = derivative(lambda t: magnetizations(beta, alpha, visible, hidden, b + t, c), 2e-3)
    in_c = derivative(lambda t: magnetizations(beta, alpha, visible, hidden, b, c + t), 2e-3)
    assert np.allclose(chi, np.stack([in_b, in_c], axis=-1), rtol=1e-9, atol=1e-10)
    assert np.isclose(chi[0, 1], chi[1, 0], rtol=1e-12, atol=0)
    assert np.isclose(layer_correlation(beta, alpha, b=b, c=c, **units), chi[0, 1], rtol=1e-12, atol=0)
    if 0.0 not in (b, c):
        assert layer_correlation_slope(beta, alpha, b=b, c=c, **units) == layer_correlation(
            beta, alpha, b=b, c=c, **units
        )


def paper_susceptibility(beta, alpha, hidden, b, c):
    """[Y25] eqn:chi_solution with V, U, W from the moments E1, E2 as printed, at our saddle point."""
    p = solve_saddle_point(beta, alpha, hidden=hidden, b=b, c=c)
    E1_v = np.tanh(b + Z * np.sqrt(p.qhat_v))
    if hidden == "spin":
        E1_h = np.tanh(c + Z * np.sqrt(p.qhat_h))
        E2_h = np.ones_like(E1_h)
    else:
        field = c + beta**2 / (2 * (1 + alpha)) - p.qhat_h / 2 + Z * np.sqrt(p.qhat_h)
        E1_h = E2_h = 1 / (1 + np.exp(-field))
    E = ((E1_v, np.ones_like(E1_v)), (E1_h, E2_h))
    V = np.diag([WEIGHTS @ (E2 - E1**2) for E1, E2 in E])
    U = np.diag([WEIGHTS @ (E1 * (E2 - E1**2)) for E1, E2 in E])
    W = np.diag([WEIGHTS @ (E2**2 - 4 * E2 * E1**2 + 3 * E1**4) for E1, E2 in E])
    T = np.array([[0, alpha], [1, 0]]) / (1 + alpha)
    T_hat = np.diag([1, alpha]) / (1 + alpha)
    return T_hat @ (V - 2 * beta**2 * U @ T @ np.linalg.inv(np.eye(2) - beta**2 * W @ T) @ U)


@pytest.mark.parametrize("hidden", ["spin", "bit"])
def test_closed_formula_of_the_paper(hidden):
    rng = np.random.default_rng(11)
    for i in range(25):
        beta, alpha = rng.uniform(0.1, 5), np.exp(rng.uniform(-3, 3))
        b, c = rng.uniform(-3, 2, size=2) * (i > 2, True)
        ours = susceptibility(beta, alpha, hidden=hidden, b=b, c=c)
        assert np.allclose(ours, paper_susceptibility(beta, alpha, hidden, b, c), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("root", "accuracy"), [(0.4, 2e-13), (1.5, 1e-14), (10.0, 1e-14), (60.0, 1e-14)])
def test_steep_layers_lose_no_digits(root, accuracy):
    """W = E[1 - 4 m**2 + 3 m**4] of spins falls as qhat**-3/2 while its terms stay of order one."""
    layer = Layer(SPIN, np.zeros(()), np.asarray(root**2), np.asarray(3 * root**2))
    with mp.workdps(30):
        step = min(mpf("0.3"), mpf("0.12") / root)
        total = mpf(0)
        for k in range(-int(12 / step), int(12 / step) + 1):
            square = mp.tanh(root * k * step) ** 2
            total += mp.exp(-((k * step) ** 2) / 2) * (1 - 4 * square + 3 * square**2)
        true = float(total * step / mp.sqrt(2 * mp.pi))
    assert np.isclose(layer.overlap_to_qhat, true, rtol=accuracy, atol=0)


# Where symmetry makes the layer correlation vanish --------------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "hidden", "b", "c"),
    [
        ("spin", "bit", 0.0, -1.0),
        ("bit", "spin", -2.0, 0.0),
        ("spin", "spin", 0.0, 0.4),
        ("spin", "spin", 0.7, 0.0),
    ],
)
def test_exactly_zero_by_symmetry(visible, hidden, b, c):
    for beta in (0.5, 1.6, 5.0):
        value = layer_correlation(beta, 0.8, visible=visible, hidden=hidden, b=b, c=c)
        assert value == 0.0
        assert isinstance(value, float)
        chi = susceptibility(beta, 0.8, visible=visible, hidden=hidden, b=b, c=c)
        assert chi[0, 1] == chi[1, 0] == 0.0
    zero = layer_correlation(np.array([0.5, 2.0]), 0.8, hidden="spin")
    assert (zero == 0.0).all()
    mixed = layer_correlation(1.5, 0.8, b=np.array([0.0, 0.1]))
    assert mixed[0] == 0.0
    assert mixed[1] != 0.0


@pytest.mark.parametrize("beta", [0.6, 1.5, 2.5, 6.0])
@pytest.mark.parametrize(("alpha", "c"), [(0.3, 0.0), (1.0, -2.0), (4.0, -5.0), (1.0, 2.0)])
def test_slope_is_the_limit_of_the_layer_correlation(alpha, c, beta):
    slope = layer_correlation_slope(beta, alpha, c=c)
    assert np.isclose(layer_correlation(beta, alpha, b=1e-5, c=c) / 1e-5, slope, rtol=1e-7)
    exchanged = layer_correlation_slope(beta, 1 / alpha, visible="bit", hidden="spin", b=c)
    assert np.isclose(exchanged, slope, rtol=1e-11)


@pytest.mark.parametrize("beta", [0.6, 1.5, 2.5, 6.0])
@pytest.mark.parametrize(("alpha", "c"), [(0.3, 0.0), (1.0, -2.0), (4.0, -5.0), (1.0, 2.0)])
def test_slope_is_the_answer_of_the_overlap(alpha, c, beta):
    """s = (1/(1+alpha)) d(Q_v - q_v)/dc, with no susceptibility in it."""

    def spread(t):
        p = solve_saddle_point(beta, alpha, c=c + t)
        return (p.Q_v - p.q_v) / (1 + alpha)

    assert np.isclose(layer_correlation_slope(beta, alpha, c=c), derivative(spread, 1e-3), rtol=1e-8)


def test_slope_by_the_formula_of_the_criterion():
    """s = -2 beta**2 alpha/(1+alpha)**2 W_v U_h / D, D = 1 - beta**4 alpha/(1+alpha)**2 W_v W_h."""
    for beta, alpha, c in [(0.9, 0.4, -0.5), (2.3, 1.0, -2.0), (3.7, 1.0, -5.0), (5.0, 2.0, -1.0)]:
        p = solve_saddle_point(beta, alpha, c=c)
        m = np.tanh(Z * np.sqrt(p.qhat_v))
        r = 1 / (1 + np.exp(-(c + 0.5 * (p.Qhat_h - p.qhat_h) + Z * np.sqrt(p.qhat_h))))
        W_v = WEIGHTS @ (1 - 4 * m**2 + 3 * m**4)
        U_h, W_h = WEIGHTS @ (r * r * (1 - r)), WEIGHTS @ (r**2 - 4 * r**3 + 3 * r**4)
        gain = alpha * beta**2 / (1 + alpha) ** 2
        expected = -2 * gain * W_v * U_h / (1 - gain * beta**2 * W_v * W_h)
        assert np.isclose(layer_correlation_slope(beta, alpha, c=c), expected, rtol=1e-10)


@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_mixed_slope_of_two_spin_layers(alpha):
    """d2 chi_vh/db dc at b = c = 0, on both sides of the transition, where it diverges."""
    critical = np.sqrt(np.sqrt(alpha) + 1 / np.sqrt(alpha))
    for factor in (0.5, 0.9, 0.99, 1.05, 1.5):
        beta = factor * critical
        mixed = layer_correlation_slope(beta, alpha, hidden="spin")

        def ratio(t, beta=beta):
            return layer_correlation(beta, alpha, hidden="spin", b=t, c=t) / t**2

        limit = (4 * ratio(5e-5) - ratio(1e-4)) / 3  # Richardson: the correction is quadratic
        assert np.isclose(mixed, limit, rtol=1e-4)
        if factor < 1:  # in the paramagnetic phase every cumulant is that of a free spin
            gain = alpha * beta**2 / (1 + alpha) ** 2
            assert np.isclose(mixed, -2 * gain / (1 - gain * beta**2), rtol=1e-12)
    near = [abs(layer_correlation_slope(critical * (1 + t), alpha, hidden="spin")) for t in (-1e-6, 1e-6)]
    assert min(near) > 1e4
    assert all(np.isfinite(near))


@pytest.mark.parametrize("beta", [0.5, 1.3, 2.5])
def test_slope_of_one_biased_spin_layer(beta):
    """Spin-spin with only one bias zero: the slope in that bias."""
    for b, c in ((0.0, 0.6), (-0.6, 0.0)):
        slope = layer_correlation_slope(beta, 0.7, hidden="spin", b=b, c=c)
        near = layer_correlation(beta, 0.7, hidden="spin", b=b or 1e-5, c=c or 1e-5) / 1e-5
        assert np.isclose(slope, near, rtol=1e-7)


# Stability ------------------------------------------------------------------------------------------------


def test_stability_by_its_definition():
    for beta, alpha, b, c in MACHINES:
        p = solve_saddle_point(beta, alpha, b=b, c=c)
        m = np.tanh(b + Z * np.sqrt(p.qhat_v))
        r = 1 / (1 + np.exp(-(c + 0.5 * (p.Qhat_h - p.qhat_h) + Z * np.sqrt(p.qhat_h))))
        K = (WEIGHTS @ (1 - m**2) ** 2) * (WEIGHTS @ (r * (1 - r)) ** 2)
        expected = 1 - beta**4 * alpha / (1 + alpha) ** 2 * K
        assert np.isclose(replica_stability(beta, alpha, b=b, c=c), expected, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "c", "value"), [(0.25, 0, 0.97), (1, -6, 0.40), (3, -6, 0.27)])
def test_stability_at_the_maximum(alpha, c, value):
    result = find_beta_max(alpha, c=c)
    assert abs(result.stability - value) < 0.005
    assert np.isclose(result.stability, replica_stability(result.beta, alpha, c=c), rtol=1e-6)


@pytest.mark.parametrize(("alpha", "c"), [(0.25, -20.8), (1, -12.9), (3, -9.5), (10, -7.4)])
def test_where_the_maximum_becomes_unstable(alpha, c):
    before, after = find_beta_max(alpha, c=np.array([c + 0.1, c - 0.1])).stability
    assert before > 0 > after


@pytest.mark.parametrize(("alpha", "c", "beta"), [(1, 0, 6.9), (1, -5, 4.9)])
def test_where_the_instability_line_lies(alpha, c, beta):
    assert replica_stability(beta - 0.05, alpha, c=c) > 0 > replica_stability(beta + 0.05, alpha, c=c)


def test_stability_line_close_to_the_maximum():
    beta = find_beta_max(3, c=-6).beta
    assert replica_stability(1.06 * beta, 3, c=-6) > 0 > replica_stability(1.068 * beta, 3, c=-6)


def test_spin_glass_phase_is_unstable():
    for alpha in (0.5, 1.0, 2.0):
        critical = np.sqrt(np.sqrt(alpha) + 1 / np.sqrt(alpha))
        assert np.isclose(replica_stability(0.9 * critical, alpha, hidden="spin"), 1 - 0.9**4, rtol=1e-12)
        assert replica_stability(1.1 * critical, alpha, hidden="spin") < 0


# Symmetries -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    beta=st.floats(0.1, 5.0),
    log_alpha=st.floats(-3.0, 3.0),
    pair=st.sampled_from(PAIRS),
    b=st.floats(-6.0, 3.0).map(lambda x: round(x, 2) + 0.005),
    c=st.floats(-6.0, 3.0).map(lambda x: round(x, 2) + 0.005),
)
def test_layer_exchange(beta, log_alpha, pair, b, c):
    alpha = np.exp(log_alpha)
    one = susceptibility(beta, alpha, visible=pair[0], hidden=pair[1], b=b, c=c)
    two = susceptibility(beta, 1 / alpha, visible=pair[1], hidden=pair[0], b=c, c=b)
    assert np.allclose(one, two[::-1, ::-1], rtol=1e-8, atol=1e-14)
    assert one[0, 0] > 0
    assert one[1, 1] > 0


def test_no_answer_between_layers_without_weights():
    chi = susceptibility(0.0, 0.5, b=0.3, c=-1.0)
    p = 1 / (1 + np.e)
    expected = np.diag([(1 - np.tanh(0.3) ** 2) / 1.5, 0.5 * p * (1 - p) / 1.5])
    assert np.allclose(chi, expected, rtol=1e-14, atol=0)


def test_shapes():
    beta = np.array([0.5, 1.0, 2.0])
    assert susceptibility(beta, 1.0, c=-1.0).shape == (3, 2, 2)
    assert susceptibility(1.0, 1.0).shape == (2, 2)
    assert layer_correlation_slope(beta[:, None], np.array([0.5, 2.0])).shape == (3, 2)
    assert isinstance(layer_correlation_slope(1.0, 1.0), float)
    assert isinstance(replica_stability(1.0, 1.0), float)


@pytest.mark.parametrize(
    "function", [susceptibility, layer_correlation, layer_correlation_slope, replica_stability]
)
def test_errors_by_their_words(function):
    with pytest.raises(ValueError, match=r"^`beta` must be zero or positive, got -1\.$"):
        function(-1.0, 1.0)
    with pytest.raises(ValueError, match=r"^`alpha` must be positive, got 0\.$"):
        function(1.0, 0)
    with pytest.raises(ValueError, match=r"^`c` must be finite, got nan\.$"):
        function(1.0, 1.0, c=np.nan)
    with pytest.raises(
        ValueError,
        match=r"^`visible` must be a unit type \(.*\), got 'gauss' \(did you mean 'gaussian'\?\)\.$",
    ):
        function(1.0, 1.0, visible="gauss")
