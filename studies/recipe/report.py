"""The page of a stage of the study of recipes, made from its records.

python -m studies.recipe.report stage1

It works with any number of finished trials and says how many there are.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studies.recipe.analysis import (
    N_LEADING,
    SHARE,
    SettingResult,
    StageResult,
    contrasts,
    judge_stage,
    measure_floors,
    read_records,
)
from studies.recipe.losses import FEWEST_TRIALS
from studies.recipe.plan import read_stage

ROOT = Path(__file__).parents[2]
SHOWN = 12  # families in the table of a setting
VERDICT, END = "<!-- verdict: recipe -->", "<!-- end -->"  # in docs/does_it_win.md


def page_name(stage: str) -> str:
    """The file of a stage in the documentation."""
    return f"recipe_{stage}.md"


def make_page(result: StageResult) -> str:
    """The page as Markdown."""
    stage = result.stage
    number = stage.name.removeprefix("stage")
    parts = [
        f"# The study of recipes, stage {number}",
        "This page is for readers who want to know which start, gradient, factor on the hidden biases, "
        "optimizer, learning rate and schedule give the best machine, and how far the study is. The plan is "
        f"`studies/recipe/{stage.name}.toml`, fixed before its runs; this page is made from the records by "
        f"`python -m studies.recipe.report {stage.name}`.",
        "## How much there is",
        _progress(result),
    ]
    if not result.counted:
        parts.append(
            "No trial of any setting is complete, so no rule is judged yet: a trial counts when every rule "
            "has its run, so that all are judged on the same trials."
        )
        return "\n\n".join(parts) + "\n"
    parts += ["## Over all settings", _overall(result)]
    parts += ["## One change at a time", _contrast_table(result)]
    for one in result.counted:
        parts += [f"## {one.setting.name}", _setting_table(one)]
    return "\n\n".join(parts) + "\n"


def make_verdict(result: StageResult, n_races: tuple[int, int]) -> str:
    """How far study and race are; ``n_races`` are the runs that there are and those that are planned."""
    complete = sum(one.n_trials for one in result.settings)
    planned = result.stage.trials * len(result.settings)
    words = (
        f"Of stage 1 of the study of recipes {result.n_records} of {result.n_planned} runs are there, "
        f"{complete} of {planned} trials of a setting are complete"
    )
    n_ends = sum(bool(one.extensions) for one in result.settings)
    if complete < planned:
        words += "; no rule is named from it before all are."
    elif n_ends:
        words += (
            f". In {n_ends} of {len(result.settings)} settings a rate of the best families is at an end of "
            "the scan, which therefore has to be extended before rules are named."
        )
    else:
        words += "; rules can be named from it for stage 2."
    return f"{words} Of the race {n_races[0]} of {n_races[1]} runs are there."


def fill_verdict(text: str, verdict: str) -> str:
    """The text of a page with the verdict written anew."""
    before, found, rest = text.partition(VERDICT)
    if not found:
        raise ValueError(f"the page must hold {VERDICT}.")
    return f"{before}{VERDICT}\n{verdict}\n{END}{rest.partition(END)[2]}"


def count_races() -> tuple[int, int]:
    """The runs of the race that there are, and those that are planned."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    race = importlib.import_module("race")
    jobs = list(race.plan([*race.N_HIDDEN], [*race.SECONDS], [*race.SEEDS]))
    records = race.read_records()
    return sum(any(map(job.matches, records)) for job in jobs), len(jobs)


def _progress(result: StageResult) -> str:
    lines = [
        "| setting | runs made | planned | complete trials |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {one.setting.name} | {one.n_records} | {one.n_planned} | {one.n_trials} of "
            f"{result.stage.trials} |"
            for one in result.settings
        ),
        f"| all | {result.n_records} | {result.n_planned} | |",
    ]
    return "\n".join(lines)


def _overall(result: StageResult) -> str:
    assert result.overall is not None
    trials = sorted({one.n_trials for one in result.counted})
    counted = ", ".join(map(str, trials))
    words = (
        f"Mean and worst loss over {len(result.counted)} of {len(result.settings)} settings with {counted} "
        "complete trials each: how far a family, at its own best rate, is behind the best family of each "
        "setting, in percent of what can be learned there (from independent units with the means of the data "
        "to the best mean). Training points, last epoch."
    )
    order = np.argsort(-result.overall.scores)[:SHOWN]
    lines = [
        "| family | mean loss, % | worst loss, % | mean over settings less the best other |",
        "| --- | ---: | ---: | --- |",
    ]
    for index in order:
        mean, worst = result.overall.mean_losses[index], result.overall.worst_losses[index]
        interval = ""
        if result.overall.intervals is not None:
            known = result.overall.intervals[index]
            interval = f"{known.low:+.2f} to {known.high:+.2f}"
        lines.append(f"| {result.families[index]} | {mean:.2f} | {worst:.2f} | {interval} |")
    if result.overall.intervals is None:
        words += f" Below {FEWEST_TRIALS} trials no interval is given, and no two rules are told apart."
    else:
        n_best = len(result.overall.may_be_best)
        words += (
            f" {n_best} of {len(result.families)} families cannot be told from the best (simultaneous "
            "intervals, multiple comparison with the best)."
        )
    return f"{words}\n\n" + "\n".join(lines)


def _contrast_table(result: StageResult) -> str:
    names = [one.setting.name for one in result.counted]
    lines = [
        f"| what changes | {' | '.join(names)} | mean |",
        "| --- |" + " ---: |" * (len(names) + 1),
    ]
    for contrast in contrasts(result.stage):
        gains = [contrast.percent(one) for one in result.counted]
        known = [float(gain.mean()) for gain in gains if gain is not None]
        cells = ["" if gain is None else f"{gain.mean():+.2f}" for gain in gains]
        mean = f"{np.mean(known):+.2f}" if known else ""
        lines.append(f"| {contrast.title} | {' | '.join(cells)} | {mean} |")
    words = (
        "Gain in percent of what can be learned, each side at its own best rate; positive: the change helps."
    )
    return f"{words}\n\n" + "\n".join(lines)


def _setting_table(one: SettingResult) -> str:
    lines = [
        "| family | best rate | training | loss, % | held-out | loss, % | epochs |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for verdict in one.verdicts[:SHOWN]:
        epochs = "" if verdict.epochs is None else str(verdict.epochs)
        lines.append(
            f"| {verdict.family} | x {verdict.rate:g} | {verdict.training:.3f} | {verdict.loss:.2f} | "
            f"{verdict.held_out:.3f} | {verdict.held_out_loss:.2f} | {epochs} |"
        )
    words = (
        f"{one.n_trials} complete trials; independent units have {one.floors.training:.3f} nats per point "
        f"(held-out {one.floors.held_out:.3f}). Speed apart from quality: epochs until the mean curve has "
        f"{100.0 * SHARE:g} % of the way to the best mean."
    )
    leaders = one.leaders
    if leaders is not None:
        words += f" {len(leaders)} of {len(one.verdicts)} families cannot be told from the best."
    if one.extensions:
        words += (
            f" Among the best {N_LEADING} the best rate is at an end of the scan for "
            + "; ".join(f"{item.family} (add x {item.further:.4g})" for item in one.extensions)
            + ": the scan has to be extended there."
        )
    else:
        words += f" No rate of the best {N_LEADING} is at an end of the scan."
    return f"{words}\n\n" + "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Write the page of a stage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "recipe")
    parser.add_argument("--page", type=Path, help="else docs/recipe_STAGE.md")
    arguments = parser.parse_args(words)
    stage = read_stage(arguments.stage)
    records = read_records(arguments.results, stage)
    floors = {setting.name: measure_floors(stage, setting) for setting in stage.settings}
    page = arguments.page or ROOT / "docs" / page_name(stage.name)
    result = judge_stage(stage, records, floors)
    page.write_text(make_page(result), encoding="utf-8", newline="\n")
    if stage.name == "stage1" and arguments.page is None:
        summary = ROOT / "docs" / "does_it_win.md"
        text = fill_verdict(summary.read_text(encoding="utf-8"), make_verdict(result, count_races()))
        summary.write_text(text, encoding="utf-8", newline="\n")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
