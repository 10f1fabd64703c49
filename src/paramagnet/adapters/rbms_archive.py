"""The machines of the package ``rbms`` (checked with 0.5): its HDF5 archives, read and written.

Its units are bits in both layers; ours become bits by an exact change of variables (`RBM.to_bits`). So the
likelihoods of this package can be computed for its machines, and it can train from our initial scale.

An archive holds groups ``update_N``, each with ``params/weight_matrix`` ``(n_visible, n_hidden)``,
``params/vbias`` and ``params/hbias``; beside them ``model_type``, the chains and the hyperparameters.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paramagnet._arrays import as_array, as_float64, shown
from paramagnet._checks import as_count, as_path, as_positive, as_real
from paramagnet._extras import missing_extra
from paramagnet._files import write_atomically
from paramagnet.rbm import RBM, as_rbm
from paramagnet.units import BIT, as_binary

_NAMES = ("weight_matrix", "vbias", "hbias")
_MODEL = "BBRBM"  # bits in both layers


def from_rbms(parameters: Any) -> RBM:
    """The machine of a ``BBRBM`` of the package ``rbms``, or of its ``named_parameters()``.

    Parameters
    ----------
    parameters : rbms.RBM or dict
        A ``BBRBM``, or its ``named_parameters()``.

    Returns
    -------
    RBM
        The machine.
    """
    if not isinstance(parameters, Mapping):
        name = getattr(parameters, "name", None)
        if name != _MODEL or not hasattr(parameters, "named_parameters"):
            raise ValueError(
                f"`parameters` must be a {_MODEL} of rbms, with bits in both layers, or the dictionary of "
                f"its parameters, got {type(parameters).__name__} {name or ''}".rstrip()
                + "."
            )
        parameters = parameters.named_parameters()
    missing = [name for name in _NAMES if name not in parameters]
    if missing:
        raise ValueError(
            f"`parameters` must hold {', '.join(_NAMES)}, got {shown(parameters)}; missing: "
            f"{', '.join(missing)}."
        )
    weights, visible_bias, hidden_bias = (
        as_float64(as_array(parameters[name], "parameters")) for name in _NAMES
    )
    if visible_bias.shape != weights.shape[:1] or hidden_bias.shape != weights.shape[1:]:
        shapes = weights.shape, visible_bias.shape, hidden_bias.shape
        raise ValueError(
            f"`parameters` must have the shapes (n, m), (n,) and (m,), got {', '.join(map(str, shapes))}."
        )
    return RBM(weights, visible_bias, hidden_bias, "bit", "bit")


def load_rbms(path: str | os.PathLike[str], *, update: int | None = None) -> RBM:
    """The machine in an archive that ``rbms`` wrote; bits in both layers.

    ``update`` is the number of the saved update, None takes the last one.

    Parameters
    ----------
    path : str or os.PathLike
        An archive that ``rbms`` wrote.
    update : int, optional
        Number of the saved update; None takes the last one.

    Returns
    -------
    RBM
        The machine.
    """
    source = as_path(path, "path")
    update = None if update is None else as_count(update, "update", minimum=0)
    with _open_archive(source) as file:
        updates = _saved_updates(file, source)
        model = _model_type(file)
        if model != _MODEL:
            raise ValueError(
                f"`path` must hold a machine of type {_MODEL}, with bits in both layers, "
                f"got {model!r}: {source}."
            )
        chosen = updates[-1] if update is None else update
        if chosen not in updates:
            shown = ", ".join(map(str, updates[:8])) + (", ..." if len(updates) > 8 else "")
            raise ValueError(f"`update` must be one that was saved ({shown}), got {chosen}: {source}.")
        group = file[f"update_{chosen}"]
        try:
            group = group.get("params", group)  # older archives have the arrays one level up
            return from_rbms({name: group[name][()] for name in _NAMES if name in group})
        except (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"`path` is a damaged archive of rbms: {source} ({error})") from None


def rbms_updates(path: str | os.PathLike[str]) -> list[int]:
    """The updates that an archive of ``rbms`` holds, in order.

    Parameters
    ----------
    path : str or os.PathLike
        An archive that ``rbms`` wrote.

    Returns
    -------
    list of int
        Numbers of the saved updates, in order.
    """
    source = as_path(path, "path")
    with _open_archive(source) as file:
        return _saved_updates(file, source)


def save_rbms(
    rbm: RBM,
    path: str | os.PathLike[str],
    *,
    chains: Any = None,
    seed: int | None = None,
    batch_size: int = 2000,
    gibbs_steps: int = 100,
    learning_rate: float = 0.01,
) -> None:
    """Write an archive that ``rbms`` reads: the machine in bits, as its update 1.

    Parameters
    ----------
    rbm : RBM
        The machine.
    path : str or os.PathLike
        File to write.
    chains : array_like, optional
        States of the visible units of ``rbm``, ``(n_chains, n_visible)``, for the chains of the archive; None
        takes 2000 chains drawn uniformly.
    seed : int, optional
        Seed of the random states of torch and NumPy that ``rbms`` asks for when it goes on training; this
        needs torch. With None they are left out: the machine can be loaded, not trained further.
    batch_size : int, default 2000
        Points per update when the training goes on.
    gibbs_steps : int, default 100
        Sweeps per update when the training goes on.
    learning_rate : float, default 0.01
        Learning rate when the training goes on.
    """
    h5py = _import_h5py()
    bits = as_rbm(rbm, "rbm").to_bits()
    target = as_path(path, "path")
    seed = None if seed is None else as_count(seed, "seed", minimum=0, maximum=2**64 - 1)
    rng = np.random.default_rng(seed)
    if chains is None:
        visible = rng.integers(0, 2, size=(2000, bits.n_visible)).astype(np.float64)
    else:
        states = rbm.visible.as_states(chains, "chains", rbm.n_visible)
        visible = np.where(states == as_binary(rbm.visible, "rbm").high, BIT.high, BIT.low)
    hyperparameters = {
        "num_hiddens": bits.n_hidden,
        "num_visibles": bits.n_visible,
        "num_chains": len(visible),
        "batch_size": as_count(batch_size, "batch_size"),
        "gibbs_steps": as_count(gibbs_steps, "gibbs_steps"),
        "filename": str(target),
        "learning_rate": float(as_positive(as_real(learning_rate, "learning_rate"), "learning_rate")),
        "train_size": 1.0,
        "seed": 0 if seed is None else seed,
        "L1": 0.0,
        "L2": 0.0,
    }
    arrays = dict(zip(_NAMES, (bits.weights, bits.visible_bias, bits.hidden_bias), strict=True))
    payload = io.BytesIO()
    with h5py.File(payload, "w") as file:
        for name, value in hyperparameters.items():
            file[f"hyperparameters/{name}"] = value
        file["model_type"] = _MODEL
        file["parallel_chains"] = visible
        checkpoint = file.create_group("update_1")
        for name, array in arrays.items():
            checkpoint[f"params/{name}"] = array
            checkpoint[name] = checkpoint[f"params/{name}"]  # as rbms does, for its older readers
        checkpoint["time"] = 0.0
        checkpoint["flags/checkpoint"] = True
        checkpoint["save_checkpoint"] = True
        if seed is not None:
            for name, state in _random_states(seed).items():
                checkpoint[name] = state
    write_atomically(path, payload.getvalue())


def _import_h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise missing_extra("An archive of rbms", "h5py", "rbms") from error
    return h5py


def _open_archive(source: Path) -> Any:
    """The HDF5 file at ``source``, open for reading."""
    h5py = _import_h5py()
    if not source.exists():
        raise FileNotFoundError(f"`path` does not exist: {source}.")
    if not source.is_file():
        raise ValueError(f"`path` must be a regular file: {source}.")
    try:
        return h5py.File(source, "r")
    except OSError as error:
        raise ValueError(f"`path` is not an HDF5 file, or a damaged one: {source} ({error}).") from None


def _saved_updates(file: Any, source: Path) -> list[int]:
    updates = sorted(int(name[7:]) for name in file if re.fullmatch(r"update_\d+", name))
    if not updates:
        raise ValueError(
            f"`path` must be an archive of rbms, with groups called update_1 and so on; "
            f"this HDF5 file holds {', '.join(sorted(file)[:8]) or 'nothing'}: {source}."
        )
    return updates


def _model_type(file: Any) -> str:
    try:
        name = file["model_type"][()]
    except (AttributeError, KeyError, OSError, TypeError):
        return ""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _random_states(seed: int) -> dict[str, Any]:
    """The states of torch's and of NumPy's global generator after ``seed``, under the names of ``rbms``."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing_extra("`seed` of `save_rbms`", "torch", "torch") from error
    states = {"torch_rng_state": torch.Generator().manual_seed(seed).get_state().numpy()}
    legacy = np.random.RandomState(seed % 2**32).get_state(legacy=True)  # what rbms itself uses
    return states | {f"numpy_rng_arg{index}": part for index, part in enumerate(legacy)}
