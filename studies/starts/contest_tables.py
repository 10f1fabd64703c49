"""The study of starts as tables: who is best where, what the start gave and what learning, and how fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from paramagnet.sweeps.groups import BETA_MAX, Start
from paramagnet.sweeps.results_table import Column, make_table, to_sheet
from paramagnet.sweeps.sheet import Line, Lines, Sheet, plain_sheet
from paramagnet.sweeps.starts import DATA, OURS, OWN
from studies.starts.contest import (
    DATASET_FREE,
    RULES,
    SHARE,
    Contest,
    Epoch,
    Gap,
    Placing,
    learnable,
    level_of_beta_max,
    level_of_share,
    place,
    time_to,
)

FIELDS = {"log_likelihood": "training", "held_out": "held-out"}


@dataclass(frozen=True)
class Measure:
    """What is compared: a field of the records, after the last epoch or after each start's own best one."""

    key: str
    title: str
    field: str
    stopped: bool = False

    def epoch(self, contest: Contest) -> Epoch:
        """Where it is taken."""
        return None if self.stopped else contest.epochs[-1]

    def place(self, contest: Contest, rules: Sequence[Start] = RULES) -> dict[Start, Placing]:
        """Where each rule stands."""
        return place(contest, rules, self.epoch(contest), self.field)


TRAINING = Measure("training", "training points, last epoch", "log_likelihood")
HELD_OUT = Measure("held_out", "held-out points, last epoch", "held_out")
STOPPED = Measure("stopped", "held-out points, own best epoch", "held_out", stopped=True)
MEASURES = (TRAINING, HELD_OUT, STOPPED)


def main_contests(contests: Iterable[Contest]) -> list[Contest]:
    """Those that count: every rule has runs, and the learning rate is the paper's."""
    return [contest for contest in contests if contest.complete and not contest.is_about_rates]


def by_dataset(contests: Iterable[Contest]) -> dict[str, list[Contest]]:
    """Contests by data set."""
    found: dict[str, list[Contest]] = {}
    for contest in contests:
        found.setdefault(contest.setting.dataset, []).append(contest)
    return found


def runs_sheet(contests: Sequence[Contest]) -> Sheet:
    """What the study rests on."""
    rows = []
    for name in dict.fromkeys(contest.spec.name for contest in contests):
        part = [contest for contest in contests if contest.spec.name == name]
        records = [run for contest in part for runs in contest.runs.values() for run in runs]
        fewest = min(contest.n_trials[0] for contest in part)
        most = max(contest.n_trials[1] for contest in part)
        rows.append(
            (
                name,
                "; ".join(contest.setting.label for contest in part),
                f"{part[0].spec.learning.learning_rate:g}",
                part[0].spec.measurement.log_partition,
                f"{fewest}" if fewest == most else f"{fewest} to {most}",
                f"{len(records)}",
                f"{sum(record.seconds for record in records) / 3600.0:.2f}",
                f"{sum(contest.complete for contest in part)} of {len(part)}",
            )
        )
    heading = ("specification", "settings", "rate", "ln Z", "trials", "runs", "core-hours", "complete")
    note = (
        "Complete: settings with runs of every rule, the only ones that count below. Core-hours are those "
        "of the runs, the ones shared with the paper's tables included."
    )
    return plain_sheet("runs", "What the study rests on", heading, rows, (note,))


def count_sheet(contests: Sequence[Contest], rules: Sequence[Start] = RULES) -> Sheet:
    """How often each rule is best among some, or within one standard error of the best."""
    chosen = main_contests(contests)
    placings = [[measure.place(contest, rules) for contest in chosen] for measure in MEASURES]
    rows = []
    for rule in rules:
        cells: list[Lines] = []
        for found in placings:
            cells += _count_cells([placing[rule] for placing in found if rule in placing])
        rows.append((rule.label, tuple(cells)))
    notes = (
        f"{len(chosen)} settings with runs of every rule. Best: the largest mean. Within one error: the "
        "best, or behind it by at most one standard error of the paired difference; bold if in all of them.",
        "Furthest behind: the largest gap to the best in any setting, nats per point.",
        "Own best epoch: held-out points, where the mean held-out curve of that start is highest.",
    )
    key, among = ("counts", "") if rules == RULES else ("counts_without_data", " among those without data")
    columns = ("best", "within one error", "furthest behind") * len(MEASURES)
    groups = tuple((measure.title, 3) for measure in MEASURES)
    return Sheet(key, f"How often a rule wins{among}", "rule", columns, tuple(rows), groups, notes)


def _count_cells(placings: Sequence[Placing]) -> list[Lines]:
    best, wins = sum(p.is_best for p in placings), sum(p.wins for p in placings)
    worst = max((abs(p.gap.value) for p in placings), default=0.0)  # none is ahead of the best
    whole = bool(placings) and wins == len(placings)
    return [(Line(f"{best}"),), (Line(f"{wins}", bold=whole),), (Line(f"{worst:.2f}"),)]


def loss_sheet(contests: Sequence[Contest]) -> Sheet:
    """How far rules are behind the best, in percent of what can be learned: one number for all data sets."""
    chosen = main_contests(contests)
    parts = [
        (f"all {len(chosen)} settings, {measure.title}", chosen, measure) for measure in (TRAINING, STOPPED)
    ]
    parts += [(f"{name}, training", part, TRAINING) for name, part in by_dataset(chosen).items()]
    losses = [[losses_of(contest, measure) for contest in part] for _, part, measure in parts]
    rows = []
    for rule in RULES:
        cells: list[Lines] = []
        for found in losses:
            values = [loss[rule] for loss in found if rule in loss]
            mean = sum(values) / len(values) if values else math.nan
            cells += [(Line(f"{mean:.1f}"),), (Line(f"{max(values, default=math.nan):.1f}"),)]
        rows.append((rule.label, tuple(cells)))
    groups = tuple((title, 2) for title, _, _ in parts)
    notes = (
        "Percent of the way from independent units with the data's means to the best end of any rule, mean "
        "and worst over settings; 0 is the best rule everywhere.",
    )
    return Sheet(
        "losses", "What a rule costs", "rule", ("mean", "worst") * len(parts), tuple(rows), groups, notes
    )


def losses_of(contest: Contest, measure: Measure) -> dict[Start, float]:
    """How far every rule is behind the best, in percent of what can be learned."""
    whole = learnable(contest, measure.epoch(contest), measure.field)
    return {rule: 100.0 * abs(found.gap.value) / whole for rule, found in measure.place(contest).items()}


def gap_sheet(contests: Sequence[Contest], measure: Measure = TRAINING) -> Sheet:
    """Setting by setting: the best rule, how far ours are behind it, and what the grid of gains could win."""
    ours = (BETA_MAX, Start(OURS + DATA), Start(OURS + OWN))
    rows = []
    for contest in main_contests(contests):
        epoch, field = measure.epoch(contest), measure.field
        placings = measure.place(contest)
        free = contest.best(DATASET_FREE, epoch, field)
        best_gain = contest.best(contest.gains, epoch, field)
        if not placings or best_gain is None or free is None:
            continue
        rows.append(
            (
                contest.label,
                f"{contest.n_trials[0]}",
                placings[BETA_MAX].best.label,
                free.label,
                *(gap_text(placings[rule].gap) for rule in ours),
                f"{best_gain.label}: {gap_text(contest.gap(best_gain, BETA_MAX, epoch, field))}",
                f"{len(contest.gains)}",
            )
        )
    heading = (
        "setting", "trials", "best rule", "best without data",
        *(f"{rule.label}, to the best" for rule in ours), "best gain of the grid, to β_max", "gains run",
    )  # fmt: skip
    notes = ("Nats per point; in parentheses the standard error of the difference.",)
    return plain_sheet(f"gaps_{measure.key}", f"Setting by setting, {measure.title}", heading, rows, notes)


def gap_text(gap: Gap) -> str:
    """A difference with its error, if it has one."""
    return f"{gap.value:+.3f} ({gap.error:.3f})" if gap.error else f"{gap.value:+.3f}"


def growth_sheet(contests: Sequence[Contest]) -> Sheet:
    """The lead over beta_max in the end, split into the lead at the start and what learning added."""

    def split(contest: Contest, rule: Start) -> tuple[float, ...]:
        start = contest.gap(rule, BETA_MAX, 0).value
        end = contest.gap(rule, BETA_MAX, contest.epochs[-1]).value
        return start, end - start, end

    def show(values: Sequence[float]) -> Lines:
        return (Line(f"{sum(values) / len(values):+.2f}"),)

    notes = (
        "Training points, nats per point, difference to the paper's start, mean over the settings of a data "
        "set. At the start plus by learning is in the end.",
    )
    columns = ("at the start", "by learning", "in the end")
    return _dataset_sheet(
        "growth", "Start and growth, relative to β_max", contests, columns, split, show, notes
    )


def time_sheet(contests: Sequence[Contest]) -> Sheet:
    """Epochs until the mean curve reaches two levels: a median over settings."""

    def times(contest: Contest, rule: Start) -> tuple[float, ...]:
        return tuple(
            time_to(contest, rule, level) for level in (level_of_beta_max(contest), level_of_share(contest))
        )

    def show(values: Sequence[float]) -> Lines:
        middle, missed = median(values), sum(map(math.isinf, values))
        text = Line(f"{middle:.0f}" if math.isfinite(middle) else "-")
        return (text, Line(f"{missed} of {len(values)} not", quiet=True)) if missed else (text,)

    notes = (
        "Epochs, interpolated on the mean training curve; median over the settings of a data set. A: until "
        f"the level that β_max has in the end. B: until {SHARE:g} of the way from independent units with the "
        "data's means to the best end of any rule. Not: settings in which the level was not reached.",
    )
    return _dataset_sheet("times", "Time to a level", contests, ("A", "B"), times, show, notes)


def _dataset_sheet(
    key: str,
    title: str,
    contests: Sequence[Contest],
    columns: tuple[str, ...],
    measure: Callable[[Contest, Start], tuple[float, ...]],
    show: Callable[[Sequence[float]], Lines],
    notes: tuple[str, ...],
) -> Sheet:
    """Rules against data sets, each with some columns that sum up its settings."""
    sets = by_dataset(main_contests(contests))
    counts = {name: f"{len(part)} setting" + "s" * (len(part) > 1) for name, part in sets.items()}
    groups = tuple((f"{name}, {count}", len(columns)) for name, count in counts.items())
    rows = []
    for rule in RULES:
        cells: list[Lines] = []
        for part in sets.values():
            measured = [measure(contest, rule) for contest in part]
            cells += [show(values) for values in zip(*measured, strict=True)]
        rows.append((rule.label, tuple(cells)))
    return Sheet(key, title, "rule", columns * len(sets), tuple(rows), groups, notes)


def rate_sheet(contests: Sequence[Contest]) -> Sheet:
    """The gap to the best rule with larger learning rates, in the settings that were repeated."""
    repeated = [contest for contest in contests if contest.is_about_rates]
    settings = {contest.setting for contest in repeated if contest.complete}
    shown = sorted(
        (contest for contest in contests if contest.setting in settings and contest.complete),
        key=lambda c: (c.setting.dataset, -c.setting.c, c.spec.learning.learning_rate),
    )
    placings = [place(contest, RULES, contest.epochs[-1]) for contest in shown]
    rows = [
        (
            rule.label,
            tuple((Line(gap_text(found[rule].gap), bold=found[rule].wins),) for found in placings),
        )
        for rule in RULES
    ]
    columns = tuple(
        f"{c.setting.dataset}, c = {c.setting.c:g}, rate {c.spec.learning.learning_rate:g}" for c in shown
    )
    fewest = min((contest.n_trials[0] for contest in shown), default=0)
    notes = (
        f"Training points, nats per point after the last epoch, at least {fewest} trials; in parentheses the "
        "standard error of the difference. Bold: the best, and what is within one standard error of it.",
    )
    return Sheet(
        "rates", "Gap to the best rule with larger learning rates", "rule", columns, tuple(rows), (), notes
    )


def all_sheets(contests: Sequence[Contest]) -> list[Sheet]:
    """Every start at every epoch, training and held-out points, a table for each specification."""
    sheets = []
    for name in dict.fromkeys(contest.spec.name for contest in contests):
        part = [contest for contest in contests if contest.spec.name == name]
        runs = {contest.setting: contest.runs for contest in part}
        columns = [Column(contest.setting, epoch) for contest in part for epoch in contest.epochs]
        found = {start for contest in part for start in contest.runs}
        grid = sorted(start for start in found if start.scheme == OURS)
        rows = grid + [rule for rule in RULES if rule in found and rule.scheme != OURS]
        for field, words in FIELDS.items():
            title = f"{name}: {words} log-likelihood"
            sheets.append(to_sheet(make_table(f"{name}_{field}", title, runs, rows, columns, field=field)))
    return sheets
