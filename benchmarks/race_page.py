"""The table and the figure of the race, from its records, into docs/race.md and docs/figures/race.png.

    python benchmarks/race_page.py

The page says how many of the planned runs there are. A test compares it with the records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from race import N_HIDDEN, SECONDS, SEEDS, Record, plan, read_records
from race_entrants import ENTRANTS

ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "race.md", ROOT / "docs" / "figures" / "race.png"
OURS = "paramagnet"
TITLES = {
    "digits": "digits",
    "drybean": "Dry Bean",
    "ulc": "Urban Land Cover",
    "mnist-3000": "MNIST, 3000",
    "mnist-60000": "MNIST, 60,000",
}
NAMES = {
    "paramagnet": "paramagnet, all defaults",
    "paramagnet, spins": "paramagnet, visible spins",
    "paramagnet, paper": "paramagnet as in the paper",
    "rbms": "rbms 0.5, defaults",
    "rbms, best": "rbms 0.5, best of 5",
    "scikit-learn": "scikit-learn, defaults",
    "scikit-learn, best": "scikit-learn, best of 4",
    "PyTorch": "PyTorch loop, rate 0.001",
    "PyTorch, best": "PyTorch loop, best of 4",
}
TABLE, END = "<!-- table: race -->", "<!-- end -->"
VERDICT = "<!-- verdict: race -->"


@dataclass(frozen=True)
class Level:
    """A mean over the test points and the seeds, in nats per point, with its two errors."""

    value: float
    of_points: float
    of_log_z: float
    n_seeds: int
    trusted: bool


@dataclass(frozen=True)
class Lead:
    """How far ours is ahead: the mean paired difference, with one error for all of it."""

    value: float
    error: float
    n_seeds: int

    @property
    def verdict(self) -> str:
        """Ahead or behind by more than two errors, or level."""
        if abs(self.value) <= 2.0 * self.error:
            return "level"
        return "ahead" if self.value > 0.0 else "behind"


def runs_of(records: Sequence[Record], data: str, entrant: str, seconds: float) -> dict[int, Record]:
    """The races of an entrant by seed; of repeated ones the last."""
    wanted = ("race", data, entrant, seconds)
    keys = ("purpose", "set", "entrant", "seconds")
    return {r["seed"]: r for r in records if tuple(r[key] for key in keys) == wanted}


def level_of(runs: dict[int, Record]) -> Level | None:
    """The level of an entrant; None without a run."""
    if not runs:
        return None
    values = np.array([run["test"] for run in runs.values()])
    points = values.mean(axis=0)
    errors = np.array([run["error_of_log_z"] for run in runs.values()])
    return Level(
        float(values.mean()),
        float(points.std(ddof=1) / math.sqrt(len(points))),
        float(math.sqrt((errors**2).sum()) / len(errors)),
        len(runs),
        all(run["trusted"] for run in runs.values()),
    )


def lead_over(ours: dict[int, Record], theirs: dict[int, Record]) -> Lead | None:
    """The lead of ``ours`` over the seeds that both have.

    Differences are paired per point. The error has three parts: that of the points, that of ln Z of all
    machines, and, from two seeds on, the scatter of the seeds.
    """
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return None
    gaps = np.array([np.subtract(ours[seed]["test"], theirs[seed]["test"]) for seed in seeds])
    of_points = gaps.mean(axis=0).std(ddof=1) / math.sqrt(gaps.shape[1])
    squares = [side[seed]["error_of_log_z"] ** 2 for seed in seeds for side in (ours, theirs)]
    variance = of_points**2 + sum(squares) / len(seeds) ** 2
    if len(seeds) > 1:
        variance += gaps.mean(axis=1).var(ddof=1) / len(seeds)
    return Lead(float(gaps.mean()), float(math.sqrt(variance)), len(seeds))


def make_table(records: Sequence[Record]) -> str:
    """A row for each set, time and entrant with a run."""
    lines = [
        "| data | seconds | entrant | held-out points | lead of the defaults | seeds | updates |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for data in N_HIDDEN:
        for seconds in SECONDS:
            ours = runs_of(records, data, OURS, seconds)
            for entrant in ENTRANTS:
                runs = runs_of(records, data, entrant, seconds)
                level = level_of(runs)
                if level is None:
                    continue
                lead = None if entrant == OURS else lead_over(ours, runs)
                text = "" if lead is None else f"{lead.value:+.3f} ({lead.error:.3f}), {lead.verdict}"
                doubt = "" if level.trusted else ", ln Z uncertain"
                updates = int(np.mean([run["n_updates"] for run in runs.values()]))
                lines.append(
                    f"| {TITLES[data]} | {seconds:g} | {NAMES[entrant]} | {level.value:.3f} "
                    f"({level.of_points:.3f}, {level.of_log_z:.3f}){doubt} | {text} | {level.n_seeds} | "
                    f"{updates} |"
                )
    return "\n".join(lines)


def make_verdict(records: Sequence[Record]) -> str:
    """How many runs there are, and against how many rivals the defaults are ahead."""
    jobs = list(plan([*N_HIDDEN], [*SECONDS], [*SEEDS]))
    made = sum(any(map(job.matches, records)) for job in jobs)
    counts: dict[str, int] = {}
    behind = []
    for data in N_HIDDEN:
        for seconds in SECONDS:
            ours = runs_of(records, data, OURS, seconds)
            for entrant, known in ENTRANTS.items():
                lead = None if known.ours else lead_over(ours, runs_of(records, data, entrant, seconds))
                if lead is None:
                    continue
                counts[lead.verdict] = counts.get(lead.verdict, 0) + 1
                if lead.verdict != "ahead":
                    behind.append(f"{TITLES[data]}, {seconds:g} s, {NAMES[entrant]} ({lead.value:+.3f})")
    total = sum(counts.values())
    text = f"**{made} of the {len(jobs)} planned runs are there.** "
    if not total:
        return text + "There is no pair to compare yet."
    text += (
        f"Of {total} comparisons with rivals, in one set at one time each, paramagnet with all defaults is "
        f"ahead by more than two errors in {counts.get('ahead', 0)}, level in {counts.get('level', 0)}, "
        f"behind in {counts.get('behind', 0)}."
    )
    return text + (f" Not ahead: {'; '.join(behind)}." if behind else "")


def draw(records: Sequence[Record], path: Path) -> bool:
    """One panel per set: the log-likelihood of held-out points against seconds; False without records."""
    from paramagnet.plots import save_figure

    sets = [d for d in N_HIDDEN if any(r["set"] == d and r["purpose"] == "race" for r in records)]
    if not sets:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(sets) + 1.6, 3.4), layout="constrained")
    axes = figure.subplots(1, len(sets), squeeze=False)[0]
    for panel, data in zip(axes, sets, strict=True):
        races = [r for r in records if r["set"] == data and r["purpose"] == "race"]
        lowest = float(races[0]["independent"])
        panel.axhline(lowest, color="0.7", linewidth=0.8)
        best = -math.inf
        for index, (entrant, known) in enumerate(ENTRANTS.items()):
            levels = [(s, level_of(runs_of(records, data, entrant, s))) for s in SECONDS]
            found = [(s, level) for s, level in levels if level is not None]
            if not found:
                continue
            best = max(best, *(level.value for _, level in found))
            panel.errorbar(
                [s for s, _ in found],
                [level.value for _, level in found],
                [2.0 * level.of_log_z for _, level in found],
                marker="osD^v<>ph"[index],
                color=f"C{index}",
                linewidth=2.0 if known.ours else 1.0,
                linestyle="-" if known.ours else "--",
                label=NAMES[entrant],
            )
        panel.set_ylim(lowest - 0.6 * (best - lowest), best + 0.1 * (best - lowest))
        panel.set_xscale("log")
        panel.set_xticks(SECONDS, [f"{s:g}" for s in SECONDS])
        panel.minorticks_off()
        panel.set(title=f"{TITLES[data]}, {N_HIDDEN[data]} hidden", xlabel="seconds")
    axes[0].set_ylabel("held-out log-likelihood, nats per point")
    axes[-1].legend(fontsize=6, loc="lower right")
    save_figure(figure, path)
    return True


def make_page(text: str, records: Sequence[Record]) -> str:
    """The page with the table and the verdict made anew."""
    for mark, content in ((TABLE, make_table(records)), (VERDICT, make_verdict(records))):
        before, found, rest = text.partition(mark)
        if not found:
            raise ValueError(f"the page must hold {mark}.")
        text = f"{before}{mark}\n{content}\n{END}{rest.partition(END)[2]}"
    return text


def main() -> None:
    records: list[dict[str, Any]] = read_records()
    PAGE.write_text(make_page(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")
    draw(records, FIGURE)


if __name__ == "__main__":
    main()
