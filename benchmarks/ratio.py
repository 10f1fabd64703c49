"""Compare rivals fairly on a busy machine: each in turn, many rounds, ratios of the fastest calls.

Serves all benchmarks:

    times = interleave({"ours": lambda: f(x), "textbook": lambda: g(x)}, rounds=20)
    print_ratios("20 x 20", times, reference="textbook")
    write_json("result.json", {"20 x 20": times})
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read before anything is timed: at the end the load contains that of the rivals.
LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def interleave(
    rivals: dict[str, Callable[[], object]],
    *,
    rounds: int = 10,
    at_least: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds of the fastest call of each rival.

    In each round every rival runs in turn, once, or as often as ``at_least`` seconds allow. Each call is
    timed on its own, after one that is not. Where all rivals have one thread, ``time.process_time`` is the
    fairer clock: on a busy machine a long call is always interrupted, a short one sometimes not.
    """
    best = dict.fromkeys(rivals, float("inf"))
    for call in rivals.values():
        call()
    for _ in range(rounds):
        for name, call in rivals.items():
            end = time.perf_counter() + at_least
            while True:
                start = clock()
                call()
                best[name] = min(best[name], clock() - start)
                if time.perf_counter() >= end:
                    break
    return best


def print_ratios(title: str, times: dict[str, float], reference: str) -> None:
    """One line per rival: milliseconds, and how many times faster it is than the reference."""
    print(title)
    for name, seconds in times.items():
        print(f"  {name:24s} {1e3 * seconds:12.3f} ms   {times[reference] / seconds:8.2f} x")


def machine_facts(*packages: str) -> dict[str, Any]:
    """What a reader needs to judge the figures; loads are means over a minute, now and at the start."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": load,
        "load_before": LOAD_BEFORE,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
    }


def write_json(path: str | Path, results: dict[str, Any], *packages: str) -> None:
    """Results with the facts of the machine, for the documentation to read."""
    record = {"machine": machine_facts(*packages), "results": results}
    Path(path).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
