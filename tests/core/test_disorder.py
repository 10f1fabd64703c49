"""Averages over random weights against the theory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet import simulation as disorder
from paramagnet.cli import app
from paramagnet.simulation import simulate_layer_correlation


def test_enumerated_average_is_the_difference_of_magnetizations():
    """For one machine: d<sum v>/dc at a bias b, differentiated in b at zero, by differences."""
    rng = np.random.default_rng(0)
    w = rng.normal(0.0, 0.5, (4, 3))

    step, c = 1e-3, -0.5
    # one machine is not symmetric: average over all flips of visible units with their rows
    flips = np.array(np.meshgrid(*[[1.0, -1.0]] * 4)).reshape(4, -1).T
    by_flips = 0.0
    for flip in flips:
        rbm = pm.RBM(flip[:, None] * w, np.zeros(4), np.full(3, c))
        by_flips += disorder._enumerated(rbm, disorder._Answer(0), 0) / 7 / len(flips)

    def mean_flipped(b, c):
        total = 0.0
        for flip in flips:
            rbm = pm.RBM(flip[:, None] * w, np.full(4, b), np.full(3, c))
            total += pm.exact.exact_moments(rbm).visible.sum() / 7
        return total / len(flips)

    expected = sum(
        s * t * mean_flipped(s * step, c + t * step) for s in (1, -1) for t in (1, -1)
    ) / (4 * step**2)  # fmt: skip
    assert by_flips == pytest.approx(expected, rel=1e-4)


def test_small_machines_approach_the_theory():
    found = simulate_layer_correlation(10, 10, n_draws=600, beta=[0.6, 0.8], rng=1)
    assert found.method == "enumerated"
    assert np.allclose(found.value, found.theory, rtol=0.05)
    assert np.isnan(found.maximum)  # at the end of the grid


def test_maximum_lies_above_beta_max_by_the_finite_size_shift():
    found = simulate_layer_correlation(8, 8, n_draws=1500, rng=2)
    assert 1.0 < found.maximum / found.beta_max < 1.2
    assert 0.0 < found.maximum_error < 0.05 * found.beta_max


def test_sampled_and_enumerated_averages_agree(monkeypatch):
    options = {"hidden_bias": -1.0, "n_draws": 4, "beta": [1.0, 1.6], "rng": 3}
    exact = simulate_layer_correlation(12, 9, **options)
    monkeypatch.setattr(disorder, "LARGEST_ENUMERATED", 0)
    sampled = simulate_layer_correlation(12, 9, **options)
    assert (exact.method, sampled.method) == ("enumerated", "sampled")
    assert np.allclose(sampled.value, exact.value, atol=0.01)


@pytest.mark.parametrize(
    ("visible", "hidden", "visible_bias", "hidden_bias"),
    [
        ("bit", "bit", 0.0, 0.0),
        ("bit", "spin", 0.0, 0.0),
        ("spin", "spin", 0.0, 0.5),
        ("gaussian", "bit", 0.0, 0.0),
        ("gaussian", "bit", 0.3, -1.0),
        ("bit", "gaussian(0.5)", -0.5, 0.0),
        ("gaussian(0.5)", "spin", 0.0, 0.5),
        ("gaussian", "spin", 0.5, 0.0),
        ("gaussian", "spin", 0.4, 0.3),
        ("spin", "gaussian", 0.5, 0.0),
    ],
)
def test_other_units(visible, hidden, visible_bias, hidden_bias, monkeypatch):
    options = {"visible": visible, "hidden": hidden, "n_draws": 300, "beta": [0.3, 0.6], "rng": 4}
    options |= {"visible_bias": visible_bias, "hidden_bias": hidden_bias}
    found = simulate_layer_correlation(10, 10, **options)
    assert np.allclose(
        found.value, found.theory, atol=5 * found.error.max() + 0.02 * np.abs(found.theory).max()
    )
    monkeypatch.setattr(disorder, "LARGEST_ENUMERATED", 0)
    few = simulate_layer_correlation(10, 10, **(options | {"n_draws": 2}))
    monkeypatch.undo()
    exact = simulate_layer_correlation(10, 10, **(options | {"n_draws": 2}))
    assert np.allclose(few.value, exact.value, atol=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden": "spin"}, "`hidden_bias` must not be zero where both layers are symmetric"),
        ({"n_draws": 1}, "`n_draws` must"),
        ({"beta": [-1.0]}, "`beta` must"),
        ({"visible": "gaussian", "hidden": "gaussian", "hidden_bias": 0.5}, "`hidden` must be spin or bit"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(ValueError, match=words):
        simulate_layer_correlation(5, 5, **options)


@pytest.mark.parametrize("exchanged", [False, True])
def test_answer_of_a_gaussian_layer_by_differences(exchanged):
    """The slope of the layer correlation: how variances of units answer to the other layer's bias."""
    rng = np.random.default_rng(7)
    w, unit = rng.normal(0.0, 0.6, (3, 4)), pm.gaussian(0.7)
    spins = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T

    def variances(c):
        fields = spins @ w.T
        p = np.exp(c * spins.sum(axis=1) + 0.5 * unit.variance * np.sum(fields**2, axis=1))
        means = unit.variance * fields
        return np.sum(p @ means**2 / p.sum() - (p @ means / p.sum()) ** 2)

    c, step = 0.4, 1e-5
    expected = (variances(c + step) - variances(c - step)) / (2.0 * step)
    rbm = pm.RBM(w, np.zeros(3), np.full(4, c), unit, "spin")
    if exchanged:
        rbm = pm.RBM(w.T, np.full(4, c), np.zeros(3), "spin", unit)
    answer = disorder._choose_answer(rbm.visible, rbm.hidden, rbm.visible_bias[0], rbm.hidden_bias[0])
    assert disorder._enumerated(rbm, answer, 0) == pytest.approx(expected, rel=1e-7)
    sampled = np.mean([disorder._sampled(rbm, answer, seed) for seed in range(3)])
    assert sampled == pytest.approx(expected, rel=0.15)
    assert disorder._enumerated(rbm, answer._replace(square=False), 0) != pytest.approx(expected, rel=0.3)


def test_what_takes_long_is_drawn_less_often():
    draws = [disorder._default_draws(n, n, n, gaussian=True) for n in (6, 10, 14)]
    assert draws[0] > draws[1] > draws[2] >= 50
    assert disorder._default_draws(14, 14, 14, gaussian=False) > 5 * draws[2]


def test_command_line():
    sizes = ["beta-max", "--visible-units", "5", "--hidden-units", "4", "--check"]
    shown = CliRunner().invoke(app, sizes)
    assert shown.exit_code == 0
    assert "random machines of these sizes, enumerated" in shown.output
    assert "Its maximum: 1." in shown.output
    values = json.loads(CliRunner().invoke(app, [*sizes, "--json"]).stdout)
    assert values["simulation"]["maximum"] > values["beta_max"]
    assert len(values["simulation"]["theory"]) == 12


@pytest.mark.parametrize(("c", "tolerance"), [(0.0, 1e-3), (-2.0, 3e-3), (-5.0, 1e-2)])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_the_maximum_of_a_curve_is_placed_where_it_is(alpha, c, tolerance):
    """On the theory's own curve. A fit to wider surroundings puts sharp peaks 4 % too high."""
    top = pm.beta_max(alpha, c=c)
    beta = top * np.array(disorder.GRID)
    values = np.array([pm.theory.layer_correlation_slope(x, alpha, c=c) for x in beta])
    assert disorder.peak_of(beta, values) == pytest.approx(top, rel=tolerance)
    assert np.isnan(disorder.peak_of(beta[:5], values[:5]))  # it still grows at the end
