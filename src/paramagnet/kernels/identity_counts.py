"""Counts of similar sequences: letters are compared as bits, 64 sites at a time.

A letter is a number of ``n_planes`` bits; a sequence is, for each 64 of its sites and each plane, one word of
64 bits. Two words differ in a bit where the letters differ in that plane: the sites at which two sequences
differ are the bits of the union over planes, and their number is the count of these bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet.kernels.jit import kernel

_TILE = 1024  # sequences whose words stay in the cache while others are compared with them


@kernel
def count_similar(planes: Any, first: int, last: int, most_different: int, counts: Any) -> None:
    """Write to ``counts[a]``, for ``first <= a < last``, how many sequences, ``a`` itself included, differ
    from sequence ``a`` at ``most_different`` sites or fewer.

    ``planes`` is ``(n_words, n_planes, n_sequences)``, uint64; ``counts`` is int64.
    """
    n_words, n_planes, n_sequences = planes.shape
    differing = np.empty(_TILE, np.uint64)
    total = np.empty(_TILE, np.uint64)
    limit = np.uint64(most_different)
    one, two, four, top = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
    pairs = np.uint64(0x5555555555555555)
    quads = np.uint64(0x3333333333333333)
    halves = np.uint64(0x0F0F0F0F0F0F0F0F)
    ones = np.uint64(0x0101010101010101)
    for a in range(first, last):
        counts[a] = 0
    for start in range(0, n_sequences, _TILE):
        size = min(_TILE, n_sequences - start)
        for a in range(first, last):
            for b in range(size):
                total[b] = np.uint64(0)
            for word in range(n_words):
                others, own = planes[word, 0, start : start + size], planes[word, 0, a]
                for b in range(size):
                    differing[b] = others[b] ^ own
                for plane in range(1, n_planes):
                    others, own = planes[word, plane, start : start + size], planes[word, plane, a]
                    for b in range(size):
                        differing[b] |= others[b] ^ own
                for b in range(size):  # LLVM knows this form as one instruction that counts bits
                    x = differing[b]
                    x = x - ((x >> one) & pairs)
                    x = (x & quads) + ((x >> two) & quads)
                    x = (x + (x >> four)) & halves
                    total[b] += (x * ones) >> top
            found = 0
            for b in range(size):
                found += 1 if total[b] <= limit else 0
            counts[a] += found
