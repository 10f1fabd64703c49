"""Exact sums over the states of one layer.

The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._lazy import lazy_exports

if TYPE_CHECKING:
    from paramagnet.exact.sums import Moments as Moments
    from paramagnet.exact.sums import exact_moments as exact_moments
    from paramagnet.exact.sums import log_partition as log_partition
    from paramagnet.exact.sums import sample_exact as sample_exact

_MODULE_OF = {
    "log_partition": "sums",
    "exact_moments": "sums",
    "Moments": "sums",
    "sample_exact": "sums",
}

__all__ = [*_MODULE_OF]

__getattr__, __dir__ = lazy_exports(__name__, _MODULE_OF)
