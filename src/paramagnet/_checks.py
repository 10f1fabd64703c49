"""Checks of what users pass in, made once at the public boundary: name, rule, value, remedy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LARGEST_COUNT = 2**63 - 1  # arrays and kernels count with 64 bits
MOST_CHAINS = 10**7  # or samples, or temperatures: more would fill the memory
MOST_SWEEPS = 10**9  # or epochs: more would never end


def as_count(value: Any, argument: str, *, minimum: int = 1, maximum: int | None = LARGEST_COUNT) -> int:
    """``value`` as an integer of at least ``minimum`` and at most ``maximum``, None for no limit."""
    rule = "a positive integer" if minimum == 1 else f"an integer of at least {minimum}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        raise ValueError(f"`{argument}` must be {rule}, got {value!r}.") from None
    if count < minimum:
        raise ValueError(f"`{argument}` must be {rule}, got {value!r}.")
    if maximum is not None and count > maximum:
        shown = repr(value) if count < 10**30 else f"a number of {count.bit_length()} bits"
        raise ValueError(f"`{argument}` must be {rule} and at most {maximum}, got {shown}.")
    return count


def _refuse_masked(value: Any, argument: str) -> None:
    """Masked arrays would lose their mask on the way."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"`{argument}` must not be a masked array; fill it first, with `.filled(...)`.")


def as_reals(value: Any, argument: str) -> FloatArray:
    """``value`` as an array of finite real numbers."""
    _refuse_masked(value, argument)
    try:
        array = np.asarray(value)
        if array.dtype.kind != "c":
            if value is None or array.dtype.kind not in "biufO":
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`{argument}` must be a real number or an array of them, got {value!r}.") from None
    if np.iscomplexobj(array):
        raise ValueError(f"`{argument}` must be real, got {value!r}.")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"`{argument}` must be finite, got {bad}.")
    return array


def as_positive(value: Any, argument: str, *, zero: bool = False) -> FloatArray:
    """``value`` as an array of finite numbers above zero (or at zero, where ``zero`` allows it)."""
    array = as_reals(value, argument)
    bad = array < 0 if zero else array <= 0
    if bad.any():
        rule = "zero or positive" if zero else "positive"
        raise ValueError(f"`{argument}` must be {rule}, got {array[bad].flat[0]:g}.")
    return array


def as_real(value: Any, argument: str) -> float:
    """``value`` as one finite real number."""
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(f"`{argument}` must be a real number, got {value!r}.")
    array = as_reals(value, argument)
    if array.ndim:
        raise ValueError(f"`{argument}` must be a single number, got an array of shape {array.shape}.")
    return float(array)


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """A NumPy generator from None, a seed, or a generator."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"`rng` must be None, a non-negative integer or a numpy Generator, got {rng!r}."
        ) from None


def as_table(data: Any, argument: str, n_units: int, *, finite: bool) -> FloatArray:
    """``data`` as a float64 array ``(n_points, n_units)``; of finite numbers, if so asked."""
    _refuse_masked(data, argument)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"`{argument}` must be an array, with rows of equal length.") from None
    if array.size == 0:
        raise ValueError(f"`{argument}` must hold at least one point, got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"`{argument}` must be an array of real numbers, got dtype {array.dtype}. Convert it, for "
            f"example with `np.asarray({argument}, dtype=float)`."
        )
    if array.ndim != 2:
        remedy = f" Reshape one point with `{argument}.reshape(1, -1)`." if array.ndim == 1 else ""
        raise ValueError(
            f"`{argument}` must have two dimensions (n_points, n_units), got shape {array.shape}.{remedy}"
        )
    if array.shape[1] != n_units:
        raise ValueError(
            f"`{argument}` must have {n_units} columns, one per visible unit, got shape {array.shape}."
        )
    states = np.ascontiguousarray(array, dtype=np.float64)
    if finite and not np.isfinite(states).all():
        if np.isnan(states).any():
            raise ValueError(_report_nan(states, argument))
        row, column = np.argwhere(~np.isfinite(states))[0]
        raise ValueError(
            f"`{argument}` must hold finite numbers, got {states[row, column]} in row {row}, column {column}."
        )
    return states


def as_states(data: Any, argument: str, unit: str, levels: tuple[float, float], n_units: int) -> FloatArray:
    """``data`` as a float64 array ``(n_points, n_units)`` that holds nothing but the two ``levels``."""
    states = as_table(data, argument, n_units, finite=False)
    low, high = levels
    if not ((states == low) | (states == high)).all():
        raise ValueError(_foreign_values(states, argument, unit, low, high))
    return states


def _report_nan(states: FloatArray, argument: str) -> str:
    row, column = np.argwhere(np.isnan(states))[0]
    return (
        f"`{argument}` must not hold NaN, found {int(np.isnan(states).sum())}, the first in row {row}, "
        f"column {column}. Drop those points or fill them in."
    )


def _foreign_values(states: FloatArray, argument: str, unit: str, low: float, high: float) -> str:
    if np.isnan(states).any():
        return _report_nan(states, argument)
    found = np.unique(states)
    shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if found.size > 5 else "")
    message = f"`{argument}` must hold the values of {unit} units, {low:g} and {high:g}; found {shown}."
    if set(found) <= {0.0, 1.0} and (low, high) == (-1.0, 1.0):
        return f"{message} Convert bits to spins with `2.0 * {argument} - 1`."
    if set(found) <= {-1.0, 1.0} and (low, high) == (0.0, 1.0):
        return f"{message} Convert spins to bits with `({argument} + 1) / 2`."
    return (
        f"{message} Binarize them first, for example `np.where({argument} > threshold, {high:g}, {low:g})`."
    )
