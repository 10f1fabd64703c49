"""The paper's initial weights for JAX, in the manner of ``jax.nn.initializers``.

A factory returns ``init(key, shape, dtype)``, which is what Flax and NetKet call ``kernel_init``. The shape
is known when a function is traced, so the scale is a constant under ``jit`` and costs nothing there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from paramagnet._checks import as_positive, as_real
from paramagnet.adapters._extras import missing_extra
from paramagnet.theory.scale import weight_std
from paramagnet.units import Unit, as_unit

Initializer = Callable[..., Any]


def layer_correlation_normal(
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    hidden_bias: float = 0.0,
    *,
    gain: float = 1.0,
    visible_axis: int = -2,
    hidden_axis: int = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """An initializer that draws from N(0, (gain sigma)**2), ``sigma = beta_max/sqrt(n_visible + n_hidden)``.

    Parameters
    ----------
    visible, hidden : the unit types, "spin" or "bit". The units of ``log_cosh`` (NetKet's RBM) are spins,
        those of ``softplus`` are bits.
    hidden_bias : the bias that the hidden units start with; set it in the framework as well
    gain : a factor on sigma
    visible_axis, hidden_axis : where the layers are in ``shape``. The defaults are those of ``nn.Dense``,
        ``(n_visible, n_hidden)``.
    batch_axis : axes that count machines; every other axis must be one of the two layers
    dtype : of the weights where none is passed to the initializer; None takes JAX's default float

    For complex dtypes ``E|w|**2`` is sigma**2, half of it in either part, as it is with JAX's own.
    """
    visible, hidden = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    bias = as_real(hidden_bias, "hidden_bias")
    factor = float(as_positive(as_real(gain, "gain"), "gain", zero=True))
    batch = tuple(batch_axis) if isinstance(batch_axis, Sequence) else (batch_axis,)
    default = dtype
    try:
        import jax
    except ModuleNotFoundError as error:
        raise missing_extra("`layer_correlation_normal` of adapters.jaxinit", "JAX", "jax") from error

    def init(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
        n_visible, n_hidden = _layer_sizes(tuple(shape), visible_axis, hidden_axis, batch)
        std = factor * weight_std(n_visible, n_hidden, visible=visible, hidden=hidden, hidden_bias=bias)
        kind = default if dtype is None else dtype
        kind = float if kind is None else kind
        more = {} if out_sharding is None else {"out_sharding": out_sharding}
        weights = jax.random.normal(key, tuple(shape), kind, **more)
        return weights * jax.numpy.asarray(std, weights.dtype)

    return init


def _layer_sizes(
    shape: tuple[int, ...], visible_axis: int, hidden_axis: int, batch_axis: tuple[int, ...]
) -> tuple[int, int]:
    """The numbers of visible and hidden units in ``shape``."""
    axes = []
    for axis in (visible_axis, hidden_axis, *batch_axis):
        place = operator.index(axis)
        if not -len(shape) <= place < len(shape):
            raise ValueError(f"`shape` must have an axis {axis}, got {shape}.")
        axes.append(place % len(shape))
    if sorted(axes) != list(range(len(shape))):
        raise ValueError(
            "`shape` must have one axis for the visible layer, one for the hidden layer, and those named in "
            f"`batch_axis`; got {shape} with `visible_axis` {visible_axis}, `hidden_axis` {hidden_axis}, "
            f"`batch_axis` {batch_axis}."
        )
    return shape[axes[0]], shape[axes[1]]
