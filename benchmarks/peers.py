"""The same training update and the same annealing, done by paramagnet and by other packages.

An update, for all of them: the averages over a batch of data, ``n_steps`` Gibbs sweeps of persistent chains,
the averages over these with conditional means of the hidden layer, and one step of plain gradient ascent.
All machines have bit units in both layers, and float32 where chains are concerned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.partition_function.ais import compute_partition_function_ais
from rbms.training.pcd import fit_batch_pcd
from sklearn.neural_network import BernoulliRBM

import paramagnet as pm
from paramagnet.learning.moments import sampled_moments
from paramagnet.learning.training import training_steps

Array = Any


@dataclass(frozen=True)
class Task:
    """What an update is made of; ``points`` are the batch, ``states`` where the chains start."""

    rbm: pm.RBM
    points: Array
    states: Array
    n_steps: int
    rate: float


class Rival(Protocol):
    """One way to make updates."""

    def update(self) -> None:
        """Make one."""

    def sample(self) -> object:
        """The sampled part of one: the sweeps, and the averages over the chains."""

    def states(self) -> Array:
        """The visible states of the chains."""

    def step(self) -> Array:
        """The last change of weights, visible and hidden biases, over the rate, as one vector."""


def tensors(rbm: pm.RBM) -> tuple[Any, Any, Any]:
    """Weights, visible and hidden biases."""
    return tuple(
        torch.tensor(a, dtype=torch.float32) for a in (rbm.weights, rbm.visible_bias, rbm.hidden_bias)
    )


class Paramagnet:
    """`pm.train`, one update at a time."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._gradient = pm.PCD(n_chains=len(task.states), n_steps=task.n_steps, n_relax=500, n_threads=2)
        self._steps = training_steps(
            task.rbm,
            task.points,
            epochs=10**6,
            gradient=self._gradient,
            optimizer=pm.SGD(task.rate),
            evaluate=[],
            rng=0,
        )
        self._now = self._before = next(self._steps)

    def update(self) -> None:
        self._before, self._now = self._now, next(self._steps)

    def sample(self) -> object:
        state = self._now
        n_steps, n_threads = self._gradient.n_steps, self._gradient.n_threads
        return sampled_moments(state.layout, state.parameters, state.chains, n_steps, n_threads)

    def states(self) -> Array:
        return self._now.chains.visible

    def step(self) -> Array:
        change = (self._now.parameters - self._before.parameters) / self._task.rate
        return np.concatenate([a.ravel() for a in self._now.layout.split(change)])


class _Torch:
    """What the three users of PyTorch share."""

    def __init__(self, task: Task) -> None:
        self.rate, self.n_steps = task.rate, task.n_steps
        self.w, self.b, self.c = tensors(task.rbm)
        self.points = torch.tensor(task.points, dtype=torch.float32)
        self.v = torch.tensor(task.states, dtype=torch.float32)

    def states(self) -> Array:
        return self.v.numpy()

    def step(self) -> Array:
        return torch.cat([g.ravel() for g in self.gradient]).numpy().astype(float)

    def sample(self) -> object:
        self.sweep()
        model = torch.sigmoid(torch.addmm(self.c, self.v, self.w))
        return self.v.T @ model, model.mean(0), self.v.mean(0)

    def update(self) -> None:
        self.sweep()
        self.ascend()

    def ascend(self) -> None:
        """The gradient, with the chains ``self.v``, and a step along it."""
        data, model = (torch.sigmoid(torch.addmm(self.c, x, self.w)) for x in (self.points, self.v))
        n_points, n_chains = len(self.points), len(self.v)
        self.gradient = (
            torch.addmm(self.points.T @ data, self.v.T, model, beta=1 / n_points, alpha=-1 / n_chains),
            self.points.mean(0) - self.v.mean(0),
            data.mean(0) - model.mean(0),
        )
        for parameter, gradient in zip((self.w, self.b, self.c), self.gradient, strict=True):
            parameter.add_(gradient, alpha=self.rate)


class PlainTorch(_Torch):
    """`torch.bernoulli` of `torch.sigmoid`, as most people write it."""

    def sweep(self) -> None:
        v = self.v
        for _ in range(self.n_steps):
            h = torch.bernoulli(torch.sigmoid(v @ self.w + self.c))
            v = torch.bernoulli(torch.sigmoid(h @ self.w.T + self.b))
        self.v = v


class InPlaceTorch(_Torch):
    """Nothing is allocated: `addmm` into buffers, `sigmoid_`, `uniform_`, `lt`."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.mean_v, self.u_v = torch.empty_like(self.v), torch.empty_like(self.v)
        self.mean_h = torch.empty(len(self.v), len(self.c))
        self.u_h, self.h = torch.empty_like(self.mean_h), torch.empty_like(self.mean_h)

    def sweep(self) -> None:
        back = self.w.T
        for _ in range(self.n_steps):
            torch.addmm(self.c, self.v, self.w, out=self.mean_h)
            torch.lt(self.u_h.uniform_(), self.mean_h.sigmoid_(), out=self.h)
            torch.addmm(self.b, self.h, back, out=self.mean_v)
            torch.lt(self.u_v.uniform_(), self.mean_v.sigmoid_(), out=self.v)


class Rbms(_Torch):
    """The package rbms: `fit_batch_pcd` and `torch.optim.SGD`, without the centred gradient, which is another
    direction. It scales the gradient to unit length, and `step` is that.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.machine = BBRBM(self.w, self.b, self.c)
        self.machine.init_grad()
        self.optimizer = torch.optim.SGD(self.machine.parameters(), lr=task.rate, maximize=True)
        self.chains = self.machine.init_chains(len(self.v), start_v=self.v)
        self.batch = (self.points, torch.ones(len(self.points)))

    def sample(self) -> object:
        self.chains = self.machine.sample_state(self.chains, self.n_steps)
        v, means = self.chains["visible"], self.chains["hidden_mag"]
        return v.T @ means, means.mean(0), v.mean(0)

    def update(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        self.chains, _ = fit_batch_pcd(
            batch=self.batch,
            parallel_chains=self.chains,
            params=self.machine,
            gibbs_steps=self.n_steps,
            beta=1.0,
            centered=False,
        )
        self.optimizer.step()
        self.gradient = tuple(p.grad for p in self.machine.parameters())
        self.v = self.chains["visible"]


class ScikitLearn:
    """`BernoulliRBM.fit`: one sweep an update, as many chains as points, from weights of its own.

    (`partial_fit` turns float32 into float64.)
    """

    n_updates = 20  # in one `fit`

    def __init__(self, task: Task) -> None:
        assert task.n_steps == 1
        assert len(task.points) == len(task.states)
        self._points = task.points.astype(np.float32)
        self.model = BernoulliRBM(
            task.rbm.n_hidden,
            learning_rate=task.rate,
            batch_size=len(task.points),
            n_iter=self.n_updates,
            random_state=0,
        )

    def update(self) -> None:
        """Twenty of them."""
        self.model.fit(self._points)


def scikit_states(rbm: pm.RBM, states: Array, n_sweeps: int) -> Array:
    """Visible states of a given machine after Gibbs sweeps by `BernoulliRBM.gibbs`."""
    model = BernoulliRBM(rbm.n_hidden, random_state=np.random.RandomState(0))
    model.components_ = np.asfortranarray(rbm.weights.T)
    model.intercept_visible_, model.intercept_hidden_ = rbm.visible_bias, rbm.hidden_bias
    for _ in range(n_sweeps):
        states = model.gibbs(states)
    return states


def rbms_log_partition(rbm: pm.RBM, n_chains: int, n_temperatures: int) -> float:
    """The annealed importance sampling of rbms."""
    return float(compute_partition_function_ais(n_chains, n_temperatures + 1, BBRBM(*tensors(rbm))))
