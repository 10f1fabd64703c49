"""Weight decay, l1, l1 of groups and clipping, against loops; states, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine
from paramagnet.layout import Layout
from paramagnet.learning import sampled_update
from paramagnet.learning.penalties import Penalties
from paramagnet.learning.state import load_checkpoint

PENALTIES = [
    {"l1": 0.3},
    {"l1_group": 0.7},
    {"l1": 0.2, "l1_group": 0.5, "weight_decay": 0.1},
    {"clip": 0.05},
    {"clip": 1e3},
    {"l1": 0.2, "l1_group": 0.5, "weight_decay": 0.1, "clip": 0.1},
]
WAYS = pytest.mark.parametrize("penalties", PENALTIES, ids=lambda p: "-".join(p))
CENTRED = pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])


class SlowAdam(pm.Adam):
    """Adam that the compiled pass does not know."""


class SlowSGD(pm.SGD):
    """SGD that the compiled pass does not know."""


def points_of(unit="spin", n_points=20, n_visible=4):
    values = pm.units.find_unit(unit, "unit").values
    return np.random.default_rng(5).choice(values, (n_points, n_visible), p=(0.3, 0.7))


def step_by_loops(rbm, points, rate, centred, weight_decay=0.0, l1=0.0, l1_group=0.0, clip=None):
    """Weights, visible and hidden biases after one step of plain ascent, number by number."""
    n, m = rbm.weights.shape
    slope = pm.learning.exact_gradient(rbm, points)
    g, g_b, g_c = slope.weights.copy(), slope.visible_bias.copy(), slope.hidden_bias.copy()
    mu = points.mean(axis=0) if centred else np.zeros(n)
    lam = rbm.mean_h_given_v(points).mean(axis=0) if centred else np.zeros(m)
    for i in range(n):
        for j in range(m):
            g[i, j] -= mu[i] * g_c[j] + g_b[i] * lam[j]
    norm = sum(float(x) ** 2 for part in (g, g_b, g_c) for x in part.ravel()) ** 0.5
    if clip is not None and norm > clip:
        g, g_b, g_c = (part * clip / norm for part in (g, g_b, g_c))
    w, b, c = rbm.weights.copy(), rbm.visible_bias + rate * g_b, rbm.hidden_bias + rate * g_c
    for j in range(m):
        mean = sum(abs(rbm.weights[i, j]) for i in range(n)) / n
        for i in range(n):
            moved = w[i, j] + rate * g[i, j] - rate * weight_decay * w[i, j]
            size = max(abs(moved) - rate * (l1 + l1_group * mean), 0.0)
            w[i, j] = size if moved > 0 else -size
    for i in range(n):
        for j in range(m):
            change = w[i, j] - rbm.weights[i, j]
            b[i] -= change * lam[j]
            c[j] -= change * mu[i]
    return (w, b, c), norm


@WAYS
@CENTRED
@pytest.mark.parametrize(("visible", "hidden"), [("spin", "bit"), ("bit", "spin")])
def test_one_step_against_loops(penalties, centred, visible, hidden):
    rbm, points = make_machine(visible, hidden), points_of(visible)
    options = {"gradient": pm.Exact(), "optimizer": pm.SGD(0.6), "centred": centred, "evaluate": 1}
    result = pm.train(rbm, points, epochs=1, **options, **penalties)
    wanted, norm = step_by_loops(rbm, points, 0.6, centred, **penalties)
    found = result.rbm.weights, result.rbm.visible_bias, result.rbm.hidden_bias
    for now, then in zip(found, wanted, strict=True):
        np.testing.assert_allclose(now, then, atol=1e-13)
    assert result.history.gradient_norm[-1] == pytest.approx(norm)  # before it is clipped
    if "l1" in penalties:
        assert (result.rbm.weights == 0.0).any()


def penalty(weights, weight_decay=0.0, l1=0.0, l1_group=0.0):
    n = len(weights)
    groups = sum((abs(weights[:, j]).sum() / n) ** 2 for j in range(weights.shape[1]))
    return 0.5 * weight_decay * (weights**2).sum() + l1 * abs(weights).sum() + 0.5 * l1_group * n * groups


@WAYS
def test_the_penalty_that_is_descended(penalties):
    """A small step moves the weights by the rate times the derivative of likelihood less penalty."""
    rbm, points, rate = make_machine("spin", "bit"), points_of(), 1e-7
    chosen = {name: value for name, value in penalties.items() if name != "clip"}
    options = {"gradient": pm.Exact(), "optimizer": pm.SGD(rate), "evaluate": []}
    moved = (pm.train(rbm, points, epochs=1, **options, **chosen).rbm.weights - rbm.weights) / rate

    def objective(weights):
        machine = pm.RBM(weights, rbm.visible_bias, rbm.hidden_bias, "spin", "bit")
        return pm.log_likelihood(machine, points).value - penalty(weights, **chosen)

    for i, j in np.ndindex(rbm.weights.shape):
        step = np.zeros_like(rbm.weights)
        step[i, j] = 1e-5
        slope = (objective(rbm.weights + step) - objective(rbm.weights - step)) / 2e-5
        assert moved[i, j] == pytest.approx(slope, abs=2e-6)


# The compiled pass


@WAYS
@pytest.mark.parametrize("centred", [False, True, pm.Centring(0.4, factor=5.0)])
@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (pm.Adam(0.01), SlowAdam(0.01)),
        (pm.SGD(0.05), SlowSGD(0.05)),
        (pm.SGD(0.05, momentum=0.7), SlowSGD(0.05, momentum=0.7)),
    ],
    ids=["adam", "sgd", "momentum"],
)
def test_the_compiled_pass_makes_the_same_steps(fast, slow, centred, penalties):
    rbm = make_machine("spin", "bit", 21, 13, 0.3)
    points = points_of(n_visible=21)
    options = {"epochs": 3, "batch_size": 8, "gradient": pm.PCD(10, 1, 2), "centred": centred, "rng": 0}
    options |= {"evaluate": [], **penalties}
    now, then = (pm.train(rbm, points, optimizer=optimizer, **options).state for optimizer in (fast, slow))
    np.testing.assert_allclose(now.parameters, then.parameters, atol=1e-12)
    if "l1" in penalties:
        assert np.array_equal(now.rbm.weights == 0.0, then.rbm.weights == 0.0)


@WAYS
@CENTRED
def test_overwriting_changes_no_bit(penalties, centred, monkeypatch):
    rbm, points = make_machine("spin", "bit", 21, 13, 0.3), points_of(n_visible=21)
    options = {"epochs": 3, "batch_size": 8, "gradient": pm.PCD(10, 1, 2), "centred": centred, "rng": 0}
    options |= {"evaluate": [], **penalties}
    plain = pm.train(rbm, points, **options).state
    monkeypatch.setattr(sampled_update, "OVERWRITTEN_FROM", 0)
    monkeypatch.setattr("paramagnet.learning.loop.OVERWRITTEN_FROM", 0)
    again = pm.train(rbm, points, **options).state
    np.testing.assert_array_equal(again.parameters, plain.parameters)


@CENTRED
def test_the_bound_on_the_parameters_holds(centred, monkeypatch):
    bounds, norms, call = [], [], sampled_update.SampledUpdate.__call__

    def watch(self, state, chosen, rate, in_place=False):
        self._norm = float(np.linalg.norm(state.parameters))
        bounds.append(self._largest_norm(rate))
        found = call(self, state, chosen, rate, in_place)
        norms.append(float(np.linalg.norm(found.parameters)))
        return found

    monkeypatch.setattr(sampled_update.SampledUpdate, "__call__", watch)
    rbm = pm.RBM(np.full((30, 20), 0.5), 0.0, 0.0, "spin", "spin")
    for penalties in ({"l1": 100.0}, {"l1_group": 100.0}):
        pm.train(
            rbm, np.ones((40, 30)), epochs=2, gradient=pm.PCD(10, 1, 1), optimizer=pm.SGD(1e-2),
            centred=centred, evaluate=[], rng=5, **penalties,
        )  # fmt: skip
    assert len(bounds) == 4
    assert all(norm <= bound < np.inf for norm, bound in zip(norms, bounds, strict=True))


# What they do


@dataclass(frozen=True)
class Still:
    """An optimizer that does not move."""

    learning_rate: float = 0.1

    def start(self, size):
        return pm.SGD(0.1).start(size)

    def step(self, state, gradient):
        return np.zeros_like(gradient), replace(state, n_steps=state.n_steps + 1)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 1)])
def test_centred_biases_are_held(gradient):
    """Where only penalties move the weights, ``b + w lam`` and ``c + w^T mu`` stay."""
    rbm, points = make_machine("bit", "bit"), points_of("bit")
    options = {"gradient": gradient, "optimizer": Still(), "centred": True, "evaluate": [], "rng": 0}
    result = pm.train(rbm, points, epochs=1, l1=0.5, l1_group=0.4, **options)
    mu, lam, after = points.mean(axis=0), result.state.offsets, result.rbm
    taken = 0.1 * (0.5 + 0.4 * abs(rbm.weights).mean(axis=0))
    wanted = np.sign(rbm.weights) * np.maximum(abs(rbm.weights) - taken, 0.0)
    np.testing.assert_allclose(after.weights, wanted, atol=1e-15)
    np.testing.assert_allclose(
        after.visible_bias + after.weights @ lam, rbm.visible_bias + rbm.weights @ lam, atol=1e-14
    )
    np.testing.assert_allclose(
        after.hidden_bias + mu @ after.weights, rbm.hidden_bias + mu @ rbm.weights, atol=1e-14
    )


def test_l1_ends_at_zero_and_biases_go_on():
    rbm, points = make_machine("spin", "bit"), points_of()
    options = {"epochs": 300, "gradient": pm.Exact(), "optimizer": pm.SGD(0.3), "evaluate": [300]}
    result = pm.train(rbm, points, l1=10.0, **options)
    assert not result.rbm.weights.any()
    independent = pm.train(pm.RBM(np.zeros((4, 3)), 0.0, 0.0), points, l1=10.0, **options)
    np.testing.assert_allclose(result.rbm.visible_bias, independent.rbm.visible_bias, atol=1e-6)


def test_clipped_steps_are_as_long_as_the_limit():
    rbm, points = make_machine("spin", "bit"), points_of()
    for gradient in (pm.Exact(), pm.PCD(10, 1, 1)):
        options = {"epochs": 1, "gradient": gradient, "optimizer": pm.SGD(1.0), "evaluate": [], "rng": 0}
        layout = Layout.of(rbm)
        moved = pm.train(rbm, points, clip=1e-3, **options).state.parameters - layout.flatten(rbm)
        free = pm.train(rbm, points, **options).state.parameters - layout.flatten(rbm)
        assert np.linalg.norm(moved) == pytest.approx(1e-3)
        np.testing.assert_allclose(moved, free * 1e-3 / np.linalg.norm(free), atol=1e-12)


# States


@WAYS
@CENTRED
@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 1)])
def test_resumed_runs(penalties, centred, gradient, tmp_path):
    rbm, points, path = make_machine("spin", "bit"), points_of(), tmp_path / "run.checkpoint"
    options = {"gradient": gradient, "batch_size": 6, "centred": centred, **penalties}
    whole = pm.train(rbm, points, epochs=4, rng=0, **options).state

    def stop(state):
        if state.update == 6:
            raise StopIteration

    pm.train(rbm, points, epochs=4, rng=0, callback=stop, checkpoint=path, **options)
    again = pm.train(load_checkpoint(path), points, epochs=4, **options).state
    np.testing.assert_array_equal(again.parameters, whole.parameters)
    for name in penalties:
        default = {"clip": None}.get(name, 0.0)
        with pytest.raises(ValueError, match=f"`{name}` must be that of the run to go on with"):
            pm.train(load_checkpoint(path), points, epochs=4, **options | {name: default})
    plain = pm.train(rbm, points, epochs=1, **options | {"l1": 0.0, "l1_group": 0.0, "clip": None}).state
    assert not {"l1", "l1_group", "clip"} & set(plain.settings)
    with pytest.raises(ValueError, match=r"`l1` must be that of the run to go on with, 0\.0, got 9\.0"):
        pm.train(plain, points, epochs=4, **options | {"l1": 9.0, "l1_group": 0.0, "clip": None})


# What is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"l1": -0.1}, "`l1` must be zero or positive, got -0.1"),
        ({"l1": np.nan}, "`l1` must be finite, got nan"),
        ({"l1_group": -1}, "`l1_group` must be zero or positive, got -1"),
        ({"l1_group": [1.0, 2.0]}, "`l1_group` must be a single number"),
        ({"clip": 0.0}, "`clip` must be positive, got 0"),
        ({"clip": -1.0}, "`clip` must be positive, got -1"),
        ({"clip": np.inf}, "`clip` must be finite, got inf"),
        ({"clip": "much"}, "`clip` must be"),
    ],
)
def test_bad_penalties(options, words):
    for gradient in (None, pm.PCD(3, 1, 1)):
        with pytest.raises(ValueError, match=words):
            pm.train(make_machine("spin", "bit"), points_of(), epochs=1, gradient=gradient, **options)


def test_settings_at_their_defaults_are_not_named():
    assert Penalties().settings == {"weight_decay": "0.0"}
    assert Penalties(0.1, 0.2, 0.3, 4.0).settings == {
        "weight_decay": "0.1", "l1": "0.2", "l1_group": "0.3", "clip": "4.0"
    }  # fmt: skip
