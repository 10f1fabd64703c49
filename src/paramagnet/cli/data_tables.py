"""``paramagnet data`` for tables of anything: their columns, and binary points made of them."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paramagnet.cli.console import say, screen_width
from paramagnet.cli.table_options import TableOptions, label_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paramagnet.data.columns import Columns
    from paramagnet.data.kinds import ColumnInfo
    from paramagnet.data.summary import Summary
    from paramagnet.data.table import Label, Table

_TABLES = (".csv", ".tsv", ".arff", ".parquet")
_LISTED = 40  # columns, unless all are asked for
_FEWEST_TO_SPLIT = 5  # rows of which 20 % are at least one
_NAME, _NARROWEST = 24, 12  # characters of a name and of examples
_LONGEST = 12  # characters of a number among the examples; longer ones are rounded


def is_table(name: str) -> bool:
    """Whether a name is that of a file with columns of any kind."""
    from paramagnet.data.sources import SOURCES

    return name not in SOURCES and Path(name).is_file() and Path(name).suffix.lower() in _TABLES


def print_columns(path: Path, label: Label, options: TableOptions, *, full: bool, as_json: bool) -> None:
    """Print what each column of a table holds; of a table of numbers also what ``info`` says of others."""
    from paramagnet.cli import data_text
    from paramagnet.data.columns import POINT, read_columns
    from paramagnet.data.kinds import describe_columns
    from paramagnet.data.summary import summarize

    asked = (label,) if isinstance(label, str) else ()
    header, marks = options.header, options.missing_values
    table = read_columns(path, header, asked, options.decimal or POINT, marks)
    infos = describe_columns(table)
    plain = table.decimal == POINT and marks is None
    content = _as_numbers(path, label, header, infos) if plain else None
    summary = None if content is None else summarize(content.data)
    if as_json:
        record = {} if content is None or summary is None else data_text.as_json(str(path), content, summary)
        described = [asdict(info) for info in infos]
        rows = {"name": str(path), "n_rows": table.n_rows, "n_columns": len(infos), "columns": described}
        typer.echo(json.dumps(record | rows))
        return
    if content is None or summary is None:
        header_text = "with a header" if table.header else "without a header"
        say(f"{path}: {table.n_rows} rows, {len(infos)} columns, {header_text}")
    else:
        for line in data_text.describe(str(path), content, summary):
            say(line)
    _print_rows(infos, full)
    _print_advice(path, table, infos, content, summary)


def _as_numbers(path: Path, label: Label, header: bool | None, infos: Sequence[ColumnInfo]) -> Table | None:
    """The table of numbers, if all columns but one of labels are numbers."""
    from paramagnet.data.files import read_table

    others = [info for info in infos if info.kind != "number" and not info.label]
    if len(others) > 1 or (others and label is None and others[0].kind != "text"):
        return None  # the command lists the columns all the same
    try:
        return read_table(path, label=label, header=header)
    except ValueError:
        if label is not None:
            raise
        return None


def _print_rows(infos: Sequence[ColumnInfo], full: bool) -> None:
    shown = infos if full else infos[:_LISTED]
    name_width = max(6, min(_NAME, max(len(info.name) for info in shown)))
    width = screen_width() or 100
    room = max(_NARROWEST, width - name_width - 40)
    say(f"{'no':>4s}  {'column':{name_width}s}  {'type':10s}  {'missing':>7s}  {'values':>6s}  examples")
    for info in shown:
        examples = _cut(_examples(info), room)
        name = _cut(info.name, name_width)
        typer.echo(
            f"{info.number:4d}  {name:{name_width}s}  {info.kind:10s}  {info.n_missing:7d}  "
            f"{info.n_distinct:6d}  {examples}".rstrip()
        )
    if len(shown) < len(infos):
        say(f"{len(shown)} of {len(infos)} columns; --full lists all.")


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())  # a cell may have several lines
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _examples(info: ColumnInfo) -> str:
    if info.kind == "number" and len(info.examples) == 2 < info.n_distinct:  # the lowest and the highest
        ends = (f"{float(end):.6g}" if len(end) > _LONGEST and "." in end else end for end in info.examples)
        return " to ".join(ends) + (" (an index?)" if info.index else "")
    return ", ".join(info.examples)


def _print_advice(
    path: Path,
    table: Columns,
    infos: Sequence[ColumnInfo],
    content: Table | None,
    summary: Summary | None,
) -> None:
    """Say which columns are in the way, and a command that learns the table."""
    from paramagnet.data.columns import COMMA, POINT, read_columns
    from paramagnet.data.fitting import find_labels, suggest_options
    from paramagnet.data.kinds import describe_columns
    from paramagnet.data.rows import DECIMAL_HINT

    labels = find_labels(table, None)
    for info in infos:
        if info.index:
            say(f"{info.title} seems to number the rows: it is learned unless you leave it out by `--drop`.")
        if content is None and info.number - 1 in labels:
            say(label_words(info))
        if info.kind == "mixed":
            say(f"{info.title} has cells that are no numbers: {info.remark}")
    if any(DECIMAL_HINT in info.remark for info in infos):
        say("Read commas as decimal signs by `--decimal ,`.")
        table = read_columns(path, table.header, (), COMMA, table.missing_values)
        infos = describe_columns(table)
    marks = dict.fromkeys((*table.missing_values, *(mark for info in infos for mark in info.marks)))
    if len(marks) > len(table.missing_values):
        stand = "stands for a missing cell" if len(marks) == 1 else "stand for missing cells"
        say(
            f"The command below takes it that {' and '.join(map(repr, marks))} {stand} "
            "(`--missing-values`); if not, leave out the column by `--drop`."
        )
        table = read_columns(path, table.header, (), table.decimal, [*marks])
    if summary is not None and summary.binary and not any(info.index for info in infos):
        return
    drop, gaps = suggest_options(table)
    words = ["paramagnet", "train", str(path), *(["--drop", ",".join(drop)] if drop else [])]
    words += ["--decimal", table.decimal] if table.decimal != POINT else []
    words += ["--missing-values", ",".join(marks)] if marks else []
    words += ["--missing", "mode"] if gaps else []
    words += ["--held-out", "0.2"] if table.n_rows >= _FEWEST_TO_SPLIT else []
    words += ["--learning-rate", "0.01", "--out", f"{path.stem}.safetensors"]
    say(f"learn it: {shlex.join(words)}")


def is_preparation(path: Path) -> bool:
    """Whether a file of a rule holds a preparation, not the thresholds of a binarizer."""
    try:
        return '"paramagnet.preparation"' in path.read_text(encoding="utf-8")[:200]
    except (OSError, UnicodeDecodeError):
        return False


def needs_preparation(source: str, options: TableOptions) -> bool:
    """Whether a table has more than numbers, or options say which of its columns are meant."""
    if not is_table(source):
        return False
    said = (options.columns, options.drop, options.missing, options.categories, options.decimal)
    if any(said) or options.missing_values or "," in (options.label or ""):
        return True
    from paramagnet.data.columns import as_choices, read_columns
    from paramagnet.data.fitting import find_labels
    from paramagnet.data.kinds import describe_columns

    table = read_columns(Path(source), options.header, as_choices(options.label, "label"))
    labels = find_labels(table, False if options.no_label else options.label)
    others = [info for info in describe_columns(table) if info.number - 1 not in labels]
    return any(info.kind != "number" or info.n_missing for info in others)


def binarize_table(
    source: Path, out: Path, options: TableOptions, units: str, *, save: Path | None, use: Path | None
) -> None:
    """Make a table binary column by column, and write it."""
    import numpy as np

    from paramagnet._files import write_atomically
    from paramagnet.cli.csv_output import write_csv
    from paramagnet.cli.points_source import load_training
    from paramagnet.data.preparation import Preparation

    if options.numbers_rule == "stochastic":
        raise ValueError("`--method` must be otsu, median or a number for a table with other columns.")
    if use is not None:
        preparation = Preparation.load(use)
        states = preparation.apply(source, header=options.header, missing=options.missing)
    else:
        points = load_training(source, units, options, None, None)
        assert isinstance(points.preparation, Preparation)
        preparation, states = points.preparation, points.states
    small = states.astype(np.int8) if preparation.units.values is not None else states
    if out.suffix.lower() == ".csv":
        write_csv(out, preparation.unit_names, small.tolist())
    else:
        stream = io.BytesIO()
        if out.suffix.lower() == ".npy":
            np.save(stream, small)
        else:
            np.savez_compressed(stream, data=small)
        write_atomically(out, stream.getvalue())
    say(f"{source}: {len(states)} points of {preparation.n_visible} {preparation.units} units")
    if save is not None:
        preparation.save(save)
        typer.echo(f"rule: {save}")
    typer.echo(f"data: {out}")
