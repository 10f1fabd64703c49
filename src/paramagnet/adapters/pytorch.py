"""For PyTorch: the initial scale in the manner of ``torch.nn.init``, and machines as tensors and modules.

    from paramagnet.adapters.pytorch import layer_correlation_normal_

    layer = torch.nn.Linear(784, 500)
    layer_correlation_normal_(layer.weight)

Weights are laid out as those of ``nn.Linear(n_visible, n_hidden)``, that is ``(n_hidden, n_visible)``, the
transpose of ``RBM.weights``; ``visible_dim=0`` stands for the other order. Training and likelihoods on
graphics processors are not here: pass ``device="cuda"`` to `train` and `estimate_log_partition`.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paramagnet._arrays import as_array, require_memory, shown
from paramagnet._checks import as_count, as_positive, as_real
from paramagnet.rbm import RBM, as_rbm
from paramagnet.sampling.devices import missing_torch
from paramagnet.theory.ensemble import as_bias
from paramagnet.theory.scale import find_beta_max
from paramagnet.theory.status import judge
from paramagnet.units import BinaryUnit, Unit, as_binary

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise missing_torch("paramagnet.adapters.pytorch") from error


def layer_correlation_normal_(
    weight: torch.Tensor,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    hidden_bias: float = 0.0,
    visible_dim: int = 1,
    gain: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Fill ``weight`` in place with draws from ``N(0, (gain * sigma)**2)``, and return it.

    ``sigma = weight_std(n_visible, n_hidden)`` is the scale at which the layers of a random machine are most
    correlated [Y25]. Dtype and device stay as they are. Complex weights have ``E |w|**2 = sigma**2``, the
    convention of ``Tensor.normal_``.

    Parameters
    ----------
    weight : torch.Tensor
        Tensor of two dimensions.
    visible, hidden : str or Unit, optional
        The unit types, "spin" (-1, +1) or "bit" (0, 1).
    hidden_bias : float, default 0.0
        The bias that all hidden units start from.
    visible_dim : int, default 1
        The axis of the visible units: 1 for ``nn.Linear(n_visible, n_hidden).weight``, else 0.
    gain : float, default 1.0
        Factor on sigma; 0.25 is the paper's beta_max/4.
    generator : torch.Generator, optional
        Where the random numbers come from; None is torch's global generator.

    Returns
    -------
    torch.Tensor
        ``weight`` itself.
    """
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"`weight` must be a torch.Tensor, got {shown(weight)}.")
    if weight.layout != torch.strided:
        raise ValueError(f"`weight` must be a dense tensor, got the layout {weight.layout}.")
    if weight.ndim != 2:
        raise ValueError(
            "`weight` must have two dimensions, one for the visible and one for the hidden units, "
            f"got shape {tuple(weight.shape)}."
        )
    if not (weight.is_floating_point() or weight.is_complex()):
        raise ValueError(f"`weight` must have a floating-point or complex dtype, got {weight.dtype}.")
    axis = _as_axis(visible_dim)
    factor = float(as_positive(as_real(gain, "gain"), "gain", zero=True))
    n_visible = as_count(weight.shape[axis], "n_visible")
    n_hidden = as_count(weight.shape[1 - axis], "n_hidden")
    bias = as_bias(hidden_bias, "hidden_bias")
    _check_generator(generator)
    maximum = find_beta_max(n_hidden / n_visible, visible=visible, hidden=hidden, c=bias)
    judge(maximum)
    sigma = float(maximum.beta / np.sqrt(n_visible + n_hidden))
    with torch.no_grad():
        return weight.normal_(0.0, factor * sigma, generator=generator)


def to_tensors(
    rbm: RBM,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    visible_dim: int = 1,
) -> dict[str, torch.Tensor]:
    """The parameters of ``rbm`` as tensors of their own: ``weight``, ``visible_bias``, ``hidden_bias``.

    With ``visible_dim=1`` they are a state dict of `RBMModule`. None as ``dtype`` is torch's default.

    Parameters
    ----------
    rbm : RBM
        The machine.
    dtype : torch.dtype, optional
        Type of the numbers; None takes the framework's default.
    device : torch.device or str, optional
        Device of the tensors; None takes the framework's default.
    visible_dim : int, default 1
        Axis of the visible units in ``weight``.

    Returns
    -------
    dict
        The tensors by name.
    """
    _check_place(dtype, device)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if as_rbm(rbm, "rbm").visible_parameters or rbm.hidden_parameters:
        raise ValueError(f"`rbm` must have weights and biases only to become tensors, got {shown(rbm)}.")
    weight = rbm.weights.T if _as_axis(visible_dim) == 1 else rbm.weights
    arrays = {"weight": weight, "visible_bias": rbm.visible_bias, "hidden_bias": rbm.hidden_bias}
    place = torch.get_default_device() if device is None else device
    # The dtype first: not every device has float64.
    return {
        name: torch.from_numpy(np.array(array, order="C")).to(dtype).to(place)
        for name, array in arrays.items()
    }


def from_tensors(
    weight: torch.Tensor,
    visible_bias: torch.Tensor | float,
    hidden_bias: torch.Tensor | float,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_dim: int = 1,
) -> RBM:
    """The machine with these parameters, from any device, dtype and graph.

    Parameters
    ----------
    weight : torch.Tensor
        Couplings, of two dimensions.
    visible_bias : torch.Tensor or float
        Biases of the visible units; one number stands for all.
    hidden_bias : torch.Tensor or float
        Biases of the hidden units; one number stands for all.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"`` or a unit object.
    visible_dim : int, default 1
        Axis of the visible units in ``weight``.

    Returns
    -------
    RBM
        The machine.
    """
    matrix = as_array(weight, "weight")
    if matrix.ndim == 2 and _as_axis(visible_dim) == 1:
        matrix = matrix.T
    return RBM(matrix, visible_bias, hidden_bias, visible, hidden)


class RBMModule(torch.nn.Module):
    """A restricted Boltzmann machine whose parameters PyTorch differentiates and optimizes.

    Parameters are ``weight`` of shape ``(n_hidden, n_visible)``, drawn by `layer_correlation_normal_`,
    ``visible_bias``, zero, and ``hidden_bias``, all at the value given. States are tensors whose last axis
    runs over the units of a layer. Calling the module gives ``E[h | v]``.

    The gradient of ``module.free_energy(data).mean() - module.free_energy(samples).mean()`` is minus that of
    the log-likelihood, where ``samples`` are states of the machine itself.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"`` or a unit object.
    hidden_bias : float, default 0.0
        Bias of all hidden units.
    generator : torch.Generator, optional
        Source of the random numbers; None is torch's global generator.
    dtype : torch.dtype, optional
        Type of the numbers; None takes the framework's default.
    device : torch.device or str, optional
        Device of the tensors; None takes the framework's default.
    """

    def __init__(
        self,
        n_visible: int,
        n_hidden: int,
        *,
        visible: str | Unit = "spin",
        hidden: str | Unit = "bit",
        hidden_bias: float = 0.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
        bias = as_bias(hidden_bias, "hidden_bias")
        require_memory(8 * n * m, "n_visible` or `n_hidden", (n, m))
        _check_place(dtype, device)
        self.visible, self.hidden = as_binary(visible, "visible"), as_binary(hidden, "hidden")
        place = {"dtype": dtype, "device": device}
        self.weight = torch.nn.Parameter(torch.empty((m, n), **place))
        self.visible_bias = torch.nn.Parameter(torch.zeros(n, **place))
        self.hidden_bias = torch.nn.Parameter(torch.full((m,), bias, **place))
        layer_correlation_normal_(
            self.weight, visible=visible, hidden=hidden, hidden_bias=bias, generator=generator
        )

    @classmethod
    def from_rbm(
        cls, rbm: RBM, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> RBMModule:
        """A module with the parameters of ``rbm``."""
        module = cls.__new__(cls)
        torch.nn.Module.__init__(module)
        as_rbm(rbm, "rbm")
        module.visible, module.hidden = as_binary(rbm.visible, "rbm"), as_binary(rbm.hidden, "rbm")
        for name, tensor in to_tensors(rbm, dtype=dtype, device=device).items():
            module.register_parameter(name, torch.nn.Parameter(tensor))
        return module

    def to_rbm(self) -> RBM:
        """The machine as it is now, for everything else in this package."""
        return from_tensors(
            self.weight, self.visible_bias, self.hidden_bias, visible=self.visible, hidden=self.hidden
        )

    def extra_repr(self) -> str:
        """Sizes and unit types, for ``repr``."""
        n_hidden, n_visible = self.weight.shape
        return f"{n_visible} {self.visible} visible, {n_hidden} {self.hidden} hidden"

    def free_energy(self, v: torch.Tensor) -> torch.Tensor:
        """``F(v) = -ln sum_h exp(-E(v, h))``, so that ``p(v) = exp(-F(v)) / Z``."""
        field = self.field_h_given_v(v)
        low, high = self.hidden.levels
        return -(v @ self.visible_bias) - torch.logaddexp(low * field, high * field).sum(-1)

    def field_h_given_v(self, v: torch.Tensor) -> torch.Tensor:
        """The field each hidden unit feels."""
        return functional.linear(self._as_layer(v, "v", 1), self.weight, self.hidden_bias)

    def field_v_given_h(self, h: torch.Tensor) -> torch.Tensor:
        """The field each visible unit feels."""
        return functional.linear(self._as_layer(h, "h", 0), self.weight.t(), self.visible_bias)

    def _as_layer(self, state: torch.Tensor, argument: str, axis: int) -> torch.Tensor:
        """``state`` with shape and dtype checked; its numbers, perhaps on another device, are not read."""
        n_units, weight = self.weight.shape[axis], self.weight
        if not isinstance(state, torch.Tensor) or state.layout != torch.strided:
            raise ValueError(f"`{argument}` must be a dense torch.Tensor, got {shown(state)}.")
        if state.ndim == 0 or state.shape[-1] != n_units:
            raise ValueError(
                f"`{argument}` must have {n_units} units along its last axis, got shape {tuple(state.shape)}."
            )
        if state.device != weight.device or (state.dtype != weight.dtype and not _casts(state)):
            raise ValueError(
                f"`{argument}` must be {weight.dtype} on the device {weight.device}, as the parameters are, "
                f"got {state.dtype} on {state.device}. Convert it with `{argument}.to(module.weight)`."
            )
        return state

    def mean_h_given_v(self, v: torch.Tensor) -> torch.Tensor:
        """``E[h | v]``."""
        return _mean(self.hidden, self.field_h_given_v(v))

    def mean_v_given_h(self, h: torch.Tensor) -> torch.Tensor:
        """``E[v | h]``."""
        return _mean(self.visible, self.field_v_given_h(h))

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        """``E[h | v]``, the features of ``v`` for further layers."""
        return self.mean_h_given_v(v)

    def sample_h_given_v(self, v: torch.Tensor, *, generator: torch.Generator | None = None) -> torch.Tensor:
        """One draw of ``h`` from ``p(h | v)`` for every state ``v``; no gradient passes."""
        return _draw(self.hidden, self.field_h_given_v(v), generator)

    def sample_v_given_h(self, h: torch.Tensor, *, generator: torch.Generator | None = None) -> torch.Tensor:
        """One draw of ``v`` from ``p(v | h)`` for every state ``h``; no gradient passes."""
        return _draw(self.visible, self.field_v_given_h(h), generator)


def _mean(unit: BinaryUnit, field: torch.Tensor) -> torch.Tensor:
    centre, half = 0.5 * (unit.high + unit.low), 0.5 * (unit.high - unit.low)
    return centre + half * torch.tanh(half * field)


def _draw(unit: BinaryUnit, field: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    _check_generator(generator)
    with torch.no_grad():
        odds = unit.log_odds(field)
        drawn = torch.empty_like(odds).uniform_(generator=generator) < torch.sigmoid(odds)
        return torch.where(drawn, unit.high, unit.low).to(odds.dtype)


def _as_axis(visible_dim: int) -> int:
    if not isinstance(visible_dim, (int, np.integer)) or isinstance(visible_dim, bool):
        raise ValueError(f"`visible_dim` must be 0 or 1 (or -2, -1), got {shown(visible_dim)}.")
    if visible_dim not in (-2, -1, 0, 1):
        raise ValueError(f"`visible_dim` must be 0 or 1 (or -2, -1), got {shown(visible_dim)}.")
    return int(visible_dim) % 2


def _casts(state: torch.Tensor) -> bool:
    """Whether PyTorch converts the tensor by itself, within ``torch.autocast``."""
    kind = state.device.type
    available = torch.amp.is_autocast_available(kind)
    return bool(available and torch.is_autocast_enabled(kind) and state.is_floating_point())


def _check_generator(generator: Any) -> None:
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(f"`generator` must be None or a torch.Generator, got {shown(generator)}.")


def _check_place(dtype: Any, device: Any) -> None:
    """An error unless tensors of this dtype can be made on this device."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(f"`dtype` must be None or a floating-point torch.dtype, got {shown(dtype)}.")
    if device is None or isinstance(device, torch.device):
        return
    reason = ""
    if isinstance(device, str):
        try:
            torch.device(device)
            return
        except RuntimeError as error:
            reason = f" ({str(error).splitlines()[0]})" if len(str(error)) < 300 else ""
    raise ValueError(f"`device` must be None, a torch.device or its name, got {shown(device)}{reason}.")
