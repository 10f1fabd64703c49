"""How ``ln Z`` is found for a log-likelihood: exactly where that is cheap, else by an estimate.

This is the one place that makes the choice, for `train`, `log_likelihood_trajectory`, sweeps, comparisons,
the scikit-learn estimator and ``paramagnet evaluate``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from paramagnet._arrays import shown
from paramagnet._checks import MOST_CHAINS, as_choice, as_count, as_generator, as_positive, as_real
from paramagnet._progress import Progress
from paramagnet.estimates import Estimate
from paramagnet.exact.cost import SECONDS_ALLOWED, count_summed, estimate_seconds, show_duration, sizes_of
from paramagnet.exact.sums import log_partition
from paramagnet.rbm import RBM, Rng, as_rbm
from paramagnet.sampling.annealing import METHODS, estimate_log_partition
from paramagnet.units import BIT, SPIN, FloatArray, Unit


class Choice(NamedTuple):
    """A method for ``ln Z``, why it was chosen, and how many seconds an exact sum would take."""

    method: str
    why: str
    seconds: float


@dataclass(frozen=True)
class LogZ:
    """How to find ``ln Z``.

    >>> pm.train(rbm, data, epochs=100, log_z=pm.LogZ(n_temperatures=10_000))        # doctest: +SKIP
    >>> pm.LogZ(seconds=60.0)(rbm, rng=0)                                            # doctest: +SKIP

    Parameters
    ----------
    method : str, default "auto"
        "exact", "mais", "ais", "reverse-ais" (see `estimate_log_partition`); or "auto", which is "exact"
        where the sum takes no more than ``seconds`` on one thread, else "mais".
    seconds : float, default 1.0
        The longest exact sum that "auto" chooses; "exact" is refused above ten minutes, or above this number
        if it is larger.
    n_samples : int, default 1000
        Number of chains of an estimate.
    n_temperatures : int, default 1000
        Number of temperatures of an estimate.
    marginalize : str, default "auto"
        Layer that an estimate sums out, see `estimate_log_partition`.
    start : str, default "uniform"
        Where an estimate starts: "uniform"; "data" for independent units with the means of the data; or
        "both": half of the chains from either, and the larger of the two estimates counts. Estimates tend to
        be too low, from the data where the machine prefers states far from them (a likelihood that is too
        good), from uniform states where it is well trained.
    """

    method: str = "auto"
    seconds: float = 1.0
    n_samples: int = 1000
    n_temperatures: int = 1000
    marginalize: str = "auto"
    start: str = "uniform"

    def __post_init__(self) -> None:
        as_choice(self.method, "method", ("auto", "exact", *METHODS))
        as_choice(self.marginalize, "marginalize", ("auto", "hidden", "visible"))
        as_choice(self.start, "start", ("uniform", "data", "both"))
        as_positive(as_real(self.seconds, "seconds"), "seconds", zero=True)
        as_count(self.n_samples, "n_samples", maximum=MOST_CHAINS)
        as_count(self.n_temperatures, "n_temperatures", maximum=MOST_CHAINS)

    def choose(self, rbm: RBM, n_threads: int = 1) -> Choice:
        """The method for ``rbm`` if ``n_threads`` share an exact sum; raises where it is not possible."""
        return self.choose_for(*sizes_of(as_rbm(rbm, "rbm")), n_threads=n_threads)

    def choose_for(
        self, n_visible: int, n_hidden: int, visible: Unit = SPIN, hidden: Unit = BIT, *, n_threads: int = 1
    ) -> Choice:
        """The same for a machine of these sizes and units."""
        sizes = (n_visible, n_hidden, visible, hidden)
        seconds = estimate_seconds(*sizes, n_threads=n_threads, gradient=False)
        try:
            states = f"2**{count_summed(*sizes)} states"
        except ValueError:  # there is no exact sum
            if self.method in ("exact", "reverse-ais"):
                raise
            why = "because neither layer can be summed exactly" if self.method == "auto" else "as asked for"
            return Choice("mais" if self.method == "auto" else self.method, why, seconds)
        if self.method == "auto":
            about = show_duration(seconds)
            if seconds <= self.seconds:
                why = f"because the sum over {states} is affordable (about {about})"
                return Choice("exact", why, seconds)
            return Choice("mais", f"because the exact sum over {states} would take about {about}", seconds)
        if seconds > max(SECONDS_ALLOWED, self.seconds):
            if self.method == "exact":
                raise ValueError(
                    f"`method` = 'exact' must take at most ten minutes, got about {show_duration(seconds)} "
                    f"for {states}. Try 'mais'."
                )
            if self.method == "reverse-ais":
                raise ValueError(
                    "`method` = 'reverse-ais' must have exact samples to start from, which "
                    f"{states} are too many for. Try 'mais'; "
                    '`estimate_log_partition(rbm, method="reverse-ais", samples=...)` takes samples of yours.'
                )
        return Choice(self.method, "as asked for", seconds)

    def __call__(
        self,
        rbm: RBM,
        rng: Rng = None,
        *,
        means: FloatArray | None = None,
        n_threads: int | None = None,
        device: str = "cpu",
        progress: Progress | None = None,
    ) -> Estimate:
        """``ln Z`` of ``rbm``, with its standard error (0 where it is exact).

        ``rng`` and ``device`` are those of an estimate, ``means`` are those of the data where it starts from
        them. ``n_threads`` None takes all cores for an estimate, and one for an exact sum; the choice between
        the two, and the result, do not depend on it.
        """
        method = self.choose(rbm).method if self.method == "auto" else self.method
        if method == "exact":
            threads = n_threads or 1
            seconds = estimate_seconds(*sizes_of(as_rbm(rbm, "rbm")), n_threads=threads, gradient=False)
            force = seconds <= self.seconds  # more than ten minutes only where they were asked for
            return Estimate(log_partition(rbm, n_threads=threads, force=force, progress=progress))
        starts: list[str | FloatArray] = [] if self.start == "data" else ["uniform"]
        if self.start != "uniform":
            if means is None:
                raise ValueError(
                    f"`start` = {self.start!r} must be used where there are data: pass their means as "
                    "`means`, or leave `start` out."
                )
            starts.append(means)
        generator = rng if len(starts) == 1 else as_generator(rng)
        estimates = [
            estimate_log_partition(
                rbm,
                method=method,
                n_samples=-(-self.n_samples // len(starts)),
                n_temperatures=self.n_temperatures,
                marginalize=self.marginalize,
                start=start,
                device=device,
                rng=generator,
                n_threads=n_threads,
                progress=progress,
            )
            for start in starts
        ]
        return max(estimates, key=lambda estimate: estimate.value)


LogZOfEpoch = Callable[[RBM, int], Estimate]  # of a machine and the epoch it is of


def as_log_z(value: Any) -> LogZ:
    """``value`` as a policy."""
    if not isinstance(value, LogZ):
        raise ValueError(f"`log_z` must be a `LogZ`, for instance `LogZ(method='mais')`, got {shown(value)}.")
    return value


def as_estimate(value: Any) -> Estimate:
    """What a function given as ``log_z`` returned."""
    if not isinstance(value, Estimate):
        raise ValueError(f"`log_z` must return an `Estimate`, got {shown(value)}.")
    return value
