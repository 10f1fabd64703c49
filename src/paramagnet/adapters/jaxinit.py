"""The paper's initial weights for JAX, in the manner of ``jax.nn.initializers``.

A factory returns ``init(key, shape, dtype)``, which is what Flax and NetKet call ``kernel_init``. The shape
is known when a function is traced, so the scale is a constant under ``jit`` and costs nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import as_count, as_positive, as_real
from paramagnet._extras import missing_extra
from paramagnet.theory.ensemble import as_bias
from paramagnet.theory.scale import weight_std
from paramagnet.units import Unit, as_unit

Initializer = Callable[..., Any]
_MOST_AXES = 64


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
    visible, hidden : str or Unit, optional
        The unit types, "spin" or "bit". The units of ``log_cosh`` (NetKet's RBM) are spins, those of
        ``softplus`` are bits.
    hidden_bias : float, default 0.0
        The bias that the hidden units start with; set it in the framework as well.
    gain : float, default 1.0
        A factor on sigma.
    visible_axis, hidden_axis : int, optional
        Where the layers are in ``shape``. The defaults are those of ``nn.Dense``, ``(n_visible, n_hidden)``.
    batch_axis : int or sequence of int, optional
        Axes that count machines; every other axis must be one of the two layers.
    dtype : dtype, optional
        Type of the weights where none is passed to the initializer; None takes JAX's default float.

    Returns
    -------
    callable
        A function of key, shape and dtype that draws the weights.

    Notes
    -----
    For complex dtypes ``E|w|**2`` is sigma**2, half of it in either part, as it is with JAX's own.
    """
    visible, hidden = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    bias = as_bias(hidden_bias, "hidden_bias")
    factor = float(as_positive(as_real(gain, "gain"), "gain", zero=True))
    axes = _as_axis(visible_axis, "visible_axis"), _as_axis(hidden_axis, "hidden_axis")
    several = batch_axis if isinstance(batch_axis, (list, tuple)) else [batch_axis]
    batch = tuple(_as_axis(axis, "batch_axis") for axis in several)
    default = _as_dtype(dtype)
    try:
        import jax
    except ModuleNotFoundError as error:
        raise missing_extra("`layer_correlation_normal` of adapters.jaxinit", "JAX", "jax") from error

    def init(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
        sizes = _as_shape(shape)
        n_visible, n_hidden = _layer_sizes(sizes, *axes, batch)
        _check_key(key, jax)
        std = factor * weight_std(n_visible, n_hidden, visible=visible, hidden=hidden, hidden_bias=bias)
        kind = default if dtype is None else _as_dtype(dtype)
        kind = float if kind is None else kind
        more = {} if out_sharding is None else {"out_sharding": out_sharding}
        weights = jax.random.normal(key, sizes, kind, **more)
        if std > float(jax.numpy.finfo(weights.dtype).max):
            raise ValueError(f"`gain` must give weights in the range of {weights.dtype}, got {factor:g}.")
        return weights * jax.numpy.asarray(std, weights.dtype)

    return init


def _as_axis(axis: Any, argument: str) -> int:
    return as_count(axis, argument, minimum=-_MOST_AXES, maximum=_MOST_AXES)


def _as_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (list, tuple)):
        raise ValueError(f"`shape` must be a sequence of sizes, got {shown(shape)}.")
    sizes = tuple(as_count(size, "shape") for size in shape)
    require_memory(8 * math.prod(sizes), "shape", shape)
    return sizes


def _as_dtype(dtype: Any) -> Any:
    """``dtype`` if weights can have it; None stands for JAX's default."""
    if dtype is None:
        return None
    try:
        kind = np.dtype(dtype) if isinstance(dtype, (str, type, np.dtype)) else None
    except (TypeError, ValueError):
        kind = None
    if kind is None or not (kind.kind in "fc" or kind.name.startswith(("bfloat", "float"))):
        raise ValueError(f"`dtype` must be None or a floating-point or complex dtype, got {shown(dtype)}.")
    return dtype


def _check_key(key: Any, jax: Any) -> None:
    """An error unless ``key`` is one of JAX's keys, of the new kind or of the old one."""
    shape, dtype = getattr(key, "shape", None), getattr(key, "dtype", None)
    array = isinstance(key, (jax.Array, np.ndarray)) and not isinstance(key, np.ma.MaskedArray)
    typed = array and shape == () and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)
    if not typed and not (array and dtype == np.uint32 and len(key.shape) == 1):
        raise ValueError(f"`key` must be a key of JAX, as `jax.random.key(0)` makes them, got {shown(key)}.")


def _layer_sizes(
    shape: tuple[int, ...], visible_axis: int, hidden_axis: int, batch_axis: tuple[int, ...]
) -> tuple[int, int]:
    """The numbers of visible and hidden units in ``shape``."""
    axes = []
    for axis in (visible_axis, hidden_axis, *batch_axis):
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"`shape` must have an axis {axis}, got {shown(shape)}.")
        axes.append(axis % len(shape))
    if sorted(axes) != list(range(len(shape))):
        raise ValueError(
            "`shape` must have one axis for the visible layer, one for the hidden layer, and those named in "
            f"`batch_axis`; got {shown(shape)} with `visible_axis` {visible_axis}, `hidden_axis` "
            f"{hidden_axis}, `batch_axis` {batch_axis}."
        )
    return shape[axes[0]], shape[axes[1]]
