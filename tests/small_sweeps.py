"""Small sweeps for the tests of sweeps: exact and sampled, and what comes out of them undisturbed."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

from paramagnet.sweeps.executors import InProcess
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import Store
from paramagnet.sweeps.sweep import run_sweep

EXACT = """
trials = 2
[data]
name = "toy"
n_points = 40
held_out = "fresh"
held_out_points = 20
[machine]
n_hidden = [2, 3]
gains = [0.5, 1.0]
rivals = ["xavier"]
[learning]
learning_rate = 0.1
batch_size = 10
[measurement]
epochs = [3, 6]
curve = 4
"""
SAMPLED = EXACT.replace(
    "batch_size = 10", 'batch_size = 10\ngradient = "pcd"\nn_chains = 50\nn_steps = 2\nn_relax = 5'
).replace(
    "curve = 4",
    'curve = 4\nlog_partition = "mais"\nn_samples = 60\nn_temperatures = 30\n'
    "curve_samples = 20\ncurve_temperatures = 10",
)
SPECS = {"exact": EXACT, "sampled": SAMPLED}


def outcome(records):
    """Records without what differs from one execution to the next, sorted."""
    plain = (replace(record, seconds=0.0, finished="", commit="") for record in records)
    return sorted(record.to_line() for record in plain)


def sweep(spec, path, executor=None, **options):
    with Store(path) as store:
        return run_sweep(list(spec.runs()), store, executor or InProcess(), sweep=spec.name, **options)


@functools.cache
def whole(name):
    """What came out of a sweep that nothing interrupted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.jsonl"
        assert sweep(parse_spec(SPECS[name], name), path).finished
        results = outcome(Store(path).records())
    assert len(results) == 12
    return results
