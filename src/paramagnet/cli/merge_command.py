"""``paramagnet merge``: put the records of several computers together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    sources: Annotated[list[Path], typer.Argument(help="Files of records (.jsonl), or folders of them.")],
    out: Annotated[Path, typer.Option(help="The file, or folder, to write; one of the sources, or new.")],
    force: Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")] = False,
    keep_first: Annotated[
        bool,
        typer.Option("--keep-first", help="Where files disagree about a run, take the one named first."),
    ] = False,
) -> None:
    """Put the records of several computers together, each run once.

    Folders are put together file by file. Records of the same run must agree, apart from when, where and how
    fast it was computed.
    """
    from paramagnet.sweeps.merge import merge_stores

    for merged in merge_stores(sources, out, force=force, keep_first=keep_first):
        twice = merged.n_given - merged.n_records
        text = f"{merged.path}: {merged.n_records} records"
        text += f", {twice} given more than once" if twice else ""
        text += f", {merged.n_conflicts} runs with different results" if merged.n_conflicts else ""
        typer.echo(text)
