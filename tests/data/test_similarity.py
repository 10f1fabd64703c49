"""Weights of sequences and frequencies of letters, against plain loops."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.data import sequence_weights, site_frequencies

SEQUENCES = Path(os.environ.get("PARAMAGNET_DATA", "")) / "sequences"


def plain_weights(states, identity):
    """1 over the number of sequences with that share of equal sites, by loops and exact fractions."""
    share = Fraction(str(identity))
    counts = []
    for first in states:
        n_alike = 0
        for second in states:
            equal = sum(int(x == y) for x, y in zip(first, second, strict=True))
            n_alike += Fraction(equal, len(first)) >= share
        counts.append(n_alike)
    return np.array([1.0 / count for count in counts])


def family(n_sequences, n_sites, q, seed):
    """Sequences of a few clusters, so that many pairs lie on both sides of the threshold."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(q, size=(3, n_sites))
    rates = rng.uniform(0.0, 0.4, size=(n_sequences, 1))
    changed = rng.random((n_sequences, n_sites)) < rates
    return np.where(
        changed, rng.integers(q, size=(n_sequences, n_sites)), centres[rng.integers(3, size=n_sequences)]
    )


@pytest.mark.parametrize("n_sites", [1, 5, 10, 63, 64, 65, 130])
@pytest.mark.parametrize(("q", "identity"), [(2, 0.8), (4, 0.55), (21, 0.8), (300, 0.7)])
def test_weights_equal_those_of_loops(n_sites, q, identity):
    states = family(60, n_sites, q, seed=n_sites + q)
    expected = plain_weights(states, identity)
    assert np.array_equal(sequence_weights(states, identity), expected)
    if n_sites > 4:
        assert len(set(expected)) > 1
        wrong = plain_weights(states, identity + 1e-9)  # above, no longer at, the threshold
        if n_sites in (5, 10) and identity == 0.8:
            assert not np.array_equal(expected, wrong)


@pytest.mark.parametrize("n_sites", range(5, 205, 5))
def test_a_pair_at_exactly_the_threshold_is_alike(n_sites):
    states = np.zeros((2, n_sites), np.uint8)
    n_changed = n_sites // 5
    states[1, :n_changed] = 1
    assert sequence_weights(states, 0.8).tolist() == [0.5, 0.5]
    states[1, n_changed] = 1
    assert sequence_weights(states, 0.8).tolist() == [1.0, 1.0]


def test_every_share_of_a_hundred_sites():
    states = np.zeros((2, 100), np.uint8)
    for percent in range(1, 101):  # 0.55 * 100 is above 55 in floating point
        states[1] = np.arange(100) >= percent
        assert sequence_weights(states, percent / 100)[0] == 0.5
        states[1] = np.arange(100) >= percent - 1
        assert sequence_weights(states, percent / 100)[0] == 1.0


def test_the_number_of_threads_does_not_matter():
    states = family(1500, 20, 5, seed=3)  # more than one tile and one block
    one = sequence_weights(states, n_threads=1)
    assert np.array_equal(one, sequence_weights(states, n_threads=3))
    shares = []
    assert np.array_equal(one, sequence_weights(states, progress=shares.append))
    assert shares[-1] == 1.0
    alike = (states[:, None] == states[None]).sum(2) >= 16
    assert np.array_equal(one, 1.0 / alike.sum(1))


def test_copies_share_the_weight_of_one():
    states = np.repeat([[0, 1, 2, 3], [3, 2, 1, 0]], [3, 1], axis=0)
    assert np.allclose(sequence_weights(states, 1.0), [1 / 3, 1 / 3, 1 / 3, 1.0])
    assert sequence_weights(states, 1e-9).tolist() == [1.0 / 3] * 3 + [1.0]  # one equal site at least
    assert sequence_weights(np.zeros((1, 4))).tolist() == [1.0]


def test_unsuitable_arguments():
    states = np.zeros((3, 4))
    for identity in (0.0, 1.1, -0.2, np.nan):
        with pytest.raises(ValueError, match="`identity` must be"):
            sequence_weights(states, identity)
    for data in (
        states + 0.5,
        states - 1,
        np.full((3, 4), np.nan),
        states[0],
        np.zeros((0, 4)),
        [["A", "C"]],
    ):
        with pytest.raises(ValueError, match="`data` must"):
            sequence_weights(data)
    with pytest.raises(ValueError, match="`n_threads` must be"):
        sequence_weights(states, n_threads=0)


def test_frequencies_equal_those_of_loops():
    states = family(50, 7, 4, seed=1)
    weights = np.random.default_rng(2).uniform(0.0, 2.0, 50)
    for pseudo_count in (0.0, 1.0, 3.5):
        expected = np.zeros((7, 5))
        for i in range(7):
            for a in range(5):
                total = sum(w for w, v in zip(weights, states, strict=True) if v[i] == a)
                expected[i, a] = (total + pseudo_count / 5) / (weights.sum() + pseudo_count)
        found = site_frequencies(states, 5, sample_weight=weights, pseudo_count=pseudo_count)
        assert np.allclose(found, expected, rtol=1e-13)
        assert np.allclose(found.sum(axis=1), 1.0)
        assert (found[:, 4] > 0.0).all() == (pseudo_count > 0.0)  # a letter that never occurs


def test_biases_from_data_are_the_logarithms_of_frequencies():
    states = family(50, 7, 4, seed=1)
    weights = sequence_weights(states)
    weights /= weights.mean()
    given = {"visible_bias": "data", "data": states, "sample_weight": 3.0 * weights}
    machine = pm.initialize(7, 2, visible="categorical(5)", scheme="xavier", rng=0, **given)
    logs = np.log(site_frequencies(states, 5, sample_weight=weights))
    assert np.allclose(machine.bias_by_state, logs - logs.mean(axis=1, keepdims=True), rtol=1e-12)


def test_unsuitable_arguments_of_frequencies():
    states = np.array([[0, 1], [2, 1]])
    with pytest.raises(ValueError, match="`q` must be the number of letters"):
        site_frequencies(states)
    with pytest.raises(ValueError, match="`q` must be above all states of `data`, got 2; found 2"):
        site_frequencies(states, 2)
    with pytest.raises(ValueError, match="`q` must be an integer of at least 2"):
        site_frequencies(states, 1)
    with pytest.raises(ValueError, match="`pseudo_count` must be zero or positive, got -1"):
        site_frequencies(states, 3, pseudo_count=-1)
    with pytest.raises(ValueError, match="`sample_weight` must be zero or positive, got -1"):
        site_frequencies(states, 3, sample_weight=[1, -1])
    with pytest.raises(ValueError, match="one number for each of the 2 points"):
        site_frequencies(states, 3, sample_weight=[1])


@pytest.mark.skipif(
    not os.environ.get("PARAMAGNET_DATA") or not SEQUENCES.is_dir(), reason="PARAMAGNET_DATA has no sequences"
)
@pytest.mark.filterwarnings("ignore::paramagnet.data.AlignmentWarning")
def test_the_effective_number_of_ww_sequences():
    alignment = pm.data.read_alignment(SEQUENCES / "ww_sequences.fa")
    weights = sequence_weights(alignment)
    alike = np.array([((alignment.data == row).sum(1) >= 25).sum() for row in alignment.data])  # 24.8 of 31
    assert np.array_equal(weights, 1.0 / alike)
