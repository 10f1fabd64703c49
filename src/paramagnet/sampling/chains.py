"""Gibbs sampling: many chains at the speed of their matrix products, or faster.

A sweep draws all hidden units given the visible ones, then all visible ones given the hidden. The fields are
kept beside the states. Where few units have changed, new fields are the old ones plus the changed rows of the
weights; where many have, they are a full product, by tables of the sums of a few rows
(`paramagnet.kernels.lookup`) or, for few chains, a matrix product. All are the same Markov chain, but for
rounding, which a full product clears away every `REFRESH` sweeps.

Where the processor has AVX-512BW, and chains and sweeps are enough to pay for tables, sweeps are made by sums
of int16 numbers (`paramagnet.sampling.int16`), in another order of sums.

The same seed gives the same chains bit for bit, whatever the number of threads: a matrix product has other
last bits for another number of rows or of BLAS threads, so the chains are cut into blocks whose size
depends on the number of chains alone, and a block runs all its sweeps on one thread with one BLAS thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, as_float64, require_memory
from paramagnet._checks import as_callable, as_count, as_generator, as_threads
from paramagnet._parallel import n_blocks, run_blocks
from paramagnet._progress import Progress
from paramagnet.kernels.sampling import list_changes
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.sampling import int16
from paramagnet.sampling.int16 import order_of_sums
from paramagnet.sampling.layer import (
    DENSE_ABOVE,
    HIDDEN,
    LARGEST_DRAWN,
    LOOK_UP_ABOVE,
    VISIBLE,
    Changes,
    Float32Array,
    Room,
    SampledLayer,
    layers_of,
)
from paramagnet.units import FloatArray, Unit

REFRESH = 64  # sweeps after which fields are computed afresh: rounding stays below 1e-5 of their scale
WORTH_THREADS = 1e7  # chains times weights of a product: below, starting threads takes longer
SWEEPS_AT_A_TIME = 128  # of `sample`, between two looks at who is waiting


@dataclass(frozen=True, eq=False)
class Chains:
    """Visible states of many chains, the fields ``v.w`` of their hidden units, and where in the stream of
    random numbers they are.

    ``seed`` and ``sweep`` are the address of the next draws; with the states they are all that the future
    of the chains depends on. The arrays are float32 and read-only. ``fields`` is None where our kernels made
    no sweep. ``changed`` is the share of visible and of hidden units that changed per sweep.
    """

    visible: Float32Array
    seed: int
    sweep: int = 0
    fields: Float32Array | None = None
    changed: tuple[float, float] = (np.nan, np.nan)

    @classmethod
    def start(cls, unit: Unit, shape: tuple[int, int], rng: np.random.Generator) -> Chains:
        """Chains from states drawn without any field, ``shape = (n_chains, n_visible)``."""
        return cls.from_states(unit.random_start(shape, rng), rng)

    @classmethod
    def from_states(cls, states: npt.NDArray[Any], rng: np.random.Generator) -> Chains:
        """Chains from given states."""
        return cls.at(states, draw_seed(rng))

    @classmethod
    def at(cls, states: npt.NDArray[Any], seed: int, sweep: int = 0) -> Chains:
        """Chains at a given address of the stream of random numbers."""
        visible = np.array(states, dtype=np.float32, order="C")
        visible.setflags(write=False)
        return cls(visible, seed, sweep)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The states: with `to_facts`, all that the future of the chains depends on."""
        return {"visible": self.visible}

    def to_facts(self) -> dict[str, int]:
        """The address of the next draws."""
        return {"seed": self.seed, "sweep": self.sweep}


def draw_seed(rng: np.random.Generator) -> int:
    """A seed for the kernels, 63 bits."""
    return int(rng.integers(2**63))


def run_sweeps(
    layers: tuple[SampledLayer, SampledLayer],
    chains: Chains,
    n_sweeps: int,
    *,
    n_threads: int | None = None,
    clamp: tuple[npt.NDArray[np.bool_], Float32Array] | None = None,
    dense_above: float | None = None,
    with_fields: bool = True,
) -> Chains:
    """The chains after ``n_sweeps`` sweeps v -> h -> v; their fields may be left out.

    ``clamp`` holds, for every chain and visible unit, whether it is held fixed, and at which value.
    ``dense_above`` is the share of changed units from which fields are a full product; 0 makes all of them
    so, None those where that is faster. The order of sums is that of `order_of_sums`; a share asks for the
    portable one.
    """
    n_chains = len(chains.visible)
    visible = chains.visible.copy()
    fields = np.empty((n_chains, layers[1].shift.size), np.float32)
    changed = np.zeros((n_blocks(n_chains), 2))

    def run(block: int, rows: slice) -> None:
        held = None if clamp is None else (clamp[0][rows], clamp[1][rows])
        address = (chains.seed, rows.start, chains.sweep)
        changed[block] = _run_block(layers, visible[rows], fields[rows], address, n_sweeps, held, dense_above)

    def multiply(block: int, rows: slice) -> None:
        layers[0].multiply(visible[rows], fields[rows], layers[0].room_for_products(rows.stop - rows.start))

    if dense_above is None and order_of_sums(layers, n_chains, n_sweeps) == int16.INT16:
        place = (chains.seed, chains.sweep)
        changed[0] = int16.run_chains(layers, visible, place, n_sweeps, n_threads, clamp)[:2]
        large = n_chains * layers[0].weights.size >= WORTH_THREADS
        if with_fields:
            run_blocks(multiply, n_chains, n_threads if large else 1)
    else:
        run_blocks(run, n_chains, n_threads)
    shares = changed.sum(axis=0) / n_chains
    shares /= visible.shape[1] * max(n_sweeps, 1), layers[1].n_units * max(n_sweeps - 1, 1)
    visible.setflags(write=False)
    fields.setflags(write=False)
    sweep, kept = chains.sweep + n_sweeps, fields if with_fields else None
    return Chains(visible, chains.seed, sweep, kept, (float(shares[0]), float(shares[1])))


def _run_block(
    layers: tuple[SampledLayer, SampledLayer],
    visible: Float32Array,
    fields: Float32Array,
    address: tuple[int, int, int],
    n_sweeps: int,
    clamp: tuple[npt.NDArray[np.bool_], Float32Array] | None,
    dense_above: float | None,
) -> tuple[int, int]:
    """All sweeps of one block, in place; the numbers of changes of visible and hidden units."""
    of_visible, of_hidden = layers
    seed, first, start = address
    old_v, new_v = visible.copy(), np.empty_like(visible)
    old_h, new_h = np.zeros((2, len(fields), of_hidden.n_units), np.float32)
    visible_fields = np.empty((len(visible), of_visible.shift.size), np.float32)
    room_v, room_h = (layer.room_for_products(len(visible)) for layer in layers)
    limits = [
        states.size * (_default_limit(room) if dense_above is None else dense_above)
        for states, room in ((visible, room_v), (old_h, room_h))
    ]
    totals = [0, 0]
    listed = [limit > 0.0 and layer.lists_changes for layer, limit in zip(layers, limits, strict=True)]
    few = listed.copy()  # where many units changed in the last sweep, changes are not even listed
    changes_v, changes_h = room_for_changes(visible), room_for_changes(old_h)
    if clamp is not None:
        np.copyto(old_v, clamp[1], where=clamp[0])
    of_visible.multiply(old_v, fields, room_v)
    for sweep in range(start, start + n_sweeps):
        refresh = sweep % REFRESH == 0
        place = (seed, first, sweep)
        n = of_hidden.draw(fields, (*place, HIDDEN), old_h, new_h, changes_h if few[1] else None)
        if sweep > start and not refresh and few[1] and n < limits[1]:
            of_hidden.follow(changes_h, visible_fields)
        else:
            of_hidden.multiply(new_h, visible_fields, room_h)
        few[1] = listed[1] and (n < limits[1] or sweep == start)
        old_h, new_h = new_h, old_h
        totals[1] += n if sweep > start else 0  # the first ones have none to be compared with
        n = of_visible.draw(visible_fields, (*place, VISIBLE), old_v, new_v, changes_v if few[0] else None)
        if clamp is not None:
            np.copyto(new_v, clamp[1], where=clamp[0])
            n = list_changes(old_v, new_v, *changes_v)
        if not refresh and few[0] and n < limits[0]:
            of_visible.follow(changes_v, fields)
        else:
            of_visible.multiply(new_v, fields, room_v)
        few[0] = listed[0] and n < limits[0]
        old_v, new_v = new_v, old_v
        totals[0] += n
    visible[:] = old_v
    return totals[0], totals[1]


def _default_limit(room: Room | None) -> float:
    return DENSE_ABOVE if room is None else LOOK_UP_ABOVE


def room_for_changes(states: Float32Array) -> Changes:
    """Room for the changes of a layer, all units of all chains if need be."""
    n_chains, n_units = states.shape
    return np.empty(n_chains * (n_units + 2) + 4, np.uint32), np.empty(2 * n_chains + 1, np.int64)


# The public function


def sample(
    rbm: RBM,
    n_samples: int,
    *,
    n_steps: int = 1000,
    start: Any = None,
    clamp: Any = None,
    method: str = "gibbs",
    path: str = "weights",
    base: Any = None,
    trajectory: Any = None,
    n_replicas: int | str = "auto",
    acceptance: float = 0.3,
    rng: Rng = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Visible states ``(n_samples, n_visible)``: the ends of as many chains after ``n_steps`` Gibbs sweeps.

    The chains are independent of each other. Whether they are far enough from the start is not known: compare
    results for several ``n_steps``, or use `sample_exact` where a layer is small.

    Parameters
    ----------
    rbm : RBM
        The machine.
    n_samples : int
        Number of chains.
    n_steps : int, default 1000
        Gibbs sweeps of every chain.
    start : array_like, optional
        States to start from, ``(n_samples, n_visible)``; None draws them uniformly.
    clamp : array_like, optional
        Visible units to hold fixed: an array ``(n_visible,)`` or ``(n_samples, n_visible)`` with their
        values, NaN where a unit is free; for instance to complete an image.
    method : str, default "gibbs"
        "gibbs"; or, for machines with several modes, "tempering" and "trajectory": every chain swaps states
        with companions on easier machines, scaled forms of ``rbm`` or the machines of ``trajectory``. The
        options below are for these two; `paramagnet.sampling.tempering.temper` also reports the swaps.
    path : str, default "weights"
        "weights" or "energy": what is scaled along the ladder of machines, for "tempering".
    base : array_like or RBM, optional
        Of the path "weights", what gives its biases at the start: data ``(n_points, n_visible)``, means of
        the visible units ``(n_visible,)``, or a machine that has these biases. None takes the means of a
        pilot run.
    trajectory : sequence of RBM or of TrainState, optional
        The machines of the training run that led to ``rbm``, from the first one on, for "trajectory".
    n_replicas : int or str, default "auto"
        Number of machines on the ladder; "auto" takes as few as have the ``acceptance``.
    acceptance : float, default 0.3
        The share of swaps to be accepted, between 0 and 1.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    n_threads : int, optional
        None takes all cores; the result is the same for any number, bit for bit.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    ndarray
        Visible states, ``(n_samples, n_visible)``.
    """
    from paramagnet.sampling import tempering  # which imports this module

    tempered = tempering.check_options(method, path, base, trajectory, n_replicas, acceptance)
    if tempered is not None:
        common = {"start": start, "clamp": clamp, "rng": rng, "n_threads": n_threads, "progress": progress}
        return tempering.temper(rbm, n_samples, n_steps=n_steps, **common, **tempered).states
    n_samples = as_count(n_samples, "n_samples")
    n_steps = as_count(n_steps, "n_steps", minimum=0)
    n_threads = None if n_threads is None else as_threads(n_threads)
    as_callable(progress, "progress", "the fraction that is done")
    require_existence(as_rbm(rbm, "rbm"))
    require_memory(12 * n_samples * sum(rbm.weights.shape), "n_samples", n_samples)
    chains, held = start_chains(rbm, n_samples, start, clamp, as_generator(rng))
    layers, left = layers_of(rbm), n_steps
    while left:
        n_sweeps = min(left, SWEEPS_AT_A_TIME)
        chains = run_sweeps(layers, chains, n_sweeps, n_threads=n_threads, clamp=held)
        left -= n_sweeps
        if progress is not None:
            progress(1.0 - left / n_steps)
    return chains.visible.astype(np.float64)


def start_chains(
    rbm: RBM, n_samples: int, start: Any, clamp: Any, rng: np.random.Generator
) -> tuple[Chains, tuple[npt.NDArray[np.bool_], Float32Array] | None]:
    """The chains of `sample` before their first sweep, and the units that are held fixed, as `run_sweeps`
    wants them.
    """
    shape = (n_samples, rbm.n_visible)
    if start is None:
        chains = Chains.start(rbm.visible, shape, rng)
    else:
        states = rbm.visible.as_states(start, "start", rbm.n_visible)
        if len(states) != n_samples:
            raise ValueError(
                f"`start` must have one state for each of the {n_samples} samples, got {len(states)}."
            )
        chains = Chains.from_states(states, rng)
    held = None if clamp is None else _as_clamp(clamp, shape, rbm.visible)
    if held is not None:
        chains = Chains.at(np.where(held[0], held[1], chains.visible), chains.seed)
    return chains, held


def require_existence(rbm: RBM, argument: str = "rbm") -> None:
    """Raise an error if both layers have unbounded units and the coupling is too strong for them.

    For two Gaussian layers the condition is exact. With ReLU units, which have one sign only, it is
    sufficient: some machines beyond it are distributions, too, but are refused.
    """
    visible, hidden = rbm.units
    if not (visible.bounded or hidden.bounded):
        coupling = float(np.linalg.norm(rbm.weights, 2)) * np.sqrt(visible.tail * hidden.tail)
        if not coupling < 1.0:
            raise ValueError(
                f"`{argument}` must be a distribution: with {visible} and {hidden} units, both unbounded, "
                "the largest singular value of its weights, times the deviations of the units, must be "
                f"below 1, got {coupling:.4g}. Scale its weights down."
            )


def _as_clamp(clamp: Any, shape: tuple[int, int], unit: Unit) -> tuple[npt.NDArray[np.bool_], Float32Array]:
    values = as_float64(as_array(clamp, "clamp"))
    if values.shape not in (shape, shape[1:]):
        raise ValueError(
            f"`clamp` must be an array of shape {shape[1:]} or {shape}, got shape {values.shape}. "
            "Put NaN where a unit is free."
        )
    held = ~np.isnan(values)
    foreign = values[np.isfinite(values) & ~unit.is_value(values)]
    if foreign.size:
        raise ValueError(
            f"`clamp` must hold {unit.wanted}, or NaN where a unit is free; found {foreign[0]:g}."
        )
    large = values[held & ~(np.abs(values) < LARGEST_DRAWN)]
    if large.size:
        raise ValueError(
            f"`clamp` must hold numbers below {LARGEST_DRAWN:g}, or NaN where a unit is free; found "
            f"{large[0]:g}."
        )
    return np.broadcast_to(held, shape), np.broadcast_to(values.astype(np.float32), shape)
