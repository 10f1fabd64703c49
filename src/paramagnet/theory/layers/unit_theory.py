"""The interface of a unit type to the theory: the averages of one layer, and properties of its units.

A unit type enters the theory by two classes in one file of this folder: its layer, a subclass of
`LayerAverages`, and a subclass of `UnitTheory` that makes such layers. ``dispatch.py`` registers it for the
type. No other file of the theory distinguishes unit types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Self

import numpy as np

from paramagnet.units import Array, FloatArray, Unit

LARGEST_RATIO = 1e50  # largest ratio of the layer sizes


class LayerAverages(ABC):
    """The averages of one layer over its random field, from which the theory is built; see `Layer`.

    ``qhat``, ``selfhat`` and ``gap``, their difference, are the auxiliary parameters. If ``gap`` is given,
    derivatives are those of ``(q, V)`` in ``(qhat, gap)`` in place of ``(q, Q)`` in ``(qhat, selfhat)``.
    """

    def __init__(self, qhat: Array, selfhat: Array, gap: Array | None) -> None:
        self.qhat, self.selfhat = qhat, selfhat
        self.by_variance = gap is not None
        self.gap: Array = selfhat - qhat if gap is None else gap

    @property
    @abstractmethod
    def magnetization(self) -> Array:
        """``M = E[k1]``."""

    @property
    @abstractmethod
    def overlap(self) -> Array:
        """``q = E[k1**2]``."""

    @property
    @abstractmethod
    def self_overlap(self) -> Array:
        """``Q = E[k2 + k1**2]``."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """``V = E[k2]``, which is ``dM/dd``."""

    @property
    @abstractmethod
    def squared_variance(self) -> FloatArray:
        """``E[k2**2]``, a factor in `stability_number`."""

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """``U = E[k1 k2]``, half of ``dq/dd``."""

    @property
    @abstractmethod
    def covariance_slope(self) -> Array:
        """``E[k2**2 + k1 k3]``, the derivative of ``U`` in the bias."""

    @property
    @abstractmethod
    def mixed(self) -> Array:
        """``E[k3 + 2 k1 k2]``: ``dQ/dd``, and twice ``dM/dselfhat``."""

    @property
    @abstractmethod
    def mixed_slope(self) -> Array:
        """``E[k4 + 2 k2**2 + 2 k1 k3]``, the derivative of `mixed` in the bias."""

    @property
    @abstractmethod
    def third(self) -> Array:
        """``E[k3]``, which is ``dV/dd``."""

    @property
    @abstractmethod
    def fourth(self) -> Array:
        """``E[k4]``: the derivative of `third` in the bias, and twice ``dV/dqhat`` at fixed gap."""

    @property
    @abstractmethod
    def overlap_to_selfhat(self) -> Array:
        """``dq/dselfhat = E[k1 k3 + 2 k1**2 k2]``, which is also ``-dQ/dqhat``."""

    @property
    @abstractmethod
    def log_trace(self) -> FloatArray:
        """``E ln int p0(x) exp(h x + g x**2)``."""

    @property
    @abstractmethod
    def quadrature_error(self) -> FloatArray:
        """Estimated relative error of the overlap."""

    @cached_property
    def overlap_to_qhat(self) -> Array:
        """``W = dq/dqhat = E[k2**2 - 2 k1**2 k2]``."""
        return self.covariance_slope - self.overlap_to_selfhat

    @cached_property
    def self_overlap_to_selfhat(self) -> Array:
        """``dQ/dselfhat = E[k4 + 4 k1 k3 + 2 k2**2 + 4 k1**2 k2]/2``."""
        return 0.5 * self.mixed_slope + self.overlap_to_selfhat

    @property
    def hats(self) -> tuple[Array, Array]:
        """``(qhat, selfhat)`` or ``(qhat, gap)``, the variables of the derivatives."""
        return self.qhat, self.gap if self.by_variance else self.selfhat

    @property
    def jacobian(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """``d(q, Q)/d(qhat, selfhat)``, rows first, or ``d(q, V)/d(qhat, gap)``."""
        cross = self.overlap_to_selfhat
        if self.by_variance:
            half = 0.5 * self.fourth
            return (self.covariance_slope, cross), (half, half + self.covariance_slope)
        return (self.overlap_to_qhat, cross), (-cross, self.self_overlap_to_selfhat)

    @property
    def to_bias(self) -> tuple[Array, Array]:
        """``d(q, Q)/dd`` at fixed ``qhat`` and ``selfhat``, or ``d(q, V)/dd``."""
        return 2.0 * self.covariance, self.third if self.by_variance else self.mixed

    @property
    def to_bias_slope(self) -> tuple[Array, Array]:
        """The derivative of ``to_bias`` in the bias itself; it replaces ``to_bias`` where symmetry makes that
        vanish.
        """
        return 2.0 * self.covariance_slope, self.fourth if self.by_variance else self.mixed_slope


class UnitTheory(ABC):
    """The properties of a unit type that the theory uses besides the averages of its layers.

    Attributes
    ----------
    quadratic : bool
        Whether ``p0(x)`` is the exponential of a square, so that a layer is solved in closed form and the
        other one may increase its variance without bound; decides the form of the machine (``forms.py``).
    largest_ratio : float
        The ratio of the layer sizes up to which floats hold the digits that the saddle point needs.
    stretch : float
        ``s``, if the unit is ``sqrt(s)`` times the standard one of its type (`standard`).
    fixed_self_overlap : float or None
        ``x**2`` if all values have the same square; None if the self-overlap is an unknown.
    transition_known : bool
        Whether the transition between symmetric layers has a closed form (``critical_beta`` of the forms);
        it has if the variance without field does not depend on the curvature ``g`` or is ``1/(1/s - 2 g)``.
    label : bool
        Whether the unit is a label (categorical): its biases are one row per unit, and formulas take the
        derivative of the overlap in place of derivatives in one common bias.
    condenses : bool
        Whether the unit is unbounded without being ``quadratic`` (ReLU); its scale is the edge of
        ``edge.py``.
    free_variance, free_square : float
        The variance without field, and its square; for labels the trace of the covariance matrix and the sum
        of the squares of its elements.
    largest_square, largest_variance : float
        Bounds of ``x**2`` and of the variance of ``x`` in any field.
    strip : float or None
        Half-width of the strip around the real axis in which cumulants are analytic functions of the bias;
        None if they are polynomials of degree two at most.
    """

    quadratic: bool = False
    label: bool = False
    condenses: bool = False
    largest_ratio: float = LARGEST_RATIO
    stretch: float = 1.0
    fixed_self_overlap: float | None = None
    transition_known: bool = False
    largest_square: float = np.inf
    largest_variance: float = np.inf
    strip: float | None = None

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.symmetric, self.spread, self.tail = unit.symmetric, unit.spread, unit.tail
        self.free_variance = unit.spread**2
        self.free_square = self.free_variance**2

    def __str__(self) -> str:
        return str(self.unit)

    @classmethod
    def of(cls, unit: Unit, argument: str) -> Self:
        """The theory of a unit; `theory_of` calls this for the types that this class is registered for."""
        return cls(unit)

    @abstractmethod
    def layer(
        self, bias: FloatArray, qhat: Array, selfhat: Array, gap: Array | None, coarseness: float
    ) -> LayerAverages:
        """A layer of such units with the given biases, at given auxiliary parameters; ``coarseness`` above 1
        makes the averages faster and less accurate.
        """

    @abstractmethod
    def mean(self, field: Array, curvature: Array) -> Array:
        """``k1`` in the field ``h`` and the curvature ``g``, used for first guesses."""

    def standard(self) -> UnitTheory:
        """The standard type; a unit of this type is ``sqrt(stretch)`` times a unit of the standard one."""
        return self

    def self_overlap_at(self, q: FloatArray, variance: FloatArray | None) -> FloatArray:
        """``Q`` at given overlap and variance; the variance may be None if ``Q`` is fixed."""
        if self.fixed_self_overlap is not None:
            return np.full(np.shape(q), self.fixed_self_overlap)
        assert variance is not None
        return q + variance

    def site_layer(
        self,
        sites: tuple[FloatArray, FloatArray],
        qhat: Array,
        selfhat: Array,
        gap: Array | None,
        coarseness: float,
    ) -> LayerAverages:
        """A layer of labels with biases of every unit, ``(n_units, n_states)``, and weights of the units."""
        raise ValueError(f"`sites` must be left out for {self.unit} units, which are not labels.")

    def scan_from(self, first: float, bias: FloatArray) -> float:
        """The ``beta`` at which a scan starts for such biases, if it would otherwise start at ``first``."""
        return first
