"""What `train` returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paramagnet.estimates import Estimate
from paramagnet.learning.ending import best_of
from paramagnet.learning.measuring import Measured
from paramagnet.learning.state import History, TrainState
from paramagnet.learning.watch import Check, Kept
from paramagnet.rbm import RBM


@dataclass(frozen=True, eq=False)
class TrainResult:
    """The trained machine, the learning curve, the last state, and whether the run came to its end.

    ``notes`` says in words what went wrong, if anything did: failures that the guard found, a result below
    independent units, or a machine that was better before. `best` is the best machine that was measured, and
    `checks` are the checks of the guard, with each automatic change of the learning rate.

    `log_likelihood` and `validation` are the last measurement, and its text gives them, with two errors:
    ``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``, that of a mean over the points and that of ``ln Z``.
    ``history.error`` is the error of ``ln Z`` alone, zero where that is exact.
    """

    rbm: RBM
    history: History
    state: TrainState
    finished: bool
    notes: tuple[str, ...] = ()
    _best: Kept | None = None  # of a run without a guard, which its state does not hold
    _measured: Measured | None = None  # of this run, not of the one that it went on with

    def __repr__(self) -> str:
        sizes = f"{self.rbm.n_visible} x {self.rbm.n_hidden} units"
        text = f"TrainResult({sizes}, {self.state.epoch} epochs"
        if self._last is not None:
            text += f", log-likelihood {self._last.learned}"
            text += "" if self._last.held_out is None else f", validation {self._last.held_out}"
            text += f", at epoch {self._last.epoch}"
        elif self.state.records:  # those of an earlier run, which went on without a measurement
            last = self.state.records[-1]
            ln_z = f"+- {last.error:.2g} (ln Z)" if last.error > 0.0 else "(ln Z exact)"
            text += f", log-likelihood {last.log_likelihood:.4f}"
            text += f", validation {last.validation:.4f}" if math.isfinite(last.validation) else ""
            text += f" {ln_z} at epoch {last.epoch}"
        text += "" if self.finished else ", not finished"
        notes = f"{len(self.notes)} note{'s' if len(self.notes) > 1 else ''}"
        return f"{text}, {notes})" if self.notes else f"{text})"

    @property
    def _last(self) -> Measured | None:
        """The last measurement of the run, if it was made here."""
        records, found = self.state.records, self._measured
        return found if found is not None and records and records[-1].epoch == found.epoch else None

    @property
    def log_likelihood(self) -> Estimate | None:
        """The last measured log-likelihood of the points that are learned, in nats per point, with both
        errors; None where this run measured nothing. ``history.epoch[-1]`` says when it was.
        """
        return None if self._last is None else self._last.learned

    @property
    def validation(self) -> Estimate | None:
        """The same of the held-out points; None where there are none."""
        return None if self._last is None else self._last.held_out

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
