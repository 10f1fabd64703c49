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

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import n_blocks, run_blocks
from paramagnet.exact.sums import exact_sum
from paramagnet.kernels import hyperbolic
from paramagnet.kernels.passes import average_parts, scale_and_shift
from paramagnet.layout import Layout
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import SampledLayer, make_layers
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


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
    if response is None or layout.size > layout.n_basic:
        return _moments_of_any(layout, parameters, points)
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


def _moments_of_any(layout: Layout, parameters: FloatArray, points: npt.NDArray[Any]) -> FloatArray:
    """`data_moments` for hidden units whose mean has no closed form that the loop knows, in float64; and for
    units with further numbers, whose statistics follow.
    """
    wide = points.astype(np.float64)
    means = layout.units(parameters)[1].mean(wide @ layout.stacked(parameters))
    moments = np.empty(layout.size)
    layout.stacked(moments)[...] = wide.T @ means / len(points)
    moments[layout.n_weights + layout.n_hidden : layout.n_basic] = wide[:, :-1].mean(axis=0)
    moments[layout.n_basic :] = unit_statistics(layout, parameters, wide[:, :-1])
    return moments


def unit_statistics(layout: Layout, parameters: FloatArray, states: npt.NDArray[Any]) -> FloatArray:
    """The averages over visible ``states`` of the derivatives of ``-E`` in the further numbers of units, as
    one vector; hidden states are averaged over.
    """
    visible, hidden = layout.units(parameters)
    weights, _, hidden_bias = layout.split(parameters)
    wide, averages = states.astype(np.float64), [np.zeros(0)]
    if visible.parameters:
        found = visible.statistics(wide)
        averages += [found[name].mean(axis=0) for name in visible.parameters]
    if hidden.parameters:
        found = hidden.mean_statistics(wide @ weights + hidden_bias)
        averages += [found[name].mean(axis=0) for name in hidden.parameters]
    return np.concatenate(averages)


def model_moments(layout: Layout, parameters: FloatArray, n_threads: int) -> tuple[float, FloatArray]:
    """``ln Z``, and ``E[v_i h_j], E[h_j], E[v_i]`` as one vector, with the units' statistics, exactly."""
    weights, visible_bias, hidden_bias = layout.split(parameters)
    units = layout.units(parameters)
    sums = exact_sum(weights, visible_bias, hidden_bias, units[0], units[1])
    log_z, visible, hidden, products, further = sums.moments(n_threads)
    parts = (
        (products.ravel(), hidden, visible, further) if further.size else (products.ravel(), hidden, visible)
    )
    return log_z, np.concatenate(parts)


def run_chains(
    layout: Layout,
    parameters: FloatArray,
    chains: Chains,
    n_steps: int,
    n_threads: int | None,
    engine: TorchEngine | None = None,
) -> Chains:
    """The chains after ``n_steps`` sweeps; ``engine`` is None for our own kernels."""
    if engine is not None:
        return engine.run_sweeps(layout, parameters, chains, n_steps)
    return run_sweeps(_layers(layout, parameters), chains, n_steps, n_threads=n_threads)


def sampled_moments(
    layout: Layout,
    parameters: FloatArray,
    chains: Chains,
    n_steps: int,
    n_threads: int | None,
    engine: TorchEngine | None = None,
) -> tuple[Chains, FloatArray]:
    """The same, and their averages of ``v_i E[h_j | v]``, ``E[h_j | v]``, ``v_i`` as one vector."""
    if engine is not None:
        return engine.sampled_moments(layout, parameters, chains, n_steps)
    layers = _layers(layout, parameters)
    moved = run_sweeps(layers, chains, n_steps, n_threads=n_threads)
    moments = chain_moments(layout, moved, layers[1], n_threads)
    if layout.size > layout.n_basic:
        moments[layout.n_basic :] = unit_statistics(layout, parameters, moved.visible)
    return moved, moments


def chain_moments(
    layout: Layout, chains: Chains, hidden: SampledLayer, n_threads: int | None = None
) -> FloatArray:
    """The averages over chains of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i`` as one vector; zeros behind
    them for the further numbers of units.

    Blocks of chains are added in order: the same bits for any number of threads.
    """
    fields, n_chains = chains.fields, len(chains.visible)
    assert fields is not None
    parts = np.empty((n_blocks(n_chains), layout.n_basic), np.float32)

    def run(block: int, rows: slice) -> None:
        visible, means = chains.visible[rows], hidden.mean(fields[rows])
        ones = np.ones(len(means), np.float32)
        weights, visible_bias, hidden_bias = layout.split(parts[block])
        np.matmul(visible.T, means, out=weights)
        np.matmul(ones, visible, out=visible_bias)
        np.matmul(ones, means, out=hidden_bias)

    run_blocks(run, n_chains, n_threads)
    moments = np.zeros(layout.size)
    average_parts(parts, float(n_chains), moments[: layout.n_basic])
    return moments


def _layers(layout: Layout, parameters: FloatArray) -> tuple[SampledLayer, SampledLayer]:
    return make_layers(*layout.split(parameters), *layout.units(parameters))
