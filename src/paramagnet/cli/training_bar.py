"""The progress of ``paramagnet train``: a bar with epoch, log-likelihood and remaining time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet.cli.console import Bar
from paramagnet.cli.history import show_value

if TYPE_CHECKING:
    from paramagnet.learning.state import TrainState


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
