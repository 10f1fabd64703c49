"""The level of independent units: what a machine without weights reaches on the same points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramagnet.data.preparation import Preparation
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.units import FloatArray, Unit


def independent_level(
    states: FloatArray,
    unit: Unit,
    preparation: Preparation | SequencePreparation | None,
    weights: FloatArray | None = None,
) -> tuple[float, str]:
    """The mean log-likelihood of independent units, and where their means come from: from the training rows
    where the machine's file has them, else from the points themselves. ``weights`` are those of the points.
    """
    import numpy as np

    from paramagnet.learning.independent import level_of, level_of_means

    if preparation is None:
        return level_of(unit, states, states, weights, weights), "means of these points"
    means = np.asarray(preparation.means)
    return level_of_means(unit, means, states, weights), "means of the training rows"
