"""Weights of points: the average over data is ``sum_i w_i x_i / sum_i w_i``.

Only ratios of weights count. Within a batch the sums run over the points of that batch, so a run on all
points at once equals one on data in which every point is repeated ``w_i`` times. Points of weight zero are
left out of a run beforehand: every batch has a positive sum.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_sample_weight
from paramagnet.units import FloatArray

_NEGLIGIBLE = 1e-200  # of the largest weight; less is zero
_LARGEST_COUNT = 1 << 20
_EXACT = 1 << 24  # whole numbers below have exact sums in float32
_PARTS = 1 << 23  # into which the weight of a batch is divided, where weights are no small whole numbers
_PARTS_PER_POINT = 128


@dataclass(frozen=True, eq=False)
class PointWeights:
    """The weights of the points of a run, not all equal: as ``values`` of mean one, and as whole numbers
    without common divisor (``counts``) where they are in such ratios.
    """

    values: FloatArray
    counts: npt.NDArray[np.int64] | None

    @property
    def fingerprint(self) -> str:
        """A hash of the weights."""
        return hashlib.sha256(np.ascontiguousarray(self.values).tobytes()).hexdigest()

    def of(self, chosen: npt.NDArray[np.int64] | None) -> FloatArray:
        """The weights of the ``chosen`` points, of mean one among them; None stands for all."""
        if chosen is None:
            return self.values
        batch = self.values[chosen]
        found: FloatArray = batch / batch.mean()
        return found

    def factors(
        self, chosen: npt.NDArray[np.int64], n_chains: int | None
    ) -> tuple[npt.NDArray[np.float32], float]:
        """The factors of the rows of a batch and of the chains in a gradient, and the scale of the latter:
        data average less average over chains = ``scale * (factors @ [batch; chains])``.

        ``n_chains`` None stands for chains that start from the points of the batch, and share their weights.
        All factors are whole numbers whose sum is zero: the gradient of units that never change is zero, not
        a rounding, of which Adam would make whole steps. Weights that are not in the ratios of small whole
        numbers are rounded to some ``2**-23`` of their sum, which is the precision of float32.
        """
        if self.counts is not None:
            counts = self.counts[chosen]
            total = int(counts.sum())
            divisor = 1 if n_chains is None else math.gcd(total, n_chains)
            share = 1 if n_chains is None else n_chains // divisor
            if share * total < _EXACT:
                parts = counts * share
                others = -parts if n_chains is None else np.full(n_chains, -(total // divisor))
                return np.concatenate((parts, others)).astype(np.float32), 1.0 / (share * total)
        wanted = max(_PARTS, _PARTS_PER_POINT * len(chosen))
        each = wanted if n_chains is None else -(-wanted // n_chains)  # parts of a chain
        parts = _divide(self.values[chosen], each * (n_chains or 1))
        others = -parts if n_chains is None else np.full(n_chains, -each)
        return np.concatenate((parts, others)).astype(np.float32), 1.0 / (each * (n_chains or 1))


def _divide(weights: FloatArray, n_parts: int) -> npt.NDArray[np.int64]:
    """``n_parts`` shared in proportion to ``weights``: rounded down, the rest to the largest remainders."""
    exact = weights * (n_parts * (1.0 - 1e-12) / weights.sum())  # never more than there are
    parts = np.floor(exact)
    left = n_parts - int(parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:left]] += 1.0
    found: npt.NDArray[np.int64] = parts.astype(np.int64)
    return found


def as_point_weights(
    value: Any, argument: str, n_points: int
) -> tuple[npt.NDArray[np.bool_] | None, PointWeights | None]:
    """Which points have a positive weight (None: all), and the weights of these (None: all equal)."""
    weights = as_sample_weight(value, argument, n_points)
    relative = weights / weights.max()
    kept = relative > _NEGLIGIBLE
    relative, weights = relative[kept], weights[kept]
    found = None
    if relative.min() < 1.0:
        values = relative / relative.mean()
        values.setflags(write=False)
        found = PointWeights(values, _as_counts(weights, relative))
    return None if kept.all() else kept, found


def _as_counts(weights: FloatArray, relative: FloatArray) -> npt.NDArray[np.int64] | None:
    """Whole numbers in the ratios of the weights; None where there are none, or large ones only."""
    for candidate in (weights, relative / relative.min()):
        if candidate.max() <= _LARGEST_COUNT and (candidate == np.rint(candidate)).all():
            counts = candidate.astype(np.int64)
            found: npt.NDArray[np.int64] = counts // np.gcd.reduce(counts)
            return found
    return None
