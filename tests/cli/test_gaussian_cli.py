"""Gaussian units on the command line: nothing is cut off, counted wrongly, or drawn for other units."""

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.cli.beta_max_command import _MEANING
from paramagnet.reproduction.figures import draw_layer_correlation
from paramagnet.theory.status import _OBJECTIONS


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(0).normal(size=(40, 4)))
    return path


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "machine.safetensors"
    pm.initialize(4, 3, visible="gaussian(200.0)", hidden="spin", scheme="hinton", rng=1).save(path)
    return path


@pytest.mark.parametrize("name", ["out.npy", "out.npz", "out.csv"])
def test_samples_are_written_in_full(machine, tmp_path, name):
    out = tmp_path / name
    assert run("sample", machine, "--out", out, "--n-samples", 50, "--seed", 1).exit_code == 0
    found = np.loadtxt(out, delimiter=",") if name.endswith("csv") else np.load(out)
    found = found["data"] if name.endswith("npz") else found
    assert np.array_equal(found, pm.sample_exact(pm.RBM.load(machine), 50, rng=1))
    assert np.abs(found).max() > 20.0


def test_samples_of_binary_units_stay_bytes(tmp_path):
    path, out = tmp_path / "machine.safetensors", tmp_path / "out.npy"
    pm.initialize(4, 3, rng=1).save(path)
    assert run("sample", path, "--out", out, "--n-samples", 5, "--seed", 1).exit_code == 0
    assert np.load(out).dtype == np.int8


def test_first_order_transition_is_shown():
    result = run(
        "beta-max", "--visible-units", 16, "--hidden-units", 16, "--visible", "gaussian", "--hidden-bias", -5
    )
    assert result.exit_code == 0
    assert "first-order transition" in result.output


def test_every_status_that_is_no_error_has_words():
    shown = {"maximum", "transition", "edge (continuous)"} | {
        name for name, (category, _) in _OBJECTIONS.items() if category
    }
    assert set(_MEANING) == shown


def test_curves_are_those_of_the_units_asked_for():
    titles = [axis.get_title() for axis in draw_layer_correlation("gaussian", [0.5], stop=1.5).axes]
    assert "0.937" in titles[0]  # spin-gaussian; two layers of spins have 1.456


def test_states_that_are_summed_are_those_of_the_binary_layer(tmp_path, points):
    path = tmp_path / "machine.safetensors"
    pm.initialize(4, 6, visible="gaussian", scheme="hinton", rng=1).save(path)
    assert "2**6 states" in run("evaluate", path, points).output
    pm.initialize(6, 4, hidden="gaussian", scheme="hinton", rng=1).save(path)
    np.save(points, np.ones((3, 6)))
    assert "2**6 states" in run("evaluate", path, points).output


def test_resume_knows_a_unit_by_any_spelling(tmp_path, points):
    command = (
        "train",
        points,
        "--hidden-units",
        2,
        "--visible",
        "gaussian(0.50)",
        "--out",
        tmp_path / "m.safetensors",
    )
    assert run(*command, "--epochs", 2).exit_code == 0
    result = run(*command, "--epochs", 3, "--resume")
    assert "needs the options of the earlier run" not in result.output
    other = run(*command, "--epochs", 3, "--resume", "--hidden", "spin")
    assert other.exit_code != 0


def test_comparison_of_starts_refuses_gaussian_units_by_name(points):
    result = run("compare", points, "--hidden-units", 3, "--visible", "gaussian")
    assert result.exit_code != 0
    with pytest.raises(
        ValueError, match="`visible` must be 'spin' or 'bit', units of two values, got 'gaussian'"
    ):
        pm.compare_initializations(points, 3, visible="gaussian")


def test_train_takes_biases_from_data(tmp_path, points):
    out = tmp_path / "m.safetensors"
    command = ("train", points, "--hidden-units", 2, "--visible", "gaussian", "--epochs", 0, "--out", out)
    command += ("--scheme", "layer-correlation")  # that of the recipe shifts the biases by the weights
    assert run(*command, "--visible-bias", "data").exit_code == 0
    np.testing.assert_allclose(pm.RBM.load(out).visible_bias, np.load(points).mean(axis=0))
    assert run(*command, "--visible-bias", "-0.5", "--force").exit_code == 0
    np.testing.assert_array_equal(pm.RBM.load(out).visible_bias, -0.5)
    result = run(*command, "--visible-bias", "mean", "--force")
    assert result.exit_code != 0
    assert "`--visible-bias` must be a number or data, got 'mean'" in str(result.exception or result.output)
