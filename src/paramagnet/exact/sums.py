"""Exact averages of a machine, by a sum over all states of its smaller layer (of its binary layer, if the
other is Gaussian: ``gaussian_integrated.py``). `exact_sum` chooses the method by the unit types.

The cost doubles with every unit of that layer. It is estimated beforehand, and a sum that would take more
than ten minutes is refused unless ``force`` is true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paramagnet._arrays import require_memory
from paramagnet._checks import as_callable, as_count, as_flag, as_generator, as_threads
from paramagnet._progress import Progress
from paramagnet.exact.cost import check_cost, sizes_of
from paramagnet.exact.registered_sums import AnySum, exact_sum, register_sum
from paramagnet.kernels.precision import InexactSumError
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.units import FloatArray

__all__ = [
    "LARGEST_TERM",
    "Moments",
    "exact_moments",
    "exact_sum",
    "log_partition",
    "refuse_large",
    "register_sum",
    "sample_exact",
]

LARGEST_TERM = 1e12  # largest parameter; for larger ones powers of two could leave the range of integers


@dataclass(frozen=True, eq=False)
class Moments:
    """Exact averages under ``p(v, h)``; the arrays are read-only.

    ``log_partition`` is ``ln Z``, ``visible`` is ``E[v]``, ``hidden`` is ``E[h]`` and ``products`` is
    ``E[v h^T]``, of shape ``(n_visible, n_hidden)``. For categorical units ``E[v]`` are the probabilities of
    all states, and ``E[v h^T]`` has the shape of the weights.
    """

    log_partition: float
    visible: FloatArray
    hidden: FloatArray
    products: FloatArray


def log_partition(
    rbm: RBM, *, n_threads: int = 1, force: bool = False, progress: Progress | None = None
) -> float:
    """``ln Z = ln sum_{v, h} exp(-E(v, h))``, exactly: the error is below 1e-9 of its value, or of 1 if that
    is larger, and much smaller for parameters of ordinary size. Machines whose parameters are too large for
    this are refused.

    Parameters
    ----------
    rbm : RBM
        The machine.
    n_threads : int, default 1
        Threads that share the work; the result is the same for any number, bit for bit.
    force : bool, default False
        Whether to go ahead if more than ten minutes are to be expected.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    float
        ``ln Z``.
    """
    rbm, n_threads = _checked(rbm, n_threads, force, progress)
    check_cost(*sizes_of(rbm), n_threads=n_threads, gradient=False, force=force)
    return _sum_of(rbm).log_partition(n_threads, progress)


def exact_moments(
    rbm: RBM, *, n_threads: int = 1, force: bool = False, progress: Progress | None = None
) -> Moments:
    """``ln Z``, ``E[v]``, ``E[h]`` and ``E[v h^T]``, exactly: averages of units of two values have errors
    below 1e-9, or the machine is refused. The options are those of `log_partition`.

    Parameters
    ----------
    rbm : RBM
        The machine.
    n_threads : int, default 1
        Threads that share the work; the result is the same for any number, bit for bit.
    force : bool, default False
        Whether to go ahead if more than ten minutes are to be expected.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    Moments
        ``ln Z`` and the averages.
    """
    rbm, n_threads = _checked(rbm, n_threads, force, progress)
    check_cost(*sizes_of(rbm), n_threads=n_threads, gradient=True, force=force)
    value, *arrays, _ = _sum_of(rbm).moments(n_threads, progress)
    for array in arrays:
        array.setflags(write=False)
    return Moments(value, *arrays)


def sample_exact(
    rbm: RBM,
    n_samples: int,
    *,
    rng: Rng = None,
    n_threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> FloatArray:
    """Independent visible states ``(n_samples, n_visible)`` drawn exactly from ``p(v)``, without a Markov
    chain and without burn-in.

    Draw hidden states for them by ``rbm.sample_h_given_v``. The other options are those of `log_partition`.

    Parameters
    ----------
    rbm : RBM
        The machine.
    n_samples : int
        Number of samples.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the random numbers; None takes a new seed from the operating system.
    n_threads : int, default 1
        Threads that share the work; the result is the same for any number, bit for bit.
    force : bool, default False
        Whether to go ahead if more than ten minutes are to be expected.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    ndarray
        Visible states, ``(n_samples, n_visible)``.
    """
    rbm, n_threads = _checked(rbm, n_threads, force, progress)
    n_samples, generator = as_count(n_samples, "n_samples"), as_generator(rng)
    require_memory(16 * n_samples * sum(rbm.weights.shape), "n_samples", n_samples)
    check_cost(*sizes_of(rbm), n_threads=n_threads, gradient=False, force=force)
    return _sum_of(rbm).draw(n_samples, generator, n_threads, progress)


def _checked(rbm: RBM, n_threads: int, force: bool, progress: Progress | None) -> tuple[RBM, int]:
    """Check the arguments that all exact sums share."""
    as_flag(force, "force")
    as_callable(progress, "progress", "the fraction that is done")
    return as_rbm(rbm, "rbm"), as_threads(n_threads)


def _sum_of(rbm: RBM) -> AnySum:
    refuse_large(rbm)
    return exact_sum(rbm.weights, rbm.visible_bias, rbm.hidden_bias, *rbm.units)


def refuse_large(rbm: RBM) -> None:
    """Raise an error if the parameters are too large for accurate exact sums."""
    further = (*rbm.visible_parameters.values(), *rbm.hidden_parameters.values())
    arrays = rbm.weights, rbm.visible_bias, rbm.hidden_bias, *further
    largest = max(float(np.abs(a).max()) for a in arrays)
    if largest > LARGEST_TERM:
        raise InexactSumError(
            f"`rbm` must have parameters of at most {LARGEST_TERM:g} for exact sums, got {largest:g}. Was it "
            "trained with too large a learning rate?"
        )
