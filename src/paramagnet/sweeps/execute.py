"""One run: from its configuration to its record, in whichever process.

A run is interrupted by a `Stop` and leaves its state in a file; run again it goes on from there and ends in
the same record, bit for bit.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paramagnet._parallel import ONE_BLAS_THREAD
from paramagnet._version import __version__
from paramagnet.learning.evaluation import LogZ, LogZOfEpoch
from paramagnet.learning.state import Record, TrainState, load_checkpoint
from paramagnet.learning.training import training_steps
from paramagnet.rbm import RBM
from paramagnet.schemes import Drawn
from paramagnet.sweeps.provenance import environment
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.seeds import annealing_seed, learning_seed, weight_seed
from paramagnet.sweeps.spec import Run
from paramagnet.sweeps.starts import start_machine
from paramagnet.sweeps.store import RunRecord, require_short
from paramagnet.units import FloatArray

SAVE_SECONDS = 120.0  # between two states on the disk
MEASURE_SECONDS = 10.0  # the same before a measurement, which takes long and cannot be interrupted
LOOK_SECONDS = 0.25  # between two looks at whether to stop


class Stopped(Exception):  # noqa: N818 - no error
    """The run was told to stop; its state is saved."""


class DamagedStateWarning(UserWarning):
    """The state of an interrupted run could not be used; its run starts anew, and its record is the same."""


@dataclass(frozen=True)
class Stop:
    """When to stop: at a time (seconds since 1970), when a file appears, when `request_stop` was called with
    ``token`` in this process, or in a child of the process ``parent`` when that is gone.
    """

    deadline: float = math.inf
    file: str = ""
    token: str = ""
    parent: int = 0

    def due(self) -> bool:
        """Whether it is time."""
        return (
            time.time() >= self.deadline
            or self.token in _requested
            or bool(self.file and os.path.exists(self.file))
            or self.parent not in (0, os.getpid(), os.getppid())
        )


NEVER = Stop()
_requested: set[str] = set()


def request_stop(token: str) -> None:
    """Tell the runs in this process whose `Stop` has that token to save their states and end."""
    _requested.add(token)


def state_file(folder: str | os.PathLike[str], run: Run) -> Path:
    """Where the state of an unfinished run is kept."""
    return Path(folder) / f"{run.digest}.safetensors"


def clear_states(folder: str, digests: Set[str]) -> None:
    """Remove the states of those runs, and what a crash left of them."""
    path = Path(folder)
    for file in path.iterdir() if path.is_dir() else ():
        # While a file is being written, it has the name of the state with a point before and more after it.
        if file.name.lstrip(".").split(".")[0] in digests:
            file.unlink(missing_ok=True)


def execute(
    run: Run, *, sweep: str = "", table: str = "", commit: str = "", states: str = "", stop: Stop = NEVER
) -> RunRecord:
    """Run it, on one core, and return its record; raises `Stopped` if ``stop`` says so.

    ``states`` is the folder for the state of a run that takes long or is stopped; empty for none.
    """
    with ONE_BLAS_THREAD:  # last bits depend on the number of threads
        points, held_out = load_points(run)
        keeper = _Keeper(state_file(states, run) if states else None, stop)
        drawn = _draw(run, points)
        state = _train(run, drawn.rbm, points, held_out, keeper, run.measurement.all_epochs)
    # In the order of the epochs, whatever happened on the way.
    records = sorted(state.records, key=lambda record: record.epoch)
    return _record(
        run,
        records,
        sweep=sweep,
        table=table,
        n_visible=points.shape[1],
        sigma=drawn.sigma,
        seconds=keeper.seconds,
        commit=commit,
    )


def require_room(run: Run, sweep: str, table: str, commit: str) -> None:
    """An error before the run, not after it, if its record would be too long for a store."""
    error = 0.0 if run.measurement.log_partition == "exact" else 0.12
    value = -123.4  # of few digits: more are written where there is room
    records = [Record(epoch, value, value, 0.0, 0.0, 0.0, error) for epoch in run.measurement.all_epochs]
    facts = {"n_visible": 999, "sigma": 0.123456, "seconds": 1234.5}
    record = _record(run, records, sweep=sweep, table=table, commit=commit, **facts)
    require_short(record.to_line().encode())


def _record(run: Run, measured: Sequence[Record], **facts: Any) -> RunRecord:
    return RunRecord(
        digest=run.digest,
        dataset=Path(run.data.name).name,
        n_hidden=run.n_hidden,
        visible=run.visible,
        hidden=run.hidden,
        c=run.hidden_bias,
        scheme=run.scheme,
        gain=run.gain,
        trial=run.trial,
        seed=run.seed,
        epochs=tuple(record.epoch for record in measured),
        log_likelihood=tuple(record.log_likelihood for record in measured),
        held_out=tuple(record.validation for record in measured),
        error=tuple(record.error for record in measured),
        version=__version__,
        environment=environment(),
        finished=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        settings=run.settings,
        shown=tuple(sorted(set(run.measurement.epochs))),
        **facts,
    )


def trained_machine(run: Run, *, states: str = "", stop: Stop = NEVER) -> RBM:
    """The machine at the end of a run, the same as if it had been measured on the way; see `train_run`."""
    return train_run(run, states=states, stop=stop).rbm


def train_run(run: Run, *, states: str = "", stop: Stop = NEVER) -> TrainState:
    """The state at the end of a run, its chains included, the same as if it had been measured on the way.

    ``states`` is a folder that keeps the state on the way and at the end, empty for none; raises `Stopped` if
    ``stop`` says so.
    """
    with ONE_BLAS_THREAD:
        points, _ = load_points(run)
        keeper = _Keeper(state_file(states, run) if states else None, stop)
        state = _train(run, _draw(run, points).rbm, points, None, keeper, evaluate=())
        keeper.save(state, after=0.0)
        return state


def _train(
    run: Run,
    initial: RBM,
    points: FloatArray,
    held_out: FloatArray | None,
    keeper: _Keeper,
    evaluate: tuple[int, ...],
) -> TrainState:
    """The last state, with a record for every epoch that is to be measured."""
    start: RBM | TrainState = keeper.load() or initial
    steps = training_steps(
        start,
        points,
        epochs=max(run.measurement.epochs),
        gradient=run.learning.make_gradient(),
        optimizer=run.learning.make_optimizer(),
        batch_size=run.learning.batch_size,
        centred=run.learning.centred,
        **run.learning.penalties,
        evaluate=evaluate,
        validation=held_out,
        log_z=_log_z(run),
        rng=learning_seed(run),
        before_measuring=lambda state: keeper.save(state, after=MEASURE_SECONDS),
    )
    return keeper.watch(steps, start)


def _log_z(run: Run) -> LogZ | LogZOfEpoch:
    """How ``ln Z`` is found; the exact one comes with exact gradients."""
    measurement = run.measurement
    if measurement.log_partition == "exact":
        return LogZ("exact")
    return lambda rbm, epoch: measurement.log_z(epoch)(rbm, annealing_seed(run, epoch), n_threads=1)


def _draw(run: Run, points: FloatArray) -> Drawn:
    """The initial machine and its sigma, for which beta_max is solved once."""
    return start_machine(
        run.scheme,
        points,
        run.n_hidden,
        gain=run.gain,
        rng=weight_seed(run),
        visible=run.visible,
        hidden=run.hidden,
        hidden_bias=run.hidden_bias,
    )


class _Keeper:
    """Keeps the state of a run: on the disk now and then, and when it is to stop.

    Time is that of the processor, so that a pause of the process does not count.
    """

    def __init__(self, path: Path | None, stop: Stop) -> None:
        self._path, self._stop = path, stop
        self._before, self._began = 0.0, time.process_time()
        self._saved = self._looked = time.monotonic()
        if stop.due():
            raise Stopped

    @property
    def seconds(self) -> float:
        """The time spent, that before an interruption included."""
        return self._before + time.process_time() - self._began

    def load(self) -> TrainState | None:
        """The state that an interrupted run left; None if there is none, or none that can be used."""
        if self._path is None or not self._path.exists():
            return None
        try:
            state = load_checkpoint(self._path)
        except ValueError as error:
            self._path.unlink()
            warnings.warn(f"A run starts anew: {error}", DamagedStateWarning, stacklevel=2)
            return None
        self._before = state.seconds
        return state

    def save(self, state: TrainState, *, after: float = math.inf) -> None:
        """Save the state if that is due, or if the last time was ``after`` seconds ago."""
        now = time.monotonic()
        if self._path is not None and now - self._saved >= min(after, SAVE_SECONDS):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace(state, seconds=self.seconds).save(self._path)
            self._saved = now

    def watch(self, steps: Iterator[TrainState], start: RBM | TrainState) -> TrainState:
        """Take all steps; the last state. Where there are none, ``start`` is that."""
        state = start if isinstance(start, TrainState) else None
        try:
            for state in steps:
                now = time.monotonic()
                if now - self._looked >= LOOK_SECONDS:
                    self._looked = now
                    self.save(state)
                    if self._stop.due():
                        raise Stopped
        except (Stopped, KeyboardInterrupt):
            if state is not None:
                self.save(state, after=0.0)
            raise
        assert state is not None
        return state
