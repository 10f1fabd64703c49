"""One layer as the chains need it: fields by products or by changed rows, draws, means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paramagnet.kernels.changed_rows import add_changed_rows, make_panels
from paramagnet.kernels.lookup import make_room, multiply_states
from paramagnet.kernels.normal import draw_normal
from paramagnet.kernels.sampling import draw, draw_and_list
from paramagnet.rbm import RBM
from paramagnet.units import FloatArray, GaussianUnit, Unit, as_binary

Float32Array = npt.NDArray[np.float32]

Room = tuple[npt.NDArray[np.uint16], Float32Array]  # to look products up

Changes = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]  # lists of units, and where they begin and end

DENSE_ABOVE = 0.35  # share of changed units from which a matrix product is faster,

LOOK_UP_ABOVE = 0.25  # and from which looking the product up is

FEWEST_CHAINS, SMALLEST_PRODUCT = 40, 1e6  # chains, chains times weights: below, a matrix product is faster

HIDDEN, VISIBLE = 0, 1  # streams of random numbers

LARGEST_DRAWN = 1e30  # parameter: sums over many units stay below 3e38, the largest float32


@dataclass(frozen=True, eq=False)
class SampledLayer:
    """One layer as the kernels want it, in float32: the rows of ``weights`` belong to its own units.

    Its log-odds are ``scale`` times the field from the other layer, plus ``shift``. For Gaussian units this
    is their mean, and ``deviation``, zero for others, their standard deviation.
    """

    weights: Float32Array
    shift: Float32Array
    scale: float
    levels: tuple[float, float]
    deviation: float = 0.0

    @cached_property
    def panels(self) -> Float32Array:
        """The weights in the order in which changed rows are added; made when first asked for."""
        return make_panels(self.weights)

    def draw(
        self,
        fields: Float32Array,
        address: tuple[int, int, int, int],
        old: Float32Array,
        new: Float32Array,
        changes: Changes | None,
    ) -> int:
        """Draw the states ``new`` in their fields; return how many differ from ``old``, and list them."""
        if changes is None or self.deviation:
            return self.draw_at(1.0, self.shift, fields, address, old, new)
        return draw_and_list(fields, self.scale, self.shift, self.levels, address, old, new, *changes)

    def draw_at(
        self,
        t: float,
        shift: Float32Array,
        fields: Float32Array,
        address: tuple[int, int, int, int],
        old: Float32Array,
        new: Float32Array,
    ) -> int:
        """The same in ``t`` times the fields, with another shift."""
        if self.deviation:
            return draw_normal(fields, t * self.scale, shift, self.deviation, address, new)
        return draw(fields, t * self.scale, shift, self.levels, address, old, new)

    def mean(self, fields: Float32Array) -> Float32Array:
        """The mean of every unit in its field."""
        means: Float32Array = np.float32(self.scale) * fields + self.shift
        if self.deviation:
            return means
        low, high = self.levels
        np.tanh(np.float32(0.5) * means, out=means)
        means *= np.float32(0.5 * (high - low))
        means += np.float32(0.5 * (high + low))
        return means

    def multiply(self, states: Float32Array, fields: Float32Array, room: Room | None = None) -> None:
        """The fields of the other layer: looked up where there is room for that, else a matrix product."""
        if room is None:
            np.matmul(states, self.weights, out=fields)
        else:
            multiply_states(states, self.weights, self.levels, *room, fields)

    def room_for_products(self, n_chains: int) -> Room | None:
        """What `multiply` wants with so many chains; None where a matrix product is faster, or has to do."""
        small = n_chains < FEWEST_CHAINS or n_chains * self.weights.size < SMALLEST_PRODUCT
        if self.deviation or small:
            return None
        return make_room(n_chains, len(self.weights))

    def follow(self, changes: Changes, fields: Float32Array) -> None:
        """The fields of the other layer after the changes, from those before."""
        add_changed_rows(*changes, self.levels[1] - self.levels[0], self.panels, fields)


def make_layers(
    weights: FloatArray,
    visible_bias: FloatArray,
    hidden_bias: FloatArray,
    visible: Unit,
    hidden: Unit,
) -> tuple[SampledLayer, SampledLayer]:
    """The visible and the hidden layer of a machine, in float32."""
    check_range(weights, visible_bias, hidden_bias)
    rows = weights.astype(np.float32)
    return _layer(rows, visible_bias, visible), _layer(np.ascontiguousarray(rows.T), hidden_bias, hidden)


def check_range(*parameters: FloatArray) -> None:
    """An error if float32 is too narrow for these parameters."""
    largest = float(max(np.abs(array).max() for array in parameters))
    if not largest < LARGEST_DRAWN:
        raise ValueError(
            f"`rbm` must have parameters below {LARGEST_DRAWN:g} to be sampled in float32, got {largest:g}. "
            "Scale them down."
        )


def layers_of(rbm: RBM) -> tuple[SampledLayer, SampledLayer]:
    """The layers of ``rbm``."""
    return make_layers(rbm.weights, rbm.visible_bias, rbm.hidden_bias, rbm.visible, rbm.hidden)


def _layer(weights: Float32Array, bias: FloatArray, unit: Unit) -> SampledLayer:
    if isinstance(unit, GaussianUnit):
        scale = unit.variance
        return SampledLayer(
            weights, (scale * bias).astype(np.float32), scale, (np.nan, np.nan), float(np.sqrt(scale))
        )
    binary = as_binary(unit, "rbm")
    scale = binary.high - binary.low
    return SampledLayer(weights, (scale * bias).astype(np.float32), scale, binary.levels)
