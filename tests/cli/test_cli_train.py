"""The commands train, evaluate and sample: what they write, what they say, what they refuse."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet
from paramagnet.cli import app
from paramagnet.cli.points_source import _split
from paramagnet.cli.training_run import how_to_resume
from paramagnet.data.files import read_data
from paramagnet.learning.likelihood import log_likelihood
from paramagnet.learning.recipe import RATE_EXACT, RATE_SAMPLED
from paramagnet.learning.state import load_checkpoint
from paramagnet.rbm import RBM


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spins = np.random.default_rng(0).choice([-1, 1], size=(40, 6))
    np.save("spins.npy", spins)
    np.save("held_out.npy", spins[:10])
    np.savetxt("bits.csv", (spins + 1) // 2, fmt="%d", delimiter=",", header="a,b,c,d,e,f", comments="")
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


BASIC = ("train", "spins.npy", "--hidden-units", 3, "--epochs", 5, "--out", "model.safetensors", "--seed", 1)


def test_the_table_has_the_digits_of_the_closing_line(folder):
    """Where ln Z is estimated; 2,000 points of units that agree, so that the error of the mean is small."""
    rng = np.random.default_rng(1)
    np.save("wide.npy", rng.choice([-1, 1], size=(2000, 1)) * np.where(rng.random((2000, 40)) < 0.9, 1, -1))
    text = run("train", "wide.npy", "--hidden-units", 40, "--epochs", 2, "--pcd", "--seed", 1).stdout
    rows = re.findall(r"^ +\d+ +-\d+\.(\d+) \+- 0\.(\d+) ", text, flags=re.M)
    (closing,) = re.findall(r"epochs: -\d+\.(\d+) \+- 0\.(\d+) \(2000 points\) \+- 0\.(\d+) \(ln Z\)", text)
    assert len(rows) == 3
    assert {len(digits) for found in (*rows, closing) for digits in found} == {len(closing[0])}


def test_train_writes_a_machine_that_evaluate_reads(folder):
    result = run(*BASIC, "--learning-rate", 0.01, "--validation", "held_out.npy")
    assert "log-likelihood after 5 epochs:" in result.stdout
    assert "validation" in result.stdout
    rbm = RBM.load("model.safetensors")
    assert (rbm.n_visible, rbm.n_hidden, rbm.visible.name, rbm.hidden.name) == (6, 3, "spin", "bit")
    answer = json.loads(run("evaluate", "model.safetensors", "spins.npy", "--json").stdout)
    exact = float(log_likelihood(rbm, np.load("spins.npy")))
    assert answer["log_likelihood"] == pytest.approx(exact, abs=1e-12)
    assert (answer["error"], answer["n_points"]) == (0.0, 40)
    words = run("evaluate", "model.safetensors", "spins.npy").stdout
    assert f"log-likelihood: {exact:.3f} +- 0.047 (40 points), ln Z exact, nats per point" in words
    assert f"{exact:.4f}" in result.stdout


def test_options_reach_the_library(folder):
    run(
        *BASIC, "--visible", "bit", "--hidden", "spin", "--hidden-bias", -0.5, "--gain", 0.25, "--exact",
        "--threads", 2, "--optimizer", "sgd", "--momentum", 0.5, "--batch-size", 7, "--weight-decay", 0.01,
        "--scheme", "xavier",
    )  # fmt: skip
    state = load_checkpoint("model.checkpoint.safetensors")
    assert state.settings["optimizer"] == "SGD(learning_rate=0.001, momentum=0.5)"
    assert (state.settings["batch_size"], state.settings["weight_decay"]) == ("7", "0.01")
    assert state.update == 5 * 6
    rbm = RBM.load("model.safetensors")
    assert (rbm.visible.name, rbm.hidden.name) == ("bit", "spin")
    assert rbm.hidden_bias == pytest.approx([-0.5] * 3, abs=0.05)
    assert np.sqrt(np.mean(rbm.weights**2)) < 0.3


def test_centred_learning(folder):
    start = ("--visible-bias", "data", "--scheme", "centred", "--centred")
    run(*BASIC, *start)
    path = "model.checkpoint.safetensors"
    assert load_checkpoint(path).settings["centred"] == "Centring(rate=0.1, factor=None)"
    run(*BASIC[:5], 8, *BASIC[6:], "--resume", "--centred")
    assert load_checkpoint(path).epoch == 8
    with pytest.raises(ValueError, match=r"`--centred` must be that of the run to go on with, Centring\("):
        run(*BASIC[:5], 9, *BASIC[6:], "--resume", "--no-centred")


def test_weights_of_points(folder):
    counts = np.arange(40) % 4
    np.save("weights.npy", counts)
    np.savetxt("weights.csv", counts, fmt="%d")
    np.savetxt("named.csv", counts[:10] + 1, fmt="%d", header="weight", comments="")
    np.save("again.npy", np.repeat(np.load("spins.npy"), counts, axis=0))
    options = ("--exact", "--visible-bias", "data", "--centred", "--force")
    machines = []
    for words in (("--sample-weight", "weights.npy"), ("--sample-weight", "weights.csv"), ()):
        file = "spins.npy" if words else "again.npy"
        run("train", file, *BASIC[2:], *options, *words)
        machines.append(RBM.load("model.safetensors").weights)
    np.testing.assert_array_equal(machines[0], machines[1])
    np.testing.assert_allclose(machines[0], machines[2], atol=1e-12)
    validation = ("--validation", "held_out.npy", "--validation-weight", "named.csv")
    run(*BASIC, *options, "--sample-weight", "weights.npy", *validation)
    state = load_checkpoint("model.checkpoint.safetensors")
    wanted = log_likelihood(state.rbm, np.load("held_out.npy"), sample_weight=counts[:10] + 1)
    assert state.records[-1].validation == pytest.approx(wanted.value, abs=1e-12)
    more = (*BASIC[:5], 8, *BASIC[6:], "--exact", "--visible-bias", "data", "--centred", "--resume")
    run(*more, "--sample-weight", "weights.csv")
    with pytest.raises(ValueError, match="`--sample-weight` must be that of the run to go on with"):
        run(*more)
    with pytest.raises(
        ValueError, match="must hold one column, the weight of each point, got an array of shape"
    ):
        run(*BASIC, *options, "--sample-weight", "spins.npy")
    with pytest.raises(ValueError, match="`--sample-weight` must hold one number for each of the 40 points"):
        run(*BASIC, *options, "--sample-weight", "named.csv")
    with pytest.raises(
        ValueError, match="`--validation-weight` must be left out where `--validation` is None"
    ):
        run(*BASIC, *options, "--validation-weight", "named.csv")


def test_weights_of_the_rows_of_a_file_that_is_divided(folder):
    """A weight for each row of the file: of those that are learned, and of those that are held out."""
    weights, points = 1.0 + np.arange(40.0), np.load("spins.npy")
    np.savetxt("weights.csv", weights)
    words = (*BASIC, "--exact", "--force", "--held-out", 0.25, "--sample-weight", "weights.csv")
    run(*words)
    state = load_checkpoint("model.checkpoint.safetensors")
    learned, others = _split(40, 0.25, 1)
    found = state.records[-1]
    wanted = log_likelihood(state.rbm, points[learned], sample_weight=weights[learned]).value
    assert found.log_likelihood == pytest.approx(wanted, abs=1e-12)
    held_out = log_likelihood(state.rbm, points[others], sample_weight=weights[others]).value
    assert found.validation == pytest.approx(held_out, abs=1e-12)
    measure = ("evaluate", "model.safetensors", "spins.npy", "--json", "--sample-weight", "weights.csv")
    wanted = log_likelihood(state.rbm, points, sample_weight=weights).value
    assert json.loads(run(*measure).stdout)["log_likelihood"] == pytest.approx(wanted, abs=1e-9)
    told = json.loads(run(*measure, "--held-out").stdout)["log_likelihood"]
    assert told == pytest.approx(held_out, abs=1e-9)
    np.savetxt("one.csv", np.where(np.arange(40) == 5, 1e20, 1.0))  # the error of one point is not known
    assert json.loads(run(*measure[:-1], "one.csv").stdout)["points_error"] is None
    assert "unknown (40 points)" in run(*measure[:3], *measure[4:-1], "one.csv").stdout
    np.savetxt("learned.csv", weights[learned])  # for the points to learn alone
    run(*words[:-1], "learned.csv")
    np.testing.assert_array_equal(RBM.load("model.safetensors").weights, state.rbm.weights)
    np.savetxt("short.csv", weights[:20])
    with pytest.raises(ValueError, match="one number for each of the 40 rows of `DATA`, got 20"):
        run(*words[:-1], "short.csv")


def test_penalties(folder):
    run(*BASIC, "--l1", 0.1, "--l1-group", 0.2, "--clip", 3)
    settings = load_checkpoint("model.checkpoint.safetensors").settings
    assert [settings[name] for name in ("l1", "l1_group", "clip")] == ["0.1", "0.2", "3.0"]
    with pytest.raises(ValueError, match="`--l1` must be that of the run to go on with"):
        run(*BASIC, "--l1-group", 0.2, "--clip", 3, "--resume")
    for flag, rule in (
        ("--l1", "zero or positive"),
        ("--l1-group", "zero or positive"),
        ("--clip", "positive"),
    ):
        with pytest.raises(ValueError, match=f"`{flag}` must be {rule}, got -1"):
            run(*BASIC, flag, -1, "--force")


def test_seeds_repeat_a_run(folder):
    machines = []
    for seed in (1, 1, 2):
        run(*BASIC[:-1], seed, "--batch-size", 7, "--force")
        machines.append(RBM.load("model.safetensors").weights)
    assert np.array_equal(machines[0], machines[1])
    assert not np.array_equal(machines[0], machines[2])


def test_bits_given_to_spins_are_converted_with_a_word(folder):
    run(*BASIC)
    spins = RBM.load("model.safetensors").weights
    result = run("train", "bits.csv", *BASIC[2:], "--force")
    assert "bits.csv: 0/1 read as -1/1, spin units." in result.stderr
    assert np.array_equal(RBM.load("model.safetensors").weights, spins)
    result = run("evaluate", "model.safetensors", "bits.csv", "--json")
    assert json.loads(result.stdout)["n_points"] == 40
    result = run(*BASIC, "--visible", "bit", "--scheme", "xavier", "--force")
    assert "spins.npy: -1/1 read as 0/1, bit units." in result.stderr


def test_a_label_column_is_left_out_aloud(folder):
    (folder / "named.csv").write_text("a,b,class\n1,-1,yes\n-1,1,no\n1,1,yes\n-1,-1,no\n")
    result = run("train", "named.csv", "--hidden-units", 2, "--epochs", 1, "--out", "named.safetensors")
    assert "named.csv: class (column 3) holds labels and is left out; `--no-label` keeps it." in result.stderr
    assert RBM.load("named.safetensors").n_visible == 2


def test_sample_writes_exact_samples(folder):
    run(*BASIC)
    for name in ("samples.npy", "samples.csv"):
        result = run("sample", "model.safetensors", "--n-samples", 25, "--out", name, "--seed", 3)
        assert f"25 exact samples: {name}" in result.stdout
        assert read_data(name).shape == (25, 6)
    assert np.array_equal(read_data("samples.npy"), read_data("samples.csv"))
    assert set(np.unique(read_data("samples.npy"))) == {-1.0, 1.0}


def test_training_further_equals_training_at_once(folder):
    options = ("--batch-size", 7, "--seed", 1, "--hidden-units", 3, "--schedule", "constant")
    run("train", "spins.npy", *options, "--epochs", 6, "--out", "once.safetensors")
    run("train", "spins.npy", *options, "--epochs", 2, "--out", "twice.safetensors")
    run("train", "spins.npy", *options, "--epochs", 6, "--out", "twice.safetensors", "--resume")
    assert np.array_equal(RBM.load("once.safetensors").weights, RBM.load("twice.safetensors").weights)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_does(number, folder):
    words = ["train", "spins.npy", "--hidden-units", "3", "--epochs", "1000000", "--seed", "1"]
    words += ["--schedule", "constant"]
    environment = {**os.environ, "PYTHONPATH": str(Path(paramagnet.__file__).parents[1])}
    # What runs in the background may have been told to ignore the keyboard, and would tell its children.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}\nfrom paramagnet.cli import main; main()"
    command = [sys.executable, "-c", code, *words, "--out", "model.safetensors"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            for _ in range(600):  # the checkpoint of the start says that training is under way
                if (folder / "model.checkpoint.safetensors").exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            time.sleep(0.3)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + number, said
    assert "Interrupted after" in said
    assert "Go on with: paramagnet train spins.npy --hidden-units 3" in said
    assert "--epochs 1000000 --seed 1 --schedule constant --out model.safetensors --resume" in said
    assert "Traceback" not in said
    state = load_checkpoint("model.checkpoint.safetensors")
    assert state.epoch > 0
    assert not (folder / "model.safetensors").exists()
    epochs = state.epoch + 5
    options = ("--hidden-units", 3, "--epochs", epochs, "--seed", 1, "--schedule", "constant", "--out")
    run("train", "spins.npy", *options, "model.safetensors", "--resume")
    run("train", "spins.npy", *options, "whole.safetensors")
    assert np.array_equal(RBM.load("model.safetensors").weights, RBM.load("whole.safetensors").weights)


def test_machines_and_checkpoints_are_not_overwritten_unasked(folder):
    run(*BASIC)
    model, checkpoint = folder / "model.safetensors", folder / "model.checkpoint.safetensors"
    former = {path: path.read_bytes() for path in (model, checkpoint)}
    with pytest.raises(FileExistsError, match=r"`--out` must be a new file, 'model\.safetensors' exists"):
        run("train", "no such data", *BASIC[2:])  # before the data are read
    assert all(path.read_bytes() == content for path, content in former.items())
    model.unlink()
    words = r"'model\.checkpoint\.safetensors' holds an unfinished run: .*`--resume`, or .*`--force`"
    with pytest.raises(FileExistsError, match=words):
        run(*BASIC)
    assert checkpoint.read_bytes() == former[checkpoint]
    run(*BASIC[:-1], 2, "--force")
    assert model.read_bytes() != former[model]
    run(*BASIC, "--force")
    assert model.read_bytes() == former[model]


def test_data_are_never_overwritten(folder):
    options = (*BASIC[2:7], "held_out.npy", "--force")
    for words in (("spins.npy", *options, "--validation", "held_out.npy"), ("held_out.npy", *options)):
        with pytest.raises(ValueError, match=r"`--out` must not be the (data|validation) file"):
            run("train", *words)


def test_the_command_to_go_on_with_does_not_force(monkeypatch):
    monkeypatch.setattr("sys.argv", ["paramagnet", "train", "a b.npy", "--force", "--resume"])
    state = SimpleNamespace(epoch=3, update=9)
    words = how_to_resume(state, Path("m.checkpoint.safetensors"))
    assert words.endswith("Go on with: paramagnet train 'a b.npy' --resume")


def test_a_learning_curve_is_drawn(folder):
    pytest.importorskip("matplotlib")
    pytest.importorskip("paramagnet.plots")
    result = run(*BASIC, "--plot", "curve.png", "--validation", "held_out.npy")
    assert "learning curve: curve.png" in result.stdout
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*BASIC, "--out", "nowhere/model.safetensors"), "folder of the file does not exist.*nowhere"),
        ((*BASIC, "--out", "taken"), "The file must be a regular file or a new name, got 'taken'"),
        ((*BASIC, "--plot", "nowhere/curve.png"), "The folder 'nowhere' does not exist"),
        ((*BASIC, "--plot", "curve.xls"), r"must end in \.png, \.svg, \.pdf"),
        ((*BASIC, "--resume"), "There is no checkpoint to go on from: model.checkpoint.safetensors"),
        ((*BASIC, "--optimizer", "lbfgs"), "`--optimizer` must be one of 'adam', 'sgd', or .*, got 'lbfgs'"),
        ((*BASIC, "--visible", "qubit"), "`--visible` must be a unit type"),
        ((*BASIC, "--hidden-units", 0), "`--hidden-units` must be a positive integer, got 0"),
        ((*BASIC, "--scheme", "magic"), "`--scheme` must be one of"),
        (
            (*BASIC, "--validation", "nothing.npy"),
            "`--validation` must be a file, or .*; there is no 'nothing.npy'",
        ),
        (
            ("train", "reals.npy", *BASIC[2:]),
            "`reals.npy` must hold the values of spin units.*Binarize.*paramagnet data binarize",
        ),
        (("train", "nothing.csv", *BASIC[2:]), "`DATA` must be a file, or .*; there is no 'nothing.csv'"),
        (("evaluate", "spins.npy", "spins.npy"), "not a safetensors file"),
        (("evaluate", "other.safetensors", "spins.npy"), "`DATA` must have 2 columns"),
        (
            ("sample", "other.safetensors", "--n-samples", 3, "--out", "a.txt"),
            "`--out` must end in one of .npy, .npz, .csv, .fa, .fasta, .png",
        ),
        (
            ("sample", "other.safetensors", "--n-samples", 0, "--out", "a.npy"),
            "`--n-samples` must be a positive",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_training(folder, words, message):
    np.save("reals.npy", np.random.default_rng(0).normal(size=(5, 6)))
    RBM(np.zeros((2, 2)), 0, 0).save("other.safetensors")
    os.mkdir("taken")
    before = set(os.listdir())
    with pytest.raises((ValueError, OSError), match=message):
        run(*words)
    assert set(os.listdir()) == before


def test_a_run_that_diverges_says_so_and_where_it_stopped(folder):
    with pytest.raises(ValueError, match=r"Training diverged.*last finite state is in model\.checkpoint"):
        run(*BASIC, "--optimizer", "sgd", "--learning-rate", 1e120)
    assert load_checkpoint("model.checkpoint.safetensors").update == 0


def test_errors_are_one_line_and_help_loads_no_kernels(folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(paramagnet.__file__).parents[1])}
    command = [sys.executable, "-m", "paramagnet", "evaluate", "nothing.safetensors", "spins.npy"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "paramagnet: The file does not exist: nothing.safetensors.\n"
    code = "import sys, paramagnet.cli; print({'numba', 'matplotlib', 'safetensors'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert result.stdout == "set()\n"


def test_resuming_with_another_machine_is_refused(folder):
    run(*BASIC)
    with pytest.raises(ValueError, match="needs the options of the earlier run: --hidden-units 3"):
        run(*BASIC, "--hidden-units", 4, "--resume")
    with pytest.raises(ValueError, match="`--optimizer` must be that of the run to go on with"):
        run(*BASIC, "--learning-rate", 0.5, "--resume")


def test_the_recommended_recipe_is_what_nobody_asked_for(folder):
    """The machine equals that of the library with the same settings, to the last bit."""
    result = run(*BASIC)
    rbm, default = RBM.load("model.safetensors"), load_checkpoint("model.checkpoint.safetensors")
    rate = (
        f"learning_rate=Schedule(kind='linear', rate={RATE_EXACT!r}, end={0.02 * RATE_EXACT!r}, n_updates=5)"
    )
    assert rate in default.settings["optimizer"]
    assert default.settings["centred"] == "Centring(rate=0.1, factor=None)"
    points, rng = np.load("spins.npy").astype(float), np.random.default_rng(1)
    start = paramagnet.initialize(6, 3, scheme="recommended", data=points, rng=rng)
    optimizer = paramagnet.Adam(f"linear({RATE_EXACT})")
    same = paramagnet.train(start, points, epochs=5, optimizer=optimizer, centred=True, rng=rng)
    assert np.array_equal(same.rbm.weights, rbm.weights)
    assert "chosen by the recipe recommended:" in result.stderr
    assert "--exact: exact, a sum over all states takes less than" in result.stderr
    assert "--hidden-units" not in result.stderr
    assert "--epochs" not in result.stderr
    with pytest.raises(ValueError, match="`--recipe` must be 'recommended' or 'paper', got 'best'"):
        run(*BASIC, "--force", "--recipe", "best")


def test_the_papers_recipe_is_one_option_away(folder):
    """Adam's first step at the paper's rate moves every weight of the paper's start by that much."""
    result = run(*BASIC[:5], 1, *BASIC[6:], "--recipe", "paper")
    rbm, default = RBM.load("model.safetensors"), load_checkpoint("model.checkpoint.safetensors")
    assert default.settings["optimizer"].startswith("Adam(learning_rate=0.01,")
    assert "centred" not in default.settings
    assert "chosen by the recipe paper:" in result.stderr
    start = paramagnet.initialize(6, 3, rng=np.random.default_rng(1))
    assert np.abs(rbm.weights - start.weights) == pytest.approx(np.full((6, 3), 0.01), rel=1e-3)
    points = np.load("spins.npy").astype(float)
    same = paramagnet.train(start, points, epochs=1, rng=0, optimizer=paramagnet.Adam(0.01))
    assert np.array_equal(same.rbm.weights, rbm.weights)
    *_, last = paramagnet.training_steps(start, points, epochs=1, rng=0)  # the library's own default
    assert np.abs(last.rbm.weights - start.weights) == pytest.approx(np.full((6, 3), 0.001), rel=1e-3)


def test_what_is_given_is_not_chosen(folder):
    """A start that is named has no biases from data unless they are asked for, or unless it needs them."""
    for words, from_data in (
        ((), True),
        (("--gain", 0.0), True),
        (("--scheme", "xavier", "--gain", 0.0), False),
        (("--scheme", "xavier", "--gain", 0.0, "--visible-bias", "data"), True),
        (("--scheme", "centred", "--gain", 0.0), True),
        (("--recipe", "paper", "--gain", 0.0), False),
    ):
        run(*BASIC[:5], 0, *BASIC[6:], "--force", *words)
        assert RBM.load("model.safetensors").visible_bias.any() == from_data, words
    run(*BASIC, "--force", "--pcd", "--recipe", "paper", "--chains", 7, "--n-relax", 3)
    gradient = load_checkpoint("model.checkpoint.safetensors").settings["gradient"]
    assert "n_chains=7, n_steps=40, n_relax=3" in gradient
    run(*BASIC, "--force", "--gradient", "cd")
    assert load_checkpoint("model.checkpoint.safetensors").settings["gradient"].startswith("CD(")


SAMPLED = (*BASIC, "--pcd", "--chains", 10, "--steps", 1, "--n-relax", 5)


def test_the_header_names_the_level_of_independent_units(folder):
    result = run(*BASIC, "--validation", "held_out.npy")
    level = paramagnet.independent_log_likelihood(np.load("spins.npy"))
    assert f"independent units: {level:.4f} nats per point, validation " in result.stderr


def test_the_last_line_has_the_error_of_the_points(folder):
    shown = run(*BASIC, "--validation", "held_out.npy").stdout
    rbm = RBM.load("model.safetensors")
    for words, file in (("epochs: ", "spins.npy"), ("validation ", "held_out.npy")):
        assert f"{words}{paramagnet.log_likelihood(rbm, np.load(file))!r}" in " ".join(shown.split())
    earlier = run(*BASIC, "--evaluate-at", "0,2", "--force").stdout  # the machine of epoch 2 is not kept
    assert re.search(r"log-likelihood after 2 epochs: -\d\.\d{4}; nats per point", earlier)


def test_the_flags_of_the_trainer_reach_the_library(folder):
    run(
        *SAMPLED,
        "--batch-size",
        10,
        "--schedule",
        "cosine(end=0.0001)",
        "--learning-rate",
        0.01,
        "--no-guard",
    )
    state = load_checkpoint("model.checkpoint.safetensors")
    assert "Schedule(kind='cosine', rate=0.01, end=0.0001, n_updates=20)" in state.settings["optimizer"]
    assert "guard" not in state.settings
    run(*SAMPLED, "--batch-size", 10, "--force")
    state = load_checkpoint("model.checkpoint.safetensors")
    assert (
        f"Schedule(kind='linear', rate={RATE_SAMPLED!r}, end={0.02 * RATE_SAMPLED!r}, n_updates=20)"
        in state.settings["optimizer"]
    )
    assert state.settings["guard"].startswith("Guard(")
    run(*SAMPLED, "--batch-size", 10, "--resume", "--epochs", 7)  # the planned length stays
    later = load_checkpoint("model.checkpoint.safetensors")
    assert later.settings["optimizer"] == state.settings["optimizer"]
    assert later.epoch == 7


def test_a_budget_in_seconds_and_early_stopping(folder):
    words = [word for word in BASIC if word not in ("--epochs", 5)]
    run(*words, "--seconds", 0.2)
    state = load_checkpoint("model.checkpoint.safetensors")
    assert state.watch.epochs == state.epoch
    with pytest.raises(
        ValueError, match=r"`--early-stopping` must have held-out .* give `--held-out 0\.2` or"
    ):
        run(*BASIC, "--force", "--early-stopping", 2)
    with pytest.raises(ValueError, match="`--early-stopping` must be a positive integer, got 0"):
        run(*BASIC, "--force", "--early-stopping", 0, "--validation", "held_out.npy")
    run(*BASIC, "--force", "--early-stopping", 2, "--validation", "held_out.npy")
    assert "early_stopping" in load_checkpoint("model.checkpoint.safetensors").settings
    for schedule, words in (
        ("fast", "must be the name of a schedule, one of"),
        ("step", "must have factor and n_updates in its brackets"),
        ("linear(0.01)", r"must start at `--learning-rate` 0\.02, got 'linear\(0\.01\)'"),
    ):
        with pytest.raises(ValueError, match=f"`--schedule` {words}"):
            run(*BASIC, "--force", "--learning-rate", 0.02, "--schedule", schedule)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.0] * 40, "must hold at least one positive number, got zeros only"),
        ([1.0] * 39 + [-1.0], "must be zero or positive, got -1"),
        ([1.0] * 39, "must hold one number for each of the 40 points"),
    ],
)
def test_bad_files_of_weights(folder, weights, words):
    np.save("weights.npy", weights)
    with pytest.raises(ValueError, match=words):
        run(*BASIC, "--force", "--sample-weight", "weights.npy")


def test_nobody_ends_below_independent_units_unaware(folder):
    """Digits, 40 hidden units, 10 epochs, all defaults: above that level, or the command says so."""
    datasets = pytest.importorskip("sklearn.datasets")
    np.savetxt("digits.csv", (datasets.load_digits().data >= 8).astype(int), fmt="%d", delimiter=",")
    result = run(
        "train", "digits.csv", "--hidden-units", 40, "--epochs", 10, "--out", "d.safetensors", "--seed", 1
    )
    assert "independent units: -25.1192 nats per point" in result.stderr
    words = " ".join(result.stderr.split())
    value = float(re.search(r"log-likelihood after 10 epochs: (-[0-9.]+)", result.stdout)[1])
    assert value > -25.1192 or "it has learned less than the means" in words


def test_the_level_of_independent_units_has_the_weights(folder):
    spins = np.load("spins.npy")
    weights = np.arange(40.0) % 3
    np.save("weights.npy", weights)
    result = run(*BASIC, "--sample-weight", "weights.npy")
    level = paramagnet.independent_log_likelihood(np.repeat(spins, weights.astype(int), axis=0))
    assert f"independent units: {level:.4f} nats per point" in result.stderr
    np.save("weights.npy", weights[:7])
    with pytest.raises(ValueError, match="one number for each of the 40 points"):
        run(*BASIC, "--force", "--sample-weight", "weights.npy")
