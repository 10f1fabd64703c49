"""Biases that differ from unit to unit: every single-unit average becomes an average over the units too.

Nothing else in the theory changes: order parameters, responses and the free energy are sums over units
([Y25] section 5 names the question). Two choices are made here.

**The gauge.** Relabelling ``x_i -> -x_i`` of a symmetric unit, together with its row of weights, turns its
bias ``b_i`` into ``-b_i`` and cannot change how well a machine learns. Yet the plain sum of covariances
cancels between biases of both signs. So all biases of a symmetric layer are taken non-negative, ``|b_i|``,
which weighs the covariances of unit ``i`` with ``sgn(b_i)``.

**The rule.** An average over a thousand biases is replaced by one over about thirty points: the Gauss rule of
the distribution of the biases integrates polynomials up to degree ``2 k - 1`` exactly with ``k`` points, and
converges geometrically for the functions that the layers average, which are analytic around the real axis.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paramagnet._checks import as_positive, as_reals
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.units import FloatArray, Unit

_SMALLEST_SHARE = 2e-3  # of the even frequency: the smallest frequency of a state
_DIGITS, _FEW_DIGITS = 37.0, 16.0  # accuracies of a rule: exp(-37) = 1e-16 and exp(-16) = 1e-7


@dataclass(frozen=True, eq=False)
class Biases:
    """The biases of the units of a layer, in place of the one number ``b`` or ``c``.

    In a layer of spins or Gaussian units all of them are taken non-negative (see above): magnetizations and
    layer correlations are then those of ``|b_i|``, whereas a single negative number ``b`` changes their sign.

    Parameters
    ----------
    values : array_like
        The biases, one per unit (or one per group of units). For categorical units an array of one row per
        unit and one column per state, whose rows are shifted to the mean zero.
    weights : array_like, optional
        The weight of each bias in averages; None gives all biases the same weight.
    """

    values: FloatArray
    weights: FloatArray
    _rules: dict[Any, tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)

    def __init__(self, values: Any, weights: Any = None) -> None:
        array = as_reals(values, "values")
        if array.ndim not in (1, 2) or array.size == 0 or (array.ndim == 2 and array.shape[1] < 2):
            raise ValueError(
                f"`values` must be a sequence of at least one bias, got shape {array.shape}. Categorical "
                "units take an array of a row per unit and a column per state. One number for all units is "
                "passed as it is, without `Biases`."
            )
        if array.ndim == 2:
            array = array - array.mean(axis=1, keepdims=True)
        n_units = array.shape[:1]
        counts = np.ones(n_units) if weights is None else as_positive(weights, "weights", zero=True)
        if counts.shape != n_units:
            raise ValueError(
                f"`weights` must be as many as `values`, {len(array)}, got shape {counts.shape}."
            )
        if not counts.any():
            raise ValueError("`weights` must not all be zero.")
        counts = counts / counts.max()  # so that their sum does not overflow
        for name, content in (("values", array), ("weights", counts / counts.sum())):
            copy = np.array(content, dtype=np.float64)
            copy.setflags(write=False)
            object.__setattr__(self, name, copy)
        object.__setattr__(self, "_rules", {})

    @classmethod
    def of_frequencies(cls, frequencies: Any, weights: Any = None) -> Biases:
        """The biases of categorical units whose states have given frequencies without couplings.

        Parameters
        ----------
        frequencies : array_like
            One row per unit, one column per state; rows are divided by their sums. Frequencies below 0.002
            of the even one are raised to it, so that biases are finite.
        weights : array_like, optional
            The weight of each unit in averages; None gives all units the same weight.

        Returns
        -------
        Biases
            The logarithms of the frequencies.
        """
        array = as_positive(frequencies, "frequencies", zero=True)
        if array.ndim != 2 or array.shape[1] < 2 or not len(array) or not (array.sum(axis=1) > 0.0).all():
            raise ValueError(
                "`frequencies` must be an array of one row per unit and one column per state, each row with "
                f"a positive sum, got shape {array.shape}."
            )
        shares = array / array.sum(axis=1, keepdims=True)
        return cls(np.log(np.maximum(shares, _SMALLEST_SHARE / array.shape[1])), weights)

    def __repr__(self) -> str:
        return f"Biases({self.values.size} values, mean {self.mean:.4g}, rms {self.root_mean_square:.4g})"

    @property
    def mean(self) -> float:
        """The mean bias."""
        return float(np.sum(self.weights @ self.values) / self._n_columns)

    @property
    def largest(self) -> float:
        """The largest absolute value of the biases whose weight is not zero."""
        return float(np.abs(self.values[self.weights > 0.0]).max())

    @property
    def root_mean_square(self) -> float:
        """The root mean square of the biases, which is zero only if all biases are zero."""
        largest = self.largest or 1.0  # so that the squares do not overflow
        counted = self.weights > 0.0
        squares = (self.values[counted] / largest) ** 2
        return float(largest * np.sqrt(np.sum(self.weights[counted] @ squares) / self._n_columns))

    @property
    def _n_columns(self) -> int:
        return self.values.shape[1] if self.values.ndim == 2 else 1

    @property
    def sites(self) -> tuple[FloatArray, FloatArray]:
        """The different rows of biases of labels, each shifted to the largest one zero, and their weights;
        the order of the states does not matter.
        """
        if "sites" not in self._rules:
            rows = np.sort(self.values - self.values.max(axis=1, keepdims=True), axis=1)
            rows, where = np.unique(rows, axis=0, return_inverse=True)
            weights = np.bincount(where.ravel(), self.weights).astype(np.float64)
            self._rules["sites"] = rows[weights > 0.0], weights[weights > 0.0]
        return self._rules["sites"]

    def rule_for(self, unit: Unit, coarseness: float = 1.0) -> tuple[FloatArray, FloatArray]:
        """Points and weights that replace all biases in a layer of such units, in the gauge of the layer;
        ``coarseness`` above 1 gives fewer points.
        """
        strip = theory_of(unit, "unit").strip
        digits = _DIGITS if coarseness == 1.0 else _FEW_DIGITS
        key = (unit.symmetric, strip, digits)
        if key not in self._rules:
            values = np.abs(self.values) if unit.symmetric else self.values
            points, where = np.unique(values, return_inverse=True)
            weights = np.bincount(where, self.weights).astype(np.float64)
            points, weights = points[weights > 0.0], weights[weights > 0.0]
            self._rules[key] = _compress(points, weights, strip, digits)
        return self._rules[key]


def _compress(
    points: FloatArray, weights: FloatArray, strip: float | None, digits: float
) -> tuple[FloatArray, FloatArray]:
    """The Gauss rule of a discrete distribution, with enough points for an accuracy of ``exp(-digits)``.

    For functions analytic in ``|Im x| < strip`` the error of ``k`` points falls as ``rho**(-2 k)``, with
    ``rho`` the ellipse around the points that fits into the strip.
    """
    half = 0.5 * (points[-1] - points[0])
    n_points = 2
    if strip is not None and half > 0.0:
        n_points = int(np.ceil(0.5 * digits / np.arcsinh(strip / half))) + 2
    if n_points >= points.size:
        return points, weights
    # The Lanczos method with full orthogonalization gives the Jacobi matrix of the distribution.
    basis = np.empty((n_points, points.size))
    vector = np.sqrt(weights / weights.sum())
    diagonal, beside = np.empty(n_points), np.empty(n_points)
    for k in range(n_points):
        basis[k] = vector
        vector = points * basis[k]
        diagonal[k] = basis[k] @ vector
        for _ in range(2):
            vector = vector - (basis[: k + 1] @ vector) @ basis[: k + 1]
        beside[k] = np.linalg.norm(vector)
        if beside[k] < 1e-14 * max(half, 1e-300):  # up to rounding there are no more points
            return points, weights
        vector = vector / beside[k]
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    nodes, vectors = np.linalg.eigh(matrix)
    squares = vectors[0] ** 2
    return np.clip(nodes, points[0], points[-1]), squares / squares.sum()
