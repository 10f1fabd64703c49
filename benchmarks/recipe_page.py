"""The tables of docs/recipe.md: how the defaults were chosen, and what they reach.

    python benchmarks/recipe_page.py

They are made from `data/recipe_choice.jsonl` and `data/defaults.jsonl`; a test compares the page with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import defaults
from recipe_choice import Choice, read_plan, read_records

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "recipe.md"
END = "<!-- end -->"
TITLES = {
    "toy": "toy",
    "drybean": "Dry Bean",
    "digits": "digits",
    "ulc": "Urban Land Cover",
    "mnist-3000": "MNIST, 3000",
}


def choice_table(choice: Choice) -> str:
    """The rounds that are complete, one after the other, and how many runs the others lack."""
    parts = []
    for stage in choice.plan["rounds"]:
        every = [one for candidate in stage["candidates"] for one in choice.runs(stage, candidate)]
        missing = sum(choice.record_of(one) is None for one in every)
        if missing:
            parts.append(
                f"**{stage['name'].capitalize()}**: {missing} of {len(every)} runs are missing, so this "
                "round and those after it have not chosen."
            )
            break
        rows, index = choice.judge(stage)
        names = list(rows[0])
        lines = [f"| candidate | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
        for place, (candidate, row) in enumerate(zip(stage["candidates"], rows, strict=True)):
            words = ", ".join(f"{key} {value}" for key, value in candidate.items())
            words = f"**{words}**" if place == index else words
            lines.append(f"| {words} | {' | '.join(f'{value:.1f}' for value in row.values())} |")
        parts.append(f"**{stage['name'].capitalize()}**\n\n" + "\n".join(lines))
        choice.settle(stage, stage["candidates"][index])
    return "\n\n".join(parts)


def runs_table(records: list[dict[str, Any]]) -> str:
    """The runs of the first round: means over seeds, validation points, nats per point."""
    start = read_plan()["start"]
    common = start["all"] | {"batch_size": start["pcd"]["batch_size"]}
    found: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        s = record["settings"]
        if s["gradient"] == "pcd" and all(s[name] == value for name, value in common.items()):
            key = record["set"], s["n_chains"], s["n_steps"], s["rate"]
            found.setdefault(key, []).append(record["validation"])
    sets = list(dict.fromkeys(key[0] for key in found))
    lines = [
        f"| chains | sweeps | rate | {' | '.join(sets)} |",
        "| ---: | ---: | ---: |" + " ---: |" * len(sets),
    ]
    for row in dict.fromkeys(key[1:] for key in found):
        cells = [found.get((name, *row)) for name in sets]
        text = ["" if cell is None else f"{np.mean(cell):.2f}" for cell in cells]
        lines.append(f"| {row[0]} | {row[1]} | {row[2]:g} | {' | '.join(text)} |")
    return "\n".join(lines)


def defaults_table(records: list[dict[str, Any]]) -> str:
    """What `paramagnet train FILE` reaches: means over seeds."""
    lines = [
        "| data | hidden units | seeds | learned points | test points | behind the best rule | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for data in defaults.SETS:
        for given in sorted({r["given"] for r in records if r["set"] == data}, key=str):
            rows = [r for r in records if r["set"] == data and r["given"] == given]
            gained = {
                key: [row[key] - row[f"independent_{key}"] for row in rows] for key in ("learned", "test")
            }
            cells = [
                f"{np.mean([row[key] for row in rows]):.2f} ({np.mean(gained[key]):+.2f})"
                for key in ("learned", "test")
            ]
            loss = ""
            if data in defaults.STUDIED and rows[0]["n_hidden"] == defaults.STUDIED[data][1]:
                best = defaults.best_rule(data)[1]
                loss = f"{np.mean([defaults.loss_of(row, best) for row in rows]):+.2f} %"
            shown = f"{rows[0]['n_hidden']}" + ("" if given is None else ", given")
            seconds = np.mean([row["seconds"] for row in rows])
            values = [TITLES[data], shown, str(len(rows)), *cells, loss, f"{seconds:.0f}"]
            lines.append(f"| {' | '.join(values)} |")
    missing = [TITLES[name] for name in defaults.SETS if not any(r["set"] == name for r in records)]
    text = "\n".join(lines)
    return text + (f"\n\nNot measured yet: {', '.join(missing)}." if missing else "")


def make_page(text: str) -> str:
    """The page with its tables made anew."""
    records = read_records()
    tables = {
        "choice": choice_table(Choice(read_plan(), records)),
        "runs": runs_table(records),
        "defaults": defaults_table(defaults.read_records()),
    }
    for name, content in tables.items():
        mark = f"<!-- table: {name} -->"
        before, found, rest = text.partition(mark)
        if not found:
            raise ValueError(f"the page must hold {mark}.")
        text = f"{before}{mark}\n{content}\n{END}{rest.partition(END)[2]}"
    return text


def main() -> None:
    PAGE.write_text(make_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
