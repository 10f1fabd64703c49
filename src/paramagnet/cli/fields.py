"""Flags that are settings of the chosen gradient, optimizer and scheme: ``--n-relax``, ``--beta1``.

They come from the fields of the classes, a user's own included, so they are not known when the command line
is defined (and `paramagnet --help` must not load the classes). A command of this kind takes them out of the
words before the rest is read as usual.
"""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from paramagnet.cli.flags import name_flags

if TYPE_CHECKING:
    from paramagnet._registry import Registry
    from paramagnet.learning.gradients.base import Gradient
    from paramagnet.learning.optimizers import Optimizer
    from paramagnet.schemes import Scheme

_KEY = "paramagnet.fields"  # key in the notes of the context
_RATE = 1e-3  # of optimizers that have no learning rate of their own
# Fields whose flags have other names, and a flag that means something else than the field.
_FLAGS = {"n_chains": "chains", "n_steps": "steps", "n_threads": "threads"}
_TAKEN = ("force",)

Fields = dict[str, inspect.Parameter]


class FieldCommand(TyperCommand):
    """A command with ``--gradient``, ``--optimizer`` and ``--scheme``, whose settings are flags as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the settings among ``args`` in the context, and read the rest."""
        flags = {flag for option in self.params for flag in (*option.opts, *option.secondary_opts)}
        given, rest = _take_settings(list(args), flags | {"--help"})
        ctx.meta[_KEY] = given
        return super().parse_args(ctx, rest)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors about settings that were given name their flags."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            flags = {name: f"--{name.replace('_', '-')}" for name in given_settings(ctx)}
            if flags and error.args and isinstance(error.args[0], str):
                error.args = (name_flags(error.args[0], flags), *error.args[1:])
            raise


def given_settings(ctx: Any) -> dict[str, Any]:
    """The settings that were given as flags, by name."""
    return dict(ctx.meta.get(_KEY, {}))


def _take_settings(args: list[str], known: set[str]) -> tuple[dict[str, Any], list[str]]:
    """The settings of classes among the words, and the other words."""
    given: dict[str, Any] = {}
    rest: list[str] = []
    fields: Fields | None = None
    words = iter(range(len(args)))
    for index in words:
        flag, equals, text = args[index].partition("=")
        if flag == "--":
            rest += args[index:]
            break
        if not flag.startswith("--") or flag in known:
            rest.append(args[index])
            continue
        from paramagnet._registry import is_flag, read_setting  # help and plain commands do without

        fields = _known_fields(args) if fields is None else fields
        name = flag.removeprefix("--").replace("-", "_")
        denied = name.removeprefix("no_")
        if name not in fields and denied in fields and is_flag(fields[denied]) and not equals:
            given[denied] = False
        elif name not in fields:
            rest.append(args[index])  # the command itself reports the error
        elif is_flag(fields[name]) and not equals:
            given[name] = True
        else:
            if not equals:
                text = next((args[following] for following in words), "")
            if not text:
                raise ValueError(f"`{flag}` must be followed by a value.")
            given[name] = read_setting(text, fields[name], flag)
    return given, rest


def _known_fields(args: list[str]) -> Fields:
    """The settings of all registered classes, and of those that the words name."""
    fields: Fields = {}
    for flag, registry in _registries().items():
        named = [text for name, text in itertools.pairwise(args) if name == flag]
        named += [word.partition("=")[2] for word in args if word.startswith(f"{flag}=")]
        for text in (*registry.names, *(text for text in named if ":" in text)):
            fields |= registry.settings(text, flag)
    return {name: field for name, field in fields.items() if name not in _FLAGS and name not in _TAKEN}


def _registries() -> dict[str, Registry[Any]]:
    from paramagnet.learning.registries import GRADIENTS, OPTIMIZERS
    from paramagnet.schemes import SCHEMES

    return {"--gradient": GRADIENTS, "--optimizer": OPTIMIZERS, "--scheme": SCHEMES}


def make_gradient(text: str, given: dict[str, Any], **flags: Any) -> Gradient:
    """The gradient of that name with its settings; ``flags`` are those with a name of their own."""
    from paramagnet.learning.registries import GRADIENTS

    settings = GRADIENTS.settings(text, "--gradient")
    own = {name: value for name, value in given.items() if name in settings}
    return GRADIENTS.make(text, "--gradient", own | _drop_none(flags))


def make_optimizer(
    text: str,
    given: dict[str, Any],
    learning_rate: float | None,
    momentum: float,
    schedule: str | None = None,
) -> Optimizer:
    """The optimizer of that name with its settings; ``schedule`` is the text of one, without its rate."""
    from paramagnet.learning.registries import OPTIMIZERS
    from paramagnet.learning.schedule import read_schedule

    settings = OPTIMIZERS.settings(text, "--optimizer")
    own = {name: value for name, value in given.items() if name in settings}
    if momentum or "momentum" in settings:
        own["momentum"] = momentum
    if learning_rate is None and "learning_rate" in settings:
        default = settings["learning_rate"].default
        learning_rate = _RATE if default is inspect.Parameter.empty else None
    rate: Any = learning_rate
    if schedule is not None and "learning_rate" in settings:
        first = settings["learning_rate"].default if learning_rate is None else learning_rate
        rate = read_schedule(schedule, "--schedule", first)
    return OPTIMIZERS.make(text, "--optimizer", own | _drop_none({"learning_rate": rate}))


def make_scheme(text: str, given: dict[str, Any]) -> Scheme:
    """The scheme of that name with its settings, which may also stand in brackets behind the name."""
    from paramagnet.schemes import SCHEMES

    if "(" in text:
        return SCHEMES.parse(text, "--scheme")
    settings = SCHEMES.settings(text, "--scheme")
    own = {name: value for name, value in given.items() if name in settings}
    return SCHEMES.make(text, "--scheme", own)


def refuse_unused(given: dict[str, Any], *made: Any) -> None:
    """An error if a setting belongs to none of the classes that are used."""
    fields = {type(thing).__name__: [*inspect.signature(type(thing)).parameters] for thing in made}
    used = {name for names in fields.values() for name in names}
    for name in given:
        if name not in used:
            classes = " and ".join(name for name, names in fields.items() if names)
            flag = "--" + name.replace("_", "-")
            listed = sorted(used - set(_TAKEN) - _FLAGS.keys())
            raise ValueError(f"`{flag}` is not a setting of {classes}; they have {', '.join(listed)}.")


def _drop_none(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
