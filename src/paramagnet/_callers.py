"""Whose line a warning names: that of the code that called the package, not one within it."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def caller_level() -> int:
    """The ``stacklevel`` of a warning from the function that asks; one more in a function that it calls."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
