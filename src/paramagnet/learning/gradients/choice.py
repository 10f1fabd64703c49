"""Which gradient to use where none was asked for: the exact one where it is cheap, else persistent chains."""

from __future__ import annotations

import logging

from paramagnet.exact.cost import estimate_seconds
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact
from paramagnet.units import BIT, SPIN, Unit

SECONDS_CHEAP = 1.0  # an exact gradient that takes no longer is the default

logger = logging.getLogger("paramagnet.learning.training")


def is_cheap(
    n_visible: int,
    n_hidden: int,
    visible: Unit = SPIN,
    hidden: Unit = BIT,
    *,
    seconds: float = SECONDS_CHEAP,
) -> bool:
    """Whether an exact gradient of such a machine takes no more than so many seconds, on one thread."""
    return estimate_seconds(n_visible, n_hidden, visible, hidden) <= seconds


def default_gradient(
    n_visible: int,
    n_hidden: int,
    visible: Unit,
    hidden: Unit,
    *,
    seconds: float = SECONDS_CHEAP,
    sampled: Gradient = PCD(),  # noqa: B008
) -> Gradient:
    """`Exact` where that takes no more than so many seconds, else ``sampled``; the choice is logged."""
    cheap = is_cheap(n_visible, n_hidden, visible, hidden, seconds=seconds)
    if cheap:
        text = "Gradients are exact: about %.3g s each for %d x %d units."
    else:
        text = "Gradients are sampled by PCD: exact ones would take about %.3g s each for %d x %d units."
    logger.info(text, estimate_seconds(n_visible, n_hidden, visible, hidden), n_visible, n_hidden)
    return Exact() if cheap else sampled
