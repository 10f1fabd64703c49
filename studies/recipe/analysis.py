"""What the records of a stage say: losses, best rates, speed, and which rules cannot be told apart.

A *family* is a rule without its rate (`Rule.family`); in a stage without a scan of rates it is the rule
itself. In every setting it is judged at the rate that is best for it there, by the mean over trials of the
log-likelihood of the training points after the last epoch. Only *complete* trials count, those with a record
of every rule of the stage, so that all rules are judged on the same trials; any number of them will do, and
every result says how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paramagnet.learning.independent import level_of
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.store import RunRecord, Store
from paramagnet.units import FloatArray, find_unit
from studies.recipe.losses import Comparison, compare_rules
from studies.recipe.plan import Rule, Setting, Stage

SHARE = 0.95  # of the way from independent units to the best mean, for the speed of a rule
N_LEADING = 5  # families whose rates must not be best at an end of the scan
HALF_DECADE = math.sqrt(10.0)


@dataclass(frozen=True)
class Floors:
    """The log-likelihood of independent units with the means of the data, nats per point."""

    training: float
    held_out: float


@dataclass(frozen=True, eq=False)
class Curves:
    """The complete trials of one rule in one setting, one row per trial."""

    epochs: tuple[int, ...]
    training: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class Verdict:
    """A family in one setting, at its best rate.

    ``loss`` and ``held_out_loss`` are percent of what can be learned, behind the best family; ``epochs`` is
    the first measured epoch at which the mean curve has 95 % of the way to the best mean, None if never.
    """

    family: Rule
    rate: float
    training: float
    loss: float
    held_out: float
    held_out_loss: float
    epochs: int | None


@dataclass(frozen=True)
class Extension:
    """A family among the best whose best rate is at an end of the scan, and the rate to add."""

    family: Rule
    rate: float
    further: float


@dataclass(frozen=True, eq=False)
class SettingResult:
    """What is known of one setting."""

    setting: Setting
    n_records: int
    n_planned: int
    n_trials: int
    verdicts: tuple[Verdict, ...]  # best first; empty without a complete trial
    extensions: tuple[Extension, ...]
    comparison: Comparison | None  # of the families in the order of the verdicts
    floors: Floors
    tables: Mapping[Rule, FloatArray]  # by family, the values of its best rate in the complete trials

    @property
    def leaders(self) -> tuple[Verdict, ...] | None:
        """The families that cannot be told from the best; None where trials are too few to say."""
        if self.comparison is None or self.comparison.intervals is None:
            return None
        return tuple(self.verdicts[index] for index in self.comparison.may_be_best)


def read_records(folder: Path, stage: Stage) -> dict[str, RunRecord]:
    """All records of a stage by digest."""
    found: dict[str, RunRecord] = {}
    for setting in stage.settings:
        path = folder / stage.name / f"{setting.name}.jsonl"
        if path.exists():
            found |= {record.digest: record for record in Store(path).records()}
    return found


def measure_floors(stage: Stage, setting: Setting) -> Floors:
    """What independent units have on the training points and on the held-out ones (NaN without any)."""
    _, run = next(stage.runs(setting, 0))
    points, held_out = load_points(run)
    unit = find_unit(setting.spec.visible, "visible")
    other = math.nan if held_out is None else level_of(unit, points, held_out)
    return Floors(level_of(unit, points, points), other)


def collect(
    stage: Stage, setting: Setting, records: Mapping[str, RunRecord]
) -> tuple[dict[Rule, Curves], int, int]:
    """The curves of all rules in the complete trials, their number, and the number of records."""
    rows: list[dict[Rule, RunRecord]] = []
    n_records = 0
    for trial in range(stage.trials):
        made = {
            rule: records[run.digest] for rule, run in stage.runs(setting, trial) if run.digest in records
        }
        n_records += len({record.digest for record in made.values()})
        if len(made) == len(stage.rules):
            rows.append(made)
    curves = {}
    for rule in stage.rules if rows else ():
        every = [row[rule] for row in rows]
        training = np.array([record.log_likelihood for record in every])
        held_out = np.array([record.held_out for record in every])
        curves[rule] = Curves(every[0].epochs, training, held_out)
    return curves, len(rows), n_records


def judge_setting(
    stage: Stage, setting: Setting, records: Mapping[str, RunRecord], floors: Floors
) -> SettingResult:
    """All that the records say of one setting."""
    curves, n_trials, n_records = collect(stage, setting, records)
    n_planned = len({run.digest for trial in range(stage.trials) for _, run in stage.runs(setting, trial)})
    if not curves:
        return SettingResult(setting, n_records, n_planned, 0, (), (), None, floors, {})
    best: dict[Rule, Rule] = {}
    for rule, curve in curves.items():
        known = best.get(stage.judged(rule))
        if known is None or _end(curve) > _end(curves[known]):
            best[stage.judged(rule)] = rule
    chosen = sorted(best.values(), key=lambda rule: -_end(curves[rule]))
    top = _end(curves[chosen[0]])
    way = top - floors.training
    top_held_out = max(float(curves[rule].held_out[:, -1].mean()) for rule in chosen)
    way_held_out = top_held_out - floors.held_out
    verdicts = []
    for rule in chosen:
        curve = curves[rule]
        held_out = float(curve.held_out[:, -1].mean())
        verdicts.append(
            Verdict(
                stage.judged(rule),
                rule.rate,
                _end(curve),
                100.0 * (top - _end(curve)) / way,
                held_out,
                100.0 * (top_held_out - held_out) / way_held_out,
                _first_epoch(curve, floors.training + SHARE * way),
            )
        )
    tables = {stage.judged(rule): curves[rule].training[:, -1] for rule in chosen}
    comparison = compare_rules([np.column_stack([*tables.values()])], [floors.training])
    extensions = _extensions(stage, verdicts[:N_LEADING])
    return SettingResult(
        setting, n_records, n_planned, n_trials, tuple(verdicts), extensions, comparison, floors, tables
    )


def _end(curve: Curves) -> float:
    return float(curve.training[:, -1].mean())


def _first_epoch(curve: Curves, level: float) -> int | None:
    reached = np.flatnonzero(curve.training.mean(axis=0) >= level)
    return int(curve.epochs[reached[0]]) if reached.size else None


def _extensions(stage: Stage, leading: Sequence[Verdict]) -> tuple[Extension, ...]:
    """The rates that the scan must be extended by: half a decade beyond an end that is best for a leader."""
    found = []
    for verdict in leading:
        rates = sorted({rule.rate for rule in stage.rules if stage.judged(rule) == verdict.family})
        if len(rates) == 1:
            continue
        if verdict.rate == rates[-1]:
            found.append(Extension(verdict.family, verdict.rate, verdict.rate * HALF_DECADE))
        elif verdict.rate == rates[0]:
            found.append(Extension(verdict.family, verdict.rate, verdict.rate / HALF_DECADE))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class StageResult:
    """What is known of a stage; ``overall`` compares families over the settings in ``counted``."""

    stage: Stage
    settings: tuple[SettingResult, ...]
    counted: tuple[SettingResult, ...]
    families: tuple[Rule, ...]
    overall: Comparison | None

    @property
    def n_records(self) -> int:
        """Records that belong to the plan."""
        return sum(result.n_records for result in self.settings)

    @property
    def n_planned(self) -> int:
        """Runs of the plan."""
        return sum(result.n_planned for result in self.settings)


def judge_stage(stage: Stage, records: Mapping[str, RunRecord], floors: Mapping[str, Floors]) -> StageResult:
    """All that the records of a stage say; ``floors`` are those of the settings, by name."""
    results = tuple(
        judge_setting(stage, setting, records, floors[setting.name]) for setting in stage.settings
    )
    counted = tuple(result for result in results if result.n_trials)
    families = tuple(dict.fromkeys(map(stage.judged, stage.rules)))
    overall = None
    if counted:
        tables = [np.column_stack([result.tables[family] for family in families]) for result in counted]
        overall = compare_rules(tables, [result.floors.training for result in counted])
    return StageResult(stage, results, counted, families, overall)


@dataclass(frozen=True)
class Contrast:
    """What one change alone does: the value of ``better`` less that of ``base``, in percent, by setting."""

    title: str
    better: Rule
    base: Rule

    def percent(self, result: SettingResult) -> FloatArray | None:
        """The difference in each trial, in percent of what can be learned; None where one is missing."""
        if self.better not in result.tables or self.base not in result.tables:
            return None
        way = result.verdicts[0].training - result.floors.training
        found: FloatArray = 100.0 * (result.tables[self.better] - result.tables[self.base]) / way
        return found


def contrasts(stage: Stage) -> tuple[Contrast, ...]:
    """The pairs of families that differ in one respect: gradient, factor, start, schedule, optimizer."""
    families = {rule.family for rule in stage.rules}

    def family(gradient: str, factor: str, start: str, optimizer: str, schedule: str) -> Rule:
        return Rule(gradient, factor, start, optimizer, schedule, math.nan).family

    found = []
    for optimizer in sorted({rule.optimizer for rule in families}):
        for schedule in sorted({rule.schedule for rule in families}):
            ways = (optimizer, schedule)
            named = f"{optimizer}, {schedule}"
            centred = family("centred", "sum", "0.7071 centred", *ways)
            plain = family("plain", "1", "0.7071 centred", *ways)
            found.append(Contrast(f"centred gradient, same start ({named})", centred, plain))
            for factor in ("1", "sqrt n", "n"):
                other = family("centred", factor, "0.7071 centred", *ways)
                found.append(Contrast(f"k = sum in place of {factor} ({named})", centred, other))
            control = family("plain", "sum", "0.7071 layer-correlation+data", *ways)
            base = family("plain", "1", "0.7071 layer-correlation+data", *ways)
            found.append(Contrast(f"k = sum in the plain gradient, the control ({named})", control, base))
            start = family("centred", "sum", "hopfield", *ways)
            found.append(Contrast(f"hopfield in place of 0.7071 centred ({named})", start, centred))
        base = family("centred", "sum", "0.7071 centred", optimizer, "constant")
        falling = family("centred", "sum", "0.7071 centred", optimizer, "falling")
        found.append(Contrast(f"falling rate ({optimizer})", falling, base))
    return tuple(one for one in found if {one.better, one.base} <= families)
