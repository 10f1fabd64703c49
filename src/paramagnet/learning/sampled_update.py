"""Updates with sampled gradients of units with two values, from the batch to the next parameters.

Per update there are four products of states with weights, and one of states with means, which is the whole
gradient:

    fields   = [batch; chains] w               of the hidden units, batch and chains at once
    sweeps   : h from the chains' fields, v from h w^T, fields of v        (`n_steps` times)
    gradient = [batch; chains]^T [C/D E[h | batch]; -B/D E[h | chains]] D/(B C)

B points, C chains, and D their greatest common divisor: with whole numbers as factors the gradient of units
that never change is zero, not the rounding of 1/B and 1/C, which Adam would turn into whole steps. Weights of
points make other factors (`paramagnet.learning.weighting`).
States have two values in all of them, so all are looked up (`paramagnet.kernels.lookup`): their sums do not
depend on how rows are shared between threads. A pass over the parameters then makes the step of the optimizer
and writes parameters and slots in float64, and the weights once more in float32 for the next update
(`paramagnet.kernels.passes`). In centred learning (`paramagnet.learning.centring`) the same pass makes the
gradient in centred coordinates, and the sums over changes of weights that biases are corrected by. Buffers
are kept between updates, and the arrays of states that nobody holds any more are used again
(`paramagnet._recycled`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet._parallel import count_cores
from paramagnet._recycled import HELD_ONCE, Recycled, count_references, read_only
from paramagnet.kernels.lookup import fill_codes, fill_codes_across, make_room, multiply_codes
from paramagnet.kernels.passes import gather_states, move_biases, move_weights, sum_rows
from paramagnet.kernels.sampling import draw, fill_means
from paramagnet.layout import Layout
from paramagnet.learning.centring import Centre
from paramagnet.learning.crew import Crew
from paramagnet.learning.gradients.base import Particles
from paramagnet.learning.optimizers import (
    Optimizer,
    OptimizerState,
    fused_rule,
    largest_direction,
    step_by,
)
from paramagnet.learning.penalties import Penalties
from paramagnet.learning.reused_slots import slots_are_free
from paramagnet.learning.sampled_plan import Buffers, Part, Plan, Slice
from paramagnet.learning.sampled_setup import count_threads, has_fused_sweeps, probe_layers
from paramagnet.learning.state import TrainState
from paramagnet.learning.weighting import PointWeights
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import HIDDEN, VISIBLE, Float32Array, SampledLayer, check_range
from paramagnet.units import FloatArray

OVERWRITTEN_FROM = 200_000  # parameters: from here on a state that nobody holds is overwritten
SLICE = 400  # most visible units whose gradient is made at a time
_EMPTY = np.empty(0)
_NONE = read_only(_EMPTY)


class Updated(NamedTuple):
    """What an update leads to, the squares of the norms of the parameters and of the gradient, and the
    offsets of centred learning.
    """

    parameters: FloatArray
    optimizer_state: OptimizerState
    chains: Chains
    size: float
    steepness: float
    offsets: FloatArray | None


class SampledUpdate:
    """The updates of one run, and the buffers that they share; none of it is part of a state."""

    def __init__(
        self,
        layout: Layout,
        points: npt.NDArray[Any],
        particles: Particles,
        optimizer: Optimizer,
        penalties: Penalties,
        batch_size: int,
        centre: Centre | None = None,
        weights_of_points: PointWeights | None = None,
    ) -> None:
        n, m = layout.n_visible, layout.n_hidden
        self._layout, self._particles, self._optimizer = layout, particles, optimizer
        self._penalties, self._centre = penalties, centre
        self._weights_of_points, self._scale = weights_of_points, 1.0
        self._visible, self._hidden = probe_layers(layout)
        self._high = points > self._middle(self._visible)  # a byte for every number of the data
        n_chains = particles.n_chains or batch_size
        n_rows = batch_size + n_chains
        self._borders = [n * k // -(-n // SLICE) for k in range(-(-n // SLICE) + 1)]
        n_threads = count_cores() if particles.n_threads is None else particles.n_threads
        work = n, m, batch_size, n_chains, particles.n_steps
        self._n_threads = count_threads(n_threads, *work, n_slices=len(self._borders) - 1)
        self._crew = Crew(self._n_threads)
        self._weights = np.empty((n, m), np.float32)
        self._fused_sweeps = has_fused_sweeps(layout, particles, batch_size)
        self._weights_of: FloatArray | None = None  # the parameters that these are, and their norm
        self._norm = math.inf
        bounds = [max(1.0, *map(abs, layer.levels)) for layer in (self._visible, self._hidden)]
        self._largest_slope = 2.0 * bounds[0] * bounds[1]  # a difference of two averages of v_i E[h_j | v]
        self._growth = 0.0  # of biases, per change of the weights
        if centre is not None:
            self._largest_slope *= 3.0  # less mu_i g_c_j, less g_b_i lam_j
            self._growth = centre.growth(layout, bounds[1])
        self._buffers = Buffers.make(n, m, n_rows, n_chains)
        widest = max(last - first for first, last in itertools.pairwise(self._borders))
        self._rooms = [  # one for every thread: to look products up, and for the gradient of a slice
            (make_room(max(n_rows, widest), 1)[1], np.empty((widest, m), np.float32))
            for _ in range(self._n_threads)
        ]
        self._slope_v, self._slope_h = np.empty(n), np.empty(m)
        self._batch_h, self._along = (_EMPTY, _EMPTY) if centre is None else (np.empty(m), np.empty(n))
        self._vectors = [Recycled((layout.size,), np.float64) for _ in range(3)]
        self._moved = Recycled((n_chains, n), np.float32)
        self._plans: dict[int, Plan] = {}

    def __call__(
        self, state: TrainState, chosen: npt.NDArray[np.int64], rate: float, in_place: bool = False
    ) -> Updated:
        """The update from ``state`` with the batch of the ``chosen`` points; ``in_place`` only where
        `may_overwrite` says so.
        """
        plan = self._plans.get(len(chosen))
        if plan is None:
            of_sizes = len(chosen), self._particles.n_chains or len(chosen), self._n_threads
            plan = self._buffers.plan(*of_sizes, self._borders, centred=self._centre is not None)
            self._plans[len(chosen)] = plan
        chains, parameters, optimizer_state = state.gradient_state, state.parameters, state.optimizer_state
        assert isinstance(chains, Chains)
        self._scale = plan.scale
        if self._weights_of_points is not None:
            plan.factors[:], self._scale = self._weights_of_points.factors(chosen, self._particles.n_chains)
        moved = self._sample(parameters, chains, chosen, plan)
        slopes = self._slope_v, self._slope_h
        sum_rows(plan.states, plan.factors, plan.means, *slopes, len(chosen), self._batch_h)
        self._slope_v *= self._scale
        self._slope_h *= self._scale
        self._batch_h *= self._scale
        offsets = None if self._centre is None else self._centre.follow(state.offsets, self._batch_h)
        rule = fused_rule(self._optimizer, optimizer_state.n_steps)
        if rule is None or self._penalties.clip is not None:  # clipping needs the whole gradient first
            return self._step_by(parameters, optimizer_state, moved, plan, rate, offsets)
        settings = (*rule, rate, 1.0 - rate * self._penalties.weight_decay)
        found = self._penalties.thresholds(self._layout, parameters, rate)
        thresholds = found if found.size else None
        return self._step(parameters, optimizer_state, moved, plan, settings, thresholds, offsets, in_place)

    def may_overwrite(self, latest: list[TrainState], rate: float, largest: float) -> bool:
        """Whether the state in ``latest`` may be overwritten by the next one.

        Nobody else may hold it or its arrays, and the parameters must stay below ``largest`` whatever the
        batch: an error on the way needs the state before.
        """
        if not slots_are_free(latest) or self._weights_of is not latest[0].parameters:
            return False
        state = latest[0]
        if count_references([state.parameters]) != HELD_ONCE + 2:  # the state's, and ``self._weights_of``
            return False
        vectors = state.parameters, *state.optimizer_state.slots
        if not all(map(Recycled.is_free_but_for, self._vectors, vectors)):
            return False
        return self._largest_norm(rate) < largest

    def _largest_norm(self, rate: float) -> float:
        """A bound on the norm of the parameters after the next update."""
        moved = rate * largest_direction(self._optimizer, self._largest_slope)
        decay, layout = rate * self._penalties.weight_decay, self._layout
        factor = 1.0 if self._centre is None else max(1.0, self._centre.factor)
        kept = max(1.0, abs(1.0 - decay))  # of the weights, or of the biases
        grown = kept * self._norm + factor * moved * math.sqrt(layout.size)
        taken_off = self._penalties.largest_change(layout, self._norm, rate)
        return grown + self._growth * (moved * math.sqrt(layout.n_weights) + taken_off)

    # The chains, and the means of the hidden units

    def _sample(
        self, parameters: FloatArray, chains: Chains, chosen: npt.NDArray[np.int64], plan: Plan
    ) -> Chains:
        """The chains after their sweeps; states and scaled means of batch and chains are in the buffers."""
        weights, visible_bias, hidden_bias = self._layout.split(parameters)
        if self._weights_of is not parameters:
            check_range(weights, visible_bias, hidden_bias)
            np.copyto(self._weights, weights, casting="same_kind")
        shift_v = (self._visible.scale * visible_bias).astype(np.float32)
        shift_h = (self._hidden.scale * hidden_bias).astype(np.float32)
        n_steps, start = self._particles.n_steps, chains
        if not self._fused_sweeps:
            if self._particles.n_chains is None:
                gather_states(self._high, chosen, self._visible.levels, plan.chains)
                start = Chains.at(plan.chains, chains.seed, chains.sweep)
            start = run_sweeps(
                (
                    replace(self._visible, weights=self._weights, shift=shift_v),
                    replace(self._hidden, weights=np.ascontiguousarray(self._weights.T), shift=shift_h),
                ),
                start,
                n_steps,
                n_threads=self._n_threads,
                with_fields=False,
            )

        def work(index: int) -> None:
            part, room = plan.parts[index], self._rooms.pop()
            try:
                self._sample_part(part, room[0], start, chosen, (shift_v, shift_h))
            finally:
                self._rooms.append(room)

        self._crew.share(work, len(plan.parts))
        sweep = chains.sweep + n_steps
        if self._particles.n_chains is None:
            return Chains(chains.visible, chains.seed, sweep)
        visible = self._moved.take()
        np.copyto(visible, plan.chains)
        return Chains(read_only(visible), chains.seed, sweep)

    def _sample_part(
        self,
        part: Part,
        room: Float32Array,
        chains: Chains,
        chosen: npt.NDArray[np.int64],
        shifts: tuple[Float32Array, Float32Array],
    ) -> None:
        visible, hidden, weights = self._visible, self._hidden, self._weights
        buffers, middle_v, middle_h = self._buffers, self._middle(visible), self._middle(hidden)
        n_steps, states, fields = self._particles.n_steps, part.states, part.fields
        b0, b1, c0, c1 = part.ranges
        from_batch = self._particles.n_chains is None and self._fused_sweeps
        gather_states(self._high, chosen[part.points], visible.levels, states.batch)
        fill_codes(states.batch, middle_v, part.codes[0])
        if from_batch:
            multiply_codes(
                buffers.codes,
                (b0, b1, b1, b1),
                weights,
                False,
                visible.levels,
                room,
                buffers.fields,
            )
            np.copyto(fields.chains, fields.batch)
        else:
            np.copyto(states.chains, chains.visible[part.chains])
            fill_codes(states.chains, middle_v, part.codes[1])
            multiply_codes(buffers.codes, part.ranges, weights, False, visible.levels, room, buffers.fields)
        own = part.chains.start, part.chains.stop
        for sweep in range(chains.sweep, chains.sweep + (n_steps if self._fused_sweeps else 0)):
            place = (chains.seed, own[0], sweep)
            draw(
                fields.chains,
                hidden.scale,
                shifts[1],
                hidden.levels,
                (*place, HIDDEN),
                part.none_h,
                part.drawn_h,
            )
            fill_codes(part.drawn_h, middle_h, part.codes_h)
            multiply_codes(
                buffers.codes_h,
                (*own, own[1], own[1]),
                weights,
                True,
                hidden.levels,
                room,
                buffers.fields_v,
            )
            draw(
                part.fields_v,
                visible.scale,
                shifts[0],
                visible.levels,
                (*place, VISIBLE),
                part.none_v,
                states.chains,
            )
            fill_codes(states.chains, middle_v, part.codes[1])
            multiply_codes(
                buffers.codes,
                (c0, c1, c1, c1),
                weights,
                False,
                visible.levels,
                room,
                buffers.fields,
            )
        for rows in range(2):
            fill_means(
                fields[rows], hidden.scale, shifts[1], hidden.levels, part.factors[rows], part.means[rows]
            )

    # The gradient, and the step

    def _make_gradient(
        self, part: Slice, plan: Plan, room: tuple[Float32Array, Float32Array]
    ) -> Float32Array:
        """The gradient of the weights of some visible units."""
        first, last = part.units
        gradient = room[1][: last - first]
        fill_codes_across(plan.states, first, last, self._middle(self._visible), plan.codes_across)
        everything = (0, last - first, 0, 0)
        multiply_codes(part.codes, everything, plan.means, False, self._visible.levels, room[0], gradient)
        gradient *= np.float32(self._scale)
        return gradient

    def _step(
        self,
        parameters: FloatArray,
        optimizer_state: OptimizerState,
        moved: Chains,
        plan: Plan,
        rule: tuple[float, ...],
        thresholds: FloatArray | None,
        lam: FloatArray | None,
        in_place: bool,
    ) -> Updated:
        """The step of an optimizer that the compiled pass knows."""
        m, n_weights = self._layout.n_hidden, self._layout.n_weights
        before = [read_only(vector) for vector in (parameters, *optimizer_state.slots)]
        after: list[Any] = [
            vector.base if in_place else store.take()
            for store, vector in zip(self._vectors, before, strict=False)
        ]
        before += [_NONE] * (3 - len(before))
        vectors = tuple(before), (*after, *[_EMPTY] * (3 - len(after)))
        centre, factor, offsets = self._centre, 1.0, None
        if centre is not None and lam is not None:
            factor, offsets = centre.factor, (centre.means, lam, self._slope_v, self._slope_h)
            plan.across[:] = 0.0

        def work(index: int) -> None:
            part, room = plan.slices[index], self._rooms.pop()
            try:
                gradient = self._make_gradient(part, plan, room)
                part.norms[:] = 0.0
                sums = self._along, part.across
                old, new = vectors
                copies = self._weights, sums, part.norms
                move_weights(gradient, part.units, rule, offsets, old, new, in_place, thresholds, *copies)
            finally:
                self._rooms.append(room)

        self._crew.share(work, len(plan.slices))
        norms = plan.norms.sum(axis=0)
        across = plan.across.sum(axis=0)  # in the order of the slices, which follow from the sizes
        move_biases(self._slope_h, n_weights, factor, across, rule, *vectors, norms)
        move_biases(self._slope_v, n_weights + m, 1.0, self._along, rule, *vectors, norms)
        found = [read_only(vector) for vector in after]
        self._weights_of, self._norm = found[0], math.sqrt(norms[0])
        state = OptimizerState(optimizer_state.n_steps + 1, tuple(found[1:]))
        return Updated(found[0], state, moved, float(norms[0]), float(norms[1]), lam)

    def _step_by(
        self,
        parameters: FloatArray,
        optimizer_state: OptimizerState,
        moved: Chains,
        plan: Plan,
        rate: float,
        lam: FloatArray | None,
    ) -> Updated:
        """The step of any other optimizer, or of a clipped gradient, on the gradient as one vector."""
        slope = np.empty(self._layout.size)
        weights, visible_bias, hidden_bias = self._layout.split(slope)
        visible_bias[:], hidden_bias[:] = self._slope_v, self._slope_h

        def work(index: int) -> None:
            part, room = plan.slices[index], self._rooms.pop()
            try:
                weights[slice(*part.units)] = self._make_gradient(part, plan, room)
            finally:
                self._rooms.append(room)

        self._crew.share(work, len(plan.slices))
        step = self._layout, parameters, optimizer_state, slope, rate, self._penalties
        if self._centre is not None and lam is not None:
            found, state = self._centre.step_by(self._optimizer, *step, lam)
        else:
            found, state = step_by(self._optimizer, *step)
        found.setflags(write=False)
        return Updated(found, state, moved, float(found @ found), float(slope @ slope), lam)

    @staticmethod
    def _middle(layer: SampledLayer) -> np.float32:
        return np.float32(0.5 * (layer.levels[0] + layer.levels[1]))
