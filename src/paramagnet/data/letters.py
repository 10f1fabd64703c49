"""Letters of an alignment as states, and what is said of those that are unknown and of gaps."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from paramagnet.data.alphabet import GAP, INSERTION
from paramagnet.data.fasta import Records

_MOST_UNKNOWN = 0.5  # of the letters; more are a sign of another alphabet
_LISTED = 8  # columns in a message
_FOREIGN, _NO_LETTER = -1, -2  # what is not in the alphabet; what is no letter at all
_AMBIGUOUS = "*?~"  # signs that stand for a letter, besides letters

Bytes = npt.NDArray[np.uint8]


class AlignmentWarning(UserWarning):
    """Letters of an alignment that count as gaps, or sites and sequences that hold nothing else."""


def count_letters(letters: Bytes) -> dict[str, int]:
    """How often each character occurs."""
    counts = np.bincount(letters.ravel(), minlength=256)
    return {chr(code): int(count) for code, count in enumerate(counts) if count}


def encode_known(
    letters: Bytes, alphabet: str, records: Records, columns: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The states of letters, NaN for those that are not in the alphabet."""
    states = _look_up(letters, alphabet)
    if (states == _NO_LETTER).any():
        _require_gaps(states, letters, alphabet, "error", records, columns)
    return np.where(states < 0, np.nan, states)


def _look_up(letters: Bytes, alphabet: str) -> npt.NDArray[np.int16]:
    """The states of letters; `_FOREIGN` for others, `_NO_LETTER` for what is no letter at all."""
    table = np.full(256, _NO_LETTER, dtype=np.int16)
    for code in range(128):
        if chr(code).isalpha() or chr(code) in _AMBIGUOUS or chr(code) == GAP:
            table[code] = _FOREIGN
    for state, letter in enumerate(alphabet):
        table[ord(letter)] = state
    return table[letters]


def encode_letters(
    letters: Bytes, alphabet: str, unknown: str, records: Records, columns: npt.NDArray[np.int64]
) -> tuple[Bytes, int]:
    """The states of letters, and how many of them are unknown and count as gaps."""
    states = _look_up(letters, alphabet)
    foreign = states < 0
    n_foreign = int(foreign.sum())
    if n_foreign:
        _require_gaps(states, letters, alphabet, unknown, records, columns)
        states[foreign] = alphabet.index(GAP)
    return states.astype(np.uint8), n_foreign


def _require_gaps(
    states: npt.NDArray[np.int16],
    letters: Bytes,
    alphabet: str,
    unknown: str,
    records: Records,
    columns: npt.NDArray[np.int64],
) -> None:
    """Warn that unknown letters count as gaps, or raise an error that says where the first one is."""
    foreign = states < 0
    wrong = states == _NO_LETTER
    refused = wrong if wrong.any() else foreign
    row, site = np.argwhere(refused)[0]
    place = (
        f"{chr(letters[row, site])!r} in {records.title(int(row))}, column {columns[site] + 1}: "
        f"{records.source}"
    )
    rule = f"`path` must hold letters of the alphabet {alphabet}"
    if wrong.any():
        raise ValueError(f"{rule}, got {place}. It is no letter; is this a file of aligned sequences?")
    if unknown == "error":
        raise ValueError(f"{rule}, got {place}. Pass `unknown='gap'` to count unknown letters as gaps.")
    if GAP not in alphabet:
        raise ValueError(f"{rule}, got {place}. Add '-' to the alphabet to count unknown letters as gaps.")
    n_foreign = int(foreign.sum())
    n_letters = int((letters != ord(GAP)).sum())
    kinds = "".join(sorted({chr(code) for code in np.unique(letters[foreign])}))
    if n_foreign > _MOST_UNKNOWN * n_letters:
        raise ValueError(
            f"{rule}, got others ({kinds}) for {n_foreign} of {n_letters} letters, the first {place}. Give "
            "the right `alphabet`."
        )
    first = f"in {records.title(int(row))}, column {columns[site] + 1}"
    if n_foreign == 1:
        counted = f"1 unknown letter ({kinds}) counts as a gap, {first}"
    else:
        counted = f"{n_foreign} unknown letters ({kinds}) count as gaps, the first {first}"
    warnings.warn(
        f"{records.source}: {counted}.",
        AlignmentWarning,
        stacklevel=5,
    )


def warn_of_gaps(gaps: npt.NDArray[np.bool_], columns: npt.NDArray[np.int64], source: str) -> None:
    """Warn of sites and sequences that hold gaps only; ``gaps`` is True where a gap is."""
    empty = columns[gaps.all(axis=0)] + 1
    if empty.size:
        listed = ", ".join(map(str, empty[:_LISTED])) + (", ..." if empty.size > _LISTED else "")
        warnings.warn(
            f"{source}: {empty.size} column{'s hold' if empty.size > 1 else ' holds'} gaps only ({listed}); "
            "they stay, as sites that never change.",
            AlignmentWarning,
            stacklevel=4,
        )
    n_empty = int(gaps.all(axis=1).sum())
    if n_empty:
        warnings.warn(
            f"{source}: {n_empty} sequence{'s hold' if n_empty > 1 else ' holds'} gaps only.",
            AlignmentWarning,
            stacklevel=4,
        )


def _letter_table() -> tuple[npt.NDArray[np.bool_], Bytes]:
    """Which characters mark insertions, and each character as a capital, ``.`` as a gap."""
    inserted, capitals = np.zeros(256, np.bool_), np.arange(256, dtype=np.uint8)
    for code in range(ord("a"), ord("z") + 1):
        inserted[code] = True
        capitals[code] = ord(chr(code).upper())
    inserted[ord(INSERTION)] = True
    capitals[ord(INSERTION)] = ord(GAP)
    return inserted, capitals


INSERTED, CAPITALS = _letter_table()
