"""Machines with ReLU and dReLU units by loops over visible states and quadrature over hidden values.

The potentials are written out again here; nothing of the package is used but the arrays of a machine.
"""

from __future__ import annotations

import itertools

import numpy as np

from paramagnet.rbm import RBM
from paramagnet.units import as_unit

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)


def potential(x, hidden, number_d=0.0, number_g=0.0):
    """``-ln p0(x)``; infinite where there is no such value."""
    if hidden == "relu":
        return np.where(x >= 0.0, 0.5 * x * x, np.inf)
    variance = np.where(x > 0.0, 1.0 + np.tanh(number_g), 1.0 - np.tanh(number_g))
    return 0.5 * x * x / variance + number_d * np.abs(x)


def points_and_weights(field, hidden, d=0.0, g=0.0):
    """Points of a quadrature over one hidden unit, and the logarithms of their weights, p0 included."""
    edges = np.unique(
        np.concatenate((np.linspace(0.0, 12.0, 40), np.linspace(0.0, 3.0 * abs(field) + 25.0, 120)))
    )
    if hidden == "drelu":
        edges = np.unique(np.concatenate((-edges, edges)))
    middles, halves = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] - edges[:-1])
    x = (middles[:, None] + halves[:, None] * _NODES).ravel()
    size = (halves[:, None] * _WEIGHTS).ravel()
    return x, np.log(size) - potential(x, hidden, d, g) + field * x


def columns(states, unit):
    """What the weights multiply: the values, or the indicators of labels, in their order."""
    if unit.width == 1:
        return states
    picked = states[..., None] == np.arange(unit.width)
    return picked.reshape(*states.shape[:-1], -1).astype(np.float64)


def averages(log_weights, *values):
    """``ln sum exp`` and the averages of ``values``."""
    largest = log_weights.max()
    p = np.exp(log_weights - largest)
    return largest + np.log(p.sum()), *((p * value).sum() / p.sum() for value in values)


class Oracle:
    """``ln Z`` and the averages of a machine with visible spins, bits or labels."""

    def __init__(self, rbm):
        self.rbm, kind = rbm, rbm.hidden.name
        numbers = rbm.hidden_parameters
        d, g = (numbers[name] if numbers else np.zeros(rbm.n_hidden) for name in
                ("theta_asymmetry", "gamma_asymmetry"))  # fmt: skip
        self.states = np.array(list(itertools.product(rbm.visible.values, repeat=rbm.n_visible)))
        self.columns = columns(self.states, rbm.visible)
        logs, means, sizes, slopes = [], [], [], []
        for v in self.columns:
            total, row = float(v @ rbm.visible_bias), []
            for j in range(rbm.n_hidden):
                field = rbm.hidden_bias[j] + sum(v[i] * rbm.weights[i, j] for i in range(v.size))
                x, w = points_and_weights(field, kind, d[j], g[j])
                t = np.tanh(g[j])
                gamma_slope = np.where(x > 0.0, -(1 - t * t) / (1 + t) ** 2, (1 - t * t) / (1 - t) ** 2)
                found = averages(w, x, -np.abs(x), -0.5 * gamma_slope * x * x)
                total += found[0]
                row.append(found[1:])
            logs.append(total)
            means.append([r[0] for r in row])
            sizes.append([r[1] for r in row])
            slopes.append([r[2] for r in row])
        logs = np.array(logs)
        self.log_z = float(np.logaddexp.reduce(logs))
        self.p = np.exp(logs - self.log_z)
        self.means, self.sizes, self.slopes = map(np.array, (means, sizes, slopes))

    def model(self, p=None):
        """``E[v h^T], E[h], E[v]``, and the averages of the derivatives in the two learned numbers."""
        p = self.p if p is None else p
        return (
            self.columns.T @ (p[:, None] * self.means), p @ self.means, p @ self.columns, p @ self.sizes,
            p @ self.slopes,
        )  # fmt: skip

    def shares(self, data):
        """The share of every visible state in the data."""
        return np.array([(data == v).all(axis=1).mean() for v in self.states])


def make_relu_machine(visible, hidden, n_visible=4, n_hidden=3, scale=0.5, seed=0):
    """A machine with normal weights and biases, and dReLU units of learned numbers that differ."""
    rng = np.random.default_rng(seed)
    n_rows = n_visible * as_unit(visible, "visible").width
    weights = rng.normal(0.0, scale, (n_rows, n_hidden))
    biases = rng.normal(0.0, 0.4, n_rows), rng.normal(0.0, 0.6, n_hidden)
    numbers = None
    if hidden == "drelu":
        names = "theta_asymmetry", "gamma_asymmetry"
        numbers = {name: rng.normal(0.0, 0.7, n_hidden) for name in names}
    return RBM(weights, *biases, visible, hidden, hidden_parameters=numbers)
