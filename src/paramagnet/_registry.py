"""Classes by name, for command lines and specifications: ours by a short name, a user's own by its place.

``"pcd"`` is a name, ``"package.module:Name"`` a place. A place is imported, so it must come from the user's
own command line or specification; nothing that is read from a record or a checkpoint is looked up here.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from paramagnet._arrays import shown
from paramagnet._checks import near_names, shown_near

T = TypeVar("T")

_CALL = re.compile(r"([^()]*)(?:\(([^()]*)\))?")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


class Registry(Generic[T]):
    """The classes of one kind by name. They are imported when they are asked for."""

    def __init__(self, places: Mapping[str, str], *, base: str = "", members: tuple[str, ...] = ()) -> None:
        """``places`` are ``module:Name`` by name; classes must derive from ``base``, and have ``members``."""
        self._places, self._base, self._members = dict(places), base, members
        self._added: dict[str, type[T]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which they were added."""
        return (*self._places, *self._added)

    def add(self, name: str, cls: type[T]) -> None:
        """Give a class a name."""
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
            raise ValueError(f"`name` must be lower-case letters, digits and hyphens, got {shown(name)}.")
        if name in self.names:
            raise ValueError(f"`name` must be a new one, got {name!r}; there are {', '.join(self.names)}.")
        self._check(cls, "cls", shown(cls))
        self._added[name] = cls

    def find(self, text: Any, argument: str) -> type[T]:
        """The class with the name ``text``, or at the place ``text``; errors name ``argument``."""
        if isinstance(text, str) and text in self._added:
            return self._added[text]
        if isinstance(text, str) and text in self._places:
            found: type[T] = import_place(self._places[text], argument)
            return found
        if not isinstance(text, str) or ":" not in text:
            names = ", ".join(map(repr, self.names))
            raise ValueError(
                f"`{argument}` must be one of {names}, or 'package.module:Name' for a class of yours, got "
                f"{shown_near(text, self.names)}."
            )
        found = import_place(text, argument)
        self._check(found, argument, repr(text))
        return found

    def settings(self, text: Any, argument: str) -> dict[str, inspect.Parameter]:
        """What a class is made from, by name: the fields, if it is a dataclass."""
        parameters = inspect.signature(self.find(text, argument)).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {parameter.name: parameter for parameter in parameters if parameter.kind in kinds}

    def make(self, text: Any, argument: str, options: Mapping[str, Any]) -> T:
        """An object of that class; ``options`` that it does not have, or lacks, are named in the error."""
        cls, settings = self.find(text, argument), self.settings(text, argument)
        for name in options:
            if name not in settings:
                near = near_names(name, [*settings], most_listed=0)
                known = ", ".join(settings) or "none"
                raise ValueError(f"`{name}` is not a setting of {cls.__name__}; it has {known}{near}.")
        for name, parameter in settings.items():
            if name not in options and parameter.default is inspect.Parameter.empty:
                raise ValueError(f"`{name}` must be given for {cls.__name__}.")
        return cls(**{name: _as_float(value, settings[name]) for name, value in options.items()})

    def parse(self, text: Any, argument: str) -> T:
        """An object from a text: a name or a place, settings in brackets if need be: "name(key=value)"."""
        match = _CALL.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            return self.make(text, argument, {})  # which says what is wrong with it
        options: dict[str, Any] = {}
        for part in filter(None, (match[2] or "").split(",")):
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals or key in options:
                raise ValueError(
                    f"`{argument}` must have settings of the form key=value in its brackets, each once, got "
                    f"{text!r}."
                )
            options[key] = value
        settings = self.settings(match[1], argument)
        read = {k: read_setting(v, settings[k], k) if k in settings else v for k, v in options.items()}
        return self.make(match[1], argument, read)

    def _check(self, found: Any, argument: str, text: str) -> None:
        if not isinstance(found, type):
            raise ValueError(f"`{argument}` must name a class, got {text}.")
        if self._base and not issubclass(found, import_place(self._base, argument)):
            raise ValueError(
                f"`{argument}` must name a class derived from `{self._base.partition(':')[2]}` "
                f"({self._base.partition(':')[0]}), got {text}."
            )
        missing = [name for name in self._members if not callable(getattr(found, name, None))]
        if missing or inspect.isabstract(found):
            missing = missing or sorted(getattr(found, "__abstractmethods__", ()))
            raise ValueError(
                f"`{argument}` must name a class with the method `{missing[0]}`, which {text} lacks."
            )


def import_place(place: str, argument: str) -> Any:
    """What stands at ``package.module:Name``; errors name ``argument``."""
    module_name, _, name = place.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise ValueError(f"`{argument}` must be a name or 'package.module:Name', got {place!r}.")
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # where `python -m` and notebooks look, too; installed packages come first
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            f"`{argument}` = {place!r} must name a module that can be imported, from an installed package or "
            f"from the current folder: {error}."
        ) from error
    if not hasattr(module, name):
        raise ValueError(f"`{argument}` must name a class of {module_name}, which has no {name!r}.")
    return getattr(module, name)


def _annotated(parameter: inspect.Parameter) -> set[str]:
    """The words of an annotation, which is a text where annotations are not evaluated."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        unknown = parameter.default is None or parameter.default is inspect.Parameter.empty
        return set() if unknown else {type(parameter.default).__name__}
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return set(re.findall(r"\w+", text)) | ({"float"} if "LearningRate" in text else set())


def _as_float(value: Any, parameter: inspect.Parameter) -> Any:
    """Integers as floats where a float is meant: 1 and 1.0 are the same setting."""
    words = _annotated(parameter)
    if type(value) is int and "float" in words and "int" not in words:
        return float(value)
    return value


def is_flag(parameter: inspect.Parameter) -> bool:
    """Whether a setting is True or False."""
    return "bool" in _annotated(parameter)


def read_setting(text: str, parameter: inspect.Parameter, flag: str) -> Any:
    """A setting from the text of a command line, by the annotation of the field; errors name ``flag``."""
    words = _annotated(parameter)
    if text == "none" and "None" in words:
        return None
    if "bool" in words:
        if text.lower() not in _WORDS:
            raise ValueError(f"`{flag}` must be true or false, got {text!r}.")
        return _WORDS[text.lower()]
    if "str" in words:
        return int(text) if "int" in words and re.fullmatch(r"[+-]?\d+", text) else text
    for kind, article in ((int, "an integer"), (float, "a number")):
        if kind.__name__ in words and not (kind is int and "float" in words):
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"`{flag}` must be {article}, got {text!r}.") from None
    return text
