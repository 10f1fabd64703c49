"""Figures of sequences: logos of letters, and maps of contacts. Matplotlib is imported inside the functions.

A logo draws letters as tall as their numbers, stacked at each site: positive ones above the axis, the largest
on top; negative ones below it, the largest at the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_NUCLEOTIDES = {"A": "#1a8a2d", "C": "#1f4fbf", "G": "#d98200", "T": "#c22020", "U": "#c22020"}
_AMINO_ACIDS = {
    "#c22020": "DE",  # acids
    "#1f4fbf": "KRH",  # bases
    "#1a8a2d": "STNQ",  # polar
    "#8a3fa0": "GP",  # neither
    "#b8860b": "C",
    "#008b8b": "FWY",  # aromatic
    "#202020": "AVLIM",  # apolar
}
_OTHER = "#7a7a7a"
_LEAST = 0.004  # of the height of a panel: smaller letters are left out
_INCHES = 0.24  # of a site
_MOST_INCHES = 24.0
_TICKS = 40  # most sites that all have their number


def colours_of(alphabet: str) -> list[str]:
    """A colour for each letter: of nucleotides their own, of amino acids that of their kind."""
    if set(alphabet) - set("-ACGTU"):
        kinds = {letter: colour for colour, letters in _AMINO_ACIDS.items() for letter in letters}
        return [kinds.get(letter, _OTHER) for letter in alphabet]
    return [_NUCLEOTIDES.get(letter, _OTHER) for letter in alphabet]


def plot_logos(
    heights: npt.ArrayLike,
    alphabet: str,
    *,
    sites: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    y_label: str = "weight",
) -> Any:
    """Logos below each other.

    Parameters
    ----------
    heights : array_like
        Heights of the letters, ``(n_logos, n_sites, n_letters)``; one logo may lack the first axis. The
        weights of hidden unit ``j`` are ``rbm.weights_by_state[:, :, j]``.
    alphabet : str
        The letters.
    sites : sequence of str, optional
        Names of the sites; None counts them from 1.
    titles : sequence of str, optional
        A title for each logo.
    y_label : str, default "weight"
        What the heights are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    from matplotlib.figure import Figure

    logos = np.asarray(heights, dtype=np.float64)
    logos = logos[None] if logos.ndim == 2 else logos
    if logos.ndim != 3 or not logos.size or logos.shape[2] != len(alphabet) or not np.isfinite(logos).all():
        raise ValueError(
            f"`heights` must be finite, of shape (n_logos, n_sites, {len(alphabet)}), a number for each "
            f"letter of {alphabet}, got shape {logos.shape}."
        )
    n_logos, n_sites, _ = logos.shape
    names = [str(i + 1) for i in range(n_sites)] if sites is None else [str(name) for name in sites]
    if len(names) != n_sites or (titles is not None and len(titles) != n_logos):
        raise ValueError(
            f"`sites` and `titles` must have a text for each of {n_sites} sites and {n_logos} logos, or be "
            "None."
        )
    width = min(_MOST_INCHES, max(3.6, _INCHES * n_sites + 0.9))
    figure = Figure(figsize=(width, 1.9 * n_logos + 0.4), layout="constrained")
    axes = figure.subplots(n_logos, 1, squeeze=False)[:, 0]
    for number, (axis, logo) in enumerate(zip(axes, logos, strict=True)):
        _draw_logo(axis, logo, alphabet)
        step = -(-n_sites // _TICKS)
        axis.set_xticks(
            range(0, n_sites, step), names[::step], fontsize=7, rotation=90 if n_sites > 12 else 0
        )
        axis.set_ylabel(y_label, fontsize="small")
        axis.spines[["top", "right", "bottom"]].set_visible(False)
        axis.tick_params(axis="x", length=0)
        if titles is not None:
            axis.set_title(titles[number], fontsize="medium", loc="left")
    axes[-1].set_xlabel("site", fontsize="small")
    return figure


def _draw_logo(axis: Any, logo: npt.NDArray[np.float64], alphabet: str) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    top = max(float(np.maximum(logo, 0.0).sum(axis=1).max()), 1e-12)
    bottom = float(np.minimum(logo, 0.0).sum(axis=1).min())
    font, colours = FontProperties(family="DejaVu Sans", weight="bold"), colours_of(alphabet)
    shapes = [_unit_shape(TextPath((0.0, 0.0), letter, size=1.0, prop=font)) for letter in alphabet]
    paths, faces = [], []
    for site, heights in enumerate(logo):
        for sign in (1.0, -1.0):
            level = 0.0
            places = [k for k in np.argsort(sign * heights) if sign * heights[k] > 0.0]
            for k in places:
                height = float(abs(heights[k]))
                low = level if sign > 0.0 else -level - height
                level += height
                if height > _LEAST * (top - bottom):
                    corner = np.array([site - 0.46, low])
                    paths.append(Path(shapes[k].vertices * [0.92, height] + corner, shapes[k].codes))
                    faces.append(colours[k])
    # Each letter is given in the coordinates of the data, without offsets.
    axis.add_collection(PathCollection(paths, facecolors=faces, linewidths=0.0, transform=axis.transData))
    axis.set_xlim(-0.6, len(logo) - 0.4)
    axis.set_ylim(1.05 * bottom, 1.05 * top)
    axis.axhline(0.0, color="0.4", linewidth=0.6, zorder=0)


def _unit_shape(path: Any) -> Any:
    """A letter's outline that fills the unit square; thin ones, such as I and the gap, keep their width."""
    from matplotlib.path import Path

    vertices = np.asarray(path.vertices, dtype=np.float64)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    scaled = (vertices - low) / size
    if size[0] < 0.45:  # of the font's size
        scaled[:, 0] = 0.5 + (scaled[:, 0] - 0.5) * size[0] / 0.7
    return Path(scaled, path.codes)


def plot_frequencies(
    frequencies: npt.ArrayLike, alphabet: str, *, sites: Sequence[str] | None = None, title: str | None = None
) -> Any:
    """A logo of frequencies: at each site the letters share the information ``ln q + sum_a f_a ln f_a``.

    Parameters
    ----------
    frequencies : array_like
        Frequencies, ``(n_sites, n_letters)``, as `paramagnet.data.site_frequencies` returns them.
    alphabet : str
        The letters.
    sites : sequence of str, optional
        Names of the sites; None counts them from 1.
    title : str, optional
        A title.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    shares = np.asarray(frequencies, dtype=np.float64)
    if shares.ndim != 2 or not shares.size or not (shares >= 0.0).all():
        raise ValueError(
            "`frequencies` must be of shape (n_sites, n_letters), zero or positive, got shape "
            f"{shares.shape}."
        )
    logs = np.log(np.where(shares > 0.0, shares, 1.0))
    information = np.log(shares.shape[1]) + (shares * logs).sum(axis=1, keepdims=True)
    titles = None if title is None else (title,)
    return plot_logos(information * shares, alphabet, sites=sites, titles=titles, y_label="nats")


def plot_contacts(
    strengths: npt.ArrayLike,
    pairs: Sequence[tuple[int, int]] = (),
    *,
    sites: Sequence[str] | None = None,
    label: str = "coupling (APC)",
) -> Any:
    """A map of the strengths of couplings between sites, with pairs of them marked by rings.

    Parameters
    ----------
    strengths : array_like
        Symmetric, ``(n_sites, n_sites)``; the diagonal is not drawn.
    pairs : sequence of pairs, optional
        Pairs of sites to mark, counted from 0, for example ``[(c.i, c.j) for c in contacts]``.
    sites : sequence of str, optional
        Names of the sites; None counts them from 1.
    label : str, default "coupling (APC)"
        What the strengths are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    from matplotlib.figure import Figure

    values = np.array(strengths, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ValueError(f"`strengths` must be of shape (n_sites, n_sites), got shape {values.shape}.")
    n_sites = len(values)
    names = [str(i + 1) for i in range(n_sites)] if sites is None else [str(name) for name in sites]
    if len(names) != n_sites:
        raise ValueError(f"`sites` must have a text for each of {n_sites} sites, got {len(names)}.")
    np.fill_diagonal(values, np.nan)
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axis = figure.subplots()
    drawn = axis.imshow(values, cmap="Blues", vmin=0.0, interpolation="nearest", origin="lower")
    figure.colorbar(drawn, ax=axis, shrink=0.85, label=label)
    for i, j in pairs:
        axis.plot([i, j], [j, i], "o", markersize=max(3.0, 150.0 / n_sites), markerfacecolor="none",
                  markeredgecolor="#c22020", markeredgewidth=1.1, linestyle="none")  # fmt: skip
    step = -(-n_sites // _TICKS)
    axis.set_xticks(range(0, n_sites, step), names[::step], fontsize=6, rotation=90)
    axis.set_yticks(range(0, n_sites, step), names[::step], fontsize=6)
    axis.set(xlabel="site", ylabel="site")
    return figure
