"""Centred learning: gradients in centred coordinates, symmetries, states, and what it refuses."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import paramagnet as pm
from conftest import draw_data, make_machine
from own_classes import RMSprop
from paramagnet.layout import Layout
from paramagnet.learning.centring import Centre, Centring, hidden_factor
from paramagnet.learning.gradients.summed import exact_gradient

PAIRS = [
    ("spin", "bit"),
    ("bit", "spin"),
    ("spin", "spin"),
    ("bit", "bit"),
    ("gaussian", "bit"),
    ("gaussian", "spin"),
    ("gaussian(0.5)", "bit"),
    ("spin", "gaussian"),
    ("bit", "gaussian(0.3)"),
]


def points_for(unit, n_visible=4, n_points=17):
    """Points whose means are not those of units without field."""
    rng = np.random.default_rng(3)
    if unit.startswith("gaussian"):
        return 0.4 * rng.normal(size=(n_points, n_visible)) + np.linspace(-0.3, 0.8, n_visible)
    return np.where(
        rng.random((n_points, n_visible)) < np.linspace(0.1, 0.7, n_visible),
        1.0,
        pm.units.find_unit(unit, "unit").values[0],
    )


PAIRS_OF_ANY_UNITS = [
    *PAIRS,
    ("categorical(3)", "bit"),
    ("categorical(3)", "spin"),
    ("bit", "categorical(3)"),
    ("spin", "categorical(4)"),
    ("categorical(3)", "categorical(2)"),
    ("spin", "relu"),
    ("bit", "relu"),
    ("categorical(3)", "relu"),
    ("spin", "drelu"),
    ("bit", "drelu"),
    ("relu", "bit"),
    ("relu", "spin"),
    ("drelu", "bit"),
    ("drelu", "spin"),
    ("gaussian", "categorical(3)"),
    ("categorical(3)", "gaussian"),
    ("categorical(3)", "drelu"),
    ("relu", "categorical(3)"),
    ("drelu", "categorical(3)"),
]


def labels_or_points(unit):
    """Points for units of any type."""
    rng = np.random.default_rng(4)
    if unit.startswith("categorical"):
        return rng.choice(3, size=(17, 4), p=(0.2, 0.3, 0.5)).astype(float)
    if unit.endswith("relu"):
        return rng.exponential(0.6, size=(17, 4)) + np.linspace(0.0, 0.5, 4)
    return points_for(unit)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS_OF_ANY_UNITS)
def test_the_gradient_is_that_of_the_likelihood_in_centred_coordinates(visible, hidden):
    """A step of plain ascent at rate 1 moves the centred coordinates by the finite differences in them.

    Machines of categorical units are compared in the zero-sum gauge.
    """
    points = labels_or_points(visible)
    unit = pm.units.find_unit(visible, "visible")
    rbm = pm.initialize(4, 3, visible=visible, hidden=hidden, scheme="hinton", gain=20.0, rng=0)
    layout = Layout.of(rbm)
    start = layout.flatten(rbm) + 0.2 * np.random.default_rng(1).normal(size=layout.size)
    layout.fix_gauge(start)
    rbm = layout.machine(start)
    result = pm.train(
        rbm, points, epochs=1, gradient=pm.Exact(), optimizer=pm.SGD(1.0), centred=True, evaluate=[]
    )
    mu, lam = unit.column_means(points), result.state.offsets
    if layout.hidden.width == 1 and not layout.hidden.parameters:
        np.testing.assert_allclose(lam, rbm.mean_h_given_v(points).mean(axis=0), atol=1e-12)

    def change(vector, sign):
        """To centred coordinates, or back."""
        found = np.array(vector)
        weights, visible_bias, hidden_bias = layout.split(found)
        visible_bias += sign * (weights @ lam)
        hidden_bias += sign * (mu @ weights)
        return found

    before, step = change(layout.flatten(rbm), 1.0), 1e-5

    def likelihood(vector):
        return pm.log_likelihood(layout.machine(change(vector, -1.0)), points).value

    slopes = [
        (likelihood(before + step * axis) - likelihood(before - step * axis)) / (2.0 * step)
        for axis in np.eye(layout.size)
    ]
    wanted = change(before + slopes, -1.0)
    layout.fix_gauge(wanted)
    np.testing.assert_allclose(result.state.parameters, wanted, atol=1e-6)
    plain = pm.train(rbm, points, epochs=1, gradient=pm.Exact(), optimizer=pm.SGD(1.0), evaluate=[])
    assert abs(plain.state.parameters - wanted).max() > 1e-3  # the plain step is another one


# The plain run as a special case


@dataclass(frozen=True)
class NoOffsets(Centring):
    """Centred learning around zero: the coordinates are the plain ones."""

    def at(self, layout, points, optimizer, weights_of_points=None):
        return ZeroCentre(self, np.zeros(layout.n_visible), 1.0)


class ZeroCentre(Centre):
    def follow(self, offsets, batch_means):
        return np.zeros_like(batch_means)


@pytest.mark.parametrize(
    "optimizer", [pm.SGD(0.05), pm.SGD(0.05, momentum=0.7), pm.Adam(0.01), RMSprop(0.01)]
)
@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 2, 3), pm.CD(1)])
@pytest.mark.parametrize(("visible", "hidden"), [("bit", "bit"), ("spin", "bit"), ("gaussian", "spin")])
def test_around_zero_it_is_the_plain_run_bit_for_bit(optimizer, gradient, visible, hidden):
    rbm, points = make_machine(visible, hidden), points_for(visible)
    options = {"epochs": 3, "gradient": gradient, "optimizer": optimizer, "batch_size": 6, "rng": 0}
    options |= {"weight_decay": 0.03, "evaluate": []}
    plain = pm.train(rbm, points, **options).state
    around_zero = pm.train(rbm, points, centred=NoOffsets(), **options).state
    np.testing.assert_array_equal(around_zero.parameters, plain.parameters)
    for found, wanted in zip(around_zero.optimizer_state.slots, plain.optimizer_state.slots, strict=True):
        np.testing.assert_array_equal(found, wanted)


# Symmetries: names of values do not matter


def relabelled(rbm, flipped):
    """The machine in which the values of some visible units are exchanged: the same distribution."""
    low, high = rbm.visible.values
    sign = np.where(flipped, -1.0, 1.0)
    shift = np.where(flipped, low + high, 0.0)
    return pm.RBM(
        sign[:, None] * rbm.weights,
        sign * rbm.visible_bias,
        rbm.hidden_bias + shift @ rbm.weights,
        rbm.visible,
        rbm.hidden,
    )


def likelihoods(rbm, points, **options):
    result = pm.train(
        rbm, points, epochs=25, gradient=pm.Exact(), evaluate=1, batch_size=10, rng=1, **options
    )
    return result.history.log_likelihood


@pytest.mark.parametrize("optimizer", [pm.Adam(0.05), pm.SGD(0.2), pm.SGD(0.1, momentum=0.5)])
@pytest.mark.parametrize("unit", ["spin", "bit"])
@pytest.mark.parametrize("hidden", ["bit", "spin"])
def test_relabelling_values_changes_no_likelihood(optimizer, unit, hidden):
    rbm, points = make_machine(unit, hidden), points_for(unit)
    flipped = np.array([True, False, True, False])
    mirrored = np.where(flipped, sum(rbm.visible.values) - points, points)
    other = relabelled(rbm, flipped)
    options = {"optimizer": optimizer, "weight_decay": 0.02}
    found, wanted = (
        likelihoods(machine, data, centred=True, **options)
        for machine, data in ((other, mirrored), (rbm, points))
    )
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    plain = likelihoods(other, mirrored, **options) - likelihoods(rbm, points, **options)
    if unit == "bit":  # the plain gradient depends on which value is called 1
        assert abs(plain).max() > 1e-3
    else:
        np.testing.assert_allclose(plain, 0.0, atol=1e-9)


@pytest.mark.parametrize("hidden", ["bit", "spin"])
def test_relabelling_hidden_values_changes_no_likelihood(hidden):
    rbm, points = make_machine("bit", hidden), points_for("bit")
    flipped = relabelled(
        pm.RBM(rbm.weights.T, rbm.hidden_bias, rbm.visible_bias, hidden, "bit"), np.ones(3, bool)
    )
    other = pm.RBM(flipped.weights.T, flipped.hidden_bias, flipped.visible_bias, "bit", hidden)
    found, wanted = (likelihoods(machine, points, centred=True) for machine in (other, rbm))
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_decay_keeps_the_means_of_units_without_interactions():
    """Where only decay moves the weights, ``b + w lam`` and ``c + w^T mu`` stay."""
    rbm, points = make_machine("bit", "bit"), points_for("bit")

    @dataclass(frozen=True)
    class Still:
        learning_rate: float = 0.1

        def start(self, size):
            return pm.SGD(0.1).start(size)

        def step(self, state, gradient):
            return np.zeros_like(gradient), replace(state, n_steps=state.n_steps + 1)

    result = pm.train(rbm, points, epochs=1, optimizer=Still(), weight_decay=2.0, centred=True, evaluate=[])
    mu, lam, after = points.mean(axis=0), result.state.offsets, result.rbm
    np.testing.assert_allclose(after.weights, 0.8 * rbm.weights, atol=1e-15)
    np.testing.assert_allclose(
        after.visible_bias + after.weights @ lam, rbm.visible_bias + rbm.weights @ lam, atol=1e-15
    )
    np.testing.assert_allclose(
        after.hidden_bias + mu @ after.weights, rbm.hidden_bias + mu @ rbm.weights, atol=1e-15
    )


# The factor on the hidden biases


def test_the_factor_counts_means_as_those_of_spins():
    means = np.array([0.1, 0.9, 0.5, 0.0])
    spins = 2.0 * means - 1.0
    assert hidden_factor(Layout(4, 2, pm.BIT, pm.BIT), means) == pytest.approx(0.8 + 0.8 + 0.0 + 1.0)
    assert hidden_factor(Layout(4, 2, pm.SPIN, pm.BIT), spins) == pytest.approx(2.6)
    levels = pm.units.BinaryUnit("levels", 2.0, 5.0)
    assert hidden_factor(Layout(4, 2, levels, pm.BIT), 2.0 + 3.0 * means) == pytest.approx(2.6)
    assert hidden_factor(Layout(2, 2, pm.gaussian(4.0), pm.BIT), np.array([3.0, -1.0])) == pytest.approx(2.0)
    assert hidden_factor(Layout(4, 2, pm.SPIN, pm.BIT), 0.1 * spins) == 1.0


def test_the_factor_moves_hidden_biases_with_adam_only():
    rbm, points = make_machine("bit", "bit"), points_for("bit")
    layout, k = Layout.of(rbm), hidden_factor(Layout.of(rbm), points.mean(axis=0))
    assert k > 1.2

    def hidden_step(optimizer, centred):
        options = {"epochs": 1, "optimizer": optimizer, "evaluate": []}
        result = pm.train(rbm, points, centred=centred, **options)
        mu = points.mean(axis=0)
        return result.rbm.hidden_bias - rbm.hidden_bias + mu @ (result.rbm.weights - rbm.weights)

    slope = layout.split(layout.flatten(exact_gradient(rbm, points)))[2]
    for optimizer, centred, factor in [
        (pm.Adam(0.01), True, k),
        (pm.Adam(0.01), Centring(factor=3.0), 3.0),
        (pm.Adam(0.01), Centring(factor=1.0), 1.0),
    ]:
        np.testing.assert_allclose(hidden_step(optimizer, centred), 0.01 * factor * np.sign(slope), rtol=1e-4)
    np.testing.assert_allclose(hidden_step(pm.SGD(0.01), True), 0.01 * slope, rtol=1e-9)
    np.testing.assert_allclose(hidden_step(pm.SGD(0.01), Centring(factor=2.0)), 0.02 * slope, rtol=1e-9)


def test_the_running_mean_contains_the_latest_batch():
    rbm, points = make_machine("spin", "bit"), points_for("spin")
    steps = pm.training_steps(
        rbm, points, epochs=2, batch_size=5, centred=Centring(rate=0.3), evaluate=[], rng=0
    )
    states = [next(steps) for _ in range(5)]
    assert states[0].offsets is None
    expected = None
    for before, after in itertools.pairwise(states):
        order = (after.order if after.order is not None else before.order)[
            before.batch * 5 : before.batch * 5 + 5
        ]
        batch = before.rbm.mean_h_given_v(points[order]).mean(axis=0)
        expected = batch if expected is None else 0.7 * expected + 0.3 * batch
        np.testing.assert_allclose(after.offsets, expected, atol=1e-14)


# States, refusals, odd data


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 2), pm.CD(1)])
@pytest.mark.parametrize("visible", ["bit", "gaussian"])
def test_resuming_bit_for_bit(tmp_path, gradient, visible):
    rbm, points = make_machine(visible, "bit"), points_for(visible)
    options = {"epochs": 3, "gradient": gradient, "batch_size": 5, "centred": True, "evaluate": []}
    whole = list(pm.training_steps(rbm, points, rng=4, **options))
    for index in (0, 6):
        whole[index].save(tmp_path / "run.safetensors")
        loaded = pm.load_checkpoint(tmp_path / "run.safetensors")
        rest = list(pm.training_steps(loaded, points, **options))
        for found, wanted in zip(rest, whole[index + 1 :], strict=True):
            np.testing.assert_array_equal(found.parameters, wanted.parameters)
            np.testing.assert_array_equal(found.offsets, wanted.offsets)


def test_going_on_with_another_setting_is_refused():
    rbm, points = make_machine("bit", "bit"), points_for("bit")
    plain = pm.train(rbm, points, epochs=1).state
    centred = pm.train(rbm, points, epochs=1, centred=True).state
    assert "centred" not in plain.settings
    assert plain.offsets is None
    for state, option, words in [
        (plain, True, "with, False, got Centring"),
        (centred, False, r"Centring\(rate=0.1, factor=None\), got False"),
        (centred, Centring(rate=0.2), r"rate=0.1, factor=None\), got Centring\(rate=0.2"),
    ]:
        with pytest.raises(ValueError, match=f"`centred` must be that of the run to go on.*{words}"):
            pm.train(state, points, epochs=2, centred=option)
    assert pm.train(centred, points, epochs=2, centred=Centring()).finished


def test_damaged_offsets_are_refused(tmp_path):
    rbm, points = make_machine("bit", "bit"), points_for("bit")
    state = pm.train(rbm, points, epochs=1, centred=True).state
    for offsets in (np.zeros(4), np.array([0.0, np.nan, 0.0])):
        replace(state, offsets=offsets).save(tmp_path / "run.safetensors")
        with pytest.raises(ValueError, match=r"damaged checkpoint.*offsets must be 3 finite numbers"):
            pm.load_checkpoint(tmp_path / "run.safetensors")


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 2)])
@pytest.mark.parametrize("unit", ["bit", "spin"])
def test_constant_features_train(gradient, unit):
    points = draw_data(30, 6, pm.units.find_unit(unit, "unit").values)
    points[:, 1], points[:, 4] = points.min(), points.max()
    rbm = pm.initialize(6, 4, visible=unit, visible_bias="data", data=points, rng=0)
    result = pm.train(rbm, points, epochs=60, gradient=gradient, batch_size=10, centred=True, rng=0)
    assert np.isfinite(result.state.parameters).all()
    assert result.history.log_likelihood[-1] > result.history.log_likelihood[0]


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, np.nan, "much", None])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="`rate` must be"):
        Centring(rate=rate)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, "two"])
def test_bad_factors(factor):
    with pytest.raises(ValueError, match="`factor` must be"):
        Centring(factor=factor)


@pytest.mark.parametrize("centred", [None, 1, "auto", Centring, 0.1])
def test_bad_choices(centred):
    with pytest.raises(ValueError, match="`centred` must be True, False or a `Centring`, got"):
        pm.train(make_machine("bit", "bit"), points_for("bit"), epochs=1, centred=centred)
