"""The named data sets: counts, hashes, selection, thresholds, bounds. Local copies are needed for most."""

import hashlib
import math
import os
import pickle
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paramagnet.data.datasets import load_dataset
from paramagnet.data.download import find_local
from paramagnet.data.files import read_table
from paramagnet.data.sources import SOURCES, RemoteFile, SourceFile
from paramagnet.data.summary import log_likelihood_bounds, summarize

FOLDER = os.environ.get("PARAMAGNET_DATA")


def needs(name):
    source = SOURCES[name]
    there = FOLDER and all(find_local(source, file, None) for file in source.files)
    return pytest.mark.skipif(not there, reason=f"no local copy of {name}: set PARAMAGNET_DATA")


NAMED = [pytest.param(name, marks=needs(name)) for name in ("drybean", "ulc", "mnist", "mnist-test")]
CLASSES = {
    "drybean": {
        "BARBUNYA": 1322, "BOMBAY": 522, "CALI": 1630, "DERMASON": 3546, "HOROZ": 1928, "SEKER": 2027,
        "SIRA": 2636,
    },
    "ulc": {
        "asphalt": 59, "building": 122, "car": 36, "concrete": 116, "grass": 112, "pool": 29, "shadow": 61,
        "soil": 34, "tree": 106,
    },
    "mnist": dict(
        zip("0123456789", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], strict=True)
    ),
    "mnist-test": dict(
        zip("0123456789", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], strict=True)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_counts_and_hashes(name):
    source = SOURCES[name]
    for file in source.files:
        content = find_local(source, file, None).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
    dataset = load_dataset(name)
    assert dataset.data.shape == (source.chosen, source.n_features)
    assert dataset.n_held_out == source.n_points - source.chosen
    assert len(dataset.feature_names) == source.n_features
    labels = np.r_[dataset.labels, dataset.held_out_labels]
    counts = np.bincount(labels, minlength=source.n_classes).tolist()
    assert dict(zip(dataset.class_names, counts, strict=True)) == CLASSES[name]
    assert len(np.unique(dataset.indices)) == source.chosen
    assert dataset.provenance.files[0][1] == source.files[0].sha256
    assert set(np.unique(dataset.data)) == {-1.0, 1.0}


@needs("drybean")
def test_the_raw_dry_beans_are_the_undamaged_ones():
    source = SOURCES["drybean"]
    folder = find_local(source, source.files[0], None).parent
    arff = read_table(folder / "Dry_Bean_Dataset.arff")
    assert arff.data.shape == (13_611, 16)
    assert arff.feature_names[4] == "AspectRation"
    assert arff.data[:, 1].max() == pytest.approx(1985.37)
    assert summarize(arff.data).n_duplicates == 68
    if (folder / "Dry_Bean_Dataset.csv").exists():
        table = read_table(folder / "Dry_Bean_Dataset.csv")
        assert np.array_equal(table.data, arff.data)
        assert np.array_equal(table.labels, arff.labels)
        assert table.feature_names == arff.feature_names


def variance_between(values, threshold):
    high = values > threshold
    return np.var(np.where(high, values[high].mean(), values[~high].mean()))


@needs("drybean")
def test_thresholds_come_from_the_selected_points():
    dataset = load_dataset("drybean", n_points=500, rng=4)
    source = SOURCES["drybean"]
    raw = read_table(find_local(source, source.files[0], None)).data
    chosen = raw[dataset.indices]
    assert dataset.thresholds.shape == (16,)
    assert np.array_equal(dataset.data, np.where(chosen > dataset.thresholds, 1.0, -1.0))
    for feature, threshold in zip(chosen.T, dataset.thresholds, strict=True):
        best = max(variance_between(feature, t) for t in np.unique(feature)[:-1])
        assert variance_between(feature, threshold) == pytest.approx(best, rel=1e-12)
    rest = np.random.default_rng(4).permutation(13_611)[500:]
    assert np.array_equal(dataset.held_out, np.where(raw[rest] > dataset.thresholds, 1.0, -1.0))
    assert not dataset.held_out.flags.writeable
    assert not dataset.data.flags.writeable


@needs("drybean")
def test_the_entropy_bound_of_the_dry_beans():
    dataset = load_dataset("drybean")
    bounds = log_likelihood_bounds(dataset.data)
    # other selections: -4.167 on average, with a standard deviation of 0.017
    assert bounds.entropy == pytest.approx(-4.18, abs=0.005)
    assert bounds.independent == pytest.approx(-8.36, abs=0.005)


@needs("drybean")
def test_dry_beans_load_fast():
    load_dataset("drybean")
    fastest = min(_seconds(lambda: load_dataset("drybean")) for _ in range(5))
    assert fastest < 0.3


def _seconds(call):
    start = time.process_time()  # one thread; other processes must not count
    call()
    return time.process_time() - start


@needs("ulc")
def test_selection_is_by_seed_and_nested():
    one = load_dataset("ulc")
    assert np.array_equal(one.data, load_dataset("ulc").data)
    assert np.array_equal(one.data, load_dataset("ulc", rng=0).data)
    other = load_dataset("ulc", rng=1)
    assert not np.array_equal(one.indices, other.indices)
    few = load_dataset("ulc", n_points=100)
    assert np.array_equal(few.indices, one.indices[:100])
    everything = load_dataset("ulc", n_points=675)
    assert everything.held_out.shape == (0, 147)
    with pytest.raises(ValueError, match="`n_points` must be at most 675, the points there are, got 676"):
        load_dataset("ulc", n_points=676)


@needs("mnist-test")
def test_images_are_binarized_one_by_one():
    dataset = load_dataset("mnist-test", n_points=50, units="bit")
    source = SOURCES["mnist-test"]
    raw = read_table(find_local(source, source.files[0], None)).data[dataset.indices]
    assert dataset.thresholds.shape == (50,)
    assert dataset.image_shape == (28, 28)
    assert np.array_equal(dataset.data == 1.0, raw > dataset.thresholds[:, None])
    assert np.array_equal(dataset.data, load_dataset("mnist-test", n_points=100, units="bit").data[:50])
    drawn = load_dataset("mnist-test", n_points=50, binarize="stochastic")
    assert drawn.thresholds is None
    assert (drawn.data[raw == 0] == -1).all()
    assert (drawn.data[raw == 255] == 1).all()
    assert drawn.data[(raw > 100) & (raw < 150)].mean() == pytest.approx(0.0, abs=0.2)
    assert np.array_equal(
        drawn.held_out[:9], load_dataset("mnist-test", n_points=50, binarize="stochastic").held_out[:9]
    )


@needs("mnist-test")
def test_partitions_of_real_images_are_those_of_scikit_image():
    filters = pytest.importorskip("skimage.filters", reason="scikit-image is not installed")
    dataset = load_dataset("mnist-test", n_points=400)
    source = SOURCES["mnist-test"]
    raw = read_table(find_local(source, source.files[0], None)).data[dataset.indices]
    for image, point in zip(raw, dataset.data, strict=True):
        assert np.array_equal(point > 0, image > filters.threshold_otsu(image))


def test_digits():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    dataset = load_dataset("digits")
    assert dataset.data.shape == (1797, 64)
    assert dataset.image_shape == (8, 8)
    assert np.bincount(dataset.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert repr(dataset) == "Dataset('digits', 1797 points of 64 spin units, otsu per point)"
    some = load_dataset("digits", n_points=1000, binarize=7.5, units="bit")
    assert repr(some) == "Dataset('digits', 1000 points of 64 bit units, threshold 7.5, 797 held out)"
    assert some.held_out.shape == (797, 64)


def test_digits_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r'`digits` come with scikit-learn: pip install "\.\[sklearn\]"'):
        load_dataset("digits")


# The user's own


def test_a_file_is_loaded_binarized_and_described(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 3)) + 10.0 * rng.integers(0, 2, size=(50, 3))
    path = tmp_path / "mine.csv"
    rows = "".join(",".join(map(repr, row.tolist())) + f",{'ab'[i % 2]}\n" for i, row in enumerate(points))
    path.write_text("u,v,w,kind\n" + rows)
    dataset = load_dataset(path)
    assert np.array_equal(dataset.data, np.where(points > 5, 1.0, -1.0))
    assert dataset.feature_names == ("u", "v", "w")
    assert dataset.class_names == ("a", "b")
    assert dataset.labels.tolist() == [0, 1] * 25
    assert "otsu per feature" in repr(dataset)
    half = load_dataset(str(path), n_points=25, rng=3)
    assert half.held_out.shape == (25, 3)
    assert np.array_equal(half.labels, half.indices % 2)
    copy = pickle.loads(pickle.dumps(half))
    assert np.array_equal(copy.held_out, half.held_out)


def test_images_in_a_file_are_binarized_one_by_one(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, size=(6, 5, 5)).astype(np.uint8)
    np.save(tmp_path / "a.npy", images)
    assert load_dataset(tmp_path / "a.npy").thresholds.shape == (6,)
    assert load_dataset(tmp_path / "a.npy", per="feature").thresholds.shape == (25,)


def test_binary_files_stay_what_they_are(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2, size=(9, 4))
    bits[:, 2] = 1
    np.save(tmp_path / "a.npy", bits)
    dataset = load_dataset(tmp_path / "a.npy")
    assert np.array_equal(dataset.data, 2.0 * bits - 1)
    assert dataset.thresholds is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "1,\n2,3\n",
            "`name` must be a file without missing cells, found 1, .* row 0 .*column 'x1': .*a.csv.*Drop",
        ),
        ("5,6\n", "at least two points for thresholds per feature"),
        ("", "at least one line of numbers"),
        ("1,1e400\n2,3\n", "finite numbers, got '1e400'"),
    ],
)
def test_files_that_cannot_be_learned_are_refused(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        load_dataset(tmp_path / "a.csv")


def test_toy_has_nothing_held_out():
    toy = load_dataset("toy")
    assert toy.held_out.shape == (0, 20)
    assert toy.n_held_out == 0
    assert toy.class_names == ("++", "--", "+-", "-+")
    # the draw that everybody gets must stay the same
    bits = np.packbits(toy.data > 0)
    assert hashlib.sha256(bits.tobytes()).hexdigest() == TOY_HASH
    assert Path("toy").exists() is False


TOY_HASH = "bdd3a8f73b4cecd1a185d2e1faadc0636f9f74811cdc4bffccb8f34a0ca6dc64"


# The grey range of images is that of the file format, not that of the images at hand


def write_images(folder, pixels):
    """Files of a set of images called tiny, and its entry in the list of sets."""
    n_points, height, width = pixels.shape
    contents = {
        "i-idx3-ubyte": struct.pack(">4B3I", 0, 0, 8, 3, n_points, height, width) + pixels.tobytes(),
        "l-idx1-ubyte": struct.pack(">4BI", 0, 0, 8, 1, n_points) + bytes(i % 10 for i in range(n_points)),
    }
    files = []
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        files.append(SourceFile(name, digest, RemoteFile(name, digest, ())))
    return replace(
        SOURCES["mnist"],
        name="tiny",
        chosen=n_points - 10,
        n_points=n_points,
        n_features=height * width,
        image_shape=(height, width),
        files=tuple(files),
    )


def test_stochastic_images_are_drawn_by_the_range_of_their_bytes(tmp_path, monkeypatch):
    shades = np.array([[0, 51, 102], [153, 204, 204]], dtype=np.uint8)  # 204 is the lightest, not white
    pixels = np.broadcast_to(shades, (4010, 2, 3))
    monkeypatch.setitem(SOURCES, "tiny", write_images(tmp_path, pixels))
    drawn = load_dataset("tiny", binarize="stochastic", units="bit", data_dir=tmp_path)
    assert drawn.binarizer.grey_range.tolist() == [[0.0], [255.0]]
    expected = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.8])
    errors = np.sqrt(expected * (1.0 - expected) / 4000.0)
    assert (np.abs(drawn.data.mean(axis=0) - expected) <= 5.0 * errors).all()
    assert drawn.held_out.mean() == pytest.approx(expected.mean(), abs=0.25)
    thresholds = load_dataset("tiny", n_points=7, data_dir=tmp_path)  # other rules do not ask for it
    assert thresholds.binarizer.grey_range is None


def test_the_grey_range_of_every_set():
    ranges = {name: source.grey_range for name, source in SOURCES.items()}
    bytes_, digits = (0.0, 255.0), (0.0, 16.0)
    assert ranges == {
        "toy": None, "drybean": None, "ulc": None, "mnist": bytes_, "mnist-test": bytes_, "digits": digits,
    }  # fmt: skip


def test_stochastic_tables_take_the_range_of_each_feature(tmp_path):
    """A file of the user's has no range of its own."""
    points = np.array([[0.0, 10.0], [1.0, 30.0], [0.25, 15.0]] * 2000)
    np.save(tmp_path / "a.npy", points)
    drawn = load_dataset(tmp_path / "a.npy", binarize="stochastic", units="bit")
    assert drawn.binarizer.grey_range.tolist() == [[0.0, 10.0], [1.0, 30.0]]
    assert drawn.data[2::3].mean(axis=0) == pytest.approx([0.25, 0.25], abs=5.0 * math.sqrt(0.1875 / 2000.0))
