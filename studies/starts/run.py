"""Run the study of starts, as far as it has not been run yet; the same command goes on after an interruption.

python -m studies.starts.run win-exact           # toy, Dry Bean, digits: exact gradients
python -m studies.starts.run win-sampled         # digits, Urban Land Cover, MNIST: persistent chains
python -m studies.starts.run win/toy_spin        # one specification
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer

from paramagnet.cli.interruptions import GO_ON, interruptible
from paramagnet.cli.sheets import print_sheet
from paramagnet.cli.sweeping import make_executor, run_part
from paramagnet.reproduction.plan import Stage
from paramagnet.sweeps.executors import Executor
from paramagnet.sweeps.sweep_sheets import sweep_sheets
from studies.starts.contest import missing_runs, records_of
from studies.starts.specs_of_study import read_study_spec, study_specs
from studies.starts.study_plan import PLANS


def run_study_stage(stage: Stage, executor: Executor, out: Path, state: Path | None, deadline: float) -> int:
    """Run a stage without what the paper's own sweeps have done; the number of runs that failed."""
    spec = read_study_spec(stage.spec)
    runs = missing_runs(spec, spec.runs(trials=stage.trials, part=stage.part), out)
    return run_part(spec, runs, stage.part, executor, out, state, deadline)


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=(*PLANS, *study_specs()), metavar="WHAT", help=", ".join(PLANS))
    parser.add_argument("--jobs", type=int, help="processes, one run each; else one per core")
    parser.add_argument("--scheduler", help="address of a Dask scheduler")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the records")
    parser.add_argument("--state", type=Path, help="folder for the states of unfinished runs")
    parser.add_argument("--tables", action="store_true", help="end with the tables")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code."""
    arguments = make_parser().parse_args(words)
    stages = PLANS.get(arguments.what, (Stage(arguments.what, "all"),))
    deadline, failed = time.time() + 60.0 * arguments.minutes, 0
    executor = make_executor(arguments.jobs, arguments.scheduler)
    try:
        with interruptible(lambda: GO_ON):
            for stage in stages:
                if time.time() < deadline:
                    failed += run_study_stage(stage, executor, arguments.out, arguments.state, deadline)
    except typer.Exit as end:  # interrupted
        return int(end.exit_code)
    finally:
        executor.shutdown()
    if arguments.tables:
        for name in dict.fromkeys(stage.spec for stage in stages):
            named = read_study_spec(name).measurement.epochs
            for sheet in sweep_sheets(records_of(name, arguments.out), name, named):
                print_sheet(sheet)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
