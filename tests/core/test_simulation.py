"""The theory against machines that are solved by enumeration, with nothing of the package in between
(benchmarks/disorder_average.py).
"""

import importlib.util
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from paramagnet.theory.response import layer_correlation_slope, replica_stability
from paramagnet.theory.scale import beta_max

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "disorder_average.py"
SEED = 7
BETAS = np.array([0.6, 0.9, 1.2, 1.5])
SPIN_BETAS = np.array([0.3, 0.5, 0.7, 0.9])
DRAWS = {8: 4000, 12: 1200}
SPIN_DRAWS = {8: 2000, 12: 400}


def load_script():
    spec = importlib.util.spec_from_file_location("disorder_average", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


script = load_script()


def simulate(n, draws, betas, names, **machine):
    """Mean and standard error of the named observables at each beta, of machines with n = m."""
    normals = script.draw_normals(n, n, draws, SEED)
    with threadpool_limits(1):
        measured = [script.measure(normals, beta, **machine) for beta in betas]
    return {
        key: script.average(script.control(np.array([at[key] for at in measured]), normals)) for key in names
    }


@pytest.fixture(scope="module")
def spin_bit():
    return {n: simulate(n, draws, BETAS, ("slope", "fluctuation")) for n, draws in DRAWS.items()}


@pytest.fixture(scope="module")
def spin_spin():
    return {
        n: simulate(n, draws, SPIN_BETAS, ("mixed",), hidden="spin")["mixed"]
        for n, draws in SPIN_DRAWS.items()
    }


@pytest.fixture(scope="module")
def records():
    return script.load_records()


def expected_fluctuation(beta, alpha, **machine):
    """``A K/(1 - A B K)``, from the stability number ``1 - A B K`` and ``B = beta**2/(1 + alpha)``."""
    stability = replica_stability(beta, alpha, **machine)
    return (1.0 - stability) / stability * (1.0 + alpha) / beta**2


def agrees(measured, theory, relative=0.03):
    """Within ``relative`` of the theory plus four standard errors, everywhere."""
    mean, error = measured
    return bool(np.all(np.abs(mean - theory) <= relative * np.abs(theory) + 4.0 * error))


def to_infinite_size(small, large):
    """Two sizes, 8 and 12, with a correction 1/n removed: value and standard error."""
    return 3.0 * large[0] - 2.0 * small[0], np.hypot(3.0 * large[1], 2.0 * small[1])


def root_mean_square(measured, theory):
    return np.sqrt(np.mean((measured[0] / theory - 1.0) ** 2))


@pytest.mark.parametrize("hidden", ["bit", "spin"])
@pytest.mark.parametrize("block", [2**16, 16])  # in one piece, and with visible units looped over
def test_moments_are_those_of_the_sum_over_both_layers(hidden, block, monkeypatch):
    monkeypatch.setattr(script, "BLOCK", block)
    weights = np.random.default_rng(SEED).standard_normal((2, 5, 3))
    v, h, vh = script.enumerate_moments(weights, hidden=hidden, c=-0.7)
    for k, w in enumerate(weights):
        z, sum_v, sum_h, sum_vh = 0.0, np.zeros(5), np.zeros(3), np.zeros((5, 3))
        for visible in product((-1.0, 1.0), repeat=5):
            for state in product((0.0, 1.0) if hidden == "bit" else (-1.0, 1.0), repeat=3):
                x, y = np.array(visible), np.array(state)
                p = np.exp(x @ w @ y - 0.7 * y.sum())
                z, sum_v, sum_h, sum_vh = z + p, sum_v + p * x, sum_h + p * y, sum_vh + p * np.outer(x, y)
        np.testing.assert_allclose(v[k], sum_v / z, atol=1e-13)
        np.testing.assert_allclose(h[k], sum_h / z, atol=1e-13)
        np.testing.assert_allclose(vh[k], sum_vh / z, atol=1e-13)


def test_controls_average_to_zero():
    """Their average over many weights is zero: else they would move every mean."""
    normals = script.draw_normals(6, 4, 50_000, SEED)
    row, square = normals.sum(axis=2) ** 2 / 4.0, (normals**2).mean(axis=2)
    for name, values in (("row", row), ("square", square), ("both", row * square), ("fourth", row**2)):
        plain = script.average(values.mean(axis=1))
        expected = {"row": 1.0, "square": 1.0, "both": 1.5, "fourth": 3.0}[name]
        assert abs(plain[0] - expected) < 4.0 * plain[1]
        np.testing.assert_allclose(script.control(values.mean(axis=1), normals).mean(), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [8, 12])
def test_slope_of_layer_correlation(spin_bit, n):
    assert agrees(spin_bit[n]["slope"], layer_correlation_slope(BETAS, 1.0))


@pytest.mark.parametrize("n", [8, 12])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_planted_wrong_scale_is_seen(spin_bit, n, factor):
    assert not agrees(spin_bit[n]["slope"], layer_correlation_slope(factor * BETAS, 1.0))


def test_larger_machines_are_closer(spin_bit):
    theory = layer_correlation_slope(BETAS, 1.0)
    assert root_mean_square(spin_bit[12]["slope"], theory) < root_mean_square(spin_bit[8]["slope"], theory)
    infinite = to_infinite_size(spin_bit[8]["slope"], spin_bit[12]["slope"])
    assert agrees(infinite, theory, 0.01)


def test_stability_is_the_sum_of_squared_covariances(spin_bit):
    theory = expected_fluctuation(BETAS, 1.0)
    small, large = spin_bit[8]["fluctuation"], spin_bit[12]["fluctuation"]
    assert root_mean_square(large, theory) < root_mean_square(small, theory)
    assert agrees(to_infinite_size(small, large), theory, 0.01)
    assert not agrees(to_infinite_size(small, large), expected_fluctuation(1.1 * BETAS, 1.0), 0.01)


def test_mixed_derivative_of_spin_machines_below_the_transition(spin_spin):
    assert beta_max(1.0, hidden="spin") > SPIN_BETAS.max()
    theory = layer_correlation_slope(SPIN_BETAS, 1.0, hidden="spin")
    assert root_mean_square(spin_spin[12], theory) < root_mean_square(spin_spin[8], theory)
    infinite = to_infinite_size(spin_spin[8], spin_spin[12])
    assert agrees(infinite, theory)
    assert not agrees(infinite, layer_correlation_slope(1.1 * SPIN_BETAS, 1.0, hidden="spin"))


@pytest.mark.parametrize(("c", "shift"), [(0.0, 0.05), (-2.0, 0.07), (-5.0, 0.11)])
def test_stored_maxima_approach_beta_max(records, c, shift):
    """The maximum of n = m = 14 lies above beta_max by the given fraction, and comes down as 1/n."""
    theory = beta_max(1.0, c=c)
    chosen = script.select(records, 1.0, c)
    assert [r["n"] for r in chosen] == [8, 12, 14, 16]
    for r in chosen:
        error = r["maximum_error"] / theory
        assert abs(r["maximum"] / theory - 1.0 - shift * 14.0 / r["n"]) < 0.02 + 3.0 * error
    fit = script.extrapolate(chosen, theory)
    assert abs(fit.intercept - 1.0) < 0.02 + 3.0 * fit.intercept_error
    for wrong in (0.9, 1.1):
        fit = script.extrapolate(chosen, wrong * theory)
        assert abs(fit.intercept - 1.0) > 0.02 + 3.0 * fit.intercept_error


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_stored_maxima_tell_layer_ratios_apart(records, alpha):
    """Extrapolated, the maximum is that of its own alpha."""
    chosen = script.select(records, alpha, -2.0)
    fit = script.extrapolate(chosen, beta_max(alpha, c=-2.0))
    assert abs(fit.intercept - 1.0) < 0.02 + 3.0 * fit.intercept_error
    assert fit.slope > 0.0


def test_stored_curves_approach_the_theory(records):
    """Below the maximum, where corrections are small; a theory at a wrong scale does not pass."""
    for n, tolerance in ((8, 0.03), (12, 0.02), (16, 0.02)):
        (record,) = [r for r in script.select(records, 1.0, 0.0) if r["n"] == n]
        betas = np.array(record["betas"])
        below = betas < beta_max(1.0)
        measured = np.array(record["slope"])[below], np.array(record["slope_error"])[below]
        assert agrees(measured, layer_correlation_slope(betas[below], 1.0), tolerance)
        assert not agrees(measured, layer_correlation_slope(1.1 * betas[below], 1.0), tolerance)


def test_records_are_complete_and_reproduced(records):
    assert all(script.is_done(machines, records) for machines in script.PLAN)
    machines = script.Machines(6, 12, -2.0, 10000)
    (stored,) = [r for r in records if (r["n"], r["m"]) == machines[:2]]
    assert {"seed", "versions", "seconds", "draws"} <= stored.keys()
    normals = script.draw_normals(machines.n, machines.m, machines.draws, stored["seed"])
    for k in (0, 6):
        measured = script.measure(normals, stored["betas"][k], c=stored["c"])
        for name in ("slope", "fluctuation"):
            mean, error = script.average(script.control(measured[name], normals))
            np.testing.assert_allclose(mean, stored[name][k], rtol=1e-9)
            np.testing.assert_allclose(error, stored[f"{name}_error"][k], rtol=1e-9)


def test_a_run_is_resumed(tmp_path, monkeypatch):
    """Finished records are skipped, and a record of a finished run equals one made alone."""
    path = tmp_path / "records.json"
    plan = (script.Machines(4, 4, 0.0, 40), script.Machines(4, 4, -2.0, 40))
    monkeypatch.setattr(script, "PLAN", plan[:1])
    script.run_missing(path)
    first = script.load_records(path)
    monkeypatch.setattr(script, "PLAN", plan)
    script.run_missing(path)
    both = script.load_records(path)
    assert both[0] == first[0]
    with threadpool_limits(1):  # another number of BLAS threads has other last bits
        alone = script.simulate(plan[1])
    assert {**both[1], "seconds": 0} == {**alone, "seconds": 0}
