"""Otsu's threshold for images of bytes: one histogram and one pass over its levels for each image.

For a sample of ``n`` values with sum ``S``, of which the ``n0`` lowest have the sum ``s``, the variance
between the two classes is ``(n s - n0 S)**2 / (n0 (n - n0))`` up to a factor that all splits share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet.kernels.jit import kernel

TIE = 1e-12  # splits whose variances differ relatively by less count as equal; the lowest one is taken


@kernel
def byte_thresholds(images: Any, thresholds: Any, constant: Any) -> None:
    """Write the threshold of each row of ``images``, uint8, to ``thresholds``, float64, and whether the row
    is constant to ``constant``.

    The threshold lies midway between two neighbouring values of the row; in a constant row it is that value.
    """
    n_images, n = images.shape
    counts = np.zeros((4, 256), np.uint32)
    for i in range(n_images):
        # Four histograms are used in turn, because neighbouring pixels are often equal, and a counter that
        # was just written is slow to read again.
        counts[:] = 0
        j = 0
        while j + 4 <= n:
            counts[0, images[i, j]] += 1
            counts[1, images[i, j + 1]] += 1
            counts[2, images[i, j + 2]] += 1
            counts[3, images[i, j + 3]] += 1
            j += 4
        while j < n:
            counts[0, images[i, j]] += 1
            j += 1
        total = 0.0
        for value in range(256):
            counts[0, value] += counts[1, value] + counts[2, value] + counts[3, value]
            total += np.float64(counts[0, value]) * value
        # All products below are of integers and exact for fewer than 5e6 pixels.
        n_low, sum_low, highest, last = 0.0, 0.0, 0.0, 0
        threshold = -1.0
        for value in range(256):
            count = np.float64(counts[0, value])
            if count == 0.0:
                continue
            if n_low > 0.0:
                difference = n * sum_low - n_low * total
                variance = difference * difference / (n_low * (n - n_low))
                if variance > highest * (1.0 + TIE):
                    highest = variance
                    threshold = 0.5 * (last + value)
            n_low += count
            sum_low += count * value
            last = value
        constant[i] = threshold < 0.0
        thresholds[i] = last if constant[i] else threshold
