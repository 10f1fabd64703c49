"""The store: a line a run, whole lines only, no run twice."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace

import pytest

from paramagnet.experiments.store import MOST_BYTES, RunRecord, Store, TornLineWarning

RECORD = RunRecord(
    digest="0123456789abcdef",
    sweep="tiny",
    table="",
    dataset="toy",
    n_visible=20,
    n_hidden=3,
    visible="spin",
    hidden="bit",
    c=-5.0,
    scheme="layer-correlation",
    gain=0.25,
    sigma=0.123456,
    trial=1,
    seed=0,
    epochs=(0, 1, 10),
    log_likelihood=(-14.1786, -13.0, -9.84123),
    held_out=(-14.2, -13.1, -10.0),
    error=(0.0, 0.0, 0.0),
    seconds=1.5,
    version="0.1.0",
    commit="abc1234",
    environment="somewhere",
    finished="2026-01-01T00:00:00Z",
)


def other(digest: str, **changes: object) -> RunRecord:
    return replace(RECORD, digest=digest, **changes)


def test_a_line_gives_the_record_back():
    for record in (
        RECORD,
        replace(RECORD, error=(0.0, 0.012, 0.0034)),
        replace(RECORD, log_likelihood=(-1e300, math.inf, -1.0)),
    ):
        line = record.to_line()
        assert line.count("\n") == 1
        again = RunRecord.from_line(line)
        if math.inf in record.log_likelihood:
            assert math.isnan(again.log_likelihood[1])
        else:
            assert again == record


def test_numbers_are_rounded_to_six_digits():
    record = replace(RECORD, log_likelihood=(-9.841234567, -573.8712345, -0.000012345678))
    assert RunRecord.from_line(record.to_line()).log_likelihood == (-9.84123, -573.871, -1.23457e-05)


def test_missing_held_out_points_are_nan():
    again = RunRecord.from_line(replace(RECORD, held_out=(math.nan,) * 3).to_line())
    assert all(map(math.isnan, again.held_out))


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", RECORD.to_line()[:-20], RECORD.to_line().replace("-13,", "")]
)
def test_other_lines_are_refused(line):
    with pytest.raises(ValueError):
        RunRecord.from_line(line)


def test_records_are_appended_once(tmp_path):
    path = tmp_path / "new" / "tiny.jsonl"
    assert Store(path).records() == []
    with Store(path) as store:
        assert store.append(RECORD)
        assert store.append(other("b"))
        assert not store.append(replace(RECORD, seconds=9.0))
        assert RECORD.digest in store
        assert len(store) == 2
    with Store(path) as store:
        assert not store.append(RECORD)
        assert store.append(other("c"))
    assert Store(path).records() == [RECORD, other("b"), other("c")]


def test_a_torn_line_is_cut_off_with_a_warning(tmp_path):
    path = tmp_path / "tiny.jsonl"
    whole = RECORD.to_line().encode()
    second = other("b").to_line().encode()
    for cut in (1, 17, len(second) - 2):
        path.write_bytes(whole + second[:cut])
        assert Store(path).records() == [RECORD]
        store = Store(path)
        with pytest.warns(TornLineWarning, match=r"incomplete .* was cut off"):
            store.__enter__()
        with contextlib.closing(store):
            assert len(store) == 1
            store.append(other("c"))
        assert Store(path).records() == [RECORD, other("c")]


def test_a_line_that_lacks_its_end_alone_is_kept(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(RECORD.to_line().rstrip("\n"))
    with Store(path) as store:
        store.append(other("b"))
    assert Store(path).records() == [RECORD, other("b")]


def test_damage_elsewhere_is_an_error(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(RECORD.to_line() + "rubbish\n" + other("b").to_line())
    with pytest.raises(ValueError, match="line 2, is no record"):
        Store(path).records()


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "tiny.jsonl"
    with Store(path), pytest.raises(RuntimeError, match="Another sweep is writing"), Store(path):
        pass
    with pytest.raises(RuntimeError, match="must be open"):
        Store(path).append(RECORD)


def test_records_that_do_not_fit_are_refused(tmp_path):
    long = replace(RECORD, environment="x" * 1000)
    with (
        Store(tmp_path / "tiny.jsonl") as store,
        pytest.raises(ValueError, match="must not exceed 1000 bytes"),
    ):
        store.append(long)


def test_a_long_record_is_written_with_fewer_digits():
    epochs = tuple(range(24))
    values = tuple(-1000.0 - 0.111111 * epoch for epoch in epochs)
    long = replace(RECORD, epochs=epochs, log_likelihood=values, held_out=values, error=(0.012,) * 24)
    for name in ("s" * 40, "s" * 60):
        record = replace(long, sweep=name)
        assert len(record.to_line().encode()) <= MOST_BYTES
        again = RunRecord.from_line(record.to_line())
        assert again.log_likelihood == pytest.approx(values, rel=1e-3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("finished", None),
        ("seconds", None),
        ("c", "x"),
        ("n_hidden", True),
        ("trial", "0"),
        ("epochs", ["0"]),
    ],
)
def test_a_record_with_a_value_of_the_wrong_kind_is_named(key, value, tmp_path):
    content = json.loads(RECORD.to_line()) | {key: value}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(content) + "\n" + other("b").to_line())
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 1, is no record: `{key}` (is|are) "):
        Store(path).records()


def test_records_of_older_versions_have_no_settings():
    assert "settings" not in RECORD.to_line()
    newer = replace(RECORD, settings="0123abcd")
    assert RunRecord.from_line(newer.to_line()) == newer
