"""The theory against simulation at a machine's own size: averages over random weights.

The theory holds for infinite layers. Here machines of given sizes are drawn, with weights from ``N(0,
beta**2/(n + m))``, and the layer correlation is averaged over them, small machines by enumeration, large
ones by Gibbs sampling. With ``cov`` the covariance in one machine and ``E`` the average over weights,

    chi_vh = (1/(n + m)) sum_ij E cov(v_i, h_j)

where no symmetry makes it vanish. With symmetric visible units (spins) without bias its slope in ``b`` takes
its place, which needs no bias and no difference:

    d chi_vh/db = -(2/(n + m)) sum_i E[<v_i> sum_j cov(v_i, h_j)].

The mirror image holds for symmetric hidden units. Two symmetric layers have no peak at finite size. All
``beta`` share their normal draws, so the place of the maximum is known better than its height.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_count, as_generator, as_positive, as_real
from paramagnet.learning.exact import exact_moments
from paramagnet.learning.gibbs import sample
from paramagnet.rbm import RBM, Rng
from paramagnet.theory.response import layer_correlation_slope
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import BinaryUnit, FloatArray, as_unit

LARGEST_ENUMERATED = 14  # units of the smaller layer
GRID = (0.5, 0.7, 0.82, 0.88, 0.94, 1.0, 1.06, 1.12, 1.18, 1.24, 1.3, 1.45)  # times beta_max
NEAR = 0.2  # distance in ln(beta) from the highest point within which the maximum is fitted
N_CHAINS, N_RELAX, N_SNAPSHOTS, N_BETWEEN = 400, 200, 30, 4  # of each half


@dataclass(frozen=True, eq=False)
class DisorderAverage:
    """The layer correlation (its slope where symmetry asks for that) of random machines, and the theory's.

    ``value`` and its standard ``error`` are averages over ``n_draws`` machines, one per ``beta``; ``maximum``
    is where the simulated curve is largest, nan where that is at an end of the grid.
    """

    n_visible: int
    n_hidden: int
    method: str
    n_draws: int
    beta: FloatArray
    value: FloatArray
    error: FloatArray
    theory: FloatArray
    beta_max: float
    maximum: float
    maximum_error: float


def simulate_layer_correlation(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | BinaryUnit = "spin",
    hidden: str | BinaryUnit = "bit",
    visible_bias: float = 0.0,
    hidden_bias: float = 0.0,
    beta: npt.ArrayLike | None = None,
    n_draws: int | None = None,
    rng: Rng = None,
    progress: Callable[[float], None] | None = None,
) -> DisorderAverage:
    """Draw machines of these sizes and average their layer correlation; the theory's curve comes with it.

    Parameters
    ----------
    beta : scales to simulate; None takes twelve around beta_max
    n_draws : machines; None takes as many as give a few percent within about a minute
    rng : seed or generator
    progress : called with the finished fraction
    """
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    b, c = as_real(visible_bias, "visible_bias"), as_real(hidden_bias, "hidden_bias")
    flat_v, flat_h = units[0].symmetric and b == 0.0, units[1].symmetric and c == 0.0
    if flat_v and flat_h:
        raise ValueError(
            "`hidden_bias` must not be zero where both layers are symmetric: in theory their correlation "
            "diverges at the transition, at finite size it has no peak. "
            f"Got {units[0]}-{units[1]} without biases."
        )
    machine: dict[str, Any] = {"visible": units[0], "hidden": units[1], "b": b, "c": c}
    top = float(find_beta_max(m / n, **machine).beta)
    scales = np.asarray(GRID) * top if beta is None else np.atleast_1d(as_positive(beta, "beta"))
    small = min(n, m) <= LARGEST_ENUMERATED
    draws = as_count(_default_draws(n, m) if n_draws is None else n_draws, "n_draws", minimum=2)
    generator = as_generator(rng)
    measure = _enumerated if small else _sampled
    values = np.empty((draws, scales.size))
    for k in range(draws):
        weights = generator.standard_normal((n, m)) / np.sqrt(n + m)
        seed = int(generator.integers(2**62))
        for i, scale in enumerate(scales):
            rbm = RBM(scale * weights, np.full(n, b), np.full(m, c), units[0], units[1])
            values[k, i] = measure(rbm, flat_v, flat_h, seed)
            if progress is not None:
                progress((k * scales.size + i + 1) / values.size)
    maximum, maximum_error = _place_of_maximum(scales, values)
    return DisorderAverage(
        n_visible=n,
        n_hidden=m,
        method="enumerated" if small else "sampled",
        n_draws=draws,
        beta=scales,
        value=values.mean(axis=0),
        error=values.std(axis=0, ddof=1) / np.sqrt(draws),
        theory=np.asarray(layer_correlation_slope(scales, m / n, **machine)),
        beta_max=top,
        maximum=maximum,
        maximum_error=maximum_error,
    )


def _default_draws(n: int, m: int) -> int:
    """The average over one machine fluctuates like one over the number of its units."""
    if min(n, m) <= LARGEST_ENUMERATED:
        return int(np.clip(40_000 // (n + m), 200, 4000))
    return int(np.clip(2_000 // (n + m), 4, 40))


def _enumerated(rbm: RBM, flat_v: bool, flat_h: bool, seed: int) -> float:
    moments = exact_moments(rbm, n_threads=1)
    v, h = moments.visible, moments.hidden
    covariance = moments.products - np.outer(v, h)
    if flat_v:
        total = -2.0 * float(v @ covariance.sum(axis=1))
    elif flat_h:
        total = -2.0 * float(covariance.sum(axis=0) @ h)
    else:
        total = float(covariance.sum())
    return total / (v.size + h.size)


def _sampled(rbm: RBM, flat_v: bool, flat_h: bool, seed: int) -> float:
    """The same from chains. A product of two averages needs independent halves, or it would be biased."""
    halves = [_sampled_moments(rbm, np.random.default_rng([seed, half])) for half in (0, 1)]
    total = 0.0
    for (v, h, _, _), (_, _, with_hidden, with_visible) in (halves, halves[::-1]):
        if flat_v:
            total += -2.0 * float(v @ with_hidden)
        elif flat_h:
            total += -2.0 * float(with_visible @ h)
        else:
            total += float(with_hidden.sum())
    return 0.5 * total / (rbm.n_visible + rbm.n_hidden)


def _sampled_moments(rbm: RBM, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Means of both layers, ``sum_j cov(v_i, h_j)``, ``sum_i cov(v_i, h_j)``; hidden units by their means."""
    states = sample(rbm, N_CHAINS, n_steps=N_RELAX, rng=rng)
    v, vh = np.zeros(rbm.n_visible), np.zeros(rbm.n_visible)
    h, hv = np.zeros(rbm.n_hidden), np.zeros(rbm.n_hidden)
    v_sum = h_sum = 0.0
    for i in range(N_SNAPSHOTS):
        if i:
            states = sample(rbm, N_CHAINS, n_steps=N_BETWEEN, start=states, rng=rng)
        means = rbm.mean_h_given_v(states)
        of_visible, of_hidden = states.sum(axis=1), means.sum(axis=1)
        v += states.mean(axis=0)
        h += means.mean(axis=0)
        vh += states.T @ of_hidden / N_CHAINS
        hv += means.T @ of_visible / N_CHAINS
        v_sum += of_visible.mean()
        h_sum += of_hidden.mean()
    v, h, vh, hv = (array / N_SNAPSHOTS for array in (v, h, vh, hv))
    return v, h, vh - v * h_sum / N_SNAPSHOTS, hv - h * v_sum / N_SNAPSHOTS


def _place_of_maximum(beta: FloatArray, values: FloatArray) -> tuple[float, float]:
    """Where the mean curve has its maximum, by a cubic in ``ln beta`` around it; the error by jackknife."""
    whole = _peak_of(beta, values.mean(axis=0))
    n = len(values)
    if not np.isfinite(whole):
        return np.nan, np.nan
    groups = np.array_split(np.arange(n), min(n, 20))
    without = [_peak_of(beta, np.delete(values, group, axis=0).mean(axis=0)) for group in groups]
    k = len(groups)
    return whole, float(np.sqrt((k - 1) * np.var(without)))


def _peak_of(beta: FloatArray, values: FloatArray) -> float:
    x, y = np.log(beta), np.abs(values)
    highest = int(np.argmax(y))
    near = np.abs(x - x[highest]) <= NEAR
    if highest in (0, x.size - 1) or near.sum() < 4:
        return np.nan
    cubic = np.polynomial.Polynomial.fit(x[near], y[near], 3)
    roots = cubic.deriv().roots()
    inside = [r.real for r in roots if abs(r.imag) < 1e-9 and x[near][0] <= r.real <= x[near][-1]]
    if not inside:
        return np.nan
    return float(np.exp(max(inside, key=lambda r: float(cubic(r)))))
