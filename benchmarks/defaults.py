"""`paramagnet train FILE` with nothing but defaults on five data sets: is it good enough without thought?

    python benchmarks/defaults.py [--sets toy digits] [--seeds 0 1 2] [--show]

Every run is a line of `data/defaults.jsonl`; what is there is not made again. The command line itself is run,
on a file of the learned points, with `--out` and `--seed` alone. Two questions:

- Is a machine ever below independent units, on learned or on test points?
- Where the likelihood is exact: how far behind is it the best of the fourteen rules of docs/does_it_win.md
  after their last epoch, on the same learned points, in percent of what can be learned? That is asked with
  the numbers of hidden units that the records have, 10 on toy data, 16 on Dry Bean and on digits
  (`--hidden-units` is the one option more where the default is another number).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from held_out_sets import load_split

HERE = Path(__file__).parent
RECORDS = HERE / "data" / "defaults.jsonl"
SETS = ("toy", "drybean", "digits", "ulc", "mnist-3000")
STUDIED = {"toy": ("toy_bit_c0", 10), "drybean": ("drybean_bit", 16), "digits": ("digits_bit", 16)}
LOG_Z = pm.LogZ(n_samples=300, n_temperatures=2000, start="both")
MOST_LOSS = 2.0  # percent

Record = dict[str, Any]


def read_records(path: Path = RECORDS) -> list[Record]:
    """The records that are there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def best_rule(data: str) -> tuple[str, float]:
    """The best of the fourteen rules after the last epoch, and its mean log-likelihood; c = 0, spins and
    hidden bits, as by default.
    """
    sys.path.insert(0, str(HERE.parent))
    from studies.starts.contest import RULES, read_study

    spec, n_hidden = STUDIED[data]
    (contest,) = (
        contest
        for contest in read_study(HERE.parent / "results")
        if contest.spec.name == f"win/{spec}"
        and (contest.setting.n_hidden, contest.setting.c) == (n_hidden, 0.0)
    )
    last = contest.epochs[-1]
    means = {
        rule.label: float(np.mean([r.log_likelihood[r.epochs.index(last)] for r in contest.runs[rule]]))
        for rule in RULES
    }
    best = max(means, key=lambda rule: means[rule])
    return best, means[best]


def run(data: str, seed: int, n_hidden: int | None, folder: Path) -> Record:
    """One run of the command, and its likelihoods."""
    split = load_split(data, "spin")
    points, machine = folder / "points.npy", folder / f"machine-{time.monotonic_ns()}.safetensors"
    np.save(points, split.learned.astype(np.int8))
    words = ["train", str(points), "--out", str(machine), "--seed", str(seed)]
    words += [] if n_hidden is None else ["--hidden-units", str(n_hidden)]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "paramagnet", *words], check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    rbm = pm.RBM.load(machine)
    log_z = LOG_Z(rbm, np.random.default_rng([seed, 3]), means=split.learned.mean(axis=0))
    floor_learned, _, floor_test = split.floors
    return {
        "set": data,
        "seed": seed,
        "given": n_hidden,
        "n_hidden": rbm.n_hidden,
        "chosen": [line.strip() for line in done.stderr.splitlines() if line.startswith("  --")],
        "seconds": round(seconds, 1),
        "learned": float(-rbm.free_energy(split.learned).mean() - log_z.value),
        "test": float(-rbm.free_energy(split.test).mean() - log_z.value),
        "error": float(log_z.error),
        "independent_learned": floor_learned,
        "independent_test": floor_test,
    }


def loss_of(record: Record, best: float) -> float:
    """How far a machine is behind the best rule, in percent of what that rule learned; below 0: ahead."""
    floor = record["independent_learned"]
    return 100.0 * (best - record["learned"]) / (best - floor)


def show(records: list[Record]) -> str:
    """The answers, as text."""
    lines = []
    for record in records:
        gained = [record[key] - record[f"independent_{key}"] for key in ("learned", "test")]
        line = (
            f"{record['set']}, {record['n_hidden']} hidden, seed {record['seed']}: learned "
            f"{record['learned']:.3f} ({gained[0]:+.3f} to independent units), test {record['test']:.3f} "
            f"({gained[1]:+.3f}), {record['seconds']:g} s"
        )
        if record["set"] in STUDIED and record["n_hidden"] == STUDIED[record["set"]][1]:
            rule, best = best_rule(record["set"])
            line += f"; {loss_of(record, best):+.2f} % behind {rule}"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    records = read_records()
    made = {(r["set"], r["seed"], r["given"]) for r in records}
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:
            for data in options.sets:
                given = [None, STUDIED[data][1]] if data in ("drybean", "digits") else [None]
                for n_hidden in given:
                    if options.show or (data, seed, n_hidden) in made:
                        continue
                    record = run(data, seed, n_hidden, Path(folder))
                    with RECORDS.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
                    records.append(record)
                    print(show([record]), flush=True)
    if options.show:
        print(show(records))


if __name__ == "__main__":
    main()
