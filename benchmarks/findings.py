"""results/findings.md: what the records say, every number of it computed from them.

    python benchmarks/reproduction_page.py

The sentences are written here and hold numbers only where a record is read. Where a sentence draws a
conclusion, the condition for it stands beside it (`holds`), and records that do not meet it are an error: the
sentence must then be written anew. A test compares the file with what this module makes of the records.
"""

from __future__ import annotations

import json
import math
import operator
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

import differences_tables
import hidden_noise
import mirror_chains
import mnist_selections
from paramagnet.reproduction.agreement import FEWEST_TRIALS, Comparison
from paramagnet.reproduction.annealing_check import FILE, load_checks
from paramagnet.reproduction.draws import Components
from paramagnet.reproduction.paper import LIKELIHOOD_MISPRINTS
from paramagnet.reproduction.paper_tables import paper_cells
from paramagnet.reproduction.report import components_of
from paramagnet.reproduction.wording import EARLIER, kernels_of
from paramagnet.sweeps.groups import (
    BETA_MAX,
    GAINS,
    Start,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.store import RunRecord
from reproduction_facts import NAMES, PLACES, RESULTS, SCALED, Facts, between, holds, listed, trials_of


def result_of_the_paper(facts: Facts) -> str:
    """The ranks after the last epoch, and the misprinted cell."""
    tied = Counter[str]()
    for setting in facts.complete:
        shown = {gain: round(mean, 2) for gain, mean in facts.means(setting).items()}
        place = 1 + sum(value > shown[1.0] for value in shown.values())
        alone = sum(value == shown[1.0] for value in shown.values()) == 1
        tied["sole best" if place == 1 and alone else "tied" if place == 1 else PLACES[place]] += 1
    ranks = [
        rank
        for verdict in facts.verdicts
        for rank in verdict.ranks
        if rank.ours is not None and rank.column.epoch == facts.last_epochs[rank.column.setting]
    ]
    holds(len(ranks) == len(facts.complete), "all five gains were run")
    same = sum(rank.ours == rank.paper for rank in ranks)
    n = len(facts.complete)
    others = [f"{PLACES[place]} in {tied[PLACES[place]]}" for place in range(2, 6) if tied[PLACES[place]]]
    holds(tied["sole best"] + tied["tied"] > n / 2, "The paper's result holds.")
    total = len(facts.last_epochs)
    where = (
        f"In all {n} settings"
        if n == total
        else f"In the {n} of {total} settings whose five gains were all run"
    )
    words = (
        f"**The paper's result holds.** {where}, β_max is the sole best after the last epoch in "
        f"{tied['sole best']}, tied for it at two decimals in {tied['tied']}, {listed(others)}. Its rank is "
        f"the paper's in {same} of {n}."
    )
    return " ".join(part for part in (words, _leads(facts), _misprinted_cell(facts)) if part)


def _leads(facts: Facts) -> str:
    """In how many settings beta_max leads, or is behind, by more than two standard errors."""
    sentences = []
    groups = {
        "with at least ten trials of each gain": facts.settings_by_trials(FEWEST_TRIALS, math.inf),
        "with fewer trials, where the paper's spread over trials stands for ours,": facts.settings_by_trials(
            1, FEWEST_TRIALS - 1
        ),
    }
    for words, settings in groups.items():
        if settings:
            leads = {setting: facts.leads(setting) for setting in settings}
            ahead = [
                min(gap for gap, _ in part)
                for part in leads.values()
                if all(gap > 2.0 * error for gap, error in part)
            ]
            behind = sum(any(gap < -2.0 * error for gap, error in part) for part in leads.values())
            how_far = f", by {between(ahead, 3 if min(ahead) < 0.01 else 1)} nats" if ahead else ""
            sentences.append(
                f"In the {len(settings)} settings {words} it is ahead of all other gains by more than two "
                f"standard errors of the difference in {len(ahead)}{how_far}, and behind one of them by more "
                f"than that in {behind}."
            )
    return " ".join(sentences)


def _misprinted_cell(facts: Facts) -> str:
    (c, gain), *_ = {(c, gain) for _, c, gain, _ in LIKELIHOOD_MISPRINTS}
    (setting,) = (s for s in facts.last_epochs if (s.dataset, s.hidden, s.c) == ("mnist", "bit", c))
    start, runs = Start(gain=gain), facts.runs.get(setting, {})
    printed = [
        (column.epoch, cell.mean)
        for (where, column), cell in paper_cells("MNIST_binary").items()
        if where == start and column.setting == setting
    ]
    ours = [summarize_trials(values_at(runs.get(start, ()), epoch).values()) for epoch, _ in printed]
    if not all(summary.n_finite for summary in ours):
        return ""
    means = [summary.mean for summary in ours]
    holds(means == sorted(means), "a learning curve that rises")
    return (
        f"The misprinted cell of Table 9, c = {c:g} from {start.label}, has "
        f"{listed([f'{mean:.1f}' for mean in means])} after {listed([str(epoch) for epoch, _ in printed])} "
        f"epochs ({trials_of(ours[0].n_finite)}), a learning curve that rises, where "
        f"{listed([f'{value:.2f}' for _, value in printed])} are printed."
    )


def where_we_differ(facts: Facts) -> str:
    """Cells that are further apart than the rule allows."""
    compared = sum(len(verdict.comparisons) for verdict in facts.verdicts)
    apart = {verdict.table.number: verdict.differing for verdict in facts.verdicts if verdict.differing}
    total = sum(map(len, apart.values()))
    tables = listed([f"{len(part)} in Table {number}" for number, part in apart.items()])
    words = f"**Where we differ.** {total} of {compared} differences to β_max are not the paper's: {tables}."
    seven = apart.get(7, ())
    early = [c for c in seven if c.column.setting.c < 0.0 and c.start.gain < 1.0 and c.column.epoch == 40]
    if not early:
        return words
    holds(all(c.gap > 0.0 for c in early), "small weights learn faster early on")
    share = _noise_shares()
    selections = [r.log_likelihood[-1] for r in facts.records if r.sweep == "ulc_points" and r.gain == 0.5]
    (printed,) = (
        cell.mean
        for (start, column), cell in paper_cells("ULC_binary").items()
        if (start.gain, column.setting.c, column.epoch) == (0.5, -5.0, 40)
    )
    holds(min(selections) > printed + 3.0, "the selection of points does not explain it")
    return (
        f"{words} In Table 7, {len(early)} of {len(seven)} are of machines with sparse bits (c < 0) that "
        f"start below β_max, after 40 epochs, where ours are ahead of the paper's by "
        f"{between((c.gap for c in early), 1)} nats. The selection of points does not explain it: from "
        f"β_max/2 at c = -5, {len(selections)} runs, each on another selection, end between "
        f"{min(selections):.1f} and {max(selections):.1f} after 40 epochs, the paper's value is "
        f"{printed:.1f}. Drawing the hidden "
        f"states of the model in the gradient, where we take their means, goes {between(share, 0)} % of "
        "the way to the "
        'paper\'s values. The experiments are in the page "Where we differ" of the documentation.'
    )


def table_9(facts: Facts) -> str:
    """Which differences of Table 9 do not agree; nothing where all do."""
    words = differences_tables.table_9(facts)
    return f"**Where Table 9 differs.** {words}" if words else ""


def _noise_shares() -> list[float]:
    """How far drawn states go from our values to the paper's at small weights, in percent."""
    head, rows = hidden_noise.table_rows()
    drawn = head.index("drawn under the model")
    shares = []
    for row in rows:
        if row[1].endswith(("/4", "/2")):
            paper, means, value = (float(row[i].split()[0]) for i in (2, 3, drawn))
            shares.append(100.0 * (means - value) / (means - paper))
    return shares


def drawn_once(facts: Facts) -> str:
    """What the draw of the toy data does to levels and to differences."""
    printed = {where: cell for v in facts.verdicts for where, cell in paper_cells(v.table.key).items()}
    on_one, anew = [], []
    for (start, column), parts in facts.level_components.items():
        once = summarize_trials(values_at(facts.runs[column.setting][start], column.epoch).values()).std
        on_one.append(printed[start, column].std / once)
        anew.append(parts.total_spread / once)
    holds(0.8 < median(on_one) < 1.25 and median(anew) > 2.0, "The toy data were drawn once.")
    within = sum(3.0 <= ratio <= 10.0 for ratio in anew)
    differences = components_of(facts.records)
    shown = [
        differences[c.start, c.column] for c in _toy_comparisons(facts) if (c.start, c.column) in differences
    ]
    levels = [part.spread for part in facts.level_components.values()]
    worst = max(_toy_comparisons(facts), key=lambda c: c.spread)
    holds(worst.spread > 10.0 * median(part.spread for part in shown), "nearly alike in most cells")
    used = [verdict for verdict in facts.verdicts if verdict.n_draws]
    n_draws, n_weights = (
        between([getattr(verdict, name) for verdict in used], 0) for name in ("n_draws", "n_weights")
    )
    share = [100.0 * part.interaction / _total(part) for part in shown]
    return (
        f"**The toy data were drawn once.** Over the {len(anew)} cells of Tables 1 to 3 the paper's standard "
        f"deviation over trials is {median(on_one):.2f} times ours on one draw in the median. With the data "
        f"drawn anew in every trial ours would be {median(anew):.1f} times as large in the median, "
        f"{between(anew, 1)} times in single cells, three to ten times in {100 * within / len(anew):.0f} % "
        f"of them. This is known from {n_draws} draws of the data times "
        f"{n_weights} draws of the weights. The draw moves a log-likelihood by "
        f"{median(levels):.3f} nats (median standard deviation), nearly alike in most cells of a table: a "
        f"difference to β_max moves by {median(part.spread for part in shown):.3f} in the median, though "
        f"from {worst.start.label} by up to {worst.spread:.2f}. The interaction of "
        f"data and weights is {median(share):.0f} % of the variance of a difference in the median; it "
        "averages out over trials and is no part of the allowance."
    )


def _total(part: Components) -> float:
    return max(part.draws, 0.0) + max(part.weights, 0.0) + part.interaction


def _toy_comparisons(facts: Facts) -> list[Comparison]:
    return [c for verdict in facts.verdicts if verdict.table.dataset == "toy" for c in verdict.comparisons]


def annealing(_: Facts) -> str:
    """The paper's check of mAIS."""
    checks = load_checks(RESULTS / FILE)
    worst = max(abs(check.change) for check in checks)
    holds(worst < 1e-3, "mAIS is good enough where it was checked")
    machines = []
    for name in (name for name in NAMES if name in {check.dataset for check in checks}):
        for effort in sorted({check.efforts[-1] for check in checks if check.dataset == name}):
            part = [check for check in checks if (check.dataset, check.efforts[-1]) == (name, effort)]
            epochs = listed([str(epoch) for epoch in sorted({check.epoch for check in part})])
            largest = 100 * max(abs(check.change) for check in part)
            count = f"{len(part)} machine" + "s" * (len(part) > 1)
            machines.append(
                f"S = {effort[0]:,} and K = {effort[1]:,} that of {count} of {NAMES[name]} after {epochs} "
                f"epochs by at most {largest:.3f} %"
            )
    starts = listed([Start(gain=gain).label for gain in sorted({check.gain for check in checks})])
    unchecked = [NAMES[name] for name in ("ulc", "mnist") if name not in {check.dataset for check in checks}]
    words = (
        "**mAIS is good enough where it was checked.** More samples and temperatures change the "
        f"log-likelihood little: {listed(machines)}. The machines started from {starts}. The paper says less "
        "than 0.1 % on average for S = K = 10,000."
    )
    return words + (f" {listed(unchecked)} was not checked." if unchecked else "")


def selections(facts: Facts) -> str:
    """Other selections of MNIST's images; nothing before they were run."""
    levels = mnist_selections.read_levels(facts.records)
    if min((len(level.ours) for level in levels), default=0) < mnist_selections.FEWEST:
        return ""
    (table_8,) = (verdict for verdict in facts.verdicts if verdict.table.sweep == mnist_selections.TABLE)
    gaps = [ours.mean - cell.mean for cell, ours in differences_tables.level_gaps(facts, table_8)]
    lead = (
        f"The values of Table 8 are {median(gaps):+.1f} nats from the paper's in the median. " if gaps else ""
    )
    return f"**Which images were selected.** {lead}{mnist_selections.describe_levels(levels)}"


def held_out(facts: Facts) -> str:
    """Points that were not learned."""
    n_toy, ahead = 0, []
    for setting in (setting for setting in facts.complete if setting.dataset == "toy"):
        n_toy += 1
        tested = facts.means(setting, "held_out")
        if max(tested, key=tested.__getitem__) == GAINS[0]:
            ahead.append(tested[GAINS[0]] - tested[1.0])
    holds(len(ahead) > n_toy / 2, "On the toy data the smallest gain is best")
    peaks = [
        (facts.best_epoch(setting, GAINS[0]), facts.best_epoch(setting, 1.0))
        for setting in facts.complete
        if setting.dataset == "toy"
    ]
    earlier, same = (sum(f(a, b) for (a, _), (b, _) in peaks) for f in (operator.gt, operator.eq))
    kept = [a - b for (_, a), (_, b) in peaks]
    holds(min(kept) > 0.0, "an early stop does not make up for the difference")
    return (
        f"**Points that were not learned** are another matter. {gain_agreement(facts)} On the toy data, "
        f"400 points, the smallest gain is the best one in {len(ahead)} of {n_toy} settings, "
        f"{between(ahead)} nats ahead of β_max. From β_max the held-out log-likelihood is highest at an "
        f"earlier epoch than from {Start(gain=GAINS[0]).label} in {earlier} of these settings and at the "
        f"same in {same}, but an early stop does not make up for the difference: each at its own best epoch, "
        f"{Start(gain=GAINS[0]).label} is ahead by {between(kept)} nats."
    )


def gain_agreement(facts: Facts) -> str:
    """In how many settings of the real data training and held-out points prefer the same gain."""
    same, totals, lost = Counter[str](), Counter[str](), [0.0]
    for setting in (setting for setting in facts.complete if setting.dataset != "toy"):
        trained, tested = facts.means(setting), facts.means(setting, "held_out")
        loss = max(tested.values()) - tested[max(trained, key=trained.__getitem__)]
        totals[setting.dataset] += 1
        same[setting.dataset] += loss == 0.0
        lost.append(loss)
    holds(same.total() > 0.8 * totals.total(), "training and held-out points prefer the same gain")
    counts = listed([f"{same[n]} of {totals[n]} settings of {NAMES[n]}" for n in NAMES if totals[n]])
    elsewhere = f", and at most {max(lost):.2g} nats behind the best one elsewhere" if max(lost) else ""
    return (
        "The gain that is best on the training points after the last epoch is also best on held-out points "
        f"in {counts}{elsewhere}."
    )


def other_weights(facts: Facts) -> str:
    """Xavier, LeCun, He and Hinton against beta_max, over the trials that both have."""
    dense = [v for s in SCALED for v in facts.rivals(s, "toy", "drybean", sparse=False).values()]
    ulc = [-v for s in SCALED for v in facts.rivals(s, "ulc", sparse=False).values()]
    toy = {s.n_hidden: -v for s, v in facts.rivals("xavier", "toy", sparse=True).items()}
    he = {s.c: v for s, v in facts.rivals("he", "ulc", sparse=True).items()}
    behind = facts.rivals("hinton", *NAMES)
    hinton = [-v for v in behind.values()]
    told = [facts.error_behind(s, "hinton") for s in behind]
    clear = sum(v > 2.0 * error for v, error in zip(hinton, told, strict=True))
    single = sum(math.isnan(error) for error in told)
    toy_errors = [facts.error_behind(s, "xavier") for s in facts.rivals("xavier", "toy", sparse=True)]
    counts = {
        len(values_at(runs.get(Start("he"), ()), facts.last_epochs[setting]))
        for setting, runs in facts.runs.items()
        if setting.dataset == "ulc"
    }
    holds(min(hinton) > 0.0, "Hinton's 0.01 is behind in every setting")
    holds(list(toy.values()) == sorted(toy.values()), "they fall behind as the hidden layer grows")
    return (
        "**Other initial weights.** With spins and with bits at c = 0 the scales of Xavier, LeCun and He end "
        f"within {max(map(abs, dense)):.2f} nats of β_max on the toy data and Dry Bean, and "
        f"{_behind(ulc)} on Urban Land Cover ({trials_of(max(counts))}). With sparse "
        "bits, c = -5, Xavier's falls behind on the toy data as the hidden layer grows: by "
        f"{listed([f'{v:.2f} ± {e:.2f}' for v, e in zip(toy.values(), toy_errors, strict=True)])} nats with "
        f"{listed([str(m) for m in toy])} hidden units. On Urban Land Cover at c = -5 He's is "
        f"{_behind([-he[-5.0]])}. Hinton's 0.01 is behind in all {len(hinton)} settings in which it was run, "
        f"by {min(hinton):.3f} to {max(hinton):.1f} nats: by more than two standard errors of the paired "
        f"difference in {clear} of {len(hinton) - single}, and {single} have one trial."
    )


def _behind(values: Sequence[float]) -> str:
    """How far behind beta_max some starts are; negative numbers are ahead."""
    if min(values) >= 0.0:
        return f"{between(values, 1)} nats behind it"
    if max(values) <= 0.0:
        return f"{between([-value for value in values], 1)} nats ahead of it"
    return f"between {-min(values):.1f} nats ahead of it and {max(values):.1f} behind"


def idle_units(_: Facts) -> str:
    """MNIST without visible biases."""
    rows: list[dict[str, Any]] = json.loads(mirror_chains.FILE.read_text(encoding="utf-8"))
    ours = {row["gain"]: row for row in rows if row["scheme"] == BETA_MAX.scheme and row["epoch"] == 100}
    biased = [row for row in rows if row["scheme"].endswith("+data")]
    chains = [row["mirrored_chains"] for row in ours.values()]
    idle = listed(
        [f"{100 * ours[gain]['idle_hidden']:.0f} % from {Start(gain=gain).label}" for gain in sorted(ours)]
    )
    holds(max(row["mirrored_chains"] for row in biased) == 0.0, "Biases from data prevent that.")
    return (
        "**On MNIST the start decides how many hidden units take part.** Without visible biases the weights "
        "first learn the mean image, and hidden units that follow it stay the same for all points. After 100 "
        f"epochs with spins these are {idle} (1 trial). {between((100 * c for c in chains), 0)} % of the "
        "persistent chains are in the negative of the data. With biases from data no chain is, and "
        f"{between((100 * row['idle_hidden'] for row in biased), 0)} % of the hidden units are idle after "
        f"{listed(sorted({str(row['epoch']) for row in biased}))} epochs."
    )


def time_taken(facts: Facts) -> str:
    """Core-hours, and a run before and after the faster kernels."""
    hours = sum(r.seconds for r in facts.records if math.isfinite(r.seconds)) / 3600.0
    words = f"**Time.** The {len(facts.records):,} runs took {hours:.1f} core-hours."
    spin = [
        r for r in facts.records
        if r.sweep in (mnist_selections.TABLE, mnist_selections.SWEEP) and Start(r.scheme, r.gain) == BETA_MAX
    ]  # fmt: skip
    old, new = _by_kernels(spin)
    if old and new:
        holds(mean(new) < mean(old), "the later kernels are faster")
        whole = sum(r.sweep == mnist_selections.TABLE and kernels_of(r) != EARLIER for r in spin)
        fewer = f"{len(new) - whole} of them " if whole else ""
        words += (
            f" A run of 100 epochs on MNIST with spins from β_max took {_seconds(old)} with the earlier "
            f"kernels and {_seconds(new)} with the int16 kernels, {fewer}with a few measurements less on the "
            f"way: {mean(new) / mean(old):.2f} of the time."
        )
    old, new = _by_kernels([r for r in facts.records if r.sweep == "mnist_bit"])
    if old and new:
        words += (
            f" With bits (Table 9) they took {_seconds(old)} and {_seconds(new)}, though not in the same "
            "cells."
        )
    return (
        f"{words} This is processor time of one core, on machines that did other work as well and need not "
        "be equally fast: records name only the kind of processor."
    )


def _by_kernels(records: Sequence[RunRecord]) -> tuple[list[float], list[float]]:
    """Seconds of runs by the earlier kernels, which records do not name, and by the int16 kernels."""
    timed = [(kernels_of(r), r.seconds) for r in records if math.isfinite(r.seconds)]
    return [s for name, s in timed if name == EARLIER], [s for name, s in timed if name == "int16"]


def _seconds(times: Sequence[float]) -> str:
    if len(times) == 1:
        return f"{times[0]:.0f} s (1 run)"
    return f"{mean(times):.0f} s ({len(times)} runs, {between(times, 0)})"


PARAGRAPHS = (
    result_of_the_paper,
    where_we_differ,
    table_9,
    drawn_once,
    annealing,
    selections,
    held_out,
    other_weights,
    idle_units,
    time_taken,
)


def write_findings(records: Sequence[RunRecord]) -> str:
    """The text of findings.md."""
    facts = Facts(records)
    paragraphs = (paragraph(facts) for paragraph in PARAGRAPHS)
    return "\n\n".join(["## Findings", *(text for text in paragraphs if text)]) + "\n"
