"""Merging: records of several machines, every run once, no disagreement unnoticed, no file lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_store import RECORD, other
from typer.testing import CliRunner

from paramagnet.cli import app
from paramagnet.sweeps.merge import merge_records, merge_stores
from paramagnet.sweeps.store import Store, TornLineWarning

AGAIN = replace(
    RECORD, seconds=7.0, environment="elsewhere", commit="", version="9", finished="2026-01-02T00:00:00Z"
)
DISAGREEING = replace(RECORD, held_out=(-14.2, -13.1, -10.1))


def write(path, *records):
    path.parent.mkdir(exist_ok=True)
    with Store(path) as store:
        for record in records:
            store.append(record)
    return path


@pytest.fixture
def stores(tmp_path):
    return write(tmp_path / "a.jsonl", RECORD, other("b")), write(tmp_path / "b.jsonl", other("c"), AGAIN)


def test_each_run_is_kept_once():
    merged = merge_records({"one": [RECORD, other("b")], "two": [other("c"), AGAIN]})
    assert merged == ([RECORD, other("b"), other("c")], 0)


@pytest.mark.parametrize(
    "changed", ["sweep", "n_visible", "sigma", "epochs", "log_likelihood", "error", "gain"]
)
def test_disagreements_name_the_run_and_both_files(changed):
    value = getattr(RECORD, changed)
    new = value + "x" if changed == "sweep" else (7,) * 3 if isinstance(value, tuple) else 7
    two = replace(RECORD, **{changed: new})
    message = rf"one\.jsonl and two\.jsonl disagree about the run 01234567 .*: `{changed}` is "
    with pytest.raises(ValueError, match=message):
        merge_records({"one.jsonl": [RECORD], "two.jsonl": [two]})
    assert merge_records({"one": [RECORD], "two": [two]}, keep_first=True) == ([RECORD], 1)


def test_missing_held_out_points_are_no_disagreement():
    nothing = replace(RECORD, held_out=(float("nan"),) * 3)
    again = replace(RECORD, held_out=(float("nan"),) * 3, seconds=3.0)
    assert len(merge_records({"one": [nothing], "two": [again]})[0]) == 1


def test_files_are_written_whole_and_not_over_others(stores, tmp_path):
    out = tmp_path / "c.jsonl"
    (merged,) = merge_stores(stores, out)
    assert (merged.path, merged.n_records, merged.n_given, merged.n_conflicts) == (out, 3, 4, 0)
    assert Store(out).records() == [RECORD, other("b"), other("c")]
    with pytest.raises(FileExistsError, match=r"must be a new file or one of those to merge, .*c\.jsonl"):
        merge_stores(stores[:1], out)
    merge_stores(stores[:1], out, force=True)
    assert len(Store(out).records()) == 2
    merge_stores([out, stores[1]], out)
    assert len(Store(out).records()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_a_file_that_a_sweep_writes_to_is_left_alone(stores):
    with Store(stores[0]), pytest.raises(RuntimeError, match="Another sweep is writing"):
        merge_stores(stores, stores[0])
    with Store(stores[1]):  # reading does no harm
        merge_stores(stores, stores[0])


def test_nothing_is_written_where_records_disagree(stores, tmp_path):
    bad = write(tmp_path / "bad" / "b.jsonl", DISAGREEING)
    before = stores[0].read_bytes()
    with pytest.raises(ValueError, match="disagree"):
        merge_stores([stores[0], bad], stores[0])
    assert stores[0].read_bytes() == before


def test_folders_are_merged_file_by_file(tmp_path):
    one, two, out = tmp_path / "one", tmp_path / "two", tmp_path / "out"
    write(one / "toy.jsonl", RECORD)
    write(two / "toy.jsonl", AGAIN, other("b"))
    write(two / "ulc.jsonl", other("c"))
    merged = merge_stores([one, two], out)
    assert [(file.path.name, file.n_records) for file in merged] == [
        ("toy.jsonl", 2),
        ("ulc.jsonl", 1),
    ]
    with pytest.raises(FileExistsError):
        merge_stores([one, two], out)
    merge_stores([one, two], one)
    assert len(Store(one / "toy.jsonl").records()) == 2
    assert len(Store(one / "ulc.jsonl").records()) == 1
    write(tmp_path / "three" / "ulc.jsonl", replace(other("c"), n_hidden=5))
    write(tmp_path / "three" / "toy.jsonl", other("d"))
    before = (one / "toy.jsonl").read_bytes()
    with pytest.raises(ValueError, match="disagree"):
        merge_stores([one, tmp_path / "three"], one)
    assert (one / "toy.jsonl").read_bytes() == before  # though these agreed


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "must name at least one"),
        (["nowhere.jsonl"], "must exist, .*nowhere.jsonl does not"),
        (["a.jsonl", "empty"], "files only or folders only"),
        (["empty"], "must hold .jsonl files"),
    ],
)
def test_errors_say_what_is_wrong(names, message, stores, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        merge_stores([tmp_path / name for name in names], tmp_path / "out.jsonl")


def test_the_command(stores, tmp_path):
    out, bad = tmp_path / "c.jsonl", write(tmp_path / "bad" / "b.jsonl", DISAGREEING)
    command = ["merge", *map(str, stores), "--out", str(out)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.output.strip() == f"{out}: 3 records, 1 given more than once"
    command = ["merge", str(out), str(bad), "--out", str(out), "--keep-first"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.output.strip() == f"{out}: 3 records, 1 given more than once, 1 runs with different results"
    assert RECORD in Store(out).records()


def test_folders_of_folders_are_merged_too(tmp_path):
    for name, digest in (("one", "b"), ("two", "c")):
        (tmp_path / name / "win").mkdir(parents=True)
        write(tmp_path / name / "a.jsonl", RECORD)
        write(tmp_path / name / "win" / "a.jsonl", other(digest))
    merge_stores([tmp_path / "one", tmp_path / "two"], tmp_path / "all")
    assert Store(tmp_path / "all" / "a.jsonl").records() == [RECORD]
    assert len(Store(tmp_path / "all" / "win" / "a.jsonl").records()) == 2


def test_what_is_no_record_is_not_lost_without_a_word(tmp_path):
    diary = tmp_path / "diary.jsonl"
    diary.write_text("this is my diary")
    with (
        pytest.warns(TornLineWarning, match=r"The last line of .*diary\.jsonl is incomplete"),
        pytest.raises(ValueError, match=r"must be files of records, .*diary\.jsonl holds none"),
    ):
        merge_stores([diary], diary)
    assert diary.read_text() == "this is my diary"
    torn = write(tmp_path / "torn.jsonl", RECORD)
    torn.write_text(torn.read_text() + other("b").to_line()[:40])
    with pytest.warns(TornLineWarning, match=r"The last line of .*torn\.jsonl is incomplete"):
        merge_stores([torn], tmp_path / "out.jsonl")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    write(tmp_path / "one" / "a.jsonl", RECORD)
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="`--out` must be a folder where folders are merged"):
        merge_stores([tmp_path / "one"], tmp_path / "out")


def test_epochs_that_older_records_lack_are_no_disagreement():
    newer = replace(RECORD, shown=(10,))
    assert merge_records({"one": [RECORD], "two": [newer]}) == ([RECORD], 0)
    with pytest.raises(ValueError, match="`shown` is"):
        merge_records({"one": [newer], "two": [replace(RECORD, shown=(1, 10))]})


def test_settings_that_older_records_lack_are_no_disagreement():
    newer = replace(RECORD, settings="0123abcd")
    assert merge_records({"one": [RECORD], "two": [newer]}) == ([RECORD], 0)
    with pytest.raises(ValueError, match="`settings` is"):
        merge_records({"one": [newer], "two": [replace(RECORD, settings="other")]})
