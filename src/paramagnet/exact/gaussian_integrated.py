"""Exact sums for machines with a Gaussian layer, which is integrated out: sums over the binary layer.

With Gaussian visible units of variance ``s`` (``y`` below are the binary units, ``x`` the Gaussian ones)

    p(y) = exp(c.y + s |b + w y|**2/2) / Z

which is quadratic in ``y``: with ``y = low + step t``, ``t`` of 0 and 1, the Gaussian layer of any size is
replaced by fields and by couplings ``s step**2 w^T w`` between pairs. Its own averages follow from those of
the binary layer,

    E[x] = s (b + w E[y])        E[x y^T] = s (b E[y]^T + w E[y y^T]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from paramagnet.exact.exact_sum import NOTHING, Averages, ExactSum, H_contra, Sizes, V_contra
from paramagnet.kernels import quadratic
from paramagnet.kernels.precision import check_averages, check_draws, check_logarithm
from paramagnet.kernels.quadratic import Progress
from paramagnet.units import BinaryUnit, FloatArray, GaussianUnit


@dataclass(frozen=True, eq=False)
class PairForm:
    """A machine with one Gaussian layer as the distribution of its binary layer."""

    weights: FloatArray  # rows are the Gaussian units
    bias: FloatArray
    gaussian: GaussianUnit
    binary: BinaryUnit
    constant: float
    fields: FloatArray
    couplings: FloatArray
    magnitude: float  # sum of the absolute values of all terms of the exponent, before they cancel

    @classmethod
    def of(
        cls, w: FloatArray, bias: FloatArray, own: FloatArray, gaussian: GaussianUnit, binary: BinaryUnit
    ) -> PairForm:
        """The form of a machine with Gaussian units of biases ``bias`` and binary ones of biases ``own``."""
        low, step, variance = binary.low, binary.high - binary.low, gaussian.variance
        shifted = bias + low * w.sum(axis=1)
        row = np.abs(w).sum(axis=1)
        reach = np.abs(bias) + abs(low) * row
        square = 0.5 * (reach @ reach) + step * (reach @ row) + 0.5 * step * step * (row @ row)
        return cls(
            w, bias, gaussian, binary,
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
        """``ln Z``, ``E[x]``, ``E[y]``, ``E[x y^T]``."""
        value, mean, second = quadratic.pair_moments(
            self.fields, self.couplings, n_threads=n_threads, progress=progress
        )
        low, step = self.binary.low, self.binary.high - self.binary.low
        check_averages(self.magnitude, 2.0 * step * float((mean * (1.0 - mean)).max()))
        check_logarithm(self.constant + value, self.magnitude)
        y = low + step * mean
        y_y = low * low + low * step * (mean[:, None] + mean) + step * step * second
        variance = self.gaussian.variance
        x = variance * (self.bias + self.weights @ y)
        x_y = variance * (np.outer(self.bias, y) + self.weights @ y_y)
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


@dataclass(frozen=True, eq=False)
class _Integrated(ExactSum[V_contra, H_contra]):
    """The methods that the sums with a visible and with a hidden Gaussian layer share; ``gaussian`` is the
    index of that layer.
    """

    most: ClassVar[float] = quadratic.MOST_UNITS
    gaussian: ClassVar[int]
    form: PairForm

    @classmethod
    def log2_states(cls, sizes: Sizes) -> int:
        """The number of units of the binary layer."""
        return (sizes.n_visible, sizes.n_hidden)[1 - cls.gaussian]

    @classmethod
    def seconds(cls, sizes: Sizes, *, n_threads: int = 1, gradient: bool = True) -> float:
        """The estimated time of one sum, in seconds."""
        return quadratic.estimate_seconds(cls.log2_states(sizes), n_threads)

    def log_partition(self, n_threads: int = 1, progress: Progress | None = None) -> float:
        """``ln Z``."""
        return self.form.log_partition(n_threads, progress)


class VisibleIntegrated(_Integrated[GaussianUnit, BinaryUnit]):
    """The sum of a machine with Gaussian visible units."""

    gaussian: ClassVar[int] = 0

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: GaussianUnit,
        hidden: BinaryUnit,
    ) -> Self:
        """The sum of a machine given by its arrays and unit types."""
        return cls(PairForm.of(weights, visible_bias, hidden_bias, visible, hidden))

    def moments(self, n_threads: int = 1, progress: Progress | None = None) -> Averages:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``."""
        return *self.form.moments(n_threads, progress), NOTHING

    def draw(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the visible layer, drawn in the fields of hidden states."""
        form = self.form
        states = form.draw_binary(n_samples, rng, n_threads, progress)
        return form.gaussian.draw(states @ form.weights.T + form.bias, rng)


class HiddenIntegrated(_Integrated[BinaryUnit, GaussianUnit]):
    """The sum of a machine with Gaussian hidden units."""

    gaussian: ClassVar[int] = 1

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: BinaryUnit,
        hidden: GaussianUnit,
    ) -> Self:
        """The sum of a machine given by its arrays and unit types."""
        return cls(PairForm.of(weights.T, hidden_bias, visible_bias, hidden, visible))

    def moments(self, n_threads: int = 1, progress: Progress | None = None) -> Averages:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``."""
        log_z, hidden, visible, products = self.form.moments(n_threads, progress)
        return log_z, visible, hidden, np.ascontiguousarray(products.T), NOTHING

    def draw(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the visible layer."""
        return self.form.draw_binary(n_samples, rng, n_threads, progress)
