"""Machines of the WW domain: does the initial scale matter, and how do we compare with rbms?

    python benchmarks/ww_domain.py ww_sequences.fa [--only ours|rbms] [--seconds 30] [--seed 0]

The alignment (31 sites, 21 letters, sequences weighted by 1/number of sequences that are 80 % identical) is
split into training, validation and test sequences, 70, 15 and 15 %. Machines with 100 hidden bits learn from
the same training sequences and weights for the same processor time on one thread, by PCD-10 with 500 chains
and batches of 500:

- ours by Adam at 0.003 with centred gradients, with and without weight decay (1), from centred starts whose
  weights have 1/4, 1/2, 1 and 2 times the scale of the stability edge at the frequencies of the sites, and
  1e-4, the start of rbms;
- rbms 0.5.0 by its own update (centred, normalized gradients, zero-sum gauge) at its default rate 0.01 and at
  0.1, from its own start and from our biases (its own ones give a letter that is absent from a site the
  frequency 1e-7).

Of each run the machines after 1/32, 1/16, ... and all of the time are kept; their ln Z is estimated by our
mAIS, outside of the time. The score is the weighted mean log-likelihood of the test sequences in nats per
sequence, less that of independent sites (frequencies with one pseudo-count), at the time that is best on the
validation sequences. Runs that are in the record, ``benchmarks/data/ww_domain.json``, are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from paramagnet.data import read_alignment, sequence_weights, site_frequencies
from ratio import machine_facts

PLACE = Path(__file__).parent / "data" / "ww_domain.json"
N_HIDDEN, N_CHAINS, N_STEPS, N_BATCH = 100, 500, 10, 500
RATE, SMALL = 3e-3, 1e-4
GAINS = (0.25, 0.5, 1.0, 2.0)
CONTACTS_OF = ("ours, 0.25 of the edge, decay 1", "ours, 1 of the edge, decay 1", "ours, 1e-4, decay 1")
MARKS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the time
DECAYS = (0.0, 1.0)
N_SAMPLES, N_TEMPERATURES = 500, 1000  # of mAIS, half of them from uniform states, half from frequencies
LOG_Z = pm.LogZ("mais", n_samples=N_SAMPLES, n_temperatures=N_TEMPERATURES, start="both")
Run = Iterator[tuple[float, int, pm.RBM]]


class Study:
    """The sequences, their split, and what machines are judged by."""

    def __init__(self, path: str, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one X in the file, which counts as a gap
            self.alignment = read_alignment(path, alphabet="protein")
        data = self.alignment.data.astype(np.float64)
        self.weights = sequence_weights(self.alignment, 0.8)
        order = np.random.default_rng([seed, 1]).permutation(len(data))
        ends = round(0.7 * len(data)), round(0.85 * len(data))
        self.parts = dict(zip(("train", "validation", "test"), np.split(order, ends), strict=True))
        self.data, self.seed, self.unit = data, seed, self.alignment.units
        train = self.parts["train"]
        self.points, self.shares = data[train], self.weights[train] / self.weights[train].mean()
        self.frequencies = site_frequencies(self.points, self.unit.q, sample_weight=self.shares)
        self.biases = self.unit.bias_from(self.points, "data", self.shares)
        biases = pm.theory.Biases.of_frequencies(self.frequencies)
        n = data.shape[1]
        edge = pm.theory.stability_edge(N_HIDDEN / n, visible=self.unit, hidden="bit", b=biases)
        self.edge = float(edge.beta) / np.sqrt(n + N_HIDDEN)

    def mean(self, part: str, values: np.ndarray) -> float:
        """The weighted mean over the sequences of a part."""
        return float(np.average(values, weights=self.weights[self.parts[part]]))

    def independent(self, part: str) -> float:
        """The log-likelihood of a part under independent sites."""
        rows = self.data[self.parts[part]].astype(int)
        logs = np.log(self.frequencies)[np.arange(rows.shape[1]), rows]
        return self.mean(part, logs.sum(axis=1))

    def judge(self, rbm: pm.RBM) -> dict[str, float]:
        """The log-likelihoods of all parts, and the quality of the estimate of ln Z."""
        found = LOG_Z(rbm, 1, means=self.frequencies.ravel())
        parts = {
            part: self.mean(part, -rbm.free_energy(self.data[self.parts[part]])) - found.value
            for part in self.parts
        }
        return {**parts, "log_z": found.value, "error": found.error, "n_effective": found.n_effective}

    def start(self, sigma: float) -> pm.RBM:
        """A centred start with this standard deviation."""
        sizes = {"visible": self.unit, "hidden": "bit"}
        gain = sigma / pm.weight_std(self.data.shape[1], N_HIDDEN, **sizes)
        return pm.initialize(
            self.data.shape[1], N_HIDDEN, scheme="centred", gain=gain, visible_bias="data", data=self.points,
            sample_weight=self.shares, rng=self.seed, **sizes,
        )  # fmt: skip


def timed(updates: Iterator[Any], seconds: float) -> Run:
    """The processor time, number of updates and machine at the marks; ``updates`` yield a way to it."""
    began, spent = time.process_time(), 0.0
    marks = [mark * seconds for mark in MARKS]
    for count, machine in enumerate(updates, start=1):
        spent = time.process_time() - began
        if spent >= marks[0]:
            yield spent, count, machine()
            marks.pop(0)
            began = time.process_time() - spent  # what was done with the machine does not count
            if not marks:
                return


def ours(study: Study, sigma: float, decay: float, seconds: float) -> Run:
    """A run of ours from the scale ``sigma``."""
    steps = pm.training_steps(
        study.start(sigma), study.points, sample_weight=study.shares, epochs=10**7, batch_size=N_BATCH,
        gradient=pm.PCD(N_CHAINS, N_STEPS, n_threads=1), optimizer=pm.Adam(RATE), centred=True,
        weight_decay=decay, rng=study.seed, evaluate=[10**7],
    )  # fmt: skip
    next(steps)
    next(steps)  # compiled
    return timed(((lambda state=state: state.rbm) for state in steps), seconds)


def of_rbms(study: Study, own_start: bool, rate: float, seconds: float) -> Run:
    """A run of rbms."""
    import torch
    from rbms.potts_bernoulli.classes import PBRBM
    from rbms.potts_bernoulli.implement import _init_parameters
    from rbms.potts_bernoulli.utils import ensure_zero_sum_gauge
    from rbms.training.pcd import fit_batch_pcd

    torch.set_num_threads(1)
    torch.manual_seed(study.seed)
    points = torch.from_numpy(study.points.astype(np.float32))
    weights = torch.from_numpy(study.shares.astype(np.float32))[:, None]
    vbias, hbias, matrix = _init_parameters(N_HIDDEN, points, points.device, torch.float32)
    if not own_start:
        vbias = torch.from_numpy(study.biases.reshape(vbias.shape).astype(np.float32))
    machine = PBRBM(matrix, vbias.contiguous(), hbias)
    machine.init_grad()
    optimizer = torch.optim.SGD(machine.parameters(), lr=rate, maximize=True)

    def updates() -> Iterator[Any]:
        chains = machine.init_chains(N_CHAINS)
        while True:
            rows = torch.randperm(len(points))[:N_BATCH]
            optimizer.zero_grad(set_to_none=False)
            batch = points[rows], weights[rows]
            with torch.no_grad():
                chains, _ = fit_batch_pcd(batch, chains, machine, N_STEPS, 1.0, centered=True)
            optimizer.step()
            ensure_zero_sum_gauge(machine)
            yield as_rbm

    def as_rbm() -> pm.RBM:
        arrays = (array.double().numpy() for array in (machine.weight_matrix, machine.vbias, machine.hbias))
        matrix, bias, hidden = arrays
        return pm.RBM(matrix.reshape(-1, N_HIDDEN), bias.ravel(), hidden, study.unit, "bit")

    return timed(updates(), seconds)


def runs(study: Study, seconds: float) -> dict[str, Any]:
    """All runs by name, ready to start."""
    found: dict[str, Any] = {}
    starts = {f"{gain:g} of the edge": gain * study.edge for gain in GAINS} | {"1e-4": SMALL}
    for decay in DECAYS:
        for name, sigma in starts.items():
            found[f"ours, {name}, decay {decay:g}"] = lambda sigma=sigma, decay=decay: ours(
                study, sigma, decay, seconds
            )
    for name, own, rate in (
        ("rbms, its start, 0.01", True, 0.01),
        ("rbms, our biases, 0.01", False, 0.01),
        ("rbms, our biases, 0.1", False, 0.1),
    ):
        found[name] = lambda own=own, rate=rate: of_rbms(study, own, rate, seconds)
    return found


def add_contacts(study: Study, folder: Path) -> None:
    """The ten strongest couplings of kept machines, at least four sites apart, into the record."""
    from paramagnet.couplings import effective_couplings, strongest_contacts

    record = read()
    for name in CONTACTS_OF:
        rbm = pm.RBM.load(folder / file_name(f"{name}, seed {study.seed}"))
        found = effective_couplings(rbm, study.points, sample_weight=study.shares, method="second-order")
        pairs = strongest_contacts(found.corrected, 10, least_distance=4)
        record.setdefault("contacts", {})[name] = [[i + 1, j + 1, round(s, 3)] for i, j, s in pairs]
    save(record)


def names() -> list[str]:
    """The runs in the order of the page."""
    starts = [*(f"{gain:g} of the edge" for gain in GAINS), "1e-4"]
    found = [f"ours, {start}, decay {decay:g}" for decay in reversed(DECAYS) for start in starts]
    return [
        *found,
        *(f"rbms, {start}" for start in ("its start, 0.01", "our biases, 0.01", "our biases, 0.1")),
    ]


def table(record: dict[str, Any], seed: int = 0) -> list[str]:
    """The rows of docs/ww_domain.md: each run at the time that is best on the validation sequences."""
    level = record["splits"][str(seed)]["independent"]["test"]
    rows = [f"| independent sites | | | {level:.2f} | 0 | | |"]
    for name in names():
        points = record["runs"][f"{name}, seed {seed}"]
        best, last = max(points, key=lambda point: point["validation"]), points[-1]
        when = f"{best['seconds']:.1f} s, {best['updates']}"
        rows.append(
            f"| {name} | {when} | {best['train']:.2f} | {best['test']:.2f} | {best['test'] - level:+.2f} | "
            f"{best['error']:.2f}, {best['n_effective']:.0f} | {last['test'] - level:+.2f} |"
        )
    return rows


def course(record: dict[str, Any], seed: int = 0) -> list[str]:
    """The second table of the page: the gain over independent sites in the course of the runs with decay."""
    level = record["splits"][str(seed)]["independent"]["test"]
    rows = []
    for name in names()[: 1 + len(GAINS)]:
        points = record["runs"][f"{name}, seed {seed}"]
        gains = " | ".join(f"{point['test'] - level:+.2f}" for point in points)
        rows.append(f"| {name.split(', ')[1]} | {gains} |")
    return rows


def contact_rows(record: dict[str, Any]) -> list[str]:
    """The third table of the page: the pairs of sites with the strongest couplings."""
    return [
        f"| {name.split(', ')[1]} | {', '.join(f'{i}-{j}' for i, j, _ in pairs)} |"
        for name, pairs in record["contacts"].items()
    ]


def main() -> None:
    """Make the runs that are missing from the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--table", action="store_true", help="print the table of the page")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contacts", help="such a folder: add the strongest couplings of machines in it")
    parser.add_argument("--keep", help="folder for the machines that are best on the validation sequences")
    arguments = parser.parse_args()
    if arguments.table:
        print("\n".join([*table(read(), arguments.seed), "", *course(read(), arguments.seed)]))
        print("", *contact_rows(read()), sep="\n")
        return
    study = Study(arguments.path, arguments.seed)
    if arguments.contacts:
        add_contacts(study, Path(arguments.contacts))
        return
    for name, begin in runs(study, arguments.seconds).items():
        key = f"{name}, seed {arguments.seed}"
        if arguments.only not in name or key in read().get("runs", {}):
            continue
        points, best = [], -np.inf
        for spent, count, rbm in begin():
            points.append({"seconds": round(spent, 2), "updates": count, **study.judge(rbm)})
            if arguments.keep and points[-1]["validation"] > best:
                best = points[-1]["validation"]
                Path(arguments.keep).mkdir(parents=True, exist_ok=True)
                rbm.save(Path(arguments.keep) / file_name(key))
        write(study, key, points)
        print(key, json.dumps(points[-1]), flush=True)


def file_name(key: str) -> str:
    """The file of the machine of a run."""
    return key.replace(", ", "_").replace(" ", "-") + ".safetensors"


def save(record: dict[str, Any]) -> None:
    """Write the record."""
    PLACE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """The record so far."""
    found: dict[str, Any] = json.loads(PLACE.read_text("utf-8")) if PLACE.exists() else {}
    return found


def write(study: Study, key: str, points: list[dict[str, Any]]) -> None:
    """Add a run to the record."""
    record = read()
    record["machine"] = machine_facts("paramagnet", "rbms", "torch", "numpy", "numba")
    facts = {
        "n_sequences": len(study.data), "n_sites": study.data.shape[1],
        "effective_number": float(study.weights.sum()), "sigma_edge": study.edge,
        "independent": {part: study.independent(part) for part in study.parts},
        "n_samples": N_SAMPLES, "n_temperatures": N_TEMPERATURES,
    }  # fmt: skip
    record.setdefault("splits", {})[str(study.seed)] = facts
    record.setdefault("runs", {})[key] = points
    save(record)


if __name__ == "__main__":
    main()
