"""Tempering on the command line: `sample --method tempering` and `train --gradient tempering`."""

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.cli.sample_command import _ACCEPTANCE
from paramagnet.learning.state import load_checkpoint
from paramagnet.rbm import RBM
from paramagnet.sampling.tempering import ACCEPTANCE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("spins.npy", rng.choice([-1, 1], size=(40, 6)))
    machine = RBM(0.5 * rng.normal(size=(6, 4)), 0.1, 0.0)
    machine.save("machine.safetensors")
    RBM(0.5 * machine.weights, 0.0, 0.0).save("early.safetensors")
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


SAMPLE = ("sample", "machine.safetensors", "--n-samples", 30, "--steps", 20, "--seed", 1, "--out", "a.npy")
TRAIN = (
    "train", "spins.npy", "--hidden-units", 3, "--seed", 1, "--batch-size", 20, "--learning-rate", 0.001,
    "--schedule", "constant",
)  # fmt: skip


def test_sample_by_tempering(folder):
    words = (*SAMPLE, "--method", "tempering", "--base", "spins.npy")
    text = run(*words).stdout
    assert text.startswith("30 samples after 20 rounds of tempering (")
    assert "replicas, swaps accepted 0." in text
    machine = RBM.load("machine.safetensors")
    base = np.load("spins.npy").astype(float)
    expected = pm.sample(machine, 30, n_steps=20, method="tempering", base=base, rng=1)
    assert np.array_equal(np.load("a.npy"), expected)
    run(*words[:-2], "--path", "energy")
    assert np.array_equal(
        np.load("a.npy"), pm.sample(machine, 30, n_steps=20, method="tempering", path="energy", rng=1)
    )


def test_sample_by_trajectory_takes_machines_and_checkpoints(folder):
    machine, early = RBM.load("machine.safetensors"), RBM.load("early.safetensors")
    pm.train(machine, np.load("spins.npy").astype(float), epochs=1, rng=0, checkpoint="b.checkpoint")
    words = ("--method", "trajectory", "--trajectory", "early.safetensors", "--trajectory", "b.checkpoint")
    run(*SAMPLE, *words)
    machines = [early, load_checkpoint("b.checkpoint").rbm]
    expected = pm.sample(machine, 30, n_steps=20, method="trajectory", trajectory=machines, rng=1)
    assert np.array_equal(np.load("a.npy"), expected)


def test_sample_with_a_number_of_replicas_and_an_acceptance(folder):
    machine, early = RBM.load("machine.safetensors"), RBM.load("early.safetensors")
    common = {"n_steps": 20, "rng": 1}
    text = run(*SAMPLE, "--method", "tempering", "--n-replicas", 4, "--acceptance", 0.6).stdout
    assert "(4 replicas, " in text
    expected = pm.sample(machine, 30, method="tempering", n_replicas=4, acceptance=0.6, **common)
    assert np.array_equal(np.load("a.npy"), expected)
    run(*SAMPLE, "--method", "tempering", "--n-replicas", "auto", "--acceptance", 0.9)
    expected = pm.sample(machine, 30, method="tempering", acceptance=0.9, **common)
    assert np.array_equal(np.load("a.npy"), expected)
    run(*SAMPLE, "--method", "trajectory", "--trajectory", "early.safetensors", "--acceptance", 0.9)
    expected = pm.sample(machine, 30, method="trajectory", trajectory=[early], acceptance=0.9, **common)
    assert np.array_equal(np.load("a.npy"), expected)
    assert _ACCEPTANCE == ACCEPTANCE


def test_train_by_tempering_and_resume(folder):
    words = (*TRAIN, "--gradient", "tempering", "--chains", 20, "--n-relax", 8, "--acceptance", 0.4)
    result = run(*words, "--epochs", 4, "--out", "whole.safetensors")
    assert (
        "gradients: Tempering(n_chains=20, n_steps=1, path='weights', n_replicas='auto', acceptance=0.4, "
        "n_relax=8)"
    ) in result.stderr
    run(*words, "--epochs", 2, "--out", "half.safetensors")
    run(*words, "--epochs", 4, "--out", "half.safetensors", "--resume")
    whole, half = RBM.load("whole.safetensors"), RBM.load("half.safetensors")
    assert np.array_equal(whole.weights, half.weights)
    result = run(*words, "--epochs", 1, "--n-replicas", 3, "--path=energy", "--out", "c.safetensors")
    assert "path='energy', n_replicas=3" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SAMPLE, "--method", "trajectory"), "`--trajectory` must be given"),
        ((*SAMPLE, "--trajectory", "early.safetensors"), "`--trajectory` needs `--method trajectory`"),
        ((*SAMPLE, "--base", "spins.npy"), "`--base` needs `--method tempering`"),
        ((*SAMPLE, "--method", "gibbs", "--path", "energy"), "`--path` needs `--method tempering`"),
        (
            (*SAMPLE, "--method", "tempering", "--path", "x"),
            "`--path` must be 'weights' or 'energy', got 'x'",
        ),
        ((*SAMPLE, "--n-replicas", 3), "`--n-replicas` needs `--method tempering`, got 'auto'"),
        ((*SAMPLE, "--acceptance", 0.4), "`--acceptance` needs `--method tempering`"),
        (
            (*SAMPLE, "--method", "trajectory", "--trajectory", "early.safetensors", "--n-replicas", 3),
            "`--n-replicas` needs `--method tempering`, got 'trajectory'",
        ),
        (
            (*SAMPLE, "--method", "tempering", "--n-replicas", 1),
            "`--n-replicas` must be an integer of at least 2, got 1",
        ),
        (
            (*SAMPLE, "--method", "tempering", "--n-replicas", "many"),
            "`--n-replicas` must be 'auto' or an integer of at least 2, got 'many'",
        ),
        (
            (*SAMPLE, "--method", "tempering", "--acceptance", 1),
            "`--acceptance` must lie between 0 and 1, both excluded, got 1",
        ),
        ((*SAMPLE, "--method", "trajectory", "--trajectory", "no.safetensors"), "The file does not exist"),
        (
            (*TRAIN, "--epochs", 1, "--out", "d.safetensors", "--gradient", "tempering", "--path", "x"),
            "`--path` must be 'weights' or 'energy', got 'x'",
        ),
        (
            (*TRAIN, "--epochs", 1, "--out", "d.safetensors", "--gradient", "tempering", "--n-replicas", 1),
            "`--n-replicas` must be an integer of at least 2, got 1",
        ),
    ],
)
def test_errors(folder, words, message):
    result = run(*words, code=1)
    assert message in str(result.exception)
