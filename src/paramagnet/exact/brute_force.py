"""Exact sums for any units, if the units of at least one layer have finitely many values.

The states of that layer are enumerated one by one, in blocks; the other layer is summed or integrated by its
own `Unit.log_trace`. With ``y`` the units that are enumerated, ``x`` the others and ``w`` the weights between
them (for categorical units the products ``y w`` are sums of the rows that the states pick),

    p(y) = exp(ln p0(y) + a.y + sum_j log_trace(field_j)) / Z        field = y w + b

and averages of ``x`` are averages of its means in these fields. All unit types without a sum of their own use
this one. It runs on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from paramagnet._progress import Progress
from paramagnet.exact.exact_sum import Averages, ExactSum, Sizes
from paramagnet.kernels.precision import check_averages, check_draws, check_logarithm
from paramagnet.units import FloatArray, Unit

_BLOCK_STATES = 1 << 12
_SECONDS_PER_TERM = 1e-7  # seconds per state and unit of the layer that is summed out
_SECONDS_PER_WEIGHT = 1e-9


class _Side(NamedTuple):
    """One layer: its units with their own numbers, and their biases."""

    unit: Unit
    bias: FloatArray


class _Block(NamedTuple):
    """Some states of the enumerated layer, the fields of the other one, and logarithms of the weights."""

    states: FloatArray
    fields: FloatArray
    log_weights: FloatArray
    magnitude: float  # upper bound of the sum of the absolute values of all terms of an exponent


@dataclass(frozen=True, eq=False)
class BruteForce(ExactSum[Unit, Unit]):
    """A machine whose layer ``own`` is enumerated, while ``other`` is summed out; rows of ``weights`` belong
    to ``own``.
    """

    most: ClassVar[float] = 40

    weights: FloatArray
    own: _Side
    other: _Side
    swapped: bool

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        visible_bias: FloatArray,
        hidden_bias: FloatArray,
        visible: Unit,
        hidden: Unit,
    ) -> Self:
        """The sum of a machine given by its arrays and its units, these with their own numbers."""
        sides = _Side(visible, visible_bias), _Side(hidden, hidden_bias)
        n_visible, n_hidden = weights.shape[0] // visible.width, weights.shape[1] // hidden.width
        if _enumerates_hidden(Sizes(n_visible, n_hidden, visible, hidden)):
            return cls(np.ascontiguousarray(weights.T), sides[1], sides[0], swapped=True)
        return cls(weights, sides[0], sides[1], swapped=False)

    @classmethod
    def log2_states(cls, sizes: Sizes) -> int:
        """The binary logarithm of the number of states that are enumerated, rounded up."""
        return math.ceil(_log2(*_sides(sizes)[0]))

    @classmethod
    def seconds(cls, sizes: Sizes, *, n_threads: int = 1, gradient: bool = True) -> float:
        """A rough estimate of the time of one sum in seconds, infinite if neither layer can be enumerated.

        Two Gaussian layers raise ValueError, because no other method serves them either.
        """
        units = sizes.visible, sizes.hidden
        if all(unit.values is None for unit in units) and any(unit.response is None for unit in units):
            return math.inf
        (n_own, unit), (n_other, other) = _sides(sizes)
        each = n_other * other.width * (_SECONDS_PER_TERM + n_own * _SECONDS_PER_WEIGHT)
        return float(2.0 ** _log2(n_own, unit) * each)

    def log_partition(self, n_threads: int = 1, progress: Progress | None = None) -> float:
        """``ln Z``."""
        value, magnitude, _ = self._total(progress)
        check_logarithm(value, magnitude)
        return value

    def moments(self, n_threads: int = 1, progress: Progress | None = None) -> Averages:
        """``ln Z``, ``E[v]``, ``E[h]``, ``E[v h^T]``, and the averages of the units' statistics."""
        log_z, magnitude, _ = self._total(None if progress is None else lambda share: progress(0.5 * share))
        check_logarithm(log_z, magnitude)
        own, other = self.own, self.other
        sums = np.zeros((2, own.bias.size)), np.zeros((2, other.bias.size))
        products = np.zeros(self.weights.shape)
        own_numbers = {name: np.zeros(own.bias.size) for name in own.unit.parameters}
        other_numbers = {name: np.zeros(other.bias.size) for name in other.unit.parameters}
        for block in self._blocks(None if progress is None else lambda share: progress(0.5 + 0.5 * share)):
            p = np.exp(block.log_weights - log_z)
            means = other.unit.mean(block.fields)
            sums[0][:] += own.unit.total_moments(block.states, p)
            sums[1][:] += p @ means, p @ means**2
            products += own.unit.total_products(block.states, p, means)
            for name, values in own.unit.statistics(block.states).items():
                own_numbers[name] += p @ values
            for name, values in other.unit.mean_statistics(block.fields).items():
                other_numbers[name] += p @ values
        deviation = max(float((second - mean**2).max()) for mean, second in sums)
        check_averages(magnitude, math.sqrt(max(deviation, 0.0)))
        layers = (sums[0][0], own_numbers), (sums[1][0], other_numbers)
        if self.swapped:
            layers, products = layers[::-1], np.ascontiguousarray(products.T)
        (visible, visible_numbers), (hidden, hidden_numbers) = layers
        further = [np.zeros(0), *visible_numbers.values(), *hidden_numbers.values()]
        return log_z, visible, hidden, products, np.concatenate(further)

    def draw(
        self, n_samples: int, rng: np.random.Generator, n_threads: int = 1, progress: Progress | None = None
    ) -> FloatArray:
        """Independent states of the visible layer."""
        log_z, magnitude, totals = self._total(
            None if progress is None else lambda share: progress(0.5 * share)
        )
        check_draws(magnitude)
        shares = np.cumsum(np.exp(totals - log_z))
        uniform = rng.random(n_samples) * shares[-1]
        place = np.minimum(np.searchsorted(shares, uniform, side="right"), len(shares) - 1)
        states = np.empty((n_samples, self.own.bias.size // self.own.unit.width))
        for index, block in enumerate(
            self._blocks(None if progress is None else lambda share: progress(0.5 + 0.5 * share))
        ):
            here = np.flatnonzero(place == index)
            if here.size:
                within = np.cumsum(np.exp(block.log_weights - log_z))
                left = uniform[here] - (shares[index - 1] if index else 0.0)
                chosen = np.searchsorted(within, left, side="right")
                states[here] = block.states[np.minimum(chosen, len(within) - 1)]
        if not self.swapped:
            return states
        return self.other.unit.draw(self.own.unit.multiply(states, self.weights) + self.other.bias, rng)

    def _total(self, progress: Progress | None) -> tuple[float, float, FloatArray]:
        """``ln Z``, the largest magnitude of an exponent, and the logarithms of the sums over blocks."""
        totals, magnitude = [], 0.0
        for block in self._blocks(progress):
            totals.append(_log_sum(block.log_weights))
            magnitude = max(magnitude, block.magnitude)
        logarithms = np.array(totals)
        return _log_sum(logarithms), magnitude, logarithms

    def _blocks(self, progress: Progress | None) -> Iterator[_Block]:
        """All states of the enumerated layer, some at a time."""
        unit, bias = self.own
        assert unit.values is not None
        other, values = self.other.unit, np.array(unit.values)
        n_units, length = bias.size // unit.width, max(1, _BLOCK_STATES // max(unit.width, other.width))
        sizes_of_bias, sizes_of_weights = np.abs(bias), np.abs(self.weights)
        n_states = len(values) ** n_units
        places = [len(values) ** k for k in range(n_units)]  # integers of Python, which do not overflow
        for start in range(0, n_states, length):
            stop = min(start + length, n_states)
            numbers = np.arange(start, stop)
            states = values[np.stack([(numbers // place) % len(values) for place in places], axis=1)]
            fields = unit.multiply(states, self.weights) + self.other.bias
            traces = other.log_trace(fields)
            base = unit.log_base(states)
            sizes = np.abs(states)
            reach = unit.multiply(sizes, sizes_of_weights) + np.abs(self.other.bias)
            reach *= np.abs(other.mean(fields))
            terms = unit.multiply(sizes, sizes_of_bias) + np.abs(base)
            terms = terms + np.abs(traces).sum(axis=1) + reach.sum(axis=1)
            log_weights = unit.multiply(states, bias) + base + traces.sum(axis=1)
            yield _Block(states, fields, log_weights, float(terms.max()))
            if progress is not None:
                progress(stop / n_states)


def _log_sum(logarithms: FloatArray) -> float:
    """``ln sum exp``."""
    largest = float(logarithms.max())
    return largest + math.log(float(np.exp(logarithms - largest).sum()))


def _log2(n_units: int, unit: Unit) -> float:
    """The binary logarithm of the number of states of a layer; infinite for continuous units."""
    return math.inf if unit.values is None else n_units * math.log2(len(unit.values))


def _sides(sizes: Sizes) -> tuple[tuple[int, Unit], tuple[int, Unit]]:
    """Number and type of the units that are enumerated, then those of the others."""
    layers = (sizes.n_visible, sizes.visible), (sizes.n_hidden, sizes.hidden)
    return layers[::-1] if _enumerates_hidden(sizes) else layers


def _enumerates_hidden(sizes: Sizes) -> bool:
    """Whether the hidden layer has fewer states; raises ValueError if neither layer can be enumerated."""
    n_visible, n_hidden, visible, hidden = sizes
    of_visible, of_hidden = _log2(n_visible, visible), _log2(n_hidden, hidden)
    if math.isinf(min(of_visible, of_hidden)):
        if visible.response and hidden.response:
            kinds, remedy = (
                "two Gaussian layers",
                (
                    "Two Gaussian layers are together one normal distribution; there is a theory of it "
                    "(`solve_saddle_point`), but no training. "
                ),
            )
        else:
            kinds, remedy = (
                f"{visible} and {hidden} units",
                ("Chains (`PCD`, `sample`) and `estimate_log_partition` do without such a sum. "),
            )
        raise ValueError(
            f"`rbm` must have a layer of spin or bit units, got {kinds}: no layer has states that can be "
            f"summed one by one. {remedy}Take units of finitely many values in one of the layers."
        )
    return of_hidden < of_visible
