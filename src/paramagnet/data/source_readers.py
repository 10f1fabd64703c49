"""How the named data sets become tables: a reader for each kind of files, and the sets that have no files.

A reader takes the source and the contents of its files, in their order, and returns a `Table`.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paramagnet._extras import how_to_install
from paramagnet.data.idx import parse_idx
from paramagnet.data.table import Table, default_names, encode_labels
from paramagnet.data.text import parse_text
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.data.sources import Source

TOY_FLIPS = 0.15


def read_tables(source: Source, contents: Sequence[bytes]) -> Table:
    """Text files (.csv, .arff) of the same columns as one table."""
    tables = [
        parse_text(content, file.name, Path(file.name).suffix)
        for content, file in zip(contents, source.files, strict=True)
    ]
    labels: list[str] = []
    for table in tables:
        assert table.labels is not None
        labels += [table.class_names[code] for code in table.labels]
    codes, classes = encode_labels(labels)
    return Table(np.concatenate([table.data for table in tables]), tables[0].feature_names, codes, classes)


def read_images(source: Source, contents: Sequence[bytes]) -> Table:
    """Two idx files: images and labels."""
    images, labels = (
        parse_idx(content, file.name) for content, file in zip(contents, source.files, strict=True)
    )
    codes, classes = encode_labels(labels)
    names = default_names(source.n_features)
    return Table(images.reshape(len(images), -1), names, codes, classes, image_shape=source.image_shape)


def read_digits(source: Source, contents: Sequence[bytes]) -> Table:
    """The digits that scikit-learn brings along; there are no files."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError(f"`digits` come with scikit-learn: {how_to_install('sklearn')}.") from None
    digits = load_digits()
    codes, classes = encode_labels(digits.target)
    return Table(digits.data, default_names(64), codes, classes, image_shape=source.image_shape)


def toy_patterns() -> FloatArray:
    """The four patterns of 20 spins that the toy data are flipped from, [Y25] fig:4BD."""
    half = np.ones(10)
    return np.array([np.r_[half, half], np.r_[-half, -half], np.r_[half, -half], np.r_[-half, half]])


def draw_toy(n_points: int, rng: np.random.Generator) -> Table:
    """A draw of the toy data, as many points of each pattern as of the others."""
    patterns = toy_patterns()
    labels = np.sort(np.arange(n_points, dtype=np.int64) % len(patterns))
    flips = rng.random((n_points, patterns.shape[1])) < TOY_FLIPS
    spins: FloatArray = np.where(flips, -1.0, 1.0) * patterns[labels]
    return Table(spins, default_names(20), labels, ("++", "--", "+-", "-+"))
