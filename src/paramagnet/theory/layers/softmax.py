"""Averages of a categorical unit in a random field, as integrals over one variable.

The probabilities ``p = softmax(b + s z)``, with ``z`` a vector of ``q`` independent normal variables, are
averaged by writing powers of ``1/sum_c exp(x_c)`` as integrals over ``t = exp(u)``. With ``y = exp(u + x_a)``
and the functions of ``u``

    phi_a = E exp(-y),      m_k = E[y**k exp(-y)]      (expectations over one normal variable)

the averages are

    E p_a**k                 = int m_k prod_{c != a} phi_c du / (k - 1)!
    E p_a**2 p_b**2          = int m_2(a) m_2(b) prod_{c != a, b} phi_c du / 6
    E ln sum_c exp(x_c)      = int (exp(-exp(u)) - prod_c phi_c) du .

All ``m_k`` are sums of derivatives of ``phi`` in ``u``, and ``d phi/d(s**2) = phi''/2``, so that derivatives
of the averages in the variance of the field are integrals of the same kind. For small ``s`` the expectations
are sums over ``z``; for large ones they are sums over the Gumbel variable ``w`` of ``exp(-exp(x)) = P(w >
x)``, in which ``phi`` is a mixture of normal distribution functions. All sums are trapezoid rules, whose
error falls exponentially; the steps below leave 1e-15.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from paramagnet.units import FloatArray

_WIDE = 1.5  # s from which sums over the Gumbel variable are used
_REACH = 9.0  # largest |z|
_STEP_U, _STEP_Z, _STEP_SZ = 0.2, 0.5, 0.24
_LONG = 4.5  # s from which the integrand falls off to the left like a normal density
_FINER, _N_TAPS = 2, 20  # tables of phi for interpolation: nodes per step of u, and nodes per value
_BLOCK = 1 << 17  # values of phi that are interpolated at a time
_FIRST_W, _LAST_W = -40.0, 4.2
_N_ORDERS = 7  # phi and its derivatives up to the sixth
_SMALLEST, _NEGLIGIBLE = 1e-250, 1e-60


class SoftmaxAverages(NamedTuple):
    """Averages of one site: ``sum_a E p_a**2`` less ``1/q``, its two derivatives in the variance of the
    field, ``E ||Cov||**2`` and the average log-trace.
    """

    overlap: float
    slope: float
    bend: float
    squared_variance: float
    log_trace: float


def _grid(s: float, coarseness: float) -> tuple[FloatArray, float]:
    """The nodes of ``u`` and their distance, for states whose largest bias is zero."""
    left = s * s + 21.0 if s < _LONG else _REACH * s + 1.0
    step = coarseness * _STEP_U * max(1.0, s / _WIDE)
    n_steps = int(np.ceil((left + 4.0 + _REACH * s) / step))
    nodes: FloatArray = -left + step * np.arange(n_steps + 1.0)
    return nodes, float(step)


@lru_cache(maxsize=1)
def _gumbel() -> tuple[FloatArray, FloatArray]:
    w = np.arange(_FIRST_W, _LAST_W, _STEP_U)
    return w, _STEP_U * np.exp(w - np.exp(w))


def _narrow(u: FloatArray, s: float, coarseness: float) -> tuple[FloatArray, FloatArray]:
    """``phi`` with its derivatives, and ``phi m_2 - m_1**2`` without the cancellation at small ``s``."""
    step = coarseness * min(_STEP_Z, _STEP_SZ / max(s, 1e-300))
    half = int(np.ceil(_REACH / step))
    z = step * np.arange(-half, half + 1)
    weights = np.exp(-0.5 * z * z)
    weights /= weights.sum()
    t = np.exp(u)[..., None]
    y = t * np.exp(s * z)
    decay = np.exp(-y) * weights
    orders = np.empty((_N_ORDERS, *u.shape))
    touchard = [1.0]  # d**k/du**k exp(-y) = T_k(y) exp(-y), T_(k+1) = y (T_k' - T_k)
    for k in range(_N_ORDERS):
        orders[k] = (np.polynomial.polynomial.polyval(y, touchard) * decay).sum(axis=-1)
        touchard = [0.0, *np.polynomial.polynomial.polysub(
            np.polynomial.polynomial.polyder(touchard) if k else [0.0], touchard
        )]  # fmt: skip
    distance = t * np.expm1(s * z)
    phi = np.maximum(orders[0], _SMALLEST)
    first = (distance * decay).sum(axis=-1) / phi
    spread = ((distance - first[..., None]) ** 2 * decay).sum(axis=-1) / phi
    return orders, phi * phi * spread


def _broad(u: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
    """The same for wide fields."""
    from scipy.special import ndtr

    w, weights = _gumbel()
    kappa = (w - u[..., None]) / s
    density = np.exp(-0.5 * kappa * kappa) * weights / np.sqrt(2.0 * np.pi)
    orders = np.empty((_N_ORDERS, *u.shape))
    orders[0] = ndtr(kappa) @ weights
    before, polynomial = np.zeros(()), np.ones(())
    for k in range(1, _N_ORDERS):  # Hermite polynomials of kappa
        orders[k] = -(density * polynomial).sum(axis=-1) / s**k
        before, polynomial = polynomial, kappa * polynomial - (k - 1) * before
    phi, first, second = orders[:3]
    return orders, phi * (second - first) - first * first


def _moments(orders: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``m_2``, ``m_3`` and ``m_4`` from the derivatives of ``phi``."""
    m1 = -orders[1]
    m2 = orders[2] + m1
    m3 = -orders[3] + 3.0 * m2 - m1
    return m2, m3, orders[4] + 6.0 * m3 - 7.0 * m2 + m1


def average_even(q: int, qhat: float, coarseness: float) -> SoftmaxAverages:
    """The averages without biases, in a field of variance ``qhat``."""
    s = float(np.sqrt(qhat))
    u, step = _grid(s, coarseness)
    orders, excess = _narrow(u, s, coarseness) if s <= _WIDE else _broad(u, s)
    phi, d1, d2, d3, d4, d5, d6 = orders
    log_phi = np.log(np.maximum(phi, _SMALLEST))

    def integral(values: FloatArray, power: int) -> float:
        return float(step * (values * np.exp(power * log_phi)).sum())

    # E = phi phi'' - phi phi' - phi'**2 and its derivatives in qhat, by phi -> phi''/2.
    e1 = 0.5 * (d2 * (d2 - d1) + phi * (d4 - d3) - 2.0 * d1 * d3)
    e2 = 0.25 * (d4 * (d2 - d1) + 2.0 * d2 * (d4 - d3) + phi * (d6 - d5) - 2.0 * (d3 * d3 + d1 * d5))
    slope, bend = integral(e1, q - 2), integral(e2, q - 2)
    if q > 2:
        slope += 0.5 * (q - 2) * integral(excess * d2, q - 3)
        bend += (q - 2) * integral(e1 * d2 + 0.25 * excess * d4, q - 3)
    if q > 3:
        bend += 0.25 * (q - 2) * (q - 3) * integral(excess * d2 * d2, q - 4)
    m2, m3, m4 = _moments(orders)
    squared = q * (integral(m2 - m3 + m4 / 6.0, q - 1) + (q - 1) * integral(m2 * m2, q - 2) / 6.0)
    trace = _log_trace(u, step, s, np.exp(q * log_phi), q * np.exp(0.5 * min(qhat, _LONG**2)))
    overlap = (q - 1) * integral(excess, q - 2)
    return SoftmaxAverages(overlap, (q - 1) * slope, (q - 1) * bend, squared, trace)


def average_biased(fields: FloatArray, shares: FloatArray, qhat: float, coarseness: float) -> SoftmaxAverages:
    """The averages over sites with different biases ``fields``, ``(n_sites, q)``, whose largest one in each
    row is zero; ``shares`` are the weights of the sites.

    One table of ``phi`` serves all states of all sites: a bias shifts its argument.
    """
    s = float(np.sqrt(qhat))
    u, step = _grid(s, coarseness)
    fine = step / _FINER
    reach = int(np.ceil(-fields.min() / fine)) + _N_TAPS
    table_u = u[0] + fine * np.arange(-reach, _FINER * (u.size - 1) + _N_TAPS + 1)
    table = (_narrow(table_u, s, coarseness) if s <= _WIDE else _broad(table_u, s))[0]
    windows = np.lib.stride_tricks.sliding_window_view(table, _N_TAPS, axis=1)
    total = np.zeros(5)
    block = max(1, _BLOCK // (u.size * fields.shape[1]))
    for start in range(0, len(fields), block):
        rows = slice(start, start + block)
        total += _sum_sites(fields[rows], shares[rows], windows, reach, fine, u, step, s)
    total[0] -= shares.sum() / fields.shape[1]
    return SoftmaxAverages(*map(float, total))


def _sum_sites(
    fields: FloatArray, shares: FloatArray, windows: FloatArray, reach: int, fine: float, u: FloatArray,
    step: float, s: float,
) -> FloatArray:  # fmt: skip
    """The sums over some sites of all five averages."""
    shift = np.floor(fields / fine)
    taps = _lagrange(fields / fine - shift)
    first = reach + shift.astype(np.int64) - (_N_TAPS // 2 - 1)
    at = first[..., None] + _FINER * np.arange(u.size)  # sites, states, nodes
    shifted = windows @ taps.reshape(-1, _N_TAPS).T  # all nodes of the table, sites and states
    orders = shifted[:, at, np.arange(fields.size).reshape(*fields.shape, 1)]
    phi = np.maximum(orders[0], _SMALLEST)
    product = np.exp(np.log(phi).sum(axis=1))
    counted = phi.min(axis=1, keepdims=True) > _NEGLIGIBLE  # the product is smaller still
    ratios = np.where(counted, orders[1:] / phi, 0.0)
    m2, m3, m4 = _moments(np.concatenate([np.ones((1, *phi.shape)), ratios]))
    d1, d2, d3, d4, d5, d6 = ratios
    a0, a2, a4 = d2 - d1, d4 - d3, d6 - d5  # of m_2 = phi'' - phi' and its derivatives
    sum_a, sum_d = a0.sum(axis=1), d2.sum(axis=1)
    first_order = 0.5 * (a2.sum(axis=1) + sum_a * sum_d - (a0 * d2).sum(axis=1))
    # Each derivative in qhat turns one factor phi of the product into phi''/2; at most three factors differ.
    pair_2 = a2.sum(axis=1) * sum_d - (a2 * d2).sum(axis=1)
    pair_4 = sum_a * d4.sum(axis=1) - (a0 * d4).sum(axis=1)
    squares, mixed = (d2 * d2).sum(axis=1), (a0 * d2).sum(axis=1)
    triple = sum_a * (sum_d**2 - squares) - 2.0 * (mixed * sum_d - (a0 * d2 * d2).sum(axis=1))
    second_order = 0.25 * (a4.sum(axis=1) + 2.0 * pair_2 + pair_4 + triple)
    squared = (m2 - m3 + m4 / 6.0).sum(axis=1) + (sum_a**2 - (a0 * a0).sum(axis=1)) / 6.0
    sums = [
        step * (part * product).sum(axis=1) @ shares for part in (sum_a, first_order, second_order, squared)
    ]
    sizes = np.exp(fields + 0.5 * min(s, _LONG) ** 2).sum(axis=1)
    traces = [_log_trace(u, step, s, row, size) for row, size in zip(product, sizes, strict=True)]
    return np.array([*sums, np.array(traces) @ shares])


def _log_trace(u: FloatArray, step: float, s: float, product: FloatArray, size: float) -> float:
    """``int (exp(-exp(u)) - product) du``; for narrow fields the integrand below the first node is ``(size -
    1) exp(u)``. For wide ones, whose steps are longer, a normal distribution function takes the place of the
    first term, and their integrals differ by Euler's constant.
    """
    from scipy.special import ndtr

    if s > _WIDE:
        return step * float((ndtr(-u / s) - product).sum()) - float(np.euler_gamma) + _tail(u, step, s, size)
    inside = step * float((np.exp(-np.exp(np.minimum(u, 6.0))) - product).sum())
    return inside + float((size - 1.0) * np.exp(u[0]) * step / np.expm1(step))


def _tail(u: FloatArray, step: float, s: float, size: float) -> float:
    """The sum over the nodes below the first one for wide fields."""
    return float(size * np.exp(u[0]) * step / np.expm1(step)) if s < _LONG else 0.0


def _lagrange(offset: FloatArray) -> FloatArray:
    """The weights of equally spaced values in their interpolating polynomial, ``offset`` steps right of the
    left one of the two in the middle.
    """
    nodes = np.arange(_N_TAPS) - (_N_TAPS // 2 - 1)
    weights = np.ones((*offset.shape, _N_TAPS))
    for j, node in enumerate(nodes):
        for other in np.delete(nodes, j):
            weights[..., j] *= (offset - other) / (node - other)
    return weights
