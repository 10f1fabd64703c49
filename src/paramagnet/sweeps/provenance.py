"""The environment of a run: versions, libraries, processor, commit."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def environment() -> str:
    """Python, NumPy, Numba, BLAS, the kernels of chains and the processor in one line."""
    from threadpoolctl import threadpool_info

    from paramagnet.sampling.int16 import kernels_here

    parts = [f"Python {platform.python_version()}"]
    for name in ("numpy", "numba"):
        try:
            parts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    libraries.sort(key=lambda library: "numpy" not in library["filepath"])  # SciPy may bring its own BLAS
    parts += [f"{library['internal_api']} {library['version']}" for library in libraries[:1]]
    parts.append(f"{kernels_here()} kernels")
    parts.append(_processor())
    return ", ".join(parts)[:120]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except (OSError, IndexError):
        names = []
    name = names[0] if names else platform.machine()
    return " ".join(name.replace("(R)", "").replace("(TM)", "").replace(" CPU", "").split())[:40]


@cache
def commit() -> str:
    """The short commit of the sources, with + where they differ from it; empty outside a repository."""
    folder = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "_version.py")  # else it belongs to another project
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""
