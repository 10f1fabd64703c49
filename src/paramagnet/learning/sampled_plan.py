"""The views of the buffers that the parts of a compiled update work on (`SampledUpdate`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet.sampling.layer import Float32Array
from paramagnet.units import FloatArray


class Rows(NamedTuple):
    """The rows of one buffer that belong to some points of the batch, and to some chains."""

    batch: npt.NDArray[Any]
    chains: npt.NDArray[Any]


class Part(NamedTuple):
    """What one thread works on: some points of the batch and some chains, as views of the buffers."""

    points: slice
    chains: slice
    ranges: tuple[int, int, int, int]  # of the rows of both
    states: Rows
    codes: Rows
    fields: Rows
    means: Rows
    factors: Rows
    none_v: Float32Array
    none_h: Float32Array
    drawn_h: Float32Array
    codes_h: npt.NDArray[np.uint16]
    fields_v: Float32Array


class Slice(NamedTuple):
    """Some visible units, whose gradient one thread makes at a time."""

    units: tuple[int, int]
    codes: npt.NDArray[np.uint16]
    norms: FloatArray
    across: FloatArray  # sums over these units, for the hidden biases of centred learning


@dataclass(frozen=True, eq=False)
class Plan:
    """The views of the buffers for batches of one size; the last batch of an epoch may be smaller."""

    states: Float32Array
    means: Float32Array
    factors: Float32Array
    chains: Float32Array
    parts: list[Part]
    codes_across: npt.NDArray[np.uint16]
    slices: list[Slice]
    norms: FloatArray
    across: FloatArray
    scale: float  # of the gradient
