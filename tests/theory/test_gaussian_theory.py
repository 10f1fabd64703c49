"""The theory with a Gaussian layer: differences, closed forms, small machines, an independent oracle, bad
input.
"""

import itertools
import json

import numpy as np
import pytest
from oracle.gaussian_oracle import POINTS, STORED, compute

import paramagnet as pm
from paramagnet.theory.ensemble import make_ensemble
from paramagnet.theory.gaussian_saddle import solve_against_gaussian
from paramagnet.theory.saddle import free_energy_at, solve_saddle_point

NARROW = pm.gaussian(0.7)
PAIRS = [("gaussian", "spin"), ("gaussian", "bit"), ("spin", NARROW), ("bit", NARROW), (NARROW, "bit")]
MACHINES = [(0.7, 1.8, 0.3, -0.6), (1.9, 0.5, -0.4, -1.5), (3.1, 1.0, 0.8, -3.0), (0.4, 20.0, -1.0, 1.2)]
ROWS = json.loads(STORED.read_text())


def derivative(function, step):
    """By five points."""
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


def magnetizations(beta, alpha, b, c, **units):
    p = solve_saddle_point(beta, alpha, b=b, c=c, **units)
    return np.array([p.magnetization_v, alpha * p.magnetization_h]) / (1 + alpha)


# The saddle point -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("visible", "hidden"), PAIRS, ids=str)
@pytest.mark.parametrize(("beta", "alpha", "b", "c"), MACHINES)
def test_responses_by_differences(visible, hidden, beta, alpha, b, c):
    units = {"visible": visible, "hidden": hidden}
    p = solve_saddle_point(beta, alpha, b=b, c=c, **units)
    assert p.residual < 1e-13
    chi = pm.theory.susceptibility(beta, alpha, b=b, c=c, **units)
    in_b = derivative(lambda t: magnetizations(beta, alpha, b + t, c, **units), 2e-3)
    in_c = derivative(lambda t: magnetizations(beta, alpha, b, c + t, **units), 2e-3)
    np.testing.assert_allclose(chi, np.stack([in_b, in_c], axis=-1), rtol=1e-9, atol=1e-10)
    assert np.isclose(chi[0, 1], chi[1, 0], rtol=1e-12)
    of_f = derivative(lambda t: solve_saddle_point(beta, alpha, b=b, c=c + t, **units).free_energy, 2e-3)
    assert np.isclose(-of_f, magnetizations(beta, alpha, b, c, **units)[1], rtol=1e-10)
    of_q = derivative(lambda t: solve_saddle_point(beta, alpha, b=b, c=c + t, **units).q_v, 2e-3)
    assert np.isclose(
        pm.theory.overlap_response(beta, alpha, b=b, c=c, **units), -of_q / (1 + alpha), rtol=1e-8
    )


@pytest.mark.parametrize(("visible", "hidden"), PAIRS, ids=str)
def test_free_energy_is_stationary_in_all_eight(visible, hidden):
    p = solve_saddle_point(1.4, 0.8, visible=visible, hidden=hidden, b=0.2, c=-0.7)
    e = make_ensemble(1.4, 0.8, visible=visible, hidden=hidden, b=0.2, c=-0.7)
    point = np.array([p.q_v, p.Q_v, p.qhat_v, p.Qhat_v, p.q_h, p.Q_h, p.qhat_h, p.Qhat_h])
    assert np.isclose(free_energy_at(e, tuple(point[:4]), tuple(point[4:])), p.free_energy, rtol=1e-14)
    for i in range(8):

        def f(t, i=i):
            moved = point.copy()
            moved[i] += t
            return free_energy_at(e, *(tuple(map(np.asarray, half)) for half in np.split(moved, 2)))

        assert abs(derivative(f, 1e-4)) < 1e-9


def test_layer_exchange_and_units_of_length():
    for hidden, (beta, alpha, b, c) in itertools.product(("spin", "bit"), MACHINES):
        one = solve_saddle_point(beta, alpha, visible="gaussian", hidden=hidden, b=b, c=c)
        other = solve_saddle_point(beta, 1 / alpha, visible=hidden, hidden="gaussian", b=c, c=b)
        assert np.allclose(
            [one.q_v, one.Q_h, one.free_energy], [other.q_h, other.Q_v, other.free_energy], rtol=1e-12
        )
        # x = 2 y: weights and biases twice as large
        wide = solve_saddle_point(beta / 2, alpha, visible=pm.gaussian(4.0), hidden=hidden, b=b / 2, c=c)
        assert np.allclose(
            [wide.q_v, wide.q_h, wide.free_energy], [4 * one.q_v, one.q_h, one.free_energy], rtol=1e-12
        )


def test_two_gaussian_layers_are_one_normal_distribution():
    """ln Z of a large random machine, from its singular values."""
    n, m, beta = 600, 300, 0.5
    w = np.random.default_rng(3).normal(size=(n, m)) * beta / np.sqrt(n + m)
    b, c = np.full(n, 0.3), np.full(m, -0.4)
    precision = np.block([[np.eye(n), -w], [-w.T, np.eye(m)]])
    log_z = -0.5 * np.linalg.slogdet(precision)[1] + 0.5 * np.r_[b, c] @ np.linalg.solve(
        precision, np.r_[b, c]
    )
    p = solve_saddle_point(beta, m / n, visible="gaussian", hidden="gaussian", b=0.3, c=-0.4)
    assert p.residual < 1e-13
    assert np.isclose(-log_z / (n + m), p.free_energy, rtol=0.01)
    covariance = np.linalg.inv(precision)
    assert np.isclose(np.mean(np.diag(covariance)[:n]), p.Q_v - p.q_v, rtol=2e-3)
    assert pm.theory.layer_correlation(
        beta, 0.5, visible="gaussian", hidden="gaussian", b=0.3, c=-0.4
    ) == pytest.approx(0.0, abs=1e-15)


def test_two_gaussian_layers_end_at_an_edge():
    for alpha, s in ((1.0, 1.0), (0.3, 2.0)):
        edge = np.sqrt((1 + alpha) / s) / (1 + np.sqrt(alpha))
        units = {"visible": pm.gaussian(s), "hidden": "gaussian"}
        assert solve_saddle_point(0.999 * edge, alpha, **units).residual < 1e-11
        with pytest.raises(
            ValueError, match=r"`beta` must stay below .*\(1 \+ alpha\)/\(1 \+ sqrt\(alpha\)\)\^2"
        ):
            solve_saddle_point(1.001 * edge, alpha, **units)
        with pytest.raises(pm.theory.NoMaximumError, match=r"ceases to exist: an edge, no maximum") as caught:
            pm.beta_max(alpha, **units)
        assert caught.value.result.beta == pytest.approx(edge, rel=1e-14)


# Small machines, solved by sums over states with nothing of the package in between ------------------------


def simulate(n, beta, c, draws, seed):
    """Means over the weights of q_v, Q_v, E[h], -dq_v/dc per unit, n Gaussian units against n bits."""
    rng = np.random.default_rng(seed)
    h = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    found = []
    for _ in range(draws):
        w = rng.normal(size=(n, n)) * beta / np.sqrt(2 * n)
        fields = h @ w.T
        log_p = c * h.sum(axis=1) + 0.5 * np.sum(fields**2, axis=1)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean_v, mean_h = p @ fields, p @ h
        cov = (fields * p[:, None]).T @ h.sum(axis=1) - mean_v * mean_h.sum()
        answer = -np.mean(2 * mean_v * cov) / 2
        found.append((np.mean(mean_v**2), np.mean(1 + p @ fields**2), mean_h.mean(), answer))
    found = np.array(found)
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(draws)


@pytest.mark.parametrize(("beta", "c"), [(1.0, -1.0), (1.3, 0.0)])
def test_small_gaussian_bit_machines(beta, c):
    (small, small_error), (large, large_error) = simulate(5, beta, c, 2500, 1), simulate(10, beta, c, 700, 2)
    limit, error = 2 * large - small, np.hypot(2 * large_error, small_error)
    p = solve_saddle_point(beta, 1.0, visible="gaussian", hidden="bit", c=c)
    answer = pm.theory.overlap_response(beta, 1.0, visible="gaussian", hidden="bit", c=c)
    theory = np.array([p.q_v, p.Q_v, p.magnetization_h, answer])
    assert np.all(np.abs(limit - theory) < 3.5 * error + 0.03 * np.abs(theory)), (limit, theory, error)


# beta_max -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(map(str, row.values())))
def test_beta_max_to_nine_digits(row):
    of = {"gaussian": pm.gaussian(float(row["variance"]))}
    units = {name: of.get(row[name], row[name]) for name in ("visible", "hidden")}
    result = pm.theory.find_beta_max(float(row["alpha"]), b=float(row["b"]), c=float(row["c"]), **units)
    assert abs(result.beta - float(row["beta_max"])) < 1e-9
    assert result.status == "maximum"


def test_stored_values_belong_to_the_points_of_the_oracle():
    assert [tuple(row.values())[:-1] for row in ROWS] == [point[:-1] for point in POINTS]


@pytest.mark.slow
@pytest.mark.parametrize("i", range(len(POINTS)))
def test_all_points_recomputed(i):
    assert abs(float(compute(POINTS[i])) / float(ROWS[i]["beta_max"]) - 1) < 1e-14


@pytest.mark.parametrize("alpha", [0.2, 1.0, 7.0])
def test_transitions_in_closed_form(alpha):
    """gaussian-spin beta^2 = (1 + alpha)/(sqrt(alpha) + alpha); the overlap is zero below it and not
    above.
    """
    for s in (1.0, 2.5):
        beta = pm.beta_max(alpha, visible=pm.gaussian(s), hidden="spin")
        assert beta**2 == pytest.approx((1 + alpha) / (np.sqrt(alpha) + alpha) / s, rel=1e-14)
        exchanged = pm.beta_max(1 / alpha, visible="spin", hidden=pm.gaussian(s))
        assert exchanged == pytest.approx(beta, rel=1e-14)
        units = {"visible": pm.gaussian(s), "hidden": "spin"}
        assert solve_saddle_point(0.999 * beta, alpha, **units).q_h == 0.0
        above = solve_saddle_point(1.001 * beta, alpha, **units)
        assert 1e-5 < above.q_h < 1e-2
        assert above.residual < 1e-13
        near = [abs(pm.theory.layer_correlation_slope(beta * (1 + t), alpha, **units)) for t in (-1e-6, 1e-6)]
        assert min(near) > 1e3
        assert abs(pm.theory.replica_stability(beta * (1 - 1e-9), alpha, **units)) < 1e-7
    n, m = 100, round(100 * alpha)
    sigma = pm.weight_std(n, m, visible="gaussian", hidden="spin")
    assert sigma**2 == pytest.approx(1 / (np.sqrt(n * m) + m), rel=1e-12)


def test_small_biases_lead_to_the_transition():
    critical = pm.beta_max(1.0, visible="gaussian", hidden="spin")
    distances = [
        abs(pm.theory.find_beta_max(1.0, visible="gaussian", hidden="spin", b=e, c=e).beta / critical - 1)
        for e in (1e-2, 1e-3)
    ]
    assert distances[1] < 0.1 * distances[0] < 1e-3


def test_gaussian_bit_slope_changes_sign_and_the_overlap_does_not():
    """alpha = 1, c = -2: +0.10 at 1.63, zero at 1.87, -0.04 at 2.25; the overlap has one maximum, in
    between.
    """
    beta = np.linspace(0.8, 3.5, 55)
    units = {"visible": "gaussian", "hidden": "bit", "c": -2.0}
    slope = pm.theory.layer_correlation_slope(beta, 1.0, **units)
    assert slope.max() == pytest.approx(0.10, abs=0.005)
    assert slope.min() == pytest.approx(-0.037, abs=0.002)
    crossing = beta[np.flatnonzero(slope < 0)[0]]
    assert 1.84 < crossing < 1.95
    answer = -pm.theory.overlap_response(beta, 1.0, **units)
    assert np.all(answer > 0)
    assert np.count_nonzero(np.diff(np.sign(np.diff(answer)))) == 1
    assert pm.beta_max(1.0, **units) == pytest.approx(1.8895490001, abs=1e-9)


def test_the_overlap_is_the_papers_criterion_for_spins():
    for beta, alpha, c in [(0.9, 0.4, -0.5), (2.3, 1.0, -2.0), (5.0, 2.0, -1.0)]:
        slope = pm.theory.layer_correlation_slope(beta, alpha, c=c)
        assert np.isclose(pm.theory.overlap_response(beta, alpha, c=c), slope, rtol=1e-12)


def test_gaussian_bit_beta_max_moves_steadily():
    betas = [
        pm.beta_max(1.0, visible="gaussian", hidden="bit", c=c)
        for c in (1.0, 0.5, 0.0, -0.5, -1.0, -2.0, -3.0)
    ]
    steps = np.diff(betas)
    assert np.all(steps > 0)
    assert steps.max() < 0.5


def test_first_order_transition():
    """Below c = -4.1 at alpha = 1 two phases compete; beta_max is where their free energies are equal,
    with a warning.
    """
    units = {"visible": "gaussian", "hidden": "bit", "c": -5.0}
    with pytest.warns(pm.theory.MaximumWarning, match="grows up to a first-order transition"):
        beta = pm.beta_max(1.0, **units)
    assert pm.theory.find_beta_max(1.0, **units).status == "first-order"
    below, above = (solve_saddle_point(beta * (1 + t), 1.0, **units) for t in (-1e-6, 1e-6))
    assert above.Q_h - below.Q_h > 0.1
    assert abs(above.free_energy - below.free_energy) < 1e-5
    assert above.residual < 1e-13
    assert pm.theory.replica_stability(beta * (1 - 1e-6), 1.0, **units) > 0.9
    for c, two_phases in ((-3.9, False), (-4.4, True)):
        grid = make_ensemble(np.linspace(2.2, 2.6, 81), 1.0, visible="bit", hidden="gaussian", b=c, c=0.0)
        (_, first), (_, last) = solve_against_gaussian(grid)
        assert bool(np.any(last - first > 1e-3)) == two_phases


@pytest.mark.parametrize("b", [70.0, 100.0, 3000.0])
def test_large_means_move_the_maximum_down(b):
    """As one over the bias: only the field of the mean counts."""
    limit = 1000.0 * pm.beta_max(1.0, visible="gaussian", b=1000.0)
    assert b * pm.beta_max(1.0, visible="gaussian", b=b) == pytest.approx(limit, rel=0.4 / b**2 + 1e-6)


@pytest.mark.parametrize(("visible", "hidden"), [("gaussian", "spin"), ("spin", "gaussian")])
def test_responses_at_the_transition_itself(visible, hidden):
    """At alpha = 1 beta_max is exact, and so is the zero of the determinant."""
    units = {"visible": visible, "hidden": hidden}
    at = pm.beta_max(1.0, **units)
    chi, near = (
        pm.theory.susceptibility(at, 1.0, **units),
        pm.theory.susceptibility(at * (1.0 - 1e-9), 1.0, **units),
    )
    np.testing.assert_allclose(chi, near, atol=1e-7)
    assert pm.theory.layer_correlation_slope(at, 1.0, **units) == -np.inf
    assert pm.theory.overlap_response(at, 1.0, **units) == -np.inf


def test_far_out():
    p = solve_saddle_point(16.0, 1.0, visible="gaussian", hidden="bit", c=-3.0)
    assert p.residual < 1e-12
    with pytest.raises(
        ValueError, match="`beta` times the standard deviation of the Gaussian units must be at most 60"
    ):
        solve_saddle_point(50.0, 1.0, visible=pm.gaussian(2.0), hidden="bit")
    nothing = solve_saddle_point(0.0, 1.0, visible="gaussian", hidden="bit", b=0.3, c=-1.0)
    assert nothing.q_v == pytest.approx(0.09, rel=1e-14)
    assert nothing.Q_v == pytest.approx(1.09, rel=1e-14)
    assert pm.theory.find_beta_max(1.0, visible="gaussian", hidden="bit", c=-8.0).status == "first-order"
