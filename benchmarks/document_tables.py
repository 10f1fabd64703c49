"""Write the measured tables of the site again, from their records.

    python benchmarks/document_tables.py

A page holds ``<!-- table: NAME -->``, the table, ``<!-- end -->``; what is between is replaced. A test
compares them with the records: write them again whenever records were added.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import differences_tables
import findings
import hidden_noise
import learning_tables
import mirror_chains
import mnist_kernels
import mnist_selections
import paramagnet as pm
import toy_flips
from paramagnet.cli.schemes_command import show_ratio
from paramagnet.sweeps.groups import (
    BETA_MAX,
    GAINS,
    Setting,
    Start,
    TrialSummary,
    group_runs,
    paired_difference,
    summarize_trials,
    values_at,
)
from paramagnet.sweeps.store import read_results
from paramagnet.sweeps.text_tables import pipe_table
from reproduction_facts import Facts

ROOT = Path(__file__).parents[1]
DATA = ROOT / "benchmarks" / "data"
PAPER = ROOT / "src" / "paramagnet" / "reproduction" / "paper" / "log_likelihoods.csv"
PAGES = ["docs/against.md", "docs/choosing.md", "docs/differences.md", "docs/learning.md", "docs/theory.md"]
SETS = {"toy": "toy", "drybean": "Dry Bean", "ulc": "Urban Land Cover", "mnist": "MNIST"}
OTHERS = [gain for gain in GAINS if gain != 1.0]
GAIN_NAMES = ["gain 1/4", "1/2", "2", "4"]
KINDS = {
    ("spin", 0.0): "spin",
    ("bit", 0.0): "bit, c = 0",
    ("bit", -2.5): "bit, c = -2.5",
    ("bit", -5.0): "bit, c = -5",
}
_BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)


def record(name: str) -> Any:
    """The results of a benchmark."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["results"]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """A table; with ``numbers`` all columns but the first are aligned to the right."""
    return pipe_table(head, rows, right=range(1, len(head)) if numbers else ())


def seconds(value: float) -> str:
    """Two digits and a unit."""
    factor, unit = (1e6, "us") if value < 1e-4 else (1e3, "ms") if value < 0.1 else (1.0, "s")
    return f"{value * factor:.{0 if value * factor >= 10 else 1 if value * factor >= 1 else 2}f} {unit}"


def times(value: float) -> str:
    """A ratio of speeds."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def ratios(result: Any, ours: str, names: dict[str, str]) -> str:
    """How many times as fast as the others."""
    return ", ".join(f"{times(result[key] / result[ours])} times {name}" for key, name in names.items())


# From benchmarks/data


def speed() -> str:
    """README: the short list."""
    scale, sums, peers = record("beta_max"), record("enumeration"), record("peers")
    one = scale["beta_max(1, c=0)"]
    torch = {
        "rbms": "`rbms` 0.5.0",
        "torch.bernoulli": "`torch.bernoulli`",
        "torch in place": "PyTorch in place",
    }
    pcd, updates = peers["PCD-40 update, fresh, 1000 chains"], record("updates")
    step = peers["one temperature, fresh, 1000 chains"]["seconds"]
    textbook = {"textbook NumPy": "textbook NumPy", "textbook PyTorch": "the same in PyTorch"}
    rows = [
        (
            "`beta_max`, one machine",
            seconds(one["paramagnet"]),
            ratios(one, "paramagnet", {"plain": "a plain implementation"}),
        ),
        *(
            (
                f"exact gradient with ln Z, {size}",
                seconds(sums[size]["paramagnet"]),
                ratios(sums[size], "paramagnet", textbook),
            )
            for size in ("16 x 32", "20 x 20")
        ),
        (
            "PCD-40 update, 784 x 500, 1000 chains",
            seconds(pcd["seconds"]["paramagnet"]),
            ratios(pcd["seconds"], "paramagnet", torch),
        ),
        *(
            (
                f"PCD-1 update with Adam, {size}, 100 chains",
                seconds(clock["paramagnet"]),
                ratios(clock, "paramagnet", torch),
            )
            for size in ("20 x 20", "100 x 100", "784 x 64", "784 x 500", "3000 x 3000")
            for clock in [updates[f"PCD-1, 100 chains, {size}, default threads"]["seconds"]]
        ),
        (
            "one temperature of mAIS, 784 x 500, 1000 chains",
            seconds(step["mAIS"]),
            ratios(step, "mAIS", {"AIS of rbms": "the AIS of `rbms`"}),
        ),
    ]
    return markdown(["what", "time", "speed against others"], rows)


def peers_speed() -> str:
    """Against other packages: all that was timed."""
    others = ["rbms", "scikit-learn", "torch.bernoulli", "torch in place"]
    rows = []
    for what, result in record("peers").items():
        clock = result["seconds"]
        if "mAIS" in clock:
            cells = [seconds(clock["mAIS"]), seconds(clock["AIS of rbms"]), "", "", ""]
            what = what.replace("one temperature", "one temperature of mAIS (rbms: AIS)")
        else:
            cells = [seconds(clock[name]) if name in clock else "" for name in ("paramagnet", *others)]
        best = min(result["seconds"].values())
        ours = result["seconds"].get("paramagnet", result["seconds"].get("mAIS"))
        cells[0] = f"**{cells[0]}**" if ours == best else cells[0]
        rows.append([what, *cells])
    head = [
        "784 x 500, bits in both layers",
        "paramagnet",
        "rbms",
        "scikit-learn",
        "torch.bernoulli",
        "PyTorch in place",
    ]
    return markdown(head, rows)


def updates_speed() -> str:
    """Against other packages: everyday updates, as many times faster than each; those that were timed."""
    heads = {
        "torch in place": "over PyTorch in place",
        "torch.bernoulli": "over torch.bernoulli",
        "rbms": "over rbms",
        "scikit-learn": "over scikit-learn (no Adam)",
        "former": "over version 0.1",
        "uncentred": "over ours without centring",
    }
    timed = {what: found["seconds"] for what, found in record("updates").items() if isinstance(found, dict)}
    others = [name for name in heads if any(name in clock for clock in timed.values())]
    rows = []
    for what, clock in timed.items():
        ours = clock["paramagnet"]
        cells = [times(clock[name] / ours) if name in clock else "" for name in others]
        rows.append([what, seconds(ours), *cells])
    head = ["update with Adam, batches of 100, bits", "paramagnet", *(heads[name] for name in others)]
    return markdown(head, rows, numbers=True)


def exact_cost() -> str:
    """Choosing: what exact sums cost."""
    result = record("enumeration")
    two = {size: result[f"threads {size}"]["threads 2"] for size in ("20 x 20", "20 x 30", "22 x 30")}
    rows = [
        [
            size,
            seconds(result[size]["paramagnet"]),
            seconds(result[size]["log Z only"]),
            seconds(two[size]) if size in two else "",
        ]
        for size in ("16 x 16", "16 x 32", "20 x 20", "20 x 30")
    ]
    rows.append(["22 x 30", seconds(result["threads 22 x 30"]["threads 1"]), "", seconds(two["22 x 30"])])
    rows.append(["24 x 30", seconds(result["growth"]["k = 24"]), "", ""])
    return markdown(
        ["smaller x larger layer", "exact gradient and ln Z", "ln Z alone", "gradient, two threads"], rows
    )


def chains_cost() -> str:
    """Choosing: what chains cost."""
    result = record("peers")
    rows = [
        [
            f"{n} chains, {k} sweep{'s' if k > 1 else ''}",
            seconds(result[f"PCD-{k} update, weak, {n} chains"]["seconds"]["paramagnet"]),
        ]
        for n in (100, 1000)
        for k in (1, 40)
    ]
    return markdown(["PCD update, 784 x 500", "time"], rows, numbers=True)


def tempering() -> str:
    """Choosing: how often chains change between two modes."""
    result = record("tempering")
    names = {
        "gibbs": "Gibbs sampling",
        "weights": "tempering, weights",
        "energy": "tempering, energy",
        "trajectory": "tempering, trajectory",
    }
    rows = []
    for key, name in names.items():
        row = result[key]
        trips = f"{row['round_trips']:.1f}" if "round_trips" in row else ""
        cells = [f"{row['switches']:.1f}", f"{row['sweeps_per_draw']:.0f}", trips]
        rows.append([name, str(row["machines"]), *cells, f"{row['share_of_ones']:.3f}"])
    head = ["method", "machines", "class switches", "machine-sweeps per draw", "round trips", "share of ones"]
    return markdown(head, rows, numbers=True)


def temperatures() -> str:
    """Choosing: errors of ln Z against the number of temperatures."""
    trained = record("likelihood")["methods"]["machines"]
    rows = []
    counts: list[int] = []
    for name, methods in trained.items():
        points = methods["mAIS, hidden layer summed out"]
        counts = [p["n_temperatures"] for p in points]
        rows.append([name, *(f"{p['rms_error']:.3f} ({p['stated_error']:.3f})" for p in points)])
    return markdown(
        ["machine, after 300 updates", *(f"{n} temperatures" for n in counts)], rows, numbers=True
    )


# From the theory


def schemes() -> str:
    """Against other packages: where everyone starts."""
    rows = []
    for s in pm.compare_schemes(784, 500):
        value = f"{s.correlation:.1%}" if s.correlation >= 1e-3 else "below 0.1%"
        correlation = "-" if math.isnan(s.correlation) else value.replace("%", " %")
        ratio = show_ratio(s.to_ours)
        rows.append([s.name, f"{s.visible}, {s.hidden}", f"{s.sigma:.3g}", ratio, correlation])
    return markdown(
        ["scheme or package", "its units", "sigma", "over ours", "layer correlation over its maximum"], rows
    )


# From results/*.jsonl and the paper's tables


@cache
def paper_values() -> dict[tuple[Setting, int], dict[float, float]]:
    """The paper's log-likelihoods by setting, epoch and gain."""
    found: dict[tuple[Setting, int], dict[float, float]] = {}
    with PAPER.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["beta_over_beta_max"]:
                c = float(row["c"])
                setting = Setting(row["dataset"], int(row["n"]), int(row["m"]), "spin", row["hidden"], c)
                gain, value = float(row["beta_over_beta_max"]), float(row["log_likelihood"])
                found.setdefault((setting, int(row["epoch"])), {})[gain] = value
    return found


def last_epochs() -> dict[Setting, int]:
    """Where the paper's tables end."""
    result: dict[Setting, int] = {}
    for setting, epoch in paper_values():
        result[setting] = max(epoch, result.get(setting, 0))
    return result


@cache
def runs() -> dict[Setting, dict[Start, list[Any]]]:
    """Our runs of the paper's settings."""
    return group_runs(record for record in read_results(ROOT / "results") if record.table)


def machine_name(setting: Setting) -> str:
    """Data, sizes, hidden units."""
    bias = f", c = {setting.c:g}" if setting.hidden == "bit" else ""
    name = SETS[setting.dataset]
    return f"{name}, {setting.n_visible} x {setting.n_hidden}, {setting.hidden}{bias}"


def gains() -> str:
    """Choosing: what another gain costs, by the paper's tables."""
    printed = paper_values()
    rows = []
    for setting, epoch in last_epochs().items():
        values = printed[setting, epoch]
        cells = [f"{values[g] - values[1.0]:+.2f}" for g in OTHERS]
        if (setting.dataset, setting.c) == ("mnist", -2.5):
            cells[0] = "(misprint)"  # see the report
        rows.append([machine_name(setting), *cells])
    return markdown(["training, the paper's tables", *GAIN_NAMES], rows, numbers=True)


def gains_held_out() -> str:
    """Choosing: the same for held-out points, by our runs."""
    rows = []
    for setting, epoch in last_epochs().items():
        starts = runs().get(setting, {})
        cells = []
        for start in (Start(gain=g) for g in OTHERS):
            here, ours = (values_at(starts.get(s, []), epoch, "held_out") for s in (start, BETA_MAX))
            difference = paired_difference(here, ours)
            cells.append(with_error(difference))
        if any(cells):
            rows.append([machine_name(setting), *cells])
    return markdown(["held-out points, our runs", *GAIN_NAMES], rows, numbers=True)


def with_error(difference: TrialSummary) -> str:
    """A mean with its standard error where there is one."""
    if not difference.n_finite:
        return ""
    error = "1 trial" if math.isnan(difference.error) else f"{difference.error:.2f}"
    return f"{difference.mean:+.2f} ({error})"


def machines() -> dict[str, tuple[int, list[Setting]]]:
    """Data and sizes, the last epoch, and the settings that differ in the hidden units."""
    found: dict[str, tuple[int, list[Setting]]] = {}
    for s, epoch in last_epochs().items():
        name = f"{SETS[s.dataset]}, {s.n_visible} x {s.n_hidden}, {epoch} epochs"
        settings = [Setting(s.dataset, s.n_visible, s.n_hidden, "spin", hidden, c) for hidden, c in KINDS]
        found.setdefault(name, (epoch, settings))
    return found


def hidden_units() -> str:
    """Choosing: hidden units and bias at beta_max, by the paper's tables."""
    printed = paper_values()
    rows = []
    for name, (epoch, settings) in machines().items():
        values = [printed.get((s, epoch), {}).get(1.0) for s in settings]
        rows.append([name, *("" if value is None else f"{value:.2f}" for value in values)])
    return markdown(["training, the paper's tables", *KINDS.values()], rows, numbers=True)


def hidden_units_held_out() -> str:
    """Choosing: the same for held-out points, by our runs."""
    rows = []
    for name, (epoch, settings) in machines().items():
        cells = []
        for s in settings:
            value = summarize_trials(
                values_at(runs().get(s, {}).get(BETA_MAX, []), epoch, "held_out").values()
            )
            cells.append(f"{value.mean:.2f}" if value.n_finite else "")
        if any(cells):
            rows.append([name, *cells])
    return drop_empty(["held-out points, our runs", *KINDS.values()], rows)


def drawn_hidden() -> str:
    """Where we differ: Table 7 with drawn hidden states."""
    return markdown(*hidden_noise.table_rows(), numbers=True)


def mirrored_chains() -> str:
    """How it works: MNIST without visible biases."""
    return markdown(*mirror_chains.table_rows(), numbers=True)


@cache
def facts() -> Facts:
    """What the records of the reproduction say."""
    return Facts(read_results(ROOT / "results"))


def toy_draws() -> str:
    """Where we differ: variance components of the toy data."""
    return markdown(*differences_tables.draw_rows(facts()), numbers=True)


def flips() -> str:
    """Where we differ: toy data with exactly three flips."""
    records = facts().records
    words = toy_flips.describe_flips(records).replace("β_max", "β<sub>max</sub>")
    return f"{markdown(*toy_flips.table_rows(records), numbers=True)}\n{words}\n"


def differing_cells(dataset: str) -> str:
    """Where we differ: the cells of one data set."""
    return differences_tables.differing_cells(facts(), dataset)


def mnist_points() -> str:
    """Where we differ: other selections of MNIST's images."""
    levels = mnist_selections.read_levels(facts().records)
    words = mnist_selections.describe_levels(levels).replace("β_max", "β<sub>max</sub>") + "\n"
    return f"{markdown(*mnist_selections.table_rows(levels), numbers=True)}\n{words}" if levels else words


def drop_empty(head: list[str], rows: list[list[str]]) -> str:
    """A table without the columns that nothing stands in."""
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    return markdown([head[i] for i in kept], [[row[i] for i in kept] for row in rows], numbers=True)


TABLES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "peers-speed": peers_speed,
    "updates-speed": updates_speed,
    "exact-cost": exact_cost,
    "chains-cost": chains_cost,
    "tempering": tempering,
    "temperatures": temperatures,
    "silent-failure": lambda: learning_tables.silent_failure(record("silent_failure")),
    "centring": lambda: learning_tables.centring(record("learning_digits")),
    "centred-start": lambda: learning_tables.centred_start(record("learning_digits")),
    "penalties": lambda: learning_tables.penalties(record("learning_digits")),
    "mirrored-mnist": lambda: learning_tables.mirrored(record("mirrored_chains")),
    "schemes": schemes,
    "gains": gains,
    "gains-held-out": gains_held_out,
    "hidden-units": hidden_units,
    "hidden-units-held-out": hidden_units_held_out,
    "drawn-hidden": drawn_hidden,
    "mirrored-chains": mirrored_chains,
    "toy-draws": toy_draws,
    "toy-level": lambda: f"{toy_flips.describe_level()}\n",
    "toy-flips": flips,
    "mnist-points": mnist_points,
    "mnist-kernels": lambda: f"{mnist_kernels.describe_kernels(mnist_kernels.read_pairs())}\n",
    "gain-agreement": lambda: f"{findings.gain_agreement(facts())}\n",
    "table-9": lambda: differences_tables.table_9(facts()).replace("β_max", "β<sub>max</sub>") + "\n",
    "mnist-levels": lambda: differences_tables.mnist_levels(facts()),
    **{f"differing-{name}": partial(differing_cells, name) for name in SETS},
}


def blocks(text: str) -> dict[str, str]:
    """The tables that a page holds, by name."""
    return {match[2]: match[3].strip() for match in _BLOCK.finditer(text)}


def main() -> None:
    """Write the tables again."""
    for name in PAGES:
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        new = _BLOCK.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[4]}", old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main()
