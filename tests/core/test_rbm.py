"""The machine: energies and conditionals against loops, changes of variables, files and their traps."""

import copy
import dataclasses
import itertools
import math
import os
import pickle
import stat
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from paramagnet._files import write_atomically
from paramagnet.rbm import RBM
from paramagnet.units import BIT, SPIN, BinaryUnit

COMBINATIONS = list(itertools.product(("spin", "bit"), repeat=2))
LEVELS = {"spin": (-1.0, 1.0), "bit": (0.0, 1.0)}


def draw_machine(n_visible=4, n_hidden=3, visible="spin", hidden="bit", seed=0, scale=0.7):
    rng = np.random.default_rng(seed)
    return RBM(
        scale * rng.normal(size=(n_visible, n_hidden)),
        scale * rng.normal(size=n_visible),
        scale * rng.normal(size=n_hidden),
        visible,
        hidden,
    )


def states(unit, n_units):
    return list(itertools.product(LEVELS[unit], repeat=n_units))


def slow_energy(rbm, v, h):
    total = 0.0
    for i, v_i in enumerate(v):
        total -= rbm.visible_bias[i] * v_i
        for j, h_j in enumerate(h):
            total -= v_i * rbm.weights[i, j] * h_j
    for j, h_j in enumerate(h):
        total -= rbm.hidden_bias[j] * h_j
    return total


def slow_weights(rbm):
    """exp(-E) of every pair of states, keyed by the pair."""
    pairs = itertools.product(states(rbm.visible.name, rbm.n_visible), states(rbm.hidden.name, rbm.n_hidden))
    return {(v, h): math.exp(-slow_energy(rbm, v, h)) for v, h in pairs}


# The object


def test_arrays_are_readonly_c_ordered_float64_copies():
    weights = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    rbm = RBM(weights, 0.5, [1, 2, 3])
    weights[:] = 0
    assert rbm.weights.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert rbm.visible_bias.tolist() == [0.5, 0.5]
    for array in (rbm.weights, rbm.visible_bias, rbm.hidden_bias):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        rbm.weights = np.zeros((2, 3))


def test_units_may_be_names_or_objects():
    rbm = RBM(np.zeros((2, 3)), 0, 0, "bit", SPIN)
    assert (rbm.visible, rbm.hidden) == (BIT, SPIN)
    assert (rbm.n_visible, rbm.n_hidden) == (2, 3)
    assert repr(rbm) == "RBM(2 bit visible, 3 spin hidden, rms weight 0)"


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_machines_too(clone):
    rbm = draw_machine()
    other = clone(rbm)
    assert np.array_equal(other.weights, rbm.weights)
    assert (other.visible, other.hidden) == (rbm.visible, rbm.hidden)
    assert not other.weights.flags.writeable


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(3), 0, 0), r"`weights` must have shape \(n_visible, n_hidden\).*got shape \(3,\)"),
        ((np.zeros((0, 3)), 0, 0), "at least one unit in each layer"),
        ((np.zeros((3, 0)), 0, 0), "at least one unit in each layer"),
        (([[np.nan]], 0, 0), "`weights` must be finite, got nan"),
        ((np.zeros((2, 3)), np.zeros(3), 0), r"`visible_bias` must be one number or 2 numbers.*\(3,\)"),
        ((np.zeros((2, 3)), 0, np.inf), "`hidden_bias` must be finite, got inf"),
        ((np.zeros((2, 3)), 0, np.zeros((3, 1))), r"`hidden_bias` must be one number or 3 numbers"),
        ((np.zeros((2, 3)), 0, 0, "spim"), "`visible` must be a unit type .*'spin', 'bit'.*got 'spim'"),
        ((np.zeros((2, 3)), 0, 0, "spin", None), "`hidden` must be a unit type"),
    ],
)
def test_bad_parameters_are_refused_in_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        RBM(*arguments)


def test_states_of_the_wrong_width_are_refused():
    rbm = draw_machine(4, 3)
    with pytest.raises(ValueError, match=r"`v` must have 4 units along its last axis, got shape \(3,\)"):
        rbm.free_energy(np.ones(3))
    with pytest.raises(ValueError, match=r"`h` must have 3 units along its last axis, got shape \(\)"):
        rbm.mean_v_given_h(1.0)


# Energies and conditionals


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (1, 3), (4, 1), (4, 3)])
def test_everything_agrees_with_loops(visible, hidden, n_visible, n_hidden):
    rbm = draw_machine(n_visible, n_hidden, visible, hidden)
    weights = slow_weights(rbm)
    all_v, all_h = states(visible, n_visible), states(hidden, n_hidden)
    tight = {"rtol": 1e-12, "atol": 1e-12}
    energies = rbm.energy(np.array(all_v)[:, None, :], np.array(all_h)[None, :, :])
    np.testing.assert_allclose(energies, [[slow_energy(rbm, v, h) for h in all_h] for v in all_v], **tight)
    of_v = [sum(weights[v, h] for h in all_h) for v in all_v]
    np.testing.assert_allclose(rbm.free_energy(all_v), -np.log(of_v), **tight)
    of_h = [sum(weights[v, h] for v in all_v) for h in all_h]
    np.testing.assert_allclose(rbm.free_energy_h(all_h), -np.log(of_h), **tight)
    for v, total in zip(all_v, of_v, strict=True):
        mean = sum(weights[v, h] * np.array(h) for h in all_h) / total
        np.testing.assert_allclose(rbm.mean_h_given_v(v), mean, **tight)
        np.testing.assert_array_equal(rbm.hidden_features(v), rbm.mean_h_given_v(v))
    for h, total in zip(all_h, of_h, strict=True):
        mean = sum(weights[v, h] * np.array(v) for v in all_v) / total
        np.testing.assert_allclose(rbm.mean_v_given_h(h), mean, **tight)


def test_batches_keep_their_axes():
    rbm = draw_machine(4, 3)
    v, h = np.ones((5, 2, 4)), np.ones((2, 3))
    assert rbm.energy(v, h).shape == (5, 2)
    assert rbm.free_energy(v).shape == (5, 2)
    assert rbm.mean_h_given_v(v).shape == (5, 2, 3)
    assert rbm.sample_v_given_h(h, rng=0).shape == (2, 4)


def test_free_energy_survives_huge_fields():
    rbm = RBM([[1e5]], 0.0, 0.0, "spin", "bit")
    np.testing.assert_allclose(rbm.free_energy([[1.0], [-1.0]]), [-1e5, 0.0])


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_draws_have_the_conditional_means_and_alphabet(visible, hidden):
    rbm = draw_machine(4, 3, visible, hidden)
    rng = np.random.default_rng(5)
    n_draws = 20_000
    v, h = states(visible, 4)[5], states(hidden, 3)[2]
    for draws, mean, unit in (
        (rbm.sample_h_given_v(np.tile(v, (n_draws, 1)), rng=rng), rbm.mean_h_given_v(v), rbm.hidden),
        (rbm.sample_v_given_h(np.tile(h, (n_draws, 1)), rng=rng), rbm.mean_v_given_h(h), rbm.visible),
    ):
        assert set(np.unique(draws)) == set(unit.levels)
        error = draws.std(axis=0) / math.sqrt(n_draws)
        assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
    assert np.array_equal(rbm.sample_h_given_v(v, rng=3), rbm.sample_h_given_v(v, rng=3))


# Change of variables


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
@pytest.mark.parametrize("layer", ["visible", "hidden", "both"])
@pytest.mark.parametrize("target", ["spin", "bit"])
def test_changed_units_give_the_same_distribution(visible, hidden, layer, target):
    rbm = draw_machine(3, 2, visible, hidden)
    other = rbm.to_bits(layer) if target == "bit" else rbm.to_spins(layer)
    assert other.visible.name == (visible if layer == "hidden" else target)
    assert other.hidden.name == (hidden if layer == "visible" else target)
    old, new = slow_weights(rbm), slow_weights(other)  # states are enumerated low to high in both: same order
    old_z, new_z = sum(old.values()), sum(new.values())
    np.testing.assert_allclose(
        np.array(list(new.values())) / new_z, np.array(list(old.values())) / old_z, rtol=1e-12
    )
    same, shift = rbm.change_units(visible=other.visible, hidden=other.hidden)
    assert np.array_equal(same.weights, other.weights)
    assert math.log(old_z) == pytest.approx(math.log(new_z) - shift, abs=1e-12)
    for (v, h), (v2, h2) in zip(old, new, strict=True):
        assert slow_energy(rbm, v, h) - slow_energy(other, v2, h2) == pytest.approx(shift, abs=1e-12)


@given(st.integers(0, 10**6), st.sampled_from(COMBINATIONS))
def test_there_and_back_is_the_same_machine(seed, units):
    rbm = draw_machine(3, 4, *units, seed=seed)
    for back in (rbm.to_bits().change_units(visible=units[0], hidden=units[1])[0], rbm.to_spins()):
        back = back.change_units(visible=units[0], hidden=units[1])[0]
        for name in ("weights", "visible_bias", "hidden_bias"):
            np.testing.assert_allclose(getattr(back, name), getattr(rbm, name), rtol=1e-13, atol=1e-13)


def test_an_unknown_layer_is_refused():
    with pytest.raises(ValueError, match="`layer` must be 'visible', 'hidden' or 'both', got 'top'"):
        draw_machine().to_bits("top")


# Files


@pytest.mark.parametrize(("visible", "hidden"), COMBINATIONS)
def test_a_saved_machine_comes_back_bit_for_bit(tmp_path, visible, hidden):
    rbm = draw_machine(5, 3, visible, hidden)
    path = tmp_path / "model.safetensors"
    rbm.save(path)
    back = RBM.load(path)
    for name in ("weights", "visible_bias", "hidden_bias"):
        assert np.array_equal(getattr(back, name), getattr(rbm, name))
    assert (back.visible.name, back.hidden.name) == (visible, hidden)


LAYOUTS = {
    "transposed": lambda w: np.ascontiguousarray(w.T).T,
    "fortran": np.asfortranarray,
    "strided": lambda w: np.repeat(np.repeat(w, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda w: np.ascontiguousarray(w[::-1, ::-1])[::-1, ::-1],
    "big-endian": lambda w: w.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_in_any_memory_order_are_saved_as_they_are(tmp_path, layout):
    weights = np.random.default_rng(0).normal(size=(4, 3))
    given = LAYOUTS[layout](weights)
    assert np.array_equal(given, weights)
    path = tmp_path / "model.safetensors"
    RBM(given, 0, 0).save(path)
    assert np.array_equal(RBM.load(path).weights, weights)


def test_save_does_not_rely_on_the_constructor_for_memory_order(tmp_path):
    rbm = draw_machine(4, 3)
    object.__setattr__(rbm, "weights", np.asfortranarray(rbm.weights))
    rbm.save(tmp_path / "model.safetensors")
    assert np.array_equal(RBM.load(tmp_path / "model.safetensors").weights, rbm.weights)


def metadata(**changes):
    good = {"format": "paramagnet.rbm", "version": "1", "visible": "spin", "hidden": "bit"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def tensors(**changes):
    good = {"weights": np.ones((2, 3)), "visible_bias": np.ones(2), "hidden_bias": np.ones(3)}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("arrays", "header", "words"),
    [
        (tensors(), None, "must be a file of format 'paramagnet.rbm', but this safetensors file says None"),
        (tensors(), metadata(format="somebody.else"), "says 'somebody.else'"),
        (tensors(), metadata(version="7"), "has version '7' .*this release reads versions 1 and 2"),
        (tensors(), metadata(visible=None), "`visible` must be a unit type"),
        (tensors(), metadata(hidden="potts"), "`hidden` must be a unit type .*got 'potts'"),
        (tensors(hidden_bias=None), metadata(), r"must hold the arrays .*got \('visible_bias', 'weights'\)"),
        (tensors(extra=np.ones(1)), metadata(), "got .*'extra'"),
        (tensors(weights=np.ones((3, 2))), metadata(), "arrays that do not fit together"),
        (tensors(weights=np.ones(2)), metadata(), "arrays that do not fit together"),
        (tensors(weights=np.ones((2, 3), np.float32)), metadata(), "must hold float64 arrays, got .*F32"),
        (
            tensors(weights=np.full((2, 3), np.nan)),
            metadata(),
            "holds no valid machine.*`weights` must be finite",
        ),
        (
            tensors(weights=np.ones((0, 3)), visible_bias=np.ones(0)),
            metadata(),
            "holds no valid machine.*at least one unit",
        ),
    ],
)
def test_foreign_files_are_refused_in_words(tmp_path, arrays, header, words):
    path = tmp_path / "model.safetensors"
    save_file(arrays, path, header)
    with pytest.raises(ValueError, match=words):
        RBM.load(path)


def test_a_truncated_file_is_refused_wherever_it_is_cut(tmp_path):
    path = tmp_path / "model.safetensors"
    draw_machine(2, 2).save(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="not a safetensors file, or a damaged one"):
            RBM.load(path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_pickles_are_refused_and_never_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.safetensors"
    for payload in (pickle.dumps(Bomb()), struct.pack("<Q", 10) + pickle.dumps(Bomb()), b"\x93NUMPY", b""):
        path.write_bytes(payload)
        with pytest.raises(ValueError, match="not a safetensors file, or a damaged one"):
            RBM.load(path)
    assert not (tmp_path / "exploded").exists()


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="`path` does not exist"):
        RBM.load(tmp_path / "nothing.safetensors")
    with pytest.raises(ValueError, match="`path` must be a regular file"):
        RBM.load(tmp_path)
    with pytest.raises(ValueError, match="`path` must be a regular file or a new name"):
        draw_machine().save(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"folder of `path` does not exist: .*nowhere\. Create it first"
    ):
        draw_machine().save(tmp_path / "nowhere" / "model.safetensors")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        draw_machine().save(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        RBM.load(tmp_path / "pipe")


def test_units_of_ones_own_cannot_be_saved(tmp_path):
    rbm = RBM(np.zeros((2, 2)), 0, 0, BinaryUnit("half", -0.5, 0.5))
    with pytest.raises(ValueError, match=r"`visible` must be 'spin', 'bit', .* to be saved"):
        rbm.save(tmp_path / "model.safetensors")


def test_the_mode_is_the_umasks_and_a_former_one_is_kept(tmp_path):
    path = tmp_path / "model.safetensors"
    before = os.umask(0o027)
    try:
        draw_machine().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    draw_machine().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "model.safetensors"
    link.symlink_to(tmp_path / "real" / "model.safetensors")
    draw_machine().save(link)
    draw_machine().save(link)
    assert link.is_symlink()
    assert RBM.load(link).n_visible == 4


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_keeps_the_former_file_and_leaves_no_litter(tmp_path, monkeypatch, call):
    path = tmp_path / "model.safetensors"
    draw_machine(seed=1).save(path)
    former = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        draw_machine(seed=2).save(path)
    assert path.read_bytes() == former
    assert os.listdir(tmp_path) == [path.name]


def test_a_disk_that_is_really_full_keeps_the_former_file(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "file"
    write_atomically(path, b"former")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            write_atomically(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"former"
    assert os.listdir(tmp_path) == ["file"]
