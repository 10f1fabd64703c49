"""Biases that differ from unit to unit, in the theory: limits, differences, the compressed rule, the
gauge, real data.
"""

import itertools
import time

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.data.download import find_local
from paramagnet.data.sources import SOURCES
from paramagnet.theory.biases import Biases
from paramagnet.theory.ensemble import make_ensemble
from paramagnet.theory.saddle import free_energy_at, solve_saddle_point
from paramagnet.units import BinaryUnit

RNG = np.random.default_rng(5)
MANY = RNG.normal(0.3, 1.2, size=784)
FEW = Biases([0.2, -0.9, 1.5], [1.0, 2.0, 1.0])
PAIRS = list(itertools.product(("spin", "bit", "gaussian"), repeat=2))[:-1]


def derivative(function, step):
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


def shifted(biases, t, symmetric):
    """All biases moved by ``t``, away from zero where the sign is a matter of naming."""
    values = np.abs(biases.values) if symmetric else biases.values
    return Biases(values + t, biases.weights)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_one_value_is_that_value(visible, hidden):
    units = {"visible": visible, "hidden": hidden}
    one = solve_saddle_point(1.3, 0.7, b=0.4, c=-0.8, **units)
    same = solve_saddle_point(1.3, 0.7, b=Biases([0.4, 0.4, 0.4]), c=Biases([-0.8]), **units)
    for name in ("q_v", "q_h", "Q_v", "Q_h", "free_energy"):
        assert getattr(same, name) == pytest.approx(getattr(one, name), rel=1e-12)
    assert pm.theory.replica_stability(1.3, 0.7, b=Biases([0.4]), c=-0.8, **units) == pytest.approx(
        pm.theory.replica_stability(1.3, 0.7, b=0.4, c=-0.8, **units), rel=1e-12
    )
    if hidden != "spin" or visible == "bit":
        chi = pm.theory.layer_correlation(1.3, 0.7, b=Biases([0.4, 0.4]), c=-0.8, **units)
        sign = -1.0 if hidden == "gaussian" else 1.0  # the gauge
        assert chi == pytest.approx(
            sign * pm.theory.layer_correlation(1.3, 0.7, b=0.4, c=-0.8, **units), rel=1e-11
        ) or (chi == pytest.approx(pm.theory.layer_correlation(1.3, 0.7, b=0.4, c=-0.8, **units), rel=1e-11))


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_responses_by_differences(visible, hidden):
    """A common change of all visible biases, in the gauge where those of symmetric units are positive."""
    symmetric = visible != "bit"
    units = {"visible": visible, "hidden": hidden}
    p = solve_saddle_point(1.2, 0.8, b=FEW, c=-0.6, **units)
    assert p.residual < 1e-13
    assert p.b is FEW

    def magnetization(t):
        at = solve_saddle_point(1.2, 0.8, b=shifted(FEW, t, symmetric), c=-0.6, **units)
        return np.array([at.magnetization_v, 0.8 * at.magnetization_h]) / 1.8

    chi = pm.theory.susceptibility(1.2, 0.8, b=FEW, c=-0.6, **units)
    np.testing.assert_allclose(chi[:, 0], derivative(magnetization, 2e-3), rtol=1e-8)
    assert chi[0, 1] == pytest.approx(chi[1, 0], rel=1e-11)


def test_a_sum_over_units_by_hand():
    """The saddle point equations of spin-bit with three kinds of visible units, on a grid."""
    p = solve_saddle_point(1.7, 0.6, b=FEW, c=-1.0)
    z = np.linspace(-12, 12, 4801)
    weights = (z[1] - z[0]) / np.sqrt(2 * np.pi) * np.exp(-0.5 * z * z)
    q_v = sum(
        w * (weights @ np.tanh(b + z * np.sqrt(p.qhat_v)) ** 2)
        for b, w in zip(FEW.values, FEW.weights, strict=True)
    )
    q_h = weights @ (1 / (1 + np.exp(1.0 - 0.5 * (p.Qhat_h - p.qhat_h) - z * np.sqrt(p.qhat_h)))) ** 2
    assert p.q_v == pytest.approx(q_v, rel=1e-12)
    assert p.q_h == pytest.approx(q_h, rel=1e-12)
    assert p.qhat_v == pytest.approx(1.7**2 * 0.6 / 1.6 * q_h, rel=1e-12)
    e = make_ensemble(1.7, 0.6, visible="spin", hidden="bit", b=FEW, c=-1.0)
    point = (
        tuple(map(np.asarray, (p.q_v, p.Q_v, p.qhat_v, p.Qhat_v))),
        tuple(map(np.asarray, (p.q_h, p.Q_h, p.qhat_h, p.Qhat_h))),
    )
    assert p.free_energy == pytest.approx(free_energy_at(e, *point), rel=1e-14)


@pytest.mark.parametrize("unit", [pm.SPIN, pm.BIT, pm.GAUSSIAN], ids=str)
def test_few_points_stand_for_many(unit):
    biases = Biases(MANY)
    points, weights = biases.rule_for(unit)
    assert points.size < 50
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    values = np.abs(MANY) if unit.symmetric else MANY
    assert weights @ points**2 == pytest.approx(np.mean(values**2), rel=1e-13)
    if unit is not pm.GAUSSIAN:
        for field in (0.0, 0.7, -1.3):
            for power in (1, 2, 3):
                for index in (0, 1):
                    ours = weights @ unit.cumulants(points + field)[index] ** power
                    true = np.mean(unit.cumulants(values + field)[index] ** power)
                    assert ours == pytest.approx(true, rel=1e-12, abs=1e-14)


def test_weights_are_repetitions_and_order_does_not_matter():
    repeated = Biases([-0.9, 0.2, 1.5, -0.9])
    assert pm.beta_max(1.0, b=repeated, c=-1.0) == pytest.approx(pm.beta_max(1.0, b=FEW, c=-1.0), rel=1e-13)
    compressed = pm.beta_max(1.0, b=Biases(MANY), c=-1.0)
    assert compressed == pytest.approx(pm.beta_max(1.0, b=Biases(np.sort(MANY)), c=-1.0), rel=1e-11)


def test_the_sign_of_a_bias_is_a_matter_of_naming():
    signs = RNG.choice([-1.0, 1.0], size=MANY.size)
    one, other = (pm.theory.find_beta_max(0.6, b=Biases(b), c=-2.0) for b in (MANY, signs * MANY))
    assert other.beta == pytest.approx(one.beta, rel=1e-12)
    assert other.value == pytest.approx(one.value, rel=1e-12)
    bits = [
        pm.theory.layer_correlation(1.5, 0.6, visible="bit", b=Biases(b), c=-2.0)
        for b in (FEW.values, -FEW.values)
    ]
    assert abs(bits[0] / bits[1] - 1) > 0.1  # the values of bits are no matter of naming


def test_exchange():
    one = pm.theory.find_beta_max(0.6, b=FEW, c=-2.0)
    other = pm.theory.find_beta_max(1 / 0.6, visible="bit", hidden="spin", b=-2.0, c=FEW)
    assert other.beta == pytest.approx(one.beta, rel=1e-11)


def test_zero_biases_are_no_biases():
    assert pm.beta_max(1.3, b=Biases([0.0, 0.0]), c=-1.2) == pytest.approx(
        pm.beta_max(1.3, c=-1.2), rel=1e-12
    )
    several = pm.beta_max(1.3, c=Biases([-1.2, -1.2]))
    assert several == pytest.approx(pm.beta_max(1.3, c=-1.2), rel=1e-12)
    assert pm.theory.layer_correlation(1.3, 1.0, b=Biases([0.0]), c=-1.2) == 0.0


def test_broadcasting():
    betas = pm.beta_max(np.array([0.5, 1.0]), b=FEW, c=np.array([[-1.0], [-2.0]]))
    assert betas.shape == (2, 2)
    assert betas[1, 0] == pytest.approx(pm.beta_max(0.5, b=FEW, c=-2.0), rel=1e-11)


def test_hidden_biases_too():
    p = solve_saddle_point(2.0, 1.0, b=FEW, c=Biases([-3.0, -1.0]))
    assert p.residual < 1e-13
    low, high = (solve_saddle_point(2.0, 1.0, b=FEW, c=c).magnetization_h for c in (-3.0, -1.0))
    assert low < p.magnetization_h < high


def test_data_of_urban_land_cover():
    """c = -5: the maximum moves from 3.90 to about 4.1 with biases from data. Nothing is downloaded."""
    ulc = SOURCES["ulc"]
    if not all(find_local(ulc, file, None) for file in ulc.files):
        pytest.skip("no local copy of ulc: set PARAMAGNET_DATA")
    data = pm.load_dataset("ulc", rng=0).data
    rbm = pm.initialize(147, 200, visible_bias="data", data=data, rng=0)
    assert pm.beta_max(200 / 147, b=Biases(rbm.visible_bias), c=-5.0) == pytest.approx(4.12, abs=0.05)


def test_a_thousand_biases_take_a_second():
    spread = Biases(RNG.normal(-2.0, 1.6, size=784))
    pm.beta_max(1.0, b=spread)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        Biases(spread.values)
        pm.beta_max(500 / 784, b=Biases(spread.values), c=-2.5)
        best = min(best, time.perf_counter() - start)
    assert best < 4.0  # 0.4 s alone on a core


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.3,), "`values` must be a sequence of at least one bias, got shape"),
        (([],), "`values` must be a sequence of at least one bias"),
        (([[1.0]],), "`values` must be a sequence"),
        (([1.0, np.nan],), "`values` must be finite"),
        (([1.0, 2.0], [1.0]), "`weights` must be as many as `values`, 2, got shape"),
        (([1.0, 2.0], [-1.0, 2.0]), "`weights` must be zero or positive, got -1"),
        (([1.0, 2.0], [0.0, 0.0]), "`weights` must not all be zero"),
    ],
)
def test_bad_biases(arguments, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        Biases(*arguments)


def test_huge_weights_and_values():
    assert pm.beta_max(1.0, b=pm.Biases([1, 2], [1e308, 1e308])) == pm.beta_max(1.0, b=pm.Biases([1, 2]))
    for b in (1e300, -2e4, pm.Biases([1e160, 0.0])):
        with pytest.raises(ValueError, match="`b` must lie between -10000 and 10000"):
            pm.beta_max(1.0, b=b)
    with pytest.raises(ValueError, match="`c` must lie between -10000 and 10000, got 1e\\+06"):
        pm.beta_max(1.0, c=pm.Biases([1e6] + [0.0] * 999_999))  # though its root mean square is 1000


def test_what_has_no_weight_does_not_count():
    biases = pm.Biases([0.5, 1e200], [1.0, 0.0])
    assert (biases.largest, biases.root_mean_square) == (0.5, 0.5)
    assert pm.beta_max(1.0, b=biases) == pytest.approx(pm.beta_max(1.0, b=0.5), rel=1e-12)


def test_scale_of_biases_too_large_for_the_theory():
    data = np.full((3, 2), 5e4)
    with pytest.raises(ValueError, match=r"`visible_bias` must stay below 10000 .* got 50000. Standardize"):
        pm.initialize(2, 2, visible="gaussian", visible_bias="data", data=data, scale_from="biases")


def test_rules_of_different_units_are_kept_apart():
    """Gaussian units need two points, units of -0.5 and 0.5 some thirty."""
    half = BinaryUnit("half", -0.5, 0.5)
    used = Biases(MANY)
    assert used.rule_for(pm.GAUSSIAN)[0].size == 2
    np.testing.assert_array_equal(used.rule_for(half)[0], Biases(MANY).rule_for(half)[0])
