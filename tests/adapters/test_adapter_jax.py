"""The initializer for JAX: variance, shape, dtype, axis order; alone, in Flax, in NetKet."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import paramagnet as pm

jax = pytest.importorskip("jax", reason='needs JAX: pip install ".[jax]"')
jnp = jax.numpy

from paramagnet.adapters.jaxinit import layer_correlation_normal  # noqa: E402

KEY = 7


def assert_std(weights, std):
    """The root mean square is ``std``, within five of its standard errors; parts of complex numbers alike."""
    array = np.asarray(weights)
    if np.iscomplexobj(array):
        assert_std(array.real, std / np.sqrt(2))
        assert_std(array.imag, std / np.sqrt(2))
        return
    array = array.astype(np.float64)
    assert abs(np.sqrt(np.mean(array**2)) / std - 1.0) < 5.0 / np.sqrt(2 * array.size)
    assert abs(np.mean(array)) < 5.0 * std / np.sqrt(array.size)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_variance_shape_and_dtype(dtype):
    weights = layer_correlation_normal()(jax.random.key(KEY), (300, 200), jnp.dtype(dtype))
    assert weights.shape == (300, 200)
    assert weights.dtype == jnp.dtype(dtype)
    assert_std(weights, pm.weight_std(300, 200))


def test_is_the_normal_of_jax_at_our_scale():
    ours = layer_correlation_normal(hidden_bias=-5.0)(jax.random.key(KEY), (30, 20))
    std = pm.weight_std(30, 20, hidden_bias=-5.0)
    np.testing.assert_array_equal(ours, jax.nn.initializers.normal(std)(jax.random.key(KEY), (30, 20)))
    complex_ours = layer_correlation_normal(hidden_bias=-5.0)(jax.random.key(KEY), (30, 20), jnp.complex64)
    theirs = jax.nn.initializers.normal(std)(jax.random.key(KEY), (30, 20), jnp.complex64)
    np.testing.assert_array_equal(complex_ours, theirs)


@pytest.mark.parametrize(
    "options", [{"hidden": "spin"}, {"hidden_bias": -3.0}, {"visible": "spin", "gain": 0.25}]
)
def test_units_biases_and_gain_set_the_scale(options):
    theory = {name: value for name, value in options.items() if name != "gain"}
    std = options.get("gain", 1.0) * pm.weight_std(200, 300, **theory)
    assert_std(layer_correlation_normal(**options)(jax.random.key(KEY), (200, 300)), std)


def test_axis_order():
    # bit hidden units: the layers are not interchangeable
    ours, other = pm.weight_std(400, 100, hidden_bias=-4.0), pm.weight_std(100, 400, hidden_bias=-4.0)
    assert abs(ours / other - 1.0) > 0.1
    options = {"visible": "spin", "hidden": "bit", "hidden_bias": -4.0}
    assert_std(layer_correlation_normal(**options)(jax.random.key(KEY), (400, 100)), ours)
    turned = layer_correlation_normal(**options, visible_axis=-1, hidden_axis=-2)
    assert_std(turned(jax.random.key(KEY), (100, 400)), ours)
    turned = layer_correlation_normal(**options, visible_axis=1, hidden_axis=0)
    assert_std(turned(jax.random.key(KEY), (100, 400)), ours)
    many = layer_correlation_normal(**options, batch_axis=0)(jax.random.key(KEY), (3, 400, 100))
    assert many.shape == (3, 400, 100)
    assert_std(many, ours)


def test_reproducible_by_key_and_the_same_under_jit():
    init = layer_correlation_normal()
    first, again = (init(jax.random.key(KEY), (40, 30), jnp.float32) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, init(jax.random.key(KEY + 1), (40, 30), jnp.float32))
    compiled = jax.jit(lambda key: init(key, (40, 30), jnp.float32))(jax.random.key(KEY))
    np.testing.assert_allclose(compiled, first, rtol=1e-6)
    old_style = init(jax.random.PRNGKey(KEY), (40, 30))
    assert old_style.shape == (40, 30)


def test_default_dtype():
    assert layer_correlation_normal()(jax.random.key(KEY), (4, 3)).dtype == jnp.float32
    of_the_factory = layer_correlation_normal(dtype=jnp.complex64)(jax.random.key(KEY), (4, 3))
    assert of_the_factory.dtype == jnp.complex64
    assert layer_correlation_normal(dtype=float)(jax.random.key(KEY), (4, 3)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ({}, (4, 1, 10), "`shape` must have one axis for the visible layer"),
        ({}, (4,), "`shape` must have an axis -2"),
        ({"batch_axis": 5}, (3, 4), "`shape` must have an axis 5"),
        ({"visible_axis": -1}, (3, 4), "`visible_axis` -1"),
    ],
)
def test_shapes_that_are_no_machine(options, shape, words):
    with pytest.raises(ValueError, match=words):
        layer_correlation_normal(**options)(jax.random.key(KEY), shape)


def test_bad_options_are_refused_when_the_initializer_is_made():
    with pytest.raises(ValueError, match="`hidden` must be"):
        layer_correlation_normal(hidden="elu")
    with pytest.raises(ValueError, match="`gain` must be zero or positive"):
        layer_correlation_normal(gain=-1.0)
    with pytest.raises(ValueError, match="dtype"):
        layer_correlation_normal()(jax.random.key(KEY), (4, 3), jnp.int32)


def run_apart(code: str) -> None:
    """Run ``code`` in a process of its own: NetKet switches JAX to 64 bit when it is imported."""
    head = """
        import numpy as np
        import jax, jax.numpy as jnp
        import paramagnet as pm
        from paramagnet.adapters.jaxinit import layer_correlation_normal
        def assert_std(w, std):
            w = np.asarray(w)
            assert abs(np.sqrt(np.mean(np.abs(w)**2)) / std - 1.0) < 5.0 / np.sqrt(2 * w.size)
    """
    code = textwrap.dedent(head) + textwrap.dedent(code)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_flax():
    pytest.importorskip("flax", reason="needs flax, which `make test EXTRAS=all` installs")
    run_apart(
        """
        from flax import linen, nnx
        init = layer_correlation_normal(hidden_bias=-4.0)
        std = pm.weight_std(300, 100, hidden_bias=-4.0)
        layer = linen.Dense(100, kernel_init=init, bias_init=linen.initializers.constant(-4.0))
        variables = layer.init(jax.random.key(1), jnp.ones((5, 300)))
        kernel = variables["params"]["kernel"]
        assert kernel.shape == (300, 100) and kernel.dtype == jnp.float32
        assert_std(kernel, std)
        again = layer.init(jax.random.key(1), jnp.ones((5, 300)))["params"]["kernel"]
        np.testing.assert_array_equal(kernel, again)
        compiled = jax.jit(layer.init)(jax.random.key(1), jnp.ones((5, 300)))["params"]["kernel"]
        np.testing.assert_allclose(compiled, kernel, rtol=1e-6)
        half = linen.Dense(100, kernel_init=init, param_dtype=jnp.bfloat16)
        assert half.init(jax.random.key(1), jnp.ones((5, 300)))["params"]["kernel"].dtype == jnp.bfloat16

        module = nnx.Linear(300, 100, kernel_init=init, rngs=nnx.Rngs(1))
        assert module.kernel[...].shape == (300, 100)
        assert_std(module.kernel[...], std)
        """
    )


def test_netket():
    if not has_distribution("netket"):
        pytest.skip("needs netket, which `make test EXTRAS=all` installs")
    run_apart(
        """
        import netket as nk
        init = layer_correlation_normal(hidden="spin")       # log cosh: its hidden units are spins
        std = pm.weight_std(40, 80, hidden="spin")
        np.testing.assert_allclose(std, (40 * 80) ** -0.25)
        space = nk.hilbert.Spin(0.5, 40)
        for kind in (jnp.float64, jnp.complex128):
            model = nk.models.RBM(alpha=2, param_dtype=kind, kernel_init=init)
            variables = model.init(jax.random.key(1), space.random_state(jax.random.key(2), 3))
            kernel = variables["params"]["Dense"]["kernel"]
            assert kernel.shape == (40, 80) and kernel.dtype == kind
            assert_std(kernel, std)
            if kind == jnp.complex128:
                assert_std(kernel.real, std / np.sqrt(2))
                assert_std(kernel.imag, std / np.sqrt(2))

        # real parameters: log psi is the free energy of our machine, with the sign reversed
        rbm = pm.RBM(variables["params"]["Dense"]["kernel"].real, 0.1, 0.2, "spin", "spin")
        model = nk.models.RBM(alpha=2)
        x = np.asarray(space.random_state(jax.random.key(2), 3))
        dense = {"kernel": rbm.weights, "bias": rbm.hidden_bias}
        log_psi = model.apply({"params": {"Dense": dense, "visible_bias": rbm.visible_bias}}, x)
        np.testing.assert_allclose(log_psi + 80 * np.log(2.0), -rbm.free_energy(x), rtol=1e-12)
        """
    )


def has_distribution(name):
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
