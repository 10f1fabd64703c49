"""The state of a training run, and its file.

A state holds all that the next update depends on, the state of the random generator and the order of the
points included, so a run that goes on from it equals one that was never interrupted, bit for bit, also in
the middle of an epoch. Its file is safetensors with JSON in the metadata; nothing is pickled.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, shown
from paramagnet._checks import as_count, as_path, as_positive, as_real
from paramagnet._files import read_arrays, writable_target, write_arrays
from paramagnet.estimates import Estimate, effective_number
from paramagnet.layout import Layout
from paramagnet.learning.gradients.base import GradientState, pack_state, unpack_state
from paramagnet.learning.optimizers import OptimizerState
from paramagnet.learning.watch import Check, Watch
from paramagnet.rbm import RBM
from paramagnet.sampling.annealing import N_SAMPLES
from paramagnet.sampling.chains import Chains
from paramagnet.units import FloatArray, as_unit, saved_name

MOST_MEASUREMENTS = 1_000_000  # of one run
_FORMAT = "paramagnet.checkpoint"
_COLUMNS_BEFORE = 7  # of records in checkpoints that do not hold `n_effective`
_PREFIX = "gradient."  # of the names of the arrays of a gradient's state


@dataclass(frozen=True)
class Record:
    """The measurements after an epoch; epoch 0 is the machine at the start.

    Log-likelihoods are in nats per point, NaN where there is none; ``error`` is the standard error of
    either, 0 where they are exact, and ``n_effective`` the effective number of samples behind them, infinite
    where they are exact. ``gradient_norm`` is that of the epoch's last update (in centred coordinates where
    learning is centred), ``weight_norm`` is the root of the sum of the squared weights, ``seconds`` is the
    time spent training.
    """

    epoch: int
    log_likelihood: float
    validation: float
    gradient_norm: float
    weight_norm: float
    seconds: float
    error: float = 0.0
    n_effective: float = math.inf

    @property
    def trusted(self) -> bool:
        """Whether there are enough effective samples for a reliable error."""
        return Estimate(self.log_likelihood, self.error, self.n_effective).trusted


def evaluated_epochs(evaluate: int | Sequence[int] | None, epochs: int) -> frozenset[int]:
    """The epochs of a run after which to measure, as `train` takes them."""
    if evaluate is None:
        evaluate = max(1, epochs // 50)
    if isinstance(evaluate, (int, np.integer)):
        every = as_count(evaluate, "evaluate")
        if epochs // every > MOST_MEASUREMENTS:
            raise ValueError(
                f"`evaluate` must ask for at most {MOST_MEASUREMENTS} measurements, got {epochs // every}: "
                f"every {every} of {epochs} epochs. Measure at fewer of them."
            )
        return frozenset((*range(0, epochs + 1, every), epochs))
    wanted = "None, an integer or a sequence of integers"
    named = as_array(evaluate, "evaluate", wanted)
    if named.size > MOST_MEASUREMENTS or named.ndim != 1:
        raise ValueError(f"`evaluate` must be {wanted}, got {shown(evaluate)}.")
    chosen = [as_count(epoch, "evaluate", minimum=0) for epoch in named.tolist()]
    if chosen and max(chosen) > epochs:
        raise ValueError(f"`evaluate` must not go beyond `epochs` = {epochs}, got {max(chosen)}.")
    return frozenset(chosen)


@dataclass(frozen=True, eq=False)
class History:
    """The records of a run as columns, one array for each field of `Record`."""

    epoch: npt.NDArray[np.int64]
    log_likelihood: FloatArray
    validation: FloatArray
    gradient_norm: FloatArray
    weight_norm: FloatArray
    seconds: FloatArray
    error: FloatArray
    n_effective: FloatArray

    def __len__(self) -> int:
        return len(self.epoch)


@dataclass(frozen=True, eq=False)
class TrainState:
    """Everything needed to go on with a run.

    ``epoch`` counts complete epochs, ``batch`` the batches done of the one under way and ``order`` is that
    epoch's order of the points. ``gradient_state`` is what the gradient keeps between updates, `chains` for
    instance. ``settings`` describes data and options; going on with others is refused. ``offsets`` is the
    running mean of the hidden units in centred learning, None before its first update and otherwise.
    ``watch`` holds what the run decided about itself, None where it decided nothing.
    """

    layout: Layout
    parameters: FloatArray
    optimizer_state: OptimizerState
    epoch: int
    batch: int
    order: npt.NDArray[np.int64] | None
    rng_state: dict[str, Any]
    records: tuple[Record, ...]
    seconds: float
    settings: dict[str, str]
    gradient_state: GradientState | None = None
    offsets: FloatArray | None = None
    watch: Watch | None = None

    def __repr__(self) -> str:
        return f"TrainState(epoch {self.epoch}, batch {self.batch}, update {self.update}, {self.rbm!r})"

    @property
    def update(self) -> int:
        """The number of updates so far."""
        return self.optimizer_state.n_steps

    @property
    def chains(self) -> Chains | None:
        """The chains of a sampled gradient; None for other gradients."""
        return self.gradient_state if isinstance(self.gradient_state, Chains) else None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the guard so far."""
        return () if self.watch is None else self.watch.checks

    @property
    def rate_factor(self) -> float:
        """What the guard has multiplied the learning rate by."""
        return 1.0 if self.watch is None else self.watch.rate_factor

    @property
    def rbm(self) -> RBM:
        """The machine as it is now."""
        return self.layout.machine(self.parameters)

    @property
    def history(self) -> History:
        """The records so far as columns."""
        columns = (
            zip(*map(astuple, self.records), strict=True) if self.records else ((),) * len(fields(Record))
        )
        epoch, *others = columns
        return History(np.array(epoch, dtype=np.int64), *(np.array(column, dtype=float) for column in others))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to ``path``; a former file is replaced at once or not at all."""
        arrays: dict[str, Any] = {"parameters": self.parameters}
        arrays |= {f"slot{index}": slot for index, slot in enumerate(self.optimizer_state.slots)}
        if self.records:
            arrays["records"] = np.array([astuple(record) for record in self.records], dtype=np.float64)
        if self.order is not None:
            arrays["order"] = self.order.astype(np.float64)  # exact below 2**53
        if self.offsets is not None:
            arrays["offsets"] = self.offsets
        progress: dict[str, Any] = {
            "n_visible": self.layout.n_visible,
            "n_hidden": self.layout.n_hidden,
            "visible": saved_name(self.layout.visible, "visible"),
            "hidden": saved_name(self.layout.hidden, "hidden"),
            "epoch": self.epoch,
            "batch": self.batch,
            "n_steps": self.optimizer_state.n_steps,
            "rng_state": self.rng_state,
            "seconds": self.seconds,
            "settings": self.settings,
        }
        if self.chains is not None:
            arrays["chains"] = self.chains.visible.astype(np.float64)
            progress["chains"] = self.chains.to_facts()
        elif self.gradient_state is not None:
            kept, progress["gradient_state"] = pack_state(self.gradient_state)
            arrays |= {f"{_PREFIX}{name}": array for name, array in kept.items()}
        if self.watch is not None:
            kept, progress["watch"] = self.watch.pack()
            arrays |= kept
        write_arrays(path, arrays, _FORMAT, {"state": json.dumps(progress, sort_keys=True)})


def load_checkpoint(path: str | os.PathLike[str]) -> TrainState:
    """The state that a run left at ``path``; pass it to `train` in place of a machine to go on with it.

    Parameters
    ----------
    path : str or os.PathLike
        File that `TrainState.save` or `train` wrote.

    Returns
    -------
    TrainState
        The state.
    """
    arrays, metadata = read_arrays(path, _FORMAT)
    try:
        state = _assemble(arrays, json.loads(metadata["state"]))
        state.layout.machine(state.parameters)  # its constructor checks the numbers
        return state
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"`path` is a damaged checkpoint: {path} ({error}).") from None


def _assemble(arrays: dict[str, FloatArray], content: dict[str, Any]) -> TrainState:
    visible, hidden = as_unit(content["visible"], "visible"), as_unit(content["hidden"], "hidden")
    sizes = [as_count(content[name], name) for name in ("n_visible", "n_hidden")]
    epoch, batch, n_steps = (
        as_count(content[name], name, minimum=0) for name in ("epoch", "batch", "n_steps")
    )
    layout = Layout(sizes[0], sizes[1], visible, hidden)
    slots = tuple(arrays[f"slot{index}"] for index in range(sum(name.startswith("slot") for name in arrays)))
    for vector in (arrays["parameters"], *slots):
        if vector.shape != (layout.size,):
            raise ValueError(f"vectors must have {layout.size} entries, got shape {vector.shape}")
        vector.setflags(write=False)
    offsets = arrays.get("offsets")
    if offsets is not None:
        if offsets.shape != (layout.n_columns,) or not np.isfinite(offsets).all():
            raise ValueError(f"the offsets must be {layout.n_columns} finite numbers")
        offsets.setflags(write=False)
    np.random.PCG64().state = content["rng_state"]  # raises where it is none
    order = arrays["order"].astype(np.int64) if "order" in arrays else None
    if order is not None and not np.array_equal(np.sort(order), np.arange(order.size)):
        raise ValueError("the order of the points is no permutation")
    gradient_state: GradientState | None = None
    if "gradient_state" in content:
        kept = {name.removeprefix(_PREFIX): arrays[name] for name in arrays if name.startswith(_PREFIX)}
        gradient_state = unpack_state(kept, content["gradient_state"])
    if "chains" in content:
        states = arrays["chains"].reshape(-1, layout.n_visible)
        if not layout.visible.is_value(states).all():
            raise ValueError("the chains hold other values than those of the visible units")
        address = content["chains"]
        seed, sweep = (as_count(address[name], name, minimum=0) for name in ("seed", "sweep"))
        gradient_state = Chains.at(states, seed, sweep)
    return TrainState(
        layout=layout,
        parameters=arrays["parameters"],
        optimizer_state=OptimizerState(n_steps, slots),
        epoch=epoch,
        batch=batch,
        order=order,
        rng_state=dict(content["rng_state"]),
        records=tuple(map(_as_record, arrays.get("records", ()))),
        seconds=float(content["seconds"]),
        settings={str(name): str(value) for name, value in content["settings"].items()},
        gradient_state=gradient_state,
        offsets=offsets,
        watch=Watch.unpack(arrays, content["watch"], layout.size) if "watch" in content else None,
    )


def _as_record(row: FloatArray) -> Record:
    record = Record(int(row[0]), *map(float, row[1:]))
    if len(row) == _COLUMNS_BEFORE and record.error > 0.0:
        return replace(record, n_effective=effective_number(record.error, N_SAMPLES))
    return record


@dataclass(frozen=True)
class Checkpoint:
    """The file that the state of a run is written to, and how often.

    It is written every ``seconds``, at the end, and when an error or an interruption ends the run.

    Parameters
    ----------
    path : str or os.PathLike
        File that the state is written to.
    seconds : float, default 60.0
        Time from one writing to the next.
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0

    def __post_init__(self) -> None:
        as_positive(as_real(self.seconds, "seconds"), "seconds", zero=True)

    def check(self) -> Path:
        """The file to be written; an error if it cannot be."""
        return writable_target(self.path)


def as_checkpoint(checkpoint: str | os.PathLike[str] | Checkpoint | None) -> Checkpoint | None:
    """The file of a run and how often it is written, checked; None where there is none."""
    if checkpoint is None:
        return None
    keep = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(as_path(checkpoint, "checkpoint"))
    keep.check()
    return keep
