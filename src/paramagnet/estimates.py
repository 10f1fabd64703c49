"""An estimate: a number, its standard error, and whether that error is reliable."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paramagnet._checks import as_real

FEWEST_EFFECTIVE = 50.0  # number of effective samples below which errors are unreliable


def effective_number(error: float, n_samples: int) -> float:
    """The effective number of ``n_samples`` weights if ``error`` is the relative error of their mean.

    With ``S`` samples that is ``S / (1 + (S - 1) error**2)``.
    """
    return n_samples / (1.0 + (n_samples - 1) * error**2)


@dataclass(frozen=True)
class Estimate:
    """A number, its standard error, and the effective number of samples behind it (infinite if it is exact).

    With few effective samples the error itself is uncertain: the estimate is then not `trusted`, and its text
    says so.

    Parameters
    ----------
    value : float
        The number.
    error : float, default 0.0
        Its standard error; 0 if it is exact.
    n_effective : float, optional
        Effective number of samples behind it.
    """

    value: float
    error: float = 0.0
    n_effective: float = math.inf

    def __post_init__(self) -> None:
        for name in ("value", "error", "n_effective"):
            if type(getattr(self, name)) is not float:
                object.__setattr__(self, name, as_real(getattr(self, name), name, finite=False))

    def __float__(self) -> float:
        return self.value

    @property
    def trusted(self) -> bool:
        """Whether there are enough effective samples for a reliable error."""
        return self.n_effective >= FEWEST_EFFECTIVE and math.isfinite(self.error)

    def __repr__(self) -> str:
        return self._flagged(f"{self.value:.10g} +- {self.error:.2g}")

    def __format__(self, spec: str) -> str:
        """Value and error in the same format, as in ``f"{estimate:.3f}"``."""
        return self._flagged(f"{self.value:{spec}} +- {self.error:{spec}}") if spec else repr(self)

    def _flagged(self, text: str) -> str:
        return text if self.trusted else f"{text} (do not trust: {self.n_effective:.3g} effective samples)"
