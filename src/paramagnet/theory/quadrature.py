"""Gaussian averages ``E[f(z)]``, ``z ~ N(0, 1)``, of functions that change within a short distance.

The averages of the theory ([Y25] section 3) are over ``tanh`` or a sigmoid of log-odds ``centre + slope
z``. These have poles at ``|Im z| = pi/slope``, so a Gauss-Hermite rule needs a number of nodes that
grows as ``slope**2`` and shows false maxima of the layer correlation when it is given fewer. The plain
trapezoid rule converges like ``exp(-2 pi**2/(slope step))`` until the step is limited by the Gaussian
itself, like ``exp(-2 pi**2/step**2)``: a step of ``min(0.45, 0.4/slope)`` is good to 1e-16, and the same
sum over every second node shows how good.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from paramagnet.units import Array, FloatArray

REACH = 9  # |z| beyond which the Gaussian weight (below 1e-18 of the peak) is dropped
_STEP_OF_GAUSSIAN = 0.45
_STEP_OF_LOG_ODDS = 0.4


class GaussianRule(NamedTuple):
    """Nodes and weights; functions are given by their values at the nodes, along the last axis."""

    nodes: FloatArray
    weights: FloatArray

    def average(self, values: Array) -> Array:
        """``E[f(z)]``."""
        result: Array = values @ self.weights
        return result

    def error(self, values: Array) -> FloatArray:
        """Estimated relative error of ``E[f(z)]``, for ``f >= 0``.

        Leaving out every second node changes the sum by a relative ``d``; halving the step squares the
        error or better, so that ``d**2`` estimates what is left, down to rounding.
        """
        fine = self.average(values)
        coarse = 2.0 * (values[..., ::2] @ self.weights[::2])
        change = np.abs(coarse / np.where(fine > 0.0, fine, 1.0) - 1.0)
        estimate: FloatArray = np.where(fine > 0.0, change * change, 0.0) + np.finfo(float).eps
        return estimate


def gaussian_rule(centre: FloatArray, slope: FloatArray, *, coarseness: float = 1.0) -> GaussianRule:
    """One rule for functions of the log-odds ``centre + slope z`` that serves all elements of the two arrays.

    Where a unit is far on one side (``|centre|`` large), powers of its small probability grow like
    ``exp(2 slope |z|)``, and their averages come from around ``z = 2 slope`` or, if that is nearer,
    from where the log-odds cross zero: the range is extended that far. ``coarseness`` multiplies the
    step.
    """
    extension = np.minimum(2.0 * slope, np.abs(centre) / (slope + 1e-300))
    left = ceil(REACH + (extension * (centre > 0.0)).max())
    right = ceil(REACH + (extension * (centre < 0.0)).max())
    return _trapezoid(-left, right, ceil((left + right) / _step(float(slope.max()), coarseness)))


def even_gaussian_rule(slope: FloatArray, *, coarseness: float = 1.0) -> GaussianRule:
    """The rule for even functions of the log-odds ``slope z``: the same, folded onto ``z >= 0``."""
    return _folded_trapezoid(ceil(REACH / _step(float(slope.max()), coarseness)))


def _step(slope: float, coarseness: float) -> float:
    return coarseness * min(_STEP_OF_GAUSSIAN, _STEP_OF_LOG_ODDS / (slope + 1e-300))


@lru_cache(maxsize=256)
def _trapezoid(left: int, right: int, n_intervals: int) -> GaussianRule:
    """The trapezoid rule on ``[left, right]``, with an even number of intervals."""
    n_intervals += n_intervals % 2
    nodes = np.linspace(left, right, n_intervals + 1)
    weights = (right - left) / (n_intervals * np.sqrt(2.0 * np.pi)) * np.exp(-0.5 * nodes * nodes)
    return GaussianRule(nodes, weights)


@lru_cache(maxsize=256)
def _folded_trapezoid(n_intervals: int) -> GaussianRule:
    nodes, weights = _trapezoid(0, REACH, n_intervals)
    return GaussianRule(nodes, weights * np.where(nodes > 0.0, 2.0, 1.0))
