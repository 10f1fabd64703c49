"""Error messages of a command: the library's arguments are replaced by the flags of the command."""

from __future__ import annotations

import re
import shlex
from typing import Any

from typer.core import TyperGroup

# Flags whose names differ from those of the library's arguments.
_OPTIONS = {
    "n_visible": "visible_units",
    "n_hidden": "hidden_units",
    "n_chains": "chains",
    "n_samples": "samples",
    "n_steps": "steps",
    "n_threads": "threads",
    "n_temperatures": "temperatures",
    "n_points": "points",
    "evaluate": "evaluate_every",
    "gains": "gain",
    "schemes": "scheme",
    "binarize": "method",
    "name": "source",
    "most_categories": "categories",
    "rng": "seed",
    "unknown": "unknown_letters",
    "patience": "early_stopping",
    "b": "visible_bias",
    "c": "hidden_bias",
}
# Words of notes and remedies that only Python has, and what a command has in their place.
_PYTHON = {
    "with centred=True": "with `--centred`",
    "start from `initialize(visible_bias='data', data=...)`": "start from `--visible-bias data`",
    "start from visible_bias='data'": "start from `--visible-bias data`",
    "`sample(method='tempering')`": "`paramagnet sample --method tempering`",
    "train with `Tempering`": "train with `--gradient tempering`",
    "To change it, start a new run from the machine `state.rbm`.": "To change it, start a new run: leave out "
    "`--resume`.",
    "; `TrainResult.best` is that one": "",
    "`Adam('linear')`": "`--schedule linear`",
    "`early_stopping=EarlyStopping()`": "`--early-stopping 5`",
}
# The help of a command with many options shows them under these headings; others stay under "Options".
_PANELS = {
    "Table (.csv, .tsv, .parquet, .arff)": (
        "columns", "drop", "label", "no_label", "missing", "missing_values", "numbers", "categories",
        "header", "decimal",
    ),
    "Sequences (.fa, .fasta, .txt)": ("alphabet", "unknown_letters", "insertions", "reweight"),
    "Machine and start": (
        "visible_units", "hidden_units", "visible", "hidden", "visible_bias", "hidden_bias", "scheme", "gain",
    ),
    "Learning": (
        "recipe", "epochs", "seconds", "batch_size", "gradient", "exact", "pcd", "chains", "steps",
        "optimizer", "learning_rate", "schedule", "momentum", "weight_decay", "l1", "l1_group", "clip",
        "centred", "guard", "early_stopping", "sample_weight",
    ),
    "Measuring": ("evaluate_every", "evaluate_at", "held_out", "validation", "validation_weight", "plot"),
}  # fmt: skip
_FEWEST_FOR_PANELS = 25  # options
_NAME = re.compile(r"`([a-z_][a-z0-9_]*)(=True|=False|='[^`]*'|=\d+)?`")
_QUOTE = "'"
# The remedy for a doubtful header of a .csv in commands that have no flag for it.
_CONVERT = "paramagnet data binarize IN OUT.npy"


class FlagGroup(TyperGroup):
    """Commands whose errors name flags in place of the library's arguments."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``, False if it is not given.

        Typer would convert its own default, None, and import pydantic for that (0.08 s of processor time).
        """
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
            hide_type(option)
        return option

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, whose help shows flags without a type: ``--json``, not ``--json <bool>``."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            for option in (*command.params, command.get_help_option(ctx)):
                hide_type(option)
            _set_panels(command.params)
            command.help = _join_lines(command.help)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, ArithmeticError, RuntimeError) as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if len(error.args) >= 1 and isinstance(error.args[0], str) and command is not None:
                error.args = (name_flags(error.args[0], flags_of(command)), *error.args[1:])
            raise


def hide_type(option: Any) -> None:
    """Let the help show an option that takes no value without a type."""
    if getattr(option, "is_flag", False) and hasattr(option, "display_type_rich"):
        option.display_type_rich = lambda ctx: None


def _set_panels(params: list[Any]) -> None:
    """Put the options of a long help under headings, in the order in which they were declared."""
    options = [option for option in params if option.param_type_name == "option"]
    if len(options) < _FEWEST_FOR_PANELS:
        return
    panel_of = {name: title for title, names in _PANELS.items() for name in names}
    for option in options:
        option.rich_help_panel = panel_of.get(option.name)


def _join_lines(text: str | None) -> str | None:
    """A help text whose paragraphs are one line each, so that they are broken where the terminal ends."""
    if text is None:
        return None
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def flags_of(command: Any) -> dict[str, str]:
    """How each parameter of a command is written: ``--n-samples``, ``DATA``; of one that can be denied also
    ``--no-header``, as ``header=False``.
    """
    flags = {}
    for parameter in command.params:
        option = parameter.param_type_name == "option"
        flags[parameter.name] = parameter.opts[0] if option else (parameter.metavar or parameter.name.upper())
        if option and parameter.secondary_opts:
            flags[f"{parameter.name}=False"] = parameter.secondary_opts[0]
    return flags


def name_flags(message: str, flags: dict[str, str]) -> str:
    """``message`` with flags in place of arguments, and "the file" in place of a ``path``.

    An argument that is no option of the command, by its own name or another, stays as it is.
    """
    for words, instead in _PYTHON.items():
        message = message.replace(words, instead)

    def replace(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        flag = flags.get(name) or flags.get(_OPTIONS.get(name, ""))
        if value == "=False":
            flag = flags.get(f"{name}=False") or flags.get(f"no_{name}")
        if flag is None and name == "header" and value:
            flag = f"{_CONVERT} {'--header' if value == '=True' else '--no-header'}"
        if flag is not None and value and value not in ("=True", "=False"):
            return f"`{flag} {shlex.quote(value[1:].strip(_QUOTE))}`"
        if flag is not None:
            return f"`{flag}`"
        if name == "source":
            return "The table" if match.start() == 0 else "the table"
        if name == "path" and message.startswith(" must be '", match.end()):
            return "`--path`"  # one of several texts: a setting of tempering, and no file
        if name == "path":
            return "The file" if match.start() == 0 else "the file"
        return match[0]

    return _NAME.sub(replace, message)
