"""Updates of large machines of categorical units in little memory: the optimizer's slots are overwritten.

A machine of 1000 sites with 21 states and 500 hidden units has 84 MB of parameters. An update that leaves the
state before as it is needs ten times as much: two states of three vectors each, two averages, a direction,
and the weights in float32. Where nobody else holds the state before, here the averages over the data take
the place of those under the model, the direction that of their difference, the new parameters that of the
direction, and the new slots that of the old ones. In centred learning the change of the weights, of which the
corrections of the biases are made, takes the place of the parameters before. All numbers are the same, bit
for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import uninterrupted
from paramagnet._recycled import HELD_ONCE, count_references
from paramagnet.kernels.passes import follow_adam
from paramagnet.learning.moments import weighted_means, wide_moments, wide_points
from paramagnet.learning.optimizers import SGD, Adam, OptimizerState, largest_direction
from paramagnet.learning.penalties import Penalties
from paramagnet.learning.state import TrainState
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.learning.loop import Loop, Put

_BLOCK = 1 << 18  # weights that decay at a time


def slots_are_free(latest: list[TrainState]) -> bool:
    """Whether nobody but ``latest`` holds its state, the state of the optimizer or the slots of that."""
    if count_references(latest) != HELD_ONCE:
        return False
    state = latest[0]
    # Code that holds a dictionary of attributes (`vars`) also holds the values in it.
    parts: list[list[Any]] = [[state.optimizer_state], [vars(state)], [vars(state.optimizer_state)]]
    if state.optimizer_state.slots:  # there is one empty tuple, which everybody shares
        parts += [[state.optimizer_state.slots], *([slot] for slot in state.optimizer_state.slots)]
    return all(count_references(part) == HELD_ONCE + 1 for part in parts)


def can_reuse_slots(loop: Loop) -> bool:
    """Whether the next update of ``loop`` may overwrite the slots: with `Adam` or `SGD`, and averages of our
    own chains, where nobody else holds the state.
    """
    plain = loop.layout.wide and loop.engine is None
    plain = plain and loop.penalties == Penalties(loop.penalties.weight_decay)
    if not plain or loop.gradient.particles() is None or type(loop.optimizer) not in (Adam, SGD):
        return False
    if not slots_are_free(loop.latest):
        return False
    return all(slot.flags.owndata and slot.flags.writeable for slot in loop.latest[0].optimizer_state.slots)


def advance_reusing(
    loop: Loop, order: npt.NDArray[np.int64] | None, batch: int, put: Put
) -> Callable[[], float] | None:
    """`Loop.advance` with the slots overwritten; only where `can_reuse_slots` says so.

    None, and nothing is changed, if the parameters might leave their range: an error needs the state before.
    """
    state, points, layout = loop.latest[0], loop.batch(order, batch), loop.layout
    weights, centre, offsets = loop.weights_of(order, batch), loop.centre, None
    rate, decay = loop.rate_after(state), loop.penalties.weight_decay
    with loop.threads, np.errstate(over="ignore", invalid="ignore"):  # as in `Loop.update`
        n_threads = loop.gradient.n_threads
        found = wide_points(layout, state.parameters, points, n_threads)
        kept, (average, _) = loop.gradient.weighted_moments(
            layout, state.parameters, points[:, :-1], state.gradient_state, loop.engine, weights
        )
        slope = wide_moments(layout, state.parameters, found, n_threads, average, weights)
        if centre is not None:
            of_batch = weighted_means(found, weights).mean(axis=0, dtype=np.float64)
            offsets = centre.follow(state.offsets, of_batch)
            centre.turn(layout, slope, offsets)
        norm = float(np.linalg.norm(slope))
        if not _largest_norm(loop, state, norm, rate, offsets) < loop.gradient.largest:
            return None
        with uninterrupted():  # an interruption in the middle would leave a state that is none
            loop.latest.clear()
            moved, optimizer_state = _step_in_place(loop.optimizer, state.optimizer_state, slope, rate)
            if centre is not None:
                stretched, factor = centre.stretched(layout)
                moved[stretched] *= factor
            moved += state.parameters
            if decay:
                for start in range(0, layout.n_weights, _BLOCK):
                    part = slice(start, min(start + _BLOCK, layout.n_weights))
                    moved[part] -= rate * decay * state.parameters[part]
            if centre is not None and offsets is not None:
                room = _take_parameters(state)
                centre.correct_biases(layout, state.parameters, moved, offsets, room)
            loop.require_finite(float(moved @ moved), state, rate)
            layout.fix_gauge(moved)
            moved.setflags(write=False)
            put(state, moved, optimizer_state, kept, offsets)
    return lambda: norm


def _step_in_place(
    optimizer: Any, state: OptimizerState, slope: FloatArray, rate: float
) -> tuple[FloatArray, OptimizerState]:
    """The learning rate times the direction, in place of the ``slope``, and the next state, in the slots of
    the one before.
    """
    n_steps = state.n_steps + 1
    if isinstance(optimizer, Adam):
        settings = (optimizer.beta1, optimizer.beta2, *optimizer.scales(n_steps))
        first, second = state.slots
        follow_adam(slope, first, second, settings, first, second, slope)
    else:
        for velocity in state.slots:  # none without momentum
            velocity *= optimizer.momentum
            velocity += slope
            slope[:] = velocity
    slope *= rate
    return slope, OptimizerState(n_steps, state.slots)


def _largest_norm(
    loop: Loop, state: TrainState, steepness: float, rate: float, offsets: FloatArray | None
) -> float:
    """A bound on the norm of the parameters after a step with a gradient of the norm ``steepness``."""
    if isinstance(loop.optimizer, Adam):
        step = rate * largest_direction(loop.optimizer, math.inf) * math.sqrt(state.parameters.size)
    else:
        assert isinstance(loop.optimizer, SGD)
        velocities = [float(np.linalg.norm(velocity)) for velocity in state.optimizer_state.slots]
        step = rate * (steepness + loop.optimizer.momentum * sum(velocities))
    decay = rate * loop.penalties.weight_decay
    norm = math.sqrt(float(state.parameters @ state.parameters))
    moved = max(1.0, abs(1.0 - decay)) * norm
    if loop.centre is None or offsets is None:
        return moved + step
    growth = float(np.linalg.norm(loop.centre.means) + np.linalg.norm(offsets))
    return moved + max(1.0, loop.centre.factor) * step + growth * (step + decay * norm)


def _take_parameters(state: TrainState) -> FloatArray | None:
    """The parameters of ``state`` as an array to be overwritten, if nobody else holds them; else None."""
    if not state.parameters.flags.owndata or count_references([state.parameters]) != HELD_ONCE + 1:
        return None
    state.parameters.setflags(write=True)
    return state.parameters
