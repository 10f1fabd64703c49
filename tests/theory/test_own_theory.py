"""A unit type that the theory does not know, added from outside the package: one layer, one registration."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.layers.unit_theory import LayerAverages, UnitTheory
from paramagnet.units import Unit

Z = np.linspace(-10.0, 10.0, 241)
WEIGHTS = np.exp(-0.5 * Z * Z) / np.exp(-0.5 * Z * Z).sum()


class Several(Unit):
    """A variable with any few values, all of weight 1."""

    name = "several"

    def __init__(self, *values):
        self.values = tuple(map(float, values))
        self.symmetric = sorted(self.values) == sorted(-x for x in self.values)

    def cumulants(self, field, curvature):
        """``k1`` to ``k4`` and the log-trace; complex arguments carry a derivative."""
        x = np.reshape(self.values, (-1, *(1,) * np.ndim(field)))
        logarithms = x * field + x * x * curvature
        shift = logarithms.real.max(axis=0)
        weights = np.exp(logarithms - shift)
        total = weights.sum(axis=0)
        k1 = (x * weights).sum(axis=0) / total
        k2, k3, fourth = ((((x - k1) ** n) * weights).sum(axis=0) / total for n in (2, 3, 4))
        return k1, k2, k3, fourth - 3.0 * k2 * k2, np.log(total) + shift

    def log_trace(self, field):
        return self.cumulants(field, 0.0)[4]

    def mean(self, field):
        return self.cumulants(field, 0.0)[0]

    def draw(self, field, rng):
        x = np.reshape(self.values, (-1, *(1,) * np.ndim(field)))
        noise = rng.gumbel(size=(len(self.values), *np.shape(field)))
        return np.array(self.values)[(x * field + noise).argmax(axis=0)]

    def log_base(self, states):
        return np.zeros(np.shape(states)[:-1])

    def is_value(self, array):
        return np.isin(array, self.values)


class SeveralLayer(LayerAverages):
    """All averages as plain sums over a grid of ``z``."""

    def __init__(self, unit, bias, qhat, selfhat, gap):
        super().__init__(qhat, selfhat, gap)
        field = np.asarray(bias)[..., None] + np.sqrt(qhat)[..., None] * Z
        self.k1, self.k2, self.k3, self.k4, self.traces = unit.cumulants(field, 0.5 * self.gap[..., None])

    magnetization = cached_property(lambda self: self.k1 @ WEIGHTS)
    overlap = cached_property(lambda self: self.k1**2 @ WEIGHTS)
    self_overlap = cached_property(lambda self: (self.k2 + self.k1**2) @ WEIGHTS)
    variance = cached_property(lambda self: self.k2 @ WEIGHTS)
    squared_variance = cached_property(lambda self: (self.k2**2 @ WEIGHTS).real)
    covariance = cached_property(lambda self: (self.k1 * self.k2) @ WEIGHTS)
    covariance_slope = cached_property(lambda self: (self.k2**2 + self.k1 * self.k3) @ WEIGHTS)
    mixed = cached_property(lambda self: (self.k3 + 2 * self.k1 * self.k2) @ WEIGHTS)
    mixed_slope = cached_property(lambda self: (self.k4 + 2 * (self.k2**2 + self.k1 * self.k3)) @ WEIGHTS)
    third = cached_property(lambda self: self.k3 @ WEIGHTS)
    fourth = cached_property(lambda self: self.k4 @ WEIGHTS)
    overlap_to_selfhat = cached_property(lambda self: (self.k1 * (self.k3 + 2 * self.k1 * self.k2)) @ WEIGHTS)
    log_trace = cached_property(lambda self: self.traces @ WEIGHTS)
    quadrature_error = cached_property(lambda self: np.zeros(np.shape(self.qhat)))


class SeveralTheory(UnitTheory):
    """What the theory asks besides."""

    def __init__(self, unit):
        super().__init__(unit)
        low, high = min(unit.values), max(unit.values)
        self.largest_square = max(low**2, high**2)
        self.largest_variance = 0.25 * (high - low) ** 2
        self.strip = np.pi / (high - low)

    def layer(self, bias, qhat, selfhat, gap, coarseness):
        return SeveralLayer(self.unit, bias, qhat, selfhat, gap)

    def mean(self, field, curvature):
        return self.unit.cumulants(field, curvature)[0]


@pytest.fixture(autouse=True)
def _registered():
    """For these tests only: other ones want the type to be refused."""
    theory_of.register(Several, SeveralTheory.of)
    yield
    theory_of.register(Several, theory_of.dispatch(object))


BITS, DIGITS = Several(0, 1), Several(0, 1, 2)
OTHERS = ("spin", "bit", pm.gaussian(0.5))


@pytest.mark.parametrize("visible", OTHERS, ids=str)
@pytest.mark.parametrize("exchanged", [False, True])
def test_bits_written_anew_are_bits(visible, exchanged):
    """The same equations with another layer: beside spins, bits and Gaussian units, as either layer."""
    order = ("hidden", "visible") if exchanged else ("visible", "hidden")
    ours, own = (dict(zip(order, (visible, unit), strict=True)) for unit in ("bit", BITS))
    biases = {"b": 0.3, "c": -0.7}
    expected, found = (pm.theory.solve_saddle_point(1.3, 0.7, **biases, **units) for units in (ours, own))
    for name in ("q_v", "q_h", "Q_v", "Q_h", "free_energy"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    expected, found = (pm.theory.susceptibility(1.3, 0.7, **biases, **units) for units in (ours, own))
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    expected, found = (pm.theory.find_beta_max(0.7, **biases, **units) for units in (ours, own))
    assert found.status == expected.status
    assert found.beta == pytest.approx(expected.beta, rel=1e-7)
    assert found.stability == pytest.approx(expected.stability, rel=1e-5)


@pytest.mark.parametrize("unit", [DIGITS, Several(-1, 0, 1)], ids=lambda unit: str(unit.values))
@pytest.mark.parametrize("visible", OTHERS, ids=str)
def test_units_of_three_values(unit, visible):
    units = {"visible": visible, "hidden": unit}
    at = pm.theory.solve_saddle_point(0.9, 1.4, b=0.2, c=-0.4, **units)
    step = 1e-4
    low, high = (pm.theory.solve_saddle_point(0.9, 1.4, b=0.2, c=-0.4 + t, **units) for t in (-step, step))
    slope = (low.free_energy - high.free_energy) / (2.0 * step)
    assert slope == pytest.approx(1.4 / 2.4 * at.magnetization_h, rel=1e-6)
    slope = (high.magnetization_h - low.magnetization_h) / (2.0 * step)
    chi = pm.theory.susceptibility(0.9, 1.4, b=0.2, c=-0.4, **units)
    assert chi[1, 1] == pytest.approx(1.4 / 2.4 * slope, rel=1e-6)
    slope = (high.magnetization_v - low.magnetization_v) / (2.0 * step)
    assert chi[0, 1] == pytest.approx(1.0 / 2.4 * slope, rel=1e-5)


def test_a_machine_of_own_units_starts_at_the_scale_of_the_theory():
    found = pm.theory.find_beta_max(0.75, visible="spin", hidden=DIGITS, c=-1.0)
    assert found.status == "maximum"
    betas = found.beta * np.array([0.99, 1.0, 1.01])
    slopes = np.abs(pm.theory.layer_correlation_slope(betas, 0.75, visible="spin", hidden=DIGITS, c=-1.0))
    assert slopes[1] > max(slopes[0], slopes[2])
    rbm = pm.initialize(400, 300, visible="spin", hidden=DIGITS, hidden_bias=-1.0, rng=0)
    assert rbm.weights.std() == pytest.approx(found.beta / np.sqrt(700), rel=0.01)


def test_a_transition_that_is_not_in_closed_form_is_not_made_up():
    """Between symmetric units whose variance depends on the curvature."""
    trit = Several(-1, 0, 1)
    assert pm.theory.find_beta_max(1.0, visible="spin", hidden=trit).status != "transition"


def test_biases_that_differ_between_own_units():
    spread = pm.Biases(np.linspace(-1.0, 0.5, 7))
    expected = pm.beta_max(0.7, b=0.2, c=spread)
    assert pm.beta_max(0.7, b=0.2, hidden=BITS, c=spread) == pytest.approx(expected, rel=1e-7)
