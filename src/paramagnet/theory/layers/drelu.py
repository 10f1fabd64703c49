"""Layers of dReLU units as training starts with them: Gaussian units of variance 1.

A dReLU unit learns two numbers, the asymmetries of theta and gamma (``relu_units.py``), and both are zero at
the start, where ``p0(x) = exp(-x**2/2)``. The theory is about the scale of the first weights, so it needs no
other values of these numbers. The measure is not normalized: the trace is ``sqrt(2 pi)`` times that of a
Gaussian unit, which changes the free energy and nothing else.
"""

from __future__ import annotations

import math

import numpy as np

from paramagnet.theory.layers.gaussian import GaussianLayer, GaussianTheory
from paramagnet.units import GAUSSIAN, Array, DReLUUnit, FloatArray, Unit

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


class StartingLayer(GaussianLayer):
    """Averages of a layer of dReLU units whose learned numbers are zero."""

    @property
    def log_trace(self) -> FloatArray:
        """The logarithm of the trace of Gaussian units, plus ``ln(2 pi)/2``."""
        return super().log_trace + _LOG_ROOT


class DReLUTheory(GaussianTheory):
    """The theory of dReLU units whose learned numbers are zero."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(GAUSSIAN)
        self.unit = unit  # the name in results and messages

    @classmethod
    def of(cls, unit: Unit, argument: str) -> DReLUTheory:
        """The theory of dReLU units; raises ValueError if their numbers are not those of the start."""
        assert isinstance(unit, DReLUUnit)
        if any(np.any(values) for values in unit.numbers.values()):
            raise ValueError(
                f"`{argument}` must be dReLU units as training starts with them, `pm.drelu()`, for the "
                "theory; got some whose learned numbers are not zero."
            )
        return cls(unit)

    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> StartingLayer:
        """A layer of such units, in closed form; ``coarseness`` has no effect."""
        return StartingLayer(GAUSSIAN, bias, qhat, selfhat, gap)

    def standard(self) -> DReLUTheory:
        """These units themselves; their variance is 1."""
        return self
