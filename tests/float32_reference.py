"""Chains whose fields are summed in float32 in a fixed order: what sweeps in int16 must equal bit for bit.

Plain and slow. Lane ``l`` of 64 sums the weights of the high units ``l, l + 64, ...`` one after the other,
then halves of the lanes are added. A multiply-add is rounded once: the product of two float32 numbers is
exact in float64, and where the sum in float64 is not, its last bit is made odd (Boldo and Melquiond,
*Emulation of FMA and correctly rounded sums*, IEEE Trans. Comput. 57 (2008) 462), so that rounding it again
is harmless.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 10  # of Philox
POWERS = np.float32(
    [0.00015461444724808513, 0.0013400428177711937, 0.00961805667843204, 0.05550327226669895,
     0.24022650922289554, 0.6931472067028329, 1.0]
)  # fmt: skip


def fused(a, b, c):
    """``a * b + c`` of float32 arrays, rounded once."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float32).astype(np.float64) for x in (a, b, c)))
    product = a * b
    total = product + c
    back = total - product  # the error of a sum (Knuth)
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64) if total.ndim else np.array(total).view(np.int64)
    even = (bits & 1) == 0
    away = (error > 0) == (total > 0)
    odd = np.where(away, bits + 1, bits - 1).view(np.float64)
    exact = np.where((error != 0) & even & np.isfinite(total), odd, total)
    return exact.astype(np.float32)


def sum_high(weights, high):
    """``(n_chains, n_units)``: the sums of ``weights`` ``(n_units, n_sources)`` over the sources that are
    high.
    """
    n_chains, n_sources = high.shape
    lanes = np.zeros((n_chains, len(weights), 64), np.float32)
    for first in range(0, n_sources, 64):
        part = weights[None, :, first : first + 64] * high[:, None, first : first + 64]
        lanes[:, :, : part.shape[2]] += part
    while lanes.shape[2] > 1:
        half = lanes.shape[2] // 2
        lanes = lanes[:, :, :half] + lanes[:, :, half:]
    return lanes[:, :, 0]


def exp_minus(y):
    t = np.minimum(y * np.float32(1.4426950408889634), np.float32(125.0))
    k = (t + np.float32(0.5)).astype(np.int32)
    r, power = k.astype(np.float32) - t, POWERS[0]
    for factor in POWERS[1:]:
        power = fused(power, r, factor)
    return power * np.ldexp(np.float32(1.0), -k)


def philox_words(seed, chains, n_units, sweep, stream):
    """The random words ``(n_chains, n_units)``; a counter serves four units, a quarter of the layer apart."""
    quarter = -(-n_units // 4)
    c0, c1 = np.meshgrid(np.arange(quarter, dtype=np.uint64), chains.astype(np.uint64))
    c2, c3 = np.full_like(c0, sweep), np.full_like(c0, stream)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    k0, k1 = np.uint64(seed) & low, np.uint64(seed) >> half
    for _ in range(ROUNDS):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & low, (p0 >> half) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.concatenate((c0, c1, c2, c3), axis=1)[:, :n_units].astype(np.uint32)


def draw(layer, source, high, address, t=1.0, shift=None):
    """Which units of ``layer`` are high, given which of the layer ``source`` are; ``(n_chains, n_units)``.

    ``address`` is the seed, the numbers of the chains, the sweep and the stream.
    """
    seed, chains, sweep, stream = address
    low, step, scale = source.levels[0], source.levels[1] - source.levels[0], t * layer.scale
    sums = np.cumsum(layer.weights, axis=1, dtype=np.float64)[:, -1]
    origin = (scale * low * 2.0 * (0.5 * sums) + (layer.shift if shift is None else shift)).astype(np.float32)
    with np.errstate(under="ignore"):
        x = fused(np.float32(scale * step), sum_high(layer.weights, high), origin)
        e = exp_minus(np.abs(x))
        words = philox_words(seed, chains, len(layer.weights), sweep, stream)
        u = (words >> np.uint32(9)).astype(np.float32) * np.float32(2.0**-23) + np.float32(2.0**-24)
        return fused(u, e, u) < np.where(x >= 0.0, np.float32(1.0), e)


def run_sweeps(layers, visible, seed, sweep, n_sweeps, clamp=None):
    """The visible states after ``n_sweeps`` sweeps."""
    of_visible, of_hidden = layers
    low, high = of_visible.levels
    chains, middle = np.arange(len(visible)), 0.5 * (low + high)
    if clamp is not None:
        visible = np.where(clamp[0], clamp[1], visible)
    up = visible > middle
    for k in range(sweep, sweep + n_sweeps):
        hidden = draw(of_hidden, of_visible, up, (seed, chains, k, 0))
        up = draw(of_visible, of_hidden, hidden, (seed, chains, k, 1))
        if clamp is not None:
            up = np.where(clamp[0], clamp[1] > middle, up)
    return np.where(up, np.float32(high), np.float32(low))
