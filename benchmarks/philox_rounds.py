"""Philox with 7 rounds in place of 10: the time of a draw and of a sweep, and the tests of random numbers.

    python benchmarks/philox_rounds.py [--rounds 30] [--draws 1e8] [--only time|tests] [--json FILE]

The number of rounds is no setting of the package: this script makes two copies of it, one of them with
another number in the source, and compiles both (about ten seconds each). Each copy must first make the random
words and the chains of a slow reference with its number of rounds. Then two processes make the same work in
turn (processor time, one thread), and the ratio is that of the fastest calls. Sums in int16 need AVX-512BW;
elsewhere the sweeps are those of the portable kernels.

The tests are those of `tests/kernels/test_random_numbers.py`: passed if the smallest of all p-values is above
0.001 over their number. 1e8 draws take some minutes for each copy.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from against_commit import Side, compare, fresh_machine, quantiles, serve
from ratio import write_json

ROOT = Path(__file__).parents[1]
TEN, SEVEN = "10 rounds", "7 rounds"
# Where the source counts rounds, and how many of them are made before: the kernels in int16 make the first
# three with what is equal for all chains or all units.
PLACES = {"sampling.py": ("range(10)", 2, 0), "vectors.py": ("range(7)", 1, 3)}


def copy_with(n_rounds: int, tree: Path) -> Path:
    """A copy of the package with this number of rounds, in ``tree``."""
    package = tree / "src" / "paramagnet"
    shutil.copytree(ROOT / "src" / "paramagnet", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (text, count, before) in PLACES.items():
        path = package / "kernels" / name
        source = path.read_text(encoding="utf-8")
        assert source.count(text) == count, f"{name} does not count rounds as it did: {text}"
        path.write_text(source.replace(text, f"range({n_rounds - before})"), encoding="utf-8")
    return tree


def draw(n_chains: int, n_units: int) -> Callable[[], object]:
    """A draw of a layer in fields of order one, by the portable kernels."""
    from paramagnet.kernels import sampling

    fields = np.random.default_rng(0).normal(size=(n_chains, n_units)).astype(np.float32)
    shift, old, new = np.zeros(n_units, np.float32), np.zeros_like(fields), np.empty_like(fields)
    return partial(sampling.draw, fields, 1.0, shift, (0.0, 1.0), (5, 0, 1, 1), old, new)


def sweeps(n_visible: int, n_hidden: int) -> Callable[[], object]:
    """40 sweeps of 1000 chains."""
    from paramagnet.sampling.chains import Chains, run_sweeps
    from paramagnet.sampling.layer import layers_of

    rbm = fresh_machine(n_visible, n_hidden)
    layers = layers_of(rbm)
    chains = Chains.start(rbm.visible, (1000, n_visible), np.random.default_rng(0))
    return partial(run_sweeps, layers, chains, 40, n_threads=1, with_fields=False)


def works() -> dict[str, Callable[[], Callable[[], Any]]]:
    """What is timed."""
    made: dict[str, Callable[[], Callable[[], Any]]] = {
        "a draw of 1000 chains x 500 units, portable": partial(draw, 1000, 500)
    }
    for n, m in ((784, 500), (20, 20)):
        made[f"40 sweeps of 1000 chains, {n} x {m}, fresh"] = partial(sweeps, n, m)
    return made


def check(n_rounds: int, n_draws: float) -> None:
    """Compare the words and chains of this process with the reference; print what the tests say."""
    import float32_reference as reference
    import random_statistics as statistics
    from paramagnet.kernels import sampling
    from paramagnet.sampling import int16
    from paramagnet.sampling.chains import Chains, run_sweeps
    from paramagnet.sampling.layer import layers_of

    reference.ROUNDS = n_rounds
    found = np.empty((30, 70), np.float32)
    sampling.fill_uniform(found, 5, 0, 3, 1)
    words = reference.philox_words(5, np.arange(30), 70, 3, 1)
    expected = (words >> np.uint32(9)).astype(np.float32) * np.float32(2.0**-23) + np.float32(2.0**-24)
    assert np.array_equal(found, expected)
    if int16.kernels_here() == int16.INT16:
        rbm = fresh_machine(40, 30)
        chains = Chains.start(rbm.visible, (100, 40), np.random.default_rng(0))
        moved = run_sweeps(layers_of(rbm), chains, 10).visible
        assert np.array_equal(moved, reference.run_sweeps(layers_of(rbm), chains.visible, chains.seed, 0, 10))
    n_in_block = statistics.N_SWEEPS * statistics.N_CHAINS * statistics.N_UNITS
    n_blocks = max(1, round(n_draws / n_in_block))
    p, name, n = statistics.worst(statistics.uniform_block, statistics.spin_block, n_blocks)
    print(json.dumps({"draws": n_blocks * n_in_block, "smallest": p, "of": name, "statistics": n}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="turns of each process")
    parser.add_argument("--draws", type=float, default=1e8)
    parser.add_argument("--only", choices=("time", "tests"))
    parser.add_argument("--json")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--check", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(works())
        return
    if options.check:
        check(options.check, options.draws)
        return
    results: dict[str, Any] = {"rounds": options.rounds}
    with tempfile.TemporaryDirectory() as folder:
        trees = {f"{n} rounds": copy_with(n, Path(folder) / str(n)) for n in (10, 7)}
        for name, tree in trees.items():
            draws = options.draws if options.only != "time" else 1.0
            path = os.pathsep.join(map(str, (tree / "src", ROOT / "tests")))
            command = [sys.executable, __file__, "--check", name.split()[0], "--draws", str(draws)]
            run = subprocess.run(
                command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
            )
            found = json.loads(run.stdout)
            found["passed"] = found["smallest"] > 1e-3 / found["statistics"]
            if options.only != "time":
                results[f"tests, {name}"] = found
                print(name, found, flush=True)
        if options.only != "tests":
            sides = {name: Side(tree, __file__) for name, tree in trees.items()}
            try:
                for work in works():
                    ten, seven = compare(sides[TEN], sides[SEVEN], work, options.rounds)
                    row = {TEN: min(ten), SEVEN: min(seven), "ratio": min(seven) / min(ten)}
                    results[work] = row | {"ratios of rounds": quantiles(ten, seven)}
                    print(f"{work}: {1e3 * min(ten):.3f} ms, 7 rounds {row['ratio']:.3f}", flush=True)
            finally:
                for side in sides.values():
                    side.end()
    if options.json:
        write_json(options.json, results, "numpy", "numba")


if __name__ == "__main__":
    main()
