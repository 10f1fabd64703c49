"""A normal variable of mean ``a`` and variance 1 that is cut off at zero: sums, cumulants and draws.

With ``phi`` and ``Phi`` the normal density and distribution, its weight, ratio and cumulants are

    Z(a) = int_0^inf exp(a y - y**2/2) dy = sqrt(2 pi) exp(a**2/2) Phi(a)
    r = phi(a)/Phi(a)      k1 = a + r      k2 = 1 - r k1      k3 = r (k1**2 - k2)
    k4 = r (3 k1 k2 - k1**3 - k3)

For ``a = -t`` far below zero ``k1`` is a small difference of large numbers; there it comes from the continued
fraction of Mills' ratio (Laplace), ``k1 = 1/(t + K)`` and ``k2 = k1 (K - k1)`` with ``K = 2/(t + 3/(t + 4/(t
+ ...)))``.
"""

from __future__ import annotations

import math

import numpy as np

from paramagnet.unit_base import Array, FloatArray

_LOG_ROOT = 0.5 * math.log(0.5 * math.pi)
_ROOT_HALF, _ROOT_2_PI = math.sqrt(0.5), math.sqrt(2.0 / math.pi)
_FAR, _N_TERMS = 5.0, 40  # where the continued fraction takes over, and its terms: 16 digits
_FAR_SERIES, _SERIES = 30.0, (1.0, 5.0, 37.0, 353.0, 4081.0, 55205.0, 854197.0)
_FAR_DRAW = 30.0  # from where draws come from the exponential limit; Phi is 5e-198 there


def log_half_trace(a: Array) -> FloatArray:
    """``ln Z(a)``."""
    from scipy.special import erfcx, log_ndtr

    a = np.asarray(a, dtype=np.float64)
    below = _LOG_ROOT + np.log(erfcx(-_ROOT_HALF * np.minimum(a, 0.0)))
    above = 0.5 * a * a + log_ndtr(np.maximum(a, 0.0)) + 0.5 * math.log(2.0 * math.pi)
    result: FloatArray = np.where(a < 0.0, below, above)
    return result


def _ratio(a: FloatArray) -> FloatArray:
    """``phi(a)/Phi(a)``."""
    from scipy.special import erfcx

    with np.errstate(over="ignore"):  # infinite beyond a = 37, where the ratio is zero
        result: FloatArray = _ROOT_2_PI / erfcx(-_ROOT_HALF * a)
    return result


def half_moments(a: Array) -> tuple[FloatArray, FloatArray]:
    """``k1`` and ``k2``."""
    a = np.asarray(a, dtype=np.float64)
    r = _ratio(a)
    k1 = np.asarray(a + r)
    k2 = np.asarray(1.0 - r * k1)
    far = a < -_FAR
    if np.any(far):
        t = -a[far]
        fraction = np.zeros_like(t)
        for n in range(_N_TERMS, 1, -1):
            fraction = n / (t + fraction)
        k1[far] = 1.0 / (t + fraction)
        k2[far] = k1[far] * (fraction - k1[far])
    return k1, k2


def half_second_moment(a: Array) -> FloatArray:
    """``E[y**2]``."""
    k1, k2 = half_moments(a)
    result: FloatArray = k2 + k1 * k1
    return result


def half_cumulants(a: Array) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """``k1`` to ``k4``, the last two to ten digits.

    Far below zero these come from the derivatives of ``ln Z(-t) = -ln t - 1/t**2 + 5/(2 t**4) - 37/(3 t**6)
    + ...``, an asymptotic series.
    """
    a = np.asarray(a, dtype=np.float64)
    k1, k2 = half_moments(a)
    r = _ratio(a)
    k3 = np.asarray(r * (k1 * k1 - k2))
    k4 = np.asarray(r * (3.0 * k1 * k2 - k1**3 - k3))
    far = a < -_FAR_SERIES
    if np.any(far):
        t = -a[far]
        third, fourth = np.full_like(t, 2.0), np.full_like(t, 6.0)
        for n, coefficient in enumerate(_SERIES, start=1):
            term = (-1.0) ** n * coefficient / n * (2 * n) * (2 * n + 1) * (2 * n + 2) * t ** (-2 * n)
            third, fourth = third + term, fourth + (2 * n + 3) * term
        k3[far], k4[far] = third / t**3, fourth / t**4
    return k1, k2, k3, k4


def draw_half(a: Array, u: FloatArray) -> FloatArray:
    """The value that is exceeded with probability ``u``, in (0, 1]: ``a - Phi^-1(u Phi(a))``.

    Far below zero, where that is a small difference of large numbers, ``t y + y**2/2 = E`` is solved with ``E
    = -ln u`` less the change of the logarithm of Mills' ratio, in three rounds.
    """
    from scipy.special import erfcx, log_ndtr, ndtri_exp

    a = np.asarray(a, dtype=np.float64)
    near = np.maximum(a, -_FAR_DRAW)
    y = np.asarray(near - ndtri_exp(log_ndtr(near) + np.log(u)))
    far = a < -_FAR_DRAW
    if np.any(far):
        t, exponent = -a[far], -np.log(u[far])
        rest = exponent
        for _ in range(3):
            step = 2.0 * rest / (t + np.sqrt(t * t + 2.0 * rest))
            rest = exponent + np.log(erfcx(_ROOT_HALF * (t + step)) / erfcx(_ROOT_HALF * t))
        y[far] = step
    result: FloatArray = np.maximum(y, 0.0)
    return result
