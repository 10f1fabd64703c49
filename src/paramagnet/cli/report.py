"""``paramagnet report``: tables, figures and verdicts from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.console import say

if TYPE_CHECKING:
    from paramagnet.experiments.sheet import Lines, Sheet
    from paramagnet.experiments.store import RunRecord

_LABEL_WIDTH, _CELL_WIDTH = 9, 15  # of a table on the terminal


def report(
    results: Annotated[Path, typer.Option(help="Folder with the records, *.jsonl.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    markdown: Annotated[
        Path | None, typer.Option(help="Write Markdown here too, figures in the folder beside it.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Write every table as .tex and .csv to this folder too.")
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures; needs matplotlib.")] = True,
) -> None:
    """Write a report: every table and figure of the paper that has records, and how far they agree.

    A file findings.md in the folder of the records is put before the tables.
    """
    from paramagnet.experiments.annealing_check import FILE, load_checks
    from paramagnet.experiments.report import read_results, write_report, write_tables

    for path in (out, markdown):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    if figures and not _has_matplotlib():
        raise ValueError(
            'Figures need matplotlib: pip install "paramagnet[plot]", or leave them out with --no-figures.'
        )
    records = read_results(results)
    findings = results / "findings.md"
    notes = findings.read_text(encoding="utf-8") if findings.is_file() else ""
    checks = load_checks(results / FILE)
    write_report(records, page=out, markdown=markdown, notes=notes, checks=checks, figures=figures)
    _print_verdicts(records)
    typer.echo(f"report: {out}")
    if markdown is not None:
        typer.echo(f"markdown: {markdown}")
    if tables is not None:
        write_tables(records, tables)
        typer.echo(f"tables: {tables}")


def finish_sweep(results: Path, sweeps: Sequence[str]) -> None:
    """What a sweep ends with: its tables on the terminal, and the report beside the records.

    The study of starts has a page of its own, and no report.
    """
    from paramagnet.experiments.report import read_results, sheets_of
    from paramagnet.experiments.spec_files import study_specs
    from paramagnet.experiments.win import records_of

    study = [name for name in sweeps if name in study_specs()]
    for name in study:
        for sheet in sheets_of(records_of(name, results), [name]):
            _print_sheet(sheet)
    if study or not any(path.stat().st_size for path in results.glob("*.jsonl")):
        return  # or interrupted before the first record
    for sheet in sheets_of(read_results(results), sweeps):
        _print_sheet(sheet)
    has_matplotlib = _has_matplotlib()
    if not has_matplotlib:
        say('the report has no figures: they need matplotlib, pip install "paramagnet[plot]".', err=True)
    report(results, results / "report.html", None, None, has_matplotlib)


def _has_matplotlib() -> bool:
    """Whether it is there and can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _print_verdicts(records: Sequence[RunRecord]) -> None:
    from paramagnet.experiments.report import judge_results

    for verdict in judge_results(records):
        if verdict.comparisons:
            say(
                f"Table {verdict.table.number}: {verdict.n_agreeing} of {len(verdict.comparisons)} "
                "differences to beta_max agree with the paper's"
            )


def _print_sheet(sheet: Sheet) -> None:
    from rich.table import Table

    from paramagnet.cli.console import table_console

    console = table_console()
    groups = [label for label, span in sheet.groups for _ in range(span)] or [""] * len(sheet.columns)
    fits = console.width >= _LABEL_WIDTH + _CELL_WIDTH * len(groups)
    console.print(sheet.title, style="bold", markup=False)
    # On a narrow terminal one group of columns below the other.
    for shown in (set(groups),) if fits else ({group} for group in dict.fromkeys(groups)):
        chosen = [number for number, group in enumerate(groups) if group in shown]
        grid = Table(padding=(0, 0))
        grid.add_column(sheet.corner)
        for number in chosen:
            heading = f"{groups[number]}\n{sheet.columns[number]}".strip()
            grid.add_column(heading, justify="right", no_wrap=True)
        for label, cells in sheet.rows:
            grid.add_row(label, *(_terminal(cells[number]) for number in chosen))
        console.print(grid)
    for note in sheet.notes:
        console.print(note, style="dim")


def _terminal(lines: Lines) -> str:
    from rich.markup import escape

    parts = []
    for line in lines:
        style = " ".join(word for word in ("bold" * line.bold, "dim" * line.quiet) if word)
        parts.append(f"[{style}]{escape(line.text)}[/{style}]" if style else escape(line.text))
    return "\n".join(parts)
