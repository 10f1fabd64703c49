from __future__ import annotations

import mpmath
import numpy as np
import pytest

from paramagnet.kernels.hyperbolic import tanh


def test_tanh_has_sixteen_digits() -> None:
    x = np.concatenate(
        (np.linspace(-25.0, 25.0, 4001), np.logspace(-17, 1.4, 1000), -np.logspace(-17, 1.4, 1000))
    )
    y = x.copy()
    tanh(y)
    exact = np.array([float(mpmath.tanh(mpmath.mpf(float(t)))) for t in x])
    assert np.abs(y - exact).max() < 4e-16


def test_tanh_at_the_ends() -> None:
    y = np.array([0.0, -0.0, 20.0, -20.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
    tanh(y)
    np.testing.assert_array_equal(y, [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, np.nan])
    assert np.signbit(y[1])


@pytest.mark.parametrize("size", [0, 1, 3, 7, 16, 33])
def test_tanh_of_any_number_of_numbers(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    y = x.copy()
    tanh(y)
    np.testing.assert_allclose(y, np.tanh(x), rtol=0.0, atol=4e-16)
