"""The settings of ``paramagnet train``: what the user gave, and a recipe for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paramagnet.cli.console import say
from paramagnet.cli.fields import make_gradient

if TYPE_CHECKING:
    from paramagnet.learning.gradients.base import Gradient
    from paramagnet.learning.recipe import Recipe
    from paramagnet.units import Unit

_CHAINS = ("n_chains", "n_steps", "n_relax")


@dataclass(frozen=True)
class Chosen:
    """All that training needs; None leaves ``epochs`` to a budget and ``rate`` to the optimizer."""

    n_hidden: int
    scheme: str
    visible_bias: float | str
    centred: bool
    gradient: Gradient
    rate: float | None
    schedule: str
    batch_size: int | None
    epochs: int | None
    summable: bool  # whether ln Z takes no more than about a second


def check_names(
    units: Sequence[str | None],
    schemes: Sequence[str | None],
    *,
    recipe: str = "recommended",
    gradient: str | None = None,
    optimizer: str = "adam",
    schedule: str | None = None,
) -> None:
    """An error if a name is unknown, before the data are read and the recipe is explained.

    ``units`` are those of the visible and of the hidden layer; None stands for what is not given.
    """
    from paramagnet._checks import as_choice
    from paramagnet.learning.recipe import RECIPES
    from paramagnet.learning.registries import GRADIENTS, OPTIMIZERS
    from paramagnet.learning.schedule import match_schedule
    from paramagnet.schemes import SCHEMES
    from paramagnet.units import find_unit

    as_choice(recipe, "recipe", RECIPES)
    for unit, flag in zip(units, ("--visible", "--hidden"), strict=True):
        if unit is not None:
            find_unit(unit, flag)
    if gradient is not None:
        GRADIENTS.find(gradient, "--gradient")
    OPTIMIZERS.find(optimizer, "--optimizer")
    for scheme in schemes:
        if scheme is not None:
            SCHEMES.find(scheme.partition("(")[0], "--scheme")
    if schedule is not None:
        match_schedule(schedule, "--schedule")


def as_bias(text: str) -> float | str:
    """What ``--visible-bias`` says: a number, or "data"."""
    from paramagnet._checks import as_real

    try:
        return "data" if text == "data" else as_real(float(text), "--visible-bias")
    except ValueError:
        raise ValueError(f"`--visible-bias` must be a number or data, got {text!r}.") from None


def choose_settings(
    recipe: str,
    n_points: int,
    n_visible: int,
    units: tuple[Unit, Unit],
    *,
    given: dict[str, Any],
    chains: dict[str, int | None],
    settings: dict[str, Any],
) -> Chosen:
    """The settings of a run, those of a recipe where ``given`` has None; says what was chosen, and why.

    ``chains`` are flags of gradients that have a name of their own, ``settings`` the other fields.
    """
    from paramagnet.exact.cost import estimate_seconds
    from paramagnet.learning.recipe import choose_recipe

    _check_gradient(given)
    exact = given["exact"] or given["gradient"] == "exact" or None
    if given["pcd"] or given["gradient"] not in (None, "exact"):
        exact = False
    n_hidden = given["hidden_units"]
    found = choose_recipe(
        recipe,
        n_points,
        n_visible,
        *units,
        n_hidden=None if n_hidden is None or n_hidden < 1 else n_hidden,  # checked by `initialize`
        batch_size=given["batch_size"],
        exact=exact,
    )
    gradient = _make_gradient(found, given, chains, settings)
    adam = given["optimizer"] == "adam"
    rate = given["learning_rate"]
    timed = given["epochs"] is None and given["seconds"] is not None
    _explain(found, given, gradient, adam)
    return Chosen(
        n_hidden=found.n_hidden if n_hidden is None else n_hidden,
        scheme=found.scheme,
        visible_bias=found.visible_bias,
        centred=found.centred,
        gradient=gradient,
        rate=found.rate if rate is None and adam else rate,
        schedule=found.schedule,
        batch_size=found.batch_size,
        epochs=given["epochs"] if timed or given["epochs"] is not None else found.epochs,
        summable=estimate_seconds(n_visible, found.n_hidden, *units, gradient=False) <= 1.0,
    )


def _check_gradient(given: dict[str, Any]) -> None:
    named, exact, pcd = given["gradient"], given["exact"], given["pcd"]
    if exact and pcd:
        raise ValueError("`--exact` and `--pcd` exclude each other; give one of them, or none.")
    if named is not None and (exact or pcd):
        raise ValueError(
            f"`--gradient` must be given without `--exact` and `--pcd`, got {named!r} and one of them."
        )


def _make_gradient(
    recipe: Recipe, given: dict[str, Any], chains: dict[str, int | None], settings: dict[str, Any]
) -> Gradient:
    """The gradient of the recipe, or the one that was asked for, with the settings that were given."""
    if given["gradient"] not in (None, "pcd"):
        return make_gradient(given["gradient"], settings, **chains)
    if recipe.gradient.exact:
        return make_gradient("exact", settings, n_threads=chains["n_threads"], force=given["exact"])
    own = {name: getattr(recipe.gradient, name) for name in _CHAINS}
    flags = own | {name: value for name, value in chains.items() if value is not None}
    flags |= {name: settings[name] for name in _CHAINS if name in settings}
    return make_gradient("pcd", settings, **flags)


def _explain(recipe: Recipe, given: dict[str, Any], gradient: Gradient, adam: bool) -> None:
    """Print each setting that the recipe chose, with its reason."""
    why = recipe.reasons
    lines = []
    if "n_hidden" in why:
        lines.append(f"--hidden-units {recipe.n_hidden}: {why['n_hidden']}")
    if "gradient" in why:
        name = "--exact" if gradient.exact else "--pcd"
        lines.append(f"{name}: {why['gradient']}")
    if "batch_size" in why:
        lines.append(f"--batch-size {recipe.batch_size}: {why['batch_size']}")
    if given["learning_rate"] is None and adam:
        lines.append(f"--learning-rate {recipe.rate:g}, {recipe.schedule}: {why['rate']}")
    if given["epochs"] is None and given["seconds"] is None:
        lines.append(f"--epochs {recipe.epochs}: {why['epochs']}")
    if lines:
        say(f"chosen by the recipe {recipe.name}:", err=True)
    for line in lines:
        say(f"  {line}", err=True)
