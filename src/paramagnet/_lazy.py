"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, module_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names live in its submodules.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    module_of : dict
        For each public name the submodule that defines it.

    Notes
    -----
    Importing the package then costs no more than its own file. A name is imported at its first use and kept.
    """

    def find(name: str) -> Any:
        try:
            module = module_of[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*module_of, *vars(sys.modules[package])})

    return find, names
