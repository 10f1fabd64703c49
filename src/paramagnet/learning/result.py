"""What `train` returns."""

from __future__ import annotations

from dataclasses import dataclass

from paramagnet.learning.ending import best_of
from paramagnet.learning.state import History, TrainState
from paramagnet.rbm import RBM


@dataclass(frozen=True, eq=False)
class TrainResult:
    """The trained machine, the learning curve, the last state, and whether the run came to its end.

    ``notes`` says in words what went wrong, if anything did: failures that the guard found, a result below
    independent units, or a machine that was better before. `best` is the best machine that was measured.
    """

    rbm: RBM
    history: History
    state: TrainState
    finished: bool
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> RBM:
        """The machine with the best measurement (held-out points count where there are some), where a guard
        or early stopping kept it; else ``rbm``.
        """
        kept = best_of(self.state)
        watch = self.state.watch
        measured = watch is not None and watch.best is not None
        if not measured and not any("`TrainResult.best`" in note for note in self.notes):
            return self.rbm  # no check of the guard saw a machine that was clearly better than the last one
        return self.rbm if kept is None else self.state.layout.machine(kept.parameters)
