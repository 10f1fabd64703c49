"""One trip around both layers: what the saddle-point equations ask to be left unchanged."""

from __future__ import annotations

import numpy as np

from paramagnet.theory.ensemble import Ensemble
from paramagnet.theory.layers.binary import Layer
from paramagnet.units import Array, FloatArray

TOLERANCE = 1e-13  # what the relative violation of the equations stays below
NOTHING = 1e-290  # order parameters below this are zero: floats end at 1e-308
Matrix = tuple[tuple[Array, Array], tuple[Array, Array]]


def around(
    ensemble: Ensemble, q: Array, self_overlap: Array, variance: Array | None = None
) -> tuple[Layer, Layer]:
    """From the visible layer's order parameters to the hidden layer and back to the visible one.

    ``variance`` is ``Q - q``, for a caller who knows it to more digits than the difference has: couplings may
    be so large that these digits count. The hidden layer's variance, far below the square of the mean in
    Gaussian units of a large bias, is then passed on by itself too.
    """
    # [Y25] eqn:saddle_Q-hat, with self-overlaps
    coupling_v, coupling_h = ensemble.coupling_v, ensemble.coupling_h
    gap = None if variance is None else coupling_h * variance
    hidden = ensemble.hidden_layer(coupling_h * q, coupling_h * self_overlap, gap)
    gap = None if variance is None else coupling_v * hidden.variance
    visible = ensemble.visible_layer(coupling_v * hidden.overlap, coupling_v * hidden.self_overlap, gap)
    return visible, hidden


def mismatch(visible: Layer, q: Array, self_overlap: Array) -> FloatArray:
    """By how much, relatively, a layer's order parameters differ from those they were computed from."""
    of_q = np.abs(visible.overlap - q) / np.where(q > NOTHING, q, 1.0)
    of_self = np.abs(visible.self_overlap - self_overlap)
    of_self = of_self / np.where(self_overlap > NOTHING, self_overlap, 1.0)
    largest: FloatArray = np.maximum(of_q, of_self)
    return largest


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two 2 x 2 matrices of arrays."""
    (a, b), (c, d) = left
    (e, f), (g, h) = right
    return (a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h)
