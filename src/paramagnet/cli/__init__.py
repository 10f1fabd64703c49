"""The command line. Each command has a short file that parses, calls one public function and prints.

A command is imported when it is called, and its file imports NumPy and the library inside its functions, so
that `paramagnet --version` and every `--help` answer at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, ClassVar

import typer

from paramagnet._version import __version__
from paramagnet.cli.console import compilations_shown, say
from paramagnet.cli.lazy_group import LazyGroup, Listed


class _Commands(LazyGroup):
    """The commands, with their lines in the help: the first paragraph of each one's own help."""

    listed: ClassVar[dict[str, Listed]] = {
        "beta-max": Listed(
            "beta_max_command",
            "beta_max",
            "Print beta_max and the standard deviation of the initial weights for a machine of these sizes.",
        ),
        "curve": Listed(
            "curve_command",
            "curve",
            "Draw |chi_vh| against beta for several alpha and hidden biases, with the maxima marked.",
        ),
        "table": Listed(
            "table_command",
            "table",
            "Print every beta_max of the paper's appendix C with the value computed here.",
        ),
        "schemes": Listed(
            "schemes_command",
            "schemes",
            "Compare initial scales: every scheme for these sizes, and what other packages do by default.",
        ),
        "train": Listed("train_command", "app", "Train a machine and write it to a file."),
        "evaluate": Listed(
            "evaluate_command",
            "evaluate",
            "Print the log-likelihood of data under a machine, in nats per point.",
        ),
        "sample": Listed(
            "sample_command",
            "sample",
            "Draw independent visible states from a machine: exactly where affordable, "
            "else by Gibbs sampling.",
        ),
        "diagnose": Listed(
            "diagnose_command",
            "diagnose",
            "Look for what is wrong with a trained machine, and say what helps.",
        ),
        "score": Listed(
            "score_command", "score", "Write the log-likelihood of each row of a table, in nats, to a .csv."
        ),
        "transform": Listed(
            "transform_command",
            "transform",
            "Write the hidden features of each row of a table, the means of the hidden units, to a .csv.",
        ),
        "contacts": Listed(
            "contacts_command",
            "contacts",
            "Print the pairs of sites that are coupled most in a machine: candidates for contacts.",
        ),
        "logos": Listed(
            "logos_command",
            "logos",
            "Draw sequence logos: the weights of a machine's hidden units, or the frequencies of a family.",
        ),
        "compare": Listed(
            "compare_command",
            "compare",
            "Train from several initial scales and say which is best on these data, and how sure that is.",
        ),
        "sweep": Listed(
            "sweep_command",
            "sweep",
            "Run the sweep of a specification, as far as it has not been run yet, and print its tables.",
        ),
        "reproduce": Listed(
            "reproduce_command",
            "reproduce",
            "Run the paper's experiments, as far as they have not been run yet.",
        ),
        "merge": Listed(
            "merge_command",
            "merge",
            "Put the records of several computers together, each run once.",
        ),
        "report": Listed(
            "report_command",
            "report",
            "Write a report: every table and figure of the paper that has records, and how far they agree.",
        ),
        "data": Listed("data_command", "app", "List, inspect, fetch and binarize data."),
        "doctor": Listed(
            "doctor_command",
            "doctor",
            "Say which versions, extras, data folders, threads and kernels are in use, and try them out.",
        ),
    }

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for; say when it compiles, unless it prints JSON."""
        with compilations_shown(wanted="--json" not in ctx.args):
            return super().invoke(ctx)


app = typer.Typer(
    name="paramagnet",
    cls=_Commands,
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
