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
    seed: Annotated[int | None, typer.Option(help="Seed of the draw.")] = None,
) -> None:
    """Draw independent visible states from a machine, exactly."""
    from paramagnet.learning.exact import sample_exact

    writable_target(out)
    if out.suffix.lower() not in (".npy", ".csv"):
        raise ValueError(f"`--out` must end in .npy or .csv, got {out}.")
    states = sample_exact(RBM.load(model), n_samples, rng=seed).astype(np.int8)
    buffer = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(buffer, states)
    else:
        np.savetxt(buffer, states, fmt="%d", delimiter=",")
    write_atomically(out, buffer.getvalue())
    typer.echo(f"{n_samples} exact samples: {out}")
