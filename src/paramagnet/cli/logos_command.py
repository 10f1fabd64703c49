"""``paramagnet logos``: what hidden units read, or the letters of a family, drawn as letters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.sequence_points import is_sequence_file, read_training_sequences, weigh_sequences
from paramagnet.cli.table_options import AlphabetOption, InsertionsOption, TableOptions, UnknownOption

if TYPE_CHECKING:
    from paramagnet.rbm import RBM

_MOST_LOGOS = 50  # below each other in one figure


def logos(
    source: Annotated[
        Path, typer.Argument(help="A machine (.safetensors) that learned sequences, or a file of sequences.")
    ],
    out: Annotated[Path, typer.Option(help="Where to draw the logos: .png, .svg or .pdf.")],
    n_units: Annotated[
        int | None, typer.Option(help="How many hidden units, those of largest weights; 3 if not given.")
    ] = None,
    units: Annotated[
        str | None, typer.Option(help="Hidden units by number from 1, with commas, in place of --n-units.")
    ] = None,
    reweight: Annotated[
        float | None,
        typer.Option(metavar="IDENTITY", help="Weigh sequences by similarity, as in `train --reweight`."),
    ] = None,
    alphabet: AlphabetOption = None,
    unknown_letters: UnknownOption = None,
    insertions: InsertionsOption = None,
) -> None:
    """Draw sequence logos: the weights of a machine's hidden units, or the frequencies of a family.

    Of a machine, letters above the axis switch a hidden unit on and those below it switch it off. Of a file
    of sequences, the height of a site is its information in nats, which its letters share by their
    frequencies.
    """
    from paramagnet._files import writable_target
    from paramagnet.cli.console import say
    from paramagnet.cli.points_source import unknown_source
    from paramagnet.plots import check_figure_path, save_figure

    check_figure_path(out)
    writable_target(out)
    if not source.exists():
        raise ValueError(unknown_source(source, "SOURCE"))
    if is_sequence_file(source):
        if units is not None or n_units is not None:
            raise ValueError("`--units` and `--n-units` are for machines; leave them out for sequences.")
        options = TableOptions(alphabet=alphabet, unknown=unknown_letters, insertions=insertions)
        save_figure(_draw_family(source, options, reweight), out)
        say(f"frequencies: {out}")
        return
    if source.suffix.lower() != ".safetensors":
        raise ValueError(
            "`SOURCE` must be a machine (.safetensors) or a file of sequences (.fa, .fasta, .txt), got "
            f"{str(source)!r}."
        )
    given = {
        "--reweight": reweight, "--alphabet": alphabet, "--unknown-letters": unknown_letters,
        "--insertions": insertions,
    }  # fmt: skip
    for flag, value in given.items():
        if value is not None:
            raise ValueError(f"`{flag}` is for files of sequences (.fa, .fasta, .txt); leave it out.")
    figure, drawn = _draw_units(source, n_units, units)
    save_figure(figure, out)
    numbers = ", ".join(str(unit + 1) for unit in drawn)
    say(f"hidden unit{'s' if len(drawn) > 1 else ''} {numbers}: {out}")


def _draw_family(path: Path, options: TableOptions, reweight: float | None) -> Any:
    """The logo of the frequencies in a file of sequences."""
    from paramagnet.data.similarity import site_frequencies
    from paramagnet.sequence_plots import plot_frequencies

    alignment = read_training_sequences(path, None, options)
    weights = alignment.counts
    if reweight is not None:
        weights = weigh_sequences(alignment.data.astype("float64"), reweight, weights)
    frequencies = site_frequencies(alignment, sample_weight=weights)
    return plot_frequencies(frequencies, alignment.alphabet, sites=alignment.site_names)


def _draw_units(path: Path, n_units: int | None, units: str | None) -> tuple[Any, list[int]]:
    """The logos of hidden units of a machine, and which were drawn."""
    from paramagnet.cli.points_source import read_machine_notes
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.rbm import RBM
    from paramagnet.sequence_plots import plot_logos

    rbm = RBM.load(path)
    known = read_machine_notes(path)[0]
    if not isinstance(known, SequencePreparation):
        raise ValueError(
            f"`SOURCE` must be a machine that `paramagnet train` made from a file of sequences, whose file "
            f"keeps the alphabet, or a file of sequences, got {path}."
        )
    chosen = _choose_units(rbm, n_units, units)
    width = rbm.hidden.width
    if len(chosen) * width > _MOST_LOGOS:
        flag = "--n-units" if units is None else "--units"
        raise ValueError(f"`{flag}` must give at most {_MOST_LOGOS} logos, got {len(chosen) * width}.")
    columns = [unit * width + state for unit in chosen for state in range(width)]
    states = [""] if width == 1 else [f", state {state}" for state in range(width)]
    return plot_logos(
        rbm.to_zero_sum().weights_by_state[:, :, columns].transpose(2, 0, 1),
        known.alphabet,
        sites=known.site_names,
        titles=[f"hidden unit {unit + 1}{state}" for unit in chosen for state in states],
    ), chosen


def _choose_units(rbm: RBM, n_units: int | None, units: str | None) -> list[int]:
    """Places of the hidden units to draw, from 0."""
    import numpy as np

    from paramagnet._checks import as_count

    if units is None:
        count = as_count(3 if n_units is None else n_units, "--n-units")
        norms = np.linalg.norm(rbm.weights.reshape(len(rbm.weights), rbm.n_hidden, -1), axis=(0, 2))
        return [int(unit) for unit in np.argsort(-norms, kind="stable")[:count]]
    if n_units is not None:
        raise ValueError("`--units` and `--n-units` exclude each other; give one of them.")
    names = list(dict.fromkeys(name.strip() for name in units.split(",")))
    if not all(name.isdecimal() and 1 <= int(name) <= rbm.n_hidden for name in names):
        raise ValueError(
            f"`--units` must be numbers from 1 to {rbm.n_hidden} with commas between them, got {units!r}."
        )
    return [int(name) - 1 for name in names]
