"""The commands of `paramagnet data`: what they print, write, draw and refuse."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.data import download
from paramagnet.data.binarize import Binarizer
from paramagnet.data.datasets import load_dataset
from paramagnet.data.files import read_data, read_table
from paramagnet.data.sources import SOURCES, RemoteFile, SourceFile

LOCAL = os.environ.get("PARAMAGNET_DATA")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARAMAGNET_DATA", raising=False)
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "cache")
    rng = np.random.default_rng(0)
    points = np.round(rng.normal(size=(30, 3)) + 9.0 * rng.integers(0, 2, size=(30, 3)), 3)
    points[5] = points[4]
    lines = [f"{a},{b},{c},7,{'xy'[i % 2]}" for i, (a, b, c) in enumerate(points)]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,c,d,kind", *lines]) + "\n")
    np.save("images.npy", rng.integers(0, 256, size=(70, 5, 5)).astype(np.uint8))
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, ["data", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_list(folder):
    text = run("list").stdout
    for name in SOURCES:
        assert f"\n{name} " in text
    assert "to be downloaded: paramagnet data fetch drybean" in text
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert (rows["drybean"]["points"], rows["drybean"]["selected"], rows["drybean"]["features"]) == (
        13611,
        10000,
        16,
    )
    assert rows["digits"]["where"] == "in scikit-learn"
    (folder / "mnist").mkdir()
    for file in SOURCES["mnist"].files:
        (folder / "mnist" / file.name).touch()
    assert f"in {folder / 'mnist'}" in run("list", "--data-dir", folder).stdout


def test_info_of_a_file_reports_what_was_found(folder):
    text = run("info", "mine.csv").stdout
    assert "mine.csv: 30 points of 4 features" in text
    assert "found: separated by commas, header, labels in kind" in text
    assert "missing: 0" in text
    assert "constant columns: 1 (d)" in text
    assert "duplicate points: 1" in text
    assert "classes: 2 (x 15, y 15)" in text
    answer = json.loads(run("info", "mine.csv", "--json").stdout)
    assert (answer["n_points"], answer["n_duplicates"], answer["constant"]) == (30, 1, ["d"])
    assert answer["classes"] == {"x": 15, "y": 15}


def test_info_of_files_with_gaps_and_oddities(folder):
    (folder / "gaps.csv").write_text("1;;3\n?;5;6\n1;5;3\n")
    answer = json.loads(run("info", "gaps.csv", "--json").stdout)
    assert (answer["n_missing"], answer["constant"]) == (2, ["x0", "x1"])
    (folder / "labels.csv").write_text("3,1,2\n4,1,2\n")
    assert json.loads(run("info", "labels.csv", "--label", "1", "--json").stdout)["classes"] == {
        "3": 1,
        "4": 1,
    }
    assert json.loads(run("info", "labels.csv", "--header", "--json").stdout)["n_points"] == 1
    with pytest.raises(ValueError, match="`--label` and `--no-label` exclude each other"):
        run("info", "labels.csv", "--label", "0", "--no-label")


def test_info_of_a_named_set_gives_the_bounds(folder):
    text = run("info", "toy").stdout
    assert text.startswith("toy: 400 points of 20 spin units\n")
    assert "values: -1, 1" in text
    assert "log-likelihood of independent bits: -13.84" in text
    assert "upper bound, the entropy of the data: -5.7956 nats per point" in text


@pytest.mark.skipif(not LOCAL, reason="no local copy of drybean: set PARAMAGNET_DATA")
def test_info_of_the_dry_beans(folder):
    text = run("info", "drybean", "--data-dir", LOCAL).stdout
    assert text.startswith("drybean: 10000 points of 16 spin units, otsu per feature, 3611 held out\n")
    assert "upper bound, the entropy of the data: -4.18" in text
    assert "licence CC BY 4.0" in text


def test_info_draws(folder):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name, figure in (("mine.csv", "a.png"), ("images.npy", "b.svg"), ("toy", "c.pdf")):
        assert f"figure: {figure}" in run("info", name, "--plot", figure).stdout
        assert (folder / figure).stat().st_size > 1000
    (folder / "gaps.csv").write_text("1,,3\n,5,6\n,5,3\n")
    run("info", "gaps.csv", "--plot", "d.png")
    with pytest.raises(ValueError, match="file name must end in"):
        run("info", "toy", "--plot", "e.txt")


def test_the_sheet_of_samples_shows_them_in_order():
    from paramagnet.plots import sample_sheet

    points = np.arange(10 * 6, dtype=float).reshape(10, 6)
    sheet = sample_sheet(points, (2, 3), n_rows=3, n_columns=4)
    assert sheet.shape == (3 * 3 + 1, 4 * 4 + 1)
    assert np.array_equal(sheet[1:3, 1:4], points[0].reshape(2, 3))
    assert np.array_equal(sheet[4:6, 5:8], points[5].reshape(2, 3))


def test_binarize_writes_what_the_library_gives(folder):
    expected = load_dataset(
        "mine.csv", label="kind", n_points=None, binarize="median", units="bit", per="all"
    )
    for out in ("out.npy", "out.npz", "out.csv"):
        result = run("binarize", "mine.csv", out, "--method", "median", "--units", "bit", "--per", "all")
        assert f"data: {out}" in result.stdout
        assert np.array_equal(read_data(out), expected.data)
    assert np.array_equal(read_table("out.npz").labels, expected.labels)
    assert read_table("out.csv").feature_names == ("a", "b", "c", "d")
    result = run("binarize", "images.npy", "out.npy", "--method", "99.5")
    assert "70 points of 25 spin units, threshold 99.5" in result.stdout


def test_binarize_warns_of_constants_in_a_line(folder):
    result = run("binarize", "mine.csv", "out.npy")
    assert "warning: 1 of 4 features are constant and become -1 everywhere: number 3" in result.stderr
    assert "warning" not in result.stdout


def test_thresholds_are_saved_and_used(folder):
    options = ("--per", "feature", "--points", 50, "--seed", 3)
    run("binarize", "images.npy", "train.npy", *options, "--held-out", "rest.npy", "--save", "rule.json")
    dataset = load_dataset("images.npy", per="feature", n_points=50, rng=3)
    assert np.array_equal(read_data("train.npy"), dataset.data)
    assert np.array_equal(read_data("rest.npy"), dataset.held_out)
    assert np.array_equal(Binarizer.load("rule.json").thresholds, dataset.thresholds)
    result = run("binarize", "images.npy", "all.npy", "--use", "rule.json")
    assert "70 points of 25 spin units, otsu per feature" in result.stdout
    assert np.array_equal(read_data("all.npy")[dataset.indices], dataset.data)
    with pytest.raises(ValueError, match="`--use` takes the rule from the file"):
        run("binarize", "images.npy", "all.npy", "--use", "rule.json", "--points", 3)


def test_fetch_checks_local_copies(folder, monkeypatch):
    content = b"class,a\nu,1\nv,2\n"
    digest = hashlib.sha256(content).hexdigest()
    file = SourceFile("training.csv", digest, RemoteFile("training.csv", digest, ("http://127.0.0.1:9/x",)))
    monkeypatch.setitem(SOURCES, "ulc", replace(SOURCES["ulc"], files=(file,)))
    (folder / "training.csv").write_bytes(content)
    text = run("fetch", "ulc", "--data-dir", folder).stdout
    assert f"training.csv: {len(content)} bytes, sha256 {digest[:8]}... is right, in {folder}" in text
    assert "nothing to download" in run("fetch", "toy").stdout
    with pytest.raises(
        ValueError, match=r"`NAME` must be a data set of .*got 'mnits' \(did you mean 'mnist'"
    ):
        run("fetch", "mnits")


def test_fetch_without_a_server(folder, monkeypatch):
    pytest.importorskip("pooch", reason="pooch is not installed")
    monkeypatch.setenv("NO_PROXY", "*")
    file = SOURCES["ulc"].files[0]
    file = replace(file, remote=replace(file.remote, addresses=("http://127.0.0.1:9/x",)))
    monkeypatch.setitem(SOURCES, "ulc", replace(SOURCES["ulc"], files=(file,)))
    with pytest.raises(OSError, match=r"cover\.zip could not be downloaded \(http.*no connection"):
        run("fetch", "ulc")
    assert [path for path in (folder / "cache").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("info", "nothing.csv"),
            "`NAME-or-FILE` must be one of 'toy', .*or the path of a file, got 'nothing.csv'",
        ),
        (("info", "toy", "--points", 0), "`--points` must be a positive integer, got 0"),
        (("binarize", "toy", "out.txt"), "`OUT` must end in .npy, .npz, .csv, got 'out.txt'"),
        (("binarize", "toy", "no/out.npy"), "The folder of the file does not exist"),
        (("binarize", "mine.csv", "out.npy", "--method", "otso"), "`--method` must be one of 'otsu'"),
        (("binarize", "mine.csv", "out.npy", "--per", "pixel"), "`--per` must be 'feature', 'point' or"),
        (("binarize", "mine.csv", "out.npy", "--use", "mine.csv"), "The file is no file of a binarizer"),
        (("info", "drybean", "--data-dir", "."), "`--data-dir` must hold Dry_Bean_Dataset.arff or dry"),
    ],
)
def test_bad_requests_are_refused(folder, words, message):
    with pytest.raises((ValueError, OSError), match=message):
        run(*words)
    assert not (folder / "out.npy").exists()


def test_hostile_files_give_words_and_no_traceback(folder):
    (folder / "a.csv").write_text("1,2\n3,1e400\n")
    words = [sys.executable, "-m", "paramagnet", "data"]
    # readline, which pytest loads, puts COLUMNS into the environment of subprocesses behind Python's back
    options = {"capture_output": True, "text": True, "check": False, "env": dict(os.environ)}
    done = subprocess.run([*words, "info", "a.csv"], **options)
    assert done.returncode == 0
    assert "column 2 has cells that are no numbers: '1e400' in line 2, which is infinite" in done.stdout
    done = subprocess.run([*words, "binarize", "a.csv", "b.npy"], **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "paramagnet: `IN` must have columns that can be units, found 1 of 2 that cannot be in a.csv:\n"
        "  column 2: cells that are no numbers: '1e400' in line 2, which is infinite\n"
        "Leave it out by `--drop 2`.\n"
    )
