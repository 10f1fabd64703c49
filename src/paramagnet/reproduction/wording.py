"""Words of the report: settings, provenance, misprints, gaps."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from paramagnet.learning.registries import OPTIMIZERS
from paramagnet.learning.resuming import describe
from paramagnet.reproduction.agreement import FEWEST_TRIALS, Verdict
from paramagnet.reproduction.paper import (
    LIKELIHOOD_MISPRINTS,
    MISPRINTS,
    read_beta_max,
)
from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.sweeps.groups import BETA_MAX, Start, group_runs, summarize_trials, values_at
from paramagnet.sweeps.sheet import Sheet, plain_sheet
from paramagnet.sweeps.spec import Spec
from paramagnet.sweeps.store import RunRecord
from paramagnet.theory.scale import beta_max, find_beta_max

AGREEMENT_RULE = (
    "How cells are compared: the difference of a cell to the β_max row of its column, ours against the "
    "paper's. They agree where they are no further apart than twice the combined standard error, plus 0.01 "
    "for the rounding of printed numbers. The error has our part, over the trials that both cells share; the "
    "paper's, from its standard deviations and its number of trials; and, for the toy data, which the paper "
    "and we drew once each, the standard deviation that the draw alone causes, for either draw. The squares "
    "add up. The points of the other sets are a random selection, and nothing is allowed for ours being "
    f"another one. With fewer than {FEWEST_TRIALS} trials of ours the paper's standard deviations stand for "
    "ours."
)
LONG_RUN = "drybean_long"
EARLIER = "earlier"
_SETS = {"toy": "the toy data", "drybean": "Dry Bean", "ulc": "Urban Land Cover", "mnist": "MNIST"}


def is_about_draws(sweep: str) -> bool:
    """Whether a sweep repeats a table of the paper on several draws of the data."""
    return sweep.endswith("_datasets") and sweep in paper_specs()


def span(counts: Iterable[int]) -> str:
    """The smallest and the largest of some numbers, once if they are equal."""
    ordered = sorted(counts)
    if not ordered:
        return "-"
    return f"{ordered[0]}" if ordered[0] == ordered[-1] else f"{ordered[0]}–{ordered[-1]}"


def describe_spec(spec: Spec) -> str:
    """The settings of a sweep in a few sentences."""
    learning, measurement, data = spec.learning, spec.measurement, spec.data
    points = "" if data.n_points is None else f"{data.n_points:,} points of "
    sizes = ", ".join(map(str, spec.n_hidden))
    biases = ", ".join(f"{c:g}" for c in spec.hidden_bias)
    batches = "all points at once" if learning.batch_size is None else f"batches of {learning.batch_size}"
    if learning.gradient == "exact":
        gradient = "exact gradients"
    elif learning.gradient == "pcd":
        gradient = (
            f"gradients from {learning.n_chains} persistent chains, {learning.n_steps} sweeps an update, "
            f"after {learning.n_relax} at the start"
        )
    else:
        gradient = f"gradients by {describe(learning.make_gradient())}"
    if learning.centred:
        gradient += ", centred learning"
    for name, value in learning.penalties.items():
        if value:
            gradient += f", {name} = {value:g}"
    if measurement.log_partition == "exact":
        log_z = "exact log-likelihoods"
    else:
        log_z = (
            f"log-likelihoods by mAIS with {measurement.n_samples} samples and {measurement.n_temperatures} "
            "temperatures at the paper's epochs"
        )
    optimizer = OPTIMIZERS.find(learning.optimizer, "optimizer").__name__
    return (
        f"{points}{_SETS.get(data.name, data.name)}; {spec.visible} visible and {spec.hidden} hidden units, "
        f"m = {sizes}; c = {biases}; {optimizer} at {learning.learning_rate:g}, {batches}; {gradient}; "
        f"{log_z}."
    )


def describe_runs(records: Sequence[RunRecord]) -> tuple[Sheet, tuple[str, ...]]:
    """A row per sweep, and with what it was computed."""
    rows = []
    for name in sorted({record.sweep for record in records}):
        part = [record for record in records if record.sweep == name]
        cells = Counter((r.n_hidden, r.hidden, r.c, r.scheme, r.gain) for r in part)
        seconds = [record.seconds for record in part if math.isfinite(record.seconds)]
        rows.append(
            (
                name,
                f"{len(part):,}",
                f"{len(cells)}",
                span(cells.values()),
                _some({str(record.seed) for record in part}),
                f"{sum(seconds) / 3600.0:.2f}",
                f"{sum(seconds) / max(len(seconds), 1):.1f}",
                _some({record.commit for record in part if record.commit}),
                max(record.finished for record in part)[:10],
            )
        )
    heading = (
        "sweep",
        "runs",
        "cells",
        "trials a cell",
        "seed",
        "core-hours",
        "seconds a run",
        "commit",
        "last run",
    )
    hours = sum(record.seconds for record in records if math.isfinite(record.seconds)) / 3600.0
    bullets = [f"{len(records):,} runs, {hours:.1f} core-hours in all."]
    bullets.append(f"paramagnet {_some({record.version for record in records}, 6)}.")
    bullets += [f"Computed with {environment}." for environment in sorted({r.environment for r in records})]
    bullets.append("A + after a commit: the sources differed from it.")
    return plain_sheet("runs", "Sweeps", heading, rows), tuple(bullets)


def kernels_of(record: RunRecord) -> str:
    """The kernels of the chains that a record names; "earlier" where it is older than the names."""
    found = re.search(r", (\w+) kernels", record.environment)
    return found[1] if found else EARLIER


def describe_kernels(records: Sequence[RunRecord]) -> Sheet | None:
    """Seconds per run of sampled sweeps, by the kernels that made them; None where there are none.

    Cells differ in the time they take, so the last column compares only those that both kinds of kernels ran.
    """
    rows = []
    sampled = [record for record in records if any(record.error) and math.isfinite(record.seconds)]
    for name in sorted({record.sweep for record in sampled}):
        part = [record for record in sampled if record.sweep == name]
        old = [record for record in part if kernels_of(record) == EARLIER]
        new = [record for record in part if kernels_of(record) != EARLIER]
        rows.append((name, *_count_and_mean(old), *_count_and_mean(new), _ratio_in_same_cells(old, new)))
    if not rows:
        return None
    heading = ("sweep", "earlier runs", "seconds a run", "later runs", "seconds a run", "later / earlier")
    names = sorted({kernels_of(record) for record in sampled} - {EARLIER})
    kernels = f"Later: those that name {' or '.join(names)} kernels." if names else "None names its kernels."
    ratio = "Later / earlier: ratio of the mean times in the cells that both have"
    ratio += "." if any(row[-1] != "-" for row in rows) else ", of which there are none."
    notes = (
        f"Earlier: records that name no kernels. {kernels} {ratio}",
        "Processor time of one core, on machines that did other work as well.",
        "A sampled run that is made again has the digits of its record only with the kernels that made it.",
    )
    return plain_sheet(
        "kernels", "Seconds per run, before and after the faster kernels", heading, rows, notes
    )


def _count_and_mean(records: Sequence[RunRecord]) -> tuple[str, str]:
    if not records:
        return "0", "-"
    return f"{len(records)}", f"{sum(record.seconds for record in records) / len(records):.0f}"


def _ratio_in_same_cells(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> str:
    """The mean over the cells that both have of the ratio of mean times."""
    means = [_seconds_by_cell(part) for part in (old, new)]
    ratios = [means[1][cell] / means[0][cell] for cell in sorted(means[0].keys() & means[1].keys())]
    cells = f"{len(ratios)} cell" + "s" * (len(ratios) > 1)
    return f"{sum(ratios) / len(ratios):.2f} ({cells})" if ratios else "-"


def _seconds_by_cell(records: Sequence[RunRecord]) -> dict[tuple[int, str, float, str, float], float]:
    times: dict[tuple[int, str, float, str, float], list[float]] = {}
    for r in records:
        times.setdefault((r.n_hidden, r.hidden, r.c, r.scheme, r.gain), []).append(r.seconds)
    return {cell: sum(values) / len(values) for cell, values in times.items()}


def _some(words: set[str], most: int = 3) -> str:
    ordered = sorted(words)
    return (
        ", ".join(ordered[:most]) + (f" and {len(ordered) - most} more" if len(ordered) > most else "")
    ) or "-"


def list_misprints(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """The paper's misprints, with our values beside them."""
    items = []
    rows = read_beta_max()
    for kind in ("bit", "spin"):
        part = [row for row in rows if row.hidden == kind]
        values = beta_max([row.alpha for row in part], hidden=kind, c=[row.c for row in part])
        for row, value in zip(part, values, strict=True):
            if f"{value:.3f}" != f"{row.beta_max:.3f}":
                clear = (row.hidden, row.alpha, row.c) in MISPRINTS
                items.append(
                    f"Appendix C, {kind}, α = {row.alpha:g}, c = {row.c:g}: β_max is printed as "
                    f"{row.beta_max:.3f} and is {value:.6f}"
                    + (": a misprint." if clear else ": one unit of the last decimal.")
                )
    caption = find_beta_max(500 / 784, c=-5.0).beta
    items.append(
        f"Caption of Table 9, c = -5: β_max is printed as 3.42 and is {caption:.4f}, which rounds to 3.43."
    )
    runs = group_runs(record for record in records if record.table == "MNIST_binary")
    for (_, c, gain, epoch), why in LIKELIHOOD_MISPRINTS.items():
        start = Start(gain=gain)
        text = f"Table 9, c = {c:g}, {start.label}, {epoch} epochs: {why}"
        ours = [
            summarize_trials(values_at(starts.get(start, ()), epoch).values())
            for setting, starts in runs.items()
            if setting.c == c
        ]
        if ours and ours[0].n_finite:
            trials = f"{ours[0].n_finite} trial" + "s" * (ours[0].n_finite > 1)
            text += f"; ours is {ours[0].mean:.2f} ({trials})"
        items.append(f"{text}. Left out of the comparison.")
    return tuple(items)


def list_missing(verdicts: Sequence[Verdict], records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Cells, trials, rivals and figures that were not run, in words."""
    items = []
    swept = {record.sweep for record in records}
    for verdict in verdicts:
        table = verdict.table
        cells = 5 * len(verdict.ranks)
        part = [record for record in records if record.table == table.key]
        name = f"Table {table.number} ({table.title})"
        if not part:
            items.append(f"{name}: nothing was run.")
            continue
        if verdict.missing:
            by_setting: dict[str, set[Start]] = {}
            for start, column in verdict.missing:
                by_setting.setdefault(column.setting.label, set()).add(start)
            shown = "; ".join(
                f"{label}: {', '.join(start.label for start in sorted(starts))}"
                for label, starts in by_setting.items()
            )
            items.append(f"{name}: {len(verdict.missing)} of {cells} cells without a run. {shown}.")
        paper = Counter((r.n_hidden, r.c, r.gain) for r in part if r.scheme == BETA_MAX.scheme)
        if paper and min(paper.values()) < table.n_trials:
            items.append(f"{name}: down to {min(paper.values())} of the paper's {table.n_trials} trials.")
        rivals = set(find_spec(table.sweep).rivals) - {record.scheme for record in part}
        if rivals:
            items.append(f"{name}: no runs from {', '.join(sorted(rivals))} weights.")
    if LONG_RUN not in swept:
        items.append("Figure 4 (Dry Bean for long): nothing was run.")
    if not any(map(is_about_draws, swept)) and any(r.dataset == "toy" for r in records):
        items.append("Toy data: no runs on other draws of the data.")
    return tuple(items)
