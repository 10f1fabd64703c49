"""The seeds of a run: from the seed of the sweep, what the run is about, and the purpose of the numbers.

Gain and scheme do not enter: machines that differ in their initial scale alone see the same data, the same
mini-batches and the same random numbers of the chains, and their weights are the same normal draws, scaled.
The settings of learning and measuring do not enter either, so a longer run repeats a shorter one and goes
on. No seed depends on which other runs there are: adding a cell or a trial changes none.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from paramagnet.sweeps.spec import Run


def weight_seed(run: Run) -> int:
    """The seed of the initial weights; the same for all draws of the data that are to be compared."""
    return _derive("weights", run, **_machine(run), trial=run.trial // run.data.datasets)


def learning_seed(run: Run) -> int:
    """The seed of the order of the points and of the chains."""
    return _derive("learning", run, **_machine(run), trial=run.trial)


def annealing_seed(run: Run, epoch: int) -> int:
    """The seed of the estimate of ln Z after an epoch."""
    return _derive("annealing", run, **_machine(run), trial=run.trial, epoch=epoch)


def data_seed(run: Run) -> int | None:
    """The seed of the draw of the data; None for the first draw, which is that of `load_dataset`."""
    return None if run.dataset == 0 else _derive("data", run, dataset=run.dataset)


def held_out_seed(run: Run) -> int:
    """The seed of held-out points that are drawn or selected."""
    return _derive("held-out", run)


def _machine(run: Run) -> dict[str, object]:
    return {
        "visible": run.visible,
        "hidden": run.hidden,
        "n_hidden": run.n_hidden,
        "hidden_bias": run.hidden_bias,
    }


def _derive(stream: str, run: Run, **key: object) -> int:
    """A seed from 63 bits of a SHA-256."""
    content = [run.seed, stream, Path(run.data.name).name, run.data.n_points, sorted(key.items())]
    digest = hashlib.sha256(json.dumps(content).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
