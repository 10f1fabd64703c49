"""A summary of data before a machine learns them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.data.checks import as_points

_SHOWN = 5  # distinct values that are listed one by one


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds between which the training log-likelihood of a useful machine lies, in nats per point.

    ``independent`` is the largest log-likelihood without weights, each feature having its own mean.
    ``entropy`` is minus the entropy of the empirical distribution, which no model can exceed.
    """

    independent: float
    entropy: float


@dataclass(frozen=True, eq=False)
class Summary:
    """The summary of a table. ``values`` lists the distinct values if they are few, else it is empty."""

    n_points: int
    n_features: int
    lowest: float
    highest: float
    values: tuple[float, ...]
    n_missing: int
    constant: tuple[int, ...]
    n_duplicates: int
    bounds: Bounds | None

    @property
    def binary(self) -> bool:
        """Whether the data have two values, or fewer, and no gaps."""
        return self.bounds is not None


def summarize(data: npt.NDArray[Any]) -> Summary:
    """Count what ``data``, ``(n_points, n_features)``, hold.

    Points that repeat an earlier one are duplicates; a feature is constant if all its values that are there
    are equal.
    """
    missing = np.isnan(data) if data.dtype.kind == "f" else np.zeros((1, 1), bool)
    n_missing = int(missing.sum())
    known = data[~missing] if n_missing else data
    values = _distinct(known)
    if known.size == 0:
        lowest = highest = math.nan
        constant: tuple[int, ...] = ()
    else:
        lowest, highest = float(known.min()), float(known.max())
        constant = _constant(data, missing if n_missing else None)
    binary = n_missing == 0 and 0 < len(values) <= 2
    return Summary(
        n_points=len(data),
        n_features=data.shape[1],
        lowest=lowest,
        highest=highest,
        values=values,
        n_missing=n_missing,
        constant=constant,
        n_duplicates=len(data) - len(_count_rows(data)),
        bounds=_bounds(data) if binary else None,
    )


def log_likelihood_bounds(data: npt.ArrayLike) -> Bounds:
    """Lower and upper bound of the log-likelihood of binary ``data``, ``(n_points, n_features)``.

    They are ``sum_i [m ln m + (1-m) ln(1-m)]`` with ``m`` the share of the higher value of feature ``i``, and
    ``sum_x p(x) ln p(x)`` with ``p`` the share of the points that equal ``x``.

    Parameters
    ----------
    data : array_like
        Binary points, ``(n_points, n_features)``.

    Returns
    -------
    Bounds
        The log-likelihood of independent features, and the largest possible one, in nats per point.
    """
    table = as_points(data, "data")
    low, high = table.min(), table.max()
    others = table[(table != low) & (table != high)]
    if others.size:
        raise ValueError(
            f"`data` must have at most two values, got {low:g}, {others[0]:g} and {high:g}. Binarize them "
            "first, for example with `fit_binarizer(data).apply(data)`."
        )
    return _bounds(table)


def _bounds(data: npt.NDArray[Any]) -> Bounds:
    high = data == np.max(data)
    share = high.mean(axis=0)
    inside = share[(share > 0.0) & (share < 1.0)]
    independent = float(np.sum(inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside)))
    counts = np.array(list(_count_rows(np.packbits(high, axis=1)).values()), dtype=np.float64)
    entropy = float(np.sum(counts * np.log(counts / len(high)))) / len(high)
    return Bounds(independent, entropy)


def _count_rows(data: npt.NDArray[Any]) -> Counter[bytes]:
    if data.dtype.kind == "f":
        data = data + 0.0  # minus zero is zero
    rows = np.ascontiguousarray(data)
    width = rows.itemsize * rows.shape[1]
    content = rows.tobytes()
    return Counter(content[i : i + width] for i in range(0, len(content), width))


def _distinct(known: npt.NDArray[Any]) -> tuple[float, ...]:
    """The distinct values, if they are few."""
    found = np.unique(known.reshape(-1)[:1000])  # enough to see early that there are many
    if found.size <= _SHOWN:
        if known.dtype == np.uint8:
            found = np.flatnonzero(np.bincount(known.reshape(-1), minlength=256))
        else:
            found = np.unique(known)
    return tuple(float(value) for value in found) if found.size <= _SHOWN else ()


def _constant(data: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None) -> tuple[int, ...]:
    if missing is None:
        low, high = data.min(axis=0), data.max(axis=0)
    else:
        low = np.where(missing, np.inf, data).min(axis=0)
        high = np.where(missing, -np.inf, data).max(axis=0)
    return tuple(int(i) for i in np.flatnonzero(low == high))
