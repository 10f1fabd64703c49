"""Exact sums just on either side of every limit in the code, against brute force in extended precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

import paramagnet as pm
from adversarial_machines import (
    BIT,
    SPIN,
    Machine,
    brute_force,
    draw_machine,
    find_errors,
    naive_log_partition,
)
from paramagnet.kernels import enumeration, tables
from paramagnet.kernels.precision import CERTAIN, LARGEST, InexactSumError


def check_machines(n_machines, seed, largest=(10, 24)):
    """Draw machines, sum them, and return what is wrong; and how many of them each tier has had."""
    rng = np.random.default_rng(seed)
    wrong, tiers = [], {"pairs": 0, "plain": 0, "groups": 0}
    for _ in range(n_machines):
        k, m = (int(rng.integers(1, size + 1)) for size in largest)
        machine, what = draw_machine(rng, k, m)
        expected = brute_force(machine)
        errors = find_errors(enumeration.moments(*machine), expected)
        errors += find_errors((enumeration.log_partition(*machine),), expected[:1])
        wrong += [f"{k} x {m}, {what}: {error}" for error in errors]
        t = enumeration._Bits(*machine).tables
        tiers["pairs" if t.pairwise else "plain" if t.groups.size == 2 else "groups"] += 1
    return wrong, tiers


def test_sums_on_either_side_of_every_limit():
    wrong, tiers = check_machines(3_000, seed=0)
    assert wrong == []
    assert min(tiers.values()) > 400, tiers


def test_the_machines_of_these_tests_are_hard():
    # Plain products fail for many of them, also for some whose factors alone are in range.
    rng, failed = np.random.default_rng(1), 0
    for _ in range(400):
        machine, _ = draw_machine(rng, int(rng.integers(1, 7)), int(rng.integers(1, 9)))
        failed += bool(find_errors((naive_log_partition(machine),), brute_force(machine)[:1]))
    assert failed > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_a_hundred_thousand_sums_on_either_side_of_every_limit(seed):
    wrong, _ = check_machines(2_000, seed)
    assert wrong == []


@pytest.mark.parametrize("seed", range(2))
def test_several_blocks_of_columns(seed):
    wrong, _ = check_machines_of_many_blocks(8, seed)
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 30))
def test_more_of_several_blocks_of_columns(seed):
    wrong, _ = check_machines_of_many_blocks(20, seed)
    assert wrong == []


def check_machines_of_many_blocks(n_machines, seed):
    rng, wrong = np.random.default_rng(seed), []
    for _ in range(n_machines):
        machine, what = draw_machine(rng, int(rng.integers(13, 16)), int(rng.integers(13, 18)))
        assert enumeration._Bits(*machine).n_blocks > 1
        wrong += [f"{what}: {e}" for e in find_errors(enumeration.moments(*machine), brute_force(machine))]
    return wrong, None


def test_linear_terms_that_outweigh_the_range_of_a_double():
    w = np.abs(np.random.default_rng(0).normal(size=(6, 20))) * 5
    rbm = pm.RBM(w, 0, 0, "spin", "spin")
    moments = pm.exact.exact_moments(rbm)
    assert pm.log_partition(rbm) == pytest.approx(475.6322958, abs=1e-6)
    assert moments.log_partition == pytest.approx(pm.log_partition(rbm), abs=1e-11)
    np.testing.assert_allclose(moments.visible, 0.0, atol=1e-11)  # every state weighs as much as its mirror
    np.testing.assert_allclose(moments.hidden, 0.0, atol=1e-11)
    up = (pm.sample_exact(rbm, 1000, rng=1)[:, 0] > 0).sum()
    assert 400 < up < 600


@pytest.mark.parametrize(
    ("w", "b", "c", "expected"),
    [
        (755.0, -753.0, 0.0, math.log(2.0 + math.exp(2.0))),
        (1188.0, -1308.0, 671.0, 671.0),
        (1199.0, -1199.0, 0.0, math.log(3.0)),
        (1201.0, -1201.0, 0.0, math.log(3.0)),
        (699.0, -699.0, 0.0, math.log(3.0)),
        (701.0, -701.0, 0.0, math.log(3.0)),
        (-755.0, 755.0, 755.0, 755.0 + math.log(3.0)),
    ],
)
def test_one_unit_beside_another(w, b, c, expected):
    rbm = pm.RBM([[w]], [b], [c], "bit", "bit")
    assert pm.log_partition(rbm) == pytest.approx(expected, abs=1e-11 * max(1.0, expected))
    assert pm.exact.exact_moments(rbm).log_partition == pytest.approx(pm.log_partition(rbm), abs=1e-9)
    likelihoods = [float(pm.log_likelihood(rbm, [[v]])) for v in (0.0, 1.0)]
    assert max(likelihoods) <= 1e-12  # a discrete machine has no likelihood above zero
    assert sum(map(math.exp, likelihoods)) == pytest.approx(1.0, abs=1e-9)


def test_draws_on_either_side_of_every_limit():
    rng = np.random.default_rng(2)
    n_samples, largest = 300, 0.0
    for i in range(150):
        machine, what = draw_machine(rng, int(rng.integers(1, 8)), int(rng.integers(1, 8)))
        _, mean_v, mean_h, products = brute_force(machine)
        v, h = enumeration.draw_states(*machine, n_samples, np.random.default_rng(i))
        for got, mean, levels in (
            (v, mean_v, machine.visible_levels),
            (h, mean_h, machine.hidden_levels),
        ):
            # Bernstein's inequality for the number of ups among the draws, at 1e-9 for each of them
            p = (mean - levels[0]) / (levels[1] - levels[0])
            ups = (got == levels[1]).sum(axis=0)
            spread = np.sqrt(2.0 * 21.0 * n_samples * np.maximum(p * (1.0 - p), 0.0)) + 14.0
            assert (np.abs(ups - n_samples * p) <= spread).all(), what
        largest = max(largest, np.abs(v.T @ h / n_samples - products).max())
    assert largest < 0.5


# --- Gaussian layers: the exponents themselves are summed, and only their size matters ---


@pytest.mark.parametrize("visible", ["gaussian", "gaussian(0.01)", "gaussian(100)"])
@pytest.mark.parametrize("binary", ["spin", "bit"])
@pytest.mark.parametrize("exchanged", [False, True])
def test_gaussian_layers_with_large_exponents(visible, binary, exchanged):
    rng = np.random.default_rng(3)
    variance, levels = pm.RBM([[1.0]], 0, 0, visible, "bit").visible.variance, {"spin": SPIN, "bit": BIT}
    for size in (1.0, 10.0, 708.0, 745.0, 1200.0, 30_000.0):
        w, b, c = rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=6)
        w[:, 1] = -w[:, 0]  # some states compete at every size
        w *= math.sqrt(size / variance) / np.abs(w).sum()
        long = np.longdouble
        bits = (np.arange(2**6)[:, None] >> np.arange(6)) & 1
        h = np.where(bits, levels[binary][1], levels[binary][0]).astype(long)
        fields = h @ w.T.astype(long) + b
        exponents = h @ c.astype(long) + 0.5 * variance * (fields**2).sum(axis=1)
        p = np.exp(exponents - exponents.max())
        log_z = float(exponents.max() + np.log(p.sum()))
        p /= p.sum()
        expected = log_z, variance * (p @ fields), p @ h, variance * ((fields * p[:, None]).T @ h)
        arguments = (w, b, c, visible, binary)
        if exchanged:
            arguments = (w.T, c, b, binary, visible)
            expected = expected[0], expected[2], expected[1], expected[3].T
        got = pm.exact.exact_moments(pm.RBM(*arguments))
        assert got.log_partition == pytest.approx(log_z, rel=1e-11, abs=1e-9)
        assert pm.log_partition(pm.RBM(*arguments)) == pytest.approx(log_z, rel=1e-11, abs=1e-9)
        for x, y in zip((got.visible, got.hidden, got.products), expected[1:], strict=True):
            np.testing.assert_allclose(x, y.astype(float), rtol=1e-9, atol=1e-9)


# --- where rounding is the limit ---


def competing(size, n_hidden=3):
    """A machine of two mirrored states with exponents of about ``size``, and its exact averages: zero."""
    weights = np.random.default_rng(4).uniform(0.5, 1.5, size=(3, n_hidden))
    return weights * (size / weights.sum())


def test_averages_that_rounding_may_spoil_are_refused():
    fine = pm.exact.exact_moments(pm.RBM(competing(0.1 * CERTAIN), 0, 0, "spin", "spin"))
    np.testing.assert_allclose(fine.visible, 0.0, atol=1e-9)
    for size in (CERTAIN, 1e3 * CERTAIN):
        rbm = pm.RBM(competing(size), 0, 0, "spin", "spin")
        with pytest.raises(InexactSumError, match=r"averages.*add up to .*learning rate"):
            pm.exact.exact_moments(rbm)
        with pytest.raises(InexactSumError):
            pm.learning.exact_gradient(rbm, [[1.0, 1.0, 1.0]])
        assert pm.log_partition(rbm) == pytest.approx(size + math.log(2.0), rel=1e-12)
    # One state alone is as certain as ever.
    alone = pm.exact.exact_moments(pm.RBM(competing(10 * CERTAIN), 1e5, 1e5, "spin", "spin"))
    np.testing.assert_array_equal(alone.products, 1.0)


def test_draws_and_logarithms_that_rounding_may_spoil_are_refused():
    with pytest.raises(InexactSumError, match="draws"):
        pm.sample_exact(pm.RBM(competing(2 * LARGEST), 0, 0, "spin", "spin"), 3, rng=0)
    weights = competing(CERTAIN)
    # The terms of the heaviest states cancel: ln Z is a few nats, the terms themselves are above a million.
    rbm = pm.RBM(4 * weights, -4 * weights.sum(axis=1), 0.0, "bit", "bit")
    with pytest.raises(InexactSumError, match="ln Z"):
        pm.log_partition(rbm)
    with pytest.raises(InexactSumError):
        pm.log_likelihood(rbm, [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("gaussian", ["gaussian", "gaussian(100)"])
def test_gaussian_averages_that_rounding_may_spoil_are_refused(gaussian):
    weights = competing(3e4)
    with pytest.raises(InexactSumError, match="averages"):
        pm.exact.exact_moments(pm.RBM(weights, 0, 0, gaussian, "spin"))
    with pytest.raises(InexactSumError, match="averages"):
        pm.exact.exact_moments(pm.RBM(weights, 0, 0, "spin", gaussian))
    with pytest.raises(InexactSumError, match="draws"):
        pm.sample_exact(pm.RBM(100 * weights, 0, 0, "spin", gaussian), 2, rng=0)


def test_training_that_leaves_the_range_of_exact_sums_has_diverged():
    rng = np.random.default_rng(5)
    data = np.where(rng.random((20, 4)) < 0.5, -1.0, 1.0)
    rbm = pm.initialize(4, 3, hidden="spin", rng=6)
    with pytest.raises(pm.DivergenceError, match="too large a learning rate") as caught:
        pm.train(rbm, data, epochs=5, optimizer=pm.SGD(1e9), rng=7)
    assert caught.value.state.epoch <= 2
    assert isinstance(caught.value.__cause__, InexactSumError)


def test_tiers_change_at_their_limits():
    def tier(w, b=0.0, c=0.0):
        t = tables.make_tables(np.array([[w]]), np.array([b]), np.array([c]), 0, 6)
        return "pairs" if t.pairwise else t.groups.tolist()

    assert tier(tables.LARGEST_STEP) == [0, 1]
    assert tier(np.nextafter(tables.LARGEST_STEP, 1e9)) == "pairs"
    assert tier(650.0, b=-540.0) == [0, 1]  # 649.3 and 540 are together below 1200
    assert tier(650.0, b=-560.0) == [0, 1, 1]
    assert tier(590.0, b=-1e5) == [0, 1]  # factors of half the limit bear any linear term


def test_machine_as_the_oracle_knows_it():
    # The oracle's two ways, every state of both layers and a closed form for one of them, agree.
    rng = np.random.default_rng(8)
    w, b, c = rng.normal(size=(5, 7)), rng.normal(size=5), rng.normal(size=7)
    both = brute_force(Machine(w, b, c, SPIN, BIT))
    padded = Machine(np.pad(w, ((0, 0), (0, 1))), b, np.append(c, 0.0), SPIN, BIT)  # a unit without weights
    one = brute_force(padded)
    assert one[0] == pytest.approx(both[0] + math.log(2.0), abs=1e-12)
    np.testing.assert_allclose(one[3][:, :7], both[3], atol=1e-14)
