"""``paramagnet diagnose``: text, JSON, figure, checkpoints, errors."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.cli.console import wrap


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A healthy machine and one with idle units, with points drawn from them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    weights = rng.normal(0.0, 0.25, (10, 6))
    healthy = pm.RBM(weights, 0.2, 0.0)
    healthy.save("healthy.safetensors")
    np.save("points.npy", pm.sample_exact(healthy, 400, rng=1))
    weights = weights.copy()
    weights[:, :3] = 0.0
    pm.RBM(weights, 0.2, 0.0).save("idle.safetensors")
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, ["diagnose", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


SHORT = ("--chains", 200, "--steps", 200, "--seed", 1)


def test_text(folder):
    text = run("healthy.safetensors", "points.npy", *SHORT).stdout
    assert text.endswith("\nNothing is wrong.\n")
    lines = text.splitlines()[:-2]
    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0] for line in lines] == [
        "log-likelihood, data",
        "independent units, data",
        "idle hidden units",
        "effective hidden units",
        "mirrored chains",
        "sweeps per independent state",
        "means off the data",
        "covariances off the data",
        "nearest training point",
    ]
    text = run("idle.safetensors", "points.npy", *SHORT, "--validation", "points.npy").stdout
    assert "log-likelihood, held out" in text
    assert "\n3 of 6 hidden units are idle (nearly constant on the data, " in text
    assert "\nRemedy: train with `--centred`, " in text
    assert all(len(line) <= 80 for line in wrap(text, 80).splitlines())


def test_json(folder):
    record = json.loads(run("idle.safetensors", "points.npy", *SHORT, "--json", "--no-likelihood").stdout)
    assert record["idle_hidden"] == [0, 1, 2]
    assert "idle" in {finding["name"] for finding in record["findings"]}
    assert record["log_likelihood"] is None
    assert record["n_samples"] == 200


def test_checkpoint_gives_its_chains(folder):
    data = np.load("points.npy")
    gradient = pm.PCD(n_chains=30, n_steps=1)
    state = pm.train(
        pm.initialize(10, 3, rng=0), data, epochs=1, gradient=gradient, batch_size=100, rng=1
    ).state
    state.save("run.checkpoint.safetensors")
    record = json.loads(run("run.checkpoint.safetensors", "points.npy", "--steps", 40, "--json").stdout)
    assert record["n_samples"] == 30


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figure(folder, suffix):
    pytest.importorskip("matplotlib")
    run("healthy.safetensors", "points.npy", *SHORT, "--figure", f"a.{suffix}")
    assert (folder / f"a.{suffix}").stat().st_size > 10_000


def test_figure_of_what_is_not_defined():
    pytest.importorskip("matplotlib")
    from paramagnet.diagnosis_plot import plot_diagnosis

    none = np.zeros(0)
    figure = plot_diagnosis(
        variation=np.zeros(3),
        idle=np.ones(3, bool),
        overlaps=(none, none),
        autocorrelation=(np.arange(6.0), np.zeros(6)),
        time=(1.0, np.inf),
        means=(np.zeros(4), np.zeros(4)),
        covariances=(none, none),
        distances=(np.zeros(5), np.zeros(5)),
    )
    figure.canvas.draw()
    assert len(figure.axes) == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--chains", 5), "`--chains` must be an integer of at least 10, got 5"),
        (("--steps", 5), "`--steps` must be an integer of at least 20, got 5"),
        (("--figure", "a.gif"), "must end in .png, .svg, .pdf"),
        (("--validation", "none.npy"), "none.npy"),
    ],
)
def test_bad_words(folder, words, message):
    result = run("healthy.safetensors", "points.npy", *words, code=1)
    assert message in str(result.exception)


def test_weights(folder):
    """Points that were selected, and weights that undo it."""
    points = np.load("points.npy")
    up = points[:, 2] > 0.0
    kept = up | (np.arange(400) % 5 == 0)
    np.save("selected.npy", points[kept])
    np.savetxt("weights.csv", np.where(up, 0.2, 1.0)[kept])
    words = ("healthy.safetensors", "selected.npy", "--chains", 1000, *SHORT[2:], "--json")
    weighed = json.loads(run(*words, "--sample-weight", "weights.csv").stdout)
    assert weighed["healthy"]
    assert "means" in {finding["name"] for finding in json.loads(run(*words).stdout)["findings"]}
    machine, weights = pm.RBM.load("healthy.safetensors"), np.loadtxt("weights.csv")
    wanted = pm.log_likelihood(machine, points[kept], sample_weight=weights).value
    assert weighed["log_likelihood"]["value"] == pytest.approx(wanted, abs=1e-12)
    more = ("--validation", "selected.npy", "--validation-weight", "weights.csv")
    record = json.loads(run(*words, *more).stdout)
    assert record["validation_log_likelihood"]["value"] == pytest.approx(wanted, abs=1e-12)
    result = run(*words, "--reweight", 0.8, code=1)
    assert "`--reweight` is for sequences" in str(result.exception)
    np.savetxt("short.csv", weights[1:])
    result = run(*words, "--sample-weight", "short.csv", code=1)
    assert "must hold one number for each of the" in str(result.exception)
