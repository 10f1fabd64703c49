"""``paramagnet compare``: initial weights compared on the user's own data."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet._extras import how_to_install
from paramagnet.cli.console import say
from paramagnet.cli.interruptions import GO_ON, interruptible
from paramagnet.cli.points_file import DataArgument, Header
from paramagnet.cli.points_source import as_comparable
from paramagnet.cli.recipes import check_names
from paramagnet.cli.suggestions import suggest_hidden_units
from paramagnet.cli.table_options import (
    CategoriesOption,
    ColumnsOption,
    DecimalOption,
    DropOption,
    LabelOption,
    MissingOption,
    MissingValuesOption,
    NoLabel,
    NumbersOption,
    TableOptions,
)

if TYPE_CHECKING:
    from paramagnet.sweeps.compare import InitializationComparison, Standing
    from paramagnet.sweeps.sweep import SweepProgress

_LINE_SECONDS = 30.0  # seconds between two lines about the progress
_NOT_KEPT = "interrupted: the runs are lost; with `--out FOLDER` they are kept, and the same command goes on."


def compare(
    data: DataArgument,
    hidden_units: Annotated[
        int | None, typer.Option(help="Number of hidden units; chosen with a stated reason if not given.")
    ] = None,
    visible: Annotated[str, typer.Option(help="Visible units: spin or bit.")] = "spin",
    hidden: Annotated[str, typer.Option(help="Hidden units: bit or spin.")] = "bit",
    hidden_bias: Annotated[float, typer.Option(help="Hidden bias at the start.")] = 0.0,
    gain: Annotated[
        list[float] | None,
        typer.Option(help="Factor on beta_max; repeat it for several. 1/4 to 4 if not given."),
    ] = None,
    scheme: Annotated[
        list[str] | None, typer.Option(help="A scheme to compare; repeat it for several. All if not given.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="How many times to go through the data.")] = 100,
    trials: Annotated[
        int, typer.Option(help="Number of trials: trainings from each start, with other seeds.")
    ] = 5,
    learning_rate: Annotated[float, typer.Option(help="Learning rate of Adam.")] = 1e-3,
    batch_size: Annotated[int | None, typer.Option(help="Points per update; all if not given.")] = None,
    centred: Annotated[
        bool, typer.Option("--centred", help="Centred learning, around the means of the units.")
    ] = False,
    held_out: Annotated[float, typer.Option(help="Share of points held out: measured, not learned.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes, with one run each.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the records, the table and the curves.")
    ] = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    missing: MissingOption = None,
    numbers: NumbersOption = None,
    categories: CategoriesOption = None,
    header: Header = None,
    decimal: DecimalOption = None,
    missing_values: MissingValuesOption = None,
) -> None:
    """Train from several initial scales and say which is best on these data, and how sure that is.

    With --out the same command goes on after an interruption.
    """
    from paramagnet.sweeps.compare import compare_initializations
    from paramagnet.sweeps.groups import GAINS, RIVALS

    check_names((visible, hidden), scheme or ())
    options = TableOptions(
        columns, drop, label, no_label, missing, numbers, categories, header,
        decimal=decimal, missing_values=missing_values,
    )  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as scratch,
        interruptible(lambda: GO_ON if out is not None else _NOT_KEPT),
    ):
        source, n_visible = as_comparable(data, visible, options, out or Path(scratch))
        if hidden_units is None:
            hidden_units, reason = suggest_hidden_units(n_visible)
            say(reason, err=True)
        comparison = compare_initializations(
            source,
            hidden_units,
            visible=visible,
            hidden=hidden,
            hidden_bias=hidden_bias,
            gains=gain or GAINS,
            schemes=scheme or RIVALS,
            epochs=epochs,
            trials=trials,
            learning_rate=learning_rate,
            batch_size=batch_size,
            centred=centred,
            held_out=held_out,
            seed=seed,
            jobs=jobs,
            folder=out,
            callback=_Lines().show,
        )
    for failure in comparison.failures:
        say(f"failed: {failure}", err=True)
    _print_table(comparison, data.name)
    say(comparison.recommendation)
    if out is not None:
        _write(comparison, out)


def _print_table(comparison: InitializationComparison, name: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from paramagnet.cli.console import table_console

    setting = comparison.setting
    table = Table(
        title=f"{escape(name)}: {setting.n_visible} {setting.visible} and {setting.n_hidden} "
        f"{setting.hidden} units, c = {setting.c:g}, after {comparison.epoch} epochs",
        caption=f"Nats per point, standard deviation over trials; {comparison.gradient}.\n"
        "behind: the best minus this one over the same trials, with its standard error;\n"
        "~ where the two cannot be told apart at 95 % confidence.",
        caption_justify="left",
    )
    shown = any(standing.held_out.n_finite for standing in comparison.standings)
    table.add_column("start")
    headings = ["sigma", "trials", "log-likelihood", "behind", *(["held out"] if shown else [])]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for place, standing in enumerate(comparison.standings):
        cells = _cells(standing, place)
        table.add_row(*(cells if shown else cells[:-1]), style="bold" if place == 0 else None)
    table_console().print(table)


def _cells(standing: Standing, place: int) -> list[str]:
    from paramagnet.sweeps.compare import plain_label

    ours, behind = standing.log_likelihood, standing.behind
    spread = f" ({ours.std:.3f})" if ours.n_finite > 1 else ""
    gap = "" if place == 0 else f"{behind.mean:.3f}"
    if place and behind.n_finite > 1:
        gap += f" +- {behind.error:.3f}" + (" ~" if standing.equals_best else "  ")
    return [
        plain_label(standing.start),
        f"{standing.sigma:.3g}",
        f"{ours.n_trials}",
        f"{ours.mean:.3f}{spread}",
        gap,
        f"{standing.held_out.mean:.3f}",
    ]


def _write(comparison: InitializationComparison, out: Path) -> None:
    from paramagnet.sweeps.results_table import to_sheet
    from paramagnet.sweeps.text_tables import to_csv, to_markdown

    table = comparison.table()
    (out / "table.csv").write_text(to_csv(table), encoding="utf-8")
    text = f"# {table.title}\n\n{to_markdown(to_sheet(table))}\n{comparison.recommendation}\n"
    (out / "table.md").write_text(text, encoding="utf-8")
    typer.echo(f"table: {out / 'table.md'}, {out / 'table.csv'}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        say(f"no curves: figures need matplotlib, {how_to_install('plot')}.", err=True)
        return
    from paramagnet.plots import save_figure
    from paramagnet.sweeps.curves import draw_learning_curves

    save_figure(draw_learning_curves(comparison.runs, [comparison.setting]), out / "curves.png")
    typer.echo(f"curves: {out / 'curves.png'}")


class _Lines:
    """Prints a line about the progress every few seconds."""

    def __init__(self) -> None:
        self._printed = time.monotonic()

    def show(self, progress: SweepProgress) -> None:
        """Print the progress; called after every run."""
        now = time.monotonic()
        if now - self._printed >= _LINE_SECONDS and progress.new:
            self._printed = now
            typer.echo(
                f"{progress.done} of {progress.total} runs, about {progress.seconds_left:.0f} s left",
                err=True,
            )
