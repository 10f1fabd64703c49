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

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import n_blocks, run_blocks
from paramagnet.exact.sums import exact_sum
from paramagnet.kernels import hyperbolic
from paramagnet.kernels.passes import average_parts, scale_and_shift
from paramagnet.layout import Layout
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import SampledLayer, check_range, make_layer, make_layers
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

_NO_WEIGHTS = np.empty((0, 0), np.float32)


def append_ones(points: FloatArray) -> FloatArray:
    """``points`` with a column of ones at the right."""
    return np.concatenate((points, np.ones((len(points), 1))), axis=1)


def column_means(points: npt.NDArray[Any], factors: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """The means of the columns, the last of which has ones; ``factors`` are weights of the mean one."""
    ones = points[:, -1] if factors is None else factors
    means: npt.NDArray[Any] = (ones @ points) / len(points)  # five times faster than `mean`
    return means


def data_moments(
    layout: Layout,
    parameters: FloatArray,
    points: npt.NDArray[Any],
    n_threads: int | None = None,
    weights_of_points: FloatArray | None = None,
    means: FloatArray | None = None,
) -> FloatArray:
    """The data averages of ``v_i E[h_j | v]``, ``E[h_j | v]``, ``v_i`` as one vector.

    ``points`` has its column of ones; where they are float32, as for sampled gradients, so are the products,
    and they are made in blocks like those of chains: BLAS's own threads would go on waiting for more work, on
    the cores that the chains want. ``weights_of_points`` have the mean one. ``means`` are those of the points
    (`column_means`), where they are known.

    A unit's mean is ``centre + half tanh(half field)``, or ``centre + half field`` (`Response`). Only
    product, tanh, product touch arrays of the size of the data; the rest is done on the small matrix.
    """
    response = layout.hidden.response
    if layout.wide and points.dtype == np.float32:
        found = wide_points(layout, parameters, points, n_threads)
        return wide_moments(layout, parameters, found, n_threads, weights_of_points=weights_of_points)
    if response is None or layout.wide or layout.size > layout.n_basic:
        return _moments_of_any(layout, parameters, points, weights_of_points)
    weights = layout.stacked(parameters).astype(points.dtype)
    factors = None if weights_of_points is None else weights_of_points.astype(points.dtype)
    centre, half, saturates = response
    if saturates:
        weights *= half
    if means is None:
        means = column_means(points, factors)
    moments = np.empty(layout.size)
    stacked = layout.stacked(moments)
    if points.dtype == np.float64:
        fields = points @ weights
        if saturates:
            hyperbolic.tanh(fields.reshape(-1))
        if factors is not None:
            fields *= factors[:, None]
        scale_and_shift(points.T @ fields, half / len(points), centre * means, stacked)
    else:
        parts = np.empty((n_blocks(len(points)), stacked.size), np.float32)

        def run(block: int, rows: slice) -> None:
            fields = points[rows] @ weights
            if saturates:
                np.tanh(fields, out=fields)
            if factors is not None:
                fields *= factors[rows, None]
            np.matmul(points[rows].T, fields, out=parts[block].reshape(weights.shape))

        run_blocks(run, len(points), n_threads)
        average_parts(parts, len(points) / half, stacked.reshape(-1))
        if centre:
            stacked += (centre * means)[:, None]
    moments[layout.n_weights + layout.n_hidden :] = means[:-1]
    return moments


def _moments_of_any(
    layout: Layout, parameters: FloatArray, points: npt.NDArray[Any], weights_of_points: FloatArray | None
) -> FloatArray:
    """`data_moments` for hidden units whose mean has no closed form that the loop knows, in float64; and for
    units with further numbers, whose statistics follow.
    """
    wide = points.astype(np.float64)
    moments = np.empty(layout.size)
    if layout.wide:
        states, shares = wide[:, :-1], np.full(len(points), 1.0 / len(points))
        if weights_of_points is not None:
            shares = shares * weights_of_points
        weights, _, hidden_bias = layout.split(parameters)
        visible, hidden = layout.units(parameters)
        means = hidden.mean(visible.multiply(states, weights) + hidden_bias)
        products, of_visible, of_hidden = layout.split(moments)
        products[...] = visible.total_products(states, shares, means)
        of_visible[...], of_hidden[...] = visible.column_means(states, weights_of_points), shares @ means
    else:
        means = layout.units(parameters)[1].mean(wide @ layout.stacked(parameters))
        if weights_of_points is not None:
            means = weights_of_points[:, None] * means
        layout.stacked(moments)[...] = wide.T @ means / len(points)
        moments[layout.n_weights + layout.n_hidden : layout.n_basic] = mean_rows(
            wide[:, :-1], weights_of_points
        )
    moments[layout.n_basic :] = unit_statistics(layout, parameters, wide[:, :-1], weights_of_points)
    return moments


def mean_rows(rows: npt.NDArray[Any], weights_of_points: FloatArray | None) -> FloatArray:
    """The mean over the points, a row each, with their weights if they have some."""
    found: FloatArray
    if weights_of_points is None:
        found = rows.mean(axis=0, dtype=np.float64)
    else:
        found = weights_of_points @ rows / weights_of_points.sum()
    return found


class WideStates(NamedTuple):
    """Visible states, the means of the hidden units given them, and the visible layer without its weights."""

    states: npt.NDArray[np.float32]
    means: npt.NDArray[np.float32]
    layer: SampledLayer


def wide_points(
    layout: Layout, parameters: FloatArray, points: npt.NDArray[np.float32], n_threads: int | None
) -> WideStates:
    """The points of a batch, for units of any width; ``points`` has its column of ones."""
    weights, visible_bias, hidden_bias = layout.split(parameters)
    visible, hidden = layout.units(parameters)
    check_range(weights, visible_bias, hidden_bias)
    layers = (
        make_layer(visible, weights.astype(np.float32), visible_bias),
        make_layer(hidden, _NO_WEIGHTS, hidden_bias),  # asked for its means only
    )
    return wide_states(np.ascontiguousarray(points[:, :-1]), layers, None, n_threads)


def wide_states(
    states: npt.NDArray[np.float32],
    layers: tuple[SampledLayer, SampledLayer],
    fields: npt.NDArray[np.float32] | None,
    n_threads: int | None,
) -> WideStates:
    """The same for states of chains; ``fields`` are those of the hidden layer, if they are known."""
    means = np.empty((len(states), layers[1].shift.size), np.float32)

    def run(block: int, rows: slice) -> None:
        found = np.empty_like(means[rows]) if fields is None else fields[rows]
        if fields is None:
            layers[0].multiply(states[rows], found)
        means[rows] = layers[1].mean(found)

    run_blocks(run, len(states), n_threads)
    return WideStates(states, means, replace(layers[0], weights=_NO_WEIGHTS))


def wide_moments(
    layout: Layout,
    parameters: FloatArray,
    found: WideStates,
    n_threads: int | None,
    less: FloatArray | None = None,
    weights_of_points: FloatArray | None = None,
) -> FloatArray:
    """The averages of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i`` as one vector, for units of any width.
    The averages ``less`` are subtracted, if given, and overwritten by the result. ``weights_of_points``, of
    the mean one, are those of the states.

    Sums are made in float64 in the order of the states, and threads share the units: no copy of the averages
    is made for a thread, and the bits do not depend on their number.
    """
    states, means, layer = found.states, weighted_means(found, weights_of_points), found.layer
    kept = 0.0 if less is None else -1.0
    moments = np.zeros(layout.size) if less is None else less
    products, of_visible, of_hidden = layout.split(moments)
    layer.average_products(states, means, products, n_threads, kept)
    of_visible *= kept
    of_visible += layout.visible.column_means(states, weights_of_points)
    of_hidden *= kept
    of_hidden += means.mean(axis=0, dtype=np.float64)
    if layout.size > layout.n_basic:
        moments[layout.n_basic :] *= kept
        moments[layout.n_basic :] += unit_statistics(layout, parameters, states, weights_of_points)
    return moments


def weighted_means(found: WideStates, weights_of_points: FloatArray | None) -> npt.NDArray[np.float32]:
    """The means of the hidden units given each state, times the weight of that state."""
    if weights_of_points is None:
        return found.means
    return found.means * weights_of_points.astype(np.float32)[:, None]


def unit_statistics(
    layout: Layout,
    parameters: FloatArray,
    states: npt.NDArray[Any],
    weights_of_points: FloatArray | None = None,
) -> FloatArray:
    """The averages over visible ``states`` of the derivatives of ``-E`` in the further numbers of units, as
    one vector; hidden states are averaged over.
    """
    visible, hidden = layout.units(parameters)
    weights, _, hidden_bias = layout.split(parameters)
    wide, averages = states.astype(np.float64), [np.zeros(0)]
    if visible.parameters:
        found = visible.statistics(wide)
        averages += [mean_rows(found[name], weights_of_points) for name in visible.parameters]
    if hidden.parameters:
        found = hidden.mean_statistics(visible.multiply(wide, weights) + hidden_bias)
        averages += [mean_rows(found[name], weights_of_points) for name in hidden.parameters]
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
    return run_sweeps(_layers(layout, parameters), chains, n_steps, n_threads=n_threads, with_fields=False)


def sampled_moments(
    layout: Layout,
    parameters: FloatArray,
    chains: Chains,
    n_steps: int,
    n_threads: int | None,
    engine: TorchEngine | None = None,
    weights_of_chains: FloatArray | None = None,
) -> tuple[Chains, FloatArray]:
    """The same, and their averages of ``v_i E[h_j | v]``, ``E[h_j | v]``, ``v_i`` as one vector.

    ``weights_of_chains`` have the mean one.
    """
    if engine is not None:
        return engine.sampled_moments(layout, parameters, chains, n_steps, weights_of_chains)
    layers = _layers(layout, parameters)
    moved = run_sweeps(layers, chains, n_steps, n_threads=n_threads)
    if layout.wide:
        found = wide_states(moved.visible, layers, moved.fields, n_threads)
        del layers  # their weights take as much memory as the averages
        return moved, wide_moments(layout, parameters, found, n_threads, weights_of_points=weights_of_chains)
    moments = chain_moments(layout, moved, layers[1], n_threads, weights_of_chains)
    if layout.size > layout.n_basic:
        moments[layout.n_basic :] = unit_statistics(layout, parameters, moved.visible, weights_of_chains)
    return moved, moments


def chain_moments(
    layout: Layout,
    chains: Chains,
    hidden: SampledLayer,
    n_threads: int | None = None,
    weights_of_chains: FloatArray | None = None,
) -> FloatArray:
    """The averages over chains of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i`` as one vector; zeros behind
    them for the further numbers of units.

    Blocks of chains are added in order: the same bits for any number of threads.
    """
    fields, n_chains = chains.fields, len(chains.visible)
    factors = None if weights_of_chains is None else weights_of_chains.astype(np.float32)
    assert fields is not None
    parts = np.empty((n_blocks(n_chains), layout.n_basic), np.float32)

    def run(block: int, rows: slice) -> None:
        visible, means = chains.visible[rows], hidden.mean(fields[rows])
        ones = np.ones(len(means), np.float32) if factors is None else factors[rows]
        weights, visible_bias, hidden_bias = layout.split(parts[block])
        np.matmul(visible.T, means if factors is None else ones[:, None] * means, out=weights)
        np.matmul(ones, visible, out=visible_bias)
        np.matmul(ones, means, out=hidden_bias)

    run_blocks(run, n_chains, n_threads)
    moments = np.zeros(layout.size)
    average_parts(parts, float(n_chains), moments[: layout.n_basic])
    return moments


def _layers(layout: Layout, parameters: FloatArray) -> tuple[SampledLayer, SampledLayer]:
    return make_layers(*layout.split(parameters), *layout.units(parameters))
