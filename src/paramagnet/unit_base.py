"""The base class of unit types: the interface that machines, sums, chains, training and files use.

A unit is a measure ``p0(x)`` on the line. In a field ``h`` it has the weight ``p0(x) exp(h x)``. A new type
is a subclass of `Unit` with a name and five methods (`log_trace`, `mean`, `draw`, `log_base`, `is_value`);
for use by name and in files it is registered with `paramagnet.units.register_unit`. All other methods have
defaults here, which a type can replace by faster ones.

A unit of ``width`` above 1 is a label, not a number: it picks one of ``width`` columns of fields, of rows of
the weights and of biases (`paramagnet.unit_categorical`). A layer of ``n`` units has ``n * width`` columns,
those of a unit side by side; states have ``n`` numbers, and fields, means and biases have one per column.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from paramagnet._checks import as_layer, as_table, require_finite

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
_BLOCK_ELEMENTS = 1 << 18  # number of fields in memory at a time


class Response(NamedTuple):
    """The mean of a unit as a function of its field ``h``, in closed form.

    It is ``centre + half tanh(half h)`` if ``saturates``, else ``centre + half h``.
    """

    centre: float
    half: float
    saturates: bool


class Unit(ABC):
    """One visible or hidden variable. All functions act elementwise on arrays."""

    # These describe the variable; a type may define them as class attributes, attributes or properties.

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """The name of the type in `as_unit` and in files; every type has one."""

        @property
        def symmetric(self) -> bool:
            """Whether ``x -> -x`` maps the unit onto itself."""

        @property
        def values(self) -> tuple[float, ...] | None:
            """All values if there are finitely many, else None."""

        @property
        def tail(self) -> float:
            """The variance of the normal distribution that ``p0`` falls off like; 0 for bounded variables.

            Two layers have a normalizable distribution if the largest singular value of the weights is below
            ``1/sqrt(tail tail')``.
            """

        @property
        def parameters(self) -> tuple[str, ...]:
            """The names of the numbers that each unit has besides its bias, on which ``p0(x)`` depends."""

        @property
        def width(self) -> int:
            """The number of columns of the fields, and of rows of the weights, that each unit has."""

        @property
        def zero_sum(self) -> bool:
            """Whether learning keeps the weights and biases of each unit at sums of zero (`project`)."""

    else:
        symmetric, values, tail, parameters, width, zero_sum = False, None, 0.0, (), 1, False

    def __str__(self) -> str:
        return self.name

    @property
    def bounded(self) -> bool:
        """Whether the partition function is finite for all parameters, whatever the other layer is."""
        return self.tail == 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of the unit without field."""
        step = 1e-4  # of the field; the slope of the mean, which is the variance, is right to about 1e-8
        means = np.asarray(self.mean(np.array([-step, step])))
        return math.sqrt(float(means[1] - means[0]) / (2.0 * step))

    @property
    def mean_scale(self) -> float:
        """The scale on which distances of means count like those of spins; see `Centring`."""
        return self.spread

    @property
    def response(self) -> Response | None:
        """The mean in closed form if it is one of the two forms that the training loop knows, else None."""
        return None

    # Weights, means and draws

    @abstractmethod
    def log_trace(self, field: Array) -> FloatArray:
        """``ln sum_x p0(x) exp(h x)``, an integral for continuous variables; without overflow."""

    @abstractmethod
    def mean(self, field: Array) -> FloatArray:
        """``E[x]`` in the field ``h``."""

    @abstractmethod
    def draw(self, field: Array, rng: np.random.Generator) -> FloatArray:
        """One draw of ``x`` in each field ``h``."""

    @abstractmethod
    def log_base(self, states: FloatArray) -> float | FloatArray:
        """``sum_i ln p0(x_i)`` over the last axis."""

    def sum_log_trace(self, fields: FloatArray) -> FloatArray:
        """``log_trace`` summed over the last axis."""
        result: FloatArray = self.log_trace(fields).sum(axis=-1)
        return result

    def random_start(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """States drawn without any field, as starting states of chains."""
        return self.draw(np.zeros(shape), rng)

    def subtract_log_weights(
        self,
        energies: FloatArray,
        states: FloatArray,
        weights: FloatArray,
        bias: FloatArray,
        own_bias: FloatArray,
    ) -> None:
        """Subtract ``states.bias + sum_j log_trace(field_j)`` from ``energies``, one number per state.

        ``states`` are those of the other layer, whose biases are ``bias``; ``own_bias`` are the biases of
        this one, whose fields are ``states @ weights + own_bias``. Memory stays bounded.
        """
        block = max(1, _BLOCK_ELEMENTS // len(own_bias))
        for start in range(0, len(states), block):
            rows = slice(start, start + block)
            v = states[rows]
            fields = v @ weights + own_bias
            energies[rows] -= v @ bias + self.sum_log_trace(fields)

    # Products of states with weights and fields

    def multiply(self, states: Array, weights: FloatArray) -> FloatArray:
        """``sum_i x_i w_i`` for every state: ``weights`` has a row, or a number, for every column."""
        result: FloatArray = states @ weights
        return result

    def pair(self, states: Array, fields: FloatArray) -> FloatArray:
        """``sum_i x_i h_i`` of states and fields whose batch axes broadcast."""
        result: FloatArray = np.sum(fields * states, axis=-1)
        return result

    def total(self, states: Array, shares: FloatArray) -> FloatArray:
        """The sum of the states, one row each, times their ``shares``; one number per column."""
        result: FloatArray = shares @ states
        return result

    def total_moments(self, states: Array, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`total`, and the same of the squares."""
        return self.total(states, shares), self.total(states**2, shares)

    def total_products(self, states: Array, shares: FloatArray, factors: FloatArray) -> FloatArray:
        """The sum of ``shares_k x_ki y_kj`` over the states; ``factors`` are the ``y``."""
        result: FloatArray = (shares[:, None] * states).T @ factors
        return result

    def column_means(self, states: Array, weights: FloatArray | None = None) -> FloatArray:
        """The means of the states, one number per column; with ``weights``, one for each state."""
        result: FloatArray
        if weights is None:
            result = states.mean(axis=0, dtype=np.float64)
        else:
            result = weights @ states / weights.sum()
            # Rounding must not carry the mean of units that never change out of their range.
            np.clip(result, states.min(axis=0), states.max(axis=0), out=result)
        return result

    def project(self, weights: FloatArray) -> FloatArray:
        """Take the mean over the columns of each unit off the rows ``weights``, or off biases, in place.

        Returns the sum of these means over the units: what the biases of the other layer have to gain for
        the distribution to stay the same. Units of one column have nothing to take off.
        """
        return np.zeros(weights.shape[1:])

    # From means to biases

    def field_of_mean(self, mean: FloatArray, argument: str) -> FloatArray:
        """The fields in which units have these means; ``argument`` is the caller's name for them.

        Means at the end of the range are moved inside, so that fields are finite.
        """
        raise ValueError(
            f"`{argument}` must be left out for {self} units: no field is known in which they have a given "
            "mean."
        )

    def bias_from(
        self, states: FloatArray, argument: str = "data", counts: FloatArray | None = None
    ) -> FloatArray:
        """Biases that give each unit on its own the mean of its column of ``states``, each of which counts
        so many times.
        """
        mean = states.mean(axis=0) if counts is None else counts @ states / counts.sum()
        return self.field_of_mean(mean, argument)

    # Change of variables

    def affine_to(self, other: Unit) -> tuple[float, float]:
        """``a, s`` such that ``x = a y + s``, where ``y`` is the variable ``other``."""
        if other == self:
            return 1.0, 0.0
        raise self.no_change(other)

    def columns_to(self, other: Unit) -> tuple[FloatArray, FloatArray]:
        """`affine_to` for units of any width: ``x = A y + s``, with ``A`` of shape ``(width, other.width)``.

        ``x`` and ``y`` are the indicators of the states of types that have a width.
        """
        if other.width > 1:
            return other.columns_from(self)
        scale, shift = self.affine_to(other)
        return np.array([[scale]]), np.array([shift])

    def columns_from(self, other: Unit) -> tuple[FloatArray, FloatArray]:
        """`columns_to` of the ``other`` unit, with this one as its argument, which has a width above 1."""
        raise other.no_change(self)

    def no_change(self, other: Unit) -> ValueError:
        """The error that no change of variables leads to the ``other`` unit."""
        return ValueError(
            f"`rbm` must have other units in the layer that is to become {other}, got {self} units: no "
            f"change of variables leads from {self} to {other} units. Keep that layer as it is."
        )

    # Checks

    @abstractmethod
    def is_value(self, array: Array) -> npt.NDArray[np.bool_]:
        """A mask of the elements of ``array`` that are values of this unit."""

    @property
    def wanted(self) -> str:
        """The description of valid values in error messages: "the values of spin units, -1 and 1"."""
        return f"the values of {self} units"

    def count_units(self, data: Array, argument: str) -> int:
        """The number of units of which an array holds the states, where nothing else tells it."""
        return data.shape[-1] if data.ndim == 2 else 1

    def as_states(self, data: Any, argument: str, n_units: int) -> FloatArray:
        """``data`` as an array ``(n_points, n_units)`` of values of this unit, checked."""
        states = as_table(data, argument, n_units, finite=True)
        self.require_values(states, argument)
        return states

    def as_layer(self, data: Any, argument: str, n_units: int, *, means: bool = False) -> FloatArray:
        """``data`` as states with any batch axes, checked; or as means, one per column, if ``means``."""
        states = as_layer(data, argument, n_units)
        (self.require_means if means else self.require_values)(states, argument)
        return states

    def require_values(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers that are not values of this unit."""
        require_finite(states, argument)
        foreign = states[~self.is_value(states)]
        if foreign.size:
            raise ValueError(f"`{argument}` must hold {self.wanted}; found {foreign[0]:g}.")

    def require_means(self, states: FloatArray, argument: str) -> None:
        """Raise an error if ``states`` hold numbers that cannot be means of this unit."""
        require_finite(states, argument)

    def fingerprint(self, points: FloatArray) -> bytes:
        """Bytes that identify these states; checkpoints keep a hash of them."""
        return points.tobytes()

    # Further learned numbers of each unit

    def start_parameters(self, n_units: int) -> dict[str, FloatArray]:
        """The further numbers at the start of training, which are zeros."""
        return {name: np.zeros(n_units) for name in self.parameters}

    def at(self, parameters: Mapping[str, FloatArray]) -> Self:
        """The units of one layer: this type with the numbers of every unit, in ``self.numbers``.

        The last axis of all fields and states then runs over these units.
        """
        if not self.parameters:
            return self
        layer = copy.copy(self)
        object.__setattr__(layer, "numbers", dict(parameters))
        return layer

    def statistics(self, states: FloatArray) -> dict[str, FloatArray]:
        """``d ln p0(x)/d parameter`` at every state, by the name of the parameter."""
        return {name: self._missing("statistics", name) for name in self.parameters}

    def mean_statistics(self, field: FloatArray) -> dict[str, FloatArray]:
        """The means of `statistics` in every field, ``d log_trace/d parameter``."""
        return {name: self._missing("mean_statistics", name) for name in self.parameters}

    def _missing(self, method: str, name: str) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} has the parameter {name!r}, but no `{method}`.")


def require_no_parameters(cls: type[Unit], base: str) -> None:
    """Raise an error if a subclass of ``base``, which is all closed forms, has further parameters."""
    if "parameters" in cls.__dict__:
        raise TypeError(
            f"{cls.__name__} must be derived from `Unit` to have `parameters`: the closed forms and kernels "
            f"of `{base}` know nothing of them."
        )
