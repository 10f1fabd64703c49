"""Checks of the accuracy of exact sums, whose only error is the rounding of large exponents.

An exponent that is a sum of terms whose absolute values add up to ``S`` has a rounding error of about
``d = 2**-52 S``. It changes ``ln Z`` by up to ``d``, a probability by up to ``d`` times itself, and so the
average of a unit by up to ``d E|x - E x|``, which is almost zero if one state outweighs all others, however
large the parameters are. The package promises nine decimals and refuses sums that would have fewer.
"""

from __future__ import annotations

TOLERANCE = 1e-9
EPSILON = 2.0**-52
CERTAIN = TOLERANCE / EPSILON  # magnitude ``S`` up to which all results have nine decimals
LARGEST = 1e-6 / EPSILON  # for larger ``S`` rounding might decide which state is the most probable


class InexactSumError(ValueError):
    """The parameters of a machine are so large that rounding spoils its exact sums."""


def check_averages(magnitude: float, deviation: float) -> None:
    """Raise `InexactSumError` if averages of units with mean absolute deviations up to ``deviation`` may be
    wrong by 1e-9.
    """
    if not (magnitude <= LARGEST and EPSILON * magnitude * deviation <= TOLERANCE):
        raise _refusal("averages that are true to 1e-9", magnitude)


def check_draws(magnitude: float) -> None:
    """Raise `InexactSumError` if probabilities have relative errors of 1e-6, which 1e12 draws could show."""
    if not magnitude <= LARGEST:
        raise _refusal("draws from its distribution", magnitude)


def check_logarithm(value: float, magnitude: float) -> None:
    """Raise `InexactSumError` if the logarithm of a sum has an error above 1e-9 of its value, or of 1 if that
    is larger.
    """
    if not EPSILON * magnitude <= TOLERANCE * max(1.0, abs(value)):
        raise _refusal(f"ln Z = {value:.6g} that is true to nine digits", magnitude)


def _refusal(purpose: str, magnitude: float) -> InexactSumError:
    return InexactSumError(
        f"`weights` and biases must be smaller for {purpose}: the terms of an exponent add up to "
        f"{magnitude:.3g} in absolute value, and rounding a number of that size spoils it. Was the machine "
        "trained with too large a learning rate?"
    )
