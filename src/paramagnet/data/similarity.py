"""Weights of sequences by the number of similar ones, and frequencies of letters with these weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import as_array
from paramagnet._checks import as_callable, as_count, as_real, as_sample_weight, as_threads
from paramagnet._parallel import count_cores, run_tasks
from paramagnet._progress import Progress
from paramagnet.data.alignment import Alignment
from paramagnet.units import FloatArray, categorical

_MOST_LETTERS = 1 << 16
_BLOCK = 256  # sequences of a task
_ROUNDING = 1e-12  # of a share of sites; 0.55 of 100 sites are 55, though 0.55 * 100 is above it


def sequence_weights(
    data: Any, identity: float = 0.8, *, n_threads: int | None = None, progress: Progress | None = None
) -> FloatArray:
    """The weight of each sequence, 1 over the number of sequences that are like it.

    Two sequences are alike if they have the same letter at a share ``identity`` of the sites, or more; gaps
    count as a letter, and each sequence is like itself. The sum of the weights is called the effective number
    of sequences. The weights are those that `train` and `log_likelihood` take as ``sample_weight``; with them
    a cluster of near copies counts about as much as one sequence.

    Parameters
    ----------
    data : Alignment or array_like
        The alignment, or states of categorical units, integers ``(n_sequences, n_sites)``.
    identity : float, default 0.8
        Share of equal sites, above 0 and at most 1. At 1 only copies are alike.
    n_threads : int, optional
        Threads; None takes all cores. The result does not depend on it.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    ndarray
        Weights above 0 and at most 1, one for each sequence.
    """
    states = _as_states(data)
    share = as_real(identity, "identity")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"`identity` must be a share of sites above 0 and at most 1, got {share:g}.")
    threads = count_cores() if n_threads is None else as_threads(n_threads)
    as_callable(progress, "progress", "the share of the work that is done")
    n_sequences, n_sites = states.shape
    least_equal = math.ceil(share * n_sites * (1.0 - _ROUNDING))
    counts = np.empty(n_sequences, np.int64)
    planes = _as_planes(states)
    tasks = [(first, min(first + _BLOCK, n_sequences)) for first in range(0, n_sequences, _BLOCK)]
    from paramagnet.kernels.identity_counts import count_similar

    def count(first: int, last: int) -> None:
        count_similar(planes, first, last, n_sites - least_equal, counts)

    for _ in run_tasks(count, tasks, threads, progress):
        pass
    return 1.0 / counts


def _as_planes(states: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The bits of the letters, ``(n_words, n_planes, n_sequences)``: 64 sites to a word, zeros beyond."""
    n_sequences, n_sites = states.shape
    n_planes = max(1, int(states.max()).bit_length())
    n_words = -(-n_sites // 64)
    planes = np.empty((n_words, n_planes, n_sequences), np.uint64)
    padded = np.zeros((n_sequences, 64 * n_words), np.uint8)
    for plane in range(n_planes):
        padded[:, :n_sites] = (states >> plane) & 1
        packed = np.packbits(padded, axis=1, bitorder="little")
        planes[:, plane] = np.ascontiguousarray(packed).view("<u8").T
    return planes


def site_frequencies(
    data: Any, q: int | None = None, *, sample_weight: Any = None, pseudo_count: float = 1.0
) -> FloatArray:
    """How frequent each letter is at each site, ``(n_sites, q)``.

    It is ``f_ia = (sum_k w_k [v_ki = a] + pseudo_count/q) / (sum_k w_k + pseudo_count)``, with the weights
    ``w_k`` of the sequences: as if ``pseudo_count`` more sequences had been seen in which all letters are
    equally frequent. With a positive one no frequency is zero, and logarithms are finite. With one
    pseudo-count and weights of mean one ``ln f_ia`` are, up to a constant of the site, the visible biases
    that ``initialize(..., visible_bias="data", data=..., sample_weight=...)`` starts from.

    Parameters
    ----------
    data : Alignment or array_like
        The alignment, or states of categorical units, integers ``(n_sequences, n_sites)``.
    q : int, optional
        Number of letters; None takes those of the alignment's alphabet. States of an array need it.
    sample_weight : array_like, optional
        Weights of the sequences, zero or positive; None counts all alike, or by the counts of the alignment.
    pseudo_count : float, default 1.0
        How many sequences of equally frequent letters are added, zero or positive.

    Returns
    -------
    ndarray
        Frequencies, whose sum at each site is 1.
    """
    states = _as_states(data)
    if q is None:
        if not isinstance(data, Alignment):
            raise ValueError("`q` must be the number of letters where `data` is an array, got None.")
        q = len(data.alphabet)
    n_letters = as_count(q, "q", minimum=2, maximum=_MOST_LETTERS)
    if states.max() >= n_letters:
        raise ValueError(f"`q` must be above all states of `data`, got {n_letters}; found {states.max()}.")
    extra = as_real(pseudo_count, "pseudo_count")
    if extra < 0.0:
        raise ValueError(f"`pseudo_count` must be zero or positive, got {extra:g}.")
    if sample_weight is None:
        counts = data.counts if isinstance(data, Alignment) else None
        weights = np.ones(len(states)) if counts is None else counts
    else:
        weights = as_sample_weight(sample_weight, "sample_weight", len(states))
    unit = categorical(n_letters)
    totals = unit.total(states, weights).reshape(-1, n_letters) + extra / n_letters
    result: FloatArray = totals / (weights.sum() + extra)
    return result


def _as_states(data: Any) -> npt.NDArray[np.int64]:
    """States as integers, checked."""
    array = as_array(data.data if isinstance(data, Alignment) else data, "data")
    if array.ndim != 2 or not array.size:
        raise ValueError(
            "`data` must be an alignment or states of shape (n_sequences, n_sites) with at least one of "
            f"each, got shape {array.shape}."
        )
    with np.errstate(invalid="ignore"):
        states = array.astype(np.int64)
    wrong = (states != array) | (states < 0) | (states >= _MOST_LETTERS)
    if wrong.any():
        row, site = np.argwhere(wrong)[0]
        raise ValueError(
            f"`data` must hold states, integers from 0 to {_MOST_LETTERS - 1}, found "
            f"{array[row, site]:g} in row {row}, column {site}."
        )
    return states
