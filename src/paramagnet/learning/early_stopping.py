"""Early stopping on the held-out log-likelihood, with the errors that belong to it.

The log-likelihoods of two machines on the same points are correlated, so they are compared point by point:

    d_i = ln p_now(v_i) - ln p_reference(v_i)

The error of the mean of ``d`` is that over the points, with their weights where they have some, and those of
both ``ln Z`` beside it. A measurement is
an improvement if that mean exceeds two errors. The reference is the last improvement, so that many small
steps count when they add up. Pseudo-likelihoods are never used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import MOST_SWEEPS, as_count
from paramagnet.estimates import Estimate
from paramagnet.layout import Layout
from paramagnet.learning.likelihood import free_energies
from paramagnet.learning.watch import Kept, Watch, set_aside
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.learning.state import TrainState

ERRORS = 2.0  # of the paired difference, beyond which it is an improvement
_ONE_POINT = 1e-9  # above one, effective number of points that have no error


@dataclass(frozen=True)
class EarlyStopping:
    """End a run when the held-out log-likelihood no longer improves, and return the best machine.

    >>> pm.train(rbm, data, epochs=500, validation=held_out,
    ...          early_stopping=pm.EarlyStopping(patience=5))                  # doctest: +SKIP

    Parameters
    ----------
    patience : int, default 5
        Number of measurements without an improvement beyond two errors after which the run ends.
    """

    patience: int = 5

    def __post_init__(self) -> None:
        as_count(self.patience, "patience", maximum=MOST_SWEEPS)


def as_early_stopping(stopping: Any, validation: Any, evaluated: frozenset[int]) -> EarlyStopping | None:
    """The early stopping of a run; None is none."""
    if stopping is None:
        return None
    if not isinstance(stopping, EarlyStopping):
        raise ValueError(
            "`early_stopping` must be None or an `EarlyStopping`, for instance `EarlyStopping(patience=5)`, "
            f"got {shown(stopping)}."
        )
    if validation is None:
        raise ValueError("`validation` must be given for early stopping, got None. Hold some points back.")
    if not evaluated:
        raise ValueError(
            "`evaluate` must name epochs to measure at for early stopping, got none. Leave it out for fifty."
        )
    return stopping


def noted(
    state: TrainState,
    log_z: Estimate,
    held_out: npt.NDArray[Any] | None,
    stopping: EarlyStopping | None,
    weights: FloatArray | None = None,
) -> TrainState:
    """The state with its latest measurement taken into account: the best machine, and whether to stop."""
    now, watch = measured_machine(state, log_z), state.watch or Watch()
    if watch.best is None or now.value > watch.best.value:
        now = set_aside(now)
        watch = replace(watch, best=now)
    if stopping is not None and held_out is not None:
        watch = replace(watch, n_misses=watch.n_misses + 1)
        if watch.reference is None or is_better(state.layout, watch.reference, now, held_out, weights):
            now = set_aside(now)
            watch = replace(watch, reference=now, n_misses=0)
        watch = replace(watch, stopped=watch.n_misses >= stopping.patience)
    return replace(state, watch=watch)


def measured_machine(state: TrainState, log_z: Estimate) -> Kept:
    """The machine of the latest measurement; held-out points count where there are some."""
    record = state.records[-1]
    value = record.validation if math.isfinite(record.validation) else record.log_likelihood
    return Kept(state.parameters, state.update, state.epoch, value, log_z.value, log_z.error)


def is_better(
    layout: Layout,
    reference: Kept,
    now: Kept,
    points: npt.NDArray[Any],
    weights: FloatArray | None = None,
) -> bool:
    """Whether the later machine is better beyond two errors of the paired difference."""
    gain, error = paired_gain(layout, reference, now, points, weights)
    return gain > ERRORS * error


def paired_gain(
    layout: Layout,
    before: Kept,
    now: Kept,
    points: npt.NDArray[Any],
    weights: FloatArray | None = None,
) -> tuple[float, float]:
    """The mean difference of the log-likelihoods of two machines per point, and its error.

    With ``weights`` both are those of a weighted mean: ``sum w d / sum w`` has the variance
    ``sum w^2 (d - mean)^2 / (sum w)^2``, times ``n / (n - 1)`` with the effective number of points
    ``n = (sum w)^2 / sum w^2``.
    """
    states = np.asarray(points, dtype=np.float64)
    energies = [free_energies(layout.machine(kept.parameters), states) for kept in (before, now)]
    difference = energies[0] - energies[1] - (now.log_z - before.log_z)
    if weights is None:
        mean = float(difference.mean())
        spread = float(difference.std(ddof=1)) / math.sqrt(len(states)) if len(states) > 1 else math.inf
    else:
        share = weights / weights.sum()
        mean, n_effective = float(share @ difference), 1.0 / float(share @ share)
        variance = float(share**2 @ (difference - mean) ** 2)
        spread = math.inf
        if n_effective > 1.0 + _ONE_POINT:
            spread = math.sqrt(variance * n_effective / (n_effective - 1.0))
    return mean, math.hypot(spread, before.error, now.error)
