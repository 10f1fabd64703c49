"""Settings of a training run for users who gave none: one place, with the reason for each.

A `Recipe` is chosen from the size of the data and the types of the units alone, so that it can be repeated
and resumed. There are two:

``recommended``
    Centred learning from a centred start, Adam with a rate that falls to 0.02 of its first value, exact
    gradients where they are quick, else persistent chains with few sweeps and the guard. The numbers were
    chosen by held-out likelihood at equal processor time (``benchmarks/recipe_choice.toml`` has the plan and
    the rule, both fixed before the runs). A larger study of recipes goes on.
``paper``
    The start and the learning of [Y25]: weights at ``beta_max/sqrt(n + m)``, no visible biases, the plain
    gradient, Adam at a constant rate, PCD with 1000 chains and 40 sweeps where sums would take too long;
    batches, rates and epochs are those of its experiments of that size.

`paramagnet.cli` and `paramagnet.adapters.scikit` take what their users leave open from here. The functions of
the library itself (`train`, `initialize`) and specifications of sweeps do not: what they do is in their own
arguments, and records stay what they were.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paramagnet._checks import as_choice
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.gradients.default import is_cheap
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact
from paramagnet.units import Unit

RECOMMENDED, PAPER = "recommended", "paper"
RECIPES = (RECOMMENDED, PAPER)

# The numbers of the recommended recipe; docs/recipe.md says why, `choose_recipe` applies them.
SECONDS_EXACT = 0.01  # an exact gradient that takes no longer is used
CHAINS = {"n_chains": 100, "n_steps": 20, "n_relax": 100}
RATE_EXACT, RATE_SAMPLED = 0.01, 0.003
BATCH, MOST_BATCHES = 100, 1000
UPDATES_EXACT, UPDATES_SAMPLED = 3000, 5000
FEWEST_EPOCHS, MOST_EPOCHS = 5, 1000
FEWEST_HIDDEN, MOST_HIDDEN = 2, 500

# Those of [Y25] section 4.
_PAPER_SECONDS = 1.0  # an exact sum that takes no longer
_PAPER_SMALL = 400  # points that are learned all at once


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run.

    Parameters
    ----------
    name : str
        "recommended" or "paper".
    n_hidden : int
        Number of hidden units.
    scheme : str
        How the start is made, a scheme of `paramagnet.initialize`.
    gain : float
        Factor on its weights.
    visible_bias : float or str
        Visible biases at the start: 0, or "data" for the means of the data.
    centred : bool
        Whether learning is centred.
    gradient : Gradient
        How the averages under the machine are found.
    rate : float
        The first learning rate of Adam.
    schedule : str
        How the rate goes on: "linear" falls to 0.02 of it over the run, "constant" stays.
    batch_size : int or None
        Points per update; None takes all.
    epochs : int
        How many times to go through the data.
    reasons : mapping
        Why, in words, by the name of the setting.
    """

    name: str
    n_hidden: int
    scheme: str
    gain: float
    visible_bias: float | str
    centred: bool
    gradient: Gradient
    rate: float
    schedule: str
    batch_size: int | None
    epochs: int
    reasons: Mapping[str, str]

    def n_batches(self, n_points: int) -> int:
        """Updates in an epoch."""
        return count_batches(n_points, self.batch_size)


def count_batches(n_points: int, batch_size: int | None) -> int:
    """Updates in an epoch; sizes that make no sense count as none, for whoever checks them later."""
    return 1 if not batch_size or batch_size < 1 else -(-n_points // batch_size)


def choose_recipe(
    name: str,
    n_points: int,
    n_visible: int,
    visible: Unit,
    hidden: Unit,
    *,
    n_hidden: int | None = None,
    batch_size: int | None = None,
    exact: bool | None = None,
) -> Recipe:
    """The recipe of that name for data of this size.

    Parameters
    ----------
    name : str
        "recommended" or "paper".
    n_points, n_visible : int
        Size of the data.
    visible, hidden : Unit
        Types of the units.
    n_hidden, batch_size : int, optional
        Sizes that are already known; the other settings then fit them.
    exact : bool, optional
        Whether gradients are exact, if that is already known.

    Returns
    -------
    Recipe
        All settings, with reasons for those that were chosen here.
    """
    as_choice(name, "recipe", RECIPES)
    choose = _recommended if name == RECOMMENDED else _paper
    reasons: dict[str, str] = {}
    if n_hidden is None:
        n_hidden = min(MOST_HIDDEN, max(FEWEST_HIDDEN, n_visible // 2))
        limit = "half of the visible units"
        reasons["n_hidden"] = limit if n_hidden != MOST_HIDDEN else f"{limit}, at most {MOST_HIDDEN}"
    sizes = (n_visible, n_hidden, visible, hidden)
    return Recipe(name, n_hidden, **choose(n_points, sizes, batch_size, exact, reasons))


def _recommended(
    n_points: int,
    sizes: tuple[int, int, Unit, Unit],
    batch_size: int | None,
    exact: bool | None,
    reasons: dict[str, str],
) -> dict[str, Any]:
    visible = sizes[2]
    if exact is None:
        exact = is_cheap(*sizes, seconds=SECONDS_EXACT)
        limit = f"{1e3 * SECONDS_EXACT:g} ms"
        reasons["gradient"] = (
            f"exact, a sum over all states takes less than {limit}"
            if exact
            else f"persistent chains, exact sums would take more than {limit} each"
        )
    if batch_size is None:
        batch_size = max(BATCH, -(-n_points // MOST_BATCHES))
        reasons["batch_size"] = "small ones make updates quick"
        if batch_size > BATCH:
            reasons["batch_size"] = f"at most {MOST_BATCHES} updates an epoch"
        if batch_size >= n_points:
            batch_size, reasons["batch_size"] = n_points, "all points"
    n_batches = count_batches(n_points, batch_size)
    updates = UPDATES_EXACT if exact else UPDATES_SAMPLED
    epochs = min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(updates / n_batches)))
    reasons["epochs"] = f"{epochs * n_batches} updates, {n_batches} an epoch"
    rate = RATE_EXACT if exact else RATE_SAMPLED
    reasons["rate"] = f"for {'exact' if exact else 'sampled'} gradients in centred coordinates"
    known = type(visible).field_of_mean is not Unit.field_of_mean
    start = {"scheme": "recommended", "visible_bias": "data"}
    return {
        **(start if known else {"scheme": "layer-correlation", "visible_bias": 0.0}),
        "gain": 1.0,
        "centred": True,
        "gradient": Exact() if exact else PCD(**CHAINS),
        "rate": rate,
        "schedule": "linear",
        "batch_size": batch_size,
        "epochs": epochs,
        "reasons": reasons,
    }


def _paper(
    n_points: int,
    sizes: tuple[int, int, Unit, Unit],
    batch_size: int | None,
    exact: bool | None,
    reasons: dict[str, str],
) -> dict[str, Any]:
    if exact is None:
        exact = is_cheap(*sizes, seconds=_PAPER_SECONDS)
        reasons["gradient"] = "exact sums" if exact else "persistent chains, as on its larger sets"
    small = n_points <= _PAPER_SMALL
    if batch_size is None and not small:
        batch_size = min(500 if exact else 100, n_points)
        reasons["batch_size"] = "as on Dry Bean" if exact else "as on MNIST"
    epochs = 200 if exact else 100
    reasons["epochs"] = f"those of the paper, {epochs * count_batches(n_points, batch_size)} updates"
    rate = (0.01 if small else 0.001) if exact else 0.0001
    reasons["rate"] = f"that of the paper's {'toy data' if small else 'exact' if exact else 'sampled'} runs"
    return {
        "scheme": "layer-correlation",
        "visible_bias": 0.0,
        "gain": 1.0,
        "centred": False,
        "gradient": Exact() if exact else PCD(),
        "rate": rate,
        "schedule": "constant",
        "batch_size": batch_size,
        "epochs": epochs,
        "reasons": reasons,
    }
