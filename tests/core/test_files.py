"""Files of arrays: the same bytes every time, damage noticed, old files read, nothing left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from paramagnet import PCD, RBM, DivergenceError, load_checkpoint, train
from paramagnet._files import checksum, read_arrays, write_arrays, write_atomically
from paramagnet.learning.optimizers import SGD

DATA = np.random.default_rng(1).choice([-1.0, 1.0], size=(12, 5))


def draw_machine(seed=0):
    rng = np.random.default_rng(seed)
    return RBM(rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3), "spin", "bit")


def draw_state():
    """In the middle of an epoch, with chains, an order of the points and records."""
    states = []
    options = {"gradient": PCD(6, 1, 1), "batch_size": 5, "evaluate": 1, "rng": 3}

    def look(state):
        states.append(state)
        if state.update == 5:
            raise StopIteration

    train(draw_machine(), DATA, epochs=3, callback=look, **options)
    return states[-1]


LOADERS = {"model": RBM.load, "checkpoint": load_checkpoint}


@pytest.fixture(scope="module")
def payloads(tmp_path_factory):
    """The bytes of a model and of a checkpoint."""
    folder = tmp_path_factory.mktemp("files")
    draw_machine().save(folder / "model")
    draw_state().save(folder / "checkpoint")
    return {name: (folder / name).read_bytes() for name in LOADERS}


# Damage


def damage(payload, chance):
    """A copy with one flipped bit, or cut off somewhere."""
    if chance.random() < 0.25:
        return payload[: chance.randrange(len(payload))]
    place, bit = chance.randrange(len(payload)), chance.randrange(8)
    return payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]


def assert_refused(load, path, payload):
    path.write_bytes(payload)
    with pytest.raises(ValueError, match=str(path)):
        load(path)


@pytest.mark.parametrize("name", list(LOADERS))
@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_damaged_files_are_refused(name, count, payloads, tmp_path):
    chance = random.Random(count)
    path = tmp_path / name
    path.write_bytes(payloads[name])
    LOADERS[name](path)
    for _ in range(count):
        assert_refused(LOADERS[name], path, damage(payloads[name], chance))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LOADERS))
def test_every_flipped_bit_and_every_cut_is_noticed(name, payloads, tmp_path):
    payload, path = payloads[name], tmp_path / name
    for place in range(len(payload)):
        assert_refused(LOADERS[name], path, payload[:place])
        for bit in range(8):
            flipped = payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]
            assert_refused(LOADERS[name], path, flipped)


def header_of(payload):
    length = struct.unpack("<Q", payload[:8])[0]
    return json.loads(payload[8 : 8 + length]), payload[8 + length :]


def with_header(header, arrays):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + arrays


def test_a_number_that_differs_in_its_last_bit_is_noticed(payloads, tmp_path):
    header, arrays = header_of(payloads["model"])
    damaged = arrays[:-8] + bytes([arrays[-8] ^ 1]) + arrays[-7:]
    path = tmp_path / "model"
    path.write_bytes(with_header(header, damaged))
    with pytest.raises(ValueError, match=r"`path` is damaged: its content .* checksum .*model"):
        RBM.load(path)


def test_a_file_that_lost_its_checksum_is_refused(payloads, tmp_path):
    header, arrays = header_of(payloads["model"])
    del header["__metadata__"]["checksum"]
    path = tmp_path / "model"
    path.write_bytes(with_header(header, arrays))
    with pytest.raises(ValueError, match="`path` is damaged"):
        RBM.load(path)
    # A version that promises none is not believed where there is one.
    header, arrays = header_of(payloads["model"])
    header["__metadata__"] |= {"version": "1", "visible": "bit"}
    path.write_bytes(with_header(header, arrays))
    with pytest.raises(ValueError, match="`path` is damaged"):
        RBM.load(path)


def test_files_of_version_1_have_no_checksum_and_are_read(payloads, tmp_path):
    for name in LOADERS:
        path = tmp_path / name
        path.write_bytes(payloads[name])
        header, _ = header_of(payloads[name])
        assert header["__metadata__"]["version"] == "2"
        old = {k: v for k, v in header["__metadata__"].items() if k != "checksum"} | {"version": "1"}
        save_file(load_file(path), tmp_path / "old", old)
        LOADERS[name](tmp_path / "old").save(tmp_path / "again")  # as version 2
        assert (tmp_path / "again").read_bytes() == payloads[name]


def test_a_copy_made_with_other_tools_keeps_the_checksum(payloads, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(payloads["model"])
    save_file(load_file(path), path, header_of(payloads["model"])[0]["__metadata__"])
    assert np.array_equal(RBM.load(path).weights, draw_machine().weights)


def test_checksums_are_those_of_the_bytes():
    # BLAKE2b of nothing, RFC 7693; and parts count as one text
    assert checksum([], 64).startswith("786a02f742015903c6c6fd852552d272")
    assert checksum([b"ab", b"c"]) == checksum([b"abc"]) != checksum([b"abd"])
    assert len(checksum([b""], 4)) == 8


# The same bytes


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name, thing in (("machine", draw_machine()), ("state", draw_state())):
        thing.save(tmp_path / name)
        first = (tmp_path / name).read_bytes()
        for _ in range(5):
            thing.save(tmp_path / name)
            assert (tmp_path / name).read_bytes() == first
    state = draw_state()
    state.save(tmp_path / "x")
    replace(state, settings=dict(reversed(state.settings.items()))).save(tmp_path / "y")
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    metadata = {"one": "1", "two": "2", "three": "3"}
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.zeros((0, 2))}
    write_arrays(tmp_path / "x", arrays, "test", metadata)
    turned = {name: np.asfortranarray(arrays[name]) for name in reversed(arrays)}
    write_arrays(tmp_path / "y", turned, "test", dict(reversed(metadata.items())))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    found, words = read_arrays(tmp_path / "y", "test")
    assert np.array_equal(found["b"], arrays["b"])
    assert found["a"].shape == (0, 2)
    assert words.items() >= metadata.items()
    # Others read it too: its arrays begin at multiples of eight bytes.
    assert np.array_equal(load_file(tmp_path / "x")["b"], arrays["b"])
    assert struct.unpack("<Q", (tmp_path / "x").read_bytes()[:8])[0] % 8 == 0


# Sizes that a file only declares


@pytest.mark.parametrize("name", list(LOADERS))
def test_declared_sizes_that_are_absurd_are_refused(name, payloads, tmp_path):
    path, big = tmp_path / name, 2**40
    header, arrays = header_of(payloads[name])
    tensor = "weights" if name == "model" else "parameters"
    for shape, ends in (([big, big], 8 * big * big), ([big], 8 * big), ([2**62, 2**62], 8)):
        changed = header | {tensor: {"dtype": "F64", "shape": shape, "data_offsets": [0, ends]}}
        assert_refused(LOADERS[name], path, with_header(changed, arrays))
    assert_refused(LOADERS[name], path, struct.pack("<Q", 2**60) + payloads[name][8:])
    nested = b"[" * 50_000
    assert_refused(LOADERS[name], path, struct.pack("<Q", len(nested)) + nested + arrays)


def test_a_file_larger_than_memory_is_refused_unread(payloads, tmp_path):
    path, size = tmp_path / "model", 2**43
    header, _ = header_of(payloads["model"])
    header["weights"] = {"dtype": "F64", "shape": [2**20, 2**20], "data_offsets": [0, size]}
    for name in ("visible_bias", "hidden_bias"):
        header[name] = {"dtype": "F64", "shape": [0], "data_offsets": [size, size]}
    path.write_bytes(with_header(header, b""))
    try:
        os.truncate(path, path.stat().st_size + size)  # a hole: it takes no room on the disk
    except OSError:
        pytest.skip("the file system holds no file of 8 terabytes")
    with pytest.raises(ValueError, match="`path` must fit into the memory of this computer"):
        RBM.load(path)


@pytest.mark.parametrize(
    "change", [{"n_visible": 2**70}, {"n_hidden": 2**62}, {"n_steps": 2**70}, {"epoch": -1}, {"batch": 1.5}]
)
def test_a_checkpoint_that_declares_absurd_counts_is_refused(change, tmp_path):
    path = tmp_path / "checkpoint"
    draw_state().save(path)
    header, _ = header_of(path.read_bytes())
    content = json.loads(header["__metadata__"]["state"]) | change
    write_arrays(path, load_file(path), "paramagnet.checkpoint", {"state": json.dumps(content)})
    with pytest.raises(ValueError, match="`path` is a damaged checkpoint"):
        load_checkpoint(path)


# Temporary files


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    names = [".model.0123456789ab.tmp", ".model.ff.tmp"]
    others = [".model.x.0123.tmp", ".other.0123.tmp", ".model..tmp", "model.0123.tmp", ".model.0123.tmpx"]
    for name in names + others:
        (tmp_path / name).write_bytes(b"half")
    draw_machine().save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted(["model", *others])


WRITER = """
import os, sys, time
from paramagnet import _files

def hang(*_):
    print("writing", flush=True)
    time.sleep(60)

os.fsync = hang
_files.write_atomically(sys.argv[1], b"from another process")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_what_a_living_process_is_writing_is_left_to_it(tmp_path):
    path = tmp_path / "file"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            (temporary,) = tmp_path.iterdir()
            write_atomically(path, b"first")
            assert temporary.exists()
        finally:
            process.send_signal(signal.SIGKILL)
    assert temporary.exists()
    write_atomically(path, b"second")
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_bytes() == b"second"


MANY = """
import sys
from paramagnet import _files
for number in range(150):
    _files.write_atomically(sys.argv[1], sys.argv[2].encode() * 1000)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "file"
    commands = [[sys.executable, "-c", MANY, str(path), letter] for letter in "abc"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert path.read_bytes() in {letter * 1000 for letter in (b"a", b"b", b"c")}
    assert os.listdir(tmp_path) == ["file"]


# Errors between processes


def diverge(_):
    """Raises DivergenceError."""
    train(draw_machine(), DATA, epochs=3, optimizer=SGD(1e120), gradient=PCD(6, 1, 1), rng=0)


def test_a_divergence_comes_back_from_a_process_pool():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        error = pool.submit(diverge, None).exception(timeout=120)
    assert isinstance(error, DivergenceError)
    with pytest.raises(DivergenceError) as here:
        diverge(None)
    assert str(error) == str(here.value)
    assert error.args == here.value.args
    assert np.array_equal(error.state.parameters, here.value.state.parameters)
    assert np.array_equal(error.state.chains.visible, here.value.state.chains.visible)
    assert error.state.settings == here.value.state.settings
    assert error.state.rng_state == here.value.state.rng_state
