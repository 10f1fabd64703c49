"""Read specifications from TOML files; errors name the key."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from paramagnet._checks import as_real, near_files
from paramagnet.data.sources import SOURCES
from paramagnet.learning.registries import OPTIMIZERS
from paramagnet.sweeps.learning_spec import PENALTIES, LearningSpec
from paramagnet.sweeps.spec import DataSpec, MeasurementSpec, Spec

Section = TypeVar("Section", DataSpec, LearningSpec, MeasurementSpec)


def read_spec(source: str | Path) -> Spec:
    """The specification in the file of that path; paths of data files in it are relative to its folder."""
    path = Path(source)
    if path.suffix != ".toml":
        raise ValueError(f"`spec` must be the path of a .toml file, got {str(source)!r}.")
    if path.is_dir():
        raise IsADirectoryError(f"`spec` must be a file, {path} is a folder.")
    if not path.is_file():
        raise FileNotFoundError(f"`spec` does not exist: {path}{near_files(path)}.")
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
        learning=_section(LearningSpec, _with_options(content["learning"]), "[learning] "),
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


def _with_options(content: dict[str, Any]) -> dict[str, Any]:
    """The section [learning] with its further keys (settings of gradient and optimizer) as options.

    A penalty that is a setting of the user's own optimizer is that optimizer's.
    """
    if "options" in content:
        raise ValueError(
            "`[learning] options` is not a known key; write the settings of a gradient or an optimizer "
            "beside the other keys."
        )
    known = {field.name for field in fields(LearningSpec)}
    optimizer = content.get("optimizer")
    if isinstance(optimizer, str) and ":" in optimizer:
        known -= set(PENALTIES) & set(OPTIMIZERS.settings(optimizer, "optimizer"))
    options = ((key, _as_option(value)) for key, value in content.items() if key not in known)
    return {key: value for key, value in content.items() if key in known} | {"options": tuple(options)}


def _as_option(value: Any) -> Any:
    return tuple(map(_as_option, value)) if isinstance(value, list) else value


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
            f"`[data] {argument}` must be one of {', '.join(SOURCES)}, or the path of a file, got "
            f"{name!r}{near_files(path, SOURCES)}."
        )
    return str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest()
