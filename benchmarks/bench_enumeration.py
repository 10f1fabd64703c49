"""Exact log Z and moments: paramagnet against the textbook in NumPy and, where installed, in PyTorch.

    python benchmarks/bench_enumeration.py [--rounds 7] [--json FILE]

The textbook has all states of the smaller layer ready as an array, takes one product with the weights,
logaddexp, and one product for the moments. One thread each, in processor time; results are first checked to
agree.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paramagnet.kernels import enumeration
from ratio import interleave, print_ratios, write_json

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SIZES = [(20, 20), (20, 30), (16, 16), (16, 32)]
LEVELS = ((-1.0, 1.0), (0.0, 1.0))


def make_machine(k: int, m: int, scale: float = 0.3) -> tuple[Any, ...]:
    rng = np.random.default_rng([k, m])
    return scale * rng.normal(size=(k, m)), scale * rng.normal(size=k), scale * rng.normal(size=m), *LEVELS


def all_states(k: int) -> Any:
    return np.where((np.arange(2**k)[:, None] >> np.arange(k)) & 1, 1.0, -1.0)


def textbook_numpy(v: Any, w: Any, b: Any, c: Any) -> tuple[Any, ...]:
    field = v @ w
    field += c
    log_p = v @ b + np.logaddexp(0.0, field).sum(axis=1)
    top = log_p.max()
    log_z = top + np.log(np.exp(log_p - top).sum())
    p = np.exp(log_p - log_z)
    mean = 1.0 / (1.0 + np.exp(-field))
    return log_z, p @ v, p @ mean, v.T @ (p[:, None] * mean)


def textbook_torch(v: Any, w: Any, b: Any, c: Any) -> tuple[Any, ...]:
    field = torch.addmm(c, v, w)
    log_p = v @ b + torch.logaddexp(torch.zeros((), dtype=torch.float64), field).sum(1)
    log_z = torch.logsumexp(log_p, 0)
    p = torch.exp(log_p - log_z)
    mean = torch.sigmoid(field)
    return log_z, p @ v, p @ mean, v.T @ (p[:, None] * mean)


def against_textbook(rounds: int) -> dict[str, Any]:
    results = {}
    for k, m in SIZES:
        machine = make_machine(k, m)
        w, b, c = machine[:3]
        v = all_states(k)
        rivals = {
            "textbook NumPy": lambda v=v, w=w, b=b, c=c: textbook_numpy(v, w, b, c),
            "paramagnet": lambda machine=machine: enumeration.moments(*machine),
            "log Z only": lambda machine=machine: enumeration.log_partition(*machine),
        }
        if torch is not None:
            tensors = [torch.tensor(x) for x in (v, w, b, c)]
            rivals["textbook PyTorch"] = lambda tensors=tensors: textbook_torch(*tensors)
        ours = rivals["paramagnet"]()
        for name in rivals:
            if name.startswith("textbook"):
                for x, y in zip(ours, rivals[name](), strict=True):
                    assert np.abs(np.asarray(x) - np.asarray(y)).max() < 1e-11, name
        times = interleave(
            rivals, rounds=rounds if k >= 20 else 6 * rounds, at_least=0.05, clock=time.process_time
        )
        title = f"{k} x {m}"
        print_ratios(title, times, reference="textbook NumPy")
        if torch is not None:
            print(f"  over textbook PyTorch    {times['textbook PyTorch'] / times['paramagnet']:26.2f} x")
        results[title] = times
    return results


def side_by_side(work: Callable[[], Any]) -> None:
    """The same work on two threads that have nothing to do with each other."""
    other = threading.Thread(target=work)
    other.start()
    work()
    other.join()


def threads(rounds: int) -> dict[str, Any]:
    results = {}
    for k, m in [(20, 20), (20, 30), (22, 30)]:
        machine = make_machine(k, m)
        rivals = {f"threads {n}": lambda n=n, a=machine: enumeration.moments(*a, n_threads=n) for n in (1, 2)}
        rivals["two sums side by side"] = lambda a=machine: side_by_side(lambda: enumeration.moments(*a))
        times = interleave(rivals, rounds=4 * rounds, at_least=0.05)
        times["half of two side by side"] = 0.5 * times.pop("two sums side by side")  # no sharing can beat it
        print_ratios(f"threads, {k} x {m}", times, reference="threads 1")
        results[f"threads {k} x {m}"] = times
    return results


def growth(rounds: int) -> dict[str, Any]:
    small, large = make_machine(20, 30), make_machine(24, 30)
    times = interleave(
        {"k = 20": lambda: enumeration.moments(*small), "k = 24": lambda: enumeration.moments(*large)},
        rounds=3 * rounds,
        at_least=0.1,
        clock=time.process_time,
    )
    print(f"from k = 20 to k = 24, 30 summed units: {times['k = 24'] / times['k = 20']:.2f} times the cost")
    return {"growth": times}


def tiers(rounds: int) -> dict[str, Any]:
    rivals = {}
    for scale in (0.3, 5.0, 10.0, 40.0):
        machine = make_machine(20, 20, scale)
        tables = enumeration._Bits(*machine).tables
        kind = "by pairs" if tables.pairwise else f"{tables.groups.size - 1} group(s)"
        rivals[f"weights {scale:g}, {kind}"] = lambda machine=machine: enumeration.moments(*machine)
    times = interleave(rivals, rounds=rounds, clock=time.process_time)
    print_ratios("range of the weights, 20 x 20", times, reference=next(iter(times)))
    return {"tiers": times}


MEMORY = """
import re, numpy as np
from paramagnet.kernels import enumeration as e
def status(key): return int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
def machine(k): return 0.1 * np.ones((k, 30)), np.zeros(k), np.zeros(30), (-1.0, 1.0), (0.0, 1.0)
e.moments(*machine(3))
idle = status("VmRSS")
e.moments(*machine(24))
print(status("VmHWM") - idle)
"""
COMPILE = """
import time
from collections.abc import Callable
start = time.perf_counter()
import numpy as np
from paramagnet.kernels import enumeration as e
machine = np.zeros((2, 3)), np.zeros(2), np.zeros(3), (-1.0, 1.0), (0.0, 1.0)
e.log_partition(*machine), e.moments(*machine), e.draw_states(*machine, 2, np.random.default_rng(0))
print(time.perf_counter() - start)
"""


def fresh_process(code: str, cache: str | None = None) -> float:
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def processes() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        first, second = fresh_process(COMPILE, cache), fresh_process(COMPILE, cache)
    memory = fresh_process(MEMORY)
    print(f"import, compile and run all: {first:.1f} s with an empty cache, {second:.2f} s afterwards")
    print(f"peak memory at k = 24, 30 summed units, over the idle process: {memory:.1f} MB")
    return {"first start": first, "later start": second, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    with threadpool_limits(1):
        results: dict[str, Any] = against_textbook(options.rounds)
    for part in (threads, growth, tiers):
        results.update(part(options.rounds))
    results.update(processes())
    if options.json:
        write_json(options.json, results, "numpy", "numba", "torch")


if __name__ == "__main__":
    main()
