"""``paramagnet diagnose``: find faults of a trained machine, each with a remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.interruptions import AGAIN, interruptible
from paramagnet.cli.points_file import Header, read_points, read_weights
from paramagnet.cli.points_source import read_machine_notes
from paramagnet.cli.sequence_points import choose_weights, is_sequence_file, read_machine_sequences

if TYPE_CHECKING:
    from paramagnet.learning.diagnosis import Diagnosis
    from paramagnet.rbm import RBM
    from paramagnet.units import FloatArray


def diagnose(
    machine: Annotated[
        Path, typer.Argument(help="The machine, or a checkpoint (.checkpoint.safetensors) with its chains.")
    ],
    data: Annotated[
        Path,
        typer.Argument(help="The training points: .npy, .npz, .csv, .parquet, .arff, idx or .fa."),
    ],
    validation: Annotated[Path | None, typer.Option(help="Points that were held out.")] = None,
    sample_weight: Annotated[
        Path | None, typer.Option(help="Weights of the points: a file with one number for each.")
    ] = None,
    validation_weight: Annotated[
        Path | None, typer.Option(help="Weights of the points of --validation.")
    ] = None,
    reweight: Annotated[
        float | None,
        typer.Option(metavar="IDENTITY", help="Weigh sequences by similarity, as in `train --reweight`."),
    ] = None,
    chains: Annotated[int, typer.Option(help="Number of chains, unless a checkpoint has them.")] = 1000,
    steps: Annotated[int, typer.Option(help="Gibbs sweeps of every chain.")] = 1000,
    likelihood: Annotated[bool, typer.Option(help="Whether to compute or estimate ln Z, too.")] = True,
    seed: Annotated[int | None, typer.Option(help="Seed of the chains.")] = None,
    header: Header = None,
    figure: Annotated[Path | None, typer.Option(help="Draw what was measured: .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look for what is wrong with a trained machine, and say what helps.

    Chains are run and compared with the data: idle hidden units, mirrored and slow chains, means and
    covariances that differ, memorized points, a log-likelihood below that of independent units. Differences
    that chance explains are not reported. DATA are the points that the machine was trained on; where it
    learned them with weights, give these, too. Counts of sequences in DATA are their weights.
    """
    from paramagnet._files import writable_target
    from paramagnet.cli.console import Bar
    from paramagnet.learning.diagnosing import diagnose as look
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.plots import check_figure_path, save_figure

    if figure is not None:
        check_figure_path(figure)
        writable_target(figure)
    rbm, states = _load(machine)
    points, counts = _read(data, machine, rbm, header)
    held_out, held_out_counts = (
        (None, None) if validation is None else _read(validation, machine, rbm, header)
    )
    given = read_weights(sample_weight, header)
    weights = choose_weights(points, counts, given, reweight, is_sequence_file(data))
    held_out_weights = read_weights(validation_weight, header)
    with interruptible(lambda: AGAIN):
        with Bar("Gibbs sweeps") as bar:
            found = look(
                rbm,
                points,
                sample_weight=weights,
                chains=states,
                validation=held_out,
                validation_weight=held_out_counts if held_out_weights is None else held_out_weights,
                n_chains=chains,
                n_steps=steps,
                log_z=LogZ() if likelihood else None,
                rng=seed,
                progress=bar.show,
            )
        if figure is not None:
            from paramagnet.diagnosis_plot import plot_diagnosis

            save_figure(plot_diagnosis(**found.arrays()), figure)
    if as_json:
        typer.echo(json.dumps(found.to_record(), allow_nan=False))
    else:
        _print(found)


def _load(path: Path) -> tuple[RBM, Any]:
    """The machine in a file, and the chains of a checkpoint."""
    from paramagnet.learning.state import load_checkpoint
    from paramagnet.rbm import RBM

    if ".checkpoint" not in path.suffixes:
        return RBM.load(path), None
    state = load_checkpoint(path)
    return state.rbm, getattr(state.gradient_state, "chains", state.chains)  # tempering has its own, too


def _read(data: Path, machine: Path, rbm: RBM, header: bool | None) -> tuple[FloatArray, FloatArray | None]:
    """The points of a file, and how often each was seen where the file says so; sequences with the letters
    that the machine's file keeps.
    """
    if not is_sequence_file(data):
        return read_points(data, rbm.visible.name, header), None
    preparation = None if ".checkpoint" in machine.suffixes else read_machine_notes(machine)[0]
    alignment = read_machine_sequences(data, preparation, rbm.visible.name)
    return alignment.data.astype("float64"), alignment.counts


def _print(found: Diagnosis) -> None:
    from paramagnet.cli.console import say
    from paramagnet.cli.flags import name_flags

    rows = found.lines()
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        say(f"{name:{width}s}  {text}")
    if found.healthy:
        typer.echo("\nNothing is wrong.")
    for finding in found.findings:
        say(f"\n{finding.message}.")
        say(f"Remedy: {name_flags(finding.remedy, {})}.")
