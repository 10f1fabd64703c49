"""The scale of the initial weights: beta_max, where the layers are correlated most ([Y25]
eqn:def_beta_max, eqn:beta_max).

The maximum is the root of ``d ln|chi| / d ln beta``, found to about 1e-12; comparing values of ``chi``
would stop at 1e-8. A scan from small ``beta`` upwards makes it the first maximum. `LayerCorrelationMaximum`
holds further properties of the maximum: how sharp it is, whether the replica-symmetric theory is stable
there, and the higher maximum (rival) at larger ``beta``, if there is one.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from paramagnet._checks import as_count
from paramagnet.theory.biases import Biases
from paramagnet.theory.ensemble import Ensemble, as_layer_bias, make_ensemble
from paramagnet.theory.forms import form_of
from paramagnet.theory.formula import has_formula
from paramagnet.theory.peak_search import Peak, first_peak, higher_maximum, known_peak, refine
from paramagnet.theory.solution import stability_number
from paramagnet.theory.status import LayerCorrelationMaximum, judge
from paramagnet.units import Unit, as_unit

_FIRST = 0.6  # the first beta of a scan; |chi| still grows below it
_RATIO = 1.16  # ratio of neighbouring points of a scan for machines with one maximum
_FIRST_FINE, _FIRST_NESTED = 0.3, 0.05
_FINE_RATIO = 1.05  # ratio of neighbouring points of a scan for machines that may have several maxima
_FINE_RATIO_NESTED = 1.12
_BLOCK = 21  # number of machines treated together
_FLAT = 0.7  # curvature of ln|chi| in ln(beta) below which a maximum is called flat
_LARGEST_RESIDUAL = 1e-9  # largest residual of a saddle point at a beta that is accepted as a maximum
_TINY_BIAS = 1e-150  # smaller biases count as zero: their derivatives cannot be carried along
_TINY_BIAS_OF_TWO = 1e-7  # the same for two symmetric layers of equal size, whose peak it moves by 1e-14
_LARGE_BIAS = 3.0  # hidden bias up to which no rival maximum of spin-bit machines has been found


_FIELDS = ("beta", "value", "curvature", "stability", "rival")


def _find_transition(ensemble: Ensemble) -> dict[str, Any]:
    """The maximum for two symmetric layers without biases, whose layer correlation diverges at the spin-glass
    transition.
    """
    alpha, form = ensemble.alpha, form_of(ensemble)
    result: dict[str, Any] = dict.fromkeys(_FIELDS)
    # [Y25] eqn:spin-glass_transition_point, eqn:beta-max-condition_ising
    result["beta"], status, result["stability"] = form.find_transition(ensemble)
    result["value"] = np.full(alpha.shape, form.transition_value)
    result["curvature"] = np.full(alpha.shape, -np.inf)
    result["rival"] = np.full(alpha.shape, np.nan)
    result["status"] = np.full(alpha.shape, status, dtype=object)
    return result


def _find_maxima(ensemble: Ensemble, ratio: float) -> dict[str, Any]:
    """The first maxima of a block of machines (one-dimensional arrays), by a scan whose neighbouring points
    have the ratio ``ratio``; rivals are searched for only in fine scans.
    """
    shape, form = ensemble.alpha.shape, form_of(ensemble)
    result: dict[str, Any] = {name: np.full(shape, np.nan) for name in _FIELDS}
    status = result["status"] = np.full(shape, "none", dtype=object)
    first = _FIRST if ratio == _RATIO else _FIRST_NESTED if form.is_nested(ensemble) else _FIRST_FINE
    first = ensemble.visible.scan_from(first, ensemble.b)
    first = ensemble.hidden.scan_from(first, ensemble.c)
    if ratio == _RATIO and has_formula(ensemble):
        peak = known_peak(ensemble)
    else:
        peak = first_peak(ensemble, first, form.last_beta, ratio)
    where = np.flatnonzero(np.isfinite(peak.guess))
    if not where.size:
        return result
    machines, peak = ensemble.select(where), Peak(*(array[where] for array in peak))
    log_beta, value, curvature, solution, shift, jump = refine(machines, peak)
    stability = stability_number(solution)  # at three points; the root is `shift` from the middle one
    stability = stability[:, 1] + 0.5 * shift * (stability[:, 2] - stability[:, 0])
    # What the scan found may not be a maximum, or the saddle point may not have converged there.
    true = np.isfinite(value) & (value != 0.0) & (solution.residual[:, 1] <= _LARGEST_RESIDUAL)
    if not true.all():
        where, log_beta, value, stability, curvature, jump = (
            x[true] for x in (where, log_beta, value, stability, curvature, jump)
        )
        machines, peak = machines.select(true), Peak(*(array[true] for array in peak))
    found = {"beta": np.exp(log_beta), "value": value, "stability": stability, "curvature": curvature}
    for name, values in found.items():
        result[name][where] = values
    rival = result["rival"]
    if ratio < _RATIO:
        for i in np.flatnonzero(~jump):
            start = float(np.exp(peak.high[i]))
            stop = max(2.0 * start, form.rival_limit(ensemble))
            rival[where[i]] = higher_maximum(machines.select([i]), start, stop, peak.height[i], ratio)
    status[where] = "maximum"
    status[where[curvature > -_FLAT]] = "flat"
    status[np.isfinite(rival)] = "rival"
    status[result["stability"] < 0.0] = "unstable"
    status[where[jump]] = form.jump_status(ensemble)
    return result


def _without_tiny_biases(ensemble: Ensemble) -> Ensemble:
    """Set biases to zero that are too small to change the result.

    The limit is larger for two symmetric layers: their peak differs from the transition only by the square of
    the bias, and is too narrow for floats.
    """
    sizes = np.abs(ensemble.b), np.abs(ensemble.c)
    limit = np.full(np.shape(ensemble.alpha), _TINY_BIAS)
    if ensemble.visible.symmetric and ensemble.hidden.symmetric:
        pair = _TINY_BIAS_OF_TWO * np.minimum(np.sqrt(ensemble.alpha), 1.0 / np.sqrt(ensemble.alpha))
        limit = np.where((sizes[0] < pair) & (sizes[1] < pair), pair, limit)
    if not ((sizes[0] < limit) | (sizes[1] < limit)).any():
        return ensemble
    b, c = (np.where(np.abs(bias) < limit, 0.0, bias) for bias in (ensemble.b, ensemble.c))
    return replace(ensemble, b=b, c=c)


def find_beta_max(
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> LayerCorrelationMaximum:
    """The maximum of the layer correlation of smallest beta, with its curvature, stability and status; if
    there is no maximum, the status says so and no error is raised.

    Parameters
    ----------
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    LayerCorrelationMaximum
        The maximum, with its curvature, stability and status.
    """
    given = make_ensemble(1.0, alpha, visible=visible, hidden=hidden, b=b, c=c, empty=True)
    shape = np.shape(given.alpha)
    ensemble, scale = given.raveled().standardized()
    ensemble = _without_tiny_biases(ensemble)
    if ensemble.hidden.symmetric and not ensemble.visible.symmetric:
        ensemble = ensemble.exchanged()
    form = form_of(ensemble)
    closed = form.is_closed(ensemble)
    ordinary = np.asarray(ensemble.slope_v & (not ensemble.hidden.symmetric) & (ensemble.c <= _LARGE_BIAS))
    if ensemble.spread_h is not None:
        ordinary[...] = False
    ordinary &= ~closed
    fine = _FINE_RATIO_NESTED if form.is_nested(ensemble) else _FINE_RATIO
    fields: dict[str, Any] = {name: np.empty(ensemble.alpha.shape) for name in _FIELDS}
    fields["status"] = np.empty(ensemble.alpha.shape, dtype=object)

    def fill(which: Any, part: dict[str, Any]) -> None:
        for name, values in part.items():
            fields[name][which] = values

    if closed.any():
        fill(closed, _find_transition(ensemble.select(closed)))
    for group, ratio, size in ((ordinary, _RATIO, _BLOCK), (~ordinary & ~closed, fine, 8)):
        members = np.flatnonzero(group)
        for i in range(0, members.size, size):
            block = members[i : i + size]
            fill(block, _find_maxima(ensemble.select(block), ratio))
    if scale != 1.0:
        _rescale(fields, given)
    for name, values in fields.items():
        fields[name] = values.reshape(shape)
        if not shape:
            fields[name] = values.item()
    arrays = {
        name: getattr(given, name) if shape else float(getattr(given, name)) for name in ("alpha", "b", "c")
    }
    arrays |= {name: spread for name, spread in (("b", given.spread_v), ("c", given.spread_h)) if spread}
    return LayerCorrelationMaximum(visible=given.visible.unit, hidden=given.hidden.unit, **arrays, **fields)


def _rescale(fields: dict[str, Any], given: Ensemble) -> None:
    """Convert results for the standard units of each type to the given units, in place."""
    by_overlap = not (given.visible.symmetric and given.hidden.symmetric)
    for unit, symmetric in ((given.visible, given.symmetric_v), (given.hidden, given.symmetric_h)):
        root = np.sqrt(unit.stretch)
        fields["beta"], fields["rival"] = fields["beta"] / root, fields["rival"] / root
        fields["value"] *= np.where(np.ravel(symmetric) | by_overlap, unit.stretch, root)


def beta_max(
    alpha: Any,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    b: Any = 0.0,
    c: Any = 0.0,
) -> Any:
    """The ``beta`` at which the layers of a random machine are correlated most; a float, or an array
    (arguments broadcast).

    ``alpha`` is the ratio of the layer sizes, hidden to visible; ``b`` and ``c`` are the biases of the
    visible and hidden units. Weights drawn from N(0, beta_max**2/(n + m)) are the paper's
    initialization. Of several maxima the one of smallest beta is taken.

    Where the maximum does not exist a `NoMaximumError` is raised; where it is doubtful a
    `MaximumWarning`, and where the replica-symmetric theory is unstable a `ReplicaSymmetryWarning` is
    given. `find_beta_max` returns the same number with its curvature, stability and status.

    Parameters
    ----------
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    b, c : float, array_like or Biases, default 0.0
        Biases of the visible and the hidden units.

    Returns
    -------
    float or ndarray
        The ``beta`` of the maximum, in the common shape of the arguments.
    """
    result = find_beta_max(alpha, visible=visible, hidden=hidden, b=b, c=c)
    judge(result)
    return result.beta


def weight_std(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | Biases = 0.0,
    hidden_bias: float | Biases = 0.0,
) -> float:
    """The standard deviation of the initial weights, ``beta_max/sqrt(n_visible + n_hidden)``.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units; categorical units count once, whatever the number of their states.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"drelu"``, ``"categorical(q)"``,
        for hidden units also ``"relu"``, or a unit object.
    visible_bias, hidden_bias : float or Biases, default 0.0
        One bias of all units of a layer, or `Biases`, one per unit; for categorical units the number is 0,
        and `Biases.of_frequencies` makes biases of the frequencies of their states.

    Returns
    -------
    float
        Standard deviation of the initial weights.
    """
    n = as_count(n_visible, "n_visible")
    m = as_count(n_hidden, "n_hidden")
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    b = as_layer_bias(visible_bias, units[0], "visible_bias")
    c = as_layer_bias(hidden_bias, units[1], "hidden_bias")
    result = find_beta_max(m / n, visible=units[0], hidden=units[1], b=b, c=c)
    judge(result)
    return float(result.beta / np.sqrt(n + m))
