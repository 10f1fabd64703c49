"""What compiled updates with sampled gradients need beforehand: whether there are such, and the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import Gradient, Particles
from paramagnet.learning.gradients.contrastive import CD
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.resuming import START, SUMS_BEFORE
from paramagnet.sampling.int16 import INT16, PORTABLE, order_of_sums
from paramagnet.sampling.layer import SampledLayer, make_layer

ORDER_OF_SUMS = "lookup-3"  # changes whenever the last bits of sampled runs do
FUSED_STEPS = 8  # sweeps of an update from which changed rows may pay
CHAIN_SWEEPS_IN_INT16 = 2000  # chains times sweeps of an update from which int16 tables are worth making
SECONDS_PER_THREAD = 3e-4  # of an update, as estimated: below, another thread costs more than it brings
SECONDS_FOR_TWO = 3.2e-4  # of an update from which two threads pay if they share the pass over the parameters
BLOCK_ELEMENTS = 1 << 20  # numbers of the data that are checked at a time
_EMPTY = np.empty(0)


def is_compiled(gradient: Gradient, layout: Layout, engine: object | None) -> bool:
    """Whether updates with this gradient are made here: by our own kernels, with units of two values."""
    return gradient.particles() is not None and engine is None and _has_two_values(layout)


def _has_two_values(layout: Layout) -> bool:
    """Whether all units have two values."""
    return all(layer.lists_changes for layer in probe_layers(layout))


def has_fused_sweeps(layout: Layout, particles: Particles, batch_size: int) -> bool:
    """Whether an update makes its sweeps itself; `paramagnet.sampling.chains.run_sweeps` has faster ways for
    many of them, and for many chains where sums in int16 are possible.
    """
    n_chains = particles.n_chains or batch_size
    few = particles.n_steps < FUSED_STEPS
    return few and not (
        n_chains * particles.n_steps >= CHAIN_SWEEPS_IN_INT16
        and _sums(layout, n_chains, particles.n_steps) == INT16
    )


def name_order_of_sums(
    gradient: Gradient, layout: Layout, batch_size: int, engine: object | None
) -> str | None:
    """The order in which a run with sampled gradients sums, as its states name it; None where it never
    changed. Going on in another order of updates is not bit for bit.

    The sweeps that relax chains before the first update can have another order than those of the updates:
    they are many, and may be in int16 where an update makes too few for it. The part of the name after
    `START` says so. It does not matter to a run that goes on with a state: these sweeps were made before.
    """
    particles = gradient.particles() or _own_chains(gradient)
    if particles is None or engine is not None or not _has_two_values(layout):
        return None
    n_chains = particles.n_chains or batch_size
    if gradient.particles() is None:  # averages by `moments`, whose own order is that of version 0.1
        name, sums = SUMS_BEFORE, _sums(layout, n_chains, particles.n_steps)
        name += f" {sums}" if sums == INT16 else ""
    elif has_fused_sweeps(layout, particles, batch_size):
        name, sums = ORDER_OF_SUMS, PORTABLE
    else:
        sums = _sums(layout, n_chains, particles.n_steps)
        name = f"{ORDER_OF_SUMS} {sums}"
    n_relax = gradient.n_relax if isinstance(gradient, PCD) else 0
    at_start = _sums(layout, n_chains, n_relax) if n_relax else sums
    return name if at_start == sums else f"{name}{START}{at_start}"


def _own_chains(gradient: Gradient) -> Particles | None:
    """The chains of a subclass of `PCD` or `CD` with averages of its own, which `run_sweeps` moves."""
    if isinstance(gradient, PCD):
        return Particles(gradient.n_chains, gradient.n_steps)
    return Particles(None, gradient.n_steps) if isinstance(gradient, CD) else None


def _sums(layout: Layout, n_chains: int, n_steps: int) -> str:
    """The order of sums of `run_sweeps` with layers of these sizes."""
    shape = layout.n_visible, layout.n_hidden
    weights = np.broadcast_to(np.float32(0.0), shape)
    layers = [
        replace(layer, weights=w) for layer, w in zip(probe_layers(layout), (weights, weights.T), strict=True)
    ]
    return order_of_sums((layers[0], layers[1]), n_chains, n_steps)


def compact_points(data: Any, argument: str, layout: Layout) -> npt.NDArray[Any]:
    """The data, checked; in int8 where that holds the values, unless they are an array of float64 already."""
    array, unit = as_array(data, argument), layout.visible
    fits = all(float(value).is_integer() and abs(value) < 128 for value in unit.values or (np.nan,))
    if array.dtype == np.float64 or array.dtype.kind not in "biuf" or array.ndim != 2 or not fits:
        return unit.as_states(data, argument, layout.n_visible)
    found = np.empty(array.shape, np.int8)
    block = max(1, BLOCK_ELEMENTS // max(1, array.shape[1]))
    for start in range(0, len(array), block):
        rows = array[start : start + block]
        if rows.shape[1] != layout.n_visible or not unit.is_value(rows).all():
            return unit.as_states(data, argument, layout.n_visible)  # raises, with the place
        found[start : start + block] = rows
    return found if found.size else unit.as_states(data, argument, layout.n_visible)


def probe_layers(layout: Layout) -> tuple[SampledLayer, SampledLayer]:
    """Layers of the units of a machine that has no weights: they tell the kernels what to draw."""
    empty = np.zeros((0, 0), np.float32)
    return make_layer(layout.visible, empty, _EMPTY), make_layer(layout.hidden, empty, _EMPTY)


def estimate_seconds(n_visible: int, n_hidden: int, n_points: int, n_chains: int, n_steps: int) -> float:
    """About how long an update takes on one thread: products, draws, and the pass over the parameters."""
    n_rows = n_points + n_chains * (1 + n_steps)
    products = 2 * n_rows * n_visible * n_hidden / 2e11
    return products + 1e-9 * n_chains * n_steps * (n_visible + n_hidden) + 2e-9 * n_visible * n_hidden


def count_threads(
    most: int, n_visible: int, n_hidden: int, n_points: int, n_chains: int, n_steps: int, n_slices: int
) -> int:
    """How many of up to ``most`` threads an update is worth; the pass over the parameters is shared between
    the ``n_slices`` slices of visible units.
    """
    seconds = estimate_seconds(n_visible, n_hidden, n_points, n_chains, n_steps)
    two = 2 if n_slices > 1 and seconds >= SECONDS_FOR_TWO else 1
    return max(1, min(most, max(two, int(seconds / SECONDS_PER_THREAD))))
