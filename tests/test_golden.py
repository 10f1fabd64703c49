"""The same seed gives the same numbers, files and digests as before: results that were recorded once.

The cases and the script that records them are in ``golden/make.py``. Where a comparison fails after a change
that was not meant to move bits, the change is wrong.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import paramagnet as pm
from golden import make
from paramagnet.learning.resuming import OrderOfSumsWarning
from paramagnet.sweeps.store import RunRecord, Store

BITS = make.read("bits.json").get(make.signature())
VALUES, FACTS, DIGESTS = (make.read(f"{name}.json") for name in ("values", "facts", "digests"))
RECIPE = make.ROOT / "results" / "recipe"  # its plan has no specifications: tests/studies
STORES = sorted(path for path in (make.ROOT / "results").rglob("*.jsonl") if RECIPE not in path.parents)
OTHER_MACHINE = f"no bits were recorded with {make.signature()}: `python tests/golden/make.py` records them"
needs_bits = pytest.mark.skipif(BITS is None, reason=OTHER_MACHINE)


def require_same_bits(name, arrays):
    found = {key: make.hash_of(array) for key, array in arrays.items()}
    changed = {key: make.shown(arrays[key]) for key in found if found[key] != BITS[name].get(key)}
    assert found.keys() == BITS[name].keys()
    assert not changed, f"bits changed; first numbers before: { ({k: VALUES[name][k] for k in changed}) }"


def test_every_case_is_recorded():
    assert VALUES.keys() == make.CASES.keys()
    assert all(part.keys() == make.CASES.keys() for part in make.read("bits.json").values())


@pytest.mark.parametrize("name", make.EXACT_CASES)
def test_exact_results_are_the_recorded_ones(name):
    arrays = make.compute(name)
    assert arrays.keys() == VALUES[name].keys()
    for key, array in arrays.items():
        np.testing.assert_allclose(make.shown(array), VALUES[name][key], rtol=1e-9, atol=1e-10, err_msg=key)
    if BITS is not None:
        require_same_bits(name, arrays)


@needs_bits
@pytest.mark.parametrize("name", make.SAMPLED_CASES)
def test_sampled_results_are_the_recorded_ones(name):
    require_same_bits(name, make.compute(name))


# Checkpoints


@pytest.mark.parametrize("name", make.training_cases())
def test_a_checkpoint_says_what_it_said(name):
    with threadpool_limits(1, "blas"):
        facts = make.checkpoint_facts(make.interrupted_state(name))
    for key, value in FACTS[name].items():  # further facts may come
        if key == "settings":
            assert facts[key] | value == facts[key]
        else:
            assert facts[key] == value


@needs_bits
def test_checkpoints_are_the_recorded_files():
    recorded = make.read("files.json").get(make.signature())
    assert recorded is not None
    with threadpool_limits(1, "blas"):
        changed = [name for name, found in make.file_hashes().items() if found != recorded[name]]
    assert not changed, "where the file format changed on purpose, run `python tests/golden/make.py`"


@pytest.mark.parametrize("name", make.OLD_CHECKPOINTS)
def test_a_checkpoint_of_the_first_format_goes_on(name):
    state = pm.load_checkpoint(make.old_file(name))
    assert state.update == make.MIDDLE[make.training_cases()[name][2]]
    assert state.settings == FACTS[name]["settings"]
    sampled = not name.startswith("exact-") and "gaussian" not in name
    said = pytest.warns(OrderOfSumsWarning, match="lookup-1") if sampled else nullcontext()
    with threadpool_limits(1, "blas"), said:
        result = make.start_training(name, state)
    assert result.finished
    case, weights = f"train {name}", result.rbm.weights
    if sampled:  # the same random numbers, other roundings: `Adam` turns those of a tiny slope into steps
        found, wanted = np.array(make.shown(weights)), np.array(VALUES[case]["weights"])
        assert np.mean(np.abs(found - wanted) < 1e-4) > 0.7
        np.testing.assert_allclose(found, wanted, atol=0.2)
    elif BITS is not None:
        assert make.hash_of(weights) == BITS[case]["weights"]
    elif name.startswith("exact-"):
        np.testing.assert_allclose(make.shown(weights), VALUES[case]["weights"], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("pair", make.OLD_MACHINES)
def test_a_machine_of_the_first_format_is_read(pair):
    read, expected = pm.RBM.load(make.old_file(pair)), make.machine(*pair.split("-"))
    assert (read.visible, read.hidden) == (expected.visible, expected.hidden)
    for name in ("weights", "visible_bias", "hidden_bias"):
        np.testing.assert_array_equal(getattr(read, name), getattr(expected, name))


# Specifications and records


def test_no_specification_is_lost():
    assert DIGESTS.keys() == make.spec_sources().keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_the_runs_of_a_specification_keep_their_digests(name):
    assert make.spec_digests(name) == DIGESTS[name]


@pytest.mark.parametrize("path", STORES, ids=lambda path: str(path.relative_to(make.ROOT / "results")))
def test_committed_records_are_read_and_belong_to_their_specification(path):
    records = Store(path).records()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(records) == len(lines)
    for record, line in zip(records, lines, strict=True):
        before, again = json.loads(line), json.loads(record.to_line())
        assert before == {key: again[key] for key in before}  # later versions may write more keys
    name = path.relative_to(make.ROOT / "results").with_suffix("").as_posix()
    spec = make.read_source(name)
    digests = {run.digest for run in spec.runs()}
    assert {record.digest for record in records} <= digests
    assert {record.settings for record in records} <= {"", spec.settings}


@pytest.mark.skipif(not STORES, reason="a source distribution has no records")
def test_a_record_without_settings_is_one_of_older_versions():
    content = json.loads(STORES[0].read_text(encoding="utf-8").splitlines()[0])
    content.pop("settings", None)
    assert RunRecord.from_line(json.dumps(content)).settings == ""


# The harness itself


def test_the_last_bit_of_a_number_is_noticed():
    array = np.linspace(0.0, 1.0, 5)
    other = array.copy()
    other[2] = np.nextafter(other[2], 1.0)
    assert make.hash_of(array) == make.hash_of(array.copy())
    assert make.hash_of(other) != make.hash_of(array)
    assert make.hash_of(array.reshape(1, 5)) != make.hash_of(array)


def test_the_order_of_a_header_does_not_count():
    def file(header):
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + b"data"

    one, other = file({"a": 1, "b": {"c": 2, "d": 3}}), file({"b": {"d": 3, "c": 2}, "a": 1})
    assert hashlib.sha256(one).digest() != hashlib.sha256(other).digest()
    assert make.sorted_file(one) == make.sorted_file(other) != make.sorted_file(file({"a": 2}))
