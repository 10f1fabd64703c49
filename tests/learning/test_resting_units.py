"""Units that have one value in all data and all chains have no gradient, and Adam does not move them."""

from __future__ import annotations

import numpy as np
import pytest

import paramagnet as pm


@pytest.mark.parametrize("gradient", [pm.PCD(300, 1, 1), pm.PCD(100, 1, 1), pm.PCD(37, 9, 1), pm.CD(1)])
def test_units_that_never_change_do_not_move(gradient):
    """With factors 1/B and 1/C the rounding of these was a slope, and Adam made whole steps of it."""
    rng = np.random.default_rng(0)
    rbm = pm.RBM(np.zeros((4, 3)), [30.0, 0.0, 0.0, -30.0], [40.0, 0.0, -40.0], "spin", "spin")
    data = np.where(rng.random((100, 4)) < 0.5, -1.0, 1.0)
    data[:, 0], data[:, 3] = 1.0, -1.0
    found = pm.train(
        rbm, data, epochs=5, batch_size=30, gradient=gradient, optimizer=pm.Adam(0.01), evaluate=[], rng=1
    ).rbm
    np.testing.assert_array_equal(found.visible_bias[[0, 3]], [30.0, -30.0])
    np.testing.assert_array_equal(found.hidden_bias[[0, 2]], [40.0, -40.0])
    np.testing.assert_array_equal(found.weights[[0, 0, 3, 3], [0, 2, 0, 2]], 0.0)
    assert np.all(found.visible_bias[1:3] != 0.0)
