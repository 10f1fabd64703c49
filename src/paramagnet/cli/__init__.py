"""The command line. Each command has a short file that parses, calls one public function and prints."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from paramagnet._version import __version__
from paramagnet.cli.beta_max_command import beta_max
from paramagnet.cli.compare_command import compare
from paramagnet.cli.console import say
from paramagnet.cli.curve_command import curve
from paramagnet.cli.data_command import app as data_app
from paramagnet.cli.evaluate_command import evaluate
from paramagnet.cli.fields import FieldCommand
from paramagnet.cli.flags import FlagGroup
from paramagnet.cli.merge_command import merge
from paramagnet.cli.report_command import report
from paramagnet.cli.reproduce_command import reproduce
from paramagnet.cli.sample_command import sample
from paramagnet.cli.schemes_command import schemes
from paramagnet.cli.sweep_command import sweep
from paramagnet.cli.table_command import table
from paramagnet.cli.train_command import train

app = typer.Typer(
    name="paramagnet",
    cls=FlagGroup,
    help="Initial weights, training and likelihoods for restricted Boltzmann machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paramagnet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """Initial weights, training and likelihoods for restricted Boltzmann machines."""


app.command("beta-max")(beta_max)
for _command in (curve, table, schemes, train, evaluate, sample, compare, sweep, reproduce, merge, report):
    app.command(cls=FieldCommand if _command is train else None)(_command)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the command line; errors in the input are printed as a sentence, without a traceback."""
    try:
        app()
    except MemoryError:
        say("paramagnet: not enough memory; ask for fewer units, points or samples.", err=True)
        sys.exit(2)
    except (ValueError, OSError, ArithmeticError, RuntimeError) as error:
        say(f"paramagnet: {error}", err=True)
        sys.exit(2)
