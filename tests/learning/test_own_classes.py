"""Gradient estimators and optimizers written outside the package train, are kept in checkpoints, and resume
bit for bit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import paramagnet as pm
from own_classes import RestartedChains, RMSprop
from paramagnet.learning.gradients.base import ArrayState, Gradient, ModelMoments
from paramagnet.learning.optimizers import OptimizerState
from paramagnet.learning.preparing import take_over

# Classes of a user's


class BruteForce(Gradient):
    """Exact averages by a loop over all states of both layers; no dataclass, no settings."""

    exact = True
    dtype = np.float64

    def __repr__(self):
        return "BruteForce()"

    def start(self, layout, parameters, points, rng, engine):
        return None

    def moments(self, layout, parameters, points, state, engine):
        rbm = layout.machine(parameters)
        visible = np.array(list(itertools.product(rbm.visible.levels, repeat=rbm.n_visible)))
        hidden = np.array(list(itertools.product(rbm.hidden.levels, repeat=rbm.n_hidden)))
        log_weights = (visible @ rbm.weights + rbm.hidden_bias) @ hidden.T
        log_weights += (visible @ rbm.visible_bias)[:, None]
        log_z = float(np.logaddexp.reduce(log_weights, axis=None))
        shares = np.exp(log_weights - log_z)
        products = visible.T @ shares @ hidden
        average = np.concatenate((products.ravel(), shares.sum(0) @ hidden, shares.sum(1) @ visible))
        return None, ModelMoments(average, log_z)


@dataclass(frozen=True)
class Metropolis(Gradient):
    """Single-spin flips of visible states, kept as int8 in an `ArrayState` with a counter and a seed."""

    n_chains: int = 30
    n_flips: int = 8
    label: str = field(default="", compare=False)

    def start(self, layout, parameters, points, rng, engine):
        spins = rng.choice(np.array([-1, 1], np.int8), size=(self.n_chains, layout.n_visible))
        return ArrayState({"spins": spins}, {"seed": int(rng.integers(2**63)), "calls": 0})

    def moments(self, layout, parameters, points, state, engine):
        rbm = layout.machine(parameters)
        rng = np.random.default_rng([state.facts["seed"], state.facts["calls"]])
        spins = state.arrays["spins"].astype(float)
        for _ in range(self.n_flips):
            flipped, unit = spins.copy(), rng.integers(layout.n_visible)
            flipped[:, unit] *= -1.0
            gain = rbm.free_energy(spins) - rbm.free_energy(flipped)
            spins = np.where((np.log(rng.random(len(spins))) < gain)[:, None], flipped, spins)
        means = rbm.mean_h_given_v(spins)
        average = np.concatenate(((spins.T @ means).ravel() / len(spins), means.mean(0), spins.mean(0)))
        facts = {**state.facts, "calls": state.facts["calls"] + 1}
        return ArrayState({"spins": spins.astype(np.int8)}, facts), ModelMoments(average)

    def fits(self, state):
        return isinstance(state, ArrayState)


@dataclass(frozen=True)
class Counter:
    """A state of a class of its own."""

    means: np.ndarray
    n_calls: int

    def to_arrays(self):
        return {"means": self.means}

    def to_facts(self):
        return {"n_calls": self.n_calls}


@dataclass(frozen=True)
class RunningMean(Gradient):
    """Independent units with a running mean of the batches; its state has a class of its own."""

    weight: float = 0.1

    def start(self, layout, parameters, points, rng, engine):
        return Counter(points.mean(0), 0)

    def moments(self, layout, parameters, points, state, engine):
        assert isinstance(state, Counter)
        means = (1.0 - self.weight) * state.means + self.weight * points.mean(0)
        hidden = layout.machine(parameters).mean_h_given_v(means)
        average = np.concatenate((np.outer(means, hidden).ravel(), hidden, means))
        return Counter(means, state.n_calls + 1), ModelMoments(average)

    def restore(self, layout, state):
        return Counter(state.arrays["means"], state.facts["n_calls"])


MACHINE = pm.initialize(6, 3, rng=0)
DATA = np.where(np.random.default_rng(1).random((40, 6)) < np.linspace(0.2, 0.9, 6), 1.0, -1.0)
OWN_GRADIENTS = (RestartedChains(), BruteForce(), Metropolis(), RunningMean())


def run(start=MACHINE, data=DATA, **options):
    settings = {"epochs": 6, "gradient": pm.PCD(20, 2, 3), "optimizer": pm.SGD(0.05), "batch_size": 13}
    return pm.train(start, data, **(settings | {"evaluate": 3, "rng": 4} | options))


def interrupt(path, update, **options):
    """The checkpoint of a run that ended after so many updates."""

    def stop(state):
        if state.update == update:
            raise StopIteration

    result = run(callback=stop, checkpoint=path, **options)
    assert not result.finished
    return pm.load_checkpoint(path)


def require_same(one, other):
    np.testing.assert_array_equal(one.rbm.weights, other.rbm.weights)
    np.testing.assert_array_equal(one.rbm.visible_bias, other.rbm.visible_bias)
    for name in ("log_likelihood", "gradient_norm", "error"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))
    for slot, expected in zip(
        one.state.optimizer_state.slots, other.state.optimizer_state.slots, strict=True
    ):
        np.testing.assert_array_equal(slot, expected)


@pytest.mark.parametrize("gradient", OWN_GRADIENTS, ids=lambda gradient: type(gradient).__name__)
@pytest.mark.parametrize("update", [4, 6, 12, 21])  # in the midst of an epoch, and at its end
def test_a_gradient_of_ones_own_resumes_bit_for_bit(gradient, update, tmp_path):
    whole = run(gradient=gradient)
    state = interrupt(tmp_path / "run", update, gradient=gradient)
    again = run(state, gradient=gradient)
    assert whole.finished
    assert again.finished
    assert state.update == update
    require_same(again, whole)
    assert pm.sample(again.rbm, 5, n_steps=3, rng=0).shape == (5, 6)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(20, 2, 3), RestartedChains()])
def test_an_optimizer_of_ones_own_resumes_bit_for_bit(gradient, tmp_path):
    options = {"gradient": gradient, "optimizer": RMSprop(0.02)}
    whole = run(**options)
    again = run(interrupt(tmp_path / "run", 7, **options), **options)
    require_same(again, whole)
    assert whole.history.log_likelihood[-1] > whole.history.log_likelihood[0]
    assert len(again.state.optimizer_state.slots) == 1


def test_brute_force_follows_the_exact_gradient():
    ours, theirs = run(gradient=pm.Exact()), run(gradient=BruteForce())
    np.testing.assert_allclose(theirs.rbm.weights, ours.rbm.weights, rtol=1e-10)
    np.testing.assert_allclose(theirs.history.log_likelihood, ours.history.log_likelihood, rtol=1e-12)


def test_exact_averages_of_a_measurement_serve_the_next_update():
    calls = []

    class Counted(BruteForce):
        def moments(self, *arguments):
            calls.append(1)
            return super().moments(*arguments)

    run(gradient=Counted(), epochs=3, evaluate=(0, 1, 3), batch_size=None)
    assert len(calls) == 4  # the start, after each of the three updates; the second is not measured


def test_rmsprop_is_what_it_says():
    result = run(gradient=pm.Exact(), optimizer=RMSprop(0.02, 0.5), epochs=2, batch_size=None)
    weights, scale, machine = MACHINE.weights, 0.0, MACHINE
    for _ in range(2):
        slope = pm.learning.exact_gradient(machine, DATA)
        vector = np.concatenate((slope.weights.ravel(), slope.hidden_bias, slope.visible_bias))
        scale = 0.5 * scale + 0.5 * vector**2
        step = 0.02 * vector / (np.sqrt(scale) + 1e-8)
        weights = machine.weights + step[:18].reshape(6, 3)
        machine = pm.RBM(weights, machine.visible_bias + step[21:], machine.hidden_bias + step[18:21])
    np.testing.assert_allclose(result.rbm.weights, weights, rtol=1e-12)


def test_a_state_keeps_its_types_in_a_file(tmp_path):
    state = interrupt(tmp_path / "run", 5, gradient=Metropolis())
    assert state.gradient_state.arrays["spins"].dtype == np.int8
    assert not state.gradient_state.arrays["spins"].flags.writeable
    assert state.gradient_state.facts["calls"] == 5
    assert state.chains is None
    state.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "run").read_bytes()


def test_a_state_can_be_taken_over_to_other_data():
    state = run(gradient=Metropolis()).state
    options = {"optimizer": pm.SGD(0.05), "batch_size": 13, "weight_decay": 0.0}
    start = take_over(state, DATA[:20], rng=0, gradient=Metropolis(), **options)
    assert start.gradient_state is state.gradient_state
    assert (start.epoch, start.update) == (0, state.update)
    fresh = take_over(state, DATA[:20], rng=0, gradient=RunningMean(), **options)
    assert fresh.gradient_state.n_calls == 0


# What a checkpoint says, and what it refuses


def test_settings_of_own_classes_are_described_by_their_fields():
    settings = run(
        gradient=Metropolis(label="mine"), optimizer=RMSprop(0.02), epochs=1, evaluate=()
    ).state.settings
    assert settings["gradient"] == "Metropolis(n_chains=30, n_flips=8)"
    assert settings["optimizer"] == "RMSprop(learning_rate=0.02, decay=0.9, epsilon=1e-08)"
    assert run(gradient=BruteForce(), epochs=1).state.settings["gradient"] == "BruteForce()"


def test_other_settings_of_own_classes_are_refused(tmp_path):
    options = {"gradient": Metropolis(), "optimizer": RMSprop(0.02)}
    state = interrupt(tmp_path / "run", 5, **options)
    with pytest.raises(ValueError, match=r"`gradient` must be that of the run .*n_flips=8.*n_flips=9"):
        run(state, **options | {"gradient": Metropolis(n_flips=9)})
    with pytest.raises(ValueError, match=r"`optimizer` must be that of the run .*decay=0.9.*decay=0.8"):
        run(state, **options | {"optimizer": RMSprop(0.02, 0.8)})
    with pytest.raises(ValueError, match=r"`optimizer` must be that .*rate=0.02.*rate=0.03"):
        run(state, **options | {"optimizer": RMSprop(0.03)})
    run(state, **options | {"gradient": Metropolis(label="other")})  # declared not to change results


def halve(update):
    return 0.02 * 0.5**update


@pytest.mark.parametrize("rate", [halve, pm.Schedule("linear", 0.1, end=0.0, n_updates=24)])
def test_learning_rates_that_vary_in_an_optimizer_of_ones_own(rate, tmp_path):
    options = {"gradient": pm.Exact(), "optimizer": RMSprop(rate)}
    state = interrupt(tmp_path / "run", 5, **options)
    whole = run(**options)
    if rate is halve:
        with pytest.raises(ValueError, match=r"learning rate of the run to go on with, halve, got halve"):
            run(state, **options)
        with pytest.raises(ValueError, match=r"`optimizer` must be that of the run .*decay=0.5"):
            run(state, **options | {"optimizer": RMSprop(rate, 0.5)}, same_schedule=True)
        require_same(run(state, **options, same_schedule=True), whole)
    else:
        require_same(run(state, **options), whole)
        with pytest.raises(ValueError, match="`optimizer` must be that"):
            run(state, **options | {"optimizer": RMSprop(pm.Schedule("linear", 0.1, end=0.0, n_updates=9))})


def test_an_object_without_a_name_for_its_settings_is_refused():
    class Plain(RMSprop):
        pass

    class Nameless(Gradient):
        start = moments = BruteForce.moments

    with pytest.raises(ValueError, match="The settings of Nameless must be shown by their values"):
        run(gradient=Nameless())
    run(optimizer=Plain(), epochs=1)


def test_what_is_no_gradient_or_optimizer_is_refused_in_words():
    with pytest.raises(ValueError, match=r"`gradient` must be None, .* derived from `Gradient`, got 'cd'"):
        run(gradient="cd")
    with pytest.raises(ValueError, match="`gradient` must be None"):
        run(gradient=Metropolis)  # the class itself
    for wrong in ("adam", RMSprop, object(), Metropolis()):
        with pytest.raises(
            ValueError, match="`optimizer` must be an `Adam` or an `SGD`, or an object of yours"
        ):
            run(optimizer=wrong)
    with pytest.raises(ValueError, match="`learning_rate` must be positive, got -1"):
        run(optimizer=RMSprop(-1.0))
    with pytest.raises(TypeError, match="abstract"):
        Gradient()


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (lambda size: OptimizerState(0, (np.zeros(size - 1),)), "float64 vectors of 27 entries"),
        (lambda size: OptimizerState(1, ()), "of 0 steps"),
        (lambda size: OptimizerState(0, (np.zeros(size, np.float32),)), "float64 vectors"),
        (lambda size: (0, ()), "must return an `OptimizerState`"),
    ],
)
def test_a_wrong_start_of_an_optimizer_is_refused(start, found):
    optimizer = RMSprop()
    object.__setattr__(optimizer, "start", start)
    with pytest.raises(ValueError, match=f"`start` of RMSprop .*{found}"):
        run(optimizer=optimizer)


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (lambda state, slope: (slope, state), "of 1 steps with 1 slots"),
        (lambda state, slope: (slope, OptimizerState(1, ())), "with 1 slots"),
        (lambda state, slope: (slope.astype(np.float32), OptimizerState(1, state.slots)), "in float64"),
    ],
)
def test_a_wrong_step_of_an_optimizer_is_refused(step, found):
    optimizer = RMSprop(np.float64(0.01))
    object.__setattr__(optimizer, "step", step)
    object.__setattr__(optimizer, "learning_rate", 0.01)
    with pytest.raises(ValueError, match=f"`step` of RMSprop .*{found}"):
        run(optimizer=optimizer)


def test_an_optimizer_whose_slots_have_changed_is_refused(tmp_path):
    state = interrupt(tmp_path / "run", 5, optimizer=RMSprop())
    changed = replace(state, optimizer_state=OptimizerState(5, ()))
    with pytest.raises(ValueError, match=r"`optimizer` must start with 0 slots, .* got 1 from RMSprop"):
        run(changed, optimizer=RMSprop())


def test_an_exact_gradient_without_log_z_is_refused():
    class Forgetful(BruteForce):
        def moments(self, *arguments):
            return None, ModelMoments(super().moments(*arguments)[1].average)

    with pytest.raises(ValueError, match=r"`moments` of Forgetful must return ln Z, .* got None"):
        run(gradient=Forgetful())
    assert run(gradient=Forgetful(), evaluate=()).finished


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ArrayState({"x": np.array([2**53 + 1])}), "whose numbers float64 can hold, .* got int64 for 'x'"),
        (ArrayState({"x": np.array([1j])}), "got complex128"),
        (ArrayState({"x": np.array(["a"])}), "got <U1"),
        (ArrayState(facts={"x": np.zeros(1)}), "what JSON can hold"),
        (ArrayState(facts={"x": (1, 2)}), "what JSON can hold"),
        (ArrayState(facts={1: 2}), "what JSON can hold"),
    ],
)
def test_a_state_that_a_file_cannot_hold_is_refused(state, message, tmp_path):
    kept = replace(run(epochs=0).state, gradient_state=state)
    with pytest.raises(ValueError, match=message):
        kept.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_devices_are_refused_unless_the_class_allows_them():
    pytest.importorskip("torch")
    with pytest.raises(
        ValueError, match="`device` must be 'cpu' for the gradient Metropolis, got 'torch:cpu'"
    ):
        run(gradient=Metropolis(), device="torch:cpu")
