"""Updates of large machines of categorical units in little memory: the optimizer's slots are overwritten.

A machine of 1000 sites with 21 states and 500 hidden units has 84 MB of parameters. An update that leaves the
state before as it is needs ten times as much: two states of three vectors each, two averages, a direction,
and the weights in float32. Where nobody else holds the state before, here the averages over the data take
the place of those under the model, the direction that of their difference, the new parameters that of the
direction, and the new slots that of the old ones. All numbers are the same, bit for bit.
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
from paramagnet.learning.moments import wide_moments, wide_points
from paramagnet.learning.optimizers import Adam, OptimizerState, largest_direction
from paramagnet.learning.penalties import Penalties
from paramagnet.learning.state import TrainState

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
    """Whether the next update of ``loop`` may overwrite the slots: with Adam, with averages of our own chains
    and without centring, if the parameters stay in range whatever the batch: an error on the way needs the
    state before.
    """
    plain = loop.layout.wide and loop.centre is None and loop.engine is None and loop.weights is None
    plain = plain and loop.penalties == Penalties(loop.penalties.weight_decay)
    if not plain or loop.gradient.particles() is None or type(loop.optimizer) is not Adam:
        return False
    if not slots_are_free(loop.latest):
        return False
    parameters, state = loop.latest[0].parameters, loop.latest[0].optimizer_state
    if not all(slot.flags.owndata and slot.flags.writeable for slot in state.slots):
        return False
    rate = loop.rate_after(loop.latest[0])
    step = rate * largest_direction(loop.optimizer, math.inf) * math.sqrt(parameters.size)
    norm = math.sqrt(float(parameters @ parameters))
    return norm * max(1.0, abs(1.0 - rate * loop.penalties.weight_decay)) + step < loop.gradient.largest


def advance_reusing(
    loop: Loop, order: npt.NDArray[np.int64] | None, batch: int, put: Put
) -> Callable[[], float]:
    """`Loop.advance` with the slots overwritten; only where `can_reuse_slots` says so."""
    state, points, layout = loop.latest[0], loop.batch(order, batch), loop.layout
    optimizer, first, second = loop.optimizer, *state.optimizer_state.slots
    assert isinstance(optimizer, Adam)
    rate, n_steps = loop.rate_after(state), state.optimizer_state.n_steps + 1
    with loop.threads:
        n_threads = loop.gradient.n_threads
        found = wide_points(layout, state.parameters, points, n_threads)
        kept, (average, _) = loop.gradient.moments(
            layout, state.parameters, points[:, :-1], state.gradient_state, loop.engine
        )
        slope = wide_moments(layout, state.parameters, found, n_threads, less=average)
        norm = float(np.linalg.norm(slope))
        with uninterrupted():  # an interruption in the middle would leave a state that is none
            loop.latest.clear()
            settings = (optimizer.beta1, optimizer.beta2, *optimizer.scales(n_steps))
            follow_adam(slope, first, second, settings, first, second, slope)
            moved = slope
            moved *= rate
            moved += state.parameters
            if loop.penalties.weight_decay:
                for start in range(0, layout.n_weights, _BLOCK):
                    part = slice(start, min(start + _BLOCK, layout.n_weights))
                    moved[part] -= rate * loop.penalties.weight_decay * state.parameters[part]
            loop.require_finite(float(moved @ moved), state, rate)
            layout.fix_gauge(moved)
            moved.setflags(write=False)
            put(state, moved, OptimizerState(n_steps, (first, second)), kept, None)
    return lambda: norm
