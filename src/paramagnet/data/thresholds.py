"""Thresholds of samples, each sample a row.

Otsu's is exact on the sample: of all splits between neighbouring values the one with the greatest variance
between the classes (N. Otsu, IEEE Trans. Syst. Man Cybern. 9 (1979) 62), the lowest of equals; the threshold
is midway between the neighbours. The threshold of a constant row is its value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.units import FloatArray

_TIE = 1e-12  # as in the kernel for bytes
_BLOCK = 1 << 22  # values sorted at a time

Array = npt.NDArray[Any]


def fit_rows(
    rows: Array, rule: str, weights: FloatArray | None = None
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The threshold of each row by "otsu" or "median", and which rows are constant.

    ``weights``, positive, are those of the columns.
    """
    if weights is not None:
        step = max(1, _BLOCK // rows.shape[1])
        found = [_fit_weighted(rows[i : i + step], rule, weights) for i in range(0, len(rows), step)]
        return np.concatenate([part for part, _ in found]), np.concatenate([flat for _, flat in found])
    if rule == "otsu" and _holds_bytes(rows):
        from paramagnet.kernels.otsu import byte_thresholds

        images = np.ascontiguousarray(rows, dtype=np.uint8)
        thresholds, constant = np.empty(len(images)), np.empty(len(images), np.bool_)
        byte_thresholds(images, thresholds, constant)
        return thresholds, constant
    fit = otsu_rows if rule == "otsu" else _median_rows
    step = max(1, _BLOCK // rows.shape[1])
    parts = [fit(np.sort(rows[i : i + step].astype(np.float64), axis=1)) for i in range(0, len(rows), step)]
    thresholds = np.concatenate([part for part, _ in parts])
    return thresholds, np.concatenate([constant for _, constant in parts])


def _holds_bytes(rows: Array) -> bool:
    """Whether loading the kernel for bytes pays: there are many values, and all of them are bytes."""
    if rows.dtype == np.uint8:
        return True
    if rows.size < _BLOCK:
        return False
    with np.errstate(invalid="ignore"):
        return all(bool((part == part.astype(np.uint8)).all()) for part in (rows[:1], rows))


def otsu_rows(rows: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Otsu's threshold of each sorted row: ``argmax s**2 / (n0 (n - n0))`` over the splits, where the ``n0``
    lowest values, less the mean of all, have the sum ``s``.
    """
    n = rows.shape[1]
    constant = rows[:, 0] == rows[:, -1]
    if n == 1:
        return rows[:, 0].copy(), constant
    # A power of two for each row keeps the squares in range and changes no bit of the values.
    _, exponent = np.frexp(np.maximum(np.abs(rows[:, :1]), np.abs(rows[:, -1:])))
    centred = np.ldexp(rows, -exponent)
    centred -= centred.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)
    n_low = np.arange(1.0, n)
    variance = (sums[:, :-1] - sums[:, -1:] * (n_low / n)) ** 2 / (n_low * (n - n_low))
    variance[rows[:, 1:] == rows[:, :-1]] = -1.0  # equal values stay together
    highest = variance.max(axis=1, keepdims=True)
    split = np.argmax(variance >= highest * (1.0 - _TIE), axis=1)
    thresholds = _between(rows, split)
    return np.where(constant, rows[:, 0], thresholds), constant


def _median_rows(rows: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The median of each sorted row; if no value exceeds it, the middle of the two highest values."""
    n = rows.shape[1]
    constant = rows[:, 0] == rows[:, -1]
    return _split_at_median(rows, rows[:, (n - 1) // 2], rows[:, n // 2]), constant


def _split_at_median(rows: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The threshold of each sorted row whose median lies midway between two values."""
    constant = rows[:, 0] == rows[:, -1]
    median = np.where(lower == upper, upper, lower / 2 + upper / 2)
    last_below = np.maximum((rows < rows[:, -1:]).sum(axis=1) - 1, 0)
    thresholds = np.where(median < rows[:, -1], median, _between(rows, last_below))
    found: FloatArray = np.where(constant, rows[:, 0], thresholds)
    return found


def _fit_weighted(rows: Array, rule: str, weights: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The same thresholds where column ``k`` counts ``weights[k]`` times."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1).astype(np.float64)
    low = np.cumsum(weights[order], axis=1)
    total, constant = low[:, -1:], ordered[:, 0] == ordered[:, -1]
    if rule != "otsu" or ordered.shape[1] == 1:
        each = np.arange(len(ordered))
        lower = ordered[each, np.argmax(low >= 0.5 * (1.0 - _TIE) * total, axis=1)]
        upper = ordered[each, np.argmax(low > 0.5 * (1.0 + _TIE) * total, axis=1)]
        return _split_at_median(ordered, lower, upper), constant
    _, exponent = np.frexp(np.maximum(np.abs(ordered[:, :1]), np.abs(ordered[:, -1:])))
    centred = np.ldexp(ordered, -exponent)
    centred -= (weights[order] * centred).sum(axis=1, keepdims=True) / total
    sums, n_low = np.cumsum(weights[order] * centred, axis=1), low[:, :-1]
    variance = (sums[:, :-1] - sums[:, -1:] * (n_low / total)) ** 2 / (n_low * (total - n_low))
    variance[ordered[:, 1:] == ordered[:, :-1]] = -1.0  # equal values stay together
    highest = variance.max(axis=1, keepdims=True)
    split = np.argmax(variance >= highest * (1.0 - _TIE), axis=1)
    return np.where(constant, ordered[:, 0], _between(ordered, split)), constant


def _between(rows: FloatArray, split: npt.NDArray[np.intp]) -> FloatArray:
    """The middle of the values ``split`` and ``split + 1`` of each row, below the latter."""
    each = np.arange(len(rows))
    low, high = rows[each, split], rows[each, np.minimum(split + 1, rows.shape[1] - 1)]
    middle = low / 2 + high / 2  # the sum itself may overflow
    return np.where((low <= middle) & (middle < high), middle, low)
