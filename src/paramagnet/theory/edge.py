"""The stability edge of centred machines: where the paramagnet of two centred layers ends.

Take both layers relative to their means, ``E = -sum_ij (v_i - mu_i) w_ij (h_j - lam_j) - ...``. Without
order the overlap of two replicas is then zero for any units, and its fluctuations grow with the loop gain

    t = A B E_v[s**2] E_h[s**2],        n E[overlap**2] = E_v[s**2]/(1 - t),

where ``s`` is the variance of a unit (of a label: the covariance matrix, ``s**2`` its sum of squares). The
paramagnet is stable up to ``t = 1``: with ``sigma**2 = beta**2/(n + m)`` this is ``sigma**4 sum_i s_i**2
sum_j s_j**2 = 1``. Each layer bends the weight of the other one: a hidden unit has the weight ``p0(h) exp(c h
+ B V (h - lam)**2/2)`` with ``V`` the variance of the visible units, so for ReLU units the precision is ``1 -
B V``. Their edge is ``"continuous"`` if ``t`` reaches 1 while that is positive (spins and ``c = 0``: for
``m > n``), else ``"condensation"``: at ``B V = 1`` (spins: ``sigma = 1/sqrt(n)``) single hidden units grow
without bound along their own weights.

Means of visible units are those of their biases; the biases of a centred machine contain the terms that keep
them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paramagnet.theory.biases import Biases
from paramagnet.theory.ensemble import Ensemble, make_ensemble
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.layers.unit_theory import UnitTheory
from paramagnet.units import FloatArray, Unit

CONTINUOUS, CONDENSATION = "continuous", "condensation"
_LARGEST_COUPLING = 1e12
_MOST_STEPS, _ROUNDING = 200, 4e-16  # of the search for a mean
_NEARLY = 0.999  # of the coupling at which unbounded units condense


@dataclass(frozen=True, eq=False)
class StabilityEdge:
    """The edge of the paramagnet of centred machines; floats and a text, or arrays of the arguments' shape.

    ``beta`` is the scale of the weights there, ``kind`` is ``"continuous"`` (the loop gain is 1) or
    ``"condensation"`` (ReLU units: single units grow without bound before that), and ``gain`` is the loop
    gain at ``beta``.
    """

    beta: Any
    kind: Any
    gain: Any


def _spread_of(theory: UnitTheory, bias: float, spread: Biases | None) -> tuple[FloatArray, FloatArray]:
    """Biases of units, and their weights."""
    if spread is None:
        return np.array([bias]), np.ones(1)
    return spread.values, spread.weights


def visible_variances(theory: UnitTheory, bias: float, spread: Biases | None) -> tuple[float, float]:
    """The means over the units of the variance and of its square, in the biases alone."""
    if theory.label:
        if spread is None:
            return theory.free_variance, theory.free_square
        shares = np.exp(spread.values - spread.values.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        two, three = (shares**2).sum(axis=1), (shares**3).sum(axis=1)
        return float(spread.weights @ (1.0 - two)), float(spread.weights @ (two - 2.0 * three + two * two))
    values, weights = _spread_of(theory, bias, spread)
    layer = theory.layer(values, np.zeros(values.shape), np.zeros(values.shape), None, 1.0)
    variance = np.asarray(layer.variance)
    return float(weights @ variance), float(weights @ variance**2)


def centred_means(theory: UnitTheory, biases: FloatArray, curvature: float) -> tuple[FloatArray, FloatArray]:
    """``lam`` and the variance of units of the weight ``p0(h) exp(c h + g (h - lam)**2)`` whose mean is
    ``lam``. The mean falls with ``lam``, by ``2 g`` times the variance: Newton's steps within a bracket,
    which is halved where a step would leave it, or is longer than half of the one before.
    """
    zeros = np.zeros(biases.shape)

    def respond(lam: FloatArray) -> Any:
        return theory.layer(biases - 2.0 * curvature * lam, zeros, zeros + 2.0 * curvature, None, 1.0)

    if theory.label:
        return zeros, np.asarray(respond(zeros).variance)
    ends = np.asarray(respond(zeros).magnetization), zeros
    low, high = np.minimum(*ends), np.maximum(*ends)
    lam, last = 0.5 * (low + high), high - low
    for _ in range(_MOST_STEPS):
        layer = respond(lam)
        excess = np.asarray(layer.magnetization) - lam
        low, high = np.where(excess > 0.0, lam, low), np.where(excess > 0.0, high, lam)
        step = excess / (1.0 + 2.0 * curvature * np.asarray(layer.variance))
        newton = (lam + step >= low) & (lam + step <= high) & (np.abs(step) <= 0.5 * last)
        step = np.where(newton, step, 0.5 * (low + high) - lam)
        lam, last = lam + step, np.abs(step)
        if (last <= _ROUNDING * np.abs(lam)).all():
            break
    return lam, np.asarray(respond(lam).variance)


def centred_start(
    sigma: float, visible: Unit, hidden: Unit, visible_bias: FloatArray, hidden_bias: float, n_hidden: int
) -> tuple[float, FloatArray | float]:
    """The mean ``lam`` of the hidden units of a centred machine, and what the visible biases must gain so
    that visible labels keep their frequencies.

    To second order in the weights the hidden units weigh a visible state ``x`` by ``exp(sigma**2 sum_j t_j
    |x - mu|**2/2)``, with ``t`` their variances. For a label this favours rare states, and ``b_ia = ln p_ia +
    p_ia sigma**2 sum_j t_j`` takes it back. The visible units do the same to the hidden ones, whose mean is
    found in that weight (`centred_means`).
    """
    lam, variance = hidden_response(sigma, visible, hidden, visible_bias, hidden_bias)
    pull = sigma**2 * n_hidden * variance
    return lam, visible.mean(visible_bias) * pull if visible.width > 1 else 0.0


def hidden_response(
    sigma: float, visible: Unit, hidden: Unit, visible_bias: FloatArray, hidden_bias: float
) -> tuple[float, float]:
    """The mean ``lam`` of the hidden units of a centred machine, and their variance."""
    theory = theory_of(hidden, "hidden")
    if theory.label:
        return 1.0 / hidden.width, theory.free_variance
    means = visible.mean(visible_bias)
    if visible.width > 1:
        total = float(np.sum(means * (1.0 - means)))
    else:
        total = visible_variances(theory_of(visible, "visible"), 0.0, Biases(visible_bias))[0] * means.size
    coupling = sigma**2 * total
    if theory.tail:
        coupling = min(coupling, _NEARLY / theory.tail)  # beyond, single units have no finite variance
    lam, variance = centred_means(theory, np.array([hidden_bias]), 0.5 * coupling)
    return float(lam[0]), float(variance[0])


class _Machine:
    """One centred machine, as a function of ``B``."""

    def __init__(self, ensemble: Ensemble, index: int) -> None:
        if ensemble.visible.tail > 0.0:
            raise ValueError(
                f"`visible` must be spin, bit or categorical units for the edge of centred machines, got "
                f"{ensemble.visible} units: their variance grows with the weights. Exchange the layers, or "
                "take `beta_max`."
            )
        self.alpha = float(ensemble.alpha[index])
        self.hidden = ensemble.hidden
        self.trace, self.square = visible_variances(
            ensemble.visible, float(ensemble.b[index]), ensemble.spread_v
        )
        self.biases, self.weights = _spread_of(ensemble.hidden, float(ensemble.c[index]), ensemble.spread_h)
        # B at which an unbounded hidden unit ceases to have a finite variance.
        self.last = 1.0 / (ensemble.hidden.tail * self.trace) if ensemble.hidden.tail else np.inf

    def hidden_square(self, coupling: float) -> float:
        """``E_h[s**2]`` at ``B``."""
        if self.hidden.label:
            if self.biases.ndim == 1:
                return self.hidden.free_square
            shares = np.exp(self.biases - self.biases.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            two, three = (shares**2).sum(axis=1), (shares**3).sum(axis=1)
            return float(self.weights @ (two - 2.0 * three + two * two))
        variance = centred_means(self.hidden, self.biases, 0.5 * coupling * self.trace)[1]
        return float(self.weights @ variance**2)

    def gain(self, coupling: float) -> float:
        """``t`` at ``B``; infinite beyond the condensation."""
        if coupling >= self.last:
            return np.inf
        return self.alpha * coupling**2 * self.square * self.hidden_square(coupling)

    def edge(self) -> tuple[float, str, float]:
        """``B`` at the edge, its kind, and the gain there."""
        from scipy.optimize import brentq

        if np.isfinite(self.last):
            high = self.last * (1.0 - 1e-12)
        else:
            high = 1.0
            while self.gain(high) < 1.0 and high < _LARGEST_COUPLING:
                high *= 2.0
        at_end = self.gain(high)
        if at_end < 1.0:
            return self.last, CONDENSATION, at_end
        root = brentq(lambda x: np.log(self.gain(x)), 1e-12 * high, high, xtol=1e-300, rtol=1e-15)
        return float(root), CONTINUOUS, 1.0


def find_edges(ensemble: Ensemble) -> tuple[FloatArray, Any, FloatArray]:
    """``beta``, kind and gain at the edge of each machine of a one-dimensional ensemble."""
    found = [_Machine(ensemble, i).edge() for i in range(ensemble.alpha.size)]
    coupling = np.array([edge[0] for edge in found])
    kinds = np.array([edge[1] for edge in found], dtype=object)
    return np.sqrt(coupling * (1.0 + ensemble.alpha)), kinds, np.array([edge[2] for edge in found])


def stability_edge(
    alpha: Any, *, visible: str | Unit = "spin", hidden: str | Unit = "bit", b: Any = 0.0, c: Any = 0.0
) -> StabilityEdge:
    """The scale at which the paramagnet of centred random machines becomes unstable.

    It is the scale that `beta_max` gives where the layer correlation has no maximum: for ReLU units, and for
    categorical units beside spins without bias. For labels of more than four states the transition may be
    discontinuous and lie at a smaller scale than the edge.

    Parameters
    ----------
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units; the hidden ones may be ``"relu"``.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units, which determine their means.

    Returns
    -------
    StabilityEdge
        The scale, the kind of the edge and the loop gain there.
    """
    ensemble = make_ensemble(1.0, alpha, visible=visible, hidden=hidden, b=b, c=c)
    shape = np.shape(ensemble.alpha)
    beta, kind, gain = (values.reshape(shape) for values in find_edges(ensemble.raveled()))
    if shape:
        return StabilityEdge(beta, kind, gain)
    return StabilityEdge(float(beta), str(kind), float(gain))


def centred_gain(
    beta: Any,
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """The loop gain ``t`` of centred random machines: 1 at a continuous edge, infinite beyond a condensation.

    Parameters
    ----------
    beta : float or array_like
        Scale of the weights, which have the variance ``beta**2/(n_visible + n_hidden)``.
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units; the hidden ones may be ``"relu"``.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units, which determine their means.

    Returns
    -------
    float or ndarray
        The gain, in the common shape of the arguments.
    """
    ensemble = make_ensemble(beta, alpha, visible=visible, hidden=hidden, b=b, c=c)
    flat = ensemble.raveled()
    gains = np.array([_Machine(flat, i).gain(float(flat.coupling_h[i])) for i in range(flat.alpha.size)])
    return gains.reshape(np.shape(ensemble.alpha)) if np.ndim(ensemble.alpha) else float(gains[0])
