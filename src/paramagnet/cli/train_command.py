"""``paramagnet train``: a machine from a data file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paramagnet.cli.console import say
from paramagnet.cli.fields import (
    FieldCommand,
    given_settings,
    make_optimizer,
    make_scheme,
    refuse_unused,
)
from paramagnet.cli.flags import flags_of, name_flags
from paramagnet.cli.history import (
    as_epochs,
    draw_history,
    print_history,
    print_level,
    quiet_training,
)
from paramagnet.cli.interruptions import interruptible
from paramagnet.cli.points_file import DataArgument, Header, read_weights
from paramagnet.cli.points_source import load_training, load_validation, split_weights
from paramagnet.cli.recipes import as_bias, check_names, choose_settings
from paramagnet.cli.sequence_points import choose_weights, is_sequence_file
from paramagnet.cli.table_options import (
    AlphabetOption,
    CategoriesOption,
    ColumnsOption,
    DecimalOption,
    DropOption,
    InsertionsOption,
    LabelOption,
    MissingOption,
    MissingValuesOption,
    NoLabel,
    NumbersOption,
    TableOptions,
    UnknownOption,
)
from paramagnet.cli.training_run import TrainingBar, how_to_resume, kept_schedule, load_state, require_new

if TYPE_CHECKING:
    from paramagnet.learning.state import TrainState
    from paramagnet.rbm import RBM

ESTIMATED = 10  # measurements of a run where ln Z is not summed
ESTIMATED_CHAINS = 200  # of mAIS in each of them

app = typer.Typer(add_completion=False)


@app.command(cls=FieldCommand)
def train(
    ctx: typer.Context,
    data: DataArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the machine (.safetensors); if not given, in this folder, under the name of "
            "the data."
        ),
    ] = None,
    hidden_units: Annotated[
        int | None, typer.Option(help="Number of hidden units; if not given, chosen by the recipe.")
    ] = None,
    recipe: Annotated[
        str,
        typer.Option(
            help="How to choose the options that are not given: recommended, or paper for the start and the "
            "learning of the paper."
        ),
    ] = "recommended",
    epochs: Annotated[
        int | None,
        typer.Option(help="How often to go through the data; if not given, chosen by the recipe."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Train for about so many seconds; a short timing fixes the number of epochs."),
    ] = None,
    visible: Annotated[
        str | None,
        typer.Option(
            help="Visible units: spin, bit, gaussian, categorical(q), relu or drelu; if not given, spin, for "
            "sequences categorical."
        ),
    ] = None,
    hidden: Annotated[
        str, typer.Option(help="Hidden units: bit, spin, gaussian, relu, drelu or categorical(q).")
    ] = "bit",
    visible_bias: Annotated[
        str | None,
        typer.Option(
            help="Visible biases at the start: a number, or data for the mean of each column. If not given, "
            "data with the recommended start and with schemes that need data, else 0."
        ),
    ] = None,
    hidden_bias: Annotated[float, typer.Option(help="Hidden bias at the start.")] = 0.0,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="How to draw the initial weights: recommended, layer-correlation, "
            "centred, xavier, he, lecun, "
            "hinton, d-wave, hopfield, or package.module:Name for a class of yours."
        ),
    ] = None,
    gain: Annotated[float, typer.Option(help="Factor on the initial weights.")] = 1.0,
    gradient: Annotated[
        str | None,
        typer.Option(
            help="Gradient: exact, pcd, cd, tempering, or package.module:Name for a class of yours."
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Use exact gradients even where they are slow.")
    ] = False,
    pcd: Annotated[bool, typer.Option("--pcd", help="Gradients from persistent chains.")] = False,
    chains: Annotated[
        int | None,
        typer.Option(
            help="Number of chains; if not given, chosen by the recipe, or the default of --gradient."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Gibbs sweeps before an update; if not given, chosen as --chains is."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Number of threads; if not given, 1 for exact gradients, else one per core."),
    ] = None,
    optimizer: Annotated[
        str, typer.Option(help="Optimizer: adam, sgd, or package.module:Name for a class of yours.")
    ] = "adam",
    learning_rate: Annotated[
        float | None, typer.Option(help="First learning rate; if not given, chosen by the recipe.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="How the learning rate falls over the run: constant, linear, cosine, or with numbers as in "
            "'linear(end=0.0001)' and 'step(factor=0.5, n_updates=1000)'. If not given, adam takes that of "
            "the recipe: linear, or constant (paper)."
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Momentum of sgd.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.0,
    l1: Annotated[float, typer.Option(help="L1 penalty on the weights; sets small ones to zero.")] = 0.0,
    l1_group: Annotated[
        float, typer.Option(help="Like --l1, times the mean size of the hidden unit's weights.")
    ] = 0.0,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradient.")] = None,
    centred: Annotated[
        bool | None,
        typer.Option(
            "--centred/--no-centred",
            help="Learn around the means of the units; if not given, as the recipe says: yes, or no (paper).",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Points per update; if not given, chosen by the recipe.")
    ] = None,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            help="Epochs between two measurements; if not given, about fifty are made, ten where ln Z is "
            "estimated."
        ),
    ] = None,
    evaluate_at: Annotated[
        str | None,
        typer.Option(help="Epochs to measure at, for example 0,40,100; instead of --evaluate-every."),
    ] = None,
    validation: Annotated[Path | None, typer.Option(help="Held-out data: measured, not learned.")] = None,
    sample_weight: Annotated[
        Path | None, typer.Option(help="Weights of the rows of DATA: a file with one number for each.")
    ] = None,
    validation_weight: Annotated[
        Path | None, typer.Option(help="Weights of the points of --validation.")
    ] = None,
    reweight: Annotated[
        float | None,
        typer.Option(
            metavar="IDENTITY",
            help="Weigh each sequence by 1 over the number of those that share this part of its sites: 0.8, "
            "for example.",
        ),
    ] = None,
    guard: Annotated[
        bool | None,
        typer.Option(
            "--guard/--no-guard",
            help="Check that sampled training has not failed, and go back where it has; if not given, done "
            "for chains that persist.",
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
        typer.Option(
            help="Share of the rows that are held out: measured, not learned; `evaluate --held-out` finds "
            "them again."
        ),
    ] = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    no_label: NoLabel = False,
    missing: MissingOption = None,
    numbers: NumbersOption = None,
    categories: CategoriesOption = None,
    alphabet: AlphabetOption = None,
    unknown_letters: UnknownOption = None,
    insertions: InsertionsOption = None,
    header: Header = None,
    decimal: DecimalOption = None,
    missing_values: MissingValuesOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed for weights and batches.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a machine and a checkpoint that are there.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the learning curve to this file.")] = None,
) -> None:
    """Train a machine and write it to a file.

    Each column of a table of numbers, text and True/False becomes one or more units. The machine's file keeps
    the rule, so that `evaluate` and `sample` take and give the columns of the table; `paramagnet data info`
    lists them.

    A recipe chooses the options that you leave out from the size of the data: hidden units, gradient,
    batches, learning rate and epochs. The command prints each choice with its reason. --recipe paper takes
    the start and the learning of the paper in place of the recommended ones.

    Sequences (.fa, .fasta, .txt) become categorical units with a state for each letter; --reweight gives
    similar sequences smaller weights.

    Log-likelihoods are exact where that takes about a second, else by mAIS, with their error.

    Every other setting of a gradient, an optimizer or a scheme is a flag with its name: --n-relax of pcd and
    tempering; --path, --n-replicas, --acceptance of tempering; --beta1, --beta2, --epsilon of adam; and the
    fields of a class of yours.

    A checkpoint is kept beside the machine's file: with --resume the same command goes on after an
    interruption (Ctrl-C, SIGTERM, a crash).

    With --resume and more --epochs a finished run is trained further; a learning rate that has fallen stays
    where it ended.
    """
    import numpy as np

    from paramagnet._files import writable_target
    from paramagnet.initializers import initialize
    from paramagnet.learning import training
    from paramagnet.learning.early_stopping import EarlyStopping
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.learning.loop import DivergenceError
    from paramagnet.plots import check_figure_path
    from paramagnet.units import find_unit

    out = Path(f"{Path(data.name.removesuffix('.gz')).stem}.safetensors") if out is None else out
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
        require_new(out, checkpoint)
    check_names(
        (visible, hidden),
        (scheme,),
        recipe=recipe,
        gradient=gradient,
        optimizer=optimizer,
        schedule=schedule,
    )
    sequences = is_sequence_file(data)
    biases = None if visible_bias is None else as_bias(visible_bias)
    if held_out is not None and validation is not None:
        raise ValueError("`--held-out` and `--validation` exclude each other; give one of them.")
    options = TableOptions(
        columns,
        drop,
        label,
        no_label,
        missing,
        numbers,
        categories,
        header,
        alphabet,
        unknown_letters,
        insertions,
        decimal,
        missing_values,
    )
    source = load_training(data, visible, options, held_out, seed)
    points, visible = source.states, source.visible
    measured = source.held_out if validation is None else load_validation(validation, source, options)
    stopping = None if early_stopping is None else EarlyStopping(early_stopping)
    if stopping is not None and measured is None:
        raise ValueError(
            "`--early-stopping` must have held-out points to judge by; give `--held-out 0.2` or "
            "`--validation FILE`."
        )
    given, of_held_out = split_weights(read_weights(sample_weight, header), source)
    of_points = choose_weights(source.states, source.weights, given, reweight, sequences)
    of_measured = read_weights(validation_weight, header)
    if of_measured is None and validation is None:
        of_measured = source.held_out_weights if of_held_out is None else of_held_out
    n_points = len(points) if of_points is None else int((of_points > 0.0).sum())
    settings = given_settings(ctx)
    flags = {"n_chains": chains, "n_steps": steps, "n_threads": threads}
    chosen = choose_settings(
        recipe,
        n_points,
        points.shape[1],
        (find_unit(visible, "--visible"), find_unit(hidden, "--hidden")),
        given={
            "hidden_units": hidden_units,
            "gradient": gradient,
            "exact": exact,
            "pcd": pcd,
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "epochs": epochs,
            "seconds": seconds,
        },
        chains=flags,
        settings=settings,
    )
    hidden_units, epochs, batch_size = chosen.n_hidden, chosen.epochs, chosen.batch_size
    evaluated = as_epochs(evaluate_at, evaluate_every, epochs)
    # From uniform states: chains that start at the means of the data miss states far from them, and a machine
    # that has failed there would look well.
    log_z = LogZ(n_samples=ESTIMATED_CHAINS)
    if evaluated is None and epochs is not None and not chosen.summable:
        evaluated = max(1, -(-epochs // ESTIMATED))
    estimator = chosen.gradient
    if schedule is None and optimizer == "adam":
        schedule = kept_schedule(checkpoint if resume else None, chosen.schedule)
    ascent = make_optimizer(optimizer, settings, chosen.rate, momentum, schedule)
    if learning_rate is not None and getattr(ascent.learning_rate, "rate", learning_rate) != learning_rate:
        raise ValueError(
            f"`--schedule` must start at `--learning-rate` {learning_rate:g}, got {schedule!r}. Leave its "
            "first rate out."
        )
    of_start = (biases, hidden_bias, scheme, gain)
    if biases is None and (sequences or scheme is None):
        biases = "data" if sequences else chosen.visible_bias
    scheme = chosen.scheme if scheme is None else scheme
    weights = make_scheme(scheme, settings)
    if biases is None:
        biases = "data" if weights.needs_data else 0.0
    refuse_unused(settings, estimator, ascent, weights)
    rng = np.random.default_rng(seed)
    start: RBM | TrainState
    state = load_state(checkpoint, hidden_units, visible, hidden) if resume else None
    if state is not None:
        start = state
        if of_start != (None, 0.0, None, 1.0):
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
    n_batches = 1 if not batch_size or batch_size < 1 else -(-n_points // batch_size)
    print_level(points, find_unit(visible, "--visible"), measured, of_points, of_measured)
    progress = TrainingBar(epochs, seconds, n_batches, state)
    try:
        with interruptible(lambda: how_to_resume(progress.state, checkpoint)), progress, quiet_training():
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
                centred=chosen.centred if centred is None else centred,
                evaluate=evaluated,
                validation=measured,
                validation_weight=of_measured,
                log_z=log_z,
                rng=rng,
                callback=progress.show,
                checkpoint=checkpoint,
                guard=guard,
                early_stopping=stopping,
            )
            result.rbm.save(out, preparation=source.preparation, notes=source.notes)
    except DivergenceError as error:
        raise ValueError(f"{error} The last finite state is in {checkpoint}.") from None
    typer.echo(f"gradients: {result.state.settings['gradient']}", err=True)
    print_history(result, (points, of_points), None if measured is None else (measured, of_measured))
    for note in result.notes:
        say(name_flags(note, flags_of(ctx.command)), err=True)
    typer.echo(f"machine: {out}")
    if held_out is not None:
        say(
            f"held-out likelihood: `{shlex.join(['paramagnet', 'evaluate', str(out), str(data)])} --held-out`"
        )
    if plot is not None:
        draw_history(result, plot)
        typer.echo(f"learning curve: {plot}")
