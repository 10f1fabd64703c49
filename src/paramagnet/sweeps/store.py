"""The records of runs, and the file that holds them, with one JSON line per run.

Records are appended by one process, and each is on the disk before the next; what a crash leaves of a line at
the end of a file is cut off when it is opened again. Every line ends with a checksum over what stands before
it; lines of older versions have none. Two machines that computed different runs can put their files together
(see `merge`).
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from paramagnet._checks import LARGEST_COUNT
from paramagnet._files import checksum

MOST_BYTES = 1000  # of a line, without its checksum
LONGEST_LINE = 10_000  # bytes; a longer line is not a record and is not read
DIGITS, FEWEST_DIGITS = 6, 4  # of log-likelihoods


_SEALED = re.compile(r'(.*),"checksum":"([0-9a-f]{8})"\}', re.DOTALL)
_SEAL_BYTES = len(',"checksum":"01234567"')


class TornLineWarning(UserWarning):
    """The last line of a store is incomplete; it is left out, or was cut off."""


@dataclass(frozen=True)
class RunRecord:
    """The result of one run.

    ``digest`` stands for the configuration; ``c`` is the initial hidden bias, ``sigma`` the standard
    deviation of the initial weights, ``seed`` that of the sweep. ``epochs`` (0 is the start),
    ``log_likelihood`` (of the learned points) and ``held_out`` (NaN where there are no such points), both in
    nats per point, and ``error``, the standard error of ``ln Z`` (0 where exact), are of equal length.
    ``seconds`` are of one core. ``commit`` ends in + where the sources differed from it. ``settings`` stands
    for what all runs of a specification share; ``shown`` are the epochs that the specification names, which
    its tables show. Both are empty in records of older versions.
    """

    digest: str
    sweep: str
    table: str
    dataset: str
    n_visible: int
    n_hidden: int
    visible: str
    hidden: str
    c: float
    scheme: str
    gain: float
    sigma: float
    trial: int
    seed: int
    epochs: tuple[int, ...]
    log_likelihood: tuple[float, ...]
    held_out: tuple[float, ...]
    error: tuple[float, ...]
    seconds: float
    version: str
    commit: str
    environment: str
    finished: str
    settings: str = ""
    shown: tuple[int, ...] = ()

    def to_line(self) -> str:
        """The record as a line of JSON, numbers rounded to six digits, errors to two; to fewer where the line
        would be too long. The checksum comes last.
        """
        text = ""
        for digits in range(DIGITS, FEWEST_DIGITS - 1, -1):
            text = self._to_text(digits)
            if len(text.encode()) < MOST_BYTES:
                break
        return f'{text[:-1]},"checksum":"{_text_checksum(text)}"}}\n'

    def _to_text(self, digits: int) -> str:
        content = asdict(self)
        for name in _OPTIONAL:
            if not content[name]:
                del content[name]
        content["sigma"] = _rounded(self.sigma, 6)
        content["log_likelihood"] = [_rounded(value, digits) for value in self.log_likelihood]
        held_out = [_rounded(value, digits) for value in self.held_out]
        content["held_out"] = None if all(value is None for value in held_out) else held_out
        content["error"] = [_rounded(value, 2) for value in self.error] if any(self.error) else 0
        content["seconds"] = _rounded(self.seconds, 4)
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> RunRecord:
        """The record in a line; ValueError if it holds none, or a damaged one."""
        text = line.strip(" \t\r\n")
        sealed = _SEALED.fullmatch(text)
        if sealed:
            text = f"{sealed[1]}}}"
            if _text_checksum(text) != sealed[2]:
                raise ValueError("the line is damaged, it does not have its checksum")
        content = json.loads(text, parse_constant=_refuse_constant)
        names = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or {*content, *_OPTIONAL} != names:
            raise ValueError("the line holds no record")
        for name, kinds in _KINDS.items():
            if name in content and (not isinstance(content[name], kinds) or isinstance(content[name], bool)):
                raise ValueError(f"`{name}` is {content[name]!r}")
        for name in ("epochs", "shown"):
            if not all(_is_count(epoch) for epoch in content.get(name, ())):
                raise ValueError(f"`{name}` are {content[name]!r}")
        for name in ("n_visible", "n_hidden", "trial"):
            if not _is_count(content[name]):
                raise ValueError(f"`{name}` is {content[name]!r}")
        content["shown"] = tuple(content.get("shown", ()))
        length = len(content["epochs"])
        content["epochs"] = tuple(content["epochs"])
        content["error"] = _column(content["error"] or 0.0, length)
        for name in ("log_likelihood", "held_out"):
            content[name] = _column(content[name], length)
        return cls(**content)


_OPTIONAL = ("settings", "shown")  # not written where they are empty
_TEXTS = "digest sweep table dataset visible hidden scheme version commit environment finished settings"
_KINDS: dict[str, Any] = (
    dict.fromkeys(_TEXTS.split(), str)
    | dict.fromkeys(("n_visible", "n_hidden", "trial", "seed"), int)
    | dict.fromkeys(("c", "gain", "sigma", "seconds"), (int, float))
    | {"epochs": list, "shown": list}
)


def _text_checksum(text: str) -> str:
    return checksum([text.encode()], 4)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT


def _column(values: Any, length: int) -> tuple[float, ...]:
    if not isinstance(values, list):
        values = [values] * length
    if len(values) != length:
        raise ValueError("the columns differ in length")
    return tuple(math.nan if value is None else float(value) for value in values)


def _rounded(value: float, digits: int) -> float | int | None:
    """The number with so many digits, written as short as can be; None for what is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short


class Store:
    """The records in the file ``path``; to append to it, open it: ``with Store(path) as store``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: Any = None
        self._digests: set[str] = set()

    def records(self) -> list[RunRecord]:
        """All records, in the order in which they were written."""
        return [record for record, _ in self._read()]

    def __contains__(self, digest: object) -> bool:
        return digest in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def __enter__(self) -> Store:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        try:
            lock(self._file, self.path)
            self._repair()
            self._digests = {record.digest for record in self.records()}
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that other processes can write to it."""
        self._file.close()
        self._file = None

    def append(self, record: RunRecord) -> bool:
        """Write a record and wait for the disk; False, and nothing is written, if its digest is there."""
        if self._file is None:
            raise RuntimeError("A store must be open to be written to: `with Store(path) as store`.")
        if record.digest in self._digests:
            return False
        line = record.to_line().encode()
        require_short(line)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digests.add(record.digest)
        return True

    def _repair(self) -> None:
        """Cut off a last line that a crash left incomplete; add the line end if only that is missing."""
        size = self._file.seek(0, os.SEEK_END)
        begins = max(0, size - LONGEST_LINE)
        self._file.seek(begins)
        content = self._file.read()
        end = content.rfind(b"\n") + 1
        tail = content[end:]
        if not tail:
            return
        if not end and begins:
            raise ValueError(
                f"The last line of {self.path} is no record: it has more than {len(tail)} bytes."
            )
        try:
            RunRecord.from_line(tail.decode())
        except _NO_RECORD:
            self._file.truncate(begins + end)
            warnings.warn(
                f"The last line of {self.path} was incomplete ({len(tail)} bytes) and was cut off; its run "
                "will be repeated.",
                TornLineWarning,
                stacklevel=3,
            )
        else:
            self._file.seek(0, os.SEEK_END)
            self._file.write(b"\n")
        self._file.flush()

    def _read(self) -> Iterator[tuple[RunRecord, int]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            lines = iter(lambda: file.readline(LONGEST_LINE), b"")
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield RunRecord.from_line(line.decode()), number
                except _NO_RECORD as error:
                    if line.endswith(b"\n") or len(line) == LONGEST_LINE:
                        raise ValueError(
                            f"{self.path}, line {number}, is no record: {error}. Remove the line to have its "
                            "run repeated."
                        ) from None
                    warnings.warn(  # incomplete after a crash, or being written at this moment
                        f"The last line of {self.path} is incomplete and is left out.",
                        TornLineWarning,
                        stacklevel=3,
                    )


_NO_RECORD = (ValueError, TypeError, RecursionError)


def require_short(line: bytes) -> None:
    """An error if a line is too long for a store."""
    n_bytes = len(line) - _SEAL_BYTES
    if n_bytes > MOST_BYTES:
        raise ValueError(
            f"`record` must not exceed {MOST_BYTES} bytes as a line, got {n_bytes}. Measure at fewer "
            "epochs (`curve` in the specification), or give specification and data file shorter names."
        )


def lock(file: Any, path: Path) -> None:
    """Lock the file for this process, on systems that have locks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RuntimeError(
            f"Another sweep is writing to {path}; wait for it, or choose another folder."
        ) from None


def read_results(folder: str | Path) -> list[RunRecord]:
    """All records in the stores of a folder."""
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"`results` must be a folder with records, got {str(path)!r}.")
    found = (record for store in sorted(path.glob("*.jsonl")) for record in Store(store).records())
    records = list({record.digest: record for record in found}.values())  # the copy of a file adds no records
    if not records:
        raise ValueError(
            f"There are no records in {str(path)!r}, so there is nothing to report. Make some with "
            "`paramagnet reproduce`."
        )
    return records
