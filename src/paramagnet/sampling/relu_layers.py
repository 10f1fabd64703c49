"""Layers of ReLU and of dReLU units as the chains need them, drawn by kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paramagnet.kernels.half_lines import draw_drelu, draw_relu, tables, weigh_drelu, weigh_relu
from paramagnet.sampling.layer import Address, Float32Array, UnitLayer
from paramagnet.units import DReLUUnit, FloatArray, ReLUUnit


@dataclass(frozen=True, eq=False)
class ReLULayer(UnitLayer):
    """A layer of ReLU units: ``shift`` are the biases, ``scale`` is 1."""

    unit: ReLUUnit

    lists_changes: ClassVar[bool] = False

    def draw_at(
        self,
        t: float,
        shift: Float32Array,
        fields: Float32Array,
        address: Address,
        old: Float32Array,
        new: Float32Array,
    ) -> int:
        """Draw the states ``new`` in ``t`` times their fields, with another shift; all count as changed."""
        draw_relu(fields, float(t), shift, address, new, tables())
        return new.size

    def draw_and_weigh(
        self,
        now: float,
        then: float,
        shifts: FloatArray,
        fields: Float32Array,
        address: Address,
        states: Float32Array,
        log_weights: FloatArray,
    ) -> None:
        """Add the rise of `Unit.log_trace`, summed over the units; and draw the states at ``then``."""
        weigh_relu(fields, (float(now), float(then)), shifts, address, states, log_weights, tables())


@dataclass(frozen=True, eq=False)
class DReLULayer(UnitLayer):
    """A layer of dReLU units; ``halves`` are their learned numbers as the kernels want them."""

    unit: DReLUUnit
    halves: FloatArray

    lists_changes: ClassVar[bool] = False

    def draw_at(
        self,
        t: float,
        shift: Float32Array,
        fields: Float32Array,
        address: Address,
        old: Float32Array,
        new: Float32Array,
    ) -> int:
        """Draw the states ``new`` in ``t`` times their fields, with another shift; all count as changed."""
        draw_drelu(fields, float(t), shift, self.halves, address, new, tables())
        return new.size

    def draw_and_weigh(
        self,
        now: float,
        then: float,
        shifts: FloatArray,
        fields: Float32Array,
        address: Address,
        states: Float32Array,
        log_weights: FloatArray,
    ) -> None:
        """Add the rise of `Unit.log_trace`, summed over the units; and draw the states at ``then``."""
        scales = float(now), float(then)
        weigh_drelu(fields, scales, shifts, self.halves, address, states, log_weights, tables())


def make_drelu_layer(unit: DReLUUnit, weights: Float32Array, bias: FloatArray) -> DReLULayer:
    """A layer of dReLU units with the rows ``weights``."""
    deviations = np.sqrt(np.stack(np.broadcast_arrays(*unit.variances, bias)[:2]))
    asymmetry = np.broadcast_to(unit.numbers["theta_asymmetry"], bias.shape)
    halves = np.stack((asymmetry, *deviations, *np.log(deviations)))
    return DReLULayer(weights, bias.astype(np.float32), 1.0, (np.nan, np.nan), unit, halves)
