"""A training run of the command line: its checkpoint, how to go on with it, and its bar."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from paramagnet.cli.console import Bar
from paramagnet.cli.history import show_value

if TYPE_CHECKING:
    from paramagnet.learning.state import TrainState


def require_new(out: Path, checkpoint: Path) -> None:
    """An error if training would replace the machine or the checkpoint of another run."""
    if out.exists():
        raise FileExistsError(
            f"`--out` must be a new file, {str(out)!r} exists. Choose another name, train it further by "
            "`--resume`, or replace it by `--force`."
        )
    if checkpoint.exists():
        raise FileExistsError(
            f"{str(checkpoint)!r} holds an unfinished run: go on with it by `--resume`, or replace it by "
            "`--force`."
        )


def kept_schedule(checkpoint: Path | None, of_recipe: str) -> str | None:
    """The schedule of adam where none was given; a run that goes on keeps its own."""
    if checkpoint is None or not checkpoint.exists():
        return of_recipe
    from paramagnet.learning.state import load_checkpoint

    return "linear" if "Schedule(" in load_checkpoint(checkpoint).settings["optimizer"] else None


def load_state(path: Path, hidden_units: int, visible: str, hidden: str) -> TrainState:
    """The state of an interrupted run; an error if the machine had other sizes or units."""
    from paramagnet.learning.state import load_checkpoint
    from paramagnet.units import find_unit

    if not path.exists():
        raise FileNotFoundError(
            f"There is no checkpoint to go on from: {path}. Leave out `--resume` to start anew."
        )
    state = load_checkpoint(path)
    had = (state.layout.n_hidden, state.layout.visible, state.layout.hidden)
    if had != (hidden_units, find_unit(visible, "visible"), find_unit(hidden, "hidden")):
        raise ValueError(
            f"`--resume` needs the options of the earlier run: --hidden-units {had[0]} --visible '{had[1]}' "
            f"--hidden '{had[2]}'."
        )
    return state


def how_to_resume(state: TrainState | None, checkpoint: Path) -> str:
    """What an interrupted command says: what was kept, and the command that goes on."""
    if state is None:
        return "Interrupted before the first update; nothing was kept."
    words = (word for word in sys.argv[1:] if word not in ("--resume", "--force"))
    command = ["paramagnet", *words, "--resume"]
    return (
        f"Interrupted after {state.epoch} epochs ({state.update} updates); the state is in {checkpoint}.\n"
        f"Go on with: {shlex.join(command)}"
    )


class TrainingBar:
    """Keeps the latest state, and shows it beside a bar: epoch, log-likelihood, remaining time."""

    def __init__(
        self, epochs: int | None, seconds: float | None, n_batches: int, start: TrainState | None
    ) -> None:
        self.state = start
        self._epochs, self._seconds, self._n_batches = epochs, seconds, n_batches
        self._bar = Bar(self._title(0), done=self._fraction())

    def __enter__(self) -> TrainingBar:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)

    def show(self, state: TrainState) -> None:
        """Show the state; called after every update."""
        self.state = state
        note = f"log-likelihood {show_value(state.records[-1], 3)}" if state.records else ""
        self._bar.show(self._fraction(), title=self._title(state.epoch), note=note)

    def _title(self, epoch: int) -> str:
        planned = self._planned()
        return f"epoch {epoch}" if planned is None else f"epoch {epoch}/{planned}"

    def _planned(self) -> int | None:
        """The epochs of the run; a budget in seconds has them once it is planned."""
        if self._seconds is not None and self.state is not None and self.state.watch is not None:
            return self.state.watch.epochs
        return self._epochs

    def _fraction(self) -> float:
        planned = self._planned()
        if self.state is None or not planned:
            return 0.0
        return (self.state.epoch + self.state.batch / self._n_batches) / planned
