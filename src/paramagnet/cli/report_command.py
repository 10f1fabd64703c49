"""``paramagnet report``: tables, figures and verdicts from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet._extras import how_to_install
from paramagnet.cli.console import say
from paramagnet.cli.sheets import print_sheet

if TYPE_CHECKING:
    from paramagnet.sweeps.store import RunRecord


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
    from paramagnet.reproduction.annealing_check import FILE, load_checks
    from paramagnet.reproduction.report import write_report, write_tables
    from paramagnet.sweeps.store import read_results

    for path in (out, markdown):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    if figures and not _has_matplotlib():
        raise ValueError(
            f"Figures need matplotlib: {how_to_install('plot')}, or leave them out with --no-figures."
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
    """Finish a sweep: print its tables on the terminal, and write the report beside the records."""
    from paramagnet.reproduction.report import sheets_of
    from paramagnet.sweeps.store import read_results

    if not any(path.stat().st_size for path in results.glob("*.jsonl")):
        return  # or interrupted before the first record
    for sheet in sheets_of(read_results(results), sweeps):
        print_sheet(sheet)
    has_matplotlib = _has_matplotlib()
    if not has_matplotlib:
        say(f"the report has no figures: they need matplotlib, {how_to_install('plot')}.", err=True)
    report(results, results / "report.html", None, None, has_matplotlib)


def _has_matplotlib() -> bool:
    """Whether matplotlib is installed and can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _print_verdicts(records: Sequence[RunRecord]) -> None:
    """A small table of how many differences agree with the paper's, and the verdict in a sentence."""
    from paramagnet.reproduction.report import judge_results

    verdicts = [verdict for verdict in judge_results(records) if verdict.comparisons]
    if not verdicts:
        return
    typer.echo(f"{'table':>7s}{'differences':>13s}{'agree':>7s}")
    for verdict in verdicts:
        typer.echo(f"{verdict.table.number:>7}{len(verdict.comparisons):13d}{verdict.n_agreeing:7d}")
    agreeing = sum(verdict.n_agreeing for verdict in verdicts)
    total = sum(len(verdict.comparisons) for verdict in verdicts)
    share = "All" if agreeing == total else f"{agreeing} of"
    say(
        f"{share} {total} differences between a start and beta_max agree with the paper's within errors of "
        "both."
    )
