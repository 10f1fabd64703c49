"""Simulations of centred random machines: the fluctuations of the overlap beside the theory.

Machines with weights from ``N(0, sigma**2)`` and both layers centred, ``E = -sum_ij (v_i - mu) w_ij (h_j -
lam)``, are sampled by Gibbs chains. Two chains of one machine have the overlap ``o = (1/n) sum_i (v_i - mu)
(v'_i - mu)``; for categorical units the product is that of the vectors of indicators, less their means. In
the paramagnet of large machines

    n E[o**2] = s/(1 - t),

with ``s`` the mean square of the visible variances and ``t`` the loop gain (``theory/edge.py``), so that the
ratio ``n E[o**2]/s`` is compared with ``1/(1 - t)``. Finite size changes it by a term of ``1/n``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet._checks import as_count, as_generator, as_real
from paramagnet.rbm import Rng
from paramagnet.theory.biases import Biases
from paramagnet.theory.edge import (
    centred_gain,
    centred_start,
    hidden_response,
    stability_edge,
    visible_variances,
)
from paramagnet.theory.ensemble import as_layer_bias
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.units import FloatArray, Unit, as_unit

N_CHAINS, N_RELAX, N_SNAPSHOTS, N_BETWEEN = 48, 60, 40, 3
_CHECKED_GAINS = (0.1, 0.25, 0.5)


@dataclass(frozen=True, eq=False)
class OverlapAverage:
    """The relative susceptibility of the overlap, simulated and by theory.

    ``value`` is ``n E[o**2]/s`` with its standard ``error`` over ``n_draws`` machines (``draws`` has one
    value per machine), ``theory`` is ``1/(1 - gain)``.
    """

    n_visible: int
    n_hidden: int
    sigma: float
    gain: float
    theory: float
    value: float
    error: float
    n_draws: int
    draws: FloatArray


def sigma_at_gain(
    n_visible: int,
    n_hidden: int,
    gain: float,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | Biases = 0.0,
    hidden_bias: float = 0.0,
) -> float:
    """The standard deviation of the weights at which centred machines have this loop gain.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    gain : float
        The loop gain, between 0 and 1, and below its value at the edge.
    visible, hidden : str or Unit, optional
        Types of the units.
    visible_bias : float or Biases, default 0.0
        Bias of all visible units, or `Biases`.
    hidden_bias : float, default 0.0
        Bias of all hidden units.

    Returns
    -------
    float
        The standard deviation.
    """
    from scipy.optimize import brentq

    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    c = as_real(hidden_bias, "hidden_bias")
    machine: dict[str, Any] = {"visible": visible, "hidden": hidden, "b": visible_bias, "c": c}
    edge, wanted = stability_edge(m / n, **machine), as_real(gain, "gain")
    if not 0.0 < wanted < edge.gain:
        raise ValueError(
            f"`gain` must lie between 0 and that of the edge, {edge.gain:.6g}, got {wanted:g}. "
            "`stability_edge` gives the kind of the edge."
        )

    def miss(beta: float) -> float:
        return float(np.log(centred_gain(beta, m / n, **machine) / wanted))

    return float(brentq(miss, 1e-6 * edge.beta, edge.beta * (1.0 - 1e-12), rtol=1e-12)) / float(
        np.sqrt(n + m)
    )


def simulate_overlap(
    n_visible: int,
    n_hidden: int,
    gain: float,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | Biases | None = None,
    hidden_bias: float = 0.0,
    n_draws: int = 40,
    rng: Rng = None,
    progress: Callable[[float], None] | None = None,
) -> OverlapAverage:
    """Draw centred machines of these sizes at a loop gain and average the square of the overlap.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    gain : float
        The loop gain ``t`` of the theory, which gives the scale of the weights.
    visible, hidden : str or Unit, optional
        Types of the units: visible ``"spin"``, ``"bit"`` or ``"categorical(q)"``, hidden ``"spin"``,
        ``"bit"`` or ``"relu"``.
    visible_bias : float or Biases, optional
        Bias of all visible units, or `Biases`, which the units take in turn (by their weights, if these
        differ). The means without weights are kept by a further term of the biases.
    hidden_bias : float, default 0.0
        Bias of all hidden units.
    n_draws : int, default 40
        Number of machines.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    progress : callable, optional
        Called with the finished fraction.

    Returns
    -------
    OverlapAverage
        The simulated average with its error, beside the theory.
    """
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    draws = as_count(n_draws, "n_draws", minimum=2)
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    b = as_layer_bias(0.0 if visible_bias is None else visible_bias, units[0], "visible_bias")
    if units[0].tail > 0.0:
        raise ValueError(f"`visible` must be spin, bit or categorical units, got {units[0]} units.")
    spread = Biases(_share_out(b, n)) if isinstance(b, Biases) else None
    fields = np.full(n * units[0].width, b) if spread is None else spread.values.ravel()
    sigma = sigma_at_gain(
        n, m, gain, visible=units[0], hidden=units[1], visible_bias=b if spread is None else spread,
        hidden_bias=hidden_bias,
    )  # fmt: skip
    square = visible_variances(theory_of(units[0], "visible"), float(fields[0]), spread)[1]
    lam, added = centred_start(sigma, *units, fields, float(hidden_bias), m)
    means = units[0].mean(fields)
    if units[0].width == 1:  # the same term for two values; it vanishes for means halfway
        pull = sigma**2 * m * hidden_response(sigma, *units, fields, float(hidden_bias))[1]
        added = pull * (means - np.mean(units[0].values or 0.0))
    biases = fields + added, float(hidden_bias)
    generator = as_generator(rng)
    values = np.empty(draws)
    for k in range(draws):
        machine = _CentredMachine(n, m, sigma, units, biases, (means, lam), generator)
        values[k] = machine.measure() / square
        if progress is not None:
            progress((k + 1) / draws)
    error = float(values.std(ddof=1) / np.sqrt(draws))
    theory = 1.0 / (1.0 - float(gain))
    return OverlapAverage(n, m, sigma, float(gain), theory, float(values.mean()), error, draws, values)


def check_edge(
    n_visible: int, n_hidden: int, *, progress: Callable[[float], None] | None = None, **options: Any
) -> list[OverlapAverage]:
    """`simulate_overlap` at three gains below the edge: at 0.1, 0.25 and 0.5 of that of the edge."""
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    units = {name: options[name] for name in ("visible", "hidden") if name in options}
    bias = options.get("visible_bias")
    biases = {"b": 0.0 if bias is None else bias, "c": options.get("hidden_bias", 0.0)}
    top = stability_edge(m / n, **units, **biases).gain
    found = []
    for i, fraction in enumerate(_CHECKED_GAINS):

        def show(part: float, done: int = i) -> None:
            if progress is not None:
                progress((done + part) / len(_CHECKED_GAINS))

        found.append(simulate_overlap(n_visible, n_hidden, fraction * top, progress=show, **options))
    return found


def _share_out(biases: Biases, n: int) -> FloatArray:
    """The biases of ``n`` units: each one in turn, or as often as its weight says if they differ."""
    values, weights = biases.values, biases.weights
    if weights.min() == weights.max():
        return np.resize(values, (n, *values.shape[1:]))
    places = np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n)
    return values[np.minimum(places, len(values) - 1)]


class _CentredMachine:
    """One random machine, and chains that sample it; ``means`` are those of the visible units."""

    def __init__(
        self, n: int, m: int, sigma: float, units: tuple[Unit, Unit], biases: tuple[FloatArray, float],
        means: tuple[FloatArray, float], rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._n, self._rng = n, rng
        self._visible, self._hidden = units
        self._weights = rng.normal(0.0, sigma, size=(n * units[0].width, m))
        units[0].project(self._weights)  # labels: the zero-sum gauge, which drops the means of the draw
        self._means, lam = means
        self._visible_bias = biases[0] - lam * self._weights.sum(axis=1)
        self._hidden_bias = biases[1] - self._means @ self._weights

    def _sweep(self, states: FloatArray) -> FloatArray:
        fields = self._visible.multiply(states, self._weights)
        hidden = self._hidden.draw(fields + self._hidden_bias, self._rng)
        return self._visible.draw(hidden @ self._weights.T + self._visible_bias, self._rng)

    def _overlaps(self, states: FloatArray) -> FloatArray:
        """The sums over the units of the products of all pairs of chains."""
        width = self._visible.width
        if width > 1:
            states = (states[..., None] == np.arange(width)).reshape(len(states), -1).astype(np.float64)
        centred = states - self._means
        return centred @ centred.T

    def measure(self) -> float:
        """``n E[o**2]`` over all pairs of chains."""
        states = self._visible.random_start((N_CHAINS, self._n), self._rng).astype(np.float64)
        for _ in range(N_RELAX):
            states = self._sweep(states)
        pairs = np.triu_indices(N_CHAINS, 1)
        total = 0.0
        for _ in range(N_SNAPSHOTS):
            for _ in range(N_BETWEEN):
                states = self._sweep(states)
            total += float((self._overlaps(states)[pairs] ** 2).mean())
        return total / (N_SNAPSHOTS * self._n)
