"""The commands where nothing is exact: train --pcd, evaluate by mAIS, sample by Gibbs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.learning.checkpoint import load_checkpoint
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.rbm import RBM


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("spins.npy", rng.choice([-1, 1], size=(40, 6)))
    np.save("wide.npy", rng.choice([-1, 1], size=(5, 60)))
    RBM(0.1 * rng.normal(size=(60, 50)), 0.0, 0.0).save("large.safetensors")
    RBM(0.5 * rng.normal(size=(6, 4)), 0.0, 0.0).save("small.safetensors")
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


BASIC = ("train", "spins.npy", "--hidden-units", 3, "--out", "model.safetensors", "--seed", 1)


def test_train_with_pcd_and_resume(folder):
    options = ("--pcd", "--chains", 30, "--steps", 2, "--threads", 2)
    result = run(*BASIC, "--epochs", 4, *options)
    assert "gradients: PCD(n_chains=30, n_steps=2, n_relax=500)" in result.stderr
    whole = RBM.load("model.safetensors")
    run(*BASIC, "--epochs", 2, *options)
    run(*BASIC, "--epochs", 4, *options, "--resume")
    assert np.array_equal(RBM.load("model.safetensors").weights, whole.weights)
    assert load_checkpoint("model.checkpoint.safetensors").chains.visible.shape == (30, 6)


def test_train_takes_pcd_where_exact_is_dear_and_measures_by_mais(folder):
    result = run(
        "train", "wide.npy", "--hidden-units", 50, "--epochs", 1, "--out", "model.safetensors",
        "--chains", 50, "--steps", 2, "--evaluate-every", 1, "--seed", 1,
    )  # fmt: skip
    assert "gradients: PCD(n_chains=50" in result.stderr
    assert " +- " in result.stdout
    assert "(mAIS) nats per point" in result.stdout


def test_exact_and_pcd_exclude_each_other(folder):
    result = run(*BASIC, "--epochs", 1, "--exact", "--pcd", code=1)
    assert "`--exact` and `--pcd` exclude each other" in str(result.exception)


def test_evaluate_says_how(folder):
    exact = float(log_likelihood(RBM.load("small.safetensors"), np.load("spins.npy")))
    words = run("evaluate", "small.safetensors", "spins.npy").stdout
    assert f"{exact:.6f} nats per point (40 points, exact)" in words
    for method in ("mais", "ais", "reverse-ais"):
        options = ("--method", method, "--samples", 400, "--temperatures", 50, "--seed", 1)
        answer = json.loads(run("evaluate", "small.safetensors", "spins.npy", "--json", *options).stdout)
        assert abs(answer["log_likelihood"] - exact) < 5.0 * answer["error"]
        assert answer["method"] == method
        assert answer["trusted"]
        words = run("evaluate", "small.safetensors", "spins.npy", *options).stdout
        assert f"(40 points, {method}: 400 samples, 50 temperatures)" in words
        assert " +- " in words


def test_evaluate_takes_mais_for_large_machines(folder):
    result = run("evaluate", "large.safetensors", "wide.npy", "--temperatures", 100, "--seed", 1)
    assert "mais: 1000 samples, 100 temperatures" in result.stdout
    assert "Do not trust" not in result.stderr


def test_evaluate_says_what_not_to_trust(folder):
    words = ("evaluate", "large.safetensors", "wide.npy", "--temperatures", 5)
    assert "Do not trust this" in run(*words, "--samples", 20).stderr
    answer = json.loads(run(*words, "--samples", 1, "--json").stdout)
    assert answer["error"] is None
    assert not answer["trusted"]


def test_sample_by_gibbs(folder):
    result = run(
        "sample", "large.safetensors", "--n-samples", 30, "--out", "a.npy", "--steps", 20, "--seed", 1
    )
    assert "30 samples after 20 Gibbs sweeps from random states: a.npy" in result.stdout
    states = np.load("a.npy")
    assert states.shape == (30, 60)
    assert set(np.unique(states)) == {-1, 1}
    result = run("sample", "small.safetensors", "--n-samples", 30, "--out", "b.csv", "--method", "gibbs")
    assert "1000 Gibbs sweeps" in result.stdout
    assert np.loadtxt("b.csv", delimiter=",").shape == (30, 6)


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "small.safetensors", "--n-samples", 1, "--out", "a.npy", "--method", "guess"),
        ("evaluate", "small.safetensors", "spins.npy", "--method", "guess"),
    ],
)
def test_unknown_methods_are_refused(folder, words):
    assert "`--method` must be auto, exact or" in str(run(*words, code=1).exception)
