"""What a sweep consists of: a specification, read from TOML, and the runs it expands to.

The specifications of the paper's tables and figures are package data, ``specs/*.toml``, each to be read
beside [Y25] section 4; users write their own in the same form.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from paramagnet._checks import as_count, as_positive, as_real
from paramagnet.data.sources import SOURCES
from paramagnet.experiments.paper import PAPER_TABLES
from paramagnet.experiments.starts import OURS, parse_start
from paramagnet.initializers import SCHEMES
from paramagnet.units import as_unit

PARTS = ("paper", "rivals", "starts", "all")
STUDY = "win"  # a folder of specifications


@dataclass(frozen=True)
class DataSpec:
    """The points. ``name`` is that of a known set or the path of a file; ``sha256`` is that of the file.

    ``n_points`` are selected at random, None takes the paper's number or all. ``held_out`` says where the
    points come from that are measured but not learned: "rest" (those not selected), "fresh" (drawn anew; toy
    only), the name of another set, or the path of a file; at most ``held_out_points`` of them.

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
                as_count(getattr(self, key), key)
        as_count(self.datasets, "datasets")
        if not isinstance(self.binarize, str):
            as_real(self.binarize, "binarize")
        same = self.held_out == self.name != "toy" or (self.sha256 and self.sha256 == self.held_out_sha256)
        if same:  # another draw of the toy data is another set
            raise ValueError(
                f"`held_out` must not be what is learned, got {Path(self.held_out).name!r} for both. "
                '"rest" takes the points that `n_points` leaves over.'
            )
        if self.held_out == "fresh" and self.name != "toy":
            raise ValueError('`held_out` can be "fresh" for the toy data only; take "rest", a set or a file.')


@dataclass(frozen=True)
class LearningSpec:
    """Optimizer and gradient; ``batch_size`` None takes all points at once."""

    learning_rate: float
    optimizer: str = "adam"
    momentum: float = 0.0
    batch_size: int | None = None
    gradient: str = "exact"
    n_chains: int = 1000
    n_steps: int = 40
    n_relax: int = 500

    def __post_init__(self) -> None:
        as_positive(as_real(self.learning_rate, "learning_rate"), "learning_rate")
        _require_one_of(self.optimizer, "optimizer", ("adam", "sgd"))
        _require_one_of(self.gradient, "gradient", ("exact", "pcd"))
        if self.batch_size is not None:
            as_count(self.batch_size, "batch_size")
        if not 0.0 <= as_real(self.momentum, "momentum") < 1.0:
            raise ValueError(f"`momentum` must be at least 0 and below 1, got {self.momentum!r}.")
        if self.momentum and self.optimizer == "adam":
            raise ValueError("`momentum` is for the optimizer sgd; adam has its own.")
        for key, minimum in (("n_chains", 1), ("n_steps", 1), ("n_relax", 0)):
            as_count(getattr(self, key), key, minimum=minimum)


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
            as_count(epoch, "epochs")
        as_count(self.curve, "curve", minimum=0)
        _require_one_of(self.log_partition, "log_partition", ("exact", "mais"))
        for key in ("n_samples", "n_temperatures", "curve_samples", "curve_temperatures"):
            as_count(getattr(self, key), key)

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


@lru_cache(maxsize=64)
def _settings_digest(data: DataSpec, learning: LearningSpec, measurement: MeasurementSpec) -> str:
    content = [asdict(part) for part in (data, learning, measurement)]
    content[0]["name"], content[0]["held_out"] = Path(data.name).name, Path(data.held_out).name
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
        content = asdict(self)
        content["data"]["name"] = Path(self.data.name).name
        content["data"]["held_out"] = Path(self.data.held_out).name
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

    ``table`` is the name of the paper's table in ``paper/log_likelihoods.csv``, empty where there is none.
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
        as_unit(self.visible, "visible")
        as_unit(self.hidden, "hidden")
        for key in ("n_hidden", "hidden_bias"):
            if not getattr(self, key):
                raise ValueError(f"`{key}` must hold at least one number.")
        for size in self.n_hidden:
            as_count(size, "n_hidden")
        for gain in self.gains:
            as_positive(as_real(gain, "gains"), "gains")
        for rival in self.rivals:
            _require_one_of(rival, "rivals", SCHEMES)
        for start in self.starts:
            _require_text(start, "starts")
            parse_start(start)
        if not (self.gains or self.rivals or self.starts):
            raise ValueError("`gains`, `rivals` and `starts` must not all be empty.")
        if self.table and self.table not in {table.key for table in PAPER_TABLES}:
            raise ValueError(f"`table` must be one of the paper's, got {self.table!r}. Leave it out.")
        as_count(self.trials, "trials")
        as_count(self.seed, "seed", minimum=0)

    @property
    def settings(self) -> str:
        """What the records of its runs have as `settings`."""
        return _settings_digest(self.data, self.learning, self.measurement)

    def runs(self, *, trials: int | None = None, part: str = "all") -> Iterator[Run]:
        """All runs, trial after trial, so that a sweep that is cut short covers all cells evenly.

        ``part`` is "paper" (the gains), "rivals", "starts", or "all": one after the other.
        """
        _require_one_of(part, "part", PARTS)
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


# Reading

Section = TypeVar("Section", DataSpec, LearningSpec, MeasurementSpec)


def paper_specs() -> tuple[str, ...]:
    """The names of the specifications of the paper's tables and figures."""
    return _names_in(files("paramagnet.experiments") / "specs")


def study_specs() -> tuple[str, ...]:
    """The names of those of the study that compares starts, beyond the paper; they begin with "win/"."""
    folder = files("paramagnet.experiments") / "specs" / STUDY
    return tuple(f"{STUDY}/{name}" for name in _names_in(folder))


def _names_in(folder: Traversable) -> tuple[str, ...]:
    names = (item.name for item in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_spec(source: str | Path) -> Spec:
    """The specification of that name, or the one in the file of that path.

    Paths of data files in it are relative to its own folder.
    """
    path = Path(source)
    if path.suffix != ".toml":
        known = (*paper_specs(), *study_specs())
        if str(source) not in known:
            raise ValueError(
                f"`spec` must be one of {', '.join(known)}, or the path of a .toml file, got {str(source)!r}."
            )
        text = (files("paramagnet.experiments") / "specs" / f"{source}.toml").read_text(encoding="utf-8")
        return parse_spec(text, str(source))
    if path.is_dir():
        raise IsADirectoryError(f"`spec` must be a file, {path} is a folder.")
    if not path.is_file():
        raise FileNotFoundError(f"`spec` does not exist: {path}.")
    if path.stem in paper_specs():
        raise ValueError(
            f"`spec` must not have the name of a specification of the paper's, got {path.name}. Rename it: "
            "its records would be taken for the paper's."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} must be text in UTF-8, as TOML is, and is not.") from None
    spec = parse_spec(text, path.stem, path.parent)
    if spec.table:
        raise ValueError(
            f"{path.name}: `table` is for the paper's own specifications; leave it out, or the runs would be "
            "counted for that table."
        )
    return spec


def parse_spec(text: str, name: str, folder: Path | None = None) -> Spec:
    """The specification that a TOML text holds; an error names the key and what it should be."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}.toml is not valid TOML: {error}.") from None
    try:
        return _parse(content, name, folder)
    except ValueError as error:
        raise ValueError(f"{name}.toml: {error}") from None


def _parse(content: dict[str, Any], name: str, folder: Path | None) -> Spec:
    sections = {"data": DataSpec, "learning": LearningSpec, "measurement": MeasurementSpec}
    top = ("table", "trials", "seed", *sections, "machine")
    _refuse_unknown(content, top, "")
    for key in (*sections, "machine"):
        if not isinstance(content.get(key), dict):
            raise ValueError(f"the section [{key}] is missing.")
    machine = content["machine"]
    known = ("visible", "hidden", "n_hidden", "hidden_bias", "gains", "rivals", "starts")
    _refuse_unknown(machine, known, "[machine] ")
    _require(machine, ("n_hidden",), "[machine] ")
    _require(content, ("trials",), "")
    data = _section(DataSpec, content["data"], "[data] ", leave_out=("sha256", "held_out_sha256"))
    return Spec(
        name=name,
        data=_locate(data, folder),
        learning=_section(LearningSpec, content["learning"], "[learning] "),
        measurement=_section(MeasurementSpec, content["measurement"], "[measurement] "),
        visible=machine.get("visible", "spin"),
        hidden=machine.get("hidden", "bit"),
        n_hidden=_as_tuple(machine["n_hidden"]),
        hidden_bias=tuple(
            as_real(c, "hidden_bias") + 0.0 for c in _as_tuple(machine.get("hidden_bias", 0.0))
        ),
        gains=tuple(as_real(gain, "gains") for gain in _as_tuple(machine.get("gains", 1.0))),
        rivals=_as_tuple(machine.get("rivals", [])),
        trials=content["trials"],
        table=content.get("table", ""),
        seed=content.get("seed", 0),
        starts=_as_tuple(machine.get("starts", [])),
    )


def _section(
    kind: type[Section], content: dict[str, Any], where: str, leave_out: tuple[str, ...] = ()
) -> Section:
    described = {field.name: field for field in fields(kind) if field.name not in leave_out}
    _refuse_unknown(content, tuple(described), where)
    required = tuple(key for key, field in described.items() if field.default is MISSING)
    _require(content, required, where)
    values: dict[str, Any] = {k: _as_tuple(v) if k == "epochs" else v for k, v in content.items()}
    return kind(**values)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _refuse_unknown(content: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in content:
        if key not in known:
            raise ValueError(f"`{where}{key}` is not a known key; known are {', '.join(known)}.")


def _require(content: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in content:
            raise ValueError(f"`{where}{key}` is missing.")


def _require_text(value: Any, argument: str) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{argument}` must be a text, got {value!r}.")


def _require_one_of(value: Any, argument: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"`{argument}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _locate(data: DataSpec, folder: Path | None) -> DataSpec:
    """The same with absolute paths of the user's own files, and the hashes of their contents."""
    name, sha256 = _locate_file(data.name, "name", folder)
    if data.held_out in ("rest", "fresh"):
        return replace(data, name=name, sha256=sha256)
    held_out, held_out_sha256 = _locate_file(data.held_out, "held_out", folder)
    return replace(data, name=name, sha256=sha256, held_out=held_out, held_out_sha256=held_out_sha256)


def _locate_file(name: str, argument: str, folder: Path | None) -> tuple[str, str]:
    if name in SOURCES:
        return name, ""
    path = (folder or Path()) / name
    if not path.is_file():
        raise ValueError(
            f"`[data] {argument}` must be one of {', '.join(SOURCES)}, or the path of a file, got {name!r}."
        )
    return str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest()
