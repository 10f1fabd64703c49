"""The entrants of the race: every one trains a machine of bits for so many seconds of wall time.

    python benchmarks/race_entrants.py ENTRANT SET N_HIDDEN SECONDS SEED MACHINE [--settings JSON]

One process per run; `race.py` starts them. The clock starts when data and packages are in memory and a short
training has been made and thrown away, so that nobody pays for compiling or for starting threads. Packages
use the threads that they use by default. The machine is converted by `paramagnet.adapters` and written to
the file MACHINE; the last line on standard output says how many updates were made in how many seconds.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import paramagnet as pm
from held_out_sets import Split, load_split

WARM_UP = 0.3  # seconds
Settings = dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """A machine of bits, and what it took."""

    rbm: pm.RBM
    n_updates: int
    seconds: float


@dataclass(frozen=True)
class Entrant:
    """A way to train; ``grid`` are the settings among which a validation set chooses, none for defaults."""

    train: Callable[[Split, int, float, int, Settings], Trained]
    units: str = "bit"
    grid: tuple[Settings, ...] = ()
    ours: bool = False
    settings: Settings = field(default_factory=dict)


def _paramagnet(recipe: str) -> Callable[[Split, int, float, int, Settings], Trained]:
    """What ``paramagnet train --recipe RECIPE --seconds SECONDS`` does, without its measurements."""

    def train(split: Split, n_hidden: int, seconds: float, seed: int, settings: Settings) -> Trained:
        from paramagnet.learning.recipe import choose_recipe
        from paramagnet.units import BIT, find_unit

        began, rng = time.perf_counter(), np.random.default_rng(seed)
        unit = find_unit(split.units, "units")
        found = choose_recipe(recipe, *split.learned.shape, unit, BIT, n_hidden=n_hidden)
        start = pm.initialize(
            split.learned.shape[1],
            n_hidden,
            visible=unit,
            scheme=found.scheme,
            gain=found.gain,
            visible_bias=found.visible_bias,
            data=split.learned if found.visible_bias == "data" else None,
            rng=rng,
        )
        count = 0

        def stop_in_time(state: Any) -> None:
            nonlocal count
            count = state.update
            if time.perf_counter() - began >= seconds:
                raise StopIteration

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.TrainingWarning)
            result = pm.train(
                start,
                split.learned,
                seconds=seconds - (time.perf_counter() - began),
                gradient=found.gradient,
                optimizer=pm.Adam(f"{found.schedule}({found.rate})"),
                batch_size=found.batch_size,
                centred=found.centred,
                evaluate=(),
                rng=rng,
                callback=stop_in_time,
            )
        return Trained(result.rbm.to_bits(), count, time.perf_counter() - began)

    return train


def _rbms(split: Split, n_hidden: int, seconds: float, seed: int, settings: Settings) -> Trained:
    """rbms 0.5: its own update and start, in a loop like that of its `train` without the files."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    torch.manual_seed(seed)
    began, count = time.perf_counter(), 0
    data = torch.tensor(split.learned, dtype=torch.float32)
    every = torch.ones(len(data), 1)
    holder = argparse.Namespace(data=data)
    machine = BBRBM.init_parameters(n_hidden, holder, torch.device("cpu"), torch.float32)
    machine.init_grad()
    chains = machine.init_chains(settings["n_chains"])
    optimizer = torch.optim.SGD(machine.parameters(), lr=settings["rate"], maximize=True)
    with torch.no_grad():
        while time.perf_counter() - began < seconds:
            chosen = torch.randperm(len(data))[: settings["batch_size"]]
            optimizer.zero_grad(set_to_none=False)
            chains, _ = fit_batch_pcd(
                batch=(data[chosen], every[chosen]),
                parallel_chains=chains,
                params=machine,
                gibbs_steps=settings["n_steps"],
                beta=1.0,
                centered=True,
            )
            optimizer.step()
            count += 1
    taken = time.perf_counter() - began
    from paramagnet.adapters.rbms_archive import from_rbms

    return Trained(from_rbms(machine), count, taken)


def _scikit(split: Split, n_hidden: int, seconds: float, seed: int, settings: Settings) -> Trained:
    """`BernoulliRBM` by `partial_fit` on the batches of `fit`, for as many epochs as there is time."""
    from sklearn.neural_network import BernoulliRBM

    from paramagnet.adapters.bernoulli import from_sklearn

    began, count, size = time.perf_counter(), 0, settings["batch_size"]
    model = BernoulliRBM(n_hidden, learning_rate=settings["rate"], batch_size=size, random_state=seed)
    data = split.learned.astype(np.float64)
    batches = [data[first : first + size] for first in range(0, len(data), size)]
    while True:
        for batch in batches:
            model.partial_fit(batch)
            count += 1
            if time.perf_counter() - began >= seconds:
                return Trained(from_sklearn(model), count, time.perf_counter() - began)


def _torch(split: Split, n_hidden: int, seconds: float, seed: int, settings: Settings) -> Trained:
    """A plain loop in PyTorch: PCD, `torch.bernoulli`, `torch.optim.Adam`, weights from N(0, 0.01**2)."""
    import torch

    torch.manual_seed(seed)
    began, count, place, size = time.perf_counter(), 0, 0, settings["batch_size"]
    data = torch.tensor(split.learned, dtype=torch.float32)
    w = 0.01 * torch.randn(data.shape[1], n_hidden)
    b, c = torch.zeros(data.shape[1]), torch.zeros(n_hidden)
    v = torch.bernoulli(torch.full((settings["n_chains"], data.shape[1]), 0.5))
    optimizer = torch.optim.Adam([w, b, c], lr=settings["rate"], maximize=True)
    order = torch.randperm(len(data))
    with torch.no_grad():
        while time.perf_counter() - began < seconds:
            if place >= len(data):
                order, place = torch.randperm(len(data)), 0
            x = data[order[place : place + size]]
            place += size
            for _ in range(settings["n_steps"]):
                h = torch.bernoulli(torch.sigmoid(v @ w + c))
                v = torch.bernoulli(torch.sigmoid(h @ w.T + b))
            learned, model = torch.sigmoid(x @ w + c), torch.sigmoid(v @ w + c)
            w.grad = x.T @ learned / len(x) - v.T @ model / len(v)
            b.grad, c.grad = x.mean(0) - v.mean(0), learned.mean(0) - model.mean(0)
            optimizer.step()
            count += 1
    taken = time.perf_counter() - began
    rbm = pm.RBM(w.double().numpy(), b.double().numpy(), c.double().numpy(), "bit", "bit")
    return Trained(rbm, count, taken)


_RBMS = {"rate": 0.01, "n_chains": 2000, "n_steps": 100, "batch_size": 2000}  # its defaults
_SCIKIT = {"rate": 0.1, "batch_size": 10}
_TORCH = {"rate": 0.001, "n_chains": 100, "n_steps": 1, "batch_size": 100}

ENTRANTS = {
    "paramagnet": Entrant(_paramagnet("recommended"), ours=True),
    "paramagnet, spins": Entrant(_paramagnet("recommended"), units="spin", ours=True),
    "paramagnet, paper": Entrant(_paramagnet("paper"), ours=True),
    "rbms": Entrant(_rbms, settings=_RBMS),
    "rbms, best": Entrant(
        _rbms,
        grid=(
            _RBMS,
            _RBMS | {"rate": 0.1},
            _RBMS | {"rate": 0.03, "n_chains": 500, "n_steps": 10, "batch_size": 500},
            _RBMS | {"rate": 0.1, "n_chains": 500, "n_steps": 10, "batch_size": 500},
            _RBMS | {"rate": 0.3, "n_chains": 500, "n_steps": 10, "batch_size": 500},
        ),
    ),
    "scikit-learn": Entrant(_scikit, settings=_SCIKIT),
    "scikit-learn, best": Entrant(
        _scikit, grid=(_SCIKIT, _SCIKIT | {"rate": 0.03}, _SCIKIT | {"rate": 0.01}, _SCIKIT | {"rate": 0.003})
    ),
    "PyTorch": Entrant(_torch, settings=_TORCH),
    "PyTorch, best": Entrant(
        _torch,
        grid=(
            _TORCH,
            _TORCH | {"rate": 0.0003},
            _TORCH | {"rate": 0.003},
            _TORCH | {"rate": 0.001, "n_steps": 10},
        ),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("entrant", choices=ENTRANTS)
    parser.add_argument("set")
    parser.add_argument("n_hidden", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int)
    parser.add_argument("machine")
    parser.add_argument("--settings", default="{}")
    options = parser.parse_args()
    entrant, settings = ENTRANTS[options.entrant], json.loads(options.settings)
    split = load_split(options.set, entrant.units)
    entrant.train(split, options.n_hidden, WARM_UP, options.seed + 1, settings)
    trained = entrant.train(split, options.n_hidden, options.seconds, options.seed, settings)
    trained.rbm.save(options.machine)
    print(json.dumps({"n_updates": trained.n_updates, "wall": round(trained.seconds, 2)}))


if __name__ == "__main__":
    main()
