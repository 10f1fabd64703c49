"""Gaussian averages against multiprecision sums, and the error estimate against the true error."""

import numpy as np
import pytest
from mpmath import mp, mpf

from paramagnet.theory import quadrature
from paramagnet.theory.quadrature import even_gaussian_rule, gaussian_rule

SLOPES = [0.01, 0.3, 1.0, 3.0, 10.0, 50.0]
CENTRES = [-30.0, -8.0, -1.0, 0.0, 4.0, 10.0]


def sigmoid(x):
    decay = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, decay) / (1.0 + decay)


FUNCTIONS = {  # of the log-odds, here and as what is left of p = 1/(1 + exp(-x)) and 1 - p
    "p": (sigmoid, lambda p, r: p),
    "p**2": (lambda x: sigmoid(x) ** 2, lambda p, r: p * p),
    "p(1-p)": (lambda x: sigmoid(x) * sigmoid(-x), lambda p, r: p * r),
    "p**2(1-p)": (lambda x: sigmoid(x) ** 2 * sigmoid(-x), lambda p, r: p * p * r),
    "p**2(1-p)**2": (lambda x: (sigmoid(x) * sigmoid(-x)) ** 2, lambda p, r: p * p * r * r),
}


def true_averages(centre, slope):
    """By the trapezoid rule on multiprecision numbers, with a step and a range for 25 digits."""
    with mp.workdps(30):
        centre, slope = mpf(centre), mpf(slope)
        reach = 12 + 2 * min(2 * slope, abs(centre) / slope)
        step = min(mpf("0.35"), mpf("0.25") / slope)
        odds, ratio = mp.exp(centre - slope * reach), mp.exp(slope * step)
        # exp(-z**2/2) at equally spaced nodes: a geometric series of geometric series
        weight, growth, change = (
            mp.exp(-(reach**2) / 2),
            mp.exp(reach * step - step**2 / 2),
            mp.exp(-(step**2)),
        )
        totals = dict.fromkeys(FUNCTIONS, mpf(0))
        for _ in range(int(2 * reach / step) + 1):
            rest = 1 / (1 + odds)
            p = odds * rest
            for name, (_, exact) in FUNCTIONS.items():
                totals[name] += weight * exact(p, rest)
            weight *= growth
            growth *= change
            odds *= ratio
        return {name: total * step / mp.sqrt(2 * mp.pi) for name, total in totals.items()}


@pytest.fixture(scope="module")
def truth():
    return {(centre, slope): true_averages(centre, slope) for centre in CENTRES for slope in SLOPES}


@pytest.mark.parametrize("slope", SLOPES)
def test_averages(truth, slope):
    for centre in CENTRES:
        rule = gaussian_rule(np.array(centre), np.array(slope))
        for name, (function, _) in FUNCTIONS.items():
            true = truth[centre, slope][name]
            ours = rule.average(function(centre + slope * rule.nodes))
            assert abs(ours / true - 1) < 5e-14, (centre, name, ours)


def test_one_rule_serves_all(truth):
    """A batch of very different averages shares its nodes and loses no accuracy by that."""
    centre, slope = (array.ravel() for array in np.meshgrid(CENTRES, SLOPES))
    rule = gaussian_rule(centre, slope)
    for name, (function, _) in FUNCTIONS.items():
        ours = rule.average(function(centre[:, None] + slope[:, None] * rule.nodes))
        for i, value in enumerate(ours):
            assert abs(value / truth[centre[i], slope[i]][name] - 1) < 5e-14, (centre[i], slope[i], name)


@pytest.mark.parametrize("slope", [0.01, 1.0, 10.0, 100.0, 500.0])
@pytest.mark.parametrize("make", [even_gaussian_rule, lambda slope: gaussian_rule(np.zeros(()), slope)])
def test_moments_of_the_gaussian(make, slope):
    rule = make(np.array(slope))
    for power, moment in ((0, 1.0), (2, 1.0), (4, 3.0)):
        assert abs(rule.average(rule.nodes**power) / moment - 1) < 3e-15, power


@pytest.mark.parametrize("slope", SLOPES)
def test_even_functions(truth, slope):
    full, folded = gaussian_rule(np.zeros(()), np.array(slope)), even_gaussian_rule(np.array(slope))
    assert folded.nodes.size < 0.6 * full.nodes.size
    for name in ("p(1-p)", "p**2(1-p)**2"):
        function = FUNCTIONS[name][0]
        for rule in (full, folded):
            assert abs(rule.average(function(slope * rule.nodes)) / truth[0.0, slope][name] - 1) < 1e-14


def test_error_estimate_bounds_the_error(truth):
    """At the proper step up to the rounding of the log-odds; with steps up to four times too wide, where the
    error is plain to see, its root (the change by every second node) always does, itself nearly always."""
    ratios = []
    for (centre, slope), true in truth.items():
        for coarseness in (1.0, 1.7, 2.5, 3.0, 4.0):
            rule = gaussian_rule(np.array(centre), np.array(slope), coarseness=coarseness)
            for name, (function, _) in FUNCTIONS.items():
                values = function(centre + slope * rule.nodes)
                error = abs(float(rule.average(values) / true[name] - 1))
                estimate = float(rule.error(values))
                if coarseness == 1.0:
                    assert error <= estimate + 1e-14, (centre, slope, name, error, estimate)
                    assert estimate < 1e-13 or name != "p**2"  # what overlaps are made of
                else:
                    assert error <= np.sqrt(estimate), (centre, slope, coarseness, name, error, estimate)
                if error > 1e-11:
                    ratios.append(error / estimate)
    assert len(ratios) > 100  # the bound was put to the test
    assert np.quantile(ratios, 0.8) <= 1.0


def test_too_few_nodes_are_noticed():
    """The fault that gives false maxima: a rule much too coarse for its slope must say so."""
    rule = gaussian_rule(np.array(0.0), np.array(1.0))
    values = np.tanh(30.0 * rule.nodes) ** 2
    assert rule.error(values) > 1e-3 * abs(rule.average(values) - true_tanh_squared())


def true_tanh_squared():
    return 1 - 4 * float(true_averages(0.0, 60.0)["p(1-p)"])


# Nodes gathered around the crossing ---------------------------------------------------------------------


@pytest.mark.parametrize(("slope", "crossing"), [(11.0, 3.7), (40.0, -25.0), (150.0, 0.6), (60.0, 14.0)])
def test_steep_averages(slope, crossing):
    centre = -slope * crossing
    rule, true = gaussian_rule(np.array(centre), np.array(slope)), true_averages(centre, slope)
    assert rule.nodes.size < 250  # equal steps take 500 to 16,000
    odds = rule.fields(np.array(centre), np.array(slope))
    for name, (function, _) in FUNCTIONS.items():
        assert abs(rule.average(function(odds)) / true[name] - 1) < 5e-14, name


@pytest.mark.parametrize("make", [lambda s: gaussian_rule(np.array(-3.0), s), even_gaussian_rule])
def test_equal_steps_and_gathered_nodes_agree_where_one_takes_over(make):
    limit = quadrature._STEEP
    for name, (function, _) in FUNCTIONS.items():
        below, above = (np.array(slope) for slope in (limit, np.nextafter(limit, np.inf)))
        rules = make(below), make(above)
        assert rules[0].nodes.size > 2 * rules[1].nodes.size
        centre = -3.0 if make is not even_gaussian_rule else 0.0
        if centre or name in ("p(1-p)", "p**2(1-p)**2"):
            values = [rule.average(function(centre + limit * rule.nodes)) for rule in rules]
            assert abs(values[0] / values[1] - 1) < 1e-14, name


def test_a_batch_with_one_steep_element_serves_the_others(truth):
    """Nodes lie around each element's own crossing, also where that is far outside or nowhere (slope 0)."""
    pairs = [*truth, (2.0, 0.0), (-5.0, 1e-300), (1e4, 1e-3), (-400.0, 0.3), (0.7, 1e7)]
    centre, slope = (np.array(column) for column in zip(*pairs, strict=True))
    rule = gaussian_rule(centre, slope)
    odds = rule.fields(centre, slope)
    assert np.isfinite(odds).all()
    assert np.isfinite(rule.weights).all()
    for name, (function, _) in FUNCTIONS.items():
        ours = rule.average(function(odds))
        for i, pair in enumerate(pairs):
            if pair in truth:
                assert abs(ours[i] / truth[pair][name] - 1) < 5e-14, (pair, name)
            elif pair[1] < 1e-200:
                assert abs(ours[i] / function(np.array(pair[0])) - 1) < 1e-14, (pair, name)


def test_the_number_of_nodes_grows_as_a_logarithm():
    sizes = [gaussian_rule(np.array(-2.0 * s), np.array(s)).nodes.size for s in (1e2, 1e4, 1e6, 1e8, 1e12)]
    assert sizes[0] < 130
    assert sizes[-1] < 350
