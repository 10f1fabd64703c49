"""The report: what was run, every table and figure beside the paper's, verdicts, misprints, and gaps.

Everything in it comes from the records; nothing is filled in where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paramagnet._files import write_atomically
from paramagnet.reproduction.agreement import Verdict, judge_table
from paramagnet.reproduction.annealing_check import AnnealingCheck, check_sheet
from paramagnet.reproduction.document import Bullets, Document, Paragraph, Section, parse_notes, to_page
from paramagnet.reproduction.document import write_markdown as write_document
from paramagnet.reproduction.draws import Components, draw_components
from paramagnet.reproduction.first_screen import N_CELLS, summary_section
from paramagnet.reproduction.paper import PAPER_TABLES, PaperTable
from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.reproduction.paper_tables import held_out_table, paper_sheet, rivals_table
from paramagnet.reproduction.sections import (
    draws_section,
    figure_sections,
    judged_table,
    own_names,
    own_sweeps,
    table_sections,
)
from paramagnet.reproduction.wording import (
    describe_kernels,
    describe_runs,
    is_about_draws,
    list_misprints,
    list_missing,
)
from paramagnet.sweeps.groups import Runs, Start, group_runs
from paramagnet.sweeps.results_table import Column
from paramagnet.sweeps.sheet import Sheet
from paramagnet.sweeps.store import RunRecord
from paramagnet.sweeps.sweep_sheets import sweep_sheets
from paramagnet.sweeps.text_tables import to_csv, to_latex


def judge_results(records: Sequence[RunRecord]) -> tuple[Verdict, ...]:
    """The verdicts on all tables of the paper."""
    draws = components_of(records)
    verdicts = []
    for table in PAPER_TABLES:
        runs = _runs_of(records, table)
        if table.dataset == "toy":
            verdicts.append(judge_table(table, runs, draws=draws))
        else:
            verdicts.append(judge_table(table, runs))
    return tuple(verdicts)


def components_of(records: Sequence[RunRecord]) -> dict[tuple[Start, Column], Components]:
    """The variance components of the cells of Tables 1 to 3 that were run on several draws of the data."""
    found: dict[tuple[Start, Column], Components] = {}
    for name in filter(is_about_draws, paper_specs()):
        spec = find_spec(name)
        part = [record for record in records if (record.sweep, record.seed) == (name, spec.seed)]
        found |= draw_components(part, spec.data.datasets)
    return found


def _runs_of(records: Sequence[RunRecord], table: PaperTable) -> Runs:
    """The runs of a table: of its own specification, as that is now."""
    settings = {"", find_spec(table.sweep).settings}
    return group_runs(r for r in records if r.table == table.key and r.settings in settings)


def make_report(
    records: Sequence[RunRecord],
    *,
    notes: str = "",
    checks: Sequence[AnnealingCheck] = (),
    figures: bool = True,
    tables: bool = True,
) -> Document:
    """The report on these records.

    Parameters
    ----------
    records : sequence of RunRecord
        Records of any sweeps.
    notes : str, default ""
        Findings in plain Markdown, put before the tables.
    checks : sequence of AnnealingCheck, optional
        Checks of mAIS against exact sums.
    figures : bool, default True
        Whether to draw; needs matplotlib.
    tables : bool, default True
        Whether to show every table and figure; False leaves the verdict, the findings, what was run, and
        what is missing.
    """
    if not records:
        raise ValueError("`records` must hold at least one run, got none.")
    verdicts = judge_results(records)
    shown = [verdict for verdict in verdicts if _runs_of(records, verdict.table)]
    runs = [_runs_of(records, verdict.table) for verdict in shown]
    sheet, bullets = describe_runs(records)
    sections = [summary_section(shown, runs, records), *parse_notes(notes)]
    kernels = describe_kernels(records)
    timed = () if kernels is None else (kernels,)
    sections.append(Section("What was run", (sheet, Bullets(bullets), *timed)))
    for verdict, own in zip(shown, runs, strict=True) if tables else ():
        sections += table_sections(verdict, own, figures)
    if tables and figures and any(record.sweep in paper_specs() for record in records):
        sections += figure_sections(records)
    sections += draws_section(records, shown)
    if checks:
        words = "The paper's own check of its log-likelihoods, repeated on trained machines."
        sections.append(Section("Check of mAIS", (Paragraph(words), check_sheet(checks))))
    sections += own_sweeps(records, figures) if tables else []
    sections.append(Section("Misprints in the paper", (Bullets(list_misprints(records)),)))
    missing = list_missing(verdicts, records)
    nothing = Paragraph("Nothing is missing: every cell and figure has the paper's number of trials.")
    sections.append(Section("What is missing", (Bullets(missing),) if missing else (nothing,)))
    return Document(
        "Dataset-free initial weights of restricted Boltzmann machines: a reproduction",
        "This page is for readers who ask whether the results of the paper hold: M. Yasuda, R. Maeno and "
        "C. Takahashi, Dataset-Free Weight-Initialization on Restricted Boltzmann Machine, Neural Networks "
        f"187 (2025) 107297, arXiv:2409.07708. {_extent(verdicts)} were run again with paramagnet; "
        "`paramagnet report` made the page from the records.",
        tuple(sections),
    )


def _extent(verdicts: Sequence[Verdict]) -> str:
    missing = sum(len(verdict.missing) for verdict in verdicts)
    if not missing:
        return f"All {N_CELLS} cells of Tables 1 to 9"
    return f"{N_CELLS - missing} of the {N_CELLS} cells of Tables 1 to 9"


def sheets_of(records: Sequence[RunRecord], sweeps: Sequence[str]) -> list[Sheet]:
    """The tables of these sweeps that have runs, as text: first the paper's, then those of other sweeps."""
    found = []
    for verdict in judge_results(records):
        runs = _runs_of(records, verdict.table)
        if runs and verdict.table.sweep in sweeps:
            sheet = paper_sheet(judged_table(verdict, runs))
            found.append(replace(sheet, title=f"Table {verdict.table.number}. {sheet.title}"))
    for name in own_names(records):
        if name in sweeps:
            found += sweep_sheets(records, name)
    return found


def write_report(
    records: Sequence[RunRecord],
    *,
    page: str | Path | None = None,
    markdown: str | Path | None = None,
    notes: str = "",
    checks: Sequence[AnnealingCheck] = (),
    figures: bool = True,
) -> None:
    """Write the report as one HTML page, as Markdown with figures beside it, or both."""
    document = make_report(records, notes=notes, checks=checks, figures=figures)
    if page is not None:
        write_atomically(page, to_page(document).encode())
    if markdown is not None:
        write_document(document, Path(markdown))


def write_tables(records: Sequence[RunRecord], folder: str | Path) -> list[Path]:
    """Write every table that has runs as ``.tex`` and ``.csv`` to ``folder``; the files written."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for verdict in judge_results(records):
        runs = _runs_of(records, verdict.table)
        if not runs:
            continue
        tables = (
            judged_table(verdict, runs),
            rivals_table(verdict.table, runs),
            held_out_table(verdict.table, runs),
        )
        for table in tables:
            stem = f"table{verdict.table.number}{table.key.removeprefix(verdict.table.key)}"
            for name, text in ((f"{stem}.tex", to_latex(paper_sheet(table))), (f"{stem}.csv", to_csv(table))):
                (target / name).write_text(text, encoding="utf-8")
                written.append(target / name)
    return written
