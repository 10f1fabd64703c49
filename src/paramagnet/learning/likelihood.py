"""The log-likelihood of data, with the error of the estimate it rests on."""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet._checks import as_real
from paramagnet.estimates import Estimate
from paramagnet.exact import sums as exact
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import FloatArray, GaussianUnit

_BLOCK_ELEMENTS = 1 << 18  # hidden fields held at a time
_UNITS_IN_PRODUCT = 512  # 2**512 is far from overflow


def log_likelihood(rbm: RBM, data: Any, *, log_partition: float | Estimate | None = None) -> Estimate:
    """The mean of ``ln p(v) = -F(v) - ln Z`` over the points ``data``, in nats per point (for Gaussian
    visible units ``p`` is a density).

    Parameters
    ----------
    data : array ``(n_points, n_visible)`` in the values of the visible units
    log_partition : ``ln Z`` if it is known, a number or an `Estimate` whose error the result inherits; None
        computes it exactly
    """
    points = as_rbm(rbm, "rbm").visible.as_states(data, "data", rbm.n_visible)
    if log_partition is None:
        log_z = Estimate(exact.log_partition(rbm))
    elif isinstance(log_partition, Estimate):
        log_z = log_partition
    else:
        log_z = Estimate(as_real(log_partition, "log_partition"))
    return Estimate(-mean_free_energy(rbm, points) - log_z.value, log_z.error, log_z.n_effective)


def mean_free_energy(rbm: RBM, points: FloatArray) -> float:
    """The mean of ``F(v)`` over ``points``."""
    return float(np.mean(free_energies(rbm, points)))


def free_energies(rbm: RBM, points: FloatArray) -> FloatArray:
    """``F(v)`` of every point; memory stays bounded.

    With levels ``centre -+ half`` and ``x = half * field`` the logarithm of a unit's trace is
    ``centre * field + |x| + ln(1 + exp(-2 |x|))``. The arguments of the logarithm lie between 1 and 2, so it
    is taken once of the product over many units, in place of one ``logaddexp`` per unit.
    """
    base = np.zeros(len(points)) - rbm.visible.log_base(points)
    block = max(1, _BLOCK_ELEMENTS // rbm.n_hidden)
    if isinstance(rbm.hidden, GaussianUnit):
        for start in range(0, len(points), block):
            rows = slice(start, start + block)
            v = points[rows]
            fields = v @ rbm.weights + rbm.hidden_bias
            squares = np.einsum("ij,ij->i", fields, fields)
            base[rows] -= v @ rbm.visible_bias + 0.5 * rbm.hidden.variance * squares
        return base
    low, high = rbm.hidden.levels
    centre, half = 0.5 * (high + low), 0.5 * (high - low)
    weights, bias = half * rbm.weights.T, half * rbm.hidden_bias[:, None]
    linear = rbm.visible_bias + centre * rbm.weights.sum(axis=1)
    groups = np.arange(0, rbm.n_hidden, _UNITS_IN_PRODUCT)
    base -= centre * float(rbm.hidden_bias.sum())
    for start in range(0, len(points), block):
        rows = slice(start, start + block)
        v = points[rows]
        size = weights @ v.T
        size += bias
        np.abs(size, out=size)
        base[rows] -= v @ linear + size.sum(axis=0)
        size *= -2.0
        factors = np.exp(size, out=size)
        factors += 1.0
        base[rows] -= np.log(np.multiply.reduceat(factors, groups, axis=0)).sum(axis=0)
    return base
