"""The gradient of the log-likelihood: averages over the data less averages under the model.

    dL/dw_ij = <v_i E[h_j | v]>_data - E[v_i h_j]
    dL/db_i  = <v_i>_data            - E[v_i]
    dL/dc_j  = <E[h_j | v]>_data     - E[h_j]

The averages under the model are exact, or those of Gibbs chains after some sweeps, with ``E[h | v]`` in
place of ``h``: it has the same mean and scatters less.

During training all parameters are one vector in the order ``w, c, b``, so that an optimizer is a few
operations on a vector, and ``w`` with ``c`` beneath it is one contiguous matrix ``(n_visible + 1,
n_hidden)``: with a column of ones at the data, fields and data averages are one matrix product each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_count, as_flag, as_threads
from paramagnet._parallel import n_blocks, run_blocks
from paramagnet.exact.cost import check_cost, sizes_of
from paramagnet.exact.sums import exact_sum, refuse_large
from paramagnet.kernels import hyperbolic
from paramagnet.kernels.passes import average_parts, scale_and_shift
from paramagnet.layout import Layout
from paramagnet.rbm import RBM, as_rbm
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import SampledLayer, make_layers
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


@dataclass(frozen=True)
class Exact:
    """The exact gradient, by enumeration of the smaller layer.

    ``n_threads`` share the work, with the same result bit for bit; ``force`` allows single gradients of
    more than ten minutes.
    """

    n_threads: int = 1
    force: bool = False

    def __post_init__(self) -> None:
        as_threads(self.n_threads)
        as_flag(self.force, "force")


@dataclass(frozen=True)
class PCD:
    """Persistent contrastive divergence: averages over chains that go on from update to update.

    ``n_chains`` chains start at random and make ``n_relax`` sweeps on the initial machine, then ``n_steps``
    before each update; the defaults are those of [Y25]. ``n_threads`` share the work, None takes all cores;
    the result is the same bit for bit.
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


@dataclass(frozen=True)
class CD:
    """Contrastive divergence: averages over chains that start from the points of each batch.

    Fast and biased: what the machine believes far from the data is never seen. ``n_threads`` is as for `PCD`.
    """

    n_steps: int = 1
    n_threads: int | None = None

    def __post_init__(self) -> None:
        as_count(self.n_steps, "n_steps", maximum=MOST_SWEEPS)
        if self.n_threads is not None:
            as_threads(self.n_threads)


GradientSettings = Exact | PCD | CD


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivatives of the log-likelihood per point; the arrays are read-only."""

    weights: FloatArray
    visible_bias: FloatArray
    hidden_bias: FloatArray


def exact_gradient(rbm: RBM, data: Any, *, n_threads: int = 1, force: bool = False) -> Gradient:
    """The exact gradient of ``log_likelihood(rbm, data)``; the options are those of `log_partition`."""
    points = as_rbm(rbm, "rbm").visible.as_states(data, "data", rbm.n_visible)
    n_threads = as_threads(n_threads)
    as_flag(force, "force")
    check_cost(*sizes_of(rbm), n_threads=n_threads, gradient=True, force=force)
    refuse_large(rbm)
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    _, model = model_moments(layout, parameters, n_threads)
    vector = data_moments(layout, parameters, append_ones(points)) - model
    vector.setflags(write=False)
    return Gradient(*layout.split(vector))


def append_ones(points: FloatArray) -> FloatArray:
    """``points`` with a column of ones at the right."""
    return np.concatenate((points, np.ones((len(points), 1))), axis=1)


def data_moments(
    layout: Layout, parameters: FloatArray, points: npt.NDArray[Any], n_threads: int | None = None
) -> FloatArray:
    """The data averages of ``v_i E[h_j | v]``, ``E[h_j | v]``, ``v_i`` as one vector.

    ``points`` has its column of ones; where they are float32, as for sampled gradients, so are the products,
    and they are made in blocks like those of chains: BLAS's own threads would go on waiting for more work, on
    the cores that the chains want.

    A unit's mean is ``centre + half tanh(half field)``, or ``centre + half field`` (`Response`). Only
    product, tanh, product touch arrays of the size of the data; the rest is done on the small matrix.
    """
    weights = layout.stacked(parameters).astype(points.dtype)
    response = layout.hidden.response
    if response is None:
        return _moments_by_means(layout, weights, points)
    centre, half, saturates = response
    if saturates:
        weights *= half
    means = (points[:, -1] @ points) / len(points)  # a product with ones: five times faster than `mean`
    moments = np.empty(layout.size)
    stacked = layout.stacked(moments)
    if points.dtype == np.float64:
        fields = points @ weights
        if saturates:
            hyperbolic.tanh(fields.reshape(-1))
        scale_and_shift(points.T @ fields, half / len(points), centre * means, stacked)
    else:
        parts = np.empty((n_blocks(len(points)), stacked.size), np.float32)

        def run(block: int, rows: slice) -> None:
            fields = points[rows] @ weights
            if saturates:
                np.tanh(fields, out=fields)
            np.matmul(points[rows].T, fields, out=parts[block].reshape(weights.shape))

        run_blocks(run, len(points), n_threads)
        average_parts(parts, len(points) / half, stacked.reshape(-1))
        if centre:
            stacked += (centre * means)[:, None]
    moments[layout.n_weights + layout.n_hidden :] = means[:-1]
    return moments


def _moments_by_means(layout: Layout, weights: npt.NDArray[Any], points: npt.NDArray[Any]) -> FloatArray:
    """`data_moments` for hidden units whose mean has no closed form that the loop knows."""
    means = layout.hidden.mean((points @ weights).astype(np.float64))
    moments = np.empty(layout.size)
    layout.stacked(moments)[...] = points.T @ means / len(points)
    moments[layout.n_weights + layout.n_hidden :] = points[:, :-1].mean(axis=0, dtype=np.float64)
    return moments


def model_moments(layout: Layout, parameters: FloatArray, n_threads: int) -> tuple[float, FloatArray]:
    """``ln Z``, and ``E[v_i h_j], E[h_j], E[v_i]`` as one vector, exactly."""
    sums = exact_sum(*layout.split(parameters), layout.visible, layout.hidden)
    log_z, visible, hidden, products, _ = sums.moments(n_threads)
    return log_z, np.concatenate((products.ravel(), hidden, visible))


def start_chains(
    settings: PCD | CD,
    layout: Layout,
    parameters: FloatArray,
    rng: np.random.Generator,
    engine: TorchEngine | None = None,
) -> Chains:
    """The chains before the first update: for `PCD` random ones, relaxed; for `CD` none, just their seed.

    ``engine`` is None for our own kernels.
    """
    n_chains = settings.n_chains if isinstance(settings, PCD) else 0
    chains = Chains.start(layout.visible, (n_chains, layout.n_visible), rng)
    if isinstance(settings, CD):
        return chains
    if engine is not None:
        return engine.run_sweeps(layout, parameters, chains, settings.n_relax)
    return run_sweeps(_layers(layout, parameters), chains, settings.n_relax, n_threads=settings.n_threads)


def sampled_moments(
    settings: PCD | CD,
    layout: Layout,
    parameters: FloatArray,
    chains: Chains,
    points: FloatArray,
    engine: TorchEngine | None = None,
) -> tuple[Chains, FloatArray]:
    """Chains for the next update, and the averages ``v_i E[h_j | v]``, ``E[h_j | v]``, ``v_i`` as one vector.

    ``points`` are those of the batch, where the chains of `CD` start; ``engine`` is None for our own kernels.
    """
    if isinstance(settings, CD):
        chains = Chains.at(points, chains.seed, chains.sweep)
    if engine is None:
        layers = _layers(layout, parameters)
        moved = run_sweeps(layers, chains, settings.n_steps, n_threads=settings.n_threads)
        moments = chain_moments(layout, moved, layers[1], settings.n_threads)
    else:
        moved, moments = engine.sampled_moments(layout, parameters, chains, settings.n_steps)
    if isinstance(settings, CD):
        moved = Chains.at(moved.visible[:0], moved.seed, moved.sweep)
    return moved, moments


def chain_moments(
    layout: Layout, chains: Chains, hidden: SampledLayer, n_threads: int | None = None
) -> FloatArray:
    """The averages over chains of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i`` as one vector.

    Blocks of chains are added in order: the same bits for any number of threads.
    """
    fields, n_chains = chains.fields, len(chains.visible)
    assert fields is not None
    parts = np.empty((n_blocks(n_chains), layout.size), np.float32)

    def run(block: int, rows: slice) -> None:
        visible, means = chains.visible[rows], hidden.mean(fields[rows])
        ones = np.ones(len(means), np.float32)
        weights, visible_bias, hidden_bias = layout.split(parts[block])
        np.matmul(visible.T, means, out=weights)
        np.matmul(ones, visible, out=visible_bias)
        np.matmul(ones, means, out=hidden_bias)

    run_blocks(run, n_chains, n_threads)
    moments = np.empty(layout.size)
    average_parts(parts, float(n_chains), moments)
    return moments


def _layers(layout: Layout, parameters: FloatArray) -> tuple[SampledLayer, SampledLayer]:
    return make_layers(*layout.split(parameters), layout.visible, layout.hidden)
