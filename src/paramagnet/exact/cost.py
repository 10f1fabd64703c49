"""The time that an exact sum will take, estimated before it starts."""

from __future__ import annotations

import math

from paramagnet.exact.exact_sum import Sizes
from paramagnet.exact.registered_sums import find_sum
from paramagnet.rbm import RBM
from paramagnet.units import BIT, SPIN, Unit

SECONDS_ALLOWED = 600.0


def sizes_of(rbm: RBM) -> Sizes:
    """The sizes and unit types of a machine, which determine the cost of an enumeration."""
    return Sizes(rbm.n_visible, rbm.n_hidden, rbm.visible, rbm.hidden)


def check_cost(
    n_visible: int,
    n_hidden: int,
    visible: Unit = SPIN,
    hidden: Unit = BIT,
    *,
    n_threads: int,
    gradient: bool,
    force: bool,
) -> None:
    """Raise ValueError if one enumeration of such a machine would take more than ten minutes, unless
    ``force``.
    """
    if force:
        return
    seconds = estimate_seconds(n_visible, n_hidden, visible, hidden, n_threads=n_threads, gradient=gradient)
    if seconds > SECONDS_ALLOWED:
        exponent = count_summed(n_visible, n_hidden, visible, hidden)
        remedy = "; `log_partition(rbm, force=True)` or `Exact(force=True)` enumerate all the same"
        if exponent > find_sum(visible, hidden).most:
            remedy = ""  # too many states even with `force`
        raise ValueError(
            f"Exact enumeration needs 2**{exponent} states, about {show_duration(seconds)}; at most ten "
            "minutes are allowed. The alternatives are annealed importance sampling "
            f"(`estimate_log_partition`) for ln Z and persistent chains (PCD) for training{remedy}."
        )


def count_summed(n_visible: int, n_hidden: int, visible: Unit, hidden: Unit) -> int:
    """The binary logarithm of the number of states that are summed one by one: the number of units of the
    smaller layer, or of the binary one.
    """
    return find_sum(visible, hidden).log2_states(Sizes(n_visible, n_hidden, visible, hidden))


def estimate_seconds(
    n_visible: int,
    n_hidden: int,
    visible: Unit = SPIN,
    hidden: Unit = BIT,
    *,
    n_threads: int = 1,
    gradient: bool = True,
) -> float:
    """The time of one enumeration of such a machine in seconds; infinite if it overflows a float."""
    sizes = Sizes(n_visible, n_hidden, visible, hidden)
    try:
        return find_sum(visible, hidden).seconds(sizes, n_threads=n_threads, gradient=gradient)
    except OverflowError:
        return math.inf


def show_duration(seconds: float) -> str:
    """A time in seconds as text with a suitable unit; a call takes no less than a millisecond."""
    seconds = max(seconds, 1e-3)
    if math.isinf(seconds):
        return "more years than there are"
    for size, name in ((365.25 * 86400.0, "years"), (86400.0, "days"), (3600.0, "hours")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds / 60.0:.3g} minutes" if seconds >= 120.0 else f"{seconds:.2g} s"
