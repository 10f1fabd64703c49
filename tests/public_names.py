"""The public names: those at the top of the package, and those of the packages below it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import paramagnet as pm

ROOMS = ("theory", "exact", "learning", "data", "sweeps")


def public_names() -> dict[str, Any]:
    """Every public object by its name, which is the same wherever it can be found."""
    found = {name: getattr(pm, name) for name in pm.__all__}
    for room in ROOMS:
        module = import_module(f"paramagnet.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            assert found.setdefault(name, value) is value, name
    found["SchemeReport"] = pm.package_scales.SchemeReport
    for name in ("effective_couplings", "strongest_contacts", "correct_products", "Couplings", "Contact"):
        found[name] = getattr(pm.couplings, name)
    return found
