"""Reading data files, and the toy data."""

import os
import pickle
import zipfile

import numpy as np
import pytest

from paramagnet.data.datasets import load_dataset
from paramagnet.data.files import read_data

POINTS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])


@pytest.mark.parametrize("dtype", [float, np.float32, np.int8, ">f8"])
def test_numpy_files(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.asfortranarray(POINTS.astype(dtype)))
    np.savez(tmp_path / "one.npz", anything=POINTS.astype(dtype))
    np.savez_compressed(tmp_path / "two.npz", data=POINTS.astype(dtype), labels=np.arange(2))
    for name in ("a.npy", "one.npz", "two.npz"):
        array = read_data(tmp_path / name)
        assert np.array_equal(array, POINTS)
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
    assert read_data(tmp_path / "two.npz", name="labels").tolist() == [0, 1]


def test_booleans_become_bits(tmp_path):
    np.save(tmp_path / "a.npy", POINTS > 0)
    assert np.array_equal(read_data(tmp_path / "a.npy"), [[1, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize(
    "text",
    [
        "1,-1,1\n-1,-1,1\n",
        "a,b,c\n1,-1,1\n-1,-1,1",
        '"x 1","x,2","x\'3"\r\n1.0,-1e0,+1\r\n-1,-1,1\r\n',
        "\ufeffa,b,c\n1, -1, 1\n\n-1,-1,1\n\n",
        '"1","-1","1"\n"-1","-1","1"\n',
    ],
)
def test_csv_files_with_and_without_header(tmp_path, text):
    path = tmp_path / "points.CSV"
    path.write_text(text, encoding="utf-8", newline="")
    assert np.array_equal(read_data(path), POINTS)


def test_csv_of_one_row_or_one_column_stays_a_table(tmp_path):
    (tmp_path / "row.csv").write_text("1,0,1\n")
    (tmp_path / "column.csv").write_text("x\n1\n0\n")
    assert read_data(tmp_path / "row.csv").shape == (1, 3)
    assert read_data(tmp_path / "column.csv").shape == (2, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must hold at least one line of numbers"),
        ("a,b\n\n", "must hold at least one line of numbers"),
        ("1,2\n3\n", "must have 2 numbers a line, got 1 in line 2"),
        ("a,b\n1,2\n\n3,x\n", "must hold numbers only, got 'x' in line 4, column 2"),
        ("1,,0\n1,1,0\n", "must hold numbers only, got '' in line 1, column 2"),
        ("1;0\n0;1\n", "must hold"),
    ],
)
def test_bad_csv_files_are_refused_in_words(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=f"`path` {words}.*a.csv"):
        read_data(tmp_path / "a.csv")


def test_a_csv_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00\x9d")
    with pytest.raises(ValueError, match="`path` must be a text file in UTF-8"):
        read_data(tmp_path / "a.csv")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_pickles_in_numpy_files_are_refused_and_never_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.savez("a.npz", data=np.array([Bomb()], dtype=object))
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npy", "a.npz", "b.npy"):
        with pytest.raises(ValueError, match=r"`path` is not a readable .*pickled objects"):
            read_data(name)
    assert not (tmp_path / "exploded").exists()


def test_other_bad_numpy_files_are_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("whole.npy", POINTS)
    np.savez("several.npz", a=POINTS, b=POINTS)
    np.save("text.npy", np.array([["a", "b"]]))
    np.save("complex.npy", POINTS * 1j)
    for suffix, cuts in ((".npy", (0, 3, 20, 140)), (".npz", (0, 3, 200))):
        whole = (tmp_path / ("whole.npy" if suffix == ".npy" else "several.npz")).read_bytes()
        for cut in cuts:
            (tmp_path / f"cut{suffix}").write_bytes(whole[:cut])
            with pytest.raises(ValueError, match="`path` is not a readable"):
                read_data(f"cut{suffix}")
    with zipfile.ZipFile("empty.npz", "w"):
        pass
    os.rename("several.npz", "archive.npy")
    os.rename("whole.npy", "array.npz")
    np.savez("several.npz", a=POINTS, b=POINTS)
    for name, words in (
        ("several.npz", r"must hold one array, or one called 'data', got \['a', 'b'\].*Pass `name`"),
        ("empty.npz", r"got \[\]"),
        ("archive.npy", "not a readable .npy file.*an archive"),
        ("array.npz", "not a readable .npz file.*an array"),
        ("text.npy", "must hold real numbers, got dtype <U1"),
        ("complex.npy", "must hold real numbers, got dtype complex128"),
        ("points.mat", "must end in .npy, .npz, .csv, got points.mat"),
    ):
        (tmp_path / "points.mat").touch()
        with pytest.raises(ValueError, match=f"`path` .*{words}"):
            read_data(name)
    with pytest.raises(ValueError, match=r"`name` must be one of \['a', 'b'\].*got 'c'"):
        read_data("several.npz", name="c")
    with pytest.raises(FileNotFoundError, match=r"`path` does not exist: nothing\.csv"):
        read_data("nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="`path` must be a regular file"):
        read_data("folder.csv")


# The toy data


def test_toy_data_are_the_papers():
    dataset = load_dataset("toy")
    assert repr(dataset) == "Dataset('toy', 400 points of 20 spin units)"
    assert dataset.data.shape == (400, 20)
    assert dataset.data.dtype == np.float64
    assert set(np.unique(dataset.data)) == {-1.0, 1.0}
    assert np.bincount(dataset.labels).tolist() == [100] * 4
    assert len(dataset.feature_names) == 20
    halves = [(1, 1), (-1, -1), (1, -1), (-1, 1)]
    flips = []
    for label, (first, second) in enumerate(halves):
        pattern = np.repeat([first, second], 10)
        points = dataset.data[dataset.labels == label]
        assert np.array_equal(np.sign(points.sum(axis=0)), pattern)
        flips.append(np.mean(points != pattern))
    assert np.mean(flips) == pytest.approx(0.15, abs=5 * np.sqrt(0.15 * 0.85 / 8000))
    with pytest.raises(ValueError, match="read-only"):
        dataset.data[0, 0] = 5.0


def test_toy_data_are_the_same_every_time_unless_asked():
    one = load_dataset("toy").data
    assert np.array_equal(one, load_dataset("toy").data)
    assert np.array_equal(
        load_dataset("toy", rng=3).data, load_dataset("toy", rng=np.random.default_rng(3)).data
    )
    assert not np.array_equal(one, load_dataset("toy", rng=3).data)


def test_toy_data_in_bits_and_in_other_numbers():
    bits = load_dataset("toy", units="bit")
    assert np.array_equal(2 * bits.data - 1, load_dataset("toy").data)
    assert bits.units.name == "bit"
    assert np.bincount(load_dataset("toy", n_points=10).labels).tolist() == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mnits", {}, "`name` must be one of 'toy', got 'mnits'"),
        ("toy", {"units": "qubit"}, "`units` must be a unit type"),
        ("toy", {"n_points": 0}, "`n_points` must be a positive integer, got 0"),
        ("toy", {"rng": "seed"}, "`rng` must be None"),
    ],
)
def test_bad_requests_are_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        load_dataset(name, **options)
