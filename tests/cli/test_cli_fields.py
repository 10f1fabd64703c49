"""``paramagnet train`` with gradients and optimizers by name, and their settings as flags."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from own_classes import RestartedChains, RMSprop
from paramagnet.cli import app
from paramagnet.learning.registries import GRADIENTS, OPTIMIZERS

BASIC = ("train", "spins.npy", "--hidden-units", 3, "--out", "model.safetensors", "--seed", 1, "--epochs", 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("spins.npy", np.random.default_rng(0).choice([-1, 1], size=(40, 6)))
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def settings(*words):
    run(*BASIC, "--force", *words)
    return pm.load_checkpoint("model.checkpoint.safetensors").settings


def test_gradients_by_name():
    assert settings("--gradient", "cd")["gradient"] == "CD(n_steps=1)"
    assert settings("--gradient", "cd", "--steps", 3)["gradient"] == "CD(n_steps=3)"
    assert settings("--gradient", "exact")["gradient"] == "Exact"
    words = ("--gradient", "pcd", "--chains", 20, "--steps", 2, "--n-relax", 5)
    assert settings(*words)["gradient"] == "PCD(n_chains=20, n_steps=2, n_relax=5)"
    assert (
        settings("--pcd", "--n-relax=5", "--chains=20", "--steps", 2)["gradient"]
        == settings(*words)["gradient"]
    )


def test_a_gradient_by_name_is_the_one_from_python():
    run(*BASIC, "--gradient", "cd", "--learning-rate", 0.1, "--recipe", "paper")
    rng = np.random.default_rng(1)
    start = pm.initialize(6, 3, rng=rng)
    options = {"epochs": 2, "gradient": pm.CD(), "optimizer": pm.Adam(0.1), "rng": rng}
    expected = pm.train(start, np.load("spins.npy").astype(float), **options).rbm
    np.testing.assert_array_equal(pm.RBM.load("model.safetensors").weights, expected.weights)


def test_settings_of_optimizers_are_flags():
    words = ("--beta1", 0.8, "--epsilon=1e-6", "--learning-rate", 0.001, "--schedule", "constant")
    found = settings(*words)["optimizer"]
    assert found == "Adam(learning_rate=0.001, beta1=0.8, beta2=0.999, epsilon=1e-06)"
    assert settings("--optimizer", "sgd")["optimizer"] == "SGD(learning_rate=0.001, momentum=0.0)"


def test_flags_may_come_before_the_data():
    run("train", "--beta1", 0.8, *BASIC[1:])
    assert "beta1=0.8" in pm.load_checkpoint("model.checkpoint.safetensors").settings["optimizer"]


def test_classes_of_ones_own_by_their_place():
    words = ("--gradient", "own_classes:RestartedChains", "--optimizer", "own_classes:RMSprop", "--period", 4)
    found = settings(*words, "--decay", 0.5, "--steps", 3)
    assert found["gradient"] == "RestartedChains(n_steps=3, period=4)"
    assert found["optimizer"] == "RMSprop(learning_rate=0.01, decay=0.5, epsilon=1e-08)"  # its own rate
    whole = pm.RBM.load("model.safetensors").weights
    run(*BASIC[:-1], 1, "--force", *words, "--decay", 0.5, "--steps", 3)
    run(*BASIC, "--resume", *words, "--decay", 0.5, "--steps", 3)
    np.testing.assert_array_equal(pm.RBM.load("model.safetensors").weights, whole)
    assert settings("--optimizer=own_classes:RMSprop", "--learning-rate", 0.5)["optimizer"].startswith(
        "RMSprop(learning_rate=0.5,"
    )


def test_the_installed_command_finds_a_module_of_the_current_folder(folder):
    (folder / "my_ascent.py").write_text(
        "from dataclasses import dataclass\n"
        "from paramagnet.learning.optimizers import OptimizerState\n"
        "@dataclass(frozen=True)\n"
        "class Signs:\n"
        "    learning_rate: float = 0.1\n"
        "    upward: bool = True\n"
        "    def start(self, size):\n"
        "        return OptimizerState(0, ())\n"
        "    def step(self, state, gradient):\n"
        "        sign = gradient / abs(gradient).clip(1e-12)\n"
        "        return sign if self.upward else -sign, OptimizerState(state.n_steps + 1, ())\n"
    )
    code = "import sys; sys.path.remove(''); from paramagnet.cli import main; main()"
    words = [*map(str, BASIC), "--optimizer", "my_ascent:Signs", "--no-upward", "--exact"]
    run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = pm.load_checkpoint("model.checkpoint.safetensors").settings["optimizer"]
    assert found == "Signs(learning_rate=0.1, upward=False)"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gradient", "cdd"), "`--gradient` must be one of 'exact', 'pcd', 'cd', .*, or .*, got 'cdd'"),
        (("--gradient", "own_classes:RMSprop"), "`--gradient` must name a class derived from `Gradient`"),
        (("--optimizer", "no_module:A"), "`--optimizer` = 'no_module:A' must name a module that can be"),
        (("--gradient", "cd", "--chains", 5), "`--chains` is not a setting of CD; it has n_steps, n_threads"),
        (("--gradient", "cd", "--pcd"), "`--gradient` must be given without `--exact` and `--pcd`"),
        (("--optimizer", "sgd", "--beta1", 0.8), "`--beta1` is not a setting of Exact and SGD"),
        (("--beta1", "much"), "`--beta1` must be a number, got 'much'"),
        (("--beta1", 2), "`--beta1` must be at least 0 and below 1, got 2.0"),
        (("--n-relax", 5), "`--n-relax` is not a setting of Exact and Adam"),
        (("--n-relax",), "`--n-relax` must be followed by a value"),
        (("--optimizer", "own_classes:RMSprop", "--momentum", 0.5), "`--momentum` is not a .* RMSprop"),
        (("--momentum", 0.5), "`--momentum` is for `--optimizer sgd`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(words, message):
    found = str(run(*BASIC, *words, code=1).exception)
    assert re.match(message, found), found


def test_an_unknown_flag_is_refused_as_ever():
    result = run(*BASIC, "--epoch", 3, code=2)
    assert "--epoch" in result.output


def test_help_names_the_settings_and_loads_no_kernels():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from paramagnet.cli import app\n"
        "print(CliRunner().invoke(app, ['train', '--help'], env={'COLUMNS': '200'}).output)\n"
        "assert 'numba' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    text = re.sub(r"\s+", " ", run.stdout)
    named = {"n_chains": "--chains", "n_steps": "--steps", "n_threads": "--threads", "force": "--exact"}
    for registry in (GRADIENTS, OPTIMIZERS):
        for name in registry.names:
            for field in dataclasses.fields(registry.find(name, "name")):
                assert named.get(field.name, "--" + field.name.replace("_", "-")) in text


def test_own_classes_are_what_the_tests_think():
    assert RestartedChains(period=4).n_steps == 2
    assert RMSprop().learning_rate == 0.01
