"""Samples by parallel tempering: Gibbs chains that swap their states with those of easier machines.

A machine with several modes keeps a Gibbs chain in one of them for a long time. Here every chain has
companions on a ladder of machines (`paramagnet.sampling.ladder`), from one that mixes at once to the one that
is wanted, and they swap their states. The ladder is

- ``path="weights"``: the machines ``(s w, s b + (1 - s) b_0, s c)``, where the biases ``b_0`` alone give the
  means of the data;
- ``path="energy"``: ``(s w, s b, s c)``;
- the machines of a training run, early ones first: parallel trajectory tempering (Béreux, Decelle,
  Furtlehner, Rosset and Seoane, arXiv:2405.15376).

Gaussian units, and others with a weight ``p0`` of their own, keep it at every ``s``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet._arrays import as_array, require_memory, shown
from paramagnet._checks import (
    as_callable,
    as_choice,
    as_count,
    as_generator,
    as_real,
    as_reals,
    as_threads,
)
from paramagnet._progress import Progress
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.sampling.chains import (
    SWEEPS_AT_A_TIME,
    Chains,
    require_existence,
    run_sweeps,
    start_chains,
)
from paramagnet.sampling.ladder import PATHS, Ladder, Replicas, run_rounds
from paramagnet.sampling.layer import layers_of
from paramagnet.sampling.placement import (
    MOST_REPLICAS,
    PILOT_CHAINS,
    bias_of_means,
    bias_of_states,
    choose_machines,
    pilot_scales,
)
from paramagnet.units import FloatArray

METHODS = ("gibbs", "tempering", "trajectory")
ACCEPTANCE = 0.3  # share of swaps that are accepted, unless told otherwise
_PILOT_SWEEPS = 200  # for the means of a machine, where no `base` is given

logger = logging.getLogger("paramagnet.sampling.tempering")


@dataclass(frozen=True, eq=False)
class TemperedSamples:
    """What `temper` found.

    Attributes
    ----------
    states : ndarray
        Visible states of the machine, ``(n_samples, n_visible)``.
    acceptance : ndarray
        The share of accepted swaps of each pair of neighbouring machines.
    round_trips : int
        How often a state went from the last machine to the first and back, in all chains together.
    scales : ndarray or None
        The scale ``s`` of every machine; None where the machines were given.
    machines : tuple
        The machines of the trajectory that were kept; empty for other paths.
    """

    states: FloatArray
    acceptance: FloatArray
    round_trips: int
    scales: FloatArray | None
    machines: tuple[RBM, ...]

    @property
    def n_replicas(self) -> int:
        """The number of machines on the ladder."""
        return len(self.acceptance) + 1

    def __str__(self) -> str:
        return (
            f"{self.n_replicas} replicas, swaps accepted {self.acceptance.min():.2f} to "
            f"{self.acceptance.max():.2f}, {self.round_trips / len(self.states):.3g} round trips per chain"
        )


def temper(
    rbm: RBM,
    n_samples: int,
    *,
    n_steps: int = 1000,
    path: str = "weights",
    base: Any = None,
    trajectory: Any = None,
    n_replicas: int | str = "auto",
    acceptance: float = ACCEPTANCE,
    start: Any = None,
    clamp: Any = None,
    rng: Rng = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> TemperedSamples:
    """Visible states by parallel tempering, with the acceptance of swaps and the number of round trips.

    Parameters
    ----------
    rbm : RBM
        The machine.
    n_samples : int
        Number of chains; each of them has a companion on every machine of the ladder.
    n_steps : int, default 1000
        Rounds, of one Gibbs sweep of all companions and one swap each.
    path : str, default "weights"
        "weights" or "energy": what is scaled from 0 to 1 along the ladder.
    base : array_like or RBM, optional
        Of the path "weights", what gives its biases at the start: data ``(n_points, n_visible)``, means of
        the visible units ``(n_visible,)``, or a machine that has these biases. None takes the means of a
        pilot run.
    trajectory : sequence of RBM or of TrainState, optional
        The machines of a training run, from the first one on, which are then the path.
    n_replicas : int or str, default "auto"
        Number of machines on the ladder; "auto" takes as few as have the ``acceptance``.
    acceptance : float, default 0.3
        The share of swaps to be accepted, between 0 and 1.
    start : array_like, optional
        States to start from, ``(n_samples, n_visible)``; None draws them uniformly.
    clamp : array_like, optional
        Visible units to hold fixed, as for `sample`.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    n_threads : int, optional
        None takes all cores; the result is the same for any number, bit for bit.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    TemperedSamples
        The states, the acceptance of every pair of neighbours, and the number of round trips.
    """
    n_samples = as_count(n_samples, "n_samples")
    n_steps = as_count(n_steps, "n_steps", minimum=0)
    n_threads = None if n_threads is None else as_threads(n_threads)
    as_choice(path, "path", PATHS)
    count, wanted = as_replicas(n_replicas), as_acceptance(acceptance)
    as_callable(progress, "progress", "the fraction that is done")
    require_existence(as_rbm(rbm, "rbm"))
    machines = None if trajectory is None else _as_machines(trajectory, rbm)
    base_bias = None if base is None else _as_base(base, rbm)
    if machines is not None and count is not None:
        raise ValueError(
            f"`n_replicas` must be 'auto' with a `trajectory`, got {count}. Choose the machines by "
            "`acceptance`, or give fewer of them."
        )
    if base_bias is not None and (machines is not None or path != "weights"):
        raise ValueError(
            "`base` must be left out unless the path is 'weights': other paths have no use for it."
        )
    size = sum(rbm.weights.shape)
    require_memory(24 * n_samples * size * (count or 2), "n_samples", n_samples)
    generator = as_generator(rng)
    chains, held = start_chains(rbm, n_samples, start, clamp, generator)
    scales = None
    if machines is not None:
        machines = choose_machines(machines, wanted, generator, n_threads)
        ladder = Ladder.of_machines(machines)
    else:
        if path == "energy":
            base_bias = np.zeros_like(rbm.visible_bias)
        elif base_bias is None:
            base_bias = _pilot_base(rbm, generator, n_threads)
        parameters = rbm.weights, rbm.visible_bias, rbm.hidden_bias
        scales = pilot_scales(parameters, rbm.units, base_bias, wanted, count, generator, n_threads)
        ladder = Ladder.scaled(parameters, rbm.units, scales, base_bias)
    require_memory(24 * n_samples * size * ladder.n_replicas, "n_samples", n_samples)
    replicas, left = Replicas.start(chains.visible, ladder.n_replicas, chains.seed), n_steps
    while left:
        n_rounds = min(left, SWEEPS_AT_A_TIME)
        replicas = run_rounds(ladder, replicas, n_rounds, n_threads=n_threads, clamp=held)
        left -= n_rounds
        if progress is not None:
            progress(1.0 - left / n_steps)
    found = TemperedSamples(
        replicas.visible[-1].astype(np.float64),
        replicas.acceptance,
        replicas.round_trips,
        scales,
        tuple(machines or ()),
    )
    logger.info("Tempering with %s.", found)
    return found


def check_options(
    method: Any, path: Any, base: Any, trajectory: Any, n_replicas: Any, acceptance: Any
) -> dict[str, Any] | None:
    """The options of `temper` that those of `sample` ask for; None for Gibbs sampling.

    Options that the method does not use are refused, unless they are at their defaults.
    """
    as_choice(method, "method", METHODS)
    as_choice(path, "path", PATHS)
    count, wanted = as_replicas(n_replicas), as_acceptance(acceptance)
    if method == "trajectory" and trajectory is None:
        raise ValueError(
            "`trajectory` must be given for the method 'trajectory': a list of the machines of a training "
            "run, got None. Without one use the method 'tempering'."
        )
    for name, value, default, used in (
        ("trajectory", trajectory, None, method == "trajectory"),
        ("base", base, None, method == "tempering"),
        ("path", path, PATHS[0], method == "tempering"),
        ("n_replicas", count, None, method == "tempering"),
        ("acceptance", wanted, ACCEPTANCE, method != "gibbs"),
    ):
        if not (used or value is default or (default is not None and value == default)):
            raise ValueError(
                f"`{name}` must be left out for the method {method!r}, which does not use it, got "
                f"{shown(value)}."
            )
    if method == "gibbs":
        return None
    return {
        "path": path,
        "base": base,
        "trajectory": trajectory,
        "n_replicas": n_replicas,
        "acceptance": wanted,
    }


def as_replicas(n_replicas: Any) -> int | None:
    """``n_replicas`` as a number; None for "auto"."""
    if isinstance(n_replicas, str):
        if n_replicas != "auto":
            raise ValueError(
                f"`n_replicas` must be 'auto' or an integer of at least 2, got {shown(n_replicas)}."
            )
        return None
    return as_count(n_replicas, "n_replicas", minimum=2, maximum=MOST_REPLICAS)


def as_acceptance(acceptance: Any) -> float:
    """``acceptance`` as a number between 0 and 1."""
    value = as_real(acceptance, "acceptance")
    if not 0.0 < value < 1.0:
        raise ValueError(f"`acceptance` must lie between 0 and 1, both excluded, got {value:g}.")
    return value


def _as_machines(trajectory: Any, rbm: RBM) -> list[RBM]:
    """The machines of a training run; ``rbm`` comes last if it is not there already."""
    if isinstance(trajectory, (str, bytes, RBM)) or not isinstance(trajectory, Sequence):
        raise ValueError(
            "`trajectory` must be a list of machines or of states of a run, from the first one on, got "
            f"{shown(trajectory)}. The states come from `training_steps` or `load_checkpoint`."
        )
    machines = [as_rbm(getattr(item, "rbm", item), f"trajectory[{i}]") for i, item in enumerate(trajectory)]
    for i, machine in enumerate(machines):
        if machine.weights.shape != rbm.weights.shape or (machine.visible, machine.hidden) != (
            rbm.visible,
            rbm.hidden,
        ):
            raise ValueError(
                f"`trajectory` must hold machines with the layers of `rbm`, {rbm!r}, got {machine!r} at "
                f"position {i}."
            )
        require_existence(machine, f"trajectory[{i}]")
    if machines and _same(machines[-1], rbm):
        machines.pop()
    if not machines:
        raise ValueError(
            "`trajectory` must hold at least one machine besides `rbm`, got none: tempering needs two "
            "replicas."
        )
    return [*machines, rbm]


def _same(one: RBM, other: RBM) -> bool:
    arrays = [
        [rbm.weights, rbm.visible_bias, rbm.hidden_bias, *rbm.visible_parameters.values(),
         *rbm.hidden_parameters.values()]
        for rbm in (one, other)
    ]  # fmt: skip
    return all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))


def _as_base(base: Any, rbm: RBM) -> FloatArray:
    """The visible biases at the start of the path "weights"."""
    if isinstance(base, RBM):
        if base.n_visible != rbm.n_visible or base.visible != rbm.visible:
            raise ValueError(f"`base` must have the visible layer of `rbm`, {rbm!r}, got {base!r}.")
        return base.visible_bias
    unit = rbm.units[0]
    if as_array(base, "base").ndim == 1:
        means = as_reals(base, "base")
        if means.shape != rbm.visible_bias.shape:
            raise ValueError(
                f"`base` must hold {rbm.visible_bias.size} means, one per visible unit (and state), got "
                f"shape {means.shape}."
            )
        return bias_of_means(unit, means, "base")
    return bias_of_states(unit, rbm.visible.as_states(base, "base", rbm.n_visible))


def _pilot_base(rbm: RBM, rng: np.random.Generator, n_threads: int | None) -> FloatArray:
    """The biases that give the means of some Gibbs chains of the machine."""
    chains = Chains.start(rbm.visible, (PILOT_CHAINS, rbm.n_visible), rng)
    chains = run_sweeps(layers_of(rbm), chains, _PILOT_SWEEPS, n_threads=n_threads)
    return bias_of_states(rbm.units[0], chains.visible.astype(np.float64))
