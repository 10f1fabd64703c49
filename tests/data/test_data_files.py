"""Reading data files of all formats, good, bad and random; and the toy data."""

import csv
import gzip
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paramagnet.data.datasets import load_dataset
from paramagnet.data.files import read_data, read_table
from paramagnet.data.idx import parse_idx
from paramagnet.data.summary import log_likelihood_bounds, summarize
from paramagnet.data.text import parse_arff, parse_csv

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
        ("1,2\n3\n", "must have 2 cells a line, got 1 in line 2"),
        ("a,b\n1,2\n\n3,x\n", "must hold numbers only, got 'x' in line 4, column 2"),
        ("1,,0\n1,1,0\n", "must hold numbers only, got '' in line 1, column 2"),
        ("1;0\n0,1\n", "must have 2 cells a line, got 1 in line 2.*mix separators.*comma"),
        ("1,2;3\n4,5;6\n7;8,9\n", "must"),
        (
            "0,5;1,5\n1,5;2,5\n",
            "must hold numbers only, got '0,5' in line 1, column 1.*decimals with a point",
        ),
        ("1,1e400\n2,3\n", "must hold finite numbers, got '1e400' in line 1, column 2"),
        ("a,b,class\n1,2,u\n3,-inf,v\n", "must hold finite numbers, got '-inf' in line 3, column 2"),
        ("1,1_000\n2,3\n", "must hold numbers only, got '1_000' in line 1, column 2"),
        ("1,x\n2,3\n4,5\n", "must hold numbers only, got 'x' in line 1, column 2 .in line 2 '3'.*Name the"),
        ("u,1,v\nu,2,v\n", "must hold numbers and at most one column of labels, got text in columns 1 and 3"),
        ("once upon a time\nthere was\n", "must"),
        ("u\nv\n", "must hold"),
        ("1,a\n2,\n", "must have a label in every line, got '' in line 2, column 2"),
        ("1,\x00\n2,3\n", "must be a text file in UTF-8; it holds the byte 0"),
    ],
)
def test_bad_csv_files_are_refused_in_words(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=f"`path` {words}") as error:
        read_data(tmp_path / "a.csv")
    assert "a.csv" in str(error.value)


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
        (
            "points.mat",
            "must end in .npy, .npz, .csv, .tsv, .parquet, .arff, idx, idx.gz, .fa, .fasta, .txt, got points",
        ),
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


# Tables: names, labels, what is missing


@pytest.mark.parametrize(
    ("text", "names", "classes"),
    [
        ("a,b,class\n1,2,u\n3,4,v \n", ("a", "b"), ("u", "v")),
        ("class,a,b\nu ,1,2\n v,3,4\n", ("a", "b"), ("u", "v")),
        ("1,2,u\n3,4,v\n", ("x0", "x1"), ("u", "v")),
        ("1;2;u\r\n3;4;v\r\n", ("x0", "x1"), ("u", "v")),
        ("a\tb\tkind\n1\t2\tu\n3\t4\tv\n", ("a", "b"), ("u", "v")),
        ("a  b Target\n1  2 u\n3 4 v\n", ("a", "b"), ("u", "v")),
        ('"a","b","la, bel"\n"1","2","u, v"\n3,4,w\n', ("a", "b"), ("u, v", "w")),
        ("Label,a,b\n10,1,2\n9,3,4\n", ("a", "b"), ("9", "10")),
        ("label,0,1\n7,1,2\n8,3,4\n", ("0", "1"), ("7", "8")),
        ("a,,label\n1,2,u\n3,4,v\n", ("a", "x1"), ("u", "v")),
        ("a,b\n1,2\n3,4\n", ("a", "b"), ()),
        ("1 2\n3 4\n", ("x0", "x1"), ()),
    ],
)
def test_csv_tables_with_names_and_labels(tmp_path, text, names, classes):
    (tmp_path / "a.csv").write_text(text, newline="")
    table = read_table(tmp_path / "a.csv")
    assert table.data.tolist() == [[1, 2], [3, 4]]
    assert (table.feature_names, table.class_names) == (names, classes)
    assert (table.labels is None) == (classes == ())
    assert np.array_equal(read_data(tmp_path / "a.csv"), table.data)


def test_label_and_header_can_be_given(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("kind,a,label\n1,2,3\n4,5,6\n")
    assert read_table(path).feature_names == ("kind", "a")
    assert read_table(path, label=False).data.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read_table(path, label="kind").class_names == ("1", "4")
    assert read_table(path, label=-2).feature_names == ("kind", "label")
    assert read_table(path, label="1").feature_names == ("kind", "label")
    with pytest.raises(
        ValueError, match=r"`label` must be the name or the number.*columns are kind, a, label"
    ):
        read_table(path, label="none")
    with pytest.raises(ValueError, match=r"`label` must be a column from 0 to 2, or from -3 to -1.*got 3"):
        read_table(path, label=3)
    path.write_text("0,1\n2,3\n")
    assert read_table(path, header=True).feature_names == ("0", "1")
    assert read_table(path, header=True).data.tolist() == [[2, 3]]
    with pytest.raises(ValueError, match=r"`label` must be .* there is no header"):
        read_table(path, label="kind")
    path.write_text("kind,a\nu,1\nv,2\n")
    with pytest.raises(ValueError, match="at most one column of labels, got text in columns 1 and 2"):
        read_table(path, header=False)


def test_missing_cells_are_nan_in_tables_and_refused_as_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,class\n1,,u\n?,2,v\n3, NA ,u\n4,nan,u\n5,6,u\n")
    table = read_table(path)
    assert np.isnan(table.data).sum(axis=0).tolist() == [1, 3]
    assert summarize(table.data).n_missing == 4
    with pytest.raises(ValueError, match="must hold numbers only, got '' in line 2, column 2"):
        read_data(path)


def test_one_million_quotes_and_long_fields_are_survived(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"' * 1_000_000)
    with pytest.raises(ValueError, match="`path` must"):
        read_table(path)
    path.write_text("a,b\n" + "1" * 300_000 + ",2\n")
    with pytest.raises(ValueError, match="`path` must hold finite numbers"):
        read_table(path)


ARFF = """% a comment
@RELATION 'my beans'
@ATTRIBUTE 'long name' REAL
@attribute flag {0, 1}
@attribute n\tINTEGER
@attribute kind {u, 'v w', "x"}

@DATA
% another
1.5,0,3,u
-2,1,?,'v w'
4e1, 1, 2, "x"
"""


def test_arff(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text(ARFF)
    table = read_table(path)
    assert table.feature_names == ("long name", "flag", "n")
    assert table.class_names == ("u", "v w", "x")
    assert table.labels.tolist() == [0, 1, 2]
    assert np.array_equal(table.data, [[1.5, 0, 3], [-2, 1, np.nan], [40, 1, 2]], equal_nan=True)
    with pytest.raises(ValueError, match="must hold numbers only, got '\\?' in line 11, column 3"):
        read_data(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("@DATA", "", "must be an ARFF file, got '1.5,0,3,u' before @data"),
        (ARFF, "", "has no line @data"),
        (
            "n\tINTEGER",
            "n DATE",
            "attributes that are numbers, {lists} or strings, got '@attribute n DATE' in line 5",
        ),
        ("n\tINTEGER", "'n", "attributes that are numbers"),
        ("1.5,0,3,u", "{0 1.5, 3 u}", "must be a dense ARFF file"),
        ("1.5,0,3,u", "1.5,0,3", "must have 4 cells a line, got 3 in line 10"),
        ("1.5,0,3,u", "1.5,0,u,u", "must hold numbers"),
        ("1.5,0,3,u", "1e400,0,3,u", "must hold finite numbers, got '1e400' in line 10, column 1"),
        (
            "1.5,0,3,u",
            "1.5,0,3,z",
            "its {list} in the attribute 'kind', got 'z' in line 10, column 4; the list is u, v w, x",
        ),
        ("1.5,0,3,u", "1.5,2,3,u", "in the attribute 'flag', got '2' in line 10, column 2; the list is 0, 1"),
        ("'v w'\n4", "'v w\n4", "in the attribute 'kind', got .'v w. in line 11, column 4"),
    ],
)
def test_bad_arff_is_refused(tmp_path, old, new, words):
    assert old in ARFF
    (tmp_path / "a.arff").write_text(ARFF.replace(old, new, 1))
    with pytest.raises(ValueError, match=f"`path` .*{words}.*a.arff"):
        read_table(tmp_path / "a.arff")


# idx


def idx(array, code, kind):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, code, array.ndim]) + sizes + array.astype(kind).tobytes()


IMAGES = np.arange(2 * 3 * 4).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("code", "kind"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
@pytest.mark.parametrize("name", ["a-idx3-ubyte", "a.idx", "a.idx3", "a.idx3-ubyte.gz", "A-IDX3-UBYTE.GZ"])
def test_idx(tmp_path, code, kind, name):
    content = idx(IMAGES, code, kind)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.lower().endswith("gz") else content)
    table = read_table(tmp_path / name)
    assert np.array_equal(table.data, IMAGES.reshape(2, 12))
    assert table.image_shape == (3, 4)
    assert table.data.dtype == (np.uint8 if code == 8 else np.float64)
    assert read_data(tmp_path / name).dtype == np.float64


GOOD_IDX = idx(IMAGES, 8, "u1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must be an idx file, but is empty"),
        (b"\0\0", "must be an idx file"),
        (b"\1" + GOOD_IDX[1:], "must be an idx file, but starts with 01 00 08 03"),
        (b"\0\0\x0a" + GOOD_IDX[3:], "must be an idx file"),
        (b"\0\0\x08\0" + GOOD_IDX[4:], "must have 1 to 8 dimensions, got 0"),
        (b"\0\0\x08\xff" + GOOD_IDX[4:], "must have 1 to 8 dimensions, got 255"),
        (GOOD_IDX[:10], "must hold as many bytes as its header says"),
        (GOOD_IDX[:-1], "as its header says, 2 x 3 x 4 numbers of 1; it holds fewer"),
        (GOOD_IDX + b"\0", "as its header says, 2 x 3 x 4 numbers of 1; it holds others"),
        (b"\0\0\x08\x03" + b"\xff" * 12 + GOOD_IDX[16:], "4294967295 x 4294967295 x 4294967295 .* fewer"),
        (b"\0\0\x0e\x08" + b"\xff" * 32, "4294967295 .* fewer"),
        (b"\0\0\x08\x03" + b"\0" * 12, r"must hold at least one point, got shape \(0, 0, 0\)"),
    ],
)
def test_idx_files_with_lying_headers_are_refused(tmp_path, content, words):
    for name, whole in (("a.idx", content), ("a.idx.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(whole)
        with pytest.raises(ValueError, match=f"`path` {words}.*{name}|`path` .*{words}"):
            read_table(tmp_path / name)


def test_damaged_gzip_is_refused():
    whole = gzip.compress(GOOD_IDX)
    for cut in range(len(whole)):
        with pytest.raises(ValueError, match="`path`"):
            parse_idx(whole[:cut], "cut")
    wrong = bytearray(whole)
    wrong[-6] ^= 1  # the check sum
    with pytest.raises(ValueError, match="`path` is not a valid gzip file"):
        parse_idx(bytes(wrong), "wrong")


def test_a_gzip_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 5]) + bytes(50_000_000))
    assert len(bomb) < 60_000
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="5 numbers of 1; it holds others"):
            parse_idx(bomb, "bomb")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# Parquet, and NumPy archives with labels


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    columns = {"a": [1, 2, None], "b": [0.5, 1.5, 2.5], "c": [True, False, True], "kind": ["u", "v", "u"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert np.array_equal(table.data, [[1, 0.5, 1], [2, 1.5, 0], [np.nan, 2.5, 1]], equal_nan=True)
    assert table.feature_names == ("a", "b", "c")
    assert table.class_names == ("u", "v")
    with pytest.raises(ValueError, match="must hold numbers only, got none in row 2, column 1"):
        read_data(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for cut in (0, 3, 50, len(whole) - 1):
        (tmp_path / "a.parquet").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="`path` is not a readable parquet file"):
            read_table(tmp_path / "a.parquet")
    for bad, words in (
        ({"a": [1.0], "b": [[1, 2]]}, "must hold numbers only, got list.* in column 'b'"),
        ({"a": [float("inf")]}, "must hold finite numbers"),
        ({"kind": ["u"]}, "at least one point and one column"),
        ({"kind": ["u", None], "a": [1, 2]}, "must have a label in every row of column 'kind'"),
        ({"a": ["u"], "b": ["v"], "c": [1]}, "at most one column of labels"),
    ):
        parquet.write_table(pyarrow.table(bad), tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=words):
            read_table(tmp_path / "a.parquet")


def test_numpy_tables(tmp_path):
    np.savez(tmp_path / "a.npz", data=IMAGES, labels=np.array([3.0, 1.0]))
    table = read_table(tmp_path / "a.npz")
    assert (table.image_shape, table.class_names, table.labels.tolist()) == ((3, 4), ("1", "3"), [1, 0])
    np.savez(tmp_path / "a.npz", data=IMAGES, labels=np.arange(3))
    with pytest.raises(ValueError, match="`path` must have a label for each of 2 points, got 3"):
        read_table(tmp_path / "a.npz")
    assert read_table(tmp_path / "a.npz", label=False).labels is None
    np.save(tmp_path / "a.npy", np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match="`path` must hold finite numbers, got inf in row 0, column 1"):
        read_table(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.array([1.0, 2.0]))
    assert read_table(tmp_path / "a.npy").data.shape == (2, 1)


def test_numpy_headers_that_lie_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100.0))
    whole = (tmp_path / "a.npy").read_bytes()
    for shape in (b"(99999999999999,), }", b"(-1,), }", b"(101,), }"):
        place = whole.index(b"(100,), }")
        lie = whole[:place] + shape + whole[place + len(shape) :]
        (tmp_path / "a.npy").write_bytes(lie)
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("data.npy", lie)
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ValueError, match=f"`path` is not a readable {name[1:]} file"):
                read_table(tmp_path / name)


def test_an_archive_with_names_that_lead_outside_writes_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "inner"
    folder.mkdir()
    monkeypatch.chdir(folder)
    content = io.BytesIO()
    np.save(content, POINTS)
    with zipfile.ZipFile("evil.npz", "w") as archive:
        archive.writestr("../evil.npy", content.getvalue())
        archive.writestr("/evil.npy", content.getvalue())
    with pytest.raises(ValueError, match="`path` must hold one array"):
        read_table("evil.npz")
    read_table("evil.npz", name="../evil")
    assert {path.name for path in tmp_path.rglob("*")} == {"inner", "evil.npz"}


# Random input: an answer or a ValueError in words, never anything else

FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = st.text(
    st.sampled_from("0123456789.,;\t \n\r\"'-+eE?%@{}_nainf\\abclsDATribu\x00\u2028\ufeff"), max_size=80
)


def answer_of(read, *arguments):
    """What ``read`` returns, or None if it refuses in words; anything else fails."""
    try:
        return read(*arguments)
    except ValueError as error:
        message = str(error)
    assert message.startswith("`path`")
    return None


def check_table(table):
    if table is None:
        return
    assert table.data.ndim == 2
    assert table.data.size > 0
    assert table.data.shape[1] == len(table.feature_names)
    assert not np.isinf(table.data).any()
    assert table.labels is None or len(table.labels) == len(table.data)


@FUZZ
@given(TEXTS)
def test_fuzz_csv(text):
    check_table(answer_of(parse_csv, text, "file"))


@FUZZ
@given(
    st.lists(
        st.sampled_from(
            ["@attribute a real", "@attribute b {1,u}", "@relation", "@data", "1,u", "2", "%", "?,1"]
        ),
        max_size=12,
    ),
    TEXTS,
)
def test_fuzz_arff(lines, tail):
    check_table(answer_of(parse_arff, "\n".join(lines) + "\n" + tail, "file"))


@FUZZ
@given(
    st.integers(0, 255),
    st.integers(0, 9),
    st.lists(st.integers(0, 2**32 - 1), max_size=3),
    st.binary(max_size=40),
    st.booleans(),
)
def test_fuzz_idx(code, n_dimensions, sizes, tail, pack):
    content = bytes([0, 0, code, n_dimensions]) + struct.pack(f">{len(sizes)}I", *sizes) + tail
    array = answer_of(parse_idx, gzip.compress(content) if pack else content, "file")
    assert array is None or array.nbytes == len(content) - 4 - 4 * n_dimensions


@FUZZ
@given(
    st.binary(max_size=120), st.sampled_from([".npy", ".npz", ".csv", ".arff", ".idx", ".idx.gz", ".parquet"])
)
def test_fuzz_files(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    path.write_bytes((b"\x1f\x8b" if suffix == ".idx.gz" else b"") + content)
    check_table(answer_of(read_table, path))
    answer_of(read_data, path)


NUMBERS = st.lists(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1, max_size=5
)


@FUZZ
@given(NUMBERS, st.sampled_from(",;\t "), st.booleans(), st.booleans())
def test_numbers_survive_csv(rows, separator, header, quoted):
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    if header:
        writer.writerow(["a", "b", "c"])
    writer.writerows(rows)
    table = parse_csv(stream.getvalue(), "file")
    assert np.array_equal(table.data, rows)
    assert table.feature_names == (("a", "b", "c") if header else ("x0", "x1", "x2"))


# Summaries


def test_summary_counts_what_there_is():
    data = np.array([[1.0, 7, np.nan], [1.0, 7, 2], [-0.0, 7, 2], [0.0, 7, 2]])
    found = summarize(data)
    assert (found.n_points, found.n_features, found.n_missing, found.n_duplicates) == (4, 3, 1, 1)
    assert (found.lowest, found.highest, found.values) == (0.0, 7.0, (0.0, 1.0, 2.0, 7.0))
    assert found.constant == (1, 2)
    assert found.bounds is None
    assert summarize(np.full((2, 2), np.nan)).n_missing == 4
    assert summarize(np.arange(200, dtype=np.uint8).reshape(20, 10)).values == ()
    assert summarize(np.zeros((3, 2), np.uint8)).values == (0.0,)


def test_bounds_are_those_of_the_empirical_distribution():
    rng = np.random.default_rng(0)
    spins = rng.choice([-1.0, 1.0], size=(50, 3), p=[0.7, 0.3])
    spins[:, 2] = 1.0
    rows = [tuple(row) for row in spins]
    entropy = sum(np.log(rows.count(row) / 50) for row in rows) / 50
    independent = sum(np.log(np.mean(spins[:, i] == x)) for row in rows for i, x in enumerate(row)) / 50
    for data in (spins, (spins + 1) / 2, ((spins + 1) / 2).astype(np.uint8)):
        bounds = log_likelihood_bounds(data)
        assert bounds.entropy == pytest.approx(entropy, abs=1e-12)
        assert bounds.independent == pytest.approx(independent, abs=1e-12)
        assert summarize(data).binary


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
        ("mnits", {}, "`name` must be one of 'toy', 'drybean', .* or the path of a file, got 'mnits'"),
        ("toy", {"binarize": "otso"}, "`binarize` must be one of 'otsu'"),
        ("toy", {"units": "qubit"}, "`units` must be a unit type"),
        (7, {}, "`name` must be the name of a set or the path of a file, got 7"),
        ("toy", {"n_points": 0}, "`n_points` must be a positive integer, got 0"),
        ("toy", {"rng": "seed"}, "`rng` must be None"),
    ],
)
def test_bad_requests_are_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        load_dataset(name, **options)


def test_spreadsheets_are_told_to_be_saved_as_csv(tmp_path):
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"book\.xlsx\. Save the sheet as \.csv in UTF-8\."):
        read_table(tmp_path / "book.xlsx")


def test_tab_separated_files_may_be_called_so(tmp_path):
    for name in ("a.tsv", "a.csv"):
        (tmp_path / name).write_text("x\ty\n1\t2\n3\t4\n")
        table = read_table(tmp_path / name)
        assert (table.feature_names, table.data.tolist()) == (("x", "y"), [[1, 2], [3, 4]])
