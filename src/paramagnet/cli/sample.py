"""``paramagnet sample``: states of a machine, to a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from paramagnet.rbm import RBM, writable_target, write_atomically


def sample(
    model: Annotated[Path, typer.Argument(help="The machine (.safetensors).")],
    n_samples: Annotated[int, typer.Option(help="How many states to draw.")],
    out: Annotated[Path, typer.Option(help="Where to write them: .npy or .csv.")],
    method: Annotated[str, typer.Option(help="auto, exact or gibbs.")] = "auto",
    steps: Annotated[int, typer.Option(help="Gibbs sweeps, where samples are not exact.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw.")] = None,
) -> None:
    """Draw independent visible states from a machine: exactly where affordable, else by Gibbs sampling.

    Gibbs chains start at random; whether --steps are enough depends on the machine.
    """
    from paramagnet.learning import gibbs
    from paramagnet.learning.exact import SECONDS_ALLOWED, estimate_seconds, sample_exact

    writable_target(out)
    if out.suffix.lower() not in (".npy", ".csv"):
        raise ValueError(f"`--out` must end in .npy or .csv, got {out}.")
    if method not in ("auto", "exact", "gibbs"):
        raise ValueError(f"`--method` must be auto, exact or gibbs, got {method!r}.")
    rbm, n_threads = RBM.load(model), gibbs.count_cores()
    if method == "auto":
        seconds = estimate_seconds(rbm.n_visible, rbm.n_hidden, n_threads=n_threads, gradient=False)
        method = "exact" if seconds <= SECONDS_ALLOWED else "gibbs"
    if method == "exact":
        states, how = sample_exact(rbm, n_samples, rng=seed, n_threads=n_threads), "exact samples"
    else:
        states = gibbs.sample(rbm, n_samples, n_steps=steps, rng=seed)
        how = f"samples after {steps} Gibbs sweeps from random states"
    buffer = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(buffer, states.astype(np.int8))
    else:
        np.savetxt(buffer, states, fmt="%d", delimiter=",")
    write_atomically(out, buffer.getvalue())
    typer.echo(f"{n_samples} {how}: {out}")
