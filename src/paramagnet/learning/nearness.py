"""Whether samples are copies of training points: distances to the nearest training point."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paramagnet.learning.symptoms import chance_of_more, effective_count, share_variance
from paramagnet.units import FloatArray, Unit

NEAR_SHARE = 0.05  # share of reference points that are nearest to the training points
_BLOCK = 1 << 24  # distances in memory at a time


@dataclass(frozen=True, eq=False)
class Nearness:
    """How near samples and reference points are to their nearest training point.

    Attributes
    ----------
    samples, reference : ndarray
        Distances: for units of two values and labels the number of units that differ, else the Euclidean
        distance.
    held_out : bool
        Whether the reference points were held out; else they are training points, and their distances are
        those to the nearest other one.
    limit : float
        The distance that 5 % of the reference points, or a few more where distances are equal, do not exceed.
    share : float
        Share of samples that do not exceed it, less that of the reference points.
    error : float
        Its standard error.
    p_value : float
        Probability of at least this share if samples and reference points had the same distribution.
    """

    samples: FloatArray
    reference: FloatArray
    held_out: bool
    limit: float
    share: float
    error: float
    p_value: float


def measure_nearness(
    unit: Unit,
    points: FloatArray,
    samples: FloatArray,
    *,
    held_out: FloatArray | None = None,
    rows: npt.NDArray[np.intp] | None = None,
    weights: FloatArray | None = None,
) -> Nearness:
    """Distances to the nearest of ``points``, of samples and of the points ``held_out``; or, for None, of the
    training points in these ``rows`` to their nearest other ones. ``weights`` are those of the reference
    points; of the training points it counts only that they are there.
    """
    of_samples = nearest_distances(unit, samples, points)
    if held_out is not None:
        of_reference = nearest_distances(unit, held_out, points)
    else:
        of_reference = nearest_distances(unit, points[rows], points, itself=rows)
    n_reference: float
    if weights is None:
        n_points = len(of_reference)
        limit = float(np.quantile(of_reference, NEAR_SHARE, method="inverted_cdf"))
        n_reference = int(np.sum(of_reference <= limit))
    else:  # as many points as they are worth
        n_points = max(1, int(effective_count(len(of_reference), weights)))
        order = np.argsort(of_reference)
        reached = np.cumsum(weights[order]) >= NEAR_SHARE * weights.sum()
        limit = float(of_reference[order[int(np.argmax(reached))]])
        n_reference = n_points * min(1.0, float(weights[of_reference <= limit].sum() / weights.sum()))
    n_samples = int(np.sum(of_samples <= limit))
    shares = n_samples / len(of_samples), n_reference / n_points
    error = math.sqrt(share_variance(shares[0], len(of_samples)) + share_variance(shares[1], n_points))
    p_value = chance_of_more(n_samples, len(of_samples), n_reference, n_points)
    return Nearness(
        of_samples, of_reference, held_out is not None, limit, shares[0] - shares[1], error, p_value
    )


def nearest_distances(
    unit: Unit, states: FloatArray, points: FloatArray, itself: npt.NDArray[np.intp] | None = None
) -> FloatArray:
    """The distance of every state to the nearest of the points; ``itself`` are the numbers of the states
    among the points, which do not count.
    """
    if unit.width > 1:
        return _nearest_labels(unit.width, states, points, itself)
    two_values = unit.values is not None and len(unit.values) == 2
    scale = 1.0 / (unit.values[1] - unit.values[0]) if two_values and unit.values is not None else 1.0
    # Products of numbers of two values are exact in float32; others would lose the digits of small distances.
    dtype = np.float32 if two_values else np.float64
    origin = points.mean(axis=0) if not two_values else points.min(axis=0)
    base = (scale * (points - origin)).astype(dtype)
    queries = (scale * (states - origin)).astype(dtype)
    squares = np.einsum("ki,ki->k", base, base)
    found = np.empty(len(queries))
    size = max(1, _BLOCK // len(base))
    for start in range(0, len(queries), size):
        block = queries[start : start + size]
        distances = squares - 2.0 * (block @ base.T) + np.einsum("ki,ki->k", block, block)[:, None]
        if itself is not None:
            distances[np.arange(len(block)), itself[start : start + size]] = np.inf
        found[start : start + size] = distances.min(axis=1)
    found = np.maximum(found, 0.0)
    return np.rint(found) if two_values else np.sqrt(found)


def _nearest_labels(
    q: int, states: FloatArray, points: FloatArray, itself: npt.NDArray[np.intp] | None
) -> FloatArray:
    """The same for labels: the number of units that differ, from products of indicators of a few points."""
    found = np.full(len(states), np.inf)
    rows = max(1, _BLOCK // (q * points.shape[1]))
    for start in range(0, len(points), rows):
        base = (points[start : start + rows, :, None] == np.arange(q)).reshape(-1, q * points.shape[1])
        base = base.astype(np.float32)
        for first in range(0, len(states), rows):
            block = (states[first : first + rows, :, None] == np.arange(q)).reshape(-1, base.shape[1])
            distances = points.shape[1] - block.astype(np.float32) @ base.T
            if itself is not None:
                own = itself[first : first + rows] - start
                here = np.flatnonzero((own >= 0) & (own < len(base)))
                distances[here, own[here]] = np.inf
            chosen = slice(first, first + rows)
            found[chosen] = np.minimum(found[chosen], distances.min(axis=1))
    return found
