"""Runs on the workers of a Dask cluster.

The scheduler sends the runs of a worker that died to another one. Every worker process executes one run at a
time, however many threads it has.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from pathlib import Path
from typing import Any, TypeVar

from paramagnet._extras import how_to_install
from paramagnet._version import __version__

CONNECT_SECONDS = 10.0
WORKERS_SECONDS = 60.0  # to wait for the first worker
COUNT_SECONDS = 5.0  # between two counts of the workers
RULE = "`--scheduler` must be the address of a Dask scheduler, such as tcp://host:8786, or its file, .json"
REMEDY = "`dask scheduler` starts one and prints its address."

Result = TypeVar("Result")


class DaskWorkers:
    """The workers of the Dask scheduler at ``address``: ``tcp://host:port``, or its scheduler file, .json."""

    remote = True
    parent = 0

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise ValueError(
                f"`--scheduler` needs Dask: {how_to_install('sweep')}, here and for the workers."
            ) from None
        self._distributed, self._address = distributed, address
        where = _read_address(address)
        try:
            self._client = distributed.Client(
                where, timeout=CONNECT_SECONDS, set_as_default=False, name="paramagnet"
            )
        except (OSError, ValueError) as error:
            raise ValueError(f"{RULE}; {where} does not answer ({error}). {REMEDY}") from None
        try:
            self._require_workers()
        except BaseException:
            self._client.close()
            raise
        self._pool = self._client.get_executor(pure=False)
        self._counted, self._count = time.monotonic(), self._count_workers()

    @property
    def n_workers(self) -> int:
        """The number of workers at present, at least 1, because others may connect later."""
        if time.monotonic() - self._counted >= COUNT_SECONDS:
            self._counted, self._count = time.monotonic(), self._count_workers()
        return self._count

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the function on one of the workers."""
        outer: Future[Result] = Future()
        inner = self._pool.submit(_call_alone, function, *arguments)
        inner.add_done_callback(lambda done: self._pass_on(done, outer))
        return outer

    def restart(self) -> None:
        """Forget the submitted calls; raises an error if the scheduler cannot be reached."""
        self._pool.shutdown(wait=False)
        if self._client.status != "running":
            raise RuntimeError(
                f"The scheduler at {self._address} is gone. The same command goes on when there is one again."
            )
        self._pool = self._client.get_executor(pure=False)

    def everywhere(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function here and in all workers that can be reached."""
        function(*arguments)
        if self._client.status == "running":
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                self._client.run(function, *arguments, on_error="ignore")

    def shutdown(self) -> None:
        """Leave the cluster as it was."""
        if self._client.status == "running":
            self._pool.shutdown(wait=False)
        self._client.close()

    def _require_workers(self) -> None:
        """Raise an error unless there is a worker and all workers have this version of the package."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except OSError:
            raise ValueError(
                f"`--scheduler` must have workers, {self._address} has none after {WORKERS_SECONDS:.0f} s. "
                f"Start some: dask worker {self._address} --nthreads 1 --nworkers N"
            ) from None
        for worker, version in self._client.run(_find_version, on_error="return").items():
            if version != __version__:
                found = "has none" if isinstance(version, Exception) else f"has {version}"
                raise ValueError(
                    f"Workers must have paramagnet {__version__} installed, as here; {worker} {found}."
                )

    def _count_workers(self) -> int:
        return max(1, len(self._client.nthreads())) if self._client.status == "running" else 1

    def _pass_on(self, inner: Future[Result], outer: Future[Result]) -> None:
        """Pass a result or an error on; Dask's errors about dead workers become those that sweeps handle."""
        try:
            outer.set_result(inner.result())
        except CancelledError:
            outer.set_exception(BrokenExecutor("the scheduler dropped the task"))
        except self._distributed.scheduler.KilledWorker:
            outer.set_exception(BrokenExecutor("every worker that got the task died"))
        except Exception as error:
            gone = self._client.status != "running"
            outer.set_exception(BrokenExecutor("the scheduler is gone") if gone else error)


def _read_address(text: str) -> str:
    """The address, or the one in a scheduler file; Dask itself would wait without limit for either."""
    address = text
    if text.endswith(".json"):
        try:
            address = str(json.loads(Path(text).read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{RULE}; {text} holds none ({error!r}). {REMEDY}") from None
    if not re.fullmatch(r"((tcp|tls|ws|wss|ucx)://)?\S+:\d+", address):
        raise ValueError(f"{RULE}, got {address!r}. {REMEDY}")
    return address


_alone = threading.Lock()


def _call_alone(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call the function while no other thread of this worker executes a run."""
    with _alone:
        return function(*arguments)


def _find_version() -> str:
    return __version__
