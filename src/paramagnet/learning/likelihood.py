"""The log-likelihood of data, with the error of the estimate it rests on."""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet._checks import as_real
from paramagnet.estimates import Estimate
from paramagnet.exact import sums as exact
from paramagnet.learning.weighting import as_point_weights
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import FloatArray

_ONE_VALUE = 1e-9  # above one, effective number of values that have no error
_BLOCK_ELEMENTS = 1 << 18  # number of fields in memory at a time


def log_likelihood(
    rbm: RBM, data: Any, *, sample_weight: Any = None, log_partition: float | Estimate | None = None
) -> Estimate:
    """The mean of ``ln p(v) = -F(v) - ln Z`` over the points ``data``, in nats per point (for Gaussian
    visible units ``p`` is a density).

    Parameters
    ----------
    rbm : RBM
        The machine.
    data : array_like
        Array ``(n_points, n_visible)`` in the values of the visible units.
    sample_weight : array_like, optional
        Weights of the points, zero or positive; None counts all alike.
    log_partition : float or Estimate, optional
        ``ln Z`` if it is known, a number or an `Estimate` whose error the result inherits; None computes it
        exactly.

    Returns
    -------
    Estimate
        Mean log-likelihood in nats per point, with two errors: ``error`` is that of ``ln Z``,
        ``points_error`` the standard error of a mean over these points. Each point counts as one observation,
        whatever its weight; where a single one has nearly all of the weight the error is infinite.
    """
    points = as_rbm(rbm, "rbm").visible.as_states(data, "data", rbm.n_visible)
    points, weights = weigh_points(points, sample_weight, "sample_weight")
    if log_partition is None:
        log_z = Estimate(exact.log_partition(rbm))
    elif isinstance(log_partition, Estimate):
        log_z = log_partition
    else:
        log_z = Estimate(as_real(log_partition, "log_partition"))
    return likelihood_of(free_energies(rbm, points), log_z, weights)


def likelihood_of(energies: FloatArray, log_z: Estimate, weights: FloatArray | None = None) -> Estimate:
    """The mean log-likelihood of points with these free energies, with the error of ln Z and of the mean."""
    mean = average(energies, weights)
    error = error_of_mean(energies, mean, weights)
    return Estimate(-mean - log_z.value, log_z.error, log_z.n_effective, error, len(energies))


def average(values: FloatArray, weights: FloatArray | None) -> float:
    """The mean, with weights if there are some."""
    return float(np.mean(values) if weights is None else weights @ values / weights.sum())


def error_of_mean(values: FloatArray, mean: float, weights: FloatArray | None = None) -> float:
    """The standard error of a mean of independent values; infinite where they are worth a single one.

    Values with weights are worth ``n = (sum w)**2 / sum w**2`` of equal weight, which takes the place of
    their number in ``n / (n - 1)``.
    """
    n: float = len(values)
    if weights is None:
        shares = np.full(len(values), 1.0 / n)
    else:
        shares = weights / weights.sum()
        n = 1.0 / float(shares @ shares)
    if n < 1.0 + _ONE_VALUE:
        return float("inf")
    return float(np.sqrt(n / (n - 1) * np.sum((shares * (values - mean)) ** 2)))


def weigh_points(points: FloatArray, weights: Any, argument: str) -> tuple[FloatArray, FloatArray | None]:
    """The points of positive weight, and their weights; None where all are equal."""
    if weights is None:
        return points, None
    kept, found = as_point_weights(weights, argument, len(points))
    return points if kept is None else points[kept], None if found is None else found.values


def mean_free_energy(rbm: RBM, points: FloatArray, weights: FloatArray | None = None) -> float:
    """The mean of ``F(v)`` over ``points``, with their ``weights`` if they have some."""
    return average(free_energies(rbm, points), weights)


def free_energies(rbm: RBM, points: FloatArray) -> FloatArray:
    """``F(v)`` of every point; memory stays bounded."""
    visible, hidden = rbm.units
    energies = np.zeros(len(points)) - visible.log_base(points)
    if visible.width == 1:
        hidden.subtract_log_weights(energies, points, rbm.weights, rbm.visible_bias, rbm.hidden_bias)
        return energies
    block = max(1, _BLOCK_ELEMENTS // len(rbm.hidden_bias))
    for start in range(0, len(points), block):
        rows = slice(start, start + block)
        fields = visible.multiply(points[rows], rbm.weights) + rbm.hidden_bias
        energies[rows] -= visible.multiply(points[rows], rbm.visible_bias) + hidden.sum_log_trace(fields)
    return energies
