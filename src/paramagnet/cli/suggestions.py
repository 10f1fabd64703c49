"""The number of hidden units of a comparison for users who gave none, with the reason."""

from __future__ import annotations

import math

_MOST_HIDDEN, _FEWEST_HIDDEN = 20, 2
_TERMS = 2e7  # terms of an exact gradient, 2**n_hidden * n_visible, which take some hundredths of a second


def suggest_hidden_units(n_visible: int) -> tuple[int, str]:
    """A number of hidden units, and why: half of the visible ones, as long as exact gradients are quick."""
    n_hidden = min(_MOST_HIDDEN, max(_FEWEST_HIDDEN, n_visible // 2))
    n_hidden = max(_FEWEST_HIDDEN, min(n_hidden, int(math.log2(_TERMS / n_visible))))
    reason = "half of the visible units"
    if n_hidden < n_visible // 2:
        reason = "few enough for exact gradients and likelihoods"
    return n_hidden, f"--hidden-units {n_hidden}: {reason}"
