"""The store: a line a run, whole lines only, no run twice."""

from __future__ import annotations

import contextlib
import json
import math
import random
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from paramagnet.sweeps.store import MOST_BYTES, RunRecord, Store, TornLineWarning

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


def without_checksum(record: RunRecord) -> str:
    """The line as older versions wrote it."""
    line, mark, _ = record.to_line().rpartition(',"checksum":')
    assert mark
    return line + "}"


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
        with pytest.warns(TornLineWarning, match=r"The last line of .*tiny\.jsonl is incomplete"):
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
        assert len(without_checksum(record).encode()) < MOST_BYTES
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
        ("epochs", [-1, 1, 2]),
        ("n_hidden", 2**70),
        ("trial", -1),
        ("shown", [2**70]),
    ],
)
def test_a_record_with_a_value_of_the_wrong_kind_is_named(key, value, tmp_path):
    content = json.loads(without_checksum(RECORD)) | {key: value}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(content) + "\n" + other("b").to_line())
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 1, is no record: `{key}` (is|are) "):
        Store(path).records()


def test_records_of_older_versions_have_no_settings():
    assert "settings" not in RECORD.to_line()
    assert "shown" not in RECORD.to_line()
    newer = replace(RECORD, settings="0123abcd", shown=(1, 10))
    assert RunRecord.from_line(newer.to_line()) == newer


# Damage


def test_lines_of_older_versions_have_no_checksum(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{without_checksum(RECORD)}\n{other('b').to_line()}{without_checksum(other('c'))}\r\n")
    assert Store(path).records() == [RECORD, other("b"), other("c")]
    assert Store(path).records()[1].to_line() == other("b").to_line()


def test_the_committed_records_are_read():
    folder = Path(__file__).parents[2] / "results"
    paths = sorted(folder.rglob("*.jsonl"))
    for path in paths:
        assert len(Store(path).records()) == path.read_bytes().count(b"\n")
    assert paths


def test_a_number_that_was_changed_is_noticed(tmp_path):
    path = tmp_path / "tiny.jsonl"
    for old, new in (("-9.84123", "-9.84223"), ('"checksum"', '"chdcksum"'), ('{"digest"', '{ "digest"')):
        line = RECORD.to_line().replace(old, new)
        assert line != RECORD.to_line()
        path.write_text(other("b").to_line() + line)
        words = r"tiny\.jsonl, line 2, is no record: .* Remove the line to have its run repeated\."
        for use in (Store(path).records, Store(path).__enter__):
            with pytest.raises(ValueError, match=words):
                use()


def look_at(path):
    """The records of a file and of the same file once it was opened to be written to, and what was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = Store(path).records()
            with Store(path) as store:
                opened = store.records()
        except ValueError as error:
            return [], [], str(error)
    return found, opened, " ".join(str(warning.message) for warning in said)


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_a_damaged_file_is_refused_or_repaired_with_a_warning(count, tmp_path):
    path, chance = tmp_path / "tiny.jsonl", random.Random(count)
    true = [replace(RECORD, settings="0123abcd", shown=(10,)), other("b"), other("c", trial=2)]
    payload = "".join(record.to_line() for record in true).encode()
    ends = {place + 1 for place, byte in enumerate(payload) if byte == 10}
    for number in range(count):
        if number % 4:
            place, bit = chance.randrange(len(payload)), chance.randrange(8)
            damaged = payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]
        else:  # within a line: at its end, or but for its end, whole records are left, and nothing is damaged
            cuts = sorted(set(range(len(payload))) - ends - {end - 1 for end in ends} - {0})
            damaged = payload[: chance.choice(cuts)]
        path.write_bytes(damaged)
        found, opened, said = look_at(path)
        assert "tiny.jsonl" in said, damaged
        assert found == opened == true[: len(found)]
        assert len(found) < len(true)


@pytest.mark.slow
def test_every_flipped_bit_of_a_line_is_noticed(tmp_path):
    line = RECORD.to_line().encode()
    for place in range(len(line) - 1):
        for bit in range(8):
            damaged = line[:place] + bytes([line[place] ^ 1 << bit]) + line[place + 1 :]
            with pytest.raises(ValueError):
                [RunRecord.from_line(part.decode()) for part in damaged.split(b"\n") if part]


def test_lines_that_are_absurd_are_refused_and_not_read(tmp_path):
    path = tmp_path / "tiny.jsonl"
    for content in (b"[" * 900 + b"\n", b"[" * 10**6, b"\0" * 10**6):
        path.write_bytes(RECORD.to_line().encode() + content + b"\n")
        with pytest.raises(ValueError, match=r"tiny\.jsonl, line 2, is no record"):
            Store(path).records()
    path.write_bytes(b"[" * 10**6)
    with pytest.raises(ValueError, match=r"tiny\.jsonl is no record: it has more than 10000"):
        Store(path).__enter__()
    path.write_bytes(RECORD.to_line().replace('"c":-5.0', '"c":NaN').encode())
    with pytest.raises(ValueError, match=r"line 1, is no record"):
        Store(path).records()
    path.write_text(without_checksum(RECORD).replace('"c":-5.0', '"c":NaN') + "\n")
    with pytest.raises(ValueError, match=r"line 1, is no record: NaN is no number"):
        Store(path).records()
