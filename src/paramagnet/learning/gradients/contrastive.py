"""Contrastive divergence: short chains that start from the data at every update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import MOST_SWEEPS, as_count, as_threads
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import Gradient, GradientState, ModelMoments, Particles
from paramagnet.learning.moments import sampled_moments
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


@dataclass(frozen=True)
class CD(Gradient):
    """Contrastive divergence: averages over chains that start from the points of each batch.

    Fast and biased: what the machine believes far from the data is never seen. ``n_threads`` is as for `PCD`.

    Parameters
    ----------
    n_steps : int, default 1
        Sweeps from the points of a batch.
    n_threads : int, optional
        Threads that share the work; None takes all cores. The result is the same bit for bit.
    """

    n_steps: int = 1
    n_threads: int | None = None

    def __post_init__(self) -> None:
        as_count(self.n_steps, "n_steps", maximum=MOST_SWEEPS)
        if self.n_threads is not None:
            as_threads(self.n_threads)

    def check(self, rbm: RBM, engine: TorchEngine | None) -> None:
        """Chains run on every device."""

    def start(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: FloatArray,
        rng: np.random.Generator,
        engine: TorchEngine | None,
    ) -> Chains:
        """No chains, just the seed of those to come."""
        return Chains.start(layout.visible, (0, layout.n_visible), rng)

    def particles(self) -> Particles | None:
        """The same chains, for the compiled update; not for subclasses with other averages."""
        own = type(self).moments is CD.moments
        return Particles(None, self.n_steps, self.n_threads) if own else None

    def moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
    ) -> tuple[Chains, ModelMoments]:
        """The address of the next random numbers, and the averages after ``n_steps`` sweeps."""
        return self._average(layout, parameters, points, state, engine, None)

    def weighted_moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
        weights_of_points: FloatArray | None,
    ) -> tuple[GradientState | None, ModelMoments]:
        """The same; a chain has the weight of the point it starts from."""
        if type(self).moments is not CD.moments:
            return self.moments(layout, parameters, points, state, engine)
        return self._average(layout, parameters, points, state, engine, weights_of_points)

    def _average(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
        weights_of_points: FloatArray | None,
    ) -> tuple[Chains, ModelMoments]:
        assert isinstance(state, Chains)
        chains = Chains.at(points, state.seed, state.sweep)
        moved, average = sampled_moments(
            layout, parameters, chains, self.n_steps, self.n_threads, engine, weights_of_points
        )
        return Chains.at(moved.visible[:0], moved.seed, moved.sweep), ModelMoments(average)
