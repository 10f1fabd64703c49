"""``paramagnet doctor``: what this installation has, what it will use, and whether it works."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from paramagnet._extras import how_to_install

# Packages of the extras, as they are imported and as they are installed.
_EXTRAS = {
    "plot": ("matplotlib",),
    "data": ("pooch", "pyarrow"),
    "sweep": ("loky", "distributed"),
    "torch": ("torch",),
    "jax": ("jax",),
    "sklearn": ("sklearn",),
    "rbms": ("h5py",),
}
_CORE = ("numpy", "scipy", "numba", "llvmlite", "threadpoolctl", "safetensors", "typer", "rich")
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def doctor(
    warm_up: Annotated[
        bool, typer.Option(help="Compile the kernels of exact sums, sampling and training, once, now.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which versions, extras, data folders, threads and kernels are in use, and try them out.

    The trial trains two small machines and compares a sampled likelihood with the exact one. The first one on
    a machine compiles the kernels, which takes about twenty seconds; they are kept for all later programs.
    """
    from paramagnet.cli.console import say

    facts = {
        "versions": _versions(),
        "extras": _extras(),
        "data": _data(),
        "kernels": _kernels(),
    }
    problem = None
    if warm_up:
        facts["trial"], problem = _trial()
    if as_json:
        typer.echo(json.dumps(facts, allow_nan=False))
    else:
        for title, lines in facts.items():
            typer.echo(title)
            for name, value in lines.items():
                say(f"  {name}: {value}")
        say("Everything works." if problem is None else f"Something is wrong: {problem}")
    if problem is not None:
        raise typer.Exit(1)


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_DISTRIBUTIONS.get(package, package))
    except PackageNotFoundError:
        return None


def _versions() -> dict[str, str]:
    import platform

    from paramagnet._version import __version__

    found = {"paramagnet": __version__, "Python": platform.python_version(), "system": platform.platform()}
    return found | {package: _version(package) or "not installed" for package in _CORE}


def _extras() -> dict[str, str]:
    found = {}
    for extra, packages in _EXTRAS.items():
        versions = {package: _version(package) for package in packages}
        missing = [package for package, version in versions.items() if version is None]
        there = ", ".join(f"{package} {version}" for package, version in versions.items() if version)
        remedy = f"not installed ({', '.join(missing)}): {how_to_install(extra)}"
        found[extra] = remedy if missing else there
    return found


def _data() -> dict[str, str]:
    import os
    from pathlib import Path

    from paramagnet.data.download import ENVIRONMENT, cache_folder

    named = os.environ.get(ENVIRONMENT, "")
    if not named:
        place = "not set; data sets come from the cache or are downloaded"
    else:
        place = named if Path(named).is_dir() else f"{named}, which is not a folder"
    try:
        cache = str(cache_folder())
    except ValueError:
        cache = f"none: downloads need pooch, {how_to_install('data')}"
    return {ENVIRONMENT: place, "cache of downloads": cache}


def _kernels() -> dict[str, str]:
    from paramagnet._parallel import count_cores
    from paramagnet.kernels.lookup import fill_codes
    from paramagnet.sampling.int16 import ENVIRONMENT, has_instructions, is_forbidden, kernels_here

    why = "AVX-512BW is there" if has_instructions() else "the processor has no AVX-512BW"
    if is_forbidden():
        why = f"{ENVIRONMENT} asks for them"
    compiled: Any = fill_codes
    folder = compiled.stats.cache_path  # Numba's own word, None where no folder can be written
    return {
        "threads": f"{count_cores()}, the cores this process may use",
        "sampling": f"{kernels_here()} ({why})",
        "compiled code": "not kept: no folder can be written" if folder is None else folder,
    }


def _trial() -> tuple[dict[str, str], str | None]:
    """Seconds and results of the trial; and what is wrong, if anything."""
    import time

    import numpy as np

    from paramagnet.initializers import initialize
    from paramagnet.learning.evaluation import LogZ
    from paramagnet.learning.gradients.persistent import PCD
    from paramagnet.learning.gradients.summed import Exact
    from paramagnet.learning.likelihood import log_likelihood
    from paramagnet.learning.training import train

    found, problem, limit = {}, None, 5.0
    points = np.random.default_rng(0).choice([0.0, 1.0], size=(200, 12), p=[0.7, 0.3])
    start = initialize(12, 8, visible="bit", hidden="bit", rng=0)
    for name, gradient in (("exact training", Exact()), ("sampled training", PCD(n_chains=100))):
        began = time.perf_counter()
        result = train(start, points, epochs=20, batch_size=50, gradient=gradient, rng=0, evaluate=20)
        exact = log_likelihood(result.rbm, points)
        found[name] = f"{exact.value:.3f} nats per point, {time.perf_counter() - began:.1f} s"
        if not np.isfinite(exact.value):
            problem = f"{name} ended at a log-likelihood that is no number."
    began = time.perf_counter()
    exact_log_z = LogZ("exact")(start).value
    sampled = LogZ("mais", n_samples=500, n_temperatures=200)(start, 0)
    distance = abs(sampled.value - exact_log_z) / max(sampled.error, 1e-12)
    found["ln Z by mAIS less the exact one"] = (
        f"{sampled.value - exact_log_z:+.4f} +- {sampled.error:.4f}, {time.perf_counter() - began:.1f} s"
    )
    if distance > limit:
        problem = f"the sampled ln Z is {distance:.0f} standard errors from the exact one."
    return found, problem
