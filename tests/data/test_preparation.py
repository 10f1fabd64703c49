"""Tables of anything as units: what each column is, how it is coded, refused, saved and given back."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.data import ColumnWarning, Preparation, describe_columns, fit_preparation
from paramagnet.data.columns import read_columns
from paramagnet.data.kinds import describe_column, is_date

ROWS = [
    # id, size, weight, colour, shape, done, on, class
    ("1", "10.5", "3", "red", "round", "True", "2024-01-03", "a"),
    ("2", "11", "5", "blue", "square", "False", "2024-02-03", "b"),
    ("3", "29", "4", "red", "round", "true", "2024-03-05", "a"),
    ("4", "31.5", "", "green", "", "False", "2024-01-09", "b"),
    ("5", "30", "5", "NA", "square", "False", "2024-11-30", "b"),
    ("6", "9", "3", "red", "square", "True", "2024-12-24", "a"),
]
NAMES = ("id", "size", "weight", "colour", "shape", "done", "on", "class")


def write(path, names=NAMES, rows=ROWS):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows] if names else rows)
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "table.csv")


def fit(source, **options):
    return fit_preparation(source, **{"drop": "id,on", "missing": "mode", **options})


def test_every_column_is_described(file):
    found = describe_columns(file)
    assert [(info.kind, info.n_missing, info.n_distinct) for info in found] == [
        ("number", 0, 6),
        ("number", 0, 6),
        ("number", 1, 3),
        ("text", 1, 3),
        ("text", 1, 2),
        ("true/false", 0, 2),
        ("date", 0, 6),
        ("text", 0, 2),
    ]
    assert [info.name for info in found if info.index] == ["id"]
    assert [info.name for info in found if info.label] == ["class"]


def slow_states(rows, low, high):
    """The units by hand: size above 20, weight above 4 by Otsu's rule, colours, square, True."""
    states = []
    for row in rows:
        _, size, weight, colour, shape, done, _, _ = row
        bits = [float(size) > 20, float(weight or "4") > 3.5]  # the lower median of 3, 3, 4, 5, 5 is 4
        colour = "red" if colour == "NA" else colour
        bits += [colour == name for name in ("blue", "green", "red")]
        bits += [(shape or "square") == "square", done.lower() == "true"]
        states.append([high if bit else low for bit in bits])
    return np.array(states, dtype=float)


@pytest.mark.parametrize(("units", "low", "high"), [("spin", -1, 1), ("bit", 0, 1)])
def test_units_equal_those_made_by_hand(file, units, low, high):
    prepared = fit(file, units=units)
    assert prepared.unit_names == (
        "size", "weight", "colour=blue", "colour=green", "colour=red", "shape", "done",
    )  # fmt: skip
    states = prepared.apply(file)
    expected = slow_states(ROWS, low, high)
    threshold = prepared.codes[1].threshold
    assert threshold in (3.5, 4.5)
    if threshold == 4.5:
        expected[:, 1] = [high if (row[2] or "4") == "5" else low for row in ROWS]
    assert np.array_equal(states, expected)
    assert np.allclose(prepared.means, expected.mean(axis=0))
    assert prepared.left_out == ("id", "on", "class")


def test_the_way_back(file):
    prepared = fit(file)
    states = prepared.apply(file)
    table = prepared.invert(states)
    assert table["colour"] == ["red", "blue", "red", "green", "red", "red"]
    assert table["done"] == ["True", "False", "True", "False", "False", "True"]
    assert set(table["size"]) == {10.5, 30.0}  # the medians of the two sides, values of the file
    assert np.array_equal(prepared.apply(table), states)
    everything = np.array(list(itertools.product((-1.0, 1.0), repeat=prepared.n_visible)))
    back = prepared.invert(everything)
    single = np.array([value is not None for value in back["colour"]])
    assert np.array_equal(single, (everything[:, 2:5] > 0).sum(axis=1) == 1)
    rows = {name: list(itertools.compress(values, single)) for name, values in back.items()}
    assert np.array_equal(prepared.apply(rows), everything[single])


def test_order_and_further_columns_do_not_matter(file, tmp_path):
    prepared = fit(file)
    order = [7, 3, 1, 5, 4, 2, 0]
    other = write(
        tmp_path / "other.csv",
        ("new", *(NAMES[i] for i in order)),
        [("?", *(row[i] for i in order)) for row in ROWS],
    )
    assert np.array_equal(prepared.apply(other), prepared.apply(file))


def test_missing_cells(file):
    with pytest.raises(ValueError, match=r"weight \(column 3\): 1 of 6 cells missing\n  colour") as error:
        fit(file, missing="error")
    assert "`missing='drop'`" in str(error.value)
    dropped = fit(file, missing="drop")
    assert dropped.apply(file).shape == (4, dropped.n_visible)
    assert dropped.apply(file, missing="mode").shape[0] == 6
    with pytest.raises(ValueError, match=r"weight \(column 3\): 1 cells missing\n"):
        dropped.apply(file, missing="error")


def test_new_values_are_named_or_count_as_missing(file, tmp_path):
    prepared = fit(file)
    odd = write(tmp_path / "odd.csv", rows=[("1", "1", "3", "mauve", "round", "maybe", "", ""), *ROWS])
    with pytest.raises(ValueError, match=r"'mauve' \(known are 'blue', 'green', 'red'\)(.|\n)*'maybe'"):
        prepared.apply(odd, missing="error")
    assert len(prepared.apply(odd, missing="drop")) == 4
    assert len(prepared.apply(odd)) == 7


def test_all_bad_columns_are_named_at_once(tmp_path):
    rows = [
        (i, f"2024-01-{i + 1:02d}", f"person {i}", "" if i else "1", "3" if i else "x1", i % 2, "", i % 3)
        for i in range(30)
    ]
    path = write(tmp_path / "bad.csv", ("nr", "when", "who", "sparse", "odd", "ok", "none", "size"), rows)
    with pytest.raises(ValueError, match="found 5 of 8 that cannot be") as error:
        fit_preparation(path, label=False)
    for words in (
        "when (column 2): dates or times",
        "who (column 3): text with 30 different values, in every row another one",
        "sparse (column 4): 29 of 30 cells missing",
        "odd (column 5): cells that are no numbers: 'x1' in line 2",
        "none (column 7): no value in any row",
        "`drop='when,who,sparse,odd,none'`",
        "Does nr (column 1) only number the rows? Then take `drop='when,who,sparse,odd,none,nr'`",
    ):
        assert words in str(error.value)
    with pytest.warns(ColumnWarning, match=r"nr \(column 1\) seems to number the rows.*`drop='nr'`"):
        prepared = fit_preparation(path, drop="when,who,sparse,odd,none")
    assert prepared.column_names == ("nr", "ok", "size")


def test_columns_by_name_and_number(file):
    for columns in ("size,shape", "2,5", ["size", 5], "-7,-4"):
        assert fit_preparation(file, columns=columns, missing="mode").column_names == ("size", "shape")
    assert fit_preparation(file, columns="8").column_names == ("class",)  # wanted, so no label
    assert fit(file, label="shape,6").column_names == ("size", "weight", "colour", "class")
    with pytest.raises(ValueError, match=r"`drop` must name .*'colur' \(did you mean 'colour'\?\), '9'"):
        fit_preparation(file, drop="colur,9,id")
    with pytest.raises(ValueError, match="`columns` must leave at least one column"):
        fit_preparation(file, columns="on", drop="on")


def test_the_only_text_is_a_label(tmp_path):
    path = write(tmp_path / "flowers.csv", ("width", "kind"), [("1", "a"), ("4", "b"), ("5", "a")])
    assert fit_preparation(path).left_out == ("kind",)
    assert fit_preparation(path, label=False).column_names == ("width", "kind")


def test_tables_of_bits_keep_their_meaning(tmp_path):
    rows = [("0", "1", "1"), ("1", "1", "0"), ("0", "1", "0")]
    prepared = fit_preparation(write(tmp_path / "bits.csv", ("a", "b", "c"), rows), units="bit")
    assert np.array_equal(prepared.apply(tmp_path / "bits.csv"), np.array(rows, dtype=float))


def test_numbers_may_stay_numbers(file):
    prepared = fit_preparation(file, columns="size,weight", numbers="gaussian", missing="drop")
    states = prepared.apply(file)
    assert np.allclose(states.mean(axis=0), 0.0)
    assert np.allclose(states.std(axis=0), 1.0)
    assert np.allclose(prepared.invert(states)["size"], [10.5, 11.0, 29.0, 30.0, 9.0])
    # ln p(x) = ln p(z) - sum ln scale, by a numerical derivative of the transformation
    step = 1e-6
    moved = prepared.apply({"size": [10.0, 10.0 + step], "weight": [3.0, 3.0 + step]})
    assert prepared.log_scale == pytest.approx(-np.log((moved[1] - moved[0]) / step).sum(), rel=1e-6)
    with pytest.raises(ValueError, match=r"done \(column 6\): true/false, which cannot be a Gaussian unit"):
        fit_preparation(file, numbers="gaussian", missing="drop")


@pytest.mark.parametrize("numbers", ["otsu", "median", 12.0])
def test_thresholds_are_those_of_the_binarizer(numbers):
    values = np.random.default_rng(1).normal(12.0, 3.0, size=(50, 3))
    table = dict(zip("abc", values.T, strict=True))
    states = fit_preparation(table, numbers=numbers).apply(table)
    assert np.array_equal(states, pm.fit_binarizer(values, numbers).apply(values))


def test_files_keep_everything(file, tmp_path):
    prepared = fit(file)
    states = prepared.apply(file)
    prepared.save(tmp_path / "rule.json")
    machine = pm.initialize(prepared.n_visible, 2, rng=0)
    machine.save(tmp_path / "machine.safetensors", preparation=prepared, notes={"author": "me"})
    for path in ("rule.json", "machine.safetensors"):
        again = Preparation.load(tmp_path / path)
        assert again.to_json() == prepared.to_json()
        assert np.array_equal(again.apply(file), states)
    assert np.array_equal(pm.RBM.load(tmp_path / "machine.safetensors").weights, machine.weights)
    machine.save(tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="got one without"):
        Preparation.load(tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="`preparation` must make 3 units, as the machine has, got 7"):
        pm.initialize(3, 2, rng=0).save(tmp_path / "no.safetensors", preparation=prepared)
    text = prepared.to_json()
    for damage in (
        text[:-4],
        text.replace('"threshold":', '"treshold":'),
        text.replace('"scale"', "0"),
        "[]",
    ):
        if damage != text:
            with pytest.raises(ValueError, match="`text` is no preparation"):
                Preparation.from_json(damage)


def test_tables_without_a_header_go_by_number(tmp_path):
    rows = [("1.5", "a", "7"), ("2.5", "b", "8"), ("0.5", "a", "9"), ("4", "b", "7")]
    path = write(tmp_path / "plain.csv", None, rows)
    prepared = fit_preparation(path, label=False, drop="3")
    assert prepared.column_names == ("column 1", "column 2")
    used = write(tmp_path / "used.csv", None, [row[:2] for row in rows])
    assert np.array_equal(prepared.apply(used, header=False), prepared.apply(path, header=False))
    with pytest.raises(ValueError, match=r"must have 3 columns as the table .*, or the 2 that it uses"):
        prepared.apply(write(tmp_path / "one.csv", None, [("1",), ("2",)]), header=False)


def test_a_data_frame_is_a_table(file):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(file)
    assert np.array_equal(fit(frame).apply(frame), fit(file).apply(file))
    frame["on"] = pandas.to_datetime(frame["on"])
    assert describe_columns(frame)[6].kind == "date"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2024-01-31", True), ("2024-01-31 12:30:05", True), ("2024-01-31T12:30:05Z", True),
        ("31.1.2024", True), ("1/31/24", True), ("12:30", True), ("3 Jan 2024", True), ("Mar 2020", True),
        ("January 5, 2021", True), ("1-2", False), ("may", False), ("v1.2.3", False), ("a 12", False),
        ("March madness", False), ("192.168.1.17", False),
    ],
)  # fmt: skip
def test_dates(text, wanted):
    assert is_date(text) is wanted


def test_an_index_needs_to_count_or_to_be_called_one():
    rng = np.random.default_rng(0)
    counted = {"n": list(range(7, 27)), "v": list(rng.normal(size=20))}
    assert [info.index for info in describe_columns(counted)] == [True, False]
    named = {"customer_id": list(rng.permutation(1000)[:20]), "v": list(rng.permutation(1000)[:20])}
    assert [info.index for info in describe_columns(named)] == [True, False]
    repeated = {"id": [1.0, 1.0, *range(18)]}
    assert not describe_columns(repeated)[0].index


def test_an_index_is_seen_where_rows_are_held_out(tmp_path):
    rng = np.random.default_rng(1)
    path = write(tmp_path / "export.csv", ("", "size"), [(i, i % 3) for i in range(200)])
    table = read_columns(path)
    part = table.select(np.sort(rng.permutation(200)[:160]))
    assert [describe_column(part, place).index for place in (0, 1)] == [True, False]
    with pytest.warns(ColumnWarning, match="column 1 seems to number the rows"):
        fit_preparation(part)
    wide = table.select(np.arange(0, 200, 2))
    spread = {"n": [float(cell) for cell in wide.cells[0]], "v": list(rng.normal(size=100))}
    assert not describe_columns(spread)[0].index  # a table of its own with every second number
    long = {"key to all": [9e18 + 4096 * i for i in rng.permutation(9)], "v": list(range(9))}
    assert [info.index for info in describe_columns(long)] == [True, False]


def test_more_categories_are_offered_where_values_occur_again(tmp_path):
    rows = [(f"person {i}", f"town {i % 25}", i % 3) for i in range(100)]
    with pytest.raises(ValueError, match=r"`most_categories=25`\.$"):
        fit_preparation(write(tmp_path / "towns.csv", ("who", "where", "size"), rows), label=False)
    rows = [(f"person {i}", "ab"[i % 2] if i % 3 else "", i % 3) for i in range(100)]
    with pytest.raises(ValueError, match=r"34 of 100 cells missing") as error:
        fit_preparation(write(tmp_path / "nobody.csv", ("who", "side", "size"), rows), label=False)
    assert "most_categories" not in str(error.value)


GERMAN = [("Köln", "1.234,5", "0,5", "3"), ("Zürich", "-2,25", "1,0", "12"), ("Köln", "17", "0,5", "4")] * 4
ENGLISH = [
    tuple(field.replace(".", "").replace(",", ".") if "," in field else field for field in row)
    for row in GERMAN
]
HEADS = ("town", "sum", "rate", "n")


def semicolons(path, rows):
    return path.write_bytes("\r\n".join(";".join(row) for row in (HEADS, *rows)).encode("utf-8-sig")) and path


def test_decimal_commas_are_read_on_request(tmp_path):
    german, english = semicolons(tmp_path / "de.csv", GERMAN), write(tmp_path / "en.csv", HEADS, ENGLISH)
    with pytest.raises(ValueError, match=r"sum \(column 2\)(.|\n)*Read commas .* by `decimal=','`") as error:
        fit_preparation(german, label=False)
    assert "rate (column 3): cells that are no numbers: '0,5'" in str(error.value)
    rule = fit_preparation(german, label=False, decimal=",")
    plain = fit_preparation(english, label=False)
    assert [replace(code, number=0) for code in rule.codes] == [replace(c, number=0) for c in plain.codes]
    assert np.array_equal(rule.apply(german), plain.apply(english))
    assert [info.kind for info in describe_columns(german, decimal=",")] == ["text", *["number"] * 3]
    frame = dict(zip(HEADS, map(list, zip(*GERMAN, strict=True)), strict=True))
    assert np.array_equal(fit_preparation(frame, label=False, decimal=",").apply(frame), rule.apply(german))
    # kept in files; a rule without decimal commas is written as before
    assert "decimal" not in plain.to_json()
    again = Preparation.from_json(rule.to_json())
    assert again.decimal == ","
    assert np.array_equal(again.apply(german), plain.apply(english))
    with pytest.raises(ValueError, match=r"`decimal` must be '\.' or ',', got ';'"):
        fit_preparation(german, decimal=";")
    # a point alone may stand between thousands: refused, and shown as it stands in the file
    with pytest.raises(ValueError, match=r"sum \(column 2\): .*'1\.234' in line 14\. Write numbers without"):
        fit_preparation(
            semicolons(tmp_path / "mixed.csv", [*GERMAN, ("Köln", "1.234", "0,5", "1")]), decimal=","
        )


MARKED = [("30", "a"), ("-", "b"), ("41.5", "unknown"), ("-999", "a"), ("52", "b")] * 6


def test_texts_and_numbers_that_stand_for_missing_cells(tmp_path):
    """The same rule as from a table in which these cells are empty; kept for later tables."""
    heads = ("age", "town")
    marked = write(tmp_path / "marked.csv", heads, MARKED)
    gone = ("-", "unknown", "-999")
    empty = write(tmp_path / "empty.csv", heads, [["" if x in gone else x for x in row] for row in MARKED])
    plain = fit_preparation(empty, missing="mode", label=False)
    for marks in ("-,unknown,-999", ["-", "UNKNOWN", -999], ("-", "unknown", np.float32(-999.0))):
        rule = fit_preparation(marked, missing="mode", label=False, missing_values=marks)
        assert rule.codes == plain.codes
        assert np.array_equal(rule.apply(marked), plain.apply(empty))
        again = Preparation.from_json(rule.to_json())
        assert np.array_equal(again.apply(marked), plain.apply(empty))
    assert "missing_values" not in plain.to_json()
    (age, town) = describe_columns(marked, missing_values="-,unknown,-999")
    assert (age.kind, age.n_missing, age.n_distinct) == ("number", 12, 3)
    assert (town.kind, town.n_missing, town.n_distinct) == ("text", 6, 2)
    frame = {"age": [1.0, -999.0, 3.0, 2.0], "on": [True, False, True, True]}
    assert describe_columns(frame, missing_values=-999)[0].n_missing == 1
    for wrong in ("", "-,", [""], True, [None], float("nan"), 10**400):
        with pytest.raises(ValueError, match=r"`missing_values` must be texts or finite numbers"):
            fit_preparation(marked, missing_values=wrong)


def test_a_refusal_proposes_what_may_stand_for_missing_cells(tmp_path):
    """Only texts without digits: ``<5`` and ``12+`` are values, cut off at a limit."""
    table = write(tmp_path / "marked.csv", ("age", "town"), MARKED)
    with pytest.raises(
        ValueError, match=r"age \(column 1\): cells that are no numbers: '-' in line"
    ) as error:
        fit_preparation(table, label=False, drop="town")
    assert str(error.value).endswith(
        "Does '-' stand for missing cells? Then take `missing_values='-'`.\n"
        "If not, leave it out as well by `drop='town,age'`.\n"
        "Leave out rows with missing cells by `missing='drop'`, or fill the cells in by `missing='mode'`."
    )
    assert describe_columns(table)[0].marks == ("-",)
    limits = write(
        tmp_path / "limits.csv", ("age",), [["<5"] if row[0] == "-" else row[:1] for row in MARKED]
    )
    with pytest.raises(ValueError, match="found 1 of 1") as error:
        fit_preparation(limits, label=False)
    assert "stand for missing" not in str(error.value)


def test_options_that_were_given_stay_in_the_remedy(tmp_path):
    """Who copies the proposed `drop` does not get the columns back that were left out before."""
    rows = [(i, f"2024-01-{i % 28 + 1:02d}", f"name {i}", i % 3) for i in range(40)]
    table = write(tmp_path / "t.csv", ("id", "since", "name", "n"), rows)
    with pytest.raises(ValueError, match=r"Leave it out as well by `drop='id,name,since'`"):
        fit_preparation(table, label=False, drop="id,name")


@pytest.mark.parametrize("missing", ["error", "drop", "mode"])
def test_cells_that_are_no_numbers_do_not_count_as_missing(tmp_path, missing):
    rule = fit_preparation(write(tmp_path / "en.csv", HEADS, ENGLISH), label=False)
    german = semicolons(tmp_path / "de.csv", GERMAN)
    words = r"with a decimal point; .*\n  sum \(column 2\): '1\.234,5', '-2,25'\n  rate \(column 3\): '0,5'"
    with pytest.raises(ValueError, match=words):
        rule.apply(german, missing=missing)
    with pytest.raises(ValueError, match=words):
        rule.known_cells(read_columns(german))
    comma = fit_preparation(german, label=False, decimal=",")
    with pytest.raises(
        ValueError, match=r"with a decimal comma; .*\n  sum \(column 2\): '1234\.5', '-2\.25'"
    ):
        comma.apply(tmp_path / "en.csv", missing=missing)
    infinite = write(tmp_path / "inf.csv", HEADS, [*ENGLISH, ("Köln", "inf", "0.5", "3")])
    with pytest.raises(ValueError, match=r"sum \(column 2\): 'inf'"):
        rule.apply(infinite, missing=missing)
