"""Gaussian averages ``E[f(z)]``, ``z ~ N(0, 1)``, of functions that change within a short distance.

The averages of the theory ([Y25] section 3) are over ``tanh`` or a sigmoid of log-odds ``centre + slope
z``. These have poles at ``|Im z| = pi/slope``, so a Gauss-Hermite rule needs a number of nodes that
grows as ``slope**2`` and shows false maxima of the layer correlation when it is given fewer. The plain
trapezoid rule converges like ``exp(-2 pi**2/(slope step))`` until the step is limited by the Gaussian
itself, like ``exp(-2 pi**2/step**2)``: a step of ``min(0.45, 0.4/slope)`` is good to 1e-16, and the same
sum over every second node gives an estimate of the error.

Equal steps need a number of nodes that grows as the slope, for the sake of the short interval around ``z0 =
-centre/slope`` where the log-odds cross zero. From a slope of `_STEEP` on, the trapezoid rule is applied in
another variable ``t``,

    z = z0 + a sinh(u),    t = u/h + a sinh(u)/s,    a <= 2.5/slope

so that neighbouring nodes are ``a h`` apart at the crossing and approach the distance ``s``, short enough for
the Gaussian, away from it. The poles lie at ``Im u`` near ``pi/2``; ``h = 0.2`` and ``s = 0.5`` are good to
1e-15, and the number of nodes grows as the logarithm of the slope (about 110 for a slope of 200, where equal
steps take 9,000).

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from paramagnet.units import Array, FloatArray

REACH = 9  # |z| beyond which the Gaussian weight (below 1e-18 of the peak) is dropped
_LARGEST_Z = 38.6  # beyond it exp(-z**2/2) is below the smallest float
_STEP_OF_GAUSSIAN = 0.45
_STEP_OF_LOG_ODDS = 0.4
_STEEP = 10.0  # slope from which nodes are gathered around the crossing
_WIDTH, _STEP_INSIDE, _STEP_OUTSIDE = 2.5, 0.2, 0.5  # the product of a and the slope; h; s


class GaussianRule(NamedTuple):
    """Nodes and weights; functions are given by their values at the nodes, along the last axis.

    If nodes are gathered around a crossing, each element has its own nodes, ``origin + offsets``.
    """

    nodes: FloatArray
    weights: FloatArray
    origin: FloatArray | None = None
    offsets: FloatArray | None = None

    def average(self, values: Array) -> Array:
        """``E[f(z)]``."""
        if self.origin is None:
            shared: Array = values @ self.weights
            return shared
        own: Array = np.einsum("...i,...i", values, self.weights)
        return own

    def fields(self, bias: FloatArray, root: Array) -> Array:
        """``bias + root z`` at the nodes. The two terms cancel around a crossing; the sum is therefore taken
        from the offsets of the nodes from the crossing, which keeps its digits.
        """
        if self.origin is None or self.offsets is None:
            plain: Array = bias[..., None] + root[..., None] * self.nodes
            return plain
        field: Array = (bias + root * self.origin)[..., None] + root[..., None] * self.offsets
        return field

    def error(self, values: Array) -> FloatArray:
        """Estimated relative error of ``E[f(z)]``, for ``f >= 0``.

        Leaving out every second node changes the sum by a relative ``d``; halving the step squares the
        error or better, so that ``d**2`` estimates the remaining error, down to rounding.
        """
        fine = self.average(values)
        half = GaussianRule(self.nodes[..., ::2], self.weights[..., ::2], self.origin)
        coarse = 2.0 * half.average(values[..., ::2])
        change = np.abs(coarse / np.where(fine > 0.0, fine, 1.0) - 1.0)
        estimate: FloatArray = np.where(fine > 0.0, change * change, 0.0) + np.finfo(float).eps
        return estimate


def gaussian_rule(centre: FloatArray, slope: FloatArray, *, coarseness: float = 1.0) -> GaussianRule:
    """A rule for functions of the log-odds ``centre + slope z`` that serves all elements of the two arrays.

    Where a unit is far on one side (``|centre|`` large), powers of its small probability grow like
    ``exp(2 slope |z|)``, and their averages come from around ``z = 2 slope`` or, if that is nearer,
    from where the log-odds cross zero: the range is extended that far. ``coarseness`` multiplies the
    step.
    """
    steepest = _largest(slope)
    if steepest > _STEEP:
        return _gathered_rule(centre, slope, _table(_width_class(steepest), coarseness))
    extension = np.minimum(2.0 * slope, np.abs(centre) / (slope + 1e-300))
    left = ceil(REACH + _largest(extension * (centre > 0.0)))
    right = ceil(REACH + _largest(extension * (centre < 0.0)))
    return _trapezoid(-left, right, ceil((left + right) / _step(steepest, coarseness)))


def even_gaussian_rule(slope: FloatArray, *, coarseness: float = 1.0) -> GaussianRule:
    """The rule for even functions of the log-odds ``slope z``: that of `gaussian_rule`, folded onto ``z >=
    0``.
    """
    steepest = _largest(slope)
    if steepest > _STEEP:
        return _folded_table(_width_class(steepest), coarseness)
    return _folded_trapezoid(ceil(REACH / _step(steepest, coarseness)))


def _largest(values: FloatArray) -> float:
    """The largest value, in half the time of ``values.max()`` for arrays of a few numbers."""
    return float(np.maximum.reduce(values, axis=None))


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
    rule = _trapezoid(0, REACH, n_intervals)
    return GaussianRule(rule.nodes, rule.weights * np.where(rule.nodes > 0.0, 2.0, 1.0))


def _width_class(slope: float) -> int:
    """The number of the table for slopes up to this one, whose ``a = 2.5 2**(-class/2) <= 2.5/slope``."""
    return ceil(2.0 * log2(slope))


@lru_cache(maxsize=256)
def _table(width_class: int, coarseness: float) -> tuple[FloatArray, FloatArray]:
    """Distances ``z - z0 >= 0`` of the nodes from the crossing and their weights ``dz/dt``, up to a distance
    of twice the range of the Gaussian.
    """
    width, inside, outside = _WIDTH * 2.0 ** (-0.5 * width_class), _STEP_INSIDE, _STEP_OUTSIDE
    last = 2.0 * (REACH + _LARGEST_Z)
    t = coarseness * np.arange(ceil((np.arcsinh(last / width) / inside + last / outside) / coarseness) + 1.0)
    # Both bounds lie above the root and t(u) is convex there, so Newton's method falls onto the root.
    u = np.minimum(inside * t, np.arcsinh(outside * t / width))
    for _ in range(100):
        miss = u / inside + width * np.sinh(u) / outside - t
        change = miss / (1.0 / inside + width * np.cosh(u) / outside)
        u = u - change
        if (np.abs(change) <= 4e-16 * u).all():
            break
    return width * np.sinh(u), coarseness / (1.0 / (inside * width * np.cosh(u)) + 1.0 / outside)


@lru_cache(maxsize=256)
def _folded_table(width_class: int, coarseness: float) -> GaussianRule:
    distances, weights = _table(width_class, coarseness)
    n_nodes = int(np.searchsorted(distances, REACH)) + 1
    nodes, weights = distances[:n_nodes], weights[:n_nodes] * np.where(distances[:n_nodes] > 0.0, 2.0, 1.0)
    return GaussianRule(nodes, weights * np.exp(-0.5 * nodes * nodes) / np.sqrt(2.0 * np.pi))


def _gathered_rule(
    centre: FloatArray, slope: FloatArray, table: tuple[FloatArray, FloatArray]
) -> GaussianRule:
    """Nodes of each element around its own crossing; all elements use the table of the steepest one."""
    crossing = -centre / (slope + 1e-300)
    # The range is extended as for equal steps; a crossing outside of it does not matter.
    extension = np.minimum(np.minimum(2.0 * slope, np.abs(crossing)), _LARGEST_Z)
    lowest = -REACH - extension * (crossing < 0.0)
    highest = REACH + extension * (crossing > 0.0)
    origin = np.clip(crossing, lowest, highest)
    distances, weights = table
    left = int(np.searchsorted(distances, (origin - lowest).max())) + 1
    right = int(np.searchsorted(distances, (highest - origin).max())) + 1
    offsets = np.concatenate([-distances[left - 1 : 0 : -1], distances[:right]])
    weights = np.concatenate([weights[left - 1 : 0 : -1], weights[:right]])
    nodes = origin[..., None] + offsets
    return GaussianRule(nodes, weights * np.exp(-0.5 * nodes * nodes) / np.sqrt(2.0 * np.pi), origin, offsets)
