"""What is taken off weights and gradients in an update: weight decay, l1, l1 of groups, and clipping.

With the learning rate ``r``, the optimizer's direction ``s`` and the weights ``w`` before the update:

    u_ij  = w_ij + r s_ij - r weight_decay w_ij
    t_j   = r (l1 + l1_group mean_i |w_ij|)
    w_ij <- sign(u_ij) max(|u_ij| - t_j, 0)

This ascends the log-likelihood less

    weight_decay / 2 sum_ij w_ij**2 + l1 sum_ij |w_ij| + (l1_group n / 2) sum_j (mean_i |w_ij|)**2

where the optimizer is plain ascent, and the soft threshold of the third line makes weights exactly zero. The
penalty of groups is that of Tubiana, Cocco and Monasson, eLife 8 (2019) e39397: hidden units with large
weights lose more. Biases are not penalized; in centred learning those of the centred coordinates stay where
they are (`paramagnet.learning.centring`). A gradient whose norm is above ``clip`` is scaled to that norm
before the optimizer sees it, in centred coordinates where learning is centred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paramagnet._checks import as_positive, as_real
from paramagnet.kernels.passes import sum_sizes
from paramagnet.layout import Layout
from paramagnet.units import FloatArray

_NONE = np.empty(0)


@dataclass(frozen=True)
class Penalties:
    """The settings of one run; ``clip`` None leaves gradients as they are."""

    weight_decay: float = 0.0
    l1: float = 0.0
    l1_group: float = 0.0
    clip: float | None = None

    @cached_property
    def nothing(self) -> bool:
        """Whether they leave weights and gradients as they are; asked in every update."""
        return self == Penalties()

    @property
    def settings(self) -> dict[str, str]:
        """What a resumed run must share; l1, l1_group and clip only where they are used."""
        chosen = {"weight_decay": repr(self.weight_decay)}
        chosen |= {name: repr(getattr(self, name)) for name in ("l1", "l1_group") if getattr(self, name)}
        return chosen if self.clip is None else chosen | {"clip": repr(self.clip)}

    def clipped(self, slope: FloatArray) -> FloatArray:
        """The gradient, of the norm ``clip`` at most."""
        if self.clip is None:
            return slope
        norm = math.sqrt(float(slope @ slope))
        return slope * (self.clip / norm) if norm > self.clip else slope

    def thresholds(self, layout: Layout, parameters: FloatArray, rate: float) -> FloatArray:
        """What is taken off the sizes of the weights of each hidden unit; empty where that is nothing."""
        if not (self.l1 or self.l1_group):
            return _NONE
        weights = layout.split(parameters)[0]
        found = np.zeros(weights.shape[1])
        if self.l1_group:
            sum_sizes(weights, found)
            with np.errstate(over="ignore"):  # infinite thresholds leave no weights
                found *= rate * self.l1_group / len(weights)
        found += rate * self.l1
        return found

    def largest_change(self, layout: Layout, norm: float, rate: float) -> float:
        """A bound on the norm of what decay and thresholds take off weights of this ``norm``.

        ``sum_i (mean_k |w_kj|)**2 <= sum_i w_ij**2`` for every hidden unit.
        """
        return rate * ((self.weight_decay + self.l1_group) * norm + self.l1 * math.sqrt(layout.n_weights))


def shrink(weights: FloatArray, thresholds: FloatArray) -> None:
    """Take ``thresholds``, one for each column, off the sizes of ``weights``, which end at zero."""
    sizes = np.abs(weights) - thresholds
    np.copysign(np.maximum(sizes, 0.0, out=sizes), weights, out=weights)


def as_penalties(weight_decay: Any, l1: Any = 0.0, l1_group: Any = 0.0, clip: Any = None) -> Penalties:
    """The settings, checked."""
    named = {"weight_decay": weight_decay, "l1": l1, "l1_group": l1_group}
    checked = {
        name: float(as_positive(as_real(value, name), name, zero=True)) for name, value in named.items()
    }
    if clip is not None:
        clip = float(as_positive(as_real(clip, "clip"), "clip"))
    return Penalties(**checked, clip=clip)
