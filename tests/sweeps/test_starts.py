"""Starts beyond scheme and gain: what they make, and that former runs keep their digests and numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.initializers import scheme_std
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.execute import execute
from paramagnet.sweeps.seeds import weight_seed
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.starts import STARTS, parse_start, start_machine
from paramagnet.sweeps.store import Store
from small_sweeps import EXACT, SAMPLED

RESULTS = Path(__file__).parents[2] / "results"
MACHINE = {"visible": "spin", "hidden": "bit", "hidden_bias": -1.0}
# The first and the last run of each: a digest that changes makes all records of that sweep useless.
DIGESTS = {
    "toy_spin": ("5101a921e490ee28", "60ff480d986a5690"),
    "toy_bit_c5": ("83f2762e9ca80727", "d256a495002ff97e"),
    "drybean_bit": ("8457910ac1d3fc72", "665fe95a5f590b90"),
    "ulc_bit": ("a88a2ddce5b092dc", "3dd827ff9952a658"),
    "mnist_spin": ("0dd23e125a045646", "4df9bb73cf6515db"),
}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(5)
    return np.where(rng.random((60, 6)) < np.linspace(0.1, 0.9, 6), 1.0, -1.0)


def make(name, points, gain=1.0, **changes):
    return draw(name, points, gain, **changes).rbm


def draw(name, points, gain=1.0, **changes):
    return start_machine(name, points, 4, gain=gain, rng=7, **(MACHINE | changes))


# Former runs


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_of_former_runs_stay(name):
    runs = list(find_spec(name).runs())
    assert (runs[0].digest, runs[-1].digest) == DIGESTS[name]


def test_a_former_run_comes_out_as_it_did():
    run = next(run for run in find_spec("toy_spin").runs() if run.gain == 1.0)
    (former,) = (
        record for record in Store(RESULTS / "toy_spin.jsonl").records() if record.digest == run.digest
    )
    short = replace(run, measurement=replace(run.measurement, epochs=(16,), curve=0))
    again = execute(short)
    k = [former.epochs.index(epoch) for epoch in (0, 16)]
    assert np.allclose(again.log_likelihood, np.array(former.log_likelihood)[k], rtol=1e-5)
    assert again.sigma == pytest.approx(former.sigma, rel=1e-5)


# Names


def test_starts_are_read():
    assert parse_start("hopfield") == ("hopfield", 1.0)
    assert parse_start("0.5 layer-correlation+data") == ("layer-correlation+data", 0.5)


@pytest.mark.parametrize(
    "text", ["", "nothing", "x hinton", "0 hinton", "-1 hinton", "inf hinton", "nan hinton"]
)
def test_unknown_starts_are_refused(text):
    with pytest.raises(ValueError, match=r"`starts` must hold names among layer-correlation, .*hopfield"):
        parse_start(text)


def test_starts_of_a_specification():
    spec = parse_spec(EXACT.replace('["xavier"]', '["xavier"]\nstarts = ["hinton+data", "2 d-wave"]'), "mine")
    runs = list(spec.runs(trials=1, part="starts"))
    assert [(run.scheme, run.gain) for run in runs[:2]] == [("hinton+data", 1.0), ("d-wave", 2.0)]
    assert "2 d-wave, trial 0" in runs[1].describe()
    everything = list(spec.runs())
    assert len(everything) == len({run.digest for run in everything}) == 2 * 2 * 5
    without = [run.digest for run in parse_spec(EXACT, "mine").runs()]
    assert [run.digest for run in everything][: len(without)] == without
    with pytest.raises(ValueError, match="`starts` must hold names"):
        parse_spec(EXACT.replace('["xavier"]', '[]\nstarts = ["data"]'), "mine")
    with pytest.raises(ValueError, match="`gains`, `rivals` and `starts` must not all be empty"):
        replace(spec, gains=(), rivals=(), starts=())


# Machines


def test_starts_scale_the_same_normal_draws(points):
    first = make("layer-correlation", points)
    assert not first.visible_bias.any()
    for name in STARTS:
        if name != "hopfield":
            rbm = make(name, points, gain=0.5)
            ratio = rbm.weights / first.weights
            assert np.allclose(ratio, ratio[0, 0], rtol=1e-12)
            sigma = draw(name, points).sigma
            assert draw(name, points, gain=0.5).sigma == 0.5 * sigma
            assert ratio[0, 0] == pytest.approx(0.5 * sigma / draw("layer-correlation", points).sigma)


def test_biases_from_data(points):
    log_odds = np.log((points == 1.0).sum(axis=0) + 0.5) - np.log((points == -1.0).sum(axis=0) + 0.5)
    for name in ("layer-correlation+data", "layer-correlation+data-own", "hinton+data"):
        assert np.allclose(make(name, points).visible_bias, 0.5 * log_odds)
    plain = draw("layer-correlation+data", points).sigma
    own = draw("layer-correlation+data-own", points).sigma
    assert plain == scheme_std("layer-correlation", 6, 4, **MACHINE)
    expected = pm.beta_max(4 / 6, b=pm.Biases(0.5 * log_odds), c=-1.0) / np.sqrt(10)
    assert own == pytest.approx(expected, rel=1e-9)
    assert own > plain


def test_scale_of_d_wave(points):
    assert draw("d-wave", points).sigma == pytest.approx(2.5 * 24**-0.25)


@pytest.mark.parametrize(("visible", "hidden"), [("spin", "bit"), ("bit", "spin"), ("gaussian", "bit")])
def test_the_centred_start_takes_the_means_of_both_layers_off_the_weights(points, visible, hidden):
    """Its energy is that of centred units between the biases of the data, but for a constant."""
    values = {"spin": points, "bit": 0.5 * (points + 1.0), "gaussian": 0.3 * points + 0.2}[visible]
    machine = {"visible": visible, "hidden": hidden, "hidden_bias": -0.7, "rng": 3, "gain": 0.8}
    plain = start_machine("layer-correlation+data", values, 4, **machine)
    found = start_machine("centred", values, 4, **machine)
    assert found.sigma == plain.sigma
    np.testing.assert_array_equal(found.rbm.weights, plain.rbm.weights)
    units = plain.rbm.visible, plain.rbm.hidden
    mu, lam = units[0].mean(plain.rbm.visible_bias), units[1].mean(np.full(4, -0.7))
    rng = np.random.default_rng(0)
    v = values[rng.integers(len(values), size=9)]
    h = rng.choice(units[1].values, size=(9, 4))
    centred = -np.einsum("ki,ij,kj->k", v - mu, plain.rbm.weights, h - lam)
    centred -= v @ plain.rbm.visible_bias - 0.7 * h.sum(axis=1)
    if visible == "gaussian":
        centred += 0.5 * (v**2).sum(axis=1)
    difference = found.rbm.energy(v, h) - centred
    np.testing.assert_allclose(difference, difference[0], atol=1e-12)
    np.testing.assert_allclose(units[0].mean(found.rbm.visible_bias + found.rbm.weights @ lam), mu)


def test_the_centred_start_needs_data():
    with pytest.raises(ValueError, match="`scheme` = 'centred' makes its weights from data"):
        pm.initialize(6, 4, scheme="centred")
    assert "centred" not in {report.name for report in pm.compare_schemes(6, 4)}


# Patterns


def test_hopfield_is_the_same_machine_with_spins_and_with_bits(points):
    bits = make("hopfield", points, hidden_bias=0.0)
    spins = make("hopfield", points, hidden="spin", hidden_bias=0.0)
    states = np.array(list(product((-1.0, 1.0), repeat=6)))
    difference = bits.free_energy(states) - spins.free_energy(states)
    assert np.allclose(difference, difference[0], atol=1e-12)
    visible = 0.5 * (points + 1.0)
    all_bits = make("hopfield", visible, visible="bit", hidden_bias=0.0)
    difference = all_bits.free_energy(0.5 * (states + 1.0)) - spins.free_energy(states)
    assert np.allclose(difference, difference[0], atol=1e-12)


def test_hopfield_finds_patterns():
    rng = np.random.default_rng(1)
    patterns = np.where(rng.random((3, 40)) < 0.5, 1.0, -1.0)
    flips = np.where(rng.random((300, 40)) < 0.1, -1.0, 1.0)
    points = np.repeat(patterns, 100, axis=0) * flips
    rbm = pm.initialize(40, 8, hidden="spin", scheme="hopfield", visible_bias="data", data=points, rng=0)
    centred = patterns - points.mean(axis=0)
    overlaps = (
        centred @ rbm.weights / np.outer(np.linalg.norm(centred, axis=1), np.linalg.norm(rbm.weights, axis=0))
    )
    assert (overlaps.max(axis=1) > 0.9).all()
    # The mean point gives no field beyond c.
    assert np.allclose(np.tanh(rbm.visible_bias) @ rbm.weights + rbm.hidden_bias, 0.0, atol=1e-12)


def test_hopfield_with_fewer_points_than_groups():
    points = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    rbm = pm.initialize(3, 5, scheme="hopfield", visible_bias="data", data=points, gain=0.5, rng=0)
    assert rbm.weights.shape == (3, 5)
    assert np.isfinite(rbm.weights).all()
    assert len(np.unique(rbm.weights.round(9), axis=1).T) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "`scheme` = 'hopfield' makes its weights from data"),
        ({"visible_bias": "data", "data": np.zeros((4, 3)), "visible": "gaussian"}, "units of two values"),
        ({"visible_bias": "data"}, '`visible_bias="data"` needs the data'),
    ],
)
def test_hopfield_says_what_it_needs(options, words):
    with pytest.raises(ValueError, match=words):
        pm.initialize(3, 5, scheme="hopfield", **options)


# Runs


@pytest.mark.parametrize("text", [EXACT, SAMPLED], ids=["exact", "sampled"])
def test_every_start_runs(text):
    names = ", ".join(
        f'"{name}"' for name in ("layer-correlation+data-own", "hinton+data", "d-wave", "hopfield")
    )
    text = text.replace("n_hidden = [2, 3]", "n_hidden = 3").replace('["xavier"]', f"[]\nstarts = [{names}]")
    for run in parse_spec(text, "starts").runs(trials=1, part="starts"):
        record = execute(run)
        assert record.scheme == run.scheme
        assert np.isfinite(record.log_likelihood).all()
        assert record.sigma > 0.0
    assert weight_seed(run) == weight_seed(replace(run, scheme="xavier"))
