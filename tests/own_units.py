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


class Tilted(Unit):
    """A variable with given values and one more learned number: ``ln p0(x) = theta x**2``."""

    parameters = ("theta",)

    def __init__(self, name, values):
        self.name, self.values = name, values

    def __eq__(self, other):
        return isinstance(other, Tilted) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def _weights(self, field):
        """Weights of all values along a new first axis, and the logarithm of their sum."""
        x = np.reshape(self.values, (-1, *(1,) * np.ndim(field)))
        logarithms = x * field + self.numbers["theta"] * x * x
        total = np.logaddexp.reduce(logarithms, axis=0)
        return x, np.exp(logarithms - total), total

    def log_trace(self, field):
        return self._weights(field)[2]

    def mean(self, field):
        x, p, _ = self._weights(field)
        return (x * p).sum(axis=0)

    def draw(self, field, rng):
        _, p, _ = self._weights(field)
        index = (rng.random(np.shape(field)) > np.cumsum(p, axis=0)[:-1]).sum(axis=0)
        return np.array(self.values)[index]

    def random_start(self, shape, rng):
        return rng.choice(self.values, size=shape)

    def log_base(self, states):
        return np.sum(self.numbers["theta"] * states**2, axis=-1)

    def is_value(self, array):
        return np.isin(array, self.values)

    def statistics(self, states):
        return {"theta": states**2}

    def mean_statistics(self, field):
        x, p, _ = self._weights(field)
        return {"theta": (x * x * p).sum(axis=0)}


TRIT = Trit()
TILTED_BIT = Tilted("tilted-bit", (0.0, 1.0))
TILTED_TRIT = Tilted("tilted-trit", (-1.0, 0.0, 1.0))
OWN = {unit.name: unit for unit in (TRIT, TILTED_BIT, TILTED_TRIT)}


@pytest.fixture
def own_names():
    """The names of these types, known during a test."""
    for name, unit in OWN.items():
        register_unit(name, unit)
    yield
    for name in OWN:
        del UNITS[name]
