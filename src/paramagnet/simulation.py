"""Simulations that test the theory at finite size, by averages over random weights.

The theory holds for infinite layers. Here machines of given sizes are drawn, with weights from ``N(0,
beta**2/(n + m))``, and the layer correlation is averaged over them, small machines by enumeration, large
ones by Gibbs sampling. With ``cov`` the covariance in one machine and ``E`` the average over weights,

    chi_vh = (1/(n + m)) sum_ij E cov(v_i, h_j)

if no symmetry makes it vanish. For symmetric visible units (spins) without bias its slope in ``b`` is used
instead, which is an average in the machine without bias; no difference quotient is needed:

    d chi_vh/db = (1/(n + m)) sum_i E[sum_j cov(v_i**2, h_j) - 2 <v_i> sum_j cov(v_i, h_j)].

The square of a spin is 1 and drops out. For a Gaussian layer beside one of bits beta_max maximizes the second
part alone (`overlap_response`). The same holds for hidden units with the layers exchanged. Two symmetric
layers have no peak at finite size. All ``beta`` share their normal draws, so the position of the maximum has
a smaller statistical error than its height.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_count, as_generator, as_positive, as_real
from paramagnet.exact.cost import count_summed
from paramagnet.exact.sums import exact_moments
from paramagnet.rbm import RBM, Rng
from paramagnet.sampling.chains import sample
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.response import criterion
from paramagnet.theory.scale import find_beta_max
from paramagnet.units import FloatArray, Unit, as_binary, as_unit

LARGEST_ENUMERATED = 14  # most units of the smaller layer for which machines are enumerated
GRID = (0.5, 0.7, 0.82, 0.88, 0.94, 1.0, 1.06, 1.12, 1.18, 1.24, 1.3, 1.45)  # in units of beta_max
NEAREST = 5  # number of points around the highest one to which the maximum is fitted
N_CHAINS, N_RELAX, N_SNAPSHOTS, N_BETWEEN = 400, 200, 30, 4  # numbers for each of two independent halves


@dataclass(frozen=True, eq=False)
class DisorderAverage:
    """The quantity that beta_max maximizes (the layer correlation, or its slope), simulated and by theory.

    ``value`` and its standard ``error`` are averages over ``n_draws`` machines, one per ``beta``; ``maximum``
    is the ``beta`` at which the simulated curve is largest, nan if that is at an end of the grid.
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
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
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
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"`` or a unit object.
    visible_bias : float, default 0.0
        Bias of all visible units.
    hidden_bias : float, default 0.0
        Bias of all hidden units.
    beta : float or array_like, optional
        Scales to simulate; None takes twelve around beta_max.
    n_draws : int, optional
        Number of machines; None takes as many as give an error of a few percent within about a minute.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    progress : callable, optional
        Called with the finished fraction.

    Returns
    -------
    DisorderAverage
        Simulated averages with their errors, beside the theory.
    """
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    b, c = as_real(visible_bias, "visible_bias"), as_real(hidden_bias, "hidden_bias")
    if not any(unit.bounded for unit in units):
        raise ValueError(
            "`hidden` must be spin or bit units where the visible ones are Gaussian: two Gaussian layers "
            f"have no layer correlation. Got {units[0]}-{units[1]}."
        )
    if all(_find_symmetry(*units)) and b == c == 0.0:
        raise ValueError(
            "`hidden_bias` must not be zero where both layers are symmetric: in theory their correlation "
            "diverges at the transition, at finite size it has no peak. "
            f"Got {units[0]}-{units[1]} without biases."
        )
    machine: dict[str, Any] = {"visible": units[0], "hidden": units[1], "b": b, "c": c}
    top = float(find_beta_max(m / n, **machine).beta)
    scales = np.asarray(GRID) * top if beta is None else np.atleast_1d(as_positive(beta, "beta"))
    summed = count_summed(n, m, *units)
    small = summed <= LARGEST_ENUMERATED
    draws = as_count(
        _default_draws(n, m, summed if small else None, not all(unit.bounded for unit in units))
        if n_draws is None
        else n_draws,
        "n_draws",
        minimum=2,
    )
    generator = as_generator(rng)
    measure, answer = _enumerated if small else _sampled, _choose_answer(*units, b, c)
    values = np.empty((draws, scales.size))
    for k in range(draws):
        weights = generator.standard_normal((n, m)) / np.sqrt(n + m)
        seed = int(generator.integers(2**62))
        for i, scale in enumerate(scales):
            rbm = RBM(scale * weights, np.full(n, b), np.full(m, c), units[0], units[1])
            values[k, i] = measure(rbm, answer, seed) / (n + m)
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
        theory=np.asarray(criterion(scales, m / n, **machine)),
        beta_max=top,
        maximum=maximum,
        maximum_error=maximum_error,
    )


class _Answer(NamedTuple):
    """The measured quantity: the response of units ``x`` of one layer to a field on all ``y`` of the other.

    For ``layer`` 0 (visible) or 1 (hidden) it is ``-2 <x> cov(x, sum y)``, with ``square`` plus ``cov(x**2,
    sum y)``, summed over ``x``; for None it is ``cov(x, sum y)`` summed over ``x``.
    """

    layer: int | None
    square: bool = False


def _find_symmetry(visible: Unit, hidden: Unit) -> tuple[bool, bool]:
    """Whether the units of each layer are symmetric where training starts (dReLU units are only there)."""
    return theory_of(visible, "visible").symmetric, theory_of(hidden, "hidden").symmetric


def _choose_answer(visible: Unit, hidden: Unit, b: float, c: float) -> _Answer:
    """The observable whose average is the theory's `criterion`."""
    gaussian = not visible.bounded, not hidden.bounded
    symmetric = _find_symmetry(visible, hidden)
    for layer, bias in enumerate((b, c)):
        if gaussian[layer] and not symmetric[1 - layer]:
            return _Answer(layer)
        if symmetric[layer] and bias == 0.0:
            return _Answer(layer, square=gaussian[layer])
    return _Answer(None)


def _default_draws(n: int, m: int, summed: int | None, gaussian: bool) -> int:
    """The number of machines that take about a minute; the variance of one machine falls as one over its
    size.

    ``summed`` units are enumerated, which takes longer beside Gaussian ones; None means that chains are
    sampled.
    """
    if summed is None:
        return int(np.clip((700 if gaussian else 2_000) // (n + m), 4, 40))
    most = 5e7 / (2**summed * max(n, m)) if gaussian else 4000
    return int(np.clip(40_000 // (n + m), 200, max(min(most, 4000), 50 if most > 5 else 8)))


def _enumerated(rbm: RBM, answer: _Answer, seed: int) -> float:
    if answer.square:
        return _enumerated_with_square(rbm, answer.layer == 1)
    moments = exact_moments(rbm, n_threads=1)
    v, h = moments.visible, moments.hidden
    covariance = moments.products - np.outer(v, h)
    if answer.layer == 0:
        return -2.0 * float(v @ covariance.sum(axis=1))
    if answer.layer == 1:
        return -2.0 * float(covariance.sum(axis=0) @ h)
    return float(covariance.sum())


def _enumerated_with_square(rbm: RBM, exchanged: bool) -> float:
    """The answer with ``square`` by enumeration, for visible (or if ``exchanged`` hidden) Gaussian units,
    which are normal in each state of the other layer.
    """
    weights, bias, other_bias = rbm.weights, rbm.visible_bias, rbm.hidden_bias
    unit, other = rbm.visible, rbm.hidden
    if exchanged:
        weights, bias, other_bias, unit, other = weights.T, other_bias, bias, other, unit
    k = other_bias.size
    levels = as_binary(other, "visible" if exchanged else "hidden").levels
    states = np.asarray(levels)[(np.arange(2**k)[:, None] >> np.arange(k)) & 1]
    fields = states @ weights.T + bias
    means = unit.mean(fields)
    log_p = states @ other_bias + unit.log_trace(fields).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    total = states.sum(axis=1)
    tilted = p * (total - p @ total)
    return float(np.sum(tilted @ means**2 - 2.0 * (p @ means) * (tilted @ means)))


class _Moments(NamedTuple):
    """Moments of both layers: means, and covariances of units and of their squares with the other's sum."""

    means: tuple[FloatArray, FloatArray]
    covariances: tuple[FloatArray, FloatArray]
    squares: tuple[FloatArray, FloatArray]


def _sampled(rbm: RBM, answer: _Answer, seed: int) -> float:
    """The answer from chains, in two independent halves, because products of averages would be biased."""
    halves = [_sampled_moments(rbm, np.random.default_rng([seed, half])) for half in (0, 1)]
    total = 0.0
    for one, other in (halves, halves[::-1]):
        if answer.layer is None:
            total += float(other.covariances[0].sum())
        else:
            total += -2.0 * float(one.means[answer.layer] @ other.covariances[answer.layer])
            total += float(other.squares[answer.layer].sum()) if answer.square else 0.0
    return 0.5 * total


def _sampled_moments(rbm: RBM, rng: np.random.Generator) -> _Moments:
    """Moments from snapshots of chains; hidden units enter by their means, as the variance around the mean
    does not depend on the state.
    """
    states = sample(rbm, N_CHAINS, n_steps=N_RELAX, rng=rng)
    sizes = rbm.n_visible, rbm.n_hidden
    # For each layer: the means of x and x**2, and those of x and x**2 times the sum over the other layer.
    sums = [np.zeros((4, size)) for size in sizes]
    totals = np.zeros(2)
    for i in range(N_SNAPSHOTS):
        if i:
            states = sample(rbm, N_CHAINS, n_steps=N_BETWEEN, start=states, rng=rng)
        layers = states, rbm.mean_h_given_v(states)
        of_layers = [layer.sum(axis=1) for layer in layers]
        for k, layer in enumerate(layers):
            of_other, squares = of_layers[1 - k], layer * layer
            sums[k] += (
                layer.mean(axis=0),
                squares.mean(axis=0),
                of_other @ layer / N_CHAINS,
                of_other @ squares / N_CHAINS,
            )
            totals[k] += of_layers[k].mean()
    v, h = (part / N_SNAPSHOTS for part in sums)
    others = totals[::-1] / N_SNAPSHOTS
    return _Moments(
        (v[0], h[0]),
        (v[2] - v[0] * others[0], h[2] - h[0] * others[1]),
        (v[3] - v[1] * others[0], h[3] - h[1] * others[1]),
    )


def _place_of_maximum(beta: FloatArray, values: FloatArray) -> tuple[float, float]:
    """The ``beta`` at which the mean curve has its maximum, and its error by the jackknife."""
    whole = peak_of(beta, values.mean(axis=0))
    n = len(values)
    if not np.isfinite(whole):
        return np.nan, np.nan
    groups = np.array_split(np.arange(n), min(n, 20))
    without = [peak_of(beta, np.delete(values, group, axis=0).mean(axis=0)) for group in groups]
    k = len(groups)
    return whole, float(np.sqrt((k - 1) * np.var(without)))


def peak_of(beta: FloatArray, values: FloatArray) -> float:
    """The ``beta`` at which a curve has its maximum, by a cubic for its logarithm against ``ln beta`` around
    the highest point.

    On the theory's own curves, at the points of `GRID`, its error is 0.1 % at ``c = 0`` and 1 % at ``c =
    -5``, where the peak is sharp. It is nan if the highest point is at an end of the curve.
    """
    x, y = np.log(beta), np.abs(values)
    highest = int(np.argmax(y))
    near = np.sort(np.argsort(np.abs(x - x[highest]))[:NEAREST])
    if highest in (0, x.size - 1) or near.size < 4 or not (y[near] > 0.0).all():
        return np.nan
    cubic = np.polynomial.Polynomial.fit(x[near], np.log(y[near]), 3)
    roots = cubic.deriv().roots()
    inside = [r.real for r in roots if abs(r.imag) < 1e-9 and x[near[0]] <= r.real <= x[near[-1]]]
    if not inside:
        return np.nan
    return float(np.exp(max(inside, key=lambda r: float(cubic(r)))))
