"""How long Gibbs chains remember: the integrated autocorrelation time, with its error.

Of an observable ``x`` with the autocorrelation ``rho(t)`` at a distance of ``t`` sweeps the time is

    tau = 1 + 2 sum_{t >= 1} rho(t)

so that ``T`` sweeps of one chain are worth ``T/tau`` independent draws. Deviations are taken from the mean
over all chains, not from that of each chain: a chain that never leaves its mode then has a large ``tau``,
where its own mean would hide it. The sum is cut at the smallest window of at least ``5 tau`` sweeps (Sokal's
rule), or at half of the recorded sweeps. The error is the jackknife's over groups of chains, which are
independent of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paramagnet.estimates import Estimate
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.layer import layers_of
from paramagnet.units import FloatArray

N_DIRECTIONS = 4  # leading singular vectors of the weights that are observables
WINDOW = 5.0  # smallest window of the sum, in autocorrelation times
MOST_RECORDS = 1000  # of a chain; in longer runs some sweeps are left out
_GROUPS = 20  # of the jackknife, at most
_ROUNDS = 30  # of subspace iteration
_FLAT = 1e-12  # variance of an observable, over its largest square, below which it does not vary


@dataclass(frozen=True, eq=False)
class ChainMemory:
    """How long chains remember.

    Attributes
    ----------
    time : Estimate
        The integrated autocorrelation time of the slowest observable in sweeps, with its error; a lower bound
        where it is beyond a tenth of the recorded sweeps.
    observable : str
        Its name.
    lags : ndarray
        Distances in sweeps.
    autocorrelation : ndarray
        The autocorrelation of that observable at these distances.
    n_sweeps : int
        The number of sweeps that were recorded.
    """

    time: Estimate
    observable: str
    lags: FloatArray
    autocorrelation: FloatArray
    n_sweeps: int

    @property
    def slow(self) -> bool:
        """Whether the recorded sweeps of a chain are worth less than ten independent draws, by more than two
        standard errors.
        """
        return self.time.value - 2.0 * self.time.error > 0.1 * self.n_sweeps


def leading_directions(weights: FloatArray, n_directions: int = N_DIRECTIONS) -> FloatArray:
    """The leading left singular vectors of ``weights``, as columns, by subspace iteration.

    These are the directions in which the visible layer orders first.
    """
    count = min(n_directions, *weights.shape)
    basis = np.random.default_rng(0).normal(size=(weights.shape[0], count))
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(weights @ (weights.T @ basis))
    left, _, _ = np.linalg.svd(basis.T @ weights, full_matrices=False)
    result: FloatArray = basis @ left
    return result


def record_chains(
    rbm: RBM, chains: Chains, n_sweeps: int, n_threads: int | None
) -> tuple[Chains, dict[str, FloatArray], int]:
    """The chains after ``n_sweeps`` sweeps, the observables ``(n_records, n_chains)`` by name on the way, and
    the number of sweeps between two records.

    The observables are the free energy and the projections on the leading singular vectors of the weights.
    """
    stride = -(-n_sweeps // MOST_RECORDS)
    layers, directions = layers_of(rbm), leading_directions(rbm.weights)
    visible, hidden = rbm.units
    n_records = n_sweeps // stride
    free = np.empty((n_records, len(chains.visible)))
    projected = np.empty((n_records, len(chains.visible), directions.shape[1]))
    for record in range(n_records):
        chains = run_sweeps(layers, chains, stride, n_threads=n_threads)
        assert chains.fields is not None
        states = chains.visible.astype(np.float64)
        traces = hidden.sum_log_trace(chains.fields.astype(np.float64) + rbm.hidden_bias)
        free[record] = -visible.multiply(states, rbm.visible_bias) - traces - visible.log_base(states)
        projected[record] = visible.multiply(states, directions)
    series = {"free energy": free}
    for k in range(directions.shape[1]):
        series[f"projection on singular vector {k + 1}"] = projected[:, :, k]
    return chains, series, stride


def measure_memory(series: dict[str, FloatArray], stride: int = 1) -> ChainMemory:
    """The memory of the slowest of the observables ``(n_records, n_chains)``."""
    found: ChainMemory | None = None
    for name, values in series.items():
        memory = _memory_of(name, values, stride)
        if found is None or memory.time.value > found.time.value:
            found = memory
    assert found is not None
    return found


def _memory_of(name: str, values: FloatArray, stride: int) -> ChainMemory:
    n_records, n_chains = values.shape
    lags = stride * np.arange(n_records // 2 + 1, dtype=np.float64)
    deviations = values - values.mean()
    products = _autocovariances(deviations)[: lags.size]  # (n_lags, n_chains)
    total = products.mean(axis=1)
    if total[0] <= _FLAT * max(float(np.max(values**2)), 1e-300):  # the observable never changes
        steady = np.zeros_like(lags)
        steady[0] = 1.0
        return ChainMemory(Estimate(float(stride)), name, lags, steady, n_records * stride)
    rho = total / total[0]
    time, window = _integrate(rho)
    n_groups = min(_GROUPS, n_chains)
    groups = [np.arange(group, n_chains, n_groups) for group in range(n_groups)]
    left_out = []
    for group in groups:
        kept = (total * n_chains - products[:, group].sum(axis=1)) / (n_chains - len(group))
        left_out.append(1.0 + 2.0 * float(np.sum(kept[1 : window + 1])) / max(float(kept[0]), 1e-300))
    error = float(np.sqrt((n_groups - 1) * np.var(left_out))) if n_groups > 1 else np.inf
    tau = max(stride * time, float(stride))  # anticorrelated draws are not counted as more than independent
    effective = n_records * stride * n_chains / tau
    estimate = Estimate(tau, stride * error, effective)
    return ChainMemory(estimate, name, lags, rho, n_records * stride)


def _autocovariances(deviations: FloatArray) -> FloatArray:
    """``mean_s x_s x_{s+t}`` of every column, for all ``t``."""
    n_records = len(deviations)
    padded = 1 << (2 * n_records - 1).bit_length()
    spectrum = np.fft.rfft(deviations, n=padded, axis=0)
    sums = np.fft.irfft(np.abs(spectrum) ** 2, n=padded, axis=0)[:n_records]
    result: FloatArray = sums / np.arange(n_records, 0, -1)[:, None]
    return result


def _integrate(rho: FloatArray) -> tuple[float, int]:
    """``1 + 2 sum rho``, and the last lag of the sum."""
    times = 1.0 + 2.0 * np.cumsum(rho[1:])
    enough = np.flatnonzero(np.arange(1, rho.size) >= WINDOW * times)
    last = int(enough[0]) if enough.size else rho.size - 2
    return float(times[last]), last + 1
