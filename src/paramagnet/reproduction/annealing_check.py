"""The paper's check of mAIS: whether more samples and temperatures change the log-likelihood.

[Y25] section 4, footnote: with S = K = 10,000 in place of the settings of the tables the log-likelihood
changed by less than 0.1 % on average. A check trains a machine as its run does and measures it with several
settings. S = K = 10,000 on 784 x 500 units takes about ten minutes of processor time, so an estimate can be
made of several groups of chains, each kept in a file as soon as it is there (`Pieces`).

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet._checks import as_count
from paramagnet._files import write_atomically
from paramagnet.estimates import Estimate, effective_number
from paramagnet.learning.likelihood import mean_free_energy
from paramagnet.rbm import RBM
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sweeps.execute import NEVER, Stop, Stopped, trained_machine
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


def combine_estimates(parts: Sequence[Estimate], sizes: Sequence[int]) -> Estimate:
    """The estimate that all chains together give, from those of groups of them.

    Parameters
    ----------
    parts : sequence of Estimate
        ``ln Z`` by independent groups of chains, as `estimate_log_partition` returns it.
    sizes : sequence of int
        The number of chains of each group.

    Returns
    -------
    Estimate
        The logarithm of the mean weight and its standard error. Mean and sum of squares of the weights of a
        group follow from its estimate, so nothing is lost.
    """
    if not parts or len(parts) != len(sizes):
        raise ValueError(
            f"`sizes` must hold one number for each of `parts`, at least one, got {len(sizes)} numbers for "
            f"{len(parts)} parts."
        )
    if len(parts) == 1:
        return parts[0]
    top = max(part.value for part in parts)
    counts = np.array(sizes, dtype=np.float64)
    means = np.exp([part.value - top for part in parts])
    variances = (np.array([part.error for part in parts]) * means) ** 2 * counts
    total = float(counts.sum())
    mean = float(counts @ means) / total
    squares = float((counts - 1.0) @ variances + counts @ (means - mean) ** 2)
    error = math.sqrt(squares / (total - 1.0) / total) / mean
    return Estimate(top + math.log(mean), error, effective_number(error, int(total)))


@dataclass(frozen=True)
class Pieces:
    """How a long check is cut into pieces that survive an interruption.

    Parameters
    ----------
    folder : str
        Where the state of the training and the finished groups of chains are kept; empty for nowhere.
    n_chains : int, optional
        The most chains of a group; None takes all chains at once.
    stop : Stop
        When to end with `Stopped`: looked at during training and between groups.
    """

    folder: str = ""
    n_chains: int | None = None
    stop: Stop = NEVER

    def sizes(self, n_samples: int) -> list[int]:
        """The numbers of chains of the groups."""
        most = n_samples if self.n_chains is None else min(self.n_chains, n_samples)
        whole, rest = divmod(n_samples, most)
        return [most] * whole + [rest] * (rest > 0)

    def load(self, name: str) -> list[Estimate]:
        """The groups that are finished."""
        path = Path(self.folder) / f"{name}.json"
        if not self.folder or not path.is_file():
            return []
        return [Estimate(*numbers) for numbers in json.loads(path.read_text(encoding="utf-8"))]

    def save(self, name: str, parts: Sequence[Estimate]) -> None:
        """Keep the groups that are finished."""
        if self.folder:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            numbers = [(part.value, part.error, part.n_effective) for part in parts]
            write_atomically(Path(self.folder) / f"{name}.json", json.dumps(numbers).encode())


WHOLE = Pieces()


def check_annealing(
    run: Run,
    *,
    epoch: int | None = None,
    efforts: Sequence[tuple[int, int]] | None = None,
    n_threads: int | None = None,
    pieces: Pieces = WHOLE,
) -> AnnealingCheck:
    """Train the machine of a run and measure its training log-likelihood with each of ``efforts``.

    Parameters
    ----------
    run : Run
        The run; its own measurements are left out.
    epoch : int, optional
        Measured after this epoch; None takes the last one of the run.
    efforts : sequence of (int, int), optional
        Pairs of S and K. None takes those of the run's tables, then `LARGE`.
    n_threads : int, optional
        Threads of an estimate; None takes all cores.
    pieces : Pieces
        Where unfinished work is kept, and how it is cut.
    """
    last = max(run.measurement.epochs)
    epoch = last if epoch is None else as_count(epoch, "epoch")
    if epoch > last:
        raise ValueError(f"`epoch` must be at most {last}, where the run ends, got {epoch}.")
    if epoch < last:  # nothing random depends on the length of a run
        run = replace(run, measurement=replace(run.measurement, epochs=(epoch,)))
    chosen = tuple(efforts) if efforts is not None else (run.measurement.effort(epoch), LARGE)
    rbm = trained_machine(run, states=pieces.folder, stop=pieces.stop)
    points, _ = load_points(run)
    energy = mean_free_energy(rbm, points)
    estimates = [
        _estimate(rbm, run, number, effort, n_threads, pieces) for number, effort in enumerate(chosen)
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


def _estimate(
    rbm: RBM, run: Run, number: int, effort: tuple[int, int], n_threads: int | None, pieces: Pieces
) -> Estimate:
    """``ln Z`` with one pair of S and K, group by group."""
    n_samples, n_temperatures = effort
    sizes = pieces.sizes(n_samples)
    seed = [annealing_seed(run, max(run.measurement.epochs)), number]
    name = f"{run.digest}-{n_samples}-{n_temperatures}-{len(sizes)}"
    parts = pieces.load(name)[: len(sizes)]
    for piece in range(len(parts), len(sizes)):
        if pieces.stop.due():
            raise Stopped
        parts.append(
            estimate_log_partition(
                rbm,
                n_samples=sizes[piece],
                n_temperatures=n_temperatures,
                rng=np.random.default_rng([*seed, piece] if len(sizes) > 1 else seed),
                n_threads=n_threads,
            )
        )
        pieces.save(name, parts)
    return combine_estimates(parts, sizes)


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
            f"{check.epoch}",
            f"{check.trial}",
            " / ".join(f"{s}, {k}" for s, k in check.efforts),
            " / ".join(f"{v:.3f} ± {e:.3f}" for v, e in zip(check.log_likelihood, check.error, strict=True)),
            f"{100 * check.change:+.3f} ± {100 * check.change_error:.3f}",
        )
        for check in checks
    ]
    mean = 100 * float(np.mean([abs(check.change) for check in checks]))
    note = f"The mean of the absolute change is {mean:.3f} %; the paper reports less than 0.1 %."
    heading = ("machine", "start", "epochs", "trial", "S, K", "log-likelihood", "change (%)")
    title = "mAIS with the settings of the tables, and with more"
    return plain_sheet("annealing_check", title, heading, rows, (note,))
