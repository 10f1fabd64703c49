"""Convert what users pass as arrays to NumPy arrays; only this file knows arrays of other packages.

PyTorch, JAX, pandas and scipy.sparse are recognized by attributes of their objects and never imported. Their
numbers are converted where float64 holds them exactly: tensors of any device and with a gradient (results
of this package are NumPy arrays and carry none), bfloat16 and float16, data frames of numbers, sparse
matrices. Missing values (NA), masked arrays, traced arrays of JAX and tensors without memory are refused by
name.
"""

from __future__ import annotations

import numbers
import os
import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_MOST_BITS = 200  # largest size of an integer that is shown with all its digits
_MOST_MEMORY = 2.0**40  # bytes that are allowed if the size of the memory is unknown or larger


class _Shown(reprlib.Repr):
    """Short texts of values, at most two lines long; making one never raises an error."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring, self.maxother, self.maxlong = 60, 100, 60
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 6

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write out integers of more than 4300 digits.
        return f"an integer of {x.bit_length()} bits" if x.bit_length() > _MOST_BITS else repr(x)


_SHORT = _Shown()


def shown(value: Any) -> str:
    """``value`` for an error message: its ``repr``, or its type if the ``repr`` would be long."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and (dtype is not None or hasattr(value, "dtypes")) and shape:
        size = 1
        for length in shape:
            size *= int(length)
        kind = "" if dtype is None else f" and dtype {dtype}"
        if size > 8 or not isinstance(value, np.ndarray):
            return f"{type(value).__name__} of shape {tuple(shape)}{kind}"
    return " ".join(_SHORT.repr(value).split())


def as_array(value: Any, argument: str, wanted: str = "an array of real numbers") -> Array:
    """``value`` as a NumPy array of real numbers of any type and shape; an error names ``argument``.

    The numbers themselves are not checked; they may be NaN or infinite. ``wanted`` completes the sentence
    "`argument` must be ...".
    """
    ours = _as_ours(value, argument)
    try:
        array = np.asarray(ours)
    except (TypeError, ValueError, RuntimeError) as error:  # raised by NumPy, or by elements of a list
        if "inhomogeneous" in str(error):
            raise ValueError(
                f"`{argument}` must be {wanted}, with rows of equal length, got {shown(value)}."
            ) from None
        raise ValueError(f"`{argument}` must be {wanted}, got {shown(value)}.") from None
    if array.dtype.kind == "O":
        array = _as_floats(array, value, argument, wanted)
    elif array.dtype.type.__module__ == "ml_dtypes" and "complex" not in array.dtype.name:
        array = array.astype(np.float64)  # exact for bfloat16 and smaller types
    if array.dtype.kind not in "biuf" or isinstance(value, bytearray | memoryview):
        if array.dtype.kind == "c" and not array.ndim:
            raise ValueError(f"`{argument}` must be real, got {shown(value)}.")
        remedy = f" Convert it, for example with `np.asarray({argument}, dtype=float)`." if array.ndim else ""
        if array.dtype.kind == "c":
            remedy = f" If its real part is meant, pass `{argument}.real`."
        raise ValueError(f"`{argument}` must be {wanted}, got {_kind_of(value, array)}.{remedy}")
    return array


def as_float64(array: Array) -> npt.NDArray[np.float64]:
    """The same numbers in float64, C-ordered; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def require_memory(n_bytes: int, argument: str, value: Any) -> None:
    """Raise an error if arrays of ``n_bytes`` would not fit into the memory of this computer."""
    most = min(physical_memory(), _MOST_MEMORY)
    if n_bytes > most:
        raise ValueError(
            f"`{argument}` must be small enough for the memory, got {shown(value)}: that would need "
            f"{n_bytes / 2**30:.3g} GiB, and at most {most / 2**30:.3g} GiB are taken on this computer."
        )


def physical_memory() -> float:
    """The memory of this computer in bytes; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _kind_of(value: Any, array: Array) -> str:
    if array.ndim and array.dtype.kind != "O":
        return f"dtype {array.dtype}, shape {array.shape}"
    return shown(value)


def _as_floats(array: Array, value: Any, argument: str, wanted: str) -> Array:
    """An array of Python objects as float64, if all of them are numbers."""
    floats = np.empty(array.shape, np.float64)
    for place, item in np.ndenumerate(array):
        if not _is_real(item):
            what = shown(value) if array.ndim == 0 else f"{shown(item)} among its elements"
            missing = item is None or type(item).__name__ in ("NAType", "NaTType")
            remedy = " Drop missing values or fill them in." if missing and array.ndim else ""
            raise ValueError(f"`{argument}` must be {wanted}, got {what}.{remedy}")
        try:
            floats[place] = float(item)
        except OverflowError:
            raise ValueError(f"`{argument}` must be finite, got {shown(item)}, beyond all floats.") from None
    return floats


def _is_real(item: Any) -> bool:
    """Whether ``item`` is a real number; a ``Decimal`` is one, too."""
    number = isinstance(item, numbers.Number)
    return number and (isinstance(item, numbers.Real) or not isinstance(item, numbers.Complex))


# Arrays of other packages


def _as_ours(value: Any, argument: str) -> Any:
    """``value`` as something that NumPy converts exactly."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            f"`{argument}` must not be a masked array, got one of shape {value.shape} with "
            f"{int(np.ma.getmaskarray(value).sum())} masked values; fill it first, with `.filled(...)`."
        )
    if type(value) is np.ndarray or isinstance(value, float | int | str | bytes | type):
        return value
    if isinstance(value, list | tuple):
        # Only rows that are tensors or masked arrays; NumPy converts lists of lists of numbers.
        if value and not isinstance(value[0], float | int | list | tuple | str):
            return [_as_ours(item, argument) for item in value]
        return value
    if hasattr(value, "detach") and hasattr(value, "is_sparse"):
        return _from_torch(value, argument)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        require_memory(8 * int(np.prod(value.shape, dtype=object)), argument, value)
        return value.toarray()
    if hasattr(value, "to_numpy"):
        return _from_frame(value, argument)
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        return _from_jax(value, argument)
    return value


def _from_torch(tensor: Any, argument: str) -> Any:
    if tensor.device.type == "meta" or getattr(tensor, "is_quantized", False) or tensor.is_nested:
        raise ValueError(
            f"`{argument}` must be a tensor with ordinary numbers, got {shown(tensor)} on the device "
            f"{tensor.device}."
        )
    tensor = tensor.detach().cpu()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    if tensor.is_floating_point():
        tensor = tensor.double()  # NumPy has no bfloat16
    return tensor.resolve_conj().resolve_neg().numpy()


def _from_frame(frame: Any, argument: str) -> Any:
    """A data frame or a series as an array; NA is refused, as pandas would make an array of objects."""
    array = frame.to_numpy()
    if isinstance(array, np.ndarray) and array.dtype.kind == "O" and hasattr(frame, "isna"):
        missing = np.asarray(frame.isna())
        if missing.any():
            raise ValueError(
                f"`{argument}` must not hold missing values, got {shown(frame)} with {int(missing.sum())}, "
                f"the first in row {int(np.argwhere(missing)[0][0])}. Drop those points or fill them in."
            )
    return array


def _from_jax(array: Any, argument: str) -> Any:
    if any(base.__name__ == "Tracer" for base in type(array).__mro__):
        raise ValueError(
            f"`{argument}` must hold numbers, got a traced array of JAX. Call this function outside of "
            "`jax.jit` and `jax.grad`."
        )
    if getattr(array, "is_deleted", bool)():
        raise ValueError(f"`{argument}` must hold numbers, got an array of JAX that was deleted or donated.")
    return array
