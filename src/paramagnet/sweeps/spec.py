"""What a sweep consists of: a specification, and the runs it expands to. Files of them: `spec_files`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramagnet._checks import MOST_CHAINS, MOST_SWEEPS, as_choice, as_count, as_positive, as_real
from paramagnet.data.sources import SOURCES, is_drawn
from paramagnet.schemes import SCHEMES
from paramagnet.sweeps.learning_spec import MOST_POINTS, LearningSpec
from paramagnet.sweeps.starts import OURS, parse_start
from paramagnet.units import find_unit

if TYPE_CHECKING:  # imported where it is used: reading a specification must not load the kernels
    from paramagnet.learning.evaluation import LogZ

PARTS = ("paper", "rivals", "starts", "all")

# Larger numbers are slips of the pen: they would fill the memory, or never end.
MOST_RUNS = 1_000_000  # of a specification
MOST_UNITS = 1_000_000  # of a layer
MOST_OF_CURVE = 1000  # measurements

# Fields that came after the first digests, with their defaults.
LATER: dict[str, Any] = {
    "options": (), "centred": False, "weight_decay": 0.0, "l1": 0.0, "l1_group": 0.0, "clip": None,
    "schedule": "constant",
}  # fmt: skip


@dataclass(frozen=True)
class DataSpec:
    """The points. ``name`` is that of a known set or the path of a file; ``sha256`` is that of the file.

    ``n_points`` are selected at random, None takes the paper's number or all. ``held_out`` says where the
    points come from that are measured but not learned: "rest" (those not selected), "fresh" (drawn anew;
    only for sets that are drawn, as toy is), the name of another set, or the path of a file; at most
    ``held_out_points`` of them.

    One draw or selection serves all trials, unless ``datasets`` is larger than one: then trial ``datasets *
    k + d`` learns draw ``d`` from the initial weights of trial ``k``.
    """

    name: str
    n_points: int | None = None
    held_out: str = "rest"
    held_out_points: int | None = None
    datasets: int = 1
    binarize: str | float = "otsu"
    sha256: str = ""
    held_out_sha256: str = ""

    def __post_init__(self) -> None:
        _require_text(self.name, "name")
        _require_text(self.held_out, "held_out")
        for key in ("n_points", "held_out_points"):
            if getattr(self, key) is not None:
                as_count(getattr(self, key), key, maximum=MOST_POINTS)
        as_count(self.datasets, "datasets", maximum=MOST_RUNS)
        if not isinstance(self.binarize, str):
            as_real(self.binarize, "binarize")
        same = (self.held_out == self.name and not is_drawn(self.name)) or (
            self.sha256 and self.sha256 == self.held_out_sha256
        )
        if same:  # another draw of data that are drawn is another set
            raise ValueError(
                f"`held_out` must not be what is learned, got {Path(self.held_out).name!r} for both. "
                '"rest" takes the points that `n_points` leaves over.'
            )
        if self.held_out == "fresh" and not is_drawn(self.name):
            drawn = ", ".join(name for name in SOURCES if is_drawn(name))
            raise ValueError(
                f'`held_out` can be "fresh" for data that are drawn ({drawn}) only; take "rest", a set or a '
                f"file, got `name` = {Path(self.name).name!r}."
            )


@dataclass(frozen=True)
class MeasurementSpec:
    """When the log-likelihood is taken, and how ``ln Z``.

    At ``epochs``, the last of which ends the run; at the start; and at about ``curve`` more, spaced evenly in
    the logarithm. ``log_partition`` is "exact" or "mais"; the latter with ``n_samples`` (S) and
    ``n_temperatures`` (K) at ``epochs``, and with ``curve_samples`` and ``curve_temperatures`` at the others.
    """

    epochs: tuple[int, ...]
    curve: int = 20
    log_partition: str = "exact"
    n_samples: int = 1000
    n_temperatures: int = 1000
    curve_samples: int = 500
    curve_temperatures: int = 500

    def __post_init__(self) -> None:
        if not self.epochs:
            raise ValueError("`epochs` must name at least one epoch, the last.")
        for epoch in self.epochs:
            as_count(epoch, "epochs", maximum=MOST_SWEEPS)
        as_count(self.curve, "curve", minimum=0, maximum=MOST_OF_CURVE)
        as_choice(self.log_partition, "log_partition", ("exact", "mais"))
        for key in ("n_samples", "n_temperatures", "curve_samples", "curve_temperatures"):
            as_count(getattr(self, key), key, maximum=MOST_CHAINS)

    @cached_property
    def all_epochs(self) -> tuple[int, ...]:
        """All epochs at which the likelihood is taken, in order; the start is epoch 0."""
        last = max(self.epochs)
        steps = (math.exp(math.log(last) * k / max(self.curve - 1, 1)) for k in range(self.curve))
        return tuple(sorted({0, *self.epochs, *(round(step) for step in steps)}))

    def effort(self, epoch: int) -> tuple[int, int]:
        """The samples and temperatures of mAIS at an epoch."""
        if epoch in self.epochs:
            return self.n_samples, self.n_temperatures
        return self.curve_samples, self.curve_temperatures

    def log_z(self, epoch: int) -> LogZ:
        """How ``ln Z`` is found at an epoch."""
        from paramagnet.learning.evaluation import LogZ

        n_samples, n_temperatures = self.effort(epoch)
        return LogZ(self.log_partition, n_samples=n_samples, n_temperatures=n_temperatures)


def _content(part: DataSpec | LearningSpec | MeasurementSpec) -> dict[str, Any]:
    """What digests are made from: a file counts by its name and content, and what digests of before did not
    have (`LATER`) is left out where it is at its default.
    """
    content = asdict(part)
    if isinstance(part, DataSpec):
        content["name"], content["held_out"] = Path(part.name).name, Path(part.held_out).name
    return {key: value for key, value in content.items() if key not in LATER or value != LATER[key]}


@lru_cache(maxsize=64)
def _settings_digest(data: DataSpec, learning: LearningSpec, measurement: MeasurementSpec) -> str:
    content = [_content(part) for part in (data, learning, measurement)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Run:
    """One run: everything its result depends on."""

    data: DataSpec
    visible: str
    hidden: str
    n_hidden: int
    hidden_bias: float
    scheme: str
    gain: float
    learning: LearningSpec
    measurement: MeasurementSpec
    trial: int
    seed: int

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that stand for the configuration; a file counts by its content."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        content |= {key: _content(content[key]) for key in ("data", "learning", "measurement")}
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def settings(self) -> str:
        """Eight digits that stand for what the runs of a sweep share: data, learning, measurement."""
        return _settings_digest(self.data, self.learning, self.measurement)

    @property
    def dataset(self) -> int:
        """Which draw of the data this run learns."""
        return self.trial % self.data.datasets

    def describe(self) -> str:
        """The run in words."""
        scale = f"gain {self.gain:g}" if self.scheme == OURS else self.scheme
        if self.scheme != OURS and self.gain != 1.0:
            scale = f"{self.gain:g} {scale}"
        return (
            f"{Path(self.data.name).name}, {self.n_hidden} {self.hidden} hidden units, "
            f"c = {self.hidden_bias:g}, {scale}, trial {self.trial}"
        )


@dataclass(frozen=True)
class Spec:
    """A sweep: cells (sizes, biases, and gains, rival schemes or other starts) times trials, all else equal.

    ``table`` is the name of the printed table that the runs are compared with, empty where there is none.
    """

    name: str
    data: DataSpec
    learning: LearningSpec
    measurement: MeasurementSpec
    visible: str
    hidden: str
    n_hidden: tuple[int, ...]
    hidden_bias: tuple[float, ...]
    gains: tuple[float, ...]
    rivals: tuple[str, ...]
    trials: int
    table: str = ""
    seed: int = 0
    starts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        find_unit(self.visible, "visible")
        find_unit(self.hidden, "hidden")
        for key in ("n_hidden", "hidden_bias"):
            if not getattr(self, key):
                raise ValueError(f"`{key}` must hold at least one number.")
        for size in self.n_hidden:
            as_count(size, "n_hidden", maximum=MOST_UNITS)
        for gain in self.gains:
            as_positive(as_real(gain, "gains"), "gains")
        for rival in self.rivals:
            SCHEMES.parse(rival, "rivals")
        for start in self.starts:
            _require_text(start, "starts")
            parse_start(start)
        if not (self.gains or self.rivals or self.starts):
            raise ValueError("`gains`, `rivals` and `starts` must not all be empty.")
        starts = len(self.gains) + len(self.rivals) + len(self.starts)
        n_cells = len(self.n_hidden) * len(self.hidden_bias) * starts
        if as_count(self.trials, "trials", maximum=None) * n_cells > MOST_RUNS:
            raise ValueError(
                f"`trials` must make at most {MOST_RUNS} runs, {MOST_RUNS // n_cells} trials of {n_cells} "
                f"cells, got {self.trials}."
            )
        as_count(self.seed, "seed", minimum=0, maximum=None)

    @property
    def settings(self) -> str:
        """What the records of its runs have as `settings`."""
        return _settings_digest(self.data, self.learning, self.measurement)

    def runs(self, *, trials: int | None = None, part: str = "all") -> Iterator[Run]:
        """All runs, trial after trial, so that a sweep that is cut short covers all cells evenly.

        ``part`` is "paper" (the gains), "rivals", "starts", or "all": one after the other.
        """
        as_choice(part, "part", PARTS)
        count = self.trials if trials is None else min(as_count(trials, "trials"), self.trials)
        parts = {
            "paper": [(OURS, gain) for gain in self.gains],
            "rivals": [(rival, 1.0) for rival in self.rivals],
            "starts": [parse_start(start) for start in self.starts],
        }
        for scales in parts.values() if part == "all" else (parts[part],):
            for trial in range(count):
                for n_hidden in self.n_hidden:
                    for c in self.hidden_bias:
                        for scheme, gain in scales:
                            yield self._run(n_hidden, c, scheme, gain, trial)

    def _run(self, n_hidden: int, c: float, scheme: str, gain: float, trial: int) -> Run:
        return Run(
            data=self.data,
            visible=self.visible,
            hidden=self.hidden,
            n_hidden=n_hidden,
            hidden_bias=c,
            scheme=scheme,
            gain=gain,
            learning=self.learning,
            measurement=self.measurement,
            trial=trial,
            seed=self.seed,
        )


def _require_text(value: Any, argument: str) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{argument}` must be a text, got {value!r}.")
