"""What a diagnosis of a machine holds, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet.estimates import Estimate
from paramagnet.learning.autocorrelation import ChainMemory
from paramagnet.learning.nearness import Nearness
from paramagnet.learning.symptoms import (
    HiddenActivity,
    IndependentLevel,
    MomentComparison,
    Overlaps,
)
from paramagnet.learning.verdict import MOMENT_TOLERANCE, Finding
from paramagnet.units import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What `diagnose` found: ``print(diagnosis)`` shows it in words, ``findings`` are what is wrong.

    Attributes
    ----------
    findings : tuple of Finding
        What is wrong, each with a remedy; empty for a healthy machine.
    idle : ndarray
        A mask of the idle hidden units.
    activity : HiddenActivity
        How much every hidden unit varies over the data, and what its removal would cost.
    effective_hidden : float
        Effective number of hidden units: the participation ratio of the squared singular values of the
        weights.
    overlaps : Overlaps or None
        On which side of the data the chains are; None for units without a mirror image and data whose means
        vanish exactly.
    memory : ChainMemory
        The integrated autocorrelation time of the chains.
    means, correlations : MomentComparison
        Means and pairwise covariances of samples beside those of the data.
    nearness : Nearness or None
        Distances of samples to the nearest training point; None with a single point and no held-out ones.
    log_likelihood, validation_log_likelihood : Estimate or None
        Nats per point of the data and of the held-out points; None if not asked for.
    independent, validation_independent : IndependentLevel or None
        The same of independent units fitted to the data.
    samples : ndarray
        The last states of the chains.
    """

    findings: tuple[Finding, ...]
    idle: npt.NDArray[np.bool_]
    activity: HiddenActivity
    effective_hidden: float
    overlaps: Overlaps | None
    memory: ChainMemory
    means: MomentComparison
    correlations: MomentComparison
    nearness: Nearness | None
    log_likelihood: Estimate | None
    validation_log_likelihood: Estimate | None
    independent: IndependentLevel | None
    validation_independent: IndependentLevel | None
    samples: FloatArray

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        found = ", ".join(finding.name for finding in self.findings) or "healthy"
        return f"Diagnosis({found})"

    def __str__(self) -> str:
        lines = [f"{name}: {text}" for name, text in self.lines()]
        if self.healthy:
            return "\n".join([*lines, "Nothing is wrong."])
        return "\n".join([*lines, *(f"- {finding}." for finding in self.findings)])

    def lines(self) -> list[tuple[str, str]]:
        """What was measured, as names and texts."""
        rows = []
        for of, found, level in (
            ("data", self.log_likelihood, self.independent),
            ("held out", self.validation_log_likelihood, self.validation_independent),
        ):
            if found is not None:
                rows.append((f"log-likelihood, {of}", f"{found}"))
                if level is not None:
                    rows.append((f"independent units, {of}", f"{level.value:.4f}"))
        n_hidden = self.idle.size
        rows.append(("idle hidden units", f"{int(self.idle.sum())} of {n_hidden}"))
        rows.append(("effective hidden units", f"{self.effective_hidden:.1f} of {n_hidden}"))
        if self.overlaps is not None:
            share, error = 100.0 * self.overlaps.share, 100.0 * self.overlaps.error
            rows.append(("mirrored chains", f"{max(share, 0.0):.1f} % +- {error:.1f} %"))
        time = self.memory.time
        rows.append(
            (
                "sweeps per independent state",
                f"{time.value:.3g} +- {time.error:.2g}, {self.memory.observable}",
            )
        )
        for name, moments in (("means", self.means), ("covariances", self.correlations)):
            count = moments.count(MOMENT_TOLERANCE)
            rows.append((f"{name} off the data", f"{count} of {moments.data.size}"))
        if self.nearness is not None:
            near = self.nearness
            others = "held-out points" if near.held_out else "other points"
            medians = f"samples {np.median(near.samples):.3g}, {others} {np.median(near.reference):.3g}"
            rows.append(("nearest training point", f"median distance of {medians}"))
        return rows

    def to_record(self) -> dict[str, Any]:
        """Numbers and findings in a form for JSON; without arrays."""
        return {
            "healthy": self.healthy,
            "findings": [{"name": f.name, "message": f.message, "remedy": f.remedy} for f in self.findings],
            "idle_hidden": np.flatnonzero(self.idle).tolist(),
            "n_hidden": self.idle.size,
            "effective_hidden": self.effective_hidden,
            "mirrored": None if self.overlaps is None else _number(self.overlaps.share, self.overlaps.error),
            "autocorrelation_time": {
                **_number(self.memory.time.value, self.memory.time.error),
                "observable": self.memory.observable,
                "recorded_sweeps": self.memory.n_sweeps,
            },
            "wrong_means": self.means.count(MOMENT_TOLERANCE),
            "wrong_covariances": self.correlations.count(MOMENT_TOLERANCE),
            "memorized": None if self.nearness is None else _number(self.nearness.share, self.nearness.error),
            "log_likelihood": _of_estimate(self.log_likelihood),
            "independent": None if self.independent is None else self.independent.value,
            "validation_log_likelihood": _of_estimate(self.validation_log_likelihood),
            "validation_independent": (
                None if self.validation_independent is None else self.validation_independent.value
            ),
            "n_samples": len(self.samples),
        }

    def arrays(self) -> dict[str, Any]:
        """The arguments of `paramagnet.diagnosis_plot.plot_diagnosis`."""
        none = np.zeros(0)
        near, sides = self.nearness, self.overlaps
        return {
            "variation": self.activity.variation,
            "idle": self.idle,
            "overlaps": (none, none) if sides is None else (sides.data, sides.chains),
            "autocorrelation": (self.memory.lags, self.memory.autocorrelation),
            "time": (self.memory.time.value, self.memory.time.error),
            "means": (self.means.data, self.means.samples),
            "covariances": (self.correlations.data, self.correlations.samples),
            "distances": (none, none) if near is None else (near.reference, near.samples),
            "held_out": near is not None and near.held_out,
        }


def _number(value: float, error: float) -> dict[str, Any]:
    return {"value": value, "error": error if np.isfinite(error) else None}


def _of_estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {**_number(estimate.value, estimate.error), "trusted": estimate.trusted}
