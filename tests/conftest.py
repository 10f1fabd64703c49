"""What test files share. Modules beside this file can be imported in all folders of tests."""

from __future__ import annotations

import itertools
import os

import numpy as np

from paramagnet.rbm import RBM

# pytest imports readline, which may put the size of the terminal into the environment of the process, behind
# the back of os.environ. Commands that tests start would inherit it, and wrap their messages.
for _name in ("COLUMNS", "LINES"):
    if _name not in os.environ:
        os.unsetenv(_name)


def draw_machine(n_visible=5, n_hidden=3, visible="spin", hidden="bit", seed=0, scale=0.5):
    """A machine with normal weights and biases, all of the standard deviation ``scale``."""
    rng = np.random.default_rng(seed)
    sizes = ((n_visible, n_hidden), n_visible, n_hidden)
    return RBM(*(scale * rng.normal(size=size) for size in sizes), visible, hidden)


def make_machine(visible, hidden, n_visible=4, n_hidden=3, scale=0.5, seed=0):
    """A machine with normal weights of the standard deviation ``scale``, and biases of 0.4."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, scale, (n_visible, n_hidden))
    return RBM(weights, rng.normal(0.0, 0.4, n_visible), rng.normal(0.0, 0.4, n_hidden), visible, hidden)


def draw_data(n_points=23, n_visible=5, levels=(-1.0, 1.0), seed=1):
    """Points of independent, even values."""
    return np.random.default_rng(seed).choice(levels, size=(n_points, n_visible))


def states_of(unit, n_units):
    """All states of a layer whose units have finitely many values."""
    return np.array(list(itertools.product(unit.values, repeat=n_units)))
