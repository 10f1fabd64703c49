"""The compiled update for sampled gradients: the same chains and steps as the plain one, but for rounding."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import paramagnet as pm
from own_classes import RMSprop
from paramagnet.learning import sampled_setup, sampled_update
from paramagnet.learning.resuming import OrderOfSumsWarning
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.training import training_steps


@dataclass(frozen=True)
class PlainPCD(pm.PCD):
    """The same chains, averaged by the path for units of any type."""

    def particles(self):
        return None


@dataclass(frozen=True)
class PlainCD(pm.CD):
    """The same for chains from the batch."""

    def particles(self):
        return None


def machine(n, m, visible, hidden, scale=0.5):
    rng = np.random.default_rng(1)
    return pm.RBM(scale * rng.normal(size=(n, m)), 0.3 * rng.normal(size=n), -0.5, visible, hidden)


def data(rbm, n_points=53):
    rbm = getattr(rbm, "rbm", rbm)  # also of the state of a run
    return np.random.default_rng(2).choice(rbm.visible.values, (n_points, rbm.n_visible))


def states(rbm, gradient, optimizer=pm.Adam(0.01), n=9, **options):  # noqa: B008
    options |= {"epochs": 9, "batch_size": 20, "evaluate": [], "rng": 5}
    steps = training_steps(rbm, data(rbm), gradient=gradient, optimizer=optimizer, **options)
    return [next(steps) for _ in range(n)]


CENTRED = pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
OPTIMIZERS = [pm.Adam(0.01), pm.SGD(0.05), pm.SGD(0.05, momentum=0.7), RMSprop(0.01)]


class SlowAdam(pm.Adam):
    """Adam that the compiled pass does not know."""


class SlowSGD(pm.SGD):
    """SGD that the compiled pass does not know."""


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (pm.Adam(0.01, beta1=0.8), SlowAdam(0.01, beta1=0.8)),
        (pm.SGD(0.05), SlowSGD(0.05)),
        (pm.SGD(0.05, momentum=0.7), SlowSGD(0.05, momentum=0.7)),
    ],
    ids=["adam", "sgd", "momentum"],
)
@pytest.mark.parametrize("centred", [False, True, pm.Centring(0.4, factor=5.0)])
@pytest.mark.parametrize("shape", [(21, 13), (850, 35)])
def test_the_compiled_pass_makes_the_step_of_the_optimizer(fast, slow, centred, shape):
    rbm = machine(*shape, "spin", "bit", 0.2)
    pairs = zip(
        states(rbm, pm.PCD(30, 1, 4), fast, weight_decay=0.02, centred=centred),
        states(rbm, pm.PCD(30, 1, 4), slow, weight_decay=0.02, centred=centred),
        strict=True,
    )
    for now, then in pairs:
        np.testing.assert_allclose(now.parameters, then.parameters, atol=1e-13)
        for found, wanted in zip(now.optimizer_state.slots, then.optimizer_state.slots, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-14)


@pytest.mark.parametrize("optimizer", OPTIMIZERS[1:3], ids=["sgd", "momentum"])
@pytest.mark.parametrize(("visible", "hidden"), [("bit", "bit"), ("spin", "bit"), ("spin", "spin")])
@pytest.mark.parametrize(
    ("fused", "plain"),
    [
        (pm.PCD(30, 1, 4), PlainPCD(30, 1, 4)),
        (pm.PCD(30, 3, 4), PlainPCD(30, 3, 4)),
        (pm.PCD(30, 9, 4), PlainPCD(30, 9, 4)),  # by `run_sweeps`
        (pm.CD(1), PlainCD(1)),
        (pm.CD(9), PlainCD(9)),
    ],
    ids=["PCD-1", "PCD-3", "PCD-9", "CD-1", "CD-9"],
)
@CENTRED
def test_same_updates_as_the_plain_path(optimizer, visible, hidden, fused, plain, centred):
    """Random numbers have the same addresses, so chains are equal; averages differ by float32 rounding."""
    rbm = machine(21, 13, visible, hidden)
    options = {"weight_decay": 0.02, "centred": centred}
    for now, then in zip(
        states(rbm, fused, optimizer, **options), states(rbm, plain, optimizer, **options), strict=True
    ):
        np.testing.assert_array_equal(now.chains.visible, then.chains.visible)
        assert (now.chains.seed, now.chains.sweep) == (then.chains.seed, then.chains.sweep)
        np.testing.assert_allclose(now.parameters, then.parameters, atol=3e-6)
        assert (now.offsets is not None) == (centred and now.update > 0)
        if now.offsets is not None:
            np.testing.assert_allclose(now.offsets, then.offsets, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (4, 16), (17, 33), (70, 5), (401, 66), (850, 18)])
@pytest.mark.parametrize("gradient", [pm.PCD(13, 2, 1), pm.CD(2)], ids=["PCD", "CD"])
def test_gradient_from_the_chains(n, m, gradient):
    """With a rate of 1 the step of plain ascent is the gradient itself; checked against float64 averages."""
    rbm = machine(n, m, "spin", "bit", 0.3)
    before, after = states(rbm, gradient, pm.SGD(1.0), n=2)
    order = after.order[:20]
    points, chains = data(rbm)[order], after.chains.visible.astype(float)
    if not len(chains):  # the chains of contrastive divergence are not kept: replay them
        plain = PlainCD(2)
        again = states(rbm, plain, pm.SGD(1.0), n=2)[1]
        np.testing.assert_allclose(after.parameters, again.parameters, atol=2e-6)
        return
    found, expected = after.parameters - before.parameters, []
    h, g = rbm.mean_h_given_v(points), rbm.mean_h_given_v(chains)
    expected.append((points.T @ h / len(points) - chains.T @ g / len(chains)).ravel())
    expected += [h.mean(axis=0) - g.mean(axis=0), points.mean(axis=0) - chains.mean(axis=0)]
    np.testing.assert_allclose(found, np.concatenate(expected), atol=2e-6)


@pytest.mark.parametrize("gradient", [pm.PCD(30, 2, 4), pm.PCD(30, 9, 4), pm.CD(1)])
@CENTRED
def test_same_bits_for_any_number_of_threads(gradient, centred, monkeypatch):
    rbm = machine(850, 18, "bit", "spin", 0.2)
    expected = states(rbm, gradient, centred=centred)
    monkeypatch.setattr(sampled_setup, "SECONDS_PER_THREAD", 1e-12)
    for n_threads in (1, 2, 3, 7):
        threaded = type(gradient)(**{**vars(gradient), "n_threads": n_threads})
        for found, wanted in zip(states(rbm, threaded, centred=centred), expected, strict=True):
            np.testing.assert_array_equal(found.parameters, wanted.parameters)
            np.testing.assert_array_equal(found.chains.visible, wanted.chains.visible)


def test_small_machines_use_one_thread():
    def count(n_visible, n_hidden, n_slices, most=2):
        return sampled_setup.count_threads(most, n_visible, n_hidden, 100, 100, 1, n_slices=n_slices)

    assert count(20, 20, 1) == count(64, 100, 1) == count(100, 100, 1) == count(300, 200, 1) == 1
    assert count(784, 64, 2) == 2
    assert count(784, 64, 1) == 1  # nobody to share the pass over the parameters with
    assert count(784, 64, 2, most=64) == 2
    assert count(784, 500, 2, most=64) > 2
    assert count(784, 500, 2, most=1) == 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=["adam", "sgd", "momentum", "own"])
def test_a_yielded_state_never_changes(optimizer):
    """Buffers are used again; those of a state that somebody holds are not."""
    rbm, kept = machine(30, 20, "bit", "bit"), []
    options = {"epochs": 40, "batch_size": 20, "evaluate": [], "rng": 5, "optimizer": optimizer}
    steps = training_steps(rbm, data(rbm), gradient=pm.PCD(10, 1, 1), **options)
    for index, state in enumerate(steps):
        if index % 3 == 0 or index < 5:
            copies = [
                np.array(a) for a in (state.parameters, *state.optimizer_state.slots, state.chains.visible)
            ]
            view = state.parameters[5:]  # a view alone must hold the array, too
            kept.append((state if index % 2 else None, view, state.chains.visible, copies))
    for state, view, chains, copies in kept:
        np.testing.assert_array_equal(view, copies[0][5:])
        np.testing.assert_array_equal(chains, copies[-1])
        if state is not None:
            arrays = (state.parameters, *state.optimizer_state.slots, state.chains.visible)
            for array, copy in zip(arrays, copies, strict=True):
                np.testing.assert_array_equal(array, copy)
            for array in (state.parameters, state.chains.visible):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 1.0


def test_states_of_two_runs_side_by_side():
    """The float32 weights belong to one parameter vector: a generator that is fed another one notices."""
    rbm = machine(12, 9, "bit", "bit")
    a, b = states(rbm, pm.PCD(10, 1, 1)), states(machine(12, 9, "bit", "bit", 0.9), pm.PCD(10, 1, 1))
    assert not np.array_equal(a[-1].parameters, b[-1].parameters)
    np.testing.assert_array_equal(states(rbm, pm.PCD(10, 1, 1))[-1].parameters, a[-1].parameters)


@pytest.mark.parametrize("gradient", [pm.PCD(30, 1, 4), pm.CD(3)], ids=["PCD", "CD"])
@CENTRED
def test_resuming_in_the_middle_of_an_epoch(tmp_path, gradient, centred):
    rbm = machine(21, 13, "spin", "bit")
    whole = states(rbm, gradient, centred=centred)
    whole[4].save(tmp_path / "run.safetensors")
    loaded = load_checkpoint(tmp_path / "run.safetensors")
    assert loaded.settings["sums"] == sampled_setup.ORDER_OF_SUMS
    for found, wanted in zip(states(loaded, gradient, n=4, centred=centred), whole[5:], strict=True):
        np.testing.assert_array_equal(found.parameters, wanted.parameters)
        np.testing.assert_array_equal(found.chains.visible, wanted.chains.visible)


def test_going_on_with_another_order_of_sums_is_said(tmp_path):
    rbm, gradient = machine(5, 4, "spin", "bit"), pm.PCD(6, 1, 1)
    state = states(rbm, gradient, n=3)[2]
    old = {name: value for name, value in state.settings.items() if name != "sums"}
    state.settings.clear()
    state.settings.update(old)
    with pytest.warns(OrderOfSumsWarning, match="lookup-1, now lookup-3"):
        assert len(states(state, gradient, n=2)) == 2
    exact = pm.train(rbm, data(rbm), epochs=1, rng=0).state
    assert "sums" not in exact.settings


def test_divergence_keeps_the_last_finite_state():
    rbm = machine(6, 4, "spin", "bit")
    with pytest.raises(pm.DivergenceError, match="smaller learning rate") as caught:
        pm.train(rbm, data(rbm), epochs=4, gradient=pm.PCD(5, 1, 1), optimizer=pm.SGD(1e40), rng=0)
    assert np.isfinite(caught.value.state.parameters).all()
    np.testing.assert_array_equal(caught.value.state.rbm.weights, rbm.weights)


def test_a_subclass_with_averages_of_its_own_keeps_them():
    @dataclass(frozen=True)
    class Half(pm.PCD):
        def moments(self, *args):
            state, moments = super().moments(*args)
            return state, type(moments)(0.5 * moments.average)

    assert Half().particles() is None
    assert pm.PCD().particles() is not None
    rbm = machine(6, 4, "spin", "bit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        half, whole = states(rbm, Half(9, 1, 1), n=2)[1], states(rbm, pm.PCD(9, 1, 1), n=2)[1]
    assert not np.allclose(half.parameters, whole.parameters, atol=1e-4)


# Large machines: a state that nobody holds is overwritten


@pytest.fixture
def overwritten(monkeypatch):
    """All machines count as large; returned is the list of updates that were made in place or not."""
    from paramagnet.learning import loop

    made, may = [], sampled_update.SampledUpdate.may_overwrite

    def watch(self, *args):
        made.append(may(self, *args))
        return made[-1]

    monkeypatch.setattr(loop, "OVERWRITTEN_FROM", 1)
    monkeypatch.setattr(sampled_update.SampledUpdate, "may_overwrite", watch)
    return made


def train(rbm, optimizer=pm.Adam(0.01), **options):  # noqa: B008
    options = {
        "epochs": 3,
        "batch_size": 20,
        "evaluate": [],
        "rng": 5,
        "gradient": pm.PCD(10, 1, 1),
    } | options
    return pm.train(rbm, data(rbm), optimizer=optimizer, **options)


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:3], ids=["adam", "sgd", "momentum"])
@CENTRED
def test_overwriting_changes_no_bit(overwritten, optimizer, centred, monkeypatch):
    rbm, options = machine(30, 20, "bit", "bit"), {"centred": centred, "weight_decay": 0.02}
    found = train(rbm, optimizer, **options)
    assert overwritten == [False, *[True] * 8]  # the arrays of the start are the caller's
    monkeypatch.undo()
    expected = train(rbm, optimizer, **options)
    np.testing.assert_array_equal(found.state.parameters, expected.state.parameters)
    np.testing.assert_array_equal(found.state.chains.visible, expected.state.chains.visible)
    for a, b in zip(found.state.optimizer_state.slots, expected.state.optimizer_state.slots, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "keep",
    [
        lambda state: state,
        lambda state: state.parameters,
        lambda state: state.parameters[3:],
        lambda state: state.optimizer_state,
        lambda state: state.optimizer_state.slots,
        lambda state: state.optimizer_state.slots[1],
        lambda state: state.rbm,
        lambda state: memoryview(state.parameters),
        lambda state: vars(state),
        lambda state: vars(state.optimizer_state),
    ],
)
def test_what_a_callback_keeps_is_not_overwritten(overwritten, keep):
    def arrays(thing):
        if isinstance(thing, pm.TrainState):
            return [thing.parameters, *thing.optimizer_state.slots]
        if isinstance(thing, pm.RBM):
            return [thing.weights]
        if isinstance(thing, dict):
            return [thing["parameters"]] if "parameters" in thing else list(thing["slots"])
        slots = getattr(thing, "slots", thing)
        return list(slots) if isinstance(slots, tuple) else [np.asarray(slots)]

    kept = []

    def callback(state):
        if state.update in (2, 3, 6):
            thing = keep(state)
            kept.append((thing, [np.array(a) for a in arrays(thing)]))

    train(machine(30, 20, "bit", "bit"), callback=callback)
    assert len(kept) == 3
    assert any(overwritten)
    for thing, copies in kept:
        for array, copy in zip(arrays(thing), copies, strict=True):
            np.testing.assert_array_equal(array, copy)


@CENTRED
def test_an_update_that_might_diverge_is_not_made_in_place(overwritten, centred):
    rbm = machine(6, 4, "spin", "bit")
    with pytest.raises(pm.DivergenceError) as caught:
        train(rbm, pm.SGD(lambda update: 0.1 if update < 4 else 1e40), centred=centred)
    assert overwritten == [False, True, True, True, False]
    assert np.isfinite(caught.value.state.parameters).all()
    assert caught.value.state.update == 4


def test_biases_do_not_decay_in_the_bound(overwritten):
    """Weights decay to nothing in every update; biases are close to the limit, and a step is half of it."""
    rbm = pm.RBM(np.zeros((6, 4)), 0.9e30 / 6**0.5, 0.0, "spin", "bit")
    rate = 0.5e30 / (2.0 * 34**0.5)
    options = {"gradient": pm.PCD(10, 1, 1), "weight_decay": 1.0 / rate, "evaluate": []}
    pm.train(rbm, np.ones((20, 6)), epochs=3, optimizer=pm.SGD(rate), rng=5, **options)
    assert overwritten == [False] * 3


@CENTRED
@pytest.mark.parametrize("optimizer", OPTIMIZERS[:3], ids=["adam", "sgd", "momentum"])
def test_the_bound_on_the_parameters_holds(optimizer, centred, monkeypatch):
    """The norm after an update is below what was said before it, also where data and chains are as far apart
    as they can be: all slopes in centred coordinates are -4, and the biases take up all changes.
    """
    bounds, norms, call = [], [], sampled_update.SampledUpdate.__call__

    def watch(self, state, chosen, rate, in_place=False):
        self._norm = float(np.linalg.norm(state.parameters))
        bounds.append(self._largest_norm(rate))
        found = call(self, state, chosen, rate, in_place)
        norms.append(float(np.linalg.norm(found.parameters)))
        return found

    monkeypatch.setattr(sampled_update.SampledUpdate, "__call__", watch)
    steep = type(optimizer)(**{**vars(optimizer), "learning_rate": 100.0})
    options = {"gradient": pm.PCD(10, 1, 1), "optimizer": steep, "centred": centred, "weight_decay": 0.05}
    apart = pm.RBM(np.full((30, 20), 0.5), -20.0, 0.0, "spin", "spin")
    for rbm, points in ((machine(30, 20, "spin", "bit"), None), (apart, np.ones((40, 30)))):
        points = data(rbm) if points is None else points
        pm.train(rbm, points, epochs=2, evaluate=[], rng=5, **options)
    assert len(bounds) == 4
    assert all(norm <= bound < np.inf for norm, bound in zip(norms, bounds, strict=True))
    if centred and optimizer == pm.SGD(0.05):
        assert norms[2] > 0.4 * bounds[2]


def test_an_interruption_waits_for_the_end_of_an_update_in_place(overwritten, tmp_path, monkeypatch):
    """Ctrl-C in the middle of an update: the checkpoint holds the state after it, whole."""
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    rbm, step = machine(30, 20, "bit", "bit"), sampled_update.move_biases
    calls = []

    def interrupt(*args):
        calls.append(1)
        if len(calls) == 11:  # the first of two calls of the sixth update
            signal.raise_signal(signal.SIGINT)
        return step(*args)

    monkeypatch.setattr(sampled_update, "move_biases", interrupt)
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(rbm, checkpoint=pm.Checkpoint(path, seconds=1000.0))
    kept = load_checkpoint(path)
    assert kept.update == 6
    resumed = pm.train(
        kept,
        data(rbm),
        epochs=3,
        batch_size=20,
        gradient=pm.PCD(10, 1, 1),
        optimizer=pm.Adam(0.01),
        evaluate=[],
    )
    np.testing.assert_array_equal(resumed.rbm.weights, train(rbm).rbm.weights)
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


@pytest.mark.parametrize("kind", [np.uint8, np.int8, bool, np.float32, np.int64, np.float64])
def test_compact_data_train_alike(kind):
    rbm = machine(30, 20, "bit", "bit")
    points = data(rbm)
    options = {"epochs": 2, "batch_size": 20, "gradient": pm.PCD(10, 1, 1), "rng": 0, "evaluate": 1}
    expected = pm.train(rbm, points, validation=points[:9], **options)
    found = pm.train(rbm, points.astype(kind), validation=points[:9].astype(kind), **options)
    np.testing.assert_array_equal(found.rbm.weights, expected.rbm.weights)
    assert found.state.settings == expected.state.settings
    np.testing.assert_array_equal(found.history.log_likelihood, expected.history.log_likelihood)
    np.testing.assert_array_equal(found.history.validation, expected.history.validation)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.full((5, 30), 2, np.uint8), "found 2"),
        (np.ones((5, 29), np.uint8), "30 columns"),
        (np.ones(30, np.uint8), "two dimensions"),
        (np.ones((0, 30), np.uint8), "at least one point"),
        (np.full((5, 30), np.nan, np.float32), "NaN"),
    ],
)
def test_bad_compact_data(points, words):
    with pytest.raises(ValueError, match=f"`data` must.*{words}"):
        pm.train(machine(30, 20, "bit", "bit"), points, epochs=1, gradient=pm.PCD(5, 1, 1))
