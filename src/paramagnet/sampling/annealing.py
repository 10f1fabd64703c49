"""Estimates of ``ln Z`` by annealed importance sampling.

A chain goes from an independent model at ``t = 0``, whose ``Z_0`` is known, to the machine at ``t = 1``:

    -E_t(v, h) = t (b.v + c.h + v.w.h) + (1 - t) b0.v

At each step from ``t_k`` to ``t_{k+1}`` first its weight is multiplied by ``f_{k+1} / f_k`` at its present
state, then it moves by one Gibbs sweep at ``t_{k+1}``. The mean of the weights is an unbiased estimate of
``Z / Z_0``.

- ``ais``: ``f_k(v, h) = exp(-E_t)``, the joint distribution (Neal, Statistics and Computing 11 (2001) 125).
- ``mais``: ``f_k(v) = sum_h exp(-E_t)``, the marginal of one layer (Yasuda and Takahashi, Phys. Rev. E 106
(2022)
  024127), as [Y25] does. The weights scatter less; sweep and weight share one matrix product.
- ``reverse-ais``: the same from samples of the machine down to ``t = 0``, which estimates ``Z_0 / Z``: its
  logarithm, with the sign reversed, exceeds ``ln Z`` on average, as that of the others falls short of it.

Gaussian units keep their ``p0`` at every ``t``: annealed too, it would make ``Z_0`` infinite.

An error is that of the mean weight, ``std(r) / sqrt(S)`` with ``r = w / mean(w)``; the bias is about minus
half its square. Neither sees a mode of the machine that no chain has found: let ``reverse-ais`` look for
those.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import as_callable, as_choice, as_count, as_generator, as_reals, as_threads
from paramagnet._parallel import n_blocks, run_blocks, run_slices
from paramagnet._progress import Meter, Progress
from paramagnet.estimates import Estimate
from paramagnet.exact.sums import sample_exact
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.sampling import int16, int16_annealing
from paramagnet.sampling.chains import draw_seed, require_existence
from paramagnet.sampling.devices import as_engine
from paramagnet.sampling.layer import Float32Array, SampledLayer, layers_of
from paramagnet.units import FloatArray

N_SAMPLES = 1000  # chains of an estimate, unless told otherwise
METHODS = ("mais", "ais", "reverse-ais")
SUMMED, KEPT, START = 0, 1, 2  # streams of random numbers


def estimate_log_partition(
    rbm: RBM,
    *,
    method: str = "mais",
    n_samples: int = N_SAMPLES,
    n_temperatures: int = 1000,
    schedule: str | npt.ArrayLike = "linear",
    marginalize: str = "auto",
    start: str | npt.ArrayLike = "uniform",
    samples: Any = None,
    device: str = "cpu",
    rng: Rng = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """``ln Z`` with its standard error, for machines too large for `log_partition`.

    Parameters
    ----------
    rbm : RBM
        The machine.
    method : str, default "mais"
        "mais", "ais" or "reverse-ais"; the first two tend to be too low, the last too high.
    n_samples : int, optional
        Chains; those of "reverse-ais" are as many as ``samples``, if given.
    n_temperatures : int, default 1000
        Steps from the independent model to the machine.
    schedule : str or array_like, default "linear"
        "linear", or the temperatures from 0 to 1 themselves.
    marginalize : str, default "auto"
        The layer to sum out, "hidden" or "visible"; "auto" takes the hidden one, unless it is Gaussian.
        ("ais" sums none out, and updates this one first.)
    start : str or array_like, default "uniform"
        "uniform", or means of the visible units, for an independent model that has them (those of the data).
    samples : array_like, optional
        Visible states ``(n_samples, n_visible)`` of the machine itself, where "reverse-ais" starts; None
        draws them exactly, where that is affordable.
    device : str, default "cpu"
        "cpu"; or a device of PyTorch's, "cuda", "mps", or "torch:cpu", which has other random numbers.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    n_threads : int, optional
        None takes all cores; the result is the same for any number, bit for bit. PyTorch has its own.
    progress : callable, optional
        Called now and then with the fraction that is done; what it raises ends the run.

    Returns
    -------
    Estimate
        ``ln Z`` with its standard error and the effective number of samples.
    """
    as_choice(method, "method", METHODS)
    as_choice(marginalize, "marginalize", ("auto", "hidden", "visible"))
    as_callable(progress, "progress", "the fraction that is done")
    as_rbm(rbm, "rbm")
    engine = as_engine(device, rbm.visible, rbm.hidden)
    n_samples = as_count(n_samples, "n_samples")
    require_memory(32 * n_samples, "n_samples", n_samples)
    n_threads = None if n_threads is None else as_threads(n_threads)
    temperatures = _as_temperatures(schedule, as_count(n_temperatures, "n_temperatures"))
    base = _as_base(start, rbm)
    generator = as_generator(rng)
    states = None
    if method == "reverse-ais":
        temperatures = temperatures[::-1]
        states = _as_samples(samples, rbm, n_samples, generator)
        n_samples = len(states)
    elif samples is not None:
        raise ValueError(
            f"`samples` must be None for the method {method!r}, got {shown(samples)}; only 'reverse-ais' "
            "starts there."
        )
    marginalize = _choose_layer(marginalize, rbm)
    require_existence(rbm)
    path = _make_path(rbm, base, temperatures, joint=method == "ais", transposed=marginalize == "visible")
    if states is not None and marginalize == "visible":
        states = rbm.sample_h_given_v(states, rng=generator)
    if engine is None:
        log_weights = _run(path, n_samples, states, draw_seed(generator), n_threads, progress)
    else:
        log_weights = engine.anneal(path, n_samples, states, draw_seed(generator), progress)
    ratio = mean_weight(log_weights)
    sign = -1.0 if method == "reverse-ais" else 1.0
    return Estimate(_log_start(rbm, base) + sign * ratio.value, ratio.error, ratio.n_effective)


def anneal_chains(
    rbm: RBM,
    means: FloatArray,
    n_samples: int,
    n_temperatures: int,
    rng: np.random.Generator,
    n_threads: int | None,
) -> tuple[Float32Array, FloatArray]:
    """Visible states and log-weights that together stand for ``rbm``: the ends of mAIS.

    It starts from the independent model with the given means of the visible units. The mean weight estimates
    ``Z``; weighted means over the states estimate those of the machine.
    """
    base, temperatures = _as_base(means, rbm), _as_temperatures("linear", n_temperatures)
    path = _make_path(rbm, base, temperatures, joint=False, transposed=False)
    ends = np.empty((n_samples, rbm.n_visible), np.float32)
    log_weights = _run(path, n_samples, None, draw_seed(rng), n_threads, ends=ends)
    return ends, log_weights + _log_start(rbm, base)


def mean_weight(log_weights: FloatArray, families: npt.NDArray[np.int64] | None = None) -> Estimate:
    """The logarithm of the mean weight, its standard error, and the effective number of samples.

    The error is ``std(w) / mean(w) / sqrt(S)``, infinite for a single weight; ``n_effective`` is
    ``(sum w)**2 / sum w**2``. Samples that share an ancestor are not independent: with ``families``, the
    number of the ancestor of each among as many, ``w`` are the sums over families (Chan and Lai, Annals of
    Statistics 41 (2013) 2877).
    """
    largest = float(np.max(log_weights))
    weights = np.exp(log_weights - largest)
    mean, n_samples = float(np.mean(weights)), weights.size
    if families is not None:
        weights = np.bincount(families, weights, minlength=n_samples)
    spread = float(np.std(weights, ddof=1)) / mean if n_samples > 1 else math.inf
    n_effective = float(np.sum(weights) ** 2 / np.sum(weights**2))
    return Estimate(largest + math.log(mean), spread / math.sqrt(n_samples), n_effective)


@dataclass(frozen=True, eq=False)
class _Path:
    """What stays the same during a run: the machine, one layer kept, the other summed out.

    Biases are those of the machine and of the independent model, one row each.
    """

    kept: SampledLayer
    summed: SampledLayer
    kept_bias: FloatArray
    summed_bias: FloatArray
    temperatures: FloatArray
    joint: bool

    def kept_shift(self, t: float) -> Float32Array:
        """The part of the log-odds of the kept layer that is not field, at ``t``."""
        bias = t * self.kept_bias[0] + (1.0 - t) * self.kept_bias[1]
        shift: Float32Array = (self.kept.scale * bias).astype(np.float32)
        return shift

    def summed_shift(self, t: float) -> FloatArray:
        """The same for the summed layer, in float64: log-weights are made of it."""
        shift: FloatArray = self.summed.scale * (t * self.summed_bias[0] + (1.0 - t) * self.summed_bias[1])
        return shift


def _make_path(
    rbm: RBM, base: FloatArray, temperatures: FloatArray, *, joint: bool, transposed: bool
) -> _Path:
    visible, hidden = layers_of(rbm)
    visible_bias = np.stack((rbm.visible_bias, base))
    hidden_bias = np.stack((rbm.hidden_bias, np.zeros_like(rbm.hidden_bias)))
    if transposed:
        return _Path(hidden, visible, hidden_bias, visible_bias, temperatures, joint)
    return _Path(visible, hidden, visible_bias, hidden_bias, temperatures, joint)


def _run(
    path: _Path,
    n_samples: int,
    states: FloatArray | None,
    seed: int,
    n_threads: int | None,
    progress: Progress | None = None,
    ends: Float32Array | None = None,
) -> FloatArray:
    """The log-weights of all chains; only the blocks under way are in memory.

    ``ends``, if wanted, takes the last states.
    """
    log_weights, n_steps = np.zeros(n_samples), len(path.temperatures) - 1
    in_int16 = int16_annealing.serves(path, n_samples)
    blocks, n_used = int16.cut(n_samples, n_steps, path.kept.weights.shape, n_threads)
    meter = (
        None
        if progress is None
        else Meter(progress, len(blocks) if in_int16 else n_blocks(n_samples), n_steps)
    )

    def run(block: int, rows: slice) -> None:
        n_rows = rows.stop - rows.start
        kept = np.empty((n_rows, path.kept.n_units), np.float32)
        if states is None:  # the independent model
            nothing = np.zeros((n_rows, path.kept.shift.size), np.float32)
            shift = path.kept_shift(float(path.temperatures[0]))
            address = (seed, rows.start, 0, START)
            path.kept.draw_at(1.0, shift, nothing, address, np.zeros_like(kept), kept)
        else:
            kept[:] = states[rows]
        tick = None if meter is None else functools.partial(meter.tick, block)
        anneal = int16_annealing.anneal_block if in_int16 else _anneal_block
        last = anneal(path, kept, log_weights[rows], seed, rows.start, tick)
        if ends is not None:
            ends[rows] = last

    if in_int16:
        _ = path.summed.fine_tables, path.kept.tables  # once, before threads ask for them
        run_slices(run, blocks, n_used, meter)
    else:
        run_blocks(run, n_samples, n_threads, meter)
    return log_weights


def _anneal_block(
    path: _Path,
    kept: Float32Array,
    log_weights: FloatArray,
    seed: int,
    first: int,
    tick: Callable[[], None] | None,
) -> Float32Array:
    """Take the states ``kept`` through all temperatures, adding to their log-weights: weight, then move.

    The states that were weighed last are returned.
    """
    linear = (path.kept_bias[0] - path.kept_bias[1]).astype(np.float32)
    kept_room, summed_room = (layer.room_for_products(len(kept)) for layer in (path.kept, path.summed))
    fields = np.empty((len(kept), path.summed.shift.size), np.float32)
    path.kept.multiply(kept, fields, kept_room)
    summed, spare = np.zeros((2, len(kept), path.summed.n_units), np.float32)
    kept_fields, moved = np.empty((len(kept), path.kept.shift.size), np.float32), np.empty_like(kept)
    if path.joint:
        t = float(path.temperatures[0])
        shift, address = path.summed_shift(t).astype(np.float32), (seed, first, 0, SUMMED)
        path.summed.draw_at(t, shift, fields, address, spare, summed)
    n_steps = len(path.temperatures) - 1
    for k in range(n_steps):
        now, then = float(path.temperatures[k]), float(path.temperatures[k + 1])
        address = (seed, first, k + 1, SUMMED)
        if linear.any():
            log_weights += (then - now) * path.kept.linear(kept, linear)
        if path.joint:
            bias = path.summed_bias[0] - path.summed_bias[1]
            log_weights += (then - now) * path.summed.energy(summed, fields, bias)
            shift = path.summed_shift(then).astype(np.float32)
            path.summed.draw_at(then, shift, fields, address, spare, summed)
        else:
            shifts = np.stack((path.summed_shift(now), path.summed_shift(then)))
            path.summed.draw_and_weigh(now, then, shifts, fields, address, summed, log_weights)
        if tick is not None:
            tick()
        if k + 1 == n_steps:
            break  # the last move would not be looked at
        path.summed.multiply(summed, kept_fields, summed_room)
        shift, address = path.kept_shift(then), (seed, first, k + 1, KEPT)
        path.kept.draw_at(then, shift, kept_fields, address, kept, moved)
        kept, moved = moved, kept
        path.kept.multiply(kept, fields, kept_room)
    return kept


def _choose_layer(marginalize: str, rbm: RBM) -> str:
    """The layer to sum out: any but a Gaussian one, whose mean is linear in the field."""
    responses = rbm.visible.response, rbm.hidden.response
    gaussian = [response is not None and not response.saturates for response in responses]
    if all(gaussian):
        raise ValueError(
            "`rbm` must have a layer of spin or bit units, got two Gaussian layers, which are together one "
            "normal distribution. Take spin or bit units in one of the layers."
        )
    if marginalize == "auto":
        marginalize = "visible" if gaussian[1] else "hidden"
    if gaussian[marginalize == "hidden"]:
        raise ValueError(
            f"`marginalize` must be a layer of spin or bit units, got {marginalize!r}, whose units are "
            "Gaussian."
        )
    return marginalize


def _as_temperatures(schedule: str | npt.ArrayLike, n_temperatures: int) -> FloatArray:
    if isinstance(schedule, str):
        if schedule != "linear":
            raise ValueError(
                f"`schedule` must be 'linear' or an array of temperatures, got {shown(schedule)}."
            )
        require_memory(32 * n_temperatures, "n_temperatures", n_temperatures)
        return np.linspace(0.0, 1.0, n_temperatures + 1)
    temperatures = as_reals(schedule, "schedule")
    if temperatures.ndim != 1 or temperatures.size < 2:
        raise ValueError(
            f"`schedule` must be a sequence of at least two temperatures, got shape {temperatures.shape}."
        )
    if temperatures[0] != 0.0 or temperatures[-1] != 1.0 or np.any(np.diff(temperatures) < 0.0):
        raise ValueError(
            "`schedule` must rise from 0 to 1, both included, "
            f"got temperatures from {temperatures[0]:g} to {temperatures[-1]:g}."
        )
    return temperatures


def _log_start(rbm: RBM, base: FloatArray) -> float:
    """``ln Z_0`` of the independent model."""
    visible, hidden = rbm.units
    if hidden.parameters:
        none = np.zeros_like(rbm.hidden_bias)
        return float(visible.log_trace(base).sum() + hidden.log_trace(none).sum())
    each = hidden.log_trace(np.zeros(hidden.width))[0]
    return float(visible.log_trace(base).sum() + rbm.n_hidden * each)


def _as_base(start: str | npt.ArrayLike, rbm: RBM) -> FloatArray:
    """The visible bias of the independent model."""
    if isinstance(start, str):
        if start != "uniform":
            raise ValueError(f"`start` must be 'uniform' or means of the visible units, got {shown(start)}.")
        return np.zeros_like(rbm.visible_bias)
    means = as_reals(start, "start")
    if means.shape != rbm.visible_bias.shape:
        raise ValueError(
            f"`start` must hold {rbm.visible_bias.size} means, one per visible unit (and state), got shape "
            f"{means.shape}. From data they are `data.mean(axis=0)`, or `rbm.visible.column_means(data)`."
        )
    return rbm.visible.field_of_mean(means, "start")


def _as_samples(samples: Any, rbm: RBM, n_samples: int, rng: np.random.Generator) -> FloatArray:
    if samples is not None:
        return rbm.visible.as_states(samples, "samples", rbm.n_visible)
    try:
        return sample_exact(rbm, n_samples, rng=rng)
    except ValueError as error:
        raise ValueError(
            "`samples` must be given for 'reverse-ais' with a machine of this size: states of the machine "
            f"itself, as from `sample`. {error}"
        ) from None
