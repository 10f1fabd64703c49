"""All parameters of a machine as one vector, in the order weights, hidden bias, visible bias.

Behind them are the further numbers of visible and of hidden units, for types that have some
(`Unit.parameters`), in the order of their names there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paramagnet.rbm import RBM
from paramagnet.units import FloatArray, Unit


@dataclass(frozen=True)
class Layout:
    """The positions of the parameters of a machine in one vector."""

    n_visible: int
    n_hidden: int
    visible: Unit
    hidden: Unit

    @classmethod
    def of(cls, rbm: RBM) -> Layout:
        """The layout of the parameters of ``rbm``."""
        return cls(rbm.n_visible, rbm.n_hidden, rbm.visible, rbm.hidden)

    @cached_property
    def size(self) -> int:
        """The number of parameters."""
        visible, hidden = self.visible.parameters, self.hidden.parameters
        return self.n_basic + len(visible) * self.n_visible + len(hidden) * self.n_hidden

    @cached_property
    def n_basic(self) -> int:
        """The number of weights and biases, which come before the further numbers of units."""
        return self.n_visible * self.n_hidden + self.n_visible + self.n_hidden

    @cached_property
    def n_weights(self) -> int:
        """The number of weights, which come first."""
        return self.n_visible * self.n_hidden

    def flatten(self, rbm: RBM) -> FloatArray:
        """The parameters of ``rbm`` as a vector."""
        further = (*rbm.visible_parameters.values(), *rbm.hidden_parameters.values())
        vector = np.concatenate((rbm.weights.ravel(), rbm.hidden_bias, rbm.visible_bias, *further))
        vector.setflags(write=False)
        return vector

    def split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The views ``weights, visible_bias, hidden_bias`` of a parameter vector."""
        end = self.n_weights
        weights = vector[:end].reshape(self.n_visible, self.n_hidden)
        return weights, vector[end + self.n_hidden : self.n_basic], vector[end : end + self.n_hidden]

    def further(self, vector: FloatArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The views of the further numbers of visible and of hidden units, by their names."""
        found: tuple[dict[str, FloatArray], dict[str, FloatArray]] = {}, {}
        start = self.n_basic
        sides = (self.visible, self.n_visible), (self.hidden, self.n_hidden)
        for views, (unit, n_units) in zip(found, sides, strict=True):
            for name in unit.parameters:
                views[name] = vector[start : start + n_units]
                start += n_units
        return found

    def units(self, vector: FloatArray) -> tuple[Unit, Unit]:
        """The unit types of both layers with the further numbers of their units, if they have any."""
        if self.size == self.n_basic:
            return self.visible, self.hidden
        visible, hidden = self.further(vector)
        return self.visible.at(visible), self.hidden.at(hidden)

    def stacked(self, vector: FloatArray) -> FloatArray:
        """The view ``(n_visible + 1, n_hidden)`` of a vector: weights, and the hidden bias beneath."""
        return vector[: self.n_weights + self.n_hidden].reshape(self.n_visible + 1, self.n_hidden)

    def machine(self, vector: FloatArray) -> RBM:
        """The machine whose parameters are ``vector``."""
        weights, visible_bias, hidden_bias = self.split(vector)
        if self.size == self.n_basic:
            return RBM(weights, visible_bias, hidden_bias, self.visible, self.hidden)
        visible, hidden = self.further(vector)
        units = self.visible, self.hidden
        return RBM(weights, visible_bias, hidden_bias, *units, visible or None, hidden or None)
