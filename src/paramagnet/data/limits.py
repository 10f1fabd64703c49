"""How much a compressed file may become in memory.

A few megabytes of .npz, gzip or parquet can hold gigabytes of zeros. Sizes are taken from the headers before
anything is unpacked, and the readers never unpack more than the headers say.
"""

from __future__ import annotations

import os

ENVIRONMENT = "PARAMAGNET_MAX_BYTES"
DEFAULT = 1 << 30


def size_limit() -> int:
    """The most bytes that a compressed file may unpack to: what the environment variable says, or 1 GiB."""
    text = os.environ.get(ENVIRONMENT, "").strip()
    if not text:
        return DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0):
        raise ValueError(f"{ENVIRONMENT} must be a positive number of bytes, got {text!r}.")
    return int(text)


def check_size(n_bytes: int, size_on_disk: int, source: str) -> None:
    """Refuse a file that unpacks to ``n_bytes`` above the limit, unless it is as large on the disk."""
    limit = size_limit()
    if n_bytes > max(limit, size_on_disk):
        raise ValueError(
            f"`path` must not unpack to more than {limit:,} bytes, got {n_bytes:,} from a file of "
            f"{size_on_disk:,}: {source}. If you trust the file, set the environment variable "
            f"{ENVIRONMENT}={n_bytes}."
        )
