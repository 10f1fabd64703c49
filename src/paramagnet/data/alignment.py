"""Alignments: sequences of one length, whose sites become categorical units."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, shown
from paramagnet._checks import as_choice
from paramagnet._files import write_atomically
from paramagnet.data.alphabet import ALPHABETS, GAP, INSERTION, as_alphabet, find_alphabet
from paramagnet.data.checks import existing_file
from paramagnet.data.fasta import FASTA, LINES, Records, as_fasta, is_sequences, read_records
from paramagnet.data.letters import (
    CAPITALS,
    INSERTED,
    Bytes,
    count_letters,
    encode_known,
    encode_letters,
    warn_of_gaps,
)
from paramagnet.units import FloatArray, Unit, categorical

UNKNOWN = ("gap", "error")
INSERTIONS = ("drop", "keep")


@dataclass(frozen=True, eq=False)
class Alignment:
    """Sequences of one length, made by `read_alignment`.

    ``data`` are the states of categorical units, ``(n_sequences, n_sites)``, uint8: the places of letters in
    ``alphabet``. ``names`` are those of the records. ``columns`` are the columns of the file that became
    sites, counted from 0, of ``n_columns``. ``counts`` says how often each sequence occurs, if the file does.
    ``found`` says in words how the file was read.
    """

    data: Bytes
    names: tuple[str, ...]
    alphabet: str
    columns: npt.NDArray[np.int64]
    n_columns: int
    counts: FloatArray | None = None
    found: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Alignment({self.n_sequences} sequences of {self.n_sites} sites, {len(self.alphabet)} letters)"
        )

    def __len__(self) -> int:
        return len(self.data)

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.data)

    @property
    def n_sites(self) -> int:
        """The number of sites."""
        return int(self.data.shape[1])

    @property
    def units(self) -> Unit:
        """The type of the units: categorical, a state for each letter."""
        return categorical(len(self.alphabet))

    @property
    def site_names(self) -> tuple[str, ...]:
        """The columns of the file that became sites, counted from 1."""
        return tuple(str(column + 1) for column in self.columns)

    @property
    def sequences(self) -> list[str]:
        """The sequences as texts, without the columns that were dropped."""
        return as_sequences(self.data, self.alphabet)

    def select(self, rows: Any) -> Alignment:
        """The alignment of some of the sequences: their places, or a mask."""
        try:
            chosen = np.arange(len(self.data))[rows]
        except IndexError as error:
            raise ValueError(f"`rows` must be places of sequences or a mask ({error}).") from None
        chosen = np.atleast_1d(chosen)
        counts = None if self.counts is None else self.counts[chosen]
        names = tuple(self.names[row] for row in chosen)
        return replace(self, data=self.data[chosen], names=names, counts=counts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sequences to ``path`` as FASTA."""
        write_fasta(path, self.data, self.alphabet, names=self.names)


@dataclass(frozen=True, eq=False)
class Sites:
    """The sites of an alignment that another file must have, too: its columns, their number, its alphabet."""

    columns: npt.NDArray[np.int64]
    n_columns: int
    alphabet: str


def read_alignment(
    path: str | os.PathLike[str],
    *,
    alphabet: str | None = None,
    unknown: str = "gap",
    insertions: str = "drop",
) -> Alignment:
    """The alignment in a FASTA file, or in a file with one sequence per line.

    Parameters
    ----------
    path : str or os.PathLike
        A file of records, each a line ``>NAME`` and lines of letters (``.fa``, ``.fasta``, ``.a2m``,
        ``.a3m`` and the like); or with one sequence per line, perhaps followed by how often it occurs
        (``.txt``). All of them may be gzipped (``.gz``). Lines that begin with ``#`` or ``;`` are comments.
    alphabet : str, optional
        ``"protein"`` (20 amino acids and the gap), ``"rna"``, ``"dna"`` (four letters and the gap), or the
        letters themselves, in the order of the states; one without ``-`` has no gap. None finds out: DNA or
        RNA if nine letters of ten are A, C, G, T, U (without a gap if the file has none), else protein.
    unknown : str, default "gap"
        What letters that are not in the alphabet are, such as X: ``"gap"`` (with a warning that says how
        many), or ``"error"``.
    insertions : str, default "drop"
        ``"drop"`` leaves out all columns in which any sequence has ``.`` or a small letter, the mark of an
        insertion; where sequences differ in length, these characters are left out of each (A3M). ``"keep"``
        takes small letters for capitals and ``.`` for a gap.

    Returns
    -------
    Alignment
        States of categorical units, names of the sequences, alphabet and columns.

    Notes
    -----
    Sites and sequences that hold gaps only stay, with a warning. Names that occur twice stay as they are.
    Sequences of different lengths, records without letters, text before the first record and characters that
    are no letters are errors that name the record and the column.
    """
    source = existing_file(path)
    letters = None if alphabet is None else as_alphabet(alphabet)
    as_choice(unknown, "unknown", UNKNOWN)
    as_choice(insertions, "insertions", INSERTIONS)
    if not is_sequences(source):
        known = ", ".join((*FASTA[:3], *LINES[:1]))
        raise ValueError(f"`path` must end in {known} or one of these and .gz, got {source}.")
    return align(read_records(source), letters, unknown, insertions)


def align(
    records: Records,
    alphabet: str | None = None,
    unknown: str = "gap",
    insertions: str = "drop",
    like: Sites | None = None,
) -> Alignment:
    """The alignment of records; ``like`` are the sites that it must have, which come with an alphabet."""
    found: list[str] = []
    letters, columns, n_columns = _choose_sites(records, insertions, like, found)
    if like is not None:
        alphabet = like.alphabet
    if alphabet is None:
        alphabet, name = find_alphabet(count_letters(letters))
        found.append(f"alphabet {name} ({alphabet})")
    else:
        known = {value: name for name, value in ALPHABETS.items()}
        found.append(
            f"alphabet {known[alphabet]} ({alphabet})" if alphabet in known else f"letters {alphabet}"
        )
    data, n_unknown = encode_letters(letters, alphabet, unknown, records, columns)
    if n_unknown:
        found.append(f"{n_unknown} unknown letter{'s as gaps' if n_unknown > 1 else ' as a gap'}")
    n_twice = len(records.names) - len(set(records.names))
    if n_twice:
        found.append(f"{n_twice} names that occur before")
    if records.counts is not None:
        found.append("counts of the sequences")
    if GAP in alphabet:
        warn_of_gaps(data == alphabet.index(GAP), columns, records.source)
    data.setflags(write=False)
    return Alignment(data, records.names, alphabet, columns, n_columns, records.counts, tuple(found))


def known_states(records: Records, sites: Sites, insertions: str) -> FloatArray:
    """The states of records that have these sites, NaN where the letter is not in the alphabet, such as X."""
    letters, columns, _ = _choose_sites(records, insertions, sites, [])
    return encode_known(letters, sites.alphabet, records, columns)


def _choose_sites(
    records: Records, insertions: str, like: Sites | None, found: list[str]
) -> tuple[Bytes, npt.NDArray[np.int64], int]:
    """The characters of all sites, the columns that they stand in, and how many columns there are."""
    lengths = np.array([len(sequence) for sequence in records.sequences])
    equal = (lengths == lengths[0]).all()
    if like is not None and equal and lengths[0] == like.n_columns:
        matrix = _as_matrix(records.sequences)[:, like.columns]
        return CAPITALS[matrix], like.columns, like.n_columns
    if equal:
        matrix = _as_matrix(records.sequences)
        inserted: npt.NDArray[np.bool_] = np.atleast_1d(INSERTED[matrix].any(axis=0))
        if insertions == "drop" and inserted.all():
            raise ValueError(
                "`path` must have columns without insertions, got '.' or small letters in all "
                f"{matrix.shape[1]}: {records.source}. If small letters are not insertions there, pass "
                "`insertions='keep'`."
            )
        if insertions == "keep" or not inserted.any():
            matrix, columns = CAPITALS[matrix], np.arange(matrix.shape[1])
        else:
            columns = np.flatnonzero(~inserted)
            matrix = matrix[:, columns]
            found.append(f"{int(inserted.sum())} of {len(inserted)} columns are insertions, dropped")
        n_columns = len(inserted)
    else:
        matrix = _without_insertions(records, insertions)
        found.append("sequences of different lengths: insertions dropped from each (A3M)")
        n_columns = matrix.shape[1]
        columns = np.arange(n_columns)
    if like is not None and matrix.shape[1] != len(like.columns):
        raise ValueError(
            f"`path` must have {len(like.columns)} sites, or {like.n_columns} columns, as the alignment that "
            f"the machine was trained on, got {matrix.shape[1]} sites of {n_columns} columns: "
            f"{records.source}. Align these sequences to the same family."
        )
    if like is not None:
        return matrix, like.columns, like.n_columns
    return matrix, columns.astype(np.int64), n_columns


def _without_insertions(records: Records, insertions: str) -> Bytes:
    """The characters of sequences of different lengths without ``.`` and small letters."""
    dropped = str.maketrans("", "", INSERTION + "abcdefghijklmnopqrstuvwxyz")
    texts = records.sequences
    if insertions == "drop":
        texts = tuple(sequence.translate(dropped) for sequence in texts)
    usual, _ = Counter(map(len, texts)).most_common(1)[0]
    for place, sequence in enumerate(texts):
        if len(sequence) != usual or not usual:
            marked = " without insertions" if texts[place] != records.sequences[place] else ""
            raise ValueError(
                f"`path` must be an alignment, sequences of one length, got {len(sequence)} letters"
                f"{marked} in {records.title(place)}, where most have {usual}: {records.source}. Align the "
                "sequences first, with hmmalign or mafft for example."
            )
    return _as_matrix(texts)


def _as_matrix(sequences: tuple[str, ...]) -> Bytes:
    joined = "".join(sequences).encode("latin-1", "replace")
    return np.frombuffer(joined, np.uint8).reshape(len(sequences), -1)


def as_sequences(states: Any, alphabet: str) -> list[str]:
    """States of categorical units, ``(n_sequences, n_sites)``, as texts."""
    letters = as_alphabet(alphabet)
    array = as_array(states, "states")
    if array.ndim != 2 or not array.size:
        raise ValueError(f"`states` must have shape (n_sequences, n_sites), got {array.shape}.")
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64)
    if (whole != array).any() or whole.min() < 0 or whole.max() >= len(letters):
        wrong = array[(whole != array) | (whole < 0) | (whole >= len(letters))].flat[0]
        raise ValueError(
            f"`states` must hold integers from 0 to {len(letters) - 1}, the places of the letters {letters}, "
            f"found {wrong:g}."
        )
    table = np.frombuffer(letters.encode("ascii"), np.uint8)
    text = table[whole].tobytes().decode("ascii")
    width = whole.shape[1]
    return [text[first : first + width] for first in range(0, len(text), width)]


def write_fasta(path: str | os.PathLike[str], states: Any, alphabet: str, *, names: Any = None) -> list[str]:
    """Write states of categorical units as sequences to a FASTA file; an existing one is replaced.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    states : array_like
        Integers, ``(n_sequences, n_sites)``: the places of letters in the alphabet.
    alphabet : str
        The letters, or the name of an alphabet, as in `read_alignment`.
    names : sequence of str, optional
        Names of the records; None counts them: sample_1, sample_2, ...

    Returns
    -------
    list of str
        The sequences that were written.
    """
    sequences = as_sequences(states, alphabet)
    if names is None:
        names = [f"sample_{number}" for number in range(1, len(sequences) + 1)]
    elif (
        not isinstance(names, (list, tuple))
        or len(names) != len(sequences)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(
            f"`names` must be a list of {len(sequences)} texts, one for each sequence, or None, got "
            f"{shown(names)}."
        )
    write_atomically(path, as_fasta(names, sequences).encode())
    return sequences
