"""Commands that are imported when they are called: `paramagnet --help` lists them without their modules."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from paramagnet.cli.flags import FlagGroup, hide_type


class Listed(NamedTuple):
    """A command that has not been imported: its module in this package, its function or `typer.Typer`,
    and its line in the help.
    """

    module: str
    attribute: str
    help: str


class LazyGroup(FlagGroup):
    """A group whose commands are listed in ``listed``, by name; subclasses fill it."""

    listed: ClassVar[dict[str, Listed]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _LazyCommands(self.listed)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of the list."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help with the lines of the list; `TyperGroup` would import all commands for them."""
        placeholders = dict(self.commands.items())
        plain = TyperGroup(name=self.name, commands=placeholders, params=self.params, help=self.help)
        for option in (*plain.params, plain.get_help_option(ctx)):
            hide_type(option)
        plain.format_help(ctx, formatter)


class _LazyCommands(dict[str, Any]):
    """Commands by name. `items` gives what there is; a command that is asked for by name is imported."""

    def __init__(self, listed: dict[str, Listed]) -> None:
        super().__init__({name: TyperCommand(name, help=item.help) for name, item in listed.items()})
        self._waiting = dict(listed)

    def __getitem__(self, name: str) -> Any:
        if name in self._waiting:
            self[name] = _load(name, self._waiting.pop(name))
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The command, or ``default``."""
        if name in self:
            return self[name]
        return default


def _load(name: str, item: Listed) -> Any:
    """Import a command."""
    found = getattr(import_module(f"paramagnet.cli.{item.module}"), item.attribute)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False)
        found.command(name)(function)
    command = typer.main.get_command(found)
    command.name = name
    return command
