"""A diagnosis finds each planted illness, and is silent on healthy machines."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import paramagnet as pm
from conftest import make_machine
from own_units import Tilted, Trit
from paramagnet.learning import quick_diagnosis

PAIRS = [
    ("spin", "bit"),
    ("bit", "bit"),
    ("spin", "spin"),
    ("bit", "gaussian(0.5)"),
    ("gaussian", "bit"),
    ("gaussian(0.3)", "spin"),
]


def names(findings):
    return {finding.name for finding in findings}


def healthy_case(visible, hidden, seed):
    """A machine and points drawn from it."""
    rbm = make_machine(visible, hidden, 12, 8, scale=0.25, seed=seed)
    return rbm, pm.sample_exact(rbm, 500, rng=100 + seed)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_healthy_machines_are_not_accused(visible, hidden, seed):
    rbm, data = healthy_case(visible, hidden, seed)
    validation = pm.sample_exact(rbm, 300, rng=200 + seed) if seed else None
    found = pm.diagnose(rbm, data, validation=validation, n_chains=400, n_steps=400, rng=seed, n_threads=1)
    assert found.healthy, str(found)
    assert "Nothing is wrong." in str(found)
    assert repr(found) == "Diagnosis(healthy)"
    assert quick_diagnosis(rbm, data, found.samples[:100], log_likelihood=found.log_likelihood) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_false_alarms_are_rare(visible, hidden):
    alarms = []
    for seed in range(2, 42):
        rbm, data = healthy_case(visible, hidden, seed)
        found = pm.diagnose(rbm, data, n_chains=400, n_steps=400, rng=seed, n_threads=1)
        alarms += [(seed, finding.message) for finding in found.findings if finding.name != "slow"]
    assert len(alarms) <= 2, alarms


@pytest.mark.parametrize("seed", range(3))
def test_symmetric_data_have_no_mirrored_chains(seed):
    rbm = mirrored_case("spin")[0]  # ordered, both signs alike
    data = pm.sample_exact(rbm, 400, rng=seed)
    found = pm.diagnose(rbm, data, n_chains=400, rng=seed, log_z=None, n_threads=1)
    assert found.healthy, str(found)


# The illnesses


def idle_case(visible="spin"):
    """Two units without weights, and one that is always on."""
    rbm = make_machine("spin", "bit", 12, 8, scale=0.25, seed=3)
    weights, hidden_bias = rbm.weights.copy(), rbm.hidden_bias.copy()
    weights[:, :2] = 0.0
    hidden_bias[2] = 14.0
    ill = pm.RBM(weights, rbm.visible_bias, hidden_bias)
    ill = ill.to_bits("visible") if visible == "bit" else ill
    return ill, pm.sample_exact(ill, 500, rng=0)


def mirrored_case(visible):
    """A ferromagnet without biases, and data that are all up."""
    rng = np.random.default_rng(0)
    weights = np.concatenate((np.full((30, 1), 0.35), rng.normal(0.0, 0.1, (30, 3))), axis=1)
    rbm = pm.RBM(weights, 0.0, 0.0, "spin", "spin")
    states = pm.sample_exact(rbm, 2000, rng=0)
    data = states[states.sum(axis=1) > 0.0][:500]
    if visible == "bit":
        return rbm.to_bits("visible"), (data + 1.0) / 2.0
    return rbm, data


def slow_case():
    """Two modes that Gibbs sampling does not leave, both in the data."""
    pattern = np.random.default_rng(0).choice([-1.0, 1.0], size=24)
    weights = np.stack((0.9 * pattern, 0.1 * np.roll(pattern, 3)), axis=1)
    rbm = pm.RBM(weights, 0.0, 0.0, "spin", "spin")
    return rbm, pm.sample_exact(rbm, 500, rng=0)


def wrong_means_case(visible="spin"):
    """A machine with another bias of one unit than the source of the data."""
    rbm = make_machine(visible, "bit", 12, 8, scale=0.25, seed=3)
    data = pm.sample_exact(rbm, 500, rng=0)
    bias = rbm.visible_bias.copy()
    bias[4] += 1.0 if visible == "bit" else 0.5
    return pm.RBM(rbm.weights, bias, rbm.hidden_bias, visible, "bit"), data


def wrong_correlations_case():
    """A pair that is correlated in the data alone."""
    rbm = make_machine("spin", "bit", 12, 8, scale=0.25, seed=3)
    data = pm.sample_exact(rbm, 1000, rng=0)
    copied = np.random.default_rng(0).random(1000) < 0.5
    data[copied, 5] = data[copied, 9] = np.random.default_rng(1).choice([-1.0, 1.0], size=copied.sum())
    weights = rbm.weights.copy()
    weights[[5, 9]] = 0.0
    bias = np.arctanh(np.clip(data.mean(axis=0), -0.9, 0.9))
    return pm.RBM(
        weights, np.where(np.isin(np.arange(12), (5, 9)), bias, rbm.visible_bias), rbm.hidden_bias
    ), data


def memorized_case(n_visible=40, n_points=60):
    """A hidden unit for each of the points, which are random, and a hole in the energy around it."""
    points = np.random.default_rng(0).choice([-1.0, 1.0], size=(n_points, n_visible))
    return pm.RBM(0.8 * points.T, 0.0, -0.4 * n_visible), points


@dataclass(frozen=True)
class Illness:
    """A case, the finding it must give, and others that come with it."""

    name: str
    case: object
    also: frozenset = frozenset()
    n_steps: int = 400


# Mirrored chains have other means; half of the mass beside the data costs ln 2.
MIRRORED = frozenset({"means", "below-independent", "correlations"})
BELOW = frozenset({"below-independent"})  # a wrong bias can cost more than correlations give
ILLNESSES = [
    Illness("idle", idle_case),
    Illness("idle", lambda: idle_case("bit")),
    Illness("mirrored", lambda: mirrored_case("spin"), MIRRORED, 1000),
    Illness("mirrored", lambda: mirrored_case("bit"), MIRRORED, 1000),
    Illness("slow", slow_case),
    Illness("means", wrong_means_case, BELOW),
    Illness("means", lambda: wrong_means_case("bit"), BELOW),
    Illness("means", lambda: wrong_means_case("gaussian"), BELOW),
    Illness("correlations", wrong_correlations_case),
    Illness("memorized", memorized_case, frozenset({"slow"}), 1200),
]


@pytest.mark.parametrize("illness", ILLNESSES, ids=lambda illness: illness.name)
def test_each_planted_illness_is_found_and_no_other(illness):
    rbm, data = illness.case()
    log_z = None if illness.name == "memorized" else pm.LogZ()
    found = pm.diagnose(rbm, data, n_chains=400, n_steps=illness.n_steps, log_z=log_z, rng=1, n_threads=1)
    assert illness.name in names(found.findings), str(found)
    assert names(found.findings) - illness.also == {illness.name}, str(found)
    (finding,) = (finding for finding in found.findings if finding.name == illness.name)
    assert f"- {finding.message}: {finding.remedy}." in str(found)


def test_what_is_said_of_them():
    rbm, data = mirrored_case("bit")
    found = pm.diagnose(rbm, data, n_chains=400, n_steps=100, rng=1)
    (text,) = (str(finding) for finding in found.findings if finding.name == "mirrored")
    assert "% of the chains are mirrored (+- " in text
    assert "train with centred=True" in text
    assert 0.4 < found.overlaps.share < 0.6
    rbm, data = idle_case()
    found = pm.diagnose(rbm, data, n_chains=100, n_steps=100, rng=1)
    assert np.flatnonzero(found.idle).tolist() == [0, 1, 2]
    assert str(found.findings[0]).startswith("3 of 8 hidden units are idle")


def test_memorized_points_beside_held_out_ones():
    rbm, data = memorized_case()
    held_out = np.random.default_rng(9).choice([-1.0, 1.0], size=(200, 40))
    found = pm.diagnose(rbm, data, validation=held_out, n_chains=400, n_steps=1200, log_z=None, rng=1)
    assert "memorized" in names(found.findings)
    assert found.nearness.held_out
    fresh = pm.diagnose(rbm, held_out, n_chains=400, n_steps=1200, log_z=None, rng=1)
    assert "memorized" not in names(fresh.findings)  # it has never seen these


def test_worse_than_independent_units():
    rbm, data = healthy_case("bit", "bit", 1)
    ill = pm.RBM(3.0 * rbm.weights, rbm.visible_bias, rbm.hidden_bias, "bit", "bit")
    found = pm.diagnose(ill, data, n_chains=100, n_steps=100, rng=0)
    assert "below-independent" in names(found.findings)
    assert found.log_likelihood.value < found.independent.value
    quick = quick_diagnosis(ill, data, log_likelihood=found.log_likelihood)
    assert names(quick) == {"below-independent"}


def test_quick_diagnosis_of_planted_illnesses():
    rbm, data = mirrored_case("spin")
    chains = pm.sample_exact(rbm, 100, rng=5)
    assert "mirrored" in names(quick_diagnosis(rbm, data, chains))
    assert "mirrored" not in names(quick_diagnosis(rbm, data))
    rbm, data = idle_case()
    assert names(quick_diagnosis(rbm, data)) == {"idle"}
    rbm, data = wrong_means_case()
    assert names(quick_diagnosis(rbm, data, pm.sample_exact(rbm, 1000, rng=5))) == {"means"}


def test_chains_of_a_training_run_are_judged():
    rng = np.random.default_rng(0)
    data = np.where(rng.random((200, 8)) < 0.7, 1.0, -1.0)
    rbm = pm.initialize(8, 4, rng=1)
    state = pm.train(rbm, data, epochs=3, gradient=pm.PCD(n_chains=20, n_steps=2), batch_size=50, rng=2).state
    found = pm.diagnose(state.rbm, data, chains=state.chains, n_steps=40, rng=3)
    assert found.samples.shape == (20, 8)
    same = pm.diagnose(state.rbm, data, chains=state.chains.visible, n_steps=40, rng=3, n_threads=1)
    assert np.array_equal(found.samples, same.samples)
    assert str(found) == str(same)
    assert isinstance(quick_diagnosis(state.rbm, data, state.chains), tuple)


def test_units_of_ones_own_and_constant_features():
    unit = Trit()
    rng = np.random.default_rng(0)
    rbm = pm.RBM(rng.normal(0.0, 0.2, (5, 3)), 0.0, 0.0, unit, "bit")
    data = unit.draw(np.zeros((100, 5)), rng)
    found = pm.diagnose(rbm, data, n_chains=50, n_steps=40, log_z=None, rng=0)
    assert isinstance(str(found), str)
    tilted = Tilted("tilted", (0.0, 1.0, 2.0))
    theta = {"theta": np.array([-0.4, 0.1, -0.2])}
    rbm = pm.RBM(rng.normal(0.0, 0.2, (3, 3)), 0.0, 0.0, tilted, tilted, theta, theta)
    data = rng.choice(tilted.values, size=(100, 3))
    found = pm.diagnose(rbm, data, n_chains=50, n_steps=40, log_z=None, rng=0)
    assert found.overlaps is None  # no value is the mirror image of another
    assert found.independent is None
    assert json.dumps(found.to_record(), allow_nan=False)
    constant = np.ones((30, 4))
    machine = pm.RBM(np.zeros((4, 2)), 40.0, 0.0, "spin", "bit")
    found = pm.diagnose(machine, constant, n_chains=50, n_steps=40, rng=0)
    assert names(found.findings) == {"idle"}
    assert json.dumps(found.to_record(), allow_nan=False)


def test_progress_and_record():
    rbm, data = healthy_case("spin", "bit", 0)
    seen = []
    found = pm.diagnose(rbm, data, n_chains=300, n_steps=200, rng=0, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    record = json.loads(json.dumps(found.to_record(), allow_nan=False))
    assert record["healthy"] is True
    assert record["log_likelihood"]["value"] == found.log_likelihood.value
    assert record["n_samples"] == 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.ones((9, 4))}, r"`data` must hold at least 10 points.*got 9"),
        ({"data": np.zeros((20, 4))}, r"`data` must hold the values of spin units.*2\.0 \* data - 1"),
        ({"data": np.full((20, 4), np.nan)}, "`data` must not hold NaN"),
        ({"validation": np.ones((20, 3))}, "`validation` must have 4 columns"),
        ({"chains": np.ones((5, 4))}, r"`chains` must hold at least 10 states.*Leave it out"),
        ({"chains": np.zeros((20, 4))}, "`chains` must hold the values of spin units"),
        ({"n_chains": 9}, "`n_chains` must be an integer of at least 10, got 9"),
        ({"n_steps": 19}, "`n_steps` must be an integer of at least 20, got 19"),
        ({"log_z": "mais"}, "`log_z` must be a `LogZ`"),
        ({"rbm": None}, "`rbm` must be a machine"),
        ({"progress": 1}, "`progress` must be None or a function"),
    ],
)
def test_bad_input(change, message):
    arguments = {"rbm": pm.RBM(np.zeros((4, 2)), 0.0, 0.0), "data": np.ones((20, 4))} | change
    with pytest.raises(ValueError, match=message):
        pm.diagnose(**arguments)


def test_bad_input_of_the_quick_form():
    rbm, data = pm.RBM(np.zeros((4, 2)), 0.0, 0.0), np.ones((20, 4))
    with pytest.raises(ValueError, match="`log_likelihood` must be an `Estimate`"):
        quick_diagnosis(rbm, data, log_likelihood=-3.0)
    with pytest.raises(ValueError, match="`chains` must hold at least 10"):
        quick_diagnosis(rbm, data, data[:3])


def test_labels_are_diagnosed_by_their_indicators():
    """A machine of labels that equals the source of its data is healthy; one with another mean is not."""
    rng = np.random.default_rng(0)
    rbm = pm.RBM(rng.normal(0.0, 0.8, (15, 2)), rng.normal(0.0, 0.5, 15), 0.0, "categorical(3)", "bit")
    data = pm.sample_exact(rbm, 1500, rng=1)
    found = pm.diagnose(rbm, data, n_chains=500, n_steps=100, rng=2)
    assert found.healthy, found.findings
    assert found.means.data.shape == (15,)
    assert np.allclose(found.means.data, rbm.visible.column_means(data))
    shifted = pm.RBM(rbm.weights, rbm.visible_bias + np.eye(15)[4], rbm.hidden_bias, rbm.visible, rbm.hidden)
    names = [
        finding.name for finding in pm.diagnose(shifted, data, n_chains=500, n_steps=100, rng=2).findings
    ]
    assert "means" in names
    from paramagnet.learning.nearness import nearest_distances

    nearest = nearest_distances(rbm.visible, data[:20], data[20:60])
    slow = [min(int((row != other).sum()) for other in data[20:60]) for row in data[:20]]
    assert nearest.tolist() == slow
    others = nearest_distances(rbm.visible, data[3:5], data[:10], itself=np.array([3, 4]))
    places = [[k for k in range(10) if k != own] for own in (3, 4)]
    assert others.tolist() == [
        min(int((data[own] != data[k]).sum()) for k in rest) for own, rest in zip((3, 4), places, strict=True)
    ]


# Weights of points


def selected_case(visible="spin"):
    """A machine, more points than drawn from it where unit 2 is up, and weights that undo this."""
    rbm = make_machine(visible, "bit", 12, 8, scale=0.25, seed=3)
    points = pm.sample_exact(rbm, 1500, rng=0)
    up = points[:, 2] == rbm.visible.values[1]
    kept = up | (np.random.default_rng(0).random(1500) < 0.3)
    return rbm, points[kept], np.where(up, 0.3, 1.0)[kept]


@pytest.mark.parametrize("visible", ["spin", "bit"])
def test_weighted_points_are_judged_with_their_weights(visible):
    rbm, data, weights = selected_case(visible)
    options = {"n_chains": 400, "n_steps": 400, "rng": 1, "n_threads": 1}
    held_out = {"validation": data[1::2], "validation_weight": weights[1::2]}
    found = pm.diagnose(rbm, data[::2], sample_weight=weights[::2], **held_out, **options)
    assert found.healthy, str(found)
    exact = pm.log_likelihood(rbm, data[::2], sample_weight=weights[::2])
    assert found.log_likelihood == exact
    exact = pm.log_likelihood(rbm, data[1::2], sample_weight=weights[1::2])
    assert found.validation_log_likelihood == exact
    assert "means" in names(pm.diagnose(rbm, data, log_z=None, **options).findings)
    chains = pm.sample_exact(rbm, 2000, rng=5)
    assert quick_diagnosis(rbm, data, chains, sample_weight=weights) == ()
    assert quick_diagnosis(rbm, data, sample_weight=weights) == ()
    assert "means" in names(quick_diagnosis(rbm, data, chains))


@pytest.mark.parametrize("illness", ILLNESSES, ids=lambda illness: illness.name)
def test_illnesses_are_found_beside_points_that_do_not_count(illness):
    """Points of another source, of weight zero or next to nothing."""
    rbm, data = illness.case()
    noise = rbm.visible.draw(np.zeros((50, rbm.n_visible)), np.random.default_rng(7))
    points = np.concatenate((data, noise))
    weights = np.concatenate((np.full(len(data), 3.0), np.zeros(40), np.full(10, 1e-9)))
    log_z = None if illness.name == "memorized" else pm.LogZ()
    options = {"n_chains": 400, "n_steps": illness.n_steps, "log_z": log_z, "rng": 1, "n_threads": 1}
    found = pm.diagnose(rbm, points, sample_weight=weights, **options)
    assert illness.name in names(found.findings), str(found)
    assert names(found.findings) - illness.also == {illness.name}, str(found)


def test_equal_weights_are_none():
    rbm, data = healthy_case("bit", "bit", 0)
    options = {"validation": data[:50], "n_chains": 50, "n_steps": 40, "rng": 0, "n_threads": 1}
    plain = pm.diagnose(rbm, data, **options)
    equal = pm.diagnose(
        rbm, data, sample_weight=np.full(500, 0.3), validation_weight=np.full(50, 7.0), **options
    )
    assert equal.to_record() == plain.to_record()
    left = pm.diagnose(rbm, data, sample_weight=np.arange(500) < 300, **options)
    assert left.to_record() == pm.diagnose(rbm, data[:300], **options).to_record()


def test_means_of_labels_start_an_estimate():
    """Frequencies, not averages of labels; weighted where the points are."""
    rng = np.random.default_rng(0)
    rbm = pm.RBM(rng.normal(0.0, 0.3, (15, 2)), 0.0, 0.0, "categorical(3)", "bit")
    data, weights = pm.sample_exact(rbm, 100, rng=1), 1.0 + rng.random(100)
    log_z = pm.LogZ("mais", n_samples=200, n_temperatures=100, start="both")
    found = pm.diagnose(rbm, data, sample_weight=weights, n_chains=50, n_steps=40, log_z=log_z, rng=2)
    exact = pm.log_likelihood(rbm, data, sample_weight=weights).value
    assert found.log_likelihood.value == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_weight": -np.ones(20)}, "`sample_weight` must be zero or positive, got -1"),
        ({"sample_weight": np.zeros(20)}, "`sample_weight` must hold at least one positive number"),
        ({"sample_weight": np.full(20, np.nan)}, "`sample_weight` must be finite, got nan"),
        ({"sample_weight": np.ones(19)}, "`sample_weight` must hold one number for each of the 20 points"),
        ({"sample_weight": np.arange(20) < 9}, "at least 10 points of positive weight, .* got 9"),
        ({"sample_weight": 4.0 ** np.arange(20)}, r"points worth at least 10 of equal weight.*, got 1\.67"),
        ({"validation_weight": np.ones(20)}, "`validation_weight` must be left out where `validation` is"),
        (
            {"validation": np.ones((20, 4)), "validation_weight": -np.ones(20)},
            "`validation_weight` must be zero or positive, got -1",
        ),
    ],
)
def test_bad_weights(change, message):
    arguments = {"rbm": pm.RBM(np.zeros((4, 2)), 0.0, 0.0), "data": np.ones((20, 4))}
    with pytest.raises(ValueError, match=message):
        pm.diagnose(**arguments | change)
    if "sample_weight" in change:
        with pytest.raises(ValueError, match=message):
            quick_diagnosis(**arguments | change)
