"""Binarization: Otsu's threshold, medians, fixed thresholds and stochastic rounding.

A threshold ``t`` makes the values ``x > t`` high, all others low. [Y25] section 4 takes Otsu's threshold, per
feature over the data points for tables and per data point over its pixels for images.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_generator, as_real, as_reals, as_sample_weight, shown_near
from paramagnet._files import write_atomically
from paramagnet.data.checks import as_points, existing_file
from paramagnet.data.thresholds import fit_rows
from paramagnet.units import BIT, SPIN, BinaryUnit, FloatArray, as_binary, saved_name

BINARIZE_METHODS = ("otsu", "median", "stochastic")
PER = ("feature", "point", "all")

_FORMAT = "paramagnet.binarizer"
_VERSION = 1

Array = npt.NDArray[Any]


class ConstantDataWarning(UserWarning):
    """A feature or a point has one value only, so no threshold can split it."""


@dataclass(frozen=True, eq=False)
class Binarizer:
    """A rule that turns numbers into the two values of ``units``; made by `fit_binarizer`.

    ``method`` is "otsu", "median", "fixed", "stochastic", or "binary" for data that had two values from the
    start. ``thresholds`` is one number per feature, one number if ``per`` is "all", and None where each point
    has its own or there are none. ``grey_range`` holds the values that "stochastic" makes low and high with
    certainty, ``(2, 1)`` or ``(2, n_features)``.
    """

    method: str
    per: str
    units: BinaryUnit
    thresholds: FloatArray | None = None
    grey_range: FloatArray | None = None

    def __repr__(self) -> str:
        return f"Binarizer({self.describe()}, {self.units} units)"

    def describe(self) -> str:
        """The rule in a few words."""
        if self.method == "binary":
            return "already binary"
        if self.method == "fixed":
            assert self.thresholds is not None
            return f"threshold {self.thresholds[0]:g}"
        over = "over all values" if self.per == "all" else f"per {self.per}"
        return f"{self.method} {over}"

    def apply(self, data: npt.ArrayLike, *, rng: np.random.Generator | int | None = None) -> FloatArray:
        """``data``, ``(n_points, n_features)``, in the two values of ``units``.

        ``rng`` is the seed or generator of "stochastic"; the other rules are deterministic.
        """
        table = as_points(data, "data")
        rng = None if rng is None else as_generator(rng)  # checked for every rule, used by one
        return self.levels_of(self.partition(table, self.thresholds_of(table), rng=rng))

    def thresholds_of(self, data: npt.ArrayLike) -> FloatArray | None:
        """The thresholds that ``data`` get: the fitted ones, or one per point."""
        table = as_points(data, "data")
        fitted = self.thresholds if self.thresholds is not None else self.grey_range
        if self.per == "feature" and fitted is not None and fitted.shape[-1] != table.shape[1]:
            raise ValueError(
                f"`data` must have {fitted.shape[-1]} columns, those the binarizer was fitted to, "
                f"got shape {table.shape}."
            )
        if self.thresholds is not None or self.method == "stochastic":
            return self.thresholds
        thresholds, constant = fit_rows(table, self.method)
        _warn_constant(constant, "points", self.units)
        return thresholds

    def partition(
        self,
        data: npt.ArrayLike,
        thresholds: FloatArray | None,
        *,
        rng: np.random.Generator | int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Which values of ``data`` are high, by the ``thresholds`` that `thresholds_of` gives."""
        table = as_points(data, "data")
        if thresholds is None:
            return self._draw(table, as_generator(rng))
        if self.per == "point":
            thresholds = thresholds[:, np.newaxis]
        if table.dtype == np.uint8:  # bytes are compared with bytes, so that the table is not converted
            below = np.clip(np.floor(thresholds), -1, 255)
            high: npt.NDArray[np.bool_] = table > np.maximum(below, 0).astype(np.uint8)
            return high | (below < 0) if (below < 0).any() else high
        result: npt.NDArray[np.bool_] = table > thresholds
        return result

    def levels_of(self, high: npt.NDArray[np.bool_]) -> FloatArray:
        """The values of ``units`` for a partition."""
        if not isinstance(high, np.ndarray) or high.dtype != np.bool_ or isinstance(high, np.ma.MaskedArray):
            raise ValueError(
                f"`high` must be an array of truth values, as `partition` gives it, got {shown(high)}."
            )
        return np.where(high, self.units.high, self.units.low)

    def _draw(self, table: Array, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        if self.grey_range is not None:
            black, white = self.grey_range
        else:
            black, white = (edge(table, axis=1, keepdims=True).astype(float) for edge in (np.min, np.max))
        flat = white <= black
        grey = np.where(flat, table > black, (table - black) / np.where(flat, 1.0, white - black))
        result: npt.NDArray[np.bool_] = rng.random(table.shape) < grey
        return result

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the binarizer to ``path`` as JSON; `load` restores every threshold bit for bit."""
        arrays = {"thresholds": self.thresholds, "grey_range": self.grey_range}
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "method": self.method,
            "per": self.per,
            "units": saved_name(self.units, "units"),
            **{name: None if array is None else array.tolist() for name, array in arrays.items()},
        }
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Binarizer:
        """The binarizer that `save` wrote to ``path``."""
        source = existing_file(path)
        try:
            content = json.loads(source.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.get("format") != _FORMAT:
                raise ValueError(f"not of format {_FORMAT!r}")
            if content.get("version") != _VERSION:
                raise ValueError(f"version {content.get('version')!r}, this release reads {_VERSION}")
            return cls(
                str(content.get("method")),
                str(content.get("per")),
                as_binary(str(content.get("units")), "units"),
                _loaded(content, "thresholds", 1),
                _loaded(content, "grey_range", 2),
            )._checked()
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"`path` is no file of a binarizer: {source} ({error}).") from None

    def _checked(self) -> Binarizer:
        if self.method not in (*BINARIZE_METHODS, "fixed", "binary") or self.per not in PER:
            raise ValueError(f"unknown rule {self.method!r} per {self.per!r}")
        stochastic = self.method == "stochastic"
        needed, other = (
            (self.grey_range, self.thresholds) if stochastic else (self.thresholds, self.grey_range)
        )
        if other is not None or (needed is None) != (self.per == "point"):
            raise ValueError("thresholds and rule do not fit together")
        if needed is not None and self.per == "all" and needed.shape[-1] != 1:
            raise ValueError("one threshold for all values must be one number")
        if self.grey_range is not None and len(self.grey_range) != 2:
            raise ValueError("a grey range must have two ends")
        return self


def _loaded(content: dict[str, Any], name: str, n_dimensions: int) -> FloatArray | None:
    if content.get(name) is None:
        return None
    array = np.array(content[name], dtype=np.float64)
    if array.ndim != n_dimensions or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be {n_dimensions}-dimensional and finite")
    return _frozen(array)


def fit_binarizer(
    data: npt.ArrayLike,
    method: str | float = "otsu",
    *,
    per: str = "feature",
    units: str | BinaryUnit = "spin",
    grey_range: tuple[float, float] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Binarizer:
    """Learn from ``data``, ``(n_points, n_features)``, how to binarize them and others like them.

    Parameters
    ----------
    data : array_like
        Numbers, ``(n_points, n_features)``.
    method : str or float, default "otsu"
        ``"otsu"``; ``"median"``; a number, which is the threshold; or ``"stochastic"``: each value is drawn,
        high with the probability ``(x - black)/(white - black)``.
    per : str, default "feature"
        What shares a threshold or a grey range: the values of a ``"feature"``, those of a ``"point"`` (found
        anew for every point), or ``"all"``.
    units : str or BinaryUnit, default "spin"
        ``"spin"`` or ``"bit"``.
    grey_range : tuple of (float, float), optional
        Black and white of all values; None takes the extremes of the data.
    sample_weight : array_like, optional
        Weights of the points, zero or positive, for thresholds of features; None counts all alike.

    Returns
    -------
    Binarizer
        The rule.

    Notes
    -----
    Data that hold nothing but 0 and 1, or -1 and 1, are binary already and keep their meaning. Otherwise a
    constant feature or point becomes low everywhere, with a `ConstantDataWarning`.
    """
    table = as_points(data, "data")
    unit = as_binary(units, "units")
    rule = check_method(method)
    if not isinstance(per, str) or per not in PER:
        raise ValueError(f"`per` must be one of {', '.join(map(repr, PER))}, got {shown(per)}.")
    weights = None
    if sample_weight is not None:
        weights = as_sample_weight(sample_weight, "sample_weight", len(table))
        if per != "feature":
            raise ValueError(f"`sample_weight` must be left out where `per` is not 'feature', got {per!r}.")
        table, weights = table[weights > 0.0], weights[weights > 0.0] / weights.max()
    if rule == "fixed":
        return Binarizer("fixed", "all", unit, _frozen(np.array([float(method)])))
    if grey_range is not None:
        grey_range = _as_grey_range(grey_range)
    middle = _middle_of_alphabet(table)
    if middle is not None:
        return Binarizer("binary", "all", unit, _frozen(np.array([middle])))
    if per == "feature" and len(table) == 1 and grey_range is None:
        raise ValueError(
            "`data` must hold at least two points for thresholds per feature, got 1. "
            "Take `per='point'` or a number as the threshold."
        )
    if rule == "stochastic":
        return _fit_grey_range(table, per, unit, grey_range)
    if per == "point":
        return Binarizer(rule, per, unit)
    thresholds, constant = fit_rows(table.T if per == "feature" else table.reshape(1, -1), rule, weights)
    _warn_constant(constant, "features" if per == "feature" else "data", unit)
    return Binarizer(rule, per, unit, _frozen(thresholds))


def check_method(method: str | float, argument: str = "method") -> str:
    """The name of the rule that ``method`` asks for; errors call it ``argument``."""
    if isinstance(method, str):
        if method not in BINARIZE_METHODS:
            known = ", ".join(map(repr, BINARIZE_METHODS))
            raise ValueError(
                f"`{argument}` must be one of {known} or a number, the threshold, got "
                f"{shown_near(method, BINARIZE_METHODS)}."
            )
        return method
    as_real(method, argument)
    return "fixed"


def _as_grey_range(grey_range: Any) -> tuple[float, float]:
    edges = as_reals(grey_range, "grey_range")
    if edges.shape != (2,) or not edges[0] < edges[1]:
        raise ValueError(f"`grey_range` must be two numbers, black below white, got {shown(grey_range)}.")
    return float(edges[0]), float(edges[1])


def _fit_grey_range(
    table: Array, per: str, unit: BinaryUnit, grey_range: tuple[float, float] | None
) -> Binarizer:
    if grey_range is not None:
        black, white = grey_range
        return Binarizer("stochastic", "all", unit, None, _frozen(np.array([[black], [white]])))
    if per == "point":
        return Binarizer("stochastic", per, unit)
    values = table if per == "feature" else table.reshape(-1, 1)
    edges = np.array([values.min(axis=0), values.max(axis=0)], dtype=np.float64)
    _warn_constant(edges[0] == edges[1], "features" if per == "feature" else "data", unit)
    return Binarizer("stochastic", per, unit, None, _frozen(edges))


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _middle_of_alphabet(table: Array) -> float | None:
    """The threshold of data that are bits (0.5) or spins (0); None for others."""
    first = table[:64]  # the first values decide for most data
    for unit in (BIT, SPIN):
        low, high = unit.levels
        if all(bool(((part == low) | (part == high)).all()) for part in (first, table)):
            return 0.5 * (low + high)
    return None


def _warn_constant(constant: npt.NDArray[np.bool_], what: str, unit: BinaryUnit) -> None:
    if not constant.any():
        return
    which = np.flatnonzero(constant)
    shown = ", ".join(map(str, which[:5])) + (", ..." if which.size > 5 else "")
    warnings.warn(
        f"{which.size} of {constant.size} {what} are constant and become {unit.low:g} everywhere: "
        f"number {shown} (counted from 0).",
        ConstantDataWarning,
        stacklevel=3,
    )
