"""``paramagnet report``: tables, figures and verdicts from records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    from paramagnet.experiments.report import judge_results, read_results, write_report, write_tables

    for path in (out, markdown):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    if figures:
        _require_matplotlib()
    records = read_results(results)
    findings = results / "findings.md"
    notes = findings.read_text(encoding="utf-8") if findings.is_file() else ""
    checks = load_checks(results / FILE)
    write_report(records, page=out, markdown=markdown, notes=notes, checks=checks, figures=figures)
    for verdict in judge_results(records):
        if verdict.comparisons:
            typer.echo(
                f"Table {verdict.table.number}: {verdict.n_agreeing} of {len(verdict.comparisons)} "
                "differences to beta_max agree with the paper's"
            )
    typer.echo(f"report: {out}")
    if markdown is not None:
        typer.echo(f"markdown: {markdown}")
    if tables is not None:
        write_tables(records, tables)
        typer.echo(f"tables: {tables}")


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(
            'Figures need matplotlib: pip install "paramagnet[plot]", or leave them out with --no-figures.'
        ) from None
