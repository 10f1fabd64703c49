"""``paramagnet contacts``: which sites of a family of sequences depend on each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.interruptions import AGAIN, interruptible
from paramagnet.cli.points_file import read_weights
from paramagnet.cli.points_source import load_measured
from paramagnet.cli.score_command import check_csv
from paramagnet.cli.sequence_points import choose_weights, is_sequence_file
from paramagnet.cli.table_options import TableOptions

if TYPE_CHECKING:
    from paramagnet.couplings import Contact, Couplings


def contacts(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors), with categorical units.")],
    data: Annotated[
        Path,
        typer.Argument(help="Sequences, in which the couplings are averaged; the training's, for example."),
    ],
    n_contacts: Annotated[int, typer.Option(help="How many of the strongest pairs to print.")] = 10,
    least_distance: Annotated[
        int, typer.Option(help="How many sites the two of a pair must be apart at least.")
    ] = 4,
    method: Annotated[
        str,
        typer.Option(
            help="contexts: exact in each of --n-contexts sequences; second-order: from the variances of the "
            "hidden units, for hundreds of sites."
        ),
    ] = "contexts",
    n_contexts: Annotated[int, typer.Option(help="Sequences to average over, with --method contexts.")] = 100,
    with_gap: Annotated[
        bool, typer.Option("--with-gap", help="Count the gap among the letters; it is left out if not given.")
    ] = False,
    sample_weight: Annotated[
        Path | None, typer.Option(help="Weights of the sequences: a file with one number for each.")
    ] = None,
    reweight: Annotated[
        float | None,
        typer.Option(metavar="IDENTITY", help="Weigh sequences by similarity, as in `train --reweight`."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write all pairs, the strongest first (.csv).")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the map of the couplings: .png, .svg or .pdf.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the choice of sequences.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the pairs of sites that are coupled most in a machine: candidates for contacts.

    The effective coupling of two sites is the part of ln p that depends on both letters together, averaged
    over sequences; its strength is the Frobenius norm over the letters, less the average product (APC), which
    sites with many couplings share. Sites count from 1, without the columns of insertions. The error of
    the norm is that of the choice of sequences.
    """
    from paramagnet._files import writable_target
    from paramagnet.cli.console import Bar, say
    from paramagnet.couplings import effective_couplings, strongest_contacts
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.plots import check_figure_path
    from paramagnet.rbm import RBM

    if out is not None:
        check_csv(out, data)
        writable_target(out)
    if figure is not None:
        check_figure_path(figure)
        writable_target(figure)
    rbm = RBM.load(model)
    if rbm.visible.width == 1 or rbm.n_visible == 1:
        raise ValueError(
            "`MODEL` must have two or more categorical visible units, as `train` makes them for sequences, "
            f"got {rbm.n_visible} {rbm.visible} unit{'s' if rbm.n_visible > 1 else ''}: {model}."
        )
    source = load_measured(data, model, rbm.visible.name, TableOptions())
    weights = choose_weights(
        source.states, source.weights, read_weights(sample_weight), reweight, is_sequence_file(data)
    )
    known = source.preparation if isinstance(source.preparation, SequencePreparation) else None
    without = None
    if not with_gap and known is not None and "-" in known.alphabet:
        without = known.alphabet.index("-")
    with interruptible(lambda: AGAIN), Bar("couplings") as bar:
        couplings = effective_couplings(
            rbm, source.states, sample_weight=weights, method=method, n_contexts=n_contexts, without=without,
            rng=seed, progress=bar.show,
        )  # fmt: skip
    corrected = couplings.corrected
    found = strongest_contacts(corrected, n_contacts, least_distance=least_distance)
    names = None if known is None or _are_counted(known.site_names) else known.site_names
    if out is not None:
        from paramagnet.cli.csv_output import write_csv

        pairs = strongest_contacts(corrected, corrected.size, least_distance=1)
        records = [_record(pair, couplings, names) for pair in pairs]
        write_csv(out, tuple(records[0]), [tuple(record.values()) for record in records])
    if figure is not None:
        from paramagnet.plots import save_figure
        from paramagnet.sequence_plots import plot_contacts

        marked = [(pair.i, pair.j) for pair in found]
        save_figure(plot_contacts(corrected, marked, sites=names), figure)
    if as_json:
        record = {
            "method": method,
            "n_contexts": couplings.n_contexts,
            "without_gap": without is not None,
            "least_distance": least_distance,
            "contacts": [_record(pair, couplings, names) for pair in found],
        }
        typer.echo(json.dumps(record, allow_nan=False))
        return
    if not found:
        say(f"No two of {rbm.n_visible} sites are {least_distance} apart; choose a smaller --least-distance.")
    else:
        _print(found, couplings, names)
    gap = ", the gap left out" if without is not None else ""
    say(f"averaged over {couplings.n_contexts} sequences{gap}; sites at least {least_distance} apart")
    for what, path in (("all pairs", out), ("map", figure)):
        if path is not None:
            say(f"{what}: {path}")


def _are_counted(names: tuple[str, ...]) -> bool:
    """Whether all columns of the alignment are sites, so that their names say nothing new."""
    return names == tuple(str(site + 1) for site in range(len(names)))


def _record(pair: Contact, couplings: Couplings, names: tuple[str, ...] | None) -> dict[str, Any]:
    """One pair, with the columns of the alignment if they differ from the numbers of the sites."""
    columns = {} if names is None else {"column_i": int(names[pair.i]), "column_j": int(names[pair.j])}
    return {
        "site_i": pair.i + 1,
        "site_j": pair.j + 1,
        **columns,
        "coupling": pair.strength,
        "norm": float(couplings.strengths[pair.i, pair.j]),
        "norm_error": float(couplings.error[pair.i, pair.j]),
    }


def _print(found: list[Contact], couplings: Couplings, names: tuple[str, ...] | None) -> None:
    from rich.table import Table

    from paramagnet.cli.console import table_console

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("sites", *(() if names is None else ("columns",)), "coupling", "norm", "error of norm"):
        table.add_column(name, justify="right")
    for pair in found:
        columns = () if names is None else (f"{names[pair.i]}-{names[pair.j]}",)
        numbers = pair.strength, couplings.strengths[pair.i, pair.j], couplings.error[pair.i, pair.j]
        table.add_row(f"{pair.i + 1}-{pair.j + 1}", *columns, *(f"{number:.3f}" for number in numbers))
    table_console().print(table)
