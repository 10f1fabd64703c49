"""``paramagnet sample``: states of a machine, to a file of numbers or an image."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.console import say
from paramagnet.cli.csv_output import write_columns
from paramagnet.cli.interruptions import AGAIN, interruptible
from paramagnet.cli.points_file import as_levels
from paramagnet.cli.points_source import read_machine_notes
from paramagnet.cli.sequence_points import is_sequence_file, read_clamped_sequences, read_machine_sequences

if TYPE_CHECKING:
    from paramagnet.data.preparation import Preparation
    from paramagnet.data.sequence_preparation import SequencePreparation
    from paramagnet.rbm import RBM
    from paramagnet.units import FloatArray

_METHODS = ("auto", "exact", "gibbs", "tempering", "trajectory")
_ARRAYS = (".npy", ".npz", ".csv")
_SEQUENCES = (".fa", ".fasta")
_SAMPLES, _COMPLETIONS = 100, 9  # unless told otherwise
_MOST_IMAGES = 10_000
_ACCEPTANCE = 0.3  # that of `sample`, without its kernels


def sample(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write them: .npy, .npz or .csv; .fa or .fasta for sequences; .png, .svg or .pdf "
            "for images."
        ),
    ],
    n_samples: Annotated[
        int | None,
        typer.Option(help="Number of states to draw: 100 if not given; with --clamp, 9 for each row."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="How to draw: auto, exact, gibbs, tempering or trajectory.")
    ] = "auto",
    steps: Annotated[int, typer.Option(help="Number of Gibbs sweeps where samples are not exact.")] = 1000,
    clamp: Annotated[
        Path | None,
        typer.Option(help="Values to hold fixed, a state per row; missing cells or NaN are free."),
    ] = None,
    scaled: Annotated[
        str, typer.Option("--path", help="What tempering scales: weights or energy.")
    ] = "weights",
    base: Annotated[
        Path | None,
        typer.Option(help="Data whose means tempering starts from; those of a pilot run if not given."),
    ] = None,
    trajectory: Annotated[
        list[Path] | None,
        typer.Option(help="A machine or a checkpoint of the training run; repeat it, the earliest first."),
    ] = None,
    n_replicas: Annotated[
        str,
        typer.Option(
            metavar="<int>",
            help="Machines that tempering goes through; auto takes as few as have --acceptance.",
        ),
    ] = "auto",
    acceptance: Annotated[
        float, typer.Option(help="Share of accepted swaps that tempering and trajectory are laid out for.")
    ] = _ACCEPTANCE,
    shape: Annotated[
        str | None, typer.Option(help="Shape of an image, HEIGHTxWIDTH; a square if not given.")
    ] = None,
    columns: Annotated[
        int | None,
        typer.Option(help="Number of images side by side; if not given, they fill about a square."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw.")] = None,
    states: Annotated[
        bool, typer.Option("--states", help="Write the values of units to a .csv, not the user's columns.")
    ] = False,
) -> None:
    """Draw independent visible states from a machine: exactly where affordable, else by Gibbs sampling.

    Gibbs chains start at random; whether --steps are enough depends on the machine. For machines with several
    modes use --method tempering, or --method trajectory with machines or checkpoints of the training run.

    A machine that was trained on a table writes such a table to a .csv, with the same columns; a number that
    was cut at a threshold is the median of its side. --clamp takes such a table, too: missing cells are free,
    and the others are written as they are.

    A machine that was trained on sequences writes sequences to --out samples.fa. --clamp takes sequences,
    too: sites with a letter that is not in the alphabet, such as X or ?, are free.

    --out samples.png draws them as images, if the visible units fill a square or with --shape.

    --clamp completes images: each row of the file is completed --n-samples times, by Gibbs sampling. In the
    picture the row itself comes first, with its free pixels in blue.
    """
    import numpy as np

    from paramagnet._checks import shown_near
    from paramagnet._files import writable_target
    from paramagnet._parallel import count_cores
    from paramagnet.cli.console import Bar
    from paramagnet.exact.sums import sample_exact
    from paramagnet.plots import FORMATS, check_figure_path
    from paramagnet.rbm import RBM

    images = tuple(f".{name}" for name in FORMATS)
    drawn = out.suffix.lower() in images
    if drawn:
        check_figure_path(out)
    elif out.suffix.lower() not in _ARRAYS + _SEQUENCES:
        known = ", ".join((*_ARRAYS, *_SEQUENCES, *images))
        raise ValueError(f"`--out` must end in one of {known}, got {str(out)!r}.")
    writable_target(out)
    if not drawn and (shape is not None or columns is not None):
        raise ValueError(f"`--shape` and `--columns` are for images; `--out` is {str(out)!r}.")
    if columns is not None and columns < 1:
        raise ValueError(f"`--columns` must be a positive integer, got {columns}.")
    if method not in _METHODS:
        raise ValueError(
            f"`--method` must be one of {', '.join(_METHODS)}, got {shown_near(method, _METHODS)}."
        )
    if method == "exact" and clamp is not None:
        raise ValueError("`--clamp` needs `--method gibbs`: exact samples are of all units.")
    if trajectory and method != "trajectory":
        raise ValueError(f"`--trajectory` needs `--method trajectory`, got {method!r}.")
    for flag, given in (
        ("--base", base is not None),
        ("--path", scaled != "weights"),
        ("--n-replicas", n_replicas != "auto"),
        ("--acceptance", acceptance != _ACCEPTANCE and method != "trajectory"),
    ):
        if given and method != "tempering":
            raise ValueError(f"`{flag}` needs `--method tempering`, got {method!r}.")
    rbm, n_threads = RBM.load(model), count_cores()
    preparation, _ = read_machine_notes(model)
    from paramagnet.data.preparation import Preparation
    from paramagnet.data.sequence_preparation import SequencePreparation

    lettered = preparation if out.suffix.lower() in _SEQUENCES else None
    if out.suffix.lower() in _SEQUENCES and not isinstance(lettered, SequencePreparation):
        raise ValueError(
            f"`--out` must be a file of numbers, for example samples.csv, got {str(out)!r}: the machine was "
            "not trained on sequences, so its file has no alphabet."
        )
    image_shape = as_image_shape(shape, rbm.n_visible) if drawn else (0, 0)
    held, cells = (None, None) if clamp is None else _read_clamp(clamp, rbm, preparation)
    n_samples = n_samples if n_samples is not None else _SAMPLES if held is None else _COMPLETIONS
    n_images = n_samples if held is None else len(held) * (n_samples + 1)
    if drawn and n_images > _MOST_IMAGES:
        raise ValueError(
            f"`--n-samples` must give at most {_MOST_IMAGES} images to be drawn, got {n_images}. "
            "Write numbers instead, for example `--out samples.npz`."
        )
    with interruptible(lambda: AGAIN):
        if method in ("auto", "exact") and clamp is None and _affordable(rbm, method, n_threads):
            with Bar("enumeration") as bar:
                drawn_states = sample_exact(rbm, n_samples, rng=seed, n_threads=n_threads, progress=bar.show)
            how = "exact samples"
        else:
            fixed = None if held is None else np.repeat(held, n_samples, axis=0)
            count = n_samples if fixed is None else len(fixed)
            options = {
                "path": scaled,
                "base": base,
                "trajectory": trajectory,
                "n_replicas": int(n_replicas) if n_replicas.isdecimal() else n_replicas,
                "acceptance": acceptance,
                "preparation": preparation,
            }
            drawn_states, how = _draw_states(rbm, count, method, steps, fixed, seed, options)
        if drawn:
            _draw(out, drawn_states, held, image_shape, columns)
        elif isinstance(lettered, SequencePreparation):
            lettered.write(out, drawn_states)
        elif isinstance(preparation, Preparation) and out.suffix.lower() == ".csv" and not states:
            write_columns(out, preparation, drawn_states, cells)
        else:
            _write(
                out,
                drawn_states,
                whole=all(value.is_integer() for value in rbm.visible.values or (math.nan,)),
            )
    of_each = "" if held is None else f", {n_samples} for each of {len(held)} clamped rows"
    say(f"{len(drawn_states)} {how}{of_each}: {out}")


def _draw_states(
    rbm: RBM,
    n_samples: int,
    method: str,
    steps: int,
    clamp: FloatArray | None,
    seed: int | None,
    options: dict[str, Any],
) -> tuple[FloatArray, str]:
    """States by Markov chains, and how they were made, in words."""
    from paramagnet.cli.console import Bar
    from paramagnet.sampling.chains import sample
    from paramagnet.sampling.tempering import check_options, temper

    common: dict[str, Any] = {"n_steps": steps, "clamp": clamp, "rng": seed}
    if method not in ("tempering", "trajectory"):
        with Bar("Gibbs sweeps") as bar:
            states = sample(rbm, n_samples, progress=bar.show, **common)
        return states, f"samples after {steps} Gibbs sweeps from random states"
    base = None if options["base"] is None else _read_base(options["base"], rbm, options["preparation"])
    files: list[Path] | None = options["trajectory"]
    machines = None if files is None else [_load_machine(file) for file in files]
    settings = options["n_replicas"], options["acceptance"]
    own = check_options(method, options["path"], base, machines, *settings)
    with Bar("rounds of tempering") as bar:
        found = temper(rbm, n_samples, progress=bar.show, **common, **(own or {}))
    return found.states, f"samples after {steps} rounds of tempering ({found})"


def _load_machine(path: Path) -> RBM:
    """The machine in a file; that of a checkpoint, where ".checkpoint" is a part of the name."""
    from paramagnet.learning.state import load_checkpoint
    from paramagnet.rbm import RBM

    return load_checkpoint(path).rbm if ".checkpoint" in path.suffixes else RBM.load(path)


def as_image_shape(shape: str | None, n_visible: int) -> tuple[int, int]:
    """Height and width from ``HxW``, or of a square."""
    if shape is None:
        side = math.isqrt(n_visible)
        if side**2 != n_visible:
            raise ValueError(
                f"`--shape` must be given: {n_visible} visible units fill no square. Say HEIGHTxWIDTH, for "
                f"example `--shape {_some_shape(n_visible)}`, or write numbers, for example "
                "`--out samples.npy`."
            )
        return side, side
    match = re.fullmatch(r"(\d+)[x,](\d+)", shape.strip().lower())
    if match is None:
        raise ValueError(f"`--shape` must be HEIGHTxWIDTH, for example 28x28, got {shape!r}.")
    height, width = int(match[1]), int(match[2])
    if height * width != n_visible:
        raise ValueError(
            f"`--shape` must have a pixel for each of the {n_visible} visible units, got {shape!r}: "
            f"{height * width}."
        )
    return height, width


def _some_shape(n_visible: int) -> str:
    height = next(h for h in range(math.isqrt(n_visible), 0, -1) if n_visible % h == 0)
    return f"{height}x{n_visible // height}"


def _affordable(rbm: RBM, method: str, n_threads: int) -> bool:
    """Whether exact samples take little enough time."""
    from paramagnet.exact.cost import SECONDS_ALLOWED, estimate_seconds, show_duration, sizes_of

    seconds = estimate_seconds(*sizes_of(rbm), n_threads=n_threads, gradient=False)
    if method == "exact" and seconds > SECONDS_ALLOWED:
        raise ValueError(
            f"`--method exact` must take at most ten minutes, got about {show_duration(seconds)}. "
            "Try `--method gibbs`."
        )
    return method != "gibbs" and seconds <= SECONDS_ALLOWED


def _read_clamp(
    path: Path, rbm: RBM, preparation: Preparation | SequencePreparation | None
) -> tuple[FloatArray, dict[str, list[Any]] | None]:
    """The clamped states, and the cells that they come from where the file has the user's own columns."""
    from paramagnet.data.preparation import Preparation

    letters = read_clamped_sequences(path, preparation)
    if letters is not None:
        return letters, None
    if isinstance(preparation, Preparation) and path.suffix.lower() == ".csv":
        from paramagnet.data.columns import read_columns

        names, marks = preparation.column_names, preparation.missing_values
        table = read_columns(path, None, names, preparation.decimal, marks)
        return preparation.encode_known(table), preparation.known_cells(table)
    return _read_states(path, rbm, "--clamp"), None


def _read_base(path: Path, rbm: RBM, preparation: Any) -> FloatArray:
    if is_sequence_file(path):
        return read_machine_sequences(path, preparation, rbm.visible.name).data.astype("float64")
    return _read_states(path, rbm, "--base")


def _read_states(path: Path, rbm: RBM, flag: str) -> FloatArray:
    import numpy as np

    from paramagnet.data.files import read_table

    values = np.asarray(read_table(path, label=False).data, dtype=np.float64)
    if values.shape[1] != rbm.n_visible:
        raise ValueError(
            f"`{flag}` must have {rbm.n_visible} columns, one per visible unit, got {values.shape[1]}: "
            f"{path}."
        )
    return as_levels(values, path, rbm.visible.name)


def _draw(
    out: Path, states: FloatArray, held: FloatArray | None, image_shape: tuple[int, int], columns: int | None
) -> None:
    import numpy as np

    from paramagnet.plots import image_grid, save_figure

    if held is not None:  # one row of images for each row of the file, unless told otherwise
        groups = states.reshape(len(held), -1, states.shape[1])
        states = np.concatenate((held[:, None], groups), axis=1).reshape(-1, states.shape[1])
        columns = columns or groups.shape[1] + 1
    save_figure(image_grid(states, image_shape, n_columns=columns), out)


def _write(out: Path, states: FloatArray, *, whole: bool) -> None:
    """Write the states; whole numbers take one byte each, others are written in full."""
    import numpy as np

    from paramagnet._files import write_atomically

    buffer, small = io.BytesIO(), states.astype(np.int8) if whole else states
    if out.suffix.lower() == ".npy":
        np.save(buffer, small)
    elif out.suffix.lower() == ".npz":
        np.savez_compressed(buffer, data=small)
    else:
        np.savetxt(buffer, small, fmt="%d" if whole else "%.17g", delimiter=",")
    write_atomically(out, buffer.getvalue())
