"""Files that unpack to too much are refused before they are unpacked; long lines take linear time."""

import gzip
import io
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from paramagnet.data.arff import split_arff
from paramagnet.data.files import read_data, read_table
from paramagnet.data.limits import DEFAULT, ENVIRONMENT, check_size, size_limit
from paramagnet.data.text import parse_arff

LIMIT = 1_000_000


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(LIMIT))


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def refused(path, words):
    """The file is refused, and nothing much was allocated on the way."""
    for read in (read_data, read_table):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=words):
                read(path)
            assert tracemalloc.get_traced_memory()[1] < LIMIT
        finally:
            tracemalloc.stop()


TOO_LARGE = (
    r"`path` must not unpack to more than 1,000,000 bytes, got [\d,]+ from a file of [\d,]+: .*"
    r"PARAMAGNET_MAX_BYTES=\d+\."
)


def test_the_limit_is_one_gibibyte_and_can_be_set(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert size_limit() == DEFAULT == 2**30
    check_size(2**30, 100, "a")
    with pytest.raises(
        ValueError, match=rf"more than 1,073,741,824 bytes, got 1,073,741,825.*{ENVIRONMENT}=1073741825"
    ):
        check_size(2**30 + 1, 100, "a")
    check_size(2**30 + 1, 2**30 + 1, "a")  # as large on the disk: no compression, no surprise
    monkeypatch.setenv(ENVIRONMENT, str(2**31))
    check_size(2**31, 100, "a")
    for wrong in ("0", "-5", "1e9", "many", "1.5", "9" * 5000):
        monkeypatch.setenv(ENVIRONMENT, wrong)
        with pytest.raises(
            ValueError, match=f"{ENVIRONMENT} must be a positive number of bytes, got '{wrong[:9]}"
        ):
            size_limit()


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, small_limit, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, data=np.zeros((1000, 1000)))
    assert path.stat().st_size < 10_000
    refused(path, TOO_LARGE)
    monkeypatch.setenv(ENVIRONMENT, str(8_000_128))
    assert read_data(path).shape == (1000, 1000)


def test_labels_count_too(tmp_path, small_limit):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, data=np.zeros((10, 10)), labels=np.zeros(1_000_000))
    refused(path, TOO_LARGE)


def test_two_gigabytes_in_two_megabytes_are_refused_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    path = tmp_path / "bomb.npz"
    head = npy(np.zeros((1, 1), np.uint8))[:-1].replace(b"(1, 1)", b"(2000000000, 1)", 1)
    head = head.replace(b" " * 9 + b"\n", b"\n", 1)
    assert len(head) == 128
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("data.npy", "w", force_zip64=True) as member,
    ):
        member.write(head + bytes(2_000_000))  # the rest is in the header only
    told = path.read_bytes().replace(struct.pack("<Q", 2_000_128), struct.pack("<Q", 2_000_000_128))
    told = told.replace(struct.pack("<I", 2_000_128), struct.pack("<I", 2_000_000_128))
    path.write_bytes(told)
    refused(path, r"must not unpack to more than 1,073,741,824 bytes, got 2,000,000,128 from a file of")


def test_members_larger_than_the_archive_says_are_cut_and_refused(tmp_path, small_limit):
    path = tmp_path / "lie.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", npy(np.zeros((1000, 1000))))
    true, told = (struct.pack("<I", size) for size in (8_000_128, 900_000))
    content = path.read_bytes()
    assert content.count(true) == 2
    path.write_bytes(content.replace(true, told))
    refused(
        path,
        r"`path` is not a readable .npz file.*its header says \(1000, 1000\) of float64, 8000000 bytes; it ",
    )


@pytest.mark.parametrize(
    ("shape", "held"),
    [("(9999999999, 99999)", 8), ("(2, 1)", 8), ("(1, 1)", 16), ("(0, 1)", 8), ("(1,)", 9)],
)
def test_numpy_headers_must_tell_the_size(tmp_path, shape, held):
    whole = npy(np.zeros((1, 1)))[:-8]
    head = whole.replace(b"(1, 1)", shape.encode(), 1)
    head = head.rstrip(b"\n ").ljust(127) + b"\n"
    assert len(head) == 128
    content = head + bytes(held)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("data.npy", content)
    for name in ("a.npy", "a.npz"):
        refused(
            tmp_path / name,
            rf"`path` is not a readable .*its header says .* of float64, \d+ bytes; it holds {held}\)",
        )


@pytest.mark.parametrize("packed", [False, True])
def test_plain_files_have_no_limit(tmp_path, monkeypatch, packed):
    monkeypatch.setenv(ENVIRONMENT, "1")
    points = np.arange(30.0).reshape(6, 5)
    np.save(tmp_path / "a.npy", points)
    np.savez(tmp_path / "a.npz", data=points)
    for name in ("a.npy", "a.npz"):
        assert np.array_equal(read_data(tmp_path / name), points)


def idx(shape, body):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


def test_gzipped_idx_files_have_the_limit(tmp_path, small_limit):
    path = tmp_path / "bomb-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx((2000, 28, 28), bytes(2000 * 28 * 28))))
    assert path.stat().st_size < 5000
    refused(path, TOO_LARGE)
    path.write_bytes(gzip.compress(idx((4294967295, 4294967295, 4294967295), bytes(100))))
    refused(path, "4294967295 x 4294967295 x 4294967295 numbers of 1; it holds fewer")
    path.write_bytes(gzip.compress(idx((900, 28, 28), bytes(900 * 28 * 28))))
    assert read_table(path).data.shape == (900, 784)


def test_parquet_has_the_limit(tmp_path, small_limit, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"a": np.zeros(500_000), "b": np.zeros(500_000)}), path)
    assert path.stat().st_size < 20_000
    refused(path, TOO_LARGE)
    parquet.write_table(pyarrow.table({"a": [1.0] * 200, "kind": ["x" * 100_000] * 200}), path)
    refused(path, TOO_LARGE)
    monkeypatch.setenv(ENVIRONMENT, "30000000")
    assert read_table(path).data.shape == (200, 1)


# Lines that took a time that grew with the square of their length, or worse


@pytest.mark.parametrize(
    "line",
    [
        " " * 200_000 + "'",
        " " * 200_000 + "x 'y'",
        "1" + " " * 200_000 + "2",
        "'" + "a " * 100_000,
        "'" + "\\" * 200_000,
        "a, " * 70_000 + "'",
        "' '" * 60_000,
        ("'u' " + " " * 50 + ",") * 4000,
    ],
)
def test_long_arff_lines_take_linear_time(line):
    start = time.process_time()
    split_arff(line)
    text = "@relation r\n@attribute a real\n@attribute k {u, 'v'}\n@data\n1,'v'\n" + line + "\n"
    with pytest.raises(ValueError, match=r"`path` must .* line 6"):
        parse_arff(text, "file")
    for part in (line, "a" + line, "{" + line, "'" + line):
        with pytest.raises(ValueError, match="`path` must have attributes"):
            parse_arff(f"@attribute {part}\n@data\n1\n", "file")
    assert time.process_time() - start < 2.0  # 0.1 s; the square of it was over 30 s


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("1,2", ["1", "2"]),
        (" 1 ,\t2 ", ["1", "2"]),
        ("'a, b' , \"c\"", ["a, b", "c"]),
        (r"'it\'s','\\'", ["it's", "\\"]),
        ("", [""]),
        ("1,,", ["1", "", ""]),
        ("1,'open", ["1", "'open"]),
        ("1,'a' b,2", ["1", "'a' b,2"]),
        ("1,it's,2", ["1", "it's,2"]),
    ],
)
def test_fields_of_arff_lines(line, fields):
    assert split_arff(line) == fields
