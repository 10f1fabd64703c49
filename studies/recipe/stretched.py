"""Adam or SGD with a learning rate that may fall, and a factor on the steps of the hidden biases.

`paramagnet.train` has the factor in centred learning only, and chooses it from the optimizer. The study sets
it by hand, with the plain gradient too, so here it belongs to the optimizer. With an optimizer that is not
`Adam` itself centred learning adds no factor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from paramagnet.learning.optimizers import SGD, Adam, OptimizerState
from paramagnet.learning.schedule import LearningRate, Schedule
from paramagnet.units import FloatArray

KINDS: dict[str, Adam | SGD] = {"adam": Adam(1.0), "sgd": SGD(1.0)}  # their rates are not used


@dataclass(frozen=True)
class Stretched:
    """An optimizer of the study.

    Parameters
    ----------
    learning_rate : float
        Learning rate of the first update.
    kind : str
        "adam" or "sgd".
    end : float
        Share of the learning rate that is left after ``n_updates``, linear between; 1 is a constant rate.
    n_updates : int
        Number of updates of the run.
    factor : float
        Factor on the steps of the hidden biases.
    n_weights : int
        Number of weights, which are the first parameters.
    n_hidden : int
        Number of hidden biases, which follow.
    """

    learning_rate: LearningRate
    kind: str
    end: float
    n_updates: int
    factor: float
    n_weights: int
    n_hidden: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, KINDS))}, got {self.kind!r}.")
        rate = self.learning_rate
        if self.end != 1.0 and isinstance(rate, float):
            falling = Schedule("linear", rate, end=self.end * rate, n_updates=self.n_updates)
            object.__setattr__(self, "learning_rate", falling)

    def start(self, size: int) -> OptimizerState:
        """The state before the first step."""
        return KINDS[self.kind].start(size)

    def step(self, state: OptimizerState, gradient: FloatArray) -> tuple[FloatArray, OptimizerState]:
        """The direction of Adam or SGD, its part for the hidden biases times ``factor``."""
        direction, after = KINDS[self.kind].step(state, gradient)
        if self.factor != 1.0:
            direction = direction.copy()
            direction[self.n_weights : self.n_weights + self.n_hidden] *= self.factor
        return direction, after
