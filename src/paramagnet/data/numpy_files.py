"""NumPy's own formats, .npy and .npz, read with the sizes of their headers checked first."""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from paramagnet._checks import shown_near
from paramagnet.data.limits import check_size
from paramagnet.data.table import Array

_LABEL_ARRAYS = ("labels", "label", "y", "target")
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What zipfile, its decompressors and NumPy's parser of headers raise on a damaged file. RuntimeError is an
# encrypted member, or a header of too many brackets.
_DAMAGE = (
    ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, SyntaxError,
    tokenize.TokenError, NotImplementedError, RuntimeError, TypeError, LookupError, OverflowError,
)  # fmt: skip


def read_numpy(source: Path, name: str | None) -> tuple[Array, Array | None]:
    """The points in a file, and the labels where an archive has some beside them."""
    with open(source, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        magic = file.read(6)
        file.seek(0)
        if source.suffix.lower() == ".npy":
            if magic.startswith(b"PK"):
                raise ValueError(_unreadable(source, "an archive, not an array"))
            return _read_array(file, size, source), None
        if magic == np.lib.format.MAGIC_PREFIX:
            raise ValueError(_unreadable(source, "an array, not an archive"))
        with _open_archive(file, source) as archive:
            return _read_archive(archive, size, name, source)


def _open_archive(file: IO[bytes], source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise ValueError(_unreadable(source, error)) from None


def _read_archive(
    archive: zipfile.ZipFile, size: int, name: str | None, source: Path
) -> tuple[Array, Array | None]:
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    chosen = _choose(list(members), name, source)
    others = [other for other in _LABEL_ARRAYS if other in members and other != chosen]
    check_size(sum(members[each].file_size for each in (chosen, *others)), size, str(source))
    points = _read_member(archive, members[chosen], source)
    for other in others:
        labels = _read_member(archive, members[other], source)
        if labels.ndim == 1:
            return points, labels
    return points, None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path) -> Array:
    """An array of an archive. `zipfile` unpacks no more bytes than the archive says the member has."""
    try:
        stream = archive.open(member)
    except _DAMAGE as error:
        raise ValueError(_unreadable(source, error)) from None
    with stream:
        return _read_array(stream, member.file_size, source)


def _read_array(stream: IO[bytes], n_bytes: int, source: Path) -> Array:
    """The array in a stream of ``n_bytes``; nothing is reserved before its header agrees with that."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format, which arrays of numbers do not need")
        shape, _, dtype = _HEADERS[version](stream)
        if dtype.hasobject:
            raise ValueError("it holds pickled objects, which are never loaded")
        told, held = math.prod(map(int, shape)) * dtype.itemsize, n_bytes - stream.tell()
        if told != held:
            raise ValueError(f"its header says {shape} of {dtype}, {told} bytes; it holds {held}")
        stream.seek(0)
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
        return array
    except MemoryError:
        raise ValueError(_unreadable(source, "its array does not fit into memory")) from None
    except _DAMAGE as error:
        raise ValueError(_unreadable(source, error)) from None


def _unreadable(source: Path, reason: Any) -> str:
    said = str(reason).splitlines() or [type(reason).__name__]
    return (
        f"`path` is not a readable {source.suffix} file of numbers (truncated, or pickled objects?): "
        f"{source} ({said[0]})."
    )


def _choose(names: list[str], name: str | None, source: Path) -> str:
    if name is not None:
        if name not in names:
            raise ValueError(
                f"`name` must be one of {names}, the arrays of {source}, got {shown_near(name, names)}."
            )
        return name
    if len(names) == 1:
        return names[0]
    if "data" in names:
        return "data"
    raise ValueError(f"`path` must hold one array, or one called 'data', got {names}: {source}. Pass `name`.")
