"""Categorical (Potts) units: labels ``0 .. q-1`` without any order.

A unit has ``q`` fields, one per state, and in them the probabilities ``p_a = exp(h_a) / sum_b exp(h_b)``. A
layer of ``n`` units has ``n q`` fields, biases and rows of the weights, row ``i q + a`` for state ``a`` of
unit ``i``. States are integers (in arrays of float64, as those of all units); products with weights gather
one row per unit, so that indicators of states ("one-hot" arrays) are never made of the data. Wherever states
are given, their indicators are accepted, too, ``(n_points, n, q)`` or ``(n_points, n q)``. Means are the
probabilities of all states, ``n q`` numbers.

A number that is added to all fields of a unit changes no probability. The zero-sum gauge takes the freedom
away: weights and biases of a unit have the mean zero over its states. `Layout.fix_gauge` keeps it in
training; ``categorical(q, zero_sum=False)`` are units whose training leaves it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, as_float64
from paramagnet._checks import as_count, as_flag, as_table, require_finite
from paramagnet.unit_base import Array, FloatArray, Unit, require_no_parameters

MOST_STATES = 1 << 16
_SMALLEST_SHARE = 2e-3  # of the even probability: the smallest for given means, 0.001 for two states
_ROUNDING = 1e-6  # of sums of given means
_FEW_ROWS = 8  # rows from which zeros and a single 1 for each unit are taken for indicators of states


@dataclass(frozen=True)
class CategoricalUnit(Unit):
    """A variable with the states ``0 .. q-1``, none of which is nearer to one than to another.

    ``zero_sum`` says whether learning keeps the zero-sum gauge.
    """

    q: int
    zero_sum: bool = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        require_no_parameters(cls, "CategoricalUnit")

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", as_count(self.q, "q", minimum=2, maximum=MOST_STATES))
        object.__setattr__(self, "zero_sum", as_flag(self.zero_sum, "zero_sum"))

    @property
    def name(self) -> str:
        """The name of the unit in `as_unit` and in files."""
        return f"categorical({self.q})" if self.zero_sum else f"categorical({self.q}, free)"

    @property
    def width(self) -> int:
        """The number of states: each has a field, a bias and a row of the weights."""
        return self.q

    @property
    def values(self) -> tuple[float, ...]:
        """All states."""
        return tuple(map(float, range(self.q)))

    @property
    def spread(self) -> float:
        """The standard deviation of the indicator of one state without field."""
        return float(np.sqrt(self.q - 1.0)) / self.q

    @property
    def mean_scale(self) -> float:
        """One: distances of probabilities, summed over the states, are those of spins for two states."""
        return 1.0

    # Weights, means and draws

    def log_trace(self, field: Array) -> FloatArray:
        """``ln sum_a exp(h_a)`` of every unit: ``n q`` fields give ``n`` numbers."""
        fields = self._by_state(np.asarray(field, dtype=np.float64))
        largest = fields.max(axis=-1)
        result: FloatArray = np.log(np.exp(fields - largest[..., None]).sum(axis=-1)) + largest
        return result

    def mean(self, field: Array) -> FloatArray:
        """The probability of every state of every unit, in the shape of the fields."""
        fields = self._by_state(np.asarray(field, dtype=np.float64))
        shares = np.exp(fields - fields.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        result: FloatArray = shares.reshape(np.shape(field))
        return result

    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One state of every unit, by the inverse of the distribution function."""
        fields = self._by_state(np.asarray(field, dtype=np.float64))
        sums = np.cumsum(np.exp(fields - fields.max(axis=-1, keepdims=True)), axis=-1)
        uniform = rng.random(sums.shape[:-1]) * sums[..., -1]
        below: FloatArray = (sums[..., :-1] <= uniform[..., None]).sum(axis=-1).astype(np.float64)
        return below

    def random_start(self, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """States drawn without any field, as starting states of chains."""
        return rng.integers(self.q, size=shape).astype(np.float32)

    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis, which is zero: all states have the weight 1."""
        return 0.0

    # Products: states pick rows

    def multiply(self, states: Array, weights: FloatArray) -> FloatArray:
        """The sum of the rows of ``weights`` that the states pick; of all, if ``states`` are means."""
        if states.shape[-1] == len(weights):
            result: FloatArray = states @ weights
            return result
        rows = self._rows(states)
        result = weights[rows[..., 0]]
        for i in range(1, rows.shape[-1]):
            result += weights[rows[..., i]]
        return result

    def pair(self, states: Array, fields: FloatArray) -> FloatArray:
        """The sum of the fields that the states pick."""
        batch = np.broadcast_shapes(states.shape[:-1], fields.shape[:-1])
        rows = np.broadcast_to(self._rows(states), (*batch, states.shape[-1]))
        wide = np.broadcast_to(fields, (*batch, fields.shape[-1]))
        result: FloatArray = np.take_along_axis(wide, rows, axis=-1).sum(axis=-1)
        return result

    def total(self, states: Array, shares: FloatArray) -> FloatArray:
        """The sum of the ``shares`` of the points in each state of each unit."""
        rows = self._rows(states)
        weights = np.broadcast_to(shares[:, None], rows.shape)
        counts = np.bincount(rows.ravel(), weights.ravel(), minlength=rows.shape[1] * self.q)
        return counts.astype(np.float64, copy=False)

    def total_moments(self, states: Array, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`total`, twice: indicators are their own squares."""
        shares = self.total(states, shares)
        return shares, shares

    def total_products(self, states: Array, shares: FloatArray, factors: FloatArray) -> FloatArray:
        """The sum of ``shares_k y_kj`` over the points in each state of each unit, unit by unit."""
        labels, scaled = np.arange(self.q), shares[:, None] * factors
        result = np.empty((states.shape[1] * self.q, factors.shape[1]))
        for i, rows in enumerate(self._by_state(result.T).transpose(1, 2, 0)):
            rows[...] = (states[:, i] == labels[:, None]).astype(np.float64) @ scaled
        return result

    def column_means(self, states: Array, weights: FloatArray | None = None) -> FloatArray:
        """The frequency of each state of each unit."""
        table = np.asarray(states)
        if table.ndim == 3 or table.dtype == np.float64 or not (table.min() >= 0 and table.max() < self.q):
            n_units = self.count_units(table, "data") if table.ndim == 3 else table.shape[-1]
            table = self.as_states(table, "data", n_units)
        if weights is None:
            return self.total(table, np.full(len(table), 1.0 / len(table)))
        return self.total(table, weights / weights.sum())

    def project(self, weights: FloatArray) -> FloatArray:
        """Take the mean over the states of each unit off ``weights``, or off biases, in place."""
        views = weights.reshape(-1, self.q, *weights.shape[1:])  # splits an axis, so it copies nothing
        means = views.mean(axis=1)
        views -= means[:, None]
        result: FloatArray = means.sum(axis=0)
        return result

    def _by_state(self, fields: FloatArray) -> FloatArray:
        """The view ``(..., n, q)`` of ``(..., n q)`` fields."""
        return fields.reshape(*fields.shape[:-1], -1, self.q)

    def _rows(self, states: Array) -> npt.NDArray[np.int64]:
        """The rows that states pick."""
        return states.astype(np.int64) + self.q * np.arange(states.shape[-1])

    # From frequencies to biases

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields, of sum zero for each unit, in which the states have these probabilities.

        Probabilities below a small share are raised to it, and divided by their sum again, so that a state
        that is absent has a finite field.
        """
        shares = self._by_state(np.asarray(mean, dtype=np.float64))
        if not (shares >= 0.0).all() or not np.allclose(shares.sum(axis=-1), 1.0, rtol=0.0, atol=_ROUNDING):
            raise ValueError(
                f"`{argument}` must hold probabilities of the {self.q} states of each unit, whose sum is 1, "
                f"got numbers from {shares.min():g} to {shares.max():g}. Of data they are the frequencies."
            )
        return self._field_of_shares(np.maximum(shares, _SMALLEST_SHARE / self.q))

    def bias_from(
        self, states: FloatArray, argument: str = "data", counts: FloatArray | None = None
    ) -> FloatArray:
        """Biases that give each unit on its own the frequencies of its column of ``states``, each of which
        counts so many times.

        One count is added to every column, shared by its states, so that absent states stay finite.
        """
        totals = self.total(states, np.ones(len(states)) if counts is None else counts)
        return self._field_of_shares(self._by_state(totals) + 1.0 / self.q)

    def _field_of_shares(self, shares: FloatArray) -> FloatArray:
        """Fields of sum zero whose exponentials have the proportions ``shares``."""
        fields = np.log(shares)
        fields -= fields.mean(axis=-1, keepdims=True)
        return fields.reshape(*fields.shape[:-2], -1)

    # Change of variables

    def columns_to(self, other: Unit) -> tuple[FloatArray, FloatArray]:
        """The indicators of the states as functions of the ``other`` variable."""
        values = other.values
        if other.width == self.q:
            return np.eye(self.q), np.zeros(self.q)
        if self.q == 2 and other.width == 1 and values is not None and _has_equal_weights(other, 2):
            low, high = values
            slope = 1.0 / (high - low)
            return np.array([[-slope], [slope]]), np.array([high * slope, -low * slope])
        raise self.no_change(other)

    def columns_from(self, other: Unit) -> tuple[FloatArray, FloatArray]:
        """The ``other`` variable as a function of the indicators of the states."""
        values = other.values
        if values is None or not _has_equal_weights(other, self.q):
            raise other.no_change(self)
        return np.array([values]), np.zeros(1)

    # Checks

    def is_value(self, array: Array) -> npt.NDArray[np.bool_]:
        """A mask of the elements of ``array`` that are states."""
        result: npt.NDArray[np.bool_] = (array >= 0) & (array < self.q) & (array == np.floor(array))
        return result

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages."""
        return f"the states of {self} units, integers from 0 to {self.q - 1}"

    def count_units(self, data: Array, argument: str) -> int:
        """The number of units of which an array holds the states, where nothing else tells it.

        Indicators must have three axes then, since zeros and ones are states, too. An array of two axes that
        looks like indicators is refused, unless it has few rows, which may look so by chance.
        """
        if data.ndim == 3 and data.shape[2] == self.q:
            return int(data.shape[1])
        n_units = super().count_units(data, argument)
        if self.q > 2 and data.ndim == 2 and len(data) >= _FEW_ROWS and n_units % self.q == 0 and n_units:
            for rows in (data[:1], data):
                by_state = self._by_state(rows)
                if not (((by_state == 0) | (by_state == 1)).all() and (by_state.sum(axis=-1) == 1).all()):
                    return n_units
            raise ValueError(
                f"`{argument}` must hold {self.wanted}; found a single 1 and {self.q - 1} zeros in every "
                f"{self.q} columns, as indicators of states have them. Give the states, or indicators as an "
                f"array of shape (n_points, n_units, {self.q})."
            )
        return n_units

    def as_states(self, data: Any, argument: str, n_units: int) -> FloatArray:
        """``data`` as an array ``(n_points, n_units)`` of states; indicators of states are accepted, too."""
        array = as_array(data, argument)
        if array.ndim == 3 and array.shape[1:] == (n_units, self.q):
            array = array.reshape(len(array), -1)
        if array.ndim == 2 and array.size and array.shape[1] == n_units * self.q:
            return self._from_indicators(as_float64(array), argument)
        states = as_table(array, argument, n_units, finite=True)
        self.require_values(states, argument)
        return states

    def as_layer(self, data: Any, argument: str, n_units: int, *, means: bool = False) -> FloatArray:
        """``data`` as states with any batch axes, checked; or as means, one per column, if ``means``.

        Indicators of states, ``(..., n_units q)``, are accepted, too.
        """
        array = as_array(data, argument)
        if array.ndim == 0 or array.shape[-1] != n_units * self.q:
            return super().as_layer(data, argument, n_units)
        wide = as_float64(array)
        if not means:
            return self._from_indicators(wide, argument)
        require_finite(wide, argument)
        shares = self._by_state(wide)
        if not (shares >= 0.0).all() or not np.allclose(shares.sum(axis=-1), 1.0, rtol=0.0, atol=_ROUNDING):
            raise ValueError(
                f"`{argument}` must hold {self.wanted}, or the probabilities of all states of each unit; "
                "found numbers below 0, or whose sum is not 1."
            )
        return wide

    def _from_indicators(self, indicators: FloatArray, argument: str) -> FloatArray:
        """States from indicators, which must hold a single 1 for each unit and zeros."""
        require_finite(indicators, argument)
        by_state = self._by_state(indicators)
        if not (((by_state == 0.0) | (by_state == 1.0)).all() and (by_state.sum(axis=-1) == 1.0).all()):
            raise ValueError(
                f"`{argument}` must hold {self.wanted}; or indicators of them, {self.q} numbers per unit, a "
                "single 1 and zeros. Give the states."
            )
        states: FloatArray = by_state.argmax(axis=-1).astype(np.float64)
        return states

    def fingerprint(self, points: FloatArray) -> bytes:
        """Bytes that identify these states, two per number."""
        return points.astype(np.uint16).tobytes()


def categorical(q: int, *, zero_sum: bool = True) -> CategoricalUnit:
    """A unit with the states ``0 .. q-1`` (Potts unit), ``"categorical(q)"`` by name.

    Parameters
    ----------
    q : int
        Number of states, at least 2: 21 for the amino acids and the gap, 4 for the letters of DNA.
    zero_sum : bool, default True
        Whether training keeps weights and biases in the zero-sum gauge: their means over the states of each
        unit are zero. False leaves them as the updates make them (``"categorical(q, free)"`` by name). The
        distribution is the same.

    Returns
    -------
    CategoricalUnit
        The unit.
    """
    return CategoricalUnit(q, zero_sum)


def _has_equal_weights(unit: Unit, n_values: int) -> bool:
    """Whether a unit has so many values, all of the weight ``p0 = 1``."""
    values = unit.values or ()
    return len(values) == n_values and not np.any(unit.log_base(np.array(values)[:, None]))


def make_categorical(text: str | None) -> Unit:
    """The unit from the text in the brackets behind its name."""
    words = [word.strip() for word in (text or "").split(",")]
    if not words[0].isdecimal() or words[1:] not in ([], ["free"]):
        raise ValueError("`categorical` must have its number of states in brackets, as in 'categorical(21)'.")
    return CategoricalUnit(int(words[0]), words[1:] == [])
