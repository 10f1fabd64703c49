"""All parameters of a machine as one vector, in the order weights, hidden bias, visible bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paramagnet.rbm import RBM
from paramagnet.units import FloatArray, Unit

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Layout:
    """How the parameters of a machine lie in one vector."""

    n_visible: int
    n_hidden: int
    visible: Unit
    hidden: Unit

    @classmethod
    def of(cls, rbm: RBM) -> Layout:
        """The layout of the parameters of ``rbm``."""
        return cls(rbm.n_visible, rbm.n_hidden, rbm.visible, rbm.hidden)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.n_visible * self.n_hidden + self.n_visible + self.n_hidden

    @property
    def n_weights(self) -> int:
        """The number of weights: they come first."""
        return self.n_visible * self.n_hidden

    def flatten(self, rbm: RBM) -> FloatArray:
        """The parameters of ``rbm`` as a vector."""
        vector = np.concatenate((rbm.weights.ravel(), rbm.hidden_bias, rbm.visible_bias))
        vector.setflags(write=False)
        return vector

    def split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The views ``weights, visible_bias, hidden_bias`` of a parameter vector."""
        end = self.n_weights
        weights = vector[:end].reshape(self.n_visible, self.n_hidden)
        return weights, vector[end + self.n_hidden :], vector[end : end + self.n_hidden]

    def stacked(self, vector: FloatArray) -> FloatArray:
        """The view ``(n_visible + 1, n_hidden)`` of a vector: weights, and the hidden bias beneath."""
        return vector[: self.n_weights + self.n_hidden].reshape(self.n_visible + 1, self.n_hidden)

    def machine(self, vector: FloatArray) -> RBM:
        """The machine whose parameters are ``vector``."""
        weights, visible_bias, hidden_bias = self.split(vector)
        return RBM(weights, visible_bias, hidden_bias, self.visible, self.hidden)
