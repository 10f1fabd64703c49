"""The level of independent units: what a machine without weights reaches on the same points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramagnet.data.preparation import Preparation
    from paramagnet.units import FloatArray, Unit


def independent_level(states: FloatArray, unit: Unit, preparation: Preparation | None) -> tuple[float, str]:
    """The mean log-likelihood of independent units, and where their means come from: from the training rows
    where the machine's file has them, else from the points themselves.
    """
    import numpy as np

    from paramagnet.learning.independent import level_of

    if preparation is None:
        return level_of(unit, states, states), "means of these points"
    return level_of(unit, np.array([preparation.means]), states), "means of the training rows"
