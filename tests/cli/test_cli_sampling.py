"""The commands where nothing is exact: train --pcd, evaluate by mAIS, sample by Gibbs."""

import json
import os
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.cli.flags import name_flags
from paramagnet.data.files import read_data
from paramagnet.estimates import Estimate, effective_number
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.state import load_checkpoint
from paramagnet.rbm import RBM
from paramagnet.sampling.annealing import mean_weight


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


RATE = ("--learning-rate", 0.001, "--schedule", "constant")  # one that falls depends on the epochs asked for
BASIC = ("train", "spins.npy", "--hidden-units", 3, "--out", "model.safetensors", "--seed", 1, *RATE)


def test_train_with_pcd_and_resume(folder):
    options = ("--pcd", "--chains", 30, "--steps", 2, "--threads", 2)
    result = run(*BASIC, "--epochs", 4, *options)
    assert "gradients: PCD(n_chains=30, n_steps=2, n_relax=100)" in result.stderr
    whole = RBM.load("model.safetensors")
    run(*BASIC, "--epochs", 2, *options, "--force")
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
    assert "(ln Z) by mAIS; nats per point" in result.stdout


def test_exact_and_pcd_exclude_each_other(folder):
    result = run(*BASIC, "--epochs", 1, "--exact", "--pcd", code=1)
    assert "`--exact` and `--pcd` exclude each other" in str(result.exception)


def test_evaluate_says_how(folder):
    exact = float(log_likelihood(RBM.load("small.safetensors"), np.load("spins.npy")))
    words = run("evaluate", "small.safetensors", "spins.npy").stdout
    assert f"log-likelihood: {exact:.2f} +- 0.28 (40 points), ln Z exact, nats per point" in words
    assert "method: exact, because the sum over 2**4 states is affordable (about " in words
    for method in ("mais", "ais", "reverse-ais"):
        options = ("--method", method, "--samples", 400, "--temperatures", 50, "--seed", 1)
        answer = json.loads(run("evaluate", "small.safetensors", "spins.npy", "--json", *options).stdout)
        assert abs(answer["log_likelihood"] - exact) < 5.0 * answer["error"]
        assert answer["method"] == method
        assert answer["trusted"]
        words = run("evaluate", "small.safetensors", "spins.npy", *options).stdout
        assert f"({method}: 400 samples, 50 temperatures, " in words
        assert "effective); trusted: yes" in words
        assert " +- " in words
        assert f"method: {method}, as asked for" in words


def test_evaluate_takes_mais_for_large_machines(folder):
    result = run("evaluate", "large.safetensors", "wide.npy", "--temperatures", 100, "--seed", 1)
    assert "mais: 1000 samples, 100 temperatures" in result.stdout
    assert "method: mais, because the exact sum over 2**50 states would take about " in result.stdout
    assert result.stderr == ""  # no bar where nobody watches
    assert "Do not trust" not in result.stderr


def test_evaluate_says_what_not_to_trust(folder):
    words = ("evaluate", "large.safetensors", "wide.npy", "--temperatures", 5)
    assert "Do not trust this" in run(*words, "--samples", 20).stderr
    answer = json.loads(run(*words, "--samples", 1, "--json").stdout)
    assert answer["error"] is None
    assert not answer["trusted"]


def test_train_prints_the_likelihood_at_chosen_epochs(folder):
    options = ("--epochs", 6, "--learning-rate", 0.01, "--evaluate-at", "0,2,6", "--validation", "spins.npy")
    result = run(*BASIC, *options)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["epoch", "log-likelihood", "validation", "seconds"]
    assert [line[0] for line in lines[1:4]] == ["0", "2", "6"]
    history = load_checkpoint("model.checkpoint.safetensors").history
    assert [line[1] for line in lines[1:4]] == [f"{value:.4f}" for value in history.log_likelihood]
    assert lines[1][2] == lines[1][1]
    assert run(*BASIC, "--epochs", 6, "--evaluate-at", "5", "--force").stdout.startswith("   epoch")
    result = run(*BASIC, "--epochs", 100, "--evaluate-every", 1, "--force")
    assert "12 of 101 measurements; --plot draws them all" in result.stdout


def test_train_says_which_estimates_not_to_trust(folder, monkeypatch):
    def poor(rbm, **options):
        return Estimate(0.0, 0.5, 4.0)

    monkeypatch.setattr("paramagnet.learning.evaluation.estimate_log_partition", poor)
    words = ("train", "wide.npy", "--hidden-units", 50, "--epochs", 2, "--out", "model.safetensors")
    result = run(*words, "--chains", 50, "--steps", 1, "--evaluate-at", "0,2")
    rows = result.stdout.splitlines()[1:3]
    assert all(" +- 0.50 " in row and row.endswith("do not trust") for row in rows)
    assert "Do not trust the log-likelihood at epoch 0, 2: too few effective samples" in result.stderr


def test_effective_samples_follow_from_the_error():
    weights = np.random.default_rng(0).lognormal(size=1000)
    estimate = mean_weight(np.log(weights))
    assert effective_number(estimate.error, 1000) == pytest.approx(estimate.n_effective)


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


def read_image(path):
    from matplotlib.image import imread

    return imread(path)[..., :3]


def test_sample_has_defaults_and_writes_every_kind_of_array(folder):
    for name in ("a.npy", "a.npz", "a.csv"):
        assert "100 exact samples" in run("sample", "small.safetensors", "--out", name, "--seed", 1).stdout
    states = read_data("a.npy")
    assert states.shape == (100, 6)
    assert np.array_equal(states, read_data("a.npz"))
    assert np.array_equal(states, read_data("a.csv"))


def test_sample_draws_images(folder):
    pytest.importorskip("matplotlib")
    RBM(np.zeros((6, 4)), 50.0 * np.array([1, 1, -1, -1, 1, -1]), 0.0).save("image.safetensors")
    options = ("--shape", "2x3", "--n-samples", 5, "--columns", 3)
    result = run("sample", "image.safetensors", "--out", "a.png", *options)
    assert result.stdout == "5 exact samples: a.png\n"
    image = read_image("a.png")
    assert image.shape == (7 * 8, 13 * 8, 3)  # two rows of three images, lines between them, 8 dots a pixel
    assert np.array_equal(image[..., 0], image[..., 1])
    dots = image[4::8, 4::8, 0]
    assert dots[1:3, 1:4].tolist() == [[1, 1, 0], [0, 1, 0]]
    assert np.array_equal(dots[1:3, 1:4], dots[4:6, 5:8])
    assert 0.3 < dots[0, 0] == dots[3, 4] == dots[5, 10] < 0.7  # lines, and the place of a sixth image
    for name in ("a.svg", "a.pdf"):
        run("sample", "image.safetensors", "--out", name, *options)
        assert (folder / name).stat().st_size > 500
    RBM(np.zeros((4, 4)), 0.0, 0.0).save("square.safetensors")
    run("sample", "square.safetensors", "--out", "square.png")
    assert read_image("square.png").shape == (31 * 8, 31 * 8, 3)


def test_sample_completes_what_is_clamped(folder):
    pytest.importorskip("matplotlib")
    weights = np.outer(np.ones(6), [3.0, -3.0])  # all units up, or all down
    RBM(weights, 0.0, 0.0).save("ferromagnet.safetensors")
    (folder / "held.csv").write_text("1,1,1,1,,\n0,0,0,0,,\n")
    words = ("sample", "ferromagnet.safetensors", "--clamp", "held.csv", "--seed", 1, "--out")
    result = run(*words, "a.npy", "--n-samples", 4, "--steps", 50)
    assert "held.csv: 0/1 read as -1/1, spin units." in result.stderr
    assert "8 samples after 50 Gibbs sweeps from random states, 4 for each of 2 clamped rows" in result.stdout
    states = np.load("a.npy")
    assert np.all(states == np.repeat([1, -1], 4)[:, None])
    run(*words, "a.png", "--shape", "2x3", "--steps", 50)
    dots = read_image("a.png")[4::8, 4::8]
    assert dots.shape == (7, 41, 3)  # a row of ten for each row of the file
    assert np.array_equal(dots[1, 1:4], np.ones((3, 3)))
    assert np.ptp(dots[2, 2]) > 0.1  # what is free is in colour
    assert np.array_equal(dots[1:3, 5:8], np.ones((2, 3, 3)))
    assert np.array_equal(dots[4:6, 37:40], np.zeros((2, 3, 3)))


def test_images_say_what_they_need_without_matplotlib(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("sample", "small.safetensors", "--out", "a.png", code=1)
    assert 'pip install ".[plot]"' in str(result.exception)


SAMPLE = ("sample", "small.safetensors", "--out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SAMPLE, "a.txt"), "`--out` must end in one of .npy, .npz, .csv, .fa, .fasta, .png.*got 'a.txt'"),
        ((*SAMPLE, "a.png"), "`--shape` must be given: 6 visible units fill no square.*`--shape 2x3`"),
        ((*SAMPLE, "a.png", "--shape", "6"), "`--shape` must be HEIGHTxWIDTH, for example 28x28, got '6'"),
        ((*SAMPLE, "a.png", "--shape", "2x2"), "`--shape` must have a pixel for each of the 6 .*: 4"),
        ((*SAMPLE, "a.npy", "--shape", "2x3"), "`--shape` and `--columns` are for images"),
        ((*SAMPLE, "a.png", "--shape", "2x3", "--columns", 0), "`--columns` must be a positive integer"),
        ((*SAMPLE, "a.png", "--shape", "2x3", "--n-samples", 10001), "`--n-samples` must give at most 10000"),
        ((*SAMPLE, "a.npy", "--n-samples", 0), "`--n-samples` must be a positive integer, got 0"),
        ((*SAMPLE, "a.npy", "--method", "gibbs", "--steps", -1), "`--steps` must be an integer of"),
        ((*SAMPLE, "a.npy", "--seed", -1), "`--seed` must be None, a non-negative integer"),
        ((*SAMPLE, "a.npy", "--clamp", "wide.npy"), "`--clamp` must have 6 columns.*got 60"),
        ((*SAMPLE, "a.npy", "--clamp", "reals.npy"), "`reals.npy` must hold the values of spin units"),
        ((*SAMPLE, "a.npy", "--clamp", "spins.npy", "--method", "exact"), "`--clamp` needs `--method gibbs`"),
        ((*SAMPLE, "no/a.npy"), "The folder of the file does not exist"),
        (("sample", "large.safetensors", "--out", "a.npy", "--method", "exact"), "Try `--method gibbs`"),
        (("evaluate", "large.safetensors", "wide.npy", "--method", "exact"),
         "`--method` = 'exact' must take .* Try 'mais'"),
        (("evaluate", "large.safetensors", "wide.npy", "--method", "reverse-ais"), "2.*50 states are too"),
        (("evaluate", "small.safetensors", "spins.npy", "--method", "ais", "--samples", 0), "`--samples`"),
        (("evaluate", "small.safetensors", "spins.npy", "--method", "ais", "--temperatures", 0),
         "`--temperatures` must be a positive integer, got 0"),
        ((*BASIC, "--epochs", 2, "--pcd", "--chains", 0), "`--chains` must be a positive integer"),
        ((*BASIC, "--epochs", 2, "--pcd", "--steps", 0), "`--steps` must be a positive integer"),
        ((*BASIC, "--epochs", 2, "--threads", 0), "`--threads` must be a positive integer"),
        ((*BASIC, "--epochs", 2, "--batch-size", 0), "`--batch-size` must be a positive integer"),
        ((*BASIC, "--epochs", 2, "--evaluate-every", 0), "`--evaluate-every` must be a positive integer"),
        ((*BASIC, "--epochs", 2, "--evaluate-at", "1;2"), "`--evaluate-at` must be epochs with commas"),
        (
            (*BASIC, "--epochs", 2, "--evaluate-at", "0,99"),
            "`--evaluate-at` must be epochs from 0 to `--epochs` = 2, got 99.",
        ),
        (
            (*BASIC, "--epochs", 2, "--evaluate-at", "-1"),
            "`--evaluate-at` must be epochs from 0 to `--epochs` = 2, got -1.",
        ),
        ((*BASIC, "--epochs", 2, "--evaluate-at", "1", "--evaluate-every", 1), "exclude each other"),
    ],
)  # fmt: skip
def test_errors_name_the_flag(folder, words, message):
    np.save("reals.npy", np.random.default_rng(0).normal(size=(5, 6)))
    before = set(os.listdir())
    assert re.search(message, str(run(*words, code=1).exception)), run(*words, code=1).exception
    assert set(os.listdir()) == before


def test_names_that_are_no_flags_stay():
    flags = {"n_samples": "--n-samples", "steps": "--steps", "data": "DATA"}
    assert name_flags("`n_samples`, `n_steps` and `data`", flags) == "`--n-samples`, `--steps` and `DATA`"
    assert name_flags("`path` is bad; see `path`, `samples`.", flags) == (
        "The file is bad; see the file, `samples`."
    )
    assert name_flags("`start` and `log_partition(rbm)`", flags) == "`start` and `log_partition(rbm)`"


def test_bars_are_drawn_on_a_terminal_only(folder, monkeypatch):
    from rich import console

    def pretend(self):
        return self.stderr

    assert run("evaluate", "small.safetensors", "spins.npy", "--method", "ais").stderr == ""
    monkeypatch.setattr(console.Console, "is_terminal", property(pretend))
    for words, title in (
        (("evaluate", "small.safetensors", "spins.npy", "--method", "ais"), "ln Z by ais"),
        (("evaluate", "small.safetensors", "spins.npy"), "exact ln Z"),
        ((*SAMPLE, "a.npy", "--method", "gibbs"), "Gibbs sweeps"),
        ((*BASIC, "--epochs", 3), "epoch 3/3"),
    ):
        result = run(*words)
        assert title in result.stderr
        assert "100%" in result.stderr
        assert "%" not in result.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "small.safetensors", "--n-samples", 1, "--out", "a.npy", "--method", "guess"),
        ("evaluate", "small.safetensors", "spins.npy", "--method", "guess"),
    ],
)
def test_unknown_methods_are_refused(folder, words):
    message = str(run(*words, code=1).exception)
    assert message.startswith("`--method` must be ")
    assert "got 'guess'" in message
