"""The tables of any sweep, as text."""

from __future__ import annotations

from collections.abc import Sequence

from paramagnet.sweeps.groups import Runs, group_runs
from paramagnet.sweeps.results_table import Column, make_table, to_sheet
from paramagnet.sweeps.sheet import Sheet
from paramagnet.sweeps.store import RunRecord


def sweep_sheets(records: Sequence[RunRecord], name: str, named: Sequence[int] = ()) -> list[Sheet]:
    """One table for each setting of the sweep ``name``, and for each version of its specification.

    ``named`` are epochs to show beside those that the records say the specification named.
    """
    sheets: list[Sheet] = []
    for version, runs in versions_of(records, name):
        for setting, starts in sorted(runs.items()):
            columns = [Column(setting, epoch) for epoch in _epochs_to_show(named, runs)]
            sizes = f"{setting.n_visible} {setting.visible} and {setting.n_hidden} {setting.hidden} units"
            title = f"{setting.dataset}, {sizes}, c = {setting.c:g}{version}"
            key = f"{name}_{len(sheets) + 1}"
            sheets.append(to_sheet(make_table(key, title, runs, sorted(starts), columns)))
    return sheets


def _epochs_to_show(named: Sequence[int], runs: Runs) -> list[int]:
    """The epochs that the specification of the runs names.

    Records of older versions do not say which; of these the last measured one is shown, and every second
    before it, three in all.
    """
    records = [run for starts in runs.values() for part in starts.values() for run in part]
    shown = {epoch for run in records for epoch in run.shown}
    shown |= set(named)
    measured = sorted({epoch for run in records for epoch in run.epochs})
    return sorted(shown) or measured[::-1][:5:2][::-1]


def versions_of(records: Sequence[RunRecord], name: str) -> list[tuple[str, Runs]]:
    """The runs of a sweep by version of its specification, the oldest first, each with words that name it."""
    parts: dict[str, list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: record.finished):
        if record.sweep == name:
            parts.setdefault(record.settings, []).append(record)
    if len(parts) == 1:
        return [("", group_runs(part)) for part in parts.values()]
    return [
        (f", settings {number} of {len(parts)}", group_runs(part))
        for number, part in enumerate(parts.values(), start=1)
    ]
