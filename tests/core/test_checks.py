"""Arrays of other packages, states of both layers, and the messages about what is wrong with them."""

import numpy as np
import pytest

import paramagnet as pm
from hostile_values import BITS, N_VISIBLE, SPINS, make_values
from paramagnet._arrays import require_memory, shown


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    return make_values(tmp_path_factory.mktemp("checks"))


# What is converted, exactly


def rbm():
    rng = np.random.default_rng(3)
    return pm.RBM(rng.normal(size=(3, 2)), 0.1, -0.2)


EXACT = [
    "tensor", "tensor with gradient", "bfloat16 tensor", "float16 tensor with gradient", "sparse tensor",
    "list of tensors with gradient", "jax array", "bfloat16 jax array", "frame", "nullable frame",
    "sparse matrix", "matrix", "subclass", "float128 array", "object array of numbers", "read-only",
]  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_arrays_of_other_packages_are_converted_exactly(name, values):
    if name not in values:
        pytest.skip("its package is not installed")
    machine = rbm()
    expected = machine.free_energy(SPINS)
    assert np.array_equal(machine.free_energy(values[name]()), expected)
    assert pm.log_likelihood(machine, values[name]()).value == pm.log_likelihood(machine, SPINS).value
    weights = pm.RBM(values[name](), 0.0, 0.0).weights
    assert np.array_equal(weights, SPINS)
    assert type(weights) is np.ndarray


def test_data_frames_of_several_types_are_bits():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    machine = rbm().to_bits()
    frame = pandas.DataFrame({"a": [1, 0], "b": [0.0, 1.0], "c": [True, False]})
    assert np.array_equal(machine.free_energy(frame), machine.free_energy([[1, 0, 1], [0, 1, 0]]))


def test_traced_arrays_are_refused():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with pytest.raises(ValueError, match=r"`v` must hold numbers, got a traced array of JAX.*outside"):
        jax.jit(lambda v: rbm().free_energy(v))(SPINS)


# Silent wrong answers


MASKED = np.ma.masked_array(SPINS, SPINS < 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rbm().free_energy(MASKED),
        lambda: rbm().energy(SPINS, np.ma.masked_array(BITS[:, :2], BITS[:, :2] > 0)),
        lambda: rbm().sample_h_given_v(MASKED),
        lambda: rbm().mean_v_given_h(np.ma.masked_array(BITS[:, :2])),
        lambda: pm.RBM(np.ma.masked_array(np.ones((3, 2))), 0, 0),
        lambda: pm.RBM(np.ones((3, 2)), np.ma.masked_array(np.ones(3)), 0),
        lambda: pm.log_likelihood(rbm(), MASKED),
        lambda: pm.train(rbm(), MASKED, epochs=1),
        lambda: pm.beta_max(np.ma.masked_array([1.0])),
        lambda: pm.sample(rbm(), 4, clamp=MASKED),
    ],
)
def test_masked_arrays_are_refused_with_a_remedy(call):
    with pytest.raises(
        ValueError, match=r"must not be a masked array, got one of shape .*`\.filled\(\.\.\.\)`"
    ):
        call()


@pytest.mark.parametrize("method", ["free_energy", "energy"])
def test_energies_want_values_of_the_units(method):
    machine = rbm()
    others = (np.ones((1, 2)),) if method == "energy" else ()
    with pytest.raises(ValueError, match=r"`v` must hold the values of spin units.*`2\.0 \* v - 1`"):
        getattr(machine, method)(BITS, *others)
    with pytest.raises(ValueError, match=r"`v` must hold the values of bit units.*`\(v \+ 1\) / 2`"):
        getattr(machine.to_bits(), method)(SPINS, *others)
    with pytest.raises(ValueError, match=r"`v` must not hold NaN, found 1, the first in row 0, column 1"):
        getattr(machine, method)([[1.0, np.nan, 1.0]], *others)
    with pytest.raises(ValueError, match=r"found 0\.5"):
        getattr(machine, method)([0.5, 1.0, 1.0], *others)


@pytest.mark.parametrize(
    "method", ["field_h_given_v", "mean_h_given_v", "sample_h_given_v", "hidden_features"]
)
def test_conditionals_take_means_too(method):
    machine = rbm()
    assert getattr(machine, method)(np.linspace(-1.0, 1.0, N_VISIBLE)).shape == (2,)
    with pytest.raises(ValueError, match=r"spin units, -1 and 1, or means between them; found 1\.5"):
        getattr(machine, method)([0.0, 1.5, 0.0])
    with pytest.raises(ValueError, match=r"means between them; found -1.*`\(v \+ 1\) / 2`"):
        getattr(machine.to_bits(), method)(SPINS)


def test_states_of_gaussian_units_are_checked():
    machine = pm.RBM(np.ones((3, 2)), 0.0, 0.0, "gaussian", "bit")
    assert machine.free_energy([0.1, -3.0, 7.0]).shape == ()
    with pytest.raises(ValueError, match="`v` must hold finite numbers, got inf at"):
        machine.free_energy([0.1, np.inf, 7.0])
    with pytest.raises(ValueError, match="at most 100000 standard deviations"):
        machine.free_energy([0.1, 1e6, 7.0])


def test_batches_of_both_layers_must_fit():
    with pytest.raises(ValueError, match=r"`v` and `h` must have batch axes .*\(4, 3\) and \(2, 2\)"):
        rbm().energy(SPINS, np.ones((2, 2)))


# Messages


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("x" * 1000, "'xxxxx"),
        (10**5000, "an integer of 16610 bits"),
        ([10**5000], "[an integer of 16610 bits]"),
        (np.zeros((100, 100)), "ndarray of shape (100, 100) and dtype float64"),
        (list(range(1000)), "[0, 1, 2, 3, 4, 5, ...]"),
        ({"a": [1] * 1000}, "{'a': [1, 1, 1, 1, 1, 1, ...]}"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_values_are_shown_in_short(value, text):
    assert shown(value).startswith(text)
    assert len(shown(value)) < 120


def test_sizes_beyond_the_memory_are_refused():
    require_memory(1000, "n", 1)
    with pytest.raises(ValueError, match=r"`n_samples` must be small enough .* would need .* GiB"):
        pm.sample(rbm(), 2**50)
    with pytest.raises(ValueError, match="`n_visible` or `n_hidden` must be small enough"):
        pm.initialize(2**40, 2**20)
