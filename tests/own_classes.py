"""A gradient, an optimizer and schemes of a user's, outside the package: ``own_classes:RMSprop`` is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paramagnet import Gradient
from paramagnet.learning.gradients.base import ModelMoments
from paramagnet.learning.moments import sampled_moments
from paramagnet.learning.optimizers import OptimizerState
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains
from paramagnet.schemes import Drawn, Scale, Scheme


@dataclass(frozen=True)
class RMSprop:
    """``s <- decay s + (1 - decay) g**2``, direction ``g / (sqrt(s) + epsilon)``."""

    learning_rate: float = 0.01
    decay: float = 0.9
    epsilon: float = 1e-8

    def start(self, size):
        return OptimizerState(0, (np.zeros(size),))

    def step(self, state, gradient):
        scale = self.decay * state.slots[0] + (1.0 - self.decay) * gradient**2
        direction = gradient / (np.sqrt(scale) + self.epsilon)
        return direction, OptimizerState(state.n_steps + 1, (scale,))


@dataclass(frozen=True)
class RestartedChains(Gradient):
    """Chains that start from the points of the batch at every tenth update, and go on otherwise."""

    n_steps: int = 2
    period: int = 10

    def start(self, layout, parameters, points, rng, engine):
        return Chains.start(layout.visible, (0, layout.n_visible), rng)

    def moments(self, layout, parameters, points, state, engine):
        if state.sweep // self.n_steps % self.period == 0:
            state = Chains.at(points, state.seed, state.sweep)
        moved, average = sampled_moments(layout, parameters, state, self.n_steps, 1)
        return moved, ModelMoments(average)


class Incomplete(Gradient):
    """A gradient without `moments`."""

    def start(self, layout, parameters, points, rng, engine):
        return None


@dataclass(frozen=True)
class Narrow(Scale):
    """``sigma = width (n m)**(-1/4)``."""

    width: float = 0.5

    def std(self, layers):
        return self.width * (layers.n_visible * layers.n_hidden) ** -0.25


class Components(Scheme):
    """The principal components of the points as weights."""

    needs_data = True

    def draw(self, layers, visible_bias, points, gain, rng):
        centred = points - points.mean(axis=0)
        _, values, vectors = np.linalg.svd(centred / np.sqrt(len(points)), full_matrices=False)
        patterns = (values[:, None] * vectors)[: layers.n_hidden]
        weights = np.zeros((layers.n_visible, layers.n_hidden))
        weights[:, : len(patterns)] = gain * patterns.T
        hidden_bias = np.full(layers.n_hidden, layers.hidden_bias)
        rbm = RBM(weights, visible_bias, hidden_bias, layers.visible, layers.hidden)
        return Drawn(rbm, float(weights.std()))


class Bare(Scheme):
    """A scheme without `draw`."""


class Endless(Scale):
    """A scale that is no number."""

    def std(self, layers):
        return float("nan")
