"""The letters of sequences: their order is that of the states of categorical units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramagnet._arrays import shown
from paramagnet._checks import shown_near

UNITS = "categorical"  # what units of sequences may be called without their number of states
GAP = "-"
ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}
MOST_LETTERS = 128
INSERTION = "."

_NUCLEOTIDES = frozenset("ACGTU")
_SHARE_OF_NUCLEOTIDES = 0.9  # of the letters, above which a file is one of DNA or RNA
_NO_LETTERS = ">#;.,"  # characters that mean something else in files of sequences


def as_alphabet(value: Any, argument: str = "alphabet") -> str:
    """The letters of an alphabet that is given by its name or as a text of its letters."""
    if isinstance(value, str) and value in ALPHABETS:
        return ALPHABETS[value]
    rule = (
        f"`{argument}` must be {', '.join(map(repr, ALPHABETS))}, or a text of at least two different "
        "characters, capital letters where they are letters, such as '-ACGU'"
    )
    if not isinstance(value, str) or not 2 <= len(value) <= MOST_LETTERS:
        raise ValueError(f"{rule}, got {shown_near(value, ALPHABETS)}.")
    wrong = [letter for letter in value if not _is_letter(letter)]
    if wrong:
        raise ValueError(f"{rule}, got {wrong[0]!r} in {shown_near(value, ALPHABETS)}.")
    if len(set(value)) < len(value):
        twice = next(letter for letter in value if value.count(letter) > 1)
        raise ValueError(f"{rule}, got {twice!r} twice in {shown(value)}.")
    return value


def _is_letter(letter: str) -> bool:
    return (
        letter.isascii()
        and letter.isprintable()
        and not letter.isspace()
        and not letter.islower()
        and letter not in _NO_LETTERS
    )


def find_alphabet(counts: Mapping[str, int]) -> tuple[str, str]:
    """The alphabet that fits letters with these counts, and its name in words.

    Nine letters of ten among A, C, G, T, U are DNA or RNA, whichever of T and U is the more frequent; the gap
    is a letter of these only if the file has gaps, or letters that count as one. All others are proteins.
    """
    letters = {letter: count for letter, count in counts.items() if letter.isalpha()}
    total = sum(letters.values())
    known = sum(count for letter, count in letters.items() if letter in _NUCLEOTIDES)
    if total and known >= _SHARE_OF_NUCLEOTIDES * total:
        name = "rna" if letters.get("U", 0) > letters.get("T", 0) else "dna"
        full = ALPHABETS[name]
        plain = full.replace(GAP, "")
        if set(counts) <= set(plain):
            return plain, f"{name} without gaps"
        return full, name
    return ALPHABETS["protein"], "protein"
