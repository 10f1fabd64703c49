"""Exact enumeration against independent oracles: loops over all states, and mpmath where doubles fail."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paramagnet.kernels import enumeration, partition, tables
from paramagnet.kernels.enumeration import draw_states, estimate_seconds, log_partition, moments

SPIN, BIT, ODD = (-1.0, 1.0), (0.0, 1.0), (-0.3, 2.0)
SHAPES = [(1, 1), (1, 6), (6, 1), (2, 3), (4, 4), (7, 3), (3, 8), (5, 6)]


def machine(n, m, scale=0.7, levels=(SPIN, BIT), seed=0):
    rng = np.random.default_rng([seed, n, m])
    weights, visible, hidden = rng.normal(size=(n, m)), rng.normal(size=n), rng.normal(size=m)
    return scale * weights, scale * visible, scale * hidden, *levels


def tier(arguments):
    """0 by pairs, else the number of groups of factors."""
    t = enumeration._Bits(*arguments).tables
    return 0 if t.pairwise else t.groups.size - 1


def loop_oracle(weights, visible_bias, hidden_bias, visible_levels, hidden_levels):
    """Every state of both layers, one at a time."""
    n, m = weights.shape
    terms = []
    for v in itertools.product(visible_levels, repeat=n):
        fields = [hidden_bias[j] + sum(v[i] * weights[i, j] for i in range(n)) for j in range(m)]
        linear = sum(visible_bias[i] * v[i] for i in range(n))
        terms.extend(
            (linear + sum(f * x for f, x in zip(fields, h, strict=True)), v, h)
            for h in itertools.product(hidden_levels, repeat=m)
        )
    top = max(e for e, _, _ in terms)
    log_z = top + math.log(math.fsum(math.exp(e - top) for e, _, _ in terms))
    p = np.array([math.exp(e - log_z) for e, _, _ in terms])
    v, h = np.array([v for _, v, _ in terms]), np.array([h for _, _, h in terms])
    return log_z, p @ v, p @ h, (v * p[:, None]).T @ h


def textbook(weights, visible_bias, hidden_bias, visible_levels, hidden_levels):
    """All states of the visible layer in one array, logaddexp, matrix products; for sizes beyond loops."""
    n = len(visible_bias)
    v = np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, visible_levels[1], visible_levels[0])
    field = v @ weights + hidden_bias
    low, high = hidden_levels[0] * field, hidden_levels[1] * field
    trace = np.logaddexp(low, high)
    log_p = v @ visible_bias + trace.sum(axis=1)
    log_z = log_p.max() + math.log(np.exp(log_p - log_p.max()).sum())
    p = np.exp(log_p - log_z)
    mean = hidden_levels[0] * np.exp(low - trace) + hidden_levels[1] * np.exp(high - trace)
    return log_z, p @ v, p @ mean, (v * p[:, None]).T @ mean


def precise_oracle(weights, visible_bias, hidden_bias, visible_levels, hidden_levels):
    """The same with 60 digits, rounded at the end."""
    n, m = weights.shape
    mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.mp
    mp.dps = 60
    w = [[mp.mpf(float(x)) for x in row] for row in weights]
    b, c = [mp.mpf(float(x)) for x in visible_bias], [mp.mpf(float(x)) for x in hidden_bias]
    v_levels, h_levels = [mp.mpf(x) for x in visible_levels], [mp.mpf(x) for x in hidden_levels]
    z = mp.mpf(0)
    first, second = [mp.mpf(0)] * n, [mp.mpf(0)] * m
    products = [[mp.mpf(0)] * m for _ in range(n)]
    for v in itertools.product(v_levels, repeat=n):
        low_high = [
            [mp.exp(h * (c[j] + sum(x * w[i][j] for i, x in enumerate(v)))) for h in h_levels]
            for j in range(m)
        ]
        p = mp.exp(sum(x * y for x, y in zip(b, v, strict=True)))
        for low, high in low_high:
            p *= low + high
        z += p
        mean = [(h_levels[0] * low + h_levels[1] * high) / (low + high) for low, high in low_high]
        for j in range(m):
            second[j] += p * mean[j]
        for i in range(n):
            first[i] += p * v[i]
            for j in range(m):
                products[i][j] += p * v[i] * mean[j]
    as_floats = [[float(x / z) for x in row] for row in (first, second, *products)]
    return float(mp.log(z)), np.array(as_floats[0]), np.array(as_floats[1]), np.array(as_floats[2:])


def assert_close(got, expected, log_tolerance=1e-12, tolerance=1e-12):
    assert abs(got[0] - expected[0]) <= log_tolerance * max(1.0, abs(expected[0]))
    for x, y in zip(got[1:], expected[1:], strict=True):
        assert x.shape == y.shape
        assert x.dtype == np.float64
        assert np.abs(x - y).max() <= tolerance


# --- oracles ---


@pytest.mark.parametrize("levels", list(itertools.product([SPIN, BIT], repeat=2)))
@pytest.mark.parametrize("shape", SHAPES)
def test_every_state_one_at_a_time(shape, levels):
    arguments = machine(*shape, levels=levels)
    expected = loop_oracle(*arguments)
    assert_close(moments(*arguments), expected)
    assert abs(log_partition(*arguments) - expected[0]) < 1e-12 * max(1.0, abs(expected[0]))


def test_any_levels():
    arguments = machine(4, 3, levels=(ODD, (0.25, 0.5)))
    assert_close(moments(*arguments), loop_oracle(*arguments))


@pytest.mark.parametrize("shape", [(8, 9), (12, 12), (13, 14), (15, 3), (14, 40), (16, 16)])
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_several_blocks(shape, scale):
    arguments = machine(*shape, scale=scale)
    got, expected = moments(*arguments), textbook(*arguments)
    assert_close(got, expected)
    assert abs(log_partition(*arguments) - expected[0]) < 1e-12 * max(1.0, abs(expected[0]))


def opposing(w, k=8, m=8):
    """Rows push every field up, columns push it down, as far as they can."""
    weights = np.full((k, m), w)
    weights[enumeration._Bits(*machine(k, m)).row_bits :] = -w
    return weights


# Eight units a layer: two make rows, six make columns. Spins have four times the coupling of bits.
PRECISE = {
    "one group": (machine(8, 8, 3.0), 1),
    "groups": (machine(8, 8, 10.0, (SPIN, SPIN)), None),
    "pairs": (machine(8, 8, 60.0, (SPIN, SPIN)), 0),
    "weights of 100, bits": ((100.0 * np.sign(machine(8, 8)[0]), *machine(8, 8, 100.0)[1:3], BIT, BIT), None),
    "weights of 100, spins": ((100.0 * np.sign(machine(8, 8)[0]), *machine(8, 8, 100.0)[1:3], SPIN, SPIN), 0),
    "all up": ((np.full((8, 8), 100.0), np.zeros(8), np.zeros(8), SPIN, SPIN), 0),
    "all down": ((np.full((8, 8), -100.0), np.zeros(8), np.zeros(8), BIT, BIT), None),
    "last of one group": ((np.full((8, 8), 149.99 / 8), np.zeros(8), np.full(8, -75.0), BIT, BIT), 1),
    "first of two groups": ((np.full((8, 8), 151.0 / 4), np.zeros(8), np.full(8, -75.0), BIT, BIT), 2),
    "last of groups": ((np.full((8, 8), 149.99), np.zeros(8), np.full(8, -600.0), BIT, BIT), 4),
    "first of pairs": ((np.full((8, 8), 150.01), np.zeros(8), np.full(8, -600.0), BIT, BIT), 0),
    "opposing, one group": ((opposing(18.0), np.zeros(8), np.zeros(8), BIT, SPIN), 1),
    "opposing, groups": ((opposing(70.0), np.zeros(8), np.zeros(8), BIT, SPIN), None),
    "opposing, pairs": ((opposing(100.0), np.zeros(8), np.zeros(8), SPIN, SPIN), 0),
    "opposing linear terms": (
        (opposing(15.0), np.repeat([-400.0, 400.0], [2, 6]), np.full(8, 40.0), BIT, BIT),
        1,
    ),
    "biases of 1000": ((machine(8, 8)[0], np.full(8, -1000.0), np.repeat([1000.0, -1000.0], 4), BIT, BIT), 1),
    "one huge weight": ((np.diag([1e4] + [0.1] * 7), np.zeros(8), np.zeros(8), BIT, BIT), 0),
}


@pytest.mark.parametrize("name", PRECISE)
def test_sixty_digits(name):
    arguments, expected_tier = PRECISE[name]
    if expected_tier is not None:
        assert tier(arguments) == expected_tier
    expected = precise_oracle(*arguments)
    # Exponents reach 1e4 to 1e5 at weights of 100, and a double of that size has an error of 1e-12 to 1e-11.
    assert_close(moments(*arguments), expected, log_tolerance=2e-15, tolerance=2e-11)
    assert abs(log_partition(*arguments) - expected[0]) <= 2e-15 * max(1.0, abs(expected[0]))


def test_the_precise_cases_cover_every_tier():
    tiers = {min(tier(arguments), 2) for arguments, _ in PRECISE.values()}
    assert tiers == {0, 1, 2}


@pytest.mark.parametrize(("scale", "by_pairs"), [(1.0, False), (12.0, False), (40.0, True)])
def test_every_tier_with_two_blocks_of_columns(scale, by_pairs):
    arguments = machine(13, 14, scale)
    assert enumeration._Bits(*arguments).n_blocks == 2
    assert (tier(arguments) == 0) == by_pairs
    assert_close(moments(*arguments), textbook(*arguments), tolerance=1e-10)


@pytest.mark.parametrize("m", [513, 3000])
def test_many_summed_units(m):
    for scale in (0.05, 3.0, 400.0):
        arguments = machine(4, m, scale)
        assert_close(moments(*arguments), textbook(*arguments), tolerance=1e-10)


# --- symmetries ---


@pytest.mark.parametrize("shape", [(3, 5), (7, 7), (13, 13)])
def test_exchange_of_layers(shape):
    weights, b, c, v_levels, h_levels = machine(*shape)
    log_z, v, h, products = moments(weights, b, c, v_levels, h_levels)
    assert_close(moments(weights.T, c, b, h_levels, v_levels), (log_z, h, v, products.T), tolerance=1e-13)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 5.0, 50.0]))
def test_spins_are_bits_in_other_variables(n, m, seed, scale):
    # v = 2 s - 1, h = 2 t - 1: b.v + c.h + v.w h is linear and bilinear in s and t again
    weights, b, c, *_ = machine(n, m, scale, seed=seed)
    log_z, v, h, products = moments(weights, b, c, SPIN, SPIN)
    bits = moments(4 * weights, 2 * (b - weights.sum(1)), 2 * (c - weights.sum(0)), BIT, BIT)
    s, t = 2 * bits[1] - 1, 2 * bits[2] - 1
    both = 4 * bits[3] - 2 * bits[1][:, None] - 2 * bits[2] + 1
    constant = weights.sum() - b.sum() - c.sum()
    assert_close((bits[0] + constant, s, t, both), (log_z, v, h, products), 1e-12, 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_order_of_units_does_not_matter(n, m, seed):
    weights, b, c, *levels = machine(n, m, 3.0, seed=seed)
    rng = np.random.default_rng(seed)
    i, j = rng.permutation(n), rng.permutation(m)
    log_z, v, h, products = moments(weights, b, c, *levels)
    assert_close(
        moments(weights[np.ix_(i, j)], b[i], c[j], *levels), (log_z, v[i], h[j], products[np.ix_(i, j)])
    )


@pytest.mark.parametrize("scale", [0.7, 15.0])
def test_moments_are_the_gradient(scale):
    arguments = machine(5, 4, scale)
    got = moments(*arguments)
    for which, expected in ((0, got[3]), (1, got[1]), (2, got[2])):
        for index in np.ndindex(expected.shape):
            step, change = 1e-5, []
            for sign in (1, -1):
                moved = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
                moved[which][index] += sign * step
                change.append(log_partition(*moved))
            assert abs((change[0] - change[1]) / (2 * step) - expected[index]) < 2e-8 * max(1.0, scale)


def test_any_array_and_one_compilation():
    weights, b, c, *levels = machine(6, 7)
    expected = moments(weights, b, c, *levels)
    frozen = weights.copy()
    frozen.flags.writeable = False
    strided = np.zeros((12, 14))
    strided[::2, ::2] = weights
    for other in (np.asfortranarray(weights), frozen, strided[::2, ::2]):
        assert_close(moments(other, b, c, *levels), expected, tolerance=1e-15)
    whole = moments(np.ones((6, 7), int), np.ones(6, np.float32), np.zeros(7, bool), *levels)
    assert_close(whole, loop_oracle(np.ones((6, 7)), np.ones(6), np.zeros(7), *levels))
    for function in (tables._fill_tables, partition.sum_weights, partition.sum_moments):
        assert len(function.signatures) <= 1


def test_too_many_states():
    with pytest.raises(ValueError, match=r"2\*\*61 states"):
        log_partition(np.zeros((61, 61)), np.zeros(61), np.zeros(61), SPIN, SPIN)


# --- threads, progress, processes ---


def same_bits(a, b):
    return a[0] == b[0] and all(np.array_equal(x, y) for x, y in zip(a[1:], b[1:], strict=True))


@pytest.mark.parametrize("scale", [0.5, 10.0, 40.0])
def test_threads_give_the_same_bits(scale, monkeypatch):
    monkeypatch.setattr(enumeration, "FOR_THREADS", 0)
    arguments = machine(17, 18, scale) if scale < 40.0 else machine(14, 8, scale)
    alone, log_z = moments(*arguments), log_partition(*arguments)
    drawn = draw_states(*arguments, 100, np.random.default_rng(5))
    for n_threads in (2, 3, 7):
        assert same_bits(moments(*arguments, n_threads=n_threads), alone)
        assert log_partition(*arguments, n_threads=n_threads) == log_z
        again = draw_states(*arguments, 100, np.random.default_rng(5), n_threads=n_threads)
        assert all(np.array_equal(x, y) for x, y in zip(again, drawn, strict=True))
    assert same_bits(moments(*arguments, progress=lambda fraction: None), alone)
    monkeypatch.setattr(enumeration, "AT_ONCE", 0)
    assert same_bits(moments(*arguments), alone)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("scale", [0.5, 10.0])
def test_progress(n_threads, scale, monkeypatch):
    monkeypatch.setattr(enumeration, "FOR_THREADS", 0)
    arguments, seen = machine(17, 18, scale), []

    def progress(fraction):
        assert threading.current_thread() is threading.main_thread()
        seen.append(fraction)

    for function in (
        moments,
        log_partition,
        lambda *a, **k: draw_states(*a, 10, np.random.default_rng(0), **k),
    ):
        seen.clear()
        function(*arguments, n_threads=n_threads, progress=progress)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0
        assert len(seen) >= 3 or n_threads > 1  # the other thread may have been faster


@pytest.mark.parametrize("n_threads", [1, 2])
def test_progress_may_end_the_sum(n_threads, monkeypatch):
    monkeypatch.setattr(enumeration, "FOR_THREADS", 0)
    arguments, calls = machine(17, 18), []

    def stop(fraction):
        calls.append(fraction)
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        moments(*arguments, n_threads=n_threads, progress=stop)
    assert len(calls) == 1
    assert threading.active_count() == before


def test_nothing_python_happens_on_the_way_into_and_out_of_kernels():
    """Numba runs Python code to hand out arrays and named tuples, and to take in the latter; a Ctrl-C there
    crashed the process. What Python calls takes arrays and plain tuples and returns numbers."""
    enumeration.moments(*machine(3, 4))
    for function in (tables._fill_tables, partition.sum_weights, partition.sum_moments):
        (signature,) = function.nopython_signatures
        assert "array" not in str(signature.return_type)
        assert not any("Tables" in str(kind) for kind in signature.args)


def test_two_python_threads_at_once():
    cases = [machine(15, 15, 0.5, seed=1), machine(14, 17, 0.5, seed=2)]
    expected = [moments(*arguments) for arguments in cases]
    results = [[], []]

    def work(i):
        results[i].extend(moments(*cases[i], n_threads=2) for _ in range(10))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        assert len(results[i]) == 10
        assert all(same_bits(result, expected[i]) for result in results[i])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's, where other tests have imported it
def test_forked_child(monkeypatch):
    monkeypatch.setattr(enumeration, "FOR_THREADS", 0)
    arguments = machine(15, 15)
    expected = moments(*arguments, n_threads=2)
    child = os.fork()
    if child == 0:
        try:
            good = same_bits(moments(*arguments, n_threads=2), expected)
        except BaseException:
            good = False
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def run_python(code, **environment):
    folder = Path(enumeration.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(folder), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_writable_cache(tmp_path):
    # A file where a folder should be stops the superuser too, whom permissions do not.
    package = tmp_path / "paramagnet"
    (package / "kernels").mkdir(parents=True)
    (package / "__init__.py").touch()
    for source in Path(enumeration.__file__).parent.glob("*.py"):
        shutil.copy(source, package / "kernels")
    for leaf in ("_parallel.py", "_progress.py"):
        shutil.copy(Path(enumeration.__file__).parents[1] / leaf, package)
    (package / "kernels" / "__pycache__").touch()
    code = """
import numpy as np
from paramagnet.kernels import enumeration
print(enumeration.__file__)
print(enumeration.log_partition(np.zeros((2, 3)), np.zeros(2), np.zeros(3), (-1.0, 1.0), (0.0, 1.0)))
"""
    nowhere = str(package / "__init__.py")
    out = run_python(
        code, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere,
        PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    path, value = out.split()
    assert path.startswith(str(tmp_path))
    assert math.isclose(float(value), 5 * math.log(2), rel_tol=1e-14)


@pytest.mark.slow
def test_compilation_is_cached_and_short(tmp_path):
    code = """
import time, numpy as np
from paramagnet.kernels import enumeration as e
machine = np.zeros((2, 3)), np.zeros(2), np.zeros(3), (-1.0, 1.0), (0.0, 1.0)
start = time.process_time()
e.log_partition(*machine), e.moments(*machine), e.draw_states(*machine, 2, np.random.default_rng(0))
print(time.process_time() - start)
"""
    first = float(run_python(code, NUMBA_CACHE_DIR=str(tmp_path)))
    second = float(run_python(code, NUMBA_CACHE_DIR=str(tmp_path)))
    assert first < 15.0
    assert second < 0.2 * first


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_at_24_units():
    code = """
import re, numpy as np
from paramagnet.kernels import enumeration as e
rng = np.random.default_rng(0)
def machine(k): return 0.1 * rng.normal(size=(k, 30)), np.zeros(k), np.zeros(30), (-1.0, 1.0), (0.0, 1.0)
def status(key): return int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
e.moments(*machine(3)); e.draw_states(*machine(3), 10, rng)
idle = status("VmRSS")
e.moments(*machine(24), n_threads=2); e.draw_states(*machine(24), 1000, rng, n_threads=2)
print(status("VmHWM") - idle)
"""
    assert float(run_python(code)) < 100.0


def test_estimate():
    assert estimate_seconds(784, 500) == math.inf
    assert estimate_seconds(16, 16) < 0.01
    assert estimate_seconds(30, 60, n_threads=1) > estimate_seconds(30, 30, n_threads=1) > 1.0
    assert estimate_seconds(35, 30) == pytest.approx(estimate_seconds(30, 35))
    assert estimate_seconds(30, 30, gradient=False) < estimate_seconds(30, 30)
    seconds = estimate_seconds(50, 50)
    assert 1e4 < seconds < math.inf


# --- samples ---


def chi_squared(counts, probabilities):
    """The p-value; states expected fewer than five times are taken together."""
    expected = probabilities * counts.sum()
    often = expected >= 5.0
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    keep = expected > 0
    assert not observed[~keep].any()
    observed, expected = observed[keep], expected[keep]
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


def joint(arguments, n_samples, draw=draw_states):
    """Counts and exact probabilities of all states ``(v, h)``."""
    weights, b, c, v_levels, h_levels = arguments
    n, m = weights.shape
    v, h = draw(*arguments, n_samples, np.random.default_rng(11))
    assert v.shape == (n_samples, n)
    assert h.shape == (n_samples, m)
    assert set(np.unique(v)) <= set(v_levels)
    assert set(np.unique(h)) <= set(h_levels)
    bits = np.hstack([v == v_levels[1], h == h_levels[1]])
    counts = np.bincount(bits @ (1 << np.arange(n + m)), minlength=2 ** (n + m))
    exponents = np.empty(2 ** (n + m))
    for index in range(2 ** (n + m)):
        x = [v_levels[(index >> i) & 1] for i in range(n)]
        y = [h_levels[(index >> (n + j)) & 1] for j in range(m)]
        exponents[index] = b @ x + c @ y + x @ weights @ y
    weights_of_states = np.exp(exponents - exponents.max())
    return counts, weights_of_states / weights_of_states.sum()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (1, 1), (1, 4), (8, 2)])
def test_samples_follow_the_distribution(shape):
    assert chi_squared(*joint(machine(*shape, levels=(SPIN, BIT)), 20_000)) > 1e-4


@pytest.mark.parametrize("bug", ["no hidden bias", "means of the other layer rounded"])
def test_a_wrong_sampler_is_caught(bug):
    def draw(weights, b, c, v_levels, h_levels, n_samples, rng):
        if bug == "no hidden bias":
            return draw_states(weights, b, 0 * c, v_levels, h_levels, n_samples, rng)
        v, _ = draw_states(weights, b, c, v_levels, h_levels, n_samples, rng)
        return v, np.where(v @ weights + c > 0, h_levels[1], h_levels[0])

    assert chi_squared(*joint(machine(5, 3), 20_000, draw)) < 1e-6


@pytest.mark.parametrize("scale", [0.3, 12.0, 40.0])
def test_samples_with_rows_and_several_blocks(scale):
    arguments = machine(14, 15, scale)
    b = enumeration._Bits(*arguments)
    assert b.n_blocks > 1
    v, _ = draw_states(*arguments, 20_000, np.random.default_rng(3))
    states = np.where((np.arange(2**14)[:, None] >> np.arange(14)) & 1, 1.0, -1.0)
    field = states @ arguments[0] + arguments[2]
    log_p = states @ arguments[1] + np.logaddexp(0, field).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    counts = np.bincount((v > 0) @ (1 << np.arange(14)), minlength=2**14)
    assert chi_squared(counts, p / p.sum()) > 1e-4


def test_no_samples():
    v, h = draw_states(*machine(3, 2), 0, np.random.default_rng(0))
    assert v.shape == (0, 3)
    assert h.shape == (0, 2)
