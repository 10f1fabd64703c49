"""An unknown name is answered with names like it, under the flag that was given, before anything is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet._checks import near_names, shown_near
from paramagnet.cli import app
from paramagnet.learning.registries import OPTIMIZERS
from paramagnet.reproduction.paper_specs import find_spec

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAIN = ("train", "spins.npy", "--out", "new.safetensors")
SEQUENCES = ("train", "hairpin.fa", "--out", "new.safetensors")
SIZES = ("--visible-units", "10", "--hidden-units", "10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("near")
    np.save(place / "spins.npy", np.random.default_rng(0).choice([-1, 1], size=(40, 6)))
    shutil.copy(EXAMPLES / "hairpin.fa", place)
    pm.initialize(6, 3, rng=1).save(place / "machine.safetensors")
    return place


@pytest.mark.parametrize(
    ("words", "flag", "near"),
    [
        ((*TRAIN, "--scheme", "xaver"), "--scheme", "xavier"),
        ((*TRAIN, "--gradient", "pdc"), "--gradient", "pcd"),
        ((*TRAIN, "--optimizer", "adma"), "--optimizer", "adam"),
        ((*TRAIN, "--visible", "spni"), "--visible", "spin"),
        ((*TRAIN, "--hidden", "gausian(0.5)"), "--hidden", "gaussian"),
        ((*TRAIN, "--recipe", "papr"), "--recipe", "paper"),
        ((*TRAIN, "--schedule", "lineer"), "--schedule", "linear"),
        ((*SEQUENCES, "--alphabet", "protien"), "--alphabet", "protein"),
        ((*SEQUENCES, "--insertions", "dorp"), "--insertions", "drop"),
        ((*SEQUENCES, "--unknown-letters", "gp"), "--unknown-letters", "gap"),
        (("compare", "spins.npy", "--scheme", "xaver"), "--scheme", "xavier"),
        (("compare", "spins.npy", "--hidden", "bti"), "--hidden", "bit"),
        (("schemes", *SIZES, "--scheme", "xaver"), "--scheme", "xavier"),
        (("beta-max", *SIZES, "--visible", "spni"), "--visible", "spin"),
        (("table", "--hidden", "spni"), "--hidden", "spin"),
        (("evaluate", "machine.safetensors", "spins.npy", "--method", "maiss"), "--method", "mais"),
        (("evaluate", "machine.safetensor", "spins.npy"), "The file", "machine.safetensors"),
        (("evaluate", "machine.safetensors", "spin.npy"), "DATA", "spins.npy"),
        (("sample", "machine.safetensors", "--out", "o.npy", "--method", "gibs"), "--method", "gibbs"),
        (("data", "info", "digit"), "NAME-or-FILE", "digits"),
        (("data", "fetch", "digit"), "NAME", "digits"),
        (("data", "binarize", "digit", "o.npy"), "IN", "digits"),
        (("data", "binarize", "spins.npy", "o.npy", "--method", "otus"), "--method", "otsu"),
        (("data", "binarize", "spins.npy", "o.npy", "--per", "featur"), "--per", "feature"),
    ],
)
def test_a_name_like_it_is_proposed(folder, monkeypatch, words, flag, near):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, list(words))
    said = str(result.exception)
    assert said.startswith((f"`{flag}`", flag)), said
    assert f"(did you mean {near!r}" in said
    assert result.output == ""  # nothing was read and nothing explained before


def test_names_in_specifications_and_settings():
    with pytest.raises(ValueError, match=r"it has learning_rate, .*\(did you mean 'beta1'"):
        OPTIMIZERS.make("adam", "optimizer", {"beta_1": 0.8})
    with pytest.raises(ValueError, match=r"`part` must be .*got 'papr' \(did you mean 'paper'\?\)"):
        next(iter(find_spec("toy_spin").runs(part="papr")))


def test_what_is_like_nothing_gets_no_proposal():
    assert shown_near("zzz", ("adam", "sgd")) == "'zzz'"
    assert shown_near(3, ("adam", "sgd")) == "3"
    assert shown_near("XAVIER(gain=2)", ("he", "xavier")) == "'XAVIER(gain=2)' (did you mean 'xavier'?)"
    assert near_names("x" * 10**6, ["y" * 50], most_listed=0) == ""  # a long text takes no time
