"""Merge the stores of several machines: every run is kept once, and disagreements are reported."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from paramagnet._files import writable_target, write_atomically
from paramagnet.sweeps.spec import Run
from paramagnet.sweeps.store import RunRecord, Store, lock

# Fields that may differ between two executions of the same run.
CIRCUMSTANCES = {"seconds", "version", "commit", "environment", "finished"}


@dataclass(frozen=True)
class Merged:
    """A file that was written: its records, how many were given, and in how many runs the files disagreed."""

    path: Path
    n_records: int
    n_given: int
    n_conflicts: int


def merge_stores(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    keep_first: bool = False,
) -> list[Merged]:
    """Write the records of all ``sources`` to ``out``, each run once, in the order in which they are named.

    Parameters
    ----------
    sources : sequence of str or os.PathLike
        Files of records; or folders of them, then ``out`` is a folder too, and files of the same name are put
        together, those in folders of the folders too.
    out : str or os.PathLike
        File or folder to write, replaced at once or not at all. It must not exist, unless it is one of the
        sources.
    force : bool, default False
        Whether to replace ``out`` if it exists.
    keep_first : bool, default False
        Whether to take the record of the file named first where two files disagree about a run; a
        disagreement is an error otherwise.
    """
    inputs, target = [Path(source) for source in sources], Path(out)
    if not inputs:
        raise ValueError("`sources` must name at least one file or folder.")
    for path in inputs:
        if not path.exists():
            raise FileNotFoundError(f"`sources` must exist, {path} does not.")
    if not any(path.is_dir() for path in inputs):
        return [_merge_files(inputs, target, force, keep_first)]
    if not all(path.is_dir() for path in inputs):
        raise ValueError("`sources` must be files only or folders only.")
    if target.exists() and not target.is_dir():
        raise ValueError(f"`--out` must be a folder where folders are merged, {target} is a file.")
    names = sorted({str(file.relative_to(folder)) for folder in inputs for file in folder.rglob("*.jsonl")})
    jobs = {name: [folder / name for folder in inputs if (folder / name).exists()] for name in names}
    if not jobs:
        raise ValueError(f"`sources` must hold .jsonl files, {', '.join(map(str, inputs))} hold none.")
    for name, files in jobs.items():  # all errors are raised before the first file is written
        _require_writable(files, target / name, force or _is_among(target, inputs))
        _merge_records(files, keep_first)
    for name in jobs:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
    own = force or _is_among(target, inputs)
    return [_merge_files(files, target / name, own, keep_first) for name, files in jobs.items()]


def merge_records(
    sources: Mapping[str, Sequence[RunRecord]], *, keep_first: bool = False
) -> tuple[list[RunRecord], int]:
    """The records of several stores, by the names of these, each run once; and how often they disagreed.

    The first disagreement is a ValueError, unless the first record is to be kept.
    """
    merged: dict[str, tuple[str, RunRecord]] = {}
    conflicts = set()
    for name, records in sources.items():
        for record in records:
            first, known = merged.setdefault(record.digest, (name, record))
            difference = _find_difference(known, record)
            if difference and not keep_first:
                raise ValueError(
                    f"{first} and {name} disagree about the run {record.digest[:8]} ({record.sweep}, trial "
                    f"{record.trial}): {difference}. Other processors and libraries may round differently; "
                    "to take the record of the file named first, say `--keep-first`."
                )
            if difference:
                conflicts.add(record.digest)
    return [record for _, record in merged.values()], len(conflicts)


def _find_difference(one: RunRecord, other: RunRecord) -> str:
    for name in (field.name for field in fields(RunRecord) if field.name not in CIRCUMSTANCES):
        mine, theirs = getattr(one, name), getattr(other, name)
        if name in ("settings", "shown") and not (mine and theirs):  # older versions did not write them
            continue
        if json.dumps(mine) != json.dumps(theirs):  # where NaN equals NaN
            return f"`{name}` is {_shorten(mine)} and {_shorten(theirs)}"
    return ""


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _merge_files(files: list[Path], out: Path, force: bool, keep_first: bool) -> Merged:
    _require_writable(files, out, force)
    with _kept_from_others(out):
        records, n_given, n_conflicts = _merge_records(files, keep_first)
        write_atomically(out, "".join(record.to_line() for record in records).encode())
    return Merged(out, len(records), n_given, n_conflicts)


def _merge_records(files: list[Path], keep_first: bool) -> tuple[list[RunRecord], int, int]:
    sources = {str(path): _read(path) for path in files}
    records, n_conflicts = merge_records(sources, keep_first=keep_first)
    return records, sum(map(len, sources.values())), n_conflicts


def _read(path: Path) -> list[RunRecord]:
    """The records of a file; one that has lines and no record is refused."""
    records = Store(path).records()
    if not records and path.read_bytes().strip():
        raise ValueError(f"`sources` must be files of records, {path} holds none.")
    return records


def _require_writable(files: list[Path], out: Path, force: bool) -> None:
    if out.parent.is_dir():
        writable_target(out)
    if out.exists() and not force and not _is_among(out, files):
        raise FileExistsError(
            f"`--out` must be a new file or one of those to merge, {out} exists. Name it among them, or say "
            "`--force` to replace it."
        )


def _is_among(path: Path, others: Sequence[Path]) -> bool:
    return any(path.exists() and path.samefile(other) for other in others)


@contextlib.contextmanager
def _kept_from_others(path: Path) -> Iterator[None]:
    """Lock the file: records that a sweep appended meanwhile would be lost."""
    if not path.exists():
        yield
        return
    with path.open("rb") as file:
        lock(file, path)
        yield


def adopt_records(runs: Iterable[Run], store: Store, folder: str | Path, *, sweep: str, table: str) -> None:
    """Append what sweeps in folders of ``folder`` have already run: the same runs under another name."""
    stores = sorted(Path(folder).glob("*/*.jsonl"))
    known = {record.digest: record for path in stores for record in Store(path).records()}
    for run in runs:
        if run.digest in known:
            store.append(replace(known[run.digest], sweep=sweep, table=table))
