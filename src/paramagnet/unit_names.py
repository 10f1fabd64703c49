"""The names of unit types in arguments, in files and on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable

from paramagnet._arrays import shown
from paramagnet._checks import shown_near
from paramagnet._registry import import_place
from paramagnet.unit_base import Unit

Factory = Callable[[str | None], Unit]  # takes the text in brackets behind a name, None without brackets
UNITS: dict[str, Factory] = {}
_NAMED = re.compile(r"([^()]+)(?:\(([^()]+)\))?")


def register_unit(name: str, unit: Unit | Factory) -> None:
    """Make a unit type known by its name, to `as_unit`, to files and to the command line.

    Parameters
    ----------
    name : str
        The part before the brackets in names such as ``"gaussian(0.5)"``; it must not change later, because
        files hold it.
    unit : Unit or Factory
        The unit itself; or a function that makes it from the text in brackets, which is None if there are no
        brackets, and that raises ValueError if the text is wrong.
    """
    if not isinstance(name, str) or not _NAMED.fullmatch(name) or "(" in name:
        raise ValueError(f"`name` must be a text without brackets, got {shown(name)}.")
    UNITS[name] = _always(unit) if isinstance(unit, Unit) else unit


def _always(unit: Unit) -> Factory:
    def make(text: str | None) -> Unit:
        if text is not None:
            raise ValueError(f"`{unit}` takes nothing in brackets, got {shown(text)}.")
        return unit

    return make


def as_unit(unit: str | Unit, argument: str) -> Unit:
    """The unit type called ``unit``; ``argument`` is the caller's name for it, for the error message.

    ``"gaussian(0.5)"`` is a Gaussian unit of variance 0.5.
    """
    if isinstance(unit, Unit):
        return unit
    reason = ""
    if isinstance(unit, str) and (match := _NAMED.fullmatch(unit)) and match[1] in UNITS:
        try:
            return UNITS[match[1]](match[2])
        except ValueError as error:
            reason = f" {error}" if str(error).startswith("`") else ""
    known = ", ".join(repr(name) for name in UNITS)
    named = shown(unit) if reason else shown_near(unit, UNITS)
    raise ValueError(f"`{argument}` must be a unit type ({known}), got {named}.{reason}")


def find_unit(unit: str | Unit, argument: str) -> Unit:
    """The unit type that a user names for a new machine: a name of `as_unit`, or ``"package.module:NAME"``.

    The latter names a unit, or a class that can be made without arguments, and is imported. Names that are
    read from files go to `as_unit`, which imports nothing, so a module whose types are to be loaded from
    files calls `register_unit`.
    """
    if not isinstance(unit, str) or ":" not in unit:
        return as_unit(unit, argument)
    found = import_place(unit, argument)
    if isinstance(found, type) and issubclass(found, Unit):
        found = found()
    if not isinstance(found, Unit):
        raise ValueError(f"`{argument}` must name a unit or a class of units, got {shown(unit)}.")
    return found


def saved_name(unit: Unit, argument: str) -> str:
    """The name of the unit in files; raises an error if `as_unit` of the name gives another unit."""
    try:
        found = as_unit(unit.name, argument)
    except ValueError:
        found = None
    if found != unit:
        *first, last = map(repr, UNITS)
        raise ValueError(
            f"`{argument}` must be {', '.join(first)} or {last} to be saved, got {unit!r}. `register_unit` "
            "makes other types known by their names."
        )
    return unit.name
