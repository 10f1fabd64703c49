"""Parquet files, by pyarrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet._extras import how_to_install
from paramagnet.data.limits import check_size
from paramagnet.data.table import Label, Table, choose_label, encode_labels

_BATCH = 4096  # rows read at a time, which is the most that is in memory before the size is checked


def open_parquet(source: Path) -> Any:
    """The content of a file, a table of pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"`path` is a parquet file, which needs pyarrow: {how_to_install('data')}."
        ) from None
    with open(source, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            return _read_batches(pyarrow, parquet.ParquetFile(file), size, source)
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"`path` is not a readable parquet file: {source} ({reason}).") from None


def read_parquet(source: Path, label: Label, missing: bool) -> Table:
    """The table in a file; ``missing`` says whether cells may be missing."""
    content = open_parquet(source)
    import pyarrow
    from pyarrow import types

    names = content.column_names
    texts = [
        i
        for i, kind in enumerate(content.schema.types)
        if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    ]
    column = choose_label(names, len(names), label, texts, str(source))
    features = [i for i in range(len(names)) if i != column]
    if not features or not content.num_rows:
        raise ValueError(f"`path` must hold at least one point and one column of numbers: {source}.")
    data = np.empty((content.num_rows, len(features)))
    for place, i in enumerate(features):
        kind = content.schema.types[i]
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(f"`path` must hold numbers only, got {kind} in column {names[i]!r}: {source}.")
        data[:, place] = content.column(i).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    if np.isinf(data).any():
        row, place = np.argwhere(np.isinf(data))[0]
        raise ValueError(f"`path` must hold finite numbers, got inf in row {row}, column {place}: {source}.")
    if not missing and np.isnan(data).any():
        row, place = np.argwhere(np.isnan(data))[0]
        raise ValueError(
            f"`path` must hold numbers only, got none in row {row}, column {place + 1}: {source}."
        )
    feature_names = tuple(names[i] for i in features)
    if column is None:
        return Table(data, feature_names)
    if content.column(column).null_count:
        raise ValueError(f"`path` must have a label in every row of column {names[column]!r}: {source}.")
    codes, classes = encode_labels(content.column(column).to_pylist())
    return Table(data, feature_names, codes, classes, column, found=(f"labels in {names[column]}",))


def _read_batches(pyarrow: Any, file: Any, size: int, source: Path) -> Any:
    """The content of a file; an error if its metadata state too large a size, or if more arrives."""
    metadata = file.metadata
    groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    check_size(max(groups, 8 * metadata.num_rows * metadata.num_columns), size, str(source))
    batches, n_bytes = [], 0
    for batch in file.iter_batches(batch_size=_BATCH):
        n_bytes += batch.nbytes
        check_size(n_bytes, size, str(source))
        batches.append(batch)
    return pyarrow.Table.from_batches(batches, schema=file.schema_arrow)
