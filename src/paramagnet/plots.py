"""Figures from arrays. Matplotlib is imported inside the functions."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._extras import how_to_install
from paramagnet._files import write_atomically

FORMATS = ("png", "svg", "pdf")
DPI = 160
_SHEET_DOTS, _MOST_DOTS = 1400, 8  # dots of the longer side of a sheet of images, most dots of a pixel
_UNKNOWN = "#5b8db8"


@dataclass(frozen=True)
class Curve:
    """One line of a panel; ``mark`` is a point ``(x, y)`` on it that is drawn as a dot."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    label: str
    mark: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves that share axes; ``at`` is an x that is marked by a vertical line."""

    title: str
    curves: Sequence[Curve]
    at: float | None = None


def check_figure_path(path: Path) -> None:
    """Raise an error if the ending of the file name is no known format, the folder does not exist, or
    matplotlib is not installed.
    """
    if path.suffix.lstrip(".").lower() not in FORMATS:
        known = ", ".join("." + name for name in FORMATS)
        raise ValueError(f"A figure's file name must end in {known}, got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"A figure's file name must not be that of a folder, got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(f"Figures need matplotlib: {how_to_install('plot')}.") from None


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format given by the ending of its file name."""
    check_figure_path(path)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format=path.suffix.lstrip(".").lower())
    write_atomically(path, drawn.getvalue())


def _new_figure(n_panels: int, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.4, 3.3 * n_panels), height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, n_panels, sharey=True))


def plot_panels(panels: Sequence[Panel], *, x_label: str, y_label: str) -> Any:
    """Panels side by side on one y axis, each curve's marked point as a dot that its label explains."""
    figure, axes = _new_figure(len(panels), 3.1)
    for axis, panel in zip(axes, panels, strict=True):
        for number, curve in enumerate(panel.curves):
            style = ("-", "--", "-.", ":")[number % 4]
            (line,) = axis.plot(curve.x, curve.y, style, label=curve.label, linewidth=1.6)
            if curve.mark is not None:
                axis.plot(*curve.mark, "o", color=line.get_color(), markersize=5)
        if panel.at is not None:
            axis.axvline(panel.at, color="0.6", linewidth=0.8)
        axis.set(title=panel.title, xlabel=x_label)
        axis.margins(x=0.0)
        axis.legend(frameon=False, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(y_label)
    highest = max(float(np.max(curve.y)) for panel in panels for curve in panel.curves)
    axes[0].set_ylim(0.0, 1.35 * highest)  # room for the legends
    return figure


def plot_learning_curve(
    epoch: npt.ArrayLike, log_likelihood: npt.ArrayLike, *, validation: npt.ArrayLike | None = None
) -> Any:
    """The log-likelihood of training data (and of validation data, if there are any) against the epoch."""
    figure, (axis,) = _new_figure(1, 3.1)
    axis.plot(epoch, log_likelihood, "-", label="training", linewidth=1.6)
    if validation is not None and np.isfinite(np.asarray(validation, dtype=float)).any():
        axis.plot(epoch, validation, "--", label="validation", linewidth=1.6)
        axis.legend(frameon=False)
    axis.set(xlabel="epoch", ylabel="log-likelihood (nats per point)")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def plot_data(
    data: npt.NDArray[Any], *, names: Sequence[str], image_shape: tuple[int, int] | None = None
) -> Any:
    """The mean of every feature, as bars with their names, or as an image beside a sheet of samples if the
    points are images.
    """
    if image_shape is None:
        return _plot_means(data, names)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn = left.imshow(_feature_means(data).reshape(image_shape), cmap="gray")
    figure.colorbar(drawn, ax=left, shrink=0.8)
    left.set_title("feature means")
    right.imshow(sample_sheet(data, image_shape), cmap="gray")
    right.set_title("samples")
    for axis in (left, right):
        axis.set_axis_off()
    return figure


def sample_sheet(
    data: npt.NDArray[Any], image_shape: tuple[int, int], *, n_rows: int = 8, n_columns: int = 8
) -> npt.NDArray[Any]:
    """One image that shows the first points, ``n_columns`` beside each other, with lines between them."""
    height, width = image_shape
    shown = np.asarray(data[: n_rows * n_columns], dtype=np.float64)
    n_rows = -(-len(shown) // n_columns)
    known = shown[~np.isnan(shown)]
    grid = 0.5 * (known.min() + known.max()) if known.size else 0.0
    sheet = np.full((n_rows * (height + 1) + 1, n_columns * (width + 1) + 1), grid)
    for number, point in enumerate(shown):
        top, left = 1 + (number // n_columns) * (height + 1), 1 + (number % n_columns) * (width + 1)
        sheet[top : top + height, left : left + width] = point.reshape(image_shape)
    return sheet


def image_grid(data: npt.NDArray[Any], image_shape: tuple[int, int], *, n_columns: int | None = None) -> Any:
    """A figure of images beside each other without axes, ``n_columns`` in a row; None makes about a square.

    ``data`` is ``(n_images, n_pixels)``; pixels that are NaN are drawn in colour. All pixels have the same
    size, a whole number of the figure's dots if it is saved by `save_figure`.
    """
    from matplotlib.figure import Figure

    n_columns = n_columns or math.ceil(math.sqrt(len(data)))
    n_rows = -(-len(data) // n_columns)
    sheet = sample_sheet(data, image_shape, n_rows=n_rows, n_columns=n_columns)
    dots = max(1, min(_MOST_DOTS, _SHEET_DOTS // max(sheet.shape)))
    height, width = (dots * size / DPI for size in sheet.shape)
    figure = Figure(figsize=(width, height))
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set_axis_off()
    axis.set_facecolor(_UNKNOWN)
    figure.set_facecolor(_UNKNOWN)
    axis.imshow(np.ma.masked_invalid(sheet), cmap="gray", interpolation="nearest", aspect="auto")
    return figure


def _feature_means(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    known = ~np.isnan(data)
    means: npt.NDArray[Any] = np.where(known, data, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return means


def _plot_means(data: npt.NDArray[Any], names: Sequence[str]) -> Any:
    figure, (axis,) = _new_figure(1, 3.4)
    figure.set_figwidth(min(12.0, max(4.4, 0.3 * len(names))))
    axis.bar(np.arange(len(names)), _feature_means(data), width=0.8)
    if len(names) <= 40:
        axis.set_xticks(np.arange(len(names)), names, rotation=60, ha="right", fontsize="small")
    else:
        axis.set_xlabel("feature")
    axis.axhline(0.0, color="0.6", linewidth=0.8)
    axis.set_ylabel("mean")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


@dataclass(frozen=True)
class Look:
    """The style of a curve, distinct in black and white and for colour-blind readers."""

    colour: str
    line: str
    marker: str
    heavy: bool = False


@dataclass(frozen=True)
class Band:
    """A mean against the epoch with the range to shade around it."""

    x: npt.ArrayLike
    mean: npt.ArrayLike
    low: npt.ArrayLike
    high: npt.ArrayLike
    label: str
    look: Look


@dataclass(frozen=True)
class BandPanel:
    """Bands that share axes.

    The x axis is logarithmic and begins at ``first``; if that is 0, the epoch 0 is drawn before 1.
    ``bottom`` and ``top`` limit the y axis if curves exceed them; beyond ``linear`` it is logarithmic.
    """

    title: str
    bands: Sequence[Band]
    bottom: float | None = None
    top: float | None = None
    first: float = 0.0
    linear: float | None = None


def plot_bands(
    rows: Sequence[Sequence[BandPanel]], *, y_labels: Sequence[str], x_label: str = "epoch"
) -> Any:
    """Rows of panels, one legend below all of them."""
    from matplotlib.figure import Figure

    n_columns = max(len(row) for row in rows)
    width = 6.0 if n_columns == 1 else min(11.0, 3.7 * n_columns)
    figure = Figure(figsize=(width, 2.8 * len(rows) + 0.7), layout="constrained")
    axes = figure.subplots(len(rows), n_columns, squeeze=False)
    shown: dict[str, Any] = {}
    for line_of_axes, row, y_label in zip(axes, rows, y_labels, strict=True):
        for axis, panel in zip(line_of_axes, row, strict=False):
            _draw_bands(axis, panel, shown)
            axis.set_xlabel(x_label)
        for axis in line_of_axes[len(row) :]:
            axis.set_visible(False)
        line_of_axes[0].set_ylabel(y_label)
    n = 5 if n_columns > 1 else 3
    if n_columns == 2 and any(len(label) > 20 for label in shown):
        n = 4
    figure.legend(
        shown.values(),
        shown.keys(),
        loc="outside lower center",
        ncols=n,
        frameon=False,
        handlelength=3.2,
    )
    return figure


def _draw_bands(axis: Any, panel: BandPanel, shown: dict[str, Any]) -> None:
    last = 1.0
    for band in panel.bands:
        look = band.look
        x, mean = np.asarray(band.x, dtype=float), np.asarray(band.mean, dtype=float)
        last = max(last, float(x.max(initial=1.0)))
        (line,) = axis.plot(
            x, mean, color=look.colour, linestyle=look.line, marker=look.marker, markersize=3.5, markevery=2,
            linewidth=2.2 if look.heavy else 1.3, zorder=3 if look.heavy else 2,
        )  # fmt: skip
        axis.fill_between(x, band.low, band.high, color=look.colour, alpha=0.15, linewidth=0.0)
        shown.setdefault(band.label, line)
    if panel.first > 0.0:
        axis.set_xscale("log")
        steps = (step * 10.0**power for power in range(5) for step in (1, 2, 5))
        ticks = [tick for tick in steps if panel.first <= tick <= last]
    else:
        axis.set_xscale("symlog", linthresh=1.0, linscale=0.4)
        ticks = [tick for tick in (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0) if tick <= last]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlim(panel.first, max(last, 1.01 * panel.first))
    if panel.linear is not None:
        axis.set_yscale("symlog", linthresh=panel.linear, linscale=0.6)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    axis.set_ylim(panel.bottom, panel.top)
    axis.set_title(panel.title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)


def plot_gaps(
    gaps: Sequence[npt.NDArray[Any]],
    marks: Sequence[npt.NDArray[Any]],
    *,
    titles: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
) -> Any:
    """Tables of non-negative gaps side by side; darker cells have larger gaps, ``marks`` are bold."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    size = (1.6 + 0.5 * len(columns) * len(gaps), 1.6 + 0.25 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(gaps), squeeze=False)[0]
    scale = LogNorm(0.01, 10.0, clip=True)
    for axis, values, marked, title in zip(axes, gaps, marks, titles, strict=True):
        axis.imshow(np.maximum(values, 1e-3), cmap="YlOrBr", norm=scale, aspect="auto")
        for (i, k), value in np.ndenumerate(values):
            text = "-" if np.isnan(value) else f"{value:.2f}" if value < 9.995 else f"{value:.0f}"
            axis.text(
                k, i, text, ha="center", va="center", fontsize=6.5, color="white" if value > 2.5 else "black",
                fontweight="bold" if marked[i, k] else "normal",
            )  # fmt: skip
        axis.set_xticks(range(len(columns)), columns, rotation=60, ha="left", fontsize=8)
        axis.set_yticks(range(len(rows)), rows if axis is axes[0] else [""] * len(rows), fontsize=8)
        axis.xaxis.tick_top()
        axis.tick_params(length=0)
        axis.set_xlabel(title)
        axis.spines[:].set_visible(False)
    return figure


def plot_gains(panels: Sequence[Panel], *, x_label: str, y_label: str, bottom: float) -> Any:
    """Panels, three in a row, on a logarithmic x axis, each with its own legend; x = 1 is marked."""
    from matplotlib.figure import Figure

    n_rows = -(-len(panels) // 3)
    figure = Figure(figsize=(10.0, 2.7 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, 3, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        for number, curve in enumerate(panel.curves):  # a dashed and a solid curve per colour
            style, colour = ("--", "-")[number % 2], f"C{number // 2}"
            axis.plot(curve.x, curve.y, style, color=colour, label=curve.label, linewidth=1.4)
            if curve.mark is not None:
                axis.plot(*curve.mark, "o", color=colour, markersize=4)
        axis.axvline(1.0, color="0.6", linewidth=0.8, zorder=0)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_yscale("symlog", linthresh=0.1, linscale=0.6)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_ylim(bottom, 0.02)
        axis.set_title(panel.title, fontsize="medium")
        axis.legend(frameon=False, fontsize="x-small", loc="lower left")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[max(len(panels) - 3, 0) : len(panels)]:  # no panel is below these
        axis.tick_params(labelbottom=True)
    figure.supxlabel(x_label, fontsize="medium")
    figure.supylabel(y_label, fontsize="medium")
    return figure


def plot_patterns(patterns: npt.NDArray[Any], titles: Sequence[str]) -> Any:
    """Patterns of two values as rows of squares, the larger value dark."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 0.55 * len(patterns) + 0.2), layout="constrained")
    axes = figure.subplots(len(patterns), 1, squeeze=False)[:, 0]
    for axis, pattern, title in zip(axes, patterns, titles, strict=True):
        axis.pcolormesh(
            np.asarray(pattern, dtype=float)[None, :], cmap="binary", vmin=-1.4, vmax=1.4,
            edgecolors="0.5", linewidth=0.6,
        )  # fmt: skip
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_ylabel(title, rotation=0, ha="right", va="center")
        axis.spines[:].set_visible(False)
    return figure


def figure_as_svg(figure: Any, name: str) -> str:
    """The figure as SVG for a page: black becomes the page's text colour, the background is transparent.

    ``name`` makes the identifiers inside it the same in every run, and different from those of other figures.
    """
    import matplotlib

    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = drawn.getvalue()
    text = text[text.index("<svg") :]
    for black in ("#000000", "black"):
        text = text.replace(f"stroke: {black}", "stroke: currentColor")
        text = text.replace(f"fill: {black}", "fill: currentColor")
    return re.sub(r' d="[^"]*"', lambda path: _rounded_path(path[0]), text)


def _rounded_path(path: str) -> str:
    """A path with coordinates rounded to a hundredth of a point, which is invisible and saves bytes."""
    path = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path)
    return re.sub(r"\s+", " ", path)
