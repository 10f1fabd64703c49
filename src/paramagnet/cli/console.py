"""Where tables are printed."""

from __future__ import annotations

from rich.console import Console

_PIPED_WIDTH = 140


def table_console() -> Console:
    """As wide as the terminal; in a file or a pipe, as wide as the tables, rather than rich's 80 columns."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, _PIPED_WIDTH))
