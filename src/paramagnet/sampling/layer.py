"""One layer as the chains need it: fields by products or by changed rows, draws, means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import run_blocks
from paramagnet.kernels.categorical import add_products, add_rise, draw_states, gather_rows
from paramagnet.kernels.changed_rows import add_changed_rows, make_panels
from paramagnet.kernels.int16_tables import SumTables, make_tables
from paramagnet.kernels.lookup import make_room, multiply_states
from paramagnet.kernels.normal import draw_normal
from paramagnet.kernels.sampling import draw, draw_and_list, draw_and_weigh, fill_uniform
from paramagnet.rbm import RBM
from paramagnet.units import (
    BinaryUnit,
    CategoricalUnit,
    DReLUUnit,
    FloatArray,
    GaussianUnit,
    ReLUUnit,
    Unit,
)

Float32Array = npt.NDArray[np.float32]

Room = tuple[npt.NDArray[np.uint16], Float32Array]  # to look products up

Address = tuple[int, int, int, int]  # of random numbers: seed, first chain, sweep, stream

Changes = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]  # lists of units, and where they begin and end

DENSE_ABOVE = 0.35  # share of changed units from which a matrix product is faster,

LOOK_UP_ABOVE = 0.25  # and from which looking the product up is

FEWEST_CHAINS, SMALLEST_PRODUCT = 40, 1e6  # chains, chains times weights: below, a matrix product is faster

HIDDEN, VISIBLE = 0, 1  # streams of random numbers

WORTH_THREADS = 1e7  # numbers that are added: below, starting threads takes longer

LARGEST_DRAWN = 1e30  # parameter: sums over many units stay below 3e38, the largest float32


@dataclass(frozen=True, eq=False)
class SampledLayer:
    """A layer of units with two values as the kernels want it, in float32: the rows of ``weights`` belong to
    its own units.

    Its log-odds are ``scale`` times the field from the other layer, plus ``shift``. Layers of other units are
    subclasses, with a ``scale`` and a ``shift`` in their own sense; they do not list changes.
    """

    weights: Float32Array
    shift: Float32Array
    scale: float
    levels: tuple[float, float]

    lists_changes: ClassVar[bool] = True

    @property
    def n_units(self) -> int:
        """The number of units; ``shift`` has a number for every column of their fields."""
        return self.shift.size

    @cached_property
    def panels(self) -> Float32Array:
        """The weights in the order in which changed rows are added; made when first asked for."""
        return make_panels(self.weights)

    @cached_property
    def tables(self) -> SumTables:
        """Tables of int16 sums for this layer in the fields of the other; made when first asked for."""
        return make_tables(self.weights)

    @cached_property
    def fine_tables(self) -> SumTables:
        """The tables with the remainders of the sums, for fields to the precision of float32."""
        return make_tables(self.weights, with_rest=True)

    def draw(
        self,
        fields: Float32Array,
        address: Address,
        old: Float32Array,
        new: Float32Array,
        changes: Changes | None,
    ) -> int:
        """Draw the states ``new`` in their fields; return how many differ from ``old``, and list them."""
        if changes is None or not self.lists_changes:
            return self.draw_at(1.0, self.shift, fields, address, old, new)
        return draw_and_list(fields, self.scale, self.shift, self.levels, address, old, new, *changes)

    def draw_at(
        self,
        t: float,
        shift: Float32Array,
        fields: Float32Array,
        address: Address,
        old: Float32Array,
        new: Float32Array,
    ) -> int:
        """The same in ``t`` times the fields, with another shift; no changes are listed."""
        return draw(fields, t * self.scale, shift, self.levels, address, old, new)

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
        """Add the rise of the logarithm of the sum over all states, from ``now`` to ``then`` times the fields
        and from the first to the second row of ``shifts``; and draw the states at ``then``.
        """
        scales = now * self.scale, then * self.scale
        draw_and_weigh(fields, scales, shifts, self.levels, address, states, log_weights)

    def mean(self, fields: Float32Array) -> Float32Array:
        """The mean of every unit in its field."""
        means: Float32Array = np.float32(self.scale) * fields + self.shift
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
        if small or not self.lists_changes:
            return None
        return make_room(n_chains, len(self.weights))

    def linear(self, states: Float32Array, bias: Float32Array) -> FloatArray:
        """``sum_i x_i b_i`` of every chain."""
        return (states @ bias).astype(np.float64)

    def wide_linear(self, states: Float32Array, bias: FloatArray) -> FloatArray:
        """``sum_i x_i b_i`` of every chain, with products and sums in float64."""
        products: FloatArray = np.einsum("ij,j->i", states, bias, dtype=np.float64)
        return products

    def energy(self, states: Float32Array, fields: Float32Array, bias: FloatArray) -> FloatArray:
        """``sum_i x_i (field_i + b_i)`` of every chain, in float64."""
        products: FloatArray = np.einsum("ij,ij->i", states, fields, dtype=np.float64) + states @ bias
        return products

    def average_products(
        self,
        states: Float32Array,
        means: Float32Array,
        out: FloatArray,
        n_threads: int | None,
        kept: float = 0.0,
    ) -> None:
        """The average of ``x_i y_j`` over the chains, where ``means`` are the ``y``, plus ``kept`` times what
        ``out`` held.
        """
        averages = (states.T @ means).astype(np.float64) / len(states)
        out[...] = averages if kept == 0.0 else averages + kept * out

    def follow(self, changes: Changes, fields: Float32Array) -> None:
        """The fields of the other layer after the changes, from those before."""
        add_changed_rows(*changes, self.levels[1] - self.levels[0], self.panels, fields)


@dataclass(frozen=True, eq=False)
class NormalLayer(SampledLayer):
    """A layer of Gaussian units: their means are ``scale`` times the field, plus ``shift``, and ``deviation``
    is their standard deviation.
    """

    deviation: float

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
        """Draw the states ``new`` in ``t`` times their fields, with another shift."""
        return draw_normal(fields, t * self.scale, shift, self.deviation, address, new)

    def mean(self, fields: Float32Array) -> Float32Array:
        """The mean of every unit in its field."""
        means: Float32Array = np.float32(self.scale) * fields + self.shift
        return means


@dataclass(frozen=True, eq=False)
class UnitLayer(SampledLayer):
    """A layer of any units, drawn by `Unit.draw`: ``shift`` are the biases, ``scale`` is 1.

    Random numbers come from a Philox generator of their own for every block of chains, sweep and stream.
    """

    unit: Unit

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
        new[:] = self.unit.draw(t * fields.astype(np.float64) + shift, _generator(address))
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
        wide = fields.astype(np.float64)
        after = then * wide + shifts[1]
        log_weights += self.unit.sum_log_trace(after) - self.unit.sum_log_trace(now * wide + shifts[0])
        states[:] = self.unit.draw(after, _generator(address))

    def mean(self, fields: Float32Array) -> Float32Array:
        """The mean of every unit in its field."""
        return self.unit.mean(fields.astype(np.float64) + self.shift).astype(np.float32)


@dataclass(frozen=True, eq=False)
class CategoricalLayer(SampledLayer):
    """A layer of categorical units: states pick rows of the weights; ``shift`` are the biases, ``scale`` is
    1.
    """

    unit: CategoricalUnit

    lists_changes: ClassVar[bool] = False

    @property
    def n_units(self) -> int:
        """The number of units, each with as many numbers of ``shift`` as it has states."""
        return self.shift.size // self.unit.q

    def draw_at(
        self,
        t: float,
        shift: Float32Array,
        fields: Float32Array,
        address: Address,
        old: Float32Array,
        new: Float32Array,
    ) -> int:
        """Draw the states ``new`` in ``t`` times their fields, with another shift."""
        uniform = np.empty(new.shape, np.float32)
        fill_uniform(uniform, *address)
        return draw_states(fields, float(t), shift, self.unit.q, uniform, old, new)

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
        """Add the rise of the logarithm of the sum over all states; and draw the states at ``then``."""
        add_rise(fields, (float(now), float(then)), shifts, self.unit.q, log_weights)
        self.draw_at(then, shifts[1].astype(np.float32), fields, address, states.copy(), states)

    def mean(self, fields: Float32Array) -> Float32Array:
        """The probability of every state of every unit."""
        return self.unit.mean(fields.astype(np.float64) + self.shift).astype(np.float32)

    def multiply(self, states: Float32Array, fields: Float32Array, room: Room | None = None) -> None:
        """The fields of the other layer: the sum of the rows that the states pick."""
        gather_rows(states, self.unit.q, self.weights, fields)

    def linear(self, states: Float32Array, bias: Float32Array) -> FloatArray:
        """The sum of the biases that the states pick."""
        return self.unit.multiply(states, bias.astype(np.float64))

    def wide_linear(self, states: Float32Array, bias: FloatArray) -> FloatArray:
        """The sum of the biases that the states pick."""
        return self.unit.multiply(states, bias)

    def energy(self, states: Float32Array, fields: Float32Array, bias: FloatArray) -> FloatArray:
        """The sum of the fields and biases that the states pick."""
        return self.unit.pair(states, fields.astype(np.float64) + bias)

    def average_products(
        self,
        states: Float32Array,
        means: Float32Array,
        out: FloatArray,
        n_threads: int | None,
        kept: float = 0.0,
    ) -> None:
        """The sum of the ``means`` of the chains in each state over the number of all chains; threads share
        the units.
        """
        scales = 1.0 / len(states), float(kept)

        def run(block: int, units: slice) -> None:
            add_products(states, (units.start, units.stop), self.unit.q, means, scales, out)

        large = means.size * states.shape[1] >= WORTH_THREADS
        run_blocks(run, states.shape[1], n_threads if large else 1)


def _generator(address: Address) -> np.random.Generator:
    """Random numbers that depend on seed, first chain, sweep and stream alone."""
    seed, first, sweep, stream = address
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, first, sweep, stream]))


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
    of_visible = make_layer(visible, rows, visible_bias)
    return of_visible, make_layer(hidden, np.ascontiguousarray(rows.T), hidden_bias)


def check_range(*parameters: FloatArray) -> None:
    """An error if float32 is too narrow for these parameters."""
    largest = float(max(max(array.max(), -array.min()) for array in parameters))  # no array of sizes
    if not largest < LARGEST_DRAWN:
        raise ValueError(
            f"`rbm` must have parameters below {LARGEST_DRAWN:g} to be sampled in float32, got {largest:g}. "
            "Scale them down."
        )


def layers_of(rbm: RBM) -> tuple[SampledLayer, SampledLayer]:
    """The layers of ``rbm``."""
    return make_layers(rbm.weights, rbm.visible_bias, rbm.hidden_bias, *rbm.units)


@singledispatch
def make_layer(unit: Unit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    """A layer of such units, with the rows ``weights``, as chains need it.

    A type with something faster registers it: ``@make_layer.register``. Units with further learned numbers
    come with them (`Unit.at`).
    """
    return UnitLayer(weights, bias.astype(np.float32), 1.0, (np.nan, np.nan), unit)


@make_layer.register
def _(unit: BinaryUnit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    scale = unit.high - unit.low
    return SampledLayer(weights, (scale * bias).astype(np.float32), scale, unit.levels)


@make_layer.register
def _(unit: CategoricalUnit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    return CategoricalLayer(weights, bias.astype(np.float32), 1.0, (np.nan, np.nan), unit)


@make_layer.register
def _(unit: GaussianUnit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    scale = unit.variance
    shift = (scale * bias).astype(np.float32)
    return NormalLayer(weights, shift, scale, (np.nan, np.nan), float(np.sqrt(scale)))


@make_layer.register
def _(unit: ReLUUnit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    from paramagnet.sampling.relu_layers import ReLULayer  # which imports this module

    return ReLULayer(weights, bias.astype(np.float32), 1.0, (np.nan, np.nan), unit)


@make_layer.register
def _(unit: DReLUUnit, weights: Float32Array, bias: FloatArray) -> SampledLayer:
    from paramagnet.sampling.relu_layers import make_drelu_layer  # which imports this module

    return make_drelu_layer(unit, weights, bias)
