"""Points from a file, in the values that a machine wants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.units import FloatArray

Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a .csv has a header; detected if not given."),
]
DataArgument = Annotated[
    Path,
    typer.Argument(
        help="A point per row: .csv, .npy, .npz, .parquet, .arff or idx; or sequences: .fa, .fasta or .txt; "
        "or a name of `data list`."
    ),
]


def read_points(path: Path, units: str, header: bool | None = None) -> FloatArray:
    """The points in a file; ``header`` says whether the first line of a .csv is one.

    Bits given to spin units, and spins given to bit units, are converted, with a line that says so.
    """
    import numpy as np

    from paramagnet.data.files import read_data, read_table
    from paramagnet.units import find_unit

    points, unit = read_data(path, header=header), find_unit(units, "--visible")
    n_units = unit.count_units(points, str(path))
    if unit.width > 1 and points.ndim == 3:  # indicators of states
        points = unit.as_states(points, str(path), n_units)
    numpy = path.suffix.lower() in (".npy", ".npz")
    if not numpy and (labels := read_table(path, header=header).label_column) is not None:
        say(f"{path}: column {labels + 1} holds labels and is left out.", err=True)
    if points.ndim != 2:
        raise ValueError(
            f"`{path}` must hold a table, one point per row, got an array of shape {points.shape}."
        )
    if np.isnan(points).any():
        return points  # the library reports the error
    return as_levels(points, path, units)


def read_weights(path: Path | None, header: bool | None = None) -> FloatArray | None:
    """The weights of points in a file, one number for each; None where there is no file."""
    from paramagnet.data.files import read_data

    if path is None:
        return None
    weights = read_data(path, header=header)
    if weights.ndim > 2 or (weights.ndim == 2 and 1 not in weights.shape):
        raise ValueError(
            f"`{path}` must hold one column, the weight of each point, got an array of shape {weights.shape}."
        )
    return weights.reshape(-1)


def as_levels(points: FloatArray, path: Path, units: str) -> FloatArray:
    """``points`` in the values of these units; NaN stays what it is. For Gaussian units all numbers are
    values.
    """
    import numpy as np

    from paramagnet.units import as_binary, find_unit

    unit = find_unit(units, "visible")
    if unit.values is None or unit.is_value(points[~np.isnan(points)]).all():
        return points
    if unit.width > 1:
        unit.require_values(points[~np.isnan(points)], str(path))  # raises the error
    low, high = as_binary(unit, "visible").levels
    found = np.unique(points[~np.isnan(points)])
    for other in ("bit", "spin"):
        levels = as_binary(other, "units").levels
        if set(found) <= set(levels):
            say(f"{path}: {levels[0]:g}/{levels[1]:g} read as {low:g}/{high:g}, {units} units.", err=True)
            return np.where(np.isnan(points), np.nan, np.where(points == levels[1], high, low))
    shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if found.size > 5 else "")
    raise ValueError(
        f"`{path}` must hold the values of {units} units, {low:g} and {high:g}; found {shown}. "
        "Binarize it first: `paramagnet data binarize IN OUT`."
    )
