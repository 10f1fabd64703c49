"""The log-likelihood of independent units: the level that a machine has to exceed to be worth its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, shown
from paramagnet._checks import as_reals
from paramagnet.sampling.placement import bias_of_means
from paramagnet.units import FloatArray, Unit, as_unit

BLOCK = 4096  # points that are converted at a time


def independent_log_likelihood(
    data: Any, visible: str | Unit = "spin", *, validation: Any = None, sample_weight: Any = None
) -> float:
    """The log-likelihood of independent units with the means of ``data``, in nats per point.

    It is what a machine without weights reaches, so a machine below it has learned less than the means.
    Means at the end of the range, of units that never change in ``data``, are moved inside by as much as
    `initialize` does for biases from data.

    Parameters
    ----------
    data : array_like
        Array ``(n_points, n_visible)`` in the values of the units; the biases are fitted to it.
    visible : str or Unit, default "spin"
        Type of the units.
    validation : array_like, optional
        Points to measure on; None measures on ``data``.
    sample_weight : array_like, optional
        Weights of the points of ``data``, zero or positive; None weighs all alike.

    Returns
    -------
    float
        Mean log-likelihood in nats per point.
    """
    unit = as_unit(visible, "visible")
    table = as_array(data, "data")
    points = unit.as_states(table, "data", unit.count_units(table, "data"))
    weights = None if sample_weight is None else _as_weights(sample_weight, len(points))
    if validation is None:
        return level_of(unit, points, points, weights, weights)
    return level_of(unit, points, unit.as_states(validation, "validation", points.shape[1]), weights)


def level_of(
    unit: Unit,
    points: npt.NDArray[Any],
    measured: npt.NDArray[Any],
    weights: FloatArray | None = None,
    measured_weights: FloatArray | None = None,
) -> float:
    """The same, of points that are checked already; they may be of a small integer type."""
    return level_of_means(unit, unit.column_means(points, weights), measured, measured_weights)


def level_of_means(
    unit: Unit, means: FloatArray, measured: npt.NDArray[Any], measured_weights: FloatArray | None = None
) -> float:
    """The log-likelihood of points under independent units with these means, one number per column."""
    layer = unit.at(unit.start_parameters(measured.shape[1]))
    return level_of_biases(layer, bias_of_means(layer, means, "data"), measured, measured_weights)


def level_of_biases(
    layer: Unit, bias: FloatArray, measured: npt.NDArray[Any], measured_weights: FloatArray | None = None
) -> float:
    """The same for independent units with these biases; ``layer`` is a unit type with its parameters."""
    each, log_z = np.empty(len(measured)), float(layer.log_trace(bias).sum())
    for first in range(0, len(measured), BLOCK):
        states = np.asarray(measured[first : first + BLOCK], dtype=np.float64)
        each[first : first + BLOCK] = layer.multiply(states, bias) + layer.log_base(states) - log_z
    return float(np.average(each, weights=measured_weights))


def _as_weights(weights: Any, n_points: int) -> FloatArray:
    found = as_reals(weights, "sample_weight")
    if found.shape != (n_points,) or np.any(found < 0.0) or not found.sum() > 0.0:
        raise ValueError(
            f"`sample_weight` must hold {n_points} numbers, one for each point, zero or positive and not all "
            f"zero, got {shown(weights)}."
        )
    return found
