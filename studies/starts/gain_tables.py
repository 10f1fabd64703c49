"""The study of starts: what a factor on the theory's scale wins or costs, and for which hidden units."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paramagnet.sweeps.groups import BETA_MAX, Start
from paramagnet.sweeps.sheet import Line, Lines, Sheet, plain_sheet
from paramagnet.sweeps.starts import DATA, OURS
from studies.starts.contest import HALF, ROOT, Contest, learnable, place
from studies.starts.contest_tables import STOPPED, TRAINING, Measure, gap_text, losses_of, main_contests

Rule = Callable[[Contest], Start]
GROUPS: dict[str, Callable[[Contest], bool]] = {
    "spins": lambda contest: contest.setting.hidden == "spin",
    "bits, c = 0": lambda contest: contest.setting.hidden == "bit" and contest.setting.c == 0.0,
    "sparse bits, c < 0": lambda contest: contest.setting.hidden == "bit" and contest.setting.c < 0.0,
}


def gain_sheet(contests: Sequence[Contest]) -> Sheet:
    """The best gain of the grid at every epoch: does it grow while learning goes on?"""
    rows = []
    for contest in main_contests(contests):
        cells = []
        for epoch in contest.epochs:
            found = place(contest, contest.gains, epoch)
            tied = [start.gain for start, placing in found.items() if placing.wins]
            best = next((f"{placing.best.gain:.2g}" for placing in found.values()), "-")
            span = f" ({min(tied):.2g} to {max(tied):.2g})" if len(tied) > 1 else ""
            cells.append(f"{epoch}: {best}{span}")
        rows.append((contest.label, f"{len(contest.gains)}", *cells, *[""] * (3 - len(cells))))
    heading = ("setting", "gains run", "first epoch", "second", "last")
    notes = ("Epoch: the best gain; in parentheses the range within one standard error of it, if wider.",)
    return plain_sheet("gains", "The best gain of the grid, training points", heading, rows, notes)


def gain_cost_sheet(contests: Sequence[Contest]) -> Sheet:
    """What a gain costs beside the best of the nine, by the kind of hidden units."""
    chosen = [contest for contest in main_contests(contests) if len(contest.gains) == len(contest.spec.gains)]
    parts = {name: [c for c in chosen if belongs(c)] for name, belongs in GROUPS.items()}
    parts = {name: part for name, part in parts.items() if part}
    gains = sorted({start for contest in chosen for start in contest.gains}, key=lambda start: start.gain)
    rows = []
    for gain in gains:
        cells: list[Lines] = []
        for part in parts.values():
            found = [place(c, c.gains, c.epochs[-1])[gain] for c in part if gain in c.gains]
            losses = [100.0 * abs(f.gap.value) / learnable(f.contest, f.contest.epochs[-1]) for f in found]
            wins = sum(placing.wins for placing in found)
            cells += [
                (Line(f"{wins}", bold=wins == len(found)),),
                (Line(f"{sum(losses) / len(losses):.1f}"),),
                (Line(f"{max(abs(placing.gap.value) for placing in found):.2f}"),),
            ]
        rows.append((gain.label, tuple(cells)))
    notes = (
        "Training points, last epoch, zero visible biases. Within one error: settings in which the gain is "
        "the best of the nine, or within one standard error of it; bold if in all. Mean: percent of what can "
        "be learned, behind the best of the nine. Furthest behind: nats per point.",
    )
    groups = tuple((f"{name}, {len(part)} settings", 3) for name, part in parts.items())
    columns = ("within one error", "mean, %", "furthest behind") * len(parts)
    return Sheet("gain_costs", "What a gain costs", "gain", columns, tuple(rows), groups, notes)


def sparse_sheet(contests: Sequence[Contest]) -> Sheet:
    """Sparse hidden units, setting by setting, those that the study has beside its own among them."""
    rows = []
    for contest in contests:
        if not GROUPS["sparse bits, c < 0"](contest) or contest.is_about_rates or ROOT not in contest.gains:
            continue
        found = place(contest, contest.gains, contest.epochs[-1])
        tied = [start.gain for start, placing in found.items() if placing.wins]
        rows.append(
            (
                contest.label + ("" if contest.complete else ", later"),
                f"{len(contest.runs[BETA_MAX])}",
                found[BETA_MAX].best.label,
                f"{min(tied):.2g}" + (f" to {max(tied):.2g}" if len(tied) > 1 else ""),
                *(gap_text(found[start].gap) if start in found else "" for start in (HALF, ROOT, BETA_MAX)),
            )
        )
    heading = (
        "setting",
        "trials",
        "best gain",
        "within one error",
        *(s.label for s in (HALF, ROOT, BETA_MAX)),
    )
    notes = (
        "Training points, last epoch; the last three columns are the gap to the best gain in nats per point, "
        "with its standard error. Later: planned after the others were known.",
    )
    return plain_sheet("sparse", "Gains with sparse hidden units", heading, rows, notes)


def follow_bias(name: str) -> Rule:
    """The paper's scale without hidden bias, beta_max/sqrt(2) with a negative one."""
    return lambda contest: Start(name, ROOT.gain if contest.setting.c < 0.0 else 1.0)


def always(start: Start) -> Rule:
    """The same start everywhere."""
    return lambda contest: start


def composed_sheet(contests: Sequence[Contest]) -> Sheet:
    """A scale that follows the hidden bias, against those that do not; gaps to the best of all rules."""
    chosen = main_contests(contests)
    rules: dict[str, Rule] = {}
    for name in (OURS, OURS + DATA):
        for gain in (1.0, ROOT.gain, 0.5):
            rules[Start(name, gain).label] = always(Start(name, gain))
        rules[f"{Start(name).label}, β_max/√2 where c < 0"] = follow_bias(name)
    rows = []
    for label, rule in rules.items():
        cells: list[Lines] = []
        for measure in (TRAINING, STOPPED):
            cells += _composed_cells(chosen, rule, measure)
        rows.append((label, tuple(cells)))
    notes = (
        f"{len(chosen)} settings. Against the best of all rules in each: within one standard error; mean and "
        "worst loss in percent of what can be learned; the largest gap in nats per point.",
    )
    columns = ("within one error", "mean, %", "worst, %", "furthest behind") * 2
    groups = tuple((measure.title, 4) for measure in (TRAINING, STOPPED))
    return Sheet("composed", "A scale that follows the bias", "rule", columns, tuple(rows), groups, notes)


def _composed_cells(contests: Sequence[Contest], rule: Rule, measure: Measure) -> list[Lines]:
    placings = [measure.place(contest)[rule(contest)] for contest in contests]
    losses = [losses_of(contest, measure)[rule(contest)] for contest in contests]
    wins = sum(placing.wins for placing in placings)
    numbers = (sum(losses) / max(len(losses), 1), max(losses, default=0.0))
    furthest = max((abs(placing.gap.value) for placing in placings), default=0.0)
    return [
        (Line(f"{wins}"),),
        *((Line(f"{number:.1f}"),) for number in numbers),
        (Line(f"{furthest:.2f}"),),
    ]
