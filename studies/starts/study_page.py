"""The page on the study of starts: words by hand, tables and figures from the records.

A table stands between two lines ``<!-- table: key -->`` and ``<!-- end -->``, which is what is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from paramagnet.plots import save_figure
from paramagnet.sweeps.sheet import Sheet
from paramagnet.sweeps.text_tables import escape_markdown, to_markdown
from studies.starts.contest import DATASET_FREE, Contest
from studies.starts.contest_figures import draw_curves, draw_gain_grid, draw_gaps
from studies.starts.contest_tables import (
    MEASURES,
    all_sheets,
    count_sheet,
    gap_sheet,
    growth_sheet,
    loss_sheet,
    main_contests,
    rate_sheet,
    runs_sheet,
    time_sheet,
)
from studies.starts.gain_tables import composed_sheet, gain_cost_sheet, gain_sheet, sparse_sheet

NO_RUNS = "There are no runs for this table in the records."
_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
# One setting of each data set, where hidden units are bits with a bias: the paper's own case.
_CURVES = tuple(
    (name, n_hidden, -5.0)
    for name, n_hidden in (("toy", 20), ("drybean", 16), ("digits", 16), ("ulc", 200), ("mnist", 500))
)


def study_sheets(contests: Sequence[Contest]) -> list[Sheet]:
    """The tables that the page may show."""
    return [
        runs_sheet(contests),
        count_sheet(contests),
        count_sheet(contests, DATASET_FREE),
        loss_sheet(contests),
        *(gap_sheet(contests, measure) for measure in MEASURES),
        gain_sheet(contests),
        gain_cost_sheet(contests),
        sparse_sheet(contests),
        composed_sheet(contests),
        growth_sheet(contests),
        time_sheet(contests),
        rate_sheet(contests),
    ]


def fill_tables(text: str, sheets: Sequence[Sheet]) -> str:
    """The text with every marked table written anew."""
    tables = {sheet.key: to_markdown(sheet).rstrip() if sheet.columns else NO_RUNS for sheet in sheets}

    def table(match: re.Match[str]) -> str:
        if match[2] not in tables:
            raise ValueError(f"The page asks for the table {match[2]!r}; known are {', '.join(tables)}.")
        return f"{match[1]}{tables[match[2]]}\n{match[3]}"

    return _BLOCK.sub(table, text)


def write_study(contests: Sequence[Contest], page: Path, *, figures: bool = True) -> None:
    """Fill the tables of ``page``, write all cells to a page beside it, and the figures to ``figures``."""
    if not main_contests(contests):
        raise ValueError("No setting has runs of every rule, so there is nothing to compare yet.")
    page.write_text(
        fill_tables(page.read_text(encoding="utf-8"), study_sheets(contests)), encoding="utf-8", newline="\n"
    )
    parts = [
        "# Does it win? All cells",
        "This page is for readers who look up a number behind [the study](does_it_win.md): every start at "
        "every epoch. It is made from the records by `python -m studies.starts.refresh`.",
    ]
    for sheet in all_sheets(contests):
        parts += [f"## {escape_markdown(sheet.title)}", to_markdown(sheet).rstrip()]
    beside = page.with_name(f"{page.stem}_tables.md")
    beside.write_text("\n\n".join(parts) + "\n", encoding="utf-8", newline="\n")
    if figures:
        for name, figure in _drawings(contests).items():
            save_figure(figure, page.parent / "figures" / f"{page.stem}-{name}.png")


def _drawings(contests: Sequence[Contest]) -> Mapping[str, object]:
    shown = [
        contest
        for dataset, n_hidden, c in _CURVES
        for contest in main_contests(contests)
        if (contest.setting.dataset, contest.setting.n_hidden, contest.setting.c) == (dataset, n_hidden, c)
    ]
    drawings = {"gaps": draw_gaps(contests), "gains": draw_gain_grid(contests)}
    return drawings | ({"curves": draw_curves(shown)} if shown else {})
