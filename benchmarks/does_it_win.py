"""Refresh docs/does_it_win.md: its tables and figures from the records of the study.

paramagnet reproduce win-exact --no-report       # toy, Dry Bean, digits
paramagnet reproduce win-sampled --no-report     # digits, Urban Land Cover, MNIST with persistent chains
python benchmarks/does_it_win.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paramagnet.experiments.win import read_study
from paramagnet.experiments.win_page import write_study

ROOT = Path(__file__).parents[1]


def main() -> None:
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
