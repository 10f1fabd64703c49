"""Sums over the states of a layer of units with two values, one sum for each state of the other layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_BLOCK_ELEMENTS = 1 << 18  # fields held at a time
_UNITS_IN_PRODUCT = 512  # 2**512 is far from overflow


def subtract_log_weights(
    energies: FloatArray,
    states: FloatArray,
    weights: FloatArray,
    bias: FloatArray,
    own_bias: FloatArray,
    levels: tuple[float, float],
) -> None:
    """Subtract ``states.bias + sum_j ln sum_x exp(x field_j)`` from ``energies``, one number per state.

    The fields are ``states @ weights + own_bias``; memory stays bounded. With levels ``centre -+ half`` and
    ``x = half * field`` the logarithm of a unit's trace is ``centre * field + |x| + ln(1 + exp(-2 |x|))``.
    The arguments of the logarithm lie between 1 and 2, so it is taken once of the product over many units, in
    place of one ``logaddexp`` per unit.
    """
    block = max(1, _BLOCK_ELEMENTS // len(own_bias))
    low, high = levels
    centre, half = 0.5 * (high + low), 0.5 * (high - low)
    rows_of_units, column = half * weights.T, half * own_bias[:, None]
    linear = bias + centre * weights.sum(axis=1)
    groups = np.arange(0, len(own_bias), _UNITS_IN_PRODUCT)
    energies -= centre * float(own_bias.sum())
    for start in range(0, len(states), block):
        rows = slice(start, start + block)
        v = states[rows].astype(np.float64, copy=False)
        size = rows_of_units @ v.T
        size += column
        np.abs(size, out=size)
        energies[rows] -= v @ linear + size.sum(axis=0)
        size *= -2.0
        factors = np.exp(size, out=size)
        factors += 1.0
        energies[rows] -= np.log(np.multiply.reduceat(factors, groups, axis=0)).sum(axis=0)
