"""The table from the unit types of a machine to the class of its exact sum."""

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
_found: dict[Pair, type[AnySum]] = {}  # earlier results of `find_sum`


def register_sum(visible: type[Unit], hidden: type[Unit], kind: type[AnySum]) -> None:
    """Sum machines of these unit types, and of subclasses that have no sum of their own, by ``kind``."""
    SUMS[visible, hidden] = kind
    _found.clear()


def find_sum(visible: Unit, hidden: Unit) -> type[AnySum]:
    """The class of the exact sum of machines of these units.

    The classes of a pair are looked up along their bases; if two entries fit, the one for the more special
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
