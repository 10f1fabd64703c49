"""Sequences in text files: FASTA, and one sequence per line, perhaps with its count.

Lines that begin with ``#`` or ``;`` are comments. A file may be gzipped, whatever its name is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paramagnet.data.limits import check_size
from paramagnet.data.table import as_number
from paramagnet.units import FloatArray

FASTA = (".fa", ".fasta", ".fas", ".faa", ".fna", ".afa", ".a2m", ".a3m", ".aln.fa")
LINES = (".txt", ".seq")
WIDTH = 60  # letters of a line that is written

_GZIP = b"\x1f\x8b"
_COMMENT = ("#", ";")
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a file as they stand there; ``counts`` says how often each occurs, if the file does."""

    names: tuple[str, ...]
    sequences: tuple[str, ...]
    source: str
    counts: FloatArray | None = None

    def title(self, place: int) -> str:
        """The record at a place, for messages: its number from 1 and its name."""
        name = self.names[place]
        return f"record {place + 1} ({name if len(name) <= 60 else name[:57] + '...'!r})"


def is_sequences(path: Path) -> bool:
    """Whether the name of a file is that of sequences: .fa, .fasta and the like, .txt, or these with .gz."""
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(FASTA + LINES)


def read_records(path: Path) -> Records:
    """The records of a file of sequences."""
    text = _decode(_unpack(path.read_bytes(), str(path)), str(path))
    lined = path.name.lower().removesuffix(".gz").endswith(LINES)
    first = next(_lines(text), (0, ""))[1]
    records = _parse_lines(text, str(path)) if lined and not first.startswith(">") else _parse(text, path)
    if not records.sequences:
        raise ValueError(f"`path` must hold at least one sequence, got a file without any: {path}.")
    return records


def _parse(text: str, path: Path) -> Records:
    names: list[str] = []
    parts: list[list[str]] = []
    for number, line in _lines(text):
        if line.startswith(">"):
            names.append(line[1:].strip())
            parts.append([])
        elif parts:
            parts[-1].append("".join(line.split()))
        else:
            raise ValueError(
                f"`path` must hold records that begin with a line '>NAME', got other text before the first "
                f"one in line {number}: {line[:40]!r} in {path}. Remove it, or begin the line with '#'; a "
                "file with one sequence per line must be called .txt."
            )
    records = Records(tuple(names), tuple("".join(lines) for lines in parts), str(path))
    for place, sequence in enumerate(records.sequences):
        if not sequence:
            raise ValueError(
                f"`path` must have a sequence in each record, got none in {records.title(place)}: {path}. "
                "Remove the record."
            )
    return records


def _parse_lines(text: str, source: str) -> Records:
    """One sequence per line and perhaps a number, how often it occurs; a line of titles may come first.

    A first line that looks like a sequence, as long as the next one and in capitals, has a wrong count and no
    titles.
    """
    names: list[str] = []
    sequences: list[str] = []
    counts: list[float] = []
    n_words = 0
    titles: tuple[int, list[str]] | None = None
    for number, line in _lines(text):
        words = line.replace(",", " ").split()
        if not sequences and not n_words:
            n_words = len(words)
            if len(words) == 2 and as_number(words[1]) is None:
                titles = number, words  # of the columns
                continue
        if len(words) != n_words or n_words > 2:
            raise ValueError(
                f"`path` must hold a sequence per line, each followed by its count or none of them, got "
                f"{len(words)} words in line {number}: {source}."
            )
        if titles is not None and titles[1][0].isupper() and len(titles[1][0]) == len(words[0]):
            number, words = titles  # which raises the error below
        titles = None
        if n_words == 2:
            count = as_number(words[1])
            if count is None or not 0.0 <= count < np.inf:
                raise ValueError(
                    f"`path` must have a count after each sequence, zero or positive, got {words[1]!r} in "
                    f"line {number}: {source}."
                )
            counts.append(count)
        names.append(f"line {number}")
        sequences.append(words[0])
    if n_words == 2 and sequences and not any(counts):
        raise ValueError(f"`path` must have a positive count, got zeros only: {source}.")
    return Records(tuple(names), tuple(sequences), source, np.array(counts) if counts else None)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers from 1; line ends of all systems."""
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(_COMMENT):
            yield number, stripped


def _decode(content: bytes, source: str) -> str:
    if b"\0" in content[:4096]:
        raise ValueError(f"`path` must be a text file, got one with null bytes: {source}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # names may be in any encoding; letters are ASCII


def _unpack(content: bytes, source: str) -> bytes:
    """The content of a gzipped file, which may have several members; others stay as they are."""
    parts: list[bytes] = []
    rest, size = content, 0
    if not content.startswith(_GZIP):
        return content
    try:
        while rest.startswith(_GZIP):
            unpack = zlib.decompressobj(wbits=31)
            while not unpack.eof:
                part = unpack.decompress(rest, _CHUNK)
                rest = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
                size += len(part)
                check_size(size, len(content), source)
                if not part and not unpack.eof:
                    raise zlib.error("it ends too early")
                parts.append(part)
    except zlib.error as error:
        raise ValueError(f"`path` is not a valid gzip file (damaged?): {source} ({error}).") from None
    return b"".join(parts)


def as_fasta(names: Sequence[str], sequences: Sequence[str]) -> str:
    """Records as the text of a FASTA file."""
    lines: list[str] = []
    for name, sequence in zip(names, sequences, strict=True):
        lines.append(f">{' '.join(name.split())}")
        lines += [sequence[first : first + WIDTH] for first in range(0, len(sequence), WIDTH)]
    return "\n".join(lines) + "\n"
