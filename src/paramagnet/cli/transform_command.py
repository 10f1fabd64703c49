"""``paramagnet transform``: the hidden features of every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from paramagnet.cli.points_file import DataArgument, Header
from paramagnet.cli.points_source import load_measured
from paramagnet.cli.score_command import check_csv
from paramagnet.cli.table_options import LabelOption, MissingOption, NoLabel, TableOptions


def transform(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Where to write the features (.csv).")],
    missing: MissingOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    header: Header = None,
) -> None:
    """Write the hidden features of each row of a table, the means of the hidden units, to a .csv.

    The column `row` counts the rows of the table from 1, without the header; h1, h2, ... are the features.
    """
    from paramagnet._files import writable_target
    from paramagnet.cli.console import say
    from paramagnet.cli.csv_output import write_csv
    from paramagnet.rbm import RBM

    check_csv(out, data)
    writable_target(out)
    rbm = RBM.load(model)
    options = TableOptions(None, None, label, no_label, missing, None, None, header)
    source = load_measured(data, model, rbm.visible.name, options)
    features = rbm.hidden_features(source.states)
    marks: list[tuple[Any, ...]] = [(row,) for row in source.rows + 1]
    if source.names is not None:
        marks = [(*mark, name) for mark, name in zip(marks, source.names, strict=True)]
    first = ("row", "name")[: len(marks[0])]
    names = (*first, *(f"h{number}" for number in range(1, features.shape[1] + 1)))
    rows = ((*mark, *map(float, values)) for mark, values in zip(marks, features, strict=True))
    write_csv(out, names, rows)
    say(f"{len(features)} rows of {rbm.n_hidden} features: {out}")
