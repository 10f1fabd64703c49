"""Initial machines: scale, biases, reproducibility, the comparison of schemes, and bad input by its words."""

from __future__ import annotations

import numpy as np
import pytest

import paramagnet as pm


@pytest.mark.parametrize(
    ("scheme", "sigma"),
    [
        ("layer-correlation", pm.beta_max(500 / 784, c=-5.0) / np.sqrt(1284)),
        ("xavier", np.sqrt(2 / 1284)),
        ("he", np.sqrt(2 / 784)),
        ("lecun", np.sqrt(1 / 784)),
        ("hinton", 0.01),
    ],
)
def test_weights_have_the_scale_of_the_scheme(scheme, sigma):
    rbm = pm.initialize(784, 500, hidden_bias=-5.0, scheme=scheme, rng=0)
    assert pm.scheme_std(scheme, 784, 500, hidden_bias=-5.0) == pytest.approx(sigma, rel=1e-12)
    assert rbm.weights.shape == (784, 500)
    # relative error of a standard deviation from N draws: 1/sqrt(2N) = 0.0011
    assert rbm.weights.std() == pytest.approx(sigma, rel=0.006)
    assert abs(rbm.weights.mean()) < 5 * sigma / np.sqrt(rbm.weights.size)
    np.testing.assert_array_equal(rbm.hidden_bias, np.full(500, -5.0))
    np.testing.assert_array_equal(rbm.visible_bias, np.zeros(784))


def test_weights_are_normal():
    """Fourth moment and tails: a uniform draw of the same variance fails both."""
    x = pm.initialize(300, 300, rng=1).weights.ravel() / pm.weight_std(300, 300)
    assert np.mean(x**4) == pytest.approx(3.0, abs=0.1)
    assert np.mean(np.abs(x) > 2.0) == pytest.approx(0.0455, abs=0.003)
    uniform = np.random.default_rng(0).uniform(-np.sqrt(3), np.sqrt(3), x.size)
    assert abs(np.mean(uniform**4) - 3.0) > 0.1


def test_gain_multiplies_and_the_seed_decides():
    one = pm.initialize(20, 10, rng=3)
    quarter = pm.initialize(20, 10, gain=0.25, rng=3)
    np.testing.assert_allclose(quarter.weights, 0.25 * one.weights, rtol=1e-15)
    np.testing.assert_array_equal(pm.initialize(20, 10, rng=np.random.default_rng(3)).weights, one.weights)
    assert not np.array_equal(pm.initialize(20, 10, rng=4).weights, one.weights)
    assert not np.array_equal(pm.initialize(20, 10).weights, pm.initialize(20, 10).weights)


def test_xavier_is_the_special_case_that_the_paper_names():
    assert pm.weight_std(64, 64, hidden="spin") == pytest.approx(np.sqrt(2 / 128), rel=1e-14)
    assert pm.weight_std(100, 25, hidden="spin") == pytest.approx((100 * 25) ** -0.25, rel=1e-14)


def test_one_visible_bias_enters_the_theory_many_do_not():
    with_bias = pm.initialize(50, 50, visible_bias=0.7, rng=0)
    expected = pm.beta_max(1.0, b=0.7) / pm.beta_max(1.0)
    plain = pm.initialize(50, 50, rng=0)
    np.testing.assert_allclose(with_bias.weights, expected * plain.weights, rtol=1e-12)
    each = np.linspace(-1, 1, 50)
    many = pm.initialize(50, 50, visible_bias=each, rng=0)
    np.testing.assert_array_equal(many.weights, plain.weights)
    np.testing.assert_array_equal(many.visible_bias, each)


@pytest.mark.parametrize(("visible", "low"), [("spin", -1.0), ("bit", 0.0)])
def test_biases_from_data_give_the_smoothed_means(visible, low):
    rng = np.random.default_rng(5)
    data = np.where(rng.random((200, 6)) < np.linspace(0.1, 0.9, 6), 1.0, low)
    data[:, 0] = 1.0  # a constant column
    rbm = pm.initialize(6, 4, visible=visible, visible_bias="data", data=data, rng=0)
    assert np.isfinite(rbm.visible_bias).all()
    high = (data == 1.0).sum(axis=0)
    probability = 1.0 / (1.0 + np.exp(-(1.0 - low) * rbm.visible_bias))
    np.testing.assert_allclose(probability, (high + 0.5) / 201.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_visible": 0}, "`n_visible` must be a positive integer, got 0"),
        ({"n_hidden": -3}, "`n_hidden` must be a positive integer, got -3"),
        ({"n_hidden": 2.5}, "`n_hidden` must be a positive integer, got 2.5"),
        ({"n_visible": True}, "`n_visible` must be a positive integer, got True"),
        ({"scheme": "glorot"}, "`scheme` must be one of 'layer-correlation', 'xavier', 'he'.*got 'glorot'"),
        ({"gain": -1.0}, "`gain` must be zero or positive, got -1"),
        ({"gain": float("nan")}, "`gain` must be finite, got nan"),
        ({"visible": "ising"}, "`visible` must be a unit type \\('spin', 'bit', 'gaussian'"),
        ({"hidden": 3}, "`hidden` must be a unit type"),
        ({"hidden_bias": [0.0, 1.0]}, "`hidden_bias` must be a single number"),
        ({"hidden_bias": float("inf")}, "`hidden_bias` must be finite, got inf"),
        ({"visible_bias": [0.0, 1.0]}, "one for each of the 20 visible units, got shape \\(2,\\)"),
        ({"visible_bias": "means"}, '`visible_bias` must be a number, an array or "data"'),
        ({"visible_bias": "data"}, 'needs the data: pass `data=`'),
        ({"data": np.ones((3, 20))}, "`data` is used with `visible_bias=\"data\"` only"),
        ({"rng": "seed"}, "`rng` must be None, a non-negative integer or a numpy Generator"),
        ({"rng": -1}, "`rng` must be None, a non-negative integer"),
    ],
)  # fmt: skip
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        pm.initialize(**({"n_visible": 20, "n_hidden": 10} | arguments))


def test_warnings_of_the_theory_reach_the_caller():
    with pytest.warns(pm.theory.ReplicaSymmetryWarning, match="unstable") as caught:
        pm.initialize(30, 30, hidden_bias=-15.0, rng=0)
    assert caught[0].filename == __file__
    with pytest.warns(pm.theory.ReplicaSymmetryWarning, match="unstable") as caught:
        pm.scheme_std("layer-correlation", 30, 30, hidden_bias=-15.0)
    assert caught[0].filename == __file__


def test_schemes_at_784_x_500_where_other_packages_were_measured():
    reports = {report.name: report for report in pm.compare_schemes(784, 500)}
    critical = {"rbms 0.5": 0.0006, "scikit-learn": 0.06, "learnergy": 0.06, "QuCumber": 0.22,
                "PyDeep": 0.99, "D-Wave plugin 0.4": 2.5}  # fmt: skip
    for name, ratio in critical.items():
        assert reports[name].to_critical == pytest.approx(ratio, rel=0.06)
    ours = reports["layer-correlation"]
    assert ours.to_ours == pytest.approx(1.0, abs=1e-9)
    assert ours.correlation == pytest.approx(1.0, abs=1e-9)
    assert all(
        report.correlation <= 1.0 + 1e-9 for report in reports.values() if report.name != "D-Wave plugin 0.4"
    )
    assert reports["D-Wave plugin 0.4"].phase == "spin glass"
    assert np.isnan(reports["D-Wave plugin 0.4"].correlation)
    assert reports["hinton"].phase == "replica symmetric"


def test_schemes_for_two_spin_layers_know_the_transition():
    reports = {report.name: report for report in pm.compare_schemes(100, 25, hidden="spin")}
    assert reports["layer-correlation"].to_critical == pytest.approx(1.0, rel=1e-12)
    assert reports["hinton"].phase == "paramagnet"
    assert reports["xavier"].phase == "paramagnet"  # sqrt(2/125) < (2500)**-0.25
    assert reports["xavier"].q_v == 0.0
