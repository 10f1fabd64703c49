"""The one place that chooses how a machine is summed: by the types of its units."""

from __future__ import annotations

import itertools
from typing import Any

from paramagnet.exact.brute_force import BruteForce
from paramagnet.exact.enumerated import Enumerated
from paramagnet.exact.exact_sum import ExactSum
from paramagnet.exact.gaussian_integrated import HiddenIntegrated, VisibleIntegrated
from paramagnet.units import BinaryUnit, FloatArray, GaussianUnit, Unit

Pair = tuple[type[Unit], type[Unit]]
AnySum = ExactSum[Any, Any]

SUMS: dict[Pair, type[AnySum]] = {
    (Unit, Unit): BruteForce,
    (BinaryUnit, BinaryUnit): Enumerated,
    (GaussianUnit, BinaryUnit): VisibleIntegrated,
    (BinaryUnit, GaussianUnit): HiddenIntegrated,
}
_found: dict[Pair, type[AnySum]] = {}  # what `find_sum` answered before


def register_sum(visible: type[Unit], hidden: type[Unit], kind: type[AnySum]) -> None:
    """Sum machines of these unit types, and of subclasses that have no sum of their own, by ``kind``."""
    SUMS[visible, hidden] = kind
    _found.clear()


def find_sum(visible: Unit, hidden: Unit) -> type[AnySum]:
    """The way to sum machines of these units.

    The classes of a pair are looked up along their bases; of two ways that fit, the one for the more special
    class of visible units is taken.
    """
    pair = type(visible), type(hidden)
    found = _found.get(pair)
    if found is None:
        bases = itertools.product(pair[0].__mro__, pair[1].__mro__)
        found = _found[pair] = next(SUMS[base] for base in bases if base in SUMS)
    return found


def exact_sum(
    weights: FloatArray, visible_bias: FloatArray, hidden_bias: FloatArray, visible: Unit, hidden: Unit
) -> AnySum:
    """The sum over all states of a machine, given by its arrays and its units (`RBM.units`)."""
    kind = _found.get((type(visible), type(hidden))) or find_sum(visible, hidden)
    return kind.of(weights, visible_bias, hidden_bias, visible, hidden)
