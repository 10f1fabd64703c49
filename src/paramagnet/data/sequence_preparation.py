"""How sequences become the categorical units of a machine: alphabet and sites, kept in the machine's file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_choice
from paramagnet._files import read_arrays
from paramagnet.data.alignment import (
    INSERTIONS,
    UNKNOWN,
    Alignment,
    Sites,
    align,
    as_sequences,
    known_states,
    write_fasta,
)
from paramagnet.data.alphabet import as_alphabet
from paramagnet.data.checks import existing_file
from paramagnet.data.fasta import read_records
from paramagnet.data.preparation import NOTE, Preparation
from paramagnet.data.similarity import site_frequencies
from paramagnet.units import FloatArray, Unit, categorical

FORMAT = "paramagnet.sequences"
_VERSION = 1
_MACHINE = "paramagnet.rbm"
_DIGITS = 8  # of the frequencies in the file


@dataclass(frozen=True, eq=False)
class SequencePreparation:
    """How an alignment becomes the visible units of a machine; made by `of`.

    ``alphabet`` are the letters in the order of the states, ``columns`` those of the alignment that are
    sites, counted from 0, of ``n_columns``. ``unknown`` and ``insertions`` are the options of
    `read_alignment`. ``frequencies`` are those of the letters in the ``n_points`` sequences of the training.
    """

    alphabet: str
    columns: tuple[int, ...]
    n_columns: int
    unknown: str
    insertions: str
    frequencies: tuple[float, ...]
    n_points: int

    def __repr__(self) -> str:
        return f"SequencePreparation({self.n_visible} sites, alphabet {self.alphabet})"

    @property
    def units(self) -> Unit:
        """The type of the units."""
        return categorical(len(self.alphabet))

    @property
    def n_visible(self) -> int:
        """The number of sites."""
        return len(self.columns)

    @property
    def site_names(self) -> tuple[str, ...]:
        """The columns of the alignment that became sites, counted from 1."""
        return tuple(str(column + 1) for column in self.columns)

    @property
    def means(self) -> FloatArray:
        """The frequencies of the letters in the training, one number per letter of each site."""
        return np.array(self.frequencies)

    @cached_property
    def _sites(self) -> Sites:
        return Sites(np.array(self.columns, dtype=np.int64), self.n_columns, self.alphabet)

    @classmethod
    def of(
        cls,
        alignment: Alignment,
        *,
        sample_weight: Any = None,
        unknown: str = "gap",
        insertions: str = "drop",
    ) -> SequencePreparation:
        """The preparation of an alignment, with the frequencies of its weighted sequences."""
        if not isinstance(alignment, Alignment):
            raise ValueError(f"`alignment` must be what `read_alignment` returns, got {shown(alignment)}.")
        frequencies = site_frequencies(alignment, sample_weight=sample_weight).ravel()
        return cls(
            alignment.alphabet,
            tuple(map(int, alignment.columns)),
            alignment.n_columns,
            as_choice(unknown, "unknown", UNKNOWN),
            as_choice(insertions, "insertions", INSERTIONS),
            tuple(float(f"{value:.{_DIGITS}g}") for value in frequencies),
            len(alignment),
        )

    def read(self, path: str | os.PathLike[str], *, unknown: str | None = None) -> Alignment:
        """The alignment in a file, with the sites and the alphabet of the training.

        A file with as many columns as the alignment of the training has its sites in the same columns. A
        file with another number of columns must have as many sites after its insertions are dropped.
        """
        rule = as_choice(self.unknown if unknown is None else unknown, "unknown", UNKNOWN)
        return align(read_records(existing_file(path)), None, rule, self.insertions, self._sites)

    def apply(self, path: str | os.PathLike[str]) -> FloatArray:
        """The sequences of a file as states of the visible units, ``(n_sequences, n_sites)``."""
        return self.read(path).data.astype(np.float64)

    def read_known(self, path: str | os.PathLike[str]) -> FloatArray:
        """The sequences of a file as states, NaN at sites whose letter is not in the alphabet, such as X."""
        return known_states(read_records(existing_file(path)), self._sites, self.insertions)

    def invert(self, states: npt.ArrayLike) -> list[str]:
        """States of the visible units as sequences."""
        return as_sequences(states, self.alphabet)

    def write(self, path: str | os.PathLike[str], states: npt.ArrayLike, *, names: Any = None) -> None:
        """Write states of the visible units to ``path`` as FASTA."""
        write_fasta(path, states, self.alphabet, names=names)

    def to_json(self) -> str:
        """The preparation as text."""
        content = {
            "format": FORMAT,
            "version": _VERSION,
            "alphabet": self.alphabet,
            "columns": self.columns,
            "n_columns": self.n_columns,
            "unknown": self.unknown,
            "insertions": self.insertions,
            "frequencies": self.frequencies,
            "n_points": self.n_points,
        }
        return json.dumps(content, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SequencePreparation:
        """The preparation that `to_json` wrote."""
        try:
            if not isinstance(text, str):
                raise TypeError(f"got {shown(text)}")
            content = json.loads(text)
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise ValueError(f"not of format {FORMAT!r}")
            if content.get("version") != _VERSION:
                raise ValueError(f"version {content.get('version')!r}, this release reads {_VERSION}")
            found = cls(
                as_alphabet(content["alphabet"]),
                tuple(map(int, content["columns"])),
                int(content["n_columns"]),
                as_choice(content["unknown"], "unknown", UNKNOWN),
                as_choice(content["insertions"], "insertions", INSERTIONS),
                tuple(map(float, content["frequencies"])),
                int(content["n_points"]),
            )
            whole = len(found.frequencies) == found.n_visible * len(found.alphabet)
            if not found.columns or not whole or not all(0 <= i < found.n_columns for i in found.columns):
                raise ValueError("sites and letters do not fit together")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"`text` is no preparation of sequences ({error}).") from None
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SequencePreparation:
        """The preparation in ``path``, the file of a machine that was trained on sequences."""
        _, metadata = read_arrays(existing_file(path), _MACHINE)
        found = None if NOTE not in metadata else read_preparation(metadata[NOTE])
        if not isinstance(found, SequencePreparation):
            raise ValueError(
                f"`path` must be a machine that was saved with its alphabet, got one without: {path}."
            )
        return found


def read_preparation(text: str) -> Preparation | SequencePreparation:
    """The preparation of a table or of sequences, from the text in a machine's file."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, Mapping) and content.get("format") == FORMAT:
        return SequencePreparation.from_json(text)
    return Preparation.from_json(text)
