"""Sequences for a command: read with the options of the user, or as the machine's file says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramagnet.cli.console import say
from paramagnet.cli.table_options import TableOptions, plain_warnings

if TYPE_CHECKING:
    from paramagnet.data.alignment import Alignment
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.units import FloatArray


def is_sequence_file(path: Path) -> bool:
    """Whether a file is there whose name is that of sequences."""
    from paramagnet.data.fasta import is_sequences
    from paramagnet.data.sources import SOURCES

    return str(path) not in SOURCES and path.exists() and is_sequences(path)


def unnamed(visible: str | None) -> bool:
    """Whether no type of units was given, or one without a number of states."""
    from paramagnet.data.alphabet import UNITS

    return visible is None or visible == UNITS


def read_training_sequences(data: Path, visible: str | None, options: TableOptions) -> Alignment:
    """The alignment to learn, in a few words on stderr; ``visible`` must be categorical if it is given."""
    from paramagnet.data.alignment import read_alignment
    from paramagnet.units import find_unit

    refuse_table_options(options, data)
    named = not unnamed(visible)
    if named and find_unit(str(visible), "--visible").width == 1:
        raise ValueError(f"`--visible` must be categorical for a file of sequences, got {visible}: {data}.")
    with plain_warnings():
        alignment = read_alignment(
            data,
            alphabet=options.alphabet,
            unknown=options.unknown or "gap",
            insertions=options.insertions or "drop",
        )
    if named:
        _require_letters(alignment, str(visible), data)
    say(f"{data}: {describe_alignment(alignment)}", err=True)
    return alignment


def count_of(number: int, noun: str) -> str:
    """A number with its noun, which takes an s unless it is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def describe_alignment(alignment: Alignment) -> str:
    """An alignment in one line."""
    sizes = f"{count_of(len(alignment), 'sequence')} of {count_of(alignment.n_sites, 'site')}"
    words = f"{sizes}, {len(alignment.alphabet)} letters"
    return f"{words}; {'; '.join(alignment.found)}."


def prepare_sequences(alignment: Alignment, options: TableOptions) -> SequencePreparation:
    """What the file of a machine keeps of the sequences that it learned."""
    from paramagnet.data.sequence_preparation import SequencePreparation

    return SequencePreparation.of(
        alignment, unknown=options.unknown or "gap", insertions=options.insertions or "drop"
    )


def read_machine_sequences(data: Path, preparation: Any, units: str) -> Alignment:
    """The alignment in a file, with the sites and letters that the machine's file keeps, if it does."""
    from paramagnet.data.sequence_preparation import SequencePreparation

    if isinstance(preparation, SequencePreparation):
        with plain_warnings():
            return preparation.read(data)
    if preparation is not None:
        raise ValueError(
            f"`DATA` must be a table like the one that the machine was trained on, got sequences: {data}."
        )
    return read_sequences(data, units)


def read_sequences(data: Path, units: str) -> Alignment:
    """The alignment in a file for a machine that keeps no alphabet; letters must be as many as states."""
    from paramagnet.data.alignment import read_alignment

    with plain_warnings():
        alignment = read_alignment(data)
    _require_letters(alignment, units, data)
    return alignment


def read_clamped_sequences(path: Path, preparation: Any) -> FloatArray | None:
    """Letters to hold fixed, NaN where a letter is not in the alphabet; None if the file has no sequences."""
    from paramagnet.data.sequence_preparation import SequencePreparation

    if not is_sequence_file(path) or not isinstance(preparation, SequencePreparation):
        return None
    return preparation.read_known(path)


def weigh_sequences(states: FloatArray, identity: float, counts: FloatArray | None = None) -> FloatArray:
    """The weights of sequences by similarity, times their counts, with a line about their sum."""
    from paramagnet.cli.console import Bar
    from paramagnet.data.similarity import sequence_weights

    if not 0.0 < identity <= 1.0:
        raise ValueError(f"`--reweight` must be a share of sites above 0 and at most 1, got {identity:g}.")
    with Bar("weights of sequences") as bar:
        weights = sequence_weights(states, identity, progress=bar.show)
    say(f"{weights.sum():.1f} effective sequences of {len(states)} (identity {identity:g})", err=True)
    return weights if counts is None else weights * counts


def choose_weights(
    states: FloatArray,
    counts: FloatArray | None,
    given: FloatArray | None,
    reweight: float | None,
    sequences: bool,
) -> FloatArray | None:
    """The weights of the points: those of a file, by similarity of sequences, or the counts in the data."""
    if reweight is not None:
        if not sequences:
            raise ValueError("`--reweight` is for sequences (.fa, .fasta, .txt); leave it out.")
        if given is not None:
            raise ValueError("`--reweight` and `--sample-weight` exclude each other; give one of them.")
        return weigh_sequences(states, reweight, counts)
    if given is None and counts is not None:
        say("counts of the sequences are their weights", err=True)
    if given is None:
        return counts
    from paramagnet._checks import as_sample_weight

    return as_sample_weight(given, "sample_weight", len(states))  # before the recipe is explained


def _require_letters(alignment: Alignment, units: str, data: Path) -> None:
    from paramagnet.units import find_unit

    unit = find_unit(units, "--visible")
    if unit.width != len(alignment.alphabet):
        raise ValueError(
            f"`{data}` must be read with as many letters as units have states, {unit} here, got "
            f"{len(alignment.alphabet)} letters ({alignment.alphabet})."
        )


def refuse_table_options(options: TableOptions, data: Path) -> None:
    """An error if anything was said about the columns of a table."""
    flags = ("columns", "drop", "label", "missing", "numbers", "categories", "header")
    for flag in flags:
        if getattr(options, flag) is not None:
            raise ValueError(f"`--{flag}` is for tables, got it for a file of sequences: {data}.")


def refuse_sequence_options(options: TableOptions) -> None:
    """An error if anything was said about letters, for data that are no sequences."""
    flags = {"--alphabet": options.alphabet, "--unknown-letters": options.unknown}
    for flag, value in {**flags, "--insertions": options.insertions}.items():
        if value is not None:
            raise ValueError(f"`{flag}` is for sequences (.fa, .fasta, .txt); leave it out.")
