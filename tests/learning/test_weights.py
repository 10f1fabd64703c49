"""Weights of points: the same as repeated points, everywhere that data are averaged; and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine
from paramagnet.layout import Layout
from paramagnet.learning.moments import append_ones, data_moments
from paramagnet.learning.preparing import take_over
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.weighting import as_point_weights

PAIRS = [("spin", "bit"), ("bit", "spin"), ("bit", "bit"), ("gaussian", "bit"), ("spin", "gaussian(0.3)")]
PAIRS += [("categorical(3)", "bit"), ("spin", "relu"), ("bit", "categorical(3)")]
COUNTS = np.array([3, 0, 1, 2, 5, 1, 0, 4, 1, 1, 2, 1])


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


def points_of(unit, n_visible=4, n_points=12):
    rng = np.random.default_rng(3)
    if unit.startswith("gaussian"):
        return 0.4 * rng.normal(size=(n_points, n_visible)) + np.linspace(-0.3, 0.8, n_visible)
    if unit.startswith("categorical"):
        return rng.choice(3, size=(n_points, n_visible), p=(0.2, 0.3, 0.5)).astype(float)
    high = rng.random((n_points, n_visible)) < np.linspace(0.2, 0.7, n_visible)
    return np.where(high, 1.0, pm.units.find_unit(unit, "unit").values[0])


# Repeated points


@pytest.mark.parametrize("optimizer", [pm.Adam(0.02), pm.SGD(0.1, momentum=0.5)], ids=["adam", "sgd"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_weights_are_repetitions(visible, hidden, centred, optimizer):
    rbm = pm.initialize(4, 3, visible=visible, hidden=hidden, scheme="hinton", gain=20.0, rng=0)
    points = points_of(visible)
    again = np.repeat(points, COUNTS, axis=0)
    options = {"gradient": pm.Exact(), "optimizer": optimizer, "centred": centred, "rng": 0}
    for epochs, parameters, likelihood in ((1, 1e-12, 1e-12), (100, 1e-6, 1e-9)):
        weighted = pm.train(
            rbm, points, epochs=epochs, sample_weight=COUNTS, validation=points,
            validation_weight=0.1 * COUNTS, **options,
        )  # fmt: skip
        repeated = pm.train(rbm, again, epochs=epochs, **options)
        np.testing.assert_allclose(weighted.state.parameters, repeated.state.parameters, atol=parameters)
        wanted = repeated.history.log_likelihood
        np.testing.assert_allclose(weighted.history.log_likelihood, wanted, atol=likelihood)
        np.testing.assert_allclose(weighted.history.validation, wanted, atol=likelihood)
    plain = pm.train(rbm, points, epochs=1, **options)
    assert abs(plain.state.parameters - weighted.state.parameters).max() > 1e-3


@pytest.mark.parametrize("counts", [COUNTS, COUNTS * np.sqrt(2.0)], ids=["whole", "real"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("gradient", [pm.PCD(20, 1, 3), pm.PCD(7, 9, 3)], ids=["PCD-1", "PCD-9"])
def test_weights_are_repetitions_beside_chains(gradient, centred, counts):
    """The chains of the first update do not depend on the data."""
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    options = {"epochs": 1, "optimizer": pm.SGD(1.0), "centred": centred, "evaluate": [], "rng": 4}
    for way in (gradient, PlainPCD(*vars(gradient).values())):
        found = pm.train(rbm, points, gradient=way, sample_weight=counts, **options).state
        wanted = pm.train(rbm, np.repeat(points, COUNTS, axis=0), gradient=way, **options).state
        np.testing.assert_array_equal(found.chains.visible, wanted.chains.visible)
        np.testing.assert_allclose(found.parameters, wanted.parameters, atol=1e-6)
        if centred:
            np.testing.assert_allclose(found.offsets, wanted.offsets, atol=1e-6)


@pytest.mark.parametrize("weights", [COUNTS, COUNTS + 0.37], ids=["whole", "real"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("fused", "plain"),
    [(pm.PCD(30, 1, 4), PlainPCD(30, 1, 4)), (pm.CD(1), PlainCD(1)), (pm.CD(9), PlainCD(9))],
    ids=["PCD", "CD-1", "CD-9"],
)
def test_compiled_updates_are_those_by_averages(fused, plain, centred, weights):
    rbm, points = make_machine("bit", "bit"), points_of("bit")
    options = {"epochs": 3, "batch_size": 5, "optimizer": pm.SGD(0.1), "centred": centred, "evaluate": []}
    found, wanted = (
        pm.train(rbm, points, gradient=gradient, sample_weight=weights, rng=1, **options).state
        for gradient in (fused, plain)
    )
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=3e-6)


@pytest.mark.parametrize("hidden", ["bit", "gaussian"])
def test_contrastive_chains_have_the_weights_of_their_points(hidden):
    """An update by contrastive divergence against averages written out, with the very chains."""
    rbm, points, weights = make_machine("spin", hidden), points_of("spin"), COUNTS + 0.2
    seen = []

    @dataclass(frozen=True)
    class Watched(PlainCD):
        def _average(self, layout, parameters, batch, state, engine, weights_of_points):
            from paramagnet.learning.moments import run_chains
            from paramagnet.sampling.chains import Chains

            chains = Chains.at(batch, state.seed, state.sweep)
            seen.append(run_chains(layout, parameters, chains, self.n_steps, 1).visible.astype(float))
            return super()._average(layout, parameters, batch, state, engine, weights_of_points)

    options = {"epochs": 1, "optimizer": pm.SGD(1.0), "evaluate": [], "rng": 2, "gradient": Watched(2)}
    after = pm.train(rbm, points, sample_weight=weights, **options).rbm
    share, slopes = weights / weights.sum(), []
    for states in (points, seen[0]):
        h = rbm.mean_h_given_v(states)
        slopes.append((states.T @ (share[:, None] * h), share @ states, share @ h))
    for name, data, model in zip(("weights", "visible_bias", "hidden_bias"), *slopes, strict=True):
        np.testing.assert_allclose(getattr(after, name) - getattr(rbm, name), data - model, atol=1e-6)


def test_averages_within_a_batch():
    """Each update takes ``sum w x / sum w`` over its own batch."""
    rbm, points, weights = make_machine("spin", "bit"), points_of("spin"), np.linspace(0.1, 5.0, len(COUNTS))
    options = {"gradient": pm.Exact(), "optimizer": pm.SGD(0.3), "evaluate": [], "rng": 0}
    steps = pm.training_steps(rbm, points, epochs=2, batch_size=5, sample_weight=weights, **options)
    states = list(steps)
    for before, after in itertools.pairwise(states):
        order = after.order if after.order is not None else before.order
        chosen = order[5 * before.batch : 5 * before.batch + 5]
        machine, batch, w = before.rbm, points[chosen], weights[chosen]
        slope = pm.learning.exact_gradient(machine, batch, sample_weight=w)
        h = machine.mean_h_given_v(batch)
        moments = pm.exact.exact_moments(machine)
        by_hand = sum(w[k] * np.outer(batch[k], h[k]) for k in range(len(w))) / sum(w) - moments.products
        np.testing.assert_allclose(slope.weights, by_hand, atol=1e-13)
        np.testing.assert_allclose(after.rbm.weights, machine.weights + 0.3 * by_hand, atol=1e-13)


def test_likelihoods_of_weighted_points():
    rbm, points = make_machine("bit", "spin"), points_of("bit")
    found = pm.log_likelihood(rbm, points, sample_weight=COUNTS)
    assert found.value == pytest.approx(
        pm.log_likelihood(rbm, np.repeat(points, COUNTS, axis=0)).value, abs=1e-13
    )
    assert abs(found.value - pm.log_likelihood(rbm, points).value) > 1e-3
    assert pm.log_likelihood(rbm, points, sample_weight=np.full(len(points), 7.0)) == pm.log_likelihood(
        rbm, points
    )


def test_units_with_further_numbers_and_other_means():
    """The averages of hidden units without a closed form, against loops."""
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    layout = Layout.of(rbm)
    weights = as_point_weights(COUNTS + 0.5, "sample_weight", len(points))[1].values
    fast = data_moments(layout, layout.flatten(rbm), append_ones(points), None, weights)
    from paramagnet.learning.moments import _moments_of_any

    slow = _moments_of_any(layout, layout.flatten(rbm), append_ones(points), weights)
    np.testing.assert_allclose(slow, fast, atol=1e-14)


# Runs that are bit for bit the same


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 1), pm.CD(1)])
def test_equal_weights_are_none(gradient):
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    options = {"epochs": 2, "batch_size": 5, "gradient": gradient, "rng": 0}
    weighted = pm.train(rbm, points, sample_weight=np.full(len(points), 0.3), **options).state
    plain = pm.train(rbm, points, **options).state
    np.testing.assert_array_equal(weighted.parameters, plain.parameters)
    assert weighted.settings == plain.settings
    assert "sample_weight" not in plain.settings
    chosen = pm.train(rbm, points, sample_weight=COUNTS > 0, **options).state
    left = pm.train(rbm, points[COUNTS > 0], **options).state
    np.testing.assert_array_equal(chosen.parameters, left.parameters)


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 1), PlainPCD(10, 1, 1), pm.CD(1)])
@pytest.mark.parametrize("centred", [False, True])
def test_resumed_runs(gradient, centred, tmp_path):
    rbm, points, path = make_machine("spin", "bit"), points_of("spin"), tmp_path / "run.checkpoint"
    options = {"gradient": gradient, "batch_size": 5, "sample_weight": COUNTS + 0.1, "centred": centred}
    whole = pm.train(rbm, points, epochs=4, rng=0, **options).state

    def stop(state):
        if state.update == 5:
            raise StopIteration

    pm.train(rbm, points, epochs=4, rng=0, callback=stop, checkpoint=path, **options)
    again = pm.train(load_checkpoint(path), points, epochs=4, **options).state
    np.testing.assert_array_equal(again.parameters, whole.parameters)
    scaled = options | {"sample_weight": 2.0 * options["sample_weight"]}  # only ratios count
    pm.train(load_checkpoint(path), points, epochs=4, **scaled)
    for other in (None, COUNTS + 0.2):
        with pytest.raises(ValueError, match="`sample_weight` must be that of the run to go on with"):
            pm.train(load_checkpoint(path), points, epochs=4, **options | {"sample_weight": other})
    plain = pm.train(rbm, points, epochs=1, rng=0, **options | {"sample_weight": None}).state
    with pytest.raises(ValueError, match="`sample_weight` must be that of the run to go on with, None, got"):
        pm.train(plain, points, epochs=4, **options)
    moved = take_over(whole, points[:6], rng=1, optimizer=pm.Adam(1e-3), weight_decay=0.0, **options | {
        "sample_weight": np.arange(6.0)
    })  # fmt: skip
    np.testing.assert_array_equal(moved.parameters, whole.parameters)


@pytest.mark.parametrize("weights", [COUNTS + 1, COUNTS + 0.123, 10.0 ** np.arange(-6, 6)])
@pytest.mark.parametrize("gradient", [pm.PCD(300, 1, 1), pm.PCD(37, 9, 1), pm.CD(1)])
def test_units_that_never_change_do_not_move(gradient, weights):
    """Factors sum to zero exactly; rounding would be a slope, and Adam would make whole steps of it."""
    rng = np.random.default_rng(0)
    rbm = pm.RBM(np.zeros((4, 3)), [30.0, 0.0, 0.0, -30.0], [40.0, 0.0, -40.0], "spin", "spin")
    points = rng.choice([-1.0, 1.0], (len(weights), 4))
    points[:, 0], points[:, 3] = 1.0, -1.0
    options = {"epochs": 5, "batch_size": 5, "optimizer": pm.Adam(0.01), "evaluate": [], "rng": 1}
    found = pm.train(rbm, points, gradient=gradient, sample_weight=weights, **options).rbm
    np.testing.assert_array_equal(found.visible_bias[[0, 3]], [30.0, -30.0])
    np.testing.assert_array_equal(found.hidden_bias[[0, 2]], [40.0, -40.0])
    np.testing.assert_array_equal(found.weights[[0, 0, 3, 3], [0, 2, 0, 2]], 0.0)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(10, 1, 1)])
def test_constant_features_train(gradient, centred):
    points = np.ones((12, 4))
    rbm = pm.initialize(4, 3, visible_bias="data", data=points, rng=0)
    options = {"epochs": 20, "sample_weight": COUNTS, "centred": centred, "gradient": gradient, "rng": 0}
    assert np.isfinite(pm.train(rbm, points, **options).history.log_likelihood).all()


# Factors


@pytest.mark.parametrize("n_chains", [None, 1, 7, 100, 4096])
@pytest.mark.parametrize(
    "weights",
    [COUNTS, COUNTS / 3.0, COUNTS + np.pi, 10.0 ** np.arange(-30, 30, 5), 2.0 ** np.arange(12) * 1e300],
)
def test_factors_of_rows(weights, n_chains):
    kept, found = as_point_weights(weights, "sample_weight", len(weights))
    left = weights if kept is None else weights[kept]
    chosen = np.arange(len(left))[::2]
    factors, scale = found.factors(chosen, n_chains)
    batch, chains = factors[: len(chosen)].astype(float), factors[len(chosen) :].astype(float)
    assert factors.sum(dtype=float) == 0.0
    assert (factors == np.rint(factors)).all()
    share = left[chosen] / left[chosen].max()
    np.testing.assert_allclose(batch * scale, share / share.sum(), atol=2e-7)
    if n_chains is None:
        np.testing.assert_array_equal(chains, -batch)
    else:
        np.testing.assert_array_equal(chains, chains[0])
        assert len(chains) == n_chains
        assert chains[0] * scale * n_chains == pytest.approx(-1.0, rel=1e-15)


# What is refused


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.full(12, -1.0), "`sample_weight` must be zero or positive, got -1"),
        (np.zeros(12), "`sample_weight` must hold at least one positive number, got zeros only"),
        (np.where(COUNTS > 3, np.nan, 1.0), "`sample_weight` must be finite, got nan"),
        (np.where(COUNTS > 3, np.inf, 1.0), "`sample_weight` must be finite, got inf"),
        (np.ones(11), "`sample_weight` must hold one number for each of the 12 points, got shape .11,"),
        (np.ones((12, 1)), "`sample_weight` must hold one number for each of the 12 points"),
        (2.0, "`sample_weight` must hold one number for each of the 12 points, got shape ()"),
        ("equal", "`sample_weight` must be"),
    ],
)
def test_bad_weights(weights, words):
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    for call in (
        lambda **w: pm.train(rbm, points, epochs=1, **w),
        lambda **w: pm.training_steps(rbm, points, epochs=1, gradient=pm.PCD(3, 1, 1), **w),
        lambda **w: pm.log_likelihood(rbm, points, **w),
        lambda **w: pm.learning.exact_gradient(rbm, points, **w),
    ):
        with pytest.raises(ValueError, match=words):
            call(sample_weight=weights)
    with pytest.raises(ValueError, match=words.replace("sample", "validation")):
        pm.train(rbm, points, epochs=1, validation=points, validation_weight=weights)


def test_weights_of_no_validation():
    with pytest.raises(ValueError, match="`validation_weight` must be left out where `validation` is None"):
        pm.train(make_machine("spin", "bit"), points_of("spin"), epochs=1, validation_weight=COUNTS)
    state = pm.train(make_machine("spin", "bit"), points_of("spin"), epochs=1, sample_weight=COUNTS).state
    assert replace(state, epoch=0).settings["sample_weight"] == state.settings["sample_weight"]


def test_the_engine_of_pytorch(tmp_path):
    pytest.importorskip("torch")
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    again = np.repeat(points, COUNTS, axis=0)
    options = {"epochs": 1, "optimizer": pm.SGD(1.0), "evaluate": [], "rng": 4, "device": "torch:cpu"}
    options["gradient"] = pm.PCD(20, 1, 3)
    found = pm.train(rbm, points, sample_weight=COUNTS, **options).state
    wanted = pm.train(rbm, again, **options).state
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=1e-6)
    cd = options | {"gradient": pm.CD(1), "epochs": 3}
    assert np.isfinite(pm.train(rbm, points, sample_weight=COUNTS + 0.5, **cd).state.parameters).all()


# Biases from data, and the followed likelihood


@pytest.mark.parametrize("visible", ["spin", "bit", "gaussian"])
def test_biases_from_weighted_data(visible):
    points = points_of(visible)
    options = {"visible": visible, "visible_bias": "data", "scheme": "xavier", "rng": 0}
    found = pm.initialize(4, 3, data=points, sample_weight=COUNTS, **options)
    wanted = pm.initialize(4, 3, data=np.repeat(points, COUNTS, axis=0), **options)
    np.testing.assert_allclose(found.visible_bias, wanted.visible_bias, atol=1e-13)
    np.testing.assert_array_equal(found.weights, wanted.weights)
    plain = pm.initialize(4, 3, data=points, **options).visible_bias
    assert abs(found.visible_bias - plain).max() > 0.01
    same = pm.initialize(4, 3, data=points, sample_weight=np.full(12, 0.3), **options).visible_bias
    np.testing.assert_allclose(same, plain, atol=1e-13)
    if visible != "gaussian":  # the half count is one of 12 points, whatever the unit of the weights
        real = COUNTS + 0.25
        shares = real @ (points == 1.0) / real.sum() * len(points)
        wanted = np.log((shares + 0.5) / (len(points) - shares + 0.5)) / (2.0 if visible == "spin" else 1.0)
        for scale in (1.0, 1e-3, 1e5 / 3.0):
            found = pm.initialize(4, 3, data=points, sample_weight=scale * real, **options).visible_bias
            np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_weights_need_biases_from_data():
    for options in ({}, {"visible_bias": 0.5}):
        with pytest.raises(ValueError, match='`sample_weight` is used with `visible_bias="data"` only'):
            pm.initialize(4, 3, sample_weight=COUNTS, **options)
    with pytest.raises(ValueError, match="`sample_weight` must be zero or positive, got -3"):
        pm.initialize(4, 3, visible_bias="data", data=points_of("spin"), sample_weight=-COUNTS)
    with pytest.raises(ValueError, match="`sample_weight` must hold one number for each of the 12 points"):
        pm.initialize(4, 3, visible_bias="data", data=points_of("spin"), sample_weight=COUNTS[1:])


def test_the_followed_likelihood():
    rbm, points = make_machine("spin", "bit"), points_of("spin")
    steps = list(pm.training_steps(rbm, points, epochs=3, sample_weight=COUNTS, rng=0))
    follow = pm.learning.log_likelihood_trajectory
    options = {"n_chains": 50, "rng": 1}
    found = follow(
        steps, points, sample_weight=COUNTS, validation=points, validation_weight=COUNTS + 0.5, **options
    )
    wanted = follow(steps, np.repeat(points, COUNTS, axis=0), **options)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=1e-12)
    by_hand = [
        pm.log_likelihood(state.rbm, points, sample_weight=COUNTS + 0.5, log_partition=log_z).value
        for state, log_z in zip(steps, found.log_partition, strict=True)
    ]
    np.testing.assert_allclose(found.validation, by_hand, atol=1e-12)
    with pytest.raises(ValueError, match="`validation_weight` must be left out where `validation` is None"):
        follow(steps, points, validation_weight=COUNTS)


def test_annealing_starts_from_the_weighted_means(monkeypatch):
    """The means that an estimate of ``ln Z`` starts from."""
    seen = []
    monkeypatch.setattr(
        pm.LogZ,
        "__call__",
        lambda self, rbm, rng=None, *, means=None, **options: seen.append(means) or pm.Estimate(0.0),
    )
    points = points_of("spin")
    for gradient in (pm.PCD(3, 1, 1), PlainPCD(3, 1, 1)):
        pm.train(
            make_machine("spin", "bit"), points, epochs=1, gradient=gradient, sample_weight=COUNTS,
            log_z=pm.LogZ("mais", start="data"), evaluate=[1],
        )  # fmt: skip
        np.testing.assert_allclose(seen.pop(), COUNTS @ points / COUNTS.sum(), atol=1e-15)
