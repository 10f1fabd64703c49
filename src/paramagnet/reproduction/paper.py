"""The paper's own numbers, as package data.

``paper/beta_max.csv`` is its appendix C, ``paper/log_likelihoods.csv`` the nine tables of its section
4; ``paper/SOURCE.md`` says where they come from and which of them are misprints.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
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
    text = (files("paramagnet.reproduction") / "paper" / name).read_text(encoding="utf-8")
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

    @property
    def misprint(self) -> str:
        """The reason why the value is a misprint; empty if it is none."""
        return misprint_of(self)


def read_log_likelihoods() -> list[PaperLogLikelihood]:
    """The 345 training log-likelihoods that the paper prints."""
    return list(_log_likelihoods())


@cache
def _log_likelihoods() -> tuple[PaperLogLikelihood, ...]:
    return tuple(
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
    )


LIKELIHOOD_MISPRINTS = {
    ("MNIST_binary", -2.5, 0.25, 40): "-515.07 at 40 epochs is below the untrained machine and then jumps to "
    "-136.05 at 80; neighbouring cells suggest about -151",
    ("MNIST_binary", -2.5, 0.25, 100): "-313.46 at 100 epochs falls from -136.05 at 80; neighbouring cells "
    "suggest about -131",
}


def misprint_of(cell: PaperLogLikelihood) -> str:
    """The reason why a printed log-likelihood is a misprint; empty if it is none."""
    return LIKELIHOOD_MISPRINTS.get((cell.table, cell.c, cell.gain, cell.epoch), "")


@dataclass(frozen=True)
class PaperTable:
    """One table of section 4: its number and label, and over how many trials its values are averages."""

    number: int
    key: str
    sweep: str
    dataset: str
    title: str
    n_trials: int


PAPER_TABLES = (
    PaperTable(1, "toy_ising_c=0", "toy_spin", "toy", "Toy data, spin hidden units, c = 0", 100),
    PaperTable(2, "toy_binary_c=0", "toy_bit_c0", "toy", "Toy data, bit hidden units, c = 0", 100),
    PaperTable(3, "toy_binary_c=-5", "toy_bit_c5", "toy", "Toy data, bit hidden units, c = -5", 100),
    PaperTable(4, "db_ising_c=0", "drybean_spin", "drybean", "Dry Bean, spin hidden units", 150),
    PaperTable(5, "db_binary", "drybean_bit", "drybean", "Dry Bean, bit hidden units", 150),
    PaperTable(6, "ULC_ising_c=0", "ulc_spin", "ulc", "Urban Land Cover, spin hidden units", 50),
    PaperTable(7, "ULC_binary", "ulc_bit", "ulc", "Urban Land Cover, bit hidden units", 50),
    PaperTable(8, "MNIST_ising_c=0", "mnist_spin", "mnist", "MNIST, spin hidden units", 30),
    PaperTable(9, "MNIST_binary", "mnist_bit", "mnist", "MNIST, bit hidden units", 30),
)
