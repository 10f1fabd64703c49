"""The log-likelihood of data, with the error of the estimate it rests on."""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet._checks import as_real
from paramagnet.estimates import Estimate
from paramagnet.exact import sums as exact
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import FloatArray


def log_likelihood(rbm: RBM, data: Any, *, log_partition: float | Estimate | None = None) -> Estimate:
    """The mean of ``ln p(v) = -F(v) - ln Z`` over the points ``data``, in nats per point (for Gaussian
    visible units ``p`` is a density).

    Parameters
    ----------
    rbm : RBM
        The machine.
    data : array_like
        Array ``(n_points, n_visible)`` in the values of the visible units.
    log_partition : float or Estimate, optional
        ``ln Z`` if it is known, a number or an `Estimate` whose error the result inherits; None computes it
        exactly.

    Returns
    -------
    Estimate
        Mean log-likelihood in nats per point, with the error of ``ln Z``.
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
    """``F(v)`` of every point; memory stays bounded."""
    visible, hidden = rbm.units
    energies = np.zeros(len(points)) - visible.log_base(points)
    hidden.subtract_log_weights(energies, points, rbm.weights, rbm.visible_bias, rbm.hidden_bias)
    return energies
