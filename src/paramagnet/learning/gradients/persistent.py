"""Persistent contrastive divergence: chains that go on from update to update.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_count, as_threads
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import Gradient, GradientState, ModelMoments, Particles
from paramagnet.learning.moments import run_chains, sampled_moments
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


@dataclass(frozen=True)
class PCD(Gradient):
    """Persistent contrastive divergence: averages over chains that go on from update to update.

    ``n_chains`` chains start at random and make ``n_relax`` sweeps on the initial machine, then ``n_steps``
    before each update; the defaults are those of [Y25]. ``n_threads`` share the work, None takes all cores;
    the result is the same bit for bit.

    Parameters
    ----------
    n_chains : int, default 1000
        Number of chains.
    n_steps : int, default 40
        Sweeps of every chain before each update.
    n_relax : int, default 500
        Sweeps on the initial machine before the first update.
    n_threads : int, optional
        Threads that share the work; None takes all cores. The result is the same bit for bit.
    """

    n_chains: int = 1000
    n_steps: int = 40
    n_relax: int = 500
    n_threads: int | None = None

    def __post_init__(self) -> None:
        as_count(self.n_chains, "n_chains", maximum=MOST_CHAINS)
        as_count(self.n_steps, "n_steps", maximum=MOST_SWEEPS)
        as_count(self.n_relax, "n_relax", minimum=0, maximum=MOST_SWEEPS)
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
        """Random chains, relaxed on the initial machine."""
        chains = Chains.start(layout.visible, (self.n_chains, layout.n_visible), rng)
        return run_chains(layout, parameters, chains, self.n_relax, self.n_threads, engine)

    def particles(self) -> Particles | None:
        """The same chains, for the compiled update; not for subclasses with other averages."""
        own = type(self).moments is PCD.moments
        return Particles(self.n_chains, self.n_steps, self.n_threads) if own else None

    def moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
    ) -> tuple[Chains, ModelMoments]:
        """The chains after ``n_steps`` sweeps, and their averages."""
        assert isinstance(state, Chains)
        moved, average = sampled_moments(layout, parameters, state, self.n_steps, self.n_threads, engine)
        return moved, ModelMoments(average)

    def fits(self, state: GradientState | None) -> bool:
        """Whether there are as many chains."""
        return isinstance(state, Chains) and len(state.visible) == self.n_chains
