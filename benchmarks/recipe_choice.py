"""Choose the default settings of training by held-out likelihood at equal processor time.

    python benchmarks/recipe_choice.py [--minutes 4] [--part 0/2] [--show]

The plan is `recipe_choice.toml`, fixed before its runs. Every run is a line of `data/recipe_choice.jsonl`;
the same command goes on where it stopped, ``--show`` prints what the records say. With ``--part`` several
processes share the runs of a round and wait for each other at its end.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from held_out_sets import Split, load_split, seeded
from paramagnet.sweeps.starts import start_machine

HERE = Path(__file__).parent
RECORDS = HERE / "data" / "recipe_choice.jsonl"
TIMED, UNTIMED = 60, 10  # updates
TIE = 0.5  # percent
LOG_Z = pm.LogZ(seconds=0.2, n_samples=200, n_temperatures=1000, start="both")

Settings = dict[str, Any]


def read_plan() -> dict[str, Any]:
    """The content of the plan."""
    return tomllib.loads((HERE / "recipe_choice.toml").read_text(encoding="utf-8"))


def gradient_of(settings: Settings) -> pm.Gradient:
    """The gradient of a run, on one thread."""
    if settings["gradient"] == "exact":
        return pm.Exact(n_threads=1)
    return pm.PCD(settings["n_chains"], settings["n_steps"], n_relax=100, n_threads=1)


def run(split: Split, settings: Settings, seed: int) -> dict[str, float]:
    """Train for the processor time of the settings, and measure."""
    rbm = start_machine(
        settings["scheme"],
        split.learned,
        settings["n_hidden"],
        gain=settings["gain"],
        rng=seed,
        visible=split.units,
        hidden="bit",
        hidden_bias=settings["hidden_bias"],
    ).rbm
    options: dict[str, Any] = {
        "gradient": gradient_of(settings),
        "batch_size": settings["batch_size"],
        "weight_decay": settings["weight_decay"],
        "centred": settings["centred"],
        "evaluate": (),
    }
    optimizer = pm.Adam(f"linear({settings['rate']})")
    steps = pm.training_steps(rbm, split.learned, epochs=10**6, rng=0, optimizer=optimizer, **options)
    for _ in range(1 + UNTIMED):
        next(steps)
    began = time.process_time()
    for _ in range(TIMED):
        next(steps)
    update = (time.process_time() - began) / TIMED
    n_batches = -(-len(split.learned) // settings["batch_size"])
    epochs = max(1, round(settings["seconds"] / update / n_batches))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pm.train(rbm, split.learned, epochs=epochs, rng=seed, optimizer=optimizer, **options).rbm
    used = time.process_time() - began
    log_z = LOG_Z(found, seeded(seed, 1), means=split.learned.mean(axis=0))
    learned, validation, _ = split.floors
    return {
        "n_updates": epochs * n_batches,
        "processor_seconds": round(used, 2),
        "learned": float(-found.free_energy(split.learned).mean() - log_z.value),
        "validation": float(-found.free_energy(split.validation).mean() - log_z.value),
        "error": log_z.error,
        "floor_learned": learned,
        "floor": validation,
    }


class Choice:
    """The rounds, from the records that are there."""

    def __init__(self, plan: dict[str, Any], records: list[dict[str, Any]]) -> None:
        self.plan = plan
        self.known: dict[tuple[str, int, str], dict[str, Any]] = {}
        self.learn(records)
        self.kinds = {kind: plan["start"]["all"] | plan["start"][kind] for kind in ("exact", "pcd")}

    def learn(self, records: list[dict[str, Any]]) -> None:
        """Take further records."""
        for record in records:
            key = record["set"], record["seed"], json.dumps(record["settings"], sort_keys=True)
            self.known[key] = record

    def sets_of(self, kind: str) -> dict[str, Any]:
        """The sets of a round."""
        return {n: s for n, s in self.plan["sets"].items() if kind in ("all", s["gradient"])}

    def runs(self, stage: dict[str, Any], candidate: Settings) -> list[tuple[str, int, Settings]]:
        """The runs of a candidate in a round."""
        found = []
        for name, given in self.sets_of(stage["kind"]).items():
            machine = {key: given[key] for key in ("units", "n_hidden", "gradient", "seconds")}
            settings = self.kinds[given["gradient"]] | machine | candidate
            found += [(name, seed, settings) for seed in given.get("seeds", self.plan["seeds"])]
        return found

    def record_of(self, run: tuple[str, int, Settings]) -> dict[str, Any] | None:
        """The record of a run, if it was made."""
        name, seed, settings = run
        return self.known.get((name, seed, json.dumps(settings, sort_keys=True)))

    def judge(self, stage: dict[str, Any]) -> tuple[list[dict[str, float]], int]:
        """The percentages of every candidate by set, with their mean, and the index of the choice.

        All runs of the round must be there.
        """
        names = list(self.sets_of(stage["kind"]))
        means, floors = [], {}
        for candidate in stage["candidates"]:
            values: dict[str, list[float]] = {name: [] for name in names}
            for run in self.runs(stage, candidate):
                record = self.record_of(run)
                assert record is not None
                values[run[0]].append(record["validation"])
                floors[run[0]] = record["floor"]
            means.append({name: float(np.mean(v)) for name, v in values.items()})
        best = {name: max(mean[name] for mean in means) for name in names}
        rows = []
        for mean in means:
            row = {n: 100.0 * (mean[n] - floors[n]) / (best[n] - floors[n]) for n in names}
            rows.append(row | {"mean": float(np.mean([*row.values()]))})
        scores = [row["mean"] if min(row.values()) > 0.0 else -math.inf for row in rows]
        top = int(np.argmax(scores))
        return rows, 0 if scores[0] >= scores[top] - TIE else top

    def settle(self, stage: dict[str, Any], chosen: Settings) -> None:
        """Start the next rounds from the choice of this one."""
        for kind in self.kinds:
            if stage["kind"] in ("all", kind):
                self.kinds[kind] = self.kinds[kind] | chosen


def read_records() -> list[dict[str, Any]]:
    """All records that are there."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return [json.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--part", default="0/1", help="which of several processes this is")
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    deadline = time.monotonic() + 60.0 * options.minutes
    part, parts = map(int, options.part.split("/"))
    choice = Choice(read_plan(), read_records())
    splits: dict[tuple[str, str], Split] = {}
    for stage in choice.plan["rounds"]:
        every = [one for candidate in stage["candidates"] for one in choice.runs(stage, candidate)]
        while missing := [one for one in every if choice.record_of(one) is None]:
            if options.show or time.monotonic() >= deadline:
                print(f"{stage['name']}: {len(missing)} of {len(every)} runs are missing")
                return
            mine = [one for index, one in enumerate(every) if index % parts == part and one in missing]
            if not mine:
                time.sleep(5.0)
                choice.learn(read_records())
                continue
            name, seed, settings = mine[0]
            key = choice.plan["sets"][name].get("data", name), settings["units"]
            if key not in splits:
                splits[key] = load_split(*key)
            record = {"set": name, "seed": seed, "settings": settings, **run(splits[key], settings, seed)}
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            choice.learn([record])
        rows, index = choice.judge(stage)
        print(f"\n{stage['name']}: percent of what can be learned, validation points")
        for place, (candidate, row) in enumerate(zip(stage["candidates"], rows, strict=True)):
            mark = "*" if place == index else " "
            text = "  ".join(f"{name} {value:.1f}" for name, value in row.items())
            print(f"{mark} {text}   {candidate}")
        choice.settle(stage, stage["candidates"][index])
    print("\nchosen:", json.dumps(choice.kinds, indent=1))


if __name__ == "__main__":
    main()
