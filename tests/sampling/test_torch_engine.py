"""The PyTorch engine: with the kernels' random numbers their chains, with its own the exact distribution."""

import functools
import itertools
import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import conftest
from paramagnet.exact.sums import exact_moments, log_partition, sample_exact
from paramagnet.initializers import initialize
from paramagnet.kernels.sampling import fill_uniform
from paramagnet.layout import Layout
from paramagnet.learning import evaluation, preparing
from paramagnet.learning.evaluation import LogZ
from paramagnet.learning.gradients.contrastive import CD
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.gradients.summed import Exact
from paramagnet.learning.moments import append_ones, chain_moments, data_moments
from paramagnet.learning.optimizers import SGD, Adam
from paramagnet.learning.state import load_checkpoint
from paramagnet.learning.training import train, training_steps
from paramagnet.rbm import RBM
from paramagnet.sampling import annealing
from paramagnet.sampling.annealing import estimate_log_partition
from paramagnet.sampling.chains import Chains, run_sweeps
from paramagnet.sampling.devices import as_engine
from paramagnet.sampling.layer import layers_of
from paramagnet.units import SPIN

torch = pytest.importorskip("torch", reason='needs pip install ".[torch]"')
engine_module = pytest.importorskip("paramagnet.sampling.torch_engine")
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

draw_machine = functools.partial(conftest.draw_machine, scale=1.0)
COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))
METHODS = ("mais", "ais", "reverse-ais")
N_CHAINS = 20_000


def parameters_of(rbm):
    layout = Layout.of(rbm)
    return layout, layout.flatten(rbm)


def kernel_uniforms(device, seed, first, sweep):
    """The random numbers of the kernels."""

    def fill(out, sweep, stream):
        numbers = np.empty(tuple(out.shape), np.float32)
        fill_uniform(numbers, seed, first, sweep, stream)
        out.copy_(torch.from_numpy(numbers))

    return fill


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Waiting threads of torch hold the cores of a busy machine."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def engine():
    return as_engine("torch:cpu")


@pytest.fixture
def sharing(engine):
    return replace(engine, uniforms=kernel_uniforms)


# With shared random numbers: equal in value


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_chains_are_those_of_the_kernels(sharing, visible, hidden):
    rbm = draw_machine(23, 17, visible, hidden, scale=0.4)
    chains = Chains.start(rbm.visible, (70, 23), np.random.default_rng(3))
    chains = Chains.at(chains.visible, chains.seed, sweep=5)
    for n_sweeps in (0, 1, 2, 25):
        ours = sharing.run_sweeps(*parameters_of(rbm), chains, n_sweeps)
        theirs = run_sweeps(layers_of(rbm), chains, n_sweeps)
        assert np.array_equal(ours.visible, theirs.visible)
        assert (ours.seed, ours.sweep) == (theirs.seed, theirs.sweep)
        assert ours.visible.dtype == np.float32
        assert not ours.visible.flags.writeable


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_averages_are_those_of_the_kernels(sharing, visible, hidden):
    rbm = draw_machine(23, 17, visible, hidden, scale=0.4)
    layout, parameters = parameters_of(rbm)
    layers = layers_of(rbm)
    chains = Chains.start(rbm.visible, (300, 23), np.random.default_rng(4))
    moved, moments = sharing.sampled_moments(layout, parameters, chains, 4)
    expected = run_sweeps(layers, chains, 4)
    assert np.array_equal(moved.visible, expected.visible)
    np.testing.assert_allclose(moments, chain_moments(layout, expected, layers[1]), atol=1e-6)
    points = append_ones(expected.visible.astype(float))
    ours = sharing.data_moments(layout, parameters, points)
    np.testing.assert_allclose(ours, data_moments(layout, parameters, points), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_log_weights_are_those_of_the_kernels(sharing, monkeypatch, visible, hidden, marginalize, method):
    rbm = draw_machine(12, 9, visible, hidden, scale=0.5)
    means = rbm.mean_v_given_h(np.zeros(9))
    monkeypatch.setattr(annealing, "as_engine", lambda device, *_: None if device == "cpu" else sharing)
    for start, n_samples in (("uniform", 300), (means, 300), (means, 40)):
        options = {"method": method, "marginalize": marginalize, "start": start, "n_samples": n_samples}
        ours, theirs = (
            estimate_log_partition(rbm, n_temperatures=20, rng=1, device=device, **options)
            for device in ("shared", "cpu")
        )
        assert ours.value == pytest.approx(theirs.value, abs=2e-5)
        assert ours.error == pytest.approx(theirs.error, rel=1e-3)
        assert ours.n_effective == pytest.approx(theirs.n_effective, rel=1e-3)


def test_devices_without_float64_lose_little(sharing, monkeypatch):
    """Nothing but sums of log-weights is float64, and those can do without."""
    rbm = draw_machine(12, 9, scale=0.5)
    layout, parameters = parameters_of(rbm)
    exact = estimate_log_partition(rbm, n_samples=200, n_temperatures=500, rng=1)
    chains = Chains.start(rbm.visible, (20, 12), np.random.default_rng(4))
    monkeypatch.setattr(annealing, "as_engine", lambda device, *_: sharing)
    monkeypatch.setattr(engine_module, "_widest", lambda device: torch.float32)
    with Dtypes() as seen:
        moved, _ = sharing.sampled_moments(layout, parameters, chains, 3)
        sharing.data_moments(layout, parameters, append_ones(moved.visible.astype(float)))
        ours = estimate_log_partition(rbm, n_samples=200, n_temperatures=500, rng=1, device="shared")
    assert torch.float32 in seen.dtypes
    assert torch.float64 not in seen.dtypes
    assert ours.value == pytest.approx(exact.value, abs=1e-3)


class Dtypes(TorchDispatchMode):
    """The dtypes of all tensors that are made."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.dtypes |= {x.dtype for x in (out if isinstance(out, tuple) else (out,)) if torch.is_tensor(x)}
        return out


def test_blocks_of_chains_change_nothing(sharing, monkeypatch):
    rbm = draw_machine(12, 9)
    monkeypatch.setattr(annealing, "as_engine", lambda device, *_: sharing)
    whole = estimate_log_partition(rbm, n_samples=101, n_temperatures=10, rng=1, device="shared")
    monkeypatch.setattr(engine_module, "BLOCK_UNITS", 12 * 10)
    assert estimate_log_partition(rbm, n_samples=101, n_temperatures=10, rng=1, device="shared").value == (
        pytest.approx(whole.value, abs=2e-5)
    )


@pytest.mark.parametrize("gradient", [PCD(n_chains=60, n_steps=3, n_relax=9), CD(2)], ids=["PCD", "CD"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("further", [{}, {"l1": 0.1, "l1_group": 0.2, "clip": 0.5, "sample_weight": True}])
def test_training_is_that_of_the_kernels(sharing, monkeypatch, gradient, centred, further):
    monkeypatch.setattr(preparing, "as_engine", lambda device, *_: None if device == "cpu" else sharing)
    data = np.random.default_rng(5).choice([-1.0, 1.0], size=(50, 11))
    options = {"epochs": 5, "batch_size": 20, "gradient": gradient, "optimizer": SGD(0.05), "rng": 1}
    options |= {"centred": centred, **further}
    if further:
        options["sample_weight"] = np.arange(50) % 4 + 0.5
    ours, theirs = (
        train(draw_machine(11, 7, scale=0.3), data, device=device, **options) for device in ("shared", "cpu")
    )
    np.testing.assert_allclose(ours.state.parameters, theirs.state.parameters, atol=1e-5)
    np.testing.assert_allclose(ours.history.log_likelihood, theirs.history.log_likelihood, atol=1e-5)


# With its own: equal in distribution


def p_value(rbm, states):
    """Chi-squared of visible states against the exact distribution; rare states are one bin."""
    every = np.array(list(itertools.product(rbm.visible.levels, repeat=rbm.n_visible)))
    log_p = -rbm.free_energy(every)
    expected = len(states) * np.exp(log_p - np.logaddexp.reduce(log_p))
    codes = (states == rbm.visible.high) @ (1 << np.arange(rbm.n_visible)[::-1])
    counts, rare = np.bincount(codes, minlength=len(every)), expected < 5.0
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0.5
    return chi2.sf(np.sum((counts - expected)[keep] ** 2 / expected[keep]), keep.sum() - 1)


def exact_chains(rbm, seed, n_chains=N_CHAINS):
    rng = np.random.default_rng(seed)
    return Chains.from_states(sample_exact(rbm, n_chains, rng=rng), rng)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_chains_from_exact_samples_stay_exact(engine, visible, hidden):
    """And without the hidden bias they do not."""
    caught = 0
    for seed in range(5):
        rbm = draw_machine(visible=visible, hidden=hidden, seed=seed)
        chains = exact_chains(rbm, seed)
        ended = engine.run_sweeps(*parameters_of(rbm), chains, 3)
        assert p_value(rbm, ended.visible) > 1e-6
        assert not np.array_equal(ended.visible, chains.visible)
        bad = RBM(rbm.weights, rbm.visible_bias, 0.0, visible, hidden)
        caught += p_value(rbm, engine.run_sweeps(*parameters_of(bad), chains, 3).visible) < 1e-6
    assert caught >= 4


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_averages_over_stationary_chains_are_those_of_the_machine(engine, visible, hidden):
    rbm, n_chains = draw_machine(visible=visible, hidden=hidden, seed=1, scale=0.5), 100_000
    moments = exact_moments(rbm)
    exact = np.concatenate((moments.products.ravel(), moments.hidden, moments.visible))
    _, ours = engine.sampled_moments(*parameters_of(rbm), exact_chains(rbm, 0, n_chains), 5)
    assert np.max(np.abs(ours - exact)) * np.sqrt(n_chains) < 5.0  # a unit varies by at most 1


def deviation(estimate, exact):
    return (estimate.value - exact) / estimate.error


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("marginalize", ["hidden", "visible"])
def test_estimates_agree_with_enumeration(method, marginalize):
    for visible, hidden in COMBINATIONS:
        rbm = draw_machine(12, 8, visible, hidden, seed=1, scale=0.6)
        estimate = estimate_log_partition(
            rbm, method=method, marginalize=marginalize, n_temperatures=60, device="torch:cpu", rng=1
        )
        assert estimate.trusted
        assert abs(deviation(estimate, log_partition(rbm))) < 4.0


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_truth(method):
    rbm = draw_machine(12, 8, seed=1, scale=0.6)
    exact = log_partition(rbm)
    options = {"method": method, "n_samples": 300, "n_temperatures": 25, "device": "torch:cpu"}
    estimates = [estimate_log_partition(rbm, rng=seed, **options) for seed in range(60)]
    assert 0.85 <= np.mean([abs(deviation(estimate, exact)) < 1.96 for estimate in estimates]) <= 1.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_zero_weights_are_exact(visible, hidden, method):
    for hidden_bias in (0.0, [0.5, -3.0, 7.0]) if method != "ais" else (0.0,):
        rbm = RBM(np.zeros((5, 3)), 0.0, hidden_bias, visible, hidden)
        estimate = estimate_log_partition(
            rbm, method=method, n_samples=100, n_temperatures=7, device="torch:cpu", rng=0
        )
        assert estimate.value == pytest.approx(log_partition(rbm), abs=5e-6)
        assert estimate.n_effective == pytest.approx(100.0)


def test_pcd_reaches_the_likelihood_of_exact_learning():
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1.0, 1.0], size=(3, 10))[rng.integers(3, size=200)]
    data = patterns * rng.choice([1.0, -1.0], p=[0.9, 0.1], size=patterns.shape)
    start = initialize(10, 6, rng=3)
    options = {"epochs": 100, "optimizer": Adam(0.02), "rng": 0}
    exact = train(start, data, gradient=Exact(), **options).history.log_likelihood
    gradient = PCD(n_chains=1000, n_steps=10, n_relax=100)
    ours = train(start, data, gradient=gradient, device="torch:cpu", **options).history.log_likelihood
    assert exact[-1] > exact[0] + 2.0
    np.testing.assert_allclose(ours, exact, atol=0.05)


# Random numbers


def test_uniform_numbers_lie_strictly_between_zero_and_one(engine):
    low = np.float32(engine_module.LOWEST)
    top = np.float32(1.0 - 2.0**-24)  # the largest that a generator makes
    span = np.float32(engine_module.HIGHEST) - low
    assert 0.0 < low < np.float32(2.0**-24)
    assert top * span + low < 1.0
    numbers = torch.empty(1_000_000)
    engine.uniforms(engine.device, 1, 0, 0)(numbers, 0, 0)
    assert 0.0 < float(numbers.min()) < float(numbers.max()) < 1.0
    assert float(numbers.mean()) == pytest.approx(0.5, abs=0.002)


def test_hopeless_levels_are_never_drawn(engine):
    bias = np.array([1000.0, -1000.0, 40.0, -40.0, 20.0, -20.0])
    rbm = RBM(np.zeros((6, 1)), bias, 0.0, "bit", "bit")
    chains = Chains.start(rbm.visible, (200_000, 6), np.random.default_rng(0))
    ended = engine.run_sweeps(*parameters_of(rbm), chains, 20)
    assert np.array_equal(np.unique(ended.visible, axis=0), [[1, 0, 1, 0, 1, 0]])


def test_seed_first_chain_and_sweep_make_the_numbers(engine):
    def first_numbers(*address):
        out = torch.empty(5)
        engine.uniforms(engine.device, *address)(out, 0, 0)
        return tuple(out.tolist())

    assert first_numbers(1, 0, 0) == first_numbers(1, 0, 0)
    addresses = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (2**40 + 1, 0, 0)]
    assert len({first_numbers(*address) for address in addresses}) == len(addresses)


def test_the_global_generator_of_torch_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    rbm = draw_machine()
    estimate_log_partition(rbm, n_samples=10, n_temperatures=3, device="torch:cpu", rng=0)
    train(rbm, np.ones((3, 5)), epochs=1, gradient=PCD(5, 1, 1), device="torch:cpu", rng=0)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("gradient", [PCD(n_chains=40, n_steps=3, n_relax=5), CD(2)], ids=["PCD", "CD"])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_resuming_equals_an_uninterrupted_run(tmp_path, gradient, batch_size):
    data = np.random.default_rng(1).choice([-1.0, 1.0], size=(23, 5))
    options = {"epochs": 3, "gradient": gradient, "batch_size": batch_size, "device": "torch:cpu"}
    whole = list(training_steps(draw_machine(), data, rng=4, **options))
    for state in whole:
        state.save(tmp_path / "run.safetensors")
        ended = train(load_checkpoint(tmp_path / "run.safetensors"), data, **options).state
        assert np.array_equal(ended.parameters, whole[-1].parameters)
        assert np.array_equal(ended.chains.visible, whole[-1].chains.visible)
        assert ended.chains.sweep == whole[-1].chains.sweep


def test_another_engine_is_another_run():
    data, gradient = np.ones((3, 5)), PCD(5, 1, 1)
    for first, second in itertools.permutations(("cpu", "torch:cpu")):
        state = train(draw_machine(), data, epochs=1, gradient=gradient, device=first).state
        with pytest.raises(ValueError, match=f"`device` must be that of the run to go on with, {first}, got"):
            train(state, data, epochs=2, gradient=gradient, device=second)
    state = train(draw_machine(), data, epochs=1, gradient=gradient).state
    old = replace(state, settings={k: v for k, v in state.settings.items() if k != "device"})
    assert train(old, data, epochs=2, gradient=gradient).finished  # from before there was a choice


# Devices


def test_large_machines_are_measured_on_the_device(monkeypatch):
    seen = []
    real = evaluation.estimate_log_partition

    def spy(*arguments, device, **options):
        seen.append(device)
        return real(*arguments, device=device, **options)

    monkeypatch.setattr(evaluation, "estimate_log_partition", spy)
    rbm, log_z = draw_machine(40, 35, scale=0.05), LogZ(n_samples=50, n_temperatures=20)
    train(rbm, np.ones((3, 40)), epochs=1, gradient=PCD(5, 1, 1), device="torch:cpu", log_z=log_z, rng=0)
    assert seen == ["torch:cpu", "torch:cpu"]


def test_exact_gradients_belong_to_the_processor(caplog):
    data = np.ones((3, 5))
    with pytest.raises(
        ValueError, match=r"`device` must be 'cpu' for exact gradients, got 'torch:cpu'.*`PCD\(\)`"
    ):
        train(draw_machine(), data, epochs=1, gradient=Exact(), device="torch:cpu")
    with caplog.at_level("INFO", logger="paramagnet"):
        state = train(draw_machine(), data, epochs=1, device="torch:cpu").state
    assert "`device` = 'torch:cpu' is not used" in caplog.text
    assert state.settings["device"] == "cpu"


def test_devices_that_are_not_there_are_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for device in ("cuda", "cuda:1", "mps"):
        with pytest.raises(
            ValueError, match=f"finds here, that is one of 'cpu', 'torch:cpu'; got '{device}'"
        ):
            as_engine(device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="'cuda:0', 'cuda:1'; got 'cuda:2'"):
        as_engine("cuda:2")
    assert as_engine("cuda:1").name == "cuda:1"
    assert (as_engine("cuda").kind, as_engine("cuda:1").kind) == ("cuda", "cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert as_engine(torch.device("mps")).name == "mps"


def test_a_device_of_torch_may_be_passed():
    assert as_engine(torch.device("cpu")) is None  # "cpu" means our own kernels
    assert as_engine("torch:cpu").device == torch.device("cpu")


@pytest.mark.parametrize("device", ["gpu", "torch", "torch:cuda", "cuda:x", "", None, "CPU"])
def test_unknown_devices_are_refused(device):
    with pytest.raises(ValueError, match="`device` must be 'cpu', 'torch:cpu', 'cuda'"):
        as_engine(device)


def test_other_units_belong_to_the_kernels():
    class Potts:
        def __str__(self):
            return "potts"

    assert as_engine("cpu", Potts()) is None
    with pytest.raises(ValueError, match="`device` must be 'cpu' for machines with potts units, got 'cuda'"):
        as_engine("cuda", SPIN, Potts())


def test_progress_is_told(engine, monkeypatch):
    path = annealing._make_path(
        draw_machine(), np.zeros(5), np.linspace(0.0, 1.0, 4), joint=False, transposed=False
    )
    monkeypatch.setattr(engine_module, "BLOCK_UNITS", 5 * 8)
    told = []
    engine.anneal(path, 10, None, 0, told.append)
    np.testing.assert_allclose(told, [8 / 30, 16 / 30, 24 / 30, 26 / 30, 28 / 30, 1.0])


def test_without_torch_the_extra_is_named():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, paramagnet as pm\n"
        "rbm = pm.RBM(np.zeros((2, 2)), 0, 0)\n"
        "pm.estimate_log_partition(rbm, n_temperatures=2)\n"
        "try: pm.estimate_log_partition(rbm, device='cuda')\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "`device` = 'cuda' needs PyTorch, which is not installed: pip install \".[torch]\" in a checkout of "
        "paramagnet."
    )


def test_torch_is_imported_when_chosen_and_not_before():
    code = (
        "import json, sys, numpy as np, paramagnet as pm\n"
        "rbm = pm.RBM(np.zeros((2, 2)), 0, 0)\n"
        "seen = []\n"
        "for device in ('cpu', 'torch:cpu'):\n"
        "    pm.estimate_log_partition(rbm, n_temperatures=2, device=device)\n"
        "    pm.train(rbm, np.ones((1, 2)), epochs=1, gradient=pm.PCD(2, 1, 1), device=device)\n"
        "    seen.append('torch' in sys.modules)\n"
        "print(json.dumps(seen))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [False, True]


# Edges


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (1, 4), (4, 1)])
def test_single_units_and_single_chains(n_visible, n_hidden):
    rbm = draw_machine(n_visible, n_hidden)
    result = train(rbm, np.ones((1, n_visible)), epochs=2, gradient=PCD(1, 1, 0), device="torch:cpu", rng=0)
    assert np.isfinite(result.history.log_likelihood).all()
    estimate = estimate_log_partition(rbm, n_temperatures=50, device="torch:cpu", rng=0)
    assert abs(deviation(estimate, log_partition(rbm))) < 4.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_huge_parameters_stay_finite(visible, hidden, method):
    rbm = draw_machine(10, 8, visible, hidden, seed=13, scale=1000.0)
    options = {"method": method, "n_temperatures": 10, "n_samples": 100, "rng": 0}
    ours = estimate_log_partition(rbm, device="torch:cpu", **options)
    assert math.isfinite(ours.value)
    assert ours.trusted == estimate_log_partition(rbm, **options).trusted


def test_parameters_beyond_float32_are_refused(engine):
    rbm = RBM(np.full((2, 2), 1e31), 0.0, 0.0)
    chains = Chains.start(rbm.visible, (3, 2), np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"`rbm` must have parameters below 1e\+30"):
        engine.run_sweeps(*parameters_of(rbm), chains, 1)
