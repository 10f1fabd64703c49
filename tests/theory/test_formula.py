"""The explicit formula of beta_max against the solver."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.theory import formula, peak_search, scale
from paramagnet.theory.formula_table import NANO

DOCS = Path(__file__).parents[2] / "docs"


def random_machines(n, seed):
    rng = np.random.default_rng(seed)
    return np.exp(rng.uniform(np.log(0.05), np.log(20.0), n)), rng.uniform(-10.0, 2.0, n)


def exact(alpha, c):
    """By the scan, which does not know the formula."""
    ensemble = scale.make_ensemble(1.0, alpha, visible="spin", hidden="bit", b=0.0, c=c)
    peak = peak_search.first_peak(ensemble, scale._FIRST, 100.0, scale._RATIO)
    return np.exp(peak_search.refine(ensemble, peak)[0])


@pytest.mark.filterwarnings("ignore::paramagnet.theory.ReplicaSymmetryWarning")
def test_error_is_below_what_is_certified():
    alpha, c = random_machines(400, 1)
    edges = np.array([0.05, 0.05, 20.0, 20.0, 0.05, 20.0]), np.array([-10.0, 2.0, -10.0, 2.0, -3.0, -3.0])
    alpha, c = np.r_[alpha, edges[0]], np.r_[c, edges[1]]
    error = pm.theory.beta_max_formula(alpha, c) - exact(alpha, c)
    assert np.abs(error).max() < formula.CERTIFIED
    assert (
        np.abs(error).max() > 1e-8
    )  # as it must be: the solver was not started from what it is compared with


def test_solver_started_from_the_formula_agrees_with_the_scan():
    alpha, c = random_machines(200, 2)
    assert np.abs(pm.theory.find_beta_max(alpha, c=c).beta / exact(alpha, c) - 1.0).max() < 1e-11


def test_where_the_derivative_has_an_extremum_the_search_goes_on():
    """The first guess of the scan falls where d ln|chi|/d ln beta is stationary, but not zero."""
    alpha, c = np.array([13.094420741278897]), np.array([-6.336290128100982])
    assert abs(exact(alpha, c)[0] - 9.481927) < 2e-6


def test_maps_are_inverse():
    u = np.linspace(-1.0, 1.0, 11)
    x = formula.unmap_alpha(u)
    assert np.allclose(np.exp(x[[0, -1]]), formula.ALPHA_RANGE)
    c = formula.unmap_bias(u, x[:, None])
    assert np.allclose(c[:, 0], -10.0)
    assert np.allclose(c[:, -1], 2.0)


def test_broadcasts_and_returns_floats():
    assert isinstance(pm.theory.beta_max_formula(1.0, -5.0), float)
    table = pm.theory.beta_max_formula(np.array([[0.5], [1.0]]), [0.0, -1.0, -2.0])
    assert table.shape == (2, 3)
    assert table[1, 2] == pytest.approx(pm.theory.beta_max_formula(1.0, -2.0), abs=1e-14)
    many = np.full(3000, 1.0)  # more than one chunk
    assert np.ptp(pm.theory.beta_max_formula(many, -2.0)) < 1e-12


def test_warns_where_replica_symmetry_is_broken():
    alpha, c = random_machines(300, 3)
    broken = pm.theory.find_beta_max(alpha, c=c).stability < 0.0
    for a, bias, is_broken in zip(alpha[::5], c[::5], broken[::5], strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pm.theory.beta_max_formula(a, bias)
        assert bool(caught) == is_broken, (a, bias)
    with pytest.warns(pm.theory.ReplicaSymmetryWarning, match="`alpha` = 20, `c` = -10"):
        pm.theory.beta_max_formula(20.0, -10.0)


def test_one_broken_machine_among_many_is_enough_for_the_warning():
    assert (
        pm.theory.find_beta_max(20.0, c=-10.0).stability
        < 0.0
        < pm.theory.find_beta_max(1.0, c=-1.0).stability
    )
    for alpha, c in (([1.0, 20.0, 1.0], [-1.0, -10.0, 0.0]), ([20.0, 1.0], [-10.0, -1.0])):
        with pytest.warns(pm.theory.ReplicaSymmetryWarning, match="`alpha` = 20, `c` = -10"):
            many = pm.theory.beta_max_formula(alpha, c)
        assert many[c.index(-1.0)] == pytest.approx(pm.theory.beta_max_formula(1.0, -1.0), abs=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pm.theory.beta_max_formula([1.0, 2.0, 1.0], [-1.0, -2.0, 0.0])


@pytest.mark.parametrize(
    ("alpha", "c", "words"),
    [
        (0.04, 0.0, "`alpha` must lie between 0.05 and 20 for the formula, got 0.04"),
        (1.0, 2.5, "`c` must lie between -10 and 2 for the formula, got 2.5"),
        (-1.0, 0.0, "`alpha` must"),
        (1.0, np.nan, "`c` must"),
        (np.ones(2), np.zeros(3), "must broadcast"),
    ],
)
def test_bad_input(alpha, c, words):
    with pytest.raises(ValueError, match=words):
        pm.theory.beta_max_formula(alpha, c)


def test_many_values_are_quick():
    """Far below a microsecond each; the bound here only catches a fall by orders of magnitude."""
    alpha, c = random_machines(20_000, 4)
    began = time.perf_counter()
    formula.evaluate_formula(alpha, c)
    assert time.perf_counter() - began < 0.5


def test_documentation_says_how_many_coefficients_there_are():
    count = sum(map(len, NANO))
    large = sum(abs(a) > 1000 for row in NANO for a in row)
    text = (DOCS / "formula.md").read_text(encoding="utf-8")
    assert re.search(rf"{count} numbers,\s+{large} lie above", text.replace("\n", " "))


def test_code_of_the_documentation(capsys):
    text = (DOCS / "formula.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "formula.md", "exec"), {})
        said = re.findall(r"^# (.*)$", block, flags=re.MULTILINE)
        assert capsys.readouterr().out.splitlines() == said


@pytest.mark.slow
def test_solver_against_scan_at_many_points():
    alpha, c = random_machines(5000, 5)
    assert np.abs(pm.theory.find_beta_max(alpha, c=c).beta / exact(alpha, c) - 1.0).max() < 1e-11


def test_printed_border_of_the_corner():
    """The cubic in ln(alpha) on the page, and in the code, against where the stability vanishes."""
    text = (DOCS / "formula.md").read_text(encoding="utf-8")
    printed = re.search(r"c = (-[\d.]+) \+ ([\d.]+) x - ([\d.]+) x\^2 \+ ([\d.]+) x\^3\$ within 0.003", text)
    assert printed is not None
    cubic = [float(a) for a in printed.groups()]
    cubic[2] *= -1.0
    assert tuple(cubic) == formula._BROKEN_BELOW
    for alpha in (2.8, 5.0, 9.0, 14.0, 20.0):
        c = np.polynomial.polynomial.polyval(np.log(alpha), cubic)
        below, above = (pm.theory.find_beta_max(alpha, c=c + shift).stability for shift in (-0.003, 0.003))
        assert below < 0.0 < above
