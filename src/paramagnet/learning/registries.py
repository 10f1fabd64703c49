"""Gradient estimators and optimizers by name, for the command line and for specifications.

A class in these registries can be chosen in both; its fields become flags and keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._registry import Registry

if TYPE_CHECKING:  # imported when a class is asked for: names alone must not load the kernels
    from paramagnet.learning.gradients.base import Gradient
    from paramagnet.learning.optimizers import Optimizer

_HERE = "paramagnet.learning"

GRADIENTS: Registry[Gradient] = Registry(
    {
        "exact": f"{_HERE}.gradients.summed:Exact",
        "pcd": f"{_HERE}.gradients.persistent:PCD",
        "cd": f"{_HERE}.gradients.contrastive:CD",
        "tempering": f"{_HERE}.gradients.tempered:Tempering",
    },
    base=f"{_HERE}.gradients.base:Gradient",
)
OPTIMIZERS: Registry[Optimizer] = Registry(
    {"adam": f"{_HERE}.optimizers:Adam", "sgd": f"{_HERE}.optimizers:SGD"}, members=("start", "step")
)
