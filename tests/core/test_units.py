"""Unit types: cumulants against multiprecision numbers, and what a complex field means."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from paramagnet.units import BIT, GAUSSIAN, SPIN, BinaryUnit, GaussianUnit, as_unit, gaussian

LOPSIDED = BinaryUnit("lopsided", -0.5, 2.0)
UNITS = [SPIN, BIT, LOPSIDED]
FIELDS = [-800.0, -300.0, -30.0, -7.25, -1.0, -1e-3, -1e-9, 0.0, 1e-9, 0.4, 3.0, 12.0, 30.0, 300.0, 800.0]


def higher_cumulants(unit, k1, k2):
    k3 = unit.third_cumulant(k1, k2)
    return k3, unit.fourth_cumulant(k1, k2, k3)


def moments(unit, field, curvature):
    """Cumulants k1..k4 and the log-trace from their definition, a sum over two states."""
    low, high, field, curvature = (mpf(x) for x in (unit.low, unit.high, field, curvature))
    weights = [mp.exp(field * x + curvature * x * x) for x in (low, high)]
    total = sum(weights)
    k1 = sum(w * x for w, x in zip(weights, (low, high), strict=True)) / total
    central = [
        sum(w * (x - k1) ** r for w, x in zip(weights, (low, high), strict=True)) / total for r in (2, 3, 4)
    ]
    return k1, central[0], central[1], central[2] - 3 * central[0] ** 2, mp.log(total)


def assert_close(ours, true, relative):
    assert abs(mpf(float(ours)) - true) <= relative * abs(true) + mpf("1e-320"), (ours, true)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("curvature", [0.0, -2.5, 4.0])
def test_cumulants_have_full_relative_accuracy(unit, curvature):
    k1, k2 = unit.cumulants(np.array(FIELDS), curvature)
    k3, k4 = higher_cumulants(unit, k1, k2)
    with mp.workdps(800):  # k2 at a field of 800 is exp(-1600) of one
        for i, field in enumerate(FIELDS):
            true = moments(unit, field, curvature)
            # the log-odds themselves are rounded, which their exponential magnifies
            rounding = 4e-16 * (4 + 3 * abs(field) + 4 * abs(curvature))
            if unit is LOPSIDED:  # k1 passes through zero at a field other than zero
                assert abs(k1[i] - true[0]) <= rounding
            else:
                assert_close(k1[i], true[0], rounding)
            assert_close(k2[i], true[1], rounding)
            # polynomials in the first two: absolute accuracy relative to k2
            assert abs(k3[i] - true[2]) <= 3 * rounding * true[1] + mpf("1e-320")
            assert abs(k4[i] - true[3]) <= 9 * rounding * true[1] + mpf("1e-320")


@pytest.mark.parametrize("field", [-30.0, -20.0, 1e-9, 20.0])
def test_small_means_do_not_cancel(field):
    with mp.workdps(60):
        assert_close(BIT.cumulants(np.array(field))[0], 1 / (1 + mp.exp(-mpf(field))), 3e-16)
        assert_close(SPIN.cumulants(np.array(field))[0], mp.tanh(mpf(field)), 3e-16)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_log_trace_and_mean(unit):
    trace = unit.log_trace(np.array(FIELDS), 0.75)
    mean = unit.mean(np.array(FIELDS))
    with mp.workdps(800):
        for i, field in enumerate(FIELDS):
            true = moments(unit, field, 0.75)[4]
            assert abs(trace[i] - true) <= 1e-15 * (1 + abs(true))
            assert abs(mean[i] - moments(unit, field, 0.0)[0]) <= 3e-15


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_cumulants_are_derivatives_of_the_log_trace(unit):
    field, step = np.linspace(-5, 5, 41), 1e-3

    def difference(f):
        return (8 * (f(field + step) - f(field - step)) - (f(field + 2 * step) - f(field - 2 * step))) / (
            12 * step
        )

    k1, k2 = unit.cumulants(field, 0.3)
    k3, k4 = higher_cumulants(unit, k1, k2)
    assert np.allclose(k1, difference(lambda h: unit.log_trace(h, 0.3)), rtol=0, atol=1e-10)
    assert np.allclose(k2, difference(lambda h: unit.cumulants(h, 0.3)[0]), rtol=0, atol=1e-9)
    assert np.allclose(k3, difference(lambda h: unit.cumulants(h, 0.3)[1]), rtol=0, atol=1e-9)

    def third(h):
        return higher_cumulants(unit, *unit.cumulants(h, 0.3))[0]

    assert np.allclose(k4, difference(third), rtol=0, atol=1e-8)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_an_imaginary_part_is_an_infinitesimal_change(unit):
    """The imaginary part of field and curvature comes out as the directional derivative, of the cumulants and
    of polynomials in them, and leaves the real part untouched bit for bit."""
    field = np.array([-40.0, -3.0, -0.2, 0.0, 0.7, 5.0, 40.0])
    curvature, tiny, step = 0.4, 1e-25, 1e-4
    for in_field, in_curvature in itertools.product((1.0, -0.6), (0.0, 1.7)):
        moved = unit.cumulants(field + 1j * tiny * in_field, curvature + 1j * tiny * in_curvature)
        plain = unit.cumulants(field, curvature)
        ahead = [
            unit.cumulants(field + t * in_field, curvature + t * in_curvature)
            for t in (-2 * step, -step, step, 2 * step)
        ]
        for r in (0, 1):
            assert np.array_equal(moved[r].real, plain[r])
            slope = (8 * (ahead[2][r] - ahead[1][r]) - (ahead[3][r] - ahead[0][r])) / (12 * step)
            assert np.allclose(moved[r].imag / tiny, slope, rtol=1e-9, atol=1e-11)
        third = [higher_cumulants(unit, *k)[0] for k in ahead]
        slope = (8 * (third[2] - third[1]) - (third[3] - third[0])) / (12 * step)
        assert np.allclose(higher_cumulants(unit, *moved)[0].imag / tiny, slope, rtol=1e-8, atol=1e-11)


@given(st.floats(-50, 50), st.floats(-5, 5))
def test_bits_are_spins_in_another_variable(field, curvature):
    """x = (1 + s)/2: the field h x + g x**2 on a bit is (h + g)/2 on the spin."""
    k1, k2 = BIT.cumulants(np.array(field), np.array(curvature))
    s1, s2 = SPIN.cumulants(np.array(0.5 * (field + curvature)))
    assert np.isclose(k1, 0.5 * (1 + s1), rtol=1e-12, atol=1e-15)
    assert np.isclose(k2, 0.25 * s2, rtol=1e-12, atol=0)


@given(st.floats(-300, 300))
def test_spin_flip(field):
    k1, k2 = SPIN.cumulants(np.array([field, -field]))
    assert k1[0] == -k1[1]
    assert k2[0] == k2[1]


def test_draws_have_the_mean_of_their_field():
    rng = np.random.default_rng(7)
    for unit in UNITS:
        draws = unit.draw(np.full(100_000, 0.6), rng)
        assert set(np.unique(draws)) == {unit.low, unit.high}
        error = np.sqrt(unit.cumulants(np.array(0.6))[1] / draws.size)
        assert abs(draws.mean() - unit.mean(np.array(0.6))) < 4.5 * error
        assert abs(draws.mean() - unit.mean(np.array(0.66))) > 4.5 * error  # a field 10 % too strong is seen


def test_names():
    assert as_unit("spin", "visible") is SPIN
    assert as_unit("bit", "hidden") is BIT
    assert as_unit(LOPSIDED, "hidden") is LOPSIDED
    assert (str(SPIN), SPIN.levels, BIT.levels) == ("spin", (-1.0, 1.0), (0.0, 1.0))
    assert SPIN.symmetric
    assert not BIT.symmetric
    assert not LOPSIDED.symmetric


@pytest.mark.parametrize("bad", ["ising", "Spin", "", None, 3, ["spin"]])
def test_unknown_unit(bad):
    with pytest.raises(
        ValueError,
        match=r"^`hidden` must be a unit type \('spin', 'bit', .* 'drelu', 'categorical'\), got ",
    ) as info:
        as_unit(bad, "hidden")
    assert repr(bad) in str(info.value)


# Gaussian units -------------------------------------------------------------------------------------------


def integrals(variance, field, curvature):
    """ln int p0 exp(h x + g x**2), mean and variance, by quadrature."""

    def weight(x):
        return mp.npdf(x, 0, mp.sqrt(variance)) * mp.exp(field * x + curvature * x * x)

    limits = [-mp.inf, -3, 0, 3, mp.inf]
    total = mp.quad(weight, limits)
    mean = mp.quad(lambda x: x * weight(x), limits) / total
    square = mp.quad(lambda x: (x - mean) ** 2 * weight(x), limits) / total
    return float(mp.log(total)), float(mean), float(square)


@pytest.mark.parametrize("variance", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("curvature", [0.0, -2.5, 0.1])
def test_gaussian_cumulants_against_integrals(variance, curvature):
    unit = GaussianUnit(variance)
    for field in (-2.0, 0.0, 1.7):
        k1, k2 = unit.cumulants(np.array(field), curvature)
        with mp.workdps(30):
            true = integrals(variance, field, curvature)
        ours = float(unit.log_trace(np.array(field), curvature)), float(k1), float(k2)
        assert ours == pytest.approx(true, rel=1e-12, abs=1e-13)


def test_gaussian_names_and_values():
    assert as_unit("gaussian", "visible") is GAUSSIAN
    assert as_unit("gaussian(0.25)", "visible") == gaussian(0.25) == GaussianUnit(0.25)
    assert gaussian(1 / 3).name == f"gaussian({1 / 3!r})"
    assert as_unit(gaussian(1 / 3).name, "hidden") == gaussian(1 / 3)
    assert GAUSSIAN.symmetric
    draws = gaussian(0.25).draw(np.full(200_000, 2.0), np.random.default_rng(0))
    assert draws.mean() == pytest.approx(0.5, abs=0.005)
    assert draws.var() == pytest.approx(0.25, abs=0.005)
    states = np.array([[0.5, -1.0]])
    density = np.exp(-np.sum(states**2) / 0.5) / (2 * np.pi * 0.25)
    assert np.exp(gaussian(0.25).log_base(states)) == pytest.approx(density, rel=1e-14)
    assert BIT.log_base(states) == 0.0
