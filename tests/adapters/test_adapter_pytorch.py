"""PyTorch: the scale of the draws in either axis order, and machines as tensors and modules."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paramagnet.exact.sums import log_partition, sample_exact
from paramagnet.learning.gradients.summed import exact_gradient
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.rbm import RBM
from paramagnet.theory.scale import weight_std
from paramagnet.theory.status import MaximumWarning

torch = pytest.importorskip("torch", reason='needs pip install ".[torch]"')
pytorch = pytest.importorskip("paramagnet.adapters.pytorch")
RBMModule, layer_correlation_normal_ = pytorch.RBMModule, pytorch.layer_correlation_normal_
from_tensors, to_tensors = pytorch.from_tensors, pytorch.to_tensors

COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw_machine(n_visible=7, n_hidden=4, visible="spin", hidden="bit", seed=0):
    rng = np.random.default_rng(seed)
    sizes = ((n_visible, n_hidden), n_visible, n_hidden)
    return RBM(*(rng.normal(size=size) for size in sizes), visible, hidden)


# The initializer


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_scale_in_either_axis_order(visible, hidden):
    units = {"visible": visible, "hidden": hidden, "hidden_bias": -5.0}
    sigma = weight_std(400, 100, **units)
    assert abs(sigma / weight_std(100, 400, **units) - 1.0) > 0.05  # so that a wrong axis is seen
    linear = torch.nn.Linear(400, 100).weight
    cases = [
        (linear, 1),
        (torch.empty(100, 400), -1),
        (torch.empty(400, 100), 0),
        (torch.empty(400, 100), -2),
    ]
    for weight, visible_dim in cases:
        out = layer_correlation_normal_(weight, visible_dim=visible_dim, generator=seeded(), **units)
        assert out is weight
        assert float(weight.detach().std()) == pytest.approx(sigma, rel=0.02)
        assert abs(float(weight.detach().mean())) < 5.0 * sigma / 200.0


def test_kurtosis_and_gain():
    weight = torch.empty(300, 300, dtype=torch.float64)
    quarter = layer_correlation_normal_(weight.clone(), gain=0.25, generator=seeded())
    whole = layer_correlation_normal_(weight, generator=seeded())
    assert torch.allclose(4.0 * quarter, whole)
    assert float((whole**4).mean() / (whole**2).mean() ** 2) == pytest.approx(3.0, abs=0.1)
    assert not layer_correlation_normal_(weight, gain=0.0).any()


def test_draws_follow_the_generator():
    first, second, other = (
        layer_correlation_normal_(torch.empty(5, 6), generator=seeded(s)) for s in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    torch.manual_seed(3)
    first = layer_correlation_normal_(torch.empty(5, 6))
    torch.manual_seed(3)
    assert torch.equal(first, layer_correlation_normal_(torch.empty(5, 6)))
    state = torch.get_rng_state()
    layer_correlation_normal_(torch.empty(5, 6), generator=seeded())
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_and_device_are_kept(dtype):
    weight = torch.empty(200, 300, dtype=dtype)
    pointer = weight.data_ptr()
    layer_correlation_normal_(weight, generator=seeded())
    assert (weight.dtype, weight.device.type, weight.data_ptr()) == (dtype, "cpu", pointer)
    assert float(weight.to(torch.float64).std()) == pytest.approx(weight_std(300, 200), rel=0.02)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_weights_have_the_variance_in_all(dtype):
    weight = layer_correlation_normal_(torch.empty(200, 300, dtype=dtype), generator=seeded())
    assert weight.dtype == dtype
    variance = weight_std(300, 200) ** 2
    assert float(weight.real.var()) == pytest.approx(variance / 2.0, rel=0.04)
    assert float((weight.abs() ** 2).mean()) == pytest.approx(variance, rel=0.03)


def test_meta_tensors_and_graphs():
    meta = torch.empty(20, 30, device="meta")
    assert layer_correlation_normal_(meta) is meta
    assert meta.is_meta
    weight = torch.nn.Parameter(torch.empty(20, 30))
    layer_correlation_normal_(weight)
    assert weight.requires_grad
    assert weight.grad_fn is None
    transposed = torch.empty(20, 30).t()  # a view, written through
    layer_correlation_normal_(transposed, visible_dim=0)
    assert transposed.any()


@pytest.mark.parametrize(
    ("weight", "options", "words"),
    [
        (np.zeros((3, 3)), {}, "`weight` must be a torch.Tensor, got ndarray"),
        (torch.zeros(3), {}, r"`weight` must have two dimensions.*got shape \(3,\)"),
        (torch.zeros(3, 3, 3), {}, r"`weight` must have two dimensions.*got shape \(3, 3, 3\)"),
        (torch.zeros(3, 3, dtype=torch.int64), {}, "`weight` must have a floating-point or complex dtype"),
        (torch.zeros(3, 0), {}, "`n_visible` must be a positive integer, got 0"),
        (torch.zeros(3, 3), {"visible_dim": 2}, "`visible_dim` must be 0 or 1"),
        (torch.zeros(3, 3), {"visible_dim": True}, "`visible_dim` must be 0 or 1"),
        (torch.zeros(3, 3), {"gain": -1.0}, "`gain` must be zero or positive"),
        (torch.zeros(3, 3), {"hidden": "potts"}, "`hidden` must be a unit type"),
        (torch.zeros(3, 3), {"hidden_bias": [0.0, 1.0]}, "`hidden_bias` must be a single number"),
    ],
)
def test_what_is_refused(weight, options, words):
    with pytest.raises(ValueError, match=words):
        layer_correlation_normal_(weight, **options)


def test_doubts_of_the_theory_point_to_the_caller():
    with pytest.warns(MaximumWarning, match="the first one, at beta = 1.752, is taken") as seen:
        layer_correlation_normal_(torch.empty(100, 400), visible="bit", hidden_bias=-1.0)
    assert [warning.filename for warning in seen] == [__file__]


# Tensors


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_there_and_back(visible, hidden):
    rbm = draw_machine(visible=visible, hidden=hidden)
    for visible_dim in (0, 1):
        tensors = to_tensors(rbm, dtype=torch.float64, visible_dim=visible_dim)
        assert tensors["weight"].shape == ((4, 7) if visible_dim else (7, 4))
        assert all(tensor.is_contiguous() for tensor in tensors.values())
        back = from_tensors(**tensors, visible=visible, hidden=hidden, visible_dim=visible_dim)
        for name in ("weights", "visible_bias", "hidden_bias"):
            assert np.array_equal(getattr(back, name), getattr(rbm, name))
        assert (back.visible, back.hidden) == (rbm.visible, rbm.hidden)
        tensors["weight"].zero_()  # a copy: the machine stays as it is
        assert rbm.weights.all()


def test_dtypes_of_tensors():
    rbm = draw_machine()
    assert to_tensors(rbm)["weight"].dtype == torch.float32
    half = to_tensors(rbm, dtype=torch.bfloat16)
    assert half["hidden_bias"].dtype == torch.bfloat16
    np.testing.assert_allclose(from_tensors(**half).weights, rbm.weights, rtol=0.01)
    assert to_tensors(rbm, device="meta")["weight"].is_meta
    machine = from_tensors(torch.zeros(4, 7, requires_grad=True), 0.0, -1.0)
    assert (machine.n_visible, machine.n_hidden, machine.hidden_bias[0]) == (7, 4, -1.0)


def test_bad_tensors_are_refused():
    with pytest.raises(ValueError, match="`weight` must be an array of real numbers, got dtype complex64"):
        from_tensors(torch.zeros(2, 2, dtype=torch.complex64), 0.0, 0.0)
    with pytest.raises(ValueError, match="`visible_bias` must be one number or 7 numbers"):
        from_tensors(torch.zeros(4, 7), torch.zeros(4), 0.0)
    with pytest.raises(ValueError, match="`weights` must have shape"):
        from_tensors(torch.zeros(4), 0.0, 0.0)


# The module


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_module_is_the_machine(visible, hidden):
    rbm = draw_machine(visible=visible, hidden=hidden)
    module = RBMModule.from_rbm(rbm, dtype=torch.float64)
    rng = np.random.default_rng(1)
    v, h = rng.choice(rbm.visible.levels, size=(3, 5, 7)), rng.choice(rbm.hidden.levels, size=(5, 4))
    pairs = [
        (module.free_energy(torch.tensor(v)), rbm.free_energy(v)),
        (module.mean_h_given_v(torch.tensor(v)), rbm.mean_h_given_v(v)),
        (module(torch.tensor(v)), rbm.hidden_features(v)),
        (module.mean_v_given_h(torch.tensor(h)), rbm.mean_v_given_h(h)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=0, atol=1e-13)
    again = module.to_rbm()
    assert np.array_equal(again.weights, rbm.weights)
    assert (again.visible, again.hidden) == (rbm.visible, rbm.hidden)


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_gradient_of_the_free_energies_is_that_of_the_likelihood(visible, hidden):
    """With all states as samples, weighed by their exact probability."""
    rbm = draw_machine(5, 3, visible, hidden)
    module = RBMModule.from_rbm(rbm, dtype=torch.float64)
    data = np.random.default_rng(2).choice(rbm.visible.levels, size=(9, 5))
    every = np.array(list(itertools.product(rbm.visible.levels, repeat=5)))
    p = torch.tensor(np.exp(-rbm.free_energy(every) - log_partition(rbm)))
    loss = module.free_energy(torch.tensor(data)).mean() - p @ module.free_energy(torch.tensor(every))
    loss.backward()
    exact = exact_gradient(rbm, data)
    np.testing.assert_allclose(-module.weight.grad.numpy().T, exact.weights, atol=1e-12)
    np.testing.assert_allclose(-module.visible_bias.grad.numpy(), exact.visible_bias, atol=1e-12)
    np.testing.assert_allclose(-module.hidden_bias.grad.numpy(), exact.hidden_bias, atol=1e-12)


def test_gradients_pass_numerical_checks_and_stay_finite():
    module = RBMModule.from_rbm(draw_machine(4, 3, "bit", "spin"), dtype=torch.float64)
    v = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module.free_energy, v)
    assert torch.autograd.gradcheck(module, v)
    huge = RBMModule.from_rbm(RBM(np.full((4, 3), 1e4), 1e4, -1e4))
    loss = huge.free_energy(torch.ones(2, 4)).mean()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in huge.parameters())


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_draws_of_the_module(visible, hidden):
    rbm, n = draw_machine(5, 3, visible, hidden, seed=3), 40_000
    module = RBMModule.from_rbm(rbm)
    v = torch.tensor(sample_exact(rbm, n, rng=0), dtype=torch.float32)
    generator = seeded()
    h = module.sample_h_given_v(v, generator=generator)
    assert not h.requires_grad
    assert set(h.unique().tolist()) == set(rbm.hidden.levels)
    again = module.sample_v_given_h(h, generator=generator)
    assert set(again.unique().tolist()) == set(rbm.visible.levels)
    assert again.dtype == v.dtype
    distance = (again.mean(0) - v.mean(0)).abs().max() * n**0.5
    assert float(distance) < 8.0  # both scatter by at most 1
    expected = rbm.mean_h_given_v(v.numpy()).mean(axis=0)
    np.testing.assert_allclose(h.mean(0).numpy(), expected, atol=5.0 / n**0.5)


def test_a_fresh_module_has_the_right_scale():
    module = RBMModule(300, 200, hidden_bias=-5.0, generator=seeded(), dtype=torch.float64)
    assert float(module.weight.detach().std()) == pytest.approx(
        weight_std(300, 200, hidden_bias=-5.0), rel=0.02
    )
    assert [name for name, _ in module.named_parameters()] == ["weight", "visible_bias", "hidden_bias"]
    assert not module.visible_bias.any()
    assert (module.hidden_bias == -5.0).all()
    assert repr(module) == "RBMModule(300 spin visible, 200 bit hidden)"
    assert RBMModule(3, 2, device="meta").weight.is_meta


def test_state_dicts_are_those_of_machines():
    rbm = draw_machine()
    module = RBMModule(7, 4)
    module.load_state_dict(to_tensors(rbm))
    np.testing.assert_allclose(module.to_rbm().weights, rbm.weights, rtol=1e-6)
    assert set(module.state_dict()) == {"weight", "visible_bias", "hidden_bias"}


def test_an_optimizer_of_torch_learns():
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(2, 8))[rng.integers(2, size=100)]
    module, generator = RBMModule(8, 4, generator=seeded(1)), seeded(2)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    points = torch.tensor(data, dtype=torch.float32)
    chains = points.repeat(10, 1)
    before = float(log_likelihood(module.to_rbm(), data))
    for _ in range(100):
        for _ in range(5):
            h = module.sample_h_given_v(chains, generator=generator)
            chains = module.sample_v_given_h(h, generator=generator)
        optimizer.zero_grad()
        (module.free_energy(points).mean() - module.free_energy(chains).mean()).backward()
        optimizer.step()
    assert float(log_likelihood(module.to_rbm(), data)) > before + 3.0


# Without torch


def test_without_torch_the_extra_is_named():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try: import paramagnet.adapters.pytorch\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        'paramagnet.adapters.pytorch needs PyTorch, which is not installed: pip install ".[torch]" in a '
        "checkout of paramagnet."
    )


# The documentation


def test_the_examples_of_the_documentation_run(capsys):
    text = (Path(__file__).parents[2] / "docs" / "pytorch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "+-" in printed
    estimate = names["log_z"]
    assert abs(estimate.value - log_partition(names["result"].rbm)) < 5.0 * estimate.error
    assert names["mine"].std() == pytest.approx(
        weight_std(784, 500, visible="bit", hidden="bit", hidden_bias=-5.0), rel=0.02
    )
