"""Checks of arguments, made once in the public functions; errors give name, rule, value and remedy."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, as_float64, shown

FloatArray = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST_COUNT = 2**63 - 1  # arrays and kernels count with 64 bits
MOST_CHAINS = 10**7  # largest number of chains, samples or temperatures; more would fill the memory
MOST_SWEEPS = 10**9  # largest number of sweeps or epochs; more would not end in a lifetime
MOST_THREADS = 4096
_LONGEST_PATH = 4095  # bytes
_MOST_FILES = 1000  # of a folder, whose names are compared with one
_LONGEST_COMPARED = 100  # characters of a name that is compared with others
_LONGEST_NAME = 255  # bytes of a file's name, on all common file systems


def as_count(value: Any, argument: str, *, minimum: int = 1, maximum: int | None = LARGEST_COUNT) -> int:
    """``value`` as an integer from ``minimum`` to ``maximum`` (None for numbers that are not counts)."""
    rule = "a positive integer" if minimum == 1 else f"an integer of at least {minimum}"
    try:
        if isinstance(value, (bool, np.bool_)) or np.ndim(value):
            raise TypeError
        count = operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # also raised by ragged arrays and by tensors
        raise ValueError(f"`{argument}` must be {rule}, got {shown(value)}.") from None
    if count < minimum:
        raise ValueError(f"`{argument}` must be {rule}, got {shown(value)}.")
    if maximum is not None and count > maximum:
        raise ValueError(f"`{argument}` must be {rule} and at most {maximum}, got {shown(value)}.")
    return count


def as_threads(n_threads: Any) -> int:
    """``n_threads`` as a number of threads."""
    return as_count(n_threads, "n_threads", maximum=MOST_THREADS)


def as_reals(value: Any, argument: str) -> FloatArray:
    """``value`` as an array of finite real numbers."""
    array = as_array(value, argument, "a real number or an array of them")
    with np.errstate(over="ignore"):
        floats = array.astype(np.float64)
    if not np.isfinite(floats).all():
        bad = floats[~np.isfinite(floats)].flat[0]
        raise ValueError(f"`{argument}` must be finite, got {bad}.")
    return floats


def as_positive(value: Any, argument: str, *, zero: bool = False) -> FloatArray:
    """``value`` as an array of finite positive numbers (or non-negative ones, if ``zero``)."""
    array = as_reals(value, argument)
    bad = array < 0 if zero else array <= 0
    if bad.any():
        rule = "zero or positive" if zero else "positive"
        raise ValueError(f"`{argument}` must be {rule}, got {array[bad].flat[0]:g}.")
    return array


def as_real(value: Any, argument: str, *, finite: bool = True) -> float:
    """``value`` as one real number, which must be finite if ``finite``."""
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(f"`{argument}` must be a real number, got {value!r}.")
    array = as_reals(value, argument) if finite else as_float64(as_array(value, argument, "a real number"))
    if array.ndim:
        raise ValueError(f"`{argument}` must be a single number, got an array of shape {array.shape}.")
    return float(array)


def as_flag(value: Any, argument: str) -> bool:
    """``value`` as True or False; numbers and texts are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"`{argument}` must be True or False, got {shown(value)}.")
    return bool(value)


def as_choice(value: Any, argument: str, choices: Sequence[str]) -> str:
    """``value`` as one of the texts ``choices``."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        known = (
            f"{', '.join(others)} or {last}" if len(others) < 3 else f"one of {', '.join(map(repr, choices))}"
        )
        raise ValueError(f"`{argument}` must be {known}, got {shown_near(value, choices)}.")
    return value


def as_callable(value: Function | None, argument: str, called_with: str) -> Function | None:
    """``value`` as a function, or None; ``called_with`` describes its argument for the error message."""
    if value is not None and not callable(value):
        raise ValueError(
            f"`{argument}` must be None or a function, called with {called_with}, got {shown(value)}."
        )
    return value


def as_path(value: Any, argument: str) -> Path:
    """``value`` as a path that the operating system accepts."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise ValueError(f"`{argument}` must be a path, a text or a pathlib.Path, got {shown(value)}.")
    try:
        length = len(os.fsencode(text))
        longest = max(map(len, map(os.fsencode, Path(text).parts)), default=0)
    except UnicodeEncodeError:
        raise ValueError(
            f"`{argument}` must be a path that this system can encode, got {shown(text)}."
        ) from None
    if "\0" in text:
        raise ValueError(f"`{argument}` must be a path without null bytes, got {shown(text)}.")
    if longest > _LONGEST_NAME:
        raise ValueError(
            f"`{argument}` must have names of at most {_LONGEST_NAME} bytes, got one of {longest}: "
            f"{shown(text)}."
        )
    if length > _LONGEST_PATH:
        raise ValueError(
            f"`{argument}` must be at most {_LONGEST_PATH} bytes long, got {length}: {shown(text)}."
        )
    return Path(text)


def as_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from None, a seed (an integer or several), or a generator."""
    made = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
    if rng is None or isinstance(rng, made):
        return np.random.default_rng(rng)
    several = isinstance(rng, (list, tuple)) or (isinstance(rng, np.ndarray) and rng.ndim == 1)
    try:
        words = [as_count(word, "rng", minimum=0, maximum=None) for word in (rng if several else [rng])]
    except ValueError:
        raise ValueError(
            f"`rng` must be None, a non-negative integer or a numpy Generator, got {shown(rng)}."
        ) from None
    return np.random.default_rng(words if several else words[0])


def as_table(data: Any, argument: str, n_units: int, *, finite: bool) -> FloatArray:
    """``data`` as a float64 array ``(n_points, n_units)``, which must be finite if ``finite``."""
    array = as_array(data, argument)
    if array.size == 0:
        raise ValueError(f"`{argument}` must hold at least one point, got shape {array.shape}.")
    if array.ndim != 2:
        remedy = f" Reshape one point with `{argument}.reshape(1, -1)`." if array.ndim == 1 else ""
        raise ValueError(
            f"`{argument}` must have two dimensions (n_points, n_units), got shape {array.shape}.{remedy}"
        )
    if array.shape[1] != n_units:
        raise ValueError(
            f"`{argument}` must have {n_units} columns, one per visible unit, got shape {array.shape}."
        )
    states = as_float64(array)
    if finite:
        require_finite(states, argument)
    return states


def require_finite(states: FloatArray, argument: str) -> None:
    """Raise an error if numbers are NaN or infinite; the message says where."""
    if np.isfinite(states).all():
        return
    if np.isnan(states).any():
        raise ValueError(_report_nan(states, argument))
    where = tuple(np.argwhere(~np.isfinite(states))[0])
    raise ValueError(f"`{argument}` must hold finite numbers, got {states[where]} {_place(where)}.")


def _place(where: tuple[int, ...]) -> str:
    if len(where) == 2:
        return f"in row {where[0]}, column {where[1]}"
    return f"at {tuple(map(int, where))}"


def as_states(data: Any, argument: str, unit: str, levels: tuple[float, float], n_units: int) -> FloatArray:
    """``data`` as a float64 array ``(n_points, n_units)`` that holds only the two ``levels``."""
    states = as_table(data, argument, n_units, finite=False)
    require_levels(states, argument, unit, levels)
    return states


def require_levels(states: FloatArray, argument: str, unit: str, levels: tuple[float, float]) -> None:
    """Raise an error if ``states`` hold numbers other than the two values of a unit."""
    low, high = levels
    if not ((states == low) | (states == high)).all():
        raise ValueError(_foreign_values(states, argument, unit, low, high))


def require_between(states: FloatArray, argument: str, unit: str, levels: tuple[float, float]) -> None:
    """Raise an error if ``states`` hold numbers that are neither a value nor a mean of a unit."""
    low, high = levels
    if not ((states >= low) & (states <= high)).all():
        if np.isnan(states).any():
            raise ValueError(_report_nan(states, argument))
        found = states[(states < low) | (states > high)].flat[0]
        raise ValueError(
            f"`{argument}` must hold the values of {unit} units, {low:g} and {high:g}, or means between "
            f"them; found {found:g}.{_conversion(states, argument, low, high)}"
        )


def as_sample_weight(value: Any, argument: str, n_points: int) -> FloatArray:
    """``value`` as the weights of ``n_points`` points: zero or positive, not all of them zero."""
    weights = as_positive(value, argument, zero=True)
    if weights.shape != (n_points,):
        raise ValueError(
            f"`{argument}` must hold one number for each of the {n_points} points, got shape {weights.shape}."
        )
    if not weights.any():
        raise ValueError(
            f"`{argument}` must hold at least one positive number, got zeros only. Leave it out to count all "
            "points alike."
        )
    return weights


def as_layer(state: Any, argument: str, n_units: int) -> FloatArray:
    """``state`` as a float64 array whose last axis runs over ``n_units`` units."""
    array = as_array(state, argument)
    if array.ndim == 0 or array.shape[-1] != n_units:
        raise ValueError(
            f"`{argument}` must have {n_units} units along its last axis, got shape {array.shape}."
        )
    return as_float64(array)


def _report_nan(states: FloatArray, argument: str) -> str:
    where = tuple(np.argwhere(np.isnan(states))[0])
    return (
        f"`{argument}` must not hold NaN, found {int(np.isnan(states).sum())}, the first {_place(where)}. "
        "Drop those points or fill them in."
    )


def _foreign_values(states: FloatArray, argument: str, unit: str, low: float, high: float) -> str:
    if np.isnan(states).any():
        return _report_nan(states, argument)
    found = np.unique(states)
    listed = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if found.size > 5 else "")
    message = f"`{argument}` must hold the values of {unit} units, {low:g} and {high:g}; found {listed}."
    remedy = _conversion(states, argument, low, high) or (
        f" Binarize them first, for example `np.where({argument} > threshold, {high:g}, {low:g})`."
    )
    return message + remedy


def _conversion(states: FloatArray, argument: str, low: float, high: float) -> str:
    """The formula that converts bits to spins, or spins to bits, if states of the other kind were given."""
    found = set(np.unique(states))
    if found <= {0.0, 1.0} and (low, high) == (-1.0, 1.0):
        return f" Convert bits to spins with `2.0 * {argument} - 1`."
    if found <= {-1.0, 1.0} and (low, high) == (0.0, 1.0):
        return f" Convert spins to bits with `({argument} + 1) / 2`."
    return ""


def shown_near(value: Any, known: Iterable[str]) -> str:
    """``value`` for an error message that lists the names; those of ``known`` that it resembles follow.

    Of a text with settings in brackets, such as "categorical(3)", the name is compared.
    """
    near = near_names(value.partition("(")[0], tuple(known), most_listed=0) if isinstance(value, str) else ""
    return f"{shown(value)}{near}"


def near_files(path: Path, others: Iterable[str] = ()) -> str:
    """A few names like that of ``path``, in brackets: files with an ending beside it, or ``others``."""
    try:
        files = [other.name for other in path.parent.iterdir() if other.suffix]
    except OSError:
        files = []
    return near_names(path.name, [*others, *files[:_MOST_FILES]], most_listed=0)


def near_names(wanted: str, known: Sequence[str], most_listed: int = 6) -> str:
    """A few names like ``wanted``, in brackets; of few names, up to ``most_listed``, all."""
    wanted = wanted[:_LONGEST_COMPARED]
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    lower = {name.lower(): name for name in known}
    if wanted.lower() in lower:
        close = [lower[wanted.lower()]]
    if close:
        return f" (did you mean {' or '.join(map(repr, close))}?)"
    return f" (there are {', '.join(map(repr, known))})" if len(known) <= most_listed else ""
