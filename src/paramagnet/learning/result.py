"""What `train` returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paramagnet.learning.ending import best_of
from paramagnet.learning.state import History, TrainState
from paramagnet.learning.watch import Check, Kept
from paramagnet.rbm import RBM


@dataclass(frozen=True, eq=False)
class TrainResult:
    """The trained machine, the learning curve, the last state, and whether the run came to its end.

    ``notes`` says in words what went wrong, if anything did: failures that the guard found, a result below
    independent units, or a machine that was better before. `best` is the best machine that was measured, and
    `checks` are the checks of the guard, with each automatic change of the learning rate.

    Its text gives the last measurement. ``history.error`` is the error of ``ln Z`` alone, zero where that is
    exact; a mean over few points has another one. ``pm.log_likelihood(result.rbm, held_out)`` has both:
    ``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``.
    """

    rbm: RBM
    history: History
    state: TrainState
    finished: bool
    notes: tuple[str, ...] = ()
    _best: Kept | None = None  # of a run without a guard, which its state does not hold

    def __repr__(self) -> str:
        sizes = f"{self.rbm.n_visible} x {self.rbm.n_hidden} units"
        text = f"TrainResult({sizes}, {self.state.epoch} epochs"
        if self.state.records:
            last = self.state.records[-1]
            ln_z = f"+- {last.error:.2g} (ln Z)" if last.error > 0.0 else "(ln Z exact)"
            text += f", log-likelihood {last.log_likelihood:.4f}"
            text += f", validation {last.validation:.4f}" if math.isfinite(last.validation) else ""
            text += f" {ln_z} at epoch {last.epoch}"
        text += "" if self.finished else ", not finished"
        return f"{text}, {len(self.notes)} notes)" if self.notes else f"{text})"

    @property
    def best(self) -> RBM:
        """The machine with the best measurement (held-out points count where there are some); ``rbm`` where
        nothing was measured, or where a run without a guard was not measured at its end.

        With ``guard=False`` no machine is kept but ``rbm``, and of a resumed run without a guard only those
        measured since.
        """
        kept = best_of(self.state) or self._best
        watch = self.state.watch
        measured = self._best is not None or (watch is not None and watch.best is not None)
        if not measured and not any("`TrainResult.best`" in note for note in self.notes):
            return self.rbm  # no check of the guard saw a machine that was clearly better than the last one
        return self.rbm if kept is None else self.state.layout.machine(kept.parameters)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the guard: update, log-likelihood with its error, the factor on the learning rate
        from then on, and whether the machine had failed.
        """
        return self.state.checks
