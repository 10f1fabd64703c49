"""The idx format of the MNIST files: a type, the sizes of the dimensions, the numbers; often gzipped."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.data.limits import check_size

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"
_MAX_DIMENSIONS = 8
_MAX_RATIO = 1032  # largest ratio that deflate can reach


class _Reader:
    """Reads a file's content from the front, unpacked if it is gzipped, never more bytes than requested."""

    def __init__(self, content: bytes) -> None:
        self._rest = content
        self._unpack = zlib.decompressobj(wbits=31) if content.startswith(_GZIP) else None

    def take(self, n_bytes: int) -> bytes:
        """The next ``n_bytes``, or as many as there are."""
        if self._unpack is None:
            taken, self._rest = self._rest[:n_bytes], self._rest[n_bytes:]
            return taken
        taken = self._unpack.decompress(self._rest, n_bytes) if n_bytes else b""
        self._rest = self._unpack.unconsumed_tail
        return taken

    def at_end(self) -> bool:
        """Whether nothing is left and the check sum, if there is one, was right."""
        return self.take(1) == b"" and not self._rest and (self._unpack is None or self._unpack.eof)


def parse_idx(content: bytes, source: str) -> npt.NDArray[Any]:
    """The array in the bytes of an idx file called ``source``; its header must tell the exact size."""
    reader = _Reader(content)
    try:
        magic = reader.take(4)
        if not magic:
            raise ValueError(f"`path` must be an idx file, but is empty: {source}.")
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
            raise ValueError(f"`path` must be an idx file, but starts with {magic.hex(' ')}: {source}.")
        n_dimensions = magic[3]
        if not 1 <= n_dimensions <= _MAX_DIMENSIONS:
            raise ValueError(
                f"`path` must have 1 to {_MAX_DIMENSIONS} dimensions, got {n_dimensions}: {source}."
            )
        sizes = reader.take(4 * n_dimensions)
        shape = tuple(int(size) for size in np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4"))
        kind = np.dtype(_TYPES[magic[2]])
        # Python's integers, because the product of wrong sizes may exceed 64 bits. No memory is reserved.
        expected = math.prod(shape) * kind.itemsize if len(shape) == n_dimensions else -1
        possible = 0 <= expected <= _MAX_RATIO * len(content)
        if possible:
            check_size(expected, len(content), source)
        body = reader.take(expected) if possible else b""
        if len(body) != expected or not reader.at_end():
            told = " x ".join(map(str, shape))
            raise ValueError(
                f"`path` must hold as many bytes as its header says, {told} numbers of {kind.itemsize}; "
                f"it holds {'fewer' if len(body) < expected else 'others'} (damaged?): {source}."
            )
    except zlib.error as error:
        raise ValueError(f"`path` is not a valid gzip file (damaged?): {source} ({error}).") from None
    return np.frombuffer(body, kind).reshape(shape)
