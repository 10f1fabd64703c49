"""Centred learning: the gradient and the optimizer's step in coordinates around the means of the units.

With fixed offsets ``mu`` and ``lam`` the same machine can be written as

    E(v, h) = -(v - mu)^T w (h - lam) - b'.v - c'.h,      b' = b + w lam,  c' = c + w^T mu

up to a constant, and the log-likelihood can be climbed in ``(w, b', c')`` in place of ``(w, b, c)``:

    g_w' = g_w - mu g_c^T - g_b lam^T,    g_b and g_c as they are
    w += dw,    b += r s_b - dw lam,    c += r k s_c - dw^T mu

where ``s`` is the optimizer's direction for ``(g_w', g_b, g_c)``, ``r`` the learning rate, and ``dw`` the
whole change of the weights, decay and other penalties included: ``b'`` and ``c'`` stay where they are while
weights decay. ``mu``
are the means of the training data, ``lam`` is a running mean of ``E[h | batch]``. The transformation is that
of Cho, Raiko and Ilin (ICML 2011) and of Montavon and Müller (2012), with the offsets of Melchior, Fischer
and Wiskott, JMLR 17 (2016), arXiv:1311.1354; that the optimizer works in the centred coordinates, and ``k``,
are ours. ``k`` makes up for what centring takes from the hidden biases: where an optimizer moves every
weight by about the learning rate, a plain update moves the effective bias ``c_j + sum_i w_ij mu_i`` by
``sum_i |mu_i|`` such steps.

The part of ``dw`` that is the same for all states of a categorical unit is without effect: ``dw^T mu`` takes
it off ``c``, because frequencies add up to 1, and the zero-sum gauge, which is restored after every update
(`Layout.fix_gauge`), takes it off ``w`` and gives it back to ``c``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_positive, as_real
from paramagnet.layout import Layout
from paramagnet.learning.optimizers import Adam, Optimizer, OptimizerState, step_by
from paramagnet.learning.penalties import Penalties
from paramagnet.units import FloatArray, Unit

_STEP = 1e-4  # of the field, for the slope of a mean
_BLOCK = 1 << 18  # numbers of the gradient that are changed at a time


@dataclass(frozen=True)
class Centring:
    """How centred learning follows the hidden units, and how fast it moves their biases.

    Parameters
    ----------
    rate : float, default 0.1
        Share of the latest batch in the running mean of the hidden units, above 0 and at most 1.
    factor : float, optional
        Factor on the steps of the hidden biases. None takes ``max(1, sum_i |mu_i|)`` with `Adam`, where
        ``mu_i`` are the means of the data on the scale of spins (-1 to 1 for units of two values; for others
        their distance from the mean without field, in standard deviations without field; for categorical
        units the distances of the frequencies from ``1/q``), and 1 with any other optimizer.
    """

    rate: float = 0.1
    factor: float | None = None

    def __post_init__(self) -> None:
        rate = as_real(self.rate, "rate")
        if not 0.0 < rate <= 1.0:
            raise ValueError(f"`rate` must be above 0 and at most 1, got {self.rate!r}.")
        object.__setattr__(self, "rate", rate)
        if self.factor is not None:
            factor = float(as_positive(as_real(self.factor, "factor"), "factor"))
            object.__setattr__(self, "factor", factor)

    def at(
        self,
        layout: Layout,
        points: npt.NDArray[Any],
        optimizer: Optimizer,
        weights_of_points: FloatArray | None = None,
    ) -> Centre:
        """The centre of a run on these ``points``, with their weights if they have some."""
        means = layout.visible.column_means(points, weights_of_points)
        means.setflags(write=False)
        factor = self.factor
        if factor is None:
            factor = hidden_factor(layout, means) if isinstance(optimizer, Adam) else 1.0
        return Centre(self, means, factor)


@dataclass(frozen=True, eq=False)
class Centre:
    """What stays the same in a centred run: ``means`` are ``mu``, ``factor`` is ``k``."""

    settings: Centring
    means: FloatArray
    factor: float

    def follow(self, offsets: FloatArray | None, batch_means: FloatArray) -> FloatArray:
        """The running mean ``lam`` with the latest batch in it; before the first update ``offsets`` is None,
        and the batch counts alone.
        """
        rate = self.settings.rate
        found = batch_means.copy() if offsets is None else (1.0 - rate) * offsets + rate * batch_means
        found.setflags(write=False)
        return found

    def step_by(
        self,
        optimizer: Optimizer,
        layout: Layout,
        parameters: FloatArray,
        state: OptimizerState,
        slope: FloatArray,
        rate: float,
        penalties: Penalties,
        offsets: FloatArray,
    ) -> tuple[FloatArray, OptimizerState]:
        """`paramagnet.learning.optimizers.step_by` in centred coordinates around ``offsets``, ``lam``.

        ``slope`` is overwritten by the gradient in these coordinates.
        """
        self.turn(layout, slope, offsets)
        stretched = self.stretched(layout)
        moved, after = step_by(optimizer, layout, parameters, state, slope, rate, penalties, stretched)
        self.correct_biases(layout, parameters, moved, offsets)
        return moved, after

    def turn(self, layout: Layout, slope: FloatArray, offsets: FloatArray) -> None:
        """Overwrite the gradient ``slope`` by that in coordinates around ``offsets``, in blocks of rows."""
        of_weights, of_visible, of_hidden = layout.split(slope)
        n_rows = max(1, _BLOCK // layout.n_columns)
        for start in range(0, layout.n_rows, n_rows):
            rows = slice(start, start + n_rows)
            of_weights[rows] -= np.multiply.outer(self.means[rows], of_hidden)
            of_weights[rows] -= np.multiply.outer(of_visible[rows], offsets)

    def stretched(self, layout: Layout) -> tuple[slice, float]:
        """The hidden biases in a vector of parameters, and the factor on their steps."""
        return slice(layout.n_weights, layout.n_weights + layout.n_columns), self.factor

    def correct_biases(
        self,
        layout: Layout,
        parameters: FloatArray,
        moved: FloatArray,
        offsets: FloatArray,
        room: FloatArray | None = None,
    ) -> None:
        """Take off the biases in ``moved`` what the change of the weights from ``parameters`` gave them.

        The change is written to ``room``, a vector of the same size, which may be ``parameters`` itself; None
        makes a new one. The two products with it are made at once, because BLAS would round those with blocks
        of it in another way.
        """
        weights, visible_bias, hidden_bias = layout.split(moved)
        change = None if room is None else layout.split(room)[0]
        change = np.subtract(weights, layout.split(parameters)[0], out=change)
        visible_bias -= change @ offsets
        hidden_bias -= self.means @ change

    def growth(self, layout: Layout, largest_hidden: float) -> float:
        """A bound on the change of the biases by the change of the weights, per norm of the latter;
        ``largest_hidden`` is the largest size of a hidden unit.
        """
        return float(np.linalg.norm(self.means) + largest_hidden * math.sqrt(layout.n_hidden))


def hidden_factor(layout: Layout, means: FloatArray) -> float:
    """``k = max(1, sum_i |mu_i|)`` for visible units with these ``means``, taken on the scale of spins."""
    centre, spread = _scale_of(layout.visible, layout.n_visible)
    return max(1.0, float(np.abs((means - centre) / spread).sum()))


def _scale_of(unit: Unit, n_units: int) -> tuple[FloatArray, float | FloatArray]:
    """The mean and the standard deviation of each unit without field (for categorical units the
    probabilities, and 1).
    """
    layer = unit.at(unit.start_parameters(n_units))
    none = np.zeros(n_units * unit.width)
    if not unit.parameters:
        return layer.mean(none), unit.mean_scale
    variance = (layer.mean(none + _STEP) - layer.mean(none - _STEP)) / (2.0 * _STEP)
    return layer.mean(none), np.sqrt(variance)


def as_centring(centred: Any) -> Centring | None:
    """The settings of centred learning; None where it is off."""
    if isinstance(centred, Centring):
        return centred
    if not isinstance(centred, (bool, np.bool_)):
        raise ValueError(f"`centred` must be True, False or a `Centring`, got {shown(centred)}.")
    return Centring() if centred else None
