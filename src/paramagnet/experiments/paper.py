"""The paper's own numbers, as package data.

``paper/beta_max.csv`` is its appendix C, ``paper/log_likelihoods.csv`` the nine tables of its section
4; ``paper/SOURCE.md`` says where they come from and which of them are misprints.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class PaperBetaMax:
    """One value of the paper's appendix C, as printed (three decimals)."""

    hidden: str
    alpha: float
    c: float
    beta_max: float


MISPRINTS = {("bit", 0.25, -2.0): "printed 2.216, correct 2.214 (2.213547)"}


def _read(name: str) -> list[dict[str, str]]:
    text = (files("paramagnet.experiments") / "paper" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def read_beta_max() -> list[PaperBetaMax]:
    """The 90 values of beta_max that the paper prints: 84 for bit hidden units, 6 for spin."""
    rows = _read("beta_max.csv")
    return [
        PaperBetaMax(row["hidden"], float(row["alpha"]), float(row["c"]), float(row["beta_max"]))
        for row in rows
    ]


@dataclass(frozen=True)
class PaperLogLikelihood:
    """One cell of the paper's Tables 1 to 9: mean and standard deviation over its trials."""

    table: str
    dataset: str
    n_visible: int
    n_hidden: int
    hidden: str
    c: float
    gain: float
    epoch: int
    mean: float
    std: float
    best: bool


def read_log_likelihoods() -> list[PaperLogLikelihood]:
    """The 345 training log-likelihoods that the paper prints."""
    return [
        PaperLogLikelihood(
            row["table"],
            row["dataset"],
            int(row["n"]),
            int(row["m"]),
            row["hidden"],
            float(row["c"]),
            float(row["beta_over_beta_max"]),
            int(row["epoch"]),
            float(row["log_likelihood"]),
            float(row["std"]),
            row["bold"] == "1",
        )
        for row in _read("log_likelihoods.csv")
    ]
