"""What is wrong with a machine, in words: the limits of `diagnose`, and the remedies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from paramagnet.estimates import Estimate
from paramagnet.learning.autocorrelation import ChainMemory
from paramagnet.learning.nearness import Nearness
from paramagnet.learning.symptoms import (
    LEVEL,
    HiddenActivity,
    IndependentLevel,
    MomentComparison,
    Overlaps,
)

IDLE_VARIATION = 0.05  # of the conditional mean of a hidden unit, in units of that without field
IDLE_LOSS = 0.01  # nats per point that the removal of an idle unit costs at most
IDLE_SHARE = 0.1  # of hidden units, from which idle ones are a finding
MIRRORED_SHARE = 0.02  # of chains, from which mirrored ones are a finding
MOMENT_TOLERANCE = 0.1  # differences of means and covariances that are no finding, spreads of a unit
MEMORIZED_SHARE = 0.1  # of samples that are too near to training points, from which this is a finding
LIKELIHOOD_ERRORS = 3.0  # errors by which a log-likelihood must fall short


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a machine.

    Attributes
    ----------
    name : str
        "below-independent", "mirrored", "slow", "means", "correlations", "memorized" or "idle".
    message : str
        What is wrong, with numbers.
    remedy : str
        What to do about it.
    """

    name: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


def leave_out_done(finding: Finding, *, centred: bool, from_means: bool) -> Finding:
    """The finding without the remedies that a run took already: centred learning, and visible biases from the
    data at its start.
    """
    remedy = finding.remedy
    if finding.name == "idle" and centred:
        remedy = remedy.replace("with centred=True, ", "")
    elif finding.name == "means" and from_means:
        remedy = remedy.replace(" start from visible_bias='data',", "")
    elif finding.name == "mirrored" and (centred or from_means):
        left = [] if centred else ["train with centred=True"]
        left += [] if from_means else ["start from `initialize(visible_bias='data', data=...)`"]
        remedy = ", or ".join(left or ["give the chains of training more sweeps per update"])
    return replace(finding, remedy=remedy)


def idle_units(activity: HiddenActivity) -> npt.NDArray[np.bool_]:
    """A mask of the idle hidden units: those that hardly vary, and that biases could replace."""
    return (activity.variation < IDLE_VARIATION) & (activity.loss < IDLE_LOSS)


def judge_idle(idle: npt.NDArray[np.bool_]) -> list[Finding]:
    """A finding if a tenth of the hidden units or more are idle."""
    count, total = int(idle.sum()), idle.size
    if count < IDLE_SHARE * total:
        return []
    verb = "is" if count == 1 else "are"
    return [
        Finding(
            "idle",
            f"{count} of {total} hidden units {verb} idle (nearly constant on the data, and biases could "
            "replace them)",
            "train with centred=True, for longer or at a higher rate, or take fewer hidden units",
        )
    ]


def judge_overlaps(overlaps: Overlaps | None) -> list[Finding]:
    """A finding if chains are on the negative side of the data more often than the data themselves."""
    if overlaps is None or overlaps.share < MIRRORED_SHARE or overlaps.p_value > LEVEL:
        return []
    return [
        Finding(
            "mirrored",
            f"{_percent(overlaps.share)} of the chains are mirrored (+- {_percent(overlaps.error)}; they "
            "live in the negative of the data)",
            "train with centred=True, or start from `initialize(visible_bias='data', data=...)`",
        )
    ]


def judge_memory(memory: ChainMemory) -> list[Finding]:
    """A finding if the recorded sweeps are worth less than ten independent draws."""
    if not memory.slow:
        return []
    time, resolved = memory.time, memory.time.value <= 0.2 * memory.n_sweeps
    about = f"about {time.value:.3g} +- {time.error:.2g}" if resolved else f"more than {time.value:.3g}"
    return [
        Finding(
            "slow",
            f"The chains are slow: {about} sweeps per independent state ({memory.observable}; "
            f"{memory.n_sweeps} sweeps were recorded)",
            "sample with `sample(method='tempering')` or more sweeps, train with `Tempering` or more sweeps "
            "per update; averages of these chains may be off",
        )
    ]


def judge_means(means: MomentComparison, *, of: str = "samples", width: int = 1) -> list[Finding]:
    """A finding if means of ``of`` differ from those of the data; labels have ``width`` means each."""
    count = means.count(MOMENT_TOLERANCE)
    if count == 0:
        return []
    worst = int(np.argmax(means.beyond))
    what, place = "visible units", f"unit {worst}"
    if width > 1:
        what, place = "states of visible units", f"unit {worst // width}, state {worst % width}"
    return [
        Finding(
            "means",
            f"The means of {count} of {means.data.size} {what} differ between data and {of} (most in "
            f"{place}: {means.data[worst]:.3f} in the data, {means.samples[worst]:.3f} in the {of})",
            "train longer, start from visible_bias='data', or give the chains of training more sweeps per "
            "update",
        )
    ]


def judge_correlations(pairs: MomentComparison, n_visible: int, labels: bool = False) -> list[Finding]:
    """A finding if covariances of samples differ from those of the data; of ``labels``, of their states."""
    count = pairs.count(MOMENT_TOLERANCE)
    if count == 0:
        return []
    worst = int(np.argmax(pairs.beyond))
    found = f"{pairs.data[worst]:.3f} in the data, {pairs.samples[worst]:.3f} in the samples"
    if labels:
        most = f"most: {found}"
    else:
        i, j = (int(indices[worst]) for indices in np.triu_indices(n_visible, k=1))
        most = f"most for units {i} and {j}: {found}"
    what = "states of visible units" if labels else "visible units"
    share = count / pairs.data.size
    return [
        Finding(
            "correlations",
            f"The covariances of {count} of {pairs.data.size} pairs of {what} ({_percent(share)}) differ "
            f"between data and samples ({most})",
            "train longer or with more hidden units, and give the chains of training more sweeps per update",
        )
    ]


def judge_nearness(nearness: Nearness | None) -> list[Finding]:
    """A finding if samples are nearer to training points than other points are."""
    if nearness is None or nearness.share < MEMORIZED_SHARE or nearness.p_value > LEVEL:
        return []
    others = "held-out points" if nearness.held_out else "other training points"
    return [
        Finding(
            "memorized",
            f"Training points are memorized: {_percent(nearness.share)} (+- {_percent(nearness.error)}) more "
            f"of the samples than of {others} are within a distance of {nearness.limit:.3g} of a training "
            f"point (medians {np.median(nearness.samples):.3g} and {np.median(nearness.reference):.3g})",
            "stop earlier, on the likelihood of held-out points, or use fewer hidden units, smaller weights "
            "or more data",
        )
    ]


def judge_likelihood(found: Estimate | None, level: IndependentLevel | None, of: str) -> list[Finding]:
    """A finding if the log-likelihood is below that of independent units, by more than three errors.

    An estimate of ``ln Z`` that is not to be trusted is mostly too low, and the log-likelihood then too high:
    what is found to be worse is worse, but a failure can stay hidden.
    """
    if found is None or level is None or not np.isfinite(found.error):
        return []
    error = float(np.hypot(found.error, level.error))
    if found.value + LIKELIHOOD_ERRORS * error >= level.value - level.optimism:
        return []
    return [
        Finding(
            "below-independent",
            f"The log-likelihood of the {of}, {found.value:.4g} nats per point, is below that of independent "
            f"units, {level.value:.4g}",
            "lower the learning rate or let it fall, and give the chains more sweeps per update; on held-out "
            "points only: stop earlier",
        )
    ]


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share >= 0.0995 or share == 0.0 else f"{100.0 * share:.1f} %"
