"""``paramagnet data``: list the data sets, describe one, download it, and make data binary."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli import data_text
from paramagnet.cli.console import say
from paramagnet.cli.data_tables import (
    binarize_table,
    is_preparation,
    is_table,
    needs_preparation,
    print_columns,
)
from paramagnet.cli.flags import FlagGroup
from paramagnet.cli.points_file import Header
from paramagnet.cli.sequence_points import is_sequence_file
from paramagnet.cli.sequence_text import print_alignment
from paramagnet.cli.table_options import (
    AlphabetOption,
    CategoriesOption,
    ColumnsOption,
    DecimalOption,
    DropOption,
    InsertionsOption,
    LabelOption,
    MissingOption,
    MissingValuesOption,
    NoLabel,
    TableOptions,
    UnknownOption,
    plain_warnings,
)

if TYPE_CHECKING:
    from paramagnet.data.datasets import Dataset
    from paramagnet.data.table import Label, Table

app = typer.Typer(
    cls=FlagGroup, help="List, inspect, fetch and binarize data.", no_args_is_help=True, add_completion=False
)

_OUTPUTS = (".npy", ".npz", ".csv")

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the files of a named set; else PARAMAGNET_DATA, else the cache."),
]
Points = Annotated[
    int | None,
    typer.Option(
        help="Number of points to select at random; if not given, that of the paper, or all points of a file."
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="How to find the thresholds: otsu, median, stochastic, or a number, the threshold itself."
    ),
]
Per = Annotated[
    str | None,
    typer.Option(
        help="What has a threshold of its own: each feature, each point, or all data together (feature, "
        "point or all); if not given, chosen by the kind of data."
    ),
]
Units = Annotated[str, typer.Option(help="Values of the binary data: spin (-1 and +1) or bit (0 and 1).")]
Seed = Annotated[int | None, typer.Option(help="Seed of the selection and of stochastic draws.")]


@app.command("list")
def list_sets(
    data_dir: DataDir = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the data sets known by name, and where each of them is."""
    from paramagnet.data.sources import SOURCES

    rows = [
        {**data_text.facts(source), "where": data_text.where(source, data_dir)} for source in SOURCES.values()
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    typer.echo(f"{'name':12s}{'points':>8s}{'paper':>8s}{'features':>10s}{'classes':>9s}  where")
    for row in rows:
        typer.echo(
            f"{row['name']:12s}{row['points']:8d}{row['selected']:8d}{row['features']:10d}"
            f"{row['classes']:9d}  {row['where']}"
        )


@app.command()
def info(
    name: Annotated[str, typer.Argument(metavar="NAME-or-FILE", help="A name from `list`, or a data file.")],
    points: Points = None,
    binarize: Annotated[
        str | None, typer.Option(help="Binarize first: otsu, median, stochastic, or a threshold.")
    ] = None,
    per: Per = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    header: Header = None,
    decimal: DecimalOption = None,
    missing_values: MissingValuesOption = None,
    seed: Seed = None,
    data_dir: DataDir = None,
    alphabet: AlphabetOption = None,
    unknown_letters: UnknownOption = None,
    insertions: InsertionsOption = None,
    full: Annotated[bool, typer.Option("--full", help="List all columns of a wide table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw feature means and, of images, samples.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is in a data set: points, values, gaps, constant columns, duplicates, classes.

    For sequences (.fa, .fasta, .txt) it shows the alphabet, the sites and the effective number of sequences.

    For a table (.csv, .parquet, .arff) it lists the columns, each with its type, missing cells and different
    values, and proposes the command that trains a machine on them.

    A named set is binarized as in the paper. For binary data the command prints the lower and the upper bound
    of the log-likelihood of a machine that has learned them.
    """
    from paramagnet.data.files import read_table
    from paramagnet.data.sources import SOURCES
    from paramagnet.data.summary import summarize
    from paramagnet.plots import check_figure_path

    if plot is not None:
        check_figure_path(plot)
    if is_sequence_file(Path(name)):
        if binarize is not None or points is not None or per is not None:
            raise ValueError(f"`--binarize`, `--points` and `--per` are for numbers, got sequences: {name}.")
        options = TableOptions(alphabet=alphabet, unknown=unknown_letters, insertions=insertions)
        print_alignment(Path(name), options, plot=plot, as_json=as_json)
        return
    if plot is None and binarize is None and points is None and is_table(name):
        labels = _label_of(name, label, no_label, header)
        read = TableOptions(header=header, decimal=decimal, missing_values=missing_values)
        print_columns(Path(name), labels, read, full=full, as_json=as_json)
        return
    content: Dataset | Table
    if name in SOURCES or binarize is not None or points is not None or not Path(name).exists():
        content = _load(name, points, binarize or "otsu", per, label, no_label, header, seed, data_dir)
    else:
        content = read_table(name, label=_label_of(name, label, no_label, header), header=header)
    summary = summarize(content.data)
    if as_json:
        typer.echo(json.dumps(data_text.as_json(name, content, summary)))
    else:
        for line in data_text.describe(name, content, summary):
            say(line)
    if plot is not None:
        data_text.draw(content, plot)
        typer.echo(f"figure: {plot}", err=as_json)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name from `list`.")],
    data_dir: DataDir = None,
) -> None:
    """Download the files of a data set into the cache, unless they are there; check them in any case."""
    from paramagnet.data.download import cache_folder, find_local, read_source_file
    from paramagnet.data.sources import SOURCES

    if name not in SOURCES:
        from paramagnet._checks import near_names

        near = near_names(name, [*SOURCES])
        raise ValueError(f"`NAME` must be a data set of `paramagnet data list`, got {name!r}{near}.")
    source = SOURCES[name]
    if not source.files:
        typer.echo(f"{name}: nothing to download.")
    for file in source.files:
        content = read_source_file(source, file, data_dir=data_dir, progress=_bar(file.remote.name))
        place = find_local(source, file, data_dir) or cache_folder() / source.folder / file.remote.name
        say(f"{file.name}: {len(content)} bytes, sha256 {file.sha256[:8]}... is right, in {place}")


@app.command()
def binarize(
    source: Annotated[str, typer.Argument(metavar="IN", help="A name from `list`, or a data file.")],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The binary data: .npy, .npz (with labels) or .csv.")
    ],
    method: Method = "otsu",
    per: Per = None,
    units: Units = "spin",
    points: Points = None,
    seed: Seed = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    missing: MissingOption = None,
    categories: CategoriesOption = None,
    header: Header = None,
    decimal: DecimalOption = None,
    missing_values: MissingValuesOption = None,
    data_dir: DataDir = None,
    held_out: Annotated[Path | None, typer.Option(help="Where to write the points not selected.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Where to write the thresholds (.json), to --use them.")
    ] = None,
    use: Annotated[Path | None, typer.Option(help="Take the thresholds from this file.")] = None,
) -> None:
    """Make data binary and write them to a file.

    Every column of a table with text, True/False or missing cells becomes one or more units, as in `train`;
    --save then keeps the rule for all columns.
    """
    from paramagnet._files import writable_target
    from paramagnet.data.binarize import Binarizer
    from paramagnet.data.files import read_table

    for target in (out, held_out):
        if target is not None and target.suffix.lower() not in _OUTPUTS:
            raise ValueError(f"`OUT` must end in {', '.join(_OUTPUTS)}, got {str(target)!r}.")
    for target in (out, held_out, save):
        if target is not None:
            writable_target(target)
    options = TableOptions(
        columns, drop, label, no_label, missing, method, categories, header,
        decimal=decimal, missing_values=missing_values,
    )  # fmt: skip
    if (use is not None and is_preparation(use)) or (use is None and needs_preparation(source, options)):
        for flag, value in (("--per", per), ("--points", points), ("--held-out", held_out)):
            if value is not None:
                raise ValueError(f"`{flag}` is for tables of numbers only; {source} has other columns.")
        binarize_table(Path(source), out, options, units, save=save, use=use)
        return
    if use is not None:
        if points is not None or held_out is not None or per is not None:
            raise ValueError(
                "`--use` takes the rule from the file; leave out --points, --held-out and --per."
            )
        binarizer = Binarizer.load(use)
        table = read_table(source, label=_label_of(source, label, no_label, header), header=header)
        with plain_warnings():
            data = binarizer.apply(table.data, rng=seed)
        _write(out, data, table.feature_names, table.labels)
        say(
            f"{source}: {len(data)} points of {data.shape[1]} {binarizer.units} units, {binarizer.describe()}"
        )
    else:
        dataset = _load(source, points, method, per, label, no_label, header, seed, data_dir, units)
        assert dataset.binarizer is not None
        binarizer = dataset.binarizer
        _write(out, dataset.data, dataset.feature_names, dataset.labels)
        say(data_text.one_line(dataset))
        if held_out is not None:
            _write(held_out, dataset.held_out, dataset.feature_names, dataset.held_out_labels)
            typer.echo(f"held out: {held_out}")
    if save is not None:
        binarizer.save(save)
        typer.echo(f"thresholds: {save}")
    typer.echo(f"data: {out}")


# Between options and library


def _label_of(name: str, label: str | None, no_label: bool, header: bool | None) -> Label:
    """The column of the labels for the library, which counts from 0; here columns are counted from 1."""
    if no_label and label is not None:
        raise ValueError("`--label` and `--no-label` exclude each other.")
    if label is None or not label.lstrip("-").isdecimal() or not is_table(name):
        return False if no_label else label
    from paramagnet.data.columns import choose_columns, read_columns

    table = read_columns(Path(name), header, (label,))
    return choose_columns(label, table, "label")[0]


def _load(
    name: str,
    points: int | None,
    method: str,
    per: str | None,
    label: str | None,
    no_label: bool,
    header: bool | None,
    seed: int | None,
    data_dir: Path | None,
    units: str = "spin",
) -> Dataset:
    from paramagnet.data.datasets import load_dataset
    from paramagnet.data.table import as_number

    number = as_number(method)
    with plain_warnings():
        return load_dataset(
            name,
            n_points=points,
            units=units,
            binarize=method if number is None else number,
            rng=seed,
            per=per,
            label=_label_of(name, label, no_label, header),
            header=header,
            data_dir=data_dir,
            progress=_bar(name),
        )


def _bar(name: str) -> Any:
    """A progress bar with the interface that pooch expects; None if stderr is not a terminal."""
    from rich.console import Console

    return _Bar(name) if Console(stderr=True).is_terminal else None


class _Bar:
    def __init__(self, name: str) -> None:
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

        from paramagnet.cli.compile_bar import LiveProgress

        columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = LiveProgress(*columns)
        self._task = self._progress.add_task("", total=None)
        self.total = 0

    def update(self, n_bytes: int) -> None:
        """Count ``n_bytes`` more as received."""
        self._progress.start()
        self._progress.update(self._task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        """Set the count of received bytes back to zero."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """The download is complete."""
        self._progress.stop()


def _write(out: Path, data: Any, names: tuple[str, ...], labels: Any) -> None:
    import numpy as np

    from paramagnet._files import write_atomically

    stream = io.BytesIO()
    small = data.astype(np.int8)
    if out.suffix.lower() == ".npy":
        np.save(stream, small)
    elif out.suffix.lower() == ".npz":
        np.savez_compressed(stream, data=small, **({} if labels is None else {"labels": labels}))
    else:
        quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
        np.savetxt(stream, small, fmt="%d", delimiter=",", header=quoted, comments="", encoding="utf-8")
    write_atomically(out, stream.getvalue())
