"""Parts of docs/differences.md that are made from the records; `document_tables` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from paramagnet.reproduction.agreement import Comparison, Verdict
from paramagnet.reproduction.paper import PaperLogLikelihood, misprint_of
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.reproduction.report import components_of
from paramagnet.sweeps.groups import TrialSummary, summarize_trials, values_at
from paramagnet.sweeps.text_tables import escape_markdown
from reproduction_facts import Facts, between, listed, trials_of


def draw_rows(facts: Facts) -> tuple[list[str], list[list[str]]]:
    """Where we differ: what the draw of the toy data changes, and what agrees under three allowances."""
    components = components_of(facts.records)
    head = ["Table", "draw", "no draw seen", "weights", "interaction"]
    head += ["nothing allowed", "the draw", "draw and interaction"]
    rows = []
    for verdict in (verdict for verdict in facts.verdicts if verdict.n_draws):
        parts = {c: components[c.start, c.column] for c in verdict.comparisons}
        spreads = [
            median(max(0.0, getattr(part, name)) ** 0.5 for part in parts.values())
            for name in ("draws", "weights", "interaction")
        ]
        both = {c: (max(0.0, part.draws) + part.interaction) ** 0.5 for c, part in parts.items()}
        kept = [
            sum(replace(c, spread=spread(c)).agrees for c in verdict.comparisons)
            for spread in (lambda c: 0.0, lambda c: c.spread, both.__getitem__)
        ]
        n = len(verdict.comparisons)
        unseen = sum(part.draws <= 0.0 for part in parts.values())
        texts = [f"{value:.3f}" for value in spreads]
        texts.insert(1, f"{unseen} / {n}")
        rows.append([f"{verdict.table.number}", *texts, *(f"{k} / {n}" for k in kept)])
    return head, rows


def differing_cells(facts: Facts, *datasets: str) -> str:
    """Where we differ: a line for every difference that does not agree."""
    lines = [
        f"- Table {verdict.table.number}, {escape_markdown(c.start.label)}, {c.column.setting.label} after "
        f"{c.column.epoch} epochs: {c.ours:+.2f} nats to {escape_markdown('β_max')} "
        f"({trials_of(c.n_trials)}), the paper's {c.paper:+.2f}; {abs(c.gap):.2f} apart, {c.tolerance:.2f} "
        "allowed."
        for verdict in facts.verdicts
        if verdict.table.dataset in datasets
        for c in verdict.differing
    ]
    return "\n".join(lines or ["- Every difference agrees."]) + "\n"


def level_gaps(facts: Facts, verdict: Verdict) -> list[tuple[PaperLogLikelihood, TrialSummary]]:
    """The cells of a table that we ran and that are no misprints: the paper's, and ours."""
    found = []
    for (start, column), cell in paper_cells(verdict.table.key).items():
        values = values_at(facts.runs.get(column.setting, {}).get(start, ()), column.epoch).values()
        ours = summarize_trials(values)
        if ours.n_finite and not misprint_of(cell):
            found.append((cell, ours))
    return found


def mnist_levels(facts: Facts) -> str:
    """Where we differ: the log-likelihoods of Tables 8 and 9 themselves."""
    words = []
    for verdict in (verdict for verdict in facts.verdicts if verdict.table.dataset == "mnist"):
        cells = level_gaps(facts, verdict)
        gaps = [ours.mean - cell.mean for cell, ours in cells]
        counts = [ours.n_finite for _, ours in cells]
        below = [-gap for gap in gaps if gap < 0.0]
        if below:
            words.append(
                f"Table {verdict.table.number} rests on {between(counts, 0)} "
                f"trial{'s' * (max(counts) > 1)} of each gain that was run. {verdict.n_agreeing} of "
                f"{len(verdict.comparisons)} differences agree. The values themselves are below the "
                f"paper's in {len(below)} of {len(gaps)} cells, by up to {max(below):.1f} nats; the median "
                f"of ours minus the paper's is {median(gaps):+.1f}. The paper's spread over trials is "
                f"{between((cell.std for cell, _ in cells), 1)}."
            )
    return "\n".join(words) + "\n"


def table_9(facts: Facts) -> str:
    """Where the differences of Table 9 that do not agree are, and in which direction; empty if all agree."""
    verdict = facts.verdicts[8]
    apart, all_gaps = verdict.differing, verdict.comparisons
    if not apart:
        return ""
    epochs = sorted({c.column.epoch for c in all_gaps})
    by_epoch = listed([f"{sum(c.column.epoch == e for c in apart)} after {e}" for e in epochs])
    settings = sorted({c.column.setting for c in all_gaps}, key=lambda setting: -setting.c)
    columns, signs = [], []
    for setting in settings:
        mine = [c for c in apart if c.column.setting == setting]
        columns.append(f"{len(mine)} at c = {setting.c:g}")
        if mine:
            signs.append(_direction(setting.c, mine, [c for c in all_gaps if c.column.setting == setting]))
    n_runs = len({(c.start, c.column.setting) for c in apart})
    of_runs = len({(c.start, c.column.setting) for c in all_gaps})
    counts = [c.n_trials for c in all_gaps]
    small = sum(c.start.gain < 1.0 for c in apart)
    return (
        f"In Table 9, {len(apart)} of the {len(all_gaps)} differences do not agree: {by_epoch} epochs; "
        f"{listed(columns)}; {small} of machines that start below β_max and {len(apart) - small} of machines "
        f"that start above it. {' '.join(signs)} They come from {n_runs} of the {of_runs} starts that are "
        f"compared with β_max, each of {between(counts, 0)} trial{'s' * (max(counts) > 1)} measured at "
        f"{len(epochs)} epochs, so they are not {len(apart)} independent observations."
    )


def _direction(c: float, apart: Sequence[Comparison], column: Sequence[Comparison]) -> str:
    """Whether the differences of a column that do not agree, and all of them, are to one side."""
    sizes = between((abs(one.gap) for one in apart), 1)
    low = sum(one.gap < 0.0 for one in apart)
    if low not in (0, len(apart)):
        return f"At c = {c:g} they are on both sides of the paper's, by {sizes} nats."
    same = sum((one.gap < 0.0) == (low > 0) for one in column)
    side = "lower" if low else "higher"
    return (
        f"At c = {c:g} ours {'are all' if len(apart) > 1 else 'is'} {side} than the paper's, by {sizes} "
        f"nats; of all {len(column)} differences of that column {same} are {side}."
    )
