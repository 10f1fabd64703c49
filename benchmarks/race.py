"""The race: the likelihood of held-out points that each package has after a given time.

    python benchmarks/race.py [--sets digits drybean] [--seconds 10] [--seeds 0] [--minutes 8] [--dry]

Every record is a line of `data/race.jsonl`, one for each set, entrant, seed and time; the same command goes
on where it stopped, and `race_page.py` makes the table and the figure from what is there. The whole race
takes about sixteen hours of both cores: 135 runs each of 10, 60 and 300 seconds, 65 each of 10 and 60 seconds
to choose the settings of the rivals, and the estimates of ln Z.

Rivals with a grid are trained with a seed of their own, and the log-likelihood of validation points chooses;
what is chosen for 60 seconds is used for 300 as well. Test points judge: all machines have as many hidden
units, are converted to bits in both layers, and ln Z is exact or by mAIS, always by the same code. A run
during which other processes used more than a tenth of a core does not count and is made again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from held_out_sets import load_split
from race_entrants import ENTRANTS, Settings
from ratio import machine_facts

HERE = Path(__file__).parent
RECORDS = HERE / "data" / "race.jsonl"
N_HIDDEN = {"digits": 64, "drybean": 16, "ulc": 100, "mnist-3000": 500, "mnist-60000": 500}
SECONDS, SEEDS = (10.0, 60.0, 300.0), (0, 1, 2)
CHOICE_SEED, LONGEST_CHOICE = 100, 60.0
JUDGED = 500  # test points
MOST_OTHERS = 0.1  # cores that other processes may use on average during a run that counts
LOG_Z = pm.LogZ(n_samples=500, n_temperatures=3000, start="both")
LOG_Z_OF_CHOICE = pm.LogZ(n_samples=100, n_temperatures=1000, start="both")

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A run of the race, or one that chooses settings (``purpose`` "choice")."""

    purpose: str
    set: str
    entrant: str
    seed: int
    seconds: float
    settings: str = "{}"  # as text, so that jobs can be compared

    def matches(self, record: Record) -> bool:
        """Whether a record is of this run; settings of a race are those that were chosen."""
        same = all(record[name] == getattr(self, name) for name in ("purpose", "set", "entrant", "seed"))
        same = same and record["seconds"] == self.seconds
        return same and (self.purpose == "race" or record["settings"] == json.loads(self.settings))


def read_records(path: Path = RECORDS) -> list[Record]:
    """The records that are there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def choices_for(data: str, entrant: str, seconds: float) -> list[Job]:
    """The runs that choose the settings of an entrant."""
    time_of_choice = min(seconds, LONGEST_CHOICE)
    grid = ENTRANTS[entrant].grid
    return [
        Job("choice", data, entrant, CHOICE_SEED, time_of_choice, json.dumps(settings)) for settings in grid
    ]


def chosen_settings(records: list[Record], data: str, entrant: str, seconds: float) -> Settings | None:
    """The settings of an entrant; None where runs that choose them are missing."""
    if not ENTRANTS[entrant].grid:
        return ENTRANTS[entrant].settings
    found = []
    for job in choices_for(data, entrant, seconds):
        made = [record for record in records if job.matches(record)]
        if not made:
            return None
        found.append(made[-1])
    best: Record = max(found, key=lambda record: float(record["validation"]))
    return dict(best["settings"])


def plan(sets: list[str], times: list[float], seeds: list[int]) -> Iterator[Job]:
    """All jobs, in an order in which settings are chosen before they are used."""
    chosen: set[Job] = set()
    settled = [name for name, entrant in ENTRANTS.items() if not entrant.grid]
    for seconds, data in itertools.product(times, sets):
        for seed, entrant in itertools.product(seeds, settled):
            yield Job("race", data, entrant, seed, seconds)
        for entrant in ENTRANTS:
            yield from (job for job in choices_for(data, entrant, seconds) if job not in chosen)
            chosen.update(choices_for(data, entrant, seconds))
        for seed, entrant in itertools.product(seeds, [name for name in ENTRANTS if name not in settled]):
            yield Job("race", data, entrant, seed, seconds)


def busy_seconds() -> float:
    """Processor seconds of all processes since the start of the system; NaN where it does not say so."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return math.nan
    user, nice, system, _, _, irq, softirq = map(int, words[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor seconds of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def run(job: Job, settings: Settings, folder: Path) -> Record:
    """Train in a process of its own, and judge the machine here."""
    file = folder / "machine.safetensors"
    before = time.monotonic(), busy_seconds() - own_seconds()
    words = [job.entrant, job.set, N_HIDDEN[job.set], job.seconds, job.seed, file]
    command = [sys.executable, str(HERE / "race_entrants.py"), *map(str, words)]
    done = subprocess.run(
        [*command, "--settings", json.dumps(settings)], check=True, stdout=subprocess.PIPE, text=True
    )
    facts = json.loads(done.stdout.splitlines()[-1])
    others = (busy_seconds() - own_seconds() - before[1]) / (time.monotonic() - before[0])
    split, rbm = load_split(job.set, "bit"), pm.RBM.load(file)
    points = split.validation if job.purpose == "choice" else split.test
    points = points[:JUDGED]
    policy = LOG_Z_OF_CHOICE if job.purpose == "choice" else LOG_Z
    log_z = policy(rbm, np.random.default_rng([job.seed, 7]), means=split.learned.mean(axis=0))
    values = -rbm.free_energy(points) - log_z.value
    floor = float(pm.independent_log_likelihood(split.learned, "bit", validation=points))
    record = {
        "purpose": job.purpose,
        "set": job.set,
        "entrant": job.entrant,
        "seed": job.seed,
        "seconds": job.seconds,
        "settings": settings,
        "n_hidden": N_HIDDEN[job.set],
        **facts,
        "others": round(others, 3),
        "error_of_log_z": float(log_z.error),
        "trusted": bool(log_z.trusted),
        "start_of_log_z": policy.start,
        "independent": floor,
    }
    if job.purpose == "choice":
        return record | {"validation": float(values.mean())}
    return record | {"test": [round(float(value), 3) for value in values]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*N_HIDDEN], choices=N_HIDDEN)
    parser.add_argument("--seconds", nargs="+", type=float, default=[*SECONDS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[*SEEDS])
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no run after this time")
    parser.add_argument("--dry", action="store_true", help="only count what is missing")
    options = parser.parse_args()
    deadline = time.monotonic() + 60.0 * options.minutes
    records = read_records()
    facts = machine_facts("paramagnet", "rbms", "torch", "scikit-learn", "numpy", "numba")
    jobs = list(plan(options.sets, options.seconds, options.seeds))
    missing = [job for job in jobs if not any(map(job.matches, records))]
    print(f"{len(jobs) - len(missing)} of {len(jobs)} runs are there", flush=True)
    if options.dry:
        return
    with tempfile.TemporaryDirectory() as folder:
        for job in missing:
            if any(map(job.matches, records)):  # two entrants may share a run
                continue
            if time.monotonic() + job.seconds >= deadline:
                print("stopped at the time limit; the same command goes on")
                return
            settings = json.loads(job.settings)
            if job.purpose == "race":
                chosen = chosen_settings(records, job.set, job.entrant, job.seconds)
                if chosen is None:  # a run that was to choose them did not count
                    continue
                settings = chosen
            record = run(job, settings, Path(folder)) | {"machine": facts}
            if record["others"] > MOST_OTHERS:
                print(f"not counted, other processes used {record['others']:.2f} cores: {job}", flush=True)
                continue
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            records.append(record)
            value = record.get("validation") or float(np.mean(record["test"]))
            print(f"{job.purpose} {job.set} {job.entrant} seed {job.seed}, {job.seconds:g} s: {value:.3f}"
                  f" after {record['n_updates']} updates, {settings}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
