"""Write results/findings.md and docs/reproduction.md from the records, and one figure of docs/theory.md.

    python benchmarks/reproduction_page.py

The page holds the verdict, the findings, what was run and what is missing. The report with every table and
figure is made by `paramagnet report`, and by `make docs` for the site; it is not committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from findings import write_findings
from paramagnet.reproduction.annealing_check import FILE, load_checks
from paramagnet.reproduction.document import write_markdown
from paramagnet.reproduction.report import make_report
from paramagnet.sweeps.store import RunRecord, read_results
from reproduction_facts import RESULTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
FIGURE = ROOT / "docs" / "figures" / "learning_curves.png"
TABLES = (
    "All tables and figures as far as they were run, with learning curves, other initial weights and "
    "held-out points: "
    '<a href="report.html">the full report</a>, one page that the build of this site makes from the records. '
    "In a checkout `paramagnet report` writes it to `report.html`. What the paper does not say and we "
    "assumed is in [where we differ](differences.md#what-we-assumed)."
)


def write_page(records: Sequence[RunRecord], notes: str, path: Path) -> None:
    """The page at ``path``."""
    document = make_report(
        records, notes=notes, checks=load_checks(RESULTS / FILE), figures=False, tables=False
    )
    write_markdown(document, path)
    title, opening, rest = path.read_text(encoding="utf-8").split("\n\n", 2)
    path.write_text("\n\n".join((title, opening, TABLES, rest)), encoding="utf-8")


def draw_curves(records: Sequence[RunRecord]) -> None:
    """Learning curves of Table 3."""
    from paramagnet.plots import save_figure
    from paramagnet.sweeps.curves import draw_learning_curves
    from paramagnet.sweeps.groups import group_runs

    runs = group_runs(record for record in records if record.sweep == "toy_bit_c5")
    save_figure(draw_learning_curves(runs, sorted(runs)), FIGURE)


def main() -> None:
    """Write the findings, the page and the figure."""
    records = read_results(RESULTS)
    notes = write_findings(records)
    (RESULTS / "findings.md").write_text(notes, encoding="utf-8")
    write_page(records, notes, PAGE)
    draw_curves(records)
    print("results/findings.md\ndocs/reproduction.md\ndocs/figures/learning_curves.png")


if __name__ == "__main__":
    main()
