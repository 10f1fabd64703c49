"""Points for a command, from a file, a table of anything, or a data set known by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramagnet.cli.console import say
from paramagnet.cli.points_file import read_points
from paramagnet.cli.sequence_points import (
    is_sequence_file,
    prepare_sequences,
    read_machine_sequences,
    read_sequences,
    read_training_sequences,
    refuse_sequence_options,
    unnamed,
)
from paramagnet.cli.table_options import TableOptions, label_words, plain_warnings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from paramagnet.data.columns import Columns
    from paramagnet.data.preparation import Preparation
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.units import FloatArray

_TABLES = (".csv", ".tsv", ".arff", ".parquet")
_NOTE = "training"  # name of the note in a machine's file
_SPLIT_STREAM = 0x5EED  # so that the split does not share random numbers with the weights


@dataclass(frozen=True, eq=False)
class Points:
    """Points to learn or to measure on.

    ``rows`` are their places in the source, counted from 0; ``n_rows`` is the number of rows there.
    ``held_out`` are points that were set aside, ``held_out_rows`` their places. ``weights`` and
    ``held_out_weights`` are how often each of them counts, where the source says so; ``names`` are those of
    sequences. ``note`` says where the points come from, for the file of the machine.
    """

    states: FloatArray
    rows: npt.NDArray[np.intp]
    n_rows: int
    visible: str
    preparation: Preparation | SequencePreparation | None = None
    held_out: FloatArray | None = None
    note: dict[str, Any] = field(default_factory=dict)
    weights: FloatArray | None = None
    held_out_weights: FloatArray | None = None
    names: tuple[str, ...] | None = None
    held_out_rows: npt.NDArray[np.intp] | None = None

    @property
    def notes(self) -> dict[str, str]:
        """What is kept in the file of a machine."""
        return {_NOTE: json.dumps(self.note, sort_keys=True)} if self.note else {}


def load_training(
    data: Path, visible: str | None, options: TableOptions, share: float | None, seed: int | None
) -> Points:
    """The points to learn from; a ``share`` of the rows is held out, chosen at random by the seed.

    Thresholds, scales and lists of values are fitted to the rows that are not held out.
    """
    import numpy as np

    from paramagnet.data.codes import KEPT
    from paramagnet.units import find_unit

    if share is not None and not 0.0 < share < 1.0:
        raise ValueError(f"`--held-out` must be a share between 0 and 1, for example 0.2, got {share:g}.")
    if is_sequence_file(data):
        return _load_training_sequences(data, visible, options, share, seed)
    refuse_sequence_options(options)
    kept = options.numbers_rule == KEPT
    units = visible or ("gaussian" if kept else "spin")
    values = find_unit(units, "--visible").values
    if kept and values is not None:
        raise ValueError(f"`--numbers gaussian` makes Gaussian units; leave out `--visible {units}`.")
    if _is_table(data, options) and (kept or (values is not None and len(values) == 2)):
        table = _read_table(data, options)
        rows, others = _split(table.n_rows, share, seed)
        preparation = _fit(table.select(rows), options, units)
        states, complete = preparation.encode(table.select(rows))
        _describe(data, table, preparation, len(states), options)
        held_out = None
        if others.size:
            held_out, kept_out = preparation.encode(table.select(others))
            others = others[kept_out]
        n_rows, rows = table.n_rows, rows[complete]
        note: dict[str, Any] = {}
    else:
        preparation, note = None, {}
        every = read_any(data, units, options)
        n_rows = len(every)
        rows, others = _split(n_rows, share, seed)
        states, held_out = every[rows], every[others] if others.size else None
    if share is not None:
        note = {"n_rows": n_rows, "share": share, "seed": seed or 0}
    return Points(
        states,
        np.asarray(rows),
        n_rows,
        units,
        preparation,
        held_out,
        note,
        held_out_rows=None if held_out is None else others,
    )


def _load_training_sequences(
    data: Path, visible: str | None, options: TableOptions, share: float | None, seed: int | None
) -> Points:
    """Sequences to learn from; frequencies of letters are those of the rows that are not held out."""
    alignment = read_training_sequences(data, visible, options)
    rows, others = _split(len(alignment), share, seed)
    learned, rest = alignment.select(rows), alignment.select(others)
    note = {} if share is None else {"n_rows": len(alignment), "share": share, "seed": seed or 0}
    return Points(
        learned.data.astype("float64"),
        rows,
        len(alignment),
        alignment.units.name if unnamed(visible) else str(visible),
        prepare_sequences(learned, options),
        rest.data.astype("float64") if others.size else None,
        note,
        learned.counts,
        rest.counts if others.size else None,
        learned.names,
        others if others.size else None,
    )


def split_weights(given: FloatArray | None, source: Points) -> tuple[FloatArray | None, FloatArray | None]:
    """Weights from a file for the points to learn, and for those that were set aside.

    The file has a weight for each row of the source, or one for each point to learn.
    """
    if given is not None and len(given) == source.n_rows:
        others = source.held_out_rows
        return given[source.rows], None if others is None else given[others]
    if given is not None and len(source.states) not in (len(given), source.n_rows):
        raise ValueError(
            f"`--sample-weight` must hold one number for each of the {source.n_rows} rows of `DATA`, got "
            f"{len(given)}."
        )
    return given, None


def load_validation(data: Path, source: Points, options: TableOptions) -> FloatArray:
    """Points of another file, made as those of the training."""
    from paramagnet.data.preparation import Preparation

    if is_sequence_file(data):
        return read_machine_sequences(data, source.preparation, source.visible).data.astype("float64")
    if isinstance(source.preparation, Preparation) and _is_table(data, options):
        table = _read_table(data, options, source.preparation)
        return source.preparation.encode(table, options.missing)[0]
    return read_any(data, source.visible, options, "--validation")


def as_comparable(data: Path, visible: str, options: TableOptions, folder: Path) -> tuple[Path, int]:
    """A file of binary points that a sweep can read, and the number of its units.

    A table with text, gaps or chosen columns is made binary and written to ``folder``; another file stays as
    it is, and the sweep binarizes it.
    """
    import numpy as np

    from paramagnet.cli.data_tables import needs_preparation
    from paramagnet.data.codes import KEPT
    from paramagnet.data.files import read_table
    from paramagnet.data.sources import SOURCES

    if str(data) not in SOURCES and not data.exists():
        raise ValueError(unknown_source(data))
    if is_sequence_file(data):
        raise ValueError(
            f"`DATA` must have two values per feature for comparisons, got a file of sequences: {data}."
        )
    if options.numbers_rule == KEPT:
        raise ValueError("`--numbers gaussian` is not for comparisons, which take two-valued visible units.")
    if str(data) in SOURCES:
        states = read_any(data, visible, options)
    elif _is_table(data, options) and (options.given or needs_preparation(str(data), options)):
        states = load_training(data, visible, options, None, None).states
    else:
        return data, read_table(data, header=options.header).data.shape[1]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{data.stem}.npy"
    np.save(path, states.astype(np.int8))
    return path, states.shape[1]


def load_measured(
    data: Path, model: Path, units: str, options: TableOptions, held_out: bool = False
) -> Points:
    """The points to measure a machine on, made as in its training; with ``held_out`` those it set aside."""
    import numpy as np

    from paramagnet.data.preparation import Preparation

    preparation, note = read_machine_notes(model)
    rows: npt.NDArray[np.intp] | None = None
    if is_sequence_file(data):
        alignment = read_machine_sequences(data, preparation, units)
        n_rows = len(alignment)
        rows = _held_out_rows(note, n_rows, data) if held_out else np.arange(n_rows)
        chosen = alignment.select(rows)
        states = chosen.data.astype(np.float64)
        return Points(states, rows, n_rows, units, preparation, weights=chosen.counts, names=chosen.names)
    if isinstance(preparation, Preparation) and _is_table(data, options):
        settled = {"--columns": options.columns, "--drop": options.drop, "--numbers": options.numbers}
        for flag, value in settled.items():
            if value is not None:
                raise ValueError(
                    f"`{flag}` was settled in training and is kept in the machine; leave it out."
                )
        table = _read_table(data, options, preparation)
        n_rows = table.n_rows
        if held_out:
            rows = _held_out_rows(note, n_rows, data)
            table = table.select(rows)
        states, kept = preparation.encode(table, options.missing)
        rows = kept if rows is None else rows[kept]
    else:
        states = read_any(data, units, options)
        n_rows = len(states)
        rows = _held_out_rows(note, n_rows, data) if held_out else np.arange(n_rows)
        states = states[rows]
    if len(rows) < n_rows and not held_out:
        say(f"{data}: {n_rows - len(rows)} of {n_rows} rows with missing cells are left out.", err=True)
    return Points(states, rows, n_rows, units, preparation)


def read_any(data: Path, units: str, options: TableOptions, argument: str = "DATA") -> FloatArray:
    """The points of a file or of a data set known by name, in the values of these units."""
    from paramagnet.data.sources import SOURCES

    if str(data) in SOURCES:
        from paramagnet.data.datasets import load_dataset
        from paramagnet.units import find_unit

        if len(find_unit(units, "--visible").values or ()) != 2:
            raise ValueError(
                f"`{argument}` {str(data)!r} is a set of binary points; take `--visible spin` or bit."
            )
        with plain_warnings():
            dataset = load_dataset(str(data), units=units)
        return dataset.data
    if not data.exists():
        raise ValueError(unknown_source(data, argument))
    if is_sequence_file(data):
        return read_sequences(data, units).data.astype("float64")
    if options.given and _is_table(data, options):
        with plain_warnings():
            table = _read_table(data, options)
            preparation = _fit(table, options, units)
        return preparation.encode(table)[0]
    return read_points(data, units, options.header)


def read_machine_notes(
    model: Path,
) -> tuple[Preparation | SequencePreparation | None, dict[str, Any]]:
    """The preparation that is kept in the file of a machine, and what is known of its training."""
    from paramagnet.data.sequence_preparation import read_preparation
    from paramagnet.rbm import read_notes

    notes = read_notes(model)
    preparation = notes.get("preparation")
    try:
        note = json.loads(notes.get(_NOTE, "{}"))
    except ValueError:
        note = {}
    return None if preparation is None else read_preparation(preparation), note


def unknown_source(data: Path, argument: str = "DATA") -> str:
    """What to say of a file that is not there."""
    from paramagnet._checks import near_files
    from paramagnet.data.sources import SOURCES

    return (
        f"`{argument}` must be a file, or a data set of `paramagnet data list`; there is no "
        f"{str(data)!r}{near_files(data, SOURCES)}."
    )


def _is_table(data: Path, options: TableOptions) -> bool:
    return data.exists() and (data.suffix.lower() in _TABLES or options.given)


def _read_table(data: Path, options: TableOptions, made_by: Preparation | None = None) -> Columns:
    """The columns of a file, in the notation of the options, or in that which training had."""
    from paramagnet.data.columns import POINT, as_choices, read_columns

    given = (options.columns, options.drop, options.label)
    asked = [name for choice in given for name in as_choices(choice, "columns")]
    if made_by is not None:
        asked += made_by.column_names
        return read_columns(data, options.header, asked, made_by.decimal, made_by.missing_values)
    return read_columns(data, options.header, asked, options.decimal or POINT, options.missing_values)


def _fit(table: Columns, options: TableOptions, units: str) -> Preparation:
    from paramagnet.data.fitting import MOST_CATEGORIES, fit_preparation

    with plain_warnings():
        return fit_preparation(
            table,
            columns=options.columns,
            drop=options.drop,
            label=False if options.no_label else options.label,
            missing=options.missing or "error",
            numbers=options.numbers_rule,
            units=units,
            most_categories=MOST_CATEGORIES if options.categories is None else options.categories,
        )


def _split(n_rows: int, share: float | None, seed: int | None) -> tuple[Any, Any]:
    """Places of the rows to learn and of those that are held out, each in the order of the table."""
    import numpy as np

    if share is None:
        return np.arange(n_rows), np.arange(0)
    n_held_out = round(share * n_rows)
    if not 0 < n_held_out < n_rows:
        raise ValueError(
            f"`--held-out` must leave rows to learn and rows to measure on, got {share:g} of {n_rows} rows."
        )
    order = np.random.default_rng([seed or 0, _SPLIT_STREAM]).permutation(n_rows)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def _held_out_rows(note: dict[str, Any], n_rows: int, data: Path) -> Any:
    if "share" not in note:
        raise ValueError(
            "`--held-out` needs a machine that was trained with `--held-out SHARE`; this one was not. Train "
            "it so, or give a file of points that it has not learned."
        )
    if n_rows != note["n_rows"]:
        raise ValueError(
            f"`--held-out` needs the file of the training, which had {note['n_rows']} rows; {data} has "
            f"{n_rows}."
        )
    return _split(n_rows, float(note["share"]), int(note["seed"]))[1]


def _describe(
    data: Path, table: Columns, preparation: Preparation, n_points: int, options: TableOptions
) -> None:
    """Say in a few lines how the table was read."""
    from paramagnet.data.fitting import find_labels
    from paramagnet.data.kinds import describe_column

    if options.label is None and not options.no_label:
        for place in find_labels(table, None):
            if table.names[place] in preparation.left_out:
                say(f"{data}: {label_words(describe_column(table, place))}", err=True)
    low, high = (f"{value:g}" for value in preparation.units.values or (0.0, 1.0))
    pairs = {getattr(code, "values", ()) for code in preparation.codes}
    if pairs <= {("0", "1")} or pairs <= {("-1", "1")}:  # bits and spins need few words
        (pair,) = pairs
        if pair != (low, high):
            say(f"{data}: {'/'.join(pair)} read as {low}/{high}, {preparation.units} units.", err=True)
        return
    used, units = len(preparation.codes), preparation.n_visible
    line = f"{data}: {n_points} rows to learn; {used} columns as {units} {preparation.units} units."
    if preparation.left_out:
        line += f" Left out: {_some(preparation.left_out)}."
    say(line, err=True)
    by_form: dict[str, list[str]] = {}
    for code in preparation.codes:
        wide = len(code.unit_names)
        kind = "a unit for each value" if wide > 1 else _FORMS[code.form]
        by_form.setdefault(kind, []).append(f"{code.name} ({wide})" if wide > 1 else code.name)
    for kind, names in by_form.items():
        say(f"  {kind}: {_some(names)}", err=True)


def _some(names: Sequence[str]) -> str:
    """The first of many names, and how many there are."""
    return ", ".join(names[:_LISTED]) + (f", ... ({len(names)})" if len(names) > _LISTED else "")


_FORMS = {"threshold": "cut in two at a threshold", "scaling": "standardized numbers", "words": "two values"}
_LISTED = 12
