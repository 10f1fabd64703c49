"""Effective couplings between the visible units of a machine: which sites of a sequence depend on others.

A machine gives a sequence ``v`` of categorical units the log-probability, up to a constant,

    ln p(v) = sum_i b_i(v_i) + sum_j G_j(c_j + sum_i w_ij(v_i)),        G_j(x) = ln sum_h p0(h) exp(x h)

where ``G_j`` is the log-trace of hidden unit ``j`` (`Unit.log_trace`). Summed over the hidden units this is
one function of all sites. What it says of a pair ``(i, k)``, given all other sites (the context), is the
function of two letters

    f(a, b) = ln p(v with v_i = a, v_k = b)

and what is neither a function of ``a`` alone nor of ``b`` alone is the interaction, in the zero-sum gauge

    J(a, b) = f(a, b) - mean_a f - mean_b f + mean_ab f         (means over all letters, equally weighted)

so that biases and all other couplings drop out. It depends on the context, unless the machine has pairwise
couplings only. The effective coupling ``J_ik(a, b)`` is the average of ``J(a, b)`` over contexts that are
sequences of the data. For Gaussian hidden units ``G(x)`` is ``variance x**2 / 2``, the context drops out, and
``J_ik(a, b) = variance sum_j w_ij(a) w_kj(b)`` (weights in the zero-sum gauge) exactly.

The second-order form expands ``G_j`` about the field of each sequence: ``J_ik(a, b)`` is about ``sum_j
<Var(h_j | v)> w_ij(a) w_kj(b)``, with the average over the data. It is exact for Gaussian units and right
for others where single weights are small; its cost does not grow with the number of letters squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array, shown
from paramagnet._checks import (
    as_callable,
    as_choice,
    as_count,
    as_flag,
    as_generator,
    as_reals,
    as_sample_weight,
    as_threads,
)
from paramagnet._parallel import ONE_BLAS_THREAD, count_cores, run_tasks
from paramagnet._progress import Progress
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import FloatArray

METHODS = ("contexts", "second-order")
Rng = np.random.Generator | int | None

_ELEMENTS = 1 << 20  # fields in memory at a time, on each thread
_GROUPS = 10  # of contexts, left out in turn for the error
_STEP = 1e-4  # of a field: the slope of the mean is the variance
_MOST_BYTES = 1 << 31  # of couplings that are kept


@dataclass(frozen=True, eq=False)
class Couplings:
    """Effective couplings between all pairs of sites, made by `effective_couplings`.

    ``strengths`` are Frobenius norms over the letters, ``(n_sites, n_sites)``, symmetric, zero on the
    diagonal; ``error`` is their standard error from the choice of contexts, zero where all sequences of the
    data were taken. ``values`` are the couplings ``J_ik(a, b)`` themselves, ``(n_sites, q, n_sites, q)``, if
    they were asked for. ``n_contexts`` is the number of sequences that the average is over.
    """

    strengths: FloatArray
    error: FloatArray
    n_contexts: int
    method: str
    values: FloatArray | None = None

    def __repr__(self) -> str:
        return f"Couplings({len(self.strengths)} sites, {self.n_contexts} contexts, {self.method})"

    @property
    def corrected(self) -> FloatArray:
        """The strengths with the average product correction (`correct_products`)."""
        return correct_products(self.strengths)


class Contact(NamedTuple):
    """A pair of sites, counted from 0, and the strength of its coupling."""

    i: int
    j: int
    strength: float


def effective_couplings(
    rbm: RBM,
    data: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    method: str = "contexts",
    n_contexts: int = 100,
    without: int | None = None,
    keep: bool = False,
    rng: Rng = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Couplings:
    """The effective couplings between the categorical visible units of a machine, as the module derives them.

    Parameters
    ----------
    rbm : RBM
        A machine with categorical visible units, and hidden units of any type.
    data : array_like
        Sequences as states, ``(n_sequences, n_sites)``: the contexts.
    sample_weight : array_like, optional
        Weights of the sequences, zero or positive; None counts all alike.
    method : str, default "contexts"
        ``"contexts"``: the exact interaction of each pair, averaged over contexts. ``"second-order"``: from
        the variances of the hidden units, over all sequences of the data; much faster, and exact for Gaussian
        hidden units only.
    n_contexts : int, default 100
        How many sequences to draw as contexts, with the probabilities that the weights give; as many as there
        are, or more, take each of them once.
    without : int, optional
        A state that is left out of the norms, such as that of the gap; None leaves out none.
    keep : bool, default False
        Whether to return the couplings themselves, too.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the choice of contexts.
    n_threads : int, optional
        Threads; None takes all cores. The result does not depend on it.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    Couplings
        Strengths of all pairs with their error, and the couplings if ``keep``.
    """
    machine = as_rbm(rbm, "rbm")
    q, n_sites = machine.visible.width, machine.n_visible
    if q == 1 or n_sites < 2:
        raise ValueError(
            f"`rbm` must have two or more categorical visible units, got {n_sites} {machine.visible} units."
        )
    points = machine.visible.as_states(data, "data", n_sites)
    as_choice(method, "method", METHODS)
    if method == "second-order" and machine.hidden.width > 1:
        raise ValueError(
            f"`method` must be 'contexts' for {machine.hidden} hidden units, got 'second-order'."
        )
    count = as_count(n_contexts, "n_contexts")
    if without is not None:
        without = as_count(without, "without", minimum=0, maximum=q - 1)
    weights = None
    if sample_weight is not None:
        weights = as_sample_weight(sample_weight, "sample_weight", len(points))
    if as_flag(keep, "keep") and 8 * (n_sites * q) ** 2 > _MOST_BYTES:
        raise ValueError(
            f"`keep` must be False for {n_sites} sites of {q} states: they take too much memory."
        )
    threads = count_cores() if n_threads is None else as_threads(n_threads)
    as_callable(progress, "progress", "the share of the work that is done")
    shares = np.full(len(points), 1.0) if weights is None else weights
    points, shares, drawn = _choose_contexts(points, shares, count if method == "contexts" else None, rng)
    work = _PairSums(machine.to_zero_sum(), points, shares / shares.sum(), without, keep, drawn)
    run = work.of_site if method == "contexts" else work.of_site_by_variance
    strengths, error = np.zeros((n_sites, n_sites)), np.zeros((n_sites, n_sites))
    values = np.zeros((n_sites, q, n_sites, q)) if keep else None
    with ONE_BLAS_THREAD:
        tasks = [(site,) for site in range(n_sites - 1)]
        for site, (norms, errors, kept) in enumerate(run_tasks(run, tasks, threads, progress)):
            strengths[site, site + 1 :], error[site, site + 1 :] = norms, errors
            if values is not None:
                values[site, :, site + 1 :] = kept.transpose(1, 0, 2)
                values[site + 1 :, :, site] = kept.transpose(0, 2, 1)
    return Couplings(strengths + strengths.T, error + error.T, len(points), method, values)


def _choose_contexts(
    points: FloatArray, weights: FloatArray, count: int | None, rng: Rng
) -> tuple[FloatArray, FloatArray, bool]:
    """Sequences to average over, their weights, and whether they were drawn from more."""
    points, weights = points[weights > 0.0], weights[weights > 0.0]
    if count is None or count >= len(points):
        return points, weights, False
    chosen = as_generator(rng).choice(len(points), size=count, p=weights / weights.sum())
    return points[chosen], np.ones(count), True


class _PairSums:
    """The couplings of one site with all later ones."""

    def __init__(
        self,
        rbm: RBM,
        points: FloatArray,
        shares: FloatArray,
        without: int | None,
        keep: bool,
        drawn: bool,
    ) -> None:
        self.hidden = rbm.units[1]
        self.weights = rbm.weights_by_state  # (n_sites, q, n_columns)
        self.points, self.shares = points.astype(np.int64), shares
        self.fields = rbm.field_h_given_v(points)
        self.letters = [a for a in range(rbm.visible.width) if a != without]
        self.keep = keep
        n_groups = min(_GROUPS, len(points)) if drawn else 1
        self.groups = np.array_split(np.arange(len(points)), n_groups)

    def of_site(self, i: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Norms, errors and couplings of site ``i`` and each later one, averaged over contexts."""
        own = self.weights[i]
        others = self.fields - own[self.points[:, i]]
        n_later = len(self.weights) - i - 1
        q, n_columns = own.shape
        norms, errors = np.empty(n_later), np.empty(n_later)
        kept = np.empty((n_later if self.keep else 0, q, q))
        block = max(1, _ELEMENTS // (q * q * n_columns))
        for place in range(n_later):
            other = self.weights[i + 1 + place]
            pair = own[:, None] + other  # (q, q, n_columns)
            contexts = others - other[self.points[:, i + 1 + place]]
            sums = np.zeros((len(self.groups), q, q))
            for total, group in zip(sums, self.groups, strict=True):
                for first in range(0, len(group), block):
                    rows = group[first : first + block]
                    traces = self.hidden.sum_log_trace(contexts[rows, None, None] + pair)
                    total += np.tensordot(self.shares[rows], traces, 1)
            coupling = centre(sums.sum(axis=0))
            norms[place] = self._norm(coupling)
            errors[place] = self._jackknife(sums)
            if self.keep:
                kept[place] = coupling
        return norms, errors, kept

    def of_site_by_variance(self, i: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same from the mean variances of the hidden units."""
        scaled = self.weights[i] * self.variances
        later = np.einsum("aj,kbj->kab", scaled, self.weights[i + 1 :], optimize=True)
        chosen = later[:, self.letters][:, :, self.letters]
        norms = np.sqrt((chosen**2).sum(axis=(1, 2)))
        return norms, np.zeros(len(norms)), later if self.keep else later[:0]

    @property
    def variances(self) -> FloatArray:
        """The mean of ``Var(h_j | v)`` over the data."""
        slopes = (self.hidden.mean(self.fields + _STEP) - self.hidden.mean(self.fields - _STEP)) / (2 * _STEP)
        result: FloatArray = self.shares @ slopes
        return result

    def _norm(self, coupling: FloatArray) -> float:
        return float(np.linalg.norm(coupling[np.ix_(self.letters, self.letters)]))

    def _jackknife(self, sums: FloatArray) -> float:
        """The standard error of the norm, from leaving out each group of contexts in turn."""
        n_groups = len(self.groups)
        if n_groups < 2:
            return 0.0
        total = sums.sum(axis=0)
        shares = [self.shares[group].sum() for group in self.groups]
        norms = [
            self._norm(centre((total - part) / (1.0 - share)))
            for part, share in zip(sums, shares, strict=True)
        ]
        return float(np.sqrt((n_groups - 1) * np.var(norms)))


def centre(table: FloatArray) -> FloatArray:
    """A function of two letters in the zero-sum gauge: the means over each letter are zero."""
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    result: FloatArray = table - rows - columns + table.mean()
    return result


def correct_products(strengths: npt.ArrayLike) -> FloatArray:
    """Strengths less the average product ``S_i. S_.k / S_..`` (APC), which sites with many couplings share.

    Parameters
    ----------
    strengths : array_like
        Symmetric, ``(n_sites, n_sites)``; the diagonal is ignored.

    Returns
    -------
    ndarray
        Corrected strengths, zero on the diagonal.
    """
    table = _as_square(strengths)
    np.fill_diagonal(table, 0.0)
    means = table.sum(axis=0) / (len(table) - 1)
    overall = means.mean()
    if overall > 0.0:
        table -= means[:, None] * means / overall
    np.fill_diagonal(table, 0.0)
    return table


def strongest_contacts(
    strengths: npt.ArrayLike,
    n_contacts: int = 10,
    *,
    least_distance: int = 4,
    positions: npt.ArrayLike | None = None,
) -> list[Contact]:
    """The pairs of sites with the largest strengths, the strongest first.

    Parameters
    ----------
    strengths : array_like
        Symmetric, ``(n_sites, n_sites)``, such as `Couplings.corrected`.
    n_contacts : int, default 10
        How many pairs; fewer are returned if there are no more.
    least_distance : int, default 4
        How far apart the sites of a pair must be at least; neighbours are coupled in every family.
    positions : array_like, optional
        Where the sites stand, such as `Alignment.columns`; None counts the sites.

    Returns
    -------
    list of Contact
        Pairs ``i < j`` of sites, counted from 0, with their strengths.
    """
    table = _as_square(strengths)
    count = as_count(n_contacts, "n_contacts")
    apart = as_count(least_distance, "least_distance", minimum=1)
    places = np.arange(len(table)) if positions is None else as_reals(positions, "positions")
    if places.shape != (len(table),):
        raise ValueError(
            f"`positions` must hold a number for each of {len(table)} sites, got shape {places.shape}."
        )
    first, second = np.triu_indices(len(table), 1)
    far = np.abs(places[first] - places[second]) >= apart
    first, second = first[far], second[far]
    order = np.argsort(-table[first, second], kind="stable")[:count]
    return [Contact(int(first[k]), int(second[k]), float(table[first[k], second[k]])) for k in order]


def _as_square(strengths: Any) -> FloatArray:
    if isinstance(strengths, Couplings):
        raise ValueError(
            f"`strengths` must be an array, got {shown(strengths)}. Pass its `corrected` or `strengths`."
        )
    as_array(strengths, "strengths")
    table = as_reals(strengths, "strengths")
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise ValueError(
            f"`strengths` must have shape (n_sites, n_sites) with two sites or more, got {table.shape}."
        )
    if not np.allclose(table, table.T):
        raise ValueError("`strengths` must be symmetric, got a table that is not.")
    return table
