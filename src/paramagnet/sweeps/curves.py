"""Learning curves from records, prepared for `plots`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paramagnet.plots import Band, BandPanel, Look, plot_bands
from paramagnet.sweeps.groups import (
    BETA_MAX,
    Runs,
    Setting,
    Start,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.store import RunRecord

Starts = Mapping[Start, Sequence[RunRecord]]

# Okabe and Ito's colours. Gains are solid lines, blue below beta_max, orange above; other schemes are broken.
_LOOKS = {
    Start(gain=0.25): Look("#56b4e9", "-", "o"),
    Start(gain=0.5): Look("#0072b2", "-", "s"),
    BETA_MAX: Look("#000000", "-", "", heavy=True),
    Start(gain=2.0): Look("#e69f00", "-", "^"),
    Start(gain=4.0): Look("#d55e00", "-", "v"),
    Start("xavier"): Look("#009e73", "--", "x"),
    Start("he"): Look("#cc79a7", "-.", "+"),
    Start("lecun"): Look("#808080", ":", "D"),
    Start("hinton"): Look("#a6761d", "--", ""),
    Start("layer-correlation+data"): Look("#000000", "--", "", heavy=True),
    Start("layer-correlation+data-own"): Look("#cc3377", "--", "*"),
    Start("layer-correlation+data", 0.5): Look("#0072b2", "--", "s"),
    Start("layer-correlation+data", 0.7071): Look("#56b4e9", "--", "o"),
    Start("hinton+data"): Look("#a6761d", ":", "x"),
    Start("hopfield"): Look("#117733", "-", "D"),
}

_OTHER = Look("#8a6fd1", ":", ".")

_FROM = 0.1  # differences are drawn from this share of the epochs on, where they matter

_LATE = 0.25  # and the frame is chosen for those after this share


def draw_learning_curves(
    runs: Runs, settings: Sequence[Setting], *, field: str = "log_likelihood", name_data: bool = False
) -> Any:
    """For each setting the log-likelihood of every start (above), and its difference to beta_max (below).

    Bands are one standard deviation over trials above, two standard errors of the paired difference below.
    ``name_data`` puts the data set in the titles.
    """
    above = [_curves(setting, runs[setting], field) for setting in settings]
    if name_data:
        titles = (f"{s.dataset}, {panel.title}" for s, panel in zip(settings, above, strict=True))
        above = [replace(panel, title=title) for panel, title in zip(above, titles, strict=True)]
    below = [_differences(runs[setting], field) for setting in settings]
    labels = ("log-likelihood\n(nats per point)", "log-likelihood minus\nthat of $\\beta_{max}$")
    if not any(panel.bands for panel in below):
        return plot_bands((above,), y_labels=labels[:1])
    return plot_bands((above, below), y_labels=labels)


def start_label(start: Start) -> str:
    """The name of a start as matplotlib writes it."""
    return start.label.replace("β_max", r"$\beta_{max}$")


def epochs_of(records: Sequence[RunRecord]) -> set[int]:
    """All epochs at which some of the runs were measured."""
    return {epoch for record in records for epoch in record.epochs}


def in_order(starts: Starts) -> list[Start]:
    """The starts in drawing order: gains, then other schemes; later ones are drawn over earlier ones."""
    known = [start for start in _LOOKS if start in starts]
    return known + sorted(starts.keys() - set(known))


def _curves(setting: Setting, starts: Starts, field: str) -> BandPanel:
    bands, top = [], -math.inf
    for start in in_order(starts):
        epochs = sorted(epochs_of(starts[start]))
        summaries = [summarize_trials(values_at(starts[start], epoch, field).values()) for epoch in epochs]
        mean = np.array([summary.mean for summary in summaries])
        half = np.array([summary.std if summary.n_finite > 1 else 0.0 for summary in summaries])
        top = max(top, float(np.max(mean + half, initial=-math.inf, where=np.isfinite(mean))))
        look = _LOOKS.get(start, _OTHER)
        bands.append(Band(epochs, mean, mean - half, mean + half, start_label(start), look))
    top = top if math.isfinite(top) else 0.0
    bottom = min(-1.05 * setting.n_visible * math.log(2.0), top - 1.0)  # a little below independent units
    return BandPanel(setting.label.replace("-", "−"), bands, bottom, top + 0.04 * (top - bottom))


def _differences(starts: Starts, field: str) -> BandPanel:
    reference = starts.get(BETA_MAX, ())
    last = max(epochs_of(reference), default=0)
    bands, late = [], [0.0]
    for start in in_order(starts) if len(starts) > 1 and reference else ():
        epochs = sorted(
            e for e in epochs_of(starts[start]) & epochs_of(reference) if e >= max(_FROM * last, 1)
        )
        band = paired_band(starts[start], reference, epochs, field, start_label(start), start)
        bands.append(band)
        chosen = np.asarray(epochs) >= _LATE * last
        late += [value for value in np.asarray(band.mean)[chosen] if math.isfinite(value)]
    top = max(late)
    bottom = min(0.0, float(np.quantile(late, 0.25)))
    room = 0.2 * max(top - bottom, 1e-3)
    return BandPanel("", bands, bottom - room, top + room, max(_FROM * last, 1))


def paired_band(
    first: Sequence[RunRecord],
    second: Sequence[RunRecord],
    epochs: Sequence[int],
    field: str,
    label: str,
    start: Start,
) -> Band:
    """The first minus the second, trial by trial, with two standard errors."""
    pairs = [
        paired_difference(values_at(first, epoch, field), values_at(second, epoch, field)) for epoch in epochs
    ]
    mean = np.array([pair.mean for pair in pairs])
    half = np.array([2.0 * pair.error if pair.n_finite > 1 else 0.0 for pair in pairs])
    return Band(epochs, mean, mean - half, mean + half, label, _LOOKS.get(start, _OTHER))
