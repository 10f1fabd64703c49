"""beta_max of spin-bit machines without visible biases as an explicit formula, and its limits.

The paper asks for a closed expression for bit hidden units; none is known. This file has a double Chebyshev
sum instead, whose error is certified to stay below 1e-6 for ``0.05 <= alpha <= 20`` and ``-10 <= c <= 2``
(``benchmarks/fit_formula.py`` makes it and certifies it). With ``x = ln alpha``,

    u = U(x; 1, 4.7, ln 0.05, ln 20),     v = U(c; 0.3 - x/2, 1.5, -10, 2),
    beta_max = sum_ij a_ij T_i(u) T_j(v),     T_i(cos t) = cos(i t),

where ``U(t; m, s, t0, t1)`` is ``asinh((t - m)/s)`` mapped linearly so that ``t0`` goes to -1 and ``t1`` to
1: it stretches the neighbourhood of ``m``, where beta_max bends most. The bend lies at a constant value of
``c + ln(alpha)/2``, as the law for ``c -> -inf`` requires.

Outside that rectangle there are limits:

- ``alpha -> 0``: ``B = beta**2`` solves ``sigmoid(c + B/2) = (2/3)(1 + 1/B)``;
- ``alpha -> inf``: ``beta -> 1.105197906783.../sigmoid(c)``;
- ``c -> -inf``: ``beta**2 ~ 2 (1 + alpha) W(exp(-c - 1/2)/(2 sqrt(alpha)))``, with Lambert's ``W``,
  from below.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.polynomial.polynomial import polyval

from paramagnet._checks import as_positive, as_reals
from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.status import ReplicaSymmetryWarning
from paramagnet.units import BIT, SPIN, FloatArray

ALPHA_RANGE = (0.05, 20.0)
BIAS_RANGE = (-10.0, 2.0)
CERTIFIED = 1e-6
_LOG_ALPHA_RANGE = (float(np.log(ALPHA_RANGE[0])), float(np.log(ALPHA_RANGE[1])))
_ALPHA_CENTRE, _ALPHA_WIDTH = 1.0, 4.7
_BIAS_CENTRE, _BIAS_TILT, _BIAS_WIDTH = 0.3, -0.5, 1.5
# The bias below which replica symmetry is broken at beta_max, as a cubic in ln(alpha) with an error of 0.002.
_BROKEN_BELOW = (-12.7966, 3.7266, -0.7395, 0.0593)
_CHUNK = 1024  # values evaluated at a time, so that the polynomials stay in the cache


def _stretch(t: Any, centre: Any, width: float, ends: tuple[float, float]) -> Any:
    first, last = (np.arcsinh((end - centre) / width) for end in ends)
    return 2.0 * (np.arcsinh((t - centre) / width) - first) / (last - first) - 1.0


def _unstretch(u: Any, centre: Any, width: float, ends: tuple[float, float]) -> Any:
    first, last = (np.arcsinh((end - centre) / width) for end in ends)
    return centre + width * np.sinh(first + 0.5 * (u + 1.0) * (last - first))


def unmap_alpha(u: FloatArray) -> Any:
    """``ln alpha`` at ``u``."""
    return _unstretch(u, _ALPHA_CENTRE, _ALPHA_WIDTH, _LOG_ALPHA_RANGE)


def unmap_bias(v: FloatArray, log_alpha: Any) -> Any:
    """The bias at ``v``."""
    return _unstretch(v, _BIAS_CENTRE + _BIAS_TILT * log_alpha, _BIAS_WIDTH, BIAS_RANGE)


@cache
def load_table() -> FloatArray:
    """The coefficients ``a_ij`` as a rectangular array, with zeros where the table has none."""
    from paramagnet.theory.formula_table import NANO

    table = np.zeros((len(NANO), max(map(len, NANO))))
    for i, row in enumerate(NANO):
        table[i, : len(row)] = row
    return 1e-9 * table


def covers(alpha: Any, c: Any) -> Any:
    """Whether ``alpha`` and ``c`` lie in the rectangle in which the formula holds, elementwise."""
    return (alpha >= ALPHA_RANGE[0]) & (alpha <= ALPHA_RANGE[1]) & (c >= BIAS_RANGE[0]) & (c <= BIAS_RANGE[1])


def has_formula(ensemble: Ensemble) -> bool:
    """Whether the formula, which is fitted to one pair of unit types, holds for all of these machines."""
    fitted = (ensemble.visible.unit, ensemble.hidden.unit) == (SPIN, BIT)
    return fitted and bool(covers(ensemble.alpha, ensemble.c).all())


def evaluate_formula(alpha: FloatArray, c: FloatArray) -> FloatArray:
    """The double Chebyshev sum at arrays of one dimension within its rectangle."""
    table = load_table()
    log_alpha = np.log(alpha)
    u = _stretch(log_alpha, _ALPHA_CENTRE, _ALPHA_WIDTH, _LOG_ALPHA_RANGE)
    v = _stretch(c, _BIAS_CENTRE + _BIAS_TILT * log_alpha, _BIAS_WIDTH, BIAS_RANGE)
    beta = np.empty(alpha.size)
    for i in range(0, alpha.size, _CHUNK):
        part = slice(i, i + _CHUNK)
        rows = table @ chebvander(v[part], table.shape[1] - 1).T
        beta[part] = (chebvander(u[part], table.shape[0] - 1).T * rows).sum(axis=0)
    return beta


def beta_max_formula(alpha: Any, c: Any = 0.0) -> Any:
    """beta_max of spin-bit machines without visible biases, by the explicit formula, within 1e-6 of the
    exact value.

    Arguments broadcast; ``0.05 <= alpha <= 20`` and ``-10 <= c <= 2``. Where replica symmetry is broken at
    beta_max (sparse hidden layers that are much larger than the visible one) a `ReplicaSymmetryWarning` is
    given. Many values take well below a microsecond each; `beta_max` is exact and covers all arguments.

    Parameters
    ----------
    alpha : float or array_like
        Ratio of the layer sizes, hidden to visible, from 0.05 to 20.
    c : float or array_like, default 0.0
        Bias of all hidden units, from -10 to 2.

    Returns
    -------
    float or ndarray
        The ``beta`` of the maximum, in the common shape of the arguments.
    """
    ratio, bias = as_positive(alpha, "alpha"), as_reals(c, "c")
    for values, name, (low, high) in ((ratio, "alpha", ALPHA_RANGE), (bias, "c", BIAS_RANGE)):
        outside = (values < low) | (values > high)
        if outside.any():
            raise ValueError(
                f"`{name}` must lie between {low:g} and {high:g} for the formula, got "
                f"{values[outside].flat[0]:g}. `beta_max` has no such bounds."
            )
    try:
        ratio, bias = np.broadcast_arrays(ratio, bias)
    except ValueError:
        raise ValueError(
            f"`alpha` and `c` must broadcast to one shape, got {ratio.shape} and {bias.shape}."
        ) from None
    broken = bias < polyval(np.log(ratio), _BROKEN_BELOW)
    if broken.any():
        warnings.warn(
            "Replica symmetry is broken at beta_max for spin-bit machines with "
            f"`alpha` = {ratio[broken].flat[0]:g}, `c` = {bias[broken].flat[0]:g}: not to be trusted there.",
            ReplicaSymmetryWarning,
            stacklevel=2,
        )
    beta = evaluate_formula(ratio.ravel(), bias.ravel()).reshape(ratio.shape)
    return beta if beta.ndim else float(beta)
