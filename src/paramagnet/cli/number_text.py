"""Numbers with their errors as text, with as many digits as the errors allow."""

from __future__ import annotations

import math

_MOST_DECIMALS = 6


def decimals_of(error: float, digits: int = 2) -> int:
    """Decimals that show ``digits`` significant digits of an error."""
    if not math.isfinite(error) or error <= 0.0:
        return _MOST_DECIMALS
    return max(0, min(_MOST_DECIMALS, digits - 1 - math.floor(math.log10(error))))


def show_likelihood(value: float, error: float, n_points: int, log_z_error: float) -> str:
    """``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``: the mean, its standard error over the points, and the
    error of ln Z; "ln Z exact" if that has none.
    """
    known = [each for each in (error, log_z_error) if math.isfinite(each) and each > 0.0]
    decimals = decimals_of(max(known, default=0.0))
    text = f"{value:.{decimals}f}"
    if n_points > 1:
        text += f" +- {_error(error, decimals)} ({n_points} points)"
    else:
        text += " (1 point)"
    return f"{text} +- {_error(log_z_error, decimals)} (ln Z)" if log_z_error > 0.0 else f"{text}, ln Z exact"


def _error(error: float, decimals: int) -> str:
    if not math.isfinite(error):
        return "unknown"
    text = f"{error:.{decimals}f}"
    return f"{error:.1g}" if error > 0.0 and float(text) == 0.0 else text
