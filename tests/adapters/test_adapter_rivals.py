"""Machines of other packages: the identical distribution, by enumeration, on either side."""

from __future__ import annotations

import itertools
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.adapters import bernoulli, jaxinit, rbms_archive

UNITS = [("spin", "bit"), ("spin", "spin"), ("bit", "bit"), ("bit", "spin")]


def make_machine(visible="spin", hidden="bit", n=5, m=4, seed=1):
    rng = np.random.default_rng(seed)
    return pm.RBM(rng.normal(size=(n, m)), rng.normal(size=n), rng.normal(size=m), visible, hidden)


def bit_states(n):
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def in_units(bits, unit):
    return unit.low + (unit.high - unit.low) * bits


def log_probabilities(rbm):
    """``ln p(v)`` of all visible states, bits ascending, by a sum over all pairs of states."""
    v, h = in_units(bit_states(rbm.n_visible), rbm.visible), in_units(bit_states(rbm.n_hidden), rbm.hidden)
    weights = np.exp(-rbm.energy(v[:, None], h[None]))
    return np.log(weights.sum(axis=1) / weights.sum())


# scikit-learn

needs_sklearn = pytest.mark.skipif(
    find_spec("sklearn") is None, reason='needs scikit-learn: pip install ".[sklearn]"'
)


def sklearn_log_probabilities(estimator, n):
    free_energy = estimator._free_energy(bit_states(n))  # its own, which its score is made of
    return -free_energy - np.logaddexp.reduce(-free_energy)


@needs_sklearn
@pytest.mark.parametrize(("visible", "hidden"), UNITS)
def test_sklearn_has_the_identical_distribution(visible, hidden):
    rbm = make_machine(visible, hidden)
    estimator = bernoulli.to_sklearn(rbm, batch_size=7, random_state=0)
    np.testing.assert_allclose(sklearn_log_probabilities(estimator, 5), log_probabilities(rbm), atol=1e-12)
    states = bit_states(5)
    probability = (rbm.mean_h_given_v(in_units(states, rbm.visible)) - rbm.hidden.low) / (
        rbm.hidden.high - rbm.hidden.low
    )
    np.testing.assert_allclose(estimator.transform(states), probability, atol=1e-12)
    back = bernoulli.from_sklearn(estimator)
    assert (back.visible, back.hidden) == (pm.BIT, pm.BIT)
    np.testing.assert_allclose(log_probabilities(back), log_probabilities(rbm), atol=1e-12)


@needs_sklearn
def test_weights_double_and_hidden_biases_shift():
    rbm = make_machine()
    estimator = bernoulli.to_sklearn(rbm)
    np.testing.assert_allclose(estimator.components_, 2.0 * rbm.weights.T)
    np.testing.assert_allclose(estimator.intercept_visible_, 2.0 * rbm.visible_bias)
    np.testing.assert_allclose(estimator.intercept_hidden_, rbm.hidden_bias - rbm.weights.sum(axis=0))


@needs_sklearn
def test_a_fitted_rival_is_judged_by_our_likelihood():
    from sklearn.neural_network import BernoulliRBM

    data = (pm.load_dataset("toy", n_points=60, rng=1).data[:, :5] + 1.0) / 2.0
    estimator = BernoulliRBM(n_components=4, n_iter=5, random_state=0).fit(data)
    rows = (data @ 2 ** np.arange(4, -1, -1)).astype(int)
    by_hand = sklearn_log_probabilities(estimator, 5)[rows].mean()
    assert float(pm.log_likelihood(bernoulli.from_sklearn(estimator), data)) == pytest.approx(by_hand)


@needs_sklearn
def test_warm_start_has_our_scale_and_distribution():
    from sklearn.neural_network import BernoulliRBM

    estimator = BernoulliRBM(n_components=4, batch_size=7, random_state=0)
    same = bernoulli.warm_start_bernoulli_rbm(estimator, 5, hidden_bias=-1.0, visible_bias=0.3, rng=2)
    assert same is estimator
    rbm = pm.initialize(5, 4, hidden_bias=-1.0, visible_bias=0.3, rng=2)
    np.testing.assert_allclose(sklearn_log_probabilities(estimator, 5), log_probabilities(rbm), atol=1e-12)
    wide = bernoulli.warm_start_bernoulli_rbm(BernoulliRBM(n_components=100), 300, hidden_bias=-4.0, rng=3)
    std = 2.0 * pm.weight_std(300, 100, hidden_bias=-4.0)
    assert np.std(wide.components_) == pytest.approx(std, rel=5.0 / np.sqrt(2 * 300 * 100))
    assert np.mean(wide.intercept_hidden_) == pytest.approx(-4.0, abs=5 * 0.5 * std * np.sqrt(300 / 100))


@needs_sklearn
def test_warm_start_sets_all_that_fit_sets():
    from sklearn.neural_network import BernoulliRBM

    data = np.random.default_rng(0).integers(0, 2, size=(14, 5)).astype(float)
    options = {"n_components": 4, "batch_size": 7, "n_iter": 1, "random_state": 0}
    theirs = BernoulliRBM(**options).fit(data)
    ours = bernoulli.warm_start_bernoulli_rbm(BernoulliRBM(**options), 5, rng=1)
    assert set(vars(theirs)) <= set(vars(ours))
    for name, value in vars(theirs).items():
        if isinstance(value, np.ndarray):
            assert getattr(ours, name).shape == value.shape
            assert getattr(ours, name).dtype == value.dtype
            assert getattr(ours, name).flags.writeable
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert ours.transform(data).shape == (14, 4)
    assert ours.score_samples(data).shape == (14,)
    start = ours.components_.copy()
    for rows in (slice(0, 7), slice(7, 14)):
        ours.partial_fit(data[rows])
    change = np.abs(ours.components_ - start).max()
    assert 0.0 < change < 0.2  # goes on from our weights
    assert ours.gibbs(data).shape == data.shape


@needs_sklearn
def test_feature_names_of_a_warm_start():
    pandas = pytest.importorskip("pandas", reason="needs pandas, which `make test EXTRAS=all` installs")
    from sklearn.neural_network import BernoulliRBM

    frame = pandas.DataFrame(np.eye(5), columns=list("abcde"))
    estimator = BernoulliRBM(n_components=4, batch_size=5)
    bernoulli.warm_start_bernoulli_rbm(estimator, 5, feature_names=frame.columns, rng=1)
    estimator.partial_fit(frame)  # a warning would be an error
    assert estimator.transform(frame).shape == (5, 4)
    with pytest.raises(ValueError, match="`feature_names` must be 5 names"):
        bernoulli.warm_start_bernoulli_rbm(estimator, 5, feature_names=["a"])


@needs_sklearn
def test_what_is_no_bernoulli_rbm():
    from sklearn.neural_network import BernoulliRBM

    with pytest.raises(ValueError, match=r"`estimator` must be a fitted BernoulliRBM.*components_"):
        bernoulli.from_sklearn(BernoulliRBM())
    with pytest.raises(ValueError, match="`estimator` must be a BernoulliRBM"):
        bernoulli.warm_start_bernoulli_rbm(object(), 5)
    with pytest.raises(ValueError, match="`n_components` must be 4"):
        bernoulli.to_sklearn(make_machine(), n_components=3)


# rbms


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py", reason='needs h5py: pip install ".[rbms]"')


@pytest.mark.parametrize(("visible", "hidden"), UNITS)
def test_archive_keeps_the_distribution(tmp_path, h5py, visible, hidden):
    rbm = make_machine(visible, hidden)
    rbms_archive.save_rbms(rbm, tmp_path / "a.h5")
    back = rbms_archive.load_rbms(tmp_path / "a.h5")
    assert (back.visible, back.hidden) == (pm.BIT, pm.BIT)
    np.testing.assert_allclose(log_probabilities(back), log_probabilities(rbm), atol=1e-12)
    assert rbms_archive.rbms_updates(tmp_path / "a.h5") == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_chosen_update(tmp_path, h5py):
    path = tmp_path / "a.h5"
    first, second = make_machine("bit", "bit", seed=1), make_machine("bit", "bit", seed=2)
    rbms_archive.save_rbms(first, path)
    with h5py.File(path, "a") as file:
        for update, rbm in ((10, second), (9, first)):
            for name, array in (
                ("weight_matrix", rbm.weights), ("vbias", rbm.visible_bias), ("hbias", rbm.hidden_bias),
            ):  # fmt: skip
                file[f"update_{update}/params/{name}"] = array.astype(np.float32)
    assert rbms_archive.rbms_updates(path) == [1, 9, 10]  # as numbers, not as text
    np.testing.assert_allclose(rbms_archive.load_rbms(path).weights, second.weights, rtol=1e-6)
    np.testing.assert_allclose(rbms_archive.load_rbms(path, update=9).weights, first.weights, rtol=1e-6)
    with pytest.raises(ValueError, match=r"`update` must be one that was saved \(1, 9, 10\), got 3"):
        rbms_archive.load_rbms(path, update=3)


def test_damaged_and_foreign_files(tmp_path, h5py):
    path = tmp_path / "a.h5"
    with pytest.raises(FileNotFoundError, match="`path` does not exist"):
        rbms_archive.load_rbms(path)
    with pytest.raises(ValueError, match="`path` must be a regular file"):
        rbms_archive.load_rbms(tmp_path)
    path.write_bytes(b"not hdf5 at all")
    with pytest.raises(ValueError, match="`path` is not an HDF5 file, or a damaged one"):
        rbms_archive.load_rbms(path)
    rbms_archive.save_rbms(make_machine(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="`path` is not an HDF5 file, or a damaged one"):
        rbms_archive.load_rbms(path)
    with h5py.File(path, "w") as file:
        file["something"] = 1.0
    with pytest.raises(ValueError, match=r"`path` must be an archive of rbms.*holds something"):
        rbms_archive.load_rbms(path)


def replaced(place, value):
    """Put ``value`` where ``place`` is; None leaves nothing there."""

    def change(file):
        del file[place]
        if value is not None:
            file[place] = value

    return change


def is_group(file):
    del file["model_type"]
    file.create_group("model_type")


def has_nan(file):
    file["update_1/params/vbias"][0] = np.nan


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replaced("model_type", "PBRBM"), "of type BBRBM.*'PBRBM'"),
        (replaced("model_type", None), "of type BBRBM.*''"),
        (is_group, "of type BBRBM.*''"),
        (replaced("update_1/params/vbias", None), "missing: vbias"),
        (replaced("update_1/params/vbias", np.zeros(3)), "must have the shapes"),
        (replaced("update_1/params/vbias", "words"), "damaged archive"),
        (replaced("update_1", 3.0), "damaged archive"),
        (has_nan, "must be finite"),
    ],
)
def test_archives_that_hold_no_machine(tmp_path, h5py, change, words):
    path = tmp_path / "a.h5"
    rbms_archive.save_rbms(make_machine(), path)
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(ValueError, match=words):
        rbms_archive.load_rbms(path)


def test_chains_of_an_archive(tmp_path, h5py):
    rbm = make_machine("spin", "bit")
    spins = pm.sample(rbm, 11, n_steps=3, rng=1)
    rbms_archive.save_rbms(rbm, tmp_path / "a.h5", chains=spins)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["parallel_chains"][()], (spins + 1.0) / 2.0)
        assert file["hyperparameters/num_chains"][()] == 11
        assert "torch_rng_state" not in file["update_1"]
    with pytest.raises(ValueError, match="`chains` must hold the values of spin units"):
        rbms_archive.save_rbms(rbm, tmp_path / "a.h5", chains=np.zeros((3, 5)))


ignore_jit_warning = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # rbms, not us


@pytest.fixture
def rbms():
    pytest.importorskip("torch", reason='needs torch: pip install ".[torch]"')
    return pytest.importorskip("rbms", reason="needs rbms, which `make test EXTRAS=all` installs")


def rbms_log_probabilities(parameters, n):
    import torch

    states = torch.from_numpy(bit_states(n))
    minus_energy = -parameters.compute_energy_visibles(states).numpy()
    return minus_energy - np.logaddexp.reduce(minus_energy)


@ignore_jit_warning
def test_rbms_itself_reads_what_we_write(tmp_path, h5py, rbms):
    import torch
    from rbms.io import load_model, load_params
    from rbms.partition_function.exact import compute_partition_function

    rbm, path = make_machine(), tmp_path / "a.h5"
    rbms_archive.save_rbms(rbm, path, seed=3)
    parameters = load_params(str(path), 1, torch.device("cpu"), torch.float64)
    np.testing.assert_allclose(rbms_log_probabilities(parameters, 5), log_probabilities(rbm), atol=1e-4)
    log_z = compute_partition_function(parameters, torch.from_numpy(bit_states(4)))
    # its softplus is cut off at 10; none of these fields reaches that
    assert log_z == pytest.approx(pm.log_partition(rbm.to_bits()), abs=1e-3)
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        loaded, chains, _, hyperparameters = load_model(
            str(path), 1, torch.device("cpu"), torch.float32, restore=True
        )
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
    assert chains["visible"].shape == (2000, 5)
    assert hyperparameters["batch_size"] == 2000
    np.testing.assert_allclose(rbms_archive.from_rbms(loaded).weights, rbm.to_bits().weights, rtol=1e-6)


@ignore_jit_warning
def test_we_read_what_rbms_itself_writes(tmp_path, h5py, rbms):
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.io import save_model

    rng = np.random.default_rng(1)
    arrays = (torch.from_numpy(rng.normal(size=shape)) for shape in ((5, 4), (5,), (4,)))
    parameters = BBRBM(*arrays)
    path = tmp_path / "theirs.h5"
    for update in (1, 20):
        save_model(str(path), parameters, parameters.init_chains(6), update, 0.0)
    rbm = rbms_archive.load_rbms(path)
    np.testing.assert_allclose(log_probabilities(rbm), rbms_log_probabilities(parameters, 5), atol=1e-4)
    np.testing.assert_array_equal(rbms_archive.from_rbms(parameters).weights, rbm.weights)
    np.testing.assert_array_equal(rbms_archive.from_rbms(parameters.named_parameters()).weights, rbm.weights)


@pytest.mark.slow
@ignore_jit_warning
def test_rbms_trains_from_our_scale(tmp_path, h5py, rbms):
    import torch
    from rbms.dataset.dataset_class import RBMDataset
    from rbms.parser import default_args
    from rbms.training.pcd import train

    data = (pm.load_dataset("toy", n_points=100, rng=1).data + 1.0) / 2.0
    path = tmp_path / "a.h5"
    chains = np.random.default_rng(1).choice([-1.0, 1.0], size=(100, 20))
    start = pm.initialize(20, 10, rng=1)
    rbms_archive.save_rbms(start, path, chains=chains, seed=3, batch_size=100, gibbs_steps=10)
    ones = np.ones(100)
    dataset = RBMDataset(data, ones, ones, np.arange(100), "toy", True, device="cpu")
    from_the_archive = (
        "batch_size",
        "gibbs_steps",
        "learning_rate",
        "L1",
        "L2",
        "seed",
        "train_size",
        "test_size",
    )
    arguments = {
        **default_args, **dict.fromkeys(from_the_archive), "filename": str(path), "restore": True,
        "num_updates": 50, "device": "cpu", "dtype": torch.float32, "training_type": "pcd",
    }  # fmt: skip
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        train(dataset, None, "BBRBM", arguments, torch.float32, np.array([50]))
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
    assert rbms_archive.rbms_updates(path) == [1, 50]
    before, after = (pm.log_likelihood(rbms_archive.load_rbms(path, update=n), data) for n in (1, 50))
    assert after.value > before.value + 0.1


def test_what_is_no_machine_of_rbms():
    with pytest.raises(ValueError, match="`parameters` must be a BBRBM of rbms"):
        rbms_archive.from_rbms(object())
    with pytest.raises(ValueError, match="missing: hbias"):
        rbms_archive.from_rbms({"weight_matrix": np.ones((2, 3)), "vbias": np.ones(2)})


# Without the extras


@pytest.mark.parametrize(
    ("blocked", "extra", "call"),
    [
        ("h5py", "rbms", lambda: rbms_archive.save_rbms(make_machine(), "never-written.h5")),
        ("h5py", "rbms", lambda: rbms_archive.load_rbms("never-read.h5")),
        ("sklearn.neural_network", "sklearn", lambda: bernoulli.to_sklearn(make_machine())),
        ("sklearn.base", "sklearn", lambda: import_module("paramagnet.adapters.scikit")),
        ("jax", "jax", lambda: jaxinit.layer_correlation_normal()),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, blocked, extra, call):
    monkeypatch.setitem(sys.modules, blocked, None)
    monkeypatch.delitem(sys.modules, "paramagnet.adapters.scikit", raising=False)
    with pytest.raises(ImportError, match=rf'pip install "\.\[{extra}\]"'):
        call()


def test_torch_is_named_where_random_states_are_wanted(monkeypatch, tmp_path, h5py):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[torch\]"'):
        rbms_archive.save_rbms(make_machine(), tmp_path / "a.h5", seed=1)
    rbms_archive.save_rbms(make_machine(), tmp_path / "a.h5")


def test_the_adapters_are_light():
    code = (
        "import sys, paramagnet.adapters, paramagnet.adapters.jaxinit, paramagnet.adapters.rbms_archive; "
        "import paramagnet.adapters.bernoulli; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "jax", "torch", "h5py", "scipy", "numba", "pandas"}
    assert not heavy & {name.split(".")[0] for name in run.stdout.split()}
