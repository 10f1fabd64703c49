"""One update with Adam, as everybody makes it every day: by paramagnet and by others, behind one interface.

Imported by the processes of `bench_updates.py`. All machines have bit units in both layers; batches of 100
points, drawn without replacement from 6,000; PCD with persistent chains, or CD from the batch. scikit-learn
has no Adam: it takes plain ascent, which is less work, and its updates are PCD-1 with a chain for every point
of the batch only. Centred updates are compared with those of ours that are not centred.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

BATCH, N_POINTS, RATE = 100, 6000, 1e-6  # the rate leaves the machine what it is


@dataclass(frozen=True)
class Work:
    """Sizes of one update; no chains stand for contrastive divergence."""

    n_visible: int
    n_hidden: int
    n_chains: int
    n_steps: int
    centred: bool = False

    def __str__(self) -> str:
        kind = f"PCD-{self.n_steps}, {self.n_chains} chains" if self.n_chains else f"CD-{self.n_steps}"
        return f"{kind}, {self.n_visible} x {self.n_hidden}{', centred' if self.centred else ''}"

    def machine(self) -> tuple[Any, Any]:
        """Weights as small as other packages start with (half of all units change in a sweep), and data."""
        rng = np.random.default_rng(0)
        scale = 0.1 if self.n_visible <= 100 else 0.01
        weights = rng.normal(0.0, scale, (self.n_visible, self.n_hidden))
        return weights, (rng.random((N_POINTS, self.n_visible)) < 0.3).astype(np.float64)


class Updater(Protocol):
    """What is timed."""

    def update(self) -> object:
        """Make one update."""


class Paramagnet:
    """`training_steps`, as `train` uses it."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        import paramagnet as pm

        if work.centred and "centred" not in inspect.signature(pm.training_steps).parameters:
            raise NotImplementedError("version 0.1 has no centred learning")
        weights, data = work.machine()
        chains = {"n_chains": work.n_chains, "n_relax": 5} if work.n_chains else {}
        kind = pm.PCD if work.n_chains else pm.CD
        centred = {"centred": True} if work.centred else {}
        self._steps = pm.training_steps(
            pm.RBM(weights, 0.0, 0.0, visible="bit", hidden="bit"),
            data,
            epochs=10**6,
            gradient=kind(n_steps=work.n_steps, n_threads=n_threads, **chains),
            optimizer=pm.Adam(RATE),
            batch_size=BATCH,
            evaluate=[],
            rng=0,
            **centred,
        )
        next(self._steps)
        self.update = self._steps.__next__


class Uncentred(Paramagnet):
    """The same update without centring, beside a centred one."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        if not work.centred:
            raise NotImplementedError("the update is not centred anyway")
        super().__init__(replace(work, centred=False), n_threads)


class _Batches:
    """Batches of tensors in a new order every epoch."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        import torch

        if work.centred:
            raise NotImplementedError("not written")
        torch.set_grad_enabled(False)
        if n_threads is not None:
            torch.set_num_threads(n_threads)
        weights, data = work.machine()
        self.torch, self.work = torch, work
        self.w = torch.tensor(weights, dtype=torch.float32)
        self.b, self.c = torch.zeros(work.n_visible), torch.zeros(work.n_hidden)
        self.data = torch.tensor(data, dtype=torch.float32)
        self.v = (torch.rand(work.n_chains or BATCH, work.n_visible) < 0.5).float()
        self.place, self.order, self.n_updates = N_POINTS, None, 0

    def chosen(self) -> Any:
        """The indices of the next batch."""
        if self.place + BATCH > N_POINTS:
            self.order, self.place = self.torch.randperm(N_POINTS), 0
        self.place += BATCH
        return self.order[self.place - BATCH : self.place]


class TorchInPlace(_Batches):
    """PyTorch as fast as it can be written: every product, draw and step goes into a buffer."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        super().__init__(work, n_threads)
        torch, n, m = self.torch, work.n_visible, work.n_hidden
        self.x, self.data_means = torch.empty(BATCH, n), torch.empty(BATCH, m)
        self.means_v, self.u_v = torch.empty_like(self.v), torch.empty_like(self.v)
        self.means_h = torch.empty(len(self.v), m)
        self.u_h, self.h = torch.empty_like(self.means_h), torch.empty_like(self.means_h)
        self.parameters = (self.w, self.b, self.c)
        self.gradient, self.first, self.second, self.room = (
            [torch.zeros_like(p) for p in self.parameters] for _ in range(4)
        )

    def update(self) -> None:
        torch = self.torch
        torch.index_select(self.data, 0, self.chosen(), out=self.x)
        if not self.work.n_chains:
            self.v.copy_(self.x)
        for _ in range(self.work.n_steps):
            torch.addmm(self.c, self.v, self.w, out=self.means_h)
            torch.lt(self.u_h.uniform_(), self.means_h.sigmoid_(), out=self.h)
            torch.addmm(self.b, self.h, self.w.T, out=self.means_v)
            torch.lt(self.u_v.uniform_(), self.means_v.sigmoid_(), out=self.v)
        torch.addmm(self.c, self.v, self.w, out=self.means_h).sigmoid_()
        torch.addmm(self.c, self.x, self.w, out=self.data_means).sigmoid_()
        of_w, of_b, of_c = self.gradient
        torch.mm(self.x.T, self.data_means, out=of_w)
        of_w.addmm_(self.v.T, self.means_h, beta=1.0 / BATCH, alpha=-1.0 / len(self.v))
        torch.sub(self.x.mean(0), self.v.mean(0), out=of_b)
        torch.sub(self.data_means.mean(0), self.means_h.mean(0), out=of_c)
        self.n_updates += 1
        rate, root = RATE / (1 - 0.9**self.n_updates), (1 - 0.999**self.n_updates) ** 0.5
        every = zip(self.parameters, self.gradient, self.first, self.second, self.room, strict=True)
        for parameter, gradient, first, second, room in every:
            first.lerp_(gradient, 0.1)
            second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            torch.sqrt(second, out=room).div_(root).add_(1e-8)
            parameter.addcdiv_(first, room, value=rate)


class TorchPlain(_Batches):
    """PyTorch as most people write it: `bernoulli` of `sigmoid`, and `torch.optim.Adam`."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        super().__init__(work, n_threads)
        self.parameters = [self.w, self.b, self.c]
        self.optimizer = self.torch.optim.Adam(self.parameters, lr=RATE, maximize=True)

    def update(self) -> None:
        torch, x = self.torch, self.data[self.chosen()]
        v = self.v if self.work.n_chains else x
        for _ in range(self.work.n_steps):
            h = torch.bernoulli(torch.sigmoid(v @ self.w + self.c))
            v = torch.bernoulli(torch.sigmoid(h @ self.w.T + self.b))
        self.v = v
        data, model = torch.sigmoid(x @ self.w + self.c), torch.sigmoid(v @ self.w + self.c)
        self.w.grad = x.T @ data / len(x) - v.T @ model / len(v)
        self.b.grad, self.c.grad = x.mean(0) - v.mean(0), data.mean(0) - model.mean(0)
        self.optimizer.step()


class Rbms(_Batches):
    """The package rbms with its plain gradient and `torch.optim.Adam`."""

    def __init__(self, work: Work, n_threads: int | None) -> None:
        super().__init__(work, n_threads)
        from rbms.bernoulli_bernoulli.classes import BBRBM
        from rbms.training.pcd import fit_batch_pcd

        if not work.n_chains:
            raise NotImplementedError("rbms has no such training loop")
        self.fit, self.machine = fit_batch_pcd, BBRBM(self.w, self.b, self.c)
        self.machine.init_grad()
        self.optimizer = self.torch.optim.Adam(self.machine.parameters(), lr=RATE, maximize=True)
        self.chains, self.ones = self.machine.init_chains(work.n_chains), self.torch.ones(BATCH)

    def update(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        self.chains, _ = self.fit(
            batch=(self.data[self.chosen()], self.ones),
            parallel_chains=self.chains,
            params=self.machine,
            gibbs_steps=self.work.n_steps,
            beta=1.0,
            centered=False,
        )
        self.optimizer.step()


class ScikitLearn:
    """`BernoulliRBM`, in float32 as in `fit`, by the method that makes each of its updates (`partial_fit`
    would turn all into float64): PCD-1 with as many chains as points, and plain ascent.
    """

    def __init__(self, work: Work, n_threads: int | None) -> None:
        from sklearn.neural_network import BernoulliRBM
        from threadpoolctl import threadpool_limits

        if (work.n_chains, work.n_steps, work.centred) != (BATCH, 1, False):
            raise NotImplementedError("scikit-learn has PCD-1 with a chain for every point of a batch only")
        weights, data = work.machine()
        self.limits = threadpool_limits(n_threads, "blas")
        self.data, self.rng = data.astype(np.float32), np.random.RandomState(0)
        self.model = BernoulliRBM(
            work.n_hidden, learning_rate=RATE, batch_size=BATCH, n_iter=1, random_state=0
        )
        self.model.fit(self.data[:BATCH])
        self.model.components_ = np.asarray(weights.T, order="F", dtype=np.float32)
        self.place, self.order = N_POINTS, np.arange(N_POINTS)

    def update(self) -> None:
        if self.place + BATCH > N_POINTS:
            self.order, self.place = self.rng.permutation(N_POINTS), 0
        self.place += BATCH
        self.model._fit(self.data[self.order[self.place - BATCH : self.place]], self.rng)


RIVALS = {
    "paramagnet": Paramagnet,
    "uncentred": Uncentred,
    "former": Paramagnet,  # of the former commit, in a process of its own
    "torch in place": TorchInPlace,
    "torch.bernoulli": TorchPlain,
    "rbms": Rbms,
    "scikit-learn": ScikitLearn,
}
