"""The restricted Boltzmann machine: its energy, its conditional distributions and its file format.

    p(v, h) = exp(-E(v, h)) / Z,      E(v, h) = -sum_i b_i v_i - sum_j c_j h_j - sum_ij v_i w_ij h_j

with ``b`` the visible bias, ``c`` the hidden bias and ``w`` the weights ``(n_visible, n_hidden)``; [Y25]
section 2. A layer of Gaussian units adds ``-sum_i ln N(x_i; 0, variance)`` to the energy, so that ``p`` is
the density in its variables and, where only ``v`` is Gaussian, ``Z = sum_h exp(c.h + variance |b + w
h|**2/2)``. States are arrays whose last axis runs over the units of a layer, all other axes are batch. A
machine is immutable; training returns a new one.

Units of several columns (categorical ones, `Unit.width`) have as many rows of the weights, biases and fields:
``v_i w_ij`` is then the row that the state of unit ``i`` picks.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_choice, as_generator, as_reals
from paramagnet._files import read_arrays, write_arrays
from paramagnet.units import BIT, SPIN, BinaryUnit, FloatArray, Unit, as_unit, saved_name

Rng = np.random.Generator | int | None

_FORMAT = "paramagnet.rbm"
_NOTES = "notes."  # before the names of texts in the metadata of a file


@dataclass(frozen=True, eq=False, repr=False)
class RBM:
    """A restricted Boltzmann machine.

    Parameters
    ----------
    weights : array_like
        Array of shape ``(n_visible, n_hidden)``; a layer of categorical units has a row, or column, for
        every state of every unit: ``(n_visible * q, n_hidden)`` beside hidden units of two values.
    visible_bias, hidden_bias : array_like
        One number for all units of the layer, or one per unit (and state).
    visible, hidden : str or Unit, optional
        The unit types, ``"spin"`` (-1, +1), ``"bit"`` (0, 1), ``"gaussian"`` (real numbers; another variance
        than 1 with ``pm.gaussian(variance)``), ``"relu"`` (not negative), ``"drelu"`` (real numbers, with two
        learned numbers per unit) or ``"categorical(q)"`` (states 0 to q - 1).
    visible_parameters, hidden_parameters : dict, optional
        For unit types with further learned numbers (`Unit.parameters`), these by their names: one number for
        all units of the layer, or one per unit; None takes those that the type starts with.

    Notes
    -----
    The arrays are float64, C-ordered, read-only copies of what was passed in.
    """

    weights: FloatArray
    visible_bias: FloatArray
    hidden_bias: FloatArray
    visible: Unit
    hidden: Unit
    visible_parameters: Mapping[str, FloatArray]
    hidden_parameters: Mapping[str, FloatArray]

    def __init__(
        self,
        weights: npt.ArrayLike,
        visible_bias: npt.ArrayLike,
        hidden_bias: npt.ArrayLike,
        visible: str | Unit = "spin",
        hidden: str | Unit = "bit",
        visible_parameters: Mapping[str, npt.ArrayLike] | None = None,
        hidden_parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        matrix = as_reals(weights, "weights")
        if matrix.ndim != 2 or matrix.size == 0:
            raise ValueError(
                "`weights` must have shape (n_visible, n_hidden) with at least one unit in each layer, "
                f"got shape {matrix.shape}."
            )
        units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
        n_rows, n_columns = matrix.shape
        n_visible, n_hidden = _count_units(matrix.shape, units)
        for name, value in (
            ("weights", _frozen(matrix, copied=True)),
            ("visible_bias", _frozen(_as_bias(visible_bias, "visible_bias", n_rows))),
            ("hidden_bias", _frozen(_as_bias(hidden_bias, "hidden_bias", n_columns))),
            ("visible", units[0]),
            ("hidden", units[1]),
            ("visible_parameters", _as_parameters(visible_parameters, "visible", units[0], n_visible)),
            ("hidden_parameters", _as_parameters(hidden_parameters, "hidden", units[1], n_hidden)),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        scale = float(np.sqrt(np.mean(self.weights**2)))
        return (
            f"RBM({self.n_visible} {self.visible} visible, {self.n_hidden} {self.hidden} hidden, "
            f"rms weight {scale:.4g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are made by the constructor, too, so that they are checked and read-only.
        arguments = self.weights, self.visible_bias, self.hidden_bias, self.visible, self.hidden
        if self.visible_parameters or self.hidden_parameters:
            return RBM, (*arguments, dict(self.visible_parameters), dict(self.hidden_parameters))
        return RBM, arguments

    @property
    def n_visible(self) -> int:
        """The number of visible units."""
        return int(self.weights.shape[0]) // self.visible.width

    @property
    def n_hidden(self) -> int:
        """The number of hidden units."""
        return int(self.weights.shape[1]) // self.hidden.width

    @property
    def weights_by_state(self) -> FloatArray:
        """The view ``(n_visible, q, n_hidden)`` of the weights, ``q`` the number of states of a categorical
        visible unit (1 for other units); the last axis has ``n_hidden * q`` columns for categorical hidden
        units.
        """
        return self.weights.reshape(self.n_visible, self.visible.width, -1)

    @property
    def bias_by_state(self) -> FloatArray:
        """The view ``(n_visible, q)`` of the visible bias."""
        return self.visible_bias.reshape(self.n_visible, self.visible.width)

    @property
    def units(self) -> tuple[Unit, Unit]:
        """The unit types of both layers with the further numbers of their units, if they have any."""
        return self.visible.at(self.visible_parameters), self.hidden.at(self.hidden_parameters)

    # Energies

    def energy(self, v: npt.ArrayLike, h: npt.ArrayLike) -> FloatArray:
        """``E(v, h) = -b.v - c.h - v.w.h``, minus ``ln p0`` of the units; the batch axes of ``v`` and ``h``
        broadcast. Both must hold values of their units.
        """
        v, h = self._as_visible(v), self._as_hidden(h)
        _require_same_batch(v, h)
        visible, hidden = self.units
        result: FloatArray = -visible.multiply(v, self.visible_bias) - hidden.pair(h, self._field_h(v))
        return result - visible.log_base(v) - hidden.log_base(h)

    def free_energy(self, v: npt.ArrayLike) -> FloatArray:
        """``F(v) = -ln sum_h exp(-E(v, h))``, so that ``p(v) = exp(-F(v)) / Z``."""
        v = self._as_visible(v)
        visible, hidden = self.units
        traces = hidden.log_trace(self._field_h(v))
        result: FloatArray = -visible.multiply(v, self.visible_bias) - np.sum(traces, axis=-1)
        return result - visible.log_base(v)

    def free_energy_h(self, h: npt.ArrayLike) -> FloatArray:
        """``-ln sum_v exp(-E(v, h))``, so that ``p(h) = exp(-free_energy_h(h)) / Z``."""
        h = self._as_hidden(h)
        visible, hidden = self.units
        traces = visible.log_trace(self._field_v(h))
        result: FloatArray = -hidden.multiply(h, self.hidden_bias) - np.sum(traces, axis=-1)
        return result - hidden.log_base(h)

    # Conditional distributions: given one layer, the units of the other are independent. These methods take
    # values of a layer, or means (numbers between the two values), with which they iterate the mean field.

    def field_h_given_v(self, v: npt.ArrayLike) -> FloatArray:
        """``c_j + sum_i v_i w_ij``, the field on each hidden unit. ``v`` may hold means, too."""
        return self._field_h(self._as_visible(v, means=True))

    def field_v_given_h(self, h: npt.ArrayLike) -> FloatArray:
        """``b_i + sum_j w_ij h_j``, the field on each visible unit. ``h`` may hold means, too."""
        return self._field_v(self._as_hidden(h, means=True))

    def mean_h_given_v(self, v: npt.ArrayLike) -> FloatArray:
        """``E[h | v]``. ``v`` may hold means, too."""
        return self.units[1].mean(self.field_h_given_v(v))

    def mean_v_given_h(self, h: npt.ArrayLike) -> FloatArray:
        """``E[v | h]``. ``h`` may hold means, too."""
        return self.units[0].mean(self.field_v_given_h(h))

    def sample_h_given_v(self, v: npt.ArrayLike, *, rng: Rng = None) -> FloatArray:
        """One draw of ``h`` from ``p(h | v)`` for every state ``v``."""
        return self.units[1].draw(self.field_h_given_v(v), as_generator(rng))

    def sample_v_given_h(self, h: npt.ArrayLike, *, rng: Rng = None) -> FloatArray:
        """One draw of ``v`` from ``p(v | h)`` for every state ``h``."""
        return self.units[0].draw(self.field_v_given_h(h), as_generator(rng))

    def hidden_features(self, v: npt.ArrayLike) -> FloatArray:
        """``E[h | v]``, the features of ``v`` for other models."""
        return self.mean_h_given_v(v)

    def _field_h(self, v: FloatArray) -> FloatArray:
        """`field_h_given_v` of states that were checked."""
        return self.visible.multiply(v, self.weights) + self.hidden_bias

    def _field_v(self, h: FloatArray) -> FloatArray:
        return self.hidden.multiply(h, self.weights.T) + self.visible_bias

    def _as_visible(self, v: npt.ArrayLike, *, means: bool = False) -> FloatArray:
        return self.visible.as_layer(v, "v", self.n_visible, means=means)

    def _as_hidden(self, h: npt.ArrayLike, *, means: bool = False) -> FloatArray:
        return self.hidden.as_layer(h, "h", self.n_hidden, means=means)

    # Change of variables

    def change_units(
        self, *, visible: str | Unit | None = None, hidden: str | Unit | None = None
    ) -> tuple[RBM, float]:
        """The same distribution in other units, and the constant ``E_old - E_new`` between the energies.

        With ``v = a v' + s`` and ``h = A h' + S`` (spins from bits: ``a = 2``, ``s = -1``)::

            w' = a A w    b'_i = a (b_i + S sum_j w_ij)    c'_j = A (c_j + s sum_i w_ij)
            E_old - E_new = -s sum_i b_i - S sum_j c_j - s S sum_ij w_ij

        so ``log Z_old = log Z_new - (E_old - E_new)``; likelihoods of data in the respective units are equal.

        A Gaussian layer can change its variance only (``s = 0``). Densities, and so energies and likelihoods,
        then also differ by the Jacobian, ``ln a`` per unit; ``ln Z`` does not change.

        Units of two values and ``"categorical(2)"`` change into each other, state 0 for the lower value;
        ``a`` is then a matrix, ``s`` a vector (`Unit.columns_to`).
        """
        new_visible = self.visible if visible is None else as_unit(visible, "visible")
        new_hidden = self.hidden if hidden is None else as_unit(hidden, "hidden")
        if max(unit.width for unit in (self.visible, self.hidden, new_visible, new_hidden)) > 1:
            return self._change_columns(new_visible, new_hidden)
        a, s = self.visible.affine_to(new_visible)
        A, S = self.hidden.affine_to(new_hidden)
        w, b, c = self.weights, self.visible_bias, self.hidden_bias
        machine = RBM(
            a * A * w,
            a * (b + S * w.sum(1)),
            A * (c + s * w.sum(0)),
            new_visible,
            new_hidden,
            self.visible_parameters or None,  # types with parameters can only change into themselves
            self.hidden_parameters or None,
        )
        return machine, float(-s * b.sum() - S * c.sum() - s * S * w.sum())

    def _change_columns(self, visible: Unit, hidden: Unit) -> tuple[RBM, float]:
        """`change_units` for units of any width, layer by layer."""
        w, b, c = self.weights, self.visible_bias, self.hidden_bias
        a, s = self.visible.columns_to(visible)
        each = np.tile(s, self.n_visible)
        constant = -float(each @ b)
        c = c + each @ w
        b = (b.reshape(self.n_visible, -1) @ a).ravel()
        w = np.einsum("ikj,kl->ilj", w.reshape(self.n_visible, len(a), -1), a).reshape(len(b), -1)
        a, s = self.hidden.columns_to(hidden)
        each = np.tile(s, self.n_hidden)
        constant -= float(each @ c)
        b = b + w @ each
        c = (c.reshape(self.n_hidden, -1) @ a).ravel()
        w = (w.reshape(len(w), self.n_hidden, -1) @ a).reshape(len(b), -1)
        further = self.visible_parameters or None, self.hidden_parameters or None
        return RBM(w, b, c, visible, hidden, *further), constant

    def to_zero_sum(self) -> RBM:
        """The same distribution in the zero-sum gauge: weights and biases of every categorical unit have the
        mean zero over its states. What the weights lose, the biases of the other layer gain. Energies and
        ``ln Z`` change by a constant, likelihoods do not. Other units are left as they are.
        """
        w, b, c = self.weights.copy(), self.visible_bias.copy(), self.hidden_bias.copy()
        fix_gauge(w, b, c, self.visible, self.hidden)
        further = self.visible_parameters or None, self.hidden_parameters or None
        return RBM(w, b, c, self.visible, self.hidden, *further)

    def to_bits(self, layer: str = "both") -> RBM:
        """The same distribution with bits (0, 1) in ``layer``: "visible", "hidden" or "both"."""
        return self._to(BIT, layer)

    def to_spins(self, layer: str = "both") -> RBM:
        """The same distribution with spins (-1, +1) in ``layer``: "visible", "hidden" or "both"."""
        return self._to(SPIN, layer)

    def _to(self, unit: BinaryUnit, layer: str) -> RBM:
        as_choice(layer, "layer", ("visible", "hidden", "both"))
        machine, _ = self.change_units(
            visible=None if layer == "hidden" else unit, hidden=None if layer == "visible" else unit
        )
        return machine

    # Files

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        preparation: Any = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write the machine to ``path`` as safetensors; an existing file is replaced atomically.

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        preparation : Preparation, optional
            How the visible units were made from a table, kept in the file: ``pm.data.Preparation.load(path)``
            reads it.
        notes : mapping of str to str, optional
            Further texts to keep in the file, by name; `read_notes` reads them.
        """
        units = {"visible": saved_name(self.visible, "visible"), "hidden": saved_name(self.hidden, "hidden")}
        arrays = {"weights": self.weights, "visible_bias": self.visible_bias, "hidden_bias": self.hidden_bias}
        arrays |= {f"visible.{name}": array for name, array in self.visible_parameters.items()}
        arrays |= {f"hidden.{name}": array for name, array in self.hidden_parameters.items()}
        write_arrays(path, arrays, _FORMAT, units | _as_notes(preparation, notes, self.n_visible))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RBM:
        """The machine that `save` wrote to ``path``. Other files are refused, and nothing is unpickled."""
        arrays, metadata = read_arrays(path, _FORMAT)
        names = ("weights", "visible_bias", "hidden_bias")
        further = [name.partition(".") for name in arrays if name not in names]
        if not set(arrays) >= set(names) or {layer for layer, _, _ in further} - {"visible", "hidden"}:
            raise ValueError(f"`path` must hold the arrays {names}, got {tuple(sorted(arrays))}: {path}.")
        weights, visible_bias, hidden_bias = (arrays[name] for name in names)
        if visible_bias.shape != weights.shape[:1] or hidden_bias.shape != weights.shape[1:]:
            shapes = ", ".join(f"{name} {arrays[name].shape}" for name in sorted(arrays))
            raise ValueError(f"`path` holds arrays that do not fit together ({shapes}): {path}.")
        visible, hidden = metadata.get("visible", ""), metadata.get("hidden", "")
        try:
            parameters = [
                {name: arrays[f"{layer}.{name}"] for found, _, name in further if found == layer} or None
                for layer in ("visible", "hidden")
            ]
            return cls(weights, visible_bias, hidden_bias, visible, hidden, *parameters)
        except ValueError as error:
            raise ValueError(f"`path` holds no valid machine: {path}. {error}") from None


def read_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that were kept with the machine in ``path``, by name.

    Parameters
    ----------
    path : str or os.PathLike
        The file of a machine.

    Returns
    -------
    dict
        The texts; a preparation is the one called "preparation".
    """
    _, metadata = read_arrays(path, _FORMAT)
    return {key.removeprefix(_NOTES): text for key, text in metadata.items() if key.startswith(_NOTES)}


def _as_notes(preparation: Any, notes: Any, n_visible: int) -> dict[str, str]:
    """Texts for the metadata of a file."""
    if notes is not None and not (
        isinstance(notes, Mapping) and all(isinstance(word, str) for item in notes.items() for word in item)
    ):
        raise ValueError(f"`notes` must be a mapping of texts to texts, got {shown(notes)}.")
    texts = dict(notes or {})
    if preparation is not None:
        if not hasattr(type(preparation), "to_json") or not hasattr(preparation, "n_visible"):
            raise ValueError(
                f"`preparation` must be a `paramagnet.data.Preparation` or None, got {shown(preparation)}."
            )
        if preparation.n_visible != n_visible:
            raise ValueError(
                f"`preparation` must make {n_visible} units, as the machine has, got {preparation.n_visible}."
            )
        texts["preparation"] = preparation.to_json()
    return {f"{_NOTES}{name}": text for name, text in texts.items()}


def _frozen(array: FloatArray, copied: bool = False) -> FloatArray:
    """A read-only copy; if ``array`` is a copy already, it is copied again only if it is not contiguous."""
    frozen = np.ascontiguousarray(array) if copied else np.array(array, dtype=np.float64, order="C")
    frozen.setflags(write=False)
    return frozen


def fix_gauge(
    weights: FloatArray,
    visible_bias: FloatArray,
    hidden_bias: FloatArray,
    visible: Unit | None,
    hidden: Unit | None,
) -> None:
    """Bring the parameters of a machine into the zero-sum gauge, in place; the distribution stays the same.

    None stands for a layer that is to be left alone.
    """
    if visible is not None:
        hidden_bias += visible.project(weights)
    if hidden is not None:
        visible_bias += hidden.project(weights.T)
        hidden.project(hidden_bias)
    if visible is not None:
        visible.project(visible_bias)


def _count_units(shape: tuple[int, ...], units: tuple[Unit, Unit]) -> tuple[int, int]:
    """The numbers of units that have so many rows and columns of the weights."""
    for size, unit, what in zip(shape, units, ("rows", "columns"), strict=True):
        if size % unit.width:
            raise ValueError(
                f"`weights` must have {unit.width} {what} for each of the {unit} units, got shape {shape}."
            )
    return shape[0] // units[0].width, shape[1] // units[1].width


def _as_bias(value: npt.ArrayLike, argument: str, n_units: int) -> FloatArray:
    bias = as_reals(value, argument)
    if bias.shape not in ((), (n_units,)):
        raise ValueError(
            f"`{argument}` must be one number or {n_units} numbers, one per unit, got shape {bias.shape}."
        )
    return np.broadcast_to(bias, (n_units,))


def _as_parameters(
    values: Mapping[str, npt.ArrayLike] | None, layer: str, unit: Unit, n_units: int
) -> Mapping[str, FloatArray]:
    """The further numbers of a layer, checked."""
    if values is None:
        values = unit.start_parameters(n_units)
    argument = f"{layer}_parameters"
    if not isinstance(values, Mapping) or set(values) != set(unit.parameters):
        wanted = f"the names {', '.join(unit.parameters)}" if unit.parameters else "None"
        found = ", ".join(map(str, values)) or "no name" if isinstance(values, Mapping) else shown(values)
        raise ValueError(f"`{argument}` must hold {wanted} for {unit} units, got {found}.")
    return MappingProxyType(
        {name: _frozen(_as_bias(values[name], f"{argument}[{name!r}]", n_units)) for name in unit.parameters}
    )


def _require_same_batch(v: FloatArray, h: FloatArray) -> None:
    try:
        np.broadcast_shapes(v.shape[:-1], h.shape[:-1])
    except ValueError:
        raise ValueError(
            f"`v` and `h` must have batch axes that broadcast, got shapes {v.shape} and {h.shape}."
        ) from None


def as_rbm(value: Any, argument: str) -> RBM:
    """``value`` as a machine."""
    if not isinstance(value, RBM):
        raise ValueError(
            f"`{argument}` must be a machine, a `paramagnet.RBM`, got {shown(value)}. `initialize` and "
            "`RBM.load` make machines."
        )
    return value
