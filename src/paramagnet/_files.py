"""Files: one atomic write for the whole package, and files of arrays with a checksum.

A file of arrays is safetensors, with the name of a format, a version and a checksum in the metadata. The same
content always gives the same bytes. Version 1 had no checksum and is still read; version 2 promises one, so a
file that lost it is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import physical_memory
from paramagnet._checks import as_path, near_files

FloatArray = npt.NDArray[np.float64]

VERSION = "2"  # of files of arrays
UNCHECKED_VERSION = "1"  # without a checksum
_CHECKSUM_BYTES = 16
_TOKEN = re.compile(r"[0-9a-f]+")


def checksum(parts: Iterable[bytes | memoryview], n_bytes: int = _CHECKSUM_BYTES) -> str:
    """A checksum of the parts, one after the other, as hexadecimal digits.

    BLAKE2b comes with every Python, is fast without special instructions of the processor, and has digests of
    any length; the 32 bits of CRC-32 are too few for files of gigabytes.
    """
    state = hashlib.blake2b(digest_size=n_bytes)
    for part in parts:
        state.update(part)
    return state.hexdigest()


# Files of arrays


def write_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, npt.NDArray[Any]],
    form: str,
    metadata: Mapping[str, str],
) -> None:
    """Write float64 ``arrays`` and ``metadata`` to ``path`` as safetensors of format ``form``, atomically."""
    # The header is written here, since the order of the metadata varies in what safetensors writes, and the
    # memory of arrays that are not C-ordered is written as if they were.
    ordered = {name: np.ascontiguousarray(arrays[name], dtype="<f8") for name in sorted(arrays)}
    words = {**metadata, "format": form, "version": VERSION}
    words["checksum"] = _content_checksum(ordered, words)
    header: dict[str, Any] = {"__metadata__": dict(sorted(words.items()))}
    offset = 0
    for name, array in ordered.items():
        ends = offset + array.nbytes
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [offset, ends]}
        offset = ends
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays are aligned
    write_atomically(path, b"".join([struct.pack("<Q", len(text)), text, *map(_memory, ordered.values())]))


def read_arrays(path: str | os.PathLike[str], form: str) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """The float64 arrays and the metadata of a file of format ``form``; any other file is refused, and so is
    one whose content does not have its checksum.
    """
    from safetensors import SafetensorError, safe_open

    source = as_path(path, "path")
    if not source.exists():
        raise FileNotFoundError(f"`path` does not exist: {source}{near_files(source)}.")
    if not source.is_file():
        raise ValueError(f"`path` must be a regular file: {source}.")
    _require_memory(source)
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            _check_format(metadata, form, source)
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
            if set(kinds.values()) - {"F64"}:
                raise ValueError(f"`path` must hold float64 arrays, got {kinds}: {source}.")
            arrays = {name: file.get_tensor(name) for name in kinds}
    except SafetensorError as error:
        raise ValueError(
            f"`path` is not a safetensors file, or a damaged one (truncated?): {source} ({error})."
        ) from None
    promised = metadata.pop("checksum", None)
    if promised is None and metadata["version"] == UNCHECKED_VERSION:
        return arrays, metadata
    if promised != _content_checksum(arrays, metadata):
        why = (
            "has lost its checksum" if promised is None else "does not have the checksum it was written with"
        )
        raise ValueError(
            f"`path` is damaged: its content {why}: {source}. Take a copy of the file, or make it anew."
        )
    return arrays, metadata


def _check_format(metadata: Mapping[str, str], form: str, source: Path) -> None:
    if metadata.get("format") != form:
        raise ValueError(
            f"`path` must be a file of format {form!r}, "
            f"but this safetensors file says {metadata.get('format')!r}: {source}."
        )
    if metadata.get("version") not in (UNCHECKED_VERSION, VERSION):
        raise ValueError(
            f"`path` has version {metadata.get('version')!r} of the format {form!r}; "
            f"this release reads versions {UNCHECKED_VERSION} and {VERSION}: {source}."
        )


def _content_checksum(arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """The checksum of the metadata (without the checksum itself) and of names, shapes and numbers of arrays.

    It does not depend on how the header is written, so a copy made with other tools keeps it.
    """
    names = sorted(arrays)
    shapes = [[name, list(arrays[name].shape)] for name in names]
    header = json.dumps([sorted(metadata.items()), shapes], separators=(",", ":")).encode()
    vectors = (np.ascontiguousarray(arrays[name], dtype="<f8") for name in names)
    return checksum([header, *map(_memory, vectors)])


def _memory(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _require_memory(source: Path) -> None:
    """Refuse a file that is larger than this computer's memory, before any is taken for it.

    safetensors itself refuses a header that declares more than the size of its file.
    """
    size, memory = source.stat().st_size, physical_memory()
    if size > memory:
        raise ValueError(
            f"`path` must fit into the memory of this computer, {memory / 1e9:.3g} GB, got a file of "
            f"{size / 1e9:.3g} GB: {source}."
        )


# The atomic write


def write_atomically(path: str | os.PathLike[str], payload: bytes) -> None:
    """Replace the file at ``path`` by ``payload``, at once or not at all.

    After a crash or on a full disk either the old file or the new one is there, whole. A symbolic link stays
    one; the mode of a former file is kept. Temporary files that killed writers of the same file left behind
    are removed.
    """
    target = writable_target(path)
    _remove_leftovers(target)
    file, temporary = _open_temporary(target)
    try:
        with file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            if os.name == "posix":
                os.replace(temporary, target)  # while it is locked
        if os.name != "posix":  # where open files cannot be renamed
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    if os.name == "posix":  # so that the new name survives a power cut
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _open_temporary(target: Path) -> tuple[BinaryIO, Path]:
    """A new file beside ``target``, locked as long as it is open: the lock tells others that its writer is
    alive, and the system takes it away from one that was killed.
    """
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask
        file = open(descriptor, "wb")  # noqa: SIM115 - the caller closes it
        if _lock(descriptor) is False or os.fstat(descriptor).st_nlink == 0:
            file.close()  # another writer took it for a left-over before it was locked
            continue
        return file, temporary


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files for ``target`` that no living process has locked."""
    first, last = f".{target.name}.", ".tmp"
    for entry in os.scandir(target.parent):
        name = entry.name
        if not (name.startswith(first) and name.endswith(last)):
            continue
        if not _TOKEN.fullmatch(name[len(first) : -len(last)]):
            continue  # of another target, whose name begins with that of this one
        try:
            descriptor = os.open(entry.path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            continue  # gone by now, or not ours
        try:
            if _lock(descriptor):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock an open file; False if another process has locked it, None if the system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def writable_target(path: str | os.PathLike[str]) -> Path:
    """The path that a file called ``path`` will be written to; raises an error at once if it cannot be."""
    target = Path(os.path.realpath(as_path(path, "path")))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder of `path` does not exist: {target.parent}. Create it first.")
    if target.exists() and not target.is_file():
        raise ValueError(f"`path` must be a regular file or a new name, got {os.fspath(path)!r}.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"The folder of `path` is not writable: {target.parent}.")
    return target
