"""Where sampling runs: our own kernels on the processor, or PyTorch on one of its devices.

``"cpu"`` means the kernels, the default. ``"cuda"`` (``"cuda:1"``, ...) and ``"mps"`` mean PyTorch on a
graphics processor, ``"torch:cpu"`` means PyTorch on the processor, to compare the two engines or to try out
there what is to run on another. PyTorch is imported when one of these is chosen, not before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from paramagnet._arrays import shown
from paramagnet._extras import missing_extra
from paramagnet.units import BinaryUnit

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine

KERNELS = "cpu"
ON_PROCESSOR = "torch:cpu"
_GRAPHICS = re.compile(r"cuda(:\d{1,4})?|mps")


def as_engine(device: Any, *units: Any) -> TorchEngine | None:
    """The engine for ``device``, a name or a ``torch.device``; None stands for our own kernels.

    ``units`` are the types it has to sample; PyTorch samples binary ones.
    """
    name = str(device) if isinstance(device, str) or type(device).__module__ == "torch" else ""
    if name == KERNELS:
        return None
    if name != ON_PROCESSOR and not _GRAPHICS.fullmatch(name):
        raise ValueError(
            f"`device` must be 'cpu', 'torch:cpu', 'cuda', 'cuda:0' (1, ...) or 'mps', got {shown(device)}."
        )
    for unit in units:
        if not isinstance(unit, BinaryUnit):
            raise ValueError(f"`device` must be 'cpu' for machines with {unit} units, got {name!r}.")
    try:
        import torch
    except ImportError as error:
        raise missing_torch(f"`device` = {name!r}") from error
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    kind, _, index = name.partition(":")
    if name != ON_PROCESSOR and int(index or 0) >= counts[kind]:
        there = [KERNELS, ON_PROCESSOR, *(f"{k}:{i}" for k, count in counts.items() for i in range(count))]
        raise ValueError(
            f"`device` must be one that PyTorch {torch.__version__} finds here, that is one of "
            f"{', '.join(map(repr, there))}; got {name!r}."
        )
    from paramagnet.sampling.torch_engine import TorchEngine

    return TorchEngine(torch.device(name.removeprefix("torch:")))


def missing_torch(what: str) -> ImportError:
    """The error where PyTorch is not installed and ``what`` needs it."""
    return missing_extra(what, "PyTorch, which is not installed", "torch")
