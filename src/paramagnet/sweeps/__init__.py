"""Sweeps are experiments of many runs: a specification goes in, records and tables come out.

The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._lazy import lazy_exports

if TYPE_CHECKING:
    from paramagnet.sweeps.compare import InitializationComparison as InitializationComparison
    from paramagnet.sweeps.compare import compare_initializations as compare_initializations

_MODULE_OF = {
    "compare_initializations": "compare",
    "InitializationComparison": "compare",
}

__all__ = [*_MODULE_OF]

__getattr__, __dir__ = lazy_exports(__name__, _MODULE_OF)
