"""All parameters of a machine as one vector, in the order weights, hidden bias, visible bias.

Behind them are the further numbers of visible and of hidden units, for types that have some
(`Unit.parameters`), in the order of their names there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paramagnet.rbm import RBM, fix_gauge
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
        return self.n_weights + self.n_rows + self.n_columns

    @cached_property
    def n_weights(self) -> int:
        """The number of weights, which come first."""
        return self.n_rows * self.n_columns

    @cached_property
    def n_rows(self) -> int:
        """The number of rows of the weights, and of visible biases: ``n_visible``, times the width of a
        visible unit.
        """
        return self.n_visible * self.visible.width

    @cached_property
    def n_columns(self) -> int:
        """The number of columns of the weights, and of hidden biases."""
        return self.n_hidden * self.hidden.width

    @cached_property
    def wide(self) -> bool:
        """Whether units have more than one row or column of the weights each."""
        return max(self.visible.width, self.hidden.width) > 1

    def flatten(self, rbm: RBM) -> FloatArray:
        """The parameters of ``rbm`` as a vector."""
        further = (*rbm.visible_parameters.values(), *rbm.hidden_parameters.values())
        vector = np.concatenate((rbm.weights.ravel(), rbm.hidden_bias, rbm.visible_bias, *further))
        vector.setflags(write=False)
        return vector

    def split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The views ``weights, visible_bias, hidden_bias`` of a parameter vector."""
        end = self.n_weights
        weights = vector[:end].reshape(self.n_rows, self.n_columns)
        return weights, vector[end + self.n_columns : self.n_basic], vector[end : end + self.n_columns]

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
        """The view ``(n_rows + 1, n_columns)`` of a vector: weights, and the hidden bias beneath."""
        return vector[: self.n_weights + self.n_columns].reshape(self.n_rows + 1, self.n_columns)

    def fix_gauge(self, vector: FloatArray) -> None:
        """Bring the parameters into the zero-sum gauge, in place, if the units ask for it."""
        visible, hidden = self.visible.zero_sum, self.hidden.zero_sum
        if visible or hidden:
            units = self.visible if visible else None, self.hidden if hidden else None
            fix_gauge(*self.split(vector), *units)

    def view(self, vector: FloatArray) -> RBM:
        """`machine` without a copy of the parameters, for a ``vector`` that is read-only and stays so."""
        if self.size > self.n_basic or vector.flags.writeable:
            return self.machine(vector)
        weights, visible_bias, hidden_bias = self.split(vector)
        rbm = object.__new__(RBM)
        for name, value in (
            ("weights", weights),
            ("visible_bias", visible_bias),
            ("hidden_bias", hidden_bias),
            ("visible", self.visible),
            ("hidden", self.hidden),
            ("visible_parameters", {}),
            ("hidden_parameters", {}),
        ):
            object.__setattr__(rbm, name, value)
        return rbm

    def machine(self, vector: FloatArray) -> RBM:
        """The machine whose parameters are ``vector``."""
        weights, visible_bias, hidden_bias = self.split(vector)
        if self.size == self.n_basic:
            return RBM(weights, visible_bias, hidden_bias, self.visible, self.hidden)
        visible, hidden = self.further(vector)
        units = self.visible, self.hidden
        return RBM(weights, visible_bias, hidden_bias, *units, visible or None, hidden or None)
