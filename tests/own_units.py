"""Unit types as a user would write them, outside the package."""

from __future__ import annotations

import numpy as np
import pytest

from paramagnet.units import UNITS, Unit, register_unit


class Trit(Unit):
    """A variable that is -1, 0 or 1; zero weighs as much as ``rest`` of the others."""

    name = "trit"
    values = (-1.0, 0.0, 1.0)
    symmetric = True
    rest = 2.0

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(self.name)

    def log_trace(self, field):
        return np.logaddexp(np.logaddexp(field, -field), np.log(self.rest))

    def mean(self, field):
        return (np.exp(field - self.log_trace(field))) - np.exp(-field - self.log_trace(field))

    def draw(self, field, rng):
        u, log_total = rng.random(np.shape(field)), self.log_trace(field)
        low, high = np.exp(-field - log_total), np.exp(field - log_total)
        return np.where(u < low, -1.0, np.where(u >= 1.0 - high, 1.0, 0.0))

    def log_base(self, states):
        return np.log(self.rest) * np.sum(states == 0.0, axis=-1)

    def is_value(self, array):
        return np.isin(array, self.values)


TRIT = Trit()
OWN = {"trit": TRIT}


@pytest.fixture
def own_names():
    """The names of these types, known during a test."""
    for name, unit in OWN.items():
        register_unit(name, unit)
    yield
    for name in OWN:
        del UNITS[name]
