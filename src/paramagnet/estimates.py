"""An estimate: a number, its standard error, and whether that error is reliable."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paramagnet._checks import as_count, as_real

FEWEST_EFFECTIVE = 50.0  # number of effective samples below which errors are unreliable
_MOST_DECIMALS = 6


def effective_number(error: float, n_samples: int) -> float:
    """The effective number of ``n_samples`` weights if ``error`` is the relative error of their mean.

    With ``S`` samples that is ``S / (1 + (S - 1) error**2)``.
    """
    return n_samples / (1.0 + (n_samples - 1) * error**2)


def decimals_of(error: float, digits: int = 2) -> int:
    """Decimals that show ``digits`` significant digits of an error."""
    if not math.isfinite(error) or error <= 0.0:
        return _MOST_DECIMALS
    return max(0, min(_MOST_DECIMALS, digits - 1 - math.floor(math.log10(error))))


def likelihood_decimals(points_error: float, log_z_error: float) -> int:
    """Decimals that show two significant digits of the larger error."""
    known = [each for each in (points_error, log_z_error) if math.isfinite(each) and each > 0.0]
    return decimals_of(max(known, default=0.0))


def show_likelihood(
    value: float, points_error: float, n_points: int, log_z_error: float, spec: str = ""
) -> str:
    """``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``: the mean, its standard error over the points, and the
    error of ln Z; "ln Z exact" if that has none. ``spec`` formats all three; without it the larger error
    decides how many decimals are shown.
    """
    spec = spec or f".{likelihood_decimals(points_error, log_z_error)}f"
    text = f"{value:{spec}}"
    if n_points > 1:
        text += f" +- {show_error(points_error, spec)} ({n_points} points)"
    else:
        text += " (1 point)"
    exact = not log_z_error > 0.0
    return f"{text}, ln Z exact" if exact else f"{text} +- {show_error(log_z_error, spec)} (ln Z)"


def show_error(error: float, spec: str) -> str:
    """An error with the digits of ``spec``, or with one significant digit where those would show zero."""
    if not math.isfinite(error):
        return "unknown"
    text = f"{error:{spec}}"
    return f"{error:.1g}" if error > 0.0 and float(text) == 0.0 else text


@dataclass(frozen=True)
class Estimate:
    """A number, its standard error, and the effective number of samples behind it (infinite if it is exact).

    With few effective samples the error itself is uncertain: the estimate is then not `trusted`, and its text
    says so.

    A log-likelihood has two errors that mean different things. ``error`` is that of ``ln Z``, which more
    samples and temperatures reduce. ``points_error`` is that of a mean over so few points, which only more
    points reduce. Its text shows both: ``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``.

    Parameters
    ----------
    value : float
        The number.
    error : float, default 0.0
        Its standard error; 0 if it is exact.
    n_effective : float, optional
        Effective number of samples behind it.
    points_error : float, default 0.0
        Of a log-likelihood: the standard error of the mean over the points, infinite for a single point.
    n_points : int, default 0
        Of a log-likelihood: how many points it is a mean over; 0 for other numbers.
    """

    value: float
    error: float = 0.0
    n_effective: float = math.inf
    points_error: float = 0.0
    n_points: int = 0

    def __post_init__(self) -> None:
        for name in ("value", "error", "n_effective", "points_error"):
            if type(getattr(self, name)) is not float:
                object.__setattr__(self, name, as_real(getattr(self, name), name, finite=False))
        object.__setattr__(self, "n_points", as_count(self.n_points, "n_points", minimum=0))

    def __float__(self) -> float:
        return self.value

    @property
    def trusted(self) -> bool:
        """Whether there are enough effective samples for a reliable error."""
        return self.n_effective >= FEWEST_EFFECTIVE and math.isfinite(self.error)

    def __repr__(self) -> str:
        if self.n_points:
            return self._flagged(self._text(""))
        if not (self.error > 0.0 and math.isfinite(self.error)):
            return self._flagged(f"{self.value:.10g} +- {self.error:.2g}")
        spec = f".{decimals_of(self.error)}f"
        return self._flagged(f"{self.value:{spec}} +- {show_error(self.error, spec)}")

    def __format__(self, spec: str) -> str:
        """Value and errors in the same format, as in ``f"{estimate:.3f}"``."""
        if not spec:
            return repr(self)
        plain = f"{self.value:{spec}} +- {self.error:{spec}}"
        return self._flagged(self._text(spec) if self.n_points else plain)

    def _text(self, spec: str) -> str:
        return show_likelihood(self.value, self.points_error, self.n_points, self.error, spec)

    def _flagged(self, text: str) -> str:
        return text if self.trusted else f"{text} (do not trust: {self.n_effective:.3g} effective samples)"
