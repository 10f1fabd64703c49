"""The scikit-learn estimator: its conventions, its thresholds, its likelihood."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest

import paramagnet as pm

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install ".[sklearn]"')

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from paramagnet.adapters.scikit import RBMTransformer
from paramagnet.learning import evaluation


@pytest.fixture(scope="module")
def bits():
    spins = pm.load_dataset("toy", n_points=120, rng=1).data[:, :6]
    return (spins + 1.0) / 2.0


@pytest.fixture(scope="module")
def fitted(bits):
    return RBMTransformer(4, n_iter=30, learning_rate=0.02, random_state=0).fit(bits)


def all_states(n, low=0.0, high=1.0):
    return np.array(list(itertools.product((low, high), repeat=n)))


@pytest.mark.parametrize("centred", [True, pm.Centring(rate=0.3)])
def test_centred_learning(bits, centred):
    settings = {"n_iter": 20, "learning_rate": 0.02, "random_state": 0}
    machine = RBMTransformer(4, centred=centred, **settings).fit(bits)
    kept = machine._state
    assert kept.settings["centred"].startswith("Centring(rate=0.")
    plain = RBMTransformer(4, centred=False, **settings).fit(bits)
    assert not np.allclose(machine.rbm_.weights, plain.rbm_.weights)
    machine.partial_fit(bits[:50])  # the running mean goes on
    assert machine._state.offsets is not None
    assert not np.array_equal(machine._state.offsets, kept.offsets)
    assert clone(machine).centred == centred
    with pytest.raises(ValueError, match="`centred` must be True, False or a `Centring`"):
        machine.set_params(centred="yes").fit(bits)


# scikit-learn's own judgement


def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its checks warn on purpose
        results = check_estimator(RBMTransformer(n_components=5, n_iter=2), on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    assert not any(result["expected_to_fail"] for result in results)
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_dataframe_column_names_consistency"}
    assert len(results) > 40


# Weights of points


@pytest.mark.parametrize("threshold", ["auto", "median"])
def test_weights_are_repetitions(threshold):
    rng = np.random.default_rng(0)
    numbers, counts = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5)), rng.integers(0, 4, 30)
    again = np.repeat(numbers, counts, axis=0)
    model = RBMTransformer(3, n_iter=5, threshold=threshold, centred=True, random_state=0)
    found, wanted = clone(model).fit(numbers, sample_weight=counts), clone(model).fit(again)
    np.testing.assert_array_equal(found.binarizer_.thresholds, wanted.binarizer_.thresholds)
    np.testing.assert_allclose(found.rbm_.weights, wanted.rbm_.weights, atol=1e-12)
    assert found.score(numbers, sample_weight=counts) == pytest.approx(wanted.score(again), abs=1e-12)
    first = clone(model).partial_fit(numbers, sample_weight=counts).partial_fit(numbers, sample_weight=counts)
    other = clone(model).partial_fit(again).partial_fit(again)
    np.testing.assert_allclose(first.rbm_.weights, other.rbm_.weights, atol=1e-12)
    with pytest.raises(ValueError, match="`sample_weight` must hold one number for each of the 30 points"):
        model.fit(numbers, sample_weight=counts[1:])
    with pytest.raises(ValueError, match="`sample_weight` must hold at least one positive number"):
        found.score(numbers, sample_weight=0 * counts)


def test_penalties_reach_training(bits):
    options = {"l1": 0.1, "l1_group": 0.2, "clip": 3.0}
    settings = RBMTransformer(3, n_iter=1, **options).fit(bits)._state.settings
    assert {name: settings[name] for name in options} == {
        name: repr(value) for name, value in options.items()
    }


# Notes


@pytest.mark.parametrize("gradient", [None, pm.CD(1, n_threads=1), pm.PCD(20, 1, 5, n_threads=1)])
def test_a_machine_below_independent_units_is_a_warning(bits, gradient):
    settings = {"n_iter": 300, "batch_size": 40, "gradient": gradient, "random_state": 0}
    model = RBMTransformer(4, gain=30.0, learning_rate=1e-6, **settings)
    with pytest.warns(pm.TrainingWarning, match="it has learned less than the means"):
        model.fit(bits)
    assert model.score(bits) < pm.independent_log_likelihood(bits, "bit")
    assert any("it has learned less than the means" in note for note in model.notes_)
    assert pickle.loads(pickle.dumps(model)).notes_ == model.notes_
    healthy = RBMTransformer(4, learning_rate=0.01, **settings).fit(bits)
    assert healthy.score(bits) > pm.independent_log_likelihood(bits, "bit")
    assert not any("nats" in note for note in healthy.notes_)
    model.partial_fit(bits)  # not judged
    assert not any("nats" in note for note in model.notes_)


# Likelihoods


def test_score_is_the_log_likelihood(fitted, bits):
    # every state of six bits, summed by hand: probabilities that sum to one
    rows = fitted.score_samples(all_states(6))
    assert np.exp(rows).sum() == pytest.approx(1.0, abs=1e-12)
    energies = [[fitted.rbm_.energy(2.0 * v - 1.0, h).item() for h in all_states(4)] for v in all_states(6)]
    weights = np.exp(-np.array(energies)).sum(axis=1)
    np.testing.assert_allclose(rows, np.log(weights / weights.sum()), atol=1e-12)
    assert fitted.score(bits) == pytest.approx(fitted.score_samples(bits).mean(), abs=1e-12)
    assert fitted.score(bits) == pytest.approx(float(pm.log_likelihood(fitted.rbm_, 2.0 * bits - 1.0)))
    assert fitted.score_error_ == 0.0


def test_training_raises_the_likelihood(fitted, bits):
    untrained = RBMTransformer(4, n_iter=0, visible_bias=0.0, random_state=0).fit(bits)
    independent = RBMTransformer(4, n_iter=0, gain=0.0, random_state=0).fit(bits)
    assert fitted.score(bits) > independent.score(bits) > untrained.score(bits)
    means = bits.mean(axis=0)
    entropy = -np.sum(means * np.log(means) + (1 - means) * np.log(1 - means))
    assert independent.score(bits) == pytest.approx(-entropy, abs=1e-3)  # half a count is added


def test_large_machines_are_estimated_once_per_fit(bits, monkeypatch):
    data = np.tile(bits, (1, 5))
    machine = RBMTransformer(40, n_iter=1, random_state=0).fit(data)
    calls = []
    original = evaluation.estimate_log_partition

    def counted(*args, **options):
        calls.append(1)
        return original(*args, **options | {"n_samples": 200, "n_temperatures": 100})

    monkeypatch.setattr(evaluation, "estimate_log_partition", counted)
    first = machine.score_samples(data)
    np.testing.assert_array_equal(machine.score_samples(data), first)
    machine.score(data)
    assert len(calls) == 1
    assert 0.0 < machine.score_error_ < 1.0
    assert machine.log_partition_.error == machine.score_error_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).score_samples(data), first)
    assert len(calls) == 1
    machine.partial_fit(data)
    machine.score(data)
    assert len(calls) == 2


def test_a_bad_estimate_says_so(fitted, bits, monkeypatch):
    copy = pickle.loads(pickle.dumps(fitted))
    copy._log_partition = None
    monkeypatch.setattr(evaluation, "Estimate", lambda value: pm.Estimate(value, 3.0, 2.0))
    with pytest.warns(RuntimeWarning, match="do not trust"):
        copy.score(bits)


def test_the_way_to_ln_z_can_be_chosen(bits):
    exact = RBMTransformer(4, n_iter=2, random_state=0).fit(bits)
    policy = pm.LogZ("mais", n_samples=300, n_temperatures=60, start="data")
    other = RBMTransformer(4, n_iter=2, random_state=0, log_z=policy).fit(bits)
    np.testing.assert_array_equal(other.rbm_.weights, exact.rbm_.weights)
    assert exact.score_error_ == 0.0
    assert 0.0 < other.score_error_ < 0.1
    assert abs(other.score(bits) - exact.score(bits)) < 4.0 * other.score_error_
    assert clone(other).log_z == policy
    with pytest.raises(ValueError, match=r"`log_z` must be a `LogZ`, .*got 'mais'"):
        RBMTransformer(4, n_iter=1, log_z="mais").fit(bits).score(bits)


def test_the_optimizer_can_be_chosen(bits):
    default = RBMTransformer(4, n_iter=3, learning_rate=0.01, random_state=0).fit(bits)
    stated = RBMTransformer(4, n_iter=3, optimizer=pm.Adam(0.01), random_state=0).fit(bits)
    np.testing.assert_array_equal(stated.rbm_.weights, default.rbm_.weights)
    other = RBMTransformer(4, n_iter=3, optimizer=pm.SGD(0.01, 0.5), random_state=0).fit(bits)
    assert not np.array_equal(other.rbm_.weights, default.rbm_.weights)
    other.partial_fit(bits)
    with pytest.raises(ValueError, match=r"`optimizer` must start with 1 slots, .* got 2 from Adam"):
        other.set_params(optimizer=None).partial_fit(bits)


# Thresholds


def test_binary_data_stay_as_they_are(bits):
    for data in (bits, 2.0 * bits - 1.0, bits.astype(bool), bits.astype(np.int8)):
        for threshold in ("auto", None):
            machine = RBMTransformer(3, n_iter=2, threshold=threshold, random_state=0).fit(data)
            assert machine.binarizer_.method == "binary"
            np.testing.assert_array_equal(machine._binarize(np.asarray(data, float)), 2.0 * bits - 1.0)
    same = RBMTransformer(3, n_iter=2, random_state=0).fit(2.0 * bits - 1.0)
    np.testing.assert_array_equal(same.rbm_.weights, machine.rbm_.weights)


def test_other_data_are_binarized_at_what_fit_learned(bits):
    rng = np.random.default_rng(5)
    data = 3.0 * bits + rng.normal(size=bits.shape)
    machine = RBMTransformer(3, n_iter=2, random_state=0).fit(data[:80])
    rule = pm.fit_binarizer(data[:80])
    assert machine.binarizer_.describe() == "otsu per feature"
    expected = machine.rbm_.mean_h_given_v(rule.apply(data[80:]))
    np.testing.assert_array_equal(machine.transform(data[80:]), expected)
    np.testing.assert_allclose(machine.transform(data[80:81]), expected[:1], rtol=1e-12)
    assert RBMTransformer(3, n_iter=0, threshold="median").fit(data).binarizer_.method == "median"
    assert RBMTransformer(3, n_iter=0, threshold=1.5).fit(data).binarizer_.thresholds == 1.5


def test_threshold_none_refuses_what_is_not_binary(bits):
    machine = RBMTransformer(3, n_iter=1, threshold=None)
    with pytest.raises(ValueError, match=r"where `threshold` is None; found 0\.5"):
        machine.fit(0.5 * bits)
    mixed = bits.copy()
    mixed[0, 0] = -1.0
    with pytest.raises(ValueError, match="found -1, 0 and 1"):
        machine.fit(mixed)
    machine.fit(bits)
    for foreign in (0.5 * bits, 2.0 * bits - 1.0):
        with pytest.raises(ValueError, match="`X` must hold the values of bit units"):
            machine.transform(foreign)
    with pytest.raises(ValueError, match="`threshold` must be 'auto'"):
        RBMTransformer(3, threshold="stochastic").fit(bits)


def test_constant_features_do_no_harm(bits):
    data = np.column_stack((3.0 * bits + 0.5, np.full(len(bits), 7.0)))
    machine = RBMTransformer(3, n_iter=2, random_state=0).fit(data)  # a warning would be an error
    assert np.isfinite(machine.score(data))


# Fitting


@pytest.mark.parametrize("unit", ["bit", "spin"])
def test_training_is_that_of_the_engine(bits, unit):
    options = {"n_iter": 3, "batch_size": 50, "learning_rate": 0.01, "random_state": 3}
    machine = RBMTransformer(4, hidden=unit, gradient=pm.Exact(), **options).fit(bits)
    rng, spins = machine._generator(0, 0), 2.0 * bits - 1.0
    hidden_bias = {"bit": -2.5, "spin": 0.0}[unit]
    start = pm.initialize(
        6, 4, hidden=unit, scheme="recommended", hidden_bias=hidden_bias, data=spins, rng=rng
    )
    options = {"optimizer": pm.Adam(0.01), "batch_size": 50, "centred": True}
    result = pm.train(start, spins, epochs=3, rng=rng, **options)
    np.testing.assert_array_equal(machine.rbm_.weights, result.rbm.weights)
    features = machine.transform(bits)
    low = 0.0 if unit == "bit" else -1.0
    assert ((features > low) & (features < 1.0)).all()
    np.testing.assert_array_equal(features, result.rbm.mean_h_given_v(2.0 * bits - 1.0))


def test_initial_scale_is_that_of_the_theory():
    data = np.random.default_rng(0).integers(0, 2, size=(10, 60)).astype(float)
    options = {"hidden_bias": -3.0, "gain": 0.5, "n_iter": 0, "random_state": 0}
    machine = RBMTransformer(200, **options).fit(data)
    std = 0.5 * pm.weight_std(60, 200, hidden_bias=-3.0)
    assert np.std(machine.rbm_.weights) == pytest.approx(0.7071 * std, rel=5.0 / np.sqrt(2 * 60 * 200))
    machine = RBMTransformer(200, recipe="paper", **options).fit(data)
    assert np.std(machine.rbm_.weights) == pytest.approx(std, rel=5.0 / np.sqrt(2 * 60 * 200))
    assert (machine.rbm_.hidden_bias == -3.0).all()


def test_the_recipe_settles_what_is_left_open(bits):
    machine = RBMTransformer(4, random_state=0).fit(bits)
    settings, recipe = machine._state.settings, machine._choose(bits)
    assert settings["centred"] == "Centring(rate=0.1, factor=None)"
    assert f"Schedule(kind='linear', rate={recipe.rate!r}" in settings["optimizer"]
    assert machine._state.epoch == recipe.epochs
    assert settings["batch_size"] == str(recipe.batch_size)
    large = RBMTransformer(40, n_iter=1, random_state=0).fit(np.tile(bits, (1, 5)))
    assert large._state.settings["guard"].startswith("Guard(")
    paper = RBMTransformer(4, recipe="paper", n_iter=2, hidden_bias=0.0, random_state=0).fit(bits)
    assert "centred" not in paper._state.settings
    assert paper._state.settings["optimizer"].startswith("Adam(learning_rate=0.01,")
    parts = RBMTransformer(4, random_state=0).partial_fit(bits).partial_fit(bits)
    assert parts._state.settings["optimizer"].startswith(f"Adam(learning_rate={recipe.rate!r},")
    with pytest.raises(ValueError, match="`recipe` must be 'recommended' or 'paper', got 'mine'"):
        RBMTransformer(4, recipe="mine").fit(bits)


def test_random_state(bits):
    def weights(random_state):
        return RBMTransformer(3, n_iter=1, random_state=random_state).fit(bits).rbm_.weights

    np.testing.assert_array_equal(weights(4), weights(4))
    np.testing.assert_array_equal(weights(np.random.RandomState(4)), weights(4))
    assert not np.array_equal(weights(4), weights(5))
    assert not np.array_equal(weights(None), weights(None))
    shared = np.random.RandomState(4)
    assert not np.array_equal(weights(shared), weights(shared))


@pytest.mark.parametrize("gradient", [None, pm.PCD(60, 2, 10), pm.CD(1)])
def test_partial_fit_goes_on_where_it_was(bits, gradient):
    machine = RBMTransformer(4, gradient=gradient, batch_size=200, learning_rate=0.02, random_state=0)
    machine.partial_fit(bits[:60])
    before = machine._state
    machine.partial_fit(bits[60:])
    after = machine._state
    assert (before.update, after.update) == (1, 2)
    assert np.any(after.parameters != before.parameters)
    if isinstance(gradient, pm.PCD):
        assert after.chains.sweep == before.chains.sweep + 2  # no new start, no new relaxation
        assert after.chains.seed == before.chains.seed
    one = pickle.loads(pickle.dumps(machine)).partial_fit(bits[:1])  # a single point is enough later on
    np.testing.assert_array_equal(one.rbm_.weights, machine.partial_fit(bits[:1]).rbm_.weights)


def test_partial_fit_with_one_batch_equals_full_batch_training(bits):
    # with an exact gradient nothing is drawn after the start: Adam's averages must survive the calls
    options = {"gradient": pm.Exact(), "batch_size": len(bits), "learning_rate": 0.02, "random_state": 0}
    whole = RBMTransformer(4, n_iter=5, **options).fit(bits)
    parts = RBMTransformer(4, **options)
    for _ in range(5):
        parts.partial_fit(bits)
    np.testing.assert_array_equal(parts.rbm_.weights, whole.rbm_.weights)


def test_partial_fit_after_a_change_of_gradient(bits):
    machine = RBMTransformer(4, gradient=pm.Exact(), n_iter=1, random_state=0).fit(bits)
    for gradient in (pm.PCD(60, 2, 10), pm.PCD(30, 2, 10), pm.CD(1), pm.Exact()):
        machine.set_params(gradient=gradient).partial_fit(bits)
    assert np.isfinite(machine.score(bits))


def test_bad_parameters_are_named(bits):
    for options, words in (
        ({"n_components": 0}, "`n_components` must be a positive integer"),
        ({"n_iter": -1}, "`n_iter` must be an integer of at least 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer"),
        ({"hidden": "elu"}, "`hidden` must be"),
        ({"gradient": "pcd"}, "`gradient` must be None"),
        ({"visible_bias": "mean"}, "`visible_bias` must be a number"),
    ):
        with pytest.raises(ValueError, match=words):
            RBMTransformer(**{"n_components": 3, **options}).fit(bits)
    with pytest.raises(NotFittedError):
        RBMTransformer().score(bits)
    with pytest.raises(NotFittedError):
        RBMTransformer().sample()
    assert not hasattr(RBMTransformer(), "log_partition_")


# Samples


def test_samples_have_the_values_of_the_data(bits):
    for data, values in ((bits, {0.0, 1.0}), (2.0 * bits - 1.0, {-1.0, 1.0}), (5.0 * bits + 1.0, {0.0, 1.0})):
        machine = RBMTransformer(3, n_iter=1, random_state=0).fit(data)
        drawn = machine.sample(50, n_steps=5, random_state=1)
        assert drawn.shape == (50, 6)
        assert set(np.unique(drawn)) == values
        np.testing.assert_array_equal(drawn, machine.sample(50, n_steps=5, random_state=1))
        assert not np.array_equal(drawn, machine.sample(50, n_steps=5, random_state=2))
        assert not np.array_equal(machine.sample(50, n_steps=5), machine.sample(50, n_steps=5))


def test_samples_come_from_the_machine(fitted):
    # chi-squared on all 64 states
    drawn = fitted.sample(20_000, n_steps=200, random_state=3)
    counts = np.bincount((drawn @ 2 ** np.arange(5, -1, -1)).astype(int), minlength=64)
    expected = 20_000 * np.exp(fitted.score_samples(all_states(6)))
    from scipy.stats import chi2

    kept = expected > 5.0
    statistic = np.sum((counts - expected)[kept] ** 2 / expected[kept])
    assert chi2.sf(statistic, kept.sum() - 1) > 1e-4
    wrong = expected[::-1]  # spins reversed: the test must see it
    assert chi2.sf(np.sum((counts - wrong)[kept] ** 2 / np.maximum(wrong[kept], 5.0)), kept.sum()) < 1e-6


# Where people use it


def test_pipeline_and_grid_search():
    X, y = load_digits(n_class=3, return_X_y=True)
    pipeline = make_pipeline(RBMTransformer(12, n_iter=20, learning_rate=0.01, random_state=0),
                             LogisticRegression(max_iter=1000))  # fmt: skip
    assert pipeline.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    search = GridSearchCV(RBMTransformer(n_iter=3, random_state=0), {"n_components": [2, 8]}, cv=2)
    search.fit(X[:100])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X) == search.score(X)
    search = GridSearchCV(pipeline, {"rbmtransformer__hidden_bias": [0.0, -2.0]}, cv=2)
    assert search.fit(X[:100], y[:100]).best_score_ > 0.7


def test_clone_and_pickle(fitted, bits):
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "rbm_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(bits), fitted.transform(bits))
    draws = (machine.sample(3, n_steps=2, random_state=0) for machine in (again, fitted))
    np.testing.assert_array_equal(*draws)
    with_settings = RBMTransformer(3, gradient=pm.PCD(10))
    assert clone(with_settings).gradient == pm.PCD(10)


def test_feature_names_and_dtype(fitted, bits):
    assert list(fitted.get_feature_names_out()) == [f"rbmtransformer{i}" for i in range(4)]
    assert fitted.transform(bits.astype(np.float32)).dtype == np.float32
    assert fitted.transform(bits.astype(int)).dtype == np.float64


def test_pandas_output(bits):
    pandas = pytest.importorskip("pandas", reason="needs pandas, which `make test EXTRAS=all` installs")
    frame = pandas.DataFrame(bits, columns=list("abcdef"), index=range(100, 220))
    machine = RBMTransformer(2, n_iter=1, random_state=0).set_output(transform="pandas").fit(frame)
    out = machine.transform(frame)
    assert list(out.columns) == ["rbmtransformer0", "rbmtransformer1"]
    assert list(out.index) == list(frame.index)
    assert list(machine.feature_names_in_) == list("abcdef")


@pytest.mark.parametrize("gradient", [None, pm.CD(1)])
def test_gaussian_features_of_many_columns(bits, gradient):
    wide = np.tile(bits[:60], (1, 40))[:, :40]  # 2**40 states to sum, though there are three features
    model = RBMTransformer(3, hidden="gaussian", n_iter=1, gradient=gradient).fit(wide)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert np.isfinite(model.score(wide))
    assert model.score_error_ > 0.0


@pytest.mark.parametrize("recipe", ["recommended", "paper"])
@pytest.mark.parametrize(
    ("hidden", "width", "bias"), [("relu", 1, 0.0), ("categorical(3)", 3, 0.0), ("bit", 1, -2.5)]
)
def test_hidden_units_of_other_types(hidden, width, bias, recipe):
    """Only hidden bits begin with sparse biases; features of labels are the probabilities of their states."""
    data = np.random.default_rng(0).integers(2, size=(40, 5)).astype(float)
    options = {"hidden": hidden, "recipe": recipe, "visible_bias": 0.0, "random_state": 0}
    found = RBMTransformer(6, n_iter=1, learning_rate=1e-9, centred=False, **options).fit(data)
    assert np.allclose(found.rbm_.hidden_bias, bias, rtol=0.0, atol=1e-6)
    assert found.transform(data).shape == (40, 6 * width)
    assert len(found.get_feature_names_out()) == 6 * width


def test_drelu_units_have_features_and_a_likelihood():
    points = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
    found = RBMTransformer(3, hidden="drelu", random_state=0).fit(points)
    assert np.isfinite(found.transform(points)).all()
    assert found.transform(points).shape == (60, 3)
    log_likelihoods = [found.score_samples(states) for states in (points, list(np.ndindex(2, 2, 2, 2)))]
    assert log_likelihoods[0].mean() > -4.0 * np.log(2.0)  # fair coins
    assert np.exp(log_likelihoods[1]).sum() == pytest.approx(1.0, abs=1e-9)  # ln Z is exact
