"""The saddle point: its equations met everywhere, no other solution missed, the free energy stationary.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from paramagnet.theory.saddle import (
    ConvergenceError,
    free_energy_at,
    make_ensemble,
    solve_saddle_point,
)
from paramagnet.theory.scale import find_beta_max

PAIRS = list(itertools.product(("spin", "bit"), repeat=2))
ALPHAS = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3)
BIASES = (0, -1, -2, -3, -4, -5, -6)


@cache
def nodes_and_weights(step, reach):
    z = np.arange(-reach, reach + step / 2, step)
    return z, step / np.sqrt(2 * np.pi) * np.exp(-0.5 * z * z)


def mean_at(unit, bias, qhat, selfhat, z):
    """The mean of one unit in its random field, as the paper writes it; parameters may be arrays."""
    bias, qhat, selfhat = (np.asarray(x, dtype=float)[..., None] for x in (bias, qhat, selfhat))
    field = bias + np.sqrt(qhat) * z
    if unit == "spin":
        return np.tanh(field)
    return 1 / (1 + np.exp(-(field + 0.5 * (selfhat - qhat))))


def answer(unit, bias, qhat, selfhat, step=0.02, reach=14.0):
    """q, Q and the magnetization of a layer by a plain trapezoid sum."""
    z, weights = nodes_and_weights(step, reach)
    mean = mean_at(unit, bias, qhat, selfhat, z)
    magnetization = mean @ weights
    return mean**2 @ weights, magnetization if unit == "bit" else np.ones_like(magnetization), magnetization


def go_around(q, Q, beta, alpha, visible, hidden, b, c, **grid):
    """From the visible layer's (q, Q) to the hidden layer and back."""
    A, B = alpha * beta**2 / (1 + alpha), beta**2 / (1 + alpha)
    q_h, Q_h, _ = answer(hidden, c, B * q, B * Q, **grid)
    q_v, Q_v, _ = answer(visible, b, A * q_h, A * Q_h, **grid)
    return q_v, Q_v, q_h, Q_h


def substitute(beta, alpha, visible, hidden, b, c, iterations=3000):
    """Successive substitution; None where it does not settle."""
    q = Q = 1.0
    for _ in range(iterations):
        q_new, Q_new, q_h, Q_h = go_around(q, Q, beta, alpha, visible, hidden, b, c)
        if abs(q_new - q) <= 1e-15 * q_new and abs(Q_new - Q) <= 1e-15 * Q_new:
            return q_new, Q_new, q_h, Q_h
        q, Q = q_new, Q_new
    return None


# Meeting the equations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("visible", "hidden"), [pair for pair in PAIRS if "spin" in pair])
@pytest.mark.parametrize("b", [0.0, 0.7, -3.0])
def test_residual_on_a_broad_grid(visible, hidden, b):
    alpha = np.array([1e-3, 0.1, 1.0, 30.0, 1e3])[:, None, None]
    c = np.array([-30.0, -20.0, -7.0, -1.5, 0.0, 2.0, 10.0])[:, None]
    point = solve_saddle_point(np.geomspace(0.05, 50, 7), alpha, visible=visible, hidden=hidden, b=b, c=c)
    assert point.converged
    assert point.residual.max() <= 1e-13
    assert point.quadrature_error.max() <= 1e-13
    assert (point.q_h <= point.Q_h * (1 + 1e-13)).all()
    assert (point.q_v <= point.Q_v * (1 + 1e-13)).all()


@pytest.mark.parametrize("b", [0.0, 0.7, -3.0])
def test_residual_on_a_broad_grid_of_bits(b):
    for alpha, beta in itertools.product((1e-3, 1.0, 30.0, 1e3), (0.05, 1.0, 8.0, 50.0)):
        c = np.array([-30.0, -7.0, -1.5, 0.0, 10.0])
        point = solve_saddle_point(beta, alpha, visible="bit", hidden="bit", b=b, c=c)
        assert point.residual.max() <= 1e-13


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_equations_by_another_rule(visible, hidden):
    """The residual is our own word; the same equations by a plain sum over 1401 points say the same."""
    rng = np.random.default_rng(3)
    for _ in range(12):
        beta, alpha = rng.uniform(0.3, 5), np.exp(rng.uniform(-2, 2))
        b, c = rng.uniform(-3, 2, size=2)
        p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
        found = go_around(p.q_v, p.Q_v, beta, alpha, visible, hidden, b, c)
        assert np.allclose(found, (p.q_v, p.Q_v, p.q_h, p.Q_h), rtol=3e-13, atol=0)
        A, B = alpha * beta**2 / (1 + alpha), beta**2 / (1 + alpha)
        expected = (A * p.q_h, B * p.q_v, A * p.Q_h, B * p.Q_v)
        assert np.allclose((p.qhat_v, p.qhat_h, p.Qhat_v, p.Qhat_h), expected, rtol=1e-12, atol=0)
        assert np.isclose(p.magnetization_v, answer(visible, b, p.qhat_v, p.Qhat_v)[2], rtol=1e-12)
        assert np.isclose(p.magnetization_h, answer(hidden, c, p.qhat_h, p.Qhat_h)[2], rtol=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_successive_substitution_where_it_converges(visible, hidden):
    settled = 0
    for beta, alpha, b, c in [(0.6, 1, 0.3, -1), (1.5, 0.4, -0.8, 0.5), (2.4, 3, 0.2, -2.5), (4, 1, -1, -4)]:
        found = substitute(beta, alpha, visible, hidden, b, c)
        if found is not None:
            settled += 1
            p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
            assert np.allclose(found, (p.q_v, p.Q_v, p.q_h, p.Q_h), rtol=1e-11, atol=0)
    assert settled >= 3


@pytest.mark.parametrize(("alpha", "c"), [(1.0, -20.0), (1.0, -25.0), (0.5, -30.0), (3.0, -22.0)])
def test_where_substitution_falls_into_a_cycle(alpha, c):
    beta = 1.15 * find_beta_max(alpha, c=c).beta
    assert substitute(beta, alpha, "spin", "bit", 0.0, c, iterations=400) is None
    p = solve_saddle_point(beta, alpha, c=c)
    assert p.residual <= 1e-13
    found = go_around(p.q_v, 1.0, beta, alpha, "spin", "bit", 0.0, c, step=0.01)
    assert np.isclose(found[0], p.q_v, rtol=1e-11)


# No other solution ----------------------------------------------------------------------------------------


def count_solutions(beta, alpha, c):
    """Sign changes of ln(F(x)/x) over many x in (0, 1], for arrays of machines at once (spin-bit, b = 0)."""
    x = np.unique(np.concatenate([np.geomspace(1e-33, 1, 250), np.linspace(0.004, 1, 150)]))
    shape = (*np.shape(beta), 1)
    beta, alpha, c = (np.reshape(a, shape) for a in (beta, alpha, c))
    F = go_around(x, np.ones_like(x), beta, alpha, "spin", "bit", np.zeros(()), c, step=0.08, reach=12.0)[0]
    above = np.sign(np.log(F / x))
    assert (above != 0).all()
    return (above[..., 1:] != above[..., :-1]).sum(axis=-1), x


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.5])
def test_one_solution_at_every_point_of_the_table(factor):
    alpha, c = (array.ravel() for array in np.meshgrid(ALPHAS, BIASES))
    beta = factor * find_beta_max(alpha, c=c).beta
    counts, _ = count_solutions(beta, alpha, c)
    assert (counts == 1).all()


def test_the_count_sees_several_solutions():
    """The same scan where the transition is of first order: three solutions between the spinodals."""
    beta = np.geomspace(100, 400, 61)
    counts, _ = count_solutions(beta, np.full_like(beta, 1000.0), np.full_like(beta, -30.0))
    assert set(counts) == {1, 3}


# The spin-glass transition --------------------------------------------------------------------------------


def critical_beta(alpha):
    return np.sqrt(np.sqrt(alpha) + 1 / np.sqrt(alpha))


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0, 2.0, 1e3])
def test_zero_below_the_transition(alpha):
    for factor in (0.1, 0.9, 1 - 1e-6, 1 - 1e-12):
        p = solve_saddle_point(factor * critical_beta(alpha), alpha, hidden="spin")
        assert (p.q_v, p.q_h, p.magnetization_v, p.residual) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0, 2.0, 1e3])
@pytest.mark.parametrize("excess", [1e-6, 1e-4])
def test_just_above_the_transition(alpha, excess):
    """Against the series E[tanh(z sqrt(a))**2] = a - 2 a**2 + 17/3 a**3 - ..., solved with 50 digits."""
    beta = critical_beta(alpha) * (1 + excess)
    p = solve_saddle_point(beta, alpha, hidden="spin")
    with mp.workdps(50):
        A, B = (mpf(x) * mpf(beta) ** 2 / (1 + mpf(alpha)) for x in (alpha, 1))

        def overlap(a):
            return a - 2 * a**2 + mpf(17) / 3 * a**3 - mpf(62) / 3 * a**4 + mpf(1382) / 15 * a**5

        q = mp.findroot(lambda q: overlap(A * overlap(B * q)) / q - 1, mpf(p.q_v), tol=1e-60)
        tolerance = max(1e-13 / excess, 2e4 * float(A * B * q) ** 5)
        assert q > 0
        assert abs(p.q_v / q - 1) < tolerance
        assert abs(p.q_h / overlap(B * q) - 1) < tolerance


def test_non_zero_branch_in_the_spin_glass_phase():
    for alpha, factor in itertools.product((0.5, 1.0, 3.0), (1.2, 2.0, 5.0)):
        beta = factor * critical_beta(alpha)
        p = solve_saddle_point(beta, alpha, hidden="spin")
        found = go_around(p.q_v, 1.0, beta, alpha, "spin", "spin", 0.0, 0.0, step=0.01)
        assert p.q_v > 0.1
        assert np.allclose(found[0], p.q_v, rtol=1e-12)


# The free energy ------------------------------------------------------------------------------------------


def derivative(function, step):
    """By five points."""
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(("beta", "alpha", "b", "c"), [(1.3, 0.7, 0.4, -0.9), (2.8, 1.6, -0.5, -2.0)])
def test_free_energy_is_stationary_in_all_order_parameters(visible, hidden, beta, alpha, b, c):
    p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    ensemble = make_ensemble(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    values = np.array([p.q_v, p.Q_v, p.qhat_v, p.Qhat_v, p.q_h, p.Q_h, p.qhat_h, p.Qhat_h])

    def f(x):
        arrays = [np.asarray(y) for y in x]
        return float(free_energy_at(ensemble, tuple(arrays[:4]), tuple(arrays[4:])))

    assert np.isclose(f(values), p.free_energy, rtol=1e-14)
    for i in range(8):
        unit = np.eye(8)[i]
        assert abs(derivative(lambda t, unit=unit: f(values + t * unit), 1e-3)) < 1e-10
        # and it is the saddle point that makes it so: the partner parameter's change is felt
        away = values.copy()
        away[i ^ 2 if visible == hidden == "spin" and i % 2 else (i + 4) % 8 if i % 4 < 2 else i - 2] *= 1.01
        assert abs(derivative(lambda t, unit=unit, away=away: f(away + t * unit), 1e-3)) > 1e-5


def paper_free_energy(p, hidden):
    """[Y25] eqn:free_energy_RS, term by term as printed."""
    alpha, beta = p.alpha, p.beta
    z, weights = nodes_and_weights(0.02, 14.0)
    minus_E_v = [(p.b + z * np.sqrt(p.qhat_v)) * v for v in (-1, 1)]
    minus_E_h = [
        (p.c + z * np.sqrt(p.qhat_h)) * h + 0.5 * (beta**2 / (1 + alpha) - p.qhat_h) * h**2
        for h in ((-1, 1) if hidden == "spin" else (0, 1))
    ]
    return (
        alpha * beta**2 / (2 * (1 + alpha) ** 2) * p.q_v * p.q_h
        - p.qhat_v * (p.q_v - 1) / (2 * (1 + alpha))
        - alpha / (2 * (1 + alpha)) * p.qhat_h * p.q_h
        - np.logaddexp(*minus_E_v) @ weights / (1 + alpha)
        - alpha / (1 + alpha) * (np.logaddexp(*minus_E_h) @ weights)
    )


@pytest.mark.parametrize("hidden", ["spin", "bit"])
def test_free_energy_of_the_paper(hidden):
    rng = np.random.default_rng(5)
    for i in range(20):
        beta, alpha = rng.uniform(0.1, 6), np.exp(rng.uniform(-3, 3))
        b, c = (0.0, 0.0) if i < 4 else rng.uniform(-4, 3, size=2)
        p = solve_saddle_point(beta, alpha, hidden=hidden, b=b, c=c)
        assert np.isclose(p.free_energy, paper_free_energy(p, hidden), rtol=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(("beta", "alpha", "b", "c"), [(0.8, 2.5, 0.3, -0.4), (2.2, 0.6, -0.7, -1.9)])
def test_biases_are_conjugate_to_magnetizations(visible, hidden, beta, alpha, b, c):
    def f(db=0.0, dc=0.0):
        return solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b + db, c=c + dc).free_energy

    p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    M_v, M_h = p.magnetization_v / (1 + alpha), alpha * p.magnetization_h / (1 + alpha)
    assert abs(derivative(lambda t: f(db=t), 2e-3) + M_v) < 1e-10
    assert abs(derivative(lambda t: f(dc=t), 2e-3) + M_h) < 1e-10


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_free_energy_and_temperature(visible, hidden):
    """df/dbeta = -beta alpha/(1+alpha)**2 (Q_v Q_h - q_v q_h): the energy, by the same stationarity."""
    beta, alpha, b, c = 1.7, 0.8, 0.4, -1.1
    p = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)

    def f(t):
        return solve_saddle_point(beta + t, alpha, visible=visible, hidden=hidden, b=b, c=c).free_energy

    energy = -beta * alpha / (1 + alpha) ** 2 * (p.Q_v * p.Q_h - p.q_v * p.q_h)
    assert abs(derivative(f, 2e-3) - energy) < 1e-10


# Symmetries and limits ------------------------------------------------------------------------------------

MACHINES = {
    "beta": st.floats(0.0, 6.0),
    "log_alpha": st.floats(-4.0, 4.0),
    "pair": st.sampled_from(PAIRS),
    "b": st.floats(-8.0, 4.0).map(lambda x: round(x, 6)),
    "c": st.floats(-8.0, 4.0).map(lambda x: round(x, 6)),
}


def away_from_transition(beta, alpha, pair, b, c):
    """Near the transition the overlap is soft, and rounding of 1/alpha moves it."""
    soft = pair == ("spin", "spin") and max(abs(b), abs(c)) < 0.01
    return not soft or abs(beta / critical_beta(alpha) - 1) > 0.01


@settings(max_examples=60, deadline=None)
@given(**MACHINES)
def test_layer_exchange(beta, log_alpha, pair, b, c):
    alpha = np.exp(log_alpha)
    if not away_from_transition(beta, alpha, pair, b, c):
        return
    one = solve_saddle_point(beta, alpha, visible=pair[0], hidden=pair[1], b=b, c=c)
    two = solve_saddle_point(beta, 1 / alpha, visible=pair[1], hidden=pair[0], b=c, c=b)
    for here, there in (
        ("q_v", "q_h"),
        ("Q_v", "Q_h"),
        ("qhat_v", "qhat_h"),
        ("Qhat_v", "Qhat_h"),
        ("q_h", "q_v"),
    ):
        assert np.isclose(getattr(one, here), getattr(two, there), rtol=1e-9, atol=1e-280)
    assert np.isclose(one.magnetization_h, two.magnetization_v, rtol=1e-9, atol=1e-14)
    assert np.isclose(one.free_energy, two.free_energy, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(**MACHINES)
def test_spin_flip(beta, log_alpha, pair, b, c):
    visible, hidden = pair
    b2, c2 = (-b if visible == "spin" else b), (-c if hidden == "spin" else c)
    one = solve_saddle_point(beta, np.exp(log_alpha), visible=visible, hidden=hidden, b=b, c=c)
    two = solve_saddle_point(beta, np.exp(log_alpha), visible=visible, hidden=hidden, b=b2, c=c2)
    sign = -1 if visible == "spin" else 1
    if away_from_transition(beta, np.exp(log_alpha), pair, b, c):
        assert np.isclose(one.q_v, two.q_v, rtol=1e-9, atol=1e-300)
        assert np.isclose(one.magnetization_v, sign * two.magnetization_v, rtol=1e-9, atol=1e-14)
    assert np.isclose(one.free_energy, two.free_energy, rtol=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(("b", "c"), [(0.0, 0.0), (0.6, -1.3)])
def test_independent_units_at_beta_zero(visible, hidden, b, c):
    def mean(unit, bias):
        return np.tanh(bias) if unit == "spin" else 1 / (1 + np.exp(-bias))

    def trace(unit, bias):
        return np.logaddexp(-bias, bias) if unit == "spin" else np.logaddexp(0, bias)

    p = solve_saddle_point(0.0, 0.7, visible=visible, hidden=hidden, b=b, c=c)
    assert np.isclose(p.q_v, mean(visible, b) ** 2, rtol=1e-14, atol=0)
    assert np.isclose(p.q_h, mean(hidden, c) ** 2, rtol=1e-14, atol=0)
    assert np.isclose(p.magnetization_v, mean(visible, b), rtol=1e-14, atol=0)
    assert np.isclose(p.free_energy, -(trace(visible, b) + 0.7 * trace(hidden, c)) / 1.7, rtol=1e-14)


def test_broadcasting_gives_the_scalar_results():
    beta, alpha, c = np.array([0.5, 1.5, 4.0])[:, None], np.array([0.3, 2.0]), -1.2
    for visible, hidden in PAIRS:
        table = solve_saddle_point(beta, alpha, visible=visible, hidden=hidden, b=0.2, c=c)
        assert table.q_v.shape == (3, 2)
        for i, j in np.ndindex(3, 2):
            one = solve_saddle_point(beta[i, 0], alpha[j], visible=visible, hidden=hidden, b=0.2, c=c)
            assert isinstance(one.q_v, float)
            assert np.isclose(one.q_v, table.q_v[i, j], rtol=1e-13)
            assert np.isclose(one.free_energy, table.free_energy[i, j], rtol=1e-13)


# What is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0.0}, r"^`alpha` must be positive, got 0\.$"),
        ({"alpha": -2}, r"^`alpha` must be positive, got -2\.$"),
        ({"alpha": [1.0, -0.5]}, r"^`alpha` must be positive, got -0\.5\.$"),
        ({"alpha": np.nan}, r"^`alpha` must be finite, got nan\.$"),
        ({"alpha": np.inf}, r"^`alpha` must be finite, got inf\.$"),
        ({"alpha": 1 + 2j}, r"^`alpha` must be real, got \(1\+2j\)\.$"),
        ({"alpha": "one"}, r"^`alpha` must be a real number or an array of them, got 'one'\.$"),
        ({"alpha": None}, r"^`alpha` must be "),
        ({"beta": -0.1}, r"^`beta` must be zero or positive, got -0\.1\.$"),
        ({"beta": np.nan}, r"^`beta` must be finite, got nan\.$"),
        ({"b": np.inf}, r"^`b` must be finite, got inf\.$"),
        ({"c": np.nan}, r"^`c` must be finite, got nan\.$"),
        ({"c": [0.0, np.nan]}, r"^`c` must be finite, got nan\.$"),
        (
            {"visible": "ising"},
            r"^`visible` must be a unit type \(.*\), got 'ising' \(did you mean 'spin'\?\)\.$",
        ),
        (
            {"hidden": "binary"},
            r"^`hidden` must be a unit type \('spin', 'bit', 'gaussian', .*\), got 'binary'\.$",
        ),
    ],
)
def test_errors_by_their_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        solve_saddle_point(**{"beta": 1.0, "alpha": 1.0, **arguments})


def test_result_says_what_it_is():
    p = solve_saddle_point(1.0, 1.0, c=-2.0)
    assert p.converged
    assert p.status == "converged"
    assert "spin-bit" in repr(p)
    assert "2 points" in repr(solve_saddle_point([1.0, 2.0], 1.0))
    assert issubclass(ConvergenceError, RuntimeError)
