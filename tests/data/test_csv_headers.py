"""Headers of numbers, decimal commas and other doubtful notations of .csv files are never guessed."""

import re

import numpy as np
import pytest

from paramagnet.data.files import read_data, read_table
from paramagnet.data.text import parse_csv

ASKED = "must have names of columns or data in line"


def csv(rows, separator=","):
    return "\n".join(separator.join(map(str, row)) for row in rows) + "\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2019,2020\n1,0\n0,1\n", "2019, 2020 may be either, since its numbers may be years"),
        ("2001,2022\n1,0\n0,1\n", "years"),
        ("1890,1900\n1,0\n0,1\n", "years"),
        ("2019;2020\n1.5;0\n0;1\n", "years"),
        ("2019\t2020\n1.5\t0\n0\t1\n", "years"),
        ("2010,2015,2020\n1,1,0\n1,0,1\n", "years"),
        ("2020,2019,2018,2017\n4,1,0,7\n5,6,0,1\n", "years"),
        ("\ufeff2019,2020\r\n1,0\r\n0,1\r\n", "years"),
        ("\n\n2019,2020\n1,0\n0,1\n", "2019, 2020 may be either"),
        ("kind,2019,2020\nu,1,2\nv,3,4\nu,5,1\nv,1,1\n", "years"),
        ("kind,2019\nu,1\nv,3\nu,5\nv,1\n", "years"),
        (",2019\n1,4\n2,3\n3,5\n", "years"),
        (
            "2019\n0.5\n0.25\n0.75\n",
            "2019 may be either, since its numbers are integers, those below are not",
        ),
        ("0,1,2\n1,0,0\n0,1,1\n", "count the columns"),
        ("1,2,3,4\n-1,1,1,1\n1,1,-1,1\n", "count the columns"),
        (",0,1\n0,5.1,3.2\n1,4.9,3.0\n", "count the columns"),
        ("400,410,420,430,440\n7,8,9,9,8\n6,8,8,8,7\n", "count the columns"),
        ("0,1\n0.25,0.5\n0.75,0.125\n", "integers, those below are not"),
        ("12,40\n0.25,0.5\n,0.125\n", "integers, those below are not"),
        ('"7","3"\n1,2\n3,4\n', "its numbers are in quotes, those below are not"),
        ('"7","3","u"\n1,2,"u"\n3,4,"v"\n', "its numbers are in quotes"),
        (
            "400.1,401.2,402.2,404,405.1,407,409\n1,2,1.5,1,1,3,1\n1,1,3,1,2,2,1\n",
            "400.1, 401.2, 402.2, 404, 405.1, 407, ... may be either, since its numbers rise",
        ),
    ],
)
def test_a_header_of_numbers_is_asked_about(tmp_path, text, reason):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8", newline="")
    for read in (read_data, read_table):
        with pytest.raises(
            ValueError, match=rf"`path` {ASKED} \d.*{reason}.*a\.csv.*`header=True`.*`header=F"
        ):
            read(path)
    named, plain = read_table(path, header=True), read_table(path, header=False)
    assert len(plain.data) == len(named.data) + 1
    assert np.array_equal(plain.data[1:], named.data, equal_nan=True)
    assert set(named.feature_names) < {*map(str, np.arange(3000)), "x0", *text.split("\n")[0].split(",")}


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4,5,6\n7,8,9\n",
        "0,1,2,3,4\n5,6,7,8,9\n",
        "0,1\n1,0\n0,0\n",
        "-1,1\n1,-1\n1,1\n",
        "0,1\n0.25,1\n0.75,0.125\n",  # an integer below, so integers are written that way
        "0,1\n0.5,0.25\n",  # a single line below proves nothing
        "0,0,0\n0.25,0.5,1.5\n0.75,0.125,1.5\n",  # names would differ
        "1809,1882\n1850,1900\n",
        "1999,2001\n1998,2002\n3,2000\n",
        "1712,1890\n2200,1750\n900,3000\n",
        "1,2,3,4\n2,1,4,3\n4,3,2,1\n",  # ranks
        "2019\n12\n1850\n",
        "2019,2020\n",
        "7,3\n1,2\n3,4\n",
        '"7","3"\n"1","2"\n"3","4"\n',
        "0.1,0.2,0.3,0.4,0.5,0.6,0.7\n0.2,0.3,0.4,0.5,0.6,0.7,0.9\n0.1,0.1,0.1,0.1,0.1,0.1,0.1\n",
        "9,8,7,6.5,5,4,3\n1,2,1.5,1,1,3,1\n1,1,3,1,2,2,1\n",
        "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n6.3,3.3,6,2.5,virginica\n",
        "u,3,2\nv,5,3\nv,1,7\n",  # a class that occurs once
    ],
)
def test_rows_of_data_are_not_asked_about(text):
    assert len(parse_csv(text, "a.csv").data) == len(text.splitlines())


def random_tables(n_tables, seed):
    """Tables as people have them, every number in a row of the first line by chance."""
    rng = np.random.default_rng(seed)
    for _ in range(n_tables):
        shape = (int(rng.integers(2, 30)), int(rng.integers(1, 12)))
        kinds = {
            "bits": lambda shape=shape: rng.integers(0, 2, shape),
            "digits": lambda shape=shape: rng.integers(0, 10, shape),
            "bytes": lambda shape=shape: rng.integers(0, 256, shape),
            "thousands": lambda shape=shape: rng.integers(1000, 4000, shape),
            "counts": lambda shape=shape: rng.poisson(3.0, shape),
            "reals": lambda shape=shape: rng.normal(size=shape),
            "rounded": lambda shape=shape: [
                [f"{x:g}" for x in row] for row in rng.normal(size=shape).round(1)
            ],
            "mixed": lambda shape=shape: np.c_[rng.integers(1, 4, shape[0]), rng.normal(size=shape).round(2)],
            "walk": lambda shape=shape: rng.normal(size=shape).cumsum(axis=0).round(3),
        }
        for kind, draw in kinds.items():
            rows = draw()
            yield kind, csv([[f"{x:g}" if isinstance(x, float) else x for x in row] for row in rows])


def test_random_tables_are_seldom_asked_about():
    asked = []
    total = 0
    for kind, text in random_tables(250, 1):
        total += 1
        try:
            parse_csv(text, "a.csv")
        except ValueError as error:
            asked.append((kind, text, error))
    assert total == 2250
    assert len(asked) <= 2, asked


def test_a_label_by_name_says_that_there_is_a_header():
    text = "name,2019,2020\nu,1,2\nv,3,4\n"
    table = parse_csv(text, "a.csv", label="name")
    assert (table.feature_names, table.class_names) == (("2019", "2020"), ("u", "v"))
    table = parse_csv("2018,2019,2020\n7,1,2\n8,3,4\n", "a.csv", label="2018")
    assert (table.feature_names, table.class_names) == (("2019", "2020"), ("7", "8"))
    with pytest.raises(
        ValueError,
        match=r"`label` must name one column, got 'a', the name of columns 0, 2 .*Give the number",
    ):
        parse_csv("a,b,a\n1,2,3\n4,5,6\n", "a.csv", label="a")


@pytest.mark.parametrize("header", ["yes", 1, 0, "", []])
def test_header_must_be_a_truth_value(tmp_path, header):
    (tmp_path / "a.csv").write_text("1,2\n")
    for read in (read_data, read_table):
        with pytest.raises(ValueError, match=r"`header` must be True, False or None, got"):
            read(tmp_path / "a.csv", header=header)


POINT = "decimals with a point"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,5;2,3\n0,5;1,25\n", rf"got '1,5' in line 1, column 1.*{POINT}"),
        ("1,5;2\n2,5;3\n", rf"got '1,5' in line 1, column 1.*{POINT}"),
        ("1;2,5\n3;4,5\n", rf"got '2,5' in line 1, column 2.*{POINT}"),
        ("1;2\n3;4,5\n", rf"got '4,5' in line 2, column 2.*{POINT}"),
        ("a;b\n1,5;2\n2,5;3\n", rf"got '1,5' in line 2, column 1.*{POINT}"),
        ("1,5;u\n2,5;v\n", rf"got '1,5' in line 1, column 1.*{POINT}"),
        ("a\tb\n1,5\t2\n2,5\t3\n", rf"got '1,5' in line 2, column 1.*{POINT}"),
        ('"1,5","2"\n"3","4"\n', rf"got '1,5' in line 1, column 1.*{POINT}"),
        (
            '"1,234","2,000,000"\n"3","4"\n',
            rf"got '1,234' in line 1, column 1.*without separators of thousands.*{POINT}",
        ),
        ("1.234,5;2\n3;4\n", r"got '1.234,5' in line 1.*thousands"),
        ("1 234;2\n3;4\n", r"got '1 234' in line 1.*thousands"),
        ("1'234;2\n3;4\n", r"got .1'234. in line 1.*thousands"),
        ("1.234.567;2\n3;4\n", r"got '1.234.567' in line 1.*thousands"),
        ("1,50%\n2,30%\n", r"got '50%' in line 1, column 2.*percentages as plain numbers"),
        ("1,5 2,3\n0,5 1,2\n", r"got '5 2' in line 1, column 2.*mix separators"),
        ("x\n1,5\n2,5\n", rf"must have 1 cells a line, got 2 in line 2.*decimal signs.*{POINT}"),
        ("a,b\n1,5,2,5\n", rf"must have 2 cells a line, got 4 in line 2.*decimal signs.*{POINT}"),
    ],
)
def test_other_notations_are_named(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_text(text)
    for read in (read_data, read_table):
        with pytest.raises(ValueError, match=f"`path` .*{words}"):
            read(path)


def test_labels_that_look_like_numbers_must_be_asked_for():
    text = "1;2,5\n3;4,5\n"
    assert parse_csv(text, "a.csv", label=1).class_names == ("2,5", "4,5")
    assert parse_csv("a;class\n1;2,5\n3;4,5\n", "a.csv").class_names == ("2,5", "4,5")
    assert parse_csv("a,10%\n1,2\n3,4\n", "a.csv").feature_names == ("a", "10%")


# Quotes, line ends and encodings


def test_fields_in_quotes_may_span_lines():
    text = 'a,"b\nin m","kind"\n1,2,"u\nv"\n3,4,"w ""x"""\n5,6,"w ""x"""\n'
    table = parse_csv(text, "a.csv")
    assert table.feature_names == ("a", "b\nin m")
    assert table.class_names == ("u\nv", 'w "x"')
    assert table.data.tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match=r"got 'z' in line 5, column 1"):
        parse_csv(text.replace("3,4", "z,4"), "a.csv")


def test_a_quotation_mark_inside_a_field_is_text():
    table = parse_csv('1,5" pipe\n2,6" pipe\n3,5" pipe\n', "a.csv")
    assert table.class_names == ('5" pipe', '6" pipe')
    assert table.data.ravel().tolist() == [1, 2, 3]


def test_an_open_quote_is_an_error_with_its_line():
    with pytest.raises(ValueError, match=r"got 2 in line 3|got '.*' in line 3"):
        parse_csv('a,b,c\n1,2,3\n4,"5,6\n7,8,9\n', "a.csv")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_line_numbers(end):
    assert parse_csv(end.join(["a,b", "1,2", "", "3,4", ""]), "a.csv").data.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="got 'x' in line 4, column 2"):
        parse_csv(end.join(["a\u2028,b\x0b", "1,2", "", "3,x", ""]), "a.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n".encode("utf-16"), r"it is in UTF-16.*`iconv -f UTF-16 -t UTF-8 \S+ > \S+-utf8\.\w+`"),
        ("a,b\n1,2\n".encode("utf-16-be"), r"it holds the byte 0, so it is UTF-16 or no text"),
        ("a,b\n1,2\né,3\n".encode("latin-1"), r"got the byte 0xe9 in line 3.*`iconv -f WINDOWS-1252 "),
        (b"PK\x03\x04\0\0\0", r"it holds the byte 0"),
    ],
)
def test_other_encodings_are_named(tmp_path, content, words):
    for name in ("a.csv", "a.arff"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"`path` must be a text file in UTF-8; {words}"):
            read_table(tmp_path / name)


def test_not_a_number_is_missing_in_every_spelling(tmp_path):
    path = tmp_path / "a.csv"
    for gap in ("nan", "NaN", "", "NA", "?"):
        path.write_text(f"1,2\n3,{gap}\n")
        assert np.isnan(read_table(path).data[1, 1])
        words = re.escape(f"must hold numbers only, got {gap!r} in line 2, column 2")
        with pytest.raises(ValueError, match=words):
            read_data(path)


@pytest.mark.parametrize("label", [1.0, [0], {}, b"a"])
def test_label_must_be_a_name_or_a_number(label):
    with pytest.raises(ValueError, match="`label` must be the name or the number of a column, got"):
        parse_csv("a,b\n1,2\n", "a.csv", label=label)


# What a review by hostile use found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("# a,b\n1,2\n3,4\n", ("a", "b")),
        ("# made by a program, on a day, at noon\n# a,b\n1,2\n3,4\n", ("a", "b")),
        ("# a b\n1 2\n3 4\n", ("a", "b")),
        ("# a comment\n1,2\n3,4\n", ("x0", "x1")),
        ("# a comment\na,b\n1,2\n3,4\n", ("a", "b")),
        ("# 2019,2020\n1,2\n3,4\n", ("2019", "2020")),
        ("sep=;\n1;2\n3;4\n", ("x0", "x1")),
        ("sep=,\na,b\n1,2\n3,4\n", ("a", "b")),
    ],
)
def test_comments_and_directives_above_the_table(text, names):
    table = parse_csv(text, "a.csv")
    assert table.data.tolist() == [[1, 2], [3, 4]]
    assert table.feature_names == names
    assert parse_csv(text, "a.csv", header=True).feature_names == (("1", "2") if names[0] == "x0" else names)


def test_what_savetxt_writes_is_read(tmp_path):
    np.savetxt(tmp_path / "a.csv", [[1.0, 2.0], [3.0, 4.0]], delimiter=",", header="a,b")
    assert read_table(tmp_path / "a.csv").feature_names == ("a", "b")
    assert parse_csv("# a,b\n1,2\n", "a.csv", header=False).feature_names == ("x0", "x1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\u22121,2\n\u22123,4\n", "got '\u22121' in line 1, column 1.*the sign - only"),
        ("$1,2\n$3,4\n", r"got '\$1' in line 1, column 1.*digits 0 to 9"),
        ("1_000,2\n3_000,4\n", "got '1_000' in line 1, column 1.*digits 0 to 9"),
        ("a,b\n1\u200b,2\n3\u200b,4\n", r"got '1\\u200b' in line 2, column 1.*digits 0 to 9"),
        (
            "1|2\n3|4\n",
            r"one column of numbers, got '3\|4' in line 2.*separated by tab, semicolon, comma, space",
        ),
        ('{"a": 1}\n', "at least one line of numbers below the header"),
        (
            "class,label,a\n1,2,3\n4,5,6\n",
            "one column of labels, got 'class' and 'label' in columns 1 and 2.*`label`",
        ),
        ("1,2\n3,4\n# end\n", "have 2 cells a line, got 1 in line 3"),
    ],
)
def test_odd_tables_are_refused_in_words(text, words):
    with pytest.raises(ValueError, match=rf"`path` must .*{words}|`path` must {words}"):
        parse_csv(text, "a.csv")


def test_labels_without_a_value_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", data=np.eye(3), labels=np.array([1.0, np.nan, 2.0]))
    with pytest.raises(
        ValueError, match=r"`path` must have a label for each point, got nan for point 1: .*label=F"
    ):
        read_table(tmp_path / "a.npz")
    assert read_table(tmp_path / "a.npz", label=False).labels is None


def test_utf_32_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes("1,2\n".encode("utf-32"))
    with pytest.raises(ValueError, match="it is in UTF-32"):
        read_table(tmp_path / "a.csv")
