"""The PyTorch engine on the processor against a loop by hand in PyTorch, and our kernels against both.

    python benchmarks/bench_torch.py [--rounds 5] [--machine FILE ...] [--json FILE]

784 x 500 units, two threads. The loop by hand is what one writes who wants speed and nothing else: buffers
made once, `addmm`, `sigmoid_`, `uniform_` and `lt` in place, float32. An update is 40 sweeps and the averages
of the gradient, from parameters in float64 to averages in float64. A step of mAIS is a sweep, the weights
of all hidden units at two temperatures, and their sum. Each --machine has 784 spin visible and 500 hidden
units; in a trained machine few units change in a sweep, which the kernels use and PyTorch does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    print('bench_torch needs PyTorch, which is not installed: pip install ".[torch]"')
    raise SystemExit(0) from None

import paramagnet as pm
from paramagnet.layout import Layout
from paramagnet.learning.moments import chain_moments
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.devices import as_engine
from paramagnet.sampling.layer import layers_of
from ratio import interleave, print_ratios, write_json

N_VISIBLE, N_HIDDEN, N_SWEEPS, N_TEMPERATURES = 784, 500, 40, 20
HAND, ENGINE, KERNELS = "PyTorch by hand", "paramagnet, torch:cpu", "paramagnet, cpu"


def levels_in_place(states: torch.Tensor, spin: bool) -> None:
    if spin:
        states.mul_(2.0).sub_(1.0)


def update_by_hand(rbm: pm.RBM, start: np.ndarray) -> Callable[[], object]:
    """A PCD update for spin visible units; factors of two stand for the span of spins."""
    n, spin = len(start), rbm.hidden.name == "spin"
    v = torch.tensor(start)
    p_v, u_v = torch.empty_like(v), torch.empty_like(v)
    h = torch.empty(n, N_HIDDEN)
    p_h, u_h = torch.empty_like(h), torch.empty_like(h)

    def call() -> object:
        w = torch.tensor(rbm.weights, dtype=torch.float32)
        b, c = (torch.tensor(x, dtype=torch.float32) for x in (rbm.visible_bias, rbm.hidden_bias))
        up, c = (2.0 * w, 2.0 * c) if spin else (w, c)
        down, b = 2.0 * w.t(), 2.0 * b
        for _ in range(N_SWEEPS):
            torch.addmm(c, v, up, out=p_h).sigmoid_()
            torch.lt(u_h.uniform_(), p_h, out=h)
            levels_in_place(h, spin)
            torch.addmm(b, h, down, out=p_v).sigmoid_()
            torch.lt(u_v.uniform_(), p_v, out=v)
            levels_in_place(v, True)
        means = torch.addmm(c, v, up, out=p_h).sigmoid_()
        levels_in_place(means, spin)
        return (v.t() @ means).div_(n).double().numpy(), v.mean(0).numpy(), means.mean(0).numpy()

    return call


def update_by_engine(rbm: pm.RBM, chains: Chains) -> Callable[[], object]:
    engine, layout = as_engine("torch:cpu"), Layout.of(rbm)
    assert engine is not None
    parameters = layout.flatten(rbm)
    return lambda: engine.sampled_moments(layout, parameters, chains, N_SWEEPS)


def update_by_kernels(rbm: pm.RBM, chains: Chains) -> Callable[[], object]:
    layout = Layout.of(rbm)

    def call() -> object:
        layers = layers_of(rbm)
        return chain_moments(layout, run_sweeps(layers, chains, N_SWEEPS, n_threads=2), layers[1])

    return call


def mais_by_hand(rbm: pm.RBM, n_samples: int) -> Callable[[], object]:
    """mAIS for spin visible and bit hidden units without visible bias, from the uniform distribution."""
    w = torch.tensor(rbm.weights, dtype=torch.float32)
    c, down = torch.tensor(rbm.hidden_bias, dtype=torch.float32), 2.0 * w.t()
    h = torch.empty(n_samples, N_HIDDEN)
    x, p_h, u_h = torch.empty_like(h), torch.empty_like(h), torch.empty_like(h)
    v = torch.empty(n_samples, N_VISIBLE)
    p_v, u_v = torch.empty_like(v), torch.empty_like(v)
    zero = torch.zeros(())

    def call() -> object:
        torch.lt(v.uniform_(), 0.5, out=v)
        levels_in_place(v, True)
        total = torch.zeros(n_samples, dtype=torch.float64)
        for k in range(N_TEMPERATURES):
            t0, t1 = k / N_TEMPERATURES, (k + 1) / N_TEMPERATURES
            torch.addmm(c, v, w, out=x)
            torch.logaddexp(torch.mul(x, t0, out=u_h), zero, out=u_h)
            torch.mul(x, t1, out=p_h)
            total += torch.logaddexp(p_h, zero, out=h).sub_(u_h).sum(1)
            torch.lt(u_h.uniform_(), p_h.sigmoid_(), out=h)
            torch.mm(h, down, out=p_v).mul_(t1).sigmoid_()
            torch.lt(u_v.uniform_(), p_v, out=v)
            levels_in_place(v, True)
        return torch.logsumexp(total, 0)

    return call


def report(title: str, times: dict[str, float]) -> dict[str, Any]:
    print_ratios(title, times, reference=HAND)
    result = {
        "seconds": times,
        "engine over hand": times[ENGINE] / times[HAND],
        "lead of the kernels over the engine": times[ENGINE] / times[KERNELS],
        "lead of the kernels over hand": times[HAND] / times[KERNELS],
    }
    words = (f"{name} {value:.2f}" for name, value in result.items() if name != "seconds")
    print(f"  {', '.join(words)}\n")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", nargs="*", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(2)
    machines = {
        f"fresh, {hidden}": pm.initialize(N_VISIBLE, N_HIDDEN, hidden=hidden, hidden_bias=bias, rng=0)
        for hidden, bias in (("bit", -5.0), ("spin", 0.0))
    }
    bits = machines["fresh, bit"]
    machines |= {Path(name).stem: pm.RBM.load(name) for name in options.machine}
    results: dict[str, Any] = {}
    for title, rbm in machines.items():
        for n_chains in (1000, 100):
            chains = Chains.start(rbm.visible, (n_chains, N_VISIBLE), np.random.default_rng(0))
            chains = run_sweeps(layers_of(rbm), chains, 300)
            rivals = {
                HAND: update_by_hand(rbm, chains.visible),
                ENGINE: update_by_engine(rbm, chains),
                KERNELS: update_by_kernels(rbm, chains),
            }
            name = f"PCD-40, {title}, {n_chains} chains"
            results[name] = report(name, interleave(rivals, rounds=options.rounds))
    for n_samples in (1000, 100):
        settings = {"n_samples": n_samples, "n_temperatures": N_TEMPERATURES, "rng": 0}
        rivals = {
            HAND: mais_by_hand(bits, n_samples),
            ENGINE: lambda s=settings: pm.estimate_log_partition(bits, device="torch:cpu", **s),
            KERNELS: lambda s=settings: pm.estimate_log_partition(bits, n_threads=2, **s),
        }
        name = f"mAIS, {N_TEMPERATURES} temperatures, {n_samples} samples"
        results[name] = report(name, interleave(rivals, rounds=options.rounds))
    if options.json:
        write_json(options.json, results, "numpy", "numba", "torch")


if __name__ == "__main__":
    main()
