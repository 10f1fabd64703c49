"""Tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramagnet.sweeps.sheet import Lines, Sheet


_LABEL_WIDTH, _CELL_WIDTH = 9, 15  # of a table on the terminal


def print_sheet(sheet: Sheet) -> None:
    """Print a table, in parts on a narrow terminal."""
    from rich.table import Table

    from paramagnet.cli.console import table_console

    console = table_console()
    groups = [label for label, span in sheet.groups for _ in range(span)] or [""] * len(sheet.columns)
    fits = console.width >= _LABEL_WIDTH + _CELL_WIDTH * len(groups)
    console.print(sheet.title, style="bold", markup=False)
    # On a narrow terminal one group of columns below the other.
    for shown in (set(groups),) if fits else ({group} for group in dict.fromkeys(groups)):
        chosen = [number for number, group in enumerate(groups) if group in shown]
        grid = Table(padding=(0, 0))
        grid.add_column(sheet.corner)
        for number in chosen:
            heading = f"{groups[number]}\n{sheet.columns[number]}".strip()
            grid.add_column(heading, justify="right", no_wrap=True)
        for label, cells in sheet.rows:
            grid.add_row(label, *(_terminal(cells[number]) for number in chosen))
        console.print(grid)
    for note in sheet.notes:
        console.print(note, style="dim")


def _terminal(lines: Lines) -> str:
    from rich.markup import escape

    parts = []
    for line in lines:
        style = " ".join(word for word in ("bold" * line.bold, "dim" * line.quiet) if word)
        parts.append(f"[{style}]{escape(line.text)}[/{style}]" if style else escape(line.text))
    return "\n".join(parts)
