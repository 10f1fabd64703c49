"""The second engine: sweeps, averages and annealing by PyTorch, for graphics processors.

It does what `gibbs`, `gradient` and `annealing` do with our kernels, and nothing else: settings, chains,
estimates and optimizers are theirs. Everything is float32 on the device; log-weights are added up in float64
where the device has it (Apple's has not).

A unit is high where ``u < sigmoid(log-odds)``. The random numbers of a call come from a generator that is
seeded afresh from the address of the first draw (seed, chain, sweep). So chains are given by their states, a
seed and a sweep here too, a checkpoint needs no more than that, and a resumed run is the same bit for bit on
the same device. The two engines have different random numbers; given the same ones (``uniforms``) they make
the same chains, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from paramagnet.layout import Layout
from paramagnet.sampling.annealing import KEPT, START, SUMMED
from paramagnet.sampling.chains import Chains
from paramagnet.sampling.layer import HIDDEN, VISIBLE, check_range
from paramagnet.units import FloatArray, as_binary

if TYPE_CHECKING:
    from paramagnet.sampling.annealing import _Path

Fill = Callable[[Any, int, int], None]  # fill a tensor with the uniform numbers of a sweep and a stream

BLOCK_UNITS = 1 << 25  # units of one layer annealed at a time: 128 MB an array
# From here to there uniform numbers lie strictly between 0 and 1 in float32: a unit whose probability is
# below 2**-25 is never high, one whose probability rounds to 1 never low.
LOWEST, HIGHEST = 2.0**-25, 1.0 - 2.0**-24


def seeded_uniforms(device: Any, seed: int, first: int, sweep: int) -> Fill:
    """Uniform numbers from a generator of the device's, for chains from ``first`` on, from ``sweep`` on."""
    (word,) = np.random.SeedSequence([seed, first, sweep]).generate_state(1, np.uint64)
    generator = torch.Generator(device=device)
    generator.manual_seed(int(word))

    def fill(out: Any, sweep: int, stream: int) -> None:
        out.uniform_(LOWEST, HIGHEST, generator=generator)

    return fill


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer on the device: its log-odds are the states of the other one times ``weights``, plus ``shift``.

    Its levels are ``low`` and ``low + span``.
    """

    weights: Any
    shift: Any
    low: float
    span: float

    def draw(self, odds: Any, fill: Fill, sweep: int, stream: int, states: Any) -> None:
        """Draw ``states``; what was in them, and in ``odds``, is lost."""
        fill(states, sweep, stream)
        torch.sigmoid(odds, out=odds)
        torch.sub(odds, states, out=states).ceil_()  # 1 where u < p, else 0
        if self.span != 1.0:
            states.mul_(self.span)
        if self.low != 0.0:
            states.add_(self.low)

    def mean(self, odds: Any) -> Any:
        """The means of the units; ``odds`` is lost."""
        return torch.sigmoid(odds, out=odds).mul_(self.span).add_(self.low)


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """PyTorch on one device; ``uniforms`` makes the source of its random numbers."""

    device: Any
    uniforms: Callable[[Any, int, int, int], Fill] = seeded_uniforms

    @property
    def name(self) -> str:
        """The device as users call it."""
        return "torch:cpu" if self.device.type == "cpu" else str(self.device)

    @property
    def kind(self) -> str:
        """The same without its number: what a run that is resumed must share."""
        return "torch:cpu" if self.device.type == "cpu" else str(self.device.type)

    def run_sweeps(self, layout: Layout, parameters: FloatArray, chains: Chains, n_sweeps: int) -> Chains:
        """The chains after ``n_sweeps`` sweeps v -> h -> v."""
        visible = self._place(chains.visible)
        self._sweep(self._layers(layout, parameters), visible, chains, n_sweeps)
        return _fetch_chains(visible, chains, n_sweeps)

    def sampled_moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        chains: Chains,
        n_sweeps: int,
        weights_of_chains: FloatArray | None = None,
    ) -> tuple[Chains, FloatArray]:
        """The same, and their averages of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i`` as one vector.

        ``weights_of_chains`` have the mean one.
        """
        layers, visible = self._layers(layout, parameters), self._place(chains.visible)
        self._sweep(layers, visible, chains, n_sweeps)
        factors = None if weights_of_chains is None else self._place(weights_of_chains)
        return _fetch_chains(visible, chains, n_sweeps), _average(layout, layers[1], visible, factors)

    def data_moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        weights_of_points: FloatArray | None = None,
    ) -> FloatArray:
        """These averages over ``points``, which have a column of ones at the right; their weights have the
        mean one.
        """
        _, hidden = self._layers(layout, parameters)
        factors = None if weights_of_points is None else self._place(weights_of_points)
        return _average(layout, hidden, self._place(points[:, :-1]), factors)

    def anneal(
        self,
        path: _Path,
        n_samples: int,
        states: FloatArray | None,
        seed: int,
        progress: Callable[[float], None] | None = None,
    ) -> FloatArray:
        """The log-weights of all chains; they start from ``states``, or from the independent model.

        ``progress`` is called after every step with the fraction that is done.
        """
        course = _Course.along(path, self._place)
        rows = max(1, BLOCK_UNITS // max(path.kept.shift.size, path.summed.shift.size))
        log_weights = np.empty(n_samples)
        for first in range(0, n_samples, rows):
            block = slice(first, min(first + rows, n_samples))
            fill = self.uniforms(self.device, seed, first, 0)
            start = None if states is None else self._place(states[block])
            size = block.stop - first
            total = torch.zeros(size, dtype=_widest(self.device), device=self.device)
            for k in course.steps(total, start, fill):
                if progress is not None:
                    progress((first + size * k / (len(path.temperatures) - 1)) / n_samples)
            log_weights[block] = total.cpu().numpy()
        return log_weights

    def _place(self, array: Any) -> Any:
        """A float32 copy of ``array`` on the device (in float32 already on the way: not all have float64)."""
        return torch.tensor(np.asarray(array, np.float32), dtype=torch.float32, device=self.device)

    def _layers(self, layout: Layout, parameters: FloatArray) -> tuple[_Layer, _Layer]:
        weights, visible_bias, hidden_bias = layout.split(parameters)
        check_range(weights, visible_bias, hidden_bias)
        placed = self._place(weights)
        sides = ((placed.t(), visible_bias, layout.visible), (placed, hidden_bias, layout.hidden))
        of_visible, of_hidden = (
            _make_layer(incoming, self._place(bias), as_binary(unit, "rbm").levels)
            for incoming, bias, unit in sides
        )
        return of_visible, of_hidden

    def _sweep(self, layers: tuple[_Layer, _Layer], visible: Any, chains: Chains, n_sweeps: int) -> None:
        """Take the states ``visible`` through all sweeps, in place."""
        of_visible, of_hidden = layers
        fill = self.uniforms(self.device, chains.seed, 0, chains.sweep)
        visible_odds = torch.empty_like(visible)
        hidden = visible.new_empty((len(visible), of_hidden.shift.numel()))
        hidden_odds = torch.empty_like(hidden)
        for sweep in range(chains.sweep, chains.sweep + n_sweeps):
            torch.addmm(of_hidden.shift, visible, of_hidden.weights, out=hidden_odds)
            of_hidden.draw(hidden_odds, fill, sweep, HIDDEN, hidden)
            torch.addmm(of_visible.shift, hidden, of_visible.weights, out=visible_odds)
            of_visible.draw(visible_odds, fill, sweep, VISIBLE, visible)


def _widest(device: Any) -> Any:
    """The widest floating-point type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def _make_layer(incoming: Any, bias: Any, levels: tuple[float, float]) -> _Layer:
    low, span = levels[0], levels[1] - levels[0]
    return _Layer(span * incoming, span * bias, low, span)


def _fetch_chains(visible: Any, chains: Chains, n_sweeps: int) -> Chains:
    return Chains.at(visible.cpu().numpy(), chains.seed, chains.sweep + n_sweeps)


def _average(layout: Layout, hidden: _Layer, visible: Any, factors: Any = None) -> FloatArray:
    """The averages over the states ``visible`` of ``v_i E[h_j | v]``, ``E[h_j | v]`` and ``v_i``; ``factors``
    are weights of the states.
    """
    means = hidden.mean(torch.addmm(hidden.shift, visible, hidden.weights))
    if factors is not None:
        means.mul_(factors[:, None])
    products = torch.mm(visible.t(), means).div_(len(visible))
    rows = visible if factors is None else visible * factors[:, None]
    moments = np.empty(layout.size)
    for part, tensor in zip(layout.split(moments), (products, rows.mean(0), means.mean(0)), strict=True):
        part[...] = tensor.cpu().numpy()
    return moments


@dataclass(frozen=True, eq=False)
class _Course:
    """A path from the independent model to the machine, or back, on the device.

    The log-odds of a layer at ``t`` are ``t (field + shift) + (1 - t) base``, times the span of its levels.
    """

    kept: _Layer
    summed: _Layer
    kept_base: Any
    summed_base: Any
    linear: Any
    constant: float
    temperatures: list[float]
    joint: bool

    @classmethod
    def along(cls, path: _Path, place: Callable[[Any], Any]) -> _Course:
        """The path on a device; ``place`` takes arrays there.

        With ``x`` the log-odds, ``ln sum_h exp(h field) = low * field + ln(1 + exp x)``. The first part is
        linear in the states that are kept, and joins their biases.
        """
        weights = place(path.kept.weights)
        kept = _make_layer(weights.t(), place(path.kept_bias[0]), path.kept.levels)
        summed = _make_layer(weights, place(path.summed_bias[0]), path.summed.levels)
        linear, constant = path.kept_bias[0] - path.kept_bias[1], 0.0
        if not path.joint:
            linear = linear + summed.low * path.kept.weights.sum(axis=1, dtype=np.float64)
            constant = summed.low * float(np.sum(path.summed_bias[0] - path.summed_bias[1]))
        return cls(
            kept=kept,
            summed=summed,
            kept_base=kept.span * place(path.kept_bias[1]),
            summed_base=summed.span * place(path.summed_bias[1]),
            linear=place(linear),
            constant=constant,
            temperatures=path.temperatures.tolist(),
            joint=path.joint,
        )

    def steps(self, log_weights: Any, states: Any, fill: Fill) -> Iterator[int]:
        """Take a block of chains through all temperatures, adding to their log-weights: weight, then move.

        The number of steps done is yielded after each.
        """
        kept, summed, first = self.kept, self.summed, self.temperatures[0]
        kept_odds = self.kept_base.repeat(len(log_weights), 1)
        if states is None:
            states = torch.empty_like(kept_odds)
            kept.draw(kept_odds, fill, 0, START, states)
        full = torch.addmm(summed.shift, states, summed.weights)  # the log-odds at t = 1
        h, now, then = torch.empty_like(full), torch.empty_like(full), torch.empty_like(full)
        if self.joint:
            summed.draw(torch.lerp(self.summed_base, full, first, out=then), fill, 0, SUMMED, h)
        zero = full.new_zeros(())
        n_steps = len(self.temperatures) - 1
        for k in range(n_steps):
            t0, t1 = self.temperatures[k : k + 2]
            rise = torch.mv(states, self.linear).add_(self.constant)
            if self.joint:
                torch.sub(full, self.summed_base, out=now).mul_(h)
                rise.add_(now.sum(1), alpha=1.0 / summed.span)
            log_weights.add_(rise, alpha=t1 - t0)
            torch.lerp(self.summed_base, full, t1, out=then)
            if not self.joint:
                torch.lerp(self.summed_base, full, t0, out=now)
                torch.logaddexp(now, zero, out=now)
                torch.logaddexp(then, zero, out=h).sub_(now)
                log_weights.add_(h.sum(1))
            yield k + 1
            if k + 1 == n_steps:
                return  # the last move would not be looked at
            summed.draw(then, fill, k + 1, SUMMED, h)
            shift = torch.lerp(self.kept_base, kept.shift, t1)
            torch.addmm(shift, h, kept.weights, alpha=t1, out=kept_odds)
            kept.draw(kept_odds, fill, k + 1, KEPT, states)
            torch.addmm(summed.shift, states, summed.weights, out=full)
