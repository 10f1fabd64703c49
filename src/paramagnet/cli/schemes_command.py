"""``paramagnet schemes``: every initialization scheme, judged by the theory."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from paramagnet.package_scales import SchemeReport

_WIDE = 112  # columns of the terminal for all columns of the table
_NAME_WIDTH = 18  # of the columns with words
_NUMBERS = ("sigma", "/ ours", "/ critical", "q_v", "q_h", "correlation")
_NUMBERS_NARROW = ("sigma", "/ ours", "correlation")
_NOTES = (
    "/ ours: sigma over that of layer-correlation in the same unit types.",
    "/ critical: the coupling, in spin language, over the critical (nm)^(-1/4).",
    "correlation: between the layers, over its maximum; a dash where that is infinite.",
    "Packages with unit types of their own are judged in those, at zero bias.",
)


def schemes(
    visible_units: Annotated[int, typer.Option(help="Number of visible units, n.")],
    hidden_units: Annotated[int, typer.Option(help="Number of hidden units, m.")],
    visible: Annotated[
        str, typer.Option(help="Visible units: spin, bit, gaussian or categorical(q).")
    ] = "spin",
    hidden: Annotated[
        str, typer.Option(help="Hidden units: bit, spin, gaussian, relu, drelu or categorical(q).")
    ] = "bit",
    hidden_bias: Annotated[float, typer.Option(help="Hidden bias.")] = 0.0,
    scheme: Annotated[
        list[str] | None,
        typer.Option(help="A further scheme, as package.module:Name for a class of yours; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare initial scales: every scheme for these sizes, and what other packages do by default."""
    from paramagnet.package_scales import compare_schemes

    reports = compare_schemes(
        visible_units,
        hidden_units,
        visible=visible,
        hidden=hidden,
        hidden_bias=hidden_bias,
        schemes=scheme or [],
    )
    if as_json:
        typer.echo(json.dumps([_record(report) for report in reports]))
        return
    from paramagnet.cli.console import table_console

    console = table_console()
    console.print(
        f"Initial scales for {visible_units} x {hidden_units} units, {visible}-{hidden}, c = {hidden_bias:g}",
        style="italic",
    )
    wide = console.width >= _WIDE
    console.print(_table(reports, wide=wide))
    for note in _NOTES if wide else (*_NOTES[:1], *_NOTES[2:]):
        console.print(note, style="dim", markup=False, highlight=False)


def _table(reports: Sequence[SchemeReport], *, wide: bool) -> Table:
    """One row per scheme; a narrow terminal gets no columns for the overlaps and the critical coupling."""
    from rich.table import Table

    table = Table(padding=(0, 1) if wide else (0, 0))
    table.add_column("scheme", min_width=_NAME_WIDTH, overflow="fold")
    table.add_column("units", no_wrap=True)
    for heading in _NUMBERS if wide else _NUMBERS_NARROW:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("the machine it gives", min_width=_NAME_WIDTH)
    for i, report in enumerate(reports):
        if i and report.kind != reports[i - 1].kind:
            table.add_section()
        style = "bold green" if report.name == "layer-correlation" else None
        name, units, *numbers, words = _cells(report)
        shown = dict(zip(_NUMBERS, numbers, strict=True))
        chosen = [shown[heading] for heading in (_NUMBERS if wide else _NUMBERS_NARROW)]
        table.add_row(name, units, *chosen, words, style=style)
    return table


def _record(report: SchemeReport) -> dict[str, object]:
    values = asdict(report) | {"visible": report.visible.name, "hidden": report.hidden.name}
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in values.items()}


def show_ratio(ratio: float) -> str:
    """A ratio of two scales as the tables of the terminal and of the pages show it."""
    return f"{ratio:.2g}" if ratio < 0.1 else f"{ratio:.2f}"


def _cells(report: SchemeReport) -> list[str]:
    return [
        report.name,
        f"{report.visible}-{report.hidden}",
        f"{report.sigma:.3g}",
        show_ratio(report.to_ours),
        show_ratio(report.to_critical),
        *("-" if math.isnan(q) else f"{q:.3f}" for q in (report.q_v, report.q_h)),
        _percent(report.correlation),
        _describe(report),
    ]


def _percent(fraction: float) -> str:
    if math.isnan(fraction):
        return "-"
    return "< 0.1 %" if abs(fraction) < 1e-3 else f"{100 * fraction:.1f} %"


def _describe(report: SchemeReport) -> str:
    """The phase, and on which side of the maximum the machine lies."""
    if report.phase in ("spin glass", "replica symmetry broken"):
        return f"{report.phase}: chains freeze"
    if report.phase == "unknown":
        return "too strongly coupled for the theory"
    edge = math.isnan(report.correlation) and report.phase == "replica symmetric"  # there is no maximum
    if report.name == "layer-correlation":
        where = "at the edge of the centred machine" if edge else "at the maximum"
    elif report.to_ours < 0.3:
        where = "weakly coupled"
    else:
        goal = "edge" if edge else "maximum"
        where = f"near the {goal}" if report.to_ours <= 1.5 else f"past the {goal}"
    phase = "stable" if report.phase == "replica symmetric" else report.phase
    return f"{phase}, {where}"
