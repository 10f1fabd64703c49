"""Machines with a Gaussian layer: integrals on tiny ones, differences, files, training, chains, annealing."""

import itertools
import math

import numpy as np
import pytest

import paramagnet as pm
from conftest import draw_machine
from paramagnet.kernels.normal import draw_normal
from paramagnet.kernels.quadratic import pair_draws, pair_log_partition, pair_moments

LEVELS = {"spin": (-1.0, 1.0), "bit": (0.0, 1.0)}
CASES = [("gaussian", "bit"), ("gaussian(0.6)", "spin"), ("spin", "gaussian(1.7)"), ("bit", "gaussian")]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def states_of(unit, n):
    """All states of a layer with their weights: values of binary units, nodes of a Gauss-Hermite rule."""
    if unit.name in LEVELS:
        return [(np.array(x), 1.0) for x in itertools.product(LEVELS[unit.name], repeat=n)]
    points = zip(np.sqrt(unit.variance) * NODES, WEIGHTS, strict=True)
    return [
        (np.array([x for x, _ in pairs]), math.prod(w for _, w in pairs))
        for pairs in itertools.product(list(points), repeat=n)
    ]


def integrate(rbm):
    """ln Z, E[v], E[h], E[v h^T] by sums over states and integrals over Gaussian units, from the
    definition.
    """
    total, v_mean, h_mean, products = 0.0, 0.0, 0.0, 0.0
    for v, weight_v in states_of(rbm.visible, rbm.n_visible):
        for h, weight_h in states_of(rbm.hidden, rbm.n_hidden):
            weight = (
                weight_v
                * weight_h
                * math.exp(rbm.visible_bias @ v + rbm.hidden_bias @ h + v @ rbm.weights @ h)
            )
            total += weight
            v_mean, h_mean = v_mean + weight * v, h_mean + weight * h
            products = products + weight * np.outer(v, h)
    return math.log(total), v_mean / total, h_mean / total, products / total


# Exact sums -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_moments_against_integrals(visible, hidden):
    sizes = (2, 3) if visible.startswith("gaussian") else (3, 2)
    rbm = draw_machine(*sizes, visible, hidden)
    log_z, *slow = integrate(rbm)
    moments = pm.exact.exact_moments(rbm)
    assert moments.log_partition == pytest.approx(log_z, abs=1e-12)
    assert pm.log_partition(rbm) == pytest.approx(log_z, abs=1e-12)
    for ours, true in zip((moments.visible, moments.hidden, moments.products), slow, strict=True):
        np.testing.assert_allclose(ours, true, rtol=0, atol=1e-12)
        assert not ours.flags.writeable


def test_density_is_normalized():
    """The integral of exp(log-likelihood) over a grid of one and two Gaussian units is 1."""
    rbm = draw_machine(1, 3, "gaussian(0.8)", "spin", seed=4)
    x = np.linspace(-15, 15, 3001)
    density = np.exp(-rbm.free_energy(x[:, None]) - pm.log_partition(rbm))
    assert density.sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-12)
    each = [pm.log_likelihood(rbm, [[y]]).value for y in x[1000:1010]]
    np.testing.assert_allclose(np.exp(each), density[1000:1010], rtol=1e-12)
    two = draw_machine(2, 2, "gaussian", "bit", seed=5)
    x = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    total = np.exp(-two.free_energy(grid) - pm.log_partition(two)).sum() * (x[1] - x[0]) ** 2
    assert total == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 11, 13])
def test_pair_sums_against_all_states(n):
    rng = np.random.default_rng(n)
    fields, couplings = rng.normal(size=n), rng.normal(size=(n, n))
    couplings = couplings + couplings.T
    states = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    exponents = states @ fields + 0.5 * np.einsum("ki,ij,kj->k", states, couplings, states)
    log_z = np.logaddexp.reduce(exponents)
    p = np.exp(exponents - log_z)
    value, mean, second = pair_moments(fields, couplings)
    assert value == pytest.approx(log_z, abs=1e-12)
    assert pair_log_partition(fields, couplings) == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(mean, p @ states, rtol=0, atol=1e-13)
    np.testing.assert_allclose(second, (states.T * p) @ states, rtol=0, atol=1e-13)


def test_pair_sums_are_the_same_for_any_number_of_threads_and_huge_exponents():
    rng = np.random.default_rng(1)
    fields, w = 300.0 * rng.normal(size=22), rng.normal(size=(22, 22))
    couplings = 40.0 * (w + w.T)
    one, three = pair_moments(fields, couplings), pair_moments(fields, couplings, n_threads=3)
    assert one[0] == three[0]
    for a, b in zip(one[1:], three[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(one[0])
    assert pair_log_partition(fields, couplings, n_threads=2) == pytest.approx(one[0], rel=1e-14)
    seen = []
    pair_log_partition(fields, couplings, progress=seen.append)
    assert seen[-1] == 1.0


def test_exact_draws():
    fields, couplings = (
        np.array([0.3, -0.8, 0.5]),
        np.array([[0.2, 1.0, -0.4], [1.0, 0.0, 0.7], [-0.4, 0.7, 0.1]]),
    )
    states = pair_draws(fields, couplings, 200_000, np.random.default_rng(2))
    _, mean, second = pair_moments(fields, couplings)
    np.testing.assert_allclose(states.mean(axis=0), mean, atol=5 * 0.5 / np.sqrt(200_000))
    np.testing.assert_allclose(states.T @ states / len(states), second, atol=0.006)
    rbm = draw_machine(4, 12, "gaussian(0.5)", "bit", seed=2)
    sample = pm.sample_exact(rbm, 100_000, rng=0)
    np.testing.assert_allclose(sample.mean(axis=0), pm.exact.exact_moments(rbm).visible, atol=0.03)
    assert pm.sample_exact(draw_machine(5, 2, "spin", "gaussian"), 10, rng=0).shape == (10, 5)


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_gradient_against_differences(visible, hidden):
    rbm = draw_machine(4, 3, visible, hidden, seed=3)
    rng = np.random.default_rng(8)
    if visible.startswith("gaussian"):
        data = rng.normal(size=(7, 4))
    else:
        data = rng.choice(LEVELS[visible], size=(7, 4))
    gradient = pm.learning.exact_gradient(rbm, data)
    for name in ("weights", "visible_bias", "hidden_bias"):
        array = getattr(rbm, name)
        for index in np.ndindex(array.shape):

            def value(t, name=name, index=index):
                parts = {key: getattr(rbm, key).copy() for key in ("weights", "visible_bias", "hidden_bias")}
                parts[name][index] += t
                return pm.log_likelihood(pm.RBM(**parts, visible=visible, hidden=hidden), data).value

            slope = (8 * (value(1e-3) - value(-1e-3)) - (value(2e-3) - value(-2e-3))) / 12e-3
            assert getattr(gradient, name)[index] == pytest.approx(slope, abs=1e-9)


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_likelihood_from_the_energy(visible, hidden):
    rbm = draw_machine(3, 2, visible, hidden, seed=6)
    v = rbm.visible.draw(np.zeros((5, 3)), np.random.default_rng(0))
    expected = np.mean(-rbm.free_energy(v)) - pm.log_partition(rbm)
    assert pm.log_likelihood(rbm, v).value == pytest.approx(expected, rel=1e-12)
    if not hidden.startswith("gaussian"):
        total = sum(
            np.exp(-rbm.energy(v, np.array([x])) + rbm.free_energy(v))
            for x in itertools.product(LEVELS[hidden], repeat=2)
        )
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    else:
        s = rbm.hidden.variance
        mean = rbm.mean_h_given_v(v)
        joint = -rbm.energy(v, np.zeros((1, 2))) + rbm.free_energy(v)  # ln p(h | v)
        np.testing.assert_allclose(
            joint, -np.sum(mean**2, axis=1) / (2 * s) - np.log(2 * np.pi * s), rtol=1e-12
        )


def test_two_gaussian_layers_have_no_exact_sum():
    rbm = draw_machine(2, 2, "gaussian", "gaussian")
    with pytest.raises(ValueError, match="`rbm` must have a layer of spin or bit units"):
        pm.log_partition(rbm)


def test_cost_counts_the_binary_layer():
    with pytest.raises(ValueError, match=r"Exact enumeration needs 2\*\*44 states"):
        pm.log_partition(draw_machine(3, 44, "gaussian", "bit"))
    assert np.isfinite(pm.log_partition(draw_machine(300, 4, "gaussian", "bit", scale=0.05)))


# Conditionals, files, change of variables ----------------------------------------------------------------


def test_conditional_means_and_draws():
    rbm = draw_machine(3, 2, "gaussian(0.5)", "bit", seed=7)
    h = np.array([1.0, 0.0])
    np.testing.assert_allclose(
        rbm.mean_v_given_h(h), 0.5 * (rbm.visible_bias + rbm.weights[:, 0]), rtol=1e-14
    )
    draws = rbm.sample_v_given_h(np.tile(h, (100_000, 1)), rng=1)
    np.testing.assert_allclose(draws.mean(axis=0), rbm.mean_v_given_h(h), atol=0.012)
    np.testing.assert_allclose(np.cov(draws.T), 0.5 * np.eye(3), atol=0.012)


def test_file_keeps_the_variance(tmp_path):
    rbm = draw_machine(3, 2, pm.gaussian(0.1 + 0.2), "bit")
    rbm.save(tmp_path / "machine.safetensors")
    same = pm.RBM.load(tmp_path / "machine.safetensors")
    assert same.visible == rbm.visible
    assert same.visible.variance == 0.1 + 0.2
    np.testing.assert_array_equal(same.weights, rbm.weights)


def test_change_of_units():
    rbm = draw_machine(3, 4, "gaussian(2.0)", "bit")
    spins, constant = rbm.change_units(hidden="spin")
    assert pm.log_partition(rbm) == pytest.approx(pm.log_partition(spins) - constant, rel=1e-12)
    unit, constant = rbm.change_units(visible="gaussian")
    assert constant == 0.0
    assert pm.log_partition(unit) == pytest.approx(pm.log_partition(rbm), rel=1e-12)
    data = np.random.default_rng(0).normal(size=(5, 3))
    shift = pm.log_likelihood(rbm, np.sqrt(2.0) * data).value - pm.log_likelihood(unit, data).value
    assert shift == pytest.approx(-1.5 * np.log(2.0), rel=1e-12)
    with pytest.raises(ValueError, match=r"got gaussian.* no change of variables leads from"):
        rbm.change_units(visible="spin")


# Initialization ------------------------------------------------------------------------------------------


def test_initialize():
    data = np.random.default_rng(1).normal(2.0, 1.0, size=(50, 6))
    rbm = pm.initialize(6, 5, visible=pm.gaussian(2.0), hidden="spin", visible_bias="data", data=data, rng=0)
    np.testing.assert_allclose(rbm.mean_v_given_h(np.zeros(5)), data.mean(axis=0), rtol=1e-12)
    plain = pm.initialize(600, 500, visible="gaussian", hidden="spin", rng=0)
    assert plain.weights.std() == pytest.approx(1 / np.sqrt(np.sqrt(600 * 500) + 500), rel=0.01)
    with pytest.raises(pm.theory.NoMaximumError, match="gaussian-gaussian"):
        pm.initialize(6, 5, visible="gaussian", hidden="gaussian")


def test_scale_from_the_biases():
    biases = np.linspace(-2.0, 1.0, 40)
    zero = pm.initialize(40, 30, visible_bias=biases, hidden_bias=-2.0, rng=0)
    own = pm.initialize(40, 30, visible_bias=biases, hidden_bias=-2.0, scale_from="biases", rng=0)
    ratio = pm.beta_max(0.75, b=pm.Biases(biases), c=-2.0) / pm.beta_max(0.75, c=-2.0)
    np.testing.assert_allclose(own.weights, ratio * zero.weights, rtol=1e-12)
    assert ratio > 1.05
    with pytest.raises(ValueError, match="`scale_from` must be 'zero' or 'biases', got 'data'"):
        pm.initialize(4, 3, scale_from="data")


def test_schemes_are_judged():
    reports = {report.name: report for report in pm.compare_schemes(30, 20, visible="gaussian", hidden="bit")}
    assert reports["layer-correlation"].correlation == pytest.approx(1.0, rel=1e-9)
    assert 0.0 < reports["hinton"].correlation < 0.5


# Training ------------------------------------------------------------------------------------------------


def mixture(n_points, seed):
    """Two clusters in three dimensions."""
    rng = np.random.default_rng(seed)
    centre = np.where(rng.random(n_points) < 0.4, 1.5, -1.0)[:, None] * np.array([1.0, -0.7, 0.3])
    return centre + rng.normal(size=(n_points, 3))


def test_exact_training_finds_two_clusters(tmp_path):
    data, held_out = mixture(400, 0), mixture(400, 1)
    start = pm.initialize(3, 4, visible="gaussian", hidden="spin", visible_bias="data", data=data, rng=0)
    options = {"epochs": 300, "optimizer": pm.Adam(0.02), "validation": held_out, "rng": 0}
    result = pm.train(start, data, **options)
    normal = np.cov(data.T)
    best_normal = -0.5 * (np.linalg.slogdet(2 * np.pi * normal)[1] + 3)
    assert result.history.log_likelihood[-1] > best_normal + 0.02
    assert result.history.validation[-1] > result.history.validation[0] + 0.3
    assert np.all(np.diff(result.history.log_likelihood) > -0.01)
    # resuming from a file equals going on
    half = pm.train(start, data, **{**options, "epochs": 150}, checkpoint=tmp_path / "state.safetensors")
    assert not np.array_equal(half.rbm.weights, result.rbm.weights)
    resumed = pm.train(pm.load_checkpoint(tmp_path / "state.safetensors"), data, **options)
    np.testing.assert_array_equal(resumed.rbm.weights, result.rbm.weights)
    with pytest.raises(ValueError, match="`data` must be that of the run to go on with"):
        pm.train(half.state, held_out, epochs=300)


def test_chains_learn_what_exact_gradients_do(tmp_path):
    data = mixture(400, 0)
    start = pm.initialize(3, 4, visible="gaussian", hidden="spin", visible_bias="data", data=data, rng=0)
    options = {"epochs": 200, "optimizer": pm.Adam(0.02), "rng": 0}
    exact = pm.train(start, data, **options)
    settings = pm.PCD(n_chains=1000, n_steps=5, n_relax=50)
    sampled = pm.train(start, data, gradient=settings, **options)
    assert sampled.history.log_likelihood[-1] == pytest.approx(exact.history.log_likelihood[-1], abs=0.03)
    half = pm.train(start, data, gradient=settings, **{**options, "epochs": 80}, checkpoint=tmp_path / "s")
    resumed = pm.train(pm.load_checkpoint(tmp_path / "s"), data, gradient=settings, **options)
    assert half.state.epoch == 80
    np.testing.assert_array_equal(resumed.rbm.weights, sampled.rbm.weights)
    one, two = (pm.train(start, data, gradient=pm.PCD(300, 3, 10, n), epochs=3, rng=1).rbm for n in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    brief = pm.train(start, data, gradient=pm.CD(1), epochs=50, optimizer=pm.Adam(0.02), rng=0)
    assert brief.history.log_likelihood[-1] > brief.history.log_likelihood[0]


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_sampled_gradient_is_the_exact_one_on_average(visible, hidden):
    from paramagnet.layout import Layout
    from paramagnet.learning.moments import model_moments

    rbm = draw_machine(4, 3, visible, hidden, seed=3, scale=0.2)
    layout = Layout.of(rbm)
    parameters = layout.flatten(rbm)
    settings = pm.PCD(n_chains=60_000, n_steps=30, n_relax=30)
    none = np.zeros((1, 4))
    chains = settings.start(layout, parameters, none, np.random.default_rng(0), None)
    _, moments = settings.moments(layout, parameters, none, chains, None)
    _, exact = model_moments(layout, parameters, 1)
    assert np.abs(moments.average - exact).max() < 0.03


# Chains and annealing -----------------------------------------------------------------------------------


def test_normal_deviates():
    fields = np.zeros((500, 203), np.float32)
    shift, new = np.full(203, 0.5, np.float32), np.empty_like(fields)
    assert draw_normal(fields, 1.0, shift, 2.0, (7, 0, 3, 1), new) == new.size
    z = (new.astype(float) - 0.5) / 2.0
    n = z.size
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert np.mean(z**power) == pytest.approx(moment, abs=4.5 * np.sqrt(spread / n))
    assert abs(np.mean(z[:, :-1] * z[:, 1:])) < 4.5 / np.sqrt(n)
    assert abs(np.mean(z[:-1] * z[1:])) < 4.5 / np.sqrt(n)
    ordered = np.sort(z.ravel())
    normal = 0.5 * (1 + np.vectorize(math.erf)(ordered[::50] / np.sqrt(2)))
    assert np.abs(normal - np.arange(n)[::50] / n).max() < 1.9 / np.sqrt(n)  # Kolmogorov and Smirnov
    part = np.empty((100, 203), np.float32)
    draw_normal(fields[:100], 1.0, shift, 2.0, (7, 200, 3, 1), part)
    np.testing.assert_array_equal(part, new[200:300])  # the address of a draw is all it depends on


def test_samples():
    rbm = draw_machine(4, 5, "gaussian(0.5)", "bit", seed=2)
    moments = pm.exact.exact_moments(rbm)
    drawn = pm.sample(rbm, 50_000, n_steps=30, rng=0)
    exact = pm.sample_exact(rbm, 50_000, rng=1)
    np.testing.assert_allclose(drawn.mean(axis=0), moments.visible, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(exact.T), atol=0.05)
    held = pm.sample(rbm, 100, n_steps=5, clamp=[0.25, np.nan, np.nan, -3.5], rng=0)
    assert (held[:, 0] == 0.25).all()
    assert (held[:, 3] == -3.5).all()
    with pytest.raises(ValueError, match="`clamp` must hold numbers below"):
        pm.sample(rbm, 2, clamp=[np.inf, 0, 0, 0])
    started = pm.sample(rbm, 2, n_steps=0, start=np.full((2, 4), 0.125), rng=0)
    assert (started == 0.125).all()


@pytest.mark.parametrize(("visible", "hidden"), CASES)
@pytest.mark.parametrize("method", ["mais", "ais", "reverse-ais"])
def test_annealing(visible, hidden, method):
    rbm = draw_machine(5, 4, visible, hidden, seed=1)
    true = pm.log_partition(rbm)
    estimate = pm.estimate_log_partition(rbm, method=method, n_samples=2000, n_temperatures=100, rng=0)
    assert estimate.error < 0.1
    assert abs(estimate.value - true) < 4.5 * estimate.error + 1e-4
    if visible.startswith("gaussian") and method == "mais":
        means = pm.exact.exact_moments(rbm).visible
        better = pm.estimate_log_partition(rbm, start=means, n_samples=2000, n_temperatures=100, rng=0)
        assert abs(better.value - true) < 4.5 * better.error + 1e-4
        with pytest.raises(
            ValueError, match="`marginalize` must be a layer of spin or bit units, got 'visible'"
        ):
            pm.estimate_log_partition(rbm, marginalize="visible")


# Bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.0, -1.0, np.inf, np.nan, "wide"])
def test_bad_variances(variance):
    with pytest.raises(ValueError, match="`variance` must be"):
        pm.gaussian(variance)


@pytest.mark.parametrize("name", ["gaussian(0)", "gaussian(-2)", "gaussian(x)", "gaussian()", "normal"])
def test_bad_names(name):
    with pytest.raises(ValueError, match="`visible` must be a unit type"):
        pm.RBM(np.zeros((2, 2)), 0, 0, name)


def test_bad_data():
    rbm = draw_machine(2, 2, "gaussian", "bit")
    data = np.zeros((3, 2))
    data[1, 0] = np.nan
    for call in (pm.log_likelihood, pm.learning.exact_gradient):
        with pytest.raises(
            ValueError, match="`data` must not hold NaN, found 1, the first in row 1, column 0"
        ):
            call(rbm, data)
    with pytest.raises(ValueError, match="`data` must not hold NaN"):
        pm.train(rbm, data, epochs=1)
    with pytest.raises(ValueError, match="`data` must not hold NaN"):
        pm.initialize(2, 2, visible="gaussian", visible_bias="data", data=data)
    data[1, 0] = np.inf
    with pytest.raises(ValueError, match="`data` must hold finite numbers, got inf in row 1, column 0"):
        pm.log_likelihood(rbm, data)
    with pytest.raises(ValueError, match="needs the data"):
        pm.initialize(2, 2, visible="gaussian", visible_bias="data")
    with pytest.raises(ValueError, match="`visible_bias` must be one number or one for each of the 2"):
        pm.initialize(2, 2, visible="gaussian", visible_bias=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="`data` must have 2 columns"):
        pm.log_likelihood(rbm, np.zeros((3, 4)))


def test_two_gaussian_layers_are_refused_by_name():
    rbm = pm.initialize(5, 5, visible="gaussian", hidden="gaussian", scheme="hinton", rng=0)
    for function in (pm.log_partition, pm.estimate_log_partition):
        with pytest.raises(
            ValueError, match="`rbm` must have a layer of spin or bit units, got two Gaussian"
        ):
            function(rbm)
    assert np.isfinite(pm.sample(rbm, 3, rng=0)).all()
    strong = pm.initialize(50, 50, visible="gaussian", hidden="gaussian", scheme="xavier", rng=0)
    with pytest.raises(ValueError, match=r"`rbm` must be a distribution: .* below 1, got 1\.8"):
        pm.sample(strong, 2, rng=0)
    with pytest.raises(pm.theory.NoMaximumError, match="Give one of the layers spin or bit units"):
        pm.beta_max(1.0, visible="gaussian", hidden="gaussian")


def test_numbers_that_floats_do_not_hold():
    rbm = pm.initialize(2, 3, visible="gaussian", rng=0)
    with pytest.raises(
        ValueError, match=r"`data` must hold .* 100000 standard deviations .* found 1e\+160\. Stand"
    ):
        pm.log_likelihood(rbm, np.full((1, 2), 1e160))
    with pytest.raises(ValueError, match=r"`clamp` must hold numbers below 1e\+30, .* found 1e\+39"):
        pm.sample(rbm, 2, clamp=[1e39, np.nan])
    with pytest.raises(ValueError, match=r"2\*\*60 states") as caught:
        pm.log_partition(pm.initialize(3, 60, visible="gaussian", scheme="hinton", rng=0))
    assert "force" not in str(caught.value)  # it would not help


def test_what_needs_two_values_says_so():
    with pytest.raises(
        ValueError, match="`units` must be 'spin' or 'bit', units of two values, got 'gaussian'"
    ):
        pm.fit_binarizer(np.zeros((3, 2)), units="gaussian")
    assert not hasattr(pm.GAUSSIAN, "levels")
    with pytest.raises(
        ValueError, match="`visible` must be 'spin' or 'bit', units of two values, got 'gauss"
    ):
        pm.compare_initializations(np.zeros((4, 3)), 2, epochs=1, visible="gaussian")


def test_units_held_fixed_do_not_bring_changed_rows_to_gaussian_layers():
    """With most units held few change, yet a Gaussian one does not change by a step."""
    from paramagnet.sampling.chains import Chains, run_sweeps
    from paramagnet.sampling.layer import layers_of

    rng = np.random.default_rng(5)
    rbm = pm.RBM(rng.normal(0.0, 0.3, (12, 6)), np.zeros(12), np.zeros(6), "gaussian", "bit")
    held = np.ones((40, 12), bool)
    held[:, 0] = False
    clamp = held, rng.normal(size=(40, 12)).astype(np.float32)
    chains = Chains.start(rbm.visible, (40, 12), rng)
    ends = [run_sweeps(layers_of(rbm), chains, 9, clamp=clamp, dense_above=share) for share in (0.0, 0.5)]
    np.testing.assert_allclose(ends[0].fields, ends[1].fields, atol=1e-5)


def test_data_far_from_zero_keep_their_digits_or_are_refused():
    unit = pm.gaussian(0.25)
    rbm = pm.RBM(np.zeros((2, 1)), [4e4 / 0.25, 0.0], 0.0, unit, "spin")  # its visible mean is 4e4
    exact = -np.log(2.0 * np.pi * 0.25)
    assert float(pm.log_likelihood(rbm, [[4e4, 0.0]])) == pytest.approx(exact, abs=1e-5)
    with pytest.raises(ValueError, match=r"at most 100000 standard deviations .*, 50000, .* found 60000"):
        pm.log_likelihood(rbm, [[6e4, 0.0]])


def test_many_binary_units_beside_a_gaussian_layer_are_not_enumerated():
    """Costs are those of the binary layer, however small the other one is."""
    rng = np.random.default_rng(0)
    rbm, points = pm.initialize(4, 60, visible="gaussian", rng=1), rng.normal(size=(30, 4))
    states = pm.training_steps(rbm, points, epochs=1, gradient=pm.CD(1), rng=0, evaluate=())
    trajectory = pm.learning.log_likelihood_trajectory(states, points, n_chains=50, n_temperatures=20, rng=0)
    assert np.isfinite(trajectory.log_likelihood).all()


def test_scales_beyond_the_theory_are_marked():
    reports = {r.name: r for r in pm.compare_schemes(10, 10, visible="gaussian(2000)")}
    assert reports["layer-correlation"].phase == "replica symmetric"
    assert reports["xavier"].phase == "unknown"
    assert np.isnan(reports["xavier"].q_v)
    assert np.isfinite(reports["xavier"].to_ours)


def test_search_for_the_maximum_stays_where_the_theory_is_computed():
    result = pm.theory.find_beta_max(0.001, visible="gaussian", hidden="spin", c=10.0)
    assert result.status == "unstable"
    assert result.beta == pytest.approx(15.1822, abs=1e-3)
