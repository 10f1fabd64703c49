"""What training asks of a gradient estimator: of `Exact`, `PCD`, `CD`, and of a class of your own.

The gradient of the log-likelihood is an average over data less an average under the model
(`paramagnet.learning.moments`). Training finds the first one itself. An estimator finds the second one, and
keeps in a state what it needs from one update to the next: Markov chains, for instance. The state is part of
every checkpoint, so that a resumed run equals one that was never interrupted, bit for bit.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from paramagnet.layout import Layout
from paramagnet.rbm import RBM
from paramagnet.sampling.layer import LARGEST_DRAWN
from paramagnet.units import FloatArray

if TYPE_CHECKING:
    from paramagnet.sampling.torch_engine import TorchEngine


@dataclass(frozen=True)
class Particles:
    """How a gradient samples the model: ``n_chains`` chains make ``n_steps`` sweeps an update from where they
    are; None stands for chains that start from the points of the batch, one each.
    """

    n_chains: int | None
    n_steps: int
    n_threads: int | None = None


class ModelMoments(NamedTuple):
    """Averages under the model, and ``ln Z`` where it comes with them.

    ``average`` is one float64 vector in the order of `Layout`: ``E[v_i h_j]``, ``E[h_j]``, ``E[v_i]``.
    """

    average: FloatArray
    log_z: float | None = None


class GradientState(Protocol):
    """What a gradient estimator keeps from one update to the next; it never changes, each update makes a new
    one. `Chains` is such a state, and `ArrayState` is one for anything else.
    """

    def to_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays of the state by name, for a checkpoint."""

    def to_facts(self) -> Mapping[str, Any]:
        """The rest of the state: numbers, texts, lists and dictionaries of them, as JSON has them."""


@dataclass(frozen=True, eq=False)
class ArrayState:
    """A state that is some arrays and some facts: the form in which states are read from a checkpoint."""

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays by name."""
        return self.arrays

    def to_facts(self) -> Mapping[str, Any]:
        """The facts by name."""
        return self.facts


class Gradient(ABC):
    """An estimator of the averages under the model: the base class of `Exact`, `PCD`, `CD` and of your own.

    A subclass has to define `start` and `moments`. Its settings should be the fields of a frozen dataclass: a
    checkpoint describes them, and going on with others is refused (fields named ``n_threads`` or ``force``,
    and those declared with ``compare=False``, are left out, because they do not change results).

    The class attributes say how training treats it.

    Attributes
    ----------
    exact : bool
        Whether `moments` returns the exact averages, which depend on the parameters alone, and ``ln Z`` with
        them; training then uses those of a measurement again for the next update.
    dtype : type
        Type of the points in a batch.
    largest : float
        Norm of the parameters beyond which a run counts as diverged.
    n_threads : int or None
        Threads for the averages over the data; None takes all cores.
    """

    exact: bool = False
    dtype: npt.DTypeLike = np.float32
    largest: float = LARGEST_DRAWN
    n_threads: int | None = None

    @abstractmethod
    def start(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: FloatArray,
        rng: np.random.Generator,
        engine: TorchEngine | None,
    ) -> GradientState | None:
        """The state before the first update; None where there is nothing to keep.

        ``parameters`` is the read-only vector that ``layout`` describes, ``points`` are all data,
        ``rng`` is the only source of random numbers to be used, and ``engine`` is PyTorch, or None for our
        own kernels (always None unless `check` allows devices).
        """

    @abstractmethod
    def moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
    ) -> tuple[GradientState | None, ModelMoments]:
        """The next state, and the averages under the model with these ``parameters``.

        ``points`` are those of the batch. The result must depend on the arguments alone: random numbers come
        from a seed in the state.
        """

    def weighted_moments(
        self,
        layout: Layout,
        parameters: FloatArray,
        points: npt.NDArray[Any],
        state: GradientState | None,
        engine: TorchEngine | None,
        weights_of_points: FloatArray | None,
    ) -> tuple[GradientState | None, ModelMoments]:
        """What training calls: `moments`, with weights of the points of the batch where they have some (mean
        one). By default the weights are not used; chains that start from points should have theirs.
        """
        return self.moments(layout, parameters, points, state, engine)

    def check(self, rbm: RBM, engine: TorchEngine | None) -> None:
        """Raise a ValueError if a run from ``rbm`` on ``engine`` is not possible; called before it starts."""
        if engine is not None:
            raise ValueError(
                f"`device` must be 'cpu' for the gradient {type(self).__name__}, got {engine.name!r}. Leave "
                "`device` out, or sample gradients with `PCD()`."
            )

    def particles(self) -> Particles | None:
        """How the model is sampled, for the compiled update of machines with units of two values; None where
        averages come from `moments` only. A class that says more than None must have the same averages in
        `moments`, which serves all other units and devices.
        """
        return None

    def restore(self, layout: Layout, state: ArrayState) -> GradientState | None:
        """The state that was read from a checkpoint as one of this class's own; by default as it is."""
        return state

    def fits(self, state: GradientState | None) -> bool:
        """Whether ``state``, that of a run on other data, can be taken over in place of a new start."""
        return False


def pack_state(state: GradientState) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """A state as float64 arrays and JSON, for a checkpoint; raises where that would not keep every bit."""
    owner = type(state).__name__
    arrays, dtypes = {}, {}
    for name, array in state.to_arrays().items():
        values = np.asarray(array)
        if values.dtype.kind not in "biuf" or not np.array_equal(
            values.astype(np.float64).astype(values.dtype), values, equal_nan=values.dtype.kind == "f"
        ):
            raise ValueError(
                f"`to_arrays` of {owner} must return arrays whose numbers float64 can hold, as checkpoints "
                f"do, got {values.dtype} for {name!r}. Put large integers into `to_facts`."
            )
        arrays[name], dtypes[name] = values.astype(np.float64), values.dtype.name
    facts = dict(state.to_facts())
    try:
        kept = json.loads(json.dumps(facts))
    except (TypeError, ValueError):
        kept = None
    if kept != facts:
        raise ValueError(
            f"`to_facts` of {owner} must return what JSON can hold (numbers, texts, lists, and dictionaries "
            f"with texts as keys), got {facts!r}. Put arrays into `to_arrays`."
        )
    return arrays, {"dtypes": dtypes, "facts": facts}


def unpack_state(arrays: Mapping[str, FloatArray], content: Mapping[str, Any]) -> ArrayState:
    """The reverse of `pack_state`; the arrays are read-only."""
    if arrays.keys() != content["dtypes"].keys():
        raise ValueError("the arrays of the gradient's state are not those it was saved with")
    unpacked: dict[str, npt.NDArray[Any]] = {}
    for name, array in arrays.items():
        unpacked[name] = array.astype(np.dtype(content["dtypes"][name]))
        unpacked[name].setflags(write=False)
    return ArrayState(unpacked, dict(content["facts"]))
