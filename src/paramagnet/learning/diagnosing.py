"""Whether a machine is healthy: what is wrong with it, in words and with a remedy.

`diagnose` runs chains of the machine and compares them with the data; `quick_diagnosis` judges chains that
are there already, and costs one pass over some of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_callable, as_count, as_generator, as_threads
from paramagnet._progress import Progress
from paramagnet.estimates import Estimate
from paramagnet.learning import verdict
from paramagnet.learning.autocorrelation import ChainMemory, measure_memory, record_chains
from paramagnet.learning.diagnosis import Diagnosis
from paramagnet.learning.evaluation import LogZ, as_log_z
from paramagnet.learning.likelihood import free_energies, likelihood_of, weigh_points
from paramagnet.learning.nearness import Nearness, measure_nearness
from paramagnet.learning.symptoms import (
    IndependentLevel,
    compare_correlations,
    compare_means,
    effective_count,
    measure_activity,
    measure_independent,
    measure_overlaps,
    participation_ratio,
)
from paramagnet.learning.verdict import Finding
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.sampling.chains import SWEEPS_AT_A_TIME, Chains, require_existence, run_sweeps
from paramagnet.sampling.layer import layers_of
from paramagnet.units import FloatArray

FEWEST_CHAINS = 10  # errors come from differences between chains
FEWEST_SWEEPS = 20
_TRACED = 200  # chains whose observables are recorded at every sweep
_MOST_POINTS = 10_000  # points of data for hidden units, overlaps and correlations; means take all of them
_QUICK_POINTS = 1000
_MOST_NEAREST = 1000  # samples and reference points whose nearest training point is looked for
_LOG_Z = LogZ()


def diagnose(
    rbm: RBM,
    data: Any,
    *,
    sample_weight: Any = None,
    chains: Any = None,
    validation: Any = None,
    validation_weight: Any = None,
    n_chains: int = 1000,
    n_steps: int = 1000,
    log_z: LogZ | None = _LOG_Z,
    rng: Rng = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Look for what is usually wrong with a trained machine, and say what helps.

    ``n_chains`` Gibbs chains run for ``n_steps`` sweeps. Their last states, which are independent of each
    other, are the samples; the second half of the sweeps of 200 of them is recorded.

    Parameters
    ----------
    rbm : RBM
        The machine.
    data : array_like
        The training points, ``(n_points, n_visible)``, in the values of the visible units.
    sample_weight : array_like, optional
        Weights of the points, zero or positive, as in `train`: a machine that learned weighted points is
        judged by the same averages. None counts all alike. Figures and medians of distances show all points
        alike.
    chains : array_like, optional
        States from which the chains start, at least 10, for instance the persistent chains of a run,
        ``state.chains.visible``; None draws ``n_chains`` states without field, as `sample` does.
    validation : array_like, optional
        Points that were held out of the training.
    validation_weight : array_like, optional
        Weights of the points of ``validation``; None counts all alike.
    n_chains : int, default 1000
        Number of chains, at least 10, where ``chains`` are not given.
    n_steps : int, default 1000
        Gibbs sweeps of every chain, at least 20.
    log_z : LogZ, optional
        How ``ln Z`` is found; None leaves likelihoods out.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    n_threads : int, optional
        None takes all cores; the result is the same for any number, bit for bit.
    progress : callable, optional
        Called now and then with the fraction of the sweeps that is done.

    Returns
    -------
    Diagnosis
        The findings, each with a remedy, and all that was measured.

    Notes
    -----
    Limits are such that a machine from which the data were drawn is accused by each check with a probability
    of about 0.001. A spread is the standard deviation of a unit without field: 1 for spins, 1/2 for bits.

    - *below-independent*: the log-likelihood of the data, or of the held-out points, is more than three
      errors (of ``ln Z`` and of the paired differences of points) below that of independent units with the
      means of the data; on the data their fit is allowed for by half a nat per visible unit and data set.
    - *mirrored*: the share of chains whose overlap with the mean of the data (on the scale of spins) is
      negative exceeds the share of points for which this holds, both with means of the other half of the
      points, by 2 % or more, and Fisher's test gives less than 0.001. Data without mean are on both sides as
      often as chains are.
    - *slow*: the largest integrated autocorrelation time (of the free energy and of the projections on four
      leading singular vectors of the weights), less two errors, exceeds a tenth of the recorded sweeps, that
      is ``n_steps/20``.
    - *means*, *correlations*: a mean, or a covariance of two visible units, differs between samples and data
      by 0.1 spreads (squared) more than chance explains at a level of 0.001, divided among all of them.
    - *memorized*: the distance to the nearest training point which 5 % of the held-out points (without any:
      of the training points, each to the others) do not exceed is not exceeded by 10 % more of the samples,
      and Fisher's test gives less than 0.001.
    - *idle*: a tenth of the hidden units or more are idle: ``E[h_j | v]`` varies over the data with a
      standard deviation of less than 0.05 spreads, and to replace the unit by biases would cost less than
      0.01 nats per point, as far as data and samples show.

    At most 10,000 points, drawn at random, are used for hidden units, overlaps and covariances, and 1000
    samples and reference points for distances. Points with weights ``w`` count as ``(sum w)**2 / sum w**2``
    points where chance is judged. A chain that does not mix makes averages of samples wrong,
    too: where *slow* is found beside others, treat it first.
    """
    points, weights = _check_data(as_rbm(rbm, "rbm"), data, sample_weight)
    held_out, others = _check_held_out(rbm, validation, validation_weight)
    n_steps = as_count(n_steps, "n_steps", minimum=FEWEST_SWEEPS, maximum=MOST_SWEEPS)
    n_chains = as_count(n_chains, "n_chains", minimum=FEWEST_CHAINS, maximum=MOST_CHAINS)
    starts = None if chains is None else _check_chains(rbm, chains)
    policy = None if log_z is None else as_log_z(log_z)
    n_threads = None if n_threads is None else as_threads(n_threads)
    as_callable(progress, "progress", "the fraction that is done")
    require_existence(rbm)
    n_chains = n_chains if starts is None else len(starts)
    require_memory(24 * n_chains * (rbm.n_visible + rbm.n_hidden), "n_chains", n_chains)
    generator = as_generator(rng)
    samples, memory = _run(rbm, starts, n_chains, n_steps, generator, n_threads, progress)
    some, each = _draw_rows(points, weights, _MOST_POINTS, generator)
    activity = measure_activity(rbm, some, samples[:_MOST_POINTS], each)
    unit = rbm.units[0]
    overlaps = measure_overlaps(unit, some, samples, generator, each)
    means = compare_means(unit, points, samples, weights)
    correlations = compare_correlations(unit, some, samples[:_MOST_POINTS], each)
    weighed, weighed_out = (points, weights), None if held_out is None else (held_out, others)
    nearness = _measure_nearness(rbm, weighed, weighed_out, samples, generator)
    levels = _likelihoods(rbm, weighed, weighed_out, policy, generator, n_threads)
    idle = verdict.idle_units(activity)
    findings = [
        *verdict.judge_likelihood(levels[0], levels[1], "data"),
        *verdict.judge_likelihood(levels[2], levels[3], "held-out points"),
        *verdict.judge_overlaps(overlaps),
        *verdict.judge_memory(memory),
        *verdict.judge_means(means, width=unit.width),
        *verdict.judge_correlations(correlations, rbm.n_visible, labels=unit.width > 1),
        *verdict.judge_nearness(nearness),
        *verdict.judge_idle(idle),
    ]
    return Diagnosis(
        tuple(findings),
        idle,
        activity,
        participation_ratio(rbm.weights),
        overlaps,
        memory,
        means,
        correlations,
        nearness,
        levels[0],
        levels[2],
        levels[1],
        levels[3],
        samples,
    )


def quick_diagnosis(
    rbm: RBM,
    data: Any,
    chains: Any = None,
    *,
    sample_weight: Any = None,
    log_likelihood: Estimate | None = None,
    rng: Rng = 0,
) -> tuple[Finding, ...]:
    """The findings of `diagnose` that cost little: for the end of a training run, which has chains and a
    likelihood already.

    No chain is run and no ``ln Z`` is computed; the cost is that of two passes over at most 1000 points. It
    looks for a log-likelihood below that of independent units, mirrored chains, means of the chains that
    differ from those of the data, and idle hidden units, with the limits of `diagnose`.

    Parameters
    ----------
    rbm : RBM
        The machine.
    data : array_like
        The training points, ``(n_points, n_visible)``.
    chains : array_like, optional
        States of the persistent chains, at least 10; without them only the likelihood and the hidden units
        are judged.
    sample_weight : array_like, optional
        Weights of the points, as in `diagnose`.
    log_likelihood : Estimate, optional
        Mean log-likelihood of the data, with their weights, where it is known.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the choice of points.

    Returns
    -------
    tuple of Finding
        What is wrong, each with a remedy; empty if nothing was found.
    """
    points, weights = _check_data(as_rbm(rbm, "rbm"), data, sample_weight)
    states = None if chains is None else _check_chains(rbm, chains)
    if log_likelihood is not None and not isinstance(log_likelihood, Estimate):
        raise ValueError(
            f"`log_likelihood` must be an `Estimate`, as `pm.log_likelihood` returns it, got "
            f"{shown(log_likelihood)}."
        )
    generator, unit = as_generator(rng), rbm.units[0]
    some, each = _draw_rows(points, weights, _QUICK_POINTS, generator)
    found: list[Finding] = []
    if log_likelihood is not None:
        level = measure_independent(rbm, points, None, weights)
        found += verdict.judge_likelihood(log_likelihood, level, "data")
    if states is not None:
        found += verdict.judge_overlaps(measure_overlaps(unit, some, states, generator, each))
        means = compare_means(unit, points, states, weights)
        found += verdict.judge_means(means, of="chains", width=unit.width)
    if states is None:
        activity = measure_activity(rbm, some, some, each, each)
    else:
        activity = measure_activity(rbm, some, states, each)
    return (*found, *verdict.judge_idle(verdict.idle_units(activity)))


_Weighed = tuple[FloatArray, FloatArray | None]  # points and their weights


def _check_data(rbm: RBM, data: Any, weights: Any) -> _Weighed:
    """The points of positive weight, and their weights; None where all are equal."""
    if rbm.hidden.width > 1:
        raise ValueError(
            f"`rbm` must have hidden units that are numbers to be diagnosed, got {rbm.hidden} units."
        )
    points = rbm.visible.as_states(data, "data", rbm.n_visible)
    points, found = weigh_points(points, weights, "sample_weight")
    if len(points) < FEWEST_CHAINS:
        positive = "" if weights is None else " of positive weight"
        raise ValueError(
            f"`data` must hold at least {FEWEST_CHAINS} points{positive}, from which errors can be told, got "
            f"{len(points)}."
        )
    worth = effective_count(len(points), found)
    if worth < FEWEST_CHAINS:
        raise ValueError(
            f"`sample_weight` must make the points worth at least {FEWEST_CHAINS} of equal weight, "
            f"(sum w)**2 / sum w**2, from which errors can be told, got {worth:.3g}."
        )
    return points, found


def _check_held_out(rbm: RBM, validation: Any, weights: Any) -> tuple[FloatArray | None, FloatArray | None]:
    if validation is not None:
        points = rbm.visible.as_states(validation, "validation", rbm.n_visible)
        return weigh_points(points, weights, "validation_weight")
    if weights is not None:
        raise ValueError(
            "`validation_weight` must be left out where `validation` is None, got "
            f"{shown(weights)}. Pass the points as `validation`."
        )
    return None, None


def _check_chains(rbm: RBM, chains: Any) -> FloatArray:
    states = chains.visible if isinstance(chains, Chains) else chains
    found = rbm.visible.as_states(states, "chains", rbm.n_visible)
    if len(found) < FEWEST_CHAINS:
        raise ValueError(
            f"`chains` must hold at least {FEWEST_CHAINS} states, from which errors can be told, got "
            f"{len(found)}. Leave it out to draw them."
        )
    return found


def _run(
    rbm: RBM,
    starts: FloatArray | None,
    n_chains: int,
    n_steps: int,
    rng: np.random.Generator,
    n_threads: int | None,
    progress: Progress | None,
) -> tuple[FloatArray, ChainMemory]:
    """The last states of all chains, and the memory of those that are recorded, in their second half."""
    if starts is None:
        starts = np.asarray(rbm.visible.random_start((n_chains, rbm.n_visible), rng), np.float64)
    layers, n_traced = layers_of(rbm), min(_TRACED, n_chains)
    order = rng.permutation(n_chains)  # the traced ones are no special ones
    traced = Chains.from_states(starts[order[:n_traced]], rng)
    others = Chains.from_states(starts[order[n_traced:]], rng)
    n_recorded = n_steps // 2
    total = n_steps * n_chains
    done = 0

    def sweep(chains: Chains, n_sweeps: int) -> Chains:
        nonlocal done
        while n_sweeps > 0 and len(chains.visible):
            count = min(n_sweeps, SWEEPS_AT_A_TIME)
            chains = run_sweeps(layers, chains, count, n_threads=n_threads)
            n_sweeps -= count
            done += count * len(chains.visible)
            if progress is not None:
                progress(done / total)
        return chains

    others = sweep(others, n_steps)
    traced = sweep(traced, n_steps - n_recorded)
    traced, series, stride = record_chains(rbm, traced, n_recorded, n_threads)
    if progress is not None:
        progress(1.0)
    samples = np.concatenate((traced.visible, others.visible)).astype(np.float64)
    return samples, measure_memory(series, stride)


def _draw_rows(
    points: FloatArray, weights: FloatArray | None, most: int, rng: np.random.Generator
) -> _Weighed:
    """At most so many of the points, drawn at random, and their weights."""
    if len(points) <= most:
        return points, weights
    chosen = rng.choice(len(points), size=most, replace=False)
    return points[chosen], None if weights is None else weights[chosen]


def _measure_nearness(
    rbm: RBM, data: _Weighed, held_out: _Weighed | None, samples: FloatArray, rng: np.random.Generator
) -> Nearness:
    unit, some = rbm.units[0], samples[:_MOST_NEAREST]
    points, weights = data
    if held_out is not None:
        others, each = _draw_rows(*held_out, _MOST_NEAREST, rng)
        return measure_nearness(unit, points, some, held_out=others, weights=each)
    rows = rng.permutation(len(points))[:_MOST_NEAREST]
    return measure_nearness(unit, points, some, rows=rows, weights=None if weights is None else weights[rows])


def _likelihoods(
    rbm: RBM,
    data: _Weighed,
    held_out: _Weighed | None,
    policy: LogZ | None,
    rng: np.random.Generator,
    n_threads: int | None,
) -> tuple[Estimate | None, IndependentLevel | None, Estimate | None, IndependentLevel | None]:
    """The log-likelihood and that of independent units, of the data and of the held-out points."""
    if policy is None:
        return None, None, None, None
    points, weights = data
    log_z = policy(rbm, rng, means=rbm.units[0].column_means(points, weights), n_threads=n_threads)
    found = likelihood_of(free_energies(rbm, points), log_z, weights)
    level = measure_independent(rbm, points, None, weights)
    if held_out is None:
        return found, level, None, None
    others, each = held_out
    of_others = likelihood_of(free_energies(rbm, others), log_z, each)
    return found, level, of_others, measure_independent(rbm, points, others, weights, each)
