"""What `paramagnet reproduce` runs, in which order.

A stage is a specification, a part of it (the paper's cells, the rivals, other starts, or all) and the most
trials. A plan is followed from the beginning each time, and finished runs are skipped. The first stages of
"all" run a few trials of everything that the report needs, those after them add trials in the order of what
they tell, and the last ones run the paper's number of trials.
"""

from __future__ import annotations

from typing import NamedTuple

from paramagnet.learning.registries import GRADIENTS
from paramagnet.sweeps.spec import Spec


class Stage(NamedTuple):
    """Part of a specification; ``trials`` None takes the paper's number."""

    spec: str
    part: str
    trials: int | None = None


TOY = ("toy_spin", "toy_bit_c0", "toy_bit_c5")
TOY_DATASETS = ("toy_spin_datasets", "toy_bit_datasets")
DRYBEAN = ("drybean_spin", "drybean_bit")
ULC = ("ulc_spin", "ulc_bit")
MNIST = ("mnist_spin", "mnist_bit")
FIGURES = ("drybean_long",)


def _stages(specs: tuple[str, ...], part: str, trials: int | None = None) -> tuple[Stage, ...]:
    return tuple(Stage(spec, part, trials) for spec in specs)


PLANS: dict[str, tuple[Stage, ...]] = {
    "toy": (*_stages(TOY, "paper"), *_stages(TOY_DATASETS, "paper"), *_stages(TOY, "rivals")),
    "drybean": (*_stages(DRYBEAN, "paper"), *_stages(DRYBEAN, "rivals")),
    "ulc": (*_stages(ULC, "paper"), *_stages(ULC, "rivals")),
    "mnist": (*_stages(MNIST, "paper"), *_stages(MNIST, "rivals")),
    "figures": _stages(FIGURES, "paper"),
}
PLANS["all"] = (
    # First at least one trial of every cell and figure, and of other initial weights where runs are short.
    *_stages(TOY, "paper"),
    *_stages(TOY_DATASETS, "paper"),
    *_stages(DRYBEAN, "paper", 30),
    *_stages(FIGURES, "paper", 30),
    *_stages(TOY, "rivals", 10),
    *_stages(DRYBEAN, "rivals", 10),
    *_stages(ULC, "paper", 2),
    *_stages(ULC, "rivals", 1),
    *_stages(MNIST, "paper", 1),
    # Then more where the comparison with the paper rests on the fewest trials.
    *_stages(MNIST, "paper", 2),
    *_stages(ULC, "paper", 10),
    *_stages(DRYBEAN, "paper"),
    Stage("mnist_spin", "rivals", 1),
    *_stages(MNIST, "paper", 3),
    # At last the paper's number of trials everywhere.
    *(stage for name in ("drybean", "figures", "toy", "ulc", "mnist") for stage in PLANS[name]),
)


def shorten(stages: tuple[Stage, ...], *, trials: int | None, quick: bool) -> tuple[Stage, ...]:
    """The stages with at most ``trials``; ``quick`` keeps only the paper's own cells, with few trials each
    (see `quick_trials`). A user's own specification keeps all its cells.
    """
    if quick:
        stages = tuple(s for s in stages if s.part != "rivals" and s.spec not in TOY_DATASETS)
        stages = tuple(
            dict.fromkeys(Stage(s.spec, "all" if s.spec.endswith(".toml") else "paper") for s in stages)
        )
    limit = float("inf") if trials is None else trials
    shortened = (
        stage if trials is None or (stage.trials or limit) < limit else stage._replace(trials=trials)
        for stage in stages
    )
    return tuple(dict.fromkeys(shortened))


def quick_trials(spec: Spec) -> int:
    """How many trials give a first look: two where gradients are exact, else one."""
    return 2 if GRADIENTS.find(spec.learning.gradient, "gradient").exact else 1
