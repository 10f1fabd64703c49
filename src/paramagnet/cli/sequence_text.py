"""What ``paramagnet data info`` says of an alignment."""

from __future__ import annotations

import contextlib
import json
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paramagnet.cli.console import say
from paramagnet.cli.sequence_points import count_of
from paramagnet.cli.table_options import TableOptions, plain_warnings

if TYPE_CHECKING:
    from paramagnet.data.alignment import Alignment

_IDENTITY = 0.8
_LISTED = 8


def print_alignment(path: Path, options: TableOptions, *, plot: Path | None, as_json: bool) -> None:
    """Print what an alignment holds, and the command that learns it; draw its frequencies if asked."""
    from paramagnet.data.alignment import read_alignment

    with _ignored_warnings() if as_json else plain_warnings():
        alignment = read_alignment(
            path,
            alphabet=options.alphabet,
            unknown=options.unknown or "gap",
            insertions=options.insertions or "drop",
        )
    facts = facts_of(alignment)
    if as_json:
        typer.echo(json.dumps({"name": str(path), **facts}, allow_nan=False))
    else:
        for line in _lines(path, alignment, facts, options):
            say(line)
    if plot is not None:
        from paramagnet.data.similarity import site_frequencies
        from paramagnet.plots import save_figure
        from paramagnet.sequence_plots import plot_frequencies

        figure = plot_frequencies(
            site_frequencies(alignment, pseudo_count=0.0), alignment.alphabet, sites=alignment.site_names
        )
        save_figure(figure, plot)
        typer.echo(f"figure: {plot}", err=as_json)


@contextlib.contextmanager
def _ignored_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def facts_of(alignment: Alignment) -> dict[str, Any]:
    """The numbers that describe an alignment."""
    import numpy as np

    from paramagnet.data.alphabet import GAP
    from paramagnet.data.similarity import sequence_weights, site_frequencies
    from paramagnet.learning.independent import level_of

    data = alignment.data
    gap = alignment.alphabet.find(GAP)
    gaps = None if gap < 0 else (data == gap).mean(axis=0)
    present = site_frequencies(alignment, pseudo_count=0.0) > 0.0
    weights, names = alignment.counts, alignment.site_names
    return {
        "n_sequences": len(alignment),
        "n_sites": alignment.n_sites,
        "n_columns": alignment.n_columns,
        "alphabet": alignment.alphabet,
        "found": list(alignment.found),
        "gap_share": None if gaps is None else float(gaps.mean()),
        "most_gaps": None if gaps is None else [names[int(gaps.argmax())], float(gaps.max())],
        "constant": [names[int(i)] for i in np.flatnonzero(present.sum(axis=1) == 1)],
        "n_duplicates": len(data) - len({row.tobytes() for row in data}),
        "n_effective": float(sequence_weights(alignment, _IDENTITY).sum()),
        "letters_absent": int((~present).sum()),
        "log_likelihood_independent": level_of(alignment.units, data, data, weights, weights),
    }


def _lines(path: Path, alignment: Alignment, facts: dict[str, Any], options: TableOptions) -> list[str]:
    lines = [f"{path}: {count_of(facts['n_sequences'], 'sequence')} of {count_of(facts['n_sites'], 'site')}"]
    lines.append(f"found: {'; '.join(alignment.found)}")
    if facts["gap_share"] is not None:
        site, share = facts["most_gaps"]
        lines.append(f"gaps: {100 * facts['gap_share']:.1f} % (column {site}: {100 * share:.1f} %)")
    constant = facts["constant"]
    listed = ", ".join(constant[:_LISTED]) + (", ..." if len(constant) > _LISTED else "")
    lines.append(f"constant sites: {len(constant)}{f' (columns {listed})' if constant else ''}")
    n_pairs = facts["n_sites"] * len(alignment.alphabet)
    lines.append(f"letters that never occur: {facts['letters_absent']} of {n_pairs} at all sites")
    lines.append(f"duplicate sequences: {facts['n_duplicates']}")
    lines.append(f"effective number at identity {_IDENTITY:g}: {facts['n_effective']:.1f}")
    level = facts["log_likelihood_independent"]
    lines.append(f"log-likelihood of independent sites: {level:.4f} nats per sequence")
    words = ["paramagnet", "train", str(path)]
    given = {
        "--alphabet": options.alphabet,
        "--unknown-letters": options.unknown,
        "--insertions": options.insertions,
    }
    for flag, value in given.items():
        words += [] if value is None else [flag, value]
    words += [] if alignment.counts is not None else ["--reweight", f"{_IDENTITY:g}"]
    words += ["--held-out", "0.2", "--out", f"{path.name.split('.')[0]}.safetensors"]
    lines.append(f"learn it: {shlex.join(words)}")
    return lines
