"""The study of starts as figures: gaps to the best, the grid of gains, learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paramagnet.plots import Curve, Panel, plot_gains, plot_gaps
from paramagnet.sweeps.curves import draw_learning_curves
from paramagnet.sweeps.groups import BETA_MAX
from paramagnet.sweeps.starts import OURS
from studies.starts.contest import RULES, Contest
from studies.starts.contest_tables import STOPPED, TRAINING, main_contests

_BOTTOM = -5.0  # of the figure of gains
_MOST_PANELS = 5


def draw_gaps(contests: Sequence[Contest]) -> Any:
    """How far every rule is behind the best in every setting: training points in the end, held-out points
    at each rule's best epoch.
    """
    chosen = main_contests(contests)
    gaps, marks = [], []
    shown = (TRAINING, STOPPED)
    for measure in shown:
        values = np.full((len(chosen), len(RULES)), math.nan)
        wins = np.zeros(values.shape, dtype=bool)
        for i, contest in enumerate(chosen):
            for rule, placing in measure.place(contest).items():
                k = RULES.index(rule)
                values[i, k], wins[i, k] = max(0.0, -placing.gap.value), placing.wins
        gaps.append(values)
        marks.append(wins)
    titles = [measure.title for measure in shown]
    columns = [_math(rule.label) for rule in RULES]
    rows = [contest.label.replace("-", "−") for contest in chosen]
    return plot_gaps(gaps, marks, titles=titles, rows=rows, columns=columns)


def draw_gain_grid(contests: Sequence[Contest]) -> Any:
    """Training log-likelihood against the gain, minus the best of the grid, at the first and last epoch."""
    groups: dict[tuple[str, str, float], list[Contest]] = {}
    for contest in main_contests(contests):
        setting = contest.setting
        groups.setdefault((setting.dataset, setting.hidden, setting.c), []).append(contest)
    panels = []
    for (dataset, hidden, c), part in groups.items():
        curves = []
        for contest in part:
            for epoch in (contest.epochs[0], contest.epochs[-1]):
                x = np.array([start.gain for start in contest.gains])
                y = np.array([contest.mean(start, epoch) for start in contest.gains])
                y -= np.nanmax(y)
                label = f"α = {contest.setting.alpha:.3g}, epoch {epoch}"
                curves.append(Curve(x, y, label, (float(x[int(np.nanargmax(y))]), 0.0)))
        title = f"{dataset}, {hidden}" + (f", c = {c:g}" if hidden == "bit" else "")
        panels.append(Panel(title.replace("-", "−"), curves))
    return plot_gains(
        panels,
        x_label=r"gain, $\beta/\beta_{max}$",
        y_label="training log-likelihood minus the best of the grid (nats per point)",
        bottom=_BOTTOM,
    )


def draw_curves(contests: Sequence[Contest]) -> Any:
    """Learning curves of the rules, in settings of one learning rate."""
    chosen = list(contests)[:_MOST_PANELS]
    runs = {
        contest.setting: {
            start: records
            for start, records in contest.runs.items()
            if start in RULES and (start.scheme != OURS or start == BETA_MAX)
        }
        for contest in chosen
    }
    return draw_learning_curves(runs, list(runs), name_data=True)


def _math(label: str) -> str:
    return label.replace("β_max", r"$\beta_{max}$")
