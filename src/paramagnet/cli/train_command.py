"""``paramagnet train``: a machine from a data file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.console import say
from paramagnet.cli.fields import (
    FieldCommand,
    given_settings,
    make_gradient,
    make_optimizer,
    make_scheme,
    refuse_unused,
)
from paramagnet.cli.history import (
    as_epochs,
    print_history,
    print_level,
    quiet_training,
)
from paramagnet.cli.interruptions import interruptible
from paramagnet.cli.points_file import DataArgument, Header, read_weights
from paramagnet.cli.points_source import load_training, load_validation
from paramagnet.cli.suggestions import suggest_epochs, suggest_hidden_units
from paramagnet.cli.table_options import (
    CategoriesOption,
    ColumnsOption,
    DropOption,
    LabelOption,
    MissingOption,
    NoLabel,
    NumbersOption,
    TableOptions,
)
from paramagnet.cli.training_bar import TrainingBar

if TYPE_CHECKING:
    from paramagnet.learning.gradients.base import Gradient
    from paramagnet.learning.result import TrainResult
    from paramagnet.learning.state import TrainState
    from paramagnet.rbm import RBM
    from paramagnet.units import Unit

app = typer.Typer(add_completion=False)


@app.command(cls=FieldCommand)
def train(
    ctx: typer.Context,
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Where to write the machine (.safetensors).")],
    hidden_units: Annotated[
        int | None, typer.Option(help="Number of hidden units; if not given, one is suggested and taken.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="How many times to go through the data; else about 2000 updates.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Train about that long: the number of epochs is fixed after a short timing."),
    ] = None,
    visible: Annotated[
        str | None,
        typer.Option(
            help="Visible units: spin (if not given), bit, gaussian, categorical(q), relu or drelu."
        ),
    ] = None,
    hidden: Annotated[
        str, typer.Option(help="Hidden units: bit, spin, gaussian, relu, drelu or categorical(q).")
    ] = "bit",
    visible_bias: Annotated[
        str, typer.Option(help="Visible biases at the start: a number, or data for the mean of each column.")
    ] = "0",
    hidden_bias: Annotated[float, typer.Option(help="Hidden bias at the start.")] = 0.0,
    scheme: Annotated[
        str, typer.Option(help="How to draw the initial weights; package.module:Name for a class of yours.")
    ] = "layer-correlation",
    gain: Annotated[float, typer.Option(help="Factor on the initial weights.")] = 1.0,
    gradient: Annotated[
        str | None,
        typer.Option(help="exact, pcd, cd, tempering, or package.module:Name for a class of yours."),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Exact gradients, whatever they cost.")] = False,
    pcd: Annotated[bool, typer.Option("--pcd", help="Gradients from persistent chains.")] = False,
    chains: Annotated[
        int | None, typer.Option(help="Chains; if not given, 1000 of pcd, 100 of tempering.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Gibbs sweeps before an update; if not given, 40 of pcd, else 1.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads; if not given, 1 for exact gradients, else all cores.")
    ] = None,
    optimizer: Annotated[
        str, typer.Option(help="adam, sgd, or package.module:Name for a class of yours.")
    ] = "adam",
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate; if not given, 0.001.")] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="How the learning rate falls over the run: constant, linear, cosine, or with numbers as in "
            "'linear(end=0.0001)' and 'step(factor=0.5, n_updates=1000)'. If neither it nor a rate is given, "
            "linear where gradients are sampled."
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Momentum of sgd.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.0,
    l1: Annotated[float, typer.Option(help="Penalty on the sizes of the weights; makes zeros.")] = 0.0,
    l1_group: Annotated[
        float, typer.Option(help="The same, times the mean size of the weights of the hidden unit.")
    ] = 0.0,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradient.")] = None,
    centred: Annotated[
        bool,
        typer.Option(
            "--centred", help="Learn around the means of the units; `--scheme centred` is a start that fits."
        ),
    ] = False,
    batch_size: Annotated[int | None, typer.Option(help="Points per update; all if not given.")] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Epochs between two measurements; if not given, about fifty are made.")
    ] = None,
    evaluate_at: Annotated[
        str | None, typer.Option(help="Epochs to measure at, for example 0,40,100; in place of the former.")
    ] = None,
    validation: Annotated[Path | None, typer.Option(help="Data to measure on, not to learn.")] = None,
    sample_weight: Annotated[
        Path | None, typer.Option(help="Weights of the points: a file with one number for each.")
    ] = None,
    validation_weight: Annotated[
        Path | None, typer.Option(help="The same for the points of --validation.")
    ] = None,
    guard: Annotated[
        bool | None,
        typer.Option(
            "--guard/--no-guard",
            help="Check that sampled training has not failed, go back where it has; if not given, on for "
            "chains that persist.",
        ),
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(
            metavar="PATIENCE",
            help="Stop after so many measurements without a better validation; keep the best machine.",
        ),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(help="Share of the rows to measure on, not to learn; `evaluate --held-out` knows them."),
    ] = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    missing: MissingOption = None,
    numbers: NumbersOption = None,
    categories: CategoriesOption = None,
    header: Header = None,
    seed: Annotated[int | None, typer.Option(help="Seed for weights and batches.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a machine and a checkpoint that are there.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the learning curve to this file.")] = None,
) -> None:
    """Train a machine and write it to a file.

    A table of numbers, text and True/False becomes units column by column, and the machine's file keeps how;
    `paramagnet data info` shows the columns.

    Gradients are exact where that takes no more than about a second each, else they come from persistent
    chains.

    Log-likelihoods are exact where that takes about a second, else by mAIS, with their error.

    Every other setting of a gradient, an optimizer or a scheme is a flag with its name: --n-relax of pcd and
    tempering; --path, --n-replicas, --acceptance of tempering; --beta1, --beta2, --epsilon of adam; and the
    fields of a class of yours.

    A checkpoint is kept beside it: with --resume the same command goes on after an interruption (Ctrl-C,
    SIGTERM, a crash).

    With --resume and more --epochs a finished run is trained further; a learning rate that has fallen stays
    where it ended.
    """
    import numpy as np

    from paramagnet._files import writable_target
    from paramagnet.initializers import initialize
    from paramagnet.learning import training
    from paramagnet.learning.early_stopping import EarlyStopping
    from paramagnet.learning.loop import DivergenceError
    from paramagnet.plots import check_figure_path
    from paramagnet.units import find_unit

    writable_target(out)
    if plot is not None:
        check_figure_path(plot)
    if momentum and optimizer == "adam":
        raise ValueError("`--momentum` is for `--optimizer sgd`; adam has its own.")
    if seed is not None and seed < 0:
        raise ValueError(f"`--seed` must be zero or positive, got {seed}.")
    for name, file in (("data file", data), ("validation file", validation)):
        if file is not None and out.exists() and file.exists() and out.samefile(file):
            raise ValueError(f"`--out` must not be the {name}, got {str(out)!r}.")
    checkpoint = out.with_name(f"{out.name.removesuffix('.safetensors')}.checkpoint.safetensors")
    if not (resume or force):
        _require_new(out, checkpoint)
    biases = _as_bias(visible_bias)
    if held_out is not None and validation is not None:
        raise ValueError("`--held-out` and `--validation` exclude each other; give one of them.")
    options = TableOptions(columns, drop, label, no_label, missing, numbers, categories, header)
    source = load_training(data, visible, options, held_out, seed)
    points, visible = source.states, source.visible
    measured = source.held_out if validation is None else load_validation(validation, source, options)
    if hidden_units is None:
        hidden_units, reason = suggest_hidden_units(points.shape[1])
        say(reason, err=True)
    if epochs is None and seconds is None:
        epochs, reason = suggest_epochs(len(points), batch_size)
        say(reason, err=True)
    evaluated = as_epochs(evaluate_at, evaluate_every, epochs)
    of_points, of_measured = (read_weights(file, header) for file in (sample_weight, validation_weight))
    sizes = (points.shape[1], hidden_units, find_unit(visible, "--visible"), find_unit(hidden, "--hidden"))
    settings = given_settings(ctx)
    flags = {"n_chains": chains, "n_steps": steps, "n_threads": threads}
    estimator = _choose_gradient(sizes, gradient, exact, pcd, settings, flags)
    if schedule is None and optimizer == "adam" and learning_rate is None and not estimator.exact:
        schedule = _default_schedule(checkpoint if resume else None)
    ascent = make_optimizer(optimizer, settings, learning_rate, momentum, schedule)
    weights = make_scheme(scheme, settings)
    refuse_unused(settings, estimator, ascent, weights)
    rng = np.random.default_rng(seed)
    start: RBM | TrainState
    state = _load_state(checkpoint, hidden_units, visible, hidden) if resume else None
    if state is not None:
        start = state
        if (biases, hidden_bias, scheme, gain) != (0.0, 0.0, "layer-correlation", 1.0):
            say("going on: biases, --scheme and --gain were settled at the start.", err=True)
    else:
        start = initialize(
            points.shape[1],
            hidden_units,
            visible=visible,
            hidden=hidden,
            visible_bias=biases,
            hidden_bias=hidden_bias,
            scheme=weights,
            gain=gain,
            data=points if biases == "data" else None,
            sample_weight=of_points if biases == "data" else None,
            rng=rng,
        )
    n_points = len(points) if of_points is None else int((of_points > 0.0).sum())
    n_batches = 1 if not batch_size or batch_size < 1 else -(-n_points // batch_size)
    print_level(points, sizes[2], measured, of_points, of_measured)
    progress = TrainingBar(epochs, seconds, n_batches, state)
    try:
        with interruptible(lambda: _how_to_resume(progress.state, checkpoint)), progress, quiet_training():
            result = training.train(
                start,
                points,
                epochs=epochs,
                seconds=seconds,
                gradient=estimator,
                optimizer=ascent,
                batch_size=batch_size,
                sample_weight=of_points,
                weight_decay=weight_decay,
                l1=l1,
                l1_group=l1_group,
                clip=clip,
                centred=centred,
                evaluate=evaluated,
                validation=measured,
                validation_weight=of_measured,
                rng=rng,
                callback=progress.show,
                checkpoint=checkpoint,
                guard=guard,
                early_stopping=None if early_stopping is None else EarlyStopping(early_stopping),
            )
            result.rbm.save(out, preparation=source.preparation, notes=source.notes)
    except DivergenceError as error:
        raise ValueError(f"{error} The last finite state is in {checkpoint}.") from None
    typer.echo(f"gradients: {result.state.settings['gradient']}", err=True)
    print_history(result)
    for note in result.notes:
        say(note, err=True)
    typer.echo(f"machine: {out}")
    if held_out is not None:
        say(
            f"held-out likelihood: `{shlex.join(['paramagnet', 'evaluate', str(out), str(data)])} --held-out`"
        )
    if plot is not None:
        _draw(result, plot)
        typer.echo(f"learning curve: {plot}")


def _require_new(out: Path, checkpoint: Path) -> None:
    """An error if training would replace the machine or the checkpoint of another run."""
    if out.exists():
        raise FileExistsError(
            f"`--out` must be a new file, {str(out)!r} exists. Choose another name, train it further by "
            "`--resume`, or replace it by `--force`."
        )
    if checkpoint.exists():
        raise FileExistsError(
            f"{str(checkpoint)!r} holds an unfinished run: go on with it by `--resume`, or replace it by "
            "`--force`."
        )


def _as_bias(text: str) -> float | str:
    from paramagnet._checks import as_real

    try:
        return "data" if text == "data" else as_real(float(text), "--visible-bias")
    except ValueError:
        raise ValueError(f"`--visible-bias` must be a number or data, got {text!r}.") from None


def _choose_gradient(
    sizes: tuple[int, int, Unit, Unit],
    named: str | None,
    exact: bool,
    pcd: bool,
    given: dict[str, Any],
    flags: dict[str, int | None],
) -> Gradient:
    from paramagnet.learning.gradients.default import is_cheap

    if exact and pcd:
        raise ValueError("`--exact` and `--pcd` exclude each other; give one of them, or none.")
    if named is not None and (exact or pcd):
        raise ValueError(
            f"`--gradient` must be given without `--exact` and `--pcd`, got {named!r} and one of them."
        )
    if named is not None:
        return make_gradient(named, given, **flags)
    if exact or (not pcd and is_cheap(*sizes)):
        return make_gradient("exact", given, n_threads=flags["n_threads"], force=exact)
    return make_gradient("pcd", given, **flags)


def _default_schedule(checkpoint: Path | None) -> str | None:
    """The schedule of adam with sampled gradients; a run that goes on keeps its own."""
    if checkpoint is None or not checkpoint.exists():
        return "linear"
    from paramagnet.learning.state import load_checkpoint

    return "linear" if "Schedule(" in load_checkpoint(checkpoint).settings["optimizer"] else None


def _load_state(path: Path, hidden_units: int, visible: str, hidden: str) -> TrainState:
    from paramagnet.learning.state import load_checkpoint
    from paramagnet.units import find_unit

    if not path.exists():
        raise FileNotFoundError(
            f"There is no checkpoint to go on from: {path}. Leave out `--resume` to start anew."
        )
    state = load_checkpoint(path)
    had = (state.layout.n_hidden, state.layout.visible, state.layout.hidden)
    if had != (hidden_units, find_unit(visible, "visible"), find_unit(hidden, "hidden")):
        raise ValueError(
            f"`--resume` needs the options of the earlier run: --hidden-units {had[0]} --visible '{had[1]}' "
            f"--hidden '{had[2]}'."
        )
    return state


def _how_to_resume(state: TrainState | None, checkpoint: Path) -> str:
    if state is None:
        return "Interrupted before the first update; nothing was kept."
    words = (word for word in sys.argv[1:] if word not in ("--resume", "--force"))
    command = ["paramagnet", *words, "--resume"]
    return (
        f"Interrupted after {state.epoch} epochs ({state.update} updates); the state is in {checkpoint}.\n"
        f"Go on with: {shlex.join(command)}"
    )


def _draw(result: TrainResult, plot: Path) -> None:
    from paramagnet.plots import plot_learning_curve, save_figure

    history = result.history
    save_figure(
        plot_learning_curve(history.epoch, history.log_likelihood, validation=history.validation), plot
    )
