"""Which rules of stage 1 go on to stage 2: the rule of the choice, and the lines for ``stage2.toml``.

python -m studies.recipe.naming

In stage 1 every family is judged at its own best rate in every setting. A user has one rate, so here a rule
is judged with its rate: the same multiple of the rate of the study of starts in all settings, by the mean
over settings of what it loses, in percent of what can be learned there. `SLOTS` are filled first, so that the
changes that were asked about (gradient, start, factor, optimizer, schedule) each have their best rule in
stage 2; a slot whose best rule is named already adds nothing. The rest are the best of further families.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from paramagnet.sweeps.store import RunRecord
from studies.recipe.analysis import Floors, collect, measure_floors, read_records
from studies.recipe.plan import MOST_NAMED, Rule, Stage, read_stage

RESULTS = Path(__file__).parents[2] / "results" / "recipe"

SLOTS: tuple[tuple[str, Callable[[Rule], bool]], ...] = (
    (
        "the recipe of version 0.2, at its best rate",
        lambda rule: (
            (rule.gradient, rule.factor, rule.start, rule.optimizer, rule.schedule)
            == ("centred", "sum", "0.7071 centred", "adam", "falling")
        ),
    ),
    ("the best with the plain gradient", lambda rule: rule.gradient == "plain"),
    (
        "the best with the plain gradient and no Hopfield-type start",
        lambda rule: rule.gradient == "plain" and "hopfield" not in rule.start,
    ),
    ("the best with SGD", lambda rule: rule.optimizer == "sgd"),
    ("the best with a constant rate", lambda rule: rule.schedule == "constant"),
    (
        "the best with centred learning from a Hopfield-type start",
        lambda rule: rule.gradient == "centred" and "hopfield" in rule.start,
    ),
    (
        "the best with centred learning from another start that is not centred",
        lambda rule: rule.gradient == "centred" and "layer-correlation" in rule.start,
    ),
    (
        "the best with centred learning and another factor",
        lambda rule: rule.gradient == "centred" and rule.factor != "sum",
    ),
)


def mean_losses(
    stage: Stage, records: Mapping[str, RunRecord], floors: Mapping[str, Floors]
) -> dict[Rule, float]:
    """The mean over settings of every rule's loss, in percent, training points, last epoch.

    Parameters
    ----------
    stage : Stage
        A stage all of whose settings have a complete trial.
    records : mapping of str to RunRecord
        Its records by digest.
    floors : mapping of str to Floors
        What independent units have in every setting.

    Returns
    -------
    dict of Rule to float
        The losses, smallest first.
    """
    losses = []
    for setting in stage.settings:
        curves, n_trials, _ = collect(stage, setting, records)
        if not n_trials:
            raise ValueError(
                f"Rules are named when every setting has a complete trial; {setting.name} has none."
            )
        ends = np.array([curves[rule].training[:, -1].mean() for rule in stage.rules])
        losses.append(100.0 * (ends.max() - ends) / (ends.max() - floors[setting.name].training))
    means = np.mean(losses, axis=0)
    return {stage.rules[index]: float(means[index]) for index in np.argsort(means, kind="stable")}


def name_rules(losses: Mapping[Rule, float], most: int = MOST_NAMED) -> list[tuple[str, Rule]]:
    """The rules to name, with the reason for each.

    Parameters
    ----------
    losses : mapping of Rule to float
        Mean losses, smallest first (`mean_losses`).
    most : int, default 12
        How many to name.

    Returns
    -------
    list of (str, Rule)
        Reasons and rules, no two of the same family.
    """
    ranked = sorted(losses, key=lambda rule: losses[rule])
    named: list[tuple[str, Rule]] = []
    families: set[str] = set()

    def add(reason: str, rule: Rule) -> None:
        if str(rule.family) not in families and len(named) < most:
            named.append((reason, rule))
            families.add(str(rule.family))

    for reason, fits in SLOTS:
        found = next((rule for rule in ranked if fits(rule)), None)
        if found is not None:
            add(reason, found)
    for rule in ranked:
        add("among the best of the rest", rule)
    return named


def as_toml(named: list[tuple[str, Rule]], losses: Mapping[Rule, float]) -> str:
    """The lines for the file of the next stage."""
    lines = ["named = ["]
    for reason, rule in named:
        lines.append(f"    # {reason}; mean loss in stage 1: {losses[rule]:.2f} %")
        lines.append(
            f'    {{gradient = "{rule.gradient}", factor = "{rule.factor}", start = "{rule.start}", '
            f'optimizer = "{rule.optimizer}", schedule = "{rule.schedule}", rate = {rule.rate:g}}},'
        )
    return "\n".join([*lines, "]"])


def main() -> int:
    """Print the rules that stage 1 names."""
    stage = read_stage("stage1")
    floors = {setting.name: measure_floors(stage, setting) for setting in stage.settings}
    losses = mean_losses(stage, read_records(RESULTS, stage), floors)
    print(as_toml(name_rules(losses), losses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
