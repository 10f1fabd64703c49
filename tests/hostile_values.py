"""Arguments that no function wants, and which of them each kind of parameter may take all the same.

A value is made anew for every call. Values of packages that are not installed are left out.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

N_POINTS, N_VISIBLE = 4, 3  # the shape of the tables below, that of the data of all calls

SPINS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]])
BITS = (SPINS + 1.0) / 2.0


class Subclass(np.ndarray):
    """An array of another class."""


class Anything:
    """A class that can be called with whatever there is."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def _matrix() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(SPINS)


def _with(value: Any, where: tuple[int, int] = (1, 2)) -> np.ndarray:
    array = SPINS.astype(np.result_type(SPINS, value))
    array[where] = value
    return array


_TEXT = {
    "text": lambda: "certainly not",
    "nan in text": lambda: "nan",
    "number in text": lambda: "3",
    "empty text": lambda: "",
    "long text": lambda: "x" * 100_000,
    "lone surrogate": lambda: "\ud800",
    "null byte": lambda: "a\0b",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
}
_SCALARS = {
    "None": lambda: None,
    "True": lambda: True,
    "numpy bool": lambda: np.True_,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "minus inf": lambda: float("-inf"),
    "complex": lambda: 1.0 + 2.0j,
    "2**70": lambda: 2**70,
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "minus one": lambda: -1,
    "zero": lambda: 0,
    "one and a half": lambda: 1.5,
    "1e300": lambda: 1e300,
    "minus 1e300": lambda: -1e300,
    "decimal": lambda: Decimal("1.5"),
    "float128": lambda: np.longdouble("1.5"),
    "huge float128": lambda: np.longdouble("1e4000"),
    "datetime": lambda: np.datetime64("2020-01-01"),
}
_OBJECTS = {
    "empty list": list,
    "ragged list": lambda: [[1.0, 2.0], [3.0]],
    "list of text": lambda: ["otsu", "median"],
    "list of None": lambda: [None, None, None],
    "nested list": lambda: [[[[[[1.0]]]]]],
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "generator": lambda: (i for i in range(3)),
    "lambda": lambda: lambda *arguments: None,
    "class": lambda: Anything,
    "object": object,
    "slice": lambda: slice(3),
    "almost a machine": lambda: SimpleNamespace(
        weights=np.zeros((3, 2)), visible_bias=np.zeros(3), hidden_bias=np.zeros(2), visible="spin"
    ),
}
_ARRAYS = {
    "0-d array": lambda: np.array(1.5),
    "3-d array": lambda: np.ones((2, 2, 3)),
    "empty array": lambda: np.empty((0, N_VISIBLE)),
    "wrong shape": lambda: np.ones((5, 7)),
    "vector": lambda: np.ones(N_VISIBLE),
    "long vector": lambda: np.ones(11),
    "spins": SPINS.copy,
    "bits": BITS.copy,
    "bool array": lambda: BITS.astype(bool),
    "read-only": lambda: _read_only(SPINS),
    "matrix": _matrix,
    "subclass": lambda: SPINS.view(Subclass),
    "float128 array": lambda: SPINS.astype(np.longdouble),
    "object array of numbers": lambda: SPINS.astype(object),
    "huge array": lambda: 1e300 * SPINS,
    "nan array": lambda: _with(np.nan),
    "inf array": lambda: _with(np.inf),
    "huge float128 array": lambda: _with(np.longdouble("1e4000")),
    "complex array": lambda: SPINS + 1j,
    "datetime array": lambda: np.full(SPINS.shape, np.datetime64("2020-01-01")),
    "duration array": lambda: np.full(SPINS.shape, np.timedelta64(1, "s")),
    "text array": lambda: np.full(SPINS.shape, "1"),
    "bytes array": lambda: np.full(SPINS.shape, b"1"),
    "object array of text": lambda: np.full(SPINS.shape, "1", dtype=object),
    "object array with None": lambda: np.where(SPINS > 0, SPINS.astype(object), None),
    "structured array": lambda: np.zeros(4, dtype=[("a", float), ("b", int)]),
    "masked array": lambda: np.ma.masked_array(SPINS, SPINS < 0),
    "masked, nothing hidden": lambda: np.ma.masked_array(SPINS),
    "masked constant": lambda: np.ma.masked,
    "list of masked": lambda: [np.ma.masked_array([1.0, 1.0, -1.0], [True, False, False])] * 4,
}


def _torch() -> dict[str, Callable[[], Any]]:
    import torch

    def spins() -> Any:
        return torch.tensor(SPINS)

    return {
        "tensor": spins,
        "tensor with gradient": lambda: spins().requires_grad_(),
        "bfloat16 tensor": lambda: spins().to(torch.bfloat16),
        "float16 tensor with gradient": lambda: spins().to(torch.float16).requires_grad_(),
        "sparse tensor": lambda: spins().to_sparse(),
        "list of tensors with gradient": lambda: [row.requires_grad_() for row in spins()],
        "0-d tensor with gradient": lambda: torch.tensor(1.5, requires_grad=True),
        "complex tensor": lambda: spins() + 1j,
        "nan tensor": lambda: torch.tensor(_with(np.nan)),
        "meta tensor": lambda: spins().to("meta"),
        "torch device": lambda: torch.device("meta"),
        "torch dtype": lambda: torch.float32,
        "torch generator": torch.Generator,
    }


def _jax() -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    return {
        "jax array": lambda: jnp.asarray(SPINS),
        "bfloat16 jax array": lambda: jnp.asarray(SPINS, dtype=jnp.bfloat16),
        "complex jax array": lambda: jnp.asarray(SPINS) + 1j,
        "jax key": lambda: jax.random.key(0),
    }


def _pandas() -> dict[str, Callable[[], Any]]:
    import pandas as pd

    def frame() -> Any:
        return pd.DataFrame(SPINS, columns=list("abc"))

    def mixed() -> Any:
        return pd.DataFrame({"a": [1, 0, 1, 0], "b": [1.0, 0.0, 0.0, 1.0], "c": [True, False, True, True]})

    return {
        "frame": frame,
        "mixed frame": mixed,
        "nullable frame": lambda: frame().astype("Int64"),
        "frame with NA": lambda: frame().astype("Int64").where(frame() > 0),
        "frame with NaN": lambda: pd.DataFrame(_with(np.nan)),
        "frame of objects": lambda: frame().astype(str).astype(object),
        "frame of categories": lambda: frame().astype(str).astype("category"),
        "frame of dates": lambda: pd.DataFrame({"a": pd.date_range("2020", periods=4)}),
        "series": lambda: pd.Series(np.ones(N_VISIBLE)),
        "series with NA": lambda: pd.Series([1, None, 1], dtype="Int64"),
        "NA": lambda: pd.NA,
        "NaT": lambda: pd.NaT,
    }


def _sparse() -> dict[str, Callable[[], Any]]:
    from scipy import sparse

    return {
        "sparse matrix": lambda: sparse.csr_matrix(SPINS),
        "sparse array": lambda: sparse.coo_array(BITS),
        "complex sparse matrix": lambda: sparse.csc_matrix(SPINS + 1j),
        "sparse matrix beyond memory": lambda: sparse.coo_matrix((2**40, 2**20)),
    }


def make_values(folder: Path) -> dict[str, Callable[[], Any]]:
    """All values by name; files and folders are made in ``folder``."""
    junk = folder / "junk.bin"
    junk.write_bytes(bytes(range(256)) * 4)
    paths = {
        "folder": lambda: folder,
        "missing folder": lambda: folder / "missing" / "file",
        "below a file": lambda: junk / "file",
        "junk file": lambda: junk,
        "long name": lambda: folder / ("y" * 400),
    }
    values: dict[str, Callable[[], Any]] = {**_TEXT, **_SCALARS, **_OBJECTS, **_ARRAYS, **paths}
    for package, more in (("torch", _torch), ("jax", _jax), ("pandas", _pandas), ("scipy", _sparse)):
        if importlib.util.find_spec(package) is not None:
            values |= more()
    return values


# What a kind of parameter may take; where it does, the answer can still be an error in words.

_NUMBERS = {"minus one", "zero", "one and a half", "1e300", "minus 1e300", "2**70", "float128", "0-d array"}
_NUMBERS |= {"0-d tensor with gradient", "decimal"}
_TABLES = {
    "spins", "bits", "bool array", "read-only", "matrix", "subclass", "float128 array", "huge array",
    "object array of numbers", "wrong shape", "tensor", "tensor with gradient", "bfloat16 tensor",
    "float16 tensor with gradient", "sparse tensor", "list of tensors with gradient", "jax array",
    "bfloat16 jax array", "frame", "mixed frame", "nullable frame", "sparse matrix", "sparse array",
}  # fmt: skip
_FRAMES = {"frame with NA", "frame with NaN", "frame of objects", "frame of categories", "frame of dates"}
_VECTORS = {"vector", "long vector", "series", "3-d array", "nested list"}

_FILES = {"text", "nan in text", "number in text"}  # names of new files
_NAMES = {*_FILES, "empty text", "long text", "lone surrogate", "null byte"}

_TENSORS = {
    "tensor", "tensor with gradient", "bfloat16 tensor", "float16 tensor with gradient", "complex tensor",
    "nan tensor", "meta tensor",
}  # fmt: skip

MAY_TAKE: dict[str, set[str]] = {
    "count": {"zero", "minus one"},
    "real": _NUMBERS,
    "reals": _NUMBERS | _TABLES | _VECTORS | {"True", "numpy bool", "empty list", "empty array"},
    "float": _NUMBERS | {"nan", "inf", "minus inf", "huge float128"},
    "epochs": {"None", "empty list", "zero"},
    "states": _TABLES | _VECTORS,
    "layer": _TABLES | _VECTORS | {"empty array"},
    "clamp": _TABLES | _VECTORS | {"nan array", "nan tensor", "frame with NaN", "series with NA"},
    "flag": {"True", "numpy bool"},
    "choice": set(),
    "nothing": {"None"},
    "unit": set(),
    "machine": set(),
    "path": {"junk file", *_FILES},
    "folder": {"empty text", "folder", "missing folder", "below a file", "junk file", *_FILES},
    "label": {"None", "True", "zero", "minus one", "2**70", "10**400", "10**5000", *_NAMES},
    "name": _NAMES,
    "marks": {
        "zero",
        "minus one",
        "one and a half",
        "1e300",
        "minus 1e300",
        "2**70",
        "float128",
        "list of text",
        "empty list",
        *_NAMES,
    },
    "column": {"minus one", "empty list", *_NAMES},
    "table": {"junk file", *_FILES, *_TABLES, *_VECTORS, *_FRAMES},
    "choices": {"empty list"},
    "states of a run": set(),
    "tensor": _TENSORS,
    "layer of tensors": _TENSORS,
    "torch generator": {"None", "torch generator"},
    "torch dtype": {"None", "torch dtype"},
    "torch device": {"None", "torch device"},
    "jax dtype": {"None"},
    "jax key": {"jax key"},
    "axis": {"zero", "minus one"},
    "axes": {"zero", "minus one", "empty list"},
    "names": {"list of text"},
    "callable": {"lambda", "class"},
    "seed": {"zero", "2**70"},
    "rng": {"None", "zero", "2**70", "10**400", "10**5000", "empty list"},
    "progress bar": {"None"},
}
