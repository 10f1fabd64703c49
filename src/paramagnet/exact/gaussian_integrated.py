"""Exact sums for machines with a Gaussian layer: the other layer, once the Gaussian one is integrated out.

With Gaussian visible units of variance ``s`` (``y`` below are the binary units, ``x`` the Gaussian ones)

    p(y) = exp(c.y + s |b + w y|**2/2) / Z

which is quadratic in ``y``: with ``y = low + step t``, ``t`` of 0 and 1, fields and couplings ``s step**2
w^T w`` between pairs are all that is left of the Gaussian layer, however large it is. Its own averages
follow,

    E[x] = s (b + w E[y])        E[x y^T] = s (b E[y]^T + w E[y y^T]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paramagnet.kernels import quadratic
from paramagnet.kernels.precision import check_averages, check_draws, check_logarithm
from paramagnet.kernels.quadratic import Progress
from paramagnet.units import BinaryUnit, FloatArray, GaussianUnit, Unit


def has_gaussian(visible: Unit, hidden: Unit) -> bool:
    """Whether a machine of such layers is summed here."""
    return isinstance(visible, GaussianUnit) or isinstance(hidden, GaussianUnit)


def count_enumerated(n_visible: int, n_hidden: int, visible: Unit, hidden: Unit) -> int:
    """The number of units whose states are summed one by one: those of the layer that is not Gaussian."""
    if isinstance(visible, GaussianUnit) and isinstance(hidden, GaussianUnit):
        raise ValueError(
            "`rbm` must have a layer of spin or bit units, got two Gaussian layers, which are together one "
            "normal distribution. There is a theory of it (`solve_saddle_point`), but no training; take spin "
            "or bit units in one of the layers."
        )
    return n_hidden if isinstance(visible, GaussianUnit) else n_visible


@dataclass(frozen=True, eq=False)
class PairForm:
    """A machine with one Gaussian layer as the distribution of its binary layer."""

    weights: FloatArray  # rows are the Gaussian units
    bias: FloatArray
    variance: float
    binary: BinaryUnit
    swapped: bool
    constant: float
    fields: FloatArray
    couplings: FloatArray
    magnitude: float  # sum of the absolute values of all terms of the exponent, before they cancel

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: Unit,
        hidden: Unit,
    ) -> PairForm:
        """The form of a machine given by its arrays and unit types."""
        count_enumerated(weights.shape[0], weights.shape[1], visible, hidden)
        swapped = isinstance(hidden, GaussianUnit)
        gaussian, binary = (hidden, visible) if swapped else (visible, hidden)
        bias, own = (hidden_bias, visible_bias) if swapped else (visible_bias, hidden_bias)
        w = weights.T if swapped else weights
        assert isinstance(gaussian, GaussianUnit)
        assert isinstance(binary, BinaryUnit)
        low, step, variance = binary.low, binary.high - binary.low, gaussian.variance
        shifted = bias + low * w.sum(axis=1)
        row = np.abs(w).sum(axis=1)
        reach = np.abs(bias) + abs(low) * row
        square = 0.5 * (reach @ reach) + step * (reach @ row) + 0.5 * step * step * (row @ row)
        return cls(
            w, bias, variance, binary, swapped,
            constant=float(low * own.sum() + 0.5 * variance * (shifted @ shifted)),
            fields=step * (own + variance * (shifted @ w)),
            couplings=(variance * step * step) * (w.T @ w),
            magnitude=float((abs(low) + step) * np.abs(own).sum() + variance * square),
        )  # fmt: skip

    def log_partition(self, n_threads: int = 1, progress: Progress | None = None) -> float:
        """``ln Z``."""
        value = quadratic.pair_log_partition(
            self.fields, self.couplings, n_threads=n_threads, progress=progress
        )
        check_logarithm(self.constant + value, self.magnitude)
        return self.constant + value

    def moments(
        self, n_threads: int = 1, progress: Progress | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``."""
        value, mean, second = quadratic.pair_moments(
            self.fields, self.couplings, n_threads=n_threads, progress=progress
        )
        low, step = self.binary.low, self.binary.high - self.binary.low
        check_averages(self.magnitude, 2.0 * step * float((mean * (1.0 - mean)).max()))
        check_logarithm(self.constant + value, self.magnitude)
        y = low + step * mean
        y_y = low * low + low * step * (mean[:, None] + mean) + step * step * second
        x = self.variance * (self.bias + self.weights @ y)
        x_y = self.variance * (np.outer(self.bias, y) + self.weights @ y_y)
        if self.swapped:
            return self.constant + value, y, x, np.ascontiguousarray(x_y.T)
        return self.constant + value, x, y, x_y

    def draw_binary(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the binary layer."""
        check_draws(self.magnitude)
        states = quadratic.pair_draws(
            self.fields, self.couplings, n_samples, rng, n_threads=n_threads, progress=progress
        )
        low, step = self.binary.low, self.binary.high - self.binary.low
        result: FloatArray = low + step * states
        return result
