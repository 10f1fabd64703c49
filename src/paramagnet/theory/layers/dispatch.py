"""The table from unit types to their theory; no other file of the theory distinguishes unit types.

A further type needs a file beside this one (``unit_theory.py`` says what it holds) and a registration here,
or from outside the package by ``theory_of.register(OwnUnit, OwnTheory.of)``.
"""

from __future__ import annotations

from functools import singledispatch

from paramagnet.theory.layers.binary import BinaryTheory
from paramagnet.theory.layers.drelu import DReLUTheory
from paramagnet.theory.layers.gaussian import GaussianTheory
from paramagnet.theory.layers.labels import CategoricalTheory
from paramagnet.theory.layers.relu_average import ReLUTheory
from paramagnet.theory.layers.unit_theory import UnitTheory
from paramagnet.units import BinaryUnit, CategoricalUnit, DReLUUnit, GaussianUnit, ReLUUnit, Unit


@singledispatch
def theory_of(unit: Unit, argument: str) -> UnitTheory:
    """The theory of a unit type; ``argument`` is the caller's name for the unit."""
    raise ValueError(
        f"`{argument}` must be spin, bit, Gaussian, categorical, dReLU or (hidden) relu units for the "
        f"theory, got {unit} units. "
        "`initialize` takes them with a scheme of fixed scale, such as `scheme='xavier'`."
    )


theory_of.register(BinaryUnit, BinaryTheory.of)
theory_of.register(GaussianUnit, GaussianTheory.of)
theory_of.register(CategoricalUnit, CategoricalTheory.of)
theory_of.register(ReLUUnit, ReLUTheory.of)
theory_of.register(DReLUUnit, DReLUTheory.of)
