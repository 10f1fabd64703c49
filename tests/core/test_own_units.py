"""A unit type that a user defines: machines, schemes, files, sums, chains and training take it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine, states_of
from own_units import TRIT, own_names
from paramagnet.learning.likelihood import free_energies
from paramagnet.units import BIT, GAUSSIAN, SPIN, UNITS, BinaryUnit, Unit, as_unit, gaussian, register_unit

__all__ = ["own_names"]
pytestmark = pytest.mark.usefixtures("own_names")

PAIRS = [("trit", "bit"), ("spin", "trit"), ("trit", "trit"), ("gaussian", "trit"), ("trit", "gaussian(0.5)")]


# What the package's own types keep


def test_types_keep_their_pickles():
    before = (
        b"\x80\x04\x95@\x00\x00\x00\x00\x00\x00\x00\x8c\x10paramagnet.units\x94\x8c\x0cGaussianUnit\x94\x93\x94)\x81"
        b"\x94}\x94\x8c\x08variance\x94G?\xe0\x00\x00\x00\x00\x00\x00sb."
    )
    assert pickle.dumps(gaussian(0.5), 4) == before
    for unit in (SPIN, BIT, GAUSSIAN, gaussian(0.5), BinaryUnit("lopsided", -0.5, 2.0)):
        text = pickle.dumps(unit, 4)
        assert b"paramagnet.units" in text
        assert pickle.loads(text) == unit


def test_only_units_of_two_values_have_levels():
    assert not any(hasattr(GAUSSIAN, name) for name in ("levels", "low", "high"))
    assert (BIT.levels, BIT.values, GAUSSIAN.values) == ((0.0, 1.0), (0.0, 1.0), None)
    assert (SPIN.bounded, GAUSSIAN.bounded, gaussian(0.5).tail) == (True, False, 0.5)


@pytest.mark.parametrize("unit", [SPIN, BIT, GAUSSIAN, gaussian(0.3)], ids=str)
def test_closed_forms_agree_with_the_defaults_of_every_unit(unit):
    rng = np.random.default_rng(1)
    assert unit.spread == pytest.approx(Unit.spread.fget(unit), rel=1e-7)
    fields = rng.normal(0.0, 2.0, (5, 3))
    centre, half, saturates = unit.response
    mean = centre + half * (np.tanh(half * fields) if saturates else fields)
    np.testing.assert_allclose(unit.mean(fields), mean, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(unit.sum_log_trace(fields), unit.log_trace(fields).sum(1), rtol=1e-13)
    states, weights = rng.normal(size=(7, 4)), rng.normal(size=(4, 3))
    bias, own_bias = rng.normal(size=4), rng.normal(size=3)
    ours, default = np.zeros(7), np.zeros(7)
    unit.subtract_log_weights(ours, states, weights, bias, own_bias)
    Unit.subtract_log_weights(unit, default, states, weights, bias, own_bias)
    np.testing.assert_allclose(ours, default, rtol=1e-13)
    direct = -(states @ bias) - unit.log_trace(states @ weights + own_bias).sum(1)
    np.testing.assert_allclose(ours, direct, rtol=1e-13)


@pytest.mark.parametrize("unit", [SPIN, BIT, BinaryUnit("odd", 3.0, 5.0), GAUSSIAN, gaussian(4.0)], ids=str)
def test_one_way_leads_from_means_to_biases(unit):
    """What `initialize`, Hopfield starts and annealing use: a mean gives the field that has it."""
    rng = np.random.default_rng(2)
    fields = rng.normal(0.0, 0.5, 6) - unit.mean(np.zeros(1)) * 0.2
    np.testing.assert_allclose(unit.field_of_mean(unit.mean(fields), "start"), fields, rtol=1e-9)
    states = unit.draw(np.broadcast_to(fields, (4000, 6)), rng)
    means = states.mean(axis=0)
    np.testing.assert_allclose(unit.mean(unit.bias_from(states)), means, atol=2e-3)
    rbm = pm.initialize(6, 2, visible=unit, scheme="hinton", visible_bias="data", data=states, rng=0)
    np.testing.assert_array_equal(rbm.visible_bias, unit.bias_from(states))


@pytest.mark.parametrize("unit", [SPIN, BIT], ids=str)
def test_constant_columns_have_finite_biases(unit):
    states = np.full((8, 2), unit.high)
    states[:, 1] = unit.low
    bound = np.log(17.0) / (unit.high - unit.low)
    np.testing.assert_allclose(unit.bias_from(states), [bound, -bound], rtol=1e-14)
    means = unit.field_of_mean(states.mean(axis=0), "start") * (unit.high - unit.low)
    np.testing.assert_allclose(means, [np.log(999.0), -np.log(999.0)], rtol=1e-12)


# Names


def test_a_registered_name_is_known_everywhere():
    assert as_unit("trit", "visible") is TRIT
    assert "trit" in UNITS
    with pytest.raises(
        ValueError, match=r"^`hidden` must be a unit type .*'trit'.* takes nothing in brackets"
    ):
        as_unit("trit(3)", "hidden")
    with pytest.raises(ValueError, match=r"^`name` must be a text without brackets, got 'a\(b\)'"):
        register_unit("a(b)", TRIT)


def test_a_name_may_take_a_text_in_brackets():
    def make(text):
        if text is None or not text.isdigit():
            raise ValueError(f"`steps` must be a whole number, got {text!r}.")
        return BinaryUnit(f"step({text})", 0.0, float(text))

    register_unit("step", make)
    try:
        assert as_unit("step(7)", "visible") == BinaryUnit("step(7)", 0.0, 7.0)
        with pytest.raises(
            ValueError, match=r"`visible` must be .*got 'step\(x\)'\. `steps` must be a whole"
        ):
            as_unit("step(x)", "visible")
    finally:
        del UNITS["step"]


def test_units_without_a_name_of_their_own_are_not_saved(tmp_path):
    pretender = BinaryUnit("spin", -2.0, 2.0)  # its name leads to another unit
    with pytest.raises(ValueError, match=r"`visible` must be 'spin', 'bit'.* to be saved, got BinaryUnit"):
        pm.RBM(np.zeros((2, 2)), 0, 0, pretender).save(tmp_path / "m.safetensors")


# The unit of the user's


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_a_machine_of_own_units_is_drawn_and_saved(visible, hidden, tmp_path):
    rbm = pm.initialize(4, 3, visible=visible, hidden=hidden, scheme="xavier", gain=2.0, rng=3)
    assert rbm.weights.std() > 0.0
    rbm.save(tmp_path / "m.safetensors")
    read = pm.RBM.load(tmp_path / "m.safetensors")
    assert (read.visible, read.hidden) == (rbm.visible, rbm.hidden)
    np.testing.assert_array_equal(read.weights, rbm.weights)
    v, h = rbm.visible.draw(np.zeros((2, 4)), np.random.default_rng(0)), np.zeros((2, 3))
    if hidden != "bit":
        assert np.isfinite(rbm.energy(v, h)).all()
    assert pickle.loads(pickle.dumps(rbm)).visible == rbm.visible


def test_free_energies_of_own_units():
    rbm = make_machine("trit", "trit")
    v, h = states_of(TRIT, 4), states_of(TRIT, 3)
    energies = rbm.energy(v[:, None], h)
    expected = -np.log(np.exp(-energies).sum(axis=1))
    np.testing.assert_allclose(rbm.free_energy(v), expected, rtol=1e-12)
    np.testing.assert_allclose(free_energies(rbm, v), expected, rtol=1e-12)


def test_what_is_not_known_of_own_units_is_said():
    with pytest.raises(
        ValueError, match=r"`visible` must be spin, bit, Gaussian, .* units for the theory, got trit"
    ):
        pm.initialize(4, 3, visible="trit", rng=0)
    with pytest.raises(ValueError, match="`data` must be left out for trit units: no field is known"):
        pm.initialize(4, 3, visible="trit", scheme="he", visible_bias="data", data=np.zeros((3, 4)), rng=0)
    rbm = make_machine("trit", "bit")
    with pytest.raises(ValueError, match="no change of variables leads from trit to bit units"):
        rbm.to_bits()
    assert rbm.change_units(hidden="spin")[0].visible == TRIT
    with pytest.raises(ValueError, match=r"`v` must hold the values of trit units; found 0\.5"):
        rbm.free_energy(np.full(4, 0.5))
    with pytest.raises(ValueError, match=r"`clamp` must hold the values of trit units, or NaN .* found 3"):
        pm.sample(rbm, 2, clamp=[3.0, np.nan, np.nan, np.nan], rng=0)
