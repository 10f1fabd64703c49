"""Machines whose sums fall just on either side of a limit of the exact kernels, and a brute-force oracle.

A machine is first drawn in variables 0 and 1 (``k`` enumerated units with linear terms ``l``, ``m`` summed
units with biases ``d``, couplings ``W``), then multiplied by one number so that a chosen quantity (a range of
factors, a spread of linear terms, a step, their sum) is just below or just above a chosen limit, and last
rewritten in the levels of the layers. Linear terms are mostly set against the factors: states at opposite
ends of the range then weigh about the same, and none of them may be lost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SPIN, BIT = (-1.0, 1.0), (0.0, 1.0)
PAIRS = [(SPIN, SPIN), (SPIN, BIT), (BIT, SPIN), (BIT, BIT)]
# LIMIT and LARGEST_STEP of the tables, their halves and multiples, and the ends of double precision: the
# smallest normal number, the smallest denormal one, the largest over the smallest.
LIMITS = (600.0, 700.0, 708.4, 745.1, 1200.0, 1418.0, 1490.0, 2400.0)
STEEP = ("step", "linear", "bias", "one range")
NEARNESS = (1e-9, 1e-4, 1e-2, 0.1)


class Machine(NamedTuple):
    """What the kernels take."""

    weights: Any
    visible_bias: Any
    hidden_bias: Any
    visible_levels: tuple[float, float]
    hidden_levels: tuple[float, float]


def _softplus(x):
    return np.logaddexp(0.0, x)


def _quantities(coupling, linear, bias):
    """What limits may be set to: ranges of factors, of fields, spread of linear terms, steps, and sums."""
    top = bias + np.maximum(coupling, 0.0).sum(axis=0)
    bottom = bias + np.minimum(coupling, 0.0).sum(axis=0)
    ranges = _softplus(top) - _softplus(bottom)
    total, spread = ranges.sum(), np.abs(linear).sum()
    return {
        "range": total,
        "spread": spread,
        "range and spread": total + spread,
        "half range and spread": 0.5 * total + spread,
        "one range": ranges.max(),
        "field": (top - bottom).max(),
        "step": np.abs(coupling).max(),
        "linear": np.abs(linear).max(),
        "bias": np.abs(bias).max(),
        "middle": 0.5 * (_softplus(top) + _softplus(bottom)).max(),
    }


def _draw_shape(rng, k, m):
    """Couplings and biases of one of several kinds, of order one."""
    kind = rng.integers(8)
    coupling, bias = rng.normal(size=(k, m)), rng.normal(size=m) * rng.choice([0.0, 0.3, 1.0, 4.0])
    if kind == 0:
        coupling = np.abs(coupling)
    elif kind == 1:
        coupling = -np.abs(coupling)
    elif kind == 2:  # one steep coupling
        coupling *= 10.0 ** -rng.uniform(0.0, 4.0)
        coupling[rng.integers(k), rng.integers(m)] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0)
    elif kind == 3:  # fields centred at zero
        bias = -0.5 * coupling.sum(axis=0) + 1e-3 * rng.normal(size=m)
    elif kind == 4:  # rows push up, columns push down
        coupling = np.abs(coupling)
        coupling[rng.integers(k + 1) :] *= -1.0
    elif kind == 5:  # one steep factor
        coupling *= 10.0 ** -rng.uniform(0.0, 3.0)
        coupling[:, rng.integers(m)] = rng.normal(size=k)
    elif kind == 6:  # large biases
        bias = rng.choice([-1.0, 1.0]) * rng.uniform(0.0, 3.0, size=m) * np.abs(coupling).sum(axis=0)
    return coupling, bias


def _draw_linear(rng, coupling, bias):
    """Linear terms, mostly such that two states far from each other weigh about the same."""
    k = coupling.shape[0]
    kind = rng.integers(5)
    if kind == 0:
        return np.zeros(k)
    if kind == 1:
        return rng.normal(size=k) * rng.choice([0.1, 1.0, 10.0])
    scale = 1e3  # softplus is then the positive part: what is balanced stays so when all is multiplied
    first = rng.integers(2, size=k) if kind == 2 else np.zeros(k, int)
    other = rng.integers(2, size=k) if kind == 2 else np.ones(k, int)
    if kind == 4:
        first, other = np.zeros(k, int), np.eye(k, dtype=int)[rng.integers(k)]

    def trace(state):
        return _softplus(scale * (bias + state @ coupling)).sum() / scale

    difference = (other - first).astype(float)
    share = np.abs(difference) / max(np.abs(difference).sum(), 1.0)
    linear = 1e-3 * rng.normal(size=k)
    linear += np.where(difference != 0, np.sign(difference), 0.0) * share * (trace(first) - trace(other))
    if rng.random() < 0.5:
        extra = rng.normal(size=k) * rng.choice([0.1, 1.0])
        linear += extra - difference * (extra @ difference) / max(difference @ difference, 1.0)
    return linear


def draw_machine(rng: np.random.Generator, k: int, m: int) -> tuple[Machine, str]:
    """A machine with ``k`` units in one layer and ``m`` in the other, and what was put at which limit."""
    coupling, bias = _draw_shape(rng, k, m)
    linear = _draw_linear(rng, coupling, bias)
    names = [name for name, value in _quantities(coupling, linear, bias).items() if value > 0.0]
    name = names[rng.integers(len(names))]
    # A single steep quantity at a large limit makes most other ones larger still: fewer of these.
    limits = LIMITS[:5] if name in STEEP else LIMITS
    limit = limits[rng.integers(len(limits))]
    target = limit * (1.0 + rng.choice([-1.0, 1.0]) * NEARNESS[rng.integers(len(NEARNESS))])

    def reached(t):
        return _quantities(t * coupling, t * linear, t * bias)[name]

    low, high = 0.0, 1.0
    while reached(high) < target and high < 1e12:
        low, high = high, 4.0 * high
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reached(middle) < target else (low, middle)
    # One steep quantity may drive all others far out: the exponents stay below 1e5, where oracles are exact.
    largest = max(np.abs(high * x).sum() for x in (coupling, linear, bias))
    if largest > 1e5:
        high *= 1e5 / largest
    if rng.random() < 0.5:
        linear = linear + rng.normal(size=k) / high  # a few nats, so that states are not degenerate
    coupling, linear, bias = high * coupling, high * linear, high * bias

    x_levels, y_levels = PAIRS[rng.integers(4)]
    (x_low, x_high), (y_low, y_high) = x_levels, y_levels
    x_step, y_step = x_high - x_low, y_high - y_low
    weights = coupling / (x_step * y_step)
    x_bias = linear / x_step - y_low * weights.sum(axis=1)
    y_bias = bias / y_step - x_low * weights.sum(axis=0)
    machine = Machine(weights, x_bias, y_bias, x_levels, y_levels)
    if rng.random() < 0.5:
        machine = Machine(weights.T.copy(), y_bias, x_bias, y_levels, x_levels)
    return machine, f"{name} at {target:.10g}"


def brute_force(machine: Machine) -> tuple[float, Any, Any, Any]:
    """``ln Z, E[v], E[h], E[v h^T]``: every state of the smaller layer, in extended precision.

    Where both layers together have at most twelve units every state of both is visited.
    """
    weights, b, c, v_levels, h_levels = machine
    n, m = weights.shape
    if n > m:
        log_z, h, v, products = brute_force(Machine(weights.T, c, b, h_levels, v_levels))
        return log_z, v, h, products.T
    w, b, c = (np.asarray(x, np.longdouble) for x in (weights, b, c))
    v = _states(n, v_levels)
    fields = v @ w + c
    if n + m <= 12:
        h = _states(m, h_levels)
        exponents = (v @ b)[:, None] + fields @ h.T
        top = exponents.max()
        p = np.exp(exponents - top)
        total = p.sum()
        p /= total
        mean_v, mean_h, products = v.T @ p.sum(axis=1), h.T @ p.sum(axis=0), v.T @ p @ h
    else:
        low, high = (level * fields for level in h_levels)
        traces = np.logaddexp(low, high)
        exponents = v @ b + traces.sum(axis=1)
        top = exponents.max()
        p = np.exp(exponents - top)
        total = p.sum()
        p /= total
        means = h_levels[0] * np.exp(low - traces) + h_levels[1] * np.exp(high - traces)
        mean_v, mean_h, products = v.T @ p, means.T @ p, (v * p[:, None]).T @ means
    log_z = float(top + np.log(total))
    return log_z, *(x.astype(np.float64) for x in (mean_v, mean_h, products))


def _states(n, levels):
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.where(bits, levels[1], levels[0]).astype(np.longdouble)


def naive_log_partition(machine: Machine) -> float:
    """``ln Z`` by plain products of scaled factors in double precision: right only within all limits."""
    weights, b, c, (v_low, v_high), (h_low, h_high) = machine
    coupling = weights * ((v_high - v_low) * (h_high - h_low))
    linear = (v_high - v_low) * (b + h_low * weights.sum(axis=1))
    bias = (h_high - h_low) * (c + v_low * weights.sum(axis=0))
    constant = v_low * (b.sum() + h_low * weights.sum()) + h_low * c.sum()
    top = bias + np.maximum(coupling, 0.0).sum(axis=0)
    bottom = bias + np.minimum(coupling, 0.0).sum(axis=0)
    middle = 0.5 * (_softplus(top) + _softplus(bottom))
    s = _states(len(b), BIT).astype(float)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        factors = np.exp(-middle) + np.exp(s @ coupling + bias - middle)
        products = np.exp(s @ linear - np.maximum(linear, 0.0).sum()) * factors.prod(axis=1)
        return float(np.log(products.sum()) + middle.sum() + np.maximum(linear, 0.0).sum() + constant)


def find_errors(got: Any, expected: Any, tolerance: float = 1e-9) -> list[str]:
    """What of ``ln Z, E[v], E[h], E[v h^T]`` is not as expected, in words."""
    errors = []
    if not abs(got[0] - expected[0]) <= tolerance * max(1.0, abs(expected[0])):
        errors.append(f"ln Z is {got[0]!r}, should be {expected[0]!r}")
    for name, x, y in zip(("E[v]", "E[h]", "E[v h]"), got[1:], expected[1:], strict=False):
        worst = np.abs(x - y).max()
        if not worst <= tolerance:
            errors.append(f"{name} is off by {worst:.3g}")
    return errors
