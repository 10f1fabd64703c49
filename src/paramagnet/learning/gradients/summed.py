"""The exact gradient, by sums over all states of a layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_flag, as_threads
from paramagnet.exact.cost import check_cost, sizes_of
from paramagnet.exact.sums import refuse_large
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import Gradient, GradientState, ModelMoments
from paramagnet.learning.likelihood import weigh_points
from paramagnet.learning.moments import append_ones, data_moments, model_moments
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

LARGEST_NORM = 1e12  # norm beyond which the parameters have diverged


@dataclass(frozen=True)
class Exact(Gradient):
    """The exact gradient, by enumeration of the smaller layer.

    ``n_threads`` share the work, with the same result bit for bit; ``force`` allows single gradients of
    more than ten minutes.

    Parameters
    ----------
    n_threads : int, default 1
        Threads that share the work; the result is the same for any number, bit for bit.
    force : bool, default False
        Whether to allow single gradients that take more than ten minutes.
    """

    n_threads: int = 1
    force: bool = False

    exact = True
    dtype = np.float64
    largest = LARGEST_NORM

    def __post_init__(self) -> None:
        as_threads(self.n_threads)
        as_flag(self.force, "force")

    def check(self, rbm: RBM, engine: TorchEngine | None) -> None:
        """Raise if the sums would take too long, or if the parameters are too large for them."""
        if engine is not None:
            raise ValueError(
                f"`device` must be 'cpu' for exact gradients, got {engine.name!r}: they are sums made by our "
                "own kernels. Leave `device` out, or sample gradients with `PCD()`."
            )
        check_cost(*sizes_of(rbm), n_threads=self.n_threads, gradient=True, force=self.force)
        refuse_large(rbm)

    def start(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: FloatArray,
        rng: np.random.Generator,
        engine: TorchEngine | None,
    ) -> None:
        """Nothing is kept from one update to the next."""

    def moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
    ) -> tuple[None, ModelMoments]:
        """The exact averages, and ``ln Z``."""
        log_z, average = model_moments(layout, parameters, self.n_threads)
        return None, ModelMoments(average, log_z)


@dataclass(frozen=True, eq=False)
class GradientArrays:
    """The derivatives of the log-likelihood per point; the arrays are read-only.

    Those in the further numbers of units, for types that have some, go by the names of these numbers.
    """

    weights: FloatArray
    visible_bias: FloatArray
    hidden_bias: FloatArray
    visible_parameters: dict[str, FloatArray] = field(default_factory=dict)
    hidden_parameters: dict[str, FloatArray] = field(default_factory=dict)


def exact_gradient(
    rbm: RBM, data: Any, *, sample_weight: Any = None, n_threads: int = 1, force: bool = False
) -> GradientArrays:
    """The exact gradient of ``log_likelihood(rbm, data)``; the options are those of `log_partition`.

    Parameters
    ----------
    rbm : RBM
        The machine.
    data : array_like
        Points in the values of the visible units, ``(n_points, n_visible)``.
    sample_weight : array_like, optional
        Weights of the points, zero or positive; None counts all alike.
    n_threads : int, default 1
        Threads that share the work; the result is the same for any number, bit for bit.
    force : bool, default False
        Whether to go ahead if more than ten minutes are to be expected.

    Returns
    -------
    GradientArrays
        The derivatives by weights, visible biases and hidden biases.
    """
    points = as_rbm(rbm, "rbm").visible.as_states(data, "data", rbm.n_visible)
    points, weights = weigh_points(points, sample_weight, "sample_weight")
    n_threads = as_threads(n_threads)
    as_flag(force, "force")
    check_cost(*sizes_of(rbm), n_threads=n_threads, gradient=True, force=force)
    refuse_large(rbm)
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    _, model = model_moments(layout, parameters, n_threads)
    vector = data_moments(layout, parameters, append_ones(points), None, weights) - model
    vector.setflags(write=False)
    return GradientArrays(*layout.split(vector), *layout.further(vector))
