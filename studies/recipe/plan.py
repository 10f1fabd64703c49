"""The runs of a stage of the study, from its file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from paramagnet.layout import Layout
from paramagnet.learning.centring import hidden_factor
from paramagnet.sweeps.learning_spec import LearningSpec
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.spec import Run, Spec
from paramagnet.sweeps.starts import parse_start
from paramagnet.units import find_unit
from studies.recipe.stretched import KINDS
from studies.starts.specs_of_study import read_study_spec

FOLDER = Path(__file__).parent
OPTIMIZER = "studies.recipe.stretched:Stretched"
FACTORS = ("1", "sqrt n", "sum", "n")
GRADIENTS = ("centred", "plain")
MOST_NAMED = 12


@dataclass(frozen=True)
class Rule:
    """What is compared: a start, a gradient, a factor on the hidden biases, an optimizer, its schedule and
    its rate as a multiple of that of the study of starts.
    """

    gradient: str
    factor: str
    start: str
    optimizer: str
    schedule: str
    rate: float

    @property
    def family(self) -> Rule:
        """The rule without its rate, which is scanned."""
        return replace(self, rate=math.nan) if not math.isnan(self.rate) else self

    def __str__(self) -> str:
        words = f"{self.start}, {self.gradient}, k = {self.factor}, {self.optimizer}, {self.schedule}"
        return words if math.isnan(self.rate) else f"{words}, rate x {self.rate:g}"


@dataclass(frozen=True)
class Setting:
    """A data set and a machine."""

    name: str
    spec: Spec
    n_hidden: int
    hidden_bias: float


@dataclass(frozen=True)
class Stage:
    """All that a stage runs."""

    name: str
    trials: int
    seed: int
    settings: tuple[Setting, ...]
    rules: tuple[Rule, ...]
    ends: dict[str, float]  # by schedule, the share of the rate that is left at the end
    scanned: bool = True  # whether rates are scanned, and a rule is judged at the best one

    def judged(self, rule: Rule) -> Rule:
        """What a rule is judged as: its family where rates are scanned, else the rule itself."""
        return rule.family if self.scanned else rule

    def runs(self, setting: Setting, trial: int) -> Iterator[tuple[Rule, Run]]:
        """The runs of one trial in one setting."""
        for rule in self.rules:
            yield rule, self._run(setting, rule, trial)

    def _run(self, setting: Setting, rule: Rule, trial: int) -> Run:
        scheme, gain = parse_start(rule.start)
        spec = setting.spec
        facts = measure_data(spec, setting.n_hidden, setting.hidden_bias)
        factors = dict(
            zip(FACTORS, (1.0, math.sqrt(facts.n_visible), facts.sum_of_means, facts.n_visible), strict=True)
        )
        batch = spec.learning.batch_size or facts.n_points
        options: dict[str, Any] = {
            "kind": rule.optimizer,
            "end": self.ends[rule.schedule],
            "n_updates": max(spec.measurement.epochs) * -(-facts.n_points // batch),
            "factor": float(factors[rule.factor]),
            "n_weights": facts.n_visible * setting.n_hidden,
            "n_hidden": setting.n_hidden,
        }
        learning = LearningSpec(
            learning_rate=rule.rate * spec.learning.learning_rate,
            optimizer=OPTIMIZER,
            batch_size=spec.learning.batch_size,
            gradient="exact",
            options=tuple(options.items()),
            centred=rule.gradient == "centred",
        )
        return Run(
            data=spec.data,
            visible=spec.visible,
            hidden=spec.hidden,
            n_hidden=setting.n_hidden,
            hidden_bias=setting.hidden_bias,
            scheme=scheme,
            gain=gain,
            learning=learning,
            measurement=spec.measurement,
            trial=trial,
            seed=self.seed,
        )


@dataclass(frozen=True)
class DataFacts:
    """What the runs of a setting need to know of its data."""

    n_points: int
    n_visible: int
    sum_of_means: float  # max(1, sum_i |mu_i|), rounded to six digits, so that digests are the same anywhere


@lru_cache(maxsize=64)
def measure_data(spec: Spec, n_hidden: int, hidden_bias: float) -> DataFacts:
    """The size of the data of a specification, and the factor from their means."""
    points, _ = load_points(next(replace(spec, n_hidden=(n_hidden,), hidden_bias=(hidden_bias,)).runs()))
    visible = find_unit(spec.visible, "visible")
    layout = Layout(points.shape[1], n_hidden, visible, find_unit(spec.hidden, "hidden"))
    factor = float(f"{hidden_factor(layout, points.mean(axis=0)):.6g}")
    return DataFacts(len(points), points.shape[1], factor)


def read_stage(name: str) -> Stage:
    """The stage in the file ``name``.toml.

    A stage has a grid of rules (every one with every optimizer, rate and schedule), or rules that are named
    one by one (``[[named]]``), or both. With named rules the rates of the grid are not scanned.
    """
    content = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    ends = content["schedules"]
    rules = [
        Rule(part["gradient"], part["factor"], start, optimizer["kind"], schedule, rate)
        for part in content["rules"]
        for start in part["starts"]
        for optimizer in content["optimizers"]
        for schedule in content.get("grid_schedules", ends)
        for rate in optimizer["rates"]
    ]
    named = content.get("named")
    if named is not None:
        rules += _named_rules(name, named, ends)
    settings = tuple(
        Setting(part["name"], read_study_spec(part["spec"]), part["n_hidden"], part["hidden_bias"])
        for part in content["settings"]
    )
    return Stage(name, content["trials"], content["seed"], settings, tuple(rules), ends, named is None)


def _named_rules(stage: str, named: list[dict[str, Any]], ends: dict[str, float]) -> list[Rule]:
    """The rules that a stage names, checked."""
    if not named:
        raise ValueError(
            f"`named` of {stage}.toml must hold rules, it is empty: they are chosen when the stage before is "
            "complete, and written there before the first run."
        )
    if len(named) > MOST_NAMED:
        raise ValueError(f"`named` of {stage}.toml must hold at most {MOST_NAMED} rules, got {len(named)}.")
    found = []
    for part in named:
        known = [field.name for field in fields(Rule)]
        if sorted(part) != sorted(known):
            raise ValueError(f"`named` of {stage}.toml must have the keys {', '.join(known)}, got {part}.")
        rule = Rule(**part)
        known_values = {"gradient": GRADIENTS, "factor": FACTORS, "optimizer": KINDS, "schedule": ends}
        for key, choices in known_values.items():
            value = getattr(rule, key)
            if value not in choices:
                raise ValueError(
                    f"`{key}` of {stage}.toml must be one of {', '.join(choices)}, got {value!r}."
                )
        parse_start(rule.start)
        found.append(rule)
    if len(set(found)) < len(found):
        raise ValueError(f"`named` of {stage}.toml must hold different rules, one is there twice.")
    return found
