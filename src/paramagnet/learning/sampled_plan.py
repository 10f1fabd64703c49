"""The views of the buffers that the parts of a compiled update work on (`SampledUpdate`)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet.kernels.lookup import make_room
from paramagnet.sampling.layer import Float32Array
from paramagnet.units import FloatArray


class Rows(NamedTuple):
    """The rows of one buffer that belong to some points of the batch, and to some chains."""

    batch: npt.NDArray[Any]
    chains: npt.NDArray[Any]


class Part(NamedTuple):
    """What one thread works on: some points of the batch and some chains, as views of the buffers."""

    points: slice
    chains: slice
    ranges: tuple[int, int, int, int]  # of the rows of both
    states: Rows
    codes: Rows
    fields: Rows
    means: Rows
    factors: Rows
    none_v: Float32Array
    none_h: Float32Array
    drawn_h: Float32Array
    codes_h: npt.NDArray[np.uint16]
    fields_v: Float32Array


class Slice(NamedTuple):
    """Some visible units, whose gradient one thread makes at a time."""

    units: tuple[int, int]
    codes: npt.NDArray[np.uint16]
    norms: FloatArray
    across: FloatArray  # sums over these units, for the hidden biases of centred learning


@dataclass(frozen=True, eq=False)
class Plan:
    """The views of the buffers for batches of one size; the last batch of an epoch may be smaller."""

    states: Float32Array
    means: Float32Array
    factors: Float32Array
    chains: Float32Array
    parts: list[Part]
    codes_across: npt.NDArray[np.uint16]
    slices: list[Slice]
    norms: FloatArray
    across: FloatArray
    scale: float  # of the gradient


@dataclass(frozen=True, eq=False)
class Buffers:
    """What the updates of a run write to: rows of points, then of chains, or of chains alone."""

    states: Float32Array
    fields: Float32Array
    means: Float32Array
    codes: npt.NDArray[np.uint16]
    none_v: Float32Array
    none_h: Float32Array
    drawn_h: Float32Array
    codes_h: npt.NDArray[np.uint16]
    fields_v: Float32Array

    @classmethod
    def make(cls, n_visible: int, n_hidden: int, n_rows: int, n_chains: int) -> Buffers:
        """Buffers for as many points and chains together, and for the chains."""
        states, fields = (np.empty((n_rows, n), np.float32) for n in (n_visible, n_hidden))
        none_v, none_h = (np.zeros((n_chains, n), np.float32) for n in (n_visible, n_hidden))
        codes, codes_h = make_room(n_rows, n_visible)[0], make_room(n_chains, n_hidden)[0]
        drawn_h, fields_v = np.empty_like(none_h), np.empty_like(none_v)
        return cls(states, fields, np.empty_like(fields), codes, none_v, none_h, drawn_h, codes_h, fields_v)

    def plan(
        self, n_points: int, n_chains: int, n_threads: int, borders: list[int], *, centred: bool
    ) -> Plan:
        """The views for batches of ``n_points``: a part for every thread, and the slices of visible units
        between the ``borders``.
        """
        n_rows, n_visible, n_hidden = n_points + n_chains, self.states.shape[1], self.fields.shape[1]
        divisor = math.gcd(n_points, n_chains)
        shares = np.array([n_chains // divisor, -(n_points // divisor)], np.float32)
        factors, scale = np.repeat(shares, [n_points, n_chains]), divisor / (n_points * n_chains)
        parts = []
        for k in range(n_threads):
            points = slice(n_points * k // n_threads, n_points * (k + 1) // n_threads)
            chains = slice(n_chains * k // n_threads, n_chains * (k + 1) // n_threads)
            rows = points, slice(n_points + chains.start, n_points + chains.stop)

            def both(array: Any, rows: tuple[slice, slice] = rows) -> Rows:
                return Rows(array[rows[0]], array[rows[1]])

            ranges = (points.start, points.stop, rows[1].start, rows[1].stop)
            parts.append(
                Part(
                    points, chains, ranges, both(self.states), both(self.codes), both(self.fields),
                    both(self.means), both(factors), self.none_v[chains], self.none_h[chains],
                    self.drawn_h[chains], self.codes_h[chains], self.fields_v[chains],
                )
            )  # fmt: skip
        codes = make_room(n_visible, n_rows)[0]
        norms = np.empty((len(borders) - 1, 2))
        across = np.empty((len(borders) - 1, n_hidden if centred else 0))
        slices = [
            Slice(units, codes[slice(*units)], *rows)
            for units, *rows in zip(itertools.pairwise(borders), norms, across, strict=True)
        ]
        states, means = self.states[:n_rows], self.means[:n_rows]
        return Plan(states, means, factors, states[n_points:], parts, codes, slices, norms, across, scale)
