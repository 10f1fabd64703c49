"""``paramagnet table``: the paper's appendix C beside our values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paramagnet.reproduction.paper import PaperBetaMax

_KINDS = {"bit": ("bit",), "spin": ("spin",), "both": ("bit", "spin")}
_ALPHA_WIDTH, _CELL_WIDTH = 9, 17  # of the columns, with their borders
_DIFFERS, _MISPRINT = "*", "!"  # behind a value; colours are lost in files and pipes


def table(
    hidden: Annotated[str, typer.Option(help="Hidden units: bit, spin or both.")] = "both",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print every beta_max of the paper's appendix C with the value computed here."""
    from paramagnet.reproduction.paper import read_beta_max
    from paramagnet.theory.scale import beta_max

    if hidden not in _KINDS:
        from paramagnet._checks import shown_near

        raise ValueError(f"`--hidden` must be bit, spin or both, got {shown_near(hidden, _KINDS)}.")
    kinds = _KINDS[hidden]
    rows = {kind: [row for row in read_beta_max() if row.hidden == kind] for kind in kinds}
    ours = {
        kind: beta_max([row.alpha for row in part], hidden=kind, c=[row.c for row in part])
        for kind, part in rows.items()
    }
    if as_json:
        typer.echo(
            json.dumps(
                [
                    _record(row, value)
                    for kind in kinds
                    for row, value in zip(rows[kind], ours[kind], strict=True)
                ]
            )
        )
        return
    from paramagnet.cli.console import table_console

    console = table_console()
    for kind in kinds:
        _print_grid(console, kind, rows[kind], ours[kind])


def _record(row: PaperBetaMax, value: float) -> dict[str, object]:
    from paramagnet.reproduction.paper import MISPRINTS

    return {"hidden": row.hidden, "alpha": row.alpha, "c": row.c, "paper": row.beta_max, "ours": value,
            "misprint": MISPRINTS.get((row.hidden, row.alpha, row.c))}  # fmt: skip


def _print_grid(console: Console, kind: str, rows: list[PaperBetaMax], ours: object) -> None:
    """The values of one kind of hidden units; on a narrow terminal some columns below the others."""
    import numpy as np
    from rich.table import Table

    values = np.asarray(ours)
    console.print(f"beta_max, spin visible and {kind} hidden units: ours (paper)", style="italic")
    biases = sorted({row.c for row in rows}, reverse=True)
    at_once = max(1, (console.width - _ALPHA_WIDTH) // _CELL_WIDTH)
    for first in range(0, len(biases), at_once):
        grid = Table(padding=(0, 0, 0, 1))  # a mark, or a space, stands where the right padding would be
        grid.add_column("alpha ", no_wrap=True)
        for c in biases[first : first + at_once]:
            grid.add_column(f"{f'c = {c:g}':>14} ", no_wrap=True)
        for alpha in sorted({row.alpha for row in rows}):
            cells = []
            for c in biases[first : first + at_once]:
                (i,) = (i for i, row in enumerate(rows) if (row.alpha, row.c) == (alpha, c))
                cells.append(_cell(rows[i], values[i]))
            grid.add_row(f"{alpha:>5g} ", *cells)
        console.print(grid)
    rounds = sum(f"{value:.3f}" == f"{row.beta_max:.3f}" for row, value in zip(rows, values, strict=True))
    note = f"{rounds} of {len(rows)} values round as printed"
    if rounds < len(rows):
        note += f"; {_DIFFERS}: the last decimal differs; {_MISPRINT}: a misprint in the paper"
    console.print(note, style="dim", markup=False, highlight=False)


def _cell(row: PaperBetaMax, value: float) -> str:
    from paramagnet.reproduction.paper import MISPRINTS

    text = f"{value:.4f} ({row.beta_max:.3f})"
    if (row.hidden, row.alpha, row.c) in MISPRINTS:
        return f"[bold red]{text}{_MISPRINT}[/bold red]"
    if f"{value:.3f}" != f"{row.beta_max:.3f}":
        return f"[yellow]{text}{_DIFFERS}[/yellow]"
    return f"{text} "
