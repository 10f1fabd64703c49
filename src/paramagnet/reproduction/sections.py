"""Sections of the report: one table of the paper, the figures, sweeps of the user's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from paramagnet.reproduction.agreement import FEWEST_TRIALS, Draws, Verdict
from paramagnet.reproduction.document import Bullets, Drawing, Paragraph, Section
from paramagnet.reproduction.draws import draw_components, level_components
from paramagnet.reproduction.figures import draw_base_patterns, draw_layer_correlation, draw_long_run
from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.reproduction.paper_tables import (
    held_out_table,
    paper_cells,
    paper_sheet,
    paper_table,
    rivals_table,
)
from paramagnet.reproduction.wording import LONG_RUN, describe_spec, is_about_draws
from paramagnet.sweeps.curves import draw_learning_curves
from paramagnet.sweeps.groups import (
    BETA_MAX,
    RIVALS,
    Runs,
    Setting,
    group_runs,
    setting_of,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.results_table import Column, ResultsTable, make_table
from paramagnet.sweeps.sheet import Line, Sheet, plain_sheet, std_text
from paramagnet.sweeps.store import RunRecord
from paramagnet.sweeps.sweep_sheets import sweep_sheets, versions_of

Blocks = list[Paragraph | Bullets | Drawing | Sheet]
_MOST_PANELS = 4


def judged_table(verdict: Verdict, runs: Runs) -> ResultsTable:
    """The table of a verdict, with the cells marked that differ."""
    return paper_table(verdict.table, runs).mark_differing((c.start, c.column) for c in verdict.differing)


def table_sections(verdict: Verdict, runs: Runs, figures: bool) -> list[Section]:
    """A table of the paper, the verdict on it, its curves; the rivals; held-out points."""
    table = verdict.table
    made = judged_table(verdict, runs)
    blocks: Blocks = [Paragraph(describe_spec(find_spec(table.sweep))), paper_sheet(made)]
    blocks.append(Paragraph(_verdict_words(verdict)))
    if verdict.differing:
        blocks.append(_differing_sheet(verdict))
    blocks.append(_rank_sheet(verdict, made))
    settings = [setting for setting in dict.fromkeys(c.setting for c in made.columns) if setting in runs]
    if figures and settings:
        caption = (
            f"Learning curves, {table.title}. Above: training log-likelihood, mean and standard deviation "
            "over trials; the frame ends a little below the log-likelihood of independent units. Below: "
            "difference to β_max over the same trials, with two standard errors; the frame leaves out what "
            "is far behind."
        )
        blocks.append(Drawing(f"curves-{table.sweep}", draw_learning_curves(runs, settings), caption))
    sections = [Section(f"Table {table.number}: {table.title}", tuple(blocks))]
    rivals, held_out = rivals_table(table, runs), held_out_table(table, runs)
    if any(cell.ours.n_trials for (start, _), cell in rivals.cells.items() if start.scheme in RIVALS):
        words = Paragraph("The weights that one would otherwise pick, in the same settings.")
        title = f"Table {table.number}: other initial weights"
        sections.append(Section(title, (words, paper_sheet(rivals)), 3))
    if any(cell.ours.n_finite for cell in held_out.cells.values()):
        words = Paragraph("Log-likelihood of points that were not learned; the paper has none.")
        title = f"Table {table.number}: held-out points"
        sections.append(Section(title, (words, paper_sheet(held_out)), 3))
    return sections


def _verdict_words(verdict: Verdict) -> str:
    if not verdict.comparisons:
        return "Nothing can be compared: the β_max row or all others were not run."
    words = (
        f"**{verdict.n_agreeing} of {len(verdict.comparisons)}** differences to the β_max row agree with the "
        f"paper's ({100 * verdict.share:.0f} %)."
    )
    if verdict.misprints:
        words += f" {len(verdict.misprints)} cells are misprints in the paper and are left out."
    if verdict.table.dataset == "toy":
        words += (
            f" What the draw of the data changes, by {verdict.n_draws} draws of the data times "
            f"{verdict.n_weights} of the weights, is allowed for."
            if verdict.n_draws
            else " There are no runs that cross draws of the data with draws of the weights, so nothing is "
            "allowed for the paper's draw."
        )
    few = sum(comparison.n_trials < FEWEST_TRIALS for comparison in verdict.comparisons)
    if few:
        words += (
            f" In {few} of them we have fewer than {FEWEST_TRIALS} trials, and the paper's spread stands for "
            "ours."
        )
    return words


def _differing_sheet(verdict: Verdict) -> Sheet:
    rows = [
        (
            c.start.label,
            c.column.setting.label,
            f"{c.column.epoch}",
            f"{c.ours:+.3f}",
            f"{c.paper:+.2f}",
            f"{c.gap:+.3f}",
            f"{c.tolerance:.3f}",
            f"{abs(c.gap) / c.tolerance:.1f}",
        )
        for c in verdict.differing
    ]
    heading = (
        "start",
        "setting",
        "epoch",
        "ours minus β_max",
        "paper",
        "apart",
        "allowed",
        "apart / allowed",
    )
    title = "Differences to the β_max row that do not agree, the furthest first"
    return plain_sheet(f"{verdict.table.key}_differing", title, heading, rows)


def _rank_sheet(verdict: Verdict, table: ResultsTable) -> Sheet:
    ranks = {rank.column: rank for rank in verdict.ranks}
    sheet = paper_sheet(table)
    ours = tuple((Line("-" if ranks[c].ours is None else str(ranks[c].ours)),) for c in table.columns)
    paper = tuple((Line(str(ranks[c].paper), quiet=True),) for c in table.columns)
    title = "Rank of β_max among the five gains"
    rows = (("ours", ours), ("paper", paper))
    return Sheet(f"{table.key}_ranks", title, "", sheet.columns, rows, sheet.groups)


def draws_section(records: Sequence[RunRecord], verdicts: Sequence[Verdict]) -> list[Section]:
    """Whether the paper drew its toy data once or in every trial, and what the draw changes."""
    rows, medians = [], []
    for verdict in (verdict for verdict in verdicts if verdict.n_draws):
        levels, differences = _components_of(records, verdict)
        runs = group_runs(record for record in records if record.table == verdict.table.key)
        for (start, column), cell in paper_cells(verdict.table.key).items():
            if start == BETA_MAX and column.epoch == max(rank.column.epoch for rank in verdict.ranks):
                once = summarize_trials(values_at(runs[column.setting][start], column.epoch).values())
                spreads = (cell.std, once.std, levels[start, column].total_spread)
                texts = [std_text(spread) for spread in spreads]
                rows.append((f"{verdict.table.number}", column.setting.label, *texts))
        parts = [differences[c.start, c.column] for c in verdict.comparisons]
        squares = ([getattr(part, name) for part in parts] for name in ("draws", "weights", "interaction"))
        texts = [std_text(median(math.sqrt(max(0.0, square)) for square in group)) for group in squares]
        medians.append((f"{verdict.table.number}", f"{len(parts)}", *texts))
    if not rows:
        return []
    words = Paragraph(
        "The paper does not say whether the toy data were drawn once for all trials or anew in each. The "
        "standard deviation of the log-likelihood over trials tells the two apart: the paper's is to be "
        "compared with ours on one draw, and with what ours would be if the data were drawn anew each time."
    )
    heading = ("Table", "setting", "paper", "ours, one draw", "ours, drawn anew")
    title = "Standard deviation over trials, β_max, after the last epoch"
    sheet = plain_sheet("draws", title, heading, rows)
    heading = ("Table", "differences", "draw of the data", "weights", "interaction")
    title = "Standard deviation of a difference to β_max by its cause, median over the cells of a table"
    note = (
        "From the mean squares of a crossed design. The draw of the data enters the comparison; weights and "
        "interaction average out over trials, and what is left of them is in the standard errors."
    )
    causes = plain_sheet("components", title, heading, medians, (note,))
    return [Section("The toy data: drawn once, or in every trial?", (words, sheet, causes))]


def _components_of(records: Sequence[RunRecord], verdict: Verdict) -> tuple[Draws, Draws]:
    """Variance components of the log-likelihoods of a table, and of their differences to beta_max."""
    settings = {comparison.column.setting for comparison in verdict.comparisons}
    part = [r for r in records if is_about_draws(r.sweep) and setting_of(r) in settings]
    return level_components(part, verdict.n_draws), draw_components(part, verdict.n_draws)


def figure_sections(records: Sequence[RunRecord]) -> list[Section]:
    """The four figures of the paper; the last one where there are records for it."""
    bit = (
        "Figure 1. Layer correlation against β for bit hidden units: its slope in the visible bias, the "
        "correlation itself being zero by symmetry. Dots: β_max."
    )
    spin = "Figure 2. Layer correlation for spin hidden units at small biases; it peaks at the transition."
    patterns = "Figure 3. The four base patterns of the toy data, (a) to (d) as in the paper; dark is +1."
    sections = [
        Section(
            "Figures 1 and 2: layer correlation",
            (
                Drawing("layer-correlation-bit", draw_layer_correlation("bit"), bit),
                Drawing("layer-correlation-spin", draw_layer_correlation("spin"), spin),
            ),
        ),
        Section("Figure 3: base patterns", (Drawing("base-patterns", draw_base_patterns(), patterns),)),
    ]
    runs = group_runs(record for record in records if record.sweep == LONG_RUN)
    for setting, starts in runs.items():
        if len(starts) > 1:
            counts = sorted({len(part) for part in starts.values()})
            trials = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            caption = (
                f"Figure 4. Dry Bean, {setting.label}: log-likelihood of β_max minus that of another gain, "
                f"for long. {trials} trials (the paper: 100); bands are two standard errors of the paired "
                "difference. Larger differences early on are outside the frame."
            )
            drawing = Drawing("long-run", draw_long_run(runs, setting), caption)
            sections.append(Section("Figure 4: learning for long", (drawing, _long_run_sheet(runs, setting))))
    return sections


def _long_run_sheet(runs: Runs, setting: Setting) -> Sheet:
    columns = [Column(setting, epoch) for epoch in find_spec(LONG_RUN).measurement.epochs]
    return paper_sheet(make_table("long_run", "Dry Bean for long", runs, sorted(runs[setting]), columns))


def own_names(records: Sequence[RunRecord]) -> list[str]:
    """The sweeps that belong to no table or figure of the paper."""
    return sorted({record.sweep for record in records} - set(paper_specs()))


def own_sweeps(records: Sequence[RunRecord], figures: bool) -> list[Section]:
    """Sweeps that belong to no table or figure of the paper."""
    sections = []
    for name in own_names(records):
        blocks: Blocks = list(sweep_sheets(records, name))
        n_sheets = len(blocks)
        for version, runs in versions_of(records, name) if figures else ():
            shown = sorted(runs)
            for first in range(0, len(shown), _MOST_PANELS):
                figure = draw_learning_curves(runs, shown[first : first + _MOST_PANELS])
                caption = f"Learning curves of {name}{version}. Bands as in the figures of the tables."
                blocks.append(Drawing(f"curves-{name}-{len(blocks) - n_sheets + 1}", figure, caption))
        sections.append(Section(f"Sweep {name}", tuple(blocks)))
    return sections
