"""Which machines a ladder has: scales or checkpoints, placed so that swaps have a given acceptance.

Between two machines whose ``D = F_i - F_{i+1}`` is normal under both, with the standard deviation ``L``,
swaps are accepted with the probability ``erfc(L/2)``; and ``L`` of a path is the sum of those of its parts,
if they are short. So a measured acceptance ``a`` has the length ``L = 2 erfcinv(a)``, and machines at equal
lengths along the path have equal acceptances. A few rounds of measuring and placing suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import erfcinv

from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.ladder import Ladder, Replicas, run_rounds
from paramagnet.sampling.layer import layers_of
from paramagnet.units import FloatArray, Unit

MOST_REPLICAS = 200
FIRST_REPLICAS = 6  # where nothing is known yet
PILOT_CHAINS = 100
_PILOT_ROUNDS = (20, 40)  # from one placement to the next: not counted, counted
_PLACEMENTS = 8  # at most
_PILOT_SWEEPS = 20  # on every machine of a list
_FEWEST_ACCEPTED = 1e-3  # acceptances below count as this one: they are too rare to be measured
_LARGEST_BIAS = 30.0  # of units whose bias is searched

Parameters = tuple[FloatArray, FloatArray, FloatArray]  # weights, visible bias, hidden bias


def place_scales(
    scales: FloatArray, acceptance: FloatArray, wanted: float, n_replicas: int | None
) -> FloatArray:
    """Scales from 0 to 1 at equal lengths along the path, from measured ``acceptance`` between those of now.

    There are ``n_replicas`` of them; None takes as few as have the acceptance ``wanted``.
    """
    measured = np.clip(acceptance, _FEWEST_ACCEPTED, 1.0 - _FEWEST_ACCEPTED)
    ends = np.concatenate(([0.0], np.cumsum(2.0 * erfcinv(measured))))
    if n_replicas is None:
        n_pairs = math.ceil(ends[-1] / (2.0 * float(erfcinv(wanted))))
        n_replicas = min(max(n_pairs + 1, 2), MOST_REPLICAS)
    placed: FloatArray = np.interp(np.linspace(0.0, ends[-1], n_replicas), ends, scales)
    placed[0], placed[-1] = 0.0, 1.0
    return placed


def nearest_replicas(former: FloatArray, scales: FloatArray) -> npt.NDArray[np.int64]:
    """For every scale the number of the nearest former one."""
    nearest: npt.NDArray[np.int64] = np.abs(scales[:, None] - former).argmin(axis=1)
    return nearest


def pilot_scales(
    parameters: Parameters,
    units: tuple[Unit, Unit],
    base: FloatArray,
    wanted: float,
    n_replicas: int | None,
    rng: np.random.Generator,
    n_threads: int | None,
) -> FloatArray:
    """Scales for the machine, from a pilot run of some chains."""
    scales = np.linspace(0.0, 1.0, n_replicas or FIRST_REPLICAS)
    n_visible = len(parameters[1]) // units[0].width
    states = units[0].random_start((PILOT_CHAINS, n_visible), rng)
    replicas = Replicas.start(states, len(scales), int(rng.integers(2**63)))
    for _ in range(_PLACEMENTS):
        ladder = Ladder.scaled(parameters, units, scales, base)
        moved = run_rounds(ladder, replicas, _PILOT_ROUNDS[0], n_threads=n_threads)
        counted = moved.rearranged(np.arange(len(scales)))
        counted = run_rounds(ladder, counted, _PILOT_ROUNDS[1], n_threads=n_threads)
        placed = place_scales(scales, counted.acceptance, wanted, n_replicas)
        replicas = counted.rearranged(nearest_replicas(scales, placed))
        settled = len(placed) == len(scales) and float(np.abs(placed - scales).max()) < 0.02
        scales = placed
        if settled:
            break
    return scales


def choose_machines(
    machines: Sequence[RBM], wanted: float, rng: np.random.Generator, n_threads: int | None
) -> list[RBM]:
    """The first and the last machine, and as few between them as have the acceptance ``wanted``.

    A pilot run visits the machines in order. Where the acceptance with the machine that was kept last falls
    below ``wanted``, the one before is kept.
    """
    states = machines[0].visible.random_start((PILOT_CHAINS, machines[0].n_visible), rng)
    chains = run_sweeps(
        layers_of(machines[0]), Chains.from_states(states, rng), 5 * _PILOT_SWEEPS, n_threads=n_threads
    )
    kept, states_kept = [machines[0]], chains.visible
    before, states_before = machines[0], chains.visible
    for rbm in machines[1:]:
        chains = run_sweeps(layers_of(rbm), chains, _PILOT_SWEEPS, n_threads=n_threads)
        low = acceptance_between(kept[-1], rbm, states_kept, chains.visible) < wanted
        if low and before is not kept[-1]:
            kept.append(before)
            states_kept = states_before
        before, states_before = rbm, chains.visible
    return [*kept, machines[-1]]


def acceptance_between(
    one: RBM, other: RBM, states: npt.NDArray[np.float32], others: npt.NDArray[np.float32]
) -> float:
    """The mean probability of a swap of ``states`` of ``one`` with states of the ``other`` machine."""
    log_ratio = one.free_energy(states) + other.free_energy(others)
    log_ratio -= one.free_energy(others) + other.free_energy(states)
    return float(np.exp(np.minimum(log_ratio, 0.0)).mean())


def bias_of_states(unit: Unit, states: FloatArray) -> FloatArray:
    """Biases that give every unit on its own the mean of its column of ``states``."""
    if type(unit).field_of_mean is Unit.field_of_mean:
        return _search_bias(unit, unit.column_means(states))
    return unit.bias_from(states)


def bias_of_means(unit: Unit, means: FloatArray, argument: str) -> FloatArray:
    """Biases that give every unit on its own these means."""
    if type(unit).field_of_mean is Unit.field_of_mean:
        return _search_bias(unit, means)
    return unit.field_of_mean(means, argument)


def _search_bias(unit: Unit, means: FloatArray) -> FloatArray:
    """The same for units without a formula, by bisection: means rise with the field."""
    low, high = np.full(means.shape, -_LARGEST_BIAS), np.full(means.shape, _LARGEST_BIAS)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = np.asarray(unit.mean(middle)) < means
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: FloatArray = 0.5 * (low + high)
    return found
