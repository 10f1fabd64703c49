"""Run a stage of the study of recipes, as far as it has not been run yet.

python -m studies.recipe.run stage1 [--jobs 1] [--minutes 60] [--only digits_spin]

The same command goes on after an interruption. Records are lines of ``results/recipe/STAGE/SETTING.jsonl``.
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
from paramagnet.cli.sweeping import Display, make_executor, report_result
from paramagnet.sweeps.provenance import commit
from paramagnet.sweeps.store import Store
from paramagnet.sweeps.sweep import run_sweep
from studies.recipe.plan import FOLDER, read_stage


def stages() -> tuple[str, ...]:
    """The names of the stages that have a file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=stages())
    parser.add_argument("--jobs", type=int, help="processes, one run each; else one per core")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--only", help="a setting; else all")
    parser.add_argument("--out", type=Path, default=Path("results/recipe"), help="folder of the records")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code."""
    arguments = make_parser().parse_args(words)
    stage, failed = read_stage(arguments.stage), 0
    deadline = time.time() + 60.0 * arguments.minutes
    executor = make_executor(arguments.jobs, None)
    try:
        with interruptible(lambda: GO_ON):
            for trial in range(stage.trials):
                for setting in stage.settings:
                    if time.time() >= deadline or arguments.only not in (None, setting.name):
                        continue
                    name = f"{stage.name}/{setting.name}"
                    runs = list({run.digest: run for _, run in stage.runs(setting, trial)}.values())
                    title = f"{name}, trial {trial}"
                    with Store(arguments.out / f"{name}.jsonl") as store, Display(title) as display:
                        result = run_sweep(
                            runs, store, executor, sweep=f"recipe/{name}", commit=commit(),
                            deadline=deadline, callback=display.show,
                        )  # fmt: skip
                    report_result(title, result)
                    failed += len(result.failures)
    except typer.Exit as end:  # interrupted
        return int(end.exit_code)
    finally:
        executor.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
