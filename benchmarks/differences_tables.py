"""Parts of docs/differences.md that are made from the records; `document_tables` writes them."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from paramagnet.reproduction.paper import misprint_of
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.reproduction.report import components_of
from paramagnet.sweeps.groups import (
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.text_tables import escape_markdown
from reproduction_facts import Facts, between, trials_of


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


def mnist_levels(facts: Facts) -> str:
    """Where we differ: the log-likelihoods of Tables 8 and 9 themselves."""
    words = []
    for verdict in (verdict for verdict in facts.verdicts if verdict.table.dataset == "mnist"):
        gaps, stds, counts = [], [], []
        for (start, column), cell in paper_cells(verdict.table.key).items():
            values = values_at(facts.runs.get(column.setting, {}).get(start, ()), column.epoch).values()
            ours = summarize_trials(values)
            if ours.n_finite and not misprint_of(cell):
                gaps.append(ours.mean - cell.mean)
                stds.append(cell.std)
                counts.append(ours.n_finite)
        below = [-gap for gap in gaps if gap < 0.0]
        if below:
            words.append(
                f"Table {verdict.table.number} rests on {between(counts, 0)} "
                f"trial{'s' * (max(counts) > 1)} of each gain that was run. {verdict.n_agreeing} of "
                f"{len(verdict.comparisons)} differences agree. The values themselves are below the "
                f"paper's in {len(below)} of {len(gaps)} cells, by up to {max(below):.1f} nats; the median "
                f"of ours minus the paper's is {median(gaps):+.1f}. The paper's spread over trials is "
                f"{between(stds, 1)}."
            )
    return "\n".join(words) + "\n"
