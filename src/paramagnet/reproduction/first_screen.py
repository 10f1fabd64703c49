"""The first screen of the report: what agrees with the paper, what does not, and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paramagnet.reproduction.agreement import FEWEST_TRIALS, Rank, Verdict
from paramagnet.reproduction.document import Bullets, Paragraph, Section
from paramagnet.reproduction.paper import LIKELIHOOD_MISPRINTS, read_log_likelihoods
from paramagnet.reproduction.paper_tables import common_offset, paper_table
from paramagnet.reproduction.power import SIZES, Ladders, plant_fault, plant_faults
from paramagnet.reproduction.wording import AGREEMENT_RULE, span
from paramagnet.sweeps.groups import GAINS, Runs
from paramagnet.sweeps.sheet import Sheet, plain_sheet
from paramagnet.sweeps.store import RunRecord

N_CELLS = len(read_log_likelihoods())
N_DIFFERENCES = N_CELLS - N_CELLS // len(GAINS)
_SHOWN_SIZE = 0.1
_UNSEEN = 0.02  # a change of fewer than one difference in fifty tells nothing
_NAMES = {"ladder": "all five gains", "row": "the β_max row alone"}


def summary_section(
    verdicts: Sequence[Verdict], runs: Sequence[Runs], records: Sequence[RunRecord]
) -> Section:
    """What agrees, what does not, what the comparison could have seen, what it rests on.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Those on the tables that have runs.
    runs : sequence of dict
        The runs of each of these tables.
    records : sequence of RunRecord
        All records.
    """
    if not any(verdict.comparisons for verdict in verdicts):
        words = "No run belongs to a table of the paper, so there is nothing to compare."
        if verdicts:
            words = "No column has a run from β_max and from another gain, so nothing can be compared."
        return Section("Verdict", (Paragraph(words),))
    ladders = [Ladders(own) for own in runs]
    visible = _visible(verdicts, ladders)
    level = _levels(verdicts, runs)
    items = (_agreeing(verdicts), _differing(verdicts), level, visible, _resting(verdicts, records))
    blocks = (
        Bullets(items),
        _verdict_sheet(verdicts, ladders),
        _power_sheet(verdicts, ladders),
        Paragraph(AGREEMENT_RULE),
    )
    return Section("Verdict", blocks)


def _last(verdict: Verdict) -> list[Rank]:
    last_epoch = max(rank.column.epoch for rank in verdict.ranks)
    return [rank for rank in verdict.ranks if rank.column.epoch == last_epoch]


def _agreeing(verdicts: Sequence[Verdict]) -> str:
    compared = sum(len(verdict.comparisons) for verdict in verdicts)
    agreeing = sum(verdict.n_agreeing for verdict in verdicts)
    words = (
        "**What agrees.** The paper starts machines from weights of its scale β_max and of 1/4, 1/2, 2 and 4 "
        "times that scale, the five gains, and prints their log-likelihoods after training. "
        f"**{agreeing} of {compared}** differences between a cell and the β_max row agree with the paper's "
        f"({100 * agreeing / compared:.1f} %). The paper's nine tables hold {N_DIFFERENCES}, "
        f"{len(LIKELIHOOD_MISPRINTS)} of them misprinted."
    )
    ranks = [rank for verdict in verdicts for rank in _last(verdict) if rank.ours is not None]
    if ranks:
        same = sum(rank.ours == rank.paper for rank in ranks)
        ours, paper = (sum(getattr(rank, name) == 1 for rank in ranks) for name in ("ours", "paper"))
        words += (
            " After the last epoch β_max is the best gain, or level with the best at two decimals, in "
            f"{ours} of the {len(ranks)} settings in which all five were run, and in {paper} of them in the "
            f"paper; its rank is the paper's in {same}."
        )
    return words


def _differing(verdicts: Sequence[Verdict]) -> str:
    apart = {verdict.table.number: len(verdict.differing) for verdict in verdicts if verdict.differing}
    if not apart:
        return "**What does not.** No difference is further from the paper's than the rule allows."
    tables = ", ".join(f"{count} in Table {number}" for number, count in apart.items())
    words = (
        f"**What does not.** {sum(apart.values())} differences are further apart than the rule allows: "
        f"{tables}. By chance alone fewer than one in twenty would be."
    )
    few = sum(c.n_trials < FEWEST_TRIALS for verdict in verdicts for c in verdict.differing)
    if few:
        words += f" {few} of them rest on fewer than {FEWEST_TRIALS} trials of ours."
    return f"{words} Each is listed under its table."


def _levels(verdicts: Sequence[Verdict], runs: Sequence[Runs]) -> str:
    gaps = [f"{common_offset(paper_table(v.table, own)):+.2f}" for v, own in zip(verdicts, runs, strict=True)]
    numbers = [verdict.table.number for verdict in verdicts]
    row = len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1))
    where = f"{numbers[0]} to {numbers[-1]}" if row else _listed([f"{number}" for number in numbers])
    return (
        "**What is not compared.** The level that all cells of a table share, because our points are another "
        "draw or selection than the paper's. Ours minus the paper's is in the median over cells "
        f"{_listed(gaps)} nats per point in Table{'s' * (len(numbers) > 1)} {where}."
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _visible(verdicts: Sequence[Verdict], ladders: Sequence[Ladders]) -> str:
    pieces, ending = [], ""
    for fault, name in _NAMES.items():
        counts = []
        for size in SIZES:
            small, none, large = plant_faults(verdicts, ladders, fault, size)
            counts.append(span({small.n_agreeing, large.n_agreeing}))
            if (fault, size) == ("row", min(SIZES)):
                change = max(abs(part.n_agreeing - none.n_agreeing) for part in (small, large))
                ending = f" With {name} off by {100 * size:g} % the number changes by at most {change}"
                unseen = change <= _UNSEEN * none.n_compared
                ending += ", so an error of this kind and size would not be seen." if unseen else "."
        pieces.append(f"{_listed(counts)} with {name} off by {_percents()} %")
    return (
        f"**What the comparison could have seen.** {none.n_agreeing} of {none.n_compared} differences agree "
        "as it is. Had our machines started from other scales than stated, too small or too large, it would "
        f"be {'; '.join(pieces)}.{ending}"
    )


def _percents() -> str:
    return _listed([f"{100 * size:g}" for size in SIZES])


def _resting(verdicts: Sequence[Verdict], records: Sequence[RunRecord]) -> str:
    run = sum(5 * len(verdict.ranks) - len(verdict.missing) for verdict in verdicts)
    few = [c.n_trials for verdict in verdicts for c in verdict.comparisons if c.n_trials < FEWEST_TRIALS]
    hours = sum(record.seconds for record in records if math.isfinite(record.seconds)) / 3600.0
    words = (
        f"**What it rests on.** {run} of the paper's {N_CELLS} cells were run; {len(records):,} runs in all, "
        f"{hours:.1f} core-hours."
    )
    if few:
        words += (
            f" {len(few)} of the differences rest on {span(few)} trial{'s' * (max(few) > 1)} of ours each, "
            "and are judged by the paper's spread over trials."
        )
    crossed: dict[tuple[int, int], list[str]] = {}
    for verdict in (verdict for verdict in verdicts if verdict.n_draws):
        crossed.setdefault((verdict.n_draws, verdict.n_weights), []).append(f"{verdict.table.number}")
    if crossed:
        designs = "; ".join(
            f"{n_draws} draws of the data times {n_weights} of the weights in Table{'s' * (len(tables) > 1)} "
            + " and ".join(tables[-2:] if len(tables) < 3 else (", ".join(tables[:-1]), tables[-1]))
            for (n_draws, n_weights), tables in crossed.items()
        )
        words += f" What the draw of the toy data changes is known from {designs}."
    return words


def _verdict_sheet(verdicts: Sequence[Verdict], ladders: Sequence[Ladders]) -> Sheet:
    rows = []
    for verdict, own in zip(verdicts, ladders, strict=True):
        last = _last(verdict)
        rows.append(
            (
                f"{verdict.table.number}",
                verdict.table.title,
                span(comparison.n_trials for comparison in verdict.comparisons),
                f"{verdict.table.n_trials}",
                f"{verdict.n_agreeing} / {len(verdict.comparisons)}",
                "-" if math.isnan(verdict.share) else f"{100 * verdict.share:.0f} %",
                *(_planted(verdict, own, fault) for fault in _NAMES),
                _list_ranks([rank.ours for rank in last if rank.ours is not None]),
                _list_ranks([rank.paper for rank in last]),
            )
        )
    heading = (
        "Table", "data and machine", "trials", "paper's trials", "agreeing", "share",
        "if all gains were 10 % off", "if β_max were 10 % off", "rank of β_max", "paper's rank",
    )  # fmt: skip
    notes = (
        "Ranks are among the five gains after the last epoch, one for each setting; equals share a rank.",
        "10 % off: how many would agree, too small and too large, of those whose column has all five gains.",
    )
    return plain_sheet("verdicts", "Agreement with the paper, table by table", heading, rows, notes)


def _planted(verdict: Verdict, ladders: Ladders, fault: str) -> str:
    small, large = (plant_fault(verdict, ladders, fault, 1.0 + sign * _SHOWN_SIZE) for sign in (-1, 1))
    if not small.n_compared:
        return "-"
    return f"{small.n_agreeing}, {large.n_agreeing} / {small.n_compared}"


def _power_sheet(verdicts: Sequence[Verdict], ladders: Sequence[Ladders]) -> Sheet:
    heading = ["what is off", "as it is"]
    heading += [f"{100 * size:g} % too {way}" for size in SIZES for way in ("small", "large")]
    rows = []
    for fault, name in _NAMES.items():
        cells = []
        for size in SIZES:
            small, none, large = plant_faults(verdicts, ladders, fault, size)
            cells += [f"{small.n_agreeing}", f"{large.n_agreeing}"]
        rows.append((name, f"{none.n_agreeing} / {none.n_compared}", *cells))
    note = (
        "Computed from our runs: an Akima interpolation in the logarithm of the gain gives each column's "
        "log-likelihood between the five gains. Columns that lack a gain are left out."
    )
    title = "How many differences would agree if our scales were wrong"
    return plain_sheet("power", title, tuple(heading), rows, (note,))


def _list_ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks)) or "-"
