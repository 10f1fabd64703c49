"""The paper's check of mAIS: whether more samples and temperatures change the log-likelihood.

[Y25] section 4, footnote: with S = K = 10,000 in place of the settings of the tables the log-likelihood
changed by less than 0.1 % on average. A check trains a machine as its run does and measures it with several
settings.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet.learning.likelihood import mean_free_energy
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sweeps.execute import trained_machine
from paramagnet.sweeps.groups import Start
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.seeds import annealing_seed
from paramagnet.sweeps.sheet import Sheet, plain_sheet
from paramagnet.sweeps.spec import Run

FILE = "annealing_check.json"  # in the folder of the records
LARGE = (10_000, 10_000)  # S and K of the paper's check


@dataclass(frozen=True)
class AnnealingCheck:
    """One machine: its log-likelihood, with error, for each pair of S and K in ``efforts``."""

    dataset: str
    n_hidden: int
    hidden: str
    c: float
    scheme: str
    gain: float
    trial: int
    epoch: int
    efforts: tuple[tuple[int, int], ...]
    log_likelihood: tuple[float, ...]
    error: tuple[float, ...]

    @property
    def change(self) -> float:
        """The last minus the first, over the first."""
        return (self.log_likelihood[-1] - self.log_likelihood[0]) / abs(self.log_likelihood[0])

    @property
    def change_error(self) -> float:
        """The standard error of the change."""
        return float(np.hypot(self.error[0], self.error[-1]) / abs(self.log_likelihood[0]))


def check_annealing(
    run: Run, *, efforts: Sequence[tuple[int, int]] | None = None, n_threads: int | None = None
) -> AnnealingCheck:
    """Train the machine of a run and measure its training log-likelihood with each of ``efforts``.

    None takes the settings of the run at its last epoch, then `LARGE`.
    """
    epoch = max(run.measurement.epochs)
    chosen = tuple(efforts) if efforts is not None else (run.measurement.effort(epoch), LARGE)
    rbm = trained_machine(run)
    points, _ = load_points(run)
    energy = mean_free_energy(rbm, points)
    estimates = [
        estimate_log_partition(
            rbm,
            n_samples=n_samples,
            n_temperatures=n_temperatures,
            rng=np.random.default_rng([annealing_seed(run, epoch), number]),
            n_threads=n_threads,
        )
        for number, (n_samples, n_temperatures) in enumerate(chosen)
    ]
    return AnnealingCheck(
        Path(run.data.name).name,
        run.n_hidden,
        run.hidden,
        run.hidden_bias,
        run.scheme,
        run.gain,
        run.trial,
        epoch,
        chosen,
        tuple(-energy - estimate.value for estimate in estimates),
        tuple(estimate.error for estimate in estimates),
    )


def save_checks(checks: Sequence[AnnealingCheck], path: str | Path) -> None:
    """Write checks as JSON."""
    text = json.dumps([asdict(check) for check in checks], indent=1)
    Path(path).write_text(f"{text}\n", encoding="utf-8")


def load_checks(path: str | Path) -> list[AnnealingCheck]:
    """The checks in a file; none where there is no file."""
    source = Path(path)
    if not source.is_file():
        return []
    found = []
    for content in json.loads(source.read_text(encoding="utf-8")):
        values: dict[str, Any] = dict(content)
        for key in ("log_likelihood", "error"):
            values[key] = tuple(values[key])
        values["efforts"] = tuple((int(s), int(k)) for s, k in values["efforts"])
        found.append(AnnealingCheck(**values))
    return found


def check_sheet(checks: Sequence[AnnealingCheck]) -> Sheet:
    """A row per machine."""
    rows = [
        (
            f"{check.dataset}, {check.hidden}, c = {check.c:g}",
            Start(check.scheme, check.gain).label,
            f"{check.trial}",
            " / ".join(f"{s}, {k}" for s, k in check.efforts),
            " / ".join(f"{v:.3f} ± {e:.3f}" for v, e in zip(check.log_likelihood, check.error, strict=True)),
            f"{100 * check.change:+.3f} ± {100 * check.change_error:.3f}",
        )
        for check in checks
    ]
    mean = 100 * float(np.mean([abs(check.change) for check in checks]))
    note = f"The mean of the absolute change is {mean:.3f} %; the paper reports less than 0.1 %."
    heading = ("machine", "start", "trial", "S, K", "log-likelihood", "change (%)")
    title = "mAIS with the settings of the tables, and with more"
    return plain_sheet("annealing_check", title, heading, rows, (note,))
