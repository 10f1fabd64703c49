"""Annealing by int16 sums: fields to the precision of float32, the log-weights of the portable kernels."""

from __future__ import annotations

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.kernels.int16_tables import SHIFT, make_tables
from paramagnet.sampling import annealing, int16, int16_annealing
from paramagnet.sampling.layer import layers_of

pytestmark = pytest.mark.skipif(
    int16.is_forbidden() or not int16.has_instructions(),
    reason="no AVX-512BW, or portable kernels are asked for",
)
PAIRS = [("spin", "bit"), ("bit", "bit"), ("spin", "spin"), ("bit", "spin")]


def machine(n_visible, n_hidden, visible="spin", hidden="bit", scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, scale / np.sqrt(n_visible + n_hidden), (n_visible, n_hidden))
    return pm.RBM(
        weights,
        rng.normal(0.0, 0.5, n_visible),
        rng.normal(0.0, 0.5, n_hidden),
        visible=visible,
        hidden=hidden,
    )


def log_weights(rbm, n_samples, n_temperatures, *, joint=False, transposed=False, n_threads=1):
    temperatures, base = np.linspace(0.0, 1.0, n_temperatures + 1), np.zeros(rbm.n_visible)
    path = annealing._make_path(rbm, base, temperatures, joint=joint, transposed=transposed)
    ends = np.empty((n_samples, path.kept.shift.size), np.float32)
    assert int16_annealing.serves(path, n_samples) != int16.is_forbidden()
    return annealing._run(path, n_samples, None, 5, n_threads, ends=ends), ends


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize(("n_visible", "n_hidden", "n_chains"), [(1, 1, 600), (37, 21, 100), (170, 90, 130)])
def test_log_weights_are_those_of_the_portable_kernels(
    n_visible, n_hidden, n_chains, visible, hidden, joint, transposed, monkeypatch
):
    """Same random numbers: the same chains but for rounding, and log-weights to the rounding of float32."""
    rbm = machine(n_visible, n_hidden, visible, hidden, 2.0)
    new, new_ends = log_weights(rbm, n_chains, 10, joint=joint, transposed=transposed)
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    old, old_ends = log_weights(rbm, n_chains, 10, joint=joint, transposed=transposed)
    same = (new_ends == old_ends).all(axis=1)
    assert np.mean(same) > 0.97
    size = np.abs(rbm.weights).sum() + np.abs(rbm.visible_bias).sum() + np.abs(rbm.hidden_bias).sum()
    np.testing.assert_allclose(new[same], old[same], rtol=0.0, atol=1e-7 * max(size, 1.0))


def test_many_units_take_several_products(monkeypatch):
    """More than 512 units: logarithms are taken in between."""
    rbm = machine(20, 1100, "spin", "bit")
    new, _ = log_weights(rbm, 600, 3)
    monkeypatch.setenv(int16.ENVIRONMENT, "portable")
    np.testing.assert_allclose(new, log_weights(rbm, 600, 3)[0], rtol=1e-7)


def test_bits_do_not_depend_on_threads(monkeypatch):
    rbm = machine(60, 40)
    monkeypatch.setattr(int16, "THREAD_TIME", 1.0)
    runs = [log_weights(rbm, 500, 12, n_threads=n) for n in (1, 2, 5)]
    for weights, ends in runs[1:]:
        assert np.array_equal(weights, runs[0][0])
        assert np.array_equal(ends, runs[0][1])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e25])
def test_tables_hold_the_sums_to_half_a_unit_for_every_weight(scale):
    """Both tables of every group and state, against sums in float64; and no part can overflow."""
    weights = layers_of(machine(331, 6, scale=scale))[1].weights
    weights[2] = 0.0
    tables = make_tables(weights, with_rest=True)
    entries = tables.table.reshape(-1, tables.n_positions, 8, 32).astype(np.int64)
    signs = (np.arange(32)[:, None] >> np.arange(5) & 1) - 0.5
    for unit, row in enumerate(weights.astype(np.float64)):
        coarse, rest = (entries[unit % 2, :, unit // 2 + more] for more in (0, 4))
        padded = np.zeros((tables.n_positions, 5))
        padded.ravel()[: row.size] = row
        positions = np.arange(tables.n_positions)
        groups = positions % tables.n_in_part * tables.n_parts + positions // tables.n_in_part
        exact = padded[groups] @ signs.T
        found = tables.units[unit] * ((coarse << SHIFT) + rest)
        assert np.all(np.abs(found - exact) <= 5 * tables.units[unit] * (0.5 + 2.0**-25))
        parts = (tables.n_parts, tables.n_in_part, 32)
        assert np.abs(coarse).reshape(parts).max(axis=2).sum(axis=1).max() <= 32767
        assert np.abs(rest).reshape(parts).max(axis=2).sum(axis=1).max() <= 32767


@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_estimates_agree_with_the_exact_sum(method):
    rbm = machine(14, 9, scale=2.0)
    found = pm.estimate_log_partition(rbm, method=method, n_samples=2000, n_temperatures=100, rng=0)
    assert abs(found.value - pm.log_partition(rbm)) < 5.0 * found.error
