"""``paramagnet beta-max``: the scale of the initial weights."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramagnet.cli.console import Bar, say
from paramagnet.cli.table_options import AlphabetOption

if TYPE_CHECKING:
    from paramagnet.centred_simulation import OverlapAverage
    from paramagnet.simulation import DisorderAverage
    from paramagnet.theory.biases import Biases

_MEANING = {
    "maximum": "a smooth maximum",
    "transition": "the spin-glass transition (closed form)",
    "flat": "flat: scales around it are hardly worse",
    "rival": "the first maximum; a higher one lies at larger beta",
    "unstable": "replica symmetry is broken here: not to be trusted",
    "first-order": "a first-order transition: the bits switch on at once",
    "edge (continuous)": "no maximum: the stability edge of the centred machine",
    "edge (condensation)": "no maximum: the edge at which single ReLU units grow without bound",
}


def beta_max(
    hidden_units: Annotated[int, typer.Option(help="Number of hidden units, m.")],
    visible_units: Annotated[
        int | None, typer.Option(help="Number of visible units, n; not needed with --frequencies.")
    ] = None,
    visible: Annotated[
        str | None, typer.Option(help="Visible units: spin (if not given), bit, gaussian or categorical(q).")
    ] = None,
    hidden: Annotated[
        str, typer.Option(help="Hidden units: bit, spin, gaussian, relu, drelu or categorical(q).")
    ] = "bit",
    visible_bias: Annotated[float, typer.Option(help="Visible bias.")] = 0.0,
    hidden_bias: Annotated[float, typer.Option(help="Hidden bias, zero or negative.")] = 0.0,
    frequencies: Annotated[
        Path | None,
        typer.Option(
            help="Sequences (.fa, .fasta, .txt): units with a state per letter, biases from its frequencies."
        ),
    ] = None,
    alphabet: AlphabetOption = None,
    reweight: Annotated[
        float | None,
        typer.Option(help="Count similar sequences less, as in training: 0.8 means 80 % of the sites alike."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Simulate random machines of these sizes and compare.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of --check.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print beta_max and the standard deviation of the initial weights for a machine of these sizes."""
    from paramagnet._checks import as_count
    from paramagnet.theory.scale import find_beta_max
    from paramagnet.theory.status import judge
    from paramagnet.units import find_unit

    m = as_count(hidden_units, "--hidden-units")
    biases: float | Biases = visible_bias
    if frequencies is not None:
        if visible_bias != 0.0:
            raise ValueError("`--visible-bias` and `--frequencies` exclude each other; give one of them.")
        biases, visible = _read_frequencies(frequencies, visible, alphabet, reweight)
        visible_units = len(biases.values) if visible_units is None else visible_units
    elif alphabet is not None or reweight is not None:
        raise ValueError("`--alphabet` and `--reweight` are for `--frequencies FILE`; leave them out.")
    if visible_units is None:
        raise ValueError("`--visible-units` must be given, or `--frequencies FILE`.")
    visible = visible or "spin"
    n = as_count(visible_units, "--visible-units")
    if visible_bias != 0.0 and find_unit(visible, "--visible").width > 1:
        raise ValueError(
            f"`--visible-bias` must be left out for {visible} units, which have one bias per state, got "
            f"{visible_bias:g}. `--frequencies FILE` takes the biases from sequences."
        )
    result = find_beta_max(m / n, visible=visible, hidden=hidden, b=biases, c=hidden_bias)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge(result)
    for warning in caught:
        say(f"warning: {warning.message}", err=True)
    sigma = float(result.beta) / math.sqrt(n + m)
    simulated = overlaps = None
    units = {"visible": visible, "hidden": hidden}
    centred = result.visible.width > 1 or result.status.startswith("edge (")
    if check and centred:
        overlaps = _simulate_overlaps(n, m, **units, visible_bias=biases, hidden_bias=hidden_bias, rng=seed)
    elif check:
        simulated = _simulate(n, m, **units, visible_bias=visible_bias, hidden_bias=hidden_bias, rng=seed)
    if as_json:
        values = {
            "visible_units": n,
            "hidden_units": m,
            "visible": visible,
            "hidden": hidden,
            "visible_bias": visible_bias if frequencies is None else str(frequencies),
            "hidden_bias": hidden_bias,
            "alpha": result.alpha,
            "beta_max": result.beta,
            "sigma": sigma,
            "stability": _finite(result.stability),
            "curvature": _finite(result.curvature),
            "rival": _finite(result.rival),
            "status": result.status,
        }
        if simulated is not None:
            arrays = ("beta", "value", "error", "theory")
            values["simulation"] = {
                "method": simulated.method,
                "draws": simulated.n_draws,
                "maximum": _finite(simulated.maximum),
                "maximum_error": _finite(simulated.maximum_error),
                **{name: getattr(simulated, name).tolist() for name in arrays},
            }
        if overlaps is not None:
            names = ("gain", "sigma", "value", "error", "theory", "n_draws")
            values["overlaps"] = [{name: getattr(point, name) for name in names} for point in overlaps]
        typer.echo(json.dumps(values))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    words = f"{visible_bias:g}" if frequencies is None else f"of the frequencies in {frequencies}"
    words = f"biases {words} and {hidden_bias:g}"
    table.add_row("machine", f"{n} {visible} visible, {m} {hidden} hidden units, {words}")
    table.add_row("alpha", f"{result.alpha:.6g}")
    table.add_row("[bold]sigma[/bold]", f"[bold]{sigma:.9g}[/bold]   draw the weights from N(0, sigma^2)")
    table.add_row("beta_max", f"{result.beta:.9g}   {_MEANING[result.status]}")
    stable = "stable" if result.stability > 0 else "marginal" if result.stability == 0 else "unstable"
    table.add_row("stability", f"{result.stability:.4g}   replica-symmetric theory {stable}")
    Console().print(table)
    if simulated is not None:
        Console().print(_comparison(simulated))
    if overlaps is not None:
        Console().print(_overlap_table(overlaps))


def _read_frequencies(
    path: Path, visible: str | None, alphabet: str | None, reweight: float | None
) -> tuple[Biases, str]:
    """The biases that a machine takes from these sequences, one row per site, and the name of its units."""
    from paramagnet.cli.points_source import unknown_source
    from paramagnet.cli.sequence_points import is_sequence_file, read_training_sequences, weigh_sequences
    from paramagnet.cli.table_options import TableOptions
    from paramagnet.initializers import initialize
    from paramagnet.theory.biases import Biases

    if not path.exists():
        raise ValueError(unknown_source(path, "--frequencies"))
    if not is_sequence_file(path):
        raise ValueError(f"`--frequencies` must be a file of sequences (.fa, .fasta, .txt), got {path}.")
    alignment = read_training_sequences(path, visible, TableOptions(alphabet=alphabet))
    states, counts, n_sites = alignment.data.astype("float64"), alignment.counts, alignment.n_sites
    if reweight is not None:
        counts = weigh_sequences(states, reweight, counts)
    start = initialize(
        n_sites, 1, visible=alignment.units, scheme="xavier", visible_bias="data", data=states,
        sample_weight=counts, rng=0,
    )  # fmt: skip
    return Biases(start.bias_by_state), alignment.units.name


def _simulate(n: int, m: int, **options: Any) -> DisorderAverage:
    from paramagnet.simulation import simulate_layer_correlation

    with Bar("random machines") as bar:
        return simulate_layer_correlation(n, m, **options, progress=bar.show)


def _simulate_overlaps(n: int, m: int, **options: Any) -> list[OverlapAverage]:
    from paramagnet.centred_simulation import check_edge

    with Bar("random machines") as bar:
        return check_edge(n, m, **options, progress=bar.show)


def _overlap_table(overlaps: list[OverlapAverage]) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("gain", "sigma", "theory", "simulation", "error"):
        table.add_column(name, justify="right")
    for point in overlaps:
        numbers = f"{point.theory:.4f}", f"{point.value:.4f}", f"{point.error:.4f}"
        table.add_row(f"{point.gain:.3g}", f"{point.sigma:.5g}", *numbers)
    return Group(
        f"\nSquared overlap of two chains in {overlaps[0].n_draws} centred random machines of these sizes,",
        "over its value without weights; the theory for large layers is 1/(1 - gain):",
        table,
    )


def _comparison(simulated: DisorderAverage) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("beta/beta_max", "theory", "simulation", "error"):
        table.add_column(name, justify="right")
    for beta, theory, value, error in zip(
        simulated.beta, simulated.theory, simulated.value, simulated.error, strict=True
    ):
        ratio = beta / simulated.beta_max
        table.add_row(f"{ratio:.2f}", f"{theory:.5f}", f"{value:.5f}", f"{error:.5f}")
    ratio, error = (x / simulated.beta_max for x in (simulated.maximum, simulated.maximum_error))
    found = f"{ratio:.3f} +- {error:.3f} beta_max" if math.isfinite(ratio) else "outside of this range"
    return Group(
        f"\nLayer correlation of {simulated.n_draws} random machines of these sizes, {simulated.method}:",
        table,
        f"Its maximum: {found}.",
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
