"""Refresh docs/does_it_win.md: its tables and figures from the records of the study.

python -m studies.starts.run win-exact       # toy, Dry Bean, digits
python -m studies.starts.run win-sampled     # digits, Urban Land Cover, MNIST with persistent chains
python -m studies.starts.refresh
"""

from __future__ import annotations

import argparse
from pathlib import Path

from studies.starts.contest import read_study
from studies.starts.study_page import write_study

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Read the records, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "does_it_win.md")
    parser.add_argument("--no-figures", action="store_true")
    arguments = parser.parse_args()
    write_study(read_study(arguments.results), arguments.page, figures=not arguments.no_figures)
    print(arguments.page)


if __name__ == "__main__":
    main()
